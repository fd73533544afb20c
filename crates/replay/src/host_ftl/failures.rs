//! Zone failures: read-only and offline zones, and the end of writing.
//!
//! A write that fails with its zone is repeated in another zone, since the host still has the data.
//! The data of a read-only zone, which may go offline next, is moved away when enough other zones
//! are empty. Before so few good zones are left that they cannot be cleaned, the host FTL becomes
//! read-only.

use std::ops::Range;

use prism_base::Bytes;
use prism_ssd::{Completion, ReadOnly, Request, Status, ZoneState};

use super::{HostFtl, Pun, RESERVED, ZoneUse};

impl HostFtl {
    /// Number of zones that can be written.
    pub(super) fn good_zones(&self) -> u32 {
        let good = |zone: &&super::Zone| !matches!(zone.used, ZoneUse::Failed | ZoneUse::Gone);
        self.zones.iter().filter(good).count() as u32
    }

    /// The most logical units with the zones that are left.
    pub(super) fn max_units_now(&self) -> u64 {
        let kept = RESERVED + self.spare_zones;
        Self::units_of(self.good_zones().saturating_sub(kept), self.zone_units)
    }

    /// The physical units of a command.
    pub(super) fn puns_of(&self, done: &Completion) -> Range<Pun> {
        let zone = (done.offset / self.zone_size) as u32;
        let first = zone * self.zone_units + (done.offset % self.zone_size / self.unit) as u32;
        first..first + (done.len / self.unit) as u32
    }

    /// Queues a failed completion for `request`, which the drive refused because its zone has
    /// failed.
    pub(super) fn refuse_command(&mut self, request: Request) {
        self.refused.push_back(Completion::refused(&request, self.drive.now()));
    }

    /// Processes the zones that have failed since the last call.
    pub(super) fn notice_failures(&mut self) {
        let mut any = false;
        while let Some(zone) = self.drive.take_failed_zone() {
            let Some(known) = self.zones.get_mut(zone as usize) else { continue };
            let state = self.drive.zone_info(zone).map(|info| info.state);
            let was_used = known.used != ZoneUse::Spare;
            known.used =
                if state == Some(ZoneState::Offline) { ZoneUse::Gone } else { ZoneUse::Failed };
            self.empty.retain(|&empty| empty != zone);
            self.host_zone = self.host_zone.filter(|&open| open != zone);
            self.cleaner.to = self.cleaner.to.filter(|&open| open != zone);
            any = true;
            if was_used {
                self.use_spare_zone();
            }
        }
        if any && self.map.len() as u64 > self.max_units_now() {
            self.end_writing();
        }
        if any {
            self.clean();
        }
    }

    /// Replaces a failed zone by a spare one.
    fn use_spare_zone(&mut self) {
        let spare = self.zones.iter().position(|zone| zone.used == ZoneUse::Spare);
        if let Some(zone) = spare {
            self.zones[zone].used = ZoneUse::Empty;
            self.empty.push_back(zone as u32);
        }
    }

    /// Repeats a write of `slot` that has failed with its zone, unless the host FTL is read-only.
    pub(super) fn write_failed(&mut self, slot: u32, done: &Completion) {
        let puns = self.puns_of(done);
        self.failed_units += done.len / self.unit;
        // Later units of the zone are not written either.
        let zone = (puns.start / self.zone_units) as usize;
        self.zones[zone].next = self.zones[zone].next.min(puns.start % self.zone_units);
        if done.status == Status::ReadOnly {
            self.end_writing();
        }
        if self.read_only.is_some() {
            self.slots[slot].status = Status::ReadOnly;
            self.forget(puns);
            return;
        }
        let state = &mut self.slots[slot];
        state.to_rewrite.push_back(puns);
        if !state.queued {
            state.queued = true;
            self.writing.push_back(slot);
        }
    }

    /// Marks units whose writes have finally failed as lost; these writes were never acknowledged.
    fn forget(&mut self, puns: Range<Pun>) {
        for pun in puns {
            if let Some(lpn) = self.valid_at(pun) {
                self.unset(lpn);
                self.lost.insert(lpn);
            }
        }
    }

    /// Makes the host FTL read-only and refuses waiting writes.
    pub(super) fn end_writing(&mut self) {
        if self.read_only.is_some() {
            return;
        }
        let (since, written) = (self.drive.now(), Bytes(self.counts.bytes_written));
        self.read_only = Some(ReadOnly { since, written });
        self.refuse_waiting();
    }

    /// Refuses waiting writes.
    pub(super) fn refuse_waiting(&mut self) {
        for slot in std::mem::take(&mut self.writing) {
            self.slots[slot].left.clear();
            self.slots[slot].queued = false;
            self.slots[slot].status = Status::ReadOnly;
            for puns in std::mem::take(&mut self.slots[slot].to_rewrite) {
                self.forget(puns);
            }
            if self.slots[slot].parts == 0 {
                self.ready.push_back(slot);
            }
        }
    }

    /// Maps `lpn` to `pun` without changing whether its content is lost.
    pub(super) fn remap(&mut self, lpn: u32, pun: Pun) {
        let lost = self.lost.contains(&lpn);
        self.set(lpn, pun);
        if lost {
            self.lost.insert(lpn);
        }
    }
}
