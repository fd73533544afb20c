//! The experiments of "Block management in solid-state devices" (Rajimwale, Prabhakaran, Davis,
//! USENIX ATC 2009), repeated on simulated drives and compared with its numbers.
//!
//! The paper leaves parameters open: queue depths, sizes, rates. Such a parameter is swept, and the
//! setting whose results are closest to the paper is reported together with the range over all
//! settings. Drives are presets, whose files say which numbers are published and which are
//! inferred.

mod alignment;
mod bandwidth;
mod cleaning;
mod ext3;
mod host_queue;
mod macros;
mod postmark;
mod priority;
mod scheduling;
mod stripes;
mod terms;

use crate::comparison::{Comparison, Quantity, Why};
use crate::scale::Scale;

pub use alignment::{ALIGNED, Alignment, SEQUENTIAL, Setting, UNALIGNED};
pub use bandwidth::{Bandwidths, Closest, Drive, Four, HDD, Random, Sequential};
pub use cleaning::{Cleaning, Moved, PAGES, Pool, PoolRun, TIMES};
pub use host_queue::Arrivals;
pub use macros::{Macro, MacroResult, closest_depth};
pub use priority::{IMPROVEMENT, Order, PLACES, Places, Priority, Responses, Run, WRITES};
pub use scheduling::{PUBLISHED_GAIN, Scheduling, gain};
pub use stripes::{Point, STRIPE, Stripes};
pub use terms::{DriveTerms, Ends, IdleReads, Reads};

/// Numbers that differ by less than this share of the published one agree: the paper prints two or
/// three digits, and parameters are swept in steps.
pub const NEAR: f64 = 0.15;

/// The reason given if no reason is known.
const NOT_KNOWN: Why = Why::Unexplained("nothing is known that would explain it");

/// Compares a published number with ours, which is not finite if nothing was measured.
fn line(
    place: &'static str,
    what: impl Into<String>,
    quantity: Quantity,
    both: [f64; 2],
    why: Why,
) -> Comparison {
    Comparison::new(place, what, quantity, both, NEAR, why)
}

/// The distance of two numbers: the logarithm of their ratio.
fn distance(ours: f64, published: f64) -> f64 {
    (ours / published).ln().abs()
}

/// The sum of the distances of numbers that belong together.
fn distances<const N: usize>(ours: [f64; N], published: [f64; N]) -> f64 {
    ours.into_iter().zip(published).map(|(ours, published)| distance(ours, published)).sum()
}

/// The one of `all` that is least far off; `None` if there is none.
fn closest<T>(all: impl IntoIterator<Item = T>, off: impl Fn(&T) -> f64) -> Option<T> {
    all.into_iter().min_by(|a, b| off(a).total_cmp(&off(b)))
}

/// One of the experiments, which can run on any thread.
pub struct Job {
    run: Box<dyn FnOnce() -> JobResult + Send>,
}

/// The result of a job: a function that adds it to the results of all jobs.
pub struct JobResult(Box<dyn FnOnce(&mut Results) + Send>);

impl Job {
    /// A job that does `work` and adds what it returns by `put`.
    fn new<T: Send + 'static>(
        work: impl FnOnce() -> T + Send + 'static,
        put: impl FnOnce(&mut Results, T) + Send + 'static,
    ) -> Self {
        let run = move || {
            let result = work();
            JobResult(Box::new(move |results: &mut Results| put(results, result)))
        };
        Self { run: Box::new(run) }
    }

    /// Runs the experiment.
    #[must_use]
    pub fn run(self) -> JobResult {
        (self.run)()
    }
}

/// The results of all jobs.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Table 1, drive by drive.
    pub terms: Vec<DriveTerms>,
    /// Whether the two ends of the addresses differ, for the third term.
    pub ends: Vec<Ends>,
    /// Background activity as a host observes it.
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

/// All experiments as independent jobs, the longest first.
#[must_use]
pub fn jobs(scale: Scale, seed: u64) -> Vec<Job> {
    let mut all = Vec::new();
    for pool in cleaning::pools() {
        for informed in [false, true] {
            let work = move || cleaning::measure(pool, informed, scale, seed);
            all.push(Job::new(work, move |results, moved| {
                results.cleaning.add(pool, informed, moved);
            }));
        }
    }
    for places in PLACES {
        for writes in WRITES {
            let work = move || priority::measure(places, writes, scale, seed);
            all.push(Job::new(work, |results, run| results.priority.runs.push(run)));
        }
    }
    for arrivals in alignment::all_arrivals(seed) {
        let work = move || alignment::measure(arrivals, scale, seed);
        all.push(Job::new(work, |results, some| results.alignment.settings.extend(some)));
    }
    for benchmark in Macro::ALL {
        let work = move || macros::measure(benchmark, scale, seed);
        all.push(Job::new(work, |results, some| results.macros.extend(some)));
    }
    for load in scheduling::LOADS {
        let work = move || scheduling::curve(load, scale, seed);
        all.push(Job::new(work, |results, curve| results.scheduling.curves.push(curve)));
    }
    for preset in terms::judged() {
        let work = move || terms::judge(preset, scale, seed);
        all.push(Job::new(work, |results, terms| results.terms.push(terms)));
        let work = move || terms::ends(preset, seed);
        all.push(Job::new(work, |results, ends| results.ends.push(ends)));
    }
    for drive in Drive::ALL {
        let work = move || bandwidth::measure(drive, scale, seed);
        all.push(Job::new(work, |results, one| results.bandwidths.push(one)));
    }
    let work = move || stripes::measure(scale, seed);
    all.push(Job::new(work, |results, stripes| results.stripes = stripes));
    let work = move || terms::idle_reads(seed);
    all.push(Job::new(work, |results, reads| results.idle_reads = reads));
    all
}

impl Results {
    /// Puts the results of all of [`jobs`] together, in their order.
    #[must_use]
    pub fn of(parts: Vec<JobResult>) -> Self {
        let mut results = Self::default();
        parts.into_iter().for_each(|JobResult(put)| put(&mut results));
        results
    }

    /// Every comparison with a published number, in the order of the paper.
    #[must_use]
    pub fn lines(&self) -> Vec<Comparison> {
        let mut lines: Vec<Comparison> =
            self.bandwidths.iter().flat_map(Bandwidths::lines).collect();
        lines.extend(self.scheduling.lines());
        lines.extend(self.stripes.lines());
        lines.extend(self.alignment.lines());
        lines.extend(macros::lines(&self.macros));
        lines.extend(self.cleaning.lines());
        lines.extend(self.priority.lines());
        lines
    }
}
