//! Points in time that are written as a date and a time of day.

use crate::fields::{NOT_A_NUMBER, OUT_OF_RANGE, SECOND, time, whole};
use crate::skips::SkipReason;

/// Days from the first of January of the year 1 to that of 1970.
const DAYS_TO_1970: i64 = 719_162;

/// The time `YYYY-MM-DD HH:MM:SS.ffffff` in nanoseconds from the start of 1970 on the same
/// clock: its time zone is unknown, and only differences matter. The seconds may have up to
/// nine decimals or none.
pub(super) fn date_time(field: &[u8]) -> Result<i64, SkipReason> {
    let (date, clock) = field.split_at_checked(10).ok_or(NOT_A_NUMBER)?;
    let &[b' ' | b'T', ref clock @ ..] = clock else { return Err(NOT_A_NUMBER) };
    let [year, month, day] = parts(date, b'-')?;
    let [hour, minute, second] = parts(clock, b':')?;
    let days = days_from_1970(whole(year)?, whole(month)?, whole(day)?).ok_or(OUT_OF_RANGE)?;
    let (hour, minute) = (whole(hour)?, whole(minute)?);
    let part_ns = time(second, SECOND)?;
    // A leap second has the number 60.
    if hour > 23 || minute > 59 || !(0..61 * SECOND as i64).contains(&part_ns) {
        return Err(OUT_OF_RANGE);
    }
    let seconds = (days * 24 + hour as i64) * 3600 + minute as i64 * 60;
    let ns = seconds.checked_mul(SECOND as i64).and_then(|ns| ns.checked_add(part_ns));
    ns.ok_or(OUT_OF_RANGE)
}

fn parts(field: &[u8], separator: u8) -> Result<[&[u8]; 3], SkipReason> {
    let mut parts = field.split(|&byte| byte == separator);
    let mut next = || parts.next().ok_or(NOT_A_NUMBER);
    let three = [next()?, next()?, next()?];
    if parts.next().is_some() { Err(NOT_A_NUMBER) } else { Ok(three) }
}

/// Days from 1970 to a date of the Gregorian calendar; `None` if there is no such date.
fn days_from_1970(year: u64, month: u64, day: u64) -> Option<i64> {
    let years = i64::try_from(year).ok().filter(|year| (1..=9999).contains(year))? - 1;
    let divides = |years: u64| year.is_multiple_of(years);
    let is_leap = divides(4) && (!divides(100) || divides(400));
    let february = if is_leap { 29 } else { 28 };
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let month = usize::try_from(month).ok()?.checked_sub(1).filter(|month| *month < 12)?;
    let day = i64::try_from(day).ok().filter(|day| (1..=lengths[month]).contains(day))?;
    let before = years * 365 + years / 4 - years / 100 + years / 400 - DAYS_TO_1970;
    Some(before + lengths[..month].iter().sum::<i64>() + day - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_counted_from_1970() {
        let check = |text: &str, expected| {
            assert_eq!(date_time(text.as_bytes()), expected, "{text}");
        };
        check("1970-01-01 00:00:00", Ok(0));
        check("1970-01-01T00:00:00.5", Ok(500_000_000));
        check("1969-12-31 23:59:59", Ok(-1_000_000_000));
        // `date -u -d '2024-01-15 10:30:45' +%s` prints 1705314645.
        check("2024-01-15 10:30:45.123456", Ok(1_705_314_645_123_456_000));
        check("2000-02-29 00:00:00", Ok(951_782_400_000_000_000));
        check("2100-03-01 00:00:00", Ok(4_107_542_400_000_000_000));
        check("2016-12-31 23:59:60.25", Ok(1_483_228_800_250_000_000));
        check("1900-02-29 00:00:00", Err(OUT_OF_RANGE));
        check("2024-13-01 00:00:00", Err(OUT_OF_RANGE));
        check("2024-00-01 00:00:00", Err(OUT_OF_RANGE));
        check("2024-01-15 24:00:00", Err(OUT_OF_RANGE));
        check("2024-01-15 10:30:61", Err(OUT_OF_RANGE));
        check("9999-01-01 00:00:00", Err(OUT_OF_RANGE));
        for text in
            ["2024-01-15", "2024-01-15 10:30", "15/01/2024 10:30:45", "", "2024-01-15 1:2:x"]
        {
            check(text, Err(NOT_A_NUMBER));
        }
    }
}
