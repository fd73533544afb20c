//! Zone mapping: each zone is written in order, at fixed offsets of one block, and erased by a
//! reset of the host.
//!
//! A zone is a block of a die group (a superblock over the die group's dies). Unit u of a zone is
//! unit u of its block, so that the map is a table of one entry per zone. A block is allocated at
//! the first write after a reset, the least worn of the erased ones; the block of a reset zone
//! waits for its erase. The FTL makes no copies. Source: NVM Express Zoned Namespace Command Set
//! 1.1; ConfZNS (Song et al., SYSTOR'23) for zones over dies. Design: docs/design/zns.md.
//!
//! Program units of a block are reserved in order and end in any order over the dies, so the
//! written part is kept as the number of program units done on each die. Cost: 9 bytes per zone, 20
//! bytes per block and 2 bytes per block of a die.

mod config;
mod failed;
mod recover;
mod snapshot;

use std::collections::{BTreeSet, VecDeque};

use borsh::{BorshDeserialize, BorshSerialize};
use prism_base::Divisor;
use prism_nand::{BlockId, DieGroupId, Geometry, Layout, ProgramUnitId, Pun};

use crate::config::ConfigError;
use crate::ftl::common_parts;
use crate::plan::{HostPlace, UnitWrite};

pub use config::ZonedConfig;
use failed::Failures;

/// The use of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
enum Use {
    /// Erased.
    Free,
    /// The block of this zone.
    Zone(u32),
    /// It is to be erased when its program units in flight have ended. It was the block of this
    /// zone, if that is known.
    Dead(Option<u32>),
    /// A relocation block, with data of broken zones.
    Relocation,
    /// Bad, without valid data.
    Retired,
}

/// The part of the state that belongs to one die group.
#[derive(Clone, Debug, Default)]
struct DieGroup {
    /// Erased blocks, by erases.
    free: BTreeSet<(u32, u32)>,
    /// Blocks to be erased, without program units in flight.
    dead: VecDeque<u32>,
    /// Blocks of zones that have program units left.
    writing: u32,
}

/// The state of the zoned mapping.
#[derive(Clone, Debug)]
pub struct Zoned {
    geometry: Geometry,
    layout: Layout,
    config: ZonedConfig,
    zone_units: Divisor,
    /// The zone capacity in units.
    capacity: u32,
    /// By zone: its block plus one, 0 for none.
    block_of: Vec<u32>,
    /// By zone: units from its start that hold host data once they are on flash; the rest is
    /// padding.
    end: Vec<u32>,
    /// By block.
    uses: Vec<Use>,
    erases: Vec<u32>,
    next: Vec<u32>,
    program_units_in_flight: Vec<u32>,
    /// By block and die: program units done.
    done: Vec<u16>,
    die_groups: Vec<DieGroup>,
    /// Die groups that got a block to erase and were not yet returned.
    idle_die_groups: Vec<u32>,
    next_die_group: u32,
    mapped: u64,
    failures: Failures,
}

common_parts!(Zoned, ZonedConfig);

impl Zoned {
    /// Empty zones over erased flash.
    ///
    /// # Errors
    /// [`ConfigError`] if the configuration does not fit the flash.
    pub fn new(geometry: Geometry, config: ZonedConfig) -> Result<Self, ConfigError> {
        config.check(&geometry)?;
        let (blocks, zones) = (geometry.blocks() as usize, config.zones as usize);
        let per_die_group = geometry.blocks_per_die_group();
        let die_group = |die_group: u32| DieGroup {
            free: (die_group * per_die_group..(die_group + 1) * per_die_group)
                .map(|block| (0, block))
                .collect(),
            ..DieGroup::default()
        };
        let capacity = geometry.data_units_per_block();
        Ok(Self {
            layout: Layout::new(&geometry),
            zone_units: Divisor::new(config.zone_units),
            capacity,
            block_of: vec![0; zones],
            end: vec![capacity; zones],
            uses: vec![Use::Free; blocks],
            erases: vec![0; blocks],
            next: vec![0; blocks],
            program_units_in_flight: vec![0; blocks],
            done: vec![0; blocks * geometry.dies_per_superblock as usize],
            die_groups: (0..geometry.die_groups()).map(die_group).collect(),
            idle_die_groups: Vec::new(),
            next_die_group: 0,
            mapped: 0,
            failures: Failures::new(config.zones, geometry.blocks()),
            geometry,
            config,
        })
    }

    /// Host units on flash that can be read.
    #[must_use]
    pub fn mapped(&self) -> u64 {
        self.mapped
    }

    /// The physical unit of `lpn`; `None` if it is not on flash.
    #[must_use]
    #[inline]
    pub fn lookup(&self, lpn: u32) -> Option<Pun> {
        let (zone, offset) = self.zone_units.split(lpn);
        let block = self.block_of.get(zone as usize)?.checked_sub(1);
        if let Some(block) = block.filter(|_| offset < self.end[zone as usize]) {
            let at = Pun(block * self.layout.units_per_block() + offset);
            if self.is_done(self.layout.program_unit_of(at)) {
                return Some(at);
            }
        }
        self.failures.relocated(lpn)
    }

    /// No effect: the table is small.
    #[inline]
    pub fn prefetch(&self, _lpn: u32) {}

    /// The logical unit of a zone at `at`, if any.
    #[must_use]
    pub fn live(&self, at: Pun) -> Option<u32> {
        let block = self.layout.block_of_unit(at).0;
        let Use::Zone(zone) = self.uses[block as usize] else {
            return self.failures.lpn_at(at);
        };
        let lpn = zone * self.zone_units.get() + (at.0 - block * self.layout.units_per_block());
        (self.lookup(lpn) == Some(at)).then_some(lpn)
    }

    /// Units of `zone` on flash, from its start up to the first gap.
    #[must_use]
    pub fn written(&self, zone: u32) -> u32 {
        if self.is_broken(zone) {
            return self.readable(zone);
        }
        let Some(block) = self.block_of[zone as usize].checked_sub(1) else { return 0 };
        let program_units = self.program_units_done(block);
        (program_units * self.layout.units_per_program_unit()).min(self.end[zone as usize])
    }

    /// Whether `zone` has program units left to be reserved.
    #[must_use]
    pub fn has_program_units(&self, zone: u32) -> bool {
        let Some(block) = self.block_of[zone as usize].checked_sub(1) else { return true };
        self.next[block as usize] < self.layout.program_units_per_block()
    }

    /// Program units of `zone` in flight.
    #[must_use]
    pub fn program_units_in_flight(&self, zone: u32) -> u32 {
        let block = self.block_of[zone as usize].checked_sub(1);
        block.map_or(0, |block| self.program_units_in_flight[block as usize])
    }

    /// Whether `zone` ends in padding and accepts no more data.
    #[must_use]
    pub fn is_padded(&self, zone: u32) -> bool {
        self.end[zone as usize] < self.capacity
    }

    /// The member of `program_unit` as an index into `done`, and the number of `program_unit` on
    /// it.
    fn member(&self, program_unit: ProgramUnitId) -> (usize, u32) {
        let dies = self.layout.dies_per_die_group();
        let block = self.layout.block_of(program_unit).0;
        let in_block = program_unit.0 - block * self.layout.program_units_per_block();
        ((block * dies + in_block % dies) as usize, in_block / dies)
    }

    fn is_done(&self, program_unit: ProgramUnitId) -> bool {
        let (member, on_die) = self.member(program_unit);
        on_die < u32::from(self.done[member])
    }

    /// Program units of `block` that are done, up to the first gap.
    fn program_units_done(&self, block: u32) -> u32 {
        let dies = self.layout.dies_per_die_group();
        let of = |member: u32| u32::from(self.done[(block * dies + member) as usize]);
        let gap = |member: u32| of(member) * dies + member;
        (0..dies).map(gap).min().unwrap_or(0)
    }

    /// The stream of a logical unit: its zone.
    #[must_use]
    #[inline]
    pub fn stream_of(&self, lpn: u32) -> u32 {
        self.zone_units.divide(lpn)
    }

    /// Where the next program unit of `zone` may be written.
    #[must_use]
    pub fn host_place(&self, zone: u32) -> HostPlace {
        if !self.is_sound(zone) {
            return self.relocation_place();
        }
        if let Some(block) = self.block_of[zone as usize].checked_sub(1) {
            return HostPlace::DieGroup(self.layout.die_group_of(BlockId(block)));
        }
        // Zones must not use the blocks reserved for relocation.
        let free =
            || self.die_groups.iter().map(|die_group| die_group.free.len() as u32).sum::<u32>();
        if self.config.kept > 0 && free() <= self.config.kept {
            return HostPlace::Blocked;
        }
        self.die_group_to_open()
            .map_or(HostPlace::Blocked, |die_group| HostPlace::DieGroup(DieGroupId(die_group)))
    }

    /// The die group for a zone without a block: of those with erased blocks, the one with the
    /// fewest blocks being written, then with the most erased blocks, then the next in rotation.
    fn die_group_to_open(&self) -> Option<u32> {
        let die_groups = self.die_groups.len() as u32;
        let turn = |die_group: u32| {
            (die_group + die_groups - self.next_die_group % die_groups) % die_groups
        };
        let free = (0..die_groups)
            .filter(|&die_group| !self.die_groups[die_group as usize].free.is_empty());
        free.min_by_key(|&die_group| {
            let DieGroup { free, writing, .. } = &self.die_groups[die_group as usize];
            (*writing, std::cmp::Reverse(free.len()), turn(die_group))
        })
    }

    /// A die group with a block to erase, for `zone`, which has no block while none is erased. If
    /// there is none and will be none for data of a broken zone, the FTL becomes read-only.
    #[must_use]
    pub fn make_room(&mut self, zone: u32) -> Option<DieGroupId> {
        let dead = self.die_groups.iter().position(|die_group| !die_group.dead.is_empty());
        if dead.is_none() && !self.is_sound(zone) {
            self.check_relocation_space();
        }
        dead.map(|die_group| DieGroupId(die_group as u32))
    }

    /// The next program unit of `zone`, if it has a block with program units left.
    #[must_use]
    pub fn next_program_unit(&self, zone: u32) -> Option<ProgramUnitId> {
        if !self.is_sound(zone) {
            return self.relocation_program_unit();
        }
        let block = self.block_of[zone as usize].checked_sub(1)?;
        self.has_program_units(zone).then(|| self.program_unit_of_next(block))
    }

    fn program_unit_of_next(&self, block: u32) -> ProgramUnitId {
        ProgramUnitId(block * self.layout.program_units_per_block() + self.next[block as usize])
    }

    /// Reserves the next program unit of `zone`, and allocates a block if it has none.
    ///
    /// # Panics
    /// If [`Zoned::host_place`] does not return `die_group`, or the zone has no program unit left.
    pub fn reserve_host(&mut self, die_group: DieGroupId, zone: u32) -> ProgramUnitId {
        assert!(
            self.host_place(zone) == HostPlace::DieGroup(die_group),
            "a program unit on another die group"
        );
        if !self.is_sound(zone) {
            return self.reserve_relocation(die_group);
        }
        assert!(self.has_program_units(zone), "zone {zone} is full");
        let block = match self.block_of[zone as usize].checked_sub(1) {
            Some(block) => block,
            None => self.open(die_group, zone),
        };
        let program_unit = self.program_unit_of_next(block);
        self.next[block as usize] += 1;
        self.program_units_in_flight[block as usize] += 1;
        self.skip_done(block);
        program_unit
    }

    fn open(&mut self, die_group: DieGroupId, zone: u32) -> u32 {
        let state = &mut self.die_groups[die_group.0 as usize];
        let (_, block) = state.free.pop_first().expect("an erased block");
        state.writing += 1;
        self.next_die_group = die_group.0 + 1;
        self.uses[block as usize] = Use::Zone(zone);
        self.block_of[zone as usize] = block + 1;
        self.next[block as usize] = 0;
        block
    }

    /// Skips program units that were done before a loss of power.
    fn skip_done(&mut self, block: u32) {
        self.skip_program_units(block);
        if self.next[block as usize] == self.layout.program_units_per_block() {
            let die_group = self.die_group_of(block);
            self.die_groups[die_group].writing -= 1;
        }
    }

    fn skip_program_units(&mut self, block: u32) {
        let program_units = self.layout.program_units_per_block();
        while self.next[block as usize] < program_units
            && self.is_done(self.program_unit_of_next(block))
        {
            self.next[block as usize] += 1;
        }
    }

    /// `block` of a zone accepts no more program units.
    fn end_writing(&mut self, block: u32) {
        if self.next[block as usize] < self.layout.program_units_per_block() {
            self.next[block as usize] = self.layout.program_units_per_block();
            let die_group = self.die_group_of(block);
            self.die_groups[die_group].writing -= 1;
        }
    }

    fn die_group_of(&self, block: u32) -> usize {
        self.layout.die_group_of(BlockId(block)).0 as usize
    }

    /// `program_unit` is programmed with `units` from its first unit on; the rest of it is padding.
    ///
    /// # Panics
    /// If a unit is not at its offset.
    pub fn commit_program_unit(&mut self, program_unit: ProgramUnitId, units: &[UnitWrite]) {
        let block = self.layout.block_of(program_unit).0;
        let (member, on_die) = self.member(program_unit);
        assert!(u32::from(self.done[member]) == on_die, "program units of a die end in order");
        self.done[member] += 1;
        self.program_units_in_flight[block as usize] -= 1;
        let zone = match self.uses[block as usize] {
            Use::Zone(zone) => zone,
            Use::Relocation => return self.commit_relocated(program_unit, units),
            used => {
                if matches!(used, Use::Dead(_)) && self.program_units_in_flight[block as usize] == 0
                {
                    self.mark_dead(block);
                }
                return;
            }
        };
        let first = self.layout.first_unit(program_unit).0 - block * self.layout.units_per_block();
        let data = units.iter().take_while(|unit| unit.lpn != UnitWrite::PAD);
        let mut count = 0;
        for unit in data {
            let place = zone * self.zone_units.get() + first + count;
            assert!(unit.lpn == place, "unit {} at the offset of {place}", unit.lpn);
            count += 1;
        }
        self.mapped += u64::from(count);
        if count < self.layout.units_per_program_unit() {
            self.end[zone as usize] = self.end[zone as usize].min(first + count);
        }
    }

    /// Resets `zone`: its block is to be erased.
    ///
    /// # Panics
    /// If the zone is broken; broken zones are not reset.
    pub fn reset(&mut self, zone: u32) {
        assert!(!self.is_broken(zone), "zone {zone} is broken and cannot be reset");
        self.give_up(zone, Use::Dead(Some(zone)));
    }

    /// The block of `zone` has failed: the data of the zone is lost, and its block is not used
    /// again. The caller must not write the zone any more.
    pub fn zone_failed(&mut self, zone: u32) {
        self.give_up(zone, Use::Retired);
        self.zone_gone(zone);
    }

    fn give_up(&mut self, zone: u32, then: Use) {
        let Some(block) = self.block_of[zone as usize].checked_sub(1) else { return };
        self.mapped -= u64::from(self.units_of(zone, block));
        self.end_writing(block);
        self.block_of[zone as usize] = 0;
        self.end[zone as usize] = self.capacity;
        self.uses[block as usize] = then;
        match then {
            Use::Retired => self.retire(block),
            _ if self.program_units_in_flight[block as usize] == 0 => self.mark_dead(block),
            _ => {}
        }
    }

    /// A dead block has no more program units in flight: it is listed to be erased, unless it is
    /// bad.
    fn mark_dead(&mut self, block: u32) {
        if self.has_failed(BlockId(block)) {
            self.uses[block as usize] = Use::Retired;
        } else {
            self.list_dead(block);
        }
    }

    /// Units of `zone` that can be read.
    fn units_of(&self, zone: u32, block: u32) -> u32 {
        let (dies, program_unit) =
            (self.layout.dies_per_die_group(), self.layout.units_per_program_unit());
        let of_member = |member: u32| {
            let program_units = u32::from(self.done[(block * dies + member) as usize]);
            let begins = (0..program_units).map(|on_die| (on_die * dies + member) * program_unit);
            begins
                .map(|begin| self.end[zone as usize].saturating_sub(begin).min(program_unit))
                .sum::<u32>()
        };
        (0..dies).map(of_member).sum()
    }

    fn list_dead(&mut self, block: u32) {
        let die_group = self.die_group_of(block);
        // Checked for duplicates, because the immediate engine never takes die groups from the
        // list.
        if self.die_groups[die_group].dead.is_empty()
            && !self.idle_die_groups.contains(&(die_group as u32))
        {
            self.idle_die_groups.push(die_group as u32);
        }
        self.die_groups[die_group].dead.push_back(block);
    }

    /// A die group that has a block to erase and whose cleaning has to be started; each is returned
    /// once.
    pub fn take_idle_die_group(&mut self) -> Option<DieGroupId> {
        self.idle_die_groups.pop().map(DieGroupId)
    }

    /// No effect: units of a zone are written once.
    pub fn write_begin(&mut self, _lpn: u32) {}

    /// Trims at once: sound zones that are completely in `start..end` are reset.
    pub fn trim_now(&mut self, start: u32, end: u32, _version: u64) {
        let units = self.zone_units.get();
        for zone in start.div_ceil(units)..end / units {
            if self.is_sound(zone) {
                self.reset(zone);
            }
        }
    }

    /// Erased blocks of `die_group`.
    #[must_use]
    pub fn free_blocks(&self, die_group: DieGroupId) -> u32 {
        self.die_groups[die_group.0 as usize].free.len() as u32
    }

    /// Whether `die_group` has a block to erase.
    #[must_use]
    pub fn below_low(&self, die_group: DieGroupId) -> bool {
        !self.die_groups[die_group.0 as usize].dead.is_empty()
    }

    /// Whether it has none.
    #[must_use]
    pub fn reached_high(&self, die_group: DieGroupId) -> bool {
        !self.below_low(die_group)
    }

    /// The next block of `die_group` to be erased.
    pub fn pick_victim(&mut self, die_group: DieGroupId) -> Option<BlockId> {
        self.die_groups[die_group.0 as usize].dead.pop_front().map(BlockId)
    }

    /// Whether further program units may be programmed into `block`.
    #[must_use]
    pub fn is_writing(&self, block: BlockId) -> bool {
        let program_units = self.layout.program_units_per_block();
        let index = block.0 as usize;
        matches!(self.uses[index], Use::Zone(_) | Use::Relocation)
            && self.next[index] < program_units
    }

    /// The erase of a block has ended, on all its dies.
    ///
    /// # Panics
    /// If it was not being erased.
    pub fn erased(&mut self, block: BlockId) {
        let index = block.0 as usize;
        assert!(matches!(self.uses[index], Use::Dead(_)), "an erase of a block in use");
        let dies = self.layout.dies_per_die_group() as usize;
        self.done[index * dies..(index + 1) * dies].fill(0);
        self.erases[index] += 1;
        self.next[index] = 0;
        self.uses[index] = Use::Free;
        let die_group = self.die_group_of(block.0);
        self.die_groups[die_group].free.insert((self.erases[index], block.0));
    }

    /// Checks that there are no more readable units than zones have. [`Zoned::assert_consistent`]
    /// recounts them (law 2).
    ///
    /// # Panics
    /// If there are more.
    pub fn assert_conserved(&self) {
        let most = u64::from(self.config.zones) * u64::from(self.capacity);
        assert!(self.mapped <= most, "more units than zones have");
    }

    /// Checks every sum against a recount over all zones and blocks.
    ///
    /// # Panics
    /// If a sum or a table disagrees.
    pub fn assert_consistent(&self) {
        self.assert_conserved();
        let mut mapped = 0;
        for (zone, &block) in self.block_of.iter().enumerate().filter(|(_, block)| **block > 0) {
            assert_eq!(self.uses[block as usize - 1], Use::Zone(zone as u32), "its own block");
            mapped += u64::from(self.units_of(zone as u32, block - 1));
        }
        let relocated = self.relocated_units();
        assert_eq!(mapped + relocated, self.mapped, "units that can be read");
        self.assert_failures();
        for (block, &used) in self.uses.iter().enumerate() {
            let die_group = &self.die_groups[self.die_group_of(block as u32)];
            let listed = die_group.free.contains(&(self.erases[block], block as u32));
            assert_eq!(listed, used == Use::Free, "erased blocks are listed");
            if let Use::Zone(zone) = used {
                assert_eq!(self.block_of[zone as usize], block as u32 + 1, "its own zone");
            }
        }
        for (index, die_group) in self.die_groups.iter().enumerate() {
            let own = |block: &u32| self.die_group_of(*block) == index;
            let writing = (0..self.uses.len() as u32).filter(own);
            let of_zone = |&block: &u32| self.uses[block as usize] != Use::Relocation;
            let writing = writing.filter(|&block| self.is_writing(BlockId(block)));
            let writing = writing.filter(of_zone).count();
            assert_eq!(writing, die_group.writing as usize, "blocks being written");
            let dead = |&block: &u32| matches!(self.uses[block as usize], Use::Dead(_));
            assert!(die_group.dead.iter().all(dead));
        }
    }
}
