//! The workload ETC of Facebook: sizes of keys and values by the model of Atikoglu and others
//! (SIGMETRICS'12), as mutilate and a fork of YCSB implement it.
//!
//! * Key sizes: generalised extreme value distribution, mu 30.7984, sigma 8.20449, k 0.078688.
//! * Value sizes: 0 to 14 bytes with fixed probabilities (44 % in all), else a generalised Pareto
//!   distribution, theta 15 (0 if there are no fixed ones), sigma 214.476, k 0.348238.
//!
//! The model says nothing about popularity: it is an option here. The size of a value is a function
//! of its key, so that setting a key again keeps its size.

use prism_base::Rng;
use prism_base::distribution::Zipf;

use super::{Op, Request};

/// Probabilities of values of 0 to 14 bytes, in 1e-5.
const SHORT: [u32; 15] =
    [536, 47, 17820, 9239, 18, 2740, 65, 606, 23, 837, 837, 8989, 92, 326, 1980];

/// How often keys are used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Popularity {
    /// All equally.
    Uniform,
    /// Zipf's law with this exponent.
    Zipf(f64),
    /// A normal distribution over the keys in their order: mean in the middle, with this standard
    /// deviation as a share of the keys.
    Normal(f64),
}

/// A workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EtcConfig {
    /// Keys.
    pub keys: u64,
    /// Requests.
    pub requests: u64,
    /// The share of sets.
    pub sets: f64,
    /// How often keys are used.
    pub popularity: Popularity,
    /// Whether values of up to 14 bytes have their own probabilities; if not, all values follow the
    /// Pareto distribution.
    pub short_values: bool,
    /// The seed.
    pub seed: u64,
}

/// The limit of `keys` and `requests` in a list, far above any real workload.
const COUNT_MAX: f64 = 1e15;

impl EtcConfig {
    /// The configuration of a list such as `keys=1000000,requests=10000000,sets=0.03,zipf=0.9`:
    /// without `zipf` (the exponent) or `normal` (the deviation as a share of the keys) all keys
    /// are used equally often. The seed is 1.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut config = Self {
            keys: 1_000_000,
            requests: 10_000_000,
            sets: 1.0 / 31.0,
            popularity: Popularity::Uniform,
            short_values: true,
            seed: 1,
        };
        for part in text.split(',') {
            let (name, value) =
                part.split_once('=').ok_or_else(|| format!("{part:?}: NAME=VALUE"))?;
            let wrong = || format!("{name}: {value:?} is out of range");
            let number =
                value.parse::<f64>().ok().filter(|number| *number >= 0.0).ok_or_else(wrong)?;
            let is_popularity = matches!(name, "zipf" | "normal");
            if is_popularity && config.popularity != Popularity::Uniform {
                return Err("zipf and normal exclude each other; give one".to_owned());
            }
            match name {
                "keys" if (1.0..=COUNT_MAX).contains(&number) => config.keys = number as u64,
                "requests" if (1.0..=COUNT_MAX).contains(&number) => {
                    config.requests = number as u64;
                }
                "sets" if number <= 1.0 => config.sets = number,
                "zipf" if number > 0.0 && number < 10.0 => {
                    config.popularity = Popularity::Zipf(number);
                }
                "normal" if number > 0.0 => config.popularity = Popularity::Normal(number),
                "keys" | "requests" => return Err(format!("{}: give 1 to 10^15", wrong())),
                "sets" | "zipf" | "normal" => return Err(wrong()),
                _ => return Err(format!("{name}: names are keys, requests, sets, zipf, normal")),
            }
        }
        Ok(config)
    }
}

/// The requests.
#[derive(Debug)]
pub struct Etc {
    config: EtcConfig,
    rng: Rng,
    zipf: Option<Zipf>,
    left: u64,
}

fn mix(mut word: u64) -> u64 {
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// A number in (0, 1) that depends on a key.
fn share(key: u64, salt: u64) -> f64 {
    ((mix(key ^ salt) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// Bytes of the key with this number.
#[must_use]
pub fn key_len(key: u64) -> u32 {
    let (mu, sigma, k) = (30.7984, 8.20449, 0.078_688);
    let size = mu + sigma * ((-share(key, 1).ln()).powf(-k) - 1.0) / k;
    (size as u32).clamp(1, 250)
}

/// Bytes of the value of the key with this number.
#[must_use]
pub fn value_len(key: u64, short_values: bool) -> u32 {
    let pareto = |theta: f64, u: f64| {
        let (sigma, k) = (214.476, 0.348_238);
        (theta + sigma * (u.powf(-k) - 1.0) / k) as u32
    };
    if short_values {
        let mut drawn = (share(key, 2) * 1e5) as u32;
        for (len, probability) in (0..).zip(SHORT) {
            if drawn < probability {
                return len;
            }
            drawn -= probability;
        }
    }
    pareto(if short_values { 15.0 } else { 0.0 }, share(key, 3)).min(1 << 20)
}

impl Etc {
    /// The requests of a workload.
    #[must_use]
    pub fn new(config: EtcConfig) -> Self {
        let rng = Rng::stream(config.seed, "cache.etc");
        let zipf = match config.popularity {
            Popularity::Zipf(theta) => Some(Zipf::new(config.keys, theta)),
            Popularity::Uniform | Popularity::Normal(_) => None,
        };
        Self { config, rng, zipf, left: config.requests }
    }

    fn key(&mut self) -> u64 {
        let keys = self.config.keys;
        match (self.config.popularity, &self.zipf) {
            (Popularity::Zipf(_), Some(zipf)) => zipf.draw(&mut self.rng) % keys,
            (Popularity::Normal(share), _) => loop {
                // Box and Muller, with two independent numbers.
                let (u, v) = (self.rng.unit().max(1e-300), self.rng.unit());
                let normal = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos();
                let key = (0.5 + share * normal) * keys as f64;
                if (0.0..keys as f64).contains(&key) {
                    break key as u64;
                }
            },
            _ => self.rng.below(keys),
        }
    }

    /// A request of the key with this number.
    #[must_use]
    pub fn request(&self, key: u64, op: Op, time: u32) -> Request {
        let value_len = value_len(key, self.config.short_values);
        Request { time, op, key: mix(key + 1), key_len: key_len(key), value_len, ttl: 0 }
    }
}

impl Iterator for Etc {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        self.left = self.left.checked_sub(1)?;
        let key = self.key();
        let op = if self.rng.chance(self.config.sets) { Op::Set } else { Op::Get };
        // 52.7 thousand requests a second, as published.
        let time = ((self.config.requests - self.left) / 52_700) as u32;
        Some(self.request(key, op, time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(len: impl Fn(u64) -> u32) -> f64 {
        let keys = 1_000_000;
        (0..keys).map(|key| f64::from(len(key))).sum::<f64>() / keys as f64
    }

    #[test]
    fn keys_and_requests_have_a_range() {
        for name in ["keys", "requests"] {
            for value in ["0", "0.5", "1.1e15", "1e30", "inf"] {
                let error = EtcConfig::parse(&format!("{name}={value}")).unwrap_err();
                let expected = format!("{name}: {value:?} is out of range: give 1 to 10^15");
                assert_eq!(error, expected);
            }
        }
        let most = EtcConfig::parse("keys=1e15,requests=1000000000000000").unwrap();
        assert_eq!((most.keys, most.requests), (10_u64.pow(15), 10_u64.pow(15)));
        let least = EtcConfig::parse("keys=1,requests=1").unwrap();
        assert_eq!((least.keys, least.requests), (1, 1));
    }

    /// The means of the published distributions.
    #[test]
    fn sizes_are_those_of_the_model() {
        let keys = mean(key_len);
        assert!((keys - 35.7).abs() < 0.6, "{keys}");
        let all = mean(|key| value_len(key, true));
        assert!((all - 194.0).abs() < 6.0, "{all}");
        let pareto = mean(|key| value_len(key, false));
        assert!((pareto - 329.0).abs() < 10.0, "{pareto}");
        let sum: u32 = SHORT.iter().sum();
        assert_eq!(sum, 44_155);
    }

    #[test]
    fn requests_have_the_share_of_sets_and_the_popularity() {
        let config = EtcConfig {
            keys: 1000,
            requests: 100_000,
            sets: 0.1,
            popularity: Popularity::Normal(1.0 / 6.0),
            short_values: true,
            seed: 1,
        };
        let requests: Vec<Request> = Etc::new(config).collect();
        assert_eq!(requests.len(), 100_000);
        let sets = requests.iter().filter(|request| request.op == Op::Set).count();
        assert!((9_500..10_500).contains(&sets), "{sets}");
        let middle: Vec<u64> = (333..667).map(|key: u64| mix(key + 1)).collect();
        let near = requests.iter().filter(|request| middle.contains(&request.key)).count();
        assert!((66_000..71_000).contains(&near), "{near}: one standard deviation");
    }
}
