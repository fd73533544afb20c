//! Set-up of the stores: flash with times, or a conventional drive with the same flash.

use prism_base::{Bytes, SimTime};
use prism_engine::block::BlockDevice;
use prism_flash::function::Function;
use prism_flash::policy::{Block, Cleaning, Mapping, OverProvisioning, Policy, RangeConfig};
use prism_flash::{Cache, Device, DeviceGeometry, MemoryDevice, Raw, Result, Share};
use prism_nand::Cause;
use prism_ssd::Drive;

use super::block::BlockStore;
use super::function::FunctionFlash;
use super::log::{Flash, LogStore};
use super::raw::RawFlash;
use super::{BUFFER_PAGES, DEPTH, Level, Size, Store};
use crate::benches::library::{share_of_all, timed};
use crate::drives::preset;

/// LUNs: enough for queued requests to run in parallel, and few enough for each to have many
/// blocks from which cleaning can choose.
const CHANNELS: u32 = 4;
const LUNS_PER_CHANNEL: u32 = 2;
/// Spare flash, in percent of the store: the paper's default.
const OVER_PROVISIONING: u64 = 25;

/// Pages programmed and blocks erased.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FlashWork {
    pub(super) host: u64,
    pub(super) copies: u64,
    pub(super) tables: u64,
    pub(super) erases: u64,
}

/// A store whose time and flash operations can be read.
pub(super) trait MeasuredStore: Store {
    fn now(&self) -> SimTime;
    fn flash(&self) -> FlashWork;
}

/// A block device whose flash operations can be read.
trait MeasuredDevice: BlockDevice {
    fn flash(&self) -> FlashWork;
}

fn clock(share: &Share) -> SimTime {
    share.now().expect("the share is not released")
}

/// Operations of a share and of the device below it. `copies` are programs that the library counts
/// as host writes, because the store copies pages itself.
fn flash_of(share: &Share, copies: u64) -> FlashWork {
    let counts = share.counts().expect("the share is not released");
    let own = share.device().own_counts();
    let host = counts.programs[Cause::Host] - copies;
    FlashWork {
        host,
        copies: counts.programs.total() - host,
        tables: own.programs.total(),
        erases: counts.erases.total() + own.erases.total(),
    }
}

impl<F: Flash> MeasuredStore for LogStore<F> {
    fn now(&self) -> SimTime {
        clock(&self.flash.share())
    }

    fn flash(&self) -> FlashWork {
        flash_of(&self.flash.share(), self.copies)
    }
}

impl<D: MeasuredDevice> MeasuredStore for BlockStore<D> {
    fn now(&self) -> SimTime {
        self.device.now()
    }

    fn flash(&self) -> FlashWork {
        self.device.flash()
    }
}

impl MeasuredDevice for Block<&Policy> {
    fn flash(&self) -> FlashWork {
        flash_of(&self.policy().share(), 0)
    }
}

impl MeasuredDevice for Drive {
    fn flash(&self) -> FlashWork {
        // A mapping unit is a page.
        let counts = self.flash_counts();
        let host = counts.units[Cause::Host];
        let copies = counts.units.total() - host;
        FlashWork { host, copies, tables: 0, erases: counts.erases.total() }
    }
}

/// Runs `user` on an empty store of that many pages.
pub(super) fn with_store<T>(
    level: Level,
    size: Size,
    user: impl FnOnce(&mut dyn MeasuredStore, usize) -> Result<T>,
) -> Result<T> {
    let share = share(size)?;
    let geometry = share.geometry()?;
    let pages = u64::from(geometry.blocks()) * u64::from(size.pages_per_block);
    let pages = (pages * 100 / (100 + OVER_PROVISIONING)) as usize;
    let page_size = u64::from(size.page_size);
    match level {
        Level::Raw => {
            let raw = Raw::open(share)?;
            user(&mut LogStore::new(RawFlash::new(&raw), pages)?, pages)
        }
        Level::Function => {
            let flash = FunctionFlash::new(Function::open(share)?);
            user(&mut LogStore::new(flash, pages)?, pages)
        }
        Level::Policy => {
            let policy = Policy::open(share)?;
            let mut config = RangeConfig::new(Mapping::Page, Cleaning::Greedy);
            config.over_provisioning = OverProvisioning::Rest;
            policy.configure(0, pages as u64 * page_size, config)?;
            let block = Block::new(&policy, 0, DEPTH as u32)?;
            user(&mut BlockStore::new(block, page_size), pages)
        }
        Level::Drive => {
            let drive = drive(size, geometry.blocks_per_lun, pages as u64);
            user(&mut BlockStore::new(drive, page_size), pages)
        }
    }
}

/// A share of all LUNs.
fn share(size: Size) -> Result<Share> {
    let geometry = DeviceGeometry {
        channels: CHANNELS,
        luns_per_channel: LUNS_PER_CHANNEL,
        blocks_per_lun: size.blocks_per_lun,
        pages_per_block: size.pages_per_block,
        page_size: size.page_size,
        oob_size: 128,
        max_open_blocks: None,
    };
    let memory = MemoryDevice::new(geometry, Cache::None)?;
    let device = Device::format(memory, timed())?;
    share_of_all(&device, "store")
}

/// A drive with as many blocks as the share, and with the firmware and link of the preset.
fn drive(size: Size, blocks_per_lun: u32, pages: u64) -> Drive {
    let mut device = preset("memblaze");
    device.flash.channels = CHANNELS;
    device.flash.dies_per_channel = LUNS_PER_CHANNEL;
    device.flash.planes = 1;
    device.flash.multi_plane = false;
    device.flash.blocks_per_plane = blocks_per_lun;
    device.flash.pages_per_block = size.pages_per_block;
    device.flash.page = Bytes(size.page_size.into());
    device.ftl.mapping_unit = device.flash.page;
    device.drive.capacity = Bytes(pages * u64::from(size.page_size));
    device.drive.write_buffer = Bytes(BUFFER_PAGES as u64 * u64::from(size.page_size));
    let nand = device.erased_with_content();
    Drive::with_nand(device, nand, 1).expect("a drive with spare flash")
}
