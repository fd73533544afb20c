//! Streams of segments of 32 MiB, as a log-structured file system writes them.

use prism_base::Rng;
use prism_engine::FlashCounts;
use prism_ftl::{Frontiers, Ftl, Hybrid, HybridConfig, Logs, PageConfig, PageMap, VictimPolicy};
use prism_nand::{Cause, Nand};

use super::{Bench, Map};
use crate::untimed::{Untimed, geometry};

/// Pages of 4 KiB in a block of 512 KiB.
pub const BLOCK_PAGES: u32 = 128;
/// Pages of a segment.
pub const SEGMENT_PAGES: u32 = 8192;
const SEGMENT_BLOCKS: u32 = SEGMENT_PAGES / BLOCK_PAGES;
/// There is one log block for so many blocks of data.
const LOG_SHARE: u32 = 10;
/// N and K of the N/K mapping: the logical blocks of a group, and the maximum of its log blocks.
pub const GROUP: (u32, u32) = (8, 4);
const DIES: u32 = 4;
/// Segments that are written interleaved: one for each data group of SFS.
const WRITERS: usize = 4;
/// Pages that a writer writes before the next writer continues: 64 KiB.
const TURN: u32 = 16;
/// Offset of misaligned segments from the start of a block, in pages.
const SHIFT: u32 = BLOCK_PAGES / 2 + 1;

named_enum! {
    /// A stream of writes.
    pub enum Stream {
        /// Whole segments that begin at blocks.
        Aligned = "segments, aligned",
        /// Whole segments that begin in the middle of a block.
        Misaligned = "segments, misaligned",
        /// Four aligned segments, interleaved in pieces of 64 KiB.
        Interleaved = "four segments in turn",
        /// Random pages, for comparison.
        Pages = "pages anywhere",
    }
}

/// The cost of a stream on a mapping.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SegmentRow {
    /// The mapping.
    pub map: Map,
    /// The stream.
    pub stream: Stream,
    /// Pages programmed per page written.
    pub write_amplification: f64,
    /// Blocks erased per 1000 pages written: 1000/128 = 7.81 without copies.
    pub erases: f64,
}

/// Every stream on a drive with `map`.
pub(super) fn rows(bench: Bench, map: Map) -> Vec<SegmentRow> {
    Stream::ALL.map(|stream| row(bench, map, stream)).into()
}

/// Flash with `map`: `logical_blocks` blocks of data, and a tenth as many log blocks or spare
/// blocks.
pub(super) fn untimed(map: Map, logical_blocks: u32, block_pages: u32, seed: u64) -> Untimed {
    let logs = logical_blocks / LOG_SHARE;
    let geometry = geometry(DIES, logical_blocks + logs + 1, block_pages);
    let logical_units = logical_blocks * block_pages;
    let fast = HybridConfig::fast(logical_units, logs, false);
    let by_block = |config| Hybrid::new(geometry.clone(), config).expect("blocks enough").into();
    let ftl: Ftl = match map {
        Map::Fast => by_block(fast),
        Map::Groups => by_block(HybridConfig {
            logs: Logs::Groups,
            group_blocks: GROUP.0,
            group_log_blocks: GROUP.1,
            ..fast
        }),
        Map::Bast => by_block(HybridConfig::bast(logical_units, logs)),
        Map::Page => {
            let mut config = PageConfig::simple(DIES, VictimPolicy::Greedy, Frontiers::Shared);
            config.logical_units = logical_units;
            PageMap::new(geometry.clone(), config, seed).expect("spare enough").into()
        }
    };
    Untimed::new(Nand::new(geometry), ftl)
}

fn row(bench: Bench, map: Map, stream: Stream) -> SegmentRow {
    let segments = bench.scale.blocks(32);
    let logical_blocks = segments * SEGMENT_BLOCKS;
    let mut flash = untimed(map, logical_blocks, BLOCK_PAGES, bench.seed);
    let logical = logical_blocks * BLOCK_PAGES;
    flash.fill(logical);
    let mut pages = Pages::new(stream, segments, bench.seed);
    // Two overwrites of the drive are enough for data and log to settle.
    (0..2 * logical).for_each(|_| flash.write(pages.next()));
    let before = flash.counts();
    (0..2 * logical).for_each(|_| flash.write(pages.next()));
    let counts = flash.finish(&before);
    result(map, stream, &counts)
}

fn result(map: Map, stream: Stream, counts: &FlashCounts) -> SegmentRow {
    let written = counts.units[Cause::Host] as f64;
    SegmentRow {
        map,
        stream,
        write_amplification: counts.units.total() as f64 / written,
        erases: 1000.0 * counts.erases.total() as f64 / written,
    }
}

/// A generator of the pages of a stream.
struct Pages {
    stream: Stream,
    segments: u32,
    rng: Rng,
    /// By writer: the segment it writes, and the pages of the segment written so far.
    writers: Vec<(u32, u32)>,
    turn: usize,
}

impl Pages {
    fn new(stream: Stream, segments: u32, seed: u64) -> Self {
        let count = if stream == Stream::Interleaved { WRITERS } else { 1 };
        let writers = (0..count as u32).map(|writer| (writer, SEGMENT_PAGES)).collect();
        Self { stream, segments, rng: Rng::stream(seed, "sfs.segments"), writers, turn: 0 }
    }

    fn next(&mut self) -> u32 {
        let all = u64::from(self.segments * SEGMENT_PAGES);
        if self.stream == Stream::Pages {
            return self.rng.below(all) as u32;
        }
        if self.writers[self.turn].1 == SEGMENT_PAGES {
            self.writers[self.turn] = (self.free_segment(), 0);
        }
        let shift = if self.stream == Stream::Misaligned { SHIFT } else { 0 };
        let (segment, page) = &mut self.writers[self.turn];
        let next = *segment * SEGMENT_PAGES + *page + shift;
        *page += 1;
        if page.is_multiple_of(TURN) {
            self.turn = (self.turn + 1) % self.writers.len();
        }
        next
    }

    /// A random segment that no writer has. With misaligned segments the last one is not whole.
    fn free_segment(&mut self) -> u32 {
        let whole = self.segments - u32::from(self.stream == Stream::Misaligned);
        loop {
            let segment = self.rng.below(u64::from(whole)) as u32;
            if self.writers.iter().all(|&(other, _)| other != segment) {
                return segment;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_write_whole_segments_in_order() {
        let mut pages = Pages::new(Stream::Misaligned, 4, 1);
        let first = pages.next();
        assert_eq!(first % SEGMENT_PAGES, SHIFT);
        assert!((1..SEGMENT_PAGES).all(|page| pages.next() == first + page));
        assert_ne!(pages.next(), first, "a segment other than the one before");

        let mut pages = Pages::new(Stream::Interleaved, 8, 1);
        let turns: Vec<u32> = (0..8 * TURN).map(|_| pages.next()).collect();
        let starts: Vec<u32> = turns.iter().copied().step_by(TURN as usize).collect();
        for (writer, &start) in starts[..4].iter().enumerate() {
            assert_eq!(start % SEGMENT_PAGES, 0);
            assert_eq!(starts[writer + 4], start + TURN, "the writer continues its segment");
        }
    }
}
