//! The translation layers as one: what engines and drives call, whatever the mapping.
//!
//! A closed family, so an enum: every call is one well predicted branch. The contract of
//! each call is at [`PageMap`], which came first; what a mapping by blocks does otherwise is
//! said here.

mod clean;
mod config;
mod faults;
mod host;
pub(crate) mod snapshot;

use prism_nand::{BlockId, DieGroupId, Geometry, Layout, Nand, ProgramUnitId, Pun};

use crate::config::ConfigError;
use crate::hybrid::{BlockStatus, Hybrid, MergeCounts};
use crate::page::{Moved, PageMap, ProgramUnitRun};
use crate::plan::{self, ReadRun, TrimRange, UnitWrite};
use crate::ranges::Ranges;
use crate::scan::{FlashScan, Recovered};
use crate::zoned::Zoned;

pub use config::FtlConfig;

/// A translation layer.
#[derive(Clone, Debug)]
// Distinguished at every step: by a number of its own, not by what a variant cannot hold.
#[repr(u8)]
pub enum Ftl {
    /// By unit.
    Page(PageMap),
    /// By logical block, with log blocks mapped by unit.
    Hybrid(Hybrid),
    /// Ranges of addresses, each in one of the other ways.
    Ranges(Ranges),
    /// By zone.
    Zoned(Zoned),
}

impl From<PageMap> for Ftl {
    fn from(map: PageMap) -> Self {
        Self::Page(map)
    }
}

impl From<Hybrid> for Ftl {
    fn from(map: Hybrid) -> Self {
        Self::Hybrid(map)
    }
}

impl From<Zoned> for Ftl {
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

impl Ftl {
    /// An empty FTL over erased flash. `seed` feeds policies that choose at random.
    ///
    /// # Errors
    /// [`ConfigError`] if the numbers do not fit the flash.
    pub fn new(geometry: Geometry, config: FtlConfig, seed: u64) -> Result<Self, ConfigError> {
        Ok(match config {
            FtlConfig::Page(config) => Self::Page(PageMap::new(geometry, config, seed)?),
            FtlConfig::Hybrid(config) => Self::Hybrid(Hybrid::new(geometry, config)?),
            FtlConfig::Ranges(config) => Self::Ranges(Ranges::new(geometry, config, seed)?),
            FtlConfig::Zoned(config) => Self::Zoned(Zoned::new(geometry, config)?),
        })
    }

    /// The FTL that stands on flash after a loss of power: for each logical unit the
    /// highest version, be it data or one of `trims`. Nothing is written, so that power may
    /// go again at any moment.
    ///
    /// `trims` are durable elsewhere; where nothing else records trims, they have to be so
    /// before [`Ftl::trim_now`] is told of them, and as long as anything older may stand on
    /// the flash.
    ///
    /// # Errors
    /// [`ConfigError`] if the configuration does not fit the flash, or what it holds.
    pub fn recover(
        flash: &mut impl FlashScan,
        config: FtlConfig,
        seed: u64,
        trims: &[TrimRange],
    ) -> Result<(Self, Recovered), ConfigError> {
        match config {
            FtlConfig::Ranges(config) => {
                let (map, found) = Ranges::recover(flash, config, seed, trims)?;
                Ok((Self::Ranges(map), found))
            }
            config => Self::recover_one(flash, config, seed, trims),
        }
    }

    /// The same for any FTL but ranges.
    pub(crate) fn recover_one(
        flash: &mut impl FlashScan,
        config: FtlConfig,
        seed: u64,
        trims: &[TrimRange],
    ) -> Result<(Self, Recovered), ConfigError> {
        Ok(match config {
            FtlConfig::Ranges(_) => unreachable!("ranges have no ranges"),
            FtlConfig::Page(config) => {
                let (map, found) = PageMap::recover_from(flash, config, seed, trims)?;
                (Self::Page(map), found)
            }
            FtlConfig::Hybrid(config) => {
                let (map, found) = Hybrid::recover(flash, config, trims)?;
                (Self::Hybrid(map), found)
            }
            FtlConfig::Zoned(config) => {
                let (mut map, found) = Zoned::recover(flash, config)?;
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
        /// Erases of every block since the FTL began; a superblock counts once.
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
        /// Erased blocks of `die_group`.
        #[must_use]
        self.free_blocks(die_group: DieGroupId) -> u32;
        /// Whether cleaning or merging on `die_group` should start.
        #[must_use]
        self.below_low(die_group: DieGroupId) -> bool;
        /// Whether it may stop.
        #[must_use]
        self.reached_high(die_group: DieGroupId) -> bool;
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
        /// Begins to empty a block on `die_group`: chooses the next victim, or the next step of
        /// a merge. `None` if there is none, or none that can begin now.
        self.pick_victim(die_group: DieGroupId) -> Option<BlockId>;
        /// The erase of a block has ended, on all its dies: it is free again.
        ///
        /// # Panics
        /// If it was not to be erased.
        self.erased(block: BlockId) -> ();
    }

    /// `program_unit` is programmed, with `units` from its first unit on; those at the places
    /// `lost` were trimmed on their way and were not announced.
    ///
    /// # Panics
    /// If a host write was not announced by [`Ftl::write_begin`].
    #[inline(always)]
    pub fn commit(&mut self, program_unit: ProgramUnitId, units: &[UnitWrite], lost: &[usize]) {
        if let (Self::Page(map), [write], []) = (&mut *self, units, lost) {
            map.commit(write, map.layout().first_unit(program_unit));
            map.program_unit_done(program_unit);
        } else {
            self.commit_others(program_unit, units, lost);
        }
    }

    /// The same for program units of more than one unit, or with units that are lost, and for other
    /// mappings.
    #[inline(never)]
    fn commit_others(&mut self, program_unit: ProgramUnitId, units: &[UnitWrite], lost: &[usize]) {
        let kept = |place: usize| lost.is_empty() || !lost.contains(&place);
        match self {
            Self::Page(map) => {
                map.commit_units(map.layout().first_unit(program_unit), units, lost);
                map.program_unit_done(program_unit);
            }
            Self::Hybrid(map) => {
                let first = map.layout().first_unit(program_unit).0;
                for (place, write) in units.iter().enumerate() {
                    if kept(place) {
                        map.commit(write, Pun(first + place as u32));
                    }
                }
                map.program_unit_done(program_unit);
            }
            Self::Ranges(map) => map.commit(program_unit, units, lost),
            Self::Zoned(map) => map.commit_program_unit(program_unit, units),
        }
    }

    /// Whether program units and blocks may be moved as a whole, by [`Ftl::put_program_unit`] and
    /// [`Ftl::move_all`].
    #[must_use]
    #[inline]
    pub fn takes_program_units_at_once(&self) -> bool {
        match self {
            Self::Page(map) => map.takes_program_units_at_once(),
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

    /// Puts `units` of the host, at most a program unit, into the next program unit of
    /// `die_group` for `stream`.
    ///
    /// # Panics
    /// If [`Ftl::takes_program_units_at_once`] does not hold.
    pub fn put_program_unit(
        &mut self,
        die_group: DieGroupId,
        stream: u32,
        units: &[UnitWrite],
    ) -> ProgramUnitId {
        self.page_mut().put_program_unit(die_group, stream, units)
    }

    /// Copies every valid unit of `victim` away, into the program units `runs`.
    ///
    /// # Panics
    /// If [`Ftl::takes_program_units_at_once`] does not hold.
    pub fn move_all(
        &mut self,
        victim: BlockId,
        scratch: &mut Vec<u32>,
        runs: &mut Vec<ProgramUnitRun>,
    ) -> Moved {
        self.page_mut().move_all(victim, scratch, runs)
    }

    /// Whether further program units may be programmed into `block`: by the host, or as copies. A
    /// block that is partly written and for which this does not hold stays so until it is erased.
    #[must_use]
    pub fn is_writing(&self, block: BlockId) -> bool {
        match self {
            Self::Page(map) => map.is_frontier(block),
            Self::Hybrid(map) => map.is_writing(block),
            Self::Ranges(map) => map.is_writing(block),
            Self::Zoned(map) => map.is_writing(block),
        }
    }

    /// Erased blocks of `die_group`, those of all ranges and kinds together.
    #[must_use]
    pub fn erased_blocks(&self, die_group: DieGroupId) -> u32 {
        match self {
            Self::Page(map) => map.erased_blocks(die_group),
            Self::Ranges(map) => map.erased_blocks(die_group),
            one => one.free_blocks(die_group),
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

    /// Whether die groups have blocks of two kinds, so that one that cannot take a program unit
    /// of one stream may take one of another.
    #[must_use]
    pub fn has_slc(&self) -> bool {
        self.page().is_some_and(|map| map.config().slc.is_some())
    }

    /// The read of `at` alone.
    #[must_use]
    #[inline]
    pub fn read_of(&self, at: Pun) -> ReadRun {
        plan::read_of(self.layout(), at)
    }

    /// Adds `at` to the reads: one command for a level of a program unit as long as units of it
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
    /// If it is no tombstone in flight.
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

    /// The FTL that goes on from a saved map over what the flash holds.
    ///
    /// # Panics
    /// If it is none that [`Ftl::saved`] returns.
    #[must_use]
    pub fn after_power_loss(self, nand: &Nand) -> Self {
        match self {
            Self::Ranges(map) => Self::Ranges(map.after_power_loss(nand)),
            Self::Zoned(map) => Self::Zoned(map.after_power_loss()),
            one => one.go_on_over(&|block| BlockStatus::of(nand, block)),
        }
    }

    /// The same for any FTL but ranges, told what the flash knows of each block.
    pub(crate) fn go_on_over(self, status: &dyn Fn(BlockId) -> BlockStatus) -> Self {
        match self {
            Self::Page(_) | Self::Ranges(_) | Self::Zoned(_) => panic!("found by a scan"),
            Self::Hybrid(map) => Self::Hybrid(map.after_power_loss(status)),
        }
    }
}

/// A device without power-loss protection is refused where the map is not on flash.
const NO_TOMBSTONES: &str = "a mapping by block has its map protected and no tombstones";
