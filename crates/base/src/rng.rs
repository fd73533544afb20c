//! Seeded random streams.
//!
//! A run is a function of its seed, and every use of random numbers has its own stream, named
//! by a label: an extra number in one place changes nothing in another. The generator is
//! xoshiro256** (Blackman and Vigna, 2018) seeded through SplitMix64; it is implemented here
//! because results must stay the same bytes in all versions of Prism, which a library does not
//! promise.

use borsh::{BorshDeserialize, BorshSerialize};

/// One stream of random numbers.
#[derive(Clone, Debug, BorshSerialize)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The stream called `label` of the run seeded with `seed`.
    #[must_use]
    pub fn stream(seed: u64, label: &str) -> Self {
        // FNV-1a spreads the label over 64 bits before SplitMix64 mixes it with the seed.
        let hash = label.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
        });
        let mut mix = seed ^ hash;
        let state = std::array::from_fn(|_| split_mix(&mut mix));
        Self { state }
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number in `0..bound`, each equally likely (Lemire's multiply and reject).
    ///
    /// # Panics
    /// If `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "an empty range has no number");
        loop {
            let wide = u128::from(self.next_u64()) * u128::from(bound);
            let low = wide as u64;
            if low >= bound || low >= bound.wrapping_neg() % bound {
                return (wide >> 64) as u64;
            }
        }
    }

    /// A number in `0.0..1.0` with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with probability `p` (0 never, 1 always).
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }
}

impl BorshDeserialize for Rng {
    fn deserialize_reader<R: std::io::Read>(reader: &mut R) -> std::io::Result<Self> {
        match <[u64; 4]>::deserialize_reader(reader)? {
            // It would yield zeros for ever.
            [0, 0, 0, 0] => Err(crate::codec::invalid("a random stream without a state")),
            state => Ok(Self { state }),
        }
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_fixed_and_independent() {
        let draw = |seed, label| Rng::stream(seed, label).next_u64();
        assert_eq!(draw(1, "a"), draw(1, "a"));
        assert_ne!(draw(1, "a"), draw(1, "b"));
        assert_ne!(draw(1, "a"), draw(2, "a"));
    }

    #[test]
    fn a_stream_continues_from_its_state() {
        let mut one = Rng::stream(1, "a");
        one.next_u64();
        let mut other = Rng::try_from_slice(&borsh::to_vec(&one).unwrap()).unwrap();
        assert_eq!(one.next_u64(), other.next_u64());
        assert!(Rng::try_from_slice(&[0; 32]).is_err());
    }

    #[test]
    fn below_is_even() {
        let mut rng = Rng::stream(7, "even");
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            counts[rng.below(10) as usize] += 1;
        }
        assert!(counts.iter().all(|&n| (9_500..10_500).contains(&n)), "{counts:?}");
    }
}
