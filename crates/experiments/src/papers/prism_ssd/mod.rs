//! The key-value cache, the file system and the graph engine of Prism-SSD (Shen, Chen, Shao: "One
//! size never fits all: a flexible storage interface for SSDs", ICDCS 2019, section VI) at the
//! levels of the library, in virtual time: Figures 4 to 7 and Table I, Figure 8 and Table II,
//! Figure 9 and Table III.
//!
//! The cache is crate `cache` with the store of each level, the file system crate `fs`;
//! `docs/prism-ssd.md` and `docs/design/ulfs.md` have the set-up and the rules by which numbers are
//! compared, and say which of the paper's settings are not known. Flash: 12 channels with one LUN
//! each and the times of the preset `memblaze`. For the cache the number of blocks is that of the
//! paper's 30 GB, and their size is divided.

mod figures;
mod files;
mod graphchi;
mod graphs;
mod machine;
mod published;
mod server;

use prism_cache::cache::Eviction;
use prism_segments::SOURCES;

use crate::benches::levels::lines_of_code;
use crate::scale::Scale;

pub use figures::{
    BACKEND, CPU, DEVIATION, EXPONENT, GETS, GcRow, HitRow, MISS_PERCENT, PERCENTS, SIXTH,
    ServerRow,
};
pub use files::{CALL, Change, FsRow, USED, USED_BY_FEW, Variant};
pub use graphchi::Traffic;
pub use graphs::{
    Below, GRAPHS, Graph, GraphChange, GraphRow, GraphRun, IN_MEMORY, INGEST, OWN, PARSE, SHARD,
    Saving, System, WINDOWS, lines as lines_of_graphs,
};
pub use prism_fs::workload::Personality;
pub use published::{Shape, compare, shapes};
pub use server::Served;

/// Bytes of keys and values, on average, of the model of Facebook's workload.
const ITEM_BYTES: u64 = 365;
/// The paper's data set, of which 10 % are about 25 GB.
const DATA_SET: u64 = 250_000_000_000;
/// The flash of Table I.
const FLASH: u64 = 30_000_000_000;
/// What is in the cache at the beginning of Figures 6 and 7 and of Table I.
const PRELOADED: u64 = 25_000_000_000;
/// Sets of Table I.
const SETS: u64 = 140_000_000;

named_enum! {
    /// A cache of the paper.
    pub enum Engine {
        /// On a conventional drive.
        Original = "Original",
        /// At the policy level.
        Policy = "Policy",
        /// At the function level.
        Function = "Function",
        /// At the raw level.
        Raw = "Raw",
        /// On the device without the library: the paper's DIDACache.
        Ideal = "DIDACache",
    }
}

impl Engine {
    /// Lines of the store at this level, without blank lines and comments.
    #[must_use]
    pub fn lines(self) -> usize {
        let name = match self {
            Self::Original => "conventional drive",
            Self::Policy => "policy",
            Self::Function => "function",
            Self::Raw => "raw",
            Self::Ideal => "ideal",
        };
        lines_of_store(name)
    }
}

/// Lines of the store called `name`, without blank lines and comments.
fn lines_of_store(name: &str) -> usize {
    let found = SOURCES.iter().find(|(level, _)| *level == name);
    lines_of_code(found.expect("a store of this name").1)
}

named_enum! {
    /// How often keys are used in Figure 4.
    pub enum Keys {
        /// By a Normal distribution over the keys, as in Table I.
        Normal = "Normal",
        /// By Zipf's law.
        Zipf = "Zipf",
    }
}

/// A cache to be run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Design {
    /// The level.
    pub engine: Engine,
    /// What cleaning does with items.
    pub eviction: Eviction,
    /// Whether a conventional drive gets trims.
    pub trims: bool,
    /// Whether it saves its write buffer when power fails, so that a flush writes nothing.
    pub capacitors: bool,
    /// Slabs in the memory of the cache.
    pub buffers: u16,
}

impl From<Engine> for Design {
    /// The cache as it is compared with the paper's.
    fn from(engine: Engine) -> Self {
        let eviction = engine.eviction();
        Self { engine, eviction, trims: false, capacitors: true, buffers: machine::BUFFERS }
    }
}

/// The scale and the seed of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// By which the paper's bytes and requests are divided.
    pub divisor: u64,
    /// The seed.
    pub seed: u64,
}

impl Setup {
    /// The set-up at a scale of the command.
    #[must_use]
    pub fn new(scale: Scale, seed: u64) -> Self {
        let divisor = match scale {
            Scale::Full => 64,
            Scale::Quarter => 128,
        };
        Self { divisor, seed }
    }

    /// Items in `bytes` bytes of the paper.
    fn items(self, bytes: u64) -> u64 {
        bytes / ITEM_BYTES / self.divisor
    }
}

/// An experiment, independent of the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Part {
    /// Figure 4: hits of a cache of this percentage of the data set.
    Hits(Engine, u32, Keys),
    /// Figure 5: throughput with a backend.
    Backend(Engine),
    /// Figures 6 and 7: all shares of gets, with or without CPU time of the server.
    Server(Engine, bool),
    /// Table I: a design, what is different from the one compared with the paper, and the deviation
    /// of the keys.
    Gc(Design, &'static str, f64, Setup),
    /// Figure 8 and Table II: a workload on a file system.
    Files(Variant, Personality, Change),
    /// Figure 9: a graph engine.
    Graphs(GraphRun),
}

impl Part {
    /// Every experiment, the longest first; at a quarter of the scale those of the comparison with
    /// the paper, without Figure 5.
    #[must_use]
    pub fn all(scale: Scale, seed: u64) -> Vec<Self> {
        let setup = Setup::new(scale, seed);
        let timed = Engine::ALL.into_iter().filter(|&engine| engine != Engine::Ideal);
        let hits = |percent, keys| {
            [Engine::Original, Engine::Raw].map(|engine| Self::Hits(engine, percent, keys))
        };
        let table = Engine::ALL.map(|engine| Self::Gc(engine.into(), "", SIXTH, setup));
        let mut all = Vec::new();
        if scale == Scale::Quarter {
            all.extend([6, 12].into_iter().flat_map(|percent| hits(percent, Keys::Normal)));
            all.extend(timed.map(|engine| Self::Server(engine, false)));
            all.extend(table);
            all.extend(Self::file_systems(&[Change::None]));
            all.extend(GraphRun::all(scale).into_iter().map(Self::Graphs));
            return all;
        }
        all.extend(Self::changed(setup));
        all.extend(timed.clone().map(Self::Backend));
        all.extend(timed.flat_map(|engine| [false, true].map(|cpu| Self::Server(engine, cpu))));
        for keys in Keys::ALL {
            all.extend(PERCENTS.into_iter().rev().flat_map(|percent| hits(percent, keys)));
        }
        all.extend(table);
        all.extend(Self::file_systems(&Change::ALL));
        all.extend(GraphRun::all(scale).into_iter().map(Self::Graphs));
        all
    }

    /// Figure 8 and Table II, with these changes.
    fn file_systems(changes: &[Change]) -> Vec<Self> {
        let mut all = Vec::new();
        for &change in changes {
            for variant in Variant::ALL.into_iter().filter(|&variant| change.concerns(variant)) {
                let of = |workload| Self::Files(variant, workload, change);
                all.extend(Personality::ALL.map(of));
            }
        }
        all
    }

    /// Table I with one thing changed: causes, other deviations, scales and seeds.
    fn changed(setup: Setup) -> Vec<Self> {
        let of = |engine: Engine| Design::from(engine);
        let (original, policy) = (of(Engine::Original), of(Engine::Policy));
        let (fifo, half) = (Eviction::Reinsert { most: 20 }, Eviction::Greedy { most: 50 });
        let unused = Eviction::Greedy { most: 20 };
        let designs = [
            (Design { trims: true, ..original }, "with trims"),
            (Design { eviction: fifo, ..original }, "slabs first in, first out"),
            (Design { eviction: Eviction::Drop, ..original }, "as fatcache: drops slabs"),
            (Design { eviction: half, ..original }, "copies up to half a slab"),
            (Design { capacitors: false, ..original }, "drive without capacitors"),
            (Design { buffers: 96, ..original }, "96 slabs in memory"),
            (Design { buffers: 96, ..policy }, "96 slabs in memory"),
            (Design { eviction: unused, ..of(Engine::Function) }, "copies unused items, too"),
            (Design { eviction: unused, ..of(Engine::Raw) }, "copies unused items, too"),
        ];
        let mut all: Vec<Self> =
            designs.map(|(design, what)| Self::Gc(design, what, SIXTH, setup)).into();
        let again = |what, deviation, divisor, seed| {
            let other = Setup { divisor, seed };
            [Engine::Original, Engine::Policy, Engine::Raw]
                .map(|engine| Self::Gc(engine.into(), what, deviation, other))
        };
        let Setup { divisor, seed } = setup;
        all.extend(again("deviation 1/24", SIXTH / 4.0, divisor, seed));
        all.extend(again("S = 32", SIXTH, 32, seed));
        all.extend(again("S = 128", SIXTH, 128, seed));
        all.extend(again("second seed", SIXTH, divisor, seed + 1));
        all.extend(again("third seed", SIXTH, divisor, seed + 2));
        all
    }

    /// Runs the experiment. Only its own rows are in the result.
    #[must_use]
    pub fn run(self, scale: Scale, seed: u64) -> Results {
        let (setup, mut found) = (Setup::new(scale, seed), Results::default());
        match self {
            Self::Hits(engine, percent, keys) => {
                found.hits.push(figures::hits(setup, engine, percent, keys));
            }
            Self::Backend(engine) => found.backend.push(figures::backend(setup, engine)),
            Self::Server(engine, cpu) => found.server = figures::server(setup, engine, cpu),
            Self::Gc(design, what, deviation, setup) => {
                found.gc.push(figures::gc(setup, design, what, deviation));
            }
            Self::Files(variant, workload, change) => {
                found.files.push(files::run(scale, seed, variant, workload, change));
            }
            Self::Graphs(run) => found.graphs.push(run.run(scale, seed)),
        }
        found
    }
}

/// The rows of the experiments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// Figure 4.
    pub hits: Vec<HitRow>,
    /// Figure 5.
    pub backend: Vec<ServerRow>,
    /// Figures 6 and 7.
    pub server: Vec<ServerRow>,
    /// Table I.
    pub gc: Vec<GcRow>,
    /// Figure 8 and Table II.
    pub files: Vec<FsRow>,
    /// Figure 9.
    pub graphs: Vec<GraphRow>,
}

/// A row of Table II.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FsSum {
    /// Blocks of 4 KiB that the file system wrote besides copies.
    pub written: u64,
    /// Blocks that its cleaning copied.
    pub copied: u64,
    /// Pages of 16 KiB that the device copied.
    pub device_copies: u64,
    /// Blocks erased.
    pub erases: u64,
}

impl FsSum {
    /// Blocks that cleaning copied for each other one that was written.
    #[must_use]
    pub fn copied_of_written(&self) -> f64 {
        self.copied as f64 / self.written as f64
    }

    /// Bytes that the device copied for each byte that cleaning copied.
    #[must_use]
    pub fn device_of_copied(&self) -> f64 {
        4.0 * self.device_copies as f64 / self.copied as f64
    }
}

impl Results {
    /// Joins the rows of experiments, in the order of [`Part::all`] within each figure.
    #[must_use]
    pub fn of(parts: Vec<Self>) -> Self {
        let mut all = Self::default();
        for part in parts {
            all.hits.extend(part.hits);
            all.backend.extend(part.backend);
            all.server.extend(part.server);
            all.gc.extend(part.gc);
            all.files.extend(part.files);
            all.graphs.extend(part.graphs);
        }
        all.hits.sort_by_key(|row| (row.keys as u32, row.percent, row.engine as u32));
        all
    }

    /// A graph engine.
    #[must_use]
    pub fn graph(&self, system: System, below: Below, change: GraphChange) -> Option<&GraphRow> {
        let wanted = GraphRun { system, below, change };
        self.graphs.iter().find(|row| row.run == wanted)
    }

    /// A workload on a file system.
    fn file_system(
        &self,
        variant: Variant,
        workload: Personality,
        change: Change,
    ) -> Option<&FsRow> {
        let wanted = (variant, workload, change);
        self.files.iter().find(|row| (row.variant, row.workload, row.change) == wanted)
    }

    /// Table II: the three workloads of a file system together, if all were run.
    #[must_use]
    pub fn table_2(&self, variant: Variant, change: Change) -> Option<FsSum> {
        let mut sum = FsSum::default();
        for workload in Personality::ALL {
            let row = self.file_system(variant, workload, change)?;
            sum.written += row.blocks - row.copied;
            sum.copied += row.copied;
            sum.device_copies += row.flash.copies;
            sum.erases += row.flash.erases;
        }
        Some(sum)
    }

    fn hit(&self, engine: Engine, percent: u32) -> Option<&HitRow> {
        // Policy caches as Original does, and Function as Raw: only time and flash differ.
        let engine = match engine {
            Engine::Original | Engine::Policy => Engine::Original,
            Engine::Function | Engine::Raw | Engine::Ideal => Engine::Raw,
        };
        let wanted = (engine, percent, Keys::Normal);
        self.hits.iter().find(|row| (row.engine, row.percent, row.keys) == wanted)
    }

    fn backend(&self, engine: Engine) -> Option<&ServerRow> {
        self.backend.iter().find(|row| row.engine == engine)
    }

    fn server(&self, engine: Engine, gets: u32, cpu: bool) -> Option<&ServerRow> {
        self.server.iter().find(|row| (row.engine, row.gets, row.cpu) == (engine, gets, cpu))
    }

    /// The row of Table I of the cache that is compared with the paper's.
    fn table(&self, engine: Engine) -> Option<&GcRow> {
        self.gc.iter().find(|row| row.engine == engine && row.what.is_empty())
    }
}
