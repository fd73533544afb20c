//! The queue and the operations in flight of one die.

use prism_base::{Nanos, SimTime};
use prism_ftl::ReadRecovery;
use prism_nand::{BlockId, Cause, ProgramUnitId};

use super::waiting::Waiting;
use crate::device::Load;

/// A read of one level of a program unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadOp {
    /// The caller's tag, or the job of a copy.
    pub(crate) tag: u32,
    pub(crate) program_unit: ProgramUnitId,
    pub(crate) pages: u16,
    /// What it transfers: the index in [`super::SimDevice::transfers`].
    pub(crate) parts: u16,
    pub(crate) level: u8,
    pub(crate) cause: Cause,
    pub(crate) why: ReadFor,
    pub(crate) recovery: ReadRecovery,
}

/// The purpose of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadFor {
    /// A read of the caller; `tag` is its tag.
    Caller,
    /// A copy; `tag` is its job.
    Copy,
    /// A read of the caller that needs its whole stripe; `tag` is a job that has the caller's tag.
    Rebuild,
}

/// An operation of a die. It is stored in queues, and therefore small.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Read(ReadOp),
    Program {
        job: u32,
    },
    /// For the cleaner of `die_group`, which may not be the die group of the block.
    Erase {
        block: BlockId,
        member: u32,
        die_group: u32,
    },
}

const _: () = assert!(size_of::<Option<Op>>() == 16);

/// A die: its cell array and its page register. With cache reads and cache programs one transfers
/// while the other works; otherwise an operation occupies both until it ends.
///
/// All dies together exceed the L1 cache, so the fields that most steps need are in the first two
/// cache lines: operations in flight, then the queue.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Die {
    /// When the operation of the array ends; [`SimTime::NEVER`] if there is none.
    pub(crate) array_until: SimTime,
    /// When the transfer ends; [`SimTime::NEVER`] if there is none.
    pub(crate) register_until: SimTime,
    /// The operation of the array.
    pub(crate) array: Option<Op>,
    /// The operation that transfers data.
    pub(crate) register: Option<Op>,
    /// Operations of the caller.
    pub(crate) load: Load,
    /// Queued operations; the counts are in the leading cache line.
    pub(super) waiting: Waiting,
    /// When the cells began to change; only maintained if operations may be suspended.
    pub(crate) array_from: SimTime,
    /// A read that is done in the array and waits for the register.
    pub(crate) sensed: Option<ReadOp>,
    /// A program whose data is in the register and that waits for the array.
    pub(crate) loaded: Option<u32>,
    /// The suspended operation, its remaining time, and how often it was suspended.
    pub(crate) suspended: Option<(Op, Nanos, u32)>,
    /// How often the operation of the array was suspended; only maintained if operations may be.
    pub(crate) suspensions: u32,
    /// Additional time of the next read, because an operation is suspended first.
    pub(crate) penalty: Nanos,
    /// Estimated time of the queued operations; only maintained for the scheduler that needs it.
    pub(crate) backlog: Nanos,
}

// Operations in flight and counts are the leading cache line, queued operations the next.
const _: () = assert!(std::mem::offset_of!(Die, waiting) + Waiting::COUNTS == 64);

impl Die {
    /// A die without operations.
    pub(crate) fn idle() -> Self {
        Self {
            waiting: Waiting::new(),
            array: None,
            array_from: SimTime::ZERO,
            array_until: SimTime::NEVER,
            sensed: None,
            register: None,
            register_until: SimTime::NEVER,
            loaded: None,
            suspended: None,
            suspensions: 0,
            penalty: Nanos::ZERO,
            load: Load::default(),
            backlog: Nanos::ZERO,
        }
    }

    /// When the next phase of an operation ends; [`SimTime::NEVER`] if none is in flight.
    #[inline]
    pub(crate) fn next_at(&self) -> SimTime {
        self.array_until.min(self.register_until)
    }

    /// Begins an operation of the array.
    #[inline]
    pub(crate) fn set_array(&mut self, op: Op, until: SimTime) {
        self.array = Some(op);
        self.array_until = until;
    }

    /// The data of the program in the array arrives `later` than expected, at `loaded`.
    #[cold]
    pub(crate) fn delay_program(&mut self, later: Nanos, loaded: SimTime) {
        assert!(matches!(self.array, Some(Op::Program { .. })), "only programs take data");
        self.array_until += later;
        self.array_from = loaded;
    }

    /// Ends the operation of the array and returns it.
    #[inline]
    pub(crate) fn take_array(&mut self) -> Option<Op> {
        self.array_until = SimTime::NEVER;
        self.array.take()
    }

    /// Ends the operation of the array.
    #[inline]
    pub(crate) fn clear_array(&mut self) {
        self.array_until = SimTime::NEVER;
        self.array = None;
    }

    /// Ends the transfer and returns its operation.
    #[inline]
    pub(crate) fn take_register(&mut self) -> Option<Op> {
        self.register_until = SimTime::NEVER;
        self.register.take()
    }

    /// Begins a transfer.
    #[inline]
    pub(crate) fn set_register(&mut self, op: Op, until: SimTime) {
        self.register = Some(op);
        self.register_until = until;
    }

    /// Whether no operation is in flight or queued.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.next_at() == SimTime::NEVER && self.waiting.is_empty()
    }

    /// Whether no operation is between its phases or suspended.
    #[inline]
    pub(crate) fn is_clear(&self) -> bool {
        self.loaded.is_none() && self.sensed.is_none() && self.suspended.is_none()
    }

    /// Whether array and register are free for `op`. The data of a program may be loaded only while
    /// another program is in the array: a read needs the register at its end, and an erase is not
    /// followed by a transfer.
    #[inline]
    pub(crate) fn may_begin(&self, op: &Op, cache_read: bool) -> bool {
        let free = self.register.is_none() && self.loaded.is_none();
        match op {
            Op::Read(_) => {
                let overtakes = matches!(self.register, Some(Op::Program { .. }));
                self.array.is_none() && (free || cache_read && !overtakes)
            }
            Op::Program { .. } => free && matches!(self.array, None | Some(Op::Program { .. })),
            Op::Erase { .. } => self.array.is_none() && free,
        }
    }
}
