//! The drive with one thing changed.
//!
//! A change of the drive must not change its spare flash by the way: open blocks of
//! placement handles, or a map on flash, take blocks that on a drive made small are a large
//! part of the spare. The number of blocks is therefore set anew so that the effective
//! over-provisioning stays. The flash that counts for lifetimes stays what it was.

use prism_base::Bytes;
use prism_ftl::{Frontiers, VictimPolicy};
use prism_replay::Pace;
use prism_ssd::device::{FtlSpec, Mapping};
use prism_ssd::{Device, DeviceError};

use super::change::Change;
use super::simulate::Run;

/// Rows of the write buffer beside one for each placement handle: one that is being filled
/// while another is written.
const SPARE_ROWS: u64 = 2;

/// Logical blocks of a data group of the hybrid drive that stands for those that map blocks,
/// and the most log blocks of a group: as many as two for each block, so that a group takes
/// its own size twice in random writes before it has to merge.
const GROUP_BLOCKS: u32 = 4;
const GROUP_LOG_BLOCKS: u32 = 8;

impl Change {
    /// `base` with this change of the drive or the pace; changes of the trace leave it.
    ///
    /// # Errors
    /// [`DeviceError`] if there is no such drive.
    pub fn applied(&self, base: &Run) -> Result<Run, DeviceError> {
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

/// `device` with placement handles, and room in the buffer for a row of each.
fn with_handles(device: &Device, handles: u16) -> Result<Device, DeviceError> {
    let spare = device.over_provisioning().effective;
    let mut other = device.clone();
    other.ftl.placement_handles = u32::from(handles);
    let rows = u64::from(handles) + SPARE_ROWS;
    let buffer = Bytes(device.geometry().row_bytes().0 * rows);
    other.drive.write_buffer = device.drive.write_buffer.max(buffer);
    other.set_over_provisioning(spare)?;
    Ok(other)
}

/// `device` with its map on flash, of which entries in so many bytes are cached.
pub(super) fn with_map_cache(device: &Device, bytes: Bytes) -> Result<Device, DeviceError> {
    let mut other = device.clone();
    other.ftl.map_cache = Some(bytes);
    if device.ftl.mapping != Mapping::Dftl {
        other.ftl.mapping = Mapping::Dftl;
        other.set_over_provisioning(device.over_provisioning().effective)?;
    }
    Ok(other)
}

/// Memory that a cache of the whole map takes.
pub(super) fn whole_map(device: &Device) -> Bytes {
    Bytes(u64::from(device.logical_units()) * Device::MAP_ENTRY)
}

/// `device` with a mapping of blocks behind log blocks, protected against power loss as that
/// needs.
pub(super) fn hybrid(device: &Device) -> Result<Device, DeviceError> {
    let spare = device.over_provisioning().effective;
    let mut other = device.clone();
    other.ftl = FtlSpec {
        mapping: Mapping::Hybrid,
        frontiers: Frontiers::Separate,
        group_blocks: Some(GROUP_BLOCKS),
        group_log_blocks: Some(GROUP_LOG_BLOCKS),
        // Half of the spare flash; merges need the other half.
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
