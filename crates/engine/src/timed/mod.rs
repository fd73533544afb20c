//! Runs plans in simulated time.
//!
//! A die has an array of cells and a register. A read holds the array for tR, then the
//! register for its transfer over the channel; a program the register for its transfer,
//! then the array for tPROG; an erase the array for tBERS. Channels are reserved first come,
//! first served, by reads ahead of their turn, so that each of the three is one event; a read
//! is two where something may happen to its die between them. What every read, program and copy
//! runs through is in line, here and in the FTLs below: the calls cost a tenth of it. What few
//! of them do is called, so that it does not stand between. Design and measurements:
//! docs/design/event-core.md.

mod channel;
mod clean;
mod die;
mod execute;
mod faults;
mod program_units;
mod snapshot;
#[cfg(test)]
mod tests;
mod times;
mod waiting;
mod wordline;

use std::collections::VecDeque;

use prism_base::{Bytes, Nanos, SimTime, Slab, Timers};
use prism_ftl::{Ftl, ReadRun, UnitWrite, Units};
use prism_nand::{
    BlockId, Cause, DieGroupId, DieId, Geometry, Layout, Nand, ProgramUnitId, Pun, Status,
};

use crate::config::{EngineConfig, Scheduler};
use crate::counts::FlashCounts;
use channel::Channel;
use clean::Cleaner;
use die::{Die, Op, ReadFor, ReadOp};

/// Host program units that may wait for or run on a die at once. One runs, one is ready to
/// follow; more would only bind data to a die earlier than needed.
const HOST_PROGRAM_UNITS_MAX: u32 = 2;

/// A unit of host data to be programmed, and the tag it comes back with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostUnit {
    /// Logical unit, version, and (never for host data) source.
    pub write: UnitWrite,
    /// Whatever the caller wants to find again.
    pub tag: u32,
    /// Part of its content is lost: once on flash, it reads as that.
    pub lost: bool,
}

/// Something the caller asked for has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// A read.
    Read {
        /// The tag it was asked with.
        tag: u32,
    },
    /// A unit is on flash and in the map.
    Wrote {
        /// The tag it was given with.
        tag: u32,
    },
}

/// A program in flight, with the reads it waits for if it is a copy.
///
/// Copies ask for the first cache line, and little else.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
struct Job {
    reads_left: u32,
    die_group: u32,
    program_unit: u32,
    /// Pages that a copy-back reads itself, without a transfer.
    copied_back: u32,
    /// What a copy empties.
    victim: Option<BlockId>,
    cause: Option<Cause>,
    /// The stream of the host's units.
    stream: u32,
    units: Units,
    tags: Vec<u32>,
    /// How long the cells take for the reads of a copy-back.
    back_time: Nanos,
    /// Places of units whose content is lost.
    lost: Vec<u32>,
    /// Bytes of the host's units, one each, or none at all.
    payloads: Vec<Box<[u8]>>,
}

// The units are in the first line.
const _: () = assert!(std::mem::offset_of!(Job, tags) == 64);

/// The state of a die group that is the engine's.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
struct DieGroup {
    /// In the list of die groups that can take a host program unit.
    listed: bool,
    host_program_units: u32,
    cleaner: Cleaner,
}

/// Flash, FTL and time together.
#[derive(Debug)]
pub struct Engine {
    nand: Nand,
    ftl: Ftl,
    config: EngineConfig,
    layout: Layout,
    /// When each die is done with something.
    timers: Timers,
    /// The die that something has just ended on, until it has been seen to.
    stepping: DieId,
    /// The same, until the end of the step.
    turn: DieId,
    dies: Vec<Die>,
    die_groups: Vec<DieGroup>,
    channels: Vec<Channel>,
    /// Nothing can happen to a die between the cells and the transfer of a read, and no scheduler
    /// needs to know which of the two is running: a read reserves its transfer when it begins, and
    /// both are one event.
    reserves_transfer_early: bool,
    /// In addition no operation is suspended and no flash fails: the operation that has waited
    /// longest for a die is next, unless a read passes it.
    fcfs_only: bool,
    /// Flash neither fails nor keeps content: no unit of a job is lost, and jobs carry no bytes.
    no_payload: bool,
    /// Die groups that may take a host program unit, least recently used first.
    ready: VecDeque<u32>,
    jobs: Slab<Job>,
    /// Reads of the copy that is being planned.
    copy_reads: Vec<ReadRun>,
    counts: FlashCounts,
    operations: u64,
    /// Program units programmed and blocks erased on the device before this engine began.
    before: (u64, u64),
    /// Die groups that should clean and have no victim worth it.
    stuck: u32,
    /// Die groups that should clean and wait for the host.
    paused: u32,
    /// An urgent command is in the drive.
    urgent: bool,
    /// Copy steps of a die group that may be in flight at once.
    copies_max: u32,
    /// Some die group cleans in idle time.
    idle_cleaning: bool,
    /// An erase has ended since the caller last asked, or a program unit where wordlines count.
    freed: bool,
    /// Units of the host that are programmed and wait so.
    units_held: u32,
    /// How long the transfer of a program unit takes, of so many of its levels, and of so many
    /// parts of a level: units, or pages where these are smaller.
    program_unit_transfer: Nanos,
    level_transfers: Vec<Nanos>,
    transfers: Vec<Nanos>,
    pages_per_program: u32,
    /// Logical units of the FTL.
    logical_units: u32,
    /// The flash ages and fails.
    faulty: bool,
    /// Jobs of the host whose programs have failed and that wait for another program unit.
    units_to_relocate: VecDeque<u32>,
    /// Jobs whose program units were lost in the present event.
    jobs_without_program_unit: VecDeque<u32>,
}

/// How long so many parts of a level take over the channel, from none to all.
fn part_transfers(geometry: &Geometry, config: &EngineConfig) -> Vec<Nanos> {
    let part = geometry.unit.min(geometry.page);
    let level = geometry.page.0 * u64::from(geometry.planes_ganged);
    let parts = 0..=level / part.0;
    parts.map(|parts| config.timing.transfer(Bytes(parts * part.0))).collect()
}

impl Engine {
    /// An idle engine.
    #[must_use]
    pub fn new(nand: Nand, ftl: Ftl, config: EngineConfig) -> Self {
        let mut engine = Self::at_rest(nand, ftl, config);
        // A drive that starts below the low watermark (after recovery) cleans at once.
        for die_group in 0..engine.die_groups.len() as u32 {
            engine.clean(DieGroupId(die_group), SimTime::ZERO);
        }
        engine
    }

    /// An engine that does nothing before it is asked to.
    fn at_rest(nand: Nand, ftl: Ftl, config: EngineConfig) -> Self {
        let geometry = nand.geometry();
        let die_groups = geometry.die_groups();
        let reserves_transfer_early = !config.cache_read
            && !config.cache_program
            && config.scheduler != Scheduler::ShortestWait;
        Self {
            timers: Timers::new(geometry.dies()),
            stepping: execute::NO_DIE,
            turn: execute::NO_DIE,
            dies: vec![Die::idle(); geometry.dies() as usize],
            die_groups: vec![DieGroup { listed: true, ..DieGroup::default() }; die_groups as usize],
            channels: vec![Channel::default(); geometry.channels as usize],
            reserves_transfer_early,
            no_payload: !nand.has_faults() && !nand.keeps_content(),
            fcfs_only: reserves_transfer_early && config.suspend.is_none() && !nand.has_faults(),
            ready: (0..die_groups).collect(),
            jobs: Slab::new(),
            copy_reads: Vec::new(),
            counts: FlashCounts::default(),
            operations: 0,
            before: (nand.program_units_programmed_total(), nand.erases_total()),
            stuck: 0,
            paused: 0,
            urgent: false,
            copies_max: clean::COPIES_MAX * nand.layout().dies_per_die_group(),
            idle_cleaning: false,
            freed: false,
            units_held: 0,
            program_unit_transfer: config.timing.transfer(geometry.program_unit_bytes()),
            level_transfers: (0..=u64::from(geometry.pages_per_program))
                .map(|levels| levels * geometry.program_unit_bytes().0)
                .map(|bytes| Bytes(bytes / u64::from(geometry.pages_per_program)))
                .map(|bytes| config.timing.transfer(bytes))
                .collect(),
            transfers: part_transfers(geometry, &config),
            pages_per_program: geometry.pages_per_program,
            layout: *nand.layout(),
            logical_units: ftl.logical_units(),
            faulty: nand.has_faults(),
            units_to_relocate: VecDeque::new(),
            jobs_without_program_unit: VecDeque::new(),
            nand,
            ftl,
            config,
        }
    }

    /// The flash.
    #[must_use]
    pub fn nand(&self) -> &Nand {
        &self.nand
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

    /// Operations by cause since the engine was made.
    #[must_use]
    pub fn counts(&self) -> &FlashCounts {
        &self.counts
    }

    /// Flash operations begun so far: where a harness may cut the power.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// Power is gone: what had begun and not ended is torn, what was queued is lost.
    #[must_use]
    pub fn power_cut(self) -> Nand {
        self.nand
    }

    /// Takes the engine apart. Something may be in flight: what has not ended is lost.
    #[must_use]
    pub fn into_parts(self) -> (Nand, Ftl) {
        (self.nand, self.ftl)
    }

    /// Asks for `run`; [`Done::Read`] comes with `tag`. `urgent` is for the scheduler
    /// that asks for it.
    #[inline]
    pub fn read(&mut self, run: &ReadRun, cause: Cause, tag: u32, urgent: bool, now: SimTime) {
        let &ReadRun { program_unit, level, pages, units, recovery } = run;
        let die = self.layout.die_of(program_unit);
        let read = ReadOp {
            tag,
            program_unit,
            units,
            pages,
            level,
            cause,
            why: ReadFor::Caller,
            recovery,
        };
        self.dies[die.0 as usize].host_ops += 1;
        self.stop_idle_cleaning();
        let passes = match self.config.scheduler {
            Scheduler::Fcfs | Scheduler::ShortestWait => false,
            Scheduler::ReadFirst => true,
            Scheduler::Priority => urgent,
        };
        if passes {
            self.suspend(die, now);
        }
        if recovery.is_rebuilt() {
            self.read_stripe(read, passes, now);
        } else {
            self.enqueue_read(die, || read, passes, now);
        }
    }

    /// How long a read of `at` would wait for its die.
    #[must_use]
    pub fn wait_for(&self, at: Pun, now: SimTime) -> Nanos {
        let die = &self.dies[self.layout.die_of(self.layout.program_unit_of(at)).0 as usize];
        let until = die.next_at();
        let running = if until == SimTime::NEVER { Nanos::ZERO } else { until.since(now) };
        running + die.backlog
    }

    /// Lets every program that has begun end, as capacitors do when power is lost; adds what
    /// the caller waits for to `done`, unless its program fails. What is queued is lost, and the
    /// engine is of no further use but for [`Engine::into_parts`].
    pub fn end_programs(&mut self, done: &mut Vec<Done>) {
        let mut begun = Vec::new();
        for die in &mut self.dies {
            // In this order they would have ended.
            let suspended = die.suspended.take().map(|(op, ..)| op);
            let loaded = die.loaded.take().map(|job| Op::Program { job });
            let stations = [suspended, die.take_array(), loaded, die.take_register()];
            begun.extend(stations.into_iter().flatten());
            die.waiting.clear();
        }
        for op in begun {
            let Op::Program { job } = op else { continue };
            let (job, program_unit) = (&self.jobs[job], ProgramUnitId(self.jobs[job].program_unit));
            let failed = self.nand.program_end(program_unit) == Status::Failed;
            if failed || self.faulty && self.ftl.is_void(program_unit) {
                self.counts.faults.program_failures += u64::from(failed);
                self.ftl.program_failed(program_unit);
                continue;
            }
            self.ftl.commit(program_unit, &job.units, &[]);
            if job.cause == Some(Cause::Host) {
                done.extend(job.tags.iter().map(|&tag| Done::Wrote { tag }));
            }
        }
    }

    /// Whether urgent commands are in the drive, for cleaning that gives way to them.
    pub fn set_urgent(&mut self, urgent: bool, now: SimTime) {
        self.urgent = urgent;
        if !urgent && self.paused > 0 {
            for die_group in 0..self.die_groups.len() as u32 {
                self.resume_cleaning(DieGroupId(die_group), now);
            }
        }
    }

    /// When the next operation phase ends.
    #[must_use]
    pub fn next_event(&self) -> Option<SimTime> {
        self.timers.first().map(|(at, _)| at)
    }

    /// The same, [`SimTime::NEVER`] if nothing runs.
    #[must_use]
    #[inline]
    pub fn next_at(&self) -> SimTime {
        self.timers.next_at()
    }

    /// Whether an erase has ended since this was last asked, or a program unit where wordlines
    /// count: program units that found no die group may find one now.
    pub fn take_freed(&mut self) -> bool {
        std::mem::take(&mut self.freed)
    }

    /// Whether no operation runs or waits.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.timers.first().is_none()
    }

    /// The laws that hold at any instant (law 2).
    ///
    /// # Panics
    /// If one is broken.
    pub fn assert_conserved(&self) {
        self.ftl.assert_conserved();
        let geometry = self.nand.geometry();
        let pages = self.counts.programs.total();
        assert_eq!(
            self.counts.units.total() * geometry.unit.0,
            pages * geometry.page.0,
            "units programmed must be pages programmed, over all causes"
        );
        let program_units = self.nand.program_units_programmed_total() - self.before.0;
        let of_device = program_units * u64::from(geometry.pages_per_program_unit());
        assert_eq!(pages, of_device, "pages by cause must be what the device programmed");
        let planes = u64::from(geometry.planes_ganged);
        let erased = (self.nand.erases_total() - self.before.1) * planes;
        // Erases count by cause once they have ended, as the device's do.
        assert_eq!(self.counts.erases.total(), erased, "erases by cause must be the device's");
    }
}
