//! A server of `prism cache serve` for one test, which ends with it, also after a failure.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStderr, Command, Stdio};

const PRISM: &str = env!("CARGO_BIN_EXE_prism");

/// A server on a free port.
pub struct Server {
    pub child: Child,
    /// Where it listens.
    pub address: String,
    errors: Lines<BufReader<ChildStderr>>,
}

impl Server {
    /// Runs `prism cache serve OPTIONS`, and waits until it listens.
    pub fn start(options: &[&str]) -> Self {
        Self::begin(&mut Command::new(PRISM), options)
    }

    /// The same in a shell that first does what `script` says.
    pub fn after_script(script: &str, options: &[&str]) -> Self {
        let script = format!("{script} && exec \"$@\"");
        Self::begin(Command::new("sh").args(["-c", &script, "sh", PRISM]), options)
    }

    fn begin(command: &mut Command, options: &[&str]) -> Self {
        let command = command.args(["cache", "serve", "-p", "0"]).args(options);
        let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary is built");
        let errors = BufReader::new(child.stderr.take().expect("it is a pipe")).lines();
        let mut server = Self { child, address: String::new(), errors };
        let first = server.next_line().expect("it says where it listens");
        server.address = first.strip_prefix("prism: listening on ").expect(&first).to_owned();
        server
    }

    /// The next line that it writes to standard error; `None` at the end.
    pub fn next_line(&mut self) -> Option<String> {
        self.errors.next().map(|line| line.expect("text"))
    }

    /// The rest of the next line that begins so.
    pub fn after(&mut self, begin: &str) -> String {
        let found = std::iter::from_fn(|| self.next_line())
            .find_map(|line| line.strip_prefix(begin).map(str::to_owned));
        found.unwrap_or_else(|| panic!("no line with {begin:?}"))
    }

    /// What it writes to standard error when it begins to serve, but for its address.
    pub fn said(&mut self) -> String {
        let mut said = String::new();
        while !said.ends_with(" items\n") {
            said += &self.next_line().unwrap_or_else(|| panic!("it has ended: {said}"));
            said += "\n";
        }
        said
    }

    /// As `kill -9` does.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
