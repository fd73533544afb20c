//! Flash as an engine without time needs it: the simulated array, or anything else that
//! programs and erases.

use prism_ftl::{Ftl, UnitWrite};
use prism_nand::{BlockId, Cause, Geometry, Layout, Nand, NandError, ProgramUnitId, Status};

use crate::content;

/// Flash whose operations have ended when the call returns.
///
/// The calls obey the law of flash: program units of a block in order, each once between two
/// erases. An error is the world failing (no power, a dead device): what the call was about
/// is then in an unknown state.
pub trait Flash {
    /// How an operation fails.
    type Error;

    /// The shape.
    fn geometry(&self) -> &Geometry;

    /// Its addresses.
    fn layout(&self) -> &Layout;

    /// Whether what is programmed can be read again. If not, program units may be programmed as
    /// mere counts, by [`Flash::program_bulk`].
    fn keeps_content(&self) -> bool;

    /// Programs `program_units` program units of one block from `first` on, of which nothing is
    /// kept.
    ///
    /// # Errors
    /// If the flash fails.
    fn program_bulk(&mut self, first: ProgramUnitId, program_units: u32)
    -> Result<(), Self::Error>;

    /// Programs `program_unit` with `units`, from its first unit on, padded to its end. A unit
    /// with a source is a copy of what stands there, tag and version included. Others are data of
    /// the host with their logical unit and version; a place of padding ([`UnitWrite::PAD`]); or
    /// a tombstone ([`UnitWrite::TOMBSTONE`]), which holds [`Ftl::tombstone_ranges`]. `bytes` is
    /// empty, or has a mapping unit of bytes for each of `units`.
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

    /// Erases all members of `block` that have to be ([`Nand::members_to_erase`]); returns
    /// how many that were, 1 where there are no superblocks, not counting any that failed.
    /// Everything programmed before is on flash for good before the erase begins.
    ///
    /// # Errors
    /// If the flash fails.
    fn erase(&mut self, block: BlockId, cause: Cause) -> Result<u32, Self::Error>;

    /// Whether programs and erases may fail although the flash as a whole works
    /// ([`Flash::take_status`]). Program units are then programmed one by one.
    fn may_fail(&self) -> bool {
        false
    }

    /// How the last program or erase ended. One that failed has made its block bad: what
    /// was programmed there before can be read, and nothing more is programmed.
    fn take_status(&mut self) -> Status {
        Status::Passed
    }

    /// Everything programmed and erased before is on flash for good when this returns;
    /// nothing to do where operations are so by themselves. Asked for before each
    /// victim or step of a merge, and between an erase and the next program unit of the host.
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
        content::program_begin(self, ftl, program_unit, units, &payloads)?;
        self.program_end(program_unit);
        Ok(())
    }

    fn erase(&mut self, block: BlockId, _cause: Cause) -> Result<u32, NandError> {
        let mut erased = 0;
        // Which members are behind is asked before any of them is erased.
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
