//! The simulated drive.
//!
//! A write passes the link, firmware, the buffer (where it completes, if the cache is write-back),
//! a program unit, flash and the map. A read passes firmware, then buffer or flash, then the link.
//! Simulated time advances only in calls such as [`Drive::submit`] and [`Drive::advance`]. Design:
//! docs/design/drive.md.

mod bytes;
mod commands;
mod durability;
mod events;
mod health;
mod link;
mod map;
mod reads;
mod slots;
mod write_path;
mod zoned;

use std::collections::VecDeque;

use prism_base::{EventQueue, Pipe, SimTime, Slab};
use prism_engine::{Done, Engine, FlashCounts, HostUnit, ReadTransfer};
use prism_ftl::{Ftl, MergeCounts, ReadRun, TrimRange};
use prism_nand::Nand;

use crate::buffer::Buffer;
use crate::spec::{DriveSpec, DriveSpecError};
use bytes::Payloads;
use commands::Queues;
pub use health::{DriveHealth, ReadOnly, SlcHealth, ZoneHealth};
use link::Link;
use map::MapState;
use prism_engine::block::{Completion, HostCounts};
use slots::{Slot, Waiter};
pub(crate) use zoned::ZoneWork;

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
    /// Ends of the firmware time of commands: other than writes, and writes, whose data has crossed
    /// the link before.
    starts: Pipe,
    write_starts: Pipe,
    /// Ends of requests whose data crosses the link to the host, and of refused ones.
    finishes: Pipe,
    /// Rare events: the payload's low bits are the kind.
    timers: EventQueue,
    slots: Slab<Slot>,
    /// Buffers of the callers; `None` while there is no content and no request has had one.
    payloads: Option<Box<Payloads>>,
    pub(crate) queues: Queues,
    /// The map cache, if the map is on flash.
    pub(crate) map: Option<Box<MapState>>,
    /// The zones of a zoned drive.
    pub(crate) zones: Option<Box<ZoneWork>>,
    waiting_for_buffer: VecDeque<u32>,
    waiting_for_flush: VecDeque<Waiter>,
    link: Link,
    pub(crate) now: SimTime,
    pub(crate) next_version: u64,
    /// Trimmed ranges that no tombstone holds yet (without power-loss protection).
    open_trims: Vec<TrimRange>,
    counts: HostCounts,
    /// Set once the drive is read-only.
    read_only: Option<ReadOnly>,
    /// The flash has a fault model, or several of its program units share a wordline.
    has_faults_or_wordlines: bool,
    /// Reads transfer only the sectors that are needed.
    transfers_sectors: bool,
    last_change: SimTime,
    pumping: bool,
    pump_again: bool,
    done: Vec<Done>,
    program_unit: Vec<HostUnit>,
    runs: Vec<ReadRun>,
}

/// Kinds of rare events, in the low bits of the payload; the bits above are an argument.
const IDLE: u32 = 0;
const MERGE: u32 = 1;
const KIND_BITS: u32 = 1;
/// Tags of flash reads with this bit complete a buffered unit; others are those of a request slot.
const FILL: u32 = 1 << 31;
/// Of the others, tags with this bit load a translation page.
const MAP: u32 = 1 << 30;

impl Drive {
    /// An empty drive. `seed` is for policies that choose at random.
    ///
    /// # Errors
    /// [`DriveSpecError`] if the description is invalid.
    pub fn new(device: DriveSpec, seed: u64) -> Result<Self, DriveSpecError> {
        Self::with_nand(device.clone(), device.erased(), seed)
    }

    /// An empty drive with the given erased flash, which may keep content.
    ///
    /// # Errors
    /// [`DriveSpecError`] if the description is invalid.
    ///
    /// # Panics
    /// If the flash does not have the geometry of the description, or is not erased.
    pub fn with_nand(device: DriveSpec, nand: Nand, seed: u64) -> Result<Self, DriveSpecError> {
        device.check()?;
        assert!(*nand.geometry() == device.geometry(), "flash of another geometry");
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

    /// An idle drive with the given engine.
    pub(crate) fn around(device: DriveSpec, engine: Engine, next_version: u64) -> Self {
        let unit = device.ftl.mapping_unit.0;
        let buffer_units = (device.drive.write_buffer.0 / unit).min(1 << 30) as u32;
        let units_per_program_unit = engine.nand().layout().units_per_program_unit() as usize;
        let streams = engine.ftl().streams();
        let zones = ZoneWork::new(&device, engine.ftl().zoned());
        let keeps_content = engine.nand().keeps_content();
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
            payloads: keeps_content.then(Box::default),
            queues: Queues::new(&device.drive),
            map: MapState::new(&device),
            zones,
            waiting_for_buffer: VecDeque::new(),
            waiting_for_flush: VecDeque::new(),
            link: Link::new(&device.drive),
            now: SimTime::ZERO,
            next_version,
            open_trims: Vec::new(),
            counts: HostCounts::default(),
            read_only: None,
            has_faults_or_wordlines,
            transfers_sectors: device.flash.read_transfer == ReadTransfer::Sectors,
            last_change: SimTime::ZERO,
            pumping: false,
            pump_again: false,
            done: Vec::new(),
            program_unit: Vec::new(),
            runs: Vec::new(),
            device,
        }
    }

    /// The description of the drive.
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

    /// Merges by kind since the drive was made; `None` without block-level or hybrid mapping.
    #[must_use]
    pub fn merge_counts(&self) -> Option<MergeCounts> {
        self.engine.ftl().merges()
    }

    /// Sums over requests.
    #[must_use]
    pub fn host_counts(&self) -> &HostCounts {
        &self.counts
    }

    /// Requests submitted and not completed.
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

    /// The time of the next event; `None` if the drive is idle.
    #[must_use]
    pub fn next_event(&self) -> Option<SimTime> {
        let at = self.next_at();
        (at != SimTime::NEVER).then_some(at)
    }

    /// The time of the next event; [`SimTime::NEVER`] if the drive is idle.
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

    /// The mapping unit that byte `offset` lies in.
    #[inline]
    fn unit_of(&self, offset: u64) -> u32 {
        match self.unit_shift {
            Some(shift) => (offset >> shift) as u32,
            None => (offset / self.unit) as u32,
        }
    }

    /// Prefetches the map entry for a request at byte `offset` that will be submitted soon, so that
    /// its cache miss overlaps with others.
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

    /// Checks the conservation laws that hold at any time and, if no request is in flight, Little's
    /// law, exactly.
    ///
    /// # Panics
    /// If one is violated, which is a bug that makes all results invalid.
    pub fn assert_conserved(&self) {
        self.engine.assert_conserved();
        self.counts.assert_conserved(self.in_flight());
    }

    /// Checks every conservation law, recounted over the whole map and all blocks.
    ///
    /// # Panics
    /// If one is violated.
    pub fn assert_consistent(&self) {
        self.assert_conserved();
        self.engine.nand().assert_conserved();
        self.engine.ftl().assert_consistent();
        if let Some(zones) = self.zones() {
            zones.assert_consistent();
        }
    }
}
