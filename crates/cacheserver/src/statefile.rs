//! The file of a cache's state and buffers.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use prism_cache::cache::examine_state;
use prism_cache::state::{HEADER_BYTES, StateFound};
use prism_segments::Store;

use crate::mapped::Mapped;
use crate::open::{Backend, ServerError};

/// The file, which need not be there.
pub(crate) struct StateFile {
    path: PathBuf,
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
    /// The file with this name.
    pub(crate) fn of(path: &Path) -> Result<Self, ServerError> {
        let mut header = Vec::new();
        let len = match File::open(path) {
            Ok(file) => {
                let len = file.metadata().map_err(|error| unusable(path, error))?.len();
                let read = file.take(HEADER_BYTES as u64).read_to_end(&mut header);
                read.map_err(|error| unusable(path, error))?;
                len
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(unusable(path, error)),
        };
        Ok(Self { path: path.to_owned(), len, header })
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

    /// Maps a part of it; the file is made if it is not there.
    pub(crate) fn map(
        &self,
        offset: u64,
        bytes: u64,
        wake: Option<Arc<OwnedFd>>,
    ) -> Result<Mapped, ServerError> {
        Mapped::open(&self.path, offset, bytes, wake).map_err(|error| unusable(&self.path, error))
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

fn unusable(path: &Path, source: io::Error) -> ServerError {
    let what = format!("cannot use {}, the state of the cache", path.display());
    ServerError::Io { what, source }
}
