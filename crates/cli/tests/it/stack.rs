//! `prism capture stack`: refused arguments, results, and that every run cleans up on any exit.
//!
//! Most tests need root, loop devices, memory cgroups and kernel tracing; where one is missing, the
//! test is reported as skipped.

use prism_testkit::skipped;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::loop_disk::turn;
use crate::common::{self, Run, folder, quiet, signal, words};
use serde_json::Value;

/// Arguments that are refused with `message` before anything is done.
fn refused(args: &[&str], message: &str) {
    common::refused(&[&["capture", "stack"], args].concat(), &[message]);
}

#[test]
fn invalid_arguments_are_refused() {
    refused(&["--fs", "zfs"], "known are ext4, xfs, btrfs, f2fs");
    refused(&["--app", "sqlite"], "known are sqlite-rb, sqlite-wal");
    refused(&["--pattern", "seq,random"], "known are seq, rand, mix");
    refused(&["--size", "64"], "unit");
    refused(&["--io", "direct", "--app", "leveldb,varmail"], "can bypass the page cache");
    refused(&["--app", "overwrite-zipf", "--pattern", "seq"], "give --pattern rand");
    refused(&["--device", "no-such-drive"], "no-such-drive");
    refused(&["--instances", "0"], "0 is not in 1..=16");
    refused(&["--cold-reads", "128KiB,100B"], "whole KiB");
    refused(&["--for", "10"], "unit");
    refused(&["--no-replay"], "--keep-traces");
    refused(&["--fs", "xfs", "--size", "64MiB"], "xfs needs at least 314572800 bytes");
}

/// A workload depends only on its arguments: running it twice leaves the same mails.
#[test]
fn a_worker_leaves_what_its_seed_says() {
    let sizes = |seed: &str| {
        let folder = folder();
        let work = |step: &str| {
            let at = folder.path().to_str().expect("text");
            let usual = "capture stack-worker --app varmail --pattern mix --io buffered \
                         --size 1MiB --written 1MiB --seed";
            let args = [seed, "--step", step, "--folder", at];
            assert_eq!(quiet(&[&words(usual)[..], &args].concat()), "");
        };
        work("load");
        work("app");
        let entries = fs::read_dir(folder.path().join("mails")).expect("the mails");
        let mut sizes: Vec<_> = entries
            .map(|entry| {
                let entry = entry.expect("a mail");
                (entry.file_name(), entry.metadata().expect("its size").len())
            })
            .collect();
        sizes.sort();
        sizes
    };
    let one = sizes("1");
    // 63 or 62 mails for each of 16 threads, of which 12 are absent.
    assert_eq!(one.len(), 1000 - 16 * 12);
    assert_eq!(one, sizes("1"));
    assert_ne!(one, sizes("2"));
}

/// Why the experiment cannot be run here, and the missing Debian package; `None` if it can.
fn missing() -> Option<(&'static str, &'static str)> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let uid = status.lines().find(|line| line.starts_with("Uid:")).unwrap_or_default();
    let mounts = mounts();
    let makers = ["/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4"];
    if uid.split_whitespace().nth(2) != Some("0") {
        Some(("it needs root", ""))
    } else if !Path::new("/dev/loop-control").exists() {
        Some(("it needs loop devices", ""))
    } else if !makers.iter().any(|maker| Path::new(maker).exists()) {
        Some(("it needs mkfs.ext4", "e2fsprogs"))
    } else if !mounts.contains(" - cgroup") {
        Some(("it needs memory cgroups", ""))
    } else if !Path::new("/sys/kernel/btf/vmlinux").exists()
        && !Path::new("/sys/kernel/tracing/instances").exists()
    {
        Some(("the kernel shows no requests", ""))
    } else if libraries().is_empty() {
        Some(("it needs SQLite", "libsqlite3-0"))
    } else {
        None
    }
}

/// Folders that hold SQLite's library.
fn libraries() -> Vec<PathBuf> {
    let folders =
        ["/usr/lib", "/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"];
    let has = |folder: &PathBuf| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names = entries.map(|entry| entry.file_name());
        names.any(|name| name.to_string_lossy().starts_with("libsqlite3.so"))
    };
    folders.iter().map(PathBuf::from).filter(has).collect()
}

fn mounts() -> String {
    fs::read_to_string("/proc/self/mountinfo").unwrap_or_default()
}

/// The mounts, devices, folders and cgroups that the run of `process` has at this moment.
fn left(process: u32, work: &Path) -> Vec<String> {
    let name = format!("prism-stack-{process}-");
    let mut left: Vec<String> =
        mounts().lines().filter(|line| line.contains(&name)).map(str::to_owned).collect();
    let names = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    for device in names(Path::new("/sys/block")) {
        let file = fs::read_to_string(device.join("loop/backing_file")).unwrap_or_default();
        if file.contains(&name) {
            left.push(format!("{} is {file}", device.display()));
        }
    }
    let instance = format!("prism-{process}-");
    let places = [
        (work.to_path_buf(), name.as_str()),
        ("/sys/fs/cgroup".into(), &name),
        ("/sys/fs/cgroup/memory".into(), &name),
        ("/sys/kernel/tracing/instances".into(), &instance),
    ];
    for (folder, part) in places {
        let own = names(&folder).into_iter().map(|path| path.display().to_string());
        left.extend(own.filter(|path| path.contains(part)));
    }
    left
}

/// Runs the program on one application in the background.
fn start(work: &Path, app: &str, size: &str) -> Child {
    let args = ["capture", "stack", "--fs", "ext4", "--pattern", "rand", "--json", "-"];
    Command::new(env!("CARGO_BIN_EXE_prism"))
        .args(args)
        .args(["--app", app, "--size", size, "--work-dir", work.to_str().expect("text")])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary is built")
}

fn ended(child: Child) -> (u32, Run) {
    let process = child.id();
    (process, Run::of("prism capture stack", child.wait_with_output().expect("the run ends")))
}

/// Waits until the application of `child` runs; the process of the application.
fn working(child: &Child, app: &str) -> u32 {
    let threads = format!("/proc/{}/task", child.id());
    let began = Instant::now();
    // The limit is generous; it only ends a broken run.
    while began.elapsed() < Duration::from_secs(300) {
        // A thread may have ended since it was listed.
        let of = |thread: PathBuf| fs::read_to_string(thread.join("children")).unwrap_or_default();
        let all = fs::read_dir(&threads).expect("the program still runs");
        let lists: Vec<String> = all.flatten().map(|entry| of(entry.path())).collect();
        for process in lists.iter().flat_map(|list| list.split_whitespace()) {
            let comm = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
            if comm.trim_end() == app {
                return process.parse().expect("a number");
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{app} was never started");
}

#[test]
fn applications_run_and_are_cleaned_up() {
    if let Some((why, package)) = missing() {
        return skipped(&format!("applications on loop devices: {why}"), package);
    }
    let _turn = turn();
    let work = folder();
    let work = work.path();
    a_matrix_is_printed(work);
    an_application_that_is_killed_is_a_failed_combination(work);
    a_signal_undoes_everything(work, "INT", 130);
    a_signal_undoes_everything(work, "TERM", 143);
    leftovers_of_a_killed_run_are_removed_by_the_next(work);
}

fn a_matrix_is_printed(work: &Path) {
    let (process, run) = ended(start(work, "sqlite-wal,varmail", "32MiB"));
    assert_eq!(run.code, 0, "{}", run.stderr);
    // A test run that was killed before may have left something behind.
    let mut said = run.stderr.lines().filter(|line| !line.starts_with("prism: removed"));
    assert_eq!(said.next(), None);
    assert_eq!(left(process, work), [""; 0]);
    let json: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let cells = json["cells"].as_array().expect("the cells");
    assert_eq!(cells.len(), 2);
    for cell in cells {
        assert_eq!(cell["outcome"], "measured", "{cell}");
        assert_eq!(cell["lost_events"], 0, "{cell}");
        assert!(cell["flushes"].as_u64() > Some(100), "every commit and fsync flushes: {cell}");
        for rule in cell["rules"].as_object().expect("the rules").values() {
            assert!(rule["score"].as_f64().is_some_and(|s| (0.0..=1.0).contains(&s)), "{cell}");
        }
        assert!(cell["write_amplification"].as_f64() > Some(0.5), "{cell}");
    }
    // 409 commits of ten pages each, written to the log and to the database.
    let written = cells[0]["writes"]["bytes"].as_u64().expect("bytes");
    assert!((16 << 20..128 << 20).contains(&written), "{written}");
    // 2048 rounds of two appends of 8 KiB on average, in whole pages, and the journal.
    let written = cells[1]["writes"]["bytes"].as_u64().expect("bytes");
    assert!((32 << 20..160 << 20).contains(&written), "{written}");
}

fn an_application_that_is_killed_is_a_failed_combination(work: &Path) {
    let child = start(work, "varmail", "256MiB");
    signal(working(&child, "varmail"), "KILL");
    let (process, run) = ended(child);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stderr.contains("one combination failed: ext4-varmail-rand"), "{}", run.stderr);
    assert!(run.stderr.contains("signal: 9"), "{}", run.stderr);
    let json: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(json["cells"][0]["outcome"], "failed");
    assert_eq!(left(process, work), [""; 0]);
}

fn a_signal_undoes_everything(work: &Path, name: &str, code: i32) {
    let child = start(work, "sqlite-wal", "256MiB");
    working(&child, "sqlite-wal");
    assert!(left(child.id(), work).len() >= 4, "mount, device, folder, cgroup");
    signal(child.id(), name);
    let (process, run) = ended(child);
    assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{}", run.stderr);
    assert_eq!(left(process, work), [""; 0], "after {name}");
}

fn leftovers_of_a_killed_run_are_removed_by_the_next(work: &Path) {
    let mut child = start(work, "sqlite-wal", "256MiB");
    let application = working(&child, "sqlite-wal");
    signal(child.id(), "KILL");
    child.wait().expect("it is gone");
    let process = child.id();
    assert!(left(process, work).len() >= 4, "nothing undoes it");
    // The application ends with its parent; before that, the next run cannot unmount.
    let began = Instant::now();
    while Path::new(&format!("/proc/{application}")).exists() {
        assert!(began.elapsed() < Duration::from_secs(300), "the application goes on");
        std::thread::sleep(Duration::from_millis(5));
    }
    let (next, run) = ended(start(work, "varmail", "32MiB"));
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("removed the leftovers of a killed run"), "{}", run.stderr);
    assert_eq!(left(process, work), [""; 0]);
    assert_eq!(left(next, work), [""; 0]);
}
