//! Memory of the cache in a mapped file, which outlives the process.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use memmap2::{MmapMut, MmapOptions};
use prism_cache::Memory;
use prism_flashfile::Lock;

/// A file that is locked until the last mapping of it ends.
#[derive(Debug)]
pub struct LockedFile {
    /// The file.
    pub(crate) file: File,
    /// Its lock.
    pub(crate) _lock: Lock,
}

/// A part of a file. A sync runs in a thread of its own, so that the server does not wait for it.
pub struct Mapped {
    map: MmapMut,
    syncs: Option<Sender<u64>>,
    /// The number of the last sync that was begun.
    begun: u64,
    synced: Arc<Synced>,
    _file: Arc<LockedFile>,
}

/// What the thread that syncs has done.
#[derive(Default)]
struct Synced {
    /// The number of the last sync that is complete; `None` if one has failed.
    last: Mutex<Option<u64>>,
    changed: Condvar,
}

impl Synced {
    fn last(&self) -> MutexGuard<'_, Option<u64>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Syncs a mapping as often as `requests` ask for it, and writes to `wake` after each time.
    fn serve(&self, map: &MmapMut, requests: &Receiver<u64>, wake: Option<&OwnedFd>) {
        while let Ok(mut number) = requests.recv() {
            // One sync is for all that were requested until it begins.
            while let Ok(later) = requests.try_recv() {
                number = later;
            }
            let result = map.flush();
            let mut last = self.last();
            // The kernel may have dropped what it could not write, so that a later sync would
            // succeed without it.
            *last = last.filter(|_| result.is_ok()).map(|_| number);
            drop(last);
            self.changed.notify_all();
            if let Some(wake) = wake {
                // The loop is woken by the number that is already there, if there is no space.
                let _ = rustix::io::write(wake, &1_u64.to_ne_bytes());
            }
        }
    }
}

/// Maps a part of a file that is long enough.
fn map(file: &File, offset: u64, bytes: u64) -> io::Result<MmapMut> {
    let mut options = MmapOptions::new();
    options.offset(offset).len(bytes as usize);
    // The file is the server's own, which has locked it. Another program that shortened it would
    // end the server with SIGBUS, as with any mapped file.
    #[allow(unsafe_code, reason = "mapping a file that no other process writes")]
    unsafe {
        options.map_mut(file)
    }
}

impl Mapped {
    /// Maps `bytes` bytes of a file from `offset` on. The file is made long enough if it is not;
    /// its space is taken on the disk, since a mapping cannot report a full disk. After each sync
    /// `wake`, an eventfd, is written to.
    ///
    /// # Errors
    /// The errors of the system.
    pub fn open(
        locked: &Arc<LockedFile>,
        offset: u64,
        bytes: u64,
        wake: Option<Arc<OwnedFd>>,
    ) -> io::Result<Self> {
        let file = &locked.file;
        take_space(file, offset + bytes)?;
        // The thread syncs this part by a mapping of its own, and not what else is in the file.
        let own = map(file, offset, bytes)?;
        let (sender, receiver) = channel();
        let synced = Arc::new(Synced { last: Mutex::new(Some(0)), changed: Condvar::new() });
        let of_thread = Arc::clone(&synced);
        thread::Builder::new()
            .name("state sync".to_owned())
            .spawn(move || of_thread.serve(&own, &receiver, wake.as_deref()))?;
        let map = map(file, offset, bytes)?;
        Ok(Self { map, syncs: Some(sender), begun: 0, synced, _file: Arc::clone(locked) })
    }
}

/// Writes zeros to what the file lacks.
fn take_space(file: &File, wanted: u64) -> io::Result<()> {
    const STEP: u64 = 1 << 20;
    let mut len = file.metadata()?.len();
    let zeros = vec![0; STEP as usize];
    while len < wanted {
        let step = (wanted - len).min(STEP);
        file.write_all_at(&zeros[..step as usize], len)?;
        len += step;
    }
    Ok(())
}

impl Memory for Mapped {
    fn bytes(&self) -> &[u8] {
        &self.map
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.map
    }

    fn begin_sync(&mut self) -> u64 {
        self.begun += 1;
        if let Some(syncs) = &self.syncs {
            // The thread ends only with this value.
            let _ = syncs.send(self.begun);
        }
        self.begun
    }

    fn synced(&self) -> Option<u64> {
        *self.synced.last()
    }

    fn wait_sync(&mut self, number: u64) {
        let mut last = self.synced.last();
        while last.is_some_and(|last| last < number) {
            last = self.synced.changed.wait(last).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        self.syncs = None;
        // Errors cannot be reported here; the kernel writes the pages later.
        let _ = self.map.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_mapping_finds_what_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let open = |bytes| {
            let mut options = File::options();
            let file = options.read(true).write(true).create(true).truncate(false).open(&path);
            let file = file.unwrap();
            let lock = prism_flashfile::lock_soon(&path, &file).unwrap();
            Mapped::open(&Arc::new(LockedFile { file, _lock: lock }), 4096, bytes, None).unwrap()
        };
        let mut first = open(10_000);
        first.bytes_mut()[9_999] = 7;
        let number = first.begin_sync();
        first.wait_sync(number);
        assert_eq!(first.synced(), Some(number));
        drop(first);
        let second = open(20_000);
        assert_eq!((second.bytes()[9_999], second.bytes()[19_999]), (7, 0));
    }
}
