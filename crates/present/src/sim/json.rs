//! The result as Prism's JSON: keys stay as they are and in this order.

use std::collections::BTreeMap;

use prism_base::Latencies;
use prism_workload::fio::run::Row;
use prism_workload::fio::stats::Dir;
use serde::Serialize;

use super::Facts;
use crate::drive::faults::FaultsObject;
use crate::drive::json::{DeviceObject, FiguresObject, LifetimeObject, WearObject};

/// The whole of it.
#[derive(Debug, Serialize)]
pub struct SimObject {
    device: DeviceObject,
    initial_state: String,
    jobs: Vec<JobObject>,
    stages: Vec<StageObject>,
    result: ResultObject,
    seed: u64,
}

#[derive(Debug, Serialize)]
struct ResultObject {
    #[serde(flatten)]
    figures: FiguresObject,
    busy_ns: u64,
    buffered_bytes: u64,
    lifetime: LifetimeObject,
    wear: WearObject,
    /// Only where the drive ages.
    #[serde(skip_serializing_if = "Option::is_none")]
    faults: Option<FaultsObject>,
}

/// What the drive did between two stonewalls.
#[derive(Debug, Serialize)]
struct StageObject {
    jobs: Vec<String>,
    #[serde(flatten)]
    figures: FiguresObject,
}

/// One row of the report.
#[derive(Debug, Serialize)]
struct JobObject {
    name: String,
    jobs: usize,
    group: u32,
    options: BTreeMap<&'static str, String>,
    simulated_ns: u64,
    read: Option<DirObject>,
    write: Option<DirObject>,
    trim: Option<DirObject>,
    flush: Option<LatencyObject>,
}

#[derive(Debug, Serialize)]
struct DirObject {
    ios: u64,
    bytes: u64,
    iops: f64,
    bytes_per_second: f64,
    latency_ns: LatencyObject,
}

#[derive(Debug, Serialize)]
struct LatencyObject {
    count: u64,
    min: u64,
    mean: f64,
    deviation: f64,
    p50: u64,
    p90: u64,
    p95: u64,
    p99: u64,
    p999: u64,
    p9999: u64,
    max: u64,
}

impl SimObject {
    /// The object of a run.
    #[must_use]
    pub fn new(facts: &Facts<'_>) -> Self {
        let outcome = facts.outcome;
        Self {
            device: DeviceObject::new(facts.scaled),
            initial_state: facts.state.name.clone(),
            jobs: outcome.rows.iter().map(|row| job(facts, row)).collect(),
            stages: outcome
                .stages
                .iter()
                .map(|stage| StageObject {
                    jobs: facts.jobs[stage.jobs.clone()].iter().map(|j| j.name.clone()).collect(),
                    figures: FiguresObject::new(&stage.measured),
                })
                .collect(),
            result: ResultObject {
                figures: FiguresObject::new(&outcome.total),
                busy_ns: outcome.busy.0,
                buffered_bytes: facts.buffered.0,
                lifetime: LifetimeObject::new(facts.lifetime()),
                wear: WearObject::new(facts.wear),
                faults: FaultsObject::new(&outcome.total, &facts.scaled.device, facts.health),
            },
            seed: facts.seed,
        }
    }
}

fn job(facts: &Facts<'_>, row: &Row) -> JobObject {
    let job = &facts.jobs[row.first];
    let stats = &row.stats;
    let dir = |dir| {
        stats.dir(dir).map(|of| DirObject {
            ios: of.ios,
            bytes: of.bytes,
            iops: stats.per_second(of.ios),
            bytes_per_second: stats.per_second(of.bytes),
            latency_ns: latency(&of.latency),
        })
    };
    JobObject {
        name: job.name.clone(),
        jobs: row.jobs,
        group: job.group,
        options: job.options.iter().cloned().collect(),
        simulated_ns: stats.span().0,
        read: dir(Dir::Read),
        write: dir(Dir::Write),
        trim: dir(Dir::Trim),
        flush: stats.flushes.as_deref().map(latency),
    }
}

fn latency(latencies: &Latencies) -> LatencyObject {
    let quantile = |q| latencies.quantile(q).0;
    LatencyObject {
        count: latencies.count(),
        min: latencies.min().0,
        mean: latencies.mean_ns(),
        deviation: latencies.deviation_ns(),
        p50: quantile(0.5),
        p90: quantile(0.9),
        p95: quantile(0.95),
        p99: quantile(0.99),
        p999: quantile(0.999),
        p9999: quantile(0.9999),
        max: latencies.max().0,
    }
}
