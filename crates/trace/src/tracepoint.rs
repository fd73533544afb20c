//! The fields of the kernel's block tracepoints, which ftrace, trace-cmd and perf print
//! alike.
//!
//! ```text
//! block_bio_queue, getrq, merges:  maj,min rwbs sector + n [comm]
//! block_rq_issue, insert, start:   maj,min rwbs bytes (cmd) sector + n ioprio [comm]
//! block_rq_complete, requeue:      maj,min rwbs (cmd) sector + n ioprio [error]
//! block_bio_complete:              maj,min rwbs sector + n [error]
//! block_bio_remap:                 maj,min rwbs sector + n <- (maj,min) sector
//! block_split:                     maj,min rwbs sector / sector [comm]
//! ```
//! Kernels before 6.7 print no `ioprio`; perf prints its class as a number.

use crate::error::TraceError;
use crate::event::{BAD_EVENT, Event, Intake, OTHER_EVENT, Target, What};
use crate::names::Who;
use crate::record::Op;
use crate::rwbs::Rwbs;
use crate::scan::Scan;

/// The start of a line, which each tool prints in its own way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head<'a> {
    pub pid: i32,
    pub time_ns: i64,
    /// Smallest step of the timestamp.
    pub step_ns: u64,
    /// Name of the event without its group.
    pub name: &'a [u8],
    /// The fields after the name.
    pub body: &'a [u8],
}

/// Takes one printed event.
#[inline]
pub(crate) fn take(head: &Head<'_>, line: u64, intake: &mut Intake) -> Result<(), TraceError> {
    let Some(name) = head.name.strip_prefix(b"block_") else {
        return other(head, line, intake);
    };
    let fields = match name {
        b"bio_queue" | b"rq_issue" | b"rq_complete" | b"rq_requeue" | b"io_start"
        | b"bio_complete" | b"bio_remap" | b"split" => fields(name, head, intake),
        b"getrq" | b"sleeprq" | b"plug" | b"unplug" | b"rq_insert" | b"bio_backmerge"
        | b"bio_frontmerge" | b"rq_merge" | b"bio_bounce" | b"io_done" | b"rq_error"
        | b"rq_remap" | b"dirty_buffer" | b"touch_buffer" => return Ok(()),
        _ => {
            intake.skip(OTHER_EVENT, line);
            return Ok(());
        }
    };
    match fields {
        Some(what) => intake.event(Event { time_ns: head.time_ns, line, what }, head.step_ns),
        None => {
            intake.skip(BAD_EVENT, line);
            Ok(())
        }
    }
}

/// Marks that a user wrote into the trace; everything else is of another subsystem.
fn other(head: &Head<'_>, line: u64, intake: &mut Intake) -> Result<(), TraceError> {
    let text = match head.name {
        b"tracing_mark_write" => head.body,
        // trace-cmd names the kind of entry, and the function only behind it.
        b"print" => head.body.strip_prefix(b"tracing_mark_write: ").unwrap_or(head.body),
        _ => {
            intake.skip(OTHER_EVENT, line);
            return Ok(());
        }
    };
    let Some(name) = text.trim_ascii().strip_prefix(b"phase ") else { return Ok(()) };
    let name = String::from_utf8_lossy(name.trim_ascii());
    let phase = intake.names.symbols.intern(&name);
    let event = Event { time_ns: head.time_ns, line, what: What::Phase(phase) };
    intake.event(event, head.step_ns)
}

#[inline]
fn fields(name: &[u8], head: &Head<'_>, intake: &mut Intake) -> Option<What> {
    let mut scan = Scan::new(head.body);
    let device = intake.names.device(scan.device()?);
    let rwbs = Rwbs::parse(scan.word()?)?;
    let is_issue = matches!(name, b"rq_issue" | b"io_start");
    if is_issue {
        scan.spaced_number()?;
    }
    if is_issue || matches!(name, b"rq_complete" | b"rq_requeue") {
        command(&mut scan)?;
    }
    let sector = scan.spaced_number()?;
    if name == b"split" {
        scan.word_is(b"/")?;
        let second = scan.spaced_number()?;
        let target = Target::new(device, rwbs, sector, second.checked_sub(sector)?)?;
        return Some(What::Split(target, second));
    }
    scan.word_is(b"+")?;
    let sectors = scan.spaced_number()?;
    let target = Target::new(device, rwbs, sector, sectors)?;
    if target.op == Some(Op::WriteZeroes) {
        intake.write_zeroes = true;
    }
    match name {
        b"bio_queue" => Some(What::Queue(target, named(&scan, head, intake))),
        b"io_start" => Some(What::Start(target, named(&scan, head, intake))),
        b"rq_issue" => {
            let comm = bracketed(scan.rest).unwrap_or_default();
            Some(What::Issue(target, intake.names.issuer(head.pid, comm)))
        }
        b"rq_complete" => Some(What::Complete(target)),
        b"bio_complete" => Some(What::BioComplete(target)),
        b"rq_requeue" => Some(What::Requeue(target)),
        _ => {
            scan.word_is(b"<-")?;
            scan.word_is(b"(")?;
            let from = intake.names.device(scan.device()?);
            scan.eat(b')')?;
            Some(What::Remap(target, from, scan.spaced_number()?))
        }
    }
}

/// Takes the bytes of a passed-through command, `()` for all others.
#[inline]
fn command(scan: &mut Scan<'_>) -> Option<()> {
    scan.spaces();
    scan.eat(b'(')?;
    let end = scan.rest.iter().position(|&byte| byte == b')')?;
    scan.rest = &scan.rest[end + 1..];
    Some(())
}

#[inline]
fn named(scan: &Scan<'_>, head: &Head<'_>, intake: &mut Intake) -> Who {
    intake.names.who(head.pid, bracketed(scan.rest).unwrap_or_default())
}

/// What stands between the first `[` and the last `]`; a command may contain either.
#[inline]
fn bracketed(text: &[u8]) -> Option<&[u8]> {
    let start = text.iter().position(|&byte| byte == b'[')? + 1;
    let end = text.iter().rposition(|&byte| byte == b']')?;
    text.get(start..end)
}
