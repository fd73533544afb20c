//! Functions that text formats share: cutting a line into fields, reading numbers exactly (a
//! plain decimal never goes through floating point), and the reasons for which a line is
//! skipped.

use crate::record::{Op, Record};
use crate::skips::SkipReason;

/// The line has fewer or more fields than the format.
pub const WRONG_FIELDS: SkipReason = SkipReason("wrong number of fields");
/// A field that has to be a number is something else.
pub const NOT_A_NUMBER: SkipReason = SkipReason("not a number where one is expected");
/// The format has no such operation.
pub const UNKNOWN_OP: SkipReason = SkipReason("unknown operation");
/// A read, write or discard of zero bytes.
pub const ZERO_LENGTH: SkipReason = SkipReason("request of zero length");
/// A number that does not fit in a record.
pub const OUT_OF_RANGE: SkipReason = SkipReason("address, size or time out of range");
/// A name that is not UTF-8.
pub const NOT_TEXT: SkipReason = SkipReason("a name that is not UTF-8");

/// Times are within plus and minus this many nanoseconds (146 years), so that the difference of
/// any two fits in a record.
pub const TIME_MAX_NS: i64 = 1 << 62;

/// The end of all addresses and sizes: the last byte that a signed 64-bit offset can address.
pub const ADDRESS_MAX: u64 = i64::MAX as u64;

/// Nanoseconds in the units of times.
pub(crate) const MICROSECOND: u64 = 1_000;
pub(crate) const MILLISECOND: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000_000_000;

/// Windows counts time in steps of 100 ns from the year 1601; this many of them are before
/// 1970.
pub const FILETIME_EPOCH: i64 = 116_444_736_000_000_000;

/// The `N` fields between `separator`s, without surrounding white space.
pub(crate) fn split<const N: usize>(line: &[u8], separator: u8) -> Result<[&[u8]; N], SkipReason> {
    collect(line.split(|&byte| byte == separator).map(<[u8]>::trim_ascii))
}

/// The `N` fields between runs of white space.
pub(crate) fn split_white<const N: usize>(line: &[u8]) -> Result<[&[u8]; N], SkipReason> {
    collect(white(line))
}

/// The fields between runs of white space.
pub(crate) fn white(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty())
}

fn collect<'a, const N: usize>(
    mut pieces: impl Iterator<Item = &'a [u8]>,
) -> Result<[&'a [u8]; N], SkipReason> {
    let mut fields: [&[u8]; N] = [&[]; N];
    for field in &mut fields {
        *field = pieces.next().ok_or(WRONG_FIELDS)?;
    }
    if pieces.next().is_some() { Err(WRONG_FIELDS) } else { Ok(fields) }
}

/// Digits of a decimal number that always fit in 64 bits.
const DIGITS_SAFE: usize = 19;

/// 10 to the power of the index.
const POWERS_OF_TEN: [u64; DIGITS_SAFE + 1] = {
    let mut powers = [1; DIGITS_SAFE + 1];
    let mut power = 1;
    while power < powers.len() {
        powers[power] = powers[power - 1] * 10;
        power += 1;
    }
    powers
};

/// A whole number without sign.
#[inline]
pub(crate) fn whole(field: &[u8]) -> Result<u64, SkipReason> {
    if field.is_empty() || field.len() > DIGITS_SAFE {
        return long_whole(field);
    }
    let mut value = 0;
    for &byte in field {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(NOT_A_NUMBER);
        }
        value = value * 10 + u64::from(digit);
    }
    Ok(value)
}

#[cold]
fn long_whole(field: &[u8]) -> Result<u64, SkipReason> {
    if field.is_empty() || !field.iter().all(u8::is_ascii_digit) {
        return Err(NOT_A_NUMBER);
    }
    let mut digits = field.iter().map(|byte| u64::from(byte - b'0'));
    let value = digits.try_fold(0u64, |value, digit| value.checked_mul(10)?.checked_add(digit));
    value.ok_or(OUT_OF_RANGE)
}

/// A whole number in hexadecimal digits, with or without `0x`.
pub(crate) fn hex(field: &[u8]) -> Result<u64, SkipReason> {
    let digits = field.strip_prefix(b"0x").or_else(|| field.strip_prefix(b"0X")).unwrap_or(field);
    let text = std::str::from_utf8(digits).map_err(|_| NOT_A_NUMBER)?;
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(NOT_A_NUMBER);
    }
    u64::from_str_radix(text, 16).map_err(|_| OUT_OF_RANGE)
}

/// A decimal number of units of `unit_ns` nanoseconds, rounded to the nearest
/// nanosecond. Exact for plain decimals; a number with an exponent goes through a float.
#[inline]
pub(crate) fn time(field: &[u8], unit_ns: u64) -> Result<i64, SkipReason> {
    time_and_decimals(field, unit_ns).map(|(ns, _)| ns)
}

/// As [`time`], and how many decimal places are printed, or more.
#[inline]
pub(crate) fn time_and_decimals(field: &[u8], unit_ns: u64) -> Result<(i64, u32), SkipReason> {
    match short_time(field, unit_ns) {
        Some((ns, decimals)) => Ok((in_time_range(ns)?, decimals)),
        None => Ok((long_time(field, unit_ns)?, u32::MAX)),
    }
}

/// The time of a field of few digits that is a whole number of nanoseconds, and its decimal
/// places; `None` if it is anything else.
#[inline]
fn short_time(field: &[u8], unit_ns: u64) -> Option<(i64, u32)> {
    let mut value = 0u64;
    let mut point = None;
    for (at, &byte) in field.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            // This can wrap only for more digits than the check below allows.
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        } else if byte == b'.' && point.is_none() {
            point = Some(at);
        } else {
            return None;
        }
    }
    let digits = field.len() - usize::from(point.is_some());
    if !(1..=DIGITS_SAFE).contains(&digits) {
        return None;
    }
    let decimals = point.map_or(0, |point| field.len() - point - 1);
    let unit = match decimals {
        0 => unit_ns,
        _ if unit_ns.is_multiple_of(POWERS_OF_TEN[decimals]) => unit_ns / POWERS_OF_TEN[decimals],
        _ => return None,
    };
    Some((i64::try_from(value.checked_mul(unit)?).ok()?, decimals as u32))
}

fn long_time(field: &[u8], unit_ns: u64) -> Result<i64, SkipReason> {
    let (negative, digits) = match field.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, field),
    };
    if digits.iter().any(|byte| matches!(byte, b'e' | b'E')) {
        return float_time(field, unit_ns);
    }
    let mut halves = digits.splitn(2, |&byte| byte == b'.');
    let before = halves.next().unwrap_or_default();
    let after = halves.next();
    if before.is_empty() && after.is_none_or(<[u8]>::is_empty) {
        return Err(NOT_A_NUMBER);
    }
    let units = if before.is_empty() { 0 } else { whole(before)? };
    let unit = u128::from(unit_ns);
    let ns = u128::from(units) * unit + fraction(after.unwrap_or_default(), unit)?;
    let ns = i64::try_from(ns).map_err(|_| OUT_OF_RANGE)?;
    in_time_range(if negative { -ns } else { ns })
}

/// How many decimal places of a decimal number are used, not counting trailing zeros; nine at
/// most, which is a nanosecond in seconds.
pub(crate) fn decimals_used(field: &[u8]) -> u32 {
    let Some(point) = memchr::memchr(b'.', field) else { return 0 };
    let digits = &field[point + 1..];
    digits.iter().rposition(|&digit| digit != b'0').map_or(0, |at| at + 1).min(9) as u32
}

/// The part after the decimal point. Digits beyond the eighteenth cannot move a
/// nanosecond and are only checked to be digits.
fn fraction(digits: &[u8], unit: u128) -> Result<u128, SkipReason> {
    if !digits.iter().all(u8::is_ascii_digit) {
        return Err(NOT_A_NUMBER);
    }
    let used = &digits[..digits.len().min(18)];
    let value = used.iter().fold(0u128, |value, byte| value * 10 + u128::from(byte - b'0'));
    let scale = 10u128.pow(used.len() as u32);
    Ok((value * unit + scale / 2) / scale)
}

fn float_time(field: &[u8], unit_ns: u64) -> Result<i64, SkipReason> {
    let text = std::str::from_utf8(field).map_err(|_| NOT_A_NUMBER)?;
    let value: f64 = text.parse().map_err(|_| NOT_A_NUMBER)?;
    let ns = (value * unit_ns as f64).round();
    if ns.abs() < TIME_MAX_NS as f64 { Ok(ns as i64) } else { Err(OUT_OF_RANGE) }
}

/// A span of time in units of `unit_ns` nanoseconds; `None` where the field is empty.
pub(crate) fn span(field: &[u8], unit_ns: u64) -> Result<Option<i64>, SkipReason> {
    match field {
        b"" => Ok(None),
        _ => match time(field, unit_ns)? {
            ..0 => Err(OUT_OF_RANGE),
            span => Ok(Some(span)),
        },
    }
}

/// A count of 100 ns from 1601 as nanoseconds from 1970.
pub(crate) fn filetime(field: &[u8]) -> Result<i64, SkipReason> {
    let ticks = i64::try_from(whole(field)?).map_err(|_| OUT_OF_RANGE)?;
    in_time_range((ticks - FILETIME_EPOCH).checked_mul(100).ok_or(OUT_OF_RANGE)?)
}

/// The time itself if it fits in a record.
pub(crate) fn in_time_range(ns: i64) -> Result<i64, SkipReason> {
    if (-TIME_MAX_NS..=TIME_MAX_NS).contains(&ns) { Ok(ns) } else { Err(OUT_OF_RANGE) }
}

/// The sum of a time and a span if it fits in a record.
pub(crate) fn later(ns: i64, span_ns: i64) -> Result<i64, SkipReason> {
    in_time_range(ns.checked_add(span_ns).ok_or(OUT_OF_RANGE)?)
}

/// The product of a count and the bytes of its unit.
pub(crate) fn bytes(count: u64, unit: u64) -> Result<u64, SkipReason> {
    count.checked_mul(unit).ok_or(OUT_OF_RANGE)
}

/// The record of a request, if its range is valid.
pub(crate) fn request(op: Op, issue_ns: i64, offset: u64, len: u64) -> Result<Record, SkipReason> {
    if len == 0 {
        return Err(ZERO_LENGTH);
    }
    match offset.checked_add(len) {
        Some(end) if end <= ADDRESS_MAX => {
            Ok(Record::new(op, in_time_range(issue_ns)?, offset, len))
        }
        _ => Err(OUT_OF_RANGE),
    }
}

/// A name as text.
pub(crate) fn text(field: &[u8]) -> Result<&str, SkipReason> {
    std::str::from_utf8(field).map_err(|_| NOT_TEXT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact() {
        let check = |text: &str, unit, expected| {
            assert_eq!(time(text.as_bytes(), unit), expected, "{text}");
        };
        check("1455591804.310701000", 1_000_000_000, Ok(1_455_591_804_310_701_000));
        check("86400.121837000", 1_000_000_000, Ok(86_400_121_837_000));
        check("13.191135", 1_000_000, Ok(13_191_135));
        check(".5", 1_000, Ok(500));
        check("5.", 1_000, Ok(5_000));
        check("-0.25", 1_000_000_000, Ok(-250_000_000));
        check("0.0000000005", 1_000_000_000, Ok(1));
        check("0.00000000049999999999999", 1_000_000_000, Ok(0));
        check("2.8108e-05", 1_000_000_000, Ok(28_108));
        check("9223372036.854775807", 1_000_000_000, Err(OUT_OF_RANGE));
        check("1e300", 1, Err(OUT_OF_RANGE));
        check("99999999999999999999", 1, Err(OUT_OF_RANGE));
        check("", 1, Err(NOT_A_NUMBER));
        check(".", 1, Err(NOT_A_NUMBER));
        check("-", 1, Err(NOT_A_NUMBER));
        check("1.2.3", 1, Err(NOT_A_NUMBER));
        check("1x", 1, Err(NOT_A_NUMBER));
        check("nan", 1, Err(NOT_A_NUMBER));
    }

    #[test]
    fn filetime_counts_from_1601() {
        assert_eq!(filetime(b"116444736000000001"), Ok(100));
        assert_eq!(filetime(b"116444735999999999"), Ok(-100));
        assert_eq!(filetime(b"9223372036854775807"), Err(OUT_OF_RANGE));
    }

    #[test]
    fn whole_numbers() {
        assert_eq!(whole(b"18446744073709551615"), Ok(u64::MAX));
        assert_eq!(whole(b"18446744073709551616"), Err(OUT_OF_RANGE));
        assert_eq!(whole(b"18446744073709551616x"), Err(NOT_A_NUMBER));
        assert_eq!(whole(b"+1"), Err(NOT_A_NUMBER));
        assert_eq!(hex(b"0x4e5ec22e00"), Ok(0x4e_5ec2_2e00));
        assert_eq!(hex(b"ff"), Ok(255));
        assert_eq!(hex(b"0x"), Err(NOT_A_NUMBER));
        assert_eq!(hex(b"+f"), Err(NOT_A_NUMBER));
        assert_eq!(hex(b"10000000000000000"), Err(OUT_OF_RANGE));
    }

    #[test]
    fn the_range_of_a_request_is_checked() {
        assert_eq!(request(Op::Read, 0, 4096, 0), Err(ZERO_LENGTH));
        assert_eq!(request(Op::Read, 0, u64::MAX, 1), Err(OUT_OF_RANGE));
        assert_eq!(request(Op::Read, 0, ADDRESS_MAX, 1), Err(OUT_OF_RANGE));
        assert!(request(Op::Read, 0, ADDRESS_MAX - 1, 1).is_ok());
    }
}
