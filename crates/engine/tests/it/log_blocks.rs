//! Block-level mapping, BAST and FAST, with exact counts for sequences made by hand.

use prism_base::Bytes;
use prism_engine::{FlashCounts, Immediate};
use prism_ftl::{Ftl, Hybrid, HybridConfig, MergeCounts};
use prism_nand::{Cause, Geometry, Nand};

/// Units of a logical block, one per program unit.
const BLOCK: u32 = 16;
/// Logical blocks of the drive.
const LOGICAL: u32 = 12;
const UNITS: u32 = LOGICAL * BLOCK;

/// The operations of a sequence of writes, on a drive that was filled in order.
struct Done {
    copied: u64,
    padded: u64,
    erased: u64,
    merges: MergeCounts,
}

struct Drive {
    engine: Immediate<Nand, Ftl>,
    version: u64,
    before: (FlashCounts, MergeCounts),
}

impl Drive {
    fn new(config: HybridConfig) -> Self {
        let geometry = Geometry {
            channels: 2,
            blocks_per_plane: 12,
            pages_per_block: BLOCK,
            ..Geometry::SMALLEST
        };
        let nand = Nand::with_content(geometry.clone()).with_gaps(config.gaps);
        let ftl = Ftl::from(Hybrid::new(geometry, config).unwrap());
        let before = Default::default();
        Self { engine: Immediate::new(nand, ftl), version: 0, before }
    }

    fn filled(config: HybridConfig) -> Self {
        let mut drive = Self::new(config);
        drive.write(0..UNITS);
        drive.engine.merge_all();
        let counts = *drive.engine.counts();
        assert_eq!(counts.units.total(), u64::from(UNITS), "the first writes are not copied");
        drive.before = (counts, drive.merges());
        drive
    }

    fn write(&mut self, units: impl IntoIterator<Item = u32>) {
        for lpn in units {
            self.version += 1;
            self.engine.write(lpn, self.version);
        }
    }

    fn merges(&self) -> MergeCounts {
        match self.engine.ftl() {
            Ftl::Hybrid(map) => *map.merges(),
            other => panic!("another FTL: {other:?}"),
        }
    }

    /// The operations since the drive was filled; checks the state as well.
    fn done(&self) -> Done {
        self.engine.ftl().assert_consistent();
        self.engine.flash().assert_conserved();
        let counts = self.engine.counts().since(&self.before.0);
        let (after, before) = (self.merges(), self.before.1);
        Done {
            copied: counts.units[Cause::Merge],
            padded: counts.units[Cause::Pad],
            erased: counts.erases[Cause::Merge],
            merges: MergeCounts {
                switches: after.switches - before.switches,
                partial: after.partial - before.partial,
                full: after.full - before.full,
                empty: after.empty - before.empty,
            },
        }
    }
}

fn merges(switches: u64, partial: u64, full: u64, empty: u64) -> MergeCounts {
    MergeCounts { switches, partial, full, empty }
}

/// The cost of the writes, including the merges that they leave pending.
fn cost(config: &HybridConfig, writes: impl IntoIterator<Item = u32>) -> Done {
    let mut drive = Drive::filled(config.clone());
    drive.write(writes);
    drive.engine.merge_all();
    drive.done()
}

#[test]
fn block_level_mapping_rewrites_a_block_for_a_unit() {
    let block = HybridConfig::block(UNITS, 2, false);
    let b = u64::from(BLOCK);
    for offset in 0..BLOCK {
        let one = cost(&block, [BLOCK + offset]);
        assert_eq!((one.copied, one.erased, one.padded), (b - 1, 1, 0), "offset {offset}");
    }
    // Ascending writes of a block rewrite it once, descending ones once per unit.
    let up = cost(&block, [3, 7, 9]);
    assert_eq!((up.copied, up.erased), (b - 3, 1));
    let down = cost(&block, [9, 7, 3]);
    assert_eq!((down.copied, down.erased), (3 * (b - 1), 3));
    // Two blocks may be open at a time; a third one completes the one written least recently.
    let two = cost(&block, [0, BLOCK, 1, BLOCK + 1, 2, BLOCK + 2]);
    assert_eq!((two.copied, two.erased), (2 * (b - 3), 2));
    let three = cost(&block, [0, BLOCK, 2 * BLOCK, 1]);
    assert_eq!((three.copied, three.erased), (4 * b - 4, 4));
}

#[test]
fn block_level_mapping_switches_whole_blocks() {
    for open in 1..4 {
        let config = HybridConfig::block(UNITS, open, false);
        let done = cost(&config, (0..3).flat_map(|_| 0..UNITS));
        assert_eq!((done.copied, done.padded), (0, 0));
        assert_eq!(done.erased, u64::from(3 * LOGICAL));
        assert_eq!(done.merges, merges(u64::from(3 * LOGICAL), 0, 0, done.erased));
    }
}

#[test]
fn skipped_offsets_are_padded_unless_gaps_are_allowed() {
    for (gaps, padded) in [(false, 5 + 4), (true, 0)] {
        for config in [HybridConfig::block(UNITS, 2, gaps), HybridConfig::fast(UNITS, 2, gaps)] {
            let mut drive = Drive::new(config);
            drive.write([5, 10]);
            let done = drive.done();
            assert_eq!((done.copied, done.padded, done.erased), (0, padded, 0), "{gaps}");
            // The skipped offsets are before the last program unit now.
            assert_eq!(drive.engine.ftl().lookup(5).map(|at| at.0 % BLOCK), Some(5));
            assert_eq!(drive.engine.ftl().lookup(10).map(|at| at.0 % BLOCK), Some(10));
        }
    }
}

#[test]
fn a_partly_written_block_is_continued() {
    let mut drive = Drive::new(HybridConfig::block(UNITS, 1, false));
    // With one block open at a time, each of them completes the other.
    for turn in 0..4 {
        let first = turn * BLOCK / 4;
        drive.write(first..first + BLOCK / 4);
        drive.write(BLOCK + first..BLOCK + first + BLOCK / 4);
    }
    let done = drive.done();
    assert_eq!((done.copied, done.padded, done.erased), (0, 0, 0));
}

#[test]
fn fast_writes_new_units_in_place() {
    let mut drive = Drive::new(HybridConfig::fast(UNITS, 3, false));
    for offset in 0..BLOCK {
        drive.write((0..LOGICAL).map(|block| block * BLOCK + offset));
    }
    let done = drive.done();
    assert_eq!((done.copied, done.padded, done.erased), (0, 0, 0));
    let Ftl::Hybrid(map) = drive.engine.ftl() else { panic!("a map by blocks") };
    assert_eq!((map.log_blocks(), drive.merges()), (0, merges(0, 0, 0, 0)));
}

#[test]
fn fast_switches_blocks_written_in_order() {
    let config = HybridConfig::fast(UNITS, 2, false);
    let done = cost(&config, (0..3).flat_map(|_| 0..UNITS));
    assert_eq!((done.copied, done.padded, done.erased), (0, 0, u64::from(3 * LOGICAL)));
    // By then the replaced block has no valid units.
    assert_eq!(done.merges, merges(u64::from(3 * LOGICAL), 0, 0, done.erased));
}

#[test]
fn a_run_that_ends_early_is_completed() {
    let config = HybridConfig::fast(UNITS, 3, false);
    for program_units in 1..BLOCK {
        let done = cost(
            &config,
            (0..LOGICAL).flat_map(|block| block * BLOCK..block * BLOCK + program_units),
        );
        let rest = u64::from(LOGICAL * (BLOCK - program_units));
        assert_eq!(
            (done.copied, done.erased),
            (rest, u64::from(LOGICAL)),
            "{program_units} program units"
        );
        assert_eq!(done.merges, merges(0, u64::from(LOGICAL), 0, 0));
    }
}

#[test]
fn a_unit_that_does_not_continue_the_run_ends_it() {
    let config = HybridConfig::fast(UNITS, 3, false);
    let mut drive = Drive::filled(config);
    // Units 0 to 4 are a run; 9 does not continue it and goes to the log, and so does 5 then.
    drive.write([0, 1, 2, 3, 4, 9, 5]);
    drive.engine.merge_all();
    let done = drive.done();
    // The run is completed with the newest version of all units, including 5 and 9, which leaves
    // the log block without valid units.
    assert_eq!(done.merges, merges(0, 1, 0, 1));
    assert_eq!((done.copied, done.erased), (u64::from(BLOCK) - 5, 2));
}

#[test]
fn the_oldest_log_block_is_merged_for_each_of_its_blocks() {
    // One log block for random writes: sixteen units of four logical blocks, none at offset 0.
    let config = HybridConfig::fast(UNITS, 2, false);
    let mut drive = Drive::filled(config);
    let units = (0..BLOCK).map(|turn| (turn % 4) * BLOCK + 1 + turn / 4);
    drive.write(units);
    assert_eq!(drive.done().copied, 0, "the log block is full, without a copy");
    drive.write([5 * BLOCK + 1]);
    let done = drive.done();
    assert_eq!(done.merges, merges(0, 0, 4, 0));
    assert_eq!((done.copied, done.erased), (4 * u64::from(BLOCK), 4 + 1));
}

#[test]
fn units_overwritten_in_the_log_are_not_copied() {
    let config = HybridConfig::fast(UNITS, 3, false);
    let mut drive = Drive::filled(config);
    // The second log block has all units of the first one.
    let units = || (0..BLOCK).map(|turn| (turn % 4) * BLOCK + 1 + turn / 4);
    drive.write(units().chain(units()));
    drive.write([5 * BLOCK + 1]);
    let done = drive.done();
    assert_eq!((done.merges, done.copied, done.erased), (merges(0, 0, 0, 1), 0, 1));
}

#[test]
fn bast_merges_the_log_block_written_least_recently() {
    // Two log blocks: that of logical block 0 was written again, so that that of 1 is merged.
    let config = HybridConfig::bast(UNITS, 2);
    let mut drive = Drive::filled(config);
    drive.write([3, BLOCK + 3, 7, 2 * BLOCK + 3]);
    let done = drive.done();
    assert_eq!((done.merges.full, done.copied, done.erased), (1, u64::from(BLOCK), 2));
    drive.write([11]);
    assert_eq!(drive.done().merges.full, 1, "logical block 0 still has its log block");
    drive.write([BLOCK + 4]);
    assert_eq!(drive.done().merges.full, 2, "and logical block 1 has not");
}

#[test]
fn invalid_configurations_are_named() {
    let geometry = |page: u64| Geometry {
        page: Bytes(page),
        ..Drive::new(HybridConfig::block(UNITS, 1, false)).engine.ftl().geometry().clone()
    };
    let wide = geometry(8192);
    for config in [HybridConfig::block(64, 1, false), HybridConfig::fast(64, 2, false)] {
        let message = config.check(&wide).unwrap_err().to_string();
        assert!(message.contains("ftl.mapping_unit"), "{message}");
    }
    HybridConfig::bast(64, 1).check(&wide).unwrap();
    let message = HybridConfig::fast(64, 1, false).check(&geometry(4096)).unwrap_err().to_string();
    assert!(message.contains("log_share") && message.contains("between 2"), "{message}");
}
