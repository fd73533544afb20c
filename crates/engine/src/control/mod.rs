//! The controller: executes the plans of an FTL on flash, and decides when to clean.
//!
//! It submits the operations of host program units, copies and merges to the device, and when one
//! has ended it commits it to the map and continues. Design: docs/design/planner-engine.md.

mod clean;
mod ended;
mod faults;
mod program_units;
mod snapshot;
#[cfg(test)]
mod tests;
mod wordline;

use std::collections::VecDeque;

use prism_base::{Nanos, SimTime};
use prism_ftl::{Ftl, ReadRun, UnitWrite};
use prism_nand::{Cause, DieGroupId, Layout, Nand, ProgramUnitId, Pun, Status};

use crate::config::{Cleaning, EngineConfig};
use crate::counts::FlashCounts;
use crate::device::{FlashDevice, Jobs};
use crate::sim::SimDevice;
pub(crate) use clean::COPIES_MAX;
use clean::Cleaner;

/// Host program units that may be queued or in flight on a die at once. One is in flight, one is
/// ready to follow; more would bind data to a die earlier than needed.
pub(crate) const HOST_PROGRAM_UNITS_MAX: u32 = 2;

/// A host unit to be programmed, and the tag of its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostUnit {
    /// Logical unit and version, without a source.
    pub write: UnitWrite,
    /// A tag chosen by the caller.
    pub tag: u32,
    /// Part of its content is lost: once on flash, it is marked as lost.
    pub lost: bool,
}

/// A completed request of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// A read.
    Read {
        /// The tag of the request.
        tag: u32,
    },
    /// A unit is on flash and in the map.
    Wrote {
        /// The tag of the request.
        tag: u32,
    },
}

/// The controller's state of a die group.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
struct DieGroup {
    /// In the list of die groups that are ready for a host program unit.
    listed: bool,
    host_program_units: u32,
    cleaner: Cleaner,
}

/// The controller: an FTL and the flash that executes its plans.
#[derive(Debug)]
pub struct Controller<D> {
    device: D,
    ftl: Ftl,
    layout: Layout,
    cleaning: Cleaning,
    /// The device may fail.
    faulty: bool,
    /// Flash neither fails nor keeps content: no unit of a job is lost, and jobs have no payload.
    no_payload: bool,
    jobs: Jobs,
    die_groups: Vec<DieGroup>,
    /// Die groups that are ready for a host program unit, least recently used first.
    ready: VecDeque<u32>,
    /// Reads of the copy that is being planned.
    copy_reads: Vec<ReadRun>,
    /// Number of die groups that need cleaning but have no victim.
    stuck: u32,
    /// Number of die groups whose cleaning waits for the host.
    paused: u32,
    /// An urgent command is in the drive.
    urgent: bool,
    /// Copy steps of a die group that may be in flight at once.
    copies_max: u32,
    /// Cleaning in idle time is enabled for some die group.
    idle_cleaning: bool,
    /// An erase has ended since the last `take_freed`, or a program unit if wordlines are shared.
    freed: bool,
    /// Programs that have ended, on wordlines that are not full, by die.
    held: Vec<Vec<u32>>,
    /// Host units that are programmed and wait for the rest of their wordline.
    units_held: u32,
    /// Jobs of the host whose programs have failed and that wait for another program unit.
    units_to_relocate: VecDeque<u32>,
    /// Jobs whose programs failed in the current event.
    jobs_without_program_unit: VecDeque<u32>,
}

/// The controller over simulated flash with time.
pub type Engine = Controller<SimDevice>;

impl<D: FlashDevice> Controller<D> {
    /// An idle controller, which begins to clean with the first program, or by
    /// [`Controller::begin_cleaning`].
    #[must_use]
    pub fn at_rest(device: D, ftl: Ftl, cleaning: Cleaning) -> Self {
        let (dies, die_groups) = (device.geometry().dies(), device.geometry().die_groups());
        Self {
            die_groups: vec![DieGroup { listed: true, ..DieGroup::default() }; die_groups as usize],
            ready: (0..die_groups).collect(),
            copy_reads: Vec::new(),
            stuck: 0,
            paused: 0,
            urgent: false,
            copies_max: device.copies_max() * device.layout().dies_per_die_group(),
            idle_cleaning: false,
            freed: false,
            held: vec![Vec::new(); dies as usize],
            units_held: 0,
            units_to_relocate: VecDeque::new(),
            jobs_without_program_unit: VecDeque::new(),
            layout: *device.layout(),
            cleaning,
            faulty: device.may_fail(),
            no_payload: !device.uses_payloads(),
            jobs: Jobs::new(),
            device,
            ftl,
        }
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Mutable access to the device, for calls that bypass the controller. Only the controller
    /// programs and erases.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// Returns the device. Operations in flight or queued are lost.
    #[must_use]
    pub fn into_device(self) -> D {
        self.device
    }

    /// The FTL.
    #[must_use]
    pub fn ftl(&self) -> &Ftl {
        &self.ftl
    }

    /// The FTL, for trims and lookups that change its state.
    pub fn ftl_mut(&mut self) -> &mut Ftl {
        &mut self.ftl
    }

    /// Flash operations by cause since the engine was created.
    #[must_use]
    pub fn counts(&self) -> &FlashCounts {
        self.device.counts()
    }

    /// Begins or queues the read `run`, which ends with [`Done::Read`] of `tag`. Only the scheduler
    /// by priority uses `urgent`.
    #[inline]
    pub fn read(&mut self, run: &ReadRun, cause: Cause, tag: u32, urgent: bool, now: SimTime) {
        let die = self.layout.die_of(run.program_unit);
        self.device.load_mut(die).host_ops += 1;
        self.stop_idle_cleaning();
        self.device.read(&mut self.jobs, run, cause, tag, urgent, now);
    }

    /// Submits the program of `job`.
    #[inline(always)]
    fn submit_program(&mut self, job: u32, now: SimTime) {
        if self.device.limits_open_blocks() {
            let (ftl, program_unit) = (&self.ftl, ProgramUnitId(self.jobs[job].program_unit));
            self.device.make_open(program_unit, &|block| ftl.is_writing(block));
        }
        self.device.program(&mut self.jobs, job, now);
    }

    /// Sets whether urgent commands are in the drive, to which cleaning gives way.
    pub fn set_urgent(&mut self, urgent: bool, now: SimTime) {
        self.urgent = urgent;
        if !urgent && self.paused > 0 {
            for die_group in 0..self.die_groups.len() as u32 {
                self.resume_cleaning(DieGroupId(die_group), now);
            }
        }
    }

    /// When the next phase of an operation ends.
    #[must_use]
    pub fn next_event(&self) -> Option<SimTime> {
        let at = self.next_at();
        (at != SimTime::NEVER).then_some(at)
    }

    /// As [`Controller::next_event`], [`SimTime::NEVER`] if no operation is in flight.
    #[must_use]
    #[inline]
    pub fn next_at(&self) -> SimTime {
        self.device.next_at()
    }

    /// Whether an erase has ended since the last call, or a program unit if wordlines are shared:
    /// program units that found no die group may find one now.
    pub fn take_freed(&mut self) -> bool {
        std::mem::take(&mut self.freed)
    }

    /// Whether no operation is in flight or queued.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.next_at() == SimTime::NEVER
    }

    /// Checks the invariants that hold at any instant (law 2).
    ///
    /// # Panics
    /// If one is broken.
    pub fn assert_conserved(&self) {
        self.ftl.assert_conserved();
        self.device.assert_conserved();
    }
}

impl Engine {
    /// An idle engine. Die groups below their low watermark are cleaned at once.
    #[must_use]
    pub fn new(nand: Nand, ftl: Ftl, config: EngineConfig) -> Self {
        let device = SimDevice::new(nand, config, ftl.logical_units());
        let mut engine = Self::at_rest(device, ftl, config.cleaning);
        engine.begin_cleaning(SimTime::ZERO);
        engine
    }

    /// The flash.
    #[must_use]
    pub fn nand(&self) -> &Nand {
        &self.device.nand
    }

    /// Flash operations begun so far, for tests that cut the power at one of them.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.device.operations
    }

    /// How long a read of `at` would wait for its die.
    #[must_use]
    pub fn wait_for(&self, at: Pun, now: SimTime) -> Nanos {
        self.device.wait_for(at, now)
    }

    /// Power is lost: operations in flight are torn, queued ones are lost.
    #[must_use]
    pub fn power_cut(self) -> Nand {
        self.device.nand
    }

    /// Returns flash and FTL. Operations in flight or queued are lost.
    #[must_use]
    pub fn into_parts(self) -> (Nand, Ftl) {
        (self.device.nand, self.ftl)
    }

    /// Ends every program in flight, as capacitors do when power is lost; adds completions for the
    /// caller to `done`, except those of failed programs. Queued operations are lost, and only
    /// [`Engine::into_parts`] may be called afterwards.
    pub fn end_programs(&mut self, done: &mut Vec<Done>) {
        for job in self.device.take_begun_programs() {
            let job = &self.jobs[job];
            let program_unit = ProgramUnitId(job.program_unit);
            let failed = self.device.nand.program_end(program_unit) == Status::Failed;
            if failed || self.faulty && self.ftl.is_void(program_unit) {
                self.device.counts_mut().faults.program_failures += u64::from(failed);
                self.ftl.program_failed(program_unit);
                continue;
            }
            self.ftl.commit(program_unit, &job.units, &[]);
            if job.cause == Some(Cause::Host) {
                done.extend(job.tags.iter().map(|&tag| Done::Wrote { tag }));
            }
        }
    }
}
