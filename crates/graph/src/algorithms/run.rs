//! The algorithms by name, and their options.

use std::collections::BTreeSet;

use crate::algorithms::Column;
use crate::algorithms::cdlp::cdlp;
use crate::algorithms::frontier::{bfs, sssp};
use crate::algorithms::kcore::kcore;
use crate::algorithms::pagerank::{Form, PageRank, Until};
use crate::algorithms::triangles::{self, Count};
use crate::algorithms::wcc::wcc;
use crate::engine::Graph;
use crate::error::{GraphError, Result};
use crate::pool::{Cell, Pool};
use crate::pull::{self, Schedule, Vertex};

/// An algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// PageRank
    Pagerank,
    /// Personalised PageRank of a source
    Ppr,
    /// Weakly connected components: the smallest vertex of each
    Wcc,
    /// Fewest edges from a source
    Bfs,
    /// Shortest paths from a source by weights
    Sssp,
    /// Communities by label propagation
    Cdlp,
    /// Local clustering coefficients
    Lcc,
    /// Triangles at each vertex
    Triangles,
    /// Core numbers
    Kcore,
    /// Edges of each vertex
    Degrees,
}

/// Options of algorithms.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Rounds.
    pub iterations: Option<u32>,
    /// The source, as its number in the input.
    pub source: Option<u64>,
    /// The damping factor of PageRank.
    pub damping: f64,
    /// The change at which PageRank ends.
    pub tolerance: Option<f64>,
    /// PageRank as GraphChi's.
    pub form: Form,
    /// When rounds see changes.
    pub schedule: Schedule,
}

/// The result of an algorithm.
pub struct Computed {
    /// The values.
    pub column: Column,
    /// Rounds.
    pub rounds: u32,
    /// What else was found, such as the number of components.
    pub facts: Vec<(&'static str, f64)>,
}

impl Algorithm {
    /// Every algorithm, with its name.
    pub const ALL: [(Self, &'static str); 10] = [
        (Self::Pagerank, "pagerank"),
        (Self::Ppr, "ppr"),
        (Self::Wcc, "wcc"),
        (Self::Bfs, "bfs"),
        (Self::Sssp, "sssp"),
        (Self::Cdlp, "cdlp"),
        (Self::Lcc, "lcc"),
        (Self::Triangles, "triangles"),
        (Self::Kcore, "kcore"),
        (Self::Degrees, "degrees"),
    ];

    /// Its name.
    ///
    /// # Panics
    /// Never: all are listed.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(algorithm, _)| *algorithm == self).expect("all are listed").1
    }

    /// Whether it needs a source.
    #[must_use]
    pub fn has_source(self) -> bool {
        matches!(self, Self::Ppr | Self::Bfs | Self::Sssp)
    }

    /// Runs it.
    pub fn run(self, graph: &mut Graph, pool: &dyn Pool, options: &Options) -> Result<Computed> {
        let source = match options.source {
            Some(id) if self.has_source() => Some(graph.vertex(id)?),
            None if self.has_source() => {
                let what = "the algorithm begins at a vertex; name it by --source";
                return Err(GraphError::Refused(what.into()));
            }
            _ => None,
        };
        match self {
            Self::Pagerank | Self::Ppr => pagerank(graph, pool, options, source),
            Self::Wcc => {
                let labels = wcc(graph, pool)?;
                let roots = (0..).zip(&labels).filter(|(vertex, label)| vertex == *label).count();
                let facts = vec![("components", roots as f64)];
                Ok(Computed { column: Column::Labels(labels), rounds: 1, facts })
            }
            Self::Bfs => {
                let (levels, rounds) = bfs(graph, pool, source.expect("it was checked"))?;
                let reached = levels.iter().filter(|level| **level != u32::MAX).count();
                let facts = vec![("vertices reached", reached as f64)];
                Ok(Computed { column: Column::Levels(levels), rounds, facts })
            }
            Self::Sssp => {
                let (lengths, rounds) = sssp(graph, pool, source.expect("it was checked"))?;
                let reached = lengths.iter().filter(|length| length.is_finite()).count();
                let facts = vec![("vertices reached", reached as f64)];
                Ok(Computed { column: Column::Reals(lengths), rounds, facts })
            }
            Self::Cdlp => {
                let rounds = options.iterations.unwrap_or(ROUNDS_CDLP);
                let (labels, rounds) = cdlp(graph, pool, rounds)?;
                let distinct: BTreeSet<u32> = labels.iter().copied().collect();
                let facts = vec![("communities", distinct.len() as f64)];
                Ok(Computed { column: Column::Labels(labels), rounds, facts })
            }
            Self::Lcc => {
                let counted = triangles::count(graph, pool, Count::Arcs)?;
                let values = triangles::coefficients(&counted, graph.catalog().directed);
                let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
                let (rounds, facts) = (counted.passes, vec![("mean coefficient", mean)]);
                Ok(Computed { column: Column::Reals(values), rounds, facts })
            }
            Self::Triangles => {
                let counted = triangles::count(graph, pool, Count::Triangles)?;
                let all = counted.counts.iter().sum::<u64>() / 3;
                let (rounds, facts) = (counted.passes, vec![("triangles", all as f64)]);
                Ok(Computed { column: Column::Counts(counted.counts), rounds, facts })
            }
            Self::Kcore => {
                let (cores, rounds) = kcore(graph, pool)?;
                let most = cores.iter().copied().max().unwrap_or(0);
                let cores = cores.into_iter().map(u64::from).collect();
                let facts = vec![("largest core number", most.into())];
                Ok(Computed { column: Column::Counts(cores), rounds, facts })
            }
            Self::Degrees => degrees(graph, pool),
        }
    }
}

/// Rounds of label propagation if nothing is given: those of LDBC.
const ROUNDS_CDLP: u32 = 10;

fn degrees(graph: &mut Graph, pool: &dyn Pool) -> Result<Computed> {
    let vertices = graph.catalog().vertices as usize;
    let directed = graph.catalog().directed;
    graph.reserve("the degrees", vertices as u64 * 8, &[], pool)?;
    let mut counts = vec![0; vertices];
    graph.degrees(|vertex, [to, from]| {
        let both = if directed { u64::from(to) + u64::from(from) } else { to.into() };
        counts[vertex as usize] = both;
    })?;
    let most = counts.iter().copied().max().unwrap_or(0) as f64;
    let facts = vec![("largest degree", most)];
    Ok(Computed { column: Column::Counts(counts), rounds: 1, facts })
}

/// Rounds of PageRank if there is a tolerance and no other number.
const ROUNDS_MAX: u32 = 1000;
/// Rounds of PageRank if nothing is given.
const ROUNDS_USUAL: u32 = 20;

fn pagerank(
    graph: &mut Graph,
    pool: &dyn Pool,
    options: &Options,
    source: Option<u32>,
) -> Result<Computed> {
    let until = match (options.tolerance, options.iterations) {
        (Some(change), rounds) => Until::Change(change, rounds.unwrap_or(ROUNDS_MAX)),
        (None, rounds) => Until::Rounds(rounds.unwrap_or(ROUNDS_USUAL)),
    };
    let vertices = graph.catalog().vertices;
    let mut program = PageRank::new(vertices, options.damping, options.form, source, until);
    let schedule = options.schedule;
    let state = pull::run(graph, pool, &mut program, schedule, None, &mut |_, _, _| Ok(()))?;
    let mut ranks: Vec<f64> = state.values.iter().map(Cell::get).collect();
    drop(state.values);
    graph.degrees(|number, [_, degree]| {
        let rank = &mut ranks[number as usize];
        *rank = PageRank::rank(Vertex { number, degree }, *rank);
    })?;
    let facts = vec![("sum of ranks", ranks.iter().sum()), ("last change", program.change())];
    Ok(Computed { column: Column::Reals(ranks), rounds: state.rounds, facts })
}
