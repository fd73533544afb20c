//! Algorithm IV.3 of the Prism-SSD paper: setting up two ranges at the policy level, with the
//! sizes divided by a thousand.
//!
//! The code of the paper says block mapping with FIFO, then page mapping with greedy cleaning; its
//! text has the two policies the other way round. This program follows the code.

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::error::Error;

use prism::policy::{Cleaning, Mapping, Policy, RangeConfig};
use prism::{Allocation, Bytes, Cache, Device, DeviceGeometry, FlashError, MemoryDevice, Options};

const GEOMETRY: DeviceGeometry = DeviceGeometry {
    channels: 4,
    luns_per_channel: 4,
    blocks_per_lun: 80,
    pages_per_block: 32,
    page_size: 4096,
    oob_size: 64,
    max_open_blocks: None,
};

/// Runs the example.
///
/// # Errors
/// None, unless the library has a bug.
pub fn main() -> Result<(), Box<dyn Error>> {
    let memory = MemoryDevice::new(GEOMETRY, Cache::None)?;
    let device = Device::format(memory, Options::default())?;
    let share = device.allocate("ranges", Allocation::new(Bytes(100 << 20), 40))?;
    let policy = Policy::open(share)?;

    let start_addr = 0;
    let split_addr = 10 << 20;
    let end_addr = 100 << 20;
    let by_block = RangeConfig::new(Mapping::Block, Cleaning::Fifo);
    policy.configure(start_addr, split_addr, by_block)?;
    // Addresses between 0 and 10 MiB can be read and written from here on.
    policy.write(start_addr, b"below the split")?;
    let early = policy.write(split_addr, b"too early");
    assert!(matches!(early, Err(FlashError::NoRange { .. })), "{early:?}");
    let by_page = RangeConfig::new(Mapping::Page, Cleaning::Greedy);
    policy.configure(split_addr, end_addr, by_page)?;
    // And those between 10 and 100 MiB from here on.
    policy.write(end_addr - 15, b"below the limit")?;

    let mut text = [0; 15];
    policy.read(start_addr, &mut text)?;
    assert_eq!(&text, b"below the split");
    policy.read(end_addr - 15, &mut text)?;
    assert_eq!(&text, b"below the limit");
    policy.flush()?;

    // A request must not span two ranges, which have different policies.
    let over = policy.write(split_addr - 1, b"ab");
    assert!(matches!(over, Err(FlashError::PastEnd { .. })), "{over:?}");
    let ranges = policy.ranges();
    assert_eq!((ranges[0].config, ranges[1].config), (by_block, by_page));
    println!("{} and {} blocks", ranges[0].blocks, ranges[1].blocks);
    Ok(())
}
