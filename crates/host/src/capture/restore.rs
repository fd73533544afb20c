//! Leaves the kernel's tracing as it was found, however the process ends.
//!
//! What is to be undone is known before it is done, and a small shell waits for it: it
//! reads from a pipe whose other end is held here, and the pipe ends with the process, even
//! if that is killed without notice. So there is one way to undo, and it is the one that
//! is always taken.

use std::io;
use std::process::{Child, ChildStdin, Command, Stdio};

use super::CaptureError;

/// Waits for the end of the process and then undoes what it did.
#[derive(Debug)]
pub(super) struct Restorer {
    shell: Child,
    /// The end of this is what the shell waits for.
    pipe: Option<ChildStdin>,
}

impl Restorer {
    /// Starts to wait with `steps` to take, each a command of the shell; those that fail
    /// are passed over.
    pub fn new(steps: &[String]) -> Result<Self, CaptureError> {
        // Ctrl-C goes to every process of the terminal, and this one has to outlive ours.
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
    /// Has it undone now, and waits for that.
    fn drop(&mut self) {
        self.pipe = None;
        // It has done its work or was killed; in both cases nothing is left to do.
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
