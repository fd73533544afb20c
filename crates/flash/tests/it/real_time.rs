//! Real time: calls take as long as in virtual time, also after a part of a device's life in
//! virtual time.

use std::sync::atomic::{AtomicU64, Ordering};

use prism_base::Nanos;
use prism_flash::raw::Raw;
use prism_flash::{Allocation, Cache, Device, DeviceGeometry, MemoryDevice, Options, WallClock};
use prism_nand::{PageTimes, Timing};

const PAGE: usize = 512;
const READ: u64 = 1_000 + 50_000;

/// A clock that advances only while the caller waits.
struct Idle(AtomicU64);

impl WallClock for Idle {
    fn now(&self) -> Nanos {
        Nanos(self.0.load(Ordering::Relaxed))
    }

    fn wait_until(&self, time: Nanos) {
        self.0.fetch_max(time.0, Ordering::Relaxed);
    }
}

#[test]
fn real_time_goes_on_where_virtual_time_has_ended() {
    static IDLE: Idle = Idle(AtomicU64::new(7_000));
    let geometry = DeviceGeometry {
        channels: 1,
        luns_per_channel: 2,
        blocks_per_lun: 24,
        pages_per_block: 8,
        page_size: PAGE as u32,
        oob_size: 0,
        max_open_blocks: None,
    };
    let timing = Timing {
        t_read: PageTimes::uniform(Nanos(50_000)),
        t_program: PageTimes::uniform(Nanos(600_000)),
        t_erase: Nanos(3_000_000),
        t_command: Nanos(1_000),
        bus_bytes_per_second: None,
    };
    let memory = MemoryDevice::new(geometry, Cache::None).unwrap();
    let device = Device::format(memory, Options { timing: Some(timing), wear: None }).unwrap();
    let one = || Allocation::new(device.lun_capacity(), 0);
    let [a, b] = ["a", "b"].map(|name| Raw::open(device.allocate(name, one()).unwrap()).unwrap());
    // The clock of the one is ahead of that of the other.
    for (raw, pages) in [(&a, 4), (&b, 1)] {
        let block = raw.blocks().next().unwrap();
        (0..pages).for_each(|page| raw.write_page(block.with_page(page), &[1; PAGE]).unwrap());
    }
    let latest = a.share().now().unwrap();
    assert!(latest > b.share().now().unwrap());
    drop((a, b));
    // Real time that begins again goes on as well.
    for _ in 0..2 {
        device.clone().in_real_time(&IDLE).unwrap();
        for name in ["a", "b"] {
            let raw = Raw::open(device.attach(name).unwrap()).unwrap();
            assert!(raw.share().now().unwrap() >= latest);
            let begin = IDLE.now();
            raw.read_page(raw.blocks().next().unwrap(), &mut [0; PAGE]).unwrap();
            assert_eq!(IDLE.now().0 - begin.0, READ, "{name}");
        }
    }
}
