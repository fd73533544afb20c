//! An ingest that is interrupted goes on where it was, and its graph is the same.

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::Compression;
use flate2::write::GzEncoder;
use prism_base::{Bytes, Rng};
use prism_graph::input::Format;
use prism_graph::pool::Job;
use prism_graph::{Catalog, Keep, Order, Pool, Serial};
use prism_graphstore::ingest::{Ingested, InputFormat, SAVE_EVERY};
use prism_graphstore::{GraphDevice, IngestPlan, StoreError, export};
use prism_host::parquet::{Number, NumbersWriter};
use prism_host::progress::Display;
use prism_host::{Progress, read_state};
use tempfile::TempDir;

/// The folder and number of a child's case, and the step at which it is killed.
const CHILD: &str = "PRISM_TEST_INGEST_CHILD";
/// Bytes after which progress is saved.
const EVERY: Bytes = Bytes(3000);

/// What happens to an ingest after some steps of reading and of sorting.
#[derive(Clone, Copy)]
enum End {
    Never,
    Unwinds,
    IsKilled,
}

/// Counts steps.
struct Steps {
    left: AtomicU64,
    end: End,
}

struct Unwound;

impl Steps {
    fn step(&self) {
        if self.left.fetch_sub(1, Ordering::Relaxed) > 0 {
            return;
        }
        match self.end {
            End::Never => self.left.store(u64::MAX, Ordering::Relaxed),
            End::Unwinds => resume_unwind(Box::new(Unwound)),
            End::IsKilled => {
                let own = rustix::process::getpid();
                rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
            }
        }
    }
}

impl Display for Steps {
    fn begin(&self, _label: &str, _things: &str, _total: Option<u64>) {}
    fn reached(&self, _done: u64) {
        self.step();
    }
    fn end(&self) {}
}

impl Pool for Steps {
    fn threads(&self) -> usize {
        1
    }
    fn run(&self, jobs: Vec<Job<'_>>) {
        self.step();
        Serial.run(jobs);
    }
}

/// An input and its options.
struct Case {
    edges: PathBuf,
    plan: IngestPlan,
}

impl Case {
    fn ingest(&self, store: &Path, steps: u64, end: End) -> Result<Ingested, StoreError> {
        let steps = Arc::new(Steps { left: AtomicU64::new(steps), end });
        self.plan.make(&self.edges, store, &*steps, &Progress::shown_by(steps.clone()))
    }
}

/// What a store has.
fn content(store: &Path) -> (Catalog, String) {
    let device = GraphDevice::open(store).unwrap();
    let catalog = device.open_graph(1, Bytes(1 << 20)).unwrap().catalog().clone();
    drop(device);
    let text = store.with_extension("exported");
    export(store, &text, Bytes(1 << 20), &Progress::hidden()).unwrap();
    let edges = fs::read_to_string(&text).unwrap();
    fs::remove_file(text).unwrap();
    (catalog, edges)
}

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    let names = names.map(|name| name.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// A directed graph of which progress is saved often.
pub fn plan() -> IngestPlan {
    IngestPlan {
        directed: true,
        weighted: false,
        format: None,
        columns: None,
        vertices: None,
        duplicates: Keep::Drop,
        loops: Keep::Drop,
        memory: Bytes(1 << 20),
        run_memory: None,
        order: Order::Degree,
        restart: false,
        save_every: EVERY,
    }
}

/// Inputs of every format; some of their numbers need 64 bits.
fn cases(folder: &Path) -> Vec<Case> {
    let mut rng = Rng::stream(1, "inputs");
    let mut pairs: Vec<(u64, u64)> = Vec::new();
    for _ in 0..3000 {
        let wide = if rng.below(9) == 0 { 1 << 40 } else { 0 };
        pairs.push((rng.below(500) + wide, rng.below(400)));
    }
    let lines = |line: &dyn Fn(u64, u64) -> String| -> String {
        pairs.iter().map(|(a, b)| line(*a, *b)).collect()
    };
    let text = lines(&|a, b| format!("{a} {b} {}\n", a % 7));
    let rows: String = "from,weight,to\n".to_owned() + &lines(&|a, b| format!("{a},0.5,{b}\n"));
    let adjacency = lines(&|a, b| format!("{a} {b} {}\n", b + 1000));
    let matrix: String =
        pairs.iter().map(|(a, b)| format!("{} {} -2\n", a % 600 + 1, b % 600 + 1)).collect();
    let head = "%%MatrixMarket matrix coordinate real skew-symmetric\n% text\n";
    let matrix = format!("{head}700 700 3000\n{matrix}");
    let ring = |v: u64| format!("{} {}\n", (v + 899) % 900 + 1, (v + 1) % 900 + 1);
    let metis = "900 900\n".to_owned() + &(0..900).map(ring).collect::<String>();
    let words = |bytes: &dyn Fn(u64) -> Vec<u8>| -> Vec<u8> {
        pairs.iter().flat_map(|(a, b)| [bytes(*a), bytes(*b)].concat()).collect()
    };
    // Two frames, or members, one after another.
    let zstd = zstd::encode_all(text.as_bytes(), 1).unwrap().repeat(2);
    let gzip = {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(text.as_bytes()).unwrap();
        packed.finish().unwrap().repeat(2)
    };
    let mut cases = Vec::new();
    let mut add = |name: &str, bytes: &[u8], plan: IngestPlan| {
        let edges = folder.join(name);
        fs::write(&edges, bytes).unwrap();
        cases.push(Case { edges, plan });
    };
    add("plain.txt", text.as_bytes(), plan());
    add("packed.txt.zst", &zstd, IngestPlan { weighted: true, ..plan() });
    add("packed.txt.gz", &gzip, IngestPlan { order: Order::Input, ..plan() });
    let columns = prism_graphstore::ingest::parse_columns("from,to").unwrap();
    let columns = Some(columns);
    add("rows.csv", rows.as_bytes(), IngestPlan { columns, weighted: true, ..plan() });
    add("lists.adj", adjacency.as_bytes(), IngestPlan { memory: Bytes(1000), ..plan() });
    add("matrix.mtx", matrix.as_bytes(), IngestPlan { weighted: true, ..plan() });
    add("ring.metis", metis.as_bytes(), IngestPlan { directed: false, ..plan() });
    let narrow = words(&|id| (id as u32).to_le_bytes().to_vec());
    add("pairs.u32", &narrow, IngestPlan { loops: Keep::Keep, order: Order::Input, ..plan() });
    let format = Some(InputFormat::Stream(Format::Pairs64));
    let run_memory = Some(Bytes(16 << 20));
    let wide = words(&|id| id.to_le_bytes().to_vec());
    add("pairs.data", &wide, IngestPlan { format, run_memory, ..plan() });
    let table = folder.join("table.parquet");
    let out = prism_host::OutputFile::create(&table).unwrap();
    let mut table_of = NumbersWriter::create(out, ["vertex", "value"], false).unwrap();
    for (a, b) in &pairs {
        table_of.add(*a, Number::Whole(*b)).unwrap();
    }
    table_of.finish().unwrap().commit().unwrap();
    cases.push(Case { edges: table, plan: plan() });
    cases
}

/// The process that is killed.
#[test]
fn child() {
    let Ok(what) = std::env::var(CHILD) else { return };
    let (steps, rest) = what.split_once(' ').unwrap();
    let (number, folder) = rest.split_once(' ').unwrap();
    let folder = Path::new(folder);
    let case = all(folder).into_iter().nth(number.parse().unwrap()).unwrap();
    case.ingest(&folder.join("g.prism"), steps.parse().unwrap(), End::IsKilled).unwrap();
}

/// The cases in a folder, of which the files are there, or are made.
fn all(folder: &Path) -> Vec<Case> {
    let inputs = folder.join("inputs");
    if !inputs.exists() {
        fs::create_dir(&inputs).unwrap();
        return cases(&inputs);
    }
    let other = tempfile::tempdir().unwrap();
    let cases = cases(other.path());
    let here = |case: Case| Case { edges: inputs.join(case.edges.file_name().unwrap()), ..case };
    cases.into_iter().map(here).collect()
}

#[test]
fn an_ingest_that_was_killed_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("g.prism");
    let mut resumed = 0;
    for (number, case) in all(folder.path()).iter().enumerate() {
        let whole = folder.path().join("whole.prism");
        case.ingest(&whole, 0, End::Never).unwrap();
        // Each child comes a little further than the one before.
        for steps in [1, 2, 3, 5, 9, 20, 1000] {
            let mut child = Command::new(std::env::current_exe().unwrap());
            child.args(["--exact", "resume::child", "--nocapture"]);
            child.env(CHILD, format!("{steps} {number} {}", folder.path().display()));
            let run = child.output().unwrap();
            if run.status.success() {
                break;
            }
            assert_eq!(run.status.signal(), Some(9), "{}", String::from_utf8_lossy(&run.stderr));
            let kept = folder.path().join("g.prism.ingest/state");
            resumed += u32::from(kept.exists());
        }
        assert!(content(&store) == content(&whole), "{}", case.edges.display());
        assert_eq!(names(folder.path()), ["g.prism", "inputs", "whole.prism"]);
    }
    assert!(resumed > 5, "{resumed} had saved something");
}

#[test]
fn random_interruptions_do_not_change_the_graph() {
    let folder = tempfile::tempdir().unwrap();
    let cases = all(folder.path());
    let whole: Vec<_> = (0..)
        .zip(&cases)
        .map(|(number, case): (u32, &Case)| {
            let whole = folder.path().join(format!("whole{number}.prism"));
            case.ingest(&whole, 0, End::Never).unwrap();
            content(&whole)
        })
        .collect();
    let mut interrupted = 0;
    for seed in prism_testkit::seeds(0..60) {
        let mut rng = Rng::stream(seed, "steps");
        let at = rng.below(cases.len() as u64) as usize;
        let store = folder.path().join(format!("g{seed}.prism"));
        let save_every = Bytes(500 + rng.below(9000));
        let memory = Bytes([1000, 20_000, 1 << 20][rng.below(3) as usize]);
        let plan = IngestPlan { save_every, memory, ..cases[at].plan.clone() };
        let case = Case { edges: cases[at].edges.clone(), plan };
        let most = 1 + rng.below(40);
        loop {
            let end = if interrupted % 50 == 49 { End::Never } else { End::Unwinds };
            let steps = rng.below(most) + rng.below(3);
            match catch_unwind(AssertUnwindSafe(|| case.ingest(&store, steps, end))) {
                Ok(made) => break drop(made.unwrap_or_else(|error| panic!("{error}"))),
                Err(panic) if panic.is::<Unwound>() => interrupted += 1,
                Err(panic) => resume_unwind(panic),
            }
        }
        assert!(content(&store) == whole[at], "{}", case.edges.display());
        assert!(!folder.path().join(format!("g{seed}.prism.ingest")).exists());
        fs::remove_file(store).unwrap();
    }
    assert!(!prism_testkit::all_seeds() || interrupted > 0);
}

/// A file of edges in a new folder, and the store that it becomes.
fn edges_with(text: &str, plan: IngestPlan) -> (TempDir, Case, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let edges = folder.path().join("edges.txt");
    fs::write(&edges, text).unwrap();
    let store = folder.path().join("g.prism");
    (folder, Case { edges, plan }, store)
}

/// A store of which the ingest was interrupted after some steps.
fn interrupted() -> (TempDir, Case, PathBuf) {
    let (folder, case, store) = edges_with(&lines(), plan());
    let end = catch_unwind(AssertUnwindSafe(|| case.ingest(&store, 8, End::Unwinds)));
    assert!(end.is_err_and(|panic| panic.is::<Unwound>()));
    assert_eq!(names(folder.path()), ["edges.txt", "g.prism.ingest"]);
    let kept = names(&folder.path().join("g.prism.ingest"));
    assert_eq!(kept, ["edges32", "edges64", MARK, "state", "vertices"]);
    (folder, case, store)
}

/// The file that says that the folder is of an ingest.
const MARK: &str = "prism-ingest.txt";

fn lines() -> String {
    (0..4000).map(|at| format!("{} {}\n", at * 7 % 1000, at * 3 % 900)).collect()
}

fn refused(case: &Case, store: &Path, part: &str) {
    let error = case.ingest(store, 0, End::Never).err().unwrap().to_string();
    for part in [part, "--restart", "g.prism.ingest"] {
        assert!(error.contains(part), "{part} is not in {error}");
    }
}

#[test]
fn what_is_not_the_same_is_refused() {
    let (folder, case, store) = interrupted();
    let with = |plan: IngestPlan| Case { edges: case.edges.clone(), plan };
    refused(&with(IngestPlan { directed: false, ..plan() }), &store, "it is with --directed;");
    refused(&with(IngestPlan { weighted: true, ..plan() }), &store, "it is without --weighted;");
    let plan_of = |duplicates| IngestPlan { duplicates, ..plan() };
    refused(&with(plan_of(Keep::Keep)), &store, "it is with --duplicates=drop;");
    let other = folder.path().join("other.txt");
    fs::copy(&case.edges, &other).unwrap();
    refused(&Case { edges: other.clone(), plan: plan() }, &store, "it is of ");
    fs::remove_file(other).unwrap();
    fs::OpenOptions::new().append(true).open(&case.edges).unwrap().write_all(b"1 2\n").unwrap();
    refused(&case, &store, "edges.txt was changed since;");
    assert_eq!(names(folder.path()), ["edges.txt", "g.prism.ingest"]);
    // And with --restart it begins anew.
    let made = with(IngestPlan { restart: true, ..plan() });
    assert!(made.ingest(&store, 0, End::Never).is_ok());
    assert_eq!(names(folder.path()), ["edges.txt", "g.prism"]);
}

#[test]
fn what_is_kept_may_be_damaged() {
    for name in ["state", "edges32"] {
        let (folder, case, store) = interrupted();
        let path = folder.path().join("g.prism.ingest").join(name);
        let bytes = fs::read(&path).unwrap();
        let whole = read_state(&path).unwrap_or_default();
        fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        refused(&case, &store, if name == "state" { "damaged" } else { "missing" });
        if name == "state" {
            for at in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[at] ^= 1;
                fs::write(&path, changed).unwrap();
                if read_state(&path).is_ok_and(|state| state == whole) {
                    // A bit of the packed form that does not matter.
                    continue;
                }
                let made = case.ingest(&store, 0, End::Unwinds);
                assert!(made.err().is_some_and(|error| error.to_string().contains("damaged")));
            }
        }
        // Without its state nothing is kept.
        fs::remove_file(folder.path().join("g.prism.ingest/state")).unwrap();
        case.ingest(&store, 0, End::Never).unwrap();
        assert_eq!(names(folder.path()), ["edges.txt", "g.prism"]);
    }
}

/// An input that is wrong would fail again at the same place.
#[test]
fn nothing_is_kept_of_an_input_that_is_wrong() {
    let (folder, case, store) = edges_with(&(lines() + "1 x\n"), plan());
    let error = case.ingest(&store, 0, End::Never).err().unwrap().to_string();
    assert!(error.contains("edges.txt:4001: "), "{error}");
    assert_eq!(names(folder.path()), ["edges.txt"]);
    // Also after an interruption.
    assert!(catch_unwind(AssertUnwindSafe(|| case.ingest(&store, 8, End::Unwinds))).is_err());
    assert_eq!(names(folder.path()), ["edges.txt", "g.prism.ingest"]);
    let error = case.ingest(&store, 0, End::Never).err().unwrap().to_string();
    assert!(error.contains("edges.txt:4001: "), "{error}");
    assert_eq!(names(folder.path()), ["edges.txt"]);
}

/// With the usual options a small input leaves nothing on the disk but its store.
#[test]
fn a_small_input_is_not_saved() {
    let plan = IngestPlan { save_every: SAVE_EVERY, ..plan() };
    let (folder, case, store) = edges_with(&lines(), plan);
    assert!(catch_unwind(AssertUnwindSafe(|| case.ingest(&store, 1, End::Unwinds))).is_err());
    assert_eq!(names(folder.path()), ["edges.txt"]);
}

/// A kill while the state is written leaves a file of another name, and a user may put one there:
/// the next ingest works all the same, and removes only what is its own.
#[test]
fn files_that_were_left_do_not_stop_an_ingest() {
    let text: String = (0..200_000_u64).map(|i| format!("{i} {}\n", i * 7 % 9_001)).collect();
    let (folder, Case { edges, .. }, store) = edges_with(&text, plan());
    let kept = folder.path().join("g.prism.ingest");
    for (left, stays) in [(".prism-1-2.tmp", false), ("notes.txt", true)] {
        fs::create_dir_all(&kept).unwrap();
        fs::write(kept.join(MARK), "").unwrap();
        fs::write(kept.join(left), "left").unwrap();
        for restart in [false, true] {
            let plan = IngestPlan { restart, save_every: Bytes(1 << 20), ..plan() };
            plan.make(&edges, &store, &Serial, &Progress::hidden()).unwrap();
        }
        assert_eq!(kept.join(left).exists(), stays, "{left}");
    }
    assert_eq!(names(&kept), ["notes.txt", MARK]);
    // A wrong name removes nothing.
    let plan = IngestPlan { restart: true, ..plan() };
    fs::write(kept.join("state"), "of another ingest").unwrap();
    let missing = folder.path().join("missing.txt");
    assert!(plan.make(&missing, &store, &Serial, &Progress::hidden()).is_err());
    assert!(kept.join("state").exists());
}

/// A folder of another program loses nothing, whatever its files are called.
#[test]
fn a_folder_that_is_not_of_an_ingest_stays_as_it_is() {
    let (folder, mut case, store) = edges_with(&lines(), plan());
    let other = folder.path().join("g.prism.ingest");
    fs::create_dir(&other).unwrap();
    let files = ["edges32", "state", "store", "vertices"];
    files.iter().for_each(|name| fs::write(other.join(name), name).unwrap());
    for (restart, save_every) in [(false, EVERY), (true, EVERY), (true, SAVE_EVERY)] {
        case.plan = IngestPlan { restart, save_every, ..plan() };
        let error = case.ingest(&store, 0, End::Never).err().unwrap().to_string();
        assert!(error.contains("g.prism.ingest: an ingest keeps what"), "{error}");
        assert_eq!(names(&other), files);
        assert!(files.iter().all(|name| fs::read_to_string(other.join(name)).unwrap() == *name));
    }
    assert!(!store.exists());
}

/// A mistake in the file of vertices does not cost the edges that were read.
#[test]
fn wrong_vertices_leave_what_was_read_of_the_edges() {
    let (folder, mut case, store) = edges_with(&lines(), plan());
    let vertices = folder.path().join("vertices.txt");
    fs::write(&vertices, "5000\nx\n").unwrap();
    case.plan.vertices = Some(vertices.clone());
    for _ in 0..2 {
        let error = case.ingest(&store, 0, End::Never).err().unwrap().to_string();
        let parts = ["vertices.txt:2: ", "is kept in"];
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        assert!(folder.path().join("g.prism.ingest/state").exists());
    }
    fs::write(&vertices, "5000\n5001\n").unwrap();
    let vertices = case.ingest(&store, 0, End::Never).unwrap().vertices;
    let afresh = folder.path().join("afresh.prism");
    assert_eq!(vertices, case.ingest(&afresh, 0, End::Never).unwrap().vertices);
    assert_eq!(content(&store), content(&afresh));
    assert!(!folder.path().join("g.prism.ingest").exists());
}

/// A graph may have vertices and no edges.
#[test]
fn an_empty_file_of_edges_is_a_graph_if_there_are_vertices() {
    let folder = tempfile::tempdir().unwrap();
    let edges = folder.path().join("alone.e");
    fs::write(&edges, "").unwrap();
    let (case, store) = (Case { edges, plan: plan() }, folder.path().join("g.prism"));
    let error = case.ingest(&store, 0, End::Never).err().unwrap().to_string();
    assert!(error.contains("alone.e: the file is empty"), "{error}");
    fs::write(folder.path().join("alone.v"), "7\n8\n").unwrap();
    let made = case.ingest(&store, 0, End::Never).unwrap();
    assert_eq!((made.vertices, made.edges), (2, 0));
}
