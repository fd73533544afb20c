//! `prism capture`: records what a running system asks of its disks, with the names of
//! files where the kernel tells them.

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

Needs root. What the command does ends the capture; else --for or Ctrl-C. The kernel's own
tracing is left as it was found."
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Sub>,
    #[command(flatten)]
    record: RecordArgs,
}

#[derive(Clone, Debug, Subcommand)]
enum Sub {
    /// Tell running captures that a phase begins
    Mark(capture_mark::Args),
    /// Run applications on fresh file systems, and say which breaks which rule
    Stack(Box<capture_stack::Args>),
    /// The child process of `stack`
    #[command(hide = true)]
    StackWorker(stack_worker::Args),
}

/// What to record, how, and where to.
#[derive(Clone, Debug, ClapArgs)]
struct RecordArgs {
    /// Disks or partitions [default: every disk]
    #[arg(value_name = "DEVICE")]
    devices: Vec<PathBuf>,
    /// Trace to write (Parquet); it appears whole or not at all
    #[arg(short, long, value_name = "FILE", required = true)]
    output: Option<PathBuf>,
    /// End after this time (750ms, 30s, 5m)
    #[arg(long = "for", value_name = "TIME", value_parser = quantities::nanos,
          conflicts_with = "words")]
    time: Option<Nanos>,
    /// How requests are seen [default: the first that works here]
    #[arg(long, value_enum)]
    backend: Option<Way>,
    /// Memory in which the kernel keeps events until they are taken; more where events are
    /// lost
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = quantities::bytes)]
    buffer: Bytes,
    #[command(flatten)]
    json: JsonArg,
    /// Command to run and to capture; its exit code other than 0 becomes 1
    #[arg(last = true, value_name = "COMMAND")]
    words: Vec<OsString>,
}

/// A backend as `--backend` takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Way {
    /// BPF programs: files, write hints and streams too
    Bpf,
    /// ftrace in an instance of its own
    Ftrace,
    /// The blk tracer, of which there is one
    Blk,
}

impl Way {
    fn backend(self) -> Backend {
        match self {
            Self::Bpf => Backend::Bpf,
            Self::Ftrace => Backend::Ftrace,
            Self::Blk => Backend::Blk,
        }
    }
}

/// Captures until the end that was asked for, and writes the trace.
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
    args.json.refuse_beside(path)?;
    let mut out = OutputFile::create(path)?;
    let spec = CaptureSpec {
        devices: args.devices.clone(),
        backend: args.backend.map(Way::backend),
        buffer: args.buffer,
    };
    let capture = capture::start(&spec)?;
    tell(&choice(&capture));
    let until = match (args.words.as_slice(), args.time) {
        ([], Some(time)) => Until::Elapsed(time),
        ([], None) => Until::Interrupt,
        (words, _) => Until::Command(words),
    };
    // A command that cannot be started still leaves the system as it was.
    let ended = capture::wait(&capture, until, &Progress::on_stderr());
    let mut captured = capture.stop()?;
    let ended = ended?;
    store(&mut out, &mut captured)?;
    let output = out.name().to_owned();
    out.commit()?;
    let text = text(&document(&output, &captured));
    args.json.write_beside(path, &object(&output, &captured), &text)?;
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

/// How requests are seen, and why not in a better way.
fn choice(capture: &Capture) -> String {
    let how = match capture.backend() {
        Backend::Bpf => "BPF programs, which also see files, write hints and streams",
        Backend::Ftrace => "ftrace, in an instance of its own; files are not seen",
        Backend::Blk => "the blk tracer; files are not seen",
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

/// Says it on standard error: standard output is for the result.
fn tell(text: &str) {
    use std::io::Write;
    for line in text.lines() {
        let line = terminal::clean(line, true);
        // Nobody is left to tell it to when standard error is closed.
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

fn object(output: &str, captured: &Captured) -> Value {
    // Ways that were tried before, and why they do not work here.
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
