//! Every mechanism of dies and channels against its closed form: at queue depth 1 to the
//! nanosecond, under load against the bound of the bottleneck.

use crate::common::lab::*;
use prism_base::{Bytes, Nanos, Rng};
use prism_engine::{ChannelArbitration, ReadTransfer, Scheduler};
use prism_nand::{Cause, PageTimes};
use prism_ssd::spec::SuspendSpec;
use prism_ssd::{Drive, DriveSpec, HostOp};

/// Latency of reading units 0 to `units` of a drive that was filled in order.
fn read_latency(device: &DriveSpec, units: u64) -> Nanos {
    serve(&mut filled(device), request(HostOp::Read, 0, units))
}

/// Latency of writing units 0 to `units` of an empty drive, through to flash.
fn write_latency(device: &DriveSpec, units: u64) -> Nanos {
    serve(&mut empty(device), request(HostOp::Write, 0, units))
}

/// Program time of a wordline with three types of pages.
const TYPES: [Nanos; 3] = [Nanos(40_000), Nanos(60_000), Nanos(90_000)];

fn one_shot() -> DriveSpec {
    let mut device = lab();
    device.flash.pages_per_block = 48;
    device.flash.pages_per_program = 3;
    device.flash.t_read = PageTimes::by_type(&TYPES).unwrap();
    device
}

fn two_planes() -> DriveSpec {
    let mut device = lab();
    device.flash.planes = 2;
    device.flash.multi_plane = true;
    device
}

#[test]
fn commands_hold_the_channel_before_each_operation() {
    let mut device = lab();
    device.flash.t_command = Nanos(700);
    let expected = FIRMWARE + Nanos(700) + READ + channel(1) + link(1);
    assert_eq!(read_latency(&device, 1), expected);
    let expected = link(1) + FIRMWARE + Nanos(700) + channel(1) + PROGRAM;
    assert_eq!(write_latency(&device, 1), expected);
}

#[test]
fn one_command_reads_and_programs_all_planes() {
    let device = two_planes();
    assert_eq!(read_latency(&device, 2), FIRMWARE + READ + channel(2) + link(2));
    assert_eq!(write_latency(&device, 2), link(2) + FIRMWARE + channel(2) + PROGRAM);
    // Without multi-plane commands the planes work one after another.
    let mut device = device;
    device.flash.multi_plane = false;
    let each = channel(1) + PROGRAM;
    assert_eq!(write_latency(&device, 2), link(2) + FIRMWARE + times(2, each));
}

#[test]
fn a_wordline_is_programmed_at_once_and_read_by_page() {
    let device = one_shot();
    assert_eq!(write_latency(&device, 3), link(3) + FIRMWARE + channel(3) + PROGRAM);
    // Programming one page costs the whole wordline.
    assert_eq!(write_latency(&device, 1), link(1) + FIRMWARE + channel(3) + PROGRAM);
    for (unit, &t_read) in (0..).zip(TYPES.iter().chain(&TYPES)) {
        let expected = FIRMWARE + t_read + channel(1) + link(1);
        assert_eq!(serve(&mut filled(&device), read(unit)), expected, "unit {unit}");
    }
}

#[test]
fn programs_take_the_time_of_their_page() {
    let mut device = lab();
    let types = [Nanos(200_000), Nanos(900_000)];
    device.flash.t_program = PageTimes::by_type(&types).unwrap();
    let mut drive = empty(&device);
    for turn in 0..40 {
        let expected = link(1) + FIRMWARE + channel(1) + types[turn as usize % 2];
        assert_eq!(serve(&mut drive, write(turn)), expected);
    }
}

#[test]
fn a_cache_read_hides_transfers_behind_cells() {
    let mut device = one_shot();
    let cells = TYPES[0] + TYPES[1] + TYPES[2];
    let around = FIRMWARE + link(3);
    assert_eq!(read_latency(&device, 3), around + cells + times(3, channel(1)));
    device.flash.cache_read = true;
    assert_eq!(read_latency(&device, 3), around + cells + channel(1));
    // If transfers are longer than the cell time, they hide it.
    device.flash.channel_bandwidth = Some(20_000_000);
    let transfer = Nanos(204_800);
    assert_eq!(read_latency(&device, 3), around + TYPES[0] + times(3, transfer));
}

/// Random reads per second at a depth of 64 per die.
fn saturated_reads(device: &DriveSpec) -> f64 {
    let mut drive = filled(device);
    let units = u64::from(device.page_config().logical_units);
    let mut rng = Rng::stream(7, "timing.reads");
    let span = closed_loop(&mut drive, 256, 40_000, |_| read(rng.below(units)));
    rate(40_000, span)
}

fn per_second(time: Nanos) -> f64 {
    1e9 / time.0 as f64
}

#[test]
fn saturated_reads_meet_the_bound_of_the_bottleneck() {
    for cache_read in [false, true] {
        let mut device = lab();
        device.flash.dies_per_channel = 4;
        device.drive.capacity = Bytes(2400 * UNIT);
        device.flash.cache_read = cache_read;
        // Dies: tR and transfer add up, or overlap.
        let dies = |t_read: Nanos, x: Nanos| {
            4.0 * per_second(if cache_read { Nanos(t_read.0.max(x.0)) } else { t_read + x })
        };
        device.flash.t_read = PageTimes::uniform(times(4, READ));
        assert_bound(saturated_reads(&device), dies(times(4, READ), channel(1)), 0.02);
        // The channel: one transfer after another.
        device.flash.t_read = PageTimes::uniform(Nanos(2_000));
        assert_bound(saturated_reads(&device), per_second(channel(1)), 0.02);
        // The link.
        device.flash.t_read = PageTimes::uniform(READ);
        device.drive.link_bandwidth = Some(100_000_000);
        let one = Nanos(UNIT * 10);
        assert_bound(saturated_reads(&device), per_second(one), 0.01);
    }
}

/// Programs per second of sequential writes on an empty drive, after the start.
fn saturated_programs(device: &DriveSpec) -> f64 {
    let mut drive = empty(device);
    let first = closed_loop(&mut drive, 32, 200, write);
    let all = first + closed_loop(&mut drive, 32, 2000, |n| write(200 + n));
    rate(2000, Nanos(all.0 - first.0))
}

#[test]
fn saturated_programs_meet_the_bound_of_the_bottleneck() {
    for cache_program in [false, true] {
        let mut device = lab();
        device.flash.dies_per_channel = 4;
        device.drive.capacity = Bytes(2400 * UNIT);
        device.flash.cache_program = cache_program;
        let x = channel(1);
        device.flash.channel_bandwidth = Some(400_000_000);
        device.flash.t_program = PageTimes::uniform(times(8, x));
        let die = if cache_program { times(8, x) } else { times(9, x) };
        assert_bound(saturated_programs(&device), 4.0 * per_second(die), 0.02);
        device.flash.t_program = PageTimes::uniform(x);
        assert_bound(saturated_programs(&device), per_second(x), 0.02);
    }
}

/// A drive that cleans continuously, with one write after another; the host takes no time, so that
/// the die is always busy.
fn cleaned(copy_back: bool) -> Drive {
    let mut device = lab();
    device.flash.copy_back = copy_back;
    device.drive.firmware_write = Nanos(0);
    device.drive.link_bandwidth = None;
    let mut drive = filled(&device);
    let mut rng = Rng::stream(5, "timing.copies");
    for _ in 0..3000 {
        serve(&mut drive, write(rng.below(600)));
    }
    drain(&mut drive);
    drive
}

#[test]
fn copy_back_saves_both_transfers() {
    for copy_back in [false, true] {
        let drive = cleaned(copy_back);
        let counts = drive.flash_counts();
        let (copies, host) = (counts.programs[Cause::Gc], counts.programs[Cause::Host]);
        assert!(copies > 100 && counts.reads[Cause::Gc] == copies, "{counts:?}");
        let each = if copy_back { READ + PROGRAM } else { READ + PROGRAM + times(2, channel(1)) };
        let busy = times(copies, each)
            + times(host, channel(1) + PROGRAM)
            + times(counts.erases.total(), ERASE);
        assert_eq!(Nanos(drive.now().0), busy, "copy-back {copy_back}");
    }
}

const STOP: Nanos = Nanos(20_000);

fn suspending(what: SuspendSpec) -> DriveSpec {
    let mut device = lab();
    device.flash.suspend = what;
    device.flash.t_suspend = STOP;
    device.drive.scheduler = Scheduler::ReadFirst;
    device
}

/// Latency of a read submitted during a program, and of the write.
fn read_during_program(device: &DriveSpec) -> (Nanos, Nanos) {
    let mut drive = filled(device);
    drive.submit(write(5), drive.now()).unwrap();
    rest(&mut drive, Nanos(200_000));
    let began = drive.now();
    drive.submit(read(9), began).unwrap();
    let done = drain(&mut drive);
    let latency = |op| {
        let one = done.iter().find(|one| one.op == op).unwrap();
        one.completed.since(one.submitted)
    };
    (latency(HostOp::Read), latency(HostOp::Write))
}

#[test]
fn a_program_is_suspended_for_a_read_and_ends_later() {
    let write_alone = link(1) + FIRMWARE + channel(1) + PROGRAM;
    let away = READ + channel(1);
    let (read, write) = read_during_program(&suspending(SuspendSpec::Program));
    assert_eq!(read, FIRMWARE + STOP + away + link(1));
    assert_eq!(write, write_alone + STOP + away);
    // If only erases are suspended, the read waits for the program.
    let (read, write) = read_during_program(&suspending(SuspendSpec::Erase));
    let left = Nanos(write_alone.0 - 200_000 - FIRMWARE.0);
    assert_eq!(write, write_alone);
    assert_eq!(read, FIRMWARE + left + away + link(1));
}

/// Processes events until `erases` blocks have been erased.
fn until_erased(drive: &mut Drive, erases: u64) {
    while drive.flash_counts().erases.total() < erases {
        drive.step(&mut Vec::new());
    }
}

#[test]
fn an_erase_is_suspended_for_a_read_and_ends_later() {
    let device = suspending(SuspendSpec::Erase);
    // Overwriting in order leaves blocks without valid units, so that cleaning is erases.
    let worked = || {
        let mut drive = filled(&device);
        let mut unit = 0;
        while drive.engine().is_idle() || drive.flash_counts().erases.total() == 0 {
            serve(&mut drive, write(unit % 600));
            unit += 1;
            if drive.flash_counts().programs[Cause::Gc] == 0 && !drive.engine().is_idle() {
                break;
            }
        }
        drive
    };
    let mut alone = worked();
    let start = alone.now();
    until_erased(&mut alone, 1);
    let erase_left = alone.now().since(start);
    assert!(erase_left > Nanos(1_000_000), "the erase has just begun: {erase_left:?}");

    let mut drive = worked();
    let latency = serve(&mut drive, read(0));
    let away = READ + channel(1);
    assert_eq!(latency, FIRMWARE + STOP + away + link(1));
    until_erased(&mut drive, 1);
    assert_eq!(drive.now().since(start), erase_left + STOP + away);
}

#[test]
fn parity_is_a_program_unit_of_each_stripe() {
    for dies in [2, 3, 5] {
        let mut device = lab();
        device.flash.channels = dies;
        device.flash.superblock_dies = dies;
        device.flash.superblock_parity = true;
        let data = u64::from(dies) - 1;
        device.drive.capacity = Bytes(600 * data * UNIT);
        let spare = device.over_provisioning();
        // Of 64 blocks of 16 program units per die, one program unit in `dies` is parity, and 2 + 3
        // blocks are open or reserved.
        let usable = (64 - 5) * 16 * data;
        let effective = usable as f64 / (600 * data) as f64 - 1.0;
        assert!((spare.effective - effective).abs() < 1e-12, "{spare:?}, {effective}");
        let nominal = (64 * 16 * (data + 1)) as f64 / (600 * data) as f64 - 1.0;
        assert!((spare.nominal - nominal).abs() < 1e-12, "{spare:?}, {nominal}");
        let mut drive = empty(&device);
        let stripes = 100;
        closed_loop(&mut drive, 4, stripes * data, write);
        drain(&mut drive);
        let programs = &drive.flash_counts().programs;
        assert_eq!((programs[Cause::Host], programs[Cause::Parity]), (stripes * data, stripes));
    }
}

#[test]
fn whole_units_cost_programs_and_partial_ones_a_read_in_addition() {
    // A mapping unit over eight ganged planes, as of a logical page over a gang
    // (Rajimwale et al., ATC'09, figure 2): bandwidth goes as s / ceil(s / S).
    let mut device = lab();
    device.flash.planes = 8;
    device.flash.multi_plane = true;
    device.flash.blocks_per_plane = 64;
    device.ftl.mapping_unit = Bytes(8 * UNIT);
    let mut drive = filled(&device);
    let mut bandwidth = Vec::new();
    for pages in 1..=24_u64 {
        let latency = serve(&mut drive, request(HostOp::Write, 8 * 20 * (pages % 3), pages));
        drain(&mut drive);
        let units = pages.div_ceil(8);
        let whole = link(pages) + FIRMWARE + times(units, channel(8) + PROGRAM);
        let rest = if pages % 8 == 0 { Nanos(0) } else { READ + channel(8) };
        assert_eq!(latency, whole + rest, "{pages} pages");
        bandwidth.push(pages as f64 / latency.0 as f64);
    }
    for s in [8, 16] {
        let drop = bandwidth[s] / bandwidth[s - 1];
        let shape = (s as f64 + 1.0) / s as f64 * (s / 8) as f64 / (s / 8 + 1) as f64;
        assert!((drop / shape - 1.0).abs() < 0.2, "after {s} pages: {drop}, not {shape}");
    }
}

/// Serves reads and writes in any order.
fn serve_all(device: &DriveSpec) {
    device.check().unwrap();
    closed_loop(&mut filled(device), device.drive.queue_depth, 256, |unit| {
        let op = if unit % 3 == 0 { HostOp::Write } else { HostOp::Read };
        request(op, unit * 7 % u64::from(device.logical_units()), 1)
    });
}

#[test]
fn the_slowest_allowed_flash_works_and_a_slower_one_is_refused() {
    let mut device = lab();
    device.flash.dies_per_channel = 4;
    device.flash.blocks_per_plane = 16;
    device.flash.t_read = PageTimes::uniform(Nanos(10_000_000_000));
    device.flash.t_program = PageTimes::uniform(Nanos(10_000_000_000));
    device.flash.t_erase = Nanos(10_000_000_000);
    let program_unit = device.geometry().program_unit_bytes().0;
    let program_units = program_unit * u64::from(device.flash.dies_per_channel);
    device.flash.channel_bandwidth = Some(program_units.div_ceil(300));
    device.flash.t_command = Nanos(10_000_000_000);
    for arbitration in ChannelArbitration::ALL {
        device.flash.channel_arbitration = arbitration;
        serve_all(&device);
    }

    let refused = |change: fn(&mut DriveSpec), field: &str| {
        let mut slower = device.clone();
        change(&mut slower);
        let message = slower.check().unwrap_err().to_string();
        assert!(message.starts_with(field), "{message}");
    };
    refused(|d| d.flash.t_erase = Nanos(10_000_000_001), "flash.t_erase");
    refused(|d| d.flash.channel_bandwidth = Some(1), "flash.channel_bandwidth");
    refused(|d| d.flash.dies_per_channel = 32, "flash.t_command");
    refused(
        |d| {
            d.flash.channel_arbitration = ChannelArbitration::DataFirst;
            d.flash.cache_read = true;
        },
        "flash.channel_arbitration",
    );
    refused(
        |d| {
            (d.flash.page, d.ftl.mapping_unit) = (Bytes(4100), Bytes(4100));
            d.flash.read_transfer = ReadTransfer::Sectors;
        },
        "flash.read_transfer",
    );
    refused(|d| d.drive.merge_wait = Nanos(60_000_000_001), "drive.merge_wait");
}
