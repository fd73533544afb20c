//! WiscSim (He et al., EuroSys 2017): bandwidths of its 16-channel drive.
//!
//! A channel is one server that is held for the whole cell operation, and there are no
//! transfers, so all but one of the numbers are arithmetic: 2 KiB in 20 us are 97.66
//! MiB/s (their MB is a MiB). The one is random reads at 16 outstanding. Each completed
//! read is replaced by one of a random channel, all channels work in step, and the number
//! of channels that are busy is that of memory modules which 16 processors keep busy:
//! 9.59 of 16 by Baskett and Smith (CACM 19, 1976), 9.62 as measured there.

use prism_base::Rng;
use prism_ssd::{HostOp, Request};

use crate::check::{Check, Group, Pending};
use crate::drives::{filled, preset};
use crate::load::closed_loop;

const PAGE: u64 = 2048;
const LARGE: u64 = 128 << 10;
const MIB: f64 = 1_048_576.0;
/// Where the arithmetic is exact: the published numbers have four digits.
const EXACT: f64 = 0.005;
const CHANCE: f64 = 0.02;
const SOURCE: &str = "WiscSim";

/// Operation, bytes a request, depth, requests, published MiB/s, tolerance.
const RUNS: [(HostOp, u64, u32, u64, f64, f64); 6] = [
    (HostOp::Read, PAGE, 1, 4_000, 97.66, EXACT),
    (HostOp::Read, PAGE, 16, 200_000, 939.0, CHANCE),
    (HostOp::Read, LARGE, 1, 1_000, 1562.5, EXACT),
    (HostOp::Write, PAGE, 1, 4_000, 9.77, EXACT),
    (HostOp::Write, PAGE, 16, 64_000, 156.25, CHANCE),
    (HostOp::Write, LARGE, 1, 1_000, 156.25, EXACT),
];

pub(super) fn checks(seed: u64) -> Vec<Pending> {
    RUNS.into_iter()
        .map(|(op, size, depth, count, expected, tolerance)| {
            let name = op.name();
            let what = format!("wiscsim: {} KiB {name}, QD {depth}", size >> 10);
            let shown = what.clone();
            Pending::new(shown, move || Check {
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
