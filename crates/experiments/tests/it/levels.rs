//! The stores at each level of the library keep the data that was written, and count their flash
//! operations.

use prism_experiments::levels::{Level, LevelFigures, Pattern, Size, run};

const SMALL: Size = Size { blocks_per_lun: 40, pages_per_block: 8, page_size: 4096 };

fn outcome(level: Level, pattern: Pattern, seed: u64) -> LevelFigures {
    run(level, pattern, SMALL, seed).unwrap_or_else(|e| panic!("{level:?}, {pattern:?}: {e}"))
}

/// `run` itself checks that every page holds what was written to it last.
#[test]
fn all_stores_keep_data_and_count_operations() {
    for level in Level::ALL {
        for pattern in Pattern::ALL {
            for seed in 1..4 {
                let done = outcome(level, pattern, seed);
                let context = format!("{level:?}, {pattern:?}, seed {seed}: {done:?}");
                // A page that is overwritten in a write buffer, or while it waits for a LUN, is
                // programmed once.
                let kept = done.host <= done.written && done.host > done.written / 2;
                assert!(kept, "{context}");
                assert_eq!(done.writes.count, done.written, "{context}");
                assert_eq!(done.reads.count > 0, pattern == Pattern::Mixed, "{context}");
                // Programmed pages were erased, except those that still lie in the spare flash.
                let programs = done.host + done.copies;
                let erased = done.erases * u64::from(SMALL.pages_per_block);
                let device = 8 * u64::from(SMALL.blocks_per_lun * SMALL.pages_per_block);
                assert!(erased + device / 4 > programs, "{context}");
            }
        }
    }
}

#[test]
fn sequential_writes_need_no_copies() {
    for level in Level::ALL {
        let amplification = outcome(level, Pattern::Sequential, 1).write_amplification();
        assert!((0.99..1.1).contains(&amplification), "{level:?}: {amplification}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for level in Level::ALL {
        let [first, again, other] = [1, 1, 2].map(|seed| outcome(level, Pattern::Mixed, seed));
        assert_eq!(first, again, "{level:?}");
        assert!(first != other, "{level:?}: another seed gives other pages");
    }
}

/// Copies are queued after the program unit of the host, so that other LUNs work in parallel.
#[test]
fn cleaning_at_the_policy_level_keeps_other_luns_busy() {
    let [policy, drive] =
        [Level::Policy, Level::Drive].map(|level| outcome(level, Pattern::Random, 1));
    let programs = |done: &LevelFigures| done.throughput() * done.write_amplification();
    let part = programs(&policy) / programs(&drive);
    assert!(part > 0.4, "{part} of the pages that the drive programs in the same time");
}

/// Recovery finds all data, and takes longer on more flash.
#[test]
fn recovery_reads_the_headers_of_all_program_units() {
    let reopen = |blocks| prism_experiments::recovery::prepare(blocks).unwrap()().unwrap();
    let (small, large) = (reopen(16), reopen(32));
    assert!(small.mapped.0 > small.pages * prism_experiments::recovery::PAGE / 2);
    // The tables of the monitor are read as well; they are small and grow less.
    let ratio = large.device_time.0 as f64 / small.device_time.0 as f64;
    assert!((1.3..2.2).contains(&ratio), "{ratio}");
}
