//! Captures the requests that a running system sends to its block devices.
//!
//! Three ways, the first that works is taken: BPF programs of our own, which also see
//! files, hints and streams; ftrace in an instance of its own, so that nobody else's
//! tracing is touched; the `blk` tracer, of which the kernel has only one. A thread takes
//! what the kernel hands out, turns it into records and spools them until the capture is
//! stopped.

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
pub use marks::{MarkDoor, mark};
use source::Source;
pub use wait::{Ended, Until, wait};

/// How long the thread sleeps when it has taken everything: the buffer holds what a
/// million requests a second leave in ten times as long.
const PAUSE: Duration = Duration::from_millis(5);

/// A way to see requests, in the order in which they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// BPF programs of our own.
    Bpf,
    /// ftrace events in an instance of their own.
    Ftrace,
    /// The `blk` tracer.
    Blk,
}

impl Backend {
    /// Every backend, best first.
    pub const ALL: [Self; 3] = [Self::Bpf, Self::Ftrace, Self::Blk];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bpf => "bpf",
            Self::Ftrace => "ftrace",
            Self::Blk => "blk",
        }
    }
}

/// A backend that does not work here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which.
    pub backend: Backend,
    /// Why not.
    pub why: String,
}

/// What to capture, and how.
#[derive(Clone, Debug)]
pub struct CaptureSpec {
    /// Disks and partitions; none: every disk.
    pub devices: Vec<PathBuf>,
    /// The backend; `None` is the first that works.
    pub backend: Option<Backend>,
    /// Memory in which the kernel keeps events until they are taken: for BPF in all, for
    /// ftrace of each processor. Rounded up to a power of two.
    pub buffer: Bytes,
}

impl Default for CaptureSpec {
    /// Every disk, the first backend that works, 16 MiB.
    fn default() -> Self {
        Self { devices: Vec::new(), backend: None, buffer: Bytes(16 << 20) }
    }
}

/// A capture that runs.
#[derive(Debug)]
pub struct Capture {
    thread: JoinHandle<Result<Taken, CaptureError>>,
    shared: Arc<Shared>,
    backend: Backend,
    refused: Vec<Refusal>,
    disks: Vec<Disk>,
    door: MarkDoor,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    requests: AtomicU64,
}

/// What a capture saw.
#[derive(Debug)]
pub struct Captured {
    /// The trace, ready to be stored, replayed and reported.
    pub trace: LoadedTrace,
    /// How it was made.
    pub backend: Backend,
    /// What was tried before, and why it does not work here.
    pub refused: Vec<Refusal>,
    /// The disks that were meant; none: all.
    pub disks: Vec<Disk>,
    /// Events for which the kernel had no room.
    pub lost: u64,
}

/// What the thread leaves.
struct Taken {
    trace: LoadedTrace,
    lost: u64,
}

/// Begins to capture.
///
/// # Errors
/// [`CaptureError`] if a device is none, or the system lets nobody see its requests.
pub fn start(spec: &CaptureSpec) -> Result<Capture, CaptureError> {
    let disks = devices::resolve(&spec.devices)?;
    if disks.len() > bpf::DEVICES_MAX {
        let (count, most) = (disks.len(), bpf::DEVICES_MAX);
        return Err(CaptureError::TooMany { count, most });
    }
    let (mut source, mut live, refused) = Source::start(spec, &disks)?;
    let backend = source.backend();
    let door = MarkDoor::open()?;
    let marks = door.listener()?;
    let shared = Arc::new(Shared::default());
    let (theirs, wanted) = (Arc::clone(&shared), disks.clone());
    let run = move || {
        let result = run(&mut source, &mut live, &marks, &wanted, &theirs);
        // Whatever happened, the kernel's tracing is as it was.
        source.undo();
        result
    };
    let thread = thread::Builder::new().name("capture".into()).spawn(run);
    let thread = thread
        .map_err(|source| CaptureError::Kernel { file: "a thread of its own".into(), source })?;
    Ok(Capture { thread, shared, backend, refused, disks, door })
}

impl Capture {
    /// How requests are seen.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// What was tried before, and why it does not work here.
    #[must_use]
    pub fn refused(&self) -> &[Refusal] {
        &self.refused
    }

    /// Where processes leave marks for this capture.
    #[must_use]
    pub fn door(&self) -> &MarkDoor {
        &self.door
    }

    /// From now on requests belong to the phase `name`.
    ///
    /// # Errors
    /// [`CaptureError`] if the capture has ended on its own.
    pub fn mark(&self, name: &str) -> Result<(), CaptureError> {
        self.door.mark(name)
    }

    /// Requests and flushes seen so far.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Whether the capture has ended on its own: then [`Capture::stop`] tells why.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends the capture; what was in flight is waited for by nobody.
    ///
    /// # Errors
    /// [`CaptureError`] that the capture met.
    ///
    /// # Panics
    /// If the thread that took the events did.
    pub fn stop(self) -> Result<Captured, CaptureError> {
        self.shared.stop.store(true, Ordering::Release);
        let taken = self.thread.join().expect("the capturing thread does not panic")?;
        Ok(Captured {
            trace: taken.trace,
            backend: self.backend,
            refused: self.refused,
            disks: self.disks,
            lost: taken.lost,
        })
    }
}

/// Takes events until it is told to stop.
fn run(
    source: &mut Source,
    live: &mut Live,
    marks: &marks::Listener,
    disks: &[Disk],
    shared: &Shared,
) -> Result<Taken, CaptureError> {
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
            live.mark(&name, time_ns).map_err(|error| failed(source, &what(error)))?;
        }
        let outcome = if stops {
            Some(live.finish(&mut records).map_err(|error| failed(source, &error))?)
        } else {
            live.end_round(&mut records).map_err(|error| failed(source, &error))?;
            None
        };
        let taken = records.len() as u64;
        select(&mut records, disks, live);
        keep.take(&mut records, live.symbols())?;
        shared.requests.fetch_add(taken, Ordering::Relaxed);
        if let Some(outcome) = outcome {
            let counted = match source.counts_bios() {
                true => CountedFrom::Queue,
                false => CountedFrom::Issue,
            };
            let facts = TraceFacts::new(live.format(), &outcome, counted);
            let symbols = live.symbols().clone();
            let trace = keep.into_trace("capture".into(), symbols, facts)?;
            return Ok(Taken { trace, lost: live.lost_events() });
        }
        thread::sleep(PAUSE);
    }
}

fn failed(source: &Source, what: &dyn std::fmt::Display) -> CaptureError {
    CaptureError::Failed { backend: source.backend(), what: what.to_string() }
}

/// Leaves the records that belong to one of `disks`.
fn select(records: &mut Vec<Record>, disks: &[Disk], live: &Live) {
    if disks.iter().all(|disk| disk.part.is_none()) {
        return;
    }
    records.retain(|record| {
        let device = live.symbols().name(record.device);
        disks.iter().any(|disk| disk.label() == device && disk.has(record))
    });
}
