//! The dependencies between the crates of the workspace. The table repeats the manifests in one
//! place, so that a new dependency is a decision and not an accident.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Source, fail, files};

/// The dependencies of each crate inside the workspace, without those of tests. The table equals
/// the manifests, so unused dependencies are removed here too.
const ARROWS: [(&str, &[&str]); 28] = [
    // Shared by tests; only tests depend on it, so no other row has it.
    ("testkit", &[]),
    ("base", &[]),
    ("nand", &["base"]),
    ("report", &["base"]),
    ("trace", &["base"]),
    ("ftl", &["base", "nand"]),
    ("engine", &["base", "nand", "ftl"]),
    ("ssd", &["base", "nand", "ftl", "engine"]),
    // The library is compared with the simulated drive, so it never depends on `ssd`.
    ("flash", &["base", "nand", "ftl", "engine"]),
    // The library's device in a file. It is apart from `host`, so that a program which embeds
    // the library does not get captures, Parquet and terminals with it.
    ("flashfile", &["base", "flash"]),
    // The levels of the library as segments, for log-structured programs.
    ("segments", &["base", "nand", "ftl", "engine", "flash"]),
    // A cache on segments, and memcached's protocol.
    ("cache", &["base", "nand", "ftl", "engine", "flash", "segments"]),
    // Sockets, files and clocks around it.
    ("cacheserver", &["base", "flash", "flashfile", "segments", "cache"]),
    // A log-structured file system on segments.
    ("fs", &["base", "flash", "segments"]),
    // Graphs on segments.
    ("graph", &["base", "flash", "segments"]),
    // The kernel's interface, files and clocks around it.
    ("fsmount", &["base", "nand", "ssd", "flash", "flashfile", "segments", "fs"]),
    // The library and its manual under one name.
    ("prism", &["base", "nand", "flash", "flashfile"]),
    // The library as C sees it, which adds nothing.
    ("capi", &["prism"]),
    ("workload", &["base", "engine", "ssd"]),
    ("replay", &["base", "nand", "ftl", "engine", "trace", "ssd", "workload"]),
    ("contract", &["base", "nand", "trace", "ftl", "ssd", "workload", "replay"]),
    (
        "experiments",
        &[
            "base", "nand", "trace", "ftl", "engine", "ssd", "flash", "segments", "cache", "fs",
            "graph", "workload", "replay", "contract",
        ],
    ),
    ("host", &["base", "trace", "workload"]),
    // Graphs in files, with threads and progress.
    ("graphstore", &["base", "nand", "ssd", "flash", "flashfile", "segments", "graph", "host"]),
    // Runs real applications and captures their requests; overwrites of blocks are those that the
    // experiments do with our own file system.
    ("lab", &["base", "workload", "host"]),
    // Results as documents and JSON, for the command line and for Python.
    (
        "present",
        &[
            "base",
            "nand",
            "report",
            "trace",
            "ssd",
            "cache",
            "workload",
            "replay",
            "contract",
            "experiments",
        ],
    ),
    (
        "cli",
        &[
            "base",
            "report",
            "trace",
            "ssd",
            "flash",
            "flashfile",
            "segments",
            "cache",
            "cacheserver",
            "fs",
            "graph",
            "graphstore",
            "fsmount",
            "workload",
            "replay",
            "contract",
            "experiments",
            "host",
            "lab",
            "present",
        ],
    ),
    // The same for Python, without what needs a terminal or root.
    (
        "python",
        &[
            "prism",
            "base",
            "cache",
            "experiments",
            "graph",
            "graphstore",
            "report",
            "trace",
            "ssd",
            "workload",
            "replay",
            "contract",
            "host",
            "present",
        ],
    ),
];

/// The crate of this workspace with the package name `package`; `None` for other packages.
fn crate_of(package: &str) -> Option<&str> {
    if package == "prism" { Some(package) } else { package.strip_prefix("prism-") }
}

/// The crates of the workspace in the dependency tables of a manifest, without those of tests.
fn dependencies(manifest: &Source) -> BTreeSet<String> {
    let manifest: toml::Table = manifest.text.parse().expect("a manifest is TOML");
    let mut tables = vec![&manifest];
    let targets = manifest.get("target").and_then(|targets| targets.as_table());
    tables.extend(targets.into_iter().flatten().filter_map(|(_, target)| target.as_table()));
    let mut crates = BTreeSet::new();
    for table in tables {
        for key in ["dependencies", "build-dependencies"] {
            let rows = table.get(key).and_then(|rows| rows.as_table());
            for (name, row) in rows.into_iter().flatten() {
                let renamed = row.get("package").and_then(|package| package.as_str());
                crates.extend(crate_of(renamed.unwrap_or(name)).map(str::to_owned));
            }
        }
    }
    crates
}

/// The differences between a manifest and the row of its crate.
fn differences(manifest: &Source, row: Option<&[&str]>) -> Vec<String> {
    let name = &manifest.name;
    let Some(row) = row else { return vec![format!("{name}: the crate has no row in ARROWS")] };
    let is: BTreeSet<String> = dependencies(manifest);
    let allowed: BTreeSet<String> = row.iter().map(|&other| other.to_owned()).collect();
    let added = is.difference(&allowed).map(|other| {
        format!("{name}: must not depend on {other}, which its row in ARROWS does not have")
    });
    let gone = allowed.difference(&is).map(|other| {
        format!("{name}: does not depend on {other}, so its row in ARROWS must not have it")
    });
    added.chain(gone).collect()
}

#[test]
fn arrows_are_those_of_the_manifests() {
    let rows: BTreeMap<_, _> = ARROWS.into_iter().collect();
    let manifests = files("crates", |name| name.ends_with("/Cargo.toml"));
    let folder = |manifest: &Source| {
        manifest.name.split('/').nth(1).expect("crates/NAME/Cargo.toml").to_owned()
    };
    let mut broken = Vec::new();
    for manifest in &manifests {
        broken.extend(differences(manifest, rows.get(folder(manifest).as_str()).copied()));
    }
    let crates: BTreeSet<String> = manifests.iter().map(folder).collect();
    let gone = rows.keys().filter(|name| !crates.contains(**name));
    broken.extend(gone.map(|name| format!("ARROWS has a row for {name}, which is no crate")));
    fail(&broken);
}

/// A row depends only on rows above it, so the table reads from the bottom of the tree up.
#[test]
fn arrows_point_down() {
    let mut below = BTreeSet::new();
    for (name, row) in ARROWS {
        for other in row {
            assert!(below.contains(other), "{name} depends on {other}, which is not above it");
        }
        assert!(below.insert(name), "{name} has two rows");
    }
}

#[test]
fn a_difference_to_the_manifest_is_found() {
    let manifest = Source {
        name: "crates/x/Cargo.toml".to_owned(),
        text: "[package]\nname = \"prism-x\"\n[dependencies]\nprism-base.workspace = true\n\
               serde = \"1\"\n[target.'cfg(unix)'.dependencies]\n\
               flash = { package = \"prism-flash\", path = \"../flash\" }\n\
               [dev-dependencies]\nprism-ssd.workspace = true\n"
            .to_owned(),
    };
    let check = |row: &[&str], expected: &[&str]| {
        let found = differences(&manifest, Some(row));
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (message, part) in found.iter().zip(expected) {
            assert!(message.contains(part), "{message}");
        }
    };
    check(&["base", "flash"], &[]);
    check(&["base"], &["must not depend on flash"]);
    check(&["base", "flash", "ssd"], &["does not depend on ssd"]);
    check(&["nand"], &["not depend on base", "not depend on flash", "does not depend on nand"]);
    assert_eq!(differences(&manifest, None).len(), 1);
}
