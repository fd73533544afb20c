//! Placement and the map cache, against theory and closed forms.

use std::collections::BTreeSet;

use crate::common::lab::*;
use crate::common::{swarm, tiny};
use prism_base::{Bytes, Nanos, Rng};
use prism_ftl::{Frontiers, VictimPolicy};
use prism_nand::Cause;
use prism_nand::timing::transfer_time;
use prism_ssd::spec::{MapLoad, Mapping};
use prism_ssd::{Drive, DriveSpec, HostOp, Request};

/// Runs `requests` with up to `depth` in flight, to the end.
fn run(drive: &mut Drive, depth: u32, requests: impl IntoIterator<Item = Request>) {
    let requests: Vec<_> = requests.into_iter().collect();
    closed_loop(drive, depth, requests.len() as u64, |number| requests[number as usize]);
    drive.assert_consistent();
}

/// Units copied by cleaning per unit that the host wrote, when a tenth of the units gets nine
/// tenths of the writes, with a handle of its own if `separate`.
fn copies(frontiers: Frontiers, handles: u32, separate: bool) -> f64 {
    let mut device = tiny(96, 8000, true);
    device.ftl.frontiers = frontiers;
    device.ftl.victim = VictimPolicy::DChoices { d: 10 };
    device.ftl.placement_handles = handles;
    device.check().unwrap();
    let mut drive = filled(&device);
    let mut rng = Rng::stream(1, "placement");
    let mut requests = |count| -> Vec<Request> {
        let hot_or_cold = (0..count).map(|_| {
            let hot = rng.chance(0.9);
            let unit = if hot { rng.below(800) } else { 800 + rng.below(7200) };
            Request { handle: u16::from(hot && separate), ..write(unit) }
        });
        hot_or_cold.collect()
    };
    run(&mut drive, 8, requests(60_000));
    let before = *drive.flash_counts();
    run(&mut drive, 8, requests(60_000));
    drive.flash_counts().since(&before).units[Cause::Gc] as f64 / 60_000.0
}

#[test]
fn handles_keep_hot_and_cold_apart() {
    let mixed = copies(Frontiers::Separate, 0, false);
    let unused = copies(Frontiers::Separate, 2, false);
    let separate = copies(Frontiers::Separate, 2, true);
    let isolated = copies(Frontiers::PerStream, 2, true);
    // An unused handle changes nothing; with a handle of its own, hot data leaves whole blocks of
    // garbage; isolated, its copies are not mixed with cold data.
    let all = format!("mixed {mixed}, unused {unused}, separate {separate}, isolated {isolated}");
    assert!(unused > 0.8 * mixed, "{all}");
    assert!(separate < mixed, "{all}");
    assert!(isolated < 0.75 * mixed, "{all}");
}

/// Two files written alternately, then one of them discarded: with segments each block holds only
/// one file, and cleaning copies nothing.
#[test]
fn segments_group_by_address() {
    let copied = |segment: Option<Bytes>| {
        let mut device = tiny(48, 4096, true);
        device.ftl.segment = segment;
        device.check().unwrap();
        let mut drive = empty(&device);
        for _ in 0..12 {
            // Runs of four units, so that the files share no program unit.
            let by_turns = (0..2048).flat_map(|i| [write(i), write(2048 + i)]);
            run(&mut drive, 8, by_turns);
            run(&mut drive, 1, [request(HostOp::Discard, 2048, 2048)]);
            let again = (0..2048).map(|i| write(2048 + i));
            run(&mut drive, 8, again);
        }
        drive.flash_counts().units[Cause::Gc]
    };
    let (mixed, apart) = (copied(None), copied(Some(Bytes(2048 * UNIT))));
    assert!(apart * 5 < mixed, "{apart} against {mixed}");
}

fn dftl(blocks: u32, units: u64, entries: u64) -> DriveSpec {
    let mut device = tiny(blocks, units, true);
    device.ftl.mapping = Mapping::Dftl;
    device.ftl.map_cache = Some(Bytes(entries * DriveSpec::MAP_ENTRY));
    device.check().unwrap();
    device
}

/// Commands wait for rewrites of translation pages, and these wait until half of the buffer is
/// empty. Half a program unit of the host must not block them for ever.
#[test]
fn half_a_program_unit_in_a_small_buffer_blocks_no_rewrites() {
    let mut device = dftl(700, 70 << 10, 1024);
    device.drive.write_buffer = device.write_buffer_min();
    device.check().unwrap();
    assert_eq!(device.drive.write_buffer, Bytes(4 * UNIT));
    let mut drive = filled(&device);
    run(&mut drive, 1, [write(0), write(1)]);
    assert_eq!(drive.buffered_units(), 2);
    // Changes 70 translation pages, none of which is cached.
    let rest = device.capacity().0 - 2 * UNIT;
    run(&mut drive, 1, [Request::new(HostOp::Discard, 2 * UNIT, rest, 0)]);
    run(&mut drive, 1, [read(0)]);
    assert_eq!(drive.host_counts().completed, 4);
}

/// A full drive of `blocks` blocks of 16 units with a map on flash, and a cache of few entries.
fn full_dftl(blocks: u32, victim: VictimPolicy, buffer_units: u64) -> DriveSpec {
    let mut device = lab();
    let unit = Bytes(512);
    (device.flash.page, device.ftl.mapping_unit) = (unit, unit);
    device.flash.blocks_per_plane = blocks;
    device.ftl.mapping = Mapping::Dftl;
    device.ftl.map_cache = Some(Bytes(64 * DriveSpec::MAP_ENTRY));
    device.ftl.victim = victim;
    device.ftl.free_blocks_low = 2;
    device.ftl.free_blocks_high = 2;
    device.ftl.free_blocks_critical = 2;
    device.drive.write_buffer = Bytes(buffer_units * unit.0);
    device.drive.capacity = Bytes(swarm::most_units(&device) * unit.0);
    device.check().unwrap();
    device
}

/// Rewrites of translation pages call for cleaning, which moves units, so that other translation
/// pages have to be rewritten: on a full drive at least one for each rewrite, for ever. Writes
/// make progress meanwhile, and so do rewrites.
fn writes_and_rewrites_go_on(blocks: u32, victim: VictimPolicy, buffer_units: u64, writes: u64) {
    let device = full_dftl(blocks, victim, buffer_units);
    let mut drive = filled(&device);
    let (unit, units) = (device.ftl.mapping_unit.0, u64::from(device.logical_units()));
    let mut rng = Rng::stream(1, "placement.full");
    let mut out = Vec::new();
    for number in 0..writes {
        let at = rng.below(units) * unit;
        drive.submit(Request::new(HostOp::Write, at, unit, 0), drive.now()).unwrap();
        let mut steps = 0;
        while drive.in_flight() > 0 {
            drive.step(&mut out);
            steps += 1;
            assert!(steps < 500_000, "{victim:?}, {buffer_units} units: write {number} never ends");
        }
    }
    drive.assert_consistent();
    assert_eq!(out.len() as u64, writes);
    let rewritten = drive.flash_counts().units[Cause::Map];
    assert!(rewritten > writes / 2, "{rewritten} translation pages are rewritten");
}

/// A translation page that waits may take the only place of the buffer whenever it is free.
#[test]
fn writes_and_rewrites_share_a_buffer_of_one_unit() {
    writes_and_rewrites_go_on(64, VictimPolicy::Fifo, 1, 1000);
}

/// The pages that wait to be rewritten are never few enough again for commands to go on.
#[test]
fn a_command_waits_for_a_limited_number_of_rewrites() {
    writes_and_rewrites_go_on(1200, VictimPolicy::Random, 16, 400);
}

#[test]
fn a_miss_costs_one_read_of_a_translation_page() {
    let device = dftl(128, 8192, 1024);
    let mut drive = filled(&device);
    let (f, d) = (&device.flash, &device.drive);
    let page = f.t_read.of(0) + transfer_time(Bytes(UNIT), f.channel_bandwidth.unwrap());
    let hit = d.firmware_read + page + transfer_time(Bytes(UNIT), d.link_bandwidth.unwrap());
    for (unit, expected, map_reads) in [(7, hit + page, 1), (7, hit, 0), (8, hit + page, 1)] {
        let done = one(&mut drive, HostOp::Read, unit);
        rest(&mut drive, Nanos(10_000_000));
        let taken: Nanos = done.completed.since(done.submitted);
        assert_eq!((taken, done.cost.map_reads), (expected, map_reads), "unit {unit}");
    }
    let counts = *drive.map_counts().unwrap();
    assert_eq!((counts.hits, counts.misses, counts.loads), (1, 2, 2));
    assert_eq!(drive.flash_counts().reads[Cause::Map], 2);
}

/// A discard of everything leaves more translation pages to rewrite than may wait. The host then
/// pauses, and its next request has to start the rewrites.
#[test]
fn a_discard_of_everything_blocks_no_request_for_ever() {
    let device = dftl(1024, 100_000, 1024);
    let mut drive = filled(&device);
    let all = device.capacity().0;
    for (op, offset, len) in [(HostOp::Discard, 0, all), (HostOp::Read, UNIT, UNIT)] {
        drive.submit(Request::new(op, offset, len, 0), drive.now()).unwrap();
        rest(&mut drive, Nanos(1_000_000_000));
        assert_eq!(drive.in_flight(), 0, "{op:?} ends");
    }
}

/// Under uniform random reads with LRU, the miss ratio is the share of entries that does not fit.
#[test]
fn the_miss_ratio_is_the_share_that_does_not_fit() {
    for (entries, share) in [(512, 0.0625), (2048, 0.25), (6144, 0.75), (9000, 1.0)] {
        let device = dftl(128, 8192, entries);
        let mut drive = filled(&device);
        let mut rng = Rng::stream(2, "placement.misses");
        let mut reads =
            |count| -> Vec<Request> { (0..count).map(|_| read(rng.below(8192))).collect() };
        run(&mut drive, 4, reads(60_000));
        let before = *drive.map_counts().unwrap();
        run(&mut drive, 4, reads(40_000));
        let ratio = drive.map_counts().unwrap().since(&before).miss_ratio();
        assert!((ratio - (1.0 - share)).abs() < 0.01, "{entries} entries: {ratio}");
    }
}

#[test]
fn with_whole_pages_neighbours_hit() {
    let mut device = dftl(128, 8192, 2048);
    device.ftl.map_load = MapLoad::Page;
    let mut drive = filled(&device);
    // Eight translation pages of 1024 entries; 64 units at once, in order.
    let reads = (0..128).map(|i| request(HostOp::Read, i * 64, 64));
    run(&mut drive, 1, reads);
    let counts = *drive.map_counts().unwrap();
    assert_eq!((counts.loads, counts.hits + counts.misses), (8, 8192));
    // The command that misses looks up all its units before the page has been read.
    assert_eq!(counts.misses, 8 * 64);
}

#[test]
fn a_discard_that_is_ignored_leaves_the_map_alone() {
    let mut device = dftl(128, 8192, 1024);
    device.drive.discards = false;
    let mut drive = filled(&device);
    run(&mut drive, 1, [read(0)]);
    run(&mut drive, 1, [request(HostOp::Discard, 0, 4096)]);
    run(&mut drive, 1, [read(0)]);
    let counts = *drive.map_counts().unwrap();
    assert_eq!((counts.hits, counts.misses, counts.writebacks), (1, 1, 0));
}

/// Random writes over more entries than the cache holds rewrite about one translation page each,
/// with cause `map`.
#[test]
fn dirty_entries_cost_programs_of_the_map() {
    let device = dftl(160, 8192, 512);
    let mut drive = filled(&device);
    let mut rng = Rng::stream(3, "placement.writes");
    run(&mut drive, 4, (0..20_000).map(|_| write(rng.below(8192))));
    let flash = drive.flash_counts();
    assert!(flash.units[Cause::Map] > 400, "{:?}", flash.units);
    assert!(flash.reads[Cause::Map] > 9_000, "{:?}", flash.reads);
    let large = dftl(160, 8192, 8192);
    let mut drive = filled(&large);
    let mut rng = Rng::stream(3, "placement.writes");
    run(&mut drive, 4, (0..20_000).map(|_| write(rng.below(8192))));
    assert!(drive.flash_counts().reads[Cause::Map] < 8300, "each entry is missed once");
    let mut rng = Rng::stream(3, "placement.writes");
    let units: BTreeSet<_> = (0..20_000).map(|_| rng.below(8192)).collect();
    // Two commands in flight may miss the same entry.
    let misses = drive.map_counts().unwrap().misses - units.len() as u64;
    assert!(misses < 20, "{misses} more than entries");
}
