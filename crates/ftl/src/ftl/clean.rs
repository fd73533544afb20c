//! How blocks are emptied: the program units of copies, what they copy, and why.

use prism_nand::{BlockId, Cause, DieGroupId, ProgramUnitId};

use super::Ftl;
use crate::plan::{ReadRun, Units};

/// Zones are emptied by the host.
const NO_COPIES: &str = "a mapping by zone copies nothing";

impl Ftl {
    /// Whether copies out of `victim` have their program units from when they are planned on, and
    /// are programmed in that order. Otherwise a copy takes its program unit when its data is
    /// there.
    #[must_use]
    #[inline]
    pub fn copies_in_order(&self, victim: BlockId) -> bool {
        match self {
            Self::Page(_) => false,
            Self::Hybrid(_) | Self::Zoned(_) => true,
            Self::Ranges(map) => map.copies_in_order(victim),
        }
    }

    /// Takes the next program unit on `die_group` for copies out of `victim`.
    ///
    /// # Panics
    /// If no program unit is left: the reserve is there to prevent that.
    #[inline(always)]
    pub fn reserve_copy(&mut self, die_group: DieGroupId, victim: BlockId) -> ProgramUnitId {
        match self {
            Self::Page(map) => map.reserve_copy(die_group, victim),
            _ => self.reserve_copy_elsewhere(die_group, victim),
        }
    }

    #[inline(never)]
    fn reserve_copy_elsewhere(&mut self, die_group: DieGroupId, victim: BlockId) -> ProgramUnitId {
        match self {
            Self::Page(map) => map.reserve_copy(die_group, victim),
            Self::Hybrid(map) => map.reserve_copy(victim),
            Self::Ranges(map) => map.reserve_copy(die_group, victim),
            Self::Zoned(_) => panic!("{NO_COPIES}"),
        }
    }

    /// The program unit that [`Ftl::reserve_copy`] would take, if a block is open and it is not
    /// fixed by the plan.
    #[must_use]
    #[inline]
    pub fn next_copy_program_unit(
        &self,
        die_group: DieGroupId,
        victim: BlockId,
    ) -> Option<ProgramUnitId> {
        match self {
            Self::Page(map) => map.next_copy_program_unit(die_group, victim),
            Self::Hybrid(_) | Self::Zoned(_) => None,
            Self::Ranges(map) => map.next_copy_program_unit(die_group, victim),
        }
    }

    /// Takes the next program unit of `block`, to be left empty, if `block` is being written and
    /// that program unit is not behind `until`. So a wordline is filled up.
    pub fn reserve_pad(&mut self, block: BlockId, until: ProgramUnitId) -> Option<ProgramUnitId> {
        match self {
            Self::Page(map) => map.reserve_pad(block, until),
            Self::Hybrid(map) => map.reserve_pad(block, until),
            Self::Ranges(map) => map.reserve_pad(block, until),
            // Its drive is protected, and a program unit of a zone is not to be left empty.
            Self::Zoned(_) => None,
        }
    }

    /// A parity program unit that has to be programmed now because its stripe is complete.
    #[inline]
    pub fn take_parity(&mut self) -> Option<ProgramUnitId> {
        match self {
            Self::Page(map) => map.take_parity(),
            Self::Hybrid(_) | Self::Zoned(_) => None,
            Self::Ranges(map) => map.take_parity(),
        }
    }

    /// Plans the next step of emptying `victim`, from `cursor` on: `reads`, and a program of
    /// `units` that waits for them; none once the block is through. Both lists are reused.
    #[inline]
    pub fn gather(
        &mut self,
        victim: BlockId,
        cursor: &mut u32,
        units: &mut Units,
        reads: &mut Vec<ReadRun>,
    ) {
        match self {
            Self::Page(map) => map.gather(victim, cursor, units, reads),
            Self::Hybrid(map) => map.gather(victim, cursor, units, reads),
            Self::Ranges(map) => map.gather(victim, cursor, units, reads),
            Self::Zoned(_) => {
                reads.clear();
                units.clear();
            }
        }
    }

    /// Every copy out of `victim` is programmed. Returns the block to be erased now: the
    /// victim, or what the merge has replaced; `None` if there is nothing to erase, as in a
    /// block that has failed and is retired.
    #[inline]
    pub fn emptied(&mut self, victim: BlockId) -> Option<BlockId> {
        match self {
            Self::Page(map) => map.is_to_be_erased(victim).then_some(victim),
            Self::Zoned(_) => Some(victim),
            Self::Hybrid(map) => map.emptied(victim),
            Self::Ranges(map) => map.emptied(victim),
        }
    }

    /// Whether cleaning of `die_group` waits for nobody: fewer than `critical` erased blocks, or
    /// a host program unit that waits for a merge there.
    #[must_use]
    #[inline]
    pub fn is_pressed(&self, die_group: DieGroupId, critical: u32) -> bool {
        match self {
            Self::Page(map) => {
                map.free_blocks(die_group) < critical || map.region_is_pressed(die_group)
            }
            Self::Hybrid(map) => map.is_asked(die_group) || map.free_blocks(die_group) < critical,
            Self::Ranges(map) => map.is_pressed(die_group, critical),
            // An erase alone is over before anybody has waited long.
            Self::Zoned(_) => true,
        }
    }

    /// Whether there can be die groups such as [`Ftl::take_idle_die_group`] returns.
    #[must_use]
    #[inline]
    pub fn has_idle_die_groups(&self) -> bool {
        !matches!(self, Self::Page(_))
    }

    /// A die group that has got something to erase from what happened on others, and may not know.
    #[inline]
    pub fn take_idle_die_group(&mut self) -> Option<DieGroupId> {
        match self {
            Self::Page(_) => None,
            Self::Hybrid(map) => map.take_idle_die_group(),
            Self::Ranges(map) => map.take_idle_die_group(),
            Self::Zoned(map) => map.take_idle_die_group(),
        }
    }

    /// A block to be moved because it is worn less than others.
    pub fn pick_for_wear(&mut self, die_group: DieGroupId) -> Option<BlockId> {
        match self {
            Self::Page(map) => map.pick_for_wear(die_group),
            Self::Hybrid(_) | Self::Zoned(_) => None,
            Self::Ranges(map) => map.pick_for_wear(die_group),
        }
    }

    /// The cause of what is done to empty `victim`.
    #[must_use]
    #[inline]
    pub fn cause_of_cleaning(&self, victim: BlockId) -> Cause {
        match self {
            Self::Page(map) => map.cause_of_cleaning(victim),
            Self::Hybrid(map) => map.cause_of_cleaning(victim),
            Self::Ranges(map) => map.cause_of_cleaning(victim),
            // Only resets lead to erases, and the host asks for them.
            Self::Zoned(_) => Cause::Host,
        }
    }

    /// The cause under which a copy out of a block is counted.
    #[must_use]
    #[inline]
    pub fn cause_of_copies(&self, victim: BlockId, otherwise: Cause) -> Cause {
        match self {
            Self::Page(map) => map.cause_of_copies(victim, otherwise),
            Self::Hybrid(_) | Self::Ranges(_) | Self::Zoned(_) => otherwise,
        }
    }
}
