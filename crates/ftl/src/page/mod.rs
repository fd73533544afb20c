//! Page-level mapping: the map, and how completions change it.
//!
//! Arrays and their cost: logical to physical 4 bytes per logical unit; physical to logical 4 bytes
//! per physical unit, both allocated zeroed so that unused parts take no memory; a bit per physical
//! unit that says whether the map points to it; 48 bytes per block.
//!
//! Invariants: `valid` of a block counts its units that the map points to (data, or a tombstone
//! with a reference); a block is a candidate for cleaning only once every program unit of it is
//! programmed and committed.

mod alloc;
mod bulk;
mod check;
mod clean;
mod config;
mod recover;
mod retire;
mod slc;
mod snapshot;
mod spread;
mod state;
mod steady;
mod tiers;

use prism_base::{FastMap, Rng, Zeroed, prefetch};
use prism_nand::{BlockId, Geometry, Layout, ProgramUnitId, Pun};

use crate::config::ConfigError;
use crate::ftl::common_parts;
use crate::in_flight::InFlightUnits;
use crate::plan::{TrimRange, UnitWrite};
use crate::trims::PendingTrims;
use state::{Block, BlockState, DieGroupState, FreshTombstone, Retirement, Tombstone};

pub use bulk::{Moved, ProgramUnitRun};
pub use config::{Frontiers, PageConfig, Placement, WearPolicy};
pub use slc::{SlcConfig, SlcRule, SlcUse};
pub use spread::{MeanField, SpreadError, write_amplification};
pub use steady::SteadyError;

/// The state of page-level mapping.
#[derive(Clone, Debug)]
pub struct PageMap {
    geometry: Geometry,
    layout: Layout,
    /// Data program units per block. `parity` says whether blocks have others as well.
    data_program_units: u32,
    /// Data program units per SLC block.
    slc_data_program_units: u32,
    parity: bool,
    /// Data program units that are filled up together before a block is emptied.
    program_units_together: u32,
    config: PageConfig,
    /// The frontier of all copies, if they share one.
    copies_to: Option<usize>,
    /// 0 for none, otherwise unit + 1, with [`TRIMMED`] if that unit is a tombstone.
    l2p: Zeroed<u32>,
    /// 0 for none, [`P2L_TOMBSTONE`], otherwise logical unit + 1.
    p2l: Zeroed<u32>,
    /// A bit for each physical unit: whether the map points to it.
    live_bits: Zeroed<u64>,
    blocks: Vec<Block>,
    /// Erases of each block.
    erases: Vec<u32>,
    die_groups: Vec<DieGroupState>,
    /// Parity program units of stripes whose data is complete.
    parity_due: Vec<ProgramUnitId>,
    /// Host units that cleaning has moved, if translation pages are on flash.
    moved: Vec<u32>,
    in_flight: InFlightUnits,
    tombstones: FastMap<u32, Tombstone>,
    /// New tombstones in flight, by number.
    fresh_tombstones: FastMap<u64, FreshTombstone>,
    /// Trims that no tombstone has yet.
    pending_trims: PendingTrims,
    mapped: u64,
    live_tombstones: u64,
    valid_total: u64,
    /// Failed blocks.
    retirement: Retirement,
    rng: Rng,
}

/// The map entry points to a tombstone.
const TRIMMED: u32 = 1 << 31;
/// The physical unit holds a tombstone.
const P2L_TOMBSTONE: u32 = u32::MAX;

/// Map entries that a trim or a check looks at together.
const TRIM_STEP: usize = 64;

common_parts!(PageMap, PageConfig);

impl PageMap {
    /// An empty map over erased flash. `seed` is for policies that choose at random.
    ///
    /// # Errors
    /// [`ConfigError`] if the configuration does not fit the flash.
    pub fn new(geometry: Geometry, config: PageConfig, seed: u64) -> Result<Self, ConfigError> {
        config.check(&geometry)?;
        let blocks = geometry.blocks() as usize;
        let per_die_group = geometry.blocks_per_die_group();
        let units = [geometry.data_units_per_block(), geometry.slc_data_units_per_block()];
        let slc = geometry.slc_blocks_per_die_group();
        let most = config.slc.map_or(0, |used| used.units_most(&geometry, slc));
        let erased = |blocks| DieGroupState {
            slc_units_most: most,
            ..DieGroupState::erased(blocks, slc, &config, units)
        };
        let die_groups = (0..geometry.die_groups())
            .map(|die_group| erased(die_group * per_die_group..(die_group + 1) * per_die_group))
            .collect();
        Ok(Self {
            l2p: Zeroed::new((config.logical_units + config.map_units) as usize),
            p2l: Zeroed::new(geometry.units() as usize),
            live_bits: Zeroed::new(geometry.units().div_ceil(64) as usize),
            erases: vec![0; blocks],
            layout: Layout::new(&geometry),
            data_program_units: geometry.data_program_units_per_block(),
            slc_data_program_units: units[1] / geometry.units_per_program_unit(),
            parity: geometry.parity,
            program_units_together: config.program_units_together(&geometry),
            parity_due: Vec::new(),
            moved: Vec::new(),
            blocks: vec![Block::default(); blocks],
            die_groups,
            in_flight: InFlightUnits::default(),
            tombstones: FastMap::default(),
            fresh_tombstones: FastMap::default(),
            pending_trims: PendingTrims::default(),
            mapped: 0,
            live_tombstones: 0,
            valid_total: 0,
            retirement: Retirement::default(),
            rng: Rng::stream(seed, "ftl.victim"),
            copies_to: config.only_frontier_of_copies(),
            geometry,
            config,
        })
    }

    /// Logical units that hold data.
    #[must_use]
    pub fn mapped(&self) -> u64 {
        self.mapped
    }

    /// The physical unit of `lpn`; `None` if it was never written, or was trimmed.
    #[must_use]
    #[inline]
    pub fn lookup(&self, lpn: u32) -> Option<Pun> {
        if self.trims_pending() && self.trim_pending(lpn) {
            return None;
        }
        decode_data(self.l2p[lpn as usize])
    }

    /// Prefetches the map entry of `lpn`, which will be read or changed soon.
    #[inline]
    pub fn prefetch(&self, lpn: u32) {
        prefetch(&self.l2p, lpn as usize);
    }

    /// Whether no program of host data and no trim is in flight.
    fn nothing_in_flight(&self) -> bool {
        self.in_flight.is_empty() && !self.trims_pending()
    }

    #[inline]
    fn trims_pending(&self) -> bool {
        !self.pending_trims.is_empty() || !self.fresh_tombstones.is_empty()
    }

    #[cold]
    fn trim_pending(&self, lpn: u32) -> bool {
        let fresh = &mut self.fresh_tombstones.values();
        self.pending_trims.contains(lpn) || fresh.any(|fresh| fresh.pending.contains(lpn))
    }

    /// `start..end` with `version` is on flash: removes older pending trims, which would hide it.
    fn carve_trims(&mut self, start: u32, end: u32, version: u64) {
        self.pending_trims.carve(start, end, version);
        // The order of the hash table does not matter: each entry is changed independently.
        for fresh in self.fresh_tombstones.values_mut() {
            fresh.pending.carve(start, end, version);
        }
    }

    /// A host program of `lpn` is in flight.
    pub fn write_begin(&mut self, lpn: u32) {
        self.in_flight.begin(lpn);
    }

    /// One unit is programmed: changes the map, unless the unit is superseded already. Returns
    /// whether the unit is valid.
    ///
    /// # Panics
    /// If [`PageMap::write_begin`] was not called for a host write.
    #[inline(always)]
    pub fn commit(&mut self, write: &UnitWrite, at: Pun) -> bool {
        match (write.lpn, write.source) {
            (UnitWrite::TOMBSTONE, None) => self.commit_tombstone(write.version, at),
            (UnitWrite::TOMBSTONE, Some(source)) => self.commit_tombstone_copy(source, at),
            (lpn, None) => self.commit_host(lpn, write.version, at),
            (lpn, Some(source)) => self.commit_copy(lpn, source, at),
        }
    }

    /// Commits each of `units`, from `first` on, except those with indices in `lost`.
    pub(crate) fn commit_units(&mut self, first: Pun, units: &[UnitWrite], lost: &[usize]) {
        for (place, write) in units.iter().enumerate() {
            if lost.is_empty() || !lost.contains(&place) {
                self.commit(write, Pun(first.0 + place as u32));
            }
        }
    }

    #[inline(always)]
    fn commit_host(&mut self, lpn: u32, version: u64, at: Pun) -> bool {
        let wins = self.in_flight.end(lpn, version);
        self.p2l[at.0 as usize] = lpn + 1;
        if wins {
            self.unmap(lpn);
            self.map(lpn, at);
            if self.trims_pending() {
                self.carve_trims(lpn, lpn + 1, version);
            }
        }
        wins
    }

    #[inline(always)]
    fn commit_copy(&mut self, lpn: u32, source: Pun, at: Pun) -> bool {
        self.p2l[at.0 as usize] = lpn + 1;
        let wins = self.l2p[lpn as usize] == source.0 + 1;
        if wins {
            self.l2p[lpn as usize] = at.0 + 1;
            self.move_valid(source, at);
            if self.config.map_units > 0 && lpn < self.config.logical_units {
                self.moved.push(lpn);
            }
        }
        wins
    }

    /// A host unit that cleaning has moved, so that its translation page must change; each move is
    /// returned once. Only if translation pages are on flash.
    pub fn take_moved(&mut self) -> Option<u32> {
        self.moved.pop()
    }

    /// Trims `start..end` in the map at once, for devices whose power-loss protection makes the map
    /// durable.
    pub fn trim_now(&mut self, start: u32, end: u32, version: u64) {
        // Most of a large trim is often unmapped already: such stretches are skipped as wholes.
        for from in (start..end).step_by(TRIM_STEP) {
            let to = end.min(from + TRIM_STEP as u32);
            let any = self.l2p[from as usize..to as usize].iter().fold(0, |any, &at| any | at);
            if any != 0 {
                (from..to).for_each(|lpn| self.unmap(lpn));
            }
        }
        if !self.in_flight.is_empty() {
            self.in_flight.raise_all(start, end, version);
        }
    }

    /// Trims `start..end` for reads; the map follows when the tombstone that holds the range is
    /// committed. Until then programs of these units in flight take effect as usual: if they were
    /// dropped, the data that they replace could be all that is left after a loss of power,
    /// although a flush may have made them durable. A later write or trim in the buffer does not
    /// cancel this trim either: a flush between the two makes it durable, so its tombstone has to
    /// be kept until the later one is on flash.
    pub fn trim_later(&mut self, start: u32, end: u32, version: u64) {
        self.pending_trims.insert(start, end, version);
    }

    /// Registers a tombstone in flight under `number`, which is its [`UnitWrite::version`].
    /// `ranges` are all trims since the last one.
    pub fn tombstone_begin(&mut self, number: u64, ranges: Vec<TrimRange>) {
        let pending = std::mem::take(&mut self.pending_trims);
        let old = self.fresh_tombstones.insert(number, FreshTombstone { ranges, pending });
        assert!(old.is_none(), "tombstone {number} begun twice");
    }

    /// The ranges of the tombstone that `write` programs.
    ///
    /// # Panics
    /// If it is no tombstone in flight.
    #[must_use]
    pub fn tombstone_ranges(&self, write: &UnitWrite) -> &[TrimRange] {
        match write.source {
            None => &self.fresh_tombstones[&write.version].ranges,
            Some(source) => self.tombstones.get(&source.0).map_or(&[], |t| &t.ranges),
        }
    }

    fn commit_tombstone(&mut self, number: u64, at: Pun) -> bool {
        let fresh = self.fresh_tombstones.remove(&number).expect("a tombstone in flight");
        self.p2l[at.0 as usize] = P2L_TOMBSTONE;
        let mut refs = 0;
        for (start, end, version) in fresh.pending.iter() {
            self.carve_trims(start, end, version);
            for lpn in start..end {
                // A unit that was never on flash cannot be found by recovery.
                let comes = self.in_flight.raise(lpn, version);
                if self.l2p[lpn as usize] != 0 || comes {
                    self.unmap(lpn);
                    self.l2p[lpn as usize] = (at.0 + 1) | TRIMMED;
                    refs += 1;
                }
            }
        }
        self.add_tombstone(at, fresh.ranges, refs)
    }

    fn commit_tombstone_copy(&mut self, source: Pun, at: Pun) -> bool {
        self.p2l[at.0 as usize] = P2L_TOMBSTONE;
        let Some(old) = self.tombstones.get(&source.0) else { return false };
        let ranges = old.ranges.clone();
        let mut refs = 0;
        for range in &ranges {
            for lpn in range.start..range.start + range.count {
                if self.l2p[lpn as usize] == (source.0 + 1) | TRIMMED {
                    self.unmap(lpn);
                    self.l2p[lpn as usize] = (at.0 + 1) | TRIMMED;
                    refs += 1;
                }
            }
        }
        self.add_tombstone(at, ranges, refs)
    }

    fn add_tombstone(&mut self, at: Pun, ranges: Vec<TrimRange>, refs: u32) -> bool {
        if refs > 0 {
            self.tombstones.insert(at.0, Tombstone { ranges, refs });
            self.live_tombstones += 1;
            self.add_valid(at);
        }
        refs > 0
    }

    /// Points `lpn`, which is unmapped, to `at`.
    #[inline(always)]
    fn map(&mut self, lpn: u32, at: Pun) {
        self.l2p[lpn as usize] = at.0 + 1;
        self.mapped += 1;
        self.add_valid(at);
    }

    /// Unmaps `lpn`.
    #[inline(always)]
    fn unmap(&mut self, lpn: u32) {
        let entry = self.l2p[lpn as usize];
        if entry == 0 {
            // No write, so that trimming unused addresses takes no memory.
            return;
        }
        self.l2p[lpn as usize] = 0;
        let unit = Pun((entry & !TRIMMED) - 1);
        if entry & TRIMMED == 0 {
            self.mapped -= 1;
            self.drop_valid(unit);
            return;
        }
        let tombstone = self.tombstones.get_mut(&unit.0).expect("the map points to a tombstone");
        tombstone.refs -= 1;
        if tombstone.refs == 0 {
            self.tombstones.remove(&unit.0);
            self.live_tombstones -= 1;
            self.drop_valid(unit);
        }
    }

    #[inline]
    fn add_valid(&mut self, at: Pun) {
        let block = self.layout.block_of_unit(at);
        self.live_bits[at.0 as usize / 64] |= 1 << (at.0 % 64);
        self.blocks[block.0 as usize].valid += 1;
        self.valid_total += 1;
        self.count_valid(block, 1);
        debug_assert!(
            self.blocks[block.0 as usize].state == BlockState::Open,
            "data in a closed block"
        );
    }

    #[inline]
    fn drop_valid(&mut self, at: Pun) {
        let block = self.layout.block_of_unit(at);
        let index = block.0 as usize;
        self.live_bits[at.0 as usize / 64] &= !(1 << (at.0 % 64));
        self.blocks[index].valid -= 1;
        self.valid_total -= 1;
        let (die_group, place) = self.layout.split_block(block);
        let kind = self.kind_at(place);
        let die_group = &mut self.die_groups[die_group.0 as usize];
        die_group.valid -= 1;
        die_group.slc_valid -= kind as u64;
        if self.blocks[index].state == BlockState::Sealed {
            die_group.part_mut(kind).candidates.lower(place, self.blocks[index].valid);
        }
    }

    /// As [`Self::drop_valid`] of `from` and [`Self::add_valid`] of `to`. A copy stays on its die
    /// group, whose counts change only if it goes to a block of another kind.
    #[inline(always)]
    fn move_valid(&mut self, from: Pun, to: Pun) {
        let (old, new) = (self.layout.block_of_unit(from), self.layout.block_of_unit(to));
        if self.config.slc.is_some() || self.blocks[old.0 as usize].state == BlockState::Sealed {
            self.drop_valid(from);
            return self.add_valid(to);
        }
        self.live_bits[from.0 as usize / 64] &= !(1 << (from.0 % 64));
        self.live_bits[to.0 as usize / 64] |= 1 << (to.0 % 64);
        self.blocks[old.0 as usize].valid -= 1;
        self.blocks[new.0 as usize].valid += 1;
        debug_assert!(
            self.layout.die_group_of(old) == self.layout.die_group_of(new),
            "a copy changes die group"
        );
        debug_assert!(
            self.blocks[new.0 as usize].state == BlockState::Open,
            "data in a closed block"
        );
    }

    /// Adds `units` valid units of `block` to the counts of its die group.
    #[inline]
    fn count_valid(&mut self, block: BlockId, units: u32) {
        let (die_group, place) = self.layout.split_block(block);
        let kind = self.kind_at(place);
        let die_group = &mut self.die_groups[die_group.0 as usize];
        die_group.valid += u64::from(units);
        die_group.slc_valid += u64::from(units) * kind as u64;
    }

    /// Every unit of `program_unit` is committed.
    #[inline(always)]
    pub fn program_unit_done(&mut self, program_unit: ProgramUnitId) {
        let block = self.layout.block_of(program_unit);
        let index = block.0 as usize;
        self.blocks[index].program_units_in_flight -= 1;
        if self.layout.is_slc(block) {
            self.count_region_program_unit(block, -1);
        }
        if self.blocks[index].program_units_in_flight == 0 && !self.is_frontier(block) {
            self.close(block);
        }
    }

    /// The block accepts no more program units and has none in flight.
    fn close(&mut self, block: BlockId) {
        if self.retirement.take_closing(block) {
            self.close_failed(block);
        } else {
            self.seal(block);
        }
    }

    fn seal(&mut self, block: BlockId) {
        let index = block.0 as usize;
        self.blocks[index].state = BlockState::Sealed;
        let (die_group, place) = self.layout.split_block(block);
        let kind = self.kind_at(place);
        let part = self.die_groups[die_group.0 as usize].part_mut(kind);
        part.candidates.seal(place, self.blocks[index].valid);
    }

    /// Checks that the valid units equal the mapped logical units plus the live tombstones (law 2),
    /// by running sums.
    ///
    /// # Panics
    /// If the law is broken.
    pub fn assert_conserved(&self) {
        assert_eq!(
            self.valid_total,
            self.mapped + self.live_tombstones,
            "valid units must be mapped units plus live tombstones"
        );
    }
}

#[inline]
fn decode_data(entry: u32) -> Option<Pun> {
    (entry != 0 && entry & TRIMMED == 0).then(|| Pun(entry - 1))
}
