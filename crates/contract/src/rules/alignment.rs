//! The aligned sequentiality rule: the data that a drive with a block-level mapping would
//! have to merge.
//!
//! Each logical block has its own log block (N = 1), to which its writes are appended. A log
//! block that was filled in order, from the beginning of the logical block to its end,
//! becomes the data block without copies: a *switch* merge. Merges are counted in two ways:
//!
//! * `at_end`: as in the paper, blocks are merged only at the end of the trace (K is
//!   unlimited). If the last log block of a logical block holds its first units in order, the
//!   other valid units are copied to it (a *partial* merge). Otherwise all valid units of the
//!   logical block are copied (a *full* merge).
//! * `when_full`: a log block is merged when it is full, as it has to be on a drive with few
//!   log blocks. Overwriting the same block repeatedly then costs a merge each time, which
//!   the first way does not show.
//!
//! Memory: 16 bytes for each logical block of touched chunks. A chunk has whole logical
//! blocks, so the dense number of a unit determines that of its logical block.

use prism_base::{Bytes, Divisor, prefetch};

use super::offenders::Blame;

/// A logical block and its log block.
#[derive(Clone, Copy, Debug, Default)]
struct Log {
    /// Units written to the current log block.
    filled: u32,
    /// Valid units of the logical block.
    valid: u32,
    /// Valid units of the current log block, as long as it is in order.
    prefix: u32,
    /// Whether the current log block, or the last one if there is none, is in order.
    in_order: bool,
    /// The group that broke the order; as long as it is not broken, the group that wrote
    /// last.
    breaker: u16,
}

/// Numbers of merges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merges {
    /// Switch merges: the log block becomes the data block.
    pub switch: u64,
    /// Partial merges: the rest of the logical block is copied to the log block.
    pub partial: u64,
    /// Full merges: all valid units of the logical block are copied.
    pub full: u64,
    /// Units copied by all merges.
    pub copied: u64,
}

/// Tracks all logical blocks of one size.
#[derive(Debug)]
pub struct LogBlocks {
    /// Units of a block.
    units: Divisor,
    unit: u64,
    logs: Vec<Log>,
    written: u64,
    when_full: Merges,
    blame: Blame,
}

/// The result of the aligned sequentiality rule for one size of logical blocks.
#[derive(Clone, Debug)]
pub struct AlignmentFindings {
    /// Size of a logical block.
    pub block: Bytes,
    /// Bytes written, in whole units.
    pub written: Bytes,
    /// Bytes mapped at the end.
    pub mapped: Bytes,
    /// Bytes of a unit.
    pub unit: Bytes,
    /// Merges if all blocks are merged at the end of the trace.
    pub at_end: Merges,
    /// Merges if each log block is merged when it is full, and the others at the end.
    pub when_full: Merges,
    /// Bytes merged as counted in `when_full`, by the group that broke the order.
    pub blame: Blame,
}

impl LogBlocks {
    /// Logical blocks of `block` bytes, in units of `unit`.
    #[must_use]
    pub fn new(block: Bytes, unit: Bytes) -> Self {
        Self {
            units: Divisor::new(u32::try_from(block.0 / unit.0).unwrap_or(u32::MAX).max(1)),
            unit: unit.0,
            logs: Vec::new(),
            written: 0,
            when_full: Merges::default(),
            blame: Blame::default(),
        }
    }

    /// Units of a logical block.
    #[must_use]
    pub fn units(&self) -> u32 {
        self.units.get()
    }

    /// Extends the table to units with dense numbers below `len`.
    pub fn grow(&mut self, len: usize) {
        let blocks = len.div_ceil(self.units.get() as usize);
        if self.logs.len() < blocks {
            self.logs.resize(blocks, Log::default());
        }
    }

    /// Prefetches the state of the block of unit `dense`, which will soon be written.
    #[inline]
    pub fn prefetch(&self, dense: u32) {
        prefetch(&self.logs, self.units.divide(dense) as usize);
    }

    /// Writes the unit with dense number `dense`. `mapped` says whether it held data before.
    /// `group` is the group of the record.
    #[inline]
    pub fn write(&mut self, dense: u32, mapped: bool, group: u16) {
        let (block, offset) = self.units.split(dense);
        let log = &mut self.logs[block as usize];
        self.written += 1;
        if log.filled == 0 {
            log.in_order = true;
            log.prefix = 0;
        }
        if log.in_order {
            log.breaker = group;
            if log.filled == offset {
                log.prefix += 1;
            } else {
                log.in_order = false;
            }
        }
        log.filled += 1;
        log.valid += u32::from(!mapped);
        if log.filled == self.units.get() {
            if log.in_order {
                self.when_full.switch += 1;
            } else {
                self.when_full.full += 1;
                self.when_full.copied += u64::from(log.valid);
                self.blame.add(log.breaker, f64::from(log.valid) * self.unit as f64);
            }
            log.filled = 0;
        }
    }

    /// Discards the unit with dense number `dense`, which must hold data.
    pub fn discard(&mut self, dense: u32) {
        let (block, offset) = self.units.split(dense);
        let log = &mut self.logs[block as usize];
        log.valid -= 1;
        if log.in_order && offset < log.filled {
            log.prefix -= 1;
        }
    }

    /// Ends the trace and merges the remaining log blocks.
    #[must_use]
    pub fn finish(mut self) -> AlignmentFindings {
        let mut at_end = Merges::default();
        let (mut when_full, mut mapped) = (self.when_full, 0);
        let used = |log: &&Log| log.valid > 0 || log.filled > 0 || log.in_order;
        for log in self.logs.iter().filter(used) {
            mapped += u64::from(log.valid);
            let pending = log.filled > 0;
            let rest = if !log.in_order {
                log.valid
            } else if pending {
                log.valid - log.prefix
            } else {
                0
            };
            merge(&mut at_end, log, rest);
            if pending {
                merge(&mut when_full, log, rest);
                if rest > 0 {
                    // If the order is not broken, the group that wrote last is responsible,
                    // because it stopped before the end of the block.
                    self.blame.add(log.breaker, f64::from(rest) * self.unit as f64);
                }
            }
        }
        AlignmentFindings {
            block: Bytes(u64::from(self.units.get()) * self.unit),
            written: Bytes(self.written * self.unit),
            mapped: Bytes(mapped * self.unit),
            unit: Bytes(self.unit),
            at_end,
            when_full,
            blame: self.blame,
        }
    }
}

fn merge(merges: &mut Merges, log: &Log, rest: u32) {
    if log.in_order && rest == 0 {
        merges.switch += 1;
    } else if log.in_order {
        merges.partial += 1;
    } else {
        merges.full += 1;
    }
    merges.copied += u64::from(rest);
}

impl AlignmentFindings {
    /// Bytes merged at the end of the trace / bytes mapped then. The paper divides by the size
    /// of live files instead, so that only its ratio can be far above 1.
    #[must_use]
    pub fn unaligned_by_live(&self) -> Option<f64> {
        let merged = self.at_end.copied * self.unit.0;
        (self.mapped.0 > 0).then(|| merged as f64 / self.mapped.0 as f64)
    }

    /// Bytes merged if each log block is merged when it is full / bytes written.
    #[must_use]
    pub fn unaligned_by_traffic(&self) -> Option<f64> {
        let merged = self.when_full.copied * self.unit.0;
        (self.written.0 > 0).then(|| merged as f64 / self.written.0 as f64)
    }

    /// Bytes written / (bytes written + bytes merged).
    #[must_use]
    pub fn score(&self) -> Option<f64> {
        self.unaligned_by_traffic().map(|ratio| 1.0 / (1.0 + ratio))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prism_base::Rng;
    use prism_testkit::seeds;
    use std::collections::BTreeSet;

    /// The result of some writes and then some discards, with blocks of four units of 1 KiB.
    fn run(writes: &[u32], discards: &[u32]) -> AlignmentFindings {
        let mut rule = LogBlocks::new(Bytes(4096), Bytes(1024));
        rule.grow(16);
        let mut mapped = BTreeSet::new();
        for &unit in writes {
            rule.write(unit, !mapped.insert(unit), 0);
        }
        for &unit in discards {
            rule.discard(unit);
        }
        rule.finish()
    }

    fn check(writes: &[u32], discards: &[u32], at_end: [u64; 4], when_full: [u64; 4]) {
        let found = run(writes, discards);
        let parts = |m: Merges| [m.switch, m.partial, m.full, m.copied];
        assert_eq!(parts(found.at_end), at_end, "at the end: {writes:?}");
        assert_eq!(parts(found.when_full), when_full, "when full: {writes:?}");
    }

    #[test]
    fn hand_computed_example() {
        // A whole block in order.
        check(&[0, 1, 2, 3], &[], [1, 0, 0, 0], [1, 0, 0, 0]);
        // The first half of a block in order; the other half was never written.
        check(&[0, 1], &[], [1, 0, 0, 0], [1, 0, 0, 0]);
        // A whole block, then its first unit again: the other three units are copied.
        check(&[0, 1, 2, 3, 0], &[], [0, 1, 0, 3], [1, 1, 0, 3]);
        // The second half before the first.
        check(&[2, 3, 0, 1], &[], [0, 0, 1, 4], [0, 0, 1, 4]);
        // The same unit eight times: two merges when full, or one at the end.
        check(&[5, 5, 5, 5, 5, 5, 5, 5], &[], [0, 0, 1, 1], [0, 0, 2, 2]);
        // Discarded units are not copied.
        check(&[0, 1, 2, 3, 1], &[2, 3], [0, 0, 1, 2], [1, 0, 1, 2]);
        // A discarded unit of a log block in order is subtracted only once.
        check(&[0, 1, 2, 3, 0, 1], &[0], [0, 1, 0, 2], [1, 1, 0, 2]);
        // Writes to different blocks do not affect each other.
        check(&[0, 4, 1, 5, 2, 6, 3, 7], &[], [2, 0, 0, 0], [2, 0, 0, 0]);
    }

    #[test]
    fn an_incomplete_block_is_blamed_on_its_last_writer() {
        let mut rule = LogBlocks::new(Bytes(4096), Bytes(1024));
        rule.grow(4);
        (0..4).for_each(|unit| rule.write(unit, false, 3));
        // Group 4 starts the block again in order, group 5 continues and stops. Two units
        // remain to be copied.
        rule.write(0, true, 4);
        rule.write(1, true, 5);
        let mut expected = Blame::default();
        expected.add(5, 2048.0);
        assert_eq!(rule.finish().blame, expected);
    }

    #[test]
    fn ratios_by_live_data_and_by_traffic() {
        let found = run(&[5, 5, 5, 5, 5, 5, 5, 5], &[]);
        assert_eq!(found.unaligned_by_live(), Some(1.0));
        assert_eq!(found.unaligned_by_traffic(), Some(0.25));
        assert_eq!(found.score(), Some(0.8));
        assert_eq!(run(&[], &[]).score(), None);
    }

    /// Compares with a model that stores the contents of every log block.
    #[test]
    fn random_writes_agree_with_a_model_of_log_blocks() {
        for seed in seeds(0..200) {
            let mut rng = Rng::stream(seed, "alignment");
            let mut rule = LogBlocks::new(Bytes(4096), Bytes(1024));
            rule.grow(16);
            let mut valid = BTreeSet::new();
            let mut logs: Vec<Vec<u64>> = vec![Vec::new(); 4];
            let (mut copied, mut next) = (0u64, 0);
            for _ in 0..rng.below(80) {
                let unit = if rng.chance(0.6) { next } else { rng.below(16) };
                next = (unit + 1) % 16;
                if rng.chance(0.1) {
                    if valid.remove(&unit) {
                        rule.discard(unit as u32);
                    }
                    continue;
                }
                rule.write(unit as u32, !valid.insert(unit), 0);
                let log = &mut logs[unit as usize / 4];
                log.push(unit % 4);
                if log.len() == 4 {
                    let block = unit / 4;
                    let whole = |&&u: &&u64| u / 4 == block;
                    let live = valid.iter().filter(whole).count() as u64;
                    copied += if *log == [0, 1, 2, 3] { 0 } else { live };
                    log.clear();
                }
            }
            for (block, log) in logs.iter().enumerate().filter(|(_, log)| !log.is_empty()) {
                let live = valid.iter().filter(|&&u| u as usize / 4 == block);
                let in_order = log.iter().enumerate().all(|(i, &u)| u == i as u64);
                let kept = |&&u: &&u64| in_order && (u % 4) < log.len() as u64;
                copied += live.filter(|u| !kept(u)).count() as u64;
            }
            let found = rule.finish();
            assert_eq!(found.when_full.copied, copied, "seed {seed}");
            assert_eq!(found.mapped.0, valid.len() as u64 * 1024);
        }
    }
}
