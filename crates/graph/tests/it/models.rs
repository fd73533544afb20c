//! Random graphs against naive computations and petgraph.

use std::collections::{BTreeMap, BTreeSet};

use petgraph::algo::dijkstra;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::unionfind::UnionFind;
use prism_base::Rng;
use prism_graph::algorithms::{Algorithm, Options};
use prism_graph::catalog::Direction;
use prism_graph::input::Format;
use prism_graph::rmat::Rmat;
use prism_graph::{Graph, Keep, Order, Space, verify};

use crate::common::{Input, Threads, edges, ids, options, policy, run};

/// A random graph as text, and as sets.
struct Model {
    text: String,
    directed: bool,
    weighted: bool,
    ids: Vec<u64>,
    /// By dense numbers, each arc with the smallest weight.
    arcs: BTreeMap<(u32, u32), f64>,
}

fn model(rng: &mut Rng) -> Model {
    let (directed, weighted) = (rng.chance(0.5), rng.chance(0.5));
    let count = 1 + rng.below(60);
    let spread = [1, 1, 7, 1 << 20, 1 << 40][rng.below(5) as usize];
    let id = |rng: &mut Rng| 3 + rng.below(count) * spread;
    let (mut edges, mut text) = (Vec::new(), String::from("# a comment\n"));
    for _ in 0..1 + rng.below(400) {
        // Some vertices have most edges, so that lists do not fit in a segment.
        let hub = rng.chance(0.3);
        let (source, target) = (if hub { 3 } else { id(rng) }, id(rng));
        let weight = rng.below(1000) as f64 / 8.0 + if rng.chance(0.1) { 0.1 } else { 0.0 };
        edges.push((source, target, weight));
        let separator = [" ", "\t", ",", " ; "][rng.below(4) as usize];
        text.push_str(&format!("{source}{separator}{target}{separator}{weight}\n"));
    }
    let all: BTreeSet<u64> = edges.iter().flat_map(|(s, t, _)| [*s, *t]).collect();
    let ids: Vec<u64> = all.into_iter().collect();
    let dense = |id: u64| ids.partition_point(|other| *other < id) as u32;
    let mut arcs = BTreeMap::new();
    for (source, target, weight) in edges {
        let (source, target) = (dense(source), dense(target));
        let ends = [(source, target), (target, source)];
        for arc in if directed { &ends[..1] } else { &ends[..] } {
            let least = arcs.entry(*arc).or_insert(weight);
            *least = f64::min(*least, weight);
        }
    }
    Model { text, directed, weighted, ids, arcs }
}

impl Model {
    fn input(&self) -> Input<'_> {
        Input::new(self.text.as_bytes(), Format::Edges, self.directed)
    }

    fn graph(&self, rng: &mut Rng) -> Graph {
        let input = Input {
            weighted: self.weighted,
            state_memory: rng.chance(0.3).then(|| 48 * (8 + rng.below(40))),
            order: if rng.chance(0.7) { Order::Degree } else { Order::Input },
            ..self.input()
        };
        input.graph_with(1 + rng.below(3) as usize, 64 << 20)
    }

    fn weight(&self, arc: (u32, u32)) -> f64 {
        if self.weighted { self.arcs[&arc] } else { 1.0 }
    }

    /// Neighbours in either direction, with multiplicity, without the vertex.
    fn around(&self, vertex: u32) -> Vec<u32> {
        let from = self.arcs.keys().filter(|(s, t)| *s == vertex && *t != vertex).map(|(_, t)| *t);
        let to = self.arcs.keys().filter(|(s, t)| *t == vertex && *s != vertex).map(|(s, _)| *s);
        if self.directed { from.chain(to).collect() } else { from.collect() }
    }

    fn check(&self, found: &BTreeMap<u64, String>, what: &str, expected: &dyn Fn(u32) -> f64) {
        for (vertex, id) in (0..).zip(&self.ids) {
            let is: f64 = found[id].parse().unwrap();
            let expected = expected(vertex);
            let right = is == expected || (is - expected).abs() <= 1e-9 * expected.abs();
            assert!(right, "{what}: vertex {id} has {is}, not {expected}\n{}", self.text);
        }
    }

    fn petgraph(&self) -> DiGraph<(), f64> {
        let mut graph = DiGraph::new();
        for _ in &self.ids {
            graph.add_node(());
        }
        for (source, target) in self.arcs.keys() {
            let ends = [NodeIndex::new(*source as usize), NodeIndex::new(*target as usize)];
            graph.add_edge(ends[0], ends[1], self.weight((*source, *target)));
        }
        graph
    }

    fn vertices(&self) -> u32 {
        self.ids.len() as u32
    }
}

fn with(source: u64, iterations: u32) -> Options {
    Options { source: Some(source), iterations: Some(iterations), ..options() }
}

#[test]
fn random_graphs_have_the_results_of_another_library() {
    for seed in prism_testkit::seeds(0..60) {
        let mut rng = Rng::stream(seed, "graphs");
        let model = model(&mut rng);
        let mut graph = model.graph(&mut rng);
        let petgraph = model.petgraph();
        let source = model.ids[rng.below(model.ids.len() as u64) as usize];
        let start = NodeIndex::new(model.ids.iter().position(|id| *id == source).unwrap());
        let options = with(source, 7);
        let found = run(&mut graph, Algorithm::Sssp, &options);
        let lengths = dijkstra(&petgraph, start, None, |edge| *edge.weight());
        let length = |vertex: u32| {
            lengths.get(&NodeIndex::new(vertex as usize)).copied().unwrap_or(f64::INFINITY)
        };
        model.check(&found, "sssp", &length);
        let found = run(&mut graph, Algorithm::Bfs, &options);
        let levels = dijkstra(&petgraph, start, None, |_| 1_u64);
        let level = |vertex: u32| {
            let level = levels.get(&NodeIndex::new(vertex as usize)).copied();
            level.unwrap_or(i64::MAX as u64) as f64
        };
        model.check(&found, "bfs", &level);
        let mut components = UnionFind::new(model.ids.len());
        for (source, target) in model.arcs.keys() {
            components.union(*source, *target);
        }
        let roots = components.into_labeling();
        let first = |vertex: u32| {
            let same = |other: &u32| *other == roots[vertex as usize];
            model.ids[roots.iter().position(same).unwrap()] as f64
        };
        let found = run(&mut graph, Algorithm::Wcc, &options);
        model.check(&found, "wcc", &first);
    }
}

/// PageRank, with or without a source, by its definition.
fn ranks(model: &Model, source: Option<u32>, rounds: u32) -> Vec<f64> {
    let count = model.vertices();
    let degree = |v: u32| model.arcs.keys().filter(|(source, _)| *source == v).count() as f64;
    let degrees: Vec<f64> = (0..count).map(degree).collect();
    let share = |v: u32| match source {
        Some(source) => f64::from(u8::from(source == v)),
        None => 1.0 / f64::from(count),
    };
    let mut ranks: Vec<f64> = (0..count).map(share).collect();
    for _ in 0..rounds {
        let lost: f64 = (0..count as usize).filter(|v| degrees[*v] == 0.0).map(|v| ranks[v]).sum();
        let mut next: Vec<f64> = (0..count).map(|v| share(v) * (0.15 + 0.85 * lost)).collect();
        for (source, target) in model.arcs.keys() {
            next[*target as usize] += 0.85 * ranks[*source as usize] / degrees[*source as usize];
        }
        ranks = next;
    }
    ranks
}

#[test]
fn random_graphs_have_the_results_of_definitions() {
    for seed in prism_testkit::seeds(100..160) {
        let mut rng = Rng::stream(seed, "graphs");
        let model = model(&mut rng);
        let mut graph = model.graph(&mut rng);
        let source = rng.below(model.ids.len() as u64) as u32;
        let options = with(model.ids[source as usize], 3);
        let around: Vec<Vec<u32>> = (0..model.vertices()).map(|v| model.around(v)).collect();
        let expected = ranks(&model, None, 3);
        let found = run(&mut graph, Algorithm::Pagerank, &options);
        model.check(&found, "pagerank", &|vertex| expected[vertex as usize]);
        let expected = ranks(&model, Some(source), 3);
        let found = run(&mut graph, Algorithm::Ppr, &options);
        model.check(&found, "ppr", &|vertex| expected[vertex as usize]);
        let mut labels: Vec<u32> = (0..model.vertices()).collect();
        for _ in 0..3 {
            let next = (0..model.vertices()).map(|vertex| {
                let mut counts = BTreeMap::new();
                for other in &around[vertex as usize] {
                    *counts.entry(labels[*other as usize]).or_insert(0) += 1;
                }
                let best = counts.iter().max_by_key(|(label, count)| (**count, u32::MAX - **label));
                best.map_or(labels[vertex as usize], |(label, _)| *label)
            });
            labels = next.collect();
        }
        let found = run(&mut graph, Algorithm::Cdlp, &options);
        model.check(&found, "cdlp", &|v| model.ids[labels[v as usize] as usize] as f64);
        let sets: Vec<BTreeSet<u32>> =
            around.iter().map(|list| list.iter().copied().collect()).collect();
        let coefficient = |vertex: u32| {
            let set = &sets[vertex as usize];
            let inside = |(s, t): &&(u32, u32)| s != t && set.contains(s) && set.contains(t);
            let possible = (set.len() * set.len().saturating_sub(1)) as f64;
            let count = model.arcs.keys().filter(inside).count() as f64;
            if possible > 0.0 { count / possible } else { 0.0 }
        };
        model.check(&run(&mut graph, Algorithm::Lcc, &options), "lcc", &coefficient);
        let triangles = |vertex: u32| {
            let set = &sets[vertex as usize];
            let pairs = set.iter().map(|one| sets[*one as usize].intersection(set).count());
            (pairs.sum::<usize>() / 2) as f64
        };
        model.check(&run(&mut graph, Algorithm::Triangles, &options), "triangles", &triangles);
        let cores = cores(&sets);
        let core = |vertex: u32| f64::from(cores[vertex as usize]);
        model.check(&run(&mut graph, Algorithm::Kcore, &options), "kcore", &core);
        check_export(&model, &mut graph);
    }
}

/// Values of four bytes are within a hundredth of what LDBC allows.
#[test]
fn random_graphs_have_nearly_the_same_ranks_in_single_precision() {
    let mut differ = 0;
    for seed in prism_testkit::seeds(200..220) {
        let mut rng = Rng::stream(seed, "graphs");
        let model = model(&mut rng);
        let mut graph = model.graph(&mut rng);
        for algorithm in [Algorithm::Pagerank, Algorithm::Ppr] {
            let double = with(model.ids[0], 10);
            let single = Options { single: true, ..double };
            let [double, single] =
                [double, single].map(|options| run(&mut graph, algorithm, &options));
            for (id, double) in double {
                let [double, single] = [&double, &single[&id]].map(|v| v.parse::<f64>().unwrap());
                differ += u32::from(double != single);
                assert!((double - single).abs() <= 1e-6 * double, "{id}: {double} {single}");
            }
        }
    }
    // Fresh seeds may make small graphs only.
    assert!(!prism_testkit::all_seeds() || differ > 100, "{differ} values differ");
}

/// Core numbers by removing vertices.
fn cores(sets: &[BTreeSet<u32>]) -> Vec<u32> {
    let (mut cores, mut left) =
        (vec![0; sets.len()], (0..sets.len() as u32).collect::<BTreeSet<_>>());
    for k in 0.. {
        loop {
            let degree = |v: &u32| sets[*v as usize].intersection(&left).count() as u32;
            let gone: Vec<u32> = left.iter().copied().filter(|v| degree(v) <= k).collect();
            if gone.is_empty() {
                break;
            }
            for vertex in gone {
                cores[vertex as usize] = k;
                left.remove(&vertex);
            }
        }
        if left.is_empty() {
            return cores;
        }
    }
    unreachable!("a vertex has fewer than all neighbours")
}

/// The graph that was written is the one that was read, and a check finds nothing.
fn check_export(model: &Model, graph: &mut Graph) {
    let mut found = BTreeMap::new();
    for (source, target, weight) in edges(graph) {
        assert!(found.insert((source, target), weight).is_none());
    }
    let id = |vertex: u32| model.ids[vertex as usize];
    let wanted = model.arcs.keys().filter(|(s, t)| model.directed || s <= t);
    let wanted: BTreeMap<(u64, u64), f64> =
        wanted.map(|(s, t)| ((id(*s), id(*t)), model.weight((*s, *t)))).collect();
    assert_eq!(found, wanted);
    let report = verify::verify(graph, &prism_graph::Serial).unwrap();
    assert_eq!(report.damage, Vec::<String>::new());
    assert_eq!(graph.catalog().edges, wanted.len() as u64);
    let arcs: u64 =
        graph.catalog().neighbours(Direction::In).iter().map(|e| u64::from(e.edges)).sum();
    assert_eq!(arcs, graph.catalog().arcs);
}

#[test]
fn duplicates_and_loops_are_kept_or_dropped() {
    let text = b"1 2 5\n1 2 3\n2 2 1\n2 1 4\n";
    let check = |directed, duplicates, loops, expected: &[(u64, u64, f64)]| {
        let input = Input {
            weighted: true,
            duplicates,
            loops,
            order: Order::Input,
            ..Input::new(text, Format::Edges, directed)
        };
        let mut graph = input.graph();
        assert_eq!(edges(&mut graph), expected);
        assert_eq!(graph.catalog().edges, expected.len() as u64);
        let dropped = graph.catalog().duplicates + graph.catalog().loops_dropped;
        assert_eq!(dropped, 4 - expected.len() as u64);
    };
    let (keep, drop) = (Keep::Keep, Keep::Drop);
    check(true, keep, keep, &[(1, 2, 3.0), (1, 2, 5.0), (2, 1, 4.0), (2, 2, 1.0)]);
    check(true, drop, keep, &[(1, 2, 3.0), (2, 1, 4.0), (2, 2, 1.0)]);
    check(true, drop, drop, &[(1, 2, 3.0), (2, 1, 4.0)]);
    check(false, drop, drop, &[(1, 2, 3.0)]);
    check(false, drop, keep, &[(1, 2, 3.0), (2, 2, 1.0)]);
    check(false, keep, keep, &[(1, 2, 3.0), (1, 2, 4.0), (1, 2, 5.0), (2, 2, 1.0)]);
}

/// Temporary space is flushed in the middle of a weighted edge, so these numbers of edges matter.
#[test]
fn weighted_edges_are_kept_whatever_their_number() {
    for count in [4094, 4095, 8189, 12_290_u64] {
        let wanted = (0..count).map(|at| (at, at * 7 % 1009, at as f64 + 0.1));
        let text: String = wanted.clone().map(|(a, b, w)| format!("{a} {b} {w}\n")).collect();
        let input = Input { weighted: true, ..Input::new(text.as_bytes(), Format::Edges, true) };
        assert!(edges(&mut input.graph()).into_iter().eq(wanted), "{count} edges");
    }
}

#[test]
fn duplicates_of_loops_are_counted_once() {
    for (directed, text) in
        [(false, &b"1 1\n1 1\n1 1\n1 2\n2 1\n"[..]), (true, b"1 1\n1 1\n1 1\n1 2\n1 2\n")]
    {
        let graph = Input::new(text, Format::Edges, directed).graph();
        assert_eq!((graph.catalog().edges, graph.catalog().duplicates), (2, 3), "{directed}");
    }
}

/// Edges that are kept although there is one already do not count as edges in both directions.
#[test]
fn coefficients_do_not_count_duplicates() {
    let check = |text: &[u8], directed, expected: [f64; 3]| {
        let input = Input { duplicates: Keep::Keep, ..Input::new(text, Format::Edges, directed) };
        let found = run(&mut input.graph(), Algorithm::Lcc, &options());
        let found: Vec<f64> = found.values().map(|value| value.parse().unwrap()).collect();
        assert_eq!(found, expected, "{directed}");
    };
    let text = b"1 2\n2 3\n3 1\n1 2\n2 3\n1 3\n";
    check(text, false, [1.0; 3]);
    // Between 1 and 3 edges go both ways.
    check(text, true, [0.5, 1.0, 0.5]);
}

/// Both orders have the same results: whole numbers are equal, ranks and distances nearly.
#[test]
fn both_orders_of_random_graphs_have_the_same_results() {
    let mut grouped = 0;
    for seed in prism_testkit::seeds(300..330) {
        let mut rng = Rng::stream(seed, "graphs");
        let model = model(&mut rng);
        let source = Some(model.ids[rng.below(model.ids.len() as u64) as usize]);
        let [mut by_degree, mut as_input] = [Order::Degree, Order::Input].map(|order| {
            let input = Input { weighted: model.weighted, order, ..model.input() };
            input.graph_with(2, 64 << 20)
        });
        assert_eq!(
            [by_degree.catalog().order(), as_input.catalog().order()],
            [Order::Degree, Order::Input]
        );
        grouped += by_degree.catalog().groups.iter().filter(|group| **group > 0).count();
        for algorithm in Algorithm::ALL {
            let source = source.filter(|_| algorithm.has_source());
            let options = Options { source, ..options() };
            let wanted = run(&mut as_input, algorithm, &options);
            let found = run(&mut by_degree, algorithm, &options);
            assert!(wanted.keys().eq(found.keys()));
            for (id, wanted) in &wanted {
                let [is, wanted] = [&found[id], wanted].map(|text| text.parse::<f64>().unwrap());
                let right = is == wanted || (is - wanted).abs() <= 1e-12 * wanted.abs();
                assert!(right, "{}: {id} has {is}, not {wanted}", algorithm.name());
            }
        }
        check_export(&model, &mut by_degree);
        check_export(&model, &mut as_input);
        for graph in [&mut by_degree, &mut as_input] {
            assert_eq!(ids(graph), model.ids);
        }
    }
    // Several groups have vertices.
    assert!(!prism_testkit::all_seeds() || grouped > 60, "{grouped} groups");
}

/// Many vertices whose degrees fall: the first numbers are those of the vertices with most edges,
/// and the store has the same segments with any number of threads.
#[test]
fn vertices_with_most_edges_come_first() {
    let edges = Rmat::new(16, 5).filter(|edge| edge.source != edge.target);
    let pairs: Vec<u8> = edges
        .flat_map(|edge| [edge.source as u32, edge.target as u32])
        .flat_map(u32::to_le_bytes)
        .collect();
    let mut contents = Vec::new();
    for threads in [1, 3] {
        let input = Input { duplicates: Keep::Keep, ..Input::new(&pairs, Format::Pairs32, true) };
        let stores = policy(1024, 512, 1);
        let (mut space, _) = Space::open(stores).unwrap();
        input.ingest(&mut space, &Threads(threads)).unwrap();
        let (space, catalog) = Space::open(space.into_stores()).unwrap();
        let mut graph = Graph::open(space, catalog, 64 << 20).unwrap();
        contents.push(graph.catalog().content);
        let (mut first, mut last, mut all) = (0, 0, 0);
        let vertices = graph.catalog().vertices;
        graph
            .degrees(|vertex, [to, from]| {
                let both = u64::from(to) + u64::from(from);
                all += both;
                first += if vertex < vertices / 10 { both } else { 0 };
                last += if vertex >= vertices / 2 { both } else { 0 };
            })
            .unwrap();
        assert!(first * 10 > all * 6 && last * 10 < all, "{first} {last} of {all}");
        assert_eq!(verify::verify(&mut graph, &prism_graph::Serial).unwrap().damage, [""; 0]);
    }
    assert_eq!(contents[0], contents[1]);
}

#[test]
fn the_example_of_an_algorithm_runs() {
    crate::reach::main().unwrap();
}
