//! Writes a table of typed columns: as Parquet, or as CSV.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};
use prism_base::{Column, DataTable, Values};

use super::columns::{Columns, properties, write_error};
use super::write::GROUP_ROWS;
use crate::atomic::OutputFile;
use crate::error::HostError;

/// Writes `table` as Parquet to `out`, which the caller commits. All columns are optional, and its
/// facts are key-value metadata.
///
/// # Errors
/// [`HostError::Write`] if it cannot be written.
///
/// # Panics
/// If columns differ in length.
pub fn write_table(out: &mut OutputFile, table: &DataTable) -> Result<(), HostError> {
    let name = out.name().to_owned();
    write_all(out, table).map_err(|error| write_error(&name, error))
}

fn write_all(out: &mut OutputFile, table: &DataTable) -> Result<(), ParquetError> {
    let fields = table.columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    let schema = Type::group_type_builder("prism_table").with_fields(fields).build()?;
    let mut file = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties(&[])))?;
    let rows: Vec<usize> = (0..table.rows()).collect();
    for rows in rows.chunks(GROUP_ROWS) {
        let mut group = Columns::new(file.next_row_group()?, rows);
        for column in &table.columns {
            match &column.values {
                Values::Ints(values) => group.longs(|&row| values[row])?,
                Values::Floats(values) => group.doubles(|&row| values[row])?,
                Values::Bools(values) => group.optional_bools(|&row| values[row])?,
                Values::Texts(values) => {
                    group.texts(|&row| values[row].as_deref().map(ByteArray::from))?;
                }
            };
        }
        group.close()?;
    }
    for (key, text) in &table.facts {
        file.append_key_value_metadata(KeyValue::new(key.clone(), text.clone()));
    }
    file.close().map(|_| ())
}

fn field(column: &Column) -> Result<TypePtr, ParquetError> {
    let (physical, logical) = match &column.values {
        Values::Ints(_) => (Physical::INT64, None),
        Values::Floats(_) => (Physical::DOUBLE, None),
        Values::Bools(_) => (Physical::BOOLEAN, None),
        Values::Texts(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let field = Type::primitive_type_builder(&column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()?;
    Ok(Arc::new(field))
}

/// Writes `table` as CSV to `out`, which the caller commits: as in RFC 4180, with a line of names
/// and empty fields where there is no value. Its facts are left out.
///
/// # Errors
/// [`HostError::Write`] if it cannot be written.
pub fn write_csv(out: &mut OutputFile, table: &DataTable) -> Result<(), HostError> {
    let names: Vec<String> = table.columns.iter().map(|column| quoted(&column.name)).collect();
    let lines = (0..table.rows()).map(|row| {
        let values = table.columns.iter().map(|column| column.values.text(row));
        let values: Vec<String> =
            values.map(|value| value.map_or_else(String::new, |text| quoted(&text))).collect();
        values.join(",")
    });
    for line in std::iter::once(names.join(",")).chain(lines) {
        write!(out, "{line}\r\n").map_err(|error| out.failed(error))?;
    }
    Ok(())
}

/// A field of CSV. An empty text is quoted, so that it differs from a missing one.
fn quoted(text: &str) -> String {
    if text.is_empty() || text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

/// Writes a table to a file whose name ends in `.csv`, or else as Parquet, and commits it.
///
/// # Errors
/// [`HostError::Write`] if it cannot be written.
pub fn write_data_set(
    mut out: OutputFile,
    path: &Path,
    table: &DataTable,
) -> Result<(), HostError> {
    if path.extension().is_some_and(|end| end == "csv") {
        write_csv(&mut out, table)?;
    } else {
        write_table(&mut out, table)?;
    }
    out.commit()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;

    fn table() -> DataTable {
        let column = |name: &str, values| Column { name: name.into(), values };
        let texts = ["a,b", "", "say \"x\""].map(|text| Some(text.to_owned())).to_vec();
        DataTable {
            columns: vec![
                column("design", Values::Ints(vec![Some(0), Some(1), None])),
                column("ftl.victim", Values::Texts(texts)),
                column("x_ns", Values::Floats(vec![Some(0.1 + 0.2), None, Some(2.0)])),
                column("steady", Values::Bools(vec![Some(true), None, Some(false)])),
            ],
            facts: vec![("prism.test".into(), "{}".into())],
        }
    }

    #[test]
    fn parquet_is_read_as_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        let mut out = OutputFile::create(&path).unwrap();
        write_table(&mut out, &table()).unwrap();
        out.commit().unwrap();
        let reader = SerializedFileReader::new(fs::File::open(&path).unwrap()).unwrap();
        let facts = reader.metadata().file_metadata().key_value_metadata().unwrap();
        assert_eq!((facts[0].key.as_str(), facts[0].value.as_deref()), ("prism.test", Some("{}")));
        let rows: Vec<String> =
            reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect();
        let expected = [
            "{design: 0, ftl.victim: \"a,b\", x_ns: 0.30000000000000004, steady: true}",
            "{design: 1, ftl.victim: \"\", x_ns: null, steady: null}",
            "{design: null, ftl.victim: \"say \"x\"\", x_ns: 2.0, steady: false}",
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn csv_is_quoted_where_it_must_be() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        let mut out = OutputFile::create(&path).unwrap();
        write_csv(&mut out, &table()).unwrap();
        out.commit().unwrap();
        let expected = "design,ftl.victim,x_ns,steady\r\n0,\"a,b\",0.30000000000000004,true\r\n\
                        1,\"\",,\r\n,\"say \"\"x\"\"\",2,false\r\n";
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    }
}
