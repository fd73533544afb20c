//! `prism` on drives that age: the options, the reports, and the end of life.

use crate::common::{folder, good, json, path, refused, sample};
use serde_json::Value;

const WRITES: [&str; 6] =
    ["sim", "--capacity", "64MiB", "--name=w", "--rw=randwrite", "--io_size=128m"];

#[test]
fn a_drive_ages_only_if_requested() {
    let with = |more: &[&str]| json(&[&WRITES[..], &["--json", "-"], more].concat());
    let young = with(&[]);
    assert!(young["result"].get("faults").is_none());
    let old = with(&["--faults", "tlc", "--wear", "2500", "--retention", "90d"]);
    let faults = &old["result"]["faults"];
    assert_eq!(faults["kind"], "tlc");
    assert_eq!(faults["wear_at_start_cycles"], 2500);
    assert_eq!(faults["retention_at_start_ns"], 90u64 * 86_400 * 1_000_000_000);
    assert_eq!(faults["read_only"], Value::Null);
    let again = with(&["--set", "faults.kind=tlc", "--wear", "2500", "--retention", "90d"]);
    assert_eq!(again["result"], old["result"]);
}

#[test]
fn a_worn_out_drive_reports_when_it_became_read_only() {
    let worn = ["--faults", "tlc", "--set", "faults.erase_failure=0.02"];
    let worn = [&worn[..], &["--set", "faults.erase_exponent=0.0", "--io_size=20g"]].concat();
    let until = [&WRITES[..5], &worn[..], &["--until-read-only"]].concat();
    let out = json(&[&until[..], &["--json", "-"]].concat());
    let faults = &out["result"]["faults"];
    let written = faults["read_only"]["host_bytes_written"].as_u64().expect("it became read-only");
    assert!(written > 64 << 20 && written < 20 << 30, "{written}");
    assert!(faults["read_only"]["since_ns"].as_u64() > Some(0));
    assert_eq!(faults["spare_blocks"], 0);
    assert!(faults["failed_requests"]["write"].as_u64() > Some(0), "{faults}");
    // An end of life is a result.
    let text = good(&until);
    assert!(text.contains("The drive is read-only now."), "{text}");
    let fio = json(&[&until[..], &["--output-format=json"]].concat());
    assert_eq!(fio["jobs"][0]["error"], 30, "EROFS");
    assert!(fio["jobs"][0]["total_err"].as_u64() > Some(0));
}

/// With any mapping, a drive whose erases fail becomes read-only under a repeated trace and under
/// a job.
#[test]
fn block_mappings_and_ranges_become_read_only_as_well() {
    let folder = folder();
    let trace = path(&folder, "writes.csv");
    let line = |turn: u64| {
        let (at, place) = (128_166_372_003_061_629 + turn * 10_000, (turn * 37 % 960) << 16);
        format!("{at},host,0,Write,{place},65536,1000\n")
    };
    std::fs::write(&trace, (0..200).map(line).collect::<String>()).expect("written");
    let worn = ["--faults", "mlc", "--wear", "9000", "--set", "faults.erase_failure=0.2"];
    let worn = [&worn[..], &["--set", "faults.erase_exponent=0.0", "--json", "-"]].concat();
    for device in ["fast-2008", "block-2007", "mixed-2008"] {
        let job = ["sim", "--device", device, "--capacity", "64MiB", "--name=w", "--bs=64k"];
        let job = [&job[..], &["--rw=randwrite", "--io_size=20g", "--until-read-only"]].concat();
        let report = ["report", &trace, "--device", device, "--what-if", "none"];
        let report =
            [&report[..], &["--passes", "until-read-only", "--capacity", "64MiB"]].concat();
        for args in [job, report] {
            let out = json(&[&args[..], &worn].concat());
            let faults = &out["result"]["faults"];
            assert!(faults["read_only"]["since_ns"].as_u64() > Some(0), "{device}: {faults}");
            assert_eq!(faults["spare_blocks"], 0, "{device}: {faults}");
            assert!(faults["failed_erase_blocks"].as_u64() > Some(0), "{device}: {faults}");
            assert!(faults["failed_requests"]["write"].as_u64() > Some(0), "{device}: {faults}");
        }
    }
}

#[test]
fn a_report_counts_read_retries() {
    let trace = sample("formats/msr.csv");
    let args = ["report", &trace, "--what-if", "none", "--passes", "2"];
    let old = ["--faults", "tlc", "--set", "faults.rber_fresh=0.012", "--json", "-"];
    let out = json(&[&args[..], &old].concat());
    let faults = &out["result"]["faults"];
    assert!(faults["read_retries"].as_u64() > Some(0), "{faults}");
    let until = [&args[..4], &["--passes", "until-read-only"]].concat();
    refused(&until, &["needs a drive that ages"]);
}

/// Speed is measured on a drive with all dies whose steady state is laid out without writing.
#[test]
fn steady_states_are_laid_out_on_drives_that_age() {
    let trace = sample("formats/msr.csv");
    let old = ["--faults", "tlc", "--wear", "2900", "--json", "-"];
    let out = json(&[&["report", &trace, "--what-if", "none"], &old[..]].concat());
    assert_eq!(out["result"]["faults"]["wear_at_start_cycles"], 2900);
    let steady = json(&[&WRITES[..], &["--state", "steady"], &old[..]].concat());
    assert_eq!(steady["result"]["faults"]["failed_requests"]["write"], 0);
}

#[test]
fn a_lifetime_is_what_is_left_of_the_endurance() {
    // Bytes that the flash takes: terabytes written by the host times write amplification.
    let left = |wear: &str| {
        let out =
            json(&[&WRITES[..], &["--faults", "tlc", "--wear", wear, "--json", "-"]].concat());
        let result = &out["result"];
        result["lifetime"]["tbw"].as_f64().expect("a lifetime")
            * result["write_amplification"].as_f64().expect("writes")
    };
    let share = left("2000") / left("0");
    assert!((share - 1.0 / 3.0).abs() < 1e-9, "{share} of 3000 cycles");
}

#[test]
fn zones_and_slc_blocks_that_have_failed_are_counted() {
    let job = ["--capacity", "4GiB", "--name=j", "--bs=64k", "--io_size=2g", "--iodepth=8"];
    let of = |device: &'static str, more: &[&'static str]| {
        let words = ["sim", "--device", device, "--rw=randwrite", "--faults", "tlc"];
        [&words[..], &job, more].concat()
    };
    let zoned = of("zns-small", &["--zonemode=zbd", "--wear", "6500"]);
    let out = json(&[&zoned[..], &["--json", "-"]].concat());
    let zones = &out["result"]["faults"]["zones"];
    assert!(zones["read_only"].as_u64() > Some(0), "{zones}");
    assert!(zones["count"].as_u64() > zones["offline"].as_u64(), "{zones}");
    assert_eq!(out["result"]["faults"]["slc"], Value::Null);
    assert!(good(&zoned).contains("Read-only zones"));
    let cached = json(&[&of("consumer-tlc", &["--wear", "900"])[..], &["--json", "-"]].concat());
    let slc = &cached["result"]["faults"]["slc"];
    assert!(slc["blocks_per_die_group"].as_u64() > slc["factory_bad_blocks"].as_u64(), "{slc}");
    assert_eq!(cached["result"]["faults"]["zones"], Value::Null);
}

#[test]
fn invalid_options_of_ageing_are_refused() {
    let check = |more: &[&str], part| refused(&[&WRITES[..], more].concat(), &[part]);
    check(&["--wear", "100"], "give --faults KIND");
    check(&["--faults", "plc"], "kinds are slc, mlc, tlc, qlc");
    check(&["--faults", "tlc", "--retention", "90"], "no known unit");
    check(&["--faults", "tlc", "--set", "faults.factory_bad=2.0"], "between 0 and 1");
}
