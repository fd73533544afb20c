//! The record type into which every format is converted.

use crate::symbols::Symbol;

prism_base::named_enum! {
    /// The operation of a request, by its number. Names are those in Parquet files and JSON.
    #[derive(PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum Op {
        /// Data from the device to the host.
        Read = "read",
        /// Data from the host to the device.
        Write = "write",
        /// The host no longer needs the data (TRIM, UNMAP, DEALLOCATE).
        Discard = "discard",
        /// The range reads as zeros from now on; no data is sent.
        WriteZeroes = "write_zeroes",
        /// All writes completed before are durable when this completes. It has no range.
        Flush = "flush",
    }
}

/// The flags of a request, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u16);

impl Flags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// Synchronous: a process waits for it (`S`).
    pub const SYNC: Self = Self(1);
    /// File-system metadata (`M`).
    pub const META: Self = Self(2);
    /// Durable when it completes (`F` after the operation letter).
    pub const FUA: Self = Self(4);
    /// A flush comes before it (`F` before the operation letter).
    pub const PREFLUSH: Self = Self(8);
    /// Speculative read (`A`).
    pub const READAHEAD: Self = Self(16);

    /// Whether every bit of `other` is set.
    #[must_use]
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These flags and the `other` ones.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A time in nanoseconds since the start of the trace, which may be unknown.
///
/// The start is the first event of the trace; a queue time may lie before the first
/// issue, so the number is signed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OptTime(i64);

impl OptTime {
    /// The time is not in the format, or not in this line.
    pub const UNKNOWN: Self = Self(i64::MIN);

    /// A known time.
    #[must_use]
    pub fn at(ns: i64) -> Self {
        Self(ns)
    }

    /// The time, if it is known.
    #[must_use]
    pub fn get(self) -> Option<i64> {
        (self != Self::UNKNOWN).then_some(self.0)
    }
}

impl std::fmt::Debug for OptTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.get() {
            Some(ns) => write!(f, "{ns}"),
            None => f.write_str("?"),
        }
    }
}

/// One request as the block layer saw it.
///
/// Records come in the order of `issue_ns`; equal times keep the order of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When the request entered the block layer (ns since trace start).
    pub queue: OptTime,
    /// When it was handed to the device (ns since trace start).
    pub issue_ns: i64,
    /// When the device completed it (ns since trace start).
    pub complete: OptTime,
    /// First byte on the device; 0 for a flush.
    pub offset: u64,
    /// Bytes; 0 for a flush. A discard may exceed 4 GiB.
    pub len: u64,
    /// Inode number; 0 is unknown.
    pub inode: u64,
    /// The device or volume, as the source names it (`7,0`, `hm,0`, `1058`).
    pub device: Symbol,
    /// Command of the process that caused it (not of the worker that issued it).
    pub comm: Symbol,
    /// File name.
    pub file: Symbol,
    /// Phase of the experiment, as named by the last marker before it.
    pub phase: Symbol,
    /// Process that caused it; -1 is unknown.
    pub pid: i32,
    /// Stream or placement identifier; 0 is none.
    pub stream: u16,
    /// Its flags.
    pub flags: Flags,
    /// The operation.
    pub op: Op,
    /// Write lifetime hint (`RWH_WRITE_LIFE_*`); 0 is not set.
    pub hint: u8,
}

impl Record {
    /// A record of `op` at `issue_ns` over `len` bytes from `offset`; everything else is
    /// unknown.
    #[must_use]
    pub fn new(op: Op, issue_ns: i64, offset: u64, len: u64) -> Self {
        Self {
            queue: OptTime::UNKNOWN,
            issue_ns,
            complete: OptTime::UNKNOWN,
            offset,
            len,
            inode: 0,
            device: Symbol::NONE,
            comm: Symbol::NONE,
            file: Symbol::NONE,
            phase: Symbol::NONE,
            pid: -1,
            stream: 0,
            flags: Flags::NONE,
            op,
            hint: 0,
        }
    }

    /// First byte after the request.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset + self.len
    }
}
