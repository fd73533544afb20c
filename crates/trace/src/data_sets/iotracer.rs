//! Block events of cacheMon's io-tracer for Linux, one request a line.
//!
//! Newer files name their columns in a header; older ones have no header and the eleven columns
//! `timestamp,pid,command,sector,operation,size,latency_ms, tid,nr_sectors,cpu,ppid`. The
//! timestamp is the local date and time of the completion to the microsecond; `mono_ns`, if
//! there is such a column, is the same time in nanoseconds. The issue time is earlier by the
//! latency, and the queue time is earlier than that by the queue latency. Sectors have 512
//! bytes, sizes are in bytes.
//!
//! The operation is written with words for the kernel's letters, such as `write|sync|meta`;
//! newer files have the words after the first in a column `flags`. As in the letters, a `flush`
//! before `write` is a preflush, and one after it is FUA; if the words are in two columns, this
//! order is not certain.
//!
//! Source: github.com/cacheMon/io-tracer-linux, docs/traces/BLOCK_IO_EVENTS.md.

use super::calendar::date_time;
use super::columns::{Columns, has_all};
use super::rows::{Clock, Row, RowOutput};
use crate::capabilities::Capabilities;
use crate::event::SECTOR;
use crate::fields::{
    MILLISECOND, OUT_OF_RANGE, SECOND, UNKNOWN_OP, bytes, decimals_used, in_time_range, later,
    request, span, split, text, time, whole,
};
use crate::record::{Flags, Op, OptTime, Record};
use crate::skips::SkipReason;

/// Columns wanted; those after the first seven may be missing.
const NAMES: [&str; 11] = [
    "timestamp",
    "operation",
    "pid",
    "command",
    "sector",
    "size",
    "latency_ms",
    "device",
    "flags",
    "queue_latency_ms",
    "mono_ns",
];

/// Columns without which nothing can be read.
const NEEDED: usize = 7;

/// Reads lines of io-tracer.
pub(crate) struct IoTracer {
    columns: Option<Columns<11>>,
    /// The resolution of the dates.
    clock: Clock,
}

impl IoTracer {
    pub fn new() -> Self {
        Self { columns: None, clock: Clock::new(SECOND) }
    }

    /// The columns of a line, in the order of [`NAMES`].
    fn cut<'a>(&self, line: &'a [u8]) -> Result<[&'a [u8]; 11], SkipReason> {
        match &self.columns {
            Some(columns) => columns.cut(line),
            None => old_columns(line),
        }
    }
}

/// The columns of a line of a file without a header.
fn old_columns(line: &[u8]) -> Result<[&[u8]; 11], SkipReason> {
    let [stamp, pid, command, sector, operation, size, latency, _, _, _, _] = split(line, b',')?;
    let none = &line[..0];
    Ok([stamp, operation, pid, command, sector, size, latency, none, none, none, none])
}

/// The operation that words name, and its flags.
fn operation(words: &[u8], more: &[u8]) -> Result<(Op, Flags), SkipReason> {
    let (mut op, mut flags, mut flushes) = (None, Flags::NONE, false);
    let words = [words, more].into_iter().flat_map(|words| words.split(|&byte| byte == b'|'));
    for word in words.map(<[u8]>::trim_ascii) {
        match word {
            b"read" if op.is_none() => op = Some(Op::Read),
            b"write" if op.is_none() => op = Some(Op::Write),
            b"discard" if op.is_none() => op = Some(Op::Discard),
            b"flush" if op.is_some() => flags = flags.with(Flags::FUA),
            b"flush" => flushes = true,
            b"sync" => flags = flags.with(Flags::SYNC),
            b"meta" => flags = flags.with(Flags::META),
            b"ahead" => flags = flags.with(Flags::READAHEAD),
            b"" | b"prio" | b"barrier" => {}
            _ => return Err(UNKNOWN_OP),
        }
    }
    match op {
        Some(op) if flushes => Ok((op, flags.with(Flags::PREFLUSH))),
        Some(op) => Ok((op, flags)),
        None if flushes => Ok((Op::Flush, Flags::NONE)),
        None => Err(UNKNOWN_OP),
    }
}

impl Row for IoTracer {
    fn read(&mut self, line: &[u8], out: &mut RowOutput<'_>) -> Result<(), SkipReason> {
        let [stamp, words, pid, command, sector, size, latency, device, flags, queued, mono] =
            self.cut(line)?;
        let (op, flags) = operation(words, flags)?;
        let done_ns = if mono.is_empty() { date_time(stamp)? } else { time(mono, 1)? };
        let took = span(latency, MILLISECOND)?;
        let issue_ns = later(in_time_range(done_ns)?, -took.unwrap_or(0))?;
        let mut record = if op == Op::Flush {
            Record::new(op, issue_ns, 0, 0)
        } else {
            request(op, issue_ns, bytes(whole(sector)?, SECTOR)?, whole(size)?)?
        };
        record.flags = flags;
        if took.is_some() {
            record.complete = OptTime::at(done_ns);
        }
        if let Some(before) = span(queued, MILLISECOND)? {
            record.queue = OptTime::at(later(issue_ns, -before)?);
        }
        record.pid = i32::try_from(whole(pid)?).map_err(|_| OUT_OF_RANGE)?;
        record.comm = out.symbols.intern(text(command)?);
        record.device = out.symbols.intern(text(device)?);
        self.clock.saw(if mono.is_empty() { decimals_used(stamp) } else { 9 });
        out.records.push(record);
        Ok(())
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            discard: true,
            flush: true,
            fua: true,
            sync_meta: true,
            completion: true,
            queue: self.columns.is_some(),
            process: true,
            clock_ns: self.clock.step_ns(),
            ..Capabilities::READS_AND_WRITES
        }
    }

    fn header(&mut self, line: &[u8], is_first: bool) -> Result<bool, String> {
        let is_header = is_header(line) || is_first && line[0].is_ascii_alphabetic();
        if is_header {
            self.columns = Some(Columns::find(line, &NAMES, NEEDED)?);
        }
        Ok(is_header)
    }
}

/// Whether a line can only be the header of this format.
pub(crate) fn is_header(line: &[u8]) -> bool {
    has_all(line, &NAMES[..NEEDED])
}

/// Whether a line can only be of the form without a header.
pub(crate) fn is_line(line: &[u8]) -> bool {
    old_columns(line).is_ok_and(|[stamp, words, pid, _, sector, size, latency, ..]| {
        operation(words, b"").is_ok()
            && date_time(stamp).is_ok()
            && span(latency, MILLISECOND).is_ok()
            && [pid, sector, size].iter().all(|field| whole(field).is_ok())
    })
}
