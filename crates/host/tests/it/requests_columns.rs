//! The table in docs/spec/requests-parquet.md names the columns of the file, in order.

use std::fs::File;

use parquet::basic::LogicalType;
use parquet::file::reader::{FileReader, SerializedFileReader};
use prism_host::OutputFile;
use prism_host::parquet::RequestsWriter;
use prism_trace::Symbols;

const DOCUMENT: &str = include_str!("../../../../docs/spec/requests-parquet.md");

/// Name, type and whether it may be null of each row of the table.
fn documented() -> Vec<(String, String, bool)> {
    let rows = DOCUMENT.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        (cells[1].trim_matches('`').into(), cells[2].into(), cells[3] != "never null")
    })
    .collect()
}

#[test]
fn the_specification_names_every_column() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("requests.parquet");
    let out = OutputFile::create(&path).unwrap();
    let writer = RequestsWriter::create(out, Symbols::default()).unwrap();
    writer.finish().unwrap().commit().unwrap();
    let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    let schema = reader.metadata().file_metadata().schema_descr();
    let columns: Vec<_> = schema
        .columns()
        .iter()
        .map(|column| {
            let kind = match column.logical_type_ref() {
                Some(LogicalType::String) => "STRING".into(),
                Some(LogicalType::Integer(int)) if !int.is_signed => "UINT64".into(),
                _ => column.physical_type().to_string(),
            };
            (column.name().to_owned(), kind, column.self_type().is_optional())
        })
        .collect();
    assert_eq!(documented(), columns);
}
