//! `prism graph`: ingests that are interrupted, and graphs in memory.

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::common::{
    folder, good, json, names, path as at, prism, quiet, refused, refused_in_a_line, signal,
};

/// Writes edges: so many that they are read in several pieces.
fn write_edges(path: &str) {
    let mut lines = String::new();
    for at in 0..1_300_000_u64 {
        lines.push_str(&format!("{} {}\n", at * 7_919 % 300_007 + 1_000_000, at % 900_001));
    }
    assert!(lines.len() > 18 << 20);
    fs::write(path, lines).unwrap();
}

/// Runs `prism` with a limit of the size of each file, in KiB. A process that goes beyond it is
/// killed, or, with `trap`, its write fails.
fn limited(kib: u32, trap: &str, arguments: &[&str]) -> Output {
    let script = format!("{trap} ulimit -c 0; ulimit -f {}; exec \"$0\" \"$@\"", kib * 2);
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_prism")]).args(arguments);
    command.output().unwrap()
}

#[test]
fn an_ingest_that_was_killed_goes_on() {
    let folder = folder();
    let [edges, whole, store] =
        ["edges.txt", "whole.prism", "g.prism"].map(|name| at(&folder, name));
    write_edges(&edges);
    good(&["graph", "ingest", &edges, "-o", &whole, "--directed"]);
    let exported = good(&["graph", "export", &whole]);
    let ingest = ["graph", "ingest", &edges, "-o", &store, "--directed", "--memory", "1MiB"];
    // In the first piece, in later ones, while the store is written. A thread saves progress while
    // edges are read, so that it may not be there when the second one is killed; it is there when
    // a full disk was reported.
    let state = folder.path().join("g.prism.ingest/state");
    for (kib, is_full, kept) in [
        (2_000, false, Some(false)),
        (7_000, false, None),
        (9_000, true, Some(true)),
        (11_000, false, Some(true)),
        (11_000, true, Some(true)),
    ] {
        let goes_on = state.exists();
        let ended = limited(kib, if is_full { "trap '' XFSZ;" } else { "" }, &ingest);
        let stderr = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(stderr.contains("going on from "), goes_on, "{kib} KiB: {stderr}");
        assert!(kept.is_none_or(|kept| state.exists() == kept), "{kib} KiB: {stderr}");
        if !is_full {
            assert_eq!(ended.status.signal(), Some(25), "{kib} KiB: {stderr}");
            continue;
        }
        // Nothing is lost, and the error is one line.
        assert_eq!(ended.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains("what was read is kept in "), "{stderr}");
        assert_eq!(stderr.lines().count(), 1 + usize::from(goes_on), "{stderr}");
        // The store is named, not its temporary space, if the disk is full when it is written.
        let named = stderr.lines().any(|line| line.starts_with("prism: ") && line.contains(&store));
        assert!(named && (kib < 11_000 || !stderr.contains(": temporary space")), "{stderr}");
    }
    let run = prism(&ingest);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let said = format!("going on from 1300000 edges of {edges}");
    assert!(run.stderr.contains(&said), "{}", run.stderr);
    assert_eq!(names(folder.path()), ["edges.txt", "g.prism", "whole.prism"]);
    assert!(good(&["graph", "export", &store]) == exported);
    assert!(good(&["graph", "verify", &store]).contains("no damage"));
    let info = |store: &str| {
        let mut info = json(&["graph", "info", store, "--json", "-"]);
        info["store"] = Value::Null;
        info
    };
    assert_eq!(info(&store), info(&whole));
}

/// Ctrl-C comes when all edges were read and the vertices are waited for.
#[test]
fn an_ingest_that_was_stopped_goes_on() {
    let folder = folder();
    let [edges, vertices, store] =
        ["edges.txt", "vertices", "g.prism"].map(|name| at(&folder, name));
    let lines: String = (0..50_000).map(|at| format!("{} {}\n", at % 977, at % 1013)).collect();
    fs::write(&edges, lines).unwrap();
    assert!(Command::new("mkfifo").arg(&vertices).status().unwrap().success());
    let common = ["graph", "ingest", &edges, "-o", &store, "--memory", "64KiB"];
    let of_vertices = ["--vertices", &vertices];
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_prism"));
        command.args(common).args(of_vertices).stderr(Stdio::piped());
        command.stdout(Stdio::null()).spawn().unwrap()
    };
    let child = start();
    // This waits until the pipe is opened for reading.
    let pipe = fs::OpenOptions::new().write(true).open(&vertices).unwrap();
    signal(child.id(), "INT");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    drop(pipe);
    assert_eq!(names(folder.path()), ["edges.txt", "g.prism.ingest", "vertices"]);
    // Other options, and another input.
    for (more, why) in [
        (&[][..], "it is with --vertices="),
        (&[&of_vertices[..], &["--directed"]].concat(), "it is without --directed;"),
    ] {
        let parts = ["g.prism.ingest: ", why, "--restart"];
        refused_in_a_line(&[&common[..], more].concat(), &parts);
    }
    let child = start();
    let mut pipe = fs::OpenOptions::new().write(true).open(&vertices).unwrap();
    pipe.write_all(b"777777\n").unwrap();
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("going on from 50000 edges of "), "{stderr}");
    assert!(good(&["graph", "info", &store]).contains("Vertices             1014"));
    assert_eq!(names(folder.path()), ["edges.txt", "g.prism", "vertices"]);
    // What was interrupted can be forgotten.
    let child = start();
    drop(fs::OpenOptions::new().write(true).open(&vertices).unwrap());
    drop(child.wait_with_output().unwrap());
    quiet(&[&common[..], &["--restart", "--directed"]].concat());
}

#[test]
fn a_graph_may_be_in_memory_or_on_a_simulated_drive() {
    let folder = folder();
    let [edges, store, out, other] =
        ["e.txt", "g.prism", "out.tsv", "other.tsv"].map(|name| at(&folder, name));
    let lines: String =
        (0..30_000).map(|at| format!("{} {}\n", at * 31 % 4099, at % 4001)).collect();
    fs::write(&edges, lines).unwrap();
    good(&["graph", "ingest", &edges, "-o", &store, "--directed"]);
    let in_memory = ["memory", "--edges", &edges, "--directed"];
    for algorithm in ["pagerank", "wcc", "degrees"] {
        good(&["graph", "run", algorithm, &store, "--output", &out]);
        for preset in [&[][..], &["--preset", "dc-tlc"]] {
            let words = [&["graph", "run", algorithm], &in_memory[..], preset].concat();
            let text = good(&[&words[..], &["--output", &other]].concat());
            assert!(fs::read(&other).unwrap() == fs::read(&out).unwrap(), "{words:?}");
            let kind = if preset.is_empty() { "memory" } else { "dc-tlc" };
            assert!(text.contains(&format!("\n  {kind} for the ingest: ")), "{text}");
            assert!(text.contains(&format!("\n  {kind} for the run: ")), "{text}");
        }
    }
    let device = |words: &[&str]| {
        let head = ["graph", "run", "pagerank", "--iterations", "3", "--json", "-"];
        json(&[&head[..], &in_memory, words].concat())["device"].clone()
    };
    // Every run takes the same virtual time, and a checkpoint is written to the drive.
    let drive = ["--preset", "dc-tlc", "--memory", "3MiB"];
    let found = device(&drive);
    assert_eq!(found["run"], device(&drive)["run"]);
    let (ingest, run) = (&found["ingest"], &found["run"]);
    assert!(ingest["written_bytes"].as_u64().unwrap() > 100_000, "{found}");
    assert!(run["read_bytes"].as_u64().unwrap() > 100_000, "{found}");
    assert_eq!(run["written_bytes"], 0, "{found}");
    let seconds = |work: &Value| work["virtual_seconds"].as_f64().unwrap();
    assert!(seconds(ingest) > 0.0001 && seconds(ingest) < 1.0, "{found}");
    assert!(seconds(run) > 0.0001 && seconds(run) < 1.0, "{found}");
    let saved = device(&[&drive[..], &["--checkpoint", "1"]].concat());
    assert!(saved["run"]["written_bytes"].as_u64().unwrap() >= 3 * 8 * 4099, "{saved}");
    let memory = device(&["--memory", "3MiB"]);
    assert!(memory["run"]["read_bytes"].as_u64().unwrap() > 100_000, "{memory}");
    assert!(memory["run"].get("virtual_seconds").is_none(), "{memory}");
    for (words, part) in [
        (&["graph", "run", "wcc", "memory"][..], "needs --edges FILE"),
        (&["graph", "run", "wcc", &store, "--edges", &edges], "has its edges"),
        (&["graph", "run", "wcc", &store, "--preset", "dc-tlc"], "--edges"),
        (&["graph", "run", "wcc", &store, "--directed"], "--edges"),
        (&["graph", "ingest", &edges, "-o", "memory"], "run ALGORITHM memory --edges FILE"),
        (&["graph", "run", "wcc", "memory", "--edges", "none.txt"], "no such file"),
        (&["graph", "run", "wcc", "memory", "--edges", &edges, "--output", &edges], "the input"),
        (&["graph", "run", "wcc", "memory", "--edges", &edges, "--json", &edges], "the input"),
    ] {
        refused(words, &[part]);
    }
}
