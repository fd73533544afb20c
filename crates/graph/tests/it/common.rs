//! Graphs in memory, and results by the numbers of the input.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

use prism_base::Bytes;
use prism_flash::policy::{Cleaning, Mapping, OverProvisioning, Policy, RangeConfig};
use prism_flash::{Allocation, Cache, Device, DeviceGeometry, MemoryDevice, Options, Share};
use prism_graph::algorithms::pagerank::Form;
use prism_graph::algorithms::{Algorithm, Computed, Options as RunOptions};
use prism_graph::input::{Format, ReadOptions, Reader, read_vertices};
use prism_graph::pool::Job;
use prism_graph::pull::Schedule;
use prism_graph::scratch::InMemory;
use prism_graph::space::AnyStore;
use prism_graph::{
    Graph, GraphError, Ingest, IngestOptions, Keep, Order, Pool, Serial, Space, verify,
};
use prism_segments::PolicyStore;

/// Threads of tests.
pub struct Threads(pub usize);

impl Pool for Threads {
    fn threads(&self) -> usize {
        self.0
    }

    fn run(&self, jobs: Vec<Job<'_>>) {
        thread::scope(|scope| jobs.into_iter().for_each(|job| drop(scope.spawn(job))));
    }
}

/// Pages of a block, so few that graphs of tests have many.
pub const PAGES: u32 = 8;

/// A device of blocks of this many pages of 512 bytes.
pub fn geometry(blocks: u32, pages: u32) -> DeviceGeometry {
    DeviceGeometry {
        channels: 2,
        luns_per_channel: 1,
        blocks_per_lun: blocks / 2,
        pages_per_block: pages,
        page_size: 512,
        oob_size: 64,
        max_open_blocks: None,
    }
}

/// A share of a new device in memory.
pub fn share(blocks: u32, pages: u32) -> Share {
    let memory = MemoryDevice::new(geometry(blocks, pages), Cache::None).unwrap();
    let device = Device::format(memory, Options::default()).unwrap();
    let capacity = Bytes(device.lun_capacity().0 * u64::from(device.free_luns()));
    device.allocate("graph", Allocation::new(capacity, 0)).unwrap()
}

/// Stores for threads on a range of the policy level.
pub fn policy(blocks: u32, pages: u32, threads: usize) -> Vec<AnyStore> {
    let policy = Arc::new(Policy::open(share(blocks, pages)).unwrap());
    let bytes = u64::from(blocks - blocks / 8 - 40) * policy.block_bytes();
    let over_provisioning = OverProvisioning::Percent(1);
    let config =
        RangeConfig { over_provisioning, ..RangeConfig::new(Mapping::Block, Cleaning::Greedy) };
    policy.configure(0, bytes, config).unwrap();
    let new = |_| Box::new(PolicyStore::shared(policy.clone(), 0, bytes, 1)) as AnyStore;
    (0..threads).map(new).collect()
}

/// A description of a graph.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    pub edges: &'a [u8],
    pub vertices: &'a [u8],
    pub format: Format,
    pub directed: bool,
    pub weighted: bool,
    pub duplicates: Keep,
    pub loops: Keep,
    pub state_memory: Option<u64>,
    pub order: Order,
}

impl<'a> Input<'a> {
    pub fn new(edges: &'a [u8], format: Format, directed: bool) -> Self {
        Self {
            edges,
            vertices: b"",
            format,
            directed,
            weighted: false,
            duplicates: Keep::Drop,
            loops: Keep::Keep,
            state_memory: None,
            order: Order::Degree,
        }
    }

    /// Writes the graph to a space.
    pub fn ingest(&self, space: &mut Space, pool: &dyn Pool) -> Result<(), GraphError> {
        let options = IngestOptions {
            directed: self.directed,
            weighted: self.weighted,
            duplicates: self.duplicates,
            loops: self.loops,
            state_memory: self.state_memory,
            order: self.order,
        };
        let mut ingest = Ingest::new(options, &InMemory::make)?;
        let (format, directed, weighted) = (self.format, self.directed, self.weighted);
        let mut reader = Reader::new(ReadOptions { format, directed, weighted, columns: None })?;
        // Pieces cut lines anywhere.
        let pieces: Vec<&[u8]> = self.edges.chunks(1 + self.edges.len() / 3).collect();
        for piece in &pieces {
            reader.read(pool, piece, false, &mut ingest)?;
        }
        reader.read(pool, b"", true, &mut ingest)?;
        read_vertices(self.vertices, &mut ingest)?;
        ingest.prepare(pool)?.write(space, pool).map(drop)
    }

    /// The graph on a device at the policy level with memory for everything.
    pub fn graph(&self) -> Graph {
        self.graph_with(1, 64 << 20)
    }

    pub fn graph_with(&self, threads: usize, memory: u64) -> Graph {
        // A catalog has to fit in a block.
        let pages = match self.edges.len() {
            0..200_000 => PAGES,
            200_000..2_000_000 => 4 * PAGES,
            _ => 16 * PAGES,
        };
        let of_pages = |pages| {
            let stores = policy(4096 * PAGES / pages, pages, threads);
            let (mut space, catalog) = Space::open(stores).unwrap();
            assert_eq!(catalog, None);
            self.ingest(&mut space, &Serial).map(|_| space)
        };
        let space = match of_pages(pages) {
            Err(GraphError::Refused(what)) if what.contains("larger blocks") => of_pages(4 * pages),
            made => made,
        };
        let space = space.unwrap();
        // As another process finds it.
        let (space, catalog) = Space::open(space.into_stores()).unwrap();
        Graph::open(space, catalog, memory).unwrap()
    }
}

pub fn options() -> RunOptions {
    RunOptions {
        iterations: None,
        source: None,
        damping: 0.85,
        tolerance: None,
        form: Form::Normalised,
        schedule: Schedule::Synchronous,
        single: false,
        checkpoint: None,
    }
}

/// The vertices with their numbers in the input, ascending by these.
pub fn numbered(graph: &mut Graph) -> Result<Vec<(u32, u64)>, GraphError> {
    let mut pairs = Vec::new();
    graph.ids(|vertex, id| {
        pairs.push((vertex, id));
        Ok(())
    })?;
    Ok(pairs)
}

/// Values by the numbers of the input.
pub fn by_id(graph: &mut Graph, computed: &Computed) -> BTreeMap<u64, String> {
    let pairs = numbered(graph).unwrap();
    let text =
        |vertex: u32| computed.column.value(vertex, &|rank| pairs[rank as usize].1).to_string();
    pairs.iter().map(|(vertex, id)| (*id, text(*vertex))).collect()
}

/// Runs an algorithm.
pub fn run(graph: &mut Graph, algorithm: Algorithm, options: &RunOptions) -> BTreeMap<u64, String> {
    let computed = algorithm.run(graph, None, &Threads(2), options).unwrap();
    by_id(graph, &computed)
}

/// The edges of a graph, with their weights, by the numbers of the input.
pub fn edges(graph: &mut Graph) -> Vec<(u64, u64, f64)> {
    let mut edges = Vec::new();
    let each = verify::edges(graph, &mut |source, target, weight| {
        edges.push((source, target, weight));
        Ok(())
    });
    each.unwrap();
    edges
}

/// The values of vertices as text, in their order; labels are 0.
pub fn values(vertices: u32, computed: &Computed) -> Vec<String> {
    (0..vertices).map(|vertex| computed.column.value(vertex, &|_| 0).to_string()).collect()
}

/// The numbers of all vertices in the input, ascending.
pub fn ids(graph: &mut Graph) -> Vec<u64> {
    numbered(graph).unwrap().into_iter().map(|(_, id)| id).collect()
}
