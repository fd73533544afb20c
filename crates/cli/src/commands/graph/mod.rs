//! `prism graph`: graphs on flash.

mod export;
mod info;
pub mod ingest;
mod run;
mod verify;

use clap::Subcommand;

use crate::failure::Failure;

/// The commands of `prism graph`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a graph of a file of edges
    Ingest(Box<ingest::Args>),
    /// Run an algorithm on a graph
    Run(Box<run::Args>),
    /// Show what a graph is, and its space and wear
    Info(info::Args),
    /// Read all of a graph and check it
    Verify(verify::Args),
    /// Write the edges of a graph as text
    Export(export::Args),
}

/// Runs a command.
///
/// # Errors
/// [`Failure`].
pub fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Ingest(args) => ingest::run(args),
        Command::Run(args) => run::run(args),
        Command::Info(args) => info::run(args),
        Command::Verify(args) => verify::run(args),
        Command::Export(args) => export::run(args),
    }
}
