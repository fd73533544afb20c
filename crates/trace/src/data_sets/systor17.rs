//! SYSTOR '17 traces: `Timestamp,Response,IOType,LUN,Offset,Size` below a header.
//!
//! Timestamp (of the issue) and response are seconds with nine decimals of which six
//! count; offset and size are bytes. Response and type may be empty: the response then is
//! unknown, and a request without a type is skipped, for it may be either. Lines are not in
//! the order of their issue.
//!
//! Source: Lee et al., "Understanding Storage Traffic Characteristics on Enterprise
//! Virtual Desktop Infrastructure", SYSTOR'17; SNIA IOTTA 4928.

use super::rows::{Clock, Row};
use crate::capabilities::Capabilities;
use crate::fields::{OUT_OF_RANGE, UNKNOWN_OP, later, request, split, text, time, whole};
use crate::record::{Op, OptTime, Record};
use crate::skips::SkipReason;
use crate::symbols::Symbols;

/// The type is empty.
pub const NO_OP: SkipReason = SkipReason("the operation is left empty");

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// Lines stand out of order by what a slow request takes; hosts give up on one after half
/// a minute.
const DISORDER_NS: u64 = 30 * SECOND;

/// Reads SYSTOR '17 lines.
pub(crate) struct Systor17 {
    clock: Clock,
}

impl Systor17 {
    pub fn new() -> Self {
        Self { clock: Clock::new(SECOND) }
    }
}

impl Row for Systor17 {
    fn read(
        &mut self,
        line: &[u8],
        symbols: &mut Symbols,
        out: &mut Vec<Record>,
    ) -> Result<(), SkipReason> {
        let [stamp, response, kind, lun, offset, len] = split(line, b',')?;
        let op = match kind {
            b"R" => Op::Read,
            b"W" => Op::Write,
            b"" => return Err(NO_OP),
            _ => return Err(UNKNOWN_OP),
        };
        let issue_ns = self.clock.read(stamp)?;
        let mut record = request(op, issue_ns, whole(offset)?, whole(len)?)?;
        if !response.is_empty() {
            let took = time(response, SECOND)?;
            if took < 0 {
                return Err(OUT_OF_RANGE);
            }
            record.complete = OptTime::at(later(issue_ns, took)?);
        }
        record.device = symbols.intern(text(lun)?);
        out.push(record);
        Ok(())
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            completion: true,
            clock_ns: self.clock.step_ns(),
            ..Capabilities::READS_AND_WRITES
        }
    }

    fn disorder_ns(&self) -> u64 {
        DISORDER_NS
    }
}

/// Whether a line can only be of this format.
pub(crate) fn is_line(line: &[u8]) -> bool {
    let fields = split::<6>(line, b',');
    fields.is_ok_and(|[stamp, response, kind, lun, offset, len]| {
        matches!(kind, b"R" | b"W" | b"")
            && stamp.contains(&b'.')
            && (response.is_empty() || response.contains(&b'.'))
            && [stamp, response].iter().all(|field| field.is_empty() || time(field, 1).is_ok())
            && [lun, offset, len].iter().all(|field| whole(field).is_ok())
    })
}
