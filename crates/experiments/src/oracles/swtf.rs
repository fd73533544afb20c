//! Shortest wait time first (SWTF) against first come, first served (FCFS).
//!
//! In Rajimwale, Prabhakaran and Davis (USENIX ATC 2009, section 3.2) the scheduler takes the
//! queued request whose parallel element is free soonest. Under random requests, two thirds of
//! them reads, the mean response is 8 % lower. The paper gives neither load nor queue depth, so
//! this module measures a curve over load and claims no agreement.

use prism_base::{Bytes, Nanos, Rng};
use prism_engine::Scheduler;
use prism_ssd::{HostOp, Request};

use crate::check::{Check, Group, Simulation};
use crate::drives::{filled, preset, smaller};
use crate::load::open_loop;

/// Requests in service at once: as many as the drive has dies, so that a request for a busy die
/// can keep another request from an idle die.
const IN_SERVICE: u32 = 8;
/// Requests of a run: their writes fit into the spare flash, so that no block is cleaned.
const COUNT: u64 = 100_000;
/// Offered load: requests a second over what all dies together could serve. FCFS is saturated near
/// 0.65, because some of the eight requests in service wait for others.
pub const LOADS: [f64; 5] = [0.3, 0.4, 0.5, 0.55, 0.6];
const PAGE: u64 = 4096;

/// Mean response of both schedulers at one load, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Curve {
    /// The load, as a share of what all dies together could serve.
    pub load: f64,
    /// First come, first served.
    pub fcfs: f64,
    /// Shortest wait time first.
    pub swtf: f64,
}

pub(super) fn checks(seed: u64) -> Vec<Simulation> {
    let row = |load: f64| {
        let what = format!("SWTF, 2/3 reads, load {load}: mean response");
        Simulation::new(what.clone(), move || {
            let Curve { fcfs, swtf, .. } = curve(load, COUNT, seed);
            Check {
                group: Group::Oracle,
                what,
                expected: fcfs / 1e6,
                ours: swtf / 1e6,
                tolerance: None,
                source: "FCFS on the same drive; Rajimwale et al., ATC'09: about -8 %".into(),
                unit: "ms",
            }
        })
    };
    LOADS.into_iter().map(row).collect()
}

/// Both schedulers under the same `count` random requests at `load`.
#[must_use]
pub fn curve(load: f64, count: u64, seed: u64) -> Curve {
    let mean = |scheduler| mean_response(scheduler, load, count, seed);
    Curve { load, fcfs: mean(Scheduler::Fcfs), swtf: mean(Scheduler::ShortestWait) }
}

fn mean_response(scheduler: Scheduler, load: f64, count: u64, seed: u64) -> f64 {
    let mut device = smaller(&preset("atc08"), Bytes(2 << 30));
    device.drive.scheduler = scheduler;
    device.drive.in_service = IN_SERVICE;
    // Requests that are not in service wait in the queue.
    device.drive.queue_depth = 1 << 16;
    let flash = &device.flash;
    let transfer = 102_400.0;
    let read = flash.t_read.mean().0 as f64 + transfer;
    let write = flash.t_program.mean().0 as f64 + transfer;
    let service = (2.0 * read + write) / 3.0;
    let gap = service / f64::from(device.geometry().dies()) / load;
    let mut drive = filled(device, seed);
    let pages = drive.device().capacity().0 / PAGE;
    let mut rng = Rng::stream(seed, "swtf.request");
    open_loop(&mut drive, count, |number| {
        let op = if rng.below(3) < 2 { HostOp::Read } else { HostOp::Write };
        let request = Request::new(op, rng.below(pages) * PAGE, PAGE, number);
        // Times between requests are 0 to twice the mean, as in the runs of the paper's simulator.
        (Nanos(rng.below((2.0 * gap) as u64 + 1)), request)
    })
    .mean()
}
