//! The graph engine of Prism-SSD (section VI.C) in virtual time: GraphChi's design on a
//! conventional drive and on the policy level, and Prism's own engine there. Figure 9 and Table
//! III; `docs/prism-ssd.md` has the set-up.

mod own;
pub(super) mod published;

use prism_base::Nanos;
use prism_flash::FlashError;
use prism_flash::policy::Mapping;
use prism_graph::rmat::Rmat;
use prism_segments::{FlashCounts, PolicyStore, Store};

use super::graphchi::{
    self, Config, Cpu, Ranges, Space, Traffic, Volume, open_ranges, run_in_memory, run_windows,
};
use super::machine::{BLOCK, Board, CHANNELS, OWN_BLOCKS, SPARE};
use crate::benches::levels::lines_of_code;
use crate::scale::Scale;

pub use published::{GRAPHS, Graph, Saving};

/// Edges for ten vertices of LiveJournal in Table III: 34.7 m of 4.0 m.
const LIVE_JOURNAL: u64 = 87;
/// Edges for ten vertices of Graph500, and of the graph on which CPU time was measured.
const GRAPH_500: u64 = 160;
/// Bytes of flash for each edge.
const FLASH: u64 = 128;
/// Bytes of memory for each edge: 256 MiB for 16.8 M.
const MEMORY: u64 = 16;
/// Shards, as with that memory.
const SHARDS: u32 = 3;
/// GraphChi's default number of iterations, of which the first only sets values.
const ITERATIONS: u32 = 4;
/// Iterations of the longer runs: ten that compute.
const MORE: u32 = 11;
/// Nanoseconds of an edge for reading text: 1.76 s for 16.8 M. This constant and those below were
/// measured with GraphChi on another machine.
pub const PARSE: f64 = 105.0;
/// For making shards: 0.94 s.
pub const SHARD: f64 = 56.0;
/// An iteration by sliding windows: 14.0 CPU seconds for ten.
pub const WINDOWS: f64 = 83.0;
/// An iteration with vertices in memory: 8.3 CPU seconds for ten.
pub const IN_MEMORY: f64 = 49.0;
/// An iteration of Prism's engine: 0.32 CPU seconds for ten, measured on a prototype.
pub const OWN: f64 = 1.9;
/// Ingest of text by Prism's engine: 2.58 s for 16.8 M edges.
pub const INGEST: f64 = 154.0;

named_enum! {
    /// A graph engine.
    pub enum System {
        /// GraphChi's design with the values of vertices in memory, which the paper's text fits.
        InMemory = "GraphChi, vertices in memory",
        /// GraphChi's design by parallel sliding windows.
        Windows = "GraphChi, sliding windows",
        /// The engine of crate `graph`.
        Own = "Prism",
    }
}

named_enum! {
    /// Below the engine.
    pub enum Below {
        /// A conventional drive.
        Original = "Original",
        /// The policy level.
        Policy = "Policy",
    }
}

named_enum! {
    /// What differs from the runs that are compared with the paper's.
    pub enum GraphChange {
        /// Nothing.
        None = "",
        /// At the policy level results are mapped by blocks, edge values with them.
        Blocks = "results by blocks",
        /// At the policy level all is mapped by pages, which are spread over LUNs.
        Pages = "all by pages",
        /// The drive does not save its buffer when power fails: a flush writes it.
        Capacitors = "drive without capacitors",
        /// Ten iterations that compute.
        Iterations = "10 iterations",
        /// Computing takes no time.
        Cpu = "no CPU time",
        /// Sixteen edges a vertex.
        Density = "16 edges a vertex",
        /// Another seed.
        Seed = "second seed",
    }
}

/// An engine, what is below it, and what is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphRun {
    /// The engine.
    pub system: System,
    /// What is below.
    pub below: Below,
    /// What is changed.
    pub change: GraphChange,
}

/// What a run took.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphRow {
    /// What was run.
    pub run: GraphRun,
    /// Vertices.
    pub vertices: u32,
    /// Edges, without those from a vertex to itself.
    pub edges: u64,
    /// Virtual time from the first edge of the input to shards that are durable.
    pub preprocessing: Nanos,
    /// Virtual time of all iterations, with the result.
    pub execution: Nanos,
    /// Bytes read and written by execution. Prism's engine reads the graph from its own range, and
    /// writes results.
    pub traffic: Traffic,
    /// What was done to flash, by both.
    pub flash: FlashCounts,
    /// The sum of the ranks of all vertices.
    pub ranks: f64,
}

impl GraphRow {
    /// Preprocessing and execution.
    #[must_use]
    pub fn total(&self) -> Nanos {
        self.preprocessing + self.execution
    }
}

impl GraphRun {
    /// Every run; at a quarter of the scale those that are compared.
    #[must_use]
    pub fn all(scale: Scale) -> Vec<Self> {
        let changes = GraphChange::ALL.into_iter();
        let changes = changes.filter(|&change| scale == Scale::Full || change == GraphChange::None);
        let mut all = Vec::new();
        for change in changes {
            for system in System::ALL {
                let of = |below| Self { system, below, change };
                all.extend(Below::ALL.map(of).into_iter().filter(|run| run.is_possible()));
            }
        }
        all
    }

    /// Whether there is such a run, and the change concerns it.
    fn is_possible(self) -> bool {
        let Self { system, below, change } = self;
        if system == System::Own {
            return below == Below::Policy
                && !matches!(
                    change,
                    GraphChange::Blocks | GraphChange::Pages | GraphChange::Capacitors
                );
        }
        match change {
            GraphChange::Blocks => system == System::Windows && below == Below::Policy,
            GraphChange::Pages => below == Below::Policy,
            GraphChange::Capacitors => below == Below::Original,
            _ => true,
        }
    }

    /// Runs it.
    ///
    /// # Panics
    /// If the flash is too small, which is a defect.
    #[must_use]
    pub fn run(self, scale: Scale, seed: u64) -> GraphRow {
        let seed = if self.change == GraphChange::Seed { seed + 1 } else { seed };
        let input = Input::new(scale, seed, self.change);
        let row = match self.system {
            System::Own => own::ranks(self, input, self.iterations())
                .map(|(row, _)| row)
                .expect("the flash is large enough"),
            _ => run(self, input).expect("the flash is large enough"),
        };
        assert!(row.ranks > 0.1 * f64::from(row.vertices), "every rank is 0.15 or more: {row:?}");
        row
    }

    /// The CPU time of an iteration, in nanoseconds an edge.
    fn cpu(self) -> Cpu {
        let [parse, shard, iterate] = match self.system {
            _ if self.change == GraphChange::Cpu => [0.0; 3],
            System::InMemory => [PARSE, SHARD, IN_MEMORY],
            System::Windows => [PARSE, SHARD, WINDOWS],
            System::Own => [INGEST, 0.0, OWN],
        };
        Cpu { parse, shard, iterate }
    }

    /// Iterations, with the first of GraphChi.
    fn iterations(self) -> u32 {
        if self.change == GraphChange::Iterations { MORE } else { ITERATIONS }
    }

    /// The mappings of shards and of results: by blocks, as in the paper. But sliding windows
    /// rewrite parts of blocks in results.
    fn mappings(self) -> [Mapping; 2] {
        match (self.system, self.change) {
            (_, GraphChange::Pages) => [Mapping::Page; 2],
            (System::Windows, change) if change != GraphChange::Blocks => {
                [Mapping::Block, Mapping::Page]
            }
            _ => [Mapping::Block; 2],
        }
    }
}

/// A graph and the flash for it.
#[derive(Clone, Copy, Debug)]
struct Input {
    scale: u32,
    edges: u64,
    seed: u64,
    /// Bytes.
    memory: u64,
    board: Board,
}

impl Input {
    fn new(scale: Scale, seed: u64, change: GraphChange) -> Self {
        let (power, divisor) = match scale {
            Scale::Full => (18, 16),
            Scale::Quarter => (16, 64),
        };
        let each = if change == GraphChange::Density { GRAPH_500 } else { LIVE_JOURNAL };
        let edges = (each << power) / 10;
        let block_bytes = BLOCK / divisor;
        let blocks = (edges * FLASH / block_bytes) as u32;
        let blocks = blocks.next_multiple_of(CHANNELS);
        let board = Board { blocks, block_bytes, divisor, seed };
        Self { scale: power, edges, seed, memory: edges * MEMORY, board }
    }

    fn edges(self) -> impl Iterator<Item = [u32; 2]> {
        let edges = Rmat::new(self.scale, self.seed).take(self.edges as usize);
        edges.map(|edge| [edge.source as u32, edge.target as u32])
    }

    /// The two ranges: a third of what is not spare is for results.
    fn ranges(self, mappings: [Mapping; 2]) -> Ranges {
        let kept = u64::from(self.board.blocks * (100 - SPARE) / 100);
        Ranges { blocks: [kept - kept / 3, kept / 3], mappings }
    }
}

/// Runs the iterations of a mode.
type Execute = fn(&mut Volume, &graphchi::Sharded, &Config) -> Result<(), FlashError>;

fn execute(system: System) -> Execute {
    if system == System::Windows { run_windows } else { run_in_memory }
}

/// Files on new flash.
fn prepare(run: GraphRun, input: Input) -> Result<(Volume, Config), FlashError> {
    let stores: Vec<Box<dyn Store>> = match run.below {
        Below::Original => {
            let board = input.board;
            let capacitors = run.change != GraphChange::Capacitors;
            vec![Box::new(board.drive(board.block_bytes as u32, false, capacitors))]
        }
        Below::Policy => {
            let share = input.board.share(OWN_BLOCKS)?;
            let (_, stores) = open_ranges(share, input.ranges(run.mappings()))?;
            stores.map(|store: PolicyStore| Box::new(store) as Box<dyn Store>).into()
        }
    };
    let windows = run.system == System::Windows;
    let config = Config {
        shards: SHARDS,
        memory: input.memory,
        edge_values: if windows { Space::Results } else { Space::Shards },
        cpu: run.cpu(),
        iterations: run.iterations(),
    };
    Ok((Volume::new(stores)?, config))
}

/// Runs GraphChi's design.
fn run(run: GraphRun, input: Input) -> Result<GraphRow, FlashError> {
    let (mut volume, config) = prepare(run, input)?;
    let vertices = 1 << input.scale;
    let (begin, before) = (volume.now(), volume.counts());
    let graph = graphchi::shard(&mut volume, vertices, input.edges(), &config)?;
    let (sharded, written) = (volume.now(), volume.traffic());
    execute(run.system)(&mut volume, &graph, &config)?;
    let (end, flash, traffic) = (volume.now(), volume.counts(), volume.traffic());
    let ranks = graph.result(&mut volume)?;
    Ok(GraphRow {
        run,
        vertices,
        edges: graph.edges(),
        preprocessing: sharded.since(begin),
        execution: end.since(sharded),
        traffic: traffic.since(written),
        flash: flash.since(&before),
        ranks: ranks.into_iter().map(f64::from).sum(),
    })
}

/// Lines of what GraphChi's design needs at the policy level, without blank lines and comments: the
/// store of the level, segments instead of files, and the ranges.
#[must_use]
pub fn lines() -> usize {
    let own: usize = graphchi::SOURCES.into_iter().map(lines_of_code).sum();
    own + super::lines_of_store("policy")
}

#[cfg(test)]
mod tests;
