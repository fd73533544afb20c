//! A drive at rest as bytes, and back. The format: docs/spec/drive-state.md.

mod description;

use std::hash::Hasher;

use prism_base::{DecodeError, Decoder, Encoder};
use prism_ftl::{LayerConfig, MapCounts, PageMap};
use prism_nand::{BlockId, Nand};
use twox_hash::XxHash64;

use crate::device::{Device, DeviceError};
use crate::drive::Drive;
use description::{describe, first_difference};

/// The first bytes of a saved state.
const MAGIC: &[u8; 8] = b"PRISMDRV";
/// The version that is written, and the only one that is read.
const VERSION: u32 = 1;
/// Bytes of the checksum at the end.
const CHECKSUM_BYTES: usize = 8;

/// Why a drive cannot be saved, or bytes are not the state of this drive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// Something is under way or in the buffer.
    #[error("the drive is not at rest: {0}")]
    NotAtRest(&'static str),
    /// There is no format for the mapping.
    #[error("a drive with a mapping by block or by zone cannot be saved; prepare its state anew")]
    Mapping,
    /// There is no format for what ages.
    #[error("a drive that ages ([faults]) cannot be saved; prepare its state anew")]
    Faults,
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
    Device(String),
}

impl From<DeviceError> for SnapshotError {
    fn from(error: DeviceError) -> Self {
        Self::Device(error.to_string())
    }
}

impl Drive {
    /// The state of the drive: its description, map, flash and random streams. Its clock
    /// and its counts are no part of it.
    ///
    /// # Errors
    /// [`SnapshotError::NotAtRest`] if a request, an operation or buffered data is under
    /// way, or a trim waits for its tombstone: send a flush and let the drive finish.
    pub fn save(&self) -> Result<Vec<u8>, SnapshotError> {
        let busy = |what| Err(SnapshotError::NotAtRest(what));
        if self.next_event().is_some() || self.in_flight() > 0 {
            return busy("operations are under way; let it finish");
        }
        if self.buffer.used() > 0 || self.trims_waiting() {
            return busy("its buffer is not empty; send a flush first");
        }
        if self.map_counts().is_some_and(|counts| *counts != MapCounts::default()) {
            return busy("its map cache is in use; save it before the first request");
        }
        if self.device.faults.is_some() {
            return Err(SnapshotError::Faults);
        }
        let Some(ftl) = self.engine.ftl().page() else { return Err(SnapshotError::Mapping) };
        let nand = self.engine.nand();
        if !ftl.is_at_rest() {
            return busy("the translation layer has work to do; send a flush first");
        }
        if nand.keeps_content() {
            return busy("its flash keeps content, which is not part of a state");
        }
        let mut out = Encoder::new();
        out.raw(MAGIC);
        out.u32(VERSION);
        out.column_u8(describe(&self.device).as_bytes());
        out.u64(self.next_version);
        nand.encode(&mut out);
        ftl.encode(&mut out);
        let sum = checksum(out.bytes());
        out.u64(sum);
        Ok(out.into_bytes())
    }

    /// The drive whose state was saved as `bytes`; it goes on as that one would have, its
    /// clock and its counts beginning anew. `device` must be the same but for its name,
    /// title, source and data sheet.
    ///
    /// # Errors
    /// [`SnapshotError`] if the bytes are no state, are damaged, or are another drive's.
    pub fn from_saved(device: Device, bytes: &[u8]) -> Result<Self, SnapshotError> {
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
        if device.faults.is_some() {
            return Err(SnapshotError::Faults);
        }
        let mut from = Decoder::new(content);
        from.raw(head)?;
        let saved = String::from_utf8_lossy(from.column_u8()?);
        if let Some((field, saved, here)) = first_difference(&saved, &describe(&device)) {
            return Err(SnapshotError::OtherDevice { field, saved, here });
        }
        let LayerConfig::Page(config) = device.layer_config() else {
            return Err(SnapshotError::Mapping);
        };
        let next_version = from.u64()?;
        let nand = Nand::decode(device.geometry(), &mut from)?;
        let ftl = PageMap::decode(device.geometry(), config, &mut from)?;
        from.end()?;
        let differs = |block| nand.rows_programmed(block) != ftl.rows_written(block);
        if (0..nand.geometry().blocks()).map(BlockId).any(differs) {
            return Err(from.wrong("flash and map differ in what is programmed").into());
        }
        Ok(Self::assemble(device, nand, ftl.into(), next_version))
    }
}

fn checksum(bytes: &[u8]) -> u64 {
    let mut hasher = XxHash64::with_seed(0);
    hasher.write(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests;
