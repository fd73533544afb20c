//! Drives with SLC and other blocks and faults: SLC blocks are retired separately, a cache shrinks
//! until none is left, and no data is lost silently.

#![allow(clippy::print_stdout, reason = "a test that fails shows what it saw")]

use crate::common::aged::{Model, often};
use crate::common::harness::Harness;
use crate::common::swarm;
use prism_base::{Bytes, Rng};
use prism_engine::FaultCounts;
use prism_ssd::spec::{FaultSpec, SlcUsage};
use prism_ssd::{Drive, DriveSpec};
use prism_testkit::{all_seeds, seeds};

/// A drive with an SLC region or cache whose blocks of both kinds often fail, with spare blocks of
/// both kinds.
fn faulty(rng: &mut Rng, usage: SlcUsage) -> DriveSpec {
    loop {
        let mut device = swarm::tiers(rng, usage);
        let more = swarm::one_of(rng, &[8, 16, 32]);
        let mut faults = often(rng);
        let own = FaultSpec { kind: "slc".into(), ..often(rng) };
        faults.slc = Some(Box::new(own));
        device.faults = Some(faults);
        let slc = device.slc.as_mut().expect("it has SLC blocks");
        slc.blocks += more / 2;
        device.flash.blocks_per_plane += more + more / 2;
        device.ftl.placement_handles = device.ftl.placement_handles.min(2);
        let most = swarm::most_units(&device);
        let units = swarm::one_of(rng, &[most * 9 / 10, most * 2 / 3, most / 2]);
        device.drive.capacity = Bytes(units * device.ftl.mapping_unit.0);
        if units >= 64 && device.check().is_ok() {
            return device;
        }
    }
}

/// Events over all simulated drives.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    faults: FaultCounts,
    /// SLC blocks that grew bad.
    slc_grown: u32,
    /// Drives that became read-only, and those whose SLC blocks are all used up.
    read_only: u32,
    without_slc: u32,
    refused: u64,
    cuts: u32,
}

fn live(usage: SlcUsage, seed: u64, seen: &mut Seen) {
    let mut rng = Rng::stream(seed, "faults.tiers");
    let device = faulty(&mut rng, usage);
    let protected = device.drive.power_loss_protection;
    let Some(mut model) = Model::new(device, seed) else { return };
    model.fill();
    for _ in 0..3 {
        model.run(500);
        if protected && rng.chance(0.5) {
            model = model.cut(seed);
            seen.cuts += 1;
        }
        model.quiesce();
    }
    let health = model.drive.health().unwrap();
    assert!(health.read_only.is_none() || health.spare_blocks == 0, "{health:?}");
    let slc = health.slc.expect("two kinds");
    seen.slc_grown += slc.bad.failed_programs + slc.bad.failed_erases;
    seen.read_only += u32::from(health.read_only.is_some());
    seen.without_slc += u32::from(slc.spare_blocks == 0 && health.read_only.is_none());
    seen.refused += model.refused;
    seen.faults.add(&model.faults());
}

fn swarm_of(usage: SlcUsage) {
    let mut seen = Seen::default();
    for seed in seeds(0..150) {
        live(usage, seed, &mut seen);
    }
    println!("{usage:?}: {seen:?}");
    let failed = seen.faults.program_failures + seen.faults.erase_failures;
    assert!(!all_seeds() || failed >= 1000 && seen.slc_grown >= 200, "{failed} failed, {seen:?}");
    assert!(
        !all_seeds() || seen.read_only >= 3 && seen.refused >= 100 && seen.cuts >= 50,
        "{seen:?}"
    );
}

#[test]
fn random_failures_with_a_cache_lose_nothing_in_silence() {
    swarm_of(SlcUsage::Cache);
}

#[test]
fn random_failures_with_a_region_lose_nothing_in_silence() {
    swarm_of(SlcUsage::Region);
}

/// Forty power cuts of each unprotected drive with faults: durable data is found, and no block is
/// lost.
#[test]
fn random_cuts_without_protection() {
    let (mut faults, mut cuts, mut ended) = (FaultCounts::default(), 0, 0);
    for seed in seeds(0..80) {
        let mut rng = Rng::stream(seed, "faults.tiers.cuts");
        let usage = swarm::one_of(&mut rng, &[SlcUsage::Cache, SlcUsage::Region]);
        let mut device = faulty(&mut rng, usage);
        device.drive.power_loss_protection = false;
        let enough = device.drive.write_buffer.max(device.write_buffer_min());
        device.drive.write_buffer = enough;
        let built = device.check().and_then(|()| Drive::new(device.clone(), seed));
        if built.is_err() {
            // A region of addresses needs power-loss protection.
            continue;
        }
        let mut harness = Harness::new(device, seed);
        for _ in 0..40 {
            let most = swarm::one_of(&mut rng, &[10, 60, 600]);
            harness.run(rng.below(most));
            faults.add(&harness.drive().flash_counts().faults);
            harness = harness.cut(seed);
            cuts += 1;
            if harness.drive().read_only().is_some() {
                ended += 1;
                break;
            }
        }
        if harness.drive().read_only().is_none() {
            harness.run(400);
            harness.fill();
        }
        if harness.drive().read_only().is_none() {
            harness.come_to_rest();
            harness.assert_no_block_is_lost();
        }
    }
    println!("{cuts} cuts, {ended} drives read-only, {faults:?}");
    let failed = faults.program_failures + faults.erase_failures;
    assert!(!all_seeds() || cuts >= 1500 && failed >= 300, "{cuts} cuts, {faults:?}");
}
