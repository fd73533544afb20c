//! The closed forms at values computed by hand, and failure counts against their expectation.

use prism_base::{Nanos, SimTime};

use super::*;
use crate::{BlockId, Geometry, Nand, ProgramUnitId, Pun, Status};

fn near(ours: f64, expected: f64, slack: f64) {
    assert!((ours / expected - 1.0).abs() < slack, "{ours} is not {expected}");
}

const YEAR: Nanos = Nanos(365 * 86_400 * 1_000_000_000);

#[test]
fn tails_match_values_computed_by_hand() {
    // Of 3 bits with p = 1/2: more than 1 wrong is 4 of 8, more than 2 is 1 of 8.
    near(binomial_tail(3, 0.5, 1), 0.5, 1e-12);
    near(binomial_tail(3, 0.5, 2), 0.125, 1e-12);
    near(binomial_tail(3, 0.5, 0), 0.875, 1e-12);
    // Any error at all in 8192 bits.
    near(binomial_tail(8192, 1e-4, 0), 1.0 - (1.0f64 - 1e-4).powi(8192), 1e-9);
    assert_eq!(
        (binomial_tail(8, 0.0, 0), binomial_tail(8, 1.0, 7), binomial_tail(8, 0.3, 8)),
        (0.0, 1.0, 0.0)
    );
    // The sums on both sides of the mean of 81.92 agree.
    let mut last = 1.0;
    for most in 0..200 {
        let tail = binomial_tail(8192, 0.01, most);
        assert!(tail < last || most < 30 && tail <= last, "{most}: {tail} after {last}");
        last = tail;
    }
}

#[test]
fn failures_follow_a_power_law_and_then_a_steeper_one() {
    let law = FailureLaw { at_endurance: 1e-5, exponent: 3.0 };
    near(law.probability(1.0), 1e-5, 1e-12);
    near(law.probability(0.5), 1e-5 / 8.0, 1e-12);
    near(law.probability(1.5), 1e-5 * 656.840_835_571_289, 1e-9);
    assert_eq!((law.probability(0.0), law.probability(10.0)), (0.0, 1.0));
}

#[test]
fn bit_errors_match_values_computed_by_hand() {
    let bits = BitErrors {
        fresh: 1e-6,
        cycled: 1e-4,
        wear_exponent: 2.0,
        aged: 4e-4,
        aged_exponent: 1.0,
        years_exponent: 0.5,
        types: PageFactors::by_type(&[0.5, 2.0]).unwrap(),
    };
    near(bits.rate(0.0, YEAR, 0), 0.5e-6, 1e-12);
    // 1e-6 + 1e-4 / 4 + 4e-4 / 2 * sqrt(1/4)
    near(bits.rate(0.5, Nanos(YEAR.0 / 4), 1), 2.0 * 1.26e-4, 1e-9);
    near(bits.rate(1.0, YEAR, 2), 0.5 * 5.01e-4, 1e-9);
    assert_eq!((PageFactors::by_type(&[]), PageFactors::by_type(&[1.0; 9])), (None, None));
}

#[test]
fn uncorrectable_errors_grow_with_wear_and_age_and_shrink_with_retries() {
    for kind in FaultModel::KINDS {
        let model = FaultModel::of_kind(kind, 3000).unwrap();
        let lost = |wear: f64, months: u64, attempt: u32| {
            let rate = model.bits.rate(wear, Nanos(YEAR.0 / 12 * months), 0);
            model.ecc.failure(rate, attempt, 4096 * 8)
        };
        let grows = |series: Vec<f64>| assert!(series.is_sorted(), "{kind}: {series:?}");
        grows((0..60).map(|tenth| lost(f64::from(tenth) / 10.0, 6, 0)).collect());
        grows((0..60).map(|months| lost(2.0, months, 0)).collect());
        grows((0..=model.ecc.retries).rev().map(|attempt| lost(3.0, 12, attempt)).collect());
        // At its endurance a drive reads data after a year; at six times that it does not.
        let worst = model.bits.types.all().len() as u32 - 1;
        let at = |wear| {
            model.ecc.failure(model.bits.rate(wear, YEAR, worst), model.ecc.retries, 4096 * 8)
        };
        assert!(at(1.0) < 1e-11, "{kind}: {}", at(1.0));
        assert!(at(6.0) > 1e-6, "{kind}: {}", at(6.0));
    }
    assert_eq!(FaultModel::of_kind("plc", 100), None);
}

/// Data sheets promise that at most 2 % of blocks are or grow bad within the endurance.
#[test]
fn cell_types_lose_a_few_blocks_within_their_endurance() {
    for (kind, endurance, program_units) in
        [("slc", 100_000, 64), ("mlc", 10_000, 128), ("tlc", 3000, 384), ("qlc", 1000, 512)]
    {
        let model = FaultModel::of_kind(kind, endurance).unwrap();
        let hazard: f64 = (0..endurance)
            .map(|cycle| {
                let wear = model.wear_of(cycle);
                f64::from(program_units) * model.program.probability(wear)
                    + model.erase.probability(wear)
            })
            .sum();
        let bad = model.factory_bad + 1.0 - (-hazard).exp();
        assert!((0.01..0.05).contains(&bad), "{kind}: {bad}");
    }
}

fn device(blocks: u32, model: FaultModel) -> Nand {
    let mut nand =
        Nand::new(Geometry { blocks_per_plane: blocks, pages_per_block: 16, ..Geometry::SMALLEST });
    nand.set_faults(model, 7);
    nand
}

fn program(nand: &mut Nand, program_units: u32) {
    for program_unit in (0..program_units).map(ProgramUnitId) {
        nand.program_begin(program_unit, []).unwrap();
        nand.program_end(program_unit);
    }
}

/// Checks that `count` of `of` events with probability `p` is within five standard deviations.
fn within(what: &str, count: u64, of: u64, p: f64) {
    let (mean, deviation) = (of as f64 * p, (of as f64 * p * (1.0 - p)).sqrt());
    let off = (count as f64 - mean) / deviation;
    assert!(off.abs() < 5.0, "{what}: {count} of {of}, expected {mean:.0}: {off:.1} deviations");
}

#[test]
fn operations_fail_as_often_as_the_model_says() {
    let mut model = FaultModel::of_kind("tlc", 100).unwrap();
    model.factory_bad = 0.02;
    model.program.at_endurance = 0.01;
    model.erase.at_endurance = 0.05;
    model.wear = 50;
    let mut nand = device(4000, model);
    within("factory", u64::from(nand.health().factory_bad), 4000, 0.02);
    let (mut programs, mut failed, mut erased, mut stuck) = (0u64, 0u64, 0u64, 0u64);
    for block in (0..4000).map(BlockId).filter(|&block| !nand.is_bad(block)).collect::<Vec<_>>() {
        for program_unit in 0..16 {
            let program_unit = ProgramUnitId(block.0 * 16 + program_unit);
            nand.program_begin(program_unit, []).unwrap();
            programs += 1;
            let status = nand.program_end(program_unit);
            assert_eq!(nand.holds(program_unit), status == Status::Passed);
            failed += u64::from(status == Status::Failed);
        }
        nand.erase_begin(block, 0).unwrap();
        erased += 1;
        stuck += u64::from(nand.erase_end(block, 0) == Status::Failed);
    }
    within("programs", failed, programs, 0.01 / 8.0);
    within("erases", stuck, erased, 0.05 / 8.0);
    let health = nand.health();
    // A block may fail twice.
    let grown = u64::from(health.failed_programs + health.failed_erases);
    assert!(grown <= failed + stuck && grown + 20 > failed + stuck, "{health:?}");
    assert_eq!(nand.erases_total(), erased - stuck);
    assert_eq!(nand.bad_blocks().count() as u64, grown + u64::from(health.factory_bad));
    nand.assert_conserved();
}

#[test]
fn units_are_lost_and_retried_as_often_as_the_model_says() {
    let mut compared = 0;
    for (wear, kind) in [(3200, 2), (3900, 1), (4700, 0)] {
        let mut model = FaultModel::of_kind("tlc", 1000).unwrap();
        (model.factory_bad, model.wear, model.age) = (0.0, wear, YEAR);
        let mut nand = device(4000, model.clone());
        program(&mut nand, 64_000);
        let (mut count, mut lost, mut again) = (0, 0, [0; 6]);
        for unit in (0..64_000).filter(|unit| unit % 16 % 3 == kind) {
            let read = nand.read_unit(Pun(unit), SimTime::ZERO);
            count += 1;
            lost += u64::from(read.lost);
            (0..read.retries).for_each(|attempt| again[attempt as usize] += 1);
            // Every read has the same outcome.
            assert_eq!(nand.read_unit(Pun(unit), SimTime::ZERO), read);
        }
        let rate = model.bits.rate(model.wear_of(0), YEAR, kind);
        let times = again[..5].iter().copied().chain([lost]);
        for (attempt, times) in (0..).zip(times) {
            let p = model.ecc.failure(rate, attempt, 4096 * 8);
            if (0.001..0.999).contains(&p) {
                within("failed reads", times, count, p);
                compared += 1;
            } else {
                assert!(times < count / 200 || times > count - count / 200, "{times} at {p}");
            }
        }
    }
    assert!(compared >= 3, "{compared} shares are neither none nor all");
}

#[test]
fn programs_of_a_layout_do_not_fail() {
    let mut model = FaultModel::of_kind("tlc", 1000).unwrap();
    (model.factory_bad, model.wear) = (0.0, 1000);
    (model.program.at_endurance, model.program.exponent) = (1.0, 0.0);
    let mut nand = device(4, model);
    nand.program_bulk(ProgramUnitId(0), 3).unwrap();
    assert!((0..3).all(|unit| nand.holds(ProgramUnitId(unit))));
    nand.program_begin(ProgramUnitId(3), []).unwrap();
    assert_eq!(nand.program_end(ProgramUnitId(3)), Status::Failed);
    assert!(!nand.holds(ProgramUnitId(3)));
}

#[test]
fn rewritten_data_is_new_and_lost_only_if_marked() {
    let mut model = FaultModel::of_kind("tlc", 1000).unwrap();
    (model.factory_bad, model.wear, model.age) = (0.0, 2500, YEAR);
    (model.program.at_endurance, model.erase.at_endurance) = (0.0, 0.0);
    let mut nand = device(4, model);
    program(&mut nand, 16);
    assert!((0..16).any(|unit| nand.read_unit(Pun(unit), SimTime::ZERO).retries > 0));
    let again = |nand: &mut Nand| {
        nand.erase_begin(BlockId(0), 0).unwrap();
        assert_eq!(nand.erase_end(BlockId(0), 0), Status::Passed);
        nand.programmed_at(ProgramUnitId(0), SimTime(5));
        nand.program_begin(ProgramUnitId(0), []).unwrap();
        assert_eq!(nand.program_end(ProgramUnitId(0)), Status::Passed);
        nand.read_unit(Pun(0), SimTime(5))
    };
    assert_eq!(again(&mut nand), UnitRead { retries: 0, lost: false });
    nand.mark_lost(Pun(0));
    assert_eq!(nand.read_unit(Pun(0), SimTime(5)), UnitRead { retries: 0, lost: true });
    assert!(nand.is_marked_lost(Pun(0)) && !nand.is_marked_lost(Pun(1)));
    assert!(!again(&mut nand).lost && !nand.is_marked_lost(Pun(0)));
}
