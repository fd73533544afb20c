//! The picture docs/mappings/dftl.svg shows the flash operations of one host write when the map is
//! on flash. This test repeats them on a small drive and compares the sentences in the picture with
//! the counts. Pictures of other mappings: `life_of_a_write` in `crates/engine`.

use crate::common::lab::{filled, rest, serve};
use crate::common::tiny;
use std::ops::Range;

use prism_base::{Bytes, Nanos};
use prism_nand::{Cause, PageTimes};
use prism_ssd::spec::Mapping;
use prism_ssd::{Drive, DriveSpec, HostOp, Request};

const PICTURE: &str = include_str!("../../../../docs/mappings/dftl.svg");

/// Program units per block, each of one unit; entries per translation page and of the cache.
const PROGRAM_UNITS: u32 = 8;
const UNIT: u64 = 512;
const ENTRIES: u64 = 128;
const CACHED: u64 = 64;
/// Logical units: two translation pages.
const UNITS: u64 = 2 * ENTRIES;

fn device() -> DriveSpec {
    let mut device = tiny(96, 8000, true);
    device.flash.dies_per_channel = 1;
    device.flash.planes = 1;
    device.flash.multi_plane = false;
    device.flash.blocks_per_plane = 64;
    device.flash.pages_per_block = PROGRAM_UNITS;
    device.flash.t_program = PageTimes::uniform(device.flash.t_program.of(0));
    device.flash.page = Bytes(UNIT);
    device.ftl.mapping_unit = Bytes(UNIT);
    device.ftl.mapping = Mapping::Dftl;
    device.ftl.map_cache = Some(Bytes(CACHED * DriveSpec::MAP_ENTRY));
    device.drive.capacity = Bytes(UNITS * UNIT);
    device.drive.write_buffer = Bytes(8 * UNIT);
    device.check().unwrap();
    assert_eq!(u64::from(device.entries_per_translation_page()), ENTRIES);
    device
}

/// The flash operations of consecutive writes, and the locations of their last unit and of the
/// first translation page, as a sentence.
fn sentence(drive: &mut Drive, what: &str, units: Range<u64>) -> String {
    let before = *drive.flash_counts();
    let looks = *drive.map_counts().unwrap();
    let last = units.end as u32 - 1;
    for unit in units {
        serve(drive, Request::new(HostOp::Write, unit * UNIT, UNIT, 0));
        // Long enough for each to be on flash before the next is submitted.
        rest(drive, Nanos(100_000_000));
    }
    drive.assert_consistent();
    let done = drive.flash_counts().since(&before);
    let looks = drive.map_counts().unwrap().since(&looks);
    let ftl = drive.engine().ftl();
    let place = |unit| {
        let at = ftl.lookup(unit).expect("it was written").0;
        format!("in block {}, page {}", at / PROGRAM_UNITS, at % PROGRAM_UNITS)
    };
    format!(
        "write {what}: misses {}; programs host {}, map {}; reads map {}; erases {}; \
         {last} {}; T0 {}",
        looks.misses,
        done.units[Cause::Host],
        done.units[Cause::Map],
        done.reads[Cause::Map],
        done.erases.total(),
        place(last),
        place(UNITS as u32),
    )
}

#[test]
fn a_map_on_flash_is_read_before_and_rewritten_after() {
    let mut drive = filled(&device());
    let steps = [("10", 10..11), ("11", 11..12), ("128 to 191", 128..192)];
    let sentences = steps.map(|(what, units)| sentence(&mut drive, what, units));
    let missing: Vec<_> =
        sentences.iter().filter(|text| !PICTURE.contains(text.as_str())).collect();
    assert!(missing.is_empty(), "not in the picture: {missing:#?}");
}
