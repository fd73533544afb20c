//! `prism graph ingest`: inputs that are cut off or have other columns than the options say.

use std::fs;

use crate::common::{self, folder, good, gzip, path, prism, quiet, refused_in_a_line as refused};

/// Lines, each of 8 bytes.
fn lines(count: u32) -> String {
    (0..count).map(|at| format!("{:03} {:03}\n", at * 7 % 991, at * at % 997)).collect()
}

#[test]
fn a_truncated_input_says_after_how_many_lines() {
    let folder = folder();
    let at = |name: &str| path(&folder, name);
    let store = at("g.prism");
    // Parts of a compressed file that can be unpacked, so that the number of whole lines is known.
    let (first, second) = (lines(1000), lines(50_000));
    let zstd = |text: &str| zstd::encode_all(text.as_bytes(), 3).unwrap();
    let packs = [
        ("edges.txt.gz", gzip(first.as_bytes()), gzip(second.as_bytes())),
        ("edges.txt.zst", zstd(&first), zstd(&second)),
    ];
    for (name, head, rest) in packs {
        let edges = at(name);
        let cut = [&head[..], &rest[..12]].concat();
        fs::write(&edges, &cut).unwrap();
        let byte = format!("ends at byte {},", cut.len());
        let parts = [name, "truncated", &byte, "after 1000 whole lines"];
        refused(&["graph", "ingest", &edges, "-o", &store], &parts);
        // The same of a file of vertices.
        let plain = at("plain.txt");
        fs::write(&plain, &first).unwrap();
        let ingest = ["graph", "ingest", &plain, "-o", &store, "--vertices", &edges];
        refused(&ingest, &parts);
    }
    let pairs = at("edges.u32.gz");
    let (head, rest) = (gzip(&[1; 80]), gzip(&[2; 800]));
    fs::write(&pairs, [&head[..], &rest[..12]].concat()).unwrap();
    refused(&["graph", "ingest", &pairs, "-o", &store], &["after 10 whole lines or records"]);
    let edges = at("edges.txt.gz");
    let head = gzip(first.as_bytes());
    fs::write(&edges, [&head[..], b"\n"].concat()).unwrap();
    let byte = format!("ends at byte {},", head.len());
    let parts = [&byte, "after 1000 whole lines", "bytes follow that are no gzip data", "head -c"];
    refused(&["graph", "ingest", &edges, "-o", &store], &parts);
}

#[test]
fn columns_are_those_that_are_meant() {
    let folder = folder();
    let at = |name: &str| path(&folder, name);
    let [edges, store] = ["edges.csv", "g.prism"].map(at);
    let ingest = ["graph", "ingest", &edges, "-o", &store];
    let with = |more: &[&'static str]| [&ingest[..], more].concat();
    fs::write(&edges, "from,to,Weight\n1,2,0.5\n").unwrap();
    for (columns, part) in [
        ("from,from", "both ends"),
        ("from,FROM", "both ends"),
        ("from", "two or three names"),
        ("from,to,Weight,more", "two or three names"),
    ] {
        common::refused(&with(&["--columns", columns]), &[part, "--columns"]);
    }
    // Weights that are not read are no mistake, but perhaps one.
    let run = prism(&ingest);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let hint = format!("{edges}: the column \"Weight\" is not read; give --weighted");
    assert!(run.stderr.starts_with(&hint), "{}", run.stderr);
    quiet(&with(&["--weighted"]));
    quiet(&with(&["--weighted", "--json", "-"]));
    // The same columns as a Parquet file, whose values are real numbers.
    let table = at("ranks.parquet");
    good(&["graph", "run", "pagerank", &store, "--output", &table]);
    let ingest = ["graph", "ingest", &table, "-o", &store];
    let columns = ["--columns", "vertex,value"];
    let parts = ["ranks.parquet: row 1: ", "FLOAT or DOUBLE", "INT64"];
    refused(&[&ingest[..], &columns].concat(), &parts);
    let weighted = ["--weighted", "--columns", "vertex,vertex2"];
    refused(&[&ingest[..], &weighted].concat(), &["no column \"vertex2\"", "--columns"]);
    refused(&[&ingest[..], &["--weighted"]].concat(), &["\"weight\"", "leave --weighted away"]);
    fs::write(&edges, "from,to\n1,2\n").unwrap();
    refused(&with(&["--weighted"]), &["edges.csv:1: ", "\"weight\"", "leave --weighted away"]);
    quiet(&with(&[]));
}
