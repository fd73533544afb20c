//! The algorithms by name, and their options.

use crate::algorithms::cdlp::cdlp;
use crate::algorithms::frontier::{Bits, UNREACHED, bfs, sssp};
use crate::algorithms::kcore::kcore;
use crate::algorithms::pagerank::{Form, PageRank, Until};
use crate::algorithms::paths::Paths;
use crate::algorithms::triangles::{self, Count};
use crate::algorithms::wcc::wcc;
use crate::algorithms::{Column, Stored};
use crate::engine::Graph;
use crate::error::{GraphError, Result};
use crate::external;
use crate::pool::{Cell, CellF64, Pool};
use crate::pull::{self, Schedule, Vertex, VertexProgram};
use crate::results::Results;

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
    /// PageRank is saved after each multiple of this many rounds, and goes on after the last one
    /// that was saved.
    pub checkpoint: Option<u32>,
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

    /// Runs it. With a space for results, which a checkpoint needs, values that do not fit into
    /// memory are there, if the graph has several intervals.
    ///
    /// # Errors
    /// [`GraphError`].
    ///
    /// # Panics
    /// Never.
    pub fn run(
        self,
        graph: &mut Graph,
        results: Option<Results>,
        pool: &dyn Pool,
        options: &Options,
    ) -> Result<Computed> {
        let source = match options.source {
            Some(id) if self.has_source() => Some(graph.vertex(id)?),
            None if self.has_source() => {
                let what = "the algorithm begins at a vertex; name it by --source";
                return Err(GraphError::Refused(what.into()));
            }
            _ => None,
        };
        match self {
            Self::Pagerank | Self::Ppr => {
                let mut program = page_rank(graph, options, source);
                let key = options.key(self.name());
                let intervals = graph.catalog().intervals;
                let whole = pull::state_bytes::<PageRank>(options.schedule, intervals);
                match by_intervals::<PageRank>(graph, pool, whole, results)? {
                    (Some(_), true) if options.schedule == Schedule::Asynchronous => {
                        let what = "rounds with values on flash see those of the round before; \
                                    give more by --memory, or leave --async away";
                        Err(GraphError::Refused(what.into()))
                    }
                    (Some(results), true) => {
                        pagerank_external(graph, results, pool, &mut program, &key)
                    }
                    (results, _) => pagerank(graph, results, pool, &mut program, options, &key),
                }
            }
            Self::Wcc => {
                let labels = wcc(graph, pool)?;
                let roots = (0..).zip(&labels).filter(|(vertex, label)| vertex == *label).count();
                let facts = vec![("components", roots as f64)];
                Ok(Computed { column: Column::Labels(labels), rounds: 1, facts })
            }
            Self::Bfs | Self::Sssp => {
                let source = source.expect("it was checked");
                let weighted = self == Self::Sssp;
                refuse_negative(graph, weighted)?;
                // Levels or distances, degrees, and two bits.
                let whole = 9;
                match by_intervals::<Paths>(graph, pool, whole, results)? {
                    (Some(results), true) => {
                        let key = options.key(self.name());
                        paths_external(graph, results, pool, Paths { source, weighted }, &key)
                    }
                    _ if weighted => distances(graph, pool, source),
                    _ => levels(graph, pool, source),
                }
            }
            Self::Cdlp => communities(graph, pool, options.iterations.unwrap_or(ROUNDS_CDLP)),
            Self::Lcc => coefficients(graph, pool),
            Self::Triangles => all_triangles(graph, pool),
            Self::Kcore => cores(graph, pool),
            Self::Degrees => degrees(graph, pool),
        }
    }
}

/// Rounds of label propagation if nothing is given: those of LDBC.
const ROUNDS_CDLP: u32 = 10;

fn communities(graph: &mut Graph, pool: &dyn Pool, rounds: u32) -> Result<Computed> {
    let (labels, rounds) = cdlp(graph, pool, rounds)?;
    let used = Bits::new(graph.catalog().vertices);
    labels.iter().for_each(|label| used.set(*label));
    let facts = vec![("communities", used.count() as f64)];
    Ok(Computed { column: Column::Labels(labels), rounds, facts })
}

fn coefficients(graph: &mut Graph, pool: &dyn Pool) -> Result<Computed> {
    let counted = triangles::count(graph, pool, Count::Arcs)?;
    let values = triangles::coefficients(&counted, graph.catalog().directed);
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let (rounds, facts) = (counted.passes, vec![("mean coefficient", mean)]);
    Ok(Computed { column: Column::Reals(values), rounds, facts })
}

fn all_triangles(graph: &mut Graph, pool: &dyn Pool) -> Result<Computed> {
    let counted = triangles::count(graph, pool, Count::Triangles)?;
    let all = counted.counts.iter().sum::<u64>() / 3;
    let (rounds, facts) = (counted.passes, vec![("triangles", all as f64)]);
    Ok(Computed { column: Column::Counts(counted.counts), rounds, facts })
}

fn cores(graph: &mut Graph, pool: &dyn Pool) -> Result<Computed> {
    let (cores, rounds) = kcore(graph, pool)?;
    let most = cores.iter().copied().max().unwrap_or(0);
    let cores = cores.into_iter().map(u64::from).collect();
    let facts = vec![("largest core number", most.into())];
    Ok(Computed { column: Column::Counts(cores), rounds, facts })
}

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

impl Options {
    /// What values depend on, apart from the graph and the number of rounds.
    fn key(&self, name: &str) -> String {
        let Self { source, damping, form, schedule, tolerance, .. } = self;
        format!("{name} {source:?} {damping} {form:?} {schedule:?} {tolerance:?}")
    }
}

/// Whether values of `whole` bytes for each vertex have to be in the results, not in memory.
fn by_intervals<P: VertexProgram>(
    graph: &Graph,
    pool: &dyn Pool,
    whole: u64,
    results: Option<Results>,
) -> Result<(Option<Results>, bool)> {
    let needed = u64::from(graph.catalog().vertices) * whole;
    if needed <= graph.state_max(pool) {
        return Ok((results, false));
    }
    match results {
        Some(results)
            if graph.catalog().intervals > 1
                && external::state_bytes::<P>(graph) <= graph.state_max(pool) =>
        {
            Ok((Some(results), true))
        }
        _ => Err(external::too_little(graph, needed + graph.buffers_min(pool))),
    }
}

fn refuse_negative(graph: &Graph, weighted: bool) -> Result<()> {
    if !weighted || !graph.catalog().weighted || !graph.catalog().negative {
        return Ok(());
    }
    let what = "the graph has negative weights, with which shortest paths are not computed";
    Err(GraphError::Refused(what.into()))
}

fn levels(graph: &mut Graph, pool: &dyn Pool, source: u32) -> Result<Computed> {
    let (levels, rounds) = bfs(graph, pool, source)?;
    let reached = levels.iter().filter(|level| **level != UNREACHED).count();
    let facts = vec![("vertices reached", reached as f64)];
    Ok(Computed { column: Column::Levels(levels), rounds, facts })
}

fn distances(graph: &mut Graph, pool: &dyn Pool, source: u32) -> Result<Computed> {
    let (lengths, rounds) = sssp(graph, pool, source)?;
    let reached = lengths.iter().filter(|length| length.is_finite()).count();
    let facts = vec![("vertices reached", reached as f64)];
    Ok(Computed { column: Column::Reals(lengths), rounds, facts })
}

fn paths_external(
    graph: &mut Graph,
    mut results: Results,
    pool: &dyn Pool,
    mut program: Paths,
    key: &str,
) -> Result<Computed> {
    // No path has more edges than there are vertices.
    let until = (key, graph.catalog().vertices);
    let rounds = external::run(graph, &mut results, pool, &mut program, until)?;
    let mut reached = 0_u64;
    results.values(0, graph.catalog().vertices, |_, bits| {
        reached += u64::from(f64::from_bits(bits).is_finite());
        Ok(())
    })?;
    let facts = vec![("vertices reached", reached as f64)];
    let column = Column::Stored(Box::new(Stored::new(results, !program.weighted)));
    Ok(Computed { column, rounds, facts })
}

fn page_rank(graph: &Graph, options: &Options, source: Option<u32>) -> PageRank {
    let until = match (options.tolerance, options.iterations) {
        (Some(change), rounds) => Until::Change(change, rounds.unwrap_or(ROUNDS_MAX)),
        (None, rounds) => Until::Rounds(rounds.unwrap_or(ROUNDS_USUAL)),
    };
    PageRank::new(graph.catalog().vertices, options.damping, options.form, source, until)
}

fn pagerank_external(
    graph: &mut Graph,
    mut results: Results,
    pool: &dyn Pool,
    program: &mut PageRank,
    key: &str,
) -> Result<Computed> {
    let until = (key, program.rounds_max());
    let rounds = external::run(graph, &mut results, pool, program, until)?;
    // Ranks replace what vertices give along edges.
    let (content, per) = (graph.catalog().content, graph.catalog().interval_vertices);
    let (vertices, mut sum) = (graph.catalog().vertices, 0.0);
    for first in (0..vertices).step_by(per as usize) {
        let end = first.saturating_add(per).min(vertices);
        let mut values = Vec::new();
        results.values(first, end, |_, bits| {
            values.push(f64::from_bits(bits));
            Ok(())
        })?;
        graph.degrees_of(first..end, |number, [_, degree]| {
            let value = values[(number - first) as usize];
            let rank = PageRank::rank(Vertex { number, degree }, value);
            sum += rank;
            results.push(rank.to_bits())
        })?;
    }
    results.commit(content, &format!("{key} done"), rounds, [0.0; 2])?;
    let facts = vec![("sum of ranks", sum), ("last change", program.change())];
    Ok(Computed { column: Column::Stored(Box::new(Stored::new(results, false))), rounds, facts })
}

/// Runs PageRank with the values in memory, with checkpoints between rounds if they are wanted.
fn pagerank(
    graph: &mut Graph,
    mut results: Option<Results>,
    pool: &dyn Pool,
    program: &mut PageRank,
    options: &Options,
    key: &str,
) -> Result<Computed> {
    let (content, vertices) = (graph.catalog().content, graph.catalog().vertices);
    let every = options.checkpoint.unwrap_or(0);
    let mut begin = None;
    if let (Some(results), true) = (&mut results, every > 0)
        && let Some((round, totals)) = results.round(content, key, program.rounds_max())
    {
        let mut values = Vec::with_capacity(vertices as usize);
        results.values(0, vertices, |_, bits| {
            values.push(CellF64::new(f64::from_bits(bits)));
            Ok(())
        })?;
        begin = Some((round, totals, values));
    }
    let schedule = options.schedule;
    let state = pull::run(graph, pool, program, schedule, begin, &mut |round, totals, values| {
        match &mut results {
            Some(results) if every > 0 && round % every == 0 => {
                for value in values {
                    results.push(value.get().to_bits())?;
                }
                results.commit(content, key, round, totals)
            }
            _ => Ok(()),
        }
    })?;
    let mut ranks: Vec<f64> = state.values.iter().map(Cell::get).collect();
    drop(state.values);
    graph.degrees(|number, [_, degree]| {
        let rank = &mut ranks[number as usize];
        *rank = PageRank::rank(Vertex { number, degree }, *rank);
    })?;
    let facts = vec![("sum of ranks", ranks.iter().sum()), ("last change", program.change())];
    Ok(Computed { column: Column::Reals(ranks), rounds: state.rounds, facts })
}
