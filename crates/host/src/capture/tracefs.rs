//! The files of the kernel's tracing file system, which the backends of ftrace share.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Where tracing is reached.
pub(super) const HOME: &str = "/sys/kernel/tracing";

/// Bytes read at once: no page of the buffer is larger.
pub(super) const PAGE_MAX: usize = 64 << 10;

/// Whether tracing can be reached already.
pub(super) fn is_mounted() -> Result<bool, String> {
    let mounted = Path::new(HOME).join("events").exists();
    if !mounted && !rustix::process::geteuid().is_root() {
        return Err("no permission; run as root".into());
    }
    Ok(mounted)
}

/// Makes tracing reachable.
pub(super) fn mount() -> Result<(), String> {
    let flags = rustix::mount::MountFlags::empty();
    rustix::mount::mount("tracefs", HOME, "tracefs", flags, None)
        .map_err(|error| format!("the tracing file system cannot be mounted: {error}"))
}

/// The step that undoes [`mount`], if it was needed.
pub(super) fn unmount(was_mounted: bool) -> Option<String> {
    (!was_mounted).then(|| format!("umount {HOME}"))
}

/// Opens a file that hands out what was recorded, without waiting for more.
pub(super) fn open(path: &Path) -> Result<File, String> {
    let nonblock = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(nonblock).open(path);
    file.map_err(|error| at(path, &error))
}

/// Reads `file` until it has no more, and hands each piece to `take`.
pub(super) fn empty(
    file: &mut File,
    page: &mut [u8],
    take: &mut impl FnMut(&[u8]) -> Result<(), String>,
) -> Result<(), String> {
    loop {
        match file.read(page) {
            Ok(0) => return Ok(()),
            Ok(bytes) => take(&page[..bytes])?,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(format!("the trace buffer cannot be read: {error}")),
        }
    }
}

/// The buffers of the processors, of tracing itself or of an instance.
pub(super) fn cpus(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let folder = folder.join("per_cpu");
    let mut cpus: Vec<PathBuf> = fs::read_dir(&folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
        .map_err(|error| at(&folder, &error))?;
    cpus.sort();
    Ok(cpus)
}

/// Events for which the buffers in `folder` had no room.
pub(super) fn lost(folder: &Path) -> Result<u64, String> {
    cpus(folder)?.iter().map(|cpu| Ok(losses(&read(&cpu.join("stats"))?))).sum()
}

/// Events that a buffer had no room for, from its statistics.
fn losses(stats: &str) -> u64 {
    let lines = stats.lines().filter_map(|line| line.split_once(": "));
    let counts =
        lines.filter(|(name, _)| ["overrun", "commit overrun", "dropped events"].contains(name));
    counts.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).sum()
}

pub(super) fn read(path: &Path) -> Result<String, String> {
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
