//! A file in memory on a host that can lose power, for tests.
//!
//! Writes go to a page cache and become durable with a sync. After a power failure, each sector
//! written since then has one of its contents: the durable one, or that after any of the writes. So
//! writes are dropped, reordered and torn between sectors, but a sector is written atomically, as
//! on disks. If only the process ends, its writes stay in the page cache, and are not durable yet.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use prism_base::Rng;
use rustix::io::Errno;

use crate::headers;
use crate::layout::{ALIGN, SECTOR};

#[derive(Debug, Default)]
struct Disk {
    durable: Vec<u8>,
    /// The contents of each sector since the last sync, oldest first.
    cached: BTreeMap<u64, Vec<[u8; SECTOR]>>,
    operations: u64,
    syncs: u64,
    /// The operation during which power fails.
    cut_at: u64,
    /// The first operation for which the disk is full.
    full_at: u64,
    powered: bool,
    /// Number of the process; earlier ones are dead.
    session: u64,
    /// Pages of page headers that a device caches.
    headers_kept: usize,
    /// Bytes of the log that a device uses.
    log_max: u64,
    /// Sectors that the disk cannot read until it has written them.
    unreadable: BTreeSet<u64>,
}

/// A file on a simulated host. Clones are the same file.
#[derive(Clone, Debug)]
pub struct SimulatedFile(Arc<Mutex<Disk>>);

/// The file, as opened by one process.
#[derive(Debug)]
pub(crate) struct Session {
    file: SimulatedFile,
    session: u64,
}

impl Default for SimulatedFile {
    fn default() -> Self {
        Self::new()
    }
}

impl From<Vec<u8>> for SimulatedFile {
    /// A file with these bytes, durable.
    fn from(bytes: Vec<u8>) -> Self {
        let file = Self::new();
        file.lock().durable = bytes;
        file
    }
}

impl SimulatedFile {
    /// An empty file.
    #[must_use]
    pub fn new() -> Self {
        let (cut_at, full_at, headers_kept) = (u64::MAX, u64::MAX, headers::KEPT);
        let log_max = u64::MAX;
        let disk =
            Disk { cut_at, full_at, headers_kept, log_max, powered: true, ..Disk::default() };
        Self(Arc::new(Mutex::new(disk)))
    }

    fn lock(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().expect("no thread panics while it holds the disk")
    }

    /// Writes and syncs so far.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// Syncs so far.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        self.lock().syncs
    }

    /// Power fails during the operation after the next `operations`.
    pub fn cut_power_after(&self, operations: u64) {
        let mut disk = self.lock();
        disk.cut_at = disk.operations.saturating_add(operations);
    }

    /// The disk is full for every write after the next `operations`.
    pub fn fill_up_after(&self, operations: u64) {
        let mut disk = self.lock();
        disk.full_at = disk.operations.saturating_add(operations);
    }

    /// Sets the size of the header cache of devices opened from now on, in pages of 4 KiB: few, so
    /// that page headers are also written before a sync.
    pub fn keep_headers(&self, pages: usize) {
        self.lock().headers_kept = pages;
    }

    /// Limits the part of the journal that devices opened from now on use, to at least 16 KiB for a
    /// device of at most 256 blocks: little, so that they write checkpoints.
    pub fn limit_journal(&self, bytes: u64) {
        self.lock().log_max = bytes;
    }

    /// Changes a byte of the file, on the disk as well.
    pub fn flip(&self, at: u64) {
        let mut disk = self.lock();
        let (sector, within) = split(at);
        disk.durable[at as usize] ^= 1;
        let cached = disk.cached.get_mut(&sector);
        cached.into_iter().flatten().for_each(|content| content[within] ^= 1);
    }

    /// The disk cannot read the sector of this byte until it has written it again.
    pub fn make_unreadable(&self, at: u64) {
        self.lock().unreadable.insert(split(at).0);
    }

    /// The disk can read all sectors again.
    pub fn make_readable(&self) {
        self.lock().unreadable.clear();
    }

    /// Whether power has failed.
    #[must_use]
    pub fn lost_power(&self) -> bool {
        !self.lock().powered
    }

    /// Cuts power, unless it has failed already, and restores it. `rng` chooses the content of each
    /// sector written since the last sync.
    pub fn restart(&self, rng: &mut Rng) {
        /// Probability that a sector keeps a write: none, some or all.
        const KEPT: [f64; 5] = [0.0, 0.1, 0.5, 0.9, 1.0];
        let kept = KEPT[rng.below(KEPT.len() as u64) as usize];
        let mut disk = self.lock();
        for (sector, contents) in std::mem::take(&mut disk.cached) {
            if rng.chance(kept) {
                let newest = contents.len() - 1;
                let one =
                    if rng.chance(0.5) { newest } else { rng.below(newest as u64 + 1) as usize };
                disk.put(sector, &contents[one]);
            }
        }
        disk.revive();
    }

    /// The process that has the file open dies: it writes nothing more, and the page cache
    /// stays.
    pub fn kill(&self) {
        self.lock().revive();
    }

    /// The bytes of the file as a process reads them.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let disk = self.lock();
        let mut bytes = vec![0; disk.durable.len()];
        disk.read(0, &mut bytes);
        bytes
    }

    pub(crate) fn open(&self) -> Session {
        let session = self.lock().session;
        Session { file: self.clone(), session }
    }
}

impl Disk {
    fn put(&mut self, sector: u64, content: &[u8; SECTOR]) {
        self.unreadable.remove(&sector);
        let start = sector as usize * SECTOR;
        // The last sector of a file may be a part of one.
        let end = (start + SECTOR).min(self.durable.len());
        self.durable[start..end].copy_from_slice(&content[..end - start]);
    }

    fn settle(&mut self) {
        for (sector, contents) in std::mem::take(&mut self.cached) {
            self.put(sector, contents.last().expect("a sector that was written"));
        }
    }

    fn revive(&mut self) {
        self.powered = true;
        self.session += 1;
        (self.cut_at, self.full_at) = (u64::MAX, u64::MAX);
    }

    fn sector(&self, sector: u64) -> [u8; SECTOR] {
        if let Some(contents) = self.cached.get(&sector) {
            return *contents.last().expect("a sector that was written");
        }
        let mut content = [0; SECTOR];
        let start = sector as usize * SECTOR;
        let end = (start + SECTOR).min(self.durable.len());
        content[..end - start].copy_from_slice(&self.durable[start..end]);
        content
    }

    fn read(&self, at: u64, bytes: &mut [u8]) {
        let end = at + bytes.len() as u64;
        bytes.copy_from_slice(&self.durable[at as usize..end as usize]);
        for (sector, contents) in self.cached.range(split(at).0..end.div_ceil(SECTOR as u64)) {
            let (start, content) = (sector * SECTOR as u64, contents.last());
            let (from, to) = (start.max(at), (start + SECTOR as u64).min(end));
            let content = content.expect("a sector that was written");
            bytes[(from - at) as usize..(to - at) as usize]
                .copy_from_slice(&content[(from - start) as usize..(to - start) as usize]);
        }
    }

    fn write(&mut self, at: u64, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let (sector, within) = split(at + done as u64);
            let len = (SECTOR - within).min(bytes.len() - done);
            let mut content = self.sector(sector);
            content[within..within + len].copy_from_slice(&bytes[done..done + len]);
            self.cached.entry(sector).or_default().push(content);
            done += len;
        }
    }

    /// Whether the page cache has pages of the file, or can read them from the disk. It does that
    /// for a write of a part of one.
    fn can_read(&self, first: u64, end: u64) -> bool {
        let per_page = ALIGN / SECTOR as u64;
        let sectors = self.unreadable.range(first * per_page..end * per_page);
        sectors.into_iter().all(|sector| self.cached.contains_key(sector))
    }

    /// Counts an operation; returns whether power fails during it.
    fn operation(&mut self, session: u64) -> io::Result<bool> {
        self.check(session)?;
        self.operations += 1;
        self.powered = self.operations <= self.cut_at;
        Ok(!self.powered)
    }

    fn check(&self, session: u64) -> io::Result<()> {
        if self.powered && self.session == session { Ok(()) } else { Err(gone()) }
    }
}

fn split(at: u64) -> (u64, usize) {
    (at / SECTOR as u64, (at % SECTOR as u64) as usize)
}

fn gone() -> io::Error {
    io::Error::other("the simulated host has lost power")
}

impl Session {
    pub(crate) fn len(&self) -> io::Result<u64> {
        let disk = self.file.lock();
        disk.check(self.session)?;
        Ok(disk.durable.len() as u64)
    }

    pub(crate) fn headers_kept(&self) -> usize {
        self.file.lock().headers_kept
    }

    pub(crate) fn log_max(&self) -> u64 {
        self.file.lock().log_max
    }

    /// The length is durable at once: making a file is not tested here.
    pub(crate) fn set_len(&mut self, len: u64) -> io::Result<()> {
        let mut disk = self.file.lock();
        disk.check(self.session)?;
        // Not `resize`, which writes byte by byte in builds with little optimisation.
        let mut durable = vec![0; len as usize];
        let kept = disk.durable.len().min(durable.len());
        durable[..kept].copy_from_slice(&disk.durable[..kept]);
        disk.durable = durable;
        disk.cached.retain(|sector, _| sector * (SECTOR as u64) < len);
        Ok(())
    }

    pub(crate) fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let disk = self.file.lock();
        disk.check(self.session)?;
        let end = at + bytes.len() as u64;
        if end > disk.durable.len() as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if !disk.can_read(at / ALIGN, end.div_ceil(ALIGN)) {
            return Err(Errno::IO.into());
        }
        disk.read(at, bytes);
        Ok(())
    }

    pub(crate) fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut disk = self.file.lock();
        let cut = disk.operation(self.session)?;
        if disk.operations > disk.full_at {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let end = at + bytes.len() as u64;
        let is_part =
            |at: u64| !at.is_multiple_of(ALIGN) && !disk.can_read(at / ALIGN, at / ALIGN + 1);
        if is_part(at) || is_part(end) {
            return Err(Errno::IO.into());
        }
        disk.write(at, bytes);
        if cut { Err(gone()) } else { Ok(()) }
    }

    pub(crate) fn sync(&mut self) -> io::Result<()> {
        let mut disk = self.file.lock();
        if disk.operation(self.session)? {
            return Err(gone());
        }
        disk.settle();
        disk.syncs += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use prism_testkit::{all_seeds, seeds};

    use super::*;

    /// Two sectors, each written twice after a sync: a power failure leaves one of the contents of
    /// each, in every combination, and a kill leaves the last.
    #[test]
    fn random_cuts_leave_any_mixture_and_a_kill_everything() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in seeds(0..400) {
            let file = SimulatedFile::new();
            let mut disk = file.open();
            disk.set_len(1024).unwrap();
            disk.write_at(0, &[1; 1024]).unwrap();
            disk.sync().unwrap();
            disk.write_at(0, &[2; 1024]).unwrap();
            disk.write_at(0, &[3; 1024]).unwrap();
            file.kill();
            assert!(disk.write_at(0, &[4; 1024]).is_err(), "it is dead");
            assert_eq!(file.bytes(), [3; 1024]);
            file.restart(&mut Rng::stream(seed, "test"));
            let bytes = file.bytes();
            assert!(bytes.chunks(512).all(|sector| sector.iter().all(|&b| b == sector[0])));
            seen.insert((bytes[0], bytes[512]));
        }
        assert!(!all_seeds() || seen.len() == 9, "{seen:?}");
    }
}
