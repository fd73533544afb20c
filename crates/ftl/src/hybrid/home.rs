//! Where the next program unit of the host goes, by the kind of log blocks; program units at
//! their own offsets.

use prism_nand::{DieGroupId, ProgramUnitId};

use super::{Hybrid, Logs, Use};
use crate::plan::HostPlace;

/// Where a program unit of the host goes, or what has to be done first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Into this log block: the next program unit, or the program unit at its own offset.
    Log(u32),
    /// Into a log block that is opened for it.
    NewLog,
    /// Into the sequential log block, which is opened for it.
    NewSequential,
    /// Into this data block, which has program units left and becomes a log block again.
    Reopened(u32),
    /// To its own offset in this data block, which is still erased there.
    Data(u32),
    /// The same, in a data block that is opened for it.
    NewData,
    /// Nowhere yet.
    Wait(Need),
}

/// What a program unit of the host waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// A log block more for its group.
    Room,
    /// An erased block.
    Erased,
    /// The merge of this log block.
    Merge(u32),
    /// The program units before it, copied from the data block to the log block.
    Fill,
    /// What is in flight in its group.
    InFlight,
}

impl Hybrid {
    /// The way of a program unit of `group` that begins with unit `first`.
    pub(super) fn way(&self, group: u32, first: u32) -> Way {
        match self.config.logs {
            Logs::Groups => self.way_in_group(group),
            Logs::Replacement => self.way_home(group, first),
            Logs::Fast => self.way_fast(first),
        }
    }

    fn way_in_group(&self, group: u32) -> Way {
        match self.groups[group as usize].open {
            Some(open) => Way::Log(open),
            None if self.may_open(group) => Way::NewLog,
            None => Way::Wait(Need::Room),
        }
    }

    /// Each unit goes to its own offset of the block that replaces the data block of `logical`.
    fn way_home(&self, logical: u32, first: u32) -> Way {
        let program_unit = self.block_units.split(first).1;
        let group = &self.groups[logical as usize];
        if group.merging.is_some() {
            return Way::Wait(Need::InFlight);
        }
        if let Some(open) = group.open {
            let next = self.next[open as usize];
            return if program_unit < next {
                Way::Wait(Need::Merge(open))
            } else if self.is_live_between(logical, next, program_unit) {
                Way::Wait(Need::Fill)
            } else {
                Way::Log(open)
            };
        }
        if let Some(&log) = group.logs.first() {
            let sealed = self.uses[log as usize] == Use::Sealed;
            return Way::Wait(if sealed { Need::Merge(log) } else { Need::InFlight });
        }
        if !self.may_open(logical) {
            return Way::Wait(Need::Room);
        }
        match self.data[logical as usize].checked_sub(1) {
            Some(data) if self.next[data as usize] <= program_unit => Way::Reopened(data),
            _ if self.is_live_between(logical, 0, program_unit) => Way::Wait(Need::Fill),
            _ => Way::NewLog,
        }
    }

    /// As FAST has it: in place if the place is erased; a run from the beginning of a logical
    /// block to the sequential log block; anything else to the others (Lee and others, 2007,
    /// section 3.2). A unit of the run that does not follow its last one goes to the others
    /// as well, and the run has ended: the paper begins a new one with it, at whose head it
    /// could not stand.
    fn way_fast(&self, first: u32) -> Way {
        let (logical, program_unit) = self.block_units.split(first);
        if self.groups[0].merging != Some(logical) {
            match self.data[logical as usize].checked_sub(1) {
                Some(data) if self.next[data as usize] <= program_unit => return Way::Data(data),
                None if self.free_total > 0 => return Way::NewData,
                None => return Way::Wait(Need::Erased),
                Some(_) => {}
            }
        }
        match self.sequential {
            Some(run) if program_unit == 0 => return Way::Wait(Need::Merge(run)),
            Some(run) if self.continues(run, logical, program_unit) => return Way::Log(run),
            None if program_unit == 0 => {
                let may = self.log_total < self.logs_max && self.free_total > 0;
                return if may { Way::NewSequential } else { Way::Wait(Need::Room) };
            }
            _ => {}
        }
        let own = u32::from(self.sequential.is_some());
        let others = self.groups[0].logs.len() as u32 - own;
        match self.groups[0].open {
            Some(open) => Way::Log(open),
            None if others + 1 >= self.logs_max => Way::Wait(Need::Room),
            None if self.free_total == 0 => Way::Wait(Need::Erased),
            None => Way::NewLog,
        }
    }

    fn continues(&self, run: u32, logical: u32, program_unit: u32) -> bool {
        let index = run as usize;
        let open = self.uses[index] == Use::Log
            && self.next[index] < self.layout.program_units_per_block();
        open && self.logical[index] == logical && self.next[index] == program_unit
    }

    /// Whether something of `logical` is live in program units `from..to`.
    fn is_live_between(&self, logical: u32, from: u32, to: u32) -> bool {
        let start = logical * self.block_units.get();
        (start + from..start + to).any(|lpn| self.lookup(lpn).is_some())
    }

    /// Where the next program unit of `group`, which begins with unit `first`, goes.
    #[must_use]
    pub fn host_place(&self, group: u32, first: u32) -> HostPlace {
        let block = match self.way(group, first) {
            Way::Wait(_) => return HostPlace::Blocked,
            Way::Log(block) | Way::Reopened(block) | Way::Data(block) => Some(block),
            Way::NewLog | Way::NewSequential | Way::NewData => None,
        };
        let die_group = match block {
            Some(block) => self.die_group_of(block),
            None => self.freest_die_group().expect("a block is erased"),
        };
        HostPlace::DieGroup(DieGroupId(die_group as u32))
    }

    /// The program unit that [`Hybrid::reserve_host`] would take, if it stands in a block that is
    /// open.
    #[must_use]
    pub fn next_program_unit(&self, group: u32, first: u32) -> Option<ProgramUnitId> {
        match self.way(group, first) {
            Way::Log(block) | Way::Reopened(block) | Way::Data(block) => {
                let program_unit =
                    self.home_program_unit(block, first).unwrap_or(self.next[block as usize]);
                Some(ProgramUnitId(block * self.layout.program_units_per_block() + program_unit))
            }
            _ => None,
        }
    }

    /// The program unit of `block` where `first` has to stand; `None` if any will do.
    fn home_program_unit(&self, block: u32, first: u32) -> Option<u32> {
        let home = self.config.logs == Logs::Replacement || self.uses[block as usize] == Use::Data;
        home.then(|| self.block_units.split(first).1)
    }

    /// Takes the program unit for unit `first` and those that follow it: [`Hybrid::host_place`]
    /// offered one on `die_group`. Program units before it that stay empty have to be programmed
    /// first, if program units may not be left out: [`Hybrid::take_pad`].
    ///
    /// # Panics
    /// If it did not.
    pub fn reserve_host(&mut self, die_group: DieGroupId, group: u32, first: u32) -> ProgramUnitId {
        let way = self.way(group, first);
        let (logical, program_unit) = self.block_units.split(first);
        let block = match way {
            Way::Wait(_) => panic!("a program unit that was not offered"),
            Way::Log(block) | Way::Data(block) => block,
            Way::NewLog => self.open_log(group),
            Way::NewSequential => self.open_sequential(logical),
            Way::Reopened(block) => self.reopen(block, logical),
            Way::NewData => self.open_data(logical),
        };
        assert!(
            self.die_group_of(block) == die_group.0 as usize,
            "a program unit of another die group"
        );
        if self.home_program_unit(block, first).is_some() {
            self.leave_out(block, program_unit);
        }
        if self.config.logs == Logs::Fast && !matches!(way, Way::Data(_) | Way::NewData) {
            self.end_run_unless(block, logical);
        }
        self.groups[group as usize].awaits_program_unit = false;
        self.note_change(block);
        let taken = self.take_program_unit(block);
        if self.uses[block as usize] == Use::Log
            && self.next[block as usize] == self.layout.program_units_per_block()
        {
            self.close(block);
        }
        taken
    }

    /// Program units of `block` up to `program_unit` stay empty.
    fn leave_out(&mut self, block: u32, program_unit: u32) {
        if self.config.gaps {
            self.next[block as usize] = program_unit;
        }
        while self.next[block as usize] < program_unit {
            let pad = self.take_program_unit(block);
            self.pads.push_back(pad);
        }
    }

    /// A program unit that has to be programmed empty before the program unit that was reserved
    /// last.
    pub fn take_pad(&mut self) -> Option<ProgramUnitId> {
        self.pads.pop_front()
    }

    /// A unit of `logical` goes to `block`: if that is not the run of `logical`, the run can
    /// not go on.
    fn end_run_unless(&mut self, block: u32, logical: u32) {
        let Some(run) = self.sequential.filter(|&run| run != block) else { return };
        let open = self.uses[run as usize] == Use::Log && self.is_open(run);
        if open && self.logical[run as usize] == logical && self.is_idle(run) {
            self.want(run);
        }
    }

    fn open_sequential(&mut self, logical: u32) -> u32 {
        let block = self.take_log(0);
        self.logical[block as usize] = logical;
        self.sequential = Some(block);
        self.sequential_open = true;
        block
    }

    /// A data block with program units left becomes a log block again, with what it holds.
    fn reopen(&mut self, block: u32, logical: u32) -> u32 {
        self.data[logical as usize] = 0;
        self.opened[block as usize] = self.opens;
        self.opens += 1;
        self.become_log(block, logical);
        self.groups[logical as usize].open = Some(block);
        block
    }

    fn open_data(&mut self, logical: u32) -> u32 {
        let block = self.take_free().expect("the block that was offered");
        self.uses[block as usize] = Use::Data;
        self.group_of[block as usize] = logical / self.config.group_blocks;
        self.logical[block as usize] = logical;
        self.data[logical as usize] = block + 1;
        block
    }

    /// Whether no program unit of `block` is in flight.
    pub(super) fn is_idle(&self, block: u32) -> bool {
        self.program_units_in_flight[block as usize] == 0
    }
}
