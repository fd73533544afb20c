//! Commands that go on in the background.
//!
//! Threads of this process already wait for signals, so it does not fork: it starts itself again,
//! before it opens anything.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use crate::failure::Failure;

/// The flag of the child in the background.
pub const CHILD: &str = "--in-background";
/// What the child writes to its standard output when it is ready.
const READY: &str = "ready\n";

/// Starts this program again in the background, and waits until it is ready, or has failed and said
/// why: then this process ends with its exit code.
///
/// # Errors
/// [`Failure::Usage`] if it cannot be started.
pub fn start() -> Result<(), Failure> {
    let failed = |error| Failure::Usage(format!("cannot run this program again: {error}"));
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.args(std::env::args_os().skip(1)).arg(CHILD);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let mut line = String::new();
    if let Some(output) = child.stdout.take() {
        // A child that cannot be read has ended, which the next lines find.
        let _ = BufReader::new(output).read_line(&mut line);
    }
    if line == READY {
        return Ok(());
    }
    if let Some(mut errors) = child.stderr.take() {
        let _ = std::io::copy(&mut errors, &mut std::io::stderr());
    }
    let code = child.wait().ok().and_then(|status| status.code());
    std::process::exit(code.unwrap_or(2));
}

/// The child begins: it belongs to no terminal.
pub fn begin() {
    // It fails only if the process leads a session already.
    let _ = rustix::process::setsid();
}

/// The child is ready. From now on there is no one to read what it prints.
pub fn ready() {
    let mut out = std::io::stdout();
    let _ = out.write_all(READY.as_bytes()).and_then(|()| out.flush());
}
