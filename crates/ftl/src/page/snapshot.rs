//! Snapshots of the FTL at rest. What follows from the stored fields is not stored: the map from
//! physical to logical units, valid counts, states of blocks and all sums are worked out again.

use prism_base::snapshot_fields;
use prism_nand::{BlockId, ProgramUnitId, Pun};

use super::state::{Block, BlockState, DieGroupState, Kind, Part};
use super::{P2L_TOMBSTONE, PageMap, TRIMMED};

snapshot_fields!(Part { parts: candidates; values: free; });

snapshot_fields!(DieGroupState { parts: parts; columns: open; values: dead; });

snapshot_fields!(PageMap {
    parts: l2p, die_groups;
    columns: erases, blocks;
    values: tombstones, retirement.failed, rng;
});

impl PageMap {
    /// Whether nothing is in flight or promised: no program, no trim, no cleaning.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        let quiet = self.blocks.iter().all(|block| block.program_units_in_flight == 0);
        let no_victim = self.blocks.iter().all(|block| block.state != BlockState::Victim);
        let nothing_due = self.parity_due.is_empty() && self.moved.is_empty();
        let nothing_due = nothing_due && self.retirement.closing.is_empty();
        self.nothing_in_flight() && quiet && no_victim && nothing_due
    }

    /// Works out what follows from the fields that were loaded, and refuses contradictions.
    pub(crate) fn check(&mut self) -> Result<(), &'static str> {
        let frontiers = self.config.frontier_count();
        if self.blocks.iter().any(|block| u32::from(block.frontier) >= frontiers) {
            return Err("a block was written through a frontier that there is not");
        }
        self.check_tombstones()?;
        self.check_units()?;
        let blocks = self.blocks.len() as u32;
        if self.retirement.failed.iter().any(|&block| block >= blocks) {
            return Err("a block has failed that there is not");
        }
        (0..self.die_groups.len()).try_for_each(|index| self.check_die_group(index))?;
        for block in (0..blocks).map(BlockId) {
            if matches!(self.state_of(block), BlockState::Failed | BlockState::Retired) {
                self.count_bad(block);
            }
        }
        if self.is_read_only() {
            return Err("more blocks are bad than the drive can do without");
        }
        match (0..blocks).map(BlockId).all(|block| self.is_programmed(block)) {
            true => Ok(()),
            false => Err("a unit is in a program unit that is not programmed"),
        }
    }

    fn state_of(&self, block: BlockId) -> BlockState {
        self.blocks[block.0 as usize].state
    }

    fn check_tombstones(&self) -> Result<(), &'static str> {
        let (units, logical) = (self.geometry.units(), self.l2p.len() as u64);
        let ranges = self.tombstones.values().flat_map(|tombstone| &tombstone.ranges);
        let mut ends = ranges.map(|range| u64::from(range.start) + u64::from(range.count));
        if ends.any(|end| end > logical) || self.tombstones.keys().any(|&at| at >= units) {
            return Err("a tombstone reaches beyond the drive");
        }
        Ok(())
    }

    /// Works out the map from physical to logical units, and what is valid.
    fn check_units(&mut self) -> Result<(), &'static str> {
        let units = self.geometry.units();
        for lpn in 0..self.l2p.len() {
            let entry = self.l2p[lpn];
            let at = (entry & !TRIMMED).wrapping_sub(1);
            if entry == 0 {
                continue;
            } else if entry & TRIMMED != 0 {
                let tombstone = self.tombstones.get_mut(&at);
                tombstone.ok_or("a unit is trimmed by a tombstone that there is not")?.refs += 1;
            } else if at < units && !self.is_live(at) {
                self.restore(at, lpn as u32 + 1);
                self.mapped += 1;
            } else {
                return Err("two units are in one place, or one in none");
            }
        }
        let tombstones = self.tombstones.iter();
        for (at, refs) in tombstones.map(|(&at, of)| (at, of.refs)).collect::<Vec<_>>() {
            if refs == 0 || self.is_live(at) {
                return Err("a tombstone without a reference, or in the place of a unit");
            }
            self.restore(at, P2L_TOMBSTONE);
            self.live_tombstones += 1;
        }
        Ok(())
    }

    fn is_live(&self, at: u32) -> bool {
        self.live_bits[at as usize / 64] >> (at % 64) & 1 == 1
    }

    fn restore(&mut self, at: u32, occupant: u32) {
        self.p2l[at as usize] = occupant;
        self.live_bits[at as usize / 64] |= 1 << (at % 64);
        let block = self.layout.block_of_unit(Pun(at));
        self.blocks[block.0 as usize].valid += 1;
        self.valid_total += 1;
        self.count_valid(block, 1);
    }

    /// Gives each block of a die group the state of the list that it is in. A block in no list is
    /// retired.
    fn check_die_group(&mut self, index: usize) -> Result<(), &'static str> {
        let per_die_group = self.layout.blocks_per_die_group();
        let first = index as u32 * per_die_group;
        let all = first as usize..(first + per_die_group) as usize;
        let (blocks, die_group) = (&mut self.blocks[all.clone()], &mut self.die_groups[index]);
        blocks.iter_mut().for_each(|block| block.state = BlockState::Retired);
        for kind in Kind::ALL {
            let slc = self.layout.slc_blocks();
            let own = |place: u32| (place < slc) == (kind == Kind::Slc);
            let part = die_group.part_mut(kind);
            let free = part.free.iter().map(|&block| (block.wrapping_sub(first), BlockState::Free));
            let sealed = part.candidates.by_age().map(|place| (place as u32, BlockState::Sealed));
            for (place, state) in free.chain(sealed) {
                claim(blocks, place, state)?;
                if !own(place) {
                    return Err("a block is in a list of the other kind");
                }
            }
            part.candidates.check(|place| blocks[place].valid)?;
            let erases = (0..).zip(&self.erases[all.clone()]).filter(|&(place, _)| own(place));
            part.erases = erases.map(|(_, &erases)| u64::from(erases)).sum();
        }
        for (frontier, open) in (0..).zip(&die_group.open) {
            let Some(open) = open else { continue };
            let place = open.block.0.wrapping_sub(first);
            claim(blocks, place, BlockState::Open)?;
            if !(1..self.layout.program_units_of(open.block)).contains(&open.next)
                || blocks[place as usize].frontier != frontier
            {
                return Err("an open block is not open");
            }
        }
        let own = |&&block: &&u32| all.contains(&(block as usize));
        for &block in self.retirement.failed.iter().filter(own) {
            claim(blocks, block - first, BlockState::Failed)?;
        }
        let is_dead = |&block: &u32| {
            let block = blocks.get(block.wrapping_sub(first) as usize);
            block.is_some_and(|block| block.state == BlockState::Sealed && block.valid == 0)
        };
        if die_group.dead.iter().all(is_dead) { Ok(()) } else { Err("a dead block is not dead") }
    }

    /// Whether every unit of `block` that the map points to is in a program unit that is
    /// programmed.
    fn is_programmed(&self, block: BlockId) -> bool {
        let first = self.layout.first_program_unit(block);
        let program_units = match self.state_of(block) {
            BlockState::Failed => self.layout.program_units_of(block),
            _ => self.program_units_written(block),
        };
        let end = self.layout.first_unit(ProgramUnitId(first.0 + program_units)).0;
        let last = self.layout.first_unit(first).0 + self.layout.units_per_block();
        self.blocks[block.0 as usize].valid == 0 || !(end..last).any(|at| self.is_live(at))
    }
}

/// The block at `place` of its die group is in the list of blocks in `state`, and in no other.
fn claim(blocks: &mut [Block], place: u32, state: BlockState) -> Result<(), &'static str> {
    match blocks.get_mut(place as usize) {
        Some(block) if block.state == BlockState::Retired => {
            block.state = state;
            Ok(())
        }
        _ => Err("a block is in two lists, or in one of another die group"),
    }
}
