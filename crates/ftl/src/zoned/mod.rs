//! Zones: each written in order, at fixed places of one block, and erased by the host's reset.
//!
//! A zone is a block of a lane (a superblock over the lane's dies). Unit u of a zone stands at
//! unit u of its block, so that the map is a table of one entry a zone. A block is taken at the
//! first write after a reset, the least worn of those erased; the block that was reset waits for
//! its erase. The FTL never copies. Source: NVM Express Zoned Namespace Command Set 1.1;
//! ConfZNS (Song et al., SYSTOR'23) for zones over dies. Design: docs/design/zns.md.
//!
//! Rows of a block are handed out in order and end in any order over the dies, so what is on
//! flash is kept as rows done on each die. Cost: 9 bytes a zone, 20 bytes a block and 2 bytes a
//! block of a die.

mod config;
mod failed;
mod recover;
mod snapshot;

use std::collections::{BTreeSet, VecDeque};

use prism_base::Divisor;
use prism_nand::{BlockId, Geometry, LaneId, Layout, Pun, RowId};

use crate::config::ConfigError;
use crate::plan::{HostPlace, UnitWrite};

pub use config::ZonedConfig;
use failed::Failures;

/// What a block is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// Erased.
    Free,
    /// The block of this zone.
    Zone(u32),
    /// It waits for its erase, and before that for its rows under way to end. It was the block
    /// of this zone, if that is known.
    Dead(Option<u32>),
    /// It holds what zones that have failed had no room for.
    Relocation,
    /// It is bad and holds nothing, or nothing that is wanted.
    Retired,
}

/// The part of the state that belongs to one lane.
#[derive(Clone, Debug, Default)]
struct Lane {
    /// Erased blocks, by erases.
    free: BTreeSet<(u32, u32)>,
    /// Blocks to be erased, without rows under way.
    dead: VecDeque<u32>,
    /// Blocks of zones that have rows left.
    writing: u32,
}

/// The state of the zoned mapping.
#[derive(Clone, Debug)]
pub struct Zoned {
    geometry: Geometry,
    layout: Layout,
    config: ZonedConfig,
    zone_units: Divisor,
    /// Units of a zone that can be written.
    capacity: u32,
    /// By zone: its block plus one, 0 for none.
    block_of: Vec<u32>,
    /// By zone: units from its start that hold host data once they are on flash; what follows
    /// is padding.
    end: Vec<u32>,
    /// By block.
    uses: Vec<Use>,
    erases: Vec<u32>,
    next: Vec<u32>,
    rows_in_flight: Vec<u32>,
    /// By block and die of it: rows done.
    done: Vec<u16>,
    lanes: Vec<Lane>,
    /// Lanes that have got something to erase since that was last asked.
    idle_lanes: Vec<u32>,
    next_lane: u32,
    mapped: u64,
    failures: Failures,
}

impl Zoned {
    /// Empty zones over erased flash.
    ///
    /// # Errors
    /// [`ConfigError`] if the numbers do not fit the flash.
    pub fn new(geometry: Geometry, config: ZonedConfig) -> Result<Self, ConfigError> {
        config.check(&geometry)?;
        let (blocks, zones) = (geometry.blocks() as usize, config.zones as usize);
        let per_lane = geometry.blocks_per_lane();
        let lane = |lane: u32| Lane {
            free: (lane * per_lane..(lane + 1) * per_lane).map(|block| (0, block)).collect(),
            ..Lane::default()
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
            rows_in_flight: vec![0; blocks],
            done: vec![0; blocks * geometry.dies_per_superblock as usize],
            lanes: (0..geometry.lanes()).map(lane).collect(),
            idle_lanes: Vec::new(),
            next_lane: 0,
            mapped: 0,
            failures: Failures::new(config.zones, geometry.blocks()),
            geometry,
            config,
        })
    }

    /// The shape of the flash below.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Its addresses.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &ZonedConfig {
        &self.config
    }

    /// Erases of every block since the FTL began.
    #[must_use]
    pub fn erases(&self) -> &[u32] {
        &self.erases
    }

    /// Units on flash that hold data of the host and can be read.
    #[must_use]
    pub fn mapped(&self) -> u64 {
        self.mapped
    }

    /// Where `lpn` is; `None` if it is not on flash.
    #[must_use]
    #[inline]
    pub fn lookup(&self, lpn: u32) -> Option<Pun> {
        let (zone, offset) = self.zone_units.split(lpn);
        let block = self.block_of.get(zone as usize)?.checked_sub(1);
        if let Some(block) = block.filter(|_| offset < self.end[zone as usize]) {
            let at = Pun(block * self.layout.units_per_block() + offset);
            if self.is_done(self.layout.row_of(at)) {
                return Some(at);
            }
        }
        self.failures.relocated(lpn)
    }

    /// Nothing: a lookup is in a table that is small.
    #[inline]
    pub fn prefetch(&self, _lpn: u32) {}

    /// Whether the unit at `at` holds data of a zone; its logical unit if so.
    #[must_use]
    pub fn live(&self, at: Pun) -> Option<u32> {
        let block = self.layout.block_of_unit(at).0;
        let Use::Zone(zone) = self.uses[block as usize] else {
            return self.failures.lpn_at(at);
        };
        let lpn = zone * self.zone_units.get() + (at.0 - block * self.layout.units_per_block());
        (self.lookup(lpn) == Some(at)).then_some(lpn)
    }

    /// Units of `zone` on flash without a gap from its start on.
    #[must_use]
    pub fn written(&self, zone: u32) -> u32 {
        if self.is_broken(zone) {
            return self.readable(zone);
        }
        let Some(block) = self.block_of[zone as usize].checked_sub(1) else { return 0 };
        let rows = self.rows_done(block);
        (rows * self.layout.units_per_row()).min(self.end[zone as usize])
    }

    /// Whether `zone` has rows left to be handed out.
    #[must_use]
    pub fn has_rows(&self, zone: u32) -> bool {
        let Some(block) = self.block_of[zone as usize].checked_sub(1) else { return true };
        self.next[block as usize] < self.layout.rows_per_block()
    }

    /// Rows of `zone` under way.
    #[must_use]
    pub fn rows_in_flight(&self, zone: u32) -> u32 {
        let block = self.block_of[zone as usize].checked_sub(1);
        block.map_or(0, |block| self.rows_in_flight[block as usize])
    }

    /// Whether `zone` ends in padding: it takes no more data.
    #[must_use]
    pub fn is_padded(&self, zone: u32) -> bool {
        self.end[zone as usize] < self.capacity
    }

    /// The member of its block that `row` stands on, as an index of `done`, and its number
    /// there.
    fn member(&self, row: RowId) -> (usize, u32) {
        let dies = self.layout.dies_per_lane();
        let block = self.layout.block_of(row).0;
        let in_block = row.0 - block * self.layout.rows_per_block();
        ((block * dies + in_block % dies) as usize, in_block / dies)
    }

    fn is_done(&self, row: RowId) -> bool {
        let (member, on_die) = self.member(row);
        on_die < u32::from(self.done[member])
    }

    /// Rows of `block` that are done without a gap.
    fn rows_done(&self, block: u32) -> u32 {
        let dies = self.layout.dies_per_lane();
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

    /// Where the next row of `zone` goes.
    #[must_use]
    pub fn host_place(&self, zone: u32) -> HostPlace {
        if !self.is_sound(zone) {
            return self.relocation_place();
        }
        if let Some(block) = self.block_of[zone as usize].checked_sub(1) {
            return HostPlace::Lane(self.layout.lane_of(BlockId(block)));
        }
        // What is kept for relocation blocks is not for zones.
        let free = || self.lanes.iter().map(|lane| lane.free.len() as u32).sum::<u32>();
        if self.config.kept > 0 && free() <= self.config.kept {
            return HostPlace::Blocked;
        }
        self.lane_to_open().map_or(HostPlace::Blocked, |lane| HostPlace::Lane(LaneId(lane)))
    }

    /// The lane for a zone without a block: of those with erased blocks, one with fewest
    /// blocks being written, then with most erased ones, then the next in turn.
    fn lane_to_open(&self) -> Option<u32> {
        let lanes = self.lanes.len() as u32;
        let turn = |lane: u32| (lane + lanes - self.next_lane % lanes) % lanes;
        let free = (0..lanes).filter(|&lane| !self.lanes[lane as usize].free.is_empty());
        free.min_by_key(|&lane| {
            let Lane { free, writing, .. } = &self.lanes[lane as usize];
            (*writing, std::cmp::Reverse(free.len()), turn(lane))
        })
    }

    /// `zone` has no block and none is erased: a lane with one to erase. Where there is none,
    /// and will be none, for what a broken zone still has to keep, nothing more is written.
    #[must_use]
    pub fn make_room(&mut self, zone: u32) -> Option<LaneId> {
        let dead = self.lanes.iter().position(|lane| !lane.dead.is_empty());
        if dead.is_none() && !self.is_sound(zone) {
            self.end_without_shelter();
        }
        dead.map(|lane| LaneId(lane as u32))
    }

    /// The row that the next row of `zone` would be, if it has a block with rows left.
    #[must_use]
    pub fn next_row(&self, zone: u32) -> Option<RowId> {
        if !self.is_sound(zone) {
            return self.relocation_row();
        }
        let block = self.block_of[zone as usize].checked_sub(1)?;
        self.has_rows(zone).then(|| self.row_of_next(block))
    }

    fn row_of_next(&self, block: u32) -> RowId {
        RowId(block * self.layout.rows_per_block() + self.next[block as usize])
    }

    /// Takes the next row of `zone`, and a block if it has none.
    ///
    /// # Panics
    /// If [`Zoned::host_place`] does not offer one on `lane`, or the zone has no row left.
    pub fn reserve_host(&mut self, lane: LaneId, zone: u32) -> RowId {
        assert!(self.host_place(zone) == HostPlace::Lane(lane), "a row that was not offered");
        if !self.is_sound(zone) {
            return self.reserve_in_shelter(lane);
        }
        assert!(self.has_rows(zone), "zone {zone} is written to its end");
        let block = match self.block_of[zone as usize].checked_sub(1) {
            Some(block) => block,
            None => self.open(lane, zone),
        };
        let row = self.row_of_next(block);
        self.next[block as usize] += 1;
        self.rows_in_flight[block as usize] += 1;
        self.skip_done(block);
        row
    }

    fn open(&mut self, lane: LaneId, zone: u32) -> u32 {
        let state = &mut self.lanes[lane.0 as usize];
        let (_, block) = state.free.pop_first().expect("the block that was offered");
        state.writing += 1;
        self.next_lane = lane.0 + 1;
        self.uses[block as usize] = Use::Zone(zone);
        self.block_of[zone as usize] = block + 1;
        self.next[block as usize] = 0;
        block
    }

    /// Rows that were done before power was lost are not handed out again.
    fn skip_done(&mut self, block: u32) {
        self.skip_rows(block);
        if self.next[block as usize] == self.layout.rows_per_block() {
            let lane = self.lane_of(block);
            self.lanes[lane].writing -= 1;
        }
    }

    fn skip_rows(&mut self, block: u32) {
        let rows = self.layout.rows_per_block();
        while self.next[block as usize] < rows && self.is_done(self.row_of_next(block)) {
            self.next[block as usize] += 1;
        }
    }

    /// `block` of a zone takes no more rows.
    fn end_writing(&mut self, block: u32) {
        if self.next[block as usize] < self.layout.rows_per_block() {
            self.next[block as usize] = self.layout.rows_per_block();
            let lane = self.lane_of(block);
            self.lanes[lane].writing -= 1;
        }
    }

    fn lane_of(&self, block: u32) -> usize {
        self.layout.lane_of(BlockId(block)).0 as usize
    }

    /// `row` is programmed with `units` from its first unit on; the rest of it is padding.
    ///
    /// # Panics
    /// If a unit does not stand at its place.
    pub fn commit_row(&mut self, row: RowId, units: &[UnitWrite]) {
        let block = self.layout.block_of(row).0;
        let (member, on_die) = self.member(row);
        assert!(u32::from(self.done[member]) == on_die, "rows of a die end in order");
        self.done[member] += 1;
        self.rows_in_flight[block as usize] -= 1;
        let zone = match self.uses[block as usize] {
            Use::Zone(zone) => zone,
            Use::Relocation => return self.commit_relocated(row, units),
            used => {
                if matches!(used, Use::Dead(_)) && self.rows_in_flight[block as usize] == 0 {
                    self.bury(block);
                }
                return;
            }
        };
        let first = self.layout.first_unit(row).0 - block * self.layout.units_per_block();
        let data = units.iter().take_while(|unit| unit.lpn != UnitWrite::PAD);
        let mut count = 0;
        for unit in data {
            let place = zone * self.zone_units.get() + first + count;
            assert!(unit.lpn == place, "unit {} at the place of {place}", unit.lpn);
            count += 1;
        }
        self.mapped += u64::from(count);
        if count < self.layout.units_per_row() {
            self.end[zone as usize] = self.end[zone as usize].min(first + count);
        }
    }

    /// Empties `zone`: its block waits for its erase.
    ///
    /// # Panics
    /// If the zone is broken: then it stays as it is.
    pub fn reset(&mut self, zone: u32) {
        assert!(!self.is_broken(zone), "zone {zone} can be read and no more than that");
        self.give_up(zone, Use::Dead(Some(zone)));
    }

    /// The block of `zone` has failed: the zone holds nothing any more, and its block is not
    /// used again. The caller writes the zone no more.
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
            _ if self.rows_in_flight[block as usize] == 0 => self.bury(block),
            _ => {}
        }
    }

    /// A dead block has no rows under way any more: it waits for its erase, unless it is bad.
    fn bury(&mut self, block: u32) {
        if self.has_failed(BlockId(block)) {
            self.uses[block as usize] = Use::Retired;
        } else {
            self.list_dead(block);
        }
    }

    /// Units of `zone` that can be read.
    fn units_of(&self, zone: u32, block: u32) -> u32 {
        let (dies, row) = (self.layout.dies_per_lane(), self.layout.units_per_row());
        let of_member = |member: u32| {
            let rows = u32::from(self.done[(block * dies + member) as usize]);
            let begins = (0..rows).map(|on_die| (on_die * dies + member) * row);
            begins.map(|begin| self.end[zone as usize].saturating_sub(begin).min(row)).sum::<u32>()
        };
        (0..dies).map(of_member).sum()
    }

    fn list_dead(&mut self, block: u32) {
        let lane = self.lane_of(block);
        // An engine without time never asks.
        if self.lanes[lane].dead.is_empty() && !self.idle_lanes.contains(&(lane as u32)) {
            self.idle_lanes.push(lane as u32);
        }
        self.lanes[lane].dead.push_back(block);
    }

    /// A lane that has got something to erase and may not know; each is told once.
    pub fn take_idle_lane(&mut self) -> Option<LaneId> {
        self.idle_lanes.pop().map(LaneId)
    }

    /// Nothing: units of a zone are written once.
    pub fn write_begin(&mut self, _lpn: u32) {}

    /// Trims at once: zones that lie in `start..end` as wholes are reset, but for those that
    /// can only be read.
    pub fn trim_now(&mut self, start: u32, end: u32, _version: u64) {
        let units = self.zone_units.get();
        for zone in start.div_ceil(units)..end / units {
            if self.is_sound(zone) {
                self.reset(zone);
            }
        }
    }

    /// Erased blocks of `lane`.
    #[must_use]
    pub fn free_blocks(&self, lane: LaneId) -> u32 {
        self.lanes[lane.0 as usize].free.len() as u32
    }

    /// Whether `lane` has a block to erase.
    #[must_use]
    pub fn below_low(&self, lane: LaneId) -> bool {
        !self.lanes[lane.0 as usize].dead.is_empty()
    }

    /// Whether it has none.
    #[must_use]
    pub fn reached_high(&self, lane: LaneId) -> bool {
        !self.below_low(lane)
    }

    /// The next block of `lane` to be erased.
    pub fn pick_victim(&mut self, lane: LaneId) -> Option<BlockId> {
        self.lanes[lane.0 as usize].dead.pop_front().map(BlockId)
    }

    /// Whether further rows may be programmed into `block`.
    #[must_use]
    pub fn is_writing(&self, block: BlockId) -> bool {
        let rows = self.layout.rows_per_block();
        let index = block.0 as usize;
        matches!(self.uses[index], Use::Zone(_) | Use::Relocation) && self.next[index] < rows
    }

    /// The erase of a block has ended, on all its dies.
    ///
    /// # Panics
    /// If it was not to be erased.
    pub fn erased(&mut self, block: BlockId) {
        let index = block.0 as usize;
        assert!(matches!(self.uses[index], Use::Dead(_)), "an erase of a block in use");
        let dies = self.layout.dies_per_lane() as usize;
        self.done[index * dies..(index + 1) * dies].fill(0);
        self.erases[index] += 1;
        self.next[index] = 0;
        self.uses[index] = Use::Free;
        let lane = self.lane_of(block.0);
        self.lanes[lane].free.insert((self.erases[index], block.0));
    }

    /// Units readable = the sum over zones (law 2) is counted anew by
    /// [`Zoned::assert_consistent`]; here, that there are no more than zones have.
    ///
    /// # Panics
    /// If the law is broken.
    pub fn assert_conserved(&self) {
        let most = u64::from(self.config.zones) * u64::from(self.capacity);
        assert!(self.mapped <= most, "more units than zones have");
    }

    /// Every sum, counted anew over all zones and blocks.
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
            let lane = &self.lanes[self.lane_of(block as u32)];
            let listed = lane.free.contains(&(self.erases[block], block as u32));
            assert_eq!(listed, used == Use::Free, "erased blocks are listed");
            if let Use::Zone(zone) = used {
                assert_eq!(self.block_of[zone as usize], block as u32 + 1, "its own zone");
            }
        }
        for (index, lane) in self.lanes.iter().enumerate() {
            let own = |block: &u32| self.lane_of(*block) == index;
            let writing = (0..self.uses.len() as u32).filter(own);
            let of_zone = |&block: &u32| self.uses[block as usize] != Use::Relocation;
            let writing = writing.filter(|&block| self.is_writing(BlockId(block)));
            let writing = writing.filter(of_zone).count();
            assert_eq!(writing, lane.writing as usize, "blocks being written");
            let dead = |&block: &u32| matches!(self.uses[block as usize], Use::Dead(_));
            assert!(lane.dead.iter().all(dead));
        }
    }
}
