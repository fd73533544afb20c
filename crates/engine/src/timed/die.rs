//! What one die has to do, and what it is doing.

use std::collections::VecDeque;

use prism_base::{Nanos, SimTime};
use prism_ftl::Trouble;
use prism_nand::{BlockId, Cause, RowId};

/// A read of one level of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadOp {
    /// The caller's tag, or the job of a copy.
    pub(crate) tag: u32,
    pub(crate) row: RowId,
    pub(crate) units: u16,
    pub(crate) pages: u16,
    pub(crate) level: u8,
    pub(crate) cause: Cause,
    pub(crate) why: ReadFor,
    pub(crate) trouble: Trouble,
}

/// Who waits for a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadFor {
    /// The caller, under its tag.
    Caller,
    /// A copy; the tag is its job.
    Copy,
    /// A read of the caller that needs its whole stripe; the tag is a job that keeps the
    /// caller's.
    Rebuild,
}

/// Something a die is asked to do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Read(ReadOp),
    Program {
        job: u32,
    },
    /// For the cleaner of `lane`, which may not be the block's own.
    Erase {
        block: BlockId,
        member: u32,
        lane: u32,
        cause: Cause,
    },
}

/// A die. The array and the register in front of it are two stations: with cache reads
/// and cache programs one transfers while the other works; without, an operation holds
/// both until it ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Die {
    /// Goes before `rest`; within each, first come first served.
    pub(crate) first: VecDeque<Op>,
    pub(crate) rest: VecDeque<Op>,
    /// How often in a row something in `rest` was passed.
    pub(crate) passed: u32,
    /// What the cells do, since when they change, and until when.
    pub(crate) array: Option<Op>,
    pub(crate) array_from: SimTime,
    pub(crate) array_until: SimTime,
    /// Read from the cells, waits for the register to be free.
    pub(crate) sensed: Option<ReadOp>,
    /// What is transferred, and until when.
    pub(crate) register: Option<Op>,
    pub(crate) register_until: SimTime,
    /// A program whose data is in the register, waits for the cells.
    pub(crate) loaded: Option<u32>,
    /// Stopped for reads, how much of it is left, and how often it was stopped.
    pub(crate) suspended: Option<(Op, Nanos, u32)>,
    /// How often the operation in the array was stopped.
    pub(crate) suspensions: u32,
    /// Time that the next read needs more, because something has to stop first.
    pub(crate) penalty: Nanos,
    /// Host rows that wait or run.
    pub(crate) host_rows: u32,
    /// Operations of the caller that wait or run.
    pub(crate) host_ops: u32,
    /// Programs that have ended, of word lines that are not full.
    pub(crate) held: Vec<u32>,
    /// Time that what waits will take; kept only where a scheduler asks for it.
    pub(crate) backlog: Nanos,
}

impl Die {
    /// When one of its stations is done.
    pub(crate) fn next_event(&self) -> Option<SimTime> {
        match (&self.array, &self.register) {
            (Some(_), None) => Some(self.array_until),
            (None, Some(_)) => Some(self.register_until),
            (Some(_), Some(_)) => Some(self.array_until.min(self.register_until)),
            (None, None) => None,
        }
    }

    /// The operation whose turn it is, and whether it is one that passes others.
    pub(crate) fn head(&self, passed_max: u32) -> Option<(Op, bool)> {
        let rest = self.rest.front();
        match self.first.front() {
            Some(&op) if rest.is_none() || self.passed < passed_max => Some((op, true)),
            _ => rest.map(|&op| (op, false)),
        }
    }

    /// Takes out what [`Die::head`] returned.
    pub(crate) fn take(&mut self, passes: bool) {
        if passes {
            self.passed += u32::from(!self.rest.is_empty());
            self.first.pop_front();
        } else {
            self.passed = 0;
            self.rest.pop_front();
        }
    }
}
