//! Zones on flash that fails: what becomes of their blocks, of their data, and of them.
//!
//! A block whose program fails takes no more program units, and its zone becomes *broken*: it can
//! be read and not be written. What the host was told is safe and has no program unit yet goes to
//! a *relocation block*, a block that zones which fail share, with a map by unit. A block whose
//! erase fails is retired.
//!
//! Every zone that can be written needs a good block, and relocation blocks need one in reserve.
//! When there are fewer good blocks than that, one zone after another is given up by the caller
//! ([`Zoned::shortage`]): an empty one is lost to the host and nothing else is.

use std::collections::{BTreeMap, BTreeSet};

use prism_nand::{BlockId, DieGroupId, ProgramUnitId, Pun};

use super::{Use, Zoned};
use crate::config::ConfigError;
use crate::plan::{HostPlace, UnitWrite};

/// What has become of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It can be written and reset.
    Sound,
    /// It can be read.
    Broken,
    /// It holds nothing and takes nothing.
    Gone,
}

/// What has failed, and what that has led to.
#[derive(Clone, Debug)]
pub(super) struct Failures {
    /// Blocks with a program that failed.
    pub(super) blocks: BTreeSet<u32>,
    /// By zone.
    pub(super) fates: Vec<Fate>,
    /// Zones that are sound.
    pub(super) sound: u32,
    /// Blocks that zones may have: neither bad nor relocation blocks.
    pub(super) good: u32,
    /// Units in relocation blocks by logical unit, and the other way round.
    pub(super) units: BTreeMap<u32, u32>,
    pub(super) lpns: BTreeMap<u32, u32>,
    /// The relocation block that takes program units.
    pub(super) relocation_block: Option<u32>,
    /// Zones that have become broken since that was last asked.
    pub(super) changed: Vec<u32>,
    /// The zone whose reset led to the last erase that failed.
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

    /// Where a relocation block holds `lpn`.
    #[inline]
    pub(super) fn relocated(&self, lpn: u32) -> Option<Pun> {
        if self.units.is_empty() { None } else { self.units.get(&lpn).copied().map(Pun) }
    }

    /// The logical unit that a relocation block holds at `at`.
    pub(super) fn lpn_at(&self, at: Pun) -> Option<u32> {
        self.lpns.get(&at.0).copied()
    }

    /// A zone leaves the sound ones.
    fn leave(&mut self, zone: u32, fate: Fate) {
        let known = &mut self.fates[zone as usize];
        self.sound -= u32::from(*known == Fate::Sound);
        *known = fate;
    }
}

impl Zoned {
    /// Takes `bad` blocks out of use, before anything was written. Zones stay as many.
    ///
    /// # Errors
    /// [`ConfigError::BadBlocks`] if the rest is too few for the zones.
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

    /// A good block is out of use from now on.
    pub(super) fn retire(&mut self, block: u32) {
        self.uses[block as usize] = Use::Retired;
        self.failures.good -= u32::from(!self.failures.blocks.contains(&block));
    }

    /// The program of `program_unit`, which was reserved, has failed or will not be made, because
    /// another of its block has failed: its units are not there. Their zone is broken, and
    /// the next program unit of it is one of a relocation block.
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

    /// Whether `program_unit`, whose program has passed, counts for nothing, because an earlier
    /// one of its block on the same die has failed meanwhile.
    #[must_use]
    pub fn is_void(&self, program_unit: ProgramUnitId) -> bool {
        let (member, on_die) = self.member(program_unit);
        self.has_failed(self.layout.block_of(program_unit))
            && u32::from(self.done[member]) != on_die
    }

    /// Whether nobody wants any more what was to stand on `program_unit`: its zone was reset
    /// since, or lost.
    #[must_use]
    pub fn is_obsolete(&self, program_unit: ProgramUnitId) -> bool {
        let used = self.uses[self.layout.block_of(program_unit).0 as usize];
        matches!(used, Use::Dead(_) | Use::Retired)
    }

    /// `zone` can be read from now on and not be written: its units that have no program unit yet
    /// go to a relocation block. The caller sends no more of them than it has promised to keep.
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

    /// `zone`, which holds nothing, is lost to the host.
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

    /// Whether `zone` can be read and not be written.
    #[must_use]
    pub fn is_broken(&self, zone: u32) -> bool {
        self.failures.fates[zone as usize] == Fate::Broken
    }

    /// Whether `zone` can be written and reset.
    #[must_use]
    pub fn is_sound(&self, zone: u32) -> bool {
        self.failures.fates[zone as usize] == Fate::Sound
    }

    /// A zone that has become broken; each is told once.
    pub fn take_broken(&mut self) -> Option<u32> {
        self.failures.changed.pop()
    }

    /// Zones that have to be given up ([`Zoned::zone_to_give_up`]), because good blocks are too
    /// few for all of them.
    #[must_use]
    pub fn shortage(&self) -> u32 {
        let needed = self.failures.sound + self.config.kept;
        if self.failures.sound == 0 { 0 } else { needed.saturating_sub(self.failures.good) }
    }

    /// Good blocks beside those that zones and relocation blocks need: so many may fail before a
    /// zone is lost. A zone that breaks takes its own block with it.
    #[must_use]
    pub fn spare_blocks(&self) -> u32 {
        self.failures.good.saturating_sub(self.failures.sound + self.config.kept)
    }

    /// A zone to be given up for want of blocks: the one whose block could not be erased if it
    /// `may` go, else the last one that may. Only zones without a block come into question.
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

    /// Whether nothing more is written, because data of a zone has failed to be relocated,
    /// or no zone is left that could be written.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.failures.read_only
    }

    /// From now on nothing more is written.
    pub fn set_read_only(&mut self) {
        self.failures.read_only = true;
    }

    /// Zones that are sound.
    #[must_use]
    pub fn sound_zones(&self) -> u32 {
        self.failures.sound
    }

    /// Where the next program unit of a zone goes that is not sound.
    pub(super) fn relocation_place(&self) -> HostPlace {
        let open = self.failures.relocation_block.map(|block| self.die_group_of(block) as u32);
        open.or_else(|| self.die_group_to_open())
            .map_or(HostPlace::Blocked, |die_group| HostPlace::DieGroup(DieGroupId(die_group)))
    }

    /// The next program unit of the relocation block, if one is open.
    pub(super) fn relocation_program_unit(&self) -> Option<ProgramUnitId> {
        self.failures.relocation_block.map(|block| self.program_unit_of_next(block))
    }

    /// Takes the next program unit of a relocation block, and a block if none is open.
    pub(super) fn reserve_in_shelter(&mut self, die_group: DieGroupId) -> ProgramUnitId {
        let block = self.failures.relocation_block.unwrap_or_else(|| {
            let free = self.die_groups[die_group.0 as usize].free.pop_first();
            let (_, block) = free.expect("the block that was offered");
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

    /// A broken zone finds neither a relocation block nor a block that will be erased: nothing
    /// more is written.
    pub(super) fn end_without_shelter(&mut self) {
        let waits = |used: &Use| matches!(used, Use::Dead(_) | Use::Free);
        self.failures.read_only |= !self.uses.iter().any(waits);
    }

    /// The relocation block goes on after a loss of power behind the program units that are done.
    pub(super) fn reopen_shelter(&mut self) {
        let Some(block) = self.failures.relocation_block else { return };
        self.next[block as usize] = self.program_units_done(block);
        self.skip_program_units(block);
        if self.next[block as usize] == self.layout.program_units_per_block() {
            self.failures.relocation_block = None;
        }
    }

    /// Units of `zone` that can be read from its start on, on flash.
    pub(super) fn readable(&self, zone: u32) -> u32 {
        let first = zone * self.zone_units.get();
        (0..self.capacity).take_while(|unit| self.lookup(first + unit).is_some()).count() as u32
    }

    /// What is counted of failures, counted anew.
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
