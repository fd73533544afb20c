//! Traces of virtual disks as CloudPhysics published them: binary, little-endian, records
//! of 32 bytes (version 1) or 40 (version 2) without a header.
//!
//! | version 1 | version 2 | field |
//! |---|---|---|
//! | 0, u32 | 4, u32 | serial number |
//! | 4, u32 | 8, u32 | bytes |
//! | 8, u32 | 12, u32 | elements of the scatter list |
//! | 12, u16 | 0, u16 | SCSI operation |
//! | 14, u16 = 0x100 | 2, u16 = 0x200 | version |
//! | 16, u64 | 16, u64 | sector of 512 bytes |
//! | 24, u64 | 24, u64 | time (us) |
//! | | 32, u64 | response time (us) |
//!
//! The unit of the response time is assumed to be that of the time field; no description of
//! version 2 says so. SYNCHRONIZE CACHE is a flush. The ranges of an UNMAP are in its data,
//! which is not recorded, so discards are unknown.
//!
//! Source: Waldspurger et al., "Efficient MRC Construction with SHARDS", FAST'15, and the
//! readers of the data set in libCacheSim.

use super::records::{Fields, Parsed, RecordParser};
use crate::capabilities::Capabilities;
use crate::error::TraceError;
use crate::event::SECTOR;
use crate::fields::{MICROSECOND, OUT_OF_RANGE, bytes, in_time_range, later, request};
use crate::record::{Op, OptTime, Record};
use crate::sink::Sink;
use crate::skips::SkipReason;

/// A command such as TEST UNIT READY.
pub const NO_REQUEST: SkipReason = SkipReason("SCSI command that neither moves data nor flushes");
/// An UNMAP.
pub const UNMAP: SkipReason = SkipReason("UNMAP, whose ranges are not recorded");

/// Records by which the format is recognised.
const LOOKED_AT: usize = 64;

/// The greatest SCSI operation: it is one byte, stored in two.
const OPERATION_MAX: u16 = 0xff;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

/// One record as it is stored.
#[derive(Clone, Copy, Debug)]
struct Raw {
    operation: u16,
    bytes: u32,
    sector: u64,
    time_us: u64,
    took_us: Option<u64>,
}

impl Version {
    fn len(self) -> usize {
        match self {
            Self::V1 => 32,
            Self::V2 => 40,
        }
    }

    /// The version of the record that `bytes` starts with.
    fn of(bytes: &[u8]) -> Option<Self> {
        let mark = |at: usize| bytes.get(at..at + 2).map(|mark| [mark[0], mark[1]]);
        match (mark(14), mark(2)) {
            (Some([0, 1]), _) => Some(Self::V1),
            (_, Some([0, 2])) => Some(Self::V2),
            _ => None,
        }
    }

    fn read(self, record: &[u8]) -> Raw {
        let mut fields = Fields(record);
        match self {
            Self::V1 => {
                let (_, bytes, _) = (fields.u32(), fields.u32(), fields.u32());
                let (operation, _) = (fields.u16(), fields.u16());
                let (sector, time_us) = (fields.u64(), fields.u64());
                Raw { operation, bytes, sector, time_us, took_us: None }
            }
            Self::V2 => {
                let (operation, _) = (fields.u16(), fields.u16());
                let (_, bytes, _) = (fields.u32(), fields.u32(), fields.u32());
                let (sector, time_us) = (fields.u64(), fields.u64());
                Raw { operation, bytes, sector, time_us, took_us: Some(fields.u64()) }
            }
        }
    }
}

/// Reads CloudPhysics records.
#[derive(Debug, Default)]
pub(crate) struct Vscsi {
    version: Option<Version>,
    flushes: bool,
}

/// A time that a record can hold.
fn ns(us: u64) -> Result<i64, SkipReason> {
    let ns = us.checked_mul(MICROSECOND).and_then(|ns| i64::try_from(ns).ok());
    in_time_range(ns.ok_or(OUT_OF_RANGE)?)
}

impl Raw {
    fn record(self) -> Result<Record, SkipReason> {
        let issue_ns = ns(self.time_us)?;
        let data = |op| request(op, issue_ns, bytes(self.sector, SECTOR)?, self.bytes.into());
        // Each operation has forms of 6, 10, 12 and 16 bytes; WRITE AND VERIFY is a write.
        let mut record = match self.operation {
            0x08 | 0x28 | 0xa8 | 0x88 => data(Op::Read)?,
            0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e => data(Op::Write)?,
            0x35 | 0x91 => Record::new(Op::Flush, issue_ns, 0, 0),
            0x42 => return Err(UNMAP),
            _ => return Err(NO_REQUEST),
        };
        if let Some(took_us) = self.took_us {
            record.complete = OptTime::at(later(issue_ns, ns(took_us)?)?);
        }
        Ok(record)
    }
}

impl RecordParser for Vscsi {
    fn take(&mut self, bytes: &[u8], number: u64, sink: &mut Sink) -> Result<Parsed, TraceError> {
        if bytes.len() < Version::V1.len() {
            return Ok(Parsed::Part);
        }
        let bad = |what: &str| {
            let what = format!("record {number} {what}");
            Err(TraceError::Bad { line: number, what })
        };
        let Some(version) = Version::of(bytes) else {
            return bad("has no valid vscsi version; the file is damaged, or of \
                        another format");
        };
        if *self.version.get_or_insert(version) != version {
            return bad("is of another version than those before; the file is damaged");
        }
        let Some(record) = bytes.get(..version.len()) else { return Ok(Parsed::Part) };
        match version.read(record).record() {
            Ok(record) => {
                self.flushes |= record.op == Op::Flush;
                sink.record(record, number)?;
            }
            Err(reason) => sink.skip(reason, number),
        }
        Ok(Parsed::Record(version.len()))
    }

    /// A trace has flushes only if there is one: otherwise they may have been left out.
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            completion: self.version == Some(Version::V2),
            flush: self.flushes,
            clock_ns: MICROSECOND,
            ..Capabilities::READS_AND_WRITES
        }
    }
}

/// Whether `head` starts with at least two records, all of one version and with valid
/// operations.
pub(crate) fn is_head(head: &[u8]) -> bool {
    Version::of(head).is_some_and(|version| {
        let records = head.chunks_exact(version.len()).take(LOOKED_AT);
        let whole = records.len();
        whole >= 2
            && records.into_iter().all(|record| {
                Version::of(record) == Some(version)
                    && version.read(record).operation <= OPERATION_MAX
            })
    })
}
