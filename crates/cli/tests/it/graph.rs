//! `prism graph`: ingest, run, info, verify and export of a store in a file.

use std::fs;
use std::io::Write;
use std::path::Path;

use serde_json::Value;

use crate::common::{folder, good, json, names, path as at, prism, refused_in_a_line as refused};

const EDGES: &str = "# a comment\n10 20 0.5\n20,30,2\n30\t10\t1\n1000000000000 10 4\n";

#[test]
fn a_graph_is_made_and_computed_on() {
    let folder = folder();
    let names = ["edges.txt.zst", "g.prism", "out.tsv", "run.json"];
    let [edges, store, out, json] = names.map(|name| at(&folder, name));
    fs::write(&edges, zstd::encode_all(EDGES.as_bytes(), 1).unwrap()).unwrap();
    let made = good(&["graph", "ingest", &edges, "-o", &store, "--directed", "--weighted"]);
    assert!(made.contains("4 vertices, 4 edges (0 self-loops)"), "{made}");
    let run = |words: &[&str]| {
        let all = [&["graph", "run"], words, &["--output", &out]].concat();
        good(&all);
        fs::read_to_string(&out).unwrap()
    };
    let levels = "10\t0\n20\t1\n30\t2\n1000000000000\t9223372036854775807\n";
    assert_eq!(run(&["bfs", &store, "--source", "10"]), levels);
    let lengths = "10\t0.0\n20\t0.5\n30\t2.5\n1000000000000\tInfinity\n";
    assert_eq!(run(&["sssp", &store, "--source", "10"]), lengths);
    assert_eq!(run(&["wcc", &store]), "10\t10\n20\t10\n30\t10\n1000000000000\t10\n");
    assert_eq!(run(&["degrees", &store]), "10\t3\n20\t2\n30\t2\n1000000000000\t1\n");
    assert_eq!(run(&["triangles", &store]), "10\t1\n20\t1\n30\t1\n1000000000000\t0\n");
    assert_eq!(run(&["kcore", &store]), "10\t2\n20\t2\n30\t2\n1000000000000\t1\n");
    let ranks = run(&["pagerank", &store, "--iterations", "30", "--checkpoint", "7"]);
    let sum: f64 =
        ranks.lines().map(|l| l.split('\t').nth(1).unwrap().parse::<f64>().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{ranks}");
    // It goes on after round 28, for which it reads less.
    let again = ["pagerank", &store, "--iterations", "30", "--checkpoint", "7", "--json", &json];
    assert_eq!(ranks, run(&again));
    let figure = |name: &str| {
        let text = fs::read_to_string(&json).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()[name].as_u64()
    };
    let streamed = || figure("edges_streamed").unwrap();
    assert_eq!(figure("resumed_after_round"), Some(28));
    let shown = good(&[&["graph", "run"], &again[..6]].concat());
    assert!(shown.contains("went on after round 28"), "{shown}");
    let after_28 = streamed();
    let whole = run(&["pagerank", &store, "--iterations", "30", "--json", &json]);
    assert_eq!(figure("resumed_after_round"), None);
    assert!(whole == ranks && after_28 * 10 < streamed(), "{after_28} of {}", streamed());
    assert_eq!(ranks, run(&[&again[..], &["--restart"]].concat()));
    assert_eq!(streamed(), 30 * 4);
    // Fewer rounds are not those that were saved.
    let few = run(&["pagerank", &store, "--iterations", "3"]);
    assert_ne!(few, ranks);
    assert_eq!(run(&["pagerank", &store, "--iterations", "3", "--checkpoint", "7"]), few);
    let found = crate::common::json(&["graph", "info", &store, "--json", "-"]);
    assert_eq!(found["edges"], 4, "{found}");
    assert!(good(&["graph", "verify", &store]).contains("no damage"));
    let exported = good(&["graph", "export", &store]);
    // Those from vertices with more edges come first.
    let lines: Vec<&str> = exported.lines().skip(1).collect();
    let in_order = ["10\t20\t0.5", "20\t30\t2", "30\t10\t1", "1000000000000\t10\t4"];
    assert_eq!(lines, in_order);
    for name in ["e.bin", "e.mtx", "e.tsv.gz", "e.parquet"] {
        refused(&["graph", "export", &store, "-o", name], &[name, "edges are written as text"]);
    }
    let weights = ["--columns", "from,to,length"];
    refused(&[&["graph", "ingest", &store, "-o", &json][..], &weights].concat(), &["--weighted"]);
    refused(&["graph", "ingest", &json, "-o", &json], &["this is the input"]);
    refused(&["graph", "info", &json], &["no store of a graph", "prism graph ingest"]);
}

/// Files of values and what is shown are the same bytes whatever the order of the vertices in the
/// store is, but for the last digits of ranks.
#[test]
fn values_do_not_depend_on_the_order_in_the_store() {
    let folder = folder();
    let edges = at(&folder, "edges.txt");
    let hub = |at: u64| if at.is_multiple_of(3) { 700 } else { at * at % 997 };
    let lines: String = (0..6000).map(|at| format!("{} {}\n", at * 31 % 991, hub(at))).collect();
    fs::write(&edges, lines).unwrap();
    let stores = ["degree", "input"].map(|order| {
        let store = at(&folder, &format!("{order}.prism"));
        good(&["graph", "ingest", &edges, "-o", &store, "--directed", "--order", order]);
        let found = json(&["graph", "info", &store, "--json", "-"]);
        assert_eq!(found["order"], order, "{found}");
        store
    });
    let exported = stores.clone().map(|store| {
        let text = good(&["graph", "export", &store]);
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    });
    assert_eq!(exported[0], exported[1]);
    let out = at(&folder, "out.tsv");
    for algorithm in ["wcc", "cdlp", "bfs", "sssp", "lcc", "triangles", "kcore", "degrees"] {
        let results = stores.clone().map(|store| {
            let mut words = vec!["graph", "run", algorithm, &store, "--output", &out];
            if matches!(algorithm, "bfs" | "sssp") {
                words.extend(["--source", "700"]);
            }
            good(&words);
            let found = json(&[&words[..], &["--json", "-"]].concat());
            (fs::read_to_string(&out).unwrap(), found["top"].clone())
        });
        assert!(results[0] == results[1], "{algorithm}");
    }
    prism(&["graph", "ingest", &edges, "-o", &stores[0], "--order", "size"])
        .refused(&["orders are degree, input"]);
}

#[test]
fn what_is_wrong_is_said_and_nothing_is_half_made() {
    let folder = folder();
    let [edges, store] = ["edges.txt", "g.prism"].map(|name| at(&folder, name));
    fs::write(&edges, "1 2\n2 x\n").unwrap();
    refused(&["graph", "ingest", &edges, "-o", &store], &["edges.txt:2: ", "\"x\""]);
    refused(&["graph", "ingest", &at(&folder, "none"), "-o", &store], &["no such file"]);
    assert_eq!(names(folder.path()), ["edges.txt"]);
    fs::write(&edges, "1 2\n").unwrap();
    refused(&["graph", "ingest", &edges, "-o", &edges], &["edges.txt"]);
    assert_eq!(fs::read_to_string(&edges).unwrap(), "1 2\n");
    good(&["graph", "ingest", &edges, "-o", &store]);
    // A failure keeps the old graph, and a new one replaces it.
    fs::write(&edges, "1 2\n3\n").unwrap();
    refused(&["graph", "ingest", &edges, "-o", &store], &["edges.txt:2: "]);
    assert!(good(&["graph", "export", &store]).ends_with("1\t2\n"));
    fs::write(&edges, "3 4\n").unwrap();
    good(&["graph", "ingest", &edges, "-o", &store]);
    assert!(good(&["graph", "export", &store]).ends_with("3\t4\n"));
    refused(&["graph", "run", "bfs", &store], &["--source"]);
    refused(&["graph", "run", "bfs", &store, "--source", "7"], &["no vertex 7"]);
    refused(&["graph", "run", "pagerank", &store, "--memory", "1KiB"], &["--memory"]);
    refused(&["graph", "run", "wcc", &edges], &["edges.txt"]);
    // What the command would ignore.
    refused(&["graph", "run", "wcc", &store, "--iterations", "5"], &["wcc", "--iterations"]);
    let zero = ["graph", "run", "pagerank", &store, "--iterations", "0"];
    refused(&zero, &["--iterations 0", "at least one"]);
    let ingest = |words: &[&str], parts: &[&str]| {
        refused(&[&["graph", "ingest", &edges, "-o", &store][..], words].concat(), parts);
    };
    ingest(&["--format", "adjacency", "--weighted"], &["--weighted"]);
    ingest(&["--format", "metis", "--directed"], &["--directed"]);
    ingest(&["--columns", "a,b"], &["--columns"]);
    fs::write(
        &edges,
        "%%MatrixMarket matrix coordinate pattern general\n9999999999 9999999999 0\n",
    )
    .unwrap();
    ingest(&["--format", "matrix-market"], &["edges.txt:2: ", "4294967295"]);
    fs::write(&edges, "1 0 010 999999999999999999\n1\n").unwrap();
    ingest(&["--format", "metis"], &["edges.txt:2: "]);
    // A result replaces neither the store, nor an input, nor another result.
    fs::write(&edges, "1 2\n").unwrap();
    let [vertices, values] = ["vertices.txt", "values"].map(|name| at(&folder, name));
    fs::write(&vertices, "5\n").unwrap();
    let run = |words: &[&str]| {
        let head = ["graph", "run", "wcc", "memory", "--edges", &edges, "--vertices", &vertices];
        refused(&[&head[..], words].concat(), &["name "]);
    };
    for input in [&edges, &vertices] {
        run(&["--json", input]);
        run(&["--output", input]);
    }
    run(&["--json", &values, "--output", &values]);
    assert_eq!(fs::read_to_string(&edges).unwrap(), "1 2\n");
    assert_eq!(fs::read_to_string(&vertices).unwrap(), "5\n");
    assert!(!Path::new(&values).exists());
    let before = fs::read(&store).unwrap();
    refused(&["graph", "run", "wcc", &store, "--output", &store], &["g.prism", "replace"]);
    refused(&["graph", "info", &store, "--json", &store], &["replace"]);
    refused(&["graph", "export", &store, "-o", &store], &["replace"]);
    assert!(fs::read(&store).unwrap() == before);
    refused(&["graph", "info", &at(&folder, "none")], &["no such file"]);
}

#[test]
fn an_output_has_an_ending_of_a_format_or_none() {
    let folder = folder();
    let [edges, store] = ["edges.txt", "g.prism"].map(|name| at(&folder, name));
    fs::write(&edges, "1 2\n").unwrap();
    good(&["graph", "ingest", &edges, "-o", &store]);
    for ending in [".foo", ".tsv.gz", ".JSON"] {
        let other = at(&folder, &format!("values{ending}"));
        let parts = [".tsv", ".txt", ".csv", ".parquet", &other];
        refused(&["graph", "run", "wcc", &store, "--output", &other], &parts);
        assert!(!Path::new(&other).exists());
    }
    for name in ["values", "values.TXT", ".values"] {
        good(&["graph", "run", "wcc", &store, "--output", &at(&folder, name)]);
        assert!(fs::read_to_string(at(&folder, name)).unwrap().contains('\t'), "{name}");
    }
}

/// A changed byte of a segment is found: by the check, and by what reads it.
#[test]
fn damage_is_named() {
    let folder = folder();
    let [edges, store] = ["edges.txt", "g.prism"].map(|name| at(&folder, name));
    let mut file = fs::File::create(&edges).unwrap();
    for i in 0..3000_u64 {
        writeln!(file, "{} {}", i * 7 % 1009, i * 13 % 997).unwrap();
    }
    drop(file);
    good(&["graph", "ingest", &edges, "-o", &store, "--directed"]);
    let mut bytes = fs::read(&store).unwrap();
    // In the neighbours of the first segment of them: its kind is 2.
    let magic = b"PRGRAPH1\x02\0\0\0";
    let begin = bytes.windows(magic.len()).position(|part| part == magic).unwrap();
    bytes[begin + 2000] ^= 1;
    fs::write(&store, bytes).unwrap();
    let run = prism(&["graph", "verify", &store]);
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    // The library's advice for a page that cannot be read is to erase its block.
    let advice = |said: &str| {
        let right = said.contains("is damaged") && said.contains("ingest the graph again");
        assert!(right && !said.contains("erase"), "{said}");
    };
    advice(&run.stderr);
    let run = prism(&["graph", "run", "pagerank", &store]);
    assert_eq!(run.code, 2, "{}", run.stdout);
    assert!(run.stdout.is_empty(), "no result: {}", run.stdout);
    advice(&run.stderr);
}

/// What a damaged root names is not freed, and the check says that it is damaged.
#[test]
fn a_damaged_root_is_found_and_nothing_is_freed() {
    let folder = folder();
    let [edges, store] = ["edges.txt", "g.prism"].map(|name| at(&folder, name));
    fs::write(&edges, "1 2\n2 3\n").unwrap();
    good(&["graph", "ingest", &edges, "-o", &store]);
    let mut bytes = fs::read(&store).unwrap();
    // The segment of the root: its kind is 1.
    let magic = b"PRGRAPH1\x01\0\0\0";
    let begin = bytes.windows(magic.len()).position(|part| part == magic).unwrap();
    bytes[begin + 70] ^= 1;
    fs::write(&store, &bytes).unwrap();
    for _ in 0..2 {
        let run = prism(&["graph", "verify", &store]);
        assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
        assert!(run.stderr.contains("no root"), "{}", run.stderr);
        refused(&["graph", "info", &store], &["no root"]);
    }
    bytes[begin + 70] ^= 1;
    fs::write(&store, &bytes).unwrap();
    assert!(good(&["graph", "verify", &store]).contains("no damage"));
}

#[test]
fn tables_are_read_and_written() {
    let folder = folder();
    let names = ["edges.csv", "g.prism", "out.parquet", "h.prism", "out.csv", "out.tsv"];
    let [edges, store, parquet, again, csv, tsv] = names.map(|name| at(&folder, name));
    // The degrees of a star are a table, which is read again as edges from vertex to degree.
    let rows: String = (1..=40).map(|leaf| format!("7,{}\n", leaf * 100)).collect();
    fs::write(&edges, format!("from,to\n{rows}")).unwrap();
    good(&["graph", "ingest", &edges, "-o", &store]);
    for (output, expected) in [(&csv, "vertex,value\n7,40\n100,1\n"), (&tsv, "7\t40\n100\t1\n")] {
        good(&["graph", "run", "degrees", &store, "--output", output]);
        assert!(fs::read_to_string(output).unwrap().starts_with(expected));
    }
    good(&["graph", "run", "degrees", &store, "--output", &parquet]);
    let ingest = ["graph", "ingest", &parquet, "-o", &again, "--directed", "--weighted"];
    good(&[&ingest[..], &["--columns", "value,vertex,value"]].concat());
    let exported = good(&["graph", "export", &again]);
    assert_eq!(exported.lines().filter(|line| line.starts_with("1\t")).count(), 40, "{exported}");
    assert!(exported.contains("\n40\t7\t40\n"), "{exported}");
    // Ranks are real numbers, which cannot be vertices.
    good(&["graph", "run", "pagerank", &store, "--output", &parquet]);
    refused(&["graph", "ingest", &parquet, "-o", &again], &["out.parquet: row 1:", "whole number"]);
    refused(&ingest, &["no column \"weight\"", "vertex, value"]);
    let whole = fs::read(&parquet).unwrap();
    fs::write(&parquet, &whole[..whole.len() - 9]).unwrap();
    refused(
        &["graph", "ingest", &parquet, "-o", &again],
        &["out.parquet: the Parquet file is dam"],
    );
}

#[test]
fn values_are_counted() {
    let folder = folder();
    let [edges, store] = ["edges.txt", "g.prism"].map(|name| at(&folder, name));
    fs::write(&edges, "1 2\n2 3\n4 5\n6 6\n").unwrap();
    good(&["graph", "ingest", &edges, "-o", &store, "--directed"]);
    let run = |words: &[&str]| {
        let tail = ["--histogram", "--json", "-"];
        let json = json(&[&["graph", "run"], words, &tail].concat());
        let rows = json["histogram"]["rows"].as_array().unwrap();
        let rows: Vec<_> = rows
            .iter()
            .map(|row| (row["from"].as_f64().unwrap(), row["count"].as_u64().unwrap()))
            .collect();
        (rows, json["histogram"]["unreached"].as_u64().unwrap())
    };
    assert_eq!(run(&["wcc", &store]), (vec![(1.0, 1), (2.0, 1), (3.0, 1)], 0));
    assert_eq!(run(&["bfs", &store, "--source", "1"]), (vec![(0.0, 1), (1.0, 1), (2.0, 1)], 3));
    let text = good(&["graph", "run", "wcc", &store, "--histogram"]);
    assert!(text.contains("  groups by size:\n    1  1  ####"), "{text}");
}
