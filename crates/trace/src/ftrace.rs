//! ftrace text (`trace`, `trace_pipe`) and `trace-cmd report`.
//!
//! ```text
//!  jbd2/loop0-8-10900   [000] .....   745.098260: block_bio_queue: 7,0 FWFSM 8 + 8 [jbd2/loop0-8]
//! ```
//! The process number is after the last dash before the CPU, because commands may contain
//! dashes; a thread group in parentheses may follow it. The column of flags has four or five
//! characters, or is missing. trace-cmd pads the event's name.

use crate::error::TraceError;
use crate::event::{LOST, UNREADABLE};
use crate::intake::Intake;
use crate::scan::{Scan, whole};
use crate::tracepoint::{self, Head};

/// Takes one line.
#[inline]
pub(crate) fn line(line: &[u8], number: u64, intake: &mut Intake) -> Result<(), TraceError> {
    match head(line) {
        Some(head) => tracepoint::take(&head, number, intake),
        None => {
            no_event(line, number, intake);
            Ok(())
        }
    }
}

/// The parts of an event's line.
#[inline]
pub(crate) fn head(line: &[u8]) -> Option<Head<'_>> {
    let Context { pid, task, time_ns, step_ns, rest } = context(line)?;
    let end = memchr::memchr(b':', rest)?;
    let (name, body) = (&rest[..end], &rest[end + 1..]);
    Some(Head { pid, task, time_ns, step_ns, name, body: body.trim_ascii_start() })
}

/// The columns before an event in its line, and the rest of the line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    pub pid: i32,
    /// Command of the process, with the spaces around it.
    pub task: &'a [u8],
    pub time_ns: i64,
    /// Smallest step of the timestamp.
    pub step_ns: u64,
    pub rest: &'a [u8],
}

/// Splits off the task, CPU, flags and time.
#[inline]
pub(crate) fn context(line: &[u8]) -> Option<Context<'_>> {
    let (before, mut scan) = cpu(line)?;
    let before = match before.strip_suffix(b")") {
        Some(group) => &group[..group.iter().rposition(|&byte| byte == b'(')?],
        None => before,
    };
    let before = before.trim_ascii_end();
    let dash = before.iter().rposition(|&byte| byte == b'-')?;
    let pid = i32::try_from(whole(&before[dash + 1..])?).ok()?;
    scan.spaces();
    if !scan.rest.first()?.is_ascii_digit() {
        scan.word()?;
    }
    let (time_ns, step_ns) = scan.seconds()?;
    scan.eat(b':')?;
    scan.spaces();
    Some(Context { pid, task: &before[..dash], time_ns, step_ns, rest: scan.rest })
}

/// Finds the CPU, ` [001] `; returns the text before it and after it.
#[inline]
pub(crate) fn cpu(line: &[u8]) -> Option<(&[u8], Scan<'_>)> {
    for start in memchr::memchr_iter(b'[', line) {
        let mut scan = Scan::new(&line[start + 1..]);
        let spaced = start > 0 && line[start - 1] == b' ';
        if spaced && scan.number().is_some() && scan.eat(b']').is_some() {
            return Some((line[..start].trim_ascii_end(), scan));
        }
    }
    None
}

/// Headers are expected; lost events are counted separately.
pub(crate) fn no_event(line: &[u8], number: u64, intake: &mut Intake) {
    let text = line.trim_ascii();
    let is_header = text.is_empty()
        || text.starts_with(b"#")
        || text.starts_with(b"cpus=")
        || text.starts_with(b"version = ");
    if is_header {
        return;
    }
    match lost(text) {
        Some(count) => intake.skips.add_many(LOST, count, number),
        None => intake.skip(UNREADABLE, number),
    }
}

/// `CPU:0 [LOST 123 EVENTS]`, or `[123 EVENTS DROPPED]` by trace-cmd; the number is missing if
/// the kernel does not know it.
fn lost(text: &[u8]) -> Option<u64> {
    let mut scan = Scan::new(text);
    scan.word_is(b"CPU:")?;
    scan.number()?;
    scan.word_is(b"[")?;
    let inside = &scan.rest[..scan.rest.iter().position(|&byte| byte == b']')?];
    let words = || inside.split(|&byte| byte == b' ');
    let says_lost = words().any(|word| word == b"LOST" || word == b"DROPPED");
    says_lost.then(|| words().find_map(whole).unwrap_or(1).max(1))
}
