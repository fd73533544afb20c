//! Small drives for tests.

pub mod aged;
pub mod failing;
pub mod harness;
pub mod lab;
pub mod model;
pub mod swarm;
pub mod zone_host;
pub mod zoned;

use prism_base::{Bytes, Nanos};
use prism_ftl::{Frontiers, VictimPolicy};
use prism_nand::PageTimes;
use prism_ssd::DriveSpec;
use prism_ssd::spec::WriteCache;

/// The bytes that request `tag` writes at `offset`.
pub fn pattern(tag: u64, offset: u64, len: u64) -> Vec<u8> {
    const SECTOR: u64 = 512;
    let word = (tag + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // Made one by one, these bytes take half of the time of some tests.
    let cycle: [u8; SECTOR as usize + 7] = std::array::from_fn(|at| (word >> (at % 7 * 8)) as u8);
    let mut bytes = Vec::with_capacity(len as usize);
    let (mut at, end) = (offset, offset + len);
    while at < end {
        let until = end.min((at / SECTOR + 1) * SECTOR);
        let (begin, high) = ((at % 7) as usize, (at / SECTOR) as u8);
        bytes.extend(cycle[begin..begin + (until - at) as usize].iter().map(|byte| byte ^ high));
        at = until;
    }
    bytes
}

/// A drive with two dies of `blocks` blocks and program units of 2 pages of 2 units: small enough
/// for thousands of runs, large enough for every mechanism.
pub fn tiny(blocks: u32, capacity_units: u64, protected: bool) -> DriveSpec {
    let mut device = DriveSpec::preset("consumer-nvme").unwrap();
    device.flash.channels = 1;
    device.flash.dies_per_channel = 2;
    device.flash.planes = 2;
    device.flash.multi_plane = true;
    device.flash.blocks_per_plane = blocks;
    device.flash.pages_per_block = 16;
    device.flash.pages_per_program = 1;
    device.flash.t_read = PageTimes::uniform(Nanos(35_760));
    device.flash.page = Bytes(8192);
    device.ftl.mapping_unit = Bytes(4096);
    device.ftl.frontiers = Frontiers::Separate;
    device.ftl.victim = VictimPolicy::Greedy;
    device.ftl.free_blocks_low = 4;
    device.ftl.free_blocks_high = 4;
    device.drive.capacity = Bytes(capacity_units * 4096);
    device.drive.write_buffer = Bytes(16 * 4096);
    device.drive.write_cache = WriteCache::WriteBack;
    device.drive.power_loss_protection = protected;
    device.drive.firmware_read = Nanos(1000);
    device.drive.firmware_write = Nanos(500);
    device.check().unwrap();
    device
}
