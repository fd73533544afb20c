//! Memory of the cache in a mapped file, which outlives the process.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use memmap2::{MmapMut, MmapOptions};
use prism_cache::Memory;

/// A part of a file. A sync runs in a thread of its own, so that the server does not wait for it.
pub struct Mapped {
    map: MmapMut,
    syncs: Option<Sender<()>>,
}

/// Maps a part of a file that is long enough.
fn map(file: &File, offset: u64, bytes: u64) -> io::Result<MmapMut> {
    let mut options = MmapOptions::new();
    options.offset(offset).len(bytes as usize);
    // The file is the server's own, next to its device, which is locked. Another program that
    // shortened it would end the server with SIGBUS, as with any mapped file.
    #[allow(unsafe_code, reason = "mapping a file that no other process writes")]
    unsafe {
        options.map_mut(file)
    }
}

impl Mapped {
    /// Maps `bytes` bytes of a file from `offset` on. The file is made, and made long enough, if it
    /// is not; its space is taken on the disk, since a mapping cannot report a full disk.
    ///
    /// # Errors
    /// The errors of the system.
    pub fn open(path: &Path, offset: u64, bytes: u64) -> io::Result<Self> {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        take_space(&file, offset + bytes)?;
        // The thread syncs this part by a mapping of its own, and not what else is in the file.
        let own = map(&file, offset, bytes)?;
        let (sender, receiver) = channel::<()>();
        thread::Builder::new().name("state sync".to_owned()).spawn(move || {
            while receiver.recv().is_ok() {
                // One sync is for all that were requested until it begins.
                while receiver.try_recv().is_ok() {}
                // What a disk refuses now, the next sync or the kernel tries again.
                let _ = own.flush();
            }
        })?;
        Ok(Self { map: map(&file, offset, bytes)?, syncs: Some(sender) })
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

    fn begin_sync(&mut self) {
        if let Some(syncs) = &self.syncs {
            // The thread ends only with this value.
            let _ = syncs.send(());
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
        let mut first = Mapped::open(&path, 4096, 10_000).unwrap();
        first.bytes_mut()[9_999] = 7;
        first.begin_sync();
        drop(first);
        let second = Mapped::open(&path, 4096, 20_000).unwrap();
        assert_eq!((second.bytes()[9_999], second.bytes()[19_999]), (7, 0));
    }
}
