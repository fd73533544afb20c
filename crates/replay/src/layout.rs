//! Several devices of a trace on one drive, one after another.
//!
//! Addresses of different devices (or files, for logs by file name) overlap; replayed as
//! they are they would overwrite each other's data. Each device gets its own range.

use std::collections::BTreeMap;

use prism_trace::{Op, Record, Source, SourceError, Symbol};

/// Where each device begins is a multiple of this, which no mapping unit or page exceeds.
const ALIGN: u64 = 1 << 20;

/// The range of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The device in the trace.
    pub device: Symbol,
    /// Its first byte on the drive.
    pub start: u64,
    /// Bytes from there to the end of its last request.
    pub span: u64,
}

/// Where the devices of a trace lie on the drive, in the order of their first request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    places: Vec<Place>,
}

impl Layout {
    /// Reads the whole of `source` once and gives every device that moves data a place.
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
                    layout.places.push(Place { device, start: 0, span: 0 });
                    layout.places.len() - 1
                });
                let place = &mut layout.places[at];
                place.span = place.span.max(record.offset.saturating_add(record.len));
            }
        }
        let mut next = 0u64;
        for place in &mut layout.places {
            place.start = next;
            next = next.saturating_add(place.span).saturating_add(ALIGN - 1) / ALIGN * ALIGN;
        }
        Ok(layout)
    }

    /// The places, in order.
    #[must_use]
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// The part of `record`, which need not be one of those that the layout was made from,
    /// that lies within its device's place, at that place on the drive; `None` if the device
    /// has no place or the record lies beyond it. Flushes lie nowhere.
    #[must_use]
    pub fn placed(&self, record: &Record) -> Option<Record> {
        let place = self.places.iter().find(|place| place.device == record.device)?;
        let end = record.offset.saturating_add(record.len).min(place.span);
        let len = end.checked_sub(record.offset).filter(|&len| len > 0)?;
        Some(Record { offset: place.start.saturating_add(record.offset), len, ..*record })
    }

    /// Bytes from the start of the drive to the end of the last device.
    #[must_use]
    pub fn span(&self) -> u64 {
        self.places.last().map_or(0, |last| last.start.saturating_add(last.span))
    }
}

/// A source whose records are moved to the places of a layout.
pub struct LaidOut<'a> {
    source: &'a mut dyn Source,
    starts: BTreeMap<Symbol, u64>,
}

impl<'a> LaidOut<'a> {
    /// The records of `source`, from which `layout` was made.
    pub fn new(source: &'a mut dyn Source, layout: &Layout) -> Self {
        let starts = layout.places.iter().map(|place| (place.device, place.start)).collect();
        Self { source, starts }
    }

    fn place(&self, record: &mut Record) {
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
                self.place(record);
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
        let starts: Vec<_> = layout.places().iter().map(|p| (p.device.0, p.start)).collect();
        assert_eq!(starts, [(7, 0), (3, 3 << 20)]);
        assert_eq!(layout.span(), (3 << 20) + 512);
        // What came later: within a device's place, over its end, beyond it, elsewhere.
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
