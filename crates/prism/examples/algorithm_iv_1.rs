//! Algorithm IV.1 of the Prism-SSD paper: garbage collection at the raw level.
//!
//! The application maps, allocates and cleans. It cleans the channels in turn: of each, the
//! block with the least valid data, whose valid pages are copied before it is erased.

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::collections::{BTreeMap, VecDeque};
use std::error::Error;

use prism::raw::{Address, Raw};
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
/// A channel with fewer erased blocks is cleaned.
const FREE_MIN: usize = 2;

/// A channel: its erased blocks, the one that is being written, and those that are full.
#[derive(Default)]
struct Channel {
    erased: VecDeque<Address>,
    open: Option<Address>,
    /// By block, the logical pages on it, in the order of its pages.
    full: BTreeMap<Address, Vec<usize>>,
    filling: Vec<usize>,
}

/// A store of logical pages.
struct PageStore {
    raw: Raw,
    map: Vec<Option<Address>>,
    channels: Vec<Channel>,
    /// `CH_num` of the algorithm.
    channel: usize,
    write_to: usize,
    copies: u64,
}

impl PageStore {
    fn new(raw: Raw, pages: usize) -> Self {
        let mut channels: Vec<Channel> = Vec::new();
        channels.resize_with(raw.geometry().channels.len(), Channel::default);
        for at in raw.blocks() {
            channels[at.channel as usize].erased.push_back(at);
        }
        Self { raw, map: vec![None; pages], channels, channel: 0, write_to: 0, copies: 0 }
    }

    /// Writes to the next page of a channel's open block.
    fn put(&mut self, channel: usize, logical: usize, data: &[u8]) -> prism::Result<()> {
        let state = &mut self.channels[channel];
        let at = match state.open {
            Some(at) => at,
            None => state.erased.pop_front().expect("cleaning keeps some"),
        };
        self.raw.write_page(at, data)?;
        self.map[logical] = Some(at);
        state.filling.push(logical);
        let next = at.with_page(at.page + 1);
        if next.page < GEOMETRY.pages_per_block {
            state.open = Some(next);
        } else {
            state.open = None;
            state.full.insert(at.with_page(0), std::mem::take(&mut state.filling));
        }
        Ok(())
    }

    fn is_valid(&self, block: Address, page: usize, logical: usize) -> bool {
        self.map[logical] == Some(block.with_page(page as u32))
    }

    fn valid(&self, block: Address, pages: &[usize]) -> usize {
        (0..pages.len()).filter(|&page| self.is_valid(block, page, pages[page])).count()
    }

    /// "Application determines GC status."
    fn must_clean(&self) -> bool {
        self.channels.iter().any(|channel| channel.erased.len() < FREE_MIN)
    }

    /// Algorithm IV.1, line by line.
    fn collect_garbage(&mut self) -> prism::Result<()> {
        while self.must_clean() {
            let full = &self.channels[self.channel].full;
            let least = full.iter().min_by_key(|(at, pages)| self.valid(**at, pages));
            if let Some((&victim, _)) = least {
                let pages = self.channels[self.channel].full.remove(&victim).expect("just seen");
                for (page, &logical) in pages.iter().enumerate() {
                    if self.is_valid(victim, page, logical) {
                        let mut data = [0; PAGE];
                        self.raw.read_page(victim.with_page(page as u32), &mut data)?;
                        self.put(self.channel, logical, &data)?;
                        self.copies += 1;
                    }
                }
                self.raw.erase_block(victim)?;
                self.channels[self.channel].erased.push_back(victim);
            }
            self.channel += 1;
            if self.channel >= self.channels.len() {
                self.channel = 0;
            }
        }
        Ok(())
    }

    fn write(&mut self, logical: usize, data: &[u8]) -> prism::Result<()> {
        self.write_to = (self.write_to + 1) % self.channels.len();
        self.put(self.write_to, logical, data)?;
        self.collect_garbage()
    }

    fn read(&self, logical: usize, into: &mut [u8]) -> prism::Result<()> {
        match self.map[logical] {
            Some(at) => self.raw.read_page(at, into),
            None => {
                into.fill(0);
                Ok(())
            }
        }
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
    let raw = Raw::open(device.allocate("pages", Allocation::new(capacity, 0))?)?;

    // The application's over-provisioning: it uses two thirds of its pages.
    let pages = (capacity.0 / PAGE as u64 * 2 / 3) as usize;
    let mut store = PageStore::new(raw, pages);
    let mut stamps = vec![0; pages];
    let mut rng = Rng::stream(1, "algorithm IV.1");
    for stamp in 1..=10 * pages as u64 {
        let logical = rng.below(pages as u64) as usize;
        store.write(logical, &stamp.to_le_bytes().repeat(PAGE / 8))?;
        stamps[logical] = stamp;
    }
    let mut data = [0; PAGE];
    for (logical, stamp) in stamps.into_iter().enumerate() {
        store.read(logical, &mut data)?;
        assert_eq!(data.to_vec(), stamp.to_le_bytes().repeat(PAGE / 8), "page {logical}");
    }
    let counts = store.raw.share().counts()?;
    let programs = counts.programs.total();
    assert_eq!(programs, 10 * pages as u64 + store.copies);
    assert!(counts.erases.total() > 0 && store.copies > 0);
    println!("write amplification {:.2}", programs as f64 / (10 * pages) as f64);
    Ok(())
}
