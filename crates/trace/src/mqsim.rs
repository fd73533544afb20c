//! MQSim ASCII traces: `time device first-sector sectors type`, between white space.
//!
//! Sectors have 512 bytes; type 0 is a write and 1 a read. The time is in nanoseconds, MQSim's
//! own default; the XML file of the trace may name another unit (`Time_Unit`), and such a trace
//! is read through a map. A map could read all of them, but takes a fifth more time.
//!
//! Source: Tavakkol et al., "MQSim", FAST'18.

use crate::capabilities::Capabilities;
use crate::error::TraceError;
use crate::event::SECTOR;
use crate::fields::{OUT_OF_RANGE, UNKNOWN_OP, bytes, request, split_white, text, whole};
use crate::record::{Op, Record};
use crate::sink::{LineParser, Sink};
use crate::skips::SkipReason;

/// Reads MQSim lines, with or without a header line.
#[derive(Clone, Copy, Debug, Default)]
pub struct MqsimParser;

fn parse(line: &[u8], sink: &mut Sink) -> Result<Record, SkipReason> {
    let [stamp, device, sector, sectors, kind] = split_white(line)?;
    let op = match kind {
        b"0" => Op::Write,
        b"1" => Op::Read,
        _ => return Err(UNKNOWN_OP),
    };
    let issue_ns = i64::try_from(whole(stamp)?).map_err(|_| OUT_OF_RANGE)?;
    let offset = bytes(whole(sector)?, SECTOR)?;
    let mut record = request(op, issue_ns, offset, bytes(whole(sectors)?, SECTOR)?)?;
    record.device = sink.symbols.intern(text(device)?);
    Ok(record)
}

impl LineParser for MqsimParser {
    fn line(&mut self, line: &[u8], number: u64, sink: &mut Sink) -> Result<(), TraceError> {
        let line = line.trim_ascii();
        if line.is_empty() || number == 1 && line[0].is_ascii_alphabetic() {
            return Ok(());
        }
        match parse(line, sink) {
            Ok(record) => sink.record(record, number),
            Err(reason) => {
                sink.skip(reason, number);
                Ok(())
            }
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::READS_AND_WRITES
    }
}

/// Whether a line can be of this format: columns between blanks, or between single tabs.
pub(crate) fn is_line(line: &[u8]) -> bool {
    split_white::<5>(line).is_ok_and(|[stamp, device, sector, sectors, kind]| {
        matches!(kind, b"0" | b"1")
            && [stamp, device, sector, sectors].iter().all(|field| whole(field).is_ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::{NOT_A_NUMBER, WRONG_FIELDS, ZERO_LENGTH};
    use crate::testing;

    #[test]
    fn the_sample_is_read() {
        let sample = include_str!("../tests/data/mqsim.txt");
        let parsed = testing::parse(&mut MqsimParser, sample);
        let expected =
            ["0 ? read 336756736 8192 0", "2500 ? write 4096 4096 0", "7000 ? write 8192 4096 1"];
        assert_eq!((parsed.lines(), parsed.skips), (expected.map(str::to_owned).into(), vec![]));
    }

    #[test]
    fn every_kind_of_damage_has_its_reason() {
        let check = |line: &str, reason: SkipReason| {
            let text = format!("1 0 8 8 0\n{line}");
            let parsed = testing::parse(&mut MqsimParser, &text);
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
