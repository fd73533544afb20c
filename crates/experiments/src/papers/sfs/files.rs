//! The file system of SFS itself, without time: write cost, distribution of the utilization of
//! segments, throughput by arithmetic. `docs/design/sfs.md` has the set-up.

use prism_base::Rng;
use prism_base::distribution::{Scatter, Zipf};
use prism_flash::{DeviceGeometry, MemoryDevice, SharedMemory};
use prism_fs::{Config, Fs, FsError, NewFile, ROOT, S_IFREG, Time, Victim};
use prism_segments::IdealStore;

use super::recorder::Recorder;
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
/// Gigabytes of the paper's device, and of the writes before and in a measurement (Figures 12 to
/// 14; for others they are not given).
const CAPACITY: u64 = 30;
const AGEING: u64 = 20;
const MEASURED: u64 = 8;
/// Blocks of the paper's device.
const BLOCKS: f64 = 930.0 * 8192.0;

named_enum! {
    /// A workload of the paper.
    pub enum Writes {
        /// Zipf's law.
        Zipf = "Zipf",
        /// All blocks are equally likely.
        Uniform = "uniform",
        /// The distribution of its trace of TPC-C.
        TpcC = "TPC-C",
        /// The distribution of its trace of research desktops.
        Res = "RES",
    }
}

/// The share of writes to so many thousands of the blocks written most. Source: Figure 2.
const TPC_C: [(f64, f64); 10] = [
    (1.0, 0.053),
    (5.0, 0.151),
    (10.0, 0.321),
    (20.0, 0.445),
    (50.0, 0.611),
    (100.0, 0.732),
    (200.0, 0.853),
    (300.0, 0.917),
    (400.0, 0.959),
    (587.0, 1.0),
];
const RES: [(f64, f64); 13] = [
    (1.0, 0.174),
    (5.0, 0.261),
    (10.0, 0.377),
    (20.0, 0.536),
    (50.0, 0.664),
    (100.0, 0.721),
    (200.0, 0.781),
    (300.0, 0.823),
    (400.0, 0.857),
    (600.0, 0.909),
    (800.0, 0.951),
    (1000.0, 0.974),
    (1184.0, 1.0),
];

impl Writes {
    /// The share of the device that is written.
    fn set(self) -> f64 {
        match self {
            Self::Zipf | Self::Uniform => 0.27,
            Self::TpcC => 587_000.0 / BLOCKS,
            Self::Res => 1_184_000.0 / BLOCKS,
        }
    }
}

/// Blocks to be written.
struct Choice {
    rng: Rng,
    order: Scatter,
    zipf: Zipf,
    writes: Writes,
    count: u64,
}

impl Choice {
    fn new(writes: Writes, count: u64, seed: u64) -> Self {
        let mut rng = Rng::stream(seed, "sfs.files");
        let order = Scatter::new(count, &mut rng);
        Self { rng, order, zipf: Zipf::new(count, 1.0), writes, count }
    }

    fn next(&mut self) -> u64 {
        let rank = match self.writes {
            Writes::Uniform => return self.rng.below(self.count),
            Writes::Zipf => self.zipf.draw(&mut self.rng),
            Writes::TpcC => self.of_curve(&TPC_C),
            Writes::Res => self.of_curve(&RES),
        };
        self.order.place(rank.min(self.count - 1))
    }

    /// A rank of a distribution whose sum is piecewise linear.
    fn of_curve(&mut self, curve: &[(f64, f64)]) -> u64 {
        let at = self.rng.unit();
        let mut before = (0.0, 0.0);
        for &point in curve {
            if at <= point.1 {
                let blocks =
                    before.0 + (at - before.1) / (point.1 - before.1) * (point.0 - before.0);
                let last = curve.last().expect("points").0;
                return (blocks / last * self.count as f64) as u64;
            }
            before = point;
        }
        self.count - 1
    }
}

/// The settings of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settings {
    /// SFS with this many groups.
    Sfs(u32),
    /// SFS that cleans by cost-benefit.
    CostBenefit,
    /// The paper's baseline.
    LfsCb,
    /// The settings of a mount by default.
    Normal,
}

impl Settings {
    /// SFS as the paper runs it.
    pub const SFS: Self = Self::Sfs(4);

    /// Its name.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Sfs(1) => "SFS, 1 group".into(),
            Self::Sfs(groups) => format!("SFS, {groups} groups"),
            Self::CostBenefit => "SFS, cost-benefit".into(),
            Self::LfsCb => "LFS-CB".into(),
            Self::Normal => "by default".into(),
        }
    }

    fn config(self) -> Config {
        match self {
            Self::Sfs(groups) => Config { groups, ..Config::SFS },
            Self::CostBenefit => Config { victim: Victim::CostBenefit, ..Config::SFS },
            Self::LfsCb => Config::LFS_CB,
            Self::Normal => Config::NORMAL,
        }
    }
}

/// A run of the file system.
#[derive(Clone, Debug, PartialEq)]
pub struct FileRow {
    /// The workload.
    pub writes: Writes,
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
pub(super) fn row(bench: Bench, writes: Writes, settings: Settings, utilization: u32) -> FileRow {
    measured(bench, writes, settings, utilization).expect("there is space")
}

fn measured(
    bench: Bench,
    writes: Writes,
    settings: Settings,
    utilization: u32,
) -> Result<FileRow, FsError> {
    let config = Config { cache_bytes: 8 << 20, ..settings.config() };
    let mut fs = file_system(bench, config)?;
    let per_segment = u64::from(fs.blocks_per_segment());
    let all = u64::from(SEGMENTS) * per_segment;
    let set = (all as f64 * writes.set()) as u64;
    let dummy = (all * u64::from(utilization) / 100).saturating_sub(set);
    let block = [7; 4096];
    for (name, count) in [(b"dummy", dummy), (b"files", set)] {
        let file = fs.make(ROOT, name, FILE)?;
        (0..count).try_for_each(|at| fs.write(file, at * 4096, &block))?;
        fs.checkpoint()?;
    }
    let file = fs.lookup(ROOT, b"files")?;
    let mut choice = Choice::new(writes, set, bench.seed);
    let mut write = |fs: &mut Fs<Recorder>, count: u64| {
        (0..count).try_for_each(|_| fs.write(file, choice.next() * 4096, &block))
    };
    write(&mut fs, all * AGEING / CAPACITY)?;
    let before = fs.counts();
    fs.store().begin();
    let called = all * MEASURED / CAPACITY;
    write(&mut fs, called)?;
    let after = fs.counts();
    let written = fs.store().take();
    let below = (utilization == FULL)
        .then(|| super::recorder::over_ftls(&written, SEGMENTS, per_segment as u32, called));
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
    fn curves_give_the_published_shares() {
        for (writes, curve) in [(Writes::TpcC, &TPC_C[..]), (Writes::Res, &RES[..])] {
            let last = curve.last().unwrap().0;
            let count = (last * 100.0) as u64;
            let mut choice = Choice::new(writes, count, 1);
            let mut ranks: Vec<u64> = (0..50_000).map(|_| choice.of_curve(curve)).collect();
            ranks.sort_unstable();
            for &(thousands, share) in curve {
                let below = ranks.partition_point(|&rank| (rank as f64) < thousands * 100.0);
                let found = below as f64 / 50_000.0;
                assert!((found - share).abs() < 0.01, "{writes:?} {thousands}: {found} {share}");
            }
        }
    }

    #[test]
    fn tenths_by_hand() {
        let found = spread(&[0, 1, 10, 11, 95, 100, 100], 100, 1);
        assert_eq!(found, [0.4, 0.2, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.4]);
    }
}
