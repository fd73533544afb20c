//! `prism graph verify`: reads all of a graph.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use prism_base::Bytes;
use prism_graph::GraphError;
use prism_graph::verify::verify;
use prism_graphstore::device::{GraphDevice, Threads, name_of, refuse_store};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::JsonArg;
use crate::quantities;

/// Arguments of `prism graph verify`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Exit code 1 means that the graph is damaged.

Example:
  prism graph verify pokec.prism")]
pub struct Args {
    /// The store
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// Bytes of memory
    #[arg(long, value_name = "SIZE", value_parser = quantities::bytes, default_value = "1GiB")]
    memory: Bytes,
    #[command(flatten)]
    json: JsonArg,
}

#[derive(Serialize)]
struct Verified {
    store: String,
    segments: u64,
    bytes: u64,
    damage: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// [`Failure::Finding`] if the graph is damaged.
pub fn run(args: &Args) -> Result<(), Failure> {
    let name = name_of(Some(&args.store));
    let failure = |error| Failure::of_graph(&name, error);
    refuse_store(&args.store, &[args.json.path()])?;
    let device = GraphDevice::open(&args.store)?;
    let graph = device.open_graph(1, args.memory).map_err(|error| match error {
        GraphError::NoRoot(_) => Failure::Finding(format!("{name}: {error}")),
        error => failure(error),
    });
    let mut graph = graph?;
    let report = verify(&mut graph, &Threads(1)).map_err(failure)?;
    let (segments, bytes) = (report.segments, report.bytes);
    let mut text = format!("{name}: {segments} segments, {}", Bytes(bytes));
    text.push_str(if report.damage.is_empty() { "; no damage\n" } else { "\n" });
    for damage in &report.damage {
        text.push_str(&format!("  {damage}\n"));
    }
    let count = report.damage.len();
    let verified = Verified { store: name.clone(), segments, bytes, damage: report.damage };
    args.json.write(&verified, &text)?;
    match count {
        0 => Ok(()),
        count => Err(Failure::Finding(format!("{name}: {count} findings"))),
    }
}
