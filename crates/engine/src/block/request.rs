//! Requests to a block device, their completions, and errors of submission.

use prism_base::{Nanos, SimTime};

prism_base::named_enum! {
    /// The commands of a host.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum HostOp {
        /// Read.
        Read = "read",
        /// Write.
        Write = "write",
        /// TRIM. Only whole mapping units inside the range are unmapped.
        Discard = "discard",
        /// The range reads as zeros: whole units are unmapped, the rest is written.
        WriteZeroes = "write_zeroes",
        /// Makes writes that were complete before it durable.
        Flush = "flush",
        /// Writes at the write pointer of the zone that begins at the offset.
        ZoneAppend = "zone_append",
        /// Opens a zone.
        ZoneOpen = "zone_open",
        /// Closes a zone.
        ZoneClose = "zone_close",
        /// Makes a zone full.
        ZoneFinish = "zone_finish",
        /// Empties a zone.
        ZoneReset = "zone_reset",
    }
}

impl HostOp {
    /// Number of commands.
    pub const COUNT: usize = 10;
    /// The commands of drives without zones.
    pub const COMMON: [Self; 5] =
        [Self::Read, Self::Write, Self::Discard, Self::WriteZeroes, Self::Flush];

    /// Whether it transfers data to the drive.
    #[must_use]
    #[inline]
    pub fn is_write(self) -> bool {
        matches!(self, Self::Write | Self::ZoneAppend)
    }

    /// Whether it changes the state of a zone without transferring data.
    #[must_use]
    #[inline]
    pub fn manages_zone(self) -> bool {
        matches!(self, Self::ZoneOpen | Self::ZoneClose | Self::ZoneFinish | Self::ZoneReset)
    }
}

/// One command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The command.
    pub op: HostOp,
    /// First byte; of an append or a zone management command, the zone's first byte.
    pub offset: u64,
    /// Bytes; 0 for a flush or a zone management command.
    pub len: u64,
    /// What it writes, zeroes or trims is durable when it completes; ignored for other commands.
    pub fua: bool,
    /// The drive flushes before it performs the command.
    pub preflush: bool,
    /// The submission queue.
    pub queue: u16,
    /// A `priority` scheduler serves it first, and priority-aware cleaning waits for it.
    pub urgent: bool,
    /// The placement handle of a write, on drives that have them.
    pub handle: u16,
    /// Returned with the completion.
    pub tag: u64,
}

impl Request {
    /// A request without flags on the first queue.
    #[must_use]
    #[inline]
    pub fn new(op: HostOp, offset: u64, len: u64, tag: u64) -> Self {
        let (fua, preflush, urgent) = (false, false, false);
        Self { op, offset, len, fua, preflush, queue: 0, urgent, handle: 0, tag }
    }
}

/// Work that a request caused in the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Flash pages read, those to complete partly written units included.
    pub flash_reads: u32,
    /// Mapping units found in the write buffer (reads), or replaced there (writes).
    pub buffer_hits: u32,
    /// Mapping units added to the write buffer.
    pub units_written: u32,
    /// Translation pages read because the map cache missed.
    pub map_reads: u32,
    /// Unmapped mapping units read.
    pub unmapped: u32,
    /// Time a write waited for space in the buffer.
    pub buffer_wait: Nanos,
}

prism_base::named_enum! {
    /// How a request ended.
    #[derive(Default, Hash)]
    pub enum Status {
        /// It was done.
        #[default]
        Done = "done",
        /// A read met units that cannot be corrected, or whose content was lost before.
        Unreadable = "unreadable",
        /// The drive is read-only and refuses requests that would write, or make written data
        /// durable.
        ReadOnly = "read_only",
        /// A write to a zone, or a command that manages it, failed because the flash of the zone
        /// has failed and the zone can only be read. None of the data of the write is guaranteed.
        WriteFault = "write_fault",
    }
}

/// A finished request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The tag it was submitted with.
    pub tag: u64,
    /// The command.
    pub op: HostOp,
    /// First byte; of an append, where its data was written.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// When it was submitted.
    pub submitted: SimTime,
    /// When it completed.
    pub completed: SimTime,
    /// How it ended.
    pub status: Status,
    /// Its cost.
    pub cost: Cost,
}

impl Completion {
    /// The completion, at `now`, of a command that is refused because its zone has failed: reads
    /// are [`Status::Unreadable`], writes end with [`Status::WriteFault`].
    #[must_use]
    pub fn refused(request: &Request, now: SimTime) -> Self {
        let &Request { tag, op, offset, len, .. } = request;
        let status = if op == HostOp::Read { Status::Unreadable } else { Status::WriteFault };
        Self { tag, op, offset, len, submitted: now, completed: now, status, cost: Cost::default() }
    }
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
    /// It has no bytes.
    #[error("a request of zero bytes")]
    ZeroLength,
    /// The queue has its full depth of commands outstanding.
    #[error("queue {queue} of {depth} commands is full")]
    QueueFull {
        /// The queue.
        queue: u16,
        /// Its depth.
        depth: u32,
    },
    /// The drive has no such queue.
    #[error("there is no queue {queue}; the drive has {queues}")]
    NoSuchQueue {
        /// The queue asked for.
        queue: u16,
        /// Queues of the drive.
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
        /// The block size of writes to zones, in bytes.
        block: u64,
    },
    /// It does not begin at the zone's write pointer.
    #[error("zone {zone} is written at byte {write_pointer}, its write pointer, not at {offset}")]
    NotAtWritePointer {
        /// The zone.
        zone: u32,
        /// First byte of the write.
        offset: u64,
        /// The write pointer.
        write_pointer: u64,
    },
    /// It does not name a zone by its first byte.
    #[error("byte {offset} is not the first of zone {zone}, which is {start}")]
    NotZoneStart {
        /// The zone that the byte lies in.
        zone: u32,
        /// The byte.
        offset: u64,
        /// The zone's first byte.
        start: u64,
    },
    /// It is longer than the writable rest of the zone.
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
    /// The limit of open zones is reached, and the host has opened all of them explicitly.
    #[error("zone {zone} cannot be opened: {max} are open; close or finish one")]
    TooManyOpen {
        /// The zone.
        zone: u32,
        /// The most.
        max: u32,
    },
    /// The limit of active zones is reached.
    #[error("zone {zone} cannot be written: {max} are active; finish or reset one")]
    TooManyActive {
        /// The zone.
        zone: u32,
        /// The most.
        max: u32,
    },
    /// Commands of the zone are in flight whose order with this one would be undefined.
    #[error("commands of zone {zone} are in flight; wait for them")]
    ZoneBusy {
        /// The zone.
        zone: u32,
    },
}
