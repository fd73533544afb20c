//! Entries, heads and logs, whole and damaged.

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
        let found = scanned(1, 3, &log).map(|log| (log.entries.len(), log.used, log.broken.len()));
        let expected = match place {
            4 => Ok((4, starts[4], 0)),
            3 => Ok((3, starts[3], 0)),
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
    assert!(whole.broken.is_empty() && !whole.is_torn && whole.used == starts[4]);
    for at in (0..starts[4]).step_by(7) {
        let mut log = log.clone();
        log[at] ^= 0x40;
        let place = starts.iter().rposition(|&start| start <= at).unwrap();
        let len = (starts[place + 1] - starts[place]) / 2;
        let copy = 1 + u32::from(at >= starts[place] + len);
        let found = scanned(2, 3, &log).unwrap();
        assert!(found.entries == whole.entries && found.used == starts[4], "byte {at}");
        assert!(!found.is_torn);
        let [broken] = &found.broken[..] else { panic!("byte {at}: {:?}", found.broken) };
        assert_eq!((broken.number, broken.copy), (3 + place as u64, copy), "byte {at}");
        log[broken.at..broken.at + broken.bytes.len()].copy_from_slice(&broken.bytes);
        assert_eq!(scanned(2, 3, &log).as_ref(), Ok(&whole), "byte {at}");
        log[at] ^= 0x40;
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

/// A copy is not the second one of an entry that begins elsewhere, and both have to be in the log.
#[test]
fn a_copy_has_the_distance_of_its_length() {
    let one = &entry(7, 1)[..UNIT];
    for before in 0..4 {
        let log = [&vec![0; before * UNIT][..], one, &[0; UNIT]].concat();
        let found = scanned(2, 7, &log).unwrap();
        let expected = usize::from(before < 2);
        assert_eq!((found.entries.len(), found.is_torn), (expected, before >= 2), "{before}");
    }
    let found = scanned(2, 7, one).unwrap();
    assert!(found.entries.is_empty() && found.is_torn, "there is no place for a second one");
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
