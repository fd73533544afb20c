//! Devices that end with the command that made them: in memory, or a simulated drive in virtual
//! time.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prism_base::{Bytes, Nanos, SimTime};
use prism_flash::{Buffer, FlashError};
use prism_graph::space::AnyStore;
use prism_graph::{GraphError, Space};
use prism_nand::Cause;
use prism_segments::{Done, DriveStore, FlashCounts, Shape, Store};
use prism_ssd::{Drive, DriveSpec, fit};
use serde::Serialize;

use crate::counted::{Amounts, Counted};
use crate::device::{GraphDevice, Opened, block_bytes, segments};
use crate::error::StoreError;

/// The name of such a device in the place of a file.
pub const MEMORY: &str = "memory";

/// What a device did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Work {
    /// Bytes that the engine read.
    pub read_bytes: u64,
    /// Bytes that the engine wrote.
    pub written_bytes: u64,
    /// Bytes that were copied below it, by cleaning.
    pub copied_bytes: u64,
    /// Blocks that were erased.
    pub erases: u64,
    /// Seconds of virtual time that it took, on a simulated drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_seconds: Option<f64>,
}

impl Work {
    /// What was done since `before`.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let seconds = self.virtual_seconds.zip(before.virtual_seconds);
        Self {
            read_bytes: self.read_bytes - before.read_bytes,
            written_bytes: self.written_bytes - before.written_bytes,
            copied_bytes: self.copied_bytes - before.copied_bytes,
            erases: self.erases - before.erases,
            virtual_seconds: seconds.map(|(now, before)| now - before),
        }
    }
}

/// A device with a space for a graph and one for results.
pub trait Spaces {
    /// The space of the graph, and its catalog, with a store for each of `threads` threads that can
    /// use one.
    ///
    /// # Errors
    /// [`GraphError::Flash`].
    fn graph(&self, threads: usize) -> Result<Opened, GraphError>;

    /// The space of results, and its catalog.
    ///
    /// # Errors
    /// [`GraphError::Flash`].
    fn results(&self) -> Result<Opened, GraphError>;

    /// What it did so far.
    fn work(&self) -> Work;
}

/// A device in memory for this many bytes of graph and of results; with a `drive`, one of that
/// kind, made smaller.
///
/// # Errors
/// [`StoreError`] if there is no such small drive.
pub fn make_in_memory(
    drive: Option<&DriveSpec>,
    graph: u64,
    results: u64,
) -> Result<Box<dyn Spaces>, StoreError> {
    Ok(match drive {
        None => Box::new(GraphDevice::make(None, graph, results)?),
        Some(spec) => Box::new(SimulatedDrive::make(spec, graph, results)?),
    })
}

/// A simulated drive, whose addresses are two ranges of segments.
struct SimulatedDrive {
    shared: Arc<Mutex<Shared>>,
    /// Segments of the graph, which come first, and of results.
    segments: [u32; 2],
    amounts: Arc<Amounts>,
}

/// What the ranges share.
struct Shared {
    store: DriveStore<Drive>,
    /// Commands of each range that have ended.
    done: [VecDeque<Done>; 2],
    /// Segments of each range that were written.
    used: [BTreeSet<u32>; 2],
}

/// The segments of one range.
struct Range {
    shared: Arc<Mutex<Shared>>,
    side: usize,
    first: u32,
    shape: Shape,
    free: VecDeque<u32>,
}

/// The bit of a tag that says which range a command is of.
const SIDE: u32 = 63;

impl SimulatedDrive {
    fn make(spec: &DriveSpec, graph: u64, results: u64) -> Result<Self, StoreError> {
        let refused = |why: String| StoreError::Refused(format!("--preset: {why}"));
        let block = block_bytes(graph);
        let (graph, results) = segments(graph, results, block);
        // Some drives have units that are longer than blocks of a small graph.
        let block = block.next_multiple_of(spec.geometry().unit.0);
        let size = Bytes(u64::from(graph + results) * block);
        let scaled = fit(spec, size).map_err(|error| refused(error.to_string()))?.device;
        let nand = scaled.erased_with_content();
        let channels = scaled.flash.channels;
        let drive = Drive::with_nand(scaled, nand, 1);
        let drive = drive.map_err(|error| refused(error.to_string()))?;
        let store = DriveStore::new(drive, block as u32, channels, true, counts);
        let there = store.shape().segments;
        if there < graph + results {
            let why = format!("its drive is too small: {there} of {} segments", graph + results);
            return Err(refused(why));
        }
        let shared = Shared { store, done: Default::default(), used: Default::default() };
        let shared = Arc::new(Mutex::new(shared));
        Ok(Self { shared, segments: [graph, results], amounts: Arc::default() })
    }

    fn space(&self, side: usize) -> Result<Opened, GraphError> {
        let count = self.segments[side];
        let inner = lock(&self.shared);
        let shape = Shape { segments: count, ..inner.store.shape() };
        let free = (0..count).filter(|segment| !inner.used[side].contains(segment)).collect();
        drop(inner);
        let first = if side == 0 { 0 } else { self.segments[0] };
        let range = Range { shared: Arc::clone(&self.shared), side, first, shape, free };
        let store = Counted { store: range, amounts: Arc::clone(&self.amounts) };
        Space::open(vec![Box::new(store) as AnyStore])
    }
}

/// What the drive did to flash, in mapping units.
fn counts(drive: &Drive) -> FlashCounts {
    let counts = drive.flash_counts();
    let programs = counts.units[Cause::Host];
    let (copies, erases) = (counts.units.total() - programs, counts.erases.total());
    FlashCounts { programs, copies, reads: 0, erases }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Spaces for SimulatedDrive {
    fn graph(&self, _threads: usize) -> Result<Opened, GraphError> {
        // With one thread the order of commands, and so the time, is the same each time.
        self.space(0)
    }

    fn results(&self) -> Result<Opened, GraphError> {
        self.space(1)
    }

    fn work(&self) -> Work {
        let inner = lock(&self.shared);
        let counts = inner.store.counts();
        let (read_bytes, written_bytes) = self.amounts.get();
        Work {
            read_bytes,
            written_bytes,
            copied_bytes: counts.copies * u64::from(inner.store.shape().page_bytes),
            erases: counts.erases,
            virtual_seconds: Some(inner.store.now().0 as f64 / 1e9),
        }
    }
}

impl Shared {
    /// Gives each range its commands that have ended.
    fn take(&mut self) {
        while let Some(done) = self.store.poll() {
            let side = (done.tag >> SIDE) as usize;
            let tag = done.tag & !(1 << SIDE);
            self.done[side].push_back(Done { tag, ..done });
        }
    }
}

impl Range {
    fn tag(&self, tag: u64) -> u64 {
        tag | (self.side as u64) << SIDE
    }
}

impl Store for Range {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn identity(&self) -> u64 {
        1
    }

    fn used(&mut self) -> Result<Vec<u32>, FlashError> {
        Ok(lock(&self.shared).used[self.side].iter().copied().collect())
    }

    fn available(&mut self) -> u32 {
        self.free.len() as u32
    }

    fn open(&mut self) -> Result<Option<u32>, FlashError> {
        Ok(self.free.pop_front())
    }

    fn write(&mut self, segment: u32, offset: u32, data: Buffer, tag: u64) {
        let mut inner = lock(&self.shared);
        inner.used[self.side].insert(segment);
        inner.store.write(self.first + segment, offset, data, self.tag(tag));
    }

    fn read(&mut self, segment: u32, offset: u32, data: Buffer, tag: u64) {
        lock(&self.shared).store.read(self.first + segment, offset, data, self.tag(tag));
    }

    fn free(&mut self, segment: u32) -> Result<(), FlashError> {
        let mut inner = lock(&self.shared);
        inner.used[self.side].remove(&segment);
        inner.store.free(self.first + segment)?;
        self.free.push_back(segment);
        Ok(())
    }

    fn sync(&mut self, tag: u64) {
        lock(&self.shared).store.sync(self.tag(tag));
    }

    fn poll(&mut self) -> Option<Done> {
        let mut inner = lock(&self.shared);
        inner.take();
        inner.done[self.side].pop_front()
    }

    fn wait(&mut self, timeout: Option<Nanos>) -> bool {
        let mut inner = lock(&self.shared);
        inner.take();
        while inner.done[self.side].is_empty() {
            let ended = inner.store.wait(timeout);
            inner.take();
            if !ended {
                return false;
            }
        }
        true
    }

    fn counts(&self) -> FlashCounts {
        lock(&self.shared).store.counts()
    }

    fn now(&self) -> SimTime {
        lock(&self.shared).store.now()
    }
}
