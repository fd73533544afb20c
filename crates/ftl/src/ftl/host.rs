//! Placement of host data.

use prism_nand::{BlockId, DieGroupId, ProgramUnitId};

use super::{Ftl, delegate_some};
use crate::plan::HostPlace;

impl Ftl {
    /// Whether a program unit of `stream` was written to `program_unit` because the SLC blocks
    /// intended for it were full.
    #[must_use]
    #[inline]
    pub fn is_overflow(&self, program_unit: ProgramUnitId, stream: u32) -> bool {
        self.page().is_some_and(|map| map.is_overflow(program_unit, stream))
    }

    /// Whether `die_group` has an SLC write cache to empty in idle time.
    #[must_use]
    pub fn folds_when_idle(&self, die_group: DieGroupId) -> bool {
        self.page().is_some_and(|map| map.folds_when_idle(die_group))
    }

    /// As [`Ftl::pick_victim`], in idle time.
    pub fn pick_in_idle(&mut self, die_group: DieGroupId) -> Option<BlockId> {
        match self {
            Self::Page(map) => map.pick_in_idle(die_group),
            _ => self.pick_victim(die_group),
        }
    }

    /// Where the next program unit of `stream`, which begins with logical unit `first`, may be
    /// written.
    #[must_use]
    #[inline]
    pub fn host_place(&self, stream: u32, first: u32) -> HostPlace {
        match self {
            Self::Page(_) => HostPlace::Any,
            Self::Hybrid(map) => map.host_place(stream, first),
            Self::Ranges(map) => map.host_place(stream, first),
            Self::Zoned(map) => map.host_place(stream),
        }
    }

    /// Whether the FTL chooses the die group of a program unit, for at least some streams
    /// ([`Ftl::host_place`]).
    #[must_use]
    #[inline]
    pub fn places_host(&self) -> bool {
        !matches!(self, Self::Page(_))
    }

    /// Called when `stream` is [`HostPlace::Blocked`] for `first`. Returns a die group that has to
    /// merge or erase first; `None` if operations in flight have to end first.
    pub fn make_room(&mut self, stream: u32, first: u32) -> Option<DieGroupId> {
        match self {
            Self::Page(_) => None,
            Self::Hybrid(map) => map.make_room(stream, first),
            Self::Ranges(map) => map.make_room(stream, first),
            Self::Zoned(map) => map.make_room(stream),
        }
    }

    /// The program unit that [`Ftl::reserve_host`] would return, if a block is open.
    #[must_use]
    #[inline]
    pub fn next_program_unit(
        &self,
        die_group: DieGroupId,
        stream: u32,
        first: u32,
    ) -> Option<ProgramUnitId> {
        match self {
            Self::Page(map) => map.next_program_unit(die_group, stream),
            Self::Hybrid(map) => map.next_program_unit(stream, first),
            Self::Ranges(map) => map.next_program_unit(die_group, stream, first),
            Self::Zoned(map) => map.next_program_unit(stream),
        }
    }

    /// Reserves the next program unit of `die_group` for data of `stream` that begins with logical
    /// unit `first`. Padding that [`Ftl::take_pad`] then returns has to be programmed before it.
    ///
    /// # Panics
    /// If [`Ftl::host_place`] does not allow it. [`Ftl::host_may_write`] is checked in tests only.
    #[inline]
    pub fn reserve_host(
        &mut self,
        die_group: DieGroupId,
        stream: u32,
        first: u32,
    ) -> ProgramUnitId {
        match self {
            Self::Page(map) => map.reserve_host(die_group, stream),
            Self::Hybrid(map) => map.reserve_host(die_group, stream, first),
            Self::Ranges(map) => map.reserve_host(die_group, stream, first),
            Self::Zoned(map) => map.reserve_host(die_group, stream),
        }
    }

    delegate_some! {
        /// Requests a merge of every log block; no effect on mappings without log blocks.
        [Hybrid Ranges] (&mut self).request_all_merges() -> (), or [Page Zoned] ();
        /// Whether `die_group` may be given a program unit of `stream`, for streams that may go to
        /// any die group.
        #[must_use]
        [Page Ranges] (&self).host_may_write(die_group: DieGroupId, stream: u32)
            -> bool, or [Hybrid Zoned] false;
        /// Whether `die_group` holds no more than its share of the data mapped like `stream`, where
        /// the placement of `stream` has to be balanced.
        #[must_use]
        [Page Ranges] (&self).balanced(die_group: DieGroupId, stream: u32)
            -> bool, or [Hybrid Zoned] true;
        /// A program unit of padding that has to be programmed before the one reserved last for the
        /// host, because program units of a block are programmed in order.
        [Hybrid Ranges] (&mut self).take_pad() -> Option<ProgramUnitId>, or [Page Zoned] None;
    }
}
