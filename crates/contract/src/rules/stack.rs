//! Stack distances: the number of different pages visited since the last visit to a page,
//! including the page itself.
//!
//! A visit to a page hits a least-recently-used cache of `c` pages exactly if its distance is
//! at most `c`. One pass over the visits therefore gives the miss ratio of every cache size
//! (Mattson and others, IBM Systems Journal, 1970). The distances are computed with a Fenwick
//! tree over the times of the last visits (Bennett and Kruskal, 1975). A time is the number
//! of a visit. Times are renumbered when the tree is full, so that it has at most four times
//! as many leaves as there are pages: at most 36 bytes per page in all.

use super::index::Index;

/// Leaves of the smallest tree.
const LEAVES_MIN: usize = 1 << 10;

/// Computes the stack distances of a sequence of visits.
#[derive(Debug)]
pub struct Stack {
    /// The time of the last visit to each page.
    last: Index,
    /// A Fenwick tree with a 1 at each time that is the last visit to some page.
    tree: Vec<u32>,
    /// The page visited at each time.
    pages: Vec<u64>,
    /// The time of the next visit.
    now: usize,
    /// The page visited last.
    newest: Option<u64>,
    /// The number of visits at each distance; index 0 is distance 1.
    distances: Vec<u64>,
    /// Pages in the order of their first visits.
    firsts: Vec<u64>,
}

impl Default for Stack {
    fn default() -> Self {
        Self {
            last: Index::default(),
            tree: vec![0; LEAVES_MIN + 1],
            pages: vec![0; LEAVES_MIN],
            now: 0,
            newest: None,
            distances: Vec::new(),
            firsts: Vec::new(),
        }
    }
}

impl Stack {
    /// Visits `page` and returns its distance, or `None` on the first visit.
    pub fn visit(&mut self, page: u64) -> Option<u32> {
        if self.newest == Some(page) {
            self.count(1);
            return Some(1);
        }
        self.newest = Some(page);
        if self.now == self.pages.len() {
            self.renumber();
        }
        let now = self.now;
        self.now += 1;
        self.pages[now] = page;
        let before = self.last.insert(page, now as u32);
        self.change(now, 1);
        let Some(before) = before else {
            self.firsts.push(page);
            return None;
        };
        // The pages whose last visit was at `before` or later, without the new visit.
        let distance = self.last.len() as u32 - self.sum(before as usize) + 1;
        self.change(before as usize, u32::MAX);
        self.count(distance);
        Some(distance)
    }

    fn count(&mut self, distance: u32) {
        let index = distance as usize - 1;
        if self.distances.len() <= index {
            self.distances.resize(index + 1, 0);
        }
        self.distances[index] += 1;
    }

    /// The sum of the leaves up to and including `time`.
    fn sum(&self, time: usize) -> u32 {
        let (mut at, mut sum) = (time + 1, 0u32);
        while at > 0 {
            sum = sum.wrapping_add(self.tree[at]);
            at &= at - 1;
        }
        sum
    }

    /// Adds `by` to the leaf at `time`, modulo 2^32.
    fn change(&mut self, time: usize, by: u32) {
        let mut at = time + 1;
        while at < self.tree.len() {
            self.tree[at] = self.tree[at].wrapping_add(by);
            at += at & at.wrapping_neg();
        }
    }

    /// Renumbers the last visits with the times from 0 on, in their order, and leaves space
    /// for at least as many further visits.
    fn renumber(&mut self) {
        let kept: Vec<u64> = (0..self.now)
            .filter(|&time| self.last.get(self.pages[time]) == Some(time as u32))
            .map(|time| self.pages[time])
            .collect();
        let leaves = (2 * kept.len()).next_power_of_two().max(LEAVES_MIN);
        self.now = kept.len();
        for (time, &page) in kept.iter().enumerate() {
            self.last.insert(page, time as u32);
        }
        self.pages = kept;
        self.pages.resize(leaves, 0);
        // Build a tree whose first `now` leaves are 1, in linear time.
        self.tree = vec![0; leaves + 1];
        for at in 1..=leaves {
            self.tree[at] += u32::from(at <= self.now);
            let parent = at + (at & at.wrapping_neg());
            if parent <= leaves {
                self.tree[parent] += self.tree[at];
            }
        }
    }

    /// Ends the sequence and returns the distances.
    ///
    /// The first visit to a page gets the distance that it has if the sequence is repeated.
    /// The pages counted by it are those visited after the last visit to the page, and those
    /// visited in the repetition before the page. Visiting all pages once more, in the order
    /// of their first visits, counts exactly these pages.
    ///
    /// Calls `each` with the distance of every first visit, in the order of the visits.
    #[must_use]
    pub fn finish(mut self, mut each: impl FnMut(u32)) -> Distances {
        let revisits = std::mem::take(&mut self.distances);
        for page in std::mem::take(&mut self.firsts) {
            // If the page is the newest one, `visit` returns distance 1, which is right.
            each(self.visit(page).expect("the page was visited before"));
        }
        Distances { revisits, first_visits: self.distances, pages: self.last.len() as u64 }
    }
}

/// How often each distance occurred.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distances {
    /// The number of visits at distance `i + 1`, without the first visit to each page.
    revisits: Vec<u64>,
    /// The number of first visits at distance `i + 1` if the sequence is repeated.
    first_visits: Vec<u64>,
    /// The number of different pages.
    pages: u64,
}

impl Distances {
    /// The number of different pages visited.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// The number of visits.
    #[must_use]
    pub fn visits(&self) -> u64 {
        self.revisits.iter().sum::<u64>() + self.pages
    }

    /// The number of misses of a least-recently-used cache of `size` pages that is empty at
    /// the start.
    #[must_use]
    pub fn cold_misses(&self, size: u64) -> u64 {
        self.pages + beyond(&self.revisits, size)
    }

    /// The number of misses of a least-recently-used cache of `size` pages in a repetition of
    /// the sequence.
    #[must_use]
    pub fn misses(&self, size: u64) -> u64 {
        beyond(&self.revisits, size) + beyond(&self.first_visits, size)
    }

    /// [`Distances::misses`] for each size, from 0 to the smallest size without misses.
    #[must_use]
    pub fn curve(&self) -> Vec<u64> {
        let end = self.revisits.len().max(self.first_visits.len());
        let at = |counts: &[u64], index: usize| counts.get(index).copied().unwrap_or(0);
        let mut misses = self.visits();
        let mut curve = vec![misses];
        for index in 0..end {
            misses -= at(&self.revisits, index) + at(&self.first_visits, index);
            curve.push(misses);
        }
        curve
    }
}

/// The number of visits with a distance above `size`.
fn beyond(counts: &[u64], size: u64) -> u64 {
    counts.iter().skip(usize::try_from(size).unwrap_or(usize::MAX)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use prism_base::Rng;
    use prism_testkit::seeds;

    /// The misses of the last of `rounds` repetitions, with a naive model of the cache: a list
    /// with the most recent page first.
    fn lru_misses(size: usize, visits: &[u64], rounds: usize) -> u64 {
        let mut cache: Vec<u64> = Vec::new();
        let mut misses = 0;
        for round in 0..rounds {
            misses = if round + 1 == rounds { 0 } else { misses };
            for &page in visits {
                match cache.iter().position(|&held| held == page) {
                    Some(place) => {
                        cache.remove(place);
                    }
                    None => misses += 1,
                }
                cache.insert(0, page);
                cache.truncate(size);
            }
        }
        misses
    }

    fn check(visits: &[u64]) {
        let mut stack = Stack::default();
        visits.iter().for_each(|&page| {
            stack.visit(page);
        });
        let distances = stack.finish(|_| {});
        assert_eq!(distances.visits(), visits.len() as u64);
        let curve = distances.curve();
        for size in 0..=distances.pages() as usize + 2 {
            let cold = distances.cold_misses(size as u64);
            assert_eq!(cold, lru_misses(size, visits, 1), "cold, size {size}, {visits:?}");
            let warm = distances.misses(size as u64);
            assert_eq!(warm, lru_misses(size, visits, 3), "warm, size {size}, {visits:?}");
            assert_eq!(curve.get(size).copied().unwrap_or(0), warm);
        }
    }

    #[test]
    fn hand_computed_example() {
        // In 7 8 9 7 7, the second visit to 7 has distance 3 and the third has distance 1. If
        // the sequence is repeated, the first visits to 7, 8 and 9 have distances 1, 3 and 3.
        let mut stack = Stack::default();
        let distances: Vec<_> = [7, 8, 9, 7, 7].map(|page| stack.visit(page)).to_vec();
        assert_eq!(distances, [None, None, None, Some(3), Some(1)]);
        let ended = stack.finish(|_| {});
        assert_eq!((ended.visits(), ended.pages()), (5, 3));
        assert_eq!([0, 1, 2, 3].map(|size| ended.cold_misses(size)), [5, 4, 4, 3]);
        assert_eq!([0, 1, 2, 3].map(|size| ended.misses(size)), [5, 3, 3, 0]);
    }

    #[test]
    fn random_visits_agree_with_a_model_of_the_cache() {
        check(&[]);
        check(&[1]);
        check(&[1, 1, 1]);
        for seed in seeds(0..60) {
            let mut rng = Rng::stream(seed, "stack");
            let (len, pages) = (1 + rng.below(120), 1 + rng.below(24));
            let visits: Vec<u64> = (0..len).map(|_| rng.below(pages)).collect();
            check(&visits);
        }
    }

    #[test]
    fn distances_are_right_after_renumbering() {
        let mut rng = Rng::stream(5, "stack");
        // More visits than leaves, and more pages than the smallest tree holds.
        let visits: Vec<u64> = (0..6_000).map(|_| rng.below(700)).collect();
        let mut stack = Stack::default();
        let mut recent: Vec<u64> = Vec::new();
        for &page in &visits {
            let place = recent.iter().position(|&held| held == page);
            let expected = place.map(|place| {
                recent.remove(place);
                place as u32 + 1
            });
            recent.insert(0, page);
            assert_eq!(stack.visit(page), expected);
        }
        let many: Vec<u64> = (0..5_000).chain(0..5_000).collect();
        let mut stack = Stack::default();
        let found = many.iter().filter(|&&page| stack.visit(page) == Some(5_000)).count();
        assert_eq!(found, 5_000);
    }
}
