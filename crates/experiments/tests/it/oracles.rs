//! Drives with the parameters of other simulators reproduce their published results: the claims of
//! `prism validate`, without the runs of millions of requests.

use prism_experiments::{Check, Scale, oracles};

#[test]
fn results_of_other_simulators_are_reproduced() {
    let checks: Vec<Check> =
        oracles::checks(1, Scale::Quarter).into_iter().flat_map(|pending| pending.run()).collect();
    let claims = checks.iter().filter(|check| check.tolerance.is_some()).count();
    assert_eq!(claims, 6 + 3, "WiscSim's six bandwidths, three of DiskSim's means");
    let failed: Vec<_> = checks.iter().filter(|check| !check.passed()).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

/// SWTF is not slower at any load, and it is faster where many requests meet busy dies while
/// another die is idle. The published gain is about 8 %.
#[test]
fn shortest_wait_first_is_no_worse_than_first_come() {
    let curves: Vec<_> =
        [0.4, 0.5, 0.55, 0.6].map(|load| oracles::curve(load, 60_000, 3)).into_iter().collect();
    let gain = |curve: &oracles::Curve| 1.0 - curve.swtf / curve.fcfs;
    assert!(curves.iter().all(|curve| gain(curve) > -0.01), "{curves:?}");
    assert!(curves.iter().any(|curve| gain(curve) > 0.05), "{curves:?}");
}
