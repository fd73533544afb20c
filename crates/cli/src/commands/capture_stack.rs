//! `prism capture stack`: applications on file systems, each captured and judged, as a matrix.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use prism_base::Bytes;
use prism_host::{HostError, OutputFile, Progress};
use prism_lab::{
    App, Combination, Experiment, ExperimentSpec, FileSystem, Io, Leftovers, MemoryCgroups, Named,
    Pattern, StackError, WorkerSpec, remove_leftovers,
};
use prism_present::PresentError;
use prism_present::analysis::{Analysis, Question, Trace, WhatIfs};
use prism_present::drive_choice::{Capacity, DriveChoice};
use prism_present::initial_state::parse_state;
use prism_present::stack::{self, Cell, Matrix, Measured};
use prism_replay::{Options, Pace, Passes};
use prism_ssd::DriveSpec;

use super::stack_worker;
use crate::failure::Failure;
use crate::output::{JsonArg, json};
use crate::quantities;
use crate::report_files::{Paths, ReportFiles};
use crate::trace_args::SelectArgs;
use crate::world::World;

/// Arguments of `prism capture stack`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Examples:
  sudo prism capture stack --fs ext4,xfs --app sqlite-wal,varmail --size 512MiB
  sudo prism capture stack --app rocksdb --pattern mix --io buffered,direct --size 4GiB
  sudo prism capture stack --size 1GiB --keep-traces traces --html stack.html --json stack.json

Needs root, and the packages of what is asked for: e2fsprogs, xfsprogs, btrfs-progs,
f2fs-tools; libsqlite3-0, librocksdb7.8 or later, libleveldb1d.")]
pub struct Args {
    /// File systems: ext4, xfs, btrfs, f2fs
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "ext4,xfs,btrfs",
          value_parser = parse_name::<FileSystem>)]
    fs: Vec<FileSystem>,
    /// Applications: sqlite-rb (rollback journal), sqlite-wal, rocksdb, leveldb, varmail
    #[arg(long, value_name = "NAMES", value_delimiter = ',',
          default_value = "sqlite-rb,sqlite-wal,rocksdb,leveldb,varmail",
          value_parser = parse_name::<App>)]
    app: Vec<App>,
    /// What they do: seq (updates in ascending order), rand (updates at random), mix (updates
    /// and reads alternately, at random)
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "seq,rand,mix",
          value_parser = parse_name::<Pattern>)]
    pattern: Vec<Pattern>,
    /// Whether files go through the page cache: buffered, direct (RocksDB alone can)
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "buffered",
          value_parser = parse_name::<Io>)]
    io: Vec<Io>,
    /// Size of the device. Live data fills a quarter of it, and the application writes about
    /// as much as it holds
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = quantities::bytes)]
    size: Bytes,
    /// Memory of the application, page cache included [default: an eighth of --size, at least
    /// 64MiB]
    #[arg(long, value_name = "SIZE", value_parser = quantities::bytes)]
    memory: Option<Bytes>,
    /// The drive on which the traces are judged: a preset or a TOML file, made as large as --size
    #[arg(long, value_name = "PRESET|FILE.toml", default_value = DriveSpec::DEFAULT_PRESET)]
    device: String,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Keep the traces in this folder, as FS-APP-PATTERN.parquet
    #[arg(long, value_name = "DIR")]
    keep_traces: Option<PathBuf>,
    /// Where the images lie meanwhile; it needs room for one device
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    work_dir: PathBuf,
    /// Write the matrix as one self-contained HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    json: JsonArg,
}

/// Live data, a quarter of the device, is twice as much as this share of it.
const SIZE_OVER_MEMORY: u64 = 8;

/// The least memory in which every application works.
const MEMORY_MIN: Bytes = Bytes(64 << 20);

/// The phase that is judged.
const PHASE: &str = "app";

/// Runs every combination, judges its trace, and writes the matrix.
///
/// # Errors
/// [`Failure`] if the arguments make no sense or something is missing here; and, after
/// everything is written, if a combination failed.
pub fn run(args: &Args) -> Result<(), Failure> {
    let setup = setup(args)?;
    let drive = drive(args)?;
    prism_lab::check(&setup.running(), &setup.file_systems, setup.size)?;
    let cgroups = MemoryCgroups::find()?;
    tell(remove_leftovers(&args.work_dir, Some(&cgroups)));
    let outputs = ReportFiles::open(Paths {
        html: args.html.as_deref(),
        json: args.json.path(),
        requests: None,
        text: None,
    })?;
    if let Some(folder) = &args.keep_traces {
        make(folder)?;
    }
    let program = program()?;
    let worker = |spec: &WorkerSpec| stack_worker::command(&program, spec);
    let experiment = Experiment::new(ExperimentSpec {
        size: setup.size,
        memory: setup.memory,
        seed: args.seed,
        work_dir: args.work_dir.clone(),
        cgroups,
        worker: &worker,
    })?;
    let cells = measured(args, &setup, &experiment, &drive)?;
    drop(experiment);
    let matrix = Matrix { setup: described(&setup), cells };
    outputs.write(&matrix.document(), matrix.page(), &json(&matrix.json()), None)?;
    match matrix.failures().as_slice() {
        [] => Ok(()),
        [one] => Err(Failure::Finding(format!("one combination failed: {one}"))),
        [one, rest @ ..] => {
            let count = rest.len() + 1;
            Err(Failure::Finding(format!("{count} combinations failed, the first: {one}")))
        }
    }
}

fn program() -> Result<PathBuf, StackError> {
    let failed = |source| StackError::System {
        place: "/proc/self/exe".into(),
        what: "find the program that runs",
        source,
    };
    std::env::current_exe().map_err(failed)
}

fn make(folder: &Path) -> Result<(), HostError> {
    let failed = |source| HostError::Write { file: folder.display().to_string(), source };
    fs::create_dir_all(folder).map_err(failed)
}

/// What is run: each name of the arguments once.
struct Setup {
    apps: Vec<App>,
    patterns: Vec<Pattern>,
    ios: Vec<Io>,
    file_systems: Vec<FileSystem>,
    size: Bytes,
    memory: Bytes,
    seed: u64,
    device: String,
}

impl Setup {
    /// Every combination, in the order in which they are shown.
    fn combinations(&self) -> Vec<Combination> {
        Combination::all(&self.apps, &self.patterns, &self.ios, &self.file_systems)
    }

    /// The applications that are run at all.
    fn running(&self) -> Vec<App> {
        let runs =
            |app: &App| self.combinations().iter().any(|one| one.app == *app && one.is_possible());
        self.apps.iter().copied().filter(runs).collect()
    }
}

/// What is run, as the matrix names it.
fn described(setup: &Setup) -> stack::Setup {
    stack::Setup {
        apps: names(&setup.apps),
        patterns: names(&setup.patterns),
        ios: names(&setup.ios),
        file_systems: names(&setup.file_systems),
        size: setup.size,
        memory: setup.memory,
        seed: setup.seed,
        device: setup.device.clone(),
    }
}

fn names<T: Named>(all: &[T]) -> Vec<&'static str> {
    all.iter().map(|one| one.name()).collect()
}

fn place(one: Combination) -> stack::Combination {
    stack::Combination {
        app: one.app.name(),
        pattern: one.pattern.name(),
        io: one.io.name(),
        fs: one.fs.name(),
        name: one.to_string(),
    }
}

/// The arguments, each name once.
fn setup(args: &Args) -> Result<Setup, Failure> {
    let setup = Setup {
        apps: once(&args.app),
        patterns: once(&args.pattern),
        ios: once(&args.io),
        file_systems: once(&args.fs),
        size: args.size,
        memory: args.memory.unwrap_or(MEMORY_MIN.max(Bytes(args.size.0 / SIZE_OVER_MEMORY))),
        seed: args.seed,
        device: args.device.clone(),
    };
    if setup.combinations().iter().any(|one| one.is_possible()) {
        return Ok(setup);
    }
    let what = "--io direct: of these applications none goes around the page cache; RocksDB can";
    Err(Failure::Usage(what.into()))
}

fn once<T: Copy + PartialEq>(names: &[T]) -> Vec<T> {
    let mut once = Vec::new();
    for &name in names {
        if !once.contains(&name) {
            once.push(name);
        }
    }
    once
}

/// The drive, as large as the device that is captured.
fn drive(args: &Args) -> Result<DriveChoice, Failure> {
    let drive = DriveChoice {
        name: args.device.clone(),
        capacity: Some(Capacity::Bytes(args.size)),
        state: parse_state("filled").map_err(Failure::Usage)?,
        save_state: None,
        faults: None,
        wear: None,
        retention: None,
        overrides: Vec::new(),
    };
    // A drive that cannot be made is said before the work, not after half of it.
    drive.scaled(drive.device(&World::new())?, args.size.0)?;
    Ok(drive)
}

/// Every combination in turn.
fn measured(
    args: &Args,
    setup: &Setup,
    experiment: &Experiment<'_>,
    drive: &DriveChoice,
) -> Result<Vec<(stack::Combination, Cell)>, Failure> {
    let combinations = setup.combinations();
    let progress = Progress::on_stderr();
    let mut cells = Vec::new();
    for (done, &combination) in combinations.iter().enumerate() {
        let label = format!("{combination}:");
        progress.start_count(&label, "combinations", Some(combinations.len() as u64));
        progress.reached(done as u64);
        let cell = if combination.is_possible() {
            one(args, experiment, drive, combination, &progress)?
        } else {
            Cell::Impossible
        };
        cells.push((place(combination), cell));
    }
    progress.clear();
    Ok(cells)
}

/// Captures and judges one combination. An application that fails is a result; what fails for
/// every other combination as well is not.
fn one(
    args: &Args,
    experiment: &Experiment<'_>,
    drive: &DriveChoice,
    combination: Combination,
    progress: &Progress,
) -> Result<Cell, Failure> {
    let folder = args.keep_traces.as_deref().unwrap_or(experiment.folder());
    let path = folder.join(format!("{combination}.parquet"));
    let recorded = match experiment.run(combination, OutputFile::create(&path)?) {
        Ok(recorded) => recorded,
        Err(error @ StackError::Host(_)) => return Err(error.into()),
        Err(error) => return Ok(Cell::Failed(error.to_string())),
    };
    progress.clear();
    let select = SelectArgs {
        format: None,
        map: None,
        blkparse_format: None,
        block_size: None,
        phase: Some(PHASE.into()),
        source: None,
    };
    let asked = Question {
        drive,
        options: Options { pace: Pace::Open { speed: 1.0 }, passes: Passes::Steady },
        seed: args.seed,
        what_ifs: &WhatIfs::Only(Vec::new()),
        ranges: &[],
    };
    let loaded = select.load(std::slice::from_ref(&path))?;
    let trace = Trace { info: loaded.info, records: Box::new(loaded.spool) };
    let analysis = match Analysis::of(trace, asked, &World::new(), &mut |_| true) {
        Ok(analysis) => analysis,
        // This trace does not fit; those of others may.
        Err(PresentError::Refused(why)) => return Ok(Cell::Failed(why)),
        Err(error) => return Err(error.into()),
    };
    let kept = args.keep_traces.is_some().then(|| path.display().to_string());
    if kept.is_none() {
        // The folder goes at the end in any case; this only makes room.
        let _ = fs::remove_file(&path);
    }
    Ok(Cell::Measured(Box::new(Measured::of(
        &analysis,
        recorded.backend.name(),
        recorded.lost,
        kept,
    ))))
}

/// Says on standard error what was removed.
fn tell(removed: Leftovers) {
    if removed.is_empty() {
        return;
    }
    let Leftovers { mounts, loops, folders, cgroups } = removed;
    // Nobody is left to tell it to when standard error is closed.
    let _ = writeln!(
        std::io::stderr(),
        "prism: removed what a run that was killed left behind: {mounts} mounts, {loops} loop \
         devices, {folders} folders, {cgroups} memory cgroups"
    );
}

/// Reads the name of a member of a closed family.
///
/// # Errors
/// The names there are.
pub fn parse_name<T: Named>(text: &str) -> Result<T, String> {
    T::from_name(text).ok_or_else(|| {
        let names: Vec<_> = T::ALL.iter().map(|member| member.name()).collect();
        format!("there are {}", names.join(", "))
    })
}
