//! Recovery of hybrid mapping from the content of the flash, without a saved map.
//!
//! For each logical unit the highest version wins. Of several copies of it the one programmed
//! *last* wins, as it did in the map: complete merges stay complete, and the log blocks that they
//! emptied are blocks to be erased. This would be wrong for the target of an incomplete merge,
//! whose data block still holds the other units. Such a target is *discarded*: all its units are
//! elsewhere as well, since the sources of a merge are not erased before it is complete. An
//! incomplete target is recognised by a valid unit of the logical block that the merge would have
//! copied and has not: its offset is in a program unit of the target that cannot be read, and it
//! was programmed before the target's first program unit.
//!
//! Why recovery never finds more log blocks than allowed, so that merges can proceed (see
//! [`HybridConfig::log_blocks_max`]): docs/design/hybrid.md.

use prism_nand::{BlockId, Nand, ProgramUnitId, Pun, UnitTag};

use super::{Hybrid, HybridConfig, Use};
use crate::config::ConfigError;
use crate::in_flight::InFlightUnits;
use crate::plan::TrimRange;
use crate::scan::{FlashScan, Recovered, trim_best};

/// The state of a block on the flash; its use in the map was saved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockStatus {
    /// Program units programmed since its last erase.
    pub(crate) program_units: u32,
    /// It is bad, from the factory or grown.
    pub(crate) bad: bool,
}

impl BlockStatus {
    /// The state of `block` on `nand`.
    pub(crate) fn of(nand: &Nand, block: BlockId) -> Self {
        Self { program_units: nand.program_units_programmed(block), bad: nand.is_bad(block) }
    }
}

/// The best copy found of a logical unit.
#[derive(Clone, Copy, Default)]
struct Best {
    version: u64,
    /// The sequence number of its program.
    sequence: u64,
    /// The physical unit plus one; 0 for none.
    at: u32,
}

/// Another copy of the same version.
#[derive(Clone, Copy)]
struct Tie {
    lpn: u32,
    copy: Best,
}

/// Results of the scan for a block.
#[derive(Clone, Copy, Default)]
struct Scanned {
    /// The lowest sequence number of its readable programs; 0 if there is none.
    first: u64,
    /// The offset after its last readable unit.
    end: u32,
    discarded: bool,
}

/// Results of the scan of the flash.
struct Scan {
    best: Vec<Best>,
    /// Sorted by logical unit, then by sequence number.
    ties: Vec<Tie>,
    blocks: Vec<Scanned>,
    /// By program unit: whether it can be read. With superblocks a later program unit may be
    /// readable when an earlier one, on another die, is not.
    readable: Vec<bool>,
    newest: Recovered,
}

impl Hybrid {
    /// As [`crate::Ftl::recover`].
    pub(crate) fn recover(
        flash: &mut impl FlashScan,
        config: HybridConfig,
        trims: &[TrimRange],
    ) -> Result<(Self, Recovered), ConfigError> {
        let mut map = Self::new(flash.geometry().clone(), config)?;
        let blocks = map.geometry.blocks();
        let mut scan = Scan {
            best: vec![Best::default(); map.l2p.len()],
            ties: Vec::new(),
            blocks: vec![Scanned::default(); blocks as usize],
            readable: vec![false; (blocks * map.layout.program_units_per_block()) as usize],
            newest: Recovered::default(),
        };
        for die_group in &mut map.die_groups {
            die_group.free.clear();
        }
        map.free_total = 0;
        for block in (0..blocks).map(BlockId) {
            map.erases[block.0 as usize] = flash.erases(block);
            if flash.is_bad(block) {
                map.fail(block.0);
            } else if flash.is_erased(block) {
                let die_group = map.die_group_of(block.0);
                map.die_groups[die_group].free.push_back(block.0);
                map.free_total += 1;
                continue;
            }
            // Not erased; `settle` finds its use.
            map.uses[block.0 as usize] = Use::Dead;
            if !flash.is_unstable(block) {
                map.scan_block(flash, block, &mut scan)?;
            }
        }
        scan.trim(trims);
        // The latest first: discarding a block may leave its units to an earlier one.
        let mut order: Vec<u32> = (0..blocks).collect();
        order.sort_by_key(|&block| std::cmp::Reverse(scan.blocks[block as usize].first));
        for &block in &order {
            map.discard_incomplete(block, &mut scan);
        }
        order.reverse();
        map.settle(&order, &scan)?;
        Ok((map, scan.newest))
    }

    /// Resumes after a loss of power from the map saved by the capacitors: programs in flight are
    /// lost, merges restart, open log blocks accept no more program units. `status` returns the
    /// state of each block.
    #[must_use]
    pub(crate) fn after_power_loss(mut self, status: &dyn Fn(BlockId) -> BlockStatus) -> Self {
        self.in_flight = InFlightUnits::default();
        self.program_units_in_flight.fill(0);
        self.open_logs.clear();
        self.wanted_by.clear();
        self.spent_total = 0;
        (self.sequential, self.sequential_open) = (None, false);
        self.pads.clear();
        for group in &mut self.groups {
            (group.open, group.waits_for, group.merging) = (None, None, None);
            group.awaits_program_unit = false;
        }
        for die_group in &mut self.die_groups {
            die_group.dead.clear();
            die_group.failed.clear();
            die_group.wanted.clear();
            die_group.fills.clear();
            die_group.sealed.clear();
            die_group.victim = None;
            die_group.step = None;
            die_group.sources.fill(0);
        }
        for block in 0..self.uses.len() as u32 {
            let status = status(BlockId(block));
            if status.bad {
                // The erase of a superblock may have failed on one die and not ended on others.
                self.fail(block);
            }
            match self.uses[block as usize] {
                Use::Free => assert!(status.program_units == 0, "an erased block is erased"),
                Use::Retired => {}
                Use::Data if self.valid[block as usize] == 0 => {
                    self.data[self.logical[block as usize] as usize] = 0;
                    self.mark_dead(block);
                }
                // As for log blocks below.
                Use::Data => {
                    self.next[block as usize] = self.layout.program_units_per_block();
                    if self.is_failed(block) {
                        self.settle_failed(block);
                    }
                }
                Use::Target | Use::Dead => self.mark_dead(block),
                Use::Spent => {
                    // Recounted by `mark_spent`.
                    self.uses[block as usize] = Use::Sealed;
                    self.mark_spent(block);
                }
                Use::Log | Use::Sealed | Use::Wanted | Use::Merging => {
                    // The write positions of the dies may differ.
                    self.next[block as usize] = self.layout.program_units_per_block();
                    self.seal(block);
                }
            }
        }
        self
    }

    fn scan_block(
        &mut self,
        flash: &mut impl FlashScan,
        block: BlockId,
        scan: &mut Scan,
    ) -> Result<(), ConfigError> {
        let foreign = |why| Err(ConfigError::Foreign { block: block.0, why });
        let start = self.layout.first_unit(self.layout.first_program_unit(block)).0;
        let first = self.layout.first_program_unit(block).0;
        let mut found = Vec::new();
        for program_unit in
            (first..first + self.layout.program_units_per_block()).map(ProgramUnitId)
        {
            found.clear();
            let sequence = flash.program_unit(program_unit, &mut found);
            let known = &mut scan.blocks[block.0 as usize];
            if sequence > 0 {
                scan.readable[program_unit.0 as usize] = true;
                known.first = if known.first == 0 { sequence } else { known.first.min(sequence) };
            }
            scan.newest.newest_sequence = scan.newest.newest_sequence.max(sequence);
            for unit in &found {
                let at = self.layout.first_unit(program_unit).0 + unit.place;
                known.end = at - start + 1;
                match unit.tag {
                    UnitTag::Pad => {}
                    UnitTag::Data(lpn) if lpn < self.config.logical_units => {
                        self.p2l[at as usize] = lpn + 1;
                        let newest = &mut scan.newest.newest_version;
                        *newest = unit.version.max(*newest);
                        let copy = Best { version: unit.version, sequence, at: at + 1 };
                        offer(&mut scan.best, &mut scan.ties, lpn, copy);
                    }
                    UnitTag::Data(_) => return foreign("a unit is beyond the drive"),
                    UnitTag::Tombstone => {
                        return foreign("block-level and hybrid mapping have no tombstones");
                    }
                }
            }
        }
        Ok(())
    }

    /// The units of `block` that are the best copies: their offsets and logical units.
    fn best_in(&self, block: u32, scan: &Scan) -> impl Iterator<Item = (u32, u32)> {
        let start = block * self.layout.units_per_block();
        (0..scan.blocks[block as usize].end).filter_map(move |place| {
            let at = start + place;
            let lpn = self.p2l[at as usize].checked_sub(1)?;
            (scan.best[lpn as usize].at == at + 1).then_some((place, lpn))
        })
    }

    /// The logical block of which `block` can be the data block: it has best copies, all at their
    /// own offsets.
    fn data_of(&self, block: u32, scan: &Scan) -> Option<u32> {
        let mut live = self.best_in(block, scan);
        let (place, lpn) = live.next()?;
        let (logical, offset) = self.block_units.split(lpn);
        let units = self.block_units.get();
        let at_offset = |(place, lpn)| lpn == logical * units + place;
        (place == offset && live.all(at_offset)).then_some(logical)
    }

    /// Discards `block` if it is the target of an incomplete merge.
    fn discard_incomplete(&self, block: u32, scan: &mut Scan) {
        let Some(logical) = self.data_of(block, scan) else { return };
        let Scanned { first, end, .. } = scan.blocks[block as usize];
        let start = Pun(block * self.layout.units_per_block());
        let units = self.block_units.get();
        let not_reached = (0..units).any(|place| {
            let best = scan.best[(logical * units + place) as usize];
            let program_unit = self.layout.program_unit_of(Pun(start.0 + place));
            // A program unit may be torn so that only its first units are readable.
            let there = place < end && scan.readable[program_unit.0 as usize];
            best.at != 0 && best.sequence < first && !there
        });
        if !not_reached {
            return;
        }
        let instead: Option<Vec<_>> = self
            .best_in(block, scan)
            .map(|(_, lpn)| Some((lpn, self.other_copy(lpn, block, scan)?)))
            .collect();
        if let Some(instead) = instead {
            scan.blocks[block as usize].discarded = true;
            for (lpn, copy) in instead {
                scan.best[lpn as usize] = copy;
            }
        }
    }

    /// The last programmed copy of the best version of `lpn`, outside of `block` and of discarded
    /// blocks.
    fn other_copy(&self, lpn: u32, block: u32, scan: &Scan) -> Option<Best> {
        let end = scan.ties.partition_point(|tie| tie.lpn <= lpn);
        let same = scan.ties[..end].iter().rev().take_while(|tie| tie.lpn == lpn);
        same.map(|tie| tie.copy).find(|copy| {
            let holder = self.layout.block_of_unit(Pun(copy.at - 1)).0;
            holder != block && !scan.blocks[holder as usize].discarded
        })
    }

    /// Assigns a use to every block in `order`. Of several that could be the data block of a
    /// logical block, the one begun first is.
    fn settle(&mut self, order: &[u32], scan: &Scan) -> Result<(), ConfigError> {
        let foreign = |block, why| ConfigError::Foreign { block, why };
        for &block in order {
            let index = block as usize;
            if self.uses[index] == Use::Free {
                continue;
            }
            let Some((_, lpn)) = self.best_in(block, scan).next() else {
                self.mark_dead(block);
                continue;
            };
            let group = self.group_units.divide(lpn);
            if self.best_in(block, scan).any(|(_, lpn)| self.group_units.divide(lpn) != group) {
                return Err(foreign(block, "it has units of several data groups"));
            }
            let die_group = self.die_group_of(block);
            self.group_of[index] = group;
            self.next[index] = self.layout.program_units_per_block();
            self.opened[index] = self.opens;
            self.opens += 1;
            match self.data_of(block, scan) {
                Some(logical) if self.data[logical as usize] == 0 => {
                    self.uses[index] = Use::Data;
                    self.logical[index] = logical;
                    self.data[logical as usize] = block + 1;
                    if self.is_failed(block) {
                        self.die_groups[die_group].failed.push_back(block);
                    }
                }
                _ => {
                    self.log_total += 1;
                    self.groups[group as usize].logs.push(block);
                    self.uses[index] = Use::Sealed;
                    self.die_groups[die_group].sealed.insert(self.opened[index], block);
                    if self.is_failed(block) {
                        self.request_merge(block);
                    }
                }
            }
        }
        if self.log_total > self.config.log_room(&self.geometry) {
            let block =
                self.die_groups.iter().find_map(|die_group| die_group.sealed.values().next());
            let block = *block.expect("there are log blocks");
            return Err(foreign(block, "there are too many log blocks for merges to proceed"));
        }
        for (lpn, best) in (0..).zip(&scan.best).filter(|(_, best)| best.at != 0) {
            self.map(lpn, Pun(best.at - 1));
        }
        self.logs_found = self.log_total;
        for group in &mut self.groups {
            group.found = group.logs.len() as u32;
        }
        Ok(())
    }
}

fn offer(best: &mut [Best], ties: &mut Vec<Tie>, lpn: u32, copy: Best) {
    let best = &mut best[lpn as usize];
    if best.at == 0 || copy.version > best.version {
        *best = copy;
    } else if copy.version == best.version {
        let later = copy.sequence > best.sequence;
        let earlier = if later { std::mem::replace(best, copy) } else { copy };
        ties.push(Tie { lpn, copy: earlier });
    }
}

impl Scan {
    /// Removes units that were trimmed later, and sorts the remaining copies.
    fn trim(&mut self, trims: &[TrimRange]) {
        let best = &mut self.best;
        let newest = self.newest.newest_version;
        self.newest.newest_version = trim_best(trims, newest, |lpn, version| {
            if let Some(best) = best.get_mut(lpn as usize)
                && best.version < version
            {
                *best = Best::default();
            }
        });
        self.ties.retain(|tie| {
            let best = self.best[tie.lpn as usize];
            best.at != 0 && best.version == tie.copy.version
        });
        self.ties.sort_unstable_by_key(|tie| (tie.lpn, tie.copy.sequence));
    }
}
