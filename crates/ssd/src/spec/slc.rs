//! `[slc]`: SLC blocks beside the others, and what they are for.

use prism_base::{Bytes, Nanos};
use prism_engine::SlcTiming;
use prism_ftl::{SlcConfig, SlcRule, SlcUse};
use prism_nand::Slc;
use serde::Deserialize;

use super::{Cell, DriveSpec, DriveSpecError, Mapping, bad};
use crate::quantity;

/// `[slc]`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlcSpec {
    /// Blocks of each die group (a die, or the dies of a superblock) with SLC: its
    /// first ones.
    pub blocks: u32,
    /// What they are for.
    #[serde(rename = "use")]
    pub usage: SlcUsage,
    /// The first so many bytes live in a region.
    #[serde(default, deserialize_with = "quantity::opt_bytes")]
    pub below: Option<Bytes>,
    /// What is written with this placement handle lives in a region.
    #[serde(default)]
    pub handle: Option<u32>,
    /// What requests of at most so many bytes write lives in a region.
    #[serde(default, deserialize_with = "quantity::opt_bytes")]
    pub up_to: Option<Bytes>,
    /// Whether a cache is emptied in idle time.
    #[serde(default)]
    pub fold_when_idle: Option<bool>,
    /// Cleaning or folding of these blocks of a die group starts below this many erased ones.
    pub free_blocks_low: u32,
    /// It stops at this many.
    pub free_blocks_high: u32,
    /// tR of any page.
    #[serde(deserialize_with = "quantity::nanos")]
    pub t_read: Nanos,
    /// tPROG of one page, on all ganged planes at once.
    #[serde(deserialize_with = "quantity::nanos")]
    pub t_program: Nanos,
    /// tBERS.
    #[serde(deserialize_with = "quantity::nanos")]
    pub t_erase: Nanos,
    /// Program/erase cycles such a block is good for.
    pub endurance: u32,
}

/// What SLC blocks are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SlcUsage {
    /// A rule decides which data lives in them.
    Region,
    /// Data of the host comes there first and is moved on later.
    Cache,
}

impl SlcUsage {
    /// The name in device files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Region => "region",
            Self::Cache => "cache",
        }
    }
}

impl DriveSpec {
    /// Blocks with SLC, as the geometry has them.
    pub(super) fn slc_blocks(&self) -> Option<Slc> {
        let bits = self.flash.cell.bits();
        self.slc.as_ref().map(|slc| Slc { blocks: slc.blocks, bits })
    }

    /// Their times.
    pub(super) fn slc_timing(&self) -> Option<SlcTiming> {
        self.slc.as_ref().map(|slc| SlcTiming {
            t_read: slc.t_read,
            t_program: slc.t_program,
            t_erase: slc.t_erase,
        })
    }

    /// What the translation layer is told of them.
    pub(super) fn slc_config(&self) -> Option<SlcConfig> {
        let slc = self.slc.as_ref()?;
        let units = |bytes: Bytes| u32::try_from(bytes.0 / self.ftl.mapping_unit.0);
        let usage = match (slc.usage, slc.below, slc.handle, slc.up_to) {
            (SlcUsage::Cache, ..) => {
                SlcUse::Cache { fold_when_idle: slc.fold_when_idle.unwrap_or(false) }
            }
            (SlcUsage::Region, Some(below), ..) => {
                SlcUse::Region(SlcRule::Below(units(below).unwrap_or(u32::MAX)))
            }
            (SlcUsage::Region, None, Some(handle), _) => SlcUse::Region(SlcRule::Handle(handle)),
            (SlcUsage::Region, None, None, up_to) => {
                SlcUse::Region(SlcRule::UpTo(up_to.unwrap_or(Bytes(0)).0))
            }
        };
        // A cache needs no reserve of its own: what it cannot take goes to the other blocks.
        let kept = if slc.usage == SlcUsage::Region { self.kept_for_faults() } else { 0 };
        let free_blocks_low = slc.free_blocks_low.saturating_add(kept);
        let free_blocks_high = slc.free_blocks_high.saturating_add(kept);
        Some(SlcConfig { usage, free_blocks_low, free_blocks_high })
    }

    /// There are cells to be used with fewer bits than they have, and one map.
    pub(super) fn check_slc_cells(&self) -> Result<(), DriveSpecError> {
        if self.slc.is_some() && !self.ranges.is_empty() {
            let value = format!("{} ranges", self.ranges.len());
            return bad("range", value, "[slc] does not combine with ranges of other mappings");
        }
        if self.slc.is_some() && self.flash.cell == Cell::Slc {
            return bad("flash.cell", "slc", "[slc] is for flash with more than SLC");
        }
        Ok(())
    }

    /// Checks `[slc]` against the other sections.
    pub(super) fn check_slc(&self) -> Result<(), DriveSpecError> {
        let Some(slc) = &self.slc else { return Ok(()) };
        if self.ftl.mapping != Mapping::Page {
            let why = "[slc] needs mapping \"page\"";
            return bad("ftl.mapping", self.ftl.mapping.name(), why);
        }
        if self.flash.copy_back {
            return bad("flash.copy_back", true, "[slc] does not combine with copies in a plane");
        }
        if self.ftl.segment.is_some() {
            let segment = self.ftl.segment.unwrap_or(Bytes(0));
            return bad("ftl.segment", segment, "[slc] does not combine with segments");
        }
        if slc.endurance == 0 {
            return bad("slc.endurance", 0, "a block lasts at least one cycle");
        }
        match slc.usage {
            SlcUsage::Region => self.check_slc_rule(slc),
            SlcUsage::Cache => self.check_slc_cache(slc),
        }
    }

    fn check_slc_cache(&self, slc: &SlcSpec) -> Result<(), DriveSpecError> {
        let rules = [
            ("slc.below", slc.below.map(|size| size.to_string())),
            ("slc.handle", slc.handle.map(|handle| handle.to_string())),
            ("slc.up_to", slc.up_to.map(|size| size.to_string())),
        ];
        if let Some((field, Some(value))) = rules.into_iter().find(|(_, value)| value.is_some()) {
            return bad(field, value, "a rule is for use = \"region\"; a cache takes all data");
        }
        if slc.fold_when_idle.is_none() {
            let why = "use = \"cache\" needs it: whether the cache is emptied in idle time";
            return bad("slc.fold_when_idle", "nothing", why);
        }
        if self.ftl.placement_handles > 0 {
            let why = "use = \"cache\" does not combine with placement handles";
            return bad("ftl.placement_handles", self.ftl.placement_handles, why);
        }
        let least = Self::RESERVE_BLOCKS + 2;
        if self.ftl.free_blocks_critical < least {
            let why = "must be at least 3 beside a write cache: folding needs an erased block, \
                       cleaning another, and with these two left the host cannot write";
            return bad("ftl.free_blocks_critical", self.ftl.free_blocks_critical, why);
        }
        Ok(())
    }

    fn check_slc_rule(&self, slc: &SlcSpec) -> Result<(), DriveSpecError> {
        if let Some(fold) = slc.fold_when_idle {
            return bad("slc.fold_when_idle", fold, "only use = \"cache\" is emptied");
        }
        let rules = [slc.below.is_some(), slc.handle.is_some(), slc.up_to.is_some()];
        let given = rules.into_iter().filter(|&given| given).count();
        if given != 1 {
            let why = "use = \"region\" needs one rule: below (the first bytes), handle (a \
                       placement handle) or up_to (small writes)";
            return bad("slc.use", format!("region with {given} rules"), why);
        }
        let Some(below) = slc.below else { return Ok(()) };
        if below < self.ftl.mapping_unit || below >= self.capacity() {
            let why = "must be at least a mapping unit and less than the capacity";
            return bad("slc.below", below, why);
        }
        if !self.drive.power_loss_protection {
            // Tombstones of the region's units would stand in the other blocks, which have
            // no room for them.
            let why = "slc.below adds the region to the capacity, which leaves no room for \
                       records of trims on flash: it needs protection";
            return bad("drive.power_loss_protection", false, why);
        }
        Ok(())
    }

    /// Lets a region of addresses be as large a share of the capacity as it is on `full`.
    pub(crate) fn scale_slc_below(&mut self, full: &Self) {
        let capacity = u128::from(self.drive.capacity.0);
        let Some(below) = self.slc.as_mut().and_then(|slc| slc.below.as_mut()) else { return };
        let share = u128::from(full.slc.as_ref().and_then(|slc| slc.below).unwrap_or(*below).0);
        let unit = self.ftl.mapping_unit.0;
        let scaled = (share * capacity / u128::from(full.drive.capacity.0.max(1))) as u64;
        *below = Bytes((scaled / unit).max(1) * unit);
    }

    /// Gives the drive, which is `full` at another capacity with `main` other blocks a die group,
    /// as large a share of SLC blocks, and more where its region needs them. Returns how many.
    pub(crate) fn scale_slc_blocks(&mut self, full: &Self, main: u64) -> u64 {
        let Some(before) = full.slc.as_ref().map(|slc| slc.blocks) else { return 0 };
        let share = u64::from(before) * main;
        let share = share.div_ceil(u64::from(full.geometry().main_blocks_per_die_group().max(1)));
        let mut blocks = (share as u32).max(before.min(SLC_BLOCKS_MIN));
        loop {
            let Some(slc) = &mut self.slc else { return 0 };
            slc.blocks = blocks;
            let needed = self.slc_config().map_or(0, |slc| u64::from(slc.units_apart()));
            let held = self.slc_config().map_or(0, |slc| slc.region_units(&self.geometry()));
            if held >= needed {
                return u64::from(blocks);
            }
            blocks += 1;
        }
    }

    /// Bytes that the flash takes until the first kind of its blocks has used up its cycles,
    /// with even wear, where `slc_share` of all bytes go to SLC blocks.
    #[must_use]
    pub fn writable_bytes(&self, slc_share: f64) -> f64 {
        let geometry = self.geometry();
        let Some(slc) = &self.slc else {
            return geometry.raw().0 as f64 * f64::from(self.flash.endurance);
        };
        let kind = |raw: Bytes, cycles: u32, share: f64| {
            if share > 0.0 { raw.0 as f64 * f64::from(cycles) / share } else { f64::INFINITY }
        };
        let others = Bytes(geometry.raw().0 - geometry.slc_raw().0);
        let others = kind(others, self.flash.endurance, 1.0 - slc_share);
        others.min(kind(geometry.slc_raw(), slc.endurance, slc_share))
    }

    /// Logical units that live in SLC blocks and nowhere else.
    pub(crate) fn units_apart(&self) -> u64 {
        self.slc_config().map_or(0, |slc| u64::from(slc.units_apart()))
    }
}

/// Blocks of SLC that a die group of a small drive keeps if it had them: with fewer, a
/// region has no victims to choose from.
const SLC_BLOCKS_MIN: u32 = 8;
