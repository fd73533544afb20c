//! Where rows of the host go.

use prism_nand::{BlockId, LaneId, RowId};

use super::Ftl;
use crate::plan::HostPlace;

impl Ftl {
    /// Whether a row of `stream` that stands on `row` found no room in the blocks of one bit
    /// a cell that it was meant for.
    #[must_use]
    #[inline]
    pub fn is_overflow(&self, row: RowId, stream: u32) -> bool {
        match self {
            Self::Page(map) => map.is_overflow(row, stream),
            _ => false,
        }
    }

    /// Whether idle time has a write cache to empty on `lane`.
    #[must_use]
    pub fn folds_when_idle(&self, lane: LaneId) -> bool {
        self.page().is_some_and(|map| map.folds_when_idle(lane))
    }

    /// As [`Ftl::pick_victim`], in idle time.
    pub fn pick_in_idle(&mut self, lane: LaneId) -> Option<BlockId> {
        match self {
            Self::Page(map) => map.pick_in_idle(lane),
            _ => self.pick_victim(lane),
        }
    }

    /// Where the next row of `stream`, which begins with logical unit `first`, may go.
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

    /// Whether the FTL says to which lane a row goes, of some streams at least
    /// ([`Ftl::host_place`]).
    #[must_use]
    #[inline]
    pub fn places_host(&self) -> bool {
        !matches!(self, Self::Page(_))
    }

    /// `stream` is [`HostPlace::Blocked`] for `first`: returns a lane that has to merge or
    /// erase before that changes; `None` if what is under way has to end first.
    pub fn make_room(&mut self, stream: u32, first: u32) -> Option<LaneId> {
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

    /// Whether `lane` may take a row of `stream`, of those that any lane may take.
    #[must_use]
    #[inline]
    pub fn host_may_write(&self, lane: LaneId, stream: u32) -> bool {
        match self {
            Self::Page(map) => map.host_may_write(lane, stream),
            Self::Hybrid(_) | Self::Zoned(_) => false,
            Self::Ranges(map) => map.host_may_write(lane, stream),
        }
    }

    /// Whether `lane` holds no more than its share of the data that is mapped as `stream` is,
    /// as far as that matters to a row of `stream`.
    #[must_use]
    #[inline]
    pub fn balanced(&self, lane: LaneId, stream: u32) -> bool {
        match self {
            Self::Page(map) => map.balanced(lane, stream),
            Self::Hybrid(_) | Self::Zoned(_) => true,
            Self::Ranges(map) => map.balanced(lane, stream),
        }
    }

    /// The row that [`Ftl::reserve_host`] would take, if a block is open.
    #[must_use]
    #[inline]
    pub fn next_row(&self, lane: LaneId, stream: u32, first: u32) -> Option<RowId> {
        match self {
            Self::Page(map) => map.next_row(lane, stream),
            Self::Hybrid(map) => map.next_row(stream, first),
            Self::Ranges(map) => map.next_row(lane, stream, first),
            Self::Zoned(map) => map.next_row(stream),
        }
    }

    /// Takes the next row of `lane` for data of `stream` that begins with logical unit
    /// `first`. What [`Ftl::take_pad`] then returns has to be programmed before it.
    ///
    /// # Panics
    /// If it is not what [`Ftl::host_place`] offers. That [`Ftl::host_may_write`] holds where
    /// the FTL names no lane is looked at in tests only.
    #[inline]
    pub fn reserve_host(&mut self, lane: LaneId, stream: u32, first: u32) -> RowId {
        match self {
            Self::Page(map) => map.reserve_host(lane, stream),
            Self::Hybrid(map) => map.reserve_host(lane, stream, first),
            Self::Ranges(map) => map.reserve_host(lane, stream, first),
            Self::Zoned(map) => map.reserve_host(lane, stream),
        }
    }

    /// A row that stays empty, and has to be programmed before the row that was reserved for
    /// the host last, because rows of a block are programmed in order.
    #[inline]
    pub fn take_pad(&mut self) -> Option<RowId> {
        match self {
            Self::Page(_) | Self::Zoned(_) => None,
            Self::Hybrid(map) => map.take_pad(),
            Self::Ranges(map) => map.take_pad(),
        }
    }
}
