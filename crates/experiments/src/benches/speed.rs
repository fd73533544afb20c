//! Closed loops of random requests, to measure the speed of the simulator.
//!
//! The geometries are those on which older simulators were measured, so that the figures can be
//! compared: the sample drive of MQSim with 64 GB, and one with 8 GB for cleaning.

use prism_base::{Bytes, Nanos, Rng, SimTime};
use prism_ftl::Frontiers;
use prism_nand::PageTimes;
use prism_ssd::spec::{Cell, WriteCache};
use prism_ssd::{Completion, Drive, DriveSpec, DriveSpecError, HostOp, InitialState, Request};

use crate::drives::prepared;
use crate::load::ClosedLoop;

/// The work that a run has done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// Requests completed.
    pub requests: u64,
    /// Flash page operations: pages read, pages programmed, blocks erased.
    pub page_operations: u64,
    /// Write amplification of the run; 0 if nothing was written.
    pub write_amplification: f64,
    /// Simulated time of the run.
    pub simulated: Nanos,
}

/// A drive with 8 channels of 8 dies of 2 planes, mapping units of one page of 8 KiB, 256 pages per
/// block, tR 75 us, tPROG 750 us, tBERS 3.8 ms, and 333 MB/s per channel.
pub(crate) fn mqsim_like(
    blocks_per_plane: u32,
    capacity: Bytes,
) -> Result<DriveSpec, DriveSpecError> {
    let mut device = DriveSpec::preset("femu")?;
    device.name = "mqsim-like".into();
    device.flash.cell = Cell::Mlc;
    device.flash.planes = 2;
    device.flash.blocks_per_plane = blocks_per_plane;
    device.flash.pages_per_block = 256;
    device.flash.page = Bytes(8192);
    device.flash.t_read = PageTimes::uniform(Nanos(75_000));
    device.flash.t_program = PageTimes::uniform(Nanos(750_000));
    device.flash.t_erase = Nanos(3_800_000);
    device.flash.channel_bandwidth = Some(333_000_000);
    device.ftl.mapping_unit = Bytes(8192);
    device.ftl.frontiers = Frontiers::Shared;
    device.ftl.free_blocks_low = 2;
    device.ftl.free_blocks_high = 2;
    device.drive.firmware_read = Nanos(10_000);
    device.drive.firmware_write = Nanos(10_000);
    device.drive.write_buffer = Bytes(2 << 20);
    device.drive.write_cache = WriteCache::WriteBack;
    device.drive.power_loss_protection = true;
    device.drive.queue_depth = 1024;
    device.drive.capacity = capacity;
    device.check()?;
    Ok(device)
}

/// Requests whose map entries are prefetched at once, as many requests ahead.
const PREFETCHED: usize = 8;

/// A closed loop of random single-page requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its name in tables, by which it is also selected.
    pub name: &'static str,
    /// Reads, or writes to a drive that cleans.
    pub op: HostOp,
    /// Requests in flight.
    pub depth: u32,
    /// Raw size of the drive.
    pub size: Bytes,
}

impl Workload {
    const fn new(name: &'static str, op: HostOp, depth: u32, gigabytes: u64) -> Self {
        Self { name, op, depth, size: Bytes(gigabytes << 30) }
    }

    /// Every workload: several queue depths with the sizes at which older simulators were measured,
    /// then several sizes at one queue depth.
    pub const ALL: [Self; 13] = [
        Self::new("reads, QD 1", HostOp::Read, 1, 64),
        Self::new("reads, QD 8", HostOp::Read, 8, 64),
        Self::new("reads, QD 64", HostOp::Read, 64, 64),
        Self::new("reads, QD 1024", HostOp::Read, 1024, 64),
        Self::new("writes, QD 1", HostOp::Write, 1, 8),
        Self::new("writes, QD 64", HostOp::Write, 64, 8),
        Self::new("writes, QD 1024", HostOp::Write, 1024, 8),
        Self::new("reads, 8 GB", HostOp::Read, 64, 8),
        Self::new("reads, 1 TB", HostOp::Read, 64, 1024),
        Self::new("reads, 4 TB", HostOp::Read, 64, 4096),
        Self::new("writes, 64 GB", HostOp::Write, 64, 64),
        Self::new("writes, 1 TB", HostOp::Write, 64, 1024),
        Self::new("writes, 4 TB", HostOp::Write, 64, 4096),
    ];

    /// Prepares a drive in steady state at an effective over-provisioning of 0.15, for which theory
    /// gives a write amplification of 3.96. The returned function issues `count` requests; the
    /// caller times it.
    ///
    /// # Errors
    /// [`DriveSpecError`] only if the preset on which the drive is based is broken.
    pub fn prepare(&self, count: u64, seed: u64) -> Result<impl FnOnce() -> Work, DriveSpecError> {
        // 64 dies of 2 planes with blocks of 2 MiB a plane.
        let blocks_per_plane = (self.size.0 >> 28) as u32;
        let mut device = mqsim_like(blocks_per_plane, Bytes(1 << 30))?;
        let usable = device.usable_units();
        device.drive.capacity = Bytes((usable as f64 / 1.15) as u64 * 8192);
        Ok(closed_loop(device, self.op, count, self.depth, seed))
    }
}

/// Prepares the drive; the returned function issues the requests.
fn closed_loop(
    device: DriveSpec,
    op: HostOp,
    count: u64,
    depth: u32,
    seed: u64,
) -> impl FnOnce() -> Work {
    let mut drive = prepared(device, InitialState::Steady, seed);
    let units = u64::from(drive.device().logical_units());
    let mut rng = Rng::stream(seed, "speed.address");
    move || {
        let mut coming = [0; 2 * PREFETCHED];
        let mut prefetch = |drive: &Drive, coming: &mut [u64]| {
            for offset in coming {
                *offset = rng.below(units) * 8192;
                drive.prefetch(*offset);
            }
        };
        prefetch(&drive, &mut coming[..PREFETCHED]);
        let mut place = 0_usize;
        let next = |drive: &Drive, _| {
            // A replay, which knows its trace, prefetches in the same way.
            if place.is_multiple_of(PREFETCHED) {
                let next = PREFETCHED - place;
                prefetch(drive, &mut coming[next..next + PREFETCHED]);
            }
            let request = Request::new(op, coming[place], 8192, 0);
            place = (place + 1) % (2 * PREFETCHED);
            request
        };
        ClosedLoop::new(depth, next, |_: &[Completion]| {}).complete(&mut drive, count);
        let flash = drive.flash_counts();
        let written = drive.host_counts().bytes_written;
        let programmed = flash.units.total() * drive.device().ftl.mapping_unit.0;
        Work {
            requests: count,
            page_operations: flash.reads.total() + flash.programs.total() + flash.erases.total(),
            write_amplification: if written == 0 {
                0.0
            } else {
                programmed as f64 / written as f64
            },
            simulated: drive.now().since(SimTime::ZERO),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_reads_saturate_the_channels() {
        // At queue depth 512 on 64 dies, each with one operation at a time, the channels are the
        // bottleneck: 8 x 333 MB/s / 8 KiB = 325 k reads/s.
        let size = Bytes(64 << 30);
        let reads = Workload { name: "", op: HostOp::Read, depth: 512, size };
        let work = reads.prepare(100_000, 1).unwrap()();
        let rate = work.requests as f64 / work.simulated.as_secs_f64();
        assert!((0.9..1.001).contains(&(rate / 325_195.0)), "{rate}");
    }

    #[test]
    fn write_amplification_agrees_with_theory() {
        let size = Bytes(8 << 30);
        let writes = Workload { name: "", op: HostOp::Write, depth: 64, size };
        let work = writes.prepare(1_000_000, 1).unwrap()();
        let theory = crate::theory::greedy(0.15, 256);
        let off = work.write_amplification / theory - 1.0;
        // With only 64 blocks per die, open and free blocks hold up to one block of data more
        // than the effective over-provisioning counts, which is a sixtieth of the flash.
        assert!((-0.1..0.02).contains(&off), "{} against {theory}", work.write_amplification);
    }
}
