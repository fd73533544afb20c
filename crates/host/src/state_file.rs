//! Files of drive snapshots: the bytes of the drive in one zstd stream.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use crate::atomic::OutputFile;
use crate::error::HostError;

/// Maps are nearly random, so a higher level saves almost nothing.
const LEVEL: i32 = 1;

/// Writes `state` to `path`, whole or not at all.
///
/// # Errors
/// [`HostError::Write`].
pub fn write_state(path: &Path, state: &[u8]) -> Result<(), HostError> {
    let mut file = OutputFile::create(path)?;
    let written = zstd::Encoder::new(&mut file, LEVEL).and_then(|mut out| {
        out.include_checksum(true)?;
        out.write_all(state)?;
        out.finish().map(|_| ())
    });
    written.map_err(|error| file.failed(error))?;
    file.commit()
}

/// Reads back what [`write_state`] wrote.
///
/// # Errors
/// [`HostError::Open`] if there is no such file, [`HostError::Content`] if it cannot be
/// decompressed.
pub fn read_state(path: &Path) -> Result<Vec<u8>, HostError> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|source| HostError::Open { file: name.clone(), source })?;
    let damaged = |error: std::io::Error| {
        let what = format!("it is not a complete snapshot ({error}); save it again");
        HostError::content(&name, what)
    };
    let mut state = Vec::new();
    let mut unpacked = zstd::Decoder::new(file).map_err(damaged)?;
    unpacked.read_to_end(&mut state).map_err(damaged)?;
    Ok(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_or_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.prism-state");
        let state: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
        write_state(&path, &state).unwrap();
        assert!(read_state(&path).unwrap() == state);
        let packed = std::fs::read(&path).unwrap();
        assert!(packed.len() < state.len());
        for bytes in [&packed[..packed.len() / 2], &[], b"no zstd at all"] {
            std::fs::write(&path, bytes).unwrap();
            let read = read_state(&path);
            // An empty file decompresses to no bytes, which the drive refuses.
            assert!(read.is_err() || bytes.is_empty(), "{} bytes", bytes.len());
        }
        let error = read_state(&folder.path().join("none")).unwrap_err();
        assert!(error.to_string().contains("no such file"), "{error}");
    }
}
