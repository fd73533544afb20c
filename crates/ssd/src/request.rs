//! What a host asks of a drive, and what it gets back.

use prism_base::{Nanos, SimTime};

/// The commands of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostOp {
    /// Read.
    Read,
    /// Write.
    Write,
    /// TRIM. Only whole mapping units inside the range are unmapped.
    Discard,
    /// The range reads as zeros: whole units are unmapped, the rest is written.
    WriteZeroes,
    /// Makes writes that were complete before it durable.
    Flush,
    /// Writes at the write pointer of a zone, whose first byte is the offset.
    ZoneAppend,
    /// Opens a zone.
    ZoneOpen,
    /// Closes one.
    ZoneClose,
    /// Makes one full.
    ZoneFinish,
    /// Empties one.
    ZoneReset,
}

impl HostOp {
    /// How many there are.
    pub const COUNT: usize = 10;
    /// Every command.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Read,
        Self::Write,
        Self::Discard,
        Self::WriteZeroes,
        Self::Flush,
        Self::ZoneAppend,
        Self::ZoneOpen,
        Self::ZoneClose,
        Self::ZoneFinish,
        Self::ZoneReset,
    ];
    /// Those that every drive takes.
    pub const COMMON: [Self; 5] =
        [Self::Read, Self::Write, Self::Discard, Self::WriteZeroes, Self::Flush];

    /// Whether it brings data.
    #[must_use]
    pub fn is_write(self) -> bool {
        matches!(self, Self::Write | Self::ZoneAppend)
    }

    /// Whether it changes the state of a zone and moves no data of the host.
    #[must_use]
    pub fn manages_zone(self) -> bool {
        matches!(self, Self::ZoneOpen | Self::ZoneClose | Self::ZoneFinish | Self::ZoneReset)
    }

    /// The name used in reports and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Discard => "discard",
            Self::WriteZeroes => "write_zeroes",
            Self::Flush => "flush",
            Self::ZoneAppend => "zone_append",
            Self::ZoneOpen => "zone_open",
            Self::ZoneClose => "zone_close",
            Self::ZoneFinish => "zone_finish",
            Self::ZoneReset => "zone_reset",
        }
    }
}

/// One command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The command.
    pub op: HostOp,
    /// First byte; of an append and of what manages a zone, the zone's first byte.
    pub offset: u64,
    /// Bytes; 0 for a flush and for what manages a zone.
    pub len: u64,
    /// What it writes, zeroes or trims is durable when it is complete; means nothing to
    /// others.
    pub fua: bool,
    /// A flush comes first, whatever the command.
    pub preflush: bool,
    /// The submission queue it comes through.
    pub queue: u16,
    /// Goes first where the scheduler looks at it, and makes cleaning wait where it is
    /// priority-aware.
    pub urgent: bool,
    /// The placement handle of a write, where the drive has them.
    pub handle: u16,
    /// Comes back with the completion.
    pub tag: u64,
}

impl Request {
    /// A request through the first queue with nothing special about it.
    #[must_use]
    pub fn new(op: HostOp, offset: u64, len: u64, tag: u64) -> Self {
        let (fua, preflush, urgent) = (false, false, false);
        Self { op, offset, len, fua, preflush, queue: 0, urgent, handle: 0, tag }
    }
}

/// What a request cost the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Flash pages read for it, those to complete partly written units included.
    pub flash_reads: u32,
    /// Mapping units found in the write buffer (reads), or replaced there (writes).
    pub buffer_hits: u32,
    /// Mapping units put into the write buffer.
    pub units_written: u32,
    /// Translation pages read because the map cache missed.
    pub map_reads: u32,
    /// Mapping units read that hold nothing.
    pub unmapped: u32,
    /// Time a write waited for room in the buffer.
    pub buffer_wait: Nanos,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Status {
    /// It was done.
    #[default]
    Done,
    /// A read found units that cannot be corrected, or whose content was lost before.
    Unreadable,
    /// A request that would write, or make what was written durable, came to a drive that
    /// writes no more.
    ReadOnly,
    /// A write to a zone, or a command that manages it, found that the zone can only be read:
    /// its flash has failed. None of what it wrote is promised.
    WriteFault,
}

impl Status {
    /// The name used in reports and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Unreadable => "unreadable",
            Self::ReadOnly => "read_only",
            Self::WriteFault => "write_fault",
        }
    }
}

/// A finished request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The tag it was submitted with.
    pub tag: u64,
    /// The command.
    pub op: HostOp,
    /// First byte; of an append, where its data went.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// When the drive got it.
    pub submitted: SimTime,
    /// When it was done.
    pub completed: SimTime,
    /// How it ended.
    pub status: Status,
    /// What it cost.
    pub cost: Cost,
}

/// Why a drive refuses a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// It reaches beyond the end of the drive.
    #[error("bytes {offset}+{len} are beyond the drive's {capacity} bytes")]
    BeyondEnd {
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u64,
        /// The drive's capacity in bytes.
        capacity: u64,
    },
    /// It moves nothing.
    #[error("a request of zero bytes")]
    ZeroLength,
    /// As many commands as the queue takes are outstanding already.
    #[error("queue {queue} of {depth} commands is full")]
    QueueFull {
        /// The queue.
        queue: u16,
        /// Commands it takes.
        depth: u32,
    },
    /// The drive has fewer queues.
    #[error("there is no queue {queue}; the drive has {queues}")]
    NoSuchQueue {
        /// The queue asked for.
        queue: u16,
        /// Queues there are.
        queues: u32,
    },
    /// A zoned drive has no such command.
    #[error(
        "a zoned drive takes no {op}: its zones are emptied by resets and written at their write \
         pointers"
    )]
    NotOnZones {
        /// The command.
        op: &'static str,
    },
    /// The drive has no zones.
    #[error("a drive without zones takes no {op}")]
    NoZones {
        /// The command.
        op: &'static str,
    },
    /// It does not begin and end at a mapping unit.
    #[error("bytes {offset}+{len} do not begin and end at multiples of {block} bytes")]
    Unaligned {
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u64,
        /// What zones are written in, in bytes.
        block: u64,
    },
    /// It does not begin where the zone's next write goes.
    #[error("zone {zone} is written at byte {write_pointer}, its write pointer, not at {offset}")]
    NotAtWritePointer {
        /// The zone.
        zone: u32,
        /// First byte of the write.
        offset: u64,
        /// Where it would have to begin.
        write_pointer: u64,
    },
    /// It has to name a zone by its first byte.
    #[error("byte {offset} is not the first of zone {zone}, which is {start}")]
    NotZoneStart {
        /// The zone that the byte lies in.
        zone: u32,
        /// The byte.
        offset: u64,
        /// The zone's first byte.
        start: u64,
    },
    /// It is longer than what is left of the zone.
    #[error("a write of {len} bytes does not fit the {left} bytes left of zone {zone}")]
    ZoneBoundary {
        /// The zone.
        zone: u32,
        /// Bytes.
        len: u64,
        /// Bytes from the write pointer to the end of the capacity.
        left: u64,
    },
    /// The zone is full.
    #[error("zone {zone} is full; reset it first")]
    ZoneFull {
        /// The zone.
        zone: u32,
    },
    /// The zone's state does not allow it.
    #[error("zone {zone} is {state}, which allows no {op}")]
    ZoneState {
        /// The zone.
        zone: u32,
        /// Its state.
        state: &'static str,
        /// The command.
        op: &'static str,
    },
    /// Every zone that may be open is so by the host's own command.
    #[error("zone {zone} cannot be opened: {max} are open; close or finish one")]
    TooManyOpen {
        /// The zone.
        zone: u32,
        /// The most.
        max: u32,
    },
    /// As many zones as may be are written in part.
    #[error("zone {zone} cannot be written: {max} are active; finish or reset one")]
    TooManyActive {
        /// The zone.
        zone: u32,
        /// The most.
        max: u32,
    },
    /// Commands of the zone are in flight, and the order of both would be chance.
    #[error("commands of zone {zone} are in flight; wait for them")]
    ZoneBusy {
        /// The zone.
        zone: u32,
    },
}
