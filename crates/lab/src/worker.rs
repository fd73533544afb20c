//! The work of the child process: it fills the file system, or runs the application.
//!
//! A separate process has its own memory cgroup and its own name in the trace, and is killed when
//! its parent ends for any reason.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use prism_base::Bytes;
use prism_base::rng::Rng;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use crate::amounts::{
    APPEND_BYTES_MAX, LSM_VALUE_BYTES, MAIL_THREADS, ROW_VALUE_BYTES, ROWS_PER_COMMIT, Work,
};
use crate::cgroup;
use crate::error::StackError;
use crate::keys::{Operation, Operations, Values, key};
use crate::kinds::{App, Io, Pattern};
use crate::lsm::{LsmSetup, LsmStore};
use crate::mail::{MailThread, Round};
use crate::overwrite;
use crate::sqlite::Sqlite;

prism_base::named_enum! {
    /// A step of the work.
    pub enum Step {
        /// Write the live records.
        Load = "load",
        /// Run the operations.
        App = "app",
        /// Read records in ascending order of keys, or every mail.
        ReadSeq = "read-seq",
        /// Read random records or mails.
        ReadRand = "read-rand",
    }
}

/// The parameters of a worker.
#[derive(Clone, Debug)]
pub struct WorkerSpec {
    /// The application.
    pub app: App,
    /// Its pattern.
    pub pattern: Pattern,
    /// Its use of the page cache.
    pub io: Io,
    /// The step of the work.
    pub step: Step,
    /// The size of the device, which determines the amount of live data.
    pub size: Bytes,
    /// About the bytes that all instances write to their files in [`Step::App`].
    pub written: Bytes,
    /// The longest time of [`Step::App`].
    pub time_max: Option<Duration>,
    /// How many instances run at once and share the work.
    pub instances: u32,
    /// Seed of keys, values and mails.
    pub seed: u64,
    /// The folder for its files.
    pub folder: PathBuf,
    /// The memory cgroup that it enters.
    pub cgroup: Option<PathBuf>,
    /// Its parent process, with which it ends.
    pub parent: Option<u32>,
}

/// Rows that are loaded in one transaction: with fewer, syncs would dominate the loading.
const ROWS_PER_LOAD: u64 = 10_000;

/// The device size over the memtable of RocksDB: a small device gets as many tables as one of
/// 4 GiB with RocksDB's default of 64 MiB.
const WRITE_BUFFER_SHARE: u64 = 64;

/// Smallest and largest memtable of RocksDB.
const WRITE_BUFFER: (u64, u64) = (1 << 20, 64 << 20);

/// Bytes of a mail that filebench reads and writes at once.
const MAIL_IO_BYTES: usize = 1 << 20;

/// Runs the step.
///
/// # Errors
/// [`StackError`] if the application fails.
///
/// # Panics
/// If a thread of varmail panics.
pub fn work(spec: &WorkerSpec) -> Result<(), StackError> {
    end_with_parent(spec.parent)?;
    let name = CString::new(spec.app.name()).expect("names have no zero byte");
    // If the name cannot be set, the program keeps its own; that is harmless.
    let _ = rustix::thread::set_name(&name);
    if let Some(cgroup) = &spec.cgroup {
        cgroup::enter(cgroup)?;
    }
    match spec.app {
        App::SqliteRb | App::SqliteWal => sqlite(spec),
        App::RocksDb | App::LevelDb => lsm(spec),
        App::Varmail => varmail(spec),
        App::OverwriteZipf | App::OverwriteUniform | App::OverwriteTpcC | App::OverwriteRes => {
            let workload = spec.app.overwrites().expect("these applications have one");
            overwrite::run(spec, workload, spec.amount())
        }
    }
}

fn end_with_parent(parent: Option<u32>) -> Result<(), StackError> {
    let Some(parent) = parent else { return Ok(()) };
    let failed = |error: rustix::io::Errno| {
        StackError::at("/proc/self", "request to end with the parent")(error.into())
    };
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(failed)?;
    // The parent may have ended before.
    let is_alive = getppid().map(Pid::as_raw_nonzero).is_some_and(|p| p.get() as u32 == parent);
    if is_alive { Ok(()) } else { Err(failed(rustix::io::Errno::SRCH)) }
}

impl WorkerSpec {
    /// The work of this instance.
    fn amount(&self) -> Work {
        let all = Work::of(self.app, self.pattern, self.size, self.written);
        all.shared(self.app, self.instances)
    }

    /// The operations of this step of an application with keys.
    fn operations(&self) -> Box<dyn Iterator<Item = Operation>> {
        let work = self.amount();
        match self.step {
            Step::Load => Box::new((0..work.records).map(Operation::Put)),
            Step::App => {
                let all = Operations::new(self.seed, self.pattern, work.records, work.operations);
                let deadline = self.deadline();
                Box::new(all.take_while(move |_| !is_over(deadline)))
            }
            Step::ReadSeq => Box::new((0..work.read_in_order()).map(Operation::Get)),
            Step::ReadRand => {
                let reads = Work::read_at_random(self.size, self.instances);
                let mut rng = Rng::stream(self.seed, "stack cold reads");
                Box::new((0..reads).map(move |_| Operation::Get(rng.below(work.records))))
            }
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.time_max.map(|time| Instant::now() + time)
    }
}

pub(super) fn is_over(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| Instant::now() >= deadline)
}

fn sqlite(spec: &WorkerSpec) -> Result<(), StackError> {
    let mut db = Sqlite::open(spec.app, &spec.folder.join("s.db"))?;
    let mut values = Values::new(spec.seed, spec.step.name(), ROW_VALUE_BYTES);
    let mut transactions = |operations: &mut dyn Iterator<Item = Operation>, each: u64| {
        let mut operations = operations.peekable();
        while operations.peek().is_some() {
            db.begin()?;
            for operation in operations.by_ref().take(each as usize) {
                match operation {
                    Operation::Put(record) => db.put(&key(record), values.next_value())?,
                    Operation::Get(record) => found(spec.app, record, db.get(&key(record))?)?,
                }
            }
            db.commit()?;
        }
        Ok(())
    };
    let each = if spec.step == Step::Load { ROWS_PER_LOAD } else { ROWS_PER_COMMIT };
    transactions(&mut spec.operations(), each)
}

fn lsm(spec: &WorkerSpec) -> Result<(), StackError> {
    let write_buffer = (spec.size.0 / WRITE_BUFFER_SHARE).clamp(WRITE_BUFFER.0, WRITE_BUFFER.1);
    let setup = LsmSetup { io: spec.io, write_buffer };
    let mut store = LsmStore::open(spec.app, &spec.folder.join("store"), setup)?;
    let mut values = Values::new(spec.seed, spec.step.name(), LSM_VALUE_BYTES);
    if spec.step == Step::ReadSeq {
        let wanted = spec.amount().read_in_order();
        let read = store.scan(wanted)?;
        return found(spec.app, read, read == wanted);
    }
    for operation in spec.operations() {
        match operation {
            Operation::Put(record) => store.put(&key(record), values.next_value())?,
            Operation::Get(record) => found(spec.app, record, store.get(&key(record))?)?,
        }
    }
    Ok(())
}

/// Every record was loaded, so a missing one was lost.
fn found(app: App, record: u64, is_there: bool) -> Result<(), StackError> {
    if is_there {
        return Ok(());
    }
    Err(StackError::Application { app, said: format!("record {record} was written and is lost") })
}

fn varmail(spec: &WorkerSpec) -> Result<(), StackError> {
    let work = spec.amount();
    let folder = spec.folder.join("mails");
    fs::create_dir_all(&folder).map_err(StackError::at(&folder, "make the folder"))?;
    if matches!(spec.step, Step::ReadSeq | Step::ReadRand) {
        return read_mails(spec, &folder);
    }
    let deadline = spec.deadline();
    let one = |number: u64| {
        let mails = MailThread::new(spec.seed, number, spec.pattern, work.records, work.operations);
        let mut mailbox = Mailbox::new(&folder, spec.seed, number);
        match spec.step {
            Step::Load => mails.initial(spec.seed).into_iter().try_for_each(|(mail, bytes)| {
                mailbox.write(mail, bytes, "make a mail", |how| how.create_new(true))
            }),
            _ => {
                mails.take_while(|_| !is_over(deadline)).try_for_each(|round| mailbox.round(&round))
            }
        }
    };
    at_once(MAIL_THREADS, one)
}

/// Calls `one` with each number below `count`, in a thread each.
pub(super) fn at_once(
    count: u64,
    one: impl Fn(u64) -> Result<(), StackError> + Sync,
) -> Result<(), StackError> {
    thread::scope(|scope| {
        let one = &one;
        let threads: Vec<_> = (0..count).map(|n| scope.spawn(move || one(n))).collect();
        let results = threads.into_iter().map(|thread| thread.join().expect("it does not panic"));
        results.collect::<Result<Vec<()>, _>>().map(drop)
    })
}

/// Reads every mail in the order of their names, or random ones.
fn read_mails(spec: &WorkerSpec, folder: &Path) -> Result<(), StackError> {
    let failed = || StackError::at(folder, "list the mails");
    let entries = fs::read_dir(folder).map_err(failed())?;
    let mails = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>();
    let mut mails = mails.map_err(failed())?;
    mails.sort();
    let mut mailbox = Mailbox::new(folder, spec.seed, 0);
    if spec.step == Step::ReadSeq {
        return mails.iter().try_for_each(|mail| mailbox.read_file(mail));
    }
    let mut rng = Rng::stream(spec.seed, "stack cold reads");
    (0..Work::read_at_random(spec.size, spec.instances))
        .try_for_each(|_| mailbox.read_file(&mails[rng.below(mails.len() as u64) as usize]))
}

/// The mails of one thread, and its buffers.
struct Mailbox<'a> {
    folder: &'a Path,
    buffer: Vec<u8>,
    text: Vec<u8>,
}

impl<'a> Mailbox<'a> {
    fn new(folder: &'a Path, seed: u64, thread: u64) -> Self {
        let label = format!("varmail text {thread}");
        let text = Values::new(seed, &label, APPEND_BYTES_MAX as usize).next_value().to_vec();
        Self { folder, buffer: vec![0; MAIL_IO_BYTES], text }
    }

    fn path(&self, mail: u64) -> PathBuf {
        self.folder.join(format!("{mail:08}"))
    }

    fn round(&mut self, round: &Round) -> Result<(), StackError> {
        let gone = self.path(round.delete);
        fs::remove_file(&gone).map_err(StackError::at(gone, "delete a mail"))?;
        let (mail, bytes) = round.create;
        self.write(mail, bytes, "make a mail", |how| how.create_new(true))?;
        let (mail, bytes) = round.append;
        if round.read.is_some() {
            self.read(mail)?;
        }
        self.write(mail, bytes, "append to a mail", |how| how.append(true))?;
        round.read.map_or(Ok(()), |mail| self.read(mail))
    }

    /// Writes `bytes` to the end of a mail and makes them durable.
    fn write(
        &mut self,
        mail: u64,
        bytes: u64,
        what: &'static str,
        how: impl FnOnce(&mut OpenOptions) -> &mut OpenOptions,
    ) -> Result<(), StackError> {
        let path = self.path(mail);
        let written = || -> std::io::Result<()> {
            let mut file = how(OpenOptions::new().write(true)).open(&path)?;
            let mut rest = bytes as usize;
            while rest > 0 {
                let part = rest.min(self.text.len());
                file.write_all(&self.text[..part])?;
                rest -= part;
            }
            file.sync_all()
        };
        written().map_err(StackError::at(&path, what))
    }

    fn read(&mut self, mail: u64) -> Result<(), StackError> {
        self.read_file(&self.path(mail))
    }

    fn read_file(&mut self, path: &Path) -> Result<(), StackError> {
        let mut read = || -> std::io::Result<()> {
            let mut file = File::open(path)?;
            while file.read(&mut self.buffer)? > 0 {}
            Ok(())
        };
        read().map_err(StackError::at(path, "read a mail"))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use prism_testkit::skipped;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    pub(crate) fn spec(app: App, step: Step, folder: &Path) -> WorkerSpec {
        WorkerSpec {
            app,
            pattern: Pattern::Mix,
            io: Io::Buffered,
            step,
            size: Bytes(1 << 20),
            written: Bytes(1 << 20),
            time_max: None,
            instances: 1,
            seed: 1,
            folder: folder.to_path_buf(),
            cgroup: None,
            parent: None,
        }
    }

    /// The mails and their sizes after the work are those of a naive model.
    #[test]
    fn varmail_leaves_the_mails_of_a_model() {
        let folder = tempfile::tempdir().unwrap();
        let load = spec(App::Varmail, Step::Load, folder.path());
        work(&load).unwrap();
        work(&spec(App::Varmail, Step::App, folder.path())).unwrap();
        let mut expected = std::collections::BTreeMap::new();
        let amounts = load.amount();
        for thread in 0..MAIL_THREADS {
            let (mails, rounds) = (amounts.records, amounts.operations);
            let thread = MailThread::new(load.seed, thread, load.pattern, mails, rounds);
            expected.extend(thread.initial(load.seed));
            for round in thread {
                expected.remove(&round.delete).unwrap();
                expected.insert(round.create.0, round.create.1);
                *expected.get_mut(&round.append.0).unwrap() += round.append.1;
            }
        }
        let entries = fs::read_dir(folder.path().join("mails")).unwrap();
        let found = entries.map(|entry| {
            let entry = entry.unwrap();
            let mail: u64 = entry.file_name().to_str().unwrap().parse().unwrap();
            (mail, entry.metadata().unwrap().size())
        });
        assert_eq!(found.collect::<std::collections::BTreeMap<_, _>>(), expected);
    }

    /// A deadline that has passed ends the work before its first operation; the mails are read.
    #[test]
    fn time_ends_the_work() {
        let folder = tempfile::tempdir().unwrap();
        let load = spec(App::Varmail, Step::Load, folder.path());
        work(&load).unwrap();
        let sizes = || {
            let entries = fs::read_dir(folder.path().join("mails")).unwrap().map(Result::unwrap);
            let one = |e: fs::DirEntry| (e.file_name(), e.metadata().unwrap().size());
            entries.map(one).collect::<std::collections::BTreeMap<_, _>>()
        };
        let before = sizes();
        let time_max = Some(Duration::ZERO);
        work(&WorkerSpec { step: Step::App, time_max, ..load.clone() }).unwrap();
        assert_eq!(sizes(), before);
        for step in [Step::ReadSeq, Step::ReadRand] {
            work(&WorkerSpec { step, ..load.clone() }).unwrap();
        }
        fs::remove_dir_all(folder.path().join("mails")).unwrap();
        assert!(work(&WorkerSpec { step: Step::App, ..load }).is_err());
    }

    /// If the library is installed, loaded records can be read after reopening the store. Otherwise
    /// the missing library is named.
    #[test]
    fn stores_keep_what_was_loaded_or_say_what_is_missing() {
        for app in [App::SqliteRb, App::SqliteWal, App::RocksDb, App::LevelDb] {
            let folder = tempfile::tempdir().unwrap();
            let run = |step| work(&spec(app, step, folder.path()));
            let reads = || run(Step::ReadSeq).and_then(|()| run(Step::ReadRand));
            match run(Step::Load).and_then(|()| run(Step::App)).and_then(|()| reads()) {
                Ok(()) => assert!(fs::read_dir(folder.path()).unwrap().count() > 0),
                Err(StackError::NoLibrary { package, .. }) => {
                    skipped(&format!("what {} keeps", app.name()), package);
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn records_that_are_missing_are_an_error() {
        let folder = tempfile::tempdir().unwrap();
        match work(&spec(App::SqliteWal, Step::App, folder.path())) {
            Err(StackError::Application { said, .. }) => assert!(said.contains("lost"), "{said}"),
            Err(StackError::NoLibrary { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
}
