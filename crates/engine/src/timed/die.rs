//! What one die has to do, and what it is doing.

use prism_base::{Nanos, SimTime};
use prism_ftl::ReadRecovery;
use prism_nand::{BlockId, Cause, ProgramUnitId};

use super::waiting::Waiting;

/// A read of one level of a program unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadOp {
    /// The caller's tag, or the job of a copy.
    pub(crate) tag: u32,
    pub(crate) program_unit: ProgramUnitId,
    pub(crate) units: u16,
    pub(crate) pages: u16,
    pub(crate) level: u8,
    pub(crate) cause: Cause,
    pub(crate) why: ReadFor,
    pub(crate) recovery: ReadRecovery,
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

/// Something a die is asked to do; as small as it can be, since it waits in queues.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Read(ReadOp),
    Program {
        job: u32,
    },
    /// For the cleaner of `die_group`, which may not be the block's own.
    Erase {
        block: BlockId,
        member: u32,
        die_group: u32,
    },
}

const _: () = assert!(size_of::<Option<Op>>() == 16);

/// A die. The array and the register in front of it are two stations: with cache reads
/// and cache programs one transfers while the other works; without, an operation holds
/// both until it ends.
///
/// All dies together are more than the first cache holds, so what most steps ask for lies in
/// the first two lines of each: what works, then what waits.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Die {
    /// Until when the cells do what they do; [`SimTime::NEVER`] if they do nothing.
    pub(crate) array_until: SimTime,
    /// The same of the transfer.
    pub(crate) register_until: SimTime,
    /// What the cells do.
    pub(crate) array: Option<Op>,
    /// What is transferred.
    pub(crate) register: Option<Op>,
    /// Operations of the caller that wait or run.
    pub(crate) host_ops: u32,
    /// Host program units that wait or run.
    pub(crate) host_program_units: u32,
    /// What waits; how much it is stands in the first line.
    pub(crate) waiting: Waiting,
    /// Since when the cells change; kept only where they may be stopped.
    pub(crate) array_from: SimTime,
    /// Read from the cells, waits for the register to be free.
    pub(crate) sensed: Option<ReadOp>,
    /// A program whose data is in the register, waits for the cells.
    pub(crate) loaded: Option<u32>,
    /// Stopped for reads, how much of it is left, and how often it was stopped.
    pub(crate) suspended: Option<(Op, Nanos, u32)>,
    /// How often the operation in the array was stopped; kept only where it may be.
    pub(crate) suspensions: u32,
    /// Time that the next read needs more, because something has to stop first.
    pub(crate) penalty: Nanos,
    /// Programs that have ended, of wordlines that are not full.
    pub(crate) held: Vec<u32>,
    /// Time that what waits will take; kept only where a scheduler asks for it.
    pub(crate) backlog: Nanos,
}

// What works, and how much waits, is the first line, what waits the second.
const _: () = assert!(std::mem::offset_of!(Die, waiting) + Waiting::COUNTS == 64);

impl Die {
    /// One that does nothing.
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
            host_program_units: 0,
            host_ops: 0,
            held: Vec::new(),
            backlog: Nanos::ZERO,
        }
    }

    /// When one of its stations is done; [`SimTime::NEVER`] if neither works.
    #[inline]
    pub(crate) fn next_at(&self) -> SimTime {
        self.array_until.min(self.register_until)
    }

    /// Begins something in the cells.
    #[inline]
    pub(crate) fn set_array(&mut self, op: Op, until: SimTime) {
        self.array = Some(op);
        self.array_until = until;
    }

    /// Takes what the cells did.
    #[inline]
    pub(crate) fn take_array(&mut self) -> Option<Op> {
        self.array_until = SimTime::NEVER;
        self.array.take()
    }

    /// The cells do nothing any more.
    #[inline]
    pub(crate) fn clear_array(&mut self) {
        self.array_until = SimTime::NEVER;
        self.array = None;
    }

    /// Takes what was transferred.
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

    /// Whether neither station works and nothing waits in a queue.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.next_at() == SimTime::NEVER && self.waiting.is_empty()
    }

    /// Whether nothing has been begun that has to go on.
    #[inline]
    pub(crate) fn is_clear(&self) -> bool {
        self.loaded.is_none() && self.sensed.is_none() && self.suspended.is_none()
    }

    /// Whether the stations have room for `op` now. A program may be loaded only while another
    /// one runs: a read needs the register at its end, and an erase ends in no data.
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
