//! Block-level and hybrid mapping on flash of which single operations fail, checked operation by
//! operation: a program in a log block, in a data block, in the target of a merge, and an erase.

use prism_engine::{Flash, Immediate};
use prism_ftl::{Ftl, Hybrid, HybridConfig, UnitWrite};
use prism_nand::{BlockId, Cause, Geometry, Nand, ProgramUnitId, Pun, Status, UnitTag};

/// Units of a logical block, one per program unit.
const BLOCK: u32 = 4;
/// Logical blocks of the drive, and blocks of its flash.
const LOGICAL: u32 = 3;
const BLOCKS: u32 = 12;
const UNITS: u32 = LOGICAL * BLOCK;

/// Flash that records its operations and fails those with the numbers in `fails`.
struct Scripted {
    nand: Nand,
    done: Vec<String>,
    fails: Vec<usize>,
    status: Status,
}

impl Scripted {
    /// Whether the operation `what` fails.
    fn note(&mut self, what: String) -> bool {
        let fails = self.fails.contains(&self.done.len());
        self.done.push(if fails { what + " fails" } else { what });
        self.status = if fails { Status::Failed } else { Status::Passed };
        fails
    }
}

impl Flash for Scripted {
    fn nand(&self) -> &Nand {
        &self.nand
    }

    fn nand_mut(&mut self) -> &mut Nand {
        &mut self.nand
    }

    fn program(
        &mut self,
        program_unit: ProgramUnitId,
        cause: Cause,
        units: &[UnitWrite],
        ftl: &Ftl,
    ) {
        Flash::program(&mut self.nand, program_unit, cause, units, ftl);
        let what = match units.first() {
            Some(unit) if unit.lpn != UnitWrite::PAD => format!("unit {}", unit.lpn),
            _ => "nothing".into(),
        };
        let (block, place) = (program_unit.0 / BLOCK, program_unit.0 % BLOCK);
        self.note(format!("{} {what} to {block}.{place}", cause.name()));
    }

    fn erase(&mut self, block: BlockId, cause: Cause) -> u32 {
        if self.note(format!("{} erases {}", cause.name(), block.0)) {
            return 0;
        }
        Flash::erase(&mut self.nand, block, cause)
    }

    fn may_fail(&self) -> bool {
        true
    }

    fn take_status(&mut self) -> Status {
        std::mem::replace(&mut self.status, Status::Passed)
    }
}

struct Drive {
    engine: Immediate<Scripted, Ftl>,
    newest: Vec<u64>,
    version: u64,
}

impl Drive {
    /// With three blocks in addition to data, log and merge blocks.
    fn new(config: HybridConfig) -> Self {
        let geometry =
            Geometry { blocks_per_plane: BLOCKS, pages_per_block: BLOCK, ..Geometry::SMALLEST };
        let config = HybridConfig { reserve_blocks: 2, ..config };
        let nand = Nand::with_content(geometry.clone()).with_gaps(config.gaps);
        let ftl = Ftl::from(Hybrid::new(geometry, config).unwrap());
        let flash = Scripted { nand, done: vec![], fails: vec![], status: Status::Passed };
        Self { engine: Immediate::new(flash, ftl), newest: vec![0; UNITS as usize], version: 0 }
    }

    /// Writes `units` while the operations with the numbers `fails` fail; returns the operations.
    fn write(&mut self, units: &[u32], fails: &[usize]) -> Vec<String> {
        self.engine.flash_mut().fails = fails.to_vec();
        for &lpn in units {
            self.version += 1;
            let unit = UnitWrite { lpn, source: None, version: self.version };
            let stream = self.engine.ftl().stream_of(lpn, 0);
            self.engine.write_program_unit(stream, &[unit]);
            if !self.engine.ftl().is_read_only() {
                self.newest[lpn as usize] = self.version;
            }
            self.assert_correct();
        }
        std::mem::take(&mut self.engine.flash_mut().done)
    }

    /// Every unit has its newest version at its physical unit.
    fn assert_correct(&self) {
        self.engine.ftl().assert_consistent();
        for (lpn, &version) in (0..).zip(&self.newest) {
            let found = self.engine.ftl().lookup(lpn).map(|at: Pun| {
                let unit = self.engine.flash().nand.read(at).unwrap().expect("content is kept");
                assert_eq!(unit.tag, UnitTag::Data(lpn));
                unit.version
            });
            assert_eq!(found.unwrap_or(0), version, "unit {lpn}");
        }
    }

    fn spare(&self) -> u32 {
        self.engine.ftl().spare_blocks()
    }
}

/// Writes `before` without failures, then `units` with operations that fail.
fn check(config: HybridConfig, before: &[u32], units: &[u32], fails: &[usize], expected: &[&str]) {
    let mut drive = Drive::new(config);
    drive.write(before, &[]);
    let spare = drive.spare();
    assert_eq!(drive.write(units, fails), expected);
    assert_eq!(drive.spare(), spare - fails.len() as u32, "each failure costs a block");
}

/// All units, in order.
fn all() -> Vec<u32> {
    (0..UNITS).collect()
}

#[test]
fn a_log_block_that_fails_is_closed_and_merged_before_others() {
    // Unit 1 is in the block whose program of unit 2 fails. Unit 2 is written after the logical
    // block has been copied elsewhere. The failed block is not erased.
    let expected = [
        "host unit 1 to 3.0",
        "host unit 2 to 3.1 fails",
        "retire unit 0 to 4.0",
        "retire unit 1 to 4.1",
        "retire unit 2 to 4.2",
        "retire unit 3 to 4.3",
        "retire erases 0",
        "host unit 2 to 5.0",
    ];
    check(HybridConfig::bast(UNITS, 2), &all(), &[1, 2], &[1], &expected);
    check(HybridConfig::fast(UNITS, 2, false), &all(), &[1, 2], &[1], &expected);
    // If the failed block is empty, another replaces it at once.
    let expected = ["host unit 1 to 3.0 fails", "host unit 1 to 4.0", "host unit 2 to 4.1"];
    check(HybridConfig::bast(UNITS, 2), &all(), &[1, 2], &[0], &expected);
    // A data group has its other log block.
    let group = HybridConfig { group_log_blocks: 2, ..HybridConfig::bast(UNITS, 2) };
    let expected = [
        "host unit 1 to 3.0",
        "host unit 2 to 3.1 fails",
        "retire unit 0 to 4.0",
        "retire unit 1 to 4.1",
        "retire unit 2 to 4.2",
        "retire unit 3 to 4.3",
        "retire erases 0",
        "host unit 2 to 5.0",
    ];
    check(group, &all(), &[1, 2], &[1], &expected);
}

#[test]
fn a_failed_replacement_block_is_copied_as_well() {
    let block = || HybridConfig::block(UNITS, 2, false);
    let expected = [
        "merge unit 0 to 3.0",
        "host unit 1 to 3.1 fails",
        "retire unit 0 to 4.0",
        "retire unit 1 to 4.1",
        "retire unit 2 to 4.2",
        "retire unit 3 to 4.3",
        "retire erases 0",
        "merge unit 0 to 5.0",
        "host unit 1 to 5.1",
    ];
    check(block(), &all(), &[1], &[1], &expected);
    // The copy before the unit fails: it has not taken effect, and another block is filled.
    let expected = ["merge unit 0 to 3.0 fails", "merge unit 0 to 4.0", "host unit 1 to 4.1"];
    check(block(), &all(), &[1], &[0], &expected);
}

#[test]
fn failed_padding_also_fails_the_following_program_unit() {
    let expected = ["pad nothing to 0.0 fails", "pad nothing to 1.0", "host unit 1 to 1.1"];
    check(HybridConfig::fast(UNITS, 2, false), &[], &[1], &[0], &expected);
    check(HybridConfig::block(UNITS, 2, false), &[], &[1], &[0], &expected);
    let expected = ["host unit 1 to 0.1 fails", "host unit 1 to 1.1"];
    check(HybridConfig::fast(UNITS, 2, true), &[], &[1], &[0], &expected);
}

#[test]
fn a_merge_whose_target_fails_restarts_with_another() {
    // The third logical block needs the log block of the first.
    let expected = [
        "host unit 1 to 3.0",
        "host unit 5 to 4.0",
        "merge unit 0 to 5.0",
        "merge unit 1 to 5.1 fails",
        "merge unit 0 to 6.0",
        "merge unit 1 to 6.1",
        "merge unit 2 to 6.2",
        "merge unit 3 to 6.3",
        "merge erases 0",
        "merge erases 3",
        "host unit 9 to 7.0",
    ];
    check(HybridConfig::bast(UNITS, 2), &all(), &[1, 5, 9], &[3], &expected);
    // A run is completed in place; when that fails it is copied to a fresh block.
    let expected = [
        "host unit 0 to 3.0",
        "host unit 1 to 3.1",
        "merge unit 2 to 3.2 fails",
        "retire unit 0 to 4.0",
        "retire unit 1 to 4.1",
        "retire unit 2 to 4.2",
        "retire unit 3 to 4.3",
        "retire erases 0",
        "host unit 4 to 5.0",
    ];
    check(HybridConfig::fast(UNITS, 2, false), &all(), &[0, 1, 4], &[2], &expected);
    // Two targets in a row.
    let expected = [
        "host unit 1 to 3.0",
        "host unit 2 to 3.1 fails",
        "retire unit 0 to 4.0 fails",
        "retire unit 0 to 5.0",
        "retire unit 1 to 5.1 fails",
        "retire unit 0 to 6.0",
        "retire unit 1 to 6.1",
        "retire unit 2 to 6.2",
        "retire unit 3 to 6.3",
        "retire erases 0",
        "host unit 2 to 7.0",
    ];
    check(HybridConfig::bast(UNITS, 2), &all(), &[1, 2], &[1, 2, 4], &expected);
}

#[test]
fn data_of_a_failed_block_moves_to_another_that_is_continued() {
    let expected = [
        "host unit 0 to 0.0",
        "host unit 1 to 0.1 fails",
        "retire unit 0 to 1.0",
        "host unit 1 to 1.1",
        "host unit 2 to 1.2",
    ];
    check(HybridConfig::fast(UNITS, 2, false), &[], &[0, 1, 2], &[1], &expected);
}

#[test]
fn a_block_whose_erase_fails_is_not_used_again() {
    let expected = [
        "host unit 1 to 3.0",
        "host unit 5 to 4.0",
        "merge unit 0 to 5.0",
        "merge unit 1 to 5.1",
        "merge unit 2 to 5.2",
        "merge unit 3 to 5.3",
        "merge erases 0 fails",
        "merge erases 3",
        "host unit 9 to 6.0",
    ];
    check(HybridConfig::bast(UNITS, 2), &all(), &[1, 5, 9], &[6], &expected);
}

/// The minimum is three data blocks, the fewest log blocks, one block for merges and two in
/// reserve.
#[test]
fn without_spare_the_ftl_becomes_read_only_and_keeps_its_data() {
    let configs = [
        (HybridConfig::bast(UNITS, 4), 1),
        (HybridConfig::block(UNITS, 4, false), 1),
        (HybridConfig::fast(UNITS, 4, false), 2),
    ];
    for (config, logs_min) in configs {
        let mut drive = Drive::new(config.clone());
        drive.write(&all(), &[]);
        let spare = BLOCKS - LOGICAL - logs_min - 1 - 2;
        assert_eq!(drive.spare(), spare, "{config:?}");
        let mut failures = 0;
        for turn in 0.. {
            // Of each write the operations 3 and 5 fail, until no more are made.
            let done = drive.write(&[turn * 5 % UNITS], &[3, 5]);
            failures += done.iter().filter(|what| what.ends_with("fails")).count() as u32;
            if drive.engine.ftl().is_read_only() {
                break;
            }
            assert_eq!(drive.spare(), spare - failures, "{config:?}");
            assert!(turn < 10_000, "no end: {config:?}");
        }
        assert_eq!((failures, drive.spare()), (spare + 1, 0), "{config:?}");
        assert_eq!(drive.write(&all(), &[]), [""; 0], "nothing is written any more");
    }
}

#[test]
fn factory_bad_blocks_are_never_used() {
    let bad = |count: u32| (0..count).map(|place| BlockId(2 * place));
    for (config, most) in
        [(HybridConfig::bast(UNITS, 4), 5), (HybridConfig::fast(UNITS, 4, true), 4)]
    {
        let mut drive = Drive::new(config.clone());
        drive.engine.ftl_mut().set_aside(bad(most)).unwrap();
        assert_eq!(drive.spare(), 0);
        drive.write(&[all(), all(), vec![1, 5, 9, 2, 6, 10]].concat(), &[]);
        let nand = &drive.engine.flash().nand;
        assert!(bad(most).all(|block| nand.program_units_programmed(block) == 0), "{config:?}");
        let mut drive = Drive::new(config);
        let refused = drive.engine.ftl_mut().set_aside(bad(most + 1)).unwrap_err().to_string();
        assert!(refused.contains(&format!("{} are bad from the factory", most + 1)), "{refused}");
    }
}
