//! The zones of a zoned drive: states, write pointers, open and active resources.
//!
//! Commands are checked when they are submitted; a controller checks when it fetches one, and this
//! drive fetches in the order of submission. A zone releases its resources when the command
//! completes that fills, finishes or resets it. Source: NVM Express Zoned Namespace Command Set
//! 1.1, sections 2.1.1.2 to 2.1.1.4. Differs: a zone that was opened and closed without a write is
//! empty again, as in ZBC and Linux; commands whose order the standard leaves open (a reset while
//! writes of the zone are in flight) are refused, since their result would be undefined.

mod snapshot;

use borsh::{BorshDeserialize, BorshSerialize};

use prism_engine::block::{HostOp, Request, SubmitError};

prism_base::named_enum! {
    /// The state of a zone.
    #[derive(BorshSerialize, BorshDeserialize)]
    pub enum ZoneState {
        /// Nothing is written.
        Empty = "empty",
        /// Opened by a write.
        ImplicitlyOpen = "implicitly open",
        /// Opened by a command of the host.
        ExplicitlyOpen = "explicitly open",
        /// Partly written and not open.
        Closed = "closed",
        /// Takes no more writes until it is reset.
        Full = "full",
        /// Can only be read.
        ReadOnly = "read only",
        /// Its data is lost.
        Offline = "offline",
    }
}

impl ZoneState {
    /// Whether it takes an open resource.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Self::ImplicitlyOpen | Self::ExplicitlyOpen)
    }

    /// Whether it takes an active resource.
    #[must_use]
    pub fn is_active(self) -> bool {
        self.is_open() || self == Self::Closed
    }
}

/// One entry of a zone report. Offsets are in bytes of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneInfo {
    /// Its number.
    pub zone: u32,
    /// Its state.
    pub state: ZoneState,
    /// First byte.
    pub start: u64,
    /// Offset of the next write; the end of the capacity if the zone is full.
    pub write_pointer: u64,
}

/// Kinds of zone failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneFault {
    /// It can still be read.
    ReadOnly,
    /// It is lost.
    Offline,
}

/// A zone. Offsets are in bytes from its start.
#[derive(Clone, Copy, Debug)]
struct Zone {
    state: ZoneState,
    /// Offset of the next write.
    pointer: u64,
    /// Writes in flight.
    writes: u32,
    /// A reset, finish, open or close is in flight.
    managed: bool,
    /// [`Zones::taken`] at the last write.
    written: u64,
}

/// Number, size and limits of the zones of a drive. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneShape {
    /// Zones.
    pub count: u32,
    /// From the start of one zone to that of the next.
    pub size: u64,
    /// Writable bytes of a zone.
    pub capacity: u64,
    /// Block size: writes begin and end at multiples of it.
    pub block: u64,
    /// Limit of open zones; 0 for none.
    pub max_open: u32,
    /// Limit of active zones (open or closed); 0 for none.
    pub max_active: u32,
}

/// All zones of a drive.
#[derive(Clone, Debug)]
pub struct Zones {
    shape: ZoneShape,
    zones: Vec<Zone>,
    open: u32,
    active: u32,
    /// Writes accepted so far.
    taken: u64,
}

impl Zones {
    /// Zones of which the first `written(zone)` bytes are written; `None` means full.
    #[must_use]
    pub fn new(shape: ZoneShape, written: impl Fn(u32) -> Option<u64>) -> Self {
        let zone = |number: u32| {
            let pointer = written(number).unwrap_or(shape.capacity);
            let state = match pointer {
                0 => ZoneState::Empty,
                end if end == shape.capacity => ZoneState::Full,
                _ => ZoneState::Closed,
            };
            Zone { state, pointer, writes: 0, managed: false, written: 0 }
        };
        let zones: Vec<Zone> = (0..shape.count).map(zone).collect();
        let active = zones.iter().filter(|zone| zone.state.is_active()).count() as u32;
        Self { shape, zones, open: 0, active, taken: 0 }
    }

    /// Their shape.
    #[must_use]
    pub fn shape(&self) -> &ZoneShape {
        &self.shape
    }

    /// The zone that byte `offset` lies in.
    #[must_use]
    pub fn zone_of(&self, offset: u64) -> u32 {
        (offset / self.shape.size) as u32
    }

    /// One entry of the report.
    #[must_use]
    pub fn info(&self, zone: u32) -> ZoneInfo {
        let start = u64::from(zone) * self.shape.size;
        let Zone { state, pointer, .. } = self.zones[zone as usize];
        let pointer = if state == ZoneState::Full { self.shape.capacity } else { pointer };
        ZoneInfo { zone, state, start, write_pointer: start + pointer }
    }

    /// The report: every zone in order.
    pub fn report(&self) -> impl Iterator<Item = ZoneInfo> + '_ {
        (0..self.shape.count).map(|zone| self.info(zone))
    }

    /// Number of open zones.
    #[must_use]
    pub fn open(&self) -> u32 {
        self.open
    }

    /// Number of active zones.
    #[must_use]
    pub fn active(&self) -> u32 {
        self.active
    }

    /// Writes to `zone` in flight.
    pub(crate) fn writes_in_flight(&self, zone: u32) -> u32 {
        self.zones[zone as usize].writes
    }

    /// Accepts `request` if the rules of zones allow it: states and write pointers change at once,
    /// and an append gets its offset. Otherwise nothing changes.
    ///
    /// # Errors
    /// [`SubmitError`] that names the violated rule.
    pub fn take(&mut self, request: &mut Request) -> Result<(), SubmitError> {
        let zone = self.zone_of(request.offset);
        match request.op {
            HostOp::Flush => Ok(()),
            HostOp::Read => self.check_read(request),
            HostOp::Discard | HostOp::WriteZeroes => {
                Err(SubmitError::NotOnZones { op: request.op.name() })
            }
            HostOp::Write | HostOp::ZoneAppend => self.take_write(zone, request),
            HostOp::ZoneOpen | HostOp::ZoneClose | HostOp::ZoneFinish | HostOp::ZoneReset => {
                self.take_management(zone, request)
            }
        }
    }

    /// Accepts `request` and completes it at once.
    ///
    /// # Errors
    /// As [`Zones::take`].
    pub fn take_and_end(&mut self, request: &mut Request) -> Result<(), SubmitError> {
        self.take(request)?;
        self.done(request.op, request.offset);
        Ok(())
    }

    fn check_read(&self, request: &Request) -> Result<(), SubmitError> {
        let last = self.zone_of(request.offset + request.len - 1);
        let lost = |&zone: &u32| self.zones[zone as usize].state == ZoneState::Offline;
        match (self.zone_of(request.offset)..=last).find(lost) {
            Some(zone) => Err(SubmitError::ZoneState { zone, state: "offline", op: "read" }),
            None => Ok(()),
        }
    }

    fn take_write(&mut self, zone: u32, request: &mut Request) -> Result<(), SubmitError> {
        let ZoneShape { size, capacity, block, .. } = self.shape;
        let start = u64::from(zone) * size;
        let Zone { state, pointer, managed, .. } = self.zones[zone as usize];
        let (offset, len) = (request.offset, request.len);
        if !offset.is_multiple_of(block) || !len.is_multiple_of(block) {
            return Err(SubmitError::Unaligned { offset, len, block });
        }
        match state {
            ZoneState::ReadOnly | ZoneState::Offline => {
                let (state, op) = (state.name(), request.op.name());
                return Err(SubmitError::ZoneState { zone, state, op });
            }
            _ if pointer == capacity || state == ZoneState::Full => {
                return Err(SubmitError::ZoneFull { zone });
            }
            _ => {}
        }
        if managed {
            return Err(SubmitError::ZoneBusy { zone });
        }
        let write_pointer = start + pointer;
        match request.op {
            HostOp::ZoneAppend if offset != start => {
                return Err(SubmitError::NotZoneStart { zone, offset, start });
            }
            HostOp::Write if offset != write_pointer => {
                return Err(SubmitError::NotAtWritePointer { zone, offset, write_pointer });
            }
            _ => {}
        }
        if pointer + len > capacity {
            let left = capacity - pointer;
            return Err(SubmitError::ZoneBoundary { zone, len, left });
        }
        self.open_for(zone, ZoneState::ImplicitlyOpen)?;
        self.taken += 1;
        let state = &mut self.zones[zone as usize];
        (state.pointer, state.written) = (pointer + len, self.taken);
        state.writes += 1;
        request.offset = write_pointer;
        Ok(())
    }

    fn take_management(&mut self, zone: u32, request: &Request) -> Result<(), SubmitError> {
        use ZoneState::{Closed, Empty, ExplicitlyOpen, Full, ImplicitlyOpen, Offline, ReadOnly};
        let start = u64::from(zone) * self.shape.size;
        if request.offset != start {
            return Err(SubmitError::NotZoneStart { zone, offset: request.offset, start });
        }
        let Zone { state, pointer, writes, managed, .. } = self.zones[zone as usize];
        if writes > 0 || managed {
            return Err(SubmitError::ZoneBusy { zone });
        }
        match (request.op, state) {
            (_, ReadOnly | Offline)
            | (HostOp::ZoneOpen, Full)
            | (HostOp::ZoneClose, Empty | Full) => {
                let (state, op) = (state.name(), request.op.name());
                return Err(SubmitError::ZoneState { zone, state, op });
            }
            (HostOp::ZoneOpen, _) => {
                self.open_for(zone, ExplicitlyOpen)?;
                self.set(zone, ExplicitlyOpen);
            }
            (HostOp::ZoneClose, _) => self.set(zone, if pointer == 0 { Empty } else { Closed }),
            (_, Empty | ImplicitlyOpen | ExplicitlyOpen | Closed | Full) => {}
        }
        self.zones[zone as usize].managed = true;
        Ok(())
    }

    /// Allocates the resources of an open zone to `zone` and sets its state to `kind`, unless it is
    /// explicitly open. At the limit of open zones, the least recently written implicitly open zone
    /// is closed, as the standard allows a controller to do.
    fn open_for(&mut self, zone: u32, kind: ZoneState) -> Result<(), SubmitError> {
        let state = self.zones[zone as usize].state;
        let ZoneShape { max_open, max_active, .. } = self.shape;
        if max_active > 0 && !state.is_active() && self.active == max_active {
            return Err(SubmitError::TooManyActive { zone, max: max_active });
        }
        if max_open > 0 && !state.is_open() && self.open == max_open {
            let implicit = |zone: &&Zone| zone.state == ZoneState::ImplicitlyOpen;
            let oldest = self.zones.iter().filter(implicit).map(|zone| zone.written).min();
            let closed = |zone: &Zone| Some(zone.written) == oldest && implicit(&zone);
            let Some(victim) = self.zones.iter().position(closed) else {
                return Err(SubmitError::TooManyOpen { zone, max: max_open });
            };
            self.set(victim as u32, ZoneState::Closed);
        }
        if state != ZoneState::ExplicitlyOpen {
            self.set(zone, kind);
        }
        Ok(())
    }

    fn set(&mut self, zone: u32, to: ZoneState) {
        let state = &mut self.zones[zone as usize].state;
        self.open -= u32::from(state.is_open());
        self.active -= u32::from(state.is_active());
        *state = to;
        self.open += u32::from(to.is_open());
        self.active += u32::from(to.is_active());
    }

    /// Completes a command that was accepted.
    pub(crate) fn done(&mut self, op: HostOp, offset: u64) {
        if matches!(op, HostOp::Flush | HostOp::Read) {
            return;
        }
        let zone = self.zone_of(offset);
        let capacity = self.shape.capacity;
        let known = &mut self.zones[zone as usize];
        match op {
            HostOp::Write | HostOp::ZoneAppend => known.writes -= 1,
            _ => known.managed = false,
        }
        let Zone { state, pointer, writes, .. } = *known;
        if matches!(state, ZoneState::ReadOnly | ZoneState::Offline) {
            return;
        }
        if op == HostOp::ZoneReset {
            known.pointer = 0;
            self.set(zone, ZoneState::Empty);
        } else if op == HostOp::ZoneFinish || pointer == capacity && writes == 0 {
            self.set(zone, ZoneState::Full);
        }
    }

    /// Zones that are in `state`.
    #[must_use]
    pub fn count(&self, state: ZoneState) -> u32 {
        self.zones.iter().filter(|zone| zone.state == state).count() as u32
    }

    /// Whether `zone` is read only or offline.
    #[must_use]
    pub fn has_failed(&self, zone: u32) -> bool {
        matches!(self.zones[zone as usize].state, ZoneState::ReadOnly | ZoneState::Offline)
    }

    /// Whether `zone` is empty and no command on it is in flight.
    pub(crate) fn is_idle_and_empty(&self, zone: u32) -> bool {
        let known = &self.zones[zone as usize];
        known.state == ZoneState::Empty && known.writes == 0 && !known.managed
    }

    /// Marks `zone` as failed.
    pub(crate) fn fail(&mut self, zone: u32, fault: ZoneFault) {
        self.set(
            zone,
            match fault {
                ZoneFault::ReadOnly => ZoneState::ReadOnly,
                ZoneFault::Offline => ZoneState::Offline,
            },
        );
    }

    /// Checks that the resources in use match the states of the zones.
    ///
    /// # Panics
    /// If they do not, or exceed the limits.
    pub fn assert_consistent(&self) {
        let count = |is: fn(ZoneState) -> bool| self.zones.iter().filter(|z| is(z.state)).count();
        assert_eq!(self.open as usize, count(ZoneState::is_open), "open zones");
        assert_eq!(self.active as usize, count(ZoneState::is_active), "active zones");
        let within = |count: u32, max: u32| max == 0 || count <= max;
        assert!(within(self.open, self.shape.max_open), "more open zones than allowed");
        assert!(within(self.active, self.shape.max_active), "more active zones than allowed");
        assert!(self.zones.iter().all(|zone| zone.pointer <= self.shape.capacity));
    }
}
