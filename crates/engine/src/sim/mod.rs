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
//! The device knows no FTL: it executes operations and returns each that has ended to the
//! controller ([`FlashDevice`](crate::FlashDevice)).

mod bus;
mod channel;
mod contract;
mod die;
mod execute;
mod stripe;
mod times;
mod waiting;

use prism_base::{Bytes, Nanos, SimTime, Timers};
use prism_nand::{DieId, Geometry, Layout, Nand, Pun};

use crate::config::{ChannelArbitration, EngineConfig, ReadTransfer, SECTOR, Scheduler};
use crate::counts::FlashCounts;
use crate::device::{Ended, Job};
use channel::Channel;
use die::Die;

/// Simulated flash with time.
#[derive(Debug)]
pub struct SimDevice {
    pub(crate) nand: Nand,
    config: EngineConfig,
    layout: Layout,
    /// When the next phase of each die ends.
    timers: Timers,
    /// The die of the current step, until its completion is processed.
    stepping: DieId,
    /// The same, until the end of the step.
    turn: DieId,
    dies: Vec<Die>,
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
    /// Fault injection is enabled.
    faulty: bool,
    /// Jobs whose programs were not begun because their block has failed.
    refused: Vec<u32>,
    counts: FlashCounts,
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
            faulty: nand.has_faults(),
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

    /// How long a read of `at` would wait for its die.
    pub(crate) fn wait_for(&self, at: Pun, now: SimTime) -> Nanos {
        let die = &self.dies[self.layout.die_of(self.layout.program_unit_of(at)).0 as usize];
        let until = die.next_at();
        let running = if until == SimTime::NEVER { Nanos::ZERO } else { until.since(now) };
        running + die.backlog
    }
}
