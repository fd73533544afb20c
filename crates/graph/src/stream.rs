//! Threads that stream segments: each has several reads in flight and works on what has arrived.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use prism_flash::Buffer;

use crate::catalog::{Catalog, Entry};
use crate::check::Limits;
use crate::engine::{Task, Watch};
use crate::error::{GraphError, Result};
use crate::segment::{Adjacency, Header};
use crate::space::AnyStore;

/// What threads share while they stream.
pub(crate) struct Shared<'a> {
    pub(crate) tasks: &'a [Task],
    pub(crate) next: AtomicUsize,
    pub(crate) stop: AtomicBool,
    pub(crate) failed: Mutex<Option<GraphError>>,
    pub(crate) pins: &'a [u32],
    pub(crate) pinned: &'a [OnceLock<Vec<u8>>],
    pub(crate) known: &'a [AtomicU64],
    pub(crate) catalog: &'a Catalog,
    pub(crate) generation: u64,
    pub(crate) work: &'a (dyn Fn(usize, &[Adjacency<'_>]) -> Result<()> + Sync),
    pub(crate) depth: usize,
    pub(crate) read: AtomicU64,
    pub(crate) cached: AtomicU64,
    pub(crate) edges: AtomicU64,
    /// Edges of earlier streams.
    pub(crate) edges_before: u64,
    pub(crate) watch: Option<Watch>,
}

/// A segment of a task: in memory anyway, or read.
enum Bytes<'a> {
    Missing,
    Pinned(&'a [u8]),
    Read(Buffer),
}

impl Bytes<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Missing => &[],
            Self::Pinned(bytes) => bytes,
            Self::Read(buffer) => buffer,
        }
    }
}

/// A task of which segments are being read.
struct Pending<'a> {
    task: usize,
    parts: Vec<Bytes<'a>>,
    missing: usize,
}

/// A thread that streams.
pub(crate) struct Worker<'a> {
    shared: &'a Shared<'a>,
    store: &'a mut AnyStore,
    pending: Vec<Option<Pending<'a>>>,
    buffers: &'a mut Vec<Buffer>,
    in_flight: usize,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(
        shared: &'a Shared<'a>,
        store: &'a mut AnyStore,
        buffers: &'a mut Vec<Buffer>,
    ) -> Self {
        Self { shared, store, pending: Vec::new(), buffers, in_flight: 0 }
    }

    pub(crate) fn run(mut self) {
        loop {
            loop {
                let stopped = self.shared.stop.load(Ordering::Relaxed);
                if stopped || self.held() >= self.shared.depth || !self.begin() {
                    break;
                }
            }
            let ready = self
                .pending
                .iter()
                .position(|pending| pending.as_ref().is_some_and(|pending| pending.missing == 0));
            if let Some(at) = ready {
                let pending = self.pending[at].take().expect("it is ready");
                if let Err(error) = self.finish(pending) {
                    self.fail(error);
                }
            } else if self.in_flight > 0 {
                self.take_completions();
            } else {
                return;
            }
        }
    }

    /// Segments that are read or were.
    fn held(&self) -> usize {
        self.pending.iter().flatten().map(|pending| pending.parts.len()).sum()
    }

    fn fail(&self, error: GraphError) {
        self.shared.stop.store(true, Ordering::Relaxed);
        let mut failed = self.shared.failed.lock().expect("no thread panics in the lock");
        failed.get_or_insert(error);
    }

    /// Begins the next task; false if there is none.
    fn begin(&mut self) -> bool {
        let task = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let Some(entries) = self.shared.tasks.get(task) else { return false };
        let free = self.pending.iter().position(Option::is_none);
        let at = free.unwrap_or_else(|| {
            self.pending.push(None);
            self.pending.len() - 1
        });
        let shape = self.store.shape();
        let mut pending = Pending { task, parts: Vec::with_capacity(entries.len()), missing: 0 };
        for (part, entry) in entries.iter().enumerate() {
            let pin = self.shared.pins[entry.segment as usize];
            let pinned = self.shared.pinned.get(pin as usize).and_then(OnceLock::get);
            if let Some(bytes) = pinned {
                self.shared.cached.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                pending.parts.push(Bytes::Pinned(bytes));
                continue;
            }
            let len = entry.bytes().next_multiple_of(shape.page_bytes as usize);
            let new = || self.store.buffer(shape.segment_bytes as usize);
            // A simulated drive gives back buffers that are as long as what was read.
            let large = |buffer: &Buffer| buffer.capacity() >= len;
            let mut buffer = self.buffers.pop().filter(large).unwrap_or_else(new);
            buffer.set_len(len);
            let tag = (at as u64) << 32 | part as u64;
            self.store.read(entry.segment, 0, buffer, tag);
            self.shared.read.fetch_add(len as u64, Ordering::Relaxed);
            pending.parts.push(Bytes::Missing);
            pending.missing += 1;
            self.in_flight += 1;
        }
        self.pending[at] = Some(pending);
        true
    }

    fn take_completions(&mut self) {
        let mut any = false;
        while let Some(done) = self.store.poll() {
            any = true;
            self.in_flight -= 1;
            let pending = self.pending[(done.tag >> 32) as usize].as_mut().expect("it is read");
            pending.missing -= 1;
            let part = done.tag as u32 as usize;
            pending.parts[part] = Bytes::Read(done.data);
            if let Err(error) = done.result {
                let segment = self.shared.tasks[pending.task][part].segment;
                self.fail(GraphError::of_read(segment, error));
            }
        }
        if !any {
            self.store.wait(None);
        }
    }

    /// Computes on a task, unless a failure has ended the stream.
    fn finish(&mut self, pending: Pending<'a>) -> Result<()> {
        let entries = &self.shared.tasks[pending.task];
        let mut result = Ok(());
        if !self.shared.stop.load(Ordering::Relaxed) {
            result = self.compute(entries, &pending);
        }
        for part in pending.parts {
            if let Bytes::Read(buffer) = part {
                self.buffers.push(buffer);
            }
        }
        self.buffers.truncate(self.shared.depth);
        result
    }

    fn compute(&self, entries: &[Entry], pending: &Pending<'a>) -> Result<()> {
        let mut lists = Vec::with_capacity(entries.len());
        for (entry, part) in entries.iter().zip(&pending.parts) {
            let bytes = match part {
                Bytes::Read(buffer) => {
                    let bytes = checked(entry, buffer, self.shared.generation)?;
                    self.check_lists(entry, bytes)?;
                    let pin = self.shared.pins[entry.segment as usize];
                    if let Some(pinned) = self.shared.pinned.get(pin as usize) {
                        pinned.get_or_init(|| bytes.to_vec());
                    }
                    bytes
                }
                part => part.bytes(),
            };
            lists.push(adjacency(entry, bytes)?);
            let edges = u64::from(entry.edges);
            let before = self.shared.edges.fetch_add(edges, Ordering::Relaxed);
            if let Some(watch) = &self.shared.watch {
                watch(self.shared.edges_before + before + edges);
            }
        }
        (self.shared.work)(pending.task, &lists)
    }

    /// Checks all lists of a segment, if these bytes were not checked before: two nanoseconds an
    /// edge, which would be felt if it were done in every round.
    fn check_lists(&self, entry: &Entry, bytes: &[u8]) -> Result<()> {
        let known = &self.shared.known[entry.segment as usize];
        let hash = Header::hash(bytes);
        if known.load(Ordering::Relaxed) == hash && hash != 0 {
            return Ok(());
        }
        let checked = Limits::of(self.shared.catalog, entry).check(&adjacency(entry, bytes)?);
        checked.map_err(|what| GraphError::Damaged { segment: entry.segment, what })?;
        known.store(hash, Ordering::Relaxed);
        Ok(())
    }
}

/// The lists of a segment.
fn adjacency<'b>(entry: &Entry, bytes: &'b [u8]) -> Result<Adjacency<'b>> {
    Adjacency::new(bytes).ok_or(GraphError::Damaged {
        segment: entry.segment,
        what: "its parts have other lengths than its header says",
    })
}

/// The used bytes of a segment, if it is the one that the catalog describes.
fn checked<'b>(entry: &Entry, bytes: &'b [u8], generation: u64) -> Result<&'b [u8]> {
    let damaged = |what| GraphError::Damaged { segment: entry.segment, what };
    let (header, _) = Header::open(bytes).ok_or_else(|| damaged("its hash is wrong"))?;
    let is = (header.kind as u32, header.first, header.vertices, header.edges, header.payload);
    let wanted = (entry.kind, entry.first, entry.vertices, entry.edges, entry.payload);
    if is != wanted || header.generation != generation {
        return Err(damaged("it is another segment than the catalog says"));
    }
    Ok(&bytes[..entry.bytes()])
}
