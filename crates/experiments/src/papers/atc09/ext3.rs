//! A model of ext3: where it allocates files, and which blocks it writes and frees.
//!
//! The model has what decides the addresses of Table 5:
//!
//! * block groups of 128 MiB with bitmaps and inode tables;
//! * blocks of a file are allocated first-fit from the group of its inode on, and continue in the
//!   next group;
//! * an inode is allocated in the group of its directory or, once that group is full, in a group
//!   chosen by a hash; directories of the root are spread over the groups;
//! * the journal is a ring;
//! * in ordered mode data is written at the commit of its transaction, and only then are freed
//!   blocks free and discarded.
//!
//! Source: Linux 2.6 (`ext3_find_goal`, `find_group_other`, sizes of `mke2fs`). Left out:
//! directories that grow, reservation windows (one process writes one file at a time), and dirty
//! pages that outlive a commit.

use std::collections::BTreeSet;

/// Bytes of a block.
pub(super) const BLOCK: u64 = 4096;
/// Blocks of a group: the bits of a bitmap of one block.
const GROUP: u32 = 32_768;
/// Inodes of a group: one for each 8 KiB, with 32 inodes of 128 bytes in a block.
const INODES: u32 = 16_384;
const INODES_PER_BLOCK: u32 = 32;
/// Blocks before the inode table: superblock, group descriptors and two bitmaps.
const HEAD: u32 = 4;
/// Blocks of a directory.
const DIRECTORY: u32 = 4;
/// A file has an indirect block for each so many blocks after its first [`DIRECT`] ones.
const INDIRECT: u64 = 1024;
const DIRECT: u64 = 12;
/// Commits, of 5 s each, between two checkpoints, which write metadata in place every 30 s.
const CHECKPOINT: u32 = 6;

/// Contiguous blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) start: u32,
    pub(super) len: u32,
}

/// A request to the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Write(Extent),
    Free(Extent),
}

/// A file.
#[derive(Clone, Debug, Default)]
pub(super) struct File {
    pub(super) bytes: u64,
    inode: u32,
    /// First block of its directory.
    directory: u32,
    extents: Vec<Extent>,
    /// Extents changed since the last commit.
    dirty: Vec<Extent>,
}

/// The file system.
#[derive(Debug)]
pub(super) struct Ext3 {
    blocks: u32,
    /// A bit for each allocated block, and the number of free blocks of each group.
    taken: Vec<u64>,
    group_free: Vec<u32>,
    inodes: BTreeSet<u32>,
    /// First blocks of the directories.
    directories: Vec<u32>,
    journal: Extent,
    journal_at: u32,
    /// Metadata blocks changed since the last commit, and since the last checkpoint.
    changed: BTreeSet<u32>,
    unwritten: BTreeSet<u32>,
    freed: Vec<Extent>,
    commits: u32,
}

impl Ext3 {
    /// An empty file system on a device of `blocks` blocks, with `directories` directories.
    pub(super) fn new(blocks: u32, directories: u32) -> Self {
        let groups = blocks.div_ceil(GROUP);
        let mut fs = Self {
            blocks,
            taken: vec![0; blocks.div_ceil(64) as usize],
            group_free: (0..groups).map(|g| GROUP.min(blocks - g * GROUP)).collect(),
            inodes: BTreeSet::new(),
            directories: Vec::new(),
            journal: Extent { start: 0, len: 0 },
            journal_at: 0,
            changed: BTreeSet::new(),
            unwritten: BTreeSet::new(),
            freed: Vec::new(),
            commits: 0,
        };
        let table = HEAD + INODES / INODES_PER_BLOCK;
        for group in 0..groups {
            let here = table.min(fs.group_free[group as usize]);
            (0..here).for_each(|block| fs.take(group * GROUP + block));
        }
        // Spread evenly; Linux starts from a random group for each directory.
        for number in 0..u64::from(directories) {
            let group = (number * u64::from(groups) / u64::from(directories)) as u32;
            let extents = fs.allocate(group * GROUP, DIRECTORY.into());
            fs.directories.push(extents[0].start);
        }
        let len = match blocks {
            0..32_768 => 1024,
            32_768..262_144 => 4096,
            262_144..524_288 => 8192,
            524_288..1_048_576 => 16_384,
            _ => 32_768,
        };
        // Contiguous up to the metadata of the next group at most, where the journal ends.
        fs.journal = fs.allocate(0, len)[0];
        fs
    }

    fn take(&mut self, block: u32) {
        self.taken[block as usize / 64] |= 1 << (block % 64);
        self.group_free[(block / GROUP) as usize] -= 1;
    }

    fn is_free(&self, block: u32) -> bool {
        self.taken[block as usize / 64] >> (block % 64) & 1 == 0
    }

    /// The first free block of `from..end`.
    fn next_free(&self, from: u32, end: u32) -> Option<u32> {
        let mut block = from;
        while block < end {
            let word = !self.taken[block as usize / 64] >> (block % 64);
            if word != 0 {
                return Some(block + word.trailing_zeros()).filter(|&block| block < end);
            }
            block += 64 - block % 64;
        }
        None
    }

    /// Allocates `want` blocks, first-fit from `goal` on: to the end of its group, then from the
    /// start of its group, then in the following groups.
    ///
    /// # Panics
    /// If the file system is full.
    fn allocate(&mut self, goal: u32, want: u64) -> Vec<Extent> {
        let groups = self.group_free.len() as u32;
        let (mut extents, mut left) = (Vec::<Extent>::new(), want);
        let mut tried = 0;
        let mut from = goal;
        while left > 0 {
            assert!(tried <= groups, "a file system that is larger than its files");
            let start = from / GROUP * GROUP;
            let end = (start + GROUP).min(self.blocks);
            let found = self.next_free(from, end).or_else(|| self.next_free(start, from));
            let Some(first) = found else {
                from = if end == self.blocks { 0 } else { end };
                tried += 1;
                continue;
            };
            let mut block = first;
            while block < end && left > 0 && self.is_free(block) {
                self.take(block);
                block += 1;
                left -= 1;
            }
            self.changed.insert(start + HEAD - 2);
            match extents.last_mut() {
                Some(last) if last.start + last.len == first => last.len += block - first,
                _ => extents.push(Extent { start: first, len: block - first }),
            }
            from = if block == end { start } else { block };
        }
        extents
    }

    /// The group of a new file: that of its directory, or else the first by a hash with free
    /// blocks.
    fn group(&self, directory: u32) -> u32 {
        let groups = self.group_free.len() as u32;
        let has_free = |group: &u32| self.group_free[*group as usize] > 0;
        let parent = directory / GROUP;
        // The directory is the first inode of its group that is not reserved.
        let hashed = (0..31).map(|i| (2 * parent + 11 + (1u32 << i) - 1) % groups);
        let mut all = std::iter::once(parent).chain(hashed).chain(0..groups);
        all.find(has_free).expect("a file system that is larger than its files")
    }

    /// A new file of `bytes` in the directory with this number, modulo the number of directories.
    pub(super) fn create(&mut self, directory: u64, bytes: u64) -> File {
        let directory = self.directories[(directory % self.directories.len() as u64) as usize];
        let group = self.group(directory);
        let first = group * INODES;
        let inode = (first..).find(|inode| !self.inodes.contains(inode)).expect("numbers go on");
        self.inodes.insert(inode);
        let mut file = File { inode, directory, ..File::default() };
        self.touch(&file);
        self.grow(&mut file, bytes);
        file
    }

    /// Appends to a file.
    pub(super) fn append(&mut self, file: &mut File, bytes: u64) {
        self.touch(file);
        // A last block that is not full is written again.
        let partly = !file.bytes.is_multiple_of(BLOCK);
        if let Some(last) = file.extents.last().filter(|_| partly) {
            file.dirty.push(Extent { start: last.start + last.len - 1, len: 1 });
        }
        self.grow(file, bytes);
    }

    fn grow(&mut self, file: &mut File, bytes: u64) {
        let blocks = |bytes: u64| {
            let data = bytes.div_ceil(BLOCK);
            data + data.saturating_sub(DIRECT).div_ceil(INDIRECT)
        };
        let want = blocks(file.bytes + bytes) - blocks(file.bytes);
        file.bytes += bytes;
        let goal = match file.extents.last() {
            Some(last) => (last.start + last.len) % self.blocks,
            None => file.inode / INODES * GROUP,
        };
        let new = self.allocate(goal, want);
        file.extents.extend(&new);
        file.dirty.extend(new);
    }

    /// Deletes a file. Its blocks are free after the next commit.
    pub(super) fn delete(&mut self, file: File) {
        self.touch(&file);
        self.inodes.remove(&file.inode);
        self.freed.extend(file.extents);
    }

    /// Marks the inode and the directory entry of a file as changed.
    fn touch(&mut self, file: &File) {
        let (group, place) = (file.inode / INODES, file.inode % INODES);
        self.changed.insert(group * GROUP + HEAD + place / INODES_PER_BLOCK);
        self.changed.insert(file.directory + file.inode % DIRECTORY);
    }

    /// Commits the transaction: writes data and journal, at a checkpoint also metadata, and frees
    /// blocks.
    pub(super) fn commit<'a>(
        &mut self,
        files: impl Iterator<Item = &'a mut File>,
        out: &mut Vec<Step>,
    ) {
        for file in files {
            out.extend(file.dirty.drain(..).map(Step::Write));
        }
        let freed = std::mem::take(&mut self.freed);
        for extent in &freed {
            self.changed.insert(extent.start / GROUP * GROUP + HEAD - 2);
        }
        // A descriptor, the blocks, and the commit record.
        let mut left = (self.changed.len() as u32 + 2).min(self.journal.len);
        while left > 0 {
            let len = left.min(self.journal.len - self.journal_at);
            let start = self.journal.start + self.journal_at;
            out.push(Step::Write(Extent { start, len }));
            self.journal_at = (self.journal_at + len) % self.journal.len;
            left -= len;
        }
        self.unwritten.append(&mut self.changed);
        self.commits += 1;
        if self.commits.is_multiple_of(CHECKPOINT) {
            let all = std::mem::take(&mut self.unwritten);
            out.extend(all.into_iter().map(|start| Step::Write(Extent { start, len: 1 })));
        }
        for extent in freed {
            for block in extent.start..extent.start + extent.len {
                self.taken[block as usize / 64] &= !(1 << (block % 64));
            }
            // An extent may continue in the next group.
            for block in extent.start..extent.start + extent.len {
                self.group_free[(block / GROUP) as usize] += 1;
            }
            out.push(Step::Free(extent));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(steps: &[Step]) -> Vec<(u32, u32)> {
        let extent = |step: &Step| match step {
            Step::Write(extent) => Some((extent.start, extent.len)),
            Step::Free(_) => None,
        };
        steps.iter().filter_map(extent).collect()
    }

    #[test]
    fn files_fill_the_lowest_blocks_and_reuse_them_after_a_commit() {
        let mut fs = Ext3::new(4 * GROUP, 1);
        // Head, inode table, directory, journal of 4,096 blocks.
        let first = HEAD + 512 + DIRECTORY + 4096;
        let mut a = fs.create(0, 3 * BLOCK);
        let b = fs.create(0, 20 * BLOCK - 1);
        assert_eq!(a.extents, [Extent { start: first, len: 3 }]);
        // Twenty blocks and one for the indirect pointers of the last eight.
        assert_eq!(b.extents, [Extent { start: first + 3, len: 21 }]);
        let mut steps = Vec::new();
        fs.commit([&mut a].into_iter(), &mut steps);
        // Data, then a descriptor, four changed blocks (bitmap, two inodes in one, two places
        // in the directory), and the commit record.
        assert_eq!(written(&steps), [(first, 3), (HEAD + 512 + DIRECTORY, 6)]);
        fs.delete(a);
        let c = fs.create(0, 2 * BLOCK);
        assert_eq!(c.extents[0].start, first + 24, "not free before the commit");
        steps.clear();
        fs.commit(std::iter::empty(), &mut steps);
        assert_eq!(steps.last(), Some(&Step::Free(Extent { start: first, len: 3 })));
        let mut d = fs.create(0, 5 * BLOCK);
        let expected = [(first, 3), (first + 26, 2)].map(|(start, len)| Extent { start, len });
        assert_eq!(d.extents, expected, "first fit");
        // The last block is full, so it is not written again.
        fs.append(&mut d, 10);
        assert_eq!(d.extents[1], Extent { start: first + 26, len: 2 });
        assert_eq!(d.extents[2], Extent { start: first + 28, len: 1 });
        d.dirty.clear();
        fs.append(&mut d, 10);
        assert_eq!(d.dirty, [Extent { start: first + 28, len: 1 }]);
    }

    #[test]
    fn a_full_group_spills_into_the_next_and_nothing_is_lost() {
        let mut fs = Ext3::new(3 * GROUP, 1);
        let free: u32 = fs.group_free.iter().sum();
        let file = fs.create(0, u64::from(GROUP) * BLOCK);
        let taken: u32 = file.extents.iter().map(|extent| extent.len).sum();
        assert!(file.extents.len() == 2 && taken > GROUP, "{:?}", file.extents);
        assert_eq!(fs.group_free.iter().sum::<u32>(), free - taken);
        fs.delete(file);
        fs.commit(std::iter::empty(), &mut Vec::new());
        assert_eq!(fs.group_free.iter().sum::<u32>(), free);
    }
}
