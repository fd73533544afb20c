//! Address ranges with mappings of their own on one drive.
//!
//! Each range is an FTL over its own part of the blocks, the same number on every plane, so that
//! all ranges use all dies. A range has its own address space; this module translates its addresses
//! to those of the device. Source: the ranges that `FTL_ioctl` configures in the paper on Prism-SSD
//! (Shen, Chen, Yadgar, Shao, ICDCS 2019, section IV-C), and drives whose first megabytes, where
//! file systems keep their tables, have another mapping than the rest.
//!
//! Ranges do not exchange blocks, and wear is levelled within each only.

mod config;
mod faults;
mod recover;
mod snapshot;

use prism_nand::{BlockId, Cause, DieGroupId, Geometry, Layout, ProgramUnitId, Pun};

use crate::config::ConfigError;
use crate::ftl::Ftl;
use crate::ftl::common_parts;
use crate::hybrid::MergeCounts;
use crate::plan::{HostPlace, ReadRun, UnitWrite, Units};

use config::part_of;
pub use config::{RangeConfig, RangesConfig};

/// A range and its position.
#[derive(Clone, Debug)]
struct Part {
    ftl: Ftl,
    /// Its first logical unit, stream and block of each plane.
    first_unit: u32,
    first_stream: u32,
    first_block: u32,
    /// Blocks per plane, of the range and of the device.
    blocks: u32,
    blocks_of_all: u32,
}

/// Translates blocks, program units and units between range and device.
impl Part {
    fn block_out(&self, block: BlockId) -> BlockId {
        let (die_group, place) = self.ftl.layout().split_block(block);
        let (plane, in_plane) = (place as u32 / self.blocks, place as u32 % self.blocks);
        let planes = self.ftl.layout().blocks_per_die_group() / self.blocks;
        let in_die_group = plane * self.blocks_of_all + self.first_block + in_plane;
        BlockId(die_group.0 * planes * self.blocks_of_all + in_die_group)
    }

    fn block_in(&self, block: BlockId) -> BlockId {
        let (plane, in_plane) = (block.0 / self.blocks_of_all, block.0 % self.blocks_of_all);
        BlockId(plane * self.blocks + in_plane - self.first_block)
    }

    fn program_unit_out(&self, program_unit: ProgramUnitId) -> ProgramUnitId {
        let program_units = self.ftl.layout().program_units_per_block();
        ProgramUnitId(
            self.block_out(BlockId(program_unit.0 / program_units)).0 * program_units
                + program_unit.0 % program_units,
        )
    }

    fn program_unit_in(&self, program_unit: ProgramUnitId) -> ProgramUnitId {
        let program_units = self.ftl.layout().program_units_per_block();
        ProgramUnitId(
            self.block_in(BlockId(program_unit.0 / program_units)).0 * program_units
                + program_unit.0 % program_units,
        )
    }

    fn unit_out(&self, unit: Pun) -> Pun {
        let units = self.ftl.layout().units_per_block();
        Pun(self.block_out(BlockId(unit.0 / units)).0 * units + unit.0 % units)
    }

    fn unit_in(&self, unit: Pun) -> Pun {
        let units = self.ftl.layout().units_per_block();
        Pun(self.block_in(BlockId(unit.0 / units)).0 * units + unit.0 % units)
    }

    fn write_in(&self, write: &UnitWrite) -> UnitWrite {
        let lpn = if write.lpn >= UnitWrite::PAD { write.lpn } else { write.lpn - self.first_unit };
        UnitWrite { lpn, source: write.source.map(|at| self.unit_in(at)), version: write.version }
    }

    fn write_out(&self, write: &mut UnitWrite) {
        if write.lpn < UnitWrite::PAD {
            write.lpn += self.first_unit;
        }
        write.source = write.source.map(|at| self.unit_out(at));
    }
}

/// The FTLs of all ranges as one FTL.
#[derive(Clone, Debug)]
pub struct Ranges {
    geometry: Geometry,
    layout: Layout,
    config: RangesConfig,
    parts: Vec<Part>,
    /// The range of each block of a plane.
    owners: Vec<u8>,
    /// Erases of every block.
    erases: Vec<u32>,
    /// By die group: the range that is asked first for the next victim.
    turns: Vec<u8>,
    seed: u64,
}

common_parts!(Ranges, RangesConfig);

impl Ranges {
    /// Empty ranges over erased flash.
    ///
    /// # Errors
    /// [`ConfigError`] if the numbers do not fit the flash.
    pub fn new(geometry: Geometry, config: RangesConfig, seed: u64) -> Result<Self, ConfigError> {
        config.check(&geometry)?;
        let ftls = config.ranges.iter();
        let ftls = ftls
            .map(|range| Ftl::new(part_of(&geometry, range), range.ftl.clone(), seed))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self::of(geometry, config, ftls, seed))
    }

    fn of(geometry: Geometry, config: RangesConfig, ftls: Vec<Ftl>, seed: u64) -> Self {
        let (mut parts, mut owners): (Vec<Part>, _) = (Vec::new(), Vec::new());
        let (mut first_unit, mut first_stream, mut first_block) = (0, 0, 0);
        for (place, (ftl, range)) in ftls.into_iter().zip(&config.ranges).enumerate() {
            let (units, streams) = (ftl.logical_units(), ftl.streams());
            let blocks = range.blocks_per_plane;
            let blocks_of_all = geometry.blocks_per_plane;
            owners.extend((0..blocks).map(|_| place as u8));
            parts.push(Part { ftl, first_unit, first_stream, first_block, blocks, blocks_of_all });
            first_unit += units;
            first_stream += streams;
            first_block += blocks;
        }
        let mut ranges = Self {
            layout: Layout::new(&geometry),
            erases: vec![0; geometry.blocks() as usize],
            turns: vec![0; geometry.die_groups() as usize],
            geometry,
            config,
            parts,
            owners,
            seed,
        };
        ranges.gather_erases();
        ranges
    }

    fn gather_erases(&mut self) {
        for part in &self.parts {
            for (block, &erases) in (0..).zip(part.ftl.erases()) {
                self.erases[part.block_out(BlockId(block)).0 as usize] = erases;
            }
        }
    }

    fn owner(&self, block: BlockId) -> usize {
        usize::from(self.owners[(block.0 % self.geometry.blocks_per_plane) as usize])
    }

    fn part(&self, block: BlockId) -> &Part {
        &self.parts[self.owner(block)]
    }

    fn part_mut(&mut self, block: BlockId) -> &mut Part {
        let owner = self.owner(block);
        &mut self.parts[owner]
    }

    fn place_of_unit(&self, lpn: u32) -> usize {
        self.parts.partition_point(|part| part.first_unit <= lpn) - 1
    }

    fn of_unit(&self, lpn: u32) -> &Part {
        &self.parts[self.place_of_unit(lpn)]
    }

    fn place_of_stream(&self, stream: u32) -> usize {
        self.parts.partition_point(|part| part.first_stream <= stream) - 1
    }

    fn of_stream(&self, stream: u32) -> &Part {
        &self.parts[self.place_of_stream(stream)]
    }
}

/// The interface that [`Ftl`] delegates to.
impl Ranges {
    /// Logical units that hold data.
    #[must_use]
    pub fn mapped(&self) -> u64 {
        self.parts.iter().map(|part| part.ftl.mapped()).sum()
    }

    /// Merges of all ranges that are mapped by block; `None` if none is.
    #[must_use]
    pub fn merges(&self) -> Option<MergeCounts> {
        let mut all = None;
        for merges in self.parts.iter().filter_map(|part| part.ftl.merges()) {
            all.get_or_insert_with(MergeCounts::default).add(&merges);
        }
        all
    }

    /// The number of streams of all ranges.
    #[must_use]
    pub fn streams(&self) -> u32 {
        self.parts.iter().map(|part| part.ftl.streams()).sum()
    }

    /// The stream of `lpn`.
    #[must_use]
    pub fn stream_of(&self, lpn: u32, handle: u32) -> u32 {
        let part = self.of_unit(lpn);
        part.first_stream + part.ftl.stream_of(lpn - part.first_unit, handle)
    }

    /// The physical unit of `lpn`.
    #[must_use]
    pub fn lookup(&self, lpn: u32) -> Option<Pun> {
        let part = self.of_unit(lpn);
        part.ftl.lookup(lpn - part.first_unit).map(|at| part.unit_out(at))
    }

    /// Prefetches the map entry of `lpn`.
    pub fn prefetch(&self, lpn: u32) {
        let part = self.of_unit(lpn);
        part.ftl.prefetch(lpn - part.first_unit);
    }

    /// The logical unit whose map entry points to `at`, if any.
    #[must_use]
    pub fn live(&self, at: Pun) -> Option<u32> {
        let part = self.part(self.layout.block_of_unit(at));
        part.ftl.live(part.unit_in(at)).map(|lpn| lpn + part.first_unit)
    }

    /// The fewest erased blocks of `die_group` in a range with page-level mapping; without such
    /// ranges, in any range.
    #[must_use]
    pub fn free_blocks(&self, die_group: DieGroupId) -> u32 {
        let free = |part: &Part| part.ftl.free_blocks(die_group);
        let by_unit = self.parts.iter().filter(|part| !part.ftl.places_host());
        let fewest = by_unit.map(free).min().or_else(|| self.parts.iter().map(free).min());
        fewest.unwrap_or(0)
    }

    /// Erased blocks of `die_group` in all ranges.
    #[must_use]
    pub fn erased_blocks(&self, die_group: DieGroupId) -> u32 {
        self.parts.iter().map(|part| part.ftl.free_blocks(die_group)).sum()
    }

    /// Whether cleaning or merging on `die_group` should start, for any range.
    #[must_use]
    pub fn below_low(&self, die_group: DieGroupId) -> bool {
        self.parts.iter().any(|part| part.ftl.below_low(die_group))
    }

    /// Whether cleaning or merging may stop, for all ranges.
    #[must_use]
    pub fn reached_high(&self, die_group: DieGroupId) -> bool {
        self.parts.iter().all(|part| part.ftl.reached_high(die_group))
    }

    /// Whether cleaning of `die_group` has priority over other work, in any range.
    #[must_use]
    pub fn is_urgent(&self, die_group: DieGroupId, critical: u32) -> bool {
        self.parts.iter().any(|part| part.ftl.is_urgent(die_group, critical))
    }

    /// Whether `die_group` holds no more than its share of the data of the range of `stream`.
    #[must_use]
    pub fn balanced(&self, die_group: DieGroupId, stream: u32) -> bool {
        self.of_stream(stream).ftl.balanced(die_group, 0)
    }

    /// Where the next program unit of `stream` may be written.
    #[must_use]
    pub fn host_place(&self, stream: u32, first: u32) -> HostPlace {
        let part = self.of_stream(stream);
        part.ftl.host_place(stream - part.first_stream, first.wrapping_sub(part.first_unit))
    }

    /// Whether `die_group` may be given a program unit of `stream`.
    #[must_use]
    pub fn host_may_write(&self, die_group: DieGroupId, stream: u32) -> bool {
        let part = self.of_stream(stream);
        part.ftl.host_may_write(die_group, stream - part.first_stream)
    }

    /// The program unit that [`Ranges::reserve_host`] would return, if a block is open.
    #[must_use]
    pub fn next_program_unit(
        &self,
        die_group: DieGroupId,
        stream: u32,
        first: u32,
    ) -> Option<ProgramUnitId> {
        let part = self.of_stream(stream);
        let first = first.wrapping_sub(part.first_unit);
        let program_unit = part.ftl.next_program_unit(die_group, stream - part.first_stream, first);
        program_unit.map(|program_unit| part.program_unit_out(program_unit))
    }

    /// Reserves the next program unit of `die_group` for `stream`.
    pub fn reserve_host(
        &mut self,
        die_group: DieGroupId,
        stream: u32,
        first: u32,
    ) -> ProgramUnitId {
        let place = self.place_of_stream(stream);
        let part = &mut self.parts[place];
        let first = first.wrapping_sub(part.first_unit);
        let program_unit = part.ftl.reserve_host(die_group, stream - part.first_stream, first);
        part.program_unit_out(program_unit)
    }

    /// A program unit of padding to be programmed before the one reserved last.
    pub fn take_pad(&mut self) -> Option<ProgramUnitId> {
        self.parts.iter_mut().find_map(|part| {
            let program_unit = part.ftl.take_pad()?;
            Some(part.program_unit_out(program_unit))
        })
    }

    /// Reserves the next program unit of `block`, up to `until`, for padding.
    pub fn reserve_pad(&mut self, block: BlockId, until: ProgramUnitId) -> Option<ProgramUnitId> {
        let part = self.part_mut(block);
        let (inner, until) = (part.block_in(block), part.program_unit_in(until));
        part.ftl.reserve_pad(inner, until).map(|program_unit| part.program_unit_out(program_unit))
    }

    /// A parity program unit whose stripe is complete.
    pub fn take_parity(&mut self) -> Option<ProgramUnitId> {
        self.parts.iter_mut().find_map(|part| {
            let program_unit = part.ftl.take_parity()?;
            Some(part.program_unit_out(program_unit))
        })
    }

    /// A die group that has to merge before `stream` can be written.
    pub fn make_room(&mut self, stream: u32, first: u32) -> Option<DieGroupId> {
        let place = self.place_of_stream(stream);
        let part = &mut self.parts[place];
        let first = first.wrapping_sub(part.first_unit);
        part.ftl.make_room(stream - part.first_stream, first)
    }

    /// Requests a merge of every log block.
    pub fn request_all_merges(&mut self) {
        self.parts.iter_mut().for_each(|part| part.ftl.request_all_merges());
    }

    /// A die group that has a block to erase and whose cleaning has to be started.
    pub fn take_idle_die_group(&mut self) -> Option<DieGroupId> {
        self.parts.iter_mut().find_map(|part| part.ftl.take_idle_die_group())
    }

    /// A program of `lpn` is in flight.
    pub fn write_begin(&mut self, lpn: u32) {
        let place = self.place_of_unit(lpn);
        let part = &mut self.parts[place];
        part.ftl.write_begin(lpn - part.first_unit);
    }

    /// `program_unit` is programmed.
    pub fn commit(&mut self, program_unit: ProgramUnitId, units: &[UnitWrite], lost: &[usize]) {
        let block = self.layout.block_of(program_unit);
        let part = self.part_mut(block);
        let inner: Vec<UnitWrite> = units.iter().map(|write| part.write_in(write)).collect();
        let program_unit = part.program_unit_in(program_unit);
        part.ftl.commit(program_unit, &inner, lost);
    }

    /// Trims `start..end` at once.
    pub fn trim_now(&mut self, start: u32, end: u32, version: u64) {
        for part in &mut self.parts {
            let (first, units) = (part.first_unit, part.ftl.logical_units());
            let (from, to) = (start.max(first), end.min(first + units));
            if from < to {
                part.ftl.trim_now(from - first, to - first, version);
            }
        }
    }

    /// The next victim on `die_group`, alternately of the ranges that are below their high
    /// watermark. A range at its high watermark would be cleaned without end while another waits
    /// for operations in flight.
    pub fn pick_victim(&mut self, die_group: DieGroupId) -> Option<BlockId> {
        let (count, turn) = (self.parts.len(), usize::from(self.turns[die_group.0 as usize]));
        for place in (0..count).map(|i| (turn + i) % count) {
            let part = &mut self.parts[place];
            if part.ftl.reached_high(die_group) {
                continue;
            }
            if let Some(victim) = part.ftl.pick_victim(die_group) {
                self.turns[die_group.0 as usize] = ((place + 1) % count) as u8;
                return Some(self.parts[place].block_out(victim));
            }
        }
        None
    }

    /// A block to be moved by wear levelling within its range.
    pub fn pick_for_wear(&mut self, die_group: DieGroupId) -> Option<BlockId> {
        self.parts.iter_mut().find_map(|part| {
            let block = part.ftl.pick_for_wear(die_group)?;
            Some(part.block_out(block))
        })
    }

    /// Whether copies out of `victim` reserve their program units when they are planned.
    #[must_use]
    pub fn copies_in_order(&self, victim: BlockId) -> bool {
        self.part(victim).ftl.places_host()
    }

    /// Plans the next program unit of copies out of `victim`.
    pub fn gather(
        &mut self,
        victim: BlockId,
        cursor: &mut u32,
        units: &mut Units,
        reads: &mut Vec<ReadRun>,
    ) {
        let part = self.part_mut(victim);
        let inner = part.block_in(victim);
        part.ftl.gather(inner, cursor, units, reads);
        reads.iter_mut().for_each(|run| run.program_unit = part.program_unit_out(run.program_unit));
        units.iter_mut().for_each(|unit| part.write_out(unit));
    }

    /// Reserves the program unit for copies out of `victim`.
    pub fn reserve_copy(&mut self, die_group: DieGroupId, victim: BlockId) -> ProgramUnitId {
        let part = self.part_mut(victim);
        let inner = part.block_in(victim);
        let program_unit = part.ftl.reserve_copy(die_group, inner);
        part.program_unit_out(program_unit)
    }

    /// The program unit that [`Ranges::reserve_copy`] would return.
    #[must_use]
    pub fn next_copy_program_unit(
        &self,
        die_group: DieGroupId,
        victim: BlockId,
    ) -> Option<ProgramUnitId> {
        let part = self.part(victim);
        part.ftl
            .next_copy_program_unit(die_group, part.block_in(victim))
            .map(|program_unit| part.program_unit_out(program_unit))
    }

    /// Every copy out of `victim` is programmed. Returns the block to be erased now.
    pub fn emptied(&mut self, victim: BlockId) -> Option<BlockId> {
        let part = self.part_mut(victim);
        let inner = part.block_in(victim);
        part.ftl.emptied(inner).map(|block| part.block_out(block))
    }

    /// The erase of `block` has ended.
    pub fn erased(&mut self, block: BlockId) {
        self.erases[block.0 as usize] += 1;
        let part = self.part_mut(block);
        let inner = part.block_in(block);
        part.ftl.erased(inner);
    }

    /// Whether further program units may be programmed into `block`.
    #[must_use]
    pub fn is_writing(&self, block: BlockId) -> bool {
        let part = self.part(block);
        part.ftl.is_writing(part.block_in(block))
    }

    /// The cause of the operations that empty `victim`.
    #[must_use]
    pub fn cause_of_cleaning(&self, victim: BlockId) -> Cause {
        let part = self.part(victim);
        part.ftl.cause_of_cleaning(part.block_in(victim))
    }

    /// Checks the invariants of every range.
    ///
    /// # Panics
    /// If one is broken.
    pub fn assert_conserved(&self) {
        self.parts.iter().for_each(|part| part.ftl.assert_conserved());
    }

    /// As [`Ranges::assert_conserved`], recounted, and the erases.
    ///
    /// # Panics
    /// If one is broken.
    pub fn assert_consistent(&self) {
        for part in &self.parts {
            part.ftl.assert_consistent();
            for (block, erases) in (0..).zip(part.ftl.erases()) {
                let out = part.block_out(BlockId(block));
                assert_eq!(part.block_in(out), BlockId(block), "translation of block numbers");
                assert_eq!(self.erases[out.0 as usize], *erases, "erases of {out:?}");
            }
        }
    }
}
