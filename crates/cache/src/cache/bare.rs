//! A cache without payload, for simulation: keys are hashes, records are not written, and tables of
//! contents stay in memory. Everything else is the code of a cache that serves.

use super::{COPIES, Cache, USER};
use crate::index::Entry;
use crate::items::{Items, Refusal};
use crate::record;
use crate::slab::{self, Content, Fill};
use prism_segments::Store;

impl<S: Store> Cache<S> {
    /// Looks up an item by the hash of its key. Returns whether it was in memory; `None` if it is
    /// not there.
    pub fn touch(&mut self, hash: u64, now: u32) -> Option<bool> {
        let found = self.index.find(hash, |_| true);
        let expired = |entry: &Entry| entry.expires != 0 && entry.expires <= now;
        let Some((slot, entry)) = found.filter(|(_, entry)| !expired(entry)) else {
            if let Some((slot, entry)) = found {
                self.forget(&entry);
                self.index.remove(slot);
            }
            self.counts.misses += 1;
            return None;
        };
        self.count_use(slot, &entry, now);
        let in_memory = self.in_memory(entry.address).is_some();
        self.counts.hits_memory += u64::from(in_memory);
        self.counts.hits_flash += u64::from(!in_memory);
        Some(in_memory)
    }

    /// Inserts an item with a key and a value of these lengths.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn insert_bare(
        &mut self,
        hash: u64,
        (key, value): (usize, usize),
        expires: u32,
        now: u32,
    ) -> Result<(), Refusal> {
        if key + value > self.longest() {
            return Err(Refusal::TooLarge);
        }
        let units = record::units_at_most(key, value);
        if !self.admits(units * record::UNIT) {
            self.remove_bare(hash);
            return Ok(());
        }
        let (address, rounded) = self.append_bare(USER, units, hash, expires)?;
        self.counts.inserts += 1;
        self.counts.insert_bytes += u64::from(units * record::UNIT);
        let access = now.saturating_sub(self.start);
        let entry = Entry { address, units: rounded, expires, access, ..Entry::default() };
        self.enter(hash, &entry, now);
        Ok(())
    }

    /// Removes an item by the hash of its key.
    pub fn remove_bare(&mut self, hash: u64) -> bool {
        let Some((slot, entry)) = self.index.find(hash, |_| true) else { return false };
        self.forget(&entry);
        self.index.remove(slot);
        true
    }

    fn append_bare(
        &mut self,
        stream: usize,
        units: u32,
        hash: u64,
        expires: u32,
    ) -> Result<(u64, u32), Refusal> {
        let slab = self.slab_for(stream, units)?;
        let info = &mut self.slabs[slab as usize];
        let unit = info.fill.units;
        slab::add(self.buffers.bytes_mut(info.buffer), &mut info.fill, hash, expires, units);
        let rounded = crate::index::length_of(crate::index::length_code(units));
        info.live += rounded;
        Ok((self.address(slab, unit), rounded))
    }

    /// Keeps the table of a slab that is complete, and has the store count the slab as written.
    pub(super) fn write_bare(&mut self, slab: u32) {
        let info = self.slabs[slab as usize];
        let bytes = self.buffers.bytes(info.buffer);
        let table = bytes[bytes.len() - slab::table_bytes(info.fill.items)..].to_vec();
        self.tables[slab as usize] = table.into_boxed_slice();
        let records = self.records_before(slab, self.shape.segment_bytes);
        self.slabs[slab as usize].writes += 1;
        self.slabs[slab as usize].submitted = self.shape.segment_bytes;
        let tag = self.task(super::Task::Write { slab, number: info.number, records });
        self.store.write(slab, 0, prism_flash::Buffer::default(), tag);
    }

    /// The items of a slab, whose table is not needed any more.
    pub(super) fn contents_bare(&mut self, slab: u32, fill: Fill) -> Vec<Content> {
        let table = std::mem::take(&mut self.tables[slab as usize]);
        slab::contents(&table, fill).collect()
    }

    /// Copies an item, if it is still current; false if there is no space now.
    pub(super) fn copy_bare(&mut self, slab: u32, item: &Content) -> bool {
        let address = self.address(slab, item.unit);
        let found = self.index.find(item.hash, |entry| entry.address == address);
        let Some((slot, entry)) = found else { return true };
        match self.append_bare(COPIES, item.units, item.hash, entry.expires) {
            Ok((address, units)) => {
                self.forget(&entry);
                self.index.set(slot, &Entry { address, units, hits: 0, ..entry });
                self.counts.copied += 1;
                self.counts.copied_bytes += u64::from(item.units * record::UNIT);
                true
            }
            Err(_) => false,
        }
    }
}
