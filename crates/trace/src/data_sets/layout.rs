//! Assigns addresses for traces that name objects or files instead: each gets space on one
//! device in the order in which its parts are first accessed, as on a drive that was empty and
//! from which nothing is ever freed.
//!
//! Space is allocated in chunks. Chunks that are first accessed together are adjacent. A
//! request over chunks that are not adjacent becomes several, as in a file with several
//! extents. The same lines always give the same addresses.
//!
//! Such addresses show how much data is accessed and how often. They do not show where the
//! original system stored it.

use std::collections::BTreeMap;

use crate::fields::{ADDRESS_MAX, OUT_OF_RANGE, ZERO_LENGTH};
use crate::skips::SkipReason;

/// The table of runs of chunks is full.
pub const TOO_MANY: SkipReason =
    SkipReason("one more object or piece than the 16777216 that are kept");

/// The most runs of chunks that are kept: at about 60 bytes each they take a gigabyte.
const RUNS_MAX: usize = 1 << 24;

/// The addresses of all chunks.
#[derive(Debug)]
pub(super) struct Layout {
    chunk_bytes: u64,
    /// By object and first chunk: the number of chunks and their position on the device.
    runs: BTreeMap<(u64, u64), Run>,
    /// The first free chunk of the device; all after it are free too.
    free: u64,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    chunks: u64,
    at: u64,
}

impl Layout {
    /// An empty device with chunks of `chunk_bytes`.
    pub fn new(chunk_bytes: u64) -> Self {
        Self { chunk_bytes, runs: BTreeMap::new(), free: 0 }
    }

    /// Calls `take` with the address and length of each contiguous part of the `len` bytes
    /// from `offset` of `object`, in order.
    pub fn place(
        &mut self,
        object: u64,
        offset: u64,
        len: u64,
        mut take: impl FnMut(u64, u64),
    ) -> Result<(), SkipReason> {
        if len == 0 {
            return Err(ZERO_LENGTH);
        }
        let end = offset.checked_add(len).filter(|end| *end <= ADDRESS_MAX).ok_or(OUT_OF_RANGE)?;
        let size = self.chunk_bytes;
        let (mut chunk, stop) = (offset / size, end.div_ceil(size));
        let mut part: Option<(u64, u64)> = None;
        while chunk < stop {
            let run = self.run(object, chunk, stop)?;
            let until = stop.min(chunk + run.chunks);
            let (from, to) = (offset.max(chunk * size), end.min(until * size));
            let address = run.at * size + (from - chunk * size);
            part = match part {
                Some((start, bytes)) if start + bytes == address => {
                    Some((start, bytes + to - from))
                }
                before => {
                    if let Some((start, bytes)) = before {
                        take(start, bytes);
                    }
                    Some((address, to - from))
                }
            };
            chunk = until;
        }
        if let Some((start, bytes)) = part {
            take(start, bytes);
        }
        Ok(())
    }

    /// The run from `chunk` on. If the chunk is accessed for the first time, the run is
    /// allocated now, up to `stop` or to the next chunk that exists.
    fn run(&mut self, object: u64, chunk: u64, stop: u64) -> Result<Run, SkipReason> {
        let before = self.runs.range_mut(..=(object, chunk)).next_back();
        let before = before.filter(|(key, _)| key.0 == object).map(|(key, run)| (key.1, run));
        if let Some((first, run)) = &before
            && chunk - first < run.chunks
        {
            let skipped = chunk - first;
            return Ok(Run { chunks: run.chunks - skipped, at: run.at + skipped });
        }
        let at = self.free;
        let grown =
            before.filter(|(first, run)| first + run.chunks == chunk && run.at + run.chunks == at);
        let grown = grown.map(|(first, _)| first);
        let next = self.runs.range((object, chunk)..=(object, u64::MAX)).next();
        let chunks = next.map_or(stop, |(key, _)| key.1.min(stop)) - chunk;
        let fits = at.checked_add(chunks).filter(|end| *end <= ADDRESS_MAX / self.chunk_bytes);
        let free = fits.ok_or(OUT_OF_RANGE)?;
        if grown.is_none() && self.runs.len() >= RUNS_MAX {
            return Err(TOO_MANY);
        }
        let key = (object, grown.unwrap_or(chunk));
        self.runs.entry(key).or_insert(Run { chunks: 0, at }).chunks += chunks;
        self.free = free;
        Ok(Run { chunks, at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prism_testkit::cases;
    use proptest::prelude::*;

    fn place(layout: &mut Layout, object: u64, offset: u64, len: u64) -> Vec<(u64, u64)> {
        let mut parts = Vec::new();
        layout.place(object, offset, len, |at, len| parts.push((at, len))).expect("it fits");
        parts
    }

    #[test]
    fn space_is_given_in_the_order_of_first_access() {
        let mut layout = Layout::new(4096);
        let mut check = |(object, offset, len), expected: &[(u64, u64)]| {
            assert_eq!(place(&mut layout, object, offset, len), expected);
        };
        // One byte takes a chunk, and keeps its offset in the chunk.
        check((7, 100, 1), &[(100, 1)]);
        check((9, 0, 8192), &[(4096, 8192)]);
        // The first object grows past the second: its next chunk is behind the second object.
        check((7, 4000, 200), &[(4000, 96), (12_288, 104)]);
        // It continues to grow at the end, in one piece.
        check((7, 4096, 12_288), &[(12_288, 12_288)]);
        // A gap between existing parts is filled later.
        check((9, 16_384, 10), &[(24_576, 10)]);
        check((9, 8192, 8193), &[(28_672, 8192), (24_576, 1)]);
        // Existing chunks keep their addresses.
        check((9, 0, 8192), &[(4096, 8192)]);
    }

    #[test]
    fn what_cannot_be_placed_is_refused() {
        let mut layout = Layout::new(4096);
        let mut refused = |offset, len| layout.place(1, offset, len, |_, _| ()).unwrap_err();
        assert_eq!(refused(0, 0), ZERO_LENGTH);
        assert_eq!(refused(u64::MAX, 2), OUT_OF_RANGE);
        assert_eq!(refused(0, ADDRESS_MAX + 1), OUT_OF_RANGE);
        assert!(layout.place(1, 0, ADDRESS_MAX - 4096, |_, _| ()).is_ok());
        assert_eq!(layout.place(2, 0, 1 << 13, |_, _| ()), Err(OUT_OF_RANGE));
    }

    proptest! {
        #![proptest_config(cases(256))]
        /// Against a table of every chunk.
        #[test]
        fn random_parts_agree_with_a_table(
            touches in prop::collection::vec((0_u64..3, 0_u64..60, 1_u64..30), 1..40),
        ) {
            const CHUNK: u64 = 4;
            let mut layout = Layout::new(CHUNK);
            let mut table = BTreeMap::new();
            for (object, offset, len) in touches {
                let bytes: Vec<u64> = (offset..offset + len)
                    .map(|byte| {
                        let next = table.len() as u64;
                        let chunk = *table.entry((object, byte / CHUNK)).or_insert(next);
                        chunk * CHUNK + byte % CHUNK
                    })
                    .collect();
                let mut expected: Vec<(u64, u64)> = Vec::new();
                for address in bytes {
                    match expected.last_mut() {
                        Some((at, len)) if *at + *len == address => *len += 1,
                        _ => expected.push((address, 1)),
                    }
                }
                prop_assert_eq!(place(&mut layout, object, offset, len), expected);
            }
        }
    }
}
