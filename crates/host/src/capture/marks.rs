//! Marks: the name of a phase, sent to a capture by any process through a socket.
//!
//! Every capture listens at `prism-capture-PID-NUMBER.sock` in the folder for run-time files;
//! `prism capture mark` sends to all of them or to the one that `PRISM_CAPTURE` names. A mark
//! contains the time at which it was made, so a delay does not matter.

use std::fs;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::CaptureError;
use super::owner::{is_alive, owner};

/// The environment variable by which a captured command finds its capture.
pub const VARIABLE: &str = "PRISM_CAPTURE";

/// The most bytes of a name.
pub const NAME_MAX: usize = 256;

/// Distinguishes the captures of one process.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// The socket on which a capture receives marks. Its file is removed when this is dropped.
#[derive(Debug)]
pub struct MarkSocket {
    path: PathBuf,
    socket: UnixDatagram,
}

impl MarkSocket {
    /// Opens a socket of this process, and removes those of processes that have ended.
    pub(super) fn open() -> Result<Self, CaptureError> {
        let folder = folder();
        for (path, pid) in sockets(&folder) {
            if pid != process::id() && !is_alive(pid) {
                // Another process may have removed it meanwhile.
                let _ = fs::remove_file(path);
            }
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("prism-capture-{}-{number}.sock", process::id()));
        // An earlier process with the same number may have left it.
        let _ = fs::remove_file(&path);
        let socket = UnixDatagram::bind(&path).and_then(|socket| {
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        let socket = socket
            .map_err(|source| CaptureError::Kernel { file: path.display().to_string(), source })?;
        Ok(Self { path, socket })
    }

    /// The socket, for `PRISM_CAPTURE`.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A second handle for the thread that receives the marks.
    pub(super) fn listener(&self) -> Result<Listener, CaptureError> {
        let socket = self.socket.try_clone().map_err(|source| CaptureError::Kernel {
            file: self.path.display().to_string(),
            source,
        })?;
        Ok(Listener { socket })
    }

    /// Sends a mark to this socket.
    pub(super) fn mark(&self, name: &str) -> Result<(), CaptureError> {
        send(&self.path, name)
    }
}

impl Drop for MarkSocket {
    fn drop(&mut self) {
        // It may have been removed already.
        let _ = fs::remove_file(&self.path);
    }
}

/// Receives marks.
pub(super) struct Listener {
    socket: UnixDatagram,
}

impl Listener {
    /// The marks that have arrived: name and time of `CLOCK_MONOTONIC` in nanoseconds.
    pub fn take(&self) -> Vec<(String, u64)> {
        let mut marks = Vec::new();
        let mut bytes = [0; 8 + NAME_MAX];
        // An error, which is usually that no more marks have arrived, ends the loop.
        while let Ok(length) = self.socket.recv(&mut bytes) {
            if let Some((time, name)) = bytes[..length].split_first_chunk::<8>() {
                let name = String::from_utf8_lossy(name).into_owned();
                marks.push((name, u64::from_le_bytes(*time)));
            }
        }
        marks
    }
}

/// Sends to every running capture, or to the one that `PRISM_CAPTURE` names, that the phase
/// `name` begins. Returns how many captures received it.
///
/// # Errors
/// [`CaptureError`] if the name is invalid, or no capture is running.
pub fn mark(name: &str) -> Result<usize, CaptureError> {
    check(name)?;
    match std::env::var_os(VARIABLE) {
        Some(path) => send(Path::new(&path), name).map(|()| 1),
        None => mark_all(name),
    }
}

fn mark_all(name: &str) -> Result<usize, CaptureError> {
    let folder = folder();
    let mut sent = 0;
    let mut failure = None;
    for (path, pid) in sockets(&folder) {
        if is_alive(pid) {
            match send(&path, name) {
                Ok(()) => sent += 1,
                Err(error) => failure = Some(error),
            }
        }
    }
    match (sent, failure) {
        (0, Some(error)) => Err(error),
        (0, None) => Err(no_capture(format!(
            "no capture runs here (nothing listens in {}); start one with prism capture",
            folder.display()
        ))),
        _ => Ok(sent),
    }
}

fn check(name: &str) -> Result<(), CaptureError> {
    if name.is_empty() || name.len() > NAME_MAX || name.contains(char::is_control) {
        return Err(no_capture(format!(
            "{name:?} names no phase; give 1 to {NAME_MAX} bytes without control characters"
        )));
    }
    Ok(())
}

/// How long a mark waits for a capture that has no room for it. A capture looks for marks several
/// times a second, unless it has stopped to look.
const PATIENCE: Duration = Duration::from_secs(10);

fn send(path: &Path, name: &str) -> Result<(), CaptureError> {
    send_within(path, name, PATIENCE)
}

fn send_within(path: &Path, name: &str, patience: Duration) -> Result<(), CaptureError> {
    check(name)?;
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let time_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
    let mut bytes = time_ns.to_le_bytes().to_vec();
    bytes.extend_from_slice(name.as_bytes());
    let sent = UnixDatagram::unbound().and_then(|socket| {
        socket.set_write_timeout(Some(patience))?;
        socket.send_to(&bytes, path)
    });
    sent.map(|_| ()).map_err(|source| {
        no_capture(match source.kind() {
            io::ErrorKind::PermissionDenied => format!(
                "{}: no permission to send to this capture; run as its owner",
                path.display()
            ),
            io::ErrorKind::WouldBlock => {
                format!("{}: this capture takes no more marks; stop it", path.display())
            }
            _ => format!("{}: this capture has ended ({source})", path.display()),
        })
    })
}

fn no_capture(what: String) -> CaptureError {
    CaptureError::NoCapture { what }
}

/// The folder for files that live as long as processes.
fn folder() -> PathBuf {
    let folder = PathBuf::from("/run");
    if rustix::process::geteuid().is_root() && folder.is_dir() {
        return folder;
    }
    std::env::var_os("XDG_RUNTIME_DIR").map_or_else(std::env::temp_dir, PathBuf::from)
}

/// The sockets of captures in `folder`, with their processes.
fn sockets(folder: &Path) -> Vec<(PathBuf, u32)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut sockets: Vec<_> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let name = path.file_name()?.to_str()?;
            let pid = owner(name.strip_suffix(".sock")?, "prism-capture-")?;
            Some((path, pid))
        })
        .collect();
    sockets.sort();
    sockets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_does_not_wait_forever_for_a_capture_that_takes_none() {
        let socket = MarkSocket::open().expect("a socket");
        let send = |_| send_within(socket.path(), "phase", Duration::from_millis(10));
        let failed = (0..100_000).map(send).find_map(Result::err).expect("some time it is full");
        assert!(failed.to_string().contains("takes no more marks"), "{failed}");
    }

    #[test]
    fn marks_reach_their_capture_and_no_other() {
        let (one, two) =
            (MarkSocket::open().expect("a socket"), MarkSocket::open().expect("a socket"));
        one.mark("load").expect("sent");
        one.mark("app").expect("sent");
        let names = |mark_socket: &MarkSocket| -> Vec<String> {
            let taken = mark_socket.listener().expect("a handle").take();
            assert!(taken.is_sorted_by_key(|mark| mark.1), "{taken:?}");
            taken.into_iter().map(|mark| mark.0).collect()
        };
        assert_eq!(names(&one), ["load", "app"]);
        assert!(names(&two).is_empty());
        let path = one.path().to_owned();
        drop(one);
        let error = send(&path, "late").expect_err("the capture has ended");
        assert!(error.to_string().contains("has ended"), "{error}");
        let error = two.mark("two\nlines").expect_err("no name");
        assert!(error.to_string().contains("names no phase"), "{error}");
    }
}
