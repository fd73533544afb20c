//! Temporary space: in memory as long as there is some, then in files.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use prism_graph::scratch::{InMemory, Scratch};

use crate::error::StoreError;

/// Memory that the parts of temporary space share.
#[derive(Clone, Debug)]
pub struct SharedMemory {
    held: Arc<AtomicU64>,
    limit: u64,
}

impl SharedMemory {
    /// Up to `limit` bytes.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self { held: Arc::default(), limit }
    }

    /// Takes memory, if there is as much.
    fn take(&self, bytes: u64) -> bool {
        let held = self.held.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let fits = held <= self.limit;
        if !fits {
            self.held.fetch_sub(bytes, Ordering::Relaxed);
        }
        fits
    }
}

/// Makes the file of temporary space.
type MakeFile = Box<dyn Fn() -> io::Result<File> + Send + Sync>;

/// Temporary space: in memory as long as there is some, then in a file, which has no name if it is
/// not to be found again.
pub struct TemporaryFile {
    memory: InMemory,
    shared: SharedMemory,
    make: MakeFile,
    file: Option<(Arc<File>, u64)>,
    /// The folder of the file, for messages.
    folder: PathBuf,
}

impl TemporaryFile {
    /// Empty temporary space, with a file without a name in `folder`.
    #[must_use]
    pub fn new(shared: SharedMemory, folder: &Path) -> Self {
        let place = folder.to_owned();
        Self::with(shared, folder, Box::new(move || tempfile::tempfile_in(&place)))
    }

    /// Empty temporary space with a file that `make` makes in `folder`.
    pub(crate) fn with(shared: SharedMemory, folder: &Path, make: MakeFile) -> Self {
        Self { memory: InMemory::default(), shared, make, file: None, folder: folder.to_owned() }
    }

    /// The temporary space of an earlier process: the first `len` bytes of a file in `folder`.
    ///
    /// # Errors
    /// The error of the system, if the rest of the file cannot be cut off.
    pub(crate) fn of(
        shared: SharedMemory,
        folder: &Path,
        file: File,
        len: u64,
    ) -> io::Result<Self> {
        file.set_len(len)?;
        let make = || Err(io::ErrorKind::AlreadyExists.into());
        let file = Some((Arc::new(file), len));
        let mut space = Self::with(shared, folder, Box::new(make));
        space.file = file;
        Ok(space)
    }

    /// The failure of the file, which names its folder.
    fn failed(&self, error: io::Error) -> io::Error {
        io::Error::other(StoreError::temporary(&self.folder, error))
    }

    /// Moves everything to the file, if it is not there.
    ///
    /// # Errors
    /// The error of the system.
    fn spill(&mut self) -> io::Result<()> {
        if self.file.is_some() {
            return Ok(());
        }
        let len = self.memory.len();
        let file = (self.make)().map_err(|error| self.failed(error))?;
        for at in (0..len).step_by(MOVED as usize) {
            let mut some = vec![0; (len - at).min(MOVED) as usize];
            self.memory.read_at(at, &mut some)?;
            file.write_all_at(&some, at).map_err(|error| self.failed(error))?;
        }
        self.memory = InMemory::default();
        self.shared.held.fetch_sub(len, Ordering::Relaxed);
        self.file = Some((Arc::new(file), len));
        Ok(())
    }
}

/// Temporary space that two owners have.
#[derive(Clone)]
pub(crate) struct SharedFile(Arc<RwLock<TemporaryFile>>);

impl SharedFile {
    pub(crate) fn new(file: TemporaryFile) -> Self {
        Self(Arc::new(RwLock::new(file)))
    }

    fn read(&self) -> RwLockReadGuard<'_, TemporaryFile> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, TemporaryFile> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is in a file.
    pub(crate) fn is_in_file(&self) -> bool {
        self.read().file.is_some()
    }

    /// Its file, to which everything is moved.
    ///
    /// # Errors
    /// The error of the system.
    pub(crate) fn file(&self) -> io::Result<Arc<File>> {
        let mut inner = self.write();
        inner.spill()?;
        Ok(Arc::clone(&inner.file.as_ref().expect("it was moved there").0))
    }
}

impl Scratch for SharedFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write().append(bytes)
    }

    fn len(&self) -> u64 {
        self.read().len()
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.read().read_at(at, into)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        self.shared.held.fetch_sub(self.memory.len(), Ordering::Relaxed);
    }
}

/// Bytes that move from memory to a file at once.
const MOVED: u64 = 1 << 20;

impl Scratch for TemporaryFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some((file, len)) = &mut self.file {
            let written = file.write_all_at(bytes, *len);
            if written.is_ok() {
                *len += bytes.len() as u64;
            }
            return written.map_err(|error| self.failed(error));
        }
        if self.shared.take(bytes.len() as u64) {
            return self.memory.append(bytes);
        }
        self.spill()?;
        self.append(bytes)
    }

    fn len(&self) -> u64 {
        self.file.as_ref().map_or(self.memory.len(), |(_, len)| *len)
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        match &self.file {
            Some((file, _)) => file.read_exact_at(into, at).map_err(|error| self.failed(error)),
            None => self.memory.read_at(at, into),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts share their memory; what does not fit is in files, and is read as it was written.
    #[test]
    fn temporary_space_goes_to_files_beyond_its_memory() {
        let folder = tempfile::tempdir().unwrap();
        let shared = SharedMemory::new(3 << 20);
        let mut parts: Vec<TemporaryFile> =
            (0..4).map(|_| TemporaryFile::new(shared.clone(), folder.path())).collect();
        for round in 0..30_u8 {
            for (part, number) in parts.iter_mut().zip(0..) {
                part.append(&vec![round * 4 + number; 50_000]).unwrap();
            }
        }
        let in_files = parts.iter().filter(|part| part.file.is_some()).count();
        assert!((1..4).contains(&in_files), "{in_files} files");
        for (part, number) in parts.iter().zip(0..) {
            for round in 0..30_u8 {
                let mut found = vec![0; 50_000];
                part.read_at(u64::from(round) * 50_000, &mut found).unwrap();
                assert!(found.iter().all(|byte| *byte == round * 4 + number));
            }
        }
        drop(parts);
        assert_eq!(shared.held.load(Ordering::Relaxed), 0);
    }
}
