//! Threads that write to a simulated drive, each with one request in flight.

use prism_base::{Bytes, Nanos};
use prism_engine::FlashCounts;
use prism_nand::Cause;
use prism_ssd::scale::fit_wide;
use prism_ssd::{Drive, DriveSpec, HostOp, Request};

use crate::drives::preset;
use crate::load::{self, Tally};

/// The preset that models the drive of the article.
pub(super) const PRESET: &str = "pcie-mlc";

/// The preset with all its dies and smaller blocks, with `capacity` or a little more.
pub(super) fn wide(capacity: Bytes) -> DriveSpec {
    fit_wide(&preset(PRESET), capacity).expect("a smaller drive of the same kind").device
}

/// A write of `len` bytes.
pub(super) fn write(offset: u64, len: u64) -> Request {
    Request::new(HostOp::Write, offset, len, 0)
}

/// The measurements of a run of writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// Number of writes.
    pub count: u64,
    /// Bytes a second, from the first submission to the last completion.
    pub rate: f64,
    /// Writes a second.
    pub per_second: f64,
    /// Mean latency of a write.
    pub latency: Nanos,
    /// The longest latency of a write.
    pub latency_max: Nanos,
    /// Bytes programmed over bytes that the host wrote; 0 if nothing was programmed.
    pub write_amplification: f64,
    /// Flash pages read to complete partly written units.
    pub rmw_reads: u64,
}

impl Stretch {
    pub(super) fn of(tally: &Tally, flash: &FlashCounts, unit: Bytes) -> Self {
        Self {
            count: tally.count,
            rate: tally.rate(),
            per_second: tally.per_second(),
            latency: Nanos(tally.mean().round() as u64),
            latency_max: tally.max,
            write_amplification: (flash.units.total() * unit.0) as f64 / tally.bytes as f64,
            rmw_reads: flash.reads[Cause::Rmw],
        }
    }
}

/// Lets `threads` threads write `count` times in all; `next` returns the next write of a thread.
///
/// # Panics
/// If the drive refuses a write.
pub(super) fn threads(
    drive: &mut Drive,
    threads: u32,
    count: u64,
    next: impl FnMut(u32) -> Request,
) -> Stretch {
    let before = *drive.flash_counts();
    let tally = load::threads(drive, threads, count, next);
    let flash = drive.flash_counts().since(&before);
    Stretch::of(&tally, &flash, drive.device().ftl.mapping_unit)
}
