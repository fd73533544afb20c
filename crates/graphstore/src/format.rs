//! Formats of edges, and options of their ingest as text.

use prism_base::{Bytes, Named};
use prism_graph::Order;
use prism_graph::input::{Columns, Format};

/// A format of edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputFormat {
    /// One that is read from the first byte to the last.
    Stream(Format),
    /// Parquet, which begins with its end.
    Parquet,
}

impl InputFormat {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Stream(format) => format.name(),
            Self::Parquet => PARQUET,
        }
    }
}

/// The name of [`InputFormat::Parquet`].
const PARQUET: &str = "parquet";

/// Parses the name of a format.
///
/// # Errors
/// The formats that exist.
pub fn parse_format(text: &str) -> Result<InputFormat, String> {
    match Format::from_name(text) {
        Some(format) => Ok(InputFormat::Stream(format)),
        None if text == PARQUET => Ok(InputFormat::Parquet),
        None => Err(format!("formats are {}, {PARQUET}", Format::names())),
    }
}

/// Parses the names of the columns of sources, targets and weights: `from,to,length`.
///
/// # Errors
/// What is expected.
pub fn parse_columns(text: &str) -> Result<Columns, String> {
    let names: Vec<&str> = text.split(',').collect();
    let (source, target, weight) = match *names {
        [source, target] => (source, target, None),
        [source, target, weight] => (source, target, Some(weight.to_owned())),
        _ => return Err("give two or three names, such as from,to,length".into()),
    };
    if source.eq_ignore_ascii_case(target) {
        return Err(format!(
            "{source:?} is named for both ends of an edge; name the columns of sources and targets"
        ));
    }
    Ok(Columns { source: source.to_owned(), target: target.to_owned(), weight })
}

/// Parses the name of an order of vertices.
///
/// # Errors
/// The orders that exist.
pub fn parse_order(text: &str) -> Result<Order, String> {
    Order::from_name(text).ok_or_else(|| format!("orders are {}", Order::names()))
}

/// Parses the memory with which algorithms will run.
///
/// # Errors
/// What is wrong with it.
pub fn parse_run_memory(text: &str) -> Result<Bytes, String> {
    // Buffers of values and of edges take a dozen blocks.
    const LEAST: Bytes = Bytes(16 << 20);
    let bytes = Bytes::parse(text).map_err(|error| error.to_string())?;
    if bytes < LEAST { Err(format!("at least {LEAST} are needed")) } else { Ok(bytes) }
}
