//! The removal of files: at once if they are small, in parts if they are large, and when the last
//! caller gives them back if they are open.
//!
//! A file without names is an orphan until it is gone: the log has it with a link count of 0, and a
//! mount after a crash removes it. Parts of its map are thus removed one by one, each like a call
//! of its own, and other calls go on between them.

use prism_segments::Store;

use crate::error::{FsError, Result};
use crate::fs::{Fs, XATTR};
use crate::node::{HOLE, LEAF, Pointer, XATTRS};

impl<S: Store> Fs<S> {
    /// A name of a file is gone. Without names it is removed when no caller has it open.
    pub(crate) fn drop_link(&mut self, ino: u32) -> Result<()> {
        let now = self.now;
        let attr = self.attr_mut(ino)?;
        attr.nlink = if attr.is_dir() { 0 } else { attr.nlink.saturating_sub(1) };
        attr.ctime = now;
        if attr.nlink > 0 {
            return Ok(());
        }
        if self.references.contains_key(&ino) {
            self.orphans.insert(ino);
            return Ok(());
        }
        self.begin_removal(ino)
    }

    /// Removes the first part of a file without names. What is left is removed by
    /// [`Fs::remove_part`].
    fn begin_removal(&mut self, ino: u32) -> Result<()> {
        self.with_next.remove(&ino);
        self.orphans.insert(ino);
        self.remove_part_of(ino)
    }

    /// Removes a part of a file without names; the file itself after the last part.
    fn remove_part_of(&mut self, ino: u32) -> Result<()> {
        let mut leaves = self.config.removal_leaves.max(1);
        self.removals.remove(&ino);
        self.remove_some_pointers(ino, 0, XATTR, &mut leaves)?;
        let attr = self.attr(ino)?;
        if attr.root != 0 {
            self.removals.insert(ino, attr.blocks);
            return Ok(());
        }
        self.remove_xattr_blocks(ino, 0)?;
        self.free_node(ino);
        self.orphans.remove(&ino);
        Ok(())
    }

    /// Removes a part of a large file whose last name is gone. Returns whether parts are left, for
    /// which callers call it again, soon, and after other calls that wait.
    ///
    /// # Errors
    /// [`FsError::ReadOnly`], and those of the store.
    pub fn remove_part(&mut self) -> Result<bool> {
        if !self.removals.is_empty() {
            self.begin(0)?;
            self.remove_next_part()?;
        }
        Ok(!self.removals.is_empty())
    }

    /// Removes all that is left of large files whose names are gone: its space is needed.
    pub(crate) fn finish_removals(&mut self) -> Result<()> {
        while !self.removals.is_empty() {
            self.remove_next_part()?;
        }
        Ok(())
    }

    fn remove_next_part(&mut self) -> Result<()> {
        let Some(&ino) = self.removals.keys().next() else { return Ok(()) };
        match self.remove_part_of(ino) {
            // It stays an orphan. The next mount tries again, and then fsck finds it.
            Err(FsError::Damaged { .. } | FsError::Inconsistent(_)) => Ok(()),
            result => result,
        }
    }

    /// Blocks that large files without names still take, with the leaves of their maps.
    pub(crate) fn blocks_of_removals(&self) -> u64 {
        self.removals.values().map(|blocks| blocks + blocks / LEAF as u64).sum()
    }

    pub(crate) fn remove_xattr_blocks(&mut self, ino: u32, from: usize) -> Result<()> {
        for at in from as u64..XATTRS as u64 {
            let key = (ino, XATTR + at);
            self.take_dirty(key);
            self.blocks.remove(key);
            if self.pointer(key)?.addr != HOLE {
                self.set_pointer(key, Pointer::HOLE)?;
            }
        }
        Ok(())
    }

    /// A caller has a file, so that it stays when its last name is removed.
    pub fn hold(&mut self, ino: u32) {
        *self.references.entry(ino).or_default() += 1;
    }

    /// A caller gives `count` references back.
    ///
    /// # Errors
    /// Those of removing the file, if it has no names.
    pub fn release(&mut self, ino: u32, count: u64) -> Result<()> {
        let Some(left) = self.references.get_mut(&ino) else { return Ok(()) };
        *left = left.saturating_sub(count);
        if *left > 0 {
            return Ok(());
        }
        self.references.remove(&ino);
        if self.orphans.contains(&ino) && self.begin(0).is_ok() {
            return self.begin_removal(ino);
        }
        Ok(())
    }

    /// Removes all files without names.
    pub(crate) fn remove_orphans(&mut self) -> Result<()> {
        self.removals = self.orphans.iter().map(|&ino| (ino, 0)).collect();
        self.finish_removals()?;
        // Of what is damaged something is left, which fsck finds.
        self.orphans.clear();
        Ok(())
    }
}
