//! Files that are open for writing, and whether they pass the kernel's cache by.
//!
//! A write to the cache succeeds without space for it. A file that is empty and opened when little
//! is left therefore passes the cache by, and each write fails by itself. One that has content does
//! not: the kernel has the times of files, and a write that passes its cache by does not change
//! them, so a file that was changed would keep its old time. That of an empty one is as a rule that
//! of its making. All who write to a file do the same, since the size of a file that grew in the
//! cache is not known here.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use fuser::{FileAttr, FileHandle, FileType, FopenFlags};

/// Handles: of a file that is not written, that passes the cache by, and that is written to it.
const READ: FileHandle = FileHandle(0);
pub const DIRECT: FileHandle = FileHandle(1);
pub const CACHED: FileHandle = FileHandle(2);

/// Files that are open for writing: how often, and with which handle.
pub struct Opens {
    files: Mutex<HashMap<u32, (FileHandle, u64)>>,
    /// Whether the kernel keeps writes in its cache.
    has_cache: bool,
}

impl Opens {
    pub fn new(has_cache: bool) -> Self {
        Self { files: Mutex::default(), has_cache }
    }

    /// Opens a file; `is_direct` counts for the first that writes. The lock is taken while that of
    /// the file system is held, so nothing here may wait for that.
    pub fn open(&self, file: u32, is_written: bool, is_direct: bool) -> (FileHandle, FopenFlags) {
        if !is_written {
            return (READ, FopenFlags::FOPEN_KEEP_CACHE);
        }
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let (handle, count) =
            files.entry(file).or_insert((if is_direct { DIRECT } else { CACHED }, 0));
        *count += 1;
        let flags = match *handle {
            DIRECT => FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_KEEP_CACHE,
            _ => FopenFlags::FOPEN_KEEP_CACHE,
        };
        (*handle, flags)
    }

    /// The attributes of a file for the kernel. A file whose content may be in its cache only is
    /// not without blocks: tar(1) would take it for a hole.
    pub fn shown(&self, mut attr: FileAttr) -> FileAttr {
        let is_empty = attr.blocks == 0 && attr.kind == FileType::RegularFile;
        if is_empty && self.is_cached(attr.ino.0 as u32) {
            attr.blocks = 8;
        }
        attr
    }

    /// Whether the kernel may have writes to a file in its cache.
    pub fn is_cached(&self, file: u32) -> bool {
        if !self.has_cache {
            return false;
        }
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.get(&file).is_some_and(|&(handle, _)| handle == CACHED)
    }

    /// Closes a file that [`Opens::open`] opened; returns whether it was the last to write.
    pub fn close(&self, file: u32, handle: FileHandle) -> bool {
        if handle == READ {
            return false;
        }
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((_, count)) = files.get_mut(&file) else { return false };
        *count -= 1;
        let is_last = *count == 0;
        if is_last {
            files.remove(&file);
        }
        is_last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_who_write_to_a_file_do_the_same() {
        let opens = Opens::new(true);
        let open = |file, is_direct| opens.open(file, true, is_direct).0;
        assert_eq!((open(7, false), open(7, true), open(8, true)), (CACHED, CACHED, DIRECT));
        assert!(opens.is_cached(7) && !opens.is_cached(8) && !opens.is_cached(9));
        assert_eq!(opens.open(8, false, true).0, READ);
        assert!(!opens.close(7, CACHED) && !opens.close(8, READ));
        assert_eq!((open(7, true), open(8, false)), (CACHED, DIRECT));
        assert!(!opens.close(7, CACHED) && opens.close(7, CACHED));
        assert_eq!(open(7, true), DIRECT, "the last was closed");
    }
}
