//! `prism capture` on loop devices. Tests that need root and kernel tracing are reported as skipped
//! where these are missing; captures must restore the state of the kernel on every path.

use prism_testkit::skipped;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::loop_disk::{LoopDisk, can_capture, has_program};
use crate::common::{self, Run, folder, good, path, prism, refused};
use prism_host::{LoadSpec, Progress, load_trace};
use prism_trace::each_record;
use serde_json::Value;

const PRISM: &str = env!("CARGO_BIN_EXE_prism");

/// The output of `prism trace info` on the trace at `path`, or on one phase of it.
fn info(path: &Path, phase: Option<&str>) -> Value {
    let path = path.to_str().expect("UTF-8");
    let mut args = vec!["trace", "info", path, "--json", "-"];
    args.extend(phase.iter().flat_map(|phase| ["--phase", phase]));
    serde_json::from_str::<Value>(&good(&args)).expect("JSON")["trace"].take()
}

/// Bytes written of the file whose path ends in `name`.
fn written(info: &Value, name: &str) -> u64 {
    let files = info["files"].as_array().expect("files");
    let of = |row: &&Value| row["name"].as_str().is_some_and(|path| path.ends_with(name));
    files.iter().filter(of).map(|row| row["bytes_written"].as_u64().expect("a number")).sum()
}

/// Captures `script`, which runs in the file system on `disk`.
fn capture(disk: &LoopDisk, out: &Path, more: &[&str], script: &str) -> Run {
    let mut args = vec!["capture", disk.device(), "-o", out.to_str().expect("UTF-8")];
    args.extend(more);
    args.extend(["--", "sh", "-c", script]);
    Run::inside(disk.folder(), &args)
}

#[test]
fn every_byte_that_was_written_belongs_to_its_file() {
    let Some(turn) = can_capture("what captures see of files") else { return };
    let script = "dd if=/dev/urandom of=buffered bs=1M count=4 conv=fsync 2>/dev/null
                  dd if=/dev/zero of=direct bs=64k count=16 oflag=direct 2>/dev/null
                  mv buffered renamed
                  dd if=renamed of=/dev/null iflag=direct bs=1M 2>/dev/null";
    for file_system in ["ext4", "xfs", "btrfs"] {
        let Some(disk) = LoopDisk::with(file_system, &turn) else { continue };
        let out = disk.sibling("t.parquet");
        let run = capture(&disk, &out, &["--backend", "bpf"], script);
        assert_eq!(run.code, 0, "{file_system}: {}", run.stderr);
        let info = info(&out, None);
        assert_eq!(info["format"], "capture-bpf");
        assert_eq!(written(&info, "buffered"), 4 << 20, "{file_system}: {}", info["files"]);
        assert_eq!(written(&info, "direct"), 1 << 20, "{file_system}: {}", info["files"]);
        let files = info["files"].as_array().expect("files");
        let renamed = files.iter().find(|row| row["name"] == "renamed").expect("read");
        let read = renamed["bytes_read"].as_u64().expect("a number");
        // btrfs reads a part of what it just wrote from its cache.
        assert!(read <= 4 << 20 && read > 2 << 20, "{file_system}: {renamed}");
        let report = ["report", out.to_str().expect("UTF-8"), "--what-if", "none", "--json", "-"];
        assert!(good(&report).contains("renamed"), "findings and tables name files");
    }
}

#[test]
fn the_files_of_sqlite_have_the_bytes_that_it_wrote() {
    let Some(turn) = can_capture("what captures see of SQLite") else { return };
    if !has_program("python3") {
        return skipped("captures of SQLite", "python3");
    }
    // Frames go to the end of the log and are flushed with each commit; the file system
    // writes whole blocks. So the blocks from the old to the new end reach the disk.
    let script = format!(
        "python3 - <<'END'
import os, sqlite3, subprocess
db = sqlite3.connect('s.db', isolation_level=None)
db.execute('pragma journal_mode=wal')
db.execute('pragma synchronous=full')
db.execute('pragma wal_autocheckpoint=0')
db.execute('create table t (a integer primary key, b blob)')
subprocess.run([{PRISM:?}, 'capture', 'mark', 'app'], check=True)
end, total, block = os.stat('s.db-wal').st_size, 0, os.statvfs('.').f_bsize
for i in range(50):
    db.execute('insert into t values (?, ?)', (i, os.urandom(500 + 97 * i)))
    start, end = end, os.stat('s.db-wal').st_size
    total += (end + block - 1) // block * block - start // block * block
subprocess.run([{PRISM:?}, 'capture', 'mark', 'checkpoint'], check=True)
db.execute('pragma wal_checkpoint(truncate)')
pages = db.execute('pragma page_count').fetchone()[0]
open('expected', 'w').write(f'{{total}} {{pages * 4096}}')
END"
    );
    for file_system in ["ext4", "xfs", "btrfs"] {
        let Some(disk) = LoopDisk::with(file_system, &turn) else { continue };
        let out = disk.sibling("t.parquet");
        let run = capture(&disk, &out, &["--backend", "bpf"], &script);
        assert_eq!(run.code, 0, "{file_system}: {}", run.stderr);
        let expected = std::fs::read_to_string(disk.folder().join("expected")).expect("written");
        let mut numbers = expected.split(' ').map(|n| n.parse::<u64>().expect("a number"));
        let (log, database) = (numbers.next().expect("two"), numbers.next().expect("two"));
        let app = info(&out, Some("app"));
        assert_eq!(written(&app, "s.db-wal"), log, "{file_system}: {}", app["files"]);
        assert_eq!(written(&app, "s.db"), 0, "{file_system}: {}", app["files"]);
        // Every page was changed since the database was made.
        let checkpoint = info(&out, Some("checkpoint"));
        assert_eq!(written(&checkpoint, "s.db"), database, "{file_system}: {checkpoint}");
    }
}

#[test]
fn write_hints_arrive() {
    let Some(turn) = can_capture("write hints") else { return };
    if !has_program("python3") {
        return skipped("captures of write hints", "python3");
    }
    let Some(disk) = LoopDisk::with("ext4", &turn) else { return };
    // 1036 is F_SET_RW_HINT; 2 to 5 are the lifetimes from short to extreme.
    let script = "python3 -c \"
import fcntl, os, struct
for hint in (2, 3, 4, 5):
    file = os.open(f'h{hint}', os.O_RDWR | os.O_CREAT)
    fcntl.fcntl(file, 1036, struct.pack('Q', hint))
    os.write(file, bytes(65536))
    os.fsync(file)\"";
    let out = disk.sibling("t.parquet");
    let run = capture(&disk, &out, &["--backend", "bpf"], script);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let spec = LoadSpec { paths: vec![out], ..LoadSpec::default() };
    let mut trace = load_trace(&spec, &Progress::hidden()).expect("a trace");
    let mut found = Vec::new();
    let visited = each_record(&mut trace.spool, |record| {
        let name = trace.info.symbols.name(record.file);
        if name.starts_with('h') {
            found.push(format!("{name} {}", record.hint));
        }
    });
    visited.expect("readable");
    found.sort();
    found.dedup();
    assert_eq!(found, ["h2 2", "h3 3", "h4 4", "h5 5"]);
}

#[test]
fn two_captures_at_once_see_the_same() {
    let Some(turn) = can_capture("two captures at once") else { return };
    let Some(disk) = LoopDisk::with("ext4", &turn) else { return };
    let (outer, inner) = (disk.sibling("outer.parquet"), disk.sibling("inner.parquet"));
    for (first, second) in [("bpf", "bpf"), ("ftrace", "bpf"), ("bpf", "ftrace")] {
        let work = "for i in 1 2 3 4 5 6 7 8; do
                      dd if=/dev/zero of=f$i bs=8k count=5 conv=fsync 2>/dev/null; done";
        let nested = format!(
            "{PRISM} capture {} -o {} --backend {second} -- sh -c '{work}' >inner.log",
            disk.device(),
            inner.display()
        );
        let run = capture(&disk, &outer, &["--backend", first], &nested);
        assert_eq!(run.code, 0, "{first} {second}: {}", run.stderr);
        let inner_log = std::fs::read_to_string(disk.folder().join("inner.log")).expect("there");
        for text in [&run.stdout, &inner_log] {
            assert!(text.contains("no event lost"), "{first} {second}: {text}");
        }
        let [outer, inner] = [&outer, &inner].map(|path| info(path, None));
        let of_work = |info: &Value| {
            let rows = info["processes"].as_array().expect("processes");
            let dd = rows.iter().find(|row| row["name"] == "dd").expect("dd wrote").clone();
            (dd["writes"].clone(), dd["bytes_written"].clone())
        };
        assert_eq!(of_work(&outer), of_work(&inner), "{first} {second}");
        assert_eq!(of_work(&inner).1, 8 * 40960, "{first} {second}");
    }
}

#[test]
fn the_state_of_the_kernel_is_restored() {
    let Some(turn) = can_capture("what captures leave behind") else { return };
    let Some(disk) = LoopDisk::with("ext4", &turn) else { return };
    for backend in ["bpf", "ftrace", "blk"] {
        for signal in ["INT", "TERM", "KILL"] {
            let before = kernel_state(&disk);
            let out = disk.sibling(&format!("{backend}-{signal}.parquet"));
            let mut child = Command::new(PRISM)
                .args(["capture", disk.device(), "--backend", backend, "-o"])
                .arg(&out)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("the binary is built");
            let pid = child.id();
            let socket = format!("/run/prism-capture-{pid}-0.sock");
            wait_for(&socket, || Path::new(&socket).exists());
            common::signal(pid, signal);
            let status = child.wait().expect("it was started");
            assert_eq!(status.success(), signal != "KILL", "{backend} {signal}: {status}");
            assert_eq!(out.exists(), signal != "KILL", "{backend} {signal}");
            let start = Instant::now();
            while kernel_state(&disk) != before || !instances_are_gone(pid) {
                let late = start.elapsed() > Duration::from_secs(60);
                let now = kernel_state(&disk);
                assert!(!late, "{backend} {signal}: before {before:?}, after {now:?}");
                sleep(Duration::from_millis(20));
            }
        }
    }
    // The next capture removes the sockets of killed ones.
    let out = disk.sibling("last.parquet");
    assert_eq!(capture(&disk, &out, &[], "true").code, 0);
    let sockets = std::fs::read_dir("/run").expect("a folder").flatten();
    let gone = sockets.filter(|socket| {
        let name = socket.file_name();
        let pid = name.to_str().and_then(|name| {
            name.strip_prefix("prism-capture-")?.split('-').next()?.parse::<u32>().ok()
        });
        pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists())
    });
    assert_eq!(gone.count(), 0);
}

/// The parts of the kernel's tracing that a capture of `disk` may change. Other tests make and
/// trace other disks at the same time.
fn kernel_state(disk: &LoopDisk) -> Vec<(String, String)> {
    let home = "/sys/kernel/tracing";
    let files = ["current_tracer", "trace_clock", "tracing_on", "options/blk_classic", "set_event"];
    let name = disk.device().rsplit('/').next().expect("a path");
    let switch = format!("/sys/block/{name}/trace/enable");
    let files = files.iter().map(|file| format!("{home}/{file}")).chain([switch]);
    files.map(|path| (path.clone(), std::fs::read_to_string(path).unwrap_or_default())).collect()
}

/// Whether the tracing instances of the capture with this process number are gone.
fn instances_are_gone(pid: u32) -> bool {
    let own = format!("prism-{pid}-");
    let Ok(entries) = std::fs::read_dir("/sys/kernel/tracing/instances") else { return true };
    !entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with(&own))
}

fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}: nothing happened");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn impossible_captures_are_refused() {
    let folder = folder();
    let out = &path(&folder, "t.parquet");
    for (args, expected) in [
        (vec!["capture", "/dev/null", "-o", out], "/dev/null: this is no block device"),
        (vec!["capture", "/nowhere", "-o", out], "/nowhere: there is no such file"),
        (vec!["capture", "-o", "/nowhere/t.parquet"], "/nowhere/t.parquet: "),
        (vec!["capture", "/dev/null"], "--output <FILE>"),
        (vec!["capture", "mark", ""], "names no phase"),
        (vec!["capture", "mark", "a\nb"], "names no phase"),
        (vec!["capture", "-o", out, "--for", "5"], "--for"),
        (vec!["capture", "-o", out, "--for", "5s", "--", "true"], "cannot be used with"),
        (vec!["capture", "-o", out, "--backend", "magic"], "bpf, ftrace, blk"),
    ] {
        refused(&args, &[expected]);
        assert!(!Path::new(out).exists(), "{args:?}");
    }
}

#[test]
fn a_command_that_fails_leaves_its_trace() {
    let Some(_turn) = can_capture("captures of commands that fail") else { return };
    let folder = folder();
    let out = &path(&folder, "t.parquet");
    let run = prism(&["capture", "-o", out, "--", "sh", "-c", "exit 3"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stderr.contains("exit status: 3"), "{}", run.stderr);
    assert!(Path::new(out).exists());
    std::fs::remove_file(out).expect("it is there");
    let capture = ["capture", "-o", out, "--", "/nowhere/program"];
    refused(&capture, &["/nowhere/program: cannot be started"]);
    assert!(!Path::new(out).exists());
}

#[test]
fn lost_events_are_counted() {
    let Some(turn) = can_capture("lost events") else { return };
    let Some(disk) = LoopDisk::with("ext4", &turn) else { return };
    let out = disk.sibling("t.parquet");
    // Each write is queued, issued and completed: 4 x 1000 x 3 events at the least.
    let work = "for i in 1 2 3 4; do
                  dd if=/dev/zero of=f$i bs=4k count=1000 oflag=direct 2>/dev/null & done; wait";
    for backend in ["bpf", "ftrace"] {
        // A busy machine may be slow enough to lose nothing.
        let mut lost = 0;
        for _ in 0..10 {
            let json = disk.sibling("t.json");
            let json = json.to_str().expect("UTF-8");
            let more = ["--backend", backend, "--buffer", "4KiB", "--json", json];
            let run = capture(&disk, &out, &more, work);
            assert_eq!(run.code, 0, "{}", run.stderr);
            let text = std::fs::read_to_string(json).expect("written");
            let object: Value = serde_json::from_str(&text).expect("JSON");
            lost = object["lost_events"].as_u64().expect("a number");
            let seen = object["trace"]["lines"].as_u64().expect("a number");
            assert!(seen + lost >= 12_000, "{backend}: {seen} seen, {lost} lost");
            if lost > 0 {
                assert!(run.stdout.contains("lost; give a larger --buffer"), "{}", run.stdout);
                let skipped = info(&out, None)["skipped"].to_string();
                assert!(skipped.contains("events lost by the tracer"), "{skipped}");
                break;
            }
        }
        assert!(lost > 0, "{backend}: nothing was lost in 4 KiB");
    }
}
