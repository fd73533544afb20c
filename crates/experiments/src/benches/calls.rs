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

/// A kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Raw level: reads a random page.
    RawRead,
    /// Raw level: writes the next page.
    RawWrite,
    /// Function level: reads a random page.
    FunctionRead,
    /// Function level: writes the next page; each block is allocated first.
    FunctionWrite,
    /// Policy level: reads 4 KiB, sequential.
    PolicyReadInOrder,
    /// Policy level: reads 4 KiB, random.
    PolicyRead,
    /// Policy level: writes 4 KiB, sequential.
    PolicyWriteInOrder,
    /// Policy level: writes 4 KiB, random.
    PolicyWrite,
    /// Object level: reads 4 KiB of an object, random.
    ObjectRead,
    /// Object level: writes 4 KiB of an object, random.
    ObjectWrite,
    /// Key-value level: reads a value of 4,000 bytes.
    PairsGet,
    /// Key-value level: writes a value of 4,000 bytes.
    PairsSet,
}

impl Call {
    /// Every kind.
    pub const ALL: [Self; 12] = [
        Self::RawRead,
        Self::RawWrite,
        Self::FunctionRead,
        Self::FunctionWrite,
        Self::PolicyReadInOrder,
        Self::PolicyRead,
        Self::PolicyWriteInOrder,
        Self::PolicyWrite,
        Self::ObjectRead,
        Self::ObjectWrite,
        Self::PairsGet,
        Self::PairsSet,
    ];

    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RawRead => "raw: read a page",
            Self::RawWrite => "raw: write a page",
            Self::FunctionRead => "function: read a page",
            Self::FunctionWrite => "function: write a page",
            Self::PolicyReadInOrder => "policy: read 4 KiB, in order",
            Self::PolicyRead => "policy: read 4 KiB, random",
            Self::PolicyWriteInOrder => "policy: write 4 KiB, in order",
            Self::PolicyWrite => "policy: write 4 KiB, random",
            Self::ObjectRead => "object: read 4 KiB, random",
            Self::ObjectWrite => "object: write 4 KiB, random",
            Self::PairsGet => "pairs: get 4,000 bytes, random",
            Self::PairsSet => "pairs: set 4,000 bytes, random",
        }
    }

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

/// The calls of one level of the library.
trait LevelCalls {
    /// Prepares the flash for the next run; not measured.
    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }
    /// Makes the calls.
    fn run(&mut self, places: &[u32], data: &mut [u8]) -> Result<()>;
}

impl Calls {
    /// Prepares calls on flash with pages of `page_size` bytes; data to be read is written.
    ///
    /// # Errors
    /// [`prism_flash::FlashError`] only if pages are so large that little of the flash is usable.
    pub fn new(call: Call, page_size: u32, seed: u64) -> Result<Self> {
        let share = share(page_size)?;
        let level: Box<dyn LevelCalls> = match call {
            Call::RawRead | Call::RawWrite => Box::new(RawPages::new(share, call)?),
            Call::FunctionRead | Call::FunctionWrite => {
                Box::new(FunctionPages::new(share, call, page_size)?)
            }
            Call::ObjectRead | Call::ObjectWrite => Box::new(InObject::new(share, call)?),
            Call::PairsGet | Call::PairsSet => Box::new(Pairs::new(share, call)?),
            _ => Box::new(InRange::new(share, call)?),
        };
        let bytes = match call {
            Call::RawRead | Call::RawWrite | Call::FunctionRead | Call::FunctionWrite => {
                page_size.into()
            }
            Call::PairsGet | Call::PairsSet => VALUE as u64,
            _ => UNIT,
        };
        let count = DATA / bytes.next_power_of_two();
        let mut rng = Rng::stream(seed, "calls.place");
        let place = |n: u64| if call.is_random() { rng.below(count) } else { n } as u32;
        let places = (0..count).map(place).collect();
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
        self.level.prepare()
    }

    /// Makes a run of calls.
    ///
    /// # Errors
    /// As [`Calls::new`].
    pub fn run(&mut self) -> Result<()> {
        let mut data = vec![7; self.bytes as usize];
        self.level.run(&self.places, &mut data)
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
    let device = Device::format(Box::new(memory), Options::default())?;
    share_of_all(&device, "calls")
}

/// Calls at the raw level, to pages that lie block after block.
struct RawPages {
    raw: Raw,
    pages: Vec<Address>,
    is_read: bool,
}

impl RawPages {
    fn new(share: Share, call: Call) -> Result<Self> {
        let raw = Raw::open(share)?;
        let shape = raw.geometry();
        let count = DATA / u64::from(shape.page_size);
        let of_block = |at: Address| (0..shape.pages_per_block).map(move |page| at.with_page(page));
        let pages: Vec<_> = raw.blocks().flat_map(of_block).take(count as usize).collect();
        let data = vec![1; shape.page_size as usize];
        for &at in &pages {
            raw.write_page(at, &data)?;
        }
        Ok(Self { raw, pages, is_read: call.is_read() })
    }
}

impl LevelCalls for RawPages {
    fn prepare(&mut self) -> Result<()> {
        let blocks = self.pages.iter().filter(|at| at.page == 0 && !self.is_read);
        blocks.into_iter().try_for_each(|&at| self.raw.erase_block(at))
    }

    fn run(&mut self, places: &[u32], data: &mut [u8]) -> Result<()> {
        for &place in places {
            let at = self.pages[place as usize];
            if self.is_read {
                self.raw.read_page(at, data)?;
            } else {
                self.raw.write_page(at, data)?;
            }
        }
        Ok(())
    }
}

/// Calls at the function level, to pages of blocks that are allocated one by one.
struct FunctionPages {
    function: Function,
    pages_per_block: usize,
    blocks: Vec<Address>,
    is_read: bool,
}

impl FunctionPages {
    fn new(share: Share, call: Call, page_size: u32) -> Result<Self> {
        let function = Function::open(share)?;
        let pages_per_block = function.geometry().pages_per_block as usize;
        let mut all = Self { function, pages_per_block, blocks: Vec::new(), is_read: false };
        let places: Vec<_> = (0..(DATA / u64::from(page_size)) as u32).collect();
        all.run(&places, &mut vec![1; page_size as usize])?;
        Ok(Self { is_read: call.is_read(), ..all })
    }
}

impl LevelCalls for FunctionPages {
    fn prepare(&mut self) -> Result<()> {
        if !self.is_read {
            for at in self.blocks.drain(..) {
                self.function.trim(at, Unit::Block)?;
            }
        }
        self.function.drain()
    }

    fn run(&mut self, places: &[u32], data: &mut [u8]) -> Result<()> {
        for &place in places {
            let (block, page) =
                (place as usize / self.pages_per_block, place as usize % self.pages_per_block);
            if block == self.blocks.len() {
                self.blocks.push(self.function.address_mapper(Channel::Any, Unit::Block)?.at);
            }
            let at = self.blocks[block].with_page(page as u32);
            if self.is_read {
                self.function.read(at, data)?;
            } else {
                self.function.write(at, data)?;
            }
        }
        Ok(())
    }
}

/// Calls at the policy level, to a range.
struct InRange {
    policy: Policy,
    is_read: bool,
}

impl InRange {
    fn new(share: Share, call: Call) -> Result<Self> {
        let policy = Policy::open(share)?;
        let mut config = RangeConfig::new(Mapping::Page, Cleaning::Greedy);
        config.over_provisioning = OverProvisioning::Rest;
        policy.configure(0, DATA, config)?;
        let data = vec![1; UNIT as usize];
        for at in (0..DATA).step_by(UNIT as usize) {
            policy.write(at, &data)?;
        }
        policy.flush()?;
        Ok(Self { policy, is_read: call.is_read() })
    }
}

impl LevelCalls for InRange {
    fn run(&mut self, places: &[u32], data: &mut [u8]) -> Result<()> {
        for &place in places {
            let at = u64::from(place) * UNIT;
            if self.is_read {
                self.policy.read(at, data)?;
            } else {
                self.policy.write(at, data)?;
            }
        }
        Ok(())
    }
}

/// Calls at the object level, to one object.
struct InObject {
    store: ObjectStore,
    id: ObjectId,
    is_read: bool,
}

impl InObject {
    fn new(share: Share, call: Call) -> Result<Self> {
        let store = ObjectStore::open(share)?;
        let id = store.create(Attributes::default())?;
        let data = vec![1; UNIT as usize];
        for at in (0..DATA).step_by(UNIT as usize) {
            store.write(id, at, &data)?;
        }
        store.flush()?;
        Ok(Self { store, id, is_read: call.is_read() })
    }
}

impl LevelCalls for InObject {
    fn run(&mut self, places: &[u32], data: &mut [u8]) -> Result<()> {
        for &place in places {
            let at = u64::from(place) * UNIT;
            if self.is_read {
                self.store.read(self.id, at, data)?;
            } else {
                self.store.write(self.id, at, data)?;
            }
        }
        Ok(())
    }
}

/// Bytes of a value: with key and header a little less than 4 KiB.
const VALUE: usize = 4000;

/// Calls at the key-value level, with a number as the key.
struct Pairs {
    store: KvStore,
    is_read: bool,
}

impl Pairs {
    fn new(share: Share, call: Call) -> Result<Self> {
        let store = KvStore::open(share)?;
        for place in 0..(DATA / UNIT) as u32 {
            store.set(&place.to_be_bytes(), &[1; VALUE])?;
        }
        store.flush()?;
        Ok(Self { store, is_read: call.is_read() })
    }
}

impl LevelCalls for Pairs {
    fn run(&mut self, places: &[u32], data: &mut [u8]) -> Result<()> {
        for place in places {
            let key = place.to_be_bytes();
            if self.is_read {
                black_box(self.store.get(&key)?);
            } else {
                self.store.set(&key, data)?;
            }
        }
        Ok(())
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
