//! The five rules of the contract, measured over a trace.
//!
//! [`Rules`] receives the records in one pass, with bounded memory, and produces
//! [`Findings`]: for each rule its score, the curves behind the score, and the offenders.
//!
//! Memory: 16 bytes for each unit of a touched chunk of 2 MiB (its blocks on two logs, its
//! count of writes and its writer, stored together so that a request touches few cache
//! lines), 160 bytes for each touched MiB, and the groups of offenders. 40 M units take
//! 0.65 GB.

mod alignment;
mod findings;
mod grouping;
mod index;
mod lifetime;
mod locality;
mod offenders;
mod request_scale;
mod rule;
mod stack;
mod subject;
mod units;

pub use alignment::{AlignmentFindings, LogBlocks, Merges};
pub use findings::{Findings, GroupingFindings};
pub use grouping::{AppendLog, OptBlock, SpaceHistory, SpaceSample, Zombies};
pub use lifetime::LifetimeFindings;
pub use locality::{COVERAGES, Locality, LocalityFindings};
pub use offenders::{Blame, Class, Dimension, Groups, NamedRange, Offender, Ranges};
pub use request_scale::{RequestScale, Side, ValueCounts};
pub use rule::{Rule, Thresholds, Verdict};
pub use stack::{Distances, Stack};
pub use subject::Subject;
pub use units::{Run, Units};

use prism_base::{Bytes, prefetch};
use prism_trace::{Op, Record, Symbols};

/// Size of the erase blocks for the rule of grouping by death time. Erase blocks had this
/// size when the rule was written ("Designing SSD-friendly applications": 512 KiB or 1 MiB).
/// Today's blocks are larger and do not group data any better.
pub const GROUP_BLOCK: Bytes = Bytes(1 << 20);
/// Size of the segments of a segmented drive. Source: the EuroSys'17 paper's runs.
pub const SEGMENT: Bytes = Bytes(128 << 20);
/// The two sizes of logical blocks that the paper uses for a block-level mapping. The score
/// is that of the second.
pub const LOGICAL_BLOCKS: [Bytes; 2] = [Bytes(128 << 10), Bytes(1 << 20)];

/// The smallest number of units in a chunk.
const CHUNK_UNITS_MIN: u64 = 512;

/// A flag in a unit's count of writes: the unit was discarded after the judged part of the
/// trace, and is not counted again.
const DISCARDED_LATER: u32 = 1 << 31;

/// The state of a unit.
#[derive(Clone, Copy, Debug, Default)]
struct UnitState {
    /// The unit's block on the drive with one stream.
    unsegmented: OptBlock,
    /// The unit's block on the drive with segments.
    segmented: OptBlock,
    /// Number of writes.
    writes: u32,
    /// The group of the record that wrote the unit last.
    writer: u16,
}

/// The number of records by which memory accesses are prefetched.
const PREFETCH_DISTANCE: usize = 24;

/// Measures the five rules over the records added so far.
#[derive(Debug)]
pub struct Rules {
    subject: Subject,
    groups: Groups,
    units: Units,
    request_scale: RequestScale,
    locality: Locality,
    alignment: [LogBlocks; 2],
    unsegmented: AppendLog,
    segmented: AppendLog,
    history: SpaceHistory,
    states: Vec<UnitState>,
    written_units: u64,
    overwritten: u64,
    discarded: u64,
    /// Units that held data when the judged part of the trace ended, and were discarded in
    /// the part after it.
    discarded_later: u64,
}

impl Rules {
    /// Begins without records. `ranges` are the named parts of the address space.
    #[must_use]
    pub fn new(subject: Subject, ranges: Ranges) -> Self {
        let unit = subject.unit;
        let per_block = (GROUP_BLOCK.0 / unit.0).max(1) as u32;
        let log = |segment| AppendLog::new(per_block, segment);
        let alignment = LOGICAL_BLOCKS.map(|block| LogBlocks::new(block, unit));
        // A chunk has whole logical blocks of both sizes, and at least CHUNK_UNITS_MIN units.
        let [small, large] = [0, 1].map(|i: usize| u64::from(alignment[i].units()));
        let both = small * large / gcd(small, large);
        let chunk = both * CHUNK_UNITS_MIN.div_ceil(both);
        Self {
            groups: Groups::new(ranges),
            units: Units::new(chunk),
            request_scale: RequestScale::new(subject.flash_page, subject.channels),
            locality: Locality::new(unit, subject.map_reach, subject.cache_pages),
            alignment,
            unsegmented: log(u64::MAX),
            segmented: log((SEGMENT.0 / unit.0).max(1)),
            history: SpaceHistory::new(),
            states: Vec::new(),
            written_units: 0,
            overwritten: 0,
            discarded: 0,
            discarded_later: 0,
            subject,
        }
    }

    /// Adds records, in the order of their issue times. This is faster than to call
    /// [`Rules::add`] for each, because memory is prefetched.
    pub fn add_all(&mut self, records: &[Record]) {
        for (place, record) in records.iter().enumerate() {
            if let Some(ahead) = records.get(place + PREFETCH_DISTANCE) {
                self.prefetch(ahead, false);
            }
            if let Some(soon) = records.get(place + PREFETCH_DISTANCE / 2) {
                self.prefetch(soon, true);
            }
            self.add(record);
        }
    }

    /// Prefetches the state of the first unit that `record` writes, or, if `blocks` is set,
    /// the block of that unit.
    fn prefetch(&self, record: &Record, blocks: bool) {
        if record.op != Op::Write {
            return;
        }
        let Some(dense) = self.units.find(record.offset / self.subject.unit.0) else { return };
        let Some(state) = self.states.get(dense as usize) else { return };
        if blocks {
            self.unsegmented.prefetch(state.unsegmented);
            self.segmented.prefetch(state.segmented);
        } else {
            prefetch(&self.states, dense as usize);
            self.alignment.iter().for_each(|blocks| blocks.prefetch(dense));
        }
    }

    /// Adds a record. Records must be added in the order of their issue times.
    pub fn add(&mut self, record: &Record) {
        let group = self.groups.of(record);
        self.request_scale.add(record, group);
        if record.op == Op::Flush || record.len == 0 {
            return;
        }
        self.locality.add(record, group);
        match record.op {
            Op::Write => self.write(record, group),
            Op::Discard | Op::WriteZeroes => self.discarded += self.discard(record),
            Op::Read | Op::Flush => {}
        }
    }

    /// Adds a record that follows the judged part of the trace. Data that it discards was
    /// dead, but still mapped, when the judged part ended.
    pub fn after(&mut self, record: &Record) {
        if matches!(record.op, Op::Discard | Op::WriteZeroes) {
            self.discarded_later += self.count_later_discards(record);
        }
    }

    fn write(&mut self, record: &Record, group: u16) {
        let unit = self.subject.unit.0;
        let (first, end) = (record.offset / unit, record.end().div_ceil(unit));
        let Self { units, alignment, unsegmented, segmented, states, .. } = self;
        let chunk = units.chunk() as usize;
        let (mut written, mut overwritten) = (0, 0);
        units.touch(first, end, |run| {
            let top = (run.dense + run.len) as usize;
            if states.len() < top {
                let len = top.next_multiple_of(chunk);
                states.resize(len, UnitState::default());
                alignment.iter_mut().for_each(|blocks| blocks.grow(len));
            }
            for (dense, state) in (run.dense..).zip(&mut states[run.dense as usize..top]) {
                let mapped = state.unsegmented != 0;
                overwritten += u64::from(mapped);
                for blocks in alignment.iter_mut() {
                    blocks.write(dense, mapped, group);
                }
                let unit = run.unit + u64::from(dense - run.dense);
                unsegmented.write(&mut state.unsegmented, unit);
                segmented.write(&mut state.segmented, unit);
                state.writes = (state.writes + 1).min(DISCARDED_LATER - 1);
                state.writer = group;
            }
            written += u64::from(run.len);
        });
        self.written_units += written;
        self.overwritten += overwritten;
        if self.history.is_due(self.written_units * unit) {
            self.history.take(self.held());
        }
    }

    /// Discards the units that `record` covers completely, and returns how many of them held
    /// data.
    fn discard(&mut self, record: &Record) -> u64 {
        let unit = self.subject.unit.0;
        let (first, end) = (record.offset.div_ceil(unit), record.end() / unit);
        let Self { units, alignment, unsegmented, segmented, states, .. } = self;
        let mut discarded = 0;
        units.known(first, end, |run| {
            let top = (run.dense + run.len) as usize;
            for (dense, state) in (run.dense..).zip(&mut states[run.dense as usize..top]) {
                if state.unsegmented != 0 {
                    discarded += 1;
                    alignment.iter_mut().for_each(|blocks| blocks.discard(dense));
                    unsegmented.discard(&mut state.unsegmented);
                    segmented.discard(&mut state.segmented);
                }
            }
        });
        discarded
    }

    /// Counts the units that `record` covers completely, that held data at the end of the
    /// judged part, and that were not counted before. The logs keep their state at that end.
    fn count_later_discards(&mut self, record: &Record) -> u64 {
        let unit = self.subject.unit.0;
        let (first, end) = (record.offset.div_ceil(unit), record.end() / unit);
        let Self { units, states, .. } = self;
        let mut found = 0;
        units.known(first, end, |run| {
            for state in &mut states[run.dense as usize..(run.dense + run.len) as usize] {
                if state.unsegmented != 0 && state.writes & DISCARDED_LATER == 0 {
                    state.writes |= DISCARDED_LATER;
                    found += 1;
                }
            }
        });
        found
    }

    fn held(&self) -> SpaceSample {
        let unit = self.subject.unit.0;
        SpaceSample {
            written: self.written_units * unit,
            mapped: self.unsegmented.mapped() * unit,
            held: self.unsegmented.held().0 * unit,
        }
    }

    /// Ends the trace. `symbols` has the names that occur in its records.
    #[must_use]
    pub fn finish(mut self, symbols: &Symbols) -> Findings {
        for state in &mut self.states {
            state.writes &= !DISCARDED_LATER;
        }
        let unit = self.subject.unit;
        let lifetime = LifetimeFindings::of(self.states.iter().map(|state| state.writes));
        let (mut garbage, mut excess) = (Blame::default(), Blame::default());
        let mean = lifetime.mean();
        for state in self.states.iter().filter(|state| state.writes > 0) {
            let share = self.unsegmented.garbage_share(state.unsegmented);
            garbage.add(state.writer, share * unit.0 as f64);
            excess.add(state.writer, (f64::from(state.writes) - mean).max(0.0));
        }
        let last = self.held();
        let grouping = GroupingFindings {
            unsegmented: self.unsegmented.zombies(unit),
            segmented: self.segmented.zombies(unit),
            density: self.unsegmented.density(),
            density_segmented: self.segmented.density(),
            written: Bytes(last.written),
            mapped: Bytes(last.mapped),
            overwritten: unit * self.overwritten,
            discarded: unit * self.discarded,
            discarded_later: unit * self.discarded_later,
            history: self.history.finish(last),
        };
        let locality = self.locality.finish();
        let alignment = self.alignment.map(LogBlocks::finish);
        let groups = &self.groups;
        let offenders = [
            self.request_scale.blame.worst(groups, symbols),
            locality.blame.worst(groups, symbols),
            alignment[1].blame.worst(groups, symbols),
            garbage.worst(groups, symbols),
            excess.worst(groups, symbols),
        ];
        Findings {
            exact: self.units.is_exact(),
            subject: self.subject,
            request_scale: self.request_scale,
            locality,
            alignment,
            grouping,
            lifetime,
            offenders,
        }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
