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
    /// [`StoreError::Refused`] if its ending is that of no format; [`StoreError`].
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
        let format = match extension.to_str() {
            Some("csv") => Format::Csv,
            Some("parquet") => Format::Parquet,
            Some("" | "tsv" | "txt") => Format::Tsv,
            // A device such as /dev/stdout, or a pipe, may have any name.
            _ if path.metadata().is_ok_and(|file| !file.is_file()) => Format::Tsv,
            _ => {
                let file = path.display();
                let what = format!(
                    "{file}: there is no format of this ending; name a file by --output that ends \
                     with .tsv or .txt (or has no ending), .csv, or .parquet"
                );
                return Err(StoreError::Refused(what));
            }
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
    /// The largest values with their vertices; of labels, those of the largest groups, with the
    /// numbers of their vertices.
    pub top: Vec<(u64, String)>,
    /// Whether these are groups.
    pub has_groups: bool,
    /// How many there are of which.
    pub histogram: Option<Histogram>,
}

/// Vertices with the largest values that are listed, if it is not said how many.
pub const TOP: usize = 10;

/// Writes all values of the graph in the store `name`, and returns what is shown of them: `top` of
/// the largest, by default [`TOP`]; groups of labels, which take memory to be counted, only if it
/// is given.
///
/// # Errors
/// [`StoreError`].
pub fn write(
    graph: &mut Graph,
    column: &Column,
    output: Option<Output>,
    top: Option<usize>,
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
    let (values, groups) = match column.has_labels() {
        true => (0, top.unwrap_or(0)),
        false => (top.unwrap_or(TOP), 0),
    };
    let mut largest = Largest::new(values);
    let mut writer = output.map(|output| output.writer(column.is_real())).transpose()?;
    let counts = histogram || groups > 0;
    let mut counting = counts.then(|| Counting::new(column.has_labels()));
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
    let mut top = largest.end(|vertex| column.value(vertex, &label).to_string());
    let mut largest = Largest::new(groups);
    for (label, size) in counting.iter().flat_map(Counting::groups) {
        // There are fewer than 2^32 vertices.
        largest.push(size as f64, label, size as u32);
    }
    top.extend(largest.end(|size| size.to_string()));
    column.check().map_err(failure)?;
    if let Some(writer) = writer {
        writer.commit()?;
    }
    let histogram = counting.filter(|_| histogram).map(Counting::end);
    Ok(Shown { top, has_groups: column.has_labels(), histogram })
}

/// The vertices with the largest values, of those with the same value the ones with the smallest
/// numbers in the input; or the largest groups, of those of the same size the ones with the
/// smallest labels.
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
        if self.top > 0 {
            self.push(column.number(vertex), id, vertex);
        }
    }

    fn push(&mut self, value: f64, id: u64, vertex: u32) {
        if self.top == 0 {
            return;
        }
        if value.is_finite() {
            self.best.push((value, id, vertex));
        }
        // So seldom that each value costs a constant time; any number may be asked for.
        if self.best.len() >= self.top.saturating_mul(2).saturating_add(1000) {
            self.best.select_nth_unstable_by(self.top - 1, Self::order);
            self.best.truncate(self.top);
        }
    }

    fn order(a: &(f64, u64, u32), b: &(f64, u64, u32)) -> std::cmp::Ordering {
        b.0.total_cmp(&a.0).then(a.1.cmp(&b.1))
    }

    /// The numbers in the input and the values, which are asked for in the order of vertices:
    /// those on flash are read segment by segment then.
    fn end(mut self, value: impl Fn(u32) -> String) -> Vec<(u64, String)> {
        self.best.sort_unstable_by(Self::order);
        self.best.truncate(self.top);
        let mut places: Vec<usize> = (0..self.best.len()).collect();
        places.sort_unstable_by_key(|place| self.best[*place].2);
        let mut rows: Vec<(u64, String)> =
            self.best.iter().map(|(_, id, _)| (*id, String::new())).collect();
        for place in places {
            rows[place].1 = value(self.best[place].2);
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use prism_base::Rng;

    use super::*;

    #[test]
    fn random_values_of_which_any_number_of_the_largest_is_asked_for() {
        for seed in prism_testkit::seeds(0..20) {
            let mut rng = Rng::stream(seed, "values");
            let count = rng.below(9000) as usize;
            let counts: Vec<u64> = (0..count).map(|_| rng.below(2000)).collect();
            let mut wanted: Vec<(u64, String)> =
                (0..count).map(|v| (7 + v as u64, counts[v].to_string())).collect();
            wanted.sort_by_key(|(id, _)| (u64::MAX - counts[*id as usize - 7], *id));
            let column = Column::Counts(counts);
            for top in [0, 1, 10, 3000, count, usize::MAX / 2, usize::MAX] {
                let mut largest = Largest::new(top);
                (0..count as u32).for_each(|v| largest.add(&column, v, 7 + u64::from(v)));
                let found = largest.end(|v| column.value(v, &|_| 0).to_string());
                assert!(found == wanted[..top.min(count)], "seed {seed}, the first {top}");
            }
        }
    }
}
