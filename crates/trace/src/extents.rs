//! The addresses that a trace reads or writes, as extents of each device.

use std::collections::BTreeMap;

use crate::record::{Op, Record};
use crate::symbols::Symbol;

/// Extents begin and end at multiples of this many bytes.
pub const EXTENT_UNIT: u64 = 64 << 10;

/// Extents that are kept before they are sorted and merged for the first time.
const UNSORTED_MAX: usize = 1 << 12;

/// The addresses of one device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceExtents {
    /// First and last unit (exclusive) of each extent; sorted and disjoint up to `sorted`.
    extents: Vec<(u64, u64)>,
    sorted: usize,
    /// The first byte after the highest request, discards included.
    pub end: u64,
}

/// The addresses that requests other than discards touch, by device. Memory grows with the number
/// of separate extents, not with their size or the number of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extents {
    devices: Vec<(Symbol, DeviceExtents)>,
    index: BTreeMap<Symbol, usize>,
}

impl DeviceExtents {
    fn add(&mut self, start: u64, end: u64) {
        let unsorted = &mut self.extents[self.sorted..];
        if let Some(last) = unsorted.last_mut()
            && start <= last.1
            && end >= last.0
        {
            *last = (last.0.min(start), last.1.max(end));
            return;
        }
        self.extents.push((start, end));
        if self.extents.len() >= (2 * self.sorted).max(UNSORTED_MAX) {
            self.merge();
        }
    }

    fn merge(&mut self) {
        self.extents.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for &(start, end) in &self.extents {
            match merged.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => merged.push((start, end)),
            }
        }
        self.sorted = merged.len();
        self.extents = merged;
    }

    /// The extents widened to multiples of `unit` bytes, a multiple of [`EXTENT_UNIT`], as first
    /// byte and first byte after it: in order and disjoint.
    ///
    /// # Panics
    /// If requests were added after [`Extents::merge`].
    pub fn widened(&self, unit: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        assert_eq!(self.sorted, self.extents.len(), "the extents are merged");
        let widen = move |&(start, end): &(u64, u64)| {
            let first = start * EXTENT_UNIT / unit * unit;
            (first, end.saturating_mul(EXTENT_UNIT).div_ceil(unit).saturating_mul(unit))
        };
        let mut rest = self.extents.iter().map(widen).peekable();
        std::iter::from_fn(move || {
            let (start, mut end) = rest.next()?;
            while let Some(next) = rest.next_if(|next| next.0 <= end) {
                end = end.max(next.1);
            }
            Some((start, end))
        })
    }
}

impl Extents {
    /// Adds the addresses of `record`. A discard needs no space by itself and only counts for the
    /// end of its device; a flush counts for nothing.
    pub fn add(&mut self, record: &Record) {
        if record.op == Op::Flush {
            return;
        }
        let place = *self.index.entry(record.device).or_insert_with(|| {
            self.devices.push((record.device, DeviceExtents::default()));
            self.devices.len() - 1
        });
        let device = &mut self.devices[place].1;
        device.end = device.end.max(record.end());
        if record.op != Op::Discard && record.len > 0 {
            device.add(record.offset / EXTENT_UNIT, record.end().div_ceil(EXTENT_UNIT));
        }
    }

    /// Sorts and merges the extents, after the last request.
    pub fn merge(&mut self) {
        self.devices.iter_mut().for_each(|(_, device)| device.merge());
    }

    /// The devices, in the order of their first requests.
    #[must_use]
    pub fn devices(&self) -> &[(Symbol, DeviceExtents)] {
        &self.devices
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_are_merged_in_any_order() {
        let mut extents = Extents::default();
        let record = |op, unit: u64, units: u64| {
            Record::new(op, 0, unit * EXTENT_UNIT + 512, units * EXTENT_UNIT - 512)
        };
        extents.add(&record(Op::Discard, 1 << 20, 5));
        for unit in (0..10_000).rev() {
            extents.add(&record(Op::Write, 3 * unit, 2));
            extents.add(&record(Op::Read, 3 * unit, 1));
        }
        extents.add(&record(Op::Flush, 1 << 30, 1));
        extents.merge();
        let [(_, device)] = extents.devices() else { panic!("one device") };
        assert_eq!(device.end, ((1 << 20) + 5) * EXTENT_UNIT);
        let mut units = device.widened(EXTENT_UNIT);
        assert_eq!(units.next(), Some((0, 2 * EXTENT_UNIT)));
        assert_eq!(units.next(), Some((3 * EXTENT_UNIT, 5 * EXTENT_UNIT)));
        assert_eq!(units.count(), 9_998);
        let wide: Vec<_> = device.widened(4 * EXTENT_UNIT).collect();
        assert_eq!(wide, [(0, 30_000 * EXTENT_UNIT)]);
    }
}
