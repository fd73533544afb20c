//! The contract between the controller and flash.

use prism_base::{Nanos, SimTime, Slab};
use prism_ftl::{ReadRecovery, ReadRun, Units};
use prism_nand::{BlockId, Cause, DieId, Geometry, Layout, ProgramUnitId, Pun, Status};

use crate::control::{COPIES_MAX, HOST_PROGRAM_UNITS_MAX};
use crate::counts::FlashCounts;

/// A program in flight or queued, with the reads it waits for if it is a copy.
///
/// Copies use little more than the leading cache line.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub struct Job {
    /// Reads of a copy, or of a stripe, that have not ended.
    pub reads_left: u32,
    /// The die group whose program units and copies are counted.
    pub die_group: u32,
    /// Where it is programmed.
    pub program_unit: u32,
    /// Pages that a copy-back reads, without a transfer.
    pub copied_back: u32,
    /// The block that a copy empties.
    pub victim: Option<BlockId>,
    /// Why.
    pub cause: Option<Cause>,
    /// The stream of host units.
    pub stream: u32,
    /// The units, from the first of the program unit on; the rest is padding.
    pub units: Units,
    /// The caller's tags of host units.
    pub tags: Vec<u32>,
    /// How long the array takes for the reads of a copy-back.
    pub back_time: Nanos,
    /// Indices of units whose content is lost.
    pub lost: Vec<u32>,
    /// Bytes of the host units, one each, or empty.
    pub payloads: Vec<Box<[u8]>>,
    /// What the tombstones among the units say, in their order, if flash keeps content.
    pub tombstones: Vec<Box<[u8]>>,
}

// The units are in the leading cache line.
const _: () = assert!(std::mem::offset_of!(Job, tags) == 64);

/// The programs of a controller, by number: it takes a job before it submits its reads or program,
/// and gives it back when the program has taken effect. Devices that read stripes use some too.
pub type Jobs = Slab<Job>;

/// Operations of the caller on one die.
#[derive(Clone, Copy, Debug, Default)]
pub struct Load {
    /// Operations that are queued or in flight.
    pub host_ops: u32,
    /// Host program units that are queued or in flight.
    pub host_program_units: u32,
}

/// An operation that has ended.
#[derive(Clone, Copy, Debug)]
pub enum Ended {
    /// A read of the caller.
    Read {
        /// Its tag.
        tag: u32,
        /// The die on which it is counted.
        die: DieId,
    },
    /// One of the reads of a copy.
    CopyRead {
        /// Its job.
        job: u32,
    },
    /// A program.
    Program {
        /// Its job.
        job: u32,
        /// Whether the cells took the data.
        status: Status,
    },
    /// The erase of a block on one of its dies.
    Erase {
        /// The block.
        block: BlockId,
        /// The die group whose cleaner erases it.
        die_group: u32,
        /// Whether it is erased.
        status: Status,
    },
}

/// Flash that executes the operations of one controller: simulated dies and channels, the blocks of
/// a share of a real device, or the zones of a drive. It knows no FTL.
///
/// Operations are submitted, and end later. Programs of a block are executed in the order of their
/// submission, which is that of the block's program units. A block is erased when no other
/// operation on it is in flight.
pub trait FlashDevice {
    /// The geometry.
    fn geometry(&self) -> &Geometry;

    /// The address layout.
    fn layout(&self) -> &Layout;

    /// Whether it programs the payloads of jobs, or may lose units: jobs keep both only then.
    fn uses_payloads(&self) -> bool;

    /// Operations by cause. The device counts reads and programs when they begin, the controller
    /// erases when they have ended.
    fn counts(&self) -> &FlashCounts;

    /// The same, for what the controller counts.
    fn counts_mut(&mut self) -> &mut FlashCounts;

    /// Operations of the caller on a die.
    fn load(&self, die: DieId) -> &Load;

    /// The same, for the controller, which counts them.
    fn load_mut(&mut self, die: DieId) -> &mut Load;

    /// Submits the read `run` of the caller, which ends with [`Ended::Read`] of `tag`. Only some
    /// schedulers use `urgent`.
    fn read(
        &mut self,
        jobs: &mut Jobs,
        run: &ReadRun,
        cause: Cause,
        tag: u32,
        urgent: bool,
        now: SimTime,
    );

    /// Submits the read `run` for the copy `job`, which ends with [`Ended::CopyRead`].
    fn read_for_copy(&mut self, jobs: &mut Jobs, job: u32, run: &ReadRun, now: SimTime);

    /// Submits the program of `job` at its program unit.
    fn program(&mut self, jobs: &mut Jobs, job: u32, now: SimTime);

    /// Submits the erases, for `cause`, of all members of `block` that have to be erased, each of
    /// which ends with [`Ended::Erase`]. Returns their number.
    fn erase(
        &mut self,
        jobs: &mut Jobs,
        block: BlockId,
        cause: Cause,
        die_group: u32,
        now: SimTime,
    ) -> u32;

    /// Ends the next phase of an operation. Returns its time, and the operation if it has ended.
    /// The controller processes it, and may submit operations; then it calls
    /// [`FlashDevice::go_on`] until that returns nothing, and [`FlashDevice::end_turn`].
    ///
    /// # Panics
    /// If no operation is in flight.
    fn end_next(&mut self, jobs: &mut Jobs) -> (SimTime, Option<Ended>);

    /// Continues after the phase that has ended. Returns an operation that ends thereby.
    fn go_on(&mut self, _jobs: &mut Jobs, _now: SimTime) -> Option<Ended> {
        None
    }

    /// All that follows from the phase is submitted.
    fn end_turn(&mut self) {}

    /// When the next phase of an operation ends; [`SimTime::NEVER`] if none is in flight.
    fn next_at(&self) -> SimTime;

    /// Makes what has ended durable, if the order in which blocks become durable matters. Called
    /// before each victim is chosen: copies must not be durable before their sources, and a block
    /// must not lose its last valid unit to program units that are not durable.
    fn order(&mut self) {}

    /// Program units of the caller that may be queued or in flight on a die at once.
    #[inline]
    fn program_units_max(&self) -> u32 {
        HOST_PROGRAM_UNITS_MAX
    }

    /// Copy steps for each die of a die group that may be in flight at once.
    fn copies_max(&self) -> u32 {
        COPIES_MAX
    }

    /// Program units of the caller that a die takes at once where the FTL names the die group. A
    /// caller that submits them in order, and has no buffer in which those of other die groups
    /// overtake, needs more than one in transfer and one being programmed.
    fn named_program_units_max(&self) -> u32 {
        self.program_units_max()
    }

    /// Whether the number of partly written blocks is limited, so that
    /// [`FlashDevice::make_open`] is called before each program.
    fn limits_open_blocks(&self) -> bool {
        false
    }

    /// The program of `program_unit` is next. If it opens one block too many, blocks are closed to
    /// which the FTL does not write any more, as `is_writing` says.
    fn make_open(&mut self, _program_unit: ProgramUnitId, _is_writing: &dyn Fn(BlockId) -> bool) {}

    /// Whether programs and erases may fail, and reads may need retries or a rebuild.
    fn may_fail(&self) -> bool {
        false
    }

    /// Jobs whose programs were not begun because their block has failed, since the last call.
    fn take_refused(&mut self) -> Vec<u32> {
        Vec::new()
    }

    /// The outcome of a read of the unit at `at` that begins now. Adds its retries and rebuild to
    /// `recovery`, and returns whether the unit is lost.
    fn sample_read_errors(
        &mut self,
        _at: Pun,
        _now: SimTime,
        _recovery: &mut ReadRecovery,
    ) -> bool {
        false
    }

    /// Submits the reads of the rest of a stripe that rebuild what the copy `job` reads by `run`.
    /// Each ends with [`Ended::CopyRead`]. Returns their number.
    fn rebuild_for_copy(
        &mut self,
        _jobs: &mut Jobs,
        _job: u32,
        _run: &ReadRun,
        _now: SimTime,
    ) -> u32 {
        0
    }

    /// Whether the content of a unit is marked as lost.
    fn is_marked_lost(&self, _at: Pun) -> bool {
        false
    }

    /// Marks the content of a unit as lost.
    fn mark_lost(&mut self, _at: Pun) {}

    /// Program units of a wordline that take effect together; 1 if each takes effect alone.
    fn wordline_program_units(&self) -> u32 {
        1
    }

    /// The last program unit of the wordline of `program_unit`.
    fn wordline_end(&self, program_unit: ProgramUnitId) -> ProgramUnitId {
        program_unit
    }

    /// Whether copies may be made within a plane without a transfer ([`FlashDevice::copy_back`]).
    fn copies_back(&self) -> bool {
        false
    }

    /// Prepares `job` as a copy of `reads` to `to` in one operation of the die. Returns false if it
    /// would leave its plane.
    fn copy_back(&self, _job: &mut Job, _to: ProgramUnitId, _reads: &[ReadRun]) -> bool {
        false
    }

    /// Checks that operations by cause are those of the flash (law 2).
    ///
    /// # Panics
    /// If they are not.
    fn assert_conserved(&self) {}
}
