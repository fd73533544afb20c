//! Flash for the engine without time: the simulated array, or a test's around it.

use prism_ftl::{Ftl, TrimRange, UnitWrite};
use prism_nand::{BlockId, Cause, Nand, ProgramUnitId, Status};

use crate::content;

/// Flash whose operations have ended when the call returns: the simulated array, of which a test
/// may replace single operations.
///
/// The calls obey the rules of flash: program units of a block in order, each once between two
/// erases.
pub trait Flash {
    /// The array.
    fn nand(&self) -> &Nand;

    /// The same, for programs and erases.
    fn nand_mut(&mut self) -> &mut Nand;

    /// Programs `program_unit` with `units`, from its first unit on, padded to its end. A unit with
    /// a source is a copy of that unit, tag and version included. Others are host data with logical
    /// unit and version, padding ([`UnitWrite::PAD`]), or a tombstone ([`UnitWrite::TOMBSTONE`])
    /// with [`Ftl::tombstone_ranges`].
    fn program(
        &mut self,
        program_unit: ProgramUnitId,
        _cause: Cause,
        units: &[UnitWrite],
        ftl: &Ftl,
    ) {
        let tombstones = units.iter().filter(|write| write.lpn == UnitWrite::TOMBSTONE);
        let encode = |write| TrimRange::encode_all(ftl.tombstone_ranges(write));
        let tombstones: Vec<Box<[u8]>> = tombstones.map(encode).collect();
        let nand = self.nand_mut();
        content::program_begin(nand, program_unit, units, &[], &tombstones).expect(LAWFUL);
        nand.program_end(program_unit);
    }

    /// Erases all members of `block` that have to be erased ([`Nand::members_to_erase`]). Returns
    /// the number of successful erases, 1 without superblocks.
    fn erase(&mut self, block: BlockId, _cause: Cause) -> u32 {
        let nand = self.nand_mut();
        let mut erased = 0;
        // The list of members is made before any of them is erased.
        for member in nand.members_to_erase(block).collect::<Vec<_>>() {
            nand.erase_begin(block, member).expect(LAWFUL);
            erased += u32::from(nand.erase_end(block, member) == Status::Passed);
        }
        erased
    }

    /// Whether single programs and erases may fail ([`Flash::take_status`]). Program units are then
    /// programmed one by one.
    fn may_fail(&self) -> bool {
        self.nand().has_faults()
    }

    /// The status of the last program or erase. After a failure the block is bad: data programmed
    /// there before can be read, and the engine programs no more in it.
    fn take_status(&mut self) -> Status {
        self.nand_mut().take_status()
    }
}

/// Why an operation of the simulated array is not refused.
pub(crate) const LAWFUL: &str = "the engine obeys the rules of flash";

impl Flash for Nand {
    fn nand(&self) -> &Nand {
        self
    }

    fn nand_mut(&mut self) -> &mut Nand {
        self
    }
}

impl Flash for &mut Nand {
    fn nand(&self) -> &Nand {
        self
    }

    fn nand_mut(&mut self) -> &mut Nand {
        self
    }
}
