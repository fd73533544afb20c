//! `prism device import`: drives and workloads of other simulators.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use prism_present::import::import;

use crate::failure::Failure;
use crate::output::write_whole;

/// Arguments of `prism device import`.
#[derive(Clone, Debug, ClapArgs)]
#[command(
    after_help = "A drive becomes a device file, for --device; a workload of MQSim becomes a \
job file, for prism sim.
Each field names the setting that it comes from and what is approximate; settings without a
counterpart are listed at the end. docs/import.md has the tables.

Examples:
  prism device import ssdconfig.xml --output drive.toml
  prism device import simplessd/config/sample.cfg -o drive.toml
  prism device import run-blackbox.sh -o femu.toml
  prism device import workload.xml -o jobs.fio && prism sim jobs.fio --device drive.toml"
)]
pub struct Args {
    /// Configuration of MQSim (XML), SimpleSSD 2 (.cfg) or FEMU (script, options or .conf),
    /// recognised by its content; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// File for the device file or the jobs; `-` for standard output
    #[arg(short, long, value_name = "FILE.toml|JOBS.fio", default_value = "-")]
    output: PathBuf,
    /// Only this scenario of a workload, from 1
    #[arg(long, value_name = "N")]
    scenario: Option<usize>,
}

/// Converts a configuration.
///
/// # Errors
/// [`Failure`] if the file cannot be read, is damaged or unknown, describes a drive that cannot be
/// simulated, or the output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let text = prism_host::input::read_text_or_stdin(&args.file)?;
    let stdin = args.file == Path::new("-");
    let name = if stdin { "standard input".into() } else { args.file.display().to_string() };
    let stem = args.file.file_stem().filter(|_| !stdin);
    let stem = stem.map_or("imported".into(), |stem| stem.to_string_lossy().into_owned());
    let jobs = match args.output == Path::new("-") {
        true => format!("{stem}.fio"),
        false => args.output.display().to_string(),
    };
    let imported = import(&text, &stem, &jobs, args.scenario)
        .map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
    write_whole(&args.output, imported.text.as_bytes())?;
    let line = prism_report::terminal::clean(&format!("{name}: {}", imported.summary), true);
    // A failure is ignored: there is no other place to report it.
    let _ = writeln!(std::io::stderr(), "{line}");
    Ok(())
}
