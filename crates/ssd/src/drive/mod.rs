//! The drive in simulated time.
//!
//! Life of a write: link, firmware, buffer (complete, if the cache is write-back), program unit,
//! flash, map. Life of a read: firmware, then buffer or flash, then link. The host calls
//! [`Drive::submit`] and [`Drive::advance`]; nothing happens in between. Design:
//! docs/design/drive.md.

mod commands;
mod durability;
mod events;
mod health;
mod map;
mod reads;
mod slots;
mod write_path;
mod zoned;

use std::collections::VecDeque;

use prism_base::{Bytes, EventQueue, Nanos, Pipe, SimTime, Slab};
use prism_engine::{Done, Engine, FlashCounts, HostUnit};
use prism_ftl::{Ftl, MergeCounts, ReadRun, TrimRange};
use prism_nand::Nand;
use prism_nand::timing::transfer_time;

use crate::buffer::Buffer;
use crate::request::Completion;
use crate::spec::{DriveSpec, DriveSpecError};
use commands::Queues;
pub use health::{DriveHealth, ReadOnly, SlcHealth, ZoneHealth};
use map::MapState;
use slots::{Slot, Waiter};
pub(crate) use zoned::ZoneWork;

/// Sums that the laws are checked on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounts {
    /// Requests taken, flushes included.
    pub submitted: u64,
    /// Requests done, flushes included.
    pub completed: u64,
    /// Of these, requests that failed ([`Status`]).
    pub failed: u64,
    /// Bytes of completed writes.
    pub bytes_written: u64,
    /// Bytes of completed reads.
    pub bytes_read: u64,
    /// Integral of requests in flight over time, in nanoseconds.
    pub in_flight_ns: u128,
    /// Sum of the latencies of completed requests, in nanoseconds.
    pub latency_ns: u128,
}

/// A simulated drive.
#[derive(Debug)]
pub struct Drive {
    pub(crate) device: DriveSpec,
    pub(crate) engine: Engine,
    pub(crate) buffer: Buffer,
    capacity: u64,
    unit: u64,
    unit_shift: Option<u32>,
    units_per_program_unit: usize,
    /// Commands whose firmware time ends, by whether data came over the link before.
    starts: Pipe,
    write_starts: Pipe,
    /// Reads whose data has left over the link.
    finishes: Pipe,
    /// What happens rarely: the payload's low bits say what.
    timers: EventQueue,
    slots: Slab<Slot>,
    pub(crate) queues: Queues,
    /// Where the map is on flash.
    pub(crate) map: Option<Box<MapState>>,
    /// Where the drive has zones.
    pub(crate) zones: Option<Box<ZoneWork>>,
    waiting_for_buffer: VecDeque<u32>,
    waiting_for_flush: VecDeque<Waiter>,
    link_in: SimTime,
    link_out: SimTime,
    link_last: (u64, Nanos),
    pub(crate) now: SimTime,
    pub(crate) next_version: u64,
    /// Trimmed ranges that no tombstone holds yet (without power-loss protection).
    open_trims: Vec<TrimRange>,
    counts: HostCounts,
    /// Since when nothing is written any more.
    read_only: Option<ReadOnly>,
    /// The flash fails, or several of its program units share a wordline.
    has_faults_or_wordlines: bool,
    last_change: SimTime,
    pumping: bool,
    pump_again: bool,
    done: Vec<Done>,
    program_unit: Vec<HostUnit>,
    runs: Vec<ReadRun>,
}

/// Kinds of rare events, in the low bits of the payload; above them stands what the
/// event is about.
const IDLE: u32 = 0;
const MERGE: u32 = 1;
const KIND_BITS: u32 = 1;
/// Tags of flash reads with this bit complete a buffered unit, others belong to a slot.
const FILL: u32 = 1 << 31;
/// Of the others, tags with this bit bring in a translation page.
const MAP: u32 = 1 << 30;

impl Drive {
    /// An empty drive. `seed` feeds policies that choose at random.
    ///
    /// # Errors
    /// [`DriveSpecError`] if the description makes no sense.
    pub fn new(device: DriveSpec, seed: u64) -> Result<Self, DriveSpecError> {
        Self::with_nand(device.clone(), device.erased(), seed)
    }

    /// An empty drive over erased flash, which may keep content.
    ///
    /// # Errors
    /// [`DriveSpecError`] if the description makes no sense.
    ///
    /// # Panics
    /// If the flash has another shape than the description says, or is not erased.
    pub fn with_nand(device: DriveSpec, nand: Nand, seed: u64) -> Result<Self, DriveSpecError> {
        device.check()?;
        assert!(*nand.geometry() == device.geometry(), "flash of another shape");
        assert!(nand.has_gaps() == device.flash.program_gaps, "flash of another kind");
        assert!(nand.program_units_programmed_total() == 0, "flash that was written before");
        let mut nand = nand;
        device.age(&mut nand, seed);
        let mut ftl = Ftl::new(device.geometry(), device.ftl_config(), seed)?;
        ftl.set_aside(nand.bad_blocks())?;
        Ok(Self::assemble(device, nand, ftl, 1))
    }

    pub(crate) fn assemble(device: DriveSpec, mut nand: Nand, ftl: Ftl, next_version: u64) -> Self {
        nand.pair_program_units(device.program_units_per_wordline());
        let engine = Engine::new(nand, ftl, device.engine_config());
        Self::around(device, engine, next_version)
    }

    /// An idle drive around an engine.
    pub(crate) fn around(device: DriveSpec, engine: Engine, next_version: u64) -> Self {
        let unit = device.ftl.mapping_unit.0;
        let buffer_units = (device.drive.write_buffer.0 / unit).min(1 << 30) as u32;
        let units_per_program_unit = engine.nand().layout().units_per_program_unit() as usize;
        let streams = engine.ftl().streams();
        let zones = ZoneWork::new(&device, engine.ftl().zoned());
        let has_faults_or_wordlines =
            engine.nand().has_faults() || device.engine_config().wordline_program_units > 1;
        Self {
            capacity: device.capacity().0,
            unit,
            unit_shift: unit.is_power_of_two().then(|| unit.trailing_zeros()),
            units_per_program_unit,
            engine,
            buffer: Buffer::new(buffer_units, units_per_program_unit, streams),
            starts: Pipe::new(),
            write_starts: Pipe::new(),
            finishes: Pipe::new(),
            timers: EventQueue::new(),
            slots: Slab::new(),
            queues: Queues::new(&device.drive),
            map: MapState::new(&device),
            zones,
            waiting_for_buffer: VecDeque::new(),
            waiting_for_flush: VecDeque::new(),
            link_in: SimTime::ZERO,
            link_out: SimTime::ZERO,
            link_last: (0, Nanos::ZERO),
            now: SimTime::ZERO,
            next_version,
            open_trims: Vec::new(),
            counts: HostCounts::default(),
            read_only: None,
            has_faults_or_wordlines,
            last_change: SimTime::ZERO,
            pumping: false,
            pump_again: false,
            done: Vec::new(),
            program_unit: Vec::new(),
            runs: Vec::new(),
            device,
        }
    }

    /// What the drive is.
    #[must_use]
    pub fn device(&self) -> &DriveSpec {
        &self.device
    }

    /// Flash, FTL and their counts.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Flash operations by cause since the drive was made.
    #[must_use]
    pub fn flash_counts(&self) -> &FlashCounts {
        self.engine.counts()
    }

    /// Merges by kind since the drive was made; `None` where nothing is mapped by block.
    #[must_use]
    pub fn merge_counts(&self) -> Option<MergeCounts> {
        self.engine.ftl().merges()
    }

    /// Sums over requests.
    #[must_use]
    pub fn host_counts(&self) -> &HostCounts {
        &self.counts
    }

    /// Requests taken and not done.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.slots.in_use() as u32
    }

    /// Whether another request may be submitted to `queue`.
    #[must_use]
    pub fn can_accept(&self, queue: u16) -> bool {
        self.queues.has_room(queue, self.device.drive.queue_depth)
    }

    /// The time the drive has reached.
    #[must_use]
    pub fn now(&self) -> SimTime {
        self.now
    }

    /// When the drive will do something next by itself; `None` if it is idle.
    #[must_use]
    pub fn next_event(&self) -> Option<SimTime> {
        let at = self.next_at();
        (at != SimTime::NEVER).then_some(at)
    }

    /// The same, [`SimTime::NEVER`] if it is idle.
    #[inline]
    fn next_at(&self) -> SimTime {
        let commands = self.starts.next_at().min(self.write_starts.next_at());
        let rest = self.finishes.next_at().min(self.timers.next_at());
        self.engine.next_at().min(commands).min(rest)
    }

    fn version(&mut self) -> u64 {
        let version = self.next_version;
        self.next_version += 1;
        version
    }

    /// How long `len` bytes take over the link. Most requests are as long as the last one,
    /// and a division costs more than a look.
    #[inline]
    fn link_time(&mut self, len: u64) -> Nanos {
        if self.link_last.0 != len {
            let rate = self.device.drive.link_bandwidth;
            let time = rate.map_or(Nanos::ZERO, |rate| transfer_time(Bytes(len), rate));
            self.link_last = (len, time);
        }
        self.link_last.1
    }

    /// The mapping unit that byte `offset` lies in.
    #[inline]
    fn unit_of(&self, offset: u64) -> u32 {
        match self.unit_shift {
            Some(shift) => (offset >> shift) as u32,
            None => (offset / self.unit) as u32,
        }
    }

    /// Says that a request at byte `offset` comes soon. Nothing happens but that the memory of
    /// its map entry is asked for: one request at a time would wait for it otherwise.
    #[inline]
    pub fn prefetch(&self, offset: u64) {
        self.engine.ftl().prefetch(self.unit_of(offset));
    }

    /// Units in the write buffer that are not on flash.
    #[must_use]
    pub fn buffered_units(&self) -> u32 {
        self.buffer.used() - self.engine.units_held()
    }

    /// Whether trims wait for the tombstone that makes them durable.
    pub(crate) fn trims_waiting(&self) -> bool {
        !self.open_trims.is_empty()
    }

    /// The laws that hold at any instant; with an idle drive also Little's law, exactly.
    ///
    /// # Panics
    /// If one is broken: that is a bug, and no result can be trusted.
    pub fn assert_conserved(&self) {
        self.engine.assert_conserved();
        let c = &self.counts;
        let in_flight = u64::from(self.in_flight());
        assert_eq!(c.submitted, c.completed + in_flight, "requests submitted = completed + rest");
        if in_flight == 0 {
            assert_eq!(c.in_flight_ns, c.latency_ns, "integral of queue depth = sum of latencies");
        }
    }

    /// Every law, counted anew over the whole map and all blocks.
    ///
    /// # Panics
    /// If one is broken.
    pub fn assert_consistent(&self) {
        self.assert_conserved();
        self.engine.nand().assert_conserved();
        self.engine.ftl().assert_consistent();
        if let Some(zones) = self.zones() {
            zones.assert_consistent();
        }
    }
}
