//! What is kept of an ingest that is interrupted: a folder next to the store, with the edges that
//! were read and a file that says how far that is.
//!
//! The file is replaced as a whole, and only after the bytes that it names were synced. Syncing and
//! replacing are done on a thread of their own, while edges are read.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::UNIX_EPOCH;

use borsh::{BorshDeserialize, BorshSerialize};
use prism_base::Bytes;
use prism_flashfile::{Lock, lock_soon};
use prism_graph::input::ReaderState;
use prism_graph::scratch::Scratch;
use prism_graph::{Ingest, Saved};
use prism_host::{HostError, read_state, write_state};

use crate::error::StoreError;
use crate::ingest::part_of;
use crate::scratch::{SharedFile, SharedMemory, TemporaryFile};

/// The version of the format of the state.
const VERSION: u32 = 1;
/// The files of the folder: the state, the parts of temporary space, a store that is being written.
const STATE: &str = "state";
const PARTS: [&str; 3] = ["edges32", "edges64", "vertices"];
const STORE: &str = "store";
/// The file that says what the folder is, so that no other folder of this name loses files.
const MARK: &str = "prism-ingest.txt";
const MARK_TEXT: &str = "An ingest of a graph that is not complete: the same command goes on.\n";

/// Bytes of input after which progress is saved, if nothing else is said.
pub const SAVE_EVERY: Bytes = Bytes(256 << 20);

/// What an ingest is of: its input and options.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
struct Source {
    /// The file of edges.
    path: String,
    size: u64,
    /// The time of its last change: seconds and nanoseconds.
    modified: (u64, u32),
    /// Options on which the graph depends: as they are given, and their values.
    options: Vec<(String, String)>,
}

/// Where reading goes on.
#[derive(Clone, Debug, BorshSerialize, BorshDeserialize)]
pub(crate) struct Position {
    /// Unpacked bytes, or rows of a table, that were read.
    pub(crate) position: u64,
    /// Whether these are all.
    pub(crate) complete: bool,
    /// What the reader of lines knows of them.
    pub(crate) reader: Option<ReaderState>,
}

/// The file of the state.
#[derive(Clone, Debug, BorshSerialize, BorshDeserialize)]
struct State {
    version: u32,
    source: Source,
    place: Position,
    saved: Saved,
}

/// The folder, which is made when it is needed.
struct Folder {
    path: PathBuf,
    /// That no other process uses it.
    lock: Mutex<Option<Lock>>,
}

/// What is kept of an ingest.
pub(crate) struct Kept {
    folder: Arc<Folder>,
    source: Source,
    parts: [SharedFile; 3],
    begun: Option<(Position, Saved)>,
    every: u64,
    /// The position that was saved last.
    last: u64,
    has_state: bool,
    saving: Option<JoinHandle<Result<(), StoreError>>>,
}

impl Folder {
    fn failed(&self, source: io::Error) -> StoreError {
        StoreError::temporary(&self.path, source)
    }

    /// Locks it, if it is there.
    fn lock(&self) -> Result<bool, StoreError> {
        loop {
            let folder = match File::open(&self.path) {
                Ok(folder) => folder,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                Err(error) => return Err(self.failed(error)),
            };
            let lock = lock_soon(&self.path, &folder)?;
            // The process that had the lock may have removed the folder before it ended.
            let id = |of: Metadata| (of.dev(), of.ino());
            let locked = folder.metadata().map_err(|error| self.failed(error))?;
            if self.path.metadata().is_ok_and(|there| id(there) == id(locked)) {
                self.set_lock(Some(lock));
                return Ok(true);
            }
        }
    }

    fn set_lock(&self, lock: Option<Lock>) {
        *self.lock.lock().unwrap_or_else(PoisonError::into_inner) = lock;
    }

    /// Whether this program has made it. The mark is its first file and the last to go.
    fn is_ours(&self) -> bool {
        let is_empty = || fs::read_dir(&self.path).is_ok_and(|mut files| files.next().is_none());
        self.path.join(MARK).is_file() || is_empty()
    }

    fn is_locked(&self) -> bool {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Makes it, if that was not done.
    fn make(&self) -> io::Result<()> {
        if self.is_locked() {
            return Ok(());
        }
        // It has its name from when it is locked: another process that begins now would take it for
        // what is left of one that was killed.
        let part = part_of(&self.path);
        // One of a killed process with the same number may be there.
        let _ = fs::remove_file(part.join(MARK)).and_then(|()| fs::remove_dir(&part));
        fs::create_dir(&part)?;
        let lock = self.fill_and_name(&part);
        // It is not there any more if it has its name.
        let _ = fs::remove_file(part.join(MARK)).and_then(|()| fs::remove_dir(&part));
        if let Some(lock) = lock? {
            self.set_lock(Some(lock));
        }
        match self.path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            Some(parent) => File::open(parent)?.sync_all(),
            None => Ok(()),
        }
    }

    /// Marks and locks the new folder `part`, and gives it its name; `None` if there is a folder
    /// with this name, which is locked then.
    fn fill_and_name(&self, part: &Path) -> io::Result<Option<Lock>> {
        let other = |error: StoreError| io::Error::other(error);
        fs::write(part.join(MARK), MARK_TEXT)?;
        let lock = lock_soon(part, &File::open(part)?).map_err(|error| other(error.into()))?;
        loop {
            match fs::rename(part, &self.path) {
                Err(error) if is_not_empty(&error) => {}
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                    return Err(other(self.taken()));
                }
                renamed => return renamed.map(|()| Some(lock)),
            }
            // It has files of the user, or is of an ingest that began after this one. If that ends
            // now, its lock is free, and perhaps the folder is gone.
            if !self.lock().map_err(other)? {
                continue;
            }
            let is_ours = self.is_ours();
            if is_ours && !self.path.join(STATE).exists() {
                fs::write(self.path.join(MARK), MARK_TEXT)?;
                return Ok(None);
            }
            self.set_lock(None);
            if !is_ours {
                return Err(other(self.taken()));
            }
            let what = format!(
                "{}: another ingest to the same store began at the same time and was interrupted; \
                 give the command again",
                self.path.display()
            );
            return Err(other(StoreError::Device(what)));
        }
    }

    /// What is said of a file, or a folder with files of another program, that has its name.
    fn taken(&self) -> StoreError {
        let name = self.path.display();
        StoreError::Refused(format!(
            "{name}: an ingest keeps what it has read in a folder of this name, and there is \
             something of another program; move it away, or name another store"
        ))
    }

    fn open(&self, name: &str, new: bool) -> io::Result<File> {
        let path = self.path.join(name);
        OpenOptions::new().read(true).write(true).create(new).truncate(new).open(path)
    }

    /// Removes what this program has put there, and the folder, unless it has other files.
    fn remove(&self) {
        if !self.is_locked() || !self.is_ours() {
            return;
        }
        // The state first: it must not name what is not there.
        for name in [STATE].into_iter().chain(PARTS).chain([STORE]) {
            // It may not be there.
            let _ = fs::remove_file(self.path.join(name));
        }
        // A state that was being written when the process ended.
        for file in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let name = file.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(".prism-") && name.ends_with(".tmp") {
                let _ = fs::remove_file(file.path());
            }
        }
        let only_mark = fs::read_dir(&self.path).is_ok_and(|files| files.count() <= 1);
        if only_mark {
            let _ = fs::remove_file(self.path.join(MARK));
            let _ = fs::remove_dir(&self.path);
        }
        self.set_lock(None);
    }
}

impl Source {
    fn of(edges: &Path, options: Vec<(String, String)>) -> io::Result<Self> {
        let meta = edges.metadata()?;
        let since = meta.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        let modified = (since.as_secs(), since.subsec_nanos());
        let path = edges.canonicalize()?.display().to_string();
        Ok(Self { path, size: meta.len(), modified, options })
    }

    /// Why an ingest of `self` cannot go on as one of `now`.
    fn differs(&self, now: &Self) -> Option<String> {
        if self.path != now.path {
            return Some(format!("it is of {}", self.path));
        }
        if (self.size, self.modified) != (now.size, now.modified) {
            return Some(format!("{} was changed since", self.path));
        }
        let pairs = self.options.iter().zip(&now.options);
        let changed = pairs.into_iter().find(|(before, now)| before != now);
        changed.map(|((name, before), _)| match before.as_str() {
            "" => format!("it is without {name}"),
            "yes" => format!("it is with {name}"),
            value => format!("it is with {name}={value}"),
        })
    }
}

impl Kept {
    /// What is kept of an ingest of `edges` to `store`, which is that of an earlier process if it
    /// was interrupted; with `restart` that is removed. `None` if `edges` cannot be read again, as
    /// standard input.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if there is something of another input or other options, or if it is
    /// damaged; [`StoreError`] if another process uses it.
    pub(crate) fn begin(
        edges: &Path,
        store: &Path,
        options: Vec<(String, String)>,
        restart: bool,
        shared: &SharedMemory,
        every: Bytes,
    ) -> Result<Option<Self>, StoreError> {
        let mut path = store.to_owned().into_os_string();
        path.push(".ingest");
        if edges != Path::new("-") {
            // Before --restart removes anything.
            edges.metadata().map_err(|source| {
                StoreError::from(HostError::Open { file: edges.display().to_string(), source })
            })?;
        }
        let folder = Arc::new(Folder { path: path.into(), lock: Mutex::new(None) });
        let found = folder.lock()?;
        let name = folder.path.display().to_string();
        let is_ours = found && folder.is_ours();
        let regular = edges != Path::new("-") && edges.metadata().is_ok_and(|of| of.is_file());
        if regular && found && !is_ours {
            return Err(folder.taken());
        }
        if found && restart {
            folder.remove();
        }
        let state = if is_ours && !restart { read(&folder)? } else { None };
        if !regular {
            return match state {
                Some(state) => Err(refused(&name, &format!("it is of {}", state.source.path))),
                None => Ok(None),
            };
        }
        let source = Source::of(edges, options);
        let source = source.map_err(|source| {
            StoreError::from(HostError::Open { file: edges.display().to_string(), source })
        })?;
        if let Some(why) = state.as_ref().and_then(|state| state.source.differs(&source)) {
            return Err(refused(&name, &why));
        }
        if found && state.is_none() {
            // Nothing was saved.
            folder.remove();
        }
        let parts = parts(&folder, shared, state.as_ref().map(|state| state.saved))?;
        let (has_state, begun) = (state.is_some(), state.map(|state| (state.place, state.saved)));
        let last = begun.as_ref().map_or(0, |(place, _)| place.position);
        let every = every.0.max(1);
        Ok(Some(Self { folder, source, parts, begun, every, last, has_state, saving: None }))
    }

    /// Where an earlier process was interrupted, and what it had collected.
    pub(crate) fn begun(&self) -> Option<&(Position, Saved)> {
        self.begun.as_ref()
    }

    /// The parts of temporary space.
    pub(crate) fn parts(&self) -> [Box<dyn Scratch>; 3] {
        self.parts.clone().map(|part| Box::new(part) as Box<dyn Scratch>)
    }

    /// Where the store is written until it is complete, if progress was saved.
    pub(crate) fn store(&self) -> Option<PathBuf> {
        self.has_state.then(|| self.folder.path.join(STORE))
    }

    /// Saves progress if enough was read since the last time, or if edges are in files anyway and
    /// nothing was saved. `each` is the bytes of a step of the position.
    ///
    /// # Errors
    /// [`StoreError::Device`] if there is no space, also for what was saved last.
    pub(crate) fn reached(
        &mut self,
        position: u64,
        each: u64,
        complete: bool,
        ingest: &mut Ingest<'_>,
        reader: impl FnOnce() -> Option<ReaderState>,
    ) -> Result<(), StoreError> {
        let first = !self.has_state && self.parts.iter().any(SharedFile::is_in_file);
        let due = position.saturating_sub(self.last).saturating_mul(each) >= self.every;
        if !(due || first || complete && self.has_state) {
            return Ok(());
        }
        self.wait()?;
        let saved = ingest.save().map_err(|error| StoreError::input(&self.name(), error))?;
        let files = self.parts.each_ref().map(SharedFile::file);
        let files: io::Result<Vec<Arc<File>>> = files.into_iter().collect();
        let files = files.map_err(|error| self.folder.failed(error))?;
        let place = Position { position, complete, reader: reader() };
        let state = State { version: VERSION, source: self.source.clone(), place, saved };
        let folder = Arc::clone(&self.folder);
        self.saving = Some(thread::spawn(move || save(&folder, &files, &state)));
        (self.last, self.has_state) = (position, true);
        if complete { self.wait() } else { Ok(()) }
    }

    /// Waits until what was saved last is durable.
    fn wait(&mut self) -> Result<(), StoreError> {
        let Some(saving) = self.saving.take() else { return Ok(()) };
        let failed = |_| StoreError::Device(format!("{}: it cannot be saved", self.name()));
        saving.join().map_err(failed)?
    }

    fn name(&self) -> String {
        self.folder.path.display().to_string()
    }

    /// Removes everything, after success, or a failure that would come again.
    pub(crate) fn remove(mut self) {
        // What it says does not matter any more.
        let _ = self.wait();
        self.folder.remove();
    }

    /// The same failure, saying that what was saved is kept, if it is.
    pub(crate) fn keep(mut self, error: StoreError) -> StoreError {
        let _ = self.wait();
        if !self.folder.is_locked() || !self.folder.path.join(STATE).exists() {
            return error;
        }
        let folder = self.name();
        let what =
            format!("what was read is kept in {folder}: the same command goes on from there");
        StoreError::Device(format!("{error}; {what}"))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // A thread that is left behind would write to what the next ingest uses.
        let _ = self.wait();
        if !self.folder.path.join(STATE).exists() {
            self.folder.remove();
        }
    }
}

/// Whether a folder could not be replaced because it has files; both codes are in use.
fn is_not_empty(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists)
}

fn refused(name: &str, why: &str) -> StoreError {
    let what = "an ingest was interrupted that this one cannot go on with";
    StoreError::Refused(format!(
        "{name}: {what}: {why}; give the same input and options, or --restart to begin anew"
    ))
}

/// The state in the folder; `None` if there is none.
fn read(folder: &Folder) -> Result<Option<State>, StoreError> {
    let path = folder.path.join(STATE);
    if !path.exists() {
        return Ok(None);
    }
    let name = folder.path.display().to_string();
    let damaged = || refused(&name, "its state is damaged, or of another version of Prism");
    let bytes = read_state(&path).map_err(|_| damaged())?;
    let state = State::try_from_slice(&bytes).ok().filter(|state| state.version == VERSION);
    state.map(Some).ok_or_else(damaged)
}

/// The parts of temporary space, with what was saved of them.
fn parts(
    folder: &Arc<Folder>,
    shared: &SharedMemory,
    saved: Option<Saved>,
) -> Result<[SharedFile; 3], StoreError> {
    let name = folder.path.display().to_string();
    let part = |number: usize| {
        let Some(saved) = saved else {
            let (path, folder) = (folder.path.clone(), Arc::clone(folder));
            let make = move || {
                folder.make()?;
                folder.open(PARTS[number], true)
            };
            let file = TemporaryFile::with(shared.clone(), &path, Box::new(make));
            return Ok(SharedFile::new(file));
        };
        let file = folder.open(PARTS[number], false).map_err(|error| folder.failed(error))?;
        let there = file.metadata().map_err(|error| folder.failed(error))?.len();
        if there < saved.bytes[number] {
            return Err(refused(&name, "some of its edges are missing"));
        }
        let file = TemporaryFile::of(shared.clone(), &folder.path, file, saved.bytes[number]);
        Ok(SharedFile::new(file.map_err(|error| folder.failed(error))?))
    };
    Ok([part(0)?, part(1)?, part(2)?])
}

/// Makes durable what a state names, and then the state.
fn save(folder: &Folder, files: &[Arc<File>], state: &State) -> Result<(), StoreError> {
    let failed = |source| folder.failed(source);
    for file in files {
        file.sync_data().map_err(failed)?;
    }
    let bytes = borsh::to_vec(state).expect("memory takes any bytes");
    write_state(&folder.path.join(STATE), &bytes).map_err(|error| match error {
        HostError::Write { source, .. } => failed(source),
        other => other.into(),
    })?;
    File::open(&folder.path).and_then(|folder| folder.sync_all()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Begins an ingest of the edges in a folder.
    fn begin(folder: &Path) -> Result<Option<Kept>, StoreError> {
        let [edges, store] = ["edges.txt", "g.prism"].map(|name| folder.join(name));
        fs::write(&edges, "1 2\n").unwrap();
        Kept::begin(&edges, &store, Vec::new(), false, &SharedMemory::new(0), SAVE_EVERY)
    }

    /// Two ingests of one store that begin at the same time, before any of them has the folder: the
    /// second one is refused as one that begins later is, and takes nothing from the first one.
    #[test]
    fn the_folder_belongs_to_the_ingest_that_makes_it_first() {
        let folder = tempfile::tempdir().unwrap();
        let names = || {
            let names = fs::read_dir(folder.path()).unwrap();
            let names = names.map(|name| name.unwrap().file_name().into_string().unwrap());
            let mut names: Vec<String> = names.collect();
            names.sort();
            names
        };
        let [mut first, mut second] = [(); 2].map(|()| begin(folder.path()).unwrap().unwrap());
        first.parts[0].append(b"an edge").unwrap();
        let refused = second.parts[0].append(b"another").unwrap_err();
        let in_use = format!("g.prism.ingest: it is in use by process {}", std::process::id());
        let refused = StoreError::temporary(Path::new("edges.txt"), refused);
        assert!(refused.to_string().contains(&in_use), "{refused}");
        let refused = second.keep(refused);
        assert!(!refused.to_string().contains("what was read is kept"), "{refused}");
        assert_eq!(names(), ["edges.txt", "g.prism.ingest"]);
        let Err(later) = begin(folder.path()) else { panic!("a third one") };
        assert!(later.to_string().contains(&in_use), "{later}");
        first.parts[1].append(b"more").unwrap();
        let mut found = [0; 7];
        first.parts[0].read_at(0, &mut found).unwrap();
        assert_eq!(&found, b"an edge");
        drop(first);
        assert_eq!(names(), ["edges.txt"]);
    }

    /// What the user puts where an ingest keeps its edges stays, also if the ingest has begun.
    #[test]
    fn what_another_program_has_put_there_stays() {
        let folder = tempfile::tempdir().unwrap();
        let kept = folder.path().join("g.prism.ingest");
        let check = |error: String| {
            assert!(error.contains("g.prism.ingest: an ingest keeps what it has read"), "{error}");
        };
        let append = |mut ingest: Kept| {
            let refused = ingest.parts[2].append(b"an edge").unwrap_err();
            check(StoreError::temporary(Path::new("edges.txt"), refused).to_string());
        };
        let ingest = begin(folder.path()).unwrap().unwrap();
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join(PARTS[2]), "mine").unwrap();
        append(ingest);
        assert_eq!(fs::read(kept.join(PARTS[2])).unwrap(), b"mine");
        assert_eq!(fs::read_dir(&kept).unwrap().count(), 1);
        let Err(later) = begin(folder.path()) else { panic!("a folder of the user") };
        check(later.to_string());
        fs::remove_dir_all(&kept).unwrap();
        let ingest = begin(folder.path()).unwrap().unwrap();
        fs::write(&kept, "mine").unwrap();
        append(ingest);
        assert_eq!(fs::read(&kept).unwrap(), b"mine");
        let Err(later) = begin(folder.path()) else { panic!("a file of the user") };
        check(later.to_string());
    }
}
