//! `[[range]]`: address ranges with a mapping of their own.

use prism_base::Bytes;
use prism_ftl::{Frontiers, FtlConfig, RangeConfig, RangesConfig, VictimPolicy};
use serde::Deserialize;

use super::parts::opt_victim;
use super::{DriveSpec, DriveSpecError, Mapping, bad};

/// One `[[range]]`. Missing fields have the value of `[ftl]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RangeSpec {
    /// Its share of the capacity; it follows the range before it.
    pub share: f64,
    /// Its share of the flash; if missing, that of the capacity.
    pub flash_share: Option<f64>,
    /// Its mapping.
    pub mapping: Mapping,
    /// Which block is cleaned or merged.
    #[serde(default, deserialize_with = "opt_victim")]
    pub victim: Option<VictimPolicy>,
    /// Cleaning starts below this many erased blocks of a die group. If missing, 0 for block-level
    /// and hybrid mappings: they merge only when they have to.
    pub free_blocks_low: Option<u32>,
    /// Cleaning stops at this many.
    pub free_blocks_high: Option<u32>,
    /// N, for `hybrid`.
    pub group_blocks: Option<u32>,
    /// K, for `hybrid`.
    pub group_log_blocks: Option<u32>,
    /// Share of the blocks of the range that may be log blocks, for block-level and hybrid
    /// mappings.
    pub log_share: Option<f64>,
}

impl RangeSpec {
    fn flash(&self) -> f64 {
        self.flash_share.unwrap_or(self.share)
    }

    /// Sets `[ftl]` of `device` as if this range were the whole drive.
    fn apply(&self, device: &mut DriveSpec) {
        let ftl = &mut device.ftl;
        let by_block = self.mapping.is_by_block();
        ftl.mapping = self.mapping;
        ftl.victim = self.victim.unwrap_or(ftl.victim);
        let watermark = |own: Option<u32>, all: u32| own.unwrap_or(if by_block { 0 } else { all });
        ftl.free_blocks_low = watermark(self.free_blocks_low, ftl.free_blocks_low);
        ftl.free_blocks_high = watermark(self.free_blocks_high, ftl.free_blocks_high);
        if by_block {
            ftl.frontiers = Frontiers::Separate;
        }
        ftl.group_blocks = self.group_blocks;
        ftl.group_log_blocks = self.group_log_blocks;
        ftl.log_share = self.log_share;
    }
}

impl DriveSpec {
    /// Each range as a drive of its own, in the order of their addresses. Addresses that no range
    /// covers form one more, mapped according to `[ftl]`. Empty if there is no `[[range]]`.
    #[must_use]
    pub fn range_devices(&self) -> Vec<Self> {
        if self.ranges.is_empty() {
            return Vec::new();
        }
        let (units, blocks) = (self.logical_units(), self.flash.blocks_per_plane);
        let part = |sum: f64, all: u32| (sum * f64::from(all)).round().min(f64::from(all)) as u32;
        let (mut share, mut flash, mut first_unit, mut first_block) = (0.0, 0.0, 0, 0);
        let mut all = Vec::new();
        let mut add = |spec: Option<&RangeSpec>, end_unit: u32, end_block: u32| {
            let mut device = Self { ranges: Vec::new(), ..self.clone() };
            let unit = self.ftl.mapping_unit.0;
            device.drive.capacity = Bytes(u64::from(end_unit - first_unit) * unit);
            device.flash.blocks_per_plane = end_block - first_block;
            if let Some(spec) = spec {
                spec.apply(&mut device);
            }
            (first_unit, first_block) = (end_unit, end_block);
            all.push(device);
        };
        for spec in &self.ranges {
            share += spec.share;
            flash += spec.flash();
            add(Some(spec), part(share, units), part(flash, blocks));
        }
        if share < Self::SHARES_ALL {
            add(None, units, blocks);
        }
        all
    }

    /// Shares with at least this sum cover the whole drive.
    const SHARES_ALL: f64 = 0.9999;

    pub(super) fn ranges_config(&self) -> FtlConfig {
        let config = |device: Self| RangeConfig {
            blocks_per_plane: device.flash.blocks_per_plane,
            ftl: device.ftl_config(),
        };
        let ranges = self.range_devices().into_iter().map(config).collect();
        FtlConfig::Ranges(RangesConfig { ranges })
    }

    pub(super) fn check_ranges(&self) -> Result<(), DriveSpecError> {
        let in_order = |shares: &mut dyn Iterator<Item = f64>| {
            let shares: Vec<f64> = shares.collect();
            shares.iter().all(|&share| share > 0.0) && shares.iter().sum::<f64>() < 1.0 + 1e-9
        };
        let ranges = &self.ranges;
        let given = |shares: Vec<String>| shares.join(", ");
        if !in_order(&mut ranges.iter().map(|range| range.share)) {
            let why = "each share is above 0, and all together are at most 1";
            let shares = ranges.iter().map(|range| range.share.to_string()).collect();
            return bad("range.share", given(shares), why);
        }
        if !in_order(&mut ranges.iter().map(RangeSpec::flash)) {
            let why = "each share is above 0, and all together are at most 1";
            let shares = ranges.iter().map(|range| range.flash().to_string()).collect();
            return bad("range.flash_share", given(shares), why);
        }
        let zones = |mapping: Mapping| mapping == Mapping::Zns;
        if zones(self.ftl.mapping) || ranges.iter().any(|range| zones(range.mapping)) {
            return bad("range.mapping", "zns", "a drive is zoned as a whole or not at all");
        }
        if self.ftl.mapping == Mapping::Dftl || ranges.iter().any(|r| r.mapping == Mapping::Dftl) {
            return bad("range.mapping", "dftl", "a map on flash covers the whole drive");
        }
        if self.ftl.free_blocks_idle > 0 {
            let why = "ranges are cleaned when they have to be, not in idle time: 0";
            return bad("ftl.free_blocks_idle", self.ftl.free_blocks_idle, why);
        }
        if self.drive.discards && !self.unmaps() {
            let why = "ranges record no trims on flash, so that without power_loss_protection \
                       discarded data could reappear after a loss of power: set discards = \
                       false";
            return bad("drive.discards", true, why);
        }
        self.range_devices().iter().try_for_each(Self::check_ftl)?;
        self.ftl_config().check(&self.geometry())?;
        Ok(())
    }
}
