//! Places the devices of a trace one after another on one drive.
//!
//! Addresses of different devices (or files, in logs by file name) overlap: without a layout they
//! would overwrite each other's data. Each device gets an address range of its own.
//!
//! A drive costs memory and time for every address that it has. If the addresses of a trace end
//! high, those that no request reads or writes are left out, largest gaps first.

use prism_base::FastMap;
use prism_trace::extents::{DeviceExtents, EXTENT_UNIT};
use prism_trace::{Extents, Op, Record, Source, SourceError, Symbol};

/// Alignment of the ranges: at least the largest mapping unit or page.
const ALIGN: u64 = 1 << 20;

/// The largest unit of addresses that is left out; each further attempt takes a quarter of it.
const GAP_MAX: u64 = 1 << 30;

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

/// Addresses of a device that are on the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    /// The first byte in the trace.
    from: u64,
    /// The same byte, counted from the start of the device's range on the drive.
    at: u64,
    len: u64,
}

/// The address ranges of the devices of a trace, in the order of their first request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    ranges: Vec<DeviceRange>,
    /// By device, in the order of `ranges`.
    pieces: Vec<Vec<Piece>>,
    /// The range of each device: a trace may have thousands.
    index: FastMap<Symbol, usize>,
    left_out: u64,
    unit: u64,
}

impl Layout {
    /// The devices one after another, each with all of its addresses.
    #[must_use]
    pub fn whole(touched: &Extents) -> Self {
        Self::with(touched, |device| vec![Piece { from: 0, at: 0, len: device.end }])
    }

    /// The devices one after another. If they end beyond `most` bytes, addresses that no request
    /// reads or writes are left out: in as large aligned units as make the rest fit into `most`
    /// bytes or, if it never fits, in the smallest, [`EXTENT_UNIT`].
    #[must_use]
    pub fn packed(touched: &Extents, most: u64) -> Self {
        let whole = Self::whole(touched);
        if whole.span() <= most {
            return whole;
        }
        let mut unit = GAP_MAX;
        loop {
            let packed = Self::with(touched, |device| pieces(device, unit));
            if packed.span() <= most || unit == EXTENT_UNIT {
                return Self { left_out: whole.span() - packed.span(), unit, ..packed };
            }
            unit = (unit / 4).max(EXTENT_UNIT);
        }
    }

    fn with(touched: &Extents, pieces: impl Fn(&DeviceExtents) -> Vec<Piece>) -> Self {
        let mut layout = Self::default();
        let mut next = 0u64;
        for (device, extents) in touched.devices() {
            let pieces = pieces(extents);
            let span = pieces.last().map_or(0, |last| last.at + last.len);
            layout.index.insert(*device, layout.ranges.len());
            layout.ranges.push(DeviceRange { device: *device, start: next, span });
            layout.pieces.push(pieces);
            next = next.saturating_add(span).saturating_add(ALIGN - 1) / ALIGN * ALIGN;
        }
        layout
    }

    /// The ranges, in order.
    #[must_use]
    pub fn ranges(&self) -> &[DeviceRange] {
        &self.ranges
    }

    /// Bytes of addresses that were left out, and the unit in which they were; `None` if none were.
    #[must_use]
    pub fn left_out(&self) -> Option<(u64, u64)> {
        (self.left_out > 0).then_some((self.left_out, self.unit))
    }

    /// Moves `record` to the range of its device and cuts off addresses that are not on the drive;
    /// `None` if nothing is left, or the device has no range. Flushes stay as they are. The record
    /// need not be one that the layout was made from.
    #[must_use]
    pub fn placed(&self, record: &Record) -> Option<Record> {
        if record.op == Op::Flush {
            return Some(*record);
        }
        let &at = self.index.get(&record.device)?;
        let pieces = &self.pieces[at];
        let from = position(pieces, record.offset);
        let end = position(pieces, record.offset.saturating_add(record.len));
        let offset = self.ranges[at].start.saturating_add(from);
        (end > from).then_some(Record { offset, len: end - from, ..*record })
    }

    /// Bytes from the start of the drive to the end of the last device.
    #[must_use]
    pub fn span(&self) -> u64 {
        self.ranges.last().map_or(0, |last| last.start.saturating_add(last.span))
    }
}

/// The touched addresses of `device` in units of `unit` bytes.
fn pieces(device: &DeviceExtents, unit: u64) -> Vec<Piece> {
    let mut at = 0;
    let piece = |(from, end): (u64, u64)| {
        let piece = Piece { from, at, len: end.min(device.end) - from };
        at += piece.len;
        piece
    };
    device.widened(unit).map(piece).collect()
}

/// Bytes of `pieces` before the address `address` of the trace.
fn position(pieces: &[Piece], address: u64) -> u64 {
    let after = pieces.partition_point(|piece| piece.from <= address);
    match pieces.get(after.wrapping_sub(1)) {
        Some(piece) => piece.at + (address - piece.from).min(piece.len),
        None => 0,
    }
}

/// The most records that are kept after the first pass: 6 MB. Traces with more are repeated less
/// often, since each pass writes more.
const KEPT_MAX: usize = 1 << 16;

/// Records per batch of those that are kept.
const BATCH: usize = 1024;

/// The records of the first pass, which later passes do not place again.
#[derive(Debug)]
enum Kept {
    /// The first pass has not ended.
    Incomplete(Vec<Record>),
    /// All records, and the number of those that the current pass has returned.
    All(Vec<Record>, usize),
    /// There are too many.
    None,
}

/// A source whose records are moved to the ranges of a layout; those of which nothing is on the
/// drive are left out.
pub struct LaidOut<'a> {
    source: &'a mut dyn Source,
    layout: &'a Layout,
    /// Whether every record stays as it is.
    as_is: bool,
    kept: Kept,
}

impl<'a> LaidOut<'a> {
    /// The records of `source`, from which `layout` was made.
    pub fn new(source: &'a mut dyn Source, layout: &'a Layout) -> Self {
        let as_is = layout.ranges.len() < 2 && layout.left_out == 0;
        Self { source, layout, as_is, kept: Kept::None }
    }

    /// Keeps the records of `batch`; an empty one is the end of the first pass.
    fn keep(&mut self, batch: &[Record]) {
        let Kept::Incomplete(kept) = &mut self.kept else { return };
        if batch.is_empty() {
            let all = std::mem::take(kept);
            self.kept = Kept::All(all, 0);
        } else if kept.len() + batch.len() > KEPT_MAX {
            self.kept = Kept::None;
        } else {
            kept.extend_from_slice(batch);
        }
    }
}

impl Source for LaidOut<'_> {
    fn rewind(&mut self) -> Result<(), SourceError> {
        if let Kept::All(_, next) = &mut self.kept {
            *next = 0;
            return Ok(());
        }
        self.kept = if self.as_is { Kept::None } else { Kept::Incomplete(Vec::new()) };
        self.source.rewind()
    }

    fn next_batch(&mut self, batch: &mut Vec<Record>) -> Result<(), SourceError> {
        if let Kept::All(all, next) = &mut self.kept {
            let now = *next..all.len().min(*next + BATCH);
            *next = now.end;
            batch.clear();
            batch.extend_from_slice(&all[now]);
            return Ok(());
        }
        loop {
            self.source.next_batch(batch)?;
            if self.as_is {
                return Ok(());
            }
            let end = batch.is_empty();
            batch.retain_mut(|record| match self.layout.placed(record) {
                Some(placed) => {
                    *record = placed;
                    true
                }
                None => false,
            });
            // An empty batch would be the end.
            if end || !batch.is_empty() {
                self.keep(batch);
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prism_trace::VecSource;

    fn record(device: u32, op: Op, offset: u64, len: u64) -> Record {
        Record { device: Symbol(device), ..Record::new(op, 0, offset, len) }
    }

    fn touched(records: &[Record]) -> Extents {
        let mut touched = Extents::default();
        records.iter().for_each(|record| touched.add(record));
        touched.merge();
        touched
    }

    fn offsets(records: Vec<Record>, layout: &Layout) -> Vec<(u64, u64)> {
        let mut source = VecSource::new(records);
        let mut laid_out = LaidOut::new(&mut source, layout);
        let mut batch = Vec::new();
        laid_out.rewind().unwrap();
        laid_out.next_batch(&mut batch).unwrap();
        batch.iter().map(|r| (r.offset, r.len)).collect()
    }

    #[test]
    fn devices_follow_one_another() {
        let records = vec![
            record(7, Op::Write, 4096, 4096),
            record(3, Op::Read, 0, 512),
            record(9, Op::Flush, 0, 0),
            record(7, Op::Write, 2 << 20, 4096),
        ];
        let layout = Layout::packed(&touched(&records), 1 << 30);
        let starts: Vec<_> = layout.ranges().iter().map(|p| (p.device.0, p.start)).collect();
        assert_eq!(starts, [(7, 0), (3, 3 << 20)]);
        assert_eq!((layout.span(), layout.left_out()), ((3 << 20) + 512, None));
        // Records within a range, across its end, beyond it, and of a device without one.
        let later = |device, offset, len| {
            let placed = layout.placed(&record(device, Op::Discard, offset, len));
            placed.map(|placed| (placed.offset, placed.len))
        };
        assert_eq!(later(3, 0, 512), Some((3 << 20, 512)));
        assert_eq!(later(7, 4096, u64::MAX), Some((4096, 2 << 20)));
        assert_eq!(later(3, 512, 512), None);
        assert_eq!(later(9, 0, 512), None);
        let moved = offsets(records, &layout);
        assert_eq!(moved, [(4096, 4096), (3 << 20, 512), (0, 0), (2 << 20, 4096)]);
    }

    #[test]
    fn gaps_are_left_out_only_if_the_rest_does_not_fit() {
        let far = 6 << 40;
        let records = vec![
            record(1, Op::Write, 8192, 4096),
            record(1, Op::Discard, 0, far + (64 << 10)),
            record(1, Op::Discard, 3 << 40, 1 << 20),
            record(1, Op::Write, far + 4096, 4096),
            record(2, Op::Read, 1 << 40, 8192),
        ];
        let touched = touched(&records);
        let whole = Layout::whole(&touched);
        assert_eq!((whole.span(), whole.left_out()), (far + ALIGN + (1 << 40) + 8192, None));
        assert_eq!(Layout::packed(&touched, whole.span()), whole);
        // 256 KiB of the first device from 0, what is left of it from its last write on, and 8 KiB
        // of the second.
        let unit = 256 << 10;
        let small = Layout::packed(&touched, 2 * ALIGN);
        assert_eq!(small.left_out(), Some((whole.span() - ALIGN - 8192, unit)));
        assert_eq!(
            offsets(records, &small),
            [(8192, 4096), (0, unit + (64 << 10)), (unit + 4096, 4096), (ALIGN, 8192)]
        );
        // In larger units where these fit.
        let (_, unit) = Layout::packed(&touched, 1 << 30).left_out().unwrap();
        assert_eq!(unit, 256 << 20);
    }

    #[test]
    fn every_pass_has_the_same_records() {
        let pass = |laid_out: &mut LaidOut| {
            let mut all = Vec::new();
            prism_trace::each_record(laid_out, |record| all.push(*record)).unwrap();
            all
        };
        // One that is kept, and one that is too long for that.
        for count in [3 * BATCH + 5, KEPT_MAX + 1] {
            let at = |i: usize| record(i as u32 % 3, Op::Write, 4096 * i as u64, 4096);
            let records: Vec<_> = (0..count).map(at).collect();
            let layout = Layout::packed(&touched(&records), 1 << 30);
            let mut source = VecSource::new(records);
            let mut laid_out = LaidOut::new(&mut source, &layout);
            // The first pass is interrupted.
            laid_out.rewind().unwrap();
            laid_out.next_batch(&mut Vec::new()).unwrap();
            let first = pass(&mut laid_out);
            assert!(first.len() == count && first[4].offset > 1 << 20);
            assert!((0..3).all(|_| pass(&mut laid_out) == first), "of {count}");
            assert_eq!(matches!(laid_out.kept, Kept::All(..)), count < KEPT_MAX);
        }
    }
}
