//! Values of the kernel's interface and of the file system, and answers of the kind that many
//! requests have.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    Errno, FileAttr, FileType, Generation, INodeNo, ReplyEmpty, ReplyEntry, ReplyXattr, Request,
    TimeOrNow, Version,
};
use prism_fs::{Attr, DirEntry, Fs, FsError, S_IFDIR, SetAttr, Time};

use crate::open::{AnyStore, now};

/// How long the kernel may rely on an answer: no other program changes the file system.
pub const TTL: Duration = Duration::from_secs(3600);
/// An attribute of the uppermost folder that shows space and what was written, by cause.
pub const STATS: &[u8] = b"user.prism.stats";

pub fn number(ino: INodeNo) -> u32 {
    // The kernel has only numbers that it was given.
    u32::try_from(ino.0).unwrap_or(0)
}

pub fn system_time(time: Time) -> SystemTime {
    let nanos = Duration::from_nanos(time.nanos.into());
    let secs = Duration::from_secs(time.secs.unsigned_abs());
    if time.secs < 0 { UNIX_EPOCH - secs + nanos } else { UNIX_EPOCH + secs + nanos }
}

/// A time of a request. Fuser 0.18 subtracts the nanoseconds of times before 1970 where it should
/// add them.
pub fn time(time: SystemTime) -> Time {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => Time { secs: since.as_secs() as i64, nanos: since.subsec_nanos() },
        Err(error) => {
            let before = error.duration();
            Time { secs: -(before.as_secs() as i64), nanos: before.subsec_nanos() }
        }
    }
}

pub fn time_or_now(given: TimeOrNow) -> Time {
    match given {
        TimeOrNow::SpecificTime(given) => time(given),
        TimeOrNow::Now => now(),
    }
}

pub fn file_type(kind: u32) -> FileType {
    match kind {
        0o01 => FileType::NamedPipe,
        0o02 => FileType::CharDevice,
        0o04 => FileType::Directory,
        0o06 => FileType::BlockDevice,
        0o12 => FileType::Symlink,
        0o14 => FileType::Socket,
        _ => FileType::RegularFile,
    }
}

pub fn file_attr(ino: u32, attr: &Attr) -> FileAttr {
    FileAttr {
        ino: INodeNo(ino.into()),
        size: attr.size,
        blocks: attr.blocks * 8,
        atime: system_time(attr.atime),
        mtime: system_time(attr.mtime),
        ctime: system_time(attr.ctime),
        crtime: system_time(attr.btime),
        kind: file_type(attr.mode >> 12),
        perm: (attr.mode & 0o7777) as u16,
        nlink: attr.nlink,
        uid: attr.uid,
        gid: attr.gid,
        rdev: attr.rdev,
        blksize: 4096,
        flags: 0,
    }
}

/// The attributes of a file for the kernel, and how long it may rely on them. Those of a damaged
/// file are made up and not relied on: its name is there and can be removed, and a call that needs
/// the attributes fails.
pub fn named_attr(
    fs: &mut Fs<AnyStore>,
    ino: u32,
    kind: impl FnOnce(&mut Fs<AnyStore>) -> Result<u8, FsError>,
) -> Result<(FileAttr, Generation, Duration), FsError> {
    match fs.get_attr(ino) {
        Ok(attr) => Ok((file_attr(ino, &attr), Generation(attr.generation), TTL)),
        Err(FsError::Damaged { .. } | FsError::Inconsistent(_)) => {
            let mode = u32::from(kind(fs)?) << 12;
            let mut attr = Attr::default();
            (attr.mode, attr.nlink) = (mode, 1);
            Ok((file_attr(ino, &attr), Generation(0), Duration::ZERO))
        }
        Err(error) => Err(error),
    }
}

/// Blocks of files that the kernel may have written to its cache only, and those of their maps:
/// for a mount by FUSE it takes 1 % of what it takes for all (`max_ratio` in `/sys/class/bdi`),
/// which is 20 % of the memory (`vm.dirty_ratio`), so 0.2 % of it.
pub fn unwritten_blocks() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    kib.unwrap_or(0_u64) / 4 / 500 * 2
}

/// Whether the process of a request may keep the set-group-ID bit of a file of this group, whose
/// access control list it sets. The kernel does not pass on the process's other groups.
pub fn may_set_group(request: &Request, gid: u32) -> bool {
    if request.uid() == 0 || request.gid() == gid {
        return true;
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", request.pid()));
    status.is_ok_and(|status| {
        let groups = status.lines().find_map(|line| line.strip_prefix("Groups:"));
        groups.is_some_and(|groups| groups.split_whitespace().any(|group| group == gid.to_string()))
    })
}

/// Whether a change of attributes takes the set-user-ID and set-group-ID bits of a file: a new
/// owner does, a new size if the caller is not root, and a change of nothing, by which the kernel
/// says that a caller without the right to keep them is about to change the content. Fuser does not
/// pass on whether the caller has that right (CAP_FSETID), so for a new size its user decides.
pub fn takes_bits(set: &SetAttr, is_root: bool) -> bool {
    let SetAttr { mode, uid, gid, size, atime, mtime, ctime: _ } = set;
    if mode.is_some() {
        return false;
    }
    let is_empty = size.is_none() && atime.is_none() && mtime.is_none();
    uid.is_some() || gid.is_some() || is_empty || size.is_some() && !is_root
}

pub fn answer(result: Result<(), Errno>, reply: ReplyEmpty) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

/// Whether close(2) of this kernel writes what is in its cache, and returns the error of that, also
/// if it was answered that there is no flush. Linux before 5.16 then did nothing at all. 7.38 is
/// the protocol of Linux 6.2.
pub fn may_end_flush(kernel: Version) -> bool {
    kernel >= Version(7, 38)
}

/// Answers a flush, before which the kernel has written what it has of the file. Where possible
/// the answer ends these requests: one fewer for each close.
pub fn answer_flush(ends: bool, reply: ReplyEmpty) {
    answer(if ends { Err(Errno::ENOSYS) } else { Ok(()) }, reply);
}

pub fn answer_entry(result: Result<(FileAttr, Generation), Errno>, reply: ReplyEntry) {
    match result {
        Ok((attr, generation)) => reply.entry(&TTL, &attr, generation),
        Err(error) => reply.error(error),
    }
}

pub fn answer_xattr(result: Result<Vec<u8>, Errno>, size: u32, reply: ReplyXattr) {
    match result {
        Ok(value) if size == 0 => reply.size(value.len() as u32),
        Ok(value) if value.len() > size as usize => reply.error(Errno::ERANGE),
        Ok(value) => reply.data(&value),
        Err(error) => reply.error(error),
    }
}

pub fn stats(fs: &mut Fs<AnyStore>) -> Vec<u8> {
    let (space, counts, flash) = (fs.space(), fs.counts(), fs.store().counts());
    let mut text = format!(
        "blocks {}\nfree {}\nfiles_and_nodes {}\nwritten_data {}\nwritten_cleaning {}\n\
         written_folders {}\nwritten_nodes {}\nwritten_table {}\nwritten_checkpoints {}\n\
         written_summaries {}\ndevice_copies {}\ndevice_erases {}\n",
        space.blocks,
        space.free,
        space.nodes,
        counts.data,
        counts.cleaned,
        counts.folders,
        counts.nodes,
        counts.table,
        counts.roots,
        counts.summaries,
        flash.copies,
        flash.erases
    );
    if let Some(failure) = fs.failure() {
        text.push_str(&format!("failure {failure}\n"));
    }
    text.into_bytes()
}

/// Lists a folder from an offset on, until `add` says that there is no more space. The offsets 1
/// and 2 follow `.` and `..`, others an entry with the hash offset - 3.
pub fn list(
    fs: &mut Fs<AnyStore>,
    dir: u32,
    offset: u64,
    mut add: impl FnMut(&mut Fs<AnyStore>, &DirEntry, u64) -> Result<bool, FsError>,
) -> Result<(), FsError> {
    let parent = fs.get_attr(dir)?.parent;
    for (at, ino, name) in [(0, dir, b".".to_vec()), (1, parent, b"..".to_vec())] {
        let entry = DirEntry { hash: 0, ino, kind: (S_IFDIR >> 12) as u8, name };
        if offset <= at && add(fs, &entry, at + 1)? {
            return Ok(());
        }
    }
    let mut from = Some(offset.max(2) - 2);
    while let Some(hash) = from {
        let (entries, next) = fs.list(dir, hash)?;
        for entry in entries {
            if add(fs, &entry, entry.hash + 3)? {
                return Ok(());
            }
        }
        from = next;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_new_kernels_are_answered_that_there_is_no_flush() {
        let may = [(7, 31), (7, 37), (7, 38), (7, 45), (8, 0)]
            .map(|(major, minor)| may_end_flush(Version(major, minor)));
        assert_eq!(may, [false, false, true, true, true]);
    }

    #[test]
    fn times_before_1970_are_kept() {
        for (secs, nanos) in [(0, 0), (5, 7), (-1, 999_999_999), (-5, 0), (-5, 1)] {
            // As fuser makes it of what the kernel sends.
            let since = Duration::new(i64::unsigned_abs(secs), nanos);
            let given = if secs < 0 { UNIX_EPOCH - since } else { UNIX_EPOCH + since };
            let expected = Time { secs, nanos };
            assert_eq!(time(given), expected);
            let answer = system_time(expected);
            assert_eq!(
                answer + Duration::from_secs(10),
                UNIX_EPOCH + Duration::new((secs + 10) as u64, nanos)
            );
        }
    }
}
