//! The distribution of the valid units of a die group over its sealed blocks, in steady state under
//! uniform random writes.

use crate::victim::VictimPolicy;

/// The victim policy's steady state is not known in closed form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the steady state of victim policy {policy} is not known in closed form (that of greedy, \
     fifo, random and d-choices is); use the state preconditioned, which reaches it by writing"
)]
pub struct SpreadError {
    /// The policy.
    pub policy: VictimPolicy,
}

/// Valid units by block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Valid units of each sealed block, most first.
    pub valid: Vec<u32>,
    /// Mean valid units of the next victim, rounded down.
    pub victim_units: u32,
}

/// How the distribution of valid units is computed.
pub enum ClosedForm {
    /// By the mean field, with the number of blocks from which a victim is chosen, or of all.
    MeanField { choices: Option<u32> },
    /// By the ages of blocks.
    ByAge,
}

/// The closed form of `policy` with `blocks` sealed blocks.
///
/// # Errors
/// [`SpreadError`] if there is none.
pub fn closed_form(policy: VictimPolicy, blocks: u32) -> Result<ClosedForm, SpreadError> {
    let choices = match policy {
        VictimPolicy::Greedy => None,
        VictimPolicy::Random => Some(1),
        VictimPolicy::DChoices { d } => Some(d),
        VictimPolicy::WindowedGreedy { window } if window >= blocks => None,
        VictimPolicy::Fifo | VictimPolicy::WindowedGreedy { window: 1 } => {
            return Ok(ClosedForm::ByAge);
        }
        VictimPolicy::Lru | VictimPolicy::WindowedGreedy { .. } | VictimPolicy::CostBenefit(_) => {
            return Err(SpreadError { policy });
        }
    };
    Ok(ClosedForm::MeanField { choices })
}

/// The distribution of `total` valid units over `blocks` sealed blocks of `b` units each.
///
/// The fractions of blocks come from the mean field ([`MeanField`]) or, for FIFO, from the ages of
/// blocks. They are rounded to whole blocks so that the sum is exactly `total` for any number of
/// blocks.
///
/// # Errors
/// [`SpreadError`] if the policy has no closed form.
///
/// # Panics
/// If `total` is more than the blocks hold.
pub fn spread(
    policy: VictimPolicy,
    blocks: u32,
    total: u32,
    b: u32,
) -> Result<Spread, SpreadError> {
    assert!(u64::from(total) <= u64::from(blocks) * u64::from(b), "more data than the blocks hold");
    let mean = f64::from(total) / f64::from(blocks.max(1));
    let choices = match closed_form(policy, blocks)? {
        ClosedForm::MeanField { choices } => choices,
        ClosedForm::ByAge => {
            let mut valid = by_age(blocks, mean, b);
            let victim_units = valid.last().copied().unwrap_or(0);
            settle(&mut valid, total, b);
            return Ok(Spread { valid, victim_units });
        }
    };
    let field = MeanField::solve(choices, mean, b);
    // Blocks with at least i units, for i from 1. Block j has as many units as there are numbers
    // above j.
    let counts: Vec<u32> =
        field.at_least.iter().map(|share| (share * f64::from(blocks)).round() as u32).collect();
    let mut valid: Vec<u32> =
        (0..blocks).map(|j| counts.partition_point(|&count| count > j) as u32).collect();
    settle(&mut valid, total, b);
    Ok(Spread { valid, victim_units: field.victim_units() as u32 })
}

/// Write amplification of uniform random writes to data that takes the share `used` of its blocks
/// of `b` units each, with victims chosen by `policy`.
///
/// # Errors
/// [`SpreadError`] if the policy has no closed form, or chooses by age or among some blocks only,
/// so that cold data is cleaned, too.
pub fn write_amplification(policy: VictimPolicy, used: f64, b: u32) -> Result<f64, SpreadError> {
    let choices = match policy {
        VictimPolicy::Greedy | VictimPolicy::WindowedGreedy { window: u32::MAX } => None,
        _ => return Err(SpreadError { policy }),
    };
    let used = used.clamp(0.0, 1.0);
    if used < 1e-3 {
        // A victim with valid units is rarer than any simulation would notice.
        return Ok(1.0);
    }
    let mu = MeanField::solve(choices, used * f64::from(b), b).mu;
    Ok((1.0 / (mu * used)).max(1.0))
}

/// The share of their blocks that data takes whose uniform random writes have
/// `write_amplification`: the inverse of the function of that name.
///
/// # Errors
/// As [`write_amplification`].
pub fn used_share(
    policy: VictimPolicy,
    write_amplification: f64,
    b: u32,
) -> Result<f64, SpreadError> {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..30 {
        let used = f64::midpoint(low, high);
        let reached = self::write_amplification(policy, used, b)?;
        if reached < write_amplification { low = used } else { high = used }
    }
    Ok(low)
}

/// The mean field of greedy and d-choices cleaning: the fraction of blocks that have at least i of
/// b units valid. Source: Van Houdt, SIGMETRICS'13, reduced to a recursion from i = b down: with s
/// the fraction for i, t that for i + 1 and mu fixed by the mean, s^d + mu i (s - t) = 1 for the
/// best of d blocks, s = min(1, t + 1/(mu i)) for greedy.
#[derive(Clone, Debug, PartialEq)]
pub struct MeanField {
    /// The fraction of blocks with at least i valid units, at index i - 1.
    pub at_least: Vec<f64>,
    /// Write amplification is one over the product of mu and U/T.
    pub mu: f64,
    choices: Option<u32>,
}

impl MeanField {
    /// Solves for the best of `choices` blocks, or greedy for `None`, with a mean of `mean` valid
    /// units per block of `b`. Uses only sums, products and quotients, so that results are the same
    /// on every machine.
    #[must_use]
    pub fn solve(choices: Option<u32>, mean: f64, b: u32) -> Self {
        let mut field = Self { at_least: vec![0.0; b as usize], mu: 0.0, choices };
        // Write amplification is at least 1, and below that of random victims in a drive with one
        // unit of garbage.
        let rho = (mean / f64::from(b)).clamp(1e-9, 1.0);
        let (mut low, mut high) = (0.0, 2.0 / rho);
        for _ in 0..100 {
            field.mu = f64::midpoint(low, high);
            // The number of valid units increases as mu decreases.
            let bound = if field.fill() > mean { &mut low } else { &mut high };
            if *bound == field.mu {
                // No number lies between the two.
                break;
            }
            *bound = field.mu;
        }
        field
    }

    /// Computes the fractions for the current mu; their sum is the mean.
    fn fill(&mut self) -> f64 {
        let (mut above, mut sum) = (0.0, 0.0);
        for i in (1..=self.at_least.len()).rev() {
            let slope = self.mu * i as f64;
            above = match self.choices {
                None => f64::min(above + 1.0 / slope, 1.0),
                Some(d) => root(d, slope, above),
            };
            self.at_least[i - 1] = above;
            sum += above;
        }
        sum
    }

    /// Mean valid units of a victim.
    fn victim_units(&self) -> f64 {
        match self.choices {
            None => self.at_least.iter().filter(|&&share| share >= 1.0).count() as f64,
            Some(d) => self.at_least.iter().map(|&share| power(share, d)).sum(),
        }
    }
}

/// The s with s^d + slope (s - above) = 1, by Newton's method from 1, where the left side is too
/// large. It is increasing and convex, so that every step stays above the root.
fn root(d: u32, slope: f64, above: f64) -> f64 {
    let mut share = 1.0_f64;
    for _ in 0..100 {
        let below = power(share, d - 1);
        let step = (below * share + slope * (share - above) - 1.0) / (f64::from(d) * below + slope);
        share -= step;
        if step < 1e-15 {
            break;
        }
    }
    share
}

fn power(base: f64, mut exponent: u32) -> f64 {
    let (mut result, mut square) = (1.0, base);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= square;
        }
        square *= square;
        exponent >>= 1;
    }
    result
}

/// FIFO: between two seals the same number of units is written, and each unit of a block survives
/// that with the same probability, so a block keeps a fixed fraction of its units from seal to
/// seal. Exact for any `b`. Source: Menon; Robinson; Desnoyers, SYSTOR'12.
fn by_age(blocks: u32, mean: f64, b: u32) -> Vec<u32> {
    let rho = (mean / f64::from(b)).clamp(1e-9, 1.0);
    let n = f64::from(blocks);
    // The mean over the ages is (1 - exp(-x)) / x for x writes per unit in a full cycle.
    let (mut low, mut high) = (1e-9, 1.0 / rho + 1.0);
    for _ in 0..100 {
        let x = f64::midpoint(low, high);
        if -libm::expm1(-x) / x > rho { low = x } else { high = x }
    }
    let kept = |j: u32| libm::exp(-low * (f64::from(j) + 0.5) / n);
    (0..blocks).map(|j| (f64::from(b) * kept(j)).round() as u32).collect()
}

/// Adjusts blocks by one unit each, evenly spread and within 0 and `b`, until the sum is `total`.
/// Rounding leaves a difference of a few units.
fn settle(valid: &mut [u32], total: u32, b: u32) {
    let sum: u64 = valid.iter().map(|&v| u64::from(v)).sum();
    let mut off = i64::from(total) - sum.cast_signed();
    while off != 0 {
        let step = (valid.len() / off.unsigned_abs() as usize).max(1);
        let start = step / 2;
        let before = off;
        for v in valid.iter_mut().skip(start).step_by(step) {
            if off > 0 && *v < b {
                *v += 1;
                off -= 1;
            } else if off < 0 && *v > 0 {
                *v -= 1;
                off += 1;
            }
        }
        if off == before {
            // All of these are at a bound; some other block is not.
            let room = |v: &&mut u32| if off > 0 { **v < b } else { **v > 0 };
            let v = valid.iter_mut().find(room).expect("the total is within the capacity");
            *v = if off > 0 { *v + 1 } else { *v - 1 };
            off -= off.signum();
        }
    }
    valid.sort_unstable_by(|a, b| b.cmp(a));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_used_share_is_the_inverse_of_write_amplification() {
        let policy = VictimPolicy::Greedy;
        for expected in [1.0, 1.2, 2.0, 3.7, 9.0] {
            let used = used_share(policy, expected, 256).unwrap();
            let reached = write_amplification(policy, used, 256).unwrap();
            assert!((reached / expected - 1.0).abs() < 1e-3, "{expected}: {reached}");
        }
        for policy in [VictimPolicy::Fifo, VictimPolicy::DChoices { d: 10 }] {
            assert!(write_amplification(policy, 0.5, 64).is_err());
        }
    }

    fn solved(choices: Option<u32>, op: f64, b: u32) -> f64 {
        let rho = 1.0 / (1.0 + op);
        1.0 / (MeanField::solve(choices, rho * f64::from(b), b).mu * rho)
    }

    #[test]
    fn write_amplification_matches_published_values() {
        for (choices, op, b, published) in [
            (None, 0.07, 64, 7.010),
            (None, 0.28, 64, 2.403),
            (None, 0.15, 256, 3.960),
            (None, 0.07, 1024, 7.761),
            (Some(1), 0.07, 64, 15.29),
            (Some(2), 0.07, 64, 10.277),
            (Some(10), 0.15, 64, 3.930),
            (Some(30), 0.28, 256, 2.469),
        ] {
            let ours = solved(choices, op, b);
            assert!((ours / published - 1.0).abs() < 0.0015, "{choices:?} {op} {b}: {ours}");
        }
    }

    #[test]
    fn any_number_of_blocks_has_the_exact_total() {
        let policies = VictimPolicy::EXAMPLES.into_iter().chain([
            VictimPolicy::WindowedGreedy { window: 1 },
            VictimPolicy::WindowedGreedy { window: u32::MAX },
        ]);
        for policy in policies {
            for blocks in [1, 2, 3, 5, 17, 64, 1000] {
                for b in [1, 2, 3, 64, 300] {
                    for total in [0, 1, blocks * b / 3, blocks * b * 9 / 10, blocks * b] {
                        let Ok(spread) = spread(policy, blocks, total, b) else {
                            let name = policy.to_string();
                            let unknown = ["cost-benefit", "windowed", "lru"];
                            assert!(unknown.iter().any(|unknown| name.starts_with(unknown)));
                            continue;
                        };
                        assert_eq!(spread.valid.len() as u32, blocks);
                        assert_eq!(
                            spread.valid.iter().sum::<u32>(),
                            total,
                            "{policy} {blocks} {b}"
                        );
                        assert!(
                            spread.valid.iter().all(|&v| v <= b)
                                && spread.valid.is_sorted_by(|a, b| a >= b)
                        );
                    }
                }
            }
        }
    }
}
