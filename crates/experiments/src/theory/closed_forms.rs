//! Closed forms for write amplification in steady state.
//!
//! `op` is the effective over-provisioning (T - U) / U, where T is the number of pages that can
//! hold data and U the number of logical pages; `b` is the number of units per block. The
//! functions solve small equations by bisection or iteration in double precision. No simulation
//! depends on their results.

use prism_ftl::MeanField;

/// FIFO victims (the block written longest ago) under uniform random writes, exact for any block
/// size: A = 1 / (1 - x) with x = exp(-(1 - x)(1 + op)). Greedy victims approach this as b grows.
/// Source: Menon; Robinson; Desnoyers, SYSTOR'12; also Xiang and Kurkoski, arXiv 1110.4245.
#[must_use]
pub fn fifo(op: f64) -> f64 {
    // x - exp(-(1-x)(1+op)) is negative below the root and positive between it and 1.
    let value = |x: f64| x - (-(1.0 - x) * (1.0 + op)).exp();
    1.0 / (1.0 - bisect(0.0, 1.0 - 1e-9, |x| value(x) < 0.0))
}

/// Random victims, exact: A = 1 / (1 - U/T).
#[must_use]
pub fn random(op: f64) -> f64 {
    (1.0 + op) / op
}

/// Greedy victims under uniform random writes with blocks of `b` units, by the mean field of Van
/// Houdt, SIGMETRICS'13. It reduces to a recursion: if s(i) is the fraction of blocks with at
/// least i valid units, then s(i) = min(1, s(i+1) + 1/(mu i)), where mu is chosen so that the sum
/// of s over i is b U/T. Then A = 1 / (mu U/T).
#[must_use]
pub fn greedy(op: f64, b: u32) -> f64 {
    mean_field(None, op, b)
}

/// The block with fewest valid units among `d` random blocks is the victim, under uniform random
/// writes with blocks of `b` units. The recursion is that of [`greedy`], except that s(i) solves
/// s^d + mu i (s - s(i+1)) = 1, because all d blocks have at least i valid units with probability
/// s^d. With d = 1 the victim is [`random`]; greedy is the limit of large d. Source: Van Houdt,
/// SIGMETRICS'13.
#[must_use]
pub fn d_choices(op: f64, b: u32, d: u32) -> f64 {
    mean_field(Some(d), op, b)
}

/// Write amplification by the mean field with which drives are also prepared in steady state.
fn mean_field(choices: Option<u32>, op: f64, b: u32) -> f64 {
    let rho = 1.0 / (1.0 + op);
    1.0 / (MeanField::solve(choices, rho * f64::from(b), b).mu * rho)
}

/// Writes to hot and to cold units, uniform within each of the two groups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HotCold {
    /// Share of the logical units that is hot, between 0 and 1.
    pub units: f64,
    /// Share of the writes that goes to the hot units, between 0 and 1.
    pub writes: f64,
}

impl HotCold {
    /// (share of the units, share of the writes) of the hot and of the cold group.
    fn parts(self) -> [(f64, f64); 2] {
        [(self.units, self.writes), (1.0 - self.units, 1.0 - self.writes)]
    }
}

/// FIFO victims with hot and cold data in the same blocks, exact for any block size and for one
/// or two write frontiers: A is the sum over both groups of r / (1 - exp(-(r/f)(1 + op)/A)), where
/// a group has the share f of the units and r of the writes. A unit is still valid when its block
/// becomes the victim if none of the U (1 + op) / A writes since then overwrote it. Source:
/// Desnoyers, SYSTOR'12.
#[must_use]
pub fn fifo_hot_cold(op: f64, hot: HotCold) -> f64 {
    let mixed = |a: f64| {
        let part = |(f, r): (f64, f64)| r / (1.0 - (-(r / f) * (1.0 + op) / a).exp());
        hot.parts().into_iter().map(part).sum::<f64>()
    };
    // FIFO victims are not fuller than random ones, which bounds the root.
    bisect(1.0, 2.0 * random(op), |a| a < mixed(a))
}

/// Hot and cold data in separate pools of blocks, each with FIFO victims (or greedy ones with
/// large blocks), and with the spare flash divided between the pools in the best way. This is a
/// lower bound for drives that know which units are hot. Source: Desnoyers, SYSTOR'12.
#[must_use]
pub fn separated_pools(op: f64, hot: HotCold) -> f64 {
    let [(hot_units, hot_writes), (cold_units, cold_writes)] = hot.parts();
    let divided = |share: f64| {
        hot_writes * fifo(op * share / hot_units)
            + cold_writes * fifo(op * (1.0 - share) / cold_units)
    };
    // The function is convex in the share, so its minimum is where it begins to rise.
    let step = 1e-5;
    let best = bisect(step, 1.0 - 2.0 * step, |share| divided(share + step) < divided(share));
    divided(best)
}

/// The effective over-provisioning if a share `q` of the requests trims a random live unit. Then
/// (1 - 2q)/(1 - q) of the logical units are live. Source: Frankie, Hughes and Kreutz-Delgado,
/// arXiv 1208.1794.
#[must_use]
pub fn op_with_trims(op: f64, q: f64) -> f64 {
    (1.0 + op) / ((1.0 - 2.0 * q) / (1.0 - q)) - 1.0
}

/// Hybrid mapping under uniform random writes, with `k` log blocks for each group of `n` logical
/// blocks: A = 1 + n / k. When the oldest log block of a group is merged, it has live units of all
/// logical blocks of the group, so each of these is gathered once from all the log blocks. The log
/// blocks then hold no live unit, and `k` blocks can be written before the next merge. This is
/// exact if a block has many more units than a group has logical blocks, and if the younger log
/// blocks do not overwrite all of the oldest one (k up to about 2 n). With n = 1 and k = 1 a
/// logical block is rewritten for each log block.
#[must_use]
pub fn hybrid(n: u32, k: u32) -> f64 {
    1.0 + f64::from(n) / f64::from(k)
}

/// Block-level mapping under uniform random writes of single units over `w` logical blocks of `b`
/// units, with one open block: A = b / h, exact. Rewriting a block programs all of it once and
/// serves h writes: the first one, and those that follow it to the same block at rising offsets.
/// h = sum over k of C(b, k) / (b^k w^(k-1)) = w ((1 + 1/(b w))^b - 1).
#[must_use]
pub fn block(b: u32, w: u32) -> f64 {
    let (b, w) = (f64::from(b), f64::from(w));
    let served = w * (b * (1.0 / (b * w)).ln_1p()).exp_m1();
    b / served
}

/// BAST under uniform random writes over `w` logical blocks of `b` units with `l` log blocks:
/// A = 1 + b (1 - l/w). Under any replacement policy that cannot see the future, a share 1 - l/w
/// of the writes goes to a logical block without a log block. Each of these writes forces a merge
/// for another logical block, which copies one block. The formula holds if log blocks are merged
/// long before they are full (`b` much larger than w/(w - l)); it counts merges that happen to be
/// partial as full ones.
#[must_use]
pub fn bast(b: u32, w: u32, l: u32) -> f64 {
    1.0 + f64::from(b) * (1.0 - f64::from(l) / f64::from(w))
}

/// FAST under uniform random writes over `w` logical blocks of `b` units with `r` log blocks
/// for random writes: A = 1 + full + partial, the copies of full and of partial merges per write.
/// Time is counted in host writes, and W = w b is the number of logical units.
///
/// Partial merges: one write in b goes to offset 0 and begins a sequential run. The next such
/// write ends the run, which takes b - 1 copies; then the logical block has no unit in the log.
///
/// Full merges: all other writes go to the log. A logical block without units in the log gets its
/// first one after a mean time of 1/a with a = (b-1)/W. It is merged when the log block with this
/// unit is the oldest and is reclaimed, a time T later, unless a run came first (at rate c = 1/W).
/// T lies between the times in which r - 1 and r log blocks are written: T = (r - 1/2) b /
/// (1 - 1/b). If the unit was rewritten in the meantime, also at rate c, the next unit counts, 1/a
/// later. So a logical block has f = e^(-cT) / ((2 - e^(-cT))/a + (1 - e^(-cT))/c) full merges
/// per write, and A = 1 + W f + (b - 1)/b. If blocks are much smaller than the log and there are
/// no runs, this is the rule 1 + W/L.
#[must_use]
pub fn fast(b: u32, w: u32, r: u32) -> f64 {
    let (b, w, r) = (f64::from(b), f64::from(w), f64::from(r));
    let units = w * b;
    let (first, run) = ((b - 1.0) / units, 1.0 / units);
    let until_oldest = (r - 0.5) * b / (1.0 - 1.0 / b);
    let without_run = (-run * until_oldest).exp();
    let full = without_run / ((2.0 - without_run) / first + (1.0 - without_run) / run);
    1.0 + units * full + (b - 1.0) / b
}

/// The point between `low` and `high` at which `below` changes from true to false.
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
        assert!((ours - published).abs() < 0.0005 * published, "{ours} against {published}");
    }

    const SPARES: [f64; 3] = [0.07, 0.15, 0.28];

    #[test]
    fn published_uniform_values_come_out() {
        for (op, expected) in [
            (0.05, 10.672),
            (0.07, 7.817),
            (0.10, 5.678),
            (0.15, 4.016),
            (0.20, 3.188),
            (0.25, 2.693),
            (0.28, 2.481),
            (0.30, 2.364),
            (0.40, 1.957),
            (0.50, 1.716),
        ] {
            check(fifo(op), expected);
        }
        for (b, expected) in [
            (64, [7.010, 3.800, 2.403]),
            (128, [7.392, 3.905, 2.441]),
            (256, [7.597, 3.960, 2.461]),
            (512, [7.705, 3.988, 2.471]),
            (1024, [7.761, 4.002, 2.476]),
        ] {
            SPARES.into_iter().zip(expected).for_each(|(op, a)| check(greedy(op, b), a));
        }
        SPARES.into_iter().zip([15.29, 7.667, 4.571]).for_each(|(op, a)| check(random(op), a));
    }

    #[test]
    fn published_d_choices_come_out() {
        for (b, d, expected) in [
            (64, 2, [10.277, 5.312, 3.245]),
            (64, 5, [7.875, 4.185, 2.612]),
            (64, 10, [7.323, 3.930, 2.471]),
            (64, 30, [7.084, 3.826, 2.415]),
            (64, 100, [7.029, 3.807, 2.405]),
            (256, 2, [10.584, 5.394, 3.274]),
            (256, 5, [8.327, 4.305, 2.655]),
            (256, 10, [7.828, 4.066, 2.520]),
            (256, 30, [7.634, 3.975, 2.469]),
            (256, 100, [7.603, 3.962, 2.462]),
        ] {
            SPARES.into_iter().zip(expected).for_each(|(op, a)| check(d_choices(op, b, d), a));
        }
        check(d_choices(0.15, 64, 1), random(0.15));
    }

    #[test]
    fn published_hot_cold_values_come_out() {
        for (op, f, r, mixed, apart) in [
            (0.07, 0.20, 0.80, 8.182, 5.254),
            (0.07, 0.10, 0.90, 8.866, 3.270),
            (0.07, 0.05, 0.95, 9.958, 2.086),
            (0.15, 0.20, 0.80, 4.370, 2.832),
            (0.15, 0.10, 0.90, 4.957, 1.930),
            (0.15, 0.05, 0.95, 5.730, 1.412),
            (0.28, 0.20, 0.80, 2.820, 1.866),
            (0.28, 0.10, 0.90, 3.296, 1.412),
            (0.28, 0.05, 0.95, 3.788, 1.170),
        ] {
            let hot = HotCold { units: f, writes: r };
            check(fifo_hot_cold(op, hot), mixed);
            check(separated_pools(op, hot), apart);
        }
        let even = HotCold { units: 0.3, writes: 0.3 };
        check(fifo_hot_cold(0.15, even), fifo(0.15));
        check(separated_pools(0.15, even), fifo(0.15));
    }

    #[test]
    fn published_values_with_trims_come_out() {
        for (op, expected) in [(0.07, [3.013, 1.838, 1.301]), (0.15, [2.326, 1.624, 1.234])] {
            for (q, a) in [0.1, 0.2, 0.3].into_iter().zip(expected) {
                check(greedy(op_with_trims(op, q), 64), a);
            }
        }
    }
}
