//! The bytes of the journal: its entries, its head, and how the entries of a log are found. No I/O.
//!
//! An entry holds what one sync made durable: the records of all blocks that changed, and the
//! headers of all pages programmed. It takes whole units of the log, twice, so that one damaged
//! sector loses none, and the entries follow each other with numbers that do. The head has the
//! number of the first one.

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

/// Encodes entry `number` into `bytes`, twice. Of the headers, those that `counts` accepts for the number
/// of the page: a block may have been erased after the program.
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

/// What a log holds.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Log {
    /// Its entries, in order.
    pub(crate) entries: Vec<Entry>,
    /// Bytes that they take.
    pub(crate) used: usize,
    /// The number of each entry of which one copy is damaged, and that copy, 1 or 2. Not the last
    /// one: a loss of power may have torn one of its copies.
    pub(crate) damaged: Vec<(u64, u32)>,
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
    // The second copy begins where the first one ends, at a place that only an entry can say.
    let second_of = |at: usize, number: u64| {
        let mut later = (at + UNIT..log.len()).step_by(UNIT).filter(|_| copies > 1);
        later.find_map(|second| decode_at(second, number).filter(|entry| at + entry.len == second))
    };
    let (mut found, mut next, mut damaged) = (Log::default(), base, None);
    loop {
        let at = found.used;
        let first = decode_at(at, next);
        let is_whole = first.is_some();
        let Some(entry) = first.or_else(|| second_of(at, next)) else { break };
        // The entry before is not the last one.
        found.damaged.extend(damaged.take());
        let end = at + copies * entry.len;
        let are_equal = log[at..at + entry.len] == log[end - entry.len..end.min(log.len())];
        damaged = (!are_equal).then_some((next, 1 + u32::from(is_whole)));
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

#[cfg(test)]
mod tests {
    use prism_flash::DeviceGeometry;

    use super::*;
    use crate::format::{HashKind, Superblock, VERSION};

    const IDENTITY: u64 = 77;

    fn layout() -> Layout {
        Layout::new(DeviceGeometry {
            channels: 1,
            luns_per_channel: 1,
            blocks_per_lun: 600,
            pages_per_block: 4,
            page_size: 512,
            oob_size: 1000,
            max_open_blocks: None,
        })
    }

    /// Entry `number`, of `blocks` blocks with a page each.
    fn entry(number: u64, blocks: u32) -> Vec<u8> {
        let layout = layout();
        let superblock = Superblock {
            version: VERSION,
            hash: HashKind::Xxh3,
            identity: IDENTITY,
            geometry: layout.geometry,
        };
        let record = Record { erases: 3, programmed: 1, ..Record::default() };
        let mut headers = PageHeaders::default();
        let mut header = vec![0; layout.header as usize];
        let (hash, data) = (superblock.chunk_hash(), [number as u8; 512]);
        for block in 0..blocks {
            let page = layout.page_number(block, 0);
            format::encode_header(&layout, hash, page, 3, &data, b"out", &mut header);
            headers.push(page as u32, &header);
        }
        // An uncounted header, of a block that was erased again.
        headers.push(2000, &header);
        let mut bytes = Vec::new();
        let records = (0..blocks).map(|block| (block, record));
        let counts = |page: u32, _: &[u8]| page != 2000;
        encode(&layout, IDENTITY, number, records, &headers, counts, &mut bytes);
        bytes
    }

    fn scanned(copies: usize, base: u64, log: &[u8]) -> Result<Log, LostEntry> {
        scan(&layout(), IDENTITY, copies, base, log)
    }

    fn numbers(log: &[u8], base: u64) -> Result<Vec<u64>, LostEntry> {
        let found = scanned(2, base, log)?;
        Ok(found.entries.iter().map(|entry| entry.number).collect())
    }

    #[test]
    fn entries_come_back_and_no_flipped_byte_passes() {
        let mut bytes = entry(9, 9);
        assert_eq!(bytes.len(), 2 * 3 * UNIT, "nine headers of 1024 bytes, twice");
        assert_eq!(bytes[..3 * UNIT], bytes[3 * UNIT..]);
        assert!(len_max(9, 9 * 1028) == bytes.len() && headers_max(1 << 30) == LOG_LEN / 4);
        bytes.truncate(3 * UNIT);
        let found = decode(&layout(), IDENTITY, &bytes).unwrap();
        assert_eq!((found.number, found.len), (9, bytes.len()));
        assert_eq!((found.records.len(), found.headers.len()), (9, 9));
        assert_eq!(found.headers[2].0, 8, "page 0 of block 2");
        assert_eq!(decode(&layout(), 78, &bytes), None, "another file");
        assert_eq!(decode(&layout(), IDENTITY, &bytes[..2 * UNIT]), None, "a part");
        for at in 0..bytes.len() {
            bytes[at] ^= 4;
            assert_eq!(decode(&layout(), IDENTITY, &bytes), None, "byte {at}");
            bytes[at] ^= 4;
        }
    }

    #[test]
    fn a_log_ends_with_its_last_entry_in_order() {
        let old = [entry(3, 1), entry(4, 1), entry(5, 9), entry(6, 1), vec![0; UNIT]].concat();
        let with = |at: usize, new: &[u8]| {
            let mut log = old.clone();
            log[at..at + new.len()].copy_from_slice(new);
            log
        };
        assert_eq!(numbers(&old, 3), Ok(vec![3, 4, 5, 6]));
        assert_eq!(numbers(&old, 7), Ok(vec![]), "after a checkpoint");
        assert_eq!(numbers(&old, 8), Ok(vec![]), "after a checkpoint that dropped entry 7");
        assert_eq!(numbers(&with(0, &entry(7, 1)), 7), Ok(vec![7]));
        let torn = &entry(8, 9)[..2 * UNIT];
        let log = with(0, &[&entry(7, 1)[..], torn].concat());
        assert_eq!(numbers(&log, 7), Ok(vec![7]), "the units of entry 5 do not complete entry 8");
    }

    /// The four entries of a log, as versions 3 and 4 have them: where each begins, and its end.
    fn four(copies: usize) -> (Vec<u8>, [usize; 5]) {
        let mut log = Vec::new();
        let starts = [entry(3, 1), entry(4, 1), entry(5, 9), entry(6, 1)].map(|entry| {
            log.extend(&entry[..copies * entry.len() / 2]);
            log.len() - copies * entry.len() / 2
        });
        let [one, two, three, four] = starts;
        log.extend([0; UNIT]);
        let end = log.len() - UNIT;
        (log, [one, two, three, four, end])
    }

    /// Damage in any byte of a log of version 3 hides the last entry, or is reported.
    #[test]
    fn a_lost_entry_is_found_by_the_one_after_it() {
        let (log, starts) = four(1);
        for at in (0..log.len()).step_by(7) {
            let mut log = log.clone();
            log[at] ^= 0x40;
            let place = starts.iter().rposition(|&start| start <= at).unwrap();
            let found = scanned(1, 3, &log).map(|log| (log.entries.len(), log.used, log.damaged));
            let expected = match place {
                4 => Ok((4, starts[4], vec![])),
                3 => Ok((3, starts[3], vec![])),
                _ => Err(LostEntry { number: 3 + place as u64, at: starts[place] }),
            };
            assert_eq!(found, expected, "byte {at}");
        }
    }

    /// Damage in any byte of one copy loses no entry; in both copies, it is as above.
    #[test]
    fn a_second_copy_replaces_a_damaged_one() {
        let (log, starts) = four(2);
        let whole = scanned(2, 3, &log).unwrap();
        assert!(whole.damaged.is_empty() && !whole.is_torn && whole.used == starts[4]);
        for at in (0..starts[4]).step_by(7) {
            let mut log = log.clone();
            log[at] ^= 0x40;
            let place = starts.iter().rposition(|&start| start <= at).unwrap();
            let len = (starts[place + 1] - starts[place]) / 2;
            let copy = 1 + u32::from(at >= starts[place] + len);
            let damaged = if place == 3 { vec![] } else { vec![(3 + place as u64, copy)] };
            let found = scanned(2, 3, &log).unwrap();
            assert!(found.entries == whole.entries && found.used == starts[4], "byte {at}");
            assert_eq!(found.damaged, damaged, "byte {at}");
            assert!(!found.is_torn);
            let other = if copy == 1 { starts[place] + len } else { starts[place] };
            log[other + at % len] ^= 1;
            match scanned(2, 3, &log) {
                Ok(found) => assert!(place == 3 && found.entries.len() == 3, "byte {at}"),
                Err(lost) => {
                    let (number, at) = (3 + place as u64, starts[place]);
                    assert!(place < 3 && lost == LostEntry { number, at });
                }
            }
        }
    }

    #[test]
    fn an_entry_whose_end_is_missing_is_torn() {
        let mut log = [entry(7, 1), entry(8, 1)].concat();
        let second = 2 * UNIT;
        log[second + SECTOR..3 * UNIT].fill(0xA5);
        assert_eq!(numbers(&log, 7), Ok(vec![7, 8]), "its second copy is whole");
        log[3 * UNIT + SECTOR..].fill(0xA5);
        let of_two = |log: &[u8]| {
            let found = scanned(2, 7, log).unwrap();
            (found.entries.len(), found.used, found.is_torn)
        };
        assert_eq!(of_two(&log), (1, second, true));
        log[second..3 * UNIT].fill(0);
        assert_eq!(of_two(&log), (1, second, true), "the beginning of its second copy");
        // What an earlier use of the log left there has a lower number.
        assert!(!scanned(2, 9, &log).unwrap().is_torn);
        log[second..].fill(0);
        assert_eq!(of_two(&log), (1, second, false));
    }

    #[test]
    fn heads_come_back_and_no_flipped_byte_passes() {
        let mut sector = encode_head(IDENTITY, 12);
        assert_eq!(decode_head(IDENTITY, &sector), Some(12));
        assert_eq!(decode_head(78, &sector), None, "another file");
        for at in 0..SECTOR {
            sector[at] ^= 1;
            assert_eq!(decode_head(IDENTITY, &sector), None, "byte {at}");
            sector[at] ^= 1;
        }
    }
}
