//! Zoned drives, checked against what is known exactly: a zoned drive programs only what the host
//! writes, zones are as fast as their dies, channels and link, and a host FTL over zones copies as
//! much as a drive with the same spare flash.

use prism_base::{Bytes, Rng};
use prism_nand::timing::transfer_time;
use prism_replay::{HostFtl, ReplayDevice};
use prism_ssd::{Completion, Drive, DriveSpec, HostOp, InitialState, Request};

use crate::check::{Check, Simulation};
use crate::drives::{prepared, preset, smaller};
use crate::load::{ClosedLoop, closed_loop, finish_background_work, second_half};
use crate::theory;

/// Largest relative difference at which bandwidths agree: requests do not end with program units,
/// so that the measured span may be one program unit longer or shorter.
const BANDWIDTH_TOLERANCE: f64 = 0.01;
/// Largest relative difference at which the host FTL agrees with greedy cleaning: it has few
/// zones, and one of those that count as spare is at times half written.
const LOG_TOLERANCE: f64 = 0.05;
/// Zones of the host FTL, and units of each zone.
const LOG_ZONES: u64 = 256;
const LOG_UNITS: u64 = 256;
/// Effective over-provisioning at which the host FTL is compared.
const LOG_SPARES: [f64; 3] = [0.1, 0.2, 0.4];
/// Requests in flight.
const DEPTH: u32 = 32;
/// Program units of the write buffer for each die that is written: one is programmed, one waits,
/// and two more arrive.
const ROWS_PER_DIE: u64 = 4;
/// The most that is written to measure a bandwidth, as a multiple of the write buffer. The first
/// half of it only fills the buffer and the dies.
const BUFFERS: u64 = 24;

/// Checks of zoned drives. The size does not depend on the scale: with fewer zones a host FTL would
/// differ more from theory, which supposes many.
#[must_use]
pub fn checks(seed: u64) -> Vec<Simulation> {
    let mut all = vec![Simulation::new("zones, programmed per byte written".into(), amplification)];
    for (what, zones, change) in bandwidths() {
        all.push(Simulation::new(what.clone(), move || bandwidth(what, zones, change)));
    }
    for op in LOG_SPARES {
        let what = format!("host FTL over zones, greedy, OP {op}");
        all.push(Simulation::new(what.clone(), move || log(what, LOG_ZONES, op, seed)));
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
        "the host resets zones, the drive copies nothing: exact",
    )
}

/// A change to a preset.
type Change = fn(&mut DriveSpec);

/// The bandwidths that are measured: a preset, the number of zones written at once, and the
/// limits that are removed.
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

/// Dies that hold `zones` open zones.
fn dies_of(device: &DriveSpec, zones: u64) -> u64 {
    let geometry = device.geometry();
    (zones * u64::from(geometry.dies_per_superblock)).min(u64::from(geometry.dies()))
}

/// Bytes a second that can be written to `zones` open zones of `device`: the rate of the link, of
/// the channels or of the dies, whichever is lowest. Transfer and program of a die follow each
/// other, so a program unit takes the sum of their times.
fn closed_form(device: &DriveSpec, zones: u64) -> f64 {
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
    // A write buffer that keeps the dies busy and is full soon.
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
    let source = "least of link, channels, and dies with transfer, then tPROG";
    Check { unit: "MB/s", ..Check::theory(what, both, BANDWIDTH_TOLERANCE, source) }
}

/// A small drive with zones of [`LOG_UNITS`] units, over two dies.
fn log_device(zones: u64) -> DriveSpec {
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

/// Uniform random writes of single units through a host FTL, against greedy cleaning.
fn log(what: String, zones: u64, op: f64, seed: u64) -> Check {
    let device = log_device(zones);
    let unit = device.ftl.mapping_unit.0;
    // So many units that the effective over-provisioning is `op`.
    let kept = HostFtl::RESERVED_ZONES;
    let units = (((zones - kept) * LOG_UNITS) as f64 / (1.0 + op)).round() as u64;
    let state = HostFtl::drive_state(&device, units * unit, InitialState::Filled);
    let drive = prepared(device, state.expect("filled is one"), seed);
    let mut log = HostFtl::new(drive, units * unit).expect("it fits");
    let mut rng = Rng::stream(seed, "zones.log");
    let next = |_: &HostFtl, _| Request::new(HostOp::Write, rng.below(units) * unit, unit, 0);
    let mut host = ClosedLoop::new(DEPTH, next, |_: &[Completion]| {});
    // After 4 writes per unit it has settled, as the mean field theory supposes.
    host.issue(&mut log, 4 * units);
    let before = log.counts();
    host.complete(&mut log, 4 * units);
    log.assert_consistent();
    let ours = log.counts().since(&before).write_amplification();
    let both = [
        theory::greedy(log.over_provisioning(), LOG_UNITS as u32),
        ours.expect("something was written"),
    ];
    Check::theory(what, both, LOG_TOLERANCE, "Van Houdt, SIGMETRICS'13, of the host's own cleaning")
}
