//! Sizes and times as arguments.

use prism_base::{Bytes, Nanos};

/// A size with its unit (`64GiB`, `512B`).
///
/// # Errors
/// What is wrong with the text.
pub fn bytes(text: &str) -> Result<Bytes, String> {
    Bytes::parse(text).map_err(|error| error.to_string())
}

/// A time with its unit (`750us`, `30s`).
///
/// # Errors
/// What is wrong with the text.
pub fn nanos(text: &str) -> Result<Nanos, String> {
    Nanos::parse(text).map_err(|error| error.to_string())
}
