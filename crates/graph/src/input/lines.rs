//! Edge lists and lists of neighbours.

use super::fields::{Fields, is_comment, lines};
use super::{Parse, Parsed, Wrong};
use crate::ingest::Edge;

/// Refuses carriage returns within lines: a text whose lines end in them alone would be one line,
/// of which the first fields are used.
fn check_ends(bytes: &[u8]) -> Parse<()> {
    let ends = |at: &usize| matches!(bytes.get(at + 1), None | Some(b'\n' | b'\r'));
    let Some(within) = memchr::memchr_iter(b'\r', bytes).find(|at| !ends(at)) else {
        return Ok(());
    };
    let line = memchr::memchr_iter(b'\n', &bytes[..within]).count() as u64;
    let what = "a carriage return is within the line; end lines by a line feed, as \
                tr '\\r' '\\n' does";
    Err(Wrong { line, what: what.into() })
}

/// A line for each edge. Fields after those that are needed are ignored.
pub(crate) fn edges(bytes: &[u8], weighted: bool) -> Parse<Parsed> {
    check_ends(bytes)?;
    // A line has about 12 bytes or more.
    let mut edges = Vec::with_capacity(bytes.len() / 12);
    for (number, line) in lines(bytes) {
        // Most lines begin with a digit.
        if !line.first().is_some_and(u8::is_ascii_digit) && is_comment(line) {
            continue;
        }
        let mut fields = Fields::new(number, line);
        let (source, target) = (fields.id()?, fields.id()?);
        let weight = if weighted { fields.weight()? } else { 1.0 };
        edges.push(Edge { source, target, weight });
    }
    Ok(Parsed { edges, ..Parsed::default() })
}

/// A line for each vertex.
pub(crate) fn adjacency(bytes: &[u8]) -> Parse<Parsed> {
    check_ends(bytes)?;
    let mut parsed = Parsed::default();
    for (number, line) in lines(bytes) {
        if is_comment(line) {
            continue;
        }
        let mut fields = Fields::new(number, line);
        let source = fields.id()?;
        parsed.vertices.push(source);
        while !fields.is_empty() {
            let target = fields.id()?;
            parsed.edges.push(Edge { source, target, weight: 1.0 });
        }
    }
    Ok(parsed)
}

/// The vertices of a list of them, LDBC's `.v`; other columns are ignored.
pub(crate) fn vertices(bytes: &[u8]) -> Parse<Vec<u64>> {
    check_ends(bytes)?;
    let mut vertices = Vec::new();
    for (number, line) in lines(bytes) {
        if !is_comment(line) {
            vertices.push(Fields::new(number, line).id()?);
        }
    }
    Ok(vertices)
}
