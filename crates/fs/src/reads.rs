//! Reads of files that wait for flash without the file system, so that other threads use it
//! meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prism_segments::{Reader, Store};

use crate::error::Result;
use crate::format::{BLOCK, checksum};
use crate::fs::Fs;
use crate::node::Pointer;

/// Runs of neighbouring blocks that one thread reads one after the other. A read of more is faster
/// with the queue of the store, where they are read at the same time.
const RUNS_MAX: usize = 4;

/// Blocks of a file that follow each other on flash, too.
#[derive(Debug)]
struct Run {
    segment: u32,
    /// How many times the segment was freed when the read began.
    frees: u64,
    /// Bytes of the segment before it.
    offset: u32,
    /// Blocks of the read before it.
    at: usize,
    /// The checksums of its blocks.
    sums: Vec<u32>,
}

/// A read that has begun.
#[must_use]
pub struct FileRead<'m> {
    reader: Reader,
    frees: Arc<[AtomicU64]>,
    runs: Vec<Run>,
    /// The memory that [`Fs::begin_read`] got, with the blocks that were in memory.
    memory: &'m mut [u8],
    len: usize,
}

impl<'m> FileRead<'m> {
    /// Reads from flash, and returns the bytes of the file as of the beginning of the read. `None`
    /// if they cannot be read, or if their segment was freed meanwhile: [`Fs::read`] has the bytes
    /// of now, or the error.
    #[must_use]
    pub fn wait(self) -> Option<&'m [u8]> {
        let Self { reader, frees, runs, memory, len } = self;
        for run in runs {
            let blocks = &mut memory[run.at * BLOCK..][..run.sums.len() * BLOCK];
            reader(run.segment, run.offset, blocks).ok()?;
            let (blocks, _) = blocks.as_chunks::<BLOCK>();
            let mut pairs = blocks.iter().zip(&run.sums);
            let is_right = pairs.all(|(block, &sum)| checksum(block) == sum);
            // A segment that was freed may have other blocks, which can have the same checksums.
            let is_same = frees[run.segment as usize].load(Ordering::Acquire) == run.frees;
            if !is_right || !is_same {
                return None;
            }
        }
        Some(&memory[..len])
    }
}

impl<S: Store> Fs<S> {
    /// Begins to read from a file into `memory`, which is a number of blocks; fewer bytes at the
    /// end of the file. The caller runs [`FileRead::wait`], during which other calls can go on.
    /// `None` if this is a case for [`Fs::read`]: if blocks are in too many places, if the offset
    /// is not that of a block, if the bytes do not fit the memory, or if there are none.
    ///
    /// # Errors
    /// As [`Fs::read`], but for damage, which that one finds.
    pub fn begin_read<'m>(
        &mut self,
        ino: u32,
        offset: u64,
        len: usize,
        memory: &'m mut [u8],
    ) -> Result<Option<FileRead<'m>>> {
        let Some(reader) = self.log.reader.clone() else { return Ok(None) };
        let end = self.regular(ino)?.size.min(offset.saturating_add(len as u64));
        let (blocks, _) = memory.as_chunks_mut::<BLOCK>();
        let len = end.saturating_sub(offset).min(usize::MAX as u64) as usize;
        let count = len.div_ceil(BLOCK);
        if count == 0 || !offset.is_multiple_of(BLOCK as u64) || count > blocks.len() {
            return Ok(None);
        }
        // Blocks in memory can be read although the map cannot.
        let runs = self.runs_of(ino, offset / BLOCK as u64, &mut blocks[..count]);
        let Ok(Some(runs)) = runs else { return Ok(None) };
        self.log.complete_writes(runs.iter().map(|run| run.segment));
        self.touch(ino)?;
        let frees = Arc::clone(&self.log.frees);
        Ok(Some(FileRead { reader, frees, runs, memory, len }))
    }

    /// Copies blocks of a file that are in memory, and returns where the others are; `None` if they
    /// are in too many places, or outside of the device.
    fn runs_of(
        &mut self,
        ino: u32,
        first: u64,
        blocks: &mut [[u8; BLOCK]],
    ) -> Result<Option<Vec<Run>>> {
        let mut runs: Vec<Run> = Vec::new();
        let mut at = 0;
        while at < blocks.len() {
            let (pointers, end) = self.pointers_from(ino, first + at as u64)?;
            let count = (end - first).min(blocks.len() as u64) as usize - at;
            let pointers: Vec<Pointer> = pointers[..pointers.len().min(count)].to_vec();
            let holes = std::iter::repeat(Pointer::HOLE);
            for pointer in pointers.into_iter().chain(holes).take(count) {
                if let Some(known) = self.known_block((ino, first + at as u64)) {
                    blocks[at] = **known;
                } else if !pointer.is_block() {
                    blocks[at].fill(0);
                } else if !self.log.has(pointer.addr) || !self.add(&mut runs, at, pointer) {
                    return Ok(None);
                }
                at += 1;
            }
        }
        Ok(Some(runs))
    }

    /// Adds a block to the last run if it follows it on flash, or begins another; false if there
    /// are too many.
    fn add(&self, runs: &mut Vec<Run>, at: usize, pointer: Pointer) -> bool {
        let per_segment = self.blocks_per_segment();
        let segment = pointer.addr / per_segment;
        let offset = pointer.addr % per_segment * BLOCK as u32;
        match runs.last_mut() {
            Some(run)
                if run.segment == segment
                    && run.at + run.sums.len() == at
                    && run.offset + (run.sums.len() * BLOCK) as u32 == offset =>
            {
                run.sums.push(pointer.sum);
            }
            _ => {
                let frees = self.log.frees[segment as usize].load(Ordering::Relaxed);
                runs.push(Run { segment, frees, offset, at, sums: vec![pointer.sum] });
            }
        }
        runs.len() <= RUNS_MAX
    }
}
