//! One page of the trace buffer: its header, the events lost before it, and its records with
//! their times.

use super::format::{self, Field};
use crate::error::TraceError;

/// Bits of `commit` that count bytes; the kernel sets flags above them.
const COMMIT_BITS: u64 = (1 << 27) - 1;
/// Events were lost before this page.
const MISSED: u64 = 1 << 31;
/// Their number is after the last record.
const MISSED_STORED: u64 = 1 << 30;

/// Bits of a record's first word that are the type, or the length of short data in words.
const TYPE_BITS: u32 = 5;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of a time in the first word.
const TIME_BITS: u32 = 32 - TYPE_BITS;
/// Bits of an absolute time that are written; the higher ones are those of the time before.
const STAMP_BITS: u32 = 59;

/// The largest valid number of lost events: more than ten million per second for a day is
/// damage.
const LOST_MAX: u64 = 1 << 40;

/// The positions of the parts of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    time: Field,
    commit: Field,
    data: Field,
}

/// A page whose header has been read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page<'a> {
    time_ns: u64,
    data: &'a [u8],
    /// Events lost before it: at least one if the kernel gives no number.
    pub lost: Option<u64>,
}

/// The rest of the page cannot be read as records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damaged;

impl Layout {
    /// Reads the text of `events/header_page`.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let file = "events/header_page";
        let fields = format::fields(file, text)?;
        let time = format::number(file, &fields, "timestamp")?;
        let commit = format::number(file, &fields, "commit")?;
        let data = format::find(file, &fields, "data")?;
        let is_page = time.size == 8
            && commit.size >= 4
            && time.offset + time.size <= data.offset
            && commit.offset + commit.size <= data.offset
            && data.size > 0;
        if !is_page {
            let what = "the time, commit and data in it are not those of a page".to_owned();
            return Err(TraceError::EventFormat { name: file.to_owned(), what });
        }
        Ok(Self { time, commit, data })
    }

    pub fn page_bytes(&self) -> usize {
        self.data.offset + self.data.size
    }

    /// The page in `bytes`; `None` if they are too many or too few for a page.
    pub fn page<'a>(&self, bytes: &'a [u8]) -> Option<Page<'a>> {
        if bytes.len() > self.page_bytes() {
            return None;
        }
        let (time_ns, commit) = (self.time.number(bytes)?, self.commit.number(bytes)?);
        let used = (commit & COMMIT_BITS) as usize;
        let data = bytes.get(self.data.offset..)?;
        let (data, behind) = data.split_at_checked(used)?;
        let stored = || {
            let count = self.commit.at(0).number(behind).filter(|_| commit & MISSED_STORED != 0);
            count.filter(|count| (1..LOST_MAX).contains(count)).unwrap_or(1)
        };
        let lost = (commit & MISSED != 0).then(stored);
        Some(Page { time_ns, data, lost })
    }
}

impl<'a> Page<'a> {
    /// Time in nanoseconds and fields of each record with an event. [`Damaged`] is the last
    /// item.
    pub fn records(self) -> Records<'a> {
        Records { time_ns: self.time_ns, rest: self.data }
    }
}

/// Iterates over the records of a page.
#[derive(Debug)]
pub(crate) struct Records<'a> {
    time_ns: u64,
    rest: &'a [u8],
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<(i64, &'a [u8]), Damaged>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            match self.step() {
                Some(None) => {}
                Some(Some(event)) => return Some(Ok(event)),
                None => {
                    self.rest = &[];
                    return Some(Err(Damaged));
                }
            }
        }
        None
    }
}

impl<'a> Records<'a> {
    /// Reads one record: an event, or only time or padding. `None` if it is not a record.
    fn step(&mut self) -> Option<Option<(i64, &'a [u8])>> {
        let first = self.word()?;
        let (kind, delta) = (first & ((1 << TYPE_BITS) - 1), u64::from(first >> TYPE_BITS));
        match kind {
            PADDING if delta == 0 => self.rest = &[],
            PADDING => {
                // A discarded event. If no time has passed, the kernel writes a 1, because 0
                // means the end of the page.
                self.pass(if delta == 1 { 0 } else { delta })?;
                let len = self.word()?.checked_sub(4)?;
                self.take(len)?;
            }
            TIME_EXTEND => {
                let high = u64::from(self.word()?);
                self.pass(delta | high << TIME_BITS)?;
            }
            TIME_STAMP => {
                let stamp = delta | u64::from(self.word()?) << TIME_BITS;
                self.time_ns = fix_stamp(stamp, self.time_ns);
            }
            words => {
                let len = if words == 0 { self.word()?.checked_sub(4)? } else { words * 4 };
                self.pass(delta)?;
                let fields = self.take(len)?;
                return Some(Some((i64::try_from(self.time_ns).ok()?, fields)));
            }
        }
        Some(None)
    }

    fn pass(&mut self, ns: u64) -> Option<()> {
        self.time_ns = self.time_ns.checked_add(ns)?;
        Some(())
    }

    fn word(&mut self) -> Option<u32> {
        let (word, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u32::from_le_bytes(*word))
    }

    /// Consumes `len` bytes, and those up to the next word.
    fn take(&mut self, len: u32) -> Option<&'a [u8]> {
        let len = usize::try_from(len).ok()?;
        let (taken, _) = self.rest.split_at_checked(len)?;
        self.rest = self.rest.get(len.next_multiple_of(4)..)?;
        Some(taken)
    }
}

/// The complete absolute time of which the low bits were written: not before `before`.
fn fix_stamp(stamp: u64, before: u64) -> u64 {
    let high = before >> STAMP_BITS << STAMP_BITS;
    let whole = stamp | high;
    if high != 0 && whole < before { whole.saturating_add(1 << STAMP_BITS) } else { whole }
}
