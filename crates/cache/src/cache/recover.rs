//! Opening a cache that has data.
//!
//! The index is built from the tables of contents of the slabs on flash; the state says which of
//! their items are current. Slabs that were being filled or written when the process died are in
//! their buffers, if these are of a mapped file: they are written again, to new blocks, as they
//! are.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use prism_base::{Nanos, Slab as Places};
use prism_flash::{Buffer, FlashError, MediumError};

use super::claims::Claim;
use super::{Buffers, Cache, Config, Counts, NONE, Phase, STREAMS, Slab};
use crate::index::{Entry, Index, length_code, length_of};
use crate::memory::Memory;
use crate::record::UNIT;
use crate::slab::{self, Content, Fill};
use crate::state::{self, Identity, State, StateError, StateFound};
use prism_segments::{Done, FlashCounts, Shape, Store};

/// Reads in flight.
const DEPTH: usize = 64;
/// Items whose buckets of the index are read before they are added: waiting for memory is most of
/// the time of a recovery.
const TOUCHED: usize = 32;
/// The fewest slabs.
pub const SEGMENTS_MIN: u32 = 8;
/// The fewest buffers.
pub const BUFFERS_MIN: u64 = 4;
/// Numbers of insertions that may have been used beyond the recorded ones, after a loss of power.
const NUMBERS: u64 = 1 << 32;

/// As many slabs are not filled between two syncs of the state.
pub(super) const SLAB_NUMBERS: u64 = 1 << 16;

/// The numbers and fills of slabs on flash.
type Ends = BTreeMap<u32, (u64, Fill)>;

/// The whole slabs on flash.
#[derive(Default)]
struct SlabsFound {
    /// Those of whose items the state knows which are current.
    ends: Ends,
    /// The numbers of those of which it should know that and does not.
    lost: Vec<(u32, u64)>,
    /// The highest number, of whatever use.
    highest: u64,
}

/// Why a cache cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The device failed.
    #[error(transparent)]
    Flash(#[from] FlashError),
    /// The memory of the state has something else.
    #[error(transparent)]
    State(#[from] StateError),
    /// It is too small, or a slab too long.
    #[error("{what}")]
    Shape {
        /// What does not fit, and what helps.
        what: String,
    },
}

/// Bytes of the memory of the state of a store of this shape.
#[must_use]
pub fn state_bytes(shape: &Shape) -> u64 {
    state::bytes(shape.segments, shape.segment_bytes / UNIT)
}

/// What the first [`state::HEADER_BYTES`] bytes of a memory are, or fewer if there are no more, as
/// the state of a cache in this store.
///
/// # Errors
/// [`StateError`] if they are something else: [`Cache::open`] would refuse them, too.
pub fn examine_state(header: &[u8], store: &impl Store) -> Result<StateFound, StateError> {
    state::examine(header, &identity(store))
}

fn identity(store: &impl Store) -> Identity {
    let shape = store.shape();
    Identity {
        device: store.identity(),
        engine: 1,
        slab_bytes: shape.segment_bytes.into(),
        slabs: shape.segments.into(),
    }
}

/// Whether a cache can be in a store of this shape, with this number of buffers.
pub(crate) fn check_shape(shape: &Shape, buffers: usize) -> Result<(), OpenError> {
    let wrong = |what: String| Err(OpenError::Shape { what });
    let units = u64::from(shape.segments) * u64::from(shape.segment_bytes / UNIT);
    if shape.segments < SEGMENTS_MIN {
        let has = shape.segments;
        return wrong(format!("the cache needs {SEGMENTS_MIN} slabs, the store has {has}"));
    }
    if units >= Index::ADDRESSES {
        return wrong("a cache has less than 1 TiB of flash; give it a smaller share".to_owned());
    }
    if shape.segment_bytes < 4096 || shape.segment_bytes > 64 << 20 {
        let bytes = shape.segment_bytes;
        return wrong(format!("a slab has {bytes} bytes; it must have 4 KiB to 64 MiB"));
    }
    if (buffers as u64) < BUFFERS_MIN || buffers >= usize::from(NONE) {
        return wrong(format!("memory for {buffers} slabs; at least {BUFFERS_MIN} are needed"));
    }
    Ok(())
}

/// Whether an error is one of the device, and not of what was read.
fn is_failure(error: &FlashError) -> bool {
    matches!(error, FlashError::Medium(MediumError::PowerLost | MediumError::Io { .. }))
}

impl<S: Store> Cache<S> {
    /// Opens the cache in a store, with the memory of its state ([`state_bytes`]) and of its
    /// buffers, a multiple of the bytes of a slab. It begins an empty one if the state is missing
    /// (zeros) or damaged ([`Cache::state_found`]), since what was replaced or removed would come
    /// back. `now` is the time in seconds since 1970.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(
        mut store: S,
        state: Box<dyn Memory>,
        buffers: Box<dyn Memory>,
        config: Config,
        now: u32,
    ) -> Result<Self, OpenError> {
        let shape = store.shape();
        let slab_bytes = shape.segment_bytes as usize;
        let count = buffers.bytes().len() / slab_bytes;
        check_shape(&shape, count.min(config.buffers.into()))?;
        let count = count.min(usize::from(NONE)) as u16;
        let units = shape.segment_bytes / UNIT;
        let (state, state_found) = State::open(state, units, &identity(&store), config.seed)?;
        let found = state_found == StateFound::Own;
        let used = store.used()?;
        let seed = state.seed();
        let numbers = state.numbers();
        let mut cache = Self {
            store,
            shape,
            slab_units: units.into(),
            index: Index::new(config.index_bytes),
            state,
            buffers: Buffers {
                memory: buffers,
                slab_bytes,
                count: config.buffers.min(count),
                free: Vec::new(),
                cached: <_>::default(),
                changed: true,
                last_sync: 0,
            },
            slabs: vec![Slab::FREE; shape.segments as usize],
            open: [None; STREAMS],
            tasks: Vec::new(),
            places: Places::new(),
            spare: Vec::new(),
            unsynced: Vec::new(),
            sync_in_flight: false,
            reading: 0,
            later: VecDeque::new(),
            finished: VecDeque::new(),
            victims: Vec::new(),
            commits: super::Commits::default(),
            admission: None,
            eviction: config.eviction,
            chunk: config.chunk.max(shape.page_bytes) / shape.page_bytes * shape.page_bytes,
            reserve: super::Reserve::new(shape.segments, shape.channels, 4),
            next_slab: 1,
            next_item: if found { numbers + NUMBERS } else { 0 },
            start: now,
            now: Nanos::ZERO,
            last_sync: Nanos::ZERO,
            seed,
            state_found,
            flash_at_open: FlashCounts::default(),
            counts: Counts::default(),
            failure: None,
            closing: false,
            tables: vec![Box::default(); if config.payload { 0 } else { shape.segments as usize }],
            payload: config.payload,
        };
        cache.recover(&used, found, count, now)?;
        // Slabs that an earlier process left in its buffers are written as they are, however few
        // items they have: that says nothing about this one.
        cache.counts.written_bytes = 0;
        cache.flash_at_open = cache.store.counts();
        Ok(cache)
    }

    fn recover(
        &mut self,
        used: &[u32],
        found: bool,
        buffers: u16,
        now: u32,
    ) -> Result<(), OpenError> {
        let SlabsFound { mut ends, lost, highest } = self.read_ends(used)?;
        self.drop_torn(&mut ends, buffers)?;
        let durable: BTreeSet<u64> = ends.values().map(|(number, _)| *number).collect();
        // Slabs in buffers that are not on flash.
        let in_buffer = |buffer: u16| {
            let (number, fill) = slab::read_buffer(self.buffers.bytes(buffer))?;
            let of = self.state.slab_of(number)?;
            let lost = !durable.contains(&number) && number >= self.state.first_slab();
            (found && lost && fill.items > 0).then_some(Claim { buffer, number, fill, of })
        };
        let claims: Vec<Claim> = (0..buffers).filter_map(in_buffer).collect();
        // A loss of power may have left traces of any number used before: none is used again. The
        // state may have been lost, so slabs count that it does not know.
        let in_claims = claims.iter().map(|claim| claim.number).max().unwrap_or(0);
        let last = highest.max(in_claims).max(self.state.first_slab());
        self.next_slab = last.max(self.state.slab_numbers()) + SLAB_NUMBERS;
        self.state.set_slab_numbers(self.next_slab);
        self.read_tables(&ends, now)?;
        // Blocks without a whole slab are freed first, since those in buffers need new ones.
        for slab in used.iter().filter(|slab| !ends.contains_key(slab)) {
            self.store.free(*slab)?;
        }
        self.rewrite_all(claims, now)?;
        if let Some(error) = &self.failure {
            return Err(error.clone().into());
        }
        if found {
            self.count_missing(buffers, &lost);
        }
        let in_use = |buffer: &u16| self.slabs.iter().any(|slab| slab.buffer == *buffer);
        self.buffers.free = (0..self.buffers.count).filter(|buffer| !in_use(buffer)).collect();
        for buffer in (0..buffers).filter(|buffer| !in_use(buffer)).collect::<Vec<u16>>() {
            slab::forget(self.buffers.bytes_mut(buffer));
        }
        // What is not in use now must not be found by a later process either.
        let begun = (0..self.slabs.len() as u32).map(|slab| (slab, self.state.number(slab)));
        for (slab, number) in begun.collect::<Vec<_>>().into_iter().chain(lost) {
            if self.slabs[slab as usize].number == 0 && number != 0 {
                self.state.end(slab, number);
            }
        }
        self.counts.recovered = self.index.len();
        self.state.begin_sync();
        Ok(())
    }

    /// Counts the slabs that the state knows and that are neither on flash nor in a buffer. `lost`
    /// were found, but are of another use than the one that the state knows.
    fn count_missing(&mut self, buffers: u16, lost: &[(u32, u64)]) {
        // A slab in which nothing is yet has nothing to lose.
        let in_buffer = |buffer| slab::read_buffer(self.buffers.bytes(buffer));
        let empty: BTreeSet<u64> = (0..buffers)
            .filter_map(in_buffer)
            .filter(|(_, fill)| fill.items == 0)
            .map(|(number, _)| number)
            .collect();
        let is_missing = |&slab: &u32| {
            let number = self.state.number(slab);
            self.slabs[slab as usize].number == 0
                && number >= self.state.first_slab().max(1)
                && !empty.contains(&number)
                && lost.iter().all(|&(of, _)| of != slab)
        };
        let missing = (0..self.slabs.len() as u32).filter(is_missing).count();
        self.counts.damaged_slabs += missing as u64;
    }

    /// Executes reads, several at once. Each is a slab and a range of its bytes. What cannot be
    /// read is `None`; a device that fails altogether is an error, since the state must not forget
    /// slabs that another try may find.
    pub(super) fn read_all(
        &mut self,
        reads: Vec<(u32, u32, u32)>,
        mut take: impl FnMut(&mut Self, u32, Option<&[u8]>),
    ) -> Result<(), FlashError> {
        // All buffers have the longest length, so that each fits each read: new ones take time.
        let longest = reads.iter().map(|&(_, _, len)| len).max().unwrap_or(0) as usize;
        let mut spare: Vec<Buffer> = Vec::new();
        let mut failure = None;
        let mut reads = reads.into_iter();
        let mut in_flight = 0;
        loop {
            while in_flight < DEPTH {
                let next = reads.next().filter(|_| failure.is_none());
                let Some((slab, offset, len)) = next else { break };
                let mut data = spare.pop().unwrap_or_else(|| self.store.buffer(longest));
                data.set_len(len as usize);
                self.store.read(slab, offset, data, slab.into());
                in_flight += 1;
            }
            if in_flight == 0 {
                return failure.map_or(Ok(()), Err);
            }
            self.store.wait(None);
            while let Some(Done { tag, result, data, .. }) = self.store.poll() {
                in_flight -= 1;
                match result {
                    Err(error) if is_failure(&error) => failure = Some(error),
                    result => take(self, tag as u32, result.is_ok().then_some(&data[..])),
                }
                spare.push(data);
            }
        }
    }

    /// The slabs on flash that are whole.
    fn read_ends(&mut self, used: &[u32]) -> Result<SlabsFound, FlashError> {
        let Shape { segment_bytes: slab_bytes, page_bytes, .. } = self.shape;
        let reads = used.iter().map(|&slab| (slab, slab_bytes - page_bytes, page_bytes)).collect();
        let mut found = SlabsFound::default();
        self.read_all(reads, |cache, slab, data| {
            let Some((number, fill)) = data.and_then(slab::read_end) else { return };
            found.highest = found.highest.max(number);
            if number < cache.state.first_slab() {
                return;
            }
            if cache.state.number(slab) == number {
                found.ends.insert(slab, (number, fill));
            } else if cache.state.lacks(slab, number) {
                found.lost.push((slab, number));
                cache.counts.lost_slabs += 1;
                cache.counts.lost_items += u64::from(fill.items);
            }
        })?;
        Ok(found)
    }

    /// Adds the current items of these slabs to the index.
    fn read_tables(&mut self, ends: &Ends, now: u32) -> Result<(), FlashError> {
        let Shape { segment_bytes: slab_bytes, page_bytes, .. } = self.shape;
        let read = |(&slab, (_, fill)): (&u32, &(u64, Fill))| {
            let table = (slab::table_bytes(fill.items) as u32).min(slab_bytes);
            let begin = (slab_bytes - table) / page_bytes * page_bytes;
            (slab, begin, slab_bytes - begin)
        };
        for (&slab, &(number, fill)) in ends {
            let info = Slab { number, phase: Phase::Durable, fill, ..Slab::FREE };
            self.slabs[slab as usize] = Slab { submitted: slab_bytes, ..info };
        }
        let reads = ends.iter().map(read).collect();
        self.read_all(reads, |cache, slab, data| {
            let (_, fill) = ends[&slab];
            let Some(tail) = data.filter(|tail| slab::table_is_whole(tail, fill)) else {
                cache.counts.damaged_slabs += 1;
                cache.counts.damaged_items += u64::from(fill.items);
                // Without entries, deletes of its items would not be recorded.
                return cache.state.end(slab, cache.slabs[slab as usize].number);
            };
            let mut items = slab::contents(tail, fill);
            let mut some = Vec::with_capacity(TOUCHED);
            loop {
                some.clear();
                some.extend(items.by_ref().take(TOUCHED));
                if some.is_empty() {
                    return;
                }
                cache.index.touch(some.iter().map(|item| item.hash));
                some.iter().for_each(|item| cache.add_found(slab, item, now));
            }
        })
    }

    /// Adds an item that was found to the index, if it is current.
    pub(super) fn add_found(&mut self, slab: u32, item: &Content, now: u32) {
        let number = self.slabs[slab as usize].number;
        let expired = item.expires != 0 && item.expires <= now;
        if expired || item.units == 0 || !self.state.is_current(slab, number, item.unit) {
            return;
        }
        let address = self.address(slab, item.unit);
        let units = length_of(length_code(item.units));
        let entry = Entry { address, units, expires: item.expires, ..Entry::default() };
        // After a loss of power there can be two versions of an item. The one in the newer slab, or
        // further on in the same one, is the newer, but for copies of the last second.
        let age = |address: u64| (self.at(address).slab, address % self.slab_units);
        match self.index.find(item.hash, |_| true) {
            Some((_, other)) if age(other.address) > age(address) => {
                return self.state.set_dead(slab, item.unit);
            }
            Some((slot, other)) => {
                self.forget(&other);
                self.index.set(slot, &entry);
            }
            None => {
                if let Some(evicted) = self.index.insert(item.hash, &entry, now) {
                    self.forget(&evicted);
                }
            }
        }
        self.slabs[slab as usize].live += units;
    }
}
