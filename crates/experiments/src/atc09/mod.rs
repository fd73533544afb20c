//! "Block management in solid-state devices" (Rajimwale, Prabhakaran, Davis, USENIX ATC 2009):
//! its experiments, repeated on simulated drives, beside what it printed.
//!
//! Where the paper leaves a parameter open (depth of queues, sizes, rates), it is swept and the
//! setting that comes closest is named, with the range over the others. Drives are presets
//! whose files say which number is published and which is inferred.

mod bandwidth;
mod compare;
mod scheduling;
mod stripes;

use crate::oracles::Curve;
use crate::validate::Scale;

pub use bandwidth::{Bandwidths, Closest, DRIVES, Drive, Four, HDD, Random, Sequential};
pub use compare::{Line, Quantity, Reason, Why};
pub use scheduling::{PUBLISHED_GAIN, Scheduling, gain};
pub use stripes::{Point, STRIPE, Stripes};

/// A part of the work, for any thread.
pub struct Pending {
    run: Box<dyn FnOnce() -> Part + Send>,
}

/// What a part of the work found.
pub struct Part(Found);

impl Pending {
    fn new(run: impl FnOnce() -> Found + Send + 'static) -> Self {
        Self { run: Box::new(move || Part(run())) }
    }

    /// Does it.
    #[must_use]
    pub fn run(self) -> Part {
        (self.run)()
    }
}

enum Found {
    Bandwidths(Bandwidths),
    Curve(Curve),
    Stripes(Stripes),
}

/// Everything that was found.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Table 2, drive by drive.
    pub bandwidths: Vec<Bandwidths>,
    /// Section 3.2.
    pub scheduling: Scheduling,
    /// Figure 2.
    pub stripes: Stripes,
}

/// The work, in parts that do not depend on each other, long ones first.
#[must_use]
pub fn pending(scale: Scale, seed: u64) -> Vec<Pending> {
    let mut all = Vec::new();
    for load in scheduling::LOADS {
        all.push(Pending::new(move || Found::Curve(scheduling::curve(load, scale, seed))));
    }
    for drive in DRIVES {
        all.push(Pending::new(move || Found::Bandwidths(bandwidth::measure(drive, scale, seed))));
    }
    all.push(Pending::new(move || Found::Stripes(stripes::measure(scale, seed))));
    all
}

impl Results {
    /// What all of [`pending`] found, in its order.
    #[must_use]
    pub fn of(parts: Vec<Part>) -> Self {
        let mut results = Self::default();
        for Part(found) in parts {
            match found {
                Found::Bandwidths(one) => results.bandwidths.push(one),
                Found::Curve(one) => results.scheduling.curves.push(one),
                Found::Stripes(one) => results.stripes = one,
            }
        }
        results
    }

    /// Each published number beside ours, in the order of the paper.
    #[must_use]
    pub fn lines(&self) -> Vec<Line> {
        let mut lines: Vec<Line> = self.bandwidths.iter().flat_map(Bandwidths::lines).collect();
        lines.extend(self.scheduling.lines());
        lines.extend(self.stripes.lines());
        lines
    }
}
