//! A file system that is mounted by this process, on threads with a core of their own.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::{self, JoinHandle};

use prism_base::Bytes;
use prism_fsmount::{
    Callbacks, MEMORY, MountError, MountOptions, make, make_in_memory, pass_through, serve,
};
use prism_host::interrupt::Undo;
use rustix::fs::Advice;
use rustix::mount::UnmountFlags;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::Args;
use crate::failure::Failure;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// A folder in memory (`/dev/shm`) that is passed through.
    MemoryThrough,
    /// The file system on a device in memory.
    InMemory,
    /// A folder of the file system that is measured, passed through.
    FolderThrough,
    /// The file system on a device in a file of the same folder.
    InFile,
}

impl System {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::MemoryThrough, Self::InMemory, Self::FolderThrough, Self::InFile];
}

/// A mounted file system.
pub struct Mounted {
    folder: PathBuf,
    source: Option<PathBuf>,
    stop: Arc<AtomicBool>,
    server: Option<JoinHandle<Result<(), MountError>>>,
    /// Removes what was made.
    _files: Undo,
}

/// The space of the file system, as a multiple of the file that is written.
const ROOM: u64 = 4;
/// The least space: the servers' files have up to 130 MiB, and log and deleted ones follow.
const ROOM_MIN: u64 = 2 << 30;

/// The failure of a file.
pub fn at_path(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Usage(format!("{}: {error}", path.display()))
}

/// The cores that the process may use.
#[must_use]
pub fn cores() -> &'static [usize] {
    static CORES: OnceLock<Vec<usize>> = OnceLock::new();
    CORES.get_or_init(|| {
        let all = sched_getaffinity(None).unwrap_or_default();
        (0..CpuSet::MAX_CPU).filter(|&cpu| all.is_set(cpu)).collect()
    })
}

/// Restricts this thread, and those that it will start, to one of two cores, if there are two.
fn pin(number: usize) {
    if let [first, second, ..] = *cores() {
        let mut one = CpuSet::new();
        one.set([first, second][number]);
        // Without it the figures are less steady, and not wrong.
        let _ = sched_setaffinity(None, &one);
    }
}

/// Allows as many open files as the system does: what is passed through has one for each file that
/// the kernel remembers.
fn open_files() {
    let limit = getrlimit(Resource::Nofile);
    // A server with too few says so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

impl Mounted {
    /// Makes a file system and mounts it; `advice` says how files that are passed through are read.
    ///
    /// # Errors
    /// [`Failure`] if that is not possible.
    pub fn new(args: &Args, system: System, advice: Advice) -> Result<Self, Failure> {
        open_files();
        let parent = match system {
            System::MemoryThrough => Path::new("/dev/shm"),
            _ => &args.folder,
        };
        let home = parent.join(format!("prism-bench-fs-{}", std::process::id()));
        let (folder, source) = (home.join("mounted"), home.join("source"));
        let (made, removed) = ([home.clone(), folder.clone(), source.clone()], home.clone());
        let files = Undo::of(|| {
            made.iter().try_for_each(std::fs::create_dir)?;
            Ok::<_, std::io::Error>(move || remove(&removed))
        });
        let files = files.map_err(|error| at_path(&home, &error))?;
        let size = Bytes((ROOM * args.size.0).max(ROOM_MIN));
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, receiver) = mpsc::channel();
        let (at, from, flag) = (folder.clone(), source.clone(), Arc::clone(&stop));
        let server = thread::spawn(move || {
            pin(0);
            let options = MountOptions::parse("").expect("no options are fine");
            let ready = || sender.send(()).expect("the receiver waits");
            let stop = || flag.load(Ordering::Acquire);
            let callbacks = Callbacks { ready, stop, in_use: || () };
            let (device, name) = match system {
                System::MemoryThrough | System::FolderThrough => {
                    return pass_through(&from, &at, &options, advice, callbacks);
                }
                System::InMemory => {
                    let made = make_in_memory(size, None, options.config.clone())?;
                    (made, PathBuf::from(MEMORY))
                }
                System::InFile => {
                    let file = home.join("device.prism");
                    (make(&file, size)?, file)
                }
            };
            serve(device, &name, &at, &options, callbacks)
        });
        if receiver.recv().is_err() {
            // It ended before it was mounted.
            return match server.join().expect("the server does not panic") {
                Err(error) => Err(Failure::usage(error)),
                Ok(()) => Err(Failure::Usage("the mount ended at once".into())),
            };
        }
        pin(1);
        let is_through = matches!(system, System::MemoryThrough | System::FolderThrough);
        let source = is_through.then_some(source);
        Ok(Self { folder, source, stop, server: Some(server), _files: files })
    }

    /// The folder that is passed through.
    #[must_use]
    pub fn source(&self) -> Option<&Path> {
        self.source.as_deref()
    }

    /// The folder in which its files are.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Unmounts it.
    ///
    /// # Errors
    /// [`Failure`] if what was written could not be made durable.
    pub fn end(mut self) -> Result<(), Failure> {
        self.join().map_err(Failure::usage)
    }

    fn join(&mut self) -> Result<(), MountError> {
        self.stop.store(true, Ordering::Release);
        self.server.take().map_or(Ok(()), |server| server.join().expect("it does not panic"))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // An error has been reported already.
        let _ = self.join();
    }
}

/// Unmounts the folder, if it still is mounted, and removes what was made.
fn remove(home: &Path) {
    // After a signal a caller of this process may wait for an answer that none will give: by force,
    // its call fails.
    let flags = UnmountFlags::FORCE | UnmountFlags::DETACH;
    let _ = rustix::mount::unmount(home.join("mounted"), flags);
    for _ in 0..10 {
        // Other threads may go on until the process ends.
        if std::fs::remove_dir_all(home).is_ok() {
            return;
        }
    }
}
