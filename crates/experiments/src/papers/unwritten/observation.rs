//! The 24 observations of the paper, each with the rule by which numbers of the traces decide on
//! it.
//!
//! Source: the titles are those of the paper's section 4 as notes on it give them. Which number
//! decides is our choice; the field `rule` states it. A rule tests what the title claims about
//! these applications and file systems, and not the paper's own values. The rule of observation
//! 14 was changed after its numbers were known, and says so.

use super::judge;
use super::judge_later as later;
use super::judge_variants as variants;
use super::{App, Facts, Fs};

named_enum! {
    /// The verdict on an observation.
    pub enum ObservationVerdict {
        /// The numbers confirm the observation.
        Reproduced = "reproduced",
        /// The numbers contradict the observation.
        NotReproduced = "not reproduced",
        /// These traces cannot decide.
        NotTestable = "not testable",
    }
}

/// An observation of the paper.
#[derive(Clone, Copy)]
pub struct Observation {
    /// Its number in the paper.
    pub number: u32,
    /// Its title in the paper.
    pub title: &'static str,
    /// The condition under which it counts as reproduced.
    pub rule: &'static str,
    /// The explanation if it is not reproduced; `unexplained` if none is known.
    pub otherwise: &'static str,
    decide: fn(&Pairs) -> Decision,
}

/// An observation with its verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The number of the observation.
    pub number: u32,
    /// Its title in the paper.
    pub title: &'static str,
    /// The condition under which it counts as reproduced.
    pub rule: &'static str,
    /// The verdict.
    pub outcome: ObservationVerdict,
    /// The numbers that support it.
    pub supporting: Vec<String>,
    /// The numbers that contradict it.
    pub opposing: Vec<String>,
    /// Why it is not reproduced or not testable; empty if it is reproduced.
    pub why: String,
}

/// The facts of all pairs with a trace.
pub(super) struct Pairs<'a>(pub(super) &'a [Facts]);

impl Pairs<'_> {
    pub(super) fn get(&self, app: App, fs: Fs) -> Option<&Facts> {
        self.0.iter().find(|facts| facts.pair.app == app && facts.pair.fs == fs)
    }

    /// The facts of `apps`.
    pub(super) fn of(&self, apps: &[App]) -> impl Iterator<Item = &Facts> {
        self.0.iter().filter(move |facts| apps.contains(&facts.pair.app))
    }

    /// The facts of `apps` on `fs`.
    pub(super) fn on(&self, fs: Fs, apps: &[App]) -> impl Iterator<Item = &Facts> {
        self.of(apps).filter(move |facts| facts.pair.fs == fs)
    }
}

/// The share of the comparisons that must support an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needed {
    /// All of them.
    All,
    /// More than half.
    Most,
    /// At least one.
    One,
}

/// Comparisons that support or contradict an observation, as text with their numbers.
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

    /// The verdict. If there is no comparison, or only one where the rule is about all or most of
    /// them, `missing` says which traces are needed.
    pub(super) fn decide(self, needed: Needed, missing: &str) -> Decision {
        let (yes, no) = (self.supporting.len(), self.opposing.len());
        match (yes + no, needed) {
            (0, _) => return Decision::untestable(missing),
            (1, Needed::All | Needed::Most) => {
                return self.untestable(&format!("one comparison is not enough: {missing}"));
            }
            _ => {}
        }
        let holds = match needed {
            Needed::All => no == 0,
            Needed::Most => yes > no,
            Needed::One => yes > 0,
        };
        let outcome =
            if holds { ObservationVerdict::Reproduced } else { ObservationVerdict::NotReproduced };
        Decision { outcome, evidence: self, why: String::new() }
    }

    /// The verdict of two sets of comparisons, both of which must support the observation. If
    /// either is empty, `missing` says which traces are needed.
    pub(super) fn decide_with(
        self,
        needed: Needed,
        other: Self,
        other_needed: Needed,
        missing: &str,
    ) -> Decision {
        let mut first = self.decide(needed, missing);
        let mut second = other.decide(other_needed, missing);
        first.evidence.supporting.append(&mut second.evidence.supporting);
        first.evidence.opposing.append(&mut second.evidence.opposing);
        let outcomes = [first.outcome, second.outcome];
        if outcomes.contains(&ObservationVerdict::NotTestable) {
            return first.evidence.untestable(missing);
        }
        if outcomes.contains(&ObservationVerdict::NotReproduced) {
            first.outcome = ObservationVerdict::NotReproduced;
        }
        first
    }

    /// The verdict "not testable" for the given reason, with the numbers.
    pub(super) fn untestable(self, why: &str) -> Decision {
        Decision { outcome: ObservationVerdict::NotTestable, evidence: self, why: why.into() }
    }
}

/// The verdict of a rule with its evidence.
#[derive(Debug)]
pub(super) struct Decision {
    outcome: ObservationVerdict,
    evidence: Evidence,
    why: String,
}

impl Decision {
    pub(super) fn untestable(why: &str) -> Self {
        Evidence::default().untestable(why)
    }
}

/// Judges every observation by the facts of the pairs.
#[must_use]
pub fn judge_all(facts: &[Facts]) -> Vec<Judged> {
    OBSERVATIONS.iter().map(|observation| observation.judge(facts)).collect()
}

impl Observation {
    /// Judges the observation by the facts of the pairs, in any order.
    #[must_use]
    pub fn judge(&self, facts: &[Facts]) -> Judged {
        let decision = (self.decide)(&Pairs(facts));
        let why = match decision.outcome {
            ObservationVerdict::NotReproduced => self.otherwise.to_owned(),
            ObservationVerdict::Reproduced | ObservationVerdict::NotTestable => decision.why,
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

/// The explanation if none is known.
const UNEXPLAINED: &str = "unexplained";

/// Every observation, by number.
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
        "of the pairs with 50 reads or more, most have a median of at most 2 requests in flight \
         at a read, including the read itself",
        UNEXPLAINED,
        judge::read_depth,
    ),
    observation(
        3,
        "SSD-conscious optimizations have room for improvement",
        "on most file systems RocksDB has no more reads in flight than LevelDB (medians), or \
         keeps less than four fifths of the channels busy (request scale below 0.8)",
        UNEXPLAINED,
        judge::rocksdb,
    ),
    observation(
        4,
        "Frequent data barriers in applications limit request scale",
        "on every file system SQLite has fewer writes per barrier than the log-structured \
         stores, and no more requests in flight at a write (medians)",
        "most likely the checkpoints of the write-ahead log, each of which writes up to a thousand \
         pages of a large database between two barriers",
        judge::application_barriers,
    ),
    observation(
        5,
        "Linux buffered I/O limits request scale",
        "of the log-structured stores with 50 reads or more, most read at most 128 KiB at a \
         time (third quartile) with at most two reads in flight (median, including the read \
         itself)",
        "where more reads are in flight they are small: the data of one read-ahead is issued in \
         many pieces at once, and the cause of the split is not known",
        judge::buffered_io,
    ),
    observation(
        6,
        "Frequent data barriers in file systems limit request scale",
        "Varmail has at least twice as many requests in flight at a write on f2fs as on ext4 \
         and on xfs (medians)",
        "the traced machine has one CPU, on which 16 threads run one after another; whether that \
         is the cause is not known",
        judge::file_system_barriers,
    ),
    observation(
        7,
        "File system log structuring fragments application data structures",
        "SQLite reads from f2fs with more requests in flight than from ext4 and xfs (medians), in \
         the order of keys with cold caches and a read-ahead of 128 KiB where these were recorded; \
         each trace must have 50 reads",
        UNEXPLAINED,
        variants::fragmentation,
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
        "with cold caches, for most pairs reads in order have at least twice the bytes in flight \
         (median size times median depth) with a read-ahead of 1 MiB as with the default of 128 \
         KiB, so that prefetching has to be aggressive; and for one pair at least, random reads \
         fetch at least twice the bytes with 1 MiB as with none, which is enough to show that it \
         has to be accurate",
        "Linux reads ahead where it finds a sequence, so more of it changes nothing for small \
         files, and little for random reads",
        variants::prefetching,
    ),
    observation(
        10,
        "Aggressively reusing space improves locality",
        "for most applications a cache of 1 % of the map has fewer misses per unit looked up on \
         ext4 and on xfs, which update in place, than on f2fs",
        UNEXPLAINED,
        judge::reuse,
    ),
    observation(
        11,
        "Legacy policies could break locality",
        "Varmail touches more of the map per byte written on ext4, which spreads directories \
         over block groups, than on xfs",
        UNEXPLAINED,
        judge::block_groups,
    ),
    observation(
        12,
        "Log structuring is not always log-structured",
        "for at least one application on f2fs, a tenth or more of the written bytes overwrite \
         data",
        UNEXPLAINED,
        judge::in_place_on_f2fs,
    ),
    observation(
        13,
        "Log structuring can spread data widely across a device and thus reduce locality",
        "for most applications f2fs touches more of the map per byte written than ext4 and xfs do",
        UNEXPLAINED,
        judge::spread,
    ),
    observation(
        14,
        "Application log structuring does not guarantee alignment",
        "in at least one trace of a log-structured store, a quarter or more of the data that is \
         live at the end is merged, with logical blocks of 1 MiB: one trace is enough to refute a \
         guarantee (the rule first asked for most of the traces; it was changed after two \
         supported the observation and four did not)",
        UNEXPLAINED,
        later::aligned_stores,
    ),
    observation(
        15,
        "Log-structured file systems may not be as sequential as commonly expected",
        "for SQLite or Varmail on f2fs, more data is merged than is live at the end, with logical \
         blocks of 1 MiB",
        UNEXPLAINED,
        later::aligned_f2fs,
    ),
    observation(
        16,
        "Sequential + sequential is not equal to sequential",
        "in most comparisons, two or four instances that update their records in order at once \
         merge at least a tenth more, per live byte and with logical blocks of 1 MiB, than one \
         instance that does the same work alone",
        UNEXPLAINED,
        variants::mixed_sequential,
    ),
    observation(
        17,
        "Application log structuring does not reduce garbage collection",
        "most log-structured stores leave garbage in a tenth or more of the blocks that hold \
         data",
        UNEXPLAINED,
        later::zombies_of_stores,
    ),
    observation(
        18,
        "Applications often separate data of different death time, and file systems mix them",
        "most traces of SQLite leave garbage in half or more of the blocks that hold data, \
         although journal and database are separate files",
        UNEXPLAINED,
        later::mixed_death_times,
    ),
    observation(
        19,
        "All file systems have shorter tails with segmented FTLs",
        "on every file system most applications fill their blocks better (valid bytes over \
         bytes of blocks) with an open block for each 128 MiB of addresses than with a single one",
        UNEXPLAINED,
        later::segmented_tails,
    ),
    observation(
        20,
        "All file systems fail to group data from different directories",
        "on every file system, for most applications: when one of two or of four instances is \
         removed with its directory, half or more of its data lies in flash blocks of which a \
         tenth or more of the valid data stays, on a drive with an open block for each 128 MiB of \
         addresses",
        UNEXPLAINED,
        variants::directories,
    ),
    observation(
        21,
        "F2FS sacrifices too much sustainable performance for immediate performance",
        "for most applications a larger share of the data that is mapped at the end is dead, and \
         discarded only later, on f2fs than on ext4 and on xfs",
        UNEXPLAINED,
        later::late_discards,
    ),
    observation(
        22,
        "Application and file system data lifetimes differ significantly",
        "for most pairs a block of metadata is written at least twice as often, or at most half \
         as often, as a block of the application",
        UNEXPLAINED,
        later::lifetimes,
    ),
    observation(
        23,
        "All file systems have allocation biases",
        "on every file system most applications write the blocks of some sixty-fourth of the \
         addresses at least twice as often as the average block",
        UNEXPLAINED,
        later::allocation,
    ),
    observation(
        24,
        "In-place-update file systems preserve data lifetime of applications",
        "for SQLite in both settings the 10 % of the blocks written most often take a larger share \
         of the writes on ext4 and on xfs than on f2fs",
        UNEXPLAINED,
        later::preserved_lifetimes,
    ),
];
