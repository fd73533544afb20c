//! The CPU time of one call at each level of the flash library; the caller measures it.
//!
//! Calls go to a device in memory without timing. As many plain copies of the same bytes are timed
//! as well: the difference is what the level costs in addition to the copy. The data takes a
//! quarter of the flash, so that cleaning copies hardly anything. Above the function level the
//! measured time includes erases.

use std::hint::black_box;

use prism_base::Rng;
use prism_flash::function::{Channel, Function, Unit};
use prism_flash::object::{Attributes, ObjectId, ObjectStore};
use prism_flash::policy::{Cleaning, Mapping, OverProvisioning, Policy, RangeConfig};
use prism_flash::raw::Address;
use prism_flash::{
    Cache, Device, DeviceGeometry, KvStore, MemoryDevice, Options, Raw, Result, Share,
};

use super::library::share_of_all;

/// Bytes of the flash.
const FLASH: u64 = 128 << 20;
/// Bytes of the data that is read and written.
const DATA: u64 = FLASH / 4;
/// Bytes of a request at the policy and object levels, and about the size of a key-value pair.
const UNIT: u64 = 4096;

named_enum! {
    /// A kind of call.
    pub enum Call {
        /// Raw level: reads a random page.
        RawRead = "raw: read a page",
        /// Raw level: writes the next page.
        RawWrite = "raw: write a page",
        /// Function level: reads a random page.
        FunctionRead = "function: read a page",
        /// Function level: writes the next page; each block is allocated first.
        FunctionWrite = "function: write a page",
        /// Policy level: reads 4 KiB, sequential.
        PolicyReadInOrder = "policy: read 4 KiB, in order",
        /// Policy level: reads 4 KiB, random.
        PolicyRead = "policy: read 4 KiB, random",
        /// Policy level: writes 4 KiB, sequential.
        PolicyWriteInOrder = "policy: write 4 KiB, in order",
        /// Policy level: writes 4 KiB, random.
        PolicyWrite = "policy: write 4 KiB, random",
        /// Object level: reads 4 KiB of an object, random.
        ObjectRead = "object: read 4 KiB, random",
        /// Object level: writes 4 KiB of an object, random.
        ObjectWrite = "object: write 4 KiB, random",
        /// Key-value level: reads a value of 4,000 bytes.
        PairsGet = "pairs: get 4,000 bytes, random",
        /// Key-value level: writes a value of 4,000 bytes.
        PairsSet = "pairs: set 4,000 bytes, random",
    }
}

impl Call {
    /// The target for the cost in addition to the copy, in nanoseconds, if there is one.
    #[must_use]
    pub fn target_ns(self) -> Option<f64> {
        match self {
            Self::RawRead | Self::RawWrite => Some(150.0),
            Self::PolicyReadInOrder
            | Self::PolicyRead
            | Self::PolicyWriteInOrder
            | Self::PolicyWrite => Some(400.0),
            _ => None,
        }
    }

    fn is_read(self) -> bool {
        matches!(
            self,
            Self::RawRead
                | Self::FunctionRead
                | Self::PolicyReadInOrder
                | Self::PolicyRead
                | Self::ObjectRead
                | Self::PairsGet
        )
    }

    /// Whether its addresses are random.
    fn is_random(self) -> bool {
        use Call::{PolicyReadInOrder, PolicyWriteInOrder};
        let in_order = [Self::RawWrite, Self::FunctionWrite, PolicyReadInOrder, PolicyWriteInOrder];
        !in_order.contains(&self)
    }
}

/// A run of calls, which can be repeated.
pub struct Calls {
    /// Calls of a run.
    pub count: u64,
    /// Bytes of each call.
    pub bytes: u64,
    /// The address of each call, in multiples of `bytes`.
    places: Vec<u32>,
    is_read: bool,
    buffer: Vec<u8>,
    level: Box<dyn LevelCalls>,
}

/// The calls of one level of the library. Pages, units or pairs are numbered from 0.
trait LevelCalls {
    /// Prepares the flash for the next run; not measured.
    fn prepare(&mut self, _is_read: bool) -> Result<()> {
        Ok(())
    }
    fn read(&mut self, place: u32, data: &mut [u8]) -> Result<()>;
    fn write(&mut self, place: u32, data: &[u8]) -> Result<()>;
    /// Waits until everything written is on flash.
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
    /// Makes the calls; compiled for each level, so that only the run is called dynamically.
    fn run(&mut self, is_read: bool, places: &[u32], data: &mut [u8]) -> Result<()> {
        for &place in places {
            if is_read {
                self.read(place, data)?;
            } else {
                self.write(place, data)?;
            }
        }
        Ok(())
    }
}

impl Calls {
    /// Prepares calls on flash with pages of `page_size` bytes; data to be read is written.
    ///
    /// # Errors
    /// [`prism_flash::FlashError`] only if pages are so large that little of the flash is usable.
    pub fn new(call: Call, page_size: u32, seed: u64) -> Result<Self> {
        let share = share(page_size)?;
        let (mut level, bytes): (Box<dyn LevelCalls>, u64) = match call {
            Call::RawRead | Call::RawWrite => (Box::new(RawPages::new(share)?), page_size.into()),
            Call::FunctionRead | Call::FunctionWrite => {
                (Box::new(FunctionPages::new(share)?), page_size.into())
            }
            Call::ObjectRead | Call::ObjectWrite => (Box::new(InObject::new(share)?), UNIT),
            Call::PairsGet | Call::PairsSet => (Box::new(KvStore::open(share)?), VALUE),
            _ => (Box::new(range(share)?), UNIT),
        };
        let count = DATA / bytes.next_power_of_two();
        let in_order: Vec<_> = (0..count as u32).collect();
        level.run(false, &in_order, &mut vec![1; bytes as usize])?;
        level.flush()?;
        let mut rng = Rng::stream(seed, "calls.place");
        let place = |n| if call.is_random() { rng.below(count) as u32 } else { n };
        let places = in_order.into_iter().map(place).collect();
        let buffer = vec![1; (count * bytes) as usize];
        let mut calls = Self { count, bytes, places, is_read: call.is_read(), buffer, level };
        if !calls.is_read {
            // Without these runs, memory used for the first time would count as a cost of calls.
            for _ in 0..FLASH / DATA {
                calls.prepare()?;
                calls.run()?;
            }
        }
        Ok(calls)
    }

    /// Prepares the flash for the next run; not to be timed.
    ///
    /// # Errors
    /// As [`Calls::new`].
    pub fn prepare(&mut self) -> Result<()> {
        self.level.prepare(self.is_read)
    }

    /// Makes a run of calls.
    ///
    /// # Errors
    /// As [`Calls::new`].
    pub fn run(&mut self) -> Result<()> {
        let mut data = vec![7; self.bytes as usize];
        self.level.run(self.is_read, &self.places, &mut data)
    }

    /// Makes as many plain copies, from or to the same addresses of a buffer.
    pub fn copies(&mut self) {
        let bytes = self.bytes as usize;
        let mut data = vec![7; bytes];
        for &place in &self.places {
            let part = &mut self.buffer[place as usize * bytes..][..bytes];
            if self.is_read {
                black_box(&mut data).copy_from_slice(part);
            } else {
                black_box(part).copy_from_slice(&data);
            }
        }
    }
}

fn share(page_size: u32) -> Result<Share> {
    let pages_per_block = 64;
    let (channels, luns_per_channel) = (4, 2);
    let block = u64::from(page_size * pages_per_block * channels * luns_per_channel);
    let geometry = DeviceGeometry {
        channels,
        luns_per_channel,
        blocks_per_lun: (FLASH / block) as u32 + 8,
        pages_per_block,
        page_size,
        oob_size: 128,
        max_open_blocks: None,
    };
    let memory = MemoryDevice::new(geometry, Cache::None)?;
    let device = Device::format(memory, Options::default())?;
    share_of_all(&device, "calls")
}

/// Calls at the raw level, to pages that lie block after block.
struct RawPages {
    raw: Raw,
    pages: Vec<Address>,
}

impl RawPages {
    fn new(share: Share) -> Result<Self> {
        let raw = Raw::open(share)?;
        let shape = raw.geometry();
        let count = DATA / u64::from(shape.page_size);
        let of_block = |at: Address| (0..shape.pages_per_block).map(move |page| at.with_page(page));
        let pages = raw.blocks().flat_map(of_block).take(count as usize).collect();
        Ok(Self { raw, pages })
    }
}

impl LevelCalls for RawPages {
    fn prepare(&mut self, is_read: bool) -> Result<()> {
        let mut blocks = self.pages.iter().filter(|at| at.page == 0 && !is_read);
        blocks.try_for_each(|&at| self.raw.erase_block(at))
    }

    fn read(&mut self, place: u32, data: &mut [u8]) -> Result<()> {
        self.raw.read_page(self.pages[place as usize], data)
    }

    fn write(&mut self, place: u32, data: &[u8]) -> Result<()> {
        self.raw.write_page(self.pages[place as usize], data)
    }
}

/// Calls at the function level, to pages of blocks that are allocated one by one.
struct FunctionPages {
    function: Function,
    pages_per_block: u32,
    blocks: Vec<Address>,
}

impl FunctionPages {
    fn new(share: Share) -> Result<Self> {
        let function = Function::open(share)?;
        let pages_per_block = function.geometry().pages_per_block;
        Ok(Self { function, pages_per_block, blocks: Vec::new() })
    }

    fn page(&self, place: u32) -> Address {
        let block = self.blocks[(place / self.pages_per_block) as usize];
        block.with_page(place % self.pages_per_block)
    }
}

impl LevelCalls for FunctionPages {
    fn prepare(&mut self, is_read: bool) -> Result<()> {
        if !is_read {
            for at in self.blocks.drain(..) {
                self.function.trim(at, Unit::Block)?;
            }
        }
        self.function.drain()
    }

    fn read(&mut self, place: u32, data: &mut [u8]) -> Result<()> {
        self.function.read(self.page(place), data)
    }

    fn write(&mut self, place: u32, data: &[u8]) -> Result<()> {
        if (place / self.pages_per_block) as usize == self.blocks.len() {
            self.blocks.push(self.function.address_mapper(Channel::Any, Unit::Block)?.at);
        }
        self.function.write(self.page(place), data)
    }
}

/// A range of the policy level, for calls to it.
fn range(share: Share) -> Result<Policy> {
    let policy = Policy::open(share)?;
    let mut config = RangeConfig::new(Mapping::Page, Cleaning::Greedy);
    config.over_provisioning = OverProvisioning::Rest;
    policy.configure(0, DATA, config)?;
    Ok(policy)
}

impl LevelCalls for Policy {
    fn read(&mut self, place: u32, data: &mut [u8]) -> Result<()> {
        Self::read(self, u64::from(place) * UNIT, data)
    }

    fn write(&mut self, place: u32, data: &[u8]) -> Result<()> {
        Self::write(self, u64::from(place) * UNIT, data)
    }

    fn flush(&mut self) -> Result<()> {
        Self::flush(self)
    }
}

/// Calls at the object level, to one object.
struct InObject {
    store: ObjectStore,
    id: ObjectId,
}

impl InObject {
    fn new(share: Share) -> Result<Self> {
        let store = ObjectStore::open(share)?;
        let id = store.create(Attributes::default())?;
        Ok(Self { store, id })
    }
}

impl LevelCalls for InObject {
    fn read(&mut self, place: u32, data: &mut [u8]) -> Result<()> {
        self.store.read(self.id, u64::from(place) * UNIT, data).map(drop)
    }

    fn write(&mut self, place: u32, data: &[u8]) -> Result<()> {
        self.store.write(self.id, u64::from(place) * UNIT, data)
    }

    fn flush(&mut self) -> Result<()> {
        self.store.flush()
    }
}

/// Bytes of a value: with key and header a little less than 4 KiB.
const VALUE: u64 = 4000;

/// Calls at the key-value level, with a number as the key.
impl LevelCalls for KvStore {
    fn read(&mut self, place: u32, _data: &mut [u8]) -> Result<()> {
        black_box(self.get(&place.to_be_bytes())?);
        Ok(())
    }

    fn write(&mut self, place: u32, data: &[u8]) -> Result<()> {
        self.set(&place.to_be_bytes(), data)
    }

    fn flush(&mut self) -> Result<()> {
        Self::flush(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run leaves the flash in a state from which the next run can be prepared.
    #[test]
    fn runs_can_be_repeated() {
        for call in Call::ALL {
            let mut calls = Calls::new(call, 16 << 10, 1).unwrap();
            assert_eq!(calls.count * calls.bytes.next_power_of_two(), DATA, "{call:?}");
            for run in 0..2 {
                let done = calls.prepare().and_then(|()| calls.run());
                done.unwrap_or_else(|e| panic!("{call:?}, run {run}: {e}"));
            }
            calls.copies();
        }
    }
}
