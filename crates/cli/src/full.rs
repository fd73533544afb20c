//! The commands that only the whole program has: those that need crates which reports, jobs and
//! traces do not.

use clap::Subcommand;

use crate::commands::{
    bench, cache_serve, cache_simulate, cache_top, calc_cleaning, calc_lifetime, capture, device,
    fs_info, fsck, graph, mkfs, mount, reproduce, sweep, validate,
};
use crate::failure::Failure;

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run every design of a study, and write one data set
    Sweep(sweep::Args),
    /// Record the requests of a running system to its disks
    Capture(capture::Args),
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
}

#[derive(Debug, Subcommand)]
pub enum CacheCommand {
    /// Run a server that speaks memcached's protocol
    Serve(cache_serve::Args),
    /// Replay requests to a cache over engines and sizes
    Simulate(cache_simulate::Args),
    /// Show what a running server does
    Top(cache_top::Args),
}

#[derive(Debug, Subcommand)]
pub enum FsCommand {
    /// Show space, wear and what was written, by cause
    Info(fs_info::Args),
}

#[derive(Debug, Subcommand)]
pub enum CalcCommand {
    /// Compute the lifetime of a drive at a write rate
    Lifetime(calc_lifetime::Args),
    /// Compute the cost of a free block by utilization of the drive
    Cleaning(calc_cleaning::Args),
}

/// Runs a command.
///
/// # Errors
/// That of the command.
pub fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Sweep(args) => sweep::run(args),
        Command::Capture(args) => capture::run(args),
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
    }
}
