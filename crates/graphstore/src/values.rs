//! The values that an algorithm computed: all of them to a file, the largest, and how many there
//! are of which.

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
    let label = |rank: u32| ids[rank as usize];
    let mut largest = Largest::new(if column.has_labels() { 0 } else { top });
    let mut writer = output.map(|output| output.writer(column.is_real())).transpose()?;
    let mut counting = histogram.then(|| Counting::new(column.has_labels()));
    let mut failed = None;
    let read = graph.ids(|vertex, id| {
        largest.add(column, vertex, id);
        if writer.is_none() && counting.is_none() {
            return Ok(());
        }
        let value = column.value(vertex, &label);
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
    let rows = largest.end().into_iter();
    let top = rows.map(|(vertex, id)| (id, column.value(vertex, &label).to_string())).collect();
    column.check().map_err(failure)?;
    if let Some(writer) = writer {
        writer.commit()?;
    }
    Ok(Shown { top, histogram: counting.map(Counting::end) })
}

/// The vertices with the largest values, of those with the same value the ones with the smallest
/// numbers in the input.
struct Largest {
    top: usize,
    /// Values, numbers in the input, vertices.
    best: Vec<(f64, u64, u32)>,
}

impl Largest {
    fn new(top: usize) -> Self {
        Self { top, best: Vec::new() }
    }

    fn add(&mut self, column: &Column, vertex: u32, id: u64) {
        if self.top == 0 {
            return;
        }
        let value = column.number(vertex);
        if value.is_finite() {
            self.best.push((value, id, vertex));
        }
        if self.best.len() >= 2 * self.top + 1000 {
            self.shorten();
        }
    }

    fn shorten(&mut self) {
        self.best.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        self.best.truncate(self.top);
    }

    /// Vertices and their numbers in the input.
    fn end(mut self) -> Vec<(u32, u64)> {
        self.shorten();
        self.best.into_iter().map(|(_, id, vertex)| (vertex, id)).collect()
    }
}
