//! Prism's graph engine on the policy level, with CPU time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use prism_base::{Nanos, SimTime};
use prism_flash::FlashError;
use prism_flash::policy::{Mapping, Policy};

use prism_graph::algorithms::pagerank::Form;
use prism_graph::algorithms::{Algorithm, Options};
use prism_graph::pull::Schedule;
use prism_graph::scratch::InMemory;
use prism_graph::segment::{HEADER_BYTES, Header, Kind};
use prism_graph::space::AnyStore;
use prism_graph::{
    Edge, Graph, GraphError, Ingest, IngestOptions, Keep, Order, Results, Serial, Space,
};
use prism_segments::{Done, PolicyStore, Store, Wrapper};

use super::super::graphchi::{Ranges, Traffic, open_ranges};
use super::super::machine::OWN_BLOCKS;
use super::{GraphRow, GraphRun, Input};

/// The CPU time of a computation on segments.
#[derive(Debug, Default)]
struct Charge {
    /// Whether it is computed.
    on: AtomicBool,
    /// Edges of which the time has passed.
    edges: AtomicU64,
}

/// A store whose reads of edges are followed by the time of computing on them, while others are in
/// flight.
struct Charged {
    store: PolicyStore,
    /// Nanoseconds an edge.
    each: f64,
    charge: Arc<Charge>,
    done: VecDeque<Done>,
}

impl Charged {
    fn pass(&mut self, time: Nanos) {
        let end = self.store.now() + time;
        loop {
            while let Some(done) = self.store.poll() {
                self.done.push_back(done);
            }
            let left = end.0.saturating_sub(self.store.now().0);
            if left == 0 {
                return;
            }
            self.store.wait(Some(Nanos(left)));
        }
    }
}

impl Wrapper for Charged {
    type Inner = PolicyStore;

    fn inner(&self) -> &PolicyStore {
        &self.store
    }

    fn inner_mut(&mut self) -> &mut PolicyStore {
        &mut self.store
    }

    fn next_done(&mut self) -> Option<Done> {
        let done = self.done.pop_front().or_else(|| self.store.poll())?;
        if self.charge.on.load(Ordering::Relaxed)
            && done.data.len() >= HEADER_BYTES
            && let Some(header) = Header::decode(&done.data)
            && header.kind == Kind::In
        {
            let edges = u64::from(header.edges);
            self.charge.edges.fetch_add(edges, Ordering::Relaxed);
            self.pass(Nanos((self.each * edges as f64) as u64));
        }
        Some(done)
    }

    fn wait_for(&mut self, timeout: Option<Nanos>) -> bool {
        !self.done.is_empty() || self.store.wait(timeout)
    }
}

/// The clock of a policy level.
fn now(policy: &Policy) -> SimTime {
    policy.share().now().expect("a share with a clock")
}

fn pass(policy: &Policy, edges: u64, each: f64) -> Result<(), FlashError> {
    policy.share().pass(Nanos((each * edges as f64) as u64))
}

/// Makes the graph of all edges but those from a vertex to itself, as GraphChi does.
fn ingest(
    input: Input,
    parse: f64,
    policy: &Policy,
    store: AnyStore,
) -> Result<Vec<AnyStore>, GraphError> {
    let options = IngestOptions {
        directed: true,
        weighted: false,
        duplicates: Keep::Keep,
        loops: Keep::Drop,
        state_memory: None,
        order: Order::Input,
    };
    let mut ingest = Ingest::new(options, &InMemory::make)?;
    ingest.add_vertices(&(0..1 << input.scale).collect::<Vec<u64>>())?;
    let mut edges = 0;
    let all: Vec<[u32; 2]> = input.edges().collect();
    for some in all.chunks(1 << 16) {
        let edge = |[source, target]: &[u32; 2]| Edge {
            source: (*source).into(),
            target: (*target).into(),
            weight: 1.0,
        };
        ingest.add(&some.iter().map(edge).collect::<Vec<_>>())?;
        edges += some.len() as u64;
    }
    pass(policy, edges, parse)?;
    let (mut space, _) = Space::open(vec![store])?;
    ingest.prepare(&Serial)?.write(&mut space, &Serial)?;
    Ok(space.into_stores())
}

/// Ingests the graph and runs PageRank in GraphChi's form, with as many iterations that compute:
/// the row, and the ranks.
pub(super) fn ranks(
    run: GraphRun,
    input: Input,
    iterations: u32,
) -> Result<(GraphRow, Vec<f64>), GraphError> {
    let ranges: Ranges = input.ranges([Mapping::Block; 2]);
    let (policy, [store, results]) = open_ranges(input.board.share(OWN_BLOCKS)?, ranges)?;
    let (charge, cpu) = (Arc::<Charge>::default(), run.cpu());
    let before = results.counts();
    let store = Charged { store, each: cpu.iterate, charge: charge.clone(), done: VecDeque::new() };
    let begin = now(&policy);
    let stores = ingest(input, cpu.parse, &policy, Box::new(store))?;
    let ingested = now(&policy);
    let (space, catalog) = Space::open(stores)?;
    let mut graph = Graph::open(space, catalog, input.memory)?;
    charge.on.store(true, Ordering::Relaxed);
    let options = Options {
        iterations: Some(iterations - 1),
        source: None,
        damping: 0.85,
        tolerance: None,
        form: Form::GraphChi,
        schedule: Schedule::Asynchronous,
        single: false,
        checkpoint: None,
    };
    let computed = Algorithm::Pagerank.run(&mut graph, None, &Serial, &options)?;
    // Segments that stay in memory are not read again, but computed on.
    let io = graph.io();
    pass(&policy, io.edges - charge.edges.load(Ordering::Relaxed), cpu.iterate)?;
    let vertices = graph.catalog().vertices;
    let (space, catalog) = Space::open(vec![Box::new(results) as AnyStore])?;
    let mut results = Results::open(space, catalog);
    let ranks: Vec<f64> = (0..vertices).map(|vertex| computed.column.number(vertex)).collect();
    ranks.iter().try_for_each(|rank| results.push(rank.to_bits()))?;
    results.commit(graph.catalog().content, "pagerank", iterations - 1, [0.0; 2])?;
    let written = results.space().written();
    let row = GraphRow {
        run,
        vertices,
        edges: graph.catalog().edges,
        preprocessing: ingested.since(begin),
        execution: now(&policy).since(ingested),
        traffic: Traffic { read: [io.read, 0], written: [0, written] },
        flash: graph.flash().since(&before),
        ranks: ranks.iter().sum(),
    };
    Ok((row, ranks))
}
