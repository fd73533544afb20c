//! Compares reads of one event with reads of two.

use prism_base::{Bytes, Rng};
use prism_ftl::{Frontiers, FtlConfig, PageConfig, VictimPolicy};
use prism_nand::{Geometry, PageTimes, Timing};
use prism_testkit::{all_seeds, seeds};

use super::*;
use crate::config::{ChannelArbitration, Cleaning, CleaningMode, Scheduler, Suspend};

const UNITS: u32 = 300;

fn random_setup(rng: &mut Rng) -> (Geometry, EngineConfig) {
    let superblock = if rng.chance(0.3) { 2 } else { 1 };
    let geometry = Geometry {
        channels: 1 + rng.below(2) as u32,
        dies_per_channel: 4,
        blocks_per_plane: 12,
        pages_per_block: 8,
        dies_per_superblock: superblock,
        page: Bytes(32),
        unit: Bytes(16),
        ..Geometry::SMALLEST
    };
    // Short durations of few values, so that many events coincide.
    let mut time = |most: u64| Nanos(1 + rng.below(most));
    let timing = Timing {
        t_read: PageTimes::uniform(time(8)),
        t_program: PageTimes::uniform(time(30)),
        t_erase: time(60),
        t_command: Nanos(time(3).0 - 1),
        bus_bytes_per_second: Some(32_000_000_000 / time(12).0),
    };
    let suspend = Suspend { programs: true, erases: true, cost: time(3) };
    let config = EngineConfig {
        scheduler: [Scheduler::Fcfs, Scheduler::ReadFirst, Scheduler::Priority]
            [rng.below(3) as usize],
        // Commands that take no time pass transfers that are requested at the same time, which
        // is not so where transfers are events.
        channel_arbitration: match timing.t_command == Nanos::ZERO || rng.chance(0.5) {
            true => ChannelArbitration::CommandsFirst,
            false => ChannelArbitration::Fifo,
        },
        suspend: rng.chance(0.5).then_some(suspend),
        cleaning: Cleaning {
            mode: CleaningMode::ALL[rng.below(3) as usize],
            free_blocks_critical: 1,
            free_blocks_idle: 0,
        },
        ..EngineConfig::simple(timing)
    };
    (geometry, config)
}

/// Runs random requests; returns all completions with their times. The requests depend on the seed
/// only.
fn run(seed: u64, reserves_transfer_early: bool) -> (Vec<(SimTime, Done)>, FlashCounts) {
    let rng = &mut Rng::stream(seed, "events of a read");
    let (geometry, config) = random_setup(rng);
    let of_ftl = PageConfig::simple(UNITS, VictimPolicy::Greedy, Frontiers::Shared);
    let ftl = Ftl::new(geometry.clone(), FtlConfig::Page(of_ftl), 1).expect("an FTL");
    let mut engine = Engine::new(Nand::new(geometry), ftl, config);
    engine.device.reserves_transfer_early = reserves_transfer_early;
    engine.device.fcfs_only &= reserves_transfer_early;
    let (mut now, mut log, mut done) = (SimTime::ZERO, Vec::new(), Vec::new());
    let busy = 2 + rng.below(12);
    for tag in 0..3000 {
        now += Nanos(rng.below(busy));
        while engine.next_at() <= now {
            let at = engine.step(&mut done);
            log.extend(done.drain(..).map(|done| (at, done)));
        }
        let lpn = rng.below(u64::from(UNITS)) as u32;
        let (writes, urgent) = (rng.chance(0.5), rng.chance(0.5));
        if !writes {
            if let Some(at) = engine.ftl().lookup(lpn) {
                let run = engine.ftl().read_of(at);
                engine.read(&run, Cause::Host, tag, urgent, now);
            }
        } else if let Some(die_group) = engine.writable_die_group(0, lpn, now) {
            let unit = |lpn, tag| HostUnit {
                write: UnitWrite { lpn, source: None, version: u64::from(tag) + 1 },
                tag,
                lost: false,
            };
            engine.write(die_group, 0, &[unit(lpn, tag), unit((lpn + 1) % UNITS, tag)], now);
        }
    }
    while !engine.is_idle() {
        let at = engine.step(&mut done);
        log.extend(done.drain(..).map(|done| (at, done)));
    }
    engine.assert_conserved();
    (log, *engine.counts())
}

#[test]
fn random_reads_of_one_event_end_when_those_of_two_do() {
    let mut cleaned = 0;
    for seed in seeds(0..300) {
        let (one_event, counts) = run(seed, true);
        assert!(one_event.len() > 100, "{} completions", one_event.len());
        let (two_events, all) = run(seed, false);
        let other = one_event.iter().zip(&two_events).find(|(a, b)| a != b);
        assert!(other.is_none(), "seed {seed}, one event and two: {other:?}");
        assert!(one_event.len() == two_events.len() && counts == all, "seed {seed}: {counts:?}");
        cleaned += counts.programs[Cause::Gc];
    }
    assert!(!all_seeds() || cleaned > 10_000, "{cleaned} pages moved");
}
