//! The cache: where items are, which slabs are being filled, written and cleaned.
//!
//! An insertion copies the item to a buffer, the memory of an open slab, and sets its entry in the
//! index. A full slab is written and synced; its buffer then serves reads until it is needed again.
//! Nothing waits: insertions are refused while all buffers wait for flash ([`Refusal::Busy`]), and
//! [`Cache::progress`] takes what flash has completed.
//!
//! `write` fills and writes slabs, `read` reads items, `clean` frees slabs, `commit` makes changes
//! durable, `recover` and `claims` open a cache that has data, `reserve` decides how many slabs are
//! kept erased.

mod admission;
mod bare;
mod claims;
mod clean;
mod commit;
mod items;
mod read;
mod recover;
mod reserve;
mod write;

use std::collections::VecDeque;
use std::fmt;

use prism_base::{Nanos, Slab as Places};
use prism_flash::{Buffer, FlashError};

use crate::index::{Entry, Index};
use crate::items::{ItemAddress, Refusal};
use crate::memory::Memory;
use crate::record::{At, UNIT};
use crate::slab::{self, Fill};
use crate::state::{State, StateFound};
use prism_segments::{Done, FlashCounts, Shape, Store};

use admission::Admission;
pub use clean::Eviction;
use clean::Victim;
use commit::Commits;
pub use commit::Durability;
use read::Finished;
pub(crate) use recover::check_shape;
pub use recover::{BUFFERS_MIN, OpenError, SEGMENTS_MIN, examine_state, state_bytes};
use reserve::Reserve;

/// Streams of insertions, each with an open slab: of clients, and copies of cleaning.
const STREAMS: usize = 2;
/// The stream of clients.
const USER: usize = 0;
/// The stream of cleaning.
const COPIES: usize = 1;
/// Slabs that only copies may open.
const FOR_COPIES: u32 = 1;
/// No buffer.
const NONE: u16 = u16::MAX;

/// The settings of a cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Bytes of memory for the index.
    pub index_bytes: u64,
    /// What happens to the items of a slab that is cleaned.
    pub eviction: Eviction,
    /// Slabs that buffers hold at most. The memory of an earlier process may have had more: what
    /// is in them is written to flash, and they are not used again.
    pub buffers: u16,
    /// Bytes of a slab that are written at once, a multiple of those of a page. A slab has two such
    /// writes in flight at most, for which reads of the same LUN may have to wait.
    pub chunk: u32,
    /// The seed of hashes, for a new cache.
    pub seed: u64,
    /// Whether items have content; if not, this is a simulation.
    pub payload: bool,
}

/// What a slab is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Free,
    /// Takes items.
    Open,
    /// Full, and not durable yet.
    Writing,
    Durable,
    /// Its items are being copied or dropped.
    Cleaning,
}

/// A slab.
#[derive(Clone, Copy, Debug)]
struct Slab {
    /// The number of its current use; 0 if it is free.
    number: u64,
    phase: Phase,
    buffer: u16,
    /// Writes in flight.
    writes: u16,
    /// Whether its items are copies of cleaning.
    copies: bool,
    /// Bytes whose write was submitted.
    submitted: u32,
    fill: Fill,
    /// Units of items that are current.
    live: u32,
    /// When an item of it was last used, in seconds since the cache was opened.
    access: u32,
}

impl Slab {
    const FREE: Self = Self {
        number: 0,
        phase: Phase::Free,
        buffer: NONE,
        writes: 0,
        copies: false,
        submitted: 0,
        fill: Fill { items: 0, units: 0 },
        live: 0,
        access: 0,
    };
}

/// The memory of open slabs, and of those that were written last.
struct Buffers {
    memory: Box<dyn Memory>,
    slab_bytes: usize,
    /// Those that are used again.
    count: u16,
    free: Vec<u16>,
    /// Those of durable slabs, in the order in which these became durable, with the slab's number:
    /// the slab may have lost its buffer meanwhile.
    cached: VecDeque<(u16, u32, u64)>,
    /// Whether there is anything to sync, and the number of the last sync.
    changed: bool,
    last_sync: u64,
}

impl Buffers {
    fn bytes(&self, buffer: u16) -> &[u8] {
        &self.memory.bytes()[buffer as usize * self.slab_bytes..][..self.slab_bytes]
    }

    fn bytes_mut(&mut self, buffer: u16) -> &mut [u8] {
        self.changed = true;
        &mut self.memory.bytes_mut()[buffer as usize * self.slab_bytes..][..self.slab_bytes]
    }

    /// Begins to make everything durable that has changed. Returns the number of the sync for which
    /// that waits.
    fn begin_sync(&mut self) -> u64 {
        if std::mem::take(&mut self.changed) {
            self.last_sync = self.memory.begin_sync();
        }
        self.last_sync
    }
}

/// What a command of the store was for.
#[derive(Debug)]
enum Task {
    None,
    Write { slab: u32, number: u64, records: u32 },
    Sync { slabs: Vec<(u32, u64)> },
    Read(read::Read),
    Table { victim: u32 },
    Copy { victim: u32, offset: u32, items: Vec<slab::Content> },
}

/// What happened since the cache was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lookups that found the item in memory.
    pub hits_memory: u64,
    /// Lookups that found the item on flash.
    pub hits_flash: u64,
    /// Lookups that found nothing.
    pub misses: u64,
    /// Items inserted.
    pub inserts: u64,
    /// Items that were not kept, because of the limit of writes.
    pub not_admitted: u64,
    /// Bytes of their records.
    pub insert_bytes: u64,
    /// Bytes of such records that were written to flash: those of the pages programmed, without
    /// what cleaning has copied.
    pub written_bytes: u64,
    /// Items that cleaning copied.
    pub copied: u64,
    /// Bytes of their records.
    pub copied_bytes: u64,
    /// Current items that cleaning dropped.
    pub dropped: u64,
    /// Items dropped because both of their buckets in the index were full.
    pub index_full: u64,
    /// Reads of an item that turned out to be another key's.
    pub false_reads: u64,
    /// Reads of an item that was not there any more, or damaged.
    pub lost_reads: u64,
    /// Of these, reads of an item that was still current, and is dropped: its checksum differs, or
    /// the device cannot read it.
    pub damaged_reads: u64,
    /// Slabs filled.
    pub slabs_filled: u64,
    /// Slabs cleaned.
    pub slabs_cleaned: u64,
    /// Of these, without copies for lack of time.
    pub slabs_dropped: u64,
    /// Commits: syncs after which changes survive a loss of power, if they are to.
    pub commits: u64,
    /// Items found when the cache was opened.
    pub recovered: u64,
    /// Slabs on flash that could not be used when the cache was opened, because the state did not
    /// know which of their items were current.
    pub lost_slabs: u64,
    /// Items in these slabs, those replaced and removed included.
    pub lost_items: u64,
    /// Slabs that the state knew and that were missing or damaged when the cache was opened.
    pub damaged_slabs: u64,
    /// Items in those of them whose number of items is known, those replaced and removed included.
    pub damaged_items: u64,
}

/// A cache on a store.
pub struct Cache<S> {
    store: S,
    shape: Shape,
    /// Units of a slab.
    slab_units: u64,
    index: Index,
    state: State,
    buffers: Buffers,
    slabs: Vec<Slab>,
    open: [Option<u32>; STREAMS],
    tasks: Vec<Task>,
    places: Places<()>,
    /// Buffers of commands, to be used again.
    spare: Vec<Buffer>,
    unsynced: Vec<(u32, u64)>,
    sync_in_flight: bool,
    /// Bytes of reads in flight, and reads that wait for them.
    reading: usize,
    later: VecDeque<(read::Read, u32)>,
    finished: VecDeque<Finished>,
    victims: Vec<Victim>,
    commits: Commits,
    admission: Option<Admission>,
    eviction: Eviction,
    chunk: u32,
    reserve: Reserve,
    next_slab: u64,
    next_item: u64,
    /// When the cache was opened.
    start: u32,
    now: Nanos,
    last_sync: Nanos,
    seed: u64,
    state_found: StateFound,
    /// What was done to flash until the cache was open.
    flash_at_open: FlashCounts,
    counts: Counts,
    failure: Option<FlashError>,
    /// No slab is cleaned any more.
    closing: bool,
    /// Of a simulation: the tables of contents of full slabs.
    tables: Vec<Box<[u8]>>,
    payload: bool,
}

impl<S> fmt::Debug for Cache<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cache of {:?}, {:?}", self.shape, self.index)
    }
}

impl<S: Store> Cache<S> {
    /// The store.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// What happened since the cache was opened.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What the memory of the state had when the cache was opened.
    #[must_use]
    pub fn state_found(&self) -> StateFound {
        self.state_found
    }

    /// Items in the cache, those expired and not yet forgotten included.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.index.len()
    }

    /// Bytes of memory of the index.
    #[must_use]
    pub fn index_bytes(&self) -> u64 {
        self.index.bytes()
    }

    /// Bytes programmed, copies included, for a byte of clients' items in what was programmed;
    /// `None` as long as nothing was.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        let pages = |flash: &FlashCounts| flash.programs + flash.copies;
        let pages = pages(&self.store.counts()) - pages(&self.flash_at_open);
        let programmed = pages * u64::from(self.shape.page_bytes);
        let written = self.counts.written_bytes;
        (written > 0).then(|| programmed as f64 / written as f64)
    }

    /// Slabs by use: free, being filled or written, full.
    #[must_use]
    pub fn slab_counts(&self) -> [u32; 3] {
        let mut counts = [0; 3];
        for slab in &self.slabs {
            let at = match slab.phase {
                Phase::Free => 0,
                Phase::Open | Phase::Writing => 1,
                Phase::Durable | Phase::Cleaning => 2,
            };
            counts[at] += 1;
        }
        counts
    }

    /// Why the cache takes no more items, if the device has failed.
    #[must_use]
    pub fn failure(&self) -> Option<&FlashError> {
        self.failure.as_ref()
    }

    /// A file descriptor that becomes readable when the store has completed a command.
    #[must_use]
    pub fn event_fd(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.store.event_fd()
    }

    /// Whether no command of the store is in flight.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.places.in_use() == 0
    }

    fn split(&self, address: u64) -> (u32, u32) {
        ((address / self.slab_units) as u32, (address % self.slab_units) as u32)
    }

    fn address(&self, slab: u32, unit: u32) -> u64 {
        u64::from(slab) * self.slab_units + u64::from(unit)
    }

    fn at(&self, address: u64) -> At {
        let (slab, unit) = self.split(address);
        At { slab: self.slabs[slab as usize].number, unit }
    }

    fn item_address(&self, address: u64) -> ItemAddress {
        item_address(address, self.at(address).slab)
    }

    /// The bytes from an item on, if its slab has a buffer.
    fn in_memory(&self, address: u64) -> Option<&[u8]> {
        let (slab, unit) = self.split(address);
        let buffer = self.slabs[slab as usize].buffer;
        let bytes = (buffer != NONE).then(|| self.buffers.bytes(buffer))?;
        Some(&bytes[(unit * UNIT) as usize..])
    }

    /// The item of an entry is no longer current. That is a change also if no client asked for it:
    /// a removal of the key is acknowledged after it, and the item must not come back then.
    fn forget(&mut self, entry: &Entry) {
        let (slab, unit) = self.split(entry.address);
        self.state.set_dead(slab, unit);
        self.commits.changed();
        self.forget_origins(entry.address);
        let slab = &mut self.slabs[slab as usize];
        slab.live = slab.live.saturating_sub(entry.units);
    }

    fn task(&mut self, task: Task) -> u64 {
        let place = self.places.take() as usize;
        if place == self.tasks.len() {
            self.tasks.push(Task::None);
        }
        self.tasks[place] = task;
        place as u64
    }

    fn buffer(&mut self, len: usize) -> Buffer {
        let fits = self.spare.iter().position(|spare| spare.capacity() >= len);
        let mut buffer = match fits {
            Some(place) => self.spare.swap_remove(place),
            None => self.store.buffer(len),
        };
        buffer.set_len(len);
        buffer
    }

    fn give_back(&mut self, buffer: Buffer) {
        const SPARE: usize = 64;
        // Long ones are rare, and would be kept for short commands.
        let fits = (1..=2 * self.chunk.max(64 << 10) as usize).contains(&buffer.capacity());
        if fits && self.spare.len() < SPARE {
            self.spare.push(buffer);
        }
    }

    /// Takes what the store has completed, and begins what follows from it. `now` is a clock that
    /// does not go back; its beginning does not matter.
    pub fn progress(&mut self, now: Nanos) {
        self.advance(now);
    }

    /// As [`Cache::progress`]; returns whether something was complete.
    fn advance(&mut self, now: Nanos) -> bool {
        self.now = self.now.max(now);
        self.settle_writes(self.now);
        let mut any = false;
        while let Some(done) = self.store.poll() {
            self.complete(done);
            any = true;
        }
        any |= self.commit();
        self.clean();
        self.sync();
        // What cleaning has copied is part of the next commit.
        any | self.commit()
    }

    fn complete(&mut self, done: Done) {
        let Done { tag, result, data, .. } = done;
        let task = std::mem::replace(&mut self.tasks[tag as usize], Task::None);
        self.places.give(tag as u32);
        match task {
            Task::None => unreachable!("the store completes commands once"),
            Task::Write { slab, number, records } => {
                self.give_back(data);
                self.counts.written_bytes += u64::from(records);
                self.written(slab, number, result);
            }
            Task::Sync { slabs } => self.synced(slabs, result),
            Task::Read(read) => self.was_read(read, result, data),
            Task::Table { victim } => self.table_read(victim, result, data),
            Task::Copy { victim, offset, items } => {
                self.copies_read(victim, offset, items, result, data);
            }
        }
    }

    /// Waits until a command of the store is complete, or `timeout` is over, and takes it.
    pub fn wait(&mut self, timeout: Option<Nanos>) -> bool {
        // What can be begun is begun first, as there may be nothing else to wait for.
        if self.advance(Nanos(self.store.now().0)) {
            return true;
        }
        let waited = match self.is_idle() && self.wait_for_commit() {
            true => true,
            false => self.store.wait(timeout),
        };
        self.advance(Nanos(self.store.now().0)) || waited
    }

    /// Writes and syncs everything, and waits for that.
    ///
    /// # Errors
    /// [`FlashError`] if the device fails or has failed.
    pub fn close(&mut self) -> Result<(), FlashError> {
        self.closing = true;
        // A device that has failed completes what is in flight, and takes no more.
        loop {
            // Slabs that are being cleaned are copied to the end.
            if self.victims.is_empty() || self.failure.is_some() {
                self.seal_all();
            }
            let more =
                !self.unsynced.is_empty() || !self.victims.is_empty() || self.awaits_commit();
            if self.is_idle() && (!more || self.failure.is_some()) {
                break;
            }
            if !self.wait(None) && self.is_idle() && !self.sync_in_flight {
                break;
            }
        }
        self.state.begin_sync();
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// Checks that index, slabs and state agree.
    ///
    /// # Panics
    /// If they do not, which is a bug.
    pub fn assert_consistent(&self) {
        let mut live = vec![0; self.slabs.len()];
        for entry in self.index.entries() {
            let (slab, unit) = self.split(entry.address);
            let info = &self.slabs[slab as usize];
            assert!(info.phase != Phase::Free && unit < info.fill.units, "{entry:?} in {info:?}");
            live[slab as usize] += entry.units;
            let current = self.state.is_current(slab, info.number, unit);
            assert!(current || entry.stale || entry.expires != 0, "{entry:?} is recorded as dead");
        }
        for (slab, live) in self.slabs.iter().zip(live) {
            let agrees = slab.live == live || slab.phase == Phase::Cleaning;
            assert!(agrees, "{slab:?} has {live} units");
        }
    }

    fn refuse(&mut self, error: FlashError) -> Refusal {
        self.failure = Some(error);
        Refusal::Failed
    }
}

/// The address of an item with the low bits of its slab's number, so that it differs in each use of
/// the slab.
fn item_address(address: u64, slab: u64) -> ItemAddress {
    ItemAddress(address | slab << (64 - Index::ADDRESSES.leading_zeros() - 1))
}
