//! Reads of a log: blocks with their checksums, many at a time.

use prism_flash::{Buffer, FlashError, MediumError};
use prism_segments::Store;

use super::Log;
use crate::error::{FsError, Result};
use crate::format::{BLOCK, Block, Summary, block_of, checksum};

/// Blocks that are read by one command.
const RUN: u32 = 256;

impl<S: Store> Log<S> {
    /// Waits until no write to these segments is in flight.
    pub fn complete_writes(&mut self, mut segments: impl Iterator<Item = u32>) {
        if segments.any(|segment| self.writes.values().any(|&at| at == segment)) {
            self.wait_until(|log, _| log.writes.is_empty());
        }
    }

    /// Reads runs of blocks, each within a segment; the result of each is its bytes, or why its
    /// read failed. A read of blocks that the device does not have fails.
    pub fn read_runs(
        &mut self,
        runs: &[(u32, u32)],
    ) -> Vec<std::result::Result<Buffer, FlashError>> {
        let per_segment = self.blocks_per_segment;
        self.complete_writes(runs.iter().map(|run| run.0 / per_segment));
        let first = self.next_tag + 1;
        let mut results: Vec<Option<_>> = Vec::new();
        for &(addr, count) in runs {
            let tag = self.tag();
            if !self.has(addr) {
                let what = format!("block {addr} is outside of the device");
                results.push(Some(Err(FlashError::Invalid { what })));
                continue;
            }
            let (segment, block) = (addr / self.blocks_per_segment, addr % self.blocks_per_segment);
            let begin = block - block % self.page_blocks;
            let end = (block + count).next_multiple_of(self.page_blocks);
            let data = self.buffer((end - begin) as usize * BLOCK);
            self.store.read(segment, begin * BLOCK as u32, data, tag);
            results.push(None);
        }
        let mut left = results.iter().filter(|result| result.is_none()).count();
        self.wait_until(|_, done| {
            if let Some(done) = done {
                results[(done.tag - first) as usize] = Some(done.result.map(|()| done.data));
                left -= 1;
            }
            left == 0
        });
        results.into_iter().map(|result| result.expect("all have ended")).collect()
    }

    /// Reads blocks and checks them.
    ///
    /// # Errors
    /// [`FsError::Damaged`] if one cannot be read or its checksum differs; [`FsError::Store`] if
    /// the device as a whole failed.
    pub fn read(&mut self, wanted: &[(u32, u32)], what: &'static str) -> Result<Vec<Block>> {
        let mut blocks = Vec::with_capacity(wanted.len());
        let mut failed = None;
        self.visit(wanted, what, |_, read| match read {
            Ok(bytes) => blocks.push(block_of(bytes)),
            Err(error) => drop(failed.get_or_insert(error)),
        })?;
        failed.map_or(Ok(blocks), Err)
    }

    /// Reads blocks, those that follow each other together, and shows each with its number among
    /// these, or why it cannot be read.
    ///
    /// # Errors
    /// [`FsError::Store`] if the device as a whole failed.
    pub fn visit(
        &mut self,
        wanted: &[(u32, u32)],
        what: &'static str,
        mut show: impl FnMut(usize, Result<&[u8]>),
    ) -> Result<()> {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for &(addr, _) in wanted {
            match runs.last_mut() {
                Some((begin, count))
                    if begin.checked_add(*count) == Some(addr)
                        && *count < RUN
                        && !addr.is_multiple_of(self.blocks_per_segment) =>
                {
                    *count += 1;
                }
                _ => runs.push((addr, 1)),
            }
        }
        let mut index = 0;
        let results = self.read_runs(&runs);
        for ((begin, count), result) in runs.into_iter().zip(results) {
            let skipped = (begin % self.page_blocks) as usize;
            for at in 0..count as usize {
                let (addr, sum) = wanted[index];
                let alone;
                let read = match &result {
                    Ok(data) => Ok(&data[(skipped + at) * BLOCK..][..BLOCK]),
                    Err(error) if count == 1 => Err(unreadable(error, what, addr)),
                    Err(_) => match self.read_runs(&[(addr, 1)]).pop().expect("one read") {
                        Ok(data) => {
                            alone = data;
                            Ok(&alone[(addr % self.page_blocks) as usize * BLOCK..][..BLOCK])
                        }
                        Err(error) => Err(unreadable(&error, what, addr)),
                    },
                };
                match read {
                    Err(error @ FsError::Store(_)) => return Err(error),
                    Ok(bytes) if checksum(bytes) != sum => {
                        show(index, Err(FsError::Damaged { what, addr }));
                    }
                    read => show(index, read),
                }
                index += 1;
            }
            if let Ok(data) = result {
                self.recycle(data);
            }
        }
        Ok(())
    }

    /// The summary at an address and its checksum; `None` if there is none.
    ///
    /// # Errors
    /// [`FsError::Version`], [`FsError::Features`], and [`FsError::Store`] if the device as a whole
    /// failed.
    pub fn read_summary(&mut self, addr: u32) -> Result<Option<(Summary, u32)>> {
        match self.read_runs(&[(addr, 1)]).pop().expect("one read") {
            Ok(data) => {
                let skipped = (addr % self.page_blocks) as usize * BLOCK;
                Summary::decode(&data[skipped..skipped + BLOCK])
            }
            Err(error) => match unreadable(&error, "summary", addr) {
                FsError::Damaged { .. } => Ok(None),
                error => Err(error),
            },
        }
    }
}

/// A page that cannot be read is damage; a device without power is a failure.
fn unreadable(error: &FlashError, what: &'static str, addr: u32) -> FsError {
    match error {
        FlashError::Medium(MediumError::PowerLost) => error.clone().into(),
        _ => FsError::Damaged { what, addr },
    }
}
