//! A number with a unit has a type, and configuration text carries its units.
//!
//! `SimTime` is a point on the simulated clock, `Nanos` a span between two points, `Bytes` an
//! amount of data. [`Bytes::parse`] and [`Nanos::parse`] read text such as `64GiB` or `750us`;
//! a number without a unit is refused, because its meaning would not be clear.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A point in simulated time: nanoseconds since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SimTime(pub u64);

/// A span of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

/// An amount of data in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// A number of things, whose name gets an s unless it is one.
#[must_use]
pub fn counted(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// Why a text with a unit could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnitError {
    /// There is no number at the start of the text.
    #[error("{text:?} does not start with a number; write for example {example}")]
    NoNumber {
        /// The text as given.
        text: String,
        /// A valid example.
        example: &'static str,
    },
    /// The unit is missing or not one of the known ones.
    #[error("{text:?} has no known unit; use one of {known}")]
    UnknownUnit {
        /// The text as given.
        text: String,
        /// The known units.
        known: &'static str,
    },
    /// The value does not fit in 64 bits of bytes or nanoseconds, or is negative.
    #[error("{text:?} is out of range")]
    OutOfRange {
        /// The text as given.
        text: String,
    },
}

impl SimTime {
    /// The start of every run.
    pub const ZERO: Self = Self(0);
    /// Later than everything that happens.
    pub const NEVER: Self = Self(u64::MAX);

    /// The span from `earlier` to `self`.
    ///
    /// # Panics
    /// If `earlier` is later than `self`: simulated time never runs backwards.
    #[must_use]
    pub fn since(self, earlier: Self) -> Nanos {
        Nanos(self.0.checked_sub(earlier.0).expect("simulated time ran backwards"))
    }
}

impl Add<Nanos> for SimTime {
    type Output = Self;
    fn add(self, span: Nanos) -> Self {
        Self(self.0 + span.0)
    }
}

impl AddAssign<Nanos> for SimTime {
    fn add_assign(&mut self, span: Nanos) {
        self.0 += span.0;
    }
}

impl Nanos {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// Reads `750us`, `2ms`, `1.5s`, `20ns`, `3min`, `1h`, `2d`.
    ///
    /// # Errors
    /// [`UnitError`] if there is no number, no known unit, or if the value is too large.
    pub fn parse(text: &str) -> Result<Self, UnitError> {
        const UNITS: [(&str, u64); 7] = [
            ("ns", 1),
            ("us", 1_000),
            ("ms", 1_000_000),
            ("s", 1_000_000_000),
            ("min", 60_000_000_000),
            ("h", 3_600_000_000_000),
            ("d", 86_400_000_000_000),
        ];
        parse_scaled(text, &UNITS, "ns, us, ms, s, min, h, d", "750us").map(Self)
    }

    /// This span in seconds, for display and for rates.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl std::ops::Mul<u64> for Bytes {
    type Output = Self;

    fn mul(self, times: u64) -> Self {
        Self(self.0 * times)
    }
}

impl Bytes {
    /// Zero bytes.
    pub const ZERO: Self = Self(0);

    /// Reads `4KiB`, `64GiB`, `1.5TB`, `512B`. `KiB` is 1024 bytes, `KB` is 1000.
    ///
    /// # Errors
    /// [`UnitError`] if there is no number, no known unit, or if the value is too large.
    pub fn parse(text: &str) -> Result<Self, UnitError> {
        const UNITS: [(&str, u64); 12] = [
            ("B", 1),
            ("KiB", 1 << 10),
            ("MiB", 1 << 20),
            ("GiB", 1 << 30),
            ("TiB", 1 << 40),
            ("PiB", 1 << 50),
            ("kB", 1_000),
            ("KB", 1_000),
            ("MB", 1_000_000),
            ("GB", 1_000_000_000),
            ("TB", 1_000_000_000_000),
            ("PB", 1_000_000_000_000_000),
        ];
        let known = "B, KiB, MiB, GiB, TiB, PiB, KB, MB, GB, TB, PB";
        parse_scaled(text, &UNITS, known, "64GiB").map(Self)
    }

    /// Reads a rate such as `50MB/s`: bytes a second, more than none.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse_rate(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a rate; give a size a second, such as 50MiB/s");
        let size = text.strip_suffix("/s").ok_or_else(wrong)?;
        let rate = Self::parse(size).map_err(|error| error.to_string())?;
        if rate == Self::ZERO { Err(wrong()) } else { Ok(rate) }
    }

    /// How many pieces of `size` cover this amount, rounding up.
    ///
    /// # Panics
    /// If `size` is zero.
    #[must_use]
    pub fn div_ceil(self, size: Self) -> u64 {
        self.0.div_ceil(size.0)
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl fmt::Display for Bytes {
    /// The largest binary unit that leaves at least 1, with at most two decimals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
        let mut power = 0;
        while power + 1 < NAMES.len() && self.0 >> (10 * (power + 1)) > 0 {
            power += 1;
        }
        let value = self.0 as f64 / (1u64 << (10 * power)) as f64;
        write_short(f, value, NAMES[power])
    }
}

impl fmt::Display for Nanos {
    /// The largest of ns, us, ms, s that leaves at least 1, with at most two decimals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, name) = match self.0 {
            0..=999 => (1.0, "ns"),
            1_000..=999_999 => (1e3, "us"),
            1_000_000..=999_999_999 => (1e6, "ms"),
            _ => (1e9, "s"),
        };
        write_short(f, self.0 as f64 / scale, name)
    }
}

fn write_short(f: &mut fmt::Formatter<'_>, value: f64, unit: &str) -> fmt::Result {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    f.pad(&format!("{text} {unit}"))
}

/// Reads `<decimal><unit>`, with optional white space between the two. Whole numbers
/// are exact; a fraction is scaled in floating point and rounded to the nearest.
fn parse_scaled(
    text: &str,
    units: &[(&str, u64)],
    known: &'static str,
    example: &'static str,
) -> Result<u64, UnitError> {
    let trimmed = text.trim();
    let end = trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
        .unwrap_or(trimmed.len());
    let number = trimmed[..end].replace('_', "");
    if number.is_empty() {
        return Err(UnitError::NoNumber { text: text.into(), example });
    }
    let unit = trimmed[end..].trim();
    let scale = units
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|&(_, scale)| scale)
        .ok_or_else(|| UnitError::UnknownUnit { text: text.into(), known })?;
    let out_of_range = || UnitError::OutOfRange { text: text.into() };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(scale).ok_or_else(out_of_range);
    }
    let value: f64 =
        number.parse().map_err(|_| UnitError::NoNumber { text: text.into(), example })?;
    let scaled = (value * scale as f64).round();
    if scaled < u64::MAX as f64 { Ok(scaled as u64) } else { Err(out_of_range()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_carry_units() {
        let bytes = |text| Bytes::parse(text).map(|b| b.0);
        assert_eq!(bytes("4KiB"), Ok(4096));
        assert_eq!(bytes("64 GiB"), Ok(64 << 30));
        assert_eq!(bytes("1.5MB"), Ok(1_500_000));
        assert!(matches!(bytes("4096"), Err(UnitError::UnknownUnit { .. })));
        assert!(matches!(bytes("GiB"), Err(UnitError::NoNumber { .. })));
        assert!(matches!(bytes("99999999TiB"), Err(UnitError::OutOfRange { .. })));
        assert!(matches!(bytes("-4KiB"), Err(UnitError::NoNumber { .. })));
        let nanos = |text| Nanos::parse(text).map(|n| n.0);
        assert_eq!(nanos("750us"), Ok(750_000));
        assert_eq!(nanos("0.5ms"), Ok(500_000));
        assert!(matches!(nanos("5"), Err(UnitError::UnknownUnit { .. })));
    }

    #[test]
    fn display_is_short() {
        assert_eq!(Bytes(4096).to_string(), "4 KiB");
        assert_eq!(Bytes(1_610_612_736).to_string(), "1.5 GiB");
        assert_eq!(Nanos(75_000).to_string(), "75 us");
        assert_eq!(Nanos(1_234_567).to_string(), "1.23 ms");
    }
}
