//! Bad input of `prism report`: one clear message and exit code 2, or a result with notes on what
//! was left out; never a panic, never unbounded memory.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::common::{self, Run, folder, gzip, path, prism, report, sample};
use serde_json::Value;

/// The text of a preset.
const DC_TLC: &str = include_str!("../../../ssd/presets/dc-tlc.toml");

fn event(seconds: &str, offset: &str, sectors: &str) -> String {
    issue(seconds, "7,0", offset, sectors, "dd")
}

fn issue(seconds: &str, device: &str, offset: &str, sectors: &str, comm: &str) -> String {
    format!(
        "  dd-77 [001] ..... {seconds}: block_rq_issue: {device} W 4096 () {offset} + {sectors} \
         none,0,0 [{comm}]\n"
    )
}

/// Runs the report over `input` and checks that it is refused with one line that names
/// `name` and says `message`.
fn refused(args: &[&str], input: &[u8], name: &str, message: &str) {
    Run::with_input(&[&["report"], args].concat(), input).refused_file(name, message);
}

/// The bytes `input` are refused from a pipe with `message`, and leave no output.
fn refused_bytes(input: &[u8], flags: &[&str], message: &str) {
    let folder = folder();
    let [html, json, parquet] = &["html", "json", "parquet"].map(|name| path(&folder, name));
    let outputs = ["-", "--html", html, "--json", json, "--requests", parquet];
    refused(&[&outputs, flags].concat(), input, "standard input", message);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// The report of `input`, one pass on an empty drive without what-ifs.
fn accepted(input: &[u8], flags: &[&str]) -> Value {
    let args = ["report", "-", "--passes", "1", "--state", "empty", "--what-if", "none"];
    let json = Run::with_input(&[&args[..], &["--json", "-"], flags].concat(), input).json();
    common::assert_lawful(&json);
    json
}

#[test]
fn files_that_are_no_trace() {
    let folder = folder();
    let none = path(&folder, "none");
    refused(&[&none], b"", &none, "there is no such file");
    let inside = folder.path().to_str().unwrap();
    refused(&[inside], b"", inside, "this is a folder");
    refused_bytes(b"", &[], "the file is empty");
    refused_bytes(b"Dear reader,\nthis is a letter.\n", &[], "the format was not recognised");
    refused_bytes(b"# tracer: nop\n#\n", &["--format", "ftrace"], "the trace has no request");
    let binary: Vec<u8> = (0..4096u32).map(|i| (i * 37 % 251) as u8).collect();
    refused_bytes(&binary, &[], "binary");
    refused_bytes(&binary, &["--format", "blkparse"], "none of the");
    let wide: Vec<u8> = event("1.0", "8", "8").encode_utf16().flat_map(u16::to_le_bytes).collect();
    refused_bytes(&wide, &[], "UTF-16");
    let mark = [&[0xff, 0xfe], &wide[..]].concat();
    refused_bytes(&mark, &[], "UTF-16");
}

#[test]
fn files_that_are_cut_off_or_out_of_order() {
    let packed = fs::read(sample("ext4-sqlite-wal.ftrace.zst")).unwrap();
    refused_bytes(&packed[..200_000], &[], "truncated: its zstd data ends at byte 200000");
    let text: String = (1..5000).map(|i| event(&format!("{i}.0"), "8", "8")).collect();
    let packed = gzip(text.as_bytes());
    let half = &packed[..packed.len() / 2];
    refused_bytes(half, &[], "truncated: its gzip data ends at byte");
    let text = ["100.0", "200.0", "10.0"].map(|seconds| event(seconds, "8", "8")).concat();
    refused_bytes(text.as_bytes(), &[], "line 3: time goes back by 190 s, ");
}

#[test]
fn requests_that_do_not_fit_the_drive() {
    let trace = sample("f2fs-rocksdb.ftrace.zst");
    let wanted = "of addresses, more than the drive's";
    refused(&[&trace, "--capacity", "16MiB"], b"", &trace, wanted);
    let said = common::refused(&["report", &trace, "--capacity", "16MiB"], &[]);
    let advice = said.split("--capacity ").nth(1).expect("advice");
    let capacity = advice.split_whitespace().next().unwrap();
    let json = report(&[&trace, "--capacity", capacity, "--passes", "1"]);
    common::assert_lawful(&json);
    // The highest address does not matter by itself: a drive has those that the trace touches.
    let far = event("1.0", "2000000000000000", "8");
    accepted(far.as_bytes(), &[]);
    let huge = ["-", "--capacity", "900PiB"];
    refused(&huge, far.as_bytes(), "dc-tlc", "it cannot be scaled to 900 PiB");
}

#[test]
fn numbers_beyond_any_device_are_skipped_and_counted() {
    let good = event("1.0", "0", "8");
    let bad = [
        ("9223372036854775807", "8"),
        ("18446744073709551615", "1"),
        ("99999999999999999999999", "8"),
        ("36028797018963967", "1"),
        ("-8", "8"),
        ("8", "99999999999999999999"),
    ];
    let text: String = bad.iter().map(|(offset, len)| event("2.0", offset, len)).collect();
    let json = accepted((good + &text).as_bytes(), &[]);
    assert_eq!(json["trace"]["requests"], 1);
    let skipped = json["trace"]["skipped"].as_array().unwrap();
    let count: u64 = skipped.iter().map(|row| row["count"].as_u64().unwrap()).sum();
    assert_eq!((count, &skipped[0]["first_line"]), (bad.len() as u64, &2.into()));
}

#[test]
fn requests_of_zero_length_are_skipped_and_reported() {
    let text = "1000 0 0 8 0\n2000 0 8 0 0\n3000 0 8 0 1\n4000 0 16 8 1\n";
    let json = accepted(text.as_bytes(), &["--format", "mqsim"]);
    let skipped = &json["trace"]["skipped"];
    assert_eq!((&json["trace"]["requests"], &skipped[0]["count"]), (&2.into(), &2.into()));
    assert_eq!(skipped[0]["first_line"], 2);
    let args = ["report", "-", "--format", "mqsim", "--passes", "1", "--what-if", "none"];
    let run = Run::with_input(&args, text.as_bytes());
    assert!(
        run.stdout.contains("skipped, the first at 2: request of zero length"),
        "{}",
        run.stdout
    );
}

#[test]
fn line_ends_marks_and_times_of_other_systems() {
    let text = [event("1.0", "0", "8"), event("2.0", "8", "8")].concat();
    let plain = accepted(text.as_bytes(), &[]);
    let same = |bytes: &[u8]| {
        let json = accepted(bytes, &[]);
        assert_eq!(json["result"], plain["result"]);
        assert_eq!(json["trace"]["skipped"], serde_json::json!([]));
    };
    same(text.replace('\n', "\r\n").as_bytes());
    same(["\u{feff}", &text].concat().as_bytes());
    same(text.trim_end().as_bytes());
    let early = "-5,R,0,4096,1\n";
    let json = accepted("0,R,0,4096,1\n0,W,4096,4096,3\n".as_bytes(), &[]);
    assert_eq!(json["trace"]["duration_ns"], 2000);
    let mixed = ["0,R,0,4096,1\n", early, "0,R,0,4096,-7\n"].concat();
    let json = accepted(mixed.as_bytes(), &["--format", "alibaba"]);
    assert!(json["trace"]["requests"].as_u64().unwrap() >= 1);
}

#[test]
fn times_beyond_simulated_time_are_refused() {
    let text = [event("1.0", "0", "8"), event("4000000000.0", "8", "8")].concat();
    let json = accepted(text.as_bytes(), &[]);
    assert_eq!(json["result"]["simulated_ns"].as_u64().unwrap() / 1_000_000_000, 3_999_999_999);
    let message = "request 2 comes after more than 292 years of simulated time";
    refused(&["-", "--passes", "5"], text.as_bytes(), "standard input", message);
    refused(&["-", "--pace", "open:1e-300"], text.as_bytes(), "standard input", message);
    // A closed loop does not use the times of the trace.
    accepted(text.as_bytes(), &["--pace", "closed:1"]);
}

#[test]
fn zero_bytes_inside_a_text_only_skip_their_line() {
    let text = [event("1.0", "0", "8"), "\0\0\0\0\n".into(), event("2.0", "8", "8")].concat();
    for flags in [&[][..], &["--format", "ftrace"]] {
        let json = accepted(text.as_bytes(), flags);
        assert_eq!(json["trace"]["requests"], 2);
        let reason = "line with a NUL byte";
        let skipped = serde_json::json!([{"reason": reason, "count": 1, "first_line": 2}]);
        assert_eq!(json["trace"]["skipped"], skipped);
    }
}

#[test]
fn names_cannot_drive_the_terminal_or_the_page() {
    let evil = "\x1b]0;owned\x07\x1b[2J<script>alert(1)</script>\u{202e}";
    let text = [
        issue("1.0", "7,0", "0", "8", evil),
        format!(" x-1 [001] ..... 1.5: tracing_mark_write: phase {evil}\n"),
        issue("2.0", "7,0", "8", "8", evil),
    ];
    let text = text.concat();
    let folder = folder();
    let page = folder.path().join("\x1b[31mreport.html");
    let html = page.to_str().unwrap();
    for args in [&["trace", "info", "-"][..], &["report", "-", "--passes", "1", "--html", html]] {
        let run = Run::with_input(args, text.as_bytes());
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert!(!run.stdout.contains(|c: char| c.is_control() && c != '\n'), "{}", run.stdout);
    }
    let page = fs::read_to_string(page).unwrap();
    assert!(!page.contains("<script>alert") && !page.contains('\x1b'));
    // Messages on standard error quote names too.
    let path = folder.path().join("\x1b[31mno\nne");
    for args in [
        &["trace", "info", path.to_str().unwrap()][..],
        &["report", path.to_str().unwrap()],
        &["report", "-", "--phase", "none"],
        &["report", "-", "--device", path.with_extension("toml").to_str().unwrap()],
    ] {
        let run = Run::with_input(args, text.as_bytes());
        assert_eq!((run.code, run.stderr.lines().count()), (2, 1), "{}", run.stderr);
        let message = run.stderr.trim_end();
        assert!(!message.contains(char::is_control), "{message:?}");
    }
    let message = prism(&["report", "-", "--device", "\x1b[31mfast"]).stderr;
    assert!(!message.contains(|c: char| c.is_control() && c != '\n'), "{message:?}");
}

#[test]
fn a_trace_of_many_devices_stays_readable() {
    let text: String = (0..100_000)
        .map(|i| issue(&format!("{i}.0"), &format!("{},{}", i / 256, i % 256), "0", "8", "dd"))
        .collect();
    let json = accepted(text.as_bytes(), &[]);
    assert_eq!(json["trace"]["devices"].as_array().unwrap().len(), 64);
    assert_eq!(json["trace"]["requests"], 100_000);
    let run = Run::with_input(&["trace", "info", "-"], text.as_bytes());
    assert!(run.stdout.lines().count() < 80, "{}", run.stdout);
    refused(&["-", "--source", "x"], text.as_bytes(), "standard input", "and 99980 more");
}

#[test]
fn invalid_device_files() {
    let folder = folder();
    let device = &path(&folder, "d.toml");
    let trace = sample("f2fs-rocksdb.ftrace.zst");
    let check = |text: &str, parts: &[&str]| {
        fs::write(device, text).unwrap();
        for part in parts {
            refused(&[&trace, "--device", device], b"", device, part);
        }
    };
    // Without the comments at the ends of lines, which messages would repeat.
    let bare = |line: &str| format!("{}\n", line.split("  #").next().unwrap_or(line).trim_end());
    let preset: String = DC_TLC.lines().map(bare).collect();
    let with = |from: &str, to: &str| {
        assert!(preset.contains(from), "{from}");
        preset.replace(from, to)
    };
    check(&with("t_read = \"60us\"\n", ""), &["line 12 ([flash]): missing field `t_read`"]);
    check(
        &with("t_read = \"60us\"", "t_read = 60"),
        &["line 21 (t_read = 60): give a time such as"],
    );
    check(&with("t_read = \"60us\"", "t_read = \"-60us\""), &["line 21 (t_read = \"-60us\")"]);
    check(&with("t_read = \"60us\"", "t_read = \"60h\""), &["flash.t_read", "ten seconds"]);
    check(&with("channels = 12", "channels = 0"), &["channels"]);
    check(&with("channels = 12", "channels = 4000000000"), &["channels"]);
    check(&with("channels = 12", "channels = -1"), &["line 14 (channels = -1)"]);
    check(&with("planes = 2", "plains = 2"), &["plains"]);
    check(&with("capacity = \"4TB\"", "capacity = \"40TB\""), &["capacity"]);
    check(&with("endurance = 3000", "endurance = 0"), &["flash.endurance"]);
    check("not a device", &["line 1"]);
    check("", &["name"]);
    fs::write(device, [0xff, 0xfe, 0x00]).unwrap();
    refused(&[&trace, "--device", device], b"", device, "UTF-8");
    fs::remove_file(device).unwrap();
    refused(&[&trace, "--device", device], b"", device, "there is no such file");
    let known = prism_ssd::DriveSpec::preset_names().chain(["invalid value 'fast'"]);
    common::refused(&["report", &trace, "--device", "fast"], &known.collect::<Vec<_>>());
    fs::write(device, DC_TLC).unwrap();
    let json = report(&[&trace, "--device", device, "--passes", "1"]);
    assert_eq!(json["device"]["name"], "dc-tlc");
}

#[test]
fn invalid_flags() {
    let trace = sample("f2fs-rocksdb.ftrace.zst");
    let check = |flags: &[&str], message| {
        common::refused(&[&["report", trace.as_str()], flags].concat(), &[message]);
    };
    check(&["--capacity", "64"], "unit");
    check(&["--capacity", "0GiB"], "a capacity above 0");
    check(&["--capacity", "99999999999TiB"], "99999999999TiB");
    check(&["--pace", "closed"], "closed:32");
    check(&["--pace", "open:nan"], "not a speed");
    check(&["--passes", "0"], "of at least 1");
    check(&["--state", "dirty"], "states are empty, filled, filled:SHARE, preconditioned");
    check(&["--state", "filled:2"], "not a share from 0 to 1");
    check(&["--state", "none.prism-state"], "none.prism-state: there is no such file");
    check(&["--phase", "none"], "its phases are: mkfs mount app");
    check(&["--source", "8,0"], "its devices are: 259,0");
    check(&["--format", "csv"], "[possible values: ftrace, ");
    check(&["--format", "alibabba"], "tip: a similar value exists: 'alibaba'");
    check(&["--device", "dc-tcl"], "tip: a similar value exists: 'dc-tlc'");
    check(&["--disorder", "30"], "unit");
    check(&["--seed", "one"], "--seed");
}

#[test]
fn without_a_trace_the_user_learns_where_to_get_one() {
    for command in [&["report"][..], &["trace", "info"]] {
        let ways = ["<TRACE>", "samples/", "prism capture", "prism trace generate", "--help"];
        common::refused(command, &ways);
    }
}

/// Feeds a long stream to the report under a memory limit, and returns its exit code and its
/// messages. The stream is produced while it is read.
fn within_memory(megabytes: u64, flags: &str, stream: impl Fn(&mut dyn Write)) -> (i32, String) {
    let limit = megabytes * 1024;
    let prism = env!("CARGO_BIN_EXE_prism");
    let mut child = Command::new("sh")
        .args(["-c", &format!("ulimit -v {limit}; exec {prism} report - {flags}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    stream(&mut input);
    drop(input);
    let output = child.wait_with_output().unwrap();
    (output.status.code().expect("no signal"), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn endless_lines_and_bombs_stay_within_memory() {
    // More bytes than the limit of memory, in one line.
    let line = |out: &mut dyn Write| {
        for _ in 0..400 {
            // The reader may close the pipe early.
            if out.write_all(&vec![b'a'; 1 << 20]).is_err() {
                return;
            }
        }
    };
    let (code, said) = within_memory(256, "--format ftrace", line);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("the only line is no request"), "{said}");
    // Zeros pack ten thousand times smaller than they are.
    let mut packer = zstd::Encoder::new(Vec::new(), 1).unwrap();
    for _ in 0..400 {
        packer.write_all(&vec![b'0'; 1 << 20]).unwrap();
    }
    let bomb = packer.finish().unwrap();
    assert!(bomb.len() < 1 << 20);
    let (code, said) = within_memory(256, "--format ftrace", |out| {
        let _ = out.write_all(&bomb);
    });
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("the only line is no request"), "{said}");
}

#[test]
fn a_drive_beyond_the_memory_is_refused_in_one_line() {
    let requests = |out: &mut dyn Write| {
        let _ = out.write_all(b"0,W,0,4096,1000000\n0,W,8192,4096,1000100\n");
    };
    // The smaller limit is met by the first drive, the larger one by those of the what-ifs.
    for megabytes in [150, 400] {
        let (code, said) = within_memory(megabytes, "--capacity 64GiB --passes 1", requests);
        assert_eq!((code, said.lines().count()), (2, 1), "{said}");
        assert!(said.starts_with("prism: not enough memory"), "{said}");
        assert!(said.contains("--capacity"), "{said}");
    }
}

/// Whatever does not fit, one line says so: a column of a drive or anything else.
#[test]
fn every_limit_of_memory_is_met_in_one_line() {
    let requests = |out: &mut dyn Write| {
        for i in 0..30_000u64 {
            let line = format!("0,W,{},4096,{}\n", i * 7 % 1000 * 4096, i * 1000);
            if out.write_all(line.as_bytes()).is_err() {
                return;
            }
        }
    };
    // Which limit is met first depends on the build; so several are tried, all above the size of
    // the program itself.
    let program = std::fs::metadata(env!("CARGO_BIN_EXE_prism")).unwrap().len() >> 20;
    let mut refused = 0;
    for megabytes in (program + 34..500).step_by(50) {
        let (code, said) = within_memory(megabytes, "--passes 1", requests);
        if code == 0 {
            assert_eq!(said, "", "{megabytes} MB");
            break;
        }
        assert_eq!((code, said.lines().count()), (2, 1), "{megabytes} MB: {said}");
        assert!(said.starts_with("prism: not enough memory"), "{megabytes} MB: {said}");
        assert!(said.contains("--capacity") && said.contains("ulimit -v"), "{said}");
        refused += 1;
    }
    assert!(refused > 0, "the smallest limit is enough for everything");
}
