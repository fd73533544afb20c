//! What was promised durable is there after power was cut, wherever it was cut.
//!
//! The drives are drawn at random ([`swarm`]), with and without protection, of cells with one
//! to four bits. The model ([`Harness`]) keeps, for each mapping unit, what has happened to it
//! and since when that is promised. A drive may come back with anything newer than the promise,
//! never with anything older, and never with another unit's data.

#![allow(clippy::print_stdout, reason = "a test that fails says how to run it again")]

use crate::common::harness::Harness;
use crate::common::swarm::{self, Kind};
use prism_base::Rng;
use prism_ssd::device::SlcUsage;
use prism_ssd::{Device, Drive};

/// Lives in which power is cut after so many operations, from none on.
const SINGLE_LIVES: u64 = 40;
const SINGLE_CUTS: u64 = 200;
/// Lives of each kind of drive with many cuts each.
const KIND_LIVES: u64 = 50;
const KIND_CUTS: u64 = 100;
/// Lives of drives of any mapping by unit with many cuts each.
const MIXED_LIVES: u64 = 400;
const MIXED_CUTS: u64 = 100;
/// Lives of drives with blocks of one bit a cell, for each use of them, with many cuts each.
const TIERS_LIVES: u64 = 100;
const TIERS_CUTS: u64 = 60;
/// Lives of each kind of drive with cuts so close that cleaning never ends between two.
const SHORT_LIVES: u64 = 25;
const SHORT_CUTS: u64 = 61;

/// Seeds of a test: the one in PRISM_SEED, or those from `first` on.
fn seeds(first: u64, count: u64) -> std::ops::Range<u64> {
    match std::env::var("PRISM_SEED") {
        Ok(seed) => {
            let seed = seed.parse().expect("PRISM_SEED is a number");
            seed..seed + 1
        }
        Err(_) => first..first + count,
    }
}

/// Says how to run a test again for one seed.
fn say(seed: u64, test: &str) {
    println!("PRISM_SEED={seed} cargo test -p prism-ssd --test it power_loss::{test}");
}

fn device(seed: u64) -> Device {
    swarm::device(&mut Rng::stream(seed, "power.device"))
}

#[test]
fn cuts_are_as_many_as_promised() {
    let each = KIND_LIVES * KIND_CUTS + SHORT_LIVES * SHORT_CUTS;
    let kinds = Kind::ALL.len() as u64;
    let all = SINGLE_LIVES * SINGLE_CUTS + MIXED_LIVES * MIXED_CUTS + kinds * each;
    println!("power is cut {all} times, {each} times for each of {kinds} kinds of drives alone");
    assert!(all >= 50_000 && each >= 3_000, "{all} cuts, {each} for each kind");
}

#[test]
fn one_cut_after_every_operation() {
    for seed in seeds(0, SINGLE_LIVES) {
        say(seed, "one_cut");
        let protected = device(seed).drive.power_loss_protection;
        for operations in 0..SINGLE_CUTS {
            let mut harness = Harness::new(device(seed), seed);
            harness.run(operations);
            harness = harness.cut(seed);
            assert_eq!(harness.drive().device().drive.power_loss_protection, protected);
        }
    }
}

/// A life with cuts mostly close together, at times long enough for cleaning to be in full
/// swing, and at times before the drive has done anything at all, as if power went while it
/// came back. Then the drive works, and no block is lost.
fn many_cuts(device: Device, seed: u64, cuts: u64) {
    let mut harness = Harness::new(device, seed);
    if seed.is_multiple_of(2) {
        harness.fill();
    }
    let mut rng = Rng::stream(seed, "power.cuts");
    for _ in 0..cuts {
        let most = match rng.below(10) {
            0..2 => 1,
            2..8 => 25,
            _ => 600,
        };
        harness.run(rng.below(most));
        harness = harness.cut(seed);
    }
    harness.fill();
    harness.come_to_rest();
    harness.assert_no_block_is_lost();
}

fn many_cuts_of(kind: Kind) {
    for seed in seeds(2000, KIND_LIVES) {
        say(seed, "many_cuts_of");
        many_cuts(kind.draw(&mut Rng::stream(seed, "power.hybrid")), seed, KIND_CUTS);
    }
}

/// Both uses of blocks with one bit a cell: a fold or a cleaning that is cut off leaves copies
/// in blocks of either kind.
fn many_cuts_with_tiers(usage: SlcUsage, first: u64, name: &str) {
    for seed in seeds(first, TIERS_LIVES) {
        say(seed, name);
        many_cuts(swarm::tiers(&mut Rng::stream(seed, "power.tiers"), usage), seed, TIERS_CUTS);
    }
}

#[test]
fn many_cuts_with_a_cache() {
    many_cuts_with_tiers(SlcUsage::Cache, 3000, "many_cuts_with_a_cache");
}

#[test]
fn many_cuts_with_a_region() {
    many_cuts_with_tiers(SlcUsage::Region, 4000, "many_cuts_with_a_region");
}

/// Lives so short that cleaning never ends in one of them must not use up the erased
/// blocks: the drive still takes every write in the end.
fn short_lives_of(kind: Kind) {
    for seed in seeds(1000, SHORT_LIVES) {
        say(seed, "many_short_lives");
        let mut harness = Harness::new(kind.draw(&mut Rng::stream(seed, "power.short")), seed);
        harness.fill();
        harness.run(300);
        for operations in 1..SHORT_CUTS {
            harness = harness.cut(seed);
            harness.run(operations % 12);
        }
        harness = harness.cut(seed);
        harness.fill();
        harness.come_to_rest();
        harness.assert_no_block_is_lost();
    }
}

#[test]
fn many_cuts_in_one_life() {
    for seed in seeds(0, MIXED_LIVES / 2) {
        say(seed, "many_cuts_in_one_life");
        many_cuts(device(seed), seed, MIXED_CUTS);
    }
}

#[test]
fn many_cuts_in_other_lives() {
    for seed in seeds(300, MIXED_LIVES / 2) {
        say(seed, "many_cuts_in_other_lives");
        many_cuts(device(seed), seed, MIXED_CUTS);
    }
}

#[test]
fn many_cuts_of_mappings_by_unit() {
    Kind::ALL[..4].iter().for_each(|&kind| many_cuts_of(kind));
}

/// Merges are cut off in the middle, and their blocks must not be lost.
#[test]
fn many_cuts_of_mappings_by_block() {
    Kind::ALL[4..].iter().for_each(|&kind| many_cuts_of(kind));
}

#[test]
fn many_short_lives_leave_a_drive_that_works() {
    Kind::ALL.iter().for_each(|&kind| short_lives_of(kind));
}

#[test]
fn a_device_description_survives() {
    let device = device(1);
    let nand = device.erased_with_content();
    let drive = Drive::with_nand(device.clone(), nand, 1).unwrap();
    assert_eq!(*Drive::recover(drive.power_cut(1), 1).unwrap().device(), device);
}
