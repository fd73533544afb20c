//! One event of the block layer, in which all event formats are put, and why a line of them
//! may be skipped.

use crate::names::Who;
use crate::order::Timed;
use crate::record::{Flags, Op};
use crate::rwbs::Rwbs;
use crate::skips::SkipReason;
use crate::symbols::Symbol;

/// Bytes of a sector: the block layer counts in these whatever the device's block is.
pub(crate) const SECTOR: u64 = 512;

/// Greatest sector and number of sectors believed: keeps every sum of bytes in 64 bits.
const SECTORS_MAX: u64 = 1 << 53;

/// Text that is not in the form of its format.
pub(crate) const UNREADABLE: SkipReason = SkipReason("line that does not parse");
/// A known event whose fields are damaged.
pub(crate) const BAD_EVENT: SkipReason = SkipReason("event whose fields do not parse");
/// An event of another subsystem.
pub(crate) const OTHER_EVENT: SkipReason = SkipReason("event that tells nothing of requests");
/// The tracer's own note of loss.
pub(crate) const LOST: SkipReason = SkipReason("events lost by the tracer");
/// A line beyond the limit.
pub(crate) const OVERLONG: SkipReason = SkipReason("line longer than 64 KiB");
/// An issue that moves no data.
pub(crate) const NO_DATA: SkipReason =
    SkipReason("command that neither moves data nor flushes (passed through, zone management)");
/// An NVMe command in a trace that is counted at the block layer.
pub(crate) const BESIDE: SkipReason =
    SkipReason("NVMe event beside block events, which count already");
/// A discard of the NVMe driver.
pub(crate) const NO_RANGES: SkipReason =
    SkipReason("discard whose ranges the NVMe driver does not print");
/// A completion without its issue.
pub(crate) const NO_ISSUE: SkipReason = SkipReason("completion whose issue is not in the trace");

/// One event of the block layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub time_ns: i64,
    pub line: u64,
    pub what: What,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A bio entered the block layer.
    Queue(Target, Who),
    /// A request began to be accounted: stands for a queue event that was not recorded.
    Start(Target, Who),
    /// A request went to the device.
    Issue(Target, Who),
    /// (Part of) a request was done.
    Complete(Target),
    /// A bio was done; a request consists of one or more of them.
    BioComplete(Target),
    /// An issued request went back to the queue.
    Requeue(Target),
    /// A bio moved here from another device and sector.
    Remap(Target, Symbol, u64),
    /// A bio was cut in two; the second part starts at this sector.
    Split(Target, u64),
    /// A command went to an NVMe device. Sectors are logical blocks; a discard has none.
    Command(Target, Who, CommandId),
    /// It was done.
    CommandDone(CommandId),
    /// The experiment entered a phase.
    Phase(Symbol),
}

impl What {
    /// Whether it is an event of the block layer.
    pub fn is_of_block_layer(self) -> bool {
        !matches!(self, Self::Command(..) | Self::CommandDone(_) | Self::Phase(_))
    }
}

/// Which command: its number may be used again once it has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CommandId {
    pub controller: Symbol,
    pub queue: u16,
    pub number: u16,
}

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub sector: u64,
    pub sectors: u64,
    pub device: Symbol,
    pub flags: Flags,
    /// `None` for commands that move no data.
    pub op: Option<Op>,
}

impl Target {
    /// The same with its place counted in units of `sectors` sectors; `None` if that is
    /// beyond any device.
    pub fn scaled(self, sectors: u64) -> Option<Self> {
        let scale = |count: u64| count.checked_mul(sectors).filter(|count| *count < SECTORS_MAX);
        Some(Self { sector: scale(self.sector)?, sectors: scale(self.sectors)?, ..self })
    }

    /// `None` if the numbers are beyond any device.
    #[inline]
    pub fn new(device: Symbol, rwbs: Rwbs, sector: u64, sectors: u64) -> Option<Self> {
        let op = rwbs.op(sectors);
        // The kernel prints -1 where a request has no place: in flushes.
        let sector = if sector == u64::MAX && sectors == 0 { 0 } else { sector };
        let fits = sector < SECTORS_MAX && sectors < SECTORS_MAX;
        fits.then_some(Self { sector, sectors, device, flags: rwbs.flags, op })
    }
}

impl Timed for Event {
    fn time_ns(&self) -> i64 {
        self.time_ns
    }
}
