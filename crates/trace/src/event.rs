//! The events of the block layer, which all event formats are converted to, and the reasons for
//! which a line is skipped.

use crate::names::Origin;
use crate::order::Timed;
use crate::record::{Flags, Op};
use crate::rwbs::Rwbs;
use crate::skips::SkipReason;
use crate::symbols::Symbol;

/// Bytes of a sector: the block layer counts in these whatever the device's block is.
pub(crate) const SECTOR: u64 = 512;

/// The limit of sectors and numbers of sectors: it keeps every sum of bytes in 64 bits.
const SECTORS_MAX: u64 = 1 << 53;

/// Text that does not fit its format.
pub(crate) const UNREADABLE: SkipReason = SkipReason("line that does not parse");
/// A known event whose fields are damaged.
pub(crate) const BAD_EVENT: SkipReason = SkipReason("event whose fields do not parse");
/// An event of another subsystem.
pub(crate) const OTHER_EVENT: SkipReason = SkipReason("event that is not about requests");
/// The tracer's own report of lost events.
pub(crate) const LOST: SkipReason = SkipReason("events lost by the tracer");
/// The issue of a command that moves no data.
pub(crate) const NO_DATA: SkipReason =
    SkipReason("command that neither moves data nor flushes (passed through, zone management)");
/// An NVMe command in a trace that is counted at the block layer.
pub(crate) const COUNTED_AT_BLOCK_LAYER: SkipReason =
    SkipReason("NVMe event of a request that block events count");
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
    pub kind: EventKind,
}

/// The kind of an event, with its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// A bio entered the block layer.
    Queue(Target, Origin),
    /// The accounting of a request began: replaces a queue event that was not recorded.
    Start(Target, Origin),
    /// A request went to the device.
    Issue(Target, Origin),
    /// A request, or a part of one, completed.
    Complete(Target),
    /// A bio completed; a request consists of one or more bios.
    BioComplete(Target),
    /// An issued request went back to the queue.
    Requeue(Target),
    /// A bio was remapped to here from another device and sector.
    Remap(Target, Symbol, u64),
    /// A bio was split in two; the second part starts at this sector.
    Split(Target, u64),
    /// A command went to an NVMe device. Sectors are logical blocks; a discard has none.
    Command(Target, Origin, CommandId),
    /// An NVMe command completed.
    CommandDone(CommandId),
    /// A phase of the experiment began.
    Phase(Symbol),
}

impl EventKind {
    /// Whether it is an event of the block layer.
    pub fn is_of_block_layer(self) -> bool {
        !matches!(self, Self::Command(..) | Self::CommandDone(_) | Self::Phase(_))
    }
}

/// Identifies a command; its number may be used again after it has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CommandId {
    pub controller: Symbol,
    pub queue: u16,
    pub number: u16,
}

/// The range and operation of an event.
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
    /// The same range, if it was counted in units of `sectors` sectors; `None` if that is
    /// beyond any device.
    pub fn scaled(self, sectors: u64) -> Option<Self> {
        let scale = |count: u64| count.checked_mul(sectors).filter(|count| *count < SECTORS_MAX);
        Some(Self { sector: scale(self.sector)?, sectors: scale(self.sectors)?, ..self })
    }

    /// `None` if the numbers are beyond any device.
    #[inline]
    pub fn new(device: Symbol, rwbs: Rwbs, sector: u64, sectors: u64) -> Option<Self> {
        let op = rwbs.op(sectors);
        // The kernel prints -1 if a request has no sector, as in flushes.
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
