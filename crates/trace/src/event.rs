//! What the event formats have in common: one event of the block layer, and the place
//! where parsers put it.

use crate::error::TraceError;
use crate::names::{Names, Who};
use crate::nvme::CommandId;
use crate::order::{Orderer, Timed};
use crate::pair::{Pairing, Totals};
use crate::reader::CountFrom;
use crate::record::{Flags, Op, Record};
use crate::rwbs::Rwbs;
use crate::skips::{SkipReason, Skips};
use crate::symbols::Symbol;

/// Bytes of a sector: the block layer counts in these whatever the device's block is.
pub(crate) const SECTOR: u64 = 512;

/// Greatest sector and number of sectors believed: keeps every sum of bytes in 64 bits.
const SECTORS_MAX: u64 = 1 << 53;

/// How far an event may stand behind later ones. Tools that merge the buffers of several
/// processors read them in turns of a fraction of a second.
const DISORDER_NS: u64 = 1_000_000_000;

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

/// Takes events from a parser, puts them into order, and pairs them into records.
pub(crate) struct Intake {
    pub names: Names,
    pub skips: Skips,
    order: Orderer<Event>,
    pairing: Pairing,
    ready: Vec<Record>,
    /// Smallest step of the clock seen in the timestamps.
    clock_ns: u64,
    /// A write-zeroes was told apart from a write.
    pub write_zeroes: bool,
}

impl Intake {
    pub fn new(count_from: CountFrom) -> Self {
        Self::with_disorder(count_from, DISORDER_NS)
    }

    /// Events may stand up to `disorder_ns` behind later ones.
    pub fn with_disorder(count_from: CountFrom, disorder_ns: u64) -> Self {
        Self {
            names: Names::new(),
            skips: Skips::default(),
            order: Orderer::new(disorder_ns),
            pairing: Pairing::new(count_from),
            ready: Vec::new(),
            clock_ns: 1_000_000_000,
            write_zeroes: false,
        }
    }

    /// Takes an event read at its line; `step_ns` is the step of its timestamp.
    #[inline]
    pub fn event(&mut self, event: Event, step_ns: u64) -> Result<(), TraceError> {
        self.clock_ns = self.clock_ns.min(step_ns);
        self.order.push(event, event.line)?;
        while let Some(event) = self.order.pop(false) {
            self.pairing.event(event, &mut self.skips, &mut self.ready);
        }
        Ok(())
    }

    pub fn skip(&mut self, reason: SkipReason, line: u64) {
        self.skips.add(reason, line);
    }

    /// Moves the records that are complete to `out`.
    pub fn drain(&mut self, out: &mut Vec<Record>) {
        out.append(&mut self.ready);
    }

    /// Moves all the rest to `out`.
    pub fn finish(&mut self, out: &mut Vec<Record>) -> Totals {
        while let Some(event) = self.order.pop(true) {
            self.pairing.event(event, &mut self.skips, &mut self.ready);
        }
        let totals = self.pairing.finish(&mut self.skips, &mut self.ready);
        self.drain(out);
        totals
    }

    pub fn count_from(&self) -> CountFrom {
        self.pairing.count_from()
    }

    pub fn clock_ns(&self) -> u64 {
        self.clock_ns
    }
}
