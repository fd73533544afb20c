//! The values that an algorithm computed: all of them to a file, the largest, and how many there
//! are of which.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use prism_graph::algorithms::{Column, Value};
use prism_graph::{Graph, GraphError};
use prism_host::parquet::{Number, NumbersWriter};
use prism_host::{HostError, OutputFile};

use crate::error::StoreError;
use crate::histogram::{Counting, Histogram};

/// A file of values, in the format of its extension.
pub struct Output {
    file: OutputFile,
    format: Format,
}

#[derive(Clone, Copy)]
enum Format {
    Tsv,
    Csv,
    Parquet,
}

impl Output {
    /// Begins the file.
    ///
    /// # Errors
    /// [`HostError`].
    pub fn create(path: &Path) -> Result<Self, HostError> {
        let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
        let format = match extension.to_str() {
            Some("csv") => Format::Csv,
            Some("parquet") => Format::Parquet,
            _ => Format::Tsv,
        };
        Ok(Self { file: OutputFile::create(path)?, format })
    }

    fn writer(mut self, real: bool) -> Result<Writer, HostError> {
        Ok(match self.format {
            Format::Tsv => Writer::Lines(self.file, '\t'),
            Format::Csv => {
                writeln!(self.file, "vertex,value").map_err(|error| self.file.failed(error))?;
                Writer::Lines(self.file, ',')
            }
            Format::Parquet => {
                let table = NumbersWriter::create(self.file, ["vertex", "value"], real)?;
                Writer::Table(Box::new(table))
            }
        })
    }
}

enum Writer {
    Lines(OutputFile, char),
    Table(Box<NumbersWriter>),
}

impl Writer {
    fn add(&mut self, id: u64, value: Value) -> Result<(), HostError> {
        match self {
            Self::Lines(file, separator) => {
                writeln!(file, "{id}{separator}{value}").map_err(|error| file.failed(error))
            }
            Self::Table(table) => table.add(
                id,
                match value {
                    Value::Whole(value) => Number::Whole(value),
                    Value::Real(value) => Number::Real(value),
                },
            ),
        }
    }

    fn commit(self) -> Result<(), HostError> {
        match self {
            Self::Lines(file, _) => file.commit(),
            Self::Table(table) => table.finish()?.commit(),
        }
    }
}

/// What is shown of the values.
pub struct Shown {
    /// The largest values with their vertices.
    pub top: Vec<(u64, String)>,
    /// How many there are of which.
    pub histogram: Option<Histogram>,
}

/// Writes all values of the graph in the store `name`, and returns what is shown of them.
///
/// # Errors
/// [`StoreError`].
pub fn write(
    graph: &mut Graph,
    column: &Column,
    output: Option<Output>,
    top: usize,
    histogram: bool,
    name: &str,
) -> Result<Shown, StoreError> {
    let failure = |error| StoreError::input(name, error);
    let vertices = graph.catalog().vertices;
    let mut ids: Vec<u64> = Vec::new();
    if column.needs_ids() {
        ids.reserve(vertices as usize);
        let all = graph.ids(|_, id| {
            ids.push(id);
            Ok(())
        });
        all.map_err(failure)?;
    }
    let label = |vertex: u32| ids[vertex as usize];
    let best = if column.has_labels() { Vec::new() } else { largest(column, vertices, top) };
    let wanted: BTreeSet<u32> = best.iter().map(|(_, vertex)| *vertex).collect();
    let mut found: Vec<(u32, (u64, String))> = Vec::new();
    let mut writer = output.map(|output| output.writer(column.is_real())).transpose()?;
    let mut counting = histogram.then(|| Counting::new(column.has_labels()));
    let mut failed = None;
    let read = graph.ids(|vertex, id| {
        let value = || column.value(vertex, &label);
        if wanted.contains(&vertex) {
            found.push((vertex, (id, value().to_string())));
        }
        if writer.is_none() && counting.is_none() {
            return Ok(());
        }
        let value = value();
        if let Some(counting) = &mut counting {
            counting.add(value);
        }
        let Some(writer) = &mut writer else { return Ok(()) };
        writer.add(id, value).map_err(|error| {
            failed = Some(error);
            GraphError::Refused(String::new())
        })
    });
    read.map_err(|error| failed.take().map_or_else(|| failure(error), StoreError::Host))?;
    column.check().map_err(failure)?;
    if let Some(writer) = writer {
        writer.commit()?;
    }
    let row = |(_, vertex): (f64, u32)| {
        let row = found.iter().find(|(other, _)| *other == vertex);
        row.map(|(_, row)| row.clone())
    };
    let top = best.into_iter().filter_map(row).collect();
    Ok(Shown { top, histogram: counting.map(Counting::end) })
}

/// The vertices with the largest values. Each is read once: they may be on flash.
fn largest(column: &Column, vertices: u32, top: usize) -> Vec<(f64, u32)> {
    let mut best: Vec<(f64, u32)> = Vec::new();
    if top == 0 {
        return best;
    }
    let larger = |a: &(f64, u32), b: &(f64, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
    let values = (0..vertices).map(|vertex| (column.number(vertex), vertex));
    for pair in values.filter(|(value, _)| value.is_finite()) {
        best.push(pair);
        if best.len() >= 2 * top + 1000 {
            best.sort_by(larger);
            best.truncate(top);
        }
    }
    best.sort_by(larger);
    best.truncate(top);
    best
}
