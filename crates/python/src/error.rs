//! The failures of calls, and the exceptions that they become.

use prism_host::HostError;
use prism_present::PresentError;
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::{PyErr, create_exception};

create_exception!(
    prism,
    Error,
    PyValueError,
    "Input that cannot be used. The message names the file, line or field, and says what to do: it \
     is that of the command."
);

/// Why a call has no result.
pub enum Failure {
    /// Its input cannot be used.
    Text(String),
    /// Memory is not enough.
    Memory(String),
    /// An exception of Python.
    Python(PyErr),
}

impl Failure {
    /// The argument `name` is wrong, as `what` says.
    pub fn argument(name: &str, what: impl std::fmt::Display) -> Self {
        Self::Text(format!("{name}: {what}"))
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        let text = error.to_string();
        if matches!(error, HostError::Memory { .. }) {
            Self::Memory(text)
        } else {
            Self::Text(text)
        }
    }
}

impl From<PresentError> for Failure {
    fn from(error: PresentError) -> Self {
        Self::Text(error.to_string())
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Text(text) => Error::new_err(text),
            Failure::Memory(text) => PyMemoryError::new_err(text),
            Failure::Python(error) => error,
        }
    }
}
