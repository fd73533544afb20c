//! Traces in the form of the Storage Performance Council, as the UMass repository has
//! them: `ASU,LBA,size,operation,time` and whatever a source adds after that.
//!
//! The unit of storage (ASU) is the device. The address counts blocks, which are of 512
//! bytes in the UMass traces; the form leaves their size to a description beside the
//! trace. The size is in bytes, the time in seconds from the start; the operation is `R`
//! or `W` in either case. Blanks may stand around fields.
//!
//! Source: "SPC Trace File Format Specification", revision 1.0.1; UMass Trace Repository.

use super::rows::{Clock, Row};
use crate::capabilities::Capabilities;
use crate::fields::{UNKNOWN_OP, WRONG_FIELDS, bytes, request, text, time, whole};
use crate::record::{Op, Record};
use crate::skips::SkipReason;
use crate::symbols::Symbols;

/// Bytes of a block.
const BLOCK: u64 = 512;

/// Reads SPC lines.
pub(crate) struct Spc {
    clock: Clock,
}

impl Spc {
    pub fn new() -> Self {
        Self { clock: Clock::new(1_000_000_000) }
    }
}

/// The five fields that every line has.
fn first_five(line: &[u8]) -> Option<[&[u8]; 5]> {
    let mut fields = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    let mut five = [&line[..0]; 5];
    for field in &mut five {
        *field = fields.next()?;
    }
    Some(five)
}

fn operation(field: &[u8]) -> Option<Op> {
    match field {
        b"R" | b"r" => Some(Op::Read),
        b"W" | b"w" => Some(Op::Write),
        _ => None,
    }
}

impl Row for Spc {
    fn read(
        &mut self,
        line: &[u8],
        symbols: &mut Symbols,
        out: &mut Vec<Record>,
    ) -> Result<(), SkipReason> {
        let [asu, block, len, kind, stamp] = first_five(line).ok_or(WRONG_FIELDS)?;
        let op = operation(kind).ok_or(UNKNOWN_OP)?;
        let offset = bytes(whole(block)?, BLOCK)?;
        let mut record = request(op, self.clock.read(stamp)?, offset, whole(len)?)?;
        record.device = symbols.intern(text(asu)?);
        out.push(record);
        Ok(())
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { clock_ns: self.clock.step_ns(), ..Capabilities::READS_AND_WRITES }
    }
}

/// Whether a line can only be of this format.
pub(crate) fn is_line(line: &[u8]) -> bool {
    first_five(line).is_some_and(|[asu, block, len, kind, stamp]| {
        operation(kind).is_some()
            && stamp.contains(&b'.')
            && time(stamp, 1).is_ok()
            && [asu, block, len].iter().all(|field| whole(field).is_ok())
    })
}
