//! Bytes accessed by time and address, one grid for each kind of access.

use super::timeline::{Bucket, Timeline};
use crate::chart::{Heatmap, Layer};
use crate::unit::Unit;
use prism_base::{Bytes, Nanos, SimTime};

/// The bytes of each address bin in one time bucket; empty while all are zero.
#[derive(Clone, Debug, Default)]
struct Strip(Vec<u64>);

/// Bytes accessed, by time and by address, in several layers such as read and write.
///
/// Memory: eight bytes for each layer, time bucket that saw an access, and address bin.
#[derive(Clone, Debug)]
pub struct HeatGrid {
    layers: Vec<(String, Timeline<Strip>)>,
    /// The width of an address bin, rounded up, so that the bins cover the span.
    bin: u64,
    rows: usize,
    span: u64,
    start: SimTime,
}

impl Bucket for Strip {
    fn absorb(&mut self, later: &Self) {
        if self.0.len() < later.0.len() {
            self.0.resize(later.0.len(), 0);
        }
        for (mine, theirs) in self.0.iter_mut().zip(&later.0) {
            *mine += theirs;
        }
    }
}

impl HeatGrid {
    /// An empty grid over the addresses from zero to `span`, in `rows` bins, with a
    /// layer for each name. See [`Timeline::new`] for the time axis and its panics.
    ///
    /// # Panics
    /// If `span` or `rows` is zero.
    #[must_use]
    pub fn new(
        layers: &[&str],
        span: Bytes,
        rows: usize,
        start: SimTime,
        width: Nanos,
        columns: usize,
    ) -> Self {
        assert!(span.0 > 0 && rows > 0, "a grid has an extent");
        let layer = |name: &&str| ((*name).to_owned(), Timeline::new(start, width, columns));
        let layers = layers.iter().map(layer).collect();
        Self { layers, bin: span.0.div_ceil(rows as u64), rows, span: span.0, start }
    }

    /// Counts an access to `len` bytes from `offset` on in the layer at `layer`. Each
    /// address bin gets exactly the bytes that fall into it.
    ///
    /// # Panics
    /// If there is no such layer, if the access ends behind the span, or if `at` lies
    /// before the start.
    pub fn record(&mut self, layer: usize, at: SimTime, offset: Bytes, len: Bytes) {
        let end = offset.0.checked_add(len.0).filter(|&end| end <= self.span);
        let end = end.unwrap_or_else(|| {
            panic!("access at {} + {} is behind {}", offset.0, len.0, self.span)
        });
        let Strip(cells) = self.layers[layer].1.at(at);
        if cells.is_empty() && len.0 > 0 {
            cells.resize(self.rows, 0);
        }
        let mut from = offset.0;
        while from < end {
            let row = from / self.bin;
            let to = ((row + 1).saturating_mul(self.bin)).min(end);
            cells[usize::try_from(row).expect("within the span")] += to - from;
            from = to;
        }
    }

    /// The grid up to `end` as a chart. All layers share the time axis.
    ///
    /// # Panics
    /// If `end` lies before the start.
    #[must_use]
    pub fn finish(
        self,
        end: SimTime,
        title: impl Into<String>,
        caption: impl Into<String>,
    ) -> Heatmap {
        let (rows, mut columns, mut column_width) = (self.rows, 0, 0);
        let mut layers = Vec::new();
        for (name, timeline) in self.layers {
            let finished = timeline.finish(end);
            columns = finished.buckets.len();
            column_width = finished.width.0;
            let mut cells = vec![0; columns * rows];
            for (column, Strip(strip)) in finished.buckets.iter().enumerate() {
                cells[column * rows..][..strip.len()].copy_from_slice(strip);
            }
            layers.push(Layer { name, cells });
        }
        let time_range = self.start.0..end.0;
        let address_range = 0..self.span;
        Heatmap {
            title: title.into(),
            caption: caption.into(),
            time_range,
            columns,
            column_width,
            address_range,
            rows,
            row_height: self.bin,
            unit: Unit::Bytes,
            layers,
            overlaid: false,
        }
    }
}
