//! The algorithms by name, and their options.

use prism_base::vec_in_huge_pages;

use crate::algorithms::cdlp::{self, cdlp};
use crate::algorithms::frontier::{Bits, UNREACHED, bfs, sssp};
use crate::algorithms::kcore::{self, kcore};
use crate::algorithms::pagerank::{Form, PageRank, Until};
use crate::algorithms::paths::{Paths, Smallest, refuse_overflow};
use crate::algorithms::triangles::{self, Count};
use crate::algorithms::wcc::{self, wcc};
use crate::algorithms::{Column, by_lists, stored};
use crate::engine::Graph;
use crate::error::{GraphError, Result};
use crate::external;
use crate::pool::{Cell, CellF32, CellF64, Pool};
use crate::pull::{self, Schedule, Vertex};
use crate::results::Results;

prism_base::named_enum! {
    /// An algorithm.
    pub enum Algorithm {
        /// PageRank
        Pagerank = "pagerank",
        /// Personalised PageRank of a source
        Ppr = "ppr",
        /// Weakly connected components: the smallest vertex of each
        Wcc = "wcc",
        /// Fewest edges from a source
        Bfs = "bfs",
        /// Shortest paths from a source by weights
        Sssp = "sssp",
        /// Communities by label propagation
        Cdlp = "cdlp",
        /// Local clustering coefficients
        Lcc = "lcc",
        /// Triangles at each vertex
        Triangles = "triangles",
        /// Core numbers
        Kcore = "kcore",
        /// Edges of each vertex
        Degrees = "degrees",
    }
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
    /// Whether PageRank keeps its values in four bytes, not eight.
    pub single: bool,
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
    /// The round after which it went on, if an earlier run had saved one.
    pub resumed_after: Option<u32>,
}

impl Computed {
    /// A result of a run that began with its first round.
    pub(crate) fn new(column: Column, rounds: u32, facts: Vec<(&'static str, f64)>) -> Self {
        Self { column, rounds, facts, resumed_after: None }
    }
}

impl Algorithm {
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
        let key = options.key(self.name());
        let (whole, part) = self.state_bytes(graph, pool, options);
        let place = place(graph, pool, whole, part, results)?;
        match (self, place) {
            (Self::Pagerank | Self::Ppr, ValuesAt::Memory(results)) if options.single => {
                let mut program = page_rank::<CellF32>(graph, options, source);
                pagerank(graph, results, pool, &mut program, options, &key)
            }
            (Self::Pagerank | Self::Ppr, ValuesAt::Memory(results)) => {
                let mut program = page_rank::<CellF64>(graph, options, source);
                pagerank(graph, results, pool, &mut program, options, &key)
            }
            (Self::Pagerank | Self::Ppr, ValuesAt::Flash(results)) => {
                refuse_in_memory_only(options)?;
                let mut program = page_rank(graph, options, source);
                stored::pagerank(graph, results, pool, &mut program, &key)
            }
            (Self::Bfs | Self::Sssp, place) => {
                let source = source.expect("it was checked");
                let weighted = self == Self::Sssp;
                refuse_negative(graph, weighted)?;
                match place {
                    ValuesAt::Flash(results) => {
                        stored::paths(graph, results, pool, Paths { source, weighted }, &key)
                    }
                    ValuesAt::Memory(_) if weighted => distances(graph, pool, source),
                    ValuesAt::Memory(_) => levels(graph, pool, source),
                }
            }
            (_, ValuesAt::Flash(results)) => {
                self.run_on_flash(graph, results, pool, &key, options.iterations)
            }
            (Self::Wcc, _) => components(graph, pool),
            (Self::Cdlp, _) => communities(graph, pool, options.iterations.unwrap_or(ROUNDS_CDLP)),
            (Self::Lcc, _) => coefficients(graph, pool),
            (Self::Triangles, _) => all_triangles(graph, pool),
            (Self::Kcore, _) => cores(graph, pool),
            (Self::Degrees, _) => degrees(graph, pool),
        }
    }

    /// Bytes of memory that it needs next to buffers: with the values of all vertices in memory,
    /// and with values on flash.
    #[must_use]
    pub fn state_bytes(self, graph: &Graph, pool: &dyn Pool, options: &Options) -> (u64, u64) {
        let Options { schedule, single, .. } = *options;
        let vertices = u64::from(graph.catalog().vertices);
        match self {
            Self::Pagerank | Self::Ppr => {
                let intervals = graph.catalog().intervals;
                let whole = match single {
                    true => pull::state_bytes::<PageRank<CellF32>>(schedule, intervals),
                    false => pull::state_bytes::<PageRank>(schedule, intervals),
                };
                (vertices * whole, external::state_bytes::<PageRank>(graph))
            }
            Self::Wcc => (
                wcc::state_bytes(graph.catalog().vertices),
                external::state_bytes::<Smallest>(graph),
            ),
            // Levels or distances, degrees, and two bits.
            Self::Bfs | Self::Sssp => (vertices * 9, external::state_bytes::<Paths>(graph)),
            Self::Cdlp => (cdlp::state_bytes(graph, pool), by_lists::bytes_min(graph)),
            Self::Kcore => (kcore::state_bytes(graph, pool), by_lists::bytes_min(graph)),
            Self::Lcc | Self::Triangles => {
                (triangles::bytes_min(graph, pool), by_lists::triangles_bytes_min(graph))
            }
            Self::Degrees => (vertices * 8, external::SEGMENTS * graph.segment_bytes()),
        }
    }

    /// Runs one of the algorithms that need no source and no options but rounds, with values on
    /// flash.
    fn run_on_flash(
        self,
        graph: &mut Graph,
        results: Results,
        pool: &dyn Pool,
        key: &str,
        iterations: Option<u32>,
    ) -> Result<Computed> {
        match self {
            Self::Wcc => stored::components(graph, results, pool, key),
            Self::Cdlp => {
                let until = (key, iterations.unwrap_or(ROUNDS_CDLP));
                stored::communities(graph, results, pool, until)
            }
            Self::Kcore => stored::cores(graph, results, pool, key),
            Self::Lcc => stored::coefficients(graph, results, pool, key),
            Self::Triangles => stored::triangles(graph, results, pool, key),
            _ => stored::degrees(graph, results, pool, key),
        }
    }
}

fn components(graph: &mut Graph, pool: &dyn Pool) -> Result<Computed> {
    let labels = wcc(graph, pool)?;
    let used = Bits::new(graph.catalog().vertices);
    labels.iter().for_each(|label| used.set(*label));
    let facts = vec![("components", used.count() as f64)];
    Ok(Computed::new(Column::Labels(labels), 1, facts))
}

/// Rounds of label propagation if nothing is given: those of LDBC.
const ROUNDS_CDLP: u32 = 10;

fn communities(graph: &mut Graph, pool: &dyn Pool, rounds: u32) -> Result<Computed> {
    let (labels, rounds) = cdlp(graph, pool, rounds)?;
    let used = Bits::new(graph.catalog().vertices);
    labels.iter().for_each(|label| used.set(*label));
    let facts = vec![("communities", used.count() as f64)];
    Ok(Computed::new(Column::Labels(labels), rounds, facts))
}

fn coefficients(graph: &mut Graph, pool: &dyn Pool) -> Result<Computed> {
    let counted = triangles::count(graph, pool, Count::Arcs)?;
    let values = triangles::coefficients(&counted, graph.catalog().directed);
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let (rounds, facts) = (counted.passes, vec![("mean coefficient", mean)]);
    Ok(Computed::new(Column::Reals(values), rounds, facts))
}

fn all_triangles(graph: &mut Graph, pool: &dyn Pool) -> Result<Computed> {
    let counted = triangles::count(graph, pool, Count::Triangles)?;
    let all = counted.counts.iter().sum::<u64>() / 3;
    let (rounds, facts) = (counted.passes, vec![("triangles", all as f64)]);
    Ok(Computed::new(Column::Counts(counted.counts), rounds, facts))
}

fn cores(graph: &mut Graph, pool: &dyn Pool) -> Result<Computed> {
    let (cores, rounds) = kcore(graph, pool)?;
    let most = cores.iter().copied().max().unwrap_or(0);
    let facts = vec![("largest core number", most.into())];
    Ok(Computed::new(Column::SmallCounts(cores), rounds, facts))
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
    Ok(Computed::new(Column::Counts(counts), 1, facts))
}

/// Rounds of PageRank if there is a tolerance and no other number.
const ROUNDS_MAX: u32 = 1000;
/// Rounds of PageRank if nothing is given.
const ROUNDS_USUAL: u32 = 20;

impl Options {
    /// What values depend on, apart from the graph and the number of rounds.
    fn key(&self, name: &str) -> String {
        let Self { source, damping, form, schedule, tolerance, single, .. } = self;
        let precision = if *single { " single" } else { "" };
        format!("{name} {source:?} {damping} {form:?} {schedule:?} {tolerance:?}{precision}")
    }
}

/// Where the values of vertices are.
enum ValuesAt {
    /// In memory.
    Memory(Option<Results>),
    /// In the results.
    Flash(Results),
}

/// Where the values are if they and what else is needed have `whole` bytes in memory, and `part`
/// bytes are needed with values on flash.
fn place(
    graph: &Graph,
    pool: &dyn Pool,
    whole: u64,
    part: u64,
    results: Option<Results>,
) -> Result<ValuesAt> {
    let left = graph.state_max(pool);
    match results {
        Some(results) if whole > left && graph.catalog().intervals > 1 && part <= left => {
            Ok(ValuesAt::Flash(results))
        }
        Some(_) if whole > left => {
            let buffers = graph.buffers_min(pool);
            Err(external::too_little(graph, whole + buffers, part + buffers))
        }
        results => Ok(ValuesAt::Memory(results)),
    }
}

/// Refuses options that values on flash do not have.
fn refuse_in_memory_only(options: &Options) -> Result<()> {
    let what = match (options.schedule, options.single) {
        (Schedule::Asynchronous, _) => "see those of the round before; leave --async away",
        (_, true) => "have eight bytes; leave --single-precision away",
        _ => return Ok(()),
    };
    let what = format!(
        "the values do not fit into memory, and values on flash {what}, or give \
                        more by --memory"
    );
    Err(GraphError::Refused(what))
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
    Ok(Computed::new(Column::Levels(levels), rounds, facts))
}

fn distances(graph: &mut Graph, pool: &dyn Pool, source: u32) -> Result<Computed> {
    let (lengths, rounds) = sssp(graph, pool, source)?;
    let finite = || lengths.iter().copied().filter(|length| length.is_finite());
    refuse_overflow(finite().fold(0.0, f64::max))?;
    let reached = finite().count();
    let facts = vec![("vertices reached", reached as f64)];
    Ok(Computed::new(Column::Reals(lengths), rounds, facts))
}

fn page_rank<C>(graph: &Graph, options: &Options, source: Option<u32>) -> PageRank<C> {
    let until = match (options.tolerance, options.iterations) {
        (Some(change), rounds) => Until::Change(change, rounds.unwrap_or(ROUNDS_MAX)),
        (None, rounds) => Until::Rounds(rounds.unwrap_or(ROUNDS_USUAL)),
    };
    PageRank::new(graph.catalog().vertices, options.damping, options.form, source, until)
}

/// Runs PageRank with the values in memory, with checkpoints between rounds if they are wanted.
fn pagerank<C: Cell<Value = f64>>(
    graph: &mut Graph,
    mut results: Option<Results>,
    pool: &dyn Pool,
    program: &mut PageRank<C>,
    options: &Options,
    key: &str,
) -> Result<Computed> {
    let (content, vertices) = (graph.catalog().content, graph.catalog().vertices);
    let every = options.checkpoint.unwrap_or(0);
    let mut begin = None;
    if let (Some(results), true) = (&mut results, every > 0)
        && let Some((round, totals)) = results.round(content, key, program.rounds_max())
    {
        let mut values = vec_in_huge_pages(vertices as usize);
        results.values(0..vertices, |_, bits| values.push(C::new(f64::from_bits(bits))))?;
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
    let mut ranks: Vec<f64> = state.values.into_iter().map(|cell| cell.get()).collect();
    graph.degrees(|number, [_, degree]| {
        let rank = &mut ranks[number as usize];
        *rank = PageRank::<C>::rank(Vertex { number, degree }, *rank);
    })?;
    let facts = vec![("sum of ranks", ranks.iter().sum()), ("last change", program.change())];
    let resumed_after = results.and_then(|results| results.resumed_after());
    Ok(Computed { resumed_after, ..Computed::new(Column::Reals(ranks), state.rounds, facts) })
}
