//! Fault injection into the array. It is off until [`Nand::set_faults`] is called: until then every
//! operation succeeds and every read is correct.

use prism_base::{Nanos, SimTime};

use crate::array::Nand;
use crate::faults::{Bad, FaultModel, Faults, Health, UnitRead};
use crate::geometry::{BlockId, ProgramUnitId, Pun};
use crate::store::ProgramUnitState;

/// How a program or an erase ended, as in the status register of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It took effect.
    Passed,
    /// It did not; the block is bad from now on. Program units programmed before remain readable.
    Failed,
}

impl Nand {
    /// Enables fault injection as `model` describes, with random numbers from `seed`.
    ///
    /// # Panics
    /// If anything was programmed before, or faults are enabled already.
    pub fn set_faults(&mut self, model: FaultModel, seed: u64) {
        self.set_faults_by_kind(model, None, seed);
    }

    /// As [`Nand::set_faults`], with a separate model for the SLC blocks. The age of the data at
    /// the start is that of `model` for all blocks.
    ///
    /// # Panics
    /// As [`Nand::set_faults`].
    pub fn set_faults_by_kind(&mut self, model: FaultModel, slc: Option<FaultModel>, seed: u64) {
        assert!(
            self.faults.is_none() && self.program_units_programmed_total() == 0,
            "faults are set once, before the first program"
        );
        let (bits, blocks) = (self.geometry().unit.0 * 8, self.geometry().blocks());
        let shape = (*self.layout(), blocks);
        self.faults = Some(Box::new(Faults::new(model, slc, seed, bits, shape)));
    }

    /// Whether fault injection is enabled.
    #[must_use]
    #[inline]
    pub fn has_faults(&self) -> bool {
        self.faults.is_some()
    }

    /// The fault model, if there is one; if SLC blocks have their own, that of the other blocks.
    #[must_use]
    pub fn fault_model(&self) -> Option<&FaultModel> {
        self.faults.as_ref().map(|faults| &faults.model)
    }

    /// The bad blocks, by cause.
    #[must_use]
    pub fn health(&self) -> Health {
        self.faults.as_ref().map(|faults| faults.health(|_| true)).unwrap_or_default()
    }

    /// The bad SLC blocks, by cause.
    #[must_use]
    pub fn slc_health(&self) -> Health {
        let counts = |block| self.layout().is_slc(block);
        self.faults.as_ref().map(|faults| faults.health(counts)).unwrap_or_default()
    }

    /// Whether `block` is bad, from the factory or grown. Data programmed before can be read.
    #[must_use]
    pub fn is_bad(&self, block: BlockId) -> bool {
        self.faults.as_ref().is_some_and(|faults| faults.bad[block.0 as usize].is_some())
    }

    /// The bad blocks, by number.
    pub fn bad_blocks(&self) -> impl Iterator<Item = BlockId> + '_ {
        (0..self.geometry().blocks()).map(BlockId).filter(|&block| self.is_bad(block))
    }

    /// Restarts the clock at zero; it was at `now`. The age of all data is kept.
    pub fn clock_restarts(&mut self, now: SimTime) {
        if let Some(faults) = &mut self.faults {
            faults.model.age = Nanos(faults.model.age.0.saturating_add(now.0));
        }
    }

    /// A program of `program_unit` begins at `now`. The data of a block is as old as its first
    /// program unit on each die.
    pub fn programmed_at(&mut self, program_unit: ProgramUnitId, now: SimTime) {
        let dies = self.layout().dies_per_die_group();
        let (block, on_die) =
            (self.layout().block_of(program_unit), self.layout().place_of(program_unit).1);
        let member = (program_unit.0 - self.layout().first_program_unit(block).0) % dies;
        if let Some(faults) = self.faults.as_mut().filter(|_| on_die == 0) {
            faults.programmed((block.0 * dies + member) as usize, now);
        }
    }

    /// The outcome of reading `unit`, which is programmed, at `now`.
    pub fn read_unit(&mut self, unit: Pun, now: SimTime) -> UnitRead {
        let program_unit = self.layout().program_unit_of(unit);
        let (member, erases) = self.wear_place(program_unit);
        let levels = self.geometry().pages_per_program;
        let page = self.layout().place_of(program_unit).1 * levels + self.layout().pages_of(unit).0;
        match &mut self.faults {
            Some(faults) => faults.read(unit.0, member, page, erases, now),
            None => UnitRead { retries: 0, lost: false },
        }
    }

    /// Marks `unit` as lost content: every read of it fails until its block is erased.
    pub fn mark_lost(&mut self, unit: Pun) {
        if let Some(faults) = &mut self.faults {
            faults.mark_lost(unit.0);
        }
    }

    /// Whether `unit` is marked as lost.
    #[must_use]
    pub fn is_marked_lost(&self, unit: Pun) -> bool {
        self.faults.as_ref().is_some_and(|faults| faults.is_lost(unit.0))
    }

    /// Whether the program of `program_unit` has ended and did not fail.
    #[must_use]
    pub fn holds(&self, program_unit: ProgramUnitId) -> bool {
        let readable = self.faults.as_ref().is_none_or(|faults| faults.is_readable(program_unit.0));
        readable && self.check_read_program_unit(program_unit).is_ok()
    }

    /// Whether a program or an erase has failed since the last call, for callers that perform one
    /// operation at a time.
    pub fn take_status(&mut self) -> Status {
        let failed = self.faults.as_mut().is_some_and(|faults| std::mem::take(&mut faults.failed));
        if failed { Status::Failed } else { Status::Passed }
    }

    /// The status of the program of `program_unit`, which ends now.
    pub(crate) fn program_status(&mut self, program_unit: ProgramUnitId) -> Status {
        let (_, erases) = self.wear_place(program_unit);
        let block = self.layout().block_of(program_unit);
        let Some(faults) = &mut self.faults else { return Status::Passed };
        if !faults.program_fails(program_unit.0, erases) {
            return Status::Passed;
        }
        faults.failed = true;
        faults.bad[block.0 as usize].get_or_insert(Bad::Program);
        if let Some(store) = &mut self.store {
            store.states[program_unit.0 as usize] = ProgramUnitState::Torn;
        }
        Status::Failed
    }

    /// The status of the erase of `block`, which ends now on the member with index `index` in the
    /// device.
    pub(crate) fn erase_status(&mut self, block: BlockId, index: usize) -> Status {
        let erases = self.erase_counts()[index];
        let (layout, first) = (*self.layout(), self.layout().first_program_unit(block));
        let Some(faults) = &mut self.faults else { return Status::Passed };
        if faults.erase_fails(index, erases) {
            faults.failed = true;
            faults.bad[block.0 as usize].get_or_insert(Bad::Erase);
            return Status::Failed;
        }
        let first = layout.first_unit(first).0;
        faults.forget(first, first + layout.units_per_block());
        Status::Passed
    }

    /// The index of the member of `program_unit` in the device, and its erases.
    fn wear_place(&self, program_unit: ProgramUnitId) -> (usize, u32) {
        let dies = self.layout().dies_per_die_group();
        let block = self.layout().block_of(program_unit);
        let member = (program_unit.0 - self.layout().first_program_unit(block).0) % dies;
        let index = (block.0 * dies + member) as usize;
        (index, self.erase_counts()[index])
    }
}
