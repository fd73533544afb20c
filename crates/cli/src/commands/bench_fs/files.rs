//! One file, read and written in pages of 4 KiB, each page once.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::thread;

use prism_base::Rng;
use prism_host::clock;
use rustix::fs::{Advice, fadvise};

use super::Args;
use super::mounted::{Mounted, at_path};
use crate::failure::Failure;

/// Bytes of a read or a write.
const PAGE: usize = 4096;

/// The pages of the file, in their order or at random.
fn pages(args: &Args, at_random: bool) -> Vec<u64> {
    let mut pages: Vec<u64> = (0..args.size.0 / PAGE as u64).collect();
    if at_random {
        let mut rng = Rng::stream(args.seed, "bench fs pages");
        for at in (1..pages.len()).rev() {
            pages.swap(at, rng.below(at as u64 + 1) as usize);
        }
    }
    pages
}

/// A new file.
struct Written {
    path: PathBuf,
    file: File,
    /// The same file of the folder that is passed through.
    source: Option<File>,
}

impl Written {
    fn new(mounted: &Mounted) -> Result<Self, Failure> {
        let path = mounted.folder().join("file");
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
        let file = file.map_err(|error| at_path(&path, &error))?;
        let source = mounted.source().map(|folder| File::open(folder.join("file"))).transpose();
        let source = source.map_err(|error| at_path(&path, &error))?;
        Ok(Self { path, file, source })
    }

    /// Writes pages, and makes them durable.
    fn write(&self, pages: &[u64]) -> Result<(), Failure> {
        let mut data = [0x5A; PAGE];
        for &page in pages {
            data[..8].copy_from_slice(&page.to_le_bytes());
            let written = self.file.write_all_at(&data, page * PAGE as u64);
            written.map_err(|error| at_path(&self.path, &error))?;
        }
        self.file.sync_all().map_err(|error| at_path(&self.path, &error))
    }

    /// Forgets what the kernel has of the file in its caches.
    fn forget(&self, advice: Advice) -> Result<(), Failure> {
        let files = [Some(&self.file), self.source.as_ref()];
        let forgotten = files.into_iter().flatten().try_for_each(|file| {
            fadvise(file, 0, None, Advice::DontNeed)?;
            fadvise(file, 0, None, advice)
        });
        forgotten.map_err(|error| at_path(&self.path, &error.into()))
    }

    fn read(&self, pages: &[u64]) -> Result<(), Failure> {
        let mut data = [0; PAGE];
        for &page in pages {
            let read = self.file.read_exact_at(&mut data, page * PAGE as u64);
            read.map_err(|error| at_path(&self.path, &error))?;
            if data[..8] != page.to_le_bytes() {
                let what = format!("{}: page {page} has other bytes", self.path.display());
                return Err(Failure::Finding(what));
            }
        }
        Ok(())
    }
}

/// Pages per second.
fn rate(pages: &[u64], call: impl FnOnce(&[u64]) -> Result<(), Failure>) -> Result<f64, Failure> {
    let begun = clock::seconds();
    call(pages)?;
    Ok(pages.len() as f64 / (clock::seconds() - begun))
}

/// Writes a new file.
pub fn writes_in_order(args: &Args, mounted: &Mounted) -> Result<f64, Failure> {
    let file = Written::new(mounted)?;
    rate(&pages(args, false), |pages| file.write(pages))
}

/// Writes a file again.
pub fn random_writes(args: &Args, mounted: &Mounted) -> Result<f64, Failure> {
    let file = Written::new(mounted)?;
    file.write(&pages(args, false))?;
    rate(&pages(args, true), |pages| file.write(pages))
}

/// Reads a file.
pub fn reads_in_order(args: &Args, mounted: &Mounted) -> Result<f64, Failure> {
    let file = Written::new(mounted)?;
    file.write(&pages(args, false))?;
    file.forget(Advice::Normal)?;
    rate(&pages(args, false), |pages| file.read(pages))
}

/// Reads a file by some threads, each of which reads other pages, without what the kernel reads
/// ahead.
pub fn random_reads(args: &Args, mounted: &Mounted, threads: usize) -> Result<f64, Failure> {
    let file = Written::new(mounted)?;
    file.write(&pages(args, false))?;
    file.forget(Advice::Random)?;
    let file = &file;
    rate(&pages(args, true), |pages| {
        thread::scope(|scope| {
            let shares = pages.chunks(pages.len().div_ceil(threads));
            let all: Vec<_> = shares.map(|share| scope.spawn(move || file.read(share))).collect();
            all.into_iter().try_for_each(|one| one.join().expect("it does not panic"))
        })
    })
}
