//! What a loss of power does to the cells.
//!
//! A program that had begun and not ended leaves a torn row. Where pages of one word line are
//! programmed one after another, the cells that it was about to change hold the earlier pages
//! as well, and these may be lost although their programs had ended long before. An erase that
//! had begun leaves a block that reads as erased, or as nothing that can be corrected; neither
//! is a state to program it in.

use prism_base::Rng;

use crate::array::{Nand, READS_ERASED, UNSTABLE};
use crate::geometry::RowId;
use crate::layout::Layout;
use crate::store::RowState;

/// How likely an earlier page of the word line is lost. There is no published figure: often
/// enough that each combination occurs, and not always, because that would be the easier case.
const PAIRED_LOST: f64 = 0.75;
/// How likely a block whose erase was cut off reads as erased.
const SEEMS_ERASED: f64 = 0.5;

impl Nand {
    /// Power is lost: operations that have begun and not ended stay so for good. `seed` feeds
    /// the draws: which earlier rows of their word lines are lost, and how half erased blocks
    /// read.
    ///
    /// Nothing but half erased blocks changes if no content is kept.
    pub fn lose_power(&mut self, seed: u64) {
        let seed = seed ^ self.rows_programmed_total().rotate_left(32) ^ self.erases_total();
        let mut rng = Rng::stream(seed, "nand.power");
        for [_, state] in self.cells.iter_mut().filter(|[_, state]| state & UNSTABLE != 0) {
            let erased = rng.chance(SEEMS_ERASED);
            *state = if erased { UNSTABLE | READS_ERASED } else { UNSTABLE };
        }
        let Some(store) = &mut self.store else { return };
        let in_flight = |row: &usize| store.states[*row] == RowState::InFlight;
        let rows: Vec<usize> = (0..store.states.len()).filter(in_flight).collect();
        let step = self.layout.dies_per_lane();
        for row in rows {
            store.states[row] = RowState::Torn;
            let (_, on_die) = self.layout.place_of(RowId(row as u32));
            let word_line = word_line_of(&self.layout, self.word_line, RowId(row as u32));
            for back in 1..=on_die % word_line {
                if rng.chance(PAIRED_LOST) {
                    store.states[row - (back * step) as usize] = RowState::Torn;
                }
            }
        }
    }

    /// Power is lost, and capacitors keep the flash going until every program that had begun
    /// has ended; nothing is torn then. Erases, which take longer, are cut off as by
    /// [`Nand::lose_power`].
    pub fn lose_power_slowly(&mut self, seed: u64) {
        if let Some(store) = &mut self.store {
            for state in &mut store.states {
                if *state == RowState::InFlight {
                    *state = RowState::Settled;
                }
            }
        }
        self.lose_power(seed);
    }

    /// The last row of the word line of `row`, which is on the same die: from when it is
    /// programmed on, nothing threatens `row`.
    #[must_use]
    pub fn word_line_end(&self, row: RowId) -> RowId {
        if word_line_of(&self.layout, self.word_line, row) == 1 {
            return row;
        }
        let (_, on_die) = self.layout.place_of(row);
        let step = self.layout.dies_per_lane();
        let last = (on_die - on_die % self.word_line + self.word_line).min(self.rows_per_die());
        RowId(row.0 + (last - 1 - on_die) * step)
    }

    fn rows_per_die(&self) -> u32 {
        self.layout.rows_per_block() / self.layout.dies_per_lane()
    }
}

/// Rows of a die that share the word line of `row`: one where cells hold one bit, elsewhere
/// `rows`.
fn word_line_of(layout: &Layout, rows: u32, row: RowId) -> u32 {
    if layout.is_slc(layout.block_of(row)) { 1 } else { rows }
}

#[cfg(test)]
mod tests {
    use prism_base::Bytes;

    use super::*;
    use crate::error::NandError;
    use crate::geometry::{BlockId, Geometry};
    use crate::store::{StoredUnit, UnitTag};

    fn device(dies: u32, word_line: u32) -> Nand {
        let mut nand = Nand::with_content(Geometry {
            channels: dies,
            dies_per_channel: 1,
            planes: 1,
            planes_ganged: 1,
            blocks_per_plane: 2,
            pages_per_block: 8,
            pages_per_program: 1,
            dies_per_superblock: dies,
            parity: false,
            page: Bytes(4096),
            unit: Bytes(4096),
            slc: None,
        });
        nand.pair_rows(word_line);
        nand
    }

    fn begin(nand: &mut Nand, row: u32) {
        let unit = StoredUnit { tag: UnitTag::Data(row), version: 1, payload: None };
        nand.program_begin(RowId(row), [unit]).unwrap();
    }

    fn program(nand: &mut Nand, rows: std::ops::Range<u32>) {
        for row in rows {
            begin(nand, row);
            nand.program_end(RowId(row));
        }
    }

    /// Rows of `rows` that can be read.
    fn readable(nand: &Nand, rows: std::ops::Range<u32>) -> Vec<u32> {
        rows.filter(|&row| nand.check_read_row(RowId(row)).is_ok()).collect()
    }

    #[test]
    fn earlier_rows_of_the_word_line_may_go_and_no_others() {
        // Rows programmed, the one under way, and those that may be lost with it.
        for (dies, word_line, done, cut, lost) in [
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
                let mut nand = device(dies, word_line);
                program(&mut nand, 0..done);
                begin(&mut nand, cut);
                nand.lose_power(seed);
                let left = readable(&nand, 0..cut + 1);
                let gone: Vec<u32> = (0..cut).filter(|row| !left.contains(row)).collect();
                assert!(!left.contains(&cut) && gone.iter().all(|row| lost.contains(row)));
                ever_lost.extend(gone);
                // A second loss adds nothing: nothing is under way.
                nand.lose_power(seed + 1);
                assert_eq!(readable(&nand, 0..cut + 1), left);
            }
            ever_lost.sort_unstable();
            ever_lost.dedup();
            assert_eq!(ever_lost, lost, "{dies} dies, word lines of {word_line}");
        }
    }

    #[test]
    fn capacitors_end_what_was_begun() {
        let mut nand = device(1, 3);
        program(&mut nand, 0..1);
        begin(&mut nand, 1);
        nand.lose_power_slowly(1);
        assert_eq!(readable(&nand, 0..3), [0, 1]);
    }

    #[test]
    fn a_word_line_ends_with_its_last_row_or_the_block() {
        for (dies, word_line, row, end) in [
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
            let ends = device(dies, word_line).word_line_end(RowId(row));
            assert_eq!(ends, RowId(end), "{dies} dies, word lines of {word_line}, row {row}");
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
            let refused = nand.program_begin(RowId(2), []);
            assert_eq!(refused, Err(NandError::UnstableErase { block: BlockId(0) }));
            nand.erase_begin(BlockId(0), 0).unwrap();
            nand.erase_end(BlockId(0), 0);
            program(&mut nand, 0..1);
            assert!(nand.check_read(unit).is_ok());
        }
        assert_eq!(found, [true; 2]);
    }
}
