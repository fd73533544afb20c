//! The devices of graphs: two ranges of the policy level, one for segments of the graph, which are
//! never updated, and one for results, of which two generations are kept.

use std::path::Path;
use std::sync::Arc;

use prism_base::Bytes;
use prism_flash::policy::{Cleaning, Mapping, OverProvisioning, Policy, RangeConfig};
use prism_flash::{Allocation, Cache, Device, DeviceGeometry, MemoryDevice, Options};
use prism_flashfile::{FlashFile, FlashFileError};
use prism_graph::pool::Job;
use prism_graph::space::AnyStore;
use prism_graph::{Graph, GraphError, Pool, Space};
use prism_host::jobs;
use prism_segments::{PolicyStore, Store};

use crate::counted::{Amounts, Counted};
use crate::error::StoreError;
use crate::temporary::{Spaces, Work};

/// Channels of a new device.
const CHANNELS: u32 = 4;
/// The name of the share.
const SHARE: &str = "graph";
/// Over-provisioning of both ranges in percent: a block-level mapping that is written by whole
/// blocks needs its open blocks only.
const SPARE: u32 = 1;
/// What the library keeps for spare blocks and tables, and the blocks of a range are rounded up by,
/// in percent: a fiftieth of a device is spare, and tables take less than half of that.
const LIBRARY: u32 = 4;

/// The threads of the process.
#[derive(Clone, Copy, Debug)]
pub struct Threads(pub usize);

impl Pool for Threads {
    fn threads(&self) -> usize {
        self.0
    }

    fn run(&self, jobs: Vec<Job<'_>>) {
        jobs::run_on(self.0, jobs, |_| {});
    }
}

/// A device with its two ranges.
pub struct GraphDevice {
    policy: Arc<Policy>,
    identity: u64,
    amounts: Arc<Amounts>,
    /// The device, which knows the wear of its blocks.
    pub flash: Device,
}

/// Bytes of a block for a graph of `bytes` bytes: a hundred or more of them, so that they are
/// spread over channels and threads, and so few that their list fits in one.
#[must_use]
pub fn block_bytes(bytes: u64) -> u64 {
    let fine = (bytes / 128).next_power_of_two().clamp(64 << 10, 1 << 20);
    (bytes / 16_384).next_power_of_two().clamp(fine, 16 << 20)
}

/// Segments of `block` bytes for these bytes of graph and of results.
pub(crate) fn segments(graph: u64, results: u64, block: u64) -> (u32, u32) {
    // A block of a range has fewer bytes than one of flash if its tables need some.
    let blocks = |bytes: u64| (bytes + bytes / 64).div_ceil(block) + 4;
    // A list that is longer than half a block leaves the rest of another unused, and a long one is
    // cut as if its numbers had four bytes. What is not written takes no space.
    (3 * blocks(graph) as u32, blocks(results) as u32)
}

fn geometry(graph: u64, results: u64, block: u64) -> DeviceGeometry {
    let page: u32 = if block < 512 << 10 { 4096 } else { 16 << 10 };
    let blocks = graph + results;
    // Next to the ranges: their over-provisioning, blocks of the library's tables, spare ones.
    let blocks = blocks + blocks * u64::from(SPARE + LIBRARY) / 100 + 48;
    DeviceGeometry {
        channels: CHANNELS,
        luns_per_channel: 1,
        blocks_per_lun: blocks.div_ceil(CHANNELS.into()) as u32,
        pages_per_block: (block / u64::from(page)) as u32,
        page_size: page,
        oob_size: 64,
        max_open_blocks: None,
    }
}

fn usage(name: &str) -> impl Fn(prism_flash::FlashError) -> StoreError + '_ {
    move |error| StoreError::Device(format!("{name}: {error}"))
}

impl GraphDevice {
    /// Makes a device in a file, or in memory, for this many bytes of graph and of results.
    ///
    /// # Errors
    /// [`StoreError`]; then there is no file.
    pub fn make(path: Option<&Path>, graph: u64, results: u64) -> Result<Self, StoreError> {
        let name = name_of(path);
        let block = block_bytes(graph);
        let (graph, results) = segments(graph, results, block);
        let (graph, results) = (u64::from(graph), u64::from(results));
        let geometry = geometry(graph, results, block);
        let (device, identity) = match path {
            Some(path) => {
                drop(FlashFile::format(path, geometry, &[], Options::default())?);
                let file = FlashFile::open(path)?;
                let identity = file.identity();
                (Device::open(file, Options::default()), identity)
            }
            None => {
                let memory = MemoryDevice::new(geometry, Cache::None);
                let memory = memory.map_err(|error| StoreError::Refused(error.to_string()))?;
                (Device::format(memory, Options::default()), 0)
            }
        };
        let flash = device.map_err(usage(&name))?;
        let capacity = Bytes(flash.lun_capacity().0 * u64::from(flash.free_luns()));
        let share = flash.allocate(SHARE, Allocation::new(capacity, 0)).map_err(usage(&name))?;
        let policy = Policy::open(share).map_err(usage(&name))?;
        let block = policy.block_bytes();
        for (begin, blocks) in [(0, graph), (graph * block, results)] {
            let over_provisioning = OverProvisioning::Percent(SPARE);
            let config = RangeConfig {
                over_provisioning,
                ..RangeConfig::new(Mapping::Block, Cleaning::Greedy)
            };
            let end = begin + blocks * block;
            policy.configure(begin, end, config).map_err(usage(&name))?;
        }
        Ok(Self { policy: Arc::new(policy), identity, amounts: Arc::default(), flash })
    }

    /// Opens the device of a file.
    ///
    /// # Errors
    /// [`StoreError`] if it has no graph.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let name = name_of(Some(path));
        let file = FlashFile::open(path).map_err(|error| match error {
            FlashFileError::NotAFlashFile { file } => StoreError::Refused(format!(
                "{file}: this is no store of a graph; `prism graph ingest` makes one"
            )),
            error => error.into(),
        })?;
        let identity = file.identity();
        let flash = Device::open(file, Options::default()).map_err(usage(&name))?;
        if !flash.shares().iter().any(|share| share.name == SHARE) {
            return Err(StoreError::Refused(format!(
                "{name}: the device has no graph; make one in another file with prism graph ingest"
            )));
        }
        let share = flash.attach(SHARE).map_err(usage(&name))?;
        let policy = Policy::open(share).map_err(usage(&name))?;
        if policy.ranges().len() != 2 {
            let what = "the making of the device was interrupted; remove the file";
            return Err(StoreError::Refused(format!("{name}: {what}")));
        }
        Ok(Self { policy: Arc::new(policy), identity, amounts: Arc::default(), flash })
    }

    /// The space of the graph, or of results, with a store for each of `threads` threads.
    fn space(&self, range: usize, threads: usize) -> Result<Opened, GraphError> {
        let range = &self.policy.ranges()[range];
        let bytes = range.end - range.begin;
        let policy = || self.policy.clone();
        let new = |_| {
            let store = PolicyStore::shared(policy(), range.begin, bytes, self.identity);
            Box::new(Counted { store, amounts: Arc::clone(&self.amounts) }) as AnyStore
        };
        Space::open((0..threads.max(1)).map(new).collect())
    }

    /// Opens the graph.
    ///
    /// # Errors
    /// [`GraphError`].
    pub fn open_graph(&self, threads: usize, memory: Bytes) -> Result<Graph, GraphError> {
        let (space, catalog) = self.space(0, threads)?;
        Graph::open(space, catalog, memory.0)
    }
}

impl Spaces for GraphDevice {
    fn graph(&self, threads: usize) -> Result<Opened, GraphError> {
        self.space(0, threads)
    }

    fn results(&self) -> Result<Opened, GraphError> {
        self.space(1, 1)
    }

    fn work(&self) -> Work {
        let counts = PolicyStore::shared(self.policy.clone(), 0, 0, self.identity).counts();
        let page = self.policy.share().geometry().map_or(0, |found| found.page_size);
        let (read_bytes, written_bytes) = self.amounts.get();
        Work {
            read_bytes,
            written_bytes,
            copied_bytes: counts.copies * u64::from(page),
            erases: counts.erases,
            virtual_seconds: None,
        }
    }
}

/// A space and its catalog.
pub type Opened = (Space, Option<Vec<u8>>);

/// Refuses that a result goes to the file of the store, which it would replace.
///
/// # Errors
/// [`StoreError::Refused`].
pub fn refuse_store(store: &Path, outputs: &[Option<&Path>]) -> Result<(), StoreError> {
    refuse_same("the store", store, outputs)
}

/// As [`refuse_store`], for the file `path`, which is `what` in the message.
///
/// # Errors
/// [`StoreError::Refused`].
pub fn refuse_same(what: &str, path: &Path, outputs: &[Option<&Path>]) -> Result<(), StoreError> {
    let Ok(path) = path.canonicalize() else { return Ok(()) };
    for output in outputs.iter().flatten() {
        if output.canonicalize().is_ok_and(|output| output == path) {
            let output = output.display();
            let what = format!(
                "{output}: this is {what}, which the result would replace; name another file"
            );
            return Err(StoreError::Refused(what));
        }
    }
    Ok(())
}

/// The name of a store for messages.
#[must_use]
pub fn name_of(path: Option<&Path>) -> String {
    path.map_or("memory".to_owned(), |path| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The library keeps a share of the blocks for itself, which grows with the device.
    #[test]
    fn a_device_of_any_size_has_its_ranges() {
        let folder = tempfile::tempdir().unwrap();
        for graph in [1_u64 << 16, 1 << 20, 150 << 20, 700 << 20, 1 << 30, 3 << 30, 9 << 30] {
            for results in [1_u64 << 20, graph / 8 + (1 << 20)] {
                let path = folder.path().join("g.prism");
                let made = GraphDevice::make(Some(&path), graph, results);
                let device = made.unwrap_or_else(|error| panic!("{graph}, {results}: {error}"));
                assert_eq!(device.policy.ranges().len(), 2);
                drop(device);
                std::fs::remove_file(&path).unwrap();
            }
        }
    }
}
