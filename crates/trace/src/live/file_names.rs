//! The names of inodes: the kernel reports each once, and they are kept here.

use rustc_hash::FxHashMap;

use crate::symbols::{Symbol, Symbols};

/// Super block numbers of file systems (`include/uapi/linux/magic.h`).
const BLOCK_DEVICES: u64 = 0x6264_6576;
const BTRFS: u64 = 0x9123_683e;

/// The inode under which btrfs caches all of its trees (`BTRFS_BTREE_INODE_OBJECTID`).
const BTRFS_TREES: u64 = 1;

/// The name for the structures of a file system itself.
pub(super) const METADATA: &str = "(metadata)";

/// The most files: beyond that all names are removed, and files that are used again are
/// reported again.
const FILES_MAX: usize = 1 << 20;

/// An inode of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileKey {
    pub file_system: u32,
    pub inode: u64,
}

/// The names of inodes.
#[derive(Debug, Default)]
pub(super) struct FileNames {
    names: FxHashMap<FileKey, Symbol>,
    text: String,
}

impl FileNames {
    /// `file` of the file system with super block number `magic` has this path, whose last
    /// part comes first; `more`: there are folders above.
    pub fn set<'a>(
        &mut self,
        file: FileKey,
        magic: u64,
        parts: impl DoubleEndedIterator<Item = &'a [u8]>,
        more: bool,
        symbols: &mut Symbols,
    ) {
        self.text.clear();
        if more {
            self.text.push('…');
        }
        for part in parts.rev() {
            if !self.text.is_empty() {
                self.text.push('/');
            }
            self.text.push_str(&String::from_utf8_lossy(part));
        }
        if self.text.is_empty() {
            // An inode without a name belongs to the file system: it caches its own structures
            // under an inode of the block device, btrfs under one that cannot be opened.
            let trees = magic == BTRFS && file.inode == BTRFS_TREES;
            let own = magic == BLOCK_DEVICES || trees;
            self.text.push_str(if own { METADATA } else { "(no name)" });
        }
        if self.names.len() >= FILES_MAX {
            self.names.clear();
        }
        self.names.insert(file, symbols.intern(&self.text));
    }

    /// The name of `file`; `Symbol::NONE` if it was not reported.
    pub fn name(&self, file: FileKey) -> Symbol {
        self.names.get(&file).copied().unwrap_or(Symbol::NONE)
    }
}
