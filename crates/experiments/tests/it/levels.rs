//! The program that is written at each level: it holds what was written, and its counts are
//! those of the level.

use prism_experiments::levels::{Level, Outcome, Pattern, Size, run};

const SMALL: Size = Size { blocks_per_lun: 40, pages_per_block: 8, page_size: 4096 };

fn outcome(level: Level, pattern: Pattern, seed: u64) -> Outcome {
    run(level, pattern, SMALL, seed).unwrap_or_else(|e| panic!("{level:?}, {pattern:?}: {e}"))
}

/// `run` itself compares every page with what was written to it last.
#[test]
fn all_stores_hold_what_was_written_and_count_what_they_do() {
    for level in Level::ALL {
        for pattern in Pattern::ALL {
            for seed in 1..4 {
                let done = outcome(level, pattern, seed);
                let context = format!("{level:?}, {pattern:?}, seed {seed}: {done:?}");
                // Of what is in the drive's buffer, the older version may never be programmed.
                let absorbs = level == Level::Drive;
                let kept = done.host < done.written && done.host > done.written / 2;
                assert!(done.host == done.written || absorbs && kept, "{context}");
                assert_eq!(done.writes.count, done.written, "{context}");
                assert_eq!(done.reads.count > 0, pattern == Pattern::Mixed, "{context}");
                // What was programmed was erased, but for what stands in the spare flash.
                let programs = done.host + done.copies;
                let erased = done.erases * u64::from(SMALL.pages_per_block);
                let device = 8 * u64::from(SMALL.blocks_per_lun * SMALL.pages_per_block);
                assert!(erased + device / 4 > programs, "{context}");
            }
        }
    }
}

#[test]
fn writes_in_order_need_no_copies() {
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
        assert!(first != other, "{level:?}: another seed draws other pages");
    }
}

/// Copies of cleaning are posted behind the host's row, so that other LUNs work meanwhile.
#[test]
fn cleaning_at_the_policy_level_leaves_other_luns_at_work() {
    let [policy, drive] =
        [Level::Policy, Level::Drive].map(|level| outcome(level, Pattern::Random, 1));
    let programs = |done: &Outcome| done.throughput() * done.write_amplification();
    let part = programs(&policy) / programs(&drive);
    assert!(part > 0.4, "{part} of what the drive programs in the same time");
}

/// Recovery finds everything, and takes longer on more flash.
#[test]
fn recovery_reads_the_headers_of_all_rows() {
    let reopen = |blocks| prism_experiments::recovery::prepare(blocks).unwrap()().unwrap();
    let (small, large) = (reopen(16), reopen(32));
    assert!(small.mapped.0 > small.pages * prism_experiments::recovery::PAGE / 2);
    // Beside the rows there are the monitor's tables, which are small and do not grow as fast.
    let ratio = large.device_time.0 as f64 / small.device_time.0 as f64;
    assert!((1.3..2.2).contains(&ratio), "{ratio}");
}
