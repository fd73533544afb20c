//! Fields of a line.

use super::{Parse, Wrong};

/// The next lines of a text, with the number of lines before each.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let mut rest = bytes;
    let lines = std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', rest);
        let line = &rest[..end.unwrap_or(rest.len())];
        rest = &rest[end.map_or(rest.len(), |at| at + 1)..];
        Some(line)
    });
    (0..).zip(lines)
}

/// Whether a line is empty or a comment.
#[inline]
#[must_use]
pub fn is_comment(line: &[u8]) -> bool {
    match line.iter().find(|byte| !is_separator(**byte)) {
        None => true,
        Some(byte) => matches!(byte, b'#' | b'%') || line.starts_with(b"//"),
    }
}

#[inline]
pub(crate) fn is_separator(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b',' | b';' | b'|' | b'\r')
}

/// The fields of a line.
pub(crate) struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
    pub(crate) line: u64,
}

impl<'a> Fields<'a> {
    #[inline]
    pub(crate) fn new(line: u64, bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, line }
    }

    pub(crate) fn wrong<T>(&self, what: impl Into<String>) -> Parse<T> {
        Err(Wrong { line: self.line, what: what.into() })
    }

    /// Goes to the next field. Returns whether no field between is empty.
    #[inline]
    fn skip(&mut self) -> bool {
        let begin = self.at;
        while self.at < self.bytes.len() && is_separator(self.bytes[self.at]) {
            self.at += 1;
        }
        // At the beginning of a line there is no field before the separators.
        let most = usize::from(begin > 0);
        self.at - begin <= most || self.delimiters_since(begin) <= most
    }

    /// Separators that are no white space: two of them have a field between them.
    #[cold]
    fn delimiters_since(&self, begin: usize) -> usize {
        let gap = self.bytes[begin..self.at].iter();
        gap.filter(|byte| matches!(byte, b',' | b';' | b'|')).count()
    }

    #[cold]
    fn empty_field<T>(&self) -> Parse<T> {
        self.wrong("a field is empty: two separators have nothing between them; fill it in")
    }

    /// Whether there are no more fields.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes[self.at..].iter().all(|byte| is_separator(*byte))
    }

    /// The next field; empty if there is none.
    pub(crate) fn next(&mut self) -> &'a [u8] {
        self.skip();
        let begin = self.at;
        while self.at < self.bytes.len() && !is_separator(self.bytes[self.at]) {
            self.at += 1;
        }
        &self.bytes[begin..self.at]
    }

    /// The next field as the number of a vertex.
    #[inline]
    pub(crate) fn id(&mut self) -> Parse<u64> {
        if !self.skip() {
            return self.empty_field();
        }
        let begin = self.at;
        let mut value = 0_u64;
        while let Some(byte) = self.bytes.get(self.at) {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            // 19 digits always fit.
            if self.at - begin >= 19 {
                return self.long_id(begin);
            }
            value = value * 10 + u64::from(digit);
            self.at += 1;
        }
        let ends = self.bytes.get(self.at).is_none_or(|byte| is_separator(*byte));
        if self.at == begin || !ends { self.no_id(begin) } else { Ok(value) }
    }

    #[cold]
    fn long_id(&mut self, begin: usize) -> Parse<u64> {
        self.at = begin;
        let field = self.next();
        match std::str::from_utf8(field).ok().and_then(|text| text.parse().ok()) {
            Some(id) => Ok(id),
            None if field.iter().all(u8::is_ascii_digit) => self.wrong(format!(
                "the vertex number {} is beyond 2^64 - 1; numbers of vertices have up to 64 bits",
                shown(field)
            )),
            None => self.no_id(begin),
        }
    }

    #[cold]
    fn no_id<T>(&mut self, begin: usize) -> Parse<T> {
        self.at = begin;
        let field = self.next();
        if field.is_empty() {
            return self.wrong(
                "a vertex is missing: an edge needs two; for a line of neighbours for each vertex, \
                 give --format=adjacency",
            );
        }
        self.wrong(format!(
            "{:?} is not the number of a vertex; numbers are 0 or more, without sign or point",
            shown(field)
        ))
    }

    /// The next field as a weight.
    pub(crate) fn weight(&mut self) -> Parse<f64> {
        if !self.skip() {
            return self.empty_field();
        }
        let field = self.next();
        if field.is_empty() {
            return self.wrong("the weight is missing; leave --weighted away if there are none");
        }
        // In a text without commas elsewhere it is the decimal mark of some countries.
        let (before, after) = self.bytes.split_at(self.at);
        if after.first() == Some(&b',') && !before.contains(&b',') {
            let digits = after[1..].iter().take_while(|byte| !is_separator(**byte)).count();
            let text = shown(&self.bytes[self.at - field.len()..self.at + 1 + digits]);
            return self.wrong(format!("{text:?} is no number; write a decimal point"));
        }
        let parsed = std::str::from_utf8(field).ok().and_then(|text| text.parse::<f64>().ok());
        match parsed.filter(|weight| weight.is_finite()) {
            Some(weight) => Ok(weight),
            None => self.wrong(format!("{:?} is not a finite weight", shown(field))),
        }
    }
}

/// A field for a message: its beginning.
pub(crate) fn shown(field: &[u8]) -> String {
    let text = String::from_utf8_lossy(&field[..field.len().min(40)]).into_owned();
    if field.len() > 40 { text + "..." } else { text }
}
