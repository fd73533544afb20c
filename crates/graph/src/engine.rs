//! A graph that is open: its segments are streamed to threads that compute.
//!
//! Each thread has several reads in flight and works on what has arrived. Segments that are pinned
//! are read once and stay in memory. A scan that begins again when it has ended would find nothing
//! in a cache of recently used segments, so those pinned are the first ones.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use prism_flash::Buffer;
use prism_segments::{FlashCounts, Shape};

use crate::catalog::{Catalog, Direction, Entry};
use crate::check::{self, Limits};
use crate::error::{GraphError, Result};
use crate::pool::{Job, Pool};
use crate::segment::{Adjacency, HEADER_BYTES, Header, Kind};
use crate::space::{AnyStore, Space};

/// Segments that a thread has in flight at most.
const DEPTH_MAX: usize = 8;
/// And at least: one that is read while one is computed on.
const DEPTH_MIN: usize = 2;
/// As many before any segment is pinned: with fewer reads in flight the disk waits for the threads.
const DEPTH_USUAL: usize = 4;

/// What was read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCounts {
    /// Bytes of segments that were read from the device.
    pub read: u64,
    /// Bytes of pinned segments that were used from memory.
    pub cached: u64,
    /// Edges that were streamed.
    pub edges: u64,
}

/// A graph on a device.
pub struct Graph {
    pub(crate) space: Space,
    pub(crate) catalog: Catalog,
    /// Bytes of memory that computations may use.
    memory: u64,
    /// Bytes of them that are in use, without pinned segments.
    reserved: u64,
    depth: usize,
    /// The most segments of one vertex, which are in memory together.
    parts_max: u64,
    /// For each segment of the device its number in `pinned`, or `u32::MAX`.
    pins: Vec<u32>,
    pinned: Vec<OnceLock<Vec<u8>>>,
    /// For each segment of the device the hash with which its lists were checked, or 0.
    known: Vec<AtomicU64>,
    pub(crate) counts: IoCounts,
    watch: Option<Watch>,
}

/// Shows progress: it is called with the number of edges that were streamed since the graph was
/// opened.
type Watch = Arc<dyn Fn(u64) + Send + Sync>;

/// Segments that are computed on together.
pub type Task = Vec<Entry>;

/// What threads share while they stream.
struct Shared<'a> {
    tasks: &'a [Task],
    next: AtomicUsize,
    stop: AtomicBool,
    failed: Mutex<Option<GraphError>>,
    pins: &'a [u32],
    pinned: &'a [OnceLock<Vec<u8>>],
    known: &'a [AtomicU64],
    catalog: &'a Catalog,
    generation: u64,
    work: &'a (dyn Fn(usize, &[Adjacency<'_>]) -> Result<()> + Sync),
    depth: usize,
    read: AtomicU64,
    cached: AtomicU64,
    edges: AtomicU64,
    /// Edges of earlier streams.
    edges_before: u64,
    watch: Option<Watch>,
}

impl Graph {
    /// Opens the graph of a space that was opened, with its catalog. Computations use up to
    /// `memory` bytes for the state of vertices, buffers and pinned segments.
    ///
    /// # Errors
    /// [`GraphError::NoGraph`] if there is none; [`GraphError::NoRoot`] or
    /// [`GraphError::Damaged`] if it is damaged.
    pub fn open(space: Space, catalog: Option<Vec<u8>>, memory: u64) -> Result<Self> {
        let catalog = catalog.ok_or(match space.headers() {
            0 => GraphError::NoGraph,
            segments => GraphError::NoRoot(segments),
        })?;
        let catalog = check::catalog(&catalog, &space)?;
        let segments = space.shape().segments as usize;
        let pins = vec![u32::MAX; segments];
        let known = (0..segments).map(|_| AtomicU64::new(0)).collect();
        let is_part = |a: &Entry, b: &Entry| {
            a.part && b.part && (a.kind, a.first, a.column) == (b.kind, b.first, b.column)
        };
        let parts_max = catalog.entries.chunk_by(is_part).map(<[Entry]>::len).max().unwrap_or(1);
        let parts_max = parts_max as u64;
        Ok(Self {
            space,
            catalog,
            memory,
            reserved: 0,
            depth: DEPTH_MIN,
            parts_max,
            pins,
            pinned: Vec::new(),
            known,
            counts: IoCounts::default(),
            watch: None,
        })
    }

    /// What the graph is.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// What was read since the graph was opened.
    #[must_use]
    pub fn io(&self) -> IoCounts {
        self.counts
    }

    /// Calls `watch` after each segment of lists that is streamed, on any thread, with the number
    /// of edges that were streamed since the graph was opened.
    pub fn watch(&mut self, watch: impl Fn(u64) + Send + Sync + 'static) {
        self.watch = Some(Arc::new(watch));
    }

    /// The segments of the device.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.space.shape()
    }

    /// What was done to the flash of the device.
    #[must_use]
    pub fn flash(&self) -> FlashCounts {
        self.space.counts()
    }

    /// Bytes of memory that the current computation uses, and those of pinned segments in it.
    #[must_use]
    pub fn memory_used(&self) -> (u64, u64) {
        let pinned = self.pinned.iter().filter_map(OnceLock::get);
        let pinned = pinned.map(|bytes| bytes.len() as u64).sum();
        (self.reserved + pinned, pinned)
    }

    /// Bytes of memory that computations may use.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// Changes the memory that the next computation may use.
    pub fn set_memory(&mut self, memory: u64) {
        self.memory = memory;
    }

    /// Bytes that are left for the state of vertices next to the fewest buffers.
    #[must_use]
    pub fn state_max(&self, pool: &dyn Pool) -> u64 {
        self.memory.saturating_sub(self.buffers_min(pool))
    }

    /// Bytes of the fewest buffers.
    #[must_use]
    pub fn buffers_min(&self, pool: &dyn Pool) -> u64 {
        self.buffers(pool, DEPTH_MIN)
    }

    /// Bytes of buffers with `depth` segments in flight a thread: the last of them may be that of a
    /// vertex with several.
    fn buffers(&self, pool: &dyn Pool, depth: usize) -> u64 {
        self.workers(pool) * (depth as u64 + self.parts_max - 1) * self.segment_bytes()
    }

    /// Bytes of a segment.
    pub(crate) fn segment_bytes(&self) -> u64 {
        self.space.shape().segment_bytes.into()
    }

    fn workers(&self, pool: &dyn Pool) -> u64 {
        pool.threads().max(1) as u64
    }

    /// Divides the memory: `state` bytes are for the state of `what`, the rest for buffers and, in
    /// the order of `streams`, for pinned segments.
    ///
    /// # Errors
    /// [`GraphError::Memory`] if that is more than the memory.
    pub fn reserve(
        &mut self,
        what: &'static str,
        state: u64,
        streams: &[Direction],
        pool: &dyn Pool,
    ) -> Result<()> {
        let segment = self.segment_bytes();
        let left = self.state_max(pool);
        if state > left {
            return Err(GraphError::Memory {
                what,
                needed: state + self.buffers_min(pool),
                allowed: self.memory,
                vertices: self.catalog.vertices.into(),
            });
        }
        let workers = self.workers(pool);
        let fit = ((left - state) / (workers * segment)) as usize;
        self.depth = (DEPTH_MIN + fit).min(DEPTH_USUAL).max(DEPTH_MIN + fit / 4).min(DEPTH_MAX);
        self.reserved = state + self.buffers(pool, self.depth);
        self.pins.fill(u32::MAX);
        self.pinned.clear();
        let mut left = self.memory.saturating_sub(self.reserved);
        for direction in streams {
            for entry in self.catalog.neighbours(*direction) {
                let bytes = entry.bytes() as u64;
                if bytes > left {
                    return Ok(());
                }
                if self.pins[entry.segment as usize] == u32::MAX {
                    left -= bytes;
                    self.pins[entry.segment as usize] = self.pinned.len() as u32;
                    self.pinned.push(OnceLock::new());
                }
            }
        }
        Ok(())
    }

    /// Streams the segments of `tasks` to `work`, which is called with the number of a task and its
    /// segments, on several threads and in no fixed order.
    ///
    /// # Errors
    /// That of `work`; [`GraphError::Damaged`]; [`GraphError::Flash`].
    pub fn stream(
        &mut self,
        pool: &dyn Pool,
        tasks: &[Task],
        work: &(dyn Fn(usize, &[Adjacency<'_>]) -> Result<()> + Sync),
    ) -> Result<()> {
        let shared = Shared {
            tasks,
            next: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            failed: Mutex::new(None),
            pins: &self.pins,
            pinned: &self.pinned,
            known: &self.known,
            catalog: &self.catalog,
            generation: self.space.generation(),
            work,
            depth: self.depth,
            read: AtomicU64::new(0),
            cached: AtomicU64::new(0),
            edges: AtomicU64::new(0),
            edges_before: self.counts.edges,
            watch: self.watch.clone(),
        };
        let workers = pool.threads().clamp(1, tasks.len().max(1));
        let stores = self.space.stores().iter_mut().take(workers);
        let jobs = stores.map(|store| {
            let shared = &shared;
            Box::new(move || Worker::new(shared, store).run()) as Job<'_>
        });
        pool.run(jobs.collect());
        let Shared { failed, read, cached, edges, .. } = shared;
        self.counts.read += read.into_inner();
        self.counts.cached += cached.into_inner();
        self.counts.edges += edges.into_inner();
        match failed.into_inner().expect("no thread panics in the lock") {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

impl Entry {
    /// Bytes of the segment that are used.
    #[must_use]
    pub fn bytes(&self) -> usize {
        HEADER_BYTES + self.payload as usize
    }

    /// The header that the segment has to have if it has no neighbours.
    pub(crate) fn header(&self, kind: Kind) -> Header {
        Header { payload: self.payload, ..Header::plain(kind, self.first, self.vertices) }
    }
}

/// Segments in one direction as tasks: each alone, those of one vertex together.
#[must_use]
pub fn tasks(entries: &[Entry]) -> Vec<Task> {
    let mut tasks: Vec<Task> = Vec::new();
    for entry in entries {
        match tasks.last_mut() {
            Some(task) if entry.part && task[0].part && task[0].first == entry.first => {
                task.push(*entry);
            }
            _ => tasks.push(vec![*entry]),
        }
    }
    tasks
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
struct Worker<'a> {
    shared: &'a Shared<'a>,
    store: &'a mut AnyStore,
    pending: Vec<Option<Pending<'a>>>,
    buffers: Vec<Buffer>,
    in_flight: usize,
}

impl<'a> Worker<'a> {
    fn new(shared: &'a Shared<'a>, store: &'a mut AnyStore) -> Self {
        Self { shared, store, pending: Vec::new(), buffers: Vec::new(), in_flight: 0 }
    }

    fn run(mut self) {
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
            pending.parts[done.tag as u32 as usize] = Bytes::Read(done.data);
            if let Err(error) = done.result {
                self.fail(error.into());
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
