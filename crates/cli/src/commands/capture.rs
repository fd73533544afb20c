//! `prism capture`: records the requests of a running system to its disks, with file names if the
//! backend can see them.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use prism_base::{Bytes, Nanos};
use prism_host::capture::{self, Backend, Capture, CaptureSpec, Captured, Ended, Refusal, Until};
use prism_host::{HostError, OutputFile, Progress, parquet};
use prism_present::trace;
use prism_report::{Document, terminal};
use serde_json::{Value, json};

use super::{capture_mark, capture_stack, stack_worker};
use crate::failure::Failure;
use crate::output::{JsonArg, text};
use crate::quantities;

/// Arguments of `prism capture`.
#[derive(Clone, Debug, ClapArgs)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:
  prism capture /dev/nvme0n1 --for 30s -o t.parquet
  prism capture -o t.parquet -- sqlite3 test.db '.read load.sql'
  prism report t.parquet

Needs root. The capture ends when the command exits, after --for, or on Ctrl-C. The
tracing settings of the kernel are restored at the end."
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Sub>,
    #[command(flatten)]
    record: RecordArgs,
}

#[derive(Clone, Debug, Subcommand)]
enum Sub {
    /// Mark the beginning of a phase in running captures
    Mark(capture_mark::Args),
    /// Run applications on fresh file systems, and report which breaks which rule
    Stack(Box<capture_stack::Args>),
    /// The child process of `stack`
    #[command(hide = true)]
    StackWorker(stack_worker::Args),
}

/// The devices to record, the backend and the output.
#[derive(Clone, Debug, ClapArgs)]
struct RecordArgs {
    /// Disks or partitions [default: every disk]
    #[arg(value_name = "DEVICE")]
    devices: Vec<PathBuf>,
    /// Trace to write (Parquet); it appears only when it is complete
    #[arg(short, long, value_name = "FILE", required = true)]
    output: Option<PathBuf>,
    /// End after this time (750ms, 30s, 5m)
    #[arg(long = "for", value_name = "TIME", value_parser = quantities::nanos,
          conflicts_with = "command_line")]
    time: Option<Nanos>,
    /// Tracing backend [default: the first that works here]
    #[arg(long, value_enum)]
    backend: Option<BackendArg>,
    /// Kernel buffer for events; use a larger one if events are lost
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = quantities::bytes)]
    buffer: Bytes,
    #[command(flatten)]
    json: JsonArg,
    /// Command to run and capture; if it fails, the exit code is 1
    #[arg(last = true, value_name = "COMMAND")]
    command_line: Vec<OsString>,
}

/// A value of `--backend`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BackendArg {
    /// BPF programs, which also record files, write hints and streams
    Bpf,
    /// ftrace, in a separate instance
    Ftrace,
    /// The blk tracer, of which the kernel has only one
    Blk,
}

impl BackendArg {
    fn backend(self) -> Backend {
        match self {
            Self::Bpf => Backend::Bpf,
            Self::Ftrace => Backend::Ftrace,
            Self::Blk => Backend::Blk,
        }
    }
}

/// Captures until the command exits, the time is over or Ctrl-C, and writes the trace.
///
/// # Errors
/// [`Failure`] if nothing can be captured or written, or the command failed.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Some(Sub::Mark(args)) => capture_mark::run(args),
        Some(Sub::Stack(args)) => capture_stack::run(args),
        Some(Sub::StackWorker(args)) => stack_worker::run(args),
        None => record(&args.record),
    }
}

fn record(args: &RecordArgs) -> Result<(), Failure> {
    let path = args.output.as_ref().expect("the parser demands it");
    args.json.refuse_same_stdout(path)?;
    let mut out = OutputFile::create(path)?;
    let spec = CaptureSpec {
        devices: args.devices.clone(),
        backend: args.backend.map(BackendArg::backend),
        buffer: args.buffer,
    };
    let capture = capture::start(&spec)?;
    print_note(&choice(&capture));
    let until = match (args.command_line.as_slice(), args.time) {
        ([], Some(time)) => Until::Elapsed(time),
        ([], None) => Until::Interrupt,
        (command_line, _) => Until::Command(command_line),
    };
    // Tracing is undone even if the command cannot be started.
    let ended = capture::wait(&capture, until, &Progress::on_stderr());
    let mut captured = capture.stop()?;
    let ended = ended?;
    store(&mut out, &mut captured)?;
    let output = out.name().to_owned();
    out.commit()?;
    let text = text(&document(&output, &captured));
    args.json.write_with(path, &object(&output, &captured), &text)?;
    match ended {
        Ended::Command(status) if !status.success() => {
            Err(Failure::Finding(format!("the trace is written, but the command failed: {status}")))
        }
        _ => Ok(()),
    }
}

fn store(out: &mut OutputFile, captured: &mut Captured) -> Result<(), HostError> {
    let trace = &mut captured.trace;
    parquet::write(out, &mut trace.spool, &trace.info.symbols, &trace.info.facts)?;
    Ok(())
}

/// Names the backend, and the reasons why better ones do not work.
fn choice(capture: &Capture) -> String {
    let how = match capture.backend() {
        Backend::Bpf => "BPF programs, which also record files, write hints and streams",
        Backend::Ftrace => "ftrace, in a separate instance; files are not recorded",
        Backend::Blk => "the blk tracer; files are not recorded",
    };
    let mut text = format!("capturing with {how}");
    for refusal in capture.refused() {
        text.push_str(&format!(
            "\n  {} does not work here: {}",
            refusal.backend.name(),
            refusal.why
        ));
    }
    text
}

/// Prints `text` to standard error: standard output is for the result.
fn print_note(text: &str) {
    use std::io::Write;
    for line in text.lines() {
        let line = terminal::clean(line, true);
        // A failure is ignored: there is no other place to report it.
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

fn object(output: &str, captured: &Captured) -> Value {
    // Backends that were tried before, and why they do not work here.
    let refused =
        |refusal: &Refusal| json!({"backend": refusal.backend.name(), "why": refusal.why});
    let mut trace = trace::json(&captured.trace.info);
    trace["file"] = output.into();
    json!({
        "output": output,
        "backend": captured.backend.name(),
        "refused": captured.refused.iter().map(refused).collect::<Vec<_>>(),
        "lost_events": captured.lost,
        "trace": trace,
    })
}

fn document(output: &str, captured: &Captured) -> Document {
    let trace = &captured.trace.info;
    let lost = match captured.lost {
        0 => "no event lost".into(),
        1 => "1 event lost; give a larger --buffer".into(),
        count => format!("{count} events lost; give a larger --buffer"),
    };
    let (requests, flushes) = (trace.summary.requests, trace.summary.flushes);
    let subtitle = format!("{requests} requests and {flushes} flushes, {lost}");
    let mut document = Document::new(output, subtitle);
    document.sections.extend(trace::issuers(trace));
    document.sections.extend(trace::limits(trace));
    document
}
