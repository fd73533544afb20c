//! One pair's numbers.

use prism_base::Bytes;
use prism_contract::rules::{Findings, Ranges, Rule, Rules, Side, Subject};
use prism_trace::{Op, Record, Source, SourceError, Symbols};

use super::figure1::Figure1;
use super::writes::{RangeBias, UNIT, WriteCounts, Writes};
use super::{Pair, TRACED};

/// The drive of the paper's runs of the whole: 16 channels, pages of 2 KiB, a map of which
/// a tenth is cached, half as much flash again as addresses. Writes are counted in blocks
/// of the file system, where the paper counts pages: half as many, and no unit is the half
/// of another.
const CHANNELS: u32 = 16;
const FLASH_PAGE: Bytes = Bytes(2048);
/// 512 entries of 4 bytes for pages of 2 KiB.
const MAP_REACH: Bytes = Bytes(1 << 20);
const SPARE: f64 = 0.5;
/// Shares of the map that are cached, in hundredths.
const CACHED: [u64; 2] = [1, 10];

/// Sizes and numbers of the reads, or of the writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scale {
    /// Requests.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Quartiles of their sizes; zeros if there is none.
    pub sizes: [u64; 3],
    /// The largest.
    pub size_max: u64,
    /// Quartiles of the requests outstanding just before each; none if no completion is
    /// known.
    pub before: Option<[u64; 3]>,
    /// Median of the requests of the same kind outstanding just before each.
    pub before_same: Option<u64>,
}

impl Scale {
    fn of(side: &Side) -> Self {
        let quartile = |q| side.sizes.quantile(q).unwrap_or(0);
        let depth = |q| side.depth.quantile(q);
        Self {
            requests: side.requests,
            bytes: side.bytes,
            sizes: [quartile(0.25), quartile(0.5), quartile(0.75)],
            size_max: quartile(1.0),
            before: depth(0.25).zip(depth(0.5)).zip(depth(0.75)).map(|((a, b), c)| [a, b, c]),
            before_same: side.depth_same.quantile(0.5),
        }
    }

    /// Median size.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.sizes[1]
    }

    /// Median of the requests outstanding, the one that is issued included: what the
    /// published medians count, since none is below 1.
    #[must_use]
    pub fn depth(&self) -> Option<u64> {
        self.before.map(|before| before[1] + 1)
    }

    /// The same over requests of the same kind.
    #[must_use]
    pub fn depth_same(&self) -> Option<u64> {
        self.before_same.map(|before| before + 1)
    }
}

/// The numbers of a pair that verdicts rest on.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// Whose they are.
    pub pair: Pair,
    /// Scores of the five rules, in the order of [`Rule::ALL`]; none where the trace does
    /// not tell.
    pub scores: [Option<f64>; 5],
    /// Reads.
    pub reads: Scale,
    /// Writes.
    pub writes: Scale,
    /// Discards while the application ran.
    pub discards: u64,
    /// Discards that came after it.
    pub discards_later: u64,
    /// Flushes.
    pub flushes: u64,
    /// Writes that are durable by themselves or have a flush before them.
    pub durable_writes: u64,
    /// Median bytes written from one barrier to the next.
    pub between_barriers: Option<Bytes>,
    /// Misses over visits with 1 % and with 10 % of the map cached.
    pub misses: [Option<f64>; 2],
    /// Misses over units looked up, as the paper counts, with 1 % and with 10 %.
    pub misses_by_lookups: [Option<f64>; 2],
    /// Bytes of addresses that the translation pages touched map, over bytes written at
    /// different places.
    pub spread: Option<f64>,
    /// Bytes merged at the end over bytes that are live then, with logical blocks of 128 KiB
    /// and of 1 MiB: the paper's unaligned ratio. It exceeds 1 where much of what is mapped,
    /// and merged, is dead.
    pub unaligned: [Option<f64>; 2],
    /// Valid bytes over bytes of blocks that hold any, of a drive with one open block, and
    /// with one for each segment of 128 MiB.
    pub density: [Option<f64>; 2],
    /// Share of the blocks holding data that hold garbage as well, of the same two drives.
    pub mixed: [Option<f64>; 2],
    /// Bytes that hold data at the end.
    pub mapped: Bytes,
    /// Of these, bytes that the file system discards only after the application is done.
    pub dead: Bytes,
    /// Share of the bytes written that overwrites data.
    pub overwritten: Option<f64>,
    /// Share of the writes that the tenth of the units takes that is written most.
    pub top_tenth: Option<f64>,
    /// What the application wrote.
    pub data: WriteCounts,
    /// What the file system wrote for itself.
    pub metadata: WriteCounts,
    /// Ranges of addresses by how often their units are written.
    pub bias: RangeBias,
}

impl Facts {
    /// Writes for each barrier (a flush, or a write with one); none without barriers.
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

    /// Share of the mapped bytes that nothing needs any more.
    #[must_use]
    pub fn dead_share(&self) -> Option<f64> {
        (self.mapped.0 > 0).then(|| self.dead.0 as f64 / self.mapped.0 as f64)
    }

    fn of(pair: Pair, found: &Findings, later: u64, writes: &Writes) -> Self {
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
            density: [grouping.density, grouping.density_segmented],
            mixed,
            mapped: grouping.mapped,
            dead: grouping.discarded_later,
            overwritten: (written > 0).then(|| grouping.overwritten.0 as f64 / written as f64),
            top_tenth: found.lifetime.share_of_top(0.1),
            data,
            metadata,
            bias: writes.bias(TRACED),
        }
    }
}

/// What one trace shows.
#[derive(Debug)]
pub struct Observed {
    /// Its numbers.
    pub facts: Facts,
    /// All that the rules found.
    pub findings: Findings,
    /// The window for Figure 1, if there is one.
    pub figure1: Option<Figure1>,
}

/// Observes the trace of `pair`: `source` is what happened while the application ran,
/// `later` the discards that came after it, `symbols` the names in both.
///
/// # Errors
/// [`SourceError`] if the stored trace cannot be read again.
pub fn observe(
    pair: Pair,
    source: &mut dyn Source,
    later: &[Record],
    symbols: &Symbols,
) -> Result<Observed, SourceError> {
    let map_pages = TRACED.0 / MAP_REACH.0;
    let subject = Subject {
        unit: UNIT,
        flash_page: FLASH_PAGE,
        channels: CHANNELS,
        map_reach: MAP_REACH,
        cache_pages: map_pages * CACHED[1] / 100,
        map_pages,
        spare: SPARE,
    };
    let mut rules = Rules::new(subject, Ranges::new(Vec::new(), TRACED.0));
    let mut writes = Writes::default();
    let (mut moving, mut batch) = (Vec::new(), Vec::new());
    source.rewind()?;
    loop {
        source.next_batch(&mut batch)?;
        if batch.is_empty() {
            break;
        }
        for record in &batch {
            rules.add(record);
            writes.add(record);
            if matches!(record.op, Op::Read | Op::Write) {
                moving.push(*record);
            }
        }
    }
    later.iter().for_each(|record| rules.after(record));
    let findings = rules.finish(symbols);
    let facts = Facts::of(pair, &findings, later.len() as u64, &writes);
    Ok(Observed { facts, findings, figure1: Figure1::of(&moving) })
}
