//! Cleaning: victims, their valid units, and their return to the free list.

use prism_base::prefetch;
use prism_nand::{BlockId, Cause, DieGroupId, ProgramUnitId, Pun};

use super::state::{BlockState, Kind};
use super::{P2L_TOMBSTONE, PageMap};
use crate::plan::{self, ReadRun, UnitWrite, Units};
use crate::victim::NOT_SEALED;

/// Entries of `p2l` per cache line.
const LINE: u32 = 16;
/// The most victims skipped because they are worn, before the policy's next choice is accepted.
const WORN_PASSED_MAX: usize = 8;

impl PageMap {
    /// Chooses the next victim on `die_group` and removes it from the candidates; `None` if there
    /// is none whose cleaning would gain anything.
    pub fn pick_victim(&mut self, die_group: DieGroupId) -> Option<BlockId> {
        if let Some(block) = self.die_groups[die_group.0 as usize].dead.pop() {
            self.take_candidate(die_group, BlockId(block));
            return Some(BlockId(block));
        }
        if self.config.slc.is_none() {
            return self.pick_main(die_group);
        }
        // SLC blocks come second, because folding needs erased blocks of the others.
        if self.free_blocks(die_group) < self.config.free_blocks_low
            && let Some(block) = self.pick_main(die_group)
        {
            return Some(block);
        }
        if !self.slc_reached_high(die_group)
            && let Some(block) = self.pick_slc(die_group)
        {
            return Some(block);
        }
        let wanted = self.free_blocks(die_group) < self.config.free_blocks_high;
        if wanted { self.pick_main(die_group) } else { None }
    }

    /// Chooses a block to be emptied in idle time: what cleaning needs, then the oldest block of a
    /// write cache, then any that gains room.
    pub fn pick_in_idle(&mut self, die_group: DieGroupId) -> Option<BlockId> {
        let dead = !self.die_groups[die_group.0 as usize].dead.is_empty();
        if dead || self.config.slc.is_none() || self.below_low(die_group) {
            return self.pick_victim(die_group);
        }
        let folded = if self.folds_when_idle(die_group) { self.pick_slc(die_group) } else { None };
        let wanted = self.free_blocks(die_group) < self.config.free_blocks_idle;
        if folded.is_none() && wanted { self.pick_main(die_group) } else { folded }
    }

    fn pick_main(&mut self, die_group: DieGroupId) -> Option<BlockId> {
        let chosen = self.choose(die_group, Kind::Main)? as u32;
        let block = BlockId(die_group.0 * self.layout.blocks_per_die_group() + chosen);
        self.take_candidate(die_group, block);
        Some(block)
    }

    /// The policy's choice, with worn blocks skipped if the configuration says so.
    pub(super) fn choose(&mut self, die_group: DieGroupId, kind: Kind) -> Option<usize> {
        // Copies fill whole program units or wordlines, so that less garbage than that gains
        // nothing.
        let (program_units, together) = self.data_program_units_of(kind);
        let most = program_units.saturating_sub(together) * self.layout.units_per_program_unit();
        let policy = self.config.victim;
        let first_block = (die_group.0 * self.layout.blocks_per_die_group()) as usize;
        let limit = self.worn_limit(die_group, kind);
        let state = self.die_groups[die_group.0 as usize].part_mut(kind);
        let mut passed = [(0, 0); WORN_PASSED_MAX];
        let mut count = 0;
        let chosen = loop {
            let chosen = policy.pick(&state.candidates, most, &mut self.rng);
            let Some(index) = chosen else { break None };
            let worn = limit.is_some_and(|limit| self.erases[first_block + index] > limit);
            if !worn || count == WORN_PASSED_MAX {
                break chosen;
            }
            passed[count] = (index, state.candidates.take(index));
            count += 1;
        };
        for &(index, valid) in passed[..count].iter().rev() {
            state.candidates.put_back(index, valid);
        }
        let passed = &passed[..count];
        // A choice that gains nothing does not spare a worn block: cleaning would go through all
        // full blocks, and wear them, until the mean has caught up.
        let gaining = passed.iter().find(|&&(_, valid)| valid <= most);
        if let (Some(index), Some(&(worn, _))) = (chosen, gaining)
            && state.candidates.valid().values()[index] > most
        {
            return Some(worn);
        }
        // If every candidate is worn, the policy's first choice is used.
        chosen.or(passed.first().map(|&(index, _)| index))
    }

    /// Erases above which a block is skipped as a victim.
    fn worn_limit(&self, die_group: DieGroupId, kind: Kind) -> Option<u32> {
        let above = self.config.wear.victims_above_mean?;
        Some(self.mean_erases(die_group, kind) + above)
    }

    /// Mean erases of the blocks of a kind on a die group, rounded down.
    fn mean_erases(&self, die_group: DieGroupId, kind: Kind) -> u32 {
        let blocks = match kind {
            Kind::Main => self.layout.blocks_per_die_group() - self.layout.slc_blocks(),
            Kind::Slc => self.layout.slc_blocks(),
        };
        (self.die_groups[die_group.0 as usize].part(kind).erases / u64::from(blocks)) as u32
    }

    /// The sealed block of `die_group` with the fewest erases, if it is behind the mean by more
    /// than the configuration allows: its data has not changed for long and keeps a little-worn
    /// block from being used. Removes it from the candidates. The move gains no room, so it needs
    /// an erased block in addition to the reserve. A cache uses its blocks in FIFO order, which
    /// wears them evenly.
    pub fn pick_for_wear(&mut self, die_group: DieGroupId) -> Option<BlockId> {
        let region = self.config.slc.is_some_and(|slc| !slc.is_cache());
        let of_region = || self.coldest(die_group, Kind::Slc);
        let main = self.coldest(die_group, Kind::Main);
        let block = if region { main.or_else(of_region) } else { main }?;
        self.take_candidate(die_group, block);
        Some(block)
    }

    fn coldest(&self, die_group: DieGroupId, kind: Kind) -> Option<BlockId> {
        let behind = self.config.wear.move_behind_mean?;
        let state = &self.die_groups[die_group.0 as usize];
        let free = state.part(kind).free.len() as u32;
        if !state.dead.is_empty() || free <= self.config.reserve_blocks {
            return None;
        }
        let limit = self.mean_erases(die_group, kind).checked_sub(behind)?;
        let first = die_group.0 * self.layout.blocks_per_die_group();
        let sealed = state.part(kind).candidates.valid().values();
        let coldest = (first..)
            .zip(sealed)
            .filter(|&(_, &valid)| valid != NOT_SEALED)
            .map(|(block, _)| block)
            .min_by_key(|&block| self.erases[block as usize])?;
        (self.erases[coldest as usize] < limit).then_some(BlockId(coldest))
    }

    pub(super) fn take_candidate(&mut self, die_group: DieGroupId, block: BlockId) {
        let (_, place) = self.layout.split_block(block);
        let kind = self.kind_at(place);
        self.die_groups[die_group.0 as usize].part_mut(kind).candidates.take(place);
        self.blocks[block.0 as usize].state = BlockState::Victim;
    }

    /// The logical unit whose map entry points to `at`, if any.
    #[must_use]
    pub fn live(&self, at: Pun) -> Option<u32> {
        let word = self.live_bits[at.0 as usize / 64];
        (word >> (at.0 % 64) & 1 == 1).then(|| self.occupant(at))
    }

    fn occupant(&self, at: Pun) -> u32 {
        match self.p2l[at.0 as usize] {
            P2L_TOMBSTONE => UnitWrite::TOMBSTONE,
            lpn => lpn - 1,
        }
    }

    /// Plans the next step of cleaning `victim`: up to a program unit of valid `units` from unit
    /// `cursor` of the block on, and the `reads` they need; both lists are reused. Advances the
    /// cursor; the lists are empty at the end of the block.
    #[inline(always)]
    pub fn gather(
        &self,
        victim: BlockId,
        cursor: &mut u32,
        units: &mut Units,
        reads: &mut Vec<ReadRun>,
    ) {
        reads.clear();
        units.clear();
        let first = victim.0 * self.layout.units_per_block();
        let end = first + self.layout.units_per_block();
        let mut at = first + *cursor;
        if self.layout.units_per_program_unit() == 1 {
            // Without a loop the compiler keeps no state for a second iteration.
            let behind = at;
            at = self.next_live(at, end);
            if at < end {
                if behind == first || (behind - 1) / LINE != at / LINE {
                    self.prefetch_line(at);
                }
                units.push(self.copy_of(Pun(at)));
                reads.push(plan::read_of_program_unit(&self.layout, ProgramUnitId(at)));
                at += 1;
            }
        } else {
            at = self.gather_program_unit(at, end, units, reads);
            prefetch(&self.p2l, (at + LINE) as usize);
        }
        *cursor = at - first;
    }

    /// The same for up to a program unit of the valid units from `at` on; returns the unit after
    /// them.
    #[inline(never)]
    fn gather_program_unit(
        &self,
        mut at: u32,
        end: u32,
        units: &mut Units,
        reads: &mut Vec<ReadRun>,
    ) -> u32 {
        let room = self.layout.units_per_program_unit() as usize;
        let mut pages = 0;
        while units.len() < room {
            at = self.next_live(at, end);
            if at == end {
                break;
            }
            let copy = self.copy_of(Pun(at));
            self.prefetch(copy.lpn);
            units.push(copy);
            self.add_read(Pun(at), &mut pages, reads);
            at += 1;
        }
        at
    }

    /// Prefetches the map entries of the valid units from `at` on that are in the same cache line
    /// of `p2l` and will be copied, and then the next cache line of `p2l`. On a large drive each
    /// prefetch is a page table walk, and issuing them together lets the walks overlap.
    #[inline(always)]
    fn prefetch_line(&self, at: u32) {
        let in_line = LINE - at % LINE;
        let mut live = self.live_bits[at as usize / 64] >> (at % 64) & ((1 << in_line) - 1);
        while live != 0 {
            self.prefetch(self.occupant(Pun(at + live.trailing_zeros())));
            live &= live - 1;
        }
        prefetch(&self.p2l, (at + in_line) as usize);
    }

    /// The first valid unit from `at` on; `end` if there is none before that.
    #[inline(always)]
    fn next_live(&self, mut at: u32, end: u32) -> u32 {
        while at < end {
            let word = self.live_bits[at as usize / 64] >> (at % 64);
            if word != 0 {
                return (at + word.trailing_zeros()).min(end);
            }
            at += 64 - at % 64;
        }
        end
    }

    /// The copy of the valid unit at `at`. The version is that of the source; devices that keep
    /// content copy it from there.
    #[inline(always)]
    fn copy_of(&self, at: Pun) -> UnitWrite {
        let lpn = self.occupant(at);
        UnitWrite { lpn, source: Some(at), version: 0 }
    }

    /// Adds `at` to the reads: one command per level of a program unit as long as successive units
    /// are on it, and one page per plane needed. `planes` has a bit for each page in the last
    /// command.
    #[inline(always)]
    pub fn add_read(&self, at: Pun, planes: &mut u64, reads: &mut Vec<ReadRun>) {
        plan::add_read(&self.layout, at, planes, reads);
    }

    /// Whether no map entry points to a unit of `block`.
    #[must_use]
    pub fn is_dead(&self, block: BlockId) -> bool {
        self.blocks[block.0 as usize].valid == 0
    }

    /// The cause under which a copy out of a block is counted: copies of translation pages count as
    /// `map`.
    #[must_use]
    #[inline]
    pub fn cause_of_copies(&self, victim: BlockId, otherwise: Cause) -> Cause {
        if self.copies_to.is_some() {
            return otherwise;
        }
        let frontier = u32::from(self.blocks[victim.0 as usize].frontier);
        if self.config.map_frontier() == Some(frontier) { Cause::Map } else { otherwise }
    }

    /// The cause of emptying `victim` to gain room.
    #[must_use]
    pub fn cause_of_cleaning(&self, victim: BlockId) -> Cause {
        let cache = self.config.slc.is_some_and(|slc| slc.is_cache());
        if cache && self.layout.is_slc(victim) { Cause::Fold } else { Cause::Gc }
    }

    /// The erase of a victim has ended, on all its dies: it is free again.
    ///
    /// # Panics
    /// If the block is not a victim, or the map still points to one of its units.
    pub fn erased(&mut self, block: BlockId) {
        let index = block.0 as usize;
        assert!(
            self.blocks[index].state == BlockState::Victim,
            "{block:?} was erased but no victim"
        );
        assert!(self.is_dead(block), "{block:?} was erased with valid units in it");
        self.blocks[index].state = BlockState::Free;
        self.erases[index] += 1;
        let kind = self.kind_of(block);
        let part = self.die_groups[self.layout.die_group_of(block).0 as usize].part_mut(kind);
        part.erases += 1;
        part.free.push_back(block.0);
    }
}

#[cfg(test)]
mod tests {
    use prism_nand::{BlockId, DieGroupId, Geometry, Nand, ProgramUnitId, StoredUnit, UnitTag};

    use crate::page::config::PageConfig;
    use crate::page::{Frontiers, PageMap};
    use crate::victim::VictimPolicy;

    /// A block whose wear is above the limit was skipped for full blocks, again and again.
    #[test]
    fn a_worn_block_is_cleaned_if_the_next_choice_gains_nothing() {
        let geometry = Geometry { blocks_per_plane: 8, pages_per_block: 2, ..Geometry::SMALLEST };
        for name in ["fifo", "lru", "windowed-greedy:1"] {
            let policy = VictimPolicy::from_name(name).unwrap();
            let mut config = PageConfig::simple(5, policy, Frontiers::Shared);
            config.wear.victims_above_mean = Some(2);
            let mut nand = Nand::with_content(geometry.clone());
            // Block 3 is the oldest and half garbage, block 1 is full, block 0 is half garbage.
            let writes = [(3, 0), (3, 1), (1, 2), (1, 3), (0, 1)];
            for (version, (block, lpn)) in (1..).zip(writes) {
                let first = nand.layout().first_program_unit(BlockId(block));
                let next = nand.program_units_programmed(BlockId(block));
                let program_unit = ProgramUnitId(first.0 + next);
                let unit = StoredUnit { tag: UnitTag::Data(lpn), version, payload: None };
                nand.program_begin(program_unit, [unit]).unwrap();
                nand.program_end(program_unit);
            }
            let (mut map, _) = PageMap::recover_from(&mut &nand, config, 1, &[]).unwrap();
            map.erases[3] = 100;
            assert_eq!(map.pick_victim(DieGroupId(0)), Some(BlockId(3)), "{name}");
        }
    }
}
