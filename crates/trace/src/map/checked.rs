//! A checked map, as the parser uses it.

use prism_base::Nanos;
use regex::bytes::Regex;

use crate::capabilities::Capabilities;
use crate::record::Op;

/// The index of a column in [`Map::columns`].
#[derive(Clone, Copy, Debug)]
pub(super) struct At(pub usize);

/// Which field of a line a column is.
#[derive(Clone, Debug)]
pub(super) enum FieldRef {
    /// The field (from 0), or the group of the regular expression (0 is the whole match).
    Index(usize),
    /// The field with this name in the header.
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
    /// Picoseconds.
    Ps,
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
    /// The factor by which the number is multiplied.
    pub unit: u64,
    pub hex: bool,
}

/// A flag.
#[derive(Debug)]
pub(super) struct Flag {
    pub at: At,
    /// The words that mean that it is set.
    pub words: Vec<Vec<u8>>,
}

/// The text of a column, or from one column to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text {
    pub first: At,
    pub last: At,
}

/// The column of the operation, and how it is written.
#[derive(Debug)]
pub(super) enum Operation {
    Words(At, Words),
    Rwbs(At),
}

/// The words for operations.
#[derive(Debug)]
pub(super) struct Words {
    /// By the byte, for words of one byte.
    short: Box<[Option<Op>; 256]>,
    long: Vec<(Vec<u8>, Op)>,
    ignore_case: bool,
}

impl Words {
    pub fn new(ignore_case: bool) -> Self {
        Self { short: Box::new([None; 256]), long: Vec::new(), ignore_case }
    }

    /// Adds a word, which must not be empty.
    pub fn add(&mut self, word: &[u8], op: Op) {
        match *word {
            [byte] if self.ignore_case => {
                self.short[usize::from(byte.to_ascii_lowercase())] = Some(op);
                self.short[usize::from(byte.to_ascii_uppercase())] = Some(op);
            }
            [byte] => self.short[usize::from(byte)] = Some(op),
            _ => self.long.push((word.to_vec(), op)),
        }
    }

    /// The operation that `word` means.
    #[inline]
    pub fn get(&self, word: &[u8]) -> Option<Op> {
        if let [byte] = *word {
            return self.short[usize::from(byte)];
        }
        let is =
            |known: &[u8]| known == word || self.ignore_case && known.eq_ignore_ascii_case(word);
        self.long.iter().find(|(known, _)| is(known)).map(|&(_, op)| op)
    }

    /// Whether there is a word at all.
    pub fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    /// The operations that have a word.
    fn all(&self) -> impl Iterator<Item = Op> {
        self.short.iter().flatten().copied().chain(self.long.iter().map(|&(_, op)| op))
    }
}

/// A whole map.
#[derive(Debug)]
pub(super) struct Map {
    pub splitter: Splitter,
    /// How many fields a line has, if lines with another number are skipped.
    pub fields: Option<usize>,
    pub header_lines: u64,
    /// The first line may be a header, and may be repeated.
    pub optional_header: bool,
    pub comment: Option<Vec<u8>>,
    pub disorder: Option<Nanos>,
    pub columns: Vec<FieldRef>,
    pub issue: Option<Stamp>,
    pub queue: Option<Stamp>,
    pub complete: Option<Stamp>,
    pub latency: Option<Stamp>,
    pub operation: Operation,
    pub offset: Count,
    pub length: Count,
    pub device: Option<Text>,
    pub comm: Option<Text>,
    pub file: Option<Text>,
    pub pid: Option<At>,
    pub inode: Option<Count>,
    pub stream: Option<Count>,
    pub sync: Option<Flag>,
    pub meta: Option<Flag>,
    pub fua: Option<Flag>,
}

impl Map {
    /// What text of this map can contain; `clock_ns` is the resolution of its clock.
    pub fn capabilities(&self, clock_ns: u64) -> Capabilities {
        let (is_rwbs, has) = match &self.operation {
            Operation::Rwbs(_) => (true, [true; 3]),
            Operation::Words(_, words) => (
                false,
                [Op::Discard, Op::WriteZeroes, Op::Flush]
                    .map(|op| words.all().any(|known| known == op)),
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

    /// Whether there is a column for more than operation, time, place and device.
    pub fn has_details(&self) -> bool {
        self.queue.is_some()
            || self.pid.is_some()
            || self.inode.is_some()
            || self.stream.is_some()
            || [self.comm, self.file].iter().any(Option::is_some)
            || [&self.sync, &self.meta, &self.fua].into_iter().any(Option::is_some)
    }

    /// The time by which requests are ordered: the issue, or else the completion.
    pub fn clock(&self) -> Option<Stamp> {
        self.issue.or(self.complete)
    }
}
