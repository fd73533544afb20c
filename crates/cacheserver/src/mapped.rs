//! Memory of the cache in a mapped file, which outlives the process.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use memmap2::{MmapMut, MmapOptions};
use prism_cache::Memory;

/// A mapped file. A sync runs in a thread of its own, so that the server does not wait for it.
pub struct Mapped {
    map: MmapMut,
    begun: u64,
    synced: Arc<AtomicU64>,
    syncs: Option<Sender<u64>>,
}

impl Mapped {
    /// Maps `bytes` bytes of a file from `offset` on. The file is made, and made long enough, if it
    /// is not; its space is taken on the disk, since a mapping cannot report a full disk.
    ///
    /// # Errors
    /// The errors of the system.
    pub fn open(path: &Path, offset: u64, bytes: u64) -> io::Result<Self> {
        let options =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).clone();
        let file = options.open(path)?;
        take_space(&file, offset + bytes)?;
        let mut options = MmapOptions::new();
        options.offset(offset).len(bytes as usize);
        // The file is the server's own, next to its device, which is locked. Another program that
        // shortened it would end the server with SIGBUS, as with any mapped file.
        #[allow(unsafe_code, reason = "mapping a file that no other process writes")]
        let map = unsafe { options.map_mut(&file)? };
        let synced = Arc::new(AtomicU64::new(0));
        let (sender, receiver) = channel::<u64>();
        let done = Arc::clone(&synced);
        thread::Builder::new().name("state sync".to_owned()).spawn(move || {
            while let Ok(mut number) = receiver.recv() {
                // One sync is for all that were requested until it begins.
                while let Ok(later) = receiver.try_recv() {
                    number = later;
                }
                if file.sync_data().is_ok() {
                    done.store(number, Ordering::Release);
                }
            }
        })?;
        Ok(Self { map, begun: 0, synced, syncs: Some(sender) })
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

    /// A sync of the file writes the pages that were changed through the mapping.
    fn begin_sync(&mut self) -> u64 {
        self.begun += 1;
        if let Some(syncs) = &self.syncs {
            // The thread ends only with this value.
            let _ = syncs.send(self.begun);
        }
        self.begun
    }

    fn synced(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
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
        let mut first = Mapped::open(&path, 4096, 10_000).unwrap();
        first.bytes_mut()[9_999] = 7;
        let number = first.begin_sync();
        while first.synced() < number {
            thread::yield_now();
        }
        drop(first);
        let second = Mapped::open(&path, 4096, 20_000).unwrap();
        assert_eq!((second.bytes()[9_999], second.bytes()[19_999]), (7, 0));
    }
}
