//! The monitor: two applications on one device, each on LUNs of its own.
//!
//! Neither sees the other, a block that fails is replaced invisibly, and in virtual time the
//! bandwidth of a share can be limited.

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::error::Error;

use prism::object::ObjectStore;
use prism::raw::{Address, Raw};
use prism::{
    Allocation, Bytes, Cache, Device, DeviceGeometry, FlashError, GlobalWear, Medium, MemoryDevice,
    Nanos, Options, PageState, PageTimes, SharedMemory, SimTime, Timing,
};

const GEOMETRY: DeviceGeometry = DeviceGeometry {
    channels: 4,
    luns_per_channel: 4,
    blocks_per_lun: 32,
    pages_per_block: 16,
    page_size: 4096,
    oob_size: 64,
    max_open_blocks: None,
};

const TIMING: Timing = Timing {
    t_read: PageTimes::uniform(Nanos(60_000)),
    t_program: PageTimes::uniform(Nanos(1_400_000)),
    t_erase: Nanos(5_000_000),
    t_command: Nanos(200),
    bus_bytes_per_second: Some(400_000_000),
};

/// Writes the first page of each block of the first LUN.
fn write_some(raw: &Raw, byte: u8) -> prism::Result<()> {
    for at in raw.blocks().filter(|at| (at.channel, at.lun) == (0, 0)) {
        raw.erase_block(at)?;
        raw.write_page(at, &[byte; 4096])?;
    }
    Ok(())
}

/// The content of a block of the device, below the monitor.
fn first_byte(memory: &SharedMemory, block: u32) -> Option<u8> {
    let mut byte = [0; 1];
    let read = memory.read(block, 0, 0, &mut byte, &mut []);
    (read == Ok(PageState::Written)).then_some(byte[0])
}

/// Runs the example.
///
/// # Errors
/// None, unless the library has a bug.
pub fn main() -> Result<(), Box<dyn Error>> {
    let memory = SharedMemory::from(MemoryDevice::new(GEOMETRY, Cache::None)?);
    let options = Options { timing: Some(TIMING), wear: Some(GlobalWear::default()) };
    let device = Device::format(memory.clone(), options)?;
    let lun = device.lun_capacity().0;

    // Four LUNs and a quarter of over-provisioning, round robin over the channels.
    let share = device.allocate("fast", Allocation::new(Bytes(4 * lun), 25))?;
    let geometry = share.geometry()?;
    let on_channel: Vec<_> = geometry.channels.iter().map(Vec::len).collect();
    assert_eq!((geometry.luns, geometry.ops_luns, &on_channel[..]), (5, 1, &[2, 1, 1, 1][..]));
    let fast = Raw::open(share)?;
    let limit = Some(1 << 20);
    let wanted = Allocation { bandwidth: limit, ..Allocation::new(Bytes(2 * lun), 0) };
    let slow = Raw::open(device.allocate("slow", wanted)?)?;

    // Addresses are those of the share: blocks of others have none.
    let beyond = Address { channel: 3, ..Address::default() };
    let refused = slow.read_page(beyond, &mut [0; 4096]);
    assert!(matches!(refused, Err(FlashError::OutOfRange { .. })), "{refused:?}");

    // Each share has its own clock. A limit delays only its own share.
    write_some(&fast, 1)?;
    write_some(&slow, 2)?;
    let (fast_now, slow_now) = (fast.share().now()?, slow.share().now()?);
    assert!(fast_now < SimTime(300_000_000), "{fast_now:?}");

    // A block wears out. The share does not notice; the device has one spare block less.
    let device_blocks = 0..GEOMETRY.blocks();
    let worn = device_blocks.into_iter().find(|&block| first_byte(&memory, block) == Some(1));
    let worn = worn.expect("the share has written one");
    memory.wear_out(worn);
    write_some(&fast, 3)?;
    for at in fast.blocks().filter(|at| (at.channel, at.lun) == (0, 0)) {
        let mut page = [0; 4096];
        fast.read_page(at, &mut page)?;
        assert_eq!(page, [3; 4096]);
    }
    assert_eq!(first_byte(&memory, worn), Some(1), "it could not be erased, and is left alone");

    // Shares grow by free LUNs, and are released. The next owner finds them erased.
    let share = slow.into_share();
    share.grow(2, 0)?;
    assert_eq!((share.geometry()?.luns, device.free_luns()), (4, 16 - 5 - 4));
    share.release()?;
    let share = device.allocate("other", Allocation::new(Bytes(6 * lun), 50))?;
    let objects = ObjectStore::open(share)?;
    assert!(objects.list().is_empty());
    let names: Vec<_> = device.shares().into_iter().map(|share| share.name).collect();
    assert_eq!(names, ["fast", "other"]);
    println!("fast at {fast_now:?}, slow at {slow_now:?}; {:?}", device.wear());
    Ok(())
}
