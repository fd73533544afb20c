//! Traces for measuring how fast the rules of the unwritten contract judge requests.

use prism_base::Rng;
use prism_contract::rules::{Ranges, Rules, Subject};
use prism_ssd::{DriveSpec, DriveSpecError, fit};
use prism_trace::{Flags, Op, OptTime, Record, Symbol};

/// Requests generated at once, so that the caller can time the rules without the generator.
const BATCH: u64 = 1 << 16;
/// Size of the address space: 152 GiB, so that 10 M requests of 16 KiB touch up to 40 M units of
/// 4 KiB.
const SPAN: u64 = 152 << 30;

named_enum! {
    /// The pattern of the requests of a trace.
    pub enum Pattern {
        /// Writes of 16 KiB to random addresses.
        Scattered = "scattered writes of 16 KiB",
        /// Sequential writes of 16 KiB.
        Log = "sequential writes of 16 KiB",
        /// Reads and writes of 4 to 28 KiB with some flushes and discards. Nine in ten requests go
        /// to one percent of the addresses.
        Database = "database",
    }
}

/// A trace that is generated while it is read.
#[derive(Debug)]
pub struct Trace {
    pattern: Pattern,
    requests: u64,
    made: u64,
    rng: Rng,
}

impl Trace {
    /// A trace of `requests` requests.
    #[must_use]
    pub fn new(pattern: Pattern, requests: u64, seed: u64) -> Self {
        Self { pattern, requests, made: 0, rng: Rng::stream(seed, "judging") }
    }

    /// The rules, ready to judge the trace for the default drive.
    ///
    /// # Errors
    /// [`DriveSpecError`] if the default preset is broken.
    pub fn rules() -> Result<Rules, DriveSpecError> {
        let full = DriveSpec::preset(DriveSpec::DEFAULT_PRESET)?;
        let fitted = fit(&full, prism_base::Bytes(SPAN))?;
        let subject = Subject::of(&fitted.device, full.flash.channels);
        Ok(Rules::new(subject, Ranges::new(Vec::new(), SPAN)))
    }

    /// Replaces the content of `batch` by the next requests; `batch` is empty at the end.
    pub fn next_batch(&mut self, batch: &mut Vec<Record>) {
        batch.clear();
        let end = self.requests.min(self.made + BATCH);
        while self.made < end {
            let record = self.record();
            batch.push(record);
            self.made += 1;
        }
    }

    fn record(&mut self) -> Record {
        let (unit, size) = (4096, 16384);
        let at = self.made as i64 * 10_000;
        let record = match self.pattern {
            Pattern::Scattered => {
                Record::new(Op::Write, at, self.rng.below(SPAN / size) * size, size)
            }
            Pattern::Log => Record::new(Op::Write, at, self.made * size % SPAN, size),
            Pattern::Database => {
                let op = match self.rng.below(20) {
                    0 => Op::Flush,
                    1 => Op::Discard,
                    2..=9 => Op::Write,
                    _ => Op::Read,
                };
                let hot = if self.rng.chance(0.9) { SPAN / 100 } else { SPAN - (1 << 20) };
                let len = unit * (1 + self.rng.below(7));
                let offset = self.rng.below(hot / unit) * unit;
                if op == Op::Flush {
                    Record::new(op, at, 0, 0)
                } else {
                    Record::new(op, at, offset, len)
                }
            }
        };
        Record {
            complete: OptTime::at(at + 80_000),
            comm: Symbol(1 + (self.made % 3) as u32),
            flags: if self.made.is_multiple_of(7) { Flags::SYNC } else { Flags::NONE },
            ..record
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prism_contract::rules::Rule;
    use prism_trace::Symbols;

    #[test]
    fn scores_match_the_pattern() {
        let mut symbols = Symbols::new();
        for name in ["one", "two", "three"] {
            symbols.intern(name);
        }
        let score = |pattern, rule| {
            let (mut trace, mut batch) = (Trace::new(pattern, 200_000, 1), Vec::new());
            let (mut rules, mut made) = (Trace::rules().unwrap(), 0);
            loop {
                trace.next_batch(&mut batch);
                if batch.is_empty() {
                    break;
                }
                made += batch.len();
                rules.add_all(&batch);
            }
            assert_eq!(made, 200_000);
            rules.finish(&symbols).score(rule).unwrap()
        };
        assert!(score(Pattern::Log, Rule::AlignedSequentiality) > 0.999);
        assert!(score(Pattern::Scattered, Rule::Locality) < 0.2);
        assert!(score(Pattern::Database, Rule::Locality) > 0.8);
    }
}
