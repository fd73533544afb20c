//! The time to open a share again after its process has died, by size: the tables of the monitor
//! are read, then the policy level rebuilds its map from the headers of all program units.

use prism_base::{Bytes, Nanos};
use prism_flash::policy::{Cleaning, Mapping, OverProvisioning, Policy, RangeConfig};
use prism_flash::{Cache, Device, DeviceGeometry, FlashError, MemoryDevice, SharedMemory};

use super::library::{share_of_all, timed};

/// A share that was opened again.
#[derive(Debug)]
pub struct Reopened {
    /// Bytes that were mapped.
    pub mapped: Bytes,
    /// Pages of the device.
    pub pages: u64,
    /// How long the reads of the flash took, in virtual time.
    pub device_time: Nanos,
    /// Keeps the memory of the policy level until the caller has measured it.
    _policy: Policy,
}

/// Bytes of a page.
pub const PAGE: u64 = 16_384;

/// Blocks per LUN of the devices, which have 16 LUNs: 0.25, 1 and 4 GiB, apart from the blocks that
/// the monitor keeps for itself.
pub const SIZES: [u32; 3] = [16, 64, 256];

fn geometry(blocks_per_lun: u32) -> DeviceGeometry {
    DeviceGeometry {
        channels: 8,
        luns_per_channel: 2,
        blocks_per_lun: blocks_per_lun + 4,
        pages_per_block: 64,
        page_size: PAGE as u32,
        oob_size: 512,
        max_open_blocks: None,
    }
}

/// Fills a device of `blocks_per_lun` blocks per LUN, with the times of the preset `memblaze`, to
/// 70 % and drops it like a process that dies. The returned function opens it again; the caller
/// times it.
///
/// # Errors
/// [`FlashError`] if the device is too small.
pub fn prepare(
    blocks_per_lun: u32,
) -> Result<impl FnOnce() -> Result<Reopened, FlashError>, FlashError> {
    let geometry = geometry(blocks_per_lun);
    let memory: SharedMemory = MemoryDevice::new(geometry, Cache::None)?.into();
    let options = timed();
    let device = Device::format(memory.clone(), options)?;
    let all = device.lun_capacity().0 * u64::from(device.free_luns());
    let policy = Policy::open(share_of_all(&device, "data")?)?;
    let unit = u64::from(policy.unit());
    let end = all * 7 / 10 / unit * unit;
    let config = RangeConfig {
        over_provisioning: OverProvisioning::Rest,
        ..RangeConfig::new(Mapping::Page, Cleaning::Greedy)
    };
    policy.configure(0, end, config)?;
    let page = vec![1; PAGE as usize];
    for address in (0..end / PAGE).map(|place| place * PAGE) {
        policy.write(address, &page)?;
    }
    policy.flush()?;
    drop((policy, device));
    Ok(move || {
        let device = Device::open(memory, options)?;
        let share = device.attach("data")?;
        let begin = share.now()?;
        let policy = Policy::open(share)?;
        let device_time = policy.share().now()?.since(begin);
        let mapped = Bytes(policy.ranges().iter().map(|range| range.mapped).sum());
        let pages = u64::from(geometry.blocks()) * u64::from(geometry.pages_per_block);
        Ok(Reopened { mapped, pages, device_time, _policy: policy })
    })
}
