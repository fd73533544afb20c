//! The validation runs of the SSD model of DiskSim (Agrawal et al., USENIX ATC 2008).
//!
//! Requests arrive 0 to 1 ms apart (uniform) and go to a region of 3.35 GiB on a full drive of
//! 29 GB. The sizes of random requests have an exponential distribution of mean 4 KiB, rounded up
//! to whole pages; sequential requests have one page.
//!
//! Two things differ. In DiskSim a page goes to the element that its address selects; in Prism
//! pages go to the dies round robin, so that writes wait less for each other. And DiskSim cleans a
//! block in one operation, where Prism copies page by page and serves the host in between. The
//! number of blocks cleaned and pages moved depends on neither.

use prism_base::{Nanos, Rng};
use prism_nand::Cause;
use prism_ssd::{Drive, HostOp, Request};

use crate::check::{Check, Group, Simulation};
use crate::drives::{filled, preset};
use crate::load::{Tally, open_loop};
use crate::scale::Scale;

const PAGE: u64 = 4096;
/// The region in pages of 4 KiB; DiskSim's has 7,018,904 sectors.
const REGION_PAGES: u64 = 7_018_904 / 8;
const GAP_MAX: u64 = 1_000_000;
/// 1/e: the probability of each further page if sizes have an exponential distribution of mean one
/// page and are rounded up.
const PAGE_MORE: f64 = 0.367_879_441_171_442_3;
/// Probability of a second page in the long sequential run, which programs 5,704,304 pages for its
/// 5 M requests.
const SEQUENTIAL_MORE: f64 = 0.140_860_8;
const TOLERANCE: f64 = 0.05;
const SOURCE: &str = "DiskSim SSD model";
const ROUND_ROBIN: &str = "DiskSim SSD model; dies round robin here, by address there: no claim";
const IN_STEPS: &str =
    "DiskSim SSD model; cleans page by page here, block by block there: no claim";

/// A published run.
#[derive(Clone, Copy, Debug)]
struct Run {
    op: HostOp,
    random: bool,
    count: u64,
    /// Probability that a request is a page longer.
    more: f64,
    /// Mean, standard deviation (0 if not given) and maximum of the response time in
    /// milliseconds.
    responses: [f64; 3],
    /// The source with the reason why no agreement of the mean is claimed, if none is.
    differs: Option<&'static str>,
    /// Blocks cleaned and pages moved.
    cleaning: Option<[f64; 2]>,
    /// Pages that the host wrote, for write amplification.
    pages: f64,
}

const SHORT: u64 = 250_000;
const LONG: u64 = 5_000_000;

const RUNS: [Run; 6] = [
    Run::new(HostOp::Read, false, 0.0, [0.132_511, 0.000_072, 0.135_805], 250_000.0),
    Run::new(HostOp::Read, true, PAGE_MORE, [0.136_118, 0.0152, 0.4854], 395_130.0),
    Run::new(HostOp::Write, false, 0.0, [0.310, 0.0, 0.0], 249_999.0),
    Run {
        differs: Some(ROUND_ROBIN),
        ..Run::new(HostOp::Write, true, PAGE_MORE, [0.329_458, 0.0689, 1.579], 395_130.0)
    },
    Run::new(HostOp::Write, false, SEQUENTIAL_MORE, [0.334_365, 0.1844, 2.100], 5_704_304.0)
        .long([77_493.0, 0.0]),
    Run::new(HostOp::Write, true, PAGE_MORE, [0.593_438, 0.9704, 6.519], 7_913_348.0)
        .long([143_179.0, 1_929_239.0]),
];

pub(super) fn checks(seed: u64, scale: Scale) -> Vec<Simulation> {
    let wanted = |run: &Run| scale == Scale::Full || run.count == SHORT;
    let simulation = |run: Run| Simulation::several(run.name(), move || run.run(seed));
    RUNS.into_iter().filter(wanted).map(simulation).collect()
}

impl Run {
    /// A short run in which nothing is cleaned.
    const fn new(op: HostOp, random: bool, more: f64, responses: [f64; 3], pages: f64) -> Self {
        let (differs, cleaning) = (None, None);
        Self { op, random, count: SHORT, more, responses, differs, cleaning, pages }
    }

    /// The long run in which so many blocks are cleaned and pages moved.
    const fn long(self, cleaning: [f64; 2]) -> Self {
        Self { count: LONG, differs: Some(IN_STEPS), cleaning: Some(cleaning), ..self }
    }

    fn name(&self) -> String {
        let order = if self.random { "random" } else { "sequential" };
        let many = if self.count == LONG { ", 5 M" } else { "" };
        format!("atc08: {order} {}{many}", self.op.name())
    }

    fn run(self, seed: u64) -> Vec<Check> {
        let mut drive = filled(preset("atc08"), seed);
        let mut gaps = Rng::stream(seed, "disksim.gap");
        let mut sizes = Rng::stream(seed, "disksim.size");
        let mut places = Rng::stream(seed, "disksim.place");
        let mut next = 0;
        let tally = open_loop(&mut drive, self.count, |number| {
            let mut pages = 1;
            while sizes.chance(self.more) && (self.random || pages < 2) {
                pages += 1;
            }
            let place = if self.random {
                places.below(REGION_PAGES - pages + 1)
            } else {
                if next + pages > REGION_PAGES {
                    next = 0;
                }
                next
            };
            next = place + pages;
            let request = Request::new(self.op, place * PAGE, pages * PAGE, number);
            (Nanos(gaps.below(GAP_MAX)), request)
        });
        self.compare(&drive, &tally)
    }

    fn compare(&self, drive: &Drive, tally: &Tally) -> Vec<Check> {
        let row = |what: &str, expected, ours, tolerance, source: &str, unit| Check {
            group: Group::Oracle,
            what: format!("{}, {what}", self.name()),
            expected,
            ours,
            tolerance,
            source: source.into(),
            unit,
        };
        let claim = self.differs.is_none().then_some(TOLERANCE);
        let source = self.differs.unwrap_or(SOURCE);
        let [mean, deviation, max] = self.responses;
        let mut all = vec![row("mean", mean, tally.mean() / 1e6, claim, source, "ms")];
        if deviation > 0.0 {
            all.push(row("deviation", deviation, tally.deviation() / 1e6, None, source, "ms"));
            all.push(row("maximum", max, tally.max.0 as f64 / 1e6, None, source, "ms"));
        }
        if let Some([cleans, moved]) = self.cleaning {
            let counts = drive.flash_counts();
            let ours = counts.erases.total() as f64;
            all.push(row("cleans", cleans, ours, Some(TOLERANCE), SOURCE, "blocks"));
            let ours = counts.programs[Cause::Gc] as f64;
            // If no page should move, a single one is too many.
            let tolerance = if moved > 0.0 { TOLERANCE } else { 0.0 };
            all.push(row("moved", moved, ours, Some(tolerance), SOURCE, "pages"));
            let wa = (self.pages + moved) / self.pages;
            let host = counts.programs[Cause::Host] as f64;
            let ours = counts.programs.total() as f64 / host;
            all.push(row("write amplification", wa, ours, Some(TOLERANCE), SOURCE, ""));
        }
        all
    }
}
