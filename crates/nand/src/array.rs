//! The array of cells: its legal operations and its wear.

use prism_base::Zeroed;

use crate::aging::Status;
use crate::error::NandError;
use crate::faults::Faults;
use crate::geometry::{BlockId, Geometry, ProgramUnitId, Pun};
use crate::layout::Layout;
use crate::store::{ProgramUnitState, Store, StoredUnit};

/// Flag: an erase of the block has begun and not ended.
pub(crate) const UNSTABLE: u16 = 1;
/// Flag: the half-erased block reads as erased. Without it, its reads are uncorrectable.
pub(crate) const READS_ERASED: u16 = 2;

/// A flash device.
///
/// An operation has a beginning, where its legality is checked and the state of the cells becomes
/// unknown, and an end, where it takes effect. If power is lost in between, the operation is torn.
/// A superblock is erased die by die: its *members*, the blocks of single dies, are numbered in the
/// order in which its program units are striped over them. Memory without content: 8 bytes per
/// block of a die. Content adds about 40 bytes per unit, and the payload.
#[derive(Clone, Debug)]
pub struct Nand {
    geometry: Geometry,
    pub(crate) layout: Layout,
    /// Program units of one die that share a wordline.
    pub(crate) wordline: u32,
    /// By member: program units programmed since the last erase, including one in progress, and the
    /// flags [`UNSTABLE`] and [`READS_ERASED`]. They are stored together because every program
    /// needs both.
    pub(crate) cells: Zeroed<[u16; 2]>,
    pub(crate) erase_counts: Vec<u32>,
    /// By member: program units skipped since the last erase; empty if the device allows no gaps.
    pub(crate) left_out: Vec<u16>,
    /// Fault injection, if enabled.
    pub(crate) faults: Option<Box<Faults>>,
    pub(crate) store: Option<Store>,
    pub(crate) program_units_programmed_total: u64,
    pub(crate) program_units_erased_total: u64,
    pub(crate) erases_total: u64,
}

impl Nand {
    /// An erased device that keeps no content.
    #[must_use]
    pub fn new(geometry: Geometry) -> Self {
        let blocks = (geometry.blocks() * geometry.dies_per_superblock) as usize;
        Self {
            layout: Layout::new(&geometry),
            wordline: 1,
            cells: Zeroed::new(blocks),
            erase_counts: vec![0; blocks],
            left_out: Vec::new(),
            store: None,
            faults: None,
            program_units_programmed_total: 0,
            program_units_erased_total: 0,
            erases_total: 0,
            geometry,
        }
    }

    /// An erased device that keeps tags, versions and payload of every unit.
    #[must_use]
    pub fn with_content(geometry: Geometry) -> Self {
        let units = vec![None; geometry.units() as usize];
        let program_units = (geometry.blocks() * geometry.program_units_per_block()) as usize;
        let states = vec![ProgramUnitState::Settled; program_units];
        let store = Some(Store { units, states, sequences: vec![0; program_units] });
        Self { store, ..Self::new(geometry) }
    }

    /// Sets whether program units of a block may be skipped, as long as they are programmed in
    /// ascending order. SLC allows that; other cells need every program unit in order.
    ///
    /// # Panics
    /// If anything was programmed before.
    #[must_use]
    pub fn with_gaps(mut self, gaps: bool) -> Self {
        assert!(
            self.program_units_programmed_total == 0,
            "the cell type was changed after a program"
        );
        self.left_out = if gaps { vec![0; self.erase_counts.len()] } else { Vec::new() };
        self
    }

    /// Whether program units may be skipped.
    #[must_use]
    pub fn has_gaps(&self) -> bool {
        !self.left_out.is_empty()
    }

    /// The geometry.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The address layout of the geometry.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Sets how many successive program units of a block on one die share a wordline, for cells of
    /// several bits that are programmed page by page. A loss of power during one of these programs
    /// may then also destroy the earlier ones ([`Nand::lose_power`]). 1 if one program writes a
    /// whole wordline. The last wordline of a block may have fewer program units.
    ///
    /// The page types repeat as their times do ([`PageTimes::of`](crate::PageTimes)). Real chips
    /// differ: they spread the pages of a wordline over several neighbours, so that a power cut
    /// destroys pages further back.
    ///
    /// # Panics
    /// If `program_units` is 0.
    pub fn pair_program_units(&mut self, program_units: u32) {
        assert!(program_units > 0, "a wordline has at least one program unit");
        self.wordline = program_units;
    }

    /// Whether content is kept.
    #[must_use]
    pub fn keeps_content(&self) -> bool {
        self.store.is_some()
    }

    /// Begins to program `program_unit` with `units`; the rest of it stays erased. `units` is not
    /// read if the device keeps no content.
    ///
    /// # Errors
    /// [`NandError`] if the program unit is not the next of its block, the block is full or its
    /// erase was interrupted. Nothing has changed in that case.
    #[inline(always)]
    pub fn program_begin(
        &mut self,
        program_unit: ProgramUnitId,
        units: impl IntoIterator<Item = StoredUnit>,
    ) -> Result<(), NandError> {
        let block = self.layout.block_of(program_unit);
        let (dies, in_block, member) = self.member_of(program_unit, block);
        let index = (block.0 * dies + member) as usize;
        let Some(&[programmed, state]) = self.cells.get(index) else {
            return Err(NandError::OutOfRange { address: u64::from(program_unit.0) });
        };
        let programmed = u32::from(programmed);
        if state & UNSTABLE != 0 {
            return Err(NandError::UnstableErase { block });
        }
        if programmed * dies == self.layout.program_units_of(block) {
            return Err(NandError::ProgramFull { program_unit });
        }
        let place = programmed * dies + member;
        if place != in_block && (in_block < place || !self.has_gaps()) {
            let expected =
                ProgramUnitId(self.layout.first_program_unit(block).0 + programmed * dies + member);
            return Err(NandError::OutOfOrderProgram { program_unit, expected });
        }
        let skipped = if in_block == place { 0 } else { (in_block - place) / dies };
        if skipped > 0 {
            self.left_out[index] += skipped as u16;
        }
        self.cells[index][0] += 1 + skipped as u16;
        self.program_units_programmed_total += 1;
        if let Some(faults) = &mut self.faults {
            faults.program_begins(program_unit.0);
        }
        if let Some(store) = &mut self.store {
            store.states[program_unit.0 as usize] = ProgramUnitState::InFlight;
            store.sequences[program_unit.0 as usize] = self.program_units_programmed_total;
            let first = self.layout.first_unit(program_unit).0 as usize;
            let slots =
                &mut store.units[first..first + self.layout.units_per_program_unit() as usize];
            for (slot, unit) in slots.iter_mut().zip(units) {
                *slot = Some(unit);
            }
        }
        Ok(())
    }

    /// The number of dies per block, the number of `program_unit` in its block, and its member.
    #[inline]
    fn member_of(&self, program_unit: ProgramUnitId, block: BlockId) -> (u32, u32, u32) {
        let in_block = program_unit.0 - self.layout.first_program_unit(block).0;
        let dies = self.layout.dies_per_die_group();
        (dies, in_block, if dies == 1 { 0 } else { in_block % dies })
    }

    /// Programs `program_units` successive program units of one block, starting with `first`, on a
    /// device that keeps no content. Equivalent to beginning and ending each program separately,
    /// except that no program fails on flash with faults: there it is used to lay out the state of
    /// a drive, which has its data on program units that did not fail.
    ///
    /// # Errors
    /// As [`Nand::program_begin`], for the first program unit that cannot be programmed. The
    /// program units before it have been programmed.
    ///
    /// # Panics
    /// If the device keeps content.
    pub fn program_bulk(
        &mut self,
        first: ProgramUnitId,
        program_units: u32,
    ) -> Result<(), NandError> {
        assert!(self.store.is_none(), "bulk programs have no content");
        let block = self.layout.block_of(first);
        let end = self.layout.first_program_unit(block).0 + self.layout.program_units_of(block);
        let fit = program_units.min(end.saturating_sub(first.0));
        if self.layout.dies_per_die_group() > 1 {
            for program_unit in (first.0..first.0 + fit).map(ProgramUnitId) {
                self.program_begin(program_unit, [])?;
                self.program_passed(program_unit);
            }
        } else if fit > 0 {
            // All on one die: the first is checked, the rest follows it.
            self.program_begin(first, [])?;
            self.program_passed(first);
            self.cells[block.0 as usize][0] += (fit - 1) as u16;
            self.program_units_programmed_total += u64::from(fit - 1);
        }
        if fit < program_units {
            Err(NandError::ProgramFull { program_unit: ProgramUnitId(end) })
        } else {
            Ok(())
        }
    }

    /// Ends the program of `program_unit` on flash with faults, where it did not fail.
    fn program_passed(&mut self, program_unit: ProgramUnitId) {
        if let Some(faults) = &mut self.faults {
            faults.program_passed(program_unit.0);
        }
    }

    /// Ends the program of `program_unit`. The program unit is readable from now on, unless the
    /// program failed, which needs fault injection.
    #[inline(always)]
    pub fn program_end(&mut self, program_unit: ProgramUnitId) -> Status {
        // Without faults and content there is no state to update.
        if self.faults.is_none() && self.store.is_none() {
            return Status::Passed;
        }
        self.settle(program_unit)
    }

    #[inline(never)]
    fn settle(&mut self, program_unit: ProgramUnitId) -> Status {
        if self.faults.is_some() && self.program_status(program_unit) == Status::Failed {
            return Status::Failed;
        }
        if let Some(store) = &mut self.store {
            store.states[program_unit.0 as usize] = ProgramUnitState::Settled;
        }
        Status::Passed
    }

    /// Begins to erase member `member` of `block` (0 where there are no superblocks).
    ///
    /// # Errors
    /// [`NandError::OutOfRange`].
    pub fn erase_begin(&mut self, block: BlockId, member: u32) -> Result<(), NandError> {
        match self.cells.get_mut((block.0 * self.layout.dies_per_die_group() + member) as usize) {
            Some([_, state]) => {
                *state |= UNSTABLE;
                Ok(())
            }
            None => Err(NandError::OutOfRange { address: u64::from(block.0) }),
        }
    }

    /// Ends the erase of member `member` of `block`. The member can be programmed again, unless the
    /// erase failed, which needs fault injection: then the block is bad and its content unstable.
    ///
    /// # Panics
    /// If the erase was not begun.
    pub fn erase_end(&mut self, block: BlockId, member: u32) -> Status {
        let dies = self.layout.dies_per_die_group();
        let index = (block.0 * dies + member) as usize;
        assert!(self.is_unstable_at(index), "an erase ended that never began");
        if self.faults.is_some() && self.erase_status(block, index) == Status::Failed {
            return Status::Failed;
        }
        self.program_units_erased_total += u64::from(self.cells[index][0]);
        if let Some(left_out) = self.left_out.get_mut(index) {
            self.program_units_erased_total -= u64::from(std::mem::take(left_out));
        }
        self.cells[index] = [0, 0];
        self.erase_counts[index] += 1;
        self.erases_total += 1;
        if let Some(store) = &mut self.store {
            let first = self.layout.first_program_unit(block).0;
            for program_unit in (first + member..first + self.layout.program_units_per_block())
                .step_by(dies as usize)
            {
                let units = self.layout.units_per_program_unit() as usize;
                store.states[program_unit as usize] = ProgramUnitState::Settled;
                store.units[program_unit as usize * units..(program_unit as usize + 1) * units]
                    .fill(None);
            }
        }
        Status::Passed
    }

    /// Checks that `unit` may be read.
    ///
    /// # Errors
    /// [`NandError::ReadErased`] where nothing is programmed, [`NandError::Uncorrectable`]
    /// where a program was interrupted.
    pub fn check_read(&self, unit: Pun) -> Result<(), NandError> {
        self.check_program_unit(self.layout.program_unit_of(unit), unit)
    }

    /// As [`Nand::check_read`], for all of `program_unit`.
    ///
    /// # Errors
    /// The same, with the first unit of the program unit.
    #[inline]
    pub fn check_read_program_unit(&self, program_unit: ProgramUnitId) -> Result<(), NandError> {
        self.check_program_unit(program_unit, self.layout.first_unit(program_unit))
    }

    #[inline]
    fn check_program_unit(&self, program_unit: ProgramUnitId, unit: Pun) -> Result<(), NandError> {
        let block = self.layout.block_of(program_unit);
        let (dies, in_block, member) = self.member_of(program_unit, block);
        let index = (block.0 * dies + member) as usize;
        let Some(&[programmed, state]) = self.cells.get(index) else {
            return Err(NandError::OutOfRange { address: u64::from(unit.0) });
        };
        let written = in_block < u32::from(programmed) * dies + member;
        if written && self.store.is_none() && state & UNSTABLE == 0 {
            return Ok(());
        }
        self.check_doubtful(program_unit, unit, index, written)
    }

    fn check_doubtful(
        &self,
        program_unit: ProgramUnitId,
        unit: Pun,
        index: usize,
        written: bool,
    ) -> Result<(), NandError> {
        let unstable = self.is_unstable_at(index);
        if self.cells[index][1] & READS_ERASED != 0 || !written && !unstable {
            return Err(NandError::ReadErased { unit });
        }
        // After an interrupted erase of a superblock, members that the erase has not reached may
        // still be readable here. Recovery uses `is_unstable` to discard them.
        let torn = self.store.as_ref().is_some_and(|s| s.is_torn(program_unit));
        if torn || unstable {
            return Err(NandError::Uncorrectable { unit });
        }
        Ok(())
    }

    /// The content of `unit`; `None` for cells left erased in a programmed program unit, or if the
    /// device keeps no content.
    ///
    /// # Errors
    /// As [`Nand::check_read`].
    pub fn read(&self, unit: Pun) -> Result<Option<&StoredUnit>, NandError> {
        self.check_read(unit)?;
        Ok(self.store.as_ref().and_then(|store| store.units[unit.0 as usize].as_ref()))
    }

    /// The sequence number in the out-of-band bytes of `program_unit`: later programs have higher
    /// ones. 0 if the device keeps no content.
    #[must_use]
    pub fn sequence(&self, program_unit: ProgramUnitId) -> u64 {
        self.store.as_ref().map_or(0, |store| store.sequences[program_unit.0 as usize])
    }

    /// Program units of `block` programmed since its last erase, over all members. Those skipped
    /// before others count as programmed.
    #[must_use]
    pub fn program_units_programmed(&self, block: BlockId) -> u32 {
        self.members(block).map(|index| u32::from(self.cells[index][0])).sum()
    }

    /// Whether an erase of `block` was interrupted or is in progress: a member is half erased, or
    /// some members are erased and others are not. The FTL has given up any data left in the
    /// latter. A drive can detect this state however the cells read: an erase ends with a mark in
    /// the out-of-band bytes (the clean marker of JFFS2), and a block without mark and data is one
    /// whose erase did not end.
    #[must_use]
    pub fn is_unstable(&self, block: BlockId) -> bool {
        let most = self.erased_most(block);
        let behind = |index| self.erase_counts[index] < most;
        self.members(block).any(|index| self.is_unstable_at(index) || behind(index))
    }

    pub(crate) fn is_unstable_at(&self, index: usize) -> bool {
        self.cells[index][1] & UNSTABLE != 0
    }

    /// The members that the next erase of `block` has to erase: all of them, or, after an
    /// interrupted erase, those that it did not reach. Erase counts of members therefore differ
    /// only while an erase is incomplete, and the drive detects that after a loss of power.
    pub fn members_to_erase(&self, block: BlockId) -> impl Iterator<Item = u32> + use<'_> {
        let most = self.erased_most(block);
        let all = self.members(block).all(|index| self.erase_counts[index] == most);
        let behind = move |(_, index): &(u32, usize)| all || self.erase_counts[*index] < most;
        (0..).zip(self.members(block)).filter(behind).map(|(member, _)| member)
    }

    fn erased_most(&self, block: BlockId) -> u32 {
        self.members(block).map(|index| self.erase_counts[index]).max().unwrap_or(0)
    }

    fn members(&self, block: BlockId) -> impl Iterator<Item = usize> + use<> {
        let dies = self.layout.dies_per_die_group();
        (block.0 * dies..(block.0 + 1) * dies).map(|index| index as usize)
    }

    /// The erase count of each block of each die; members of a superblock are adjacent.
    #[must_use]
    pub fn erase_counts(&self) -> &[u32] {
        &self.erase_counts
    }

    /// Program units programmed over the life of the device.
    #[must_use]
    pub fn program_units_programmed_total(&self) -> u64 {
        self.program_units_programmed_total
    }

    /// Blocks erased over the life of the device, each member of a superblock counted.
    #[must_use]
    pub fn erases_total(&self) -> u64 {
        self.erases_total
    }

    /// Checks that the program units programmed equal those erased plus those that are programmed
    /// now (law 2). Walks all blocks.
    ///
    /// # Panics
    /// If the law is broken.
    pub fn assert_conserved(&self) {
        let programmed: u64 =
            self.cells.iter().map(|&[program_units, _]| u64::from(program_units)).sum();
        let left_out: u64 =
            self.left_out.iter().map(|&program_units| u64::from(program_units)).sum();
        let present = programmed - left_out;
        assert_eq!(
            self.program_units_programmed_total,
            self.program_units_erased_total + present,
            "program units programmed must be those erased plus those still present"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Slc;
    use crate::store::UnitTag;

    fn device() -> Nand {
        Nand::with_content(Geometry {
            blocks_per_plane: 2,
            pages_per_block: 2,
            ..Geometry::SMALLEST
        })
    }

    fn unit(lpn: u32) -> StoredUnit {
        StoredUnit { tag: UnitTag::Data(lpn), version: 1, payload: None }
    }

    fn program(nand: &mut Nand, program_unit: u32) -> Result<(), NandError> {
        nand.program_begin(ProgramUnitId(program_unit), [unit(program_unit)])?;
        nand.program_end(ProgramUnitId(program_unit));
        Ok(())
    }

    #[test]
    fn program_units_are_programmed_in_order_and_once() {
        let mut nand = device();
        let out_of_order = NandError::OutOfOrderProgram {
            program_unit: ProgramUnitId(1),
            expected: ProgramUnitId(0),
        };
        assert_eq!(program(&mut nand, 1), Err(out_of_order));
        assert_eq!(program(&mut nand, 0), Ok(()));
        assert_eq!(program(&mut nand, 1), Ok(()));
        assert_eq!(
            program(&mut nand, 1),
            Err(NandError::ProgramFull { program_unit: ProgramUnitId(1) })
        );
        assert_eq!(program(&mut nand, 99), Err(NandError::OutOfRange { address: 99 }));
        nand.erase_begin(BlockId(0), 0).unwrap();
        nand.erase_end(BlockId(0), 0);
        assert_eq!(program(&mut nand, 0), Ok(()));
        assert_eq!(nand.erase_counts(), [1, 0]);
        nand.assert_conserved();
    }

    #[test]
    fn members_of_a_superblock_are_programmed_in_order() {
        let one = device().geometry().clone();
        let geometry = Geometry { channels: 2, dies_per_superblock: 2, ..one };
        let mut nand = Nand::with_content(geometry);
        // The second die is ahead of the first.
        for program_unit in [1, 3, 0] {
            assert_eq!(program(&mut nand, program_unit), Ok(()));
        }
        let out_of_order = NandError::OutOfOrderProgram {
            program_unit: ProgramUnitId(0),
            expected: ProgramUnitId(2),
        };
        assert_eq!(program(&mut nand, 0), Err(out_of_order));
        assert_eq!(
            program(&mut nand, 3),
            Err(NandError::ProgramFull { program_unit: ProgramUnitId(3) })
        );
        assert_eq!(nand.read(Pun(2)), Err(NandError::ReadErased { unit: Pun(2) }));
        assert!(nand.read(Pun(3)).is_ok());
        nand.erase_begin(BlockId(0), 1).unwrap();
        nand.erase_end(BlockId(0), 1);
        assert_eq!(
            (nand.program_units_programmed(BlockId(0)), nand.read(Pun(0)).is_ok()),
            (1, true)
        );
        assert_eq!((program(&mut nand, 1), nand.erase_counts()[1]), (Ok(()), 1));
        nand.assert_conserved();
    }

    #[test]
    fn bulk_programs_equal_single_programs() {
        let one = device().geometry().clone();
        let wide = Geometry { channels: 2, dies_per_superblock: 2, ..one.clone() };
        for geometry in [Geometry { pages_per_block: 7, ..one }, wide] {
            let mut bulk = Nand::new(geometry.clone());
            let mut single = Nand::new(geometry.clone());
            let per_block = geometry.program_units_per_block();
            for (first, program_units) in
                [(0, 1), (1, 2), (3, 0), (3, per_block - 3), (per_block, 2)]
            {
                bulk.program_bulk(ProgramUnitId(first), program_units).unwrap();
                for program_unit in first..first + program_units {
                    single.program_begin(ProgramUnitId(program_unit), []).unwrap();
                    single.program_end(ProgramUnitId(program_unit));
                }
                assert_eq!(bulk.cells[..], single.cells[..]);
                bulk.assert_conserved();
            }
            let past = bulk.program_bulk(ProgramUnitId(per_block + 2), per_block);
            assert_eq!(
                past,
                Err(NandError::ProgramFull { program_unit: ProgramUnitId(2 * per_block) })
            );
            assert_eq!(bulk.program_units_programmed(BlockId(1)), per_block);
            bulk.assert_conserved();
        }
    }

    #[test]
    fn slc_blocks_are_full_sooner() {
        let one = device().geometry().clone();
        let slc = Some(Slc { blocks: 1, bits: 2 });
        let geometry = Geometry { pages_per_block: 5, slc, ..one };
        let mut nand = Nand::with_content(geometry.clone());
        assert_eq!([0, 1].map(|block| nand.layout().program_units_of(BlockId(block))), [2, 5]);
        assert_eq!((program(&mut nand, 0), program(&mut nand, 1)), (Ok(()), Ok(())));
        assert_eq!(
            program(&mut nand, 2),
            Err(NandError::ProgramFull { program_unit: ProgramUnitId(2) })
        );
        assert!((5..10).all(|program_unit| program(&mut nand, program_unit).is_ok()));
        assert_eq!(nand.read(Pun(2)), Err(NandError::ReadErased { unit: Pun(2) }));
        nand.erase_begin(BlockId(0), 0).unwrap();
        nand.erase_end(BlockId(0), 0);
        nand.assert_conserved();
        let mut no_content = Nand::new(geometry);
        assert_eq!(no_content.program_bulk(ProgramUnitId(1), 0), Ok(()));
        let past = Err(NandError::ProgramFull { program_unit: ProgramUnitId(2) });
        assert_eq!(
            (
                no_content.program_bulk(ProgramUnitId(0), 3),
                no_content.program_units_programmed(BlockId(0))
            ),
            (past, 2)
        );
    }

    #[test]
    fn interrupted_operations_are_torn() {
        let mut nand = device();
        nand.program_begin(ProgramUnitId(0), [unit(7)]).unwrap();
        assert_eq!(nand.read(Pun(0)), Err(NandError::Uncorrectable { unit: Pun(0) }));
        nand.program_end(ProgramUnitId(0));
        assert_eq!(nand.read(Pun(0)).unwrap().unwrap().tag, UnitTag::Data(7));
        assert_eq!(nand.read(Pun(1)), Err(NandError::ReadErased { unit: Pun(1) }));
        nand.erase_begin(BlockId(0), 0).unwrap();
        assert_eq!(nand.read(Pun(0)), Err(NandError::Uncorrectable { unit: Pun(0) }));
        assert_eq!(program(&mut nand, 1), Err(NandError::UnstableErase { block: BlockId(0) }));
    }
}
