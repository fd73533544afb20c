//! The translation layers as one: what engines and drives call, whatever the mapping.
//!
//! A closed family, so an enum: every call is one well predicted branch. The contract of
//! each call is at [`PageMap`], which came first; what a mapping by blocks does otherwise is
//! said here.

mod config;
mod faults;

use prism_nand::{BlockId, Cause, Geometry, LaneId, Layout, Nand, Pun, RowId};

use crate::bulk::{Moved, RowRun};
use crate::config::ConfigError;
use crate::hybrid::{Hybrid, MergeCounts, Standing};
use crate::pagemap::PageMap;
use crate::plan::{self, CopyPlan, ReadRun, TrimRange, UnitWrite};
use crate::ranges::Ranges;
use crate::recover::{Recovered, Remains};
use crate::zoned::Zoned;

pub use config::LayerConfig;

/// Where the next row of a stream may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostPlace {
    /// To any lane that [`Layer::host_may_write`] and [`Layer::balanced`] allow.
    Any,
    /// To this lane and no other.
    Lane(LaneId),
    /// Nowhere, until [`Layer::make_room`] has led to a merge.
    Blocked,
}

/// A translation layer.
#[derive(Clone, Debug)]
pub enum Layer {
    /// By unit.
    Page(PageMap),
    /// By logical block, with log blocks mapped by unit.
    Hybrid(Hybrid),
    /// Ranges of addresses, each in one of the other ways.
    Ranges(Ranges),
    /// By zone.
    Zoned(Zoned),
}

impl From<PageMap> for Layer {
    fn from(map: PageMap) -> Self {
        Self::Page(map)
    }
}

impl From<Hybrid> for Layer {
    fn from(map: Hybrid) -> Self {
        Self::Hybrid(map)
    }
}

impl From<Zoned> for Layer {
    fn from(map: Zoned) -> Self {
        Self::Zoned(map)
    }
}

/// Calls that every mapping has under the same name.
macro_rules! delegate {
    ($($(#[$doc:meta])* $self:ident.$name:ident($($arg:ident: $type:ty),*) -> $out:ty;)*) => {$(
        $(#[$doc])*
        #[inline]
        pub fn $name(&$self $(, $arg: $type)*) -> $out {
            match $self {
                Self::Page(map) => map.$name($($arg),*),
                Self::Hybrid(map) => map.$name($($arg),*),
                Self::Ranges(map) => map.$name($($arg),*),
                Self::Zoned(map) => map.$name($($arg),*),
            }
        }
    )*};
    (mut $($(#[$doc:meta])* $self:ident.$name:ident($($arg:ident: $type:ty),*) -> $out:ty;)*) => {$(
        $(#[$doc])*
        #[inline]
        pub fn $name(&mut $self $(, $arg: $type)*) -> $out {
            match $self {
                Self::Page(map) => map.$name($($arg),*),
                Self::Hybrid(map) => map.$name($($arg),*),
                Self::Ranges(map) => map.$name($($arg),*),
                Self::Zoned(map) => map.$name($($arg),*),
            }
        }
    )*};
}

impl Layer {
    /// An empty layer over erased flash. `seed` feeds policies that draw lots.
    ///
    /// # Errors
    /// [`ConfigError`] if the numbers do not fit the flash.
    pub fn new(geometry: Geometry, config: LayerConfig, seed: u64) -> Result<Self, ConfigError> {
        Ok(match config {
            LayerConfig::Page(config) => Self::Page(PageMap::new(geometry, config, seed)?),
            LayerConfig::Hybrid(config) => Self::Hybrid(Hybrid::new(geometry, config)?),
            LayerConfig::Ranges(config) => Self::Ranges(Ranges::new(geometry, config, seed)?),
            LayerConfig::Zoned(config) => Self::Zoned(Zoned::new(geometry, config)?),
        })
    }

    /// The layer that stands on flash after a loss of power: for each logical unit the
    /// highest version, be it data or one of `trims`. Nothing is written, so that power may
    /// go again at any moment.
    ///
    /// `trims` are durable elsewhere; where nothing else records trims, they have to be so
    /// before [`Layer::trim_now`] is told of them, and as long as anything older may stand on
    /// the flash.
    ///
    /// # Errors
    /// [`ConfigError`] if the configuration does not fit the flash, or what it holds.
    pub fn recover(
        remains: &mut impl Remains,
        config: LayerConfig,
        seed: u64,
        trims: &[TrimRange],
    ) -> Result<(Self, Recovered), ConfigError> {
        match config {
            LayerConfig::Ranges(config) => {
                let (map, found) = Ranges::recover(remains, config, seed, trims)?;
                Ok((Self::Ranges(map), found))
            }
            config => Self::recover_one(remains, config, seed, trims),
        }
    }

    /// The same for any layer but ranges.
    pub(crate) fn recover_one(
        remains: &mut impl Remains,
        config: LayerConfig,
        seed: u64,
        trims: &[TrimRange],
    ) -> Result<(Self, Recovered), ConfigError> {
        Ok(match config {
            LayerConfig::Ranges(_) => unreachable!("ranges have no ranges"),
            LayerConfig::Page(config) => {
                let (map, found) = PageMap::recover_from(remains, config, seed, trims)?;
                (Self::Page(map), found)
            }
            LayerConfig::Hybrid(config) => {
                let (map, found) = Hybrid::recover(remains, config, trims)?;
                (Self::Hybrid(map), found)
            }
            LayerConfig::Zoned(config) => {
                let (mut map, found) = Zoned::recover(remains, config)?;
                for trim in trims {
                    map.trim_now(trim.start, trim.start + trim.count, trim.version);
                }
                (Self::Zoned(map), found)
            }
        })
    }

    delegate! {
        /// The shape of the flash below.
        #[must_use]
        self.geometry() -> &Geometry;
        /// Its addresses.
        #[must_use]
        self.layout() -> &Layout;
        /// Erases of every block since the layer began; a superblock counts once.
        #[must_use]
        self.erases() -> &[u32];
        /// Logical units that hold data.
        #[must_use]
        self.mapped() -> u64;
        /// Where `lpn` is; `None` if it was never written, or was trimmed.
        #[must_use]
        self.lookup(lpn: u32) -> Option<Pun>;
        /// Says that `lpn` will be looked up or changed soon.
        self.prefetch(lpn: u32) -> ();
        /// Whether the map still points to the unit at `at`; its logical unit if so.
        #[must_use]
        self.live(at: Pun) -> Option<u32>;
        /// Erased blocks of `lane`.
        #[must_use]
        self.free_blocks(lane: LaneId) -> u32;
        /// Whether cleaning or merging on `lane` should start.
        #[must_use]
        self.below_low(lane: LaneId) -> bool;
        /// Whether it may stop.
        #[must_use]
        self.reached_high(lane: LaneId) -> bool;
        /// The laws that hold at any instant, by the running sums.
        ///
        /// # Panics
        /// If one is broken.
        self.assert_conserved() -> ();
        /// The same, counted anew over every logical unit and block.
        ///
        /// # Panics
        /// If a sum or a column disagrees with the map.
        self.assert_consistent() -> ();
    }

    delegate! { mut
        /// A program of `lpn` as the host wrote it is on its way to flash.
        self.write_begin(lpn: u32) -> ();
        /// Trims `start..end` in the map at once.
        self.trim_now(start: u32, end: u32, version: u64) -> ();
        /// Begins to empty a block on `lane`: chooses the next victim, or the next step of
        /// a merge. `None` if there is none, or none that can begin now.
        self.pick_victim(lane: LaneId) -> Option<BlockId>;
        /// The erase of a block has ended, on all its dies: it is free again.
        ///
        /// # Panics
        /// If it was not to be erased.
        self.erased(block: BlockId) -> ();
    }

    /// `row` is programmed, with `units` from its first unit on; those at the places `lost`
    /// were trimmed on their way and were not announced.
    ///
    /// # Panics
    /// If a host write was not announced by [`Layer::write_begin`].
    #[inline]
    pub fn commit(&mut self, row: RowId, units: &[UnitWrite], lost: &[usize]) {
        match self {
            Self::Ranges(map) => return map.commit(row, units, lost),
            Self::Zoned(map) => return map.commit_row(row, units),
            Self::Page(_) | Self::Hybrid(_) => {}
        }
        let first = self.layout().first_unit(row).0;
        let kept = |place: usize| lost.is_empty() || !lost.contains(&place);
        let units = units.iter().enumerate().zip(first..).filter(|((place, _), _)| kept(*place));
        match self {
            Self::Page(map) => {
                for ((_, write), at) in units {
                    map.commit(write, Pun(at));
                }
                map.row_done(row);
            }
            Self::Hybrid(map) => {
                for ((_, write), at) in units {
                    map.commit(write, Pun(at));
                }
                map.row_done(row);
            }
            Self::Ranges(_) | Self::Zoned(_) => unreachable!("done above"),
        }
    }

    /// Whether rows and blocks may be moved as a whole, by [`Layer::put_row`] and
    /// [`Layer::move_all`].
    #[must_use]
    #[inline]
    pub fn takes_rows_at_once(&self) -> bool {
        match self {
            Self::Page(map) => map.takes_rows_at_once(),
            Self::Hybrid(_) | Self::Ranges(_) | Self::Zoned(_) => false,
        }
    }

    /// Says that what `lpn` points to now will soon be garbage.
    #[inline]
    pub fn prefetch_old(&self, lpn: u32) {
        match self {
            Self::Page(map) => map.prefetch_old(lpn),
            Self::Hybrid(_) | Self::Ranges(_) | Self::Zoned(_) => {}
        }
    }

    /// Puts `units` of the host, at most a row, into the next row of `lane` for `stream`.
    ///
    /// # Panics
    /// If [`Layer::takes_rows_at_once`] does not hold.
    pub fn put_row(&mut self, lane: LaneId, stream: u32, units: &[UnitWrite]) -> RowId {
        self.page_mut().put_row(lane, stream, units)
    }

    /// Copies every valid unit of `victim` away, into the rows `runs`.
    ///
    /// # Panics
    /// If [`Layer::takes_rows_at_once`] does not hold.
    pub fn move_all(
        &mut self,
        victim: BlockId,
        scratch: &mut Vec<u32>,
        runs: &mut Vec<RowRun>,
    ) -> Moved {
        self.page_mut().move_all(victim, scratch, runs)
    }

    /// Whether further rows may be programmed into `block`: by the host, or as copies. A block
    /// that is partly written and for which this does not hold stays so until it is erased.
    #[must_use]
    pub fn is_writing(&self, block: BlockId) -> bool {
        match self {
            Self::Page(map) => map.is_frontier(block),
            Self::Hybrid(map) => map.is_writing(block),
            Self::Ranges(map) => map.is_writing(block),
            Self::Zoned(map) => map.is_writing(block),
        }
    }

    /// Erased blocks of `lane`, those of all ranges and kinds together.
    #[must_use]
    pub fn erased_blocks(&self, lane: LaneId) -> u32 {
        match self {
            Self::Page(map) => map.erased_blocks(lane),
            Self::Ranges(map) => map.erased_blocks(lane),
            one => one.free_blocks(lane),
        }
    }

    /// Merges done so far, by kind; `None` where nothing is mapped by block.
    #[must_use]
    pub fn merges(&self) -> Option<MergeCounts> {
        match self {
            Self::Page(_) | Self::Zoned(_) => None,
            Self::Hybrid(map) => Some(*map.merges()),
            Self::Ranges(map) => map.merges(),
        }
    }

    /// The map by unit, if this is one.
    #[must_use]
    pub fn page(&self) -> Option<&PageMap> {
        match self {
            Self::Page(map) => Some(map),
            Self::Hybrid(_) | Self::Ranges(_) | Self::Zoned(_) => None,
        }
    }

    /// The map by zone, if this is one.
    #[must_use]
    pub fn zoned(&self) -> Option<&Zoned> {
        match self {
            Self::Zoned(map) => Some(map),
            Self::Page(_) | Self::Hybrid(_) | Self::Ranges(_) => None,
        }
    }

    /// The same, for what only zones have: resets and failures.
    pub fn zoned_mut(&mut self) -> Option<&mut Zoned> {
        match self {
            Self::Zoned(map) => Some(map),
            Self::Page(_) | Self::Hybrid(_) | Self::Ranges(_) => None,
        }
    }

    /// Logical units the host sees.
    #[must_use]
    #[inline]
    pub fn logical_units(&self) -> u32 {
        match self {
            Self::Page(map) => map.config().logical_units,
            Self::Hybrid(map) => map.config().logical_units,
            Self::Ranges(map) => map.config().logical_units(),
            Self::Zoned(map) => map.config().logical_units(),
        }
    }

    /// Streams a unit can belong to.
    #[must_use]
    pub fn streams(&self) -> u32 {
        match self {
            Self::Page(map) => map.config().frontier_count(),
            Self::Hybrid(map) => map.groups(),
            Self::Ranges(map) => map.streams(),
            Self::Zoned(map) => map.config().zones,
        }
    }

    /// The stream of a logical unit that the host writes with placement handle `handle`.
    #[must_use]
    #[inline]
    pub fn stream_of(&self, lpn: u32, handle: u32) -> u32 {
        match self {
            Self::Page(map) => map.stream_of(lpn, handle),
            Self::Hybrid(map) => map.stream_of(lpn),
            Self::Ranges(map) => map.stream_of(lpn, handle),
            Self::Zoned(map) => map.stream_of(lpn),
        }
    }

    /// The same for a request of `bytes`, where that decides the place as well.
    #[must_use]
    #[inline]
    pub fn stream_for(&self, lpn: u32, handle: u32, bytes: u64) -> u32 {
        match self {
            Self::Page(map) => map.config().stream_for(lpn, handle, bytes),
            _ => self.stream_of(lpn, handle),
        }
    }

    /// Whether lanes have blocks of two kinds, so that one that cannot take a row of one
    /// stream may take one of another.
    #[must_use]
    pub fn has_slc(&self) -> bool {
        self.page().is_some_and(|map| map.config().slc.is_some())
    }

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

    /// As [`Layer::pick_victim`], in idle time.
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

    /// Whether the layer says to which lane a row goes, of some streams at least
    /// ([`Layer::host_place`]).
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

    /// The row that [`Layer::reserve_host`] would take, if a block is open.
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
    /// `first`. What [`Layer::take_pad`] then returns has to be programmed before it.
    ///
    /// # Panics
    /// If neither [`Layer::host_may_write`] nor [`Layer::host_place`] offers it.
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

    /// Whether copies out of `victim` have their rows from when they are planned on, and are
    /// programmed in that order. Otherwise a copy takes its row when its data is there.
    #[must_use]
    #[inline]
    pub fn copies_in_order(&self, victim: BlockId) -> bool {
        match self {
            Self::Page(_) => false,
            Self::Hybrid(_) | Self::Zoned(_) => true,
            Self::Ranges(map) => map.copies_in_order(victim),
        }
    }

    /// Takes the next row on `lane` for copies out of `victim`.
    ///
    /// # Panics
    /// If no row is left: the reserve is there to prevent that.
    #[inline]
    pub fn reserve_copy(&mut self, lane: LaneId, victim: BlockId) -> RowId {
        match self {
            Self::Page(map) => map.reserve_copy(lane, victim),
            Self::Hybrid(map) => map.reserve_copy(victim),
            Self::Ranges(map) => map.reserve_copy(lane, victim),
            Self::Zoned(_) => panic!("{NO_COPIES}"),
        }
    }

    /// The row that [`Layer::reserve_copy`] would take, if a block is open and it is not
    /// fixed by the plan.
    #[must_use]
    #[inline]
    pub fn next_copy_row(&self, lane: LaneId, victim: BlockId) -> Option<RowId> {
        match self {
            Self::Page(map) => map.next_copy_row(lane, victim),
            Self::Hybrid(_) | Self::Zoned(_) => None,
            Self::Ranges(map) => map.next_copy_row(lane, victim),
        }
    }

    /// Takes the next row of `block`, to be left empty, if `block` is being written and that
    /// row is not behind `until`. So a word line is filled up.
    pub fn reserve_pad(&mut self, block: BlockId, until: RowId) -> Option<RowId> {
        match self {
            Self::Page(map) => map.reserve_pad(block, until),
            Self::Hybrid(map) => map.reserve_pad(block, until),
            Self::Ranges(map) => map.reserve_pad(block, until),
            // Its drive is protected, and a row of a zone is not to be left empty.
            Self::Zoned(_) => None,
        }
    }

    /// A parity row that has to be programmed now because its stripe is complete.
    #[inline]
    pub fn take_parity(&mut self) -> Option<RowId> {
        match self {
            Self::Page(map) => map.take_parity(),
            Self::Hybrid(_) | Self::Zoned(_) => None,
            Self::Ranges(map) => map.take_parity(),
        }
    }

    /// Plans the next step of emptying `victim` into `plan`, from `cursor` on; the plan is
    /// empty once the block is through.
    #[inline]
    pub fn gather(&mut self, victim: BlockId, cursor: &mut u32, plan: &mut CopyPlan) {
        match self {
            Self::Page(map) => map.gather(victim, cursor, plan),
            Self::Hybrid(map) => map.gather(victim, cursor, plan),
            Self::Ranges(map) => map.gather(victim, cursor, plan),
            Self::Zoned(_) => {
                plan.reads.clear();
                plan.units.clear();
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

    /// Whether cleaning of `lane` waits for nobody: fewer than `critical` erased blocks, or
    /// a host row that waits for a merge there.
    #[must_use]
    #[inline]
    pub fn is_pressed(&self, lane: LaneId, critical: u32) -> bool {
        match self {
            Self::Page(map) => map.free_blocks(lane) < critical || map.region_is_pressed(lane),
            Self::Hybrid(map) => map.is_asked(lane) || map.free_blocks(lane) < critical,
            Self::Ranges(map) => map.is_pressed(lane, critical),
            // An erase alone is over before anybody has waited long.
            Self::Zoned(_) => true,
        }
    }

    /// A lane that has got something to erase from what happened on others, and may not know.
    #[inline]
    pub fn take_idle_lane(&mut self) -> Option<LaneId> {
        match self {
            Self::Page(_) => None,
            Self::Hybrid(map) => map.take_idle_lane(),
            Self::Ranges(map) => map.take_idle_lane(),
            Self::Zoned(map) => map.take_idle_lane(),
        }
    }

    /// A block to be moved because it is worn less than others.
    pub fn pick_for_wear(&mut self, lane: LaneId) -> Option<BlockId> {
        match self {
            Self::Page(map) => map.pick_for_wear(lane),
            Self::Hybrid(_) | Self::Zoned(_) => None,
            Self::Ranges(map) => map.pick_for_wear(lane),
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

    /// Adds `at` to the reads: one command for a level of a row as long as units of it
    /// follow each other, and one page for each plane that is needed. `planes` has a bit
    /// for each page in the last command.
    #[inline]
    pub fn add_read(&self, at: Pun, planes: &mut u64, reads: &mut Vec<ReadRun>) {
        plan::add_read(self.layout(), at, planes, reads);
    }

    /// The same of a unit of several pages, of which only those in `wanted` are needed: a bit
    /// for each page of the unit, the first the lowest.
    #[inline]
    pub fn add_read_part(&self, at: Pun, wanted: u64, planes: &mut u64, reads: &mut Vec<ReadRun>) {
        plan::add_read_part(self.layout(), at, wanted, planes, reads);
    }

    /// Trims `start..end` for the reader until a tombstone holds the range. Mappings by
    /// block have their map saved on loss of power and trim at once instead.
    pub fn trim_later(&mut self, start: u32, end: u32, version: u64) {
        self.page_mut().trim_later(start, end, version);
    }

    /// Registers a tombstone on its way to flash.
    pub fn tombstone_begin(&mut self, number: u64, ranges: Vec<TrimRange>) {
        self.page_mut().tombstone_begin(number, ranges);
    }

    /// The ranges of the tombstone that `write` programs.
    ///
    /// # Panics
    /// If it is no tombstone under way.
    #[must_use]
    pub fn tombstone_ranges(&self, write: &UnitWrite) -> &[TrimRange] {
        match self {
            Self::Page(map) => map.tombstone_ranges(write),
            Self::Hybrid(_) | Self::Ranges(_) | Self::Zoned(_) => panic!("{NO_TOMBSTONES}"),
        }
    }

    fn page_mut(&mut self) -> &mut PageMap {
        match self {
            Self::Page(map) => map,
            Self::Hybrid(_) | Self::Ranges(_) | Self::Zoned(_) => {
                panic!("only a mapping by unit does this")
            }
        }
    }

    /// A host unit that cleaning has moved, so that its translation page must change.
    pub fn take_moved(&mut self) -> Option<u32> {
        match self {
            Self::Page(map) => map.take_moved(),
            Self::Hybrid(_) | Self::Ranges(_) | Self::Zoned(_) => None,
        }
    }

    /// The map as capacitors save it when power is lost, for mappings that are not found by
    /// a scan of the flash.
    #[must_use]
    pub fn saved(self) -> Option<Self> {
        match self {
            Self::Page(_) => None,
            Self::Hybrid(_) | Self::Ranges(_) | Self::Zoned(_) => Some(self),
        }
    }

    /// The layer that goes on from a saved map over what the flash holds.
    ///
    /// # Panics
    /// If it is none that [`Layer::saved`] returns.
    #[must_use]
    pub fn after_power_loss(self, nand: &Nand) -> Self {
        match self {
            Self::Ranges(map) => Self::Ranges(map.after_power_loss(nand)),
            Self::Zoned(map) => Self::Zoned(map.after_power_loss()),
            one => one.go_on_over(&|block| Standing::of(nand, block)),
        }
    }

    /// The same for any layer but ranges, told what the flash knows of each block.
    pub(crate) fn go_on_over(self, standing: &dyn Fn(BlockId) -> Standing) -> Self {
        match self {
            Self::Page(_) | Self::Ranges(_) | Self::Zoned(_) => panic!("found by a scan"),
            Self::Hybrid(map) => Self::Hybrid(map.after_power_loss(standing)),
        }
    }
}

/// A device without power-loss protection is refused where the map is not on flash.
const NO_TOMBSTONES: &str = "a mapping by block has its map protected and no tombstones";
/// Zones are emptied by the host.
const NO_COPIES: &str = "a mapping by zone copies nothing";
