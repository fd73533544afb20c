//! Simulated write amplification agrees with theory: all such claims of `prism validate` on less
//! flash and on all cores, and a small part of them for quick runs.

use std::sync::Mutex;

use prism_experiments::theory::HotCold;
use prism_experiments::write_amplification::{Setup, measure};
use prism_experiments::{Check, Scale, checks, retirement, theory};
use prism_ftl::{Frontiers, VictimPolicy};

#[test]
fn write_amplification_agrees_with_theory() {
    let waiting = Mutex::new(checks(1, Scale::Quarter));
    let done = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    // A separate statement, so that the lock is free while the check runs.
                    let next = waiting.lock().unwrap().pop();
                    let Some(pending) = next else { return };
                    let mut finished = pending.run();
                    done.lock().unwrap().append(&mut finished);
                }
            });
        }
    });
    let done = done.into_inner().unwrap();
    assert_eq!(done.len(), checks(1, Scale::Quarter).len());
    let failed: Vec<_> = done.iter().filter(|check| !check.passed()).map(line).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

fn line(check: &Check) -> String {
    let (expected, ours) = (check.expected, check.ours);
    let percent = 100.0 * check.difference();
    format!("{}: theory {expected:.3}, ours {ours:.3} ({percent:+.2} %)", check.what)
}

/// The same on flash of an eighth of the size, with a larger tolerance, because chance matters
/// more.
#[test]
fn theory_fast() {
    let run = |victim: &str, op, trims: f64, hot: Option<HotCold>, expected: f64| {
        let setup = Setup::uniform(2048, 64, op, VictimPolicy::from_name(victim).unwrap());
        let warm_up = if trims > 0.0 || hot.is_some() { 8.0 } else { 2.0 };
        let setup = Setup { hot, trims, warm_up, ..setup };
        let (ours, _) = measure(&setup, 1).unwrap();
        let off = ours / expected - 1.0;
        assert!(off.abs() < 0.015, "{victim} at {op}, trims {trims}: {ours} for {expected}");
    };
    run("greedy", 0.15, 0.0, None, theory::greedy(0.15, 64));
    run("fifo", 0.28, 0.0, None, theory::fifo(0.28));
    run("windowed-greedy:1", 0.28, 0.0, None, theory::fifo(0.28));
    run("random", 0.28, 0.0, None, theory::random(0.28));
    run("d-choices:3", 0.15, 0.0, None, theory::d_choices(0.15, 64, 3));
    let hot = HotCold { units: 0.2, writes: 0.8 };
    run("fifo", 0.28, 0.0, Some(hot), theory::fifo_hot_cold(0.28, hot));
    let live = theory::op_with_trims(0.15, 0.2);
    run("greedy", 0.15, 0.2, None, theory::greedy(live, 64));
}

/// Victim policies have the published order: a window lies between FIFO and greedy, and
/// cost-benefit is better than greedy if hot data and copies have separate frontiers.
#[test]
fn policies_order_as_published() {
    let run = |victim: &str, frontiers, hot| {
        let setup = Setup::uniform(1024, 64, 0.15, VictimPolicy::from_name(victim).unwrap());
        let setup = Setup { frontiers, hot, warm_up: 6.0, ..setup };
        measure(&setup, 1).unwrap().0
    };
    let uniform = |victim| run(victim, Frontiers::Shared, None);
    let windows = ["fifo", "windowed-greedy:64", "windowed-greedy:256", "windowed-greedy:1024"];
    let windows = windows.map(uniform);
    assert!(windows.is_sorted_by(|wide, narrow| wide > narrow), "{windows:?}");
    assert!((windows[3] / uniform("greedy") - 1.0).abs() < 0.005, "{windows:?}");

    let hot = Some(HotCold { units: 0.1, writes: 0.9 });
    let [greedy, choices, kawaguchi, rosenblum] =
        ["greedy", "d-choices:10", "cost-benefit", "cost-benefit:rosenblum"]
            .map(|victim| run(victim, Frontiers::Separate, hot));
    assert!(choices < 0.8 * greedy, "{choices} for {greedy}");
    assert!(kawaguchi < 0.7 * greedy, "{kawaguchi} for {greedy}");
    assert!(rosenblum < 0.7 * greedy, "{rosenblum} for {greedy}");
    let apart = theory::separated_pools(0.15, HotCold { units: 0.1, writes: 0.9 });
    let least = kawaguchi.min(rosenblum);
    assert!(least > apart, "{least} is less than the bound for known temperatures, {apart}");
}

/// Failed blocks reduce the over-provisioning by their size and by no more.
#[test]
fn failed_blocks_cost_their_over_provisioning() {
    let run = retirement::measure(VictimPolicy::Greedy, 1024, 0.28, 3).unwrap();
    let expected = theory::greedy(run.effective, 64);
    let off = run.write_amplification / expected - 1.0;
    assert!(off.abs() < 0.02, "{run:?}: {expected}");
    assert!(run.effective < run.effective_at_first - 0.05, "{run:?}");
    assert!(run.write_amplification > 1.2 * theory::greedy(run.effective_at_first, 64), "{run:?}");
    assert!(run.faults.erase_failures > 10 && run.faults.program_failures > 0, "{run:?}");
}
