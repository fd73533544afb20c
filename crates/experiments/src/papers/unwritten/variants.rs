//! What is recorded besides a pair's usual run: reads with cold caches at several settings of
//! read-ahead, and sequential work by one, two or four instances at once.

use prism_base::{Bytes, FastMap};
use prism_contract::rules::{AppendLog, GROUP_BLOCK, OptBlock, RequestScale, SEGMENT};
use prism_trace::{Op, Record, Source, SourceError, Symbols};

use super::facts::{CHANNELS, FLASH_PAGE, Facts, Scale, observe};
use super::writes::UNIT;
use super::{App, Pair, TRACED};

/// The settings of read-ahead with which records are read: none, Linux's default, eight times that.
pub const READ_AHEADS: [Bytes; 3] = [Bytes(0), Bytes(128 << 10), Bytes(1 << 20)];

/// How many instances write in ascending order at once.
pub const INSTANCES: [u32; 3] = [1, 2, 4];

/// The phase in which the folder of one of several instances is removed.
pub const REMOVE_PHASE: &str = "remove";

/// If at least this share of the valid data of a flash block stays when a folder is removed,
/// cleaning has to copy what stays.
const STAYS_MIN: f64 = 0.1;

/// Reads with cold caches at one setting of read-ahead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColdReads {
    /// The setting.
    pub read_ahead: Bytes,
    /// Reads in the order of keys, or of the names of mails.
    pub ordered: Scale,
    /// Reads of random records or mails.
    pub random: Scale,
}

impl ColdReads {
    /// The phases of the trace that have the reads in order and at random.
    #[must_use]
    pub fn phases(read_ahead: Bytes) -> [String; 2] {
        ["read-seq", "read-rand"].map(|name| format!("{name}-{}KiB", read_ahead.0 >> 10))
    }
}

/// The reads of `source`, in the order of issue.
///
/// # Errors
/// [`SourceError`] if the stored trace cannot be read again.
pub fn reads_of(source: &mut dyn Source) -> Result<Scale, SourceError> {
    let mut scale = RequestScale::new(FLASH_PAGE, CHANNELS);
    each(source, |record| {
        scale.add(record, 0);
        true
    })?;
    Ok(Scale::of(&scale.reads))
}

/// Sequential work by instances that run at once, each in a folder of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequential {
    /// How many instances there were. Together they did the work of one.
    pub instances: u32,
    /// As [`Facts::unaligned`], with logical blocks of 1 MiB.
    pub unaligned: Option<f64>,
    /// What the removal of the first instance's folder frees; `None` for one instance.
    pub removed: Option<Removed>,
}

/// Data of a folder that dies at once, on a drive with an open flash block for each 128 MiB of
/// addresses, which serves a file system that separates folders by address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Bytes of the folder.
    pub bytes: Bytes,
    /// Bytes of these in flash blocks of whose valid data a tenth or more stays.
    pub amid: Bytes,
}

impl Removed {
    /// Share of the folder's data that lies among data that stays.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        (self.bytes.0 > 0).then(|| self.amid.0 as f64 / self.bytes.0 as f64)
    }
}

impl App {
    /// The pattern of the usual run, as `prism capture stack` names it: random updates, and whole
    /// rounds of varmail.
    #[must_use]
    pub fn pattern(self) -> &'static str {
        if self == Self::Varmail { "mix" } else { "rand" }
    }
}

impl Pair {
    /// The name of the trace of the usual run, without the ending.
    #[must_use]
    pub fn usual(self) -> String {
        format!("{}-{}", self.name(), self.app.pattern())
    }

    /// The name of the trace of sequential work by `instances`, without the ending.
    #[must_use]
    pub fn sequential(self, instances: u32) -> String {
        let name = format!("{}-seq", self.name());
        if instances > 1 { format!("{name}-x{instances}") } else { name }
    }
}

/// Observes sequential work by `instances`. `app` has the requests of the applications, `later`
/// the discards after them, and `symbols` the names in both. `removal`, for several instances, is
/// the whole trace and the requests from the removal of a folder on.
///
/// # Errors
/// [`SourceError`] if a stored trace cannot be read again.
pub fn observe_sequential(
    pair: Pair,
    instances: u32,
    app: &mut dyn Source,
    later: &[Record],
    symbols: &Symbols,
    removal: Option<(&mut dyn Source, &mut dyn Source)>,
) -> Result<Sequential, SourceError> {
    let Some((whole, removal)) = removal else {
        let facts = observe(pair, TRACED, app, later, symbols)?.facts;
        return Ok(Sequential { instances, unaligned: facts.unaligned[1], removed: None });
    };
    let mut freed = Vec::new();
    let mut began = i64::MAX;
    each(removal, |record| {
        began = began.min(record.issue_ns);
        if record.op == Op::Discard {
            freed.push(*record);
        }
        true
    })?;
    // What the removal frees was live when the applications ended.
    let before = later.iter().filter(|record| record.issue_ns < began).copied();
    let facts = observe(pair, TRACED, app, &before.collect::<Vec<_>>(), symbols)?.facts;
    let removed = Some(removed(whole, began, &freed)?);
    Ok(Sequential { instances, unaligned: facts.unaligned[1], removed })
}

/// What `freed` frees of the data that `whole` writes before `began`.
fn removed(whole: &mut dyn Source, began: i64, freed: &[Record]) -> Result<Removed, SourceError> {
    let mut log = AppendLog::new((GROUP_BLOCK.0 / UNIT.0) as u32, SEGMENT.0 / UNIT.0);
    let mut units: FastMap<u64, OptBlock> = FastMap::default();
    each(whole, |record| {
        if record.issue_ns >= began {
            return false;
        }
        match record.op {
            Op::Write => {
                for unit in record.offset / UNIT.0..record.end().div_ceil(UNIT.0) {
                    log.write(units.entry(unit).or_default(), unit);
                }
            }
            Op::Discard => discarded(record).for_each(|unit| {
                if let Some(block) = units.get_mut(&unit) {
                    log.discard(block);
                }
            }),
            Op::Read | Op::WriteZeroes | Op::Flush => {}
        }
        true
    })?;
    let mut valid: FastMap<OptBlock, [u64; 2]> = FastMap::default();
    units.values().filter(|&&block| block > 0).for_each(|&block| {
        valid.entry(block).or_default()[0] += 1;
    });
    for unit in freed.iter().flat_map(discarded) {
        if let Some(block) = units.remove(&unit).filter(|&block| block > 0) {
            valid.entry(block).or_default()[1] += 1;
        }
    }
    let mut sums = Removed::default();
    for [all, gone] in valid.into_values() {
        sums.bytes += UNIT * gone;
        if (all - gone) as f64 >= STAYS_MIN * all as f64 {
            sums.amid += UNIT * gone;
        }
    }
    Ok(sums)
}

/// The units that lie as a whole in a discard.
fn discarded(record: &Record) -> std::ops::Range<u64> {
    record.offset.div_ceil(UNIT.0)..record.end() / UNIT.0
}

/// Calls `take` with every record of `source`, until it returns false.
fn each(source: &mut dyn Source, mut take: impl FnMut(&Record) -> bool) -> Result<(), SourceError> {
    let mut batch = Vec::new();
    source.rewind()?;
    loop {
        source.next_batch(&mut batch)?;
        if batch.is_empty() || !batch.iter().all(&mut take) {
            return Ok(());
        }
    }
}

impl Facts {
    /// The reads with cold caches at the setting `read_ahead`, if they were recorded.
    #[must_use]
    pub fn cold_reads(&self, read_ahead: Bytes) -> Option<&ColdReads> {
        self.cold.iter().find(|cold| cold.read_ahead == read_ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prism_trace::VecSource;

    const MIB: u64 = 1 << 20;

    fn removal(writes: &[(u64, u64)], freed: &[(u64, u64)]) -> Removed {
        let record = |op, time: usize, &(offset, len): &(u64, u64)| {
            Record::new(op, time as i64, offset, len)
        };
        let mut all: Vec<_> =
            writes.iter().enumerate().map(|(time, one)| record(Op::Write, time, one)).collect();
        let began = all.len() as i64;
        let freed: Vec<_> = freed.iter().map(|one| record(Op::Discard, all.len(), one)).collect();
        all.extend(&freed);
        removed(&mut VecSource::new(all), began, &freed).unwrap()
    }

    #[test]
    fn removed_data_lies_alone_or_among_other_data() {
        // Blocks of 1 MiB: one of the removed folder alone, one half and half.
        let half = MIB / 2;
        let writes = [(0, MIB), (10 * MIB, half), (20 * MIB, half)];
        let found = removal(&writes, &[(0, MIB), (10 * MIB, half)]);
        assert_eq!(found, Removed { bytes: Bytes(MIB + half), amid: Bytes(half) });
        assert_eq!(found.share(), Some(1.0 / 3.0));
        // Written to another segment, the other half has a block of its own.
        let writes = [(0, MIB), (10 * MIB, half), (200 * MIB, half)];
        let found = removal(&writes, &[(0, MIB), (10 * MIB, half)]);
        assert_eq!(found.amid, Bytes(0));
        // What was overwritten is in the block of its last write; what was never written is free.
        let writes = [(0, MIB), (0, half), (MIB, half)];
        let found = removal(&writes, &[(0, half), (50 * MIB, MIB)]);
        assert_eq!(found, Removed { bytes: Bytes(half), amid: Bytes(half) });
        assert_eq!(removal(&writes, &[]).share(), None);
    }

    #[test]
    fn traces_and_phases_have_the_names_of_the_captures() {
        let pair = Pair { app: App::Varmail, fs: super::super::Fs::F2fs };
        assert_eq!(pair.usual(), "f2fs-varmail-mix");
        assert_eq!(
            [pair.sequential(1), pair.sequential(4)],
            ["f2fs-varmail-seq".to_owned(), "f2fs-varmail-seq-x4".to_owned()]
        );
        assert_eq!(ColdReads::phases(READ_AHEADS[2]), ["read-seq-1024KiB", "read-rand-1024KiB"]);
    }
}
