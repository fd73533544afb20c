//! Traces of Meta's Tectonic that came with Baleen: `block offset size time operation` and
//! three to five columns about the client, between blanks.
//!
//! A block is named by a number; offset and size are bytes in it. The time is in seconds,
//! without decimals in some of the traces. Operations 1, 2 and 5 get data, 3, 4 and 6 put it;
//! any other (100 is unknown) is skipped. The last columns differ from year to year and are not
//! kept.
//!
//! These are requests of clients to the flash cache of a storage system. The requests of a
//! drive below would depend on that cache and on where the system stores its blocks; here
//! blocks get addresses in the order in which their parts are first accessed.
//!
//! Lines are recognised if their time is in this century; others need `--format baleen`.
//!
//! Source: Wong et al., "Baleen", FAST'24; its data set at Carnegie Mellon University.

use super::layout::Layout;
use super::rows::{Clock, Row, RowOutput};
use crate::capabilities::Capabilities;
use crate::fields::{SECOND, UNKNOWN_OP, WRONG_FIELDS, in_time_range, white, whole};
use crate::record::{Op, Record};
use crate::skips::SkipReason;

/// The alignment of client requests, and the unit of the cache in the paper.
const CHUNK: u64 = 128 << 10;

/// Columns of the oldest traces.
const COLUMNS_MIN: usize = 8;

/// Columns of the newest traces.
const COLUMNS_MAX: usize = 10;

/// Unix times, in nanoseconds, by which the format is recognised: from September 2001 to March
/// 2065, all with ten digits of seconds.
const UNIX_TIMES: std::ops::Range<i64> = 1_000_000_000_000_000_000..3_000_000_000_000_000_000;

/// Reads lines of Tectonic.
pub(crate) struct Baleen {
    clock: Clock,
    layout: Layout,
}

impl Baleen {
    pub fn new() -> Self {
        Self { clock: Clock::new(SECOND), layout: Layout::new(CHUNK) }
    }
}

fn fields(line: &[u8]) -> Result<[&[u8]; 5], SkipReason> {
    let mut all = white(line);
    let mut five = [&line[..0]; 5];
    for field in &mut five {
        *field = all.next().ok_or(WRONG_FIELDS)?;
    }
    let columns = five.len() + all.count();
    if (COLUMNS_MIN..=COLUMNS_MAX).contains(&columns) { Ok(five) } else { Err(WRONG_FIELDS) }
}

fn operation(field: &[u8]) -> Option<Op> {
    match field {
        b"1" | b"2" | b"5" => Some(Op::Read),
        b"3" | b"4" | b"6" => Some(Op::Write),
        _ => None,
    }
}

impl Row for Baleen {
    fn read(&mut self, line: &[u8], out: &mut RowOutput<'_>) -> Result<(), SkipReason> {
        let [block, offset, len, stamp, kind] = fields(line)?;
        let op = operation(kind).ok_or(UNKNOWN_OP)?;
        let issue_ns = in_time_range(self.clock.read(stamp)?)?;
        self.layout.place(whole(block)?, whole(offset)?, whole(len)?, |address, len| {
            out.records.push(Record::new(op, issue_ns, address, len));
        })
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            address: false,
            clock_ns: self.clock.step_ns(),
            ..Capabilities::READS_AND_WRITES
        }
    }
}

/// Whether a line can only be of this format.
pub(crate) fn is_line(line: &[u8]) -> bool {
    fields(line).is_ok_and(|[block, offset, len, stamp, kind]| {
        operation(kind).is_some()
            && Clock::new(SECOND).read(stamp).is_ok_and(|ns| UNIX_TIMES.contains(&ns))
            && [block, offset, len].iter().all(|field| whole(field).is_ok_and(|n| n < 1 << 62))
    })
}
