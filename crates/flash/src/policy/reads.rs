//! Reads without the lock of the level: the places of the data are looked up under the lock, and
//! the data is read without it. If cleaning has moved some of it and erased its block meanwhile, it
//! is looked up again. Calls and queues read in the same way.

use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard};

use prism_base::{Nanos, SimTime, Slab};
use prism_nand::Cause;

use crate::buffer::Buffer;
use crate::error::{FlashError, Result};
use crate::medium::PageState;
use crate::monitor::{Share, ShareOp, ShareQueue};

/// A part of a read that is in one piece on flash and in the caller's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Block of the share, and the first byte in it.
    pub(super) block: u32,
    pub(super) from: u64,
    pub(super) len: usize,
    /// Where it goes: which of the caller's buffers, and the byte in it.
    pub(super) to: (usize, usize),
}

impl Piece {
    /// Whether `next` follows in the caller's memory.
    fn is_followed_by(&self, next: &Piece) -> bool {
        (self.to.0, self.to.1 + self.len) == next.to
    }
}

/// Pieces that follow each other in a block: one read of the device. Neighbours that follow each
/// other in the caller's memory too are one piece.
#[derive(Debug, Default)]
pub(super) struct Run {
    block: u32,
    from: u64,
    pub(super) len: usize,
    pub(super) pieces: Vec<Piece>,
    /// The entry of the block when the data was looked up.
    entry: u64,
}

/// The longest read of the device: longer ones are divided, so that several are in flight.
const RUN_MAX: usize = 1 << 20;
/// The longest one that is not in one piece of the caller's memory, because it is copied there.
const COPIED_MAX: usize = 256 << 10;

/// Joins pieces that follow each other on flash. To be called under the lock of the level, so that
/// no block is erased before its entry is known.
pub(super) fn join(share: &Share, mut pieces: Vec<Piece>) -> Result<Vec<Run>> {
    pieces.sort_unstable_by_key(|piece| (piece.block, piece.from));
    let mut runs: Vec<Run> = Vec::new();
    for piece in pieces {
        match runs.last_mut() {
            Some(run) if run.takes(&piece) => run.add(piece),
            _ => {
                let path = share.path();
                let entry = path.map.entry(path.virtual_block(piece.block)?);
                let Piece { block, from, len, .. } = piece;
                runs.push(Run { block, from, len, pieces: vec![piece], entry });
            }
        }
    }
    Ok(runs)
}

impl Run {
    /// Whether `piece` follows on flash, and one read of both is not too long.
    fn takes(&self, piece: &Piece) -> bool {
        let is_one = self.pieces.len() == 1 && self.pieces[0].is_followed_by(piece);
        let most = if is_one { RUN_MAX } else { COPIED_MAX };
        let follows = self.block == piece.block && self.from + self.len as u64 == piece.from;
        follows && self.len + piece.len <= most
    }

    fn add(&mut self, piece: Piece) {
        self.len += piece.len;
        match self.pieces.last_mut() {
            Some(last) if last.is_followed_by(&piece) => last.len += piece.len,
            _ => self.pieces.push(piece),
        }
    }

    fn page(&self, share: &Share) -> (u32, u32) {
        let size = u64::from(share.path().page_size);
        ((self.from / size) as u32, (self.from % size) as u32)
    }

    /// Checks the result of a read. Returns false if the data is no longer where it was: it has to
    /// be looked up again.
    fn check(&self, share: &Share, read: Result<PageState>) -> Result<bool> {
        let path = share.path();
        if path.map.entry(path.virtual_block(self.block)?) != self.entry {
            return Ok(false);
        }
        match read? {
            PageState::Written => Ok(true),
            PageState::Erased | PageState::Torn => {
                let (page, _) = self.page(share);
                Err(FlashError::Torn { at: path.address(self.block, page) })
            }
        }
    }

    /// Its pieces, each with its part of the data of the run.
    pub(super) fn parts<'a>(&self, data: &'a [u8]) -> impl Iterator<Item = (Piece, &'a [u8])> {
        let from = self.from;
        self.pieces.iter().map(move |&piece| {
            let at = (piece.from - from) as usize;
            (piece, &data[at..at + piece.len])
        })
    }
}

/// A run that was read.
pub(super) struct RunRead {
    pub(super) run: Run,
    /// False if the data has moved.
    pub(super) result: Result<bool>,
    pub(super) data: Buffer,
}

/// What is complete.
pub(super) enum ReadOrSync {
    Run(RunRead),
    Sync { tag: u64, result: Result<()> },
}

/// Runs and syncs in flight, of one thread at a time, and buffers for runs.
#[derive(Debug)]
pub(super) struct RunQueue {
    share: Share,
    queue: ShareQueue,
    runs: Slab<Run>,
    buffers: Vec<Buffer>,
}

impl RunQueue {
    /// A queue of about `depth` operations of the device.
    pub(super) fn new(share: &Share, depth: usize) -> Self {
        let queue = ShareQueue::new(share, depth);
        Self { share: share.clone(), queue, runs: Slab::new(), buffers: Vec::new() }
    }

    /// Submits a run that is read into `data`, which has its length.
    pub(super) fn submit(&mut self, run: Run, data: Buffer) {
        let (page, offset) = run.page(&self.share);
        let op = ShareOp::Read { block: run.block, page, offset };
        let place = self.runs.take();
        self.runs[place] = run;
        self.queue.submit(place.into(), op, data, Vec::new());
    }

    /// Submits a sync of everything that is complete.
    pub(super) fn submit_sync(&mut self, tag: u64) {
        self.queue.submit(tag, ShareOp::Sync, Buffer::default(), Vec::new());
    }

    /// Runs and syncs whose result was not taken.
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Takes a run that was read, or a sync, without waiting.
    pub(super) fn take(&mut self) -> Option<ReadOrSync> {
        let reply = self.queue.take()?;
        if reply.op == ShareOp::Sync {
            return Some(ReadOrSync::Sync { tag: reply.tag, result: reply.result.map(drop) });
        }
        let place = reply.tag as u32;
        let run = std::mem::take(&mut self.runs[place]);
        self.runs.give(place);
        let result = run.check(&self.share, reply.result);
        Some(ReadOrSync::Run(RunRead { run, result, data: reply.data }))
    }

    /// See [`ShareQueue::wait`].
    pub(super) fn wait(&mut self, timeout: Option<Nanos>) -> bool {
        self.queue.wait(timeout)
    }

    /// See [`ShareQueue::event_fd`].
    pub(super) fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        self.queue.event_fd()
    }

    /// A buffer of `len` bytes, to be returned with [`RunQueue::give`].
    pub(super) fn buffer(&mut self, len: usize) -> Buffer {
        let enough = self.buffers.iter().position(|buffer| buffer.capacity() >= len);
        let found = enough.map(|place| self.buffers.swap_remove(place));
        let mut buffer = found.unwrap_or_else(|| self.share.buffer(len.next_power_of_two()));
        buffer.set_len(len);
        buffer
    }

    pub(super) fn give(&mut self, buffer: Buffer) {
        if self.buffers.len() < DEPTH {
            self.buffers.push(buffer);
        }
    }
}

/// Queues of calls that read, which threads take in turn: as many as read at once.
#[derive(Debug, Default)]
pub(super) struct Readers(Mutex<Vec<RunQueue>>);

/// Reads of a call in flight, and buffers that a queue keeps.
const DEPTH: usize = 32;

impl Readers {
    fn lock(&self) -> MutexGuard<'_, Vec<RunQueue>> {
        self.0.lock().expect("no thread panics while it holds the readers")
    }

    /// Reads runs. Returns false if data has moved: it has to be looked up again.
    pub(super) fn read(
        &self,
        share: &Share,
        runs: Vec<Run>,
        into: &mut [&mut [u8]],
    ) -> Result<bool> {
        match &runs[..] {
            [] => return Ok(true),
            [run] if run.pieces.len() == 1 => return read_one(share, run, into),
            _ => {}
        }
        let idle = self.lock().pop();
        let mut queue = idle.unwrap_or_else(|| RunQueue::new(share, DEPTH));
        let read = read_all(&mut queue, runs, into);
        self.lock().push(queue);
        read
    }
}

/// Reads a run that is one piece, without a queue and without a copy.
fn read_one(share: &Share, run: &Run, into: &mut [&mut [u8]]) -> Result<bool> {
    let (page, offset) = run.page(share);
    let access = share.access(run.block, page, Cause::Host, SimTime::ZERO);
    let (buffer, to) = run.pieces[0].to;
    let read = share.read(access, offset, &mut into[buffer][to..to + run.len], &mut []);
    run.check(share, read.map(|(state, _)| state))
}

fn read_all(queue: &mut RunQueue, runs: Vec<Run>, into: &mut [&mut [u8]]) -> Result<bool> {
    let mut runs = runs.into_iter();
    let mut result = Ok(true);
    loop {
        while queue.len() < DEPTH {
            let Some(run) = runs.next() else { break };
            let buffer = queue.buffer(run.len);
            queue.submit(run, buffer);
        }
        queue.wait(None);
        let Some(ReadOrSync::Run(read)) = queue.take() else { return result };
        match read.result {
            Ok(true) => {
                for (Piece { to: (buffer, to), len, .. }, part) in read.run.parts(&read.data) {
                    into[buffer][to..to + len].copy_from_slice(part);
                }
            }
            failed if result.is_ok() => result = failed,
            _ => {}
        }
        queue.give(read.data);
    }
}
