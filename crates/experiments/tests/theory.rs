//! Simulated write amplification agrees with theory: the whole of `prism validate` that
//! makes a claim, on all cores, and a small part of it for the short loop.

use std::sync::Mutex;

use prism_experiments::write_amplification::{Setup, measure};
use prism_experiments::{Check, checks, theory};
use prism_ftl::VictimPolicy;

#[test]
fn write_amplification_agrees_with_theory() {
    let waiting = Mutex::new(checks(1));
    let done = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    // Bound apart, so that the lock is free while the check runs.
                    let next = waiting.lock().unwrap().pop();
                    let Some(pending) = next else { return };
                    let check = pending.run();
                    done.lock().unwrap().push(check);
                }
            });
        }
    });
    let done = done.into_inner().unwrap();
    assert_eq!(done.len(), checks(1).len());
    let failed: Vec<_> = done.iter().filter(|check| !check.passed()).map(line).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

fn line(check: &Check) -> String {
    let (expected, ours) = (check.expected, check.ours);
    let percent = 100.0 * check.difference();
    format!("{}: theory {expected:.3}, ours {ours:.3} ({percent:+.2} %)", check.what)
}

/// The same on flash an eighth the size, where chance has more of a say.
#[test]
fn theory_fast() {
    let run = |victim, op, trims: f64, expected: f64| {
        let setup = Setup {
            blocks: 2048,
            units_per_block: 64,
            op,
            victim,
            trims,
            warm_up: if trims > 0.0 { 8.0 } else { 2.0 },
            measured: 2.0,
        };
        let (ours, _) = measure(&setup, 1).unwrap();
        let off = ours / expected - 1.0;
        assert!(off.abs() < 0.015, "{victim:?} at {op}, trims {trims}: {ours} for {expected}");
    };
    run(VictimPolicy::Greedy, 0.15, 0.0, theory::greedy(0.15, 64));
    run(VictimPolicy::Fifo, 0.28, 0.0, theory::fifo(0.28));
    run(VictimPolicy::Random, 0.28, 0.0, theory::random(0.28));
    let live = theory::op_with_trims(0.15, 0.2);
    run(VictimPolicy::Greedy, 0.15, 0.2, theory::greedy(live, 64));
}
