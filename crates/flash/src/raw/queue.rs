//! Commands of the raw level, queued.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Deref;

use prism_base::SimTime;

use super::{Address, Raw};
use crate::error::Result;

/// A command to be queued. Buffers come back with the completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Reads the first bytes of a page, as many as `data` has.
    Read {
        /// The page.
        at: Address,
        /// Where to.
        data: Vec<u8>,
    },
    /// Writes a page.
    Write {
        /// The page.
        at: Address,
        /// What.
        data: Vec<u8>,
    },
    /// Erases a block.
    Erase {
        /// The block.
        at: Address,
    },
}

/// A command that is done.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// What it was submitted with.
    pub tag: u64,
    /// When it was done.
    pub end: SimTime,
    /// How it went.
    pub result: Result<()>,
    /// The buffer of the command; empty for an erase.
    pub data: Vec<u8>,
}

/// Ordered by time, then as submitted.
#[derive(Debug)]
struct Under {
    number: u64,
    completion: Completion,
}

impl PartialEq for Under {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Under {}

impl PartialOrd for Under {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Under {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.completion.end, self.number).cmp(&(other.completion.end, other.number))
    }
}

/// A read that the device does ahead.
#[derive(Debug)]
struct ReadAhead {
    number: u64,
    tag: u64,
    at: Address,
    data: Vec<u8>,
}

/// Commands in flight: submitted at the share's clock, completed in the order in which they
/// are done. Commands on one LUN are done as submitted, but for reads of a device that reads
/// ahead.
///
/// Such a device (a file) has as many reads in flight as are queued, and they are done as the
/// disk brings them; writes and erases come after the reads of their block that were submitted
/// before. What a read finds is told by its completion: a block that is erased meanwhile by a
/// call that was not queued has lost it.
#[derive(Debug)]
pub struct Queue<R> {
    raw: R,
    depth: usize,
    in_flight: BinaryHeap<Reverse<Under>>,
    /// In the order in which they were submitted.
    reads: VecDeque<ReadAhead>,
    submitted: u64,
}

impl<R: Deref<Target = Raw>> Queue<R> {
    /// A queue of commands for `raw`, `depth` of which may be in flight: over a reference, or
    /// over an [`Arc`](std::sync::Arc) where the queue has to outlive its maker.
    #[must_use]
    pub fn new(raw: R, depth: usize) -> Self {
        let (in_flight, reads) = (BinaryHeap::new(), VecDeque::new());
        Self { raw, depth: depth.max(1), in_flight, reads, submitted: 0 }
    }

    /// The level that it is a queue of.
    pub fn raw(&self) -> &Raw {
        &self.raw
    }

    /// Submits a command.
    ///
    /// # Errors
    /// The command itself, if as many are in flight as the queue is deep: take a completion
    /// first. What goes wrong with the command is told by its completion.
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
                    self.reads.push_back(ReadAhead { number, tag, at, data });
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
        self.in_flight.push(Reverse(Under { number, completion }));
    }

    /// Reads of a block that were queued come before what changes it.
    fn finish_reads_of(&mut self, at: Address) {
        let of_block = |read: &ReadAhead| read.at.with_page(0) == at.with_page(0);
        while let Some(place) = self.reads.iter().position(of_block) {
            let ReadAhead { number, tag, at, data } = self.reads.remove(place).expect("just seen");
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

    /// Waits for the next command that is done; `None` if none is in flight.
    pub fn complete(&mut self) -> Option<Completion> {
        // Only a device without timing reads ahead, and there other commands end as submitted.
        let first = self.in_flight.peek().map(|Reverse(under)| under.number);
        let before = self.reads.partition_point(|read| first.is_none_or(|n| read.number < n));
        if before > 0 {
            let place = match before {
                1 => 0,
                _ => self.raw.first_arrived(self.reads.iter().take(before).map(|read| read.at)),
            };
            let read = self.reads.remove(place).expect("one of those that were asked about");
            let ReadAhead { number, tag, at, data } = read;
            self.read_now(number, tag, at, data, SimTime::ZERO);
        }
        let Reverse(under) = self.in_flight.pop()?;
        // A share that is gone keeps no clock, and its commands have failed already.
        let _ = self.raw.share.reach_if_timed(under.completion.end);
        Some(under.completion)
    }
}
