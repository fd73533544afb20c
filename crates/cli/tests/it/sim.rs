//! `prism sim`: fio options and job files, the report, Prism's JSON and fio's JSON, sweeps, and bad
//! input.

use crate::common::{self, Run, flat, folder, good, path, quiet, refused, words};
use serde_json::Value;

/// Runs `prism sim ARGS` on a small drive; it must succeed without messages.
fn sim(args: &[&str]) -> String {
    quiet(&[&["sim", "--capacity", "256MiB"], args].concat())
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&sim(args)).expect("JSON")
}

/// The keys that fio 3.33 writes for a job, `--output-format=json`.
const JOB_KEYS: &str = "jobname groupid error eta elapsed job_runtime usr_cpu sys_cpu ctx majf \
    minf iodepth_level iodepth_submit iodepth_complete latency_ns latency_us latency_ms \
    latency_depth latency_target latency_percentile latency_window read write trim sync";
/// The keys of a direction.
const DIR_KEYS: &str = "io_bytes io_kbytes bw_bytes bw iops runtime total_ios short_ios drop_ios \
    slat_ns clat_ns lat_ns bw_min bw_max bw_agg bw_mean bw_dev bw_samples iops_min iops_max \
    iops_mean iops_stddev iops_samples";

fn assert_keys(object: &Value, keys: &str) {
    let object = object.as_object().expect("an object");
    for key in keys.split_whitespace() {
        assert!(object.contains_key(key), "{key}");
    }
}

#[test]
fn fios_json_has_fios_keys_and_true_sums() {
    let args = ["--output-format=json", "--rw=randrw", "--name=mix", "--size=64m", "--fsync=100"];
    let out =
        json(&[&args[..], &["--name=trims", "--rw=trim", "--size=1m", "--stonewall"]].concat());
    assert_keys(&out, "timestamp timestamp_ms time jobs disk_util prism");
    assert!(out["fio version"].as_str().unwrap().starts_with("fio-3."));
    assert_eq!(out["global options"]["rw"], "randrw");
    let jobs = out["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 2);
    for job in jobs {
        assert_keys(job, JOB_KEYS);
        assert!(job["job options"]["name"].is_string());
        for dir in ["read", "write", "trim"] {
            assert_keys(&job[dir], DIR_KEYS);
            assert_keys(&job[dir]["clat_ns"], "min max mean stddev N");
        }
        for scale in ["iodepth_level", "iodepth_submit", "iodepth_complete"] {
            let sum: f64 =
                job[scale].as_object().unwrap().values().map(|v| v.as_f64().unwrap()).sum();
            assert!((sum - 100.0).abs() < 1e-9, "{scale}: {sum}");
        }
        let classes = ["latency_ns", "latency_us", "latency_ms"];
        let shares = classes.iter().flat_map(|name| job[*name].as_object().unwrap().values());
        let sum: f64 = shares.map(|share| share.as_f64().unwrap()).sum();
        assert!((sum - 100.0).abs() < 1e-9, "latencies: {sum}");
    }
    assert_keys(&jobs[0]["iodepth_level"], "1 2 4 8 16 32 >=64");
    assert_keys(&jobs[0]["iodepth_submit"], "0 4 8 16 32 64 >=64");
    assert_keys(&jobs[0]["latency_us"], "2 4 10 20 50 100 250 500 750 1000");
    assert_keys(&jobs[0]["latency_ms"], "2 4 10 20 50 100 250 500 750 1000 2000 >=2000");
    assert_keys(&jobs[0]["sync"], "total_ios lat_ns");
    assert_keys(
        &out["disk_util"][0],
        "name read_ios write_ios read_merges write_merges read_ticks write_ticks in_queue util",
    );
    let number = |value: &Value| value.as_u64().unwrap();
    let [read, write] = ["read", "write"].map(|dir| &jobs[0][dir]);
    assert_eq!(number(&read["io_bytes"]) + number(&write["io_bytes"]), 64 << 20);
    assert_eq!(number(&jobs[0]["sync"]["total_ios"]), number(&write["total_ios"]) / 100);
    assert_eq!(number(&jobs[1]["trim"]["io_bytes"]), 1 << 20);
    assert_eq!((&jobs[0]["groupid"], &jobs[1]["groupid"]), (&0.into(), &1.into()));
    let percentiles = read["clat_ns"]["percentile"].as_object().unwrap();
    assert_eq!(percentiles.len(), 17);
    assert_eq!(read["clat_ns"]["N"], read["total_ios"]);
    assert!(percentiles["50.000000"].as_u64() <= percentiles["99.990000"].as_u64());
    assert!(number(&out["prism"]["result"]["flash"]["programs"]["host"]) > 0);
    assert_eq!(out["prism"]["device"]["name"], "dc-tlc");
}

#[test]
fn percentiles_are_those_requested_and_bins_hold_every_io() {
    let words = ["--name=a", "--rw=randread", "--size=4m", "--percentile_list=50:99.9"];
    let args = [&["--output-format", "json+", "--lat_percentiles=1"], &words[..]].concat();
    let out = json(&[&args[..], &["--clat_percentiles=0"]].concat());
    let read = &out["jobs"][0]["read"];
    assert_eq!(read["clat_ns"]["percentile"], Value::Null);
    let list: Vec<_> = read["lat_ns"]["percentile"].as_object().unwrap().keys().collect();
    assert_eq!(list, ["50.000000", "99.900000"]);
    let bins = read["clat_ns"]["bins"].as_object().unwrap().values();
    assert_eq!(bins.map(|count| count.as_u64().unwrap()).sum::<u64>(), 1024);
}

#[test]
fn prisms_json_agrees_with_itself() {
    let words = ["--name=a", "--rw=randwrite", "--iodepth=8", "--io_size=512m", "--end_fsync=1"];
    let out = json(&[&["--json", "-"], &words[..]].concat());
    let (result, write) = (&out["result"], &out["jobs"][0]["write"]);
    assert_eq!(result["host_bytes_written"], 512 << 20);
    assert_eq!((&write["bytes"], &write["ios"]), (&(512u64 << 20).into(), &131_072.into()));
    assert_eq!(out["jobs"][0]["flush"]["count"], 1);
    let wa = result["flash_bytes_programmed"].as_f64().unwrap() / (512u64 << 20) as f64;
    assert_eq!(result["write_amplification"].as_f64(), Some(wa));
    assert!(wa > 1.5, "cleaning is at work: {wa}");
    let seconds = out["jobs"][0]["simulated_ns"].as_f64().unwrap() / 1e9;
    assert!((write["iops"].as_f64().unwrap() * seconds / 131_072.0 - 1.0).abs() < 1e-12);
    let scaled = out["device"]["scaled"].to_string();
    assert!(!scaled.contains("--capacity is given"), "{scaled}");
    assert_eq!(out["stages"].as_array().unwrap().len(), 1);
}

#[test]
fn a_job_file_and_the_same_options_are_the_same_run() {
    let at = folder();
    let text = "# two jobs\n[global]\nrw=randread\nbs=4k\n\n[a]\niodepth=4\nsize=8m\n[b]\n\
                rw=write\nsize=8m\nstonewall\n";
    std::fs::write(at.path().join("jobs.fio"), text).unwrap();
    let args = ["sim", "jobs.fio", "--capacity", "256MiB", "--json", "-"];
    let file = Run::inside(at.path(), &args).good();
    let line = "--rw=randread --bs=4k --name=a --iodepth=4 --size=8m --name=b --rw=write \
                --json=- --size=8m --stonewall";
    let line = words(line);
    assert_eq!(file, sim(&line));
    let args = ["sim", "-", "--capacity", "256MiB", "--json", "-"];
    assert_eq!(file, Run::with_input(&args, text.as_bytes()).stdout);
    assert_ne!(file, sim(&[&line[..], &["--seed=2"]].concat()));
}

#[test]
fn the_text_names_jobs_and_what_was_assumed() {
    let job = ["sim", "--name=log", "--rw=write", "--size=64m", "--description=the log"];
    let text = flat(&quiet(&job));
    for part in ["Job log", "8 GiB because no --capacity is given", "log: the log.", "flash"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn files_are_written_in_addition_to_the_text() {
    let at = folder();
    let [html, parquet, text] = ["r.html", "r.parquet", "r.txt"].map(|name| path(&at, name));
    let files = ["--html", &html, "--requests", &parquet, "--output", &text];
    assert_eq!(sim(&[&files[..], &["--name=a", "--rw=randrw", "--size=4m"]].concat()), "");
    assert!(std::fs::read_to_string(html).unwrap().contains("Addresses over time"));
    assert!(std::fs::read_to_string(text).unwrap().contains("I/Os by job"));
    let file = std::fs::File::open(parquet).unwrap();
    let reader = parquet::file::reader::SerializedFileReader::new(file).unwrap();
    use parquet::file::reader::FileReader;
    assert_eq!(reader.metadata().file_metadata().num_rows(), 1024);
}

const SWEEP: [&str; 8] = [
    "--name=w",
    "--rw=randwrite",
    "--io_size=300m",
    "--iodepth=4",
    "--sweep",
    "gc=greedy,fifo",
    "op=12%,30%",
    "bs=4k,16k",
];

#[test]
fn a_sweep_is_the_same_on_any_number_of_cores() {
    let run = |jobs: &str| json(&[&SWEEP[..], &["--json", "-", "--jobs", jobs]].concat());
    let one = run("1");
    assert_eq!(one, run("2"));
    assert_eq!(sim(&[&SWEEP[..], &["--jobs=1"]].concat()), sim(&SWEEP));
    let rows = one["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 8);
    let wa = |i: usize| rows[i]["write_amplification"].as_f64().unwrap();
    // The last axis changes fastest: gc, op, bs.
    assert_eq!(rows[3]["point"]["gc"], "greedy");
    assert_eq!(rows[3]["point"]["op"], "30%");
    assert_eq!(rows[3]["point"]["bs"], "16k");
    assert!(wa(2) < wa(0), "more spare, less cleaning");
    assert!(wa(0) < wa(4), "greedy cleans for less than fifo");
    for (row, op) in rows.iter().zip([0.12, 0.12, 0.3, 0.3].iter().cycle()) {
        let effective = row["over_provisioning_effective"].as_f64().unwrap();
        assert!(effective >= *op && effective < op + 0.05, "{effective}");
        assert_eq!(row["capacity_bytes"], 256 << 20);
    }
}

#[test]
fn one_point_of_a_sweep_is_the_run_with_these_values() {
    let base = ["--name=w", "--rw=randwrite", "--size=16m", "--json", "-"];
    let axes =
        ["--sweep", "ftl.victim=random", "iodepth=16", "device=femu", "seed=3", "state=empty"];
    let swept = json(&[&base[..], &axes].concat());
    let single = words("--set ftl.victim=random --iodepth=16 --device=femu --seed=3 --state empty");
    let single = json(&[&base[..], &single].concat());
    let row = &swept["rows"][0];
    for key in ["write_amplification", "flash", "latency_ns", "iops", "simulated_ns"] {
        assert_eq!(row[key], single["result"][key], "{key}");
    }
}

#[test]
fn short_names_reach_the_fields() {
    let words = ["--name=w", "--rw=randrw", "--io_size=8m", "--iodepth=32", "--json", "-"];
    let axes = ["--sweep", "scheduler=fcfs,read-first", "frontiers=shared", "mapping=page"];
    let out = json(&[&words[..], &axes].concat());
    let mean = |i: usize| out["rows"][i]["read"]["mean_ns"].as_f64().unwrap();
    assert!(mean(1) < mean(0), "prioritised reads complete sooner");
    let policies = ["--sweep", "gc=d-choices:10,windowed-greedy:8,cost-benefit"];
    let out = json(&[&words[..], &policies].concat());
    assert_eq!(out["rows"].as_array().unwrap().len(), 3);
    sim(&["--set", "flash.t_read=[\"40us\", \"60us\"]", "--name=a", "--size=1m"]);
    sim(&["--set", "drive.queues=4", "--name=a", "--size=1m", "--numjobs=4"]);
}

#[test]
fn a_field_of_the_drive_changes_reports_as_well() {
    let trace = common::sample("f2fs-rocksdb.ftrace.zst");
    let normal = common::report(&[&trace, "--passes=1"]);
    let slow = common::report(&[&trace, "--passes=1", "--set", "flash.t_program=9ms"]);
    let longest =
        |report: &Value| report["result"]["fitted"]["latency_ns"]["write"]["max"].as_u64().unwrap();
    assert!(longest(&slow) > longest(&normal));
}

#[test]
fn bad_input_gives_one_line_and_exit_code_2() {
    let at = folder();
    std::fs::write(at.path().join("j.fio"), "[a]\nrw=randread\n\niodpeth=32\n").unwrap();
    std::fs::write(at.path().join("l.fio"), "[a]\nlatency_target=1ms\n").unwrap();
    let check = |args: &str, expected: &str| {
        let run = Run::inside(at.path(), &words(&format!("sim {args}")));
        let said = run.refused(&[expected]);
        assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
    };
    check("j.fio", "j.fio:4: iodpeth is no fio option (did you mean iodepth?)");
    check("l.fio", "l.fio:2: latency_target is a fio option that Prism does not simulate");
    check("missing.fio", "missing.fio");
    check("", "no job");
    check("--name=a --buffered=1", "--buffered: buffered=1 is refused");
    check("--name=a --size=9g", "reaches beyond the drive's 8589934592 bytes");
    check("--name=a --set ftl.victm=fifo", "did you mean ftl.victim?");
    check("--name=a --set drive.capacity=4PB", "drive.capacity = 3.55 PiB: more mapping units");
    check("--name=a --sweep gcc=fifo", "no axis of this name (did you mean gc");
    check("--name=a --sweep scheduler", "give an axis and its values");
    check("--name=a --sweep gc=greedy,best", "no victim policy is called `best`");
    check("--name=a --sweep gc=fifo ftl.victim=greedy", "two axes of this name");
    check("--name=a --sweep op=0%", "not an over-provisioning");
    check("--name=a --sweep op=900000%", "not an over-provisioning");
    check("--name=a --sweep latency_target=1", "does not simulate");
    check("--name=a --sweep iodepth=1,x", "--sweep iodepth: iodepth=\"x\"");
    check("--name=a --sweep thread=0,1", "this fio option has no effect here");
    check("--name=a --sweep gc=fifo --html x.html", "--html applies only to a single run");
    check("--name=a --sweep gc=fifo --output-format=json", "use --json with --sweep");
    check("--name=a --jobs 2", "--jobs is for --sweep");
    check("--name=a --output x --json x", "name the same file");
    check("--name=a --json - --output-format=json", "standard output is in use");
}

#[test]
fn placement_is_swept_like_any_option() {
    let sample = |name| format!("{}/../../samples/jobs/{name}.fio", env!("CARGO_MANIFEST_DIR"));
    let swept = |name, axes: &[&str]| {
        let sample = sample(name);
        let base = [&sample, "--set", "ftl.placement_handles=2", "--json", "-", "--sweep"];
        let rows = json(&[&base[..], axes].concat())["rows"].clone();
        let rows = rows.as_array().unwrap().iter();
        rows.map(|row| row["write_amplification"].as_f64().unwrap()).collect::<Vec<_>>()
    };
    let cache = swept("cache", &["fdp=0,1"]);
    assert!(cache[0] > 1.8 && cache[1] < 1.1, "{cache:?}");
    // As in docs/spec/fio-options.md: handles do not help by themselves.
    let log = swept("log-and-table", &["fdp=1", "gc=greedy,cost-benefit"]);
    assert!(log[1] < 0.9 * log[0], "{log:?}");
    let one = ["sim", &sample("cache"), "--capacity", "256MiB"];
    refused(&one, &["--set ftl.placement_handles=8"]);
}

/// Every example of `--help`, on a small drive and cut short.
#[test]
fn the_examples_in_help_run() {
    let folder = folder();
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples");
    std::os::unix::fs::symlink(samples, folder.path().join("samples")).unwrap();
    std::fs::write(folder.path().join("jobs.fio"), "[a]\nrw=write\nsize=1m\n").unwrap();
    let help = good(&["sim", "--help"]).replace("\\\n", " ");
    let examples: Vec<_> =
        help.lines().map(str::trim).filter(|line| line.starts_with("prism sim ")).collect();
    assert_eq!(examples.len(), 5, "{help}");
    for example in examples {
        let mut words: Vec<_> = example.split_whitespace().skip(1).collect();
        words.extend(["--capacity", "64MiB"]);
        if example.contains("--name") {
            words.extend(["--number_ios=20", "--runtime=1ms"]);
        }
        Run::inside(folder.path(), &words).quiet();
    }
}

#[test]
fn help_lists_options_and_has_examples() {
    let help = good(&["sim", "--help"]);
    for part in ["Examples:", "rate_iops", "random_distribution", "--sweep", "prism sim jobs.fio"] {
        assert!(help.contains(part), "{part}");
    }
}
