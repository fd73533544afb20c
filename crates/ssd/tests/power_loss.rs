//! What was promised durable is there after power was cut, wherever it was cut.
//!
//! The drives are drawn at random ([`swarm`]). The model ([`harness`]) keeps, for each
//! mapping unit, what has happened to it and since when that is promised. A drive may
//! come back with anything newer than the promise, never with anything older, and never
//! with another unit's data.

#![allow(clippy::print_stdout, reason = "a test that fails says how to run it again")]

#[path = "common/harness.rs"]
mod harness;
#[path = "common/swarm.rs"]
mod swarm;

use harness::Harness;
use prism_base::Rng;
use prism_ssd::{Device, Drive};

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

fn device(seed: u64) -> Device {
    swarm::device(&mut Rng::stream(seed, "power.device"))
}

#[test]
fn one_cut_after_every_operation() {
    for seed in seeds(0, 40) {
        println!("PRISM_SEED={seed} cargo test -p prism-ssd --test power_loss one_cut");
        let protected = device(seed).drive.power_loss_protection;
        for operations in 0..200 {
            let mut harness = Harness::new(device(seed), seed);
            harness.run(operations);
            harness = harness.cut(seed);
            assert_eq!(harness.drive().device().drive.power_loss_protection, protected);
        }
    }
}

/// Lives of a drive with cuts mostly close together, at times long enough for cleaning
/// to be in full swing, and at times before the drive has done anything at all.
fn many_cuts(first: u64) {
    for seed in seeds(first, 300) {
        println!("PRISM_SEED={seed} cargo test -p prism-ssd --test power_loss many_cuts");
        let mut harness = Harness::new(device(seed), seed);
        if seed.is_multiple_of(2) {
            harness.fill();
        }
        let mut rng = Rng::stream(seed, "power.cuts");
        for _ in 0..100 {
            let most = match rng.below(10) {
                0..2 => 1,
                2..8 => 25,
                _ => 600,
            };
            harness.run(rng.below(most));
            harness = harness.cut(seed);
        }
        harness.come_to_rest();
    }
}

#[test]
fn many_cuts_in_one_life() {
    many_cuts(0);
}

#[test]
fn many_cuts_in_other_lives() {
    many_cuts(300);
}

/// The hybrid mapping saves its map, but merges are cut off in the middle, and their blocks
/// must not be lost.
#[test]
fn many_cuts_in_hybrid_lives() {
    for seed in seeds(2000, 300) {
        println!("PRISM_SEED={seed} cargo test -p prism-ssd --test power_loss hybrid_lives");
        let device = swarm::by_block(&mut Rng::stream(seed, "power.hybrid"));
        let mut harness = Harness::new(device, seed);
        if seed.is_multiple_of(2) {
            harness.fill();
        }
        let mut rng = Rng::stream(seed, "power.cuts");
        for _ in 0..100 {
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
    }
}

/// Lives so short that cleaning never ends in one of them must not use up the erased
/// blocks: the drive still takes every write in the end.
#[test]
fn many_short_lives_leave_a_drive_that_works() {
    for seed in seeds(1000, 200) {
        println!("PRISM_SEED={seed} cargo test -p prism-ssd --test power_loss short_lives");
        let mut harness = Harness::new(device(seed), seed);
        harness.fill();
        harness.run(300);
        for operations in 0..60 {
            harness = harness.cut(seed);
            harness.run(operations % 12);
        }
        harness = harness.cut(seed);
        harness.fill();
        harness.come_to_rest();
    }
}

#[test]
fn a_device_description_survives() {
    let device = device(1);
    let nand = device.erased_with_content();
    let drive = Drive::with_nand(device.clone(), nand, 1).unwrap();
    assert_eq!(*Drive::recover(drive.power_cut(), 1).unwrap().device(), device);
}
