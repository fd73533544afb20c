//! `prism graph`: what is said of results and mistakes of a user.

use std::fs;

use serde_json::json;

use crate::common::{self, folder, good, path, refused};

#[test]
fn the_largest_groups_are_listed_if_their_number_is_given() {
    let folder = folder();
    let [edges, store] = &["edges.txt", "g.prism"].map(|name| path(&folder, name));
    // Groups of four, of three, of three, and a vertex alone.
    let groups: [&[u32]; 4] = [&[11, 12, 13, 14], &[20, 21, 22], &[4, 5, 6], &[30]];
    let mut lines = String::new();
    for group in groups {
        for pair in group.iter().flat_map(|one| group.iter().map(move |other| (one, other))) {
            lines.push_str(&format!("{} {}\n", pair.0, pair.1));
        }
    }
    fs::write(edges, lines).unwrap();
    good(&["graph", "ingest", edges, "-o", store]);
    for algorithm in ["wcc", "cdlp"] {
        let run = |words: &[&str]| good(&[&["graph", "run", algorithm, store], words].concat());
        let top = |words: &[&str]| {
            let json =
                common::json(&[&["graph", "run", algorithm, store, "--json", "-"], words].concat());
            assert_eq!(json.get("histogram").is_some(), words.contains(&"--histogram"));
            json["top"].clone()
        };
        assert_eq!(top(&[]), json!([]));
        assert_eq!(top(&["--histogram"]), json!([]));
        assert_eq!(top(&["--top", "0"]), json!([]));
        // Of groups of the same size the one with the smaller label comes first.
        let two = json!([[11, "4"], [4, "3"]]);
        assert_eq!(top(&["--top", "2"]), two);
        assert_eq!(top(&["--top", "2", "--histogram"]), two);
        assert_eq!(top(&["--top", "99"]), json!([[11, "4"], [4, "3"], [20, "3"], [30, "1"]]));
        let text = run(&["--top", "2"]);
        let heading = "  largest groups, by label and number of vertices:\n";
        assert!(text.ends_with(&format!("{heading}  11\t4\n  4\t3\n")), "{text}");
        assert!(!run(&[]).contains("groups"), "{}", run(&[]));
    }
    // Of other values they are those of vertices, and ten of them without --top.
    let run = good(&["graph", "run", "degrees", store, "--top", "1"]);
    assert!(run.ends_with("\n  11\t4\n") && !run.contains("groups"), "{run}");
    assert_eq!(good(&["graph", "run", "degrees", store]).matches('\t').count(), 10);
}

#[test]
fn lengths_beyond_the_range_of_numbers_are_no_missing_paths() {
    let folder = folder();
    let edges = &path(&folder, "edges.txt");
    fs::write(edges, "1 2 1e308\n2 3 1e308\n").unwrap();
    let run = ["graph", "run", "sssp", "memory", "--edges", edges, "--source", "1"];
    refused(&[&run[..], &["--weighted"]].concat(), &["the weights are too large", "divide"]);
    good(&run);
}

#[test]
fn mistakes_are_named_with_what_to_do() {
    let folder = folder();
    let at = |name: &str| path(&folder, name);
    let [edges, store, empty] = ["edges.txt", "g.prism", "empty.prism"].map(at);
    fs::write(&edges, "1 2\n2 3\n").unwrap();
    fs::write(&empty, "").unwrap();
    good(&["graph", "ingest", &edges, "-o", &store]);
    let place = folder.path().to_str().unwrap();
    for command in [&["info"][..], &["verify"], &["export"], &["run", "wcc"]] {
        let with = |store| [&["graph"], command, &[store]].concat();
        refused(&with(place), &[place, "folder", "name"]);
        refused(&with(&empty), &["empty.prism", "no store of a graph", "prism graph ingest"]);
        refused(&with(&edges), &["edges.txt", "no store of a graph", "prism graph ingest"]);
    }
    let ingest = |store| ["graph", "ingest", &edges, "-o", store];
    refused(&ingest(place), &[place, "folder", "name"]);
    for file in [&empty, &edges] {
        let other = at("other.txt");
        fs::write(&other, "1 2\n").unwrap();
        let parts = [file, "no store of a graph", "name another one"];
        refused(&["graph", "ingest", &other, "-o", file], &parts);
    }
    refused(&["graph", "ingest", place, "-o", &store], &[place, "folder", "name"]);
    let order = format!("name one before the store: prism graph run wcc {store}");
    refused(&["graph", "run", &store, "wcc"], &["algorithms are pagerank", &order]);
    refused(&["graph", "run", "pagernk", &store], &["'pagernk'", "algorithms are pagerank"]);
    let bfs = ["graph", "run", "bfs", &store];
    refused(&bfs, &["--source"]);
    refused(&[&bfs[..], &["--source", "9"]].concat(), &["no vertex 9", "occurs in its input"]);
    for source in ["x", "-1", "1.5"] {
        let said = format!("'{source}'");
        refused(&[&bfs[..], &["--source", source]].concat(), &[&said, "--source", "are whole"]);
    }
    let rounds = ["--source", "1", "--iterations", "5"];
    refused(&[&bfs[..], &rounds].concat(), &["bfs has no use for --iterations", "leave it away"]);
}
