//! Adds discards of dead data where the trace has none. This needs knowledge of the future.
//!
//! A unit is dead after an access if the next access to it, possibly in the next pass, is a
//! write, write-zeroes or discard that covers the whole unit. An exception is an overwrite by
//! the same file, if the trace has inodes: a file that updates itself in place has nothing to
//! discard. A block trace does not show when exactly the data died, or whether it was still
//! read from the page cache. The result is therefore an upper bound.

use std::collections::VecDeque;

use prism_base::{Nanos, Zeroed};
use prism_trace::{Op, Record, Source};

use super::future::{UNITS_MAX, twice};
use super::units::Units;
use super::{HELD_MAX, Rewrite, after};
use crate::what_if::WhatIfError;

/// One bit for each access to a unit in a pass.
#[derive(Debug, Default)]
struct Bits {
    words: Vec<u64>,
    len: usize,
}

impl Bits {
    fn push_zero(&mut self) {
        if self.len.is_multiple_of(64) {
            self.words.push(0);
        }
        self.len += 1;
    }

    fn set(&mut self, place: usize) {
        self.words[place / 64] |= 1 << (place % 64);
    }

    fn get(&self, place: usize) -> bool {
        self.words[place / 64] >> (place % 64) & 1 == 1
    }
}

/// Adds a discard some time after the last access to data that is dead from then on.
pub(in crate::what_if) struct DiscardDead {
    units: Units,
    delay: Nanos,
    /// Whether the unit is dead after an access; the index is the number of the access.
    dead: Bits,
    /// For each unit, the number of its last access plus one; 0 if there was none.
    last: Zeroed<u32>,
    next: usize,
    /// Accesses after which some unit is dead, until their discards are due.
    waiting: VecDeque<Access>,
    last_ns: i64,
}

/// A request that accesses one or more units. `number` is the number of the access to its
/// first unit; the other units have the numbers after it.
#[derive(Clone, Copy, Debug)]
struct Access {
    due_ns: i64,
    record: Record,
    number: usize,
}

impl DiscardDead {
    /// Reads `source` twice to learn which data is dead after each access.
    pub(in crate::what_if) fn new(
        source: &mut dyn Source,
        units: Units,
        delay: Nanos,
    ) -> Result<Self, WhatIfError> {
        let dead = dead_after(source, units)?;
        let last = Zeroed::new(units.count());
        let waiting = VecDeque::new();
        Ok(Self { units, delay, dead, last, next: 0, waiting, last_ns: i64::MIN })
    }

    /// Discards the dead units of `access` that were not accessed since, in as few ranges as
    /// possible.
    fn release(&self, access: &Access, now_ns: i64, out: &mut Vec<Record>) {
        let touched = self.units.touched(&access.record);
        let first = touched.start;
        let is_dead = |unit: usize| {
            let number = access.number + unit - first;
            self.dead.get(number) && self.last[unit] as usize == number + 1
        };
        let mut begun = None;
        for unit in touched.start..=touched.end {
            let goes_on = unit < touched.end && is_dead(unit);
            match (begun, goes_on) {
                (None, true) => begun = Some(unit),
                (Some(begin), false) => {
                    out.push(self.discard(access, begin, unit, now_ns));
                    begun = None;
                }
                (None, false) | (Some(_), true) => {}
            }
        }
    }

    fn discard(&self, access: &Access, begin: usize, end: usize, now_ns: i64) -> Record {
        let from = &access.record;
        let (offset, len) = self.units.bytes(&(begin..end));
        let record = Record::new(Op::Discard, access.due_ns.min(now_ns), offset, len);
        let (device, comm, file, phase) = (from.device, from.comm, from.file, from.phase);
        Record { device, comm, file, phase, inode: from.inode, pid: from.pid, ..record }
    }
}

impl Rewrite for DiscardDead {
    fn restart(&mut self) {
        debug_assert!(self.waiting.is_empty());
        // Numbers begin at 0 again. The old numbers in `last` do no harm: a unit's number is
        // only compared after the new pass has accessed the unit.
        self.next = 0;
    }

    fn push(&mut self, record: &Record, out: &mut Vec<Record>) {
        self.last_ns = record.issue_ns;
        while let Some(&access) = self.waiting.front()
            && (access.due_ns <= record.issue_ns || self.waiting.len() > HELD_MAX)
        {
            self.waiting.pop_front();
            self.release(&access, record.issue_ns, out);
        }
        out.push(*record);
        if !matches!(record.op, Op::Read | Op::Write) {
            for unit in self.units.touched(record) {
                self.last[unit] = 0;
            }
            return;
        }
        let number = self.next;
        let mut dies = false;
        for unit in self.units.touched(record) {
            dies |= self.dead.get(self.next);
            self.next += 1;
            self.last[unit] = self.next as u32;
        }
        if dies {
            let due_ns = after(record.issue_ns, self.delay);
            self.waiting.push_back(Access { due_ns, record: *record, number });
        }
    }

    fn finish(&mut self, out: &mut Vec<Record>) {
        for access in std::mem::take(&mut self.waiting) {
            self.release(&access, self.last_ns, out);
        }
    }
}

/// For each access of a pass, whether the unit is dead after it.
fn dead_after(source: &mut dyn Source, units: Units) -> Result<Bits, WhatIfError> {
    let mut dead = Bits::default();
    // For each unit, the number of its last access in the first pass plus one.
    let mut last: Zeroed<u32> = Zeroed::new(units.count());
    // For each unit, the low bits of the inode number of the file that wrote it; 0 if the
    // file is not known.
    let mut owner: Zeroed<u32> = Zeroed::new(units.count());
    twice(source, |record, pass| {
        if record.op == Op::Flush {
            return;
        }
        let whole = units.whole(record);
        for unit in units.touched(record) {
            let updates = record.op == Op::Write
                && record.inode as u32 != 0
                && record.inode as u32 == owner[unit];
            let ends = record.op != Op::Read && whole.contains(&unit) && !updates;
            if let Some(number) = std::mem::take(&mut last[unit]).checked_sub(1)
                && ends
            {
                dead.set(number as usize);
            }
            if record.op == Op::Write {
                owner[unit] = record.inode as u32;
            }
            let counts = pass == 0 && dead.len < UNITS_MAX;
            if counts && matches!(record.op, Op::Read | Op::Write) {
                dead.push_zero();
                last[unit] = dead.len as u32;
            }
        }
    })?;
    if dead.len < UNITS_MAX { Ok(dead) } else { Err(WhatIfError::TooLong) }
}

#[cfg(test)]
mod tests {
    use prism_base::Bytes;
    use prism_trace::VecSource;

    use super::super::testing;
    use super::*;

    /// Units of 4 KiB, discarded 10 ms after their last use.
    fn check(trace: &str, expected: &str) {
        let mut source = VecSource::new(testing::records(trace));
        let units = Units::new(Bytes(4096), 64);
        let discard = DiscardDead::new(&mut source, units, Nanos(10_000_000)).unwrap();
        testing::check(discard, trace, expected);
    }

    #[test]
    fn data_is_discarded_after_its_last_use() {
        // The first unit is dead after the read, the second after the write. Both are dead
        // after the last write too, because the next pass overwrites them.
        check(
            "0 w 0+8; 1 r 0+4; 50 w 0+8",
            "0 w 0+8; 1 r 0+4; 10 d 4+4; 11 d 0+4; 50 w 0+8; 50 d 0+8",
        );
        // The data is read at the start of the next pass, so it is not dead at the end.
        check("0 r 0+4; 1 w 0+4; 50 r 8+4", "0 r 0+4; 1 w 0+4; 50 r 8+4");
    }

    #[test]
    fn data_that_is_soon_overwritten_is_not_discarded() {
        check("0 w 0+4; 5 w 0+4; 50 r 8+4", "0 w 0+4; 5 w 0+4; 15 d 0+4; 50 r 8+4");
    }

    #[test]
    fn a_partial_write_needs_the_old_data_and_a_discard_does_not() {
        check("0 w 0+4; 20 w 0+2; 50 r 0+4", "0 w 0+4; 20 w 0+2; 50 r 0+4; 50 d 0+4");
        check("0 w 0+4; 20 d 0+4; 50 r 8+4", "0 w 0+4; 10 d 0+4; 20 d 0+4; 50 r 8+4");
        check("0 w 0+4; 20 z 0+4; 50 r 8+4", "0 w 0+4; 10 d 0+4; 20 z 0+4; 50 r 8+4");
        // The trace itself discards the data before the delay has passed.
        check("0 w 0+4; 5 d 0+4; 50 r 8+4", "0 w 0+4; 5 d 0+4; 50 r 8+4");
    }

    #[test]
    fn an_update_by_the_same_file_is_not_preceded_by_a_discard() {
        check("0 w 0+4@7; 50 w 0+4@7", "0 w 0+4; 50 w 0+4");
        check("0 w 0+4@7; 50 w 0+4@8", "0 w 0+4; 10 d 0+4; 50 w 0+4; 50 d 0+4");
    }

    #[test]
    fn data_that_is_not_fully_overwritten_is_not_discarded() {
        // A partial write does not make the old data dead.
        check("0 w 0+2; 50 r 8+4", "0 w 0+2; 50 r 8+4");
    }
}
