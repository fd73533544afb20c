//! Table 1: the six terms of the unwritten contract, decided by measurement.
//!
//! Each term is judged as `prism report` judges it for a trace ([`prism_contract::terms`]): by
//! small jobs on drives of the kind, and by what random writes of 4 KiB, once the spare flash is
//! used up, do to a full drive. The paper's column for SSDs is one for all drives; here each has
//! its own. For the last term there is also what a host sees of background activity: reads, one
//! at a time, after it has stopped writing.

use prism_base::{Bytes, Nanos, Rng};
use prism_contract::terms::{INTERCHANGEABLE, Inputs, Probe, Term, terms};
use prism_replay::{Options, Pace, Passes, replay};
use prism_ssd::{Drive, HostOp, Request};
use prism_trace::{Op, Record, VecSource};
use prism_workload::Silent;

use super::bandwidth::{DRIVES, megabytes};
use crate::drives::{self, filled, smaller, spare_units};
use crate::load::{Tally, closed_loop, open_loop};
use crate::scale::Scale;

const PAGE: u64 = 4096;
/// Writes in flight.
const DEPTH: u32 = 8;

/// A drive of two kinds of flash, as section 3.3 expects them.
const MIXED: &str = "slc-mlc";

/// The presets that are judged: the drives of Table 2, and one of two kinds of flash.
pub(super) fn judged() -> Vec<&'static str> {
    DRIVES.map(|drive| drive.preset()).into_iter().chain([MIXED]).collect()
}

/// The six terms of one drive.
#[derive(Clone, Debug, PartialEq)]
pub struct DriveTerms {
    /// The preset.
    pub preset: &'static str,
    /// In the order of the paper.
    pub terms: Vec<Term>,
}

pub(super) fn judge(preset: &'static str, scale: Scale, seed: u64) -> DriveTerms {
    let full = drives::preset(preset);
    let (capacity, most) = match scale {
        Scale::Full => (Bytes(2 << 30), 1 << 18),
        Scale::Quarter => (Bytes(1 << 30), 1 << 15),
    };
    let device = smaller(&full, capacity);
    let count = (2 * spare_units(&device)).min(most);
    let mut drive = filled(device, seed);
    let mut rng = Rng::stream(seed, "atc09.terms");
    let places = drive.device().capacity().0 / PAGE;
    let write = |rng: &mut Rng| Record::new(Op::Write, 0, rng.below(places) * PAGE, PAGE);
    let mut run = || {
        let mut source = VecSource::new((0..count).map(|_| write(&mut rng)).collect());
        let options = Options { pace: Pace::Closed { depth: DEPTH }, passes: Passes::Fixed(1) };
        replay(&mut drive, &mut source, &options, &mut Silent).expect("writes within the drive")
    };
    run();
    let measured = run().measured;
    let inputs = Inputs::of(&measured, drive.device(), Probe::of(&full, seed));
    let mut terms = terms(&inputs);
    // A report reads at both ends; what is of two kinds of flash differs most when it writes.
    let ends = ends(preset, seed);
    if let Some(term) = terms.iter_mut().find(|term| term.number == 3)
        && ends.ratio() >= INTERCHANGEABLE
    {
        term.holds = Some(false);
        term.why += &format!(
            " Random writes of 4 KiB, one at a time, bring {:.2} MB/s at the first and {:.2} MB/s \
             at the last, reads {:.1} and {:.1} MB/s.",
            ends.writes[0], ends.writes[1], ends.reads[0], ends.reads[1]
        );
    }
    DriveTerms { preset, terms }
}

/// Speeds at the two ends of a drive's addresses, 10^6 bytes a second.
#[derive(Clone, Debug, PartialEq)]
pub struct Ends {
    /// The preset.
    pub preset: &'static str,
    /// Random reads of 4 KiB among the first sixteenth of the addresses, and the last.
    pub reads: [f64; 2],
    /// The same of writes.
    pub writes: [f64; 2],
}

/// The part of the addresses at an end: one in so many.
const END: u64 = 16;
/// Requests of a run, one at a time: few enough that nothing is cleaned.
const END_REQUESTS: u64 = 500;

pub(super) fn ends(preset: &'static str, seed: u64) -> Ends {
    let device = smaller(&drives::preset(preset), Bytes(1 << 30));
    let places = device.capacity().0 / PAGE;
    let mut rng = Rng::stream(seed, "atc09.ends");
    let mut rates = |op| {
        [0, places - places / END].map(|first| {
            let mut drive = filled(device.clone(), seed);
            megabytes(&closed_loop(&mut drive, 1, END_REQUESTS, |number| {
                let place = first + rng.below(places / END);
                Request::new(op, place * PAGE, PAGE, number)
            }))
        })
    };
    Ends { preset, reads: rates(HostOp::Read), writes: rates(HostOp::Write) }
}

impl Ends {
    /// How many times faster one end is than the other, for reads or for writes, whichever is
    /// more.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        let ratio = |[first, last]: [f64; 2]| f64::max(first / last, last / first);
        ratio(self.reads).max(ratio(self.writes))
    }
}

/// Reads of 4 KiB, one every two milliseconds in the mean, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reads {
    /// Mean response.
    pub mean: f64,
    /// Longest response.
    pub longest: f64,
}

/// Reads of a host that has stopped writing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IdleReads {
    /// On a drive that was never written but to fill it.
    pub before: Reads,
    /// On one that was overwritten at random, and cleans in idle time.
    pub after: Reads,
}

const READS: u64 = 2000;
const READ_GAP_MAX: u64 = 4_000_000;
/// Erased blocks of each die up to which the drive cleans in idle time, over those at which it
/// must.
const IDLE_BLOCKS: u32 = 16;

fn reads(drive: &mut Drive, rng: &mut Rng) -> Reads {
    let places = drive.device().capacity().0 / PAGE;
    let tally: Tally = open_loop(drive, READS, |number| {
        let request = Request::new(HostOp::Read, rng.below(places) * PAGE, PAGE, number);
        (Nanos(rng.below(READ_GAP_MAX)), request)
    });
    Reads { mean: tally.mean() / 1e6, longest: tally.max.0 as f64 / 1e6 }
}

pub(super) fn idle_reads(seed: u64) -> IdleReads {
    let mut device = smaller(&drives::preset("atc08"), Bytes(1 << 30));
    device.ftl.free_blocks_idle = device.ftl.free_blocks_high + IDLE_BLOCKS;
    // Any pause is idle time.
    device.ftl.idle_after = Nanos(100_000);
    device.check().expect("the spare has room for it");
    let mut drive = filled(device, seed);
    let mut rng = Rng::stream(seed, "atc09.idle");
    let before = reads(&mut drive, &mut rng);
    let places = drive.device().capacity().0 / PAGE;
    let spare = spare_units(drive.device());
    closed_loop(&mut drive, DEPTH, 2 * spare, |number| {
        Request::new(HostOp::Write, rng.below(places) * PAGE, PAGE, number)
    });
    IdleReads { before, after: reads(&mut drive, &mut rng) }
}
