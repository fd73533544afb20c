//! Writes pages until the disk is full: on real file systems, with each engine.

use std::path::Path;

use prism_flash::{DeviceGeometry, Medium, MediumError, PageState};
use prism_flashfile::{FlashFile, Settings};

use super::disk::{Disk, on_each};

/// 16 MiB in 128 blocks.
pub const GEOMETRY: DeviceGeometry = DeviceGeometry {
    channels: 2,
    luns_per_channel: 1,
    blocks_per_lun: 64,
    pages_per_block: 8,
    page_size: 16 << 10,
    oob_size: 16,
    max_open_blocks: None,
};

const PAGES: u32 = 128 * 8;

fn place(number: u32) -> (u32, u32) {
    (number / GEOMETRY.pages_per_block, number % GEOMETRY.pages_per_block)
}

fn content(number: u32) -> Vec<u8> {
    (number + 1).to_le_bytes().repeat(GEOMETRY.page_size as usize / 4)
}

fn program(device: &mut FlashFile, number: u32) -> Result<(), MediumError> {
    let (block, page) = place(number);
    device.program(block, page, &content(number), b"spare")
}

/// Checks the pages below `count`.
fn check(device: &mut FlashFile, count: u32, context: &str) {
    let mut data = content(0);
    for number in 0..count {
        let (block, page) = place(number);
        let state = device.read(block, page, 0, &mut data, &mut []);
        assert_eq!(state, Ok(PageState::Written), "{context}: page {number} of {count}");
        assert!(data == content(number), "{context}: page {number} of {count}");
    }
}

/// Programs pages until one is refused, with a sync after every `every`. Returns
/// how many are durable, and the refusal.
fn fill(device: &mut FlashFile, every: u32, context: &str) -> (u32, MediumError) {
    let mut durable = 0;
    for number in 0..PAGES {
        if let Err(error) = program(device, number) {
            return (durable, error);
        }
        if (number + 1).is_multiple_of(every) {
            if let Err(error) = device.sync() {
                return (durable, error);
            }
            durable = number + 1;
        }
    }
    let Err(refused) = device.sync() else { panic!("{context}: the disk holds it all") };
    (durable, refused)
}

/// After the disk was full once, every call that writes reports it again.
fn check_refusals(device: &mut FlashFile, name: &str, context: &str) {
    let next = (0..GEOMETRY.blocks()).find(|&block| device.write_pointer(block) == 0);
    let (block, data) = (next.expect("one holds nothing"), content(0));
    for _ in 0..2 {
        for refused in
            [device.program(block, 0, &data, &[]), device.erase(0), device.finish(0), device.sync()]
        {
            let said = refused.expect_err("it is read-only");
            assert!(matches!(said, MediumError::ReadOnly { .. }), "{context}: {said}");
            for part in [name, "the disk is full", "make room and open it again"] {
                assert!(said.to_string().contains(part), "{context}: {said}");
            }
        }
    }
}

fn life(disk: &Disk, path: &Path, settings: Settings, every: u32) {
    let context = format!("{} {:?} sync {every}", disk.kind, settings.engine);
    let name = path.to_str().unwrap();
    let mut device = FlashFile::create_with(path, GEOMETRY, settings).unwrap();
    device.sync().unwrap();
    disk.leave(4 << 20);
    let (durable, refused) = fill(&mut device, every, &context);
    let MediumError::DiskFull { what } = &refused else { panic!("{context}: {refused}") };
    for part in [name, "the disk is full", "make room and open it again"] {
        assert!(what.contains(part), "{context}: {what}");
    }
    assert!(every > PAGES || durable > 0, "{context}");
    check_refusals(&mut device, name, &context);
    check(&mut device, durable, &context);
    let said = device.close().expect_err("not all of it is durable");
    assert!(matches!(said, MediumError::ReadOnly { .. }), "{context}: {said}");

    // On the full disk, synced pages can be read, and none can be written.
    let mut device = FlashFile::open_with(path, settings).unwrap();
    check(&mut device, durable, &context);
    assert!(device.check(&mut |_, _| {}).unwrap().is_whole(), "{context}");
    device.close().unwrap();

    disk.make_room();
    let mut device = FlashFile::open_with(path, settings).unwrap();
    // More pages than reported may be durable.
    let found: u32 = (0..GEOMETRY.blocks()).map(|block| device.write_pointer(block)).sum();
    assert!(found >= durable, "{context}: {found} of {durable}");
    check(&mut device, found, &context);
    (found..PAGES).for_each(|number| program(&mut device, number).unwrap());
    device.close().unwrap();
    let mut device = FlashFile::open_with(path, settings).unwrap();
    check(&mut device, PAGES, &context);
    assert!(device.check(&mut |_, _| {}).unwrap().is_whole(), "{context}");
}

/// With syncs, so that some pages are durable when the disk is full.
#[test]
fn synced_pages_survive_a_full_disk() {
    on_each(|disk, settings| life(disk, &disk.folder().join("flash"), settings, 20));
}

/// Without a sync: the failure of an asynchronous write is reported by the next call.
#[test]
fn a_failed_asynchronous_write_is_reported() {
    on_each(|disk, settings| life(disk, &disk.folder().join("flash"), settings, u32::MAX));
}

/// Fewer pages than a batch, and then only a sync, which has to report the failure.
#[test]
fn the_sync_after_a_failed_write_reports_it() {
    on_each(|disk, settings| {
        let context = format!("{} {:?}", disk.kind, settings.engine);
        let path = disk.folder().join("flash");
        let mut device = FlashFile::create_with(&path, GEOMETRY, settings).unwrap();
        disk.leave(400 << 10);
        let taken = (0..60).take_while(|&number| program(&mut device, number).is_ok()).count();
        assert!(taken > 5, "{context}: {taken}");
        let Err(failure) = device.sync() else { panic!("{context}: the disk holds it all") };
        let full = matches!(failure, MediumError::DiskFull { .. } | MediumError::ReadOnly { .. });
        assert!(full && failure.to_string().contains("the disk is full"), "{context}: {failure}");
        assert!(device.sync().is_err(), "{context}: a second sync forgets nothing");
    });
}

/// Page headers as long as pages, and space for the pages alone: the page headers are cached, and
/// the sync that writes them reports the failure.
#[test]
fn headers_without_space_are_reported_by_the_sync() {
    let geometry = DeviceGeometry { page_size: 4096, oob_size: 4000, ..GEOMETRY };
    let page = |number: u32| ((number + 1).to_le_bytes().repeat(1024), number.to_le_bytes());
    on_each(|disk, settings| {
        let context = format!("{} {:?}", disk.kind, settings.engine);
        let path = disk.folder().join("flash");
        let mut device = FlashFile::create_with(&path, geometry, settings).unwrap();
        let program = |device: &mut FlashFile, number: u32| {
            let ((block, at), (data, oob)) = (place(number), page(number));
            device.program(block, at, &data, &oob)
        };
        let check = |device: &mut FlashFile, pages: u32| {
            for number in 0..pages {
                let ((block, at), (data, oob)) = (place(number), page(number));
                let mut read = (data.clone(), [0xEE; 4]);
                let state = device.read(block, at, 0, &mut read.0, &mut read.1);
                assert_eq!(state, Ok(PageState::Written), "{context}: page {number} of {pages}");
                assert!(read == (data, oob), "{context}: page {number} of {pages}");
            }
        };
        (0..8).for_each(|number| program(&mut device, number).unwrap());
        device.sync().unwrap();
        // 392 pages more are 1568 KiB, and their page headers as much.
        disk.leave(2 << 20);
        let taken = (8..400).take_while(|&number| program(&mut device, number).is_ok()).count();
        // Other file systems may need more space than the bytes written.
        assert!(disk.kind != "tmpfs" || taken == 392, "{context}: {taken}");
        let Err(failure) = device.sync() else { panic!("{context}: the disk holds it all") };
        let full = matches!(failure, MediumError::DiskFull { .. } | MediumError::ReadOnly { .. });
        assert!(full && failure.to_string().contains("the disk is full"), "{context}: {failure}");
        assert!(device.sync().is_err(), "{context}: a second sync forgets nothing");
        check(&mut device, if disk.kind == "tmpfs" { 400 } else { 8 });
        device.close().expect_err("not all of it is durable");
        let mut device = FlashFile::open_with(&path, settings).unwrap();
        check(&mut device, 8);
        assert!(device.check(&mut |_, _| {}).unwrap().is_whole(), "{context}");
        disk.make_room();
        // Without room for page headers, opening could not empty the journal.
        drop(device);
        let mut device = FlashFile::open_with(&path, settings).unwrap();
        let first = device.write_pointer(1);
        (8 + first..400).for_each(|number| program(&mut device, number).unwrap());
        device.close().unwrap();
        check(&mut FlashFile::open_with(&path, settings).unwrap(), 400);
    });
}
