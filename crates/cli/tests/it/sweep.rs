//! `prism sweep`: designs, the data set, going on after a kill, parts, errors.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;

use crate::common::{self, Run, folder, sample, signal, words};

/// A small drive and 4 MiB of random writes: a design takes some milliseconds.
const BASE: &str = "[base]\ncapacity = \"64MiB\"\nrw = \"randwrite\"\nbs = \"4k\"\n\
                    io_size = \"4m\"\nftl.free_blocks_low = 3\n";

/// Writes the file of a sweep into `at`, and returns its name.
fn study(at: &Path, rest: &str) -> &'static str {
    fs::write(at.join("s.toml"), format!("{rest}\n{BASE}")).unwrap();
    "s.toml"
}

/// Runs `prism sweep s.toml ARGS --json -` in `at`, which must succeed.
fn sweep(at: &Path, args: &[&str]) -> Value {
    Run::inside(at, &[&["sweep", "s.toml", "--json", "-"], args].concat()).json()
}

/// The rows of a Parquet file by column.
fn rows(path: &Path) -> Vec<serde_json::Map<String, Value>> {
    let reader = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
    let plain = |(name, field): (&String, &Field)| {
        let value = match field {
            Field::Null => Value::Null,
            Field::Bool(value) => (*value).into(),
            Field::Long(value) => (*value).into(),
            Field::Double(value) => (*value).into(),
            Field::Str(text) => text.as_str().into(),
            other => panic!("{name} has the type of {other:?}"),
        };
        (name.clone(), value)
    };
    let rows = reader.get_row_iter(None).unwrap();
    rows.map(|row| row.unwrap().get_column_iter().map(plain).collect()).collect()
}

fn column(rows: &[serde_json::Map<String, Value>], name: &str) -> Vec<Value> {
    rows.iter().map(|row| row.get(name).unwrap_or_else(|| panic!("{name}")).clone()).collect()
}

/// The names in the folder, without those of `except`.
fn names(at: &Path, except: &[&str]) -> Vec<String> {
    let names = common::names(at).into_iter();
    names.filter(|name| !except.contains(&name.as_str())).collect()
}

#[test]
fn every_combination_sample_and_seed_is_a_row_with_all_inputs() {
    let at = folder();
    let text = "repeats = 2\n[grid]\niodepth = [1, 8]\n[random]\ndesigns = 3\n\
                ftl.victim = { choice = [\"greedy\", \"fifo\"] }\n\
                ftl.free_blocks_high = { uniform = [3, 9] }\n\
                flash.t_erase = { log_uniform = [\"1ms\", \"10ms\"] }\n\
                drive.write_buffer = { uniform = [\"1MiB\", \"4MiB\"], step = \"64KiB\" }";
    study(at.path(), text);
    let summary = sweep(at.path(), &[]);
    assert_eq!((&summary["designs"], &summary["failed"]), (&12.into(), &0.into()), "{summary}");
    let swept = "iodepth ftl.victim ftl.free_blocks_high flash.t_erase drive.write_buffer seed";
    assert_eq!(summary["swept"], serde_json::json!(swept.split(' ').collect::<Vec<_>>()));
    let rows = rows(&at.path().join("s.parquet"));
    assert_eq!(column(&rows, "design"), (0..12).map(Value::from).collect::<Vec<_>>());
    let depths = [[1; 6], [8; 6]].concat();
    assert_eq!(column(&rows, "iodepth"), depths.into_iter().map(Value::from).collect::<Vec<_>>());
    let seeds = [1, 2].repeat(6);
    assert_eq!(column(&rows, "seed"), seeds.into_iter().map(Value::from).collect::<Vec<_>>());
    // Samples are the same for each point of the grid and each seed.
    for name in ["ftl.free_blocks_high", "flash.t_erase", "drive.write_buffer_bytes"] {
        let values = column(&rows, name);
        assert_eq!(values[..6], values[6..], "{name}");
        assert!(values.chunks(2).all(|pair| pair[0] == pair[1]) && values[0] != values[2]);
    }
    for (text, number) in
        column(&rows, "flash.t_erase").iter().zip(column(&rows, "flash.t_erase_ns"))
    {
        assert_eq!(text.as_str().unwrap(), format!("{number}ns"));
        assert!((1_000_000..=10_000_000).contains(&number.as_i64().unwrap()), "{number}");
    }
    let buffers = column(&rows, "drive.write_buffer_bytes");
    assert!(buffers.iter().all(|bytes| bytes.as_i64().unwrap() % 65_536 == 0), "{buffers:?}");
    let row = &rows[0];
    for (name, value) in [("device", "dc-tlc"), ("state", "filled"), ("bs", "4k")] {
        assert_eq!(row[name], value, "{name}");
    }
    assert_eq!(row["host_bytes_written"], 4 << 20);
    assert_eq!((&row["error"], &row["prism_version"]), (&Value::Null, &"0.1.0".into()));
    let hashes = column(&rows, "inputs_hash");
    assert!(hashes.iter().enumerate().all(|(i, hash)| !hashes[..i].contains(hash)), "{hashes:?}");
    assert_eq!(names(at.path(), &["s.toml"]), ["s.parquet"]);
}

#[test]
fn a_row_is_what_prism_sim_and_report_print() {
    let at = folder();
    study(at.path(), "[grid]\nop = [\"15%\"]\niodepth = [8]\nseed = [3]");
    sweep(at.path(), &[]);
    let row = &rows(&at.path().join("s.parquet"))[0];
    let line = "sim --capacity 64MiB --set ftl.free_blocks_low=3 --seed 3 --rw=randwrite \
                --bs=4k --io_size=4m --iodepth=8 --sweep op=15% --json -";
    let whole = common::json(&words(line));
    let result = &whole["rows"][0];
    assert_eq!(row["write_amplification"], result["write_amplification"]);
    assert_eq!(row["latency_write_p99_ns"], result["latency_ns"]["write"]["p99"]);
    assert_eq!(row["latency_write_count"], 1024);
    assert_eq!(row["flash_programs_gc"], result["flash"]["programs"]["gc"]);
    assert_eq!(row["write_iops"], result["write"]["iops"]);
    assert_eq!(row["device_capacity_bytes"], result["capacity_bytes"]);
    let trace = sample("formats/msr.csv");
    let text = format!("[base]\ntrace = \"{trace}\"\npasses = 1\n[grid]\npace = [\"closed:4\"]\n");
    fs::write(at.path().join("s.toml"), text).unwrap();
    sweep(at.path(), &[]);
    let row = &rows(&at.path().join("s.parquet"))[0];
    let report = common::report(&[&trace, "--passes=1", "--pace", "closed:4"]);
    let result = &report["result"];
    assert_eq!(row["write_amplification"], result["write_amplification"]);
    assert_eq!(row["latency_read_p99_ns"], result["latency_ns"]["read"]["p99"]);
    assert_eq!(row["score_request_scale"], report["rules"]["request_scale"]["score"]);
    assert_eq!((&row["passes"], &row["passes_run"]), (&1.into(), &1.into()));
}

#[test]
fn the_bytes_do_not_depend_on_jobs_parts_or_folders() {
    let text = "repeats = 3\n[grid]\niodepth = [1, 2, 4]\nftl.victim = [\"greedy\", \"fifo\"]";
    let at = folder();
    study(at.path(), text);
    let bytes = |name: &str| fs::read(at.path().join(name)).unwrap();
    sweep(at.path(), &["--jobs", "1", "-o", "one.parquet"]);
    sweep(at.path(), &["--jobs", "2", "-o", "two.parquet"]);
    assert_eq!(bytes("one.parquet"), bytes("two.parquet"));
    sweep(at.path(), &["--jobs", "1", "-o", "one.csv"]);
    sweep(at.path(), &["--jobs", "2", "-o", "two.csv"]);
    assert_eq!(bytes("one.csv"), bytes("two.csv"));
    assert_eq!(bytes("one.csv").split(|&byte| byte == b'\n').count(), 20);
    for part in ["3/4", "1/4", "2/4"] {
        let done = sweep(at.path(), &["--part", part, "-o", "two.parquet"]);
        assert_eq!((&done["kept"], &done["failed"]), (&0.into(), &0.into()), "{done}");
        let again = sweep(at.path(), &["--part", part, "-o", "two.parquet"]);
        assert_eq!(again["kept"], done["designs"], "it is not run again");
    }
    fs::remove_file(at.path().join("two.parquet")).unwrap();
    let done = sweep(at.path(), &["-o", "two.parquet"]);
    // The part that never ran has four designs.
    assert_eq!((&done["designs"], &done["kept"]), (&18.into(), &14.into()), "{done}");
    assert_eq!(bytes("one.parquet"), bytes("two.parquet"));
    let other = folder();
    study(other.path(), text);
    let there = other.path().join("s.toml").display().to_string();
    let said = Run::inside(at.path(), &["sweep", &there, "-o", "three.parquet"]).good();
    assert!(said.contains("18 designs, 0 of them failed"), "{said}");
    assert_eq!(bytes("one.parquet"), bytes("three.parquet"));
}

/// Starts the sweep in `at`, and waits until it has kept some rows.
fn started(at: &Path) -> Child {
    let kept = at.join("s.parquet.rows/1-of-1.rows");
    let count = || fs::read(&kept).map_or(0, |b| b.iter().filter(|&&b| b == b'\n').count());
    let before = count();
    let mut child = Command::new(env!("CARGO_BIN_EXE_prism"))
        .args(["sweep", "s.toml", "--jobs", "1"])
        .current_dir(at)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while count() < before + 4 {
        assert!(child.try_wait().unwrap().is_none(), "the sweep is over already");
        std::thread::sleep(Duration::from_millis(1));
    }
    child
}

#[test]
fn a_killed_sweep_goes_on_and_gives_the_same_bytes() {
    let at = folder();
    study(at.path(), "repeats = 120\n[grid]\niodepth = [4]");
    let output = at.path().join("s.parquet");
    let mut child = started(at.path());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!output.exists());
    let child = started(at.path());
    signal(child.id(), "INT");
    let status = child.wait_with_output().unwrap().status;
    assert_eq!(status.code(), Some(130));
    // SIGKILL leaves the temporary file of the output, SIGINT does not.
    let left = names(at.path(), &["s.toml", "s.parquet.rows"]);
    assert!(left.len() == 1 && left[0].starts_with(".prism-"), "{left:?}");
    let done = sweep(at.path(), &[]);
    let kept = done["kept"].as_u64().unwrap();
    assert!(done["designs"] == 120 && (3..120).contains(&kept), "{done}");
    let resumed = fs::read(&output).unwrap();
    assert!(!at.path().join("s.parquet.rows").exists());
    assert_eq!(sweep(at.path(), &[])["kept"], 0);
    assert!(fs::read(&output).unwrap() == resumed);
}

#[test]
fn changed_inputs_are_noticed() {
    let at = folder();
    let write = |name: &str, text: &str| fs::write(at.path().join(name), text).unwrap();
    let jobs = "[a]\nrw=randwrite\nio_size=1m\n[b]\nrw=read\nio_size=1m\n";
    write("j.fio", jobs);
    let trace = fs::read(sample("formats/msr.csv")).unwrap();
    fs::write(at.path().join("t.csv"), &trace).unwrap();
    let check = |text: &str, change: &dyn Fn(), undo: &dyn Fn()| {
        write("s.toml", text);
        sweep(at.path(), &["--part", "1/2"]);
        change();
        let why = "s.parquet.rows/1-of-2.rows: its 1 rows are of other inputs";
        Run::inside(at.path(), &["sweep", "s.toml"]).refused(&[why, "--restart"]);
        undo();
        assert_eq!(sweep(at.path(), &[])["kept"], 1);
        sweep(at.path(), &["--part", "1/2"]);
        change();
        assert_eq!(sweep(at.path(), &["--restart"])["kept"], 0);
    };
    let jobs_text = "[base]\ncapacity = \"64MiB\"\njobs = \"j.fio\"\n[grid]\nseed = [1, 2]\n";
    let changed = jobs_text.replace("[1, 2]", "[1, 3]");
    check(jobs_text, &|| write("s.toml", &changed), &|| write("s.toml", jobs_text));
    check(jobs_text, &|| write("j.fio", &jobs.replace("1m", "2m")), &|| write("j.fio", jobs));
    let of_trace = "[base]\ntrace = \"t.csv\"\npasses = 1\n[grid]\nseed = [1, 2]\n";
    let shorter = &trace[..trace[..trace.len() - 1].iter().rposition(|&b| b == b'\n').unwrap() + 1];
    check(of_trace, &|| fs::write(at.path().join("t.csv"), shorter).unwrap(), &|| {
        fs::write(at.path().join("t.csv"), &trace).unwrap()
    });
}

#[test]
fn a_design_that_fails_is_a_row_and_the_others_run() {
    let at = folder();
    let text = "[grid]\nftl.free_blocks_low = [3, 100000]\nsize = [\"1m\", \"1g\"]";
    study(at.path(), text);
    let said = Run::inside(at.path(), &["sweep", "s.toml"]).quiet();
    assert!(said.contains("4 designs, 3 of them failed"), "{said}");
    let rows = rows(&at.path().join("s.parquet"));
    let errors = column(&rows, "error");
    assert_eq!(errors[0], Value::Null);
    for (place, part) in [(1, "reaches beyond"), (2, "is 100000"), (3, "is 100000")] {
        assert!(errors[place].as_str().unwrap().contains(part), "{errors:?}");
        assert_eq!(rows[place]["write_amplification"], Value::Null);
    }
    assert!(rows[0]["write_amplification"].is_f64());
    // If all fail, there are inputs and errors, and no results.
    study(at.path(), "[grid]\nsize = [\"1g\", \"2g\"]");
    let summary = sweep(at.path(), &[]);
    assert_eq!((&summary["failed"], &summary["results"]), (&2.into(), &Value::Array(vec![])));
}

#[test]
fn options_of_one_job_and_several_traces_are_swept() {
    let at = folder();
    let jobs = "[a]\nrw=randwrite\nio_size=1m\n[b]\nrw=randread\nio_size=1m\n";
    fs::write(at.path().join("j.fio"), jobs).unwrap();
    let text = "[base]\ncapacity = \"64MiB\"\njobs = \"j.fio\"\niodepth = 2\n[grid]\n\
                job.a.iodepth = [1, 4]\n";
    fs::write(at.path().join("s.toml"), text).unwrap();
    sweep(at.path(), &[]);
    let all = rows(&at.path().join("s.parquet"));
    assert!(all.iter().all(|row| row["job_a_write_ios"] == 256 && row["job_b_read_ios"] == 256));
    let means = column(&all, "queue_depth_mean");
    assert!(means[0].as_f64() < means[1].as_f64(), "{means:?}");
    let traces = ["msr.csv", "blkparse-default.txt"].map(|name| sample(&format!("formats/{name}")));
    let text = format!("[base]\npasses = 1\n[grid]\ntrace = {traces:?}\nop = [\"7%\", \"50%\"]\n");
    fs::write(at.path().join("s.toml"), text).unwrap();
    assert_eq!(sweep(at.path(), &[])["failed"], 0);
    let all = rows(&at.path().join("s.parquet"));
    let spare = column(&all, "device_over_provisioning_effective");
    assert!(spare[0].as_f64() < spare[1].as_f64(), "{spare:?}");
    let bytes = column(&all, "host_bytes_written");
    assert!(bytes[0] == bytes[1] && bytes[0] != bytes[2], "{bytes:?}");
}

#[test]
fn bad_files_give_one_line_and_nothing_runs() {
    let at = folder();
    let check = |rest: &str, expected: &str| {
        study(at.path(), rest);
        let said = Run::inside(at.path(), &["sweep", "s.toml"]).refused(&[expected]);
        assert_eq!(said.lines().count(), 1, "{rest}: {said}");
        assert_eq!(names(at.path(), &["s.toml"]), Vec::<String>::new());
    };
    check("[grid]\na = = 1", "s.toml:2: ");
    check("[gird]\nop = [1]", "s.toml:1: gird: a sweep has base, grid, random and repeats (did");
    check("grid = 1", "s.toml:1: grid: this is a table");
    check("[grid]\niodepth = 4", "s.toml:2: [grid] iodepth: give a list of values");
    check(
        "[grid]\niodepht = [4]",
        "s.toml:2: [grid] iodepht=4: no axis of this name (did you mean",
    );
    check("[grid]\niodepth = [1, \"x\"]", "s.toml:2: [grid] iodepth: iodepth=\"x\"");
    check("[grid]\nbuffered = [1]", "s.toml:2: [grid] buffered=1: this fio option has no effect");
    check("[grid]\nftl.victm = [\"fifo\"]", "s.toml:2: [grid] ftl.victm=fifo: unknown field");
    check("[grid]\nftl.victim = [\"fifo\", \"best\"]", "no victim policy is called `best`");
    check("[grid]\nflash.t_read = [\"60\"]", "s.toml:2: [grid] flash.t_read=60: ");
    check("[grid]\ndevice = [\"dc-tlc\", \"none\"]", "there is no preset \"none\"");
    check(
        "[grid]\ndevice = [\"none.toml\"]",
        "s.toml:2: [grid] device: none.toml: there is no such",
    );
    check("[grid]\nop = [\"7%\", \"0%\"]", "s.toml:2: [grid] op=0%: ");
    check("[grid]\nseed = [1, -1]", "s.toml:2: [grid] seed=-1: a whole number is expected");
    check(
        "[grid]\njobs = [\"none.fio\"]",
        "s.toml:2: [grid] jobs: none.fio: there is no such file",
    );
    check("[grid]\njob.b.rw = [\"read\"]", "no job is called \"b\"; jobs are job");
    check("[grid]\ntrace = [\"t.csv\"]", "s.toml:2: [grid] trace: t.csv: there is no such file");
    check("[grid]\npace = [\"open\"]", "s.toml:2: [grid] pace: this is for a trace: give one");
    check("[grid]\ngc = [\"fifo\"]\nftl.victim = [\"fifo\"]", "s.toml:3: [grid] ftl.victim: this");
    check("repeats = 2\n[grid]\nseed = [1]", "seed: repeats gives seeds, too");
    check("repeats = 0", "repeats: a whole number from 1 is expected");
    check("repeats = 100001", "more than 100000 designs");
    check("[random]\ndesigns = 2", "[random] needs designs, the number of samples, and at least");
    check("[random]\niodepth = { uniform = [1, 2] }", "[random] needs designs");
    check("[random]\ndesigns = 2\niodepth = 3", "s.toml:3: [random] iodepth: give { uniform");
    check(
        "[random]\ndesigns = 2\nbs = { uniform = [\"4k\", \"8k\"] }",
        "bs: a range of a fio option",
    );
    check("[random]\ndesigns = 2\niodepth = { uniform = [4, 2] }", "the first end must be below");
    check("[random]\ndesigns = 2\niodepth = { uniform = [1, 2], stp = 1 }", "iodepth: give {");
    let trace = sample("formats/msr.csv");
    check(&format!("[grid]\ntrace = [\"{trace}\"]"), "a design runs a trace or jobs, not both");
    let of_trace = format!("[base]\ntrace = \"{trace}\"\nphase = \"x\"");
    for (text, more, expected) in [
        (of_trace.as_str(), &[][..], "there is no phase \"x\""),
        ("[base]\n", &[], "there is no workload"),
        ("[base]\n", &["-o", "x.txt"], "the name must end in .parquet or .csv"),
        ("[base]\n", &["--part", "3/2"], "is no part; write for example 1/8"),
    ] {
        fs::write(at.path().join("s.toml"), text).unwrap();
        Run::inside(at.path(), &[&["sweep", "s.toml"], more].concat()).refused(&[expected]);
    }
}

#[test]
fn the_shipped_sweeps_run() {
    let at = folder();
    let out = at.path().join("out.parquet").display().to_string();
    let entries: Vec<_> = fs::read_dir(sample("sweeps")).unwrap().collect();
    assert!(!entries.is_empty());
    for entry in entries {
        let path = entry.unwrap().path().display().to_string();
        let said = common::quiet(&["sweep", &path, "-o", &out]);
        assert!(said.contains(" 0 of them failed"), "{path}: {said}");
    }
}
