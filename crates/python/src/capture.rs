//! Captures of the requests that a running system sends to its disks.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::thread;

use prism_base::{Bytes, Named};
use prism_host::capture::{self, Backend, Capture, CaptureError, CaptureSpec};
use pyo3::prelude::*;

use crate::arguments::parsed;
use crate::error::Failure;
use crate::trace::Trace;
use crate::watch;

impl From<CaptureError> for Failure {
    fn from(error: CaptureError) -> Self {
        match error {
            CaptureError::Host(error) => error.into(),
            error => Self::Text(error.to_string()),
        }
    }
}

/// A running capture. The kernel's tracing is restored when it is stopped or dropped.
#[pyclass(module = "prism._prism", frozen)]
pub struct CaptureSession {
    running: Mutex<Option<Capture>>,
}

fn stopped() -> PyErr {
    Failure::Text("the capture was stopped; begin another".into()).into()
}

impl CaptureSession {
    fn with<T>(&self, call: impl FnOnce(&Capture) -> Result<T, Failure>) -> PyResult<T> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.as_ref().map(call).ok_or_else(stopped)?.map_err(PyErr::from)
    }

    fn take(&self) -> Option<Capture> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for CaptureSession {
    fn drop(&mut self) {
        if let Some(capture) = self.take() {
            // There is no trace to return, and no caller to report a failure to.
            drop(capture.stop());
        }
    }
}

/// Begins to capture: every disk, or these disks and partitions.
#[pyfunction]
#[pyo3(signature = (devices, backend, buffer))]
pub fn start_capture(
    py: Python<'_>,
    devices: Vec<PathBuf>,
    backend: Option<&str>,
    buffer: &str,
) -> PyResult<CaptureSession> {
    let backend_of = |name: &str| {
        Backend::from_name(name).ok_or_else(|| {
            let names = Backend::names();
            Failure::argument("backend", format!("{name:?} is unknown; known are {names}"))
        })
    };
    let backend = backend.map(backend_of).transpose()?;
    let buffer = parsed("buffer", buffer, Bytes::parse)?;
    let spec = CaptureSpec { devices, backend, buffer };
    watch::run(py, None, [], |_| {
        let running = Mutex::new(Some(capture::start(&spec)?));
        Ok(CaptureSession { running })
    })
}

#[pymethods]
impl CaptureSession {
    /// The name of the backend.
    fn backend(&self) -> PyResult<&'static str> {
        self.with(|capture| Ok(capture.backend().name()))
    }

    /// The backends that were tried before, and why they do not work here.
    fn refused(&self) -> PyResult<Vec<(&'static str, String)>> {
        let pair = |refusal: &capture::Refusal| (refusal.backend.name(), refusal.why.clone());
        self.with(|capture| Ok(capture.refused().iter().map(pair).collect()))
    }

    /// Requests and flushes so far.
    fn requests(&self) -> PyResult<u64> {
        self.with(|capture| Ok(capture.requests()))
    }

    /// The variable by which processes find the capture, and its value.
    fn variable(&self) -> PyResult<(&'static str, PathBuf)> {
        self.with(|capture| Ok((capture::VARIABLE, capture.mark_socket().path().to_owned())))
    }

    /// From now on requests belong to the phase `name`.
    fn mark(&self, name: &str) -> PyResult<()> {
        self.with(|capture| Ok(capture.mark(name)?))
    }

    /// Ends the capture: its trace, and the events that the kernel dropped.
    fn stop(&self, py: Python<'_>) -> PyResult<(Trace, u64)> {
        let capture = self.take().ok_or_else(stopped)?;
        watch::run(py, None, [], |_| {
            thread::sleep(capture::AFTER);
            let captured = capture.stop()?;
            Ok((Trace::of(captured.trace), captured.lost))
        })
    }
}
