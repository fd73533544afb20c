//! Thesios: synthesised traces of storage servers at Google. The columns are separated by
//! commas and found by their names in the header, which is repeated where files were joined.
//!
//! A request is one of a client to the server: it is issued at `start_time` (seconds) and
//! completed `simulated_latency` later, over `request_io_size_bytes` from `file_offset` of the
//! file `filename`. Reads that the server had in memory (`cache_hit` is 1) are skipped and
//! counted, because they do not reach the drive. The application is used as the process.
//!
//! Files have names and no addresses: they get addresses in the order in which their parts are
//! first accessed.
//!
//! Source: Phothilimthana et al., "Thesios", ASPLOS'24; CC-BY 4.0.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use super::columns::{Columns, has_all};
use super::layout::Layout;
use super::rows::{Clock, Row, RowOutput};
use crate::capabilities::Capabilities;
use crate::fields::{SECOND, UNKNOWN_OP, WRONG_FIELDS, in_time_range, later, span, text, whole};
use crate::record::{Op, OptTime, Record};
use crate::skips::SkipReason;

/// The request was served from memory.
pub const CACHE_HIT: SkipReason = SkipReason("read from the server's memory, not from its drive");
/// The table of files is full.
pub const TOO_MANY_FILES: SkipReason = SkipReason("one more file than the 4194304 that are kept");

/// The unit of allocation: such servers write files of many megabytes sequentially, and read
/// pieces of them.
const CHUNK: u64 = 128 << 10;

/// The most files whose names are kept: at about 100 bytes each, 400 MB.
const FILES_MAX: usize = 1 << 22;

/// Shards of a trace are merged from several disks. A minute is far more than the disorder this
/// causes, and costs only memory.
const DISORDER_NS: u64 = 60 * SECOND;

/// The wanted columns; the last three may be missing.
const NAMES: [&str; 8] = [
    "filename",
    "file_offset",
    "op_type",
    "request_io_size_bytes",
    "start_time",
    "simulated_latency",
    "cache_hit",
    "application",
];

/// The number of columns that must exist.
const NEEDED: usize = 5;

/// Reads Thesios lines.
pub(crate) struct Thesios {
    columns: Option<Columns<8>>,
    clock: Clock,
    layout: Layout,
    files: HashMap<Box<[u8]>, u64, FxBuildHasher>,
}

impl Thesios {
    pub fn new() -> Self {
        Self {
            columns: None,
            clock: Clock::new(SECOND),
            layout: Layout::new(CHUNK),
            files: HashMap::default(),
        }
    }

    /// The number of a file, in the order of first appearance.
    fn file(&mut self, name: &[u8]) -> Result<u64, SkipReason> {
        if let Some(&number) = self.files.get(name) {
            return Ok(number);
        }
        if self.files.len() >= FILES_MAX {
            return Err(TOO_MANY_FILES);
        }
        let number = self.files.len() as u64;
        self.files.insert(name.into(), number);
        Ok(number)
    }
}

impl Row for Thesios {
    fn read(&mut self, line: &[u8], out: &mut RowOutput<'_>) -> Result<(), SkipReason> {
        let columns = self.columns.as_ref().ok_or(WRONG_FIELDS)?;
        let [file, offset, kind, len, start, latency, hit, application] = columns.cut(line)?;
        let op = match kind {
            b"READ" => Op::Read,
            b"WRITE" => Op::Write,
            _ => return Err(UNKNOWN_OP),
        };
        if hit == b"1" {
            return Err(CACHE_HIT);
        }
        let issue_ns = in_time_range(self.clock.read(start)?)?;
        let complete = match span(latency, SECOND)? {
            None => OptTime::UNKNOWN,
            Some(took) => OptTime::at(later(issue_ns, took)?),
        };
        let (offset, len) = (whole(offset)?, whole(len)?);
        let (name, comm) = (text(file)?, text(application)?);
        let number = self.file(file)?;
        let first = out.records.len();
        self.layout.place(number, offset, len, |address, len| {
            out.records.push(Record { complete, ..Record::new(op, issue_ns, address, len) });
        })?;
        let (file, comm) = (out.symbols.intern(name), out.symbols.intern(comm));
        for record in &mut out.records[first..] {
            (record.file, record.comm) = (file, comm);
        }
        Ok(())
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            address: false,
            completion: true,
            process: true,
            file: true,
            clock_ns: self.clock.step_ns(),
            ..Capabilities::READS_AND_WRITES
        }
    }

    fn disorder_ns(&self) -> u64 {
        DISORDER_NS
    }

    fn header(&mut self, line: &[u8], is_first: bool) -> Result<bool, String> {
        let is_header = is_first || is_header(line);
        if is_header {
            self.columns = Some(Columns::find(line, &NAMES, NEEDED)?);
        }
        Ok(is_header)
    }
}

/// Whether a line can only be the header of this format.
pub(crate) fn is_header(line: &[u8]) -> bool {
    has_all(line, &NAMES[..NEEDED])
}
