//! Tables: batches of Arrow arrays that other libraries take without a copy.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::Failure;
use crate::frames;

/// Rows and columns.
#[pyclass(module = "prism._prism", frozen)]
pub struct Table {
    schema: SchemaRef,
    batches: Arc<Vec<RecordBatch>>,
}

impl Table {
    /// A table of `batches`, which have this schema.
    pub fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches: Arc::new(batches) }
    }

    /// A table of one batch.
    pub fn of(batch: RecordBatch) -> Self {
        Self::new(batch.schema(), vec![batch])
    }

    /// The same table, whose arrays are shared.
    pub fn share(&self) -> Self {
        Self { schema: self.schema.clone(), batches: self.batches.clone() }
    }
}

/// A stream of Arrow's C interface over `reader`.
///
/// # Errors
/// If Python has no memory.
pub fn stream<'py>(
    py: Python<'py>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
}

/// The schema of Arrow's C interface.
///
/// # Errors
/// If it cannot be exported, which happens for no schema of Prism.
pub fn schema_capsule<'py>(py: Python<'py>, schema: &SchemaRef) -> PyResult<Bound<'py, PyCapsule>> {
    let exported = FFI_ArrowSchema::try_from(schema.as_ref());
    let exported = exported.map_err(|error| Failure::Text(error.to_string()))?;
    PyCapsule::new_with_value(py, exported, c"arrow_schema")
}

#[pymethods]
impl Table {
    /// The same table, which does not change.
    fn __copy__(table: Py<Self>) -> Py<Self> {
        table
    }

    /// Refuses to be pickled or copied deeply.
    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a table cannot be pickled or copied deeply, as it holds memory outside of Python; \
             use a frame of it, such as polars.DataFrame(table)",
        ))
    }

    /// Exports the table as a stream of Arrow; `requested_schema` is ignored, as the interface
    /// allows.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = self.batches.clone();
        let each = (0..batches.len()).map(move |at| Ok::<_, ArrowError>(batches[at].clone()));
        stream(py, Box::new(RecordBatchIterator::new(each, self.schema.clone())))
    }

    /// Exports the schema of Arrow.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The units of the columns that have one.
    #[getter]
    fn units(&self) -> Vec<(String, String)> {
        let unit = |field: &Arc<arrow_schema::Field>| {
            Some((field.name().clone(), field.metadata().get(frames::UNIT)?.clone()))
        };
        self.schema.fields().iter().filter_map(unit).collect()
    }

    /// Bytes of the arrays.
    #[getter]
    fn nbytes(&self) -> usize {
        self.batches.iter().map(RecordBatch::get_array_memory_size).sum()
    }
}

/// A table with a row for each object of a JSON list.
#[pyfunction]
pub fn table_of_rows(json: &str) -> PyResult<Table> {
    let rows = serde_json::from_str(json).map_err(|error| Failure::argument("rows", error))?;
    Ok(Table::of(frames::of_rows(&rows)?))
}
