//! Where program units of the host go.

use prism_nand::{BlockId, DieGroupId, ProgramUnitId};

use super::Ftl;
use crate::plan::HostPlace;

impl Ftl {
    /// Whether a program unit of `stream` that stands on `program_unit` found no room in the
    /// blocks of one bit a cell that it was meant for.
    #[must_use]
    #[inline]
    pub fn is_overflow(&self, program_unit: ProgramUnitId, stream: u32) -> bool {
        match self {
            Self::Page(map) => map.is_overflow(program_unit, stream),
            _ => false,
        }
    }

    /// Whether idle time has a write cache to empty on `die_group`.
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

    /// Where the next program unit of `stream`, which begins with logical unit `first`, may go.
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

    /// Whether the FTL says to which die group a program unit goes, of some streams at least
    /// ([`Ftl::host_place`]).
    #[must_use]
    #[inline]
    pub fn places_host(&self) -> bool {
        !matches!(self, Self::Page(_))
    }

    /// `stream` is [`HostPlace::Blocked`] for `first`: returns a die group that has to merge or
    /// erase before that changes; `None` if what is in flight has to end first.
    pub fn make_room(&mut self, stream: u32, first: u32) -> Option<DieGroupId> {
        match self {
            Self::Page(_) => None,
            Self::Hybrid(map) => map.make_room(stream, first),
            Self::Ranges(map) => map.make_room(stream, first),
            Self::Zoned(map) => map.make_room(stream),
        }
    }

    /// Every log block is to be merged; nothing to do where there are none.
    pub fn want_all(&mut self) {
        match self {
            Self::Page(_) | Self::Zoned(_) => {}
            Self::Hybrid(map) => map.want_all(),
            Self::Ranges(map) => map.want_all(),
        }
    }

    /// Whether `die_group` may take a program unit of `stream`, of those that any die group may
    /// take.
    #[must_use]
    #[inline]
    pub fn host_may_write(&self, die_group: DieGroupId, stream: u32) -> bool {
        match self {
            Self::Page(map) => map.host_may_write(die_group, stream),
            Self::Hybrid(_) | Self::Zoned(_) => false,
            Self::Ranges(map) => map.host_may_write(die_group, stream),
        }
    }

    /// Whether `die_group` holds no more than its share of the data that is mapped as `stream` is,
    /// as far as that matters to a program unit of `stream`.
    #[must_use]
    #[inline]
    pub fn balanced(&self, die_group: DieGroupId, stream: u32) -> bool {
        match self {
            Self::Page(map) => map.balanced(die_group, stream),
            Self::Hybrid(_) | Self::Zoned(_) => true,
            Self::Ranges(map) => map.balanced(die_group, stream),
        }
    }

    /// The program unit that [`Ftl::reserve_host`] would take, if a block is open.
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

    /// Takes the next program unit of `die_group` for data of `stream` that begins with logical
    /// unit `first`. What [`Ftl::take_pad`] then returns has to be programmed before it.
    ///
    /// # Panics
    /// If it is not what [`Ftl::host_place`] offers. That [`Ftl::host_may_write`] holds where
    /// the FTL names no die group is looked at in tests only.
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

    /// A program unit that stays empty, and has to be programmed before the program unit that was
    /// reserved for the host last, because program units of a block are programmed in order.
    #[inline]
    pub fn take_pad(&mut self) -> Option<ProgramUnitId> {
        match self {
            Self::Page(_) | Self::Zoned(_) => None,
            Self::Hybrid(map) => map.take_pad(),
            Self::Ranges(map) => map.take_pad(),
        }
    }
}
