//! A map after it was checked: what the parser of mapped text works from.

use prism_base::Nanos;
use regex::bytes::Regex;

use crate::capabilities::Capabilities;
use crate::record::Op;

/// The number of a place in [`Map::places`].
#[derive(Clone, Copy, Debug)]
pub(super) struct At(pub usize);

/// Where a column stands in the line.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// The field (from 0), or the group of the regular expression (0 is the whole match).
    Index(usize),
    /// The field below this name of the header.
    Name(String),
}

/// How a line is cut into fields.
#[derive(Debug)]
pub(super) enum Splitter {
    Delimiter(u8),
    White,
    Regex(Regex),
}

impl Splitter {
    /// The names of the groups, if it is a regular expression.
    pub fn groups(&self) -> Option<Vec<Option<String>>> {
        match self {
            Self::Regex(regex) => {
                Some(regex.capture_names().map(|name| name.map(str::to_owned)).collect())
            }
            Self::Delimiter(_) | Self::White => None,
        }
    }
}

/// The unit of a time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unit {
    /// Multiples of this many nanoseconds.
    Ns(u64),
    /// Counts of 100 ns from 1601.
    Filetime,
}

/// A time, or a span of time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamp {
    pub at: At,
    pub unit: Unit,
}

/// A whole number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count {
    pub at: At,
    /// What one of it is worth.
    pub unit: u64,
    pub hex: bool,
}

/// A yes or no.
#[derive(Debug)]
pub(super) struct Flag {
    pub at: At,
    /// The words that mean yes.
    pub words: Vec<Vec<u8>>,
}

/// What tells the operation.
#[derive(Debug)]
pub(super) enum Operation {
    Words { at: At, words: Vec<(Vec<u8>, Op)>, ignore_case: bool },
    Rwbs(At),
}

/// Everything a map says.
#[derive(Debug)]
pub(super) struct Map {
    pub splitter: Splitter,
    pub header_lines: u64,
    pub comment: Option<Vec<u8>>,
    pub disorder: Option<Nanos>,
    pub places: Vec<Place>,
    pub issue: Option<Stamp>,
    pub queue: Option<Stamp>,
    pub complete: Option<Stamp>,
    pub latency: Option<Stamp>,
    pub operation: Operation,
    pub offset: Count,
    pub length: Count,
    pub device: Option<At>,
    pub comm: Option<At>,
    pub file: Option<At>,
    pub pid: Option<At>,
    pub inode: Option<Count>,
    pub stream: Option<Count>,
    pub sync: Option<Flag>,
    pub meta: Option<Flag>,
    pub fua: Option<Flag>,
}

impl Map {
    /// What text under this map can carry, apart from the step of its clock.
    pub fn capabilities(&self, clock_ns: u64) -> Capabilities {
        let (is_rwbs, has) = match &self.operation {
            Operation::Rwbs(_) => (true, [true; 3]),
            Operation::Words { words, .. } => (
                false,
                [Op::Discard, Op::WriteZeroes, Op::Flush]
                    .map(|op| words.iter().any(|(_, known)| *known == op)),
            ),
        };
        Capabilities {
            operation: true,
            address: true,
            discard: has[0],
            write_zeroes: has[1],
            flush: has[2],
            fua: is_rwbs || self.fua.is_some(),
            sync_meta: is_rwbs || self.sync.is_some() || self.meta.is_some(),
            completion: self.complete.is_some() || self.latency.is_some(),
            queue: self.queue.is_some(),
            process: self.pid.is_some() || self.comm.is_some(),
            file: self.file.is_some() || self.inode.is_some(),
            stream: self.stream.is_some(),
            clock_ns,
        }
    }

    /// The time that places a request: its issue, or else its completion.
    pub fn clock(&self) -> Option<Stamp> {
        self.issue.or(self.complete)
    }
}
