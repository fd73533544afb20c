//! Power is cut at every operation of the untimed engine, over every mapping, policy and
//! pace, again and again, and nothing that was promised is lost.

mod common;

use prism_base::Rng;

use common::{Life, Setup, hybrid, page};

/// Draws a setup; what it is named by.
fn life(seed: u64, draw: fn(&mut Rng) -> Setup) -> (Life, Rng) {
    let mut rng = Rng::stream(seed, "power");
    let setup = draw(&mut rng);
    let name = format!("seed {seed}: {setup:?}");
    println!("{name}");
    (Life::new(setup, name), rng)
}

fn one_cut_after_every_operation(draw: fn(&mut Rng) -> Setup) {
    for seed in 0..24 {
        for operations in 0..100 {
            let (mut life, mut rng) = life(seed, draw);
            life.act_with_power(120, &mut rng);
            life.until_cut(operations, &mut rng);
            life.recover(&mut rng);
            life.act_with_power(20, &mut rng);
        }
    }
}

fn many_cuts_in_one_life(draw: fn(&mut Rng) -> Setup) {
    for seed in 100..400 {
        let (mut life, mut rng) = life(seed, draw);
        life.act_with_power(60, &mut rng);
        // Mostly close together, so that what one leaves behind meets the next.
        let between = 1 + rng.below(40);
        for _ in 0..60 {
            let operations = if rng.chance(0.1) { 200 } else { between };
            life.until_cut(rng.below(operations), &mut rng);
            life.recover(&mut rng);
        }
        // What is left works.
        life.act_with_power(300, &mut rng);
        life.engine().ftl().assert_consistent();
    }
}

#[test]
fn one_cut_with_a_map_by_unit() {
    one_cut_after_every_operation(page);
}

#[test]
fn one_cut_with_a_map_by_block() {
    one_cut_after_every_operation(hybrid);
}

#[test]
fn many_cuts_with_a_map_by_unit() {
    many_cuts_in_one_life(page);
}

#[test]
fn many_cuts_with_a_map_by_block() {
    many_cuts_in_one_life(hybrid);
}
