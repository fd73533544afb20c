//! Edges in a Parquet file.

use std::fs::File;
use std::path::Path;

use prism_graph::input::Columns;
use prism_graph::{Edge, Ingest};
use prism_host::load::PARQUET;
use prism_host::parquet::{Number, NumbersReader};
use prism_host::{HostError, Progress};

use crate::device::name_of;
use crate::error::StoreError;
use crate::kept::Kept;

/// Whether a file begins as Parquet does.
pub fn is_parquet(path: &Path) -> bool {
    use std::io::Read;
    let mut head = [0; 4];
    // Other files than regular ones, such as pipes, would lose their first bytes.
    let regular = path.metadata().is_ok_and(|of| of.is_file());
    regular
        && File::open(path).is_ok_and(|mut file| file.read_exact(&mut head).is_ok())
        && &head == PARQUET
}

/// Adds all edges of the file.
///
/// # Errors
/// [`StoreError`].
pub fn read(
    path: &Path,
    columns: Option<&Columns>,
    weighted: bool,
    progress: &Progress,
    ingest: &mut Ingest<'_>,
    kept: &mut Option<Kept>,
) -> Result<(), StoreError> {
    let name = name_of(Some(path));
    let file = File::open(path).map_err(|source| HostError::Open { file: name.clone(), source })?;
    let mut reader = NumbersReader::open(file, &name)?;
    let names = reader.names();
    let places = places(&name, &names, columns, weighted)?;
    if !weighted && let Some(hint) = Columns::unused_weights(&names) {
        progress.note(&format!("{name}: {hint}"));
    }
    reader.choose(&places)?;
    progress.start_count("reading:", "edges", Some(reader.rows_total()));
    let (mut batch, mut edges) = (Vec::new(), Vec::new());
    let begun = kept.as_ref().and_then(Kept::begun).map_or(0, |(place, _)| place.position);
    // Progress is saved between two batches, which are the same each time.
    while reader.rows() < begun {
        reader.next_batch(&mut batch)?;
        if batch.is_empty() {
            break;
        }
    }
    loop {
        let before = reader.rows();
        reader.next_batch(&mut batch)?;
        if batch.is_empty() {
            progress.clear();
            return save(kept, reader.rows(), true, ingest);
        }
        edges.clear();
        for (row, numbers) in batch.chunks_exact(places.len()).enumerate() {
            let wrong = |what: &str| {
                let row = before + row as u64 + 1;
                StoreError::Refused(format!("{name}: row {row}: {what}"))
            };
            let id = |number: Number| match number {
                Number::Whole(id) => Ok(id),
                Number::Negative(_) => Err(wrong("a vertex is negative; numbers are 0 or more")),
                Number::Real(_) => Err(wrong(
                    "a vertex is in a column of real numbers (FLOAT or DOUBLE); vertices are whole \
                     numbers of 0 or more: write the column as INT64",
                )),
            };
            let weight = numbers.get(2).map_or(1.0, |number| number.real());
            if !weight.is_finite() {
                return Err(wrong("the weight is not a finite number"));
            }
            edges.push(Edge { source: id(numbers[0])?, target: id(numbers[1])?, weight });
        }
        ingest.add(&edges).map_err(|error| StoreError::input(&name, error))?;
        progress.reached(reader.rows());
        save(kept, reader.rows(), false, ingest)?;
    }
}

/// Saves progress, of which a row is taken as this many bytes.
const ROW: u64 = 16;

fn save(
    kept: &mut Option<Kept>,
    rows: u64,
    complete: bool,
    ingest: &mut Ingest<'_>,
) -> Result<(), StoreError> {
    match kept {
        Some(kept) => kept.reached(rows, ROW, complete, ingest, || None),
        None => Ok(()),
    }
}

/// The places of sources, targets, and weights if they are wanted.
fn places(
    name: &str,
    names: &[String],
    columns: Option<&Columns>,
    weighted: bool,
) -> Result<Vec<usize>, StoreError> {
    let place = |wanted: &str| {
        let found = names.iter().position(|name| name.eq_ignore_ascii_case(wanted));
        found.ok_or_else(|| {
            let names = names.join(", ");
            StoreError::Refused(format!(
                "{name}: there is no column {wanted:?}; the columns are {names}; name them by \
                 --columns"
            ))
        })
    };
    let mut places = match columns {
        Some(columns) => vec![place(&columns.source)?, place(&columns.target)?],
        None if names.len() < 2 => {
            return Err(StoreError::Refused(format!("{name}: an edge needs two columns")));
        }
        None => vec![0, 1],
    };
    if weighted {
        let weights = Columns::of_weights(columns);
        places.push(
            place(weights).map_err(|error| {
                StoreError::Refused(format!("{error}; {}", Columns::NO_WEIGHTS))
            })?,
        );
    }
    Ok(places)
}
