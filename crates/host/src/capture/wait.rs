//! How long a capture runs: for a time, until Ctrl-C, or while a command runs.

use std::ffi::OsString;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use prism_base::Nanos;
use rustix::process::{Pid, Signal, kill_process};

use super::marks::VARIABLE;
use super::{Capture, CaptureError};
use crate::interrupt::SoftStop;
use crate::progress::Progress;

/// How often the conditions are checked.
const LOOK: Duration = Duration::from_millis(10);

/// How long a command may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);

/// How long requests are still captured after the end of a command: they include its writes in
/// flight.
pub const AFTER: Duration = Duration::from_millis(50);

/// When a capture ends; Ctrl-C ends it in any case.
#[derive(Clone, Copy, Debug)]
pub enum Until<'a> {
    /// Only at Ctrl-C.
    Interrupt,
    /// After this time.
    Elapsed(Nanos),
    /// When this command has ended. It is started now and finds the capture through
    /// `PRISM_CAPTURE`.
    Command(&'a [OsString]),
}

/// Why a capture ended.
#[derive(Clone, Copy, Debug)]
pub enum Ended {
    /// The time was over.
    Elapsed,
    /// Ctrl-C, or SIGTERM.
    Interrupted,
    /// The command has ended.
    Command(ExitStatus),
    /// By itself; stopping it returns the reason.
    Itself,
}

/// Waits for the end of `capture`.
///
/// # Errors
/// [`CaptureError`] if the command cannot be started.
///
/// # Panics
/// If the command is empty.
pub fn wait(
    capture: &Capture,
    until: Until<'_>,
    progress: &Progress,
) -> Result<Ended, CaptureError> {
    let stop = SoftStop::begin();
    let start = Instant::now();
    let mut child = match until {
        Until::Command(words) => Some(spawn(capture, words)?),
        Until::Interrupt | Until::Elapsed(_) => None,
    };
    progress.start_count("capturing:", "requests", None);
    let ended = loop {
        progress.reached(capture.requests());
        if let Some(child) = &mut child
            && let Some(status) =
                child.try_wait().map_err(|source| command_failed(until, source))?
        {
            thread::sleep(AFTER);
            break Ended::Command(status);
        }
        if stop.came() {
            break Ended::Interrupted;
        }
        if capture.has_ended() {
            break Ended::Itself;
        }
        if let Until::Elapsed(time) = until
            && start.elapsed() >= Duration::from_nanos(time.0)
        {
            break Ended::Elapsed;
        }
        thread::sleep(LOOK);
    };
    progress.clear();
    if let (Some(child), false) = (&mut child, matches!(ended, Ended::Command(_))) {
        end(child);
    }
    Ok(ended)
}

fn spawn(capture: &Capture, words: &[OsString]) -> Result<Child, CaptureError> {
    let (program, arguments) = words.split_first().expect("a command has a name");
    let spawned =
        Command::new(program).args(arguments).env(VARIABLE, capture.mark_socket().path()).spawn();
    spawned.map_err(|source| {
        let command = program.to_string_lossy().into_owned();
        CaptureError::Command { command, source }
    })
}

fn command_failed(until: Until<'_>, source: std::io::Error) -> CaptureError {
    let command = match until {
        Until::Command([program, ..]) => program.to_string_lossy().into_owned(),
        _ => "the command".into(),
    };
    CaptureError::Command { command, source }
}

/// Sends SIGTERM to the command, and kills it if it does not end.
fn end(child: &mut Child) {
    let pid = Pid::from_child(child);
    // It may have ended just now.
    let _ = kill_process(pid, Signal::TERM);
    let asked = Instant::now();
    while asked.elapsed() < GRACE {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        thread::sleep(LOOK);
    }

    let _ = child.kill();
    let _ = child.wait();
}
