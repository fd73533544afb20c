//! `mapping = "zns"`: its configuration, and checks that required fields are present and fields
//! without a meaning absent.

use prism_base::Bytes;
use prism_ftl::ZonedConfig;

use super::{DriveSpec, DriveSpecError, Mapping, WriteCache, absent, bad, shown};
use crate::zones::ZoneShape;

impl DriveSpec {
    /// Whether it is a zoned drive.
    #[must_use]
    pub fn is_zoned(&self) -> bool {
        self.ftl.mapping == Mapping::Zns
    }

    /// The configuration of zone mapping.
    pub(super) fn zoned_config(&self) -> ZonedConfig {
        let size = self.ftl.zone_size.unwrap_or(Bytes(0)).0;
        let count = |bytes: u64, of: u64| u32::try_from(bytes / of.max(1)).unwrap_or(u32::MAX);
        ZonedConfig {
            zones: count(self.drive.capacity.0, size),
            zone_units: count(size, self.ftl.mapping_unit.0),
            kept: u32::from(self.faults.is_some()),
        }
    }

    /// Number, size and limits of the zones; `None` if the drive is not zoned.
    #[must_use]
    pub fn zone_shape(&self) -> Option<ZoneShape> {
        if !self.is_zoned() {
            return None;
        }
        let unit = self.ftl.mapping_unit.0;
        let config = self.zoned_config();
        Some(ZoneShape {
            count: config.zones,
            size: u64::from(config.zone_units) * unit,
            capacity: u64::from(self.geometry().data_units_per_block()) * unit,
            block: unit,
            max_open: self.ftl.max_open_zones.unwrap_or(0),
            max_active: self.ftl.max_active_zones.unwrap_or(0),
        })
    }

    /// Program units that the write buffer of a zoned drive has to hold: one for each active zone,
    /// and one in flight to flash. Then a full buffer always contains a full program unit.
    fn zone_program_units(&self) -> u64 {
        let active = match self.ftl.max_active_zones {
            None | Some(0) => self.zoned_config().zones,
            Some(active) => active,
        };
        u64::from(active) + 1
    }

    /// The smallest allowed write buffer of a zoned drive.
    pub(crate) fn zone_buffer_min(&self) -> Bytes {
        Bytes(self.zone_program_units() * self.geometry().program_unit_bytes().0)
    }

    /// Checks that required fields are present, and fields that the mapping would ignore absent.
    pub(super) fn check_zoned(&self) -> Result<(), DriveSpecError> {
        let (ftl, drive) = (&self.ftl, &self.drive);
        let Some(size) = ftl.zone_size.filter(|size| size.0 > 0) else {
            return bad("ftl.zone_size", "nothing", "mapping \"zns\" needs the size of a zone");
        };
        if !size.0.is_multiple_of(ftl.mapping_unit.0) {
            return bad("ftl.zone_size", size, "must be a whole number of mapping units");
        }
        if !drive.capacity.0.is_multiple_of(size.0) {
            let why = "with mapping \"zns\" it must be a whole number of zones (zone_size)";
            return bad("drive.capacity", drive.capacity, why);
        }
        let limits = [ftl.max_open_zones, ftl.max_active_zones];
        let [Some(open), Some(active)] = limits else {
            let why = "mapping \"zns\" needs max_open_zones and max_active_zones; 0 is no limit";
            return bad("ftl.max_open_zones", "nothing", why);
        };
        if active > 0 && (open == 0 || open > active) {
            let why = "open zones are active ones: at most max_active_zones";
            return bad("ftl.max_open_zones", open, why);
        }
        if !drive.power_loss_protection {
            let why = "a program unit of a zone has a fixed place and cannot be padded for a \
                       flush, so the buffer has to be durable: mapping \"zns\" needs power-loss \
                       protection";
            return bad("drive.power_loss_protection", false, why);
        }
        if drive.write_cache != WriteCache::WriteBack {
            let why = "a write smaller than a program unit would not complete before the next one: \
                       mapping \"zns\" needs write-back";
            return bad("drive.write_cache", "write-through", why);
        }
        if drive.in_service > 0 {
            let why = "commands of a zone are taken in the order of submission: 0 for no limit";
            return bad("drive.in_service", drive.in_service, why);
        }
        if drive.merge_wait.0 > 0 {
            let why = "zones are written in whole mapping units: there is nothing to merge";
            return bad("drive.merge_wait", drive.merge_wait, why);
        }
        let meaningless = [
            ("ftl.segment", shown(ftl.segment)),
            (
                "ftl.placement_handles",
                shown(Some(ftl.placement_handles).filter(|&count| count > 0)),
            ),
            ("ftl.map_cache", shown(ftl.map_cache)),
            ("ftl.wear_move_behind_mean", shown(ftl.wear_move_behind_mean)),
            ("ftl.wear_victims_above_mean", shown(ftl.wear_victims_above_mean)),
        ];
        absent(meaningless, "does not combine with mapping \"zns\"")?;
        // The number of program units is only meaningful once geometry and zones are valid.
        self.ftl_config().check(&self.geometry())?;
        let least = self.zone_buffer_min();
        if drive.write_buffer < least {
            let why = "must hold a program unit (what one program writes) for each active zone, \
                       and one more";
            return bad("drive.write_buffer", drive.write_buffer, why);
        }
        Ok(())
    }

    /// Checks that no field of zone mapping is present.
    pub(super) fn check_no_zones(&self) -> Result<(), DriveSpecError> {
        let ftl = &self.ftl;
        let fields = [
            ("ftl.zone_size", shown(ftl.zone_size)),
            ("ftl.max_open_zones", shown(ftl.max_open_zones)),
            ("ftl.max_active_zones", shown(ftl.max_active_zones)),
        ];
        absent(fields, "only mapping \"zns\" has zones")
    }
}
