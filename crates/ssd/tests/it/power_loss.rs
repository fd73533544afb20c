//! Durable data is found after a power cut at any time.
//!
//! The drives are random ([`swarm`]), with and without power-loss protection, with one to four bits
//! per cell. The model ([`Harness`]) keeps the contents of each mapping unit and which of them is
//! durable. A recovered drive may have newer contents than the durable one, never older ones, and
//! never data of another unit.

use crate::common::harness::Harness;
use crate::common::swarm::{self, Kind};
use prism_base::Rng;
use prism_ssd::spec::SlcUsage;
use prism_ssd::{Drive, DriveSpec};
use prism_testkit::{all_seeds, seeds};

/// Power cuts in all tests of this file, and in the tests of each kind of drive: README.md and
/// TESTING.md state these numbers. Each test counts its cuts and compares the count with its part
/// of the sum.
const ALL_CUTS: u64 = SINGLE.cuts()
    + 2 * MIXED.cuts()
    + 2 * TIERS.cuts()
    + Kind::ALL.len() as u64 * (KIND.cuts() + SHORT.cuts());
const _: () = assert!(ALL_CUTS == 101_725);
const _: () = assert!(KIND.cuts() + SHORT.cuts() == 5_525);

/// Drives with one cut each, after an increasing number of operations, from 0 on.
const SINGLE: Lives = Lives { first: 0, drives: 40, cuts_each: 200 };
/// Drives of any page-level mapping with many cuts each, in two tests.
const MIXED: Lives = Lives { first: 0, drives: 160, cuts_each: 100 };
/// Drives of each kind with many cuts each.
const KIND: Lives = Lives { first: 2000, drives: 40, cuts_each: 100 };
/// Drives with SLC blocks, for each use of them, with many cuts each.
const TIERS: Lives = Lives { first: 3000, drives: 100, cuts_each: 60 };
/// Drives of each kind with cuts so close that cleaning never ends between two.
const SHORT: Lives = Lives { first: 1000, drives: 25, cuts_each: 61 };

/// The number of drives, one for each seed, and of power cuts of each.
#[derive(Clone, Copy)]
struct Lives {
    first: u64,
    drives: u64,
    cuts_each: u64,
}

impl Lives {
    const fn cuts(&self) -> u64 {
        self.drives * self.cuts_each
    }

    const fn starting_at(self, first: u64) -> Self {
        Self { first, ..self }
    }

    /// Runs `life` with each seed. It returns the number of power cuts, whose sum has to be the
    /// stated one.
    fn run(&self, life: impl Fn(u64) -> u64) {
        let cuts: u64 = seeds(self.first..self.first + self.drives).map(life).sum();
        assert!(!all_seeds() || cuts == self.cuts(), "{cuts} cuts, not {}", self.cuts());
    }
}

fn device(seed: u64) -> DriveSpec {
    swarm::device(&mut Rng::stream(seed, "power.device"))
}

#[test]
fn random_cuts_after_every_operation() {
    SINGLE.run(|seed| {
        let protected = device(seed).drive.power_loss_protection;
        let one = |operations| {
            let mut harness = Harness::new(device(seed), seed);
            harness.run(operations);
            harness = harness.cut(seed);
            assert_eq!(harness.drive().device().drive.power_loss_protection, protected);
            harness.cuts()
        };
        (0..SINGLE.cuts_each).map(one).sum()
    });
}

/// [`Harness::survive`] of a drive that works afterwards. Returns the number of cuts.
fn many_cuts(device: DriveSpec, seed: u64, cuts: u64) -> u64 {
    let mut harness = Harness::new(device, seed);
    if seed.is_multiple_of(2) {
        harness.fill();
    }
    let harness = harness.survive(cuts, 25, seed, &mut Rng::stream(seed, "power.cuts"));
    assert!(harness.drive().read_only().is_none(), "its flash does not fail");
    harness.cuts()
}

fn many_cuts_of(kind: Kind) {
    let draw = |seed| kind.draw(&mut Rng::stream(seed, "power.hybrid"));
    KIND.run(|seed| many_cuts(draw(seed), seed, KIND.cuts_each));
}

/// For both uses of SLC blocks: an interrupted fold or cleaning leaves copies in blocks of either
/// kind.
fn many_cuts_with_tiers(usage: SlcUsage, lives: Lives) {
    let draw = |seed| swarm::tiers(&mut Rng::stream(seed, "power.tiers"), usage);
    lives.run(|seed| many_cuts(draw(seed), seed, lives.cuts_each));
}

#[test]
fn random_cuts_with_a_cache() {
    many_cuts_with_tiers(SlcUsage::Cache, TIERS);
}

#[test]
fn random_cuts_with_a_region() {
    many_cuts_with_tiers(SlcUsage::Region, TIERS.starting_at(4000));
}

/// If every cut is so early that cleaning never ends before it, erased blocks must not run out: the
/// drive still accepts every write in the end.
fn short_lives_of(kind: Kind) {
    SHORT.run(|seed| {
        let mut harness = Harness::new(kind.draw(&mut Rng::stream(seed, "power.short")), seed);
        harness.fill();
        harness.run(300);
        for operations in 1..SHORT.cuts_each {
            harness = harness.cut(seed);
            harness.run(operations % 12);
        }
        harness = harness.cut(seed);
        harness.fill();
        harness.come_to_rest();
        harness.assert_no_block_is_lost();
        harness.cuts()
    });
}

#[test]
fn random_cuts_in_one_life() {
    MIXED.run(|seed| many_cuts(device(seed), seed, MIXED.cuts_each));
}

#[test]
fn random_cuts_in_other_lives() {
    let lives = MIXED.starting_at(300);
    lives.run(|seed| many_cuts(device(seed), seed, MIXED.cuts_each));
}

#[test]
fn random_cuts_of_page_level_mappings() {
    Kind::ALL[..4].iter().for_each(|&kind| many_cuts_of(kind));
}

/// Merges are interrupted, and their blocks must not be lost.
#[test]
fn random_cuts_of_block_level_mappings() {
    Kind::ALL[4..].iter().for_each(|&kind| many_cuts_of(kind));
}

#[test]
fn random_short_lives_leave_a_drive_that_works() {
    Kind::ALL.iter().for_each(|&kind| short_lives_of(kind));
}

#[test]
fn a_device_description_survives() {
    let device = device(1);
    let nand = device.erased_with_content();
    let drive = Drive::with_nand(device.clone(), nand, 1).unwrap();
    assert_eq!(*Drive::recover(drive.power_cut(1), 1).unwrap().device(), device);
}
