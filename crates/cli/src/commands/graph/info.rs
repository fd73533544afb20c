//! `prism graph info`: what a graph is.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use prism_base::Bytes;
use prism_graph::segment::Kind;
use prism_graph::verify::bytes_of;
use prism_graphstore::device::{GraphDevice, name_of, refuse_store};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::JsonArg;

/// Arguments of `prism graph info`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Example:
  prism graph info pokec.prism --json -")]
pub struct Args {
    /// The store
    #[arg(value_name = "STORE")]
    store: PathBuf,
    #[command(flatten)]
    json: JsonArg,
}

#[derive(Serialize)]
struct Info {
    store: String,
    directed: bool,
    weighted: bool,
    vertices: u32,
    edges: u64,
    self_loops: u64,
    degree_max: u32,
    intervals: u32,
    segments: usize,
    segment_bytes: u32,
    neighbour_bytes: u64,
    bytes_per_edge: f64,
    degree_bytes: u64,
    id_bytes: u64,
    erases_mean: f64,
    erases_max: u32,
}

impl Info {
    fn text(&self) -> String {
        let bytes = |bytes: u64| Bytes(bytes).to_string();
        let kind = match (self.directed, self.weighted) {
            (false, false) => "undirected",
            (false, true) => "undirected, weighted",
            (true, false) => "directed",
            (true, true) => "directed, weighted",
        };
        let edges = format!("{} ({} self-loops)", self.edges, self.self_loops);
        let neighbours =
            format!("{}, {:.2} bytes an entry", bytes(self.neighbour_bytes), self.bytes_per_edge);
        let segments = format!("{} of {}", self.segments, bytes(self.segment_bytes.into()));
        let rows = [
            ("Kind", kind.to_owned()),
            ("Vertices", self.vertices.to_string()),
            ("Edges", edges),
            ("Largest degree", self.degree_max.to_string()),
            ("Intervals", self.intervals.to_string()),
            ("Segments", segments),
            ("Neighbours", neighbours),
            ("Degrees", bytes(self.degree_bytes)),
            ("Numbers of vertices", bytes(self.id_bytes)),
            (
                "Erases of a block",
                format!("mean {:.2}, most {}", self.erases_mean, self.erases_max),
            ),
        ];
        let mut text = format!("{}\n", self.store);
        for (name, value) in rows {
            writeln!(text, "  {name:20} {value}").expect("memory takes any text");
        }
        text
    }
}

/// Runs the command.
///
/// # Errors
/// [`Failure`] if there is no graph.
pub fn run(args: &Args) -> Result<(), Failure> {
    let name = name_of(Some(&args.store));
    refuse_store(&args.store, &[args.json.path()])?;
    let device = GraphDevice::open(&args.store)?;
    let graph = device.open_graph(1, Bytes(0)).map_err(|error| Failure::of_graph(&name, error))?;
    let catalog = graph.catalog();
    let neighbour_bytes = bytes_of(catalog, Kind::In) + bytes_of(catalog, Kind::Out);
    let entries = catalog.arcs * if catalog.directed { 2 } else { 1 };
    let erases = device.flash.erase_counts();
    let sum: f64 = erases.iter().map(|&erases| f64::from(erases)).sum();
    let info = Info {
        store: name,
        directed: catalog.directed,
        weighted: catalog.weighted,
        vertices: catalog.vertices,
        edges: catalog.edges,
        self_loops: catalog.loops,
        degree_max: catalog.degree_max,
        intervals: catalog.intervals,
        segments: catalog.entries.len(),
        segment_bytes: graph.shape().segment_bytes,
        neighbour_bytes,
        bytes_per_edge: neighbour_bytes as f64 / entries.max(1) as f64,
        degree_bytes: bytes_of(catalog, Kind::Degrees),
        id_bytes: bytes_of(catalog, Kind::Ids),
        erases_mean: sum / erases.len().max(1) as f64,
        erases_max: erases.iter().copied().max().unwrap_or(0),
    };
    Ok(args.json.write(&info, &info.text())?)
}
