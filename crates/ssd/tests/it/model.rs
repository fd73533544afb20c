//! A whole drive against a naive model: a hash map from mapping units to their content.
//!
//! Random requests of all kinds at random times; once the drive is idle, it has the content of the
//! model, every request has completed exactly once, and the flash operations of each cause are
//! accounted for.

#![allow(clippy::print_stdout, reason = "a test that fails shows what it saw")]

use crate::common::model::{Model, Weights};
use crate::common::swarm;
use prism_base::{Bytes, Rng};
use prism_ftl::{Frontiers, VictimPolicy};
use prism_nand::Cause;
use prism_ssd::spec::{SlcUsage, WriteCache};
use prism_ssd::{Drive, DriveSpec};
use prism_testkit::{all_seeds, seeds};

/// Random requests to a drive of each of `count` seeds, against the model; `seen` gets the drive at
/// the end.
fn agree(
    count: u64,
    label: &str,
    draw: impl Fn(&mut Rng, u64) -> DriveSpec,
    mut seen: impl FnMut(&Drive),
) {
    for seed in seeds(0..count) {
        let mut rng = Rng::stream(seed, label);
        let device = draw(&mut rng, seed);
        let weights = Weights::drawn(&mut rng);
        let mut model = Model::new(device, weights, seed);
        model.fill();
        for _ in 0..3 {
            model.run(400);
            model.quiesce();
        }
        seen(model.drive());
    }
}

#[test]
fn random_drives_agree_with_a_hash_map() {
    agree(500, "model.device", |rng, _| swarm::device(rng), |_| ());
}

#[test]
fn random_hybrid_drives_agree_with_a_hash_map() {
    agree(500, "model.hybrid", |rng, _| swarm::by_block(rng), |_| ());
}

/// Both uses of SLC blocks.
#[test]
fn random_drives_with_two_kinds_of_blocks_agree_with_a_hash_map() {
    let (mut folded, mut cleaned, mut overflowed) = (0, 0, 0);
    let draw = |rng: &mut Rng, seed: u64| {
        swarm::tiers(rng, [SlcUsage::Cache, SlcUsage::Region][(seed % 2) as usize])
    };
    agree(300, "model.tiers", draw, |drive| {
        let counts = drive.flash_counts();
        folded += u32::from(counts.units[Cause::Fold] > 0);
        cleaned += u32::from(counts.slc_units[Cause::Gc] > 0);
        overflowed += u32::from(counts.slc_overflow > 0);
    });
    if all_seeds() {
        let seen = [folded, cleaned, overflowed];
        assert!(seen.iter().all(|&drives| drives > 50), "drives with each operation: {seen:?}");
    }
}

/// Every tiny geometry with every policy at the largest capacity: it works, or is refused.
#[test]
fn every_tiny_geometry_works_or_is_refused() {
    let (mut ran, mut refused) = (0, 0);
    let policies = VictimPolicy::EXAMPLES.len() as u32;
    for number in 0..2 * 2 * 3 * 4 * 2 * 2 * policies {
        for blocks in 3..9 {
            let device = tiny_geometry(number, blocks);
            let most = swarm::most_units(&device);
            if most == 0 {
                let mut least = device;
                least.drive.capacity = least.ftl.mapping_unit;
                assert!(least.check().is_err(), "refused at any capacity");
                refused += 1;
                continue;
            }
            println!("geometry {number}, {blocks} blocks a plane, {most} units");
            let mut device = device;
            device.drive.capacity = Bytes(most * device.ftl.mapping_unit.0);
            device.check().unwrap();
            let mut rng = Rng::stream(u64::from(number), "tiny.weights");
            let mut model = Model::new(device, Weights::drawn(&mut rng), u64::from(number));
            model.fill();
            model.run(60);
            model.quiesce();
            ran += 1;
        }
    }
    assert!(ran > 1000 && refused > 100, "{ran} ran, {refused} were refused");
}

/// The geometry and policies encoded by the digits of `number`.
fn tiny_geometry(number: u32, blocks: u32) -> DriveSpec {
    let mut rest = number;
    let mut digit = |base: u32| {
        let digit = rest % base;
        rest /= base;
        digit
    };
    let mut device = DriveSpec::preset("consumer-nvme").unwrap();
    device.flash.channels = 1 + digit(2);
    device.flash.dies_per_channel = 1 + digit(2);
    let planes = digit(3);
    device.flash.planes = if planes == 0 { 1 } else { 2 };
    device.flash.multi_plane = planes == 2;
    device.flash.pages_per_block = 1 + digit(4);
    device.flash.pages_per_program = 1;
    device.ftl.mapping_unit = Bytes(4096);
    device.flash.page = Bytes(4096 * u64::from(1 + digit(2)));
    device.ftl.frontiers = [Frontiers::Shared, Frontiers::Separate][digit(2) as usize];
    device.ftl.victim = VictimPolicy::EXAMPLES[digit(VictimPolicy::EXAMPLES.len() as u32) as usize];
    device.flash.blocks_per_plane = blocks;
    device.ftl.free_blocks_low = 2;
    device.ftl.free_blocks_high = 2 + number % 2;
    device.drive.power_loss_protection = number.is_multiple_of(3);
    device.drive.write_buffer = device.write_buffer_min();
    device.drive.write_cache =
        if number.is_multiple_of(5) { WriteCache::WriteThrough } else { WriteCache::WriteBack };
    device
}
