//! What comes out of a simulation, in terms of the trace as it was recorded.
//!
//! A change alters what a pass writes and how long it takes, so the figures of a replay
//! cannot be compared as they stand: a change that absorbs half of the writes would show the
//! write amplification of the other half, and a closed loop would wear a drive out in days.
//! Everything here is therefore about a pass of the original trace:
//!
//! * **write amplification** is flash bytes programmed over bytes that *the original trace*
//!   writes. What absorbs writes shows its gain, what pads them shows its cost. It can fall
//!   below 1.
//! * **lifetime** is at the rate of the original replay: raw bytes x cycles over flash bytes
//!   of a pass, times the seconds of a pass of the original. What makes the drive faster does
//!   not make it die sooner.
//!   That is with even wear; only where levelling itself is compared it is the life of the
//!   block that is erased most.
//! * **bytes and requests a second** count those of the original trace, over the simulated
//!   time of the changed one: how fast the same work gets done.

use prism_base::{Bytes, Latencies, Nanos};
use prism_nand::{BlockId, Nand};
use prism_replay::{Outcome, SteadyState};
use prism_ssd::{Drive, HostOp, MapCounts};
use prism_workload::Measured;

/// Seconds of a day.
const DAY: f64 = 86_400.0;

/// What one pass of the original trace does, as it was measured in the main replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Original {
    /// Bytes written.
    pub written: f64,
    /// Bytes read and written.
    pub moved: f64,
    /// Requests that are no flush.
    pub requests: f64,
    /// Simulated seconds.
    pub seconds: f64,
}

impl Original {
    /// The mean pass of what was measured in the main replay.
    #[must_use]
    pub fn of(measured: &Measured) -> Self {
        let passes = f64::from(measured.passes.max(1));
        let written = measured.bytes_of(HostOp::Write);
        Self {
            written: written as f64 / passes,
            moved: (written + measured.bytes_of(HostOp::Read)) as f64 / passes,
            requests: measured.requests as f64 / passes,
            seconds: measured.simulated.as_secs_f64() / passes,
        }
    }
}

/// How evenly blocks were erased since the simulation began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wear {
    /// Fewest erases of a block.
    pub min: u32,
    /// Mean over all blocks.
    pub mean: f64,
    /// Most erases of a block.
    pub max: u32,
}

impl Wear {
    /// Over the blocks of `nand` with one bit a cell, where it has others too.
    #[must_use]
    pub fn of_slc(nand: &Nand) -> Option<Self> {
        let layout = nand.layout();
        let members = (0..).zip(nand.erase_counts());
        let of_slc = |index: u32| layout.is_slc(BlockId(index / layout.dies_per_lane()));
        let counts: Vec<u32> =
            members.filter(|&(index, _)| of_slc(index)).map(|(_, &erases)| erases).collect();
        (!counts.is_empty()).then(|| Self::of(&counts))
    }

    /// Over the erase counts of all blocks.
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

/// What a simulation says. The module says what the figures are relative to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Flash bytes programmed over bytes that the original trace writes; `None` if it writes
    /// nothing.
    pub write_amplification: Option<f64>,
    /// Latency below which 99 % of reads and writes lie; `None` if there are none.
    pub p99: Option<Nanos>,
    /// Days until every block has used up its cycles, at the rate of the original replay;
    /// `None` if nothing is programmed.
    pub lifetime_days: Option<f64>,
    /// Bytes of the original trace, read and written, a simulated second.
    pub bytes_per_second: f64,
    /// Requests of the original trace, flushes apart, a simulated second.
    pub iops: f64,
    /// Passes that were measured.
    pub passes: u32,
    /// Flash bytes programmed in them.
    pub flash_bytes: Bytes,
    /// Bytes that the host wrote in them, after the change.
    pub host_bytes: Bytes,
    /// Blocks (of one plane) erased in them.
    pub erases: u64,
    /// Erases by block, over the whole simulation.
    pub wear: Wear,
    /// Whether write amplification had settled before.
    pub steady: SteadyState,
    /// Looks at a cached map, where the drive has one.
    pub map: Option<MapCounts>,
}

impl Figures {
    /// The figures of a replay on `drive` that has ended; `raw` is the flash that wears.
    #[must_use]
    pub fn of(outcome: &Outcome, drive: &Drive, raw: Bytes, original: &Original) -> Self {
        let m = &outcome.measured;
        let passes = f64::from(m.passes.max(1));
        let flash = m.flash_bytes as f64 / passes;
        let simulated = m.simulated.as_secs_f64() / passes;
        let rate = |amount: f64| if simulated > 0.0 { amount / simulated } else { 0.0 };
        let mut latency = Latencies::new();
        latency.merge(m.latency_of(HostOp::Read));
        latency.merge(m.latency_of(HostOp::Write));
        let device = drive.device();
        let mut writable = raw.0 as f64 * f64::from(device.flash.endurance);
        if device.slc.is_some() {
            // Whichever kind of blocks is used up first, on as much flash as `raw`.
            let share = raw.0 as f64 / device.geometry().raw().0 as f64;
            writable = device.writable_bytes(m.flash.slc_share()) * share;
        }
        let days = writable / flash * original.seconds / DAY;
        Self {
            write_amplification: (original.written > 0.0).then(|| flash / original.written),
            p99: (latency.count() > 0).then(|| latency.quantile(0.99)),
            lifetime_days: (flash > 0.0).then_some(days),
            bytes_per_second: rate(original.moved),
            iops: rate(original.requests),
            passes: m.passes,
            flash_bytes: Bytes(m.flash_bytes),
            host_bytes: Bytes(m.bytes_of(HostOp::Write)),
            erases: m.flash.erases.total(),
            wear: Wear::of(drive.engine().nand().erase_counts()),
            steady: outcome.steady,
            map: m.map,
        }
    }

    /// Translation pages read and rewritten a pass; `None` without a cached map. Unlike
    /// misses, which also count looks at units that hold nothing, these cost flash
    /// operations.
    #[must_use]
    pub fn map_pages_per_pass(&self) -> Option<f64> {
        let pages = |map: MapCounts| (map.loads + map.writebacks) as f64;
        self.map.map(|map| pages(map) / f64::from(self.passes.max(1)))
    }

    /// The same with the lifetime of the block that was erased most: a drive that does not
    /// level wear has lost a block long before the mean one is used up.
    #[must_use]
    pub fn until_the_first_block(self) -> Self {
        let evenness =
            if self.wear.max == 0 { 1.0 } else { self.wear.mean / f64::from(self.wear.max) };
        Self { lifetime_days: self.lifetime_days.map(|days| days * evenness), ..self }
    }

    /// The share of looks at the map that were misses; `None` without a cached map.
    #[must_use]
    pub fn map_miss_ratio(&self) -> Option<f64> {
        self.map.map(|map| map.miss_ratio())
    }
}
