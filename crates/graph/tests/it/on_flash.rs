//! Every algorithm with the values of vertices on flash.

use prism_base::Rng;
use prism_graph::algorithms::{Algorithm, Column, Computed, Options};
use prism_graph::input::Format;
use prism_graph::verify::verify;
use prism_graph::{Graph, GraphError, Keep, Pool, Results, Serial, Space};

use crate::common::{Input, PAGES, Threads, by_id, options, policy};

/// A graph of some 19,000 vertices in six intervals: chains, triangles, a vertex with many edges,
/// edges that are there twice, loops.
fn text(rng: &mut Rng) -> String {
    const IDS: u64 = 60_000;
    let mut text = String::new();
    let mut edge = |a: u64, b: u64| text.push_str(&format!("{a} {b}\n"));
    for _ in 0..11_000 {
        let (a, b) = (rng.below(IDS), rng.below(IDS));
        edge(a, b);
        if rng.chance(0.1) {
            edge(b, a);
        }
        if rng.chance(0.1) {
            let c = rng.below(IDS);
            [(b, c), (c, a), (a, b)].iter().for_each(|(a, b)| edge(*a, *b));
        }
    }
    for other in 0..300 {
        edge(7, other * 50);
        edge(other * 50, other * 50 + 50);
        edge(other, other);
    }
    text
}

fn graph(text: &str, directed: bool, duplicates: Keep, threads: usize) -> Graph {
    let state_memory = Some(48 * 3300);
    let input =
        Input { state_memory, duplicates, ..Input::new(text.as_bytes(), Format::Edges, directed) };
    input.graph_with(threads, 64 << 20)
}

fn results() -> Results {
    let (space, catalog) = Space::open(policy(256, PAGES, 1)).unwrap();
    Results::open(space, catalog)
}

/// Runs an algorithm with the least memory with which it runs, and `more` bytes.
fn with_least_memory(
    graph: &mut Graph,
    algorithm: Algorithm,
    pool: &dyn Pool,
    options: &Options,
    more: u64,
) -> Computed {
    let (_, least) = algorithm.state_bytes(graph, pool, options);
    graph.set_memory(least + graph.buffers_min(pool) - 1);
    let refused = algorithm.run(graph, Some(results()), pool, options);
    assert!(matches!(refused, Err(GraphError::Refused(_))), "{}", algorithm.name());
    graph.set_memory(graph.memory() + 1 + more);
    algorithm.run(graph, Some(results()), pool, options).unwrap()
}

fn options_of(algorithm: Algorithm) -> Options {
    let rounds = matches!(algorithm, Algorithm::Pagerank | Algorithm::Ppr | Algorithm::Cdlp);
    Options {
        source: algorithm.has_source().then_some(7),
        iterations: rounds.then_some(4),
        ..options()
    }
}

#[test]
fn random_graphs_have_the_values_on_flash_that_they_have_in_memory() {
    for seed in prism_testkit::seeds(0..2) {
        compare(seed, Keep::Drop);
    }
}

#[test]
fn random_multigraphs_have_the_values_on_flash_that_they_have_in_memory() {
    for seed in prism_testkit::seeds(2..4) {
        compare(seed, Keep::Keep);
    }
}

/// Runs all algorithms on a graph with its values in memory and with little memory.
fn compare(seed: u64, duplicates: Keep) {
    let mut rng = Rng::stream(seed, "on flash");
    let text = text(&mut rng);
    let (directed, pool) = (seed % 2 == 1, Threads(1 + seed as usize / 2 % 2));
    let mut graph = graph(&text, directed, duplicates, 2);
    assert!(graph.catalog().intervals >= 5, "{} intervals", graph.catalog().intervals);
    for algorithm in Algorithm::ALL {
        let name = algorithm.name();
        let options = options_of(algorithm);
        graph.set_memory(64 << 20);
        let whole = algorithm.run(&mut graph, None, &Threads(2), &options).unwrap();
        let expected = by_id(&mut graph, &whole);
        // Passes over the graph are as many as batches of lists.
        let passes = matches!(algorithm, Algorithm::Lcc | Algorithm::Triangles);
        let little = if passes { 200 << 10 } else { 4 << 10 };
        let more = if seed.is_multiple_of(3) { little } else { 5 * little };
        let stored = with_least_memory(&mut graph, algorithm, &pool, &options, more);
        if more == little {
            let is_stored = matches!(stored.column, Column::Stored(_));
            assert!(is_stored, "{name} has its values in memory");
        }
        assert_eq!(stored.column.has_labels(), whole.column.has_labels(), "{name}");
        assert_eq!(stored.column.is_real(), whole.column.is_real(), "{name}");
        let found = by_id(&mut graph, &stored);
        stored.column.check().unwrap();
        for (id, value) in &expected {
            assert_eq!(found[id], *value, "{name}, vertex {id}, directed {directed}");
        }
        for ((what, fact), (_, other)) in whole.facts.iter().zip(&stored.facts) {
            let near = (fact - other).abs() <= 1e-9 * fact.abs();
            assert!(near, "{name}: {what} {fact} {other}");
        }
    }
}

/// The check of a store needs memory for the vertices of one interval only.
#[test]
fn a_store_of_several_intervals_is_checked_in_little_memory() {
    for directed in [false, true] {
        let text = text(&mut Rng::stream(1, "verify"));
        let mut graph = graph(&text, directed, Keep::Drop, 1);
        let catalog = graph.catalog();
        assert!(catalog.intervals >= 5, "{} intervals", catalog.intervals);
        let least = 4 * u64::from(catalog.interval_vertices) + graph.buffers_min(&Serial);
        graph.set_memory(least - 1);
        assert!(matches!(verify(&mut graph, &Serial), Err(GraphError::Memory { .. })));
        graph.set_memory(least);
        assert_eq!(verify(&mut graph, &Serial).unwrap().damage, [""; 0]);
    }
}

/// A chain is as deep as it is long; labels of components cross it in few rounds, whether its
/// vertices are numbered in order or not.
#[test]
fn labels_of_components_cross_a_chain_in_few_rounds() {
    const LEN: u64 = 18_001;
    for (step, rounds) in [(1, 70), (5_003, 70)] {
        let id = |i: u64| i * step % LEN;
        let text: String = (0..LEN - 1).map(|i| format!("{} {}\n", id(i), id(i + 1))).collect();
        let mut graph = graph(&text, true, Keep::Drop, 1);
        let computed = with_least_memory(&mut graph, Algorithm::Wcc, &Serial, &options(), 0);
        assert!(matches!(computed.column, Column::Stored(_)));
        assert_eq!(computed.facts, [("components", 1.0)]);
        assert!(computed.rounds < rounds, "{} rounds", computed.rounds);
    }
}

/// A shortest path whose weights add up to more than the largest number is an error, not a vertex
/// without a path; if another path is shorter, its length is the result.
#[test]
fn lengths_beyond_the_range_of_numbers_are_refused() {
    let rest: String = (100..20_100).map(|at| format!("{at} {} 1\n", at + 1)).collect();
    let far = "7 1 1e308\n1 2 1e308\n";
    for (more, length) in [("", None), ("7 3 1\n3 2 1\n", Some("2.0"))] {
        let text = format!("{far}{more}{rest}");
        let input = Input {
            weighted: true,
            state_memory: Some(48 * 3300),
            ..Input::new(text.as_bytes(), Format::Edges, true)
        };
        let mut graph = input.graph();
        let options = options_of(Algorithm::Sssp);
        let (_, least) = Algorithm::Sssp.state_bytes(&graph, &Serial, &options);
        for memory in [64 << 20, least + graph.buffers_min(&Serial)] {
            graph.set_memory(memory);
            let found = Algorithm::Sssp.run(&mut graph, Some(results()), &Serial, &options);
            match length {
                None => {
                    let Err(error) = found else { panic!("no error with {memory} bytes") };
                    let said = error.to_string();
                    assert!(said.contains("weights") && said.contains("divide"), "{said}");
                }
                Some(length) => {
                    let found = found.unwrap();
                    let is_stored = matches!(found.column, Column::Stored(_));
                    assert_eq!(is_stored, memory < 64 << 20);
                    let values = by_id(&mut graph, &found);
                    assert_eq!((values[&2].as_str(), values[&100].as_str()), (length, "Infinity"));
                }
            }
        }
    }
}
