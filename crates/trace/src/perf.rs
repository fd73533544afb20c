//! `perf script`.
//!
//! ```text
//!      dd 19404 [001]   766.164705:    block:block_rq_issue: 7,0 WS 4096 () 64 + 8 0x2,0,4 [dd]
//! ```
//! A command may contain spaces; the process number (or process and thread as `12/34`) is the
//! last word before the CPU. A count of periods may precede the event.

use crate::error::TraceError;
use crate::event::UNREADABLE;
use crate::ftrace::cpu;
use crate::intake::Intake;
use crate::scan::whole;
use crate::tracepoint::{self, Head};

/// Takes one line.
pub(crate) fn line(line: &[u8], number: u64, intake: &mut Intake) -> Result<(), TraceError> {
    match head(line) {
        Some(head) => tracepoint::take(&head, number, intake),
        None => {
            let text = line.trim_ascii();
            if !text.is_empty() && !text.starts_with(b"#") {
                intake.skip(UNREADABLE, number);
            }
            Ok(())
        }
    }
}

/// The parts of an event's line.
pub(crate) fn head(line: &[u8]) -> Option<Head<'_>> {
    let (before, mut scan) = cpu(line)?;
    let (task, word) = before.split_at(before.iter().rposition(|&byte| byte == b' ')? + 1);
    let pid = word.split(|&byte| byte == b'/').next()?;
    let pid = i32::try_from(whole(pid)?).ok()?;
    let (time_ns, step_ns) = scan.seconds()?;
    scan.eat(b':')?;
    let mut word = scan.word()?;
    if whole(word).is_some() {
        word = scan.word()?;
    }
    let name = word.strip_suffix(b":")?;
    let group = name.iter().position(|&byte| byte == b':')?;
    let body = scan.rest.trim_ascii_start();
    Some(Head { pid, task, time_ns, step_ns, name: &name[group + 1..], body })
}
