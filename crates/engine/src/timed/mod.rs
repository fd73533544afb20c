//! The timed engine: executes plans in simulated time.
//!
//! A die has a cell array and a page register. A read occupies the array for tR, then the register
//! for its transfer over the channel; a program the register for its transfer, then the array for
//! tPROG; an erase the array for tBERS. Channels are reserved first come, first served; reads
//! reserve them in advance, so that each operation is one event. A read is two events if its die
//! may do other work between them. The path of every read, program and copy is inlined, here and in
//! the FTLs: calls cost a tenth of its time. Rare code is not inlined, to keep that path short.
//! Design and measurements: docs/design/event-core.md.

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

use crate::config::{ChannelArbitration, EngineConfig, ReadTransfer, SECTOR, Scheduler};
use crate::counts::FlashCounts;
use channel::Channel;
use clean::Cleaner;
use die::{Die, Op, ReadFor, ReadOp};

/// Host program units that may be queued or in flight on a die at once. One is in flight, one is
/// ready to follow; more would bind data to a die earlier than needed.
const HOST_PROGRAM_UNITS_MAX: u32 = 2;

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

/// A program in flight or queued, with the reads it waits for if it is a copy.
///
/// Copies use little more than the leading cache line.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
struct Job {
    reads_left: u32,
    die_group: u32,
    program_unit: u32,
    /// Pages that a copy-back reads, without a transfer.
    copied_back: u32,
    /// The block that a copy empties.
    victim: Option<BlockId>,
    cause: Option<Cause>,
    /// The stream of host units.
    stream: u32,
    units: Units,
    tags: Vec<u32>,
    /// How long the array takes for the reads of a copy-back.
    back_time: Nanos,
    /// Indices of units whose content is lost.
    lost: Vec<u32>,
    /// Bytes of the host units, one each, or empty.
    payloads: Vec<Box<[u8]>>,
}

// The units are in the leading cache line.
const _: () = assert!(std::mem::offset_of!(Job, tags) == 64);

/// The engine's state of a die group.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
struct DieGroup {
    /// In the list of die groups that are ready for a host program unit.
    listed: bool,
    host_program_units: u32,
    cleaner: Cleaner,
}

/// The timed engine: flash, FTL and simulated time.
#[derive(Debug)]
pub struct Engine {
    nand: Nand,
    ftl: Ftl,
    config: EngineConfig,
    layout: Layout,
    /// When the next phase of each die ends.
    timers: Timers,
    /// The die of the current step, until its completion is processed.
    stepping: DieId,
    /// The same, until the end of the step.
    turn: DieId,
    dies: Vec<Die>,
    die_groups: Vec<DieGroup>,
    channels: Vec<Channel>,
    /// A die does no other work between array and transfer of a read, and no scheduler needs to
    /// distinguish the two: a read reserves its transfer when it begins, and both are one event.
    reserves_transfer_early: bool,
    /// Commands go first and take no time, so that they do not use the channel.
    instant_commands: bool,
    /// Commands go first and take time, so that they interrupt transfers.
    interrupts_transfers: bool,
    /// In addition, no operation is suspended and no flash fails: the oldest operation queued for a
    /// die is next, unless a read passes it.
    fcfs_only: bool,
    /// Flash neither fails nor keeps content: no unit of a job is lost, and jobs have no payload.
    no_payload: bool,
    /// Die groups that are ready for a host program unit, least recently used first.
    ready: VecDeque<u32>,
    jobs: Slab<Job>,
    /// Reads of the copy that is being planned.
    copy_reads: Vec<ReadRun>,
    counts: FlashCounts,
    operations: u64,
    /// Program units programmed and blocks erased on the device before this engine began.
    before: (u64, u64),
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
    /// Host units that are programmed and wait for the rest of their wordline.
    units_held: u32,
    /// How long the transfer takes of a program unit; of a number of its levels, by index; and of a
    /// number of parts of a level, by index. A part is a unit, a page if that is smaller, or a
    /// sector, if reads transfer only the sectors that are needed.
    program_unit_transfer: Nanos,
    level_transfers: Vec<Nanos>,
    transfers: Vec<Nanos>,
    /// Parts of a unit, or of a page if that is smaller.
    parts_per_unit: u16,
    pages_per_program: u32,
    /// Logical units of the FTL.
    logical_units: u32,
    /// Fault injection is enabled.
    faulty: bool,
    /// Jobs of the host whose programs have failed and that wait for another program unit.
    units_to_relocate: VecDeque<u32>,
    /// Jobs whose programs failed in the current event.
    jobs_without_program_unit: VecDeque<u32>,
}

/// The parts of a unit, or of a page if that is smaller, and how long the transfer of each number
/// of parts of a level takes, from none to all.
fn part_transfers(geometry: &Geometry, config: &EngineConfig) -> (u16, Vec<Nanos>) {
    let unit = geometry.unit.min(geometry.page);
    let part = match config.read_transfer {
        ReadTransfer::Unit => unit,
        ReadTransfer::Sectors => SECTOR,
    };
    let level = geometry.page.0 * u64::from(geometry.planes_ganged);
    let parts = level / part.0;
    assert!(unit.0.is_multiple_of(part.0) && parts <= u16::MAX.into(), "parts of {part}");
    let transfers = (0..=parts).map(|parts| config.timing.transfer(Bytes(parts * part.0)));
    ((unit.0 / part.0) as u16, transfers.collect())
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

    /// An engine that does not begin to clean by itself.
    fn at_rest(nand: Nand, ftl: Ftl, config: EngineConfig) -> Self {
        let geometry = nand.geometry();
        let die_groups = geometry.die_groups();
        let commands_first = config.channel_arbitration == ChannelArbitration::CommandsFirst;
        let commands_take_time = config.timing.t_command > Nanos::ZERO;
        let (parts_per_unit, transfers) = part_transfers(geometry, &config);
        let reserves_transfer_early = !config.cache_read
            && !config.cache_program
            && config.scheduler != Scheduler::ShortestWait;
        assert!(
            reserves_transfer_early || config.channel_arbitration != ChannelArbitration::DataFirst,
            "commands wait for transfers that are not known when they are requested"
        );
        Self {
            timers: Timers::new(geometry.dies()),
            stepping: execute::NO_DIE,
            turn: execute::NO_DIE,
            dies: vec![Die::idle(); geometry.dies() as usize],
            die_groups: vec![DieGroup { listed: true, ..DieGroup::default() }; die_groups as usize],
            channels: vec![Channel::default(); geometry.channels as usize],
            reserves_transfer_early,
            instant_commands: commands_first && !commands_take_time,
            interrupts_transfers: commands_first && commands_take_time,
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
            transfers,
            parts_per_unit,
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

    /// Flash operations by cause since the engine was created.
    #[must_use]
    pub fn counts(&self) -> &FlashCounts {
        &self.counts
    }

    /// Flash operations begun so far, for tests that cut the power at one of them.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// Power is lost: operations in flight are torn, queued ones are lost.
    #[must_use]
    pub fn power_cut(self) -> Nand {
        self.nand
    }

    /// Returns flash and FTL. Operations in flight or queued are lost.
    #[must_use]
    pub fn into_parts(self) -> (Nand, Ftl) {
        (self.nand, self.ftl)
    }

    /// Begins or queues the read `run`, which ends with [`Done::Read`] of `tag`. Only the scheduler
    /// by priority uses `urgent`.
    #[inline]
    pub fn read(&mut self, run: &ReadRun, cause: Cause, tag: u32, urgent: bool, now: SimTime) {
        let &ReadRun { program_unit, level, pages, recovery, .. } = run;
        let die = self.layout.die_of(program_unit);
        let read = ReadOp {
            tag,
            program_unit,
            pages,
            parts: self.parts_of(run),
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

    /// Ends every program in flight, as capacitors do when power is lost; adds completions for the
    /// caller to `done`, except those of failed programs. Queued operations are lost, and only
    /// [`Engine::into_parts`] may be called afterwards.
    pub fn end_programs(&mut self, done: &mut Vec<Done>) {
        let mut begun = Vec::new();
        for die in &mut self.dies {
            // The order in which they would have ended.
            let suspended = die.suspended.take().map(|(op, ..)| op);
            let loaded = die.loaded.take().map(|job| Op::Program { job });
            let in_flight = [suspended, die.take_array(), loaded, die.take_register()];
            begun.extend(in_flight.into_iter().flatten());
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
        self.timers.first().map(|(at, _)| at)
    }

    /// As [`Engine::next_event`], [`SimTime::NEVER`] if no operation is in flight.
    #[must_use]
    #[inline]
    pub fn next_at(&self) -> SimTime {
        self.timers.next_at()
    }

    /// Whether an erase has ended since the last call, or a program unit if wordlines are shared:
    /// program units that found no die group may find one now.
    pub fn take_freed(&mut self) -> bool {
        std::mem::take(&mut self.freed)
    }

    /// Whether no operation is in flight or queued.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.timers.first().is_none()
    }

    /// Checks the invariants that hold at any instant (law 2).
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
            "units programmed must be as many bytes as pages programmed"
        );
        let program_units = self.nand.program_units_programmed_total() - self.before.0;
        let of_device = program_units * u64::from(geometry.pages_per_program_unit());
        assert_eq!(pages, of_device, "pages by cause must sum to those of the device");
        let planes = u64::from(geometry.planes_ganged);
        let erased = (self.nand.erases_total() - self.before.1) * planes;
        // Erases are counted when they have ended, as the device does.
        assert_eq!(
            self.counts.erases.total(),
            erased,
            "erases by cause must sum to those of the device"
        );
    }
}
