//! DiskSim ASCII traces: `time device block blocks flags`, between white space.
//!
//! The time is in milliseconds with decimals, blocks have 512 bytes, and the flags are
//! hexadecimal; their lowest bit is set for a read and clear for a write. The other bits are
//! priorities for the simulator and are not interpreted.
//!
//! MiDAS writes lines of the same form: time, type, page, size, stream. The two differ for
//! certain only if the second column is greater than any type, so only such lines are
//! recognised; others need `--format disksim`.
//!
//! Source: Bucy, Schindler, Schlosser, Ganger, "The DiskSim Simulation Environment
//! Version 4.0 Reference Manual", CMU-PDL-08-101.

use super::rows::{Clock, Row, RowOutput};
use crate::capabilities::Capabilities;
use crate::event::SECTOR;
use crate::fields::{MILLISECOND, bytes, hex, request, split_white, text, time, whole};
use crate::record::Op;
use crate::skips::SkipReason;

/// The flag of a read.
const READ: u64 = 1;

/// The greatest type of a request in MiDAS.
const MIDAS_TYPE_MAX: u64 = 3;

/// Reads DiskSim lines.
pub(crate) struct Disksim {
    clock: Clock,
}

impl Disksim {
    pub fn new() -> Self {
        Self { clock: Clock::new(MILLISECOND) }
    }
}

impl Row for Disksim {
    fn read(&mut self, line: &[u8], out: &mut RowOutput<'_>) -> Result<(), SkipReason> {
        let [stamp, device, block, blocks, flags] = split_white(line)?;
        let op = if hex(flags)? & READ == READ { Op::Read } else { Op::Write };
        let (offset, len) = (bytes(whole(block)?, SECTOR)?, bytes(whole(blocks)?, SECTOR)?);
        let mut record = request(op, self.clock.read(stamp)?, offset, len)?;
        record.device = out.symbols.intern(text(device)?);
        out.records.push(record);
        Ok(())
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { clock_ns: self.clock.step_ns(), ..Capabilities::READS_AND_WRITES }
    }
}

/// The second column of a line that DiskSim or MiDAS may have written.
fn second_column(line: &[u8]) -> Option<u64> {
    let [stamp, second, third, fourth, fifth] = split_white(line).ok()?;
    let fits = stamp.contains(&b'.')
        && time(stamp, 1).is_ok()
        && [third, fourth, fifth].iter().all(|field| whole(field).is_ok());
    whole(second).ok().filter(|_| fits)
}

/// Whether a line can only be of this format.
pub(crate) fn is_line(line: &[u8]) -> bool {
    second_column(line).is_some_and(|second| second > MIDAS_TYPE_MAX)
        && (line.ends_with(b"0") || line.ends_with(b"1"))
}

/// Whether a line can be of this format and of MiDAS.
pub(crate) fn is_this_or_midas(line: &[u8]) -> bool {
    second_column(line).is_some_and(|second| second <= MIDAS_TYPE_MAX)
}
