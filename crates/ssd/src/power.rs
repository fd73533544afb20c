//! Loss of power and recovery.

use prism_engine::Done;
use prism_ftl::Ftl;
use prism_nand::{Nand, NandError, UnitTag};

use crate::buffer::{SavedUnit, State};
use crate::drive::Drive;
use crate::spec::{DriveSpec, DriveSpecError};
use crate::zones::Zones;

/// What a loss of power leaves of a drive: the flash and, with power-loss protection, the state
/// that was saved while the capacitors lasted.
#[derive(Debug)]
pub struct CrashImage {
    device: DriveSpec,
    nand: Nand,
    saved: Option<Saved>,
    /// The drive was read-only.
    read_only: bool,
}

/// State saved by a drive with power-loss protection: the buffered units, and either the map or, if
/// recovery scans the flash, the list of unmapped units, because the scan alone would bring trimmed
/// data back.
#[derive(Debug)]
struct Saved {
    units: Vec<SavedUnit>,
    unmapped: Vec<u32>,
    map: Option<Ftl>,
    zones: Option<Zones>,
    next_version: u64,
}

impl Drive {
    /// Cuts the power now. Flash operations in progress are torn, together with earlier pages of
    /// their wordlines, and the buffer is lost. With power-loss protection, programs in progress
    /// end, the buffer is saved, and erases are torn. `seed` is for the random effects
    /// ([`Nand::lose_power`]).
    #[must_use]
    pub fn power_cut(mut self, seed: u64) -> CrashImage {
        if self.zones.is_some() {
            // The table of zones is saved, so programs that end have to be entered first.
            let mut done = Vec::new();
            self.engine.end_programs(&mut done);
            for event in done {
                if let Done::Wrote { tag } = event {
                    self.buffer.remove(tag);
                }
            }
        }
        let protected = self.device.drive.power_loss_protection;
        let logical = self.device.logical_units();
        let zones = self.zones.map(|work| work.zones);
        let read_only = self.engine.is_read_only();
        let (mut nand, ftl) = self.engine.into_parts();
        if protected {
            nand.lose_power_slowly(seed);
        } else {
            nand.lose_power(seed);
        }
        let saved = protected.then(|| Saved {
            units: self.buffer.newest(),
            unmapped: match zones {
                None => (0..logical).filter(|&lpn| ftl.lookup(lpn).is_none()).collect(),
                Some(_) => Vec::new(),
            },
            zones,
            next_version: self.next_version,
            map: ftl.saved(),
        });
        nand.clock_restarts(self.now);
        CrashImage { device: self.device, nand, saved, read_only }
    }

    /// Recovers a drive after a loss of power. Its clock restarts at zero.
    ///
    /// # Errors
    /// [`DriveSpecError`] if the description is invalid.
    ///
    /// # Panics
    /// If the flash keeps no content, which recovery has to scan.
    pub fn recover(image: CrashImage, seed: u64) -> Result<Self, DriveSpecError> {
        let CrashImage { device, nand, saved, read_only } = image;
        let mut units = Vec::new();
        let (mut unmapped, mut map, mut zones, mut next_version) = (Vec::new(), None, None, 0);
        if let Some(saved) = saved {
            Saved { units, unmapped, map, zones, next_version } = saved;
        }
        if zones.is_some() {
            // Program units of a zone take its units in order.
            units.sort_unstable_by_key(|unit| unit.lpn);
        }
        let mut ftl = if let Some(map) = map {
            map.after_power_loss(&nand)
        } else {
            let (mut map, found) = Ftl::recover(&mut &nand, device.ftl_config(), seed, &[])?;
            for lpn in unmapped {
                map.trim_now(lpn, lpn + 1, found.newest_version);
            }
            next_version = next_version.max(found.newest_version + 1);
            map
        };
        if read_only {
            ftl.set_read_only();
        }
        let mut drive = Self::assemble(device, nand, ftl, next_version);
        for SavedUnit { lpn, version, lost, bytes } in units {
            let stream = drive.engine.ftl().stream_of(lpn, 0);
            let place = drive.buffer.add(lpn, version, stream, State::Dirty);
            if lost {
                drive.buffer.mark_lost(place);
            }
            *drive.buffer.bytes_mut(place) = bytes;
        }
        if let Some(zones) = zones {
            drive.restore_zones(&zones);
        }
        Ok(drive)
    }

    /// The version of `lpn` that a read would return now; `None` if the unit is unmapped. Later
    /// writes have higher versions.
    ///
    /// # Errors
    /// [`NandError`] if the map points to a page that cannot be read.
    ///
    /// # Panics
    /// If the flash keeps no content, or holds another unit there.
    pub fn version_of(&self, lpn: u32) -> Result<Option<u64>, NandError> {
        if let Some(place) = self.buffer.find(lpn) {
            return Ok(Some(self.buffer.entry(place).version));
        }
        let Some(at) = self.engine.ftl().lookup(lpn) else { return Ok(None) };
        let unit = self.engine.nand().read(at)?.expect("a device that keeps content");
        assert_eq!(unit.tag, UnitTag::Data(lpn), "the map leads to another unit");
        Ok(Some(unit.version))
    }
}
