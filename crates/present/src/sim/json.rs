//! Jobs on a drive as Prism's JSON. The keys and their order are stable.

use std::collections::BTreeMap;

use prism_base::Latencies;
use prism_workload::fio::run::{Row, Stage};
use prism_workload::fio::stats::Dir;
use serde_json::{Value, json};

use crate::drive::json::{device, end, figures};
use crate::json::join;
use crate::simulation::Simulated;

/// The whole result.
#[must_use]
pub fn json(facts: &Simulated) -> Value {
    let outcome = &facts.outcome;
    let stage = |stage: &Stage| {
        let jobs = facts.jobs[stage.jobs.clone()].iter().map(|job| job.name.as_str());
        join([json!({"jobs": jobs.collect::<Vec<_>>()}), figures(&stage.measured)])
    };
    let busy = json!({"busy_ns": outcome.busy.0});
    json!({
        "device": device(&facts.scaled),
        "initial_state": facts.state.name,
        "jobs": outcome.rows.iter().map(|row| job(facts, row)).collect::<Vec<_>>(),
        // The figures between two stonewalls.
        "stages": outcome.stages.iter().map(stage).collect::<Vec<_>>(),
        "result": join([figures(&outcome.total), busy, end(facts.run(), facts.run().lifetime())]),
        "seed": facts.seed,
    })
}

/// One row of the report.
fn job(facts: &Simulated, row: &Row) -> Value {
    let (job, stats) = (&facts.jobs[row.first], &row.stats);
    let dir = |dir| {
        stats.dir(dir).map(|of| {
            json!({
                "ios": of.ios,
                "bytes": of.bytes,
                "iops": stats.per_second(of.ios),
                "bytes_per_second": stats.per_second(of.bytes),
                "latency_ns": latency(&of.latency),
            })
        })
    };
    json!({
        "name": job.name,
        "jobs": row.jobs,
        "group": job.group,
        "options": job.options.iter().cloned().collect::<BTreeMap<_, _>>(),
        "simulated_ns": stats.span().0,
        "read": dir(Dir::Read),
        "write": dir(Dir::Write),
        "trim": dir(Dir::Trim),
        "flush": stats.flushes.as_deref().map(latency),
    })
}

fn latency(latencies: &Latencies) -> Value {
    let quantile = |q| latencies.quantile(q).0;
    json!({
        "count": latencies.count(),
        "min": latencies.min().0,
        "mean": latencies.mean_ns(),
        "deviation": latencies.deviation_ns(),
        "p50": quantile(0.5),
        "p90": quantile(0.9),
        "p95": quantile(0.95),
        "p99": quantile(0.99),
        "p999": quantile(0.999),
        "p9999": quantile(0.9999),
        "max": latencies.max().0,
    })
}
