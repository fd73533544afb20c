//! Caches at each level on flash in virtual time.

use prism_base::{Bytes, Nanos};
use prism_cache::cache::{Cache, Config, Eviction, state_bytes};
use prism_flash::function::Function;
use prism_flash::policy::{Cleaning, Mapping, OverProvisioning, Policy, RangeConfig};
use prism_flash::raw::Raw;
use prism_flash::{Device, DeviceGeometry, MemoryDevice, Options, Result, Share, SharedMemory};
use prism_nand::Cause;
use prism_segments::{
    DriveStore, FlashCounts, FunctionStore, IdealStore, PolicyStore, RawStore, Store,
};
use prism_ssd::{Drive, DriveSpec};

use super::{Design, Engine, Setup};
use crate::benches::library::share_of_all;
use crate::drives::preset;

/// Channels, with one LUN each.
pub(super) const CHANNELS: u32 = 12;
/// Bytes of a page.
pub(super) const PAGE: u32 = 16 << 10;
/// The erase unit that Table I implies.
pub(super) const BLOCK: u64 = 8 << 20;
/// Blocks of each LUN for the tables of the library, beyond those of the cache.
pub(super) const OWN_BLOCKS: u32 = 8;
/// The share of the flash that is spare where over-provisioning is static, in percent.
pub(super) const SPARE: u32 = 25;
/// Slabs in memory: two for each LUN.
pub(super) const BUFFERS: u16 = 24;
/// The time in seconds at which runs begin; only differences matter.
pub(super) const BEGIN: u32 = 1 << 30;

/// The write buffer of the drive, in pages, as in the benchmark of the levels.
const DRIVE_BUFFER: u64 = 48;

impl Setup {
    /// Blocks of `bytes` bytes of the paper's flash, as many for each LUN.
    pub(super) fn blocks(self, bytes: u64) -> u32 {
        (bytes / BLOCK) as u32 / CHANNELS * CHANNELS
    }

    /// Bytes of a block, which is a slab.
    pub(super) fn block_bytes(self) -> u64 {
        BLOCK / self.divisor
    }

    fn flash(self, blocks: u32) -> Board {
        let Self { divisor, seed } = self;
        Board { blocks, block_bytes: self.block_bytes(), divisor, seed }
    }

    /// Channels of the flash.
    pub(super) fn channels(self) -> u32 {
        CHANNELS
    }

    /// An empty cache on `bytes` bytes of the paper's flash, made smaller.
    ///
    /// # Errors
    /// [`prism_flash::FlashError`] only if the flash is too small.
    pub(super) fn cache(self, design: Design, bytes: u64) -> Result<Cache<Box<dyn Store>>> {
        let blocks = self.blocks(bytes);
        let store = self.store(design, blocks)?;
        let state = vec![0; state_bytes(&store.shape()) as usize];
        let memory = vec![0; usize::from(design.buffers) * self.block_bytes() as usize];
        let config = Config {
            index_bytes: self.items(u64::from(blocks) * BLOCK) * 20,
            eviction: design.eviction,
            buffers: design.buffers,
            seed: self.seed,
            chunk: PAGE,
            payload: true,
        };
        let opened = Cache::open(store, Box::new(state), Box::new(memory), config, BEGIN);
        Ok(opened.expect("a new store of thousands of blocks"))
    }

    fn store(self, design: Design, blocks: u32) -> Result<Box<dyn Store>> {
        let board = self.flash(blocks);
        Ok(match design.engine {
            Engine::Original => {
                Box::new(board.drive(self.block_bytes() as u32, design.trims, design.capacitors))
            }
            Engine::Policy => {
                let policy = Policy::open(board.share(OWN_BLOCKS)?)?;
                let bytes = u64::from(blocks) * u64::from(100 - SPARE) / 100 * policy.block_bytes();
                let config = RangeConfig {
                    over_provisioning: OverProvisioning::Rest,
                    ..RangeConfig::new(Mapping::Block, Cleaning::Greedy)
                };
                policy.configure(0, bytes, config)?;
                Box::new(PolicyStore::new(policy, 0, bytes, 1))
            }
            Engine::Function => {
                Box::new(FunctionStore::new(Function::open(board.share(OWN_BLOCKS)?)?, 1))
            }
            Engine::Raw => Box::new(RawStore::new(Raw::open(board.share(OWN_BLOCKS)?)?, 1)),
            Engine::Ideal => {
                let memory = MemoryDevice::new(board.geometry(blocks), prism_flash::Cache::None)?;
                Box::new(IdealStore::new(SharedMemory::from(memory).into(), 1))
            }
        })
    }
}

/// Flash of the paper's board, made smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Board {
    /// Blocks of all LUNs.
    pub(super) blocks: u32,
    /// Bytes of a block.
    pub(super) block_bytes: u64,
    /// By which the time of an erase is divided.
    pub(super) divisor: u64,
    pub(super) seed: u64,
}

impl Board {
    fn geometry(self, blocks: u32) -> DeviceGeometry {
        DeviceGeometry {
            channels: CHANNELS,
            luns_per_channel: 1,
            blocks_per_lun: blocks / CHANNELS,
            pages_per_block: (self.block_bytes / u64::from(PAGE)) as u32,
            page_size: PAGE,
            oob_size: 128,
            max_open_blocks: None,
        }
    }

    /// The preset with the erase time of a block that is as much shorter as its pages are fewer.
    fn preset(self) -> DriveSpec {
        let mut device = preset("memblaze");
        device.flash.t_erase = Nanos(device.flash.t_erase.0 / self.divisor);
        device
    }

    /// All blocks in virtual time; each LUN has `own` more for the tables of the library.
    pub(super) fn share(self, own: u32) -> Result<Share> {
        let geometry = self.geometry(self.blocks + own * CHANNELS);
        let memory = MemoryDevice::new(geometry, prism_flash::Cache::None)?;
        let timing = Some(self.preset().engine_config().timing);
        share_of_all(&Device::format(memory, Options { timing, wear: None })?, "program")
    }

    /// Segments on a conventional drive with this flash.
    pub(super) fn drive(self, segment: u32, trims: bool, capacitors: bool) -> DriveStore<Drive> {
        let geometry = self.geometry(self.blocks);
        let mut device = self.preset();
        device.flash.channels = CHANNELS;
        device.flash.dies_per_channel = 1;
        device.flash.planes = 1;
        device.flash.multi_plane = false;
        device.flash.blocks_per_plane = geometry.blocks_per_lun;
        device.flash.pages_per_block = geometry.pages_per_block;
        device.flash.page = Bytes(PAGE.into());
        device.ftl.mapping_unit = device.flash.page;
        let blocks = u64::from(self.blocks) * u64::from(100 - SPARE) / 100;
        device.drive.capacity = Bytes(blocks * self.block_bytes);
        device.drive.power_loss_protection = capacitors;
        device.drive.write_buffer = Bytes(DRIVE_BUFFER * u64::from(PAGE));
        let nand = device.erased_with_content();
        let drive = Drive::with_nand(device, nand, self.seed).expect("a drive with spare flash");
        DriveStore::new(drive, segment, CHANNELS, trims, counts)
    }
}

/// The work of the drive on flash; its mapping unit is a page.
fn counts(drive: &Drive) -> FlashCounts {
    let counts = drive.flash_counts();
    let programs = counts.units[Cause::Host];
    FlashCounts {
        programs,
        copies: counts.units.total() - programs,
        reads: 0,
        erases: counts.erases.total(),
    }
}

impl Engine {
    /// What cleaning does with items.
    pub(super) fn eviction(self) -> Eviction {
        match self {
            Self::Original | Self::Policy => Eviction::Greedy { most: 20 },
            Self::Function | Self::Raw | Self::Ideal => Eviction::Integrated { most: 20 },
        }
    }
}
