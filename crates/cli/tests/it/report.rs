//! `prism report` from a trace to its results: keys, paces, states, passes and seeds, and that the
//! same command gives the same bytes.

use crate::common::{
    Run, assert_lawful, folder, path, quiet, refused, report, sample, whole_report,
};
use serde_json::Value;

/// Short enough for many runs, and with every kind of request but write-zeroes.
const SMALL: &str = "f2fs-rocksdb.ftrace.zst";

fn wal() -> String {
    sample("ext4-sqlite-wal.ftrace.zst")
}

/// Checks that `object` has every one of `keys` at the path `at`.
fn assert_keys(report: &Value, at: &str, keys: &str) {
    let object = at.split('.').fold(report, |object, key| &object[key]);
    let object = object.as_object().unwrap_or_else(|| panic!("{at} is no object"));
    for key in keys.split_whitespace() {
        assert!(object.contains_key(key), "{at}.{key}");
    }
}

#[test]
fn the_default_run_reaches_a_steady_state_and_has_the_promised_keys() {
    let json = report(&[&wal()]);
    assert_lawful(&json);
    assert_keys(&json, "trace", "format requests reads writes discards write_zeroes flushes");
    assert_keys(&json, "trace", "bytes_read bytes_written bytes_discarded duration_ns skipped");
    assert_keys(&json, "trace", "unique_bytes_written capabilities");
    assert_keys(&json, "trace.capabilities", "discard flush completion queue process");
    assert_keys(&json, "device", "name capacity_bytes over_provisioning");
    assert_keys(&json, "device.over_provisioning", "nominal effective");
    assert_keys(&json, "result", "requests_completed passes steady write_amplification");
    assert_keys(&json, "result", "iops bytes_per_second simulated_ns");
    for operation in ["reads", "programs", "erases"] {
        assert_keys(&json, &format!("result.flash.{operation}"), "total host gc map pad");
    }
    for op in ["read", "write", "discard", "write_zeroes", "flush"] {
        let at = format!("result.latency_ns.{op}");
        assert_keys(&json, &at, "count mean p50 p95 p99 p999 max");
    }
    assert_keys(&json, "result.lifetime", "days tbw dwpd");
    assert_eq!((&json["result"]["steady"], &json["seed"]), (&true.into(), &1.into()));
    assert_eq!(json["device"]["name"], "dc-tlc");
    let of = |key: &str| json["device"]["over_provisioning"][key].as_f64().unwrap();
    assert!(0.0 < of("effective") && of("effective") < of("nominal"));
    let capacity = |drive: &Value| drive["capacity_bytes"].as_u64().unwrap();
    let device = &json["device"];
    assert!(capacity(&device["fitted"]) >= json["trace"]["address_end"].as_u64().unwrap());
    assert!(capacity(device) > 900 * capacity(&device["fitted"]));
    assert_eq!((&device["dies"], &device["speed"]["dies"]), (&96.into(), &96.into()));
}

#[test]
fn lifetime_follows_from_the_other_figures() {
    let json = report(&[&wal()]);
    let (device, result) = (&json["device"], &json["result"]);
    let number = |value: &Value| value.as_f64().unwrap();
    let flash = number(&device["raw_bytes"]) * number(&device["endurance_cycles"]);
    let host = flash / number(&result["write_amplification"]);
    let days = number(&result["simulated_ns"]) / 86_400e9;
    let close = |key: &str, wanted: f64| {
        let ours = number(&result["lifetime"][key]);
        assert!((ours / wanted - 1.0).abs() < 1e-9, "{key}: {ours}, not {wanted}");
    };
    close("tbw", host / 1e12);
    close("days", host / (number(&result["host_bytes_written"]) / days));
    close("dwpd", host / number(&device["capacity_bytes"]) / (5.0 * 365.0));
}

#[test]
fn the_same_command_gives_the_same_bytes() {
    let folder = folder();
    let run = |name: &str, seed: &str| {
        let path = |ending: &str| path(&folder, &format!("{name}.{ending}"));
        let [html, json, parquet] = &["html", "json", "parquet"].map(path);
        let outputs = ["--html", html, "--json", json, "--requests", parquet];
        let state = ["--phase", "app", "--state", "preconditioned", "--passes", "2"];
        let state = [&state[..], &["--seed", seed, "--what-if", "streams"]].concat();
        let text = quiet(&[&["report", &wal()], &outputs[..], &state[..]].concat());
        let files = [html, json, parquet].map(|path| std::fs::read(path).unwrap());
        (text, files)
    };
    let first = run("a", "1");
    assert!(first == run("b", "1"), "a second run differs");
    let other = run("c", "2");
    assert_ne!(first.1[1], other.1[1], "the seed decides what is overwritten beforehand");
    let json: Value = serde_json::from_slice(&other.1[1]).unwrap();
    assert_eq!(json["seed"], 2);
    assert!(json["result"]["flash"]["units"]["gc"].as_u64().unwrap() > 0, "a worn drive cleans");
    assert_lawful(&json);
}

#[test]
fn passes_are_as_many_as_requested() {
    let [one, three] = ["1", "3"].map(|n| report(&[&sample(SMALL), "--passes", n]));
    assert_lawful(&three);
    assert_eq!((&three["result"]["passes"], &one["result"]["passes"]), (&3.into(), &1.into()));
    assert_eq!(three["result"]["steady"], false, "not tested");
    let one = &one["result"]["fitted"];
    assert_eq!(three["result"]["single_pass"]["simulated_ns"], one["simulated_ns"]);
}

#[test]
fn paces_decide_when_requests_arrive() {
    let run = |pace: &str| {
        let json = report(&[&wal(), "--passes", "1", "--phase", "app", "--pace", pace]);
        assert_lawful(&json);
        assert_eq!(json["replay"]["pace"], pace);
        let result = &json["result"];
        let time = result["simulated_ns"].as_f64().unwrap();
        (
            time / json["trace"]["duration_ns"].as_f64().unwrap(),
            result["queue_depth"]["max"].clone(),
        )
    };
    let (open, _) = run("open");
    assert!((open - 1.0).abs() < 0.01, "open keeps the trace's times: {open}");
    let (faster, _) = run("open:10");
    assert!((faster - 0.1).abs() < 0.01, "ten times as fast: {faster}");
    let (one, depth) = run("closed:1");
    assert_eq!(depth, 1);
    let (many, depth) = run("closed:32");
    assert_eq!(depth, 32);
    assert!(many < one && one < 0.2, "no think time is left: {many}, {one}");
    let (dependent, _) = run("dependent");
    assert!(0.1 < dependent && dependent < 1.0, "a faster drive, the same thinking: {dependent}");
    let think =
        |text: &str| Run::with_input(&["report", "-", "--what-if", "none", "--pace", text], FIO);
    assert_eq!(think("open").code, 0);
    think("dependent").refused(&["needs completions"]);
}

/// A trace without completions.
const FIO: &[u8] =
    b"fio version 3 iolog\n0 /f add\n0 /f open\n1 /f write 0 4096\n2 /f write 0 512\n";

#[test]
fn states_decide_how_much_is_cleaned() {
    let gc = |state: &str| {
        let json = report(&[&wal(), "--phase", "app", "--passes", "1", "--state", state]);
        assert_lawful(&json);
        assert_eq!(json["replay"]["initial_state"], state);
        let erased = json["result"]["wear"]["erases_mean"].as_f64().unwrap();
        (json["result"]["flash"]["units"]["gc"].as_u64().unwrap(), erased)
    };
    assert_eq!(gc("empty"), (0, 0.0));
    let (_, erased_filled) = gc("filled");
    let (copied, erased) = gc("preconditioned");
    assert!(copied > 0 && erased > erased_filled, "{copied} copied, {erased} erased");
    assert!(gc("preconditioned:0.5").0 > 0);
    let (copied, _) = gc("steady");
    assert!(copied > 0, "a drive in steady state cleans from the first write on");
    assert_eq!(gc("filled:0.1"), (0, 0.0));
}

#[test]
fn a_snapshot_is_the_state() {
    let folder = folder();
    let file = &path(&folder, "worn.prism-state");
    let wal = wal();
    let same = [&wal, "--phase", "app", "--passes", "2"];
    let run = |flags: &[&str]| report(&[&same, flags].concat());
    let first = run(&["--state", "preconditioned", "--save-state", file]);
    let preparation = &first["replay"]["preparation"];
    assert_eq!(preparation["settled"], true);
    assert!(preparation["rounds"].as_array().unwrap().len() >= 4);
    let again = run(&["--state", file]);
    assert_lawful(&again);
    // A snapshot is of the fitted drive, from which latencies come too.
    assert_eq!(again["result"]["fitted"], first["result"]["fitted"]);
    assert_eq!(again["result"]["latency_ns"], again["result"]["fitted"]["latency_ns"]);
    assert_eq!(again["replay"]["initial_state"], *file);
    let refused = |flags: &[&str], message| {
        refused(&[&["report", &wal, "--state", file], flags].concat(), &[message]);
    };
    refused(&["--capacity", "6GiB"], "saved of another drive: its ");
    let bytes = std::fs::read(file).unwrap();
    std::fs::write(file, &bytes[..bytes.len() - 100]).unwrap();
    refused(&[], "not a complete snapshot");
    std::fs::remove_file(file).unwrap();
    refused(&[], "there is no such file");
    refused(&["--save-state", "x.zst"], "must end in .prism-state");
}

#[test]
fn every_preset_takes_the_trace_at_any_capacity_that_holds_it() {
    for preset in prism_ssd::DriveSpec::preset_names() {
        let flags = ["--device", preset, "--capacity", "5GiB", "--state", "empty"];
        let flags = [&flags[..], &["--passes", "1"]].concat();
        let json = report(&[&[sample(SMALL).as_str()], &flags[..]].concat());
        assert_lawful(&json);
        assert_eq!(
            (&json["device"]["name"], &json["device"]["capacity_bytes"]),
            (&preset.into(), &(5u64 << 30).into())
        );
    }
    // The full size, empty: unused flash costs no time and no memory.
    let own = ["--capacity", "device", "--state", "empty", "--passes", "1"];
    let json = report(&[&[sample(SMALL).as_str()], &own[..]].concat());
    assert_lawful(&json);
    assert_eq!(json["device"]["capacity_bytes"], 4_000_000_000_000u64 / 4096 * 4096);
    assert_eq!(json["device"]["scaled"], serde_json::json!([]));
}

#[test]
fn standard_input_is_a_trace_like_any_other() {
    let args = ["--passes", "1", "--json", "-", "--what-if", "none"];
    let packed = std::fs::read(sample(SMALL)).unwrap();
    let piped = Run::with_input(&[&["report", "-"], &args[..]].concat(), &packed).json();
    let file = report(&[&sample(SMALL), "--passes", "1"]);
    assert_eq!(piped["trace"]["file"], "standard input");
    assert_eq!(piped["result"], file["result"]);
}

#[test]
fn the_text_says_the_same_on_two_screens() {
    let (text, json) = whole_report();
    assert!(text.is_ascii(), "a pipe gets plain text");
    let lines = text.lines().count();
    assert!(lines <= 120, "{lines} lines are more than two screens:\n{text}");
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    let amplification = json["result"]["write_amplification"].as_f64().unwrap();
    for part in ["10,709 writes", &format!("{amplification:.3}"), "dc-tlc"] {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
}

#[test]
fn terms_and_design_rules_are_all_decided_or_say_why_not() {
    let folder = folder();
    let path = path(&folder, "report.html");
    let json = report(&[&sample(SMALL), "--html", &path]);
    let page = std::fs::read_to_string(&path).unwrap();
    let terms = json["terms"].as_array().unwrap();
    assert_eq!(terms.len(), 6);
    let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    for (number, term) in (1..).zip(terms) {
        assert_eq!(term["number"], number);
        let too_short = term["why"].as_str().unwrap().contains("too short");
        assert!(term["holds"].is_boolean() || number == 5 && too_short, "{term}");
        assert!(["name", "why", "source"].iter().all(|key| is_text(&term[key])), "{term}");
        let quoted = &term["quoted"];
        let known = ["true", "false", "approximately"];
        for device in ["disk", "raid", "mems", "ssd"] {
            assert!(known.iter().any(|word| quoted[device] == *word), "{term}");
        }
        assert!(page.contains(term["name"].as_str().unwrap()), "{term} is not on the page");
    }
    let amplification = json["result"]["write_amplification"].as_f64().unwrap();
    assert!(terms[3]["why"].as_str().unwrap().contains(&format!("{amplification:.2}")));
    let advice = json["advice"].as_array().unwrap();
    assert_eq!(advice.len(), 7);
    for (number, rule) in (1..).zip(advice) {
        assert_eq!(rule["number"], number);
        assert!(["rule", "advice", "source"].iter().all(|key| is_text(&rule[key])), "{rule}");
        assert!(rule["numbers"].is_string(), "{rule}");
        let undecided = rule["verdict"] == "not_decidable";
        assert!(undecided || rule["verdict"] == "follows" || rule["verdict"] == "violates");
        assert_eq!(undecided, is_text(&rule["reason"]), "{rule}");
        assert!(page.contains(rule["rule"].as_str().unwrap()), "{rule} is not on the page");
    }
    for title in ["Six assumptions about storage", "Seven design rules"] {
        assert!(page.contains(title), "{title}");
    }
}
