//! Host data: log blocks are opened, filled and closed, and merges make room for new ones.

use prism_nand::{BlockId, DieGroupId, ProgramUnitId};

use super::destination::{Blocker, Destination};
use super::{Hybrid, Logs, Use};

impl Hybrid {
    /// The stream of a logical unit: its data group.
    #[must_use]
    #[inline]
    pub fn stream_of(&self, lpn: u32) -> u32 {
        self.group_units.divide(lpn)
    }

    pub(super) fn may_open(&self, group: u32) -> bool {
        let logs = self.groups[group as usize].logs.len() as u32;
        logs < self.config.group_log_blocks && self.log_total < self.logs_max && self.free_total > 0
    }

    /// Whether further program units may be programmed into `block`.
    #[must_use]
    pub fn is_writing(&self, block: BlockId) -> bool {
        match self.uses[block.0 as usize] {
            _ if self.is_failed(block.0) => false,
            Use::Free | Use::Dead | Use::Retired => false,
            // The host may write further program units at their own offsets.
            Use::Data => {
                let full = self.next[block.0 as usize] == self.layout.program_units_per_block();
                self.config.logs != Logs::Groups && !full
            }
            // The merge of a log block that was closed early may complete it in place.
            _ => true,
        }
    }

    /// Reserves the next program unit of `block` for padding, if `block` is being written and that
    /// program unit is not after `until`.
    pub fn reserve_pad(&mut self, block: BlockId, until: ProgramUnitId) -> Option<ProgramUnitId> {
        let index = block.0;
        let program_units = self.layout.program_units_per_block();
        let open = match self.uses[index as usize] {
            Use::Log => self.is_open(index),
            Use::Target | Use::Merging | Use::Data => self.next[index as usize] < program_units,
            _ => false,
        };
        if !open || self.program_unit_of_next(index) > until {
            return None;
        }
        let program_unit = self.take_program_unit(index);
        if self.uses[index as usize] == Use::Log && self.next[index as usize] == program_units {
            self.close(index);
        }
        Some(program_unit)
    }

    /// Opens a log block for the writes of `group`.
    pub(super) fn open_log(&mut self, group: u32) -> u32 {
        let block = self.take_log(group);
        self.groups[group as usize].open = Some(block);
        block
    }

    /// Makes an erased block a log block of `group`.
    pub(super) fn take_log(&mut self, group: u32) -> u32 {
        let block = self.take_free().expect("an erased block");
        self.become_log(block, group);
        block
    }

    pub(super) fn become_log(&mut self, block: u32, group: u32) {
        self.uses[block as usize] = Use::Log;
        self.group_of[block as usize] = group;
        self.log_total += 1;
        self.open_logs.insert(self.opened[block as usize], block);
        self.groups[group as usize].logs.push(block);
    }

    pub(super) fn program_unit_of_next(&self, block: u32) -> ProgramUnitId {
        ProgramUnitId(block * self.layout.program_units_per_block() + self.next[block as usize])
    }

    pub(super) fn take_program_unit(&mut self, block: u32) -> ProgramUnitId {
        let program_unit = self.program_unit_of_next(block);
        self.next[block as usize] += 1;
        self.program_units_in_flight[block as usize] += 1;
        program_unit
    }

    /// An open log block accepts no more program units.
    pub(super) fn close(&mut self, block: u32) {
        self.open_logs.remove(&self.opened[block as usize]);
        if self.sequential == Some(block) {
            self.sequential_open = false;
        } else {
            self.groups[self.group_of[block as usize] as usize].open = None;
        }
    }

    /// A closed log block has no more program units in flight.
    pub(super) fn seal(&mut self, block: u32) {
        if self.valid[block as usize] == 0 {
            self.mark_spent(block);
            return;
        }
        self.uses[block as usize] = Use::Sealed;
        self.note_change(block);
        let die_group = self.die_group_of(block);
        self.die_groups[die_group].sealed.insert(self.opened[block as usize], block);
        let in_order = self.config.logs == Logs::Replacement || self.sequential == Some(block);
        if in_order || self.is_failed(block) {
            // A block that holds one logical block in order replaces its data block now. A failed
            // block is emptied.
            self.request_merge(block);
            self.note_idle(die_group);
        }
    }

    /// `block` is no longer a log block. The group that waited for it retries.
    pub(super) fn retire_log(&mut self, block: u32) {
        self.log_total -= 1;
        self.spent_total -= u32::from(self.uses[block as usize] == Use::Spent);
        if self.sequential == Some(block) {
            self.sequential = None;
        }
        let group = &mut self.groups[self.group_of[block as usize] as usize];
        group.logs.retain(|&log| log != block);
        if let Some(group) = self.wanted_by.remove(&block) {
            self.groups[group as usize].waits_for = None;
        }
    }

    /// `group` needs a log block and cannot open one: chooses a merge that makes room, and returns
    /// the die group that has to work on it. `None` if all candidates have program units in flight;
    /// the caller retries.
    ///
    /// A group that has K log blocks merges one of them. Otherwise a full log block of any group of
    /// the device is merged; if none is full, an open one. The policy chooses.
    pub fn make_room(&mut self, group: u32, first: u32) -> Option<DieGroupId> {
        let die_group = self.request_room(group, first);
        if die_group.is_none() {
            self.check_exhausted();
        }
        die_group
    }

    fn request_room(&mut self, group: u32, first: u32) -> Option<DieGroupId> {
        let die_group = |block: u32| DieGroupId(self.die_group_of(block) as u32);
        if let Some(block) = self.groups[group as usize].waits_for {
            return Some(die_group(block));
        }
        match self.destination(group, first) {
            Destination::Blocked(Blocker::LogBlock) => self.room_for_log(group, first),
            Destination::Blocked(Blocker::ErasedBlock) => self.die_group_with_dead(),
            Destination::Blocked(Blocker::Merge(log)) => {
                let may = match self.uses[log as usize] {
                    Use::Log => self.is_open(log) && self.is_idle(log),
                    other => other == Use::Sealed,
                };
                if may {
                    self.request_merge(log);
                }
                // A log block that is being written has to be requested again.
                (may || self.uses[log as usize] != Use::Log)
                    .then(|| DieGroupId(self.die_group_of(log) as u32))
            }
            Destination::Blocked(Blocker::Fill) => self.request_fill(group, first),
            Destination::Blocked(Blocker::InFlight) => {
                self.groups[group as usize].logs.first().map(|&log| die_group(log))
            }
            _ => None,
        }
    }

    fn die_group_with_dead(&self) -> Option<DieGroupId> {
        let dead = self.die_groups.iter().position(|die_group| !die_group.dead.is_empty());
        dead.map(|die_group| DieGroupId(die_group as u32))
    }

    /// Valid units before `first` in its logical block have to be copied to the block that replaces
    /// its data block, which is opened if there is none.
    fn request_fill(&mut self, group: u32, first: u32) -> Option<DieGroupId> {
        let program_unit = self.block_units.split(first).1;
        let log = match self.groups[group as usize].open {
            Some(log) => log,
            None => self.open_log(group),
        };
        self.groups[group as usize].awaits_program_unit = true;
        let die_group = self.die_group_of(log);
        let fills = &mut self.die_groups[die_group].fills;
        if !fills.iter().any(|&(block, _)| block == log) {
            fills.push_back((log, program_unit));
        }
        Some(DieGroupId(die_group as u32))
    }

    fn room_for_log(&mut self, group: u32, first: u32) -> Option<DieGroupId> {
        let die_group = |block: u32| DieGroupId(self.die_group_of(block) as u32);
        let run = self.config.logs == Logs::Fast && self.block_units.split(first).1 == 0;
        let own = match self.config.logs {
            // The sequential log block is not one of the others.
            Logs::Fast => !run,
            _ => self.groups[group as usize].logs.len() as u32 >= self.config.group_log_blocks,
        };
        if !own && self.log_total < self.logs_max {
            // No block is erased. Merges in flight and pending erases will free some.
            return self.die_group_with_dead();
        }
        if let Some(spent) = self.spent_for(group, own) {
            // Its erase makes room without a copy.
            return Some(die_group(spent));
        }
        if !own && self.spent_total > 0 {
            return None;
        }
        if self.config.logs == Logs::Replacement
            && let Some(switch) = self.switch_in_flight()
        {
            return Some(die_group(switch));
        }
        let victim = if own { self.best_of(group) } else { self.best_of_all() }?;
        let die_group = DieGroupId(self.die_group_of(victim) as u32);
        if matches!(self.uses[victim as usize], Use::Sealed | Use::Log) {
            self.request_merge(victim);
            self.groups[group as usize].waits_for = Some(victim);
            self.wanted_by.insert(victim, group);
        }
        Some(die_group)
    }

    /// A full log block that is about to replace a data block without a copy.
    fn switch_in_flight(&self) -> Option<u32> {
        let full =
            |block: &u32| self.next[*block as usize] == self.layout.program_units_per_block();
        self.die_groups.iter().flat_map(|die_group| &die_group.wanted).copied().find(full)
    }

    /// A log block that only needs its erase: one of `group`, or any pending one.
    fn spent_for(&self, group: u32, own: bool) -> Option<u32> {
        let is_spent = |&block: &u32| {
            self.uses[block as usize] == Use::Spent && self.sequential != Some(block)
        };
        if own {
            return self.groups[group as usize].logs.iter().copied().find(is_spent);
        }
        self.die_groups.iter().flat_map(|die_group| &die_group.dead).copied().find(is_spent)
    }

    /// Requests a merge of every log block without program units in flight, so that later host
    /// writes do not have to wait for them.
    pub fn request_all_merges(&mut self) {
        for block in 0..self.uses.len() as u32 {
            let idle = self.program_units_in_flight[block as usize] == 0;
            if matches!(self.uses[block as usize], Use::Sealed | Use::Log) && idle {
                self.request_merge(block);
            }
        }
    }

    /// Requests a merge of `victim` on its die group.
    pub(super) fn request_merge(&mut self, victim: u32) {
        let die_group = self.die_group_of(victim);
        if self.uses[victim as usize] == Use::Log {
            self.close(victim);
        } else {
            self.die_groups[die_group].sealed.remove(&self.opened[victim as usize]);
        }
        self.uses[victim as usize] = Use::Wanted;
        self.die_groups[die_group].wanted.push_back(victim);
    }
}
