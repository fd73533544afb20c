//! The raw level: a log that keeps the newest pages, as a flight recorder does.
//!
//! The application knows that its data is written in order and that the oldest is dropped first. So
//! it needs no mapping and no cleaning. Pages are written to all LUNs at once, and blocks are
//! erased in turn.

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::error::Error;

use prism::raw::{Address, Raw};
use prism::{
    Allocation, Bytes, Cache, Device, DeviceGeometry, FlashError, MemoryDevice, Nanos, Options,
    PageTimes, Rng, SharedMemory, Timing,
};

const GEOMETRY: DeviceGeometry = DeviceGeometry {
    channels: 4,
    luns_per_channel: 2,
    blocks_per_lun: 16,
    pages_per_block: 16,
    page_size: 4096,
    oob_size: 0,
    max_open_blocks: None,
};

const TIMING: Timing = Timing {
    t_read: PageTimes::uniform(Nanos(60_000)),
    t_program: PageTimes::uniform(Nanos(1_400_000)),
    t_erase: Nanos(5_000_000),
    t_command: Nanos(200),
    bus_bytes_per_second: Some(400_000_000),
};

/// A log of stripes: one page on every LUN, each with the number of its stripe.
struct Recorder {
    raw: Raw,
    luns: Vec<Address>,
    next: u64,
}

impl Recorder {
    /// Continues after the newest block. A block that a power failure left partly written stays so,
    /// which does no harm.
    fn open(raw: Raw) -> prism::Result<Self> {
        let luns: Vec<_> = raw.blocks().filter(|at| at.block == 0).collect();
        let mut next = 0;
        for block in 0..raw.geometry().blocks_per_lun {
            let mut stripe = [0; 8];
            match raw.read_page(Address { block, ..luns[0] }, &mut stripe) {
                Ok(()) => next = next.max(u64::from_le_bytes(stripe) + Self::pages()),
                Err(FlashError::Unwritten { .. } | FlashError::Torn { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self { raw, luns, next })
    }

    fn pages() -> u64 {
        GEOMETRY.pages_per_block.into()
    }

    /// The address of a stripe.
    fn pages_of(&self, stripe: u64) -> Vec<Address> {
        let blocks = u64::from(self.raw.geometry().blocks_per_lun);
        let block = (stripe / Self::pages() % blocks) as u32;
        let page = (stripe % Self::pages()) as u32;
        self.luns.iter().map(|&lun| Address { block, page, ..lun }).collect()
    }

    fn append(&mut self) -> Result<u64, Box<dyn Error>> {
        let stripe = self.next;
        let pages = self.pages_of(stripe);
        if pages[0].page == 0 {
            // The oldest block is erased; a power failure may have interrupted this erase before.
            self.raw.erase_blocks(&pages)?;
        }
        let page = stripe.to_le_bytes().repeat(GEOMETRY.page_size as usize / 8);
        self.raw.write_pages(&pages, &page.repeat(pages.len()))?;
        self.next += 1;
        Ok(stripe)
    }

    fn check(&self, stripe: u64) -> Result<(), Box<dyn Error>> {
        let pages = self.pages_of(stripe);
        let mut data = vec![0; pages.len() * GEOMETRY.page_size as usize];
        self.raw.read_pages(&pages, &mut data)?;
        assert!(data.chunks(8).all(|word| word == stripe.to_le_bytes()), "stripe {stripe}");
        Ok(())
    }
}

/// Runs the example.
///
/// # Errors
/// None, unless the library has a bug.
pub fn main() -> Result<(), Box<dyn Error>> {
    let options = Options { timing: Some(TIMING), wear: None };
    let memory = SharedMemory::from(MemoryDevice::new(GEOMETRY, Cache::None)?);
    let device = Device::format(memory.clone(), options)?;
    let capacity = Bytes(8 * device.lun_capacity().0);
    let share = device.allocate("recorder", Allocation::new(capacity, 0))?;
    let mut log = Recorder::open(Raw::open(share)?)?;

    // Eight LUNs on four buses: a stripe takes little longer than one page.
    log.append()?;
    let before = log.raw.share().now()?;
    log.append()?;
    let took = log.raw.share().now()?.since(before);
    assert!(took < Nanos(1_500_000), "a stripe takes {took:?}");

    // Power fails in the middle of a stripe, after the log has wrapped around.
    while log.next < 1000 {
        log.append()?;
    }
    memory.cut_power_after(333);
    let mut last = 999;
    while let Ok(stripe) = log.append() {
        last = stripe;
    }
    drop((log, device));
    memory.restart(&mut Rng::stream(1, "raw"));

    let device = Device::open(memory, options)?;
    let mut log = Recorder::open(Raw::open(device.attach("recorder")?)?)?;
    let blocks = u64::from(log.raw.geometry().blocks_per_lun);
    let oldest = ((last + 1) / Recorder::pages() + 1 - blocks) * Recorder::pages();
    for stripe in oldest..=last {
        log.check(stripe)?;
    }
    let next = log.append()?;
    assert!(next > last);
    log.check(next)?;
    println!("stripes {oldest} to {last} were kept; one of eight pages took {took:?}");
    Ok(())
}
