//! Parsers of fio's values: sizes, times, percentages, lists for reads, writes, trims.
//!
//! Source: fio's HOWTO, "Parameter types".

use prism_base::Nanos;

/// Meaning of unit prefixes such as `k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KbBase {
    /// fio's default: `k` is 1024, `ki` is 1000.
    Binary,
    /// `kb_base=1000`: `k` is 1000, `ki` is 1024.
    Decimal,
}

/// An amount that may be a share of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// In bytes.
    Bytes(u64),
    /// In percent of the drive, 1 to 100.
    Percent(u64),
}

const INTEGER: &str = "a whole number such as 4096, 0x1000, 4k, 64m or 8g is expected";
const TIME: &str = "a time such as 30, 30s, 5m, 2h, 500ms or 20us is expected, at most 366 days";

/// The longest time that an option may give.
pub const TIME_MAX: Nanos = Nanos(366 * 86_400 * 1_000_000_000);

/// Reads an integer with an optional prefix `0x` and an optional unit: `4k`, `4kb`,
/// `1Mi`, `512b`.
///
/// # Errors
/// A description of what is expected.
pub fn integer(text: &str, base: KbBase) -> Result<u64, String> {
    let wrong = || INTEGER.to_owned();
    let lower = text.trim().to_ascii_lowercase();
    let (digits, radix) = match lower.strip_prefix("0x") {
        Some(hex) => (hex, 16),
        None => (lower.as_str(), 10),
    };
    // In hexadecimal a trailing b is a digit.
    let is_digit = |c: char| c.is_digit(radix);
    let end = digits.find(|c| !is_digit(c)).unwrap_or(digits.len());
    let number = u64::from_str_radix(&digits[..end], radix).map_err(|_| wrong())?;
    let unit = &digits[end..];
    let unit = unit.strip_suffix('b').unwrap_or(unit);
    let (prefix, named_binary) = match unit.strip_suffix('i') {
        Some(prefix) if !prefix.is_empty() => (prefix, true),
        _ => (unit, false),
    };
    let power = match prefix {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return Err(wrong()),
    };
    let scale: u64 = if named_binary == (base == KbBase::Decimal) { 1024 } else { 1000 };
    number.checked_mul(scale.pow(power)).ok_or_else(|| format!("{INTEGER}; this is too large"))
}

/// Reads an integer or a percentage.
///
/// # Errors
/// A description of what is expected.
pub fn amount(text: &str, base: KbBase) -> Result<Amount, String> {
    let Some(percent) = text.trim().strip_suffix('%') else {
        return integer(text, base).map(Amount::Bytes);
    };
    match percent.parse() {
        Ok(percent @ 1..=100) => Ok(Amount::Percent(percent)),
        _ => Err("a whole percentage from 1% to 100% is expected".into()),
    }
}

/// Reads a time; a bare number is in `default` (seconds or microseconds).
///
/// # Errors
/// A description of what is expected.
pub fn time(text: &str, default: Nanos) -> Result<Nanos, String> {
    let lower = text.trim().to_ascii_lowercase();
    let end = lower.find(|c: char| !c.is_ascii_digit()).unwrap_or(lower.len());
    let scale = match &lower[end..] {
        "" => default.0,
        "us" | "usec" => 1_000,
        "ms" | "msec" => 1_000_000,
        "s" | "sec" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return Err(TIME.into()),
    };
    let number: u64 = lower[..end].parse().map_err(|_| TIME.to_owned())?;
    let span = number.checked_mul(scale).map(Nanos);
    span.filter(|&span| span <= TIME_MAX).ok_or_else(|| TIME.to_owned())
}

/// Reads 0 or 1; an option without a value is 1.
///
/// # Errors
/// A description of what is expected.
pub fn flag(text: &str) -> Result<bool, String> {
    match text.trim() {
        "1" => Ok(true),
        "0" => Ok(false),
        _ => Err("0 or 1 is expected".into()),
    }
}

/// Splits a list for reads, writes and trims. The last value also applies to the directions after
/// it unless the list ends in a comma; an empty element is `None`.
///
/// # Errors
/// A description of what is expected, or the error of `read`.
pub fn triple<T: Clone>(
    text: &str,
    mut read: impl FnMut(&str) -> Result<T, String>,
) -> Result<[Option<T>; 3], String> {
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 && !(parts.len() == 4 && parts[3].is_empty()) {
        return Err("at most three values are expected: reads, writes, trims".into());
    }
    let mut values: [Option<T>; 3] = [None, None, None];
    for (value, part) in values.iter_mut().zip(&parts) {
        *value = if part.trim().is_empty() { None } else { Some(read(part)?) };
    }
    let last = parts.len().min(3) - 1;
    for place in last + 1..3 {
        values[place] = values[last].clone();
    }
    Ok(values)
}

/// Reads a float between two bounds, both allowed.
///
/// # Errors
/// A description of what is expected.
pub fn float(text: &str, low: f64, high: f64) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(value) if value >= low && value <= high => Ok(value),
        _ => Err(format!("{text:?} is no number from {low} to {high}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_fios() {
        let check = |text, base, expected| assert_eq!(integer(text, base).ok(), expected, "{text}");
        for (text, value) in [
            ("4096", 4096),
            ("0x1000", 4096),
            ("0x1b", 27),
            ("4k", 4096),
            ("4KB", 4096),
            ("4096b", 4096),
            ("4ki", 4000),
            ("4KiB", 4000),
            ("1m", 1 << 20),
            ("2G", 2 << 30),
            ("1t", 1 << 40),
        ] {
            check(text, KbBase::Binary, Some(value));
        }
        for (text, value) in [("4k", 4000), ("4ki", 4096), ("1MiB", 1 << 20), ("1m", 1_000_000)] {
            check(text, KbBase::Decimal, Some(value));
        }
        for text in ["", "k", "4x", "4 # sectors", "-1", "4.5k", "99999999999999t", "4i"] {
            check(text, KbBase::Binary, None);
        }
    }

    #[test]
    fn times_have_default_units() {
        let second = Nanos(1_000_000_000);
        let check = |text, expected| assert_eq!(time(text, second).ok().map(|t| t.0), expected);
        check("30", Some(30_000_000_000));
        check("2m", Some(120_000_000_000));
        check("500ms", Some(500_000_000));
        check("20USEC", Some(20_000));
        check("1h", Some(3_600_000_000_000));
        for text in ["", "s", "1y", "400d", "1.5s", "99999999999999999999"] {
            check(text, None);
        }
        assert_eq!(time("7", Nanos(1000)), Ok(Nanos(7000)));
    }

    #[test]
    fn lists_spread_to_the_right() {
        let read = |text: &str| integer(text, KbBase::Binary);
        let check = |text, expected: [Option<u64>; 3]| assert_eq!(triple(text, read), Ok(expected));
        check("8k", [Some(8192); 3]);
        check("8k,32k", [Some(8192), Some(32768), Some(32768)]);
        check("8k,32k,", [Some(8192), Some(32768), None]);
        check(",8k", [None, Some(8192), Some(8192)]);
        check(",8k,", [None, Some(8192), None]);
        check("1,2,3", [Some(1), Some(2), Some(3)]);
        assert!(triple("1,2,3,4", read).is_err());
    }

    #[test]
    fn percentages_are_whole() {
        let read = |text| amount(text, KbBase::Binary).ok();
        assert_eq!(read("25%"), Some(Amount::Percent(25)));
        assert_eq!(read("1g"), Some(Amount::Bytes(1 << 30)));
        for text in ["0%", "101%", "2.5%", "%"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
