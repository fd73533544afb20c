//! Runs a program to its end, and kills it if this process is interrupted.

use std::io::Read;
use std::process::{Command, Stdio};

use prism_host::interrupt::Undo;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::error::StackError;

/// Most bytes of a program's standard error that are kept.
const SAID_BYTES_MAX: u64 = 64 << 10;

/// Runs `command`, which is called `name` in messages.
///
/// # Errors
/// [`StackError::Program`] with the last line of its standard error, if it fails.
pub(super) fn run(mut command: Command, name: &str) -> Result<(), StackError> {
    let failed = |said: String| StackError::Program { program: name.into(), said };
    command.stderr(Stdio::piped());
    let mut spawned = None;
    let undo = Undo::of(|| {
        let child = command.spawn()?;
        let pid = Pid::from_child(&child);
        spawned = Some(child);
        Ok::<_, std::io::Error>(move || end(pid))
    });
    let undo = undo.map_err(|error| failed(format!("cannot be started: {error}")))?;
    let mut child = spawned.expect("it was spawned");
    let mut said = Vec::new();
    let errors = child.stderr.take().expect("standard error is a pipe");
    // Reading ends when the program does; an error of the read is ignored.
    let _ = errors.take(SAID_BYTES_MAX).read_to_end(&mut said);
    let pid = Pid::from_child(&child);
    // The process stays a zombie until `undo` is dropped: else another process could get its
    // number in between.
    let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
    drop(undo);
    let status = child.wait().map_err(|error| failed(error.to_string()))?;
    if status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&said);
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
    Err(failed(match last {
        Some(line) => line.trim_start_matches("prism: ").to_owned(),
        None => format!("it ended with {status}"),
    }))
}

/// Kills the process and waits for its end, so that it uses no file or device any more.
fn end(pid: Pid) {
    // Both calls fail if the process has ended already.
    let _ = kill_process(pid, Signal::KILL);
    let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Result<(), StackError> {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdout(Stdio::null());
        run(command, "sh")
    }

    #[test]
    fn the_last_line_of_errors_is_reported() {
        shell("echo fine >&2").unwrap();
        let check = |script: &str, said: &str| {
            let error = shell(script).unwrap_err().to_string();
            assert_eq!(error, format!("sh failed: {said}"));
        };
        check("echo one >&2; echo 'prism: two' >&2; echo >&2; exit 3", "two");
        check("exit 3", "it ended with exit status: 3");
        check("kill -9 $$", "it ended with signal: 9 (SIGKILL)");
        let error = run(Command::new("no-such-program"), "x").unwrap_err().to_string();
        assert!(error.contains("x failed: cannot be started"), "{error}");
    }
}
