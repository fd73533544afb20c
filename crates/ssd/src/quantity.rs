//! Quantities as device files write them: text with a unit.

use prism_base::{Bytes, Nanos};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// A size such as `16KiB`.
pub(crate) fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
    let text = String::deserialize(from)?;
    Bytes::parse(&text).map_err(D::Error::custom)
}

/// A time such as `750us`.
pub(crate) fn nanos<'de, D: Deserializer<'de>>(from: D) -> Result<Nanos, D::Error> {
    let text = String::deserialize(from)?;
    Nanos::parse(&text).map_err(D::Error::custom)
}

/// A bandwidth such as `667MB/s`; `infinite` takes no time at all.
pub(crate) fn rate<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let text = String::deserialize(from)?;
    parse_rate(&text).map_err(D::Error::custom)
}

pub(crate) fn opt_nanos<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Nanos>, D::Error> {
    nanos(from).map(Some)
}

fn parse_rate(text: &str) -> Result<Option<u64>, String> {
    if text == "infinite" {
        return Ok(None);
    }
    let amount = text
        .strip_suffix("/s")
        .ok_or_else(|| format!("{text:?} is no bandwidth; write for example \"667MB/s\""))?;
    let amount = Bytes::parse(amount).map_err(|e| e.to_string())?;
    if amount.0 == 0 {
        return Err(format!("{text:?} would never finish; write \"infinite\" for no limit"));
    }
    Ok(Some(amount.0))
}
