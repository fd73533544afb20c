//! The results of a simulation, relative to the trace as it was recorded.
//!
//! A change alters how much a pass writes and how long it takes, so the raw figures of two
//! replays cannot be compared. If a change absorbs half of the writes, the raw write
//! amplification covers only the other half. If a closed loop replays the trace much faster,
//! the raw lifetime shrinks to days. All figures here therefore refer to one pass of the
//! original trace:
//!
//! * **Write amplification** is the flash bytes programmed divided by the bytes that *the
//!   original trace* writes. A change that absorbs writes lowers it, a change that pads
//!   writes raises it. It can fall below 1.
//! * **Lifetime** is that of the described drive at the rate of the original replay: (raw bytes x
//!   cycles) / flash bytes of a pass, times the seconds of a pass of the original. A change that
//!   makes the drive faster does not shorten it. It assumes even wear, except in the comparison of
//!   wear levelling itself, which uses the lifetime of the block that is erased most.
//! * **Bytes and requests per second** count those of the original trace, divided by the
//!   simulated time of the changed one. They show how fast the same work gets done.

use prism_base::{Bytes, Latencies, Nanos};
use prism_nand::{BlockId, Nand};
use prism_replay::{ReplayResult, SteadyState};
use prism_ssd::{Drive, HostOp, MapCounts};
use prism_workload::Measured;

/// Seconds of a day.
const DAY: f64 = 86_400.0;

/// With fewer requests than this, fewer than ten are beyond the 99th percentile: it is an accident.
pub const P99_REQUESTS: u64 = 1000;

/// The work of one pass of the original trace, as measured in the main replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Original {
    /// Bytes written.
    pub written: f64,
    /// Bytes read and written.
    pub moved: f64,
    /// Requests, not counting flushes.
    pub requests: f64,
    /// Simulated seconds.
    pub seconds: f64,
    /// Bytes of distinct addresses that the trace writes.
    pub distinct_written: Bytes,
    /// How many times the flash of the simulated drive the described one has: it lives as many
    /// times as long.
    pub drives: f64,
}

impl Original {
    /// The mean over the measured passes of the main replay, whose drive is not scaled. The trace
    /// writes `distinct_written` bytes of distinct addresses.
    #[must_use]
    pub fn of(measured: &Measured, distinct_written: Bytes) -> Self {
        let passes = f64::from(measured.passes.max(1));
        let written = measured.written();
        Self {
            written: written as f64 / passes,
            moved: (written + measured.bytes_of(HostOp::Read)) as f64 / passes,
            requests: measured.requests as f64 / passes,
            seconds: measured.simulated.as_secs_f64() / passes,
            distinct_written,
            drives: 1.0,
        }
    }
}

/// The distribution of erases over the blocks since the simulation began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wear {
    /// Erases of the block that was erased least.
    pub min: u32,
    /// Mean over all blocks.
    pub mean: f64,
    /// Erases of the block that was erased most.
    pub max: u32,
}

impl Wear {
    /// The wear of the SLC region of `nand`; `None` without such a region.
    #[must_use]
    pub fn of_slc(nand: &Nand) -> Option<Self> {
        let layout = nand.layout();
        let members = (0..).zip(nand.erase_counts());
        let of_slc = |index: u32| layout.is_slc(BlockId(index / layout.dies_per_die_group()));
        let counts: Vec<u32> =
            members.filter(|&(index, _)| of_slc(index)).map(|(_, &erases)| erases).collect();
        (!counts.is_empty()).then(|| Self::of(&counts))
    }

    /// The wear of all blocks, given the erase count of each.
    #[must_use]
    pub fn of(erase_counts: &[u32]) -> Self {
        let sum: u64 = erase_counts.iter().map(|&erases| u64::from(erases)).sum();
        Self {
            min: erase_counts.iter().copied().min().unwrap_or(0),
            mean: sum as f64 / erase_counts.len().max(1) as f64,
            max: erase_counts.iter().copied().max().unwrap_or(0),
        }
    }
}

/// Latency and throughput of a simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// The 99th percentile of the latency of reads and writes; `None` if there are none.
    pub p99: Option<Nanos>,
    /// The latencies between which the requests determine `p99`, three standard deviations of its
    /// rank on either side; `None` with fewer than 1000 requests.
    pub p99_bounds: Option<(Nanos, Nanos)>,
    /// Bytes of the original trace, read and written, per simulated second.
    pub bytes_per_second: f64,
    /// Requests of the original trace, without flushes, per simulated second.
    pub iops: f64,
}

impl Speed {
    /// Whether the 99th percentile of `other` is beyond what the requests of both leave open.
    #[must_use]
    pub fn p99_differs(&self, other: &Self) -> bool {
        match (self.p99_bounds, other.p99_bounds) {
            (Some(ours), Some(theirs)) => ours.1 < theirs.0 || theirs.1 < ours.0,
            _ => false,
        }
    }
}

/// The bounds of the 99th percentile of `latency` over `passes` passes. The same requests again are
/// no more evidence.
fn p99_bounds(latency: &Latencies, passes: u32) -> Option<(Nanos, Nanos)> {
    let count = latency.count() / u64::from(passes.max(1));
    let deviation = (0.99 * 0.01 / count.max(1) as f64).sqrt();
    let at = |deviations: f64| latency.quantile((0.99 + deviations * deviation).min(1.0));
    (count >= P99_REQUESTS).then(|| (at(-3.0), at(3.0)))
}

/// The results of a simulation. The module documentation says what they are relative to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Flash bytes programmed / bytes that the original trace writes; `None` if the trace
    /// writes nothing, or nothing reached the flash.
    pub write_amplification: Option<f64>,
    /// Latency and throughput.
    pub speed: Speed,
    /// Days until every block has used up its cycles, at the rate of the original replay;
    /// `None` if no flash is programmed.
    pub lifetime_days: Option<f64>,
    /// Flash writes, those of cleaning included, over those without cleaning; 1 if there are none.
    pub cleaning: f64,
    /// Measured passes.
    pub passes: u32,
    /// Flash bytes programmed in the measured passes.
    pub flash_bytes: Bytes,
    /// Bytes that the host wrote in the measured passes, after the change.
    pub host_bytes: Bytes,
    /// Blocks (of one plane) erased in the measured passes.
    pub erases: u64,
    /// Erases by block, over the whole simulation.
    pub wear: Wear,
    /// Whether write amplification was steady when measuring began.
    pub steady: SteadyState,
    /// Lookups in the map cache; `None` if the drive has no map cache.
    pub map: Option<MapCounts>,
}

impl Figures {
    /// Latency and throughput of a replay.
    #[must_use]
    pub fn of_speed(outcome: &ReplayResult, original: &Original) -> Speed {
        let m = &outcome.measured;
        let simulated = m.simulated.as_secs_f64() / f64::from(m.passes.max(1));
        let rate = |amount: f64| if simulated > 0.0 { amount / simulated } else { 0.0 };
        let latency = m.reads_and_writes();
        Speed {
            p99: (latency.count() > 0).then(|| latency.quantile(0.99)),
            p99_bounds: p99_bounds(&latency, m.passes),
            bytes_per_second: rate(original.moved),
            iops: rate(original.requests),
        }
    }

    /// The figures of a finished replay on `drive`; `raw` is the flash that wears.
    #[must_use]
    pub fn of(outcome: &ReplayResult, drive: &Drive, raw: Bytes, original: &Original) -> Self {
        let (device, window) = (drive.device(), &outcome.window);
        let flash = outcome.flash_bytes_per_pass(device, original.distinct_written);
        let cycles = f64::from(device.flash.endurance) * device.endurance_left();
        let mut writable = raw.0 as f64 * cycles;
        if device.slc.is_some() {
            // The SLC and the other blocks wear out at different times; the earlier one
            // counts. The result is scaled to the flash in `raw`.
            let share = raw.0 as f64 / device.geometry().raw().0 as f64;
            writable = device.writable_bytes(window.flash.slc_share()) * share;
        }
        let days = writable * original.drives / flash * original.seconds / DAY;
        Self {
            write_amplification: (original.written > 0.0 && flash > 0.0)
                .then(|| flash / original.written),
            speed: Self::of_speed(outcome, original),
            lifetime_days: (flash > 0.0).then_some(days),
            cleaning: outcome.cleaning(device, original.distinct_written),
            passes: window.passes,
            flash_bytes: Bytes(window.flash_bytes),
            host_bytes: Bytes(window.written()),
            erases: window.flash.erases.total(),
            wear: Wear::of(drive.engine().nand().erase_counts()),
            steady: outcome.steady,
            map: window.map,
        }
    }

    /// Translation pages read and rewritten per pass; `None` without a map cache. These cost
    /// flash operations. A miss need not: lookups of units that hold no data count as misses
    /// too.
    #[must_use]
    pub fn map_pages_per_pass(&self) -> Option<f64> {
        let pages = |map: MapCounts| (map.loads + map.writebacks) as f64;
        self.map.map(|map| pages(map) / f64::from(self.passes.max(1)))
    }

    /// The same figures with the lifetime of the block that was erased most. A drive without
    /// wear levelling loses a block long before the mean block is worn out. With wear levelling it
    /// is a lower bound: blocks differ most at the beginning, and the ratio of the most erased
    /// block to the mean falls for long.
    #[must_use]
    pub fn until_first_block_wears_out(self) -> Self {
        let evenness =
            if self.wear.max == 0 { 1.0 } else { self.wear.mean / f64::from(self.wear.max) };
        Self { lifetime_days: self.lifetime_days.map(|days| days * evenness), ..self }
    }

    /// The share of map lookups that missed the cache; `None` without a map cache.
    #[must_use]
    pub fn map_miss_ratio(&self) -> Option<f64> {
        self.map.map(|map| map.miss_ratio())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speed(latencies: impl IntoIterator<Item = u64>) -> Speed {
        let mut all = Latencies::default();
        latencies.into_iter().for_each(|latency| all.record(Nanos(latency)));
        let p99 = Some(all.quantile(0.99));
        Speed { p99, p99_bounds: p99_bounds(&all, 1), bytes_per_second: 0.0, iops: 0.0 }
    }

    #[test]
    fn a_p99_differs_only_if_its_requests_determine_it() {
        let check = |requests: u64, slow: [u64; 2], expected: bool| {
            // Of a thousand requests, as many are slow.
            let [a, b] = slow.map(|slow| {
                let slow = requests / 1000 * slow;
                let latency = move |i| if i < slow { 1_000_000 } else { 100_000 };
                speed((0..requests).map(latency))
            });
            assert_eq!(a.p99_differs(&b), expected, "{requests} {slow:?}: {a:?} {b:?}");
            assert_eq!(b.p99_differs(&a), expected, "{requests} {slow:?}: {a:?} {b:?}");
        };
        check(100_000, [5, 15], true);
        check(100_000, [5, 5], false);
        // In a thousand requests, 5 or 15 slow ones are both plausible for one distribution.
        check(1000, [5, 15], false);
        check(1000, [0, 40], true);
        let mut repeated = Latencies::default();
        (0..3000).for_each(|_| repeated.record(Nanos(1)));
        assert_eq!(p99_bounds(&repeated, 4), None, "750 requests, four times");
        assert!(p99_bounds(&repeated, 3).is_some());
        let few = |latency| speed(vec![latency; 999]);
        assert!(!few(1_000).p99_differs(&few(1_000_000)), "too few requests");
    }
}
