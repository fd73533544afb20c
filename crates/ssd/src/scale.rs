//! Scaling of a drive to another capacity.
//!
//! The effective over-provisioning stays, because it decides write amplification. Cleaning with few
//! blocks is not realistic, so a small drive keeps at least [`BLOCKS_PER_DIE_MIN`] blocks per die:
//! it gets fewer dies first, then smaller blocks. The size of the write buffer per die stays.

mod zoned;

use prism_base::{Bytes, counted};
use prism_ftl::FtlConfig;

use crate::spec::{DriveSpec, DriveSpecError};

/// The fewest blocks per die. With less, the blocks that cleaning holds back exceed the spare
/// space, and victims are too few to choose from.
pub const BLOCKS_PER_DIE_MIN: u64 = 64;
/// The fewest program units per block: with less, padding and tombstones use up what cleaning a
/// block gains.
pub const PROGRAM_UNITS_PER_BLOCK_MIN: u64 = 16;
/// The fewest program units of the write buffer: one is filled while two are programmed.
const BUFFER_PROGRAM_UNITS_MIN: u64 = 3;

/// A scaled drive and the changes that were made, one sentence each.
#[derive(Clone, Debug)]
pub struct Scaled {
    /// The scaled drive.
    pub device: DriveSpec,
    /// The capacity before scaling.
    pub full_capacity: Bytes,
    /// The changes, for the report.
    pub changes: Vec<String>,
}

/// A watermark above this is scaled with the number of blocks, a lower one stays.
const WATERMARK_MAX: u32 = 8;
/// The most iterations of [`fit`], in which watermarks depend on the number of blocks and the
/// number of blocks on the watermarks; the error shrinks in each.
const TURNS_MAX: u32 = 8;

/// Scales `device` to `capacity`, rounded up to whole mapping units.
///
/// # Errors
/// [`DriveSpecError`] if no drive of this kind can have that capacity.
pub fn fit(device: &DriveSpec, capacity: Bytes) -> Result<Scaled, DriveSpecError> {
    if device.is_zoned() {
        return zoned::fit(device, capacity);
    }
    let full = device.geometry().blocks_per_die_group();
    let mut marked = smallest(device);
    let mut turns = 0;
    loop {
        let scaled = fit_with(device, &marked, capacity)?;
        let before = marked.ftl.clone();
        let blocks = scaled.device.geometry().blocks_per_die_group();
        scale_watermarks(&mut marked, device, blocks, full);
        turns += 1;
        if marked.ftl == before || turns == TURNS_MAX {
            return Ok(scaled);
        }
    }
}

/// `device` with the watermarks of its smallest scaled version.
fn smallest(device: &DriveSpec) -> DriveSpec {
    let mut small = device.clone();
    let full = device.geometry().blocks_per_die_group();
    scale_watermarks(&mut small, device, BLOCKS_PER_DIE_MIN as u32, full);
    small
}

/// Sets the watermarks of `marked` to those of `device`, large ones scaled from `full` to `blocks`
/// blocks per die group.
fn scale_watermarks(marked: &mut DriveSpec, device: &DriveSpec, blocks: u32, full: u32) {
    let share = |value: u32| {
        let part = u64::from(value) * u64::from(blocks) / u64::from(full);
        value.min((part as u32).max(value.min(WATERMARK_MAX)))
    };
    let (to, from) = (&mut marked.ftl, &device.ftl);
    to.free_blocks_low = share(from.free_blocks_low);
    // The distance of the high watermark from the low one is scaled by itself: it must not become 0
    // unless it was.
    let above = from.free_blocks_high - from.free_blocks_low;
    to.free_blocks_high = to.free_blocks_low + share(above);
    to.free_blocks_critical = share(from.free_blocks_critical);
    to.free_blocks_idle = share(from.free_blocks_idle);
}

/// The smallest drive of at least `capacity` with all dies of `device`: its blocks have fewer
/// program units. It is for measurements that depend on the number of dies, such as latency under
/// load; it erases more often than the full drive.
///
/// # Errors
/// [`DriveSpecError`] if no drive of this kind can have that capacity.
pub fn fit_wide(device: &DriveSpec, capacity: Bytes) -> Result<Scaled, DriveSpecError> {
    if device.is_zoned() {
        return zoned::fit(device, capacity);
    }
    let full = device.geometry();
    let program_units = u64::from(full.program_units_per_die());
    let wide = |program_units: u64| {
        let mut wide = device.clone();
        wide.flash.pages_per_block = program_units as u32 * full.pages_per_program;
        wide.drive.capacity = Bytes(
            device.drive.capacity.0 / u64::from(full.program_units_per_die()) * program_units,
        );
        wide.scale_slc_below(device);
        wide
    };
    let least = capacity_of_all_dies(&wide(PROGRAM_UNITS_PER_BLOCK_MIN.min(program_units)));
    let enough = PROGRAM_UNITS_PER_BLOCK_MIN * (capacity.0 / least.0.max(1));
    let wide = wide(enough.clamp(PROGRAM_UNITS_PER_BLOCK_MIN.min(program_units), program_units));
    fit(&wide, capacity.max(capacity_of_all_dies(&wide)))
}

/// The capacity of drives for measurements of speed: a larger one costs memory and time and changes
/// little.
const SPEED_CAPACITY: Bytes = Bytes(16 << 30);

/// A drive on which `device`'s speed can be measured: it has all dies, channels and buffers, at
/// least `capacity`, and fewer and smaller blocks if `device` is large.
///
/// # Errors
/// As [`fit_wide`].
pub fn fit_for_speed(device: &DriveSpec, capacity: Bytes) -> Result<Scaled, DriveSpecError> {
    fit_all_dies(device, capacity.max(SPEED_CAPACITY.min(device.capacity())))
}

/// [`fit_wide`] with the changes against `device`.
///
/// # Errors
/// As [`fit_wide`].
pub fn fit_all_dies(device: &DriveSpec, capacity: Bytes) -> Result<Scaled, DriveSpecError> {
    if device.is_zoned() {
        // It keeps its dies in any case.
        return zoned::fit(device, capacity);
    }
    let Scaled { device: wide, .. } = fit_wide(device, capacity)?;
    let mut changes = Vec::new();
    let unit = device.ftl.mapping_unit;
    if wide.capacity().0 > capacity.div_ceil(unit) * unit.0 {
        let now = wide.capacity();
        changes.push(format!("capacity {now} instead of {capacity}: the smallest with all dies"));
    }
    describe(device, &wide, &mut changes);
    Ok(Scaled { device: wide, full_capacity: device.capacity(), changes })
}

/// Scales `marked`, which is `device` with other watermarks, to `capacity`.
fn fit_with(
    device: &DriveSpec,
    marked: &DriveSpec,
    capacity: Bytes,
) -> Result<Scaled, DriveSpecError> {
    let mut fitted = marked.clone();
    let mut changes = Vec::new();
    let full = device.geometry();
    let unit = device.ftl.mapping_unit.0;
    let units_per_program_unit = u64::from(full.units_per_program_unit());
    let spare = 1.0 + device.over_provisioning().effective;
    let per_die = BLOCKS_PER_DIE_MIN.saturating_sub(kept(&smallest(device))).max(1);
    let program_units_min =
        PROGRAM_UNITS_PER_BLOCK_MIN.min(u64::from(full.program_units_per_die()));
    let min_usable = per_die * program_units_min * units_per_program_unit;
    let min_logical = (min_usable as f64 / spare * all_of_main(device)) as u64;
    let wanted = capacity.div_ceil(Bytes(unit));
    let logical = wanted.max(min_logical);
    if logical > wanted {
        changes.push(format!(
            "capacity {} instead of {}: the smallest drive with {BLOCKS_PER_DIE_MIN} blocks of \
             {program_units_min} program units",
            Bytes(logical * unit),
            Bytes(wanted * unit)
        ));
    }
    fitted.drive.capacity = Bytes(logical * unit);
    fitted.scale_slc_below(device);
    let kept = kept(&fitted);
    let main = logical.saturating_sub(fitted.units_apart());
    let usable = (main as f64 * spare).ceil() as u64 + u64::from(fitted.page_config().map_units);
    let program_units_full = u64::from(full.program_units_per_die());
    let data_blocks = usable.div_ceil(program_units_full * units_per_program_unit);
    let dies_wanted = (data_blocks / per_die).clamp(1, u64::from(full.dies()));
    let channels = dies_wanted.min(u64::from(full.channels));
    let dies_per_channel = dies_wanted / channels;
    let dies = channels * dies_per_channel;
    // Superblocks keep their number of dies if the number of dies is a multiple of it.
    let members = (1..=u64::from(full.dies_per_superblock)).rev().find(|k| dies % k == 0);
    let members = members.unwrap_or(1);
    let parity = u64::from(full.parity && members > 1);
    let usable = usable * members / (members - parity);
    let mut program_units = program_units_full;
    if data_blocks < per_die {
        program_units = (usable / (per_die * units_per_program_unit))
            .clamp(PROGRAM_UNITS_PER_BLOCK_MIN.min(program_units_full), program_units_full);
    }
    let blocks = usable.div_ceil(program_units * units_per_program_unit * dies) + kept;
    fitted.flash.channels = channels as u32;
    fitted.flash.dies_per_channel = dies_per_channel as u32;
    fitted.flash.pages_per_block = program_units as u32 * full.pages_per_program;
    fitted.flash.superblock_dies = members as u32;
    fitted.flash.superblock_parity = parity > 0;
    let blocks = blocks + fitted.scale_slc_blocks(device, blocks);
    let blocks_per_plane = if device.flash.multi_plane {
        blocks
    } else {
        blocks.div_ceil(u64::from(device.flash.planes))
    };
    fitted.drive.write_buffer = buffer_of(device, dies);
    fitted.flash.blocks_per_plane = u32::try_from(blocks_per_plane).unwrap_or(u32::MAX);
    fitted.drive.write_buffer = fitted.drive.write_buffer.max(fitted.write_buffer_min());
    describe(device, &fitted, &mut changes);
    fitted.check()?;
    Ok(Scaled { device: fitted, full_capacity: device.capacity(), changes })
}

/// The write buffer of `device` on `dies` dies. A buffer of the full size would absorb all
/// writes to a small drive.
fn buffer_of(device: &DriveSpec, dies: u64) -> Bytes {
    let full = device.geometry();
    let program_unit = u64::from(full.units_per_program_unit()) * device.ftl.mapping_unit.0;
    let all = device.drive.write_buffer.0;
    let share = all * dies / u64::from(full.dies());
    let least = BUFFER_PROGRAM_UNITS_MIN.min(all / program_unit);
    Bytes((share / program_unit).max(least) * program_unit)
}

/// Blocks per die group that hold no data: erased blocks for cleaning, and open ones.
fn kept(device: &DriveSpec) -> u64 {
    kept_by(&device.ftl_config())
}

fn kept_by(config: &FtlConfig) -> u64 {
    match config {
        FtlConfig::Page(config) => {
            u64::from(config.free_blocks_low - 1 + config.main_frontier_count())
        }
        // One for the whole drive; with several die groups this is a little more than needed.
        FtlConfig::Hybrid(_) => 1,
        FtlConfig::Zoned(_) => 0,
        FtlConfig::Ranges(all) => all.ranges.iter().map(|range| kept_by(&range.ftl)).sum(),
    }
}

/// The smallest capacity at which `device` keeps all its dies.
fn capacity_of_all_dies(device: &DriveSpec) -> Bytes {
    let geometry = device.geometry();
    let kept = kept(&smallest(device));
    let blocks = BLOCKS_PER_DIE_MIN.saturating_sub(kept) * u64::from(geometry.dies());
    let usable =
        blocks * u64::from(geometry.program_units_per_die() * geometry.units_per_program_unit());
    let logical = usable as f64 / (1.0 + device.over_provisioning().effective);
    let logical = logical * all_of_main(device);
    Bytes((logical * geometry.unit.0 as f64) as u64 + geometry.unit.0)
}

/// Ratio of all logical units to those outside an SLC region.
fn all_of_main(device: &DriveSpec) -> f64 {
    let logical = f64::from(device.logical_units());
    logical / (logical - device.units_apart() as f64).max(1.0)
}

fn describe(full: &DriveSpec, fitted: &DriveSpec, changes: &mut Vec<String>) {
    let (a, b) = (full.geometry(), fitted.geometry());
    if a.dies() != b.dies() {
        changes.push(format!(
            "{} on {} instead of {} on {} (--capacity {}GiB has all)",
            counted(b.dies().into(), "die"),
            counted(b.channels.into(), "channel"),
            a.dies(),
            a.channels,
            capacity_of_all_dies(full).div_ceil(Bytes(1 << 30)),
        ));
    }
    if full.drive.write_buffer != fitted.drive.write_buffer {
        changes.push(format!(
            "a write buffer of {} instead of {}, the same size per die",
            fitted.drive.write_buffer, full.drive.write_buffer
        ));
    }
    if a.dies_per_superblock != b.dies_per_superblock {
        let (now, before) = (b.dies_per_superblock, a.dies_per_superblock);
        changes.push(format!("superblocks of {now} instead of {before} dies"));
    }
    if a.pages_per_block != b.pages_per_block {
        changes.push(format!(
            "{} pages per block instead of {}",
            b.pages_per_block, a.pages_per_block
        ));
    }
    let (now, before) = (b.blocks_per_die_group(), a.blocks_per_die_group());
    if now != before {
        changes.push(format!("{now} blocks per die instead of {before}"));
    }
    let (now, before) = (b.slc_blocks_per_die_group(), a.slc_blocks_per_die_group());
    if now != before {
        changes.push(format!("{now} of them in SLC mode instead of {before}"));
    }
    let (now, before) = (fitted.ftl.free_blocks_low, full.ftl.free_blocks_low);
    if now != before {
        changes.push(format!("cleaning below {now} erased blocks per die instead of {before}"));
    }
    let below = |device: &DriveSpec| device.slc.as_ref().and_then(|slc| slc.below);
    if let (Some(now), Some(before)) = (below(fitted), below(full))
        && now != before
    {
        changes.push(format!("an SLC region of the first {now} instead of {before}"));
    }
}

#[cfg(test)]
mod tests {
    use prism_nand::Geometry;

    use super::*;

    #[test]
    fn all_dies_are_kept_from_the_named_capacity_on() {
        for name in DriveSpec::preset_names() {
            let preset = DriveSpec::preset(name).unwrap();
            let capacity = capacity_of_all_dies(&preset);
            let dies = |capacity| fit(&preset, capacity).unwrap().device.geometry().dies();
            assert_eq!(dies(capacity), preset.geometry().dies(), "{name}");
            let less = dies(Bytes(capacity.0 * 9 / 10));
            assert!(less < preset.geometry().dies() || less == 1, "{name}");
        }
    }

    #[test]
    fn a_wide_drive_has_all_dies_and_is_small() {
        for name in DriveSpec::preset_names() {
            let preset = DriveSpec::preset(name).unwrap();
            for capacity in [Bytes(1 << 20), Bytes(10 << 30)] {
                let wide = fit_wide(&preset, capacity).unwrap().device;
                assert_eq!(wide.geometry().dies(), preset.geometry().dies(), "{name}");
                assert!(wide.capacity() >= capacity && wide.capacity().0 < 40 << 30, "{name}");
                let (ours, full) = (wide.over_provisioning(), preset.over_provisioning());
                let difference = (ours.effective - full.effective).abs();
                assert!(difference < 0.05 + 0.1 * full.effective, "{name}: {ours:?} {full:?}");
            }
        }
    }

    #[test]
    fn every_size_keeps_blocks_and_spare() {
        for name in DriveSpec::preset_names() {
            let preset = DriveSpec::preset(name).unwrap();
            let spare = preset.over_provisioning().effective;
            for shift in 12..45 {
                let capacity = Bytes((1 << shift) + 4096);
                let Ok(scaled) = fit(&preset, capacity) else {
                    let raw = capacity.0 as f64 * (1.0 + spare);
                    let most = (Geometry::UNITS_MAX * preset.ftl.mapping_unit.0) as f64;
                    // Where a block is one unit, the most blocks per plane limit the capacity.
                    let raw_most =
                        preset.geometry().raw().0 / u64::from(preset.flash.blocks_per_plane);
                    let most = most.min((raw_most << 24) as f64);
                    assert!(raw > most / 2.0, "{name} at {capacity}");
                    continue;
                };
                let device = scaled.device;
                assert!(device.capacity() >= capacity, "{name} at {capacity}");
                let blocks = u64::from(device.geometry().blocks_per_die_group());
                assert!(blocks >= BLOCKS_PER_DIE_MIN, "{name} at {capacity}: {blocks} blocks");
                let ours = device.over_provisioning().effective;
                assert!((ours - spare).abs() < 0.05 + 0.1 * spare, "{name} {capacity}: {ours}");
                assert!(!scaled.changes.is_empty());
            }
        }
    }
}
