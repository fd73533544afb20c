//! Distributions of random offsets: uniform, Zipf, Pareto, normal, zones.
//!
//! Source: fio's HOWTO, `random_distribution`; lib/zipf.c for the exponent of Pareto. Mathematical
//! functions come from a software library, so that a seed gives the same I/Os on every machine.

use prism_base::Rng;
use prism_base::distribution::{Scatter, Zipf};

use super::sizes::Integer;
use super::value::float;

/// The most zones of one job, as in fio.
const ZONES_MAX: usize = 256;

/// Draws from a normal distribution before its center is used instead. With a small deviation, at
/// most about half of the draws lie outside the region.
const REDRAWS_MAX: u32 = 64;

/// A distribution of offsets.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// All slots equally likely.
    Uniform,
    /// The k-th hottest slot with a probability proportional to 1/k^theta.
    Zipf {
        /// Above 0, at most 10.
        theta: f64,
        /// Position of the hottest slot, 0 to 1; without it slots are scattered.
        center: Option<f64>,
    },
    /// The first share `h` of the ranks gets 1 - `h` of the I/Os, and so on within it.
    Pareto {
        /// Between 0 and 1.
        h: f64,
        /// Position of the hottest slot, 0 to 1; without it slots are scattered.
        center: Option<f64>,
    },
    /// Normal distribution around a center.
    Normal {
        /// Standard deviation in percent of the region.
        deviation: f64,
        /// 0 to 1.
        center: f64,
    },
    /// Consecutive zones with given shares of the I/Os.
    Zones(Vec<Zone>),
}

/// A zone of [`Distribution::Zones`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Share of the I/Os in percent.
    pub percent: u64,
    /// Size.
    pub space: Space,
}

/// The size of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// In percent of the region.
    Percent(u64),
    /// In bytes.
    Bytes(u64),
}

impl Distribution {
    /// Reads fio's notation.
    ///
    /// # Errors
    /// A description of what is expected.
    pub fn parse(text: &str, integer: Integer<'_>) -> Result<Self, String> {
        let (kind, rest) = text.split_once([':', '=']).unwrap_or((text, ""));
        if kind == "zoned" || kind == "zoned_abs" {
            return zones(rest, kind == "zoned_abs", integer);
        }
        let mut numbers = rest.split(':').filter(|part| !part.is_empty());
        let mut number = |low, high| numbers.next().map(|n| float(n, low, high)).transpose();
        let needed = |value: Option<f64>| {
            value.ok_or_else(|| format!("{kind} needs a number, as {kind}:0.9"))
        };
        let read = match kind {
            "random" => Self::Uniform,
            "zipf" => {
                let theta = needed(number(0.001, 10.0)?)?;
                Self::Zipf { theta, center: number(0.0, 1.0)? }
            }
            "pareto" => {
                let h = needed(number(0.001, 0.999)?)?;
                Self::Pareto { h, center: number(0.0, 1.0)? }
            }
            "normal" => {
                let deviation = needed(number(0.0, 100.0)?)?;
                Self::Normal { deviation, center: number(0.0, 1.0)?.unwrap_or(0.5) }
            }
            _ => return Err("random, zipf, pareto, normal, zoned or zoned_abs is expected".into()),
        };
        if numbers.next().is_some() {
            return Err(format!("too many numbers for {kind}"));
        }
        Ok(read)
    }

    /// Checks that zones lie within a region of `len` bytes.
    ///
    /// # Errors
    /// A description of the error.
    pub fn fit(&self, len: u64) -> Result<(), String> {
        let Self::Zones(zones) = self else { return Ok(()) };
        let bytes = zones.iter().map(|zone| match zone.space {
            Space::Percent(_) => 0,
            Space::Bytes(bytes) => bytes,
        });
        if bytes.fold(0, u64::saturating_add) > len {
            return Err(format!("the zones of random_distribution are larger than {len} bytes"));
        }
        Ok(())
    }
}

fn zones(text: &str, absolute: bool, integer: Integer<'_>) -> Result<Distribution, String> {
    let expected = if absolute {
        "zones as zoned_abs:60/20g:40/100g are expected, percentages adding up to 100"
    } else {
        "zones as zoned:60/10:40/90 are expected, percentages of I/Os adding up to 100, of \
         space to at most 100"
    };
    let wrong = || expected.to_owned();
    if text.contains(',') {
        return Err("one set of zones for reads, writes and trims is simulated".into());
    }
    let mut zones = Vec::new();
    for part in text.split(':') {
        let (percent, space) = part.split_once('/').ok_or_else(wrong)?;
        let percent: u64 = percent.trim().parse().map_err(|_| wrong())?;
        let space = if absolute {
            Space::Bytes(integer(space)?)
        } else {
            Space::Percent(space.trim().parse().map_err(|_| wrong())?)
        };
        if matches!(space, Space::Percent(0) | Space::Bytes(0)) || percent > 100 {
            return Err(wrong());
        }
        zones.push(Zone { percent, space });
    }
    let space = |zone: &Zone| if let Space::Percent(percent) = zone.space { percent } else { 0 };
    let ios: u64 = zones.iter().map(|zone| zone.percent).sum();
    let all = zones.iter().map(space).fold(0, u64::saturating_add);
    if zones.len() > ZONES_MAX || ios != 100 || all > 100 {
        return Err(wrong());
    }
    Ok(Distribution::Zones(zones))
}

/// Draws random slots `0..slots` of a region.
#[derive(Clone, Debug)]
pub(super) struct Draw {
    slots: u64,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Uniform,
    Zipf(Zipf, Placing),
    /// The exponent applied to a uniform number.
    Pareto(f64, Placing),
    /// Mean and standard deviation, in slots.
    Normal(f64, f64),
    /// First slot, number of slots and percentage of each.
    Zones(Vec<(u64, u64, u64)>),
}

/// Map from ranks to slots.
#[derive(Clone, Debug)]
enum Placing {
    Scatter(Scatter),
    /// From this slot on, with wrap-around.
    From(u64),
}

impl Draw {
    /// `slots` is above 0; slots start every `align` bytes. `rng` chooses the scattering.
    pub fn new(distribution: &Distribution, slots: u64, align: u64, rng: &mut Rng) -> Self {
        let mut placing = |center: Option<f64>| match center {
            None => Placing::Scatter(Scatter::new(slots, rng)),
            Some(center) => Placing::From((slots as f64 * center) as u64 % slots),
        };
        let kind = match distribution {
            Distribution::Uniform => Kind::Uniform,
            Distribution::Zipf { theta, center } => {
                Kind::Zipf(Zipf::new(slots, *theta), placing(*center))
            }
            Distribution::Pareto { h, center } => {
                Kind::Pareto(libm::log(*h) / libm::log(1.0 - h), placing(*center))
            }
            Distribution::Normal { deviation, center } => {
                let all = slots as f64;
                Kind::Normal(all * center, all * deviation / 100.0)
            }
            Distribution::Zones(zones) => Kind::Zones(slots_of(zones, slots, align)),
        };
        Self { slots, kind }
    }

    /// The number of slots, if all are equally likely.
    #[inline(always)]
    pub fn uniform_slots(&self) -> Option<u64> {
        matches!(self.kind, Kind::Uniform).then_some(self.slots)
    }

    /// The next slot.
    #[inline(always)]
    pub fn next(&self, rng: &mut Rng) -> u64 {
        if let Kind::Uniform = self.kind { rng.below(self.slots) } else { self.next_of_kind(rng) }
    }

    #[inline(never)]
    fn next_of_kind(&self, rng: &mut Rng) -> u64 {
        let slots = self.slots;
        match &self.kind {
            Kind::Uniform => rng.below(slots),
            Kind::Zipf(zipf, placing) => placing.slot(zipf.draw(rng), slots),
            Kind::Pareto(power, placing) => {
                let rank = (slots - 1) as f64 * libm::pow(rng.unit(), *power);
                placing.slot((rank as u64).min(slots - 1), slots)
            }
            Kind::Normal(mean, deviation) => {
                for _ in 0..REDRAWS_MAX {
                    let slot = (mean + deviation * standard_normal(rng)).floor();
                    if slot >= 0.0 && slot < slots as f64 {
                        return slot as u64;
                    }
                }
                (*mean as u64).min(slots - 1)
            }
            Kind::Zones(zones) => {
                let mut draw = rng.below(100);
                for &(first, count, percent) in zones {
                    match draw.checked_sub(percent) {
                        Some(rest) => draw = rest,
                        None => return first + rng.below(count),
                    }
                }
                unreachable!("the percentages of zones add up to 100")
            }
        }
    }
}

impl Placing {
    fn slot(&self, rank: u64, slots: u64) -> u64 {
        match self {
            Self::Scatter(scatter) => scatter.place(rank),
            Self::From(first) => (first + rank) % slots,
        }
    }
}

/// Box-Muller transform; its second value is discarded, so that draws are independent of each
/// other.
fn standard_normal(rng: &mut Rng) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log1p(-rng.unit()));
    radius * libm::cos(std::f64::consts::TAU * rng.unit())
}

/// The zones in slots; each has at least one.
fn slots_of(zones: &[Zone], slots: u64, align: u64) -> Vec<(u64, u64, u64)> {
    let mut percents = 0;
    let mut bytes = 0;
    let mut list = Vec::with_capacity(zones.len());
    for zone in zones {
        let at = |percents: u64, bytes: u64| match zone.space {
            Space::Percent(_) => (u128::from(slots) * u128::from(percents) / 100) as u64,
            Space::Bytes(_) => bytes / align,
        };
        let first = at(percents, bytes).min(slots - 1);
        match zone.space {
            Space::Percent(percent) => percents += percent,
            Space::Bytes(size) => bytes += size,
        }
        let end = at(percents, bytes).clamp(first + 1, slots);
        list.push((first, end - first, zone.percent));
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::value::{KbBase, integer};

    fn parse(text: &str) -> Result<Distribution, String> {
        Distribution::parse(text, &|text| integer(text, KbBase::Binary))
    }

    /// How often each of `slots` occurs in `draws`.
    fn counts(text: &str, slots: u64, draws: u32) -> Vec<u32> {
        let mut rng = Rng::stream(5, "draws");
        let draw = Draw::new(&parse(text).unwrap(), slots, 4096, &mut rng);
        let mut counts = vec![0; slots as usize];
        (0..draws).for_each(|_| counts[draw.next(&mut rng) as usize] += 1);
        counts
    }

    #[test]
    fn fio_notations_are_read() {
        let check = |text, expected| assert_eq!(parse(text), Ok(expected), "{text}");
        check("random", Distribution::Uniform);
        check("zipf:1.2", Distribution::Zipf { theta: 1.2, center: None });
        check("zipf:1.2:0.25", Distribution::Zipf { theta: 1.2, center: Some(0.25) });
        check("pareto:0.9", Distribution::Pareto { h: 0.9, center: None });
        check("normal:10", Distribution::Normal { deviation: 10.0, center: 0.5 });
        for text in ["zipf", "zipf:x", "zipf:0", "zipf:1:2", "zipf:1:0:0", "pareto:1", "gauss:1"] {
            assert!(parse(text).is_err(), "{text}");
        }
        for text in ["zoned:60/10", "zoned:50/60:50/60", "zoned_abs:100/0", "zoned:100/10,100/20"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(parse("zoned_abs:100/1m").unwrap().fit(1 << 20), Ok(()));
        assert!(parse("zoned_abs:100/1m").unwrap().fit(1 << 19).is_err());
    }

    #[test]
    fn zipf_ranks_follow_the_law_wherever_they_lie() {
        for text in ["zipf:1.1", "zipf:0.9:0.5"] {
            let theta = if text == "zipf:1.1" { 1.1 } else { 0.9 };
            let mut counts = counts(text, 1000, 400_000);
            if text != "zipf:1.1" {
                assert_eq!(counts.iter().enumerate().max_by_key(|(_, n)| **n).unwrap().0, 500);
            }
            counts.sort_unstable_by(|a, b| b.cmp(a));
            let sum: f64 = (1..=1000).map(|k| f64::from(k).powf(-theta)).sum();
            for k in [1, 2, 5, 20] {
                let expected = 400_000.0 * f64::from(k).powf(-theta) / sum;
                let off = (f64::from(counts[k as usize - 1]) / expected - 1.0).abs();
                assert!(off < 0.05, "{text} rank {k}: off by {off}");
            }
        }
    }

    #[test]
    fn pareto_is_as_uneven_as_asked() {
        let mut counts = counts("pareto:0.2", 10_000, 400_000);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        // u^p < h exactly if u < h^(1/p) = 1 - h.
        let hot: u32 = counts[..2000].iter().sum();
        assert!((f64::from(hot) / 400_000.0 - 0.8).abs() < 0.01, "{hot}");
    }

    #[test]
    fn normal_has_its_mean_and_deviation() {
        let counts = counts("normal:10", 1000, 200_000);
        let n = 200_000.0;
        let mean =
            counts.iter().zip(0..).map(|(&c, x)| f64::from(c) * f64::from(x)).sum::<f64>() / n;
        let square = |(&c, x): (&u32, i32)| f64::from(c) * (f64::from(x) - mean).powi(2);
        let deviation = (counts.iter().zip(0..).map(square).sum::<f64>() / n).sqrt();
        assert!(
            (mean - 499.5).abs() < 1.5 && (deviation - 100.0).abs() < 1.5,
            "{mean} {deviation}"
        );
    }

    #[test]
    fn zones_get_their_shares() {
        let counts = counts("zoned:60/10:30/20:10/30", 1000, 100_000);
        let of = |range: std::ops::Range<usize>| counts[range].iter().sum::<u32>();
        assert!(of(0..100).abs_diff(60_000) < 800);
        assert!(of(100..300).abs_diff(30_000) < 800);
        assert!(of(300..600).abs_diff(10_000) < 800);
        assert_eq!(of(600..1000), 0);
    }
}
