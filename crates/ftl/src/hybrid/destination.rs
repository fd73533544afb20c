//! The destination of the next host program unit, by the use of log blocks; program units at their
//! own offsets.

use prism_nand::{DieGroupId, ProgramUnitId};

use super::{Hybrid, Logs, Use};
use crate::plan::HostPlace;

/// The destination of a host program unit, or what has to happen first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    /// This log block: its next program unit, or the one at the unit's own offset.
    Log(u32),
    /// A log block to be opened.
    NewLog,
    /// The sequential log block, to be opened.
    NewSequential,
    /// This data block, which has program units left and becomes a log block again.
    Reopened(u32),
    /// The unit's own offset in this data block, which is still erased there.
    Data(u32),
    /// The unit's own offset in a data block to be opened.
    NewData,
    /// None yet.
    Blocked(Blocker),
}

/// What a host program unit waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blocker {
    /// Another log block for its group.
    LogBlock,
    /// An erased block.
    ErasedBlock,
    /// The merge of this log block.
    Merge(u32),
    /// Copies of the preceding program units from the data block to the log block.
    Fill,
    /// Programs and merges in flight in its group.
    InFlight,
}

impl Hybrid {
    /// The destination of a program unit of `group` that begins with unit `first`.
    pub(super) fn destination(&self, group: u32, first: u32) -> Destination {
        match self.config.logs {
            Logs::Groups => self.destination_in_group(group),
            Logs::Replacement => self.destination_at_offset(group, first),
            Logs::Fast => self.destination_fast(first),
        }
    }

    fn destination_in_group(&self, group: u32) -> Destination {
        match self.groups[group as usize].open {
            Some(open) => Destination::Log(open),
            None if self.may_open(group) => Destination::NewLog,
            None => Destination::Blocked(Blocker::LogBlock),
        }
    }

    /// Each unit is written at its own offset of the block that replaces the data block of
    /// `logical`.
    fn destination_at_offset(&self, logical: u32, first: u32) -> Destination {
        let program_unit = self.block_units.split(first).1;
        let group = &self.groups[logical as usize];
        if group.merging.is_some() {
            return Destination::Blocked(Blocker::InFlight);
        }
        if let Some(open) = group.open {
            let next = self.next[open as usize];
            return if program_unit < next {
                Destination::Blocked(Blocker::Merge(open))
            } else if self.is_live_between(logical, next, program_unit) {
                Destination::Blocked(Blocker::Fill)
            } else {
                Destination::Log(open)
            };
        }
        if let Some(&log) = group.logs.first() {
            let sealed = self.uses[log as usize] == Use::Sealed;
            return Destination::Blocked(if sealed {
                Blocker::Merge(log)
            } else {
                Blocker::InFlight
            });
        }
        if !self.may_open(logical) {
            return Destination::Blocked(Blocker::LogBlock);
        }
        match self.data[logical as usize].checked_sub(1) {
            Some(data) if self.next[data as usize] <= program_unit => Destination::Reopened(data),
            _ if self.is_live_between(logical, 0, program_unit) => {
                Destination::Blocked(Blocker::Fill)
            }
            _ => Destination::NewLog,
        }
    }

    /// As in FAST (Lee and others, 2007, section 3.2): in the data block if the offset is erased
    /// there; a run from the beginning of a logical block in the sequential log block; any other
    /// unit in the other log blocks. A unit that does not continue the run goes there too and ends
    /// the run. The paper begins a new run with it, although it could not be the first unit of one.
    fn destination_fast(&self, first: u32) -> Destination {
        let (logical, program_unit) = self.block_units.split(first);
        if self.groups[0].merging != Some(logical) {
            match self.data[logical as usize].checked_sub(1) {
                Some(data) if self.next[data as usize] <= program_unit => {
                    return Destination::Data(data);
                }
                None if self.free_total > 0 => return Destination::NewData,
                None => return Destination::Blocked(Blocker::ErasedBlock),
                Some(_) => {}
            }
        }
        match self.sequential {
            Some(run) if program_unit == 0 => return Destination::Blocked(Blocker::Merge(run)),
            Some(run) if self.continues(run, logical, program_unit) => {
                return Destination::Log(run);
            }
            None if program_unit == 0 => {
                let may = self.log_total < self.logs_max && self.free_total > 0;
                return if may {
                    Destination::NewSequential
                } else {
                    Destination::Blocked(Blocker::LogBlock)
                };
            }
            _ => {}
        }
        let own = u32::from(self.sequential.is_some());
        let others = self.groups[0].logs.len() as u32 - own;
        match self.groups[0].open {
            Some(open) => Destination::Log(open),
            None if others + 1 >= self.logs_max => Destination::Blocked(Blocker::LogBlock),
            None if self.free_total == 0 => Destination::Blocked(Blocker::ErasedBlock),
            None => Destination::NewLog,
        }
    }

    fn continues(&self, run: u32, logical: u32, program_unit: u32) -> bool {
        let index = run as usize;
        let open = self.uses[index] == Use::Log
            && self.next[index] < self.layout.program_units_per_block();
        open && self.logical[index] == logical && self.next[index] == program_unit
    }

    /// Whether a unit of `logical` in program units `from..to` is valid.
    fn is_live_between(&self, logical: u32, from: u32, to: u32) -> bool {
        let start = logical * self.block_units.get();
        (start + from..start + to).any(|lpn| self.lookup(lpn).is_some())
    }

    /// Where the next program unit of `group`, which begins with unit `first`, may be written.
    #[must_use]
    pub fn host_place(&self, group: u32, first: u32) -> HostPlace {
        let block = match self.destination(group, first) {
            Destination::Blocked(_) => return HostPlace::Blocked,
            Destination::Log(block) | Destination::Reopened(block) | Destination::Data(block) => {
                Some(block)
            }
            Destination::NewLog | Destination::NewSequential | Destination::NewData => None,
        };
        let die_group = match block {
            Some(block) => self.die_group_of(block),
            None => self.freest_die_group().expect("a block is erased"),
        };
        HostPlace::DieGroup(DieGroupId(die_group as u32))
    }

    /// The program unit that [`Hybrid::reserve_host`] would return, if its block is open.
    #[must_use]
    pub fn next_program_unit(&self, group: u32, first: u32) -> Option<ProgramUnitId> {
        match self.destination(group, first) {
            Destination::Log(block) | Destination::Reopened(block) | Destination::Data(block) => {
                let program_unit =
                    self.program_unit_at_offset(block, first).unwrap_or(self.next[block as usize]);
                Some(ProgramUnitId(block * self.layout.program_units_per_block() + program_unit))
            }
            _ => None,
        }
    }

    /// The program unit of `block` for `first`; `None` if any will do.
    fn program_unit_at_offset(&self, block: u32, first: u32) -> Option<u32> {
        let fixed = self.config.logs == Logs::Replacement || self.uses[block as usize] == Use::Data;
        fixed.then(|| self.block_units.split(first).1)
    }

    /// Reserves the program unit for unit `first` and those that follow it, on the die group that
    /// [`Hybrid::host_place`] returned. If program units must not be skipped, those from
    /// [`Hybrid::take_pad`] have to be programmed first.
    ///
    /// # Panics
    /// If [`Hybrid::host_place`] returned something else.
    pub fn reserve_host(&mut self, die_group: DieGroupId, group: u32, first: u32) -> ProgramUnitId {
        let destination = self.destination(group, first);
        let (logical, program_unit) = self.block_units.split(first);
        let block = match destination {
            Destination::Blocked(_) => panic!("a program unit without a destination"),
            Destination::Log(block) | Destination::Data(block) => block,
            Destination::NewLog => self.open_log(group),
            Destination::NewSequential => self.open_sequential(logical),
            Destination::Reopened(block) => self.reopen(block, logical),
            Destination::NewData => self.open_data(logical),
        };
        assert!(
            self.die_group_of(block) == die_group.0 as usize,
            "a program unit of another die group"
        );
        if self.program_unit_at_offset(block, first).is_some() {
            self.skip_to(block, program_unit);
        }
        if self.config.logs == Logs::Fast
            && !matches!(destination, Destination::Data(_) | Destination::NewData)
        {
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

    /// Skips or pads the program units of `block` up to `program_unit`.
    fn skip_to(&mut self, block: u32, program_unit: u32) {
        if self.config.gaps {
            self.next[block as usize] = program_unit;
        }
        while self.next[block as usize] < program_unit {
            let pad = self.take_program_unit(block);
            self.pads.push_back(pad);
        }
    }

    /// A program unit of padding that has to be programmed before the one reserved last.
    pub fn take_pad(&mut self) -> Option<ProgramUnitId> {
        self.pads.pop_front()
    }

    /// A unit of `logical` is written to `block`. If that is not the sequential run of `logical`,
    /// the run ends.
    fn end_run_unless(&mut self, block: u32, logical: u32) {
        let Some(run) = self.sequential.filter(|&run| run != block) else { return };
        let open = self.uses[run as usize] == Use::Log && self.is_open(run);
        if open && self.logical[run as usize] == logical && self.is_idle(run) {
            self.request_merge(run);
        }
    }

    fn open_sequential(&mut self, logical: u32) -> u32 {
        let block = self.take_log(0);
        self.logical[block as usize] = logical;
        self.sequential = Some(block);
        self.sequential_open = true;
        block
    }

    /// A data block with program units left becomes a log block again and keeps its units.
    fn reopen(&mut self, block: u32, logical: u32) -> u32 {
        self.data[logical as usize] = 0;
        self.opened[block as usize] = self.opens;
        self.opens += 1;
        self.become_log(block, logical);
        self.groups[logical as usize].open = Some(block);
        block
    }

    fn open_data(&mut self, logical: u32) -> u32 {
        let block = self.take_free().expect("an erased block");
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
