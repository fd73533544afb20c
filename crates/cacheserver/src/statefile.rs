//! The file of a cache's state and buffers. What does not look like one is not overwritten.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use prism_cache::cache::examine_state;
use prism_cache::state::{HEADER_BYTES, StateFound};
use prism_flashfile::lock_soon;
use prism_segments::Store;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use crate::mapped::{LockedFile, Mapped};
use crate::open::{Backend, ServerError};

/// The file, which need not be there.
pub(crate) struct StateFile {
    path: PathBuf,
    /// The file, if it was there.
    file: Option<Arc<LockedFile>>,
    len: u64,
    /// Its first bytes.
    header: Vec<u8>,
}

/// The file of the state and the buffers of a cache on this device, unless another one is named.
#[must_use]
pub fn state_path(device: &Path) -> PathBuf {
    let mut name = device.as_os_str().to_owned();
    name.push(".cache");
    name.into()
}

impl StateFile {
    /// The file with this name, which is locked if it is there. It is refused if it cannot be the
    /// state of a cache.
    pub(crate) fn of(path: &Path) -> Result<Self, ServerError> {
        let failed = |error| unusable(path, error);
        let found = match std::fs::metadata(path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { path: path.to_owned(), file: None, len: 0, header: Vec::new() });
            }
            Err(error) => return Err(failed(error)),
        };
        if !found.is_file() {
            let what = format!(
                "{}: the state of a cache is kept in a regular file, and this is none; name \
                 another one by --state",
                path.display()
            );
            return Err(ServerError::Option { what });
        }
        let file = locked(path, File::options().read(true).write(true))?;
        let len = file.file.metadata().map_err(failed)?.len();
        let mut header = vec![0; len.min(HEADER_BYTES as u64) as usize];
        file.file.read_exact_at(&mut header, 0).map_err(failed)?;
        if header.iter().all(|&byte| byte == 0) {
            // Images of disks begin with zeros, too.
            if let Some(at) = first_data(&file.file).map_err(failed)? {
                let name = path.display();
                let what = format!(
                    "{name}: this is not the state of a cache: it begins with zeros and has data \
                     at byte {at}; nothing was changed. Name another file by --state, or remove \
                     {name} if you can lose what it holds"
                );
                return Err(ServerError::Option { what });
            }
        }
        Ok(Self { path: path.to_owned(), file: Some(file), len, header })
    }

    /// Its length in bytes; 0 if it is not there.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Refuses to make a new device while there is the state of another one.
    pub(crate) fn without_device(&self, device: &str) -> Result<(), ServerError> {
        if self.header.iter().all(|&byte| byte == 0) {
            return Ok(());
        }
        let name = self.path.display();
        let what = format!(
            "{name}: the file is there, and there is no {device}, to which it belongs; put that \
             back, or remove {name} to begin an empty cache"
        );
        Err(ServerError::Option { what })
    }

    /// Refuses a file that is not the state of a cache in this store, before anything is changed.
    pub(crate) fn examine(&self, store: &impl Store) -> Result<(), ServerError> {
        examine_state(&self.header, store).map(drop).map_err(|error| {
            let name = self.path.display();
            let what = format!(
                "{name}: {error}; nothing was changed. Put the right file there, or remove {name} \
                 to begin an empty cache"
            );
            ServerError::Option { what }
        })
    }

    /// Makes the file if it is not there.
    pub(crate) fn make(&self) -> Result<Arc<LockedFile>, ServerError> {
        match &self.file {
            Some(file) => Ok(Arc::clone(file)),
            // Another server may have made it meanwhile, which then holds the lock.
            None => locked(
                &self.path,
                File::options().read(true).write(true).create(true).truncate(false),
            ),
        }
    }

    /// Maps a part of the file that was made.
    pub(crate) fn map(
        &self,
        file: &Arc<LockedFile>,
        offset: u64,
        bytes: u64,
        wake: Option<Arc<OwnedFd>>,
    ) -> Result<Mapped, ServerError> {
        Mapped::open(file, offset, bytes, wake).map_err(|error| unusable(&self.path, error))
    }

    /// What was lost because slabs that the file knows were missing or damaged, for the operator.
    pub(crate) fn damage(&self, device: &str, cache: &Backend) -> Option<String> {
        let (name, counts) = (self.path.display(), cache.counts());
        let (slabs, items) = (counts.damaged_slabs, counts.damaged_items);
        (slabs > 0).then(|| {
            format!(
                "{device}: {slabs} slabs of which {name} has a record are missing or damaged, as \
                 after a loss of power: their items were dropped ({items} items in slabs whose \
                 number of items is known)"
            )
        })
    }

    /// What was lost because the file was missing or damaged, for the operator.
    pub(crate) fn losses(&self, cache: &Backend) -> Option<String> {
        let (name, counts) = (self.path.display(), cache.counts());
        let (slabs, items) = (counts.lost_slabs, counts.lost_items);
        let how = match cache.state_found() {
            StateFound::Own if slabs > 0 => {
                return Some(format!(
                    "{name} has no record of {slabs} slabs on flash, as after a loss of power: up \
                     to {items} items were dropped"
                ));
            }
            StateFound::Nothing if slabs > 0 => "missing",
            StateFound::Damaged => "damaged",
            StateFound::Own | StateFound::Nothing => return None,
        };
        Some(format!(
            "{name} is {how}: it records which items were replaced or deleted, and without it \
             these would come back. All items were dropped (up to {items} items in {slabs} slabs \
             on flash), and the cache begins empty"
        ))
    }
}

/// Opens and locks a file.
fn locked(path: &Path, options: &OpenOptions) -> Result<Arc<LockedFile>, ServerError> {
    let file = options.open(path).map_err(|error| unusable(path, error))?;
    let lock = lock_soon(path, &file)?;
    Ok(Arc::new(LockedFile { file, _lock: lock }))
}

/// The offset of the first byte that is not zero. Holes are not read.
fn first_data(file: &File) -> io::Result<Option<u64>> {
    let mut bytes = vec![0; 1 << 20];
    let mut at = 0;
    loop {
        at = match seek(file, SeekFrom::Data(at)) {
            Ok(at) => at,
            // Only a hole follows.
            Err(Errno::NXIO) => return Ok(None),
            // This file system does not know where its holes are.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => at,
            Err(error) => return Err(error.into()),
        };
        let read = match file.read_at(&mut bytes, at) {
            Ok(0) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if let Some(place) = bytes[..read].iter().position(|&byte| byte != 0) {
            return Ok(Some(at + place as u64));
        }
        at += read as u64;
    }
}

fn unusable(path: &Path, source: io::Error) -> ServerError {
    let what = format!("cannot use {}, the state of the cache", path.display());
    ServerError::Io { what, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open::{Engine, OpenOptions, tests};

    /// What another program has written is not overwritten, and no device is made.
    #[test]
    fn what_cannot_be_a_state_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let [device, state] = ["device", "state"].map(|name| folder.path().join(name));
        let options = |state: &Path| OpenOptions {
            state: Some(state.to_owned()),
            ..tests::options(&device, Engine::Raw)
        };
        let refused = |state: &Path, part: &str| {
            let error = options(state).open().map(drop).expect_err(part).to_string();
            assert!(error.contains(part), "{part} is not in {error}");
        };
        for has_device in [false, true] {
            refused(Path::new("/dev/null"), "--state /dev/null: this is neither a regular file");
            refused(folder.path(), "this is a folder");
            // As an image of a disk: zeros, a hole, and something behind it.
            let file = File::create(&state).unwrap();
            file.write_all_at(&[0; 8192], 0).unwrap();
            file.set_len(9 << 20).unwrap();
            file.write_all_at(b"precious", (4 << 20) + 77).unwrap();
            let before = std::fs::read(&state).unwrap();
            refused(&state, "has data at byte 4194381");
            assert_eq!(std::fs::read(&state).unwrap(), before);
            assert_eq!(device.exists(), has_device);
            // Zeros are none.
            file.write_all_at(&[0; 8], (4 << 20) + 77).unwrap();
            let opened = options(&state).open().unwrap();
            let mut other = options(&state);
            other.device = Some(folder.path().join("other"));
            let error = other.open().map(drop).expect_err("it is locked").to_string();
            assert!(error.contains("state: it is in use by process"), "{error}");
            drop(opened);
        }
    }
}
