//! Applies a change to the drive or the pace of a run.
//!
//! A change of the drive must not change its spare flash as a side effect. The open blocks
//! of placement handles, or a map on flash, use up blocks, which are a large part of the
//! spare flash of a drive that was scaled down. The number of blocks is therefore adjusted so
//! that the effective over-provisioning stays the same. The flash that lifetimes are
//! computed from ([`Run::raw`]) does not change.

use prism_base::Bytes;
use prism_ftl::{Frontiers, VictimPolicy};
use prism_replay::Pace;
use prism_ssd::spec::{FtlSpec, Mapping};
use prism_ssd::{DriveSpec, DriveSpecError};

use super::change::Change;
use super::simulate::Run;

/// Program units of space in the write buffer in addition to one per placement handle: one
/// is filled while another is being programmed.
const SPARE_PROGRAM_UNITS: u64 = 2;

/// Logical blocks per data group of the hybrid mapping that represents block-level mappings.
pub(super) const GROUP_BLOCKS: u32 = 4;
/// The most log blocks of a data group: two for each logical block, so that random writes
/// can fill twice the size of the group before it has to merge.
const GROUP_LOG_BLOCKS: u32 = 8;

impl Change {
    /// Returns `base` with this change applied to its drive or pace. Changes that only
    /// rewrite the trace return it unmodified.
    ///
    /// # Errors
    /// [`DriveSpecError`] if the changed drive is not valid.
    pub fn applied(&self, base: &Run) -> Result<Run, DriveSpecError> {
        let mut run = base.clone();
        match *self {
            Self::Depth { requests } => run.options.pace = Pace::Closed { depth: requests },
            Self::Discards { .. } => run.device.drive.discards = true,
            Self::Streams { handles } | Self::HotCold { classes: handles } => {
                run.device = with_handles(&base.device, handles)?;
            }
            Self::OverProvisioning { spare } => {
                run.device.set_over_provisioning(spare)?;
                run.raw = run.device.geometry().raw();
            }
            Self::MapCache { bytes } => run.device = with_map_cache(&base.device, bytes)?,
            Self::Levelling { behind } => run.device.ftl.wear_move_behind_mean = Some(behind),
            Self::Merge { .. }
            | Self::GroupCommit { .. }
            | Self::Align { .. }
            | Self::DelayDiscards { .. }
            | Self::NoDiscards
            | Self::PageMap => {}
        }
        run.device.check()?;
        Ok(run)
    }
}

/// `device` with placement handles, and a write buffer with space for a program unit of each.
fn with_handles(device: &DriveSpec, handles: u16) -> Result<DriveSpec, DriveSpecError> {
    let spare = device.over_provisioning().effective;
    let mut other = device.clone();
    other.ftl.placement_handles = u32::from(handles);
    let program_units = u64::from(handles) + SPARE_PROGRAM_UNITS;
    let buffer = Bytes(device.geometry().program_unit_bytes().0 * program_units);
    other.drive.write_buffer = device.drive.write_buffer.max(buffer);
    other.set_over_provisioning(spare)?;
    Ok(other)
}

/// `device` with its map on flash and a map cache of `bytes`.
pub(super) fn with_map_cache(
    device: &DriveSpec,
    bytes: Bytes,
) -> Result<DriveSpec, DriveSpecError> {
    let mut other = device.clone();
    other.ftl.map_cache = Some(bytes);
    if device.ftl.mapping != Mapping::Dftl {
        other.ftl.mapping = Mapping::Dftl;
        other.set_over_provisioning(device.over_provisioning().effective)?;
    }
    Ok(other)
}

/// The size of a cache that holds the whole map.
pub(super) fn whole_map(device: &DriveSpec) -> Bytes {
    Bytes(u64::from(device.logical_units()) * DriveSpec::MAP_ENTRY)
}

/// The data of a group of erase blocks of `device`, which a block-level mapping merges together.
pub(super) fn group_bytes(device: &DriveSpec) -> Bytes {
    let geometry = device.geometry();
    geometry.unit * u64::from(geometry.units_per_block() * GROUP_BLOCKS)
}

/// `device` with a block-level mapping with log blocks, and with power-loss protection, which
/// this mapping needs.
pub(super) fn hybrid(device: &DriveSpec) -> Result<DriveSpec, DriveSpecError> {
    let spare = device.over_provisioning().effective;
    let mut other = device.clone();
    other.ftl = FtlSpec {
        mapping: Mapping::Hybrid,
        frontiers: Frontiers::Separate,
        group_blocks: Some(GROUP_BLOCKS),
        group_log_blocks: Some(GROUP_LOG_BLOCKS),
        // Log blocks get half of the spare flash; merges need the other half.
        log_share: Some(spare / (1.0 + spare) / 2.0),
        victim: VictimPolicy::Greedy,
        placement_handles: 0,
        segment: None,
        map_cache: None,
        wear_least_worn_first: false,
        wear_move_behind_mean: None,
        wear_victims_above_mean: None,
        ..device.ftl.clone()
    };
    other.drive.power_loss_protection = true;
    other.flash.copy_back = false;
    other.flash.superblock_parity = false;
    other.set_over_provisioning(spare)?;
    Ok(other)
}
