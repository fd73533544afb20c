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
pub mod trace_args;
pub mod trace_write;

use std::io::Write;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};

use prism_host::within_memory;

use commands::{completions, report, sim};
use commands::{trace_convert, trace_generate, trace_info, trace_layout};
pub use failure::Failure;

/// How SSDs perform under block traces and jobs: simulation, analysis, capture.
#[derive(Debug, Parser)]
#[command(name = "prism", version, max_term_width = 100)]
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
    let cli = Cli::try_parse_from(arguments).unwrap_or_else(|error| with_tips(error).exit());
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

/// What a user who has no trace can do.
const NO_TRACE_TIPS: [&str; 4] = [
    "for a first report, name a sample of Prism's repository: samples/ext4-sqlite-wal.ftrace.zst",
    "to record this system, run `prism capture -o run.parquet -- COMMAND` as root and name \
     run.parquet",
    "to generate a trace, run `prism trace generate --pattern mixed -o mixed.parquet`",
    "to read from a pipe, name `-`",
];

/// The same for a trace of a cache, of which there is no sample.
const NO_CACHE_TRACE_TIPS: [&str; 3] = [
    "to try it without a trace, give --etc keys=1000000,requests=10000000,zipf=0.9",
    "Twitter (github.com/twitter/cache-trace) and libCacheSim (github.com/1a1a11a/libCacheSim) \
     publish traces of caches",
    "to read from a pipe, name `-`",
];

/// What a user of a small build can do who needs another command.
const NOT_FULL_TIP: &str = "this program was built with `--no-default-features`, so it has the \
     commands for reports, jobs and traces; to build all, run `cargo build --release`";

/// `error` with what to do, if it is that no trace is named.
fn with_tips(mut error: clap::Error) -> clap::Error {
    let is_trace = |name: &String| name.starts_with("<TRACE>");
    let missing = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(names)) => names.iter().any(is_trace),
        _ => false,
    };
    if missing && error.kind() == ErrorKind::MissingRequiredArgument {
        let simulates = std::env::args().skip(1).take(2).eq(["cache", "simulate"]);
        let tips = if simulates { &NO_CACHE_TRACE_TIPS[..] } else { &NO_TRACE_TIPS };
        let tips = tips.iter().copied().map(Into::into).collect();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    let unknown = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(name)) if error.kind() == ErrorKind::UnknownArgument => name,
        _ => "",
    };
    if let Some(instead) = instead(unknown) {
        let tips = ContextValue::StyledStrs(vec![instead.into()]);
        error.insert(ContextKind::Suggested, tips);
    }
    if !cfg!(feature = "full") && error.kind() == ErrorKind::InvalidSubcommand {
        let tips = ContextValue::StyledStrs(vec![NOT_FULL_TIP.into()]);
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, tips);
    }
    let none = error.get(ContextKind::SuggestedValue).is_none();
    if let Some(value) = swapped(&error).filter(|_| none) {
        error.insert(ContextKind::SuggestedValue, ContextValue::String(value));
    }
    error
}

/// What to write instead of an option of memcached that a server of caches does not have.
#[cfg(feature = "full")]
fn instead(option: &str) -> Option<&'static str> {
    let serves = std::env::args().skip(1).take(2).eq(["cache", "serve"]);
    commands::cache_serve::instead(option).filter(|_| serves)
}

#[cfg(not(feature = "full"))]
fn instead(_: &str) -> Option<&'static str> {
    None
}

/// The possible value with the letters of the given one in another order: in short names two
/// swapped letters are too far from the name for clap.
fn swapped(error: &clap::Error) -> Option<String> {
    let (Some(ContextValue::String(given)), Some(ContextValue::Strings(values))) =
        (error.get(ContextKind::InvalidValue), error.get(ContextKind::ValidValue))
    else {
        return None;
    };
    let letters = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    values.iter().find(|value| letters(value) == letters(given)).cloned()
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

    #[test]
    fn swapped_letters_are_recognised() {
        let error = Cli::try_parse_from(["prism", "report", "x", "--format", "mrs"]).unwrap_err();
        assert_eq!(swapped(&error).as_deref(), Some("msr"));
        assert!(with_tips(error).to_string().contains("'msr'"));
        let other = Cli::try_parse_from(["prism", "report", "x", "--format", "q"]).unwrap_err();
        assert_eq!(swapped(&other), None);
    }
}
