//! Runs the built binary, for the end-to-end tests.

pub mod loop_disk;
pub mod server;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;

/// The result of a run.
pub struct Run {
    /// What was run, for messages of tests.
    what: String,
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
        let mut stdin = child.stdin.take().expect("standard input is a pipe");
        let input = input.to_vec();
        let writer = std::thread::spawn(move || {
            // A run that fails early does not read everything.
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().expect("the run ends");
        writer.join().expect("the writer does not panic");
        Self::of(&format!("prism {args:?}"), output)
    }

    /// Runs `prism args` in the folder `at`.
    pub fn inside(at: &Path, args: &[&str]) -> Self {
        let command = Command::new(env!("CARGO_BIN_EXE_prism"))
            .args(args)
            .current_dir(at)
            .stdin(Stdio::null())
            .output();
        Self::of(&format!("prism {args:?}"), command.expect("the binary is built"))
    }

    /// The result of `what` in `output`.
    pub fn of(what: &str, output: Output) -> Self {
        Self {
            what: what.into(),
            code: output.status.code().expect("no signal ended it"),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }

    /// Its standard output; it must have succeeded.
    #[track_caller]
    pub fn good(self) -> String {
        assert_eq!(self.code, 0, "{}: {}{}", self.what, self.stdout, self.stderr);
        self.stdout
    }

    /// Its standard output; it must have succeeded without messages.
    #[track_caller]
    pub fn quiet(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{}", self.what);
        self.stdout
    }

    /// The JSON on its standard output; it must have succeeded without messages.
    #[track_caller]
    pub fn json(self) -> Value {
        serde_json::from_str(&self.quiet()).expect("JSON")
    }

    /// Its message, which must have all `parts`; it must have been refused without a result.
    #[track_caller]
    pub fn refused(self, parts: &[&str]) -> String {
        assert_eq!((self.code, self.stdout.as_str()), (2, ""), "{}: {}", self.what, self.stderr);
        for part in parts {
            assert!(
                self.stderr.contains(part),
                "{}: {part:?} is not in {}",
                self.what,
                self.stderr
            );
        }
        self.stderr
    }

    /// As [`Run::refused`], with one line that begins with the name of the file and has `message`.
    #[track_caller]
    pub fn refused_file(self, name: &str, message: &str) {
        let said = self.refused(&[message]);
        assert!(said.starts_with(&format!("prism: {name}: ")), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

/// Runs `prism args` with empty standard input.
pub fn prism(args: &[&str]) -> Run {
    Run::with_input(args, b"")
}

/// [`Run::good`] of `prism args`.
#[track_caller]
pub fn good(args: &[&str]) -> String {
    prism(args).good()
}

/// [`Run::quiet`] of `prism args`.
#[track_caller]
pub fn quiet(args: &[&str]) -> String {
    prism(args).quiet()
}

/// [`Run::json`] of `prism args`.
#[track_caller]
pub fn json(args: &[&str]) -> Value {
    prism(args).json()
}

/// [`Run::refused`] of `prism args`.
#[track_caller]
pub fn refused(args: &[&str], parts: &[&str]) -> String {
    prism(args).refused(parts)
}

/// As [`refused`], with a message of one line.
#[track_caller]
pub fn refused_in_a_line(args: &[&str], parts: &[&str]) {
    let message = refused(args, parts);
    assert_eq!(message.lines().count(), 1, "{message}");
}

/// The path of a shipped sample.
pub fn sample(name: &str) -> String {
    format!("{}/../../samples/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A temporary folder, removed at the end of the test.
pub fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// The path of `name` in a temporary folder, as an argument.
pub fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().expect("a path of letters").to_owned()
}

/// The names in a folder, in order.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<_> = entries.map(|entry| name(entry).into_string().unwrap()).collect();
    names.sort();
    names
}

/// The arguments in a line without quotation marks.
pub fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// The words of `text` with single spaces: sentences are wrapped.
pub fn flat(text: &str) -> String {
    words(text).join(" ")
}

/// `bytes` as a gzip file.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(bytes).expect("memory");
    packer.finish().expect("memory")
}

/// Sends the signal called `name` to a process.
pub fn signal(process: u32, name: &str) {
    let sent = Command::new("kill").args(["-s", name, &process.to_string()]).status();
    assert!(sent.expect("kill is there").success(), "{name} to {process}");
}

/// The trace of the README's first command.
pub const FIRST: &str = "samples/ext4-sqlite-wal.ftrace.zst";

/// Text and JSON of the README's first command, which simulates all what-ifs. It takes long, so all
/// tests share one run.
pub fn whole_report() -> &'static (String, Value) {
    static WHOLE: OnceLock<(String, Value)> = OnceLock::new();
    WHOLE.get_or_init(|| {
        let folder = folder();
        let json = folder.path().join("whole.json");
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let run = Run::inside(&root, &["report", FIRST, "--json", json.to_str().expect("text")]);
        let text = run.quiet();
        let json = std::fs::read_to_string(json).expect("the report was written");
        (text, serde_json::from_str(&json).expect("JSON"))
    })
}

/// The JSON of `prism report ARGS` without what-ifs, which must succeed without messages.
pub fn report(args: &[&str]) -> Value {
    json(&[&["report"], args, &["--json", "-", "--what-if", "none"]].concat())
}

/// Checks properties of every report: conservation of requests, sums, ordered percentiles.
pub fn assert_lawful(report: &Value) {
    let (trace, result) = (&report["trace"], &report["result"]);
    let passes = result["passes"].as_u64().unwrap();
    let times = |key: &str| trace[key].as_u64().unwrap() * passes;
    // Discards of addresses that are not on the drive are not replayed.
    let left_out = report["replay"]["left_out_discards"].as_u64().unwrap() * passes;
    let requests = times("requests") - left_out;
    assert_eq!(result["requests_completed"], requests);
    assert_eq!(result["flushes_completed"], times("flushes"));
    assert_eq!(result["host_bytes_read"], times("bytes_read"));
    assert_eq!(result["host_bytes_written"], times("bytes_written"));
    for (op, plural) in [("read", "reads"), ("write", "writes"), ("discard", "discards")] {
        let left_out = if op == "discard" { left_out } else { 0 };
        assert_eq!(result["latency_ns"][op]["count"], times(plural) - left_out, "{op}");
    }
    for (name, counts) in result["flash"].as_object().unwrap() {
        // Some counts have no causes.
        let Some(causes) = counts.as_object() else { continue };
        let causes = causes.iter().filter(|(cause, _)| *cause != "total");
        let sum: u64 = causes.map(|(_, count)| count.as_u64().unwrap()).sum();
        assert_eq!(counts["total"], sum, "flash.{name}");
    }
    let programmed = result["flash_bytes_programmed"].as_u64().unwrap();
    let unit = report["device"]["mapping_unit_bytes"].as_u64().unwrap();
    assert_eq!(programmed, result["flash"]["units"]["total"].as_u64().unwrap() * unit);
    let written = result["fitted"]["host_bytes_written"].as_u64().unwrap();
    for (op, figures) in result["latency_ns"].as_object().unwrap() {
        let ladder = ["p50", "p95", "p99", "p999", "max"].map(|key| figures[key].as_u64());
        assert!(ladder.is_sorted(), "{op}: {figures}");
        let some = figures["count"].as_u64().unwrap() > 0;
        assert_eq!(some, ladder.iter().all(Option::is_some), "{op}: {figures}");
        assert!(figures["mean"].as_f64() <= ladder[4].map(|max| max as f64), "{op}: {figures}");
    }
    let seconds = result["simulated_ns"].as_f64().unwrap() / 1e9;
    let rate = |amount: u64| if seconds > 0.0 { amount as f64 / seconds } else { 0.0 };
    let close = |key: &str, wanted: f64| {
        let ours = result[key].as_f64().unwrap();
        assert!((ours - wanted).abs() <= 1e-12 * wanted, "{key}: {ours}, not {wanted}");
    };
    if result["write_amplification_estimated"] == true {
        assert_eq!(result["steady_state"], "out of reach");
    } else if written > 0 && programmed > 0 {
        close("write_amplification", programmed as f64 / written as f64);
    } else {
        assert_eq!(result["write_amplification"], Value::Null);
    }
    close("iops", rate(requests));
    close("bytes_per_second", rate(times("bytes_read") + times("bytes_written")));
}
