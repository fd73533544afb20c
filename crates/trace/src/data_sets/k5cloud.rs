//! K5cloud traces: `volume,time,operation,offset,length`.
//!
//! The time is seconds with nine decimals, of which six count; the operation is `R` or
//! `W`. Offset and length are taken as bytes, as most programs that read these traces do;
//! one of them takes the length as multiples of 1024 bytes. The data set's own description
//! was not at hand, so this is in doubt.
//!
//! Source: SNIA IOTTA, K5cloud traces.

use super::rows::{Clock, Row};
use crate::capabilities::Capabilities;
use crate::fields::{UNKNOWN_OP, request, split, text, time, whole};
use crate::record::{Op, Record};
use crate::skips::SkipReason;
use crate::symbols::Symbols;

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// Reads K5cloud lines.
pub(crate) struct K5cloud {
    clock: Clock,
}

impl K5cloud {
    pub fn new() -> Self {
        Self { clock: Clock::new(SECOND) }
    }
}

impl Row for K5cloud {
    fn read(
        &mut self,
        line: &[u8],
        symbols: &mut Symbols,
        out: &mut Vec<Record>,
    ) -> Result<(), SkipReason> {
        let [volume, stamp, kind, offset, len] = split(line, b',')?;
        let op = match kind {
            b"R" => Op::Read,
            b"W" => Op::Write,
            _ => return Err(UNKNOWN_OP),
        };
        let mut record = request(op, self.clock.read(stamp)?, whole(offset)?, whole(len)?)?;
        record.device = symbols.intern(text(volume)?);
        out.push(record);
        Ok(())
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { clock_ns: self.clock.step_ns(), ..Capabilities::READS_AND_WRITES }
    }
}

/// Whether a line can only be of this format.
pub(crate) fn is_line(line: &[u8]) -> bool {
    split::<5>(line, b',').is_ok_and(|[volume, stamp, kind, offset, len]| {
        matches!(kind, b"R" | b"W")
            && stamp.contains(&b'.')
            && time(stamp, 1).is_ok()
            && [volume, offset, len].iter().all(|field| whole(field).is_ok())
    })
}
