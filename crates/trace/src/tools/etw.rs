//! Disk events of Windows as comma-separated text, as xperf prints them and the traces of
//! Microsoft production servers (MSPS, Exchange) are published.
//!
//! ```text
//! BeginHeader
//!    DiskRead, TimeStamp, Process Name ( PID), ThreadID, IrpPtr, ByteOffset, IOSize, ...
//! EndHeader
//!    DiskRead,  723291, p0 (11008), 12260, 0xfffffade691b3010, 0x4e5ec22e00, 0x00002000, ...
//! ```
//! The header names the columns of each event; without it those of the published traces are
//! used. The time is that of the completion in microseconds. The elapsed time, also in
//! microseconds, is the time since the request was passed to the disk's driver. The events of
//! that moment (`DiskReadInit`) contain nothing more and are ignored. Offsets and sizes are
//! bytes in hexadecimal digits.
//!
//! Source: SNIA IOTTA 130 and 158 (Kavalanekar et al., IISWC'08); Windows Performance
//! Toolkit, xperf's action `dumper`.

use super::DISORDER_NS;
use crate::capabilities::Capabilities;
use crate::data_sets::rows::{Row, RowOutput};
use crate::event::OTHER_EVENT;
use crate::fields::{
    MICROSECOND, NOT_A_NUMBER, OUT_OF_RANGE, WRONG_FIELDS, hex, later, request, text, time, whole,
};
use crate::record::{Op, OptTime, Record};
use crate::skips::SkipReason;

/// The prefixes of the names of the used columns, and their positions in the published traces.
const NAMES: [&str; 7] =
    ["TimeStamp", "Process Name", "ByteOffset", "IOSize", "ElapsedTime", "DiskNum", "FileName"];
const PLACES: Columns = [Some(1), Some(2), Some(5), Some(6), Some(7), Some(8), Some(14)];
const FLUSH_PLACES: Columns = [Some(1), Some(2), None, None, Some(5), Some(6), None];

/// The position of each of [`NAMES`].
type Columns = [Option<usize>; NAMES.len()];

/// Reads lines of disk events.
#[derive(Debug)]
pub(crate) struct Etw {
    in_header: bool,
    reads: Columns,
    writes: Columns,
    flushes: Columns,
    /// The header contains flushes, or there was one.
    has_flushes: bool,
}

impl Default for Etw {
    fn default() -> Self {
        let (reads, writes, flushes) = (PLACES, PLACES, FLUSH_PLACES);
        Self { in_header: false, reads, writes, flushes, has_flushes: false }
    }
}

impl Etw {
    fn columns(&mut self, event: &[u8]) -> Option<(Op, &mut Columns)> {
        match event {
            b"DiskRead" => Some((Op::Read, &mut self.reads)),
            b"DiskWrite" => Some((Op::Write, &mut self.writes)),
            b"DiskFlush" => {
                self.has_flushes = true;
                Some((Op::Flush, &mut self.flushes))
            }
            _ => None,
        }
    }
}

impl Row for Etw {
    fn read(&mut self, line: &[u8], out: &mut RowOutput<'_>) -> Result<(), SkipReason> {
        let event = line.split(|&byte| byte == b',').next().unwrap_or_default().trim_ascii();
        if matches!(event, b"DiskReadInit" | b"DiskWriteInit" | b"DiskFlushInit") {
            return Ok(());
        }
        let (op, columns) = self.columns(event).ok_or(OTHER_EVENT)?;
        let cell = |name: usize| {
            let place = columns[name].ok_or(WRONG_FIELDS)?;
            nth(line, place).ok_or(WRONG_FIELDS)
        };
        let done_ns = time(cell(0)?, MICROSECOND)?;
        let took = Some(time(cell(4)?, MICROSECOND)?).filter(|span| *span >= 0);
        let issue_ns = later(done_ns, -took.ok_or(OUT_OF_RANGE)?)?;
        let mut record = match op {
            Op::Flush => Record::new(op, issue_ns, 0, 0),
            _ => request(op, issue_ns, hex(cell(2)?)?, hex(cell(3)?)?)?,
        };
        record.complete = OptTime::at(done_ns);
        let (name, pid) = process(cell(1)?)?;
        record.pid = pid;
        record.comm = out.symbols.intern(text(name)?);
        record.device = out.symbols.intern(text(cell(5)?)?);
        if let Ok(file) = cell(6) {
            // Names are in quotes, and may contain commas.
            let file = file.strip_prefix(b"\"").unwrap_or(file);
            let file = file.strip_suffix(b"\"").unwrap_or(file);
            record.file = out.symbols.intern(if file == b"Unknown" { "" } else { text(file)? });
        }
        out.records.push(record);
        Ok(())
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            flush: self.has_flushes,
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

    /// Reads the lines between the marks of the header, which name the columns.
    fn header(&mut self, line: &[u8], _is_first: bool) -> Result<bool, String> {
        match line {
            b"BeginHeader" => self.in_header = true,
            b"EndHeader" => self.in_header = false,
            _ if !self.in_header => return Ok(false),
            _ => {
                let event = nth(line, 0).unwrap_or_default();
                if let Some((_, columns)) = self.columns(event) {
                    let names = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
                    let place =
                        |name: &str| names.clone().position(|of| of.starts_with(name.as_bytes()));
                    let found = NAMES.map(place);
                    if found[0].is_none() || found[4].is_none() {
                        return Err(format!(
                            "the header of {} names no TimeStamp or no ElapsedTime, without which \
                             there is no time of issue",
                            String::from_utf8_lossy(event)
                        ));
                    }
                    *columns = found;
                }
            }
        }
        Ok(true)
    }
}

/// The cell `place` of a line; the whole rest if it begins with a quote, as the name in the
/// last column does.
fn nth(line: &[u8], place: usize) -> Option<&[u8]> {
    let mut cells = line.splitn(place + 1, |&byte| byte == b',');
    let rest = cells.nth(place)?.trim_ascii();
    if rest.starts_with(b"\"") {
        return Some(rest);
    }
    rest.split(|&byte| byte == b',').next().map(<[u8]>::trim_ascii)
}

/// `name (1234)`.
fn process(cell: &[u8]) -> Result<(&[u8], i32), SkipReason> {
    let open = cell.iter().rposition(|&byte| byte == b'(').ok_or(NOT_A_NUMBER)?;
    let number = cell[open + 1..].strip_suffix(b")").ok_or(NOT_A_NUMBER)?.trim_ascii();
    let pid = i32::try_from(whole(number)?).map_err(|_| OUT_OF_RANGE)?;
    Ok((cell[..open].trim_ascii(), pid))
}

/// Whether a line is of this format.
pub(crate) fn is_line(line: &[u8]) -> bool {
    let event = nth(line, 0).unwrap_or_default();
    let is_disk = matches!(event, b"DiskRead" | b"DiskWrite");
    let cell = |place| nth(line, place).unwrap_or_default();
    let is_header = || cell(1) == b"TimeStamp";
    let is_row = || time(cell(1), 1).is_ok() && hex(cell(5)).is_ok() && process(cell(2)).is_ok();
    is_disk && (is_header() || is_row())
}
