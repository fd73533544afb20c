//! Changes that survive a loss of power before they are acknowledged ([`Durability::PowerLoss`]).
//!
//! The buffers of open slabs and the state are memory that outlives the process; a commit syncs
//! both. What is in a buffer that was synced is found after a loss of power, so flash needs no sync
//! before its slab is full. One commit is in flight at a time, and the next one is for all changes
//! that were made meanwhile. The caller answers a client when [`Cache::durable`] has reached what
//! [`Cache::changes`] was after the client's command.
//!
//! A copy that cleaning has made is not durable before a commit either. Until then the item's old
//! place stays current in the state, and its slab is not freed. If the item is replaced or removed
//! meanwhile, both places are marked.

use std::collections::BTreeMap;

use prism_flash::{FlashError, MediumError};

use super::Cache;
use prism_segments::Store;

/// What an acknowledged change survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process. Changes are durable at once.
    #[default]
    Crash,
    /// Also a loss of power: changes are durable when a commit of theirs is complete.
    PowerLoss,
}

/// A commit in flight.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    /// The changes that it is for.
    changes: u64,
    /// Numbers of the syncs of the state and of the buffers.
    syncs: [u64; 2],
}

/// What is durable.
#[derive(Debug, Default)]
pub(super) struct Commits {
    durability: Durability,
    changes: u64,
    durable: u64,
    in_flight: Option<InFlight>,
    failed: bool,
    /// By the address of a copy, the address that it was copied from, as long as that is still
    /// current in the state.
    origins: BTreeMap<u64, u64>,
}

impl Commits {
    /// Counts a change.
    pub(super) fn changed(&mut self) {
        self.changes += 1;
    }
}

impl<S: Store> Cache<S> {
    /// The cache, of which changes are to survive this. Without this call it is the end of the
    /// process.
    #[must_use]
    pub fn with_durability(mut self, durability: Durability) -> Self {
        self.commits.durability = durability;
        self
    }

    /// Insertions, deletions and changes so far, those of cleaning included.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.commits.changes
    }

    /// As many of them are durable.
    #[must_use]
    pub fn durable(&self) -> u64 {
        match self.commits.durability {
            Durability::Crash => self.commits.changes,
            Durability::PowerLoss => self.commits.durable,
        }
    }

    /// Whether a commit has failed: later changes are never durable.
    #[must_use]
    pub fn has_failed_commit(&self) -> bool {
        self.commits.failed
    }

    /// Takes a commit that is complete and begins the next one. Returns whether one was complete.
    pub(super) fn commit(&mut self) -> bool {
        if self.commits.durability == Durability::Crash {
            return false;
        }
        let mut any = self.end_commit();
        let is_due = self.commits.changes > self.commits.durable;
        if is_due && self.commits.in_flight.is_none() && !self.commits.failed {
            let syncs = [self.state.begin_sync(), self.buffers.begin_sync()];
            self.commits.in_flight = Some(InFlight { changes: self.commits.changes, syncs });
            any |= self.end_commit();
        }
        any
    }

    /// Takes the commit in flight if it is complete.
    fn end_commit(&mut self) -> bool {
        let Some(InFlight { changes, syncs }) = self.commits.in_flight else { return false };
        let (Some(state), Some(buffers)) = (self.state.synced(), self.buffers.memory.synced())
        else {
            self.commits.in_flight = None;
            self.commits.failed = true;
            let what = "the state of the cache cannot be synced; see the kernel's log".to_owned();
            self.failure = Some(FlashError::Medium(MediumError::Io { what }));
            return true;
        };
        if state < syncs[0] || buffers < syncs[1] {
            return false;
        }
        self.commits.in_flight = None;
        self.commits.durable = changes;
        self.counts.commits += 1;
        self.free_copied();
        true
    }

    /// Waits until the commit in flight is complete; false if there is none.
    pub(super) fn wait_for_commit(&mut self) -> bool {
        let Some(InFlight { syncs, .. }) = self.commits.in_flight else { return false };
        self.state.wait_sync(syncs[0]);
        self.buffers.memory.wait_sync(syncs[1]);
        true
    }

    /// Whether changes are made that no commit has completed, and one will.
    pub(super) fn awaits_commit(&self) -> bool {
        !self.commits.failed && self.durable() < self.commits.changes
    }

    /// The item at `from` was copied to `to`.
    pub(super) fn moved(&mut self, from: u64, to: u64) {
        match self.commits.durability {
            Durability::Crash => {
                let (slab, unit) = self.split(from);
                self.state.set_dead(slab, unit);
            }
            Durability::PowerLoss => drop(self.commits.origins.insert(to, from)),
        }
    }

    /// Marks the places that the item at `address` was copied from, too.
    pub(super) fn forget_origins(&mut self, mut address: u64) {
        while let Some(origin) = self.commits.origins.remove(&address) {
            let (slab, unit) = self.split(origin);
            self.state.set_dead(slab, unit);
            address = origin;
        }
    }

    /// A slab is freed, with whatever is in it.
    pub(super) fn free_origins(&mut self, slab: u32) {
        let units = self.slab_units;
        let is_left = |address: u64| address / units != u64::from(slab);
        self.commits.origins.retain(|&to, &mut from| is_left(to) && is_left(from));
    }
}
