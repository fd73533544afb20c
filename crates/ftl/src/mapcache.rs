//! The cache for a map on flash (DFTL: Gupta, Kim, Urgaonkar, ASPLOS'09).
//!
//! The simulator keeps the whole map in memory all the same; this cache decides which accesses
//! would have read a translation page, and which translation pages have to be rewritten. Entries
//! are in LRU order, and those of one translation page are linked, so that writing a page back
//! cleans all of its entries at once, as DFTL's batched updates do. 40 bytes per entry.

use prism_base::codec::{invalid, load, save};
use prism_base::{FastMap, Snapshot, counts};

/// No node.
const NONE: u32 = u32::MAX;

/// One cached entry.
#[derive(Clone, Copy, Debug)]
struct Node {
    lpn: u32,
    dirty: bool,
    /// Neighbours in LRU order.
    newer: u32,
    older: u32,
    /// Neighbours of the same translation page.
    before: u32,
    after: u32,
}

/// The entry that was evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evicted {
    /// An unchanged entry.
    Clean,
    /// A changed entry of this translation page, which has to be rewritten. Its other changed
    /// entries are written with it and are clean now.
    Dirty(u32),
}

/// Counts of accesses to the map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapCounts {
    /// Entries found.
    pub hits: u64,
    /// Entries not found.
    pub misses: u64,
    /// Translation pages read to bring entries in.
    pub loads: u64,
    /// Translation pages rewritten, or merged into a rewrite that was in flight.
    pub writebacks: u64,
}

counts!(MapCounts { values: hits, misses, loads, writebacks; });

impl MapCounts {
    /// Misses over all accesses; 0 if there were none.
    #[must_use]
    pub fn miss_ratio(&self) -> f64 {
        let accesses = self.hits + self.misses;
        if accesses == 0 { 0.0 } else { self.misses as f64 / accesses as f64 }
    }
}

/// The cached map entries of a drive.
#[derive(Clone, Debug)]
pub struct MapCache {
    capacity: usize,
    per_page: u32,
    nodes: Vec<Node>,
    free: Vec<u32>,
    index: FastMap<u32, u32>,
    /// First cached entry of each translation page.
    pages: FastMap<u32, u32>,
    newest: u32,
    oldest: u32,
}

/// As the entries, the most recently used first, each with whether it has changed.
impl Snapshot for MapCache {
    fn save_fields(&self, out: &mut Vec<u8>) {
        let mut at = self.newest;
        let entries = std::iter::from_fn(|| {
            let node = (at != NONE).then(|| self.nodes[at as usize])?;
            at = node.older;
            Some((node.lpn, node.dirty))
        });
        save(&entries.collect::<Vec<(u32, bool)>>(), out);
    }

    fn load_fields(&mut self, from: &mut &[u8]) -> std::io::Result<()> {
        for (lpn, dirty) in load::<Vec<(u32, bool)>>(from)? {
            if self.index.contains_key(&lpn) || self.is_over(1) {
                return Err(invalid("an entry of the map is cached twice, or there are too many"));
            }
            self.insert(lpn, false, dirty);
        }
        Ok(())
    }
}

impl MapCache {
    /// A cache for `capacity` entries of translation pages with `per_page` entries each.
    #[must_use]
    pub fn new(capacity: usize, per_page: u32) -> Self {
        Self {
            capacity: capacity.max(1),
            per_page,
            nodes: Vec::new(),
            free: Vec::new(),
            index: FastMap::default(),
            pages: FastMap::default(),
            newest: NONE,
            oldest: NONE,
        }
    }

    /// The translation page that holds the entry of `lpn`.
    #[must_use]
    pub fn page_of(&self, lpn: u32) -> u32 {
        lpn / self.per_page
    }

    /// The number of cached entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether no entry is cached.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Accesses the entry of `lpn`, and changes it if `change`. Returns whether it is cached.
    pub fn touch(&mut self, lpn: u32, change: bool) -> bool {
        let Some(&node) = self.index.get(&lpn) else { return false };
        self.nodes[node as usize].dirty |= change;
        if self.newest != node {
            self.unlink(node);
            self.link_newest(node);
        }
        true
    }

    /// Changes the entry of `lpn` without making it recently used, because cleaning has moved the
    /// unit. Returns whether it is cached.
    pub fn change(&mut self, lpn: u32) -> bool {
        match self.index.get(&lpn) {
            Some(&node) => {
                self.nodes[node as usize].dirty = true;
                true
            }
            None => false,
        }
    }

    /// Inserts the entry of `lpn`, as the most recently used or, if it was not requested, as the
    /// least recently used. No effect if it is cached.
    pub fn insert(&mut self, lpn: u32, requested: bool, change: bool) {
        if self.index.contains_key(&lpn) {
            return;
        }
        let page = self.page_of(lpn);
        let after = self.pages.get(&page).copied().unwrap_or(NONE);
        let (newer, older) = (NONE, NONE);
        let node = Node { lpn, dirty: change, newer, older, before: NONE, after };
        let place = match self.free.pop() {
            Some(place) => {
                self.nodes[place as usize] = node;
                place
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        };
        if after != NONE {
            self.nodes[after as usize].before = place;
        }
        self.pages.insert(page, place);
        self.index.insert(lpn, place);
        if requested { self.link_newest(place) } else { self.link_oldest(place) }
    }

    /// Whether `more` further entries exceed the capacity.
    #[must_use]
    pub fn is_over(&self, more: usize) -> bool {
        self.index.len() + more > self.capacity
    }

    /// Evicts the least recently used entry; `None` if no entry is cached.
    pub fn evict(&mut self) -> Option<Evicted> {
        if self.oldest == NONE {
            return None;
        }
        let Node { lpn, dirty, .. } = self.nodes[self.oldest as usize];
        self.forget(lpn);
        if !dirty {
            return Some(Evicted::Clean);
        }
        let page = self.page_of(lpn);
        self.clean_page(page);
        Some(Evicted::Dirty(page))
    }

    /// Drops the entry of `lpn`, changed or not. Returns whether it was cached.
    pub fn forget(&mut self, lpn: u32) -> bool {
        let Some(node) = self.index.remove(&lpn) else { return false };
        self.unlink(node);
        let Node { before, after, .. } = self.nodes[node as usize];
        if after != NONE {
            self.nodes[after as usize].before = before;
        }
        let page = self.page_of(lpn);
        match (before, after) {
            (NONE, NONE) => {
                self.pages.remove(&page);
            }
            (NONE, _) => {
                self.pages.insert(page, after);
            }
            (_, _) => self.nodes[before as usize].after = after,
        }
        self.free.push(node);
        true
    }

    /// Drops every entry of `first..end`, for ranges larger than the cache.
    pub fn forget_range(&mut self, first: u32, end: u32) {
        let inside = |lpn: &&u32| (first..end).contains(*lpn);
        // Sorted, so that the free list does not depend on the order of the hash map.
        let mut gone: Vec<u32> = self.index.keys().filter(inside).copied().collect();
        gone.sort_unstable();
        for lpn in gone {
            self.forget(lpn);
        }
    }

    /// Translation page `page` is being rewritten: its entries are clean.
    pub fn clean_page(&mut self, page: u32) {
        let mut node = self.pages.get(&page).copied().unwrap_or(NONE);
        while node != NONE {
            self.nodes[node as usize].dirty = false;
            node = self.nodes[node as usize].after;
        }
    }

    /// Whether every entry is one of the first `units` logical units.
    #[must_use]
    pub fn is_below(&self, units: u32) -> bool {
        self.index.keys().all(|&lpn| lpn < units)
    }

    fn unlink(&mut self, node: u32) {
        let Node { newer, older, .. } = self.nodes[node as usize];
        match newer {
            NONE => self.newest = older,
            _ => self.nodes[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            _ => self.nodes[older as usize].newer = newer,
        }
    }

    fn link_newest(&mut self, node: u32) {
        let older = self.newest;
        self.nodes[node as usize].newer = NONE;
        self.nodes[node as usize].older = older;
        match older {
            NONE => self.oldest = node,
            _ => self.nodes[older as usize].newer = node,
        }
        self.newest = node;
    }

    fn link_oldest(&mut self, node: u32) {
        let newer = self.oldest;
        self.nodes[node as usize].older = NONE;
        self.nodes[node as usize].newer = newer;
        match newer {
            NONE => self.newest = node,
            _ => self.nodes[newer as usize].older = node,
        }
        self.oldest = node;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use prism_base::Rng;

    use prism_testkit::seed;

    use super::*;

    /// Most recently used first: unit and whether it was changed.
    type Model = VecDeque<(u32, bool)>;

    fn model_evict(model: &mut Model) -> Option<Evicted> {
        let (lpn, dirty) = model.pop_back()?;
        if !dirty {
            return Some(Evicted::Clean);
        }
        for (other, dirty) in model.iter_mut() {
            *dirty &= *other / 8 != lpn / 8;
        }
        Some(Evicted::Dirty(lpn / 8))
    }

    #[test]
    fn random_accesses_equal_a_list() {
        let mut rng = Rng::stream(seed(6), "mapcache");
        let mut cache = MapCache::new(20, 8);
        let mut model = Model::new();
        for _ in 0..20_000 {
            let lpn = rng.below(64) as u32;
            let change = rng.chance(0.5);
            let place = model.iter().position(|&(other, _)| other == lpn);
            match rng.below(6) {
                0..3 => {
                    assert_eq!(cache.touch(lpn, change), place.is_some());
                    if let Some((_, dirty)) = place.and_then(|at| model.remove(at)) {
                        model.push_front((lpn, dirty || change));
                    }
                }
                3 => {
                    let requested = rng.chance(0.5);
                    while cache.is_over(1) {
                        assert_eq!(cache.evict(), model_evict(&mut model));
                    }
                    cache.insert(lpn, requested, change);
                    let there = model.iter().any(|&(other, _)| other == lpn);
                    if !there && requested {
                        model.push_front((lpn, change));
                    } else if !there {
                        model.push_back((lpn, change));
                    }
                }
                4 => {
                    assert_eq!(cache.change(lpn), place.is_some());
                    if let Some(at) = place {
                        model[at].1 = true;
                    }
                }
                _ if rng.chance(0.2) => {
                    assert_eq!(cache.forget(lpn), place.is_some());
                    place.map(|at| model.remove(at));
                }
                _ => assert_eq!(cache.evict(), model_evict(&mut model)),
            }
            assert_eq!(cache.len(), model.len());
            if rng.chance(0.01) {
                // A round trip through a snapshot.
                let mut bytes = Vec::new();
                cache.save_fields(&mut bytes);
                let small = MapCache::new(1, 8).load_fields(&mut &bytes[..]);
                assert!(small.is_ok() == (model.len() <= 1));
                let mut again = MapCache::new(20, 8);
                again.load_fields(&mut &bytes[..]).unwrap();
                assert!(again.is_below(64));
                assert!(model.is_empty() || again.load_fields(&mut &bytes[..]).is_err());
                let mut again = MapCache::new(20, 8);
                again.load_fields(&mut &bytes[..]).unwrap();
                cache = again;
            }
        }
    }
}
