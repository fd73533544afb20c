//! A graph that is open: its segments are streamed to threads that compute.
//!
//! Segments that are pinned are read once and stay in memory. A scan that begins again when it has
//! ended would find nothing in a cache of recently used segments, so those pinned are the first
//! ones.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, OnceLock};

use prism_flash::Buffer;
use prism_segments::{FlashCounts, Shape};

use crate::catalog::{Catalog, Direction, Entry};
use crate::check;
use crate::error::{GraphError, Result};
use crate::pool::{Job, Pool};
use crate::segment::{Adjacency, HEADER_BYTES, Header, Kind};
use crate::space::Space;
use crate::stream::{Shared, Worker};

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
    /// Buffers of each thread that are not in use between two streams. If every stream made its
    /// own, the allocator would keep much of the memory of those before.
    buffers: Vec<Vec<Buffer>>,
    /// For each segment of the device the hash with which its lists were checked, or 0.
    known: Vec<AtomicU64>,
    pub(crate) counts: IoCounts,
    watch: Option<Watch>,
}

/// Shows progress: it is called with the number of edges that were streamed since the graph was
/// opened.
pub(crate) type Watch = Arc<dyn Fn(u64) + Send + Sync>;

/// Segments that are computed on together.
pub type Task = Vec<Entry>;

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
        let lists = [Direction::In, Direction::Out].map(|direction| catalog.neighbours(direction));
        let parts = lists.iter().flat_map(|entries| tasks(entries)).map(|task| task.len());
        let parts_max = parts.max().unwrap_or(1) as u64;
        Ok(Self {
            space,
            catalog,
            memory,
            reserved: 0,
            depth: DEPTH_MIN,
            parts_max,
            pins,
            pinned: Vec::new(),
            buffers: Vec::new(),
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

    /// Frees buffers and pinned segments.
    pub fn release(&mut self) {
        self.pins.fill(u32::MAX);
        self.pinned.clear();
        self.buffers.clear();
        self.reserved = 0;
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

    /// The most segments of one vertex; [`Graph::buffers_min`] has buffers of them for each thread.
    pub(crate) fn parts_max(&self) -> u64 {
        self.parts_max
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
        self.release();
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
        let all = self.buffers.len().max(workers);
        self.buffers.resize_with(all, Vec::new);
        let jobs = stores.zip(&mut self.buffers).map(|(store, buffers)| {
            let shared = &shared;
            Box::new(move || Worker::new(shared, store, buffers).run()) as Job<'_>
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

/// Segments in one direction as tasks: each alone, those of one vertex in one column together.
#[must_use]
pub fn tasks(entries: &[Entry]) -> Vec<Task> {
    let is_part =
        |a: &Entry, b: &Entry| a.part && b.part && (a.first, a.column) == (b.first, b.column);
    entries.chunk_by(is_part).map(<[Entry]>::to_vec).collect()
}
