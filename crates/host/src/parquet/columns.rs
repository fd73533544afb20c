//! Writes rows of any type to Parquet column by column, in the order of the schema.

use std::io::Write;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::types::ColumnPath;
use prism_trace::{Symbol, Symbols};

use crate::error::HostError;

/// A little slower than the usual 3 and a tenth smaller; files are written once.
const ZSTD_LEVEL: i32 = 6;

/// How every file is written; in the columns `delta`, neighbouring values differ by little.
pub(super) fn properties(delta: &[&str]) -> WriterProperties {
    let level = ZstdLevel::try_new(ZSTD_LEVEL).expect("the level is one of zstd's");
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("prism ", env!("CARGO_PKG_VERSION")).into())
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_compression(Compression::ZSTD(level));
    for &column in delta {
        let path = ColumnPath::from(column);
        builder = builder
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    builder.build()
}

/// The columns of one row group, written in the order of the schema.
pub(super) struct Columns<'a, R, W: Write> {
    group: SerializedRowGroupWriter<'a, W>,
    rows: &'a [R],
    levels: Vec<i16>,
}

/// Writes one column of a physical type: the known values, and for each row whether there is
/// one. Parquet ignores these levels for a required column.
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

impl<'a, R, W: Write + Send> Columns<'a, R, W> {
    pub(super) fn new(group: SerializedRowGroupWriter<'a, W>, rows: &'a [R]) -> Self {
        Self { group, rows, levels: Vec::new() }
    }

    pub(super) fn close(self) -> Result<(), ParquetError> {
        self.group.close().map(|_| ())
    }

    pub(super) fn longs(&mut self, of: impl Fn(&R) -> Option<i64>) -> Result<(), ParquetError> {
        column!(self, Int64ColumnWriter, of)
    }

    pub(super) fn ints(&mut self, of: impl Fn(&R) -> Option<i32>) -> Result<(), ParquetError> {
        column!(self, Int32ColumnWriter, of)
    }

    pub(super) fn bools(&mut self, of: impl Fn(&R) -> bool) -> Result<(), ParquetError> {
        let some = |row: &R| Some(of(row));
        column!(self, BoolColumnWriter, some)
    }

    pub(super) fn optional_bools(
        &mut self,
        of: impl Fn(&R) -> Option<bool>,
    ) -> Result<(), ParquetError> {
        column!(self, BoolColumnWriter, of)
    }

    pub(super) fn doubles(&mut self, of: impl Fn(&R) -> Option<f64>) -> Result<(), ParquetError> {
        column!(self, DoubleColumnWriter, of)
    }

    pub(super) fn texts(
        &mut self,
        of: impl Fn(&R) -> Option<ByteArray>,
    ) -> Result<(), ParquetError> {
        column!(self, ByteArrayColumnWriter, of)
    }

    pub(super) fn names(
        &mut self,
        symbols: &Symbols,
        of: impl Fn(&R) -> Symbol,
    ) -> Result<(), ParquetError> {
        self.texts(|row| {
            let symbol = of(row);
            (symbol != Symbol::NONE).then(|| ByteArray::from(symbols.name(symbol)))
        })
    }
}

/// Parquet wraps the error of the output; the kind of the inner error shows whether the disk is
/// full.
pub(super) fn write_error(name: &str, error: ParquetError) -> HostError {
    let source = match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(io) => *io,
            Err(other) => std::io::Error::other(other),
        },
        other => std::io::Error::other(other),
    };
    HostError::Write { file: name.to_owned(), source }
}
