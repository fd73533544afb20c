//! Zoned drives on the command line: jobs by zones, a trace on a host FTL, and refused options.

use crate::common::{flat, json, quiet, refused, report, sample, words};
use serde_json::Value;

/// The JSON of `prism sim ARGS` on a small zoned drive.
fn sim(args: &[&str]) -> Value {
    let start = ["sim", "--device", "zn540", "--capacity", "1GiB", "--json", "-"];
    json(&[&start[..], args].concat())
}

#[test]
fn jobs_write_zones_and_the_drive_copies_nothing() {
    let words = ["--rw=randwrite", "--bs=64k", "--iodepth=8", "--io_size=600m", "--zonemode=zbd"];
    let out = sim(&words);
    let result = &out["result"];
    assert_eq!(result["host_bytes_written"], 600 << 20);
    let causes = result["flash"]["units"].as_object().unwrap();
    let total = causes["total"].as_u64().unwrap();
    assert_eq!(causes["host"], total, "only host data");
    // The drive begins filled: every zone is reset before it is written.
    assert!(result["latency_ns"]["zone_reset"]["count"].as_u64().unwrap() > 0, "{result}");
    assert_eq!(out["jobs"][0]["write"]["bytes"], 600 << 20);
    let empty = sim(&[&words[..], &["--state", "empty", "--rw=write"]].concat());
    assert_eq!(empty["result"]["latency_ns"]["zone_reset"], Value::Null);
}

#[test]
fn a_trace_runs_on_a_host_ftl() {
    let trace = sample("formats/msr.csv");
    let out = report(&[&trace, "--device", "zn540", "--passes", "2"]);
    let zoned = &out["zoned"];
    let bare = &zoned["bare_drive"];
    let (writes, failed) = (bare["writes"].as_u64().unwrap(), bare["failed"].as_u64().unwrap());
    assert!(failed > 0 && failed <= writes, "{bare}");
    let log = &zoned["host_ftl"];
    assert!(log["write_amplification"].as_f64().unwrap() >= 1.0, "{log}");
    assert!(log["over_provisioning"].as_f64().unwrap() >= 0.1, "{log}");
    let once = ["report", &trace, "--device", "zn540", "--passes", "1", "--what-if", "none"];
    let text = flat(&quiet(&once));
    for part in ["On zones", "would fail on the zoned drive alone", "trace runs on a host FTL"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    // The report of a drive without zones has no such section.
    assert_eq!(report(&[&trace, "--passes", "1"])["zoned"], Value::Null);
}

#[test]
fn jobs_that_zones_do_not_support_are_refused_with_what_to_do() {
    for (args, part) in [
        ("--device zn540 --rw=randwrite", "give zonemode=zbd, or another --device"),
        ("--device zn540 --rw=write --zonemode=zbd --zonesize=1m", "zonesize=1048576"),
        ("--device zn540 --rw=write --zonemode=zbd --max_open_zones=15", "more than the 14"),
        ("--device zn540 --rw=trim --zonemode=zbd", "trims with zonemode=zbd are not simulated"),
        ("--rw=write --zonemode=zbd", "needs a zoned drive, such as --device zn540"),
        (
            "--device zn540 --rw=write --zonemode=zbd --state steady",
            "use --state empty, filled or filled:SHARE",
        ),
    ] {
        refused(&words(&format!("sim {args}")), &[part]);
    }
}
