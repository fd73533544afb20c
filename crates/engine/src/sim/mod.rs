//! Simulated flash with time: dies, channels, and the operations submitted to them.
//!
//! A die has a cell array and a page register. A read occupies the array for tR, then the register
//! for its transfer over the channel; a program the register for its transfer, then the array for
//! tPROG; an erase the array for tBERS. Channels are reserved first come, first served; reads
//! reserve them in advance, so that each operation is one event. A read is two events if its die
//! may do other work between them. The path of every read and program is inlined: calls cost a
//! tenth of its time. Rare code is not inlined, to keep that path short. Design and measurements:
//! docs/design/event-core.md.
//!
//! The device knows no FTL: it executes operations and returns each that has ended ([`Ended`]) to
//! the controller.

mod bus;
mod channel;
mod die;
mod execute;
mod stripe;
mod times;
mod waiting;

use prism_base::{Bytes, Nanos, SimTime, Slab, Timers};
use prism_ftl::{ReadRun, Units};
use prism_nand::{BlockId, Cause, DieId, Geometry, Layout, Nand, Pun, Status};

use crate::config::{ChannelArbitration, EngineConfig, ReadTransfer, SECTOR, Scheduler};
use crate::counts::FlashCounts;
use channel::Channel;
use die::Die;
pub(crate) use die::{Op, ReadFor, ReadOp};

/// An operation that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ended {
    /// A read of the caller, which is counted on `die`.
    Read { tag: u32, die: DieId },
    /// One of the reads of the copy `job`.
    CopyRead { job: u32 },
    /// The program of `job`.
    Program { job: u32, status: Status },
    /// The erase of `block` on one of its dies, for the cleaner of `die_group`.
    Erase { block: BlockId, die_group: u32, status: Status },
}

/// A program in flight or queued, with the reads it waits for if it is a copy.
///
/// Copies use little more than the leading cache line.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Job {
    pub(crate) reads_left: u32,
    pub(crate) die_group: u32,
    pub(crate) program_unit: u32,
    /// Pages that a copy-back reads, without a transfer.
    pub(crate) copied_back: u32,
    /// The block that a copy empties.
    pub(crate) victim: Option<BlockId>,
    pub(crate) cause: Option<Cause>,
    /// The stream of host units.
    pub(crate) stream: u32,
    pub(crate) units: Units,
    pub(crate) tags: Vec<u32>,
    /// How long the array takes for the reads of a copy-back.
    pub(crate) back_time: Nanos,
    /// Indices of units whose content is lost.
    pub(crate) lost: Vec<u32>,
    /// Bytes of the host units, one each, or empty.
    pub(crate) payloads: Vec<Box<[u8]>>,
    /// What the tombstones among the units say, in their order, if flash keeps content.
    pub(crate) tombstones: Vec<Box<[u8]>>,
}

// The units are in the leading cache line.
const _: () = assert!(std::mem::offset_of!(Job, tags) == 64);

/// Simulated flash with time.
#[derive(Debug)]
pub(crate) struct SimDevice {
    pub(crate) nand: Nand,
    pub(crate) config: EngineConfig,
    pub(crate) layout: Layout,
    /// When the next phase of each die ends.
    timers: Timers,
    /// The die of the current step, until its completion is processed.
    stepping: DieId,
    /// The same, until the end of the step.
    turn: DieId,
    pub(crate) dies: Vec<Die>,
    channels: Vec<Channel>,
    /// A die does no other work between array and transfer of a read, and no scheduler needs to
    /// distinguish the two: a read reserves its transfer when it begins, and both are one event.
    pub(crate) reserves_transfer_early: bool,
    /// Array and register of a die may work for different operations: cache reads or programs.
    overlaps: bool,
    /// Commands go first and take no time, so that they do not use the channel.
    instant_commands: bool,
    /// Commands go first and take time, so that they interrupt transfers.
    interrupts_transfers: bool,
    /// In addition, no operation is suspended and no flash fails: the oldest operation queued for a
    /// die is next, unless a read passes it.
    pub(crate) fcfs_only: bool,
    /// Flash neither fails nor keeps content: no unit of a job is lost, and jobs have no payload.
    pub(crate) no_payload: bool,
    /// Fault injection is enabled.
    pub(crate) faulty: bool,
    /// Programs, and stripes being read. The controller takes a job before it submits its program
    /// or reads, and gives it back when the program has taken effect.
    pub(crate) jobs: Slab<Job>,
    /// Jobs whose programs were not begun because their block has failed.
    pub(crate) refused: Vec<u32>,
    pub(crate) counts: FlashCounts,
    /// Operations begun.
    pub(crate) operations: u64,
    /// Program units programmed and blocks erased before this device was made of its flash.
    before: (u64, u64),
    /// How long the transfer takes of a program unit; of a number of its levels, by index; and of a
    /// number of parts of a level, by index. A part is a unit, a page if that is smaller, or a
    /// sector, if reads transfer only the sectors that are needed.
    program_unit_transfer: Nanos,
    level_transfers: Vec<Nanos>,
    transfers: Vec<Nanos>,
    /// Parts of a unit, or of a page if that is smaller.
    parts_per_unit: u16,
    pages_per_program: u32,
    /// Units of the host: what is programmed beyond them is counted as map.
    logical_units: u32,
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

impl SimDevice {
    /// Idle flash.
    pub(crate) fn new(nand: Nand, config: EngineConfig, logical_units: u32) -> Self {
        let geometry = nand.geometry();
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
            channels: vec![Channel::default(); geometry.channels as usize],
            reserves_transfer_early,
            overlaps: config.cache_read || config.cache_program,
            instant_commands: commands_first && !commands_take_time,
            interrupts_transfers: commands_first && commands_take_time,
            fcfs_only: reserves_transfer_early && config.suspend.is_none() && !nand.has_faults(),
            no_payload: !nand.has_faults() && !nand.keeps_content(),
            faulty: nand.has_faults(),
            jobs: Slab::new(),
            refused: Vec::new(),
            counts: FlashCounts::default(),
            operations: 0,
            before: (nand.program_units_programmed_total(), nand.erases_total()),
            program_unit_transfer: config.timing.transfer(geometry.program_unit_bytes()),
            level_transfers: (0..=u64::from(geometry.pages_per_program))
                .map(|levels| levels * geometry.program_unit_bytes().0)
                .map(|bytes| Bytes(bytes / u64::from(geometry.pages_per_program)))
                .map(|bytes| config.timing.transfer(bytes))
                .collect(),
            transfers,
            parts_per_unit,
            pages_per_program: geometry.pages_per_program,
            logical_units,
            layout: *nand.layout(),
            nand,
            config,
        }
    }

    /// Begins or queues the read `run` of the caller, which ends with [`Ended::Read`] of `tag`. If
    /// it `passes`, it goes before operations that do not.
    #[inline(always)]
    pub(crate) fn read(
        &mut self,
        run: &ReadRun,
        cause: Cause,
        tag: u32,
        passes: bool,
        now: SimTime,
    ) {
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
    pub(crate) fn wait_for(&self, at: Pun, now: SimTime) -> Nanos {
        let die = &self.dies[self.layout.die_of(self.layout.program_unit_of(at)).0 as usize];
        let until = die.next_at();
        let running = if until == SimTime::NEVER { Nanos::ZERO } else { until.since(now) };
        running + die.backlog
    }

    /// Power is lost: removes every operation, and returns the jobs whose programs had begun, in
    /// the order in which they would have ended on their die.
    pub(crate) fn take_begun_programs(&mut self) -> Vec<u32> {
        let mut begun = Vec::new();
        for die in &mut self.dies {
            let suspended = die.suspended.take().map(|(op, ..)| op);
            let loaded = die.loaded.take().map(|job| Op::Program { job });
            let in_flight = [suspended, die.take_array(), loaded, die.take_register()];
            let job = |op| if let Op::Program { job } = op { Some(job) } else { None };
            begun.extend(in_flight.into_iter().flatten().filter_map(job));
            die.waiting.clear();
        }
        begun
    }

    /// When the next phase of an operation ends; [`SimTime::NEVER`] if none is in flight.
    #[inline]
    pub(crate) fn next_at(&self) -> SimTime {
        self.timers.next_at()
    }

    /// Checks that operations by cause are those of the flash (law 2).
    ///
    /// # Panics
    /// If they are not.
    pub(crate) fn assert_conserved(&self) {
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
