//! Where host data goes: the open log block of its group, and whose merge makes room for it.

use prism_nand::{BlockId, LaneId, RowId};

use super::{Hybrid, Use};
use crate::layer::HostPlace;

impl Hybrid {
    /// The stream of a logical unit: its data group.
    #[must_use]
    #[inline]
    pub fn stream_of(&self, lpn: u32) -> u32 {
        self.group_units.divide(lpn)
    }

    /// Where the next row of `group` goes.
    #[must_use]
    pub fn host_place(&self, group: u32) -> HostPlace {
        if let Some(open) = self.groups[group as usize].open {
            return HostPlace::Lane(LaneId(self.lane_of(open) as u32));
        }
        if !self.may_open(group) {
            return HostPlace::Blocked;
        }
        let lane = self.freest_lane().expect("a block is erased");
        HostPlace::Lane(LaneId(lane as u32))
    }

    fn may_open(&self, group: u32) -> bool {
        let logs = self.groups[group as usize].logs.len() as u32;
        logs < self.config.group_log_blocks && self.log_total < self.logs_max && self.free_total > 0
    }

    /// Whether further rows may be programmed into `block`.
    #[must_use]
    pub fn is_writing(&self, block: BlockId) -> bool {
        // A log block that was closed early may be completed in place when it is merged.
        !matches!(self.uses[block.0 as usize], Use::Free | Use::Data | Use::Dead)
    }

    /// The row that the next row of `group` would be, if a log block is open.
    #[must_use]
    pub fn next_row(&self, group: u32) -> Option<RowId> {
        self.groups[group as usize].open.map(|block| self.row_of_next(block))
    }

    /// Takes the next row of the open log block of `group`, opening one if none is.
    ///
    /// # Panics
    /// If [`Hybrid::host_place`] does not offer one on `lane`.
    pub fn reserve_host(&mut self, lane: LaneId, group: u32) -> RowId {
        assert!(self.host_place(group) == HostPlace::Lane(lane), "a row that was not offered");
        let block = match self.groups[group as usize].open {
            Some(block) => block,
            None => self.open_log(group),
        };
        let row = self.take_row(block);
        if self.next[block as usize] == self.layout.rows_per_block() {
            self.close(block);
        }
        row
    }

    /// Takes the next row of `block`, to be left empty, if `block` is being written and that
    /// row is not behind `until`.
    pub fn reserve_pad(&mut self, block: BlockId, until: RowId) -> Option<RowId> {
        let index = block.0;
        let rows = self.layout.rows_per_block();
        let open = match self.uses[index as usize] {
            Use::Log => self.is_open(index),
            Use::Target | Use::Merging => self.next[index as usize] < rows,
            _ => false,
        };
        if !open || self.row_of_next(index) > until {
            return None;
        }
        let row = self.take_row(index);
        if self.uses[index as usize] == Use::Log && self.next[index as usize] == rows {
            self.close(index);
        }
        Some(row)
    }

    fn open_log(&mut self, group: u32) -> u32 {
        let block = self.take_free().expect("the block that was offered");
        self.uses[block as usize] = Use::Log;
        self.group_of[block as usize] = group;
        self.log_total += 1;
        self.open_logs.insert(self.opened[block as usize], block);
        let group = &mut self.groups[group as usize];
        group.logs.push(block);
        group.open = Some(block);
        block
    }

    pub(super) fn row_of_next(&self, block: u32) -> RowId {
        RowId(block * self.layout.rows_per_block() + self.next[block as usize])
    }

    pub(super) fn take_row(&mut self, block: u32) -> RowId {
        let row = self.row_of_next(block);
        self.next[block as usize] += 1;
        self.rows_in_flight[block as usize] += 1;
        row
    }

    /// An open log block takes no more rows.
    fn close(&mut self, block: u32) {
        self.open_logs.remove(&self.opened[block as usize]);
        self.groups[self.group_of[block as usize] as usize].open = None;
    }

    /// A closed log block has no row under way any more.
    pub(super) fn seal(&mut self, block: u32) {
        if self.valid[block as usize] == 0 {
            self.spend(block);
            return;
        }
        self.uses[block as usize] = Use::Sealed;
        self.note_change(block);
        let lane = self.lane_of(block);
        self.lanes[lane].sealed.insert(self.opened[block as usize], block);
    }

    /// `block` is no log block any more. Who waited for that looks again.
    pub(super) fn retire_log(&mut self, block: u32) {
        self.log_total -= 1;
        self.spent_total -= u32::from(self.uses[block as usize] == Use::Spent);
        let group = &mut self.groups[self.group_of[block as usize] as usize];
        group.logs.retain(|&log| log != block);
        if let Some(group) = self.wanted_by.remove(&block) {
            self.groups[group as usize].waits_for = None;
        }
    }

    /// `group` needs a log block and cannot have one: chooses the merge that makes room, and
    /// returns the lane that has to work on it. `None` if what could be merged has rows under
    /// way; the group asks again.
    ///
    /// A group that has its K log blocks gives up one of them. Else a full log block of the
    /// device goes, of whatever group; if none is full, the one open for longest. Which one,
    /// the policy says.
    pub fn make_room(&mut self, group: u32) -> Option<LaneId> {
        let lane = |block: u32| LaneId(self.lane_of(block) as u32);
        if let Some(block) = self.groups[group as usize].waits_for {
            return Some(lane(block));
        }
        let own = self.groups[group as usize].logs.len() as u32 >= self.config.group_log_blocks;
        if !own && self.log_total < self.logs_max {
            // No block is erased. Merges under way will give some back, and so do blocks
            // that wait for their erase.
            let dead = self.lanes.iter().position(|lane| !lane.dead.is_empty());
            return dead.map(|lane| LaneId(lane as u32));
        }
        if let Some(spent) = self.spent_for(group, own) {
            // Its erase makes room without a copy.
            return Some(lane(spent));
        }
        if !own && self.spent_total > 0 {
            return None;
        }
        let victim = if own { self.best_of(group) } else { self.best_of_all() }?;
        let lane = LaneId(self.lane_of(victim) as u32);
        if matches!(self.uses[victim as usize], Use::Sealed | Use::Log) {
            self.want(victim);
            self.groups[group as usize].waits_for = Some(victim);
            self.wanted_by.insert(victim, group);
        }
        Some(lane)
    }

    /// A log block that needs only its erase: one of `group`, or any that waits for it.
    fn spent_for(&self, group: u32, own: bool) -> Option<u32> {
        let is_spent = |&block: &u32| self.uses[block as usize] == Use::Spent;
        if own {
            return self.groups[group as usize].logs.iter().copied().find(is_spent);
        }
        self.lanes.iter().flat_map(|lane| &lane.dead).copied().find(is_spent)
    }

    /// Every log block without rows under way is to be merged: what host data would cost
    /// from now on is paid at once.
    pub fn want_all(&mut self) {
        for block in 0..self.uses.len() as u32 {
            let idle = self.rows_in_flight[block as usize] == 0;
            if matches!(self.uses[block as usize], Use::Sealed | Use::Log) && idle {
                self.want(block);
            }
        }
    }

    /// `victim` will be merged as soon as its lane comes to it.
    fn want(&mut self, victim: u32) {
        let lane = self.lane_of(victim);
        if self.uses[victim as usize] == Use::Log {
            self.close(victim);
        } else {
            self.lanes[lane].sealed.remove(&self.opened[victim as usize]);
        }
        self.uses[victim as usize] = Use::Wanted;
        self.lanes[lane].wanted.push_back(victim);
    }
}
