//! Drives with SLC and other blocks and faults: SLC blocks are retired separately, a cache shrinks
//! until none is left, and no data is lost silently.

#![allow(clippy::print_stdout, reason = "a test that fails shows what it saw")]

use crate::common::aged::{lives, often};
use crate::common::harness::Harness;
use crate::common::swarm;
use prism_base::{Bytes, Rng};
use prism_engine::FaultCounts;
use prism_ssd::DriveSpec;
use prism_ssd::spec::{FaultSpec, SlcUsage};
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

fn swarm_of(usage: SlcUsage) {
    // SLC blocks that grew bad, and drives whose SLC blocks are all used up.
    let (mut slc_grown, mut without_slc) = (0, 0);
    let draw = |rng: &mut Rng| faulty(rng, usage);
    let met = lives(150, "faults.tiers", draw, |health| {
        let slc = health.slc.as_ref().expect("two kinds");
        slc_grown += slc.bad.failed_programs + slc.bad.failed_erases;
        without_slc += u32::from(slc.spare_blocks == 0 && health.read_only.is_none());
    });
    println!("{usage:?}: {slc_grown} SLC blocks, all of {without_slc} drives");
    let failed = met.faults.program_failures + met.faults.erase_failures;
    assert!(!all_seeds() || failed >= 1000 && slc_grown >= 200, "{slc_grown} grown, {met:?}");
    let ends = met.read_only >= 3 && met.refused >= 100 && met.cuts >= 50;
    assert!(!all_seeds() || ends, "{met:?}");
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
        // A region of addresses needs power-loss protection.
        let Ok(harness) = Harness::made(device, seed) else { continue };
        let harness = harness.survive(40, 60, seed, &mut rng);
        faults.add(&harness.faults());
        cuts += harness.cuts();
        ended += u32::from(harness.drive().read_only().is_some());
    }
    println!("{cuts} cuts, {ended} drives read-only, {faults:?}");
    let failed = faults.program_failures + faults.erase_failures;
    assert!(!all_seeds() || cuts >= 1500 && failed >= 300, "{cuts} cuts, {faults:?}");
}
