//! Division by a number that is used often.

/// A divisor whose division costs a multiplication.
///
/// Exact for every 32-bit dividend: with m = floor((2^64 - 1) / d) the high half of (n + 1) m is
/// floor(n / d) as long as n and d are below 2^32, one included. It is at most (n + 1) / d, and
/// less by no more than (n + 1) / 2^64, which is below 1 / d.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divisor {
    divisor: u32,
    reciprocal: u64,
}

impl Divisor {
    /// Prepares division by `divisor`.
    ///
    /// # Panics
    /// If it is zero.
    #[must_use]
    pub fn new(divisor: u32) -> Self {
        assert!(divisor > 0, "division by zero");
        Self { divisor, reciprocal: u64::MAX / u64::from(divisor) }
    }

    /// The divisor itself.
    #[must_use]
    pub fn get(self) -> u32 {
        self.divisor
    }

    /// `number` over the divisor, rounded down.
    #[must_use]
    #[inline]
    pub fn divide(self, number: u32) -> u32 {
        ((u128::from(self.reciprocal) * (u128::from(number) + 1)) >> 64) as u32
    }

    /// Quotient and remainder.
    #[must_use]
    #[inline]
    pub fn split(self, number: u32) -> (u32, u32) {
        let quotient = self.divide(number);
        (quotient, number - quotient * self.divisor)
    }
}

#[cfg(test)]
mod tests {
    use prism_testkit::seed;

    use super::*;
    use crate::rng::Rng;

    #[test]
    fn random_divisions_equal_those_of_the_machine() {
        let mut rng = Rng::stream(seed(1), "divisor");
        for round in 0..20_000u32 {
            let small = (rng.below(1 << (1 + round % 32)) as u32).max(1);
            let divisor = Divisor::new(small);
            let edges = [0, 1, small - 1, small, u32::MAX, u32::MAX / small * small];
            for number in edges.into_iter().chain([rng.below(1 << 32) as u32]) {
                assert_eq!(divisor.split(number), (number / small, number % small));
            }
        }
    }
}
