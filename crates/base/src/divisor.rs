//! Division by a number that is known once and used often.

/// A divisor whose division costs a multiplication.
///
/// Exact for every 32-bit dividend: with m = floor(2^64 / d) + 1 the high half of n m is
/// floor(n / d) as long as n and d are below 2^32 (Lemire, Kaser, Kurz, 2019).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divisor {
    divisor: u32,
    /// 0 stands for a divisor of one.
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
        let reciprocal = if divisor == 1 { 0 } else { u64::MAX / u64::from(divisor) + 1 };
        Self { divisor, reciprocal }
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
        if self.reciprocal == 0 {
            return number;
        }
        ((u128::from(self.reciprocal) * u128::from(number)) >> 64) as u32
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
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn equals_the_division_of_the_machine() {
        let mut rng = Rng::stream(1, "divisor");
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
