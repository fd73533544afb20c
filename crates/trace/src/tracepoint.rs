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

/// The events whose fields matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Queue,
    Start,
    Issue,
    Complete,
    BioComplete,
    Requeue,
    Remap,
    Split,
}

/// Takes one printed event.
#[inline]
pub(crate) fn take(head: &Head<'_>, line: u64, intake: &mut Intake) -> Result<(), TraceError> {
    let Some(name) = head.name.strip_prefix(b"block_") else {
        return other(head, line, intake);
    };
    let kind = match name {
        b"bio_queue" => Kind::Queue,
        b"rq_issue" => Kind::Issue,
        b"rq_complete" => Kind::Complete,
        b"rq_requeue" => Kind::Requeue,
        b"io_start" => Kind::Start,
        b"bio_complete" => Kind::BioComplete,
        b"bio_remap" => Kind::Remap,
        b"split" => Kind::Split,
        b"getrq" | b"sleeprq" | b"plug" | b"unplug" | b"rq_insert" | b"bio_backmerge"
        | b"bio_frontmerge" | b"rq_merge" | b"bio_bounce" | b"io_done" | b"rq_error"
        | b"rq_remap" | b"dirty_buffer" | b"touch_buffer" => return Ok(()),
        _ => {
            intake.skip(OTHER_EVENT, line);
            return Ok(());
        }
    };
    let fields = fields(kind, head, intake);
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
fn fields(kind: Kind, head: &Head<'_>, intake: &mut Intake) -> Option<What> {
    let mut scan = Scan::new(head.body);
    let device = intake.names.device(scan.device()?);
    let rwbs = Rwbs::parse(scan.word()?)?;
    match kind {
        Kind::Issue | Kind::Start => {
            scan.spaced_number()?;
            command(&mut scan)?;
        }
        Kind::Complete | Kind::Requeue => command(&mut scan)?,
        Kind::Queue | Kind::BioComplete | Kind::Remap | Kind::Split => {}
    }
    let sector = scan.spaced_number()?;
    scan.spaces();
    if kind == Kind::Split {
        scan.eat(b'/')?;
        let second = scan.spaced_number()?;
        let target = Target::new(device, rwbs, sector, second.checked_sub(sector)?)?;
        return Some(What::Split(target, second));
    }
    scan.eat(b'+')?;
    let sectors = scan.spaced_number()?;
    let target = Target::new(device, rwbs, sector, sectors)?;
    Some(match kind {
        Kind::Queue => What::Queue(target, named(&scan, head, intake)),
        Kind::Start => What::Start(target, named(&scan, head, intake)),
        Kind::Issue => {
            let comm = bracketed(scan.rest).unwrap_or_default();
            What::Issue(target, intake.names.issuer(head.pid, comm))
        }
        Kind::Complete => What::Complete(target),
        Kind::BioComplete => What::BioComplete(target),
        Kind::Requeue => What::Requeue(target),
        Kind::Remap | Kind::Split => {
            scan.word_is(b"<-")?;
            scan.word_is(b"(")?;
            let from = intake.names.device(scan.device()?);
            scan.eat(b')')?;
            What::Remap(target, from, scan.spaced_number()?)
        }
    })
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
    let end = match text {
        [.., b']'] => text.len() - 1,
        _ => text.iter().rposition(|&byte| byte == b']')?,
    };
    text.get(start..end)
}
