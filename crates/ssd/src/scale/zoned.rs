//! Scaling of a zoned drive to another capacity: fewer zones first, then smaller ones.
//!
//! The number of dies stays, because zoned drives differ most in the number of dies of a zone. So
//! does the share of the blocks that are not needed for zones.

use prism_base::{Bytes, counted};

use super::{PROGRAM_UNITS_PER_BLOCK_MIN, Scaled};
use crate::spec::{DriveSpec, DriveSpecError};

/// The fewest zones of a drive: with less, a host FTL has too few victims to choose from.
const ZONES_MIN: u64 = 64;
/// The fewest zones per die group.
const ZONES_PER_DIE_GROUP_MIN: u64 = 2;

/// Scales `device` to `capacity` bytes of addresses, rounded up to whole zones.
pub(super) fn fit(device: &DriveSpec, capacity: Bytes) -> Result<Scaled, DriveSpecError> {
    let full = device.geometry();
    let shape = device.zone_shape().expect("a zoned drive");
    let zones_min = ZONES_MIN.max(ZONES_PER_DIE_GROUP_MIN * u64::from(full.die_groups()));
    let program_units_full = u64::from(full.program_units_per_die());
    let size = |program_units: u64| {
        if program_units == program_units_full {
            return shape.size;
        }
        let holds = shape.capacity / program_units_full * program_units;
        // A zone size that is a power of two stays one; otherwise the ratio of size to capacity
        // stays.
        if shape.size.is_power_of_two() {
            holds.next_power_of_two()
        } else {
            (shape.size.div_ceil(shape.block) * program_units).div_ceil(program_units_full)
                * shape.block
        }
    };
    let least = PROGRAM_UNITS_PER_BLOCK_MIN.min(program_units_full);
    let enough = |program_units: &u64| capacity.0.div_ceil(size(*program_units)) >= zones_min;
    let program_units = (least..=program_units_full).rev().find(enough).unwrap_or(least);
    let zones = capacity.0.div_ceil(size(program_units)).max(zones_min);
    let spare = u64::from(full.blocks()) - u64::from(shape.count);
    let spare = (spare * zones).div_ceil(u64::from(shape.count)).max(1);
    let per_die_group = (zones + spare).div_ceil(u64::from(full.die_groups()));
    let planes = if device.flash.multi_plane { 1 } else { u64::from(device.flash.planes) };
    let mut fitted = device.clone();
    fitted.flash.pages_per_block = program_units as u32 * full.pages_per_program;
    fitted.flash.blocks_per_plane =
        u32::try_from(per_die_group.div_ceil(planes)).unwrap_or(u32::MAX);
    fitted.ftl.zone_size = Some(Bytes(size(program_units)));
    fitted.drive.capacity = Bytes(zones * size(program_units));
    fitted.check()?;
    let mut changes = Vec::new();
    if zones * size(program_units) > capacity.0 {
        let now = fitted.drive.capacity;
        changes.push(format!(
            "capacity {now} instead of {capacity}: whole zones, {zones_min} or more"
        ));
    }
    if zones != u64::from(shape.count) {
        changes.push(format!("{} instead of {}", counted(zones, "zone"), shape.count));
    }
    if program_units != program_units_full {
        let holds = fitted.zone_shape().expect("a zoned drive").capacity;
        changes.push(format!(
            "zones of {} that hold {} instead of {} that hold {}",
            Bytes(size(program_units)),
            Bytes(holds),
            Bytes(shape.size),
            Bytes(shape.capacity)
        ));
    }
    Ok(Scaled { device: fitted, full_capacity: device.capacity(), changes })
}
