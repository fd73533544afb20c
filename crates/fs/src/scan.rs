//! What a device holds: the first chunks of its segments, and chunks after a damaged block.

use std::collections::BTreeMap;

use prism_segments::Store;

use crate::error::{FsError, Result};
use crate::format::{BLOCK, ENTRIES, Entry, Kind, Summary, u32_at};
use crate::log::Log;

/// Summaries that are read at the same time.
const BATCH: usize = 64;

/// A chunk on flash.
pub(crate) struct Chunk {
    pub addr: u32,
    pub summary: Summary,
    pub sum: u32,
}

impl Chunk {
    /// Entries with the addresses of their payload.
    pub fn entries(&self) -> impl Iterator<Item = (Entry, u32)> + '_ {
        let mut addr = self.addr;
        self.summary.entries.iter().map(move |entry| {
            addr += u32::from(entry.kind.has_payload());
            (*entry, addr)
        })
    }

    /// The entries of nodes, and of nodes that are free.
    pub fn nodes(&self) -> impl Iterator<Item = (Entry, u32)> + '_ {
        self.entries().filter(|(entry, _)| matches!(entry.kind, Kind::Node | Kind::Free))
    }
}

/// What was found on a device.
pub(crate) struct DeviceScan {
    /// Segments that may hold data, sorted.
    pub used: Vec<u32>,
    /// The first chunk of segments of the file system, newest first.
    pub first: Vec<(u64, u32)>,
    /// The numbers of the chunks with which these segments begin.
    pub begins: BTreeMap<u32, u64>,
    pub fs_id: u64,
    pub seq_max: u64,
    /// What was durable, as chunks say.
    pub durable: u64,
    /// Whether chunks after damaged ones were taken.
    pub has_gap: bool,
    /// Chunks after damaged ones that were not taken.
    pub torn: Vec<Chunk>,
}

impl DeviceScan {
    /// Whether a segment, in use when the chunk `seq` was written, was freed since: it is empty, or
    /// begins with a later chunk.
    pub fn was_freed(&self, segment: u32, seq: u64) -> bool {
        let is_later = self.begins.get(&segment).is_some_and(|begin| *begin > seq);
        is_later || self.used.binary_search(&segment).is_err()
    }

    /// Notes what a chunk that was found says.
    pub fn note(&mut self, chunk: &Summary) {
        self.seq_max = self.seq_max.max(chunk.seq);
        self.durable = self.durable.max(chunk.durable);
    }
}

/// Blocks without content after which nothing follows: the largest chunk may be damaged and have
/// nothing but zeros.
const GAP: usize = ENTRIES + 1;

/// The same after a first block without content: conventional drives have many segments that were
/// not written, and each mount looks at them.
const UNWRITTEN: usize = 8;

/// The chunks in the rest of a segment after a block that is none, and after the chunk `seq`: what
/// they call durable shows whether the block is damaged or was torn by a loss of power.
pub(crate) fn chunks_after<S: Store>(
    log: &mut Log<S>,
    fs_id: u64,
    addr: u32,
    seq: u64,
) -> Vec<Chunk> {
    search(log, fs_id, addr, seq, GAP)
}

/// As [`chunks_after`]; ends after `empty` blocks without content.
fn search<S: Store>(log: &mut Log<S>, fs_id: u64, addr: u32, seq: u64, empty: usize) -> Vec<Chunk> {
    let step = log.padded(1);
    let end = (addr / log.blocks_per_segment + 1) * log.blocks_per_segment;
    let places: Vec<(u32, u32)> =
        (addr..end).step_by(step as usize).skip(1).map(|addr| (addr, 1)).collect();
    let mut chunks: Vec<Chunk> = Vec::new();
    let mut next = addr;
    for batch in places.chunks(empty) {
        let mut any = false;
        for (&(addr, _), read) in batch.iter().zip(log.read_runs(batch)) {
            let Ok(data) = read else { continue };
            any |= has_content(&data);
            // Blocks of a payload are no summaries, whatever they say.
            if addr >= next
                && let Ok(Some((summary, sum))) = Summary::decode(&data[..BLOCK])
                && summary.fs_id == fs_id
                && summary.seq > chunks.last().map_or(seq, |last| last.summary.seq)
            {
                next = log.next_chunk(addr, summary.payload()).unwrap_or(end);
                chunks.push(Chunk { addr, summary, sum });
            }
        }
        if !any {
            break;
        }
    }
    chunks
}

/// Compares whole blocks, because a mount looks at many blocks of zeros, and byte by byte that took
/// a quarter of the CPU time of small mounts.
fn has_content(data: &[u8]) -> bool {
    static ZEROS: [u8; BLOCK] = [0; BLOCK];
    data.chunks(BLOCK).any(|block| *block != ZEROS[..block.len()])
}

/// The first block of a segment.
pub(crate) enum FirstBlock {
    Chunk(Summary),
    /// It has no content.
    Empty,
    /// It was torn, or is damaged.
    Other,
}

impl FirstBlock {
    /// The chunk that begins there.
    pub fn chunk(&self) -> Option<&Summary> {
        match self {
            Self::Chunk(summary) => Some(summary),
            Self::Empty | Self::Other => None,
        }
    }
}

/// The first blocks of the segments that may hold data.
///
/// # Errors
/// Those of [`Summary::decode`], and those of the store.
pub(crate) fn first_blocks<S: Store>(log: &mut Log<S>) -> Result<Vec<(u32, FirstBlock)>> {
    let used = log.store().used()?;
    let mut first = Vec::with_capacity(used.len());
    for batch in used.chunks(BATCH) {
        let runs: Vec<(u32, u32)> =
            batch.iter().map(|segment| (segment * log.blocks_per_segment, 1)).collect();
        for (segment, read) in batch.iter().zip(log.read_runs(&runs)) {
            // What cannot be read holds nothing that was ever durable, or is damaged, which the
            // gap in the numbers of chunks shows.
            let block = match read {
                Ok(data) if u32_at(&data, 0) != 0 => Summary::decode(&data[..BLOCK])?
                    .map_or(FirstBlock::Other, |(summary, _)| FirstBlock::Chunk(summary)),
                Ok(data) if !has_content(&data) => FirstBlock::Empty,
                _ => FirstBlock::Other,
            };
            first.push((*segment, block));
        }
    }
    Ok(first)
}

/// The segments of the newest file system on a device.
///
/// # Errors
/// [`FsError::NotFormatted`], those of [`Summary::decode`], and those of the store.
pub(crate) fn find<S: Store>(log: &mut Log<S>) -> Result<DeviceScan> {
    let first = first_blocks(log)?;
    let chunks = || first.iter().filter_map(|(_, block)| block.chunk());
    let fs_id = chunks().max_by_key(|chunk| chunk.seq).ok_or(FsError::NotFormatted)?.fs_id;
    let own = chunks().filter(|chunk| chunk.fs_id == fs_id);
    let durable = own.map(|chunk| chunk.durable).max().unwrap_or(0);
    let mut order: Vec<(u64, u32)> = Vec::new();
    let mut begins = BTreeMap::new();
    for (segment, block) in &first {
        let begin = segment * log.blocks_per_segment;
        let empty = match block {
            FirstBlock::Chunk(chunk) if chunk.fs_id == fs_id => {
                order.push((chunk.seq, *segment));
                begins.insert(*segment, chunk.seq);
                continue;
            }
            FirstBlock::Chunk(_) => continue,
            FirstBlock::Empty => UNWRITTEN,
            FirstBlock::Other => GAP,
        };
        let lost = search(log, fs_id, begin, 0, empty);
        order.extend(lost.first().map(|chunk| (chunk.summary.seq, *segment)));
    }
    order.sort_unstable_by(|a, b| b.cmp(a));
    let mut used: Vec<u32> = first.into_iter().map(|(segment, _)| segment).collect();
    used.sort_unstable();
    let (seq_max, has_gap, torn) = (0, false, Vec::new());
    Ok(DeviceScan { used, first: order, begins, fs_id, seq_max, durable, has_gap, torn })
}
