//! `prism graph export`: the edges of a graph as text.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use prism_base::Bytes;
use prism_host::Progress;

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
    // Lines on a terminal would be mixed with a display of progress.
    let on_stdout = args.output.as_os_str() == "-";
    let progress = if on_stdout { Progress::hidden() } else { Progress::on_stderr() };
    Ok(prism_graphstore::export(&args.store, &args.output, args.memory, &progress)?)
}
