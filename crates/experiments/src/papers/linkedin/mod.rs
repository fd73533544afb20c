//! "Designing SSD-Friendly Applications" (2016): its figures beside those of a simulated
//! drive.
//!
//! Source: the article of 3 May 2016; its longer version is in IEEE COMPSAC 2016. The
//! article does not name its drive, the sizes of its queries, or how its writes were paced;
//! what is supposed here stands where it is supposed. Drive: the preset `pcie-mlc`, made
//! small with all its dies. Differs: the host is no more than threads that wait for their
//! writes. File system, page cache and processors are in the time that a write takes.

mod bed;
mod full;
mod published;
mod rates;
mod threads;
mod updates;
mod users;

use crate::scale::Scale;

pub use bed::Stretch;
pub use full::{FULL, FullRow, LifeRow, PAGES, Price};
pub use published::compare;
pub use rates::{LARGE_LATENCY, Place, RATES, RateRow, SIZE as RATE_SIZE, SPAN, When};
pub use threads::{
    EXAMPLE_PAGE, EXAMPLE_PARALLELISM, LARGE, LARGE_THREADS, Mechanism, MechanismRow, SMALL,
    SMALL_THREADS, ThreadsRow, ThresholdRow,
};
pub use updates::{CHANGES, ChangeRow, Update, UpdateRow, changes};
pub use users::{Layout, LayoutRow, RECORD, SKEW};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// How an experiment is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bench {
    pub(crate) scale: Scale,
    pub(crate) seed: u64,
}

impl Bench {
    /// So many gibibytes at full scale.
    fn bytes(self, gib: u64) -> u64 {
        self.scale.of(gib * GIB)
    }

    /// So many at full scale.
    fn count(self, full: u64) -> u64 {
        self.scale.of(full)
    }
}

/// A part of the work that can be done on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Both sizes of the article with its threads.
    Threads,
    /// Sizes from a page to a large write.
    Sizes,
    /// The threshold of the article's example.
    Threshold,
    /// What could slow eight threads down.
    Slower(Mechanism),
    /// The longest latencies at each rate of writing.
    Rates(Place, When),
    /// The price of a free block on a drive so full, in hundredths.
    Full(u32),
    /// How long the drives of the article last.
    Lives,
    /// Updates in place, out of place and in a log.
    Updates,
    /// Hot users and cold ones.
    Users(Layout),
}

impl Part {
    /// Every part, the longest first.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for place in [Place::Anywhere, Place::Log] {
            all.extend([When::Foreground, When::Background].map(|when| Self::Rates(place, when)));
        }
        all.extend(Mechanism::ALL.into_iter().rev().map(Self::Slower));
        all.extend(FULL.into_iter().rev().map(Self::Full));
        all.extend(Layout::ALL.map(Self::Users));
        all.extend([Self::Updates, Self::Sizes, Self::Threads, Self::Lives, Self::Threshold]);
        all
    }

    /// Does it; only what this part finds is in the result.
    #[must_use]
    pub fn run(self, scale: Scale, seed: u64) -> Found {
        let (bench, mut found) = (Bench { scale, seed }, Found::default());
        match self {
            Self::Threads => found.threads = threads::published(bench),
            Self::Sizes => found.sizes = threads::sizes(bench),
            Self::Threshold => found.threshold = threads::threshold(bench),
            Self::Slower(mechanism) => found.slower = threads::mechanism(bench, mechanism),
            Self::Rates(place, when) => found.rates = rates::rows(bench, place, when),
            Self::Full(full) => found.full.push(full::row(bench, full)),
            Self::Updates => found.updates = updates::rows(bench),
            Self::Users(layout) => found.users.push(users::row(bench, layout)),
            Self::Lives => found.lives = full::lives(bench),
        }
        found
    }
}

/// All parts together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Both sizes of the article with its threads.
    pub threads: Vec<ThreadsRow>,
    /// Sizes from a page to a large write, by one thread and by eight.
    pub sizes: Vec<ThreadsRow>,
    /// The threshold of the article's example.
    pub threshold: Vec<ThresholdRow>,
    /// What could slow eight threads down.
    pub slower: Vec<MechanismRow>,
    /// The longest latencies at each rate of writing.
    pub rates: Vec<RateRow>,
    /// The price of a free block, emptiest drive first.
    pub full: Vec<FullRow>,
    /// How long the drives of the article last.
    pub lives: Vec<LifeRow>,
    /// Updates in place, out of place and in a log.
    pub updates: Vec<UpdateRow>,
    /// Hot users and cold ones.
    pub users: Vec<LayoutRow>,
}

impl Found {
    /// Puts the results of parts together, in whatever order they come.
    #[must_use]
    pub fn of(parts: Vec<Self>) -> Self {
        let mut all = Self::default();
        for part in parts {
            all.threads.extend(part.threads);
            all.sizes.extend(part.sizes);
            all.threshold.extend(part.threshold);
            all.slower.extend(part.slower);
            all.rates.extend(part.rates);
            all.full.extend(part.full);
            all.lives.extend(part.lives);
            all.updates.extend(part.updates);
            all.users.extend(part.users);
        }
        all.slower.sort_by_key(|row| row.mechanism as u32);
        all.users.sort_by_key(|row| row.layout as u32);
        all.full.sort_by(|a, b| a.full.total_cmp(&b.full));
        all
    }
}
