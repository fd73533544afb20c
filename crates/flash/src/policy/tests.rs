//! Tests of what a range keeps, which no call returns.

use super::*;
use crate::{Allocation, Cache, Device, DeviceGeometry, MemoryDevice, Options};
use prism_base::{Bytes, Nanos};
use prism_nand::{PageTimes, Timing};

/// A unit whose last program is always in flight when a flush is complete.
#[test]
fn units_in_flight_are_noted_once() {
    let geometry = DeviceGeometry {
        channels: 2,
        luns_per_channel: 1,
        blocks_per_lun: 24,
        pages_per_block: 8,
        page_size: 512,
        oob_size: 64,
        max_open_blocks: None,
    };
    let timing = Timing {
        t_read: PageTimes::uniform(Nanos(50_000)),
        t_program: PageTimes::uniform(Nanos(600_000)),
        t_erase: Nanos(3_000_000),
        t_command: Nanos(0),
        bus_bytes_per_second: None,
    };
    let memory = MemoryDevice::new(geometry, Cache::None).unwrap();
    let options = Options { timing: Some(timing), wear: None };
    let device = Device::format(memory, options).unwrap();
    let capacity = Bytes(2 * device.lun_capacity().0);
    let share = device.allocate("a", Allocation::new(capacity, 0)).unwrap();
    let policy = Policy::open(share).unwrap();
    let range = RangeConfig::new(Mapping::Page, Cleaning::Greedy);
    policy.configure(0, 60 * 512, range).unwrap();
    // A trim that stays.
    policy.write(512, &[1; 512]).unwrap();
    policy.trim(512, 512).unwrap();
    policy.flush().unwrap();
    let mut queue = policy.queue(2);
    for _ in 0..200 {
        policy.write(0, &[2; 512]).unwrap();
        queue.submit_flush(1).unwrap();
        let noted = policy.lock().ranges[0].programmed_units();
        assert!(noted <= 1, "{noted} units are noted");
        assert_eq!(queue.complete().unwrap().result, Ok(()));
    }
}
