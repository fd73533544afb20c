//! The drives and the file system of SFS (Min, Kim, Cho, Lee, Eom, "SFS: random write considered
//! harmful in solid state drives", FAST 2012): the cost of random writes by size, the cost of
//! merges under a log that writes large segments, and what the file system itself rewrites.
//!
//! The paper calls its drives SSD-H, SSD-M and SSD-L and gives two rates of each. Its figures
//! about the inside of drives come from simulations of FAST and of page-level mapping. Drives:
//! the presets `sfs-slc`, `sfs-mlc` and `sfs-usb` with fewer blocks. Differs: the mappings of the
//! real drives are not known, so several are tried. With block-level mappings a block spans all
//! dies, because with blocks of single dies a sequential write would use one die at a time.

mod files;
mod kernel;
mod published;
mod published_kernel;
mod recorder;
mod segments;
mod sizes;

use crate::scale::{Bench, Scale};

pub use files::{FULL, FileRow, GROUPS, SPREAD, Settings, UTILIZATIONS};
pub use kernel::{KernelFs, KernelRow, KernelTraceError, kernel_row};
pub use prism_workload::overwrites::Workload;
pub use published::{Relation, compare, compare_files, relations};
pub use published_kernel::{compare_kernel, kernel_relations};
pub use segments::{BLOCK_PAGES, GROUP as SEGMENT_GROUP, SEGMENT_PAGES, SegmentRow, Stream};
pub use sizes::{GROUP as SIZE_GROUP, Map, SizeRow, Ssd};

/// An experiment, independent of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Random writes of every size on a drive with a mapping.
    Sizes(Ssd, Map),
    /// Streams of segments on a drive with a mapping.
    Segments(Map),
    /// The file system with these settings at this utilization in percent.
    Files(Workload, Settings, u32),
}

impl Part {
    /// Every experiment, the longest first; at a quarter of the scale the file system at one
    /// utilization alone.
    #[must_use]
    pub fn all(scale: Scale) -> Vec<Self> {
        let mut all = Self::files(scale);
        all.extend(Self::drives());
        all
    }

    fn files(scale: Scale) -> Vec<Self> {
        let both = [Settings::SFS, Settings::LfsCb];
        let run = |writes, settings, utilization| Self::Files(writes, settings, utilization);
        let every = |utilization| {
            let of = move |writes| both.map(|settings| run(writes, settings, utilization));
            Workload::ALL.into_iter().flat_map(of)
        };
        let mut all = Vec::new();
        if scale == Scale::Full {
            all.extend(UTILIZATIONS.into_iter().rev().filter(|at| *at != FULL).flat_map(every));
            all.extend(Workload::ALL.map(|writes| run(writes, Settings::Normal, FULL)));
            let groups = GROUPS.into_iter().map(Settings::Sfs);
            let others = groups.filter(|settings| *settings != Settings::SFS);
            for settings in others.chain([Settings::CostBenefit]).chain(Settings::RIVALS) {
                all.extend([Workload::Zipf, Workload::TpcC].map(|one| run(one, settings, FULL)));
            }
        }
        all.extend(every(FULL));
        all
    }

    fn drives() -> Vec<Self> {
        let on = |ssd| move |map| Self::Sizes(ssd, map);
        let mut all = vec![Self::Sizes(Ssd::L, Map::Bast)];
        all.extend(Map::SEGMENTS.map(Self::Segments));
        for ssd in [Ssd::H, Ssd::M] {
            all.extend(Map::SEGMENTS.map(on(ssd)));
        }
        all
    }

    /// Runs the experiment. Only its own rows are in the result.
    #[must_use]
    pub fn run(self, scale: Scale, seed: u64) -> Results {
        let (bench, mut found) = (Bench { scale, seed }, Results::default());
        match self {
            Self::Sizes(ssd, map) => found.sizes = sizes::rows(bench, ssd, map),
            Self::Segments(map) => found.segments = segments::rows(bench, map),
            Self::Files(writes, settings, utilization) => {
                found.files.push(files::row(bench, writes, settings, utilization));
            }
        }
        found
    }
}

/// The rows of the experiments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// Random writes by size; for each drive and mapping the smallest size first.
    pub sizes: Vec<SizeRow>,
    /// Streams of segments.
    pub segments: Vec<SegmentRow>,
    /// The file system, in the order of [`Part::all`].
    pub files: Vec<FileRow>,
    /// File systems of the kernel, by workload; none without their traces.
    pub kernel: Vec<KernelRow>,
}

impl Results {
    /// Joins the rows of experiments, in any order.
    #[must_use]
    pub fn of(parts: Vec<Self>) -> Self {
        let mut all = Self::default();
        for part in parts {
            all.sizes.extend(part.sizes);
            all.segments.extend(part.segments);
            all.files.extend(part.files);
            all.kernel.extend(part.kernel);
        }
        all.sizes.sort_by_key(|row| (row.ssd as u32, row.map as u32, row.size));
        all.segments.sort_by_key(|row| (row.map as u32, row.stream as u32));
        all.kernel.sort_by_key(|row| (row.writes as u32, row.fs as u32));
        all
    }

    /// A run of the file system.
    #[must_use]
    pub fn file(&self, writes: Workload, settings: Settings, utilization: u32) -> Option<&FileRow> {
        let wanted = (writes, settings, utilization);
        self.files.iter().find(|row| (row.writes, row.settings, row.utilization) == wanted)
    }

    /// The rows of `ssd` with `map`, the smallest size first.
    pub fn sizes_of(&self, ssd: Ssd, map: Map) -> impl Iterator<Item = &SizeRow> {
        self.sizes.iter().filter(move |row| (row.ssd, row.map) == (ssd, map))
    }
}
