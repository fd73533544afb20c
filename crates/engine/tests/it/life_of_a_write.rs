//! The pictures in docs/mappings show what one host write causes. These tests replay them on small
//! drives and compare the sentences in the pictures with the operations counted.

use prism_engine::Immediate;
use prism_ftl::{
    Frontiers, Ftl, FtlConfig, HybridConfig, PageConfig, RangeConfig, RangesConfig, VictimPolicy,
    ZonedConfig,
};
use prism_nand::{Cause, Geometry, Nand};

/// Pages per block, each of one unit and programmed by itself.
const PROGRAM_UNITS: u32 = 8;
/// Logical units: four logical blocks.
const UNITS: u32 = 4 * PROGRAM_UNITS;

const PAGE: &str = include_str!("../../../../docs/mappings/page.svg");
const BLOCK: &str = include_str!("../../../../docs/mappings/block.svg");
const BAST: &str = include_str!("../../../../docs/mappings/bast.svg");
const FAST: &str = include_str!("../../../../docs/mappings/fast.svg");
const HYBRID: &str = include_str!("../../../../docs/mappings/hybrid.svg");
const ZNS: &str = include_str!("../../../../docs/mappings/zns.svg");
const RANGES: &str = include_str!("../../../../docs/mappings/ranges.svg");

/// A small drive and the host that writes to it.
struct Life {
    engine: Immediate<Nand, Ftl>,
    version: u64,
    sentences: Vec<String>,
}

impl Life {
    /// A drive that was filled in order.
    fn new(blocks: u32, config: FtlConfig) -> Self {
        let geometry = Geometry {
            blocks_per_plane: blocks,
            pages_per_block: PROGRAM_UNITS,
            ..Geometry::SMALLEST
        };
        let nand = Nand::new(geometry.clone()).with_gaps(true);
        let ftl = Ftl::new(geometry, config, 1).unwrap();
        let mut life =
            Self { engine: Immediate::new(nand, ftl), version: 0, sentences: Vec::new() };
        life.put(0..UNITS);
        life.engine.merge_all();
        for lpn in 0..UNITS {
            let at = life.engine.ftl().lookup(lpn).map(|at| at.0 % PROGRAM_UNITS);
            assert_eq!(at, Some(lpn % PROGRAM_UNITS), "the drive is filled in order");
        }
        life
    }

    fn put(&mut self, units: impl IntoIterator<Item = u32>) {
        for lpn in units {
            self.version += 1;
            self.engine.write(lpn, self.version);
        }
    }

    /// Writes `units`, and records the sentence about the operations.
    fn write(&mut self, units: &[u32]) {
        let written: Vec<_> = units.iter().map(u32::to_string).collect();
        let last = *units.last().expect("the list of units is not empty");
        let done = self.operations(|life| life.put(units.iter().copied()));
        let at = self.engine.ftl().lookup(last).expect("it was written").0;
        let (block, page) = (at / PROGRAM_UNITS, at % PROGRAM_UNITS);
        let what = written.join(" ");
        self.sentences.push(format!("write {what}: {done}; {last} in block {block}, page {page}"));
    }

    /// Resets a zone, and records the sentence about the operations.
    fn reset(&mut self, zone: u32) {
        let done = self.operations(|life| {
            life.engine.ftl_mut().zoned_mut().expect("zones").reset(zone);
            life.engine.clean_to_high();
        });
        self.sentences.push(format!("reset {zone}: {done}"));
    }

    fn operations(&mut self, run: impl FnOnce(&mut Self)) -> String {
        let before = *self.engine.counts();
        run(self);
        self.engine.ftl().assert_consistent();
        self.engine.flash().assert_conserved();
        let done = self.engine.counts().since(&before);
        let by_cause = |count: &dyn Fn(Cause) -> u64| {
            let caused = Cause::ALL.into_iter().filter(|&cause| count(cause) > 0);
            let parts: Vec<_> = caused.map(|c| format!("{} {}", c.name(), count(c))).collect();
            if parts.is_empty() { "0".to_owned() } else { parts.join(", ") }
        };
        format!(
            "programs {}; reads {}; erases {}",
            by_cause(&|cause| done.units[cause]),
            by_cause(&|cause| done.reads[cause]),
            by_cause(&|cause| done.erases[cause]),
        )
    }

    /// Checks that the picture has each recorded sentence.
    fn is_in(&self, picture: &str) {
        let missing: Vec<_> =
            self.sentences.iter().filter(|sentence| !picture.contains(*sentence)).collect();
        assert!(missing.is_empty(), "not in the picture: {missing:#?}");
    }
}

/// Fills a drive in order, writes step by step, and looks for each step in the picture.
fn check(picture: &str, blocks: u32, config: FtlConfig, steps: &[&[u32]]) {
    let mut life = Life::new(blocks, config);
    steps.iter().for_each(|units| life.write(units));
    life.is_in(picture);
}

#[test]
fn the_page_map_writes_elsewhere_and_cleans_later() {
    let page = PageConfig::simple(UNITS, VictimPolicy::Greedy, Frontiers::Shared);
    let later: &[u32] = &[8, 9, 11, 12, 13, 0, 16, 24];
    check(PAGE, 7, FtlConfig::Page(page), &[&[10], later, &[17]]);
}

#[test]
fn block_level_mapping_copies_the_rest_of_the_block() {
    let block = HybridConfig::block(UNITS, 1, true);
    check(BLOCK, 6, FtlConfig::Hybrid(block), &[&[10], &[16]]);
}

#[test]
fn bast_logs_and_merges_one_logical_block() {
    let bast = HybridConfig::bast(UNITS, 1);
    check(BAST, 6, FtlConfig::Hybrid(bast), &[&[10], &[13, 10], &[17]]);
}

#[test]
fn fast_logs_and_merges_the_oldest_log_block() {
    let fast = HybridConfig::fast(UNITS, 2, true);
    let later: &[u32] = &[17, 11, 18, 12, 19, 13, 20];
    check(FAST, 7, FtlConfig::Hybrid(fast), &[&[10], later, &[26]]);
}

#[test]
fn a_group_merges_all_its_log_blocks() {
    let bast = HybridConfig::bast(UNITS, 2);
    let config =
        HybridConfig { group_blocks: 2, group_log_blocks: 2, victim: VictimPolicy::Fifo, ..bast };
    let later: &[u32] = &[3, 11, 4, 12, 5, 13, 6, 14, 7, 15, 2, 9, 1, 10, 3];
    check(HYBRID, 7, FtlConfig::Hybrid(config), &[&[10], later, &[12]]);
}

#[test]
fn each_range_uses_its_mapping() {
    let range = |blocks_per_plane, ftl| RangeConfig { blocks_per_plane, ftl };
    let block = HybridConfig::block(UNITS / 2, 1, true);
    let page = PageConfig::simple(UNITS / 2, VictimPolicy::Greedy, Frontiers::Shared);
    let ranges = vec![range(4, FtlConfig::Hybrid(block)), range(5, FtlConfig::Page(page))];
    let config = FtlConfig::Ranges(RangesConfig { ranges });
    check(RANGES, 9, config, &[&[10], &[26], &[1]]);
}

/// The host FTL appends to zones: its unit 10 is written to the drive's unit 32, and so on.
#[test]
fn a_zoned_drive_writes_in_order() {
    let zones = ZonedConfig { zones: 6, zone_units: PROGRAM_UNITS, kept: 0 };
    let mut life = Life::new(6, FtlConfig::Zoned(zones));
    life.write(&[32]);
    life.write(&[33, 34, 35, 36, 37, 38, 39, 40, 41]);
    life.reset(1);
    life.is_in(ZNS);
}
