//! Traces of Florida International University (I/O deduplication, SRCMap):
//! `time pid process block blocks operation major minor md5`, between blanks.
//!
//! The time is in nanoseconds, blocks have 512 bytes, the operation is `R` or `W`. The hash of
//! the content is not kept: the simulated drives do not use data.
//!
//! Source: Koller and Rangaswami, "I/O Deduplication", FAST'10; SNIA IOTTA, FIU traces.

use super::rows::{Row, RowOutput};
use crate::capabilities::Capabilities;
use crate::event::SECTOR;
use crate::fields::{
    NOT_A_NUMBER, OUT_OF_RANGE, UNKNOWN_OP, WRONG_FIELDS, bytes, request, text, time, white, whole,
};
use crate::record::Op;
use crate::skips::SkipReason;

/// Digits of a hash.
const HASH_DIGITS: usize = 32;

/// Reads FIU lines.
pub(crate) struct Fiu;

/// The fields before the process, the process, and the fields after it.
type Parts<'a> = ([&'a [u8]; 2], &'a [u8], [&'a [u8]; 6]);

/// The fields of a line.
///
/// A process may have blanks in its name, so the fields after it are counted from the end.
fn fields(line: &[u8]) -> Result<Parts<'_>, SkipReason> {
    let all: Vec<&[u8]> = white(line).collect();
    let (before, rest) = all.split_first_chunk::<2>().ok_or(WRONG_FIELDS)?;
    let (name, after) = rest.split_last_chunk::<6>().ok_or(WRONG_FIELDS)?;
    let (first, last) = (name.first().ok_or(WRONG_FIELDS)?, name.last().ok_or(WRONG_FIELDS)?);
    let place = |part: &[u8]| part.as_ptr() as usize - line.as_ptr() as usize;
    Ok((*before, &line[place(first)..place(last) + last.len()], *after))
}

fn is_hash(field: &[u8]) -> bool {
    field.len() == HASH_DIGITS && field.iter().all(u8::is_ascii_hexdigit)
}

impl Row for Fiu {
    fn read(&mut self, line: &[u8], out: &mut RowOutput<'_>) -> Result<(), SkipReason> {
        let ([stamp, pid], process, [block, blocks, kind, major, minor, hash]) = fields(line)?;
        let op = match kind {
            b"R" => Op::Read,
            b"W" => Op::Write,
            _ => return Err(UNKNOWN_OP),
        };
        if !is_hash(hash) {
            return Err(NOT_A_NUMBER);
        }
        let (offset, len) = (bytes(whole(block)?, SECTOR)?, bytes(whole(blocks)?, SECTOR)?);
        let mut record = request(op, time(stamp, 1)?, offset, len)?;
        record.pid = i32::try_from(whole(pid)?).map_err(|_| OUT_OF_RANGE)?;
        record.comm = out.symbols.intern(text(process)?);
        record.device = out.symbols.intern(&format!("{},{}", whole(major)?, whole(minor)?));
        out.records.push(record);
        Ok(())
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { process: true, ..Capabilities::READS_AND_WRITES }
    }
}

/// Whether a line can only be of this format.
pub(crate) fn is_line(line: &[u8]) -> bool {
    fields(line).is_ok_and(|([stamp, pid], _, [block, blocks, kind, major, minor, hash])| {
        matches!(kind, b"R" | b"W")
            && is_hash(hash)
            && [stamp, pid, block, blocks, major, minor].iter().all(|field| whole(field).is_ok())
    })
}
