//! The fields of the kernel's block tracepoints, which ftrace, trace-cmd and perf print in the
//! same way.
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
use crate::event::{BAD_EVENT, Event, EventKind, OTHER_EVENT, Target};
use crate::intake::Intake;
use crate::names::Names;
use crate::nvme;
use crate::rwbs::Rwbs;
use crate::scan::Scan;
use crate::skips::SkipReason;

/// The start of a line, which each tool prints differently.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head<'a> {
    pub pid: i32,
    /// Command of the process, with the spaces around it.
    pub task: &'a [u8],
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
pub(crate) enum Kind {
    Queue,
    Start,
    Issue,
    Complete,
    BioComplete,
    Requeue,
    Remap,
    Split,
}

/// The meaning of the name of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// A block event that matters.
    Block(Kind),
    /// An event without information that other events do not have.
    Passed,
    /// A command that the NVMe driver sends.
    Command,
    /// Its completion.
    CommandDone,
    /// A mark that a user wrote into the trace.
    Mark,
    /// An event of another subsystem.
    Other,
}

/// The fields of an event, from text or binary.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts<'a> {
    pub pid: i32,
    pub comm: &'a [u8],
    pub device: (u32, u32),
    pub rwbs: &'a [u8],
    pub sector: u64,
    /// Sectors; of a split the sector where the second part begins.
    pub extent: u64,
    /// Where a remapped bio was before.
    pub from: ((u32, u32), u64),
}

impl Name {
    /// The meaning of `name`, which has no group.
    #[inline]
    pub fn of(name: &[u8]) -> Self {
        let Some(block) = name.strip_prefix(b"block_") else {
            return match name {
                b"tracing_mark_write" | b"print" => Self::Mark,
                b"nvme_setup_cmd" => Self::Command,
                b"nvme_complete_rq" => Self::CommandDone,
                b"nvme_sq" => Self::Passed,
                _ => Self::Other,
            };
        };
        Self::Block(match block {
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
            | b"rq_remap" | b"dirty_buffer" | b"touch_buffer" => return Self::Passed,
            _ => return Self::Other,
        })
    }
}

/// Takes one printed event.
#[inline]
pub(crate) fn take(head: &Head<'_>, line: u64, intake: &mut Intake) -> Result<(), TraceError> {
    match understand(head, &mut intake.names) {
        Ok(Some(what)) => {
            intake.event(Event { time_ns: head.time_ns, line, kind: what }, head.step_ns)
        }
        Ok(None) => Ok(()),
        Err(reason) => {
            intake.skip(reason, line);
            Ok(())
        }
    }
}

/// What a printed event means; `None` for a known event that is not about requests.
#[inline]
pub(crate) fn understand(
    head: &Head<'_>,
    names: &mut Names,
) -> Result<Option<EventKind>, SkipReason> {
    match Name::of(head.name) {
        Name::Block(kind) => {
            let facts = facts(kind, head).ok_or(BAD_EVENT)?;
            what(kind, &facts, names).map(Some).ok_or(BAD_EVENT)
        }
        Name::Command => {
            nvme::command(head.pid, head.task, head.body, names).map(Some).ok_or(BAD_EVENT)
        }
        Name::CommandDone => nvme::completion(head.body, names).map(Some).ok_or(BAD_EVENT),
        Name::Passed => Ok(None),
        // trace-cmd prints the kind of the entry, and the function after it.
        Name::Mark => {
            Ok(mark(head.body.strip_prefix(b"tracing_mark_write: ").unwrap_or(head.body), names))
        }
        Name::Other => Err(OTHER_EVENT),
    }
}

/// The phase that a mark begins, if it begins one.
pub(crate) fn mark(text: &[u8], names: &mut Names) -> Option<EventKind> {
    let name = text.trim_ascii().strip_prefix(b"phase ")?;
    let name = String::from_utf8_lossy(name.trim_ascii());
    Some(EventKind::Phase(names.symbols.intern(&name)))
}

/// What the fields of an event mean; `None` if they are invalid.
#[inline]
pub(crate) fn what(kind: Kind, facts: &Facts<'_>, names: &mut Names) -> Option<EventKind> {
    let device = names.device(facts.device);
    let rwbs = Rwbs::parse(facts.rwbs)?;
    let sectors = match kind {
        Kind::Split => facts.extent.checked_sub(facts.sector)?,
        _ => facts.extent,
    };
    let target = Target::new(device, rwbs, facts.sector, sectors)?;
    Some(match kind {
        Kind::Queue => EventKind::Queue(target, names.process(facts.pid, facts.comm)),
        Kind::Start => EventKind::Start(target, names.process(facts.pid, facts.comm)),
        Kind::Issue => EventKind::Issue(target, names.issuer(facts.pid, facts.comm)),
        Kind::Complete => EventKind::Complete(target),
        Kind::BioComplete => EventKind::BioComplete(target),
        Kind::Requeue => EventKind::Requeue(target),
        Kind::Remap => EventKind::Remap(target, names.device(facts.from.0), facts.from.1),
        Kind::Split => EventKind::Split(target, facts.extent),
    })
}

#[inline]
fn facts<'a>(kind: Kind, head: &Head<'a>) -> Option<Facts<'a>> {
    let mut scan = Scan::new(head.body);
    let mut facts =
        Facts { pid: head.pid, device: scan.device()?, rwbs: scan.word()?, ..Facts::default() };
    match kind {
        Kind::Issue | Kind::Start => {
            scan.spaced_number()?;
            command(&mut scan)?;
        }
        Kind::Complete | Kind::Requeue => command(&mut scan)?,
        Kind::Queue | Kind::BioComplete | Kind::Remap | Kind::Split => {}
    }
    facts.sector = scan.spaced_number()?;
    scan.spaces();
    scan.eat(if kind == Kind::Split { b'/' } else { b'+' })?;
    facts.extent = scan.spaced_number()?;
    match kind {
        Kind::Queue | Kind::Start | Kind::Issue => {
            facts.comm = bracketed(scan.rest).unwrap_or_default();
        }
        Kind::Remap => {
            scan.word_is(b"<-")?;
            scan.word_is(b"(")?;
            let from = scan.device()?;
            scan.eat(b')')?;
            facts.from = (from, scan.spaced_number()?);
        }
        Kind::Complete | Kind::BioComplete | Kind::Requeue | Kind::Split => {}
    }
    Some(facts)
}

/// Consumes the bytes of a passthrough command, or `()`.
#[inline]
fn command(scan: &mut Scan<'_>) -> Option<()> {
    scan.spaces();
    scan.eat(b'(')?;
    let end = scan.rest.iter().position(|&byte| byte == b')')?;
    scan.rest = &scan.rest[end + 1..];
    Some(())
}

/// The text between the first `[` and the last `]`; a command may contain both characters.
#[inline]
fn bracketed(text: &[u8]) -> Option<&[u8]> {
    let start = text.iter().position(|&byte| byte == b'[')? + 1;
    let end = match text {
        [.., b']'] => text.len() - 1,
        _ => text.iter().rposition(|&byte| byte == b']')?,
    };
    text.get(start..end)
}
