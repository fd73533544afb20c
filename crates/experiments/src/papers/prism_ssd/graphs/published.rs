//! Comparison with Figure 9, and the graphs of Table III. The rules were fixed before the first run
//! (`docs/prism-ssd.md`).

use super::super::published::{COPIES, Shape};
use super::super::{Below, GraphChange, GraphRow, Results, System};
use crate::comparison::{Basis, Comparison, Quantity, Why};

const FIGURE_9: &str = "Figure 9";

/// By how much preprocessing, execution and both are shorter at the policy level, in percent, on
/// the graph that the text calls Soc-Journal.
const SAVED: [(&str, f64); 3] = [("preprocessing", 5.2), ("execution", 7.6), ("total", 5.7)];

const KERNEL: Why = Why::Unexplained(
    "block mapping keeps fewer LUNs busy here; by pages, execution takes as long as on the drive, \
     and not less: GraphChi's threads and files, the file system, the page cache and the kernel, \
     which the paper replaces, are not modelled",
);
const SHARE: Why = Why::NotGiven("the paper gives neither iterations nor threads nor memory");

/// By how much the policy level is shorter, in percent of the time on a drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Saving {
    /// The engine.
    pub system: System,
    /// What is changed.
    pub change: GraphChange,
    /// Preprocessing, execution and both.
    pub percent: [f64; 3],
}

impl Saving {
    /// Of all changes that were run at both, or at one with what the other is without it.
    #[must_use]
    pub fn all(found: &Results) -> Vec<Self> {
        let changes = GraphChange::ALL.into_iter();
        let of =
            |change| [System::InMemory, System::Windows].map(|one| Self::of(found, one, change));
        changes.flat_map(of).flatten().collect()
    }

    fn of(found: &Results, system: System, change: GraphChange) -> Option<Self> {
        let row = |below, change| found.graph(system, below, change);
        let [drive, policy] = Below::ALL.map(|below| row(below, change));
        drive.or(policy)?;
        let [drive, policy] = [(drive, Below::Original), (policy, Below::Policy)]
            .map(|(found, below)| found.or_else(|| row(below, GraphChange::None)));
        let [drive, policy] = [times(drive?), times(policy?)];
        let saved = |step: usize| 100.0 * (1.0 - policy[step] / drive[step]);
        Some(Self { system, change, percent: [0, 1, 2].map(saved) })
    }
}

/// Preprocessing, execution and both, in seconds.
fn times(row: &GraphRow) -> [f64; 3] {
    [row.preprocessing, row.execution, row.total()].map(prism_base::Nanos::as_secs_f64)
}

/// Figure 9; nothing if it was not run.
pub(in super::super) fn compare(found: &Results) -> Vec<Comparison> {
    let mut all = Vec::new();
    let systems = [(System::InMemory, Basis::Independent), (System::Windows, Basis::Repeated)];
    for (system, basis) in systems {
        let Some(saving) = Saving::of(found, system, GraphChange::None) else { continue };
        for ((step, published), ours) in SAVED.into_iter().zip(saving.percent) {
            let what = format!("{}: {step} saved by Policy", system.name());
            let both = [published, ours];
            let row = Comparison::new(FIGURE_9, what, Quantity::Percent, both, COPIES, KERNEL);
            all.push(row.on(basis));
        }
    }
    if let Some(row) = found.graph(System::InMemory, Below::Original, GraphChange::None) {
        let [preprocessing, _, total] = times(row);
        let [(_, before), (_, execution), (_, both)] = SAVED;
        let published = 100.0 * (execution - both) / (execution - before);
        let both = [published, 100.0 * preprocessing / total];
        let what = "vertices in memory: preprocessing of the total, Original";
        let row = Comparison::new(FIGURE_9, what, Quantity::Percent, both, COPIES, SHARE);
        all.push(row.on(Basis::Derived));
    }
    all
}

/// "Our optimized implementation outperforms the stock GraphChi in both preprocessing and execution
/// steps", and what follows from data that is never updated.
pub(in super::super) fn shapes(found: &Results) -> Vec<Shape> {
    let saved = |system, step: usize| {
        Some(Saving::of(found, system, GraphChange::None)?.percent[step] > 0.0)
    };
    let copies = found.graph(System::InMemory, Below::Policy, GraphChange::None);
    let shape = |what, holds| Shape { place: FIGURE_9, what, holds };
    vec![
        shape("vertices in memory: Policy preprocesses faster", saved(System::InMemory, 0)),
        shape("vertices in memory: Policy executes faster", saved(System::InMemory, 1)),
        shape("sliding windows: Policy preprocesses faster", saved(System::Windows, 0)),
        shape("sliding windows: Policy executes faster", saved(System::Windows, 1)),
        shape(
            "vertices in memory: the device copies nothing at Policy",
            copies.map(|row| row.flash.copies == 0),
        ),
    ]
}

/// A graph of Table III.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Graph {
    /// Its name there.
    pub name: &'static str,
    /// Vertices there.
    pub vertices: &'static str,
    /// Edges there.
    pub edges: &'static str,
    /// Its size there.
    pub size: &'static str,
    /// What is known about it, or wrong.
    pub remark: &'static str,
    /// What was run here.
    pub here: &'static str,
}

/// Table III.
pub const GRAPHS: [Graph; 6] = {
    const fn graph([name, vertices, edges, size, remark, here]: [&'static str; 6]) -> Graph {
        Graph { name, vertices, edges, size, remark, here }
    }
    [
        graph(["Twitter2010", "41.7 m", "1.4 b", "26.2 GB", "", ""]),
        graph(["Yahooweb", "1.4 b", "6.6 b", "50 GB", "", ""]),
        graph([
            "Friendster",
            "6.6 m",
            "1.8 b",
            "211 MB",
            "wrong: 65.6 m vertices, and 1.8 b edges do not fit into 211 MB",
            "",
        ]),
        graph([
            "Twitter",
            "81,306",
            "1.8 m",
            "44 MB",
            "SNAP's ego-Twitter, without directions 1,342,310 edges",
            "",
        ]),
        graph([
            "LiveJournal",
            "4.0 m",
            "34.7 m",
            "1.1 GB",
            "the text has numbers of \"Soc-Journal\"",
            "R-MAT with as many edges a vertex",
        ]),
        graph(["Soc-Pokec", "1.6 m", "30.6 m", "404 MB", "", ""]),
    ]
};
