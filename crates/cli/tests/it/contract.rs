//! The contract in `prism report`: JSON, conditions, comparisons, and names of address ranges.

use crate::common::{flat, folder, good, json, path, prism, refused, sample, whole_report};
use serde_json::Value;

const RULES: [&str; 5] = [
    "request_scale",
    "locality",
    "aligned_sequentiality",
    "grouping_by_death_time",
    "uniform_lifetime",
];

/// The JSON of `prism report ARGS`, which must succeed without messages.
fn report(args: &[&str]) -> Value {
    json(&[&["report"], args, &["--json", "-"]].concat())
}

fn wal() -> String {
    sample("ext4-sqlite-wal.ftrace.zst")
}

#[test]
fn every_rule_has_score_verdict_price_and_offenders() {
    let (_, json) = whole_report();
    for rule in RULES {
        let rule = &json["rules"][rule];
        let score = rule["score"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&score), "{rule}");
        let [kept, broken] =
            ["kept", "broken"].map(|line| rule["thresholds"][line].as_f64().unwrap());
        let verdict = match score {
            score if score >= kept => "kept",
            score if score >= broken => "strained",
            _ => "broken",
        };
        assert_eq!(rule["verdict"], verdict);
        for offender in rule["offenders"].as_array().unwrap() {
            let share = offender["share"].as_f64().unwrap();
            assert!(share > 0.0 && share <= 1.0 + 1e-9, "{offender}");
            assert!(offender["by"].is_string() && offender["name"].is_string());
        }
    }
    // The trace waits for each commit, and writes the same few megabytes again and again.
    assert_eq!(json["rules"]["request_scale"]["verdict"], "broken");
    assert_eq!(json["rules"]["locality"]["verdict"], "strained");
    let what_ifs = json["what_if"].as_array().unwrap();
    assert!(what_ifs.len() >= 9, "{} what-ifs", what_ifs.len());
    let left_out = json["what_if_left_out"].as_array().unwrap();
    assert_eq!(what_ifs.len() + left_out.len(), 15, "{left_out:?}");
    for what_if in what_ifs {
        assert!(what_if["change"].is_string() && what_if["upper_bound"].is_boolean());
        for side in ["before", "after"] {
            for key in ["write_amplification", "p99_ns", "lifetime_days"] {
                let value = what_if[side][key].as_f64().unwrap();
                assert!(value > 0.0, "{what_if}");
            }
        }
    }
    // A what-if that is compared with the report's own replay has its figures.
    let streams = what_ifs.iter().find(|what_if| what_if["change"] == "streams").unwrap();
    assert_eq!(streams["upper_bound"], true);
    let close = |a: &Value, b: &Value| (a.as_f64().unwrap() / b.as_f64().unwrap() - 1.0).abs();
    let (before, result) = (&streams["before"], &json["result"]);
    assert!(close(&before["write_amplification"], &result["write_amplification"]) < 1e-9);
    assert!(close(&before["lifetime_days"], &result["lifetime"]["days"]) < 1e-9);
    let price = &json["rules"]["grouping_by_death_time"]["price"];
    assert_eq!(price["change"], "streams");
}

#[test]
fn what_ifs_are_chosen() {
    let json = report(&[&wal(), "--phase", "app", "--what-if", "merge,over-provisioning"]);
    let changes: Vec<_> =
        json["what_if"].as_array().unwrap().iter().map(|one| one["change"].clone()).collect();
    assert_eq!(changes, ["merge", "over-provisioning"]);
    assert_eq!(json["rules"]["locality"]["price"], Value::Null);
    refused(&["report", &wal(), "--what-if", "magic"], &["\"magic\" is unknown"]);
}

#[test]
fn conditions_decide_the_exit_code() {
    let check = |conditions: &[&str], code: i32, said: &str| {
        let mut args = vec!["report", "", "--phase", "app", "--what-if", "none"];
        let wal = wal();
        args[1] = &wal;
        conditions.iter().for_each(|condition| args.extend(["--fail-on", condition]));
        let run = prism(&args);
        assert_eq!(run.code, code, "{conditions:?}: {}", run.stderr);
        assert!(run.stderr.contains(said), "{conditions:?}: {}", run.stderr);
        assert_eq!(run.stdout.is_empty(), code == 2, "the report is printed all the same");
    };
    check(&["write_amplification>2"], 0, "");
    check(&["request_scale<0.5"], 1, "--fail-on request_scale<0.5: it is 0.");
    check(&["write_amplification>2", "p99>1us"], 1, "p99>1us");
    check(&["lifetime_days<1"], 0, "");
    check(&["iops<1"], 2, "\"iops\" is unknown");
}

#[test]
fn two_traces_and_two_drives_are_compared() {
    let small = sample("f2fs-rocksdb.ftrace.zst");
    let quick = ["--phase", "app", "--what-if", "none"];
    let with = |other: &str| report(&[&[wal().as_str(), "--against", other], &quick[..]].concat());
    let json = with(&small);
    let alone = report(&[&[small.as_str()], &quick[..]].concat());
    assert_eq!(json["against"]["name"], small);
    for key in ["result", "rules", "trace"] {
        assert_eq!(json["against"][key], alone[key], "{key}");
    }
    let json = with("consumer-nvme");
    assert_eq!(json["device"]["name"], "dc-tlc");
    assert_eq!(json["against"]["device"]["name"], "consumer-nvme");
    refused(&["report", &wal(), "--against", "nowhere.txt"], &["nowhere.txt"]);
    let text = good(&[&["report", &wal(), "--against", &small], &quick[..]].concat());
    assert!(text.contains("the other / this"), "{text}");
}

/// Only the drive of the report is changed by --set and saved, and what it moves is that of a pass.
#[test]
fn a_comparison_leaves_the_other_drive_and_the_snapshot_alone() {
    let folder = folder();
    let small = sample("f2fs-rocksdb.ftrace.zst");
    let quick = ["report", &small, "--what-if", "none", "--passes", "3"];
    let run = |more: &[&str]| prism(&[&quick[..], more].concat());
    let [both, alone] = ["both.prism-state", "alone.prism-state"].map(|name| path(&folder, name));
    let weak = ["--set", "flash.endurance=500", "--json", "-", "--against", "dc-tlc"];
    let json = run(&weak).json();
    let cycles = |of: &Value| of["device"]["endurance_cycles"].as_u64();
    assert_eq!((cycles(&json), cycles(&json["against"])), (Some(500), Some(3000)));
    let written = json["trace"]["bytes_written"].as_f64().expect("a number") / 1048576.0;
    let text = run(&["--against", &wal(), "--save-state", &both]).good();
    let row = text.lines().find(|line| line.contains("written a pass")).expect("a row");
    assert!(row.contains(&format!("{written:.1} MiB")), "{row}: not {written}");
    run(&["--save-state", &alone]).good();
    let read = |path: &String| std::fs::read(path).expect("the snapshot is written");
    assert_eq!(read(&both), read(&alone));
}

#[test]
fn offenders_are_named_by_the_layout() {
    let layout = sample("layouts/ext4-4GiB.toml");
    let args = [&wal(), "--phase", "app", "--what-if", "none", "--layout", &layout];
    let json = report(&args);
    let offenders = json["rules"]["grouping_by_death_time"]["offenders"].as_array().unwrap();
    assert!(offenders.iter().any(|o| o["name"] == "ext4 journal"), "{offenders:?}");
    let folder = folder();
    let broken = path(&folder, "broken.toml");
    std::fs::write(&broken, "name = 5").unwrap();
    refused(&["report", &wal(), "--layout", &broken], &["broken.toml"]);
}

/// In a recording with inodes and file names, offenders are files.
#[test]
fn offenders_are_files_where_the_trace_names_them() {
    let (path, map) =
        (sample("formats/bpf-inode-name.txt.zst"), sample("maps/bpf-inode-name.toml"));
    let json = report(&[&path, "--map", &map, "--what-if", "none", "--passes", "1"]);
    let by = |rule: &str, dimension: &str| -> Vec<(String, f64)> {
        let offenders = json["rules"][rule]["offenders"].as_array().unwrap().iter();
        let named = offenders.filter(|offender| offender["by"] == dimension);
        named.map(|o| (o["name"].as_str().unwrap().into(), o["share"].as_f64().unwrap())).collect()
    };
    for rule in ["request_scale", "aligned_sequentiality", "grouping_by_death_time"] {
        let files: Vec<_> = by(rule, "file").into_iter().map(|(name, _)| name).collect();
        for file in ["s.db-wal", "s.db"] {
            assert!(files.contains(&file.into()), "{rule}: {file} is not among {files:?}");
        }
        assert!(by(rule, "directory").is_empty(), "{rule}: the names have no directory");
    }
    // The block device's own inode, through which the journal is written, has no name.
    let garbage = by("grouping_by_death_time", "file");
    assert!(garbage.iter().any(|(name, _)| name == "inode 7340032"), "{garbage:?}");
    // Completions are not recorded, so requests count as issued one at a time: how far those of a
    // file are short of full scale can be summed from the text.
    let full = json["rules"]["request_scale"]["figures"]["full_scale_bytes"].as_u64().unwrap();
    let page = json["device"]["page_bytes"].as_u64().unwrap();
    let text = zstd::decode_all(std::fs::File::open(&path).unwrap()).unwrap();
    let mut short = std::collections::BTreeMap::<String, f64>::new();
    for line in String::from_utf8(text).unwrap().lines() {
        let field = |key: &str| line.split(' ').find_map(|f| f.strip_prefix(key)).unwrap();
        if field("op=") != "2" {
            let number = |key| field(key).parse::<u64>().unwrap();
            let (first, len) = (number("sector=") * 512, number("bytes="));
            let pages = (first + len).div_ceil(page) - first / page;
            let part = ((pages * page) as f64 / full as f64).min(1.0);
            *short.entry(field("name=").into()).or_default() += 1.0 - part;
        }
    }
    let all: f64 = short.values().sum();
    for (file, share) in by("request_scale", "file") {
        assert!((short[&file] / all - share).abs() < 1e-9, "{file}: {share}, {short:?}");
    }
}

#[test]
fn a_report_says_why_nothing_was_simulated() {
    let msr = sample("formats/msr.csv");
    let text = |args: &[&str]| flat(&good(&[&["report", &msr], args].concat()));
    let left_out = text(&["--what-if", "delay-discards"]);
    assert!(left_out.contains("No change was simulated."), "{left_out}");
    assert!(left_out.contains("Delay discards: not simulated because the trace discards nothing."));
    assert!(!text(&["--what-if", "none"]).contains("What would change"));

    let folder = folder();
    let file = path(&folder, "a.prism-state");
    assert!(!text(&["--save-state", &file, "--what-if", "none"]).contains("snapshot"));
    let saved = text(&["--state", &file]);
    assert!(saved.contains("The drive starts from a snapshot, which fits no changed drive"));
}

#[test]
fn discarded_data_and_too_little_data_are_distinguished() {
    let folder = folder();
    let [map, trace] = ["map.toml", "trace"].map(|name| path(&folder, name));
    let columns = "delimiter = \",\"\n[columns]\nissue = { column = 1, unit = \"us\" }\n\
                   operation = { column = 2 }\noffset = { column = 3, unit = \"4KiB\" }\n\
                   length = { column = 4, unit = \"4KiB\" }\n[operations]\nwrite = [\"W\"]\n\
                   discard = [\"D\"]\n";
    std::fs::write(&map, columns).unwrap();
    let check = |writes: u64, says: &str| {
        let line = |i: u64| format!("{i},W,{i},1\n");
        let all: String = (0..writes).map(line).collect();
        std::fs::write(&trace, format!("{all}{writes},D,0,{writes}\n")).unwrap();
        let text = flat(&good(&["report", &trace, "--map", &map, "--what-if", "none"]));
        assert!(text.contains(says) && text.contains("no data is valid at the end"), "{text}");
    };
    check(100, "Less than a block is written.");
    check(1024, "No filled block holds valid data");
}

#[test]
fn impossible_comparisons_and_layouts_are_refused() {
    let report = |args: &[&str]| prism(&[&["report", "--what-if", "none"], args].concat());
    report(&["-", "--against", "-"]).refused(&["standard input is already the trace"]);
    let folder = folder();
    let two = path(&folder, "two.csv");
    std::fs::write(&two, "0,W,0,4096,1000\n1,W,0,4096,2000\n").unwrap();
    let layout = sample("layouts/ext4-4GiB.toml");
    let alibaba = [two.as_str(), "--format", "alibaba"];
    let named = [&alibaba[..], &["--layout", &layout]].concat();
    report(&named).refused(&["the trace has 2; choose one with --source"]);
    report(&[&["--source", "1"], &named[..]].concat()).good();
}
