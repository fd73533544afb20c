//! The command line of Prism.
//!
//! Each command is a function in its own file under `commands`; the other modules are shared by
//! several commands. Exit codes: 0 success, 1 a finding or a failed check, 2 usage or bad input,
//! 130 interrupted.

pub mod background;
pub mod commands;
pub mod device_args;
pub mod failure;
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

use commands::{
    bench, cache_serve, cache_simulate, cache_top, calc_cleaning, calc_lifetime, capture,
    completions, device, fs_info, fsck, graph, mkfs, mount, report,
};
use commands::{reproduce, sim, sweep};
use commands::{trace_convert, trace_generate, trace_info, trace_layout, validate};
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
    /// Run every design of a study, and write one data set
    Sweep(sweep::Args),
    /// Record the requests of a running system to its disks
    Capture(capture::Args),
    /// Inspect, convert and generate block traces
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Compare the simulation with theory and data sheets
    Validate(validate::Args),
    /// Compute lifetimes and the cost of cleaning
    #[command(subcommand)]
    Calc(CalcCommand),
    /// Repeat a published result and compare it with ours
    Reproduce(reproduce::Args),
    /// Create and inspect flash devices in files; import drives of other simulators
    #[command(subcommand)]
    Device(device::Command),
    /// Serve a cache on flash, watch or simulate one
    #[command(subcommand)]
    Cache(CacheCommand),
    /// Make a file system in a file
    Mkfs(mkfs::Args),
    /// Mount the file system of a file
    Mount(mount::Args),
    /// Check the file system of a file
    Fsck(fsck::Args),
    /// Inspect the file system of a file
    #[command(subcommand)]
    Fs(FsCommand),
    /// Make graphs on flash, and run algorithms on them
    #[command(subcommand)]
    Graph(graph::Command),
    /// Measure how fast Prism is on this machine
    Bench(bench::Args),
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

#[derive(Debug, Subcommand)]
enum CacheCommand {
    /// Run a server that speaks memcached's protocol
    Serve(cache_serve::Args),
    /// Replay requests to a cache over engines and sizes
    Simulate(cache_simulate::Args),
    /// Show what a running server does
    Top(cache_top::Args),
}

#[derive(Debug, Subcommand)]
enum FsCommand {
    /// Show space, wear and what was written, by cause
    Info(fs_info::Args),
}

#[derive(Debug, Subcommand)]
enum CalcCommand {
    /// Compute the lifetime of a drive at a write rate
    Lifetime(calc_lifetime::Args),
    /// Compute the cost of a free block by utilization of the drive
    Cleaning(calc_cleaning::Args),
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
    let serves = std::env::args().skip(1).take(2).eq(["cache", "serve"]);
    if let Some(instead) = cache_serve::instead(unknown).filter(|_| serves) {
        let tips = ContextValue::StyledStrs(vec![instead.into()]);
        error.insert(ContextKind::Suggested, tips);
    }
    let none = error.get(ContextKind::SuggestedValue).is_none();
    if let Some(value) = swapped(&error).filter(|_| none) {
        error.insert(ContextKind::SuggestedValue, ContextValue::String(value));
    }
    error
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
        Command::Sweep(args) => sweep::run(args),
        Command::Capture(args) => capture::run(args),
        Command::Trace(TraceCommand::Info(args)) => trace_info::run(args),
        Command::Trace(TraceCommand::Convert(args)) => trace_convert::run(args),
        Command::Trace(TraceCommand::Generate(args)) => trace_generate::run(args),
        Command::Trace(TraceCommand::Layout(args)) => trace_layout::run(args),
        Command::Validate(args) => validate::run(args),
        Command::Calc(CalcCommand::Lifetime(args)) => calc_lifetime::run(args),
        Command::Calc(CalcCommand::Cleaning(args)) => calc_cleaning::run(args),
        Command::Reproduce(args) => reproduce::run(args),
        Command::Device(command) => device::run(command),
        Command::Cache(CacheCommand::Serve(args)) => cache_serve::run(args),
        Command::Cache(CacheCommand::Simulate(args)) => cache_simulate::run(args),
        Command::Cache(CacheCommand::Top(args)) => cache_top::run(args),
        Command::Mkfs(args) => mkfs::run(args),
        Command::Mount(args) => mount::run(args),
        Command::Fsck(args) => fsck::run(args),
        Command::Fs(FsCommand::Info(args)) => fs_info::run(args),
        Command::Graph(command) => graph::run(command),
        Command::Bench(args) => bench::run(args),
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
