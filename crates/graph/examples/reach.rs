//! An algorithm of one's own: how many vertices can reach each vertex in two steps, counted by
//! paths. Run with `cargo run -p prism-graph --example reach`.
#![allow(clippy::print_stdout, reason = "it shows its result")]

use prism_flash::function::Function;
use prism_flash::{Allocation, Cache, Device, DeviceGeometry, MemoryDevice, Options};
use prism_graph::pool::Cell;
use prism_graph::pull::{self, Schedule, Totals, Vertex};
use prism_graph::scratch::InMemory;
use prism_graph::{Edge, Graph, Ingest, IngestOptions, Keep, Order, Serial, Space, VertexProgram};
use prism_segments::FunctionStore;

/// Each vertex begins with one path, and gets those of the vertices with an edge to it.
struct Paths;

impl VertexProgram for Paths {
    type Cell = prism_graph::pool::CellF64;
    type Sum = prism_graph::pool::CellF64;

    fn initial(&self, _: Vertex) -> f64 {
        1.0
    }
    fn empty(&self) -> f64 {
        0.0
    }
    fn gather(&self, sum: f64, neighbour: f64, _weight: f64) -> f64 {
        sum + neighbour
    }
    fn merge(&self, one: f64, other: f64) -> f64 {
        one + other
    }
    fn apply(&self, _: Vertex, sum: f64, _old: f64) -> f64 {
        sum
    }
    fn totals(&self, _: Vertex, _old: f64, new: f64) -> Totals {
        [new, 0.0]
    }
    fn next_round(&mut self, round: u32, _: Totals) -> bool {
        round < 2
    }
}

/// Makes a graph in memory, and runs the algorithm on it.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let geometry = DeviceGeometry {
        channels: 2,
        luns_per_channel: 1,
        blocks_per_lun: 32,
        pages_per_block: 16,
        page_size: 4096,
        oob_size: 64,
        max_open_blocks: None,
    };
    let device = Device::format(MemoryDevice::new(geometry, Cache::None)?, Options::default())?;
    let share = device.allocate("graph", Allocation::new(prism_base::Bytes(3 << 20), 0))?;
    let store = FunctionStore::new(Function::open(share)?, 1);
    let (mut space, _) = Space::open(vec![Box::new(store)])?;

    let options = IngestOptions {
        directed: true,
        weighted: false,
        duplicates: Keep::Drop,
        loops: Keep::Keep,
        state_memory: None,
        // Values are in the order of the input's numbers; `Graph::ids` has those of any order.
        order: Order::Input,
    };
    let mut ingest = Ingest::new(options, &InMemory::make)?;
    let edges = [(1, 2), (2, 3), (1, 3), (3, 1)];
    ingest.add(&edges.map(|(source, target)| Edge { source, target, weight: 1.0 }))?;
    let catalog = ingest.prepare(&Serial)?.write(&mut space, &Serial)?;

    let mut graph = Graph::open(space, Some(catalog.encode()), 16 << 20)?;
    let (schedule, after) = (Schedule::Synchronous, &mut |_, _: Totals, _: &[_]| Ok(()));
    let state = pull::run(&mut graph, &Serial, &mut Paths, schedule, None, after)?;
    let paths: Vec<f64> = state.values.iter().map(Cell::get).collect();
    assert_eq!(paths, [2.0, 1.0, 2.0], "a path of two steps is two edges");
    println!("paths of two steps to vertices 1, 2, 3: {paths:?}");
    Ok(())
}
