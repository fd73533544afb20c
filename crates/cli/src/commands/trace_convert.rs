//! `prism trace convert`: writes a trace in another format, and reports what that format cannot
//! represent.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use crate::failure::Failure;
use crate::trace_args::SelectArgs;
use crate::trace_write::TargetArgs;

/// Arguments of `prism trace convert`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Examples:
  prism trace convert samples/ext4-sqlite-wal.ftrace.zst wal.parquet
  prism trace convert samples/ext4-sqlite-wal.ftrace.zst app.iolog --phase app")]
pub struct Args {
    /// Trace file(s), as for `prism trace info`
    #[arg(required = true, value_name = "IN")]
    input: Vec<PathBuf>,
    /// File to write; `-` is standard output. It appears only when it is complete
    #[arg(value_name = "OUT")]
    output: PathBuf,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    select: SelectArgs,
}

/// Reads the trace and writes it in the target format.
///
/// # Errors
/// [`Failure`] if the format is not given, the trace cannot be read, or the output cannot be
/// written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let out = args.target.open(&args.output)?;
    let mut trace = args.select.load(&args.input)?;
    out.write(&mut trace.spool, &trace.info.symbols, &trace.info.facts)?;
    Ok(())
}
