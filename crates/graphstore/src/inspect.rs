//! What a store has, whether it is whole, and its edges as text.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use prism_base::Bytes;
use prism_graph::input::Format;
use prism_graph::segment::Kind;
use prism_graph::verify::{bytes_of, edges, isolated, verify};
use prism_graph::{GraphError, Pool, Results};
use prism_host::{OutputFile, Progress};
use serde::Serialize;

use crate::device::{GraphDevice, name_of, refuse_store};
use crate::error::StoreError;
use crate::temporary::Spaces;

/// What a graph is, and its space and wear.
#[derive(Clone, Debug, Serialize)]
pub struct Info {
    /// The store.
    pub store: String,
    /// Whether edges have a direction.
    pub directed: bool,
    /// Whether edges have weights.
    pub weighted: bool,
    /// Vertices.
    pub vertices: u32,
    /// Edges.
    pub edges: u64,
    /// Edges from a vertex to itself.
    pub self_loops: u64,
    /// The largest degree.
    pub degree_max: u32,
    /// Intervals of vertices.
    pub intervals: u32,
    /// The order of vertices: `degree` or `input`.
    pub order: &'static str,
    /// Segments.
    pub segments: usize,
    /// Bytes of a segment.
    pub segment_bytes: u32,
    /// Bytes of the lists of neighbours.
    pub neighbour_bytes: u64,
    /// Bytes of an entry of these lists.
    pub bytes_per_edge: f64,
    /// Bytes of degrees.
    pub degree_bytes: u64,
    /// Bytes of the numbers that vertices have in the input.
    pub id_bytes: u64,
    /// Mean erases of a block.
    pub erases_mean: f64,
    /// Erases of the block that was erased most often.
    pub erases_max: u32,
}

impl Info {
    /// Describes the graph in `store`.
    ///
    /// # Errors
    /// [`StoreError`] if there is none.
    pub fn of(store: &Path) -> Result<Self, StoreError> {
        let name = name_of(Some(store));
        let device = GraphDevice::open(store)?;
        let graph = device.open_graph(1, Bytes(0));
        let graph = graph.map_err(|error| StoreError::input(&name, error))?;
        let catalog = graph.catalog();
        let neighbour_bytes = bytes_of(catalog, Kind::In) + bytes_of(catalog, Kind::Out);
        let entries = catalog.arcs * if catalog.directed { 2 } else { 1 };
        let erases = device.flash.erase_counts();
        let sum: f64 = erases.iter().map(|&erases| f64::from(erases)).sum();
        Ok(Self {
            store: name,
            directed: catalog.directed,
            weighted: catalog.weighted,
            vertices: catalog.vertices,
            edges: catalog.edges,
            self_loops: catalog.loops,
            degree_max: catalog.degree_max,
            intervals: catalog.intervals,
            order: catalog.order().name(),
            segments: catalog.entries.len(),
            segment_bytes: graph.shape().segment_bytes,
            neighbour_bytes,
            bytes_per_edge: neighbour_bytes as f64 / entries.max(1) as f64,
            degree_bytes: bytes_of(catalog, Kind::Degrees),
            id_bytes: bytes_of(catalog, Kind::Ids),
            erases_mean: sum / erases.len().max(1) as f64,
            erases_max: erases.iter().copied().max().unwrap_or(0),
        })
    }

    /// A line for each property.
    #[must_use]
    pub fn text(&self) -> String {
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
        let erases = format!("mean {:.2}, most {}", self.erases_mean, self.erases_max);
        let rows = [
            ("Kind", kind.to_owned()),
            ("Vertices", self.vertices.to_string()),
            ("Edges", edges),
            ("Largest degree", self.degree_max.to_string()),
            ("Intervals", self.intervals.to_string()),
            ("Order of vertices", self.order.to_owned()),
            ("Segments", segments),
            ("Neighbours", neighbours),
            ("Degrees", bytes(self.degree_bytes)),
            ("Numbers of vertices", bytes(self.id_bytes)),
            ("Erases of a block", erases),
        ];
        let mut text = format!("{}\n", self.store);
        for (name, value) in rows {
            writeln!(text, "  {name:20} {value}").expect("memory takes any text");
        }
        text
    }
}

/// What a reading of all of a graph found.
#[derive(Clone, Debug, Serialize)]
pub struct Verified {
    /// The store.
    pub store: String,
    /// Segments that were read.
    pub segments: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// A line for each damage; none if the graph is whole.
    pub damage: Vec<String>,
}

impl Verified {
    /// Reads all of the graph in `store`, and the result that is saved with it, and checks them. A
    /// root or catalog of the graph that cannot be used is a damage.
    ///
    /// # Errors
    /// [`StoreError`] if it has no graph, or cannot be read for another reason than damage.
    pub fn of(
        store: &Path,
        memory: Bytes,
        pool: &dyn Pool,
        progress: &Progress,
    ) -> Result<Self, StoreError> {
        let name = name_of(Some(store));
        let failure = |error| StoreError::input(&name, error);
        let device = GraphDevice::open(store)?;
        let mut graph = match device.open_graph(1, memory) {
            Err(error @ (GraphError::NoRoot(_) | GraphError::Damaged { .. })) => {
                let damage = vec![error.to_string()];
                return Ok(Self { store: name, segments: 0, bytes: 0, damage });
            }
            other => other.map_err(failure)?,
        };
        let catalog = graph.catalog();
        let edges = catalog.arcs * if catalog.directed { 2 } else { 1 };
        progress.start_count("verifying:", "edges", Some(edges));
        let shown_by = progress.clone();
        graph.watch(move |edges| shown_by.reached(edges));
        let report = verify(&mut graph, pool);
        progress.clear();
        let report = report.map_err(failure)?;
        let (segments, bytes, mut damage) = (report.segments, report.bytes, report.damage);
        let (space, catalog) = device.results().map_err(failure)?;
        damage.extend(Results::open(space, catalog).verify());
        Ok(Self { store: name, segments, bytes, damage })
    }

    /// What was read, and a line for each damage.
    #[must_use]
    pub fn text(&self) -> String {
        let read = format!("{}: {} segments, {}", self.store, self.segments, Bytes(self.bytes));
        if self.damage.is_empty() {
            return format!("{read}; no damage\n");
        }
        let lines = self.damage.iter().map(|damage| format!("  {damage}\n"));
        format!("{read}\n{}", lines.collect::<String>())
    }
}

/// Refuses names of files that are not read as lists of edges.
fn check_text(output: &Path) -> Result<(), StoreError> {
    let name = name_of(Some(output));
    let others = [".gz", ".zst", ".parquet"];
    let is_other = others.iter().any(|ending| name.ends_with(ending));
    if is_other || Format::recognise(&name, b"1\t2\n") != Format::Edges {
        let what = "edges are written as text, which is not read from a file of this name; name it \
                    .tsv or .txt";
        return Err(StoreError::Refused(format!("{name}: {what}")));
    }
    Ok(())
}

/// Writes the edges of the graph in `store` to a file as text, in the order of its vertices: lines
/// that begin with # and say what the graph is, then source TAB target, and TAB weight if the graph
/// has weights. If `progress` panics, nothing is left of the file.
///
/// # Errors
/// [`StoreError`]; then there is no file.
pub fn export(
    store: &Path,
    output: &Path,
    memory: Bytes,
    progress: &Progress,
) -> Result<(), StoreError> {
    let name = name_of(Some(store));
    let failure = |error| StoreError::input(&name, error);
    refuse_store(store, &[Some(output)])?;
    check_text(output)?;
    let device = GraphDevice::open(store)?;
    let mut graph = device.open_graph(1, memory).map_err(failure)?;
    let mut out = OutputFile::create(output)?;
    let alone = isolated(&mut graph).map_err(failure)?;
    let catalog = graph.catalog();
    let weighted = catalog.weighted;
    let kind = if catalog.directed { "directed" } else { "undirected" };
    let (vertices, count) = (catalog.vertices, catalog.edges);
    let head = format!("# {kind}: {vertices} vertices ({alone} without edges), {count} edges\n");
    out.write_all(head.as_bytes()).map_err(|error| out.failed(error))?;
    progress.start_count("writing:", "edges", Some(count));
    let (mut lines, mut done) = (Vec::new(), 0);
    let written = edges(&mut graph, &mut |source, target, weight| {
        let line = match weighted {
            true => writeln!(lines, "{source}\t{target}\t{weight}"),
            false => writeln!(lines, "{source}\t{target}"),
        };
        line.map_err(GraphError::Scratch)?;
        done += 1;
        if lines.len() < 1 << 16 {
            return Ok(());
        }
        progress.reached(done);
        let written = out.write_all(&lines).map_err(GraphError::Scratch);
        lines.clear();
        written
    });
    match written {
        Err(GraphError::Scratch(error)) => return Err(out.failed(error).into()),
        other => other.map_err(failure)?,
    }
    out.write_all(&lines).map_err(|error| out.failed(error))?;
    progress.clear();
    Ok(out.commit()?)
}
