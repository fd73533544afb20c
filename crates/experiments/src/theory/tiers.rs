//! Two kinds of flash in one drive, beside closed forms: the cliff of a write cache, what
//! folding costs, and the times of each region.

use prism_base::{Bytes, Nanos, SimTime};
use prism_nand::Cause;
use prism_nand::timing::transfer_time;
use prism_ssd::device::SlcSpec;
use prism_ssd::{Completion, Device, DeviceError, Drive, HostOp, Request, fit};

use crate::check::{Check, Pending};
use crate::drives::filled;
use crate::load::{ClosedLoop, closed_loop};
use crate::scale::Scale;

/// Requests in flight of the sequential writer, and the size of each: enough rows to keep
/// every die busy.
const DEPTH: u32 = 64;
const REQUEST: u64 = 128 << 10;
/// Sequential writes go on for so many times the size of the cache.
const CACHES: u64 = 3;
/// Time in which everything in the background ends.
const REST: Nanos = Nanos(1_000_000_000);
/// Largest relative difference of a bandwidth, over the parts of a run in which it does not
/// change. Dies end their last rows one after another.
const BANDWIDTH_TOLERANCE: f64 = 0.02;
/// Of the position of the cliff.
const CLIFF_TOLERANCE: f64 = 0.02;
/// Of the folded share: the last row may still be in the buffer.
const FOLDED_TOLERANCE: f64 = 0.01;
/// Of what is counted or timed exactly.
const EXACT: f64 = 1e-9;
/// Units at the end of the region that are looked at: more than are asked for.
const LAST: u64 = 64;
/// Capacity at full scale of the drives that are simulated.
const CAPACITY: u64 = 16 << 30;

/// What a sequential fill of a cache shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fill {
    /// Size of the cache in bytes.
    pub cache: u64,
    /// Bytes a second while it has room.
    pub before: f64,
    /// Bytes a second after that.
    pub after: f64,
    /// Bytes that were written when the rate changed.
    pub cliff: f64,
    /// Units programmed over units written, after a rest.
    pub write_amplification: f64,
    /// Units folded over units written.
    pub folded: f64,
}

/// The preset with a cache, on a link and with firmware that bound nothing.
///
/// # Errors
/// [`DeviceError`] never, unless the preset is broken.
pub fn cached(capacity: u64) -> Result<Device, DeviceError> {
    let mut device = fit(&Device::preset("consumer-tlc")?, Bytes(capacity))?.device;
    device.drive.link_bandwidth = None;
    device.drive.firmware_write = Nanos::ZERO;
    device.drive.queue_depth = DEPTH;
    Ok(device)
}

/// The preset with a region of addresses.
///
/// # Errors
/// [`DeviceError`] never, unless the preset is broken.
pub fn mixed(capacity: u64) -> Result<Device, DeviceError> {
    Ok(fit(&Device::preset("slc-mlc")?, Bytes(capacity))?.device)
}

fn slc_of(device: &Device) -> &SlcSpec {
    device.slc.as_ref().expect("a preset with [slc]")
}

/// Bytes a second into the cache: each die takes the pages of a row one after another, after
/// all of them have come over the channel.
#[must_use]
pub fn rate_in_cache(device: &Device) -> f64 {
    let levels = u64::from(device.flash.pages_per_program);
    rate(device, Nanos(slc_of(device).t_program.0 * levels))
}

/// Bytes a second past it.
#[must_use]
pub fn rate_past_cache(device: &Device) -> f64 {
    rate(device, device.flash.t_program.mean())
}

fn rate(device: &Device, cells: Nanos) -> f64 {
    let geometry = device.geometry();
    let row = geometry.program_unit_bytes();
    let bus = device.flash.channel_bandwidth.map_or(Nanos::ZERO, |r| transfer_time(row, r));
    let dies = f64::from(geometry.dies()) * row.0 as f64 / (cells + bus).as_secs_f64();
    // A channel that is always busy is the bound where its dies are many.
    let channels = device.flash.channel_bandwidth.map_or(f64::INFINITY, |r| r as f64);
    dies.min(channels * f64::from(geometry.channels))
}

/// Bytes of the cache of a drive.
#[must_use]
pub fn cache_bytes(device: &Device) -> u64 {
    device.geometry().slc_raw().0
}

/// Writes [`CACHES`] times the cache in order to an empty drive, then lets it rest.
///
/// # Errors
/// [`DeviceError`] if the device makes no sense.
pub fn fill(device: &Device, seed: u64) -> Result<Fill, DeviceError> {
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
    // Parts of the run well away from its ends and from the cliff.
    let part = |from: f64, to: f64| {
        let place = |share: f64| (share * cache as f64 / REQUEST as f64) as usize;
        let (from, to) = (place(from), place(to));
        ((to - from) as u64 * REQUEST) as f64 / times[to].since(times[from]).as_secs_f64()
    };
    let (before, after) = (part(0.2, 0.9), part(1.2, 2.8));
    // Two straight lines through the parts meet where the rate changes.
    let place = |share: f64| (share * cache as f64 / REQUEST as f64) as usize;
    let at = |index: usize| times[index].since(SimTime::ZERO).as_secs_f64();
    let bytes = |index: usize| (index as u64 * REQUEST) as f64;
    let (one, two) = (place(0.5), place(2.0));
    let cliff = (at(two) - at(one) + bytes(one) / before - bytes(two) / after)
        / (1.0 / before - 1.0 / after);
    drive.advance(drive.now() + Nanos(3_600_000_000_000), &mut Vec::new());
    drive.assert_consistent();
    let counts = drive.flash_counts();
    let written = counts.units[Cause::Host] as f64;
    Ok(Fill {
        cache,
        before,
        after,
        cliff,
        write_amplification: counts.units.total() as f64 / written,
        folded: counts.units[Cause::Fold] as f64 / written,
    })
}

/// Mean latency of requests of one unit from `offset` on, to a filled drive that rests before
/// each: as many as let every die program a page of each type once.
///
/// # Errors
/// [`DeviceError`] if the device makes no sense.
pub fn latency(device: &Device, op: HostOp, offset: u64, seed: u64) -> Nanos {
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

/// The closed form of [`latency`] on a drive that writes through, for cells with this tR or
/// tPROG.
fn expected(device: &Device, op: HostOp, cells: Nanos, transferred: Bytes) -> Nanos {
    let over = |bytes, rate: Option<u64>| rate.map_or(Nanos::ZERO, |r| transfer_time(bytes, r));
    let firmware = match op {
        HostOp::Write => device.drive.firmware_write,
        _ => device.drive.firmware_read,
    };
    let link = over(device.ftl.mapping_unit, device.drive.link_bandwidth);
    firmware + link + over(transferred, device.flash.channel_bandwidth) + cells
}

/// Cache and region against their closed forms.
#[must_use]
pub fn checks(seed: u64, scale: Scale) -> Vec<Pending> {
    let capacity = scale.of(CAPACITY);
    let all = move || fill_checks(capacity, seed).expect("the preset is sound");
    let regions = move || region_checks(capacity, seed).expect("the preset is sound");
    vec![
        Pending::several("write cache, sequential fill".into(), all),
        Pending::several("SLC region, latencies".into(), regions),
    ]
}

fn check(
    what: &str,
    expected: f64,
    ours: f64,
    tolerance: f64,
    source: &str,
    unit: &'static str,
) -> Check {
    Check { unit, ..Check::theory(what, [expected, ours], tolerance, source) }
}

fn fill_checks(capacity: u64, seed: u64) -> Result<Vec<Check>, DeviceError> {
    let device = cached(capacity)?;
    let fill = fill(&device, seed)?;
    let mb = |bytes: f64| bytes / 1e6;
    Ok(vec![
        check(
            "consumer-tlc: sequential write into the cache",
            mb(rate_in_cache(&device)),
            mb(fill.before),
            BANDWIDTH_TOLERANCE,
            "dies x row / (transfer + pages x tPROG as SLC)",
            "MB/s",
        ),
        check(
            "consumer-tlc: sequential write past the cache",
            mb(rate_past_cache(&device)),
            mb(fill.after),
            BANDWIDTH_TOLERANCE,
            "dies x row / (transfer + tPROG)",
            "MB/s",
        ),
        check(
            "consumer-tlc: where the rate falls",
            mb((fill.cache + device.drive.write_buffer.0) as f64),
            mb(fill.cliff),
            CLIFF_TOLERANCE,
            "size of the cache, and of the buffer before it",
            "MB",
        ),
        check(
            "consumer-tlc: write amplification of a fill, after a rest",
            1.0 + fill.folded,
            fill.write_amplification,
            EXACT,
            "1 + folded share",
            "",
        ),
        check(
            "consumer-tlc: folded share of three times the cache",
            1.0 / CACHES as f64,
            fill.folded,
            FOLDED_TOLERANCE,
            "all that the cache took",
            "",
        ),
    ])
}

fn region_checks(capacity: u64, seed: u64) -> Result<Vec<Check>, DeviceError> {
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
            checks.push(check(
                &format!("slc-mlc: {} of {kind}, queue depth 1", op.name()),
                theory.0 as f64 / 1e3,
                ours.0 as f64 / 1e3,
                EXACT,
                "firmware + link + channel + cells, to the nanosecond",
                "us",
            ));
        }
    }
    Ok(checks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_drive_agrees_with_the_closed_forms() {
        for pending in checks(1, Scale::Quarter) {
            for check in pending.run() {
                assert!(check.passed(), "{check:?}");
            }
        }
    }
}
