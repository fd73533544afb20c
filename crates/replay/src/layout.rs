//! Places the devices of a trace one after another on one drive.
//!
//! Addresses of different devices (or files, in logs by file name) overlap: without a layout they
//! would overwrite each other's data. Each device gets an address range of its own.

use std::collections::BTreeMap;

use prism_trace::{Op, Record, Source, SourceError, Symbol};

/// Alignment of the ranges: at least the largest mapping unit or page.
const ALIGN: u64 = 1 << 20;

/// The address range of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceRange {
    /// The device in the trace.
    pub device: Symbol,
    /// Its first byte on the drive.
    pub start: u64,
    /// Bytes from there to the end of its last request.
    pub span: u64,
}

/// The address ranges of the devices of a trace, in the order of their first request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    ranges: Vec<DeviceRange>,
}

impl Layout {
    /// Reads all of `source` once and assigns a range to every device with requests other than
    /// flushes.
    ///
    /// # Errors
    /// [`SourceError`] if the source cannot be read.
    pub fn of(source: &mut dyn Source) -> Result<Self, SourceError> {
        let mut layout = Self::default();
        let mut index: BTreeMap<Symbol, usize> = BTreeMap::new();
        let mut batch = Vec::new();
        source.rewind()?;
        loop {
            source.next_batch(&mut batch)?;
            if batch.is_empty() {
                break;
            }
            for record in batch.iter().filter(|record| record.op != Op::Flush) {
                let device = record.device;
                let at = *index.entry(device).or_insert_with(|| {
                    layout.ranges.push(DeviceRange { device, start: 0, span: 0 });
                    layout.ranges.len() - 1
                });
                let range = &mut layout.ranges[at];
                range.span = range.span.max(record.offset.saturating_add(record.len));
            }
        }
        let mut next = 0u64;
        for range in &mut layout.ranges {
            range.start = next;
            next = next.saturating_add(range.span).saturating_add(ALIGN - 1) / ALIGN * ALIGN;
        }
        Ok(layout)
    }

    /// The ranges, in order.
    #[must_use]
    pub fn ranges(&self) -> &[DeviceRange] {
        &self.ranges
    }

    /// Moves `record` to the range of its device and cuts off what lies beyond it; `None` if the
    /// device has no range, or nothing is left, as of flushes. The record need not be one that the
    /// layout was made from.
    #[must_use]
    pub fn placed(&self, record: &Record) -> Option<Record> {
        let range = self.ranges.iter().find(|range| range.device == record.device)?;
        let end = record.offset.saturating_add(record.len).min(range.span);
        let len = end.checked_sub(record.offset).filter(|&len| len > 0)?;
        Some(Record { offset: range.start.saturating_add(record.offset), len, ..*record })
    }

    /// Bytes from the start of the drive to the end of the last device.
    #[must_use]
    pub fn span(&self) -> u64 {
        self.ranges.last().map_or(0, |last| last.start.saturating_add(last.span))
    }
}

/// A source whose records are moved to the ranges of a layout.
pub struct LaidOut<'a> {
    source: &'a mut dyn Source,
    starts: BTreeMap<Symbol, u64>,
}

impl<'a> LaidOut<'a> {
    /// The records of `source`, from which `layout` was made.
    pub fn new(source: &'a mut dyn Source, layout: &Layout) -> Self {
        let starts = layout.ranges.iter().map(|range| (range.device, range.start)).collect();
        Self { source, starts }
    }

    fn range(&self, record: &mut Record) {
        if record.op != Op::Flush {
            record.offset += self.starts.get(&record.device).copied().unwrap_or(0);
        }
    }
}

impl Source for LaidOut<'_> {
    fn rewind(&mut self) -> Result<(), SourceError> {
        self.source.rewind()
    }

    fn next_batch(&mut self, batch: &mut Vec<Record>) -> Result<(), SourceError> {
        self.source.next_batch(batch)?;
        if self.starts.len() > 1 {
            for record in batch {
                self.range(record);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prism_trace::VecSource;

    #[test]
    fn devices_follow_one_another() {
        let record = |device, op, offset, len| Record {
            device: Symbol(device),
            ..Record::new(op, 0, offset, len)
        };
        let records = vec![
            record(7, Op::Write, 4096, 4096),
            record(3, Op::Read, 0, 512),
            record(9, Op::Flush, 0, 0),
            record(7, Op::Write, 2 << 20, 4096),
        ];
        let mut source = VecSource::new(records);
        let layout = Layout::of(&mut source).unwrap();
        let starts: Vec<_> = layout.ranges().iter().map(|p| (p.device.0, p.start)).collect();
        assert_eq!(starts, [(7, 0), (3, 3 << 20)]);
        assert_eq!(layout.span(), (3 << 20) + 512);
        // Records within a range, across its end, beyond it, and of a device without one.
        let later = |device, offset, len| {
            let placed = layout.placed(&record(device, Op::Discard, offset, len));
            placed.map(|placed| (placed.offset, placed.len))
        };
        assert_eq!(later(3, 0, 512), Some((3 << 20, 512)));
        assert_eq!(later(7, 4096, u64::MAX), Some((4096, 2 << 20)));
        assert_eq!(later(3, 512, 512), None);
        assert_eq!(later(9, 0, 512), None);
        let mut laid_out = LaidOut::new(&mut source, &layout);
        let mut batch = Vec::new();
        laid_out.rewind().unwrap();
        laid_out.next_batch(&mut batch).unwrap();
        let offsets: Vec<_> = batch.iter().map(|r| r.offset).collect();
        assert_eq!(offsets, [4096, 3 << 20, 0, 2 << 20]);
    }
}
