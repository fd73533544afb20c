//! The FTL at rest as bytes, and back.
//!
//! What follows from the rest is not kept: the map from physical to logical units, valid
//! counts and all sums are worked out again, and what contradicts itself is refused.

use prism_base::{DecodeError, Decoder, Encoder, Rng};
use prism_nand::{BlockId, Geometry, Pun};

use super::state::{BlockState, Kind, OpenBlock, Tombstone};
use super::{P2L_TOMBSTONE, PageConfig, PageMap, TRIMMED};
use crate::plan::TrimRange;

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

    /// Appends the state of the FTL.
    ///
    /// # Panics
    /// If it is not at rest.
    pub fn encode(&self, out: &mut Encoder) {
        assert!(self.is_at_rest(), "only an FTL at rest is a state");
        out.column_u32(&self.l2p);
        let mut tombstones: Vec<_> = self.tombstones.iter().collect();
        tombstones.sort_unstable_by_key(|&(&at, _)| at);
        out.u32(tombstones.len() as u32);
        for (&at, tombstone) in tombstones {
            out.u32(at);
            out.column_u8(&TrimRange::encode_all(&tombstone.ranges));
        }
        out.column_u32(&self.erases);
        out.column_u16(&self.blocks.iter().map(|block| block.frontier).collect::<Vec<_>>());
        out.column_u32(&self.retirement.failed);
        let retired = |&block: &u32| self.blocks[block as usize].state == BlockState::Retired;
        out.column_u32(&(0..self.blocks.len() as u32).filter(retired).collect::<Vec<_>>());
        for die_group in &self.die_groups {
            let free = die_group.parts.iter().flat_map(|part| &part.free);
            out.column_u32(&free.copied().collect::<Vec<_>>());
            for open in &die_group.open {
                out.option(open.map(|open| open.block.0));
                out.u32(open.map_or(0, |open| open.next));
            }
            out.column_u32(&die_group.dead);
            for &kind in self.kinds() {
                die_group.part(kind).candidates.encode(out);
            }
        }
        for word in self.rng.state() {
            out.u64(word);
        }
    }

    /// The FTL that [`PageMap::encode`] wrote, over flash of the same shape and with the
    /// same configuration, which have been checked.
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes are no state of such an FTL.
    pub fn decode(
        geometry: Geometry,
        config: PageConfig,
        from: &mut Decoder<'_>,
    ) -> Result<Self, DecodeError> {
        let mut map = Self::new(geometry, config, 0)
            .map_err(|_| from.wrong("the configuration does not fit the flash"))?;
        map.decode_units(from)?;
        map.erases = from.column_u32(map.blocks.len())?.collect();
        let frontiers = from.column_u16(map.blocks.len())?;
        map.blocks.iter_mut().zip(frontiers).for_each(|(block, of)| block.frontier = of);
        let frontiers = map.config.frontier_count();
        if map.blocks.iter().any(|block| u32::from(block.frontier) >= frontiers) {
            return Err(from.wrong("a block was written through a frontier that is none"));
        }
        let blocks = map.blocks.len();
        let failed = from.list_below(blocks, blocks as u32)?;
        let retired = from.list_below(blocks, blocks as u32)?;
        let bad: Vec<(u32, BlockState)> = (failed.iter().map(|&b| (b, BlockState::Failed)))
            .chain(retired.iter().map(|&block| (block, BlockState::Retired)))
            .collect();
        for die_group in 0..map.die_groups.len() {
            map.decode_die_group(die_group, &bad, from)?;
        }
        map.decode_bad(&bad, from)?;
        map.retirement.failed = failed;
        let mut words = [0; 4];
        for word in &mut words {
            *word = from.u64()?;
        }
        map.rng = Rng::from_state(words).ok_or_else(|| from.wrong("no random stream"))?;
        map.check_places(from)?;
        Ok(map)
    }

    fn decode_units(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        let units = self.geometry().units();
        let l2p = from.column_u32(self.l2p.len())?;
        let count = from.u32()?;
        let mut refs = std::collections::BTreeMap::new();
        for _ in 0..count {
            let at = from.u32()?;
            let bytes = from.column_u8()?;
            if at >= units || bytes.len() % TrimRange::ENCODED != 0 {
                return Err(from.wrong("a tombstone is damaged"));
            }
            let ranges = TrimRange::decode_all(bytes);
            let end = |range: &TrimRange| u64::from(range.start) + u64::from(range.count);
            if ranges.iter().any(|range| end(range) > self.l2p.len() as u64) {
                return Err(from.wrong("a tombstone reaches beyond the drive"));
            }
            if refs.insert(at, (ranges, 0)).is_some() {
                return Err(from.wrong("two tombstones stand in one place"));
            }
        }
        for (lpn, entry) in l2p.enumerate().filter(|&(_, entry)| entry != 0) {
            let at = (entry & !TRIMMED).wrapping_sub(1);
            if entry & TRIMMED != 0 {
                let tombstone = refs.get_mut(&at);
                tombstone.ok_or_else(|| from.wrong("a unit is trimmed by nothing"))?.1 += 1;
            } else if at >= units || self.is_live(at) || refs.contains_key(&at) {
                return Err(from.wrong("two units stand in one place, or one in none"));
            } else {
                self.restore(at, lpn as u32 + 1);
                self.mapped += 1;
            }
            self.l2p[lpn] = entry;
        }
        for (at, (ranges, refs)) in refs {
            if refs == 0 {
                return Err(from.wrong("a tombstone without a reference"));
            }
            self.restore(at, P2L_TOMBSTONE);
            self.live_tombstones += 1;
            self.tombstones.insert(at, Tombstone { ranges, refs });
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

    /// The kinds of blocks there are.
    fn kinds(&self) -> &'static [Kind] {
        if self.config.slc.is_some() { &Kind::ALL } else { &Kind::ALL[..1] }
    }

    /// Counts blocks that are out of use as if they failed now.
    fn decode_bad(
        &mut self,
        bad: &[(u32, BlockState)],
        from: &Decoder<'_>,
    ) -> Result<(), DecodeError> {
        for &(block, state) in bad {
            if state == BlockState::Retired && self.blocks[block as usize].valid > 0 {
                return Err(from.wrong("a block that is out of use holds something"));
            }
            self.count_bad(BlockId(block));
        }
        if self.is_read_only() {
            return Err(from.wrong("more blocks are bad than the drive can do without"));
        }
        Ok(())
    }

    fn decode_die_group(
        &mut self,
        index: usize,
        bad: &[(u32, BlockState)],
        from: &mut Decoder<'_>,
    ) -> Result<(), DecodeError> {
        let per_die_group = self.layout.blocks_per_die_group();
        let first = index as u32 * per_die_group;
        let free = from.list_u32(per_die_group as usize)?;
        let mut open = Vec::new();
        for _ in 0..self.config.frontier_count() {
            let block = from.option(self.blocks.len() as u32)?.map(BlockId);
            let next = from.u32()?;
            if block.is_some_and(|block| !(1..self.layout.program_units_of(block)).contains(&next))
            {
                return Err(from.wrong("an open block is not open"));
            }
            open.push(block.map(|block| OpenBlock { block, next }));
        }
        let dead = from.list_u32(per_die_group as usize)?;
        let blocks = &self.blocks[first as usize..(first + per_die_group) as usize];
        for &kind in self.kinds() {
            let candidates = &mut self.die_groups[index].part_mut(kind).candidates;
            candidates.decode(from, |place| blocks[place].valid)?;
        }
        let opened = open.iter().flatten().map(|open| (open.block.0, BlockState::Open));
        let sealed = self.die_groups[index].parts.iter().flat_map(|part| part.candidates.by_age());
        let states: Vec<_> = (free.iter().map(|&block| (block, BlockState::Free)))
            .chain(opened)
            .chain(sealed.map(|place| (first + place as u32, BlockState::Sealed)))
            .chain(bad.iter().copied().filter(|(block, _)| block / per_die_group == index as u32))
            .collect();
        let mut named = vec![false; per_die_group as usize];
        for &(block, state) in &states {
            let place = block.checked_sub(first).and_then(|place| named.get_mut(place as usize));
            if place.is_none_or(|named| std::mem::replace(named, true)) {
                return Err(from.wrong("a block is none of its die group, or named twice"));
            }
            self.blocks[block as usize].state = state;
        }
        if states.len() != per_die_group as usize {
            return Err(from.wrong("a block of a die group is missing"));
        }
        let is_dead = |block: &u32| {
            states.contains(&(*block, BlockState::Sealed))
                && self.blocks[*block as usize].valid == 0
        };
        if !dead.iter().all(is_dead) {
            return Err(from.wrong("a block that should be dead is not"));
        }
        let (die_group, slc) = (&mut self.die_groups[index], self.layout.slc_blocks());
        for block in first..first + per_die_group {
            let kind = if block - first < slc { Kind::Slc } else { Kind::Main };
            die_group.part_mut(kind).erases += u64::from(self.erases[block as usize]);
        }
        for part in &mut die_group.parts {
            part.free.clear();
        }
        for block in free {
            let kind = if block - first < slc { Kind::Slc } else { Kind::Main };
            die_group.part_mut(kind).free.push_back(block);
        }
        die_group.open = open;
        die_group.dead = dead;
        Ok(())
    }

    /// That what is mapped stands on program units that hold data.
    fn check_places(&self, from: &Decoder<'_>) -> Result<(), DecodeError> {
        for block in (0..self.blocks.len() as u32).map(BlockId) {
            let first = self.layout.first_program_unit(block);
            let program_units = match self.blocks[block.0 as usize].state {
                BlockState::Failed => self.layout.program_units_of(block),
                _ => self.program_units_written(block),
            };
            let end = self.layout.first_unit(prism_nand::ProgramUnitId(first.0 + program_units));
            let last = self.layout.first_unit(first).0 + self.layout.units_per_block();
            if self.blocks[block.0 as usize].valid > 0 && (end.0..last).any(|at| self.is_live(at)) {
                return Err(from.wrong("a unit stands on a program unit that is not programmed"));
            }
        }
        Ok(())
    }
}
