//! `prism graph verify`: reads all of a graph.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use prism_base::Bytes;
use prism_graphstore::device::refuse_store;
use prism_graphstore::{Threads, Verified};
use prism_host::Progress;

use crate::failure::Failure;
use crate::output::JsonArg;
use crate::quantities;

/// Arguments of `prism graph verify`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Exit code 1 means that the graph is damaged, 2 that the store cannot
be read at all.

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

/// Runs the command.
///
/// # Errors
/// [`Failure::Finding`] if the graph is damaged.
pub fn run(args: &Args) -> Result<(), Failure> {
    refuse_store(&args.store, &[args.json.path()])?;
    let verified = Verified::of(&args.store, args.memory, &Threads(1), &Progress::on_stderr())?;
    args.json.write(&verified, &verified.text())?;
    let store = &verified.store;
    match verified.damage.as_slice() {
        [] => Ok(()),
        [damage] => Err(Failure::Finding(format!("{store}: {damage}"))),
        more => Err(Failure::Finding(format!("{store}: {} findings", more.len()))),
    }
}
