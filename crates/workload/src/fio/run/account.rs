//! Statistics of a run: rows of the report, stages, and calls of the observer.

use prism_base::{Nanos, SimTime};
use prism_engine::FlashWork;
use prism_ssd::{BlockDevice, Completion, Status};

use super::{Pending, RunError, Runner, Tag};
use crate::fio::stats::{Completed, JobStats};
use crate::measure::Measured;
use crate::observe::{Finished, Issuer, Progress};

/// One row of the report.
#[derive(Clone, Debug)]
pub struct Row {
    /// Number of its first job.
    pub first: usize,
    /// Number of its jobs: one, or those of a group with `group_reporting`.
    pub jobs: usize,
    /// Its statistics.
    pub stats: JobStats,
}

/// Jobs between two stonewalls.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Numbers of the first job and of the one after the last.
    pub jobs: std::ops::Range<usize>,
    /// Figures from the begin of the measurement of the first job to the last completion.
    pub measured: Measured,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// Rows in the order of the jobs.
    pub rows: Vec<Row>,
    /// Stages in the order of time.
    pub stages: Vec<Stage>,
    /// Sum of all stages.
    pub total: Measured,
    /// Measured time with at least one request in flight.
    pub busy: Nanos,
}

/// The device's counts at the begin of a stage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    at: SimTime,
    work: Option<FlashWork>,
}

impl<D: BlockDevice + ?Sized> Runner<'_, D> {
    /// Sets the number of I/Os in flight from `at` on.
    #[inline(always)]
    pub(super) fn set_in_flight(&mut self, at: SimTime, in_flight: u32) {
        if self.before.is_some() {
            if at > self.last_change {
                let span = at.since(self.last_change).0;
                self.busy += if self.in_flight > 0 { span } else { 0 };
                self.in_flight_ns += u128::from(span) * u128::from(self.in_flight);
            }
            self.in_flight_max = self.in_flight_max.max(in_flight);
        }
        self.last_change = at;
        self.in_flight = in_flight;
        if self.observed
            && self.before.is_some()
            && let Some(origin) = self.origin
        {
            self.observer.in_flight(SimTime(at.since(origin).0), in_flight);
        }
    }

    /// Begins the measurement of the current stage, unless it has begun.
    #[inline]
    pub(super) fn begin_stage(&mut self, now: SimTime) -> Result<(), RunError> {
        if self.before.is_some() { Ok(()) } else { self.begin_measurement(now) }
    }

    #[inline(never)]
    fn begin_measurement(&mut self, now: SimTime) -> Result<(), RunError> {
        self.set_in_flight(now, self.in_flight);
        self.before = Some(Before { at: now, work: self.device.flash_work() });
        if self.origin.is_none() {
            self.origin = Some(now);
            return self.report(0);
        }
        Ok(())
    }

    #[inline(always)]
    pub(super) fn complete(&mut self, completion: &Completion) -> Result<(), RunError> {
        let tag = Tag::of(completion);
        let (op, len, at) = (completion.op, completion.len, completion.completed);
        let (mut issued, mut depth) = (completion.submitted, tag.slot);
        if !tag.has_depth {
            (issued, depth) = self.give_back(tag.slot);
        }
        let worker = &mut self.workers[tag.job as usize];
        worker.completed(op);
        let (measures, measured_from) = (worker.measures(at), worker.measured_from);
        if measures {
            // An I/O may complete at the very end of its job's ramp.
            self.begin_stage(at)?;
        }
        let latency = at.since(issued);
        if let Some(zones) = &mut self.zones {
            zones.done(&self.pending[tag.slot].io);
        }
        self.set_in_flight(at, self.in_flight - 1);
        let manages = op.manages_zone();
        let counted = measures && !manages;
        if counted {
            let stats = &mut self.rows[self.row_of[tag.job as usize]].stats;
            stats.begin(measured_from);
            match completion.status {
                Status::Done => stats.record(op, depth, Completed { len, at, latency }),
                status => stats.fail(status, at),
            }
        }
        if self.before.is_none() {
            return Ok(());
        }
        let cost = &completion.cost;
        if cost.buffer_hits > 0 || cost.unmapped > 0 {
            let m = &mut self.stages[self.stage].measured;
            m.buffer_hits += u64::from(cost.buffer_hits);
            m.unmapped += u64::from(cost.unmapped);
        }
        if !counted || completion.status != Status::Done {
            // The others are in their row, and added to the stage at its end.
            self.stages[self.stage].measured.completed(op, len, completion.status, latency);
        }
        if self.observed && !manages {
            self.observe(completion);
        }
        Ok(())
    }

    /// Frees the place of an I/O; returns when it was issued, and the depth.
    #[inline(never)]
    fn give_back(&mut self, slot: u32) -> (SimTime, u32) {
        self.pending.give(slot);
        let Pending { issued, depth, .. } = self.pending[slot];
        (issued, depth)
    }

    /// Passes an I/O of the measured time to the observer.
    #[inline(never)]
    fn observe(&mut self, completion: &Completion) {
        let tag = Tag::of(completion);
        let pending = self.pending[tag.slot];
        let Some(origin) = self.origin.filter(|&origin| pending.issued >= origin) else { return };
        let io = pending.io;
        self.observer.finished(&Finished {
            offset: io.offset,
            issue_ns: pending.issued.since(origin).0 as i64,
            handle: io.handle,
            issuer: Issuer { comm: self.symbols[tag.job as usize], ..Issuer::UNKNOWN },
            pass: 0,
            origin,
            arrival: pending.issued,
            completion: *completion,
            in_flight: pending.before,
        });
    }

    pub(super) fn end_stage(&mut self, now: SimTime) {
        let Some(before) = self.before.take() else { return };
        let work = self.device.flash_work().zip(before.work);
        let Stage { jobs, measured: m } = &mut self.stages[self.stage];
        // A stonewall begins a new group, so that each row is in one stage.
        for row in self.rows.iter_mut().filter(|row| jobs.contains(&row.first)) {
            row.stats.count_recent();
            m.add_row(&row.stats);
        }
        m.passes = 1;
        m.in_flight_ns = std::mem::take(&mut self.in_flight_ns);
        m.in_flight_max = std::mem::take(&mut self.in_flight_max);
        m.simulated = now.since(before.at);
        if let Some((now, before)) = work {
            m.add_work(&now.since(&before), self.device.unit());
        }
    }

    pub(super) fn report(&mut self, submitted: u64) -> Result<(), RunError> {
        let keep_going = self.observer.keep_going(Progress {
            passes: 0,
            submitted,
            measuring: self.origin.is_some(),
        });
        if keep_going { Ok(()) } else { Err(RunError::Interrupted) }
    }

    pub(super) fn outcome(self) -> RunResult {
        let mut total = Measured { passes: 1, ..Measured::default() };
        for stage in &self.stages {
            total.add(&stage.measured);
        }
        RunResult { rows: self.rows, stages: self.stages, total, busy: Nanos(self.busy) }
    }
}
