//! A block device in place of a file: it is not made and has its length, and its bytes are not zero
//! at first.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{OFlags, SeekFrom, seek};

/// Bytes at the beginning in which file systems, partition tables and volume managers have their
/// signatures.
const SIGNATURES: u64 = 1 << 20;

/// The length of a block device in bytes; `None` if `path` is something else.
///
/// # Errors
/// The errors of the system.
pub fn block_device_len(path: &Path) -> io::Result<Option<u64>> {
    if !is_one(path) {
        return Ok(None);
    }
    len(&File::open(path)?).map(Some)
}

/// Whether `path` is a block device.
pub(crate) fn is_one(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device())
}

/// Options to open it with: for writing, the kernel refuses one that is mounted or part of another
/// device.
pub(crate) fn options(path: &Path, write: bool) -> OpenOptions {
    let mut options = File::options();
    options.read(true).write(write);
    if write && is_one(path) {
        options.custom_flags(OFlags::EXCL.bits() as i32);
    }
    options
}

/// The length of a file or a block device.
pub(crate) fn len(file: &File) -> io::Result<u64> {
    let found = file.metadata()?;
    if !found.file_type().is_block_device() {
        return Ok(found.len());
    }
    // All reads and writes name their offset, so that it does not matter where this leaves it.
    Ok(seek(file, SeekFrom::End(0))?)
}

/// Makes a file this long; a block device keeps its length, which was found to be enough.
pub(crate) fn set_len(file: &File, wanted: u64) -> io::Result<()> {
    if file.metadata()?.file_type().is_block_device() { Ok(()) } else { file.set_len(wanted) }
}

/// Whether a block device begins with zeros, and so has no data of another program.
pub(crate) fn is_blank(file: &File) -> io::Result<bool> {
    let mut bytes = vec![0; len(file)?.min(SIGNATURES) as usize];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes.iter().all(|&byte| byte == 0))
}

/// Writes zeros to the beginning of a block device, which was blank before.
pub(crate) fn blank(path: &Path) -> io::Result<()> {
    // Without O_EXCL: the descriptors of this process may not all be closed yet.
    let file = File::options().write(true).open(path)?;
    file.write_all_at(&vec![0; len(&file)?.min(SIGNATURES) as usize], 0)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_blank_is_blank_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("as a block device");
        for len in [5000, 3 << 20] {
            let mut bytes = vec![7; len];
            std::fs::write(&path, &bytes).unwrap();
            assert!(!is_blank(&File::open(&path).unwrap()).unwrap());
            blank(&path).unwrap();
            assert!(is_blank(&File::open(&path).unwrap()).unwrap());
            bytes[..len.min(1 << 20)].fill(0);
            assert_eq!(std::fs::read(&path).unwrap(), bytes);
        }
    }
}
