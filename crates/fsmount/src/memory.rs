//! File systems that end with their mount: in memory, or on a simulated drive in memory.

use std::path::Path;

use prism_base::Bytes;
use prism_flash::{Cache, MemoryDevice, Options};
use prism_fs::{Config, Fs};
use prism_nand::Cause;
use prism_segments::{DriveStore, FlashCounts};
use prism_ssd::{Drive, DriveSpec, fit};

use crate::open::{
    AnyStore, Device, MountError, SIZE_MIN, flash, format, fs, geometry, now, segment_bytes,
};

/// The name of both in errors, and of their mounts.
pub const MEMORY: &str = "memory";

/// Makes a file system of `size` bytes in memory; with a `drive`, on one of that kind, made smaller
/// to this size, whose segments are ranges of addresses that are trimmed when they are free.
///
/// # Errors
/// [`MountError`] if it would be too small, or if there is no such small drive.
pub fn make_in_memory(
    size: Bytes,
    drive: Option<&DriveSpec>,
    config: Config,
) -> Result<Device, MountError> {
    if size < SIZE_MIN {
        let what = format!("--size {size} is too small: a file system needs {SIZE_MIN} or more");
        return Err(MountError::Option(what));
    }
    let name = Path::new(MEMORY);
    let id = now().secs as u64 ^ u64::from(now().nanos) << 32;
    let Some(spec) = drive else {
        let memory = MemoryDevice::new(geometry(size), Cache::None);
        let memory = memory.map_err(|error| flash(name)(error.into()))?;
        let device = prism_flash::Device::format(memory, Options::default());
        return format(device.map_err(flash(name))?, id, name, config);
    };
    let store: AnyStore = Box::new(drive_of(spec, size, segment_bytes(size))?);
    let fs = Fs::format(store, id, config, now()).map_err(fs(name))?;
    Ok(Device { fs, flash: None })
}

fn drive_of(spec: &DriveSpec, size: Bytes, segment: u32) -> Result<DriveStore<Drive>, MountError> {
    let refused = |why: String| MountError::Option(format!("--preset, --size {size}: {why}"));
    let scaled = fit(spec, size).map_err(|error| refused(error.to_string()))?.device;
    let nand = scaled.erased_with_content();
    let channels = scaled.flash.channels;
    let drive = Drive::with_nand(scaled, nand, 1).map_err(|error| refused(error.to_string()))?;
    Ok(DriveStore::new(drive, segment, channels, true, counts))
}

/// What the drive did to flash, in mapping units.
fn counts(drive: &Drive) -> FlashCounts {
    let counts = drive.flash_counts();
    let programs = counts.units[Cause::Host];
    let (copies, erases) = (counts.units.total() - programs, counts.erases.total());
    FlashCounts { programs, copies, reads: 0, erases }
}

#[cfg(test)]
mod tests {
    use prism_fs::{NewFile, ROOT, S_IFREG};

    use super::*;

    fn write_and_read(drive: Option<&DriveSpec>) -> FlashCounts {
        let made = make_in_memory(Bytes(64 << 20), drive, Config::NORMAL);
        let mut fs = made.unwrap_or_else(|error| panic!("{error}")).fs;
        let new = NewFile { mode: S_IFREG | 0o644, uid: 0, gid: 0, rdev: 0, umask: 0 };
        let file = fs.make(ROOT, b"file", new).unwrap();
        // More than fits, so that segments are freed and used again.
        for round in 1..5_u8 {
            for at in 0..40 {
                fs.write(file, at << 20, &vec![round; 1 << 20]).unwrap();
            }
            fs.sync().unwrap();
        }
        assert!(fs.read(file, 0, 40 << 20).unwrap().iter().all(|&byte| byte == 4));
        fs.checkpoint().unwrap();
        assert_eq!(fs.check().unwrap().problems, []);
        fs.store().counts()
    }

    #[test]
    fn the_same_code_runs_in_memory_and_on_a_drive() {
        let memory = write_and_read(None);
        assert!(memory.programs >= 40_960 && memory.erases > 100, "{memory:?}");
        let spec = DriveSpec::preset("dc-tlc").unwrap();
        let drive = write_and_read(Some(&spec));
        assert!(drive.programs >= 40_000 && drive.erases > 0, "{drive:?}");
    }

    /// Drives whose blocks may be programmed with gaps are no exception.
    #[test]
    fn a_file_system_is_on_a_drive_of_any_preset() {
        for name in DriveSpec::preset_names() {
            let spec = DriveSpec::preset(name).unwrap();
            let made = make_in_memory(Bytes(64 << 20), Some(&spec), Config::NORMAL);
            let mut fs = made.unwrap_or_else(|error| panic!("{name}: {error}")).fs;
            let new = NewFile { mode: S_IFREG | 0o644, uid: 0, gid: 0, rdev: 0, umask: 0 };
            let file = fs.make(ROOT, b"file", new).unwrap();
            fs.write(file, 0, &[7; 1 << 20]).unwrap();
            fs.checkpoint().unwrap();
            assert_eq!(fs.read(file, 0, 1 << 20).unwrap(), [7; 1 << 20], "{name}");
        }
    }

    #[test]
    fn what_is_too_small_is_refused() {
        let error = make_in_memory(Bytes(1 << 20), None, Config::NORMAL).err().unwrap();
        assert!(error.to_string().contains("--size 1 MiB is too small"), "{error}");
    }
}
