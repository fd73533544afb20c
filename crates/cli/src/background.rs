//! Commands that go on in the background.
//!
//! Threads of this process already wait for signals, so it does not fork: it starts itself again,
//! before it opens anything.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use crate::failure::Failure;

/// The flag of the child in the background.
const CHILD: &str = "--in-background";
/// What the child writes to its standard output when it is ready.
const READY: &str = "ready\n";

/// What becomes of standard error when the child is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errors {
    /// Nothing is printed any more.
    Dropped,
    /// It stays what it was.
    Kept,
}

/// This program with its arguments.
///
/// # Errors
/// [`Failure::Usage`] if the system does not know which program this is.
pub fn again() -> Result<Command, Failure> {
    let program = std::env::current_exe();
    let program = program.map_err(|error| Failure::Usage(format!("this program: {error}")))?;
    let mut command = Command::new(program);
    command.args(std::env::args_os().skip(1));
    Ok(command)
}

/// Starts [`again`] in the background, and waits until the child is ready, or has failed and said
/// why: then this process ends with its exit code.
///
/// # Errors
/// [`Failure::Usage`] if it cannot be started.
pub fn start(mut command: Command) -> Result<(), Failure> {
    command.arg(CHILD).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| {
        let program = command.get_program().display();
        Failure::Usage(format!("cannot run {program}: {error}"))
    })?;
    let mut line = String::new();
    if let Some(output) = child.stdout.take() {
        // A child that cannot be read has ended, which the next lines find.
        let _ = BufReader::new(output).read_line(&mut line);
    }
    if line == READY {
        return Ok(());
    }
    let code = child.wait().ok().and_then(|status| status.code());
    std::process::exit(code.unwrap_or(2));
}

/// The child begins: it belongs to no terminal.
pub fn begin() {
    // It fails only if the process leads a session already.
    let _ = rustix::process::setsid();
}

/// The child is ready: it reports that to its parent and gives up the terminal, or the pipe, that
/// it has as its output, since its reader may wait for the end of it.
///
/// # Errors
/// [`Failure::Usage`] if that fails.
pub fn ready(errors: Errors) -> Result<(), Failure> {
    let failed =
        |error: std::io::Error| Failure::Usage(format!("cannot go to the background: {error}"));
    let null = File::options().read(true).write(true).open("/dev/null").map_err(failed)?;
    let mut out = std::io::stdout();
    out.write_all(READY.as_bytes()).and_then(|()| out.flush()).map_err(failed)?;
    rustix::stdio::dup2_stdout(&null).map_err(|error| failed(error.into()))?;
    if errors == Errors::Dropped {
        rustix::stdio::dup2_stderr(&null).map_err(|error| failed(error.into()))?;
    }
    Ok(())
}
