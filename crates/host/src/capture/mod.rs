//! Captures the requests that a running system sends to its block devices.
//!
//! There are three backends, and the first that works is used: Prism's own BPF programs, which
//! also see files, write hints and streams; ftrace in a separate instance, so that other users
//! of tracing are not disturbed; the `blk` tracer, of which the kernel has only one. A thread
//! reads the events from the kernel, turns them into records and stores these until the capture
//! is stopped.

mod blk_tracer;
mod bpf;
pub mod devices;
mod error;
mod ftrace;
mod marks;
mod owner;
mod restore;
mod source;
mod tracefs;
mod wait;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use prism_base::Bytes;
use prism_trace::{CountedFrom, Live, Record, TraceFacts};

use crate::load::{Keep, LoadedTrace};
use devices::Disk;
pub use error::CaptureError;
pub use marks::{MarkSocket, VARIABLE, mark};
use source::Source;
pub use wait::{AFTER, Ended, Until, wait};

/// How long the thread sleeps when it has read everything: the buffer holds ten times the
/// events that a million requests per second cause in this time.
const PAUSE: Duration = Duration::from_millis(5);

prism_base::named_enum! {
    /// A source of events, in the order in which they are tried.
    pub enum Backend {
        /// Prism's own BPF programs.
        Bpf = "bpf",
        /// ftrace events in a separate instance.
        Ftrace = "ftrace",
        /// The `blk` tracer.
        Blk = "blk",
    }
}

/// A backend that does not work here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The backend.
    pub backend: Backend,
    /// Why it does not work.
    pub why: String,
}

/// What to capture, and how.
#[derive(Clone, Debug)]
pub struct CaptureSpec {
    /// Disks and partitions; none: every disk.
    pub devices: Vec<PathBuf>,
    /// The backend; `None` is the first that works.
    pub backend: Option<Backend>,
    /// The size of the kernel's buffer for events: in total for BPF, per CPU for ftrace.
    /// Rounded up to a power of two.
    pub buffer: Bytes,
}

impl Default for CaptureSpec {
    /// Every disk, the first backend that works, 16 MiB.
    fn default() -> Self {
        Self { devices: Vec::new(), backend: None, buffer: Bytes(16 << 20) }
    }
}

/// A running capture.
#[derive(Debug)]
pub struct Capture {
    thread: JoinHandle<Result<Recording, CaptureError>>,
    shared: Arc<Shared>,
    backend: Backend,
    refused: Vec<Refusal>,
    mark_socket: MarkSocket,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    requests: AtomicU64,
}

/// The result of a capture.
#[derive(Debug)]
pub struct Captured {
    /// The trace, ready to be stored, replayed and reported.
    pub trace: LoadedTrace,
    /// The backend that was used.
    pub backend: Backend,
    /// The backends that were tried before, and why they do not work here.
    pub refused: Vec<Refusal>,
    /// Events that the kernel dropped because its buffer was full.
    pub lost: u64,
}

/// The result of the thread.
struct Recording {
    trace: LoadedTrace,
    lost: u64,
}

/// Begins to capture.
///
/// # Errors
/// [`CaptureError`] if a path is not a block device, or no backend works.
pub fn start(spec: &CaptureSpec) -> Result<Capture, CaptureError> {
    let disks = devices::resolve(&spec.devices)?;
    if disks.len() > bpf::DEVICES_MAX {
        let (count, most) = (disks.len(), bpf::DEVICES_MAX);
        return Err(CaptureError::TooMany { count, most });
    }
    let (mut source, mut live, refused) = Source::start(spec, &disks)?;
    let backend = source.backend;
    let mark_socket = MarkSocket::open()?;
    let marks = mark_socket.listener()?;
    let shared = Arc::new(Shared::default());
    let theirs = Arc::clone(&shared);
    let run = move || {
        let result = run(&mut source, &mut live, &marks, &disks, &theirs);
        // In any case the kernel's tracing is restored.
        drop(source);
        result
    };
    let thread = thread::Builder::new().name("capture".into()).spawn(run);
    let thread = thread
        .map_err(|source| CaptureError::Kernel { file: "a thread of its own".into(), source })?;
    Ok(Capture { thread, shared, backend, refused, mark_socket })
}

impl Capture {
    /// The backend in use.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// The backends that were tried before, and why they do not work here.
    #[must_use]
    pub fn refused(&self) -> &[Refusal] {
        &self.refused
    }

    /// The socket through which processes send marks to this capture.
    #[must_use]
    pub fn mark_socket(&self) -> &MarkSocket {
        &self.mark_socket
    }

    /// From now on requests belong to the phase `name`.
    ///
    /// # Errors
    /// [`CaptureError`] if the capture has ended by itself.
    pub fn mark(&self, name: &str) -> Result<(), CaptureError> {
        if self.has_ended() {
            let what = format!("{name}: the capture has ended by itself; stop it to see why");
            return Err(CaptureError::NoCapture { what });
        }
        self.mark_socket.mark(name)
    }

    /// Requests and flushes seen so far.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Whether the capture has ended by itself: then [`Capture::stop`] returns the reason.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends the capture, without waiting for requests in flight.
    ///
    /// # Errors
    /// The [`CaptureError`] at which the capture failed.
    ///
    /// # Panics
    /// If the capturing thread panicked.
    pub fn stop(self) -> Result<Captured, CaptureError> {
        self.shared.stop.store(true, Ordering::Release);
        let recording = self.thread.join().expect("the capturing thread does not panic")?;
        Ok(Captured {
            trace: recording.trace,
            backend: self.backend,
            refused: self.refused,
            lost: recording.lost,
        })
    }
}

/// Reads events until the capture is stopped.
fn run(
    source: &mut Source,
    live: &mut Live,
    marks: &marks::Listener,
    disks: &[Disk],
    shared: &Shared,
) -> Result<Recording, CaptureError> {
    let (mut keep, mut records) = (Keep::everything(), Vec::new());
    loop {
        let stops = shared.stop.load(Ordering::Acquire);
        if stops {
            source.stop(live)?;
        } else {
            source.pump(live)?;
        }
        for (name, time_ns) in marks.take() {
            let what = |error| format!("mark {name:?}: {error}");
            live.mark(&name, time_ns).map_err(|error| source.failed(&what(error)))?;
        }
        let outcome = if stops {
            Some(live.finish(&mut records).map_err(|error| source.failed(&error))?)
        } else {
            live.end_round(&mut records).map_err(|error| source.failed(&error))?;
            None
        };
        let taken = records.len() as u64;
        select(&mut records, disks, live);
        keep.take(&mut records, live.symbols())?;
        shared.requests.fetch_add(taken, Ordering::Relaxed);
        if let Some(outcome) = outcome {
            let counted = match source.by_bio {
                true => CountedFrom::Queue,
                false => CountedFrom::Issue,
            };
            let facts = TraceFacts::new(live.format(), &outcome, counted);
            let symbols = live.symbols().clone();
            let trace = keep.into_trace("capture".into(), symbols, facts)?;
            return Ok(Recording { trace, lost: live.lost_events() });
        }
        thread::sleep(PAUSE);
    }
}

/// Keeps only the records that belong to one of `disks`.
fn select(records: &mut Vec<Record>, disks: &[Disk], live: &Live) {
    if disks.iter().all(|disk| disk.part.is_none()) {
        return;
    }
    records.retain(|record| {
        let device = live.symbols().name(record.device);
        disks.iter().any(|disk| disk.label() == device && disk.has(record))
    });
}
