//! The files of the kernel's tracing file system, for both backends that use ftrace.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use prism_trace::Live;

/// The mount point of the tracing file system.
pub(super) const HOME: &str = "/sys/kernel/tracing";

/// Bytes read at once: the pages of the buffer are not larger.
pub(super) const PAGE_MAX: usize = 64 << 10;

/// Whether the tracing file system is mounted.
pub(super) fn is_mounted() -> Result<bool, String> {
    let mounted = Path::new(HOME).join("events").exists();
    if !mounted && !rustix::process::geteuid().is_root() {
        return Err("no permission; run as root".into());
    }
    Ok(mounted)
}

/// Mounts the tracing file system.
pub(super) fn mount() -> Result<(), String> {
    let flags = rustix::mount::MountFlags::empty();
    rustix::mount::mount("tracefs", HOME, "tracefs", flags, None)
        .map_err(|error| format!("the tracing file system cannot be mounted: {error}"))
}

/// The shell command that undoes [`mount`], if that was needed.
pub(super) fn unmount(was_mounted: bool) -> Option<String> {
    (!was_mounted).then(|| format!("umount {HOME}"))
}

/// Opens a file of recorded events such that reading does not wait for more.
pub(super) fn open(path: &Path) -> Result<File, String> {
    let nonblock = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(nonblock).open(path);
    file.map_err(|error| at(path, &error))
}

/// Reads `file` until it has no more, and passes each piece to `live`.
pub(super) fn empty(file: &mut File, page: &mut [u8], live: &mut Live) -> Result<(), String> {
    loop {
        match file.read(page) {
            Ok(0) => return Ok(()),
            Ok(bytes) => live.take(&page[..bytes]).map_err(|error| error.to_string())?,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(format!("the trace buffer cannot be read: {error}")),
        }
    }
}

/// The per-CPU buffers, of the main instance or of another one.
pub(super) fn cpus(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let folder = folder.join("per_cpu");
    let mut cpus: Vec<PathBuf> = fs::read_dir(&folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
        .map_err(|error| at(&folder, &error))?;
    cpus.sort();
    Ok(cpus)
}

/// Events that were lost because the buffers in `folder` were full.
pub(super) fn lost(folder: &Path) -> Result<u64, String> {
    cpus(folder)?.iter().map(|cpu| Ok(losses(&read(&cpu.join("stats"))?))).sum()
}

/// Lost events, from the statistics of a buffer.
fn losses(stats: &str) -> u64 {
    let lines = stats.lines().filter_map(|line| line.split_once(": "));
    let counts =
        lines.filter(|(name, _)| ["overrun", "commit overrun", "dropped events"].contains(name));
    counts.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).sum()
}

pub(super) fn read(path: &Path) -> Result<String, String> {
    let text = || {
        // Some of these files return only the first read and then end, so the buffer must be
        // large enough for the whole text.
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

pub(super) fn write(path: &Path, value: &str) -> Result<(), String> {
    fs::write(path, value).map_err(|error| at(path, &error))
}

pub(super) fn at(path: &Path, error: &io::Error) -> String {
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
