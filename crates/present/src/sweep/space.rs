//! Which values the settings of designs take: combinations of lists, and random samples of ranges.

use prism_base::Rng;

use crate::sweep::scalar::{Quantity, Scalar};

/// Every combination of one element of each list, the last list changing fastest; `None` if they
/// are more than `most`.
pub(super) fn product<T: Clone>(lists: &[&[T]], most: usize) -> Option<Vec<Vec<T>>> {
    let count = lists.iter().try_fold(1usize, |count, list| count.checked_mul(list.len()))?;
    if count > most {
        return None;
    }
    let mut points: Vec<Vec<T>> = vec![Vec::new()];
    for list in lists {
        let extend = |point: &Vec<T>| {
            let with = |value: &T| [&point[..], std::slice::from_ref(value)].concat();
            list.iter().map(with).collect::<Vec<_>>()
        };
        points = points.iter().flat_map(extend).collect();
    }
    Some(points)
}

/// The values from which a random design takes one.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Range {
    /// Whole numbers, both ends included; multiples of `step` above `low`.
    Whole { low: i64, high: i64, step: i64, scale: Scale, quantity: Option<Quantity> },
    /// Any numbers from `low` to below `high`.
    Real { low: f64, high: f64, scale: Scale },
    /// One of these, each equally likely.
    Choice(Vec<Scalar>),
}

/// How values are spread over a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// Each value is equally likely.
    Uniform,
    /// Each ratio is equally likely: as many values are between 1 and 10 as between 10 and 100.
    Log,
}

impl Range {
    /// The range from `low` to `high`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(
        low: &Scalar,
        high: &Scalar,
        step: Option<&Scalar>,
        scale: Scale,
    ) -> Result<Self, String> {
        if let Some((low, low_unit)) = whole(low) {
            let other = |value: &Scalar| whole(value).filter(|(_, unit)| *unit == low_unit);
            if let Some((high, _)) = other(high) {
                let what = "the step is a whole number above 0 with the unit of the ends";
                let step = step.map_or(Some(1), |step| Some(other(step)?.0).filter(|&s| s > 0));
                let step = step.ok_or(what)?;
                let range = Self::Whole { low, high, step, scale, quantity: low_unit };
                return checked(range, low as f64, high as f64, scale);
            }
        }
        match (real(low), real(high), step) {
            (Some(low), Some(high), None) => {
                checked(Self::Real { low, high, scale }, low, high, scale)
            }
            (Some(_), Some(_), Some(_)) => Err("a step is for whole numbers and quantities".into()),
            _ => Err("both ends are numbers, or quantities of one unit such as \"4KiB\" and \
                      \"1MiB\", and whole numbers if one of them is"
                .into()),
        }
    }

    /// `count` values, which depend on `seed` and `name` alone.
    pub fn samples(&self, seed: u64, name: &str, count: usize) -> Vec<Scalar> {
        let mut random = Rng::stream(seed, name);
        (0..count).map(|_| self.sample(&mut random)).collect()
    }

    fn sample(&self, random: &mut Rng) -> Scalar {
        match self {
            Self::Choice(values) => values[random.below(values.len() as u64) as usize].clone(),
            Self::Real { low, high, scale: Scale::Uniform } => {
                Scalar::Float(low + (high - low) * random.unit())
            }
            Self::Real { low, high, scale: Scale::Log } => {
                Scalar::Float(log_uniform(*low, *high, random).clamp(*low, *high))
            }
            Self::Whole { low, high, step, scale, quantity } => {
                let steps = (high - low) / step;
                let number = match scale {
                    Scale::Uniform => low + step * random.below(steps as u64 + 1) as i64,
                    Scale::Log => {
                        // The end is included, as if each number began an interval of length 1.
                        let value = log_uniform(*low as f64, *high as f64 + 1.0, random) as i64;
                        low + (value.clamp(*low, *high) - low) / step * step
                    }
                };
                quantity.map_or(Scalar::Int(number), |quantity| quantity.with_unit(number))
            }
        }
    }

    /// Whether the values are numbers of a range, of which one is as valid as another.
    pub fn is_numbers(&self) -> bool {
        !matches!(self, Self::Choice(_))
    }
}

/// The most that a whole number of a range may be: above it, numbers are no longer exact in the
/// floating point of a logarithm.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

fn checked(range: Range, low: f64, high: f64, scale: Scale) -> Result<Range, String> {
    if !low.is_finite() || !high.is_finite() || low.abs().max(high.abs()) > WHOLE_MAX {
        return Err("the ends are too large".into());
    }
    if low >= high {
        return Err("the first end must be below the second".into());
    }
    if scale == Scale::Log && low <= 0.0 {
        return Err("a logarithmic range begins above 0".into());
    }
    Ok(range)
}

fn log_uniform(low: f64, high: f64, random: &mut Rng) -> f64 {
    // Of libm, because the mathematics of the system differs between machines.
    let (from, to) = (libm::log(low), libm::log(high));
    libm::exp(from + (to - from) * random.unit())
}

fn whole(value: &Scalar) -> Option<(i64, Option<Quantity>)> {
    match value {
        Scalar::Int(number) => Some((*number, None)),
        other => other.quantity().map(|(quantity, number)| (number, Some(quantity))),
    }
}

fn real(value: &Scalar) -> Option<f64> {
    match value {
        Scalar::Int(number) => Some(*number as f64),
        Scalar::Float(number) => Some(*number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Scalar {
        Scalar::Text(text.into())
    }

    #[test]
    fn the_last_list_changes_fastest_and_there_is_a_limit() {
        let points = product(&[&[1, 2], &[3], &[4, 5]], 4).unwrap();
        assert_eq!(points, [[1, 3, 4], [1, 3, 5], [2, 3, 4], [2, 3, 5]]);
        assert_eq!(product(&[&[1, 2], &[4, 5]], 3), None);
        assert_eq!(product::<u8>(&[], 1), Some(vec![vec![]]));
        assert_eq!(product::<u8>(&[&[]], 1), Some(vec![]));
        assert_eq!(product(&[&[0u8; 1 << 16][..]; 5], usize::MAX), None);
    }

    /// Shares of samples below each bound against the closed form, within five deviations.
    fn check(range: &Range, below: &[(f64, f64)]) {
        const SAMPLES: usize = 20_000;
        let values = range.samples(7, "a", SAMPLES);
        assert_eq!(values, range.samples(7, "a", SAMPLES));
        assert_ne!(values, range.samples(8, "a", SAMPLES));
        assert_ne!(values, range.samples(7, "b", SAMPLES));
        let number = |value: &Scalar| whole(value).map_or(real(value), |(n, _)| Some(n as f64));
        for &(bound, share) in below {
            let less = values.iter().filter(|v| number(v).unwrap() < bound).count() as f64;
            let (mean, samples) = (share * SAMPLES as f64, SAMPLES as f64);
            let deviation = (samples * share * (1.0 - share)).sqrt();
            assert!((less - mean).abs() <= 5.0 * deviation, "{range:?} < {bound}: {less}, {mean}");
        }
    }

    #[test]
    fn samples_are_spread_as_the_range_says() {
        use Scale::{Log, Uniform};
        let range = |low, high, step: Option<Scalar>, scale| {
            Range::new(&low, &high, step.as_ref(), scale).unwrap()
        };
        let int = Scalar::Int;
        check(&range(int(1), int(4), None, Uniform), &[(1.0, 0.0), (2.0, 0.25), (5.0, 1.0)]);
        let even = range(int(0), int(9), Some(int(3)), Uniform);
        check(&even, &[(0.5, 0.25), (3.5, 0.5), (9.0, 0.75), (10.0, 1.0)]);
        check(&range(Scalar::Float(0.5), int(1), None, Uniform), &[(0.5, 0.0), (0.75, 0.5)]);
        let log = range(Scalar::Float(1.0), Scalar::Float(100.0), None, Log);
        check(&log, &[(1.0, 0.0), (10.0, 0.5), (100.1, 1.0)]);
        // Of 1 to 7 the share of 1 is log 2 / log 8.
        check(&range(int(1), int(7), None, Log), &[(2.0, 1.0 / 3.0), (4.0, 2.0 / 3.0), (8.0, 1.0)]);
        let sizes = range(text("4KiB"), text("16KiB"), Some(text("4KiB")), Uniform);
        check(&sizes, &[(4097.0, 0.25), (8193.0, 0.5), (16385.0, 1.0)]);
        assert!(
            matches!(&sizes.samples(1, "", 1)[..], [Scalar::Text(size)] if size.ends_with('B'))
        );
        check(&Range::Choice(vec![int(5), int(6)]), &[(5.5, 0.5), (7.0, 1.0)]);
    }

    #[test]
    fn ranges_that_make_no_sense_are_refused() {
        let check = |low: Scalar, high: Scalar, step: Option<Scalar>, scale, expected: &str| {
            let message = Range::new(&low, &high, step.as_ref(), scale).unwrap_err();
            assert!(message.contains(expected), "{low:?} {high:?}: {message}");
        };
        use Scale::{Log, Uniform};
        let int = Scalar::Int;
        check(int(3), int(3), None, Uniform, "below the second");
        check(int(0), int(3), None, Log, "above 0");
        check(text("4KiB"), int(3), None, Uniform, "quantities of one unit");
        check(text("4KiB"), text("3us"), None, Uniform, "quantities of one unit");
        check(text("a"), text("b"), None, Uniform, "both ends are numbers");
        check(int(1), int(3), Some(int(0)), Uniform, "the step is a whole number above 0");
        check(int(1), Scalar::Float(3.5), Some(int(1)), Uniform, "a step is for whole numbers");
        check(Scalar::Float(1.0), Scalar::Float(f64::INFINITY), None, Uniform, "too large");
        check(int(1), int(i64::MAX), None, Uniform, "too large");
    }
}
