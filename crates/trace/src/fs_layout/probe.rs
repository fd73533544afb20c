//! Recognises a file system by its superblock and works out where it keeps what.

use super::plan::Damage;
use super::{FsLayout, LayoutError, ext4, f2fs, xfs};

/// Bytes at the start of a volume in which every known superblock lies.
pub(super) const HEAD_BYTES: usize = 4096;

/// Fills the buffer with what is on a volume from the byte on that it is given, or says why
/// it cannot.
pub type ReadAt<'a, E> = dyn FnMut(u64, &mut [u8]) -> Result<(), E> + 'a;

/// Why no layout can be read off a volume; `E` is how reading it fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError<E> {
    /// The volume cannot be read, or ends too early.
    #[error("cannot be read at byte {offset}: {error}")]
    Read {
        /// Where reading was to begin.
        offset: u64,
        /// How it failed.
        error: E,
    },
    /// No known superblock is where one would be.
    #[error(
        "no superblock of ext4, XFS or F2FS is at its start; name an image or the partition \
         itself, or describe the layout in TOML"
    )]
    Unknown,
    /// A known file system that is laid out in a way that is not.
    #[error("this is {what}")]
    Unsupported {
        /// What it is, and what to do.
        what: &'static str,
    },
    /// A field that cannot be right.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// Fields that are right alone, but not together.
    #[error("the file system is damaged: {0}; check it with its own fsck, or name another image")]
    Layout(#[from] LayoutError),
}

/// A volume that is read here and there.
pub(super) struct Volume<'a, E> {
    read: &'a mut ReadAt<'a, E>,
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

impl FsLayout {
    /// Reads off the layout of the file system on a volume (an image, a partition, a whole
    /// device) with `read`. Few and small pieces are read: superblocks, descriptors, an inode,
    /// heads of groups.
    ///
    /// Sources: the kernel's documents of the on-disk formats of ext4, XFS and F2FS, and
    /// what the tools of these file systems print. Checksums are not verified.
    ///
    /// # Errors
    /// [`ProbeError`] if reading fails, the file system is none that is known, or its
    /// fields make no sense.
    pub fn probe<E>(read: &mut ReadAt<'_, E>) -> Result<Self, ProbeError<E>> {
        let mut volume = Volume { read };
        let head = volume.bytes(0, HEAD_BYTES)?;
        if xfs::is_here(&head) {
            xfs::layout(&mut volume, &head)
        } else if f2fs::is_here(&head) {
            f2fs::layout(&head)
        } else if ext4::is_here(&head) {
            ext4::layout(&mut volume, &head)
        } else {
            Err(ProbeError::Unknown)
        }
    }
}

/// The two bytes at `at`, low byte first.
pub(super) fn le16(bytes: &[u8], at: usize) -> u64 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes")).into()
}

/// The four bytes at `at`, low byte first.
pub(super) fn le32(bytes: &[u8], at: usize) -> u64 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")).into()
}

/// The eight bytes at `at`, low byte first.
pub(super) fn le64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// The two bytes at `at`, high byte first.
pub(super) fn be16(bytes: &[u8], at: usize) -> u64 {
    u16::from_be_bytes(bytes[at..at + 2].try_into().expect("two bytes")).into()
}

/// The four bytes at `at`, high byte first.
pub(super) fn be32(bytes: &[u8], at: usize) -> u64 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes")).into()
}

/// The eight bytes at `at`, high byte first.
pub(super) fn be64(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
