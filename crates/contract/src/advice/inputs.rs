//! The figures that the design rules are checked against.

use std::collections::BTreeMap;

use prism_base::{Bytes, Nanos};
use prism_nand::Cause;
use prism_ssd::{Drive, DriveSpec, HostOp};
use prism_trace::summary::Sizes;
use prism_workload::Measured;

use crate::rules::{Findings, RequestScale, Rule, ValueCounts, Verdict};
use crate::what_if::{Change, Comparison};

use super::SLOW;

/// Figures of a trace and of the drive that it was replayed on.
#[derive(Clone, Debug, PartialEq)]
pub struct Inputs {
    /// Bytes written, in whole mapping units.
    pub written: Bytes,
    /// The part of `written` that overwrote data.
    pub overwritten: Bytes,
    /// Flash pages read in a pass for the rest of partially written units.
    pub pages_completing: u64,
    /// Share of all writes that go to the most written tenth of the units.
    pub top_tenth: Option<f64>,
    /// The verdict on the rule of uniform data lifetime.
    pub uniform: Verdict,
    /// Valid share of the closed blocks that hold valid data, on a drive that never cleans.
    pub density: Option<f64>,
    /// The verdict on the rule of grouping by death time.
    pub grouped: Verdict,
    /// Write amplification without and with placement handles for hot and cold data; `None`
    /// if that was not simulated.
    pub hot_cold: Option<(f64, f64)>,
    /// Mapping unit.
    pub unit: Bytes,
    /// Flash page.
    pub page: Bytes,
    /// Number of writes.
    pub writes: u64,
    /// Number of writes shorter than a mapping unit.
    pub writes_below_unit: u64,
    /// Median size of writes.
    pub write_median: Option<Bytes>,
    /// Bytes that the host writes per simulated second.
    pub write_rate: f64,
    /// Bytes per second that the host can write if all dies program all the time, at the
    /// measured write amplification.
    pub sustained: Option<f64>,
    /// Dies of the drive.
    pub dies: u32,
    /// Share of the programmed units that are copies by cleaning or merging.
    pub cleaning: f64,
    /// Number of writes with a latency above [`SLOW`].
    pub slow_writes: u64,
    /// The highest latency of a write.
    pub longest_write: Option<Nanos>,
    /// Number of requests that were due while the drive's queue was full.
    pub held_back: u64,
    /// Bytes that hold data at the end of the replay.
    pub mapped: Bytes,
    /// The part of `mapped` that the trace itself wrote.
    pub mapped_by_trace: Bytes,
    /// The name of the state in which the drive was at the start.
    pub state: String,
    /// Capacity of the drive.
    pub capacity: Bytes,
    /// Effective over-provisioning.
    pub spare: f64,
    /// Valid share of the blocks that were chosen for cleaning; `None` if no block was
    /// cleaned.
    pub still_valid: Option<f64>,
    /// Channels of the drive before it was scaled to the trace.
    pub channels: u32,
    /// Median size of reads and writes.
    pub request_median: Option<Bytes>,
    /// Median number of requests in flight at the issue of a read or write, including itself;
    /// `None` if the trace has no completion times.
    pub in_flight: Option<u64>,
    /// The depth of a deeper queue, and the bytes per second of the trace at its own queue depth
    /// and at the deeper one; `None` if that was not simulated.
    pub deeper: Option<(u32, f64, f64)>,
}

impl Inputs {
    /// The figures of a trace with these `findings`, for which these what-ifs were `simulated`. Of
    /// its replay, `worn` is what was measured of flash, with the write amplification that the
    /// report states and the drive at the end, and `timed` what was measured of latency, on the
    /// drive `described`.
    #[must_use]
    pub fn of(
        findings: &Findings,
        (worn, amplification, drive): (&Measured, Option<f64>, &Drive),
        (timed, described): (&Measured, &DriveSpec),
        simulated: &[Comparison],
    ) -> Self {
        let device = drive.device();
        let (unit, scale) = (device.ftl.mapping_unit, &findings.request_scale);
        let units = &worn.flash.units;
        let rate = |bytes: u64| bytes as f64 / timed.simulated.as_secs_f64().max(1e-9);
        let writes = timed.latency_of(HostOp::Write);
        let slow = writes.buckets().filter(|&(latency, _)| latency > SLOW);
        let change = |key| simulated.iter().find(|what_if| what_if.change.key() == key);
        let hot_cold = change("hot-cold")
            .and_then(|c| Some((c.before.write_amplification?, c.after.write_amplification?)));
        let deeper = simulated.iter().find_map(|c| {
            let Change::Depth { requests } = c.change else { return None };
            Some((requests, c.before.speed.bytes_per_second, c.after.speed.bytes_per_second))
        });
        Self {
            written: findings.grouping.written,
            overwritten: findings.grouping.overwritten,
            pages_completing: worn.flash.reads[Cause::Rmw] / u64::from(worn.passes.max(1)),
            top_tenth: findings.lifetime.share_of_top(0.1),
            uniform: findings.verdict(Rule::UniformLifetime),
            density: findings.grouping.density,
            grouped: findings.verdict(Rule::GroupingByDeathTime),
            hot_cold,
            unit,
            page: findings.subject.flash_page,
            writes: scale.writes.requests,
            writes_below_unit: below(&scale.writes.sizes, unit),
            write_median: scale.writes.sizes.median().map(Bytes),
            write_rate: rate(timed.written()),
            sustained: sustained(amplification, described),
            dies: described.geometry().dies(),
            cleaning: (units[Cause::Gc] + units[Cause::Merge]) as f64 / units.total().max(1) as f64,
            slow_writes: slow.map(|(_, count)| count).sum(),
            longest_write: (writes.count() > 0).then(|| writes.max()),
            held_back: timed.held_back,
            mapped: unit * drive.engine().ftl().mapped(),
            mapped_by_trace: findings.grouping.mapped,
            state: String::new(),
            capacity: device.capacity(),
            spare: findings.subject.spare,
            still_valid: still_valid(worn, device),
            channels: findings.subject.channels,
            request_median: median([&scale.reads.sizes, &scale.writes.sizes].map(Sizes::iter)),
            in_flight: in_flight(scale),
            deeper,
        }
    }
}

/// The number of requests smaller than `unit`.
fn below(sizes: &Sizes, unit: Bytes) -> u64 {
    sizes.iter().filter(|&(size, _)| size < unit.0).map(|(_, count)| count).sum()
}

/// Bytes per second that all dies can program, divided by the write amplification.
fn sustained(amplification: Option<f64>, device: &DriveSpec) -> Option<f64> {
    let geometry = device.geometry();
    let program = device.flash.t_program.mean().as_secs_f64();
    let all = f64::from(geometry.dies()) * geometry.program_unit_bytes().0 as f64 / program;
    Some(all / amplification.filter(|&ratio| ratio > 0.0)?)
}

/// Units copied by cleaning / units of the blocks that it erased. Merges of a block-level
/// mapping choose no victims and are not counted.
fn still_valid(measured: &Measured, device: &DriveSpec) -> Option<f64> {
    let geometry = device.geometry();
    // Erases are counted in blocks of one plane of one die.
    let parts = u64::from(geometry.planes_ganged * geometry.dies_per_superblock);
    let erased = measured.flash.erases[Cause::Gc] * u64::from(geometry.units_per_block()) / parts;
    (erased > 0).then(|| measured.flash.units[Cause::Gc] as f64 / erased as f64)
}

/// The median over reads and writes together, given (value, count) pairs for each.
fn median<I: Iterator<Item = (u64, u64)>>(sides: [I; 2]) -> Option<Bytes> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for (size, count) in sides.into_iter().flatten() {
        *counts.entry(size).or_default() += count;
    }
    let half = counts.values().sum::<u64>().div_ceil(2);
    let mut seen = 0;
    counts.into_iter().find_map(|(size, count)| {
        seen += count;
        (seen >= half).then_some(Bytes(size))
    })
}

/// The median number of requests in flight, including the request itself.
fn in_flight(scale: &RequestScale) -> Option<u64> {
    if !scale.depth_known {
        return None;
    }
    let of = |counted: &ValueCounts| {
        let counts = counted.counts().to_vec();
        (0..).zip(counts).filter(|&(_, count)| count > 0)
    };
    let before = median([of(&scale.reads.depth), of(&scale.writes.depth)])?;
    Some(before.0 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_over_reads_and_writes() {
        let check = |sides: [&[(u64, u64)]; 2], expected: Option<u64>| {
            assert_eq!(median(sides.map(|side| side.iter().copied())), expected.map(Bytes));
        };
        check([&[], &[]], None);
        check([&[(4096, 1)], &[]], Some(4096));
        check([&[(512, 2), (4096, 1)], &[(4096, 2), (8192, 1)]], Some(4096));
        check([&[(1, 3)], &[(9, 3)]], Some(1));
    }
}
