//! A drive that ages: what is left of it, and the end of writing.

use prism_base::{Bytes, Nanos, SimTime};
use prism_nand::Health;

use super::Drive;
use crate::request::{Completion, HostOp, Status};
use crate::spec::WriteCache;
use crate::zones::ZoneState;

/// How long a refusal takes beside firmware, so that a host that asks again at once gets
/// somewhere in time.
const REFUSAL: Nanos = Nanos(1_000);

/// Since when a drive writes no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOnly {
    /// Simulated time.
    pub since: SimTime,
    /// What the host had written by then, without the preparation of the drive.
    pub written: Bytes,
}

/// What age has left of SLC blocks beside others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlcHealth {
    /// Bad blocks by what made them bad. Superblocks count once.
    pub bad: Health,
    /// Blocks of the die group with fewest that may still fail before none of the die group is
    /// written any more, or the drive writes no more where they hold addresses of their own.
    pub spare_blocks: u32,
    /// Such blocks of a die group.
    pub die_group_blocks: u32,
}

/// What age has left of the zones of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneHealth {
    /// Zones that can only be read.
    pub read_only: u32,
    /// Zones that are lost to the host.
    pub offline: u32,
    /// Zones there are.
    pub count: u32,
    /// Data of zones that had no room for it any more and stands elsewhere.
    pub relocated: Bytes,
}

/// What age has left of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveHealth {
    /// Bad blocks of every kind by what made them bad. Superblocks count once.
    pub bad: Health,
    /// Those of SLC, where a drive has them beside others.
    pub slc: Option<SlcHealth>,
    /// What has become of its zones, where it has some.
    pub zones: Option<ZoneHealth>,
    /// Flash that grew bad.
    pub retired: Bytes,
    /// Blocks of the die group with the least spare that may still fail before the drive writes no
    /// more; of mappings by block, blocks of all die groups; of ranges, those of the range with the
    /// least; of a zoned drive, blocks of all die groups, before a zone goes offline.
    pub spare_blocks: u32,
    /// Blocks of a die group, those of SLC apart.
    pub die_group_blocks: u32,
    /// Since when the drive writes no more.
    pub read_only: Option<ReadOnly>,
}

impl Drive {
    /// What age has left of the drive; `None` if it does not age.
    #[must_use]
    pub fn health(&self) -> Option<DriveHealth> {
        let nand = self.engine.nand();
        if !nand.has_faults() {
            return None;
        }
        let geometry = nand.geometry();
        let (bad, of_slc) = (nand.health(), nand.slc_health());
        let grown = |bad: Health| u64::from(bad.failed_programs + bad.failed_erases);
        let others = grown(bad) - grown(of_slc);
        let units = u64::from(geometry.units_per_block()) * others
            + u64::from(geometry.slc_program_units_per_block() * geometry.units_per_program_unit())
                * grown(of_slc);
        let slc = self.engine.ftl().slc_spare_blocks().map(|spare_blocks| SlcHealth {
            bad: of_slc,
            spare_blocks,
            die_group_blocks: geometry.slc_blocks_per_die_group(),
        });
        Some(DriveHealth {
            bad,
            slc,
            zones: self.zone_health(),
            retired: Bytes(units * geometry.unit.0),
            spare_blocks: self.engine.ftl().spare_blocks(),
            die_group_blocks: geometry.main_blocks_per_die_group(),
            read_only: self.read_only(),
        })
    }

    fn zone_health(&self) -> Option<ZoneHealth> {
        let (zones, map) = (self.zones()?, self.engine.ftl().zoned()?);
        Some(ZoneHealth {
            read_only: zones.count(ZoneState::ReadOnly),
            offline: zones.count(ZoneState::Offline),
            count: zones.shape().count,
            relocated: Bytes(map.relocated_units() * self.unit),
        })
    }

    /// Since when the drive writes no more.
    #[must_use]
    pub fn read_only(&self) -> Option<ReadOnly> {
        let now = ReadOnly { since: self.now, written: Bytes(self.counts.bytes_written) };
        self.read_only.or_else(|| self.engine.is_read_only().then_some(now))
    }

    /// Whether the content of `lpn` is known to be lost: reads of it fail until it is written
    /// or trimmed.
    #[must_use]
    pub fn is_lost(&self, lpn: u32) -> bool {
        match self.buffer.find(lpn) {
            Some(place) => self.buffer.entry(place).lost,
            None => {
                let at = self.engine.ftl().lookup(lpn);
                at.is_some_and(|at| self.engine.nand().is_marked_lost(at))
            }
        }
    }

    /// From now on nothing is written: whoever waits for that is refused.
    pub(super) fn become_read_only(&mut self, out: &mut Vec<Completion>) {
        self.read_only = self.read_only();
        let mut waiting: Vec<u32> = self.waiting_for_buffer.drain(..).collect();
        waiting.extend(self.waiting_for_flush.drain(..).map(|waiter| waiter.slot));
        waiting.extend(self.buffer.take_waiters());
        // In the order in which they came, and not by places that say nothing.
        let came = |slot: u32| (self.slots[slot].submitted, self.slots[slot].request.tag, slot);
        waiting.sort_unstable_by_key(|&slot| came(slot));
        waiting.dedup();
        for slot in waiting {
            self.refuse(slot);
        }
        let held = self.map.as_mut().map(|map| map.give_up_rewrites());
        for slot in held.unwrap_or_default() {
            self.begin(slot, out);
        }
    }

    /// What a drive that writes no more does with a command other than a read.
    pub(super) fn perform_read_only(&mut self, slot: u32, out: &mut Vec<Completion>) {
        let is_flush = self.slots[slot].request.op == HostOp::Flush;
        if is_flush && self.is_durable() {
            self.finish(slot, out);
        } else {
            self.refuse(slot);
        }
    }

    /// Whether everything that was written is durable.
    pub(super) fn is_durable(&self) -> bool {
        let spec = &self.device.drive;
        let protected = spec.power_loss_protection && spec.write_cache == WriteCache::WriteBack;
        protected || self.buffer.used() == 0 && !self.trims_waiting()
    }

    pub(super) fn refuse(&mut self, slot: u32) {
        self.slots[slot].status = Status::ReadOnly;
        self.link_out = self.now.max(self.link_out) + REFUSAL;
        self.finishes.push(self.link_out, slot);
    }
}
