//! A log over a drive that ages: zones that can only be read, zones that are lost, and the end.
//!
//! A write whose zone fails before it is taken is made again elsewhere: the host still has its
//! data. What stands in a zone that can only be read is moved away when enough other zones are
//! empty, as such a zone may be lost next. Where the zones that are left could not be cleaned any
//! more, the log takes no more writes, before that happens: reads go on.

use std::ops::Range;

use prism_base::Bytes;
use prism_ssd::{Completion, Cost, HostOp, ReadOnly, Request, Status, ZoneState};

use super::{HostFtl, KEPT, Place, Use};

impl HostFtl {
    /// Zones that can be written.
    pub(super) fn sound_zones(&self) -> u32 {
        let sound = |zone: &&super::Zone| !matches!(zone.used, Use::Failed | Use::Gone);
        self.zones.iter().filter(sound).count() as u32
    }

    /// The most units of a log over the zones that are left.
    pub(super) fn most_units_now(&self) -> u64 {
        let kept = KEPT + self.spare_zones;
        Self::units_of(self.sound_zones().saturating_sub(kept), self.zone_units)
    }

    /// The places that a command of the log goes to.
    pub(super) fn places_of(&self, done: &Completion) -> Range<Place> {
        let zone = (done.offset / self.zone_size) as u32;
        let first = zone * self.zone_units + (done.offset % self.zone_size / self.unit) as u32;
        first..first + (done.len / self.unit) as u32
    }

    /// The drive has refused `request`, because its zone has failed.
    pub(super) fn bounce(&mut self, request: Request) {
        let now = self.drive.now();
        let reads = request.op == HostOp::Read;
        self.refused.push_back(Completion {
            tag: request.tag,
            op: request.op,
            offset: request.offset,
            len: request.len,
            submitted: now,
            completed: now,
            status: if reads { Status::Unreadable } else { Status::WriteFault },
            cost: Cost::default(),
        });
    }

    /// Learns of zones that have failed.
    pub(super) fn notice_failures(&mut self) {
        let mut any = false;
        while let Some(zone) = self.drive.take_failed_zone() {
            let Some(known) = self.zones.get_mut(zone as usize) else { continue };
            let state = self.drive.zone_info(zone).map(|info| info.state);
            let was_used = known.used != Use::Comparison;
            known.used = if state == Some(ZoneState::Offline) { Use::Gone } else { Use::Failed };
            self.empty.retain(|&empty| empty != zone);
            self.host_zone = self.host_zone.filter(|&open| open != zone);
            self.cleaner.to = self.cleaner.to.filter(|&open| open != zone);
            any = true;
            if was_used {
                self.take_one_beside();
            }
        }
        if any && self.map.len() as u64 > self.most_units_now() {
            self.end_writing();
        }
        if any {
            self.clean();
        }
    }

    /// A zone that was not used so far makes up for one that has failed.
    fn take_one_beside(&mut self) {
        let beside = self.zones.iter().position(|zone| zone.used == Use::Comparison);
        if let Some(zone) = beside {
            self.zones[zone].used = Use::Empty;
            self.empty.push_back(zone as u32);
        }
    }

    /// A write of `slot` has failed with its zone. It is made again, unless nothing is written
    /// any more.
    pub(super) fn write_failed(&mut self, slot: u32, done: &Completion) {
        let places = self.places_of(done);
        self.failed_units += done.len / self.unit;
        // What comes behind it in the zone is not there either.
        let zone = (places.start / self.zone_units) as usize;
        self.zones[zone].next = self.zones[zone].next.min(places.start % self.zone_units);
        if done.status == Status::ReadOnly {
            self.end_writing();
        }
        if self.read_only.is_some() {
            self.slots[slot].status = Status::ReadOnly;
            self.forget(places);
            return;
        }
        let state = &mut self.slots[slot];
        state.again.push_back(places);
        if !state.queued {
            state.queued = true;
            self.writing.push_back(slot);
        }
    }

    /// Units whose writes have failed for good are not there: nothing was promised of them.
    fn forget(&mut self, places: Range<Place>) {
        for place in places {
            if let Some(lpn) = self.valid_at(place) {
                self.unset(lpn);
                self.lost.insert(lpn);
            }
        }
    }

    /// From now on the log takes no more writes: those that wait are refused.
    pub(super) fn end_writing(&mut self) {
        if self.read_only.is_some() {
            return;
        }
        let (since, written) = (self.drive.now(), Bytes(self.counts.bytes_written));
        self.read_only = Some(ReadOnly { since, written });
        self.refuse_waiting();
    }

    /// Writes that wait are refused.
    pub(super) fn refuse_waiting(&mut self) {
        for slot in std::mem::take(&mut self.writing) {
            self.slots[slot].left.clear();
            self.slots[slot].queued = false;
            self.slots[slot].status = Status::ReadOnly;
            for places in std::mem::take(&mut self.slots[slot].again) {
                self.forget(places);
            }
            if self.slots[slot].parts == 0 {
                self.ready.push_back(slot);
            }
        }
    }

    /// `lpn` stands at `place` now, which changes nothing of its content.
    pub(super) fn set_again(&mut self, lpn: u32, place: Place) {
        let lost = self.lost.contains(&lpn);
        self.set(lpn, place);
        if lost {
            self.lost.insert(lpn);
        }
    }
}
