//! The micro-benchmarks of the unwritten contract. For each rule there is a workload that keeps
//! it and one that breaks it and is otherwise the same; the result is the cost of breaking the
//! rule on a simulated drive.
//!
//! Source: He, Kannan, Arpaci-Dusseau, Arpaci-Dusseau, "The unwritten contract of solid
//! state drives", EuroSys'17, and the benchmarks of its simulator. Drive: the preset
//! `wiscsim` (16 channels that are one server each, 2 KiB pages, 64 pages per block, writes
//! complete on flash). Differs: the benchmark does not trigger cleaning. The drive, which has a
//! quarter more flash than addresses, cleans when it needs erased blocks, so that the cost shows in
//! the bandwidth of the writes that follow.

mod alignment;
mod grouping;
mod lifetime;
mod locality;
mod measured;
mod request_scale;

use prism_base::{Bytes, Nanos};
use prism_ssd::{DriveSpec, MapCounts};

use crate::drives::preset;
use crate::scale::Scale;

pub use lifetime::Wear;
pub use prism_contract::rules::Rule;

/// The performance of a workload and the flash operations that it caused, including background
/// work after its last request.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Bytes a second, from the first submission to the last completion.
    pub bandwidth: f64,
    /// Mean latency.
    pub latency: Nanos,
    /// Units programmed over units written by the host; `None` if the host wrote none.
    pub write_amplification: Option<f64>,
    /// Blocks erased.
    pub erases: u64,
    /// Lookups of the map cache, if the drive has its map on flash.
    pub map: Option<MapCounts>,
    /// The wear of blocks, if the benchmark is about it.
    pub wear: Option<Wear>,
}

/// A workload and its cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// The workload in a few words.
    pub what: String,
    /// Its cost.
    pub cost: Cost,
}

/// The quantity of which a published price is a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Bytes a second, with the rule kept over with the rule broken.
    Bandwidth,
    /// Requests a second, with the rule kept over with the rule broken.
    Throughput,
    /// Mean latency, with the rule broken over with the rule kept.
    Latency,
    /// Blocks erased, with the rule broken over with the rule kept.
    Erases,
}

/// A price that the paper gives where it introduces a rule. It most likely comes from the
/// literature cited there and not from the paper's simulator, so a difference proves nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// The quantity of which it is a ratio.
    pub metric: Metric,
    /// How many times worse it is to break the rule.
    pub price: f64,
}

const fn published(metric: Metric, price: f64) -> Published {
    Published { metric, price }
}

/// A workload that keeps a rule compared with one that breaks it.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The rule.
    pub rule: Rule,
    /// The benchmark and the part of it that is measured.
    pub name: &'static str,
    /// The workload that keeps the rule.
    pub conform: Side,
    /// The workload that breaks the rule.
    pub violate: Side,
    /// The prices that the paper gives.
    pub published: &'static [Published],
}

impl Comparison {
    /// How many times worse it is to break the rule; `None` if one of the numbers is 0.
    #[must_use]
    pub fn price(&self, metric: Metric) -> Option<f64> {
        let (kept, broken) = (&self.conform.cost, &self.violate.cost);
        let per_request = |cost: &Cost| cost.latency.0 as f64;
        let (worse, better) = match metric {
            Metric::Bandwidth | Metric::Throughput => (kept.bandwidth, broken.bandwidth),
            Metric::Latency => (per_request(broken), per_request(kept)),
            Metric::Erases => (broken.erases as f64, kept.erases as f64),
        };
        (better > 0.0).then(|| worse / better)
    }
}

/// The benchmarks. Each takes a few seconds at full scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Benchmark {
    /// Sixteen small requests in flight, or one.
    RequestScaleCount,
    /// Large or small requests, one in flight.
    RequestScaleSize,
    /// Addresses that the map cache covers, or a wider range.
    Locality,
    /// Blocks written from the beginning, or the second half first.
    Alignment,
    /// Two kinds of data written one after the other, or alternately.
    GroupInTime,
    /// Two kinds of data at separate addresses, or at alternating ones.
    GroupInSpace,
    /// All data overwritten equally often, or some far more often.
    Lifetime,
}

impl Benchmark {
    /// Every benchmark, in the order of the rules.
    pub const ALL: [Self; 7] = [
        Self::RequestScaleCount,
        Self::RequestScaleSize,
        Self::Locality,
        Self::Alignment,
        Self::GroupInTime,
        Self::GroupInSpace,
        Self::Lifetime,
    ];

    /// Runs the benchmark.
    #[must_use]
    pub fn run(self, scale: Scale, seed: u64) -> Vec<Comparison> {
        let bench = Bench { scale, seed };
        match self {
            Self::RequestScaleCount => request_scale::count(bench),
            Self::RequestScaleSize => request_scale::size(bench),
            Self::Locality => locality::run(bench),
            Self::Alignment => alignment::run(bench),
            Self::GroupInTime => grouping::in_time(bench),
            Self::GroupInSpace => grouping::in_space(bench),
            Self::Lifetime => lifetime::run(bench),
        }
    }
}

const PAGE: u64 = 2048;
const BLOCK: u64 = 64 * PAGE;
/// Bytes of a large request, and of the pieces in which two kinds of data alternate.
const CHUNK: u64 = 128 << 10;
/// Bytes that a benchmark writes, and of the addresses it uses, unless it says otherwise.
const SPACE: u64 = 128 << 20;
/// Bytes of flash for [`SPACE`] bytes of addresses in the benchmarks with cleaning.
const FLASH: u64 = SPACE / 4 * 5;

/// Scale and seed of a benchmark.
#[derive(Clone, Copy, Debug)]
struct Bench {
    scale: Scale,
    seed: u64,
}

impl Bench {
    /// Channels of the drive. A smaller drive has fewer channels with as many blocks on each, so
    /// that cleaning, which depends on the blocks of a die, is the same.
    fn channels(self) -> u32 {
        match self.scale {
            Scale::Full => 16,
            Scale::Quarter => 4,
        }
    }

    /// Requests in flight that keep all channels busy: one per channel.
    fn depth(self) -> u32 {
        self.channels()
    }

    /// `full` bytes at full scale, reduced with the number of channels.
    fn bytes(self, full: u64) -> u64 {
        full / 16 * u64::from(self.channels())
    }

    /// A drive of `capacity` bytes with `flash` bytes of flash, both given for full scale.
    fn device(self, capacity: u64, flash: u64) -> DriveSpec {
        let mut device = preset("wiscsim");
        device.flash.channels = self.channels();
        device.flash.blocks_per_plane = (flash / 16 / BLOCK) as u32;
        device.drive.capacity = Bytes(self.bytes(capacity));
        device
    }
}
