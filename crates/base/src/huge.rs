//! Vectors in huge pages.

/// An empty vector with room for `capacity` values, in huge pages if it is large and the system has
/// them: for memory that is read or written in no order. With small pages the page table walk takes
/// longer than such an access, and each page is a fault when it is first written.
#[must_use]
pub fn vec_in_huge_pages<T>(capacity: usize) -> Vec<T> {
    let mut values = Vec::with_capacity(capacity);
    #[cfg(target_os = "linux")]
    advise(values.spare_capacity_mut());
    values
}

/// Asks for huge pages. If the system does not support this, small pages are used.
#[cfg(target_os = "linux")]
fn advise<T>(memory: &mut [std::mem::MaybeUninit<T>]) {
    /// Bytes of a page, and of a huge one.
    const PAGES: [usize; 2] = [4 << 10, 2 << 20];
    let begin = memory.as_mut_ptr().cast::<std::ffi::c_void>();
    let skipped = begin.align_offset(PAGES[0]);
    let bytes = size_of_val(memory).saturating_sub(skipped) / PAGES[0] * PAGES[0];
    if bytes < PAGES[1] {
        return;
    }
    let begin = begin.wrapping_byte_add(skipped);
    // SAFETY: the pages are those of memory that is borrowed exclusively, and the advice changes
    // no byte of them.
    #[allow(unsafe_code, reason = "other advice may change memory, so the call is unsafe")]
    let _ = unsafe { rustix::mm::madvise(begin, bytes, rustix::mm::Advice::LinuxHugepage) };
}

#[cfg(test)]
mod tests {
    #[test]
    fn small_and_large_vectors_have_room() {
        for capacity in [0, 1, 1000, 1 << 19, (1 << 20) + 7] {
            let mut values = super::vec_in_huge_pages::<u64>(capacity);
            assert!(values.is_empty() && values.capacity() >= capacity);
            values.extend(0..capacity as u64);
            assert!(values.iter().copied().eq(0..capacity as u64));
        }
    }
}
