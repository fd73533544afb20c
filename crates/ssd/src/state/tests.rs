//! Initial states on every kind of FTL that has them.

use prism_base::Rng;
use prism_engine::Immediate;
use prism_ftl::{Frontiers, Ftl, PageMap, VictimPolicy};
use prism_nand::{DieGroupId, Geometry, Nand};

use super::*;
use crate::spec::Mapping;

/// Two die groups of `blocks` blocks of 64 units with an over-provisioning of about `op`.
fn device(blocks: u32, op: f64) -> DriveSpec {
    let mut device = DriveSpec::preset("femu").unwrap();
    device.flash.channels = 2;
    device.flash.dies_per_channel = 1;
    device.flash.planes = 1;
    device.flash.blocks_per_plane = blocks;
    device.flash.pages_per_block = 64;
    device.flash.page = Bytes(4096);
    device.ftl.mapping_unit = Bytes(4096);
    device.ftl.frontiers = Frontiers::Shared;
    (device.ftl.free_blocks_low, device.ftl.free_blocks_high) = (2, 2);
    device.drive.write_buffer = Bytes(1 << 20);
    with_op(device, op)
}

/// The same with the capacity whose effective over-provisioning is `op`.
fn with_op(mut device: DriveSpec, op: f64) -> DriveSpec {
    device.drive.capacity = Bytes(1 << 20);
    let usable = device.page_config().usable_units(&device.geometry());
    let unit = device.ftl.mapping_unit.0;
    device.drive.capacity = Bytes((usable as f64 / (1.0 + op)) as u64 * unit);
    // Less the translation pages.
    let map = u64::from(device.page_config().map_units) * unit;
    device.drive.capacity = Bytes(device.drive.capacity.0 - map);
    device.check().unwrap();
    device
}

/// Flash and FTL of `device` in `state`, to be written without timing.
fn parts(device: &DriveSpec, state: InitialState, seed: u64) -> (Nand, Ftl, Preparation) {
    let prepared = Drive::prepared(device.clone(), state, seed, |_| true);
    let (drive, preparation) = prepared.unwrap().expect("the preparation is not cancelled");
    drive.assert_consistent();
    let (nand, ftl) = drive.engine.into_parts();
    (nand, ftl, preparation)
}

/// Write amplification of `capacities` of random writes, others for each seed.
fn overwritten(nand: &mut Nand, ftl: &mut Ftl, capacities: f64, seed: u64) -> f64 {
    let logical = u64::from(ftl.logical_units());
    overwritten_below(nand, ftl, logical, (logical as f64 * capacities) as u64, seed)
}

/// Write amplification of `count` random writes to the first `units` units.
fn overwritten_below(nand: &mut Nand, ftl: &mut Ftl, units: u64, count: u64, seed: u64) -> f64 {
    let mut rng = Rng::stream(seed, "state.tests");
    let lpns: Vec<_> = (0..count).map(|_| rng.below(units) as u32).collect();
    let mut engine = Immediate::new(&mut *nand, &mut *ftl);
    engine.write_all(&lpns, 1 << 40);
    engine.flush();
    let written = engine.counts().units.total() as f64 / count as f64;
    nand.assert_conserved();
    ftl.assert_consistent();
    written
}

fn theory(op: f64, b: u32, choices: Option<u32>) -> f64 {
    let rho = 1.0 / (1.0 + op);
    let field = prism_ftl::MeanField::solve(choices, rho * f64::from(b), b);
    1.0 / (field.mu * rho)
}

/// Die groups have different numbers of bad blocks, and data by the good ones.
#[test]
fn steady_states_are_laid_out_around_bad_blocks() {
    let mut faults = crate::spec::FaultSpec::of_kind("tlc");
    faults.factory_bad = Some(0.05);
    let mut laid_out = 0;
    for seed in 0..20 {
        let mut device = device(60, 0.3);
        device.flash.channels = 8;
        device = with_op(device, 0.3);
        device.faults = Some(faults.clone());
        let steady = Drive::prepared(device.clone(), InitialState::Steady, seed, |_| true);
        let Ok(Some((drive, _))) = steady else {
            // With too many bad blocks for the capacity nothing can be stored.
            assert!(Drive::prepared(device, InitialState::Filled, seed, |_| true).is_err());
            continue;
        };
        drive.assert_consistent();
        laid_out += 1;
    }
    assert!(laid_out >= 10, "{laid_out} drives have enough good blocks");
}

#[test]
fn the_first_writes_of_a_steady_drive_cost_what_theory_says() {
    for (victim, op, expected) in [
        (VictimPolicy::Greedy, 0.15, theory(0.15, 64, None)),
        (VictimPolicy::Greedy, 0.07, theory(0.07, 64, None)),
        (VictimPolicy::Random, 0.28, theory(0.28, 64, Some(1))),
        (VictimPolicy::DChoices { d: 5 }, 0.15, theory(0.15, 64, Some(5))),
        // Published for FIFO at this over-provisioning.
        (VictimPolicy::Fifo, 0.15, 4.016),
    ] {
        let mut device = device(4096, op);
        device.ftl.victim = victim;
        // A quarter of the capacity of writes cleans about every block once at these figures.
        for frontiers in [Frontiers::Shared, Frontiers::Separate] {
            device.ftl.frontiers = frontiers;
            let device = with_op(device.clone(), op);
            let (mut nand, mut ftl, _) = parts(&device, InitialState::Steady, 1);
            let written = overwritten(&mut nand, &mut ftl, 0.25, 1);
            let off = written / expected - 1.0;
            assert!(off.abs() < 0.02, "{victim} {op} {frontiers:?}: {written} against {expected}");
        }
    }
}

#[test]
fn a_steady_drive_with_cold_data_has_the_write_amplification_asked_for() {
    for wanted in [1.0, 1.3, 2.0, 3.0] {
        let mut device = device(4096, 0.15);
        device.ftl.frontiers = Frontiers::Separate;
        let device = with_op(device, 0.15);
        let state = InitialState::SteadyAt { write_amplification: wanted };
        let (mut nand, mut ftl, _) = parts(&device, state, 1);
        let logical = f64::from(device.logical_units());
        let spare = device.usable_units() as f64 - logical;
        // The overwritten data, of which used / (1 - used) spares gives this.
        let hot = (1..).map(|step| 0.001 * f64::from(step)).find(|share| {
            let used = share * logical / (share * logical + spare);
            let reached = prism_ftl::write_amplification(VictimPolicy::Greedy, used, 64).unwrap();
            reached >= wanted || *share >= 1.0
        });
        let hot = (hot.unwrap() * logical) as u64;
        let written = overwritten_below(&mut nand, &mut ftl, hot, spare as u64 / 2, 1);
        let off = written / wanted - 1.0;
        assert!(off.abs() < 0.06, "{written} instead of {wanted}");
    }
}

#[test]
fn laying_out_a_steady_state_can_be_cancelled() {
    for state in [InitialState::Steady, InitialState::Settled] {
        let mut steps = Vec::new();
        let prepared = PreparedDrive::new(device(1024, 0.25), state, 1, |reached| {
            steps.push((reached.done, reached.total));
            steps.len() < 2
        });
        assert!(prepared.unwrap().is_none());
        // There are two die groups.
        let [(0, total), (done, _)] = steps[..] else { panic!("{steps:?}") };
        assert_eq!(done, total / 2);
    }
}

/// The steps of a preparation, each with its last progress.
fn steps(device: DriveSpec, state: InitialState) -> Vec<PreparationProgress> {
    let mut steps: Vec<PreparationProgress> = Vec::new();
    let prepared = PreparedDrive::new(device, state, 1, |reached| {
        match steps.last_mut().filter(|last| last.step == reached.step) {
            Some(last) => *last = reached,
            None => {
                assert_eq!(reached.done, 0, "{reached:?}");
                steps.push(reached);
            }
        }
        true
    });
    assert!(prepared.is_ok_and(|prepared| prepared.is_some()) || steps.is_empty());
    steps
}

#[test]
fn a_settled_drive_is_laid_out_and_then_written() {
    let settled = steps(device(1024, 0.25), InitialState::Settled);
    let [laid_out, written] = settled[..] else { panic!("{settled:?}") };
    assert_eq!((laid_out.step, written.step), (PreparationStep::LayOut, PreparationStep::Write));
    assert_eq!(laid_out.done, laid_out.total);
    let [filled] = steps(device(1024, 0.25), InitialState::Filled)[..] else { panic!("one step") };
    assert_eq!(filled.step, PreparationStep::Write);
}

#[test]
fn no_layout_begins_without_a_closed_form() {
    let mut device = device(1024, 0.25);
    device.ftl.victim = VictimPolicy::CostBenefit(prism_ftl::Benefit::Kawaguchi);
    assert!(steps(device.clone(), InitialState::Steady).is_empty());
    let [written] = steps(device, InitialState::Settled)[..] else { panic!("one step") };
    assert_eq!(written.step, PreparationStep::Write);
}

#[test]
fn the_layout_of_a_large_die_group_has_several_calls() {
    // A unit is 4 KiB.
    let device = device(40 << 10, 0.25);
    let mut calls = Vec::new();
    let prepared = PreparedDrive::new(device, InitialState::Steady, 1, |reached| {
        calls.push(reached.done);
        true
    });
    assert!(prepared.unwrap().is_some());
    assert!(calls.windows(2).all(|two| two[1] - two[0] < 5 << 18), "{calls:?}");
    assert!(calls.len() > 4, "{calls:?}");
}

#[test]
fn a_steady_drive_is_one_that_was_overwritten_for_long() {
    // With few blocks theory is off by the units in open blocks; overwriting is exact.
    for blocks in [64, 128, 1024] {
        for victim in [VictimPolicy::Greedy, VictimPolicy::Fifo, VictimPolicy::Random] {
            let mut device = device(blocks, 0.25);
            device.ftl.victim = victim;
            // Small drives vary at random: means over several.
            let (mut at_once, mut later) = (0.0, 0.0);
            for seed in 0..2048 / blocks {
                let (mut nand, mut ftl, _) = parts(&device, InitialState::Steady, seed.into());
                at_once += overwritten(&mut nand, &mut ftl, 1.0, 1);
                later += overwritten(&mut nand, &mut ftl, 4.0, 2);
            }
            let off = at_once / later - 1.0;
            // The mean field is for infinitely many blocks: it is off by about a block.
            let allowed = 0.01 + 1.0 / f64::from(blocks);
            assert!(off.abs() < allowed, "{blocks} {victim}: {at_once}, {later} later");
        }
    }
}

/// Drives with every kind of layout, and their names.
fn kinds() -> Vec<(&'static str, DriveSpec)> {
    let plain = device(64, 0.3);
    let change = |name, change: fn(&mut DriveSpec)| {
        let mut device = plain.clone();
        change(&mut device);
        (name, with_op(device, 0.3))
    };
    vec![
        change("plain", |_| {}),
        change("separate", |d| d.ftl.frontiers = Frontiers::Separate),
        change("watermarks", |d| (d.ftl.free_blocks_low, d.ftl.free_blocks_high) = (3, 8)),
        change("superblock", |d| d.flash.superblock_dies = 2),
        change("parity", |d| {
            d.flash.superblock_dies = 2;
            d.flash.superblock_parity = true;
        }),
        change("one-shot", |d| {
            d.flash.pages_per_block = 66;
            d.flash.pages_per_program = 3;
        }),
        change("small units", |d| d.flash.page = Bytes(16384)),
        change("large units", |d| {
            (d.flash.planes, d.flash.multi_plane) = (2, true);
            d.ftl.mapping_unit = Bytes(8192);
        }),
        change("handles", |d| {
            d.ftl.placement_handles = 3;
            d.ftl.frontiers = Frontiers::PerStream;
        }),
        change("map on flash", |d| {
            d.ftl.mapping = Mapping::Dftl;
            d.ftl.map_cache = Some(Bytes(4096));
        }),
    ]
}

#[test]
fn every_kind_of_drive_has_a_steady_state() {
    for (name, device) in kinds() {
        for seed in 0..3 {
            let (mut nand, mut ftl, preparation) = parts(&device, InitialState::Steady, seed);
            let config = device.page_config();
            assert_eq!(preparation, Preparation::default());
            let all = u64::from(config.logical_units + config.map_units);
            assert_eq!(ftl.mapped(), all, "{name}");
            let die_groups = device.geometry().die_groups();
            for die_group in (0..die_groups).map(DieGroupId) {
                let free = ftl.free_blocks(die_group);
                let allowed = config.free_blocks_low..=config.free_blocks_high + 2;
                assert!(
                    allowed.contains(&free) && ftl.balanced(die_group, 0),
                    "{name}: {free} erased"
                );
            }
            for unit in 0..config.logical_units + config.map_units {
                let at = ftl.lookup(unit).expect("every unit is mapped");
                nand.check_read(at).expect("on a program unit that is programmed");
                assert!(!nand.layout().is_parity(nand.layout().program_unit_of(at)));
            }
            assert_eq!(nand.erases_total(), 0);
            let at_once = overwritten(&mut nand, &mut ftl, 1.0, 1);
            let later = overwritten(&mut nand, &mut ftl, 6.0, 2);
            assert!((at_once / later - 1.0).abs() < 0.06, "{name}: {at_once}, then {later}");
        }
    }
}

#[test]
fn the_largest_capacity_works() {
    for (name, mut device) in kinds() {
        // The most that the check allows.
        let (mut low, mut high) = (1u64, device.geometry().raw().0 / device.ftl.mapping_unit.0);
        while high - low > 1 {
            let middle = u64::midpoint(low, high);
            device.drive.capacity = Bytes(middle * device.ftl.mapping_unit.0);
            if device.check().is_ok() { low = middle } else { high = middle }
        }
        device.drive.capacity = Bytes(low * device.ftl.mapping_unit.0);
        for victim in [VictimPolicy::Greedy, VictimPolicy::Fifo, VictimPolicy::DChoices { d: 2 }] {
            device.ftl.victim = victim;
            let (mut nand, mut ftl, _) = parts(&device, InitialState::Steady, 3);
            let written = overwritten(&mut nand, &mut ftl, 1.0, 1);
            assert!(written > 1.0, "{name} {victim}");
        }
    }
}

#[test]
fn states_without_closed_form_are_refused() {
    let refused = |change: fn(&mut DriveSpec)| {
        let mut device = device(64, 0.3);
        change(&mut device);
        let error = Drive::prepared(device, InitialState::Steady, 1, |_| true).unwrap_err();
        error.to_string()
    };
    let segments = refused(|d| d.ftl.segment = Some(Bytes(8 << 20)));
    assert!(segments.contains("segmented") && segments.contains("preconditioned"), "{segments}");
    let policy = refused(|d| d.ftl.victim = VictimPolicy::from_name("cost-benefit").unwrap());
    assert!(policy.contains("cost-benefit") && policy.contains("preconditioned"), "{policy}");
    let blocks = Drive::prepared(hybrid(), InitialState::Steady, 1, |_| true).unwrap_err();
    assert!(blocks.to_string().contains("closed form"), "{blocks}");
}

/// The same flash under a hybrid mapping, half full.
fn hybrid() -> DriveSpec {
    let mut device = device(64, 1.0);
    device.ftl.mapping = Mapping::Hybrid;
    device.ftl.frontiers = Frontiers::Separate;
    device.ftl.victim = VictimPolicy::Fifo;
    device.ftl.group_blocks = Some(2);
    device.ftl.group_log_blocks = Some(2);
    device.ftl.log_share = Some(0.6);
    device.drive.power_loss_protection = true;
    device.check().unwrap();
    device
}

#[test]
fn hybrid_mapping_has_all_states_but_steady() {
    for state in [
        InitialState::Filled,
        InitialState::FilledTo { share: 0.7 },
        InitialState::Preconditioned { overwrites: 3.0 },
        InitialState::Settled,
    ] {
        let prepared = Drive::prepared(hybrid(), state, 1, |_| true).unwrap();
        let (drive, preparation) = prepared.expect("the preparation is not cancelled");
        drive.assert_consistent();
        assert!(preparation.written >= drive.engine.ftl().mapped());
        let loaded = Drive::from_saved(hybrid(), &drive.save().unwrap()).unwrap();
        assert_eq!(loaded.engine.ftl().mapped(), drive.engine.ftl().mapped());
    }
}

#[test]
fn shares_and_capacities_are_exact() {
    let device = device(64, 0.3);
    let logical = u64::from(device.logical_units());
    let state = |state| parts(&device, state, 1);
    let (_, ftl, preparation) = state(InitialState::FilledTo { share: 0.7 });
    let expected = (logical as f64 * 0.7) as u64;
    assert_eq!((ftl.mapped(), preparation.written), (expected, expected));
    assert!(ftl.lookup(0).is_some() && ftl.lookup(expected as u32).is_none());
    let (_, ftl, preparation) = state(InitialState::Preconditioned { overwrites: 1.5 });
    let expected = logical + (logical as f64 * 1.5) as u64;
    assert_eq!((ftl.mapped(), preparation.written), (logical, expected));
    assert_eq!(state(InitialState::Empty).1.mapped(), 0);
}

#[test]
fn settling_ends_with_a_result() {
    for (name, device) in kinds() {
        let (mut nand, mut ftl, preparation) = parts(&device, InitialState::Settled, 1);
        let rounds = preparation.rounds;
        assert!(rounds.len() >= 4 && preparation.settled == Some(true), "{name}: {rounds:?}");
        let last = rounds.last().unwrap();
        let after = overwritten(&mut nand, &mut ftl, 4.0, 1);
        assert!((after / last - 1.0).abs() < 0.05, "{name}: {last}, then {after}");
    }
    let rounds = rounds::Rounds::from_steady(1 << 27);
    assert_eq!((rounds.units, rounds.most), (1 << 21, 640));
    assert_eq!(rounds::Rounds::from_steady(1 << 22), rounds::Rounds::of(1 << 22));
    let rounds = rounds::Rounds::of(1000);
    assert_eq!((rounds.units, rounds.most), (65_536, 10));
    assert_eq!(rounds::Rounds::of(1 << 30).most, 40);
    assert!(rounds.steady(&[9.0, 2.0, 2.03, 2.01, 2.0]));
    assert!(!rounds.steady(&[2.0, 2.0, 2.0]) && !rounds.steady(&[2.0, 2.05, 2.01, 2.0]));
}

/// The valid units of each block, fewest first.
fn valid_units(nand: &Nand, ftl: &Ftl) -> Vec<u32> {
    let mut valid = vec![0; nand.geometry().blocks() as usize];
    for unit in (0..ftl.logical_units()).filter_map(|lpn| ftl.lookup(lpn)) {
        valid[nand.layout().block_of_unit(unit).0 as usize] += 1;
    }
    valid.sort_unstable();
    valid
}

/// What is laid out and then confirmed is what writing reaches.
#[test]
fn preconditioning_reaches_the_same_state_from_both_starts() {
    for victim in [
        VictimPolicy::Greedy,
        VictimPolicy::DChoices { d: 3 },
        VictimPolicy::WindowedGreedy { window: 64 },
    ] {
        let mut device = device(1024, 0.15);
        device.ftl.victim = victim;
        device.ftl.frontiers = Frontiers::Separate;
        let device = with_op(device, 0.15);
        let (mut nand, mut ftl, preparation) = parts(&device, InitialState::Settled, 1);
        let written = InitialState::Preconditioned { overwrites: 6.0 };
        let (mut other_nand, mut other_ftl, _) = parts(&device, written, 1);
        let laid_out = preparation.written % 65_536 == 0;
        assert_eq!(laid_out, !matches!(victim, VictimPolicy::WindowedGreedy { .. }), "{victim}");
        assert!(preparation.settled == Some(true), "{victim}: {preparation:?}");
        let (ours, theirs) = (valid_units(&nand, &ftl), valid_units(&other_nand, &other_ftl));
        let apart: u32 = ours.iter().zip(&theirs).map(|(a, b)| a.abs_diff(*b)).sum();
        assert!(apart < 64 * 2048 / 200, "{victim}: {apart} units of 131072 in other blocks");
        let ours = overwritten(&mut nand, &mut ftl, 2.0, 3);
        let theirs = overwritten(&mut other_nand, &mut other_ftl, 2.0, 3);
        assert!((ours / theirs - 1.0).abs() < 0.02, "{victim}: {ours}, by writing {theirs}");
    }
}

/// Programming in bulk and by single program units (as needed with content) result in the same FTL.
#[test]
fn bulk_and_single_programs_are_the_same() {
    for (name, device) in kinds() {
        let geometry = device.geometry();
        let make = |nand: fn(Geometry) -> Nand| {
            let mut nand = nand(geometry.clone());
            let map = PageMap::new(geometry.clone(), device.page_config(), 5).unwrap();
            let mut ftl = Ftl::from(map);
            let logical = device.logical_units();
            let mut rng = Rng::stream(5, "both ways");
            let mut engine = Immediate::new(&mut nand, &mut ftl);
            for version in 1..u64::from(logical) * 4 {
                let lpn = rng.below(u64::from(logical)) as u32;
                engine.write(lpn, version);
                if rng.chance(0.02) {
                    // Often units that still wait for their program unit.
                    let start = if rng.chance(0.5) { lpn } else { 0 };
                    engine.trim(start, logical.min(start + 2), version);
                }
            }
            let counts = *engine.counts();
            ftl.assert_consistent();
            nand.assert_conserved();
            (nand, ftl, counts)
        };
        let (short_nand, short, short_counts) = make(Nand::new);
        let (long_nand, long, long_counts) = make(Nand::with_content);
        assert_eq!(short_counts, long_counts, "{name}");
        assert_eq!(short_nand.erase_counts(), long_nand.erase_counts());
        assert_eq!(short.erases(), long.erases());
        for unit in 0..device.logical_units() {
            assert_eq!(short.lookup(unit), long.lookup(unit), "{name}: unit {unit}");
        }
        for die_group in (0..geometry.die_groups()).map(DieGroupId) {
            assert_eq!(short.free_blocks(die_group), long.free_blocks(die_group));
            assert_eq!(
                short.next_program_unit(die_group, 0, 0),
                long.next_program_unit(die_group, 0, 0)
            );
        }
        for block in (0..geometry.blocks()).map(BlockId) {
            let (short, long) = (short.page().unwrap(), long.page().unwrap());
            assert_eq!(short.program_units_written(block), long.program_units_written(block));
            assert_eq!(
                short_nand.program_units_programmed(block),
                short.program_units_written(block)
            );
            assert_eq!(short.is_dead(block), long.is_dead(block));
        }
    }
}
