//! State of a device with faults: bad blocks, when each block was programmed, and lost units.

use borsh::{BorshDeserialize, BorshSerialize};
use prism_base::{FastSet, Nanos, SimTime, snapshot_fields};

use super::{Draw, FaultModel, draw};
use crate::geometry::{BlockId, ProgramUnitId};
use crate::layout::Layout;
use crate::timing::PageTimes;

/// The outcome of reading a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitRead {
    /// Read retries after the first attempt.
    pub retries: u32,
    /// The unit cannot be corrected, or is marked as lost.
    pub lost: bool,
}

/// The bad blocks of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Bad from the factory; a superblock counts once.
    pub factory_bad: u32,
    /// Grown bad by a program that failed.
    pub failed_programs: u32,
    /// Grown bad by an erase that failed.
    pub failed_erases: u32,
}

/// Why a block is bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) enum Bad {
    Factory,
    Program,
    Erase,
}

/// Probability that the first read of a unit of a block fails, by page type, with the erases and
/// age it was computed for.
#[derive(Clone, Copy, Debug)]
struct Chances {
    /// Erases, and age in minutes.
    of: (u32, u64),
    first: [f64; PageTimes::TYPES_MAX],
}

/// The retention clock advances in minutes; a finer step has no visible effect.
const TICK_NS: u64 = 60_000_000_000;

/// The state of a device with faults.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    pub(crate) model: FaultModel,
    /// The model of SLC blocks, if there are any. Its age is ignored: all blocks have one clock.
    slc: Option<FaultModel>,
    layout: Layout,
    seed: u64,
    unit_bits: u64,
    /// By block.
    pub(crate) bad: Vec<Option<Bad>>,
    /// By member: when its first program unit was programmed. Time 0 is when the data present at
    /// the start was programmed, so the run starts at the model's age.
    programmed_at: Vec<u64>,
    /// Program units whose program failed or has not ended.
    unreadable_program_units: FastSet<u32>,
    /// Units that are marked as lost.
    lost: FastSet<u32>,
    /// An operation has failed since the last `take_status`.
    pub(crate) failed: bool,
    chances: Vec<Chances>,
}

snapshot_fields!(Faults {
    columns: bad, programmed_at;
    values: seed, unreadable_program_units, lost;
});

impl Faults {
    /// That what was loaded can be true on a device of `program_units` and `units`.
    pub(crate) fn check(&self, program_units: u32, units: u32) -> Result<(), &'static str> {
        let below = |set: &FastSet<u32>, end: u32| set.iter().all(|&place| place < end);
        match below(&self.unreadable_program_units, program_units) && below(&self.lost, units) {
            true => Ok(()),
            false => Err("a unit is lost that the device does not have"),
        }
    }

    pub(crate) fn new(
        model: FaultModel,
        slc: Option<FaultModel>,
        seed: u64,
        unit_bits: u64,
        (layout, blocks): (Layout, u32),
    ) -> Self {
        let factory = |block| {
            let own = slc.as_ref().filter(|_| layout.is_slc(BlockId(block)));
            let share = own.unwrap_or(&model).factory_bad;
            draw(seed, Draw::Factory, u64::from(block), 0) < share
        };
        let bad = (0..blocks).map(|block| factory(block).then_some(Bad::Factory)).collect();
        let members = (blocks * layout.dies_per_die_group()) as usize;
        let nothing = Chances { of: (u32::MAX, u64::MAX), first: [1.0; PageTimes::TYPES_MAX] };
        Self {
            slc,
            layout,
            seed,
            unit_bits,
            bad,
            programmed_at: vec![0; members],
            unreadable_program_units: FastSet::default(),
            lost: FastSet::default(),
            failed: false,
            chances: vec![nothing; members],
            model,
        }
    }

    /// The bad blocks among those that `counts` accepts.
    pub(crate) fn health(&self, counts: impl Fn(BlockId) -> bool) -> Health {
        let bad = (0..).map(BlockId).zip(&self.bad).filter(|&(block, _)| counts(block));
        let mut health = Health::default();
        for (_, &bad) in bad {
            match bad {
                None => {}
                Some(Bad::Factory) => health.factory_bad += 1,
                Some(Bad::Program) => health.failed_programs += 1,
                Some(Bad::Erase) => health.failed_erases += 1,
            }
        }
        health
    }

    /// The model of `block`.
    #[inline]
    pub(crate) fn model_of(&self, block: BlockId) -> &FaultModel {
        match &self.slc {
            Some(slc) if self.layout.is_slc(block) => slc,
            _ => &self.model,
        }
    }

    fn model_of_member(&self, member: usize) -> &FaultModel {
        self.model_of(BlockId(member as u32 / self.layout.dies_per_die_group()))
    }

    /// The program of `program_unit` begins.
    pub(crate) fn program_begins(&mut self, program_unit: u32) {
        self.unreadable_program_units.insert(program_unit);
    }

    /// Ends the program of `program_unit` in a block with `erases` erases. Returns whether it
    /// failed, which leaves the program unit unreadable.
    pub(crate) fn program_fails(&mut self, program_unit: u32, erases: u32) -> bool {
        let model = self.model_of(self.layout.block_of(ProgramUnitId(program_unit)));
        let chance = model.program.probability(model.wear_of(erases));
        let fails =
            draw(self.seed, Draw::Program, u64::from(program_unit), u64::from(erases)) < chance;
        if !fails {
            self.program_passed(program_unit);
        }
        fails
    }

    /// Ends the program of `program_unit`, which did not fail.
    pub(crate) fn program_passed(&mut self, program_unit: u32) {
        self.unreadable_program_units.remove(&program_unit);
    }

    /// Whether `program_unit`, which is programmed or in flight, can be read.
    pub(crate) fn is_readable(&self, program_unit: u32) -> bool {
        !self.unreadable_program_units.contains(&program_unit)
    }

    /// Whether the erase of `member` after `erases` successful ones fails.
    pub(crate) fn erase_fails(&self, member: usize, erases: u32) -> bool {
        let model = self.model_of_member(member);
        let chance = model.erase.probability(model.wear_of(erases));
        draw(self.seed, Draw::Erase, member as u64, u64::from(erases)) < chance
    }

    /// The first program unit of `member` is programmed in the run, at `now`.
    pub(crate) fn programmed(&mut self, member: usize, now: SimTime) {
        self.programmed_at[member] = self.model.age.0.saturating_add(now.0);
    }

    pub(crate) fn mark_lost(&mut self, unit: u32) {
        self.lost.insert(unit);
    }

    pub(crate) fn is_lost(&self, unit: u32) -> bool {
        self.lost.contains(&unit)
    }

    /// The units from `first` up to `end` were erased: none of them is marked as lost any more.
    pub(crate) fn forget(&mut self, first: u32, end: u32) {
        if !self.lost.is_empty() {
            self.lost.retain(|unit| !(first..end).contains(unit));
        }
    }

    /// The outcome of reading `unit` at `now`; it is on page `page` of `member`, a block with
    /// `erases` erases.
    pub(crate) fn read(
        &mut self,
        unit: u32,
        member: usize,
        page: u32,
        erases: u32,
        now: SimTime,
    ) -> UnitRead {
        if self.is_lost(unit) {
            return UnitRead { retries: 0, lost: true };
        }
        let clock = self.model.age.0.saturating_add(now.0);
        let minutes = clock.saturating_sub(self.programmed_at[member]) / TICK_NS;
        let age = Nanos(minutes * TICK_NS);
        let model = match &self.slc {
            Some(slc)
                if self
                    .layout
                    .is_slc(BlockId(member as u32 / self.layout.dies_per_die_group())) =>
            {
                slc
            }
            _ => &self.model,
        };
        let wear = model.wear_of(erases);
        let FaultModel { bits, ecc, .. } = model;
        let chances = &mut self.chances[member];
        if chances.of != (erases, minutes) {
            chances.of = (erases, minutes);
            for (kind, chance) in (0..).zip(&mut chances.first[..bits.types.all().len()]) {
                *chance = ecc.failure(bits.rate(wear, age, kind), 0, self.unit_bits);
            }
        }
        let random = draw(self.seed, Draw::Read, u64::from(unit), u64::from(erases));
        if random >= chances.first[bits.types.type_of(page)] {
            return UnitRead { retries: 0, lost: false };
        }
        // The same random number is compared with the lower failure probability of each retry, so
        // that repeating a read gives the same result.
        let rate = bits.rate(wear, age, page);
        let fails = |&attempt: &u32| random < ecc.failure(rate, attempt, self.unit_bits);
        match (1..=ecc.retries).find(|attempt| !fails(attempt)) {
            Some(retries) => UnitRead { retries, lost: false },
            None => UnitRead { retries: ecc.retries, lost: true },
        }
    }
}
