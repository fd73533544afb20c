//! Reading items from flash.

use prism_flash::{Buffer, FlashError};

use super::{Cache, Task};
use crate::index::{Entry, Slot};
use crate::record::{self, Record, UNIT};
use prism_segments::Store;

/// A read in flight.
#[derive(Debug)]
pub(super) struct Read {
    /// The caller's number.
    pub(super) tag: u64,
    pub(super) key: Vec<u8>,
    pub(super) hash: u64,
    pub(super) address: u64,
    /// Bytes before the record in the pages that are read.
    pub(super) skip: u32,
    /// The number of the slab when the item was looked up.
    pub(super) slab: u64,
}

/// Bytes of reads in flight; a longer one is alone. More make no device faster, and each has a
/// buffer.
const READING_MAX: usize = 32 << 20;

/// A read that is complete.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) read: Read,
    pub(super) data: Option<Buffer>,
}

impl Finished {
    /// The record, if it is of the key that was looked up; an error says whether it is of another.
    pub(super) fn record(&self, unit: u32) -> Result<Record<'_>, bool> {
        let data = self.data.as_ref().ok_or(false)?;
        let at = record::At { slab: self.read.slab, unit };
        let record = record::read(&data[self.read.skip as usize..], at).ok_or(false)?;
        if record.key == self.read.key { Ok(record) } else { Err(true) }
    }
}

impl<S: Store> Cache<S> {
    /// The entry of a key. One in memory is compared; one on flash is taken to be the key's if its
    /// hash is.
    pub(super) fn entry_of(&self, key: &[u8], hash: u64) -> Option<(Slot, Entry)> {
        self.index.find(hash, |entry| match self.in_memory(entry.address) {
            Some(bytes) => record::parse(bytes).is_some_and(|(record, _)| record.key == key),
            None => true,
        })
    }

    /// As [`Cache::entry_of`]; one that is expired is removed.
    pub(super) fn current(&mut self, key: &[u8], hash: u64, now: u32) -> Option<(Slot, Entry)> {
        self.flush_if_due(now);
        let (slot, entry) = self.entry_of(key, hash)?;
        if entry.expires != 0 && entry.expires <= now {
            self.forget(&entry);
            self.index.remove(slot);
            return None;
        }
        Some((slot, entry))
    }

    /// Begins to read an item, or lets the read wait for others.
    pub(super) fn begin_read(&mut self, tag: u64, key: Vec<u8>, hash: u64, entry: &Entry) {
        let (slab, unit) = self.split(entry.address);
        let page = self.shape.page_bytes;
        let begin = unit * UNIT / page * page;
        let end = ((unit + entry.units) * UNIT).div_ceil(page) * page;
        let len = end.min(self.shape.segment_bytes) - begin;
        let read = Read {
            tag,
            key,
            hash,
            address: entry.address,
            skip: unit * UNIT - begin,
            slab: self.slabs[slab as usize].number,
        };
        if self.reading > 0 && self.reading + len as usize > READING_MAX {
            self.later.push_back((read, len));
        } else {
            self.submit_read(read, len);
        }
    }

    fn submit_read(&mut self, read: Read, len: u32) {
        let (slab, unit) = self.split(read.address);
        let begin = unit * UNIT - read.skip;
        let data = self.buffer(len as usize);
        let tag = self.task(Task::Read(read));
        self.reading += len as usize;
        self.store.read(slab, begin, data, tag);
    }

    pub(super) fn was_read(&mut self, read: Read, result: Result<(), FlashError>, data: Buffer) {
        self.reading -= data.len();
        while let Some((_, len)) = self.later.front() {
            if self.reading > 0 && self.reading + *len as usize > READING_MAX {
                break;
            }
            let (read, len) = self.later.pop_front().expect("just seen");
            self.submit_read(read, len);
        }
        let data = match result {
            Ok(()) => Some(data),
            Err(_) => {
                self.give_back(data);
                None
            }
        };
        self.finished.push_back(Finished { read, data });
    }
}
