//! A file system that is mounted by this process, on threads with a core of their own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use prism_base::Bytes;
use prism_fsmount::{MountError, MountOptions, make, make_in_memory, pass_through, serve};
use prism_host::interrupt::Undo;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::Args;
use crate::failure::Failure;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// A folder that is passed through.
    PassedThrough,
    /// The file system on a device in memory.
    InMemory,
    /// The file system on a device in a file.
    InFile,
}

impl System {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::PassedThrough, Self::InMemory, Self::InFile];
}

/// A mounted file system.
pub struct Mounted {
    folder: PathBuf,
    stop: Arc<AtomicBool>,
    server: Option<JoinHandle<Result<(), MountError>>>,
    /// Removes what was made.
    _files: Undo,
}

/// The space of the file system, as a multiple of the file that is written.
const ROOM: u64 = 4;
/// The least space: the servers' files have up to 130 MiB, and log and deleted ones follow.
const ROOM_MIN: u64 = 2 << 30;

fn failure(error: MountError) -> Failure {
    Failure::Usage(error.to_string())
}

/// The failure of a file.
pub fn at_path(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Usage(format!("{}: {error}", path.display()))
}

/// Restricts this thread, and those that it will start, to a core: the one with this number among
/// those that the process may use, or any if it has one only.
fn pin(number: usize) {
    let Ok(all) = sched_getaffinity(None) else { return };
    let mine: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| all.is_set(cpu)).collect();
    if let [first, second, ..] = mine[..] {
        let mut one = CpuSet::new();
        one.set([first, second][number]);
        // Without it the figures are less steady, and not wrong.
        let _ = sched_setaffinity(None, &one);
    }
}

impl Mounted {
    /// Makes a file system and mounts it.
    ///
    /// # Errors
    /// [`Failure`] if that is not possible.
    pub fn new(args: &Args, system: System) -> Result<Self, Failure> {
        let name = format!("prism-bench-fs-{}", std::process::id());
        let home = args.folder.join(name);
        let removed = home.clone();
        let files = Undo::of(|| {
            std::fs::create_dir_all(home.join("mounted"))?;
            Ok::<_, std::io::Error>(move || remove(&removed))
        });
        let files = files.map_err(|error| at_path(&home, &error))?;
        let folder = home.join("mounted");
        let size = Bytes((ROOM * args.size.0).max(ROOM_MIN));
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, receiver) = mpsc::channel();
        let (at, flag) = (folder.clone(), Arc::clone(&stop));
        let server = thread::spawn(move || {
            pin(0);
            let options = MountOptions::parse("").expect("no options are fine");
            let ready = || sender.send(()).expect("the receiver waits");
            let stop = || flag.load(Ordering::Acquire);
            let device = match system {
                System::PassedThrough => {
                    let source = home.join("source");
                    std::fs::create_dir_all(&source).map_err(|error| {
                        MountError::Option(format!("{}: {error}", source.display()))
                    })?;
                    return pass_through(&source, &at, &options, ready, stop);
                }
                System::InMemory => make_in_memory(size, None, options.config.clone())?,
                System::InFile => make(&home.join("device.prism"), size)?,
            };
            serve(device, &home, &at, &options, ready, stop)
        });
        if receiver.recv().is_err() {
            // It ended before it was mounted.
            return match server.join().expect("the server does not panic") {
                Err(error) => Err(failure(error)),
                Ok(()) => Err(Failure::Usage("the mount ended at once".into())),
            };
        }
        pin(1);
        Ok(Self { folder, stop, server: Some(server), _files: files })
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
        self.join().map_err(failure)
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
    let _ = rustix::mount::unmount(home.join("mounted"), rustix::mount::UnmountFlags::DETACH);
    let _ = std::fs::remove_dir_all(home);
}
