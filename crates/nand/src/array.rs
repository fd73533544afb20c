//! The array of cells: what may be done to it, and how worn it is.

use crate::error::NandError;
use crate::geometry::{BlockId, Geometry, Pun, RowId};
use crate::store::{Store, StoredUnit};

/// A flash device.
///
/// An operation has a beginning, where its legality is checked and the cells are in an
/// unknown state, and an end, where it has taken effect. Power may go in between:
/// whatever has begun and not ended is then torn. Memory without content: 8 bytes a
/// block; content adds about 40 bytes a unit and the payload.
#[derive(Clone, Debug)]
pub struct Nand {
    geometry: Geometry,
    /// Rows programmed since the last erase, including one in progress.
    rows_programmed: Vec<u16>,
    erase_counts: Vec<u32>,
    /// Blocks whose erase has begun and not ended.
    unstable: Vec<bool>,
    store: Option<Store>,
    rows_programmed_total: u64,
    rows_erased_total: u64,
    erases_total: u64,
}

impl Nand {
    /// An erased device that keeps no content.
    #[must_use]
    pub fn new(geometry: Geometry) -> Self {
        let blocks = geometry.blocks() as usize;
        Self {
            rows_programmed: vec![0; blocks],
            erase_counts: vec![0; blocks],
            unstable: vec![false; blocks],
            store: None,
            rows_programmed_total: 0,
            rows_erased_total: 0,
            erases_total: 0,
            geometry,
        }
    }

    /// An erased device that keeps tags, versions and payload of every unit.
    #[must_use]
    pub fn with_content(geometry: Geometry) -> Self {
        let units = vec![None; geometry.units() as usize];
        let rows = (geometry.blocks() * geometry.rows_per_block()) as usize;
        let store = Some(Store { units, open_rows: vec![false; rows], sequences: vec![0; rows] });
        Self { store, ..Self::new(geometry) }
    }

    /// The shape.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Whether content is kept.
    #[must_use]
    pub fn keeps_content(&self) -> bool {
        self.store.is_some()
    }

    /// Begins to program `row` with `units`; missing ones at the end are erased cells.
    /// `units` is not looked at if no content is kept.
    ///
    /// # Errors
    /// [`NandError`] if the row is not the next of its block, the block is full or its
    /// erase was interrupted. Nothing has changed then.
    pub fn program_begin(
        &mut self,
        row: RowId,
        units: impl IntoIterator<Item = StoredUnit>,
    ) -> Result<(), NandError> {
        let block = self.geometry.block_of(row);
        let index = block.0 as usize;
        let Some(&programmed) = self.rows_programmed.get(index) else {
            return Err(NandError::OutOfRange { address: u64::from(row.0) });
        };
        if self.unstable[index] {
            return Err(NandError::UnstableErase { block });
        }
        if u32::from(programmed) == self.geometry.rows_per_block() {
            return Err(NandError::ProgramFull { row });
        }
        let expected = RowId(self.geometry.first_row(block).0 + u32::from(programmed));
        if row != expected {
            return Err(NandError::OutOfOrderProgram { row, expected });
        }
        self.rows_programmed[index] += 1;
        self.rows_programmed_total += 1;
        if let Some(store) = &mut self.store {
            store.open_rows[row.0 as usize] = true;
            store.sequences[row.0 as usize] = self.rows_programmed_total;
            let first = self.geometry.first_unit(row).0 as usize;
            let slots = &mut store.units[first..first + self.geometry.units_per_row() as usize];
            for (slot, unit) in slots.iter_mut().zip(units) {
                *slot = Some(unit);
            }
        }
        Ok(())
    }

    /// The program of `row` has ended; it is readable from now on.
    pub fn program_end(&mut self, row: RowId) {
        if let Some(store) = &mut self.store {
            store.open_rows[row.0 as usize] = false;
        }
    }

    /// Begins to erase `block`.
    ///
    /// # Errors
    /// [`NandError::OutOfRange`].
    pub fn erase_begin(&mut self, block: BlockId) -> Result<(), NandError> {
        match self.unstable.get_mut(block.0 as usize) {
            Some(unstable) => {
                *unstable = true;
                Ok(())
            }
            None => Err(NandError::OutOfRange { address: u64::from(block.0) }),
        }
    }

    /// The erase of `block` has ended; its rows may be programmed again.
    ///
    /// # Panics
    /// If it never began.
    pub fn erase_end(&mut self, block: BlockId) {
        let index = block.0 as usize;
        assert!(self.unstable[index], "an erase ended that never began");
        self.rows_erased_total += u64::from(self.rows_programmed[index]);
        self.rows_programmed[index] = 0;
        self.erase_counts[index] += 1;
        self.erases_total += 1;
        self.unstable[index] = false;
        if let Some(store) = &mut self.store {
            let rows = self.geometry.rows_per_block() as usize;
            let units = self.geometry.units_per_block() as usize;
            store.open_rows[index * rows..(index + 1) * rows].fill(false);
            store.units[index * units..(index + 1) * units].fill(None);
        }
    }

    /// Checks that `unit` may be read.
    ///
    /// # Errors
    /// [`NandError::ReadErased`] where nothing is programmed, [`NandError::Uncorrectable`]
    /// where a program was interrupted.
    pub fn check_read(&self, unit: Pun) -> Result<(), NandError> {
        if unit.0 >= self.geometry.units() {
            return Err(NandError::OutOfRange { address: u64::from(unit.0) });
        }
        let row = self.geometry.row_of(unit);
        let block = self.geometry.block_of(row);
        let place = row.0 - self.geometry.first_row(block).0;
        let index = block.0 as usize;
        if place >= u32::from(self.rows_programmed[index]) {
            return Err(NandError::ReadErased { unit });
        }
        let torn = self.store.as_ref().is_some_and(|s| s.open_rows[row.0 as usize]);
        if torn || self.unstable[index] {
            return Err(NandError::Uncorrectable { unit });
        }
        Ok(())
    }

    /// The content of `unit`; `None` for cells left erased in a programmed row, or if
    /// the device keeps no content.
    ///
    /// # Errors
    /// As [`Nand::check_read`].
    pub fn read(&self, unit: Pun) -> Result<Option<&StoredUnit>, NandError> {
        self.check_read(unit)?;
        Ok(self.store.as_ref().and_then(|store| store.units[unit.0 as usize].as_ref()))
    }

    /// The number of the program that wrote `row`, as its out-of-band bytes tell it:
    /// later programs have higher ones. 0 if the device keeps no content.
    #[must_use]
    pub fn sequence(&self, row: RowId) -> u64 {
        self.store.as_ref().map_or(0, |store| store.sequences[row.0 as usize])
    }

    /// Rows of `block` programmed since its last erase.
    #[must_use]
    pub fn rows_programmed(&self, block: BlockId) -> u32 {
        u32::from(self.rows_programmed[block.0 as usize])
    }

    /// Whether the last erase of `block` was interrupted, or is going on.
    #[must_use]
    pub fn is_unstable(&self, block: BlockId) -> bool {
        self.unstable[block.0 as usize]
    }

    /// How often each block was erased.
    #[must_use]
    pub fn erase_counts(&self) -> &[u32] {
        &self.erase_counts
    }

    /// Rows programmed since the device was made.
    #[must_use]
    pub fn rows_programmed_total(&self) -> u64 {
        self.rows_programmed_total
    }

    /// Blocks erased since the device was made.
    #[must_use]
    pub fn erases_total(&self) -> u64 {
        self.erases_total
    }

    /// Rows programmed = rows erased + rows that stand programmed (law 2). Walks all
    /// blocks.
    ///
    /// # Panics
    /// If the law is broken.
    pub fn assert_conserved(&self) {
        let standing: u64 = self.rows_programmed.iter().map(|&rows| u64::from(rows)).sum();
        assert_eq!(
            self.rows_programmed_total,
            self.rows_erased_total + standing,
            "rows programmed must be rows erased plus rows standing"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::UnitTag;
    use prism_base::Bytes;

    fn device() -> Nand {
        Nand::with_content(Geometry {
            channels: 1,
            dies_per_channel: 1,
            planes: 1,
            planes_ganged: 1,
            blocks_per_plane: 2,
            pages_per_block: 2,
            page: Bytes(4096),
            unit: Bytes(4096),
        })
    }

    fn unit(lpn: u32) -> StoredUnit {
        StoredUnit { tag: UnitTag::Data(lpn), version: 1, payload: None }
    }

    fn program(nand: &mut Nand, row: u32) -> Result<(), NandError> {
        nand.program_begin(RowId(row), [unit(row)])?;
        nand.program_end(RowId(row));
        Ok(())
    }

    #[test]
    fn rows_go_in_order_and_once() {
        let mut nand = device();
        let out_of_order = NandError::OutOfOrderProgram { row: RowId(1), expected: RowId(0) };
        assert_eq!(program(&mut nand, 1), Err(out_of_order));
        assert_eq!(program(&mut nand, 0), Ok(()));
        assert_eq!(program(&mut nand, 1), Ok(()));
        assert_eq!(program(&mut nand, 1), Err(NandError::ProgramFull { row: RowId(1) }));
        assert_eq!(program(&mut nand, 99), Err(NandError::OutOfRange { address: 99 }));
        nand.erase_begin(BlockId(0)).unwrap();
        nand.erase_end(BlockId(0));
        assert_eq!(program(&mut nand, 0), Ok(()));
        assert_eq!(nand.erase_counts(), [1, 0]);
        nand.assert_conserved();
    }

    #[test]
    fn what_power_interrupts_is_torn() {
        let mut nand = device();
        nand.program_begin(RowId(0), [unit(7)]).unwrap();
        assert_eq!(nand.read(Pun(0)), Err(NandError::Uncorrectable { unit: Pun(0) }));
        nand.program_end(RowId(0));
        assert_eq!(nand.read(Pun(0)).unwrap().unwrap().tag, UnitTag::Data(7));
        assert_eq!(nand.read(Pun(1)), Err(NandError::ReadErased { unit: Pun(1) }));
        nand.erase_begin(BlockId(0)).unwrap();
        assert_eq!(nand.read(Pun(0)), Err(NandError::Uncorrectable { unit: Pun(0) }));
        assert_eq!(program(&mut nand, 1), Err(NandError::UnstableErase { block: BlockId(0) }));
    }
}
