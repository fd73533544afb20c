//! Bulk operations on program units and blocks, for the engine without time: no operation is in
//! flight between its steps, so that in-flight tracking and repeated lookups are unnecessary.
//!
//! They leave the FTL in the same state as the steps that they replace; a test compares them.

use prism_base::prefetch;
use prism_nand::{BlockId, Cause, DieGroupId, ProgramUnitId, Pun};

use super::state::OpenBlock;
use super::{PageMap, TRIMMED};
use crate::plan::UnitWrite;

/// Successive program units of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramUnitRun {
    /// The first program unit.
    pub first: ProgramUnitId,
    /// The number of program units.
    pub program_units: u32,
}

/// The work of emptying a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Units copied.
    pub units: u32,
    /// Pages of single planes read.
    pub pages_read: u64,
}

impl PageMap {
    /// Whether program units and blocks may be moved in bulk: no operation is in flight, there is
    /// no parity, and no unit is a tombstone.
    #[must_use]
    pub fn supports_bulk(&self) -> bool {
        !self.parity && self.live_tombstones == 0 && self.nothing_in_flight()
    }

    /// Prefetches the state of the physical unit of `lpn`, which will soon be garbage; best some
    /// time after [`PageMap::prefetch`] and some time before the change.
    #[inline]
    pub fn prefetch_old(&self, lpn: u32) {
        let entry = self.l2p[lpn as usize] & !TRIMMED;
        if entry != 0 {
            let at = entry - 1;
            let block = self.layout.block_of_unit(Pun(at));
            prefetch(&self.live_bits, at as usize / 64);
            prefetch(&self.blocks, block.0 as usize);
            let (die_group, place) = self.layout.split_block(block);
            let part = self.die_groups[die_group.0 as usize].part(self.kind_at(place));
            prefetch(part.candidates.valid().values(), place);
        }
    }

    /// Writes `units` of the host, at most a program unit, to the next program unit of `die_group`
    /// for `stream`. Equivalent to beginning the writes, reserving the program unit and committing;
    /// the versions must grow from write to write of a unit.
    ///
    /// # Panics
    /// If [`PageMap::host_may_write`] or [`PageMap::supports_bulk`] does not hold.
    pub fn put_program_unit(
        &mut self,
        die_group: DieGroupId,
        stream: u32,
        units: &[UnitWrite],
    ) -> ProgramUnitId {
        debug_assert!(self.supports_bulk() && self.host_may_write(die_group, stream));
        let frontier = self.host_frontier(die_group, stream);
        let (run, block) = self.take_program_units(die_group, frontier, 1);
        let first = self.layout.first_unit(run.first).0;
        let count = units.len() as u32;
        self.blocks[block.0 as usize].valid += count;
        self.count_valid(block, count);
        self.valid_total += u64::from(count);
        self.mapped += u64::from(count);
        for (at, write) in (first..).zip(units) {
            self.unmap(write.lpn);
            self.live_bits[at as usize / 64] |= 1 << (at % 64);
            self.p2l[at as usize] = write.lpn + 1;
            self.l2p[write.lpn as usize] = at + 1;
        }
        self.close_if_full(die_group, frontier, block);
        run.first
    }

    /// Copies every valid unit of `victim` to the frontier for its copies. `runs` returns the
    /// program units written, in order; the last may be padded. Equivalent to gathering, reserving
    /// and committing each program unit. `scratch` is a buffer that is reused.
    ///
    /// # Panics
    /// If no erased block is left; the reserve prevents that.
    pub fn move_all(
        &mut self,
        victim: BlockId,
        scratch: &mut Vec<u32>,
        runs: &mut Vec<ProgramUnitRun>,
    ) -> Moved {
        debug_assert!(self.supports_bulk());
        runs.clear();
        let pages_read = self.list_valid(victim, scratch);
        let die_group = self.layout.die_group_of(victim);
        let frontier = self.config.frontier_of_copies(self.blocks[victim.0 as usize].frontier);
        let per_program_unit = self.layout.units_per_program_unit() as usize;
        let mut rest = &scratch[..];
        while !rest.is_empty() {
            let program_units = rest.len().div_ceil(per_program_unit) as u32;
            let (run, block) = self.take_program_units(die_group, frontier as usize, program_units);
            let (now, later) =
                rest.split_at(rest.len().min(run.program_units as usize * per_program_unit));
            let first = self.layout.first_unit(run.first).0;
            for (at, &lpn) in (first..).zip(now) {
                self.p2l[at as usize] = lpn + 1;
                self.l2p[lpn as usize] = at + 1;
            }
            self.set_live(first, now.len() as u32);
            self.blocks[block.0 as usize].valid += now.len() as u32;
            self.close_if_full(die_group, frontier as usize, block);
            runs.push(run);
            rest = later;
        }
        let units = scratch.len() as u32;
        self.blocks[victim.0 as usize].valid -= units;
        if self.cause_of_cleaning(victim) == Cause::Fold {
            self.die_groups[die_group.0 as usize].slc_valid -= u64::from(units);
        }
        self.clear_live(victim);
        if self.config.map_units > 0 {
            let logical = self.config.logical_units;
            self.moved.extend(scratch.iter().filter(|&&lpn| lpn < logical));
        }
        Moved { units, pages_read }
    }

    /// Lists the valid logical units of `block` in physical order. Returns the number of pages to
    /// be read for them, one program unit of copies at a time.
    fn list_valid(&self, block: BlockId, out: &mut Vec<u32>) -> u64 {
        out.clear();
        let per_program_unit = self.layout.units_per_program_unit();
        let per_page = self.layout.units_per_page();
        let first = self.layout.first_unit(self.layout.first_program_unit(block)).0;
        let end = first + self.layout.units_per_block();
        let (mut in_program_unit, mut pages, mut last_page) = (0, 0, u32::MAX);
        let mut at = first;
        while at < end {
            let word = self.live_bits[at as usize / 64] >> (at % 64);
            if word & 1 == 0 {
                at += if word == 0 { 64 - at % 64 } else { word.trailing_zeros() };
                continue;
            }
            let lpn = self.p2l[at as usize] - 1;
            prefetch(&self.l2p, lpn as usize);
            out.push(lpn);
            // A page is read once for each program unit of copies that needs it.
            let page = if per_page == 1 { at } else { at / per_page };
            if in_program_unit == per_program_unit {
                (in_program_unit, last_page) = (0, u32::MAX);
            }
            in_program_unit += 1;
            pages += u64::from(page != last_page);
            last_page = page;
            at += 1;
        }
        pages * u64::from(self.layout.pages_per_unit())
    }

    /// Reserves up to `most` program units of the open block of a frontier; returns them and the
    /// block.
    fn take_program_units(
        &mut self,
        die_group: DieGroupId,
        frontier: usize,
        most: u32,
    ) -> (ProgramUnitRun, BlockId) {
        let open = self.die_groups[die_group.0 as usize].open[frontier];
        let open = open.unwrap_or_else(|| self.open_block(die_group, frontier));
        let OpenBlock { block, next } = open;
        let program_units = most.min(self.layout.program_units_of(block) - next);
        let first = ProgramUnitId(self.layout.first_program_unit(block).0 + next);
        let open = OpenBlock { block, next: next + program_units };
        self.die_groups[die_group.0 as usize].open[frontier] = Some(open);
        (ProgramUnitRun { first, program_units }, block)
    }

    fn close_if_full(&mut self, die_group: DieGroupId, frontier: usize, block: BlockId) {
        let open = &mut self.die_groups[die_group.0 as usize].open[frontier];
        if open.is_some_and(|open| open.next == self.layout.program_units_of(block)) {
            *open = None;
            self.seal(block);
        }
    }

    /// Marks `count` units from `first` on as valid.
    pub(super) fn set_live(&mut self, first: u32, count: u32) {
        let mut at = first;
        let end = first + count;
        while at < end {
            let bits = (end - at).min(64 - at % 64);
            self.live_bits[at as usize / 64] |= (u64::MAX >> (64 - bits)) << (at % 64);
            at += bits;
        }
    }

    /// Marks all units of `block` as garbage.
    fn clear_live(&mut self, block: BlockId) {
        let mut at = self.layout.first_unit(self.layout.first_program_unit(block)).0;
        let end = at + self.layout.units_per_block();
        while at < end {
            let bits = (end - at).min(64 - at % 64);
            self.live_bits[at as usize / 64] &= !((u64::MAX >> (64 - bits)) << (at % 64));
            at += bits;
        }
    }
}
