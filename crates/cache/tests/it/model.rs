//! A cache in a map, whose reads end late and in any order, and which is busy now and then: what
//! the protocol may meet, without flash.

use std::collections::BTreeMap;
use std::fmt::Display;

use prism_base::Rng;
use prism_cache::items::{Item, ItemAddress, Items, Lookup, Meta, NewItem, Refusal};

/// The longest sum of key and value.
pub const LONGEST: usize = 1 << 20;

#[derive(Clone)]
struct Stored {
    value: Vec<u8>,
    flags: u32,
    version: u64,
    at: ItemAddress,
    meta: Meta,
}

fn item<'a>(key: &'a [u8], stored: &'a Stored, meta: Meta, from_flash: bool) -> Item<'a> {
    let Stored { value, flags, version, at, .. } = stored;
    Item { key, value, flags: *flags, version: *version, at: *at, meta, from_flash }
}

/// The cache.
#[derive(Default)]
pub struct Model {
    items: BTreeMap<Vec<u8>, Stored>,
    last_version: u64,
    last_address: u64,
    /// Delays and refusals; without it, lookups find their items at once.
    pub chance: Option<Rng>,
    reads: Vec<(u64, Vec<u8>, Stored)>,
    /// The most reads that were in flight.
    pub reads_max: usize,
}

impl Model {
    /// A cache that delays and refuses.
    pub fn late(rng: Rng) -> Self {
        Self { chance: Some(rng), ..Self::default() }
    }

    /// Whether something that has one chance in four happens.
    fn happens(&mut self) -> bool {
        self.chance.as_mut().is_some_and(|rng| rng.below(4) == 0)
    }

    fn forget_expired(&mut self, key: &[u8], now: u32) {
        let expired = |stored: &Stored| stored.meta.expires != 0 && stored.meta.expires <= now;
        if self.items.get(key).is_some_and(expired) {
            self.items.remove(key);
        }
    }
}

impl Items for Model {
    fn longest(&self) -> usize {
        LONGEST
    }

    fn lookup(&mut self, key: &[u8], tag: u64, now: u32) -> Lookup<'_> {
        self.forget_expired(key, now);
        let reads = self.chance.is_some() && !self.happens();
        let Some((key, stored)) = self.items.get_key_value(key) else { return Lookup::Miss };
        let (key, meta) = (key.clone(), stored.meta);
        if reads {
            self.reads.push((tag, key.clone(), stored.clone()));
            self.reads_max = self.reads_max.max(self.reads.len());
        }
        let stored = self.items.get_mut(&key).expect("as found");
        (stored.meta.fetched, stored.meta.last_access) = (true, now);
        if reads {
            return Lookup::Reading(stored.value.len() + key.len());
        }
        let (key, stored) = self.items.get_key_value(&key).expect("as found");
        Lookup::Found(item(key, stored, meta, false))
    }

    fn peek(&mut self, key: &[u8], now: u32) -> Option<(ItemAddress, Meta)> {
        self.forget_expired(key, now);
        self.items.get(key).map(|stored| (stored.at, stored.meta))
    }

    fn finished(&mut self, now: u32, take: &mut dyn FnMut(u64, Option<Item<'_>>)) -> bool {
        if self.reads.is_empty() {
            return false;
        }
        let rng = self.chance.as_mut().expect("reads are late");
        let (tag, key, stored) =
            self.reads.swap_remove(rng.below(self.reads.len() as u64) as usize);
        let current = self.items.get(&key).filter(|current| current.at == stored.at);
        let meta = current.map_or(stored.meta, |current| current.meta);
        let expired = meta.expires != 0 && meta.expires <= now;
        take(tag, (!expired).then(|| item(&key, &stored, meta, true)));
        true
    }

    fn is_current(&self, key: &[u8], at: ItemAddress) -> bool {
        self.items.get(key).is_some_and(|stored| stored.at == at)
    }

    fn next_version(&mut self) -> u64 {
        self.last_version + 1
    }

    fn insert(&mut self, new: NewItem<'_>, now: u32) -> Result<(), Refusal> {
        let value = new.value.concat();
        if new.key.len() + value.len() > LONGEST {
            return Err(Refusal::TooLarge);
        }
        if self.happens() {
            return Err(Refusal::Busy);
        }
        self.last_version += 1;
        self.last_address += 1;
        let meta = Meta { last_access: now, ..new.meta };
        let at = ItemAddress(self.last_address);
        let stored = Stored { value, flags: new.flags, version: new.version, at, meta };
        self.items.insert(new.key.to_vec(), stored);
        Ok(())
    }

    fn remove(&mut self, key: &[u8]) -> bool {
        self.items.remove(key).is_some()
    }

    fn set_meta(&mut self, key: &[u8], at: ItemAddress, meta: Meta) -> bool {
        let stored = self.items.get_mut(key).filter(|stored| stored.at == at);
        stored.map(|stored| stored.meta = meta).is_some()
    }

    fn flush_all(&mut self, at: u32, now: u32) {
        if at <= now {
            self.items.clear();
        }
    }

    fn buffered(&self, now: u32, take: &mut dyn FnMut(Item<'_>) -> bool) {
        let valid = |meta: &Meta| meta.expires == 0 || meta.expires > now;
        let valid = self.items.iter().filter(|(_, stored)| valid(&stored.meta));
        for (key, stored) in valid {
            if !take(item(key, stored, stored.meta, false)) {
                return;
            }
        }
    }

    fn len(&self) -> u64 {
        self.items.len() as u64
    }

    fn figures(&self, _add: &mut dyn FnMut(&str, &dyn Display)) {}
}
