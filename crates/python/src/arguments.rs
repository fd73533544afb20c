//! Options of a call, which the package passes as one dictionary.

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;

use crate::error::Failure;

/// Options of a call. An exception names the option that cannot be used, and not the type of Rust
/// that has it as a field.
pub struct Arguments<T>(pub T);

impl<'a, 'py, T> FromPyObject<'a, 'py> for Arguments<T>
where
    T: FromPyObject<'a, 'py, Error = PyErr>,
{
    type Error = PyErr;

    fn extract(options: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        T::extract(options).map(Self).map_err(|error| named(&options, error))
    }
}

/// The exception for what `error` says of one of the options.
fn named(options: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let py = options.py();
    let text = error.value(py).to_string();
    let field =
        text.strip_prefix("failed to extract field ").and_then(|field| field.split_once('.'));
    let (Some((_, name)), Some(cause)) = (field, error.cause(py)) else { return error };
    let error: PyErr = if cause.is_instance_of::<PyOverflowError>(py) {
        let value = options.get_item(name).and_then(|value| value.str()?.extract::<String>());
        // Python refuses to write numbers of thousands of digits.
        let value = value.unwrap_or_else(|_| "the number".to_owned());
        Failure::argument(name, format!("{value} is out of range")).into()
    } else if cause.is_instance_of::<PyTypeError>(py) {
        PyTypeError::new_err(format!("{name}: {}", cause.value(py)))
    } else {
        // It is of the code that converts the value, or of a signal.
        return cause;
    };
    error.set_cause(py, Some(cause));
    error
}
