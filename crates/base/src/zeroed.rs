//! Large columns of numbers that start as zeros and take memory only where they are written.

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
#[derive(Debug)]
pub struct Zeroed<T> {
    values: NonNull<T>,
    len: usize,
    _owner: Owner<T>,
}

/// What frees the memory of a column.
#[derive(Debug)]
enum Owner<T> {
    Heap { _values: Vec<T> },
    System { _map: MmapMut },
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
    /// With the payload [`OutOfMemory`] if there is not enough address space.
    #[must_use]
    pub fn new(len: usize) -> Self {
        let bytes = len * size_of::<T>();
        let made = if bytes < Self::LARGE { Self::on_heap(len) } else { Self::of_system(len) };
        made.unwrap_or_else(|| panic_any(OutOfMemory { size: Bytes(bytes as u64) }))
    }

    fn on_heap(len: usize) -> Option<Self> {
        let mut values = try_zeroed_vec(len).ok()?;
        let at = NonNull::new(values.as_mut_ptr())?;
        Some(Self { values: at, len, _owner: Owner::Heap { _values: values } })
    }

    fn of_system(len: usize) -> Option<Self> {
        let mut map = MmapMut::map_anon(len * size_of::<T>()).ok()?;
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
        let column = std::panic::catch_unwind(|| Zeroed::<u64>::new(1 << 57));
        let payload = column.expect_err("there is no exbibyte").downcast::<OutOfMemory>();
        assert_eq!(payload.ok(), Some(Box::new(OutOfMemory { size: Bytes(1 << 60) })));
    }

    #[test]
    fn small_and_large_are_slices_of_zeros() {
        for len in [0, 3, 1000, 1 << 19, (1 << 20) + 1] {
            let mut column = Zeroed::<u32>::new(len);
            assert!(column.len() == len && column.iter().all(|&value| value == 0));
            if let Some(last) = column.last_mut() {
                *last = 7;
                assert_eq!(column.clone().last(), Some(&7));
            }
        }
    }
}
