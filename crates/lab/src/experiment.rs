//! One combination of application and file system, from the empty device to its trace.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use prism_base::Bytes;
use prism_host::OutputFile;
use prism_host::capture::{self, Backend, Capture, CaptureSpec};
use prism_host::interrupt::Undo;
use prism_host::parquet;

use crate::cgroup::{self, MemoryCgroups};
use crate::child;
use crate::disk::{self, LoopDevice, Mounted};
use crate::error::StackError;
use crate::kinds::{App, Combination, FileSystem, Named};
use crate::leftovers::{own_name, remove_folder};
use crate::library::Wanted;
use crate::worker::{Step, WorkerSpec};

/// The phases of a trace, in their order: the file system is made; the records that live are
/// written; the application runs, and what it left in the page cache is written; what is free
/// is discarded; the file system is unmounted.
pub const PHASES: [&str; 5] = ["mkfs", "load", "app", "trim", "unmount"];

/// Memory in which the kernel keeps events until they are taken: a device in memory makes a
/// few hundred thousand a second.
const BUFFER: Bytes = Bytes(64 << 20);

/// How a trace came about.
#[derive(Clone, Copy, Debug)]
pub struct Recorded {
    /// How requests were seen.
    pub backend: Backend,
    /// Events for which the kernel had no room.
    pub lost: u64,
}

/// The folder in that of the experiment where file systems are mounted.
const MOUNT_POINT: &str = "mnt";

/// How every combination is run.
pub struct ExperimentSpec<'a> {
    /// Size of the device.
    pub size: Bytes,
    /// What application and page cache may take.
    pub memory: Bytes,
    /// Seed of what applications do.
    pub seed: u64,
    /// Where images lie while they are needed.
    pub work_dir: PathBuf,
    /// Where the memory is limited.
    pub cgroups: MemoryCgroups,
    /// The command that does what a worker is told.
    pub worker: &'a dyn Fn(&WorkerSpec) -> Command,
}

/// Combinations that are run one after another, with a folder of their own.
pub struct Experiment<'a> {
    spec: ExperimentSpec<'a>,
    folder: PathBuf,
    _folder: Undo,
}

/// Whether the system has what the experiment needs: rights, programs, libraries, file systems.
///
/// # Errors
/// [`StackError`] saying what is missing.
pub fn check(apps: &[App], file_systems: &[FileSystem], size: Bytes) -> Result<(), StackError> {
    for &fs in file_systems {
        disk::check(fs, size)?;
    }
    for wanted in apps.iter().filter_map(|&app| Wanted::by(app)) {
        wanted.open()?;
    }
    if rustix::process::geteuid().is_root() { Ok(()) } else { Err(StackError::NotRoot) }
}

impl<'a> Experiment<'a> {
    /// Makes the folder.
    ///
    /// # Errors
    /// [`StackError::System`] if the folder to work in is not there, or cannot be written to.
    pub fn new(spec: ExperimentSpec<'a>) -> Result<Self, StackError> {
        let folder = spec.work_dir.join(own_name());
        let undo = Undo::of(|| -> io::Result<_> {
            fs::create_dir(&folder)?;
            let made = folder.clone();
            Ok(move || {
                remove_folder(&made);
            })
        });
        let undo = undo.map_err(StackError::at(&folder, "make the folder"))?;
        let point = folder.join(MOUNT_POINT);
        fs::create_dir(&point).map_err(StackError::at(point, "make the folder"))?;
        Ok(Self { spec, folder, _folder: undo })
    }

    /// A folder for files that nobody needs later: it goes with everything in it.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs `combination` and writes its trace to `trace`, as Parquet. Nothing else of it
    /// stays.
    ///
    /// # Errors
    /// [`StackError`] if the application or something below it fails.
    pub fn run(
        &self,
        combination: Combination,
        mut trace: OutputFile,
    ) -> Result<Recorded, StackError> {
        // They are undone in the opposite order, whichever way this function is left.
        let (memory, _memory) = self.cgroup()?;
        let device = LoopDevice::attach(&self.folder.join("image"), self.spec.size)?;
        let devices = vec![device.path().to_path_buf()];
        let capture = capture::start(&CaptureSpec { devices, backend: None, buffer: BUFFER })?;
        let door = capture.mark_socket().path().to_path_buf();
        let _door = Undo::of(|| Ok::<_, StackError>(move || drop(fs::remove_file(door))))?;
        let lived = self.life(combination, &device, &memory, &capture);
        // The capture ends before its device does, also if something failed.
        let captured = capture.stop();
        lived?;
        let mut captured = captured?;
        let seen = &mut captured.trace;
        parquet::write(&mut trace, &mut seen.spool, &seen.info.symbols, &seen.info.facts)?;
        trace.commit()?;
        Ok(Recorded { backend: captured.backend, lost: captured.lost })
    }

    /// The life of a device, phase by phase.
    fn life(
        &self,
        combination: Combination,
        device: &LoopDevice,
        memory: &Path,
        capture: &Capture,
    ) -> Result<(), StackError> {
        let point = self.folder.join(MOUNT_POINT);
        capture.mark(PHASES[0])?;
        disk::format(combination.fs, device.path())?;
        capture.mark(PHASES[1])?;
        let mounted = Mounted::at(combination.fs, device, &point)?;
        self.work(combination, Step::Load, &point, memory)?;
        // The page cache is empty after this, so that what the application reads is read.
        mounted.unmount()?;
        let mounted = Mounted::at(combination.fs, device, &point)?;
        capture.mark(PHASES[2])?;
        self.work(combination, Step::App, &point, memory)?;
        mounted.sync()?;
        capture.mark(PHASES[3])?;
        mounted.trim()?;
        capture.mark(PHASES[4])?;
        mounted.unmount()
    }

    fn cgroup(&self) -> Result<(PathBuf, Undo), StackError> {
        let mut made = None;
        let undo = Undo::of(|| {
            let folder = self.spec.cgroups.make(&own_name(), self.spec.memory)?;
            made = Some(folder.clone());
            Ok::<_, StackError>(move || {
                cgroup::remove(&folder);
            })
        })?;
        Ok((made.expect("it was made"), undo))
    }

    fn work(
        &self,
        combination: Combination,
        step: Step,
        point: &Path,
        memory: &Path,
    ) -> Result<(), StackError> {
        let Combination { app, pattern, io, .. } = combination;
        let spec = WorkerSpec {
            app,
            pattern,
            io,
            step,
            size: self.spec.size,
            seed: self.spec.seed,
            folder: point.to_path_buf(),
            cgroup: Some(memory.to_path_buf()),
            parent: Some(std::process::id()),
        };
        child::run((self.spec.worker)(&spec), &format!("{} ({})", app.name(), step.name()))
    }
}
