//! `prism graph export`: the edges of a graph as text.

use std::io::Write;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use prism_base::Bytes;
use prism_graph::GraphError;
use prism_graph::verify::{edges, isolated};
use prism_graphstore::device::{GraphDevice, name_of, refuse_store};
use prism_host::OutputFile;

use crate::failure::Failure;
use crate::quantities;

/// Arguments of `prism graph export`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "A line is source TAB target, then TAB weight if the graph has weights. An
undirected edge is written once. The first lines, which begin with #, say what the graph is.

Example:
  prism graph export pokec.prism -o pokec.txt")]
pub struct Args {
    /// The store
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// The file to write; `-` for standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Bytes of memory
    #[arg(long, value_name = "SIZE", value_parser = quantities::bytes, default_value = "1GiB")]
    memory: Bytes,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args) -> Result<(), Failure> {
    let name = name_of(Some(&args.store));
    let failure = |error| Failure::of_graph(&name, error);
    refuse_store(&args.store, &[Some(&args.output)])?;
    let device = GraphDevice::open(&args.store)?;
    let mut graph = device.open_graph(1, args.memory).map_err(failure)?;
    let mut out = OutputFile::create(&args.output)?;
    let alone = isolated(&mut graph).map_err(failure)?;
    let catalog = graph.catalog();
    let weighted = catalog.weighted;
    let kind = if catalog.directed { "directed" } else { "undirected" };
    let (vertices, count) = (catalog.vertices, catalog.edges);
    let head = format!("# {kind}: {vertices} vertices ({alone} without edges), {count} edges\n");
    out.write_all(head.as_bytes()).map_err(|error| out.failed(error))?;
    let mut lines = Vec::new();
    let written = edges(&mut graph, &mut |source, target, weight| {
        let line = match weighted {
            true => writeln!(lines, "{source}\t{target}\t{weight}"),
            false => writeln!(lines, "{source}\t{target}"),
        };
        line.map_err(GraphError::Scratch)?;
        if lines.len() < 1 << 16 {
            return Ok(());
        }
        let written = out.write_all(&lines).map_err(GraphError::Scratch);
        lines.clear();
        written
    });
    match written {
        Err(GraphError::Scratch(error)) => return Err(out.failed(error).into()),
        other => other.map_err(failure)?,
    }
    out.write_all(&lines).map_err(|error| out.failed(error))?;
    Ok(out.commit()?)
}
