//! Which changes are worth simulating for a trace and a drive, and what each is compared to.

use prism_base::{Bytes, Nanos};
use prism_replay::{Options, Outcome, Pace, Passes, SteadyState};
use prism_ssd::device::Mapping;
use prism_ssd::scale::fit_wide;
use prism_ssd::{Device, DeviceError, HostOp, InitialState};
use prism_workload::Measured;

use super::change::{Boundary, Change};
use super::device::{hybrid, whole_map, with_map_cache};
use super::facts::TraceFacts;
use super::figures::Figures;
use super::rewrite::UNITS_MAX;
use super::simulate::{MERGED_MAX, Run, WhatIfError, changes_trace};

/// How long writes wait for others, and how much later a group commit makes data durable:
/// what an interactive application can spare.
const WINDOW: Nanos = Nanos(10_000_000);
/// Closed loops last until so many times the write buffer is written, at least: less would
/// show how fast memory is.
const BUFFERS: u64 = 8;
/// Requests in flight where a drive with many dies is busy.
const DEEP: u32 = 32;
/// Placement handles: what drives with flexible data placement have.
const HANDLES: u16 = 8;
/// Classes of heat.
const HEATS: u16 = 4;
/// How long after its last use dead data is discarded: file systems discard with the commit
/// of their journal, which comes every 5 s; of short traces a twentieth part.
const DISCARD_DELAY: Nanos = Nanos(5_000_000_000);
const DISCARD_DELAY_SHARE: u64 = 20;
/// How long discards are held back, which is as long as the same file systems would.
const HELD_BACK: Nanos = DISCARD_DELAY;
/// Spare flash of drives made for writing, against about 7 % of others.
const SPARE: f64 = 0.28;
/// The part of its map that a drive with little memory caches, and how much more is tried
/// where a drive has a cache.
const CACHED: f64 = 0.1;
const CACHE_FACTOR: u64 = 4;
/// Erases behind the mean at which wear levelling moves a block, and erases of the mean
/// block for which it is watched: a few times as many, so that blocks can fall behind.
const BEHIND: u32 = 2;
const ERASES: u64 = 8;
/// Levelling is left out if that takes more than so many times the requests of the main
/// replay, or so many requests if that is more.
const LEVELLING_FACTOR: u64 = 4;
const LEVELLING_REQUESTS: u64 = 10_000_000;

/// The drive that maps blocks is watched while the host writes so many times its spare
/// flash: its log blocks are half of that, so a quarter of the time is spent before it has to
/// merge, and its price is rather understated. Random writes can make it copy a hundred units
/// for each that is written, so it is left out where that would be more than so many units in
/// all.
const HYBRID_SPARES: u64 = 2;
const HYBRID_COPIES: u64 = 100;
const HYBRID_UNITS_MAX: u64 = 50_000_000;

/// A simulation to be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// The drive and the pace.
    pub run: Run,
    /// How the trace is rewritten, if it is.
    pub rewriting: Option<Change>,
    /// About how many requests it will replay.
    pub requests: u64,
}

/// Where figures come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// The main replay.
    Main,
    /// The job with this index in [`Plan::jobs`].
    Job(usize),
}

/// A change and the two simulations that show what it does.
#[derive(Clone, Debug, PartialEq)]
pub struct WhatIf {
    /// What is changed.
    pub change: Change,
    /// Without it.
    pub before: Of,
    /// With it.
    pub after: Of,
    /// What a reader has to know of the comparison beside the change, as a whole sentence:
    /// where it is not with the main replay.
    pub note: Option<String>,
}

/// A change that was left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Skipped {
    /// Which.
    pub change: Change,
    /// Why, as the part of a sentence after "because".
    pub reason: String,
}

/// What is to be simulated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Changes, in the order of the rules.
    pub what_ifs: Vec<WhatIf>,
    /// The simulations that they need, each once.
    pub jobs: Vec<Job>,
    /// Changes that make no sense here.
    pub skipped: Vec<Skipped>,
}

/// A what-if that was simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// What was changed.
    pub change: Change,
    /// Without it.
    pub before: Figures,
    /// With it.
    pub after: Figures,
    /// What `before` is: a change of another drive than that of the main replay shows a
    /// price, and is no way to improve the main one.
    pub against: Of,
    /// As in [`WhatIf::note`].
    pub note: Option<String>,
}

/// The changes that make sense for a trace that was replayed as `main` says, which gave
/// `outcome`. `full` is the drive before it was made to fit the trace: what requests in
/// flight and their size bring is a question for all of its dies.
#[must_use]
pub fn plan(facts: &TraceFacts, main: &Run, full: &Device, outcome: &Outcome) -> Plan {
    let mut planner = Planner::new(facts, main, full, outcome);
    planner.request_scale();
    planner.locality();
    planner.alignment();
    planner.death_time();
    planner.lifetime();
    planner.plan
}

impl Plan {
    /// Requests that all jobs replay, about.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.jobs.iter().map(|job| job.requests).sum()
    }

    /// About how long the jobs take on `threads` threads, if the main replay, with what it
    /// took to prepare its drive, took `main` for `outcome`.
    #[must_use]
    pub fn estimate(&self, outcome: &Outcome, main: Nanos, threads: usize) -> Nanos {
        let replayed = requests_per_pass(outcome) * u64::from(passes(outcome)).max(1);
        let longest = self.jobs.iter().map(|job| job.requests).max().unwrap_or(0);
        let each = self.requests() / threads.max(1) as u64;
        let share = each.max(longest) as f64 / replayed.max(1) as f64;
        Nanos((main.0 as f64 * share) as u64)
    }

    /// Puts the figures of the jobs, in their order, beside each other. What has no figures
    /// joins those that were left out.
    ///
    /// # Panics
    /// If there are not as many as there are jobs.
    #[must_use]
    pub fn compare(
        mut self,
        main: &Figures,
        figures: &[Result<Figures, WhatIfError>],
    ) -> (Vec<Comparison>, Vec<Skipped>) {
        assert_eq!(self.jobs.len(), figures.len(), "figures of every job");
        let of = |of| match of {
            Of::Main => Ok(*main),
            Of::Job(index) => figures[index].clone(),
        };
        let mut comparisons = Vec::new();
        for WhatIf { change, before: against, after, note } in self.what_ifs {
            match (of(against), of(after)) {
                (Ok(before), Ok(after)) => {
                    let (before, after) = match change {
                        Change::Levelling { .. } => {
                            (before.until_the_first_block(), after.until_the_first_block())
                        }
                        _ => (before, after),
                    };
                    comparisons.push(Comparison { change, before, after, against, note });
                }
                (Err(error), _) | (_, Err(error)) => {
                    self.skipped.push(Skipped { change, reason: error.to_string() });
                }
            }
        }
        (comparisons, self.skipped)
    }
}

/// Requests of a pass, flushes included.
fn requests_per_pass(outcome: &Outcome) -> u64 {
    let all = |m: &Measured| m.latency.iter().map(prism_base::Latencies::count).sum::<u64>();
    all(&outcome.measured) / u64::from(outcome.measured.passes.max(1))
}

/// Passes of a replay, those before what was measured included.
fn passes(outcome: &Outcome) -> u32 {
    outcome.warm_up_passes + outcome.measured.passes
}

struct Planner<'a> {
    facts: &'a TraceFacts,
    main: &'a Run,
    full: &'a Device,
    outcome: &'a Outcome,
    /// Requests in flight in a closed loop that resembles the trace, and where that is from.
    depth: u32,
    plan: Plan,
}

impl<'a> Planner<'a> {
    fn new(facts: &'a TraceFacts, main: &'a Run, full: &'a Device, outcome: &'a Outcome) -> Self {
        let depth = match (main.options.pace, facts.median_depth) {
            (Pace::Closed { depth }, _) => depth,
            (_, Some(depth)) => depth,
            (_, None) => outcome.measured.in_flight_mean().round() as u32,
        };
        let depth = depth.clamp(1, main.device.drive.queue_depth);
        Self { facts, main, full, outcome, depth, plan: Plan::default() }
    }

    fn skip(&mut self, change: Change, reason: impl Into<String>) {
        self.plan.skipped.push(Skipped { change, reason: reason.into() });
    }

    /// The index of a job, which may be there already, or the main replay.
    fn job(&mut self, run: Run, rewriting: Option<Change>) -> Of {
        if run == *self.main && rewriting.is_none() {
            return Of::Main;
        }
        let passes = match run.options.passes {
            Passes::Fixed(passes) => passes,
            Passes::Steady | Passes::UntilReadOnly => passes(self.outcome),
        };
        let requests = requests_per_pass(self.outcome) * u64::from(passes);
        let job = Job { run, rewriting, requests };
        let known = self.plan.jobs.iter().position(|other| *other == job);
        Of::Job(known.unwrap_or_else(|| {
            self.plan.jobs.push(job);
            self.plan.jobs.len() - 1
        }))
    }

    /// Compares `change` of `before` with `before` as it is.
    fn add(&mut self, change: Change, before: &Run, note: Option<String>) {
        match change.applied(before) {
            Ok(after) => self.add_runs(change, before.clone(), after, note),
            Err(error) => self.skip(change, no_drive(&error)),
        }
    }

    fn add_runs(&mut self, change: Change, before: Run, after: Run, note: Option<String>) {
        let before = self.job(before, None);
        let after = self.job(after, changes_trace(&change).then_some(change));
        self.plan.what_ifs.push(WhatIf { change, before, after, note });
    }

    /// A closed loop of the trace's own depth on a drive with all dies, and what a reader has
    /// to know of it. The drive is not worn in: it has as much erased flash as at the start.
    fn closed(&self) -> (Run, String) {
        let mut run = self.main.clone();
        // Where no drive has all dies, that of the main replay has to do.
        if let Ok(wide) = fit_wide(self.full, self.main.device.capacity()) {
            run = Run::new(wide.device, run.options, InitialState::Filled, run.seed);
        }
        let m = &self.outcome.measured;
        let a_pass = (m.bytes_of(HostOp::Write) / u64::from(m.passes.max(1))).max(1);
        let wanted = (BUFFERS * run.device.drive.write_buffer.0).div_ceil(a_pass);
        let most = passes(self.outcome).max(1);
        let count = u32::try_from(wanted).unwrap_or(u32::MAX).min(most);
        run.options =
            Options { pace: Pace::Closed { depth: self.depth }, passes: Passes::Fixed(count) };
        let source = match (self.main.options.pace, self.facts.median_depth) {
            (Pace::Closed { .. }, _) => "as in the main replay",
            (_, Some(_)) => "the median of the trace",
            (_, None) => "the mean of the main replay, as the trace has no completions",
        };
        let note = format!(
            "On a filled drive with all of its {} dies, as fast as requests are served; first {} \
             in flight, {source}.",
            run.device.geometry().dies(),
            self.depth
        );
        (run, note)
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
            self.skip(deep, format!("{} requests are in flight as it is", self.depth));
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
                    self.skip(change, "the cache holds the whole map as it is");
                } else {
                    self.add(change, self.main, None);
                }
            }
            (Mapping::Page | Mapping::Dftl, _) => {
                let change = Change::MapCache { bytes: whole };
                // A tenth, of which there have to be 64 entries at least.
                let least = 64 * Device::MAP_ENTRY;
                let tenth = Bytes(((whole.0 as f64 * CACHED) as u64).max(least));
                let note = format!(
                    "Both on a drive with its map on flash, which first caches {:.0} % of it.",
                    CACHED * 100.0
                );
                match with_map_cache(device, tenth) {
                    Ok(device) => {
                        let before = Run { device, ..self.main.clone() };
                        self.add(change, &before, Some(note));
                    }
                    Err(error) => self.skip(change, no_drive(&error)),
                }
            }
            (Mapping::Zns, _) => {
                self.skip(Change::MapCache { bytes: whole }, "a table of zones is small");
            }
            (_, _) => {
                self.skip(Change::MapCache { bytes: whole }, "a map of blocks is small");
            }
        }
    }

    fn alignment(&mut self) {
        let geometry = self.main.device.geometry();
        let block = geometry.row_bytes() * u64::from(geometry.rows_per_die());
        let boundaries = [
            (Boundary::Page, geometry.page),
            (Boundary::Stripe, geometry.row_bytes()),
            (Boundary::Block, block),
        ];
        for (what, to) in boundaries {
            let align = Change::Align { what, to };
            if !self.writes() {
                self.skip(align, NOTHING_WRITTEN);
            } else if what == Boundary::Stripe && to == geometry.page {
                self.skip(align, "a row is one page on this drive");
            } else {
                self.add(align, self.main, None);
            }
        }
        if !self.writes() {
            return self.skip(Change::PageMap, NOTHING_WRITTEN);
        }
        if self.main.device.ftl.mapping.is_by_block() {
            return self.skip(Change::PageMap, "the drive itself maps blocks");
        }
        self.page_map();
    }

    fn page_map(&mut self) {
        let device = &self.main.device;
        let unit = device.ftl.mapping_unit.0;
        let spare = device.usable_units().saturating_sub(u64::from(device.logical_units()));
        let m = &self.outcome.measured;
        let a_pass = (m.bytes_of(HostOp::Write) / unit / u64::from(m.passes.max(1))).max(1);
        let count = (HYBRID_SPARES * spare).div_ceil(a_pass);
        if count * a_pass * HYBRID_COPIES > HYBRID_UNITS_MAX {
            let reason = "the copies of a drive of this size that maps blocks take too long";
            return self.skip(Change::PageMap, reason);
        }
        let mut after = self.main.clone();
        after.device.drive.power_loss_protection = true;
        match hybrid(device) {
            Ok(device) => {
                let mut before = Run { device, ..self.main.clone() };
                before.options.passes = Passes::Fixed(u32::try_from(count).unwrap_or(u32::MAX));
                let mut note = format!(
                    "Before: a drive with as much flash that maps blocks behind log blocks, over \
                     {count} passes."
                );
                if !self.main.device.drive.power_loss_protection {
                    note.push_str(" Both are protected against power loss, which blocks need.");
                }
                self.add_runs(Change::PageMap, before, after, Some(note));
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
                self.skip(change, "the drive ignores discards as it is");
            } else if needs_streams && !by_stream {
                self.skip(change, "the drive's own mapping says where data goes");
            } else if knows_future && self.facts.units_accessed >= UNITS_MAX as u64 {
                self.skip(change, "the trace is too long to know its future in memory");
            } else {
                self.add(change, self.main, None);
            }
        }
    }

    fn lifetime(&mut self) {
        let change = Change::Levelling { behind: BEHIND };
        if !self.writes() {
            return self.skip(change, NOTHING_WRITTEN);
        }
        if self.main.device.ftl.mapping.is_by_block() {
            return self.skip(change, "mappings by block have no wear levelling");
        }
        let m = &self.outcome.measured;
        let a_pass = (m.flash_bytes / u64::from(m.passes.max(1))).max(1);
        let wanted = (ERASES * self.main.raw.0).div_ceil(a_pass);
        let per_pass = requests_per_pass(self.outcome);
        let replayed = per_pass * u64::from(passes(self.outcome));
        let most = LEVELLING_REQUESTS.max(LEVELLING_FACTOR * replayed);
        let requests = wanted.saturating_mul(per_pass);
        if requests > most {
            let reason = format!("{ERASES} erases of every block take {wanted} passes");
            return self.skip(change, reason);
        }
        let mut before = self.main.clone();
        before.device.ftl.wear_move_behind_mean = None;
        before.options.passes = Passes::Fixed(u32::try_from(wanted).unwrap_or(u32::MAX));
        let note = format!(
            "Both over {wanted} passes of the trace, until blocks are erased about {ERASES} times; \
             the lifetimes are those of the block that is erased most."
        );
        self.add(change, &before, Some(note));
    }
}

const NOTHING_WRITTEN: &str = "nothing is written";
const NO_DISCARDS: &str = "the trace discards nothing";
const HOT_COLD: Change = Change::HotCold { classes: HEATS };

fn no_drive(error: &DeviceError) -> String {
    format!("the drive that this needs cannot be: {error}")
}
