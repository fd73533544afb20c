//! Graphs in memory and on simulated drives.

use std::fs;
use std::path::Path;

use prism_base::Bytes;
use prism_graph::Serial;
use prism_graph::algorithms::{Algorithm, Value};
use prism_graphstore::RunPlan;
use prism_graphstore::run::{InMemory, Run, Show};
use prism_host::Progress;
use prism_ssd::DriveSpec;

use crate::resume::plan;

/// Runs an algorithm on the graph of a file; its figures and all values.
fn run(algorithm: Algorithm, edges: &Path, drive: Option<&DriveSpec>) -> (Run, Vec<Value>) {
    let ranks = algorithm == Algorithm::Pagerank;
    let run = RunPlan {
        algorithm,
        iterations: ranks.then_some(3),
        source: None,
        damping: None,
        tolerance: None,
        graphchi_compat: false,
        asynchronous: false,
        single_precision: false,
        checkpoint: ranks.then_some(1),
    };
    let show = Show { output: None, top: 3, histogram: false, memory: Bytes(64 << 20) };
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
