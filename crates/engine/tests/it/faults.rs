//! The immediate engine on flash that fails: the map stays correct, blocks retire, and the FTL
//! becomes read-only before it cannot make progress.

#![allow(clippy::print_stdout, reason = "a test that fails shows what it saw")]

use prism_base::{Bytes, Nanos, Rng};
use prism_engine::Immediate;
use prism_ftl::{Frontiers, Ftl, PageConfig, PageMap, VictimPolicy};
use prism_nand::faults::FailureLaw;
use prism_nand::{Cause, DieGroupId, FaultModel, Geometry, Nand, UnitTag};
use prism_testkit::{all_seeds, seeds};

fn geometry(rng: &mut Rng) -> Geometry {
    let dies = 1 + rng.below(3) as u32;
    let together = rng.chance(0.4) && dies > 1;
    Geometry {
        channels: dies,
        blocks_per_plane: 40 + rng.below(60) as u32,
        pages_per_block: 4 + rng.below(8) as u32,
        dies_per_superblock: if together { dies } else { 1 },
        parity: together && rng.chance(0.5),
        page: Bytes(4096 * (1 + rng.below(2))),
        ..Geometry::SMALLEST
    }
}

fn model(rng: &mut Rng) -> FaultModel {
    let mut model = FaultModel::of_kind("tlc", 1000).unwrap();
    model.factory_bad = 0.02 * rng.unit();
    model.program = FailureLaw { at_endurance: 0.002 * rng.unit(), exponent: 0.0 };
    model.erase = FailureLaw { at_endurance: 0.02 * rng.unit(), exponent: 0.0 };
    model.age = Nanos::ZERO;
    model
}

/// Victim policies that examine their candidates in different ways.
const POLICIES: [VictimPolicy; 4] = [
    VictimPolicy::Greedy,
    VictimPolicy::Fifo,
    VictimPolicy::Random,
    VictimPolicy::DChoices { d: 3 },
];

/// An FTL with a capacity of the fraction `share` of the flash.
fn config(geometry: &Geometry, share: f64, rng: &mut Rng) -> PageConfig {
    let victim = POLICIES[rng.below(4) as usize];
    let frontiers = Frontiers::ALL[rng.below(3) as usize];
    let mut config = PageConfig::simple(1, victim, frontiers);
    (config.reserve_blocks, config.free_blocks_low, config.free_blocks_high) = (3, 4, 5);
    let data = f64::from(geometry.blocks() * geometry.data_units_per_block());
    config.logical_units = (data * share) as u32;
    config
}

#[test]
fn random_failures_leave_a_correct_map() {
    let (mut failures, mut retired, mut ended) = (0, 0, 0);
    for seed in seeds(0..60) {
        let mut rng = Rng::stream(seed, "immediate.faults");
        let geometry = geometry(&mut rng);
        let config = config(&geometry, 0.4 + 0.2 * rng.unit(), &mut rng);
        if config.check(&geometry).is_err() {
            continue;
        }
        let logical = config.logical_units;
        let mut nand = Nand::with_content(geometry.clone());
        nand.set_faults(model(&mut rng), seed);
        let mut map = PageMap::new(geometry.clone(), config, seed).unwrap();
        if map.set_aside(nand.bad_blocks()).is_err() {
            continue;
        }
        let mut engine = Immediate::new(nand, Ftl::from(map));
        let mut newest = vec![0; logical as usize];
        for version in 1..=u64::from(logical) * 8 {
            if engine.ftl().is_read_only() {
                break;
            }
            let lpn = rng.below(u64::from(logical)) as u32;
            engine.write(lpn, version);
            newest[lpn as usize] = version;
        }
        let read_only = engine.ftl().is_read_only();
        engine.flush();
        engine.ftl().assert_consistent();
        engine.flash().assert_conserved();
        // The last program unit of each stream may not have been accepted any more.
        let mut missing = 0;
        for (lpn, &version) in (0..).zip(&newest) {
            let Some(at) = engine.ftl().lookup(lpn) else {
                missing += u32::from(version > 0);
                continue;
            };
            let unit = engine.flash().read(at).unwrap().expect("content is kept");
            assert_eq!(unit.tag, UnitTag::Data(lpn), "seed {seed}");
            missing += u32::from(unit.version != version);
        }
        let most = if read_only { 2 * geometry.units_per_program_unit() } else { 0 };
        assert!(missing <= most, "seed {seed}: {missing} units are missing, {most} may be");
        let counts = engine.counts();
        let health = engine.flash().health();
        let program_units = engine.flash().program_units_programmed_total()
            * u64::from(geometry.pages_per_program_unit());
        assert_eq!(counts.programs.total(), program_units, "failed programs count as programs");
        assert_eq!(counts.erases.total(), engine.flash().erases_total());
        assert!(u64::from(health.failed_programs) <= counts.faults.program_failures);
        retired += counts.units[Cause::Retire];
        failures += counts.faults.program_failures + counts.faults.erase_failures;
        ended += u32::from(read_only);
        let free: u32 =
            (0..geometry.die_groups()).map(|l| engine.ftl().free_blocks(DieGroupId(l))).sum();
        assert!(free + health.factory_bad < geometry.blocks());
    }
    println!("{failures} failures, {retired} units moved for them, {ended} drives at their end");
    assert!(!all_seeds() || failures > 500 && retired > 500 && ended > 3);
}
