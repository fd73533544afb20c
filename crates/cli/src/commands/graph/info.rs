//! `prism graph info`: what a graph is.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use prism_graphstore::Info;
use prism_graphstore::device::refuse_store;

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

/// Runs the command.
///
/// # Errors
/// [`Failure`] if there is no graph.
pub fn run(args: &Args) -> Result<(), Failure> {
    refuse_store(&args.store, &[args.json.path()])?;
    let info = Info::of(&args.store)?;
    Ok(args.json.write(&info, &info.text())?)
}
