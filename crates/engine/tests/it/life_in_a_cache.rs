//! The picture docs/mappings/tiers.svg shows what one host write causes on a drive with an SLC
//! write cache. This test replays it on a small drive and compares the sentences in the picture
//! with the operations counted. Pictures of other mappings: `life_of_a_write.rs`.

use prism_engine::{FlashCounts, Immediate};
use prism_ftl::{Frontiers, Ftl, FtlConfig, PageConfig, SlcConfig, SlcUse, VictimPolicy};
use prism_nand::{Cause, Geometry, Nand, Slc};

const PICTURE: &str = include_str!("../../../../docs/mappings/tiers.svg");
/// Pages per block with two bits per cell, one unit each.
const PROGRAM_UNITS: u32 = 8;
/// Logical units.
const UNITS: u32 = 4 * PROGRAM_UNITS;

fn drive() -> Immediate<Nand, Ftl> {
    let geometry = Geometry {
        blocks_per_plane: 12,
        pages_per_block: PROGRAM_UNITS,
        slc: Some(Slc { blocks: 2, bits: 2 }),
        ..Geometry::SMALLEST
    };
    let usage = SlcUse::Cache { fold_when_idle: true };
    let config = PageConfig {
        slc: Some(SlcConfig { usage, free_blocks_low: 0, free_blocks_high: 0 }),
        free_blocks_low: 3,
        free_blocks_high: 3,
        ..PageConfig::simple(UNITS, VictimPolicy::Greedy, Frontiers::Separate)
    };
    let ftl = Ftl::new(geometry.clone(), FtlConfig::Page(config), 1).unwrap();
    Immediate::new(Nand::new(geometry), ftl)
}

/// The operations since `before`, as the picture words them.
fn done(engine: &Immediate<Nand, Ftl>, before: &FlashCounts) -> String {
    engine.ftl().assert_consistent();
    engine.flash().assert_conserved();
    let done = engine.counts().since(before);
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

#[test]
fn a_write_cache_takes_a_write_and_folds_it_later() {
    let mut engine = drive();
    let mut version = 0;
    let mut put = |engine: &mut Immediate<Nand, Ftl>, lpn: u32| {
        version += 1;
        engine.write(lpn, version);
    };
    (0..UNITS).for_each(|lpn| put(&mut engine, lpn));
    engine.rest();
    let at = engine.ftl().lookup(10).expect("it was written").0;
    assert_eq!((at / PROGRAM_UNITS, at % PROGRAM_UNITS), (2, 2), "as in the picture");
    let mut sentences = Vec::new();
    for (what, units) in [("10", &[10][..]), ("8 10 9", &[8, 10, 9])] {
        let before = *engine.counts();
        units.iter().for_each(|&lpn| put(&mut engine, lpn));
        let last = units[units.len() - 1];
        let at = engine.ftl().lookup(last).expect("it was written").0;
        let (block, page) = (at / PROGRAM_UNITS, at % PROGRAM_UNITS);
        let done = done(&engine, &before);
        sentences.push(format!("write {what}: {done}; {last} in block {block}, page {page}"));
    }
    let before = *engine.counts();
    engine.rest();
    sentences.push(format!("rest: {}", done(&engine, &before)));
    let missing: Vec<_> =
        sentences.iter().filter(|sentence| !PICTURE.contains(*sentence)).collect();
    assert!(missing.is_empty(), "not in the picture: {missing:#?}");
}
