//! The result with the keys of fio 3's JSON, so that tools for fio's output can read it.
//!
//! Time stamps are in simulated time, which begins at 0, because a run depends on its options
//! alone. Figures that a simulated drive lacks (CPU time, page faults, merges) are 0. Prism's own
//! result is under the key `prism`.
//! Source: stat.c of fio 3.33, and its output.

use std::collections::BTreeMap;

use prism_base::Latencies;
use prism_ssd::{HostOp, Status};
use prism_workload::fio::Section;
use prism_workload::fio::job::Percentiles;
use prism_workload::fio::run::Row;
use prism_workload::fio::stats::{Dir, DirStats, JobStats};
use serde_json::{Map, Value, json};

use crate::json::without_null;
use crate::simulation::Simulated;

/// The JSON of a run; `bins` adds every latency that occurred, as `json+` does.
#[must_use]
pub fn output(facts: &Simulated, sections: &[Section], bins: bool) -> Value {
    let global = &sections[0].settings[..sections[0].defaults];
    let global: BTreeMap<_, _> = global.iter().map(|s| (s.option, s.value.as_str())).collect();
    let object = json!({
        "fio version": format!("fio-3.33 (simulated by prism-{})", env!("CARGO_PKG_VERSION")),
        "timestamp": 0,
        "timestamp_ms": 0,
        "time": "Thu Jan  1 00:00:00 1970",
        "global options": Some(&global).filter(|options| !options.is_empty()),
        "jobs": facts.outcome.rows.iter().map(|row| job(facts, row, bins)).collect::<Vec<_>>(),
        "disk_util": [disk(facts)],
        "prism": super::json(facts),
    });
    without_null(object, &["global options"])
}

fn job(facts: &Simulated, row: &Row, bins: bool) -> Value {
    let (job, stats) = (&facts.jobs[row.first], &row.stats);
    let dir = |dir| match stats.dir(dir) {
        Some(of) => {
            let group = group_bandwidth(facts, job.group, dir);
            dir_object(of, stats, group, Some(&job.percentiles), bins)
        }
        None => dir_object(&DirStats::default(), &JobStats::default(), 0.0, None, false),
    };
    let name = [("name".to_owned(), job.name.as_str().into())];
    let options = job.options.iter();
    let options = options.map(|(name, value)| ((*name).to_owned(), value.as_str().into()));
    let sync = match stats.flushes.as_deref() {
        Some(flushes) => latency(flushes, Some(&job.percentiles.list), bins),
        None => latency(&Latencies::default(), None, false),
    };
    let ios = stats.ios();
    let object = json!({
        "jobname": job.name,
        "groupid": job.group,
        // The errno of the first I/O that failed, 0 if none did.
        "error": stats.first_error.map_or(0, errno),
        // Only if an I/O failed, as in fio.
        "total_err": stats.first_error.map(|_| stats.errors),
        "first_error": stats.first_error.map(errno),
        "eta": 0,
        "elapsed": stats.end.0.div_ceil(1_000_000_000),
        "job options": name.into_iter().chain(options).collect::<Map<String, Value>>(),
        "desc": job.description,
        "read": dir(Dir::Read),
        "write": dir(Dir::Write),
        "trim": dir(Dir::Trim),
        "sync": {"total_ios": stats.flushes.as_deref().map_or(0, Latencies::count), "lat_ns": sync},
        "job_runtime": runtime(stats),
        "usr_cpu": 0.0,
        "sys_cpu": 0.0,
        "ctx": 0,
        "majf": 0,
        "minf": 0,
        "iodepth_level": shares(&["1", "2", "4", "8", "16", "32", ">=64"], &stats.depths, ios),
        "iodepth_submit": batches(ios),
        "iodepth_complete": batches(ios),
        "latency_ns": shares(&CLASSES[..10], &stats.nanos, ios),
        "latency_us": shares(&CLASSES[..10], &stats.micros, ios),
        "latency_ms": shares(&CLASSES, &stats.millis, ios),
        "latency_depth": job.depth,
        "latency_target": 0,
        "latency_percentile": 100.0,
        "latency_window": 0,
    });
    without_null(object, &["total_err", "first_error", "desc"])
}

/// The errno that the kernel reports: EIO for a medium error or a zone that accepts no writes,
/// EROFS for a read-only drive.
fn errno(status: Status) -> u32 {
    match status {
        Status::Done => 0,
        Status::Unreadable | Status::WriteFault => 5,
        Status::ReadOnly => 30,
    }
}

const CLASSES: [&str; 12] =
    ["2", "4", "10", "20", "50", "100", "250", "500", "750", "1000", "2000", ">=2000"];

/// Percentages of `total`.
fn shares(keys: &[&str], counts: &[u64], total: u64) -> Map<String, Value> {
    let share = |count: u64| if total == 0 { 0.0 } else { 100.0 * count as f64 / total as f64 };
    keys.iter().zip(counts).map(|(key, &n)| ((*key).to_owned(), share(n).into())).collect()
}

/// I/Os are issued and completed one by one; fio calls its class of 1 to 4 "4".
fn batches(ios: u64) -> Map<String, Value> {
    shares(&["0", "4", "8", "16", "32", "64", ">=64"], &[0, ios, 0, 0, 0, 0, 0], ios)
}

/// Milliseconds; a run that has I/Os took at least one.
fn runtime(stats: &JobStats) -> u64 {
    stats.span().0.div_ceil(1_000_000)
}

/// Bandwidth of all rows of a reporting group in one direction, in bytes per second.
fn group_bandwidth(facts: &Simulated, group: u32, dir: Dir) -> f64 {
    let rows = facts.outcome.rows.iter().filter(|row| facts.jobs[row.first].group == group);
    rows.map(|row| row.stats.dir(dir).map_or(0.0, |of| of.bandwidth.mean())).sum()
}

fn dir_object(
    of: &DirStats,
    stats: &JobStats,
    group_bandwidth: f64,
    percentiles: Option<&Percentiles>,
    bins: bool,
) -> Value {
    let list = |wanted: fn(&Percentiles) -> bool| {
        percentiles.filter(|&percentiles| wanted(percentiles)).map(|of| of.list.as_slice())
    };
    let bandwidth = stats.per_second(of.bytes);
    let kib = |bytes: f64| bytes / 1024.0;
    let mean = of.bandwidth.mean();
    let share = if group_bandwidth > 0.0 { mean / group_bandwidth } else { 0.0 };
    json!({
        "io_bytes": of.bytes,
        "io_kbytes": of.bytes / 1024,
        "bw_bytes": bandwidth as u64,
        "bw": kib(bandwidth) as u64,
        "iops": stats.per_second(of.ios),
        "runtime": runtime(stats),
        "total_ios": of.ios,
        "short_ios": 0,
        "drop_ios": 0,
        // The host takes no time, so the whole latency is completion latency.
        "slat_ns": {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": of.ios},
        "clat_ns": latency(&of.latency, list(|percentiles| percentiles.clat), bins),
        "lat_ns": latency(&of.latency, list(|percentiles| percentiles.lat), false),
        "bw_min": kib(of.bandwidth.min) as u64,
        "bw_max": kib(of.bandwidth.max) as u64,
        "bw_agg": 100.0 * share,
        "bw_mean": kib(mean),
        "bw_dev": kib(of.bandwidth.deviation()),
        "bw_samples": of.bandwidth.count,
        "iops_min": of.iops.min as u64,
        "iops_max": of.iops.max as u64,
        "iops_mean": of.iops.mean(),
        "iops_stddev": of.iops.deviation(),
        "iops_samples": of.iops.count,
    })
}

fn latency(of: &Latencies, percentiles: Option<&[f64]>, bins: bool) -> Value {
    let at = |&percent: &f64| (format!("{percent:.6}"), of.quantile(percent / 100.0).0.into());
    let bin = |(latency, count): (prism_base::Nanos, u64)| (latency.0.to_string(), count.into());
    let object = json!({
        "min": of.min().0,
        "max": of.max().0,
        "mean": of.mean_ns(),
        "stddev": of.deviation_ns(),
        "N": of.count(),
        "percentile": percentiles.map(|list| list.iter().map(at).collect::<Map<_, _>>()),
        "bins": bins.then(|| of.buckets().map(bin).collect::<Map<_, _>>()),
    });
    without_null(object, &["percentile", "bins"])
}

/// The kernel's disk statistics of the drive.
fn disk(facts: &Simulated) -> Value {
    let outcome = &facts.outcome;
    let total = &outcome.total;
    let ticks = |op| (total.latency_of(op).sum_ns() / 1_000_000) as u64;
    let name = facts.jobs.iter().find_map(|job| job.filename.as_deref()).unwrap_or("prism");
    let simulated = total.simulated.0;
    json!({
        "name": name.rsplit('/').next().unwrap_or(name),
        "read_ios": total.latency_of(HostOp::Read).count(),
        "write_ios": total.latency_of(HostOp::Write).count(),
        "read_sectors": total.bytes_of(HostOp::Read) / 512,
        "write_sectors": total.bytes_of(HostOp::Write) / 512,
        "read_merges": 0,
        "write_merges": 0,
        "read_ticks": ticks(HostOp::Read),
        "write_ticks": ticks(HostOp::Write),
        "in_queue": (total.in_flight_ns / 1_000_000) as u64,
        "util": match simulated {
            0 => 0.0,
            simulated => 100.0 * outcome.busy.0 as f64 / simulated as f64,
        },
    })
}
