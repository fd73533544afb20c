//! Block-level and hybrid mappings (`block`, `bast`, `fast`, `hybrid`): their configuration, and
//! checks that required fields are present and fields without a meaning absent.

use prism_ftl::{Frontiers, HybridConfig};

use super::{DriveSpec, DriveSpecError, Mapping, absent, bad, shown};

impl DriveSpec {
    /// The configuration of a block-level or hybrid mapping.
    pub(super) fn hybrid_config(&self) -> HybridConfig {
        let ftl = &self.ftl;
        let blocks = f64::from(self.geometry().blocks());
        let units = self.logical_units();
        let gaps = self.flash.program_gaps;
        let log_blocks = (ftl.log_share.unwrap_or(0.0) * blocks).max(1.0) as u32;
        let base = match ftl.mapping {
            Mapping::Fast => HybridConfig::fast(units, log_blocks.max(2), gaps),
            Mapping::Block => HybridConfig::block(units, log_blocks, gaps),
            _ => HybridConfig::bast(units, log_blocks),
        };
        let base = HybridConfig {
            victim: ftl.victim,
            free_blocks_low: ftl.free_blocks_low,
            free_blocks_high: ftl.free_blocks_high,
            reserve_blocks: self.blocks_reserved_for_faults(),
            ..base
        };
        if ftl.mapping != Mapping::Hybrid {
            return base;
        }
        HybridConfig {
            group_blocks: ftl.group_blocks.unwrap_or(0),
            group_log_blocks: ftl.group_log_blocks.unwrap_or(0),
            ..base
        }
    }

    /// Checks that required fields are present, and fields that the mapping would ignore absent.
    pub(super) fn check_by_block(&self) -> Result<(), DriveSpecError> {
        let (ftl, flash) = (&self.ftl, &self.flash);
        let blocks = [
            ("ftl.group_blocks", ftl.group_blocks),
            ("ftl.group_log_blocks", ftl.group_log_blocks),
        ];
        if ftl.mapping != Mapping::Hybrid {
            if let Some((field, Some(blocks))) = blocks.iter().find(|(_, value)| value.is_some()) {
                return bad(field, blocks, "only mapping \"hybrid\" has data groups");
            }
        } else if let Some((field, _)) = blocks.iter().find(|(_, value)| value.is_none()) {
            return bad(field, "nothing", "mapping \"hybrid\" needs a number of blocks");
        }
        match ftl.log_share {
            Some(share) if share > 0.0 && share < 1.0 => {}
            share => {
                let why = "this mapping needs the share of all blocks that may be log blocks, \
                           above 0 and below 1";
                let value = share.map_or("nothing".into(), |share| share.to_string());
                return bad("ftl.log_share", value, why);
            }
        }
        if self.drive.discards && !self.unmaps() {
            let why = "this mapping records no trims on flash, so that without \
                       power_loss_protection discarded data could reappear after a loss of \
                       power: set discards = false";
            return bad("drive.discards", true, why);
        }
        if ftl.mapping == Mapping::Block && self.program_units_at_risk() > 1 {
            let why = "mapping \"block\" has a fixed place for each page and cannot pad a \
                       wordline that a loss of power could destroy: it needs cell = \"slc\", \
                       programs of whole wordlines (pages_per_program), or \
                       power_loss_protection";
            return bad("flash.cell", self.flash.cell.name(), why);
        }
        if ftl.frontiers != Frontiers::Separate {
            let why = "block-level and hybrid mappings merge into blocks of their own: separate";
            return bad("ftl.frontiers", ftl.frontiers.name(), why);
        }
        let meaningless = [
            ("ftl.segment", shown(ftl.segment)),
            (
                "ftl.placement_handles",
                shown(Some(ftl.placement_handles).filter(|&count| count > 0)),
            ),
            ("ftl.map_cache", shown(ftl.map_cache)),
            ("ftl.wear_least_worn_first", shown(ftl.wear_least_worn_first.then_some(true))),
            ("ftl.wear_move_behind_mean", shown(ftl.wear_move_behind_mean)),
            ("ftl.wear_victims_above_mean", shown(ftl.wear_victims_above_mean)),
            ("flash.copy_back", shown(flash.copy_back.then_some(true))),
            ("flash.superblock_parity", shown(flash.superblock_parity.then_some(true))),
        ];
        absent(meaningless, "does not combine with block-level or hybrid mappings")
    }

    /// Checks that no field of block-level and hybrid mappings is present.
    pub(super) fn check_not_by_block(&self) -> Result<(), DriveSpecError> {
        let fields = [
            ("ftl.group_blocks", shown(self.ftl.group_blocks)),
            ("ftl.group_log_blocks", shown(self.ftl.group_log_blocks)),
            ("ftl.log_share", shown(self.ftl.log_share)),
        ];
        absent(fields, "only block-level and hybrid mappings have log blocks")
    }
}
