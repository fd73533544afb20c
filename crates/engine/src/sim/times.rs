//! Durations of operations, by the kind of block.

use prism_base::{Nanos, Slab};
use prism_ftl::ReadRun;
use prism_nand::{BlockId, ProgramUnitId};

use super::die::{Op, ReadOp};
use super::{Job, SimDevice};
use crate::config::SlcTiming;

impl SimDevice {
    /// The timing of `block`, if it is an SLC block.
    #[inline(always)]
    fn slc_of(&self, block: BlockId) -> Option<SlcTiming> {
        let slc = self.config.slc?;
        self.layout.is_slc(block).then_some(slc)
    }

    #[inline(always)]
    fn slc_of_program_unit(&self, program_unit: ProgramUnitId) -> Option<SlcTiming> {
        let slc = self.config.slc?;
        self.layout.is_slc(self.layout.block_of(program_unit)).then_some(slc)
    }

    /// How long an operation takes on an idle die.
    pub(super) fn estimate(&self, jobs: &Slab<Job>, op: Op) -> Nanos {
        let timing = &self.config.timing;
        match op {
            Op::Read(read) => {
                let slc = self.slc_of_program_unit(read.program_unit);
                slc.map_or(timing.t_read.mean(), |slc| slc.t_read) + self.transfer_of(&read)
            }
            Op::Program { job } => {
                let cells = match self.slc_of_program_unit(ProgramUnitId(jobs[job].program_unit)) {
                    Some(_) => self.program_time(&jobs[job]),
                    None => timing.t_program.mean(),
                };
                cells + self.program_transfer(&jobs[job])
            }
            Op::Erase { block, .. } => self.erase_time(block),
        }
    }

    /// How long the transfer of a read takes.
    #[inline(always)]
    pub(super) fn transfer_of(&self, read: &ReadOp) -> Nanos {
        self.transfers[usize::from(read.parts)]
    }

    /// What the read `run` transfers, in parts of a level.
    #[inline(always)]
    pub(crate) fn parts_of(&self, run: &ReadRun) -> u16 {
        // Units if several share a page, otherwise pages: the larger of the two numbers.
        run.units.max(run.pages) * self.parts_per_unit - run.sectors_left_out
    }

    /// How long the array takes to read `level` of `program_unit`.
    #[inline(always)]
    pub(crate) fn read_time(&self, program_unit: ProgramUnitId, level: u8) -> Nanos {
        match self.slc_of_program_unit(program_unit) {
            Some(slc) => slc.t_read,
            None => {
                let times = &self.config.timing.t_read;
                times.only().unwrap_or_else(|| times.of(self.page_of(program_unit, level)))
            }
        }
    }

    /// The number of a page within its block on its die.
    #[inline(always)]
    fn page_of(&self, program_unit: ProgramUnitId, level: u8) -> u32 {
        let (_, on_die) = self.layout.place_of(program_unit);
        on_die * self.pages_per_program + u32::from(level)
    }

    /// How long the transfer of a program takes; a copy within a plane has none. Of an SLC program
    /// unit, only the levels that have units are transferred and programmed.
    #[inline(always)]
    pub(super) fn program_transfer(&self, job: &Job) -> Nanos {
        if job.copied_back > 0 {
            return Nanos::ZERO;
        }
        match self.slc_of_program_unit(ProgramUnitId(job.program_unit)) {
            None => self.program_unit_transfer,
            Some(_) => {
                let levels = self.layout.levels_for(job.units.len() as u32);
                self.level_transfers[levels as usize]
            }
        }
    }

    /// How long the array takes for a program, and for the reads of a copy-back before it.
    #[inline(always)]
    pub(super) fn program_time(&self, job: &Job) -> Nanos {
        let program_unit = ProgramUnitId(job.program_unit);
        let mut time = match self.slc_of_program_unit(program_unit) {
            None => {
                let times = &self.config.timing.t_program;
                times.only().unwrap_or_else(|| times.of(self.layout.place_of(program_unit).1))
            }
            Some(slc) => {
                let levels = self.layout.levels_for(job.units.len() as u32);
                Nanos(slc.t_program.0 * u64::from(levels))
            }
        };
        if job.copied_back > 0 {
            time += job.back_time;
        }
        time
    }

    /// How long the erase of a block takes.
    #[inline(always)]
    pub(super) fn erase_time(&self, block: BlockId) -> Nanos {
        self.slc_of(block).map_or(self.config.timing.t_erase, |slc| slc.t_erase)
    }
}
