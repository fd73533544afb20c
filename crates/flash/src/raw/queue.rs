//! The command queue of the raw level.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Deref;

use prism_base::SimTime;

use super::{Address, Raw};
use crate::error::Result;

/// A command to be queued. The completion returns its buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Reads the first bytes of a page, as many as `data` has.
    Read {
        /// The page.
        at: Address,
        /// The buffer to read into.
        data: Vec<u8>,
    },
    /// Writes a page.
    Write {
        /// The page.
        at: Address,
        /// The page's new content.
        data: Vec<u8>,
    },
    /// Erases a block.
    Erase {
        /// The block.
        at: Address,
    },
}

/// The completion of a command.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// The tag passed to [`Queue::submit`].
    pub tag: u64,
    /// When the command was complete.
    pub end: SimTime,
    /// Its result.
    pub result: Result<()>,
    /// The buffer of the command; empty for an erase.
    pub data: Vec<u8>,
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

/// A queued read that the device prefetches.
#[derive(Debug)]
struct QueuedRead {
    number: u64,
    tag: u64,
    at: Address,
    data: Vec<u8>,
}

/// Commands in flight. They start at the time of the share's clock and complete in the order of
/// their ends. Commands on one LUN are executed in the order of submission, except for reads on a
/// device that prefetches.
///
/// Such a device (a file) has all queued reads in flight, which complete in the order of the disk;
/// a write or an erase waits for the earlier reads of its block. A read returns the content of the
/// page when it completes: if a call outside of the queue erases the block meanwhile, the read
/// fails.
#[derive(Debug)]
pub struct Queue<R> {
    raw: R,
    depth: usize,
    in_flight: BinaryHeap<Reverse<InFlight>>,
    /// In the order in which they were submitted.
    reads: VecDeque<QueuedRead>,
    submitted: u64,
}

impl<R: Deref<Target = Raw>> Queue<R> {
    /// A queue for `raw` with at most `depth` commands in flight. `raw` is a reference, or an
    /// [`Arc`](std::sync::Arc) if the queue has to outlive the function that makes it.
    #[must_use]
    pub fn new(raw: R, depth: usize) -> Self {
        let (in_flight, reads) = (BinaryHeap::new(), VecDeque::new());
        Self { raw, depth: depth.max(1), in_flight, reads, submitted: 0 }
    }

    /// The raw level below the queue.
    pub fn raw(&self) -> &Raw {
        &self.raw
    }

    /// Submits a command.
    ///
    /// # Errors
    /// The command itself, if the queue is full: take a completion first. Errors of the command are
    /// reported by its completion.
    pub fn submit(&mut self, command: Command, tag: u64) -> Result<(), Command> {
        if self.len() == self.depth {
            return Err(command);
        }
        let number = self.submitted;
        self.submitted += 1;
        let now = self.raw.share.now_if_timed().unwrap_or(SimTime::ZERO);
        let (end, data) = match command {
            Command::Read { at, data } => {
                if self.raw.prefetch(at, data.len()) {
                    self.reads.push_back(QueuedRead { number, tag, at, data });
                } else {
                    self.read_now(number, tag, at, data, now);
                }
                return Ok(());
            }
            Command::Write { at, data } => {
                self.finish_reads_of(at);
                (self.raw.write_from(at, &data, &[], now), data)
            }
            Command::Erase { at } => {
                self.finish_reads_of(at);
                (self.raw.erase_from(at, now), Vec::new())
            }
        };
        self.done(number, tag, now, end, data);
        Ok(())
    }

    fn read_now(&mut self, number: u64, tag: u64, at: Address, mut data: Vec<u8>, now: SimTime) {
        let end = self.raw.read_from(at, &mut data, &mut [], now);
        self.done(number, tag, now, end, data);
    }

    fn done(&mut self, number: u64, tag: u64, now: SimTime, end: Result<SimTime>, data: Vec<u8>) {
        let completion = match end {
            Ok(end) => Completion { tag, end, result: Ok(()), data },
            Err(error) => Completion { tag, end: now, result: Err(error), data },
        };
        self.in_flight.push(Reverse(InFlight { number, completion }));
    }

    /// Executes the queued reads of a block before it is written or erased.
    fn finish_reads_of(&mut self, at: Address) {
        let of_block = |read: &QueuedRead| read.at.with_page(0) == at.with_page(0);
        while let Some(place) = self.reads.iter().position(of_block) {
            let QueuedRead { number, tag, at, data } = self.reads.remove(place).expect("just seen");
            self.read_now(number, tag, at, data, SimTime::ZERO);
        }
    }

    /// Commands in flight.
    #[must_use]
    pub fn len(&self) -> usize {
        self.in_flight.len() + self.reads.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits for the next completion; `None` if no command is in flight.
    pub fn complete(&mut self) -> Option<Completion> {
        // Only a device without timing prefetches; its other commands complete in order.
        let first = self.in_flight.peek().map(|Reverse(command)| command.number);
        let before = self.reads.partition_point(|read| first.is_none_or(|n| read.number < n));
        if before > 0 {
            let place = match before {
                1 => 0,
                _ => self.raw.first_arrived(self.reads.iter().take(before).map(|read| read.at)),
            };
            let read = self.reads.remove(place).expect("an index below `before`");
            let QueuedRead { number, tag, at, data } = read;
            self.read_now(number, tag, at, data, SimTime::ZERO);
        }
        let Reverse(command) = self.in_flight.pop()?;
        // A released share has no clock, and its commands have failed already.
        let _ = self.raw.share.reach_if_timed(command.completion.end);
        Some(command.completion)
    }
}
