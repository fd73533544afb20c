//! Writes records as text that other tools read: fio's iolog version 3 and MQSim's ASCII.
//!
//! Neither format can contain everything. Dropped and changed parts are counted by reason and
//! returned, so that the caller can report what is missing from the file.

use std::collections::BTreeMap;

use crate::event::SECTOR;
use crate::record::{Flags, Op, Record};
use crate::skips::{SkipReason, Skips};
use crate::symbols::{Symbol, Symbols};

/// A discard, write-zeroes or flush is not written: the format has none.
pub const DROPPED_DISCARD: SkipReason = SkipReason("discard dropped: the format has none");
/// As [`DROPPED_DISCARD`], for write-zeroes.
pub const DROPPED_ZEROES: SkipReason = SkipReason("write-zeroes dropped: the format has none");
/// As [`DROPPED_DISCARD`], for flushes.
pub const DROPPED_FLUSH: SkipReason = SkipReason("flush dropped: the format has none");
/// The format counts whole sectors; the range was extended to them.
pub const WIDENED: SkipReason = SkipReason("range widened to whole sectors of 512 bytes");
/// fio reads lengths of 32 bits; the request was written in pieces.
pub const SPLIT: SkipReason = SkipReason("request above 4 GiB written in pieces");
/// The time was cut to the microsecond.
pub const TIME_CUT: SkipReason = SkipReason("time cut to whole microseconds");
/// The completion time is not written.
pub const LOST_COMPLETION: SkipReason = SkipReason("completion time not written");
/// Sync, metadata, FUA, preflush and read-ahead flags are not written.
pub const LOST_FLAGS: SkipReason = SkipReason("flags not written");
/// Process, inode, stream, hint or phase are not written.
pub const LOST_ORIGIN: SkipReason = SkipReason("process, inode, stream, hint or phase not written");
/// A name had white space, at which fio would split it.
pub const RENAMED: SkipReason = SkipReason("white space in a name replaced by _");

/// The formats that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// fio's iolog, version 3. No write-zeroes.
    FioV3,
    /// MQSim's ASCII with times in nanoseconds. Only reads and writes; devices become numbers
    /// in the order of their first request.
    Mqsim,
}

/// Appends records to a text.
#[derive(Debug)]
pub struct TextWriter {
    format: TextFormat,
    /// The number of each device (limited by the names that [`Symbols`] keeps).
    devices: BTreeMap<Symbol, Device>,
    losses: Skips,
    records: u64,
}

#[derive(Debug)]
struct Device {
    number: usize,
    name: String,
    renamed: bool,
}

impl TextWriter {
    /// A writer at the start of a file; the header of the format is appended to `out`.
    #[must_use]
    pub fn new(format: TextFormat, out: &mut Vec<u8>) -> Self {
        if format == TextFormat::FioV3 {
            out.extend_from_slice(b"fio version 3 iolog\n");
        }
        Self { format, devices: BTreeMap::new(), losses: Skips::default(), records: 0 }
    }

    /// Appends one record to `out`. Records come in the order of their issue times, which
    /// are not negative; `symbols` names their devices.
    pub fn record(&mut self, record: &Record, symbols: &Symbols, out: &mut Vec<u8>) {
        self.records += 1;
        let dropped = match (record.op, self.format) {
            (Op::WriteZeroes, _) => Some(DROPPED_ZEROES),
            (Op::Discard, TextFormat::Mqsim) => Some(DROPPED_DISCARD),
            (Op::Flush, TextFormat::Mqsim) => Some(DROPPED_FLUSH),
            _ => None,
        };
        if let Some(reason) = dropped {
            return self.lose(reason);
        }
        self.count_lost_attributes(record);
        match self.format {
            TextFormat::FioV3 => self.fio(record, symbols, out),
            TextFormat::Mqsim => self.mqsim(record, symbols, out),
        }
    }

    /// What could not be written, by reason; the line is the number of the first such record,
    /// from 1.
    #[must_use]
    pub fn losses(&self) -> &Skips {
        &self.losses
    }

    fn lose(&mut self, reason: SkipReason) {
        self.losses.add(reason, self.records);
    }

    fn count_lost_attributes(&mut self, record: &Record) {
        if record.complete.get().is_some() {
            self.lose(LOST_COMPLETION);
        }
        if record.flags != Flags::NONE {
            self.lose(LOST_FLAGS);
        }
        let has_names = record.comm != Symbol::NONE || record.phase != Symbol::NONE;
        let has_numbers = record.pid != -1 || record.inode != 0;
        if has_names || has_numbers || record.stream != 0 || record.hint != 0 {
            self.lose(LOST_ORIGIN);
        }
    }

    /// The device of `record`, and whether it was not seen before.
    fn device(&mut self, record: &Record, symbols: &Symbols) -> (&Device, bool) {
        let number = self.devices.len();
        let mut is_new = false;
        let device = self.devices.entry(record.device).or_insert_with(|| {
            is_new = true;
            let given = symbols.name(record.device);
            // A record of a generated trace has no device, but a line needs a name.
            let given = if given.is_empty() { "trace" } else { given };
            let name = given.replace(|c: char| c.is_whitespace(), "_");
            Device { number, renamed: name != given, name }
        });
        (device, is_new)
    }

    fn fio(&mut self, record: &Record, symbols: &Symbols, out: &mut Vec<u8>) {
        let us = record.issue_ns.max(0) / 1_000;
        let (device, is_new) = self.device(record, symbols);
        let (name, renamed) = (&device.name, device.renamed);
        if is_new {
            append(out, format_args!("{us} {name} add\n{us} {name} open\n"));
        }
        let action = match record.op {
            Op::Read => "read",
            Op::Write => "write",
            Op::Discard => "trim",
            Op::Flush => "sync",
            Op::WriteZeroes => unreachable!("write-zeroes were dropped before"),
        };
        let pieces = record.len.div_ceil(PIECE_MAX).max(1);
        for piece in 0..pieces {
            let skipped = piece * PIECE_MAX;
            let (offset, len) = (record.offset + skipped, (record.len - skipped).min(PIECE_MAX));
            append(out, format_args!("{us} {name} {action} {offset} {len}\n"));
        }
        if pieces > 1 {
            self.lose(SPLIT);
        }
        if renamed {
            self.lose(RENAMED);
        }
        if record.issue_ns % 1_000 != 0 {
            self.lose(TIME_CUT);
        }
    }

    fn mqsim(&mut self, record: &Record, symbols: &Symbols, out: &mut Vec<u8>) {
        let first = record.offset / SECTOR;
        let sectors = record.end().div_ceil(SECTOR) - first;
        let kind = u8::from(record.op == Op::Read);
        let device = self.device(record, symbols).0.number;
        let ns = record.issue_ns.max(0);
        append(out, format_args!("{ns} {device} {first} {sectors} {kind}\n"));
        if !(record.offset | record.len).is_multiple_of(SECTOR) {
            self.lose(WIDENED);
        }
    }
}

/// The largest piece that fits 32 bits and keeps every piece aligned like the first.
const PIECE_MAX: u64 = 1 << 31;

fn append(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    std::io::Write::write_fmt(out, text).expect("a vector takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::FioParser;
    use crate::mqsim::MqsimParser;
    use crate::record::OptTime;
    use crate::testing;

    fn write(format: TextFormat, records: &[Record], symbols: &Symbols) -> (String, Vec<Row>) {
        let mut out = Vec::new();
        let mut writer = TextWriter::new(format, &mut out);
        records.iter().for_each(|record| writer.record(record, symbols, &mut out));
        let rows = writer.losses().rows();
        let losses = rows.iter().map(|row| (row.reason, row.count, row.first_line)).collect();
        (String::from_utf8(out).expect("text"), losses)
    }

    type Row = (SkipReason, u64, u64);

    #[test]
    fn fio_reads_back_what_was_written() {
        let mut symbols = Symbols::new();
        let (sda, sdb) = (symbols.intern("/dev/sda"), symbols.intern("/dev/sdb"));
        let make = |op, us: i64, device, offset, len| Record {
            device,
            ..Record::new(op, us * 1_000, offset, len)
        };
        let records = [
            make(Op::Write, 0, sda, 4096, 512),
            make(Op::Read, 5, sdb, 0, 65536),
            make(Op::Flush, 5, sda, 0, 0),
            make(Op::Discard, 900, sda, 1 << 40, (1 << 32) - 512),
        ];
        let (text, losses) = write(TextFormat::FioV3, &records[..3], &symbols);
        assert_eq!(losses, []);
        let parsed = testing::parse(&mut FioParser::new(), &text);
        assert_eq!(parsed.skips, []);
        let renamed = |record: &Record| Record {
            device: parsed.symbols.get(symbols.name(record.device)).unwrap(),
            ..*record
        };
        let expected: Vec<Record> = records[..3].iter().map(renamed).collect();
        assert_eq!(parsed.records, expected);

        let (text, losses) = write(TextFormat::FioV3, &records[3..], &symbols);
        assert_eq!(losses, [(SPLIT, 1, 1)]);
        let parsed = testing::parse(&mut FioParser::new(), &text);
        let ranges: Vec<_> = parsed.records.iter().map(|one| (one.offset, one.len)).collect();
        let half = 1 << 31;
        assert_eq!(ranges, [(1 << 40, half), ((1 << 40) + half, half - 512)]);
    }

    #[test]
    fn mqsim_reads_back_what_was_written() {
        let mut symbols = Symbols::new();
        let (a, b) = (symbols.intern("0"), symbols.intern("1"));
        let records = [
            Record { device: a, ..Record::new(Op::Write, 0, 4096, 512) },
            Record { device: b, ..Record::new(Op::Read, 17, 1 << 40, 1 << 20) },
        ];
        let (text, losses) = write(TextFormat::Mqsim, &records, &symbols);
        assert_eq!(text, "0 0 8 1 0\n17 1 2147483648 2048 1\n");
        assert_eq!(losses, []);
        assert_eq!(testing::parse(&mut MqsimParser, &text).records, records);
    }

    #[test]
    fn what_mqsim_cannot_carry_is_counted() {
        let records = [
            Record::new(Op::Discard, 0, 0, 4096),
            Record::new(Op::Flush, 1, 0, 0),
            Record::new(Op::WriteZeroes, 2, 0, 4096),
            Record::new(Op::Write, 3, 100, 1000),
            Record { complete: OptTime::at(9), ..Record::new(Op::Read, 4, 0, 512) },
        ];
        let (text, losses) = write(TextFormat::Mqsim, &records, &Symbols::new());
        assert_eq!(text, "3 0 0 3 0\n4 0 0 1 1\n");
        let expected = [
            (DROPPED_DISCARD, 1, 1),
            (DROPPED_FLUSH, 1, 2),
            (DROPPED_ZEROES, 1, 3),
            (WIDENED, 1, 4),
            (LOST_COMPLETION, 1, 5),
        ];
        assert_eq!(losses, expected);
    }

    #[test]
    fn what_fio_cannot_carry_is_counted() {
        let mut symbols = Symbols::new();
        let device = symbols.intern("my disk");
        let records = [
            Record::new(Op::WriteZeroes, 0, 0, 4096),
            Record { device, ..Record::new(Op::Read, 1_500, 0, 512) },
            Record { flags: Flags::SYNC, pid: 4, ..Record::new(Op::Write, 2_000, 0, 512) },
        ];
        let (text, losses) = write(TextFormat::FioV3, &records, &symbols);
        assert_eq!(
            text,
            "fio version 3 iolog\n1 my_disk add\n1 my_disk open\n1 my_disk read 0 512\n\
             2 trace add\n2 trace open\n2 trace write 0 512\n"
        );
        let expected = [
            (DROPPED_ZEROES, 1, 1),
            (RENAMED, 1, 2),
            (TIME_CUT, 1, 2),
            (LOST_FLAGS, 1, 3),
            (LOST_ORIGIN, 1, 3),
        ];
        assert_eq!(losses, expected);
    }
}
