//! Tables of the experiments of ATC'09.

use prism_experiments::atc09::{
    Bandwidths, Closest, HDD, PUBLISHED_GAIN, Scheduling, Stripes, gain,
};
use prism_report::{Column, Table, Unit, Value};

pub use super::later_tables::{
    alignment, informed, macro_notes, macros, pools, priority, settings,
};
pub use super::term_tables::{ends, idle_reads, term_notes, terms};

/// The bandwidths that come closest to those of the paper, and with what; of the disk, those of
/// the paper.
pub fn bandwidths(all: &[Bandwidths]) -> Table {
    let columns = vec![
        Column::text("drive"),
        Column::text("requests"),
        Column::number("sequential", Unit::Ratio),
        Column::number("random", Unit::Ratio),
        Column::number("ratio", Unit::Ratio),
        Column::number("published", Unit::Ratio),
        Column::text("sequential with"),
        Column::text("random with"),
    ];
    let caption = "MB/s, sequential over random, and what was in flight";
    let mut table = Table::new(caption, columns).whole();
    let mut row =
        |drive: &str, op: &str, [sequential, random]: [f64; 2], published, with: [_; 2]| {
            let [with_sequential, with_random] = with;
            table.rows.push(vec![
                drive.into(),
                op.into(),
                sequential.into(),
                random.into(),
                (sequential / random).into(),
                published,
                with_sequential,
                with_random,
            ]);
        };
    for (op, rates) in [("read", HDD.read), ("write", HDD.write)] {
        row("disk (quoted)", op, rates, Value::Missing, [Value::Missing, Value::Missing]);
    }
    for one in all {
        let (published, ours) = (one.drive.published(), one.ours());
        let sides = [
            ("read", published.read, ours.read, one.closest_reads()),
            ("write", published.write, ours.write, one.closest_writes()),
        ];
        for (op, [sequential, random], ours, Closest { random: r, sequential: s }) in sides {
            let with = [
                format!("{} x {} KiB", s.depth, s.size >> 10).into(),
                format!("{} x 4 KiB", r.depth).into(),
            ];
            row(one.drive.name(), op, ours, (sequential / random).into(), with);
        }
    }
    table
}

/// Random requests at every depth.
pub fn random(all: &[Bandwidths]) -> Table {
    let columns = vec![
        Column::text("drive"),
        Column::number("in flight", Unit::Count),
        Column::number("reads", Unit::Ratio),
        Column::number("writes", Unit::Ratio),
    ];
    let mut table = Table::new("Random requests of 4 KiB, MB/s", columns).whole();
    for one in all {
        table.rows.extend(one.random.iter().map(|random| {
            let depth = u64::from(random.depth);
            vec![one.drive.name().into(), depth.into(), random.read.into(), random.write.into()]
        }));
    }
    table
}

/// Sequential requests at every depth and size.
pub fn sequential(all: &[Bandwidths]) -> Table {
    let columns = vec![
        Column::text("drive"),
        Column::number("in flight", Unit::Count),
        Column::number("size", Unit::Bytes),
        Column::number("reads", Unit::Ratio),
        Column::number("writes", Unit::Ratio),
    ];
    let mut table = Table::new("Sequential requests, MB/s", columns);
    for one in all {
        table.rows.extend(one.sequential.iter().map(|sequential| {
            vec![
                one.drive.name().into(),
                u64::from(sequential.depth).into(),
                sequential.size.into(),
                sequential.read.into(),
                sequential.write.into(),
            ]
        }));
    }
    table
}

/// Both schedulers by load.
pub fn loads(scheduling: &Scheduling) -> Table {
    let columns = vec![
        Column::number("load", Unit::Ratio),
        Column::number("FCFS", Unit::Nanos),
        Column::number("SWTF", Unit::Nanos),
        Column::number("lower by", Unit::Percent),
        Column::number("published", Unit::Percent),
    ];
    let mut table = Table::new("Mean response", columns).whole();
    for curve in &scheduling.curves {
        table.rows.push(vec![
            curve.load.into(),
            curve.fcfs.into(),
            curve.swtf.into(),
            (gain(curve) / 100.0).into(),
            (PUBLISHED_GAIN / 100.0).into(),
        ]);
    }
    table
}

/// Bandwidth by size of writes.
pub fn stripes(stripes: &Stripes) -> Table {
    let columns = vec![
        Column::number("size", Unit::Bytes),
        Column::number("ours", Unit::Ratio),
        Column::number("closed form", Unit::Ratio),
    ];
    let mut table = Table::new("MB/s", columns).whole();
    for point in &stripes.points {
        table.rows.push(vec![point.size.into(), point.ours.into(), point.closed_form.into()]);
    }
    table
}
