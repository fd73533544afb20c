//! LDBC Graphalytics' validation sets and p2p-31, compared by LDBC's rules.

use std::collections::BTreeMap;

use prism_graph::algorithms::{Algorithm, Options};
use prism_graph::input::Format;

use crate::common::{Input, Threads, options, run};

/// How values are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    Exact,
    /// Within 1e-4 of the expected value.
    Epsilon,
    /// The same partition, whatever the labels.
    Equivalence,
}

fn values(text: &str) -> BTreeMap<u64, String> {
    let row = |line: &str| {
        let (id, value) = line.trim().split_once(char::is_whitespace).expect("two columns");
        (id.parse().expect("a number"), value.trim().to_owned())
    };
    text.lines().filter(|line| !line.trim().is_empty()).map(row).collect()
}

fn compare(what: &str, rule: Rule, found: &BTreeMap<u64, String>, expected: &str) {
    let expected = values(expected);
    assert!(found.keys().eq(expected.keys()), "{what}: other vertices");
    let (mut forth, mut back) = (BTreeMap::new(), BTreeMap::new());
    for (id, expected) in &expected {
        let is = &found[id];
        let number = |text: &str| text.parse::<f64>().expect("a number");
        let right = match rule {
            Rule::Exact => is == expected,
            Rule::Epsilon => {
                let (is, expected) = (number(is), number(expected));
                is == expected || (is - expected).abs() <= 1e-4 * expected.abs()
            }
            Rule::Equivalence => {
                forth.entry(is.clone()).or_insert(expected.clone()) == expected
                    && back.entry(expected.clone()).or_insert(is.clone()) == is
            }
        };
        assert!(right, "{what}: vertex {id} has {is}, not {expected}");
    }
}

fn rounds(iterations: u32) -> Options {
    Options { iterations: Some(iterations), ..options() }
}

fn source(source: u64) -> Options {
    Options { source: Some(source), ..options() }
}

macro_rules! data {
    ($name:literal) => {
        include_str!(concat!("../data/ldbc/", $name))
    };
}

#[test]
fn validation_sets_match() {
    let check = |directed, input: &str, algorithm, options: &Options, rule, expected: &str| {
        let input = Input::new(input.as_bytes(), Format::Adjacency, directed);
        let found = run(&mut input.graph(), algorithm, options);
        compare(&format!("{algorithm:?} {directed}"), rule, &found, expected);
    };
    use Algorithm::{Bfs, Cdlp, Lcc, Pagerank, Wcc};
    let (exact, epsilon, equal) = (Rule::Exact, Rule::Epsilon, Rule::Equivalence);
    let bfs = source(1);
    check(true, data!("bfs/dir-input"), Bfs, &bfs, exact, data!("bfs/dir-output"));
    check(false, data!("bfs/undir-input"), Bfs, &bfs, exact, data!("bfs/undir-output"));
    check(true, data!("wcc/dir-input"), Wcc, &bfs, equal, data!("wcc/dir-output"));
    check(false, data!("wcc/undir-input"), Wcc, &bfs, exact, data!("wcc/undir-output"));
    check(true, data!("cdlp/dir-input"), Cdlp, &rounds(5), exact, data!("cdlp/dir-output"));
    check(false, data!("cdlp/undir-input"), Cdlp, &rounds(5), exact, data!("cdlp/undir-output"));
    check(true, data!("lcc/dir-input"), Lcc, &bfs, epsilon, data!("lcc/dir-output"));
    check(false, data!("lcc/undir-input"), Lcc, &bfs, epsilon, data!("lcc/undir-output"));
    check(true, data!("pr/dir-input"), Pagerank, &rounds(40), epsilon, data!("pr/dir-output"));
    check(false, data!("pr/undir-input"), Pagerank, &rounds(26), epsilon, data!("pr/undir-output"));
}

#[test]
fn shortest_paths_match() {
    for (directed, edges, vertices, expected) in [
        (true, data!("sssp/dir-input.e"), data!("sssp/dir-input.v"), data!("sssp/dir-output")),
        (
            false,
            data!("sssp/undir-input.e"),
            data!("sssp/undir-input.v"),
            data!("sssp/undir-output"),
        ),
    ] {
        let input = Input {
            vertices: vertices.as_bytes(),
            weighted: true,
            ..Input::new(edges.as_bytes(), Format::Edges, directed)
        };
        let found = run(&mut input.graph(), Algorithm::Sssp, &source(1));
        compare("sssp", Rule::Epsilon, &found, expected);
    }
}

#[test]
fn the_example_matches() {
    let directed: [(Algorithm, Options, Rule, &str); 6] = [
        (Algorithm::Cdlp, rounds(2), Rule::Exact, data!("example/example-directed-CDLP")),
        (Algorithm::Lcc, options(), Rule::Epsilon, data!("example/example-directed-LCC")),
        (Algorithm::Bfs, source(1), Rule::Exact, data!("example/example-directed-BFS")),
        (Algorithm::Sssp, source(1), Rule::Epsilon, data!("example/example-directed-SSSP")),
        (Algorithm::Wcc, options(), Rule::Equivalence, data!("example/example-directed-WCC")),
        (Algorithm::Pagerank, rounds(2), Rule::Epsilon, data!("example/example-directed-PR")),
    ];
    let undirected: [(Algorithm, Options, Rule, &str); 6] = [
        (Algorithm::Cdlp, rounds(2), Rule::Exact, data!("example/example-undirected-CDLP")),
        (Algorithm::Lcc, options(), Rule::Epsilon, data!("example/example-undirected-LCC")),
        (Algorithm::Bfs, source(2), Rule::Exact, data!("example/example-undirected-BFS")),
        (Algorithm::Sssp, source(2), Rule::Epsilon, data!("example/example-undirected-SSSP")),
        (Algorithm::Wcc, options(), Rule::Exact, data!("example/example-undirected-WCC")),
        (Algorithm::Pagerank, rounds(2), Rule::Epsilon, data!("example/example-undirected-PR")),
    ];
    let files = [
        (true, data!("example/example-directed.e"), data!("example/example-directed.v"), directed),
        (
            false,
            data!("example/example-undirected.e"),
            data!("example/example-undirected.v"),
            undirected,
        ),
    ];
    for (is_directed, edges, vertices, cases) in files {
        for intervals in [None, Some(48 * 4)] {
            let input = Input {
                vertices: vertices.as_bytes(),
                weighted: true,
                state_memory: intervals,
                ..Input::new(edges.as_bytes(), Format::Edges, is_directed)
            };
            let mut graph = input.graph_with(2, 64 << 20);
            assert_eq!(graph.catalog().intervals > 1, intervals.is_some());
            for (algorithm, options, rule, expected) in &cases {
                let found = run(&mut graph, *algorithm, options);
                compare(&format!("{algorithm:?} {is_directed}"), *rule, &found, expected);
            }
        }
    }
}

/// The files of a tape archive.
fn untar(bytes: &[u8]) -> BTreeMap<String, String> {
    let (mut files, mut rest) = (BTreeMap::new(), bytes);
    while let Some((head, after)) = rest.split_at_checked(512) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_matches('\0').to_owned();
        let name = text(&head[..100]);
        if name.is_empty() {
            break;
        }
        let size = u64::from_str_radix(text(&head[124..136]).trim(), 8).expect("octal") as usize;
        let (content, after) = after.split_at(size.next_multiple_of(512));
        files.insert(name.rsplit('/').next().unwrap().to_owned(), text(&content[..size]));
        rest = after;
    }
    files
}

#[test]
fn p2p_31_matches() {
    let archive = include_bytes!("../data/p2p-31.tar.zst");
    let files = untar(&zstd::decode_all(&archive[..]).unwrap());
    let file = |name: &str| files[&format!("p2p-31{name}")].as_str();
    let graph = |directed| {
        let input = Input {
            vertices: file(".v").as_bytes(),
            weighted: true,
            ..Input::new(file(".e").as_bytes(), Format::Edges, directed)
        };
        input.graph_with(2, 64 << 20)
    };
    let mut undirected = graph(false);
    assert_eq!((undirected.catalog().vertices, undirected.catalog().edges), (62_586, 147_892));
    let mut check = |algorithm: Algorithm, options: Options, rule, expected: &str| {
        let found = run(&mut undirected, algorithm, &options);
        compare(algorithm.name(), rule, &found, file(expected));
    };
    check(Algorithm::Bfs, source(6), Rule::Exact, "-BFS");
    check(Algorithm::Sssp, source(6), Rule::Epsilon, "-SSSP");
    check(Algorithm::Wcc, options(), Rule::Equivalence, "-WCC");
    check(Algorithm::Pagerank, rounds(10), Rule::Epsilon, "-PR");
    check(Algorithm::Cdlp, rounds(10), Rule::Exact, "-CDLP");
    check(Algorithm::Lcc, options(), Rule::Epsilon, "-LCC");
    let triangles =
        Algorithm::Triangles.run(&mut undirected, None, &Threads(2), &options()).unwrap();
    assert_eq!(triangles.facts, [("triangles", 2024.0)]);
    let mut directed = graph(true);
    let found = run(&mut directed, Algorithm::Bfs, &source(6));
    compare("directed bfs", Rule::Exact, &found, file("-BFS-directed"));
    let found = run(&mut directed, Algorithm::Sssp, &source(6));
    compare("directed sssp", Rule::Epsilon, &found, file("-SSSP-directed"));
}
