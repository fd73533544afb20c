//! Commands in flight: submitted, and completed later.

use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, PoisonError};

use prism::function::{self, Function, Unit};
use prism::policy::{self, Policy};
use prism::raw::{self, Completion, Raw};
use prism::{Buffer, BufferMemory, FlashError, Nanos};
use pyo3::prelude::*;

use super::{AddressArgument, Memory, closed, failed, opened_by};

/// Memory of Python that a command reads into, or is written from.
struct PythonMemory(Memory);

// SAFETY: Python neither moves nor frees the memory of a buffer that is exported, so both functions
// give the same bytes each time.
#[allow(unsafe_code, reason = "the memory belongs to Python, which keeps it")]
unsafe impl BufferMemory for PythonMemory {
    fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.bytes_mut()
    }
}

/// The memory of a read.
fn to_fill(object: &Bound<'_, PyAny>) -> PyResult<Buffer> {
    Ok(Buffer::new(Box::new(PythonMemory(Memory::writable(object)?))))
}

/// The memory of a write. Memory that may not be changed is copied, since a [`Buffer`] must be able
/// to lend its bytes to be changed.
fn to_write(object: &Bound<'_, PyAny>) -> PyResult<Buffer> {
    let memory = Memory::of(object)?;
    Ok(if memory.is_writable() {
        Buffer::new(Box::new(PythonMemory(memory)))
    } else {
        memory.bytes().to_vec().into()
    })
}

/// The tag, the time in ns, and why it failed, of a completed command.
type Completed = (u64, u64, Option<String>);

fn completed(completion: Completion) -> Completed {
    let error = completion.result.err().map(|error| error.to_string());
    (completion.tag, completion.end.0, error)
}

/// A queue of one of the levels.
enum Commands {
    Raw(raw::Queue<Arc<Raw>>),
    Function(function::Queue<Arc<Function>>),
    Policy(policy::Queue<Arc<Policy>>),
}

/// Calls the same function of the queue of any level.
macro_rules! of_any {
    ($commands:expr, $queue:ident => $call:expr) => {
        match $commands {
            Commands::Raw($queue) => $call,
            Commands::Function($queue) => $call,
            Commands::Policy($queue) => $call,
        }
    };
}

/// Commands in flight, of one thread at a time.
#[pyclass(module = "prism._prism", frozen)]
pub struct CommandQueue(Mutex<Option<Commands>>, u32);

fn full<E>(_: E) -> PyErr {
    failed(FlashError::Busy { what: "the queue is full; take a completion first".into() })
}

fn other_level() -> PyErr {
    failed(FlashError::Invalid { what: "the level of this queue has no such command".into() })
}

impl CommandQueue {
    fn new(depth: usize, commands: impl FnOnce() -> Commands) -> PyResult<Self> {
        if depth == 0 {
            let what = "depth: a queue has at least 1 command".into();
            return Err(failed(FlashError::Invalid { what }));
        }
        Ok(Self(Mutex::new(Some(commands())), std::process::id()))
    }

    /// A queue of the raw level.
    pub fn of_raw(raw: Arc<Raw>, depth: usize) -> PyResult<Self> {
        Self::new(depth, || Commands::Raw(raw::Queue::new(raw, depth)))
    }

    /// A queue of the function level.
    pub fn of_function(function: Arc<Function>, depth: usize) -> PyResult<Self> {
        Self::new(depth, || Commands::Function(function::Queue::new(function, depth)))
    }

    /// A queue of the policy level.
    pub fn of_policy(policy: Arc<Policy>, depth: usize) -> PyResult<Self> {
        Self::new(depth, || Commands::Policy(policy::Queue::new(policy, depth)))
    }

    /// Runs `call` without the interpreter's lock.
    fn call<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut Commands) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        opened_by(self.1)?;
        py.detach(|| {
            let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            queue.as_mut().map(call)
        })
        .ok_or_else(closed)?
    }
}

impl Drop for CommandQueue {
    /// A queue that was not closed waits for its commands, without the interpreter's lock.
    fn drop(&mut self) {
        let mut queue = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if queue.is_some() {
            Python::try_attach(|py| py.detach(|| drop(queue.take())));
        }
    }
}

#[pymethods]
impl CommandQueue {
    /// Waits for the commands in flight, and gives the level up.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take()));
    }

    /// Reads from blocks: from a page on, as many bytes as the buffer has.
    fn read_pages(
        &self,
        py: Python<'_>,
        at: AddressArgument,
        offset: u32,
        buffer: Bound<'_, PyAny>,
        tag: u64,
    ) -> PyResult<()> {
        let (at, data) = (at.0, to_fill(&buffer)?);
        self.call(py, |commands| match commands {
            Commands::Raw(queue) => {
                queue.submit(raw::Command::Read { at, offset, data }, tag).map_err(full)
            }
            Commands::Function(queue) if offset == 0 => {
                queue.submit_read(at, data, tag).map_err(full)
            }
            Commands::Function(_) => {
                let what = "offset: the function level reads from the beginning of a page".into();
                Err(failed(FlashError::Invalid { what }))
            }
            Commands::Policy(_) => Err(other_level()),
        })
    }

    /// Writes pages of a block.
    fn write_pages(
        &self,
        py: Python<'_>,
        at: AddressArgument,
        data: Bound<'_, PyAny>,
        oob: Vec<u8>,
        tag: u64,
    ) -> PyResult<()> {
        let (at, data) = (at.0, to_write(&data)?);
        self.call(py, |commands| match commands {
            Commands::Raw(queue) => {
                queue.submit(raw::Command::Write { at, data, oob }, tag).map_err(full)
            }
            Commands::Function(queue) => {
                queue.submit_write_with_oob(at, data, oob, tag).map_err(full)
            }
            Commands::Policy(_) => Err(other_level()),
        })
    }

    /// Erases a block at the raw level, trims it at the function level.
    fn erase(&self, py: Python<'_>, at: AddressArgument, tag: u64) -> PyResult<()> {
        let at = at.0;
        self.call(py, |commands| match commands {
            Commands::Raw(queue) => queue.submit(raw::Command::Erase { at }, tag).map_err(full),
            Commands::Function(queue) => queue.submit_trim(at, Unit::Block, tag).map_err(full),
            Commands::Policy(_) => Err(other_level()),
        })
    }

    /// Reads addresses.
    fn read(&self, py: Python<'_>, at: u64, buffer: Bound<'_, PyAny>, tag: u64) -> PyResult<()> {
        let data = to_fill(&buffer)?;
        self.call(py, |commands| match commands {
            Commands::Policy(queue) => queue.submit(at, data, tag).map_err(full),
            _ => Err(other_level()),
        })
    }

    /// Writes addresses, as data of a placement handle.
    fn write(
        &self,
        py: Python<'_>,
        at: u64,
        data: Bound<'_, PyAny>,
        handle: u32,
        tag: u64,
    ) -> PyResult<()> {
        let data = to_write(&data)?;
        self.call(py, |commands| match commands {
            Commands::Policy(queue) => {
                queue.submit_write_with_handle(at, data, handle, tag).map_err(full)
            }
            _ => Err(other_level()),
        })
    }

    /// Trims addresses.
    fn trim(&self, py: Python<'_>, at: u64, length: u64, tag: u64) -> PyResult<()> {
        self.call(py, |commands| match commands {
            Commands::Policy(queue) => queue.submit_trim(at, length, tag).map_err(failed),
            _ => Err(other_level()),
        })
    }

    /// Makes durable what was written before.
    fn sync(&self, py: Python<'_>, tag: u64) -> PyResult<()> {
        self.call(py, |commands| match commands {
            Commands::Raw(queue) => queue.submit(raw::Command::Sync, tag).map_err(full),
            Commands::Function(queue) => queue.submit_sync(tag).map_err(full),
            Commands::Policy(queue) => queue.submit_flush(tag).map_err(failed),
        })
    }

    /// The commands in flight.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.call(py, |commands| Ok(of_any!(commands, queue => queue.len())))
    }

    /// The next completion, if there is one.
    fn poll(&self, py: Python<'_>) -> PyResult<Option<Completed>> {
        self.call(py, |commands| Ok(of_any!(commands, queue => queue.poll()).map(completed)))
    }

    /// Waits for the next completion.
    fn complete(&self, py: Python<'_>) -> PyResult<Option<Completed>> {
        self.call(py, |commands| Ok(of_any!(commands, queue => queue.complete()).map(completed)))
    }

    /// Waits until there is a completion to take.
    fn wait(&self, py: Python<'_>, timeout_ns: Option<u64>) -> PyResult<bool> {
        let timeout = timeout_ns.map(Nanos);
        self.call(py, |commands| Ok(of_any!(commands, queue => queue.wait(timeout))))
    }

    /// The file descriptor for event loops.
    fn event_fd(&self, py: Python<'_>) -> PyResult<Option<i32>> {
        self.call(py, |commands| {
            Ok(of_any!(commands, queue => queue.event_fd().map(|fd| fd.as_raw_fd())))
        })
    }
}
