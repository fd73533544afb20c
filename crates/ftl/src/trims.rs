//! Trims that are acknowledged to the host and not yet durable.
//!
//! Without power-loss protection a trim changes the map when its tombstone is programmed, as a
//! write does when its program unit is. Until then reads have to return zeroes all the same; these
//! ranges record where.

use std::collections::BTreeMap;

/// Disjoint ranges of logical units, each with the version of its trim. They belong to one
/// tombstone, which is in flight or not yet begun.
#[derive(Clone, Debug, Default)]
pub struct PendingTrims {
    /// Start to (end, version).
    ranges: BTreeMap<u32, (u32, u64)>,
}

impl PendingTrims {
    /// Whether no trim is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether a trim of `lpn` is pending.
    #[must_use]
    pub fn contains(&self, lpn: u32) -> bool {
        self.ranges.range(..=lpn).next_back().is_some_and(|(_, &(end, _))| lpn < end)
    }

    /// Adds `start..end`; it replaces older trims of the same units.
    pub fn insert(&mut self, start: u32, end: u32, version: u64) {
        if start < end {
            self.carve(start, end, version);
            self.ranges.insert(start, (end, version));
        }
    }

    /// Removes the trims of `start..end` that are older than `newer`, which is on flash.
    pub fn carve(&mut self, start: u32, end: u32, newer: u64) {
        let mut below = end;
        while let Some((&s, &(e, version))) = self.ranges.range(..below).next_back() {
            if e <= start {
                break;
            }
            below = s;
            if version >= newer {
                continue;
            }
            self.ranges.remove(&s);
            if s < start {
                self.ranges.insert(s, (start, version));
            }
            if end < e {
                self.ranges.insert(end, (e, version));
            }
        }
    }

    /// The pending trims: start, end and version of each range, by address.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32, u64)> {
        self.ranges.iter().map(|(&start, &(end, version))| (start, end, version))
    }
}

#[cfg(test)]
mod tests {
    use prism_testkit::seed;

    use super::*;
    use prism_base::Rng;

    #[test]
    fn random_trims_equal_an_array() {
        let mut rng = Rng::stream(seed(5), "trims");
        for _ in 0..300 {
            let mut trims = PendingTrims::default();
            let mut model = [0u64; 40];
            for version in 1..60 {
                let start = rng.below(40) as u32;
                let end = start + rng.below(u64::from(40 - start) + 1) as u32;
                let span = start as usize..end as usize;
                match rng.below(2) {
                    0 => {
                        let newer = rng.below(version + 1);
                        trims.carve(start, end, newer);
                        for v in model[span].iter_mut().filter(|v| **v < newer) {
                            *v = 0;
                        }
                    }
                    _ => {
                        trims.insert(start, end, version);
                        model[span].fill(version);
                    }
                }
                for (lpn, &v) in model.iter().enumerate() {
                    assert_eq!(trims.contains(lpn as u32), v != 0);
                }
                let mut listed = [0u64; 40];
                for (start, end, version) in trims.iter() {
                    listed[start as usize..end as usize].fill(version);
                }
                assert_eq!(listed, model);
            }
        }
    }
}
