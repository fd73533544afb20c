//! The write buffer: units in flight to flash, and the requests that wait for them.
//!
//! A unit stays in the buffer until its program is committed, so that reads find it. A unit that is
//! rewritten before its program begins is replaced in place, which saves a program. Units of one
//! stream share program units, so each stream has a queue.
//!
//! Every unit belongs to an *epoch*; a flush closes the current epoch and completes when no unit of
//! it or an earlier one is outstanding. A write that has to be durable when it completes waits for
//! its own units only.

mod bytes;
mod places;
mod snapshot;

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::collections::hash_map::Entry as Slot;

use prism_base::{FastMap, SimTime, Slab};
use prism_ftl::UnitWrite;

pub(crate) use bytes::SavedUnit;
pub(crate) use places::{Entry, State};
use places::{Epoch, Link, NO_WAITER};

/// The buffer.
#[derive(Debug)]
pub(crate) struct Buffer {
    capacity: u32,
    units_per_program_unit: usize,
    used: u32,
    entries: Slab<Entry>,
    /// Requests that wait for a unit, as linked lists that begin in the entries.
    links: Slab<Link>,
    /// The newest entry of each logical unit.
    index: FastMap<u32, u32>,
    /// Units that wait for a program unit, by stream.
    dirty: Vec<VecDeque<u32>>,
    dirty_total: usize,
    /// Bitmap of the streams in `dirty` with units: there may be thousands, most of them empty.
    occupied: Vec<u64>,
    /// Streams with full program units, one element per program unit. Trims may have removed units
    /// since.
    full: VecDeque<u32>,
    /// Partly written units with their deadlines, oldest first. Stale if the entry has another
    /// state or deadline by now.
    partial: VecDeque<(u32, SimTime)>,
    epochs: VecDeque<Epoch>,
    /// Number of the first epoch in the list; the last one is current.
    epoch_first: u64,
    /// Flushes wait for the epochs below this one.
    flush_below: u64,
    /// Dirty units that a request or a flush waits for.
    wanted: u64,
    /// The bytes of units by place, if the drive keeps bytes; empty for units without.
    bytes: Vec<Box<[u8]>>,
}

/// Flushes and requests that waited for units which a trim has dropped, and now wait for the trim
/// to become durable.
#[derive(Debug, Default)]
pub(crate) struct TrimWaiters {
    /// The oldest epoch among these units that a flush waits for.
    pub(crate) epoch: Option<u64>,
    /// Waiting requests, once for each unit.
    pub(crate) waiters: Vec<u32>,
}

impl Buffer {
    pub(crate) fn new(capacity: u32, units_per_program_unit: usize, streams: u32) -> Self {
        Self {
            capacity,
            units_per_program_unit,
            used: 0,
            entries: Slab::new(),
            links: Slab::new(),
            index: FastMap::default(),
            dirty: vec![VecDeque::new(); streams as usize],
            dirty_total: 0,
            occupied: vec![0; (streams as usize).div_ceil(64)],
            full: VecDeque::new(),
            partial: VecDeque::new(),
            epochs: VecDeque::from([Epoch::default()]),
            epoch_first: 0,
            flush_below: 0,
            wanted: 0,
            bytes: Vec::new(),
        }
    }

    /// The newest entry of `lpn`, if one is buffered.
    pub(crate) fn find(&self, lpn: u32) -> Option<u32> {
        if self.used == 0 { None } else { self.index.get(&lpn).copied() }
    }

    pub(crate) fn entry(&self, place: u32) -> &Entry {
        &self.entries[place]
    }

    pub(crate) fn is_full(&self) -> bool {
        self.used >= self.capacity
    }

    /// Whether the capacity is a single unit.
    pub(crate) fn has_one_place(&self) -> bool {
        self.capacity == 1
    }

    /// Whether less than half of the capacity is used.
    pub(crate) fn is_half_empty(&self) -> bool {
        self.used < self.capacity.div_ceil(2)
    }

    /// Units in the buffer.
    pub(crate) fn used(&self) -> u32 {
        self.used
    }

    /// A stream with a full program unit.
    pub(crate) fn full_stream(&mut self) -> Option<u32> {
        while let Some(&stream) = self.full.front() {
            if self.dirty[stream as usize].len() >= self.units_per_program_unit {
                return Some(stream);
            }
            self.full.pop_front();
        }
        None
    }

    /// Removes a full program unit of `stream`, which is about to be programmed, from the count.
    pub(crate) fn program_unit_leaves(&mut self, stream: u32) {
        if self.full.front() == Some(&stream) {
            self.full.pop_front();
        }
    }

    /// A stream with a unit that a request or a flush waits for, whether or not its program unit is
    /// full.
    #[inline(never)]
    pub(crate) fn wanted_stream(&self) -> Option<u32> {
        if self.wanted == 0 {
            return None;
        }
        let wanted =
            |queue: &VecDeque<u32>| queue.iter().any(|&place| self.is_wanted(&self.entries[place]));
        self.occupied().find(|&stream| wanted(&self.dirty[stream as usize]))
    }

    /// Streams with units that wait for a program unit, in order of number.
    fn occupied(&self) -> impl Iterator<Item = u32> + '_ {
        let words = (0..).step_by(64).zip(&self.occupied);
        words.flat_map(|(first, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(first + bit)
            })
        })
    }

    /// The stream with most dirty units, if the buffer is full, or if the caller needs half of it
    /// (`half`), at least half is used and every unit in it is dirty.
    pub(crate) fn pressed_stream(&self, half: bool) -> Option<u32> {
        let stuck = half && !self.is_half_empty() && self.used as usize == self.dirty_total;
        if !(self.is_full() || stuck) || self.dirty_total == 0 || self.dirty.len() == 1 {
            return None;
        }
        let most = (0..self.dirty.len()).rev().max_by_key(|&s| self.dirty[s].len());
        most.map(|stream| stream as u32)
    }

    /// Whether units of `stream` wait for a program unit.
    pub(crate) fn has_dirty(&self, stream: u32) -> bool {
        !self.dirty[stream as usize].is_empty()
    }

    /// The first stream, in the order in which program units filled up, with a full program unit
    /// for which `die_group` returns a die group, and that die group.
    #[inline(never)]
    pub(crate) fn first_full<T>(
        &mut self,
        mut die_group: impl FnMut(u32) -> Option<T>,
    ) -> Option<(u32, T)> {
        let (dirty, program_unit) = (&self.dirty, self.units_per_program_unit);
        self.full.retain(|&stream| dirty[stream as usize].len() >= program_unit);
        let mut found = self.full.iter().enumerate();
        let (place, found) = found.find_map(|(place, &s)| Some((place, (s, die_group(s)?))))?;
        self.full.remove(place);
        Some(found)
    }

    /// The first stream with a program unit to program for which `die_group` returns a die group,
    /// and that die group. Full program units come first, in the order in which they filled up,
    /// then units that a request or a flush waits for, then, if the buffer is full, the streams
    /// with most dirty units. `die_group` is called with a stream and the first logical unit of its
    /// program unit, for at most `most` streams of each kind.
    #[inline(never)]
    pub(crate) fn first_stream<T>(
        &mut self,
        most: usize,
        mut die_group: impl FnMut(u32, u32) -> Option<T>,
    ) -> Option<(u32, T)> {
        // Drops streams whose program unit is no longer full.
        let (dirty, program_unit) = (&self.dirty, self.units_per_program_unit);
        self.full.retain(|&stream| dirty[stream as usize].len() >= program_unit);
        let mut asked: Vec<u32> = Vec::with_capacity(most);
        for place in 0..self.full.len() {
            if asked.len() == most {
                break;
            }
            let stream = self.full[place];
            if asked.contains(&stream) {
                continue;
            }
            asked.push(stream);
            let first = self.first_unit(stream);
            if let Some(die_group) = first.and_then(|first| die_group(stream, first)) {
                self.full.remove(place);
                return Some((stream, die_group));
            }
        }
        let mut others: Vec<u32> = Vec::new();
        if self.wanted > 0 {
            let wanted = |&stream: &u32| {
                let mut queue = self.dirty[stream as usize].iter();
                queue.any(|&place| self.is_wanted(&self.entries[place]))
            };
            others.extend(self.occupied().filter(wanted).take(most));
        }
        // A program unit that is not full is padded only if nothing else frees space: full program
        // units that wait for a die group or a merge will, and then the host may fill this one.
        if self.is_full() && self.full.is_empty() && self.dirty_total > 0 {
            let mut waiting: Vec<u32> = self.occupied().collect();
            waiting.sort_by_key(|&stream| Reverse(self.dirty[stream as usize].len()));
            others.extend(waiting.into_iter().take(most));
        }
        let mut left = others.into_iter().filter(|stream| !asked.contains(stream));
        left.find_map(|stream| Some((stream, die_group(stream, self.first_unit(stream)?)?)))
    }

    /// The logical unit of `stream` that waits longest for a program unit.
    pub(crate) fn first_unit(&self, stream: u32) -> Option<u32> {
        let place = *self.dirty[stream as usize].front()?;
        Some(self.entries[place].lpn)
    }

    /// Replaces the content of an entry whose program has not begun. The entry stays in its epoch:
    /// a flush that waits for the old content has to wait for the new content instead. `covered` is
    /// a bitmap of the new parts of the unit; a unit that is now complete waits for a program unit.
    pub(crate) fn replace(&mut self, place: u32, version: u64, covered: u64) {
        let entry = &mut self.entries[place];
        assert!(entry.state.may_change(), "its program has begun");
        entry.version = version;
        entry.covered |= covered;
        entry.lost &= covered != u64::MAX;
        if entry.state == State::Partial && entry.covered == u64::MAX {
            self.make_dirty(place);
        }
    }

    /// Adds a unit in `state`. Reads do not find tombstones. The caller has checked the capacity;
    /// tombstones may exceed it, because a flush cannot wait for space that only a flush frees.
    pub(crate) fn add(&mut self, lpn: u32, version: u64, stream: u32, state: State) -> u32 {
        let place = self.entries.take();
        self.entries[place] = Entry::new(lpn, version, stream, state);
        self.used += 1;
        if lpn != UnitWrite::TOMBSTONE {
            self.index.insert(lpn, place);
        }
        if state == State::Dirty {
            self.queue(place);
        }
        let current = self.epoch_first + self.epochs.len() as u64 - 1;
        self.enter_epoch(place, current);
        place
    }

    /// Adds a partly written unit that waits for its rest until `deadline`.
    pub(crate) fn add_partial(
        &mut self,
        lpn: u32,
        version: u64,
        stream: u32,
        covered: u64,
        deadline: SimTime,
    ) -> u32 {
        let place = self.add(lpn, version, stream, State::Partial);
        self.entries[place].covered = covered;
        self.entries[place].deadline = deadline;
        self.partial.push_back((place, deadline));
        place
    }

    /// The partly written unit that has waited longest for its rest.
    pub(crate) fn oldest_partial(&mut self) -> Option<u32> {
        while let Some(&(place, deadline)) = self.partial.front() {
            let entry = &self.entries[place];
            if entry.state == State::Partial && entry.deadline == deadline {
                return Some(place);
            }
            self.partial.pop_front();
        }
        None
    }

    /// Ends the wait for the host to write the rest of a unit. If `read`, the rest is being read
    /// from flash; otherwise flash has none and the unit is complete.
    pub(crate) fn stop_waiting(&mut self, place: u32, read: bool) {
        assert!(self.entries[place].state == State::Partial, "not a partly written unit");
        if read {
            self.entries[place].state = State::Filling;
        } else {
            self.make_dirty(place);
        }
    }

    fn make_dirty(&mut self, place: u32) {
        self.leave_epoch(place);
        let entry = &mut self.entries[place];
        entry.state = State::Dirty;
        let epoch = entry.epoch;
        self.enter_epoch(place, epoch);
        self.queue(place);
    }

    fn queue(&mut self, place: u32) {
        let stream = self.entries[place].stream;
        let queue = &mut self.dirty[stream as usize];
        queue.push_back(place);
        self.occupied[stream as usize / 64] |= 1 << (stream % 64);
        self.dirty_total += 1;
        if queue.len().is_multiple_of(self.units_per_program_unit) {
            self.full.push_back(stream);
        }
    }

    /// The rest of a unit has been read: the unit becomes dirty, unless it was trimmed meanwhile.
    pub(crate) fn filled(&mut self, place: u32) {
        let entry = self.entries[place];
        assert!(entry.state == State::Filling, "a unit filled without a read for its rest");
        if entry.dropped { self.remove(place) } else { self.make_dirty(place) }
    }

    /// Removes the unit of `stream` that has waited longest for a program unit from the queue; its
    /// program begins.
    pub(crate) fn take_dirty(&mut self, stream: u32) -> Option<u32> {
        let queue = &mut self.dirty[stream as usize];
        let place = queue.pop_front()?;
        if queue.is_empty() {
            self.occupied[stream as usize / 64] &= !(1 << (stream % 64));
        }
        self.dirty_total -= 1;
        let entry = &mut self.entries[place];
        entry.state = State::InFlight;
        let (epoch, waiters) = (entry.epoch, entry.waiters);
        self.count_dirty(epoch, waiters, -1);
        Some(place)
    }

    /// Makes request `slot` wait for the unit at `place` to be on flash.
    pub(crate) fn wait_for(&mut self, place: u32, slot: u32) {
        let link = self.links.take();
        self.leave_epoch(place);
        let entry = &mut self.entries[place];
        let epoch = entry.epoch;
        self.links[link] = Link { slot, next: entry.waiters };
        entry.waiters = link;
        self.enter_epoch(place, epoch);
    }

    /// Removes and returns a request that waited for the unit at `place`.
    pub(crate) fn next_waiter(&mut self, place: u32) -> Option<u32> {
        let link = self.entries[place].waiters;
        if link == NO_WAITER {
            return None;
        }
        let Link { slot, next } = self.links[link];
        self.entries[place].waiters = next;
        self.links.give(link);
        Some(slot)
    }

    /// Frees the place of a unit that is on flash, or dropped, and has no waiters left.
    pub(crate) fn remove(&mut self, place: u32) {
        self.leave_epoch(place);
        let entry = &mut self.entries[place];
        entry.state = State::Vacant;
        if let Slot::Occupied(newest) = self.index.entry(entry.lpn)
            && *newest.get() == place
        {
            newest.remove();
        }
        self.drop_bytes(place);
        self.entries.give(place);
        self.used -= 1;
    }

    /// Drops the buffered units of `start..end`; programs in flight go on. Requests and flushes
    /// that waited for dropped units are returned: they have to wait for the trim to become
    /// durable.
    pub(crate) fn trim(&mut self, start: u32, end: u32) -> TrimWaiters {
        let mut hit: Vec<u32> = Vec::new();
        if (end - start) as usize <= self.index.len() {
            hit.extend((start..end).filter_map(|lpn| self.index.get(&lpn)));
        } else {
            hit.extend(self.index.iter().filter(|(l, _)| (start..end).contains(l)).map(|(_, p)| p));
            hit.sort_unstable();
        }
        let mut waiting = TrimWaiters::default();
        let mut dirty = 0;
        for place in hit {
            let Entry { lpn, epoch, state, .. } = self.entries[place];
            if state == State::InFlight {
                self.index.remove(&lpn);
                continue;
            }
            if epoch < self.flush_below {
                waiting.epoch = Some(waiting.epoch.map_or(epoch, |oldest| oldest.min(epoch)));
            }
            while self.entries[place].waiters != NO_WAITER {
                self.leave_epoch(place);
                waiting.waiters.extend(self.next_waiter(place));
                self.enter_epoch(place, epoch);
            }
            if state == State::Filling {
                self.entries[place].dropped = true;
                self.index.remove(&lpn);
            } else {
                dirty += usize::from(state == State::Dirty);
                self.remove(place);
            }
        }
        if dirty > 0 {
            let entries = &self.entries;
            for (stream, queue) in self.dirty.iter_mut().enumerate() {
                queue.retain(|&place| entries[place].state == State::Dirty);
                if queue.is_empty() {
                    self.occupied[stream / 64] &= !(1 << (stream % 64));
                }
            }
            self.dirty_total -= dirty;
        }
        waiting
    }

    /// Moves a tombstone that was just added to an epoch that is being flushed.
    pub(crate) fn join_epoch(&mut self, place: u32, epoch: u64) {
        self.leave_epoch(place);
        self.enter_epoch(place, epoch);
    }

    /// Closes the current epoch for a flush. Returns its number if units of it or of an earlier one
    /// are outstanding, `None` if there is nothing to wait for.
    pub(crate) fn close_epoch(&mut self) -> Option<u64> {
        if self.epochs.iter().all(|epoch| epoch.outstanding == 0) {
            return None;
        }
        let closed = self.epoch_first + self.epochs.len() as u64 - 1;
        let newly = (self.flush_below.max(self.epoch_first)..=closed)
            .map(|number| self.epochs[(number - self.epoch_first) as usize].unwanted)
            .sum::<u64>();
        self.wanted += newly;
        self.flush_below = closed + 1;
        self.epochs.push_back(Epoch::default());
        Some(closed)
    }

    /// Whether every unit of `epoch` and earlier ones is on flash.
    pub(crate) fn is_durable(&mut self, epoch: u64) -> bool {
        while self.epochs.len() > 1 && self.epochs[0].outstanding == 0 {
            self.epochs.pop_front();
            self.epoch_first += 1;
        }
        epoch < self.epoch_first
    }

    /// Marks the unit at `place`: its rest could not be read from flash.
    pub(crate) fn mark_lost(&mut self, place: u32) {
        self.entries[place].lost = true;
    }

    /// Removes and returns all requests that wait for units, once for each unit.
    pub(crate) fn take_waiters(&mut self) -> Vec<u32> {
        let mut waiters = Vec::new();
        let places = self.entries.places();
        for place in 0..places {
            if self.entries[place].state == State::Vacant {
                continue;
            }
            while self.entries[place].waiters != NO_WAITER {
                let epoch = self.entries[place].epoch;
                self.leave_epoch(place);
                waiters.extend(self.next_waiter(place));
                self.enter_epoch(place, epoch);
            }
        }
        waiters
    }

    /// Whether a request or a flush waits for a dirty unit.
    pub(crate) fn has_wanted_program_units(&self) -> bool {
        self.wanted > 0
    }

    /// Whether a request or a flush waits for the unit at `place`.
    pub(crate) fn is_wanted_at(&self, place: u32) -> bool {
        self.is_wanted(&self.entries[place])
    }

    /// Whether a request or a flush waits for `entry`.
    fn is_wanted(&self, entry: &Entry) -> bool {
        entry.waiters != NO_WAITER || entry.epoch < self.flush_below
    }

    /// Counts the unit at `place` in `epoch`.
    fn enter_epoch(&mut self, place: u32, epoch: u64) {
        // Copies single fields: a load of the whole entry right after a store to a part of it
        // cannot be forwarded from the store buffer.
        let entry = &mut self.entries[place];
        entry.epoch = epoch;
        let (state, waiters) = (entry.state, entry.waiters);
        self.epochs[(epoch - self.epoch_first) as usize].outstanding += 1;
        if state == State::Dirty {
            self.count_dirty(epoch, waiters, 1);
        }
    }

    /// Removes the unit at `place` from the count of its epoch.
    fn leave_epoch(&mut self, place: u32) {
        let entry = &self.entries[place];
        let (state, epoch, waiters) = (entry.state, entry.epoch, entry.waiters);
        self.epochs[(epoch - self.epoch_first) as usize].outstanding -= 1;
        if state == State::Dirty {
            self.count_dirty(epoch, waiters, -1);
        }
    }

    /// Adds `change` to the dirty units of `epoch`.
    fn count_dirty(&mut self, epoch: u64, waiters: u32, change: i64) {
        let alone = i64::from(waiters == NO_WAITER);
        let wanted = i64::from(waiters != NO_WAITER || epoch < self.flush_below);
        let program_unit = &mut self.epochs[(epoch - self.epoch_first) as usize];
        program_unit.unwanted = program_unit.unwanted.wrapping_add_signed(change * alone);
        self.wanted = self.wanted.wrapping_add_signed(change * wanted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_unit_is_padded_only_if_nothing_else_makes_room() {
        let mut buffer = Buffer::new(3, 2, 2);
        for (lpn, stream) in [(0, 0), (1, 0), (9, 1)] {
            buffer.add(lpn, 1, stream, State::Dirty);
        }
        assert!(buffer.is_full());
        // If no die group takes the full program unit of stream 0, the one unit of stream 1 still
        // waits for its program unit to fill.
        let only = |wanted: u32| move |stream, _| (stream == wanted).then_some(());
        assert_eq!(buffer.first_stream(8, only(1)), None);
        assert_eq!(buffer.first_stream(8, only(0)), Some((0, ())));
        let taken = [buffer.take_dirty(0), buffer.take_dirty(0)];
        assert!(taken.iter().all(Option::is_some));
        // Without a full program unit, and with the buffer still full, one that is not full is
        // programmed.
        assert_eq!(buffer.first_stream(8, only(1)), Some((1, ())));
    }

    #[test]
    fn a_reused_place_does_not_change_the_oldest_partial_unit() {
        let mut buffer = Buffer::new(8, 1, 1);
        let gone = buffer.add_partial(1, 1, 0, 1, SimTime(10));
        let oldest = buffer.add_partial(2, 2, 0, 1, SimTime(11));
        buffer.replace(gone, 3, u64::MAX);
        assert_eq!(buffer.take_dirty(0), Some(gone));
        buffer.remove(gone);
        assert_eq!(buffer.add_partial(3, 4, 0, 1, SimTime(20)), gone, "the same place");
        assert_eq!(buffer.oldest_partial(), Some(oldest));
        buffer.stop_waiting(oldest, false);
        assert_eq!(buffer.oldest_partial(), Some(gone));
    }
}
