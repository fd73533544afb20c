//! `prism device`: creates, inspects, damages and refuses files.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::common::{folder, prism, signal, words};
use prism_base::Bytes;
use prism_flash::raw::{Address, Raw};
use prism_flash::{Allocation, Device, Options};
use prism_flashfile::FlashFile;
use serde_json::Value;

/// Runs `prism device ARGS FILE`, which must end with `code`, and returns its output and errors.
fn device(code: i32, args: &str, file: &Path) -> String {
    let args = format!("device {args}");
    let mut args = words(&args);
    args.insert(2, file.to_str().expect("text"));
    let run = prism(&args);
    assert_eq!(run.code, code, "{args:?}: {}", run.stderr);
    if code == 0 { run.stdout } else { run.stdout + &run.stderr }
}

fn json(args: &str, file: &Path) -> Value {
    serde_json::from_str(&device(0, &format!("{args} --json -"), file)).expect("JSON")
}

const SHAPE: &str = "--geometry channels=2,luns=2,blocks=16,pages=8,page=4KiB,oob=0";

/// A share named `cache` over one LUN; pages 0 and 1 of its block 3 hold ones and twos, and
/// its block 0 was erased four times.
fn fill(file: &Path) {
    let medium = FlashFile::open(file).unwrap();
    let device = Device::open(medium, Options::default()).unwrap();
    let wanted = Allocation::new(Bytes(1), 0);
    let raw = Raw::open(device.allocate("cache", wanted).unwrap()).unwrap();
    let at = Address { block: 3, ..Address::default() };
    for page in 0..2 {
        raw.write_page(at.with_page(page), &[page as u8 + 1; 4096]).unwrap();
    }
    for _ in 0..4 {
        raw.erase_block(Address::default()).unwrap();
    }
    raw.sync().unwrap();
}

#[test]
fn a_device_is_created_filled_and_inspected() {
    let folder = folder();
    let file = folder.path().join("flash");
    let made = device(0, &format!("create {SHAPE}"), &file);
    assert!(made.contains("2 MiB of flash, 4 LUNs of"), "{made}");
    fill(&file);
    let info = json("info", &file);
    assert_eq!(info["geometry"]["raw_bytes"], 4 * 16 * 8 * 4096);
    assert_eq!(info["monitor"]["free_luns"], 3);
    let share = &info["monitor"]["shares"][0];
    assert_eq!((&share["name"], &share["luns"]), (&"cache".into(), &serde_json::json!([0])));
    assert_eq!(info["monitor"]["lun_bytes"], share["bytes"]);
    assert!(device(0, "info", &file).contains("cache"));

    let wear = json("wear", &file);
    assert_eq!((&wear["min"], &wear["max"], &wear["blocks"]), (&0.into(), &4.into(), &64.into()));
    assert_eq!(wear["erases"], 6, "four, and two of the journal of the monitor");
    let rows = wear["histogram"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| row["blocks"].as_u64().unwrap()).sum::<u64>(), 64);

    let image = folder.path().join("image");
    let export = format!("export --share cache --output {} --json -", image.display());
    let export: Value = serde_json::from_str(&device(0, &export, &file)).unwrap();
    let image = fs::read(image).unwrap();
    assert_eq!(image.len() as u64, share["bytes"].as_u64().unwrap());
    let block = 3 * 8 * 4096;
    assert!(image[..block].iter().all(|&byte| byte == 0));
    assert!(image[block..block + 4096].iter().all(|&byte| byte == 1));
    assert!(image[block + 4096..block + 8192].iter().all(|&byte| byte == 2));
    assert_eq!(export["erases"].as_array().unwrap().len(), 64);
    let physical = export["monitor"]["shares"][0]["blocks"][3].as_u64().unwrap();
    assert_eq!(export["programmed"][physical as usize], 2);
    assert_eq!(json("check", &file)["damaged_pages"], 0);
}

#[test]
fn damage_is_found_and_named() {
    let folder = folder();
    let file = folder.path().join("flash");
    device(0, &format!("create {SHAPE}"), &file);
    fill(&file);
    let bytes = fs::read(&file).unwrap();
    let second = bytes.windows(4096).position(|page| page == [2; 4096]).unwrap();
    let write = |at: u64, byte| {
        File::options().write(true).open(&file).unwrap().write_all_at(&[byte], at).unwrap();
    };
    write(second as u64 + 77, 3);
    write(5000, 1);
    write(8192 + 20, bytes[8192 + 20] ^ 1);
    let said = device(1, "check", &file);
    for part in [
        "1 damaged",
        "page 1 does not match its checksum",
        "byte 5000 is unused",
        "the records of blocks 0 to 60: copy 1 is damaged; the other is whole",
        "restore it from a copy",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let found: Value = {
        let run = prism(&["device", "check", file.to_str().unwrap(), "--json", "-"]);
        assert_eq!(run.code, 1);
        serde_json::from_str(&run.stdout).unwrap()
    };
    assert_eq!(found["damaged"][0]["page"], 1);
    let image = folder.path().join("image");
    let export = format!("export --share cache --output {}", image.display());
    assert!(device(2, &export, &file).contains("page 1 of block"));
    assert!(!image.exists(), "nothing is left of a half");
}

#[test]
fn invalid_arguments_and_files_are_refused() {
    let folder = folder();
    let file = folder.path().join("flash");
    for (args, part) in [
        ("create", "--capacity"),
        ("create --capacity 1MiB", "blocks_per_lun is 1"),
        ("create --capacity 64", "unit"),
        ("create --geometry wheels=4 --capacity 1GiB", "none of channels"),
        ("create --geometry blocks=9 --capacity 1GiB", "give one"),
        ("create --geometry blocks=4,pages=2,page=512B", "give it more blocks"),
        ("create --capacity 1GiB --device nothing", "nothing"),
        ("create --capacity 1GiB --factory-bad 3,x", "\"x\" is not a block"),
        ("create --capacity 1GiB --factory-bad 100%", "below 100%"),
        ("create --capacity 1GiB --factory-bad 50%", "mark fewer of them as bad"),
        ("create --capacity 1GiB --factory-bad 256", "block 256 is marked as bad"),
        ("create --capacity 1GiB --seed 3", "--factory-bad"),
        ("info", "no such file"),
    ] {
        let said = device(2, args, &file);
        assert!(said.contains(part), "{args}: {said}");
        assert!(!file.exists(), "{args}");
    }
    device(0, &format!("create {SHAPE}"), &file);
    assert!(device(2, &format!("create {SHAPE}"), &file).contains("exists already"));
    assert!(device(2, "export", &file).contains("--share NAME"));
    let share = device(2, "export --share none --output -", &file);
    assert!(share.contains("no share is named \"none\""), "{share}");
    let held = FlashFile::open(&file).unwrap();
    assert!(device(2, "info", &file).contains("in use by"));
    drop(held);
    fs::write(&file, "some text").unwrap();
    assert!(device(2, "check", &file).contains("no flash file"));
}

/// Factory bad blocks are listed, counted and never used.
#[test]
fn bad_blocks_from_the_factory() {
    let folder = folder();
    let file = folder.path().join("flash");
    let made = device(0, &format!("create {SHAPE} --factory-bad 3,17"), &file);
    assert!(made.contains("bad blocks: 2 of 64"), "{made}");
    fill(&file);
    let info = json("info", &file);
    let listed = serde_json::json!([3, 17]);
    assert_eq!((&info["factory_bad_blocks"], &info["monitor"]["bad_blocks"]), (&listed, &listed));
    let of_share = info["monitor"]["shares"][0]["blocks"].as_array().unwrap();
    assert!(!of_share.is_empty() && !of_share.contains(&3.into()), "{of_share:?}");
    assert!(device(0, "info", &file).contains("Bad from the factory"));
    let checked = device(0, "check", &file);
    assert!(checked.contains("bad blocks: 2, 2 of them from the factory"), "{checked}");
    assert_eq!(json("check", &file)["bad_blocks"], listed);

    let random = |seed: u64| {
        let file = folder.path().join(format!("random{seed}"));
        let args = format!("create {SHAPE} --factory-bad 3.2% --seed {seed} --json -");
        let made: Value = serde_json::from_str(&device(0, &args, &file)).unwrap();
        made["factory_bad_blocks"].clone()
    };
    let (one, two) = (random(1), random(2));
    assert_eq!((one.as_array().unwrap().len(), two.as_array().unwrap().len()), (2, 2));
    assert_ne!(one, two);
}

/// The geometry of a preset, and a sparse terabyte.
#[test]
fn presets_and_large_devices() {
    let folder = folder();
    let file = folder.path().join("flash");
    device(0, "create --capacity 1TiB --geometry page=16KiB,pages=512", &file);
    let info = json("info", &file);
    assert_eq!(info["geometry"]["raw_bytes"], 1u64 << 40);
    assert!(info["disk_bytes"].as_u64().unwrap() < 16 << 20, "{}", info["disk_bytes"]);
    let preset = folder.path().join("preset");
    device(0, "create --capacity 16GiB --device memblaze", &preset);
    assert_eq!(json("info", &preset)["geometry"]["channels"], 12);
}

/// The measurement that does not need fio.
#[test]
fn an_interrupted_measurement_leaves_no_file() {
    let folder = folder();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_prism"))
        .args(["bench", "device", folder.path().to_str().unwrap(), "--only", "open"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // From then on it writes a gigabyte or two.
    while fs::read_dir(folder.path()).unwrap().count() == 0 {
        assert!(child.try_wait().unwrap().is_none(), "the measurement ended by itself");
        std::thread::yield_now();
    }
    signal(child.id(), "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
