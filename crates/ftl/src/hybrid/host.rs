//! Where host data goes: the open log block of its group, and whose merge makes room for it.

use prism_nand::{BlockId, DieGroupId, ProgramUnitId};

use super::home::{Need, Way};
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
            // Program units of the host may follow at their own offsets.
            Use::Data => {
                let full = self.next[block.0 as usize] == self.layout.program_units_per_block();
                self.config.logs != Logs::Groups && !full
            }
            // A log block that was closed early may be completed in place when it is merged.
            _ => true,
        }
    }

    /// Takes the next program unit of `block`, to be left empty, if `block` is being written and
    /// that program unit is not behind `until`.
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

    /// Opens a log block for what `group` writes.
    pub(super) fn open_log(&mut self, group: u32) -> u32 {
        let block = self.take_log(group);
        self.groups[group as usize].open = Some(block);
        block
    }

    /// Makes an erased block a log block of `group`.
    pub(super) fn take_log(&mut self, group: u32) -> u32 {
        let block = self.take_free().expect("the block that was offered");
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

    /// An open log block takes no more program units.
    pub(super) fn close(&mut self, block: u32) {
        self.open_logs.remove(&self.opened[block as usize]);
        if self.sequential == Some(block) {
            self.sequential_open = false;
        } else {
            self.groups[self.group_of[block as usize] as usize].open = None;
        }
    }

    /// A closed log block has no program unit in flight any more.
    pub(super) fn seal(&mut self, block: u32) {
        if self.valid[block as usize] == 0 {
            self.spend(block);
            return;
        }
        self.uses[block as usize] = Use::Sealed;
        self.note_change(block);
        let die_group = self.die_group_of(block);
        self.die_groups[die_group].sealed.insert(self.opened[block as usize], block);
        let in_order = self.config.logs == Logs::Replacement || self.sequential == Some(block);
        if in_order || self.is_failed(block) {
            // A block full of one logical block in order takes the place of the old one. What
            // has failed is emptied.
            self.want(block);
            self.note_idle(die_group);
        }
    }

    /// `block` is no log block any more. Who waited for that looks again.
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

    /// `group` needs a log block and cannot have one: chooses the merge that makes room, and
    /// returns the die group that has to work on it. `None` if what could be merged has program
    /// units under way; the group asks again.
    ///
    /// A group that has its K log blocks gives up one of them. Else a full log block of the
    /// device goes, of whatever group; if none is full, the one open for longest. Which one,
    /// the policy says.
    pub fn make_room(&mut self, group: u32, first: u32) -> Option<DieGroupId> {
        let asked = self.ask_for_room(group, first);
        if asked.is_none() {
            self.note_end();
        }
        asked
    }

    fn ask_for_room(&mut self, group: u32, first: u32) -> Option<DieGroupId> {
        let die_group = |block: u32| DieGroupId(self.die_group_of(block) as u32);
        if let Some(block) = self.groups[group as usize].waits_for {
            return Some(die_group(block));
        }
        match self.way(group, first) {
            Way::Wait(Need::Room) => self.room_for_log(group, first),
            Way::Wait(Need::Erased) => self.die_group_with_dead(),
            Way::Wait(Need::Merge(log)) => {
                let may = match self.uses[log as usize] {
                    Use::Log => self.is_open(log) && self.is_idle(log),
                    other => other == Use::Sealed,
                };
                if may {
                    self.want(log);
                }
                // One that is being written is asked for again.
                (may || self.uses[log as usize] != Use::Log)
                    .then(|| DieGroupId(self.die_group_of(log) as u32))
            }
            Way::Wait(Need::Fill) => self.ask_to_fill(group, first),
            Way::Wait(Need::InFlight) => {
                self.groups[group as usize].logs.first().map(|&log| die_group(log))
            }
            _ => None,
        }
    }

    fn die_group_with_dead(&self) -> Option<DieGroupId> {
        let dead = self.die_groups.iter().position(|die_group| !die_group.dead.is_empty());
        dead.map(|die_group| DieGroupId(die_group as u32))
    }

    /// What is live before `first` in its logical block has to be copied to the block that
    /// replaces it, which is opened if there is none.
    fn ask_to_fill(&mut self, group: u32, first: u32) -> Option<DieGroupId> {
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
            // The sequential log block has a place of its own.
            Logs::Fast => !run,
            _ => self.groups[group as usize].logs.len() as u32 >= self.config.group_log_blocks,
        };
        if !own && self.log_total < self.logs_max {
            // No block is erased. Merges in flight will give some back, and so do blocks
            // that wait for their erase.
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
            self.want(victim);
            self.groups[group as usize].waits_for = Some(victim);
            self.wanted_by.insert(victim, group);
        }
        Some(die_group)
    }

    /// A full log block that is about to take the place of a data block without a copy.
    fn switch_in_flight(&self) -> Option<u32> {
        let full =
            |block: &u32| self.next[*block as usize] == self.layout.program_units_per_block();
        self.die_groups.iter().flat_map(|die_group| &die_group.wanted).copied().find(full)
    }

    /// A log block that needs only its erase: one of `group`, or any that waits for it.
    fn spent_for(&self, group: u32, own: bool) -> Option<u32> {
        let is_spent = |&block: &u32| {
            self.uses[block as usize] == Use::Spent && self.sequential != Some(block)
        };
        if own {
            return self.groups[group as usize].logs.iter().copied().find(is_spent);
        }
        self.die_groups.iter().flat_map(|die_group| &die_group.dead).copied().find(is_spent)
    }

    /// Every log block without program units in flight is to be merged: what host data would cost
    /// from now on is paid at once.
    pub fn want_all(&mut self) {
        for block in 0..self.uses.len() as u32 {
            let idle = self.program_units_in_flight[block as usize] == 0;
            if matches!(self.uses[block as usize], Use::Sealed | Use::Log) && idle {
                self.want(block);
            }
        }
    }

    /// `victim` will be merged as soon as its die group comes to it.
    pub(super) fn want(&mut self, victim: u32) {
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
