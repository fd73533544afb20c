//! The median of request sizes, exact unless there are very many different ones.

use std::collections::BTreeMap;

/// Different sizes that are counted exactly. Real traces have some hundreds, because requests
/// are multiples of a sector and have an upper limit.
const EXACT_MAX: usize = 1 << 14;

/// Leading bits that are kept of a size after [`EXACT_MAX`] different ones: it counts as a size
/// that is at most 1/128 smaller.
const KEPT_BITS: u32 = 8;

/// How often each size occurred. At most [`EXACT_MAX`] sizes plus 64 times 128 rounded
/// ones, 24 bytes each.
#[derive(Debug, Default)]
pub struct Sizes {
    counts: BTreeMap<u64, u64>,
    total: u64,
    rounded: bool,
}

impl Sizes {
    /// Counts a request of `size` bytes.
    pub fn add(&mut self, size: u64) {
        self.total += 1;
        if let Some(count) = self.counts.get_mut(&size) {
            *count += 1;
            return;
        }
        let mut key = size;
        if self.counts.len() >= EXACT_MAX {
            let shift = (64 - size.leading_zeros()).saturating_sub(KEPT_BITS);
            key = size >> shift << shift;
            self.rounded |= key != size;
        }
        *self.counts.entry(key).or_insert(0) += 1;
    }

    /// The middle one of all sizes in order; if their number is even, the mean of the two
    /// middle ones, rounded down.
    #[must_use]
    pub fn median(&self) -> Option<u64> {
        let lower = self.ranked(self.total.checked_sub(1)? / 2)?;
        let upper = self.ranked(self.total / 2)?;
        Some(lower + (upper - lower) / 2)
    }

    /// The size at index `before` in order.
    fn ranked(&self, before: u64) -> Option<u64> {
        let mut seen = 0;
        self.counts.iter().find_map(|(&size, &count)| {
            seen += count;
            (seen > before).then_some(size)
        })
    }

    /// The smallest size that a share `q` of all does not exceed.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let rank = ((q * self.total as f64).ceil() as u64).clamp(1, self.total.max(1));
        self.ranked(rank - 1)
    }

    /// Each size and how often it occurred, from the smallest on.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.counts.iter().map(|(&size, &count)| (size, count))
    }

    /// Whether no size had to be rounded.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        !self.rounded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        let check = |sizes: &[u64], expected| {
            let mut counted = Sizes::default();
            sizes.iter().for_each(|&size| counted.add(size));
            assert_eq!(counted.median(), expected, "{sizes:?}");
            assert!(counted.is_exact());
        };
        check(&[], None);
        check(&[7], Some(7));
        check(&[9, 1], Some(5));
        check(&[9, 2], Some(5));
        check(&[4, 9, 1, 8], Some(6));
        check(&[9, 1, 5], Some(5));
        check(&[4, 4, 4, 1, 1, 9], Some(4));
    }

    #[test]
    fn quantiles() {
        let mut sizes = Sizes::default();
        assert_eq!(sizes.quantile(0.5), None);
        [4, 8, 8, 16].into_iter().for_each(|size| sizes.add(size));
        let found = [0.0, 0.25, 0.26, 0.75, 0.76, 1.0].map(|q| sizes.quantile(q).unwrap());
        assert_eq!(found, [4, 4, 8, 8, 16, 16]);
        assert_eq!(sizes.iter().collect::<Vec<_>>(), [(4, 1), (8, 2), (16, 1)]);
    }

    #[test]
    fn beyond_the_limit_the_median_is_close_and_says_so() {
        let mut sizes = Sizes::default();
        (1..=100_000u64).for_each(|size| sizes.add(size));
        let median = sizes.median().unwrap();
        assert!((49_600..=50_001).contains(&median), "{median}");
        assert!(!sizes.is_exact());
        assert!(sizes.counts.len() < EXACT_MAX + 64 * 128);
    }
}
