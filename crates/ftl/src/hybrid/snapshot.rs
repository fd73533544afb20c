//! Snapshots of the hybrid mapping at rest. Stored are the map, what a block is used for, and the
//! lists in which order matters; what follows from these is worked out again. A merge may have been
//! interrupted between two of its steps, since these wait for the host as well; in the middle of
//! one it may not.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use prism_base::snapshot_fields;
use prism_nand::BlockId;

use super::{DieGroup, Group, Hybrid, Use};
use crate::ftl::snapshot::exactly;

snapshot_fields!(Group { values: logs, open, waits_for, awaits_program_unit, found; });

snapshot_fields!(DieGroup { values: free, dead, failed, wanted, fills, victim, copied; });

snapshot_fields!(Hybrid {
    parts: l2p, groups, die_groups;
    columns: uses, erases, next, group_of, logical, opened, changed, retirement.failed;
    values: opens, changes, next_die_group, logs_found, sequential, sequential_open,
        idle_die_groups;
});

impl Hybrid {
    /// Whether nothing is in flight: no program, no step of a merge, no padding that is due.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        let quiet = self.program_units_in_flight.iter().all(|&program_units| program_units == 0);
        let no_step = self.die_groups.iter().all(|die_group| die_group.step.is_none());
        let no_merge = self.groups.iter().all(|group| group.merging.is_none());
        let no_target = !self.uses.contains(&Use::Target);
        quiet
            && no_step
            && no_merge
            && no_target
            && self.pads.is_empty()
            && self.in_flight.is_empty()
    }

    /// Works out what follows from the fields that were loaded, and refuses contradictions.
    pub(crate) fn check(&mut self) -> Result<(), &'static str> {
        self.check_numbers()?;
        let logs_found = self.logs_found;
        let failed = self.retirement.failed.len();
        let failed = std::mem::replace(&mut self.retirement.failed, vec![false; failed]);
        (0..).zip(failed).filter(|(_, failed)| *failed).for_each(|(block, _)| self.fail(block));
        if self.is_read_only() {
            return Err("more blocks are bad than the drive can do without");
        }
        self.logs_found = logs_found;
        let waiting =
            (0..).zip(&self.groups).filter_map(|(group, of)| Some((of.waits_for?, group)));
        self.wanted_by = waiting.collect();
        self.check_units()?;
        self.check_blocks()?;
        self.check_lists()?;
        self.check_groups()
    }

    /// That numbers of blocks, groups and times are in range.
    fn check_numbers(&self) -> Result<(), &'static str> {
        let (program_units, blocks) = (self.layout.program_units_per_block(), self.uses.len());
        let (groups, logical) = (self.groups.len() as u32, self.data.len() as u32);
        let die_groups = self.die_groups.len() as u32;
        let idle = &self.idle_die_groups;
        let named = |group: &Group| {
            let logs = group.logs.iter().chain(&group.open).chain(&group.waits_for);
            logs.copied().max()
        };
        let fills = || self.die_groups.iter().flat_map(|die_group| &die_group.fills);
        let named = self.groups.iter().filter_map(named).chain(fills().map(|&(log, _)| log));
        if self.next.iter().any(|&next| next > program_units)
            || fills().any(|&(_, end)| end > program_units)
            || self.group_of.iter().any(|&group| group >= groups)
            || self.logical.iter().any(|&block| block >= logical)
            || self.opened.iter().any(|&opened| opened > self.opens)
            || self.changed.iter().any(|&changed| changed > self.changes)
            || named.chain(self.sequential).any(|block| block as usize >= blocks)
            || self.next_die_group > die_groups
            || idle.len() > self.die_groups.len()
            || idle.iter().any(|&die_group| die_group >= die_groups)
        {
            return Err("a block, a program unit or a time is beyond those there are");
        }
        Ok(())
    }

    /// Works out the map from physical to logical units, and what is live.
    fn check_units(&mut self) -> Result<(), &'static str> {
        let per_program_unit = self.layout.units_per_program_unit();
        for lpn in 0..self.l2p.len() as u32 {
            let Some(at) = self.lookup(lpn) else { continue };
            if at.0 >= self.geometry.units() || self.live(at).is_some() {
                return Err("two units are in one place, or one in none");
            }
            let block = self.layout.block_of_unit(at).0 as usize;
            let (logical, offset) = self.block_units.split(lpn);
            let place = at.0 - block as u32 * self.layout.units_per_block();
            let fits = match self.uses[block] {
                Use::Data => self.logical[block] == logical && place == offset,
                Use::Log | Use::Sealed | Use::Wanted | Use::Merging => true,
                _ => false,
            };
            let own = self.group_of[block] == logical / self.config.group_blocks;
            if !fits || !own || place >= self.next[block] * per_program_unit {
                return Err("a unit is in a block that cannot hold it");
            }
            self.p2l[at.0 as usize] = lpn + 1;
            self.map(lpn, at);
        }
        Ok(())
    }

    /// Works out what follows from the uses of blocks.
    fn check_blocks(&mut self) -> Result<(), &'static str> {
        self.free_total = 0;
        for block in 0..self.uses.len() as u32 {
            let index = block as usize;
            let opened = self.opened[index];
            self.log_total += u32::from(self.is_log(block));
            let other = match self.uses[index] {
                Use::Free => {
                    self.free_total += 1;
                    None
                }
                Use::Spent => {
                    self.spent_total += 1;
                    None
                }
                Use::Data => {
                    let data = &mut self.data[self.logical[index] as usize];
                    std::mem::replace(data, block + 1).checked_sub(1)
                }
                Use::Log if self.next[index] == self.layout.program_units_per_block() => {
                    return Err("an open log block is full");
                }
                Use::Log if !self.is_open(block) => return Err("a log block is not open"),
                Use::Log => self.open_logs.insert(opened, block),
                Use::Sealed => {
                    let die_group = self.die_group_of(block);
                    self.die_groups[die_group].sealed.insert(opened, block)
                }
                Use::Target => return Err("a merge is in flight"),
                Use::Wanted | Use::Merging | Use::Dead | Use::Retired => None,
            };
            if other.is_some() {
                return Err("two blocks are one logical block, or were opened at once");
            }
        }
        Ok(())
    }

    /// That every block is in the list of its die group that its use asks for, and in no other.
    fn check_lists(&self) -> Result<(), &'static str> {
        let mut listed = BTreeSet::new();
        for (index, die_group) in self.die_groups.iter().enumerate() {
            let own = |&block: &u32| self.die_group_of(block) == index;
            let DieGroup { free, dead, failed, wanted, victim, .. } = die_group;
            let blocks = free.iter().map(|block| (block, Use::Free));
            let blocks = blocks.chain(dead.iter().map(|block| (block, Use::Dead)));
            let blocks = blocks.chain(wanted.iter().map(|block| (block, Use::Wanted)));
            for (block, list) in blocks.chain(victim.iter().map(|block| (block, Use::Merging))) {
                if !own(block) || self.list_of(*block) != Some(list) || !listed.insert(*block) {
                    return Err("a block is in a list of another use, or in two");
                }
            }
            if !failed.iter().all(own) {
                return Err("a block that has failed is of another die group");
            }
        }
        let in_a_list = (0..self.uses.len() as u32).filter(|&block| self.list_of(block).is_some());
        if in_a_list.count() == listed.len() { Ok(()) } else { Err("a block is in no list") }
    }

    /// The use whose list names `block`.
    fn list_of(&self, block: u32) -> Option<Use> {
        match self.uses[block as usize] {
            Use::Spent => Some(Use::Dead),
            list @ (Use::Free | Use::Wanted | Use::Merging | Use::Dead) => Some(list),
            _ => None,
        }
    }

    /// That groups and blocks agree on log blocks.
    fn check_groups(&self) -> Result<(), &'static str> {
        let mut logs = 0;
        for (number, group) in (0..).zip(&self.groups) {
            let own = |&log: &u32| self.is_log(log) && self.group_of[log as usize] == number;
            let all: BTreeSet<u32> = group.logs.iter().copied().collect();
            let most = self.config.group_log_blocks.max(group.found) as usize;
            if !all.iter().all(own) || all.len() != group.logs.len() || all.len() > most {
                return Err("the log blocks of a data group are not its own");
            }
            logs += all.len() as u32;
            let open = |log: &u32| own(log) && self.uses[*log as usize] == Use::Log;
            let may_wait = |log: &u32| self.is_log(*log) && self.wanted_by[log] == number;
            if !group.open.iter().all(open) || !group.waits_for.iter().all(may_wait) {
                return Err("a data group has or waits for a log block that is none");
            }
        }
        if logs != self.log_total || logs > self.logs_max.max(self.logs_found) {
            return Err("log blocks are not those of the data groups, or too many");
        }
        match self.sequential.is_none_or(|run| self.is_log(run)) {
            true => Ok(()),
            false => Err("the sequential log block is none"),
        }
    }

    /// How many program units the flash may hold in `block`.
    pub(crate) fn program_units_expected(&self, block: BlockId) -> RangeInclusive<u32> {
        let (next, program_units) =
            (self.next[block.0 as usize], self.layout.program_units_per_block());
        match self.uses[block.0 as usize] {
            Use::Free => exactly(0),
            // A block that was closed early may hold fewer.
            _ if next == program_units => 0..=program_units,
            Use::Log | Use::Sealed | Use::Wanted | Use::Merging | Use::Data => exactly(next),
            _ => 0..=program_units,
        }
    }
}
