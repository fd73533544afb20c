//! `prism capture stack`: captures and analyses applications on file systems, as a matrix.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args as ClapArgs;
use prism_base::{Bytes, Named, Nanos};
use prism_host::{HostError, OutputFile, Progress};
use prism_lab::{
    App, Combination, Experiment, ExperimentSpec, FileSystem, INSTANCES_MAX, Io, Leftovers,
    MemoryCgroups, Pattern, StackError, WorkerSpec, remove_leftovers,
};
use prism_present::PresentError;
use prism_present::analysis::{Analysis, AnalysisOptions, Trace, WhatIfs};
use prism_present::drive_choice::{Capacity, DriveChoice};
use prism_present::initial_state::parse_state;
use prism_present::stack::{self, Captured, Cell, Matrix, Measured};
use prism_replay::{Options, Pace, Passes};
use prism_ssd::DriveSpec;

use super::stack_worker;
use crate::failure::Failure;
use crate::output::{JsonArg, json};
use crate::process_env::ProcessEnv;
use crate::quantities;
use crate::report_files::{Paths, ReportFiles};
use crate::trace_args::SelectArgs;

/// Arguments of `prism capture stack`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Examples:
  sudo prism capture stack --fs ext4,xfs --app sqlite-wal,varmail --size 512MiB
  sudo prism capture stack --app rocksdb --pattern mix --io buffered,direct --size 4GiB
  sudo prism capture stack --size 1GiB --keep-traces traces --html stack.html --json stack.json
  sudo prism capture stack --app leveldb --pattern seq --instances 1,2,4 --size 1GiB
  sudo prism capture stack --app sqlite-rb --size 4GiB --write 8GiB --for 600s \
    --cold-reads 0KiB,128KiB,1MiB --keep-traces traces --no-replay

Needs root, and the packages of the chosen file systems and applications: e2fsprogs, xfsprogs,
btrfs-progs, f2fs-tools; libsqlite3-0, librocksdb7.8 or later, libleveldb1d.")]
pub struct Args {
    /// File systems: ext4, xfs, btrfs, f2fs, btrfs-nodatacow
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "ext4,xfs,btrfs",
          value_parser = parse_name::<FileSystem>)]
    fs: Vec<FileSystem>,
    /// Applications: sqlite-rb (rollback journal), sqlite-wal, rocksdb, leveldb, varmail, and
    /// overwrites of a file, overwrite-zipf, overwrite-uniform, overwrite-tpcc, overwrite-res
    #[arg(long, value_name = "NAMES", value_delimiter = ',',
          default_value = "sqlite-rb,sqlite-wal,rocksdb,leveldb,varmail",
          value_parser = parse_name::<App>)]
    app: Vec<App>,
    /// Access patterns: seq (updates in ascending order), rand (random updates), mix (random
    /// updates and reads, alternately)
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "seq,rand,mix",
          value_parser = parse_name::<Pattern>)]
    pattern: Vec<Pattern>,
    /// Use of the page cache: buffered, direct (only RocksDB)
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "buffered",
          value_parser = parse_name::<Io>)]
    io: Vec<Io>,
    /// How many instances of an application run at once, each in a folder of its own. Together
    /// they do the work of one; of several, the first is removed at the end
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "1",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(INSTANCES_MAX)))]
    instances: Vec<u32>,
    /// Size of the device. Live data fills a quarter of it; with overwrites, 85 %; varmail has 1000
    /// mails
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = quantities::bytes)]
    size: Bytes,
    /// About the bytes that the application writes to its files [default: --size]
    #[arg(long, value_name = "SIZE", value_parser = quantities::bytes)]
    write: Option<Bytes>,
    /// The longest time that the application writes; with it, the work depends on the machine
    #[arg(long = "for", value_name = "TIME", value_parser = quantities::nanos)]
    time_max: Option<Nanos>,
    /// After the application, read records with cold caches, in order and at random, with each
    /// of these settings of the device's read-ahead: 0KiB,128KiB,1MiB
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = read_ahead)]
    cold_reads: Vec<Bytes>,
    /// Memory of the application, page cache included [default: an eighth of --size, at least
    /// 64MiB]
    #[arg(long, value_name = "SIZE", value_parser = quantities::bytes)]
    memory: Option<Bytes>,
    /// The drive for the replay of the traces: a preset or a TOML file, scaled to --size
    #[arg(long, value_name = "PRESET|FILE.toml", default_value = DriveSpec::DEFAULT_PRESET)]
    device: String,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Keep the traces in this folder, as FS-APP-PATTERN.parquet, of direct I/O with -direct at
    /// the end of the name, of two instances with -x2
    #[arg(long, value_name = "DIR")]
    keep_traces: Option<PathBuf>,
    /// Capture only: the traces are not replayed
    #[arg(long, requires = "keep_traces")]
    no_replay: bool,
    /// Folder for the temporary image; needs space for one device
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    work_dir: PathBuf,
    /// Write the matrix as one self-contained HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    json: JsonArg,
}

/// The default memory is the device size over this, half of the live data.
const SIZE_OVER_MEMORY: u64 = 8;

/// The least memory in which every application works.
const MEMORY_MIN: Bytes = Bytes(64 << 20);

/// The largest read-ahead; larger ones than a device of a few GiB's live data would say little.
const READ_AHEAD_MAX: Bytes = Bytes(64 << 20);

/// The phase that is analysed.
const PHASE: &str = "app";

/// Runs every combination, analyses its trace, and writes the matrix.
///
/// # Errors
/// [`Failure`] if the arguments are invalid or a program is missing; and, after everything is
/// written, if a combination failed.
pub fn run(args: &Args) -> Result<(), Failure> {
    let setup = setup(args)?;
    let drive = drive(args)?;
    prism_lab::check(&setup.running(), &setup.file_systems, args.size)?;
    let cgroups = MemoryCgroups::find()?;
    report_removed(remove_leftovers(&args.work_dir, Some(&cgroups)));
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
        size: args.size,
        memory: setup.matrix.memory,
        written: setup.matrix.written,
        time_max: args.time_max.map(|time| Duration::from_nanos(time.0)),
        read_aheads: setup.matrix.read_aheads.clone(),
        seed: args.seed,
        work_dir: args.work_dir.clone(),
        cgroups,
        worker: &worker,
    })?;
    let cells = measured(args, &setup, &experiment, &drive)?;
    drop(experiment);
    let matrix = Matrix { setup: setup.matrix, cells };
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

/// The applications, patterns and file systems to run, without repetitions.
struct Setup {
    apps: Vec<App>,
    patterns: Vec<Pattern>,
    ios: Vec<Io>,
    file_systems: Vec<FileSystem>,
    /// The setup with the names of the matrix.
    matrix: stack::Setup,
}

impl Setup {
    /// Every combination, in the order of the matrix.
    fn combinations(&self) -> Vec<Combination> {
        let instances = &self.matrix.instances;
        Combination::all(&self.apps, &self.patterns, &self.ios, instances, &self.file_systems)
    }

    /// The applications with at least one possible combination.
    fn running(&self) -> Vec<App> {
        let runs = |app: &App| {
            self.combinations().iter().any(|one| one.app == *app && one.impossible().is_none())
        };
        self.apps.iter().copied().filter(runs).collect()
    }
}

fn names<T: Named>(all: &[T]) -> Vec<&'static str> {
    all.iter().map(|one| one.name()).collect()
}

fn named(one: Combination) -> stack::Combination {
    stack::Combination {
        app: one.app.name(),
        pattern: one.pattern.name(),
        io: one.io.name(),
        instances: one.instances,
        fs: one.fs.name(),
        name: one.to_string(),
    }
}

/// The arguments, each name once.
fn setup(args: &Args) -> Result<Setup, Failure> {
    let (apps, patterns) = (once(&args.app), once(&args.pattern));
    let (ios, file_systems) = (once(&args.io), once(&args.fs));
    let matrix = stack::Setup {
        apps: names(&apps),
        patterns: names(&patterns),
        ios: names(&ios),
        instances: once(&args.instances),
        file_systems: names(&file_systems),
        size: args.size,
        written: args.write.unwrap_or(args.size),
        time_max: args.time_max,
        read_aheads: once(&args.cold_reads),
        memory: args.memory.unwrap_or(MEMORY_MIN.max(Bytes(args.size.0 / SIZE_OVER_MEMORY))),
        seed: args.seed,
        device: args.device.clone(),
    };
    let setup = Setup { apps, patterns, ios, file_systems, matrix };
    if setup.combinations().iter().any(|one| one.impossible().is_none()) {
        return Ok(setup);
    }
    let any = |has: &dyn Fn(&App) -> bool| setup.apps.iter().any(has);
    let has_pattern = |app: &App| setup.patterns.iter().any(|&one| app.has_pattern(one));
    let what = if any(&has_pattern) {
        "--io direct: none of these applications can bypass the page cache; RocksDB can"
    } else {
        "--pattern: overwrites are random; give --pattern rand"
    };
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

/// The drive, scaled to the size of the captured device.
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
    // Refuses an impossible drive before the applications run.
    drive.scaled(drive.device(&ProcessEnv::new())?, args.size.0)?;
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
        let cell = match combination.impossible() {
            None => one(args, experiment, drive, combination, &progress)?,
            Some(why) => Cell::Impossible(why),
        };
        cells.push((named(combination), cell));
    }
    progress.clear();
    Ok(cells)
}

/// Captures and analyses one combination. The failure of an application is a result; failures that
/// would affect every combination are errors.
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
    if args.no_replay {
        return Ok(Cell::Captured(Captured {
            trace: path.display().to_string(),
            backend: recorded.backend.name(),
            lost: recorded.lost,
        }));
    }
    let select = SelectArgs {
        format: None,
        map: None,
        blkparse_format: None,
        block_size: None,
        disorder: None,
        phase: Some(PHASE.into()),
        source: None,
    };
    let asked = AnalysisOptions {
        drive,
        options: Options { pace: Pace::Open { speed: 1.0 }, passes: Passes::Steady },
        seed: args.seed,
        what_ifs: &WhatIfs::Only(Vec::new()),
        ranges: &[],
    };
    let loaded = select.load(std::slice::from_ref(&path))?;
    let trace = Trace { info: loaded.info, records: Box::new(loaded.spool) };
    let analysis = match Analysis::of(trace, asked, &ProcessEnv::new(), &mut |_| true) {
        Ok(analysis) => analysis,
        // This trace does not fit the drive; those of other combinations may.
        Err(PresentError::Refused(why)) => return Ok(Cell::Failed(why)),
        Err(error) => return Err(error.into()),
    };
    let kept = args.keep_traces.is_some().then(|| path.display().to_string());
    if kept.is_none() {
        // The folder is removed at the end in any case; this only frees space.
        let _ = fs::remove_file(&path);
    }
    Ok(Cell::Measured(Box::new(Measured::of(
        &analysis,
        recorded.backend.name(),
        recorded.lost,
        kept,
    ))))
}

/// Reports on standard error what was removed.
fn report_removed(removed: Leftovers) {
    if removed.is_empty() {
        return;
    }
    let Leftovers { mounts, loops, folders, cgroups } = removed;
    // A failure is ignored: there is no other place to report it.
    let _ = writeln!(
        std::io::stderr(),
        "prism: removed the leftovers of a killed run: {mounts} mounts, {loops} loop devices, \
         {folders} folders, {cgroups} memory cgroups"
    );
}

/// Parses a setting of read-ahead: whole KiB.
fn read_ahead(text: &str) -> Result<Bytes, String> {
    let bytes = quantities::bytes(text)?;
    if bytes.0.is_multiple_of(1024) && bytes.0 <= READ_AHEAD_MAX.0 {
        return Ok(bytes);
    }
    Err(format!("the kernel takes whole KiB up to {READ_AHEAD_MAX}, such as 0KiB, 128KiB or 1MiB"))
}

/// Parses the name of an application, pattern, file system or similar.
///
/// # Errors
/// The known names.
pub fn parse_name<T: Named>(text: &str) -> Result<T, String> {
    T::from_name(text).ok_or_else(|| format!("known are {}", T::names()))
}
