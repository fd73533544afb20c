//! CSV: columns with names.

use borsh::{BorshDeserialize, BorshSerialize};

use super::fields::{Fields, is_comment, lines, shown};
use super::{Columns, Parse, Parsed, ReadOptions, Wrong};
use crate::ingest::Edge;

/// Where the columns are.
#[derive(Clone, Copy, Debug, BorshSerialize, BorshDeserialize)]
pub(crate) struct Places {
    separator: u8,
    source: usize,
    target: usize,
    weight: Option<usize>,
}

/// The cells of a row, without the quotes around them, between which separators are text; `number`
/// lines are before it.
fn cells(number: u64, line: &[u8], separator: u8) -> impl Iterator<Item = Parse<&[u8]>> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let text = rest?;
        let quote = text.iter().take_while(|byte| **byte == b' ').count();
        let quoted = text.get(quote) == Some(&b'"');
        let from = if quoted { end_of_quotes(text, quote + 1) } else { Some(0) };
        let Some(from) = from else {
            rest = None;
            return Some(Err(Wrong { line: number, what: OPEN_QUOTE.into() }));
        };
        let end = memchr::memchr(separator, &text[from..]).map(|at| from + at);
        rest = end.map(|end| &text[end + 1..]);
        let cell = text[..end.unwrap_or(text.len())].trim_ascii();
        let inner = cell.strip_prefix(b"\"").and_then(|cell| cell.strip_suffix(b"\""));
        Some(Ok(inner.unwrap_or(cell)))
    })
}

/// Why a cell is refused whose quotes do not end.
const OPEN_QUOTE: &str = "a cell begins with a quote that does not end in the line; line breaks in \
                          cells are not read: take them out, or write the table as Parquet";

/// The byte after the quote that ends the text from `at`; two quotes are one of the text. `None` if
/// none ends it.
fn end_of_quotes(text: &[u8], mut at: usize) -> Option<usize> {
    while let Some(quote) = memchr::memchr(b'"', &text[at..]) {
        at += quote + 1;
        if text.get(at) != Some(&b'"') {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// The first line of a table.
pub(crate) struct Head {
    /// The places of the columns that are read.
    pub(crate) places: Places,
    /// Its bytes.
    pub(crate) bytes: usize,
    /// What the user should know of the others.
    pub(crate) hint: Option<String>,
}

/// The header, with the columns that `options` name.
pub(crate) fn header(bytes: &[u8], options: &ReadOptions) -> Parse<Head> {
    let end = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1);
    let line = bytes[..end].trim_ascii();
    let counts =
        [b',', b';', b'\t', b'|'].map(|byte| (memchr::memchr_iter(byte, line).count(), byte));
    let (_, separator) = counts.into_iter().rev().max_by_key(|(count, _)| *count).expect("four");
    let names = cells(0, line, separator);
    let names = names.map(|cell| Ok(String::from_utf8_lossy(cell?).into_owned()));
    let names = names.collect::<Parse<Vec<String>>>()?;
    let place = |name: &str| names.iter().position(|other| other.eq_ignore_ascii_case(name));
    let needed = |name: &str| {
        place(name).ok_or_else(|| Wrong {
            line: 0,
            what: format!(
                "there is no column {name:?}; the columns are {}; name them by --columns",
                names.join(", ")
            ),
        })
    };
    let (source, target) = match &options.columns {
        Some(columns) => (needed(&columns.source)?, needed(&columns.target)?),
        None if names.len() < 2 => {
            return Err(Wrong { line: 0, what: "an edge needs two columns".into() });
        }
        None => (0, 1),
    };
    let weight = Columns::of_weights(options.columns.as_ref());
    let weight = match options.weighted {
        true => Some(needed(weight).map_err(|wrong| {
            let what = format!("{}; {}", wrong.what, Columns::NO_WEIGHTS);
            Wrong { what, ..wrong }
        })?),
        false => None,
    };
    let hint = if options.weighted { None } else { Columns::unused_weights(&names) };
    Ok(Head { places: Places { separator, source, target, weight }, bytes: end, hint })
}

/// The edges of rows.
pub(crate) fn rows(bytes: &[u8], places: &Places) -> Parse<Parsed> {
    let mut parsed = Parsed::default();
    for (number, line) in lines(bytes) {
        if is_comment(line) {
            continue;
        }
        let cells = cells(number, line, places.separator).collect::<Parse<Vec<&[u8]>>>()?;
        let cell = |at: usize| {
            let missing = || Wrong { line: number, what: format!("column {} is missing", at + 1) };
            cells.get(at).copied().ok_or_else(missing)
        };
        let id = |at: usize| whole(number, cell(at)?, Fields::id);
        let (source, target) = (id(places.source)?, id(places.target)?);
        let weight = match places.weight {
            Some(at) => whole(number, cell(at)?, Fields::weight)?,
            None => 1.0,
        };
        parsed.edges.push(Edge { source, target, weight });
    }
    Ok(parsed)
}

/// The number that a cell is, as `parse` reads one; nothing may follow it.
fn whole<'a, T>(
    line: u64,
    cell: &'a [u8],
    parse: impl FnOnce(&mut Fields<'a>) -> Parse<T>,
) -> Parse<T> {
    let mut fields = Fields::new(line, cell);
    let value = parse(&mut fields)?;
    match fields.is_empty() {
        true => Ok(value),
        // Such as a decimal comma.
        false => fields.wrong(format!("{:?} is no number", shown(cell))),
    }
}
