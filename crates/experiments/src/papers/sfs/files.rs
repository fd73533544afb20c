//! The file system of SFS itself, without time: write cost, distribution of the utilization of
//! segments, throughput by arithmetic. `docs/design/sfs.md` has the set-up.

use prism_flash::{DeviceGeometry, MemoryDevice, SharedMemory};
use prism_fs::{Config, Distance, Fs, FsError, NewFile, Quantization, ROOT, S_IFREG, Time, Victim};
use prism_segments::IdealStore;
use prism_workload::overwrites::{AGEING, BlockSequence, CAPACITY, MEASURED, Workload};

use super::recorder::{Recorder, over_ftls};
use super::{Bench, Ssd};
use crate::scale::Scale;

/// Segments of the paper's device.
pub(super) const SEGMENTS: u32 = 930;
/// Utilizations of Figures 8 and 9, in percent.
pub const UTILIZATIONS: [u32; 6] = [40, 60, 70, 80, 85, 90];
/// Groups of Figure 5.
pub const GROUPS: [u32; 6] = [1, 2, 3, 4, 5, 6];
/// The utilization of the other figures.
pub const FULL: u32 = 85;
/// The utilization of Figure 10.
pub const SPREAD: u32 = 70;
/// The settings of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settings {
    /// SFS with this many groups.
    Sfs(u32),
    /// SFS that cleans by cost-benefit.
    CostBenefit,
    /// SFS with groups of equal numbers of segments.
    EqualCounts,
    /// SFS with groups of equal ranges of hotness.
    EqualRanges,
    /// SFS with groups of equal ranges of the logarithm of hotness.
    EqualLogRanges,
    /// The paper's baseline.
    LfsCb,
    /// The settings of a mount by default.
    Normal,
}

impl Settings {
    /// SFS as the paper runs it.
    pub const SFS: Self = Self::Sfs(4);
    /// The rivals of its quantization.
    pub const RIVALS: [Self; 3] = [Self::EqualCounts, Self::EqualRanges, Self::EqualLogRanges];

    /// Its name.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Sfs(1) => "SFS, 1 group".into(),
            Self::Sfs(groups) => format!("SFS, {groups} groups"),
            Self::CostBenefit => "SFS, cost-benefit".into(),
            Self::EqualCounts => "SFS, equal numbers".into(),
            Self::EqualRanges => "SFS, equal ranges".into(),
            Self::EqualLogRanges => "SFS, equal ranges of logarithms".into(),
            Self::LfsCb => "LFS-CB".into(),
            Self::Normal => "by default".into(),
        }
    }

    fn config(self) -> Config {
        match self {
            Self::Sfs(groups) => Config { groups, ..Config::SFS },
            Self::CostBenefit => Config { victim: Victim::CostBenefit, ..Config::SFS },
            Self::EqualCounts => Config { quantization: Quantization::EqualCounts, ..Config::SFS },
            Self::EqualRanges => Config { quantization: Quantization::EqualRanges, ..Config::SFS },
            Self::EqualLogRanges => Config {
                quantization: Quantization::EqualRanges,
                distance: Distance::Log,
                ..Config::SFS
            },
            Self::LfsCb => Config::LFS_CB,
            Self::Normal => Config::NORMAL,
        }
    }
}

/// A run of the file system.
#[derive(Clone, Debug, PartialEq)]
pub struct FileRow {
    /// The workload.
    pub writes: Workload,
    /// The settings.
    pub settings: Settings,
    /// Live blocks of files over all blocks, in percent.
    pub utilization: u32,
    /// Blocks that callers wrote.
    pub called: u64,
    /// Blocks of files written for them: several writes of a block may wait and be one.
    pub data: u64,
    /// Blocks of files that cleaning rewrote.
    pub cleaned: u64,
    /// All blocks.
    pub total: u64,
    /// The share of segments of each tenth of utilization, without segments that are never
    /// updated.
    pub spread: [f64; 10],
    /// Write amplification and erases for each 1000 blocks that callers wrote, over FAST and over
    /// page-level mapping, of runs at [`FULL`].
    pub below: Option<[(f64, f64); 2]>,
}

impl FileRow {
    /// What cleaning rewrites for each other block of a file.
    #[must_use]
    pub fn x(&self) -> f64 {
        self.cleaned as f64 / self.data as f64
    }

    /// The write cost of the paper, for its SSD-M.
    #[must_use]
    pub fn write_cost(&self) -> f64 {
        1.0 + self.x() * (1.0 + 87.0 / 10.6)
    }

    /// Megabytes a second of callers on a drive with the rates of the paper's table.
    #[must_use]
    pub fn throughput(&self, ssd: Ssd) -> f64 {
        let random_read = match ssd {
            Ssd::H => 13.8,
            Ssd::M => 10.6,
            Ssd::L => 5.3,
        };
        let (written, read) = (self.total as f64, self.cleaned as f64);
        let time = written / ssd.published().0 + read / random_read;
        self.called as f64 / time
    }
}

const FILE: NewFile = NewFile { mode: S_IFREG | 0o644, uid: 0, gid: 0, rdev: 0, umask: 0 };

/// An empty file system on segments without time.
fn file_system(bench: Bench, config: Config) -> Result<Fs<Recorder>, FsError> {
    let geometry = DeviceGeometry {
        channels: 1,
        luns_per_channel: 1,
        blocks_per_lun: SEGMENTS,
        pages_per_block: blocks_per_segment(bench.scale),
        page_size: 4096,
        oob_size: 0,
        max_open_blocks: None,
    };
    let memory = MemoryDevice::new(geometry, prism_flash::Cache::None).expect("a sound geometry");
    let store = IdealStore::new(SharedMemory::from(memory).into(), 1);
    Fs::format(Recorder::new(store), 1, config, Time::default())
}

/// Blocks of a segment.
pub(super) fn blocks_per_segment(scale: Scale) -> u32 {
    match scale {
        Scale::Full => 64,
        Scale::Quarter => 32,
    }
}

/// A workload on a file system that was used before.
pub(super) fn row(bench: Bench, writes: Workload, settings: Settings, utilization: u32) -> FileRow {
    measured(bench, writes, settings, utilization).expect("there is space")
}

fn measured(
    bench: Bench,
    writes: Workload,
    settings: Settings,
    utilization: u32,
) -> Result<FileRow, FsError> {
    let config = Config { cache_bytes: 8 << 20, ..settings.config() };
    let mut fs = file_system(bench, config)?;
    let per_segment = u64::from(fs.blocks_per_segment());
    let all = u64::from(SEGMENTS) * per_segment;
    let set = writes.set_blocks(all);
    let dummy = (all * u64::from(utilization) / 100).saturating_sub(set);
    let block = [7; 4096];
    for (name, count) in [(b"dummy", dummy), (b"files", set)] {
        let file = fs.make(ROOT, name, FILE)?;
        (0..count).try_for_each(|at| fs.write(file, at * 4096, &block))?;
        fs.checkpoint()?;
    }
    let file = fs.lookup(ROOT, b"files")?;
    let mut sequence = BlockSequence::new(writes, set, bench.seed);
    let mut write = |fs: &mut Fs<Recorder>, count: u64| {
        (0..count).try_for_each(|_| fs.write(file, sequence.next_block() * 4096, &block))
    };
    write(&mut fs, all * AGEING / CAPACITY)?;
    let before = fs.counts();
    fs.store().begin();
    let called = all * MEASURED / CAPACITY;
    write(&mut fs, called)?;
    let after = fs.counts();
    let written = fs.store().take();
    let below = (utilization == FULL)
        // The same writes are the warm-up.
        .then(|| over_ftls(&written, &written, SEGMENTS, per_segment as u32, called));
    Ok(FileRow {
        writes,
        settings,
        utilization,
        called,
        data: after.data - before.data,
        cleaned: after.cleaned - before.cleaned,
        total: after.total() - before.total(),
        spread: spread(&fs.segment_use(), per_segment, dummy / per_segment),
        below,
    })
}

/// The share of segments by tenths of their utilization; `dummy` full ones are left out.
fn spread(segments: &[u32], per_segment: u64, dummy: u64) -> [f64; 10] {
    let mut counts = [0_u64; 10];
    for &live in segments.iter().filter(|live| **live > 0) {
        // A tenth belongs to the bin that it ends.
        let bin = (u64::from(live) * 10).div_ceil(per_segment).clamp(1, 10) - 1;
        counts[bin as usize] += 1;
    }
    // Summaries take a little of each segment, so that full ones are in the last two bins.
    let mut left = dummy;
    for count in counts.iter_mut().rev() {
        let out = left.min(*count);
        *count -= out;
        left -= out;
    }
    let sum = counts.iter().sum::<u64>().max(1) as f64;
    counts.map(|count| count as f64 / sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenths_by_hand() {
        let found = spread(&[0, 1, 10, 11, 95, 100, 100], 100, 1);
        assert_eq!(found, [0.4, 0.2, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.4]);
    }
}
