//! Capture by ftrace in a separate instance: other users of tracing are not disturbed, and
//! several captures can run at once. The raw buffers have times in nanoseconds.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use prism_trace::{CountFrom, Live};

use super::devices::Disk;
use super::owner::{is_alive, owner};
use super::restore::Restorer;
use super::source::Running;
use super::tracefs::{self, HOME, PAGE_MAX, at, read, write};

/// Distinguishes the captures of one process.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// The events of requests.
const EVENTS: [&str; 5] =
    ["block_bio_queue", "block_rq_issue", "block_rq_complete", "block_rq_requeue", "block_split"];

/// The events of devices that have only bios.
const BIO_EVENTS: [&str; 2] = ["block_bio_queue", "block_bio_complete"];

/// An instance of ftrace that records.
pub(super) struct Instance {
    folder: PathBuf,
    buffers: Vec<File>,
    page: Vec<u8>,
    /// Last, because the folder can be removed when its files are closed.
    _restorer: Restorer,
}

impl Instance {
    /// Starts to record; returns the reason as text if that does not work here.
    pub fn start(
        disks: &[Disk],
        buffer: u32,
        count_from: CountFrom,
    ) -> Result<(Self, Live), String> {
        let mounted = tracefs::is_mounted()?;
        remove_stale();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder =
            Path::new(HOME).join("instances").join(format!("prism-{}-{number}", process::id()));
        let restorer = Restorer::new(&undo(&folder, mounted)).map_err(|error| error.to_string())?;
        if !mounted {
            tracefs::mount()?;
        }
        fs::create_dir(&folder).map_err(|error| at(&folder, &error))?;
        let mut instance =
            Self { folder, buffers: Vec::new(), page: vec![0; PAGE_MAX], _restorer: restorer };
        let events: &[&str] = if count_from == CountFrom::Queue { &BIO_EVENTS } else { &EVENTS };
        let live = instance.describe(events, count_from)?;
        instance.prepare(disks, buffer, events)?;
        Ok((instance, live))
    }

    /// Reads the formats of the events in this kernel.
    fn describe(&self, events: &[&str], count_from: CountFrom) -> Result<Live, String> {
        let home = Path::new(HOME).join("events");
        let header = read(&home.join("header_page"))?;
        let mut texts = Vec::new();
        for &event in events {
            let path = home.join("block").join(event).join("format");
            // Not every kernel has every event.
            if path.exists() {
                texts.push((event, read(&path)?));
            }
        }
        let formats: Vec<_> = texts.iter().map(|(name, text)| (*name, text.as_str())).collect();
        Live::ring(&header, &formats, count_from).map_err(|error| error.to_string())
    }

    fn prepare(&mut self, disks: &[Disk], buffer: u32, events: &[&str]) -> Result<(), String> {
        self.set("trace_clock", "mono")?;
        self.set("buffer_size_kb", &(buffer / 1024).max(4).to_string())?;
        for &event in events {
            let folder = self.folder.join("events/block").join(event);
            if !folder.exists() {
                continue;
            }
            if !disks.is_empty() {
                write(&folder.join("filter"), &filter(disks))?;
            }
            write(&folder.join("enable"), "1")?;
        }
        for cpu in tracefs::cpus(&self.folder)? {
            let path = cpu.join("trace_pipe_raw");
            self.buffers.push(tracefs::open(&path)?);
        }
        self.set("tracing_on", "1")
    }

    fn set(&self, file: &str, value: &str) -> Result<(), String> {
        write(&self.folder.join(file), value)
    }
}

impl Running for Instance {
    fn pump(&mut self, live: &mut Live) -> Result<(), String> {
        self.buffers.iter_mut().try_for_each(|buffer| tracefs::empty(buffer, &mut self.page, live))
    }

    fn stop(&mut self, live: &mut Live) -> Result<(), String> {
        self.set("tracing_on", "0")?;
        self.pump(live)?;
        live.lost(tracefs::lost(&self.folder)?);
        Ok(())
    }
}

/// The condition by which the kernel selects events. Bios of a partition are queued with the
/// number of the partition.
fn filter(disks: &[Disk]) -> String {
    let number = |&(major, minor): &(u32, u32)| format!("dev == {}", major << 20 | minor);
    let all = disks.iter().flat_map(Disk::numbers);
    all.map(|numbers| number(&numbers)).collect::<Vec<_>>().join(" || ")
}

/// The shell commands that restore tracing.
fn undo(folder: &Path, mounted: bool) -> Vec<String> {
    let folder = folder.display();
    // The folder is busy for a moment after its files are closed.
    let remove = format!(
        "echo 0 >{folder}/tracing_on; i=0; while [ -d {folder} ] && [ $i -lt 50 ]; do \
         rmdir {folder} && break; i=$((i + 1)); sleep 0.1; done"
    );
    let mut steps = vec![remove];
    steps.extend(tracefs::unmount(mounted));
    steps
}

/// Removes the instances of processes that have ended, if their shells have ended too.
fn remove_stale() {
    let Ok(entries) = fs::read_dir(Path::new(HOME).join("instances")) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| owner(name, "prism-"));
        if owner.is_some_and(|pid| !is_alive(pid)) {
            // Another process may remove it at the same time.
            let _ = fs::remove_dir(entry.path());
        }
    }
}
