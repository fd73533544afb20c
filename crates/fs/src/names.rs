//! Names: lookups, new files, links, and what removes or moves them.

use prism_segments::Store;

use crate::error::{FsError, Result};
use crate::folder::NAME_MAX;
use crate::format::BLOCK;
use crate::fs::Fs;
use crate::node::{Attr, Node, S_IFCHR, S_IFDIR, S_IFLNK, S_ISGID, XATTRS};
use crate::xattr::Pairs;

/// Links of a file at most.
pub const LINKS_MAX: u32 = 1 << 24;
/// Blocks by which a call that adds a name may grow the file system: buckets, their nodes, an
/// inode.
pub(crate) const GROWTH: u64 = 40;

/// A file to be made.
#[derive(Clone, Copy, Debug)]
pub struct NewFile {
    /// Type and permissions.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group, unless the folder gives its own.
    pub gid: u32,
    /// Device of a special file.
    pub rdev: u32,
    /// Permissions that are removed unless the folder has a default access control list.
    pub umask: u32,
}

/// What a rename does when the new name exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rename {
    /// It replaces it.
    Replace,
    /// It fails.
    NoReplace,
    /// Both change places.
    Exchange,
    /// It replaces it, and leaves a whiteout: a character device 0:0.
    Whiteout,
}

fn kind_of(mode: u32) -> u8 {
    (mode >> 12) as u8
}

fn check_name(name: &[u8]) -> Result<()> {
    match name.len() {
        0 => Err(FsError::NotFound),
        1..=NAME_MAX if name == b"." || name == b".." => Err(FsError::Exists),
        1..=NAME_MAX if name.contains(&b'/') || name.contains(&0) => {
            Err(FsError::Invalid("a name with / or zero bytes"))
        }
        1..=NAME_MAX => Ok(()),
        _ => Err(FsError::NameTooLong),
    }
}

impl<S: Store> Fs<S> {
    fn folder(&mut self, dir: u32) -> Result<Attr> {
        let attr = self.attr(dir)?;
        match attr.is_dir() {
            true if attr.nlink == 0 => Err(FsError::NotFound),
            true => Ok(attr),
            false => Err(FsError::NotDirectory),
        }
    }

    /// The file of a name.
    ///
    /// # Errors
    /// [`FsError::NotFound`], [`FsError::NotDirectory`], and those of reads.
    pub fn lookup(&mut self, dir: u32, name: &[u8]) -> Result<u32> {
        let attr = self.attr(dir)?;
        match name {
            _ if !attr.is_dir() => Err(FsError::NotDirectory),
            b"." => Ok(dir),
            b".." => Ok(attr.parent),
            _ if name.len() > NAME_MAX => Err(FsError::NameTooLong),
            _ => Ok(self.find_entry(dir, name)?.ok_or(FsError::NotFound)?.ino),
        }
    }

    /// The type of a file, as its folder has it: the upper four bits of its mode.
    ///
    /// # Errors
    /// As [`Fs::lookup`].
    pub fn entry_kind(&mut self, dir: u32, name: &[u8]) -> Result<u8> {
        Ok(self.find_entry(dir, name)?.ok_or(FsError::NotFound)?.kind)
    }

    /// The folder changed.
    fn changed(&mut self, dir: u32) -> Result<()> {
        let now = self.now;
        let attr = self.attr_mut(dir)?;
        (attr.mtime, attr.ctime) = (now, now);
        Ok(())
    }

    /// Makes a file, folder or special file.
    ///
    /// # Errors
    /// [`FsError::Exists`], [`FsError::NoSpace`], and those of [`Fs::lookup`].
    pub fn make(&mut self, dir: u32, name: &[u8], new: NewFile) -> Result<u32> {
        check_name(name)?;
        let parent = self.folder(dir)?;
        let (mode, pairs) = self.inherited(dir, &parent, new)?;
        self.make_with(dir, name, NewFile { mode, ..new }, &pairs)
    }

    /// As [`Fs::make`], with this mode and these attributes.
    pub(crate) fn make_with(
        &mut self,
        dir: u32,
        name: &[u8],
        new: NewFile,
        pairs: &Pairs,
    ) -> Result<u32> {
        let parent = self.folder(dir)?;
        if self.find_entry(dir, name)?.is_some() {
            return Err(FsError::Exists);
        }
        let is_dir = new.mode & crate::node::S_IFMT == S_IFDIR;
        if is_dir && parent.nlink >= LINKS_MAX {
            return Err(FsError::TooManyLinks);
        }
        self.begin(GROWTH + if pairs.is_empty() { 0 } else { XATTRS as u64 })?;
        let inherits = parent.mode & S_ISGID != 0;
        self.generation += 1;
        let attr = Attr {
            mode: new.mode | if inherits && is_dir { S_ISGID } else { 0 },
            uid: new.uid,
            gid: if inherits { parent.gid } else { new.gid },
            nlink: if is_dir { 2 } else { 1 },
            rdev: new.rdev,
            generation: self.generation,
            atime: self.now,
            mtime: self.now,
            ctime: self.now,
            btime: self.now,
            parent: if is_dir { dir } else { 0 },
            time: self.ticks(),
            ..Attr::default()
        };
        let ino = self.add_node(Node::inode(attr))?;
        if let Err(error) = self.add_entry(dir, name, ino, kind_of(new.mode)) {
            self.free_node(ino);
            return Err(error);
        }
        self.put_xattrs(ino, pairs)?;
        self.attr_mut(dir)?.nlink += u32::from(is_dir);
        self.changed(dir)?;
        Ok(ino)
    }

    /// Makes a symbolic link.
    ///
    /// # Errors
    /// As [`Fs::make`], and [`FsError::NameTooLong`].
    pub fn symlink(&mut self, dir: u32, name: &[u8], target: &[u8], new: NewFile) -> Result<u32> {
        if target.is_empty() {
            return Err(FsError::NotFound);
        }
        if target.len() >= BLOCK {
            return Err(FsError::NameTooLong);
        }
        let ino = self.make(dir, name, NewFile { mode: S_IFLNK | 0o777, ..new })?;
        self.block_mut((ino, 0), false)?[..target.len()].copy_from_slice(target);
        let attr = self.attr_mut(ino)?;
        attr.size = target.len() as u64;
        Ok(ino)
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// [`FsError::Invalid`] if it is none, and those of reads.
    pub fn read_link(&mut self, ino: u32) -> Result<Vec<u8>> {
        let attr = self.attr(ino)?;
        if attr.kind() != S_IFLNK {
            return Err(FsError::Invalid("not a symbolic link"));
        }
        let wrong = || FsError::Inconsistent(format!("link {ino} has no target"));
        let block = self.block((ino, 0))?.ok_or_else(wrong)?;
        Ok(block.get(..attr.size as usize).ok_or_else(wrong)?.to_vec())
    }

    /// Adds a name to a file.
    ///
    /// # Errors
    /// [`FsError::IsDirectory`], [`FsError::TooManyLinks`], and those of [`Fs::make`].
    pub fn link(&mut self, ino: u32, dir: u32, name: &[u8]) -> Result<()> {
        check_name(name)?;
        self.folder(dir)?;
        let attr = self.attr(ino)?;
        match attr.nlink {
            _ if attr.is_dir() => return Err(FsError::IsDirectory),
            0 => return Err(FsError::NotFound),
            LINKS_MAX.. => return Err(FsError::TooManyLinks),
            _ => {}
        }
        if self.find_entry(dir, name)?.is_some() {
            return Err(FsError::Exists);
        }
        self.begin(GROWTH)?;
        self.add_entry(dir, name, ino, kind_of(attr.mode))?;
        let now = self.now;
        let attr = self.attr_mut(ino)?;
        attr.nlink += 1;
        attr.ctime = now;
        self.changed(dir)
    }

    /// Removes a name that is no folder.
    ///
    /// # Errors
    /// [`FsError::IsDirectory`], and those of [`Fs::lookup`].
    pub fn unlink(&mut self, dir: u32, name: &[u8]) -> Result<()> {
        self.folder(dir)?;
        let entry = self.find_entry(dir, name)?.ok_or(FsError::NotFound)?;
        let attr = self.attr(entry.ino);
        // Of a file that cannot be read its folder has the type.
        let named_dir = entry.kind == (S_IFDIR >> 12) as u8;
        if attr.as_ref().map_or(named_dir, Attr::is_dir) {
            return Err(FsError::IsDirectory);
        }
        self.begin(0)?;
        self.remove_entry(dir, name)?;
        self.changed(dir)?;
        match attr {
            // The name of a file that cannot be read goes; a repair removes the rest.
            Err(FsError::Damaged { .. } | FsError::Inconsistent(_)) => Ok(()),
            _ => self.drop_link(entry.ino),
        }
    }

    /// Removes an empty folder.
    ///
    /// # Errors
    /// [`FsError::NotEmpty`], and those of [`Fs::lookup`].
    pub fn rmdir(&mut self, dir: u32, name: &[u8]) -> Result<()> {
        match name {
            b"." => return Err(FsError::Invalid("the name .")),
            b".." => return Err(FsError::NotEmpty),
            _ => {}
        }
        self.folder(dir)?;
        let entry = self.find_entry(dir, name)?.ok_or(FsError::NotFound)?;
        let attr = self.attr(entry.ino)?;
        match attr.size {
            _ if !attr.is_dir() => return Err(FsError::NotDirectory),
            0 => {}
            _ => return Err(FsError::NotEmpty),
        }
        self.begin(0)?;
        self.remove_entry(dir, name)?;
        self.drop_folder(dir)?;
        self.changed(dir)?;
        self.drop_link(entry.ino)
    }

    /// A folder in another one is gone. The count of a damaged file system may be too small.
    fn drop_folder(&mut self, dir: u32) -> Result<()> {
        let links = &mut self.attr_mut(dir)?.nlink;
        *links = links.saturating_sub(1);
        Ok(())
    }

    /// Whether `dir` is `ancestor`, or is below it.
    fn is_below(&mut self, mut dir: u32, ancestor: u32) -> Result<bool> {
        while dir != ancestor {
            if dir == crate::fs::ROOT {
                return Ok(false);
            }
            dir = self.attr(dir)?.parent;
        }
        Ok(true)
    }

    /// Moves a name.
    ///
    /// # Errors
    /// Those of rename(2).
    pub fn rename(
        &mut self,
        (dir, name): (u32, &[u8]),
        (new_dir, new_name): (u32, &[u8]),
        how: Rename,
    ) -> Result<()> {
        if [name, new_name].iter().any(|name| matches!(**name, [b'.'] | [b'.', b'.'])) {
            return Err(FsError::Invalid("the names . and .."));
        }
        check_name(new_name)?;
        self.folder(dir)?;
        self.folder(new_dir)?;
        let old = self.find_entry(dir, name)?.ok_or(FsError::NotFound)?;
        let moved = self.attr(old.ino)?;
        if moved.is_dir() && self.is_below(new_dir, old.ino)? {
            return Err(FsError::Invalid("a folder cannot be moved below itself"));
        }
        let target = self.find_entry(new_dir, new_name)?;
        if how == Rename::Exchange {
            let target = target.ok_or(FsError::NotFound)?;
            let is_dir = self.attr(target.ino)?.is_dir();
            if is_dir && self.is_below(dir, target.ino)? {
                return Err(FsError::Invalid("a folder cannot be moved below itself"));
            }
            self.begin(0)?;
            self.set_entry(dir, name, target.ino, target.kind)?;
            self.set_entry(new_dir, new_name, old.ino, old.kind)?;
            self.moved(target.ino, new_dir, dir)?;
            return self.moved(old.ino, dir, new_dir);
        }
        if let Some(target) = &target {
            let attr = self.attr(target.ino)?;
            match (moved.is_dir(), attr.is_dir()) {
                _ if how == Rename::NoReplace => return Err(FsError::Exists),
                _ if target.ino == old.ino => return Ok(()),
                (true, false) => return Err(FsError::NotDirectory),
                (false, true) => return Err(FsError::IsDirectory),
                (true, true) if attr.size > 0 => return Err(FsError::NotEmpty),
                _ => {}
            }
        } else if moved.is_dir() && self.attr(new_dir)?.nlink >= LINKS_MAX {
            return Err(FsError::TooManyLinks);
        }
        match (&target, how) {
            // Another file is made below.
            (_, Rename::Whiteout) => self.begin(2 * GROWTH)?,
            // The entries are changed in their places.
            (Some(_), _) => self.begin(0)?,
            (None, _) => self.begin_rename(GROWTH)?,
        }
        match &target {
            Some(_) => self.set_entry(new_dir, new_name, old.ino, old.kind)?,
            None => self.add_entry(new_dir, new_name, old.ino, old.kind)?,
        }
        self.remove_entry(dir, name)?;
        self.moved(old.ino, dir, new_dir)?;
        if let Some(target) = target {
            if target.kind == kind_of(S_IFDIR) {
                self.drop_folder(new_dir)?;
            }
            // A crash must not show the new name without the data.
            self.with_next.insert(old.ino);
            self.drop_link(target.ino)?;
        }
        if how == Rename::Whiteout {
            let (uid, gid) = (moved.uid, moved.gid);
            self.make(dir, name, NewFile { mode: S_IFCHR, uid, gid, rdev: 0, umask: 0 })?;
        }
        Ok(())
    }

    /// A file has moved from one folder to another.
    fn moved(&mut self, ino: u32, from: u32, to: u32) -> Result<()> {
        let now = self.now;
        let attr = self.attr_mut(ino)?;
        attr.ctime = now;
        if attr.is_dir() && from != to {
            attr.parent = to;
            self.drop_folder(from)?;
            let links = &mut self.attr_mut(to)?.nlink;
            *links = links.saturating_add(1);
        }
        self.changed(from)?;
        self.changed(to)
    }
}
