//! Reads any text of one request per line through a map in TOML: how to cut a line, which
//! column is what in which unit, and which words mean which operation.
//!
//! How to write a map: `docs/spec/trace-map.md`.

mod checked;
mod spec;

use regex::bytes::CaptureLocations;

use self::checked::{
    At, Count, FieldRef, Flag, Map, Operation, Splitter, Stamp, Text, Unit, Words,
};
use crate::capabilities::Capabilities;
use crate::error::TraceError;
use crate::fields::{
    NOT_A_NUMBER, OUT_OF_RANGE, UNKNOWN_OP, WRONG_FIELDS, bytes, decimals_used, filetime, hex,
    in_time_range, later, request, text, time_and_decimals, whole,
};
use crate::record::{Flags, Op, OptTime, Record};
use crate::rwbs::{Kind, Rwbs};
use crate::sink::{DISORDER_NS, LineParser, Sink};
use crate::skips::SkipReason;
use crate::symbols::Symbol;

/// The regular expression of the map does not match the line.
pub const NO_MATCH: SkipReason = SkipReason("not matched by the map's regular expression");
/// The field of the operation is empty.
pub const NO_OPERATION: SkipReason = SkipReason("the operation is left empty");

/// Where a field starts and ends in its line.
type Span = (usize, usize);

/// Reads text through a map.
#[derive(Debug)]
pub struct MapParser {
    map: Map,
    /// For each of the map's columns, its field; empty until the header was read.
    fields: Vec<usize>,
    /// The spans of the current line's fields, up to the last one that is a column.
    spans: Vec<Span>,
    groups: Option<CaptureLocations>,
    /// The optional header, if there was one: an equal later line comes from a joined file.
    header: Vec<u8>,
    has_details: bool,
    /// The most decimal places of a time so far, not counting trailing zeros.
    decimals: u32,
}

impl MapParser {
    /// A parser for the map written in `toml`.
    ///
    /// # Errors
    /// [`TraceError::Bad`] with the line of the map, the field, and what is allowed.
    pub fn new(toml: &str) -> Result<Self, TraceError> {
        let map = spec::read(toml)?;
        let groups = match &map.splitter {
            Splitter::Regex(regex) => Some(regex.capture_locations()),
            Splitter::Delimiter(_) | Splitter::White => None,
        };
        let by_index = map.columns.iter().map(|column| match column {
            FieldRef::Index(index) => Some(*index),
            FieldRef::Name(_) => None,
        });
        let by_index: Option<Vec<usize>> = by_index.collect();
        let mut parser = Self {
            has_details: map.has_details(),
            map,
            fields: Vec::new(),
            spans: Vec::new(),
            groups,
            header: Vec::new(),
            decimals: 0,
        };
        if let Some(fields) = by_index {
            parser.set_fields(fields);
        }
        Ok(parser)
    }

    fn set_fields(&mut self, fields: Vec<usize>) {
        let last = fields.iter().max().expect("a map has a column for the time");
        self.spans = vec![(0, 0); last + 1];
        self.fields = fields;
    }

    /// Finds the fields of a line, as many as the columns need.
    #[inline(always)]
    fn cut(&mut self, line: &[u8]) -> Result<(), SkipReason> {
        let (spans, mut count) = (&mut self.spans, 0);
        each_field(&self.map.splitter, &mut self.groups, line, |span| {
            if let Some(place) = spans.get_mut(count) {
                *place = span;
            }
            count += 1;
        })?;
        let right = match self.map.fields {
            Some(fields) => count == fields && count >= spans.len(),
            None => count >= spans.len(),
        };
        if right { Ok(()) } else { Err(WRONG_FIELDS) }
    }

    /// Finds the columns that are named, in the last header line.
    fn read_header(&mut self, line: &[u8], number: u64) -> Result<(), TraceError> {
        let mut names = Vec::new();
        let cut = each_field(&self.map.splitter, &mut self.groups, line, |(start, end)| {
            names.push(String::from_utf8_lossy(line[start..end].trim_ascii()));
        });
        if !self.fields.is_empty() || cut.is_err() {
            return Ok(());
        }
        let field = |column: &FieldRef| match column {
            FieldRef::Index(index) => Ok(*index),
            FieldRef::Name(wanted) => {
                names.iter().position(|name| name == wanted).ok_or_else(|| {
                    let has = names.join(", ");
                    let what = format!(
                        "the header has no column {wanted:?}, which the map names; it has: {has}"
                    );
                    TraceError::Bad { line: number, what }
                })
            }
        };
        let fields = self.map.columns.iter().map(field).collect::<Result<_, _>>()?;
        self.set_fields(fields);
        Ok(())
    }

    /// Whether `line` is an optional header: the first line, if its time begins with a letter,
    /// or a later line equal to it.
    fn is_header(&mut self, line: &[u8], number: u64) -> bool {
        if number == 1
            && self.cut(line).is_ok()
            && let Some(Stamp { at, .. }) = self.map.clock()
            && self.get(line, at).first().is_some_and(u8::is_ascii_alphabetic)
        {
            self.header = line.to_vec();
        }
        line == self.header
    }

    /// The field of a column, once the line was cut.
    #[inline(always)]
    fn get<'a>(&self, line: &'a [u8], at: At) -> &'a [u8] {
        let (start, end) = self.spans[self.fields[at.0]];
        line[start..end].trim_ascii()
    }

    #[inline(always)]
    fn count(&self, line: &[u8], count: Count) -> Result<u64, SkipReason> {
        let field = self.get(line, count.at);
        bytes(if count.hex { hex(field) } else { whole(field) }?, count.unit)
    }

    /// The number in an optional column; 0 if the field is empty.
    fn optional_count(&self, line: &[u8], count: Option<Count>) -> Result<u64, SkipReason> {
        match count {
            Some(count) if !self.get(line, count.at).is_empty() => self.count(line, count),
            _ => Ok(0),
        }
    }

    /// The time in a column, and how many decimal places it may have; `None` if the field is
    /// empty.
    #[inline(always)]
    fn stamp(&self, line: &[u8], stamp: Stamp) -> Result<Option<(i64, u32)>, SkipReason> {
        let field = self.get(line, stamp.at);
        if field.is_empty() {
            return Ok(None);
        }
        Ok(Some(match stamp.unit {
            Unit::Ns(unit) => time_and_decimals(field, unit)?,
            // Parts of a nanosecond are cut off.
            Unit::Ps => ((whole(field)? / 1_000) as i64, 0),
            Unit::Filetime => (filetime(field)?, 0),
        }))
    }

    fn optional_time(&self, line: &[u8], stamp: Option<Stamp>) -> Result<Option<i64>, SkipReason> {
        let Some(stamp) = stamp else { return Ok(None) };
        Ok(self.stamp(line, stamp)?.map(|(ns, _)| ns))
    }

    /// Issue and completion, and the decimal places of the time that orders the lines. If the
    /// line has only one of the two, the other follows from the latency.
    #[inline]
    fn times(&self, line: &[u8]) -> Result<(i64, OptTime, u32), SkipReason> {
        let map = &self.map;
        let clock = map.clock().expect("a map has a time");
        let (first, decimals) = self.stamp(line, clock)?.ok_or(NOT_A_NUMBER)?;
        let latency = self.optional_time(line, map.latency)?;
        if latency.is_some_and(|latency| latency < 0) {
            return Err(OUT_OF_RANGE);
        }
        if map.issue.is_none() {
            let issue = later(first, -latency.ok_or(NOT_A_NUMBER)?)?;
            return Ok((issue, OptTime::at(first), decimals));
        }
        let complete = match (self.optional_time(line, map.complete)?, latency) {
            (Some(complete), _) => OptTime::at(complete),
            (None, Some(latency)) => OptTime::at(later(first, latency)?),
            (None, None) => OptTime::UNKNOWN,
        };
        Ok((first, complete, decimals))
    }

    #[inline(always)]
    fn operation(&self, line: &[u8]) -> Result<(Op, Flags), SkipReason> {
        match &self.map.operation {
            Operation::Rwbs(at) => letters(self.get(line, *at)).ok_or(UNKNOWN_OP),
            Operation::Words(at, words) => word(self.get(line, *at), words),
        }
    }

    fn flag(&self, line: &[u8], flag: Option<&Flag>, meaning: Flags) -> Flags {
        let Some(flag) = flag else { return Flags::NONE };
        let field = self.get(line, flag.at);
        if flag.words.iter().any(|word| word == field) { meaning } else { Flags::NONE }
    }

    #[inline(always)]
    fn name(&self, line: &[u8], from: Option<Text>, sink: &mut Sink) -> Result<Symbol, SkipReason> {
        let Some(Text { first, last }) = from else { return Ok(Symbol::NONE) };
        let (start, _) = self.spans[self.fields[first.0]];
        let (_, end) = self.spans[self.fields[last.0]];
        let field = line.get(start..end).ok_or(WRONG_FIELDS)?;
        Ok(sink.symbols.intern(text(field.trim_ascii())?))
    }

    fn pid(&self, line: &[u8]) -> Result<i32, SkipReason> {
        let Some(at) = self.map.pid else { return Ok(-1) };
        match self.get(line, at) {
            b"" | b"-1" => Ok(-1),
            field => i32::try_from(whole(field)?).map_err(|_| OUT_OF_RANGE),
        }
    }

    /// Reads the columns that only few maps have.
    fn details(&self, line: &[u8], record: &mut Record, sink: &mut Sink) -> Result<(), SkipReason> {
        let map = &self.map;
        for (flag, meaning) in
            [(&map.sync, Flags::SYNC), (&map.meta, Flags::META), (&map.fua, Flags::FUA)]
        {
            record.flags = record.flags.with(self.flag(line, flag.as_ref(), meaning));
        }
        record.queue = self.optional_time(line, map.queue)?.map_or(OptTime::UNKNOWN, OptTime::at);
        record.pid = self.pid(line)?;
        record.inode = self.optional_count(line, map.inode)?;
        let stream = self.optional_count(line, map.stream)?;
        record.stream = u16::try_from(stream).map_err(|_| OUT_OF_RANGE)?;
        record.comm = self.name(line, map.comm, sink)?;
        record.file = self.name(line, map.file, sink)?;
        Ok(())
    }

    /// Adds the request of a line to `sink`. Returning the record to the caller instead would
    /// take a tenth more time.
    fn parse(
        &mut self,
        line: &[u8],
        number: u64,
        sink: &mut Sink,
    ) -> Result<Result<(), TraceError>, SkipReason> {
        self.cut(line)?;
        let map = &self.map;
        let (op, flags) = self.operation(line)?;
        let (issue_ns, complete, decimals) = self.times(line)?;
        let (offset, len) = match op {
            Op::Flush => (0, 0),
            _ => (self.count(line, map.offset)?, self.count(line, map.length)?),
        };
        let device = self.name(line, map.device, sink)?;
        let mut record = match op {
            Op::Flush => Record::new(op, in_time_range(issue_ns)?, 0, 0),
            _ => request(op, issue_ns, offset, len)?,
        };
        (record.flags, record.complete, record.device) = (flags, complete, device);
        if self.has_details {
            self.details(line, &mut record, sink)?;
        }
        if decimals > self.decimals {
            // SYSTOR '17 prints nine decimals of which six count.
            let clock = map.clock().expect("a map has a time");
            self.decimals = self.decimals.max(decimals_used(self.get(line, clock.at)));
        }
        Ok(sink.record(record, number))
    }
}

impl LineParser for MapParser {
    fn line(&mut self, line: &[u8], number: u64, sink: &mut Sink) -> Result<(), TraceError> {
        let trimmed = line.trim_ascii();
        let line = match self.map.splitter {
            // A blank at the start or the end may separate empty fields.
            Splitter::Delimiter(byte) if byte.is_ascii_whitespace() => {
                line.strip_suffix(b"\r").unwrap_or(line)
            }
            _ => trimmed,
        };
        if number <= self.map.header_lines {
            let is_last = number == self.map.header_lines;
            return if is_last { self.read_header(line, number) } else { Ok(()) };
        }
        let is_comment = self.map.comment.as_ref().is_some_and(|mark| line.starts_with(mark));
        if trimmed.is_empty() || is_comment {
            return Ok(());
        }
        if self.map.optional_header && self.is_header(line, number) {
            return Ok(());
        }
        self.parse(line, number, sink).unwrap_or_else(|reason| {
            sink.skip(reason, number);
            Ok(())
        })
    }

    /// The resolution of the clock is the finest one so far.
    fn capabilities(&self) -> Capabilities {
        let unit = match self.map.clock().map(|stamp| stamp.unit) {
            Some(Unit::Ns(unit)) => unit,
            Some(Unit::Ps) => 1,
            Some(Unit::Filetime) | None => 100,
        };
        self.map.capabilities((unit / 10u64.pow(self.decimals)).max(1))
    }

    /// The value of the map, or one second.
    fn disorder_ns(&self) -> u64 {
        self.map.disorder.map_or(DISORDER_NS, |disorder| disorder.0)
    }
}

/// Calls `take` with the span of each field of `line`.
#[inline(always)]
fn each_field(
    splitter: &Splitter,
    groups: &mut Option<CaptureLocations>,
    line: &[u8],
    mut take: impl FnMut(Span),
) -> Result<(), SkipReason> {
    match splitter {
        Splitter::Delimiter(delimiter) => {
            let mut start = 0;
            for (at, byte) in line.iter().enumerate() {
                if byte == delimiter {
                    take((start, at));
                    start = at + 1;
                }
            }
            take((start, line.len()));
        }
        Splitter::White => {
            let mut at = 0;
            loop {
                while line.get(at).is_some_and(u8::is_ascii_whitespace) {
                    at += 1;
                }
                if at == line.len() {
                    break;
                }
                let start = at;
                while line.get(at).is_some_and(|byte| !byte.is_ascii_whitespace()) {
                    at += 1;
                }
                take((start, at));
            }
        }
        Splitter::Regex(regex) => {
            let groups = groups.as_mut().expect("made with the expression");
            regex.captures_read(groups, line).ok_or(NO_MATCH)?;
            (0..groups.len()).for_each(|group| take(groups.get(group).unwrap_or((0, 0))));
        }
    }
    Ok(())
}

/// The operation that a word names.
#[inline(always)]
fn word(field: &[u8], words: &Words) -> Result<(Op, Flags), SkipReason> {
    match words.get(field) {
        Some(op) => Ok((op, Flags::NONE)),
        None if field.is_empty() => Err(NO_OPERATION),
        None => Err(UNKNOWN_OP),
    }
}

/// The operation of kernel letters, and its flags. Only a flush has no bytes; the length of
/// other operations is checked when the request is made.
fn letters(text: &[u8]) -> Option<(Op, Flags)> {
    let letters = Rwbs::parse(text)?;
    let bare = letters.kind == Kind::Nameless && letters.flags.has(Flags::PREFLUSH);
    let op = letters.op(u64::from(!bare))?;
    Some((op, if op == Op::Flush { Flags::NONE } else { letters.flags }))
}

#[cfg(test)]
mod tests;
