//! Writes records to Parquet, one row group after another.

use std::sync::Arc;

use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use prism_trace::{Record, Source, Symbols, TraceFacts};

use super::columns::{Columns, properties, write_error};
use super::{Digest, FLAGS, META_KEY, Meta, SCHEMA, VERSION, json};
use crate::atomic::OutputFile;
use crate::error::HostError;

/// Rows of a row group, which is built in memory: 21 MB of records, and small enough
/// that a query over a part of the trace skips the rest.
pub(super) const GROUP_ROWS: usize = 1 << 17;

/// Columns whose neighbours differ by little.
const DELTA_COLUMNS: [&str; 4] = ["issue_ns", "queue_ns", "complete_ns", "offset_bytes"];

/// Writes every record of `source`, and the facts about the trace, to `out`, which the caller
/// commits. Returns the number of records.
///
/// # Errors
/// [`HostError`] if the source cannot be read or the output cannot be written.
pub fn write(
    out: &mut OutputFile,
    source: &mut dyn Source,
    symbols: &Symbols,
    facts: &TraceFacts,
) -> Result<u64, HostError> {
    source.rewind()?;
    let name = out.name().to_owned();
    let failed = |error| write_error(&name, error);
    let schema = Arc::new(parse_message_type(SCHEMA).expect("the schema is fixed"));
    let mut file = SerializedFileWriter::new(out, schema, Arc::new(properties(&DELTA_COLUMNS)))
        .map_err(failed)?;
    let mut digest = Digest::new(facts);
    let (mut group, mut batch) = (Vec::with_capacity(GROUP_ROWS), Vec::new());
    loop {
        source.next_batch(&mut batch)?;
        for record in &batch {
            digest.add(record, symbols);
            group.push(*record);
            if group.len() == GROUP_ROWS {
                write_group(&mut file, &group, symbols).map_err(failed)?;
                group.clear();
            }
        }
        if batch.is_empty() {
            break;
        }
    }
    if !group.is_empty() {
        write_group(&mut file, &group, symbols).map_err(failed)?;
    }
    let meta = Meta {
        version: VERSION,
        records: digest.records,
        digest: digest.text(),
        facts: facts.clone(),
    };
    file.append_key_value_metadata(KeyValue::new(META_KEY.to_owned(), json(&meta)));
    file.close().map_err(failed)?;
    Ok(digest.records)
}

fn write_group(
    file: &mut SerializedFileWriter<&mut OutputFile>,
    rows: &[Record],
    symbols: &Symbols,
) -> Result<(), ParquetError> {
    let mut columns = Columns::new(file.next_row_group()?, rows);
    columns.longs(|r| Some(r.issue_ns))?;
    columns.longs(|r| r.queue.get())?;
    columns.longs(|r| r.complete.get())?;
    columns.texts(|r| Some(ByteArray::from(r.op.name())))?;
    columns.longs(|r| Some(r.offset as i64))?;
    columns.longs(|r| Some(r.len as i64))?;
    columns.names(symbols, |r| r.device)?;
    columns.ints(|r| (r.pid != -1).then_some(r.pid))?;
    columns.names(symbols, |r| r.comm)?;
    columns.names(symbols, |r| r.file)?;
    columns.longs(|r| (r.inode != 0).then_some(r.inode as i64))?;
    columns.names(symbols, |r| r.phase)?;
    columns.ints(|r| (r.stream != 0).then_some(i32::from(r.stream)))?;
    columns.ints(|r| (r.hint != 0).then_some(i32::from(r.hint)))?;
    for (_, flag) in FLAGS {
        columns.bools(|r| r.flags.has(flag))?;
    }
    columns.close()
}
