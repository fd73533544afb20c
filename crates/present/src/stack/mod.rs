//! The matrix of applications and file systems: results as text, HTML page and JSON.

mod document;
mod json;

use prism_base::{Bytes, Nanos};
use prism_contract::rules::{Dimension, Findings, Rule, Verdict};
use prism_replay::SteadyState;
use prism_trace::Op;

use crate::analysis::Analysis;
use crate::contract::fail_on::Quantity;

/// The options of the matrix.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Applications, from top to bottom.
    pub apps: Vec<&'static str>,
    /// What each of them does.
    pub patterns: Vec<&'static str>,
    /// How each of them reads and writes.
    pub ios: Vec<&'static str>,
    /// How many of each run at once.
    pub instances: Vec<u32>,
    /// File systems, from left to right.
    pub file_systems: Vec<&'static str>,
    /// Size of the device.
    pub size: Bytes,
    /// About the bytes that an application writes to its files.
    pub written: Bytes,
    /// The longest time that it writes.
    pub time_max: Option<Nanos>,
    /// The settings of read-ahead with which records are read with cold caches.
    pub read_aheads: Vec<Bytes>,
    /// Memory of the application, page cache included.
    pub memory: Bytes,
    /// Seed of everything random.
    pub seed: u64,
    /// The drive on which traces are replayed.
    pub device: String,
}

/// An application that does something on a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Combination {
    /// The application.
    pub app: &'static str,
    /// What it does.
    pub pattern: &'static str,
    /// How it reads and writes.
    pub io: &'static str,
    /// How many run at once.
    pub instances: u32,
    /// The file system.
    pub fs: &'static str,
    /// The name of the combination.
    pub name: String,
}

/// One combination's result.
#[derive(Clone, Debug)]
pub enum Cell {
    /// The application cannot do this; what it cannot.
    Impossible(&'static str),
    /// It failed, and why.
    Failed(String),
    /// It was captured, to be analysed later.
    Captured(Captured),
    /// It was captured and analysed.
    Measured(Box<Measured>),
}

/// A trace that was captured and not analysed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// The trace.
    pub trace: String,
    /// The capture backend.
    pub backend: &'static str,
    /// Events lost because the kernel's buffer was full.
    pub lost: u64,
}

/// The figures of one combination, in the phase of the application.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Score and verdict of each rule, in the order of [`Rule::ALL`].
    pub rules: [(Option<f64>, Verdict); 5],
    /// The file or folder that violates each rule most; `None` if no request does, or if the
    /// capture has no names of files.
    pub worst: [Option<Worst>; 5],
    /// Bytes programmed to flash over bytes written; `None` if nothing was written.
    pub write_amplification: Option<f64>,
    /// Whether the trace was repeated until write amplification was steady.
    pub steady: SteadyState,
    /// Reads, by number and bytes.
    pub reads: (u64, Bytes),
    /// Writes, by number and bytes.
    pub writes: (u64, Bytes),
    /// Discards, by number and bytes.
    pub discards: (u64, Bytes),
    /// Bytes of writes that carry the metadata flag.
    pub metadata: Bytes,
    /// Distinct bytes that were written.
    pub unique: Bytes,
    /// Flushes.
    pub flushes: u64,
    /// From the first request to the last.
    pub took: Nanos,
    /// The capture backend.
    pub backend: &'static str,
    /// Events lost because the kernel's buffer was full.
    pub lost: u64,
    /// The trace, if it is kept.
    pub trace: Option<String>,
}

/// A file or folder, and its share of the violations of a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Worst {
    /// Its path in the file system.
    pub name: String,
    /// From 0 to 1.
    pub share: f64,
}

/// If the worst file has a smaller share than this, its folder is named instead.
const FILE_SHARE_MIN: f64 = 0.1;

/// All combinations, in rows of one for each file system.
pub struct Matrix {
    /// The options.
    pub setup: Setup,
    /// By application, pattern, way of reading and writing, and file system, the last one
    /// changing fastest.
    pub cells: Vec<(Combination, Cell)>,
}

impl Measured {
    /// The figures of `analysis`, of a trace that may be kept as `trace`. It was captured by
    /// `backend`, which lost `lost` events.
    #[must_use]
    pub fn of(
        analysis: &Analysis,
        backend: &'static str,
        lost: u64,
        trace: Option<String>,
    ) -> Self {
        let findings = &analysis.contract.findings;
        let facts = &analysis.facts;
        let summary = &facts.trace.summary;
        let of = |op: Op| (summary.op(op).count, Bytes(summary.op(op).bytes));
        Self {
            rules: Rule::ALL.map(|rule| (findings.score(rule), findings.verdict(rule))),
            worst: Rule::ALL.map(|rule| worst(findings, rule)),
            write_amplification: analysis.value(Quantity::WriteAmplification),
            steady: facts.outcome.steady,
            reads: of(Op::Read),
            writes: of(Op::Write),
            discards: of(Op::Discard),
            metadata: Bytes(summary.metadata_write_bytes),
            unique: Bytes(summary.unique_written_bytes),
            flushes: summary.flushes,
            took: Nanos(summary.duration_ns),
            backend,
            lost,
            trace,
        }
    }
}

fn worst(findings: &Findings, rule: Rule) -> Option<Worst> {
    let first = |by| findings.offenders(rule).iter().find(|offender| offender.by == by);
    let file = first(Dimension::File);
    let large = file.filter(|file| file.share >= FILE_SHARE_MIN);
    let found = large.or_else(|| first(Dimension::Directory)).or(file)?;
    Some(Worst { name: found.name.clone(), share: found.share })
}

impl Matrix {
    /// The combinations that failed, with the reasons.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let failed = self.cells.iter().filter_map(|(combination, cell)| match cell {
            Cell::Failed(why) => Some(format!("{}: {why}", combination.name)),
            Cell::Impossible(_) | Cell::Captured(_) | Cell::Measured(_) => None,
        });
        failed.collect()
    }

    /// The rows: name and cells, from left to right.
    fn rows(&self) -> impl Iterator<Item = (String, &[(Combination, Cell)])> {
        let rows = self.cells.chunks(self.setup.file_systems.len());
        rows.map(|row| (self.name(&row[0].0), row))
    }

    /// Application and pattern, the way of reading and writing unless all are buffered, and the
    /// number of instances unless there is one of each.
    fn name(&self, one: &Combination) -> String {
        let mut name = format!("{} {}", one.app, one.pattern);
        if self.setup.ios != ["buffered"] {
            name.push_str(&format!(" {}", one.io));
        }
        if self.setup.instances != [1] {
            name.push_str(&format!(" x{}", one.instances));
        }
        name
    }

    /// The combinations that were captured and not analysed.
    fn unanalysed(&self) -> Vec<&Captured> {
        let captured = self.cells.iter().filter_map(|(_, cell)| match cell {
            Cell::Captured(captured) => Some(captured),
            Cell::Impossible(_) | Cell::Failed(_) | Cell::Measured(_) => None,
        });
        captured.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A matrix of one row that was measured and one that is impossible or failed.
    pub(super) fn matrix() -> Matrix {
        let setup = Setup {
            apps: vec!["rocksdb", "sqlite-wal"],
            patterns: vec!["rand"],
            ios: vec!["direct"],
            instances: vec![1],
            file_systems: vec!["ext4", "xfs"],
            size: Bytes(1 << 30),
            written: Bytes(2 << 30),
            time_max: None,
            read_aheads: vec![Bytes(0)],
            memory: Bytes(128 << 20),
            seed: 7,
            device: "dc-tlc".into(),
        };
        let measured = |score: f64, verdict| {
            Cell::Measured(Box::new(Measured {
                rules: [(Some(score), verdict); 5],
                worst: std::array::from_fn(|_| Some(Worst { name: "s.db".into(), share: 0.5 })),
                write_amplification: Some(1.5),
                steady: SteadyState::Reached,
                reads: (1, Bytes(4096)),
                writes: (2, Bytes(8192)),
                discards: (3, Bytes(12_288)),
                metadata: Bytes(4096),
                unique: Bytes(4096),
                flushes: 4,
                took: Nanos(5),
                backend: "bpf",
                lost: 0,
                trace: None,
            }))
        };
        let results = [
            measured(0.95, Verdict::Kept),
            measured(0.125, Verdict::Broken),
            Cell::Impossible("cannot bypass the page cache"),
            Cell::Failed("disk full".into()),
        ];
        let names = ["rocksdb", "sqlite-wal"].into_iter().flat_map(|app| {
            ["ext4", "xfs"].map(|fs| Combination {
                app,
                pattern: "rand",
                io: "direct",
                instances: 1,
                fs,
                name: format!("{fs}-{app}-rand-direct"),
            })
        });
        let cells = names.zip(results).collect();
        Matrix { setup, cells }
    }

    #[test]
    fn rows_and_failures_are_named() {
        let matrix = matrix();
        let names: Vec<String> = matrix.rows().map(|(name, _)| name).collect();
        assert_eq!(names, ["rocksdb rand direct", "sqlite-wal rand direct"]);
        assert_eq!(matrix.failures(), ["xfs-sqlite-wal-rand-direct: disk full"]);
        let mut several = matrix;
        several.setup.instances = vec![1, 2];
        let names: Vec<String> = several.rows().map(|(name, _)| name).collect();
        assert_eq!(names[0], "rocksdb rand direct x1");
    }
}
