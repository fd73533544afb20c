//! A device that cannot be made leaves no file behind, and changes no other file.

use std::fs;
use std::os::unix::fs::MetadataExt;

use prism_flash::{DeviceGeometry, Options};
use prism_flashfile::{FlashFile, FlashFileError, Settings};

use super::disk::on_each;
use super::pages::GEOMETRY;

/// Tables of some 500 KB, a data area that no disk here would hold.
const LARGE_TABLES: DeviceGeometry = DeviceGeometry { blocks_per_lun: 8000, ..GEOMETRY };

#[test]
fn a_full_disk_leaves_no_file() {
    on_each(|disk, settings| {
        let there = disk.folder().join("there");
        fs::write(&there, "mine").unwrap();
        disk.leave(0);
        let path = disk.folder().join("flash");
        let made = FlashFile::create_with(&path, LARGE_TABLES, settings);
        let Err(said) = made else { panic!("{}: the disk has room", disk.kind) };
        assert!(matches!(said, FlashFileError::Make { .. }), "{}: {said}", disk.kind);
        for part in [path.to_str().unwrap(), "the disk is full", "make room"] {
            assert!(said.to_string().contains(part), "{}: {said}", disk.kind);
        }
        assert!(!path.exists(), "{}", disk.kind);
        let said = FlashFile::format(&path, LARGE_TABLES, &[], Options::default()).unwrap_err();
        assert!(said.to_string().contains("the disk is full"), "{}: {said}", disk.kind);
        assert!(!path.exists(), "{}", disk.kind);
        let said = FlashFile::create_with(&there, LARGE_TABLES, settings).unwrap_err();
        assert!(matches!(said, FlashFileError::Exists { .. }), "{}: {said}", disk.kind);
        assert_eq!(fs::read(&there).unwrap(), b"mine", "{}", disk.kind);
        disk.make_room();
        drop(FlashFile::format(&path, LARGE_TABLES, &[], Options::default()).unwrap());
        FlashFile::open(&path).unwrap().close().unwrap();
    });
}

/// A file that takes all of its space at once, or is not made.
#[test]
fn a_preallocated_file_has_its_space() {
    on_each(|disk, settings| {
        let settings = Settings { preallocate: true, ..settings };
        let path = disk.folder().join("flash");
        // The device has 16 MiB of pages.
        disk.leave(12 << 20);
        let made = FlashFile::create_with(&path, GEOMETRY, settings);
        let Err(said) = made else { panic!("{}: the disk has room", disk.kind) };
        assert!(said.to_string().contains("the disk is full"), "{}: {said}", disk.kind);
        assert!(!path.exists(), "{}", disk.kind);
        disk.make_room();
        let options = Options::default();
        drop(FlashFile::format_with(&path, GEOMETRY, &[3], options, settings).unwrap());
        let meta = fs::metadata(&path).unwrap();
        assert!(meta.blocks() * 512 >= meta.len(), "{}: {} blocks", disk.kind, meta.blocks());
        FlashFile::open(&path).unwrap().close().unwrap();
    });
}

/// The tables fit on the disk but the monitor's journal does not, or the device has too few blocks
/// for it.
#[test]
fn a_failed_format_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flash");
    let small = DeviceGeometry { blocks_per_lun: 4, ..GEOMETRY };
    let said = FlashFile::format(&path, small, &[], Options::default()).unwrap_err().to_string();
    assert!(said.starts_with(path.to_str().unwrap()), "{said}");
    assert!(said.contains("give it more blocks for each LUN"), "{said}");
    assert!(!path.exists());
    let bad: Vec<u32> = (0..40).collect();
    let said = FlashFile::format(&path, GEOMETRY, &bad, Options::default()).unwrap_err();
    assert!(said.to_string().contains("or mark fewer of them as bad"), "{said}");
    assert!(!path.exists());
    let said = FlashFile::format(&path, GEOMETRY, &[7, 128], Options::default()).unwrap_err();
    assert!(said.to_string().contains("block 128 is marked as bad, and there are 128"), "{said}");
    assert!(!path.exists());
}

#[test]
fn a_file_too_large_for_the_file_system_is_refused() {
    let large = DeviceGeometry {
        channels: 4,
        luns_per_channel: 4,
        blocks_per_lun: 4000,
        pages_per_block: 65_000,
        page_size: 16 << 20,
        ..GEOMETRY
    };
    on_each(|disk, settings| {
        if disk.kind != "ext4" {
            // The others support files of this length.
            return;
        }
        let path = disk.folder().join("flash");
        let said = FlashFile::create_with(&path, large, settings).unwrap_err().to_string();
        assert!(said.contains("no file of that length") && said.contains("smaller"), "{said}");
        assert!(!path.exists());
    });
}
