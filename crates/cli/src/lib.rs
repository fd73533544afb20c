//! The command line of Prism.
//!
//! Each command is a function in its own file under `commands`; the other modules are shared by
//! several commands. Exit codes: 0 success, 1 a finding or a failed check, 2 usage or bad input,
//! 130 interrupted.

pub mod background;
pub mod commands;
pub mod device_args;
pub mod failure;
#[cfg(feature = "full")]
mod full;
pub mod memory;
pub mod output;
pub mod own_args;
pub mod process_env;
pub mod quantities;
pub mod replay_args;
pub mod report_files;
pub mod requests;
mod tips;
pub mod trace_args;
pub mod trace_write;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use prism_host::within_memory;

use commands::{completions, report, sim};
use commands::{trace_convert, trace_generate, trace_info, trace_layout};
pub use failure::Failure;

/// How SSDs perform under block traces and jobs: simulation, analysis, capture.
#[derive(Debug, Parser)]
#[command(name = "prism", version, max_term_width = 100)]
#[cfg_attr(not(feature = "full"), command(after_help = tips::NOT_FULL))]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Replay a trace on a simulated SSD, and check it against the unwritten contract
    Report(Box<report::Args>),
    /// Run jobs with fio options on a simulated drive
    Sim(sim::Args),
    /// Inspect, convert and generate block traces
    #[command(subcommand)]
    Trace(TraceCommand),
    /// The commands that are not in every build.
    #[cfg(feature = "full")]
    #[command(flatten)]
    Full(full::Command),
    /// Print completions of this command for a shell
    Completions(completions::CompletionArgs),
    /// Write the manual pages
    Man(completions::ManArgs),
}

#[derive(Debug, Subcommand)]
enum TraceCommand {
    /// Show the content of a trace
    Info(trace_info::Args),
    /// Convert a trace to another format
    Convert(trace_convert::Args),
    /// Generate a trace from a pattern
    Generate(trace_generate::Args),
    /// Write the layout of a file system to a file
    Layout(trace_layout::Args),
}

/// Runs the command that the process was called with.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = own_args::sorted(&Cli::command(), std::env::args_os());
    let cli = Cli::try_parse_from(arguments).unwrap_or_else(|error| tips::with_tips(error).exit());
    let run = prism_host::interrupt::install().map_err(Failure::Signals);
    match run.and_then(|()| within_memory(|| dispatch(&cli.command))?) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.is_broken_pipe() {
                // Names in it come from input and must not contain control sequences.
                let line = prism_report::terminal::clean(&failure.to_string(), true);
                // A failure is ignored: there is no other place to report it.
                let _ = writeln!(std::io::stderr(), "prism: {line}");
            }
            failure.exit_code()
        }
    }
}

fn dispatch(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Report(args) => report::run(args),
        Command::Sim(args) => sim::run(args),
        Command::Trace(TraceCommand::Info(args)) => trace_info::run(args),
        Command::Trace(TraceCommand::Convert(args)) => trace_convert::run(args),
        Command::Trace(TraceCommand::Generate(args)) => trace_generate::run(args),
        Command::Trace(TraceCommand::Layout(args)) => trace_layout::run(args),
        #[cfg(feature = "full")]
        Command::Full(command) => full::run(command),
        Command::Completions(args) => completions::completions(*args, Cli::command()),
        Command::Man(args) => completions::man(args, Cli::command()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent_and_every_help_has_an_example() {
        let mut cli = Cli::command();
        cli.build();
        cli.clone().debug_assert();
        let mut open = vec![&cli];
        while let Some(command) = open.pop() {
            if command.has_subcommands() {
                open.extend(command.get_subcommands().filter(|sub| sub.get_name() != "help"));
            } else {
                let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(after.contains("Example"), "prism {} --help", command.get_name());
            }
        }
    }
}
