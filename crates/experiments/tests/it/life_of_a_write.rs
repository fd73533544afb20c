//! One host write, in the steps of ARCHITECTURE.md, through a drive and through the policy level
//! of the library: both are a block device, and the steps can be seen on either.

use prism_base::Bytes;
use prism_engine::block::{BlockDevice, Completion, HostOp, Request, Status};
use prism_flash::policy::{Block, Cleaning, Mapping, Policy, RangeConfig};
use prism_flash::{Allocation, Cache, Device, DeviceGeometry, MemoryDevice, Options};
use prism_nand::Cause;
use prism_ssd::{Drive, DriveSpec};

/// A mapping unit, and the flash page of four of them.
const UNIT: u64 = 4096;
const PAGE: u32 = 16384;

/// A block device whose flash operations can be counted.
trait Counted: BlockDevice {
    /// Pages programmed with data of the host, and pages read for the host.
    fn programs_and_reads(&self) -> (u64, u64);
}

impl Counted for Drive {
    fn programs_and_reads(&self) -> (u64, u64) {
        (self.flash_counts().programs[Cause::Host], self.flash_counts().reads[Cause::Host])
    }
}

impl Counted for Block<&Policy> {
    fn programs_and_reads(&self) -> (u64, u64) {
        let counts = self.policy().share().counts().unwrap();
        (counts.programs[Cause::Host], counts.reads[Cause::Host])
    }
}

/// Submits a request and lets time pass until it completes; returns its buffer, too.
fn perform(device: &mut dyn Counted, op: HostOp, bytes: Vec<u8>) -> (Completion, Vec<u8>) {
    let len = bytes.len() as u64;
    let request = Request::new(op, if len > 0 { 7 * UNIT } else { 0 }, len, 42);
    device.submit_bytes(request, bytes, device.now()).unwrap();
    assert_eq!(device.in_flight(), 1, "a submission does not wait");
    let mut done = Vec::new();
    assert!(device.next_completion(&mut done));
    let [completion] = done[..] else { panic!("one request completes once: {done:?}") };
    assert_eq!((completion.tag, completion.status), (42, Status::Done));
    let (tag, bytes) = device.take_bytes().expect("the buffer comes back");
    assert_eq!((tag, device.in_flight()), (42, 0));
    (completion, bytes)
}

fn follow_a_write(device: &mut dyn Counted) {
    let empty = || vec![0xff; UNIT as usize];
    let (_, nothing) = perform(device, HostOp::Read, empty());
    assert!(nothing.iter().all(|&byte| byte == 0), "an unmapped unit reads as zeros");
    for version in 1..3_u8 {
        let (programs, reads) = device.programs_and_reads();
        let written = vec![version; UNIT as usize];
        // Submit, link, firmware, buffer: with a write-back cache the request is complete here.
        perform(device, HostOp::Write, written.clone());
        assert_eq!(device.programs_and_reads(), (programs, reads), "it is in the buffer");
        // A read finds the unit in the buffer.
        assert_eq!(perform(device, HostOp::Read, empty()).1, written);
        assert_eq!(device.programs_and_reads().1, reads, "no flash read");
        // A flush waits for its program unit: flash, then commit.
        perform(device, HostOp::Flush, Vec::new());
        assert_eq!(device.programs_and_reads().0, programs + 1, "one page, with padding");
        // Now the map leads to flash, also after the unit was rewritten and the old one is garbage.
        assert_eq!(perform(device, HostOp::Read, empty()).1, written);
        assert_eq!(device.programs_and_reads().1, reads + 1, "one flash read");
    }
    perform(device, HostOp::Discard, empty());
    assert!(perform(device, HostOp::Read, empty()).1.iter().all(|&byte| byte == 0), "trimmed");
    device.host_counts().assert_conserved(0);
}

#[test]
fn one_write_through_a_drive() {
    let mut spec = DriveSpec::preset("consumer-nvme").unwrap();
    spec.ftl.mapping_unit = Bytes(UNIT);
    spec.flash.channels = 2;
    spec.flash.dies_per_channel = 1;
    spec.flash.planes = 1;
    spec.flash.multi_plane = false;
    spec.flash.pages_per_program = 1;
    spec.flash.pages_per_block = 16;
    spec.flash.blocks_per_plane = 32;
    spec.flash.page = Bytes(PAGE.into());
    spec.drive.capacity = Bytes(8 << 20);
    spec.drive.write_buffer = Bytes(1 << 20);
    spec.drive.power_loss_protection = false;
    spec.check().unwrap();
    let nand = spec.erased_with_content();
    follow_a_write(&mut Drive::with_nand(spec, nand, 1).unwrap());
}

#[test]
fn one_write_through_the_policy_level() {
    let geometry = DeviceGeometry {
        channels: 2,
        luns_per_channel: 1,
        blocks_per_lun: 48,
        pages_per_block: 16,
        page_size: PAGE,
        oob_size: 128,
        max_open_blocks: None,
    };
    let memory = MemoryDevice::new(geometry, Cache::None).unwrap();
    let timing = DriveSpec::preset("memblaze").unwrap().engine_config().timing;
    let device = Device::format(memory, Options { timing: Some(timing), wear: None }).unwrap();
    let share = device.allocate("one write", Allocation::new(Bytes(12 << 20), 0)).unwrap();
    let policy = Policy::open(share).unwrap();
    policy.configure(0, 8 << 20, RangeConfig::new(Mapping::Page, Cleaning::Greedy)).unwrap();
    follow_a_write(&mut Block::new(&policy, 0, 16).unwrap());
}
