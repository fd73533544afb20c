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
use crate::oracles::Curve;
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
    run: Box<dyn FnOnce() -> Found + Send>,
}

/// What a part of the work found.
pub struct Part(Found);

impl Pending {
    /// Does it.
    #[must_use]
    pub fn run(self) -> Part {
        Part((self.run)())
    }
}

enum Found {
    Terms(DriveTerms),
    Ends(Ends),
    IdleReads(IdleReads),
    Bandwidths(Bandwidths),
    Curve(Curve),
    Stripes(Stripes),
    Settings(Vec<Setting>),
    Macros(Vec<MacroResult>),
    Cleaned(Pool, bool, Vec<Moved>),
    Priority(Run),
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
    let mut add = |run: Box<dyn FnOnce() -> Found + Send>| all.push(Pending { run });
    for pool in cleaning::pools() {
        for informed in [false, true] {
            let run = move || cleaning::measure(pool, informed, scale, seed);
            add(Box::new(move || Found::Cleaned(pool, informed, run())));
        }
    }
    for places in PLACES {
        for writes in WRITES {
            let run = move || priority::measure(places, writes, scale, seed);
            add(Box::new(move || Found::Priority(run())));
        }
    }
    for arrivals in alignment::all_arrivals(seed) {
        let settings = move || alignment::measure(arrivals, scale, seed);
        add(Box::new(move || Found::Settings(settings())));
    }
    for benchmark in Macro::ALL {
        add(Box::new(move || Found::Macros(macros::measure(benchmark, scale, seed))));
    }
    for load in scheduling::LOADS {
        add(Box::new(move || Found::Curve(scheduling::curve(load, scale, seed))));
    }
    for preset in terms::judged() {
        add(Box::new(move || Found::Terms(terms::judge(preset, scale, seed))));
        add(Box::new(move || Found::Ends(terms::ends(preset, seed))));
    }
    for drive in DRIVES {
        add(Box::new(move || Found::Bandwidths(bandwidth::measure(drive, scale, seed))));
    }
    add(Box::new(move || Found::Stripes(stripes::measure(scale, seed))));
    add(Box::new(move || Found::IdleReads(terms::idle_reads(seed))));
    all
}

impl Results {
    /// What all of [`pending`] found, in its order.
    #[must_use]
    pub fn of(parts: Vec<Part>) -> Self {
        let mut results = Self::default();
        for Part(found) in parts {
            match found {
                Found::Terms(one) => results.terms.push(one),
                Found::Ends(one) => results.ends.push(one),
                Found::IdleReads(one) => results.idle_reads = one,
                Found::Bandwidths(one) => results.bandwidths.push(one),
                Found::Curve(one) => results.scheduling.curves.push(one),
                Found::Stripes(one) => results.stripes = one,
                Found::Settings(some) => results.alignment.settings.extend(some),
                Found::Macros(some) => results.macros.extend(some),
                Found::Cleaned(pool, informed, moved) => {
                    results.cleaning.add(pool, informed, moved);
                }
                Found::Priority(run) => results.priority.runs.push(run),
            }
        }
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
