//! Workloads whose speed is measured by whoever has a clock.
//!
//! The geometries are those on which older simulators were measured, so that figures
//! compare: MQSim's sample drive of 64 GB, and an 8 GB one for cleaning.

use prism_base::{Bytes, Nanos, Rng, SimTime};
use prism_ftl::Frontiers;
use prism_nand::PageTimes;
use prism_ssd::device::{Cell, WriteCache};
use prism_ssd::{Device, DeviceError, Drive, HostOp, InitialState, Request};

/// How much a workload did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// Requests completed.
    pub requests: u64,
    /// Flash page operations: pages read, pages programmed, blocks erased.
    pub page_operations: u64,
    /// Write amplification of what was measured; 0 if nothing was written.
    pub write_amplification: f64,
    /// Simulated time it took.
    pub simulated: Nanos,
}

/// A drive with 8 channels of 8 dies of 2 planes, 8 KiB pages as mapping units, 256 pages
/// a block: tR 75 us, tPROG 750 us, tBERS 3.8 ms, 333 MB/s a channel.
pub(crate) fn mqsim_like(blocks_per_plane: u32, capacity: Bytes) -> Result<Device, DeviceError> {
    let mut device = Device::preset("femu")?;
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
    device.drive.firmware_read = Nanos(5_000);
    device.drive.firmware_write = Nanos(5_000);
    device.drive.write_buffer = Bytes(2 << 20);
    device.drive.write_cache = WriteCache::WriteBack;
    device.drive.power_loss_protection = true;
    device.drive.queue_depth = 1024;
    device.drive.capacity = capacity;
    device.check()?;
    Ok(device)
}

/// Random single-page reads over a full 64 GB drive at `depth` requests in flight.
///
/// # Errors
/// [`DeviceError`] never, unless the preset it starts from is broken.
pub fn random_reads(
    count: u64,
    depth: u32,
    seed: u64,
) -> Result<impl FnOnce() -> Work, DeviceError> {
    closed_loop(mqsim_like(256, Bytes(56 << 30))?, HostOp::Read, count, depth, seed)
}

/// Random single-page writes on a drive of 8 GB in steady state, cleaning at a write
/// amplification near 3.9.
///
/// # Errors
/// [`DeviceError`] never, unless the preset it starts from is broken.
pub fn steady_writes(
    count: u64,
    depth: u32,
    seed: u64,
) -> Result<impl FnOnce() -> Work, DeviceError> {
    // Effective over-provisioning 0.15 gives 3.96 at 256 pages a block (theory).
    let mut device = mqsim_like(32, Bytes(1 << 30))?;
    let usable = device.ftl_config().usable_units(&device.geometry());
    device.drive.capacity = Bytes((usable as f64 / 1.15) as u64 * 8192);
    closed_loop(device, HostOp::Write, count, depth, seed)
}

/// Prepares the drive; the returned function runs the measured part.
fn closed_loop(
    device: Device,
    op: HostOp,
    count: u64,
    depth: u32,
    seed: u64,
) -> Result<impl FnOnce() -> Work, DeviceError> {
    let state = match op {
        HostOp::Write => InitialState::Preconditioned { overwrites: 3.0 },
        _ => InitialState::Filled,
    };
    let prepared = Drive::prepared(device, state, seed, |_, _| true)?;
    let (mut drive, _) = prepared.expect("nobody gives up");
    let units = u64::from(drive.device().ftl_config().logical_units);
    let mut rng = Rng::stream(seed, "speed.address");
    Ok(move || {
        let mut done = Vec::new();
        let mut submitted = 0;
        let mut completed = 0;
        while completed < count {
            while submitted < count && drive.in_flight() < depth {
                let (offset, len) = (rng.below(units) * 8192, 8192);
                let tag = submitted;
                let request = Request::new(op, offset, len, tag);
                drive.submit(request, drive.now()).expect("within the drive");
                submitted += 1;
            }
            drive.step(&mut done);
            completed += done.len() as u64;
            done.clear();
        }
        drive.assert_conserved();
        let flash = drive.flash_counts();
        let written = drive.host_counts().bytes_written;
        let programmed = flash.units.total() * drive.device().ftl.mapping_unit.0;
        Work {
            requests: completed,
            page_operations: flash.reads.total() + flash.programs.total() + flash.erases.total(),
            write_amplification: if written == 0 {
                0.0
            } else {
                programmed as f64 / written as f64
            },
            simulated: drive.now().since(SimTime::ZERO),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_meet_the_die_bound() {
        // At queue depth 512 on 64 dies with one operation a die, channels are the bound:
        // 8 x 333 MB/s / 8 KiB = 325 k reads/s.
        let work = random_reads(100_000, 512, 1).unwrap()();
        let rate = work.requests as f64 / work.simulated.as_secs_f64();
        assert!((0.9..1.001).contains(&(rate / 325_195.0)), "{rate}");
    }

    #[test]
    fn writes_clean_as_theory_says() {
        let work = steady_writes(1_000_000, 64, 1).unwrap()();
        let theory = crate::theory::greedy(0.15, 256);
        let off = work.write_amplification / theory - 1.0;
        // 64 blocks a die are few: what is open or free holds up to a block more data than
        // the effective over-provisioning grants it, a sixtieth of the flash.
        assert!((-0.1..0.02).contains(&off), "{} against {theory}", work.write_amplification);
    }
}
