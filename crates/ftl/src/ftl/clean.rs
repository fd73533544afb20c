//! Cleaning: the reads, copies and erases that empty a block, and their causes.

use prism_nand::{BlockId, Cause, DieGroupId, ProgramUnitId};

use super::{Ftl, delegate_some};
use crate::plan::{ReadRun, Units};

/// Zones are reset by the host.
const NO_COPIES: &str = "zone mapping has no copies";

impl Ftl {
    /// Whether copies out of `victim` reserve their program units when they are planned, and are
    /// programmed in that order. Otherwise a copy reserves its program unit when its data has been
    /// read.
    #[must_use]
    #[inline]
    pub fn copies_in_order(&self, victim: BlockId) -> bool {
        match self {
            Self::Page(_) => false,
            Self::Hybrid(_) | Self::Zoned(_) => true,
            Self::Ranges(map) => map.copies_in_order(victim),
        }
    }

    /// Reserves the next program unit on `die_group` for copies out of `victim`.
    ///
    /// # Panics
    /// If no program unit is left; the reserve blocks prevent that.
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

    /// Plans the next step of emptying `victim`, from `cursor` on: `reads`, and a program of
    /// `units` that waits for them; both are empty once the whole block is planned. Both lists are
    /// reused.
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

    /// Every copy out of `victim` is programmed. Returns the block to be erased now: the victim, or
    /// the block that the merge has replaced; `None` if there is none, as after emptying a failed
    /// block, which is retired.
    #[inline]
    pub fn emptied(&mut self, victim: BlockId) -> Option<BlockId> {
        match self {
            Self::Page(map) => map.is_to_be_erased(victim).then_some(victim),
            Self::Zoned(_) => Some(victim),
            Self::Hybrid(map) => map.emptied(victim),
            Self::Ranges(map) => map.emptied(victim),
        }
    }

    /// Whether cleaning of `die_group` has priority over other work: fewer than `critical` erased
    /// blocks, or a host program unit that waits for a merge there.
    #[must_use]
    #[inline]
    pub fn is_urgent(&self, die_group: DieGroupId, critical: u32) -> bool {
        match self {
            Self::Page(map) => {
                map.free_blocks(die_group) < critical || map.region_is_urgent(die_group)
            }
            Self::Hybrid(map) => map.has_work(die_group) || map.free_blocks(die_group) < critical,
            Self::Ranges(map) => map.is_urgent(die_group, critical),
            // A zone reset is a single erase, too short to delay other work for long.
            Self::Zoned(_) => true,
        }
    }

    /// Whether [`Ftl::take_idle_die_group`] can return a die group.
    #[must_use]
    #[inline]
    pub fn has_idle_die_groups(&self) -> bool {
        !matches!(self, Self::Page(_))
    }

    delegate_some! {
        /// The program unit that [`Ftl::reserve_copy`] would return, if a block is open and the
        /// plan does not fix it.
        #[must_use]
        [Page Ranges] (&self).next_copy_program_unit(die_group: DieGroupId, victim: BlockId)
            -> Option<ProgramUnitId>, or [Hybrid Zoned] None;
        /// Reserves the next program unit of `block` for padding, if `block` is being written and
        /// that program unit is not after `until`. This fills up a wordline.
        // Zoned drives are power-loss protected, and a zone must not have padding.
        [Page Hybrid Ranges] (&mut self).reserve_pad(block: BlockId, until: ProgramUnitId)
            -> Option<ProgramUnitId>, or [Zoned] None;
        /// A parity program unit that has to be programmed now because its stripe is complete.
        [Page Ranges] (&mut self).take_parity() -> Option<ProgramUnitId>, or [Hybrid Zoned] None;
        /// A die group that has a block to erase because of operations on other die groups, so that
        /// its cleaning has to be started.
        [Hybrid Ranges Zoned] (&mut self).take_idle_die_group()
            -> Option<DieGroupId>, or [Page] None;
        /// A block to be moved by wear levelling because it has fewer erases than others.
        [Page Ranges] (&mut self).pick_for_wear(die_group: DieGroupId)
            -> Option<BlockId>, or [Hybrid Zoned] None;
        /// The cause of the operations that empty `victim`.
        // Erases of zones come from resets only, which the host requests.
        #[must_use]
        [Page Hybrid Ranges] (&self).cause_of_cleaning(victim: BlockId)
            -> Cause, or [Zoned] Cause::Host;
        /// The cause under which a copy out of a block is counted.
        #[must_use]
        [Page] (&self).cause_of_copies(victim: BlockId, otherwise: Cause)
            -> Cause, or [Hybrid Ranges Zoned] otherwise;
    }
}
