//! "Block management in solid-state devices" (Rajimwale, Prabhakaran, Davis, USENIX ATC 2009):
//! its experiments, repeated on simulated drives, beside what it printed.
//!
//! Where the paper leaves a parameter open (depth of queues, sizes, rates), it is swept and the
//! setting that comes closest is named, with the range over the others. Drives are presets
//! whose files say which number is published and which is inferred.

mod alignment;
mod bandwidth;
mod cleaning;
mod ext3;
mod front;
mod macros;
mod postmark;
mod priority;
mod scheduling;
mod stripes;
mod terms;

use crate::comparison::{Beside, Quantity, Why};
use crate::scale::Scale;

pub use alignment::{ALIGNED, Alignment, SEQUENTIAL, Setting, UNALIGNED};
pub use bandwidth::{Bandwidths, Closest, DRIVES, Drive, Four, HDD, Random, Sequential};
pub use cleaning::{Cleaning, Moved, PAGES, Pool, PoolRun, TIMES};
pub use front::Arrivals;
pub use macros::{Macro, MacroResult, closest_depth};
pub use priority::{IMPROVEMENT, Order, PLACES, Places, Priority, Responses, Run, WRITES};
pub use scheduling::{PUBLISHED_GAIN, Scheduling, gain};
pub use stripes::{Point, STRIPE, Stripes};
pub use terms::{DriveTerms, Ends, IdleReads, Reads};

/// A difference of less than this share of the published number needs no reason: the paper
/// prints two or three digits, and sweeps here go in steps.
pub const NEAR: f64 = 0.15;

/// Said where nothing is.
const NOT_KNOWN: Why = Why::Unexplained("nothing is known that would explain it");

/// What the paper says beside what came out here.
fn line(
    place: &'static str,
    what: impl Into<String>,
    quantity: Quantity,
    [published, ours]: [f64; 2],
    why: Why,
) -> Beside {
    let ours = ours.is_finite().then_some(ours);
    Beside { what: what.into(), place, quantity, published, ours, tolerance: NEAR, why }
}

/// A part of the work, for any thread.
pub struct Pending {
    run: Box<dyn FnOnce() -> Part + Send>,
}

/// What a part of the work found: it is put into the results by calling it.
pub struct Part(Box<dyn FnOnce(&mut Results) + Send>);

impl Pending {
    /// Work whose result `put` puts into the results.
    fn new<T: Send + 'static>(
        work: impl FnOnce() -> T + Send + 'static,
        put: impl FnOnce(&mut Results, T) + Send + 'static,
    ) -> Self {
        let run = move || {
            let found = work();
            Part(Box::new(move |results: &mut Results| put(results, found)))
        };
        Self { run: Box::new(run) }
    }

    /// Does it.
    #[must_use]
    pub fn run(self) -> Part {
        (self.run)()
    }
}

/// Everything that was found.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Table 1, drive by drive.
    pub terms: Vec<DriveTerms>,
    /// Whether the two ends of the addresses differ, for the third term.
    pub ends: Vec<Ends>,
    /// What a host sees of background activity.
    pub idle_reads: IdleReads,
    /// Table 2, drive by drive.
    pub bandwidths: Vec<Bandwidths>,
    /// Section 3.2.
    pub scheduling: Scheduling,
    /// Figure 2.
    pub stripes: Stripes,
    /// Table 3.
    pub alignment: Alignment,
    /// Table 4.
    pub macros: Vec<MacroResult>,
    /// Table 5.
    pub cleaning: Cleaning,
    /// Figure 3 and Table 6.
    pub priority: Priority,
}

/// The work, in parts that do not depend on each other, long ones first.
#[must_use]
pub fn pending(scale: Scale, seed: u64) -> Vec<Pending> {
    let mut all = Vec::new();
    for pool in cleaning::pools() {
        for informed in [false, true] {
            let work = move || cleaning::measure(pool, informed, scale, seed);
            all.push(Pending::new(work, move |results, moved| {
                results.cleaning.add(pool, informed, moved);
            }));
        }
    }
    for places in PLACES {
        for writes in WRITES {
            let work = move || priority::measure(places, writes, scale, seed);
            all.push(Pending::new(work, |results, run| results.priority.runs.push(run)));
        }
    }
    for arrivals in alignment::all_arrivals(seed) {
        let work = move || alignment::measure(arrivals, scale, seed);
        all.push(Pending::new(work, |results, some| results.alignment.settings.extend(some)));
    }
    for benchmark in Macro::ALL {
        let work = move || macros::measure(benchmark, scale, seed);
        all.push(Pending::new(work, |results, some| results.macros.extend(some)));
    }
    for load in scheduling::LOADS {
        let work = move || scheduling::curve(load, scale, seed);
        all.push(Pending::new(work, |results, curve| results.scheduling.curves.push(curve)));
    }
    for preset in terms::judged() {
        let work = move || terms::judge(preset, scale, seed);
        all.push(Pending::new(work, |results, terms| results.terms.push(terms)));
        let work = move || terms::ends(preset, seed);
        all.push(Pending::new(work, |results, ends| results.ends.push(ends)));
    }
    for drive in DRIVES {
        let work = move || bandwidth::measure(drive, scale, seed);
        all.push(Pending::new(work, |results, one| results.bandwidths.push(one)));
    }
    let work = move || stripes::measure(scale, seed);
    all.push(Pending::new(work, |results, stripes| results.stripes = stripes));
    let work = move || terms::idle_reads(seed);
    all.push(Pending::new(work, |results, reads| results.idle_reads = reads));
    all
}

impl Results {
    /// What all of [`pending`] found, in its order.
    #[must_use]
    pub fn of(parts: Vec<Part>) -> Self {
        let mut results = Self::default();
        parts.into_iter().for_each(|Part(put)| put(&mut results));
        results
    }

    /// Each published number beside ours, in the order of the paper.
    #[must_use]
    pub fn lines(&self) -> Vec<Beside> {
        let mut lines: Vec<Beside> = self.bandwidths.iter().flat_map(Bandwidths::lines).collect();
        lines.extend(self.scheduling.lines());
        lines.extend(self.stripes.lines());
        lines.extend(self.alignment.lines());
        lines.extend(macros::lines(&self.macros));
        lines.extend(self.cleaning.lines());
        lines.extend(self.priority.lines());
        lines
    }
}
