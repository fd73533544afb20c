//! Completions of queued commands, and their order on a device with timing, where commands take
//! effect at once and are complete when the share's clock has reached their end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use prism_base::{Nanos, SimTime};

use crate::buffer::Buffer;
use crate::error::Result;
use crate::monitor::Share;

/// The completion of a command.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// The tag passed to the queue with the command.
    pub tag: u64,
    /// When the command was complete, in the time of the share.
    pub end: SimTime,
    /// Its result.
    pub result: Result<()>,
    /// The buffer of the command; empty for a command that has none.
    pub data: Buffer,
}

/// A command in flight, ordered by its end, then by submission.
#[derive(Debug)]
struct InFlight {
    number: u64,
    completion: Completion,
}

impl PartialEq for InFlight {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for InFlight {}

impl PartialOrd for InFlight {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for InFlight {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.completion.end, self.number).cmp(&(other.completion.end, other.number))
    }
}

/// Commands of a queue on a device with timing.
#[derive(Debug, Default)]
pub(crate) struct TimedCommands {
    in_flight: BinaryHeap<Reverse<InFlight>>,
    submitted: u64,
}

impl TimedCommands {
    /// Adds a command that has taken effect.
    pub(crate) fn push(&mut self, completion: Completion) {
        self.submitted += 1;
        self.in_flight.push(Reverse(InFlight { number: self.submitted, completion }));
    }

    /// Commands whose completion was not taken.
    pub(crate) fn len(&self) -> usize {
        self.in_flight.len()
    }

    /// When the next command completes.
    pub(crate) fn next_end(&self) -> Option<SimTime> {
        self.in_flight.peek().map(|Reverse(first)| first.completion.end)
    }

    /// The next completion, if the share's clock has reached it.
    pub(crate) fn poll(&mut self, share: &Share) -> Option<Completion> {
        let now = share.now().unwrap_or(SimTime(u64::MAX));
        let Reverse(first) = self.in_flight.peek()?;
        if first.completion.end > now {
            return None;
        }
        self.in_flight.pop().map(|Reverse(command)| command.completion)
    }

    /// Advances the share's clock to the next completion, by at most `timeout`; returns whether it
    /// is reached.
    pub(crate) fn wait(&mut self, share: &Share, timeout: Option<Nanos>) -> bool {
        let Some(Reverse(first)) = self.in_flight.peek() else { return false };
        let end = first.completion.end;
        let now = share.now().unwrap_or(end);
        let latest = timeout.map_or(end, |timeout| end.min(now + timeout));
        let _ = share.reach(latest);
        end <= latest.max(now)
    }

    /// Advances the share's clock to the next completion, and takes it.
    pub(crate) fn complete(&mut self, share: &Share) -> Option<Completion> {
        let Reverse(command) = self.in_flight.pop()?;
        // A released share has no clock, and its commands have failed already.
        let _ = share.reach(command.completion.end);
        Some(command.completion)
    }
}
