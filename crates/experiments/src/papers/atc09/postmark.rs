//! Postmark (Katcher, 1997): a pool of files that are created, deleted, read and appended to.
//!
//! A transaction creates or deletes a file, and reads or appends to another; both alternatives are
//! equally likely. Reads are left out, because they have no effect on the cleaning that Table 5 is
//! about.

use prism_base::Rng;

use super::ext3::{Ext3, File, Step};

/// Size of the smallest file in bytes: the default of Postmark.
const SMALLEST: u64 = 500;

/// The options of Postmark.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    /// Files at the beginning.
    pub(super) files: u32,
    /// Directories among which the files are distributed.
    pub(super) directories: u32,
    /// Size of the largest file in bytes.
    pub(super) largest: u64,
    /// Transactions between two commits of the file system.
    pub(super) per_commit: u32,
}

/// The benchmark on its file system.
pub(super) struct Postmark {
    fs: Ext3,
    files: Vec<File>,
    options: Options,
    rng: Rng,
    done: u32,
}

impl Postmark {
    /// Creates the pool on an empty file system of `blocks` blocks; its requests are added to
    /// `out`.
    pub(super) fn new(blocks: u32, options: Options, seed: u64, out: &mut Vec<Step>) -> Self {
        let rng = Rng::stream(seed, "atc09.postmark");
        let fs = Ext3::new(blocks, options.directories);
        let mut all = Self { fs, files: Vec::new(), options, rng, done: 0 };
        for number in 1..=options.files {
            all.create();
            if number % options.per_commit == 0 || number == options.files {
                all.fs.commit(all.files.iter_mut(), out);
            }
        }
        all
    }

    fn create(&mut self) {
        let bytes = SMALLEST + self.rng.below(self.options.largest - SMALLEST + 1);
        // Postmark chooses a random directory.
        let directory = self.rng.below(self.options.directories.into());
        self.files.push(self.fs.create(directory, bytes));
    }

    /// Transactions done.
    pub(super) fn done(&self) -> u32 {
        self.done
    }

    /// Runs transactions up to the next commit and commits; the requests are added to `out`.
    pub(super) fn until_commit(&mut self, out: &mut Vec<Step>) {
        for _ in 0..self.options.per_commit {
            self.transaction();
        }
        self.done += self.options.per_commit;
        self.fs.commit(self.files.iter_mut(), out);
    }

    fn transaction(&mut self) {
        if self.rng.chance(0.5) || self.files.is_empty() {
            self.create();
        } else {
            let which = self.rng.below(self.files.len() as u64) as usize;
            let file = self.files.swap_remove(which);
            self.fs.delete(file);
        }
        if self.rng.chance(0.5) && !self.files.is_empty() {
            let which = self.rng.below(self.files.len() as u64) as usize;
            let file = &mut self.files[which];
            // The file stays below the largest size.
            if file.bytes < self.options.largest {
                let bytes = 1 + self.rng.below(self.options.largest - file.bytes);
                self.fs.append(file, bytes);
            }
        }
    }
}
