//! Any text of one request a line, read through a map in TOML: how to cut the line, which
//! column is what in which unit, and which words stand for which operation.
//!
//! How to write a map: `docs/spec/trace-map.md`.

mod checked;
mod spec;

use regex::bytes::CaptureLocations;

use self::checked::{At, Count, Flag, Map, Operation, Place, Splitter, Stamp, Unit};
use crate::capabilities::Capabilities;
use crate::error::TraceError;
use crate::fields::{
    NOT_A_NUMBER, OUT_OF_RANGE, UNKNOWN_OP, WRONG_FIELDS, bytes, decimals_used, filetime, hex,
    in_time_range, later, request, text, time, whole,
};
use crate::record::{Flags, Op, OptTime, Record};
use crate::rwbs::{Kind, Rwbs};
use crate::sink::{DISORDER_NS, LineParser, Sink};
use crate::skips::SkipReason;
use crate::symbols::Symbol;

/// The regular expression of the map does not match the line.
pub const NO_MATCH: SkipReason = SkipReason("not matched by the map's regular expression");

/// Reads text through a map.
#[derive(Debug)]
pub struct MapParser {
    map: Map,
    /// For each of the map's places, the field it means; empty until the header was read.
    fields: Vec<usize>,
    /// Where the fields of the current line start and end.
    spans: Vec<(usize, usize)>,
    groups: Option<CaptureLocations>,
    /// Most decimal places seen in the time, trailing zeros apart.
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
        let by_index: Option<Vec<usize>> = map
            .places
            .iter()
            .map(|place| match place {
                Place::Index(index) => Some(*index),
                Place::Name(_) => None,
            })
            .collect();
        let fields = by_index.unwrap_or_default();
        Ok(Self { map, fields, spans: Vec::new(), groups, decimals: 0 })
    }

    fn cut(&mut self, line: &[u8]) -> Result<(), SkipReason> {
        self.spans.clear();
        match &self.map.splitter {
            Splitter::Delimiter(byte) => {
                let mut start = 0;
                for end in memchr::memchr_iter(*byte, line).chain([line.len()]) {
                    self.spans.push((start, end));
                    start = end + 1;
                }
            }
            Splitter::White => {
                let base = line.as_ptr() as usize;
                self.spans.extend(crate::fields::white(line).map(|field| {
                    let start = field.as_ptr() as usize - base;
                    (start, start + field.len())
                }));
            }
            Splitter::Regex(regex) => {
                let groups = self.groups.as_mut().expect("made with the expression");
                regex.captures_read(groups, line).ok_or(NO_MATCH)?;
                let spans = (0..groups.len()).map(|group| groups.get(group).unwrap_or((0, 0)));
                self.spans.extend(spans);
            }
        }
        Ok(())
    }

    /// Finds the columns that are named by text in the last header line.
    fn read_header(&mut self, line: &[u8], number: u64) -> Result<(), TraceError> {
        if !self.fields.is_empty() || self.cut(line).is_err() {
            return Ok(());
        }
        let names: Vec<_> = self
            .spans
            .iter()
            .map(|&(start, end)| String::from_utf8_lossy(line[start..end].trim_ascii()))
            .collect();
        for place in &self.map.places {
            let field = match place {
                Place::Index(index) => *index,
                Place::Name(wanted) => {
                    names.iter().position(|name| name == wanted).ok_or_else(|| {
                        let has = names.join(", ");
                        let what = format!(
                            "the header has no column {wanted:?}, which the map names; it has: \
                             {has}"
                        );
                        TraceError::Bad { line: number, what }
                    })?
                }
            };
            self.fields.push(field);
        }
        Ok(())
    }

    fn get<'a>(&self, line: &'a [u8], at: At) -> Result<&'a [u8], SkipReason> {
        let field = self.fields.get(at.0).ok_or(WRONG_FIELDS)?;
        let &(start, end) = self.spans.get(*field).ok_or(WRONG_FIELDS)?;
        Ok(line[start..end].trim_ascii())
    }

    fn count(&self, line: &[u8], count: Count) -> Result<u64, SkipReason> {
        let field = self.get(line, count.at)?;
        bytes(if count.hex { hex(field) } else { whole(field) }?, count.unit)
    }

    /// The number in an optional column; 0 where the field is empty.
    fn optional_count(&self, line: &[u8], count: Option<Count>) -> Result<u64, SkipReason> {
        match count {
            Some(count) if !self.get(line, count.at)?.is_empty() => self.count(line, count),
            _ => Ok(0),
        }
    }

    /// The time in an optional column; nothing where the field is empty.
    fn stamp(&self, line: &[u8], stamp: Option<Stamp>) -> Result<Option<i64>, SkipReason> {
        let Some(Stamp { at, unit }) = stamp else { return Ok(None) };
        match (self.get(line, at)?, unit) {
            ([], _) => Ok(None),
            (field, Unit::Filetime) => filetime(field).map(Some),
            (field, Unit::Ns(unit)) => time(field, unit).map(Some),
        }
    }

    /// Issue and completion, each from the other where only one is written down.
    fn times(&self, line: &[u8]) -> Result<(i64, OptTime), SkipReason> {
        let map = &self.map;
        let complete = self.stamp(line, map.complete)?;
        let latency = self.stamp(line, map.latency)?;
        if latency.is_some_and(|latency| latency < 0) {
            return Err(OUT_OF_RANGE);
        }
        let issue = if map.issue.is_some() {
            self.stamp(line, map.issue)?.ok_or(NOT_A_NUMBER)?
        } else {
            later(complete.ok_or(NOT_A_NUMBER)?, -latency.ok_or(NOT_A_NUMBER)?)?
        };
        let complete = match (complete, latency) {
            (Some(complete), _) => OptTime::at(complete),
            (None, Some(latency)) => OptTime::at(later(issue, latency)?),
            (None, None) => OptTime::UNKNOWN,
        };
        Ok((issue, complete))
    }

    fn operation(&self, line: &[u8]) -> Result<(Op, Flags), SkipReason> {
        match &self.map.operation {
            Operation::Rwbs(at) => letters(self.get(line, *at)?).ok_or(UNKNOWN_OP),
            Operation::Words { at, words, ignore_case } => {
                let field = self.get(line, *at)?;
                let is =
                    |word: &[u8]| word == field || *ignore_case && word.eq_ignore_ascii_case(field);
                let found = words.iter().find(|(word, _)| is(word));
                found.map(|&(_, op)| (op, Flags::NONE)).ok_or(UNKNOWN_OP)
            }
        }
    }

    fn flag(&self, line: &[u8], flag: Option<&Flag>, meaning: Flags) -> Result<Flags, SkipReason> {
        let Some(flag) = flag else { return Ok(Flags::NONE) };
        let field = self.get(line, flag.at)?;
        let is_set = flag.words.iter().any(|word| word == field);
        Ok(if is_set { meaning } else { Flags::NONE })
    }

    fn name(&self, line: &[u8], at: Option<At>, sink: &mut Sink) -> Result<Symbol, SkipReason> {
        let Some(at) = at else { return Ok(Symbol::NONE) };
        Ok(sink.symbols.intern(text(self.get(line, at)?)?))
    }

    fn pid(&self, line: &[u8]) -> Result<i32, SkipReason> {
        let Some(at) = self.map.pid else { return Ok(-1) };
        match self.get(line, at)? {
            b"" | b"-1" => Ok(-1),
            field => i32::try_from(whole(field)?).map_err(|_| OUT_OF_RANGE),
        }
    }

    /// Notes how fine the clock is: SYSTOR '17 prints nine decimals of which six count.
    fn watch_clock(&mut self, line: &[u8]) {
        let Some(Stamp { at, unit: Unit::Ns(_) }) = self.map.clock() else { return };
        let Ok(field) = self.get(line, at) else { return };
        self.decimals = self.decimals.max(decimals_used(field));
    }

    fn parse(&mut self, line: &[u8], sink: &mut Sink) -> Result<Record, SkipReason> {
        self.cut(line)?;
        let map = &self.map;
        let (op, mut flags) = self.operation(line)?;
        let (issue_ns, complete) = self.times(line)?;
        let mut record = if op == Op::Flush {
            Record::new(op, in_time_range(issue_ns)?, 0, 0)
        } else {
            let (offset, len) = (self.count(line, map.offset)?, self.count(line, map.length)?);
            request(op, issue_ns, offset, len)?
        };
        for (flag, meaning) in
            [(&map.sync, Flags::SYNC), (&map.meta, Flags::META), (&map.fua, Flags::FUA)]
        {
            flags = flags.with(self.flag(line, flag.as_ref(), meaning)?);
        }
        record.flags = flags;
        record.complete = complete;
        record.queue = self.stamp(line, map.queue)?.map_or(OptTime::UNKNOWN, OptTime::at);
        record.pid = self.pid(line)?;
        record.inode = self.optional_count(line, map.inode)?;
        let stream = self.optional_count(line, map.stream)?;
        record.stream = u16::try_from(stream).map_err(|_| OUT_OF_RANGE)?;
        record.device = self.name(line, map.device, sink)?;
        record.comm = self.name(line, map.comm, sink)?;
        record.file = self.name(line, map.file, sink)?;
        self.watch_clock(line);
        Ok(record)
    }
}

impl LineParser for MapParser {
    fn line(&mut self, line: &[u8], number: u64, sink: &mut Sink) -> Result<(), TraceError> {
        let line = match self.map.splitter {
            // The blank at the start or the end may stand between empty fields.
            Splitter::Delimiter(byte) if byte.is_ascii_whitespace() => {
                line.strip_suffix(b"\r").unwrap_or(line)
            }
            _ => line.trim_ascii(),
        };
        if number <= self.map.header_lines {
            let is_last = number == self.map.header_lines;
            return if is_last { self.read_header(line, number) } else { Ok(()) };
        }
        let is_comment = self.map.comment.as_ref().is_some_and(|mark| line.starts_with(mark));
        if line.trim_ascii().is_empty() || is_comment {
            return Ok(());
        }
        match self.parse(line, sink) {
            Ok(record) => sink.record(record, number),
            Err(reason) => {
                sink.skip(reason, number);
                Ok(())
            }
        }
    }

    /// The step of the clock is the finest one seen so far.
    fn capabilities(&self) -> Capabilities {
        let unit = match self.map.clock().map(|stamp| stamp.unit) {
            Some(Unit::Ns(unit)) => unit,
            Some(Unit::Filetime) | None => 100,
        };
        self.map.capabilities((unit / 10u64.pow(self.decimals)).max(1))
    }

    /// What the map says, or the usual second.
    fn disorder_ns(&self) -> u64 {
        self.map.disorder.map_or(DISORDER_NS, |disorder| disorder.0)
    }
}

/// The operation that kernel letters name, and its flags. Only a flush has no bytes; that
/// others have some is checked where the request is made.
fn letters(text: &[u8]) -> Option<(Op, Flags)> {
    let letters = Rwbs::parse(text)?;
    let bare = letters.kind == Kind::Nameless && letters.flags.has(Flags::PREFLUSH);
    let op = letters.op(u64::from(!bare))?;
    Some((op, if op == Op::Flush { Flags::NONE } else { letters.flags }))
}

#[cfg(test)]
mod tests;
