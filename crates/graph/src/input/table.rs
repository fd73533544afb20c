//! CSV: columns with names.

use borsh::{BorshDeserialize, BorshSerialize};

use super::fields::{Fields, is_comment, lines, shown};
use super::{Parse, Parsed, ReadOptions, Wrong};
use crate::ingest::Edge;

/// Where the columns are.
#[derive(Clone, Copy, Debug, BorshSerialize, BorshDeserialize)]
pub(crate) struct Places {
    separator: u8,
    source: usize,
    target: usize,
    weight: Option<usize>,
}

fn cells(line: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    line.split(move |byte| *byte == separator).map(|cell| {
        let cell = cell.trim_ascii();
        let inner = cell.strip_prefix(b"\"").and_then(|cell| cell.strip_suffix(b"\""));
        inner.unwrap_or(cell)
    })
}

/// The places of the columns that `options` name, and the bytes of the header.
pub(crate) fn header(bytes: &[u8], options: &ReadOptions) -> Parse<(Places, usize)> {
    let end = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1);
    let line = bytes[..end].trim_ascii();
    let counts =
        [b',', b';', b'\t', b'|'].map(|byte| (memchr::memchr_iter(byte, line).count(), byte));
    let (_, separator) = counts.into_iter().rev().max_by_key(|(count, _)| *count).expect("four");
    let names: Vec<String> =
        cells(line, separator).map(|cell| String::from_utf8_lossy(cell).into_owned()).collect();
    let place = |name: &str| names.iter().position(|other| other.eq_ignore_ascii_case(name));
    let needed = |name: &str| {
        place(name).ok_or_else(|| Wrong {
            line: 0,
            what: format!("there is no column {name:?}; the columns are {}", names.join(", ")),
        })
    };
    let (source, target, weight) = match &options.columns {
        Some(columns) => {
            (needed(&columns.source)?, needed(&columns.target)?, columns.weight.as_str())
        }
        None if names.len() < 2 => {
            return Err(Wrong { line: 0, what: "an edge needs two columns".into() });
        }
        None => (0, 1, "weight"),
    };
    let weight = if options.weighted { Some(needed(weight)?) } else { None };
    Ok((Places { separator, source, target, weight }, end))
}

/// The edges of rows.
pub(crate) fn rows(bytes: &[u8], places: &Places) -> Parse<Parsed> {
    let mut parsed = Parsed::default();
    for (number, line) in lines(bytes) {
        if is_comment(line) {
            continue;
        }
        let cells: Vec<&[u8]> = cells(line, places.separator).collect();
        let cell = |at: usize| {
            let missing = || Wrong { line: number, what: format!("column {} is missing", at + 1) };
            cells.get(at).copied().ok_or_else(missing)
        };
        let id = |at: usize| {
            let cell = cell(at)?;
            let mut fields = Fields::new(number, cell);
            let id = fields.id()?;
            let rest = fields.is_empty();
            if rest { Ok(id) } else { fields.wrong(format!("{:?} is no number", shown(cell))) }
        };
        let (source, target) = (id(places.source)?, id(places.target)?);
        let weight = match places.weight {
            Some(at) => Fields::new(number, cell(at)?).weight()?,
            None => 1.0,
        };
        parsed.edges.push(Edge { source, target, weight });
    }
    Ok(parsed)
}
