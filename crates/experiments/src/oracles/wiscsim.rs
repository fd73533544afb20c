//! WiscSim (He et al., EuroSys 2017): the bandwidths of its drive with 16 channels.
//!
//! A channel is one server that is occupied for the whole cell operation, and transfers take no
//! time. So all but one of the numbers follow by arithmetic: 2 KiB in 20 us are 97.66 MiB/s (the
//! paper's MB is a MiB). The exception is random reads with 16 in flight. Each completed read is
//! replaced by a read of a random channel, and all channels work in step, so the number of busy
//! channels is the number of memory modules that 16 processors keep busy: 9.59 of 16 by Baskett and
//! Smith (CACM 19, 1976), and 9.62 in the published run.

use prism_base::Rng;
use prism_ssd::{HostOp, Request};

use crate::check::{Check, Group, Simulation};
use crate::drives::{filled, preset};
use crate::load::closed_loop;

const PAGE: u64 = 2048;
const LARGE: u64 = 128 << 10;
const MIB: f64 = 1_048_576.0;
/// Tolerance where arithmetic gives the number: the published numbers have four digits.
const EXACT: f64 = 0.005;
/// Tolerance where the number depends on random addresses.
const CHANCE: f64 = 0.02;
const SOURCE: &str = "WiscSim";

/// Operation, bytes per request, queue depth, requests, published MiB/s, tolerance.
const RUNS: [(HostOp, u64, u32, u64, f64, f64); 6] = [
    (HostOp::Read, PAGE, 1, 4_000, 97.66, EXACT),
    (HostOp::Read, PAGE, 16, 200_000, 939.0, CHANCE),
    (HostOp::Read, LARGE, 1, 1_000, 1562.5, EXACT),
    (HostOp::Write, PAGE, 1, 4_000, 9.77, EXACT),
    (HostOp::Write, PAGE, 16, 64_000, 156.25, CHANCE),
    (HostOp::Write, LARGE, 1, 1_000, 156.25, EXACT),
];

pub(super) fn checks(seed: u64) -> Vec<Simulation> {
    RUNS.into_iter()
        .map(|(op, size, depth, count, expected, tolerance)| {
            let name = op.name();
            let what = format!("wiscsim: {} KiB {name}, QD {depth}", size >> 10);
            let shown = what.clone();
            Simulation::new(shown, move || Check {
                group: Group::Oracle,
                what,
                expected,
                ours: bandwidth(op, size, depth, count, seed),
                tolerance: Some(tolerance),
                source: SOURCE.into(),
                unit: "MiB/s",
            })
        })
        .collect()
}

/// MiB/s of random aligned requests on a filled drive.
fn bandwidth(op: HostOp, size: u64, depth: u32, count: u64, seed: u64) -> f64 {
    let mut drive = filled(preset("wiscsim"), seed);
    let places = drive.device().capacity().0 / size;
    let mut rng = Rng::stream(seed, "wiscsim.address");
    let tally = closed_loop(&mut drive, depth, count, |number| {
        Request::new(op, rng.below(places) * size, size, number)
    });
    tally.rate() / MIB
}
