//! MQSim ASCII traces: `time device first-sector sectors type`, between white space.
//!
//! Sectors have 512 bytes; type 0 is a write and 1 a read. The unit of the time stands
//! in the XML file beside the trace (`Time_Unit`), not in the trace, so it is an argument.
//!
//! Source: Tavakkol et al., "MQSim", FAST'18.

use crate::capabilities::Capabilities;
use crate::error::TraceError;
use crate::fields::{OUT_OF_RANGE, UNKNOWN_OP, bytes, request, split_white, text, whole};
use crate::record::{Op, Record};
use crate::sink::{LineParser, Sink};
use crate::skips::SkipReason;

/// What the format carries, with the usual unit of nanoseconds.
pub const CAPABILITIES: Capabilities = Capabilities {
    operation: true,
    address: true,
    discard: false,
    write_zeroes: false,
    flush: false,
    fua: false,
    sync_meta: false,
    completion: false,
    queue: false,
    process: false,
    file: false,
    stream: false,
    clock_ns: 1,
};

/// The unit of the first column, as MQSim's `Time_Unit` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// `PICOSECOND`; what is left of a nanosecond is cut off.
    Picosecond,
    /// `NANOSECOND`, the usual one.
    Nanosecond,
    /// `MICROSECOND`.
    Microsecond,
}

/// Bytes of a sector.
pub(crate) const SECTOR: u64 = 512;

/// Reads MQSim lines, with or without a header line.
#[derive(Debug)]
pub struct MqsimParser {
    unit: TimeUnit,
}

impl MqsimParser {
    /// A parser at the start of a trace whose times are in `unit`.
    #[must_use]
    pub fn new(unit: TimeUnit) -> Self {
        Self { unit }
    }

    fn parse(&self, line: &[u8], sink: &mut Sink) -> Result<Record, SkipReason> {
        let [stamp, device, sector, sectors, kind] = split_white(line)?;
        let op = match kind {
            b"0" => Op::Write,
            b"1" => Op::Read,
            _ => return Err(UNKNOWN_OP),
        };
        let stamp = whole(stamp)?;
        let ns = match self.unit {
            TimeUnit::Picosecond => Some(stamp / 1_000),
            TimeUnit::Nanosecond => Some(stamp),
            TimeUnit::Microsecond => stamp.checked_mul(1_000),
        };
        let issue_ns = ns.and_then(|ns| i64::try_from(ns).ok()).ok_or(OUT_OF_RANGE)?;
        let offset = bytes(whole(sector)?, SECTOR)?;
        let mut record = request(op, issue_ns, offset, bytes(whole(sectors)?, SECTOR)?)?;
        record.device = sink.symbols.intern(text(device)?);
        Ok(record)
    }
}

impl LineParser for MqsimParser {
    fn line(&mut self, line: &[u8], number: u64, sink: &mut Sink) -> Result<(), TraceError> {
        let line = line.trim_ascii();
        if line.is_empty() || number == 1 && line[0].is_ascii_alphabetic() {
            return Ok(());
        }
        match self.parse(line, sink) {
            Ok(record) => sink.record(record, number),
            Err(reason) => {
                sink.skip(reason, number);
                Ok(())
            }
        }
    }

    /// [`CAPABILITIES`] with the step of this unit.
    fn capabilities(&self) -> Capabilities {
        let clock_ns = if self.unit == TimeUnit::Microsecond { 1_000 } else { 1 };
        Capabilities { clock_ns, ..CAPABILITIES }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::{NOT_A_NUMBER, WRONG_FIELDS, ZERO_LENGTH};
    use crate::testing;

    #[test]
    fn the_sample_is_read_in_each_unit() {
        let sample = include_str!("../tests/data/mqsim.txt");
        let check = |unit, expected: [&str; 3], clock_ns| {
            let mut parser = MqsimParser::new(unit);
            let parsed = testing::parse(&mut parser, sample);
            assert_eq!(parsed.lines(), expected);
            assert_eq!(parsed.skips, []);
            assert_eq!(parser.capabilities().clock_ns, clock_ns);
        };
        let rows = |second: &str, third: &str| {
            [
                "0 ? read 336756736 8192 0".to_owned(),
                format!("{second} ? write 4096 4096 0"),
                format!("{third} ? write 8192 4096 1"),
            ]
        };
        for (unit, second, third, clock_ns) in [
            (TimeUnit::Nanosecond, "2500", "7000", 1),
            (TimeUnit::Picosecond, "2", "7", 1),
            (TimeUnit::Microsecond, "2500000", "7000000", 1_000),
        ] {
            let rows = rows(second, third);
            check(unit, [&rows[0], &rows[1], &rows[2]], clock_ns);
        }
    }

    #[test]
    fn every_kind_of_damage_has_its_reason() {
        let check = |line: &str, reason: SkipReason| {
            let text = format!("1 0 8 8 0\n{line}");
            let parsed = testing::parse(&mut MqsimParser::new(TimeUnit::Nanosecond), &text);
            assert_eq!(parsed.skips, [(reason.0, 1, 2)], "{line}");
            assert_eq!(parsed.records.len(), 1);
        };
        check("11413000 0 657728 16", WRONG_FIELDS);
        check("11413000 0 657728 16 1 1", WRONG_FIELDS);
        check("11413000 0 657728 16 2", UNKNOWN_OP);
        check("11413000 0 657728 0 1", ZERO_LENGTH);
        check("time 0 657728 16 1", NOT_A_NUMBER);
        check("9223372036854775808 0 657728 16 1", OUT_OF_RANGE);
        check("1 0 18014398509481984 16 1", OUT_OF_RANGE);
    }
}
