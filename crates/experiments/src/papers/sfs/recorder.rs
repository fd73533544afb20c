//! What a file system writes to its segments, and what that costs below it, on drives with FAST and
//! with page-level mapping.

use prism_flash::Buffer;
use prism_segments::{IdealStore, Shape, Store, Wrapper};

use super::Map;
use super::segments::untimed;

/// Segments of 8 blocks: a block has as many pages as an eighth of a segment.
pub(super) const SEGMENT_BLOCKS: u32 = 8;

/// Segments that record what is written.
pub(super) struct Recorder {
    inner: IdealStore,
    /// Pages, in order; `None` while nothing is recorded.
    written: Option<Vec<u32>>,
}

impl Recorder {
    pub(super) fn new(inner: IdealStore) -> Self {
        Self { inner, written: None }
    }

    /// Begins to record.
    pub(super) fn begin(&mut self) {
        self.written = Some(Vec::new());
    }

    /// The pages that were written since then.
    pub(super) fn take(&mut self) -> Vec<u32> {
        self.written.take().unwrap_or_default()
    }
}

impl Wrapper for Recorder {
    type Inner = IdealStore;

    fn inner(&self) -> &IdealStore {
        &self.inner
    }

    fn inner_mut(&mut self) -> &mut IdealStore {
        &mut self.inner
    }

    fn on_write(&mut self, segment: u32, offset: u32, data: &Buffer) {
        let Shape { segment_bytes, page_bytes, .. } = self.shape();
        if let Some(written) = &mut self.written {
            let first = segment * (segment_bytes / page_bytes) + offset / page_bytes;
            written.extend(first..first + data.len() as u32 / page_bytes);
        }
    }
}

/// Write amplification of the writes `measured`, and erases for each 1000 of `called` blocks, on
/// FAST and on page-level mapping, which were filled and got the writes `before`.
pub(super) fn over_ftls(
    before: &[u32],
    measured: &[u32],
    segments: u32,
    per_segment: u32,
    called: u64,
) -> [(f64, f64); 2] {
    [Map::Fast, Map::Page].map(|map| {
        let block_pages = per_segment / SEGMENT_BLOCKS;
        let mut flash = untimed(map, segments * SEGMENT_BLOCKS, block_pages, 1);
        flash.fill(segments * per_segment);
        flash.write_all(before);
        let counts = flash.counts();
        flash.write_all(measured);
        let counts = flash.finish(&counts);
        let erases = counts.erases.total() as f64;
        (counts.units.total() as f64 / measured.len() as f64, 1000.0 * erases / called as f64)
    })
}
