//! Table 4: the gain of stripe-aligned writes in four macro benchmarks.
//!
//! The paper ran traces of them and gives no figures of the traces. Here each benchmark is a
//! mixture of requests with the figures that are known of such workloads; [`Macro::source`]
//! states which figures are assumptions. The improvement is that of the mean response of all
//! requests, on the drive of Table 3.

use prism_base::{Nanos, Rng};
use prism_ssd::HostOp;

use super::alignment::{count, gang};
use super::host_queue::{Arrivals, Io, Scheme, mean_response};
use super::{closest, distance, line};
use crate::comparison::{Basis, Comparison, Quantity, Why};
use crate::scale::Scale;

named_enum! {
    /// A macro benchmark.
    pub enum Macro {
        /// Small files of a mail server.
        Postmark = "Postmark",
        /// Transactions of a database.
        Tpcc = "TPCC",
        /// A mail store in a database.
        Exchange = "Exchange",
        /// Large sequential writes.
        Iozone = "IOzone",
    }
}

/// The mixture of requests of a benchmark.
#[derive(Clone, Copy, Debug)]
struct Mixture {
    /// Share of reads.
    reads: f64,
    /// Sizes in KiB, all equally likely.
    sizes: &'static [u64],
    /// Probability that a request is sequential to the last read or write, respectively.
    sequential: f64,
}

impl Macro {
    /// Published improvement in percent (Table 4).
    #[must_use]
    pub fn published(self) -> f64 {
        match self {
            Self::Postmark => 1.15,
            Self::Tpcc => 3.08,
            Self::Exchange => 4.89,
            Self::Iozone => 36.54,
        }
    }

    /// The sources of the figures of the mixture; "ours" marks assumptions.
    #[must_use]
    pub fn source(self) -> &'static str {
        match self {
            Self::Postmark => {
                "51,780 reads to 10,477 writes: the Postmark trace of the simulator's validation; \
                 files of 4 to 64 KiB, a fifth of the requests sequential: ours"
            }
            Self::Tpcc => "pages of 8 KiB, two thirds reads, one in ten sequential: ours",
            Self::Exchange => {
                "pages of 4 KiB and runs of up to 32 KiB, 60 % reads, a fifth sequential: ours"
            }
            Self::Iozone => {
                "writes alone, in order: the IOzone trace of the simulator's validation; records \
                 of 64 to 256 KiB that begin 4 KiB after a logical page boundary: ours"
            }
        }
    }

    fn mixture(self) -> Mixture {
        match self {
            Self::Postmark => Mixture {
                reads: 51_780.0 / (51_780.0 + 10_477.0),
                sizes: &[4, 8, 16, 32, 64],
                sequential: 0.2,
            },
            Self::Tpcc => Mixture { reads: 2.0 / 3.0, sizes: &[8], sequential: 0.1 },
            Self::Exchange => Mixture { reads: 0.6, sizes: &[4, 8, 16, 32], sequential: 0.2 },
            Self::Iozone => Mixture { reads: 0.0, sizes: &[64, 128, 256], sequential: 1.0 },
        }
    }
}

/// Requests in flight.
pub const DEPTHS: [u32; 5] = [2, 3, 4, 8, 16];

/// Mean responses of a benchmark in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MacroResult {
    /// The benchmark.
    pub benchmark: Macro,
    /// Requests in flight.
    pub depth: u32,
    /// With requests issued as they arrive.
    pub unaligned: f64,
    /// With merged and aligned writes.
    pub aligned: f64,
}

const PAGE: u64 = 4096;

pub(super) fn measure(benchmark: Macro, scale: Scale, seed: u64) -> Vec<MacroResult> {
    let result = |depth| {
        let mean = |scheme| mean(benchmark, depth, scheme, scale, seed);
        let aligned = mean(Scheme::Aligned { wait: Nanos::ZERO });
        MacroResult { benchmark, depth, unaligned: mean(Scheme::AsTheyArrive), aligned }
    };
    DEPTHS.into_iter().map(result).collect()
}

fn mean(benchmark: Macro, depth: u32, scheme: Scheme, scale: Scale, seed: u64) -> f64 {
    let drive = gang(scale, seed);
    let mixture = benchmark.mixture();
    let pages = drive.device().capacity().0 / PAGE;
    let mut rng = Rng::stream(seed, benchmark.name());
    // The ends of the last write and of the last read, in pages of 4 KiB.
    let mut ends = [1, 1];
    mean_response(drive, scheme, Arrivals::Closed { depth }, count(scale), seed, || {
        let read = rng.chance(mixture.reads);
        let size = mixture.sizes[rng.below(mixture.sizes.len() as u64) as usize] * 1024;
        let length = size / PAGE;
        let end = &mut ends[usize::from(read)];
        let follows = rng.chance(mixture.sequential) && *end + length <= pages;
        let begin = if follows { *end } else { rng.below(pages - length) };
        *end = begin + length;
        let op = if read { HostOp::Read } else { HostOp::Write };
        Io { op, offset: begin * PAGE, len: size }
    })
}

impl MacroResult {
    /// Percent by which aligned writes improve the mean response.
    #[must_use]
    pub fn gain(&self) -> f64 {
        100.0 * (1.0 - self.aligned / self.unaligned)
    }
}

/// The depth at which the four benchmarks together are closest to the table.
#[must_use]
pub fn closest_depth(results: &[MacroResult]) -> Option<u32> {
    let off = |depth: &u32| -> f64 {
        let all = results.iter().filter(|one| one.depth == *depth);
        // Gains below a hundredth of a percent count as that much.
        all.map(|one| distance(one.gain().max(0.01), one.benchmark.published())).sum()
    };
    let tried = DEPTHS.into_iter().filter(|depth| results.iter().any(|one| one.depth == *depth));
    closest(tried, off)
}

pub(super) fn lines(results: &[MacroResult]) -> Vec<Comparison> {
    let reason = Why::NotGiven(
        "the traces are not published; the mixtures that replace them reproduce the order of the \
         four gains, but not their sizes and bursts",
    );
    let depth = closest_depth(results);
    let line = |one: &MacroResult| {
        let what = format!("{}: improvement by aligned writes", one.benchmark.name());
        let both = [one.benchmark.published(), one.gain()];
        line("Table 4", what, Quantity::Percent, both, reason).on(Basis::Closest)
    };
    results.iter().filter(|one| Some(one.depth) == depth).map(line).collect()
}
