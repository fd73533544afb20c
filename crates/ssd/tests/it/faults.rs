//! Drives with faults, against a naive model of their content.
//!
//! Programs and erases fail, bits flip, blocks grow bad until a drive is read-only, and power is
//! lost. In all cases a read of an acknowledged unit returns the last written data, or reports that
//! it is lost.

use crate::common::aged::{self, Met};
use crate::common::failing;
use crate::common::swarm::{self, Kind};
use prism_base::Rng;
use prism_ssd::DriveSpec;
use prism_ssd::spec::Mapping;
use prism_testkit::all_seeds;

/// [`aged::lives`] with faults added to the drives of `draw`.
fn lives(count: u64, draw: impl Fn(&mut Rng) -> DriveSpec) -> Met {
    aged::lives(count, "faults.device", |rng| failing::device(rng, &draw), |_| ())
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
