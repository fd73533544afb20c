//! `prism report`: a trace in, what a drive makes of it out.

use std::cell::RefCell;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use prism_base::Bytes;
use prism_host::parquet::RequestsWriter;
use prism_host::{HostError, LoadedTrace, OutputFile, Progress};
use prism_replay::{Finished, LaidOut, Layout, Pace, Passes, ReplayError};
use prism_report::{Section, html, terminal};
use prism_ssd::Drive;

use crate::device_args::DeviceArgs;
use crate::drive_report::{Charts, Facts, ReportObject, Wear, document};
use crate::failure::Failure;
use crate::output::{JsonArg, json, screen};
use crate::replay_args::ReplayArgs;
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
    let mut outputs = Outputs::open(args)?;
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
    outputs.write(&facts, charts.sections())
}

/// The files that were asked for. They are opened before the work begins, so that one
/// that cannot be written is said at once, and appear together at its end.
struct Outputs {
    html: Option<OutputFile>,
    json: Option<OutputFile>,
    requests: Option<OutputFile>,
    /// Standard output, for the text, unless one of the others goes there.
    text: Option<OutputFile>,
}

impl Outputs {
    fn open(args: &Args) -> Result<Self, Failure> {
        let asked = [
            ("--html", args.html.as_deref()),
            ("--json", args.json.path()),
            ("--requests", args.requests.as_deref()),
        ];
        for (i, (flag, path)) in asked.iter().enumerate() {
            let same = |(_, other): &&(_, Option<&Path>)| path.is_some() && other == path;
            if let Some((other, _)) = asked[..i].iter().find(same) {
                let path = path.map(Path::display).expect("it is the same as another");
                let what = format!("{path}: {other} and {flag} name the same file");
                return Err(Failure::Usage(what));
            }
        }
        let stdout = Path::new("-");
        let text = asked.iter().all(|&(_, path)| path != Some(stdout)).then_some(stdout);
        let [html, json, requests] = asked.map(|(_, path)| path);
        let open = |path: Option<&Path>| path.map(OutputFile::create).transpose();
        Ok(Self {
            html: open(html)?,
            json: open(json)?,
            requests: open(requests)?,
            text: open(text)?,
        })
    }

    /// Writes all of them, then lets them appear: a disk that is full leaves none.
    fn write(mut self, facts: &Facts<'_>, charts: Vec<Section>) -> Result<(), Failure> {
        let short = document::document(facts);
        if let Some(out) = &mut self.html {
            let mut long = short.clone();
            let rest = long.sections.split_off(long.sections.len() - 1);
            long.sections.extend(charts);
            long.sections.extend(rest);
            put(out, html::render(&long).as_bytes())?;
        }
        if let Some(out) = &mut self.json {
            put(out, json(&ReportObject::new(facts)).as_bytes())?;
        }
        if let Some(out) = &mut self.text {
            let (width, style) = screen();
            put(out, terminal::render(&short, width, style).as_bytes())?;
        }
        // What cannot be taken back goes first, so that its failure leaves the files away.
        let (direct, renamed): (Vec<_>, Vec<_>) = [self.text, self.json, self.html, self.requests]
            .into_iter()
            .flatten()
            .partition(OutputFile::is_direct);
        for out in direct.into_iter().chain(renamed) {
            out.commit()?;
        }
        Ok(())
    }
}

fn put(out: &mut OutputFile, bytes: &[u8]) -> Result<(), HostError> {
    out.write_all(bytes).map_err(|error| out.failed(error))
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
