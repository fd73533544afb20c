//! The configuration of page-level mapping, and the spare flash that it leaves.

use prism_nand::Geometry;

use super::slc::{SlcConfig, SlcRule, SlcUse};
use super::state::Kind;
use crate::config::{ConfigError, OverProvisioning};
use crate::plan::UnitWrite;
use crate::victim::VictimPolicy;

prism_base::named_enum! {
    /// Open blocks for copies on each die group, in addition to those of the host's streams.
    pub enum Frontiers {
        /// Host data (of the first stream) and copies share one open block.
        Shared = "shared",
        /// Copies have an open block of their own, so that data that survived a cleaning is not
        /// mixed with new data.
        Separate = "separate",
        /// Copies of each stream have an open block of their own, so that streams stay separate, as
        /// NVMe's persistently isolated reclaim units do.
        PerStream = "per-stream",
    }
}

/// How host data is divided into streams, each with open blocks of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// One stream.
    Any,
    /// The host names one of this many placement handles with each write (NVMe FDP, multi-stream
    /// writes).
    Handles(u32),
    /// Each range of this many logical units is a stream: a segmented FTL (He, Kannan,
    /// Arpaci-Dusseau, Arpaci-Dusseau, EuroSys'17).
    Segments(u32),
}

/// Wear levelling. All numbers are erases of a block relative to the mean of its die group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct WearPolicy {
    /// Opens the least worn of the erased blocks, instead of the one erased first (dynamic wear
    /// levelling).
    pub least_worn_first: bool,
    /// Moves the data of a block that is behind the mean by more than this (static wear levelling).
    pub move_behind_mean: Option<u32>,
    /// Skips victims that are above the mean by more than this while there are others that gain
    /// something (after Agrawal et al., ATC'08, who skip at random).
    pub victims_above_mean: Option<u32>,
}

/// The configuration of page-level mapping. There is no default; presets define it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageConfig {
    /// Logical units that the host sees.
    pub logical_units: u32,
    /// Translation pages on flash, as logical units that follow those of the host; 0 if the whole
    /// map is in memory.
    pub map_units: u32,
    /// How the block to be cleaned is chosen.
    pub victim: VictimPolicy,
    /// Open blocks for copies.
    pub frontiers: Frontiers,
    /// Streams of host data.
    pub placement: Placement,
    /// Cleaning of a die group starts when it has fewer erased blocks than this.
    pub free_blocks_low: u32,
    /// Cleaning of a die group stops when it has this many erased blocks.
    pub free_blocks_high: u32,
    /// In idle time cleaning continues up to this many erased blocks; 0 for never.
    pub free_blocks_idle: u32,
    /// Erased blocks of a die group that only cleaning may open, so that it can finish.
    pub reserve_blocks: u32,
    /// Wear levelling.
    pub wear: WearPolicy,
    /// Use of the SLC blocks, if the flash has any.
    pub slc: Option<SlcConfig>,
    /// Successive program units of a die that become safe only when the last of them is programmed:
    /// those of a wordline, where a loss of power could destroy the earlier ones. 1 if each program
    /// unit is safe by itself.
    pub wordline_program_units: u32,
}

impl PageConfig {
    /// A map in memory, one stream, cleaning at two erased blocks, no wear levelling.
    #[must_use]
    pub fn simple(logical_units: u32, victim: VictimPolicy, frontiers: Frontiers) -> Self {
        Self {
            logical_units,
            map_units: 0,
            victim,
            frontiers,
            placement: Placement::Any,
            free_blocks_low: 2,
            free_blocks_high: 2,
            free_blocks_idle: 0,
            reserve_blocks: 1,
            wear: WearPolicy::default(),
            slc: None,
            wordline_program_units: 1,
        }
    }

    /// Data program units of a block that are filled up together: one, or a wordline on each die.
    pub(super) fn program_units_together(&self, geometry: &Geometry) -> u32 {
        match self.wordline_program_units {
            1 => 1,
            program_units => {
                let dies = geometry.dies_per_superblock - u32::from(geometry.parity);
                program_units.min(geometry.program_units_per_die()) * dies
            }
        }
    }

    /// The number of streams of host data.
    #[must_use]
    pub fn streams(&self) -> u32 {
        match self.placement {
            Placement::Any => 1,
            Placement::Handles(handles) => handles,
            Placement::Segments(units) => self.logical_units.div_ceil(units.max(1)),
        }
    }

    /// Frontiers of a die group: one per stream, then those for copies, then that of translation
    /// pages, then those of SLC blocks.
    #[must_use]
    pub fn frontier_count(&self) -> u32 {
        self.own_frontier_count() + if self.slc.is_some() { 2 } else { 0 }
    }

    /// As [`Self::frontier_count`], without the frontiers that exist because of SLC blocks.
    #[must_use]
    pub(super) fn own_frontier_count(&self) -> u32 {
        self.streams() + self.copy_frontiers() + u32::from(self.map_units > 0)
    }

    /// Frontiers that keep a block open that is not SLC.
    #[must_use]
    pub fn main_frontier_count(&self) -> u32 {
        self.own_frontier_count() + u32::from(self.slc.is_some_and(|slc| slc.is_cache()))
    }

    fn copy_frontiers(&self) -> u32 {
        match self.frontiers {
            Frontiers::Shared => 0,
            Frontiers::Separate => 1,
            Frontiers::PerStream => self.streams(),
        }
    }

    /// The frontier of translation pages, if they are on flash.
    #[must_use]
    pub fn map_frontier(&self) -> Option<u32> {
        (self.map_units > 0).then(|| self.streams() + self.copy_frontiers())
    }

    /// The stream of `lpn`, written with placement handle `handle`.
    #[must_use]
    pub fn stream_of(&self, lpn: u32, handle: u32) -> u32 {
        if lpn >= self.logical_units {
            // A translation page or a tombstone.
            return if lpn == UnitWrite::TOMBSTONE { 0 } else { self.map_frontier().unwrap_or(0) };
        }
        if self.slc.is_some() && self.belongs_to_region(lpn, handle) {
            return self.own_frontier_count();
        }
        match self.placement {
            Placement::Any => 0,
            Placement::Handles(handles) => handle.min(handles - 1),
            Placement::Segments(units) => lpn / units,
        }
    }

    /// The frontier for the copies of all blocks, if they share one.
    pub(super) fn only_frontier_of_copies(&self) -> Option<usize> {
        let several = self.map_frontier().is_some() || self.slc.is_some();
        match self.frontiers {
            Frontiers::Shared if !several => Some(0),
            Frontiers::Separate if !several => Some(self.streams() as usize),
            _ => None,
        }
    }

    /// The frontier for copies out of a block that was written through `frontier`.
    pub(super) fn frontier_of_copies(&self, frontier: u16) -> u32 {
        let frontier = u32::from(frontier);
        if self.map_frontier() == Some(frontier) {
            return frontier;
        }
        if let Some(frontier) = self.frontier_of_slc_copies(frontier) {
            return frontier;
        }
        // Folded data belongs to the first stream.
        let frontier = if frontier < self.own_frontier_count() { frontier } else { 0 };
        match self.frontiers {
            Frontiers::Shared => 0,
            Frontiers::Separate => self.streams(),
            Frontiers::PerStream if frontier < self.streams() => self.streams() + frontier,
            Frontiers::PerStream => frontier,
        }
    }

    /// Whether copies share the open block of host data of `stream`.
    pub(super) fn copies_share(&self, stream: u32) -> bool {
        self.map_frontier() == Some(stream) || self.frontiers == Frontiers::Shared && stream == 0
    }

    /// Checks the configuration against the flash.
    ///
    /// # Errors
    /// [`ConfigError`] names the field and its valid values.
    pub fn check(&self, geometry: &Geometry) -> Result<(), ConfigError> {
        let blocks = geometry.main_blocks_per_die_group();
        if self.streams() == 0 || self.frontier_count() > blocks.min(1 << 16) / 2 {
            return Err(ConfigError::Streams { streams: self.streams(), blocks });
        }
        let watermark = |field, value, min, max| {
            if (min..=max).contains(&value) {
                Ok(())
            } else {
                Err(ConfigError::Watermark { field, value, min, max })
            }
        };
        let program_units = geometry.program_units_per_die();
        watermark(
            "the number of program units of a wordline",
            self.wordline_program_units,
            1,
            program_units,
        )?;
        watermark("gc.reserve_blocks", self.reserve_blocks, 1, blocks)?;
        let least = self.reserve_for_copies() + 1;
        watermark("gc.free_blocks_low", self.free_blocks_low, least, blocks)?;
        watermark("gc.free_blocks_high", self.free_blocks_high, self.free_blocks_low, blocks)?;
        self.check_slc(geometry)?;
        let logical = u64::from(self.logical_units);
        let usable = self.most_units(geometry).saturating_sub(u64::from(self.map_units));
        if logical == 0 || logical > usable {
            return Err(ConfigError::NoSpare { logical, usable });
        }
        Ok(())
    }

    /// The most logical units with which every cleaning makes progress.
    ///
    /// The copies of a victim fill whole program units, or whole wordlines, so its erase gains a
    /// program unit only if at least a program unit, or a wordline, of it is garbage. While
    /// cleaning is in progress, every block that is neither open nor one of the erased ones below
    /// the high watermark is a candidate. One of them has that much garbage as long as a die group
    /// holds less than all of them less a program unit each. Policies that refuse victims without
    /// gain (greedy, cost-benefit) therefore always find a victim, and those that may accept them
    /// (FIFO, LRU, windowed greedy, random, d-choices) reach one with gain
    /// ([`VictimPolicy::pick`]).
    fn most_units(&self, geometry: &Geometry) -> u64 {
        let die_groups = u64::from(geometry.die_groups());
        let a_die_group = self.most_of_die_group(geometry, geometry.main_blocks_per_die_group());
        let main = (die_groups * a_die_group).min(self.most_units_without(geometry, 0));
        main + u64::from(self.units_apart())
    }

    /// As [`Self::most_units`], for one die group with `blocks` blocks.
    pub(super) fn most_of_die_group(&self, geometry: &Geometry, blocks: u32) -> u64 {
        let (block, program_unit) =
            (geometry.data_units_per_block(), geometry.units_per_program_unit());
        let (block, program_unit, die_groups) =
            (u64::from(block), u64::from(program_unit), u64::from(geometry.die_groups()));
        let together = u64::from(self.program_units_together(geometry));
        let kept =
            self.free_blocks_high.max(self.free_blocks_idle) - 1 + self.main_frontier_count();
        let candidates = u64::from(blocks.saturating_sub(kept));
        // A die group may exceed its share by half a block when the host program units in flight
        // and queued on it are reserved ([`crate::PageMap::balanced`]). Program units that are not
        // in the map yet are in the open wordline of each stream.
        let open = (together - 1) * u64::from(self.streams());
        let uneven = if die_groups > 1 { block / 2 + (2 + open) * program_unit } else { 0 };
        let gained = (block + 1).saturating_sub(together * program_unit);
        (candidates * gained).saturating_sub(1 + uneven)
    }

    /// The most logical units that fit flash of one die group without SLC blocks, `bad` blocks of
    /// which are out of use.
    #[must_use]
    pub fn most_units_of_one(&self, geometry: &Geometry, bad: u32) -> u64 {
        let blocks = geometry.main_blocks_per_die_group().saturating_sub(bad);
        let most = self.most_of_die_group(geometry, blocks);
        most.min(self.most_units_without(geometry, bad.into()))
    }

    /// One block of slack per die group and a share of garbage limit write amplification where the
    /// bound by die groups is generous; `bad` blocks are out of use.
    pub(super) fn most_units_without(&self, geometry: &Geometry, bad: u64) -> u64 {
        let block = u64::from(geometry.data_units_per_block());
        let kept = (u64::from(geometry.die_groups()) + bad) * block;
        let apart = u64::from(self.units_apart());
        let most = (self.usable_units(geometry) - apart).saturating_sub(kept);
        most - most / 64
    }

    /// Logical units that are kept in SLC blocks and nowhere else.
    fn units_apart(&self) -> u32 {
        self.slc.map_or(0, |slc| slc.units_apart())
    }

    /// Units that can hold data in steady state: all but open blocks and the erased blocks that
    /// cleaning keeps. Of SLC blocks only the logical units that are kept nowhere else count.
    #[must_use]
    pub fn usable_units(&self, geometry: &Geometry) -> u64 {
        // In steady state the number of erased blocks varies between one below the low watermark,
        // where cleaning starts, and the high one, where it stops.
        let kept = self.free_blocks_low - 1;
        let out = kept + self.main_frontier_count() + geometry.slc_blocks_per_die_group();
        let out = u64::from(out) * u64::from(geometry.die_groups());
        u64::from(geometry.blocks()).saturating_sub(out)
            * u64::from(geometry.data_units_per_block())
            + u64::from(self.units_apart())
    }

    /// Nominal and effective over-provisioning. If logical units are kept in SLC blocks and nowhere
    /// else, the effective one is that of all others.
    #[must_use]
    pub fn over_provisioning(&self, geometry: &Geometry) -> OverProvisioning {
        let spare = |units: u64, of: u32| (units as f64 - f64::from(of)) / f64::from(of);
        let apart = self.units_apart();
        let usable = self.usable_units(geometry).saturating_sub(u64::from(self.map_units + apart));
        let others = self.logical_units.saturating_sub(apart).max(1);
        let raw = geometry.raw().0 / geometry.unit.0;
        OverProvisioning {
            nominal: spare(raw, self.logical_units),
            effective: spare(usable, others),
        }
    }
}

impl PageConfig {
    /// The stream of host data in a region, which is also the first of the two frontiers of SLC
    /// blocks. The second is for copies: within a region, or out of a cache into other blocks.
    #[must_use]
    pub fn slc_frontier(&self) -> Option<u32> {
        self.slc.map(|_| self.own_frontier_count())
    }

    /// The kind of block that `frontier` writes to.
    pub(super) fn kind_of_frontier(&self, frontier: usize) -> Kind {
        match self.slc {
            None => Kind::Main,
            Some(slc) => {
                let first = self.own_frontier_count() as usize;
                let is_slc = frontier == first || frontier == first + 1 && !slc.is_cache();
                if is_slc { Kind::Slc } else { Kind::Main }
            }
        }
    }

    /// The stream of `lpn`, written with placement handle `handle` by a request of `bytes`.
    #[must_use]
    #[inline]
    pub fn stream_for(&self, lpn: u32, handle: u32, bytes: u64) -> u32 {
        match self.slc {
            Some(SlcConfig { usage: SlcUse::Region(SlcRule::UpTo(most)), .. })
                if bytes <= most && lpn < self.logical_units =>
            {
                self.own_frontier_count()
            }
            _ => self.stream_of(lpn, handle),
        }
    }

    /// Whether a rule assigns `lpn`, written with `handle`, to the region for any request size.
    pub(super) fn belongs_to_region(&self, lpn: u32, handle: u32) -> bool {
        if lpn >= self.logical_units {
            return false;
        }
        match self.slc.map(|slc| slc.usage) {
            Some(SlcUse::Region(SlcRule::Below(units))) => lpn < units,
            Some(SlcUse::Region(SlcRule::Handle(of_region))) => handle == of_region,
            Some(SlcUse::Region(SlcRule::UpTo(_)) | SlcUse::Cache { .. }) | None => false,
        }
    }

    /// The frontier for copies out of a block that was written through `frontier`; `None` if
    /// `frontier` is not one of SLC blocks or of folding.
    pub(super) fn frontier_of_slc_copies(&self, frontier: u32) -> Option<u32> {
        let (slc, first) = (self.slc?, self.own_frontier_count());
        if frontier == first || frontier == first + 1 && !slc.is_cache() {
            return Some(first + 1);
        }
        None
    }

    /// Erased blocks of a die group that the host may not open: folding may need one in addition to
    /// the one for cleaning.
    #[must_use]
    pub fn reserve_for_copies(&self) -> u32 {
        self.reserve_blocks + u32::from(self.slc.is_some_and(|slc| slc.is_cache()))
    }

    /// Checks the configuration of SLC blocks against the flash.
    pub(super) fn check_slc(&self, geometry: &Geometry) -> Result<(), ConfigError> {
        let Some(slc) = self.slc else {
            let blocks = geometry.slc_blocks_per_die_group();
            return if blocks == 0 { Ok(()) } else { Err(ConfigError::SlcUnused { blocks }) };
        };
        let blocks = geometry.slc_blocks_per_die_group();
        if blocks == 0 {
            return Err(ConfigError::SlcMissing);
        }
        if matches!(self.placement, Placement::Segments(_)) {
            return Err(ConfigError::SlcStreams { what: "segments" });
        }
        let (low, high) = (slc.free_blocks_low, slc.free_blocks_high);
        let watermark = |field, value, min, max| {
            let fits = (min..=max).contains(&value);
            if fits { Ok(()) } else { Err(ConfigError::Watermark { field, value, min, max }) }
        };
        let least = if slc.is_cache() { 0 } else { self.reserve_blocks + 1 };
        // The open block of a cache is not folded, so that one block is never erased.
        watermark("slc.free_blocks_low", low, least, blocks - 1)?;
        watermark("slc.free_blocks_high", high, low, blocks - 1)?;
        match slc.usage {
            SlcUse::Cache { .. } if self.placement != Placement::Any => {
                Err(ConfigError::SlcStreams { what: "placement handles" })
            }
            SlcUse::Cache { .. } => Ok(()),
            SlcUse::Region(rule) => self.check_region(rule, &slc, geometry),
        }
    }

    fn check_region(
        &self,
        rule: SlcRule,
        slc: &SlcConfig,
        geometry: &Geometry,
    ) -> Result<(), ConfigError> {
        let usable = slc.region_units(geometry);
        let handles = match self.placement {
            Placement::Handles(handles) => handles,
            Placement::Any | Placement::Segments(_) => 0,
        };
        match rule {
            SlcRule::Handle(handle) if handle >= handles => {
                Err(ConfigError::SlcHandle { handle, handles })
            }
            SlcRule::Below(units) if u64::from(units) > usable || units == 0 => {
                Err(ConfigError::SlcRegion { units: units.into(), usable })
            }
            _ if usable == 0 => Err(ConfigError::SlcRegion { units: 1, usable }),
            _ => Ok(()),
        }
    }
}
