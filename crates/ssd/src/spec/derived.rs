//! What follows from the description of a drive: its flash, its engine and its FTL.

use prism_base::Bytes;
use prism_engine::{Cleaning, EngineConfig, Suspend};
use prism_ftl::{FtlConfig, OverProvisioning, PageConfig, Placement, WearPolicy};
use prism_nand::{Geometry, Nand, Timing};

use super::{DriveSpec, Mapping, SuspendSpec};

impl DriveSpec {
    /// Erased flash of this geometry that keeps no content.
    #[must_use]
    pub fn erased(&self) -> Nand {
        Nand::new(self.geometry()).with_gaps(self.flash.program_gaps)
    }

    /// Erased flash of this geometry that keeps content.
    #[must_use]
    pub fn erased_with_content(&self) -> Nand {
        Nand::with_content(self.geometry()).with_gaps(self.flash.program_gaps)
    }

    /// The geometry of the flash.
    #[must_use]
    pub fn geometry(&self) -> Geometry {
        let f = &self.flash;
        Geometry {
            channels: f.channels,
            dies_per_channel: f.dies_per_channel,
            planes: f.planes,
            planes_ganged: if f.multi_plane { f.planes } else { 1 },
            blocks_per_plane: f.blocks_per_plane,
            pages_per_block: f.pages_per_block,
            pages_per_program: f.pages_per_program,
            dies_per_superblock: f.superblock_dies,
            parity: f.superblock_parity,
            page: f.page,
            unit: self.ftl.mapping_unit,
            slc: self.slc_blocks(),
        }
    }

    /// Whether the drive can unmap units durably: page-level mapping records trims in tombstones,
    /// and a drive with power-loss protection saves which units are unmapped. Without protection,
    /// block-level and hybrid mappings and drives with ranges refuse discards and write zeroes as
    /// data.
    #[must_use]
    pub fn unmaps(&self) -> bool {
        let has_tombstones = self.ranges.is_empty() && !self.ftl.mapping.is_by_block();
        self.drive.power_loss_protection || has_tombstones
    }

    /// Program units of a die that share a wordline: 1 if a program writes whole wordlines.
    #[must_use]
    pub fn program_units_per_wordline(&self) -> u32 {
        let flash = &self.flash;
        let program_units = flash.cell.bits() / flash.pages_per_program.max(1);
        program_units.clamp(1, self.geometry().program_units_per_die().max(1))
    }

    /// The smallest write buffer: all program units that are programmed before any of them is
    /// committed. With less every program unit would need padding.
    #[must_use]
    pub fn write_buffer_min(&self) -> Bytes {
        let program_units = match self.program_units_at_risk() {
            1 => 1,
            program_units => program_units * self.flash.superblock_dies,
        };
        Bytes(self.geometry().program_unit_bytes().0 * u64::from(program_units))
    }

    /// Program units that are committed together, because a loss of power during the last could
    /// destroy the earlier ones. With power-loss protection the programs in flight always end.
    pub(super) fn program_units_at_risk(&self) -> u32 {
        if self.drive.power_loss_protection { 1 } else { self.program_units_per_wordline() }
    }

    /// The configuration of the engine.
    #[must_use]
    pub fn engine_config(&self) -> EngineConfig {
        let flash = &self.flash;
        let (programs, erases) = match flash.suspend {
            SuspendSpec::None => (false, false),
            SuspendSpec::Program => (true, false),
            SuspendSpec::Erase => (false, true),
            SuspendSpec::Both => (true, true),
        };
        EngineConfig {
            timing: Timing {
                t_read: flash.t_read,
                t_program: flash.t_program,
                t_erase: flash.t_erase,
                t_command: flash.t_command,
                bus_bytes_per_second: flash.channel_bandwidth,
            },
            slc: self.slc_timing(),
            channel_arbitration: flash.channel_arbitration,
            read_transfer: flash.read_transfer,
            scheduler: self.drive.scheduler,
            cache_read: flash.cache_read,
            cache_program: flash.cache_program,
            copy_back: flash.copy_back,
            suspend: (programs || erases).then_some(Suspend {
                programs,
                erases,
                cost: flash.t_suspend,
            }),
            cleaning: Cleaning {
                mode: self.ftl.cleaning,
                free_blocks_critical: self
                    .ftl
                    .free_blocks_critical
                    .saturating_add(self.blocks_reserved_for_faults()),
                free_blocks_idle: self.ftl.free_blocks_idle,
            },
            wordline_program_units: self.program_units_at_risk(),
        }
    }

    /// Logical units: the capacity in mapping units.
    #[must_use]
    pub fn logical_units(&self) -> u32 {
        (self.drive.capacity.0 / self.ftl.mapping_unit.0) as u32
    }

    /// Map entries of 4 bytes per translation page, which is one mapping unit.
    #[must_use]
    pub fn entries_per_translation_page(&self) -> u32 {
        (self.ftl.mapping_unit.0 / 4) as u32
    }

    /// The configuration of the FTL.
    #[must_use]
    pub fn ftl_config(&self) -> FtlConfig {
        if !self.ranges.is_empty() {
            return self.ranges_config();
        }
        match self.ftl.mapping {
            Mapping::Page | Mapping::Dftl => FtlConfig::Page(self.page_config()),
            Mapping::Block | Mapping::Bast | Mapping::Fast | Mapping::Hybrid => {
                FtlConfig::Hybrid(self.hybrid_config())
            }
            Mapping::Zns => FtlConfig::Zoned(self.zoned_config()),
        }
    }

    /// Units that can hold data in steady state.
    #[must_use]
    pub fn usable_units(&self) -> u64 {
        self.ftl_config().usable_units(&self.geometry())
    }

    /// The configuration of page-level mapping.
    #[must_use]
    pub fn page_config(&self) -> PageConfig {
        let ftl = &self.ftl;
        let logical_units = self.logical_units();
        let per_page = self.entries_per_translation_page();
        let kept = self.blocks_reserved_for_faults();
        PageConfig {
            logical_units,
            map_units: match ftl.mapping {
                Mapping::Dftl => logical_units.div_ceil(per_page),
                _ => 0,
            },
            victim: ftl.victim,
            frontiers: ftl.frontiers,
            placement: match (ftl.segment, ftl.placement_handles) {
                (Some(segment), _) => {
                    let units = segment.0 / ftl.mapping_unit.0;
                    Placement::Segments(u32::try_from(units).unwrap_or(u32::MAX))
                }
                (None, 0) => Placement::Any,
                (None, handles) => Placement::Handles(handles),
            },
            free_blocks_low: ftl.free_blocks_low.saturating_add(kept),
            free_blocks_high: ftl.free_blocks_high.saturating_add(kept),
            free_blocks_idle: match ftl.free_blocks_idle {
                0 => 0,
                idle => idle.saturating_add(kept),
            },
            reserve_blocks: Self::RESERVE_BLOCKS + kept,
            wear: WearPolicy {
                least_worn_first: ftl.wear_least_worn_first,
                move_behind_mean: ftl.wear_move_behind_mean,
                victims_above_mean: ftl.wear_victims_above_mean,
            },
            slc: self.slc_config(),
            wordline_program_units: self.program_units_at_risk(),
        }
    }

    /// The capacity, rounded down to whole mapping units.
    #[must_use]
    pub fn capacity(&self) -> Bytes {
        Bytes(self.drive.capacity.0 / self.ftl.mapping_unit.0 * self.ftl.mapping_unit.0)
    }

    /// Over-provisioning, nominal and effective.
    #[must_use]
    pub fn over_provisioning(&self) -> OverProvisioning {
        self.ftl_config().over_provisioning(&self.geometry())
    }
}
