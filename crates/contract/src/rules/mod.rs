//! The five rules, each a number over a trace.
//!
//! [`Rules`] takes the records one by one, in one pass and bounded memory, and becomes
//! [`Findings`]: of every rule its score, the curves behind it, and who is to blame.
//!
//! Memory: 14 bytes for each unit written (its blocks on two logs, its writes, its writer),
//! some 80 bytes a touched MiB, and what the groups of offenders take: 40 M units are
//! 0.6 GB.

mod alignment;
mod findings;
mod grouping;
mod lifetime;
mod locality;
mod offenders;
mod request_scale;
mod rule;
mod stack;
mod subject;
mod units;

pub use alignment::{AlignmentFound, LogBlocks, Merges};
pub use findings::{Findings, GroupingFound};
pub use grouping::{AppendLog, Course, HeldAt, Zombies};
pub use lifetime::LifetimeFound;
pub use locality::{COVERAGES, Locality, LocalityFound};
pub use offenders::{Blame, Class, Dimension, Groups, NamedRange, Offender, Ranges};
pub use request_scale::{Counted, RequestScale, Side};
pub use rule::{Rule, Thresholds, Verdict};
pub use stack::{Distances, Stack};
pub use subject::Subject;
pub use units::{Run, Units};

use prism_base::Bytes;
use prism_trace::{Op, Record, Symbols};

/// Blocks in which garbage is looked for. Erase blocks were this large when the rule was
/// written down ("Designing SSD-friendly applications": 512 KiB or 1 MiB) and are larger
/// today, which groups no better.
pub const GROUP_BLOCK: Bytes = Bytes(1 << 20);
/// Segments of a segmented drive. Source: the EuroSys'17 paper's runs.
pub const SEGMENT: Bytes = Bytes(128 << 20);
/// Logical blocks of a drive mapped by blocks: the paper's two sizes. The score stands for
/// the second.
pub const LOGICAL_BLOCKS: [Bytes; 2] = [Bytes(128 << 10), Bytes(1 << 20)];

/// In a unit's count of writes: it was discarded after the judged part, and is not to be
/// counted a second time.
const LATER: u32 = 1 << 31;

/// The five rules over the records so far.
#[derive(Debug)]
pub struct Rules {
    subject: Subject,
    groups: Groups,
    units: Units,
    request_scale: RequestScale,
    locality: Locality,
    alignment: [LogBlocks; 2],
    whole: AppendLog,
    segmented: AppendLog,
    course: Course,
    writes: Vec<u32>,
    writers: Vec<u16>,
    written_units: u64,
    overwritten: u64,
    discarded: u64,
    /// Units that were dead already when the selected part of the trace ended.
    discarded_later: u64,
}

impl Rules {
    /// No record yet. `ranges` name what lies where.
    #[must_use]
    pub fn new(subject: Subject, ranges: Ranges) -> Self {
        let unit = subject.unit;
        let per_block = (GROUP_BLOCK.0 / unit.0).max(1) as u32;
        let log = |segment| AppendLog::new(per_block, segment);
        Self {
            groups: Groups::new(ranges),
            units: Units::default(),
            request_scale: RequestScale::new(subject.flash_page, subject.channels),
            locality: Locality::new(unit, subject.map_reach, subject.cache_pages),
            alignment: LOGICAL_BLOCKS.map(|block| LogBlocks::new(block, unit)),
            whole: log(u64::MAX),
            segmented: log((SEGMENT.0 / unit.0).max(1)),
            course: Course::new(),
            writes: Vec::new(),
            writers: Vec::new(),
            written_units: 0,
            overwritten: 0,
            discarded: 0,
            discarded_later: 0,
            subject,
        }
    }

    /// Counts a record. Records come in the order of their issue times.
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

    /// A record that comes after the part of the trace that is judged: what it discards
    /// was mapped in vain when that part ended.
    pub fn after(&mut self, record: &Record) {
        if matches!(record.op, Op::Discard | Op::WriteZeroes) {
            self.discarded_later += self.forget(record);
        }
    }

    fn write(&mut self, record: &Record, group: u16) {
        let unit = self.subject.unit.0;
        let (first, end) = (record.offset / unit, record.end().div_ceil(unit));
        let Self { units, alignment, whole, segmented, writes, writers, .. } = self;
        let (mut written, mut overwritten) = (0, 0);
        units.touch(first, end, |run| {
            let top = (run.dense + run.len) as usize;
            if writes.len() < top {
                let len = top.next_multiple_of(units::CHUNK_UNITS as usize);
                writes.resize(len, 0);
                writers.resize(len, 0);
                whole.grow(len);
                segmented.grow(len);
            }
            for i in 0..run.len {
                let (dense, unit) = (run.dense + i, run.unit + u64::from(i));
                let mapped = whole.is_mapped(dense);
                overwritten += u64::from(mapped);
                for blocks in alignment.iter_mut() {
                    blocks.write(unit, mapped, group);
                }
                whole.write(dense, unit);
                segmented.write(dense, unit);
                let count = &mut writes[dense as usize];
                *count = (*count + 1).min(LATER - 1);
                writers[dense as usize] = group;
            }
            written += u64::from(run.len);
        });
        self.written_units += written;
        self.overwritten += overwritten;
        if self.course.is_due(self.written_units * unit) {
            self.course.take(self.held());
        }
    }

    /// Whole units within `record` hold nothing any more; how many did.
    fn discard(&mut self, record: &Record) -> u64 {
        let unit = self.subject.unit.0;
        let (first, end) = (record.offset.div_ceil(unit), record.end() / unit);
        let Self { units, alignment, whole, segmented, .. } = self;
        let mut discarded = 0;
        units.known(first, end, |run| {
            for i in 0..run.len {
                let (dense, unit) = (run.dense + i, run.unit + u64::from(i));
                if whole.is_mapped(dense) {
                    discarded += 1;
                    alignment.iter_mut().for_each(|blocks| blocks.discard(unit));
                    whole.discard(dense);
                    segmented.discard(dense);
                }
            }
        });
        discarded
    }

    /// Units that `record` discards and that still hold what they held at the end of the
    /// judged part. The logs stay as they were then.
    fn forget(&mut self, record: &Record) -> u64 {
        let unit = self.subject.unit.0;
        let (first, end) = (record.offset.div_ceil(unit), record.end() / unit);
        let Self { units, whole, writes, .. } = self;
        let mut found = 0;
        units.known(first, end, |run| {
            for dense in run.dense..run.dense + run.len {
                let mark = &mut writes[dense as usize];
                if whole.is_mapped(dense) && *mark & LATER == 0 {
                    *mark |= LATER;
                    found += 1;
                }
            }
        });
        found
    }

    fn held(&self) -> HeldAt {
        let unit = self.subject.unit.0;
        HeldAt {
            written: self.written_units * unit,
            mapped: self.whole.mapped() * unit,
            held: self.whole.held().0 * unit,
        }
    }

    /// Ends the trace; `symbols` has the names of its records.
    #[must_use]
    pub fn finish(mut self, symbols: &Symbols) -> Findings {
        for count in &mut self.writes {
            *count &= !LATER;
        }
        let unit = self.subject.unit;
        let lifetime = LifetimeFound::of(&self.writes);
        let (mut captive, mut excess) = (Blame::default(), Blame::default());
        let mean = lifetime.mean();
        for (dense, (&count, &writer)) in self.writes.iter().zip(&self.writers).enumerate() {
            if count > 0 {
                captive.add(writer, self.whole.captive(dense) * unit.0 as f64);
                excess.add(writer, (f64::from(count) - mean).max(0.0));
            }
        }
        let last = self.held();
        let grouping = GroupingFound {
            unsegmented: self.whole.zombies(unit),
            segmented: self.segmented.zombies(unit),
            density: self.whole.density(),
            density_segmented: self.segmented.density(),
            written: Bytes(last.written),
            mapped: Bytes(last.mapped),
            overwritten: unit * self.overwritten,
            discarded: unit * self.discarded,
            discarded_later: unit * self.discarded_later,
            course: self.course.finish(last),
        };
        let locality = self.locality.finish();
        let alignment = self.alignment.map(LogBlocks::finish);
        let groups = &self.groups;
        let offenders = [
            self.request_scale.blame.worst(groups, symbols),
            locality.blame.worst(groups, symbols),
            alignment[1].blame.worst(groups, symbols),
            captive.worst(groups, symbols),
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
