//! Large columns of numbers that start as zeros and take memory only where they are written.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::panic_any;
use std::ptr::NonNull;

use bytemuck::Pod;
use bytemuck::allocation::{try_zeroed_slice_box, try_zeroed_vec};
use memmap2::{Advice, MmapMut};

use crate::units::Bytes;

/// The payload of the panic of [`Zeroed::new`]. The columns of a large drive are where a limit of
/// memory is met, and their sizes follow from what the user asked for; so a program can catch this
/// payload and print a message that says what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The size of the column for which there was no address space.
    pub size: Bytes,
}

/// `len` bytes of zero, or `None` if there is no memory for them.
#[must_use]
pub fn zeroed_bytes(len: usize) -> Option<Box<[u8]>> {
    try_zeroed_slice_box(len).ok()
}

/// A slice of fixed length, zero everywhere at first.
///
/// Parts of a large one that were never written take no memory. Large columns use huge pages:
/// lookups in the map of a drive are random, and with small pages the page table walk takes longer
/// than the lookup. Memory is then allocated in pieces of 2 MiB. Small ones are from the heap: a
/// process that makes one small drive after another would wait for the system to take pages back
/// from all of its threads.
pub struct Zeroed<T> {
    values: NonNull<T>,
    len: usize,
    _owner: Owner<T>,
}

/// What frees the memory of a column.
enum Owner<T> {
    /// Not a box: to move one would make `values` invalid.
    Heap {
        _values: Vec<T>,
    },
    System {
        _map: MmapMut,
    },
}

impl<T> fmt::Debug for Zeroed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} values", self.len)
    }
}

// SAFETY: the values are reached through the column alone, as those of a vector.
#[allow(unsafe_code, reason = "the pointer to the values of a column is its own")]
unsafe impl<T: Send> Send for Zeroed<T> {}
// SAFETY: as above.
#[allow(unsafe_code, reason = "the pointer to the values of a column is its own")]
unsafe impl<T: Sync> Sync for Zeroed<T> {}

impl<T: Pod> Zeroed<T> {
    /// From this many bytes on, huge pages are worth it.
    const LARGE: usize = 1 << 21;
    /// Values that are copied at once.
    const CHUNK: usize = 1024;

    /// `len` zeros.
    ///
    /// # Panics
    /// With the payload [`OutOfMemory`] if there is not enough address space. For a small column an
    /// allocator that does not return, as the command's, comes first.
    #[must_use]
    pub fn new(len: usize) -> Self {
        let bytes = len.saturating_mul(size_of::<T>());
        let made = if bytes < Self::LARGE { Self::on_heap(len) } else { Self::of_system(len) };
        made.unwrap_or_else(|| panic_any(OutOfMemory { size: Bytes(bytes as u64) }))
    }

    fn on_heap(len: usize) -> Option<Self> {
        let mut values = try_zeroed_vec(len).ok()?;
        let at = NonNull::new(values.as_mut_ptr())?;
        Some(Self { values: at, len, _owner: Owner::Heap { _values: values } })
    }

    fn of_system(len: usize) -> Option<Self> {
        let mut map = MmapMut::map_anon(len.checked_mul(size_of::<T>())?).ok()?;
        // If the system does not support this, small pages are used, which are slower.
        let _ = map.advise(Advice::HugePage);
        let values = NonNull::new(map.as_mut_ptr().cast::<T>())?;
        assert!(values.is_aligned(), "a page has the alignment of a value");
        Some(Self { values, len, _owner: Owner::System { _map: map } })
    }
}

impl<T: Pod> Deref for Zeroed<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the owner's memory is aligned and has `len` values. Checking that at each access
        // costs more than the access.
        #[allow(unsafe_code, reason = "checked once, in `new`")]
        unsafe {
            std::slice::from_raw_parts(self.values.as_ptr(), self.len)
        }
    }
}

impl<T: Pod> DerefMut for Zeroed<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and the column is borrowed for as long as the slice.
        #[allow(unsafe_code, reason = "checked once, in `new`")]
        unsafe {
            std::slice::from_raw_parts_mut(self.values.as_ptr(), self.len)
        }
    }
}

impl<T: Pod + PartialEq> Clone for Zeroed<T> {
    fn clone(&self) -> Self {
        let mut copy = Self::new(self.len);
        for (to, from) in copy.chunks_mut(Self::CHUNK).zip(self.chunks(Self::CHUNK)) {
            // Zeros are not written, so that they take no memory.
            if from.iter().any(|value| *value != T::zeroed()) {
                to.copy_from_slice(from);
            }
        }
        copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_beyond_the_address_space_names_its_size() {
        for (len, bytes) in [(1 << 57, 1 << 60), (usize::MAX / 4, u64::MAX)] {
            let column = std::panic::catch_unwind(|| Zeroed::<u64>::new(len));
            let payload = column.expect_err("there is no exbibyte").downcast::<OutOfMemory>();
            assert_eq!(payload.ok(), Some(Box::new(OutOfMemory { size: Bytes(bytes) })));
        }
    }

    #[test]
    fn parts_of_a_large_column_that_are_not_written_take_no_memory() {
        let resident = || {
            let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
            pages.split(' ').nth(1)?.parse::<u64>().ok().map(|pages| pages << 12)
        };
        let before = resident();
        let mut column = Zeroed::<u64>::new(1 << 27);
        column[1 << 26] = 7;
        let copy = column.clone();
        let is_shared = |_: &(dyn Send + Sync)| ();
        is_shared(&copy);
        assert_eq!(copy[(1 << 26) - 1..(1 << 26) + 2], [0, 7, 0]);
        if let (Some(before), Some(after)) = (before, resident()) {
            assert!(after.saturating_sub(before) < 1 << 30, "of two gibibytes");
        }
    }

    #[test]
    fn small_and_large_are_slices_of_zeros() {
        for len in [0, 3, 1000, (1 << 19) - 1, 1 << 19, (1 << 20) + 1] {
            let mut column = Zeroed::<u32>::new(len);
            assert!(column.len() == len && column.iter().all(|&value| value == 0));
            if let Some(last) = column.last_mut() {
                *last = 7;
                assert_eq!(column.clone().last(), Some(&7));
            }
        }
    }
}
