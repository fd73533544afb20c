//! Formats of graphs: the same graph in each, and what is wrong in damaged ones.

use prism_graph::input::Format;
use prism_graph::{Graph, GraphError, Order, Serial, Space, verify};

use crate::common::{Input, edges, ids, policy};

fn check(
    format: Format,
    directed: bool,
    weighted: bool,
    text: &[u8],
    expected: &[(u64, u64, f64)],
) {
    let input = Input { weighted, order: Order::Input, ..Input::new(text, format, directed) };
    assert_eq!(edges(&mut input.graph()), expected, "{format:?}");
}

#[test]
fn every_format_is_read() {
    let plain = [(1, 2, 1.0), (2, 3, 1.0)];
    let heavy = [(1, 2, 0.5), (2, 3, 7.0)];
    check(Format::Edges, true, false, b"# c\n1\t2\n\n2,3 extra\r\n", &plain);
    check(Format::Edges, true, true, b"% c\n1 2 .5\n2;3;7e0", &heavy);
    check(Format::Edges, true, true, b"// c\n 1|2|0.5\n2  3  7\n", &heavy);
    check(Format::Adjacency, true, false, b"1 2\n2 3\n3", &plain);
    check(Format::Adjacency, false, false, b"1 2\n2 1 3\n3 2\n", &plain);
    let market = b"%%MatrixMarket matrix coordinate real general\n% c\n3 3 2\n1 2 0.5\n2 3 7\n";
    check(Format::MatrixMarket, true, true, market, &heavy);
    let symmetric = b"%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n";
    check(Format::MatrixMarket, false, false, symmetric, &plain);
    let both = [(1, 2, 1.0), (2, 1, 1.0), (2, 3, 1.0), (3, 2, 1.0)];
    check(Format::MatrixMarket, true, false, symmetric, &both);
    check(Format::Metis, false, false, b"% c\n3 2\n2\n1 3\n2\n", &plain);
    check(Format::Metis, false, true, b"3 2 011 1\n9 2 .5\n9 1 .5 3 7\n9 2 7\n", &heavy);
    check(Format::Csv, true, false, b"from,to\n1,2\n\"2\",3\n", &plain);
    check(Format::Csv, true, true, b"a;b;weight\n1;2;0.5\n2;3;7\n", &heavy);
    // Columns of text with the separator and quotes in it.
    let named = b"a;b;name;weight\n1;2;\"x;y\";0.5\n2;3; \"5\"\"; z\";7\n";
    check(Format::Csv, true, true, named, &heavy);
    let tabs = b"a\tb\tname\tweight\n1\t2\t\t.5\n2\t3\t\"u\t1\"\t7";
    check(Format::Csv, true, true, tabs, &heavy);
    let u32s: Vec<u8> = [1_u32, 2, 2, 3].iter().flat_map(|n| n.to_le_bytes()).collect();
    check(Format::Pairs32, true, false, &u32s, &plain);
    let u64s: Vec<u8> = [1_u64, 2, 2, 3].iter().flat_map(|n| n.to_le_bytes()).collect();
    check(Format::Pairs64, true, false, &u64s, &plain);
    let large = u64::MAX.to_string();
    let text = format!("{large} 5\n4294967296 4294967295\n");
    let expected = [(1 << 32, (1 << 32) - 1, 1.0), (u64::MAX, 5, 1.0)];
    check(Format::Edges, true, false, text.as_bytes(), &expected);
}

#[test]
fn white_space_and_separators_after_the_last_field_are_no_fields() {
    let plain = [(1, 2, 1.0), (2, 3, 1.0)];
    for text in ["1  2\n2\t\t3\n", " 1 , 2\r\n2 ,3,,\n", "1; 2;\r\n\t2 |3\r"] {
        check(Format::Edges, true, false, text.as_bytes(), &plain);
    }
    check(Format::Adjacency, true, false, b"1,2,\n2 , 3 ,,\n", &plain);
}

/// Some programs begin a text with the mark of UTF-8.
#[test]
fn a_mark_of_utf8_is_no_part_of_the_first_line() {
    let plain = [(1, 2, 1.0), (2, 3, 1.0)];
    check(Format::Edges, true, false, b"\xEF\xBB\xBF1 2\n2 3\n", &plain);
    check(Format::Csv, true, false, b"\xEF\xBB\xBFfrom,to\n1,2\n2,3\n", &plain);
    let head = b"\xEF\xBB\xBF%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n2 3\n";
    check(Format::MatrixMarket, true, false, head, &plain);
    assert_eq!(Format::recognise("edges.txt", head), Format::MatrixMarket);
    assert_eq!(Format::recognise("edges.csv", b"\xEF\xBB\xBF1,2\n"), Format::Edges);
}

#[test]
fn what_is_wrong_is_named() {
    let check = |format, weighted, text: &[u8], parts: &[&str]| {
        let directed = format != Format::Metis;
        let input = Input { weighted, ..Input::new(text, format, directed) };
        let (mut space, _) = Space::open(policy(256, 8, 1)).unwrap();
        let error = input.ingest(&mut space, &Serial).expect_err("it is wrong");
        let text = error.to_string();
        for part in parts {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        // Nothing is half made.
        let (space, catalog) = Space::open(space.into_stores()).unwrap();
        assert!(matches!(Graph::open(space, catalog, 1 << 20), Err(GraphError::NoGraph)));
    };
    check(Format::Adjacency, true, b"1 2\n", &["--weighted"]);
    let edges = Format::Edges;
    check(edges, false, b"1 2\n# c\n3\n", &["3: ", "a vertex is missing"]);
    check(edges, false, b"1 2\nx 3\n", &["2: ", "\"x\" is not the number of a vertex"]);
    check(edges, false, b"1,2\n1,,2\n", &["2: ", "a field is empty"]);
    check(edges, false, b"1,2\n;3;4\n", &["2: ", "a field is empty"]);
    check(edges, true, b"1|2| |5\n", &["1: ", "a field is empty"]);
    check(Format::Adjacency, false, b"1,2,,3\n", &["1: ", "a field is empty"]);
    check(edges, true, b"1;2;3\n1;2;3,5\n", &["2: ", "\"3,5\" is no number"]);
    check(edges, false, b"1 2\r\n3 4\r5 6\r", &["2: ", "a carriage return is within the line"]);
    check(edges, false, b"1 -2\n", &["1: ", "\"-2\""]);
    check(edges, false, b"1 2.5\n", &["1: ", "\"2.5\""]);
    check(edges, false, b"1 99999999999999999999\n", &["1: ", "beyond 2^64 - 1"]);
    check(edges, true, b"1 2\n", &["1: ", "weight is missing"]);
    check(edges, true, b"1 2 nan\n", &["1: ", "not a finite weight"]);
    check(edges, false, b"# nothing\n", &["no vertices"]);
    let market = b"%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 0.5\n";
    check(Format::MatrixMarket, true, market, &["4: ", "1 of 2 entries"]);
    check(Format::MatrixMarket, false, b"1 2\n", &["1: ", "%%MatrixMarket"]);
    let outside = b"%%MatrixMarket matrix coordinate pattern general\n3 3 1\n4 1\n";
    check(Format::MatrixMarket, false, outside, &["3: ", "1 to 3"]);
    check(Format::Metis, false, b"3 2\n2\n1 3\n", &["2 of 3 vertices"]);
    check(Format::Metis, false, b"2 2\n2\n1\n", &["twice 2 edges"]);
    check(Format::Pairs32, false, &[0; 12], &["byte 8", "within an edge"]);
    check(Format::Csv, true, b"a,b\n1,2\n", &["1: ", "\"weight\"", "a, b", "--weighted"]);
    check(Format::Csv, false, b"a,b\n1,2\n3\n", &["3: ", "column 2 is missing"]);
    check(Format::Csv, true, b"a;b;weight\n1;2;0,5\n", &["2: ", "\"0,5\" is no number"]);
    // A quote that nothing ends, and cells with line breaks, which need not be of a vertex.
    check(Format::Csv, false, b"a,b\n1,\"2,3\n", &["2: ", "a quote that does not end in the line"]);
    let broken = b"a,b,c\n1,2,\"x\"\n2,3,\"a text\nof two lines\"\n";
    check(Format::Csv, false, broken, &["3: ", "line breaks in cells are not read"]);
    check(Format::Csv, false, b"a,b,\"c\nd\"\n1,2,3\n", &["1: ", "line breaks in cells"]);
}

#[test]
fn vertices_need_no_edges() {
    let input =
        Input { vertices: b"7\n9 a second column\n8", ..Input::new(b"1 2\n", Format::Edges, true) };
    let mut graph = input.graph();
    assert_eq!(ids(&mut graph), [1, 2, 7, 8, 9]);
    assert_eq!(verify::isolated(&mut graph).unwrap(), 3);
}

#[test]
fn a_full_device_keeps_its_graph() {
    let stores = policy(100, 8, 1);
    let (mut space, _) = Space::open(stores).unwrap();
    Input::new(b"1 2\n", Format::Edges, true).ingest(&mut space, &Serial).unwrap();
    let many: String = (0..200_000).map(|i| format!("{} {}\n", i % 977, i % 1009)).collect();
    let large = Input::new(many.as_bytes(), Format::Edges, true);
    let error = large.ingest(&mut space, &Serial).expect_err("it is too large");
    assert!(matches!(error, GraphError::NoSpace), "{error}");
    let (space, catalog) = Space::open(space.into_stores()).unwrap();
    let mut graph = Graph::open(space, catalog, 1 << 20).unwrap();
    assert_eq!(edges(&mut graph), [(1, 2, 1.0)]);
}
