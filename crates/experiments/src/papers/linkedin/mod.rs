//! The figures of "Designing SSD-Friendly Applications" (2016), compared with those of a simulated
//! drive.
//!
//! Source: the article of 3 May 2016; its longer version is in IEEE COMPSAC 2016. The article does
//! not name its drive, the sizes of its queries, or how its writes were paced; each module states
//! its assumptions. Drive: the preset `pcie-mlc`, made smaller with all its dies. Differs: the host
//! consists only of threads that wait for their writes. The time of a write includes that of file
//! system, page cache and CPU.

mod full;
mod published;
mod rates;
mod threads;
mod updates;
mod users;
mod writers;

use crate::scale::{Bench, Scale};

pub use full::{FULL, FullRow, LifeRow, PAGES, Price};
pub use published::compare;
pub use rates::{AddressPattern, LARGE_LATENCY, RATES, RateRow, SIZE as RATE_SIZE, SPAN, When};
pub use threads::{
    EXAMPLE_PAGE, EXAMPLE_PARALLELISM, LARGE, LARGE_THREADS, Mechanism, MechanismRow, SMALL,
    SMALL_THREADS, ThreadsRow, ThresholdRow,
};
pub use updates::{CHANGES, ChangeRow, Update, UpdateRow, changes};
pub use users::{Layout, LayoutRow, RECORD, SKEW};
pub use writers::Stretch;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

impl Bench {
    /// `gib` gibibytes at full scale, in bytes.
    fn bytes(self, gib: u64) -> u64 {
        self.scale.of(gib * GIB)
    }

    /// `full` at full scale.
    fn count(self, full: u64) -> u64 {
        self.scale.of(full)
    }
}

/// An experiment, independent of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Both sizes of writes of the article with its numbers of threads.
    Threads,
    /// Sizes of writes from a page to a large write.
    Sizes,
    /// The size from which writes keep all dies busy, for the article's example.
    Threshold,
    /// A mechanism that could slow eight threads down.
    Slower(Mechanism),
    /// The longest latencies at several rates of writing.
    Rates(AddressPattern, When),
    /// The cost of a free block on a drive that is full to this percentage.
    Full(u32),
    /// The lifetimes of the drives of the article.
    Lives,
    /// Updates in place, out of place and in a log.
    Updates,
    /// Hot and cold users.
    Users(Layout),
}

impl Part {
    /// Every experiment, the longest first.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for place in [AddressPattern::Anywhere, AddressPattern::Log] {
            all.extend([When::Foreground, When::Background].map(|when| Self::Rates(place, when)));
        }
        all.extend(Mechanism::ALL.into_iter().rev().map(Self::Slower));
        all.extend(FULL.into_iter().rev().map(Self::Full));
        all.extend(Layout::ALL.map(Self::Users));
        all.extend([Self::Updates, Self::Sizes, Self::Threads, Self::Lives, Self::Threshold]);
        all
    }

    /// Runs the experiment. Only its own rows are in the result.
    #[must_use]
    pub fn run(self, scale: Scale, seed: u64) -> Results {
        let (bench, mut found) = (Bench { scale, seed }, Results::default());
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

/// The rows of the experiments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// Both sizes of writes of the article with its numbers of threads.
    pub threads: Vec<ThreadsRow>,
    /// Sizes of writes from a page to a large write, by one thread and by eight.
    pub sizes: Vec<ThreadsRow>,
    /// The size from which writes keep all dies busy, for the article's example.
    pub threshold: Vec<ThresholdRow>,
    /// Mechanisms that could slow eight threads down.
    pub slower: Vec<MechanismRow>,
    /// The longest latencies at several rates of writing.
    pub rates: Vec<RateRow>,
    /// The cost of a free block, for the emptiest drive first.
    pub full: Vec<FullRow>,
    /// The lifetimes of the drives of the article.
    pub lives: Vec<LifeRow>,
    /// Updates in place, out of place and in a log.
    pub updates: Vec<UpdateRow>,
    /// Hot and cold users.
    pub users: Vec<LayoutRow>,
}

impl Results {
    /// Puts the rows of experiments together, in any order.
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
