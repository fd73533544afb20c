//! `prism capture stack-worker`: the child process of `prism capture stack` that runs the
//! application. It is hidden from the help, as it is not useful alone.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use clap::Args as ClapArgs;
use prism_base::{Bytes, Nanos};
use prism_lab::{App, Io, Pattern, Step, WorkerSpec, work};

use super::capture_stack::parse_name;
use crate::failure::Failure;
use crate::quantities;

/// Arguments of `prism capture stack-worker`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Example:
  prism capture stack-worker --app varmail --pattern mix --io buffered --step load \\
    --size 64MiB --written 64MiB --seed 1 --folder /mnt")]
pub struct Args {
    /// The application
    #[arg(long, value_parser = parse_name::<App>)]
    app: App,
    /// Its pattern
    #[arg(long, value_parser = parse_name::<Pattern>)]
    pattern: Pattern,
    /// Its use of the page cache
    #[arg(long, value_parser = parse_name::<Io>)]
    io: Io,
    /// The step to run
    #[arg(long, value_parser = parse_name::<Step>)]
    step: Step,
    /// Size of the device, which determines the amount of data
    #[arg(long, value_parser = quantities::bytes)]
    size: Bytes,
    /// About the bytes that all instances write
    #[arg(long, value_parser = quantities::bytes)]
    written: Bytes,
    /// The longest time of the application
    #[arg(long, value_parser = quantities::nanos)]
    time_max: Option<Nanos>,
    /// How many instances run at once
    #[arg(long, default_value_t = 1)]
    instances: u32,
    /// Seed of everything random
    #[arg(long)]
    seed: u64,
    /// The folder for its files
    #[arg(long)]
    folder: PathBuf,
    /// The memory cgroup to enter
    #[arg(long)]
    cgroup: Option<PathBuf>,
    /// The parent process; the worker ends with it
    #[arg(long)]
    parent: Option<u32>,
}

/// Runs the application.
///
/// # Errors
/// [`Failure`] if the application fails.
pub fn run(args: &Args) -> Result<(), Failure> {
    let spec = WorkerSpec {
        app: args.app,
        pattern: args.pattern,
        io: args.io,
        step: args.step,
        size: args.size,
        written: args.written,
        time_max: args.time_max.map(|time| Duration::from_nanos(time.0)),
        instances: args.instances,
        seed: args.seed,
        folder: args.folder.clone(),
        cgroup: args.cgroup.clone(),
        parent: args.parent,
    };
    Ok(work(&spec)?)
}

/// The command that runs a worker with `spec`.
#[must_use]
pub fn command(program: &std::path::Path, spec: &WorkerSpec) -> Command {
    let mut command = Command::new(program);
    command.args(["capture", "stack-worker"]);
    let flags = [
        ("--app", spec.app.name().to_owned()),
        ("--pattern", spec.pattern.name().to_owned()),
        ("--io", spec.io.name().to_owned()),
        ("--step", spec.step.name().to_owned()),
        ("--size", format!("{}B", spec.size.0)),
        ("--written", format!("{}B", spec.written.0)),
        ("--instances", spec.instances.to_string()),
        ("--seed", spec.seed.to_string()),
    ];
    for (flag, value) in flags {
        command.arg(flag).arg(value);
    }
    command.arg("--folder").arg(&spec.folder);
    if let Some(cgroup) = &spec.cgroup {
        command.arg("--cgroup").arg(cgroup);
    }
    if let Some(time) = spec.time_max {
        command.arg("--time-max").arg(format!("{}ns", time.as_nanos()));
    }
    if let Some(parent) = spec.parent {
        command.arg("--parent").arg(parent.to_string());
    }
    command
}
