//! Host FTL: makes a zoned drive accept writes to any address.
//!
//! It is the [controller](prism_engine::control) with page-level mapping over the zones of a drive:
//! writes to any address are appended to an open zone, and the cleaner copies the valid units of
//! the full zone with the fewest of them to a zone of its own, and resets the zone. The drive
//! itself copies nothing; the copies of the host are counted here.
//!
//! This is what dm-zap and the FTL in SPDK do, without their metadata: persistence of the map is
//! not modelled.
//!
//! Zones of a drive with faults may become read only or go offline: they are the bad blocks of the
//! FTL. Their data is moved to other zones, and failed writes are repeated.

mod counts;
mod device;
mod requests;
mod zone_rules;
mod zones;

use std::collections::VecDeque;

use prism_base::{Bytes, SimTime, Slab};
use prism_engine::{Cleaning, CleaningMode, Controller, Done};
use prism_ftl::{Frontiers, Ftl, FtlConfig, PageConfig, VictimPolicy};
use prism_nand::{BlockId, Cause, DieGroupId, Geometry};
use prism_ssd::{
    Drive, DriveSpec, DriveSpecError, HostCounts, InitialState, ReadOnly, ZoneShape, ZoneState, fit,
};

pub use counts::HostFtlCounts;
use requests::Slot;
pub use zone_rules::ZoneRuleCheck;
use zones::{Content, ZoneFlash, geometry};

/// Cleaning begins below this many empty zones. One more zone is being written by the host and one
/// by the cleaner.
const EMPTY_LOW: u32 = 2;
/// Zones that do not hold data when all units are written: open ones and those kept empty.
const RESERVED: u32 = EMPTY_LOW + 1;

/// Default effective over-provisioning: chosen, about that of common drives.
const SPARE: f64 = 0.1;

/// The die group of all zones.
const ZONES: DieGroupId = DieGroupId(0);

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

/// An FTL in the host on a zoned drive.
#[derive(Debug)]
pub struct HostFtl {
    controller: Controller<ZoneFlash>,
    unit: u64,
    slots: Slab<Slot>,
    /// Requests with units to write, in FCFS order.
    writing: VecDeque<u32>,
    /// Requests that complete without commands to the drive.
    ready: VecDeque<u32>,
    /// The version of the next write or trim.
    version: u64,
    read_only: Option<ReadOnly>,
    counts: HostCounts,
    /// Units written and read for requests, and discarded; the other counts are the controller's.
    written: u64,
    completed: u64,
    discarded: u64,
    last_change: SimTime,
    done: Vec<Done>,
    /// Buffers of requests in flight, and of completed ones until the caller takes them.
    buffers: Vec<(u64, Vec<u8>)>,
    returned: VecDeque<(u64, Vec<u8>)>,
}

/// Additional zones kept empty because zones may fail.
fn kept_for_failures(device: &DriveSpec) -> u32 {
    u32::from(device.faults.is_some())
}

/// Page-level mapping of `units` units over zones.
fn config(units: u32, kept: u32) -> PageConfig {
    PageConfig {
        free_blocks_low: EMPTY_LOW + kept,
        free_blocks_high: EMPTY_LOW + kept,
        reserve_blocks: 1 + kept,
        ..PageConfig::simple(units, VictimPolicy::Greedy, Frontiers::Separate)
    }
}

/// The most units over `zones` zones, `bad` of which cannot be used.
fn most_units(shape: &ZoneShape, zones: u32, bad: u32, kept: u32) -> u64 {
    config(1, kept).most_units_of_one(&geometry(shape, zones), bad)
}

/// Zones that hold `units` units with the default over-provisioning.
fn zones_for(shape: &ZoneShape, units: u64, kept: u32) -> u32 {
    let bytes = (units * shape.block) as f64 * (1.0 + SPARE);
    let enough = (bytes / shape.capacity as f64).ceil() as u32 + RESERVED + kept;
    // Few zones have to keep more than that empty, in proportion.
    (enough..).find(|&zones| most_units(shape, zones, 0, kept) >= units).unwrap_or(enough)
}

impl HostFtl {
    /// Zones that do not count as spare: open ones and those kept empty.
    pub const RESERVED_ZONES: u64 = RESERVED as u64;

    /// A host FTL with a capacity of `bytes` on `drive`, whose zones are full or empty. Data in
    /// them counts as the first logical units in order.
    ///
    /// # Errors
    /// [`HostFtlError`] if the drive does not allow it.
    pub fn new(drive: Drive, bytes: u64) -> Result<Self, HostFtlError> {
        Self::over(drive, bytes, u32::MAX)
    }

    /// As [`HostFtl::new`], but uses only as many zones as give an over-provisioning of at
    /// least a tenth:
    /// even the smallest drive may be much larger than `bytes`.
    ///
    /// # Errors
    /// The same.
    pub fn fitted(drive: Drive, bytes: u64) -> Result<Self, HostFtlError> {
        let shape = drive.device().zone_shape().ok_or(HostFtlError::NoZones)?;
        let kept = kept_for_failures(drive.device());
        let zones = zones_for(&shape, bytes.div_ceil(shape.block), kept);
        Self::over(drive, bytes, zones)
    }

    /// A host FTL on the first `own` zones, or all if there are fewer. On a drive with faults,
    /// the other zones replace those that fail.
    fn over(drive: Drive, bytes: u64, own: u32) -> Result<Self, HostFtlError> {
        let shape = drive.device().zone_shape().ok_or(HostFtlError::NoZones)?;
        let kept = kept_for_failures(drive.device());
        let zones = if kept > 0 { shape.count } else { own.min(shape.count) };
        if (1..2).contains(&shape.max_active) || (1..2).contains(&shape.max_open) {
            return Err(HostFtlError::TooFewActive(1));
        }
        let units = bytes.div_ceil(shape.block);
        let most = most_units(&shape, zones, 0, kept);
        if units > most {
            return Err(HostFtlError::TooSmall { units, most });
        }
        let geometry = geometry(&shape, zones);
        let (content, spare) = Self::scan(&drive, geometry.clone(), units as u32, own)?;
        let bad = content.zones.iter().filter(|zone| zone.2).count() + spare.len();
        let most = most_units(&shape, zones, bad as u32, kept);
        let small = HostFtlError::TooSmall { units, most };
        let config = FtlConfig::Page(config(units as u32, kept));
        let (mut ftl, found) =
            Ftl::recover(&mut { content }, config, 0, &[]).map_err(|_| small.clone())?;
        ftl.page_mut().keep_spare(spare).map_err(|_| small.clone())?;
        if ftl.is_read_only() {
            return Err(small);
        }
        let (unit, last_change) = (shape.block, drive.now());
        let flash = ZoneFlash::new(drive, geometry, shape.size, units as u32);
        let cleaning = Cleaning {
            mode: CleaningMode::Foreground,
            free_blocks_critical: 0,
            free_blocks_idle: 0,
        };
        Ok(Self {
            controller: Controller::at_rest(flash, ftl, cleaning),
            unit,
            slots: Slab::new(),
            writing: VecDeque::new(),
            ready: VecDeque::new(),
            version: found.newest_version + 1,
            read_only: None,
            counts: HostCounts::default(),
            written: 0,
            completed: 0,
            discarded: 0,
            last_change,
            done: Vec::new(),
            buffers: Vec::new(),
            returned: VecDeque::new(),
        })
    }

    /// The content of all zones, and the empty zones beyond the first `own` good zones, which are
    /// spare.
    fn scan(
        drive: &Drive,
        geometry: Geometry,
        logical_units: u32,
        own: u32,
    ) -> Result<(Content, Vec<BlockId>), HostFtlError> {
        let (mut zones, mut spare, mut lpn, mut good) = (Vec::new(), Vec::new(), 0, 0);
        let report = drive.zones().ok_or(HostFtlError::NoZones)?.report();
        for info in report.take(geometry.blocks() as usize) {
            let written = ((info.write_pointer - info.start) / geometry.unit.0) as u32;
            let (held, failed) = match info.state {
                ZoneState::Empty => (0, false),
                ZoneState::Full => (written, false),
                ZoneState::ReadOnly => (written, true),
                ZoneState::Offline => (0, true),
                _ => return Err(HostFtlError::State),
            };
            if info.state == ZoneState::Empty && good >= own {
                spare.push(BlockId(info.zone));
            } else {
                good += u32::from(!failed);
            }
            zones.push((held, lpn, failed));
            lpn += held;
        }
        Ok((Content { geometry, logical_units, zones }, spare))
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
    /// `bytes` and an over-provisioning of at least a tenth.
    ///
    /// # Errors
    /// [`DriveSpecError`] if there is no such drive.
    pub fn addresses_for(device: &DriveSpec, bytes: u64) -> Result<u64, DriveSpecError> {
        let mut addresses = bytes.max(1);
        loop {
            let fitted = fit(device, Bytes(addresses))?.device;
            let Some(shape) = fitted.zone_shape() else { return Ok(bytes) };
            addresses = fitted.capacity().0;
            let units = bytes.div_ceil(shape.block);
            if shape.count >= zones_for(&shape, units, kept_for_failures(device)) {
                return Ok(addresses);
            }
            addresses += shape.size + addresses / 64;
        }
    }

    /// Returns the drive.
    #[must_use]
    pub fn into_drive(self) -> Drive {
        self.controller.into_device().drive
    }

    /// Counts of work done.
    #[must_use]
    pub fn counts(&self) -> HostFtlCounts {
        let flash = self.controller.counts();
        HostFtlCounts {
            written: self.written,
            copied: flash.units[Cause::Gc] + flash.units[Cause::Retire],
            cleaned: flash.erases.total(),
            completed: self.completed,
            discarded: self.discarded,
            rewritten: flash.units[Cause::Host] - self.written,
            evacuated: flash.units[Cause::Retire],
            lost: flash.faults.lost_units,
        }
    }

    /// The byte offset on the drive of logical unit `lpn`; `None` if it is unmapped.
    #[must_use]
    pub fn lookup(&self, lpn: u32) -> Option<u64> {
        self.controller.ftl().lookup(lpn).map(|at| self.flash().offset_of(at))
    }

    /// Logical units.
    #[must_use]
    pub fn units(&self) -> u64 {
        u64::from(self.controller.ftl().logical_units())
    }

    /// Effective over-provisioning: units of all zones except failed, spare, open and reserved
    /// ones, over the logical units, minus 1.
    #[must_use]
    pub fn over_provisioning(&self) -> f64 {
        let kept = kept_for_failures(self.flash().drive.device());
        let zones = self.good_zones().saturating_sub(RESERVED + kept);
        (u64::from(zones) * self.zone_units()) as f64 / self.units() as f64 - 1.0
    }

    fn flash(&self) -> &ZoneFlash {
        self.controller.device()
    }

    /// The time that the drive has reached.
    fn time(&self) -> SimTime {
        self.flash().drive.now()
    }

    fn zone_units(&self) -> u64 {
        u64::from(self.controller.ftl().layout().units_per_block())
    }

    /// Zones in use that have not failed.
    fn good_zones(&self) -> u32 {
        let bad = self.controller.ftl().page().map_or(0, |map| map.bad_blocks());
        self.controller.ftl().geometry().blocks() - bad
    }

    /// Adds the time since the last change to the integral of the requests in flight.
    fn account(&mut self) {
        let now = self.time();
        let span = now.since(self.last_change);
        self.counts.in_flight_ns += u128::from(span.0) * self.slots.in_use() as u128;
        self.last_change = now;
    }

    fn next_at(&self) -> Option<SimTime> {
        if self.ready.is_empty() { self.controller.next_event() } else { Some(self.time()) }
    }
}
