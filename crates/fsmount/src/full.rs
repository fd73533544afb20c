//! Files that have lost data because the device was full, so that the next write(2) fails.
//!
//! A write to the kernel's cache succeeds without space, and the kernel reports only with fsync or
//! close that the data could not be written later. Before each write to its cache the kernel needs
//! the attributes of the file, and asks for them with the handle if they are not valid any more. It
//! does the same for a read or a seek at the end, but only if they have expired. So when such data
//! are lost, the attributes are made invalid, and the answer to that question is that there is no
//! space, until there is. A question without a handle, as that of stat(2), is answered; the
//! attributes are made invalid before, because of which the kernel passes the answer on and does
//! not keep it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::kernel::Kernel;

/// Bytes of a block, and blocks of the map of a file that a write may need.
const BLOCK: usize = 4096;
const MAP: u64 = 8;

/// Files that lost data and are open for writing.
#[derive(Default)]
pub struct Full {
    /// Free blocks with which each can be written again.
    files: Mutex<HashMap<u32, u64>>,
}

impl Full {
    fn files(&self) -> MutexGuard<'_, HashMap<u32, u64>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many bytes of a file from the kernel's cache could not be written with these free blocks.
    pub fn lost(&self, kernel: &Kernel, file: u32, free: u64, bytes: usize) {
        // The blocks of the map, too. There may have been so many, and too few could be used.
        let blocks = bytes.div_ceil(BLOCK) as u64;
        let needed = blocks + MAP;
        let wanted = if free < needed { needed } else { free + blocks };
        self.files().insert(file, wanted);
        kernel.drop_attributes(file);
    }

    /// Whether a write to a file has to fail. `free` is asked for the free blocks if the file has
    /// lost data.
    pub fn refuses(&self, file: u32, free: impl FnOnce() -> u64) -> bool {
        let mut files = self.files();
        let Some(&wanted) = files.get(&file) else { return false };
        if free() < wanted {
            return true;
        }
        files.remove(&file);
        false
    }

    /// Takes care that the kernel does not keep the attributes of a file that it is about to get,
    /// by whatever call. It keeps those of a change (`setattr`) in any case, and writes to its
    /// cache go on until data are lost again.
    pub fn keep_invalid(&self, kernel: &Kernel, file: u32) {
        let is_lost = self.files().contains_key(&file);
        if is_lost {
            kernel.drop_attributes(file);
        }
    }

    /// Forgets a file that is not open for writing any more.
    pub fn closed(&self, file: u32) {
        self.files().remove(&file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_refused_until_there_is_space() {
        let (full, kernel) = (Full::default(), Kernel::default());
        assert!(!full.refuses(7, || panic!("the file lost nothing")));
        full.lost(&kernel, 7, 0, 4097);
        full.lost(&kernel, 8, 100, 10 * 4096);
        assert!(full.refuses(7, || 9) && full.refuses(8, || 109) && !full.refuses(9, || 0));
        full.keep_invalid(&kernel, 8);
        assert!(!full.refuses(7, || 10), "there is space");
        assert!(!full.refuses(7, || 0), "until data are lost again");
        full.closed(8);
        assert!(!full.refuses(8, || 0));
    }
}
