//! MSR Cambridge traces: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.
//!
//! Times are Windows file times, counts of 100 ns since 1601; the response time gives the
//! completion. The format knows reads and writes only.
//!
//! Source: Narayanan, Donnelly, Rowstron, "Write Off-Loading", FAST'08; SNIA IOTTA 388.

use crate::capabilities::Capabilities;
use crate::csv::CsvParser;
use crate::fields::{
    OUT_OF_RANGE, UNKNOWN_OP, WRONG_FIELDS, filetime, later, request, text, whole,
};
use crate::record::{Op, OptTime, Record};
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
    completion: true,
    queue: false,
    process: false,
    file: false,
    stream: false,
    clock_ns: 100,
};

/// A parser of MSR Cambridge lines, with or without a header line.
#[must_use]
pub fn parser() -> CsvParser {
    CsvParser { parse, number_field: 0, capabilities: CAPABILITIES, disorder_ns: DISORDER_NS }
}

fn parse(line: &[u8], sink: &mut Sink) -> Result<Record, SkipReason> {
    // Host and disk together name the device, and stand next to each other: cutting the
    // line around them gives `hm,0` without building a new text.
    let (stamp, rest) = cut(line).ok_or(WRONG_FIELDS)?;
    let (host, after_host) = cut(rest).ok_or(WRONG_FIELDS)?;
    let (disk, after_disk) = cut(after_host).ok_or(WRONG_FIELDS)?;
    let device = &rest[..host.len() + 1 + disk.len()];
    let [kind, offset, len, response] = crate::fields::split(after_disk, b',')?;
    let op = if kind.eq_ignore_ascii_case(b"read") {
        Op::Read
    } else if kind.eq_ignore_ascii_case(b"write") {
        Op::Write
    } else {
        return Err(UNKNOWN_OP);
    };
    let issue_ns = filetime(stamp)?;
    let mut record = request(op, issue_ns, whole(offset)?, whole(len)?)?;
    let took = whole(response)?.checked_mul(100).and_then(|ns| i64::try_from(ns).ok());
    record.complete = OptTime::at(later(issue_ns, took.ok_or(OUT_OF_RANGE)?)?);
    record.device = sink.symbols.intern(text(device)?);
    Ok(record)
}

fn cut(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let comma = memchr::memchr(b',', line)?;
    Some((&line[..comma], &line[comma + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::{NOT_A_NUMBER, ZERO_LENGTH};
    use crate::testing;

    #[test]
    fn the_sample_is_read() {
        let parsed = testing::parse(&mut parser(), include_str!("../tests/data/msr.csv"));
        assert_eq!(
            parsed.lines(),
            [
                "0 283300 write 9056014336 2048 hm,0",
                "1000000 1050000 read 4096 8192 hm,0",
                "1000100 1000200 read 512 512 src1,2",
            ]
        );
        assert_eq!(parsed.skips, []);
    }

    #[test]
    fn every_kind_of_damage_has_its_reason() {
        let check = |line: &str, reason: SkipReason| {
            let parsed = testing::parse(&mut parser(), &format!("\n{line}"));
            assert_eq!(parsed.skips, [(reason.0, 1, 2)], "{line}");
            assert_eq!(parsed.records, []);
        };
        check("128166385295514663,hm,0,Write,9056014336,2048", WRONG_FIELDS);
        check("128166385295514663,hm", WRONG_FIELDS);
        check("128166385295514663,hm,0,Write,9056014336,2048,2833,7", WRONG_FIELDS);
        check("128166385295514663,hm,0,Trim,9056014336,2048,2833", UNKNOWN_OP);
        check("128166385295514663,hm,0,Write,9056014336,0,2833", ZERO_LENGTH);
        check("128166385295514663,hm,0,Write,x,2048,2833", NOT_A_NUMBER);
        check("Timestamp,Hostname,0,Write,0,2048,2833", NOT_A_NUMBER);
        check("128166385295514663,hm,0,Write,9223372036854775807,1,2833", OUT_OF_RANGE);
        check("128166385295514663,hm,0,Write,0,2048,99999999999999999999", OUT_OF_RANGE);
    }
}
