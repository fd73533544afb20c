//! Numbers of any table: edges of graphs are read, and values of vertices written. The tables have
//! no metadata of Prism.

use std::fs::File;
use std::sync::Arc;

use parquet::basic::{ConvertedType, LogicalType, Type as PhysicalType};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{DoubleType, FloatType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnDescriptor;

use super::columns::{Columns, properties, write_error};
use super::read::{Column, check_compression, inconsistent};
use super::write::GROUP_ROWS;
use crate::atomic::OutputFile;
use crate::error::HostError;
use crate::guard::guarded;

/// A number of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// Not negative.
    Whole(u64),
    /// Negative.
    Negative(i64),
    /// With a fraction, or not finite.
    Real(f64),
}

impl Number {
    /// The nearest floating-point number.
    #[must_use]
    pub fn real(self) -> f64 {
        match self {
            Self::Whole(number) => number as f64,
            Self::Negative(number) => number as f64,
            Self::Real(number) => number,
        }
    }
}

/// Rows read at once.
const BATCH_ROWS: usize = 1 << 14;

/// Reads columns of numbers.
pub struct NumbersReader {
    name: String,
    file: SerializedFileReader<File>,
    /// The place in the schema of each column that is read.
    places: Vec<usize>,
    group: usize,
    left: usize,
    open: Vec<NumberColumn>,
    rows: u64,
}

impl NumbersReader {
    /// Opens `file`, called `name` in messages.
    ///
    /// # Errors
    /// [`HostError::Content`] if it is damaged, or has a compression that cannot be unpacked.
    pub fn open(file: File, name: &str) -> Result<Self, HostError> {
        let file = guarded(|| SerializedFileReader::new(file))
            .unwrap_or_else(inconsistent)
            .map_err(|error| damaged(name, &error))?;
        check_compression(name, &file)?;
        let name = name.to_owned();
        Ok(Self { name, file, places: Vec::new(), group: 0, left: 0, open: Vec::new(), rows: 0 })
    }

    /// The names of all columns.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.schema().map(|column| column.path().string()).collect()
    }

    /// Rows that were read.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Rows of the file.
    #[must_use]
    pub fn rows_total(&self) -> u64 {
        u64::try_from(self.file.metadata().file_metadata().num_rows()).unwrap_or(0)
    }

    fn schema(&self) -> impl Iterator<Item = &ColumnDescriptor> {
        let schema = self.file.metadata().file_metadata().schema_descr();
        schema.columns().iter().map(|column| &**column)
    }

    /// Reads these columns from now on, by their places.
    ///
    /// # Errors
    /// [`HostError::Content`] for a column without numbers.
    pub fn choose(&mut self, places: &[usize]) -> Result<(), HostError> {
        for &place in places {
            let column = self.schema().nth(place).expect("the place is one of the names");
            let has_numbers = matches!(
                column.physical_type(),
                PhysicalType::INT32
                    | PhysicalType::INT64
                    | PhysicalType::FLOAT
                    | PhysicalType::DOUBLE
            );
            // Old writers give dates and decimal fractions the converted type only.
            let is_other = matches!(
                column.logical_type_ref(),
                Some(logical) if !matches!(logical, LogicalType::Integer(_))
            ) || !is_plain(column.converted_type());
            // In a group that may be missing, a level does not say which of both is.
            let is_nested = column.max_rep_level() > 0 || column.max_def_level() > 1;
            if !has_numbers || is_other || is_nested {
                let column = column.path().string();
                let what = "has no plain numbers; write whole numbers or DOUBLE, not in a group";
                return Err(self.wrong(&format!("the column {column:?} {what}")));
            }
        }
        self.places = places.to_vec();
        Ok(())
    }

    /// Replaces the content of `batch` by the next rows, each with as many numbers as columns were
    /// chosen; leaves it empty at the end.
    ///
    /// # Errors
    /// [`HostError::Content`] if the file is damaged, or a row has no number.
    pub fn next_batch(&mut self, batch: &mut Vec<Number>) -> Result<(), HostError> {
        batch.clear();
        let read = guarded(|| self.read_batch(batch));
        read.unwrap_or_else(|| inconsistent().map_err(|error| damaged(&self.name, &error)))
    }

    fn read_batch(&mut self, batch: &mut Vec<Number>) -> Result<(), HostError> {
        while self.left == 0 {
            if self.group == self.file.num_row_groups() {
                return Ok(());
            }
            self.open_group()?;
        }
        let rows = self.left.min(BATCH_ROWS);
        for column in &mut self.open {
            column.read(rows).map_err(|error| damaged(&self.name, &error))?;
        }
        for row in 0..rows {
            for (column, place) in self.open.iter_mut().zip(&self.places) {
                let Some(number) = column.take(row) else {
                    let number = self.rows + row as u64 + 1;
                    let column = &self.names()[*place];
                    return Err(self.wrong(&format!("row {number} has no {column}")));
                };
                batch.push(number);
            }
        }
        self.rows += rows as u64;
        self.left -= rows;
        Ok(())
    }

    fn open_group(&mut self) -> Result<(), HostError> {
        let damaged = |error| damaged(&self.name, &error);
        let group = self.file.get_row_group(self.group).map_err(damaged)?;
        self.left = usize::try_from(group.metadata().num_rows())
            .map_err(|_| damaged(ParquetError::General("a negative number of rows".into())))?;
        let schema = group.metadata().schema_descr();
        let open = self.places.iter().map(|&place| {
            let unsigned = is_unsigned(&schema.column(place));
            Ok(NumberColumn::new(group.get_column_reader(place)?, unsigned))
        });
        self.open = open.collect::<Result<_, ParquetError>>().map_err(damaged)?;
        self.group += 1;
        Ok(())
    }

    fn wrong(&self, what: &str) -> HostError {
        HostError::content(&self.name, what)
    }
}

/// Whether numbers of this type are what they are stored as.
fn is_plain(converted: ConvertedType) -> bool {
    use ConvertedType as Kind;
    matches!(
        converted,
        Kind::NONE
            | Kind::INT_8
            | Kind::INT_16
            | Kind::INT_32
            | Kind::INT_64
            | Kind::UINT_8
            | Kind::UINT_16
            | Kind::UINT_32
            | Kind::UINT_64
    )
}

fn is_unsigned(column: &ColumnDescriptor) -> bool {
    matches!(
        column.converted_type(),
        ConvertedType::UINT_8
            | ConvertedType::UINT_16
            | ConvertedType::UINT_32
            | ConvertedType::UINT_64
    )
}

fn damaged(name: &str, error: &ParquetError) -> HostError {
    let what = format!("the Parquet file is damaged or incomplete ({error}); write it again");
    HostError::content(name, what)
}

/// A column of one row group.
enum NumberColumn {
    Int(Column<Int32Type>, bool),
    Long(Column<Int64Type>, bool),
    Float(Column<FloatType>),
    Double(Column<DoubleType>),
}

impl NumberColumn {
    fn new(reader: ColumnReader, unsigned: bool) -> Self {
        match reader {
            reader @ ColumnReader::Int32ColumnReader(_) => Self::Int(Column::new(reader), unsigned),
            reader @ ColumnReader::FloatColumnReader(_) => Self::Float(Column::new(reader)),
            reader @ ColumnReader::DoubleColumnReader(_) => Self::Double(Column::new(reader)),
            reader => Self::Long(Column::new(reader), unsigned),
        }
    }

    fn read(&mut self, rows: usize) -> Result<(), ParquetError> {
        match self {
            Self::Int(column, _) => column.read(rows),
            Self::Long(column, _) => column.read(rows),
            Self::Float(column) => column.read(rows),
            Self::Double(column) => column.read(rows),
        }
    }

    fn take(&mut self, row: usize) -> Option<Number> {
        let signed =
            |value: i64| u64::try_from(value).map_or(Number::Negative(value), Number::Whole);
        Some(match self {
            Self::Int(column, true) => Number::Whole((*column.take(row)? as u32).into()),
            Self::Int(column, false) => signed((*column.take(row)?).into()),
            Self::Long(column, true) => Number::Whole(*column.take(row)? as u64),
            Self::Long(column, false) => signed(*column.take(row)?),
            Self::Float(column) => Number::Real((*column.take(row)?).into()),
            Self::Double(column) => Number::Real(*column.take(row)?),
        })
    }
}

/// Writes a table of two columns: whole numbers, and a number for each.
pub struct NumbersWriter {
    file: SerializedFileWriter<OutputFile>,
    name: String,
    real: bool,
    group: Vec<(u64, Number)>,
}

impl NumbersWriter {
    /// Writes to `out` columns of these names; the numbers of the second one are all real, or all
    /// whole.
    ///
    /// # Errors
    /// [`HostError::Write`] if it cannot be begun.
    ///
    /// # Panics
    /// If the names are no words.
    pub fn create(out: OutputFile, names: [&str; 2], real: bool) -> Result<Self, HostError> {
        let name = out.name().to_owned();
        let kind = if real { "DOUBLE" } else { "INT64" };
        let unsigned = if real { "" } else { " (INTEGER(64,false))" };
        let [first, second] = names;
        let schema = format!(
            "message numbers {{ REQUIRED INT64 {first} (INTEGER(64,false)); \
             REQUIRED {kind} {second}{unsigned}; }}"
        );
        let schema = Arc::new(parse_message_type(&schema).expect("the names are words"));
        let file = SerializedFileWriter::new(out, schema, Arc::new(properties(&[first])))
            .map_err(|error| write_error(&name, error))?;
        Ok(Self { file, name, real, group: Vec::with_capacity(GROUP_ROWS) })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// [`HostError::Write`] if the file cannot be written.
    pub fn add(&mut self, first: u64, second: Number) -> Result<(), HostError> {
        self.group.push((first, second));
        if self.group.len() == GROUP_ROWS { self.write_group() } else { Ok(()) }
    }

    /// Ends the content of the file, which is still to be committed.
    ///
    /// # Errors
    /// [`HostError::Write`] if it cannot be written.
    pub fn finish(mut self) -> Result<OutputFile, HostError> {
        if !self.group.is_empty() {
            self.write_group()?;
        }
        self.file.into_inner().map_err(|error| write_error(&self.name, error))
    }

    fn write_group(&mut self) -> Result<(), HostError> {
        let written = self.write_rows();
        self.group.clear();
        written.map_err(|error| write_error(&self.name, error))
    }

    fn write_rows(&mut self) -> Result<(), ParquetError> {
        let mut columns = Columns::new(self.file.next_row_group()?, &self.group);
        columns.longs(|(first, _)| Some(*first as i64))?;
        if self.real {
            columns.doubles(|(_, number)| Some(number.real()))?;
        } else {
            columns.longs(|(_, number)| match number {
                Number::Whole(number) => Some(*number as i64),
                Number::Negative(number) => Some(*number),
                Number::Real(number) => Some(*number as i64),
            })?;
        }
        columns.close()
    }
}

#[cfg(test)]
mod tests {
    use parquet::schema::types::SchemaDescriptor;

    use super::*;

    fn written(real: bool, rows: &[(u64, Number)]) -> File {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("numbers.parquet");
        let out = OutputFile::create(&path).unwrap();
        let mut writer = NumbersWriter::create(out, ["vertex", "value"], real).unwrap();
        for (first, second) in rows {
            writer.add(*first, *second).unwrap();
        }
        writer.finish().unwrap().commit().unwrap();
        File::open(path).unwrap()
    }

    #[test]
    fn numbers_are_read_as_they_were_written() {
        let whole: Vec<_> = (0..40_000).map(|n| (u64::MAX - n, Number::Whole(n * n))).collect();
        let real = vec![(1, Number::Real(0.25)), (2, Number::Real(f64::INFINITY))];
        for (is_real, rows) in [(false, whole), (true, real)] {
            let mut reader = NumbersReader::open(written(is_real, &rows), "t").unwrap();
            assert_eq!(reader.names(), ["vertex", "value"]);
            reader.choose(&[1, 0]).unwrap();
            let (mut batch, mut read) = (Vec::new(), Vec::new());
            loop {
                reader.next_batch(&mut batch).unwrap();
                if batch.is_empty() {
                    break;
                }
                read.extend(batch.chunks(2).map(|pair| (pair[1], pair[0])));
            }
            let rows: Vec<_> = rows.iter().map(|(id, n)| (Number::Whole(*id), *n)).collect();
            assert!(read == rows);
        }
    }

    /// A file with one row, whose only column has this schema and the value 5.
    fn of_schema(schema: &str) -> File {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("one.parquet");
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let most = SchemaDescriptor::new(schema.clone()).column(0).max_def_level();
        let mut file =
            SerializedFileWriter::new(File::create(&path).unwrap(), schema, Arc::default())
                .unwrap();
        let mut group = file.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int32Type>().write_batch(&[5], Some(&[most]), None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        file.close().unwrap();
        File::open(path).unwrap()
    }

    #[test]
    fn what_is_no_plain_number_is_refused() {
        let check = |column: &str, expected: bool| {
            let file = of_schema(&format!("message t {{ {column} }}"));
            let mut reader = NumbersReader::open(file, "t").unwrap();
            let chosen = reader.choose(&[0]);
            assert_eq!(chosen.is_ok(), expected, "{column}: {chosen:?}");
            if expected {
                let mut batch = Vec::new();
                reader.next_batch(&mut batch).unwrap();
                assert_eq!(batch, [Number::Whole(5)], "{column}");
            }
        };
        check("REQUIRED INT32 a;", true);
        check("OPTIONAL INT32 a;", true);
        check("OPTIONAL INT32 a (INT_16);", true);
        check("REQUIRED GROUP g { OPTIONAL INT32 a; }", true);
        check("REQUIRED INT32 a (DATE);", false);
        check("REQUIRED INT32 a (DECIMAL(9,2));", false);
        check("REQUIRED INT32 a (TIME_MILLIS);", false);
        check("OPTIONAL GROUP g { OPTIONAL INT32 a; }", false);
    }

    #[test]
    fn a_damaged_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        std::fs::write(&path, b"PAR1 and no more").unwrap();
        let error = NumbersReader::open(File::open(&path).unwrap(), "t").err().unwrap();
        assert!(error.to_string().starts_with("t: the Parquet file is damaged"), "{error}");
    }
}
