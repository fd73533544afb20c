//! `prism trace info`: the content of a trace, and the limits of its format.

use clap::Args as ClapArgs;
use prism_present::trace;
use serde_json::json;

use crate::failure::Failure;
use crate::output::JsonArg;
use crate::trace_args::TraceArgs;

/// Arguments of `prism trace info`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Examples:
  prism trace info samples/ext4-sqlite-wal.ftrace.zst --phase app
  blkparse -i sda | prism trace info - --json -")]
pub struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    json: JsonArg,
}

/// Reads the trace and prints its content.
///
/// # Errors
/// [`Failure`] if the trace cannot be read or the output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let trace = args.trace.load()?.info;
    args.json.show(&json!({"trace": trace::json(&trace)}), &trace::document(&trace))
}
