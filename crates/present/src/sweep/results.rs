//! The results of a design as named values: the numbers, texts and truth values of the JSON of a
//! run.
//!
//! A name is the path in that JSON, joined by `_`. The unit of an object, such as `latency_ns`,
//! moves to the end of the names of what is in it.

use prism_base::Latencies;
use prism_workload::fio::stats::Dir;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::analysis::Analysis;
use crate::drive::json::device;
use crate::report;
use crate::sim;
use crate::simulation::Simulated;

/// One direction over all jobs.
#[derive(Debug, Default, Serialize)]
pub(super) struct DirObject {
    pub iops: f64,
    pub bytes_per_second: f64,
    pub mean_ns: Option<f64>,
    pub p99_ns: Option<u64>,
    pub p999_ns: Option<u64>,
}

/// The figures of all jobs together; rates are over the time of all stages.
pub(super) fn direction(simulated: &Simulated, dir: Dir) -> DirObject {
    let mut latency: Option<Latencies> = None;
    let (mut ios, mut bytes) = (0, 0);
    for stats in simulated.outcome.rows.iter().filter_map(|row| row.stats.dir(dir)) {
        ios += stats.ios;
        bytes += stats.bytes;
        match &mut latency {
            Some(all) => all.merge(&stats.latency),
            None => latency = Some(stats.latency.clone()),
        }
    }
    let seconds = simulated.outcome.total.simulated.as_secs_f64();
    let rate = |amount: u64| if seconds > 0.0 { amount as f64 / seconds } else { 0.0 };
    DirObject {
        iops: rate(ios),
        bytes_per_second: rate(bytes),
        mean_ns: latency.as_ref().map(Latencies::mean_ns),
        p99_ns: latency.as_ref().map(|all| all.quantile(0.99).0),
        p999_ns: latency.as_ref().map(|all| all.quantile(0.999).0),
    }
}

/// Parts of the result of a report that repeat its other figures for one of its drives or passes.
const REPEATED: [&str; 2] = ["fitted", "single_pass"];

/// The results of jobs.
pub(super) fn of_jobs(simulated: &Simulated) -> Map<String, Value> {
    let whole = sim::json(simulated);
    let mut results = Map::new();
    add(&mut results, "", &whole["result"]);
    add(&mut results, "read", &json!(direction(simulated, Dir::Read)));
    add(&mut results, "write", &json!(direction(simulated, Dir::Write)));
    let jobs = whole["jobs"].as_array().map_or(&[][..], Vec::as_slice);
    if jobs.len() > 1 {
        for job in jobs {
            let name = job["name"].as_str().unwrap_or_default();
            for key in ["read", "write", "trim", "flush"] {
                add(&mut results, &format!("job_{name}_{key}"), &job[key]);
            }
        }
    }
    add(&mut results, "device", &device(&simulated.scaled));
    results
}

/// The results of a trace.
pub(super) fn of_trace(analysis: &Analysis) -> Map<String, Value> {
    let mut whole = report::json(analysis, None);
    if let Some(result) = whole["result"].as_object_mut() {
        REPEATED.iter().for_each(|key| drop(result.shift_remove(*key)));
    }
    let mut results = Map::new();
    add(&mut results, "", &whole["result"]);
    // `passes` is the setting, which may be `steady`.
    if let Some(passes) = results.shift_remove("passes") {
        results.insert("passes_run".into(), passes);
    }
    for (rule, found) in whole["rules"].as_object().into_iter().flatten() {
        add(&mut results, &format!("score_{rule}"), &found["score"]);
    }
    add(&mut results, "device", &device(&analysis.facts.scaled));
    results
}

/// The units that names of objects of numbers end in.
const UNITS: [&str; 2] = ["_ns", "_bytes"];

/// Adds the values in `value` under names that begin with `name`. Lists are left out.
fn add(results: &mut Map<String, Value>, name: &str, value: &Value) {
    match value {
        Value::Object(object) => {
            let unit = UNITS.into_iter().find(|unit| name.ends_with(unit)).unwrap_or_default();
            let stem = name.strip_suffix(unit).unwrap_or(name);
            for (key, inner) in object {
                // The count of a distribution has not its unit.
                let unit = if key == "count" { "" } else { unit };
                let name =
                    if stem.is_empty() { key.clone() } else { format!("{stem}_{key}{unit}") };
                add(results, &name, inner);
            }
        }
        Value::Array(_) => {}
        plain => {
            results.insert(name.to_owned(), plain.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_paths_with_their_unit_last() {
        let mut results = Map::new();
        let value = json!({
            "write_amplification": 1.5,
            "latency_ns": {"read": {"count": 3, "p99": 7}, "write": {"mean": null}},
            "flash": {"reads": {"host": 1}},
            "rounds": [1, 2],
            "steady": true,
        });
        add(&mut results, "", &value);
        let expected = json!({
            "write_amplification": 1.5,
            "latency_read_count": 3,
            "latency_read_p99_ns": 7,
            "latency_write_mean_ns": null,
            "flash_reads_host": 1,
            "steady": true,
        });
        assert_eq!(Value::Object(results), expected);
    }
}
