//! The cache as a server sees it.

use std::fmt::Display;

use super::{Cache, Counts, USER, item_address};
use crate::index::{self, Entry, HITS_MAX};
use crate::items::{Item, ItemAddress, Items, Lookup, Meta, NewItem, Refusal};
use crate::record::{self, KEY_MAX, VALUE_MAX};
use crate::slab;
use prism_segments::Store;

/// Bytes of a record that are neither key nor value, at most.
const HEADER_MAX: usize = 32 + 16;
/// Records that are examined for a list of items at most: it is made while all clients wait.
const LISTED_MAX: u32 = 1 << 17;

fn meta_of(entry: &Entry, start: u32) -> Meta {
    let Entry { expires, access, fetched, stale, win, .. } = *entry;
    Meta { expires, last_access: start + access, fetched, stale, win }
}

fn with_meta(entry: Entry, meta: &Meta, start: u32) -> Entry {
    let Meta { expires, last_access, fetched, stale, win } = *meta;
    Entry { expires, access: last_access.saturating_sub(start), fetched, stale, win, ..entry }
}

impl<S: Store> Cache<S> {
    /// Counts a lookup that found `entry`, for cleaning.
    pub(super) fn count_use(&mut self, slot: index::Slot, entry: &Entry, now: u32) {
        let access = now.saturating_sub(self.start);
        let (slab, _) = self.split(entry.address);
        self.slabs[slab as usize].access = access;
        let hits = (entry.hits + 1).min(HITS_MAX);
        self.index.set(slot, &Entry { hits, access, fetched: true, ..*entry });
    }

    fn live_units(&self) -> u64 {
        self.slabs.iter().map(|slab| u64::from(slab.live)).sum()
    }

    /// Forgets everything if a flush is due.
    pub(super) fn flush_if_due(&mut self, now: u32) {
        let at = self.state.flush_at();
        if at != 0 && at <= now {
            self.state.set_flush_at(0);
            self.commits.changed();
            self.seal_all();
            self.state.set_first_slab(self.next_slab);
            self.index.clear();
            self.slabs.iter_mut().for_each(|slab| slab.live = 0);
        }
    }
}

impl<S: Store> Items for Cache<S> {
    fn longest(&self) -> usize {
        let slab =
            slab::longest(self.shape.segment_bytes as usize) as usize * record::UNIT as usize;
        (slab - HEADER_MAX).min(VALUE_MAX + KEY_MAX)
    }

    fn lookup(&mut self, key: &[u8], tag: u64, now: u32) -> Lookup<'_> {
        let hash = index::hash(key, self.seed);
        let Some((slot, entry)) = self.current(key, hash, now) else {
            self.counts.misses += 1;
            return Lookup::Miss;
        };
        self.count_use(slot, &entry, now);
        if self.in_memory(entry.address).is_none() {
            self.begin_read(tag, key.to_vec(), hash, &entry);
            return Lookup::Reading((entry.units * record::UNIT) as usize);
        }
        self.counts.hits_memory += 1;
        Lookup::Found(self.item(&entry).expect("as found"))
    }

    fn peek(&mut self, key: &[u8], now: u32) -> Option<(ItemAddress, Meta)> {
        let hash = index::hash(key, self.seed);
        let (_, entry) = self.current(key, hash, now)?;
        Some((self.item_address(entry.address), meta_of(&entry, self.start)))
    }

    fn finished(&mut self, now: u32, take: &mut dyn FnMut(u64, Option<Item<'_>>)) -> bool {
        while let Some(mut done) = self.finished.pop_front() {
            let (hash, address) = (done.read.hash, done.read.address);
            let (_, unit) = self.split(address);
            let current = self.index.find(hash, |entry| entry.address == address);
            let current = current.map(|(_, entry)| entry);
            match done.record(unit) {
                Ok(record) => {
                    let meta = match &current {
                        Some(entry) => meta_of(entry, self.start),
                        None => Meta { expires: record.expires, ..Meta::default() },
                    };
                    let expired = meta.expires != 0 && meta.expires <= now;
                    let item = Item {
                        key: record.key,
                        value: record.value,
                        flags: record.flags,
                        version: record.version,
                        at: item_address(address, done.read.slab),
                        meta,
                        from_flash: true,
                    };
                    self.counts.hits_flash += u64::from(!expired);
                    self.counts.misses += u64::from(expired);
                    take(done.read.tag, (!expired).then_some(item));
                }
                Err(another) => {
                    let key = std::mem::take(&mut done.read.key);
                    self.counts.false_reads += u64::from(another);
                    self.counts.lost_reads += u64::from(!another);
                    // It may have moved, or been replaced, while it was read.
                    let found = self.current(&key, hash, now).map(|(_, entry)| entry);
                    let moved = found.filter(|entry| {
                        entry.address != address || self.at(address).slab != done.read.slab
                    });
                    if let Some(data) = done.data.take() {
                        self.give_back(data);
                    }
                    if let Some(entry) = moved {
                        self.read_again(done.read.tag, key, hash, &entry, take);
                        continue;
                    }
                    if !another {
                        self.drop_lost(hash, address);
                    }
                    self.counts.misses += 1;
                    take(done.read.tag, None);
                }
            }
            if let Some(data) = done.data.take() {
                self.give_back(data);
            }
            return true;
        }
        false
    }

    fn is_current(&self, key: &[u8], at: ItemAddress) -> bool {
        let hash = index::hash(key, self.seed);
        self.index.find(hash, |entry| self.item_address(entry.address) == at).is_some()
    }

    fn next_version(&mut self) -> u64 {
        self.next_number()
    }

    fn insert(&mut self, item: NewItem<'_>, now: u32) -> Result<(), Refusal> {
        let value = item.value[0].len() + item.value[1].len();
        if item.key.len() + value > self.longest() || item.key.len() > KEY_MAX || value > VALUE_MAX
        {
            return Err(Refusal::TooLarge);
        }
        let hash = index::hash(item.key, self.seed);
        self.flush_if_due(now);
        let number = self.next_item;
        if !self.admits(record::units(&item, number) * record::UNIT) {
            self.remove(item.key);
            return Ok(());
        }
        let (address, units) = match self.append(USER, &item, number, hash) {
            Err(Refusal::Failed) => {
                // The client meant to replace the old version, which must not be found any more.
                self.remove(item.key);
                return Err(Refusal::Failed);
            }
            appended => appended?,
        };
        self.counts.inserts += 1;
        self.counts.insert_bytes += u64::from(record::units(&item, number) * record::UNIT);
        let blank = Entry { address, units, ..Entry::default() };
        let mut entry = with_meta(blank, &item.meta, self.start);
        entry.access = now.saturating_sub(self.start);
        self.enter(hash, &entry, now);
        if item.meta.stale {
            // This is not on flash, so another process must not find the item.
            let (slab, unit) = self.split(address);
            self.state.set_dead(slab, unit);
        }
        Ok(())
    }

    fn remove(&mut self, key: &[u8]) -> bool {
        let hash = index::hash(key, self.seed);
        let Some((slot, entry)) = self.entry_of(key, hash) else { return false };
        self.forget(&entry);
        self.index.remove(slot);
        true
    }

    fn set_meta(&mut self, key: &[u8], at: ItemAddress, meta: Meta) -> bool {
        let hash = index::hash(key, self.seed);
        let found = self.index.find(hash, |entry| self.item_address(entry.address) == at);
        let Some((slot, entry)) = found else { return false };
        let earlier = meta.expires != 0 && (entry.expires == 0 || meta.expires < entry.expires);
        if earlier || meta.stale && !entry.stale {
            // This is not on flash, so another process must not find the item.
            let (slab, unit) = self.split(entry.address);
            self.state.set_dead(slab, unit);
            self.forget_origins(entry.address);
            self.commits.changed();
        }
        self.index.set(slot, &with_meta(entry, &meta, self.start));
        true
    }

    fn flush_all(&mut self, at: u32, now: u32) {
        self.state.set_flush_at(at.max(1));
        self.commits.changed();
        self.flush_if_due(now);
    }

    fn buffered(&self, now: u32, take: &mut dyn FnMut(Item<'_>) -> bool) {
        let flush = self.state.flush_at();
        if flush != 0 && flush <= now {
            return;
        }
        let mut left = LISTED_MAX;
        for (place, slab) in (0..).zip(&self.slabs).filter(|(_, slab)| slab.live > 0) {
            let mut unit = 0;
            while unit < slab.fill.units {
                let address = self.address(place, unit);
                let Some(bytes) = self.in_memory(address) else { break };
                let (record, len) = record::parse(bytes).expect("a record in memory is whole");
                let hash = index::hash(record.key, self.seed);
                let found = self.index.find(hash, |entry| entry.address == address);
                let valid = |entry: &Entry| entry.expires == 0 || entry.expires > now;
                let entry = found.map(|(_, entry)| entry).filter(valid);
                let wants_more = entry.and_then(|entry| self.item(&entry)).is_none_or(&mut *take);
                left -= 1;
                if !wants_more || left == 0 {
                    return;
                }
                unit += (len as u32).div_ceil(record::UNIT);
            }
        }
    }

    fn len(&self) -> u64 {
        self.index.len()
    }

    fn figures(&self, add: &mut dyn FnMut(&str, &dyn Display)) {
        let Counts { hits_memory, hits_flash, copied, copied_bytes, dropped, .. } = self.counts;
        add("bytes", &(self.live_units() * u64::from(record::UNIT)));
        add("index_bytes", &self.index_bytes());
        add("hits_memory", &hits_memory);
        add("hits_flash", &hits_flash);
        add("cleaning_items_copied", &copied);
        add("cleaning_bytes_copied", &copied_bytes);
        add("cleaning_items_dropped", &dropped);
        add("admission_rejected", &self.counts.not_admitted);
        let [free, writing, full] = self.slab_counts();
        add("slabs_free", &free);
        add("slabs_writing", &writing);
        add("slabs_full", &full);
        let flash = self.store.counts();
        add("flash_pages_programmed", &flash.programs);
        add("flash_pages_copied", &flash.copies);
        add("flash_blocks_erased", &flash.erases);
    }
}

impl<S: Store> Cache<S> {
    /// Makes `entry` the current one of its hash. There is one at most: on flash two keys with the
    /// same hash could not be distinguished, so the other one's item goes.
    pub(super) fn enter(&mut self, hash: u64, entry: &Entry, now: u32) {
        let (slab, _) = self.split(entry.address);
        self.slabs[slab as usize].access = entry.access;
        if let Some((slot, old)) = self.index.find(hash, |_| true) {
            self.forget(&old);
            self.index.set(slot, entry);
        } else if let Some(evicted) = self.index.insert(hash, entry, now) {
            self.counts.index_full += 1;
            self.forget(&evicted);
        }
    }

    /// The item of an entry, if it is in memory.
    fn item(&self, entry: &Entry) -> Option<Item<'_>> {
        let bytes = self.in_memory(entry.address)?;
        let (record, _) = record::parse(bytes).expect("a record in memory is whole");
        Some(Item {
            key: record.key,
            value: record.value,
            flags: record.flags,
            version: record.version,
            at: self.item_address(entry.address),
            meta: meta_of(entry, self.start),
            from_flash: false,
        })
    }

    /// An item moved while it was read: from flash to memory, or to another place.
    fn read_again(
        &mut self,
        tag: u64,
        key: Vec<u8>,
        hash: u64,
        entry: &Entry,
        take: &mut dyn FnMut(u64, Option<Item<'_>>),
    ) {
        let Some(item) = self.item(entry) else {
            return self.begin_read(tag, key, hash, entry);
        };
        take(tag, Some(item));
        self.counts.hits_memory += 1;
    }

    /// Forgets an item that could not be read.
    fn drop_lost(&mut self, hash: u64, address: u64) {
        if let Some((slot, entry)) = self.index.find(hash, |entry| entry.address == address) {
            self.counts.damaged_reads += 1;
            self.forget(&entry);
            self.index.remove(slot);
        }
    }
}
