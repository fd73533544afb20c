//! Snapshots of a drive at rest. The format: docs/spec/drive-state.md.

mod description;

use std::hash::Hasher;
use std::io;

use prism_base::codec::{invalid, load, save};
use prism_base::{Nanos, Snapshot as _};
use prism_engine::Engine;
use prism_ftl::Ftl;
use twox_hash::XxHash64;

use crate::drive::Drive;
use crate::spec::{DriveSpec, DriveSpecError};
use description::{describe, first_difference};

/// The first bytes of a snapshot.
const MAGIC: &[u8; 8] = b"PRISMDRV";
/// The version that is written, and the only one that is read.
const VERSION: u32 = 3;
/// Bytes of magic and version.
const HEAD: usize = MAGIC.len() + 4;

/// Why a drive cannot be saved, or bytes are no snapshot of this drive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// Something is in flight or in the buffer.
    #[error("the drive is not at rest: {0}")]
    NotAtRest(&'static str),
    /// It writes no more.
    #[error("the drive has become read-only, so that nothing can go on from its state")]
    ReadOnly,
    /// The bytes are something else.
    #[error("this is no snapshot of a drive")]
    Foreign,
    /// Another version of the format.
    #[error(
        "the snapshot was saved in version {found} of the format, this program reads version \
         {VERSION}; save it again"
    )]
    Version {
        /// Its version.
        found: u32,
    },
    /// The checksum does not match: bytes are missing or changed.
    #[error("the snapshot is damaged (its checksum is wrong); save it again")]
    Checksum,
    /// The checksum matches and the content makes no sense.
    #[error("the snapshot contradicts itself ({0}); save it again")]
    Damaged(String),
    /// The snapshot is of another drive.
    #[error(
        "the snapshot was saved of another drive: its {field} is {saved}, here it is {here}; \
         give the same device and capacity, or prepare a state anew"
    )]
    OtherDevice {
        /// The first field that differs.
        field: String,
        /// Its value in the snapshot.
        saved: String,
        /// Its value here.
        here: String,
    },
    /// The device itself makes no sense.
    #[error("{0}")]
    Spec(String),
}

impl From<DriveSpecError> for SnapshotError {
    fn from(error: DriveSpecError) -> Self {
        Self::Spec(error.to_string())
    }
}

impl From<io::Error> for SnapshotError {
    fn from(error: io::Error) -> Self {
        Self::Damaged(error.to_string())
    }
}

impl Drive {
    /// The state of the drive: its description, map, flash, buffer and random streams. Its
    /// clock and its counts are no part of it.
    ///
    /// # Errors
    /// [`SnapshotError::NotAtRest`] if a request, an operation or a trim is in flight: send a
    /// flush and let the drive finish. [`SnapshotError::ReadOnly`] of a drive that has failed.
    pub fn save(&self) -> Result<Vec<u8>, SnapshotError> {
        if self.read_only().is_some() {
            return Err(SnapshotError::ReadOnly);
        }
        if let Some(what) = self.unrest() {
            return Err(SnapshotError::NotAtRest(what));
        }
        let nand = self.engine.nand();
        let mut out = MAGIC.to_vec();
        let age = nand.oldest_age(self.now).0;
        save(&(VERSION, describe(&self.device), self.next_version, age), &mut out);
        nand.save_fields(&mut out);
        self.engine.ftl().save_fields(&mut out);
        self.engine.save_fields(&mut out);
        self.queues.save_fields(&mut out);
        self.buffer.save(&mut out);
        self.map.save_fields(&mut out);
        self.zones.save_fields(&mut out);
        save(&checksum(&out), &mut out);
        Ok(out)
    }

    /// Why the drive is not at rest; `None` if it is.
    fn unrest(&self) -> Option<&'static str> {
        let map = self.map.as_ref().is_none_or(|map| map.is_at_rest());
        let zones = self.zones.as_ref().is_none_or(|zones| zones.is_at_rest());
        if self.next_event().is_some() || self.in_flight() > 0 {
            Some("operations are in flight; let it finish")
        } else if !self.buffer.is_at_rest() || self.trims_waiting() {
            Some("the write buffer holds data; send a flush first")
        } else if !(self.engine.is_at_rest() && self.engine.ftl().is_at_rest() && map && zones) {
            Some("an operation of the FTL is in flight; send a flush first")
        } else if self.engine.nand().keeps_content() {
            Some("its flash keeps content, which is not part of a state")
        } else {
            None
        }
    }

    /// The drive whose snapshot `bytes` are; it continues as that one would have, its clock and
    /// its counts beginning anew. `device` must be the same but for its name,
    /// title, source and data sheet.
    ///
    /// # Errors
    /// [`SnapshotError`] if the bytes are no snapshot, are damaged, or are another drive's.
    pub fn from_saved(device: DriveSpec, bytes: &[u8]) -> Result<Self, SnapshotError> {
        device.check()?;
        let mut version = bytes.strip_prefix(MAGIC).ok_or(SnapshotError::Foreign)?;
        let found = load(&mut version).map_err(|_| SnapshotError::Foreign)?;
        if found != VERSION {
            return Err(SnapshotError::Version { found });
        }
        let (content, sum) = bytes.split_last_chunk().ok_or(SnapshotError::Foreign)?;
        if u64::from_le_bytes(*sum) != checksum(content) {
            return Err(SnapshotError::Checksum);
        }
        let mut from = content.get(HEAD..).ok_or(SnapshotError::Foreign)?;
        let saved: String = load(&mut from)?;
        if let Some((field, saved, here)) = first_difference(&saved, &describe(&device)) {
            return Err(SnapshotError::OtherDevice { field, saved, here });
        }
        let drive = Self::loaded(device, &mut from)?;
        if !from.is_empty() {
            return Err(invalid("more bytes follow").into());
        }
        Ok(drive)
    }

    /// The drive by what follows the description.
    fn loaded(device: DriveSpec, from: &mut &[u8]) -> io::Result<Self> {
        let (next_version, age) = load(from)?;
        let mut nand = device.erased();
        // The snapshot has the seed of its failures.
        device.age(&mut nand, 0);
        nand.load(Nanos(age), from)?;
        nand.pair_program_units(device.program_units_per_wordline());
        let ftl = Ftl::load(device.geometry(), device.ftl_config(), from)?;
        let (units, map_units) = (device.logical_units(), device.page_config().map_units);
        if !ftl.agrees_with(&nand, units + map_units) {
            return Err(invalid("flash and map differ in what is programmed"));
        }
        let engine = Engine::load(nand, ftl, device.engine_config(), from)?;
        let mut drive = Self::around(device, engine, next_version);
        drive.queues.load_fields(from)?;
        drive.buffer.load(from, units + map_units, next_version)?;
        drive.map.load_fields(from)?;
        drive.zones.load_fields(from)?;
        drive.queues.check().map_err(invalid)?;
        if let Some(map) = &mut drive.map {
            map.check(units, map_units).map_err(invalid)?;
        }
        if let Some(zones) = &mut drive.zones {
            zones.check().map_err(invalid)?;
        }
        drive.check_zones().map_err(invalid)?;
        Ok(drive)
    }

    /// That zones hold what their write pointers say.
    fn check_zones(&self) -> Result<(), &'static str> {
        let (Some(zones), Some(map)) = (self.zones(), self.engine.ftl().zoned()) else {
            return Ok(());
        };
        let (block, size) = (zones.shape().block, map.config().zone_units);
        for info in zones.report() {
            let zone = info.zone;
            if !map.is_sound(zone) && !zones.has_failed(zone) {
                return Err("a zone has failed on flash alone");
            }
            let first = zone * size;
            let end = first + ((zones.pointer(zone)) / block) as u32;
            let waiting: Vec<u32> = self.buffer.waiting_units(zone).collect();
            let own = |&unit: &u32| (first..end).contains(&unit);
            if !waiting.is_sorted() || !waiting.iter().all(own) {
                return Err("the buffer holds what a zone does not");
            }
            let there = |unit: u32| self.buffer.find(unit).is_some() || map.lookup(unit).is_some();
            if !zones.has_failed(zone) && !(first + map.written(zone)..end).all(there) {
                return Err("a zone is not written as far as its write pointer");
            }
        }
        Ok(())
    }
}

fn checksum(bytes: &[u8]) -> u64 {
    let mut hasher = XxHash64::with_seed(0);
    hasher.write(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests;
