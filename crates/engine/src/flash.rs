//! Flash for the engine without time: the simulated array, or a test's.

use prism_ftl::{Ftl, TrimRange, UnitWrite};
use prism_nand::{BlockId, Cause, Geometry, Layout, Nand, ProgramUnitId, Status};

use crate::content;

/// Flash whose operations have ended when the call returns.
///
/// The calls obey the rules of flash: program units of a block in order, each once between two
/// erases.
pub trait Flash {
    /// The geometry.
    fn geometry(&self) -> &Geometry;

    /// The address layout.
    fn layout(&self) -> &Layout;

    /// Whether programmed data can be read again. If not, program units may be programmed as mere
    /// counts by [`Flash::program_bulk`].
    fn keeps_content(&self) -> bool;

    /// Programs `program_units` program units of one block from `first` on, without content.
    fn program_bulk(&mut self, first: ProgramUnitId, program_units: u32);

    /// Programs `program_unit` with `units`, from its first unit on, padded to its end. A unit with
    /// a source is a copy of that unit, tag and version included. Others are host data with logical
    /// unit and version, padding ([`UnitWrite::PAD`]), or a tombstone ([`UnitWrite::TOMBSTONE`])
    /// with [`Ftl::tombstone_ranges`]. `bytes` is empty, or has the bytes of a mapping unit for
    /// each of `units`.
    fn program(
        &mut self,
        program_unit: ProgramUnitId,
        cause: Cause,
        units: &[UnitWrite],
        bytes: &[u8],
        ftl: &Ftl,
    );

    /// Erases all members of `block` that have to be erased ([`Nand::members_to_erase`]). Returns
    /// the number of successful erases, 1 without superblocks.
    fn erase(&mut self, block: BlockId, cause: Cause) -> u32;

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
}

/// Why an operation of the simulated array is not refused.
const LAWFUL: &str = "the engine obeys the rules of flash";

impl Flash for Nand {
    fn geometry(&self) -> &Geometry {
        self.geometry()
    }

    fn layout(&self) -> &Layout {
        self.layout()
    }

    fn keeps_content(&self) -> bool {
        self.keeps_content()
    }

    fn program_bulk(&mut self, first: ProgramUnitId, program_units: u32) {
        self.program_bulk(first, program_units).expect(LAWFUL);
    }

    fn program(
        &mut self,
        program_unit: ProgramUnitId,
        _cause: Cause,
        units: &[UnitWrite],
        bytes: &[u8],
        ftl: &Ftl,
    ) {
        let unit = self.geometry().unit.0 as usize;
        let payloads: Vec<Box<[u8]>> = bytes.chunks_exact(unit).map(Into::into).collect();
        let tombstones = units.iter().filter(|write| write.lpn == UnitWrite::TOMBSTONE);
        let encode = |write| TrimRange::encode_all(ftl.tombstone_ranges(write));
        let tombstones: Vec<Box<[u8]>> = tombstones.map(encode).collect();
        content::program_begin(self, program_unit, units, &payloads, &tombstones).expect(LAWFUL);
        self.program_end(program_unit);
    }

    fn erase(&mut self, block: BlockId, _cause: Cause) -> u32 {
        let mut erased = 0;
        // The list of members is made before any of them is erased.
        for member in self.members_to_erase(block).collect::<Vec<_>>() {
            self.erase_begin(block, member).expect(LAWFUL);
            erased += u32::from(self.erase_end(block, member) == Status::Passed);
        }
        erased
    }

    fn may_fail(&self) -> bool {
        self.has_faults()
    }

    fn take_status(&mut self) -> Status {
        self.take_status()
    }
}

impl<F: Flash> Flash for &mut F {
    fn geometry(&self) -> &Geometry {
        (**self).geometry()
    }

    fn layout(&self) -> &Layout {
        (**self).layout()
    }

    fn keeps_content(&self) -> bool {
        (**self).keeps_content()
    }

    fn program_bulk(&mut self, first: ProgramUnitId, program_units: u32) {
        (**self).program_bulk(first, program_units);
    }

    fn program(
        &mut self,
        program_unit: ProgramUnitId,
        cause: Cause,
        units: &[UnitWrite],
        bytes: &[u8],
        ftl: &Ftl,
    ) {
        (**self).program(program_unit, cause, units, bytes, ftl);
    }

    fn erase(&mut self, block: BlockId, cause: Cause) -> u32 {
        (**self).erase(block, cause)
    }

    fn may_fail(&self) -> bool {
        (**self).may_fail()
    }

    fn take_status(&mut self) -> Status {
        (**self).take_status()
    }
}
