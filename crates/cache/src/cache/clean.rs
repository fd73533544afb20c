//! Cleaning: slabs are freed before the last one is used up.
//!
//! A victim's table of contents says which items it has, and the index which of them are current.
//! Those worth keeping are copied to a slab of their own, the others are dropped, and the slab is
//! freed. Which slab is next, and what is kept, is the [`Eviction`].

use prism_base::Nanos;
use prism_flash::{Buffer, FlashError};

use super::{COPIES, Cache, NONE, Phase, Slab, Task};
use crate::index::Entry;
use crate::items::{Meta, NewItem};
use crate::record::{self, At, UNIT};
use crate::slab::{self, Content, Fill};
use prism_segments::Store;

/// The share of a slab's items that is current, at most, in a slab that is cleaned for its garbage.
const GARBAGE: (u32, u32) = (3, 4);
/// Victims at once.
const AT_ONCE: usize = 4;
/// The largest share of a slab that is copied, in percent: cleaning that copies all of every victim
/// gains no space and never ends.
const COPIED_MAX: u32 = 90;
/// Bytes between two items that are read with them rather than apart.
const GAP: u32 = 16 << 10;
/// Bytes of a read of items to be copied.
const RUN: u32 = 256 << 10;

/// What happens to the items of a slab that is cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// The slab that was filled first is dropped with all of its items, as fatcache does.
    Drop,
    /// The slab that was filled first is freed; all of its current items are copied, up to this
    /// share of a slab in percent.
    Reinsert {
        /// Percent of a slab.
        most: u32,
    },
    /// The slab with the fewest current items is freed; all of these are copied, up to this share
    /// of a slab in percent.
    Greedy {
        /// Percent of a slab.
        most: u32,
    },
    /// With time, the slab with the fewest current items if these are less than three quarters of
    /// it, else the one that was filled first; items used since cleaning last met them are copied,
    /// up to this share of a slab in percent. Without time, the slab that was not used for longest,
    /// and nothing is copied.
    Integrated {
        /// Percent of a slab.
        most: u32,
    },
}

impl Eviction {
    /// What the server does at the levels at which the cache cleans flash itself.
    pub const INTEGRATED: Self = Self::Integrated { most: 20 };
    /// What the server does where flash is cleaned below the cache.
    pub const REINSERTED: Self = Self::Reinsert { most: 20 };
}

/// A slab that is being cleaned.
#[derive(Debug)]
pub(super) struct Victim {
    slab: u32,
    /// Whether items may be copied.
    copies: bool,
    /// Reads of items that are in flight or wait for a slab.
    left: u32,
    /// The table was read.
    listed: bool,
    /// Items that were read and wait for a buffer.
    waiting: Vec<(u32, Vec<Content>, Buffer)>,
    /// The changes that have to be durable before the slab is freed: those with its last copy.
    changes: u64,
    begun: Nanos,
}

impl<S: Store> Cache<S> {
    /// Begins to clean as many slabs as are needed.
    pub(super) fn clean(&mut self) {
        if self.failure.is_some() {
            return;
        }
        self.copy_waiting();
        if self.closing {
            return;
        }
        let (low, high) = match self.shape.dynamic_reserve {
            true => (self.reserve.low(), self.reserve.high()),
            // Enough for all LUNs to be written while others are cleaned.
            false => (2, 2 + self.reserve.span()),
        };
        while self.victims.len() < AT_ONCE {
            // A victim without current items is free at once.
            let unused = self.store.unused();
            if unused + self.victims.len() as u32 >= high {
                break;
            }
            let urgent = unused < low;
            let Some(slab) = self.choose(urgent) else { break };
            self.begin_victim(slab, !urgent || !self.shape.dynamic_reserve);
        }
    }

    fn choose(&self, urgent: bool) -> Option<u32> {
        let durable = (0..).zip(&self.slabs).filter(|(_, slab)| slab.phase == Phase::Durable);
        let chosen = match self.eviction {
            Eviction::Drop | Eviction::Reinsert { .. } => durable.min_by_key(|(_, s)| s.number),
            Eviction::Greedy { .. } => durable.min_by_key(|(_, s)| (s.live, s.number)),
            Eviction::Integrated { .. } if urgent => {
                durable.min_by_key(|(_, slab)| (slab.live != 0, slab.access, slab.number))
            }
            // In a cache whose items are all current the oldest slab is next, however little of
            // another one is not: its items had the longest time to be used.
            Eviction::Integrated { .. } => durable.min_by_key(|(_, slab)| {
                let mostly_dead = slab.live * GARBAGE.1 <= slab.fill.units * GARBAGE.0;
                (!mostly_dead, if mostly_dead { slab.live } else { 0 }, slab.number)
            }),
        };
        chosen.map(|(slab, _)| slab)
    }

    fn begin_victim(&mut self, slab: u32, copies: bool) {
        let copies = copies && !matches!(self.eviction, Eviction::Drop);
        let info = &mut self.slabs[slab as usize];
        info.phase = Phase::Cleaning;
        let Slab { fill, live, .. } = *info;
        let begun = self.now;
        let waiting = Vec::new();
        let victim = Victim { slab, copies, left: 0, listed: false, waiting, changes: 0, begun };
        self.victims.push(victim);
        if live == 0 {
            self.victims.last_mut().expect("just added").listed = true;
            return self.free_if_done(slab);
        }
        if !self.payload {
            return self.clean_bare(slab, fill);
        }
        let page = self.shape.page_bytes;
        let table = slab::table_bytes(fill.items) as u32;
        let begin = (self.shape.segment_bytes - table) / page * page;
        let data = self.buffer((self.shape.segment_bytes - begin) as usize);
        let tag = self.task(Task::Table { victim: slab });
        self.store.read(slab, begin, data, tag);
    }

    /// Cleans a slab of a simulation, at once.
    fn clean_bare(&mut self, slab: u32, fill: Fill) {
        let items = self.contents_bare(slab, fill);
        for item in self.drop_items(slab, &items) {
            if !self.copy_bare(slab, &item) {
                self.drop_copy(slab, &item);
            }
        }
        self.victim(slab).listed = true;
        self.free_if_done(slab);
    }

    fn victim(&mut self, slab: u32) -> &mut Victim {
        let of_slab = |victim: &&mut Victim| victim.slab == slab;
        self.victims.iter_mut().find(of_slab).expect("a victim until it is free")
    }

    /// The table of contents of a victim was read.
    pub(super) fn table_read(&mut self, slab: u32, result: Result<(), FlashError>, data: Buffer) {
        let fill = self.slabs[slab as usize].fill;
        let whole = result.is_ok() && slab::table_is_whole(&data, fill);
        if whole {
            let items: Vec<Content> = slab::contents(&data, fill).collect();
            let keep = self.drop_items(slab, &items);
            self.read_items(slab, keep);
        } else {
            self.drop_unlisted(slab);
        }
        self.give_back(data);
        self.victim(slab).listed = true;
        self.free_if_done(slab);
    }

    /// Removes the items of a victim from the index, but for those to be copied, which it returns.
    fn drop_items(&mut self, slab: u32, items: &[Content]) -> Vec<Content> {
        let percent = match self.eviction {
            Eviction::Drop => 0,
            Eviction::Reinsert { most }
            | Eviction::Greedy { most }
            | Eviction::Integrated { most } => most,
        };
        let percent = percent.min(COPIED_MAX);
        let copies = self.victim(slab).copies;
        let most = u64::from(self.shape.segment_bytes / UNIT) * u64::from(percent) / 100;
        let mut left = if copies { most } else { 0 };
        let mut keep = Vec::new();
        for item in items {
            let address = self.address(slab, item.unit);
            let found = self.index.find(item.hash, |entry| entry.address == address);
            let Some((slot, entry)) = found else { continue };
            let used = entry.hits > 0 || !matches!(self.eviction, Eviction::Integrated { .. });
            if used && u64::from(item.units) <= left {
                left -= u64::from(item.units);
                keep.push(*item);
            } else {
                // Another process may find the slab, if this one is killed before it is free.
                self.forget(&entry);
                self.index.remove(slot);
                self.counts.dropped += 1;
            }
        }
        keep
    }

    /// The table of a victim cannot be read: finds its items in the index.
    fn drop_unlisted(&mut self, slab: u32) {
        let (begin, end) = (self.address(slab, 0), self.address(slab + 1, 0));
        let is_kept = |entry: &Entry| !(begin..end).contains(&entry.address);
        let dropped: Vec<Entry> = self.index.entries().filter(|entry| !is_kept(entry)).collect();
        dropped.iter().for_each(|entry| self.forget(entry));
        self.counts.dropped += self.index.retain(is_kept);
    }

    /// Reads the items to be copied, neighbours together.
    fn read_items(&mut self, slab: u32, keep: Vec<Content>) {
        let mut run: Vec<Content> = Vec::new();
        for item in keep {
            let begin = run.first().map_or(item.unit, |first| first.unit);
            let end = run.last().map_or(item.unit, |last| last.unit + last.units);
            let fits = (item.unit + item.units - begin) * UNIT <= RUN;
            if !fits || (item.unit - end) * UNIT > GAP {
                self.read_run(slab, std::mem::take(&mut run));
            }
            run.push(item);
        }
        self.read_run(slab, run);
    }

    fn read_run(&mut self, slab: u32, items: Vec<Content>) {
        let (Some(first), Some(last)) = (items.first(), items.last()) else { return };
        let page = self.shape.page_bytes;
        let begin = first.unit * UNIT / page * page;
        let end = ((last.unit + last.units) * UNIT).div_ceil(page) * page;
        let data = self.buffer((end.min(self.shape.segment_bytes) - begin) as usize);
        let tag = self.task(Task::Copy { victim: slab, offset: begin, items });
        self.victim(slab).left += 1;
        self.store.read(slab, begin, data, tag);
    }

    /// Items to be copied were read.
    pub(super) fn copies_read(
        &mut self,
        slab: u32,
        offset: u32,
        items: Vec<Content>,
        result: Result<(), FlashError>,
        data: Buffer,
    ) {
        if result.is_ok() {
            self.victim(slab).waiting.push((offset, items, data));
            self.copy_waiting();
            return;
        }
        for item in items {
            self.drop_copy(slab, &item);
        }
        self.give_back(data);
        self.victim(slab).left -= 1;
        self.free_if_done(slab);
    }

    fn drop_copy(&mut self, slab: u32, item: &Content) {
        let address = self.address(slab, item.unit);
        if let Some((slot, entry)) = self.index.find(item.hash, |entry| entry.address == address) {
            self.forget(&entry);
            self.index.remove(slot);
            self.counts.dropped += 1;
        }
    }

    /// Copies what was read, as long as there is space.
    fn copy_waiting(&mut self) {
        let slabs: Vec<u32> = self.victims.iter().map(|victim| victim.slab).collect();
        for slab in slabs {
            while let Some((offset, mut items, data)) = self.victim(slab).waiting.pop() {
                while let Some(item) = items.pop() {
                    if !self.copy(slab, &item, &data[(item.unit * UNIT - offset) as usize..]) {
                        items.push(item);
                        break;
                    }
                }
                if !items.is_empty() {
                    self.victim(slab).waiting.push((offset, items, data));
                    break;
                }
                self.give_back(data);
                let victim = self.victim(slab);
                victim.left -= 1;
                if victim.left == 0 {
                    self.free_if_done(slab);
                    break;
                }
            }
        }
    }

    /// Copies an item, if it is still current; false if there is no space now.
    fn copy(&mut self, slab: u32, item: &Content, bytes: &[u8]) -> bool {
        let address = self.address(slab, item.unit);
        let found = self.index.find(item.hash, |entry| entry.address == address);
        let Some((_, entry)) = found else { return true };
        let at = At { slab: self.slabs[slab as usize].number, unit: item.unit };
        let Some(record) = record::read(bytes, at) else {
            self.drop_copy(slab, item);
            return true;
        };
        let meta = Meta { expires: entry.expires, ..Meta::default() };
        let new = NewItem {
            key: record.key,
            value: [record.value, &[]],
            flags: record.flags,
            version: record.version,
            meta,
        };
        match self.append(COPIES, &new, record.number, item.hash) {
            Ok((address, units)) => {
                let (slot, _) = self
                    .index
                    .find(item.hash, |other| other.address == entry.address)
                    .expect("as found above");
                let of_slab = &mut self.slabs[slab as usize];
                of_slab.live = of_slab.live.saturating_sub(entry.units);
                self.moved(entry.address, address);
                self.victim(slab).changes = self.changes();
                self.index.set(slot, &Entry { address, units, hits: 0, ..entry });
                let (to, unit) = self.split(address);
                if entry.stale {
                    self.state.set_dead(to, unit);
                }
                self.slabs[to as usize].access =
                    self.slabs[to as usize].access.max(self.slabs[slab as usize].access);
                self.counts.copied += 1;
                self.counts.copied_bytes += u64::from(item.units * UNIT);
            }
            // Only another slab could take it, and there is none: cleaning must go on.
            Err(_) if self.failure.is_some() || self.is_out_of_slabs() => {
                self.drop_copy(slab, item);
            }
            Err(_) => return false,
        }
        true
    }

    /// Whether no slab is erased, or will be without cleaning.
    fn is_out_of_slabs(&mut self) -> bool {
        self.store.unused() == 0
    }

    /// Frees the victims whose copies have become durable.
    pub(super) fn free_copied(&mut self) {
        let slabs: Vec<u32> = self.victims.iter().map(|victim| victim.slab).collect();
        slabs.into_iter().for_each(|slab| self.free_if_done(slab));
    }

    /// Frees a victim of which nothing is left, and whose copies are durable.
    fn free_if_done(&mut self, slab: u32) {
        let Some(place) = self.victims.iter().position(|victim| victim.slab == slab) else {
            return;
        };
        if !self.victims[place].listed || self.victims[place].left > 0 {
            return;
        }
        if self.victims[place].changes > self.durable() {
            return;
        }
        self.free_origins(slab);
        let victim = self.victims.swap_remove(place);
        self.counts.slabs_cleaned += 1;
        self.counts.slabs_dropped += u64::from(!victim.copies);
        self.reserve.reclaimed(Nanos(self.now.0.saturating_sub(victim.begun.0)));
        self.state.end(slab, self.slabs[slab as usize].number);
        if self.slabs[slab as usize].buffer != NONE {
            let number = self.slabs[slab as usize].number;
            self.buffers.cached.retain(|&(_, of, at)| (of, at) != (slab, number));
            self.buffers.free.push(self.slabs[slab as usize].buffer);
        }
        self.slabs[slab as usize] = Slab::FREE;
        if let Err(error) = self.store.free(slab) {
            // A block that cannot be erased is lost; the others go on.
            if matches!(error, FlashError::Medium(_)) {
                self.failure = Some(error);
            }
        }
    }
}
