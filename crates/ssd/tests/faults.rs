//! Drives whose flash fails, against a naive model of what they should hold.
//!
//! Programs and erases fail, bits flip, blocks grow bad until a drive writes no more, and
//! power goes. Whatever happens, every unit that was acknowledged reads as what was written
//! last, or its read says that it is lost.

#![allow(clippy::print_stdout, reason = "a test that fails says how to run it again")]

#[path = "common/aged.rs"]
mod aged;
#[path = "common/swarm.rs"]
mod swarm;

use aged::{Model, often, seeds};
use prism_base::{Bytes, Rng};
use prism_engine::FaultCounts;
use prism_ssd::Device;

/// A drive with a mapping by unit whose flash fails often, with room for blocks to be retired.
fn faulty(rng: &mut Rng) -> Device {
    loop {
        let mut device = swarm::device(rng);
        device.flash.blocks_per_plane *= swarm::one_of(rng, &[2, 4, 8]);
        device.faults = Some(often(rng));
        let most = swarm::most_units(&device);
        let units = swarm::one_of(rng, &[most * 9 / 10, most * 2 / 3, most / 2]);
        device.ftl.segment = None;
        device.drive.capacity = Bytes(units * device.ftl.mapping_unit.0);
        if units >= 64 {
            device.check().unwrap();
            return device;
        }
    }
}

/// Drives of all kinds live through ten thousand faults and lose nothing in silence.
#[test]
fn a_swarm_of_failing_drives_loses_nothing_in_silence() {
    let (mut all, mut read_only, mut cuts) = (FaultCounts::default(), 0, 0);
    let mut refused = 0;
    let all_seeds = seeds(400);
    let alone = all_seeds.end - all_seeds.start == 1;
    for seed in all_seeds {
        println!("PRISM_SEED={seed} cargo test -p prism-ssd --test faults swarm");
        let mut rng = Rng::stream(seed, "faults.device");
        let device = faulty(&mut rng);
        let protected = device.drive.power_loss_protection;
        let Some(mut model) = Model::new(device, seed) else { continue };
        model.fill();
        for _ in 0..3 {
            model.run(500);
            if protected && rng.chance(0.5) {
                model = model.cut(seed);
                cuts += 1;
            }
            model.quiesce();
        }
        let health = model.drive.health().unwrap();
        assert!(health.read_only.is_none() || health.spare_blocks == 0, "{health:?}");
        all.add(model.faults());
        read_only += u32::from(health.read_only.is_some());
        refused += model.refused;
    }
    println!("{all:?}, {read_only} drives read-only, {refused} refusals, {cuts} cuts");
    let injected = all.program_failures
        + all.erase_failures
        + all.retried_units
        + all.rebuilt_units
        + all.unreadable_units
        + all.lost_units;
    let each = [all.program_failures, all.erase_failures, all.rebuilt_units, all.lost_units];
    assert!(alone || injected >= 10_000 && each.iter().all(|&count| count >= 100), "{all:?}");
    assert!(alone || read_only >= 10 && refused >= 1000 && cuts >= 50, "{read_only} {refused}");
}
