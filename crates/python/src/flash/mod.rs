//! The flash library: devices in memory and in files, and the levels of its shares.
//!
//! Every call that does I/O runs without the interpreter's lock, on the memory of the caller's
//! buffer: the library's own locks order calls of several threads.

mod blocks;
mod device;
mod queue;
mod stores;

pub use blocks::{FunctionLevel, RawLevel};
pub use device::{FlashDevice, FlashShare};
pub use queue::CommandQueue;
pub use stores::{KeyValueStore, ObjectLevel, PolicyLevel};

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use prism::raw::Address;
use prism::{FlashFileError, Nanos, Share};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3::{PyErr, create_exception};

use crate::error::{Error, Failure};

create_exception!(
    prism,
    FlashError,
    Error,
    "An operation of the flash library that failed or is against the rules of flash."
);

/// A failure of the library as an exception.
pub fn failed(error: prism::FlashError) -> PyErr {
    FlashError::new_err(error.to_string())
}

/// A failure of a device's file as an exception.
pub fn file_failed(error: FlashFileError) -> PyErr {
    FlashError::new_err(error.to_string())
}

/// A level that can be closed: its share is free again when the last call on it has ended, and its
/// queues are closed.
///
/// A process that was forked shares the device's file with its parent, and each would overwrite
/// what the other writes; so only the process that opened a level uses it.
pub struct Open<T>(RwLock<Option<Arc<T>>>, u32);

impl<T: Send + Sync> Open<T> {
    fn new(level: T) -> Self {
        Self(RwLock::new(Some(Arc::new(level))), std::process::id())
    }

    /// Runs `call` without the interpreter's lock.
    fn call<R: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&T) -> prism::Result<R> + Send,
    ) -> PyResult<R> {
        opened_by(self.1)?;
        py.detach(|| {
            let level = self.0.read().unwrap_or_else(PoisonError::into_inner);
            level.as_deref().map(call)
        })
        .ok_or_else(closed)?
        .map_err(failed)
    }

    /// The level, for a queue of it.
    fn share(&self) -> PyResult<Arc<T>> {
        opened_by(self.1)?;
        let level = self.0.read().unwrap_or_else(PoisonError::into_inner);
        level.clone().ok_or_else(closed)
    }

    /// As [`Open::call`], with a call that changes the level itself.
    fn change<R: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut T) -> prism::Result<R> + Send,
    ) -> PyResult<R> {
        opened_by(self.1)?;
        py.detach(|| {
            let mut level = self.0.write().unwrap_or_else(PoisonError::into_inner);
            let level = level.as_mut().ok_or_else(closed)?;
            let what = "a queue of the level is open; close it first";
            let level = Arc::get_mut(level).ok_or_else(|| FlashError::new_err(what))?;
            call(level).map_err(failed)
        })
    }

    fn close(&self, py: Python<'_>) {
        let level = py.detach(|| self.0.write().unwrap_or_else(PoisonError::into_inner).take());
        py.detach(|| drop(level));
    }
}

/// Lets time pass for a share; whether it has a clock, and its time in ns.
pub fn time_of(share: &Share, pass_ns: Option<u64>) -> prism::Result<(bool, u64)> {
    if let Some(time) = pass_ns {
        share.pass(Nanos(time))?;
    }
    Ok((share.is_timed(), share.now()?.0))
}

/// The memory of several buffers.
///
/// # Errors
/// Those of [`Memory::of`].
pub fn memories(buffers: &[Bound<'_, PyAny>]) -> PyResult<Vec<Memory>> {
    buffers.iter().map(Memory::of).collect()
}

/// Refuses to use in a forked process what its parent has opened.
fn opened_by(process: u32) -> PyResult<()> {
    if process == std::process::id() {
        return Ok(());
    }
    let what = "another process has opened it, of which this one is a fork; open the device here, \
                after the other has closed it";
    Err(FlashError::new_err(what))
}

fn closed() -> PyErr {
    FlashError::new_err("it was closed; open it again")
}

/// A value that is taken once.
pub struct Once<T>(Mutex<Option<T>>);

impl<T> Once<T> {
    fn new(value: T) -> Self {
        Self(Mutex::new(Some(value)))
    }

    fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The memory of a buffer of Python, which is neither moved nor freed while this exists.
pub struct Memory(PyUntypedBuffer);

impl Memory {
    /// The memory of `object`.
    ///
    /// # Errors
    /// If it has no buffer, or one that is not one piece.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = PyUntypedBuffer::get(object).map_err(|error| unexpected(object, error))?;
        if !buffer.is_c_contiguous() {
            let what = "its bytes are not one piece of memory; pass a contiguous copy";
            return Err(Failure::argument("buffer", what).into());
        }
        if buffer.format().to_bytes().contains(&b'O') {
            let what = "it holds objects of Python; pass bytes or numbers";
            return Err(Failure::argument("buffer", what).into());
        }
        Ok(Self(buffer))
    }

    /// The same, to be written to.
    ///
    /// # Errors
    /// Also if it is read-only.
    pub fn writable(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let memory = Self::of(object)?;
        if !memory.is_writable() {
            let what = "it is read-only; pass a bytearray or another writable buffer";
            return Err(Failure::argument("buffer", what).into());
        }
        Ok(memory)
    }

    /// Whether it may be written to.
    pub fn is_writable(&self) -> bool {
        !self.0.readonly()
    }

    /// The bytes. Another thread of Python that changes them meanwhile changes what is written, as
    /// with `os.write`.
    #[allow(unsafe_code, reason = "the memory belongs to Python")]
    pub fn bytes(&self) -> &[u8] {
        if self.0.len_bytes() == 0 {
            return &[];
        }
        // SAFETY: the buffer is contiguous, and Python keeps it while it is exported.
        unsafe { std::slice::from_raw_parts(self.0.buf_ptr().cast(), self.0.len_bytes()) }
    }

    /// The bytes, to be written to, as with `readinto`: threads of Python that use one buffer at
    /// once get any mixture of their bytes.
    #[allow(unsafe_code, reason = "the memory belongs to Python")]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        if self.0.len_bytes() == 0 {
            return &mut [];
        }
        // SAFETY: as above, and the buffer was checked to be writable.
        unsafe { std::slice::from_raw_parts_mut(self.0.buf_ptr().cast(), self.0.len_bytes()) }
    }
}

/// The exception for an object without a buffer, or that of an object whose buffer is in use.
fn unexpected(object: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyTypeError>(object.py()) {
        return error;
    }
    let kind = object.get_type().name().map_or_else(|_| "this".to_owned(), |name| name.to_string());
    let what = "bytes, a bytearray or another object with a buffer is expected";
    PyTypeError::new_err(format!("buffer: {what}, not {kind}"))
}

/// New bytes of Python of this length, filled by `read` without the interpreter's lock.
///
/// # Errors
/// Those of `read`, and if there is no memory.
pub fn new_bytes<'py>(
    py: Python<'py>,
    length: usize,
    read: impl FnOnce(&mut [u8]) -> PyResult<()>,
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, length, read)
}

/// The address of a page for Python: channel, LUN, block, page.
pub type PageAddress = (u32, u32, u32, u32);

/// An address that was passed by Python.
pub struct AddressArgument(pub Address);

impl<'py> FromPyObject<'_, 'py> for AddressArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let parts: PyResult<PageAddress> = object.extract();
        let (channel, lun, block, page) = parts.map_err(|error| {
            let py = object.py();
            if error.is_instance_of::<PyOverflowError>(py) {
                return error;
            }
            let what = "an address is four whole numbers: channel, LUN, block and page";
            let wrong = PyTypeError::new_err(what);
            wrong.set_cause(py, Some(error));
            wrong
        })?;
        Ok(Self(Address { channel, lun, block, page }))
    }
}

/// The address for Python.
pub fn page_address(at: Address) -> PageAddress {
    (at.channel, at.lun, at.block, at.page)
}
