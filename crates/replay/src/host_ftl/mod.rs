//! A log over a zoned drive: what a host puts before it so that any address can be written.
//!
//! The host keeps a map of units. Writes go to an open zone one behind the other, whatever their
//! address; a cleaner empties zones by reading what is still valid and writing it to a zone of
//! its own, and resets them. Victims are chosen greedily: the full zone with fewest valid units.
//! The drive copies nothing; what is copied is the host's, and is counted here.
//!
//! This is what dm-zap and the FTL in SPDK do, without their metadata: where the map is kept
//! between restarts is not modelled. The map changes when a write is issued. Nothing is lost by
//! that, as a zoned drive takes writes in order, and a zone is reset only when what was copied
//! out of it is durable and nobody reads it any more.
//!
//! Zones of a drive that ages may come to be read only or go offline. What stands in them is moved
//! to other zones, and writes that failed are made again; see [`failures`].

mod bare;
mod clean;
mod counts;
mod device;
mod failures;
mod requests;

use std::collections::{BTreeSet, VecDeque};

use prism_base::{Bytes, SimTime, Slab};
use prism_ssd::{
    Completion, Drive, DriveSpec, DriveSpecError, HostCounts, InitialState, ReadOnly, Request,
    SubmitError, ZoneState, fit,
};

pub use bare::BareWrites;
use clean::Cleaner;
pub use counts::LogCounts;
use requests::Slot;

/// Zones that may be empty when cleaning begins: below this, one is emptied. One more is being
/// written by the host and one by the cleaner.
const EMPTY_LOW: u32 = 2;
/// Zones that are not full of data when the log is: those being written and those kept empty.
const KEPT: u32 = EMPTY_LOW + 1;
/// The least effective over-provisioning: below it a victim gives back next to nothing.
const SPARE_MIN: f64 = 0.02;

/// Effective over-provisioning of a log that nobody chose: our choice, as drives of ordinary
/// use have about as much.
const SPARE: f64 = 0.1;

/// Why a drive cannot carry a log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// It has no zones.
    #[error("a log of the host is for zoned drives, and this one is none")]
    NoZones,
    /// Two zones are written at once.
    #[error("the drive can have {0} zones active; a log needs 2")]
    TooFewActive(u32),
    /// The log does not fit.
    #[error(
        "a log of {units} units does not fit the drive, which has room for {most} beside the \
         zones that cleaning needs; use a larger --capacity"
    )]
    TooSmall {
        /// Units of the log.
        units: u64,
        /// The most.
        most: u64,
    },
    /// Zones that are neither full nor empty, or an initial state by overwrites.
    #[error(
        "a log begins on zones that are full or empty: use --state empty, filled or filled:SHARE"
    )]
    State,
}

/// What a zone is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Empty,
    /// Written by the host or by the cleaner.
    Open,
    Full,
    /// Being emptied, or reset.
    Victim,
    /// It can only be read: what is valid in it is moved away.
    Failed,
    /// It is lost.
    Gone,
    /// Empty, and not used before another zone fails.
    Comparison,
}

/// A zone of the log. Units.
#[derive(Clone, Copy, Debug)]
struct Zone {
    used: Use,
    /// Written, or on their way to the drive.
    next: u32,
    valid: u32,
    /// Reads in flight.
    readers: u32,
    /// Writes in flight.
    writers: u32,
}

/// A place: zone and unit in it, as one number.
type Place = u32;

/// A log over a zoned drive.
#[derive(Debug)]
pub struct HostFtl {
    drive: Drive,
    unit: u64,
    /// Units that a zone holds, and bytes from one to the next.
    zone_units: u32,
    zone_size: u64,
    /// By unit of the log: its place plus one, 0 for none.
    map: Vec<u32>,
    /// By place: the unit it was written for plus one, 0 for none.
    back: Vec<u32>,
    zones: Vec<Zone>,
    empty: VecDeque<u32>,
    host_zone: Option<u32>,
    cleaner: Cleaner,
    slots: Slab<Slot>,
    /// Slots with units to write, first come first served.
    writing: VecDeque<u32>,
    /// Slots that are done at once.
    ready: VecDeque<u32>,
    /// What the drive's queue has no room for.
    outbox: VecDeque<Request>,
    /// Commands that the drive has refused, because their zone has failed.
    refused: VecDeque<Completion>,
    /// Empty zones that are kept besides, because zones may fail.
    spare_zones: u32,
    /// Units whose content could not be moved.
    lost: BTreeSet<u32>,
    /// Units of writes that have failed.
    failed_units: u64,
    read_only: Option<ReadOnly>,
    counts: HostCounts,
    log: LogCounts,
    last_change: SimTime,
    done: Vec<Completion>,
}

impl HostFtl {
    /// Zones that do not count as spare: those being written and those kept empty.
    pub const KEPT_ZONES: u64 = KEPT as u64;

    /// The most units of a log over `drive`.
    fn most_units(drive: &Drive) -> Option<u64> {
        let shape = drive.device().zone_shape()?;
        let failed = |zone: &u32| drive.zones().is_some_and(|zones| zones.has_failed(*zone));
        let sound = (0..shape.count).filter(|zone| !failed(zone)).count() as u32;
        let kept = KEPT + u32::from(drive.device().faults.is_some());
        Some(Self::units_of(sound.saturating_sub(kept), (shape.capacity / shape.block) as u32))
    }

    /// Units that so many zones beside those that are kept hold with the least spare.
    fn units_of(zones: u32, zone_units: u32) -> u64 {
        (f64::from(zones) * f64::from(zone_units) / (1.0 + SPARE_MIN)) as u64
    }

    /// A log of `bytes` over `drive`, whose zones are full or empty. The full ones hold the
    /// first units of the log in order.
    ///
    /// # Errors
    /// [`LogError`] if the drive cannot carry it.
    pub fn new(drive: Drive, bytes: u64) -> Result<Self, LogError> {
        Self::over(drive, bytes, u32::MAX)
    }

    /// As [`HostFtl::new`], over as many of the zones only as leave a tenth of the log to
    /// spare: a drive that is as small as it can be may still be large for a small log.
    ///
    /// # Errors
    /// The same.
    pub fn fitted(drive: Drive, bytes: u64) -> Result<Self, LogError> {
        let shape = drive.device().zone_shape().ok_or(LogError::NoZones)?;
        let data = (bytes as f64 * (1.0 + SPARE) / shape.capacity as f64).ceil();
        let kept = KEPT + u32::from(drive.device().faults.is_some());
        Self::over(drive, bytes, data as u32 + kept)
    }

    /// A log over the first `zones` zones, or all if there are fewer. Where zones may fail, the
    /// others make up for those that do.
    fn over(drive: Drive, bytes: u64, zones: u32) -> Result<Self, LogError> {
        let shape = drive.device().zone_shape().ok_or(LogError::NoZones)?;
        let spare_zones = u32::from(drive.device().faults.is_some());
        let own = zones.min(shape.count);
        let zones = if spare_zones > 0 { shape.count } else { own };
        if (1..2).contains(&shape.max_active) || (1..2).contains(&shape.max_open) {
            return Err(LogError::TooFewActive(1));
        }
        let units = bytes.div_ceil(shape.block);
        let most = Self::most_units(&drive).ok_or(LogError::NoZones)?;
        if units > most {
            return Err(LogError::TooSmall { units, most });
        }
        let zone_units = (shape.capacity / shape.block) as u32;
        let zone = Zone { used: Use::Empty, next: 0, valid: 0, readers: 0, writers: 0 };
        let places = zones as usize * zone_units as usize;
        let mut log = Self {
            unit: shape.block,
            zone_units,
            zone_size: shape.size,
            map: vec![0; units as usize],
            back: vec![0; places],
            zones: vec![zone; zones as usize],
            empty: VecDeque::new(),
            host_zone: None,
            cleaner: Cleaner::default(),
            slots: Slab::new(),
            writing: VecDeque::new(),
            ready: VecDeque::new(),
            outbox: VecDeque::new(),
            refused: VecDeque::new(),
            spare_zones,
            lost: BTreeSet::new(),
            failed_units: 0,
            read_only: None,
            counts: HostCounts::default(),
            log: LogCounts::default(),
            last_change: drive.now(),
            done: Vec::new(),
            drive,
        };
        log.take_over(own)?;
        let most = log.most_units_now();
        if units > most {
            return Err(LogError::TooSmall { units, most });
        }
        Ok(log)
    }

    /// The state in which a drive has to begin so that the log begins in `state`: as many full
    /// zones as that has units; `None` if there is no such state.
    #[must_use]
    pub fn drive_state(drive: &DriveSpec, bytes: u64, state: InitialState) -> Option<InitialState> {
        let shape = drive.zone_shape()?;
        let share = match state {
            InitialState::Empty => return Some(InitialState::Empty),
            InitialState::Filled => 1.0,
            InitialState::FilledTo { share } => share,
            _ => return None,
        };
        let units = (bytes.div_ceil(shape.block) as f64 * share) as u64;
        let zones = units.div_ceil(shape.capacity / shape.block);
        // Half a zone more, so that rounding down does not lose one.
        let share = (zones as f64 + 0.5) / f64::from(shape.count);
        Some(InitialState::FilledTo { share })
    }

    /// Bytes of addresses of a drive of the kind of `device` that carries a log of `bytes` with
    /// a tenth of it to spare.
    ///
    /// # Errors
    /// [`DriveSpecError`] if there is no such drive.
    pub fn addresses_for(device: &DriveSpec, bytes: u64) -> Result<u64, DriveSpecError> {
        let wanted = bytes as f64 * (1.0 + SPARE);
        let mut addresses = bytes.max(1);
        loop {
            let fitted = fit(device, Bytes(addresses))?.device;
            let Some(shape) = fitted.zone_shape() else { return Ok(bytes) };
            let room = u64::from(shape.count.saturating_sub(KEPT)) * shape.capacity;
            addresses = fitted.capacity().0;
            if room as f64 >= wanted {
                return Ok(addresses);
            }
            addresses += shape.size + addresses / 64;
        }
    }

    /// Finds out what the zones hold. Beyond the first `own` sound ones empty zones stand by.
    fn take_over(&mut self, own: u32) -> Result<(), LogError> {
        let report: Vec<_> = match self.drive.zones() {
            Some(zones) => zones.report().collect(),
            None => return Err(LogError::NoZones),
        };
        // What has failed before the log began is in the report.
        while self.drive.take_failed_zone().is_some() {}
        let (mut lpn, mut sound) = (0, 0);
        for (zone, info) in (0..self.zones.len() as u32).zip(report) {
            let written = ((info.write_pointer - info.start) / self.unit) as u32;
            let used = match info.state {
                ZoneState::Empty if sound < own => {
                    sound += 1;
                    self.empty.push_back(zone);
                    continue;
                }
                ZoneState::Empty => Use::Comparison,
                ZoneState::Full => Use::Full,
                ZoneState::ReadOnly => Use::Failed,
                ZoneState::Offline => Use::Gone,
                _ => return Err(LogError::State),
            };
            sound += u32::from(used == Use::Full);
            let held = if matches!(used, Use::Full | Use::Failed) { written } else { 0 };
            let known = &mut self.zones[zone as usize];
            (known.used, known.next) = (used, held);
            for offset in 0..held.min(self.map.len() as u32 - lpn) {
                self.set(lpn, zone * self.zone_units + offset);
                lpn += 1;
            }
        }
        Ok(())
    }

    /// Takes the drive back.
    #[must_use]
    pub fn into_drive(self) -> Drive {
        self.drive
    }

    /// What the log has done.
    #[must_use]
    pub fn counts(&self) -> &LogCounts {
        &self.log
    }

    /// The byte of the drive at which unit `lpn` of the log stands, if it holds anything.
    #[must_use]
    pub fn lookup(&self, lpn: u32) -> Option<u64> {
        self.place_of(lpn).map(|place| self.offset_of(place))
    }

    /// Units with an address.
    #[must_use]
    pub fn units(&self) -> u64 {
        self.map.len() as u64
    }

    /// Units that can hold data in steady state over those with an address, less one: all
    /// zones but those being written and those kept empty.
    #[must_use]
    pub fn over_provisioning(&self) -> f64 {
        let beside = self.zones.iter().filter(|zone| zone.used == Use::Comparison).count() as u32;
        let zones = (self.sound_zones() - beside).saturating_sub(KEPT + self.spare_zones);
        (u64::from(zones) * u64::from(self.zone_units)) as f64 / self.map.len() as f64 - 1.0
    }

    fn zone_of(&self, place: Place) -> usize {
        (place / self.zone_units) as usize
    }

    /// The byte of the drive at which `place` begins.
    fn offset_of(&self, place: Place) -> u64 {
        let (zone, unit) = (place / self.zone_units, place % self.zone_units);
        u64::from(zone) * self.zone_size + u64::from(unit) * self.unit
    }

    fn place_of(&self, lpn: u32) -> Option<Place> {
        self.map[lpn as usize].checked_sub(1)
    }

    fn unset(&mut self, lpn: u32) -> bool {
        if !self.lost.is_empty() {
            self.lost.remove(&lpn);
        }
        let Some(old) = self.place_of(lpn) else { return false };
        self.map[lpn as usize] = 0;
        let zone = self.zone_of(old);
        self.zones[zone].valid -= 1;
        true
    }

    fn set(&mut self, lpn: u32, place: Place) {
        self.unset(lpn);
        self.map[lpn as usize] = place + 1;
        self.back[place as usize] = lpn + 1;
        let zone = self.zone_of(place);
        self.zones[zone].valid += 1;
    }

    /// The unit that is valid at `place`.
    fn valid_at(&self, place: Place) -> Option<u32> {
        let lpn = self.back[place as usize].checked_sub(1)?;
        (self.place_of(lpn) == Some(place)).then_some(lpn)
    }

    /// Takes up to `count` places of `zone` one behind the other: the first, and how many.
    fn take_places(&mut self, zone: u32, count: u32) -> (Place, u32) {
        let known = &mut self.zones[zone as usize];
        let count = count.min(self.zone_units - known.next);
        let first = zone * self.zone_units + known.next;
        known.next += count;
        known.writers += 1;
        if known.next == self.zone_units && known.used == Use::Open {
            known.used = Use::Full;
        }
        (first, count)
    }

    /// Opens an empty zone, if more than `kept` are.
    fn open_zone(&mut self, kept: u32) -> Option<u32> {
        if self.empty.len() as u32 <= kept {
            return None;
        }
        let zone = self.empty.pop_front()?;
        self.zones[zone as usize].used = Use::Open;
        Some(zone)
    }

    /// Sends a command to the drive, in order.
    fn send(&mut self, request: Request) {
        self.outbox.push_back(request);
        self.send_waiting();
    }

    fn send_waiting(&mut self) {
        while self.drive.can_accept(0) {
            let Some(request) = self.outbox.pop_front() else { break };
            let now = self.drive.now();
            match self.drive.submit(request, now) {
                Ok(()) => {}
                Err(SubmitError::ZoneState { .. }) => self.bounce(request),
                Err(error) => panic!("the log keeps the rules of zones: {error}"),
            }
        }
    }

    /// Adds the time since the last change to the integral of requests in flight.
    fn account(&mut self) {
        let now = self.drive.now();
        let span = now.since(self.last_change);
        self.counts.in_flight_ns += u128::from(span.0) * self.slots.in_use() as u128;
        self.last_change = now;
    }

    fn step_drive(&mut self, out: &mut Vec<Completion>) {
        let mut done = std::mem::take(&mut self.done);
        self.drive.step(&mut done);
        self.notice_failures();
        for completion in done.drain(..) {
            self.completed(&completion, out);
        }
        self.done = done;
        self.send_waiting();
    }

    fn next_at(&self) -> Option<SimTime> {
        let nothing = self.ready.is_empty() && self.refused.is_empty();
        if nothing { self.drive.next_event() } else { Some(self.drive.now()) }
    }
}
