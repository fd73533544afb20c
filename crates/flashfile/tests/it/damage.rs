//! Damaged files and their errors; a process that is killed.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use prism_flash::{DeviceGeometry, Medium, MediumError, PageState};
use prism_flashfile::{EngineChoice, FlashFile, FlashFileError, Settings, SimulatedFile};
use prism_testkit::all_seeds;

const GEOMETRY: DeviceGeometry = DeviceGeometry {
    channels: 1,
    luns_per_channel: 1,
    blocks_per_lun: 5,
    pages_per_block: 3,
    page_size: 512,
    oob_size: 9,
    max_open_blocks: None,
};

/// Blocks 0 to 3 are used: full, partly written, finished, erased again.
fn fill(device: &mut FlashFile) {
    let page_size = device.geometry().page_size as usize;
    for (block, pages) in [(0, 3), (1, 2), (2, 1), (3, 3)] {
        for page in 0..pages {
            device
                .program(block, page, &vec![(16 * block + page) as u8; page_size], b"out")
                .unwrap();
        }
    }
    device.finish(2).unwrap();
    device.erase(3).unwrap();
    device.sync().unwrap();
}

/// The content of a page, with its out-of-band bytes.
type Content = (PageState, Vec<u8>, Vec<u8>);

/// Everything that the device returns, `None` for a damaged page.
fn contents(device: &mut FlashFile) -> Vec<Option<Content>> {
    let pages = (0..5).flat_map(|block| (0..3).map(move |page| (block, page)));
    let read = |(block, page)| {
        let mut buffers = (vec![0; 512], vec![0; 9]);
        let state = device.read(block, page, 0, &mut buffers.0, &mut buffers.1);
        assert!(matches!(state, Ok(_) | Err(MediumError::Damaged { .. })), "{state:?}");
        state.ok().map(|state| (state, buffers.0, buffers.1))
    };
    pages.map(read).collect()
}

/// Each byte of a file in turn, in `make test-fast` every ninth: damaged data is never returned,
/// and undetected changes have no effect. Of the log, only the used part: closing has emptied it.
#[test]
fn every_flipped_byte_is_detected_or_harmless() {
    let file = SimulatedFile::new();
    let mut device = FlashFile::create_simulated(&file, GEOMETRY).unwrap();
    fill(&mut device);
    let right = contents(&mut device);
    device.close().unwrap();
    let bytes = file.bytes();
    let (mut found, mut healed, mut unseen) = (0, 0, 0);
    // Superblocks, records, page headers and data, the heads of the journal, its one entry.
    let end = 28_672 + 2 * 4096 + 4096;
    for at in (0..end).step_by(if all_seeds() { 1 } else { 9 }) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        let file = SimulatedFile::from(flipped);
        let mut device = FlashFile::open_simulated(&file).expect("a second copy of all it needs");
        let report = device.check(&mut |_, _| {}).unwrap();
        let read = contents(&mut device);
        let wrong = read.iter().zip(&right).filter(|(read, right)| read != right);
        let (missing, wrong): (Vec<_>, Vec<_>) = wrong.partition(|(read, _)| read.is_none());
        assert!(wrong.is_empty(), "byte {at}: {wrong:?}");
        assert_eq!(missing.len() as u64, report.damaged_pages, "byte {at}");
        if !device.damage().is_empty() {
            healed += 1;
            drop(device);
            assert!(file.bytes() == bytes, "byte {at}: both copies are equal again");
        } else if report.is_whole() {
            unseen += 1;
        } else {
            found += 1;
        }
    }
    if !all_seeds() {
        assert!(found > 0 && healed > 0 && unseen > 0, "{found}, {healed}, {unseen}");
        return;
    }
    // Both superblocks, both copies of the records, both heads: a sector each, whatever byte.
    assert_eq!(healed, 6 * 512);
    // Unused bytes: data and page headers of erased pages, and the log.
    let erased = 15 - 6;
    assert_eq!(unseen, erased * (512 + 64) + 4096);
    assert_eq!(found, end - healed - unseen);
}

/// Both copies of a structure damaged: refused, with the offset.
#[test]
fn damage_in_both_copies_is_refused() {
    let file = SimulatedFile::new();
    fill(&mut FlashFile::create_simulated(&file, GEOMETRY).unwrap());
    for (one, two, text) in [
        (100, 4096 + 101, "the superblock is damaged in both copies, at byte 0"),
        (
            8192,
            12_288 + 30,
            "the records of blocks 0 to 4 are damaged in both copies, at byte 8192",
        ),
    ] {
        let mut bytes = file.bytes();
        bytes[one] ^= 1;
        bytes[two] ^= 1;
        let error = FlashFile::open_simulated(&SimulatedFile::from(bytes)).unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
    }
}

/// Each sector of the tables that the disk cannot read, of a file whose process was killed: the
/// second copy is used, and the sector is written again.
#[test]
fn a_sector_of_the_tables_that_cannot_be_read() {
    let killed = SimulatedFile::new();
    let mut device = FlashFile::create_simulated(&killed, GEOMETRY).unwrap();
    fill(&mut device);
    let right = contents(&mut device);
    killed.kill();
    drop(device);
    let bytes = killed.bytes();
    let entry = 28_672 + 2 * 4096;
    for (one, two, what) in [
        (0, 4096, "the superblock"),
        (8192, 12_288, "the records of blocks 0 to 4"),
        (28_672, 32_768, "the head of the journal"),
        (entry, entry + 4096, "the last entry"),
    ] {
        for at in [one, two] {
            let file = SimulatedFile::from(bytes.clone());
            file.make_unreadable(at);
            let mut device = FlashFile::open_simulated(&file).unwrap();
            assert_eq!(contents(&mut device), right, "{what}");
            let reported = device.damage().len();
            assert_eq!(reported, usize::from(at < entry), "{what}: {:?}", device.damage());
            device.close().unwrap();
            let device = FlashFile::open_simulated(&file).unwrap();
            assert!(device.damage().is_empty(), "{what} is written again");
        }
        let file = SimulatedFile::from(bytes.clone());
        [one, two].into_iter().for_each(|at| file.make_unreadable(at));
        let error = FlashFile::open_simulated(&file).unwrap_err().to_string();
        let text = match what {
            "the superblock" => "reading the superblock failed",
            "the records of blocks 0 to 4" => "reading the block records failed",
            _ => "reading the journal failed",
        };
        assert!(error.contains(text), "{error}");
    }
    // After the last entry, where no entry is or a part of one whose sync did not return; and two
    // far behind it. They are written, so that they do not become more and more.
    for pages in [&[2][..], &[20, 70]] {
        let file = SimulatedFile::from(bytes.clone());
        pages.iter().for_each(|page| file.make_unreadable(entry + page * 4096));
        let mut device = FlashFile::open_simulated(&file).unwrap();
        assert_eq!(contents(&mut device), right);
        let pages = if pages.len() == 1 { "1 page" } else { "2 pages" };
        assert_eq!(device.damage(), [format!("{pages} of the unused journal cannot be read")]);
        device.close().unwrap();
        let device = FlashFile::open_simulated(&file).unwrap();
        assert!(device.damage().is_empty() && device.check(&mut |_, _| {}).unwrap().is_whole());
        let before = file.operations();
        drop(device);
        assert!(file.operations() - before <= 1, "nothing is to be written");
    }
}

/// A check goes on after pages and page headers that the disk cannot read.
#[test]
fn a_check_reports_pages_that_cannot_be_read() {
    let file = SimulatedFile::new();
    let mut device = FlashFile::create_simulated(&file, geometry_4k()).unwrap();
    fill(&mut device);
    device.close().unwrap();
    let bytes = file.bytes();
    let page = |at: &usize| bytes[*at..at + 4096] == [16; 4096];
    let at = (0..bytes.len()).step_by(4096).find(page).unwrap() as u64;
    let all = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0)];
    // A page, and the place of all headers.
    for (at, expected) in [(at + 700, &all[3..4]), (16_384, &all)] {
        let copy = SimulatedFile::from(bytes.clone());
        let device = FlashFile::open_simulated(&copy).unwrap();
        copy.make_unreadable(at);
        let report = device.check(&mut |_, _| {}).unwrap();
        assert_eq!((report.damaged, report.pages), (expected.to_vec(), 6), "byte {at}");
    }
    // One without headers of written pages: to write one there would fail.
    let copy = SimulatedFile::from(bytes);
    let device = FlashFile::open_simulated(&copy).unwrap();
    copy.make_unreadable(4096);
    let report = device.check(&mut |_, _| {}).unwrap();
    assert_eq!(report.other, ["the 4096 bytes from byte 4096 on cannot be read"]);
}

fn geometry_4k() -> DeviceGeometry {
    DeviceGeometry { page_size: 4096, blocks_per_lun: 16, ..GEOMETRY }
}

fn message(opened: Result<FlashFile, FlashFileError>) -> String {
    opened.map(|device| device.name().to_owned()).unwrap_err().to_string()
}

#[test]
fn errors_describe_what_is_wrong_with_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flash");
    let check = |path: &Path, text: &str| {
        let said = message(FlashFile::open(path));
        assert!(said.starts_with(&path.display().to_string()) && said.contains(text), "{said}");
    };
    check(&path, "no such file");
    check(folder.path(), "a folder");
    for (name, bytes) in [("empty", &b""[..]), ("short", b"PRISM"), ("text", &[b'x'; 20_000])] {
        let other = folder.path().join(name);
        fs::write(&other, bytes).unwrap();
        check(&other, "no flash file");
    }
    fill(&mut FlashFile::create(&path, geometry_4k()).unwrap());
    let again = message(FlashFile::create(&path, geometry_4k()));
    assert!(again.contains("exists already"), "{again}");
    let wrong = DeviceGeometry { pages_per_block: 1, ..geometry_4k() };
    let wrong = message(FlashFile::create(&folder.path().join("w"), wrong));
    assert!(wrong.contains("pages_per_block is 1"), "{wrong}");
    assert!(!folder.path().join("w").exists());
    let len = fs::metadata(&path).unwrap().len();
    for short in [len - 1, 100_000, 8192, 600] {
        let copy = folder.path().join("copy");
        fs::copy(&path, &copy).unwrap();
        File::options().write(true).open(&copy).unwrap().set_len(short).unwrap();
        check(&copy, &format!("truncated: it has {short} bytes and should have {len}"));
    }
    let nowhere = message(FlashFile::create(&folder.path().join("no/flash"), geometry_4k()));
    assert!(nowhere.contains("no such file or folder"), "{nowhere}");
}

#[test]
fn one_process_at_a_time_and_readers_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flash");
    let device = FlashFile::create(&path, geometry_4k()).unwrap();
    for settings in [Settings::USUAL, Settings::READ_ONLY] {
        let error = FlashFile::open_with(&path, settings).unwrap_err();
        let FlashFileError::InUse { pid, .. } = error else { panic!("{error}") };
        assert!(pid.is_none_or(|pid| pid == std::process::id()), "{pid:?}");
    }
    device.program(0, 0, &[5; 4096], &[]).unwrap();
    device.close().unwrap();
    let mut readers = [(); 2].map(|()| FlashFile::open_with(&path, Settings::READ_ONLY).unwrap());
    assert!(matches!(FlashFile::open(&path), Err(FlashFileError::InUse { .. })));
    for reader in &mut readers {
        let mut page = [0; 4096];
        assert_eq!(reader.read(0, 0, 0, &mut page, &mut []), Ok(PageState::Written));
        assert_eq!(page, [5; 4096]);
        for refused in [reader.program(0, 1, &page, &[]), reader.erase(0), reader.finish(0)] {
            assert!(matches!(refused, Err(MediumError::ReadOnly { .. })), "{refused:?}");
        }
        assert_eq!(reader.sync(), Ok(()));
    }
    drop(readers);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let may_not = File::options().write(true).open(&path).is_err();
    let device = FlashFile::open(&path).unwrap();
    assert_eq!(
        device.refusal().is_some(),
        may_not,
        "the device is writable with permission to write"
    );
}

/// A file that is truncated while the device is open: reads beyond its end fail.
#[test]
fn a_file_that_shrinks_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for engine in [EngineChoice::Best, EngineChoice::Portable] {
        let path = folder.path().join(format!("{engine:?}"));
        let settings = Settings { engine, ..Settings::USUAL };
        let device = FlashFile::create_with(&path, geometry_4k(), settings).unwrap();
        device.program(15, 0, &[5; 4096], &[]).unwrap();
        device.sync().unwrap();
        File::options().write(true).open(&path).unwrap().set_len(30_000).unwrap();
        let read = device.read(15, 0, 0, &mut [0; 4096], &mut []);
        assert!(matches!(read, Err(MediumError::Io { .. })), "{engine:?}: {read:?}");
    }
}

const CHILD: &str = "PRISM_FLASHFILE_CHILD";
const PAGES: u64 = 3;
const BLOCKS: u64 = 16;
/// Pages of a sync.
const SYNC: u64 = 7;

/// Writes page after page, cycling through the blocks, and prints how many are durable.
#[allow(clippy::print_stderr, reason = "the parent reads it")]
fn write_for_ever(path: &Path) {
    let device = FlashFile::open(path).unwrap();
    for number in 0u64.. {
        let (block, page) = ((number / PAGES % BLOCKS) as u32, (number % PAGES) as u32);
        if page == 0 && device.write_pointer(block) > 0 {
            device.erase(block).unwrap();
        }
        let data = number.to_le_bytes().repeat(512);
        device.program(block, page, &data, &[]).unwrap();
        if (number + 1).is_multiple_of(SYNC) {
            device.sync().unwrap();
            eprintln!("durable {}", number + 1);
        }
    }
}

#[test]
fn a_process_that_is_killed_loses_nothing_durable() {
    if let Some(path) = std::env::var_os(CHILD) {
        return write_for_ever(Path::new(&path));
    }
    let folder = tempfile::tempdir().unwrap();
    for (round, lines) in [1, 5, 40].into_iter().enumerate() {
        let path = folder.path().join(format!("flash{round}"));
        drop(FlashFile::create(&path, geometry_4k()).unwrap());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "damage::a_process_that_is_killed_loses_nothing_durable",
                "--nocapture",
            ])
            .env(CHILD, &path)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let reported = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let mut reported =
            reported.filter_map(|line| line.strip_prefix("durable ")?.parse::<u64>().ok());
        let durable = reported.by_ref().take(lines).last().unwrap();
        let error = FlashFile::open(&path).unwrap_err();
        let FlashFileError::InUse { pid, .. } = error else { panic!("{error}") };
        assert!(pid.is_none_or(|pid| pid == child.id()), "{pid:?}");
        child.kill().unwrap();
        let durable = reported.last().unwrap_or(durable);
        child.wait().unwrap();
        let device = FlashFile::open(&path).unwrap();
        assert!(device.check(&mut |_, _| {}).unwrap().is_whole());
        // It may have continued up to and after another sync, and erased some blocks for that.
        let oldest = (durable + 2 * SYNC + PAGES).saturating_sub(BLOCKS * PAGES);
        for number in oldest.next_multiple_of(PAGES)..durable {
            let (block, page) = ((number / PAGES % BLOCKS) as u32, (number % PAGES) as u32);
            let mut data = [0; 4096];
            let state = device.read(block, page, 0, &mut data, &mut []);
            assert_eq!(state, Ok(PageState::Written), "page {number} of {durable}");
            assert_eq!(data[..8], number.to_le_bytes(), "page {number} of {durable}");
        }
    }
}
