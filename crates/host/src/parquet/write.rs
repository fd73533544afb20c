//! Records into Parquet, one row group after another.

use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use prism_trace::{Record, Source, Symbol, Symbols};

use super::{Digest, FLAGS, META_KEY, Meta, SCHEMA, VERSION, json};
use crate::atomic::OutputFile;
use crate::error::HostError;
use crate::facts::TraceFacts;

/// Rows of a row group, which is built in memory: 21 MB of records, and small enough
/// that a query over a part of the trace skips the rest.
pub(super) const GROUP_ROWS: usize = 1 << 17;

/// A little slower than the usual 3 and a tenth smaller; traces are written once.
const ZSTD_LEVEL: i32 = 6;

/// Columns whose neighbours differ by little.
const DELTA_COLUMNS: [&str; 4] = ["issue_ns", "queue_ns", "complete_ns", "offset_bytes"];

/// Writes every record of `source`, and what is known of the trace, to `out`, which the
/// caller commits. Gives the number of records.
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
    let mut file =
        SerializedFileWriter::new(out, schema, Arc::new(properties())).map_err(failed)?;
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

fn properties() -> WriterProperties {
    let level = ZstdLevel::try_new(ZSTD_LEVEL).expect("the level is one of zstd's");
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("prism ", env!("CARGO_PKG_VERSION")).into())
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_compression(Compression::ZSTD(level));
    for column in DELTA_COLUMNS {
        let path = ColumnPath::from(column);
        builder = builder
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    builder.build()
}

fn write_group(
    file: &mut SerializedFileWriter<&mut OutputFile>,
    rows: &[Record],
    symbols: &Symbols,
) -> Result<(), ParquetError> {
    let mut columns = Columns { group: file.next_row_group()?, rows, levels: Vec::new() };
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
    columns.group.close()?;
    Ok(())
}

/// The columns of one row group, written in the order of the schema.
struct Columns<'a, 'b> {
    group: SerializedRowGroupWriter<'a, &'b mut OutputFile>,
    rows: &'a [Record],
    levels: Vec<i16>,
}

/// Writes one column of a physical type: the values that are there, and for each row
/// whether one is. The levels of a required column are not looked at by Parquet.
macro_rules! column {
    ($columns:ident, $kind:ident, $of:ident) => {{
        $columns.levels.clear();
        let mut values = Vec::with_capacity($columns.rows.len());
        for row in $columns.rows {
            let value = $of(row);
            $columns.levels.push(i16::from(value.is_some()));
            values.extend(value);
        }
        let mut column = $columns.group.next_column()?.expect("the schema has this column");
        match column.untyped() {
            ColumnWriter::$kind(writer) => {
                writer.write_batch(&values, Some(&$columns.levels), None)?
            }
            _ => unreachable!("the columns are written in the order of the schema"),
        };
        column.close()
    }};
}

impl Columns<'_, '_> {
    fn longs(&mut self, of: impl Fn(&Record) -> Option<i64>) -> Result<(), ParquetError> {
        column!(self, Int64ColumnWriter, of)
    }

    fn ints(&mut self, of: impl Fn(&Record) -> Option<i32>) -> Result<(), ParquetError> {
        column!(self, Int32ColumnWriter, of)
    }

    fn bools(&mut self, of: impl Fn(&Record) -> bool) -> Result<(), ParquetError> {
        let some = |row: &Record| Some(of(row));
        column!(self, BoolColumnWriter, some)
    }

    fn texts(&mut self, of: impl Fn(&Record) -> Option<ByteArray>) -> Result<(), ParquetError> {
        column!(self, ByteArrayColumnWriter, of)
    }

    fn names(
        &mut self,
        symbols: &Symbols,
        of: impl Fn(&Record) -> Symbol,
    ) -> Result<(), ParquetError> {
        self.texts(|row| {
            let symbol = of(row);
            (symbol != Symbol::NONE).then(|| ByteArray::from(symbols.name(symbol)))
        })
    }
}

/// Parquet wraps the error of the output; the kind of the inner one tells a full disk.
fn write_error(name: &str, error: ParquetError) -> HostError {
    let source = match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(io) => *io,
            Err(other) => std::io::Error::other(other),
        },
        other => std::io::Error::other(other),
    };
    HostError::Write { file: name.to_owned(), source }
}
