//! Requests of the kernel as calls of the file system.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use fuser::{
    Errno, FileAttr, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenAccMode, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen,
    ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use prism_fs::{
    ACL_ACCESS, ACL_DEFAULT, Allocate, Fs, FsError, NAME_MAX, NewFile, ROOT, Rename, S_IFDIR,
    S_IFMT, S_ISGID, Seek, SetAttr, SetXattr,
};

use crate::convert::{
    STATS, TTL, answer, answer_entry, answer_flush, answer_xattr, file_attr, file_type, list,
    may_end_flush, may_set_group, named_attr, number, stats, takes_bits, time, time_or_now,
    unwritten_blocks,
};
use crate::open::{AnyStore, now};
use crate::opens::{CACHED, DIRECT, Opens};
use crate::options::{AtOnce, MountOptions};
use crate::run::capabilities;
use crate::shared::Shared;

/// The adapter.
pub struct Adapter {
    shared: Arc<Shared>,
    writeback: bool,
    at_once: AtOnce,
    /// Whether the kernel checks access control lists.
    checks_acl: bool,
    /// Whether writes take privileges from files here, so that the kernel need not ask before each
    /// write whether the file has some.
    drops_privileges: bool,
    /// Whether the kernel may be answered that there is no flush.
    ends_flush: bool,
    /// Free blocks below which empty files that are opened for writing pass the kernel's cache by,
    /// so that each write fails by itself when there is no space.
    direct_below: u64,
    opens: Opens,
}

const O_DSYNC: i32 = rustix::fs::OFlags::DSYNC.bits() as i32;
/// Of a small device, one part in this many has to be left before files pass the cache by.
const DIRECT_PART: u64 = 4;

impl Adapter {
    pub fn new(shared: Arc<Shared>, options: &MountOptions) -> Self {
        Self {
            shared,
            writeback: options.writeback,
            at_once: options.at_once(),
            checks_acl: false,
            drops_privileges: false,
            ends_flush: false,
            direct_below: 0,
            opens: Opens::new(options.writeback),
        }
    }

    fn with<T>(
        &self,
        call: impl FnOnce(&mut Fs<AnyStore>) -> Result<T, FsError>,
    ) -> Result<T, Errno> {
        let mut fs = self.shared.fs();
        fs.set_now(now());
        call(&mut fs).map_err(|error| Errno::from_i32(error.errno()))
    }

    /// How a file is opened.
    fn opened(&self, file: u32, flags: OpenFlags) -> (FileHandle, FopenFlags) {
        let is_written = flags.acc_mode() != OpenAccMode::O_RDONLY;
        let is_direct = is_written && self.is_to_be_direct(file);
        self.opens.open(file, is_written, is_direct)
    }

    /// Whether a file is empty and the device nearly full.
    fn is_to_be_direct(&self, file: u32) -> bool {
        if self.direct_below == 0 {
            return false;
        }
        let mut fs = self.shared.fs();
        let space = fs.space();
        space.free < self.direct_below.min(space.blocks / DIRECT_PART)
            && fs.get_attr(file).is_ok_and(|attr| attr.size == 0)
    }

    fn is_acl_refused(&self, name: &[u8]) -> bool {
        !self.checks_acl && [ACL_ACCESS, ACL_DEFAULT].contains(&name)
    }

    /// Changes names, which are durable then if the mount is to be so.
    fn change_names<T>(
        &self,
        call: impl FnOnce(&mut Fs<AnyStore>) -> Result<T, FsError>,
    ) -> Result<T, Errno> {
        self.with(|fs| self.then_sync(fs, AtOnce::Names, &[], call))
    }

    /// Changes a file, which is durable then if the mount is to be so.
    fn change<T>(
        &self,
        ino: INodeNo,
        call: impl FnOnce(&mut Fs<AnyStore>) -> Result<T, FsError>,
    ) -> Result<T, Errno> {
        self.with(|fs| self.then_sync(fs, AtOnce::All, &[number(ino)], call))
    }

    fn then_sync<T>(
        &self,
        fs: &mut Fs<AnyStore>,
        from: AtOnce,
        files: &[u32],
        call: impl FnOnce(&mut Fs<AnyStore>) -> Result<T, FsError>,
    ) -> Result<T, FsError> {
        let done = call(fs)?;
        if self.at_once >= from {
            fs.fsync(files)?;
        }
        Ok(done)
    }

    /// Makes a file or a name of it, as [`Adapter::entry`].
    fn new_entry(
        &self,
        make: impl FnOnce(&mut Fs<AnyStore>) -> Result<u32, FsError>,
    ) -> Result<(FileAttr, Generation), Errno> {
        self.entry(|fs| self.then_sync(fs, AtOnce::Names, &[], make))
    }

    /// Finds or makes a file, to which the kernel then has a reference.
    fn entry(
        &self,
        find: impl FnOnce(&mut Fs<AnyStore>) -> Result<u32, FsError>,
    ) -> Result<(FileAttr, Generation), Errno> {
        self.with(|fs| {
            let ino = find(fs)?;
            let attr = fs.get_attr(ino)?;
            self.shared.keep_invalid(ino);
            fs.hold(ino);
            Ok((self.opens.shown(file_attr(ino, &attr)), Generation(attr.generation)))
        })
    }
}

impl Filesystem for Adapter {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        capabilities(config, self.writeback);
        self.ends_flush = may_end_flush(config.kernel_abi());
        for flag in [InitFlags::FUSE_DO_READDIRPLUS, InitFlags::FUSE_READDIRPLUS_AUTO] {
            let _ = config.add_capabilities(flag);
        }
        // Without the kernel's checks a list would be stored and not obeyed. With them the umask is
        // applied here, because a default list replaces it.
        self.checks_acl = config.add_capabilities(InitFlags::FUSE_POSIX_ACL).is_ok()
            && config.add_capabilities(InitFlags::FUSE_DONT_MASK).is_ok();
        self.drops_privileges = config.add_capabilities(InitFlags::FUSE_HANDLE_KILLPRIV_V2).is_ok();
        // Without this flag such files could not be mapped.
        let may_map = config.add_capabilities(InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP).is_ok();
        if self.writeback && may_map {
            self.direct_below = unwritten_blocks();
        }
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let (dir, name) = (number(parent), name.as_bytes());
        let found = self.with(|fs| {
            let ino = fs.lookup(dir, name)?;
            let attr = named_attr(fs, ino, |fs| fs.entry_kind(dir, name))?;
            self.shared.keep_invalid(ino);
            fs.hold(ino);
            Ok(attr)
        });
        match found {
            Ok((attr, generation, ttl)) => reply.entry(&ttl, &self.opens.shown(attr), generation),
            Err(error) => reply.error(error),
        }
    }

    fn forget(&self, _: &Request, ino: INodeNo, nlookup: u64) {
        // What cannot be removed now is removed by the next mount.
        let _ = self.with(|fs| fs.release(number(ino), nlookup));
    }

    fn getattr(&self, _: &Request, ino: INodeNo, handle: Option<FileHandle>, reply: ReplyAttr) {
        let (file, full) = (number(ino), &self.shared.full);
        let attr = self.with(|fs| match handle {
            Some(CACHED) if full.refuses(file, || fs.space().free) => Err(FsError::NoSpace),
            _ => fs.get_attr(file),
        });
        match attr {
            Ok(attr) => {
                self.shared.keep_invalid(file);
                reply.attr(&TTL, &self.opens.shown(file_attr(file, &attr)));
            }
            Err(error) => reply.error(error),
        }
    }

    fn setattr(
        &self,
        request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        ctime: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let (atime, mtime) = (atime.map(time_or_now), mtime.map(time_or_now));
        let set = SetAttr { mode, uid, gid, size, atime, mtime, ctime: ctime.map(time) };
        let set = self.change(ino, |fs| {
            let ino = number(ino);
            if self.drops_privileges {
                let bits = takes_bits(&set, request.uid() == 0);
                if bits || set.size.is_some() {
                    fs.drop_privileges(ino, bits)?;
                }
            }
            fs.set_attr(ino, set)
        });
        match set {
            Ok(attr) => reply.attr(&TTL, &self.opens.shown(file_attr(number(ino), &attr))),
            Err(error) => reply.error(error),
        }
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        match self.with(|fs| fs.read_link(number(ino))) {
            Ok(target) => reply.data(&target),
            Err(error) => reply.error(error),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        let new = NewFile { mode, uid: request.uid(), gid: request.gid(), rdev, umask };
        answer_entry(self.new_entry(|fs| fs.make(number(parent), name.as_bytes(), new)), reply);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let mode = S_IFDIR | mode & !S_IFMT;
        let new = NewFile { mode, uid: request.uid(), gid: request.gid(), rdev: 0, umask };
        answer_entry(self.new_entry(|fs| fs.make(number(parent), name.as_bytes(), new)), reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer(self.change_names(|fs| fs.unlink(number(parent), name.as_bytes())), reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer(self.change_names(|fs| fs.rmdir(number(parent), name.as_bytes())), reply);
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let new = NewFile { mode: 0, uid: request.uid(), gid: request.gid(), rdev: 0, umask: 0 };
        let (name, target) = (name.as_bytes(), target.as_os_str().as_bytes());
        answer_entry(self.new_entry(|fs| fs.symlink(number(parent), name, target, new)), reply);
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
        let how = match flags {
            RenameFlags::RENAME_NOREPLACE => Rename::NoReplace,
            RenameFlags::RENAME_EXCHANGE => Rename::Exchange,
            RenameFlags::RENAME_WHITEOUT => Rename::Whiteout,
            flags if flags.is_empty() => Rename::Replace,
            _ => return reply.error(Errno::EINVAL),
        };
        let from = (number(parent), name.as_bytes());
        let to = (number(new_parent), new_name.as_bytes());
        answer(self.change_names(|fs| fs.rename(from, to, how)), reply);
    }

    fn link(&self, _: &Request, ino: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let ino = number(ino);
        let linked =
            self.new_entry(|fs| fs.link(ino, number(parent), name.as_bytes()).map(|()| ino));
        answer_entry(linked, reply);
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.shared.read(number(ino), offset, size as usize, reply);
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        flags: WriteFlags,
        opened: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let bits = flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID);
        // The kernel took the privileges when the caller wrote to its cache, which was before; the
        // file may have got others since.
        let from_cache = flags.contains(WriteFlags::FUSE_WRITE_CACHE);
        let written = self.with(|fs| {
            if self.drops_privileges && !from_cache {
                fs.drop_privileges(number(ino), bits)?;
            }
            if from_cache {
                // The kernel takes less than everything for everything.
                let write = if self.writeback { Fs::write_cached } else { Fs::write };
                let written = write(fs, number(ino), offset, data);
                if self.writeback && written == Err(FsError::NoSpace) {
                    self.shared.lost(number(ino), fs.space().free, data.len());
                }
                return written.map(|()| data.len());
            }
            let written = fs.write_what_fits(number(ino), offset, data)?;
            // The kernel asks for an fsync only of files that are in its cache.
            if handle == DIRECT && opened.0 & O_DSYNC != 0 {
                fs.fsync(&[number(ino)])?;
            }
            Ok(written)
        });
        match written {
            Ok(written) => reply.written(written as u32),
            Err(error) => reply.error(error),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        answer_flush(self.ends_flush, reply);
    }

    fn fsync(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.shared.fsync(Some(number(ino)), reply);
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.shared.fsync(None, reply);
    }

    fn opendir(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let flags = FopenFlags::FOPEN_CACHE_DIR | FopenFlags::FOPEN_KEEP_CACHE;
        reply.opened(FileHandle(0), flags);
    }

    fn open(&self, _: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let (handle, flags) = self.opened(number(ino), flags);
        if handle == CACHED {
            self.shared.show_anew(number(ino));
        }
        reply.opened(handle, flags);
    }

    fn release(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        if self.opens.close(number(ino), handle) {
            self.shared.full.closed(number(ino));
            self.shared.show_anew(number(ino));
        }
        reply.ok();
    }

    fn readdir(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let listed = self.with(|fs| {
            list(fs, number(ino), offset, |_, entry, next| {
                let (kind, name) = (file_type(entry.kind.into()), OsStr::from_bytes(&entry.name));
                Ok(reply.add(INodeNo(entry.ino.into()), next, kind, name))
            })
        });
        match listed {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error),
        }
    }

    fn readdirplus(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let listed = self.with(|fs| {
            list(fs, number(ino), offset, |fs, entry, next| {
                let (file, generation, ttl) = named_attr(fs, entry.ino, |_| Ok(entry.kind))?;
                self.shared.keep_invalid(entry.ino);
                let (id, name) = (INodeNo(entry.ino.into()), OsStr::from_bytes(&entry.name));
                let file = self.opens.shown(file);
                let is_full = reply.add(id, next, name, &ttl, &file, generation);
                // The kernel counts no reference to `.` and `..`.
                if !is_full && name != "." && name != ".." {
                    fs.hold(entry.ino);
                }
                Ok(is_full)
            })
        });
        match listed {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error),
        }
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let space = self.shared.fs().space();
        let (blocks, free) = (space.blocks, space.free);
        let nodes = space.nodes + space.nodes_free;
        reply.statfs(blocks, free, free, nodes, space.nodes_free, 4096, NAME_MAX as u32, 4096);
    }

    fn setxattr(
        &self,
        request: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        if self.is_acl_refused(name.as_bytes()) {
            return reply.error(Errno::EOPNOTSUPP);
        }
        let how = [SetXattr::Any, SetXattr::Create, SetXattr::Replace];
        let Some(&how) = how.get(flags as usize) else { return reply.error(Errno::EINVAL) };
        let set = self.change(ino, |fs| {
            fs.set_xattr(number(ino), name.as_bytes(), value, how)?;
            let attr = fs.get_attr(number(ino))?;
            if name.as_bytes() == ACL_ACCESS
                && attr.mode & S_ISGID != 0
                && !may_set_group(request, attr.gid)
            {
                let mode = Some(attr.mode & !S_ISGID);
                fs.set_attr(number(ino), SetAttr { mode, ..SetAttr::default() })?;
            }
            Ok(())
        });
        answer(set, reply);
    }

    fn getxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let name = name.as_bytes();
        if number(ino) == ROOT && name == STATS {
            return answer_xattr(Ok(stats(&mut self.shared.fs())), size, reply);
        }
        if self.is_acl_refused(name) {
            return reply.error(Errno::EOPNOTSUPP);
        }
        answer_xattr(self.with(|fs| fs.get_xattr(number(ino), name)), size, reply);
    }

    fn listxattr(&self, _: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        let names = self.with(|fs| {
            let names = fs.list_xattr(number(ino))?;
            Ok(names.into_iter().flat_map(|name| [name, vec![0]].concat()).collect())
        });
        answer_xattr(names, size, reply);
    }

    fn removexattr(&self, _: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer(self.change(ino, |fs| fs.remove_xattr(number(ino), name.as_bytes())), reply);
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let mode = prism_fs::S_IFREG | mode & !S_IFMT;
        let new = NewFile { mode, uid: request.uid(), gid: request.gid(), rdev: 0, umask };
        match self.new_entry(|fs| fs.make(number(parent), name.as_bytes(), new)) {
            Ok((attr, generation)) => {
                let (handle, flags) = self.opened(number(attr.ino), OpenFlags(flags));
                reply.created(&TTL, &self.opens.shown(attr), generation, handle, flags);
            }
            Err(error) => reply.error(error),
        }
    }

    fn fallocate(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let how = match mode {
            0 => Allocate::Extend,
            1 => Allocate::KeepSize,
            3 => Allocate::Punch,
            0x10 => Allocate::Zero,
            0x11 => Allocate::ZeroKeepSize,
            _ => return reply.error(Errno::EOPNOTSUPP),
        };
        answer(self.change(ino, |fs| fs.allocate(number(ino), offset, length, how)), reply);
    }

    fn lseek(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let what = match whence {
            3 => Seek::Data,
            4 => Seek::Hole,
            _ => return reply.error(Errno::EINVAL),
        };
        let is_cached = self.opens.is_cached(number(ino));
        self.shared.seek(number(ino), offset.max(0) as u64, what, is_cached, reply);
    }
}
