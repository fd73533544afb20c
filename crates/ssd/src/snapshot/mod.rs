//! A drive at rest as bytes, and back. The format: docs/spec/drive-state.md.

mod description;

use std::hash::Hasher;

use prism_base::{DecodeError, Decoder, Encoder};
use prism_engine::Engine;
use prism_ftl::Ftl;
use twox_hash::XxHash64;

use crate::drive::{Drive, ZoneWork};
use crate::spec::{DriveSpec, DriveSpecError};
use description::{describe, first_difference};

/// The first bytes of a saved state.
const MAGIC: &[u8; 8] = b"PRISMDRV";
/// The version that is written, and the only one that is read.
const VERSION: u32 = 2;
/// Bytes of the checksum at the end.
const CHECKSUM_BYTES: usize = 8;

/// Why a drive cannot be saved, or bytes are not the state of this drive.
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
    #[error("this is no saved state of a drive")]
    Foreign,
    /// Another version of the format.
    #[error(
        "the state was saved in version {found} of the format, this program reads version \
         {VERSION}; save it again"
    )]
    Version {
        /// Its version.
        found: u32,
    },
    /// The checksum does not match: bytes are missing or changed.
    #[error("the saved state is damaged (its checksum is wrong); save it again")]
    Checksum,
    /// The checksum matches and the content makes no sense.
    #[error("the saved state contradicts itself {0}; save it again")]
    Damaged(#[from] DecodeError),
    /// The state is of another drive.
    #[error(
        "the state was saved of another drive: its {field} is {saved}, here it is {here}; give \
         the same device and capacity, or prepare a state anew"
    )]
    OtherDevice {
        /// The first field that differs.
        field: String,
        /// Its value in the state.
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
        let (nand, ftl) = (self.engine.nand(), self.engine.ftl());
        let mut out = Encoder::new();
        out.raw(MAGIC);
        out.u32(VERSION);
        out.column_u8(describe(&self.device).as_bytes());
        out.u64(self.next_version);
        nand.encode(self.now, &mut out);
        ftl.encode(&mut out);
        self.engine.encode(&mut out);
        self.queues.encode(&mut out);
        self.buffer.encode(&mut out);
        if let Some(map) = &self.map {
            map.encode(&mut out);
        }
        if let Some(zones) = &self.zones {
            zones.encode(&mut out);
        }
        let sum = checksum(out.bytes());
        out.u64(sum);
        Ok(out.into_bytes())
    }

    /// Why the drive is not at rest; `None` if it is.
    fn unrest(&self) -> Option<&'static str> {
        let map = self.map.as_ref().is_none_or(|map| map.is_at_rest());
        let zones = self.zones.as_ref().is_none_or(|zones| zones.is_at_rest());
        if self.next_event().is_some() || self.in_flight() > 0 {
            Some("operations are in flight; let it finish")
        } else if !self.buffer.is_at_rest() || self.trims_waiting() {
            Some("its buffer holds what has begun or is promised; send a flush first")
        } else if !(self.engine.is_at_rest() && self.engine.ftl().is_at_rest() && map && zones) {
            Some("the translation layer has work to do; send a flush first")
        } else if self.engine.nand().keeps_content() {
            Some("its flash keeps content, which is not part of a state")
        } else {
            None
        }
    }

    /// The drive whose state was saved as `bytes`; it goes on as that one would have, its
    /// clock and its counts beginning anew. `device` must be the same but for its name,
    /// title, source and data sheet.
    ///
    /// # Errors
    /// [`SnapshotError`] if the bytes are no state, are damaged, or are another drive's.
    pub fn from_saved(device: DriveSpec, bytes: &[u8]) -> Result<Self, SnapshotError> {
        device.check()?;
        let head = MAGIC.len() + 4;
        if bytes.len() < head + CHECKSUM_BYTES || !bytes.starts_with(MAGIC) {
            return Err(SnapshotError::Foreign);
        }
        let found = Decoder::new(&bytes[MAGIC.len()..]).u32()?;
        if found != VERSION {
            return Err(SnapshotError::Version { found });
        }
        let (content, sum) = bytes.split_at(bytes.len() - CHECKSUM_BYTES);
        if Decoder::new(sum).u64()? != checksum(content) {
            return Err(SnapshotError::Checksum);
        }
        let mut from = Decoder::new(content);
        from.raw(head)?;
        let saved = String::from_utf8_lossy(from.column_u8()?);
        if let Some((field, saved, here)) = first_difference(&saved, &describe(&device)) {
            return Err(SnapshotError::OtherDevice { field, saved, here });
        }
        let drive = Self::decode(device, &mut from)?;
        from.end()?;
        Ok(drive)
    }

    /// What follows the description.
    fn decode(device: DriveSpec, from: &mut Decoder<'_>) -> Result<Self, SnapshotError> {
        let next_version = from.u64()?;
        let mut nand = device.erased();
        // Its luck is that of the state.
        device.age(&mut nand, 0);
        let mut nand = nand.restored(from)?;
        nand.pair_program_units(device.program_units_per_wordline());
        let ftl = Ftl::decode(device.geometry(), device.ftl_config(), from)?;
        let (units, map_units) = (device.logical_units(), device.page_config().map_units);
        if !ftl.stands_on(&nand, units + map_units) {
            return Err(from.wrong("flash and map differ in what is programmed").into());
        }
        let engine = Engine::decode(nand, ftl, device.engine_config(), from)?;
        let shape = device.zone_shape();
        let mut drive = Self::around(device, engine, next_version);
        drive.queues.restore(from)?;
        drive.buffer.restore(from, units + map_units, next_version)?;
        if let Some(map) = &mut drive.map {
            map.restore(from, units, map_units)?;
        }
        if let Some(shape) = shape {
            drive.zones = Some(ZoneWork::decode(shape, from)?);
            drive.check_zones().map_err(|what| from.wrong(what))?;
        }
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
