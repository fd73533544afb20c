//! Rewrites the records of a trace while it is read.
//!
//! A [`Rewrite`] receives the records in the order of their issue times and emits the
//! rewritten records in the same order. The number of records that it holds back has a named
//! limit, and it emits all of them before the end of a pass.

mod commit;
mod dead;
mod death;
mod delay;
mod future;
mod heat;
mod merge;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod units;

pub(super) use commit::GroupCommit;
pub(super) use dead::DiscardDead;
pub(super) use death::DeathTime;
pub(super) use delay::DelayDiscards;
pub(super) use future::UNITS_MAX;
pub(super) use heat::HotCold;
pub(super) use merge::{Merge, Shape};
pub(super) use units::Units;

use prism_base::Nanos;
use prism_trace::{Flags, Op, OptTime, Record, Source, SourceError};

/// The most records that a rewrite holds back. It bounds the memory to about 10 MB, whatever
/// the times in the trace are.
const HELD_MAX: usize = 1 << 16;

/// A transformation of a stream of records.
pub(super) trait Rewrite {
    /// Prepares for another pass over the trace. [`Rewrite::finish`] was called before, so
    /// no record is held.
    fn restart(&mut self) {}

    /// Receives the next record, and appends the records that are ready to `out`, in the
    /// order of their issue times.
    fn push(&mut self, record: &Record, out: &mut Vec<Record>);

    /// Ends the pass: appends all records that are still held to `out`.
    fn finish(&mut self, _out: &mut Vec<Record>) {}
}

/// A source whose records pass through a [`Rewrite`].
pub(super) struct Rewritten<'a> {
    source: &'a mut dyn Source,
    /// `None` leaves all records unmodified.
    rewrite: Option<Box<dyn Rewrite>>,
    input: Vec<Record>,
    ended: bool,
}

impl<'a> Rewritten<'a> {
    pub(super) fn new(source: &'a mut dyn Source, rewrite: Option<Box<dyn Rewrite>>) -> Self {
        Self { source, rewrite, input: Vec::new(), ended: false }
    }
}

impl Source for Rewritten<'_> {
    fn rewind(&mut self) -> Result<(), SourceError> {
        self.ended = false;
        if let Some(rewrite) = &mut self.rewrite {
            rewrite.restart();
        }
        self.source.rewind()
    }

    fn next_batch(&mut self, batch: &mut Vec<Record>) -> Result<(), SourceError> {
        let Some(rewrite) = &mut self.rewrite else { return self.source.next_batch(batch) };
        batch.clear();
        while batch.is_empty() && !self.ended {
            self.source.next_batch(&mut self.input)?;
            self.ended = self.input.is_empty();
            for record in &self.input {
                rewrite.push(record, batch);
            }
            if self.ended {
                rewrite.finish(batch);
            }
        }
        Ok(())
    }
}

/// Two rewrites in sequence: the second one receives what the first one emits.
pub(super) struct Chain<A, B> {
    first: A,
    second: B,
    between: Vec<Record>,
}

impl<A: Rewrite, B: Rewrite> Chain<A, B> {
    pub(super) fn new(first: A, second: B) -> Self {
        Self { first, second, between: Vec::new() }
    }

    fn pass_on(&mut self, out: &mut Vec<Record>) {
        for record in self.between.drain(..) {
            self.second.push(&record, out);
        }
    }
}

impl<A: Rewrite, B: Rewrite> Rewrite for Chain<A, B> {
    fn restart(&mut self) {
        self.first.restart();
        self.second.restart();
    }

    fn push(&mut self, record: &Record, out: &mut Vec<Record>) {
        self.first.push(record, &mut self.between);
        self.pass_on(out);
    }

    fn finish(&mut self, out: &mut Vec<Record>) {
        self.first.finish(&mut self.between);
        self.pass_on(out);
        self.second.finish(out);
    }
}

/// Removes all requests of an operation.
pub(super) struct Without(pub(super) Op);

impl Rewrite for Without {
    fn push(&mut self, record: &Record, out: &mut Vec<Record>) {
        if record.op != self.0 {
            out.push(*record);
        }
    }
}

/// `record` with another issue time and the same latency.
fn issued_at(record: &Record, at_ns: i64) -> Record {
    let complete =
        latency(record).map_or(OptTime::UNKNOWN, |span| OptTime::at(at_ns.saturating_add(span)));
    Record { issue_ns: at_ns, complete, ..*record }
}

/// The time from issue to completion in the trace; `None` if the completion is not known.
fn latency(record: &Record) -> Option<i64> {
    record.complete.get().map(|at| at.saturating_sub(record.issue_ns).max(0))
}

/// Whether the record is a flush, has a preflush, or is durable itself (FUA). Data that is
/// held back must be emitted before such a record.
fn is_barrier(record: &Record) -> bool {
    record.op == Op::Flush || record.flags.has(Flags::FUA) || record.flags.has(Flags::PREFLUSH)
}

/// The time `span` after `from_ns`.
fn after(from_ns: i64, span: Nanos) -> i64 {
    from_ns.saturating_add(i64::try_from(span.0).unwrap_or(i64::MAX))
}
