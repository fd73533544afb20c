//! Flash failures combined with losses of power.
//!
//! Bits do not flip here, so that nothing may be lost: whichever operation fails and whenever power
//! is cut, durable data is found ([`Harness`]), and a block is either used, erased and free, or
//! bad.

#![allow(clippy::print_stdout, reason = "a test that fails shows what it saw")]

use crate::common::failing;
use crate::common::harness::Harness;
use crate::common::swarm::{self, Kind};
use prism_base::Rng;
use prism_engine::FaultCounts;
use prism_ssd::DriveSpec;
use prism_ssd::spec::Mapping;
use prism_testkit::{all_seeds, seeds};

/// Drives of each kind, and power cuts of each drive.
const LIVES: u64 = 40;
const CUTS: u64 = 40;

/// A drive of `kind` whose programs and erases often fail, and whose bits do not flip.
fn failing(kind: Kind, rng: &mut Rng) -> DriveSpec {
    let mut device = failing::device(rng, |rng| kind.draw(rng));
    let faults = device.faults.as_mut().expect("it ages");
    faults.rber_fresh = Some(0.0);
    (faults.rber_wear, faults.rber_year) = (Some(0.0), Some(0.0));
    faults.program_failure = Some(swarm::one_of(rng, &[0.001, 0.003, 0.01]));
    device
}

/// Many cuts of each drive, mostly close together; afterwards the drive works, or is read-only.
fn many_cuts(kind: Kind) {
    let (mut all, mut read_only, mut lives) = (FaultCounts::default(), 0, 0);
    for seed in seeds(0..LIVES) {
        let mut rng = Rng::stream(seed, "faults.power");
        let device = failing(kind, &mut rng);
        let Ok(mut harness) = Harness::made(device, seed) else { continue };
        lives += 1;
        harness.fill();
        let harness = harness.survive(CUTS, 60, seed, &mut rng);
        all.add(&harness.faults());
        read_only += u32::from(harness.drive().read_only().is_some());
    }
    println!("{lives} lives, {all:?}, {read_only} read-only");
    let injected = all.program_failures + all.erase_failures;
    assert!(!all_seeds() || injected >= 600 && read_only >= 3, "{all:?}, {read_only} read-only");
}

#[test]
fn random_cuts_of_block_mapping() {
    many_cuts(Kind::ByBlock(Mapping::Block));
}

#[test]
fn random_cuts_of_bast() {
    many_cuts(Kind::ByBlock(Mapping::Bast));
}

#[test]
fn random_cuts_of_fast() {
    many_cuts(Kind::ByBlock(Mapping::Fast));
}

#[test]
fn random_cuts_of_data_groups() {
    many_cuts(Kind::ByBlock(Mapping::Hybrid));
}

#[test]
fn random_cuts_of_ranges() {
    many_cuts(Kind::Ranges);
}
