//! Runs a combination of application and file system on an empty device and captures its trace.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use prism_base::Bytes;
use prism_host::OutputFile;
use prism_host::capture::{self, Backend, Capture, CaptureSpec};
use prism_host::interrupt::Undo;
use prism_host::parquet;

use crate::cgroup::{self, MemoryCgroups};
use crate::child;
use crate::disk::{self, LoopDevice, Mounted};
use crate::error::StackError;
use crate::kinds::{App, Combination, FileSystem};
use crate::leftovers::{own_name, remove_folder};
use crate::library::SharedLibrary;
use crate::worker::{Step, WorkerSpec, at_once};

/// The phases of every trace, in order: make the file system; write the live records; run the
/// application and write back the page cache; discard free space; unmount. Phases of reads with
/// cold caches ([`read_phase`]) and [`REMOVE_PHASE`] may follow.
pub const PHASES: [&str; 5] = ["mkfs", "load", "app", "trim", "unmount"];

/// The phase in which the folder of the first of several instances is removed and its space is
/// discarded: all its data dies at once.
pub const REMOVE_PHASE: &str = "remove";

/// The phase of the mount before a phase of reads, or before [`REMOVE_PHASE`].
const MOUNT_PHASE: &str = "mount";

/// The phase in which records are read in order (or at random) with cold caches and a read-ahead of
/// `bytes`: `read-seq-128KiB`.
#[must_use]
pub fn read_phase(step: Step, read_ahead: Bytes) -> String {
    format!("{}-{}KiB", step.name(), read_ahead.0 >> 10)
}

/// Kernel buffer for events: a device in memory causes a few hundred thousand events/s.
const BUFFER: Bytes = Bytes(64 << 20);

/// How a trace was captured.
#[derive(Clone, Copy, Debug)]
pub struct Recorded {
    /// The capture backend.
    pub backend: Backend,
    /// Events lost because the kernel's buffer was full.
    pub lost: u64,
}

/// The mount point in the folder of the experiment.
const MOUNT_POINT: &str = "mnt";

/// How every combination is run.
pub struct ExperimentSpec<'a> {
    /// Size of the device.
    pub size: Bytes,
    /// Limit of memory of the application and its page cache.
    pub memory: Bytes,
    /// About the bytes that an application writes to its files.
    pub written: Bytes,
    /// The longest time that an application writes.
    pub time_max: Option<Duration>,
    /// Settings of the device's read-ahead with each of which records are read with cold caches
    /// after the application has ended.
    pub read_aheads: Vec<Bytes>,
    /// Seed of the operations of applications.
    pub seed: u64,
    /// Folder for temporary images.
    pub work_dir: PathBuf,
    /// The cgroups that limit the memory.
    pub cgroups: MemoryCgroups,
    /// The command that runs a worker.
    pub worker: &'a (dyn Fn(&WorkerSpec) -> Command + Sync),
}

/// Runs combinations one after another in a temporary folder.
pub struct Experiment<'a> {
    spec: ExperimentSpec<'a>,
    folder: PathBuf,
    _folder: Undo,
}

/// Checks that the system has the rights, programs, libraries and file systems that are needed.
///
/// # Errors
/// [`StackError`] saying what is missing.
pub fn check(apps: &[App], file_systems: &[FileSystem], size: Bytes) -> Result<(), StackError> {
    for &fs in file_systems {
        disk::check(fs, size)?;
    }
    for wanted in apps.iter().filter_map(|&app| SharedLibrary::by(app)) {
        wanted.open()?;
    }
    if rustix::process::geteuid().is_root() { Ok(()) } else { Err(StackError::NotRoot) }
}

impl<'a> Experiment<'a> {
    /// Makes the folder.
    ///
    /// # Errors
    /// [`StackError::System`] if the working folder does not exist or cannot be written to.
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

    /// A folder for temporary files, which is removed with its contents at the end.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs `combination` and writes its trace to `trace`, as Parquet. Everything else is removed.
    ///
    /// # Errors
    /// [`StackError`] if the application, the file system or the capture fails.
    pub fn run(
        &self,
        combination: Combination,
        mut trace: OutputFile,
    ) -> Result<Recorded, StackError> {
        // These are undone in reverse order on every return.
        let (memory, _memory) = self.cgroup()?;
        let device = LoopDevice::attach(&self.folder.join("image"), self.spec.size)?;
        let devices = vec![device.path().to_path_buf()];
        let capture = capture::start(&CaptureSpec { devices, backend: None, buffer: BUFFER })?;
        let socket = capture.mark_socket().path().to_path_buf();
        let _socket = Undo::of(|| Ok::<_, StackError>(move || drop(fs::remove_file(socket))))?;
        let result = self.run_phases(combination, &device, &memory, &capture);
        // The capture must end before the device is detached, also after a failure.
        let captured = capture.stop();
        // If the capture failed, its marks did too, which says less.
        let mut captured = captured?;
        result?;
        let recorded = &mut captured.trace;
        parquet::write(
            &mut trace,
            &mut recorded.spool,
            &recorded.info.symbols,
            &recorded.info.facts,
        )?;
        trace.commit()?;
        Ok(Recorded { backend: captured.backend, lost: captured.lost })
    }

    /// Runs the phases on `device`.
    fn run_phases(
        &self,
        combination: Combination,
        device: &LoopDevice,
        memory: &Path,
        capture: &Capture,
    ) -> Result<(), StackError> {
        let point = self.folder.join(MOUNT_POINT);
        capture.mark(PHASES[0])?;
        disk::format(combination.fs, combination.app, device.path())?;
        capture.mark(PHASES[1])?;
        let mounted = Mounted::at(combination.fs, device, &point)?;
        self.work(combination, Step::Load, &point, memory)?;
        // Empties the page cache, so that reads of the application reach the device.
        mounted.unmount()?;
        let mounted = Mounted::at(combination.fs, device, &point)?;
        capture.mark(PHASES[2])?;
        self.work(combination, Step::App, &point, memory)?;
        mounted.sync()?;
        capture.mark(PHASES[3])?;
        mounted.trim()?;
        capture.mark(PHASES[4])?;
        mounted.unmount()?;
        for &read_ahead in &self.spec.read_aheads {
            let _read_ahead = device.set_read_ahead(read_ahead)?;
            for step in [Step::ReadSeq, Step::ReadRand] {
                capture.mark(MOUNT_PHASE)?;
                let mounted = Mounted::at(combination.fs, device, &point)?;
                capture.mark(&read_phase(step, read_ahead))?;
                self.work(combination, step, &point, memory)?;
                capture.mark(PHASES[4])?;
                mounted.unmount()?;
            }
        }
        if combination.instances == 1 {
            return Ok(());
        }
        capture.mark(MOUNT_PHASE)?;
        let mounted = Mounted::at(combination.fs, device, &point)?;
        capture.mark(REMOVE_PHASE)?;
        let first = instance_folder(&point, combination, 0);
        fs::remove_dir_all(&first).map_err(StackError::at(&first, "remove the folder"))?;
        mounted.sync()?;
        mounted.trim()?;
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

    /// Runs a step of every instance at once.
    fn work(
        &self,
        combination: Combination,
        step: Step,
        point: &Path,
        memory: &Path,
    ) -> Result<(), StackError> {
        at_once(combination.instances.into(), |number| {
            self.instance(combination, step, point, memory, number)
        })
    }

    fn instance(
        &self,
        combination: Combination,
        step: Step,
        point: &Path,
        memory: &Path,
        number: u64,
    ) -> Result<(), StackError> {
        let Combination { app, pattern, io, instances, .. } = combination;
        let folder = instance_folder(point, combination, number);
        if step == Step::Load && instances > 1 {
            fs::create_dir(&folder).map_err(StackError::at(&folder, "make the folder"))?;
        }
        let spec = WorkerSpec {
            app,
            pattern,
            io,
            step,
            size: self.spec.size,
            written: self.spec.written,
            time_max: self.spec.time_max,
            instances,
            seed: self.spec.seed.wrapping_add(number),
            folder,
            cgroup: Some(memory.to_path_buf()),
            parent: Some(std::process::id()),
        };
        child::run((self.spec.worker)(&spec), &format!("{} ({})", app.name(), step.name()))
    }
}

/// The folder of instance `number`: the mount point itself if there is only one.
fn instance_folder(point: &Path, combination: Combination, number: u64) -> PathBuf {
    if combination.instances == 1 { point.to_path_buf() } else { point.join(number.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_of_reads_name_order_and_read_ahead() {
        assert_eq!(read_phase(Step::ReadSeq, Bytes(128 << 10)), "read-seq-128KiB");
        assert_eq!(read_phase(Step::ReadRand, Bytes(0)), "read-rand-0KiB");
    }
}
