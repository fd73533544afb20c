//! Why a file cannot be used as a flash device, and what to do about it.

use std::io;

use prism_flash::medium::GeometryError;
use prism_flash::{FlashError, MediumError};

/// Why a flash file could not be made or opened. The text is one line that begins with the
/// name of the file and ends with what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FlashFileError {
    /// The system refused to open the file.
    #[error("{file}: {}", open_failure(source))]
    Open {
        /// The file.
        file: String,
        /// The error of the system.
        source: io::Error,
    },
    /// A file of this name exists already.
    #[error("{file}: it exists already; remove it if you can lose what it holds, or open it")]
    Exists {
        /// The file.
        file: String,
    },
    /// The file could not be made; none is left.
    #[error("{file}: {}", make_failure(source))]
    Make {
        /// The file.
        file: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The device could not be formatted; no file is left.
    #[error("{file}: {error}; give it more blocks for each LUN, or mark fewer of them as bad")]
    Format {
        /// The file.
        file: String,
        /// Why.
        error: FlashError,
    },
    /// A block to be marked as bad does not exist.
    #[error("{file}: block {block} is marked as bad, and there are {blocks}, from block 0 on")]
    FactoryBad {
        /// The file.
        file: String,
        /// The block.
        block: u32,
        /// Blocks of the device.
        blocks: u32,
    },
    /// Another process, or this one, has it open.
    #[error("{file}: it is in use by {}; end that first", holder(*pid))]
    InUse {
        /// The file.
        file: String,
        /// The process that has it open, if the system lists it.
        pid: Option<u32>,
    },
    /// The kernel uses the block device.
    #[error(
        "{file}: the kernel has this block device in use, as for a mounted file system or as part \
         of another device; end that, or name another one"
    )]
    Mounted {
        /// The block device.
        file: String,
    },
    /// The block device holds something else.
    #[error(
        "{file}: this block device is not empty; if you can lose what it holds, erase its \
         beginning: {}",
        erase_command(file)
    )]
    NotBlank {
        /// The block device.
        file: String,
    },
    /// The block device is too short.
    #[error(
        "{file}: the block device has {found} bytes, and {wanted} are needed; make a smaller \
         device, or name a larger block device"
    )]
    TooShort {
        /// The block device.
        file: String,
        /// Its length in bytes.
        found: u64,
        /// The length that the device needs, in bytes.
        wanted: u64,
    },
    /// The file is not a flash file.
    #[error("{file}: this is no flash file; make one with `prism device create`")]
    NotAFlashFile {
        /// The file.
        file: String,
    },
    /// A later version of Prism wrote it.
    #[error(
        "{file}: its format has version {version}, and this program knows up to {known}; use a \
         newer one"
    )]
    Newer {
        /// The file.
        file: String,
        /// Its version.
        version: u32,
        /// The newest known version.
        known: u32,
    },
    /// The file is truncated.
    #[error(
        "{file}: the file is truncated: it has {found} bytes and should have {wanted}; restore it \
         from a copy"
    )]
    Truncated {
        /// The file.
        file: String,
        /// Its length in bytes.
        found: u64,
        /// The length that its superblock demands, in bytes; at least.
        wanted: u64,
    },
    /// Both copies of a structure are damaged.
    #[error("{file}: {what} damaged in both copies, at byte {at}; restore it from a copy")]
    Damaged {
        /// The file.
        file: String,
        /// Which part of it.
        what: String,
        /// The offset of its first copy, in bytes.
        at: u64,
    },
    /// An entry of the journal is damaged whose sync has returned.
    #[error(
        "{file}: entry {entry} of the journal, at byte {at}, is damaged or names damaged pages; \
         restore the file from a copy"
    )]
    Journal {
        /// The file.
        file: String,
        /// The number of the entry.
        entry: u64,
        /// Its offset in the file, in bytes.
        at: u64,
    },
    /// The geometry is out of range, or too large for a file.
    #[error("{file}: {error}")]
    Geometry {
        /// The file.
        file: String,
        /// The field.
        error: GeometryError,
    },
    /// Reading or writing failed.
    #[error("{file}: {}", io_failure(operation, source))]
    Io {
        /// The file.
        file: String,
        /// The operation.
        operation: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// The requested engine is not available.
    #[error("{file}: {what}")]
    Engine {
        /// The file.
        file: String,
        /// Why, and what to do.
        what: String,
    },
}

/// The command that makes a block device one on which a new device can be made.
#[must_use]
pub fn erase_command(file: &str) -> String {
    format!("dd if=/dev/zero of={file} bs=1M count=1")
}

fn open_failure(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file or folder; check the name".into(),
        io::ErrorKind::PermissionDenied => {
            "no permission to open it; change its mode, or run as its owner".into()
        }
        io::ErrorKind::IsADirectory => "this is a folder; name a file".into(),
        _ => format!("cannot be opened: {error}"),
    }
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or("another process".into(), |pid| format!("process {pid}"))
}

fn make_failure(error: &io::Error) -> String {
    match error.kind() {
        _ if is_full(error) => {
            "the disk is full, and nothing was made; make room, or name another folder".into()
        }
        io::ErrorKind::FileTooLarge => {
            "the file system takes no file of that length; make the device smaller".into()
        }
        _ => format!("making it failed: {error}; look after the disk, then make it again"),
    }
}

pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// What went wrong, and what helps.
fn io_failure(operation: &str, error: &io::Error) -> String {
    match error.kind() {
        _ if is_full(error) => format!(
            "the disk is full ({operation}); what was synced is kept; make room and open it again"
        ),
        io::ErrorKind::UnexpectedEof => {
            format!("the file has become shorter ({operation}); restore it from a copy")
        }
        _ => format!("{operation} failed: {error}; look after the disk, then open it again"),
    }
}

/// The same, as an error of the medium.
pub(crate) fn medium_failure(file: &str, operation: &str, error: &io::Error) -> MediumError {
    let what = format!("{file}: {}", io_failure(operation, error));
    if is_full(error) { MediumError::DiskFull { what } } else { MediumError::Io { what } }
}
