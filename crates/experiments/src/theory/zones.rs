//! Zoned drives beside what is exact about them: nothing is written but what the host writes, a
//! zone is as fast as its dies, channels and link, and a log of the host's over zones copies as
//! much as a drive of as much spare flash.

use prism_base::{Bytes, Rng};
use prism_nand::timing::transfer_time;
use prism_replay::{BlockDevice, HostLog};
use prism_ssd::{Completion, Device, Drive, HostOp, InitialState, Request};

use crate::check::{Check, Pending};
use crate::drives::{prepared, preset, smaller};
use crate::load::{ClosedLoop, closed_loop, finish_background_work, second_half};
use crate::theory;

/// Difference at which bandwidths agree: requests do not end with rows, so that the span that is
/// measured may be a row longer or shorter.
const BANDWIDTH_TOLERANCE: f64 = 0.01;
/// Difference at which the log agrees with greedy cleaning: its zones are few, and one of those
/// that count as spare is at times half written.
const LOG_TOLERANCE: f64 = 0.05;
/// Zones of a log and units of each.
const LOG_ZONES: u64 = 256;
const LOG_UNITS: u64 = 256;
/// Effective over-provisioning at which it is compared.
const LOG_SPARES: [f64; 3] = [0.1, 0.2, 0.4];
/// Requests in flight.
const DEPTH: u32 = 32;
/// Rows of the buffer for each die that is written: one runs, one waits, and as many come in.
const ROWS_PER_DIE: u64 = 4;
/// Most of the drive that a bandwidth is measured over, in write buffers: of these the first
/// half only fills the buffer and the dies.
const BUFFERS: u64 = 24;

/// All of it. Fewer zones of the log than these would differ more from many.
#[must_use]
pub fn checks(seed: u64) -> Vec<Pending> {
    let mut all = vec![Pending::new("zones, programmed per byte written".into(), amplification)];
    for (what, zones, change) in bandwidths() {
        all.push(Pending::new(what.clone(), move || bandwidth(what, zones, change)));
    }
    for op in LOG_SPARES {
        let what = format!("log over zones, greedy, OP {op}");
        all.push(Pending::new(what.clone(), move || log(what, LOG_ZONES, op, seed)));
    }
    all
}

/// Every zone of a small zn540 is filled, reset and filled again.
fn amplification() -> Check {
    let device = smaller(&preset("zn540"), Bytes(1));
    let shape = device.zone_shape().expect("a zoned drive");
    let mut drive = Drive::new(device, 1).expect("a sound drive");
    let chunk = 1 << 20;
    for _ in 0..2 {
        for zone in 0..u64::from(shape.count) {
            let start = zone * shape.size;
            closed_loop(&mut drive, 1, 1, |_| Request::new(HostOp::ZoneReset, start, 0, 0));
            finish_background_work(&mut drive);
            closed_loop(&mut drive, DEPTH, shape.capacity.div_ceil(chunk), |number| {
                let len = chunk.min(shape.capacity - number * chunk);
                Request::new(HostOp::ZoneAppend, start, len, 0)
            });
            finish_background_work(&mut drive);
        }
    }
    drive.assert_consistent();
    let written = drive.host_counts().bytes_written / shape.block;
    Check::theory(
        "zones, programmed per byte written",
        [1.0, drive.flash_counts().units.total() as f64 / written as f64],
        0.0,
        "the host resets, the drive copies nothing: exact",
    )
}

/// A change to a preset.
type Change = fn(&mut Device);

/// What is measured: a preset, zones written at once, and what of it is lifted.
fn bandwidths() -> Vec<(String, u64, (&'static str, Change))> {
    let row = |name, zones: u64, without: &str, change: Change| {
        let many = if zones == 1 { "a zone".into() } else { format!("{zones} zones") };
        (format!("{name}, {many}{without}"), zones, (name, change))
    };
    vec![
        row("zn540", 1, "", |_| {}),
        row("zn540", 1, ", no link", |device| device.drive.link_bandwidth = None),
        row("zn540", 1, ", no link, no channels", |device| {
            device.drive.link_bandwidth = None;
            device.flash.channel_bandwidth = None;
        }),
        row("zns-small", 1, "", |_| {}),
        row("zns-small", 8, "", |_| {}),
        row("zns-small", 128, ", no link", |device| device.drive.link_bandwidth = None),
    ]
}

/// Dies that `zones` open zones stand on.
fn dies_of(device: &Device, zones: u64) -> u64 {
    let geometry = device.geometry();
    (zones * u64::from(geometry.dies_per_superblock)).min(u64::from(geometry.dies()))
}

/// Bytes a second that `zones` open zones of `device` take: link, channels or dies, whichever
/// are slowest. A die programs one row while the next one waits: it takes the transfer and
/// the program, one after the other.
fn closed_form(device: &Device, zones: u64) -> f64 {
    let geometry = device.geometry();
    let row = geometry.program_unit_bytes();
    let dies = dies_of(device, zones);
    let channels = dies.min(u64::from(geometry.channels));
    let channel = device.flash.channel_bandwidth;
    let transfer = channel.map_or(0, |rate| transfer_time(row, rate).0);
    let a_row = (device.flash.t_program.mean().0 + transfer) as f64;
    let by_dies = (dies * row.0) as f64 * 1e9 / a_row;
    let by_channels = channel.map_or(f64::INFINITY, |rate| (channels * rate) as f64);
    let by_link = device.drive.link_bandwidth.map_or(f64::INFINITY, |rate| rate as f64);
    by_dies.min(by_channels).min(by_link)
}

fn bandwidth(what: String, zones: u64, (name, change): (&'static str, Change)) -> Check {
    let mut device = preset(name);
    change(&mut device);
    // A buffer that keeps the dies busy and is full soon.
    device.ftl.max_open_zones = Some(zones as u32);
    device.ftl.max_active_zones = Some(zones as u32);
    let rows = ROWS_PER_DIE * dies_of(&device, zones) + zones + 1;
    device.drive.write_buffer = Bytes(rows * device.geometry().program_unit_bytes().0);
    let shape = device.zone_shape().expect("a zoned drive");
    let buffer = device.drive.write_buffer.0;
    let total = (BUFFERS * buffer).min(zones * shape.capacity);
    let row = device.geometry().program_unit_bytes().0;
    let each = total / zones / row * row;
    let mut drive = Drive::new(device, 1).expect("a sound drive");
    let written = second_half(&mut drive, DEPTH, each / row * zones, |number| {
        Request::new(HostOp::ZoneAppend, number % zones * shape.size, row, 0)
    });
    let both = [closed_form(drive.device(), zones) / 1e6, written.rate() / 1e6];
    let source = "least of link, channels, and dies with transfer and tPROG in turn";
    Check { unit: "MB/s", ..Check::theory(what, both, BANDWIDTH_TOLERANCE, source) }
}

/// A small drive with zones of [`LOG_UNITS`] units, over two dies.
fn log_device(zones: u64) -> Device {
    let mut device = preset("zn540");
    let unit = device.ftl.mapping_unit.0;
    device.flash.channels = 2;
    device.flash.dies_per_channel = 1;
    device.flash.superblock_dies = 2;
    device.flash.page = Bytes(8192);
    device.flash.pages_per_program = 1;
    device.flash.pages_per_block = (LOG_UNITS / 8) as u32;
    device.flash.blocks_per_plane = zones as u32 + 2;
    device.ftl.zone_size = Some(Bytes(LOG_UNITS * unit));
    device.drive.capacity = Bytes(zones * LOG_UNITS * unit);
    device.drive.write_buffer = Bytes(64 * unit);
    device
}

/// Uniform random writes of single units through a log, against greedy cleaning.
fn log(what: String, zones: u64, op: f64, seed: u64) -> Check {
    let device = log_device(zones);
    let unit = device.ftl.mapping_unit.0;
    // So many that the effective over-provisioning is what is asked for.
    let kept = HostLog::KEPT_ZONES;
    let units = (((zones - kept) * LOG_UNITS) as f64 / (1.0 + op)).round() as u64;
    let state = HostLog::drive_state(&device, units * unit, InitialState::Filled);
    let drive = prepared(device, state.expect("filled is one"), seed);
    let mut log = HostLog::new(drive, units * unit).expect("it fits");
    let mut rng = Rng::stream(seed, "zones.log");
    let next = |_: &HostLog, _| Request::new(HostOp::Write, rng.below(units) * unit, unit, 0);
    let mut host = ClosedLoop::new(DEPTH, next, |_: &[Completion]| {});
    // Three times over it settles, as theory's mean field does.
    host.issue(&mut log, 4 * units);
    let before = *log.counts();
    host.complete(&mut log, 4 * units);
    log.assert_consistent();
    let ours = log.counts().since(&before).write_amplification();
    let both = [
        theory::greedy(log.over_provisioning(), LOG_UNITS as u32),
        ours.expect("something was written"),
    ];
    Check::theory(what, both, LOG_TOLERANCE, "Van Houdt, SIGMETRICS'13, of the host's own cleaning")
}
