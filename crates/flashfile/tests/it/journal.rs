//! The journal: what a sync costs, which entry counts after a crash, and damage in it.

use std::fs;

use prism_flash::{DeviceGeometry, Medium, MediumError, PageState};
use prism_flashfile::{FlashFile, FlashFileError, Settings, SimulatedFile};
use prism_testkit::all_seeds;

/// Five blocks of three pages. Header of 64 bytes; a log of 1 MiB and 8 KiB at the end.
const GEOMETRY: DeviceGeometry = DeviceGeometry {
    channels: 1,
    luns_per_channel: 1,
    blocks_per_lun: 5,
    pages_per_block: 3,
    page_size: 512,
    oob_size: 9,
    max_open_blocks: None,
};

/// Where the data begins, and the journal: its two heads, then the log.
const DATA: usize = 20_480;
const HEADS: usize = 28_672;
const LOG: usize = HEADS + 2 * 4096;
/// Bytes of a copy of an entry of few pages, and of both.
const COPY: usize = 4096;
const ENTRY: usize = 2 * COPY;

fn page_at(block: usize, page: usize) -> usize {
    DATA + 512 * (3 * block + page)
}

fn program(device: &mut FlashFile, block: u32, byte: u8) {
    let page = device.write_pointer(block);
    device.program(block, page, &[byte; 512], &[byte; 9]).unwrap();
}

/// The first byte of each page of a block.
fn pages(device: &mut FlashFile, block: u32) -> Vec<u8> {
    let programmed = device.write_pointer(block);
    let read = |page| {
        let (mut data, mut oob) = ([0; 512], [0; 9]);
        let state = device.read(block, page, 0, &mut data, &mut oob).unwrap();
        assert_eq!(state, PageState::Written);
        assert_eq!((data, oob), ([data[0]; 512], [data[0]; 9]));
        data[0]
    };
    (0..programmed).map(read).collect()
}

/// The first bytes of all pages, by block.
fn contents(device: &mut FlashFile) -> Vec<Vec<u8>> {
    (0..5).map(|block| pages(device, block)).collect()
}

fn reopen(bytes: &[u8]) -> Result<FlashFile, FlashFileError> {
    FlashFile::open_simulated(&SimulatedFile::from(bytes.to_vec()))
}

/// A file after four syncs, whose process was killed, and the contents at each sync from the first
/// on. Block 1 is erased and written again, block 0 erased.
fn killed() -> (SimulatedFile, Vec<Vec<Vec<u8>>>) {
    let file = SimulatedFile::new();
    let mut device = FlashFile::create_simulated(&file, GEOMETRY).unwrap();
    let mut states = vec![contents(&mut device)];
    // Programs of blocks 0 to 2, and a block to erase after them.
    for (programs, erased) in [([1, 2, 0], 3), ([3, 0, 0], 1), ([0, 4, 5], 3), ([0, 0, 6], 0)] {
        for (block, byte) in (0..).zip(programs).filter(|&(_, byte)| byte > 0) {
            program(&mut device, block, byte);
        }
        device.erase(erased).unwrap();
        device.sync().unwrap();
        states.push(contents(&mut device));
    }
    file.kill();
    (file, states)
}

#[test]
fn a_sync_costs_one_sync_of_the_disk_and_an_erase_none() {
    let file = SimulatedFile::new();
    let mut device = FlashFile::create_simulated(&file, GEOMETRY).unwrap();
    let costs = |device: &mut FlashFile, does: &dyn Fn(&mut FlashFile)| {
        let before = (file.syncs(), file.operations());
        does(device);
        (file.syncs() - before.0, file.operations() - before.1)
    };
    let sync = |device: &mut FlashFile| device.sync().unwrap();
    assert_eq!(costs(&mut device, &|device| program(device, 0, 1)), (0, 1));
    assert_eq!(costs(&mut device, &sync), (1, 2), "an entry and its sync");
    assert_eq!(costs(&mut device, &sync), (0, 0), "nothing to do");
    for block in 0..4 {
        assert_eq!(costs(&mut device, &|device| device.erase(block).unwrap()), (0, 0));
    }
    assert_eq!([0, 1].map(|block| device.erase_is_durable(block)), [false, true]);
    assert_eq!(costs(&mut device, &|device| program(device, 1, 2)), (0, 1), "it held nothing");
    assert_eq!(costs(&mut device, &|device| program(device, 0, 3)), (1, 3), "after a sync");
    assert!(device.erase_is_durable(0) && device.syncs_as_a_whole());
    assert_eq!(costs(&mut device, &|device| device.finish(0).unwrap()), (0, 0));
    assert_eq!(costs(&mut device, &sync), (1, 2));
    // Closing empties the journal: header, two copies of the records, sync, two heads, sync.
    let before = file.syncs();
    device.close().unwrap();
    assert_eq!(file.syncs() - before, 2);
    let before = file.operations();
    FlashFile::open_simulated(&file).unwrap().close().unwrap();
    assert_eq!(file.operations() - before, 1, "opening syncs; there is nothing else to write");
}

#[test]
fn checkpoints_come_when_the_log_is_full() {
    let file = SimulatedFile::new();
    let device = FlashFile::create_simulated(&file, GEOMETRY).unwrap();
    let log = (1 << 20) / ENTRY as u64 + 1;
    let before = file.syncs();
    for sync in 1..=3 * log {
        device.erase((sync % 5) as u32).unwrap();
        device.sync().unwrap();
        assert_eq!(file.syncs() - before, sync + (sync - 1) / log * 2, "sync {sync}");
    }
    file.kill();
    let device = FlashFile::open_simulated(&file).unwrap();
    let erases: u32 = (0..5).map(|block| device.erase_count(block).unwrap()).sum();
    assert_eq!(u64::from(erases), 3 * log);
}

/// A sync of more page headers than an entry takes writes them to their own places first.
#[test]
fn a_large_sync_costs_two_syncs_of_the_disk() {
    let file = SimulatedFile::new();
    file.limit_journal(24 << 10);
    let geometry = DeviceGeometry { pages_per_block: 40, ..GEOMETRY };
    let mut device = FlashFile::create_simulated(&file, geometry).unwrap();
    // An entry takes at most 6 KiB of headers of 68 bytes. The last one finds the log full.
    for (pages, syncs) in [(90, 1), (91, 2), (1, 3)] {
        let before = file.syncs();
        for _ in 0..pages {
            let block = (0..5).find(|&block| device.write_pointer(block) < 40).unwrap();
            program(&mut device, block, pages);
        }
        device.sync().unwrap();
        assert_eq!(file.syncs() - before, syncs, "{pages} pages");
    }
    file.kill();
    let mut device = FlashFile::open_simulated(&file).unwrap();
    let found: Vec<u8> = (0..5).flat_map(|block| pages(&mut device, block)).collect();
    assert_eq!(found, [vec![90; 90], vec![91; 91], vec![1]].concat());
}

/// Old headers in the log, of a block that was erased since and written by a large sync, are not
/// replayed over the new ones.
#[test]
fn a_large_sync_after_entries_with_the_same_pages() {
    let file = SimulatedFile::new();
    file.limit_journal(64 << 10);
    let geometry = DeviceGeometry { pages_per_block: 300, ..GEOMETRY };
    let mut device = FlashFile::create_simulated(&file, geometry).unwrap();
    program(&mut device, 0, 1);
    device.sync().unwrap();
    device.erase(0).unwrap();
    device.sync().unwrap();
    (0..300).for_each(|_| program(&mut device, 0, 2));
    device.sync().unwrap();
    file.kill();
    let mut device = FlashFile::open_simulated(&file).unwrap();
    assert_eq!(pages(&mut device, 0), [2; 300]);
}

/// A page of the last entry that is not there: the whole sync is dropped, and does not come back
/// when its pages are written again, with other bytes or the same.
#[test]
fn a_dropped_entry_stays_dropped() {
    for case in 0..8 {
        // The first entry of the log or the second, other bytes or the same, with a sync or not.
        let (first, again, syncs) = (case & 1 != 0, 5 + (case & 2), case & 4 != 0);
        let file = SimulatedFile::new();
        let mut device = FlashFile::create_simulated(&file, GEOMETRY).unwrap();
        program(&mut device, 0, 1);
        program(&mut device, 1, 2);
        device.sync().unwrap();
        if first {
            device.close().unwrap();
            device = FlashFile::open_simulated(&file).unwrap();
        }
        device.erase(1).unwrap();
        program(&mut device, 0, 5);
        program(&mut device, 2, 6);
        device.sync().unwrap();
        file.kill();
        let mut bytes = file.bytes();
        bytes[page_at(0, 1)] ^= 1;
        let file = SimulatedFile::from(bytes);
        let mut device = FlashFile::open_simulated(&file).unwrap();
        let mut expected = vec![vec![1], vec![2], vec![], vec![], vec![]];
        assert_eq!(contents(&mut device), expected, "as at the first sync");
        assert!(device.damage().is_empty());
        program(&mut device, 0, again);
        if syncs {
            device.sync().unwrap();
            expected[0].push(again);
        }
        file.kill();
        let mut device = FlashFile::open_simulated(&file).unwrap();
        assert_eq!(contents(&mut device), expected, "case {case}");
        assert!(device.check(&mut |_, _| {}).unwrap().is_whole());
        device.close().unwrap();
        assert_eq!(contents(&mut FlashFile::open_simulated(&file).unwrap()), expected);
    }
}

/// Each byte of the journal, in `make test-fast` every ninth: nothing is lost, and damage is
/// reported but for that of the last entry, of which a loss of power may have torn a copy.
#[test]
fn a_flipped_byte_of_a_journal_in_use() {
    let (file, states) = killed();
    let bytes = file.bytes();
    let mut device = reopen(&bytes).unwrap();
    assert_eq!(contents(&mut device), states[4]);
    assert!(device.damage().is_empty());
    drop(device);
    // Of the zeros after what heads and entries hold, some.
    let bytes_of = |at: &usize| at % COPY < 512 || at.is_multiple_of(29);
    let step = if all_seeds() { 1 } else { 9 };
    for at in (HEADS..LOG + 5 * ENTRY).filter(bytes_of).step_by(step) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        let mut device = reopen(&flipped).unwrap();
        assert_eq!(contents(&mut device), states[4], "byte {at}");
        let expected = match at.checked_sub(LOG) {
            None if at % COPY < 512 => {
                let copy = 1 + (at - HEADS) / COPY;
                Some(format!("copy {copy} of the head of the journal is damaged"))
            }
            Some(at) if at < 3 * ENTRY => {
                let (number, copy) = (1 + at / ENTRY, 1 + at % ENTRY / COPY);
                Some(format!("entry {number} of the journal: copy {copy} is damaged"))
            }
            _ => None,
        };
        let damage = expected.iter().map(|text| format!("{text}; the other is whole"));
        let damage: Vec<String> = damage.collect();
        assert_eq!(device.damage(), damage, "byte {at}");
        let report = device.check(&mut |_, _| {}).unwrap();
        // Zeros between the heads are not written again.
        assert!(at < LOG && at % COPY >= 512 || report.other == damage, "byte {at}");
        drop(device);
    }
}

/// Both copies of an entry: reported, or the last sync is dropped as a whole.
#[test]
fn damage_in_both_copies_of_an_entry() {
    let (file, states) = killed();
    let bytes = file.bytes();
    for entry in 0..4 {
        for (one, two) in [(0, 0), (30, 45), (200, 20), (20, 4000)] {
            let mut damaged = bytes.clone();
            let at = LOG + entry * ENTRY;
            damaged[at + one] ^= 4;
            damaged[at + COPY + two] ^= 4;
            match reopen(&damaged) {
                Ok(mut device) => {
                    assert!(entry == 3 && contents(&mut device) == states[3]);
                }
                Err(error) => {
                    let number = entry + 1;
                    let text = format!("entry {number} of the journal, at byte {at}, is damaged");
                    assert!(entry < 3 && error.to_string().contains(&text), "{error}");
                }
            }
        }
    }
}

/// Damage in both heads is refused.
#[test]
fn damage_in_both_heads_is_refused() {
    let mut bytes = killed().0.bytes();
    (bytes[HEADS + 3], bytes[HEADS + 4096 + 20]) = (1, 1);
    let said = reopen(&bytes).unwrap_err().to_string();
    assert!(said.contains("the head of the journal is damaged in both copies"), "{said}");
    assert!(said.contains("at byte 28672"), "{said}");
}

/// Records that are newer than the journal prove that its last entry was durable: if both copies
/// of that are damaged, or a page that it names, this is no torn sync.
#[test]
fn damage_of_the_last_entry_that_a_checkpoint_has_written_is_reported() {
    let (file, states) = killed();
    // Opening begins its checkpoint: two page headers or more, then the records, then it dies.
    let mut seen = 0;
    for operations in 1..10 {
        let file = SimulatedFile::from(file.bytes());
        file.cut_power_after(operations);
        if FlashFile::open_simulated(&file).is_ok() {
            break;
        }
        file.kill();
        let mut bytes = file.bytes();
        assert_eq!(contents(&mut reopen(&bytes).unwrap()), states[4], "repeated");
        let last = LOG + 3 * ENTRY;
        let (ours, page) = (last + 50, page_at(2, 1));
        bytes[page] ^= 1;
        let device = reopen(&bytes).unwrap();
        let is_dropped = device.write_pointer(2) == 1;
        let read = device.read(2, 1, 0, &mut [0; 512], &mut []);
        let is_reported = matches!(read, Err(MediumError::Damaged { .. }));
        assert!(is_dropped || is_reported && device.write_pointer(0) == 0, "{read:?}");
        bytes[page] ^= 1;
        bytes[ours] ^= 1;
        assert_eq!(contents(&mut reopen(&bytes).unwrap()), states[4], "by its second copy");
        bytes[ours + COPY] ^= 1;
        match reopen(&bytes) {
            Ok(mut device) => {
                let found = contents(&mut device);
                assert!(found == states[3] || seen > 0 && found == states[4], "{operations}");
            }
            Err(error) => {
                let FlashFileError::Journal { entry: 4, at, .. } = error else { panic!("{error}") };
                assert_eq!(at as usize, last);
                assert!(is_reported, "both prove that the entry was durable");
                seen += 1;
            }
        }
    }
    assert!(seen > 2, "{seen}");
}

/// The beginning of another entry shows that the sync of the last one has returned: a damaged page
/// that it names is reported, and its sync not dropped.
#[test]
fn a_damaged_page_of_an_entry_before_a_torn_one() {
    let file = SimulatedFile::new();
    let mut device = FlashFile::create_simulated(&file, GEOMETRY).unwrap();
    program(&mut device, 0, 1);
    program(&mut device, 1, 2);
    device.sync().unwrap();
    device.erase(3).unwrap();
    device.sync().unwrap();
    file.kill();
    let mut bytes = file.bytes();
    bytes[LOG + ENTRY + 512..LOG + ENTRY + COPY].fill(7);
    bytes[LOG + ENTRY + COPY..LOG + 2 * ENTRY].fill(0);
    bytes[page_at(0, 0)] ^= 1;
    let mut device = reopen(&bytes).unwrap();
    assert_eq!((device.write_pointer(0), pages(&mut device, 1)), (1, vec![2]));
    let read = device.read(0, 0, 0, &mut [0; 512], &mut []);
    assert!(matches!(read, Err(MediumError::Damaged { .. })), "{read:?}");
}

/// A sector hides that an entry is torn: its number is not used again, so that no part of the next
/// one makes it whole.
#[test]
fn an_entry_that_may_be_torn_is_skipped() {
    let file = SimulatedFile::new();
    let device = FlashFile::create_simulated(&file, GEOMETRY).unwrap();
    device.erase(0).unwrap();
    device.sync().unwrap();
    file.kill();
    // The sync was in flight: a sector of the first copy is of an older use of the log, and the
    // second copy was not written.
    let mut torn = file.bytes();
    let sector = LOG + 5 * 512..LOG + 6 * 512;
    torn[sector.clone()].fill(0xA5);
    torn[LOG + COPY..LOG + ENTRY].fill(0);
    for is_readable in [true, false] {
        let file = SimulatedFile::from(torn.clone());
        if !is_readable {
            file.make_unreadable(sector.start as u64);
        }
        let device = FlashFile::open_simulated(&file).unwrap();
        assert_eq!(device.erase_count(0), Some(0));
        device.erase(3).unwrap();
        device.sync().unwrap();
        file.kill();
        // Of that sync only this sector reached the disk.
        let (mut bytes, after) = (torn.clone(), file.bytes());
        for part in [HEADS..LOG, sector.clone()] {
            bytes[part.clone()].copy_from_slice(&after[part]);
        }
        let device = reopen(&bytes).unwrap();
        assert_eq!((device.erase_count(0), device.erase_count(3)), (Some(0), Some(0)));
    }
}

/// A reader of a file that was not closed replays the journal in memory.
#[test]
fn a_reader_replays_the_journal_and_writes_nothing() {
    let (file, states) = killed();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flash");
    fs::write(&path, file.bytes()).unwrap();
    let mut device = FlashFile::open_with(&path, Settings::READ_ONLY).unwrap();
    assert_eq!(contents(&mut device), states[4]);
    assert!(device.check(&mut |_, _| {}).unwrap().is_whole());
    assert_eq!(device.sync(), Ok(()));
    device.close().unwrap();
    assert!(fs::read(&path).unwrap() == file.bytes());
    let mut device = FlashFile::open(&path).unwrap();
    assert_eq!(contents(&mut device), states[4]);
    drop(device);
    assert!(fs::read(&path).unwrap() != file.bytes(), "the journal was emptied");
}

/// Opening has no space for page headers: what was synced can be read, and nothing is lost.
#[test]
fn a_journal_that_cannot_be_emptied_is_read() {
    let (file, states) = killed();
    for left in 0..8 {
        let file = SimulatedFile::from(file.bytes());
        file.fill_up_after(left);
        let mut device = FlashFile::open_simulated(&file).unwrap();
        assert_eq!(contents(&mut device), states[4], "{left} writes");
        let Some(why) = device.refusal() else { continue };
        assert!(why.contains("the disk is full") && why.contains("open it again"), "{why}");
        assert!(matches!(device.erase(0), Err(MediumError::ReadOnly { .. })));
        assert_eq!(device.close(), Ok(()), "nothing is missing");
        file.kill();
        let mut device = FlashFile::open_simulated(&file).unwrap();
        assert_eq!((contents(&mut device), device.refusal()), (states[4].clone(), None));
    }
}
