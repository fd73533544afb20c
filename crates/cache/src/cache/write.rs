//! Filling slabs, writing and syncing them.

use prism_flash::FlashError;

use super::recover::SLAB_NUMBERS;
use super::{COPIES, Cache, FOR_COPIES, NONE, Phase, STREAMS, Slab, Task};
use crate::items::{NewItem, Refusal};
use crate::record::{self, At, UNIT};
use crate::slab;
use prism_segments::Store;

/// Writes of a slab in flight: one that flash works on and one that follows.
const WRITES: u16 = 2;
/// Numbers of insertions that are recorded at once.
const NUMBERS: u64 = 1 << 20;
/// What is wrong if no slab can be opened and none is to be erased.
const NO_SLABS: &str = "the cache has no block that can be erased; replace the device";

impl<S: Store> Cache<S> {
    /// The next number of an insertion.
    pub(super) fn next_number(&mut self) -> u64 {
        self.next_item += 1;
        if self.next_item >= self.state.numbers() {
            self.state.set_numbers(self.next_item + NUMBERS);
        }
        self.next_item
    }

    /// Copies an item to the open slab of a stream. Returns its address and its units.
    pub(super) fn append(
        &mut self,
        stream: usize,
        item: &NewItem<'_>,
        number: u64,
        hash: u64,
    ) -> Result<(u64, u32), Refusal> {
        let units = record::units(item, number);
        if units > slab::longest(self.shape.segment_bytes as usize) {
            return Err(Refusal::TooLarge);
        }
        let slab = self.slab_for(stream, units)?;
        let info = &mut self.slabs[slab as usize];
        let unit = info.fill.units;
        let bytes = self.buffers.bytes_mut(info.buffer);
        let place = (unit * UNIT) as usize..((unit + units) * UNIT) as usize;
        record::write(item, number, At { slab: info.number, unit }, &mut bytes[place]);
        slab::add(bytes, &mut info.fill, hash, item.meta.expires, units);
        // Counted as the index rounds it, so that what is subtracted later is what was added.
        let units = crate::index::length_of(crate::index::length_code(units));
        info.live += units;
        self.commits.changed();
        let info = &self.slabs[slab as usize];
        let filled = info.fill.units * UNIT;
        if filled - info.submitted >= self.chunk + self.shape.page_bytes {
            self.write_out(slab);
        }
        Ok((self.address(slab, unit), units))
    }

    /// The open slab of a stream with space for an item; the last one is sealed if it has none.
    pub(super) fn slab_for(&mut self, stream: usize, units: u32) -> Result<u32, Refusal> {
        if self.has_failed_commit() {
            return Err(Refusal::Failed);
        }
        let bytes = self.shape.segment_bytes as usize;
        let open = self.open[stream];
        if let Some(slab) = open.filter(|&s| self.slabs[s as usize].fill.has_space(units, bytes)) {
            return Ok(slab);
        }
        if self.failure.is_some() {
            return Err(Refusal::Failed);
        }
        // A slab is sealed only if another can be opened, so that it is not left partly filled.
        let opened = self.open_slab(stream)?;
        self.seal(stream);
        self.open[stream] = Some(opened);
        Ok(opened)
    }

    /// A buffer that is free, or that of the slab that became durable first.
    fn take_buffer(&mut self, stream: usize) -> Option<u16> {
        // The last one is for copies, so that cleaning never waits for clients.
        let left = self.buffers.free.len() + self.buffers.cached.len();
        if stream != COPIES && self.open[COPIES].is_none() && left <= 1 {
            return None;
        }
        if let Some(buffer) = self.buffers.free.pop() {
            return Some(buffer);
        }
        let (buffer, slab, number) = self.buffers.cached.pop_front()?;
        let slab = &mut self.slabs[slab as usize];
        if slab.number == number {
            slab.buffer = NONE;
        }
        Some(buffer)
    }

    fn open_slab(&mut self, stream: usize) -> Result<u32, Refusal> {
        if stream != COPIES && self.store.available() <= FOR_COPIES {
            self.clean();
            // If nothing is cleaned, no copy needs the last slab, and `open` takes it, or has the
            // device's error.
            if self.store.available() <= FOR_COPIES && !self.is_stuck() {
                return Err(Refusal::Busy);
            }
        }
        let buffer = self.take_buffer(stream).ok_or(Refusal::Busy)?;
        match self.store.open() {
            Ok(Some(slab)) => {
                let number = self.next_slab;
                self.next_slab += 1;
                if self.next_slab >= self.state.slab_numbers() + SLAB_NUMBERS / 2 {
                    self.state.set_slab_numbers(self.next_slab);
                }
                self.begin_slab(slab, number, buffer);
                self.slabs[slab as usize].copies = stream == COPIES;
                self.reserve.opened(self.now);
                Ok(slab)
            }
            Ok(None) => {
                self.buffers.free.push(buffer);
                match stream != COPIES && self.is_stuck() && self.store.available() == 0 {
                    true => Err(self.refuse(FlashError::NoSpace { what: NO_SLABS.into() })),
                    false => Err(Refusal::Busy),
                }
            }
            Err(error) => {
                self.buffers.free.push(buffer);
                Err(self.refuse(error))
            }
        }
    }

    /// Whether no slab will become free: none is being written, synced, cleaned or erased, and
    /// cleaning, which was tried, found none to begin with. All are open, or were lost when their
    /// erase failed.
    fn is_stuck(&mut self) -> bool {
        let awaits_erase = self.store.unused() > self.store.available();
        !self.closing
            && self.victims.is_empty()
            && self.unsynced.is_empty()
            && self.is_idle()
            && !awaits_erase
    }

    fn begin_slab(&mut self, slab: u32, number: u64, buffer: u16) {
        // In this order, so that a killed process leaves no record of a slab that is nowhere.
        slab::begin(self.buffers.bytes_mut(buffer), number);
        self.state.begin(slab, number);
        let access = self.slabs[slab as usize].access;
        self.slabs[slab as usize] =
            Slab { number, phase: Phase::Open, buffer, access, ..Slab::FREE };
    }

    /// Writes what is in the slab's buffer, a few chunks at a time: reads of the same LUN are not
    /// to wait for all of a slab. Of an open slab only whole chunks are written.
    pub(super) fn write_out(&mut self, slab: u32) {
        let slab_bytes = self.shape.segment_bytes;
        loop {
            let Slab { submitted, number, buffer, phase, fill, writes, .. } =
                self.slabs[slab as usize];
            let len = match phase {
                Phase::Writing => self.chunk.min(slab_bytes - submitted),
                _ => (fill.units * UNIT - submitted) / self.chunk * self.chunk,
            };
            if len == 0 || writes >= WRITES {
                return;
            }
            let len = len.min(self.chunk);
            let mut data = self.buffer(len as usize);
            let bytes = self.buffers.bytes(buffer);
            data.copy_from_slice(&bytes[submitted as usize..][..len as usize]);
            let records = self.records_before(slab, submitted + len);
            let tag = self.task(Task::Write { slab, number, records });
            self.slabs[slab as usize].submitted += len;
            self.slabs[slab as usize].writes += 1;
            self.store.write(slab, submitted, data, tag);
        }
    }

    /// Bytes of records of clients that are not submitted yet, up to `end` bytes of a slab.
    pub(super) fn records_before(&self, slab: u32, end: u32) -> u32 {
        let Slab { submitted, fill, copies, .. } = self.slabs[slab as usize];
        let records = if copies { 0 } else { fill.units * UNIT };
        end.min(records) - submitted.min(records)
    }

    /// Completes the open slab of a stream.
    pub(super) fn seal(&mut self, stream: usize) {
        let Some(slab) = self.open[stream].take() else { return };
        let info = &mut self.slabs[slab as usize];
        info.phase = Phase::Writing;
        slab::seal(self.buffers.bytes_mut(info.buffer), info.fill);
        self.counts.slabs_filled += 1;
        if self.payload {
            self.write_out(slab);
        } else {
            self.write_bare(slab);
        }
    }

    /// A write is complete.
    pub(super) fn written(&mut self, slab: u32, number: u64, result: Result<(), FlashError>) {
        let info = &mut self.slabs[slab as usize];
        debug_assert!(info.number == number, "a slab that is written is not freed");
        info.writes -= 1;
        if let Err(error) = result {
            // What is in the buffer can still be read; nothing more is accepted.
            self.failure.get_or_insert(error);
            return;
        }
        if self.failure.is_some() {
            return;
        }
        if info.submitted < self.shape.segment_bytes {
            return self.write_out(slab);
        }
        if info.phase == Phase::Writing && info.writes == 0 {
            self.unsynced.push((slab, number));
        }
    }

    /// Begins a sync of what was written, if none is in flight.
    pub(super) fn sync(&mut self) {
        const STATE_EVERY: u64 = 1_000_000_000;
        if self.now.0.saturating_sub(self.last_sync.0) >= STATE_EVERY {
            self.last_sync = self.now;
            self.state.begin_sync();
        }
        if self.sync_in_flight || self.unsynced.is_empty() || self.failure.is_some() {
            return;
        }
        self.sync_in_flight = true;
        let slabs = std::mem::take(&mut self.unsynced);
        let tag = self.task(Task::Sync { slabs });
        self.store.sync(tag);
    }

    /// A sync is complete: the buffers of its slabs can be used again.
    pub(super) fn synced(&mut self, slabs: Vec<(u32, u64)>, result: Result<(), FlashError>) {
        self.sync_in_flight = false;
        if let Err(error) = result {
            self.failure.get_or_insert(error);
            return;
        }
        for (slab, number) in slabs {
            let info = &mut self.slabs[slab as usize];
            info.phase = Phase::Durable;
            slab::forget(self.buffers.bytes_mut(info.buffer));
            if info.buffer < self.buffers.count {
                self.buffers.cached.push_back((info.buffer, slab, number));
            } else {
                info.buffer = NONE;
            }
        }
    }

    /// Seals open slabs and begins new ones for later items.
    pub(super) fn seal_all(&mut self) {
        (0..STREAMS).for_each(|stream| self.seal(stream));
    }
}
