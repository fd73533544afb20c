//! Reads bytes and numbers from a volume.

use super::LayoutError;
use super::plan::Damage;

/// Fills the buffer with the bytes of a volume from the given offset on.
pub type ReadAt<'a, E> = dyn FnMut(u64, &mut [u8]) -> Result<(), E> + 'a;

/// Why no layout can be found on a volume; `E` is the error of reading it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError<E> {
    /// The volume cannot be read, or ends too early.
    #[error("cannot be read at byte {offset}: {error}")]
    Read {
        /// Where reading began.
        offset: u64,
        /// How it failed.
        error: E,
    },
    /// There is no known superblock.
    #[error(
        "no superblock of ext4, XFS or F2FS is at its start; name an image or the partition \
         itself, or describe the layout in TOML"
    )]
    Unknown,
    /// A known file system with an unsupported layout.
    #[error("this is {what}")]
    Unsupported {
        /// What it is, and what to do.
        what: &'static str,
    },
    /// A field has an invalid value.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// Fields that are valid alone, but not together.
    #[error("the file system is damaged: {0}; check it with its own fsck, or name another image")]
    Layout(#[from] LayoutError),
}

/// A volume that is being read.
pub(super) struct Volume<'a, E> {
    pub read: &'a mut ReadAt<'a, E>,
}

impl<E> Volume<'_, E> {
    /// The `len` bytes from `offset` on. Callers bound `len`.
    pub fn bytes(&mut self, offset: u64, len: usize) -> Result<Vec<u8>, ProbeError<E>> {
        let mut bytes = vec![0; len];
        let read = (self.read)(offset, &mut bytes);
        read.map_err(|error| ProbeError::Read { offset, error })?;
        Ok(bytes)
    }
}

/// The two bytes at `at`, little-endian.
pub(super) fn le16(bytes: &[u8], at: usize) -> u64 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes")).into()
}

/// The four bytes at `at`, little-endian.
pub(super) fn le32(bytes: &[u8], at: usize) -> u64 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")).into()
}

/// The eight bytes at `at`, little-endian.
pub(super) fn le64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// The two bytes at `at`, big-endian.
pub(super) fn be16(bytes: &[u8], at: usize) -> u64 {
    u16::from_be_bytes(bytes[at..at + 2].try_into().expect("two bytes")).into()
}

/// The four bytes at `at`, big-endian.
pub(super) fn be32(bytes: &[u8], at: usize) -> u64 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes")).into()
}

/// The eight bytes at `at`, big-endian.
pub(super) fn be64(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
