//! `prism trace info`: what is in a trace, and what its format cannot tell.

use clap::Args as ClapArgs;
use prism_present::trace::{TraceObject, trace_object};
use prism_present::trace_info::document;
use prism_report::terminal;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{JsonArg, screen};
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

#[derive(Serialize)]
struct Info {
    trace: TraceObject,
}

/// Reads the trace and prints what is in it.
///
/// # Errors
/// [`Failure`] if the trace cannot be read or the output not written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let trace = args.trace.load()?;
    let info = Info { trace: trace_object(&trace.info) };
    let (width, style) = screen();
    let text = terminal::render(&document(&info.trace), width, style);
    args.json.write(&info, &text)?;
    Ok(())
}
