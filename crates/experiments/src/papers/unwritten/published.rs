//! Numbers of the paper and of its authors' data, with which the traces are compared.

use prism_base::Bytes;

use super::{App, Fs};

/// Figure 1 and the text around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure1Published {
    /// Maximum of the reads in flight.
    pub reads_max: u32,
    /// Maximum of the writes in flight in a burst.
    pub writes_max: u32,
    /// Median size of the reads.
    pub read_median: Bytes,
}

/// "Only ever up to two outstanding read requests", "periodic bursts of up to six requests",
/// "the median of read request sizes is only about 128 KB".
pub const FIGURE_1: Figure1Published =
    Figure1Published { reads_max: 2, writes_max: 6, read_median: Bytes(128 << 10) };

/// Median numbers of requests in flight under three access patterns: sequential or small, random or
/// large, and a mixture of both. None is below 1, so the request itself is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepthMedians {
    /// Medians at reads.
    pub reads: [u64; 3],
    /// Medians at writes.
    pub writes: [u64; 3],
}

impl DepthMedians {
    /// Whether `ours` lies between the smallest and the largest of the three medians, as it should
    /// if the access pattern is none of the three.
    #[must_use]
    pub fn contains(medians: [u64; 3], ours: u64) -> bool {
        let (least, most) = (medians.iter().min(), medians.iter().max());
        least.is_some_and(|&least| ours >= least) && most.is_some_and(|&most| ours <= most)
    }
}

/// The medians of `app` on `fs`. Source: the authors' data of October 2016, on which the figures of
/// request scale are based.
#[must_use]
pub fn depth_medians(app: App, fs: Fs) -> DepthMedians {
    // By file system in the order of `Fs::ALL`, then by pattern.
    let writes = match app {
        App::LevelDb => [[3, 1, 2], [2, 1, 2], [6, 2, 6]],
        App::RocksDb => [[3, 1, 3], [1, 1, 2], [5, 2, 10]],
        App::SqliteRb => [[1, 4, 2], [1, 1, 1], [1, 5, 2]],
        App::SqliteWal => [[1, 1, 1], [1, 1, 1], [1, 1, 1]],
        App::Varmail => [[2, 2, 3], [12, 12, 20], [3, 3, 4]],
    };
    let reads = match app {
        App::LevelDb | App::RocksDb => [[1, 1, 1], [1, 1, 1], [1, 1, 1]],
        App::SqliteRb => [[1, 1, 1], [11, 1, 1], [1, 1, 1]],
        App::SqliteWal => [[1, 1, 1], [3, 1, 1], [1, 1, 1]],
        App::Varmail => [[14, 14, 6], [14, 7, 13], [6, 14, 15]],
    };
    DepthMedians { reads: reads[fs as usize], writes: writes[fs as usize] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_lie_between_the_patterns() {
        let xfs = depth_medians(App::RocksDb, Fs::Xfs);
        let check = |ours, expected| {
            assert_eq!(DepthMedians::contains(xfs.writes, ours), expected, "{ours}");
        };
        check(1, false);
        check(2, true);
        check(10, true);
        check(11, false);
        assert_eq!(depth_medians(App::SqliteRb, Fs::F2fs).reads, [11, 1, 1]);
        for app in App::ALL {
            for fs in Fs::ALL {
                let medians = depth_medians(app, fs);
                assert!([medians.reads, medians.writes].as_flattened().iter().all(|&m| m > 0));
            }
        }
    }
}
