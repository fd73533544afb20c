//! The effect of a loss of power on the cells.
//!
//! A program that has begun and not ended leaves a torn program unit. If the pages of a wordline
//! are programmed one after another, the interrupted program changes cells that also hold the
//! earlier pages, and these may be lost although their programs ended long before. An interrupted
//! erase leaves a block that reads either as erased or as uncorrectable, and that must be erased
//! again before it is programmed.

use prism_base::Rng;

use crate::array::{Nand, READS_ERASED, UNSTABLE};
use crate::geometry::ProgramUnitId;
use crate::layout::Layout;
use crate::store::ProgramUnitState;

/// The probability that an earlier page of the wordline is lost. There is no published figure. It
/// is high enough that each combination occurs, and below 1 because losing all of them is the
/// easier case.
const PAIRED_LOST: f64 = 0.75;
/// The probability that a half-erased block reads as erased.
const SEEMS_ERASED: f64 = 0.5;

impl Nand {
    /// Power is lost: operations that have begun and not ended are torn. `seed` determines which
    /// earlier program units of their wordlines are lost and how half-erased blocks read.
    ///
    /// If no content is kept, only half-erased blocks change.
    pub fn lose_power(&mut self, seed: u64) {
        let seed =
            seed ^ self.program_units_programmed_total().rotate_left(32) ^ self.erases_total();
        let mut rng = Rng::stream(seed, "nand.power");
        for [_, state] in self.cells.iter_mut().filter(|[_, state]| state & UNSTABLE != 0) {
            let erased = rng.chance(SEEMS_ERASED);
            *state = if erased { UNSTABLE | READS_ERASED } else { UNSTABLE };
        }
        let Some(store) = &mut self.store else { return };
        let in_flight =
            |program_unit: &usize| store.states[*program_unit] == ProgramUnitState::InFlight;
        let program_units: Vec<usize> = (0..store.states.len()).filter(in_flight).collect();
        let step = self.layout.dies_per_die_group();
        for program_unit in program_units {
            store.states[program_unit] = ProgramUnitState::Torn;
            let (_, on_die) = self.layout.place_of(ProgramUnitId(program_unit as u32));
            let wordline =
                wordline_of(&self.layout, self.wordline, ProgramUnitId(program_unit as u32));
            for back in 1..=on_die % wordline {
                if rng.chance(PAIRED_LOST) {
                    store.states[program_unit - (back * step) as usize] = ProgramUnitState::Torn;
                }
            }
        }
    }

    /// Power is lost, but capacitors supply the flash until every program that has begun has ended,
    /// so that none is torn. Erases take longer and are interrupted as by [`Nand::lose_power`].
    pub fn lose_power_slowly(&mut self, seed: u64) {
        if let Some(store) = &mut self.store {
            for state in &mut store.states {
                if *state == ProgramUnitState::InFlight {
                    *state = ProgramUnitState::Settled;
                }
            }
        }
        self.lose_power(seed);
    }

    /// The last program unit of the wordline of `program_unit`, on the same die. Once it is
    /// programmed, no later program can destroy `program_unit`.
    #[must_use]
    pub fn wordline_end(&self, program_unit: ProgramUnitId) -> ProgramUnitId {
        if wordline_of(&self.layout, self.wordline, program_unit) == 1 {
            return program_unit;
        }
        let (_, on_die) = self.layout.place_of(program_unit);
        let step = self.layout.dies_per_die_group();
        let last =
            (on_die - on_die % self.wordline + self.wordline).min(self.program_units_per_die());
        ProgramUnitId(program_unit.0 + (last - 1 - on_die) * step)
    }

    fn program_units_per_die(&self) -> u32 {
        self.layout.program_units_per_block() / self.layout.dies_per_die_group()
    }
}

/// Program units of a die that share the wordline of `program_unit`: one in SLC blocks,
/// `program_units` in others.
fn wordline_of(layout: &Layout, program_units: u32, program_unit: ProgramUnitId) -> u32 {
    if layout.is_slc(layout.block_of(program_unit)) { 1 } else { program_units }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::error::NandError;
    use crate::geometry::{BlockId, Geometry};
    use crate::store::{StoredUnit, UnitTag};

    fn device(dies: u32, wordline: u32) -> Nand {
        let mut nand = Nand::with_content(Geometry {
            channels: dies,
            blocks_per_plane: 2,
            pages_per_block: 8,
            dies_per_superblock: dies,
            ..Geometry::SMALLEST
        });
        nand.pair_program_units(wordline);
        nand
    }

    fn begin(nand: &mut Nand, program_unit: u32) {
        let unit = StoredUnit { tag: UnitTag::Data(program_unit), version: 1, payload: None };
        nand.program_begin(ProgramUnitId(program_unit), [unit]).unwrap();
    }

    fn program(nand: &mut Nand, program_units: std::ops::Range<u32>) {
        for program_unit in program_units {
            begin(nand, program_unit);
            nand.program_end(ProgramUnitId(program_unit));
        }
    }

    /// Program units of `program_units` that can be read.
    fn readable(nand: &Nand, program_units: std::ops::Range<u32>) -> Vec<u32> {
        program_units
            .filter(|&program_unit| {
                nand.check_read_program_unit(ProgramUnitId(program_unit)).is_ok()
            })
            .collect()
    }

    #[test]
    fn only_earlier_program_units_of_the_wordline_may_be_lost() {
        // Program units programmed, the one in flight, and those that may be lost with it.
        for (dies, wordline, done, cut, lost) in [
            (1, 1, 5, 5, vec![]),
            (1, 2, 4, 4, vec![]),
            (1, 2, 5, 5, vec![4]),
            (1, 3, 5, 5, vec![3, 4]),
            (1, 3, 7, 7, vec![6]),
            (1, 4, 7, 7, vec![4, 5, 6]),
            (2, 3, 9, 9, vec![7]),
            (2, 4, 14, 14, vec![8, 10, 12]),
        ] {
            let mut ever_lost = vec![];
            for seed in 0..20 {
                let mut nand = device(dies, wordline);
                program(&mut nand, 0..done);
                begin(&mut nand, cut);
                nand.lose_power(seed);
                let left = readable(&nand, 0..cut + 1);
                let gone: Vec<u32> =
                    (0..cut).filter(|program_unit| !left.contains(program_unit)).collect();
                assert!(
                    !left.contains(&cut)
                        && gone.iter().all(|program_unit| lost.contains(program_unit))
                );
                ever_lost.extend(gone);
                // A second loss of power changes nothing because no program is in flight.
                nand.lose_power(seed + 1);
                assert_eq!(readable(&nand, 0..cut + 1), left);
            }
            ever_lost.sort_unstable();
            ever_lost.dedup();
            assert_eq!(ever_lost, lost, "{dies} dies, wordlines of {wordline}");
        }
    }

    #[test]
    fn capacitors_complete_programs_in_flight() {
        let mut nand = device(1, 3);
        program(&mut nand, 0..1);
        begin(&mut nand, 1);
        nand.lose_power_slowly(1);
        assert_eq!(readable(&nand, 0..3), [0, 1]);
    }

    #[test]
    fn a_wordline_ends_with_its_last_program_unit_or_the_block() {
        for (dies, wordline, program_unit, end) in [
            (1, 1, 3, 3),
            (1, 2, 0, 1),
            (1, 2, 3, 3),
            (1, 3, 4, 5),
            (1, 3, 6, 7),
            (1, 3, 8, 10),
            (1, 16, 9, 15),
            (2, 3, 1, 5),
            (2, 3, 13, 15),
        ] {
            let ends = device(dies, wordline).wordline_end(ProgramUnitId(program_unit));
            assert_eq!(
                ends,
                ProgramUnitId(end),
                "{dies} dies, wordlines of {wordline}, program unit {program_unit}"
            );
        }
    }

    #[test]
    fn a_half_erased_block_reads_as_erased_or_as_garbage() {
        let unit = crate::geometry::Pun(0);
        let mut found = [false; 2];
        for seed in 0..20 {
            let mut nand = device(1, 1);
            program(&mut nand, 0..2);
            nand.erase_begin(BlockId(0), 0).unwrap();
            nand.lose_power(seed);
            assert!(nand.is_unstable(BlockId(0)));
            match nand.check_read(unit) {
                Err(NandError::ReadErased { .. }) => found[0] = true,
                Err(NandError::Uncorrectable { .. }) => found[1] = true,
                other => panic!("{other:?}"),
            }
            let refused = nand.program_begin(ProgramUnitId(2), []);
            assert_eq!(refused, Err(NandError::UnstableErase { block: BlockId(0) }));
            nand.erase_begin(BlockId(0), 0).unwrap();
            nand.erase_end(BlockId(0), 0);
            program(&mut nand, 0..1);
            assert!(nand.check_read(unit).is_ok());
        }
        assert_eq!(found, [true; 2]);
    }
}
