//! Health of a drive with faults, and its read-only state.

use prism_base::{Bytes, Nanos, SimTime};
use prism_ftl::PageMap;
use prism_nand::Health;

use super::Drive;
use crate::spec::WriteCache;
use crate::zones::ZoneState;
use prism_engine::block::{Completion, HostOp, Status};

/// Duration of a refusal in addition to firmware, so that time advances for a host that retries at
/// once.
const REFUSAL: Nanos = Nanos(1_000);

/// When a drive became read-only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOnly {
    /// Simulated time.
    pub since: SimTime,
    /// Bytes that the host had written by then, without the preparation of the drive.
    pub written: Bytes,
}

/// Health of the SLC blocks of a drive that has other blocks as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlcHealth {
    /// Bad blocks by cause. Superblocks count once.
    pub bad: Health,
    /// SLC blocks that may still fail in the die group with the fewest, before its SLC blocks are
    /// no longer written or, if they hold a region of addresses, the drive becomes read-only.
    pub spare_blocks: u32,
    /// SLC blocks per die group.
    pub die_group_blocks: u32,
}

/// Health of the zones of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneHealth {
    /// Zones that can only be read.
    pub read_only: u32,
    /// Zones that are lost to the host.
    pub offline: u32,
    /// All zones.
    pub count: u32,
    /// Data of failed zones that is stored in relocation blocks.
    pub relocated: Bytes,
}

/// Health of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveHealth {
    /// Bad blocks of both kinds by cause. Superblocks count once.
    pub bad: Health,
    /// Health of the SLC blocks of a drive with `[slc]`.
    pub slc: Option<SlcHealth>,
    /// Health of the zones of a zoned drive.
    pub zones: Option<ZoneHealth>,
    /// Flash in grown bad blocks.
    pub retired: Bytes,
    /// Blocks that may still fail before the drive becomes read-only. Page-level mapping: in the
    /// die group with the fewest; block-level and hybrid mappings: in all die groups; ranges: in
    /// the range with the fewest; zones: in all die groups, before a zone goes offline.
    pub spare_blocks: u32,
    /// Blocks per die group, without SLC blocks.
    pub die_group_blocks: u32,
    /// When the drive became read-only; `None` if it did not.
    pub read_only: Option<ReadOnly>,
}

impl Drive {
    /// The health of the drive; `None` if it has no fault model.
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
        let slc =
            self.engine.ftl().page().and_then(PageMap::slc_spare_blocks).map(|spare_blocks| {
                SlcHealth {
                    bad: of_slc,
                    spare_blocks,
                    die_group_blocks: geometry.slc_blocks_per_die_group(),
                }
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

    /// When the drive became read-only; `None` if it did not.
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

    /// Makes the drive read-only and refuses the requests that wait for writes.
    pub(super) fn become_read_only(&mut self, out: &mut Vec<Completion>) {
        self.read_only = self.read_only();
        let mut waiting: Vec<u32> = self.waiting_for_buffer.drain(..).collect();
        waiting.extend(self.waiting_for_flush.drain(..).map(|waiter| waiter.slot));
        waiting.extend(self.buffer.take_waiters());
        // In the order of submission; the order of slots has no meaning.
        let came = |slot: u32| (self.slots[slot].submitted, self.slots[slot].request.tag, slot);
        waiting.sort_unstable_by_key(|&slot| came(slot));
        waiting.dedup();
        for slot in waiting {
            self.refuse(slot);
        }
        let held = self.map.as_mut().map(|map| map.cancel_rewrites());
        for slot in held.unwrap_or_default() {
            self.begin(slot, out);
        }
    }

    /// Performs a command other than a read on a read-only drive.
    pub(super) fn perform_read_only(&mut self, slot: u32, out: &mut Vec<Completion>) {
        let is_flush = self.slots[slot].request.op == HostOp::Flush;
        if is_flush && self.is_durable() {
            self.finish(slot, out);
        } else {
            self.refuse(slot);
        }
    }

    /// Whether all written data is durable.
    pub(super) fn is_durable(&self) -> bool {
        let spec = &self.device.drive;
        let protected = spec.power_loss_protection && spec.write_cache == WriteCache::WriteBack;
        protected || self.buffer.used() == 0 && !self.trims_waiting()
    }

    pub(super) fn refuse(&mut self, slot: u32) {
        self.slots[slot].status = Status::ReadOnly;
        let end = self.link.occupy_out(self.now, REFUSAL);
        self.finishes.push(end, slot);
    }
}
