//! Cost of wordlines on a drive without power-loss protection: their padding, against values
//! calculated by hand. The table of docs/design/power.md has the figures printed here.

#![allow(clippy::print_stdout, reason = "the measurements are for a document")]

use crate::common::lab::*;
use prism_base::{Bytes, Rng};
use prism_ftl::{Frontiers, VictimPolicy};
use prism_nand::Cause;
use prism_ssd::spec::{Cell, WriteCache};
use prism_ssd::{Drive, DriveSpec, HostOp, Request};

/// Logical units of the drive.
const UNITS: u64 = 5600;

/// The drive of [`lab`] with cells of this kind, and more of them.
fn drive(cell: Cell, cache: WriteCache) -> DriveSpec {
    let mut device = lab();
    device.flash.cell = cell;
    device.flash.dies_per_channel = 2;
    // Whole wordlines of any number of pages.
    device.flash.pages_per_block = 60;
    device.ftl.frontiers = Frontiers::Separate;
    device.drive.capacity = Bytes(UNITS * UNIT);
    device.drive.write_cache = cache;
    device.check().unwrap();
    device
}

/// Units of padding per unit that the host wrote.
fn padding(drive: &Drive) -> f64 {
    let units = &drive.flash_counts().units;
    units[Cause::Pad] as f64 / units[Cause::Host] as f64
}

#[test]
fn each_write_through_takes_a_wordline() {
    for cell in Cell::ALL {
        let program_units = u64::from(cell.bits());
        let mut drive = empty(&drive(cell, WriteCache::WriteThrough));
        closed_loop(&mut drive, 1, 200, |turn| write(turn * 13 % UNITS));
        let units = &drive.flash_counts().units;
        assert_eq!(
            (units[Cause::Host], units[Cause::Pad]),
            (200, 200 * (program_units - 1)),
            "{cell:?}"
        );
        println!("written through at depth 1, {}: {:.2}", cell.name(), padding(&drive));
    }
}

#[test]
fn concurrent_writes_share_wordlines() {
    for cell in [Cell::Mlc, Cell::Tlc, Cell::Qlc] {
        let at = |depth| {
            let mut drive = empty(&drive(cell, WriteCache::WriteThrough));
            closed_loop(&mut drive, depth, 1000, |turn| write(turn * 13 % UNITS));
            padding(&drive)
        };
        let depths = [1, 4, 8, 32].map(at);
        println!("written through at depths 1, 4, 8, 32, {}: {depths:.3?}", cell.name());
        let most = f64::from(cell.bits() - 1);
        assert!(depths[0] == most && depths[3] < 0.02 * most, "{depths:?}");
    }
}

#[test]
fn a_flush_pads_the_open_wordlines() {
    for cell in Cell::ALL {
        let program_units = u64::from(cell.bits());
        for between in [1, 4, 16, 64] {
            let mut device = drive(cell, WriteCache::WriteBack);
            // There is one die, so all units since the last flush are in one block.
            device.flash.dies_per_channel = 1;
            device.drive.capacity = Bytes(2000 * UNIT);
            let mut drive = empty(&device);
            let flushes = 20;
            for turn in 0..flushes * between {
                serve(&mut drive, write(turn % 2000));
                if turn % between == between - 1 {
                    serve(&mut drive, Request::new(HostOp::Flush, 0, 0, 0));
                }
            }
            let pads = drive.flash_counts().units[Cause::Pad];
            let expected = flushes * (between.next_multiple_of(program_units) - between);
            assert_eq!(pads, expected, "{cell:?}, a flush each {between} units");
            println!("a flush each {between} units, {}: {:.2}", cell.name(), padding(&drive));
        }
    }
}

#[test]
fn cleaning_pads_half_a_wordline_per_victim() {
    for cell in Cell::ALL {
        for protected in [false, true] {
            let mut device = drive(cell, WriteCache::WriteBack);
            device.drive.power_loss_protection = protected;
            // The numbers of valid units of random victims have all remainders; those of greedy
            // victims are nearly constant.
            device.ftl.victim = VictimPolicy::Random;
            let mut drive = filled(&device);
            let mut rng = Rng::stream(1, "wordlines");
            closed_loop(&mut drive, 32, 5 * UNITS, |_| write(rng.below(UNITS)));
            let before = *drive.flash_counts();
            closed_loop(&mut drive, 32, 10 * UNITS, |_| write(rng.below(UNITS)));
            let counts = drive.flash_counts().since(&before);
            let of = |cause| counts.units[cause] as f64;
            let a_victim = of(Cause::Pad) / counts.erases.total() as f64;
            let amplification = counts.units.total() as f64 / of(Cause::Host);
            println!(
                "random writes, {}, protected {protected}: padding {:.4} a unit, {a_victim:.3} a \
                 victim, write amplification {amplification:.3}",
                cell.name(),
                of(Cause::Pad) / of(Cause::Host)
            );
            let expected = if protected { 0.0 } else { f64::from(cell.bits() - 1) / 2.0 };
            assert!((a_victim - expected).abs() <= 0.1 * expected, "{cell:?}: {a_victim}");
        }
    }
}

#[test]
fn drives_that_could_lose_durable_data_are_refused() {
    let unprotected = |mapping, change: fn(&mut DriveSpec)| {
        let mut device = DriveSpec::preset(mapping).unwrap();
        device.drive.power_loss_protection = false;
        device.drive.discards = false;
        change(&mut device);
        device.check().map_err(|error| error.to_string())
    };
    for preset in ["block-2007", "bast-2007", "fast-2008", "mixed-2008"] {
        assert_eq!(unprotected(preset, |_| {}), Ok(()), "{preset}");
        let refused = unprotected(preset, |device| device.drive.discards = true).unwrap_err();
        assert!(refused.contains("drive.discards = true"), "{preset}: {refused}");
    }
    let two_bits: fn(&mut DriveSpec) = |device| {
        device.flash.cell = Cell::Mlc;
        device.flash.program_gaps = false;
    };
    let refused = unprotected("block-2007", two_bits).unwrap_err();
    assert!(refused.contains("flash.cell = MLC") && refused.contains("wordline"), "{refused}");
    assert_eq!(unprotected("bast-2007", two_bits), Ok(()), "log blocks can be padded");
}
