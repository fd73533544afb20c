//! The paper's 24 observations, each with the rule by which the numbers decide on it.
//!
//! Source: the titles are those of the paper's section 4 as notes on it give them; which
//! number decides is our choice, written down as `rule`. A rule asks for what the title
//! claims of these applications and file systems, and not for the paper's own values.

use super::judge;
use super::judge_later as later;
use super::{App, Facts, Fs};

/// What became of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The numbers are as the observation says.
    Reproduced,
    /// They are not.
    NotReproduced,
    /// These traces do not tell.
    NotTestable,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 3] = [Self::Reproduced, Self::NotReproduced, Self::NotTestable];

    /// The words for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::NotReproduced => "not reproduced",
            Self::NotTestable => "not testable",
        }
    }
}

/// An observation of the paper.
#[derive(Clone, Copy)]
pub struct Observation {
    /// Its number there.
    pub number: u32,
    /// What it says.
    pub title: &'static str,
    /// When it counts as reproduced.
    pub rule: &'static str,
    /// What explains it if it is not; `unexplained` where nothing is known to.
    pub otherwise: &'static str,
    decide: fn(&Pairs) -> Decision,
}

/// An observation and what the numbers say of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The observation's number.
    pub number: u32,
    /// What it says.
    pub title: &'static str,
    /// When it counts as reproduced.
    pub rule: &'static str,
    /// What became of it.
    pub outcome: Outcome,
    /// The numbers that speak for it.
    pub supporting: Vec<String>,
    /// The numbers that speak against it.
    pub opposing: Vec<String>,
    /// Why it is not reproduced, or not testable; empty if it is reproduced.
    pub why: String,
}

/// The pairs whose traces are there.
pub(super) struct Pairs<'a>(pub(super) &'a [Facts]);

impl Pairs<'_> {
    pub(super) fn get(&self, app: App, fs: Fs) -> Option<&Facts> {
        self.0.iter().find(|facts| facts.pair.app == app && facts.pair.fs == fs)
    }

    /// Those of `apps`.
    pub(super) fn of(&self, apps: &[App]) -> impl Iterator<Item = &Facts> {
        self.0.iter().filter(move |facts| apps.contains(&facts.pair.app))
    }

    /// Those of `apps` on `fs`.
    pub(super) fn on(&self, fs: Fs, apps: &[App]) -> impl Iterator<Item = &Facts> {
        self.of(apps).filter(move |facts| facts.pair.fs == fs)
    }
}

/// How many of the comparisons have to be as claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needed {
    /// Every one.
    All,
    /// More than half.
    Most,
    /// At least one.
    One,
}

/// Comparisons with their numbers.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    supporting: Vec<String>,
    opposing: Vec<String>,
}

impl Evidence {
    pub(super) fn add(&mut self, holds: bool, numbers: String) {
        if holds { self.supporting.push(numbers) } else { self.opposing.push(numbers) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.supporting.is_empty() && self.opposing.is_empty()
    }

    /// The verdict; without a comparison `missing` says what there would have to be.
    pub(super) fn decide(self, needed: Needed, missing: &str) -> Decision {
        let (yes, no) = (self.supporting.len(), self.opposing.len());
        if yes + no == 0 {
            return Decision::untestable(missing);
        }
        let holds = match needed {
            Needed::All => no == 0,
            Needed::Most => yes > no,
            Needed::One => yes > 0,
        };
        let outcome = if holds { Outcome::Reproduced } else { Outcome::NotReproduced };
        Decision { outcome, evidence: self, why: String::new() }
    }

    /// Not testable for the reason given, with numbers beside.
    pub(super) fn untestable(self, why: &str) -> Decision {
        Decision { outcome: Outcome::NotTestable, evidence: self, why: why.into() }
    }
}

/// What a rule makes of the numbers.
#[derive(Debug)]
pub(super) struct Decision {
    outcome: Outcome,
    evidence: Evidence,
    why: String,
}

impl Decision {
    pub(super) fn untestable(why: &str) -> Self {
        Evidence::default().untestable(why)
    }
}

/// Judges every observation by what is known of the pairs.
#[must_use]
pub fn judge_all(facts: &[Facts]) -> Vec<Judged> {
    OBSERVATIONS.iter().map(|observation| observation.judge(facts)).collect()
}

impl Observation {
    /// Judges it by what is known of the pairs, in any order.
    #[must_use]
    pub fn judge(&self, facts: &[Facts]) -> Judged {
        let decision = (self.decide)(&Pairs(facts));
        let why = match decision.outcome {
            Outcome::NotReproduced => self.otherwise.to_owned(),
            Outcome::Reproduced | Outcome::NotTestable => decision.why,
        };
        Judged {
            number: self.number,
            title: self.title,
            rule: self.rule,
            outcome: decision.outcome,
            supporting: decision.evidence.supporting,
            opposing: decision.evidence.opposing,
            why,
        }
    }
}

const fn observation(
    number: u32,
    title: &'static str,
    rule: &'static str,
    otherwise: &'static str,
    decide: fn(&Pairs) -> Decision,
) -> Observation {
    Observation { number, title, rule, otherwise, decide }
}

/// Where nothing is known to explain a difference.
const UNEXPLAINED: &str = "unexplained";

/// All of them, by number.
pub const OBSERVATIONS: [Observation; 24] = [
    observation(
        1,
        "Log structure increases the scale of write size",
        "on every file system the median write of the log-structured stores is larger than \
         that of SQLite in either setting",
        UNEXPLAINED,
        judge::write_size,
    ),
    observation(
        2,
        "The scale of read requests is often low",
        "of the pairs with 50 reads or more, most have a median of at most 2 requests \
         outstanding at a read, itself included",
        UNEXPLAINED,
        judge::read_depth,
    ),
    observation(
        3,
        "SSD-conscious optimizations have room for improvement",
        "on most file systems RocksDB has no more reads outstanding than LevelDB (medians), or \
         keeps less than four fifths of the channels busy (request scale below 0.8)",
        UNEXPLAINED,
        judge::rocksdb,
    ),
    observation(
        4,
        "Frequent data barriers in applications limit request scale",
        "on every file system SQLite has fewer writes a barrier than the log-structured \
         stores, and no more requests outstanding at a write (medians)",
        UNEXPLAINED,
        judge::application_barriers,
    ),
    observation(
        5,
        "Linux buffered I/O limits request scale",
        "of the log-structured stores with 50 reads or more, most read at most 128 KiB at a \
         time (third quartile) with at most two reads outstanding (median, itself included)",
        "where more reads are outstanding they are small: what one read-ahead asked for is \
         issued in many pieces at once, and what splits it is unexplained",
        judge::buffered_io,
    ),
    observation(
        6,
        "Frequent data barriers in file systems limit request scale",
        "Varmail has at least twice as many requests outstanding at a write on f2fs as on \
         ext4 and on xfs (medians)",
        "the traced f2fs ran on another, slower machine under another kernel, with 8 threads \
         where the paper had 16",
        judge::file_system_barriers,
    ),
    observation(
        7,
        "File system log structuring fragments application data structures",
        "SQLite reads from f2fs with more requests outstanding than from ext4 and xfs \
         (medians); needs 50 reads of each",
        UNEXPLAINED,
        judge::fragmentation,
    ),
    observation(
        8,
        "Delaying and merging slow non-data operations could boost immediate performance",
        "for every application f2fs issues less than a tenth of the discards of ext4 and of \
         xfs while the application runs (what that gains is not measured)",
        UNEXPLAINED,
        judge::delayed_discards,
    ),
    observation(
        9,
        "SSDs demand aggressive and accurate prefetching",
        "reads at several read-ahead sizes are compared",
        UNEXPLAINED,
        judge::prefetching,
    ),
    observation(
        10,
        "Aggressively reusing space improves locality",
        "for most applications a cache of 1 % of the map misses less (by units looked up) on \
         ext4 and on xfs, which write where data was, than on f2fs",
        "f2fs overwrites in place as well (observation 12), and in runs of half a minute its \
         log stays within a small part of the map",
        judge::reuse,
    ),
    observation(
        11,
        "Legacy policies could break locality",
        "Varmail touches more of the map for what it writes on ext4, which spreads \
         directories over block groups, than on xfs",
        UNEXPLAINED,
        judge::block_groups,
    ),
    observation(
        12,
        "Log structuring is not always log-structured",
        "on f2fs a tenth of the bytes written or more overwrites data, for one application at \
         least",
        UNEXPLAINED,
        judge::in_place_on_f2fs,
    ),
    observation(
        13,
        "Log structuring can spread data widely across a device and thus reduce locality",
        "for most applications f2fs touches more of the map for what it writes than ext4 and \
         xfs do",
        "a log that has not gone around the device is written densely; the traces end before \
         f2fs has to reuse space",
        judge::spread,
    ),
    observation(
        14,
        "Application log structuring does not guarantee alignment",
        "one log-structured store at least merges a quarter or more of what is live at the end, \
         with logical blocks of 1 MiB: one is enough to refute a guarantee",
        UNEXPLAINED,
        later::aligned_stores,
    ),
    observation(
        15,
        "Log-structured file systems may not be as sequential as commonly expected",
        "on f2fs one of SQLite and Varmail at least merges more than is live at the end, with \
         logical blocks of 1 MiB",
        UNEXPLAINED,
        later::aligned_f2fs,
    ),
    observation(
        16,
        "Sequential + sequential is not equal to sequential",
        "two sequential workloads at once are compared with one",
        UNEXPLAINED,
        later::mixed_sequential,
    ),
    observation(
        17,
        "Application log structuring does not reduce garbage collection",
        "of the log-structured stores, most leave garbage in a tenth or more of the blocks \
         that hold data",
        UNEXPLAINED,
        later::zombies_of_stores,
    ),
    observation(
        18,
        "Applications often separate data of different death time, and file systems mix them",
        "of SQLite's pairs most leave garbage in half or more of the blocks that hold data, \
         though journal and database are files of their own",
        UNEXPLAINED,
        later::mixed_death_times,
    ),
    observation(
        19,
        "All file systems have shorter tails with segmented FTLs",
        "on every file system most applications fill their blocks better (valid bytes over \
         bytes held) with a block for each 128 MiB of addresses than with one for all",
        "what is mapped at the end lies in one or two such segments where an application keeps \
         less than 128 MiB, and segments change nothing then",
        later::segmented_tails,
    ),
    observation(
        20,
        "All file systems fail to group data from different directories",
        "two instances in directories of their own are compared with one",
        UNEXPLAINED,
        later::directories,
    ),
    observation(
        21,
        "F2FS sacrifices too much sustainable performance for immediate performance",
        "for most applications a larger share of what is mapped at the end is dead on f2fs, to \
         be discarded later, than on ext4 and on xfs",
        UNEXPLAINED,
        later::late_discards,
    ),
    observation(
        22,
        "Application and file system data lifetimes differ significantly",
        "for most pairs a block of the file system's own data is written twice as often as one \
         of the application's, or half as often",
        UNEXPLAINED,
        later::lifetimes,
    ),
    observation(
        23,
        "All file systems have allocation biases",
        "on every file system most applications write the blocks of some sixty-fourth of the \
         addresses twice as often as blocks are written on average",
        "probably the length of the runs: the paper's wrote the device many times over, these not \
         once",
        later::allocation,
    ),
    observation(
        24,
        "In-place-update file systems preserve data lifetime of applications",
        "for SQLite in both settings the tenth of the blocks written most takes a larger share \
         of the writes on ext4 and on xfs than on f2fs",
        "a rollback journal that is deleted after each transaction gets other blocks on ext4, \
         which evens its writes out; what of the write-ahead log differs is unexplained",
        later::preserved_lifetimes,
    ),
];
