//! The output of biosnoop, both of the Python tool of bcc and of the one of libbpf-tools.
//!
//! ```text
//! TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  QUE(ms) LAT(ms)
//! 0.000004    supervise      1950    xvda1     W 13092560   4096      0.02    0.74
//! 1.774198    f2fs ckpt:1    5270              R 520198144  4096              0.48
//! ```
//! The time is that of the completion, in microseconds since the first one; the issue time is
//! earlier by the latency. The command may have spaces and is cut after 14 characters; the disk
//! may be missing. With `-P` a letter follows the bytes, with `-Q` the time in the queue, which
//! is -1 if it is unknown.
//!
//! The tool in Python prints latencies with two decimals, and `W` for writes and `R` for
//! everything else: a discard looks like a read there, and a flush like a read of nothing.
//! The one of libbpf-tools prints three decimals and the kernel's letters.
//!
//! Source: github.com/iovisor/bcc, `tools/biosnoop.py`, `libbpf-tools/biosnoop.c`.

use super::DISORDER_NS;
use crate::capabilities::Capabilities;
use crate::data_sets::rows::{Row, RowOutput};
use crate::event::SECTOR;
use crate::fields::{
    MILLISECOND, NOT_A_NUMBER, OUT_OF_RANGE, SECOND, UNKNOWN_OP, WRONG_FIELDS, bytes, later,
    request, text, time, white, whole,
};
use crate::record::{Flags, Op, OptTime, Record};
use crate::rwbs::Rwbs;
use crate::skips::SkipReason;

/// The most words after the command: process, disk, letters, sector, bytes, pattern, two times.
const WORDS_MAX: usize = 8;

/// Flushes in the output of the Python tool look like this.
const NO_BYTES: SkipReason = SkipReason("request without bytes, which may have been a flush");

/// Reads lines of biosnoop.
#[derive(Debug, Default)]
pub(crate) struct Biosnoop {
    /// Decimals of the latencies.
    decimals: u32,
    has_queue: bool,
}

/// The fields of a line.
#[derive(Clone, Copy, Debug)]
struct Fields<'a> {
    time: &'a [u8],
    comm: &'a [u8],
    pid: &'a [u8],
    disk: &'a [u8],
    letters: &'a [u8],
    sector: &'a [u8],
    bytes: &'a [u8],
    queue: Option<&'a [u8]>,
    latency: &'a [u8],
}

impl Row for Biosnoop {
    fn read(&mut self, line: &[u8], out: &mut RowOutput<'_>) -> Result<(), SkipReason> {
        let fields = fields(line).ok_or(WRONG_FIELDS)?;
        let decimals = decimals(fields.latency);
        let (op, flags) = operation(&fields, decimals)?;
        let done_ns = time(fields.time, SECOND)?;
        let issue_ns = later(done_ns, -span(fields.latency)?.ok_or(OUT_OF_RANGE)?)?;
        let mut record = if op == Op::Flush {
            Record::new(op, issue_ns, 0, 0)
        } else {
            request(op, issue_ns, bytes(whole(fields.sector)?, SECTOR)?, whole(fields.bytes)?)?
        };
        record.complete = OptTime::at(done_ns);
        if let Some(waited) = fields.queue.map(span).transpose()?.flatten() {
            record.queue = OptTime::at(later(issue_ns, -waited)?);
        }
        record.flags = flags;
        let pid = i32::try_from(whole(fields.pid)?).map_err(|_| OUT_OF_RANGE)?;
        // The process was unknown when the request began.
        if fields.comm != b"?" {
            record.pid = pid;
            record.comm = out.symbols.intern(text(fields.comm)?);
        }
        record.device = out.symbols.intern(text(fields.disk)?);
        self.decimals = self.decimals.max(decimals);
        self.has_queue |= fields.queue.is_some();
        out.records.push(record);
        Ok(())
    }

    fn capabilities(&self) -> Capabilities {
        let letters = prints_letters(self.decimals);
        Capabilities {
            discard: letters,
            write_zeroes: letters,
            flush: letters,
            fua: letters,
            sync_meta: letters,
            completion: true,
            queue: self.has_queue,
            process: true,
            clock_ns: MILLISECOND / 10_u64.pow(self.decimals.clamp(1, 6)),
            ..Capabilities::READS_AND_WRITES
        }
    }

    fn disorder_ns(&self) -> u64 {
        DISORDER_NS
    }

    fn header(&mut self, line: &[u8], _is_first: bool) -> Result<bool, String> {
        Ok(line.starts_with(b"TIME(s)"))
    }
}

/// Whether latencies with this number of decimals come from the tool that prints the kernel's
/// letters.
fn prints_letters(decimals: u32) -> bool {
    decimals >= 3
}

fn operation(fields: &Fields<'_>, decimals: u32) -> Result<(Op, Flags), SkipReason> {
    if !prints_letters(decimals) {
        return match fields.letters {
            _ if fields.bytes == b"0" => Err(NO_BYTES),
            b"R" => Ok((Op::Read, Flags::NONE)),
            b"W" => Ok((Op::Write, Flags::NONE)),
            _ => Err(UNKNOWN_OP),
        };
    }
    let letters = Rwbs::parse(fields.letters).ok_or(UNKNOWN_OP)?;
    let op = letters.op(u64::from(fields.bytes != b"0")).ok_or(UNKNOWN_OP)?;
    Ok((op, if op == Op::Flush { Flags::NONE } else { letters.flags }))
}

/// A span in milliseconds; `None` for -1, which means that it is unknown.
fn span(field: &[u8]) -> Result<Option<i64>, SkipReason> {
    Ok(Some(time(field, MILLISECOND)?).filter(|span| *span >= 0))
}

fn decimals(field: &[u8]) -> u32 {
    let point = field.iter().position(|&byte| byte == b'.');
    point.map_or(0, |point| (field.len() - point - 1) as u32)
}

/// Splits a line, from its end, because the command may have any number of words.
fn fields(line: &[u8]) -> Option<Fields<'_>> {
    let line = line.trim_ascii();
    let time = white(line).next()?;
    let mut rest = line[time.len()..].trim_ascii();
    let mut words = [&line[..0]; WORDS_MAX];
    let mut left = WORDS_MAX;
    let mut back = || {
        left = left.checked_sub(1)?;
        let start = rest.iter().rposition(u8::is_ascii_whitespace)?;
        words[left] = &rest[start + 1..];
        rest = rest[..start].trim_ascii_end();
        Some(words[left])
    };
    let is_decimal = |word: &[u8]| word.contains(&b'.');
    let latency = back().filter(|word| is_decimal(word))?;
    let mut bytes = back()?;
    let mut queue = None;
    if is_decimal(bytes) {
        queue = Some(bytes);
        bytes = back()?;
    }
    if matches!(bytes, b"R" | b"S" | b"?") {
        bytes = back()?;
    }
    let (sector, letters) = (back()?, back()?);
    let (mut disk, mut pid) = (&line[..0], back()?);
    if whole(pid) == Err(NOT_A_NUMBER) {
        disk = pid;
        pid = back()?;
    }
    Some(Fields { time, comm: rest, pid, disk, letters, sector, bytes, queue, latency })
}

/// Whether a line is of this format.
pub(crate) fn is_line(line: &[u8]) -> bool {
    if line.starts_with(b"TIME(s)") {
        return white(line).any(|word| word == b"LAT(ms)") && white(line).any(|w| w == b"SECTOR");
    }
    fields(line).is_some_and(|fields| {
        decimals(fields.time) == 6
            && time(fields.time, 1).is_ok()
            && Rwbs::parse(fields.letters).is_some()
            && [fields.pid, fields.bytes].iter().all(|field| whole(field).is_ok())
            && time(fields.latency, 1).is_ok()
    })
}
