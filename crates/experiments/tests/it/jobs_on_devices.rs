//! The same fio job on every block device: the simulated drive, the policy level of the library,
//! and the host FTL over zones.

use prism_base::Bytes;
use prism_engine::block::BlockDevice;
use prism_flash::policy::{Block, Cleaning, Mapping, Policy, RangeConfig};
use prism_flash::{Allocation, Cache, Device, DeviceGeometry, MemoryDevice, Options};
use prism_replay::HostFtl;
use prism_ssd::{Drive, DriveSpec, HostOp, InitialState, fit};
use prism_workload::Silent;
use prism_workload::fio::{self, Dir, JobReader};

const CAPACITY: u64 = 8 << 20;

/// Writes everything in order, then half of it at random while reading, with 8 I/Os in flight.
const JOBS: &str = "
[global]
bs=16k
iodepth=8

[fill]
rw=write

[mix]
stonewall
rw=randrw
io_size=8m
norandommap
";

fn check(name: &str, device: &mut dyn BlockDevice) {
    let mut reader = JobReader::new();
    reader.file("jobs.fio", JOBS).unwrap();
    let jobs = fio::jobs(&reader.finish().unwrap(), &[], CAPACITY, 1).unwrap();
    let result = fio::run_on(device, &jobs, &mut Silent).unwrap();
    let ios = CAPACITY / (16 << 10);
    let count = |row: usize, dir: Dir| {
        let stats = &result.rows[row].stats.dirs[dir as usize];
        stats.as_ref().map_or(0, |stats| stats.ios)
    };
    assert_eq!(count(0, Dir::Write), ios, "{name}");
    let mixed = [Dir::Read, Dir::Write].map(|dir| count(1, dir));
    assert!(mixed.iter().all(|&part| part > ios / 4), "{name}: {mixed:?}");
    assert_eq!(mixed[0] + mixed[1], ios, "{name}");
    assert_eq!(result.total.requests, 2 * ios, "{name}");
    assert_eq!(result.total.in_flight_max, 8, "{name}");
    assert!(result.total.simulated.0 > 0, "{name}: time passes");
    let written = result.total.bytes[HostOp::Write as usize];
    assert_eq!(device.host_counts().bytes_written, written, "{name}");
    assert!(result.total.flash_bytes >= written / 2, "{name}");
    device.assert_conserved();
}

#[test]
fn jobs_run_on_a_drive() {
    let spec = fit(&DriveSpec::preset("dc-tlc").unwrap(), Bytes(CAPACITY)).unwrap().device;
    check("drive", &mut Drive::new(spec, 1).unwrap());
}

#[test]
fn jobs_run_on_the_policy_level() {
    let geometry = DeviceGeometry {
        channels: 2,
        luns_per_channel: 1,
        blocks_per_lun: 48,
        pages_per_block: 16,
        page_size: 16384,
        oob_size: 128,
        max_open_blocks: None,
    };
    let memory = MemoryDevice::new(geometry, Cache::None).unwrap();
    let timing = DriveSpec::preset("memblaze").unwrap().engine_config().timing;
    let device = Device::format(memory, Options { timing: Some(timing), wear: None }).unwrap();
    let share = device.allocate("jobs", Allocation::new(Bytes(12 << 20), 0)).unwrap();
    let policy = Policy::open(share).unwrap();
    policy.configure(0, CAPACITY, RangeConfig::new(Mapping::Page, Cleaning::Greedy)).unwrap();
    let mut block = Block::new(&policy, 0, 8).unwrap();
    check("policy level", &mut block);
    assert_eq!(block.error(), None);
}

#[test]
fn jobs_run_on_a_host_ftl() {
    let mut preset = DriveSpec::preset("zns-small").unwrap();
    // A write buffer that is full soon.
    (preset.ftl.max_open_zones, preset.ftl.max_active_zones) = (Some(4), Some(4));
    preset.drive.write_buffer = Bytes(5 * (192 << 10));
    let addresses = HostFtl::addresses_for(&preset, CAPACITY).unwrap();
    let spec = fit(&preset, Bytes(addresses)).unwrap().device;
    let drive = Drive::prepared(spec, InitialState::Empty, 1, |_| true).unwrap().unwrap().0;
    check("host FTL", &mut HostFtl::fitted(drive, CAPACITY).unwrap());
}
