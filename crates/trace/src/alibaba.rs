//! Alibaba block traces: `device_id,opcode,offset,length,timestamp`.
//!
//! Offset and length are bytes, the timestamp is in microseconds and taken where the
//! request arrives at the storage server; there is no completion. The format knows `R`
//! and `W` only.
//!
//! Source: Li et al., "An In-Depth Analysis of Cloud Block Storage Workloads", IISWC'20.

use crate::capabilities::Capabilities;
use crate::error::TraceError;
use crate::fields::{UNKNOWN_OP, is_header, request, split, text, time, whole};
use crate::record::{Op, Record};
use crate::sink::{LineParser, Sink};
use crate::skips::SkipReason;

/// What the format carries.
pub const CAPABILITIES: Capabilities = Capabilities {
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
    clock_ns: 1_000,
};

/// Reads Alibaba lines, with or without a header line.
#[derive(Debug, Default)]
pub struct AlibabaParser;

impl AlibabaParser {
    /// A parser at the start of a trace.
    #[must_use]
    pub fn new() -> Self {
        Self
    }
}

impl LineParser for AlibabaParser {
    fn line(&mut self, line: &[u8], number: u64, sink: &mut Sink) -> Result<(), TraceError> {
        let line = line.trim_ascii();
        if line.is_empty() || number == 1 && is_header(line, b',', 4) {
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
}

fn parse(line: &[u8], sink: &mut Sink) -> Result<Record, SkipReason> {
    let [device, kind, offset, len, stamp] = split(line, b',')?;
    let op = match kind {
        b"R" | b"r" => Op::Read,
        b"W" | b"w" => Op::Write,
        _ => return Err(UNKNOWN_OP),
    };
    let mut record = request(op, time(stamp, 1_000)?, whole(offset)?, whole(len)?)?;
    record.device = sink.symbols.intern(text(device)?);
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::{NOT_A_NUMBER, OUT_OF_RANGE, WRONG_FIELDS, ZERO_LENGTH};
    use crate::testing;

    #[test]
    fn the_sample_is_read() {
        let text = include_str!("../tests/data/alibaba.csv");
        let parsed = testing::parse(&mut AlibabaParser::new(), text);
        assert_eq!(
            parsed.lines(),
            [
                "0 ? read 126703644672 4096 0",
                "28000 ? write 8192 16384 419",
                "28000 ? write 24576 512 419",
            ]
        );
        assert_eq!(parsed.skips, []);
    }

    #[test]
    fn a_header_is_no_damage_and_damage_has_its_reason() {
        let check = |line: &str, skips: &[(&'static str, u64, u64)]| {
            let parsed = testing::parse(&mut AlibabaParser::new(), line);
            assert_eq!(parsed.skips, skips, "{line}");
        };
        check("device_id,opcode,offset,length,timestamp", &[]);
        check("0,R,126703644672,4096,x\n", &[]);
        check("\n0,R,126703644672,4096,x", &[(NOT_A_NUMBER.0, 1, 2)]);
        check("0,R,126703644672,4096", &[(WRONG_FIELDS.0, 1, 1)]);
        check("0,D,126703644672,4096,1577808000000626", &[(UNKNOWN_OP.0, 1, 1)]);
        check("0,R,126703644672,0,1577808000000626", &[(ZERO_LENGTH.0, 1, 1)]);
        check("0,R,1,9223372036854775807,1577808000000626", &[(OUT_OF_RANGE.0, 1, 1)]);
        check("0,R,1,1,9223372036854775807", &[(OUT_OF_RANGE.0, 1, 1)]);
    }
}
