//! Reads without the lock of the level: the places of the data are looked up under the lock, and
//! the data is read without it. If cleaning has moved some of it and erased its block meanwhile, it
//! is looked up again.

use std::sync::{Mutex, MutexGuard};

use prism_base::SimTime;
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

/// Pieces that follow each other in a block: one read of the device.
#[derive(Debug)]
struct Run {
    block: u32,
    from: u64,
    len: usize,
    pieces: Vec<Piece>,
    /// The entry of the block when the data was looked up.
    entry: u64,
}

/// What a read takes from flash.
#[derive(Debug)]
pub(super) struct ReadPlan {
    runs: Vec<Run>,
}

/// The longest read of the device: longer ones are divided, so that several are in flight.
const RUN_MAX: usize = 256 << 10;

impl ReadPlan {
    /// Joins pieces that follow each other on flash. To be called under the lock of the level, so
    /// that no block is erased before its entry is known.
    pub(super) fn new(share: &Share, mut pieces: Vec<Piece>) -> Result<Self> {
        pieces.sort_unstable_by_key(|piece| (piece.block, piece.from));
        let mut runs: Vec<Run> = Vec::new();
        for piece in pieces {
            match runs.last_mut() {
                Some(run)
                    if run.block == piece.block
                        && run.from + run.len as u64 == piece.from
                        && run.len + piece.len <= RUN_MAX =>
                {
                    run.len += piece.len;
                    run.pieces.push(piece);
                }
                _ => {
                    let path = share.path();
                    let entry = path.map.entry(path.virtual_block(piece.block)?);
                    let Piece { block, from, len, .. } = piece;
                    runs.push(Run { block, from, len, pieces: vec![piece], entry });
                }
            }
        }
        Ok(Self { runs })
    }
}

/// Queues and buffers of reads, which threads take in turn: as many as read at once.
#[derive(Debug, Default)]
pub(super) struct Readers(Mutex<Vec<Reader>>);

#[derive(Debug)]
struct Reader {
    queue: ShareQueue,
    buffers: Vec<Buffer>,
}

/// Reads in flight.
const DEPTH: usize = 32;

impl Readers {
    fn lock(&self) -> MutexGuard<'_, Vec<Reader>> {
        self.0.lock().expect("no thread panics while it holds the readers")
    }

    /// Executes a plan. Returns false if data has moved: it has to be looked up again.
    pub(super) fn read(
        &self,
        share: &Share,
        plan: &ReadPlan,
        into: &mut [&mut [u8]],
    ) -> Result<bool> {
        match &plan.runs[..] {
            [] => return Ok(true),
            [run] if run.pieces.len() == 1 => return read_one(share, run, into),
            _ => {}
        }
        let idle = self.lock().pop();
        let mut reader = idle.unwrap_or_else(|| Reader {
            queue: ShareQueue::new(share, DEPTH),
            buffers: Vec::new(),
        });
        let read = reader.read(share, &plan.runs, into);
        self.lock().push(reader);
        read
    }
}

fn page_of(share: &Share, from: u64) -> (u32, u32) {
    let size = u64::from(share.path().page_size);
    ((from / size) as u32, (from % size) as u32)
}

/// Whether the data of a run is still where it was.
fn is_there(share: &Share, run: &Run) -> Result<bool> {
    let path = share.path();
    Ok(path.map.entry(path.virtual_block(run.block)?) == run.entry)
}

fn checked(share: &Share, run: &Run, state: PageState) -> Result<()> {
    let (page, _) = page_of(share, run.from);
    match state {
        PageState::Written => Ok(()),
        PageState::Erased | PageState::Torn => {
            Err(FlashError::Torn { at: share.path().address(run.block, page) })
        }
    }
}

fn read_one(share: &Share, run: &Run, into: &mut [&mut [u8]]) -> Result<bool> {
    let (page, offset) = page_of(share, run.from);
    let access = share.access(run.block, page, Cause::Host, SimTime::ZERO);
    let (buffer, to) = run.pieces[0].to;
    let read = share.read(access, offset, &mut into[buffer][to..to + run.len], &mut []);
    if !is_there(share, run)? {
        return Ok(false);
    }
    checked(share, run, read?.0)?;
    Ok(true)
}

impl Reader {
    fn read(&mut self, share: &Share, runs: &[Run], into: &mut [&mut [u8]]) -> Result<bool> {
        let (mut next, mut all_there, mut failed) = (0, true, None);
        while next < runs.len() || self.queue.len() > 0 {
            while next < runs.len() && self.queue.len() < DEPTH {
                let run = &runs[next];
                let (page, offset) = page_of(share, run.from);
                let op = ShareOp::Read { block: run.block, page, offset };
                let buffer = self.buffer(share, run.len);
                self.queue.submit(next as u64, op, buffer, Vec::new());
                next += 1;
            }
            self.queue.wait(None);
            while let Some(reply) = self.queue.take() {
                let run = &runs[reply.tag as usize];
                if !is_there(share, run)? {
                    all_there = false;
                } else if let Err(error) = reply.result.and_then(|s| checked(share, run, s)) {
                    failed.get_or_insert(error);
                } else {
                    for piece in &run.pieces {
                        let at = (piece.from - run.from) as usize;
                        let (buffer, to) = piece.to;
                        into[buffer][to..to + piece.len]
                            .copy_from_slice(&reply.data[at..at + piece.len]);
                    }
                }
                self.buffers.push(reply.data);
            }
        }
        failed.map_or(Ok(all_there), Err)
    }

    /// A buffer of `len` bytes.
    fn buffer(&mut self, share: &Share, len: usize) -> Buffer {
        let enough = self.buffers.iter().position(|buffer| buffer.capacity() >= len);
        let found = enough.map(|place| self.buffers.swap_remove(place));
        let mut buffer = found.unwrap_or_else(|| share.buffer(len.next_power_of_two()));
        buffer.set_len(len);
        buffer
    }
}
