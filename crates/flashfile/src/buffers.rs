//! The buffers of operations in flight, parts of one mapping. With huge pages, a buffer is
//! physically contiguous, so the kernel needs few segments and few lookups for it.

use std::{io, mem, slice};

use memmap2::{Advice, MmapMut, MmapOptions};

/// Bytes of a huge page; the mapping consists of huge pages if the system has them.
const HUGE: usize = 2 << 20;

/// Buffers of one size that neither move nor overlap. They take memory when they are first used.
///
/// The kernel may use some of them: the owner must not access those until the kernel is done.
pub(crate) struct Buffers {
    /// `None` once the memory was left to the kernel.
    map: Option<MmapMut>,
    count: usize,
    size: usize,
}

impl Buffers {
    /// `count` buffers of `size` bytes, a multiple of the alignment for direct I/O.
    ///
    /// # Errors
    /// If the system gives no such mapping.
    pub(crate) fn new(count: usize, size: usize) -> io::Result<Self> {
        let len = (count * size).next_multiple_of(HUGE);
        // Most of them may never be used, so no swap is reserved.
        let map = MmapOptions::new().len(len).no_reserve_swap().map_anon()?;
        // Small pages work as well.
        #[cfg(target_os = "linux")]
        let _ = map.advise(Advice::HugePage);
        Ok(Self { map: Some(map), count, size })
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Bytes of each buffer.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// A buffer that the kernel does not write to.
    pub(crate) fn of(&self, index: usize) -> &[u8] {
        let start = self.address(index);
        // SAFETY: the address is that of `size` bytes within the mapping, which lives as long as
        // `self`; writing to a buffer borrows all of them, and the kernel does not use it.
        #[allow(unsafe_code, reason = "a slice of the whole mapping would alias other buffers")]
        unsafe {
            slice::from_raw_parts(start, self.size)
        }
    }

    /// A buffer that the kernel does not use.
    pub(crate) fn of_mut(&mut self, index: usize) -> &mut [u8] {
        let start = self.address(index).cast_mut();
        // SAFETY: as in `of`; the mapping is writable, and it is borrowed exclusively.
        #[allow(unsafe_code, reason = "a slice of the whole mapping would alias other buffers")]
        unsafe {
            slice::from_raw_parts_mut(start, self.size)
        }
    }

    /// The address of a buffer, for the kernel.
    pub(crate) fn address(&self, index: usize) -> *const u8 {
        assert!(index < self.count, "buffer {index} of {}", self.count);
        let map = self.map.as_ref().expect("memory that was left to the kernel is not used");
        map.as_ptr().wrapping_add(index * self.size)
    }

    /// Leaks the memory, because the kernel may still write to it.
    pub(crate) fn leak(&mut self) {
        mem::forget(self.map.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_do_not_overlap_and_keep_their_places() {
        let mut buffers = Buffers::new(5, 3 * 4096).unwrap();
        let addresses: Vec<_> = (0..5).map(|index| buffers.address(index)).collect();
        for index in 0..5 {
            assert_eq!(buffers.of(index), [0; 3 * 4096]);
            buffers.of_mut(index).fill(index as u8 + 1);
        }
        for (index, address) in addresses.into_iter().enumerate() {
            assert_eq!(buffers.of(index), [index as u8 + 1; 3 * 4096]);
            assert_eq!(buffers.address(index), address);
            assert!(address.addr().is_multiple_of(4096));
        }
    }

    #[test]
    #[should_panic(expected = "buffer 2 of 2")]
    fn an_index_beyond_the_buffers_panics() {
        Buffers::new(2, 4096).unwrap().of(2);
    }
}
