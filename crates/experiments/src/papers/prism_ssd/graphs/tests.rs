//! GraphChi's design computes what its definition says, and writes and waits for what it should.

use std::collections::BTreeMap;

use super::*;

/// Every run with a smaller graph; the flash is that of the quarter.
fn input(seed: u64) -> Input {
    let mut input = Input::new(Scale::Quarter, seed, GraphChange::None);
    input.scale = 11;
    input.edges = 8 << 11;
    // Three runs of the sharder.
    input.memory = 256 << 10;
    input
}

/// PageRank of GraphChi by its definition: each vertex in its order sees all changes before.
fn naive(input: Input, iterations: u32) -> Vec<f64> {
    let vertices = 1 << input.scale;
    let edges: Vec<[u32; 2]> = input.edges().filter(|[source, target]| source != target).collect();
    let (mut degrees, mut to) = (vec![0.0_f64; vertices], BTreeMap::<u32, Vec<u32>>::new());
    for [source, target] in edges {
        degrees[source as usize] += 1.0;
        to.entry(target).or_default().push(source);
    }
    // The first iteration of GraphChi gives a rank of 1 to the edges.
    let mut ranks = vec![1.0; vertices];
    for _ in 1..iterations {
        for vertex in 0..vertices {
            let sources = to.get(&(vertex as u32)).map_or(&[][..], Vec::as_slice);
            let of = |source: &u32| ranks[*source as usize] / degrees[*source as usize];
            ranks[vertex] = 0.15 + 0.85 * sources.iter().map(of).sum::<f64>();
        }
    }
    ranks
}

/// A volume, and the graph in it.
struct Made {
    volume: Volume,
    graph: graphchi::Sharded,
    config: Config,
}

fn made(input: Input, system: System, below: Below, change: GraphChange) -> Made {
    let run = GraphRun { system, below, change };
    let (mut volume, config) = prepare(run, input).unwrap();
    let graph = graphchi::shard(&mut volume, 1 << input.scale, input.edges(), &config).unwrap();
    Made { volume, graph, config }
}

fn ranks(input: Input, system: System, below: Below, iterations: u32) -> Vec<f32> {
    let Made { mut volume, graph, config } = made(input, system, below, GraphChange::None);
    let config = Config { iterations, ..config };
    execute(system)(&mut volume, &graph, &config).unwrap();
    graph.result(&mut volume).unwrap()
}

#[test]
fn both_modes_compute_what_the_definition_says_at_each_iteration() {
    let input = input(3);
    for (system, below) in [
        (System::InMemory, Below::Original),
        (System::InMemory, Below::Policy),
        (System::Windows, Below::Original),
        (System::Windows, Below::Policy),
    ] {
        for iterations in [2, 3, 6] {
            let (found, expected) =
                (ranks(input, system, below, iterations), naive(input, iterations));
            assert_eq!(found.len(), expected.len());
            for (vertex, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let off = (f64::from(*found) / expected - 1.0).abs();
                assert!(off < 1e-4, "{system:?} {below:?} {vertex}: {found} {expected}");
            }
        }
    }
    assert!(naive(input, 2) != naive(input, 3), "iterations change ranks");
}

/// The order of vertices differs, so only converged ranks are equal.
#[test]
fn the_engine_of_prism_converges_to_the_same_sum() {
    let input = input(4);
    let expected: f64 = naive(input, 80).iter().sum();
    let run = GraphRun { system: System::Own, below: Below::Policy, change: GraphChange::None };
    let (row, own) = own::ranks(run, Input { memory: 4 << 20, ..input }, 80).unwrap();
    assert!((row.ranks / expected - 1.0).abs() < 1e-9, "{} {expected}", row.ranks);
    let windows = ranks(input, System::Windows, Below::Policy, 80);
    let off = own.iter().zip(&windows).map(|(own, other)| (f64::from(*other) / own - 1.0).abs());
    let most = off.fold(0.0, f64::max);
    assert!(most < 1e-4, "{most}");
    assert_eq!(row.edges, input.edges().filter(|[source, target]| source != target).count() as u64);
}

/// Each iteration of sliding windows writes the value of every edge and every vertex once, in whole
/// pages; with vertices in memory the result is all.
#[test]
fn windows_write_every_edge_and_memory_the_result_alone() {
    let input = input(5);
    let page = 16 << 10;
    let executed = |system, below, iterations| {
        let Made { mut volume, graph, config } = made(input, system, below, GraphChange::None);
        let before = volume.traffic();
        let config = Config { iterations, ..config };
        execute(system)(&mut volume, &graph, &config).unwrap();
        (volume.traffic().since(before), graph.edges(), volume.counts())
    };
    for below in Below::ALL {
        let (traffic, edges, _) = executed(System::Windows, below, 4);
        let bytes = 4 * (edges * 4 + (4 << input.scale));
        // A window of each shard, and the vertices of each interval, begin and end within pages.
        let parts = 4 * u64::from(SHARDS * (SHARDS + 1));
        assert!(traffic.written[1] >= bytes, "{traffic:?} {bytes}");
        assert!(traffic.written[1] <= bytes + 2 * parts * page, "{traffic:?} {bytes}");
        assert_eq!(traffic.written[0], 0, "adjacency is not updated");
        let once = executed(System::Windows, below, 2).0;
        assert_eq!(traffic.written[1], 2 * once.written[1]);

        let (traffic, _, counts) = executed(System::InMemory, below, 4);
        assert_eq!(traffic.written, [0, (4_u64 << input.scale).next_multiple_of(page)]);
        assert_eq!(counts.copies, 0);
    }
}

/// With block mapping the library copies what is next to the windows that are rewritten.
#[test]
fn block_mapping_of_edge_values_costs_copies() {
    let input = Input::new(Scale::Quarter, 1, GraphChange::None);
    let copies = |change| {
        let run = GraphRun { system: System::Windows, below: Below::Policy, change };
        super::run(run, input).unwrap().flash.copies
    };
    let [pages, blocks] = [GraphChange::None, GraphChange::Blocks].map(copies);
    assert!(blocks > 10 * pages.max(1), "{blocks} {pages}");
}

#[test]
fn time_is_that_of_the_cpu_and_of_flash() {
    let row = |system, change| {
        let run = GraphRun { system, below: Below::Original, change };
        run.run(Scale::Quarter, 1)
    };
    for (system, iterate) in [(System::InMemory, IN_MEMORY), (System::Windows, WINDOWS)] {
        let [whole, flash] =
            [GraphChange::None, GraphChange::Cpu].map(|change| row(system, change));
        let edges = whole.edges as f64;
        let cpu = [(PARSE + SHARD) * edges, 3.0 * iterate * edges];
        let both = [whole.preprocessing, whole.execution];
        for ((whole, flash), cpu) in
            both.into_iter().zip([flash.preprocessing, flash.execution]).zip(cpu)
        {
            let (whole, flash) = (whole.0 as f64, flash.0 as f64);
            // Writes go on while the CPU works.
            assert!(flash > 0.0 && whole >= cpu * 0.999, "{whole} {flash} {cpu}");
            assert!(whole <= (cpu + flash) * 1.01, "{whole} {flash} {cpu}");
        }
    }
}
