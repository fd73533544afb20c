//! Simulated write amplification agrees with theory: the whole of `prism validate` that
//! makes a claim.

use prism_experiments::checks;

#[test]
fn write_amplification_agrees_with_theory() {
    let mut failed = Vec::new();
    for pending in checks(1) {
        let check = pending.run();
        let line = format!(
            "{}: theory {:.3}, ours {:.3} ({:+.2} %)",
            check.what,
            check.expected,
            check.ours,
            100.0 * check.difference()
        );
        println!("{line}");
        if !check.passed() {
            failed.push(line);
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
