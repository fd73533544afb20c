//! The pictures in docs/mappings say what one write of the host causes. Here their small
//! drives do it, and each picture has to hold the sentence that comes out.

use prism_base::Bytes;
use prism_engine::Immediate;
use prism_ftl::{
    Frontiers, FtlConfig, HybridConfig, Layer, LayerConfig, RangeConfig, RangesConfig, VictimPolicy,
};
use prism_nand::{Cause, Geometry, Nand};

/// Rows of a block, each of one unit.
const ROWS: u32 = 8;
/// Units of the host: four logical blocks.
const UNITS: u32 = 4 * ROWS;

const PAGE: &str = include_str!("../../../docs/mappings/page.svg");
const BLOCK: &str = include_str!("../../../docs/mappings/block.svg");
const BAST: &str = include_str!("../../../docs/mappings/bast.svg");
const FAST: &str = include_str!("../../../docs/mappings/fast.svg");
const HYBRID: &str = include_str!("../../../docs/mappings/hybrid.svg");
const RANGES: &str = include_str!("../../../docs/mappings/ranges.svg");

/// What some writes did to flash, and where the last of them stands.
fn sentence(engine: &mut Immediate<Nand, Layer>, version: &mut u64, units: &[u32]) -> String {
    let before = *engine.counts();
    for &lpn in units {
        *version += 1;
        engine.write(lpn, *version);
    }
    engine.ftl().assert_consistent();
    engine.flash().assert_conserved();
    let done = engine.counts().since(&before);
    let by_cause = |count: &dyn Fn(Cause) -> u64| {
        let named = |cause: &Cause| (count(*cause) > 0).then(|| (cause.name(), count(*cause)));
        let parts: Vec<_> = Cause::ALL.iter().filter_map(named).collect();
        let parts: Vec<_> = parts.iter().map(|(name, n)| format!("{name} {n}")).collect();
        if parts.is_empty() { "0".to_owned() } else { parts.join(", ") }
    };
    let last = *units.last().expect("something is written");
    let at = engine.ftl().lookup(last).expect("it was written").0;
    let written: Vec<_> = units.iter().map(u32::to_string).collect();
    format!(
        "write {}: programs {}; reads {}; erases {}; {last} in block {}, row {}",
        written.join(" "),
        by_cause(&|cause| done.units[cause]),
        by_cause(&|cause| done.reads[cause]),
        by_cause(&|cause| done.erases[cause]),
        at / ROWS,
        at % ROWS,
    )
}

/// Fills a drive in order, writes, and looks for each step's sentence in the picture.
fn check(picture: &str, blocks: u32, config: LayerConfig, steps: &[&[u32]]) {
    let geometry = Geometry {
        channels: 1,
        dies_per_channel: 1,
        planes: 1,
        planes_ganged: 1,
        blocks_per_plane: blocks,
        pages_per_block: ROWS,
        pages_per_program: 1,
        dies_per_superblock: 1,
        parity: false,
        page: Bytes(4096),
        unit: Bytes(4096),
    };
    let nand = Nand::new(geometry.clone()).with_gaps(true);
    let layer = Layer::new(geometry, config, 1).unwrap();
    let units = layer.logical_units();
    let mut engine = Immediate::new(nand, layer);
    let mut version = 0;
    for lpn in 0..units {
        version += 1;
        engine.write(lpn, version);
    }
    engine.merge_all();
    for lpn in 0..units {
        let at = engine.ftl().lookup(lpn).map(|at| at.0 % ROWS);
        assert_eq!(at, Some(lpn % ROWS), "the drive is filled in order");
    }
    let told: Vec<String> =
        steps.iter().map(|units| sentence(&mut engine, &mut version, units)).collect();
    let missing: Vec<_> = told.iter().filter(|told| !picture.contains(told.as_str())).collect();
    assert!(missing.is_empty(), "not in the picture: {missing:#?}");
}

#[test]
fn the_page_map_writes_elsewhere_and_cleans_later() {
    let page = FtlConfig::simple(UNITS, VictimPolicy::Greedy, Frontiers::Shared);
    let later: &[u32] = &[8, 9, 11, 12, 13, 0, 16, 24];
    check(PAGE, 7, LayerConfig::Page(page), &[&[10], later, &[17]]);
}

#[test]
fn a_map_by_blocks_copies_what_stands_before_and_behind() {
    let block = HybridConfig::block(UNITS, 1, true);
    check(BLOCK, 6, LayerConfig::Hybrid(block), &[&[10], &[16]]);
}

#[test]
fn bast_logs_and_merges_one_logical_block() {
    let bast = HybridConfig::bast(UNITS, 1);
    check(BAST, 6, LayerConfig::Hybrid(bast), &[&[10], &[13, 10], &[17]]);
}

#[test]
fn fast_logs_and_merges_the_oldest_log_block() {
    let fast = HybridConfig::fast(UNITS, 2, true);
    let later: &[u32] = &[17, 11, 18, 12, 19, 13, 20];
    check(FAST, 7, LayerConfig::Hybrid(fast), &[&[10], later, &[26]]);
}

#[test]
fn a_group_gathers_all_its_log_blocks() {
    let bast = HybridConfig::bast(UNITS, 2);
    let config =
        HybridConfig { group_blocks: 2, group_log_blocks: 2, victim: VictimPolicy::Fifo, ..bast };
    let later: &[u32] = &[3, 11, 4, 12, 5, 13, 6, 14, 7, 15, 2, 9, 1, 10, 3];
    check(HYBRID, 7, LayerConfig::Hybrid(config), &[&[10], later, &[12]]);
}

#[test]
fn ranges_do_each_what_their_mapping_does() {
    let range = |blocks_per_plane, layer| RangeConfig { blocks_per_plane, layer };
    let block = HybridConfig::block(UNITS / 2, 1, true);
    let page = FtlConfig::simple(UNITS / 2, VictimPolicy::Greedy, Frontiers::Shared);
    let ranges = vec![range(4, LayerConfig::Hybrid(block)), range(5, LayerConfig::Page(page))];
    let config = LayerConfig::Ranges(RangesConfig { ranges });
    check(RANGES, 9, config, &[&[10], &[26], &[1]]);
}
