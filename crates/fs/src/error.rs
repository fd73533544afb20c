//! Why a call of the file system fails, and the number that the kernel knows for it.

use prism_flash::{FlashError, MediumError};

/// Why a call failed. Unless it is [`FsError::Store`], nothing was changed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FsError {
    /// There is no such file.
    #[error("no such file or folder")]
    NotFound,
    /// The name is taken.
    #[error("the name exists")]
    Exists,
    /// A folder is needed.
    #[error("not a folder")]
    NotDirectory,
    /// A folder cannot be used so.
    #[error("is a folder")]
    IsDirectory,
    /// The folder has entries.
    #[error("the folder is not empty")]
    NotEmpty,
    /// All space is used, and cleaning found none.
    #[error("no space is left: remove files, or make a larger file system")]
    NoSpace,
    /// A name is longer than 255 bytes, or a link longer than 4095.
    #[error("the name is too long")]
    NameTooLong,
    /// A file has the most links.
    #[error("too many links")]
    TooManyLinks,
    /// An argument is invalid.
    #[error("invalid: {0}")]
    Invalid(&'static str),
    /// An offset is beyond the largest file.
    #[error("a file has at most 16 TiB")]
    TooBig,
    /// There is no such extended attribute.
    #[error("no such attribute")]
    NoAttribute,
    /// The operation is not offered.
    #[error("not supported")]
    NotSupported,
    /// The offset is after the last data.
    #[error("no data after the offset")]
    NoData,
    /// The file system is mounted for reading, or a write failed before.
    #[error("the file system is read-only")]
    ReadOnly,
    /// What was read is not what was written: its checksum differs.
    #[error("{what} at block {addr} is damaged: its checksum differs")]
    Damaged {
        /// What was read.
        what: &'static str,
        /// The address, in blocks of 4 KiB.
        addr: u32,
    },
    /// Structures contradict each other.
    #[error("{0}; run prism fsck")]
    Inconsistent(String),
    /// No checkpoint can be read.
    #[error("no checkpoint can be read; prism fsck --repair finds files by the log")]
    NoCheckpoint,
    /// The device has no file system.
    #[error("there is no file system; make one with prism mkfs")]
    NotFormatted,
    /// A newer program made it.
    #[error("the file system has format {found}, this program knows {known}; use a newer program")]
    Version {
        /// The version found.
        found: u16,
        /// The version known.
        known: u16,
    },
    /// The file system uses what this program does not know.
    #[error("the file system has unknown features {0:#x}; use a newer program")]
    Features(u64),
    /// The device is too small or its segments do not fit.
    #[error("{0}")]
    Shape(String),
    /// The device failed.
    #[error(transparent)]
    Store(#[from] FlashError),
}

impl FsError {
    /// The error number of Linux.
    #[must_use]
    pub fn errno(&self) -> i32 {
        match self {
            Self::NotFound => 2,
            Self::NoData => 6,
            Self::Exists => 17,
            Self::NotDirectory => 20,
            Self::IsDirectory => 21,
            Self::Invalid(_) => 22,
            Self::TooBig => 27,
            Self::NoSpace | Self::Store(FlashError::Medium(MediumError::DiskFull { .. })) => 28,
            Self::ReadOnly => 30,
            Self::TooManyLinks => 31,
            Self::NameTooLong => 36,
            Self::NotEmpty => 39,
            Self::NoAttribute => 61,
            Self::NotSupported => 95,
            Self::Damaged { .. }
            | Self::Inconsistent(_)
            | Self::NoCheckpoint
            | Self::NotFormatted
            | Self::Version { .. }
            | Self::Features(_)
            | Self::Shape(_)
            | Self::Store(_) => 5,
        }
    }
}

/// The result of a call.
pub type Result<T> = std::result::Result<T, FsError>;
