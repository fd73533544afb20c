//! Events for the simulator of WiscSee: a line for the issue of a request (`D`) and another for
//! its completion (`C`).
//!
//! ```text
//! 1446 D write 136314880 4096 0.437444011 2.8108e-05 True
//! ```
//! The columns are: process, event, operation, offset and size in bytes, time in seconds, a
//! wait or a latency (which also follows from the times of the two lines), and whether the
//! request is synchronous. Discards are among the operations, flushes are not.
//!
//! Source: He et al., "The Unwritten Contract of Solid State Drives", EuroSys'17, its
//! simulator WiscSee, `blkparse-events-for-ftlsim.txt`.

use crate::capabilities::Capabilities;
use crate::error::TraceError;
use crate::event::{BAD_EVENT, Event, EventKind, SECTOR, Target, UNREADABLE};
use crate::fields::{SECOND, split_white, time, whole};
use crate::intake::Intake;
use crate::record::{Flags, Op};
use crate::skips::SkipReason;
use crate::symbols::Symbol;

/// Takes one line.
pub(crate) fn line(line: &[u8], number: u64, intake: &mut Intake) -> Result<(), TraceError> {
    if line.trim_ascii().is_empty() {
        return Ok(());
    }
    match event(line, number, intake) {
        Ok(event) => intake.event(event, 1),
        Err(reason) => {
            intake.skip(reason, number);
            Ok(())
        }
    }
}

fn event(text: &[u8], line: u64, intake: &mut Intake) -> Result<Event, SkipReason> {
    let [pid, event, op, offset, size, at, _, sync] = split_white(text).map_err(|_| UNREADABLE)?;
    let op = operation(op).ok_or(BAD_EVENT)?;
    let (offset, size) = (whole(offset)?, whole(size)?);
    let flags = match sync {
        b"True" => Flags::SYNC,
        b"False" => Flags::NONE,
        _ => return Err(BAD_EVENT),
    };
    if size == 0 || offset % SECTOR != 0 || size % SECTOR != 0 {
        return Err(BAD_EVENT);
    }
    let (sector, sectors) = (offset / SECTOR, size / SECTOR);
    let target = Target { sector, sectors, device: Symbol::NONE, flags, op: Some(op) };
    let what = match event {
        b"D" => {
            let pid = i32::try_from(whole(pid)?).map_err(|_| BAD_EVENT)?;
            EventKind::Issue(target, intake.names.process(pid, b""))
        }
        b"C" => EventKind::Complete(target),
        _ => return Err(BAD_EVENT),
    };
    Ok(Event { time_ns: time(at, SECOND)?, line, kind: what })
}

fn operation(word: &[u8]) -> Option<Op> {
    match word {
        b"read" => Some(Op::Read),
        b"write" => Some(Op::Write),
        b"discard" => Some(Op::Discard),
        _ => None,
    }
}

/// Clears the capabilities that the lines cannot have.
pub(crate) fn limit(capabilities: &mut Capabilities) {
    capabilities.write_zeroes = false;
    capabilities.flush = false;
    capabilities.fua = false;
    // The lines have the sync flag, but not the metadata flag.
    capabilities.sync_meta = false;
}

/// Whether a line is of this format.
pub(crate) fn is_line(line: &[u8]) -> bool {
    split_white(line).is_ok_and(|[pid, event, op, offset, size, at, wait, sync]: [&[u8]; 8]| {
        matches!(event, b"D" | b"C")
            && operation(op).is_some()
            && matches!(sync, b"True" | b"False")
            && [pid, offset, size].iter().all(|field| whole(field).is_ok())
            && [at, wait].iter().all(|field| time(field, SECOND).is_ok())
    })
}
