//! Graphs in memory and on simulated drives.

use std::fs;
use std::path::Path;

use prism_base::Bytes;
use prism_graph::Serial;
use prism_graph::algorithms::{Algorithm, Value};
use prism_graphstore::run::{InMemory, Run, Show};
use prism_graphstore::{IngestPlan, RunPlan};
use prism_host::Progress;
use prism_ssd::DriveSpec;

use crate::resume::plan;

/// An algorithm of which only these options are given.
fn algorithm_with(
    algorithm: Algorithm,
    iterations: Option<u32>,
    checkpoint: Option<u32>,
) -> RunPlan {
    RunPlan {
        algorithm,
        iterations,
        source: None,
        damping: None,
        tolerance: None,
        graphchi_compat: false,
        asynchronous: false,
        single_precision: false,
        checkpoint,
        restart: false,
    }
}

/// Runs an algorithm on the graph of a file; its figures and all values.
fn run(algorithm: Algorithm, edges: &Path, drive: Option<&DriveSpec>) -> (Run, Vec<Value>) {
    let ranks = algorithm == Algorithm::Pagerank;
    let run = algorithm_with(algorithm, ranks.then_some(3), ranks.then_some(1));
    let show = Show { output: None, top: Some(3), histogram: false, memory: Bytes(64 << 20) };
    let edges = InMemory { path: edges, plan: &plan(), drive };
    let done = run.run_in_memory(&edges, &show, &Serial, &Progress::hidden(), |graph, column| {
        let vertices = graph.catalog().vertices;
        Ok((0..vertices).map(|vertex| column.value(vertex, &u64::from)).collect())
    });
    done.unwrap_or_else(|error| panic!("{error}"))
}

/// Whatever the units of a drive and its mapping are, it holds the graph.
#[test]
fn every_preset_holds_a_graph() {
    let folder = tempfile::tempdir().unwrap();
    let edges = folder.path().join("edges.txt");
    let lines = (0..30_000).map(|at| format!("{} {}\n", at * 31 % 4099, at % 4001));
    fs::write(&edges, lines.collect::<String>()).unwrap();
    for algorithm in [Algorithm::Pagerank, Algorithm::Triangles] {
        let (memory, values) = run(algorithm, &edges, None);
        assert_eq!(memory.device.unwrap().kind, "memory");
        for name in DriveSpec::preset_names() {
            let spec = DriveSpec::preset(name).unwrap();
            let (done, on_drive) = run(algorithm, &edges, Some(&spec));
            assert!(on_drive == values, "{name}");
            let device = done.device.unwrap();
            assert_eq!(device.kind, name);
            assert!(device.ingest.written_bytes > 100_000, "{name}: {device:?}");
            assert!(device.run.read_bytes > 30_000, "{name}: {device:?}");
            assert!(device.run.virtual_seconds.unwrap() > 0.0, "{name}: {device:?}");
            let saved = device.run.written_bytes;
            assert_eq!(saved >= 3 * 8 * 4099, algorithm == Algorithm::Pagerank, "{name}");
        }
    }
}

/// Compressed edges that are cut off, wherever, are refused, and not taken for fewer edges.
#[test]
fn compressed_edges_that_are_cut_off_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text: String =
        (0..60_000_u64).map(|i| format!("{} {}\n", i * 31 % 997, i * i % 991)).collect();
    let whole = zstd::encode_all(text.as_bytes(), 1).unwrap();
    let path = folder.path().join("edges.txt.zst");
    for (len, right) in [(whole.len(), true), (whole.len() - 1, false), (whole.len() / 2, false)] {
        std::fs::write(&path, &whole[..len]).unwrap();
        let store = folder.path().join("store.prism");
        let made = plan().make(&path, &store, &Serial, &Progress::hidden());
        assert_eq!(made.is_ok(), right, "{len} of {} bytes", whole.len());
    }
}

/// Segments of several intervals have many lengths, and a simulated drive gives back buffers that
/// are as long as what was read.
#[test]
fn a_graph_in_intervals_is_streamed_from_a_drive() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("edges.txt");
    let text: String = (0..200_000_u64).map(|i| format!("{i} {}\n", i * 7919 % 200_000)).collect();
    std::fs::write(&path, text).unwrap();
    let ingest = IngestPlan { run_memory: Some(Bytes(16 << 20)), ..plan() };
    let spec = DriveSpec::preset("dc-tlc").unwrap();
    let edges = InMemory { path: &path, plan: &ingest, drive: Some(&spec) };
    let run = algorithm_with(Algorithm::Cdlp, Some(2), None);
    for memory in [6_u64, 8, 12, 24] {
        let show =
            Show { output: None, top: Some(0), histogram: false, memory: Bytes(memory << 20) };
        let done = run.run_in_memory(&edges, &show, &Serial, &Progress::hidden(), |_, _| Ok(()));
        done.unwrap_or_else(|error| panic!("{memory} MiB: {error}"));
    }
}
