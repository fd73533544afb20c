//! Capture by ftrace in an instance of its own: other users of tracing are not disturbed,
//! and several captures run at once. The raw buffers keep nanoseconds.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use prism_trace::{CountFrom, Live};

use super::devices::Disk;
use super::restore::Restorer;
use super::{Backend, CaptureError};

/// Where tracing is reached.
const HOME: &str = "/sys/kernel/tracing";

/// Distinguishes the captures of one process.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Bytes read at once: no page of the buffer is larger.
const PAGE_MAX: usize = 64 << 10;

/// The events of requests.
const EVENTS: [&str; 5] =
    ["block_bio_queue", "block_rq_issue", "block_rq_complete", "block_rq_requeue", "block_split"];

/// Those of devices that have bios only.
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
    /// Starts to record; the reason in words if that does not work here.
    pub fn start(
        disks: &[Disk],
        buffer: u32,
        count_from: CountFrom,
    ) -> Result<(Self, Live), String> {
        let mounted = tracing_is_mounted();
        if !mounted && !rustix::process::geteuid().is_root() {
            return Err("no permission; run as root".into());
        }
        remove_stale();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder =
            Path::new(HOME).join("instances").join(format!("prism-{}-{number}", process::id()));
        let restorer = Restorer::new(&undo(&folder, mounted)).map_err(|error| error.to_string())?;
        if !mounted {
            mount()?;
        }
        fs::create_dir(&folder).map_err(|error| at(&folder, &error))?;
        let mut instance =
            Self { folder, buffers: Vec::new(), page: vec![0; PAGE_MAX], _restorer: restorer };
        let events: &[&str] = if count_from == CountFrom::Queue { &BIO_EVENTS } else { &EVENTS };
        let live = instance.describe(events, count_from)?;
        instance.prepare(disks, buffer, events)?;
        Ok((instance, live))
    }

    /// What the events look like in this kernel.
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
        let cpus = self.folder.join("per_cpu");
        let mut cpus: Vec<PathBuf> = fs::read_dir(&cpus)
            .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
            .map_err(|error| at(&cpus, &error))?;
        cpus.sort();
        for cpu in cpus {
            let path = cpu.join("trace_pipe_raw");
            let nonblock = rustix::fs::OFlags::NONBLOCK.bits() as i32;
            let file = OpenOptions::new().read(true).custom_flags(nonblock).open(&path);
            self.buffers.push(file.map_err(|error| at(&path, &error))?);
        }
        self.set("tracing_on", "1")
    }

    fn set(&self, file: &str, value: &str) -> Result<(), String> {
        write(&self.folder.join(file), value)
    }

    /// Hands everything that was recorded so far to `live`.
    pub fn pump(&mut self, live: &mut Live) -> Result<(), CaptureError> {
        let failed = |what: String| CaptureError::Failed { backend: Backend::Ftrace, what };
        for buffer in &mut self.buffers {
            loop {
                match buffer.read(&mut self.page) {
                    Ok(0) => break,
                    Ok(bytes) => {
                        live.take(&self.page[..bytes]).map_err(|error| failed(error.to_string()))?
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(failed(format!("trace_pipe_raw: {error}"))),
                }
            }
        }
        Ok(())
    }

    /// Records no more, and hands over the rest.
    pub fn stop(&mut self, live: &mut Live) -> Result<(), CaptureError> {
        let failed = |what: String| CaptureError::Failed { backend: Backend::Ftrace, what };
        self.set("tracing_on", "0").map_err(failed)?;
        self.pump(live)?;
        let mut lost = 0;
        for cpu in 0..self.buffers.len() {
            let stats = self.folder.join(format!("per_cpu/cpu{cpu}/stats"));
            lost += losses(&read(&stats).map_err(failed)?);
        }
        live.lost(lost);
        Ok(())
    }
}

/// Events that a buffer had no room for, from its statistics.
fn losses(stats: &str) -> u64 {
    let lines = stats.lines().filter_map(|line| line.split_once(": "));
    let counts =
        lines.filter(|(name, _)| ["overrun", "commit overrun", "dropped events"].contains(name));
    counts.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).sum()
}

/// The condition by which the kernel chooses events. Bios of a partition are queued under
/// its own number.
fn filter(disks: &[Disk]) -> String {
    let number = |&(major, minor): &(u32, u32)| format!("dev == {}", major << 20 | minor);
    let all = disks.iter().flat_map(Disk::numbers);
    all.map(|numbers| number(&numbers)).collect::<Vec<_>>().join(" || ")
}

/// The steps that leave tracing as it was.
fn undo(folder: &Path, mounted: bool) -> Vec<String> {
    let folder = folder.display();
    // The folder is busy for a moment after its files are closed.
    let remove = format!(
        "echo 0 >{folder}/tracing_on; i=0; while [ -d {folder} ] && [ $i -lt 50 ]; do \
         rmdir {folder} && break; i=$((i + 1)); sleep 0.1; done"
    );
    let mut steps = vec![remove];
    if !mounted {
        steps.push(format!("umount {HOME}"));
    }
    steps
}

/// Removes the instances of processes that are gone, should their shells be gone too.
fn remove_stale() {
    let Ok(entries) = fs::read_dir(Path::new(HOME).join("instances")) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid = name
            .to_str()
            .and_then(|name| name.strip_prefix("prism-")?.split('-').next()?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            // Somebody else may remove it at the same time.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn tracing_is_mounted() -> bool {
    Path::new(HOME).join("events").exists()
}

fn mount() -> Result<(), String> {
    let flags = rustix::mount::MountFlags::empty();
    rustix::mount::mount("tracefs", HOME, "tracefs", flags, None)
        .map_err(|error| format!("the tracing file system cannot be mounted: {error}"))
}

fn read(path: &Path) -> Result<String, String> {
    let text = || {
        // Some of these files give what fits into the first reading and then end, so that
        // must have room for all of it.
        let mut bytes = vec![0; PAGE_MAX];
        let (mut file, mut filled) = (File::open(path)?, 0);
        loop {
            match file.read(&mut bytes[filled..])? {
                0 => break,
                more => filled += more,
            }
        }
        bytes.truncate(filled);
        String::from_utf8(bytes).map_err(io::Error::other)
    };
    text().map_err(|error| at(path, &error))
}

fn write(path: &Path, value: &str) -> Result<(), String> {
    fs::write(path, value).map_err(|error| at(path, &error))
}

fn at(path: &Path, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            format!("{}: no permission; run as root", path.display())
        }
        _ => format!("{}: {error}", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_events_are_added_up() {
        let stats = "entries: 3\noverrun: 5\ncommit overrun: 2\nbytes: 100\n\
                     oldest event ts: 1.5\ndropped events: 4\nread events: 9\n";
        assert_eq!(losses(stats), 11);
        assert_eq!(losses(""), 0);
    }
}
