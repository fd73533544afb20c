//! Drives with faults, against a naive model of their content.
//!
//! Programs and erases fail, bits flip, blocks grow bad until a drive is read-only, and power is
//! lost. In all cases a read of an acknowledged unit returns the last written data, or reports that
//! it is lost.

#![allow(clippy::print_stdout, reason = "a test that fails shows what it saw")]

use crate::common::aged::Model;
use crate::common::failing;
use crate::common::swarm::{self, Kind};
use prism_base::Rng;
use prism_engine::FaultCounts;
use prism_ssd::DriveSpec;
use prism_ssd::spec::Mapping;
use prism_testkit::{all_seeds, seeds};

/// Faults and events over all simulated drives.
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

/// Simulates random drives, one for each seed: filled, then written, read, trimmed and flushed,
/// with some losses of power if they are protected.
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
        met.faults.add(&model.faults());
        met.read_only += u32::from(health.read_only.is_some());
        met.refused += model.refused;
    }
    println!("{met:?}");
    met
}

/// Drives of all kinds survive ten thousand faults without silent data loss.
#[test]
fn random_failing_drives_lose_nothing_in_silence() {
    let met = lives(150, swarm::device);
    let all = met.faults;
    let each = [all.program_failures, all.erase_failures, all.rebuilt_units, all.lost_units];
    let enough = met.injected() >= 10_000 && each.iter().all(|&count| count >= 100);
    let ends = met.read_only >= 10 && met.refused >= 1000 && met.cuts >= 50;
    assert!(!all_seeds() || enough && ends, "{met:?}");
}

/// Each block-level and hybrid mapping, and ranges, by themselves: blocks fail during merges.
fn failures_of(kind: Kind) {
    let met = lives(60, |rng| kind.draw(rng));
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
