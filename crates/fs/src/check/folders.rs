//! The check of names: folders and their entries, and the links that inodes count.

use prism_segments::Store;

use super::{BATCH, Check, InodeFacts};
use crate::error::Result;
use crate::folder::{DirEntry, decode};
use crate::fs::ROOT;
use crate::node::Pointer;

impl<S: Store> Check<'_, S> {
    /// Reads all folders from the uppermost one, then those that it does not lead to.
    pub(super) fn tree_of_folders(&mut self) -> Result<()> {
        if !self.fs.attr(ROOT).is_ok_and(|attr| attr.is_dir()) {
            self.problem("the uppermost folder is missing".into());
        }
        let mut open = vec![ROOT];
        while let Some(dir) = open.pop() {
            let Ok(attr) = self.fs.attr(dir) else { continue };
            let mut entries = 0;
            let buckets = self.folders.remove(&dir).unwrap_or_default();
            for batch in buckets.chunks(BATCH as usize) {
                for (index, bucket) in self.read_buckets(dir, batch)? {
                    for entry in bucket {
                        entries += 1;
                        self.entry(dir, index, &entry, &mut open)?;
                    }
                }
            }
            if entries != attr.size {
                let counted = attr.size;
                self.problem(format!("folder {dir} has {entries} entries, its inode {counted}"));
            }
        }
        for (dir, buckets) in std::mem::take(&mut self.folders) {
            for batch in buckets.chunks(BATCH as usize) {
                self.read_buckets(dir, batch)?;
            }
        }
        Ok(())
    }

    /// The entries of buckets of a folder, in the order of their hashes, which differ.
    fn read_buckets(
        &mut self,
        dir: u32,
        buckets: &[(u64, Pointer)],
    ) -> Result<Vec<(u64, Vec<DirEntry>)>> {
        self.report.blocks += buckets.len() as u64;
        let wanted: Vec<(u32, u32)> =
            buckets.iter().map(|(_, pointer)| (pointer.addr, pointer.sum)).collect();
        let mut read = Vec::new();
        self.fs.log.visit(&wanted, "data", |_, block| {
            read.push(block.and_then(|block| decode(block.try_into().expect("a block"))));
        })?;
        let mut all = Vec::new();
        for (&(index, _), bucket) in buckets.iter().zip(read) {
            let who = format!("folder {dir}, bucket {index}");
            let mut entries = self.noted(&who, bucket)?.unwrap_or_default();
            entries.sort_by_key(|entry| entry.hash);
            for pair in entries.windows(2).filter(|pair| pair[0].hash == pair[1].hash) {
                let name = String::from_utf8_lossy(&pair[1].name);
                self.problem(format!("folder {dir}: {name:?} or its hash is there twice"));
            }
            all.push((index, entries));
        }
        Ok(all)
    }

    /// An entry of a folder, in this bucket.
    fn entry(&mut self, dir: u32, index: u64, entry: &DirEntry, open: &mut Vec<u32>) -> Result<()> {
        let name = String::from_utf8_lossy(&entry.name);
        let hash = self.fs.hash(&entry.name);
        let bucket = self.fs.bucket_of(dir, hash);
        if let Some(bucket) = self.noted(&format!("folder {dir}: {name:?}"), bucket)?
            && (bucket != index || hash != entry.hash)
        {
            self.problem(format!("folder {dir}: {name:?} is in the wrong bucket"));
        }
        let Some(Some(found)) = self.files.get_mut(entry.ino as usize) else {
            self.problem(format!("folder {dir}: {name:?} leads to no file"));
            return Ok(());
        };
        found.names += 1;
        let file = *found;
        let is_dir = file.is_dir;
        let has_two = is_dir && (file.parent != dir || file.seen);
        found.seen |= is_dir && !has_two;
        if u32::from(entry.kind) != file.mode >> 12 {
            self.problem(format!("folder {dir}: {name:?} has a wrong type"));
        }
        if is_dir && let Some(above) = &mut self.files[dir as usize] {
            above.folders += 1;
        }
        if has_two {
            self.problem(format!("folder {} has two parents", entry.ino));
        } else if is_dir {
            open.push(entry.ino);
        }
        Ok(())
    }

    /// Compares links with names.
    pub(super) fn links(&mut self) {
        for (ino, found) in (0..).zip(std::mem::take(&mut self.files)) {
            let Some(InodeFacts { is_dir, nlink, names, folders, .. }) = found else { continue };
            let links = match (is_dir, ino) {
                (true, ROOT) => 2 + folders,
                (true, _) if names > 0 => 1 + names + folders,
                _ => names,
            };
            let is_orphan = self.fs.orphans.contains(&ino);
            if nlink != links || (links == 0) != is_orphan {
                self.problem(format!("file {ino} has {links} links, its inode says {nlink}"));
            }
        }
    }
}
