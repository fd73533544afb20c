//! The micro-benchmarks of the unwritten contract: for each rule a workload that keeps it,
//! one that breaks it and is the same otherwise, and the price of the difference on a
//! simulated drive.
//!
//! Source: He, Kannan, Arpaci-Dusseau, Arpaci-Dusseau, "The unwritten contract of solid
//! state drives", EuroSys'17, and the benchmarks of its simulator. Drive: the preset
//! `wiscsim` (16 channels that are one server each, 2 KiB pages, 64 pages a block, writes
//! complete on flash). Differs: cleaning is not called for but comes when room is needed,
//! on a drive with a quarter more flash than addresses, so that its cost shows in the
//! bandwidth of what is written next.

mod alignment;
mod grouping;
mod lifetime;
mod locality;
mod request_scale;
mod run;

use prism_base::{Bytes, Nanos};
use prism_ssd::{Device, MapCounts};

use crate::drives::preset;
use crate::scale::Scale;

pub use lifetime::Wear;
pub use prism_contract::rules::Rule;

/// What one workload got, and what it cost the flash, to the end of the work that it left
/// behind.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Bytes a second, from the first submission to the last completion.
    pub bandwidth: f64,
    /// Mean latency.
    pub latency: Nanos,
    /// Units programmed over units written by the host; `None` if it wrote none.
    pub write_amplification: Option<f64>,
    /// Blocks erased.
    pub erases: u64,
    /// Looks at a cached map, where the map is on flash.
    pub map: Option<MapCounts>,
    /// How blocks wore, where that is looked at.
    pub wear: Option<Wear>,
}

/// One workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// What is done, in a few words.
    pub what: String,
    /// What came of it.
    pub cost: Cost,
}

/// What a published price is a ratio of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Bytes a second, kept over broken.
    Bandwidth,
    /// Requests a second, kept over broken.
    Throughput,
    /// Mean latency, broken over kept.
    Latency,
    /// Blocks erased, broken over kept.
    Erases,
}

/// A price that the paper names in its introduction of a rule. Its source is most likely the
/// literature that it cites there, and not a run of its simulator, so that a difference
/// proves nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// What it is a ratio of.
    pub metric: Metric,
    /// How many times worse it is to break the rule.
    pub price: f64,
}

const fn published(metric: Metric, price: f64) -> Published {
    Published { metric, price }
}

/// A workload that keeps a rule beside one that breaks it.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The rule.
    pub rule: Rule,
    /// The benchmark and what of it is measured.
    pub name: &'static str,
    /// The rule is kept.
    pub conform: Side,
    /// The rule is broken.
    pub violate: Side,
    /// What the paper names.
    pub published: &'static [Published],
}

impl Comparison {
    /// How many times worse the broken rule is; `None` where that has no meaning.
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

/// The benchmarks: each is a run of a few seconds at full scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Benchmark {
    /// Sixteen small requests at once beside one.
    RequestScaleCount,
    /// Large requests beside small ones, one at a time.
    RequestScaleSize,
    /// Addresses that the cached part of the map covers beside wider ones.
    Locality,
    /// Blocks written whole and in order beside their second half first.
    Alignment,
    /// Two kinds of data one after the other beside both in turn.
    GroupInTime,
    /// Two kinds of data in places of their own beside shared places.
    GroupInSpace,
    /// All data overwritten as often beside some far more often.
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

    /// Runs it.
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
/// A large request, and the piece in which kinds of data take turns.
const CHUNK: u64 = 128 << 10;
/// What the benchmarks write, unless they say otherwise, and the addresses they use.
const SPACE: u64 = 128 << 20;
/// Flash over addresses where cleaning is to be seen.
const FLASH: u64 = SPACE / 4 * 5;

/// How a benchmark is run.
#[derive(Clone, Copy, Debug)]
struct Bench {
    scale: Scale,
    seed: u64,
}

impl Bench {
    /// A smaller drive has fewer channels and as much on each, so that blocks on a die, and
    /// with them cleaning, stay as they are.
    fn channels(self) -> u32 {
        match self.scale {
            Scale::Full => 16,
            Scale::Quarter => 4,
        }
    }

    /// Requests that keep all channels busy: one for each.
    fn depth(self) -> u32 {
        self.channels()
    }

    /// `full` bytes of the full drive.
    fn bytes(self, full: u64) -> u64 {
        full / 16 * u64::from(self.channels())
    }

    /// A drive of `capacity` over `flash`, both of the full drive.
    fn device(self, capacity: u64, flash: u64) -> Device {
        let mut device = preset("wiscsim");
        device.flash.channels = self.channels();
        device.flash.blocks_per_plane = (flash / 16 / BLOCK) as u32;
        device.drive.capacity = Bytes(self.bytes(capacity));
        device
    }
}
