//! Tables of the experiments of ATC'09.

use prism_experiments::atc09::{
    Bandwidths, Closest, HDD, PUBLISHED_GAIN, Scheduling, Stripes, gain,
};
use prism_report::{Table, Unit};

pub use super::later_tables::{
    alignment, informed, macro_notes, macros, pools, priority, settings,
};
pub use super::term_tables::{ends, idle_reads, term_notes, terms};

/// The bandwidths that come closest to those of the paper, with their settings. Those of the
/// disk are the paper's.
pub fn bandwidths(all: &[Bandwidths]) -> Table {
    let quoted = |op, rates| ClosestRow { drive: "disk (quoted)", op, rates, paper: None };
    let mut rows = vec![quoted("read", HDD.read), quoted("write", HDD.write)];
    for one in all {
        let (published, ours, drive) = (one.drive.published(), one.ours(), one.drive.name());
        let reads = Some((published.read, one.closest_reads()));
        let writes = Some((published.write, one.closest_writes()));
        rows.push(ClosestRow { drive, op: "read", rates: ours.read, paper: reads });
        rows.push(ClosestRow { drive, op: "write", rates: ours.write, paper: writes });
    }
    Table::listing(&rows)
        .text("drive", |row| row.drive)
        .text("requests", |row| row.op)
        .number("sequential", Unit::Ratio, |row| row.rates[0])
        .number("random", Unit::Ratio, |row| row.rates[1])
        .number("ratio", Unit::Ratio, |row| row.rates[0] / row.rates[1])
        .number("published", Unit::Ratio, |row| {
            row.paper.as_ref().map(|([sequential, random], _)| sequential / random)
        })
        .text("sequential with", |row| {
            let (_, Closest { sequential, .. }) = row.paper.as_ref()?;
            Some(format!("{} x {} KiB", sequential.depth, sequential.size >> 10))
        })
        .text("random with", |row| {
            let (_, Closest { random, .. }) = row.paper.as_ref()?;
            Some(format!("{} x 4 KiB", random.depth))
        })
        .whole("MB/s, sequential over random, and the requests in flight")
}

/// Reads or writes of a drive.
struct ClosestRow {
    drive: &'static str,
    op: &'static str,
    /// Sequential and random.
    rates: [f64; 2],
    /// The paper's rates, and the closest settings; `None` for quoted rates.
    paper: Option<([f64; 2], Closest)>,
}

/// Random requests at every depth.
pub fn random(all: &[Bandwidths]) -> Table {
    let rows: Vec<_> =
        all.iter().flat_map(|one| one.random.iter().map(move |rates| (one, rates))).collect();
    Table::listing(&rows)
        .text("drive", |(one, _)| one.drive.name())
        .number("in flight", Unit::Count, |(_, rates)| rates.depth)
        .number("reads", Unit::Ratio, |(_, rates)| rates.read)
        .number("writes", Unit::Ratio, |(_, rates)| rates.write)
        .whole("Random requests of 4 KiB, MB/s")
}

/// Sequential requests at every depth and size.
pub fn sequential(all: &[Bandwidths]) -> Table {
    let rows: Vec<_> =
        all.iter().flat_map(|one| one.sequential.iter().map(move |rates| (one, rates))).collect();
    Table::listing(&rows)
        .text("drive", |(one, _)| one.drive.name())
        .number("in flight", Unit::Count, |(_, rates)| rates.depth)
        .number("size", Unit::Bytes, |(_, rates)| rates.size)
        .number("reads", Unit::Ratio, |(_, rates)| rates.read)
        .number("writes", Unit::Ratio, |(_, rates)| rates.write)
        .table("Sequential requests, MB/s")
}

/// Both schedulers by load.
pub fn loads(scheduling: &Scheduling) -> Table {
    Table::listing(&scheduling.curves)
        .number("load", Unit::Ratio, |curve| curve.load)
        .number("FCFS", Unit::Nanos, |curve| curve.fcfs)
        .number("SWTF", Unit::Nanos, |curve| curve.swtf)
        .number("lower by", Unit::Percent, |curve| gain(curve) / 100.0)
        .number("published", Unit::Percent, |_| PUBLISHED_GAIN / 100.0)
        .whole("Mean response")
}

/// Bandwidth by size of writes.
pub fn stripes(stripes: &Stripes) -> Table {
    Table::listing(&stripes.points)
        .number("size", Unit::Bytes, |point| point.size)
        .number("ours", Unit::Ratio, |point| point.ours)
        .number("closed form", Unit::Ratio, |point| point.closed_form)
        .whole("MB/s")
}
