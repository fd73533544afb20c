//! Sources that hand out another trace with one thing changed.
//!
//! A rewriting sees the records one after another, in the order of their issue, and gives
//! out others in that order. What it holds back in between has a named limit, and nothing is
//! left behind at the end of a pass.

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

/// Records that a rewriting holds back at most, so that its memory is bounded whatever the
/// times of a trace are: some 10 MB.
const HELD_MAX: usize = 1 << 16;

/// Changes records as they come by.
pub(super) trait Rewrite {
    /// The trace begins again; everything was given out before.
    fn restart(&mut self);

    /// Takes the next record and gives out what is ready, in the order of issue.
    fn push(&mut self, record: &Record, out: &mut Vec<Record>);

    /// The trace has ended: gives out the rest.
    fn finish(&mut self, out: &mut Vec<Record>);
}

/// A source that was changed.
pub(super) struct Rewritten<'a> {
    source: &'a mut dyn Source,
    /// `None` leaves every record as it is.
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

/// What the first gives out goes through the second.
pub(super) struct Then<A, B> {
    first: A,
    second: B,
    between: Vec<Record>,
}

impl<A: Rewrite, B: Rewrite> Then<A, B> {
    pub(super) fn new(first: A, second: B) -> Self {
        Self { first, second, between: Vec::new() }
    }

    fn pass_on(&mut self, out: &mut Vec<Record>) {
        for record in self.between.drain(..) {
            self.second.push(&record, out);
        }
    }
}

impl<A: Rewrite, B: Rewrite> Rewrite for Then<A, B> {
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

/// A trace without its discards.
pub(super) struct NoDiscards;

impl Rewrite for NoDiscards {
    fn restart(&mut self) {}

    fn push(&mut self, record: &Record, out: &mut Vec<Record>) {
        if record.op != Op::Discard {
            out.push(*record);
        }
    }

    fn finish(&mut self, _: &mut Vec<Record>) {}
}

/// `record` issued at another time, served as long as before.
fn issued_at(record: &Record, at_ns: i64) -> Record {
    let complete =
        service(record).map_or(OptTime::UNKNOWN, |span| OptTime::at(at_ns.saturating_add(span)));
    Record { issue_ns: at_ns, complete, ..*record }
}

/// From issue to completion in the trace.
fn service(record: &Record) -> Option<i64> {
    record.complete.get().map(|at| at.saturating_sub(record.issue_ns).max(0))
}

/// Whether what came before has to be durable at this record, or it says so of itself: data
/// held back must not pass it.
fn is_barrier(record: &Record) -> bool {
    record.op == Op::Flush || record.flags.has(Flags::FUA) || record.flags.has(Flags::PREFLUSH)
}

/// The end of a span that begins at `from_ns`.
fn after(from_ns: i64, span: Nanos) -> i64 {
    from_ns.saturating_add(i64::try_from(span.0).unwrap_or(i64::MAX))
}
