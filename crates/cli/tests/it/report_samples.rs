//! Every shipped sample goes through `prism trace info` and `prism report`, has the
//! figures it was captured with, and passes the checks of every report.

use crate::common::{self, Run, json, prism, quiet, report, sample};

/// A sample, and the flags it needs.
struct Sample {
    name: &'static str,
    map: Option<&'static str>,
    /// `empty` if the addresses need a drive too large to fill for a few requests.
    state: &'static str,
}

const fn small(name: &'static str) -> Sample {
    Sample { name, map: None, state: "filled" }
}

/// Reports `sample` once through and checks what holds for every report.
fn check(sample_file: &Sample, format: &str, counts: [u64; 5], bytes: [u64; 2]) {
    let path = sample(sample_file.name);
    let map = sample_file.map.map(sample);
    let mut flags: Vec<&str> = vec![&path];
    if let Some(map) = &map {
        flags.extend(["--map", map]);
    }
    let info = json(&[&["trace", "info"], &flags[..], &["--json", "-"]].concat());
    flags.extend(["--passes", "1", "--state", sample_file.state]);
    let json = report(&flags);
    assert_eq!(json["trace"], info["trace"], "{path}: both commands see the same trace");
    let trace = &json["trace"];
    assert_eq!(trace["format"], format, "{path}");
    let keys = ["reads", "writes", "discards", "write_zeroes", "flushes"];
    assert_eq!(keys.map(|key| trace[key].as_u64().unwrap()), counts, "{path}");
    let keys = ["bytes_read", "bytes_written"];
    assert_eq!(keys.map(|key| trace[key].as_u64().unwrap()), bytes, "{path}");
    common::assert_lawful(&json);
}

#[test]
fn recordings_of_linux() {
    check(
        &small("ext4-sqlite-wal.ftrace.zst"),
        "ftrace",
        [125, 10_709, 67, 35, 9_913],
        [541_696, 130_084_864],
    );
    check(
        &small("f2fs-rocksdb.ftrace.zst"),
        "ftrace",
        [63, 275, 10, 0, 36],
        [1_314_816, 75_563_008],
    );
    check(
        &small("formats/blkparse-default.txt"),
        "blkparse",
        [83, 288, 1, 0, 11],
        [339_968, 99_602_432],
    );
    check(
        &small("formats/nv.blktrace.1.zst"),
        "blktrace",
        [4_320, 5_394, 2, 0, 569],
        [17_694_720, 126_283_776],
    );
    let perf = Sample { state: "empty", ..small("formats/perf-script-block.txt") };
    check(&perf, "perf-script", [13, 30, 0, 0, 3], [172_032, 26_279_936]);
}

#[test]
fn a_capture_names_the_files_that_break_the_rules() {
    let capture = small("ext4-sqlite.capture.parquet");
    check(&capture, "capture-bpf", [28, 3_962, 1, 8, 2_626], [114_688, 68_075_520]);
    let path = sample(capture.name);
    let once = ["--phase", "app", "--passes", "1", "--what-if", "none"];
    let text = prism(&[&["report", &path], &once[..]].concat()).stdout;
    let rule = |name: &str| {
        let rest = text.split_once(name).unwrap_or_else(|| panic!("no {name}: {text}")).1;
        let finding = rest.split_once("Worst: ").expect("an offender is named").1;
        finding.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(rule("Request scale"), "file orders.db-wal");
    assert_eq!(rule("Grouping by death time"), "file orders.db");
}

#[test]
fn logs_of_other_tools() {
    check(&small("formats/fio-v3.iolog"), "fio-iolog", [19, 21, 0, 0, 4], [77_824, 86_016]);
    let bpftrace = Sample {
        name: "formats/bpftrace-bio.csv",
        map: Some("maps/bpftrace-bio.toml"),
        state: "empty",
    };
    check(&bpftrace, "map", [515, 92, 153, 0, 0], [46_419_968, 10_252_288]);
    let names = Sample {
        name: "formats/bpf-inode-name.txt.zst",
        map: Some("maps/bpf-inode-name.toml"),
        state: "empty",
    };
    check(&names, "map", [0, 3046, 0, 0, 2954], [0, 38_625_280]);
}

#[test]
fn one_recording_in_four_formats_is_the_same_requests() {
    let same = |name: &'static str, format: &str| {
        check(&small(name), format, [63, 275, 0, 0, 0], [1_314_816, 75_563_008]);
    };
    same("formats/msr.csv", "msr");
    same("formats/alibaba.csv", "alibaba");
    same("formats/tencent.csv", "tencent");
    same("formats/mqsim.txt", "mqsim");
}

#[test]
fn the_application_alone_is_what_was_counted_at_the_capture() {
    let app = |name: &str| {
        let json = report(&[&sample(name), "--phase", "app", "--passes", "1"]);
        let number = |key: &str| json["trace"][key].as_u64().unwrap();
        let counts = ["reads", "writes", "flushes", "discards"].map(number);
        let megabytes = |key| (number(key) as f64 / 1e6).round() as u64;
        common::assert_lawful(&json);
        assert_eq!(json["trace"]["phase"], "app");
        (
            counts,
            ["bytes_written", "unique_bytes_written"].map(megabytes),
            number("queue_depth_max"),
        )
    };
    let wal = app("ext4-sqlite-wal.ftrace.zst");
    assert_eq!(wal, ([109, 10_676, 9_894, 25], [128, 19], 44));
    let rocksdb = app("f2fs-rocksdb.ftrace.zst");
    assert_eq!(rocksdb, ([1, 183, 29, 0], [47, 47], 16));
}

/// Every example of `--help` that names a shipped file runs unchanged.
#[test]
fn the_examples_in_help_work() {
    let folder = common::folder();
    std::os::unix::fs::symlink(sample(""), folder.path().join("samples")).unwrap();
    let commands: [&[&str]; 7] = [
        &["report"],
        &["trace", "info"],
        &["trace", "convert"],
        &["trace", "generate"],
        &["validate"],
        &["bench"],
        &["bench", "flash"],
    ];
    let mut ran = 0;
    for command in commands {
        let help = quiet(&[command, &["--help"]].concat());
        let examples: Vec<&str> =
            help.lines().map(str::trim).filter(|line| line.starts_with("prism ")).collect();
        assert!(!examples.is_empty(), "{command:?} has no example");
        for example in examples.iter().filter(|example| is_quick(example)) {
            let mut words: Vec<&str> =
                example.split_whitespace().skip(1).map(|word| word.trim_matches('\'')).collect();
            if words[0] == "report" {
                // Other tests simulate what-ifs.
                words.extend(["--what-if", "none"]);
            }
            Run::inside(folder.path(), &words).quiet();
            ran += 1;
        }
    }
    assert!(ran >= 7, "{ran} examples ran");
}

/// Whether an example can run in a test: `validate` and `bench` take minutes.
fn is_quick(example: &str) -> bool {
    !example.starts_with("prism validate") && !example.starts_with("prism bench")
}
