//! A drive on which one workload after another is measured.

use prism_base::{Nanos, Rng};
use prism_engine::FlashCounts;
use prism_nand::Cause;
use prism_ssd::{Drive, DriveSpec, HostOp, MapCounts, Request};

use super::Cost;
use crate::load::{closed_loop, finish_background_work};

/// A drive, and its counts before the next workload.
pub(super) struct MeasuredDrive {
    pub(super) drive: Drive,
    flash: FlashCounts,
    map: Option<MapCounts>,
}

impl MeasuredDrive {
    /// An empty drive.
    ///
    /// # Panics
    /// If the device makes no sense.
    pub(super) fn empty(device: DriveSpec, seed: u64) -> Self {
        Self::on(Drive::new(device, seed).expect("a sound device"))
    }

    pub(super) fn on(drive: Drive) -> Self {
        let flash = *drive.flash_counts();
        let map = drive.map_counts().copied();
        Self { drive, flash, map }
    }

    /// Issues a request of `size` bytes at each of `offsets` with `depth` in flight, and waits
    /// for the background work of the drive.
    pub(super) fn run(&mut self, op: HostOp, size: u64, depth: u32, offsets: &[u64]) -> Cost {
        let drive = &mut self.drive;
        let count = offsets.len() as u64;
        let next = |number| Request::new(op, offsets[number as usize], size, number);
        let tally = closed_loop(drive, depth, count, next);
        finish_background_work(drive);
        let flash = drive.flash_counts().since(&self.flash);
        let map = drive.map_counts().zip(self.map).map(|(now, before)| now.since(&before));
        self.flash = *drive.flash_counts();
        self.map = drive.map_counts().copied();
        let written = flash.units[Cause::Host];
        Cost {
            bandwidth: tally.rate(),
            latency: Nanos(tally.mean().round() as u64),
            write_amplification: (written > 0).then(|| flash.units.total() as f64 / written as f64),
            erases: flash.erases.total(),
            map,
            wear: None,
        }
    }
}

/// The multiples of `step` below `space` in random order.
pub(super) fn shuffled(space: u64, step: u64, rng: &mut Rng) -> Vec<u64> {
    let mut offsets: Vec<u64> = (0..space).step_by(step as usize).collect();
    for left in (1..offsets.len()).rev() {
        offsets.swap(left, rng.below(left as u64 + 1) as usize);
    }
    offsets
}
