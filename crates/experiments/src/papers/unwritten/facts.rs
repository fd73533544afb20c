//! The numbers of a pair from which verdicts follow.

use prism_base::Bytes;
use prism_contract::rules::{Findings, Ranges, Rule, Rules, SEGMENT, Side, Subject};
use prism_trace::{Op, Record, Source, SourceError, Symbols, each_record};

use super::Pair;
use super::figure1::Figure1;
use super::variants::{ColdReads, Sequential};
use super::writes::{RangeBias, UNIT, WriteCounts, Writes};

/// Channels of the drive of the paper's trace runs. It has pages of 2 KiB, caches a tenth of its
/// map and has 50 % more flash than addresses. Writes are counted in blocks of the file system,
/// where the paper counts pages of half the size.
pub(super) const CHANNELS: u32 = 16;
pub(super) const FLASH_PAGE: Bytes = Bytes(2048);
/// Bytes of addresses that a translation page maps: 512 entries of 4 bytes, for pages of 2 KiB.
const MAP_REACH: Bytes = Bytes(1 << 20);
const SPARE: f64 = 0.5;
/// Cached shares of the map, in percent.
const CACHED: [u64; 2] = [1, 10];

/// Sizes and queue depths of the reads, or of the writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scale {
    /// Number of requests.
    pub requests: u64,
    /// Bytes of the requests.
    pub bytes: u64,
    /// Quartiles of the sizes; zeros if there are no requests.
    pub sizes: [u64; 3],
    /// Quartiles of the requests in flight just before each request; `None` if the trace has no
    /// completions.
    pub before: Option<[u64; 3]>,
    /// Median of the requests of the same kind in flight just before each request.
    pub before_same: Option<u64>,
}

impl Scale {
    pub(super) fn of(side: &Side) -> Self {
        let quartile = |q| side.sizes.quantile(q).unwrap_or(0);
        let depth = |q| side.depth.quantile(q);
        Self {
            requests: side.requests,
            bytes: side.bytes,
            sizes: [quartile(0.25), quartile(0.5), quartile(0.75)],
            before: depth(0.25).zip(depth(0.5)).zip(depth(0.75)).map(|((a, b), c)| [a, b, c]),
            before_same: side.depth_same.quantile(0.5),
        }
    }

    /// Median size.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.sizes[1]
    }

    /// Median of the requests in flight, including the issued one. The published medians count in
    /// the same way, since none is below 1.
    #[must_use]
    pub fn depth(&self) -> Option<u64> {
        self.before.map(|before| before[1] + 1)
    }

    /// As [`Scale::depth`], over requests of the same kind.
    #[must_use]
    pub fn depth_same(&self) -> Option<u64> {
        self.before_same.map(|before| before + 1)
    }
}

/// The numbers of a pair that verdicts rest on.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// The pair.
    pub pair: Pair,
    /// Scores of the five rules, in the order of [`Rule::ALL`]; `None` if the trace does not allow
    /// a score.
    pub scores: [Option<f64>; 5],
    /// Reads.
    pub reads: Scale,
    /// Writes.
    pub writes: Scale,
    /// Discards while the application ran.
    pub discards: u64,
    /// Discards after the application had ended.
    pub discards_later: u64,
    /// Flushes.
    pub flushes: u64,
    /// Writes that are themselves durable (FUA) or begin with a flush.
    pub durable_writes: u64,
    /// Median of the bytes written between two barriers.
    pub between_barriers: Option<Bytes>,
    /// Misses over visits of the map cache, with 1 % and with 10 % of the map cached.
    pub misses: [Option<f64>; 2],
    /// Misses over units looked up, as the paper counts, with 1 % and with 10 % of the map cached.
    pub misses_by_lookups: [Option<f64>; 2],
    /// Bytes of addresses mapped by the touched translation pages, over the bytes of distinct
    /// addresses written.
    pub spread: Option<f64>,
    /// The paper's unaligned ratio: bytes merged at the end over bytes that are live at the end,
    /// with logical blocks of 128 KiB and of 1 MiB. It exceeds 1 if many of the mapped and merged
    /// bytes are dead.
    pub unaligned: [Option<f64>; 2],
    /// Valid bytes over the bytes of all blocks with valid data, for a drive with one open block
    /// and for one with an open block for each segment of 128 MiB, if it has more than one.
    pub density: [Option<f64>; 2],
    /// Share of the blocks with valid data that also hold garbage, for the same two drives.
    pub mixed: [Option<f64>; 2],
    /// Bytes that hold data at the end.
    pub mapped: Bytes,
    /// Bytes of these that the file system discards only after the application has ended.
    pub dead: Bytes,
    /// Share of the bytes written that overwrites data.
    pub overwritten: Option<f64>,
    /// Share of the writes that go to the 10 % of the units written most often.
    pub top_tenth: Option<f64>,
    /// Writes of application data.
    pub data: WriteCounts,
    /// Writes of file system metadata.
    pub metadata: WriteCounts,
    /// How unevenly ranges of addresses are written.
    pub bias: RangeBias,
    /// Reads with cold caches, for each setting of read-ahead that was recorded.
    pub cold: Vec<ColdReads>,
    /// Sequential work by one or more instances, as far as it was recorded.
    pub sequential: Vec<Sequential>,
}

impl Facts {
    /// Writes per barrier (a flush, or a durable write); `None` without barriers.
    #[must_use]
    pub fn writes_per_barrier(&self) -> Option<f64> {
        let barriers = self.flushes + self.durable_writes;
        (barriers > 0).then(|| self.writes.requests as f64 / barriers as f64)
    }

    /// Discards as a share of all requests but flushes.
    #[must_use]
    pub fn discard_ratio(&self) -> Option<f64> {
        let all = self.reads.requests + self.writes.requests + self.discards;
        (all > 0).then(|| self.discards as f64 / all as f64)
    }

    /// Share of the mapped bytes that are dead; `None` if no byte is mapped.
    #[must_use]
    pub fn dead_share(&self) -> Option<f64> {
        (self.mapped.0 > 0).then(|| self.dead.0 as f64 / self.mapped.0 as f64)
    }

    fn of(pair: Pair, found: &Findings, later: u64, writes: &Writes, device: Bytes) -> Self {
        let scale = &found.request_scale;
        let [data, metadata] = writes.kinds();
        let grouping = &found.grouping;
        let written = grouping.written.0;
        let live = grouping.mapped.0.saturating_sub(grouping.discarded_later.0);
        let mixed = [&grouping.unsegmented, &grouping.segmented].map(|zombies| {
            let held = zombies.held_blocks();
            (held > 0).then(|| zombies.mixed_blocks() as f64 / held as f64)
        });
        let locality = &found.locality;
        let pages = CACHED.map(|share| (found.subject.map_pages * share / 100).max(1));
        let unique = found.lifetime.units * UNIT.0;
        let touched = locality.distances.pages() * locality.reach.0;
        Self {
            pair,
            scores: Rule::ALL.map(|rule| found.score(rule)),
            reads: Scale::of(&scale.reads),
            writes: Scale::of(&scale.writes),
            discards: scale.discards,
            discards_later: later,
            flushes: scale.flushes,
            durable_writes: scale.durable_writes,
            between_barriers: scale.kib_between_barriers.quantile(0.5).map(|k| Bytes(k << 10)),
            misses: pages.map(|pages| locality.miss_ratio(pages)),
            misses_by_lookups: pages.map(|pages| locality.miss_ratio_by_lookups(pages)),
            spread: (unique > 0).then(|| touched as f64 / unique as f64),
            unaligned: [0, 1].map(|size| {
                let merged = found.alignment[size].at_end.copied * UNIT.0;
                (live > 0).then(|| merged as f64 / live as f64)
            }),
            // A device of one segment has one open block for both.
            density: [grouping.density, grouping.density_segmented.filter(|_| device > SEGMENT)],
            mixed,
            mapped: grouping.mapped,
            dead: grouping.discarded_later,
            overwritten: (written > 0).then(|| grouping.overwritten.0 as f64 / written as f64),
            top_tenth: found.lifetime.share_of_top(0.1),
            data,
            metadata,
            bias: writes.bias(device),
            cold: Vec::new(),
            sequential: Vec::new(),
        }
    }
}

/// What is observed in a trace.
#[derive(Debug)]
pub struct Observed {
    /// The numbers from which verdicts follow.
    pub facts: Facts,
    /// The window of Figure 1, if the trace has one.
    pub figure1: Option<Figure1>,
}

/// Observes the trace of `pair` on a device of size `device`, without reads with cold caches and
/// sequential work. `source` has the requests while the application ran, `later` the
/// discards after it, and `symbols` the names in both.
///
/// # Errors
/// [`SourceError`] if the stored trace cannot be read again.
pub fn observe(
    pair: Pair,
    device: Bytes,
    source: &mut dyn Source,
    later: &[Record],
    symbols: &Symbols,
) -> Result<Observed, SourceError> {
    let map_pages = device.0 / MAP_REACH.0;
    let subject = Subject {
        unit: UNIT,
        flash_page: FLASH_PAGE,
        channels: CHANNELS,
        map_reach: MAP_REACH,
        cache_pages: map_pages * CACHED[1] / 100,
        map_pages,
        spare: SPARE,
    };
    let mut rules = Rules::new(subject, Ranges::new(Vec::new(), device.0));
    let mut writes = Writes::default();
    let mut moving = Vec::new();
    each_record(source, |record| {
        rules.add(record);
        writes.add(record);
        if matches!(record.op, Op::Read | Op::Write) {
            moving.push(*record);
        }
    })?;
    later.iter().for_each(|record| rules.after(record));
    let findings = rules.finish(symbols);
    let facts = Facts::of(pair, &findings, later.len() as u64, &writes, device);
    Ok(Observed { facts, figure1: Figure1::of(&moving) })
}
