//! Trims that the host has been told about and that are not durable yet.
//!
//! Without power-loss protection a trim takes effect in the map when its tombstone is
//! programmed, as a write does when its row is. Until then reads must already find
//! nothing, which is what these ranges are for.

use std::collections::BTreeMap;

/// Disjoint ranges of logical units, each with the version of the trim over it.
#[derive(Clone, Debug, Default)]
pub struct PendingTrims {
    /// Start to (end, version).
    ranges: BTreeMap<u32, (u32, u64)>,
}

impl PendingTrims {
    /// Whether nothing is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether `lpn` is trimmed and not yet so in the map.
    #[must_use]
    pub fn contains(&self, lpn: u32) -> bool {
        self.ranges.range(..=lpn).next_back().is_some_and(|(_, &(end, _))| lpn < end)
    }

    /// Adds `start..end`; it replaces older trims of the same units.
    pub fn insert(&mut self, start: u32, end: u32, version: u64) {
        if start < end {
            self.carve(start, end);
            self.ranges.insert(start, (end, version));
        }
    }

    /// Forgets `start..end`: newer data came.
    pub fn carve(&mut self, start: u32, end: u32) {
        while let Some((&s, &(e, version))) = self.ranges.range(..end).next_back() {
            if e <= start {
                break;
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

    /// Takes out what is left of the trim `version` over `start..end`, in order.
    pub fn take(&mut self, start: u32, end: u32, version: u64) -> Vec<(u32, u32)> {
        let left: Vec<_> = self
            .ranges
            .range(start..end)
            .filter(|&(_, &(_, v))| v == version)
            .map(|(&s, &(e, _))| (s, e))
            .collect();
        for (s, _) in &left {
            self.ranges.remove(s);
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prism_base::Rng;

    #[test]
    fn equals_a_naive_array() {
        let mut rng = Rng::stream(5, "trims");
        for _ in 0..300 {
            let mut trims = PendingTrims::default();
            let mut model = [0u64; 40];
            for version in 1..60 {
                let start = rng.below(40) as u32;
                let end = start + rng.below(u64::from(40 - start) + 1) as u32;
                let span = start as usize..end as usize;
                match rng.below(3) {
                    0 => {
                        trims.carve(start, end);
                        model[span].fill(0);
                    }
                    1 => {
                        let old = rng.below(version);
                        let taken = trims.take(0, 40, old);
                        for (s, e) in taken {
                            assert!(model[s as usize..e as usize].iter().all(|&v| v == old));
                            model[s as usize..e as usize].fill(0);
                        }
                        assert!(old == 0 || model.iter().all(|&v| v != old));
                    }
                    _ => {
                        trims.insert(start, end, version);
                        model[span].fill(version);
                    }
                }
                for (lpn, &v) in model.iter().enumerate() {
                    assert_eq!(trims.contains(lpn as u32), v != 0);
                }
            }
        }
    }
}
