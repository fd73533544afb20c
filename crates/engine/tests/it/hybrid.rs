//! Merges of hybrid mapping, with exact counts for sequences made by hand, and the cost of uniform
//! random writes.

use prism_base::{Bytes, Rng};
use prism_engine::{FlashCounts, Immediate};
use prism_ftl::{Ftl, Hybrid, HybridConfig, Logs, MergeCounts, VictimPolicy};
use prism_nand::{Cause, Geometry, Nand};

/// Units of a logical block.
const BLOCK: u32 = 32;
/// Units of a program unit.
const PROGRAM_UNIT: u32 = 2;
/// Logical blocks of the drive.
const LOGICAL: u32 = 24;

fn geometry(blocks_per_plane: u32, pages_per_block: u32) -> Geometry {
    Geometry {
        channels: 2,
        blocks_per_plane,
        pages_per_block,
        page: Bytes(u64::from(PROGRAM_UNIT) * 4096),
        ..Geometry::SMALLEST
    }
}

fn config(group_blocks: u32, group_log_blocks: u32, log_blocks: u32) -> HybridConfig {
    HybridConfig {
        logs: Logs::Groups,
        gaps: false,
        logical_units: LOGICAL * BLOCK,
        group_blocks,
        group_log_blocks,
        log_blocks,
        victim: VictimPolicy::Fifo,
        free_blocks_low: 0,
        free_blocks_high: 0,
        reserve_blocks: 0,
    }
}

/// Flash operations and merges.
struct Done {
    counts: FlashCounts,
    merges: MergeCounts,
}

/// Fills a drive in order and merges all; then makes `writes`, in units, and merges all again.
/// Returns the counts of that second part.
fn after_fill(config: HybridConfig, writes: impl IntoIterator<Item = u32>) -> Done {
    let geometry = geometry(16, BLOCK / PROGRAM_UNIT);
    let mut nand = Nand::with_content(geometry.clone());
    let mut ftl = Ftl::from(Hybrid::new(geometry, config).unwrap());
    let merges_of = |ftl: &Ftl| match ftl {
        Ftl::Hybrid(map) => *map.merges(),
        _ => unreachable!("a hybrid FTL"),
    };
    let mut engine = Immediate::new(&mut nand, &mut ftl);
    let mut version = 0;
    for lpn in 0..LOGICAL * BLOCK {
        version += 1;
        engine.write(lpn, version);
    }
    engine.merge_all();
    let filled = *engine.counts();
    assert_eq!(filled.units[Cause::Host], u64::from(LOGICAL * BLOCK));
    assert_eq!((filled.units.total(), filled.erases.total()), (filled.units[Cause::Host], 0));
    let before = merges_of(&ftl);
    assert_eq!(before, MergeCounts { switches: u64::from(LOGICAL), ..MergeCounts::default() });
    let mut engine = Immediate::new(&mut nand, &mut ftl);
    for lpn in writes {
        version += 1;
        engine.write(lpn, version);
    }
    engine.merge_all();
    let counts = *engine.counts();
    ftl.assert_consistent();
    nand.assert_conserved();
    let after = merges_of(&ftl);
    let merges = MergeCounts {
        switches: after.switches - before.switches,
        partial: after.partial - before.partial,
        full: after.full - before.full,
        empty: after.empty - before.empty,
    };
    Done { counts, merges }
}

/// The units of logical block `block` at `offsets`.
fn units(block: u32, offsets: std::ops::Range<u32>) -> impl Iterator<Item = u32> {
    offsets.map(move |offset| block * BLOCK + offset)
}

#[test]
fn whole_blocks_in_order_are_switched() {
    for (n, k, logs) in [(1, 1, 7), (1, 2, 1), (4, 3, 7), (24, 2, 2)] {
        let passes = 3;
        let order = (0..passes).flat_map(|_| 0..LOGICAL * BLOCK);
        let done = after_fill(config(n, k, logs), order);
        let blocks = u64::from(passes * LOGICAL);
        assert_eq!(done.counts.units[Cause::Merge], 0, "N {n}, K {k}");
        assert_eq!(done.counts.units.total(), blocks * u64::from(BLOCK));
        assert_eq!(done.counts.reads.total(), 0);
        assert_eq!(done.counts.erases[Cause::Merge], blocks, "each write of a block erases one");
        assert_eq!((done.merges.switches, done.merges.partial, done.merges.full), (blocks, 0, 0));
    }
}

#[test]
fn the_second_half_first_is_a_full_merge() {
    let order = (0..LOGICAL)
        .flat_map(|block| units(block, BLOCK / 2..BLOCK).chain(units(block, 0..BLOCK / 2)));
    let done = after_fill(config(1, 2, 7), order);
    assert_eq!(done.merges.full, u64::from(LOGICAL));
    assert_eq!(done.counts.units[Cause::Merge], u64::from(LOGICAL * BLOCK), "every unit once");
    assert_eq!(done.counts.reads[Cause::Merge], u64::from(LOGICAL * BLOCK / PROGRAM_UNIT));
    assert_eq!(done.counts.erases[Cause::Merge], u64::from(2 * LOGICAL), "log and data block");
    assert_eq!((done.merges.switches, done.merges.partial), (0, 0));
}

#[test]
fn a_prefix_is_a_partial_merge() {
    for program_units in 1..BLOCK / PROGRAM_UNIT {
        let order = (0..LOGICAL).flat_map(|block| units(block, 0..program_units * PROGRAM_UNIT));
        let done = after_fill(config(1, 1, 7), order);
        assert_eq!(done.merges.partial, u64::from(LOGICAL), "{program_units} program units");
        let rest = u64::from(LOGICAL * (BLOCK - program_units * PROGRAM_UNIT));
        assert_eq!(done.counts.units[Cause::Merge], rest, "{program_units} program units");
        assert_eq!(done.counts.erases[Cause::Merge], u64::from(LOGICAL), "the old data blocks");
        assert_eq!((done.merges.switches, done.merges.full, done.merges.empty), (0, 0, 0));
    }
}

#[test]
fn one_program_unit_in_the_middle_costs_a_block() {
    let order = (0..LOGICAL).flat_map(|block| units(block, PROGRAM_UNIT..2 * PROGRAM_UNIT));
    let done = after_fill(config(1, 1, 7), order);
    assert_eq!(done.merges.full, u64::from(LOGICAL));
    assert_eq!(done.counts.units[Cause::Merge], u64::from(LOGICAL * BLOCK));
    assert_eq!(done.counts.erases[Cause::Merge], u64::from(2 * LOGICAL));
}

#[test]
fn one_log_block_over_all_blocks_of_a_group_costs_them_all() {
    // Program unit r of the log block has the first program unit of logical block r: N full merges.
    let n = BLOCK / PROGRAM_UNIT;
    let order = (0..n).flat_map(|block| units(block, PROGRAM_UNIT..2 * PROGRAM_UNIT));
    let done = after_fill(config(n, 1, 7), order);
    assert_eq!(done.merges.full, u64::from(n));
    assert_eq!(done.counts.units[Cause::Merge], u64::from(n * BLOCK));
    assert_eq!(done.counts.erases[Cause::Merge], u64::from(n + 1));
}

#[test]
fn offsets_without_data_are_padded_up_to_the_last_unit() {
    let geometry = geometry(16, BLOCK / PROGRAM_UNIT);
    let mut nand = Nand::with_content(geometry.clone());
    let mut ftl = Ftl::from(Hybrid::new(geometry, config(1, 1, 7)).unwrap());
    let mut engine = Immediate::new(&mut nand, &mut ftl);
    // Only units 4 and 11 exist, out of order.
    engine.write(11, 1);
    engine.write(4, 2);
    engine.merge_all();
    let counts = engine.counts();
    assert_eq!((counts.units[Cause::Merge], counts.units[Cause::Pad]), (2, 10));
    assert_eq!((counts.programs[Cause::Merge], counts.programs[Cause::Pad]), (2, 4));
    assert_eq!(counts.erases[Cause::Merge], 1);
    ftl.assert_consistent();
}

#[test]
fn trimmed_blocks_are_erased_without_a_copy() {
    let geometry = geometry(16, BLOCK / PROGRAM_UNIT);
    let mut nand = Nand::new(geometry.clone());
    let mut ftl = Ftl::from(Hybrid::new(geometry, config(2, 1, 7)).unwrap());
    let mut engine = Immediate::new(&mut nand, &mut ftl);
    for lpn in 0..LOGICAL * BLOCK {
        engine.write(lpn, u64::from(lpn) + 1);
    }
    engine.merge_all();
    engine.trim(0, LOGICAL * BLOCK, u64::from(LOGICAL * BLOCK) + 1);
    engine.merge_all();
    assert_eq!(engine.counts().erases[Cause::Merge], u64::from(LOGICAL));
    assert_eq!(engine.counts().units[Cause::Merge], 0);
    ftl.assert_consistent();
    assert_eq!(ftl.mapped(), 0);
}

/// Copies per uniform random write to the whole drive, over `capacities` times its capacity.
fn copies(n: u32, k: u32, log_blocks: u32, capacities: u32) -> f64 {
    const PAGES: u32 = 128;
    let geometry = geometry(64, PAGES);
    let logical_units = 48 * geometry.units_per_block();
    let config = HybridConfig { logical_units, ..config(n, k, log_blocks) };
    let mut nand = Nand::new(geometry.clone());
    let mut ftl = Ftl::from(Hybrid::new(geometry, config).unwrap());
    let mut engine = Immediate::new(&mut nand, &mut ftl);
    let mut rng = Rng::stream(1, "random");
    for lpn in 0..logical_units {
        engine.write(lpn, u64::from(lpn) + 1);
    }
    let mut version = u64::from(logical_units);
    let mut write = |engine: &mut Immediate<&mut Nand, &mut Ftl>, count: u32| {
        for _ in 0..count {
            version += 1;
            engine.write(rng.below(u64::from(logical_units)) as u32, version);
        }
    };
    write(&mut engine, 2 * logical_units);
    let before = *engine.counts();
    write(&mut engine, capacities * logical_units);
    let counts = engine.counts().since(&before);
    ftl.assert_consistent();
    assert_eq!(counts.units[Cause::Pad], 0, "program units fill up, and all units exist");
    counts.units[Cause::Merge] as f64 / counts.units[Cause::Host] as f64
}

#[test]
fn random_writes_cost_n_over_k() {
    // All log blocks of a group have units of all its blocks, so that merging the oldest empties
    // the others: N blocks are copied for every K that the host has written.
    for (n, k) in [(1, 1), (4, 1), (2, 2), (4, 3), (4, 4), (8, 8)] {
        let (copied, expected) = (copies(n, k, 78, 12), f64::from(n) / f64::from(k));
        let off = (1.0 + copied) / (1.0 + expected) - 1.0;
        assert!(off.abs() < 0.015, "N {n}, K {k}: {copied} against {expected}");
    }
}

#[test]
fn more_log_blocks_per_group_merge_less() {
    let merged: Vec<f64> = [1, 2, 4, 8, 16].map(|k| copies(8, k, 78, 6)).into();
    assert!(merged.windows(2).all(|pair| pair[1] < 0.7 * pair[0]), "{merged:?}");
    let merged: Vec<f64> = [4, 8, 16, 32].map(|log_blocks| copies(8, 64, log_blocks, 6)).into();
    assert!(merged.windows(2).all(|pair| pair[1] < pair[0]), "{merged:?}");
}

/// Copies per write if most writes go to one logical block and the others to random ones, with few
/// log blocks on the device.
fn skewed(victim: VictimPolicy) -> f64 {
    let geometry = geometry(64, 64);
    let logical_units = 48 * geometry.units_per_block();
    let config = HybridConfig { logical_units, victim, ..config(8, 8, 12) };
    let mut nand = Nand::new(geometry.clone());
    let mut ftl = Ftl::from(Hybrid::new(geometry, config).unwrap());
    let mut engine = Immediate::new(&mut nand, &mut ftl);
    let mut rng = Rng::stream(2, "skewed");
    for lpn in 0..logical_units {
        engine.write(lpn, u64::from(lpn) + 1);
    }
    let before = *engine.counts();
    for turn in 0..20 * logical_units {
        let hot = rng.chance(0.9);
        let among = if hot { 8 } else { u64::from(logical_units) };
        engine.write(rng.below(among) as u32, u64::from(logical_units + turn) + 1);
    }
    let counts = engine.counts().since(&before);
    ftl.assert_consistent();
    counts.units[Cause::Merge] as f64 / counts.units[Cause::Host] as f64
}

#[test]
fn the_choice_of_the_log_block_matters() {
    let [fifo, greedy, lru, cost_benefit] = ["fifo", "greedy", "lru", "cost-benefit"]
        .map(|policy| skewed(VictimPolicy::from_name(policy).expect("a policy")));
    let all = format!("fifo {fifo}, greedy {greedy}, lru {lru}, cost-benefit {cost_benefit}");
    assert!(fifo != greedy && greedy != lru && lru != cost_benefit, "{all}");
}

#[test]
fn policies_without_meaning_for_log_blocks_are_refused() {
    let geometry = geometry(64, 64);
    let config = HybridConfig { victim: VictimPolicy::Random, ..config(1, 1, 4) };
    let error = config.check(&geometry).unwrap_err().to_string();
    assert!(error.contains("random") && error.contains("use fifo"), "{error}");
}
