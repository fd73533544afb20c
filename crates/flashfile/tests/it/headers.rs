//! Cached page headers before a sync: with any number of them and any failure, each is read as it
//! was written, and none is counted before it is durable.

use prism_testkit::skipped;
use std::fs::File;
use std::os::unix::fs::FileExt;

use prism_base::Rng;
use prism_flash::{DeviceGeometry, Medium, MediumError, PageState};
use prism_flashfile::{EngineChoice, FlashFile, FlashFileError, Settings, SimulatedFile};

/// Each page header takes a page of the file; there are more than the cache holds.
const MANY: DeviceGeometry = DeviceGeometry {
    channels: 1,
    luns_per_channel: 1,
    blocks_per_lun: 42,
    pages_per_block: 128,
    page_size: 4096,
    oob_size: 4000,
    max_open_blocks: None,
};

/// Four page headers in a page of the file.
const FEW: DeviceGeometry = DeviceGeometry {
    blocks_per_lun: 12,
    pages_per_block: 5,
    page_size: 512,
    oob_size: 500,
    ..MANY
};

/// The content of each page, different from all others.
fn content(geometry: &DeviceGeometry, block: u32, page: u32) -> (Vec<u8>, Vec<u8>) {
    let number = (1000 * block + page + 1).to_le_bytes();
    let oob = number.map(|byte| !byte).repeat(geometry.oob_size as usize / 4);
    (number.repeat(geometry.page_size as usize / 4), oob)
}

fn program(device: &mut FlashFile, block: u32) -> Result<(), MediumError> {
    let page = device.write_pointer(block);
    let (data, oob) = content(device.geometry(), block, page);
    device.program(block, page, &data, &oob)
}

fn check_page(device: &mut FlashFile, block: u32, page: u32, context: &str) {
    let (data, oob) = content(device.geometry(), block, page);
    let mut read = (vec![0; data.len()], vec![0; oob.len()]);
    let state = device.read(block, page, 0, &mut read.0, &mut read.1);
    assert_eq!(state, Ok(PageState::Written), "{context}: page {page} of block {block}");
    assert!(read == (data, oob), "{context}: page {page} of block {block}");
}

/// Checks the pages of all blocks; returns their number by block.
fn check_pages(device: &mut FlashFile, context: &str) -> Vec<u32> {
    let blocks = device.geometry().blocks();
    let programmed: Vec<u32> = (0..blocks).map(|block| device.write_pointer(block)).collect();
    for (block, &pages) in (0..).zip(&programmed) {
        (0..pages).for_each(|page| check_page(device, block, page, context));
    }
    programmed
}

fn check_whole(device: &mut FlashFile, context: &str) {
    let report = device.check(&mut |_, _| {}).unwrap();
    assert!(report.is_whole(), "{context}: {report:?}");
}

#[test]
fn more_headers_than_the_cache_holds() {
    let folder = tempfile::tempdir().unwrap();
    for engine in [EngineChoice::Portable, EngineChoice::Uring] {
        let context = format!("{engine:?}");
        let path = folder.path().join(&context);
        let settings = Settings { engine, ..Settings::USUAL };
        let mut device = match FlashFile::create_with(&path, MANY, settings) {
            Err(FlashFileError::Engine { what, .. }) => {
                skipped(&what, "");
                continue;
            }
            made => made.unwrap(),
        };
        let mut rng = Rng::stream(1, "headers");
        let mut open: Vec<u32> = (0..MANY.blocks()).collect();
        while !open.is_empty() {
            let place = rng.below(open.len() as u64) as usize;
            program(&mut device, open[place]).unwrap();
            if device.write_pointer(open[place]) == MANY.pages_per_block {
                open.swap_remove(place);
            }
            let block = rng.below(MANY.blocks().into()) as u32;
            if let Some(last) = device.write_pointer(block).checked_sub(1) {
                let page = rng.below(u64::from(last) + 1) as u32;
                check_page(&mut device, block, page, &context);
            }
        }
        check_pages(&mut device, &context);
        check_whole(&mut device, &context);
        device.close().unwrap();
        let mut device = FlashFile::open_with(&path, settings).unwrap();
        assert_eq!(check_pages(&mut device, &context), [MANY.pages_per_block; 42]);
        check_whole(&mut device, &context);
    }
}

/// The disk is full from each write on: those of pages, of page headers that make room for others,
/// and of page headers at a sync. Programmed pages stay readable, and a failure is reported by
/// every call after it.
#[test]
fn headers_on_a_full_disk_are_reported() {
    // Programs that failed for their page, and for page headers; syncs.
    let mut failed = [0; 3];
    for (kept, left) in (1..4).flat_map(|kept| (0..60).map(move |left| (kept, left))) {
        let context = format!("{kept} kept, {left} writes");
        let file = SimulatedFile::new();
        file.keep_headers(kept);
        let mut device = FlashFile::create_simulated(&file, FEW).unwrap();
        (0..6).for_each(|block| program(&mut device, 2 * block).unwrap());
        device.sync().unwrap();
        let durable = check_pages(&mut device, &context);
        file.fill_up_after(left);
        let mut rng = Rng::stream(left, "room");
        let mut programs = 0..25;
        let mut begun = file.operations();
        let refused = programs.find_map(|_| {
            begun = file.operations();
            let block = rng.below(FEW.blocks().into()) as u32;
            let full = device.write_pointer(block) == FEW.pages_per_block;
            if full { None } else { program(&mut device, block).err() }
        });
        let by_program = refused.is_some();
        let Some(refused) = refused.or_else(|| device.sync().err()) else { continue };
        let MediumError::DiskFull { what } = &refused else { panic!("{context}: {refused}") };
        assert!(what.contains("the disk is full"), "{context}: {what}");
        let place = if by_program { (file.operations() - begun - 1) as usize } else { 2 };
        failed[place] += 1;
        for again in [device.sync(), program(&mut device, 11), device.sync()] {
            assert!(matches!(again, Err(MediumError::ReadOnly { .. })), "{context}: {again:?}");
        }
        check_pages(&mut device, &context);
        check_whole(&mut device, &context);
        device.close().unwrap_err();
        file.kill();
        let mut device = FlashFile::open_simulated(&file).unwrap();
        let found = check_pages(&mut device, &context);
        // No record was written, or all pages counted by those that were are there.
        assert!(found.iter().zip(&durable).all(|(found, durable)| found >= durable), "{context}");
        check_whole(&mut device, &context);
        (0..12).filter(|&block| found[block as usize] < 5).for_each(|block| {
            program(&mut device, block).unwrap();
        });
        device.sync().unwrap();
        file.kill();
        check_pages(&mut FlashFile::open_simulated(&file).unwrap(), &context);
    }
    assert!(failed[0] > 10 && failed[1] > 10 && failed[2] > 3, "{failed:?}");
}

/// A check writes cached headers, as far as possible, and checks the content of the file.
#[test]
fn a_check_before_the_sync() {
    let file = SimulatedFile::new();
    let mut device = FlashFile::create_simulated(&file, FEW).unwrap();
    (0..8).for_each(|block| program(&mut device, block).unwrap());
    check_whole(&mut device, "before the sync");
    file.kill();
    let mut device = FlashFile::open_simulated(&file).unwrap();
    assert_eq!(check_pages(&mut device, "after the kill"), [0; 12], "a check is no sync");
    check_whole(&mut device, "after the kill");
    (0..8).for_each(|block| program(&mut device, block).unwrap());
    file.fill_up_after(0);
    let said = device.check(&mut |_, _| {}).unwrap_err().to_string();
    assert!(said.contains("the disk is full (writing)"), "{said}");
    assert!(matches!(device.sync(), Err(MediumError::ReadOnly { .. })));
    check_whole(&mut device, "what it has taken");
}

/// A page header damaged in the file is found, although its neighbour is dirty in memory.
#[test]
fn a_check_finds_damage_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flash");
    let geometry = DeviceGeometry { page_size: 4096, ..FEW };
    let mut device = FlashFile::create(&path, geometry).unwrap();
    program(&mut device, 0).unwrap();
    device.sync().unwrap();
    check_whole(&mut device, "as it was written");
    // Page headers begin behind two superblocks and two copies of the records, 4096 bytes each.
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, 4 * 4096).unwrap();
    file.write_all_at(&[byte[0] ^ 1], 4 * 4096).unwrap();
    program(&mut device, 0).unwrap();
    check_page(&mut device, 0, 1, "next to the damage");
    let report = device.check(&mut |_, _| {}).unwrap();
    assert_eq!((report.pages, report.damaged), (2, vec![(0, 0)]));
}
