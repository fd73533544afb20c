//! Scheduling and cleaning policies of the drive: limits, shares and orders, each against its
//! definition.

use crate::common::lab::*;
use prism_base::{Bytes, Nanos, Rng};
use prism_engine::{CleaningMode, Scheduler};
use prism_nand::{Cause, DieGroupId};
use prism_ssd::spec::WriteCache;
use prism_ssd::{Drive, DriveSpec, HostOp, Request};

/// A drive on which only firmware takes time: reads are of unmapped units.
fn firmware_only(cores: u32, in_service: u32) -> DriveSpec {
    let mut device = lab();
    device.drive.link_bandwidth = None;
    device.drive.firmware_read = Nanos(5_000);
    device.drive.firmware_cores = cores;
    device.drive.in_service = in_service;
    device
}

#[test]
fn firmware_and_service_limits_bound_the_rate() {
    for servers in [1, 2, 3] {
        for device in [firmware_only(servers, 0), firmware_only(0, servers)] {
            let count = 600 * u64::from(servers);
            let span = closed_loop(&mut empty(&device), 64, count, |n| read(n % 600));
            assert_eq!(span, times(600, Nanos(5_000)), "{servers} at once");
        }
    }
    // With both, the smaller limit applies.
    let span = closed_loop(&mut empty(&firmware_only(2, 7)), 64, 600, |n| read(n % 600));
    assert_eq!(span, times(300, Nanos(5_000)));
}

#[test]
fn saturated_queues_share_by_weight() {
    let weights = [1, 3, 4];
    let mut device = firmware_only(0, 1);
    device.drive.queues = 3;
    device.drive.queue_depth = 16;
    device.drive.queue_weights = weights.to_vec();
    let mut drive = empty(&device);
    let mut served = [0_u32; 3];
    let mut done = Vec::new();
    for _ in 0..8 * 100 {
        for queue in 0..3 {
            while drive.can_accept(queue) {
                let request = prism_ssd::Request { queue, tag: u64::from(queue), ..read(1) };
                drive.submit(request, drive.now()).unwrap();
            }
        }
        drive.step(&mut done);
        while done.is_empty() {
            drive.step(&mut done);
        }
        done.drain(..).for_each(|one| served[one.tag as usize] += 1);
    }
    // The very first command began before any other was waiting.
    for (served, weight) in served.into_iter().zip(weights) {
        assert!(served.abs_diff(weight * 100) <= 1, "{served} for weight {weight}");
    }
}

/// Reads served while a write waits for a die that always has reads waiting.
fn reads_that_pass_a_write(scheduler: Scheduler) -> u64 {
    let mut device = lab();
    device.drive.scheduler = scheduler;
    let mut drive = filled(&device);
    let mut rng = Rng::stream(2, "policies.reads");
    let mut done = Vec::new();
    let mut reads = 0;
    let mut written = false;
    for turn in 0_u32.. {
        while drive.in_flight() < 8 {
            let request =
                if turn >= 20 && !written { write(1) } else { urgent(read(rng.below(600))) };
            written |= request.op == HostOp::Write;
            drive.submit(request, drive.now()).unwrap();
        }
        drive.step(&mut done);
        for one in done.drain(..) {
            if one.op == HostOp::Write {
                return reads;
            }
            reads += u64::from(written);
        }
    }
    unreachable!("the write ends")
}

#[test]
fn a_program_is_passed_a_bounded_number_of_times() {
    // FCFS: only the reads that were submitted before it.
    assert!(reads_that_pass_a_write(Scheduler::Fcfs) <= 8);
    for scheduler in [Scheduler::ReadFirst, Scheduler::Priority] {
        let passed = reads_that_pass_a_write(scheduler);
        // 64, in addition to those that the die had begun or finished before.
        assert!((64..=64 + 8).contains(&passed), "{}: {passed}", scheduler.name());
    }
}

#[test]
fn an_urgent_read_is_served_before_waiting_requests() {
    let latency = |scheduler| {
        let mut device = lab();
        device.drive.scheduler = scheduler;
        let mut drive = filled(&device);
        (0..20).for_each(|unit| drive.submit(read(unit), drive.now()).unwrap());
        // The first read has been reading its cells for 10 us then.
        rest(&mut drive, FIRMWARE + Nanos(10_000));
        drive.submit(urgent(read(30)), drive.now()).unwrap();
        let done = drain(&mut drive);
        let ours = done.iter().max_by_key(|one| one.submitted).unwrap();
        ours.completed.since(ours.submitted)
    };
    let each = READ + channel(1);
    let begun = Nanos(each.0 - 10_000);
    assert_eq!(latency(Scheduler::Priority), begun + each + link(1));
    assert_eq!(latency(Scheduler::Fcfs), begun + times(20, each) + link(1));
}

/// The wait that shortest-wait compares: the rest of the operation in progress, and the cell time
/// and transfer of each command queued after it.
#[test]
fn the_wait_for_a_die_counts_cells_and_transfers() {
    let mut device = lab();
    device.flash.page = Bytes(4 * UNIT);
    device.drive.scheduler = Scheduler::ShortestWait;
    let wait = |requests: &[Request]| {
        let mut drive = filled(&device);
        for &request in requests {
            drive.submit(request, drive.now()).unwrap();
        }
        // The first command has been reading its cells for 10 us then.
        rest(&mut drive, FIRMWARE + Nanos(10_000));
        let at = drive.engine().ftl().lookup(100).unwrap();
        drive.engine().wait_for(at, drive.now())
    };
    let begun = Nanos(READ.0 - 10_000);
    assert_eq!(wait(&[read(0)]), begun);
    let units = |count: u64| request(HostOp::Read, 4, count);
    for count in 1..=4 {
        let expected = begun + times(3, READ + channel(count));
        assert_eq!(wait(&[read(0), units(count), units(count), units(count)]), expected, "{count}");
    }
    let page = request(HostOp::Write, 8, 4);
    let expected = begun + READ + channel(1) + PROGRAM + channel(4);
    assert_eq!(wait(&[read(0), read(1), page]), expected);
}

#[test]
fn parts_that_come_in_time_are_merged_without_a_read() {
    for (wait, reads) in [(Nanos(0), 20), (Nanos(1_000_000), 0)] {
        let mut device = lab();
        device.flash.planes = 8;
        device.flash.multi_plane = true;
        device.ftl.mapping_unit = Bytes(8 * UNIT);
        device.drive.write_cache = WriteCache::WriteBack;
        device.drive.merge_wait = wait;
        let mut drive = filled(&device);
        for unit in 0..20 {
            // The parts of a mapping unit one after another, well within the wait.
            for part in 0..8 {
                serve(&mut drive, write(8 * unit + part));
            }
            drain(&mut drive);
        }
        let counts = drive.flash_counts();
        let rmw = counts.reads[Cause::Rmw] / 8;
        assert_eq!((rmw, counts.units[Cause::Host]), (reads, 20), "merge_wait {wait:?}");
    }
}

/// A drive with eight erased blocks in addition to the low watermark, just before cleaning begins.
fn worn(device: &mut DriveSpec) -> Drive {
    device.drive.capacity = Bytes(800 * UNIT);
    let mut drive = filled(device);
    let mut rng = Rng::stream(3, "policies.wear");
    // Until the last erased block above the low watermark is about to be opened.
    while drive.engine().ftl().free_blocks(DieGroupId(0)) > device.ftl.free_blocks_low {
        serve(&mut drive, write(rng.below(800)));
    }
    drain(&mut drive);
    drive
}

fn copies(drive: &Drive) -> u64 {
    drive.flash_counts().programs[Cause::Gc]
}

#[test]
fn idle_cleaning_begins_in_idle_time_and_ends_with_it() {
    let mut device = lab();
    device.ftl.free_blocks_idle = 8;
    device.ftl.idle_after = Nanos(5_000_000);
    let mut drive = worn(&mut device);
    let free = |drive: &Drive| drive.engine().ftl().free_blocks(DieGroupId(0));
    assert_eq!((copies(&drive) > 0, free(&drive)), (true, 8), "drained means idle for long");
    // If requests are more frequent, nothing is cleaned above the low watermark.
    let before = copies(&drive);
    for unit in 0..30 {
        serve(&mut drive, write(unit * 7));
        rest(&mut drive, Nanos(4_900_000));
    }
    assert_eq!(copies(&drive), before);
    rest(&mut drive, Nanos(100_000));
    rest(&mut drive, Nanos(3_000_000));
    assert!(copies(&drive) > before, "idle for 5 ms and more");
    // Also after a command whose background work lasts longer than `idle_after`.
    device.drive.write_cache = WriteCache::WriteBack;
    device.drive.power_loss_protection = true;
    let mut drive = worn(&mut device);
    serve(&mut drive, request(HostOp::Write, 0, 60));
    rest(&mut drive, Nanos(10_000_000_000));
    assert_eq!(free(&drive), 8, "after the buffer was written out");
    // Without the option nothing is cleaned in idle time.
    device.drive.write_cache = WriteCache::WriteThrough;
    device.ftl.free_blocks_idle = 0;
    let mut drive = worn(&mut device);
    rest(&mut drive, Nanos(10_000_000_000));
    assert_eq!((copies(&drive), free(&drive)), (0, device.ftl.free_blocks_low));
}

/// The drive with room between the watermarks.
fn cleaned(mode: CleaningMode) -> DriveSpec {
    let mut device = lab();
    device.ftl.cleaning = mode;
    device.ftl.free_blocks_low = 6;
    device.ftl.free_blocks_high = 6;
    device.ftl.free_blocks_critical = 3;
    device
}

/// Copies while the host keeps the die busy with (urgent) reads, from the low watermark on, and
/// those made in idle time afterwards.
fn copies_under_reads(mode: CleaningMode) -> (u64, u64) {
    let mut device = cleaned(mode);
    let mut drive = worn(&mut device);
    let mut rng = Rng::stream(4, "policies.reads");
    // Two blocks of writes, so that one or two erased blocks below the low watermark are left; at
    // any time seven of eight requests are reads.
    closed_loop(&mut drive, 8, 256, |turn| {
        let unit = rng.below(800);
        urgent(if turn % 8 == 7 { write(unit) } else { read(unit) })
    });
    let busy = copies(&drive);
    drain(&mut drive);
    let free = drive.engine().ftl().free_blocks(DieGroupId(0));
    assert_eq!(free, device.ftl.free_blocks_high, "cleaning catches up");
    (busy, copies(&drive) - busy)
}

#[test]
fn cleaning_that_yields_waits_for_the_host() {
    let (busy, _) = copies_under_reads(CleaningMode::Foreground);
    assert!(busy > 0);
    for mode in [CleaningMode::Partial, CleaningMode::PriorityAware] {
        let (busy, after) = copies_under_reads(mode);
        assert_eq!((busy, after > 0), (0, true), "{}", mode.name());
    }
}

#[test]
fn cleaning_does_not_yield_below_the_critical_watermark() {
    for mode in [CleaningMode::Partial, CleaningMode::PriorityAware] {
        let mut drive = worn(&mut cleaned(mode));
        let mut rng = Rng::stream(4, "policies.writes");
        // Endless urgent writes: cleaning must run at the critical watermark.
        closed_loop(&mut drive, 8, 2000, |_| urgent(write(rng.below(800))));
        assert!(copies(&drive) > 0, "{}", mode.name());
    }
}

/// Erases per block: minimum, mean and maximum after many writes, nine of ten to a tenth of the
/// units, the others to the first `touched` units.
fn erases(touched: u64, change: impl Fn(&mut DriveSpec)) -> (u32, f64, u32) {
    let mut device = lab();
    device.drive.write_cache = WriteCache::WriteBack;
    device.drive.power_loss_protection = true;
    device.drive.capacity = Bytes(800 * UNIT);
    change(&mut device);
    let mut drive = filled(&device);
    let mut rng = Rng::stream(6, "policies.hot");
    closed_loop(&mut drive, 8, 60_000, |_| {
        let hot = rng.below(10) > 0;
        write(if hot { rng.below(80) } else { rng.below(touched) })
    });
    drain(&mut drive);
    let erases = drive.engine().nand().erase_counts();
    let mean = f64::from(erases.iter().sum::<u32>()) / erases.len() as f64;
    (*erases.iter().min().unwrap(), mean, *erases.iter().max().unwrap())
}

#[test]
fn static_levelling_erases_cold_blocks() {
    let (least, _, most) = erases(100, |_| ());
    assert!(least == 0 && most > 50, "cold blocks are never erased: {least} to {most}");
    for behind in [2, 4, 8] {
        let level = |device: &mut DriveSpec| device.ftl.wear_move_behind_mean = Some(behind);
        let (levelled, mean, worn) = erases(100, level);
        // After an erase one block below the limit is moved, while others fall below it.
        assert!(f64::from(levelled) > mean - f64::from(behind) - 2.0, "{levelled} of {mean}");
        assert!(worn - levelled < most - least, "{levelled} to {worn}");
    }
}

#[test]
fn other_levelling_narrows_the_spread() {
    let spread = |change: &dyn Fn(&mut DriveSpec)| {
        let (least, _, most) = erases(800, change);
        most - least
    };
    let none = spread(&|_| ());
    let least_worn = spread(&|device| device.ftl.wear_least_worn_first = true);
    let limited = spread(&|device| device.ftl.wear_victims_above_mean = Some(5));
    assert!(least_worn <= none && limited < none, "{none}, {least_worn}, {limited}");
}

#[test]
fn discards_spare_copies() {
    let moved = |discards| {
        let mut device = lab();
        device.drive.discards = discards;
        device.drive.capacity = Bytes(800 * UNIT);
        let mut drive = filled(&device);
        let mut rng = Rng::stream(8, "policies.files");
        // Files of 16 units are written and deleted; deleted files are discarded.
        for _ in 0..2000 {
            let file = rng.below(50) * 16;
            let op = if rng.chance(0.5) { HostOp::Discard } else { HostOp::Write };
            serve(&mut drive, request(op, file, 16));
            serve(&mut drive, write(rng.below(800)));
        }
        copies(&drive)
    };
    let (informed, ignorant) = (moved(true), moved(false));
    // Rajimwale et al. (ATC'09, section 3.5) give 0.25 to 0.5 of the pages for Postmark.
    assert!(informed * 4 < ignorant * 3, "{informed} against {ignorant}");
}

#[test]
fn next_completion_equals_single_steps() {
    let device = lab();
    let (mut stepped, mut run) = (empty(&device), empty(&device));
    let mut rng = Rng::stream(3, "next completion");
    let (mut by_steps, mut at_once) = (Vec::new(), Vec::new());
    for _ in 0..2000 {
        while stepped.in_flight() < 8 {
            let unit = rng.below(600);
            let request = if rng.chance(0.5) { read(unit) } else { write(unit) };
            for drive in [&mut stepped, &mut run] {
                drive.submit(request, drive.now()).unwrap();
            }
        }
        let before = by_steps.len();
        while by_steps.len() == before {
            stepped.step(&mut by_steps);
        }
        assert!(run.next_completion(&mut at_once));
        assert_eq!((stepped.now(), &by_steps[before..]), (run.now(), &at_once[before..]));
    }
    while run.next_completion(&mut at_once) {}
    assert!(run.in_flight() == 0 && run.next_event().is_none());
}
