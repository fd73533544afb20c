//! Zoned drives: finish and reset of zones, and zones that fail.
//!
//! A zone whose flash has failed becomes read only: commands on it that are in flight end with
//! [`Status::WriteFault`], and acknowledged data goes to a relocation block. If there are fewer
//! good blocks than zones, empty zones go offline.
//!
//! Units of a zone enter the buffer in order of address and leave it in full program units, because
//! a zone can only be padded at its end. The buffer is durable, so that flushes need nothing on
//! flash.

use std::collections::VecDeque;

use prism_base::{Slab, snapshot_fields};
use prism_ftl::{UnitWrite, Zoned};
use prism_nand::DieGroupId;

use super::Drive;
use super::slots::Slot;
use crate::spec::DriveSpec;
use crate::zones::{ZoneFault, ZoneInfo, ZoneState, Zones};
use prism_engine::block::{Completion, HostOp, Request, Status, SubmitError};

/// Program units of padding per die of a zone that may be queued or in progress at once, so that
/// programs of the host can be interleaved.
const PAD_PROGRAM_UNITS: u32 = 2;

/// The zones of a drive, and unfinished work on them.
#[derive(Debug)]
pub(crate) struct ZoneWork {
    pub(crate) zones: Zones,
    endings: VecDeque<Ending>,
    /// Failed zones that [`Drive::take_failed_zone`] has not returned yet.
    failed: VecDeque<u32>,
}

snapshot_fields!(ZoneWork { parts: zones; values: failed; });

/// Why program units of a zone leave the buffer before they are full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// The buffered units are programmed and the rest of the zone is padded; with the slot of the
    /// command, unless power was lost since.
    Finish(u32, Option<u32>),
    /// The buffered units of a zone that has become read only are programmed.
    Drain(u32),
    /// The zone is offline: its buffered units are dropped.
    Lose(u32),
}

impl Ending {
    fn zone(self) -> u32 {
        match self {
            Self::Finish(zone, _) | Self::Drain(zone) | Self::Lose(zone) => zone,
        }
    }
}

impl ZoneWork {
    /// The state for `device` with the data in `map`; `None` if the drive is not zoned.
    pub(crate) fn new(device: &DriveSpec, map: Option<&Zoned>) -> Option<Box<Self>> {
        let (shape, map) = (device.zone_shape()?, map?);
        let written =
            |zone: u32| (!map.is_padded(zone)).then(|| u64::from(map.written(zone)) * shape.block);
        Some(Box::new(Self::over(Zones::new(shape, written))))
    }

    fn over(zones: Zones) -> Self {
        Self { zones, endings: VecDeque::new(), failed: VecDeque::new() }
    }

    /// Whether no work on zones is left and no command on a zone is in flight.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.endings.is_empty() && self.zones.is_at_rest()
    }

    /// That what was loaded does not contradict itself.
    pub(crate) fn check(&mut self) -> Result<(), &'static str> {
        let count = self.zones.shape().count;
        if self.failed.iter().any(|&zone| zone >= count) {
            return Err("a zone has failed that there is not");
        }
        self.zones.check()
    }

    /// Marks `zone` as failed. Returns the command that was finishing it.
    fn fail(&mut self, zone: u32, fault: ZoneFault) -> Option<u32> {
        self.zones.fail(zone, fault);
        self.failed.push_back(zone);
        let finishing = self.endings.iter().find_map(|ending| match *ending {
            Ending::Finish(of, slot) if of == zone => slot,
            _ => None,
        });
        self.endings.retain(|ending| ending.zone() != zone);
        self.endings.push_back(match fault {
            ZoneFault::ReadOnly => Ending::Drain(zone),
            ZoneFault::Offline => Ending::Lose(zone),
        });
        finishing
    }
}

impl Drive {
    /// The zones; `None` if the drive is not zoned.
    #[must_use]
    pub fn zones(&self) -> Option<&Zones> {
        self.zones.as_ref().map(|work| &work.zones)
    }

    /// The entry of `zone` in the zone report; `None` if there is no such zone.
    #[must_use]
    pub fn zone_info(&self, zone: u32) -> Option<ZoneInfo> {
        let zones = self.zones()?;
        (zone < zones.shape().count).then(|| zones.info(zone))
    }

    /// Checks and accepts a command of a zoned drive.
    #[inline(never)]
    pub(super) fn take_zoned(&mut self, mut request: Request) -> Result<Request, SubmitError> {
        let op = request.op.name();
        let work = self.zones.as_mut().ok_or(SubmitError::NoZones { op })?;
        work.zones.take(&mut request)?;
        Ok(request)
    }

    /// Makes `zone` fail. Commands on it in flight complete normally; its buffered units are
    /// programmed if the zone can still be read, and are lost otherwise. Returns whether the drive
    /// has such a zone.
    pub fn zone_failed(&mut self, zone: u32, fault: ZoneFault, out: &mut Vec<Completion>) -> bool {
        let Some(work) = &mut self.zones else { return false };
        if zone >= work.zones.shape().count {
            return false;
        }
        work.zones.fail(zone, fault);
        work.failed.push_back(zone);
        work.endings.push_back(match fault {
            ZoneFault::ReadOnly => Ending::Drain(zone),
            ZoneFault::Offline => Ending::Lose(zone),
        });
        self.pump(out);
        true
    }

    /// Returns a zone that has become read only or offline, once for each change. A controller
    /// reports this to the host with a zone descriptor changed event.
    pub fn take_failed_zone(&mut self) -> Option<u32> {
        self.zones.as_mut()?.failed.pop_front()
    }

    /// Changes the states of zones whose flash has failed. Returns whether there were any.
    pub(crate) fn zones_fail(&mut self, out: &mut Vec<Completion>) -> bool {
        if self.zones.is_none() || !self.engine.has_faults() {
            return false;
        }
        let mut any = false;
        while let Some(zone) = self.engine.ftl_mut().zoned_mut().and_then(Zoned::take_broken) {
            self.zone_breaks(zone, ZoneFault::ReadOnly, out);
            any = true;
        }
        while let Some((zone, fault)) = self.zone_to_give_up() {
            self.zone_breaks(zone, fault, out);
            any = true;
        }
        // The last zone has failed, and its data has been relocated.
        let ended = self.engine.ftl().zoned().is_some_and(|map| map.sound_zones() == 0);
        if ended && self.buffer.used() == 0 {
            self.engine.ftl_mut().set_read_only();
        }
        any
    }

    /// Chooses a zone to fail if there are fewer good blocks than zones: an empty zone goes
    /// offline, or else one whose data is all in the buffer becomes read only. If there is none
    /// either, every zone has a block, and the next zone to be reset goes offline.
    fn zone_to_give_up(&mut self) -> Option<(u32, ZoneFault)> {
        let zones = &self.zones.as_ref()?.zones;
        let map = self.engine.ftl_mut().zoned_mut()?;
        if map.shortage() == 0 {
            return None;
        }
        if let Some(zone) = map.zone_to_give_up(|zone| zones.is_idle_and_empty(zone)) {
            map.zone_failed(zone);
            return Some((zone, ZoneFault::Offline));
        }
        let zone = map.zone_to_give_up(|_| true)?;
        map.break_zone(zone);
        map.take_broken();
        Some((zone, ZoneFault::ReadOnly))
    }

    /// Marks `zone` as failed, with the writes to it that wait for the buffer and a finish in
    /// progress.
    fn zone_breaks(&mut self, zone: u32, fault: ZoneFault, out: &mut Vec<Completion>) {
        let Some(work) = &mut self.zones else { return };
        let finishing = work.fail(zone, fault);
        let of_zone =
            |slots: &Slab<Slot>, slot: u32| work.zones.zone_of(slots[slot].request.offset) == zone;
        let slots = &self.slots;
        let waiting = self.waiting_for_buffer.iter().copied();
        let failing: Vec<u32> = waiting.filter(|&slot| of_zone(slots, slot)).collect();
        self.waiting_for_buffer.retain(|slot| !failing.contains(slot));
        for slot in failing.into_iter().chain(finishing) {
            self.slots[slot].status = Status::WriteFault;
            self.finish(slot, out);
        }
    }

    /// Whether the zone of a write or a zone management command has failed since it was submitted.
    pub(super) fn targets_failed_zone(&self, request: &Request) -> bool {
        let changes = request.op.is_write() || request.op.manages_zone();
        let failed = |zones: &Zones| zones.has_failed(zones.zone_of(request.offset));
        changes && self.engine.has_faults() && self.zones().is_some_and(failed)
    }

    /// Performs a zone management command.
    pub(super) fn manage_zone(&mut self, slot: u32, out: &mut Vec<Completion>) {
        let request = self.slots[slot].request;
        let Some(work) = &mut self.zones else { return };
        let zone = work.zones.zone_of(request.offset);
        match request.op {
            HostOp::ZoneFinish if work.zones.info(zone).state != ZoneState::Full => {
                work.endings.push_back(Ending::Finish(zone, Some(slot)));
                return;
            }
            HostOp::ZoneReset => {
                // A finish that continues after a loss of power has no command to complete.
                work.endings.retain(|ending| ending.zone() != zone);
                self.empty_zone(zone, Zoned::reset);
            }
            _ => {}
        }
        self.finish(slot, out);
        // There may be no good block for one more empty zone.
        self.zones_fail(out);
    }

    /// Drops the buffered units of `zone`, and calls `then` for the map.
    fn empty_zone(&mut self, zone: u32, then: fn(&mut Zoned, u32)) {
        let Some(map) = self.engine.ftl_mut().zoned_mut() else { return };
        let units = map.config().zone_units;
        then(map, zone);
        let waiting = self.buffer.trim(zone * units, (zone + 1) * units);
        debug_assert!(
            waiting.waiters.is_empty(),
            "the buffer is durable: no request waits for a unit"
        );
        self.engine.look_for_garbage(self.now);
    }

    /// Continues the work on zones. Returns whether any of it is done.
    #[inline(never)]
    pub(super) fn end_zones(&mut self, out: &mut Vec<Completion>) -> bool {
        let Some(work) = &mut self.zones else { return false };
        if work.endings.is_empty() {
            return false;
        }
        let (mut left, mut ended) = (VecDeque::new(), Vec::new());
        for ending in std::mem::take(&mut work.endings) {
            if self.advance_ending(ending) { ended.push(ending) } else { left.push_back(ending) }
        }
        if let Some(work) = &mut self.zones {
            work.endings = left;
        }
        for ending in &ended {
            if let Ending::Finish(_, Some(slot)) = *ending {
                self.finish(slot, out);
            }
        }
        !ended.is_empty()
    }

    /// Continues `ending` as far as possible. Returns whether it is done.
    fn advance_ending(&mut self, ending: Ending) -> bool {
        let zone = ending.zone();
        if self.zones.as_ref().is_some_and(|work| work.zones.writes_in_flight(zone) > 0) {
            return false;
        }
        let lost = self.zone_info(zone).is_some_and(|info| info.state == ZoneState::Offline);
        match ending {
            Ending::Finish(..) | Ending::Drain(_) if lost => true,
            Ending::Lose(zone) => {
                self.empty_zone(zone, Zoned::zone_failed);
                true
            }
            Ending::Drain(zone) => self.drain_zone(zone),
            Ending::Finish(zone, _) => self.drain_zone(zone) && self.pad_zone(zone),
        }
    }

    /// Programs the buffered units of `zone`. Returns whether no dirty one is left.
    fn drain_zone(&mut self, zone: u32) -> bool {
        while self.buffer.has_dirty(zone) {
            let Some(die_group) = self.die_group_for(zone) else { return false };
            self.write_program_unit(zone, die_group);
        }
        true
    }

    /// Pads `zone` to its end. Returns whether all of the zone is on flash.
    fn pad_zone(&mut self, zone: u32) -> bool {
        let dies = self.engine.nand().geometry().dies_per_superblock;
        let may = |map: &Zoned| {
            map.has_program_units(zone)
                && map.program_units_in_flight(zone) < PAD_PROGRAM_UNITS * dies
        };
        while self.engine.ftl().zoned().is_some_and(may) {
            let Some(die_group) = self.die_group_for(zone) else { return false };
            self.engine.pad(die_group, zone, self.now);
        }
        let through =
            |map: &Zoned| !map.has_program_units(zone) && map.program_units_in_flight(zone) == 0;
        self.engine.ftl().zoned().is_some_and(through)
    }

    /// The die group for the next program unit of `zone`, if it can take one now.
    fn die_group_for(&mut self, zone: u32) -> Option<DieGroupId> {
        // The zone determines the first unit of the program unit.
        self.engine.writable_die_group(zone, UnitWrite::PAD, self.now)
    }

    /// Restores the zones after a loss of power from flash and the saved buffer, and continues
    /// unfinished work. `before` are the zones at the loss of power.
    pub(crate) fn restore_zones(&mut self, before: &Zones) {
        let Some(map) = self.engine.ftl().zoned() else { return };
        let (shape, units) = (*before.shape(), map.config().zone_units);
        let capacity = (shape.capacity / shape.block) as u32;
        let is_there = |lpn: u32| self.buffer.find(lpn).is_some() || map.lookup(lpn).is_some();
        let written = |zone: u32| {
            if map.is_padded(zone) {
                return None;
            }
            let first = zone * units;
            let known = map.written(zone);
            let end = (known..capacity).find(|&unit| !is_there(first + unit));
            Some(u64::from(end.unwrap_or(capacity)) * shape.block)
        };
        let mut zones = Zones::new(shape, written);
        let mut endings = VecDeque::new();
        for info in before.report() {
            let zone = info.zone;
            match info.state {
                ZoneState::Offline => {
                    zones.fail(zone, ZoneFault::Offline);
                    endings.push_back(Ending::Lose(zone));
                }
                state if state == ZoneState::ReadOnly || map.is_broken(zone) => {
                    zones.fail(zone, ZoneFault::ReadOnly);
                    endings.push_back(Ending::Drain(zone));
                }
                _ if map.is_padded(zone) => endings.push_back(Ending::Finish(zone, None)),
                _ => {}
            }
        }
        self.zones = Some(Box::new(ZoneWork { endings, ..ZoneWork::over(zones) }));
        self.zones_fail(&mut Vec::new());
        self.pump(&mut Vec::new());
    }
}
