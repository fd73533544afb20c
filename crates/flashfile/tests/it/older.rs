//! Files of versions 1 to 3, made by an encoder of those formats, are converted when they are
//! opened for writing, and read as they are otherwise.

use std::fs;

use prism_base::Rng;
use prism_flash::{Medium, MediumError, PageState};
use prism_flashfile::{FlashFile, FlashFileError, Settings, SimulatedFile, VERSION};
use prism_testkit::seeds;
use twox_hash::{XxHash3_64, XxHash64};

const IDENTITY: u64 = 0x0123_4567_89ab_cdef;
/// Number of the last sync of an older file.
const SEQUENCE: u64 = 500;
/// Where its page headers and its data begin, and its length.
const HEADERS: usize = 16_384;
const DATA: usize = 20_480;
const LEN: usize = DATA + 15 * 512;
/// Of five blocks of three pages of 512 bytes: erases, pages programmed, flags (1 finished).
const BLOCKS: [(u32, u16, u16); 5] = [(7, 3, 0), (1, 2, 0), (4, 1, 1), (9, 0, 0), (0, 0, 0)];

/// Where the journal of version 3 begins, its log, and the end of the file.
const HEADS: usize = 28_672;
const LOG: usize = HEADS + 2 * 4096;
const END: usize = LOG + (1 << 20) + 2 * 4096;

fn put(bytes: &mut [u8], at: usize, part: &[u8]) {
    bytes[at..at + part.len()].copy_from_slice(part);
}

/// The content of a page.
fn page(block: usize, page: usize) -> [u8; 512] {
    [(16 * block + page + 1) as u8; 512]
}

fn record((erases, programmed, flags): (u32, u16, u16)) -> Vec<u8> {
    let (programmed, flags) = (programmed.to_le_bytes(), flags.to_le_bytes());
    [&erases.to_le_bytes()[..], &programmed[..], &flags[..]].concat()
}

/// The header of a page.
fn header(version: u32, block: usize, number: usize) -> [u8; 64] {
    let (mut bytes, data) = ([0; 64], page(block, number));
    let hash = match version {
        1 => XxHash64::oneshot(IDENTITY, &data),
        _ => XxHash3_64::oneshot_with_seed(IDENTITY, &data),
    };
    put(&mut bytes, 8, &BLOCKS[block].0.to_le_bytes());
    put(&mut bytes, 16, &hash.to_le_bytes());
    put(&mut bytes, 24, b"outofband");
    let seed = IDENTITY ^ (3 * block + number) as u64;
    let hash = XxHash64::oneshot(seed, &bytes[8..]);
    put(&mut bytes, 0, &hash.to_le_bytes());
    bytes
}

/// A file of an older version. Of version 3, its process was killed: the journal has pages of block
/// 1, and an erase of block 3.
fn older_file(version: u32) -> Vec<u8> {
    let mut bytes = vec![0; if version == 3 { END } else { LEN }];
    for superblock in [0, 4096] {
        put(&mut bytes, superblock, b"PRISMFLS");
        put(&mut bytes, superblock + 8, &version.to_le_bytes());
        put(&mut bytes, superblock + 12, if version == 3 { b"\x02" } else { b"\0" });
        put(&mut bytes, superblock + 16, &IDENTITY.to_le_bytes());
        for (index, number) in [1u32, 1, 5, 3, 512, 9, 0].into_iter().enumerate() {
            put(&mut bytes, superblock + 24 + 4 * index, &number.to_le_bytes());
        }
        let hash = XxHash64::oneshot(0, &bytes[superblock..superblock + 504]);
        put(&mut bytes, superblock + 504, &hash.to_le_bytes());
    }
    for records in [8192, 12_288] {
        put(&mut bytes, records + 8, &SEQUENCE.to_le_bytes());
        for (block, content) in BLOCKS.into_iter().enumerate() {
            let content = match (version, block) {
                (3, 1) => (1, 0, 0),
                (3, 3) => (8, 2, 0),
                _ => content,
            };
            put(&mut bytes, records + 24 + 8 * block, &record(content));
        }
        let hash = XxHash64::oneshot(IDENTITY, &bytes[records + 8..records + 512]);
        put(&mut bytes, records, &hash.to_le_bytes());
    }
    for (block, (_, programmed, _)) in BLOCKS.into_iter().enumerate() {
        for number in 0..usize::from(programmed) {
            if (version, block) != (3, 1) {
                let at = HEADERS + 512 * block + 64 * number;
                put(&mut bytes, at, &header(version, block, number));
            }
            put(&mut bytes, DATA + 512 * (3 * block + number), &page(block, number));
        }
    }
    if version == 3 {
        put_journal(&mut bytes);
    }
    bytes
}

/// A journal of version 3, of two entries.
fn put_journal(bytes: &mut [u8]) {
    for head in [HEADS, HEADS + 4096] {
        put(bytes, head + 8, b"PRISMJNL");
        put(bytes, head + 16, &(SEQUENCE + 1).to_le_bytes());
        let hash = XxHash3_64::oneshot_with_seed(IDENTITY, &bytes[head + 8..head + 512]);
        put(bytes, head, &hash.to_le_bytes());
    }
    for (number, programmed) in [(0, 1), (1, 2)] {
        let mut entry = vec![0; 4096];
        put(&mut entry, 8, b"PRISMENT");
        put(&mut entry, 16, &(SEQUENCE + 1 + number as u64).to_le_bytes());
        put(&mut entry, 24, &4096u64.to_le_bytes());
        put(&mut entry, 32, &2u32.to_le_bytes());
        put(&mut entry, 36, &1u32.to_le_bytes());
        for (index, block, content) in [(0, 1u32, (1, programmed, 0)), (1, 3, BLOCKS[3])] {
            put(&mut entry, 40 + 12 * index, &block.to_le_bytes());
            put(&mut entry, 44 + 12 * index, &record(content));
        }
        put(&mut entry, 64, &(3 + number as u32).to_le_bytes());
        put(&mut entry, 68, &header(3, 1, number));
        let hash = XxHash3_64::oneshot_with_seed(IDENTITY, &entry[8..]);
        put(&mut entry, 0, &hash.to_le_bytes());
        put(bytes, LOG + 4096 * number, &entry);
    }
}

fn check_contents(device: &mut FlashFile, context: &str) {
    for (block, (erases, programmed, flags)) in (0u32..).zip(BLOCKS) {
        let state = (device.erase_count(block), device.write_pointer(block));
        assert_eq!(state, (Some(erases), programmed.into()), "{context}");
        let open = (1..3).contains(&programmed) && flags == 0;
        assert_eq!(device.is_open(block), open, "{context}");
        for number in 0..u32::from(programmed) {
            let mut read = ([0; 512], [0; 9]);
            let state = device.read(block, number, 0, &mut read.0, &mut read.1);
            assert_eq!(state, Ok(PageState::Written), "{context}");
            let expected = (page(block as usize, number as usize), *b"outofband");
            assert!(read == expected, "{context}: page {number} of block {block}");
        }
    }
    let report = device.check(&mut |_, _| {}).unwrap();
    assert!(report.is_whole() && report.pages == 6, "{context}: {report:?}");
}

#[test]
fn older_files_are_converted_and_keep_their_hash() {
    for version in [1, 2, 3] {
        let file = SimulatedFile::from(older_file(version));
        let mut device = FlashFile::open_simulated(&file).unwrap();
        assert_eq!((device.version(), device.identity()), (VERSION, IDENTITY));
        check_contents(&mut device, "converted");
        device.program(1, 2, &[99; 512], b"new").unwrap();
        device.erase(0).unwrap();
        device.close().unwrap();
        let bytes = file.bytes();
        assert!(bytes.len() > LEN + (1 << 20), "it has a journal");
        // The page header of page 2 of block 1: 16 bytes, then the hash of its one chunk.
        let at = HEADERS + 512 + 2 * 64 + 16;
        let hash = match version {
            1 => XxHash64::oneshot(IDENTITY, &[99; 512]),
            _ => XxHash3_64::oneshot_with_seed(IDENTITY, &[99; 512]),
        };
        assert_eq!(bytes[at..at + 8], hash.to_le_bytes(), "data is hashed as before");
        let device = FlashFile::open_simulated(&file).unwrap();
        let mut data = [0; 512];
        assert_eq!(device.read(1, 2, 0, &mut data, &mut []), Ok(PageState::Written));
        assert_eq!((data, device.write_pointer(0)), ([99; 512], 0));
    }
}

/// Power fails in each operation of the conversion, and again in that of the next one.
#[test]
fn random_cuts_of_a_conversion() {
    for seed in seeds(0..60) {
        let mut rng = Rng::stream(seed, "conversion");
        let version = 1 + rng.below(3) as u32;
        for operations in 0.. {
            let file = SimulatedFile::from(older_file(version));
            file.cut_power_after(operations);
            let opened = FlashFile::open_simulated(&file);
            let done = !file.lost_power();
            assert!(opened.is_ok() || !done, "seed {seed}: {opened:?}");
            file.restart(&mut rng);
            file.cut_power_after(rng.below(12));
            drop(FlashFile::open_simulated(&file));
            file.restart(&mut rng);
            let mut device = FlashFile::open_simulated(&file).unwrap();
            check_contents(&mut device, &format!("seed {seed}, {operations} operations"));
            device.erase(0).unwrap();
            device.sync().unwrap();
            // Both superblocks are of the new version by now: an old one would hide the journal.
            let mut bytes = file.bytes();
            bytes[rng.below(2) as usize * 4096 + 8] ^= 0xFF;
            let device = FlashFile::open_simulated(&SimulatedFile::from(bytes)).unwrap();
            assert_eq!((device.write_pointer(0), device.damage().len()), (0, 1));
            if done {
                break;
            }
        }
    }
}

#[test]
fn an_older_file_without_space_for_a_journal_stays_as_it_is() {
    let bytes = older_file(2);
    for left in 0..3 {
        let file = SimulatedFile::from(bytes.clone());
        file.fill_up_after(left);
        let said = FlashFile::open_simulated(&file).unwrap_err().to_string();
        assert!(said.contains("the disk is full (converting it)"), "{said}");
        assert!(file.bytes() == bytes, "its length as well");
        file.kill();
        check_contents(&mut FlashFile::open_simulated(&file).unwrap(), "with space");
    }
}

#[test]
fn a_reader_converts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flash");
    for version in [1, 2, 3] {
        let bytes = older_file(version);
        fs::write(&path, &bytes).unwrap();
        let mut device = FlashFile::open_with(&path, Settings::READ_ONLY).unwrap();
        assert_eq!(device.version(), version);
        check_contents(&mut device, "for reading");
        let refused = device.erase(0);
        assert!(matches!(refused, Err(MediumError::ReadOnly { .. })), "{refused:?}");
        drop(device);
        assert!(fs::read(&path).unwrap() == bytes);
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        let error = FlashFile::open_with(&path, Settings::READ_ONLY).unwrap_err();
        let FlashFileError::Truncated { wanted, .. } = error else { panic!("{error}") };
        assert_eq!(wanted, bytes.len() as u64);
    }
}

/// The journal of version 3 has each entry once.
#[test]
fn a_damaged_entry_of_version_3_is_reported() {
    let bytes = older_file(3);
    for at in (0..4096).step_by(37) {
        let mut damaged = bytes.clone();
        damaged[LOG + at] ^= 1;
        let error = FlashFile::open_simulated(&SimulatedFile::from(damaged)).unwrap_err();
        let text = format!("entry 501 of the journal, at byte {LOG}, is damaged");
        assert!(error.to_string().contains(&text), "byte {at}: {error}");
    }
    // One page that cannot be read may be an entry whose sync has returned.
    for at in [LOG, LOG + 4096, LOG + 2 * 4096] {
        let file = SimulatedFile::from(bytes.clone());
        file.make_unreadable(at as u64);
        let error = FlashFile::open_simulated(&file).unwrap_err().to_string();
        let texts =
            [format!("entry 501 of the journal, at byte {LOG}"), "reading the journal".into()];
        assert!(error.contains(&texts[usize::from(at > LOG)]), "{error}");
    }
    let mut damaged = bytes;
    damaged[LOG + 4096 + 50] ^= 1;
    let device = FlashFile::open_simulated(&SimulatedFile::from(damaged)).unwrap();
    assert_eq!((device.version(), device.write_pointer(1)), (VERSION, 1), "as a torn sync");
}
