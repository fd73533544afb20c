//! A folder that is mounted a second time: each request of the kernel becomes a call on the same
//! file of the folder. `prism bench fs` measures it next to the file system, because it does
//! nothing itself: what it costs is what FUSE costs.
//!
//! It has files and folders and no links, lists, locks or extended attributes, which the benchmark
//! does not use.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::SystemTime;

use fuser::{
    Errno, FileAttr, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, KernelConfig,
    LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyEmpty, ReplyEntry,
    ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use prism_fs::Time;
use rustix::fs::{self, Advice, AtFlags, Mode, OFlags, RenameFlags as Rename};

use crate::convert::{
    TTL, answer, answer_entry, answer_flush, file_type, may_end_flush, system_time,
};
use crate::run::capabilities;

/// A file that the kernel has a reference to.
struct Node {
    /// Opened as a place only (`O_PATH`), so that the inode is not used for another file.
    place: Arc<File>,
    references: u64,
}

/// A folder, passed through.
pub struct Passthrough {
    nodes: RwLock<HashMap<u64, Node>>,
    files: RwLock<HashMap<u64, Arc<File>>>,
    next: AtomicU64,
    writeback: bool,
    /// How the files of the folder are read: the kernel does not pass on what callers say of that.
    advice: Advice,
    ends_flush: bool,
}

thread_local! {
    /// What a thread reads goes through this.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

const PLACE: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Passthrough {
    /// Passes a folder through, whose files are read as `advice` says.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn new(folder: &Path, writeback: bool, advice: Advice) -> io::Result<Self> {
        let place: File = fs::open(folder, PLACE.union(OFlags::DIRECTORY), Mode::empty())?.into();
        let root = Node { place: Arc::new(place), references: 1 };
        Ok(Self {
            nodes: RwLock::new(HashMap::from([(INodeNo::ROOT.0, root)])),
            files: RwLock::default(),
            next: AtomicU64::new(1),
            writeback,
            advice,
            ends_flush: false,
        })
    }

    fn place(&self, ino: INodeNo) -> Result<Arc<File>, Errno> {
        read(&self.nodes).get(&ino.0).map(|node| Arc::clone(&node.place)).ok_or(Errno::ESTALE)
    }

    /// Calls with the place of a file.
    fn at<T>(&self, ino: INodeNo, call: impl FnOnce(&File) -> io::Result<T>) -> Result<T, Errno> {
        call(&*self.place(ino)?).map_err(Errno::from)
    }

    fn file(&self, handle: FileHandle) -> Result<Arc<File>, Errno> {
        read(&self.files).get(&handle.0).cloned().ok_or(Errno::EBADF)
    }

    fn keep(&self, file: File) -> FileHandle {
        // Without it files are read more slowly or faster, and not wrong.
        let _ = fs::fadvise(&file, 0, None, self.advice);
        let handle = self.next.fetch_add(1, Ordering::Relaxed);
        write(&self.files).insert(handle, Arc::new(file));
        FileHandle(handle)
    }

    /// Finds a file in a folder, to which the kernel then has a reference.
    fn entry(&self, parent: INodeNo, name: &OsStr) -> Result<(FileAttr, Generation), Errno> {
        let (place, attr) = self.at(parent, |folder| {
            let place: File = fs::openat(folder, name, PLACE, Mode::empty())?.into();
            let attr = attributes(&place)?;
            Ok((place, attr))
        })?;
        let mut nodes = write(&self.nodes);
        let node = Node { place: Arc::new(place), references: 0 };
        let node = nodes.entry(attr.ino.0).or_insert(node);
        node.references += 1;
        Ok((attr, Generation(0)))
    }

    fn attributes(&self, ino: INodeNo) -> Result<FileAttr, Errno> {
        let attr = self.at(ino, attributes)?;
        Ok(FileAttr { ino, ..attr })
    }
}

fn attributes(place: &File) -> io::Result<FileAttr> {
    let stat = fs::statat(place, "", AtFlags::EMPTY_PATH)?;
    let time = |secs, nanos: u64| system_time(Time { secs, nanos: nanos as u32 });
    Ok(FileAttr {
        ino: INodeNo(stat.st_ino),
        size: stat.st_size as u64,
        blocks: stat.st_blocks as u64,
        atime: time(stat.st_atime as i64, stat.st_atime_nsec as u64),
        mtime: time(stat.st_mtime as i64, stat.st_mtime_nsec as u64),
        ctime: time(stat.st_ctime as i64, stat.st_ctime_nsec as u64),
        crtime: time(stat.st_ctime as i64, stat.st_ctime_nsec as u64),
        kind: file_type(stat.st_mode >> 12),
        perm: (stat.st_mode & 0o7777) as u16,
        nlink: stat.st_nlink as u32,
        uid: stat.st_uid,
        gid: stat.st_gid,
        rdev: stat.st_rdev as u32,
        blksize: 4096,
        flags: 0,
    })
}

/// Opens a file of which the place is known.
fn open(place: &File) -> io::Result<File> {
    // The kernel reads pages that are written in part, also if the caller only writes.
    let path = path(place);
    match OpenOptions::new().read(true).write(true).open(&path) {
        Err(error) => match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => File::open(path),
            _ => Err(error),
        },
        opened => opened,
    }
}

fn path(place: &File) -> String {
    format!("/proc/self/fd/{}", place.as_raw_fd())
}

fn timespec(time: Option<TimeOrNow>) -> fs::Timespec {
    let (tv_sec, tv_nsec) = match time {
        None => (0, fs::UTIME_OMIT),
        Some(TimeOrNow::Now) => (0, fs::UTIME_NOW),
        Some(TimeOrNow::SpecificTime(time)) => {
            let time = crate::convert::time(time);
            (time.secs, time.nanos.into())
        }
    };
    fs::Timespec { tv_sec, tv_nsec }
}

impl Filesystem for Passthrough {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        capabilities(config, self.writeback);
        self.ends_flush = may_end_flush(config.kernel_abi());
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        answer_entry(self.entry(parent, name), reply);
    }

    fn forget(&self, _: &Request, ino: INodeNo, nlookup: u64) {
        let mut nodes = write(&self.nodes);
        let Some(node) = nodes.get_mut(&ino.0) else { return };
        node.references = node.references.saturating_sub(nlookup);
        let forgotten = if node.references == 0 { nodes.remove(&ino.0) } else { None };
        // Closing it may free the blocks of a removed file, for which no other request has to wait.
        drop(nodes);
        drop(forgotten);
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(ino) {
            Ok(attr) => reply.attr(&TTL, &attr),
            Err(error) => reply.error(error),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _: Option<SystemTime>,
        handle: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let set = self.at(ino, |place| {
            if let Some(size) = size {
                open(place)?.set_len(size)?;
            }
            if let Some(mode) = mode {
                fs::chmod(path(place), Mode::from_raw_mode(mode))?;
            }
            if atime.is_some() || mtime.is_some() {
                let times = fs::Timestamps {
                    last_access: timespec(atime),
                    last_modification: timespec(mtime),
                };
                match handle.and_then(|handle| self.file(handle).ok()) {
                    Some(file) => fs::futimens(file, &times)?,
                    None => fs::utimensat(fs::CWD, path(place), &times, AtFlags::empty())?,
                }
            }
            Ok(())
        });
        match set.and_then(|()| self.attributes(ino)) {
            Ok(attr) => reply.attr(&TTL, &attr),
            Err(error) => reply.error(error),
        }
    }

    fn mkdir(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let mode = Mode::from_raw_mode(mode & !umask);
        let made = self.at(parent, |folder| Ok(fs::mkdirat(folder, name, mode)?));
        answer_entry(made.and_then(|()| self.entry(parent, name)), reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let removed = |folder: &File| Ok(fs::unlinkat(folder, name, AtFlags::empty())?);
        answer(self.at(parent, removed), reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let removed = |folder: &File| Ok(fs::unlinkat(folder, name, AtFlags::REMOVEDIR)?);
        answer(self.at(parent, removed), reply);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let flags = Rename::from_bits_retain(flags.bits());
        let renamed = self.at(parent, |from| {
            let to = self
                .place(new_parent)
                .map_err(|error| io::Error::from_raw_os_error(error.code()))?;
            Ok(fs::renameat_with(from, name, &*to, new_name, flags)?)
        });
        answer(renamed, reply);
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let only_new = OFlags::from_bits_retain(flags as u32) & OFlags::EXCL;
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | only_new;
        let mode = Mode::from_raw_mode(mode & !umask);
        let made = self.at(parent, |folder| Ok(fs::openat(folder, name, flags, mode)?.into()));
        match made.and_then(|file: File| Ok((file, self.entry(parent, name)?))) {
            Ok((file, (attr, generation))) => {
                let flags = FopenFlags::FOPEN_KEEP_CACHE;
                reply.created(&TTL, &attr, generation, self.keep(file), flags);
            }
            Err(error) => reply.error(error),
        }
    }

    fn open(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.at(ino, open) {
            Ok(file) => reply.opened(self.keep(file), FopenFlags::FOPEN_KEEP_CACHE),
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        BUFFER.with_borrow_mut(|buffer| {
            let size = size as usize;
            buffer.resize(buffer.len().max(size), 0);
            let read = self.file(handle).and_then(|file| {
                let mut done = 0;
                while done < size {
                    match file.read_at(&mut buffer[done..size], offset + done as u64)? {
                        0 => break,
                        more => done += more,
                    }
                }
                Ok(done)
            });
            match read {
                Ok(done) => reply.data(&buffer[..done]),
                Err(error) => reply.error(error),
            }
        });
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.file(handle).and_then(|file| Ok(file.write_all_at(data, offset)?)) {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(error),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        answer_flush(self.ends_flush, reply);
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        write(&self.files).remove(&handle.0);
        reply.ok();
    }

    fn fsync(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        data_only: bool,
        reply: ReplyEmpty,
    ) {
        let synced = self.file(handle).and_then(|file| match data_only {
            true => Ok(file.sync_data()?),
            false => Ok(file.sync_all()?),
        });
        answer(synced, reply);
    }

    fn statfs(&self, _: &Request, ino: INodeNo, reply: ReplyStatfs) {
        match self.at(ino, |place| Ok(fs::statvfs(path(place))?)) {
            Ok(of) => reply.statfs(
                of.f_blocks,
                of.f_bfree,
                of.f_bavail,
                of.f_files,
                of.f_ffree,
                of.f_bsize as u32,
                of.f_namemax as u32,
                of.f_frsize as u32,
            ),
            Err(error) => reply.error(error),
        }
    }
}
