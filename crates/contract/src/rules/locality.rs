//! The locality rule: how often a cache of the map finds what a request needs.
//!
//! A miss reads a translation page from flash and so serves all of its units: what is
//! cached is the page. Lookups of a request in one page are one *visit*; counted by units,
//! as in the paper, a large request hides its miss among its own hits, so both ratios are
//! kept. Discards look up too. The trace is taken to follow itself, as it does on a drive
//! in steady state; a single round from an empty cache is kept beside.

use prism_base::Bytes;
use prism_trace::{Op, Record};

use super::offenders::Blame;
use super::stack::{Distances, Stack};

/// Shares of the map for which the paper gives miss ratios.
pub const COVERAGES: [f64; 5] = [0.01, 0.05, 0.1, 0.5, 1.0];

/// Translation pages that one request visits at most: a discard of a whole drive changes
/// the map wholesale in any firmware.
const VISITS_MAX: u64 = 1 << 14;

/// Follows the visits.
#[derive(Debug)]
pub struct Locality {
    unit: u64,
    /// Bytes of addresses that a translation page maps.
    reach: u64,
    cache_pages: u64,
    stack: Stack,
    lookups: u64,
    firsts: Vec<u16>,
    blame: Blame,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct LocalityFindings {
    /// Bytes of addresses that a translation page maps.
    pub reach: Bytes,
    /// Translation pages that the cache holds for which the score stands.
    pub cache_pages: u64,
    /// Visits by distance.
    pub distances: Distances,
    /// Units looked up.
    pub lookups: u64,
    /// Who misses, in visits.
    pub blame: Blame,
}

impl Locality {
    /// Translation pages map `reach` bytes in units of `unit`; the score is that of a cache
    /// of `cache_pages` of them.
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

    /// Looks up what `record` of `group` touches.
    pub fn add(&mut self, record: &Record, group: u16) {
        if record.op == Op::Flush || record.len == 0 {
            return;
        }
        let first = record.offset / self.reach;
        let last = ((record.end() - 1) / self.reach).min(first + VISITS_MAX - 1);
        // Units of pages that are not visited are not looked up, or they would hide misses.
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
    /// Misses / visits of a cache of `pages`, the trace following itself; none without
    /// visits.
    #[must_use]
    pub fn miss_ratio(&self, pages: u64) -> Option<f64> {
        let visits = self.distances.visits();
        (visits > 0).then(|| self.distances.misses(pages) as f64 / visits as f64)
    }

    /// Misses / units looked up: the paper's ratio, but that the trace follows itself.
    #[must_use]
    pub fn miss_ratio_by_lookups(&self, pages: u64) -> Option<f64> {
        let lookups = self.lookups;
        (lookups > 0).then(|| self.distances.misses(pages) as f64 / lookups as f64)
    }

    /// 1 less the miss ratio of the cache that the score stands for.
    #[must_use]
    pub fn score(&self) -> Option<f64> {
        self.miss_ratio(self.cache_pages).map(|ratio| 1.0 - ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_out_by_hand() {
        // Pages of 64 KiB in units of 4 KiB, a cache of one page.
        let mut rule = Locality::new(Bytes(4096), Bytes(65536), 1);
        let mut add = |op, offset, len, group| rule.add(&Record::new(op, 0, offset, len), group);
        add(Op::Write, 0, 65536, 1); // 16 lookups, page 0
        add(Op::Read, 61440, 8192, 2); // pages 0 (a hit) and 1
        add(Op::Flush, 0, 0, 3);
        add(Op::Discard, 65536, 512, 4); // page 1: a hit
        let found = rule.finish();
        assert_eq!((found.distances.visits(), found.lookups), (4, 16 + 2 + 1));
        // Around: page 0 has 1 before it, page 1 has 0; both miss in a cache of one page.
        assert_eq!(found.miss_ratio(1), Some(0.5));
        assert_eq!(found.score(), Some(0.5));
        assert_eq!(found.miss_ratio(2), Some(0.0));
        assert_eq!(found.miss_ratio_by_lookups(1), Some(2.0 / 19.0));
        assert_eq!(found.blame.total(), 2.0);
        // A discard of everything looks up what it visits.
        let mut all = Locality::new(Bytes(4096), Bytes(65536), 1);
        all.add(&Record::new(Op::Discard, 0, 0, 1 << 50), 0);
        let all = all.finish();
        assert_eq!((all.distances.visits(), all.lookups), (VISITS_MAX, 16 * VISITS_MAX));
        let nothing = Locality::new(Bytes(4096), Bytes(65536), 1).finish();
        assert_eq!((nothing.score(), nothing.lookups), (None, 0));
    }
}
