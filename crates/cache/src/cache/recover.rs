//! Opening a cache that has data.
//!
//! The index is built from the tables of contents of the slabs on flash; the state says which of
//! their items are current. Slabs that were being filled or written when the process died are in
//! their buffers, if these are of a mapped file: they are written again, to new blocks, as they
//! are.

use std::collections::{BTreeMap, VecDeque};

use prism_base::{Nanos, Slab as Places};
use prism_flash::FlashError;

use super::{Buffers, Cache, Config, Counts, NONE, Phase, STREAMS, Slab};
use crate::index::{Entry, Index, length_code, length_of};
use crate::memory::Memory;
use crate::record::{self, At, UNIT};
use crate::slab::{self, Content, Fill};
use crate::state::{self, Identity, State};
use crate::store::{Done, Shape, Store};

/// Reads in flight.
const DEPTH: usize = 64;
/// The fewest buffers.
pub const BUFFERS_MIN: u64 = 4;
/// Numbers of insertions that may have been used beyond the recorded ones, after a loss of power.
const NUMBERS: u64 = 1 << 32;

/// As many slabs are not filled between two syncs of the state.
pub(super) const SLAB_NUMBERS: u64 = 1 << 16;

/// Why a cache cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The device failed.
    #[error(transparent)]
    Flash(#[from] FlashError),
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
    state::bytes(shape.slabs, shape.slab_bytes / UNIT)
}

fn check(shape: &Shape, buffers: usize) -> Result<(), OpenError> {
    let wrong = |what: String| Err(OpenError::Shape { what });
    let units = u64::from(shape.slabs) * u64::from(shape.slab_bytes / UNIT);
    if shape.slabs < 8 {
        return wrong(format!("the cache needs 8 slabs, the store has {}", shape.slabs));
    }
    if units >= Index::ADDRESSES {
        return wrong("a cache has at most 1 TiB of flash; give it a smaller share".to_owned());
    }
    if shape.slab_bytes < 4096 || shape.slab_bytes > 64 << 20 {
        let bytes = shape.slab_bytes;
        return wrong(format!("a slab has {bytes} bytes; it must have 4 KiB to 64 MiB"));
    }
    if (buffers as u64) < BUFFERS_MIN || buffers >= usize::from(NONE) {
        return wrong(format!("memory for {buffers} slabs; at least {BUFFERS_MIN} are needed"));
    }
    Ok(())
}

impl<S: Store> Cache<S> {
    /// Opens the cache in a store, with the memory of its state ([`state_bytes`]) and of its
    /// buffers, a multiple of the bytes of a slab; or begins an empty one, if the state is not that
    /// of this store. `now` is the time in seconds since 1970.
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
        let slab_bytes = shape.slab_bytes as usize;
        let count = buffers.bytes().len() / slab_bytes;
        check(&shape, count)?;
        let identity = Identity {
            device: store.identity(),
            engine: 1,
            slab_bytes: slab_bytes as u64,
            slabs: shape.slabs.into(),
        };
        let units = shape.slab_bytes / UNIT;
        let (state, found) = State::open(state, units, &identity, config.seed);
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
                free: Vec::new(),
                cached: <_>::default(),
            },
            slabs: vec![Slab::FREE; shape.slabs as usize],
            open: [None; STREAMS],
            tasks: Vec::new(),
            places: Places::new(),
            spare: Vec::new(),
            unsynced: Vec::new(),
            sync_in_flight: false,
            reads: 0,
            finished: VecDeque::new(),
            victims: Vec::new(),
            eviction: config.eviction,
            reserve: super::Reserve::new(shape.slabs, shape.channels, 4),
            next_slab: 1,
            next_item: if found { numbers + NUMBERS } else { 0 },
            start: now,
            now: Nanos::ZERO,
            last_sync: Nanos::ZERO,
            seed,
            counts: Counts::default(),
            failure: None,
            tables: vec![Box::default(); if config.payload { 0 } else { shape.slabs as usize }],
            payload: config.payload,
        };
        cache.recover(&used, found, count as u16, now)?;
        Ok(cache)
    }

    fn recover(
        &mut self,
        used: &[u32],
        found: bool,
        buffers: u16,
        now: u32,
    ) -> Result<(), OpenError> {
        let ends = if found { self.read_ends(used) } else { BTreeMap::new() };
        let numbers = ends.values().map(|(number, _)| *number);
        let in_buffers: Vec<(u16, u64, Fill)> = (0..buffers)
            .filter_map(|buffer| {
                let (number, fill) = slab::read_buffer(self.buffers.bytes(buffer))?;
                found.then_some((buffer, number, fill))
            })
            .collect();
        let last = numbers.chain(in_buffers.iter().map(|(_, number, _)| *number)).max();
        // A loss of power may have left traces of any number used before: none is used again.
        let last = last.unwrap_or(0).max(self.state.first_slab()).max(self.state.slab_numbers());
        self.next_slab = last + SLAB_NUMBERS;
        self.state.set_slab_numbers(self.next_slab);
        self.read_tables(&ends, now);
        let lost: Vec<u32> = used.iter().copied().filter(|slab| !ends.contains_key(slab)).collect();
        let durable: Vec<u64> = ends.values().map(|(number, _)| *number).collect();
        self.buffers.free = (0..buffers).collect();
        // Blocks without a whole slab are freed first, since those in buffers need new ones.
        for &slab in &lost {
            self.store.free(slab)?;
        }
        let mut rewritten = Vec::new();
        let lost_buffers =
            in_buffers.into_iter().filter(|(_, number, _)| !durable.contains(number));
        let mut claims: Vec<(u16, u64, Fill, u32)> = lost_buffers
            .filter_map(|(buffer, number, fill)| {
                Some((buffer, number, fill, self.state.slab_of(number)?))
            })
            .collect();
        while let Some((buffer, number, fill, of)) = claims.pop() {
            if fill.items > 0 && number >= self.state.first_slab() {
                let Some(slab) = self.open_unclaimed(&claims)? else { break };
                rewritten.push(slab);
                self.rewrite((buffer, number, fill), of, slab, now);
            }
        }
        for slab in lost.into_iter().filter(|slab| !rewritten.contains(slab)) {
            self.state.begin(slab, 0);
        }
        self.counts.recovered = self.index.len();
        for buffer in self.buffers.free.clone() {
            slab::forget(self.buffers.bytes_mut(buffer));
        }
        self.state.begin_sync();
        Ok(())
    }

    /// Executes reads, several at once. Each is a slab and a range of its bytes.
    fn read_all(
        &mut self,
        reads: Vec<(u32, u32, u32)>,
        mut take: impl FnMut(&mut Self, u32, Option<&[u8]>),
    ) {
        let mut reads = reads.into_iter();
        let mut in_flight = 0;
        loop {
            while in_flight < DEPTH {
                let Some((slab, offset, len)) = reads.next() else { break };
                let data = self.buffer(len as usize);
                self.store.read(slab, offset, data, slab.into());
                in_flight += 1;
            }
            if in_flight == 0 {
                return;
            }
            self.store.wait(None);
            while let Some(Done { tag, result, data, .. }) = self.store.poll() {
                in_flight -= 1;
                take(self, tag as u32, result.is_ok().then_some(&data[..]));
                self.give_back(data);
            }
        }
    }

    /// The slabs on flash that are whole, with their numbers and fills.
    fn read_ends(&mut self, used: &[u32]) -> BTreeMap<u32, (u64, Fill)> {
        let Shape { slab_bytes, page_bytes, .. } = self.shape;
        let reads = used.iter().map(|&slab| (slab, slab_bytes - page_bytes, page_bytes)).collect();
        let mut ends = BTreeMap::new();
        self.read_all(reads, |cache, slab, data| {
            let end = data.and_then(slab::read_end);
            let first = cache.state.first_slab();
            ends.extend(end.filter(|(number, _)| *number >= first).map(|end| (slab, end)));
        });
        ends
    }

    /// Adds the current items of these slabs to the index.
    fn read_tables(&mut self, ends: &BTreeMap<u32, (u64, Fill)>, now: u32) {
        let Shape { slab_bytes, page_bytes, .. } = self.shape;
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
            let Some(tail) = data.filter(|tail| slab::table_is_whole(tail, fill)) else { return };
            for item in slab::contents(tail, fill) {
                cache.add_found(slab, slab, &item, now);
            }
        });
    }

    /// Adds an item that was found to the index, if it is current; `of` is the slab with its bit.
    fn add_found(&mut self, slab: u32, of: u32, item: &Content, now: u32) {
        let number = self.slabs[slab as usize].number;
        let expired = item.expires != 0 && item.expires <= now;
        if expired || item.units == 0 || !self.state.is_current(of, number, item.unit) {
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

    /// Opens a slab whose state no buffer of `claims` needs.
    fn open_unclaimed(
        &mut self,
        claims: &[(u16, u64, Fill, u32)],
    ) -> Result<Option<u32>, FlashError> {
        let mut refused = Vec::new();
        let opened = loop {
            match self.store.open()? {
                Some(slab) if claims.iter().any(|claim| claim.3 == slab) => refused.push(slab),
                // Perhaps a block is still being erased.
                None if self.store.wait(None) => {
                    while let Some(done) = self.store.poll() {
                        self.complete(done);
                    }
                }
                opened => break opened,
            }
        };
        refused.into_iter().try_for_each(|slab| self.store.free(slab))?;
        Ok(opened)
    }

    /// Writes the slab in a buffer to a new block, with the number that it has; `of` is the block
    /// that it was written to before.
    fn rewrite(&mut self, lost: (u16, u64, Fill), of: u32, slab: u32, now: u32) {
        let (buffer, number, fill) = lost;
        if slab != of {
            self.state.move_to(of, slab);
        }
        self.buffers.free.retain(|&free| free != buffer);
        self.slabs[slab as usize] =
            Slab { number, phase: Phase::Writing, buffer, fill, ..Slab::FREE };
        let bytes = self.buffers.bytes(buffer);
        let is_whole = |item: &Content| {
            let end = (u64::from(item.unit) + u64::from(item.units)) * u64::from(UNIT);
            let record = (end <= bytes.len() as u64).then(|| &bytes[(item.unit * UNIT) as usize..]);
            record.is_some_and(|bytes| {
                record::read(bytes, At { slab: number, unit: item.unit }).is_some()
            })
        };
        let items: Vec<Content> = slab::contents(bytes, fill).take_while(is_whole).collect();
        for item in &items {
            self.add_found(slab, slab, item, now);
        }
        // What a loss of power left damaged is no part of the slab.
        let units = items.last().map_or(0, |last| last.unit + last.units);
        let fill = Fill { items: items.len() as u32, units };
        self.slabs[slab as usize].fill = fill;
        slab::refill(self.buffers.bytes_mut(buffer), fill);
        slab::seal(self.buffers.bytes_mut(buffer), fill);
        self.write_out(slab, self.shape.slab_bytes);
        while self.slabs[slab as usize].writes > 0 {
            self.wait(None);
        }
    }
}
