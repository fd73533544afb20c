//! Sizes and times as arguments.

use std::time::Duration;

use prism_base::{Bytes, Nanos};

/// A size with its unit (`64GiB`, `512B`).
///
/// # Errors
/// What is wrong with the text.
pub fn bytes(text: &str) -> Result<Bytes, String> {
    Bytes::parse(text).map_err(|error| error.to_string())
}

/// A size with its unit, or a number of bytes, as other servers take it.
///
/// # Errors
/// What is wrong with the text.
pub fn bytes_or_number(text: &str) -> Result<Bytes, String> {
    match text.parse() {
        Ok(number) => Ok(Bytes(number)),
        Err(_) => bytes(text),
    }
}

/// A time of use (`5y`, `90d`).
///
/// # Errors
/// What is wrong with the text.
pub fn life(text: &str) -> Result<Duration, String> {
    const DAY: f64 = 86_400.0;
    let wrong = || format!("{text:?} is no lifetime; give years or days, such as 5y or 90d");
    let years = text.strip_suffix('y').map(|number| (number, 365.25 * DAY));
    let (number, unit) =
        years.or_else(|| Some((text.strip_suffix('d')?, DAY))).ok_or_else(wrong)?;
    let number = number.parse::<f64>().ok().filter(|n| *n > 0.0 && *n <= 100_000.0);
    Ok(Duration::from_secs_f64(number.ok_or_else(wrong)? * unit))
}

/// A time with its unit (`750us`, `30s`).
///
/// # Errors
/// What is wrong with the text.
pub fn nanos(text: &str) -> Result<Nanos, String> {
    Nanos::parse(text).map_err(|error| error.to_string())
}
