//! Zones on flash that fails: bad blocks, relocation of data, and loss of zones.
//!
//! A block whose program fails accepts no more program units, and its zone becomes *broken*: it can
//! be read but not written. Acknowledged data that has no program unit yet is written to a
//! *relocation block*, which broken zones share, with page-level mapping. A block whose erase fails
//! is retired.
//!
//! Every zone that can be written needs a good block, and relocation blocks need some in reserve.
//! When there are fewer good blocks than that, the caller gives up one zone after another
//! ([`Zoned::shortage`]): only an empty zone is lost to the host.

use std::collections::{BTreeMap, BTreeSet};

use borsh::{BorshDeserialize, BorshSerialize};
use prism_nand::{BlockId, DieGroupId, ProgramUnitId, Pun};

use super::{Use, Zoned};
use crate::config::ConfigError;
use crate::plan::{HostPlace, UnitWrite};

/// The state of a zone on flash that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) enum Fate {
    /// It can be written and reset.
    Sound,
    /// It can be read, but not written.
    Broken,
    /// It has no data and accepts none.
    Gone,
}

/// Failed blocks and their consequences.
#[derive(Clone, Debug)]
pub(super) struct Failures {
    /// Blocks with a failed program.
    pub(super) blocks: BTreeSet<u32>,
    /// By zone: its state.
    pub(super) fates: Vec<Fate>,
    /// The number of sound zones.
    pub(super) sound: u32,
    /// Blocks available for zones: neither bad nor relocation blocks.
    pub(super) good: u32,
    /// Physical units in relocation blocks by logical unit, and the reverse.
    pub(super) units: BTreeMap<u32, u32>,
    pub(super) lpns: BTreeMap<u32, u32>,
    /// The relocation block that accepts program units.
    pub(super) relocation_block: Option<u32>,
    /// Zones that became broken and were not yet returned.
    pub(super) changed: Vec<u32>,
    /// The zone whose reset led to the last failed erase.
    pub(super) reset: Option<u32>,
    pub(super) read_only: bool,
}

impl Failures {
    pub(super) fn new(zones: u32, blocks: u32) -> Self {
        Self {
            blocks: BTreeSet::new(),
            fates: vec![Fate::Sound; zones as usize],
            sound: zones,
            good: blocks,
            units: BTreeMap::new(),
            lpns: BTreeMap::new(),
            relocation_block: None,
            changed: Vec::new(),
            reset: None,
            read_only: false,
        }
    }

    /// The physical unit of `lpn` in a relocation block.
    #[inline]
    pub(super) fn relocated(&self, lpn: u32) -> Option<Pun> {
        if self.units.is_empty() { None } else { self.units.get(&lpn).copied().map(Pun) }
    }

    /// The logical unit at `at` in a relocation block.
    pub(super) fn lpn_at(&self, at: Pun) -> Option<u32> {
        self.lpns.get(&at.0).copied()
    }

    /// A zone gets another state than sound.
    fn leave(&mut self, zone: u32, fate: Fate) {
        let known = &mut self.fates[zone as usize];
        self.sound -= u32::from(*known == Fate::Sound);
        *known = fate;
    }
}

impl Zoned {
    /// Takes `bad` blocks out of use, before anything was written. The number of zones is
    /// unchanged.
    ///
    /// # Errors
    /// [`ConfigError::BadBlocks`] if the remaining blocks are too few for the zones.
    ///
    /// # Panics
    /// If a block is in use.
    pub fn set_aside(&mut self, bad: impl Iterator<Item = BlockId>) -> Result<(), ConfigError> {
        for block in bad {
            assert!(self.uses[block.0 as usize] == Use::Free, "{block:?} is in use");
            let die_group = self.die_group_of(block.0);
            self.die_groups[die_group].free.remove(&(self.erases[block.0 as usize], block.0));
            self.retire(block.0);
        }
        if self.shortage() > 0 {
            let blocks = self.geometry.blocks();
            return Err(ConfigError::BadBlocks { bad: blocks - self.failures.good, blocks });
        }
        Ok(())
    }

    /// Retires `block`, which counts as good until now unless a program of it failed.
    pub(super) fn retire(&mut self, block: u32) {
        self.uses[block as usize] = Use::Retired;
        self.failures.good -= u32::from(!self.failures.blocks.contains(&block));
    }

    /// The program of the reserved `program_unit` has failed, or is not attempted because another
    /// program of its block has failed. The zone becomes broken, and its next program unit is in a
    /// relocation block.
    pub fn program_failed(&mut self, program_unit: ProgramUnitId) {
        let block = self.layout.block_of(program_unit).0;
        self.program_units_in_flight[block as usize] -= 1;
        let used = self.uses[block as usize];
        if self.failures.blocks.insert(block) {
            match used {
                Use::Zone(zone) => self.break_zone(zone),
                Use::Relocation if self.failures.relocation_block == Some(block) => {
                    self.failures.relocation_block = None;
                }
                Use::Relocation | Use::Dead(_) | Use::Free | Use::Retired => {}
            }
            self.failures.good -= u32::from(matches!(used, Use::Zone(_) | Use::Dead(_)));
        }
        if matches!(used, Use::Dead(_)) && self.program_units_in_flight[block as usize] == 0 {
            self.uses[block as usize] = Use::Retired;
        }
    }

    /// The erase of `block` has failed: it is not used again.
    pub fn erase_failed(&mut self, block: BlockId) {
        if let Use::Dead(zone) = self.uses[block.0 as usize] {
            self.failures.reset = zone;
        }
        self.retire(block.0);
    }

    /// Whether a program of `block` has failed, so that a program unit reserved in it must not be
    /// programmed.
    #[must_use]
    pub fn has_failed(&self, block: BlockId) -> bool {
        self.failures.blocks.contains(&block.0)
    }

    /// Whether `program_unit`, whose program has passed, is invalid nevertheless, because an
    /// earlier program of its block on the same die has failed.
    #[must_use]
    pub fn is_void(&self, program_unit: ProgramUnitId) -> bool {
        let (member, on_die) = self.member(program_unit);
        self.has_failed(self.layout.block_of(program_unit))
            && u32::from(self.done[member]) != on_die
    }

    /// Whether the data for `program_unit` is obsolete: its zone was reset since, or lost.
    #[must_use]
    pub fn is_obsolete(&self, program_unit: ProgramUnitId) -> bool {
        let used = self.uses[self.layout.block_of(program_unit).0 as usize];
        matches!(used, Use::Dead(_) | Use::Retired)
    }

    /// Makes `zone` readable only: its units that have no program unit yet go to a relocation
    /// block. The caller writes only those of them that it has acknowledged.
    pub fn break_zone(&mut self, zone: u32) {
        if self.failures.fates[zone as usize] != Fate::Sound {
            return;
        }
        self.failures.leave(zone, Fate::Broken);
        self.failures.changed.push(zone);
        if let Some(block) = self.block_of[zone as usize].checked_sub(1) {
            self.end_writing(block);
        }
    }

    /// `zone`, which has no data, is lost to the host.
    pub(super) fn zone_gone(&mut self, zone: u32) {
        self.failures.leave(zone, Fate::Gone);
        let first = zone * self.zone_units.get();
        let lost = self.failures.units.range(first..first + self.zone_units.get());
        let lost: Vec<(u32, u32)> = lost.map(|(&lpn, &at)| (lpn, at)).collect();
        self.mapped -= lost.len() as u64;
        for (lpn, at) in lost {
            self.failures.units.remove(&lpn);
            self.failures.lpns.remove(&at);
        }
    }

    /// Whether `zone` can be read but not written.
    #[must_use]
    pub fn is_broken(&self, zone: u32) -> bool {
        self.failures.fates[zone as usize] == Fate::Broken
    }

    /// Whether `zone` can be written and reset.
    #[must_use]
    pub fn is_sound(&self, zone: u32) -> bool {
        self.failures.fates[zone as usize] == Fate::Sound
    }

    /// A zone that has become broken; each is returned once.
    pub fn take_broken(&mut self) -> Option<u32> {
        self.failures.changed.pop()
    }

    /// The number of zones to be given up ([`Zoned::zone_to_give_up`]), because there are too few
    /// good blocks for all of them.
    #[must_use]
    pub fn shortage(&self) -> u32 {
        let needed = self.failures.sound + self.config.kept;
        if self.failures.sound == 0 { 0 } else { needed.saturating_sub(self.failures.good) }
    }

    /// Good blocks in addition to those that zones and relocation blocks need: the number that may
    /// fail before a zone is lost. A zone that breaks keeps its own block.
    #[must_use]
    pub fn spare_blocks(&self) -> u32 {
        self.failures.good.saturating_sub(self.failures.sound + self.config.kept)
    }

    /// A zone to be given up for lack of blocks: the one whose block could not be erased if it
    /// `may` go, otherwise the last one that may. Only zones without a block are candidates.
    pub fn zone_to_give_up(&mut self, may: impl Fn(u32) -> bool) -> Option<u32> {
        let without =
            |zone: &u32| self.is_sound(*zone) && self.block_of[*zone as usize] == 0 && may(*zone);
        let last = (0..self.config.zones).rev().find(without);
        let chosen = self.failures.reset.filter(without).or(last);
        self.failures.reset = self.failures.reset.filter(|&zone| chosen != Some(zone));
        chosen
    }

    /// Units of zones in relocation blocks.
    #[must_use]
    pub fn relocated_units(&self) -> u64 {
        self.failures.units.len() as u64
    }

    /// Whether no more data is written, because data of a zone could not be relocated, or because
    /// no zone can be written any more.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.failures.read_only
    }

    /// Makes the FTL accept no more data.
    pub fn set_read_only(&mut self) {
        self.failures.read_only = true;
    }

    /// The number of sound zones.
    #[must_use]
    pub fn sound_zones(&self) -> u32 {
        self.failures.sound
    }

    /// Where the next program unit of a broken zone is written.
    pub(super) fn relocation_place(&self) -> HostPlace {
        let open = self.failures.relocation_block.map(|block| self.die_group_of(block) as u32);
        open.or_else(|| self.die_group_to_open())
            .map_or(HostPlace::Blocked, |die_group| HostPlace::DieGroup(DieGroupId(die_group)))
    }

    /// The next program unit of the relocation block, if one is open.
    pub(super) fn relocation_program_unit(&self) -> Option<ProgramUnitId> {
        self.failures.relocation_block.map(|block| self.program_unit_of_next(block))
    }

    /// Reserves the next program unit of a relocation block, and opens a block if none is open.
    pub(super) fn reserve_relocation(&mut self, die_group: DieGroupId) -> ProgramUnitId {
        let block = self.failures.relocation_block.unwrap_or_else(|| {
            let free = self.die_groups[die_group.0 as usize].free.pop_first();
            let (_, block) = free.expect("an erased block");
            self.next_die_group = die_group.0 + 1;
            self.uses[block as usize] = Use::Relocation;
            self.next[block as usize] = 0;
            self.failures.good -= 1;
            block
        });
        let program_unit = self.program_unit_of_next(block);
        self.program_units_in_flight[block as usize] += 1;
        self.next[block as usize] += 1;
        self.skip_program_units(block);
        let full = self.next[block as usize] == self.layout.program_units_per_block();
        self.failures.relocation_block = (!full).then_some(block);
        program_unit
    }

    /// `program_unit` of a relocation block is programmed with `units`.
    pub(super) fn commit_relocated(&mut self, program_unit: ProgramUnitId, units: &[UnitWrite]) {
        let first = self.layout.first_unit(program_unit).0;
        for (unit, at) in units.iter().zip(first..) {
            // A zone may have been lost since its program unit was reserved.
            let wanted =
                unit.lpn != UnitWrite::PAD && self.is_broken(self.zone_units.divide(unit.lpn));
            if wanted {
                let old = self.failures.units.insert(unit.lpn, at);
                assert!(old.is_none(), "unit {} of a zone is written once", unit.lpn);
                self.failures.lpns.insert(at, unit.lpn);
                self.mapped += 1;
            }
        }
    }

    /// A broken zone finds neither a relocation block nor a block to be erased: the FTL accepts no
    /// more data.
    pub(super) fn check_relocation_space(&mut self) {
        let waits = |used: &Use| matches!(used, Use::Dead(_) | Use::Free);
        self.failures.read_only |= !self.uses.iter().any(waits);
    }

    /// After a loss of power, the relocation block continues after the program units that are done.
    pub(super) fn reopen_relocation_block(&mut self) {
        let Some(block) = self.failures.relocation_block else { return };
        self.next[block as usize] = self.program_units_done(block);
        self.skip_program_units(block);
        if self.next[block as usize] == self.layout.program_units_per_block() {
            self.failures.relocation_block = None;
        }
    }

    /// Units of `zone` on flash that can be read, from its start up to the first gap.
    pub(super) fn readable(&self, zone: u32) -> u32 {
        let first = zone * self.zone_units.get();
        (0..self.capacity).take_while(|unit| self.lookup(first + unit).is_some()).count() as u32
    }

    /// Checks the counts of failures against a recount.
    ///
    /// # Panics
    /// If a sum disagrees.
    pub(super) fn assert_failures(&self) {
        let failures = &self.failures;
        let sound = failures.fates.iter().filter(|&&fate| fate == Fate::Sound).count();
        assert_eq!(sound, failures.sound as usize, "sound zones");
        let good = |(block, used): &(u32, &Use)| {
            !matches!(used, Use::Retired | Use::Relocation) && !failures.blocks.contains(block)
        };
        let good = (0..).zip(&self.uses).filter(good).count();
        assert_eq!(good, failures.good as usize, "good blocks");
        assert_eq!(failures.units.len(), failures.lpns.len(), "units in relocation blocks");
        for (&lpn, &at) in &failures.units {
            let block = self.layout.block_of_unit(Pun(at)).0;
            assert!(
                self.uses[block as usize] == Use::Relocation,
                "unit {lpn} is in a relocation block"
            );
            assert!(self.is_broken(self.zone_units.divide(lpn)), "unit {lpn} of a broken zone");
            assert_eq!(failures.lpns.get(&at), Some(&lpn), "both maps agree");
        }
    }
}
