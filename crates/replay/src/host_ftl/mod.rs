//! Host FTL: makes a zoned drive accept writes to any address.
//!
//! The host keeps a map of units. Writes to any address are appended to an open zone. The cleaner
//! copies the valid units of a victim to a zone of its own and resets the victim, which is the full
//! zone with the fewest valid units (greedy). The drive itself copies nothing; the copies of the
//! host are counted here.
//!
//! This is what dm-zap and the FTL in SPDK do, without their metadata: persistence of the map is
//! not modelled. The map changes when a write is issued. This is safe, because a zoned drive
//! performs writes to a zone in order, and a zone is only reset once its copies are durable and no
//! read of it is in flight.
//!
//! Zones of a drive with faults may become read only or go offline. Their data is moved to other
//! zones, and failed writes are repeated; see [`failures`].

mod clean;
mod counts;
mod device;
mod failures;
mod requests;
mod zone_rules;

use std::collections::{BTreeSet, VecDeque};

use prism_base::{Bytes, SimTime, Slab};
use prism_ssd::{
    Completion, Drive, DriveSpec, DriveSpecError, HostCounts, InitialState, ReadOnly, Request,
    SubmitError, ZoneState, fit,
};

use clean::Cleaner;
pub use counts::HostFtlCounts;
use requests::Slot;
pub use zone_rules::ZoneRuleCheck;

/// Cleaning begins below this many empty zones. One more zone is being written by the host and one
/// by the cleaner.
const EMPTY_LOW: u32 = 2;
/// Zones that do not hold data when all units are written: open ones and those kept empty.
const RESERVED: u32 = EMPTY_LOW + 1;
/// The least effective over-provisioning: with less, cleaning a victim frees almost no space.
const SPARE_MIN: f64 = 0.02;

/// Default effective over-provisioning: chosen, about that of common drives.
const SPARE: f64 = 0.1;

/// Why a host FTL cannot run on a drive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostFtlError {
    /// It has no zones.
    #[error("a host FTL needs a zoned drive, and this one is not zoned")]
    NoZones,
    /// It allows fewer than the two active zones that are needed.
    #[error("the drive can have {0} zones active; a host FTL needs 2")]
    TooFewActive(u32),
    /// The drive is too small.
    #[error(
        "a host FTL of {units} units does not fit the drive, which has space for {most} besides \
         the zones that cleaning needs; use a larger --capacity"
    )]
    TooSmall {
        /// Units asked for.
        units: u64,
        /// The most units that fit.
        most: u64,
    },
    /// A zone is partly written, or the initial state includes overwrites.
    #[error(
        "a host FTL begins on zones that are full or empty: use --state empty, filled or \
         filled:SHARE"
    )]
    State,
}

/// Use of a zone by the host FTL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ZoneUse {
    Empty,
    /// Written by the host or by the cleaner.
    Open,
    Full,
    /// Being emptied, or reset.
    Victim,
    /// Read only: its valid units are moved away.
    Failed,
    /// Offline.
    Gone,
    /// Empty, and only used to replace a failed zone.
    Spare,
}

/// State of a zone, in units.
#[derive(Clone, Copy, Debug)]
struct Zone {
    used: ZoneUse,
    /// Units written, those in flight included.
    next: u32,
    valid: u32,
    /// Reads in flight.
    readers: u32,
    /// Writes in flight.
    writers: u32,
}

/// Number of a physical unit: zone and unit in the zone as one number.
type Pun = u32;

/// An FTL in the host on a zoned drive.
#[derive(Debug)]
pub struct HostFtl {
    drive: Drive,
    unit: u64,
    /// Units per zone, and bytes from the start of one zone to the next.
    zone_units: u32,
    zone_size: u64,
    /// L2P: for each logical unit the physical one plus 1; 0 for none.
    map: Vec<u32>,
    /// P2L: for each physical unit the logical one it was written for plus 1; 0 for none.
    back: Vec<u32>,
    zones: Vec<Zone>,
    empty: VecDeque<u32>,
    host_zone: Option<u32>,
    cleaner: Cleaner,
    slots: Slab<Slot>,
    /// Requests with units to write, in FCFS order.
    writing: VecDeque<u32>,
    /// Requests that complete without commands to the drive.
    ready: VecDeque<u32>,
    /// Commands for which the drive's queue has no space.
    outbox: VecDeque<Request>,
    /// Completions of commands that the drive refused because their zone has failed.
    refused: VecDeque<Completion>,
    /// Additional zones kept empty because zones may fail.
    spare_zones: u32,
    /// Units whose content was lost.
    lost: BTreeSet<u32>,
    /// Units of failed writes.
    failed_units: u64,
    read_only: Option<ReadOnly>,
    counts: HostCounts,
    ftl_counts: HostFtlCounts,
    last_change: SimTime,
    done: Vec<Completion>,
    /// Buffers of requests in flight, and of completed ones until the caller takes them.
    buffers: Vec<(u64, Vec<u8>)>,
    returned: VecDeque<(u64, Vec<u8>)>,
}

impl HostFtl {
    /// Zones that do not count as spare: open ones and those kept empty.
    pub const RESERVED_ZONES: u64 = RESERVED as u64;

    /// The most units of a host FTL on `drive`.
    fn max_units(drive: &Drive) -> Option<u64> {
        let shape = drive.device().zone_shape()?;
        let failed = |zone: &u32| drive.zones().is_some_and(|zones| zones.has_failed(*zone));
        let good = (0..shape.count).filter(|zone| !failed(zone)).count() as u32;
        let kept = RESERVED + u32::from(drive.device().faults.is_some());
        Some(Self::units_of(good.saturating_sub(kept), (shape.capacity / shape.block) as u32))
    }

    /// Units that `zones` zones hold with the least over-provisioning.
    fn units_of(zones: u32, zone_units: u32) -> u64 {
        (f64::from(zones) * f64::from(zone_units) / (1.0 + SPARE_MIN)) as u64
    }

    /// A host FTL with a capacity of `bytes` on `drive`, whose zones are full or empty. Data in
    /// them counts as the first logical units in order.
    ///
    /// # Errors
    /// [`HostFtlError`] if the drive does not allow it.
    pub fn new(drive: Drive, bytes: u64) -> Result<Self, HostFtlError> {
        Self::over(drive, bytes, u32::MAX)
    }

    /// As [`HostFtl::new`], but uses only as many zones as give an over-provisioning of a tenth:
    /// even the smallest drive may be much larger than `bytes`.
    ///
    /// # Errors
    /// The same.
    pub fn fitted(drive: Drive, bytes: u64) -> Result<Self, HostFtlError> {
        let shape = drive.device().zone_shape().ok_or(HostFtlError::NoZones)?;
        let data = (bytes as f64 * (1.0 + SPARE) / shape.capacity as f64).ceil();
        let kept = RESERVED + u32::from(drive.device().faults.is_some());
        Self::over(drive, bytes, data as u32 + kept)
    }

    /// A host FTL on the first `zones` zones, or all if there are fewer. On a drive with faults,
    /// the other zones replace those that fail.
    fn over(drive: Drive, bytes: u64, zones: u32) -> Result<Self, HostFtlError> {
        let shape = drive.device().zone_shape().ok_or(HostFtlError::NoZones)?;
        let spare_zones = u32::from(drive.device().faults.is_some());
        let own = zones.min(shape.count);
        let zones = if spare_zones > 0 { shape.count } else { own };
        if (1..2).contains(&shape.max_active) || (1..2).contains(&shape.max_open) {
            return Err(HostFtlError::TooFewActive(1));
        }
        let units = bytes.div_ceil(shape.block);
        let most = Self::max_units(&drive).ok_or(HostFtlError::NoZones)?;
        if units > most {
            return Err(HostFtlError::TooSmall { units, most });
        }
        let zone_units = (shape.capacity / shape.block) as u32;
        let zone = Zone { used: ZoneUse::Empty, next: 0, valid: 0, readers: 0, writers: 0 };
        let puns = zones as usize * zone_units as usize;
        let mut ftl = Self {
            unit: shape.block,
            zone_units,
            zone_size: shape.size,
            map: vec![0; units as usize],
            back: vec![0; puns],
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
            ftl_counts: HostFtlCounts::default(),
            last_change: drive.now(),
            done: Vec::new(),
            buffers: Vec::new(),
            returned: VecDeque::new(),
            drive,
        };
        ftl.load_zones(own)?;
        let most = ftl.max_units_now();
        if units > most {
            return Err(HostFtlError::TooSmall { units, most });
        }
        Ok(ftl)
    }

    /// The initial state of the drive with which the host FTL begins in `state`: the zones that
    /// hold its units are full. `None` if there is no such state.
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
        // Half a zone is added, because the share is rounded down to whole zones.
        let share = (zones as f64 + 0.5) / f64::from(shape.count);
        Some(InitialState::FilledTo { share })
    }

    /// Bytes of addresses to which `device` has to be scaled for a host FTL with a capacity of
    /// `bytes` and an over-provisioning of a tenth.
    ///
    /// # Errors
    /// [`DriveSpecError`] if there is no such drive.
    pub fn addresses_for(device: &DriveSpec, bytes: u64) -> Result<u64, DriveSpecError> {
        let wanted = bytes as f64 * (1.0 + SPARE);
        let mut addresses = bytes.max(1);
        loop {
            let fitted = fit(device, Bytes(addresses))?.device;
            let Some(shape) = fitted.zone_shape() else { return Ok(bytes) };
            let room = u64::from(shape.count.saturating_sub(RESERVED)) * shape.capacity;
            addresses = fitted.capacity().0;
            if room as f64 >= wanted {
                return Ok(addresses);
            }
            addresses += shape.size + addresses / 64;
        }
    }

    /// Enters the data of all zones in the map. Empty zones beyond the first `own` good zones are
    /// spare.
    fn load_zones(&mut self, own: u32) -> Result<(), HostFtlError> {
        let report: Vec<_> = match self.drive.zones() {
            Some(zones) => zones.report().collect(),
            None => return Err(HostFtlError::NoZones),
        };
        // The report includes zones that failed before.
        while self.drive.take_failed_zone().is_some() {}
        let (mut lpn, mut good) = (0, 0);
        for (zone, info) in (0..self.zones.len() as u32).zip(report) {
            let written = ((info.write_pointer - info.start) / self.unit) as u32;
            let used = match info.state {
                ZoneState::Empty if good < own => {
                    good += 1;
                    self.empty.push_back(zone);
                    continue;
                }
                ZoneState::Empty => ZoneUse::Spare,
                ZoneState::Full => ZoneUse::Full,
                ZoneState::ReadOnly => ZoneUse::Failed,
                ZoneState::Offline => ZoneUse::Gone,
                _ => return Err(HostFtlError::State),
            };
            good += u32::from(used == ZoneUse::Full);
            let held = if matches!(used, ZoneUse::Full | ZoneUse::Failed) { written } else { 0 };
            let known = &mut self.zones[zone as usize];
            (known.used, known.next) = (used, held);
            for offset in 0..held.min(self.map.len() as u32 - lpn) {
                self.set(lpn, zone * self.zone_units + offset);
                lpn += 1;
            }
        }
        Ok(())
    }

    /// Returns the drive.
    #[must_use]
    pub fn into_drive(self) -> Drive {
        self.drive
    }

    /// Counts of work done.
    #[must_use]
    pub fn counts(&self) -> &HostFtlCounts {
        &self.ftl_counts
    }

    /// The byte offset on the drive of logical unit `lpn`; `None` if it is unmapped.
    #[must_use]
    pub fn lookup(&self, lpn: u32) -> Option<u64> {
        self.pun_of(lpn).map(|pun| self.offset_of(pun))
    }

    /// Logical units.
    #[must_use]
    pub fn units(&self) -> u64 {
        self.map.len() as u64
    }

    /// Effective over-provisioning: units of all zones except spare, open and reserved ones, over
    /// the logical units, minus 1.
    #[must_use]
    pub fn over_provisioning(&self) -> f64 {
        let spare = self.zones.iter().filter(|zone| zone.used == ZoneUse::Spare).count() as u32;
        let zones = (self.good_zones() - spare).saturating_sub(RESERVED + self.spare_zones);
        (u64::from(zones) * u64::from(self.zone_units)) as f64 / self.map.len() as f64 - 1.0
    }

    fn zone_of(&self, pun: Pun) -> usize {
        (pun / self.zone_units) as usize
    }

    /// The byte offset of `pun` on the drive.
    fn offset_of(&self, pun: Pun) -> u64 {
        let (zone, unit) = (pun / self.zone_units, pun % self.zone_units);
        u64::from(zone) * self.zone_size + u64::from(unit) * self.unit
    }

    fn pun_of(&self, lpn: u32) -> Option<Pun> {
        self.map[lpn as usize].checked_sub(1)
    }

    fn unset(&mut self, lpn: u32) -> bool {
        if !self.lost.is_empty() {
            self.lost.remove(&lpn);
        }
        let Some(old) = self.pun_of(lpn) else { return false };
        self.map[lpn as usize] = 0;
        let zone = self.zone_of(old);
        self.zones[zone].valid -= 1;
        true
    }

    fn set(&mut self, lpn: u32, pun: Pun) {
        self.unset(lpn);
        self.map[lpn as usize] = pun + 1;
        self.back[pun as usize] = lpn + 1;
        let zone = self.zone_of(pun);
        self.zones[zone].valid += 1;
    }

    /// The logical unit that maps to `pun`.
    fn valid_at(&self, pun: Pun) -> Option<u32> {
        let lpn = self.back[pun as usize].checked_sub(1)?;
        (self.pun_of(lpn) == Some(pun)).then_some(lpn)
    }

    /// Allocates up to `count` consecutive units of `zone`. Returns the first and their number.
    fn allocate(&mut self, zone: u32, count: u32) -> (Pun, u32) {
        let known = &mut self.zones[zone as usize];
        let count = count.min(self.zone_units - known.next);
        let first = zone * self.zone_units + known.next;
        known.next += count;
        known.writers += 1;
        if known.next == self.zone_units && known.used == ZoneUse::Open {
            known.used = ZoneUse::Full;
        }
        (first, count)
    }

    /// Opens an empty zone if more than `kept` zones are empty.
    fn open_zone(&mut self, kept: u32) -> Option<u32> {
        if self.empty.len() as u32 <= kept {
            return None;
        }
        let zone = self.empty.pop_front()?;
        self.zones[zone as usize].used = ZoneUse::Open;
        Some(zone)
    }

    /// Submits a command to the drive, in order.
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
                Err(SubmitError::ZoneState { .. }) => self.refuse_command(request),
                Err(error) => panic!("the host FTL keeps the rules of zones: {error}"),
            }
        }
    }

    /// Adds the time since the last change to the integral of the requests in flight.
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
