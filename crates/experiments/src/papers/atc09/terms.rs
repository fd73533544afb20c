//! Table 1: the six terms of the unwritten contract, judged by measurement.
//!
//! Each term is judged as `prism report` judges it for a trace ([`prism_contract::terms`]): by
//! small jobs on such drives, and by the effects of random writes of 4 KiB on a filled drive
//! whose spare flash is used up. The paper judges all SSDs together; here each drive is judged on
//! its own. For the last term, reads after the host has stopped writing show what a host observes
//! of background activity.

use prism_base::{Bytes, Nanos, Rng};
use prism_contract::terms::{INTERCHANGEABLE, Inputs, Probe, Term, terms};
use prism_replay::lifetime::lifetime_of;
use prism_replay::{Options, Pace, Passes, replay};
use prism_ssd::{Drive, HostOp, Request};
use prism_trace::{Op, Record, VecSource};
use prism_workload::Silent;

use super::bandwidth::{Drive as Ssd, megabytes};
use crate::drives::{self, filled, smaller, spare_units};
use crate::load::{Tally, closed_loop, open_loop};
use crate::scale::Scale;

const PAGE: u64 = 4096;
/// Writes in flight.
const DEPTH: u32 = 8;

/// A drive with SLC and MLC flash, as section 3.3 expects them.
const MIXED: &str = "slc-mlc";

/// The presets that are judged: the drives of Table 2, and one with SLC and MLC flash.
pub(super) fn judged() -> Vec<&'static str> {
    Ssd::ALL.map(|drive| drive.preset()).into_iter().chain([MIXED]).collect()
}

/// The six terms of one drive.
#[derive(Clone, Debug, PartialEq)]
pub struct DriveTerms {
    /// The preset.
    pub preset: &'static str,
    /// The terms in the order of the paper.
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
    let device = drive.device();
    let life = lifetime_of(
        device.writable_bytes(measured.flash.slc_share()),
        device.capacity(),
        measured.write_amplification().unwrap_or(0.0),
        Bytes(measured.bytes_of(HostOp::Write)),
        measured.simulated,
    );
    let days = life.map(|life| life.days);
    let worn = (&measured, measured.write_amplification());
    let inputs = Inputs::of(worn, &measured, device, days, Probe::of(&full, seed));
    let mut terms = terms(&inputs);
    // A report compares reads at both ends of the addresses. Two kinds of flash differ more in
    // writes.
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

/// Bandwidths at the two ends of a drive's addresses, in 10^6 bytes a second.
#[derive(Clone, Debug, PartialEq)]
pub struct Ends {
    /// The preset.
    pub preset: &'static str,
    /// Random reads of 4 KiB in the first and in the last sixteenth of the addresses.
    pub reads: [f64; 2],
    /// Random writes of 4 KiB in the first and in the last sixteenth of the addresses.
    pub writes: [f64; 2],
}

/// An end is one part in so many of the addresses.
const END: u64 = 16;
/// Requests of a run with one in flight: so few that no block is cleaned.
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
    /// How many times faster one end is than the other: the larger of the ratios of reads and of
    /// writes.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        let ratio = |[first, last]: [f64; 2]| f64::max(first / last, last / first);
        ratio(self.reads).max(ratio(self.writes))
    }
}

/// Responses of reads of 4 KiB that arrive every two milliseconds on average, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reads {
    /// Mean response.
    pub mean: f64,
    /// Longest response.
    pub longest: f64,
}

/// Reads by a host that does not write.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IdleReads {
    /// On a drive that was only filled.
    pub before: Reads,
    /// On a drive that was overwritten at random and cleans in idle time.
    pub after: Reads,
}

const READS: u64 = 2000;
const READ_GAP_MAX: u64 = 4_000_000;
/// In idle time the drive cleans until each die has so many more erased blocks than it keeps
/// otherwise.
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
    // The time between two reads counts as idle.
    device.ftl.idle_after = Nanos(100_000);
    device.check().expect("the spare flash is large enough");
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
