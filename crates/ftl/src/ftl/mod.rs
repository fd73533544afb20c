//! The common interface of all FTLs, for engines and drives.
//!
//! The set of mappings is closed, so this is an enum: every call is one well-predicted branch. The
//! contract of each call is documented at [`PageMap`]; deviations of the other mappings are
//! documented here.

mod clean;
mod config;
mod faults;
mod host;
pub(crate) mod snapshot;

use prism_nand::{BlockId, DieGroupId, Geometry, Layout, Nand, ProgramUnitId, Pun};

use crate::config::ConfigError;
use crate::hybrid::{BlockStatus, Hybrid, MergeCounts};
use crate::page::PageMap;
use crate::plan::{self, ReadRun, TrimRange, UnitWrite};
use crate::ranges::Ranges;
use crate::scan::{FlashScan, Recovered};
use crate::zoned::Zoned;

pub use config::FtlConfig;

/// An FTL, of any mapping.
#[derive(Clone, Debug)]
// An explicit tag makes the match at every call faster than a tag in unused values of a field.
#[repr(u8)]
pub enum Ftl {
    /// Page-level mapping.
    Page(PageMap),
    /// Block-level mapping of data blocks, page-level mapping of log blocks.
    Hybrid(Hybrid),
    /// Address ranges, each with one of the other mappings.
    Ranges(Ranges),
    /// Zone mapping.
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

/// What every mapping has: a description of the flash, a configuration, and counts of erases.
macro_rules! common_parts {
    ($mapping:ident, $config:ty) => {
        impl $mapping {
            /// The geometry of the flash.
            #[must_use]
            pub fn geometry(&self) -> &prism_nand::Geometry {
                &self.geometry
            }

            /// The address layout.
            #[must_use]
            pub fn layout(&self) -> &prism_nand::Layout {
                &self.layout
            }

            /// The configuration.
            #[must_use]
            pub fn config(&self) -> &$config {
                &self.config
            }

            /// Erases of every block since the FTL began; a superblock counts once.
            #[must_use]
            pub fn erases(&self) -> &[u32] {
                &self.erases
            }
        }
    };
}
pub(crate) use common_parts;

/// Calls that every mapping implements under the same name.
macro_rules! delegate {
    ($($(#[$doc:meta])* ($($own:tt)+).$name:ident($($arg:ident: $type:ty),*) -> $out:ty;)*) => {$(
        $(#[$doc])*
        #[inline]
        pub fn $name($($own)+ $(, $arg: $type)*) -> $out {
            delegate!(@ $($own)+, $name($($arg),*))
        }
    )*};
    (@ &mut $self:ident, $($call:tt)+) => { delegate!(@ & $self, $($call)+) };
    (@ & $self:ident, $($call:tt)+) => {
        match $self {
            Self::Page(map) => map.$($call)+,
            Self::Hybrid(map) => map.$($call)+,
            Self::Ranges(map) => map.$($call)+,
            Self::Zoned(map) => map.$($call)+,
        }
    };
}
use delegate;

/// Calls that some mappings implement under the same name, with the result of the others, which are
/// listed so that a new mapping is forgotten nowhere.
macro_rules! delegate_some {
    ($(
        $(#[$doc:meta])*
        [$($map:ident)+] ($($own:tt)+).$name:ident($($arg:ident: $type:ty),*) -> $out:ty,
            or [$($rest:ident)+] $other:expr;
    )*) => {$(
        $(#[$doc])*
        #[inline]
        pub fn $name($($own)+ $(, $arg: $type)*) -> $out {
            delegate_some!(@ $($own)+, [$($map)+] $name ($($arg),*), [$($rest)+] $other)
        }
    )*};
    (@ &mut $self:ident, $($call:tt)+) => { delegate_some!(@ & $self, $($call)+) };
    (@ & $self:ident, [$($map:ident)+] $name:ident $arguments:tt,
        [$($rest:ident)+] $other:expr) => {
        match $self {
            $(Self::$map(map) => map.$name $arguments,)+
            $(Self::$rest(_))|+ => $other,
        }
    };
}
use delegate_some;

impl Ftl {
    /// An empty FTL over erased flash. `seed` is for policies that choose at random.
    ///
    /// # Errors
    /// [`ConfigError`] if the configuration does not fit the flash.
    pub fn new(geometry: Geometry, config: FtlConfig, seed: u64) -> Result<Self, ConfigError> {
        Ok(match config {
            FtlConfig::Page(config) => Self::Page(PageMap::new(geometry, config, seed)?),
            FtlConfig::Hybrid(config) => Self::Hybrid(Hybrid::new(geometry, config)?),
            FtlConfig::Ranges(config) => Self::Ranges(Ranges::new(geometry, config, seed)?),
            FtlConfig::Zoned(config) => Self::Zoned(Zoned::new(geometry, config)?),
        })
    }

    /// Recovers the FTL after a loss of power: for each logical unit the highest version found, of
    /// data or of one of `trims`. The flash is not written, so that power may be lost again at any
    /// moment.
    ///
    /// `trims` were made durable elsewhere. Where trims are recorded nowhere else, they must be
    /// durable before [`Ftl::trim_now`] is called, and as long as older data may be on the flash.
    ///
    /// # Errors
    /// [`ConfigError`] if the configuration does not fit the flash or its content.
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

    /// As [`Ftl::recover`], for any FTL but ranges.
    pub(crate) fn recover_one(
        flash: &mut impl FlashScan,
        config: FtlConfig,
        seed: u64,
        trims: &[TrimRange],
    ) -> Result<(Self, Recovered), ConfigError> {
        Ok(match config {
            FtlConfig::Ranges(_) => unreachable!("ranges are not nested"),
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
        /// Whether nothing is in flight or promised: no program, no trim, no step of a cleaning or
        /// merge.
        #[must_use]
        (&self).is_at_rest() -> bool;
        /// The geometry of the flash.
        #[must_use]
        (&self).geometry() -> &Geometry;
        /// The address layout.
        #[must_use]
        (&self).layout() -> &Layout;
        /// Erases of every block since the FTL began; a superblock counts once.
        #[must_use]
        (&self).erases() -> &[u32];
        /// Logical units that hold data.
        #[must_use]
        (&self).mapped() -> u64;
        /// The physical unit of `lpn`; `None` if it was never written, or was trimmed.
        #[must_use]
        (&self).lookup(lpn: u32) -> Option<Pun>;
        /// Prefetches the map entry of `lpn`, which will be read or changed soon.
        (&self).prefetch(lpn: u32) -> ();
        /// The logical unit whose map entry points to `at`, if any.
        #[must_use]
        (&self).live(at: Pun) -> Option<u32>;
        /// Erased blocks of `die_group`.
        #[must_use]
        (&self).free_blocks(die_group: DieGroupId) -> u32;
        /// Whether cleaning or merging on `die_group` should start.
        #[must_use]
        (&self).below_low(die_group: DieGroupId) -> bool;
        /// Whether cleaning or merging may stop.
        #[must_use]
        (&self).reached_high(die_group: DieGroupId) -> bool;
        /// Checks the invariants that hold at any instant, from running sums.
        ///
        /// # Panics
        /// If one is broken.
        (&self).assert_conserved() -> ();
        /// As `assert_conserved`, recounted over every logical unit and block.
        ///
        /// # Panics
        /// If a sum or a column disagrees with the map.
        (&self).assert_consistent() -> ();
        /// A host program of `lpn` is in flight.
        (&mut self).write_begin(lpn: u32) -> ();
        /// Trims `start..end` in the map at once.
        (&mut self).trim_now(start: u32, end: u32, version: u64) -> ();
        /// Begins to empty a block on `die_group`: chooses the next victim, or the next step of
        /// a merge. `None` if there is none, or none that can begin now.
        (&mut self).pick_victim(die_group: DieGroupId) -> Option<BlockId>;
        /// The erase of a block has ended on all its dies: it is free again.
        ///
        /// # Panics
        /// If it was not being erased.
        (&mut self).erased(block: BlockId) -> ();
    }

    /// `program_unit` is programmed, with `units` from its first unit on. The units at the indices
    /// `lost` were trimmed in flight and had no [`Ftl::write_begin`].
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

    /// As [`Ftl::commit`], for program units of more than one unit, for lost units and for other
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

    /// Whether `block` accepts further program units, from the host or from copies. A partly
    /// written block that does not stays as it is until it is erased.
    #[must_use]
    pub fn is_writing(&self, block: BlockId) -> bool {
        match self {
            Self::Page(map) => map.is_frontier(block),
            Self::Hybrid(map) => map.is_writing(block),
            Self::Ranges(map) => map.is_writing(block),
            Self::Zoned(map) => map.is_writing(block),
        }
    }

    /// Erased blocks of `die_group`, of all ranges and cell types together.
    #[must_use]
    pub fn erased_blocks(&self, die_group: DieGroupId) -> u32 {
        match self {
            Self::Page(map) => map.erased_blocks(die_group),
            Self::Ranges(map) => map.erased_blocks(die_group),
            one => one.free_blocks(die_group),
        }
    }

    /// Merges so far, by kind; `None` for mappings without log blocks.
    #[must_use]
    pub fn merges(&self) -> Option<MergeCounts> {
        match self {
            Self::Page(_) | Self::Zoned(_) => None,
            Self::Hybrid(map) => Some(*map.merges()),
            Self::Ranges(map) => map.merges(),
        }
    }

    /// The page-level mapping, if this is one.
    #[must_use]
    #[inline]
    pub fn page(&self) -> Option<&PageMap> {
        match self {
            Self::Page(map) => Some(map),
            Self::Hybrid(_) | Self::Ranges(_) | Self::Zoned(_) => None,
        }
    }

    /// Mutable access to the page-level mapping, for what no other mapping has: tombstones and
    /// moves in bulk.
    ///
    /// # Panics
    /// If this is another mapping.
    pub fn page_mut(&mut self) -> &mut PageMap {
        match self {
            Self::Page(map) => map,
            Self::Hybrid(_) | Self::Ranges(_) | Self::Zoned(_) => {
                panic!("only page-level mapping supports this")
            }
        }
    }

    /// The zone mapping, if this is one.
    #[must_use]
    #[inline]
    pub fn zoned(&self) -> Option<&Zoned> {
        match self {
            Self::Zoned(map) => Some(map),
            Self::Page(_) | Self::Hybrid(_) | Self::Ranges(_) => None,
        }
    }

    /// Mutable access to the zone mapping, for resets and failures.
    pub fn zoned_mut(&mut self) -> Option<&mut Zoned> {
        match self {
            Self::Zoned(map) => Some(map),
            Self::Page(_) | Self::Hybrid(_) | Self::Ranges(_) => None,
        }
    }

    /// Logical units that the host sees.
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

    /// The number of streams.
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

    /// As [`Ftl::stream_of`], for a request of `bytes`, where the request size matters as well.
    #[must_use]
    #[inline]
    pub fn stream_for(&self, lpn: u32, handle: u32, bytes: u64) -> u32 {
        match self {
            Self::Page(map) => map.config().stream_for(lpn, handle, bytes),
            _ => self.stream_of(lpn, handle),
        }
    }

    /// Whether die groups have SLC and other blocks, so that one that cannot accept a program unit
    /// of one stream may accept one of another.
    #[must_use]
    pub fn has_slc(&self) -> bool {
        self.page().is_some_and(|map| map.config().slc.is_some())
    }

    /// The read of the single unit at `at`.
    #[must_use]
    #[inline]
    pub fn read_of(&self, at: Pun) -> ReadRun {
        plan::read_of(self.layout(), at)
    }

    /// Adds `at` to the reads: one command per level of a program unit as long as successive units
    /// are on it, and one page per plane needed. `planes` has a bit for each page in the last
    /// command.
    #[inline]
    pub fn add_read(&self, at: Pun, planes: &mut u64, reads: &mut Vec<ReadRun>) {
        plan::add_read(self.layout(), at, planes, reads);
    }

    /// As [`Ftl::add_read`], for a unit of several pages of which only those in `wanted` are
    /// needed: a bit for each page of the unit, the first in the lowest bit.
    #[inline]
    pub fn add_read_part(&self, at: Pun, wanted: u64, planes: &mut u64, reads: &mut Vec<ReadRun>) {
        plan::add_read_part(self.layout(), at, wanted, planes, reads);
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

    /// The map that capacitors save when power is lost, for mappings that a scan of the flash
    /// cannot recover.
    #[must_use]
    pub fn saved(self) -> Option<Self> {
        match self {
            Self::Page(_) => None,
            Self::Hybrid(_) | Self::Ranges(_) | Self::Zoned(_) => Some(self),
        }
    }

    /// Resumes from a saved map on the flash as it is now.
    ///
    /// # Panics
    /// If [`Ftl::saved`] does not save this mapping.
    #[must_use]
    pub fn after_power_loss(self, nand: &Nand) -> Self {
        match self {
            Self::Ranges(map) => Self::Ranges(map.after_power_loss(nand)),
            Self::Zoned(map) => Self::Zoned(map.after_power_loss()),
            one => one.resume_with(&|block| BlockStatus::of(nand, block)),
        }
    }

    /// As [`Ftl::after_power_loss`], for hybrid mapping, with the state of each block from
    /// `status`.
    pub(crate) fn resume_with(self, status: &dyn Fn(BlockId) -> BlockStatus) -> Self {
        match self {
            Self::Page(_) | Self::Ranges(_) | Self::Zoned(_) => panic!("recovered by a scan"),
            Self::Hybrid(map) => Self::Hybrid(map.after_power_loss(status)),
        }
    }

    delegate_some! {
        /// A host unit that cleaning has moved, so that its translation page must change.
        [Page] (&mut self).take_moved() -> Option<u32>, or [Hybrid Ranges Zoned] None;
    }
}

/// A device without power-loss protection is refused if its map is not on flash.
const NO_TOMBSTONES: &str = "this mapping has a protected map and no tombstones";
