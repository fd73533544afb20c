//! Figure 3 and Table 6: cleaning that is postponed while priority requests are in flight.
//!
//! Requests arrive 0 to 0.1 ms apart (uniform), and a tenth of them have priority. Cleaning begins
//! below 5 % of free pages; priority-aware cleaning is postponed down to 2 % while a priority
//! request is in flight. The paper gives neither sizes nor addresses of requests, nor the length of
//! a run. The length is bounded by the statement that nothing improves with 20 % writes, because
//! "cleaning does not happen frequently": those runs end before the spare pages above 5 % are used
//! up, and runs with 40 % writes do not. So here a run has [`LENGTH`] times as many requests as
//! there are such pages. Requests have 4 KiB; their addresses are swept.

use prism_base::{Bytes, Nanos, Rng};
use prism_engine::CleaningMode;
use prism_ssd::{Completion, DriveSpec, HostOp, Request};

use super::{closest, line};
use crate::comparison::{Basis, Comparison, Quantity, Why};
use crate::drives::{filled, preset, smaller, spare_units};
use crate::load::{OpenLoop, Tally, run};
use crate::scale::Scale;

/// Percent of writes (Table 6).
pub const WRITES: [u64; 5] = [20, 40, 50, 60, 80];
/// Published improvement of the response of priority requests in percent (Table 6).
pub const IMPROVEMENT: [f64; 5] = [0.0, 9.56, 10.27, 9.61, 9.47];
/// Requests of a run, as a multiple of the spare pages above the low threshold.
pub const LENGTH: f64 = 3.5;

const GAP_MAX: u64 = 100_000;
const PRIORITY: f64 = 0.1;
const LOW: u32 = 20;
const CRITICAL: u32 = 50;
const PAGE: u64 = 4096;
/// Requests that may be in flight; a drive with a longer queue cannot keep up.
const OUTSTANDING_MAX: u32 = 1 << 14;

/// The addresses of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    /// Requests go to one part in so many of the addresses.
    pub one_in: u64,
    /// The order of the addresses.
    pub order: Order,
}

/// The order of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Random, uniform over the part that is used.
    Random,
    /// Sequential.
    Sequential,
}

/// All addresses that are tried. The first are those of the validation runs of the paper's
/// simulator.
pub const PLACES: [Places; 6] = [
    Places { one_in: 8, order: Order::Random },
    Places { one_in: 7, order: Order::Random },
    Places { one_in: 6, order: Order::Random },
    Places { one_in: 4, order: Order::Random },
    Places { one_in: 1, order: Order::Random },
    Places { one_in: 8, order: Order::Sequential },
];

/// Mean responses in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Responses {
    /// Mean response of priority requests.
    pub foreground: f64,
    /// Mean response of the other requests.
    pub background: f64,
    /// Blocks erased in the run.
    pub erases: u64,
}

/// The runs with one share of writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// The addresses.
    pub places: Places,
    /// Percent of writes.
    pub writes: u64,
    /// With cleaning that begins at the low threshold; `None` if the drive cannot keep up.
    pub agnostic: Option<Responses>,
    /// With cleaning that is postponed for priority requests, down to the critical threshold.
    pub aware: Option<Responses>,
}

/// All runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Priority {
    /// By addresses, then by share of writes.
    pub runs: Vec<Run>,
}

pub(super) fn measure(places: Places, writes: u64, scale: Scale, seed: u64) -> Run {
    let mut device = preset("atc08");
    if scale == Scale::Quarter {
        device = smaller(&device, Bytes(1 << 30));
    }
    let blocks = device.geometry().blocks_per_die_group();
    device.ftl.free_blocks_low = blocks / LOW;
    device.ftl.free_blocks_high = blocks / LOW + 1;
    device.ftl.free_blocks_critical = (blocks / CRITICAL).max(2);
    device.drive.queue_depth = OUTSTANDING_MAX;
    device.check().expect("thresholds within the spare");
    let mut run = |mode| {
        device.ftl.cleaning = mode;
        responses(&device, places, writes, seed)
    };
    let agnostic = run(CleaningMode::Foreground);
    Run { places, writes, agnostic, aware: run(CleaningMode::PriorityAware) }
}

fn responses(device: &DriveSpec, places: Places, writes: u64, seed: u64) -> Option<Responses> {
    let mut drive = filled(device.clone(), seed);
    let count = (LENGTH * spare_units(device) as f64) as u64;
    let span = device.capacity().0 / PAGE / places.one_in;
    let stream = |label| Rng::stream(seed, label);
    let (mut gaps, mut kinds) = (stream("atc09.priority.gap"), stream("atc09.priority.kind"));
    let (mut at, mut urgent) = (stream("atc09.priority.at"), stream("atc09.priority.urgent"));
    let mut place = 0;
    let next = |_| {
        let gap = Nanos(gaps.below(GAP_MAX));
        let op = if kinds.below(100) < writes { HostOp::Write } else { HostOp::Read };
        place = match places.order {
            Order::Random => at.below(span),
            Order::Sequential => (place + 1) % span,
        };
        let request = Request::new(op, place * PAGE, PAGE, 0);
        (gap, Request { urgent: urgent.chance(PRIORITY), ..request })
    };
    let mut tallies = [Tally::starting(drive.now()); 2];
    let completed = |completion: &Completion, request: &Request, due| {
        tallies[usize::from(request.urgent)].add(completion, due);
    };
    let mut host = OpenLoop::new(drive.now(), count, 0, next, completed);
    run(&mut drive, &mut host);
    if host.gave_up() {
        return None;
    }
    let [background, foreground] = tallies.map(|tally| tally.mean() / 1e6);
    Some(Responses { foreground, background, erases: drive.flash_counts().erases.total() })
}

impl Places {
    /// Its name in tables: the part of the addresses, and the order.
    #[must_use]
    pub fn name(&self) -> String {
        let order = match self.order {
            Order::Random => "random",
            Order::Sequential => "sequential",
        };
        match self.one_in {
            1 => format!("all, {order}"),
            part => format!("1/{part}, {order}"),
        }
    }
}

impl Run {
    /// Percent by which priority-aware cleaning lowers the mean response of priority requests.
    #[must_use]
    pub fn improvement(&self) -> Option<f64> {
        let (agnostic, aware) = (self.agnostic?, self.aware?);
        Some(100.0 * (1.0 - aware.foreground / agnostic.foreground))
    }
}

impl Priority {
    /// The runs with one kind of addresses.
    pub fn of(&self, places: Places) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |run| run.places == places)
    }

    /// The addresses with the results closest to the table, among those where the drive keeps up.
    #[must_use]
    pub fn closest(&self) -> Option<Places> {
        let off = |places: &Places| -> f64 {
            let difference = |(run, published): (&Run, f64)| {
                run.improvement().map_or(f64::INFINITY, |ours| (ours - published).abs())
            };
            self.of(*places).zip(IMPROVEMENT).map(difference).sum()
        };
        let kept_up = PLACES.into_iter().filter(|places| off(places).is_finite());
        closest(kept_up, off)
    }

    pub(super) fn lines(&self) -> Vec<Comparison> {
        let reason = Why::NotGiven(
            "addresses, sizes and lengths of the runs are not given, and the gain depends on how \
             close to saturation cleaning brings the drive: see the runs",
        );
        let Some(places) = self.closest() else { return Vec::new() };
        let mut lines = Vec::new();
        for (run, published) in self.of(places).zip(IMPROVEMENT) {
            let what = format!("priority requests faster, {} % writes", run.writes);
            let both = [published, run.improvement().unwrap_or(f64::NAN)];
            lines.push(line("Table 6", what, Quantity::Percent, both, reason).on(Basis::Closest));
        }
        lines
    }
}
