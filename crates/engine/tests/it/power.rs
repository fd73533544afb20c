//! Power is cut at every operation of the immediate engine, for every mapping, policy and pace,
//! repeatedly, and no durable data is lost.

#![allow(clippy::print_stdout, reason = "a test that fails shows what it worked on")]

use prism_base::{Bytes, Rng};
use prism_engine::Immediate;
use prism_ftl::{
    Frontiers, Ftl, FtlConfig, HybridConfig, Logs, PageConfig, UnitWrite, VictimPolicy,
};
use prism_nand::{Cause, Geometry, Nand};
use prism_testkit::{all_seeds, seeds};

use crate::common::{Life, Setup, at_offsets, hybrid, page, ranges};

/// A run with a random setup, named by seed and setup.
fn life(seed: u64, draw: fn(&mut Rng) -> Setup) -> (Life, Rng) {
    let mut rng = Rng::stream(seed, "power");
    let setup = draw(&mut rng);
    let name = format!("seed {seed}: {setup:?}");
    println!("{name}");
    (Life::new(setup, name), rng)
}

/// Compares the number of cuts with that stated in TESTING.md.
fn assert_all(cuts: u64, stated: u64) {
    assert!(!all_seeds() || cuts == stated, "{cuts} cuts, not {stated}");
}

fn one_cut_after_every_operation(draw: fn(&mut Rng) -> Setup) {
    let mut cuts = 0;
    for seed in seeds(0..24) {
        for operations in 0..100 {
            let (mut life, mut rng) = life(seed, draw);
            life.act_with_power(120, &mut rng);
            life.until_cut(operations, &mut rng);
            life.recover(&mut rng);
            life.act_with_power(20, &mut rng);
            cuts += life.cuts();
        }
    }
    assert_all(cuts, 2_400);
}

fn many_cuts_in_one_life(draw: fn(&mut Rng) -> Setup) {
    let mut cuts = 0;
    // The last is one of the few in which the source of a copy was lost from a volatile cache.
    for seed in seeds(100..400).and(&[5392]) {
        let (mut life, mut rng) = life(seed, draw);
        life.act_with_power(60, &mut rng);
        // Mostly in quick succession, so that a cut hits the work that the last one has left.
        let between = 1 + rng.below(40);
        for _ in 0..60 {
            let operations = if rng.chance(0.1) { 200 } else { between };
            life.until_cut(rng.below(operations), &mut rng);
            life.recover(&mut rng);
        }
        // The remaining drive works.
        life.act_with_power(300, &mut rng);
        life.engine().ftl().assert_consistent();
        cuts += life.cuts();
    }
    assert_all(cuts, 18_060);
}

#[test]
fn random_cuts_after_every_operation_of_a_page_map() {
    one_cut_after_every_operation(page);
}

#[test]
fn random_cuts_after_every_operation_of_ranges() {
    one_cut_after_every_operation(ranges);
}

#[test]
fn random_cuts_in_one_life_of_ranges() {
    many_cuts_in_one_life(ranges);
}

#[test]
fn random_cuts_after_every_operation_of_a_block_map() {
    one_cut_after_every_operation(hybrid);
}

#[test]
fn random_cuts_after_every_operation_of_units_at_offsets() {
    one_cut_after_every_operation(at_offsets);
}

#[test]
fn random_cuts_in_one_life_of_units_at_offsets() {
    many_cuts_in_one_life(at_offsets);
}

#[test]
fn random_cuts_in_one_life_of_a_page_map() {
    many_cuts_in_one_life(page);
}

#[test]
fn random_cuts_in_one_life_of_a_block_map() {
    many_cuts_in_one_life(hybrid);
}

#[test]
fn a_logical_block_rewritten_in_order_is_switched() {
    const BLOCK: u32 = 8;
    const LOGICAL: u32 = 6;
    let geometry = Geometry {
        blocks_per_plane: 10,
        pages_per_block: BLOCK / 2,
        page: Bytes(32),
        unit: Bytes(16),
        ..Geometry::SMALLEST
    };
    let config = FtlConfig::Hybrid(HybridConfig {
        logs: Logs::Groups,
        gaps: false,
        logical_units: LOGICAL * BLOCK,
        group_blocks: 1,
        group_log_blocks: 1,
        log_blocks: 3,
        victim: VictimPolicy::Fifo,
        free_blocks_low: 0,
        free_blocks_high: 0,
        reserve_blocks: 0,
    });
    let mut nand = Nand::with_content(geometry.clone());
    let mut ftl = Ftl::new(geometry, config.clone(), 1).unwrap();
    let mut version = 0;
    for pass in 0..4 {
        let mut engine = Immediate::new(&mut nand, ftl);
        for first in (0..LOGICAL * BLOCK).step_by(2) {
            let unit = |lpn, version| UnitWrite { lpn, source: None, version };
            let program_unit = [unit(first, version + 1), unit(first + 1, version + 2)];
            version += 2;
            let stream = engine.ftl().stream_of(first, 0);
            engine.write_program_unit(stream, &program_unit);
        }
        let counts = *engine.counts();
        assert_eq!(counts.units[Cause::Merge], 0, "pass {pass}: no copies");
        assert!(counts.erases[Cause::Merge] <= u64::from(LOGICAL), "one erase per block");
        // After recovery it is rewritten as cheaply.
        let (found, newest) = Ftl::recover(&mut &nand, config.clone(), 1, &[]).unwrap();
        assert_eq!((newest.newest_version, found.mapped()), (version, 48));
        ftl = found;
    }
    ftl.assert_consistent();
}

#[test]
fn flash_of_another_ftl_is_refused() {
    let mut rng = Rng::stream(1, "foreign");
    let mut life = Life::new(hybrid(&mut rng), "foreign".into());
    life.act_with_power(60, &mut rng);
    let engine = life.engine();
    let nand = &engine.device().nand;
    let small = HybridConfig {
        logs: Logs::Groups,
        gaps: false,
        logical_units: nand.geometry().units_per_block(),
        group_blocks: 1,
        group_log_blocks: 1,
        log_blocks: 1,
        victim: VictimPolicy::Fifo,
        free_blocks_low: 0,
        free_blocks_high: 0,
        reserve_blocks: 0,
    };
    let refused = Ftl::recover(&mut { nand }, FtlConfig::Hybrid(small), 1, &[]);
    let message = refused.expect_err("units beyond the drive").to_string();
    assert!(message.contains("a unit is beyond the drive"), "{message}");
    let one = PageConfig::simple(1, VictimPolicy::Greedy, Frontiers::Shared);
    let refused = Ftl::recover(&mut { nand }, FtlConfig::Page(one), 1, &[]);
    let message = refused.expect_err("units beyond the drive").to_string();
    assert!(message.contains("a unit is beyond the drive"), "{message}");
}
