//! Tencent CBS traces: `Timestamp,Offset,Size,IOType,VolumeID`.
//!
//! Offset and size are sectors of 512 bytes, the type is 0 for a read and 1 for a write.
//! The clock has steps of one second, and lines stand slightly out of its order: nothing
//! that depends on the time between requests can be learned from such a trace.
//!
//! Source: Zhang et al., "OSCA", USENIX ATC'20; SNIA IOTTA 27917.

use prism_base::Nanos;

use crate::capabilities::Capabilities;
use crate::csv::CsvParser;
use crate::fields::{UNKNOWN_OP, bytes, request, split, text, time, whole};
use crate::record::{Op, Record};
use crate::sink::Sink;
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
    clock_ns: 1_000_000_000,
};

/// By how much lines may stand out of order. The clock steps by a second and servers are
/// merged loosely; a minute is far above what is seen and costs only memory.
pub const DISORDER: Nanos = Nanos(60_000_000_000);

/// Bytes of a sector.
const SECTOR: u64 = 512;

/// A parser of Tencent lines, with or without a header line.
#[must_use]
pub fn parser() -> CsvParser {
    CsvParser { parse, number_field: 0, capabilities: CAPABILITIES, disorder_ns: DISORDER.0 }
}

fn parse(line: &[u8], sink: &mut Sink) -> Result<Record, SkipReason> {
    let [stamp, offset, len, kind, volume] = split(line, b',')?;
    let op = match kind {
        b"0" => Op::Read,
        b"1" => Op::Write,
        _ => return Err(UNKNOWN_OP),
    };
    let offset = bytes(whole(offset)?, SECTOR)?;
    let len = bytes(whole(len)?, SECTOR)?;
    let mut record = request(op, time(stamp, 1_000_000_000)?, offset, len)?;
    record.device = sink.symbols.intern(text(volume)?);
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::{NOT_A_NUMBER, OUT_OF_RANGE, WRONG_FIELDS, ZERO_LENGTH};
    use crate::testing;

    #[test]
    fn the_sample_is_read_and_put_into_order() {
        let text = include_str!("../tests/data/tencent.csv");
        let parsed = testing::parse(&mut parser(), text);
        assert_eq!(
            parsed.lines(),
            [
                "0 ? read 0 4096 1063",
                "1000000000 ? write 2174566400 65536 1058",
                "1000000000 ? read 524288 8192 1063",
            ]
        );
        assert_eq!(parsed.skips, []);
    }

    #[test]
    fn every_kind_of_damage_has_its_reason() {
        let check = |line: &str, reason: SkipReason| {
            let parsed = testing::parse(&mut parser(), &format!("\n{line}"));
            assert_eq!(parsed.skips, [(reason.0, 1, 2)], "{line}");
        };
        check("1538323200,4247200,128,1", WRONG_FIELDS);
        check("1538323200,4247200,128,2,1058", UNKNOWN_OP);
        check("1538323200,4247200,0,1,1058", ZERO_LENGTH);
        check("1538323200,-1,128,1,1058", NOT_A_NUMBER);
        check("1538323200,36028797018963968,128,1,1058", OUT_OF_RANGE);
        check("1538323200,18014398509481983,1,1,1058", OUT_OF_RANGE);
    }
}
