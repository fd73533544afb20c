//! Traces of caches in libCacheSim's binary formats: `oracleGeneral`, which has no header, and
//! `lcs`, which has one of 1024 or 8192 bytes.
//!
//! A record of oracleGeneral has 24 bytes, little-endian and packed: time in seconds (u32),
//! object (u64), size in bytes (u32), and when the object is next requested, which is not used.
//! Such a file has no magic number, so the format is read only with `--format oracle-general`.
//!
//! Operations are not recorded: every request counts as a read, and the report says so. An
//! object is a block address in some of these traces and a hash in others, and the file does
//! not say which. It is therefore treated as a name: objects get addresses in the order of
//! their first use, with the size they had then; one that grows gets more space at the end. How
//! often and how soon objects are requested again is preserved; which objects were neighbours
//! on a disk is not.
//!
//! Source: libCacheSim, traceReader/generalReader/lcs.h and its oracleGeneral reader.

use super::cache_request::{CacheRequest, ORACLE_LEN, oracle_record};
use super::layout::Layout;
use super::lcs::Header;
use super::records::{Parsed, RecordParser};
use crate::capabilities::Capabilities;
use crate::error::TraceError;
use crate::fields::{SECOND, UNKNOWN_OP, in_time_range};
use crate::record::{Op, Record};
use crate::sink::Sink;
use crate::skips::SkipReason;
use crate::symbols::Symbol;

/// Space is allocated in pages, so that no two objects share one.
const PAGE: u64 = 4096;

/// The encoding of the records of a file.
#[derive(Debug)]
enum Form {
    OracleGeneral,
    /// With the header, once it was read.
    Lcs(Option<Header>),
}

/// Reads traces of caches.
#[derive(Debug)]
pub(crate) struct Cached {
    form: Form,
    layout: Layout,
    /// A request had no operation.
    nameless: bool,
    /// The device of the last request, by its tenant: most requests have the same tenant as the
    /// one before.
    tenant: Option<(u64, Symbol)>,
}

/// The operation of a request; `None` if it is unknown.
fn operation(number: u64) -> Result<Option<Op>, SkipReason> {
    Ok(match number {
        0 => None,
        // get, gets, read
        1 | 2 | 12 => Some(Op::Read),
        // set, add, cas, replace, append, prepend, incr, decr, write, update
        3..=8 | 10 | 11 | 13 | 14 => Some(Op::Write),
        // delete
        9 => Some(Op::Discard),
        _ => return Err(UNKNOWN_OP),
    })
}

impl Cached {
    pub fn oracle_general() -> Self {
        Self::new(Form::OracleGeneral)
    }

    pub fn lcs() -> Self {
        Self::new(Form::Lcs(None))
    }

    fn new(form: Form) -> Self {
        Self { form, layout: Layout::new(PAGE), nameless: false, tenant: None }
    }

    fn unit_ns(&self) -> u64 {
        match &self.form {
            Form::Lcs(Some(header)) => header.unit_ns,
            Form::OracleGeneral | Form::Lcs(None) => SECOND,
        }
    }

    fn request(
        &mut self,
        request: CacheRequest,
        number: u64,
        sink: &mut Sink,
    ) -> Result<Result<(), SkipReason>, TraceError> {
        let device = match (request.tenant, self.tenant) {
            (None, _) => Symbol::NONE,
            (Some(tenant), Some((known, symbol))) if tenant == known => symbol,
            (Some(tenant), _) => {
                let symbol = sink.symbols.intern(&tenant.to_string());
                self.tenant = Some((tenant, symbol));
                symbol
            }
        };
        let mut placed = Vec::with_capacity(1);
        let result = self.placed(request, device, &mut placed);
        placed.into_iter().try_for_each(|record| sink.record(record, number))?;
        Ok(result)
    }

    fn placed(
        &mut self,
        request: CacheRequest,
        device: Symbol,
        out: &mut Vec<Record>,
    ) -> Result<(), SkipReason> {
        let known = operation(request.operation)?;
        let time = request.time.checked_mul(self.unit_ns()).and_then(|ns| i64::try_from(ns).ok());
        let issue_ns = in_time_range(time.unwrap_or(i64::MAX))?;
        self.nameless |= known.is_none();
        let op = known.unwrap_or(Op::Read);
        self.layout.place(request.object, 0, request.size, |address, len| {
            out.push(Record { device, ..Record::new(op, issue_ns, address, len) });
        })
    }
}

impl RecordParser for Cached {
    fn take(&mut self, bytes: &[u8], number: u64, sink: &mut Sink) -> Result<Parsed, TraceError> {
        let (request, len) = match &mut self.form {
            Form::Lcs(header @ None) => {
                let found = Header::read(bytes);
                let found = found.map_err(|what| TraceError::Bad { line: number, what })?;
                let Some(found) = found else { return Ok(Parsed::Part) };
                return Ok(Parsed::Header(header.insert(found).len));
            }
            Form::Lcs(Some(header)) => match bytes.get(..header.record_len) {
                Some(record) => (header.record(record), header.record_len),
                None => return Ok(Parsed::Part),
            },
            Form::OracleGeneral => match bytes.get(..ORACLE_LEN) {
                Some(record) => (oracle_record(record), ORACLE_LEN),
                None => return Ok(Parsed::Part),
            },
        };
        if let Err(reason) = self.request(request, number, sink)? {
            sink.skip(reason, number);
        }
        Ok(Parsed::Record(len))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            operation: !self.nameless,
            address: false,
            discard: !self.nameless,
            clock_ns: self.unit_ns(),
            ..Capabilities::READS_AND_WRITES
        }
    }
}
