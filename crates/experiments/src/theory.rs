//! Closed forms for write amplification in steady state.
//!
//! `op` is effective over-provisioning (T - U) / U with T the pages that can hold data
//! and U the logical pages; `b` is units a block. All solve small equations by bisection
//! or iteration in double precision; nothing on a simulation path uses them.

/// FIFO (least recently written), exact for any block size under uniform random writes:
/// A = 1 / (1 - x) with x = exp(-(1 - x)(1 + op)). Source: Menon; Robinson; Desnoyers,
/// SYSTOR'12; also Xiang and Kurkoski, arXiv 1110.4245, and greedy as b grows.
#[must_use]
pub fn fifo(op: f64) -> f64 {
    // x - exp(-(1-x)(1+op)) is negative below the root and positive between it and 1.
    let value = |x: f64| x - (-(1.0 - x) * (1.0 + op)).exp();
    1.0 / (1.0 - bisect(0.0, 1.0 - 1e-9, |x| value(x) < 0.0))
}

/// A random victim, exact: 1 / (1 - U/T).
#[must_use]
pub fn random(op: f64) -> f64 {
    (1.0 + op) / op
}

/// Greedy under uniform random writes with blocks of `b` units, by the mean field of Van
/// Houdt, SIGMETRICS'13, reduced to a recursion: with s the fraction of blocks that have
/// at least i valid units, s = min(1, s(i+1) + 1/(mu i)), where mu makes the sum over i
/// equal b U/T; then A = 1 / (mu U/T).
#[must_use]
pub fn greedy(op: f64, b: u32) -> f64 {
    let rho = 1.0 / (1.0 + op);
    let valid = |mu: f64| {
        let mut share = 0.0_f64;
        (1..=b).rev().fold(0.0, |sum, i| {
            share = (share + 1.0 / (mu * f64::from(i))).min(1.0);
            sum + share
        })
    };
    // More valid units as mu falls.
    let mu = bisect(1e-6, 10.0, |mu| valid(mu) > rho * f64::from(b));
    1.0 / (mu * rho)
}

/// The effective over-provisioning when a share `q` of the requests trims a random live
/// unit: (1 - 2q)/(1 - q) of the logical units are live. Source: Frankie, Hughes and
/// Kreutz-Delgado, arXiv 1208.1794.
#[must_use]
pub fn op_with_trims(op: f64, q: f64) -> f64 {
    (1.0 + op) / ((1.0 - 2.0 * q) / (1.0 - q)) - 1.0
}

/// Where `below` turns from true to false between `low` and `high`.
fn bisect(mut low: f64, mut high: f64, below: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if below(middle) { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ours: f64, published: f64) {
        assert!((ours - published).abs() < 0.0015 * published, "{ours} against {published}");
    }

    #[test]
    fn published_values_come_out() {
        for (op, expected) in [(0.07, 7.817), (0.15, 4.016), (0.28, 2.481), (0.30, 2.364)] {
            check(fifo(op), expected);
        }
        for (op, b, expected) in [
            (0.07, 64, 7.010),
            (0.15, 64, 3.800),
            (0.28, 64, 2.403),
            (0.07, 1024, 7.761),
            (0.28, 256, 2.461),
        ] {
            check(greedy(op, b), expected);
        }
        check(random(0.07), 15.29);
        check(greedy(op_with_trims(0.07, 0.1), 64), 3.013);
        check(greedy(op_with_trims(0.15, 0.2), 64), 1.624);
    }
}
