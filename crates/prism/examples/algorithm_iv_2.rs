//! Algorithm IV.2 of the Prism-SSD paper: allocating blocks and collecting garbage at the
//! function level.
//!
//! The library chooses blocks, erases them in the background and returns the number of free ones.
//! The application maps, and decides when to clean and which block: here the block of the channel
//! with the least valid data ("Greedy").

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::collections::BTreeMap;
use std::error::Error;

use prism::function::{Allocated, Channel, Function, Unit};
use prism::raw::Address;
use prism::{Allocation, Bytes, Cache, Device, DeviceGeometry, MemoryDevice, Options, Rng};

const GEOMETRY: DeviceGeometry = DeviceGeometry {
    channels: 2,
    luns_per_channel: 2,
    blocks_per_lun: 24,
    pages_per_block: 16,
    page_size: 4096,
    oob_size: 0,
    max_open_blocks: None,
};

const PAGE: usize = 4096;
const PAGES: usize = 16;
const GC_THRESHOLD: u32 = 3;

/// A store of logical pages, written a block at a time.
struct BlockStore {
    flash: Function,
    map: Vec<Option<Address>>,
    /// By block, the logical pages on it, in the order of its pages.
    blocks: BTreeMap<Address, Vec<usize>>,
    /// By channel, the block that takes copies.
    copies_to: BTreeMap<u32, Address>,
    copies: u64,
}

impl BlockStore {
    fn new(flash: Function, pages: usize) -> Self {
        let (blocks, copies_to) = (BTreeMap::new(), BTreeMap::new());
        Self { flash, map: vec![None; pages], blocks, copies_to, copies: 0 }
    }

    fn put(&mut self, block: Address, logical: usize, data: &[u8]) -> prism::Result<()> {
        let pages = self.blocks.entry(block).or_default();
        let at = block.with_page(pages.len() as u32);
        self.flash.write(at, data)?;
        pages.push(logical);
        self.map[logical] = Some(at);
        Ok(())
    }

    /// The channel with the least valid data. The library's [`Channel::Any`] considers the work of
    /// its LUNs; it does not know which data is valid.
    fn least_loaded(&self) -> u32 {
        let valid =
            |channel: &u32| self.map.iter().flatten().filter(|at| at.channel == *channel).count();
        let channels = 0..self.flash.geometry().channels.len() as u32;
        channels.min_by_key(valid).expect("a share has channels")
    }

    /// The loop of Algorithm IV.2, with its `len` in blocks.
    fn write_blocks(
        &mut self,
        len: u32,
        mut next: impl FnMut() -> (usize, Vec<u8>),
    ) -> prism::Result<()> {
        for _ in 0..len {
            let channel = Channel::Number(self.least_loaded());
            let new = self.flash.address_mapper(channel, Unit::Block)?;
            let Allocated { at, free_left, .. } = new;
            for _ in 0..PAGES {
                let (logical, data) = next();
                self.put(at, logical, &data)?;
            }
            if free_left < GC_THRESHOLD {
                self.app_gc(at.channel)?;
            }
        }
        Ok(())
    }

    fn valid_of(&self, block: Address) -> Vec<(Address, usize)> {
        let pages = (0..).zip(&self.blocks[&block]);
        let placed = pages.map(|(page, &logical)| (block.with_page(page), logical));
        placed.filter(|&(at, logical)| self.map[logical] == Some(at)).collect()
    }

    /// `APP_GC` of the algorithm.
    fn app_gc(&mut self, channel: u32) -> prism::Result<()> {
        while self.flash.free(channel)? < GC_THRESHOLD {
            let of_channel = |block: &&Address| {
                block.channel == channel && self.copies_to.get(&channel) != Some(block)
            };
            let blocks = self.blocks.keys().filter(of_channel);
            let victim = blocks.min_by_key(|block| self.valid_of(**block).len());
            let victim = *victim.expect("a channel that is full has blocks");
            for (from, logical) in self.valid_of(victim) {
                let mut data = [0; PAGE];
                self.flash.read(from, &mut data)?;
                let to = self.block_for_copies(channel)?;
                self.put(to, logical, &data)?;
                self.copies += 1;
            }
            self.blocks.remove(&victim);
            self.flash.trim(victim, Unit::Block)?;
            // It is erased in the background; wait, so that the next iteration finds it free.
            self.flash.drain()?;
        }
        Ok(())
    }

    fn block_for_copies(&mut self, channel: u32) -> prism::Result<Address> {
        let open = self.copies_to.get(&channel).copied();
        if let Some(block) = open.filter(|block| self.blocks[block].len() < PAGES) {
            return Ok(block);
        }
        let new = self.flash.address_mapper(Channel::Number(channel), Unit::Block)?;
        self.blocks.insert(new.at, Vec::new());
        self.copies_to.insert(channel, new.at);
        Ok(new.at)
    }
}

/// Runs the example.
///
/// # Errors
/// None, unless the library has a bug.
pub fn main() -> Result<(), Box<dyn Error>> {
    let memory = MemoryDevice::new(GEOMETRY, Cache::None)?;
    let device = Device::format(memory, Options::default())?;
    let capacity = Bytes(4 * device.lun_capacity().0);
    let flash = Function::open(device.allocate("blocks", Allocation::new(capacity, 0))?)?;

    let pages = (capacity.0 / PAGE as u64 * 3 / 5) as usize;
    let mut store = BlockStore::new(flash, pages);
    let mut stamps = vec![0; pages];
    let mut rng = Rng::stream(2, "algorithm IV.2");
    let mut stamp = 0u64;
    for _ in 0..40 {
        store.write_blocks(10, || {
            let logical = rng.below(pages as u64) as usize;
            stamp += 1;
            stamps[logical] = stamp;
            (logical, stamp.to_le_bytes().repeat(PAGE / 8))
        })?;
    }
    for (logical, stamp) in stamps.into_iter().enumerate() {
        let Some(at) = store.map[logical] else {
            assert_eq!(stamp, 0);
            continue;
        };
        let mut data = [0; PAGE];
        store.flash.read(at, &mut data)?;
        assert_eq!(data.to_vec(), stamp.to_le_bytes().repeat(PAGE / 8), "page {logical}");
    }
    let counts = store.flash.share().counts()?;
    assert_eq!(counts.programs.total(), stamp + store.copies);
    assert!(counts.erases.total() > 0);
    println!("write amplification {:.2}", counts.programs.total() as f64 / stamp as f64);
    Ok(())
}
