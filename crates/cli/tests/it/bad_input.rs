//! Every bad input ends with exit code 2, one message that names the file, and no output.

use prism_testkit::skipped;
use std::fs;
use std::path::Path;

use crate::common::{Run, folder, good, path, prism, sample, signal};

/// Runs `info` and `convert` on `path` and checks that both refuse it with `message`.
fn check(path: &Path, flags: &[&str], message: &str) {
    let name = path.to_str().unwrap();
    let out = folder();
    let target = out.path().join("out.parquet");
    fs::write(&target, "older").unwrap();
    let runs = [
        prism(&[&["trace", "info", name], flags].concat()),
        prism(&[&["trace", "convert", name, target.to_str().unwrap()], flags].concat()),
    ];
    for run in runs {
        run.refused_file(name, message);
    }
    assert_eq!(fs::read(&target).unwrap(), b"older", "the older output is kept");
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 1, "nothing half-written is left");
}

/// A file with `bytes` that is refused with `message`.
fn check_bytes(bytes: &[u8], flags: &[&str], message: &str) {
    let folder = folder();
    let path = folder.path().join("trace.txt");
    fs::write(&path, bytes).unwrap();
    check(&path, flags, message);
}

fn event(seconds: u32, line: &str) -> String {
    format!("  dd-77 [001] ..... {seconds}.000000: {line}\n")
}

fn issue(seconds: u32) -> String {
    event(seconds, "block_rq_issue: 7,0 W 4096 () 8 + 8 none,0,0 [dd]")
}

#[test]
fn missing_files_and_folders() {
    let folder = folder();
    check(&folder.path().join("none"), &[], "there is no such file");
    check(folder.path(), &[], "this is a folder");
    check_bytes(b"", &[], "the file is empty");
    check_bytes(&zstd::encode_all(&b""[..], 1).unwrap(), &[], "the file is empty");
}

#[test]
fn a_file_without_permission() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let path = folder.path().join("secret");
    fs::write(&path, issue(1)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::File::open(&path).is_ok() {
        return check_permission_as_other_user(path.to_str().unwrap());
    }
    check(&path, &[], "no permission to open it");
}

/// Root may open every file, so the command runs as another user.
fn check_permission_as_other_user(path: &str) {
    use std::os::unix::process::CommandExt;
    const OTHER: u32 = 65534;
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_prism"))
        .args(["trace", "info", path])
        .uid(OTHER)
        .gid(OTHER)
        .output();
    match output {
        Ok(output) => Run::of(path, output).refused_file(path, "no permission to open it"),
        Err(error) => {
            skipped(&format!("a file without permission: cannot run as another user: {error}"), "");
        }
    }
}

#[test]
fn truncated_files() {
    let packed = fs::read(sample("ext4-sqlite-wal.ftrace.zst")).unwrap();
    check_bytes(&packed[..100_000], &[], "truncated: its zstd data ends at byte 100000, after ");
    let folder = folder();
    let whole = &path(&folder, "whole.parquet");
    good(&["trace", "convert", &sample("f2fs-rocksdb.ftrace.zst"), whole]);
    let bytes = fs::read(whole).unwrap();
    check_bytes(&bytes[..bytes.len() / 2], &[], "the Parquet file is damaged or incomplete");
    let mut changed = bytes.clone();
    changed[1000] ^= 0x10;
    check_bytes(&changed, &[], "Parquet file");
}

#[test]
fn files_that_are_no_trace() {
    let binary: Vec<u8> = (0..4096u32).map(|i| (i * 37 % 251) as u8).collect();
    check_bytes(&binary, &[], "binary");
    check_bytes(&binary, &["--format", "ftrace"], "none of the");
    check_bytes(b"Dear reader,\nthis is a letter.\n", &[], "the format was not recognised");
    check_bytes(
        b"# tracer: nop\n#\n",
        &["--format", "ftrace"],
        "the trace has no request (format ftrace",
    );
    check_bytes(b"\n\n\n\n", &[], "the format was not recognised");
}

#[test]
fn archives_are_named_whatever_the_format() {
    let tar = [&[b'a'; 257][..], b"ustar\x0000", &[0; 248], issue(1).as_bytes()].concat();
    for flags in [&[][..], &["--format", "ftrace"]] {
        check_bytes(b"BZh91AY&SY\x12\x34", flags, "compressed with bzip2; unpack it first");
        check_bytes(b"PK\x03\x04\x14\0\0\0", flags, "a zip archive; unpack it first");
        check_bytes(&zstd::encode_all(&tar[..], 1).unwrap(), flags, "a tar archive; unpack it");
    }
}

#[test]
fn a_file_that_is_named_twice() {
    let folder = folder();
    fs::write(folder.path().join("t.txt"), issue(1)).unwrap();
    let run = Run::inside(folder.path(), &["trace", "info", "t.txt", "./t.txt"]);
    run.refused_file("./t.txt", "named twice");
    prism(&["trace", "info", "-", "-"]).refused_file("-", "named twice");
}

#[test]
fn time_that_runs_backwards() {
    let text = [issue(100), issue(200), issue(190)].concat();
    let info = |window| {
        let args = ["trace", "info", "-", "--disorder", window, "--json", "-"];
        Run::with_input(&args, text.as_bytes())
    };
    info("9s").refused_file("standard input", "line 3: time goes back by 10 s");
    assert_eq!(info("10s").json()["trace"]["writes"], 3);
    let folder = folder();
    let parquet = path(&folder, "t.parquet");
    good(&["trace", "generate", "--pattern", "mixed", "-o", &parquet]);
    check(Path::new(&parquet), &["--disorder", "1s"], "leave out --disorder");
    let text = [issue(100), issue(200), issue(10)].concat();
    check_bytes(text.as_bytes(), &[], "line 3: time goes back by 190 s, ");
}

#[test]
fn empty_lines_between_events_do_no_harm() {
    let text = [issue(1), "\n\n".into(), issue(2), "\n".into()].concat();
    let run = Run::with_input(&["trace", "info", "-", "--json", "-"], text.as_bytes());
    assert_eq!(run.json()["trace"]["writes"], 2);
}

#[test]
fn a_line_in_the_second_file_is_named_by_that_file() {
    let folder = folder();
    let [a, b] = ["a", "b"].map(|name| path(&folder, name));
    let info = || prism(&["trace", "info", &a, &b]);
    fs::write(&a, [issue(100), issue(200)].concat()).unwrap();
    fs::write(&b, [issue(300), issue(10)].concat()).unwrap();
    info().refused_file(&b, "line 2: time goes back by");
    fs::write(&b, "0,R,126703644672,4096,1577808000000626\n").unwrap();
    info().refused_file(&b, "this looks like alibaba");
}

#[test]
fn unknown_names_are_answered_with_the_known_ones() {
    let trace = sample("ext4-sqlite-wal.ftrace.zst");
    check(Path::new(&trace), &["--phase", "ap"], "its phases are: mkfs mount app sync");
    check(Path::new(&trace), &["--source", "8,0"], "its devices are: 7,0");
}

#[test]
fn outputs_that_cannot_be_written() {
    let trace = sample("f2fs-rocksdb.ftrace.zst");
    for to in ["parquet", "fio", "mqsim"] {
        let refused = |out: &str, message: &str| {
            prism(&["trace", "convert", &trace, out, "--to", to]).refused_file(out, message);
        };
        refused("/dev/full", "the disk is full");
        let folder = folder();
        refused(&path(&folder, "no/out"), "the folder to write into does not exist");
        refused(folder.path().to_str().unwrap(), "this is a folder");
    }
    let run = prism(&["trace", "convert", &trace, "out.unknown"]);
    run.refused_file("out.unknown", "its extension names no output format");
}

#[test]
fn ctrl_c_leaves_no_output_and_its_exit_code() {
    let folder = folder();
    let out = folder.path().join("out.parquet");
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_prism"))
        .args(["trace", "convert", "-", out.to_str().unwrap()])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // Its input stays open: the run would end at the end of input.
    let input = child.stdin.take();
    // The output is opened first, so its temporary file shows that the run has begun.
    while fs::read_dir(folder.path()).unwrap().count() == 0 {
        std::thread::yield_now();
    }
    signal(child.id(), "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(input);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_closed_output_pipe_is_no_failure() {
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_prism"))
        .args(["trace", "generate", "--pattern", "mixed", "--to", "mqsim", "-o", "-"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}
