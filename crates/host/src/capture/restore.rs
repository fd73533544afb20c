//! Restores the kernel's tracing settings, however the process ends.
//!
//! Before anything is changed, a small shell is started with the commands that undo it. The
//! shell reads from a pipe whose other end is open here. The pipe closes when the process ends,
//! even if it is killed, and then the shell runs the commands. So there is only one way to
//! undo, and it is always used.

use std::io;
use std::process::{Child, ChildStdin, Command, Stdio};

use super::CaptureError;

/// Waits for the end of the process and then undoes its changes.
#[derive(Debug)]
pub(super) struct Restorer {
    shell: Child,
    /// The shell waits until this is closed.
    pipe: Option<ChildStdin>,
}

impl Restorer {
    /// Starts a shell that waits and then runs `steps`, each a shell command. Failures of steps
    /// are ignored.
    pub fn new(steps: &[String]) -> Result<Self, CaptureError> {
        // Ctrl-C is sent to every process of the terminal, and this shell has to outlive the
        // process.
        let script = format!("trap '' INT TERM HUP; cat; {}", steps.join("; "));
        let spawned = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let failed = |source: io::Error| CaptureError::Kernel { file: "sh".into(), source };
        let mut shell = spawned.map_err(failed)?;
        let pipe = shell.stdin.take();
        Ok(Self { shell, pipe })
    }
}

impl Drop for Restorer {
    /// Lets the shell run its commands now, and waits for it.
    fn drop(&mut self) {
        self.pipe = None;
        // The shell has finished or was killed; in both cases nothing is left to do.
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_undone_is_undone_at_the_end_and_not_before() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("made");
        std::fs::write(&file, "").expect("a file");
        let steps = ["false".to_owned(), format!("rm {}", file.display())];
        let restorer = Restorer::new(&steps).expect("a shell");
        assert!(file.exists());
        drop(restorer);
        assert!(!file.exists());
    }
}
