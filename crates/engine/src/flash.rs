//! Flash for the immediate engine: the simulated array, or any other implementation of program and
//! erase.

use prism_ftl::{Ftl, TrimRange, UnitWrite};
use prism_nand::{BlockId, Cause, Geometry, Layout, Nand, NandError, ProgramUnitId, Status};

use crate::content;

/// Flash whose operations have ended when the call returns.
///
/// The calls obey the rules of flash: program units of a block in order, each once between two
/// erases. An error is a failure of the whole device (such as a loss of power); the state of the
/// affected pages is then unknown.
pub trait Flash {
    /// The error of an operation.
    type Error;

    /// The geometry.
    fn geometry(&self) -> &Geometry;

    /// The address layout.
    fn layout(&self) -> &Layout;

    /// Whether programmed data can be read again. If not, program units may be programmed as mere
    /// counts by [`Flash::program_bulk`].
    fn keeps_content(&self) -> bool;

    /// Programs `program_units` program units of one block from `first` on, without content.
    ///
    /// # Errors
    /// If the flash fails.
    fn program_bulk(&mut self, first: ProgramUnitId, program_units: u32)
    -> Result<(), Self::Error>;

    /// Programs `program_unit` with `units`, from its first unit on, padded to its end. A unit with
    /// a source is a copy of that unit, tag and version included. Others are host data with logical
    /// unit and version, padding ([`UnitWrite::PAD`]), or a tombstone ([`UnitWrite::TOMBSTONE`])
    /// with [`Ftl::tombstone_ranges`]. `bytes` is empty, or has the bytes of a mapping unit for
    /// each of `units`.
    ///
    /// # Errors
    /// If the flash fails.
    fn program(
        &mut self,
        program_unit: ProgramUnitId,
        cause: Cause,
        units: &[UnitWrite],
        bytes: &[u8],
        ftl: &Ftl,
    ) -> Result<(), Self::Error>;

    /// Erases all members of `block` that have to be erased ([`Nand::members_to_erase`]). Returns
    /// the number of successful erases, 1 without superblocks. Everything programmed before is
    /// durable before the erase begins.
    ///
    /// # Errors
    /// If the flash fails.
    fn erase(&mut self, block: BlockId, cause: Cause) -> Result<u32, Self::Error>;

    /// Whether single programs and erases may fail ([`Flash::take_status`]). Program units are then
    /// programmed one by one.
    fn may_fail(&self) -> bool {
        false
    }

    /// The status of the last program or erase. After a failure the block is bad: data programmed
    /// there before can be read, and the engine programs no more in it.
    fn take_status(&mut self) -> Status {
        Status::Passed
    }

    /// Makes everything programmed and erased before durable; no effect where operations are
    /// durable when they end. Called before each victim or step of a merge, and between an erase
    /// and the next host program unit.
    ///
    /// # Errors
    /// If the flash fails.
    fn sync(&mut self) -> Result<(), Self::Error>;
}

impl Flash for Nand {
    type Error = NandError;

    fn geometry(&self) -> &Geometry {
        self.geometry()
    }

    fn layout(&self) -> &Layout {
        self.layout()
    }

    fn keeps_content(&self) -> bool {
        self.keeps_content()
    }

    fn program_bulk(&mut self, first: ProgramUnitId, program_units: u32) -> Result<(), NandError> {
        self.program_bulk(first, program_units)
    }

    fn program(
        &mut self,
        program_unit: ProgramUnitId,
        _cause: Cause,
        units: &[UnitWrite],
        bytes: &[u8],
        ftl: &Ftl,
    ) -> Result<(), NandError> {
        let unit = self.geometry().unit.0 as usize;
        let payloads: Vec<Box<[u8]>> = bytes.chunks_exact(unit).map(Into::into).collect();
        let tombstones = units.iter().filter(|write| write.lpn == UnitWrite::TOMBSTONE);
        let encode = |write| TrimRange::encode_all(ftl.tombstone_ranges(write));
        let tombstones: Vec<Box<[u8]>> = tombstones.map(encode).collect();
        content::program_begin(self, program_unit, units, &payloads, &tombstones)?;
        self.program_end(program_unit);
        Ok(())
    }

    fn erase(&mut self, block: BlockId, _cause: Cause) -> Result<u32, NandError> {
        let mut erased = 0;
        // The list of members is made before any of them is erased.
        for member in self.members_to_erase(block).collect::<Vec<_>>() {
            self.erase_begin(block, member)?;
            erased += u32::from(self.erase_end(block, member) == Status::Passed);
        }
        Ok(erased)
    }

    fn may_fail(&self) -> bool {
        self.has_faults()
    }

    fn take_status(&mut self) -> Status {
        self.take_status()
    }

    fn sync(&mut self) -> Result<(), NandError> {
        Ok(())
    }
}

impl<F: Flash> Flash for &mut F {
    type Error = F::Error;

    fn geometry(&self) -> &Geometry {
        (**self).geometry()
    }

    fn layout(&self) -> &Layout {
        (**self).layout()
    }

    fn keeps_content(&self) -> bool {
        (**self).keeps_content()
    }

    fn program_bulk(&mut self, first: ProgramUnitId, program_units: u32) -> Result<(), F::Error> {
        (**self).program_bulk(first, program_units)
    }

    fn program(
        &mut self,
        program_unit: ProgramUnitId,
        cause: Cause,
        units: &[UnitWrite],
        bytes: &[u8],
        ftl: &Ftl,
    ) -> Result<(), F::Error> {
        (**self).program(program_unit, cause, units, bytes, ftl)
    }

    fn erase(&mut self, block: BlockId, cause: Cause) -> Result<u32, F::Error> {
        (**self).erase(block, cause)
    }

    fn may_fail(&self) -> bool {
        (**self).may_fail()
    }

    fn take_status(&mut self) -> Status {
        (**self).take_status()
    }

    fn sync(&mut self) -> Result<(), F::Error> {
        (**self).sync()
    }
}
