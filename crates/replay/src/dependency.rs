//! Dependencies of requests on earlier completions in the trace.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use prism_base::{FastMap, SimTime};
use prism_trace::Record;

/// Finds, for each request of a trace in order, the request that had completed last when it was
/// issued, and the time between the two.
#[derive(Debug, Default)]
pub(crate) struct Dependencies {
    /// Completions in the trace after the current record: (time, number of the record).
    ahead: BinaryHeap<Reverse<(i64, u64)>>,
    /// The last completion before the current record.
    last: Option<(i64, u64)>,
    /// Completion times in the replay of records that others may depend on.
    done: FastMap<u64, SimTime>,
}

/// The completion that a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    /// The record that had completed last.
    pub(crate) number: u64,
    /// Time between its completion and this issue in the trace.
    pub(crate) think_ns: u64,
}

impl Dependencies {
    /// The dependency of record `number`; `None` if nothing had completed before it.
    pub(crate) fn next(&mut self, number: u64, record: &Record) -> Option<Dependency> {
        while let Some(&Reverse((at, passed))) = self.ahead.peek() {
            if at > record.issue_ns {
                break;
            }
            self.ahead.pop();
            if let Some((_, old)) = self.last.replace((at, passed)) {
                self.done.remove(&old);
            }
        }
        if let Some(at) = record.complete.get() {
            self.ahead.push(Reverse((at, number)));
        }
        let (at, number) = self.last?;
        Some(Dependency { number, think_ns: (record.issue_ns - at) as u64 })
    }

    /// Record `number` was completed in the replay.
    pub(crate) fn completed(&mut self, number: u64, record: &Record, at: SimTime) {
        if record.complete.get().is_some() {
            self.done.insert(number, at);
        }
    }

    /// When `number` was completed in the replay, if it was.
    pub(crate) fn done_at(&self, number: u64) -> Option<SimTime> {
        self.done.get(&number).copied()
    }
}
