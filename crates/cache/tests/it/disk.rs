//! A mapped file on a disk that can lose power.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use prism_base::Rng;
use prism_cache::Memory;
use prism_flash::SharedMemory;

/// The file of a mapping: what it had at the last sync that is complete, and what it has now.
#[derive(Default)]
pub struct Disk {
    pub durable: Vec<u8>,
    current: Vec<u8>,
    /// Syncs that have begun, and are complete.
    pub syncs: u64,
    done: u64,
    /// Content at the beginning of the syncs in flight.
    in_flight: VecDeque<Vec<u8>>,
    /// When syncs are complete; without it, at once.
    late: Option<Rng>,
    /// Waits for a sync until power goes during one, and the flash that loses it too.
    cut: Option<(u64, SharedMemory)>,
    /// What is left after that.
    left: Option<Vec<u8>>,
}

impl Disk {
    pub fn new(len: usize) -> Self {
        Self { durable: vec![0; len], ..Self::default() }
    }

    /// A disk whose syncs take their time.
    pub fn late(len: usize, rng: Rng) -> Self {
        Self { late: Some(rng), ..Self::new(len) }
    }

    fn complete(&mut self, number: u64) {
        while self.done < number {
            self.durable = self.in_flight.pop_front().expect("a sync in flight");
            self.done += 1;
        }
    }

    /// Power goes: each sector is as at the last sync, as at the beginning of one in flight, or as
    /// it is now.
    pub fn lose_power(&mut self, rng: &mut Rng) {
        self.cut = None;
        let current = std::mem::take(&mut self.current);
        match self.left.take() {
            Some(left) => self.durable = left,
            None if current.is_empty() => {}
            None => self.durable = self.mixed(&current, rng),
        }
        self.in_flight.clear();
        self.done = self.syncs;
    }

    /// Cuts the power of this disk and of `flash` during the next wait for a sync but `waits`.
    pub fn cut_power_after(&mut self, waits: u64, flash: SharedMemory) {
        self.cut = Some((waits, flash));
    }

    /// Each sector as it may be on the disk now.
    fn mixed(&self, current: &[u8], rng: &mut Rng) -> Vec<u8> {
        let mut later: Vec<&[u8]> = self.in_flight.iter().map(|bytes| &bytes[..]).collect();
        later.push(current);
        let mut mixed = self.durable.clone();
        let keep = rng.below(3);
        for (number, kept) in mixed.chunks_mut(512).enumerate() {
            let now = match keep {
                0 => continue,
                1 if rng.below(2) == 0 => continue,
                1 => later[rng.below(later.len() as u64) as usize],
                _ => later.last().expect("the current content"),
            };
            let begin = number * 512;
            kept.copy_from_slice(&now[begin..begin + kept.len()]);
        }
        mixed
    }

    /// The process ends, and power stays.
    pub fn keep_all(&mut self) {
        self.in_flight.clear();
        self.done = self.syncs;
        self.durable = std::mem::take(&mut self.current);
    }
}

/// A mapping of a file.
pub struct Mapped {
    bytes: Vec<u8>,
    disk: Arc<Mutex<Disk>>,
}

impl Mapped {
    pub fn new(disk: &Arc<Mutex<Disk>>) -> Box<Self> {
        Box::new(Self { bytes: disk.lock().unwrap().durable.clone(), disk: Arc::clone(disk) })
    }
}

impl Memory for Mapped {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    fn begin_sync(&mut self) -> u64 {
        let mut disk = self.disk.lock().unwrap();
        disk.in_flight.push_back(self.bytes.clone());
        disk.syncs += 1;
        let number = disk.syncs;
        if disk.late.is_none() {
            disk.complete(number);
        }
        number
    }

    fn synced(&self) -> Option<u64> {
        let mut disk = self.disk.lock().unwrap();
        let completes = disk.late.as_mut().is_some_and(|rng| rng.below(4) == 0);
        if completes && disk.done < disk.syncs {
            let next = disk.done + 1;
            disk.complete(next);
        }
        Some(disk.done)
    }

    fn wait_sync(&mut self, number: u64) {
        let mut disk = self.disk.lock().unwrap();
        match disk.cut.take() {
            Some((0, flash)) => {
                flash.cut_power_after(0);
                let mut rng = disk.late.take().expect("a disk whose syncs take time");
                disk.left = Some(disk.mixed(&self.bytes, &mut rng));
                disk.late = Some(rng);
            }
            Some((waits, flash)) => disk.cut = Some((waits - 1, flash)),
            None => {}
        }
        disk.complete(number);
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        self.disk.lock().unwrap().current = std::mem::take(&mut self.bytes);
    }
}
