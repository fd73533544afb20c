//! Victim policies: which block is cleaned next. Every policy is a pure function of the candidates.

mod candidates;
mod column;

use std::fmt;

use prism_base::Rng;

pub(crate) use candidates::{Candidates, NOT_SEALED};

/// How a victim is chosen among the sealed blocks of a die.
///
/// In the formulas u is the fraction of a block's units that are valid, and age is counted in
/// blocks sealed on the die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VictimPolicy {
    /// Fewest valid units, the cheapest to clean now. Best for uniform writes; with skewed writes
    /// cold blocks with a little garbage are not cleaned for a long time.
    Greedy,
    /// The block sealed first. Exactly solvable (Menon; Desnoyers), wears evenly, and is never
    /// better than greedy under uniform writes.
    Fifo,
    /// The block whose last change, its sealing or the last unit it lost, is oldest (least recently
    /// used). Cold blocks come first, however little garbage they have, so that it copies more than
    /// FIFO where some data never changes.
    Lru,
    /// Any sealed block. A lower bound for the other policies: write amplification 1/(1 - U/T).
    Random,
    /// Fewest valid units of `d` sealed blocks sampled independently. Near greedy from ten on, and
    /// better than greedy with hot data and separate frontiers. Source: Van Houdt, SIGMETRICS'13.
    DChoices {
        /// Blocks sampled, 1 to [`VictimPolicy::CHOICES_MAX`].
        d: u32,
    },
    /// Fewest valid units of the `window` blocks sealed first; of equal ones the oldest. Between
    /// FIFO (1) and greedy (all). Source: Hu, Eleftheriou, Haas, Iliadis and Pletka, SYSTOR'09.
    WindowedGreedy {
        /// Blocks considered, from 1; values above the blocks of a die mean all of them.
        window: u32,
    },
    /// Largest [`Benefit`]: cold blocks are cleaned earlier than hot ones with as much garbage,
    /// since the cold data stays valid longer. Considers every block.
    CostBenefit(Benefit),
}

/// The benefit function of cost-benefit cleaning. A block without valid units comes before any
/// other, since waiting gains nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Benefit {
    /// (1 - u) age / 2u, with the age since the block last lost a unit. Source: Kawaguchi,
    /// Nishioka and Motoda, USENIX '95.
    Kawaguchi,
    /// (1 - u) age / (1 + u), with the age of the youngest data, taken as that of the block.
    /// Source: Rosenblum and Ousterhout, SOSP'91; differs: copied data counts as new, because the
    /// map does not record when the host wrote it.
    Rosenblum,
}

/// Why a text is not the name of a victim policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VictimError {
    /// There is no policy of that name.
    #[error(
        "no victim policy is called `{0}`; there are greedy, fifo, lru, random, d-choices:10, \
         windowed-greedy:64 (with any numbers), cost-benefit and cost-benefit:rosenblum"
    )]
    Unknown(String),
    /// The policy needs a number in range after its name.
    #[error(
        "victim policy `{text}`: {name} takes a number from 1 to {max}, as in {name}:{example}"
    )]
    Number {
        /// The given text.
        text: String,
        /// The policy.
        name: &'static str,
        /// The largest number.
        max: u32,
        /// A typical number.
        example: u32,
    },
}

impl VictimPolicy {
    /// One of each kind, in the order in which documents name them.
    pub const EXAMPLES: [Self; 8] = [
        Self::Greedy,
        Self::Fifo,
        Self::Lru,
        Self::Random,
        Self::DChoices { d: 10 },
        Self::WindowedGreedy { window: 64 },
        Self::CostBenefit(Benefit::Kawaguchi),
        Self::CostBenefit(Benefit::Rosenblum),
    ];

    /// The most blocks that d-choices samples: with a hundred it is within half a percent of
    /// greedy, which costs less.
    pub const CHOICES_MAX: u32 = 1000;

    /// Parses the name of a policy as [`VictimPolicy`] displays it: `greedy`, `fifo`, `lru`,
    /// `random`, `d-choices:10`, `windowed-greedy:64`, `cost-benefit`, `cost-benefit:rosenblum`.
    ///
    /// # Errors
    /// [`VictimError`] if there is no such policy, or its number is missing or out of range.
    pub fn from_name(text: &str) -> Result<Self, VictimError> {
        let (name, parameter) = match text.split_once(':') {
            Some((name, parameter)) => (name, Some(parameter)),
            None => (text, None),
        };
        let number = |name, max, example| {
            let digits = parameter.filter(|p| p.bytes().all(|byte| byte.is_ascii_digit()));
            let value = digits.and_then(|p| p.parse().ok());
            let refused = || VictimError::Number { text: text.into(), name, max, example };
            value.filter(|n| (1..=max).contains(n)).ok_or_else(refused)
        };
        match (name, parameter) {
            ("greedy", None) => Ok(Self::Greedy),
            ("fifo", None) => Ok(Self::Fifo),
            ("lru", None) => Ok(Self::Lru),
            ("random", None) => Ok(Self::Random),
            ("d-choices", _) => {
                Ok(Self::DChoices { d: number("d-choices", Self::CHOICES_MAX, 10)? })
            }
            ("windowed-greedy", _) => {
                Ok(Self::WindowedGreedy { window: number("windowed-greedy", u32::MAX, 64)? })
            }
            ("cost-benefit", None) => Ok(Self::CostBenefit(Benefit::Kawaguchi)),
            ("cost-benefit", Some("rosenblum")) => Ok(Self::CostBenefit(Benefit::Rosenblum)),
            _ => Err(VictimError::Unknown(text.into())),
        }
    }

    /// The index of the victim; `None` if no block is sealed, or if the policy considers no block
    /// with at most `most` valid units.
    ///
    /// Greedy and cost-benefit, which consider every block, choose none with more than `most`. The
    /// others may: if their choice were refused, they would make the same choice again. Each of
    /// them eventually comes to a block with garbage, if there is one: FIFO, LRU and windowed
    /// greedy because copies are sealed as the youngest, random and d-choices with probability 1.
    ///
    /// Of equal blocks the lowest index is chosen, unless the policy says otherwise.
    pub(crate) fn pick(self, candidates: &Candidates, most: u32, rng: &mut Rng) -> Option<usize> {
        let valid = candidates.valid();
        match self {
            Self::Greedy => {
                let (first, least) = valid.min();
                (least <= most).then_some(first)
            }
            Self::Fifo => candidates.by_age().next(),
            Self::Lru => candidates.by_change().next(),
            Self::Random => sample(valid.values(), rng),
            Self::DChoices { d } => {
                let mut best = sample(valid.values(), rng)?;
                for _ in 1..d {
                    let other = sample(valid.values(), rng)?;
                    if valid.values()[other] < valid.values()[best] {
                        best = other;
                    }
                }
                Some(best)
            }
            Self::WindowedGreedy { window } => {
                let oldest = candidates.by_age().take(window as usize);
                oldest.min_by_key(|&i| valid.values()[i])
            }
            Self::CostBenefit(benefit) => benefit.best(candidates, most),
        }
    }
}

impl fmt::Display for VictimPolicy {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Greedy => f.write_str("greedy"),
            Self::Fifo => f.write_str("fifo"),
            Self::Lru => f.write_str("lru"),
            Self::Random => f.write_str("random"),
            Self::DChoices { d } => write!(f, "d-choices:{d}"),
            Self::WindowedGreedy { window } => write!(f, "windowed-greedy:{window}"),
            Self::CostBenefit(Benefit::Kawaguchi) => f.write_str("cost-benefit"),
            Self::CostBenefit(Benefit::Rosenblum) => f.write_str("cost-benefit:rosenblum"),
        }
    }
}

/// A random sealed block, all equally likely.
fn sample(valid: &[u32], rng: &mut Rng) -> Option<usize> {
    // Nearly all blocks are sealed in steady state, so rejection sampling is cheaper than building
    // a list. After a bounded number of attempts, choose exactly.
    for _ in 0..32 {
        let i = rng.below(valid.len() as u64) as usize;
        if valid[i] != NOT_SEALED {
            return Some(i);
        }
    }
    let sealed = || (0..valid.len()).filter(|&i| valid[i] != NOT_SEALED);
    let count = sealed().count() as u64;
    if count == 0 {
        return None;
    }
    sealed().nth(rng.below(count) as usize)
}

impl Benefit {
    /// The block of at most `most` valid units with the largest benefit.
    fn best(self, candidates: &Candidates, most: u32) -> Option<usize> {
        let units = candidates.units_per_block();
        let mut best = None;
        // Benefits are compared as fractions, without division; the products are the same on every
        // machine. The initial gain is below that of any block.
        let (mut best_gain, mut best_cost) = (-1.0, 1.0);
        for (i, &valid) in candidates.valid().values().iter().enumerate() {
            if valid > most {
                continue;
            }
            let (age, cost) = match self {
                Self::Kawaguchi => (candidates.age_since_change(i), 2 * valid),
                Self::Rosenblum => (candidates.age_since_sealed(i), units + valid),
            };
            if valid == 0 {
                return Some(i);
            }
            // The block that is being filled counts too, so that blocks of age 0 are ordered by
            // garbage.
            let (gain, cost) = (f64::from(units - valid) * (age + 1) as f64, f64::from(cost));
            if gain * best_cost > best_gain * cost {
                (best, best_gain, best_cost) = (Some(i), gain, cost);
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use prism_testkit::seed;

    use super::*;

    /// Candidates of eight units, sealed in the order given as (index, valid units).
    fn candidates(blocks: usize, sealed: &[(usize, u32)]) -> Candidates {
        let mut candidates = Candidates::with_changes(blocks, 8);
        for &(index, valid) in sealed {
            candidates.seal(index, valid);
        }
        candidates
    }

    fn check(policy: &str, candidates: &Candidates, expected: Option<usize>) {
        let mut rng = Rng::stream(1, "victim");
        let policy = VictimPolicy::from_name(policy).unwrap();
        assert_eq!(policy.pick(candidates, 7, &mut rng), expected, "{policy}");
    }

    #[test]
    fn policies_on_hand_made_candidates() {
        let none = candidates(4, &[]);
        for policy in VictimPolicy::EXAMPLES {
            check(&policy.to_string(), &none, None);
        }
        let full = candidates(3, &[(1, 8), (0, 8)]);
        for policy in ["greedy", "cost-benefit", "cost-benefit:rosenblum"] {
            check(policy, &full, None);
        }
        check("fifo", &full, Some(1));
        check("lru", &full, Some(1));
        check("windowed-greedy:5", &full, Some(1));

        let some = candidates(6, &[(5, 8), (3, 4), (0, 4), (1, 3), (4, 3)]);
        check("greedy", &some, Some(1));
        check("fifo", &some, Some(5));
        check("lru", &some, Some(5));
        check("windowed-greedy:1", &some, Some(5));
        check("windowed-greedy:2", &some, Some(3));
        check("windowed-greedy:3", &some, Some(3));
        check("windowed-greedy:4", &some, Some(1));
        check("windowed-greedy:4000000000", &some, Some(1));
        check("d-choices:1000", &some, Some(4));
        let one = candidates(3, &[(2, 7)]);
        check("random", &one, Some(2));
        check("d-choices:3", &one, Some(2));
    }

    #[test]
    fn lru_orders_blocks_by_their_last_change() {
        let mut some = candidates(4, &[(2, 5), (0, 5), (3, 5)]);
        for (changed, next) in [(2, 0), (0, 3), (0, 3), (3, 2)] {
            let valid = some.valid().values()[changed];
            some.lower(changed, valid - 1);
            check("lru", &some, Some(next));
        }
        some.take(2);
        check("lru", &some, Some(0));
    }

    #[test]
    fn cost_benefit_weighs_age() {
        // Ages 3, 2, 1: (4/8 of 3)/(2 4/8), (5/8 of 2)/(2 3/8), (6/8 of 1)/(2 2/8).
        let mut some = candidates(3, &[(0, 4), (1, 4), (2, 2)]);
        some.lower(1, 3);
        check("cost-benefit", &some, Some(0));
        // With seals as ages: 3 4/12 = 1, 2 5/11 = 0.91, 1 6/10 = 0.6.
        check("cost-benefit:rosenblum", &some, Some(0));
        some.lower(1, 1);
        // The last change of block 1 is new, its seal is not: 1.5, 3.5, 1.5 and 1, 1.6, 0.6.
        check("cost-benefit", &some, Some(1));
        check("cost-benefit:rosenblum", &some, Some(1));
        some.lower(2, 0);
        check("cost-benefit", &some, Some(2));
        check("cost-benefit:rosenblum", &some, Some(2));
    }

    /// Random candidates, of which about one in four is no longer sealed.
    fn random_candidates(rng: &mut Rng) -> Candidates {
        let blocks = 2 + rng.below(100) as usize;
        let mut candidates = Candidates::with_changes(blocks, 8);
        (0..blocks).for_each(|index| candidates.seal(index, 8));
        for _ in 0..4 * blocks {
            let index = rng.below(blocks as u64) as usize;
            let valid = candidates.valid().values()[index];
            match rng.below(10) {
                0..8 if valid != NOT_SEALED => candidates.lower(index, valid.saturating_sub(1)),
                8 if valid != NOT_SEALED => assert_eq!(candidates.take(index), valid),
                9 if valid == NOT_SEALED => candidates.seal(index, 8),
                _ => {}
            }
        }
        candidates
    }

    #[test]
    fn random_victims_agree_with_the_definitions() {
        let mut rng = Rng::stream(seed(4), "definitions");
        for _ in 0..2000 {
            let candidates = random_candidates(&mut rng);
            let valid = candidates.valid().values();
            let order: Vec<_> = candidates.by_age().collect();
            let window = 1 + rng.below(120) as usize;
            let mut oldest = order[..window.min(order.len())].to_vec();
            oldest.sort_by_key(|&i| valid[i]);
            let policy = VictimPolicy::WindowedGreedy { window: window as u32 };
            assert_eq!(policy.pick(&candidates, 7, &mut rng), oldest.first().copied());

            for (benefit, age_of) in [
                (Benefit::Kawaguchi, Candidates::age_since_change as fn(&Candidates, usize) -> u64),
                (Benefit::Rosenblum, Candidates::age_since_sealed),
            ] {
                let value = |i: usize| {
                    let u = f64::from(valid[i]) / 8.0;
                    let cost = if benefit == Benefit::Kawaguchi { 2.0 * u } else { 1.0 + u };
                    let all = (1.0 - u) * (age_of(&candidates, i) + 1) as f64 / cost;
                    if valid[i] == 0 { f64::INFINITY } else { all }
                };
                let gaining = order.iter().copied().filter(|&i| valid[i] <= 7);
                let most = gaining.map(value).fold(f64::NEG_INFINITY, f64::max);
                let picked = VictimPolicy::CostBenefit(benefit).pick(&candidates, 7, &mut rng);
                let ours = picked.map_or(f64::NEG_INFINITY, value);
                assert!(ours == most || ours >= most * (1.0 - 1e-12), "{ours} for {most}");
            }
        }
    }

    /// The best of d blocks sampled with replacement is the k-th smallest of n with probability (1
    /// - k/n)^d - (1 - (k+1)/n)^d.
    #[test]
    fn d_choices_samples_d_blocks() {
        const SAMPLES: f64 = 100_000.0;
        let some = candidates(6, &[(4, 1), (2, 2), (0, 3), (1, 4), (3, 5)]);
        let by_valid = [4, 2, 0, 1, 3];
        let mut rng = Rng::stream(5, "choices");
        for d in [1, 2, 5] {
            let mut count = [0.0; 6];
            for _ in 0..SAMPLES as usize {
                let policy = VictimPolicy::DChoices { d };
                count[policy.pick(&some, 7, &mut rng).unwrap()] += 1.0;
            }
            for (k, &block) in by_valid.iter().enumerate() {
                let above = |k: usize| (1.0 - k as f64 / 5.0).powi(d.cast_signed());
                let expected = SAMPLES * (above(k) - above(k + 1));
                let off: f64 = count[block] - expected;
                assert!(off.abs() < 5.0 * expected.sqrt() + 1.0, "d {d}, k {k}: {count:?}");
            }
        }
    }

    #[test]
    fn every_name_is_parsed() {
        for policy in VictimPolicy::EXAMPLES {
            assert_eq!(VictimPolicy::from_name(&policy.to_string()), Ok(policy));
        }
        let refused = |text: &str, expected: &str| {
            let message = VictimPolicy::from_name(text).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        };
        refused("best", "no victim policy is called `best`; there are greedy, fifo,");
        refused("", "called ``");
        refused("Greedy", "called `Greedy`");
        refused("greedy:2", "called `greedy:2`");
        refused("cost-benefit:3", "called `cost-benefit:3`");
        refused("d-choices", "takes a number from 1 to 1000, as in d-choices:10");
        refused("d-choices:", "from 1 to 1000");
        refused("d-choices:0", "from 1 to 1000");
        refused("d-choices:+5", "from 1 to 1000");
        refused("d-choices:1001", "from 1 to 1000");
        refused("windowed-greedy:4294967296", "from 1 to 4294967295, as in windowed-greedy:64");
    }
}
