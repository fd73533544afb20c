//! The log: chunks appended to segments, blocks read with their checksums. Every call waits until
//! its reads are complete; writes are in flight until a sync, or until a read needs their segment.

mod reads;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use borsh::{BorshDeserialize, BorshSerialize};
use prism_base::{FastMap, Nanos};
use prism_flash::{Buffer, FlashError};
use prism_segments::{Done, Reader, Store, Syncer};

use crate::error::{FsError, Result};
use crate::format::{BLOCK, ENTRIES, Entry, Kind, RESUMED, Summary, checksum};

/// Chunks that are written at the same time, at least; two for each channel if that is more.
const IN_FLIGHT: usize = 8;

/// Blocks written since the file system was made, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Counts {
    /// Blocks that callers changed.
    pub data: u64,
    /// Blocks that cleaning copied.
    pub cleaned: u64,
    /// Blocks of folders, links and attributes.
    pub folders: u64,
    /// Nodes.
    pub nodes: u64,
    /// Blocks of the node table.
    pub table: u64,
    /// Blocks of checkpoints.
    pub roots: u64,
    /// Summaries and padding.
    pub summaries: u64,
}

impl Counts {
    /// All blocks.
    #[must_use]
    pub fn total(&self) -> u64 {
        let files = self.data + self.cleaned + self.folders;
        files + self.nodes + self.table + self.roots + self.summaries
    }
}

/// Where a chunk goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The segment of transactions and checkpoints, which fills up bit by bit.
    Shared,
    /// A segment of its own, of a group.
    Whole,
}

#[derive(Clone, Copy, Debug)]
struct Head {
    segment: u32,
    next: u32,
}

struct OpenChunk {
    target: Target,
    head: Head,
    entries: Vec<Entry>,
    /// The block of the summary, then those of the payload.
    data: Buffer,
    /// Blocks of the payload.
    payload: u32,
}

/// A sync that has begun.
#[derive(Debug)]
pub struct Syncing {
    /// The last chunk that is durable when it has ended.
    durable: u64,
}

/// The log of a file system.
pub struct Log<S> {
    store: S,
    /// Reads that any thread can make without the log, if the store has them and a block is a whole
    /// number of pages.
    pub reader: Option<Reader>,
    /// Blocks of a segment.
    pub blocks_per_segment: u32,
    page_blocks: u32,
    in_flight: usize,
    /// The number of the file system.
    pub fs_id: u64,
    /// The number of the next chunk.
    pub seq: u64,
    /// The last chunk that is durable.
    pub durable: u64,
    /// The checksum of the summary before.
    pub prev: u32,
    heads: [Option<Head>; 2],
    open: Option<OpenChunk>,
    next_tag: u64,
    /// Unused buffers, each for a whole chunk: new memory costs more than a copy into it.
    spare: Vec<Buffer>,
    /// Writes in flight: the segment by tag.
    writes: FastMap<u64, u32>,
    /// Why a write failed.
    failed: Option<FsError>,
    /// Whether chunks that a mount discarded are between those that are durable and the next one.
    /// Until a checkpoint is durable, later chunks do not claim to follow durable ones.
    pub recovering: bool,
    /// Whether the next chunk is the first of the file system, or of a mount after a crash.
    pub resumes: bool,
    /// Whether chunks were written since the last sync began.
    pub unsynced: bool,
    /// Syncs that other threads wait for.
    syncing: u32,
    /// Segments opened since the last checkpoint.
    pub opened: u32,
    /// Blocks written, by cause.
    pub counts: Counts,
    /// Whether the segment is in use: open, or has live or dead blocks.
    pub in_use: Vec<bool>,
    /// How many times each segment was freed, so that a read without the log can see that its
    /// segment was.
    pub frees: Arc<[AtomicU64]>,
}

impl<S: Store> Log<S> {
    /// The log of a store. Its numbers are set by a mount.
    ///
    /// # Errors
    /// [`FsError::Shape`] if the pages do not fit blocks.
    pub fn new(store: S) -> Result<Self> {
        let shape = store.shape();
        let page_blocks = shape.page_bytes / BLOCK as u32;
        if !(shape.page_bytes.is_multiple_of(BLOCK as u32)
            || (BLOCK as u32).is_multiple_of(shape.page_bytes))
            || !shape.segment_bytes.is_multiple_of(BLOCK as u32 * page_blocks.max(1))
        {
            let what = format!("pages of {} bytes do not fit blocks of 4096", shape.page_bytes);
            return Err(FsError::Shape(what));
        }
        Ok(Self {
            blocks_per_segment: shape.segment_bytes / BLOCK as u32,
            page_blocks: page_blocks.max(1),
            in_flight: IN_FLIGHT.max(2 * shape.channels as usize),
            fs_id: 0,
            seq: 1,
            durable: 0,
            prev: 0,
            heads: [None; 2],
            open: None,
            next_tag: 0,
            spare: Vec::new(),
            writes: FastMap::default(),
            failed: None,
            recovering: false,
            resumes: false,
            unsynced: false,
            syncing: 0,
            opened: 0,
            counts: Counts::default(),
            in_use: vec![false; shape.segments as usize],
            frees: (0..shape.segments).map(|_| AtomicU64::new(0)).collect(),
            reader: store.reader().filter(|_| page_blocks <= 1),
            store,
        })
    }

    /// The store.
    pub fn store(&mut self) -> &mut S {
        &mut self.store
    }

    /// The store, at the end.
    pub fn into_store(self) -> S {
        self.store
    }

    /// Segments that can be opened, now or when their erase ends.
    pub fn free_segments(&mut self) -> u32 {
        self.store.unused()
    }

    /// Blocks that fit without opening a segment.
    #[must_use]
    pub fn rest_of_head(&self) -> u32 {
        self.heads[0].map_or(0, |head| self.blocks_per_segment - head.next)
    }

    /// Blocks that a chunk of this many takes.
    #[must_use]
    pub fn padded(&self, blocks: u32) -> u32 {
        blocks.next_multiple_of(self.page_blocks)
    }

    /// Whether the device has the block.
    #[must_use]
    pub fn has(&self, addr: u32) -> bool {
        ((addr / self.blocks_per_segment) as usize) < self.in_use.len()
    }

    /// Whether the block is in a segment that is in use.
    #[must_use]
    pub fn is_used(&self, addr: u32) -> bool {
        self.in_use.get((addr / self.blocks_per_segment) as usize).is_some_and(|in_use| *in_use)
    }

    /// Whether the segment is being written.
    #[must_use]
    pub fn is_head(&self, segment: u32) -> bool {
        self.heads.iter().flatten().any(|head| head.segment == segment)
    }

    /// Why writes fail, if they do.
    #[must_use]
    pub fn failure(&self) -> Option<&FsError> {
        self.failed.as_ref()
    }

    fn take(&mut self, done: Done) {
        if self.writes.remove(&done.tag).is_some() {
            self.recycle(done.data);
            if let Err(error) = done.result {
                self.failed.get_or_insert(error.into());
            }
        }
    }

    /// Bytes of the largest chunk.
    fn chunk_bytes(&self) -> usize {
        self.padded(1 + ENTRIES as u32).min(self.blocks_per_segment) as usize * BLOCK
    }

    /// Memory for a chunk or a read of `len` bytes, with what an earlier one left in it. Short
    /// reads leave the memory of chunks to others.
    fn buffer(&mut self, len: usize) -> Buffer {
        let is_long = len >= self.chunk_bytes() / 8;
        match self.spare.pop_if(|buffer| is_long && buffer.capacity() >= len) {
            Some(mut buffer) => {
                buffer.set_len(len);
                buffer
            }
            None => self.store.buffer(len),
        }
    }

    /// Keeps the memory of a chunk for the next one.
    fn recycle(&mut self, buffer: Buffer) {
        if buffer.capacity() >= self.chunk_bytes() && self.spare.len() <= self.in_flight {
            self.spare.push(buffer);
        }
    }

    /// Takes completions until `finished`.
    fn wait_until(&mut self, mut finished: impl FnMut(&mut Self, Option<Done>) -> bool) {
        while !finished(self, None) {
            match self.store.poll() {
                Some(done) if self.writes.contains_key(&done.tag) => self.take(done),
                Some(done) => {
                    finished(self, Some(done));
                }
                None => {
                    self.store.wait(None);
                }
            }
        }
    }

    /// Lets time pass on a device with timing, which goes on with what it does.
    pub fn pass(&mut self, time: Nanos) {
        let until = self.store.now() + time;
        loop {
            while let Some(done) = self.store.poll() {
                self.take(done);
            }
            let now = self.store.now();
            let left = Nanos(until.0.saturating_sub(now.0));
            if left.0 == 0 || (!self.store.wait(Some(left)) && self.store.now() == now) {
                return;
            }
        }
    }

    fn check_failed(&self) -> Result<()> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    fn open_segment(&mut self) -> Result<Head> {
        loop {
            // Counted before, because an erase may end after `open` has found nothing.
            let erasing = self.store.erasing();
            if let Some(segment) = self.store.open()? {
                self.in_use[segment as usize] = true;
                self.opened += 1;
                return Ok(Head { segment, next: 0 });
            }
            if erasing == 0 {
                return Err(FsError::NoSpace);
            }
            while let Some(done) = self.store.poll() {
                self.take(done);
            }
            if !self.store.wait(None) {
                // Another thread's read delays the erase.
                std::hint::spin_loop();
            }
        }
    }

    /// Begins a chunk with space for `blocks` payload blocks, in a new segment if need be.
    fn begin(&mut self, target: Target, blocks: u32) -> Result<()> {
        let fits = |head: &Head| head.next + 1 + blocks.max(1) <= self.blocks_per_segment;
        let head = match self.heads[target as usize].filter(fits) {
            Some(head) => head,
            None => {
                self.heads[target as usize] = None;
                // Half a transaction cannot be taken back in memory.
                let head = match self.open_segment() {
                    Ok(head) => head,
                    Err(error) => return Err(self.failed.get_or_insert(error).clone()),
                };
                self.heads[target as usize] = Some(head);
                head
            }
        };
        let data = self.buffer(self.chunk_bytes());
        self.open = Some(OpenChunk { target, head, entries: Vec::new(), data, payload: 0 });
        Ok(())
    }

    fn chunk(&mut self, target: Target) -> Result<&mut OpenChunk> {
        let per_segment = self.blocks_per_segment;
        let fits = self.open.as_ref().is_some_and(|open| {
            open.target == target
                && open.entries.len() < ENTRIES
                && open.head.next + 2 + open.payload <= per_segment
        });
        if !fits {
            self.emit(0)?;
            self.begin(target, 1)?;
        }
        Ok(self.open.as_mut().expect("just begun"))
    }

    /// Appends a block, and returns its address and checksum.
    ///
    /// # Errors
    /// [`FsError::NoSpace`] if no segment can be opened; those of the store.
    pub fn push(
        &mut self,
        target: Target,
        kind: Kind,
        id: u32,
        block: u32,
        bytes: &[u8; BLOCK],
    ) -> Result<(u32, u32)> {
        self.check_failed()?;
        let per_segment = self.blocks_per_segment;
        let sum = checksum(bytes);
        let open = self.chunk(target)?;
        open.payload += 1;
        let index = open.head.next + open.payload;
        open.entries.push(Entry { kind, id, block, sum });
        open.data[open.payload as usize * BLOCK..][..BLOCK].copy_from_slice(bytes);
        Ok((open.head.segment * per_segment + index, sum))
    }

    /// Appends that a node is free.
    ///
    /// # Errors
    /// As [`Log::push`].
    pub fn push_free(&mut self, id: u32) -> Result<()> {
        self.check_failed()?;
        let open = self.chunk(Target::Shared)?;
        open.entries.push(Entry { kind: Kind::Free, id, block: 0, sum: 0 });
        Ok(())
    }

    /// Makes sure that a chunk of `blocks` blocks and what precedes it is in one segment.
    ///
    /// # Errors
    /// As [`Log::push`].
    pub fn reserve(&mut self, blocks: u32) -> Result<u32> {
        self.emit(0)?;
        let chunks = blocks.div_ceil(ENTRIES as u32);
        // Each chunk is padded to pages.
        self.begin(Target::Shared, blocks + chunks * self.page_blocks)?;
        Ok(self.open.as_ref().expect("just begun").head.segment)
    }

    /// Writes the chunk that was begun. With flags one is written even if nothing was appended.
    ///
    /// # Errors
    /// As [`Log::push`].
    pub fn emit(&mut self, flags: u16) -> Result<()> {
        if self.open.is_none() && flags != 0 {
            self.begin(Target::Shared, 0)?;
        }
        let Some(open) = self.open.take() else { return Ok(()) };
        if open.entries.is_empty() && flags == 0 {
            self.recycle(open.data);
            return Ok(());
        }
        let OpenChunk { target, head, entries, mut data, payload } = open;
        let summary = Summary {
            fs_id: self.fs_id,
            seq: self.seq,
            durable: self.durable,
            prev: self.prev,
            flags: if std::mem::take(&mut self.resumes) { flags | RESUMED } else { flags },
            entries,
        };
        let blocks = self.padded(1 + payload);
        data.set_len(blocks as usize * BLOCK);
        self.prev = summary.encode(&mut data[..BLOCK]);
        data[(1 + payload as usize) * BLOCK..].fill(0);
        self.seq += 1;
        self.unsynced = true;
        self.counts.summaries += u64::from(blocks - payload);
        self.wait_until(|log, _| log.writes.len() < log.in_flight);
        let tag = self.tag();
        self.writes.insert(tag, head.segment);
        self.store.write(head.segment, head.next * BLOCK as u32, data, tag);
        let next = head.next + blocks;
        let is_full = next + 2 > self.blocks_per_segment;
        self.heads[target as usize] = (!is_full).then_some(Head { next, ..head });
        Ok(())
    }

    /// Ends the segment of a group.
    ///
    /// # Errors
    /// As [`Log::push`].
    pub fn close_whole(&mut self) -> Result<()> {
        self.emit(0)?;
        self.heads[Target::Whole as usize] = None;
        Ok(())
    }

    fn tag(&mut self) -> u64 {
        self.next_tag += 1;
        self.next_tag
    }

    /// Waits until everything that was written is durable.
    ///
    /// # Errors
    /// The first failure of a write or of the sync; the file system is read-only from then on.
    pub fn sync(&mut self) -> Result<()> {
        self.emit(0)?;
        if self.is_durable() || !self.store.syncs_writes_in_flight() {
            self.wait_until(|log, _| log.writes.is_empty());
            self.check_failed()?;
        }
        if self.is_durable() {
            return Ok(());
        }
        let tag = self.tag();
        self.store.sync(tag);
        let mut result = None;
        self.wait_until(|log, done| {
            if let Some(done) = done.filter(|done| done.tag == tag) {
                result = Some(done.result);
            }
            result.is_some() && log.writes.is_empty()
        });
        if let Some(Err(error)) = result {
            self.failed.get_or_insert(error.into());
        }
        self.check_failed()?;
        self.unsynced = false;
        if !self.recovering {
            self.durable = self.seq - 1;
        }
        Ok(())
    }

    /// Whether everything that was written is durable: nothing was written since the last sync
    /// began, and no sync is in progress.
    pub fn is_durable(&self) -> bool {
        !self.unsynced && self.syncing == 0
    }

    /// Begins to make everything durable that was written: returns the sync to be run without the
    /// log, whose result [`Log::end_sync`] takes. `None` if all is durable already, or if the store
    /// needs the log for a sync, which has then been made.
    ///
    /// # Errors
    /// As [`Log::sync`].
    pub fn begin_sync(&mut self) -> Result<Option<(Syncing, Syncer)>> {
        self.emit(0)?;
        self.wait_until(|log, _| log.writes.is_empty());
        self.check_failed()?;
        if self.is_durable() {
            return Ok(None);
        }
        // It covers what is complete now, so all writes have ended before.
        let Some(syncer) = self.store.syncer() else { return self.sync().map(|()| None) };
        self.unsynced = false;
        self.syncing += 1;
        let durable = if self.recovering { 0 } else { self.seq - 1 };
        Ok(Some((Syncing { durable }, syncer)))
    }

    /// A sync has ended.
    ///
    /// # Errors
    /// Its failure; the file system is read-only from then on.
    pub fn end_sync(
        &mut self,
        sync: Syncing,
        ended: std::result::Result<(), FlashError>,
    ) -> Result<()> {
        self.syncing -= 1;
        if let Err(error) = ended {
            self.failed.get_or_insert(error.into());
        }
        self.check_failed()?;
        self.durable = self.durable.max(sync.durable);
        Ok(())
    }

    /// A checkpoint is durable.
    pub fn checkpoint_is_durable(&mut self) {
        self.recovering = false;
        self.durable = self.seq - 1;
        self.opened = 0;
    }

    /// Frees a segment without live blocks.
    ///
    /// # Errors
    /// Those of the store.
    pub fn free(&mut self, segment: u32) -> Result<()> {
        self.in_use[segment as usize] = false;
        self.frees[segment as usize].fetch_add(1, Ordering::Release);
        self.store.free(segment)?;
        Ok(())
    }

    /// The address of the chunk after one with `payload` payload blocks; `None` at the end of the
    /// segment.
    #[must_use]
    pub fn next_chunk(&self, addr: u32, payload: u32) -> Option<u32> {
        let block = addr % self.blocks_per_segment;
        let next = (block + 1 + payload).next_multiple_of(self.page_blocks);
        (next + 2 <= self.blocks_per_segment).then_some(addr - block + next)
    }
}
