//! Losses of power while a graph replaces another one, and between rounds.

use std::sync::Arc;

use prism_base::{Bytes, Rng};
use prism_flash::policy::{Cleaning, Mapping, OverProvisioning, Policy, RangeConfig};
use prism_flash::{Allocation, Cache, Device, MemoryDevice, Options, SharedMemory};
use prism_graph::algorithms::{Algorithm, Column};
use prism_graph::input::Format;
use prism_graph::space::AnyStore;
use prism_graph::{Graph, GraphError, Keep, Results, Serial, Space};
use prism_segments::PolicyStore;

use crate::common::{Input, PAGES, edges, geometry, options, values};

const BLOCKS: u32 = 400;

struct World {
    memory: SharedMemory,
}

/// The two ranges of a device.
struct Ranges {
    policy: Arc<Policy>,
    split: u64,
    end: u64,
}

impl World {
    fn new() -> Self {
        let memory = MemoryDevice::new(geometry(BLOCKS, PAGES), Cache::Volatile).unwrap();
        let memory = SharedMemory::from(memory);
        let device = Device::format(memory.clone(), Options::default()).unwrap();
        let capacity = Bytes(device.lun_capacity().0 * u64::from(device.free_luns()));
        let share = device.allocate("graph", Allocation::new(capacity, 0)).unwrap();
        let policy = Policy::open(share).unwrap();
        let over_provisioning = OverProvisioning::Percent(1);
        let config =
            RangeConfig { over_provisioning, ..RangeConfig::new(Mapping::Block, Cleaning::Greedy) };
        let block = policy.block_bytes();
        policy.configure(0, 220 * block, config).unwrap();
        policy.configure(220 * block, 290 * block, config).unwrap();
        policy.flush().unwrap();
        Self { memory }
    }

    fn open(&self) -> Result<Ranges, GraphError> {
        let device = Device::open(self.memory.clone(), Options::default())?;
        let policy = Policy::open(device.attach("graph")?)?;
        let (split, end) = (policy.ranges()[0].end, policy.ranges()[1].end);
        Ok(Ranges { policy: Arc::new(policy), split, end })
    }
}

impl Ranges {
    fn space(&self, begin: u64, end: u64) -> Result<(Space, Option<Vec<u8>>), GraphError> {
        let store = PolicyStore::shared(self.policy.clone(), begin, end - begin, 1);
        Space::open(vec![Box::new(store) as AnyStore])
    }

    fn graph(&self, memory: u64) -> Result<Graph, GraphError> {
        let (space, catalog) = self.space(0, self.split)?;
        Graph::open(space, catalog, memory)
    }

    fn results(&self) -> Result<Results, GraphError> {
        let (space, catalog) = self.space(self.split, self.end)?;
        Ok(Results::open(space, catalog))
    }
}

fn text(rng: &mut Rng, vertices: u64, count: u64) -> String {
    let mut id = || rng.below(vertices);
    (0..count).map(|_| format!("{} {}\n", id(), id())).collect()
}

fn input(text: &str) -> Input<'_> {
    let state_memory = Some(48 * 1000);
    Input {
        duplicates: Keep::Keep,
        state_memory,
        ..Input::new(text.as_bytes(), Format::Edges, true)
    }
}

/// After a cut there is the old graph or the new one, as a whole; when it is ingested again, it is
/// the same.
#[test]
fn random_cuts_leave_the_old_graph_or_the_new_one() {
    let (mut old_left, mut new_there) = (0, 0);
    for seed in prism_testkit::seeds(0..40) {
        let mut rng = Rng::stream(seed, "cuts");
        let world = World::new();
        let texts = [text(&mut rng, 500, 3000), text(&mut rng, 500, 4000)];
        let wanted = texts.each_ref().map(|text| edges(&mut input(text).graph()));
        let ingest = |text: &str| {
            let ranges = world.open()?;
            let (mut space, _) = ranges.space(0, ranges.split)?;
            input(text).ingest(&mut space, &Serial)
        };
        ingest(&texts[0]).unwrap();
        for _ in 0..3 {
            world.memory.cut_power_after(rng.below(150));
            let done = ingest(&texts[1]).is_ok();
            world.memory.restart(&mut rng);
            let found = edges(&mut world.open().unwrap().graph(64 << 20).unwrap());
            assert!(!done || found == wanted[1], "seed {seed}: it was complete");
            assert!(wanted.contains(&found), "seed {seed}: {} edges", found.len());
            if found == wanted[0] { old_left += 1 } else { new_there += 1 }
        }
        ingest(&texts[1]).unwrap();
        let ranges = world.open().unwrap();
        let mut graph = ranges.graph(64 << 20).unwrap();
        assert_eq!(edges(&mut graph), wanted[1]);
        assert_eq!(graph.catalog().content, input(&texts[1]).graph().catalog().content);
        assert_eq!(graph.flash().copies, 0, "cleaning copies nothing");
    }
    if prism_testkit::all_seeds() {
        assert!(old_left > 20 && new_there > 20, "{old_left} old, {new_there} new");
    }
}

/// PageRank that is cut between rounds, or in them, ends with the same bits, whether values are in
/// memory or on flash; cleaning copies nothing.
#[test]
fn random_cuts_between_rounds_change_nothing() {
    let mut cut = 0;
    for seed in prism_testkit::seeds(100..130) {
        let mut rng = Rng::stream(seed, "rounds");
        let world = World::new();
        let text = text(&mut rng, 3000, 4000);
        {
            let ranges = world.open().unwrap();
            let (mut space, _) = ranges.space(0, ranges.split).unwrap();
            input(&text).ingest(&mut space, &Serial).unwrap();
        }
        // One thread with two buffers of 4 KiB, and the values of two intervals, or of all.
        let external = seed % 2 == 0;
        let memory = if external { 60 << 10 } else { 1 << 20 };
        let run = |cuts: u64| {
            let ranges = world.open()?;
            let mut graph = ranges.graph(memory)?;
            let options = prism_graph::algorithms::Options {
                iterations: Some(12),
                checkpoint: Some(1),
                ..options()
            };
            let results = Some(ranges.results()?);
            let computed = Algorithm::Pagerank.run(&mut graph, results, &Serial, &options)?;
            assert_eq!(matches!(computed.column, Column::Stored(_)), external);
            let values = values(graph.catalog().vertices, &computed);
            computed.column.check()?;
            // A write that was cut leaves a block in two parts, which the library joins later.
            let copies = graph.flash().copies;
            assert!(copies <= cuts * u64::from(PAGES), "cleaning copies nothing: {copies}");
            Ok::<_, GraphError>(values)
        };
        let (mut found, mut cuts) = (None, 0);
        for _ in 0..100 {
            world.memory.cut_power_after(rng.below(300));
            let done = run(cuts);
            if let Ok(values) = done {
                found = Some(values);
                break;
            }
            (cut, cuts) = (cut + 1, cuts + 1);
            world.memory.restart(&mut rng);
        }
        world.memory.restart(&mut rng);
        let mut whole = input(&text).graph();
        let options = prism_graph::algorithms::Options { iterations: Some(12), ..options() };
        let expected = Algorithm::Pagerank.run(&mut whole, None, &Serial, &options).unwrap();
        let expected = values(whole.catalog().vertices, &expected);
        let found = found.unwrap_or_else(|| run(cuts).expect("power stays"));
        assert_eq!(found, expected, "seed {seed}");
    }
    if prism_testkit::all_seeds() {
        assert!(cut > 30, "{cut} cuts");
    }
}
