//! The bytes of the journal: its entries, its head, and how the entries of a log are found. No I/O.
//!
//! An entry holds what one sync made durable: the records of all blocks that changed, and the
//! headers of all pages programmed. It takes whole units of the log, twice, so that one damaged
//! sector loses none, and the entries follow each other with numbers that do. The head has the
//! number of the first one.

#[cfg(test)]
mod tests;

use twox_hash::XxHash3_64;

use crate::format::{self, Record, u32_at, u64_at};
use crate::layout::{ALIGN, Layout, SECTOR};

/// Bytes of a unit: what direct I/O and the page cache write as a whole.
pub(crate) const UNIT: usize = ALIGN as usize;
/// Bytes of a log beyond the two copies of its longest entry of records: those of 128 syncs of few
/// pages. A checkpoint costs two syncs of the disk, less than a fiftieth of that.
const LOG_LEN: u64 = 1 << 20;
/// Bytes of an entry before its records.
const FIXED: usize = 40;
/// Bytes of a block record in an entry: the block and its record.
const RECORD: usize = 4 + Layout::RECORD;
const ENTRY_MAGIC: &[u8; 8] = b"PRISMENT";
const HEAD_MAGIC: &[u8; 8] = b"PRISMJNL";

/// The length of the log of a device with this number of blocks.
pub(crate) fn log_len(blocks: u32) -> u64 {
    let of_all = (FIXED as u64 + u64::from(blocks) * RECORD as u64).next_multiple_of(ALIGN);
    LOG_LEN + 2 * of_all
}

/// Limit of the bytes of page headers in an entry, for a log of this length: half of the log has
/// both copies of them, so that an entry of as many always fits into an empty one.
pub(crate) fn headers_max(log_len: u64) -> u64 {
    log_len.min(LOG_LEN) / 4
}

/// Headers of pages, as an entry has them: number of the page, then the header.
#[derive(Debug, Default)]
pub(crate) struct PageHeaders(Vec<u8>);

impl PageHeaders {
    pub(crate) fn push(&mut self, page: u32, header: &[u8]) {
        self.0.extend(page.to_le_bytes());
        self.0.extend(header);
    }

    pub(crate) fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    /// Bytes that they take in an entry.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Bytes that both copies of an entry take at most, with this number of records and of bytes of
/// page headers.
pub(crate) fn len_max(records: usize, headers: usize) -> usize {
    2 * (FIXED + records * RECORD + headers).next_multiple_of(UNIT)
}

/// Encodes entry `number` into `bytes`, twice. Of the headers, those that `counts` accepts for the
/// number of the page: a block may have been erased after the program.
pub(crate) fn encode(
    layout: &Layout,
    identity: u64,
    number: u64,
    records: impl Iterator<Item = (u32, Record)>,
    headers: &PageHeaders,
    counts: impl Fn(u32, &[u8]) -> bool,
    bytes: &mut Vec<u8>,
) {
    bytes.clear();
    bytes.resize(FIXED, 0);
    let mut record_count = 0u32;
    for (block, record) in records {
        bytes.extend(block.to_le_bytes());
        bytes.extend(record.encode());
        record_count += 1;
    }
    let mut header_count = 0u32;
    for place in headers.0.chunks_exact(4 + layout.header as usize) {
        if counts(u32_at(place, 0), &place[4..]) {
            bytes.extend(place);
            header_count += 1;
        }
    }
    bytes.resize(bytes.len().next_multiple_of(UNIT), 0);
    let len = bytes.len() as u64;
    bytes[8..16].copy_from_slice(ENTRY_MAGIC);
    bytes[16..24].copy_from_slice(&number.to_le_bytes());
    bytes[24..32].copy_from_slice(&len.to_le_bytes());
    bytes[32..36].copy_from_slice(&record_count.to_le_bytes());
    bytes[36..40].copy_from_slice(&header_count.to_le_bytes());
    let hash = XxHash3_64::oneshot_with_seed(identity, &bytes[8..]);
    bytes[..8].copy_from_slice(&hash.to_le_bytes());
    bytes.extend_from_within(..);
}

/// An entry.
#[derive(Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) number: u64,
    /// Bytes of one copy.
    len: usize,
    /// Blocks that changed, ascending, with their records.
    pub(crate) records: Vec<(u32, Record)>,
    /// The numbers and headers of pages; each is counted by the record of its block.
    pub(crate) headers: Vec<(u32, Vec<u8>)>,
}

/// The number of the entry that begins with `bytes`, if one seems to.
fn number_of(bytes: &[u8]) -> Option<u64> {
    (bytes.len() >= UNIT && &bytes[8..16] == ENTRY_MAGIC).then(|| u64_at(bytes, 16))
}

/// The entry that begins with `bytes`; `None` if there is none, or not a whole one.
fn decode(layout: &Layout, identity: u64, bytes: &[u8]) -> Option<Entry> {
    let number = number_of(bytes)?;
    let len = usize::try_from(u64_at(bytes, 24)).ok()?;
    let bytes = bytes.get(..len).filter(|_| len >= UNIT && len.is_multiple_of(UNIT))?;
    if u64_at(bytes, 0) != XxHash3_64::oneshot_with_seed(identity, &bytes[8..]) {
        return None;
    }
    let header = layout.header as usize;
    let records_len = RECORD.checked_mul(u32_at(bytes, 32) as usize)?;
    let headers_len = (4 + header).checked_mul(u32_at(bytes, 36) as usize)?;
    let (records, rest) = bytes[FIXED..].split_at_checked(records_len)?;
    let headers = rest.get(..headers_len)?;
    let record = |place: &[u8]| Some((u32_at(place, 0), Record::decode(&place[4..])?));
    let records: Option<Vec<_>> = records.chunks_exact(RECORD).map(record).collect();
    let (records, geometry) = (records?, &layout.geometry);
    let fits = |(block, record): &(u32, Record)| {
        *block < geometry.blocks() && u32::from(record.programmed) <= geometry.pages_per_block
    };
    let ascend = records.is_sorted_by(|(one, _), (next, _)| one < next);
    if !ascend || !records.iter().all(fits) {
        return None;
    }
    let headers = headers.chunks_exact(4 + header);
    let headers: Vec<_> = headers.map(|place| (u32_at(place, 0), place[4..].to_vec())).collect();
    let is_counted = |(page, header): &(u32, Vec<u8>)| {
        let (block, in_block) = layout.place_of(*page);
        let record = records.binary_search_by_key(&block, |&(block, _)| block);
        let record = record.ok().map(|index| records[index].1);
        record.is_some_and(|record| {
            in_block < u32::from(record.programmed)
                && format::header_is_whole(identity, (*page).into(), record.erases, header)
        })
    };
    let whole = headers.iter().all(is_counted);
    whole.then_some(Entry { number, len, records, headers })
}

/// An entry that a sync has made durable, and that is not there any more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LostEntry {
    pub(crate) number: u64,
    /// Its offset in the log.
    pub(crate) at: usize,
}

/// A copy of an entry that is not whole; the other one is.
#[derive(Debug, PartialEq)]
pub(crate) struct BrokenCopy {
    pub(crate) number: u64,
    /// 1 or 2.
    pub(crate) copy: u32,
    /// Its place in the log.
    pub(crate) at: usize,
    /// What it should be.
    pub(crate) bytes: Vec<u8>,
}

/// What a log holds.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Log {
    /// Its entries, in order.
    pub(crate) entries: Vec<Entry>,
    /// Bytes that they take.
    pub(crate) used: usize,
    /// The copies that are not whole, at most one of an entry. A loss of power may have torn that
    /// of the last entry.
    pub(crate) broken: Vec<BrokenCopy>,
    /// Whether the beginning of one more entry is there: a loss of power has torn it. If another
    /// one were written in its place with the same number and torn as well, the sectors that both
    /// have alike, such as the zeros at their ends, could make the older one whole.
    pub(crate) is_torn: bool,
}

/// Reads a log whose first entry has the number `base`, with each entry `copies` times: once in
/// files of version 3, else twice.
///
/// # Errors
/// Only the last entry can have been in flight when power failed, since each is written after the
/// one before is durable. So an entry after one that is missing means damage.
pub(crate) fn scan(
    layout: &Layout,
    identity: u64,
    copies: usize,
    base: u64,
    log: &[u8],
) -> Result<Log, LostEntry> {
    let decode_at = |at: usize, number: u64| {
        let seems = log.get(at..).and_then(number_of) == Some(number);
        if seems { decode(layout, identity, &log[at..]) } else { None }
    };
    // The second copy is as far from the beginning of the entry as it is long.
    let second_of = |at: usize, number: u64| {
        let later = (at + UNIT..log.len()).step_by(UNIT).filter(|_| copies > 1);
        let mut fitting = later.filter(|second| u64_at(log, second + 24) == (second - at) as u64);
        fitting.find_map(|second| decode_at(second, number))
    };
    let (mut found, mut next) = (Log::default(), base);
    loop {
        let at = found.used;
        let first = decode_at(at, next);
        let is_whole = first.is_some();
        let entry = first.or_else(|| second_of(at, next));
        let Some(entry) = entry.filter(|entry| at + copies * entry.len <= log.len()) else { break };
        let (second, end) = (at + entry.len, at + copies * entry.len);
        let both = [at..second, end - entry.len..end].map(|copy| &log[copy]);
        if both[0] != both[1] {
            let (copy, at, bytes) = if is_whole { (2, second, both[0]) } else { (1, at, both[1]) };
            found.broken.push(BrokenCopy { number: next, copy, at, bytes: bytes.to_vec() });
        }
        found.used = end;
        next += 1;
        found.entries.push(entry);
    }
    let rest = || (found.used..log.len()).step_by(UNIT);
    // Entries from before the last checkpoint have smaller numbers.
    let is_later = |at: usize| {
        let number = number_of(&log[at..]).filter(|&number| number > next);
        number.is_some_and(|number| decode_at(at, number).is_some())
    };
    if rest().any(is_later) {
        return Err(LostEntry { number: next, at: found.used });
    }
    found.is_torn = rest().any(|at| number_of(&log[at..]) == Some(next));
    Ok(found)
}

/// Encodes the head of a journal whose first entry has the number `base`.
pub(crate) fn encode_head(identity: u64, base: u64) -> [u8; SECTOR] {
    let mut sector = [0; SECTOR];
    sector[8..16].copy_from_slice(HEAD_MAGIC);
    sector[16..24].copy_from_slice(&base.to_le_bytes());
    let hash = XxHash3_64::oneshot_with_seed(identity, &sector[8..]);
    sector[..8].copy_from_slice(&hash.to_le_bytes());
    sector
}

/// The number of the first entry, `None` if the head is damaged.
pub(crate) fn decode_head(identity: u64, sector: &[u8; SECTOR]) -> Option<u64> {
    let whole = &sector[8..16] == HEAD_MAGIC
        && u64_at(sector, 0) == XxHash3_64::oneshot_with_seed(identity, &sector[8..]);
    whole.then(|| u64_at(sector, 16))
}
