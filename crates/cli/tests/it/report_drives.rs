//! The drives of a report and what it says first: figures come from the drive that they are of, and
//! follow neither the filter nor the highest address.

use serde_json::Value;

use crate::common::{Run, flat, folder, json, path, prism, quiet, report, sample};

/// Two writes, 6 TiB apart.
const FAR: &[u8] =
    b"fio version 3 iolog\n0 /f add\n0 /f open\n1 /f write 0 4096\n2 /f write 6597069766656 4096\n";

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn a_phase_changes_no_drive() {
    let wal = sample("ext4-sqlite-wal.ftrace.zst");
    let [all, app] = [&[][..], &["--phase", "app"]]
        .map(|phase: &[&str]| report(&[&[wal.as_str(), "--passes", "1"], phase].concat()));
    assert!(number(&app["trace"]["requests"]) < number(&all["trace"]["requests"]));
    assert_eq!(app["device"], all["device"]);
    let device = &app["device"];
    assert_eq!(device["capacity_bytes"], 4_000_000_000_000u64 / 4096 * 4096);
    for drive in ["channels", "dies"] {
        assert_eq!(device["speed"][drive], device[drive]);
        assert!(number(&device["fitted"][drive]) < number(&device[drive]));
    }
    // Write amplification and flash operations are of the fitted drive, the others are not.
    let result = &app["result"];
    for key in ["write_amplification", "flash", "flash_bytes_programmed", "map_cache"] {
        assert_eq!(result[key], result["fitted"][key], "{key}");
    }
    assert_ne!(result["latency_ns"]["read"], result["fitted"]["latency_ns"]["read"]);
}

#[test]
fn distant_addresses_and_few_writes_cost_little_and_say_little() {
    let far = folder();
    let path = &path(&far, "far.iolog");
    std::fs::write(path, FAR).unwrap();
    let found = report(&[path]);
    assert!(number(&found["device"]["fitted"]["capacity_bytes"]) < (4u64 << 30) as f64);
    assert!(number(&found["replay"]["left_out_bytes"]) > (5u64 << 40) as f64);
    let result = &found["result"];
    assert_eq!(result["steady_state"], "out of reach");
    assert_eq!(result["write_amplification_estimated"], true);
    assert!((number(&result["write_amplification"]) - 1.0).abs() < 0.1);
    // No lifetime, wherever one could be.
    assert!(result["too_short"].as_str().unwrap().contains("2 writes"));
    assert_eq!(result["lifetime"]["days"], Value::Null);
    let gate = prism(&["report", path, "--what-if", "none", "--fail-on", "lifetime_days<1"]);
    assert_eq!(gate.code, 1, "{}", gate.stderr);
    let all = json(&["report", path, "--json", "-"]);
    for what_if in all["what_if"].as_array().unwrap() {
        assert_eq!(what_if["after"]["lifetime_days"], Value::Null, "{what_if}");
    }
    // The remedy of a message works.
    let only_discards = b"fio version 3 iolog\n0 /f add\n0 /f open\n1 /f trim 68719476736 4096\n";
    let said = Run::with_input(&["report", "-", "--what-if", "none"], only_discards).refused(&[]);
    let capacity = said.split("--capacity ").nth(1).expect("advice").trim();
    let again = ["report", "-", "--what-if", "none", "--state", "empty", "--capacity", capacity];
    Run::with_input(&again, only_discards).quiet();
}

#[test]
fn advice_names_each_rule_that_is_not_kept_and_what_it_gains() {
    let wal = sample("ext4-sqlite-wal.ftrace.zst");
    let changes = "depth,hot-cold,over-provisioning,align-page";
    let text = flat(&quiet(&["report", &wal, "--what-if", changes]));
    let advice = text.split("What to change first").nth(1).expect("the section");
    let advice = advice.split("What would change").next().unwrap();
    let deeper = "Request scale is broken. Keep more requests in flight (32 requests are kept in \
                  flight until the trace ends): the same work ";
    assert!(advice.contains(deeper), "{advice}");
    // Spare flash keeps no rule, but helps.
    assert!(advice.contains("Grouping by death time is broken, but no simulated change"));
    assert!(advice.contains("Also: add spare flash: lifetime "), "{advice}");
    assert!(advice.contains("Design rule \"Avoid in-place updates\" is violated: "), "{advice}");
    let at = |part: &str| advice.find(part).unwrap_or_else(|| panic!("{part} is not in {advice}"));
    assert!(at("Request scale is broken") < at("Grouping by death time"), "the largest gain first");
    assert!(text.contains("request scale 0.8 / 0.5"), "thresholds are printed");
}
