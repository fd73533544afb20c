//! The properties of a drive that the rules depend on.

use prism_base::Bytes;
use prism_ssd::DriveSpec;

/// The properties of the drive for which a trace is judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Subject {
    /// Mapping unit.
    pub unit: Bytes,
    /// Flash page.
    pub flash_page: Bytes,
    /// Channels of the drive before it was scaled to the trace.
    pub channels: u32,
    /// Size of the address range that a translation page maps.
    pub map_reach: Bytes,
    /// Size of the map cache of the locality score, in translation pages.
    pub cache_pages: u64,
    /// Translation pages of the whole map.
    pub map_pages: u64,
    /// Effective over-provisioning.
    pub spare: f64,
}

/// Share of the map that the cache of the locality score holds, if the drive has no map
/// cache. Source: the EuroSys'17 paper's runs of the whole.
pub const COVERAGE: f64 = 0.1;

impl Subject {
    /// The properties of `device`, which was scaled to the trace from a drive with `channels`
    /// channels.
    #[must_use]
    pub fn of(device: &DriveSpec, channels: u32) -> Self {
        let unit = device.ftl.mapping_unit;
        let entries = u64::from(device.entries_per_translation_page());
        let map_pages = u64::from(device.logical_units()).div_ceil(entries).max(1);
        let cached = match device.ftl.map_cache {
            Some(cache) => cache.0 / (DriveSpec::MAP_ENTRY * entries),
            None => (map_pages as f64 * COVERAGE).round() as u64,
        };
        Self {
            unit,
            flash_page: device.flash.page,
            channels,
            map_reach: unit * entries,
            cache_pages: cached.max(1),
            map_pages,
            spare: device.over_provisioning().effective,
        }
    }
}
