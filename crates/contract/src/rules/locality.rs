//! The locality rule: the hit ratio of a cache of the map.
//!
//! A miss reads a translation page from flash, which serves all units of the page. The cache
//! therefore holds pages, and all lookups of a request in one page are one *visit*. The paper
//! counts lookups of units, so that a large request hides its miss among its own hits. This
//! module computes both ratios. Discards look up the map too. Miss ratios are those of a trace
//! that is repeated, as on a drive in steady state; the misses of a single pass that starts
//! with an empty cache are available as well.

use prism_base::Bytes;
use prism_trace::{Op, Record};

use super::offenders::Blame;
use super::stack::{Distances, Stack};

/// Cache sizes for which the paper gives miss ratios, as shares of the map.
pub const COVERAGES: [f64; 5] = [0.01, 0.05, 0.1, 0.5, 1.0];

/// The most translation pages that one request visits. Firmware does not look up every page
/// for a discard of a whole drive.
const VISITS_MAX: u64 = 1 << 14;

/// Tracks the visits to translation pages.
#[derive(Debug)]
pub struct Locality {
    unit: u64,
    /// Size of the address range that a translation page maps.
    reach: u64,
    cache_pages: u64,
    stack: Stack,
    lookups: u64,
    /// The group of each first visit to a page.
    firsts: Vec<u16>,
    blame: Blame,
}

/// The result of the locality rule.
#[derive(Clone, Debug)]
pub struct LocalityFindings {
    /// Size of the address range that a translation page maps.
    pub reach: Bytes,
    /// Size of the cache of the score, in translation pages.
    pub cache_pages: u64,
    /// Stack distances of the visits.
    pub distances: Distances,
    /// Number of units looked up.
    pub lookups: u64,
    /// Visits that miss, by the group that makes them.
    pub blame: Blame,
}

impl Locality {
    /// Translation pages map `reach` bytes in units of `unit`. The score is that of a cache
    /// of `cache_pages` translation pages.
    #[must_use]
    pub fn new(unit: Bytes, reach: Bytes, cache_pages: u64) -> Self {
        Self {
            unit: unit.0,
            reach: reach.0,
            cache_pages,
            stack: Stack::default(),
            lookups: 0,
            firsts: Vec::new(),
            blame: Blame::default(),
        }
    }

    /// Looks up the units that `record` of `group` touches.
    pub fn add(&mut self, record: &Record, group: u16) {
        if record.op == Op::Flush || record.len == 0 {
            return;
        }
        let first = record.offset / self.reach;
        let last = ((record.end() - 1) / self.reach).min(first + VISITS_MAX - 1);
        // Beyond VISITS_MAX pages, no units are counted as looked up: they would hide misses.
        let end = record.end().min((last + 1).saturating_mul(self.reach));
        self.lookups += end.div_ceil(self.unit) - record.offset / self.unit;
        for page in first..=last {
            match self.stack.visit(page) {
                None => self.firsts.push(group),
                Some(distance) if u64::from(distance) > self.cache_pages => {
                    self.blame.add(group, 1.0);
                }
                Some(_) => {}
            }
        }
    }

    /// Ends the trace.
    #[must_use]
    pub fn finish(self) -> LocalityFindings {
        let (mut blame, mut firsts) = (self.blame, self.firsts.into_iter());
        let distances = self.stack.finish(|distance| {
            let group = firsts.next().expect("a group for each first visit");
            if u64::from(distance) > self.cache_pages {
                blame.add(group, 1.0);
            }
        });
        LocalityFindings {
            reach: Bytes(self.reach),
            cache_pages: self.cache_pages,
            distances,
            lookups: self.lookups,
            blame,
        }
    }
}

impl LocalityFindings {
    /// Misses / visits for a cache of `pages` translation pages, with the trace repeated;
    /// `None` without visits.
    #[must_use]
    pub fn miss_ratio(&self, pages: u64) -> Option<f64> {
        let visits = self.distances.visits();
        (visits > 0).then(|| self.distances.misses(pages) as f64 / visits as f64)
    }

    /// Misses / units looked up. This is the paper's ratio, except that the trace is
    /// repeated.
    #[must_use]
    pub fn miss_ratio_by_lookups(&self, pages: u64) -> Option<f64> {
        let lookups = self.lookups;
        (lookups > 0).then(|| self.distances.misses(pages) as f64 / lookups as f64)
    }

    /// 1 - the miss ratio of a cache of `cache_pages`.
    #[must_use]
    pub fn score(&self) -> Option<f64> {
        self.miss_ratio(self.cache_pages).map(|ratio| 1.0 - ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hand_computed_example() {
        // Pages of 64 KiB in units of 4 KiB, a cache of one page.
        let mut rule = Locality::new(Bytes(4096), Bytes(65536), 1);
        let mut add = |op, offset, len, group| rule.add(&Record::new(op, 0, offset, len), group);
        add(Op::Write, 0, 65536, 1); // 16 lookups, page 0
        add(Op::Read, 61440, 8192, 2); // pages 0 (a hit) and 1
        add(Op::Flush, 0, 0, 3);
        add(Op::Discard, 65536, 512, 4); // page 1: a hit
        let found = rule.finish();
        assert_eq!((found.distances.visits(), found.lookups), (4, 16 + 2 + 1));
        // With the trace repeated, page 1 is visited before the first visit to page 0, and
        // page 0 before the first visit to page 1. Both miss in a cache of one page.
        assert_eq!(found.miss_ratio(1), Some(0.5));
        assert_eq!(found.score(), Some(0.5));
        assert_eq!(found.miss_ratio(2), Some(0.0));
        assert_eq!(found.miss_ratio_by_lookups(1), Some(2.0 / 19.0));
        assert_eq!(found.blame.total(), 2.0);
        // A discard of the whole drive looks up only the units of the pages that it visits.
        let mut all = Locality::new(Bytes(4096), Bytes(65536), 1);
        all.add(&Record::new(Op::Discard, 0, 0, 1 << 50), 0);
        let all = all.finish();
        assert_eq!((all.distances.visits(), all.lookups), (VISITS_MAX, 16 * VISITS_MAX));
        let nothing = Locality::new(Bytes(4096), Bytes(65536), 1).finish();
        assert_eq!((nothing.score(), nothing.lookups), (None, 0));
    }
}
