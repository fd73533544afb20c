//! The numbers of `prism report`, recomputed by DuckDB and plain models in Python from the
//! Parquet files that Prism writes; see `recomputed/recompute.py`.
//!
//! Runs if there is a python3 with DuckDB, and reports the tests as skipped otherwise.

use prism_testkit::skipped;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{folder, quiet, sample};
use serde_json::{Value, json};

/// What to run to have these checks.
/// A python3 that imports duckdb: that of PRISM_PYTHON, of `make python`, or of the path.
fn python() -> Option<OsString> {
    if let Some(named) = std::env::var_os("PRISM_PYTHON") {
        assert!(has_duckdb(&named), "PRISM_PYTHON is {named:?}, which does not import duckdb");
        return Some(named);
    }
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a folder of builds");
    let made = target.join("python/bin/python3").into_os_string();
    let found = [made, "python3".into()].into_iter().find(has_duckdb);
    if found.is_none() {
        let why = "the figures of reports are not recomputed: no python3 with DuckDB; run \
                   `make python`, or set PRISM_PYTHON to a python3 that imports duckdb";
        skipped(why, "python3-venv");
    }
    found
}

fn has_duckdb(python: &OsString) -> bool {
    let run = Command::new(python).args(["-c", "import duckdb"]).output();
    run.is_ok_and(|output| output.status.success())
}

/// A report and the Parquet files that it is recomputed from.
struct Files {
    report: PathBuf,
    trace: PathBuf,
    requests: PathBuf,
    /// Removed when this is dropped.
    _folder: tempfile::TempDir,
}

/// Converts the sample `name`, with all its phases, and reports phase `app` of that.
fn files(name: &str) -> Files {
    let folder = folder();
    let [report, trace, requests] =
        ["report.json", "trace.parquet", "requests.parquet"].map(|file| folder.path().join(file));
    let [report_path, trace_path, requests_path] =
        [&report, &trace, &requests].map(|path| path.to_str().expect("a path in text"));
    quiet(&["trace", "convert", &sample(name), trace_path]);
    // On an empty drive the first pass programs only the writes of the trace.
    let once = ["--phase", "app", "--state", "empty", "--passes", "1", "--what-if", "none"];
    let outputs = ["--requests", requests_path, "--json", report_path];
    quiet(&[&["report", trace_path], &once[..], &outputs].concat());
    Files { report, trace, requests, _folder: folder }
}

fn recompute(python: &OsString, files: &Files) -> Output {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recomputed/recompute.py");
    Command::new(python)
        .arg(script)
        .args([&files.report, &files.trace, &files.requests])
        .arg("app")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn duckdb_and_plain_models_agree_with_the_report() {
    let Some(python) = python() else { return };
    for name in ["ext4-sqlite-wal.ftrace.zst", "f2fs-rocksdb.ftrace.zst"] {
        let output = recompute(&python, &files(name));
        let said = text(&output.stdout);
        assert!(output.status.success(), "{name}: {said}{}", text(&output.stderr));
        let last = said.lines().last().expect("it says how many");
        let compared: u32 = last.split(' ').next().and_then(|n| n.parse().ok()).expect(last);
        assert!(compared >= 200 && last.ends_with(", 0 differ"), "{name}: {last}");
    }
}

/// Changes figures of each kind by the least amount that must be detected.
#[test]
fn a_wrong_figure_is_detected() {
    let Some(python) = python() else { return };
    let files = files("f2fs-rocksdb.ftrace.zst");
    let whole = [
        ("trace.writes", 1),
        ("result.host_bytes_written", -1),
        ("result.latency_ns.read.p50", -1),
        ("rules.request_scale.figures.writes.outstanding.p50", 1),
        ("rules.request_scale.figures.kib_between_barriers.p99", 1),
        ("rules.locality.figures.misses_by_cache_pages.2", 1),
        ("rules.aligned_sequentiality.figures.by_block.0.merged_when_full.full", 1),
        ("rules.grouping_by_death_time.figures.segmented.mixed", 1),
    ];
    let ratios = [
        ("rules.request_scale.score", 1e-8),
        ("rules.uniform_lifetime.figures.gini", 1e-8),
        ("rules.grouping_by_death_time.figures.density", -1e-8),
        ("result.latency_ns.write.p99", 2e-3),
    ];
    let bytes = std::fs::read(&files.report).expect("a report");
    let mut report: Value = serde_json::from_slice(&bytes).expect("JSON");
    let mut change = |path: &str, by: &dyn Fn(&Value) -> Value| {
        let pointer = format!("/{}", path.replace('.', "/"));
        let figure = report.pointer_mut(&pointer).unwrap_or_else(|| panic!("there is no {path}"));
        *figure = by(figure);
    };
    for (path, by) in whole {
        change(path, &|figure| json!(figure.as_i64().expect(path) + by));
    }
    for (path, by) in ratios {
        change(path, &|figure| json!(figure.as_f64().expect(path) * (1.0 + by)));
    }
    std::fs::write(&files.report, report.to_string()).expect("a report");
    let output = recompute(&python, &files);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}{}", text(&output.stderr));
    for path in whole.map(|(path, _)| path).iter().chain(&ratios.map(|(path, _)| path)) {
        assert!(said.contains(&format!("{path}: the report says")), "{path}: {said}");
    }
    let differ = whole.len() + ratios.len();
    assert!(said.trim_end().ends_with(&format!(", {differ} differ")), "{said}");
}
