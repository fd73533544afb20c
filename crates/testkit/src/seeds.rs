//! The seeds of random tests.

use std::collections::VecDeque;
use std::ops::Range;

use proptest::test_runner::{Config, RngSeed};

use crate::this_test;

/// `make test-fast` uses one in this many seeds and cases.
const FEW: u64 = 8;
/// A round of `make fuzz` uses one in this many, so that a round over all tests takes about half a
/// minute, and even a short search runs every test.
const ROUND: u64 = 32;
/// The seed of property tests in `make test`.
const FIXED: u64 = 1;

/// The seeds selected by the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    All,
    Few,
    Fresh(u64),
    One(u64),
}

impl Mode {
    fn of_environment() -> Self {
        let number = |name: &str| {
            let text = std::env::var(name).ok()?;
            Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
        };
        match (number("PRISM_SEED"), number("PRISM_FUZZ")) {
            (Some(seed), _) => Self::One(seed),
            (None, Some(round)) => Self::Fresh(round),
            (None, None) if std::env::var_os("PRISM_FEW").is_some() => Self::Few,
            (None, None) => Self::All,
        }
    }

    /// The seeds of the test `name`, whose fixed seeds are `fixed`.
    fn seeds(self, fixed: Range<u64>, name: &str) -> Vec<u64> {
        let count = fixed.end - fixed.start;
        match self {
            Self::All => fixed.collect(),
            Self::Few => fixed.take(count.div_ceil(FEW) as usize).collect(),
            Self::Fresh(round) => {
                (0..count.div_ceil(ROUND)).map(|number| fresh(round, name, number)).collect()
            }
            Self::One(seed) => vec![seed],
        }
    }
}

/// Seed `number` of the test `name` in a round of `make fuzz`: the FNV-1a hash of the three. It has
/// 32 bits, so that it is short to type and tests can add to it without overflow.
fn fresh(round: u64, name: &str, number: u64) -> u64 {
    let bytes = round.to_le_bytes().into_iter().chain(number.to_le_bytes()).chain(name.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // The upper bits are mixed better.
    hash >> 32
}

/// The seeds with which a test runs. If the test panics while it works on one of them, the
/// command that repeats that seed is printed.
#[derive(Debug)]
pub struct Seeds {
    left: VecDeque<u64>,
    current: Option<u64>,
    name: String,
}

/// The seeds of the calling test: `fixed` in `make test`, else those the environment selects.
///
/// # Panics
/// If the test has no `random_` in its name.
pub fn seeds(fixed: Range<u64>) -> Seeds {
    let name = this_test::random_name();
    let left = Mode::of_environment().seeds(fixed, &name).into();
    Seeds { left, current: None, name }
}

impl Seeds {
    /// Adds the seeds `found`, each of which found a bug, in `make test` and `make test-fast`.
    #[must_use]
    pub fn and(mut self, found: &[u64]) -> Self {
        if matches!(Mode::of_environment(), Mode::All | Mode::Few) {
            self.left.extend(found);
        }
        self
    }
}

impl Iterator for Seeds {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.current = self.left.pop_front();
        self.current
    }
}

impl Drop for Seeds {
    fn drop(&mut self) {
        if let Some(seed) = self.current.filter(|_| std::thread::panicking()) {
            say(&self.name, seed);
        }
    }
}

/// The single seed of the calling test: `fixed` in `make test`, else the one the environment
/// selects.
///
/// # Panics
/// If the test has no `random_` in its name.
pub fn seed(fixed: u64) -> u64 {
    let name = this_test::random_name();
    let seed = Mode::of_environment().seeds(fixed..fixed + 1, &name)[0];
    // The test runner shows this if the test fails.
    say(&name, seed);
    seed
}

/// Whether every fixed seed runs. Only then may tests check that enough power cuts and faults
/// occurred. Otherwise long tests without seeds also do less.
pub fn all_seeds() -> bool {
    Mode::of_environment() == Mode::All
}

/// The configuration of a property test with `count` cases in `make test`.
///
/// # Panics
/// If the test has no `random_` in its name.
pub fn cases(count: u32) -> Config {
    let name = this_test::random_name();
    let (seed, cases) = match Mode::of_environment() {
        Mode::All => (FIXED, count),
        Mode::Few => (FIXED, count.div_ceil(FEW as u32)),
        Mode::Fresh(round) => (fresh(round, &name, 0), count.div_ceil(ROUND as u32)),
        Mode::One(seed) => (seed, count),
    };
    // The test runner shows this if the test fails.
    say(&name, seed);
    Config { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(seed), ..Config::default() }
}

#[allow(clippy::print_stdout, reason = "the test runner shows it if the test fails")]
fn say(name: &str, seed: u64) {
    println!("to repeat it: {}", this_test::command(name, seed));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_has_its_seeds() {
        assert_eq!(Mode::All.seeds(10..14, "t"), [10, 11, 12, 13]);
        assert_eq!(Mode::Few.seeds(10..26, "t"), [10, 11]);
        assert_eq!(Mode::Few.seeds(10..11, "t"), [10]);
        assert_eq!(Mode::One(7).seeds(10..400, "t"), [7]);
        let round = |round, name| Mode::Fresh(round).seeds(0..64, name);
        assert_eq!((round(1, "t").len(), round(1, "t")), (2, round(1, "t")));
        let all = [round(1, "t"), round(2, "t"), round(1, "u")].concat();
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len(), "{all:?}");
    }

    #[test]
    fn random_tests_get_the_seeds_in_order() {
        if all_seeds() {
            assert!(seeds(3..6).eq(3..6));
        }
    }

    #[test]
    fn random_cases_have_a_fixed_seed() {
        if all_seeds() {
            let config = cases(40);
            assert_eq!((config.cases, config.rng_seed), (40, RngSeed::Fixed(FIXED)));
        }
    }
}
