//! Disk events of Windows as `xperf` prints them, the form of Microsoft's traces of
//! production servers, Exchange and TPC: one event a line, below a header that names the
//! columns of each kind of event and is followed where there is one.
//!
//! A `DiskRead`, `DiskWrite` or `DiskFlush` stands where the request ended; its time is in
//! microseconds, and it was issued `ElapsedTime` (us) before. Offset and size are bytes in
//! hexadecimal. The service time that stands there too is the system's own inference and
//! is not used. All other events, the beginnings of these (`DiskReadInit`) among them, are
//! counted as events that tell nothing more of requests.
//!
//! Source: Kavalanekar et al., "Characterization of Storage Workload Traces from
//! Production Windows Servers", IISWC'08; SNIA IOTTA 149, 158.

use super::columns::{Columns, has_all};
use super::rows::Row;
use crate::capabilities::Capabilities;
use crate::event::OTHER_EVENT;
use crate::fields::{OUT_OF_RANGE, WRONG_FIELDS, hex, in_time_range, later, request, text, time};
use crate::record::{Op, OptTime, Record};
use crate::skips::SkipReason;
use crate::symbols::{Symbol, Symbols};

/// Nanoseconds in a microsecond.
const MICROSECOND: u64 = 1_000;

/// Events are in the order of their ends; a host gives up on a request after half a minute.
const DISORDER_NS: u64 = 30_000_000_000;

/// Columns wanted; a flush has the first four, and the last may be missing.
const NAMES: [&str; 7] = [
    "TimeStamp",
    "Process Name ( PID)",
    "ElapsedTime",
    "DiskNum",
    "ByteOffset",
    "IOSize",
    "FileName",
];

/// The columns of the published traces, for a piece of one that has lost its header.
const TRANSFER: &[u8] = b"DiskRead,TimeStamp,Process Name ( PID),ThreadID,IrpPtr,ByteOffset,\
    IOSize,ElapsedTime,DiskNum,IrpFlags,DiskSvcTime,I/O Pri,VolSnap,FileObject,FileName";
const FLUSH: &[u8] = b"DiskFlush,TimeStamp,Process Name ( PID),ThreadID,IrpPtr,ElapsedTime,\
    DiskNum,IrpFlags,DiskSvcTime,I/O Pri";

/// Reads what `xperf` prints.
pub(super) struct Etw {
    read: Columns<7>,
    write: Columns<7>,
    flush: Columns<7>,
    /// A flush was among the events, or the header says that there can be.
    tells_flushes: bool,
}

/// The kind of event that a line is of, or describes.
fn kind(line: &[u8]) -> Option<Op> {
    match line.split(|&byte| byte == b',').next()?.trim_ascii() {
        b"DiskRead" => Some(Op::Read),
        b"DiskWrite" => Some(Op::Write),
        b"DiskFlush" => Some(Op::Flush),
        _ => None,
    }
}

/// Whether a line describes the columns of an event.
fn describes(line: &[u8]) -> bool {
    line.split(|&byte| byte == b',').nth(1).is_some_and(|cell| cell.trim_ascii() == b"TimeStamp")
}

/// The columns that `header` describes.
fn columns(op: Op, header: &[u8]) -> Result<Columns<7>, String> {
    Columns::find(header, &NAMES, if op == Op::Flush { 4 } else { 6 })
}

impl Etw {
    pub fn new() -> Self {
        let usual = |op, header| columns(op, header).expect("it has all columns");
        Self {
            read: usual(Op::Read, TRANSFER),
            write: usual(Op::Write, TRANSFER),
            flush: usual(Op::Flush, FLUSH),
            tells_flushes: false,
        }
    }
}

/// Name and number of a process from `name (number)`; -1 where there is no such number.
fn process(field: &[u8]) -> Result<(&str, i32), SkipReason> {
    let field = text(field)?;
    let (name, rest) = field.rsplit_once('(').unwrap_or((field, ""));
    let number = rest.trim_end_matches(')').trim().parse().unwrap_or(-1);
    Ok((name.trim_end(), number))
}

impl Row for Etw {
    fn read(
        &mut self,
        line: &[u8],
        symbols: &mut Symbols,
        out: &mut Vec<Record>,
    ) -> Result<(), SkipReason> {
        let op = kind(line).ok_or(OTHER_EVENT)?;
        let columns = match op {
            Op::Read => &self.read,
            Op::Write => &self.write,
            _ => &self.flush,
        };
        // The name of a file comes last and may have commas in it.
        let [stamp, who, took, disk, offset, len, file] = columns.cut_start(line)?;
        if stamp.is_empty() || took.is_empty() {
            return Err(WRONG_FIELDS);
        }
        let done_ns = in_time_range(time(stamp, MICROSECOND)?)?;
        let took = time(took, MICROSECOND)?;
        if took < 0 {
            return Err(OUT_OF_RANGE);
        }
        let issue_ns = later(done_ns, -took)?;
        let mut record = if op == Op::Flush {
            Record::new(op, issue_ns, 0, 0)
        } else {
            request(op, issue_ns, hex(offset)?, hex(len)?)?
        };
        let (name, pid) = process(who)?;
        (record.complete, record.pid) = (OptTime::at(done_ns), pid);
        record.comm = symbols.intern(name);
        record.device = symbols.intern(text(disk)?);
        record.file = match text(file)?.trim_matches('"') {
            "Unknown" => Symbol::NONE,
            name => symbols.intern(name),
        };
        self.tells_flushes |= op == Op::Flush;
        out.push(record);
        Ok(())
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            flush: self.tells_flushes,
            completion: true,
            process: true,
            file: true,
            clock_ns: MICROSECOND,
            ..Capabilities::READS_AND_WRITES
        }
    }

    fn disorder_ns(&self) -> u64 {
        DISORDER_NS
    }

    fn header(&mut self, line: &[u8], _: bool) -> Result<bool, String> {
        if !describes(line) {
            return Ok(matches!(line, b"BeginHeader" | b"EndHeader"));
        }
        match kind(line) {
            Some(Op::Read) => self.read = columns(Op::Read, line)?,
            Some(Op::Write) => self.write = columns(Op::Write, line)?,
            Some(op) => {
                self.flush = columns(op, line)?;
                self.tells_flushes = true;
            }
            None => {}
        }
        Ok(true)
    }
}

/// Whether a line can only be of this format: a transfer, or what describes one.
pub(super) fn is_line(line: &[u8]) -> bool {
    let is_transfer = matches!(kind(line), Some(Op::Read | Op::Write));
    let numbers = line.split(|&byte| byte == b',').filter(|cell| {
        let cell = cell.trim_ascii();
        cell.starts_with(b"0x") && hex(cell).is_ok()
    });
    is_transfer && (has_all(line, &NAMES[..6]) || numbers.count() >= 3)
}
