//! Drives with SLC blocks, checked against closed forms: where the rate of a write cache falls,
//! what folding costs, and the latencies of an SLC region.

use prism_base::{Bytes, Nanos, SimTime};
use prism_nand::Cause;
use prism_nand::timing::transfer_time;
use prism_ssd::spec::SlcSpec;
use prism_ssd::{Completion, Drive, DriveSpec, DriveSpecError, HostOp, Request, fit};

use crate::check::{Check, Simulation};
use crate::drives::filled;
use crate::load::{ClosedLoop, closed_loop};
use crate::scale::Scale;

/// Requests that the sequential writer keeps in flight, and the size of each: enough program units
/// to keep every die busy.
const DEPTH: u32 = 64;
const REQUEST: u64 = 128 << 10;
/// What is written sequentially, as a multiple of the size of the cache.
const CACHES: u64 = 3;
/// Idle time in which all background work ends.
const REST: Nanos = Nanos(1_000_000_000);
/// Largest relative difference of a bandwidth, measured over parts of a run in which it is
/// constant. Dies finish their last program units one after another.
const BANDWIDTH_TOLERANCE: f64 = 0.02;
/// Largest relative difference of the position at which the rate falls.
const CLIFF_TOLERANCE: f64 = 0.02;
/// Largest relative difference of the folded share: the last program unit may still be buffered.
const FOLDED_TOLERANCE: f64 = 0.01;
/// Largest relative difference of numbers that are counted or timed exactly.
const EXACT: f64 = 1e-9;
/// Units before the end of the region from which its last addresses are counted: more than there
/// are requests.
const LAST: u64 = 64;
/// Capacity of the simulated drives at full scale.
const CAPACITY: u64 = 16 << 30;

/// The result of writing sequentially past the end of a write cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CacheFill {
    /// Size of the cache in bytes.
    pub cache: u64,
    /// Bytes a second while the cache has erased blocks.
    pub before: f64,
    /// Bytes a second after that.
    pub after: f64,
    /// Bytes that were written when the rate changed.
    pub cliff: f64,
    /// Units programmed over units written, after an idle time.
    pub write_amplification: f64,
    /// Units folded over units written.
    pub folded: f64,
}

/// The preset with a write cache, with a link and firmware that do not limit the rate.
///
/// # Errors
/// [`DriveSpecError`] never, unless the preset is broken.
pub fn cached(capacity: u64) -> Result<DriveSpec, DriveSpecError> {
    let mut device = fit(&DriveSpec::preset("consumer-tlc")?, Bytes(capacity))?.device;
    device.drive.link_bandwidth = None;
    device.drive.firmware_write = Nanos::ZERO;
    device.drive.queue_depth = DEPTH;
    Ok(device)
}

/// The preset with an SLC region of addresses.
///
/// # Errors
/// [`DriveSpecError`] never, unless the preset is broken.
pub fn mixed(capacity: u64) -> Result<DriveSpec, DriveSpecError> {
    Ok(fit(&DriveSpec::preset("slc-mlc")?, Bytes(capacity))?.device)
}

fn slc_of(device: &DriveSpec) -> &SlcSpec {
    device.slc.as_ref().expect("a preset with [slc]")
}

/// Bytes a second into the cache: each die programs the pages of a program unit one after another,
/// after all of them have crossed the channel.
#[must_use]
pub fn rate_in_cache(device: &DriveSpec) -> f64 {
    let levels = u64::from(device.flash.pages_per_program);
    rate(device, Nanos(slc_of(device).t_program.0 * levels))
}

/// Bytes a second past the end of the cache.
#[must_use]
pub fn rate_past_cache(device: &DriveSpec) -> f64 {
    rate(device, device.flash.t_program.mean())
}

fn rate(device: &DriveSpec, cells: Nanos) -> f64 {
    let geometry = device.geometry();
    let row = geometry.program_unit_bytes();
    let bus = device.flash.channel_bandwidth.map_or(Nanos::ZERO, |r| transfer_time(row, r));
    let dies = f64::from(geometry.dies()) * row.0 as f64 / (cells + bus).as_secs_f64();
    // With many dies on a channel, the channel is the bottleneck.
    let channels = device.flash.channel_bandwidth.map_or(f64::INFINITY, |r| r as f64);
    dies.min(channels * f64::from(geometry.channels))
}

/// Size of the cache of a drive in bytes.
#[must_use]
pub fn cache_bytes(device: &DriveSpec) -> u64 {
    device.geometry().slc_raw().0
}

/// Writes three times the size of the cache sequentially to an empty drive, then leaves the drive
/// idle for an hour.
///
/// # Errors
/// [`DriveSpecError`] if the device makes no sense.
pub fn fill(device: &DriveSpec, seed: u64) -> Result<CacheFill, DriveSpecError> {
    let mut drive = Drive::new(device.clone(), seed)?;
    let cache = cache_bytes(device);
    let count = CACHES * cache / REQUEST;
    let mut times: Vec<SimTime> = Vec::new();
    let mut number = 0;
    let next = |_: &Drive, _| {
        number += 1;
        Request::new(HostOp::Write, (number - 1) * REQUEST, REQUEST, 0)
    };
    let completed =
        |done: &[Completion]| times.extend(done.iter().map(|completion| completion.completed));
    ClosedLoop::new(DEPTH, next, completed).complete(&mut drive, count);
    let place = |share: f64| (share * cache as f64 / REQUEST as f64) as usize;
    // Parts of the run well away from its ends and from the end of the cache.
    let part = |from: f64, to: f64| {
        let (from, to) = (place(from), place(to));
        ((to - from) as u64 * REQUEST) as f64 / times[to].since(times[from]).as_secs_f64()
    };
    let (before, after) = (part(0.2, 0.9), part(1.2, 2.8));
    // Bytes over time are two straight lines, which meet where the rate changes.
    let at = |index: usize| times[index].since(SimTime::ZERO).as_secs_f64();
    let bytes = |index: usize| (index as u64 * REQUEST) as f64;
    let (one, two) = (place(0.5), place(2.0));
    let cliff = (at(two) - at(one) + bytes(one) / before - bytes(two) / after)
        / (1.0 / before - 1.0 / after);
    drive.advance(drive.now() + Nanos(3_600_000_000_000), &mut Vec::new());
    drive.assert_consistent();
    let counts = drive.flash_counts();
    let written = counts.units[Cause::Host] as f64;
    Ok(CacheFill {
        cache,
        before,
        after,
        cliff,
        write_amplification: counts.units.total() as f64 / written,
        folded: counts.units[Cause::Fold] as f64 / written,
    })
}

/// Mean latency of requests of one unit each, to consecutive units from `offset` on. The drive is
/// filled and idle before each request. There are so many requests that every die programs a page
/// of each type once.
pub fn latency(device: &DriveSpec, op: HostOp, offset: u64, seed: u64) -> Nanos {
    let mut drive = filled(device.clone(), seed);
    let unit = device.ftl.mapping_unit.0;
    let types = device.flash.t_program.all().len() as u64;
    let count = u64::from(device.geometry().dies()) * types;
    let mut sum = 0;
    for number in 0..count {
        let request = Request::new(op, offset + number * unit, unit, 0);
        sum += closed_loop(&mut drive, 1, 1, |_| request).max.0;
        drive.advance(drive.now() + REST, &mut Vec::new());
    }
    Nanos(sum / count)
}

/// The closed form of [`latency`] on a drive with a write-through cache; `cells` is tR or tPROG.
fn expected(device: &DriveSpec, op: HostOp, cells: Nanos, transferred: Bytes) -> Nanos {
    let over = |bytes, rate: Option<u64>| rate.map_or(Nanos::ZERO, |r| transfer_time(bytes, r));
    let firmware = match op {
        HostOp::Write => device.drive.firmware_write,
        _ => device.drive.firmware_read,
    };
    let link = over(device.ftl.mapping_unit, device.drive.link_bandwidth);
    firmware + link + over(transferred, device.flash.channel_bandwidth) + cells
}

/// Checks of the write cache and of the SLC region.
#[must_use]
pub fn checks(seed: u64, scale: Scale) -> Vec<Simulation> {
    let capacity = scale.of(CAPACITY);
    let all = move || fill_checks(capacity, seed).expect("the preset is sound");
    let regions = move || region_checks(capacity, seed).expect("the preset is sound");
    vec![
        Simulation::several("write cache, sequential fill".into(), all),
        Simulation::several("SLC region, latencies".into(), regions),
    ]
}

fn fill_checks(capacity: u64, seed: u64) -> Result<Vec<Check>, DriveSpecError> {
    let device = cached(capacity)?;
    let fill = fill(&device, seed)?;
    let check = |what, both, tolerance, source, unit| {
        let check = Check::theory(format!("consumer-tlc: {what}"), both, tolerance, source);
        Check { unit, ..check }
    };
    let mb = |both: [f64; 2]| both.map(|bytes| bytes / 1e6);
    let (cache, past) = (rate_in_cache(&device), rate_past_cache(&device));
    let cliff = (fill.cache + device.drive.write_buffer.0) as f64;
    Ok(vec![
        check(
            "sequential write into the cache",
            mb([cache, fill.before]),
            BANDWIDTH_TOLERANCE,
            "dies x row / (transfer + pages x tPROG as SLC)",
            "MB/s",
        ),
        check(
            "sequential write past the cache",
            mb([past, fill.after]),
            BANDWIDTH_TOLERANCE,
            "dies x row / (transfer + tPROG)",
            "MB/s",
        ),
        check(
            "where the rate falls",
            mb([cliff, fill.cliff]),
            CLIFF_TOLERANCE,
            "size of the cache and of the write buffer",
            "MB",
        ),
        check(
            "write amplification of a fill, after idle time",
            [1.0 + fill.folded, fill.write_amplification],
            EXACT,
            "1 + folded share",
            "",
        ),
        check(
            "folded share of three times the cache",
            [1.0 / CACHES as f64, fill.folded],
            FOLDED_TOLERANCE,
            "all that was written to the cache",
            "",
        ),
    ])
}

fn region_checks(capacity: u64, seed: u64) -> Result<Vec<Check>, DriveSpecError> {
    let device = mixed(capacity)?;
    let slc = slc_of(&device);
    let below = slc.below.map_or(0, |below| below.0);
    let unit = device.ftl.mapping_unit;
    let row = device.geometry().program_unit_bytes();
    let mut checks = Vec::new();
    let flash = &device.flash;
    let kinds = [
        ("first SLC addresses", 0, slc.t_read, slc.t_program),
        ("last SLC addresses", below - LAST * unit.0, slc.t_read, slc.t_program),
        ("first MLC addresses", below, flash.t_read.mean(), flash.t_program.mean()),
    ];
    for (kind, offset, t_read, t_program) in kinds {
        for (op, cells, bytes) in [(HostOp::Read, t_read, unit), (HostOp::Write, t_program, row)] {
            let ours = latency(&device, op, offset, seed);
            let theory = expected(&device, op, cells, bytes);
            let what = format!("slc-mlc: {} of {kind}, queue depth 1", op.name());
            let both = [theory, ours].map(|time| time.0 as f64 / 1e3);
            let source = "firmware + link + channel + cells, to the nanosecond";
            checks.push(Check { unit: "us", ..Check::theory(what, both, EXACT, source) });
        }
    }
    Ok(checks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_drive_agrees_with_the_closed_forms() {
        for simulation in checks(1, Scale::Quarter) {
            for check in simulation.run() {
                assert!(check.passed(), "{check:?}");
            }
        }
    }
}
