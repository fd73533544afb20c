//! Chooses the changes worth simulating for a trace and a drive, and the runs that each is compared
//! with.

use prism_base::{Bytes, Nanos};
use prism_replay::{Options, Pace, Passes, ReplayResult, SteadyState};
use prism_ssd::spec::Mapping;
use prism_ssd::{DriveSpec, DriveSpecError};

use super::change::{Boundary, Change};
use super::device::{GROUP_BLOCKS, group_bytes, hybrid, whole_map, with_map_cache};
use super::facts::TraceFacts;
use super::plan::{
    FigureSource, Job, MainRuns, Plan, Skipped, Sources, WhatIf, passes, requests_per_pass,
};
use super::rewrite::UNITS_MAX;
use super::simulate::{MERGED_MAX, Run, Selection, changes_trace};

/// How long writes wait to be merged, and how long a group commit delays durability. An
/// interactive application can afford this delay.
const WINDOW: Nanos = Nanos(10_000_000);
/// The least amount of data that a closed loop writes, in write buffers. With less, the
/// result would mostly show the speed of the buffer.
const BUFFERS: u64 = 8;
/// The most passes of a closed loop.
const CLOSED_PASSES_MAX: u32 = 100;
/// A queue depth that keeps a drive with many dies busy.
const DEEP: u32 = 32;
/// Placement handles of typical drives with flexible data placement.
const HANDLES: u16 = 8;
/// Classes of hot and cold data.
const HEATS: u16 = 4;
/// The time from the last use of dead data to its discard. File systems discard when they
/// commit their journal, which they do every 5 s.
const DISCARD_DELAY: Nanos = Nanos(5_000_000_000);
/// In a short trace, the delay is the duration of the trace divided by this.
const DISCARD_DELAY_SHARE: u64 = 20;
/// How long discards are held back: the journal commit interval of the same file systems.
const HELD_BACK: Nanos = DISCARD_DELAY;
/// Over-provisioning of drives made for many writes; others have about 7 %.
const SPARE: f64 = 0.28;
/// The share of the map that a drive with little memory caches.
const CACHED: f64 = 0.1;
/// How many times larger a cache is simulated if the drive already has a map cache.
const CACHE_FACTOR: u64 = 4;
/// Erases below the mean from which wear levelling moves the data of a block.
const BEHIND: u32 = 2;
/// Mean erases per block in the simulation of wear levelling: several times [`BEHIND`], so
/// that some blocks do fall that far behind.
const ERASES: u64 = 8;
/// Wear levelling is skipped if it takes more than this many times the requests of the main
/// replay, and more than [`LEVELLING_REQUESTS`].
const LEVELLING_FACTOR: u64 = 4;
const LEVELLING_REQUESTS: u64 = 10_000_000;

/// Wear levelling is also skipped if the trace would be repeated more often than this.
const LEVELLING_PASSES: u64 = 10_000;

/// The drive with a block-level mapping runs until the host has written this many times its
/// spare flash. The log blocks take half of the spare flash, so the first merge comes after a
/// quarter of the run, and the measured price is rather too low.
const HYBRID_SPARES: u64 = 2;
/// It is skipped if a pass writes more units than this: each may be merged into a hundred.
const HYBRID_WRITES_MAX: u64 = 500_000;
/// It ends after the pass in which this many units are programmed.
const HYBRID_UNITS_MAX: u64 = 2_000_000;

/// Plans the changes that make sense for a trace whose main replay was `main`. The speed of changes
/// of the queue depth and of request sizes is that of a closed loop.
#[must_use]
pub fn plan(facts: &TraceFacts, main: MainRuns<'_>) -> Plan {
    let mut planner = Planner::new(facts, main);
    planner.request_scale();
    planner.locality();
    planner.alignment();
    planner.death_time();
    planner.lifetime();
    planner.plan
}

/// The runs of one side of a comparison; `speed` is `None` if speed comes from the first one.
#[derive(Clone)]
struct Side {
    wear: Run,
    speed: Option<Run>,
}

struct Planner<'a> {
    facts: &'a TraceFacts,
    /// The run on the drive fitted to the trace, and its result.
    main: &'a Run,
    outcome: &'a ReplayResult,
    /// The run on the drive with all dies, if it is another one.
    speed: Option<&'a Run>,
    /// The queue depth of a closed loop that resembles the trace.
    depth: u32,
    plan: Plan,
}

impl<'a> Planner<'a> {
    fn new(facts: &'a TraceFacts, runs: MainRuns<'a>) -> Self {
        let ((main, outcome), (speed, timed)) = (runs.wear, runs.speed);
        let depth = match (main.options.pace, facts.median_depth) {
            (Pace::Closed { depth }, _) => depth,
            (_, Some(depth)) => depth,
            (_, None) => timed.measured.in_flight_mean().round() as u32,
        };
        let depth = depth.clamp(1, main.device.drive.queue_depth);
        let speed = (speed != main).then_some(speed);
        Self { facts, main, outcome, speed, depth, plan: Plan::default() }
    }

    fn skip(&mut self, change: Change, reason: impl Into<String>) {
        self.plan.skipped.push(Skipped { change, reason: reason.into() });
    }

    /// The runs of the main replay.
    fn main_side(&self) -> Side {
        Side { wear: self.main.clone(), speed: self.speed.cloned() }
    }

    /// Adds a job unless the main replay or an existing job is the same simulation, and
    /// returns that simulation.
    fn job(
        &mut self,
        run: Run,
        rewriting: Option<Change>,
        cleaning_of: Option<FigureSource>,
    ) -> FigureSource {
        let is_main = run == *self.main || self.speed == Some(&run);
        if is_main && rewriting.is_none() {
            return FigureSource::Main;
        }
        let passes = match run.options.passes {
            Passes::Fixed(passes) | Passes::UpTo { passes, .. } => passes,
            Passes::Steady | Passes::UntilReadOnly => passes(self.outcome),
        };
        let requests = self.requests_per_pass(run.records) * u64::from(passes);
        let job = Job { run, rewriting, cleaning_of, requests };
        let known = self.plan.jobs.iter().position(|other| *other == job);
        FigureSource::Job(known.unwrap_or_else(|| {
            self.plan.jobs.push(job);
            self.plan.jobs.len() - 1
        }))
    }

    /// The simulations of `side` with the trace rewritten by `rewriting`.
    fn sources(&mut self, side: Side, rewriting: Option<Change>) -> Sources {
        let wear = self.job(side.wear, rewriting, None);
        let speed = match side.speed {
            None => wear,
            Some(run) => {
                let depends = run.cleaning.is_some().then_some(wear);
                self.job(run, rewriting, depends)
            }
        };
        Sources { wear, speed }
    }

    /// Plans to compare `before` with and without `change`.
    fn add(&mut self, change: Change, before: &Side, note: Option<String>) {
        let wear = match change {
            // How fast requests come does not matter for wear.
            Change::Depth { .. } if before.speed.is_some() => Ok(before.wear.clone()),
            _ => change.applied(&before.wear),
        };
        let speed = before.speed.as_ref().map(|run| change.applied(run)).transpose();
        match (wear, speed) {
            (Ok(wear), Ok(speed)) => {
                self.add_runs(change, before.clone(), Side { wear, speed }, note);
            }
            (Err(error), _) | (_, Err(error)) => self.skip(change, no_drive(&error)),
        }
    }

    fn add_runs(&mut self, change: Change, before: Side, after: Side, note: Option<String>) {
        let pace = before.speed.as_ref().unwrap_or(&before.wear).options.pace;
        let loop_depth = match pace {
            Pace::Closed { depth } if pace != self.main.options.pace => Some(depth),
            _ => None,
        };
        let before = self.sources(before, None);
        let after = self.sources(after, changes_trace(&change).then_some(change));
        self.plan.what_ifs.push(WhatIf { change, before, after, note, loop_depth });
    }

    /// A closed loop at the queue depth of the trace, and the note that describes it.
    fn closed(&self) -> (Side, String) {
        let mut run = self.speed.unwrap_or(self.main).clone();
        let m = &self.outcome.measured;
        let a_pass = (m.written() / u64::from(m.passes.max(1))).max(1);
        let wanted = (BUFFERS * run.device.drive.write_buffer.0).div_ceil(a_pass);
        let count = u32::try_from(wanted).unwrap_or(u32::MAX).min(CLOSED_PASSES_MAX);
        run.options =
            Options { pace: Pace::Closed { depth: self.depth }, passes: Passes::Fixed(count) };
        let source = match (self.main.options.pace, self.facts.median_depth) {
            (Pace::Closed { .. }, _) => "as in the main replay",
            (_, Some(_)) => "the median of the trace",
            (_, None) => "the mean of the main replay, as the trace has no completion times",
        };
        let note = format!(
            "Speed and latency, before and after, with requests issued as fast as they are \
             served; queue depth before the change: {}, {source}.",
            self.depth
        );
        (Side { wear: self.main.clone(), speed: Some(run) }, note)
    }

    /// Requests per pass of those that are replayed.
    fn requests_per_pass(&self, records: Selection) -> u64 {
        let all = requests_per_pass(self.outcome);
        match records {
            Selection::All => all,
            Selection::WithoutReads => all.saturating_sub(self.facts.reads),
        }
    }

    fn writes(&self) -> bool {
        self.facts.writes > 0 && self.outcome.steady != SteadyState::NoWrites
    }

    fn request_scale(&mut self) {
        let (closed, note) = self.closed();
        let note = Some(note);
        let queue = self.main.device.drive.queue_depth;
        let deep = Change::Depth { requests: DEEP.min(queue) };
        if self.depth >= DEEP.min(queue) {
            self.skip(deep, format!("{} requests are already in flight", self.depth));
        } else {
            self.add(deep, &closed, note.clone());
        }
        let merge = Change::Merge { most: MERGED_MAX, window: WINDOW };
        let commit = Change::GroupCommit { window: WINDOW };
        match (self.writes(), self.facts.barriers) {
            (false, _) => {
                self.skip(merge, NOTHING_WRITTEN);
                self.skip(commit, NOTHING_WRITTEN);
            }
            (true, 0) => {
                self.add(merge, &closed, note.clone());
                self.skip(commit, "the trace has no flush, FUA or preflush");
            }
            (true, _) => {
                self.add(merge, &closed, note.clone());
                self.add(commit, &closed, note.clone());
            }
        }
        let delay = Change::DelayDiscards { by: HELD_BACK };
        if self.facts.discards == 0 {
            self.skip(delay, NO_DISCARDS);
        } else {
            self.add(delay, &closed, note);
        }
    }

    fn locality(&mut self) {
        let device = &self.main.device;
        let whole = whole_map(device);
        match (device.ftl.mapping, device.ftl.map_cache) {
            (Mapping::Dftl, Some(cache)) => {
                let change = Change::MapCache { bytes: whole.min(Bytes(cache.0 * CACHE_FACTOR)) };
                if cache >= whole {
                    self.skip(change, "the cache already holds the whole map");
                } else {
                    self.add(change, &self.main_side(), None);
                }
            }
            (Mapping::Page | Mapping::Dftl, _) => {
                let change = Change::MapCache { bytes: whole };
                // A tenth of the map, but at least 64 entries.
                let least = 64 * DriveSpec::MAP_ENTRY;
                let tenth = Bytes(((whole.0 as f64 * CACHED) as u64).max(least));
                let note = format!(
                    "Both on a drive with its map on flash, which caches {:.0} % of the map before \
                     the change.",
                    CACHED * 100.0
                );
                let with_cache = |run: &Run| -> Result<Run, DriveSpecError> {
                    Ok(Run { device: with_map_cache(&run.device, tenth)?, ..run.clone() })
                };
                let before = with_cache(self.main).and_then(|wear| {
                    Ok(Side { wear, speed: self.speed.map(with_cache).transpose()? })
                });
                match before {
                    Ok(before) => self.add(change, &before, Some(note)),
                    Err(error) => self.skip(change, no_drive(&error)),
                }
            }
            (Mapping::Zns, _) => {
                self.skip(Change::MapCache { bytes: whole }, "a zone mapping is small");
            }
            (_, _) => {
                self.skip(Change::MapCache { bytes: whole }, "a block-level mapping is small");
            }
        }
    }

    fn alignment(&mut self) {
        let geometry = self.main.device.geometry();
        let block = geometry.program_unit_bytes() * u64::from(geometry.program_units_per_die());
        let boundaries = [
            (Boundary::Page, geometry.page),
            (Boundary::Stripe, geometry.program_unit_bytes()),
            (Boundary::Block, block),
        ];
        for (what, to) in boundaries {
            let align = Change::Align { what, to };
            if !self.writes() {
                self.skip(align, NOTHING_WRITTEN);
            } else if what == Boundary::Stripe && to == geometry.page {
                self.skip(align, "a program unit is one page on this drive");
            } else {
                self.add(align, &self.main_side(), None);
            }
        }
        if !self.writes() {
            return self.skip(Change::PageMap, NOTHING_WRITTEN);
        }
        if self.main.device.ftl.mapping.is_by_block() {
            return self.skip(Change::PageMap, "the drive itself has a block-level mapping");
        }
        self.page_map();
    }

    fn page_map(&mut self) {
        let device = &self.main.device;
        let unit = device.ftl.mapping_unit.0;
        let spare = device.usable_units().saturating_sub(u64::from(device.logical_units()));
        let m = &self.outcome.measured;
        let a_pass = (m.written() / unit / u64::from(m.passes.max(1))).max(1);
        let count = (HYBRID_SPARES * spare).div_ceil(a_pass);
        let requests = count.saturating_mul(requests_per_pass(self.outcome));
        let long = requests > LEVELLING_REQUESTS || count > LEVELLING_PASSES;
        if a_pass > HYBRID_WRITES_MAX || long {
            let reason = "simulating a block-level mapping on this drive takes too long";
            return self.skip(Change::PageMap, reason);
        }
        let mut after = self.main.clone();
        after.device.drive.power_loss_protection = true;
        match hybrid(device) {
            Ok(device) => {
                let group = group_bytes(&device);
                let mut before = Run { device, ..self.main.clone() };
                before.options.passes = Passes::UpTo {
                    passes: u32::try_from(count).unwrap_or(u32::MAX),
                    units: HYBRID_UNITS_MAX,
                };
                let mut note = format!(
                    "Before the change: a drive with the same amount of flash and a block-level \
                     mapping with log blocks, which merges groups of {GROUP_BLOCKS} erase \
                     blocks, {group} together, over at most {}.",
                    many(count)
                );
                if !self.main.device.drive.power_loss_protection {
                    note.push_str(
                        " Both have power-loss protection, which block-level mappings need.",
                    );
                }
                let alone = |wear| Side { wear, speed: None };
                self.add_runs(Change::PageMap, alone(before), alone(after), Some(note));
            }
            Err(error) => self.skip(Change::PageMap, no_drive(&error)),
        }
    }

    fn death_time(&mut self) {
        let ftl = &self.main.device.ftl;
        let by_stream = ftl.segment.is_none() && !ftl.mapping.is_by_block();
        let now = self.main.device.over_provisioning().effective;
        let part = self.facts.duration.0 / DISCARD_DELAY_SHARE;
        let discards = Change::Discards { delay: DISCARD_DELAY.min(Nanos(part)) };
        let streams = Change::Streams { handles: HANDLES };
        let spare = if now < SPARE / 1.5 { SPARE } else { 2.0 * now };
        let over = Change::OverProvisioning { spare };
        let changes = [discards, Change::NoDiscards, streams, HOT_COLD, over];
        for change in changes {
            let knows_future = matches!(change, Change::Discards { .. } | Change::Streams { .. });
            let needs_streams = matches!(change, Change::Streams { .. } | Change::HotCold { .. });
            if !self.writes() {
                self.skip(change, NOTHING_WRITTEN);
            } else if change == Change::NoDiscards && self.facts.discards == 0 {
                self.skip(change, NO_DISCARDS);
            } else if change == Change::NoDiscards && !self.main.device.drive.discards {
                self.skip(change, "the drive ignores discards anyway");
            } else if needs_streams && !by_stream {
                self.skip(change, "the drive's own mapping decides where data goes");
            } else if knows_future && self.facts.units_accessed >= UNITS_MAX as u64 {
                self.skip(change, "the trace is too long to look ahead in it in memory");
            } else {
                self.add(change, &self.main_side(), None);
            }
        }
    }

    fn lifetime(&mut self) {
        let change = Change::Levelling { behind: BEHIND };
        if !self.writes() {
            return self.skip(change, NOTHING_WRITTEN);
        }
        if self.main.device.ftl.mapping.is_by_block() {
            return self.skip(change, "block-level mappings have no wear levelling");
        }
        let mut before = self.main_side();
        before.wear.device.ftl.wear_move_behind_mean = None;
        if let Some(speed) = &mut before.speed {
            // Reads matter on the drive where speed is measured.
            speed.device.ftl.wear_move_behind_mean = None;
            before.wear.records = Selection::WithoutReads;
        }
        let m = &self.outcome.measured;
        let a_pass = (m.flash_bytes / u64::from(m.passes.max(1))).max(1);
        let wanted = (ERASES * self.main.raw.0).div_ceil(a_pass);
        let replayed = requests_per_pass(self.outcome) * u64::from(passes(self.outcome));
        let most = LEVELLING_REQUESTS.max(LEVELLING_FACTOR * replayed);
        let requests = wanted.saturating_mul(self.requests_per_pass(before.wear.records));
        if requests > most || wanted > LEVELLING_PASSES {
            let reason = format!("{ERASES} erases of every block would take {wanted} passes");
            return self.skip(change, reason);
        }
        before.wear.options.passes = Passes::Fixed(u32::try_from(wanted).unwrap_or(u32::MAX));
        let selection = match before.wear.records {
            Selection::All => "",
            Selection::WithoutReads => " without its reads",
        };
        let note = format!(
            "Wear of both over {} of the trace{selection}, until the mean block is \
             erased about {ERASES} times; the lifetimes are those of the block erased most, with \
             levelling a lower bound.",
            many(wanted)
        );
        self.add(change, &before, Some(note));
    }
}

const NOTHING_WRITTEN: &str = "nothing is written";
const NO_DISCARDS: &str = "the trace discards nothing";
const HOT_COLD: Change = Change::HotCold { classes: HEATS };

fn many(passes: u64) -> String {
    format!("{passes} pass{}", if passes == 1 { "" } else { "es" })
}

fn no_drive(error: &DriveSpecError) -> String {
    format!("the drive that this change needs is not possible: {error}")
}
