//! Parsers of the quantities in device files: text with a unit.

use prism_base::{Bytes, Named, Nanos};
use prism_engine::{ChannelArbitration, CleaningMode, ReadTransfer, Scheduler};
use prism_ftl::Frontiers;
use prism_nand::PageTimes;
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

/// A bandwidth such as `667MB/s`; `None` for `infinite`.
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

/// One size, or none if the field is missing.
pub(crate) fn opt_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Bytes>, D::Error> {
    bytes(from).map(Some)
}

/// A time for all pages, or a list with one for each type of page, lowest first.
pub(crate) fn page_times<'de, D: Deserializer<'de>>(from: D) -> Result<PageTimes, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    let shape = "give a time such as \"60us\", or a list with one for each type of page";
    let texts = match OneOrMany::deserialize(from).map_err(|_| D::Error::custom(shape))? {
        OneOrMany::One(text) => vec![text],
        OneOrMany::Many(texts) => texts,
    };
    let times: Result<Vec<Nanos>, _> = texts.iter().map(|text| Nanos::parse(text)).collect();
    let times = times.map_err(D::Error::custom)?;
    let most = PageTimes::TYPES_MAX;
    PageTimes::by_type(&times).ok_or_else(|| {
        D::Error::custom(format!("{} types of pages; a cell has 1 to {most}", times.len()))
    })
}

/// Values that device files give by name.
pub(crate) trait ByName: Named {
    /// The word for such a value in messages.
    const WHAT: &'static str;
}

impl ByName for Scheduler {
    const WHAT: &'static str = "scheduler";
}

impl ByName for ChannelArbitration {
    const WHAT: &'static str = "channel arbitration";
}

impl ByName for ReadTransfer {
    const WHAT: &'static str = "read transfer";
}

impl ByName for CleaningMode {
    const WHAT: &'static str = "cleaning mode";
}

impl ByName for Frontiers {
    const WHAT: &'static str = "arrangement of frontiers";
}

/// A value of `T` by name.
pub(crate) fn named<'de, D: Deserializer<'de>, T: ByName>(from: D) -> Result<T, D::Error> {
    let text = String::deserialize(from)?;
    T::from_name(&text).ok_or_else(|| {
        let known: Vec<_> = T::ALL.iter().map(|value| format!("`{}`", value.name())).collect();
        let (what, known) = (T::WHAT, known.join(", "));
        D::Error::custom(format!("unknown {what} `{text}`, expected one of {known}"))
    })
}
