//! The buffers of operations in flight, parts of one mapping. With huge pages, a buffer is
//! physically contiguous, so the kernel needs few segments and few lookups for it.

use std::sync::{Arc, Mutex};
use std::{io, mem, slice};

use memmap2::{Advice, MmapMut, MmapOptions};
use prism_flash::BufferMemory;

use crate::layout::ALIGN;

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

/// Memory for direct I/O, in huge pages if it is large.
#[derive(Debug)]
pub(crate) struct Aligned {
    map: MmapMut,
    len: usize,
}

impl Aligned {
    /// `len` bytes, zero.
    ///
    /// # Errors
    /// If the system gives no such mapping.
    pub(crate) fn new(len: usize) -> io::Result<Self> {
        let whole = if len >= HUGE / 2 { len.next_multiple_of(HUGE) } else { len.max(1) };
        let map = MmapOptions::new().len(whole).map_anon()?;
        // Small pages work as well.
        #[cfg(target_os = "linux")]
        if whole >= HUGE {
            let _ = map.advise(Advice::HugePage);
        }
        Ok(Self { map, len })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl AsRef<[u8]> for Aligned {
    fn as_ref(&self) -> &[u8] {
        &self.map[..self.len]
    }
}

impl AsMut<[u8]> for Aligned {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.map[..self.len]
    }
}

/// Memory for callers, whose buffers share huge pages: a buffer of its own huge pages would be
/// rounded up to them. A huge page is freed when all of its buffers are dropped.
#[derive(Debug, Default)]
pub(crate) struct Pool(Mutex<Chunk>);

/// Huge pages, from the front of which buffers were taken.
#[derive(Debug, Default)]
struct Chunk {
    /// `None` before the first buffer.
    map: Option<Arc<MmapMut>>,
    used: usize,
    end: usize,
}

impl Pool {
    /// `len` bytes, zero, for direct I/O.
    ///
    /// # Errors
    /// If the system gives no such mapping.
    pub(crate) fn take(&self, len: usize) -> io::Result<Pooled> {
        let size = len.max(1).next_multiple_of(ALIGN as usize);
        let mut chunk = self.0.lock().expect("no thread panics while it holds the pool");
        if chunk.end - chunk.used < size {
            *chunk = Chunk::new(size)?;
        }
        let at = chunk.used;
        chunk.used += size;
        let map = chunk.map.as_ref().expect("a chunk that is large enough has memory");
        Ok(Pooled { map: Arc::clone(map), at, len })
    }
}

impl Chunk {
    fn new(size: usize) -> io::Result<Self> {
        let len = size.next_multiple_of(HUGE);
        // Mappings begin at any small page.
        let map = MmapOptions::new().len(len + HUGE).no_reserve_swap().map_anon()?;
        let used = map.as_ptr().align_offset(HUGE);
        // Small pages work as well.
        #[cfg(target_os = "linux")]
        let _ = map.advise_range(Advice::HugePage, used, len);
        Ok(Self { map: Some(Arc::new(map)), used, end: used + len })
    }
}

/// A buffer of a [`Pool`], the only one with its bytes.
#[derive(Debug)]
pub(crate) struct Pooled {
    map: Arc<MmapMut>,
    at: usize,
    len: usize,
}

// SAFETY: the bytes are those of a mapping, which stays where it is until its last buffer is
// dropped; and no other buffer has them, as a pool gives each byte once.
#[allow(unsafe_code, reason = "the promise of the trait; a slice of all would alias others")]
unsafe impl BufferMemory for Pooled {
    fn bytes(&self) -> &[u8] {
        // SAFETY: as above.
        unsafe { slice::from_raw_parts(self.map.as_ptr().add(self.at), self.len) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; the mapping is writable.
        unsafe { slice::from_raw_parts_mut(self.map.as_ptr().add(self.at).cast_mut(), self.len) }
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
    fn buffers_of_a_pool_share_huge_pages_and_outlive_it() {
        let pool = Pool::default();
        let lens = [1, HUGE / 2, 4096, HUGE / 2, 0, 3 * HUGE, 5000, 5000];
        let mut buffers: Vec<Pooled> = lens.iter().map(|&len| pool.take(len).unwrap()).collect();
        drop(pool);
        for (value, buffer) in (1..).zip(&mut buffers) {
            assert!(buffer.bytes().iter().all(|&byte| byte == 0));
            assert!(buffer.bytes().as_ptr().addr().is_multiple_of(4096));
            buffer.bytes_mut().fill(value);
        }
        let same = |a: usize, b: usize| Arc::ptr_eq(&buffers[a].map, &buffers[b].map);
        assert!(same(0, 1) && same(1, 2) && !same(2, 3) && same(3, 4) && same(6, 7));
        for ((value, len), buffer) in (1..).zip(lens).zip(&buffers) {
            assert_eq!(buffer.bytes(), vec![value; len]);
        }
        assert!(buffers[5].bytes().as_ptr().addr().is_multiple_of(HUGE));
    }

    #[test]
    #[should_panic(expected = "buffer 2 of 2")]
    fn an_index_beyond_the_buffers_panics() {
        Buffers::new(2, 4096).unwrap().of(2);
    }
}
