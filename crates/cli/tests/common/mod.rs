//! Runs the built binary, for the end-to-end tests.

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// What a run left behind.
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    /// Runs `prism args` with `input` on standard input.
    pub fn with_input(args: &[&str], input: &[u8]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_prism"))
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary is built");
        let mut stdin = child.stdin.take().expect("a pipe was asked for");
        let input = input.to_vec();
        let writer = std::thread::spawn(move || {
            // A run that fails early does not read everything.
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().expect("the run ends");
        writer.join().expect("the writer does not panic");
        Self::of(output)
    }

    /// What `output` says.
    pub fn of(output: Output) -> Self {
        Self {
            code: output.status.code().expect("no signal ended it"),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }
}

/// Runs `prism args` with nothing on standard input.
pub fn prism(args: &[&str]) -> Run {
    Run::with_input(args, b"")
}

/// The path of a shipped sample.
pub fn sample(name: &str) -> String {
    format!("{}/../../samples/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A folder that goes away with the test.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}
