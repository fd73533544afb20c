//! Design studies: planned here, run here or by workers of other processes, assembled here.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, StringArray};
use arrow_schema::Field;
use prism_base::{Column, DataTable, Values};
use prism_host::parquet::write_data_set;
use prism_host::{OutputFile, RowStore, RowStoreSpec, TraceCache};
use prism_present::Env;
use prism_present::sweep::{
    Design, Designs, Part, Row, Study, Summary, assemble, execute, parse_row,
};
use pyo3::prelude::*;

use crate::error::Failure;
use crate::frames;
use crate::table::Table;
use crate::watch;

/// The traces that designs of this process have read.
pub static TRACES: LazyLock<TraceCache> = LazyLock::new(TraceCache::default);

/// The rows that are there, and where they are kept.
struct Progress {
    /// By the number of the design.
    rows: BTreeMap<u64, Row>,
    /// Rows that were kept by an earlier run.
    kept: usize,
    store: Option<RowStore>,
    /// The data set, and where it will be.
    output: Option<(OutputFile, PathBuf)>,
}

/// A planned design study.
#[pyclass(module = "prism._prism", frozen)]
pub struct Sweep {
    designs: Designs,
    progress: Mutex<Progress>,
}

impl Sweep {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Plans the study in `text`, in which names of files are relative to `folder`. `devices` are the
/// texts of drives without a file, by the names that the study gives them. With an `output`, rows
/// are kept next to it until it is written.
#[pyfunction]
#[pyo3(signature = (name, folder, text, devices, output, restart))]
pub fn plan_sweep(
    py: Python<'_>,
    name: &str,
    folder: PathBuf,
    text: &str,
    devices: BTreeMap<String, String>,
    output: Option<PathBuf>,
    restart: bool,
) -> PyResult<Sweep> {
    watch::run(py, None, [], |env| {
        let designs = Study::parse(name, &folder, text)?.designs(devices, env)?;
        let ends = |end: &str| output.as_ref().is_some_and(|o| o.extension() == Some(end.as_ref()));
        if output.is_some() && !ends("csv") && !ends("parquet") {
            return Err(Failure::argument("output", "the name must end in .parquet or .csv"));
        }
        let mut progress = Progress { rows: BTreeMap::new(), kept: 0, store: None, output: None };
        if let Some(output) = &output {
            progress.output = Some((OutputFile::create(output)?, output.clone()));
            if restart {
                RowStore::discard(output, (1, 1))?;
            }
            let spec = RowStoreSpec { output, part: (1, 1), inputs: &designs.hash };
            let (store, rows) = RowStore::open(spec)?;
            progress.store = Some(store);
            let rows = rows.iter().map(|row| parse_row(row).map(|row| (row.number, row)));
            progress.rows = rows.collect::<Result<_, _>>()?;
            progress.kept = progress.rows.len();
        }
        Ok(Sweep { designs, progress: Mutex::new(progress) })
    })
}

#[pymethods]
impl Sweep {
    fn __len__(&self) -> usize {
        self.designs.designs.len()
    }

    /// The designs without a row, each as JSON for [`run_design`].
    fn open_designs(&self) -> Vec<String> {
        let progress = self.progress();
        let open = |design: &&Design| !progress.rows.contains_key(&design.number);
        let json = |design| serde_json::to_string(design).expect("a design has plain fields");
        self.designs.designs.iter().filter(open).map(json).collect()
    }

    /// Takes a row that [`run_design`] has returned, in any order.
    fn keep(&self, row: &str) -> PyResult<()> {
        let mut progress = self.progress();
        let kept = parse_row(row).map_err(Failure::from)?;
        let design = self.designs.designs.get(kept.number as usize);
        if design.is_none_or(|design| design.hash != kept.hash) {
            return Err(Failure::argument("row", "it is of no design of this study").into());
        }
        if let Some(store) = &progress.store {
            store.append(row).map_err(Failure::from)?;
        }
        progress.rows.insert(kept.number, kept);
        Ok(())
    }

    /// Runs the designs without a row on threads of this process.
    #[pyo3(signature = (jobs, progress))]
    fn execute(
        &self,
        py: Python<'_>,
        jobs: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        watch::run(py, progress, [], |env| {
            let mut progress = self.progress();
            let rows = std::mem::take(&mut progress.rows).into_values().collect();
            let keep = |row: &Row| match &progress.store {
                None => Ok(()),
                Some(store) => {
                    let line = serde_json::to_string(row).expect("a row has plain fields");
                    store.append(&line).map_err(Into::into)
                }
            };
            let threads = jobs.unwrap_or_else(|| env.cores()).max(1);
            let all = &self.designs.designs;
            let rows = execute(all, Part::WHOLE, rows, threads, env, keep)?;
            progress.rows = rows.into_iter().map(|row| (row.number, row)).collect();
            Ok(())
        })
    }

    /// Gives up the output and the lock of its rows, which are kept.
    fn close(&self) {
        let mut progress = self.progress();
        (progress.store, progress.output) = (None, None);
    }

    /// The data set, which is written to the output, and its summary as JSON.
    fn finish(&self, py: Python<'_>) -> PyResult<(Table, String)> {
        watch::run(py, None, [], |_| {
            let mut progress = self.progress();
            let rows: Vec<Row> = std::mem::take(&mut progress.rows).into_values().collect();
            let data = assemble(&self.designs, &rows)?;
            let summary = Summary::of(&self.designs, &data, progress.kept);
            if let Some((output, path)) = progress.output.take() {
                write_data_set(output, &path, &data)?;
            }
            if let Some(store) = progress.store.take() {
                store.remove()?;
            }
            let summary = serde_json::to_string(&summary).expect("it has plain fields");
            Ok((table(data), summary))
        })
    }
}

/// Runs a design, given as JSON, and returns its row as JSON.
#[pyfunction]
pub fn run_design(py: Python<'_>, design: &str) -> PyResult<String> {
    let design: Design =
        serde_json::from_str(design).map_err(|error| Failure::argument("design", error))?;
    watch::run(py, None, [], |env| {
        let row = design.run(env)?;
        Ok(serde_json::to_string(&row).expect("a row has plain fields"))
    })
}

fn table(data: DataTable) -> Table {
    let columns = data.columns.into_iter().map(|Column { name, values }| {
        let array: ArrayRef = match values {
            Values::Ints(values) => Arc::new(Int64Array::from(values)),
            Values::Floats(values) => Arc::new(Float64Array::from(values)),
            Values::Bools(values) => Arc::new(BooleanArray::from(values)),
            Values::Texts(values) => Arc::new(StringArray::from(values)),
        };
        (Field::new(name, array.data_type().clone(), true), array)
    });
    let columns: Vec<_> = columns.collect();
    let rows = columns.first().map_or(0, |(_, array)| array.len());
    Table::of(frames::batch(columns, rows))
}
