//! Discards of data that is dead: those that were missing. Needs the future.
//!
//! A unit is dead after an access if what comes next for it, the next pass included, covers
//! it whole without having read it: a write, zeroes or a discard. One kind of overwrite does
//! not count: by the same file, where the trace knows inodes, since a file that updates
//! itself in place has nothing to discard. From block traces it is not known when data that
//! is dead became so, or whether reads were served from memory meanwhile: this is a bound.

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

/// Puts a discard behind the last access of data that dies.
pub(in crate::what_if) struct DiscardDead {
    units: Units,
    delay: Nanos,
    /// Whether a unit is dead after an access, in the order of accesses.
    dead: Bits,
    /// The number of each unit's last access, and one more; 0 for none.
    last: Zeroed<u32>,
    next: usize,
    /// Accesses after which something is dead, until their discards are due.
    waiting: VecDeque<Access>,
    last_ns: i64,
}

/// An access to some units, of which the first has the number `number`.
#[derive(Clone, Copy, Debug)]
struct Access {
    due_ns: i64,
    record: Record,
    number: usize,
}

impl DiscardDead {
    /// Reads `source` twice.
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

    /// Discards what was not accessed again, in ranges as large as possible.
    fn let_go(&self, access: &Access, now_ns: i64, out: &mut Vec<Record>) {
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
        // Numbers begin again. Those that are left in `last` are only looked at for units
        // that are accessed again before.
        self.next = 0;
    }

    fn push(&mut self, record: &Record, out: &mut Vec<Record>) {
        self.last_ns = record.issue_ns;
        while let Some(&access) = self.waiting.front()
            && (access.due_ns <= record.issue_ns || self.waiting.len() > HELD_MAX)
        {
            self.waiting.pop_front();
            self.let_go(&access, record.issue_ns, out);
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
            self.let_go(&access, self.last_ns, out);
        }
    }
}

/// Whether each access of a pass is the last to its data.
fn dead_after(source: &mut dyn Source, units: Units) -> Result<Bits, WhatIfError> {
    let mut dead = Bits::default();
    // The number of each unit's last access in the first pass, and one more.
    let mut last: Zeroed<u32> = Zeroed::new(units.count());
    // Who wrote it, as the low bits of an inode number; 0 for nobody known.
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
        // The first unit is dead after the read, the second after the write; both again
        // after the last write, because the next pass overwrites them.
        check(
            "0 w 0+8; 1 r 0+4; 50 w 0+8",
            "0 w 0+8; 1 r 0+4; 10 d 4+4; 11 d 0+4; 50 w 0+8; 50 d 0+8",
        );
        // Read at the start of the next pass: alive at the end.
        check("0 r 0+4; 1 w 0+4; 50 r 8+4", "0 r 0+4; 1 w 0+4; 50 r 8+4");
    }

    #[test]
    fn what_is_written_anew_soon_is_left_alone() {
        check("0 w 0+4; 5 w 0+4; 50 r 8+4", "0 w 0+4; 5 w 0+4; 15 d 0+4; 50 r 8+4");
    }

    #[test]
    fn a_partial_write_needs_the_old_data_and_a_discard_does_not() {
        check("0 w 0+4; 20 w 0+2; 50 r 0+4", "0 w 0+4; 20 w 0+2; 50 r 0+4; 50 d 0+4");
        check("0 w 0+4; 20 d 0+4; 50 r 8+4", "0 w 0+4; 10 d 0+4; 20 d 0+4; 50 r 8+4");
        check("0 w 0+4; 20 z 0+4; 50 r 8+4", "0 w 0+4; 10 d 0+4; 20 z 0+4; 50 r 8+4");
        // The trace's own discard came in time.
        check("0 w 0+4; 5 d 0+4; 50 r 8+4", "0 w 0+4; 5 d 0+4; 50 r 8+4");
    }

    #[test]
    fn a_file_that_updates_itself_frees_nothing() {
        check("0 w 0+4@7; 50 w 0+4@7", "0 w 0+4; 50 w 0+4");
        check("0 w 0+4@7; 50 w 0+4@8", "0 w 0+4; 10 d 0+4; 50 w 0+4; 50 d 0+4");
    }

    #[test]
    fn data_that_nobody_overwrites_lives_on() {
        // Partial writes never end a life.
        check("0 w 0+2; 50 r 8+4", "0 w 0+2; 50 r 8+4");
    }
}
