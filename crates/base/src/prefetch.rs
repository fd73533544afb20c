//! Prefetches memory before it is needed.

/// Prefetches `values[index]`, which is read soon. Nothing happens if the index is out of
/// range, or on a CPU without support here.
///
/// Maps of a drive are much larger than the CPU caches, and lookups are random: with a prefetch
/// a few hundred instructions earlier, a lookup takes a tenth of the time.
#[inline]
#[allow(unsafe_code, reason = "the one instruction the language has no safe name for")]
pub fn prefetch<T>(values: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(value) = values.get(index) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the address is that of a live reference, and a prefetch neither reads
        // nor writes anything the program can observe.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, index);
}

#[cfg(test)]
mod tests {
    #[test]
    fn any_index_is_harmless() {
        super::prefetch(&[1u32, 2], 1);
        super::prefetch(&[1u32, 2], usize::MAX);
        super::prefetch::<u64>(&[], 0);
    }
}
