//! Drives whose flash fails, against a naive model of what they should hold.
//!
//! Programs and erases fail, bits flip, blocks grow bad until a drive writes no more, and
//! power goes. Whatever happens, every unit that was acknowledged reads as what was written
//! last, or its read says that it is lost.

#![allow(clippy::print_stdout, reason = "a test that fails shows what it saw")]

use crate::common::aged::Model;
use crate::common::failing;
use crate::common::swarm::{self, Kind};
use prism_base::Rng;
use prism_engine::FaultCounts;
use prism_ssd::DriveSpec;
use prism_ssd::spec::Mapping;
use prism_testkit::{all_seeds, seeds};

/// What lives of failing drives have met.
#[derive(Debug, Default)]
struct Met {
    faults: FaultCounts,
    /// Drives that became read-only, requests that were refused, and losses of power.
    read_only: u32,
    refused: u64,
    cuts: u32,
}

impl Met {
    fn injected(&self) -> u64 {
        let all = self.faults;
        let failures = all.program_failures + all.erase_failures;
        failures + all.retried_units + all.rebuilt_units + all.unreadable_units + all.lost_units
    }
}

/// Lives of drives that `draw` draws, one for each seed: filled, then written, read, trimmed and
/// flushed, and if they are protected without power now and then.
fn lives(count: u64, draw: impl Fn(&mut Rng) -> DriveSpec) -> Met {
    let mut met = Met::default();
    for seed in seeds(0..count) {
        let mut rng = Rng::stream(seed, "faults.device");
        let device = failing::device(&mut rng, &draw);
        let protected = device.drive.power_loss_protection;
        let Some(mut model) = Model::new(device, seed) else { continue };
        model.fill();
        for _ in 0..3 {
            model.run(500);
            if protected && rng.chance(0.5) {
                model = model.cut(seed);
                met.cuts += 1;
            }
            model.quiesce();
        }
        let health = model.drive.health().unwrap();
        assert!(health.read_only.is_none() || health.spare_blocks == 0, "{health:?}");
        met.faults.add(model.faults());
        met.read_only += u32::from(health.read_only.is_some());
        met.refused += model.refused;
    }
    println!("{met:?}");
    met
}

/// Drives of all kinds live through ten thousand faults and lose nothing in silence.
#[test]
fn random_failing_drives_lose_nothing_in_silence() {
    let met = lives(400, swarm::device);
    let all = met.faults;
    let each = [all.program_failures, all.erase_failures, all.rebuilt_units, all.lost_units];
    let enough = met.injected() >= 10_000 && each.iter().all(|&count| count >= 100);
    let ends = met.read_only >= 10 && met.refused >= 1000 && met.cuts >= 50;
    assert!(!all_seeds() || enough && ends, "{met:?}");
}

/// Each mapping by block, and ranges, by themselves: merges meet blocks that fail.
fn failures_of(kind: Kind) {
    let met = lives(100, |rng| kind.draw(rng));
    let all = met.faults;
    let each = [all.program_failures, all.erase_failures, all.lost_units];
    let enough = met.injected() >= 1000 && each.iter().all(|&count| count >= 100);
    let ends = met.read_only >= 3 && met.refused >= 100 && met.cuts >= 20;
    assert!(!all_seeds() || enough && ends, "{met:?}");
}

#[test]
fn random_failures_of_block_mapping() {
    failures_of(Kind::ByBlock(Mapping::Block));
}

#[test]
fn random_failures_of_bast() {
    failures_of(Kind::ByBlock(Mapping::Bast));
}

#[test]
fn random_failures_of_fast() {
    failures_of(Kind::ByBlock(Mapping::Fast));
}

#[test]
fn random_failures_of_data_groups() {
    failures_of(Kind::ByBlock(Mapping::Hybrid));
}

#[test]
fn random_failures_of_ranges() {
    failures_of(Kind::Ranges);
}
