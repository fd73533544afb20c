//! `prism report`: a trace in, what a drive makes of it out.

use std::cell::RefCell;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use prism_base::Bytes;
use prism_host::parquet::RequestsWriter;
use prism_host::{HostError, LoadedTrace, Progress};
use prism_replay::{Finished, LaidOut, Layout, Pace, Passes, ReplayError};
use prism_ssd::Drive;

use crate::device_args::DeviceArgs;
use crate::drive_report::{Charts, Facts, ReportObject, Wear, document};
use crate::failure::Failure;
use crate::output::{JsonArg, json};
use crate::replay_args::ReplayArgs;
use crate::report_files::{Paths, ReportFiles};
use crate::trace_args::TraceArgs;

/// Arguments of `prism report`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Examples:
  prism report samples/ext4-sqlite-wal.ftrace.zst
  prism report samples/f2fs-rocksdb.ftrace.zst --phase app --html report.html
  prism report samples/formats/msr.csv --device consumer-nvme --requests r.parquet
  blkparse -i sda | prism report - --capacity 64GiB --json -")]
pub struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    replay: ReplayArgs,
    /// Write the report, with charts, as one self-contained HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write every request of the measured passes, with its times and costs, as Parquet
    #[arg(long, value_name = "FILE.parquet")]
    requests: Option<PathBuf>,
    #[command(flatten)]
    json: JsonArg,
}

/// Reads the trace, replays it on a drive, and reports.
///
/// # Errors
/// [`Failure`] if the trace or the device cannot be read, the trace does not fit the
/// drive, or an output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let mut outputs = ReportFiles::open(Paths {
        html: args.html.as_deref(),
        json: args.json.path(),
        requests: args.requests.as_deref(),
        text: None,
    })?;
    let mut trace = args.trace.load()?;
    check_source(args, &trace)?;
    let layout = Layout::of(&mut trace.spool).map_err(HostError::from)?;
    let scaled = args.device.scaled(layout.span())?;
    let capacity = scaled.device.capacity();
    if layout.span() > capacity.0 {
        return Err(Failure::Usage(format!(
            "{}: the trace reaches up to byte {}, beyond the drive's {} bytes ({capacity}); give \
             --capacity {}B or more",
            trace.name,
            layout.span(),
            capacity.0,
            Bytes(layout.span()).div_ceil(Bytes(1 << 20)) << 20,
        )));
    }
    let progress = Progress::on_stderr();
    let (mut drive, prepared) =
        args.device.prepared(&scaled.device, args.replay.seed, &progress)?;
    let writer = match outputs.requests.take() {
        Some(file) => Some(RequestsWriter::create(file, trace.symbols.clone())?),
        None => None,
    };
    let (outcome, charts, writer) =
        replay(args, &mut trace, &layout, &mut drive, writer, progress)?;
    let facts = Facts {
        trace: &trace,
        layout: &layout,
        scaled: &scaled,
        state: &args.device.state,
        prepared: &prepared,
        options: args.replay.options(),
        seed: args.replay.seed,
        outcome: &outcome,
        buffered: Bytes(u64::from(drive.buffered_units()) * scaled.device.ftl.mapping_unit.0),
        wear: Wear::of(drive.engine().nand().erase_counts()),
    };
    if let Some(writer) = writer {
        outputs.requests = Some(writer.finish()?);
    }
    let document = document::document(&facts);
    outputs.write(&document, charts.sections(), &json(&ReportObject::new(&facts)), None)
}

/// What the arguments ask for must be in the trace.
fn check_source(args: &Args, trace: &LoadedTrace) -> Result<(), Failure> {
    let wrong = |what: &str| Err(Failure::Usage(format!("{}: {what}", trace.name)));
    if trace.summary.requests + trace.summary.flushes == 0 {
        return wrong("no request is left to replay; choose another --phase or --source");
    }
    if matches!(args.replay.pace, Pace::Dependent { .. }) && !trace.facts.capabilities.completion {
        return wrong("--pace dependent needs completions, which this trace has not; use open");
    }
    Ok(())
}

type Replayed<'a> =
    (prism_replay::Outcome, Charts<Box<dyn FnMut(&Finished) + 'a>>, Option<RequestsWriter>);

fn replay<'a>(
    args: &Args,
    trace: &mut LoadedTrace,
    layout: &Layout,
    drive: &mut Drive,
    writer: Option<RequestsWriter>,
    progress: Progress,
) -> Result<Replayed<'a>, Failure> {
    let per_pass = trace.summary.requests + trace.summary.flushes;
    let total = match args.replay.passes {
        Passes::Fixed(passes) => Some(per_pass * u64::from(passes)),
        Passes::Steady => None,
    };
    progress.start_count("replaying:", "requests", total);
    let shared = std::rc::Rc::new(RefCell::new((writer, None::<HostError>)));
    let sink = shared.clone();
    let each: Box<dyn FnMut(&Finished) + 'a> = Box::new(move |finished: &Finished| {
        let (writer, failed) = &mut *sink.borrow_mut();
        if let (Some(writer), None) = (writer, &failed) {
            *failed = writer.add(finished).err();
        }
    });
    let bar = progress.clone();
    let watch = shared.clone();
    let keep_going = move |at: prism_replay::Progress| {
        bar.reached(u64::from(at.passes) * per_pass + at.submitted);
        watch.borrow().1.is_none()
    };
    let shown = match args.replay.passes {
        Passes::Fixed(passes) => passes,
        Passes::Steady => 1,
    };
    let mut charts = Charts::new(drive.device().capacity(), shown, each, keep_going);
    let options = args.replay.options();
    let mut source = LaidOut::new(&mut trace.spool, layout);
    let outcome = prism_replay::replay(drive, &mut source, &options, &mut charts);
    progress.clear();
    let (writer, failed) = shared.take();
    if let Some(error) = failed {
        return Err(error.into());
    }
    match outcome {
        Ok(outcome) => Ok((outcome, charts, writer)),
        Err(ReplayError::Source(error)) => Err(HostError::from(error).into()),
        Err(error) => Err(Failure::Usage(format!("{}: {error}", trace.name))),
    }
}
