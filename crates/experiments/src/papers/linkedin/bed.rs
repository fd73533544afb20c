//! Threads that write to a simulated drive, each one request at a time.

use prism_base::{Bytes, Nanos};
use prism_engine::FlashCounts;
use prism_nand::Cause;
use prism_ssd::scale::fit_wide;
use prism_ssd::{Device, Drive, HostOp, InitialState, Request};

use crate::load::Tally;

/// The drive of the article, made small: all dies, blocks of fewer rows.
pub(super) const PRESET: &str = "pcie-mlc";

/// The preset with all its dies at `capacity` or a little more.
pub(super) fn wide(capacity: Bytes) -> Device {
    let preset = Device::preset(PRESET).expect("a preset");
    fit_wide(&preset, capacity).expect("a smaller drive of the same kind").device
}

/// `device` in `state`.
///
/// # Panics
/// If the device makes no sense.
pub(super) fn prepared(device: Device, state: InitialState, seed: u64) -> Drive {
    let prepared = Drive::prepared(device, state, seed, |_, _| true);
    prepared.expect("a sound device").expect("nobody gives up").0
}

/// One write of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Write {
    pub(super) offset: u64,
    pub(super) len: u64,
}

/// What a stretch of writes got, and what it cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// Writes done.
    pub count: u64,
    /// Bytes a second, from the first submission to the last completion.
    pub rate: f64,
    /// Writes a second.
    pub per_second: f64,
    /// Mean latency of a write.
    pub latency: Nanos,
    /// The longest.
    pub latency_max: Nanos,
    /// Units programmed for each unit of data the host wrote; 0 if nothing was programmed.
    pub write_amplification: f64,
    /// Flash pages read to complete units that were written in part.
    pub rmw_reads: u64,
}

impl Stretch {
    pub(super) fn of(tally: &Tally, flash: &FlashCounts, unit: Bytes) -> Self {
        Self {
            count: tally.count,
            rate: tally.rate(),
            per_second: tally.count as f64 / tally.span.as_secs_f64(),
            latency: Nanos(tally.mean().round() as u64),
            latency_max: tally.max,
            write_amplification: (flash.units.total() * unit.0) as f64 / tally.bytes as f64,
            rmw_reads: flash.reads[Cause::Rmw],
        }
    }
}

/// `threads` threads write `count` times in all; `next` is told which thread writes.
///
/// # Panics
/// If the drive refuses a write.
pub(super) fn threads(
    drive: &mut Drive,
    threads: u32,
    count: u64,
    mut next: impl FnMut(u32) -> Write,
) -> Stretch {
    threads_with(drive, threads, count, |thread| (next(thread), 0))
}

/// The same, where each write names a placement handle.
///
/// # Panics
/// If the drive refuses a write.
pub(super) fn threads_with(
    drive: &mut Drive,
    threads: u32,
    count: u64,
    mut next: impl FnMut(u32) -> (Write, u16),
) -> Stretch {
    let (start, before) = (drive.now(), *drive.flash_counts());
    let mut tally = Tally::default();
    let mut submitted = 0;
    let mut submit = |drive: &mut Drive, thread: u32| {
        if submitted < count {
            submitted += 1;
            let (Write { offset, len }, handle) = next(thread);
            let tag = u64::from(thread);
            let request = Request { handle, ..Request::new(HostOp::Write, offset, len, tag) };
            drive.submit(request, drive.now()).expect("within the drive and its queue");
        }
    };
    (0..threads).for_each(|thread| submit(drive, thread));
    let mut done = Vec::new();
    while tally.count < count {
        drive.step(&mut done);
        for completion in done.drain(..) {
            tally.add(&completion);
            submit(drive, completion.tag as u32);
        }
    }
    tally.span = drive.now().since(start);
    drive.assert_conserved();
    let flash = drive.flash_counts().since(&before);
    Stretch::of(&tally, &flash, drive.device().ftl.mapping_unit)
}
