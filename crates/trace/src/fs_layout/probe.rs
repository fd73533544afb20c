//! Recognises a file system by its superblock.

use super::volume::{ProbeError, ReadAt, Volume};
use super::{FsLayout, ext4, ext4_superblock, f2fs, xfs};

/// Bytes at the start of a volume in which every known superblock lies.
const HEAD_BYTES: usize = 4096;

impl FsLayout {
    /// Finds the layout of the file system on a volume (an image, a partition, a whole device),
    /// which `read` reads. Only few and small pieces are read: superblocks, descriptors, an
    /// inode, headers of groups.
    ///
    /// Sources: the kernel's documents of the on-disk formats of ext4, XFS and F2FS, and
    /// what the tools of these file systems print. Checksums are not verified.
    ///
    /// # Errors
    /// [`ProbeError`] if reading fails, the file system is not known, or its fields are
    /// invalid.
    pub fn probe<E>(read: &mut ReadAt<'_, E>) -> Result<Self, ProbeError<E>> {
        let mut volume = Volume { read };
        let head = volume.bytes(0, HEAD_BYTES)?;
        if xfs::is_here(&head) {
            xfs::layout(&mut volume, &head)
        } else if f2fs::is_here(&head) {
            f2fs::layout(&head)
        } else if ext4_superblock::is_here(&head) {
            ext4::layout(&mut volume, &head)
        } else {
            Err(ProbeError::Unknown)
        }
    }
}
