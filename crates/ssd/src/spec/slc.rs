//! `[slc]`: blocks in SLC mode, as a region or as a write cache.

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
    /// SLC blocks per die group (a die, or the dies of a superblock): its first ones.
    pub blocks: u32,
    /// Their use.
    #[serde(rename = "use")]
    pub usage: SlcUsage,
    /// The region holds this many bytes from address 0 on.
    #[serde(default, deserialize_with = "quantity::opt_bytes")]
    pub below: Option<Bytes>,
    /// The region holds data written with this placement handle.
    pub handle: Option<u32>,
    /// The region holds data of writes of at most this many bytes.
    #[serde(default, deserialize_with = "quantity::opt_bytes")]
    pub up_to: Option<Bytes>,
    /// Whether a cache is folded in idle time.
    pub fold_when_idle: Option<bool>,
    /// Cleaning (region) or folding (cache) starts below this many erased SLC blocks of a die
    /// group.
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
    /// Rated program/erase cycles of an SLC block.
    pub endurance: u32,
}

prism_base::named_enum! {
    /// Use of SLC blocks, with its names in device files.
    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum SlcUsage {
        /// They hold the data that a rule selects.
        Region = "region",
        /// Host data is written there first and folded into the other blocks later.
        Cache = "cache",
    }
}

impl DriveSpec {
    /// The SLC blocks of the geometry.
    pub(super) fn slc_blocks(&self) -> Option<Slc> {
        let bits = self.flash.cell.bits();
        self.slc.as_ref().map(|slc| Slc { blocks: slc.blocks, bits })
    }

    /// The flash times of the SLC blocks.
    pub(super) fn slc_timing(&self) -> Option<SlcTiming> {
        self.slc.as_ref().map(|slc| SlcTiming {
            t_read: slc.t_read,
            t_program: slc.t_program,
            t_erase: slc.t_erase,
        })
    }

    /// Configuration of the SLC blocks for the FTL.
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
        // A cache needs no reserve of its own: data that it cannot take is written to the other
        // blocks.
        let kept =
            if slc.usage == SlcUsage::Region { self.blocks_reserved_for_faults() } else { 0 };
        let free_blocks_low = slc.free_blocks_low.saturating_add(kept);
        let free_blocks_high = slc.free_blocks_high.saturating_add(kept);
        Some(SlcConfig { usage, free_blocks_low, free_blocks_high })
    }

    /// Checks that the cells have several bits and the drive has one map.
    pub(super) fn check_slc_cells(&self) -> Result<(), DriveSpecError> {
        if self.slc.is_some() && !self.ranges.is_empty() {
            let value = format!("{} ranges", self.ranges.len());
            return bad("range", value, "[slc] does not combine with ranges of other mappings");
        }
        if self.slc.is_some() && self.flash.cell == Cell::Slc {
            return bad("flash.cell", "slc", "[slc] needs flash with several bits per cell");
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
            let why = "must be at least 3 with an SLC write cache: folding needs an erased block, \
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
            // Tombstones for the region's units would be written to the other blocks, whose spare
            // space does not include room for them.
            let why = "slc.below adds the region to the capacity, which leaves no room for \
                       records of trims on flash: it needs protection";
            return bad("drive.power_loss_protection", false, why);
        }
        Ok(())
    }

    /// Scales a region of addresses to the share of the capacity that it has on `full`.
    pub(crate) fn scale_slc_below(&mut self, full: &Self) {
        let capacity = u128::from(self.drive.capacity.0);
        let Some(below) = self.slc.as_mut().and_then(|slc| slc.below.as_mut()) else { return };
        let share = u128::from(full.slc.as_ref().and_then(|slc| slc.below).unwrap_or(*below).0);
        let unit = self.ftl.mapping_unit.0;
        let scaled = (share * capacity / u128::from(full.drive.capacity.0.max(1))) as u64;
        *below = Bytes((scaled / unit).max(1) * unit);
    }

    /// Sets the number of SLC blocks of the drive, which is `full` scaled to `main` other blocks
    /// per die group: the same share as on `full`, or more if its region needs them. Returns the
    /// number.
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

    /// The share of the endurance that the blocks of the drive have left at the start.
    #[must_use]
    pub fn endurance_left(&self) -> f64 {
        let used = self.faults.as_ref().map_or(0, |faults| faults.wear);
        (1.0 - f64::from(used) / f64::from(self.flash.endurance)).max(0.0)
    }

    /// Bytes that can be programmed, with even wear, until one kind of blocks has used up its
    /// cycles, if `slc_share` of all bytes is programmed to SLC blocks. What was used before the
    /// start is not counted, and both kinds have used the same share.
    #[must_use]
    pub fn writable_bytes(&self, slc_share: f64) -> f64 {
        let geometry = self.geometry();
        let left = self.endurance_left();
        let Some(slc) = &self.slc else {
            return geometry.raw().0 as f64 * f64::from(self.flash.endurance) * left;
        };
        let kind = |raw: Bytes, cycles: u32, share: f64| {
            if share > 0.0 {
                raw.0 as f64 * f64::from(cycles) * left / share
            } else {
                f64::INFINITY
            }
        };
        let others = Bytes(geometry.raw().0 - geometry.slc_raw().0);
        let others = kind(others, self.flash.endurance, 1.0 - slc_share);
        others.min(kind(geometry.slc_raw(), slc.endurance, slc_share))
    }

    /// Logical units that are only ever stored in SLC blocks.
    pub(crate) fn units_apart(&self) -> u64 {
        self.slc_config().map_or(0, |slc| u64::from(slc.units_apart()))
    }
}

/// The fewest SLC blocks per die group of a scaled drive, unless the full one has fewer: with less,
/// a region has no victims to choose from.
const SLC_BLOCKS_MIN: u32 = 8;
