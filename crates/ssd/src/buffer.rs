//! The write buffer: units on their way to flash, and what a FLUSH has to wait for.
//!
//! A unit stays here until its program is committed, so that it can be read meanwhile. A
//! unit that is rewritten before its program begins is replaced in place and costs one
//! program less.
//!
//! Every unit belongs to an *epoch*; a flush closes the current one and is done when no
//! unit of that or an earlier epoch is outstanding.

use std::collections::VecDeque;

use prism_base::FastMap;
use prism_engine::slab::Slab;
use prism_ftl::UnitWrite;

/// Where a buffered unit stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// The place is not in use.
    #[default]
    Vacant,
    /// The rest of the unit is being read from flash.
    Filling,
    /// Complete, waiting for a row.
    Dirty,
    /// Its program is queued or runs.
    InFlight,
}

/// A unit in the buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    pub(crate) lpn: u32,
    pub(crate) version: u64,
    pub(crate) state: State,
    /// Trimmed while it was being filled: dropped as soon as that ends.
    pub(crate) dropped: bool,
    epoch: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Epoch {
    /// Units not yet on flash.
    outstanding: u64,
    /// Of these, units that wait for a row.
    dirty: u64,
}

/// The buffer.
#[derive(Debug)]
pub(crate) struct Buffer {
    capacity: u32,
    used: u32,
    entries: Slab<Entry>,
    /// The newest entry of each logical unit.
    index: FastMap<u32, u32>,
    dirty: VecDeque<u32>,
    epochs: VecDeque<Epoch>,
    /// Number of the first epoch in the list; the last one is current.
    epoch_first: u64,
    /// Epochs below this are being flushed.
    flush_below: u64,
    /// Units waiting for a row in epochs that are being flushed.
    flush_dirty: u64,
}

impl Buffer {
    pub(crate) fn new(capacity: u32) -> Self {
        Self {
            capacity,
            used: 0,
            entries: Slab::new(),
            index: FastMap::default(),
            dirty: VecDeque::new(),
            epochs: VecDeque::from([Epoch::default()]),
            epoch_first: 0,
            flush_below: 0,
            flush_dirty: 0,
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

    /// Units in the buffer.
    pub(crate) fn used(&self) -> u32 {
        self.used
    }

    /// Units that wait for a row.
    pub(crate) fn dirty(&self) -> usize {
        self.dirty.len()
    }

    /// Whether a flush waits for units that wait for a row.
    pub(crate) fn flush_wants_row(&self) -> bool {
        self.flush_dirty > 0
    }

    /// Puts new content over an entry whose program has not begun. The entry stays in its
    /// epoch: a flush that waits for the old content is satisfied by nothing less than
    /// the new one on flash.
    pub(crate) fn replace(&mut self, place: u32, version: u64) {
        let entry = &mut self.entries[place];
        assert!(matches!(entry.state, State::Dirty | State::Filling), "its program has begun");
        entry.version = version;
    }

    /// Adds a unit; `filling` if a read of its rest is under way. Tombstones are not
    /// found by reads. The caller has checked that there is room; tombstones may exceed
    /// the capacity, since a flush cannot wait for room that only a flush makes.
    pub(crate) fn add(&mut self, lpn: u32, version: u64, filling: bool) -> u32 {
        let place = self.entries.take();
        let state = if filling { State::Filling } else { State::Dirty };
        self.entries[place] = Entry { lpn, version, state, dropped: false, epoch: 0 };
        self.used += 1;
        if lpn != UnitWrite::TOMBSTONE {
            self.index.insert(lpn, place);
        }
        if !filling {
            self.dirty.push_back(place);
        }
        self.join_epoch(place);
        place
    }

    /// The rest of a unit has been read. Returns whether it waits for a row now.
    pub(crate) fn filled(&mut self, place: u32) -> bool {
        let entry = self.entries[place];
        assert!(entry.state == State::Filling, "a unit filled that was not waiting for it");
        if entry.dropped {
            self.remove(place);
            return false;
        }
        self.leave_epoch(&entry);
        self.entries[place].state = State::Dirty;
        self.enter_epoch(place, entry.epoch);
        self.dirty.push_back(place);
        true
    }

    /// Takes the unit that waits longest for a row; its program begins.
    pub(crate) fn take_dirty(&mut self) -> Option<u32> {
        let place = self.dirty.pop_front()?;
        let entry = self.entries[place];
        self.leave_epoch(&entry);
        self.entries[place].state = State::InFlight;
        self.enter_epoch(place, entry.epoch);
        Some(place)
    }

    /// A unit is on flash: its place is free.
    pub(crate) fn remove(&mut self, place: u32) {
        let entry = self.entries[place];
        self.leave_epoch(&entry);
        if self.index.get(&entry.lpn) == Some(&place) {
            self.index.remove(&entry.lpn);
        }
        self.entries[place].state = State::Vacant;
        self.entries.give(place);
        self.used -= 1;
    }

    /// Forgets what is buffered of `start..end`; programs under way go on. If a flush
    /// waited for something that is forgotten, returns the epoch in which the trim
    /// itself has to become durable instead.
    pub(crate) fn trim(&mut self, start: u32, end: u32) -> Option<u64> {
        let mut hit: Vec<u32> = Vec::new();
        if (end - start) as usize <= self.index.len() {
            hit.extend((start..end).filter_map(|lpn| self.index.get(&lpn)));
        } else {
            hit.extend(self.index.iter().filter(|(l, _)| (start..end).contains(l)).map(|(_, p)| p));
            hit.sort_unstable();
        }
        let mut dirty = false;
        let mut owed: Option<u64> = None;
        for place in hit {
            let Entry { lpn, epoch, state, .. } = self.entries[place];
            if state != State::InFlight && epoch < self.flush_below {
                owed = Some(owed.map_or(epoch, |oldest| oldest.min(epoch)));
            }
            match state {
                State::Dirty => {
                    dirty = true;
                    self.remove(place);
                }
                State::Filling => {
                    self.entries[place].dropped = true;
                    self.index.remove(&lpn);
                }
                State::InFlight | State::Vacant => {
                    self.index.remove(&lpn);
                }
            }
        }
        if dirty {
            let entries = &self.entries;
            self.dirty.retain(|&place| entries[place].state == State::Dirty);
        }
        owed
    }

    /// Adds a tombstone to an epoch that is being flushed.
    pub(crate) fn add_tombstone_in(&mut self, epoch: u64, number: u64) {
        let place = self.add(UnitWrite::TOMBSTONE, number, false);
        let entry = self.entries[place];
        self.leave_epoch(&entry);
        self.enter_epoch(place, epoch);
    }

    /// Closes the current epoch for a flush. Returns its number if something of it or of
    /// an earlier one is outstanding, `None` if there is nothing to wait for.
    pub(crate) fn close_epoch(&mut self) -> Option<u64> {
        if self.epochs.iter().all(|epoch| epoch.outstanding == 0) {
            return None;
        }
        let closed = self.epoch_first + self.epochs.len() as u64 - 1;
        let newly = (self.flush_below.max(self.epoch_first)..=closed)
            .map(|number| self.epochs[(number - self.epoch_first) as usize].dirty)
            .sum::<u64>();
        self.flush_dirty += newly;
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

    /// The newest content of every buffered logical unit, in order of place, for a dump
    /// on loss of power.
    pub(crate) fn newest(&self) -> Vec<(u32, u64)> {
        let mut places: Vec<_> = self.index.values().copied().collect();
        places.sort_unstable();
        places.iter().map(|&p| (self.entries[p].lpn, self.entries[p].version)).collect()
    }

    fn join_epoch(&mut self, place: u32) {
        let current = self.epoch_first + self.epochs.len() as u64 - 1;
        self.enter_epoch(place, current);
    }

    fn enter_epoch(&mut self, place: u32, epoch: u64) {
        let entry = &mut self.entries[place];
        entry.epoch = epoch;
        let row = &mut self.epochs[(epoch - self.epoch_first) as usize];
        row.outstanding += 1;
        if entry.state == State::Dirty {
            row.dirty += 1;
            self.flush_dirty += u64::from(epoch < self.flush_below);
        }
    }

    fn leave_epoch(&mut self, entry: &Entry) {
        let row = &mut self.epochs[(entry.epoch - self.epoch_first) as usize];
        row.outstanding -= 1;
        if entry.state == State::Dirty {
            row.dirty -= 1;
            self.flush_dirty -= u64::from(entry.epoch < self.flush_below);
        }
    }
}
