//! Writes every replayed request with its times and costs, one row each. The columns are
//! specified in `docs/spec/requests-parquet.md`.

use std::sync::Arc;

use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use prism_trace::Symbols;
use prism_workload::Finished;

use super::columns::{Columns, properties, write_error};
use super::write::GROUP_ROWS;
use crate::atomic::OutputFile;
use crate::error::HostError;

const SCHEMA: &str = "message prism_requests {
    REQUIRED INT32 pass;
    REQUIRED BYTE_ARRAY op (STRING);
    REQUIRED INT64 offset_bytes (INTEGER(64,false));
    REQUIRED INT64 len_bytes (INTEGER(64,false));
    REQUIRED INT64 trace_issue_ns;
    REQUIRED INT64 arrival_ns;
    REQUIRED INT64 submit_ns;
    REQUIRED INT64 complete_ns;
    REQUIRED INT64 latency_ns;
    REQUIRED INT32 in_flight;
    REQUIRED INT32 flash_reads;
    REQUIRED INT32 buffer_hits;
    REQUIRED INT32 units_written;
    REQUIRED INT32 units_unmapped;
    REQUIRED INT64 buffer_wait_ns;
    OPTIONAL BYTE_ARRAY device (STRING);
    OPTIONAL INT32 pid;
    OPTIONAL BYTE_ARRAY comm (STRING);
    OPTIONAL BYTE_ARRAY file (STRING);
    OPTIONAL BYTE_ARRAY phase (STRING);
}";

/// Columns whose neighbours differ by little.
const DELTA_COLUMNS: [&str; 5] =
    ["trace_issue_ns", "arrival_ns", "submit_ns", "complete_ns", "latency_ns"];

/// Writes requests as they complete.
pub struct RequestsWriter {
    file: SerializedFileWriter<OutputFile>,
    name: String,
    symbols: Symbols,
    group: Vec<Finished>,
}

impl RequestsWriter {
    /// Writes to `out` the requests whose names are in `symbols`.
    ///
    /// # Errors
    /// [`HostError::Write`] if it cannot be begun.
    pub fn create(out: OutputFile, symbols: Symbols) -> Result<Self, HostError> {
        let name = out.name().to_owned();
        let schema = Arc::new(parse_message_type(SCHEMA).expect("the schema is fixed"));
        let file = SerializedFileWriter::new(out, schema, Arc::new(properties(&DELTA_COLUMNS)))
            .map_err(|error| write_error(&name, error))?;
        Ok(Self { file, name, symbols, group: Vec::with_capacity(GROUP_ROWS) })
    }

    /// Adds one request.
    ///
    /// # Errors
    /// [`HostError::Write`] if the file cannot be written.
    pub fn add(&mut self, finished: &Finished) -> Result<(), HostError> {
        self.group.push(*finished);
        if self.group.len() == GROUP_ROWS { self.write_group() } else { Ok(()) }
    }

    /// Ends the content of the file, which is still to be committed.
    ///
    /// # Errors
    /// [`HostError::Write`] if it cannot be written.
    pub fn finish(mut self) -> Result<OutputFile, HostError> {
        self.write_group()?;
        self.file.into_inner().map_err(|error| write_error(&self.name, error))
    }

    fn write_group(&mut self) -> Result<(), HostError> {
        if self.group.is_empty() {
            return Ok(());
        }
        let written = write_rows(&mut self.file, &self.group, &self.symbols);
        self.group.clear();
        written.map_err(|error| write_error(&self.name, error))
    }
}

fn write_rows(
    file: &mut SerializedFileWriter<OutputFile>,
    rows: &[Finished],
    symbols: &Symbols,
) -> Result<(), ParquetError> {
    let mut columns = Columns::new(file.next_row_group()?, rows);
    let since = |f: &Finished, at: prism_base::SimTime| Some(at.since(f.origin).0 as i64);
    columns.ints(|f| Some(f.pass as i32))?;
    columns.texts(|f| Some(ByteArray::from(f.completion.op.name())))?;
    columns.longs(|f| Some(f.offset as i64))?;
    columns.longs(|f| Some(f.completion.len as i64))?;
    columns.longs(|f| Some(f.issue_ns))?;
    columns.longs(|f| since(f, f.arrival))?;
    columns.longs(|f| since(f, f.completion.submitted))?;
    columns.longs(|f| since(f, f.completion.completed))?;
    columns.longs(|f| Some(f.completion.completed.since(f.arrival).0 as i64))?;
    columns.ints(|f| Some(f.in_flight as i32))?;
    columns.ints(|f| Some(f.completion.cost.flash_reads as i32))?;
    columns.ints(|f| Some(f.completion.cost.buffer_hits as i32))?;
    columns.ints(|f| Some(f.completion.cost.units_written as i32))?;
    columns.ints(|f| Some(f.completion.cost.unmapped as i32))?;
    columns.longs(|f| Some(f.completion.cost.buffer_wait.0 as i64))?;
    columns.names(symbols, |f| f.issuer.device)?;
    columns.ints(|f| (f.issuer.pid != -1).then_some(f.issuer.pid))?;
    columns.names(symbols, |f| f.issuer.comm)?;
    columns.names(symbols, |f| f.issuer.file)?;
    columns.names(symbols, |f| f.issuer.phase)?;
    columns.close()
}
