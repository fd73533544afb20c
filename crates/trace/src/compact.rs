//! A record as a fixed number of bytes, for the temporary file of a long trace.
//!
//! Only the process that wrote a record reads it: names stay numbers of the symbol table in
//! memory, and there is no version. Every field keeps its full width, so that every value is
//! read back as it was written, also those of a damaged trace.
//!
//! ```text
//! 0 queue i64   8 issue i64   16 complete i64   24 offset u64   32 len u64   40 inode u64
//! 48 device u32   52 comm u32   56 file u32   60 phase u32   64 pid i32
//! 68 stream u16   70 flags u16   72 op u8   73 hint u8        (little-endian)
//! ```

use prism_base::symbols::Symbol;

use crate::record::{Flags, Op, OptTime, Record};

/// Bytes of one encoded record.
pub const RECORD_BYTES: usize = 74;

/// Means that a time is unknown; no known time has this value.
const UNKNOWN_TIME: i64 = i64::MIN;

/// Appends `record` to `out` as [`RECORD_BYTES`] bytes.
pub fn encode(record: &Record, out: &mut Vec<u8>) {
    let start = out.len();
    for time in [record.queue, OptTime::at(record.issue_ns), record.complete] {
        out.extend_from_slice(&time.get().unwrap_or(UNKNOWN_TIME).to_le_bytes());
    }
    for wide in [record.offset, record.len, record.inode] {
        out.extend_from_slice(&wide.to_le_bytes());
    }
    for symbol in [record.device, record.comm, record.file, record.phase] {
        out.extend_from_slice(&symbol.0.to_le_bytes());
    }
    out.extend_from_slice(&record.pid.to_le_bytes());
    out.extend_from_slice(&record.stream.to_le_bytes());
    out.extend_from_slice(&record.flags.0.to_le_bytes());
    out.extend_from_slice(&[record.op as u8, record.hint]);
    debug_assert_eq!(out.len() - start, RECORD_BYTES);
}

/// The record in `bytes`; `None` if [`encode`] never writes that byte for an operation, which
/// means that the storage changed the bytes.
///
/// # Panics
/// If `bytes` is not [`RECORD_BYTES`] long.
#[must_use]
pub fn decode(bytes: &[u8]) -> Option<Record> {
    assert_eq!(bytes.len(), RECORD_BYTES, "records have one size");
    let op = *Op::ALL.get(usize::from(bytes[72]))?;
    let time = |at| match i64::from_le_bytes(field(bytes, at)) {
        UNKNOWN_TIME => OptTime::UNKNOWN,
        ns => OptTime::at(ns),
    };
    let wide = |at| u64::from_le_bytes(field(bytes, at));
    let symbol = |at| Symbol(u32::from_le_bytes(field(bytes, at)));
    Some(Record {
        queue: time(0),
        issue_ns: i64::from_le_bytes(field(bytes, 8)),
        complete: time(16),
        offset: wide(24),
        len: wide(32),
        inode: wide(40),
        device: symbol(48),
        comm: symbol(52),
        file: symbol(56),
        phase: symbol(60),
        pid: i32::from_le_bytes(field(bytes, 64)),
        stream: u16::from_le_bytes(field(bytes, 68)),
        flags: Flags(u16::from_le_bytes(field(bytes, 70))),
        op,
        hint: bytes[73],
    })
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("the slice has the length of the array")
}
