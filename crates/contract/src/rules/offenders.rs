//! Attributes the violations of a rule to processes, files, address ranges, phases and kinds
//! of operations.
//!
//! Each record belongs to one group in [`Groups`], identified by all of these names
//! together. A rule keeps one number per group. The sums for each single name are computed at
//! the end.

use std::collections::BTreeMap;

use prism_base::FastMap;
use prism_trace::fs_layout::Region;
use prism_trace::{Flags, Op, Record, Symbol, Symbols};

/// The most groups; records of any further group belong to the group `(other)`. The state of
/// a unit stores the group of its writer in two bytes.
const GROUPS_MAX: usize = 1 << 16;

/// The most offenders listed in each dimension.
const LISTED: usize = 5;
/// Offenders with a smaller share are not listed.
const SHARE_MIN: f64 = 0.01;

prism_base::named_enum! {
    /// The attribute by which offenders are distinguished, in the order of reports.
    #[derive(PartialOrd, Ord)]
    pub enum Dimension {
        /// The command name of the process that issued the request.
        Process = "process",
        /// The file, by its name or its inode number.
        File = "file",
        /// The directory of the file, if the file name has one.
        Directory = "directory",
        /// The part of the device: a named part of the file system's layout, or a range of
        /// addresses.
        Range = "range",
        /// The phase of the experiment.
        Phase = "phase",
        /// The kind of request ([`Class`]).
        Operation = "operation",
    }
}

prism_base::named_enum! {
    /// Kinds of requests, by operation and flags.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum Class {
        /// A read that the application waits for.
        Read = "read",
        /// A read-ahead.
        ReadAhead = "read ahead",
        /// A write in the background.
        Write = "write",
        /// A write that the application waits for.
        SyncWrite = "synchronous write",
        /// A write of the file system's metadata.
        MetadataWrite = "metadata write",
        /// A write with FUA or a preflush, such as a journal commit.
        DurableWrite = "durable write",
        /// A discard or a write-zeroes request.
        Discard = "discard",
        /// A flush.
        Flush = "flush",
    }
}

impl Class {
    /// The class of `record`.
    #[must_use]
    pub fn of(record: &Record) -> Self {
        match record.op {
            Op::Read if record.flags.has(Flags::READAHEAD) => Self::ReadAhead,
            Op::Read => Self::Read,
            Op::Discard | Op::WriteZeroes => Self::Discard,
            Op::Flush => Self::Flush,
            Op::Write if record.flags.has(Flags::FUA) || record.flags.has(Flags::PREFLUSH) => {
                Self::DurableWrite
            }
            Op::Write if record.flags.has(Flags::META) => Self::MetadataWrite,
            Op::Write if record.flags.has(Flags::SYNC) => Self::SyncWrite,
            Op::Write => Self::Write,
        }
    }
}

/// A named part of the address space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedRange {
    /// First byte.
    pub start: u64,
    /// First byte after it.
    pub end: u64,
    /// The name of the range. Several ranges may have the same name.
    pub label: String,
}

impl NamedRange {
    /// The regions of a file system.
    #[must_use]
    pub fn of_regions(regions: &[Region]) -> Vec<Self> {
        let named = |of: &Region| Self { start: of.start, end: of.end, label: of.label.clone() };
        regions.iter().map(named).collect()
    }
}

/// Divides the address space into ranges.
#[derive(Clone, Debug)]
pub struct Ranges {
    named: Vec<NamedRange>,
    /// For each named range, the index of its label.
    numbers: Vec<u32>,
    labels: Vec<String>,
    /// Addresses without a name are divided into ranges of 2^shift bytes.
    shift: u32,
    /// The devices in the order of their addresses; none if there is only one.
    devices: Vec<DeviceRanges>,
}

/// The equal ranges of a device.
#[derive(Clone, Debug)]
struct DeviceRanges {
    /// Its first byte.
    start: u64,
    name: String,
    /// The number of its first range, without labels.
    first: u32,
}

/// The number of equal ranges that the address space is divided into.
const EVEN: u64 = 64;

impl Ranges {
    /// Uses the `named` ranges, in any order, and divides the rest of `span` bytes into equal
    /// ranges. If named ranges overlap, the one that begins last counts.
    #[must_use]
    pub fn new(mut named: Vec<NamedRange>, span: u64) -> Self {
        named.sort_by_key(|range| range.start);
        let mut index: BTreeMap<&str, u32> = BTreeMap::new();
        let mut labels = Vec::new();
        let mut numbers = Vec::new();
        for range in &named {
            let number = *index.entry(&range.label).or_insert_with(|| {
                labels.push(range.label.clone());
                labels.len() as u32 - 1
            });
            numbers.push(number);
        }
        let size = span.div_ceil(EVEN).clamp(1 << 20, 1 << 62).next_power_of_two();
        Self { named, numbers, labels, shift: size.trailing_zeros(), devices: Vec::new() }
    }

    /// These ranges for addresses of several devices, given the first byte and the name of each, in
    /// order: each device has equal ranges of its own.
    #[must_use]
    pub fn of_devices(mut self, devices: impl Iterator<Item = (u64, String)>) -> Self {
        for (start, name) in devices {
            let before = self.devices.last();
            let first = before
                .map_or(0, |last| last.first + ((start - 1 - last.start) >> self.shift) as u32 + 1);
            self.devices.push(DeviceRanges { start, name, first });
        }
        if self.devices.len() == 1 {
            self.devices.clear();
        }
        self
    }

    /// The number of the range that contains byte `offset`. Numbers below the number of
    /// labels are labels; the numbers from there on are the equal ranges.
    fn of(&self, offset: u64) -> u32 {
        let before = self.named.partition_point(|range| range.start <= offset);
        if let Some(at) = before.checked_sub(1)
            && offset < self.named[at].end
        {
            return self.numbers[at];
        }
        let at = self.devices.partition_point(|device| device.start <= offset);
        let (start, first) = match at.checked_sub(1) {
            Some(at) => (self.devices[at].start, self.devices[at].first),
            None => (0, 0),
        };
        let even = ((offset - start) >> self.shift).min(u64::from(u32::MAX / 2)) as u32;
        self.labels.len() as u32 + first + even
    }

    fn name(&self, number: u32) -> String {
        if let Some(label) = self.labels.get(number as usize) {
            return label.clone();
        }
        let even = number - self.labels.len() as u32;
        let at = self.devices.partition_point(|device| device.first <= even);
        let (device, first) = match at.checked_sub(1) {
            Some(at) => (format!(" of device {}", self.devices[at].name), self.devices[at].first),
            None => (String::new(), 0),
        };
        let even = u64::from(even - first);
        // The largest unit in which both ends are whole numbers.
        let (shift, unit) = match self.shift {
            ..30 => (self.shift - 20, "MiB"),
            30..40 => (self.shift - 30, "GiB"),
            _ => (self.shift - 40, "TiB"),
        };
        format!("{} to {} {unit}{device}", even << shift, (even + 1) << shift)
    }
}

/// A file, by its name if the trace has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum FileKey {
    Unknown,
    Name(Symbol),
    Inode(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    process: Symbol,
    file: FileKey,
    phase: Symbol,
    range: u32,
    class: Class,
}

/// The groups of a trace.
#[derive(Debug)]
pub struct Groups {
    ranges: Ranges,
    index: FastMap<Key, u16>,
    /// The key of each group. Group 0 is `(other)`, which has no key.
    keys: Vec<Option<Key>>,
    last: Option<(Key, u16)>,
}

impl Groups {
    /// Begins with the group `(other)` only.
    #[must_use]
    pub fn new(ranges: Ranges) -> Self {
        Self { ranges, index: FastMap::default(), keys: vec![None], last: None }
    }

    /// The group of `record`.
    pub fn of(&mut self, record: &Record) -> u16 {
        let file = match (record.file, record.inode) {
            (Symbol::NONE, 0) => FileKey::Unknown,
            (Symbol::NONE, inode) => FileKey::Inode(inode),
            (name, _) => FileKey::Name(name),
        };
        let key = Key {
            process: record.comm,
            file,
            phase: record.phase,
            range: self.ranges.of(record.offset),
            class: Class::of(record),
        };
        if let Some((last, group)) = self.last
            && last == key
        {
            return group;
        }
        let next = self.keys.len();
        let group = match self.index.get(&key) {
            Some(&group) => group,
            None if next == GROUPS_MAX => 0,
            None => {
                self.index.insert(key, next as u16);
                self.keys.push(Some(key));
                next as u16
            }
        };
        self.last = Some((key, group));
        group
    }

    fn name(&self, group: usize, by: Dimension, symbols: &Symbols) -> Option<String> {
        let named =
            |symbol: Symbol| (symbol != Symbol::NONE).then(|| symbols.name(symbol).to_owned());
        let Some(key) = self.keys[group] else { return Some("(other)".into()) };
        match by {
            Dimension::Process => named(key.process),
            Dimension::File => match key.file {
                FileKey::Unknown => None,
                FileKey::Name(name) => named(name),
                FileKey::Inode(inode) => Some(format!("inode {inode}")),
            },
            Dimension::Directory => match key.file {
                FileKey::Name(name) => {
                    let path = symbols.name(name);
                    let (directory, _) = path.rsplit_once('/')?;
                    Some(if directory.is_empty() { "/".into() } else { directory.into() })
                }
                _ => None,
            },
            Dimension::Range => Some(self.ranges.name(key.range)),
            Dimension::Phase => named(key.phase),
            Dimension::Operation => Some(key.class.name().into()),
        }
    }
}

/// A process, file, directory, range, phase or kind of request that breaks a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Offender {
    /// The kind of name.
    pub by: Dimension,
    /// The name, from the trace.
    pub name: String,
    /// The offender's part of the violation, in the unit of the rule.
    pub amount: f64,
    /// The offender's part as a share of the whole violation.
    pub share: f64,
}

/// The part of each group in the violation of a rule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Blame {
    amounts: Vec<f64>,
}

impl Blame {
    /// Adds `amount` to `group`.
    pub fn add(&mut self, group: u16, amount: f64) {
        let index = usize::from(group);
        if self.amounts.len() <= index {
            self.amounts.resize(index + 1, 0.0);
        }
        self.amounts[index] += amount;
    }

    /// The whole violation.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.amounts.iter().sum()
    }

    /// The worst offenders of each dimension, in descending order of their shares. Requests
    /// without a name in a dimension are part of the total but not of the list, so shares may
    /// add up to less than 1.
    #[must_use]
    pub fn worst(&self, groups: &Groups, symbols: &Symbols) -> Vec<Offender> {
        let total = self.total();
        if total <= 0.0 {
            return Vec::new();
        }
        let mut all = Vec::new();
        for by in Dimension::ALL {
            let mut sums: BTreeMap<String, f64> = BTreeMap::new();
            for (group, &amount) in self.amounts.iter().enumerate() {
                if amount > 0.0
                    && let Some(name) = groups.name(group, by, symbols)
                {
                    *sums.entry(name).or_default() += amount;
                }
            }
            let mut found: Vec<Offender> = sums
                .into_iter()
                .map(|(name, amount)| Offender { by, name, amount, share: amount / total })
                .filter(|offender| offender.share >= SHARE_MIN)
                .collect();
            // The sort is stable: offenders with equal amounts stay in the order of names.
            found.sort_by(|a, b| b.amount.total_cmp(&a.amount));
            found.truncate(LISTED);
            all.extend(found);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_classified_by_operation_and_flags() {
        let check = |op, flags, class| {
            let record = Record { flags, ..Record::new(op, 0, 0, 512) };
            assert_eq!(Class::of(&record), class);
        };
        check(Op::Read, Flags::NONE, Class::Read);
        check(Op::Read, Flags::READAHEAD, Class::ReadAhead);
        check(Op::Write, Flags::NONE, Class::Write);
        check(Op::Write, Flags::SYNC, Class::SyncWrite);
        check(Op::Write, Flags::META.with(Flags::SYNC), Class::MetadataWrite);
        check(Op::Write, Flags::META.with(Flags::FUA), Class::DurableWrite);
        check(Op::WriteZeroes, Flags::NONE, Class::Discard);
    }

    #[test]
    fn ranges_are_named_or_of_equal_size() {
        let named = |start, end, label: &str| NamedRange { start, end, label: label.into() };
        let mib = 1 << 20;
        let ranges = Ranges::new(
            vec![
                named(8 * mib, 16 * mib, "log"),
                named(0, 4096, "head"),
                named(40 * mib, 41 * mib, "log"),
            ],
            128 * mib,
        );
        let check = |offset, name: &str| assert_eq!(ranges.name(ranges.of(offset)), name);
        check(0, "head");
        check(4096, "0 to 2 MiB");
        check(8 * mib, "log");
        check(16 * mib, "16 to 18 MiB");
        check(40 * mib + 5, "log");
        assert_eq!(ranges.of(9 * mib), ranges.of(40 * mib));
    }

    #[test]
    fn ranges_of_several_devices_are_named_by_device() {
        let gib = 1u64 << 30;
        let devices = [(0, "sda"), (70 * gib, "sdb")].map(|(at, name)| (at, name.to_owned()));
        let ranges = Ranges::new(Vec::new(), 128 * gib);
        let alone = ranges.clone().of_devices(devices[..1].iter().cloned());
        assert_eq!(alone.name(alone.of(71 * gib)), "70 to 72 GiB");
        let ranges = ranges.of_devices(devices.into_iter());
        let check = |offset, name: &str| assert_eq!(ranges.name(ranges.of(offset)), name);
        check(5 * gib, "4 to 6 GiB of device sda");
        check(70 * gib - 1, "68 to 70 GiB of device sda");
        check(70 * gib, "0 to 2 GiB of device sdb");
        check(127 * gib, "56 to 58 GiB of device sdb");
    }

    #[test]
    fn blame_is_summed_by_each_name() {
        let mut symbols = Symbols::new();
        let (db, log) = (symbols.intern("/data/db"), symbols.intern("/data/wal/log"));
        let (one, two) = (symbols.intern("one"), symbols.intern("two"));
        let mut groups = Groups::new(Ranges::new(Vec::new(), 1 << 26));
        let mut blame = Blame::default();
        for (comm, file, inode, amount) in
            [(one, db, 1, 6.0), (two, log, 2, 3.0), (one, Symbol::NONE, 7, 1.0), (one, db, 1, 2.0)]
        {
            let record = Record { comm, file, inode, ..Record::new(Op::Write, 0, 0, 512) };
            blame.add(groups.of(&record), amount);
        }
        let worst = blame.worst(&groups, &symbols);
        let found: Vec<_> = worst
            .iter()
            .map(|o| (o.by.name(), o.name.as_str(), o.amount, (o.share * 12.0).round() as u32))
            .collect();
        assert_eq!(
            found,
            [
                ("process", "one", 9.0, 9),
                ("process", "two", 3.0, 3),
                ("file", "/data/db", 8.0, 8),
                ("file", "/data/wal/log", 3.0, 3),
                ("file", "inode 7", 1.0, 1),
                ("directory", "/data", 8.0, 8),
                ("directory", "/data/wal", 3.0, 3),
                ("range", "0 to 1 MiB", 12.0, 12),
                ("operation", "write", 12.0, 12),
            ]
        );
        assert_eq!(Blame::default().worst(&groups, &symbols), []);
    }
}
