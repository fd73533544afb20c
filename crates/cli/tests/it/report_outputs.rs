//! The output files of `prism report`: self-contained HTML, Parquet that reproduces the JSON, and
//! no file at all if a run fails.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::{folder, names, path, prism, refused, report, sample, signal};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;

const SMALL: &str = "f2fs-rocksdb.ftrace.zst";

/// One pass, without what-ifs, which take most of the time of a report.
const ONCE: [&str; 4] = ["--passes", "1", "--what-if", "none"];

fn spawn(args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_prism"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn the_page_holds_the_numbers_and_refers_to_nothing_outside() {
    let folder = folder();
    let path = path(&folder, "report.html");
    let json = report(&[&sample(SMALL), "--html", &path]);
    let page = fs::read_to_string(&path).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    for outside in ["http:", "https:", "//cdn", "src=", "@import", "<link", "<iframe", "url("] {
        let quoted = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!quoted.contains(outside), "{outside} is in the page");
    }
    let amplification = json["result"]["write_amplification"].as_f64().unwrap();
    let writes = json["result"]["latency_ns"]["write"]["count"].to_string();
    for part in ["Write amplification", &format!("{amplification:.3}"), &writes, "f2fs-rocksdb"] {
        assert!(page.contains(part), "{part:?} is not in the page");
    }
    for chart in ["Throughput", "Latency", "Queue depth", "Request sizes", "Addresses over time"] {
        assert!(page.contains(chart), "there is no chart {chart:?}");
    }
}

/// Count, sum and maximum of the latencies of each operation.
type Latencies = BTreeMap<String, (u64, u128, u64)>;

fn latencies(path: &Path) -> Latencies {
    let file = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let columns: Vec<String> = file
        .metadata()
        .file_metadata()
        .schema()
        .get_fields()
        .iter()
        .map(|f| f.name().into())
        .collect();
    let place = |name: &str| columns.iter().position(|column| column == name).expect(name);
    let [op, latency, arrival, submit, complete] =
        ["op", "latency_ns", "arrival_ns", "submit_ns", "complete_ns"].map(place);
    let mut found = Latencies::new();
    for row in file.get_row_iter(None).unwrap() {
        let row = row.unwrap();
        let number = |column| row.get_long(column).unwrap();
        assert!(number(arrival) <= number(submit) && number(submit) <= number(complete));
        assert_eq!(number(latency), number(complete) - number(arrival));
        let entry = found.entry(row.get_string(op).unwrap().clone()).or_default();
        let ns = number(latency) as u64;
        *entry = (entry.0 + 1, entry.1 + u128::from(ns), entry.2.max(ns));
    }
    found
}

#[test]
fn the_parquet_of_all_requests_reproduces_the_json() {
    let folder = folder();
    let path = path(&folder, "r.parquet");
    let check = |flags: &[&str]| {
        let outputs = [&sample("ext4-sqlite-wal.ftrace.zst"), "--requests", &path];
        let json = report(&[&outputs, flags].concat());
        let found = latencies(Path::new(&path));
        let rows: u64 = found.values().map(|&(count, ..)| count).sum();
        let completed = |key: &str| json["result"][key].as_u64().unwrap();
        assert_eq!(rows, completed("requests_completed") + completed("flushes_completed"));
        for (op, figures) in json["result"]["latency_ns"].as_object().unwrap() {
            let Some(&(count, sum, max)) = found.get(op) else {
                assert_eq!(figures["count"], 0, "{op}");
                continue;
            };
            assert_eq!((&figures["count"], &figures["max"]), (&count.into(), &max.into()), "{op}");
            let mean = figures["mean"].as_f64().unwrap();
            assert!((mean - sum as f64 / count as f64).abs() < 1e-6 * mean, "{op}: {mean}");
        }
    };
    check(&[]);
    check(&["--passes", "2", "--pace", "closed:8", "--phase", "app"]);
}

#[test]
fn ctrl_c_leaves_no_output_and_its_exit_code() {
    let folder = folder();
    let [kept, parquet, json] =
        ["kept.html", "r.parquet", "r.json"].map(|name| path(&folder, name));
    fs::write(&kept, "older").unwrap();
    // Enough passes for hours, so the run does not end by itself.
    let report = ["report", &sample(SMALL), "--passes", "100000000", "--requests", &parquet];
    let mut child = spawn(&[&report[..], &["--html", &kept, "--json", &json]].concat());
    while names(folder.path()).len() < 2 {
        assert!(child.try_wait().unwrap().is_none(), "the run ended by itself");
        std::thread::yield_now();
    }
    signal(child.id(), "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(130), &b""[..]));
    assert_eq!(names(folder.path()), ["kept.html"]);
    assert_eq!(fs::read(&kept).unwrap(), b"older");
}

#[test]
fn a_full_disk_and_a_missing_folder_are_reported() {
    let folder = folder();
    let nowhere = folder.path().join("no/out");
    for flag in ["--html", "--json", "--requests"] {
        let check = |target: &str, message: &str| {
            let run = prism(&[&["report", &sample(SMALL)], &ONCE[..], &[flag, target]].concat());
            run.refused_file(target, &format!(": {message}"));
        };
        check("/dev/full", "the disk is full");
        check(nowhere.to_str().unwrap(), "the folder to write into does not exist");
        check(folder.path().to_str().unwrap(), "this is a folder");
    }
    let run = Command::new(env!("CARGO_BIN_EXE_prism"))
        .args(["report", &sample(SMALL)])
        .args(ONCE)
        .stdout(File::create("/dev/full").unwrap())
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(2));
    assert!(String::from_utf8(run.stderr).unwrap().contains("the disk is full"));
}

#[test]
fn a_failure_leaves_none_of_several_outputs_and_keeps_the_older_ones() {
    let folder = folder();
    let [html, parquet] = ["r.html", "r.parquet"].map(|name| path(&folder, name));
    fs::write(&html, "older").unwrap();
    let outputs = ["--html", &html, "--requests", &parquet, "--json", "/dev/full"];
    let trace = sample(SMALL);
    let args = [&["report", trace.as_str()], &ONCE[..], &outputs[..]].concat();
    // First the JSON cannot be written, then only the text.
    for args in [&args[..], &args[..args.len() - 2]] {
        let run = Command::new(env!("CARGO_BIN_EXE_prism"))
            .args(args)
            .stdout(File::create("/dev/full").unwrap())
            .output()
            .unwrap();
        assert_eq!(run.status.code(), Some(2), "{args:?}");
        assert_eq!(names(folder.path()), ["r.html"]);
        assert_eq!(fs::read(&html).unwrap(), b"older");
    }
}

#[test]
fn a_closed_output_pipe_is_no_failure() {
    for form in [&["--json", "-"][..], &[]] {
        let trace = sample(SMALL);
        let mut child = spawn(&[&["report", trace.as_str()], &ONCE[..], form].concat());
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    }
}

#[test]
fn two_outputs_cannot_be_the_same_file() {
    let folder = folder();
    let out = &path(&folder, "out");
    for out in [out, "-"] {
        let same = ["report", &sample(SMALL), "--html", out, "--json", out];
        refused(&same, &["--html and --json name the same file"]);
    }
    assert!(!Path::new(out).exists());
}
