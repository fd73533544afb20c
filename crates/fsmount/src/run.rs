//! Mounting, and what a mount does until it ends.

use std::io;
use std::mem;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use fuser::{Filesystem, InitFlags, KernelConfig};
use prism_fs::Damage;
use rustix::fs::Advice;
use rustix::mount::UnmountFlags;

use crate::adapter::Adapter;
use crate::listed::{Listed, forget_failure, leave_failure};
use crate::open::{Device, MountError, absolute, kernel, now, open};
use crate::options::MountOptions;
use crate::passthrough::Passthrough;
use crate::shared::Shared;

/// Bytes of a write or a read at most, and of what the kernel reads ahead.
pub(crate) const WRITE_MAX: u32 = 1 << 20;
/// The pause between two looks at signals and at files that are to be removed.
const PAUSE: Duration = Duration::from_millis(50);
/// The pause between two parts of the removal of a file, in which other calls get the lock.
const PART_PAUSE: Duration = Duration::from_millis(1);
/// The pause between two looks at what is due. Source: SFS writes segments every 5 s.
const TICK: Duration = Duration::from_secs(5);

/// What a mount reports to its caller and asks it.
pub struct Callbacks<R, S, B> {
    /// The file system is there.
    pub ready: R,
    /// Whether it is to be unmounted.
    pub stop: S,
    /// It is to be unmounted and in use: everything is durable, the folder is free, and the mount
    /// ends when its last file is closed.
    pub in_use: B,
}

/// Mounts the file system of a file on a folder, and serves it until it is unmounted or the caller
/// says so.
///
/// # Errors
/// [`MountError`].
pub fn mount(
    path: &Path,
    folder: &Path,
    options: &MountOptions,
    callbacks: Callbacks<impl FnOnce(), impl Fn() -> bool, impl FnOnce()>,
) -> Result<(), MountError> {
    let path = absolute(path);
    let device = open(&path, options.config.clone(), options.access, Damage::Refuse)?;
    serve(device, &path, folder, options, callbacks)
}

/// As [`mount`], for a device that is open; `path` is its name for the kernel and in errors.
///
/// # Errors
/// [`MountError`].
pub fn serve(
    device: Device,
    path: &Path,
    folder: &Path,
    options: &MountOptions,
    callbacks: Callbacks<impl FnOnce(), impl Fn() -> bool, impl FnOnce()>,
) -> Result<(), MountError> {
    check_folder(folder, options)?;
    forget_failure(path);
    let shared = Arc::new(Shared::new(device.fs));
    let adapter = Adapter::new(Arc::clone(&shared), options);
    let work = Work { shared: &shared, ticked: Instant::now(), listed: None };
    answer_requests(adapter, path, folder, options, callbacks, Some(work))?;
    end(path, &shared)
}

/// What a mount does besides answering requests.
struct Work<'a> {
    shared: &'a Shared,
    ticked: Instant,
    /// The entry for umount(8), if it needs one.
    listed: Option<Listed>,
}

impl Work<'_> {
    /// Does what is due, and returns the pause until the next time.
    fn step(&mut self) -> Duration {
        let mut fs = self.shared.fs();
        fs.set_now(now());
        // A failure makes the file system read-only, which callers see.
        if self.ticked.elapsed() >= TICK {
            let _ = fs.tick();
            self.ticked = Instant::now();
        }
        if fs.remove_part().unwrap_or(false) { PART_PAUSE } else { PAUSE }
    }

    /// Makes everything durable before the end, which may have to wait for callers.
    fn sync(&mut self, folder: &Path) {
        // While the folder is not free yet, so that the entry is not that of a later mount.
        if let Some(listed) = self.listed.take() {
            listed.remove();
        }
        // The kernel may have data, which it writes now: other threads answer it. What fails here
        // fails again at the end.
        let _ = std::fs::File::open(folder).map(rustix::fs::syncfs);
        let mut fs = self.shared.fs();
        fs.set_now(now());
        let _ = fs.sync();
    }
}

/// Whether a file system can be mounted on a folder.
fn check_folder(folder: &Path, options: &MountOptions) -> Result<(), MountError> {
    let name = folder.display();
    let what = match std::fs::read_dir(folder).map(|mut entries| entries.next().is_some()) {
        Ok(true) if !options.nonempty && is_mounted(folder) => {
            format!("{name}: something is mounted on the folder; unmount it, or name another one")
        }
        Ok(true) if !options.nonempty => format!(
            "{name}: the folder is not empty; name an empty one, or hide its files with -o nonempty"
        ),
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            format!("{name}: there is no such folder; make it with mkdir")
        }
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            format!("{name}: this is a file; name a folder to mount on")
        }
        Err(error) if error.kind() == io::ErrorKind::NotConnected => {
            format!("{name}: a mount here has ended without an unmount; unmount it with umount -l")
        }
        Err(error) => format!("{name}: cannot mount on this folder: {error}"),
    };
    Err(MountError::Option(what))
}

/// Whether a folder is the uppermost one of a mount.
fn is_mounted(folder: &Path) -> bool {
    let device = |folder: &Path| rustix::fs::stat(folder).map(|stat| stat.st_dev);
    matches!((device(folder), device(&folder.join(".."))), (Ok(own), Ok(above)) if own != above)
}

/// Mounts the folder `source` a second time, on `folder`, until it is unmounted or `stop` says so:
/// what FUSE costs without a file system of ours. It has files and folders, which is what
/// `prism bench fs` uses, and no more. `advice` says how the files of the source are read.
///
/// # Errors
/// [`MountError::Kernel`].
pub fn pass_through(
    source: &Path,
    folder: &Path,
    options: &MountOptions,
    advice: Advice,
    callbacks: Callbacks<impl FnOnce(), impl Fn() -> bool, impl FnOnce()>,
) -> Result<(), MountError> {
    let through = Passthrough::new(source, options.writeback, advice);
    let through = through.map_err(|error| kernel(source, folder, error))?;
    answer_requests(through, source, folder, options, callbacks, None)
}

/// Answers the requests of the kernel, and does the other work of a mount.
fn answer_requests(
    requests: impl Filesystem + 'static,
    path: &Path,
    folder: &Path,
    options: &MountOptions,
    callbacks: Callbacks<impl FnOnce(), impl Fn() -> bool, impl FnOnce()>,
    mut work: Option<Work>,
) -> Result<(), MountError> {
    let failed = |error| kernel(path, folder, error);
    let Callbacks { ready, stop, in_use } = callbacks;
    let at = folder.canonicalize().map_err(failed)?;
    let session = options.session(&path.display().to_string());
    let session = fuser::spawn_mount(requests, folder, &session).map_err(failed)?;
    if let Some(work) = &mut work {
        work.listed = Listed::new(path, &at);
        work.shared.kernel.begin(session.notifier());
    }
    ready();
    let mut in_use = Some(in_use);
    while !session.guard.is_finished() {
        if in_use.is_some() && stop() {
            if let Some(work) = &mut work {
                work.sync(&at);
            }
            match unmount(&at) {
                Ok(Unmounted::Ended) => break,
                // What is in use is served until it is closed.
                Ok(Unmounted::InUse) => in_use.take().into_iter().for_each(|in_use| in_use()),
                // Users who are not root need a program with more rights, which fuser runs. It
                // does not fail for folders that are in use either.
                Err(_) => return session.umount_and_join().map_err(failed),
            }
        }
        thread::sleep(work.as_mut().map_or(PAUSE, Work::step));
    }
    join(session, folder).map_err(failed)
}

/// How a folder was unmounted.
enum Unmounted {
    /// No program used it.
    Ended,
    /// It has no files any more, and what is in use is there until it is closed.
    InUse,
}

fn unmount(folder: &Path) -> rustix::io::Result<Unmounted> {
    match rustix::mount::unmount(folder, UnmountFlags::empty()) {
        Err(rustix::io::Errno::BUSY) => {
            rustix::mount::unmount(folder, UnmountFlags::DETACH)?;
            Ok(Unmounted::InUse)
        }
        ended => ended.map(|()| Unmounted::Ended),
    }
}

/// Asks the kernel for what requests of any kind of mount need.
pub(crate) fn capabilities(config: &mut KernelConfig, writeback: bool) {
    let wanted = [
        InitFlags::FUSE_PARALLEL_DIROPS,
        InitFlags::FUSE_ASYNC_DIO,
        InitFlags::FUSE_CACHE_SYMLINKS,
    ];
    let writeback = writeback.then_some(InitFlags::FUSE_WRITEBACK_CACHE);
    for flag in wanted.into_iter().chain(writeback) {
        // An older kernel goes on without it.
        let _ = config.add_capabilities(flag);
    }
    let _ = config.set_max_write(WRITE_MAX);
    let _ = config.set_max_readahead(WRITE_MAX);
}

/// Waits for a session that has ended by itself.
///
/// Fuser unmounts the folder when it drops a session, also if it was unmounted before: what is
/// mounted there by now may be another file system. So the session is dropped only if its mount is
/// still there without a connection, as after an abort.
fn join(mut session: fuser::BackgroundSession, folder: &Path) -> io::Result<()> {
    let guard = mem::replace(&mut session.guard, thread::spawn(|| Ok(())));
    let ended = guard.join().map_err(|_| io::Error::other("a thread of the mount has panicked"))?;
    if rustix::fs::stat(folder).err() != Some(rustix::io::Errno::NOTCONN) {
        mem::forget(session);
    }
    ended.or_else(|error| if is_end(&error) { Ok(()) } else { Err(error) })
}

/// Whether reading requests failed because the mount has ended. Fuser takes `ENODEV` for that; the
/// kernel returns `ECONNABORTED` if it ended while a request was being read.
fn is_end(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::CONNABORTED.raw_os_error())
}

/// The end of a mount: what was not durable is, or the error says so.
fn end(path: &Path, shared: &Shared) -> Result<(), MountError> {
    let file = path.display().to_string();
    let ended = shared.end().map_err(|source| MountError::Fs { file, source });
    ended.inspect_err(|error| leave_failure(path, &error.to_string()))
}
