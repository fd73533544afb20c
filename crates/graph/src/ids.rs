//! The numbers that vertices have in the input, and their ranks.
//!
//! Ranks have the order of the numbers in the input, so the smallest label in a result is also the
//! smallest in the input.

/// Numbers below this are kept as bits.
const NARROW: u64 = 1 << 32;
/// Numbers of a page.
pub(crate) const PAGE_IDS: usize = 1 << 16;
/// Numbers of a page as they are, before it becomes bits.
const FEW_MAX: usize = 512;
/// Wide numbers that are not sorted, before they are.
const UNSORTED_MAX: usize = 1 << 20;

/// 65,536 consecutive numbers.
#[derive(Clone, Debug)]
enum Page {
    /// The low bits of those that are there, in order.
    Few(Vec<u16>),
    /// A bit for each number.
    Bits(Box<[u64; 1024]>),
}

impl Page {
    fn insert(&mut self, low: u16) {
        match self {
            Self::Bits(bits) => bits[usize::from(low >> 6)] |= 1 << (low & 63),
            Self::Few(few) => {
                let Err(at) = few.binary_search(&low) else { return };
                few.insert(at, low);
                if few.len() > FEW_MAX {
                    let mut bits = Box::new([0_u64; 1024]);
                    few.iter().for_each(|low| bits[usize::from(low >> 6)] |= 1 << (low & 63));
                    *self = Self::Bits(bits);
                }
            }
        }
    }

    fn add(&mut self, other: Self) {
        match (self, other) {
            (Self::Bits(bits), Self::Bits(others)) => {
                bits.iter_mut().zip(*others).for_each(|(word, other)| *word |= other);
            }
            (page, Self::Few(few)) => few.into_iter().for_each(|low| page.insert(low)),
            (page @ Self::Few(_), mut bits) => {
                std::mem::swap(page, &mut bits);
                page.add(bits);
            }
        }
    }

    fn len(&self) -> u64 {
        match self {
            Self::Few(few) => few.len() as u64,
            Self::Bits(bits) => bits.iter().map(|word| u64::from(word.count_ones())).sum(),
        }
    }
}

/// A set of numbers.
#[derive(Debug, Default)]
pub struct IdSet {
    pages: Vec<Option<Page>>,
    wide: Vec<u64>,
    sorted: usize,
}

impl IdSet {
    /// Adds a number.
    #[inline]
    pub fn insert(&mut self, id: u64) {
        if id >= NARROW {
            return self.insert_wide(id);
        }
        let page = (id >> 16) as usize;
        if page >= self.pages.len() {
            self.pages.resize(page + 1, None);
        }
        let page = self.pages[page].get_or_insert_with(|| Page::Few(Vec::new()));
        page.insert(id as u16);
    }

    /// The numbers of both sets.
    #[must_use]
    pub fn union(mut self, mut other: Self) -> Self {
        if self.pages.len() < other.pages.len() {
            std::mem::swap(&mut self.pages, &mut other.pages);
        }
        for (page, others) in self.pages.iter_mut().zip(other.pages) {
            match (page, others) {
                (_, None) => {}
                (page @ None, others) => *page = others,
                (Some(page), Some(others)) => page.add(others),
            }
        }
        self.wide.extend(other.wide);
        self.sort();
        self
    }

    fn insert_wide(&mut self, id: u64) {
        self.wide.push(id);
        if self.wide.len() - self.sorted > UNSORTED_MAX.max(self.sorted) {
            self.sort();
        }
    }

    fn sort(&mut self) {
        self.wide.sort_unstable();
        self.wide.dedup();
        self.sorted = self.wide.len();
    }

    /// The map to ranks.
    #[must_use]
    pub fn into_map(mut self) -> IdMap {
        self.sort();
        let mut before = Vec::with_capacity(self.pages.len());
        let mut words = Vec::with_capacity(self.pages.len());
        let mut count = 0;
        for page in &self.pages {
            before.push(count);
            let mut in_page = Vec::new();
            if let Some(Page::Bits(bits)) = page {
                let mut sum = 0_u32;
                in_page.extend(bits.iter().map(|word| {
                    let before = sum;
                    sum += word.count_ones();
                    before
                }));
            }
            words.push(in_page);
            count += page.as_ref().map_or(0, Page::len);
        }
        IdMap { pages: self.pages, before, words, narrow: count, wide: self.wide }
    }
}

/// The rank of each number of a set: how many smaller ones there are.
#[derive(Debug)]
pub struct IdMap {
    pages: Vec<Option<Page>>,
    /// Numbers before each page.
    before: Vec<u64>,
    /// Numbers before each word, in pages of bits.
    words: Vec<Vec<u32>>,
    narrow: u64,
    wide: Vec<u64>,
}

impl IdMap {
    /// The count of numbers.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.narrow + self.wide.len() as u64
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many numbers there are in each page, of those that are kept as bits.
    pub(crate) fn page_lens(&self) -> impl Iterator<Item = usize> + '_ {
        self.pages.iter().map(|page| page.as_ref().map_or(0, Page::len) as usize)
    }

    /// The rank of `id`, which has to be in the set.
    #[inline]
    #[must_use]
    pub fn rank(&self, id: u64) -> u64 {
        if id >= NARROW {
            return self.narrow + self.wide.partition_point(|other| *other < id) as u64;
        }
        let (page, low) = ((id >> 16) as usize, id as u16);
        let within = match &self.pages[page] {
            Some(Page::Bits(bits)) => {
                let word = usize::from(low >> 6);
                let below = bits[word] & ((1_u64 << (low & 63)) - 1);
                u64::from(self.words[page][word] + below.count_ones())
            }
            Some(Page::Few(few)) => few.partition_point(|other| *other < low) as u64,
            None => 0,
        };
        self.before[page] + within
    }

    /// The numbers, in order.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let pages = self.pages.iter().enumerate();
        let narrow = pages.filter_map(|(at, page)| Some((at, page.as_ref()?)));
        let narrow = narrow.flat_map(|(at, page)| {
            let lows: Vec<u16> = match page {
                Page::Few(few) => few.clone(),
                Page::Bits(bits) => (0..=u16::MAX)
                    .filter(|low| bits[usize::from(low >> 6)] >> (low & 63) & 1 == 1)
                    .collect(),
            };
            lows.into_iter().map(move |low| (at as u64) << 16 | u64::from(low))
        });
        narrow.chain(self.wide.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use prism_base::Rng;

    use super::*;

    #[test]
    fn random_ids_are_ranked_in_order() {
        for seed in prism_testkit::seeds(0..20) {
            let mut rng = Rng::stream(seed, "ids");
            let spread = [1_u64 << 10, 1 << 18, 1 << 32, 1 << 40, u64::MAX][rng.below(5) as usize];
            let (mut set, mut model) = (IdSet::default(), BTreeSet::new());
            for _ in 0..rng.below(20_000) {
                let id = rng.below(spread);
                set.insert(id);
                model.insert(id);
            }
            let mut others = IdSet::default();
            for _ in 0..rng.below(20_000) {
                let id = rng.below(spread / 2);
                others.insert(id);
                model.insert(id);
            }
            let map = set.union(others).into_map();
            assert_eq!(map.len(), model.len() as u64);
            assert!(map.iter().eq(model.iter().copied()));
            for (rank, id) in model.iter().enumerate() {
                assert_eq!(map.rank(*id), rank as u64, "{id}");
            }
        }
    }
}
