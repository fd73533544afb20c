//! Zipf-distributed ranks, and the permutation that scatters them over a range.

use crate::rng::Rng;

/// Draws ranks from `0..n`, rank k with a probability proportional to 1/(k+1)^theta.
///
/// Each draw costs the same for any `n`: the sum of the weights is replaced by an integral and
/// the difference is rejected, so few draws are repeated. Logarithms and powers come from a
/// software library, so that a seed gives the same requests on every machine.
///
/// Source: Hörmann, Derflinger, "Rejection-inversion to generate variates from monotone
/// discrete distributions", ACM TOMACS 6(3), 1996.
#[derive(Clone, Debug)]
pub struct Zipf {
    ranks: u64,
    n: f64,
    theta: f64,
    /// The integral up to half a rank beyond the first, less the weight of the first.
    low: f64,
    /// The integral up to half a rank beyond the last.
    high: f64,
    /// Distance below the next rank within which a draw is accepted without a test.
    easy: f64,
}

impl Zipf {
    /// Ranks `0..n` with exponent `theta`, which is finite and above zero; `n` is above 0.
    pub fn new(n: u64, theta: f64) -> Self {
        let mut zipf = Self { ranks: n, n: n as f64, theta, low: 0.0, high: 0.0, easy: 0.0 };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(zipf.n + 0.5);
        zipf.easy = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    /// The next rank.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            let area = self.high + rng.unit() * (self.low - self.high);
            let x = self.inverse(area);
            let rank = (x + 0.5).floor().clamp(1.0, self.n);
            if rank - x <= self.easy || area >= self.integral(rank + 0.5) - self.weight(rank) {
                // Beyond 2^53 ranks the float may round up past the last one.
                return (rank as u64 - 1).min(self.ranks - 1);
            }
        }
    }

    fn weight(&self, x: f64) -> f64 {
        libm::exp(-self.theta * libm::log(x))
    }

    /// The integral of the weight from 1 to `x`: (x^(1-theta) - 1) / (1-theta), which is
    /// log(x) at theta 1; written so that it stays exact close to 1.
    fn integral(&self, x: f64) -> f64 {
        let log = libm::log(x);
        let t = (1.0 - self.theta) * log;
        if t.abs() < 1e-8 { log * (1.0 + t / 2.0) } else { log * (libm::expm1(t) / t) }
    }

    fn inverse(&self, area: f64) -> f64 {
        let t = (area * (1.0 - self.theta)).max(-1.0);
        let log = if t.abs() < 1e-8 { area * (1.0 - t / 2.0) } else { area * (libm::log1p(t) / t) };
        libm::exp(log)
    }
}

/// A fixed random order of `0..n` without a table: four Feistel rounds over the next power
/// of four, repeated until the result lies below `n` (less than four times on average).
#[derive(Clone, Debug)]
pub struct Scatter {
    n: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Scatter {
    /// An order of `0..n` chosen by `rng`; `n` is above 0.
    pub fn new(n: u64, rng: &mut Rng) -> Self {
        let bits = 64 - (n - 1).leading_zeros();
        let half_bits = bits.div_ceil(2).max(1);
        Self { n, half_bits, keys: std::array::from_fn(|_| rng.next_u64()) }
    }

    /// The position of `value`, which is below `n`.
    pub fn place(&self, value: u64) -> u64 {
        let mut value = value;
        loop {
            value = self.rounds(value);
            if value < self.n {
                return value;
            }
        }
    }

    fn rounds(&self, value: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for key in self.keys {
            let mixed = (right ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32;
            (left, right) = (right, left ^ (mixed & mask));
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest deviation from theory over all ranks, in standard deviations.
    fn worst(n: u64, theta: f64, draws: u32) -> f64 {
        let zipf = Zipf::new(n, theta);
        let mut rng = Rng::stream(3, "zipf");
        let mut counts = vec![0u32; n as usize];
        (0..draws).for_each(|_| counts[zipf.draw(&mut rng) as usize] += 1);
        let weights: Vec<f64> = (1..=n).map(|rank| (rank as f64).powf(-theta)).collect();
        let sum: f64 = weights.iter().sum();
        let deviation = |(count, weight): (&u32, &f64)| {
            let share = weight / sum;
            let expected = share * f64::from(draws);
            (f64::from(*count) - expected).abs() / (expected * (1.0 - share)).sqrt().max(1.0)
        };
        counts.iter().zip(&weights).map(deviation).fold(0.0, f64::max)
    }

    #[test]
    fn frequencies_follow_theory() {
        for theta in [0.2, 0.8, 0.99, 1.0, 1.000_000_001, 1.2, 3.0] {
            for n in [1, 2, 10, 1000] {
                let worst = worst(n, theta, 200_000);
                assert!(worst < 5.0, "theta {theta} n {n}: {worst} standard deviations");
            }
        }
    }

    #[test]
    fn large_ranges_work() {
        let zipf = Zipf::new(1 << 52, 0.9);
        let mut rng = Rng::stream(4, "zipf");
        assert!((0..10_000).all(|_| zipf.draw(&mut rng) < 1 << 52));
        let zipf = Zipf::new((1 << 62) - 1, 0.01);
        assert!((0..10_000).all(|_| zipf.draw(&mut rng) < (1 << 62) - 1));
    }

    #[test]
    fn every_place_is_taken_once() {
        for n in [1, 2, 3, 5, 16, 17, 1000, 4097] {
            let scatter = Scatter::new(n, &mut Rng::stream(n, "scatter"));
            let mut taken = vec![false; n as usize];
            (0..n).for_each(|value| taken[scatter.place(value) as usize] = true);
            assert!(taken.iter().all(|&taken| taken), "{n}");
        }
    }

    #[test]
    fn neighbours_do_not_stay_neighbours() {
        let scatter = Scatter::new(1 << 20, &mut Rng::stream(1, "scatter"));
        let near = |rank| scatter.place(rank).abs_diff(scatter.place(rank + 1)) <= 16;
        assert!((0..1000).filter(|&rank| near(rank)).count() < 5);
    }
}
