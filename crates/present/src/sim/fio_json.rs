//! The result with the keys of fio 3's JSON, so that what reads fio's output reads this.
//!
//! Time stamps are those of simulated time, which begins at 0, because a run depends on
//! its options alone. What a simulated drive has not (CPU time, page faults, merges)
//! is 0. Prism's own result stands beside it under `prism`.
//! Source: stat.c of fio 3.33, and its output.

use std::collections::BTreeMap;

use prism_base::Latencies;
use prism_ssd::{HostOp, Status};
use prism_workload::fio::job::Percentiles;
use prism_workload::fio::run::Row;
use prism_workload::fio::stats::{Dir, DirStats, JobStats};
use prism_workload::fio::{Outcome, Section};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::{Facts, SimObject};

/// Keys in the order given.
#[derive(Debug, Default)]
struct Ordered<T>(Vec<(String, T)>);

impl<T: Serialize> Serialize for Ordered<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// The whole of it.
#[derive(Debug, Serialize)]
pub struct Output {
    #[serde(rename = "fio version")]
    version: String,
    timestamp: u64,
    timestamp_ms: u64,
    time: &'static str,
    #[serde(rename = "global options", skip_serializing_if = "BTreeMap::is_empty")]
    global: BTreeMap<&'static str, String>,
    jobs: Vec<JobObject>,
    disk_util: [DiskObject; 1],
    prism: SimObject,
}

#[derive(Debug, Serialize)]
struct JobObject {
    jobname: String,
    groupid: u32,
    /// The errno of the first I/O that failed, 0 if none did.
    error: u32,
    /// Only where an I/O failed, as fio has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    total_err: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_error: Option<u32>,
    eta: u64,
    elapsed: u64,
    #[serde(rename = "job options")]
    options: Ordered<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    desc: Option<String>,
    read: DirObject,
    write: DirObject,
    trim: DirObject,
    sync: SyncObject,
    job_runtime: u64,
    usr_cpu: f64,
    sys_cpu: f64,
    ctx: u64,
    majf: u64,
    minf: u64,
    iodepth_level: Ordered<f64>,
    iodepth_submit: Ordered<f64>,
    iodepth_complete: Ordered<f64>,
    latency_ns: Ordered<f64>,
    latency_us: Ordered<f64>,
    latency_ms: Ordered<f64>,
    latency_depth: u32,
    latency_target: u64,
    latency_percentile: f64,
    latency_window: u64,
}

#[derive(Debug, Default, Serialize)]
struct DirObject {
    io_bytes: u64,
    io_kbytes: u64,
    bw_bytes: u64,
    bw: u64,
    iops: f64,
    runtime: u64,
    total_ios: u64,
    short_ios: u64,
    drop_ios: u64,
    slat_ns: LatencyObject,
    clat_ns: LatencyObject,
    lat_ns: LatencyObject,
    bw_min: u64,
    bw_max: u64,
    bw_agg: f64,
    bw_mean: f64,
    bw_dev: f64,
    bw_samples: u64,
    iops_min: u64,
    iops_max: u64,
    iops_mean: f64,
    iops_stddev: f64,
    iops_samples: u64,
}

#[derive(Debug, Default, Serialize)]
struct LatencyObject {
    min: u64,
    max: u64,
    mean: f64,
    stddev: f64,
    #[serde(rename = "N")]
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    percentile: Option<Ordered<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bins: Option<Ordered<u64>>,
}

#[derive(Debug, Serialize)]
struct SyncObject {
    total_ios: u64,
    lat_ns: LatencyObject,
}

#[derive(Debug, Serialize)]
struct DiskObject {
    name: String,
    read_ios: u64,
    write_ios: u64,
    read_sectors: u64,
    write_sectors: u64,
    read_merges: u64,
    write_merges: u64,
    read_ticks: u64,
    write_ticks: u64,
    in_queue: u64,
    util: f64,
}

/// The JSON of a run; `bins` adds every latency that occurred, as `json+` does.
#[must_use]
pub fn output(facts: &Facts<'_>, sections: &[Section], bins: bool) -> Output {
    let global = &sections[0].settings[..sections[0].defaults];
    Output {
        version: format!("fio-3.33 (simulated by prism-{})", env!("CARGO_PKG_VERSION")),
        timestamp: 0,
        timestamp_ms: 0,
        time: "Thu Jan  1 00:00:00 1970",
        global: global.iter().map(|s| (s.word, s.value.clone())).collect(),
        jobs: facts.outcome.rows.iter().map(|row| job(facts, row, bins)).collect(),
        disk_util: [disk(facts)],
        prism: SimObject::new(facts),
    }
}

fn job(facts: &Facts<'_>, row: &Row, bins: bool) -> JobObject {
    let job = &facts.jobs[row.first];
    let stats = &row.stats;
    let dir = |dir| {
        let group = Group::of(facts, job.group, dir);
        stats.dir(dir).map(|of| dir_object(of, stats, &group, &job.percentiles, bins))
    };
    let name = [("name".to_owned(), job.name.clone())];
    let options = job.options.iter().map(|(word, value)| ((*word).to_owned(), value.clone()));
    let flushes = stats.flushes.as_deref();
    let no_flush = Latencies::default;
    let ios = stats.ios();
    JobObject {
        jobname: job.name.clone(),
        groupid: job.group,
        error: stats.first_error.map_or(0, errno),
        total_err: stats.first_error.map(|_| stats.errors),
        first_error: stats.first_error.map(errno),
        eta: 0,
        elapsed: stats.end.0.div_ceil(1_000_000_000),
        options: Ordered(name.into_iter().chain(options).collect()),
        desc: job.description.clone(),
        read: dir(Dir::Read).unwrap_or_default(),
        write: dir(Dir::Write).unwrap_or_default(),
        trim: dir(Dir::Trim).unwrap_or_default(),
        sync: SyncObject {
            total_ios: flushes.map_or(0, Latencies::count),
            lat_ns: match flushes {
                Some(flushes) => latency(flushes, Some(&job.percentiles.list), bins),
                None => latency(&no_flush(), None, false),
            },
        },
        job_runtime: runtime(stats),
        usr_cpu: 0.0,
        sys_cpu: 0.0,
        ctx: 0,
        majf: 0,
        minf: 0,
        iodepth_level: shares(&["1", "2", "4", "8", "16", "32", ">=64"], &stats.depths, ios),
        iodepth_submit: batches(ios),
        iodepth_complete: batches(ios),
        latency_ns: shares(&CLASSES[..10], &stats.nanos, ios),
        latency_us: shares(&CLASSES[..10], &stats.micros, ios),
        latency_ms: shares(&CLASSES, &stats.millis, ios),
        latency_depth: job.depth,
        latency_target: 0,
        latency_percentile: 100.0,
        latency_window: 0,
    }
}

/// What the kernel makes of it: EIO for a medium error or a zone that takes no more writes, EROFS
/// for a drive that is read-only.
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
fn shares(keys: &[&str], counts: &[u64], total: u64) -> Ordered<f64> {
    let share = |count: u64| if total == 0 { 0.0 } else { 100.0 * count as f64 / total as f64 };
    Ordered(keys.iter().zip(counts).map(|(key, &n)| ((*key).to_owned(), share(n))).collect())
}

/// I/Os are issued and completed one by one; fio's class of 1 to 4 is called 4.
fn batches(ios: u64) -> Ordered<f64> {
    shares(&["0", "4", "8", "16", "32", "64", ">=64"], &[0, ios, 0, 0, 0, 0, 0], ios)
}

/// Milliseconds; a run that has I/Os took at least one.
fn runtime(stats: &JobStats) -> u64 {
    stats.span().0.div_ceil(1_000_000)
}

/// Bandwidth of all rows of a reporting group in one direction, in bytes a second.
struct Group {
    bandwidth: f64,
}

impl Group {
    fn of(facts: &Facts<'_>, group: u32, dir: Dir) -> Self {
        let rows = facts.outcome.rows.iter().filter(|row| facts.jobs[row.first].group == group);
        let of_row = |row: &Row| row.stats.dir(dir).map_or(0.0, |of| of.bandwidth.mean());
        Self { bandwidth: rows.map(of_row).sum() }
    }
}

fn dir_object(
    of: &DirStats,
    stats: &JobStats,
    group: &Group,
    percentiles: &Percentiles,
    bins: bool,
) -> DirObject {
    let list = percentiles.list.as_slice();
    let bandwidth = stats.per_second(of.bytes);
    let kib = |bytes: f64| bytes / 1024.0;
    let share = if group.bandwidth > 0.0 { of.bandwidth.mean() / group.bandwidth } else { 0.0 };
    DirObject {
        io_bytes: of.bytes,
        io_kbytes: of.bytes / 1024,
        bw_bytes: bandwidth as u64,
        bw: kib(bandwidth) as u64,
        iops: stats.per_second(of.ios),
        runtime: runtime(stats),
        total_ios: of.ios,
        short_ios: 0,
        drop_ios: 0,
        // The host takes no time, so that all of a latency is that of completion.
        slat_ns: LatencyObject { count: of.ios, ..LatencyObject::default() },
        clat_ns: latency(&of.latency, percentiles.clat.then_some(list), bins),
        lat_ns: latency(&of.latency, percentiles.lat.then_some(list), false),
        bw_min: kib(of.bandwidth.min) as u64,
        bw_max: kib(of.bandwidth.max) as u64,
        bw_agg: 100.0 * share,
        bw_mean: kib(of.bandwidth.mean()),
        bw_dev: kib(of.bandwidth.deviation()),
        bw_samples: of.bandwidth.count,
        iops_min: of.iops.min as u64,
        iops_max: of.iops.max as u64,
        iops_mean: of.iops.mean(),
        iops_stddev: of.iops.deviation(),
        iops_samples: of.iops.count,
    }
}

fn latency(of: &Latencies, percentiles: Option<&[f64]>, bins: bool) -> LatencyObject {
    let at = |&percent: &f64| (format!("{percent:.6}"), of.quantile(percent / 100.0).0);
    let bin = |(latency, count): (prism_base::Nanos, u64)| (latency.0.to_string(), count);
    LatencyObject {
        min: of.min().0,
        max: of.max().0,
        mean: of.mean_ns(),
        stddev: of.deviation_ns(),
        count: of.count(),
        percentile: percentiles.map(|list| Ordered(list.iter().map(at).collect())),
        bins: bins.then(|| Ordered(of.buckets().map(bin).collect())),
    }
}

/// What the kernel would say of the drive.
fn disk(facts: &Facts<'_>) -> DiskObject {
    let outcome: &Outcome = facts.outcome;
    let total = &outcome.total;
    let ticks = |op| (total.latency_of(op).sum_ns() / 1_000_000) as u64;
    let name = facts.jobs.iter().find_map(|job| job.filename.as_deref()).unwrap_or("prism");
    let simulated = total.simulated.0;
    DiskObject {
        name: name.rsplit('/').next().unwrap_or(name).to_owned(),
        read_ios: total.latency_of(HostOp::Read).count(),
        write_ios: total.latency_of(HostOp::Write).count(),
        read_sectors: total.bytes_of(HostOp::Read) / 512,
        write_sectors: total.bytes_of(HostOp::Write) / 512,
        read_merges: 0,
        write_merges: 0,
        read_ticks: ticks(HostOp::Read),
        write_ticks: ticks(HostOp::Write),
        in_queue: (total.in_flight_ns / 1_000_000) as u64,
        util: if simulated == 0 { 0.0 } else { 100.0 * outcome.busy.0 as f64 / simulated as f64 },
    }
}
