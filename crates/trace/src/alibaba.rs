//! Alibaba block traces: `device_id,opcode,offset,length,timestamp`.
//!
//! Offset and length are bytes, the timestamp is in microseconds and taken where the
//! request arrives at the storage server; there is no completion. The format knows `R`
//! and `W` only.
//!
//! Source: Li et al., "An In-Depth Analysis of Cloud Block Storage Workloads", IISWC'20.

use crate::capabilities::Capabilities;
use crate::csv::CsvParser;
use crate::fields::{UNKNOWN_OP, request, split, text, time, whole};
use crate::record::{Op, Record};
use crate::sink::{DISORDER_NS, Sink};
use crate::skips::SkipReason;

/// What the format carries.
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
    clock_ns: 1_000,
};

/// A parser of Alibaba lines, with or without a header line.
#[must_use]
pub fn parser() -> CsvParser {
    CsvParser { parse, number_field: 4, capabilities: CAPABILITIES, disorder_ns: DISORDER_NS }
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
        let parsed = testing::parse(&mut parser(), text);
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
            let parsed = testing::parse(&mut parser(), line);
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
