//! How cleaning is spread over host program units, for each pace.

use prism_base::{Bytes, Rng};
use prism_engine::{Immediate, Pace};
use prism_ftl::{Frontiers, Ftl, FtlConfig, PageConfig, UnitWrite, VictimPolicy};
use prism_nand::{Cause, DieGroupId, Geometry, Nand};

const DIE_GROUPS: u32 = 2;
const HIGH: u32 = 5;

type Owner = Immediate<Nand, Ftl>;

/// A drive that was overwritten at random for a while, at `pace`.
fn used(pace: Pace, victim: VictimPolicy) -> (Owner, Rng, u64) {
    let geometry = Geometry {
        channels: DIE_GROUPS,
        dies_per_channel: 1,
        planes: 1,
        planes_ganged: 1,
        blocks_per_plane: 24,
        pages_per_block: 16,
        pages_per_program: 1,
        dies_per_superblock: 1,
        parity: false,
        page: Bytes(32),
        unit: Bytes(16),
        slc: None,
    };
    let config = PageConfig {
        free_blocks_low: 4,
        free_blocks_high: HIGH,
        ..PageConfig::simple(1000, victim, Frontiers::Separate)
    };
    let ftl = Ftl::new(geometry.clone(), FtlConfig::Page(config), 1).unwrap();
    let mut engine = Immediate::new(Nand::with_content(geometry), ftl);
    engine.set_pace(pace);
    let mut rng = Rng::stream(1, "pace");
    let mut version = 0;
    for _ in 0..3000 {
        write(&mut engine, &mut rng, &mut version, false);
    }
    (engine, rng, version)
}

/// Writes a program unit of two units; returns the program units copied for it.
fn write(engine: &mut Owner, rng: &mut Rng, version: &mut u64, urgent: bool) -> u64 {
    let before = engine.counts().programs[Cause::Gc];
    let first = rng.below(500) as u32;
    let program_unit = [first, first + 500].map(|lpn| {
        *version += 1;
        UnitWrite { lpn, source: None, version: *version }
    });
    let bytes = [7; 32];
    let done = if urgent {
        engine.write_urgent_program_unit(0, &program_unit, &bytes)
    } else {
        engine.write_program_unit(0, &program_unit, &bytes)
    };
    done.unwrap();
    engine.counts().programs[Cause::Gc] - before
}

fn free(engine: &Owner) -> [u32; DIE_GROUPS as usize] {
    [0, 1].map(|die_group| engine.ftl().free_blocks(DieGroupId(die_group)))
}

#[test]
fn a_program_unit_waits_for_at_most_the_copies_of_the_pace() {
    for victim in VictimPolicy::EXAMPLES {
        // On a die group with a third of spare flash, a victim has fewer than 16 program units to
        // copy, and a host program unit creates at most two program units of garbage.
        let (mut engine, mut rng, mut version) = used(Pace::ProgramUnits(8), victim);
        let mut copied = 0;
        for _ in 0..3000 {
            let room = free(&engine).iter().all(|&free| free > Pace::CRITICAL);
            let copies = write(&mut engine, &mut rng, &mut version, false);
            assert!(!room || copies <= 8, "{victim}: {copies} program units of copies");
            copied += copies;
        }
        assert!(copied > 500, "{victim}: {copied} program units of copies");
        engine.ftl().assert_consistent();
    }
}

#[test]
fn all_at_once_has_longer_waits_and_equal_total_work() {
    let worst = |pace| {
        let (mut engine, mut rng, mut version) = used(pace, VictimPolicy::Greedy);
        let program_units = (0..6000).map(|_| write(&mut engine, &mut rng, &mut version, false));
        program_units
            .fold((0, 0), |(most, all): (u64, u64), copies| (most.max(copies), all + copies))
    };
    let (most_at_once, all_at_once) = worst(Pace::ToHigh);
    let (most_paced, all_paced) = worst(Pace::ProgramUnits(8));
    assert!(most_at_once > most_paced && most_paced <= 8, "{most_at_once}, {most_paced}");
    let off = all_paced as f64 / all_at_once as f64 - 1.0;
    assert!(off.abs() < 0.15, "{all_at_once} and {all_paced} program units of copies");
}

#[test]
fn urgent_program_units_clean_below_the_critical_number_only() {
    for pace in [Pace::ToHigh, Pace::ProgramUnits(2)] {
        let (mut engine, mut rng, mut version) = used(pace, VictimPolicy::Greedy);
        let mut pressed = 0;
        for _ in 0..3000 {
            let before = free(&engine);
            let copies = write(&mut engine, &mut rng, &mut version, true);
            let room = before.iter().all(|&free| free >= Pace::CRITICAL);
            assert!(
                !room || copies == 0,
                "{pace:?}: {copies} program units of copies, {before:?} erased"
            );
            pressed += u64::from(copies > 0);
        }
        assert!(pressed > 20, "{pace:?}: {pressed} program units found too few erased blocks");
    }
}

#[test]
fn idle_cleaning_brings_every_die_group_to_the_high_watermark() {
    let (mut engine, mut rng, mut version) = used(Pace::ProgramUnits(0), VictimPolicy::Greedy);
    assert!(free(&engine).iter().any(|&free| free < HIGH));
    assert!(!engine.clean_idle(0).unwrap(), "no program units, no work");
    let mut steps = 0;
    loop {
        let before = engine.counts().programs[Cause::Gc];
        if !engine.clean_idle(3).unwrap() {
            break;
        }
        assert!(engine.counts().programs[Cause::Gc] - before <= 3);
        steps += 1;
    }
    assert!(steps > 2 && free(&engine).iter().all(|&free| free >= HIGH), "{:?}", free(&engine));
    // Down to the low watermark the host writes without cleaning.
    let copies: u64 = (0..16).map(|_| write(&mut engine, &mut rng, &mut version, false)).sum();
    assert_eq!(copies, 0);
    assert!(!engine.clean_idle(u32::MAX).unwrap() || free(&engine).iter().all(|&f| f >= HIGH));
    engine.ftl().assert_consistent();
}
