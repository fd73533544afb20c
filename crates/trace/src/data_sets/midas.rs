//! MiDAS traces: `time type page size stream`, between blanks.
//!
//! The time is in seconds with decimals. The type is 0 for a read, 1 for a write and 3 for
//! a TRIM; 2 is not used. The address counts pages of 4 KiB. The stream is that of a
//! multi-stream drive; 0 is none.
//!
//! The size is in bytes: the description of the data set does not say so, but the program of
//! the same authors that replays it adds the size to the address in bytes. A size that is no
//! multiple of a sector is skipped, so that a trace with sizes in pages is refused and not read
//! as requests of a few bytes.
//!
//! Lines look like those of DiskSim, so the format is read only with `--format midas`.
//!
//! Source: Oh et al., "MiDAS", FAST'24; the data set is 10.5281/zenodo.10409599.

use super::rows::{Clock, Row, RowOutput};
use crate::capabilities::Capabilities;
use crate::event::SECTOR;
use crate::fields::{OUT_OF_RANGE, SECOND, UNKNOWN_OP, bytes, request, split_white, whole};
use crate::record::Op;
use crate::skips::SkipReason;

/// The size is not a number of bytes.
pub const ODD_SIZE: SkipReason = SkipReason("size that is no multiple of 512 bytes");

/// Bytes of a page.
const PAGE: u64 = 4096;

/// Reads MiDAS lines.
pub(crate) struct Midas {
    clock: Clock,
}

impl Midas {
    pub fn new() -> Self {
        Self { clock: Clock::new(SECOND) }
    }
}

impl Row for Midas {
    fn read(&mut self, line: &[u8], out: &mut RowOutput<'_>) -> Result<(), SkipReason> {
        let [stamp, kind, page, len, stream] = split_white(line)?;
        let op = match kind {
            b"0" => Op::Read,
            b"1" => Op::Write,
            b"3" => Op::Discard,
            _ => return Err(UNKNOWN_OP),
        };
        let len = whole(len)?;
        if !len.is_multiple_of(SECTOR) {
            return Err(ODD_SIZE);
        }
        let offset = bytes(whole(page)?, PAGE)?;
        let mut record = request(op, self.clock.read(stamp)?, offset, len)?;
        record.stream = u16::try_from(whole(stream)?).map_err(|_| OUT_OF_RANGE)?;
        out.records.push(record);
        Ok(())
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            discard: true,
            stream: true,
            clock_ns: self.clock.step_ns(),
            ..Capabilities::READS_AND_WRITES
        }
    }
}
