//! The content of files: reads, writes, truncation, preallocation, holes.

use prism_segments::Store;

use crate::error::{FsError, Result};
use crate::format::BLOCK;
use crate::fs::{Fs, XATTR};
use crate::node::{Attr, HOLE, LEAF, Pointer, RESERVED, S_IFDIR, S_IFREG, S_ISGID, Time};

/// Bytes of a file at most: 16 TiB.
pub const FILE_MAX: u64 = 1 << 44;
/// Blocks that are written between two looks at the space that is left.
const BATCH: u64 = 256;

/// The attribute with the capabilities that a program has.
const CAPABILITY: &[u8] = b"security.capability";
/// The bit of a mode that gives a program the owner of its file.
const S_ISUID: u32 = 0o4000;
/// The bit of a mode by which the group may execute a file.
const S_IXGRP: u32 = 0o010;

/// What fallocate does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocate {
    /// Reserves space; the file grows to the end of the range.
    Extend,
    /// Reserves space; the size stays.
    KeepSize,
    /// Makes a hole; the size stays.
    Punch,
    /// Makes zeros for which space is reserved; the file grows to the end of the range.
    Zero,
    /// Makes zeros for which space is reserved; the size stays.
    ZeroKeepSize,
}

/// What a seek looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seek {
    /// Data.
    Data,
    /// A hole; the end of the file is one.
    Hole,
}

/// Attributes to be changed.
#[derive(Clone, Copy, Debug, Default)]
pub struct SetAttr {
    /// Permissions.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Bytes.
    pub size: Option<u64>,
    /// Last access.
    pub atime: Option<Time>,
    /// Last change of the data.
    pub mtime: Option<Time>,
    /// Last change; now, if it is not given.
    pub ctime: Option<Time>,
}

/// The blocks that a range of bytes covers whole, and those that it touches.
fn covered(begin: u64, end: u64) -> (u64, u64) {
    let block = BLOCK as u64;
    let (first, last) = (begin.div_ceil(block), end / block);
    (first, last.max(first))
}

impl<S: Store> Fs<S> {
    pub(crate) fn regular(&mut self, ino: u32) -> Result<Attr> {
        let attr = self.attr(ino)?;
        match attr.kind() {
            S_IFREG => Ok(attr),
            S_IFDIR => Err(FsError::IsDirectory),
            _ => Err(FsError::Invalid("not a regular file")),
        }
    }

    /// Blocks by which writing a range of blocks grows the file system.
    fn growth(&mut self, ino: u32, begin: u64, end: u64) -> Result<u64> {
        let mut holes = 0;
        let mut index = begin;
        while index < end {
            let (pointers, last) = self.pointers_from(ino, index)?;
            let last = last.min(end);
            let known = &pointers[..pointers.len().min((last - index) as usize)];
            let there = known.iter().filter(|pointer| pointer.addr != HOLE).count() as u64;
            holes += last - index - there;
            index = last;
        }
        if holes > 0 {
            let dirty = self.dirty.range((ino, begin)..(ino, end));
            let new = dirty.filter(|(_, dirty)| dirty.is_new).count() as u64;
            debug_assert!(new <= holes, "a new block is in a hole");
            holes = holes.saturating_sub(new);
        }
        Ok(if holes > 0 { holes + (end - begin) / LEAF as u64 + 6 } else { 0 })
    }

    /// Reads from a file; fewer bytes at its end.
    ///
    /// # Errors
    /// [`FsError::Damaged`] if what is read is not what was written; [`FsError::IsDirectory`].
    pub fn read(&mut self, ino: u32, offset: u64, len: usize) -> Result<Vec<u8>> {
        let size = self.regular(ino)?.size;
        let end = size.min(offset.saturating_add(len as u64));
        if offset >= end {
            return Ok(Vec::new());
        }
        let block = BLOCK as u64;
        let mut bytes = Vec::with_capacity((end - offset) as usize);
        let mut at = offset;
        while at < end {
            if at == offset || (at / block - offset / block).is_multiple_of(BATCH) {
                let index = at / block;
                self.prefetch(ino, index, end.div_ceil(block).min(index + BATCH))?;
            }
            let begin = (at % block) as usize;
            let len = (block - at % block).min(end - at) as usize;
            self.read_block((ino, at / block), begin..begin + len, &mut bytes)?;
            at += len as u64;
        }
        self.touch(ino)?;
        Ok(bytes)
    }

    /// A file was read. The time of the last access changes if it was before the last change, or a
    /// day ago, as with the mount option relatime.
    pub(crate) fn touch(&mut self, ino: u32) -> Result<()> {
        if !self.config.access_times {
            return Ok(());
        }
        let attr = self.attr(ino)?;
        let is_old = attr.atime <= attr.mtime
            || attr.atime <= attr.ctime
            || self.now.secs - attr.atime.secs >= 86_400;
        if is_old && self.now > attr.atime && self.access == crate::Access::ReadWrite {
            self.attr_mut(ino)?.atime = self.now;
        }
        Ok(())
    }

    /// Writes to a file.
    ///
    /// # Errors
    /// [`FsError::NoSpace`] and [`FsError::TooBig`]; then a part may have been written, which the
    /// size shows.
    pub fn write(&mut self, ino: u32, offset: u64, data: &[u8]) -> Result<()> {
        self.write_counted(ino, offset, data).map_err(|(_, error)| error)
    }

    /// As [`Fs::write`], but if there is not enough space, the number of bytes that were written is
    /// returned.
    ///
    /// # Errors
    /// As [`Fs::write`], if nothing was written.
    pub fn write_what_fits(&mut self, ino: u32, offset: u64, data: &[u8]) -> Result<usize> {
        match self.write_counted(ino, offset, data) {
            Ok(()) => Ok(data.len()),
            Err((written, FsError::NoSpace)) if written > 0 => Ok(written),
            Err((_, error)) => Err(error),
        }
    }

    /// As [`Fs::write`], but for data that come from a cache of the caller, who had them before and
    /// sets the times of the file.
    ///
    /// # Errors
    /// As [`Fs::write`].
    pub fn write_cached(&mut self, ino: u32, offset: u64, data: &[u8]) -> Result<()> {
        let Attr { mtime, ctime, .. } = self.regular(ino)?;
        let written = self.write(ino, offset, data);
        let attr = self.attr_mut(ino)?;
        (attr.mtime, attr.ctime) = (mtime, ctime);
        written
    }

    /// An error comes with the bytes that were written before it.
    fn write_counted(
        &mut self,
        ino: u32,
        offset: u64,
        data: &[u8],
    ) -> std::result::Result<(), (usize, FsError)> {
        self.regular(ino).map_err(|error| (0, error))?;
        if offset.checked_add(data.len() as u64).is_none_or(|end| end > FILE_MAX) {
            return Err((0, FsError::TooBig));
        }
        let block = BLOCK as u64;
        let mut written = 0;
        while written < data.len() {
            let at = offset + written as u64;
            let most = (BATCH * block - at % block).min((data.len() - written) as u64) as usize;
            let now = &data[written..written + most];
            self.write_batch(ino, at, now).map_err(|error| (written, error))?;
            written += most;
        }
        Ok(())
    }

    fn write_batch(&mut self, ino: u32, offset: u64, data: &[u8]) -> Result<()> {
        let block = BLOCK as u64;
        let end = offset + data.len() as u64;
        let growth = self.growth(ino, offset / block, end.div_ceil(block))?;
        self.begin(growth)?;
        self.extend(ino, end)?;
        let mut at = offset;
        let mut rest = data;
        let mut blocks = 0;
        while !rest.is_empty() {
            let begin = (at % block) as usize;
            let len = (BLOCK - begin).min(rest.len());
            let (now, later) = rest.split_at(len);
            let key = (ino, at / block);
            match now.try_into() {
                Ok(whole) => self.put_block(key, whole)?,
                Err(_) => self.block_mut(key, true)?[begin..begin + len].copy_from_slice(now),
            }
            rest = later;
            at += len as u64;
            blocks += 1;
        }
        self.clock += blocks;
        let (now, ticks) = (self.now, self.ticks());
        let attr = self.attr_mut(ino)?;
        attr.size = attr.size.max(end);
        (attr.mtime, attr.ctime, attr.time) = (now, now, ticks);
        attr.writes = attr.writes.saturating_add(blocks as u32);
        Ok(())
    }

    /// Zeroes a range within a block, if there is one.
    fn zero_part(&mut self, ino: u32, begin: u64, end: u64) -> Result<()> {
        let key = (ino, begin / BLOCK as u64);
        let is_there = self.dirty_block(key).is_some() || self.pointer(key)?.is_block();
        if is_there && begin < end {
            let from = (begin % BLOCK as u64) as usize;
            self.block_mut(key, true)?[from..from + (end - begin) as usize].fill(0);
        }
        Ok(())
    }

    fn zero_range(&mut self, ino: u32, begin: u64, end: u64) -> Result<()> {
        let (first, last) = covered(begin, end);
        let block = BLOCK as u64;
        if begin / block == (end - 1) / block && (first == last) {
            return self.zero_part(ino, begin, end);
        }
        self.zero_part(ino, begin, first * block)?;
        if last * block < end {
            self.zero_part(ino, last * block, end)?;
        }
        self.remove_pointers(ino, first, last)
    }

    /// Prepares a file to grow to `end`. After a crash its last block may have bytes after the end
    /// of the file, from writes or before a truncation that were cut off.
    fn extend(&mut self, ino: u32, end: u64) -> Result<()> {
        let size = self.attr(ino)?.size;
        let tail = (size % BLOCK as u64) as usize;
        if end <= size || tail == 0 {
            return Ok(());
        }
        let block = self.block((ino, size / BLOCK as u64))?;
        if block.is_some_and(|block| block[tail..].iter().any(|&byte| byte != 0)) {
            self.zero_part(ino, size, size.next_multiple_of(BLOCK as u64))?;
        }
        Ok(())
    }

    fn truncate(&mut self, ino: u32, size: u64) -> Result<()> {
        let before = self.regular(ino)?.size;
        if size > FILE_MAX {
            return Err(FsError::TooBig);
        }
        if size < before {
            let block = BLOCK as u64;
            let tail = size.next_multiple_of(block);
            self.zero_part(ino, size, tail)?;
            self.remove_pointers(ino, size.div_ceil(block), XATTR)?;
        }
        self.extend(ino, size)?;
        let now = self.now;
        let attr = self.attr_mut(ino)?;
        attr.size = size;
        attr.disk_size = attr.disk_size.min(size);
        (attr.mtime, attr.ctime) = (now, now);
        Ok(())
    }

    /// Reserves space in a file, or makes holes or zeros. Nothing is zeroed if there is no space.
    ///
    /// # Errors
    /// [`FsError::NoSpace`], [`FsError::TooBig`], [`FsError::Invalid`].
    pub fn allocate(&mut self, ino: u32, offset: u64, len: u64, how: Allocate) -> Result<()> {
        self.regular(ino)?;
        let end = offset.checked_add(len).filter(|end| *end <= FILE_MAX).ok_or(FsError::TooBig)?;
        if len == 0 {
            return Err(FsError::Invalid("a length of 0"));
        }
        let (first, last) = (offset / BLOCK as u64, end.div_ceil(BLOCK as u64));
        if how == Allocate::Punch {
            self.begin(0)?;
            self.zero_range(ino, offset, end)?;
        } else {
            let capacity = self.capacity_of_files();
            if last - first > capacity {
                return Err(FsError::NoSpace);
            }
            // Parts that were reserved before one is refused would stay so.
            let growth = self.growth(ino, first, last)?;
            self.admit(capacity, growth)?;
            // In parts, since free segments have to hold all nodes that a call changes.
            let parts =
                || (first..last).step_by(BATCH as usize).map(|at| (at, last.min(at + BATCH)));
            for (begin, end) in parts() {
                let growth = self.growth(ino, begin, end)?;
                self.begin(growth)?;
                self.reserve_blocks(ino, begin, end)?;
            }
            if matches!(how, Allocate::Zero | Allocate::ZeroKeepSize) {
                for (first, last) in parts() {
                    self.begin(0)?;
                    let bytes = first * BLOCK as u64..last * BLOCK as u64;
                    self.zero_range(ino, offset.max(bytes.start), end.min(bytes.end))?;
                    // What was zeroed has given back what this takes.
                    self.reserve_blocks(ino, first, last)?;
                }
            }
        }
        let extends = matches!(how, Allocate::Extend | Allocate::Zero);
        if extends {
            self.extend(ino, end)?;
        }
        let now = self.now;
        let attr = self.attr_mut(ino)?;
        if extends {
            attr.size = attr.size.max(end);
        }
        (attr.mtime, attr.ctime) = (now, now);
        Ok(())
    }

    /// Reserves the blocks of a range that have no place.
    fn reserve_blocks(&mut self, ino: u32, first: u64, last: u64) -> Result<()> {
        for index in first..last {
            let key = (ino, index);
            if self.dirty_block(key).is_none() && self.pointer(key)?.addr == HOLE {
                self.set_pointer(key, Pointer { addr: RESERVED, ..Pointer::HOLE })?;
            }
        }
        Ok(())
    }

    /// The next data or hole at or after an offset.
    ///
    /// # Errors
    /// [`FsError::NoData`] if the offset is at the end or after it, or no data follow.
    pub fn seek(&mut self, ino: u32, offset: u64, what: Seek) -> Result<u64> {
        let size = self.regular(ino)?.size;
        if offset >= size {
            return Err(FsError::NoData);
        }
        let block = BLOCK as u64;
        let end = size.div_ceil(block);
        let found = self.seek_block(ino, offset / block, end, what == Seek::Hole)?;
        match (found, what) {
            (Some(index), _) => Ok((index * block).max(offset).min(size)),
            (None, Seek::Hole) => Ok(size),
            (None, Seek::Data) => Err(FsError::NoData),
        }
    }

    /// The attributes of a file.
    ///
    /// # Errors
    /// [`FsError::NotFound`], and those of reads.
    pub fn get_attr(&mut self, ino: u32) -> Result<Attr> {
        let mut attr = self.attr(ino)?;
        attr.blocks += self.new_of_file.get(&ino).copied().unwrap_or(0);
        Ok(attr)
    }

    /// Changes attributes.
    ///
    /// # Errors
    /// As [`Fs::get_attr`] and [`Fs::write`].
    pub fn set_attr(&mut self, ino: u32, set: SetAttr) -> Result<Attr> {
        self.attr(ino)?;
        let pairs = set.mode.map_or(Ok(Vec::new()), |mode| self.with_mode(ino, mode))?;
        self.begin(0)?;
        if let Some(size) = set.size {
            self.truncate(ino, size)?;
        }
        // Mode and list belong to one transaction.
        self.put_xattrs(ino, &pairs)?;
        let now = self.now;
        let attr = self.attr_mut(ino)?;
        if let Some(mode) = set.mode {
            attr.mode = attr.kind() | mode & 0o7777;
        }
        attr.uid = set.uid.unwrap_or(attr.uid);
        attr.gid = set.gid.unwrap_or(attr.gid);
        attr.atime = set.atime.unwrap_or(attr.atime);
        attr.mtime = set.mtime.unwrap_or(attr.mtime);
        attr.ctime = set.ctime.unwrap_or(now);
        self.get_attr(ino)
    }

    /// Takes from a file what a write, a new size or a new owner does: the capabilities of a
    /// program and, if `bits` says so, its set-user-ID bit, and its set-group-ID bit if the group
    /// may execute it.
    ///
    /// # Errors
    /// As [`Fs::get_attr`] and [`Fs::write`].
    pub fn drop_privileges(&mut self, ino: u32, bits: bool) -> Result<()> {
        let attr = self.attr(ino)?;
        let (mode, xattr_bytes, is_dir) = (attr.mode, attr.xattr_bytes, attr.is_dir());
        if xattr_bytes > 0 {
            match self.remove_xattr(ino, CAPABILITY) {
                Ok(()) | Err(FsError::NoAttribute) => {}
                Err(error) => return Err(error),
            }
        }
        let set_group_id = if mode & S_IXGRP == 0 { 0 } else { S_ISGID };
        let privileges = mode & (S_ISUID | set_group_id);
        if !bits || privileges == 0 || is_dir {
            return Ok(());
        }
        let set = SetAttr { mode: Some(mode & !privileges), ..SetAttr::default() };
        self.set_attr(ino, set).map(drop)
    }
}
