//! The built `prism calc`: the examples of the article whose formulas it has, as text and
//! as JSON, and the messages about invalid quantities.

use crate::common::{flat, quiet, refused, words};
use serde_json::Value;

/// Runs `prism calc ARGS`, which must succeed without messages.
fn calc(args: &str) -> String {
    quiet(&words(&format!("calc {args}")))
}

fn json(args: &str) -> Value {
    serde_json::from_str(&calc(&format!("{args} --json -"))).expect("JSON")
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

fn near(value: &Value, expected: f64, tolerance: f64) {
    let ours = number(value);
    assert!((ours - expected).abs() <= tolerance * expected, "{ours}, not {expected}");
}

#[test]
fn lifetimes_of_the_article() {
    // 1e12 x 1e4 / (4 x 1e8) = 2.5e7 s; 1e12 x 3e3 / (10 x 1e8) = 3e6 s.
    for (endurance, factor, seconds, tbw, text) in [
        ("--cycles 10000", "4", 2.5e7, 2500.0, "9.51"),
        ("--cell mlc", "4", 2.5e7, 2500.0, "9.51"),
        ("--cell tlc", "10", 3e6, 300.0, "34.7"),
    ] {
        let args = format!(
            "lifetime --capacity 1TB {endurance} --write-amplification {factor} --rate 100MB/s"
        );
        let answer = json(&args);
        near(&answer["days"], seconds / 86_400.0, 1e-12);
        near(&answer["months"], seconds / 86_400.0 / 30.4375, 1e-12);
        near(&answer["tbw"], tbw, 1e-12);
        near(&answer["dwpd"], tbw / 1825.0, 1e-12);
        let shown = calc(&args);
        assert!(shown.contains(text), "{shown}");
    }
    let slc = json("lifetime --capacity 1TB --cell slc --write-amplification 1 --rate 1GB/s");
    assert_eq!(slc["cycles"], 100_000);
    let qlc = json("lifetime --capacity 1TB --cell qlc --write-amplification 1 --rate 1GB/s");
    assert_eq!(qlc["cycles"], 1000);
}

#[test]
fn costs_of_the_article_and_of_greedy() {
    let answer = json("cleaning --utilization 80%,95% --pages-per-block 128");
    let rows = answer["rows"].as_array().expect("rows");
    for (row, blocks, pages) in [(&rows[0], 5.0, 512.0), (&rows[1], 20.0, 2432.0)] {
        near(&row["average_victim"]["blocks_compacted"], blocks, 1e-12);
        near(&row["average_victim"]["pages_copied"], pages, 1e-12);
        for what in ["blocks_compacted", "pages_copied", "write_amplification"] {
            let theory = number(&row["greedy_theory"][what]);
            near(&row["greedy_simulated"][what], theory, 0.02);
            assert!(theory < 0.65 * number(&row["average_victim"][what]), "{what}: {theory}");
        }
    }
    let text = calc("cleaning --utilization 0.8");
    assert!(text.contains("80%") && text.contains("512"), "{text}");
    assert!(flat(&text).contains("Greedy takes the emptiest block"), "{text}");
}

#[test]
fn a_sweep_has_a_row_for_each_share_and_the_same_seed_the_same_numbers() {
    let swept = json("cleaning --sweep 50%,60% --pages-per-block 64 --seed 7");
    let shares: Vec<&Value> =
        swept["rows"].as_array().unwrap().iter().map(|row| &row["utilization"]).collect();
    assert_eq!(shares, [0.5, 0.6]);
    assert_eq!(swept, json("cleaning --sweep 50%,60% --pages-per-block 64 --seed 7"));
    assert_ne!(swept, json("cleaning --sweep 50%,60% --pages-per-block 64 --seed 8"));
}

#[test]
fn invalid_quantities_are_refused_with_what_to_do() {
    let life = "lifetime --capacity 1TB --rate 100MB/s --write-amplification";
    for (args, says) in [
        (format!("{life} 0 --cycles 1000"), "is not a number above 0"),
        (format!("{life} NaN --cycles 1000"), "is not a number above 0"),
        (format!("{life} 4 --cycles 0"), "the number of cycles is 0"),
        (format!("{life} 4 --cell plc"), "slc mlc tlc qlc"),
        (format!("{life} 4"), "required"),
        (format!("{life} 4 --cell slc --cycles 3"), "cannot be used with"),
        ("lifetime --capacity 0B --cell slc --write-amplification 1 --rate 1B/s".into(), "is 0"),
        (
            "lifetime --capacity 1TB --cell slc --write-amplification 1 --rate 0B/s".into(),
            "50MiB/s",
        ),
        ("lifetime --capacity 1TB --cell slc --write-amplification 1 --rate 5MB".into(), "50MiB/s"),
        ("lifetime --capacity 10 --cell slc --write-amplification 1 --rate 1B/s".into(), "unit"),
        ("cleaning --utilization 100%".into(), "from 1% to 97%"),
        ("cleaning --utilization NaN".into(), "from 1% to 97%"),
        ("cleaning --utilization full".into(), "80% or 0.8"),
        ("cleaning --utilization 50%,".into(), "not a share"),
        ("cleaning --pages-per-block 1".into(), "2 to 4096"),
    ] {
        refused(&words(&format!("calc {args}")), &[says]);
    }
}
