//! The function level compared with a model of blocks: allocations, contents, refused calls.

use prism_testkit::seeds;
use std::collections::BTreeMap;

use prism_base::{Bytes, Rng};
use prism_flash::function::{Allocated, Channel, Function, Unit};
use prism_flash::raw::{Address, Raw};
use prism_flash::{
    Allocation, Cache, Device, DeviceGeometry, FlashError, MemoryDevice, Options, Share,
};

const PAGE: usize = 512;

fn geometry() -> DeviceGeometry {
    DeviceGeometry {
        channels: 2,
        luns_per_channel: 2,
        blocks_per_lun: 16,
        pages_per_block: 4,
        page_size: PAGE as u32,
        oob_size: 16,
        max_open_blocks: None,
    }
}

fn share(geometry: DeviceGeometry, luns: u64) -> Share {
    let memory = MemoryDevice::new(geometry, Cache::None).unwrap();
    let device = Device::format(memory, Options::default()).unwrap();
    let capacity = Bytes(device.lun_capacity().0 * luns);
    device.allocate("a", Allocation::new(capacity, 0)).unwrap()
}

fn page(stamp: u64) -> Vec<u8> {
    stamp.to_le_bytes().repeat(PAGE / 8)
}

fn block_of(at: Address) -> Address {
    at.with_page(0)
}

#[test]
fn algorithm_iv_2() {
    // Ten blocks in the channel with the least work; below a threshold the application chooses a
    // victim, copies its valid pages, and trims it.
    let function = Function::open(share(geometry(), 2)).unwrap();
    let per_channel = function.geometry().blocks_per_lun;
    let threshold = per_channel - 2;
    // By logical block: where it is.
    let mut map: BTreeMap<u64, Address> = BTreeMap::new();
    for logical in 0..10u64 {
        let Allocated { at, mut free_left, .. } =
            function.address_mapper(Channel::Any, Unit::Block).unwrap();
        let data: Vec<u8> = (0..4).flat_map(|number| page(logical << 8 | number)).collect();
        function.write(at, &data).unwrap();
        map.insert(logical, at);
        while free_left < threshold {
            let of_channel = |(_, old): &(&u64, &Address)| old.channel == at.channel;
            let (&victim, &from) = map.iter().find(of_channel).unwrap();
            map.remove(&victim);
            function.trim(from, Unit::Block).unwrap();
            free_left = function.free(at.channel).unwrap();
        }
    }
    // Two blocks are left in each channel. Equals are taken in order, so that it was the first
    // channel that was cleaned.
    assert_eq!(map.keys().copied().collect::<Vec<_>>(), [1, 3, 8, 9]);
    for (&logical, &at) in &map {
        let mut data = vec![0; PAGE];
        function.read(at.with_page(3), &mut data).unwrap();
        assert!(data == page(logical << 8 | 3), "logical block {logical}");
    }
    assert_eq!((0..2).map(|c| function.free(c).unwrap()).sum::<u32>(), 2 * per_channel - 4);
}

#[derive(Clone, Debug, Default)]
struct Block {
    handed: u32,
    trimmed: Vec<u32>,
    /// Stamps by page; 0 for padding of the library.
    content: Vec<u64>,
}

impl Block {
    fn is_allocated(&self, page: u32) -> bool {
        page < self.handed && !self.trimmed.contains(&page)
    }
}

struct Model {
    function: Function,
    geometry: prism_flash::ShareGeometry,
    pages: u32,
    blocks: BTreeMap<Address, Block>,
    open: BTreeMap<u32, Address>,
    reserve: u32,
    rng: Rng,
    stamp: u64,
    label: String,
}

impl Model {
    fn new(geometry: DeviceGeometry, luns: u64, seed: u64) -> Self {
        let function = Function::open(share(geometry, luns)).unwrap();
        Self {
            geometry: function.geometry(),
            function,
            pages: geometry.pages_per_block,
            blocks: BTreeMap::new(),
            open: BTreeMap::new(),
            reserve: 0,
            rng: Rng::stream(seed, "function.model"),
            stamp: 0,
            label: format!("seed {seed}"),
        }
    }

    fn below(&mut self, bound: u32) -> u32 {
        self.rng.below(bound.into()) as u32
    }

    fn room(&self) -> u32 {
        self.geometry.blocks().saturating_sub(self.reserve + self.blocks.len() as u32)
    }

    fn free(&self, channel: u32) -> u32 {
        let blocks = self.geometry.channels[channel as usize].len() as u32;
        let used = self.blocks.keys().filter(|at| at.channel == channel).count() as u32;
        blocks * self.geometry.blocks_per_lun - used
    }

    /// A block, mostly an allocated one.
    fn any_block(&mut self) -> Address {
        if self.blocks.is_empty() || self.below(8) == 0 {
            let channel = self.below(self.geometry.channels.len() as u32);
            let lun = self.below(self.geometry.channels[channel as usize].len() as u32);
            let block = self.below(self.geometry.blocks_per_lun);
            return Address { channel, lun, block, page: 0 };
        }
        let place = self.below(self.blocks.len() as u32) as usize;
        *self.blocks.keys().nth(place).unwrap()
    }

    fn allocate(&mut self, unit: Unit) {
        let channels = self.geometry.channels.len() as u32;
        let number = self.below(channels + 1);
        let channel = if number == channels { Channel::Any } else { Channel::Number(number) };
        let has_page = |model: &Self, channel: u32| {
            unit == Unit::Page
                && model.open.get(&channel).is_some_and(|at| model.blocks[at].handed < model.pages)
        };
        let can = |c: u32| has_page(self, c) || self.room() > 0 && self.free(c) > 0;
        let expected = match channel {
            Channel::Any => (0..channels).any(can),
            Channel::Number(number) => can(number),
        };
        let begun: Vec<bool> = (0..channels).map(|channel| has_page(self, channel)).collect();
        let label = &self.label;
        match self.function.address_mapper(channel, unit) {
            Err(FlashError::ChannelFull { .. } | FlashError::OnlyReserve { .. }) => {
                assert!(!expected, "{label}")
            }
            Err(error) => panic!("{label}: {error}"),
            Ok(Allocated { at, free_left, erasing }) => {
                assert!(expected && erasing == 0, "{label}: {at:?}");
                if unit == Unit::Page && begun[at.channel as usize] {
                    let block = self.blocks.get_mut(&block_of(at)).unwrap();
                    assert_eq!((block_of(at), at.page), (self.open[&at.channel], block.handed));
                    block.handed += 1;
                } else {
                    let handed = if unit == Unit::Block { self.pages } else { 1 };
                    let new = Block { handed, ..Block::default() };
                    assert_eq!(at.page, 0, "{label}");
                    assert!(self.blocks.insert(block_of(at), new).is_none(), "{label}: {at:?}");
                    if unit == Unit::Page {
                        self.open.insert(at.channel, block_of(at));
                    }
                }
                let blocks = self.free(at.channel).min(self.room());
                let rest = |at: &Address| self.pages - self.blocks[at].handed;
                let left = match unit {
                    Unit::Block => blocks,
                    Unit::Page => blocks * self.pages + self.open.get(&at.channel).map_or(0, rest),
                };
                assert_eq!(free_left, left, "{}: {at:?}", self.label);
            }
        }
    }

    fn write(&mut self) {
        let at = self.any_block();
        let block = self.blocks.get(&at).cloned().unwrap_or_default();
        let written = block.content.len() as u32;
        let first = if self.below(6) == 0 {
            self.below(self.pages)
        } else {
            let skip = (written..self.pages).find(|page| !block.trimmed.contains(page));
            skip.unwrap_or(0)
        };
        let count = 1 + self.below(3);
        let stamps: Vec<u64> = (0..count).map(|n| self.stamp + 1 + u64::from(n)).collect();
        self.stamp += u64::from(count);
        let data: Vec<u8> = stamps.iter().flat_map(|&stamp| page(stamp)).collect();
        let result = self.function.write(at.with_page(first), &data);
        let pads = (written..first).all(|page| block.trimmed.contains(&page));
        let label = format!("{}: {count} pages at {first} of {at:?} {block:?}", self.label);
        if first + count > self.pages {
            assert!(matches!(result, Err(FlashError::OutOfRange { .. })), "{label}");
        } else if !(first..first + count).all(|page| block.is_allocated(page)) {
            assert!(matches!(result, Err(FlashError::NotAllocated { .. })), "{label}");
        } else if written == self.pages {
            let expected = FlashError::NotErased { at: at.with_page(first) };
            assert_eq!(result, Err(expected), "{label}");
        } else if first < written || !pads {
            let expected = FlashError::OutOfOrder { page: first, expected: written };
            assert_eq!(result, Err(expected), "{label}");
        } else {
            assert_eq!(result, Ok(()), "{label}");
            let content = &mut self.blocks.get_mut(&at).unwrap().content;
            content.resize(first as usize, 0);
            content.extend(stamps);
        }
    }

    fn read(&mut self) {
        let at = self.any_block();
        let (first, count) = (self.below(self.pages), 1 + self.below(3));
        let block = self.blocks.get(&at).cloned().unwrap_or_default();
        let mut data = vec![0xEE; count as usize * PAGE];
        let result = self.function.read(at.with_page(first), &mut data);
        let label = format!("{}: {count} pages at {first} of {at:?} {block:?}", self.label);
        let pages = first..first + count;
        if first + count > self.pages {
            assert!(matches!(result, Err(FlashError::OutOfRange { .. })), "{label}");
        } else if !pages.clone().all(|page| block.is_allocated(page)) {
            assert!(matches!(result, Err(FlashError::NotAllocated { .. })), "{label}");
        } else if let Some(empty) = pages.clone().find(|&p| p as usize >= block.content.len()) {
            let expected = FlashError::Unwritten { at: at.with_page(empty) };
            assert_eq!(result, Err(expected), "{label}");
        } else {
            assert_eq!(result, Ok(()), "{label}");
            let expected = pages.flat_map(|p| page(block.content[p as usize]));
            assert!(data == expected.collect::<Vec<_>>(), "{label}");
        }
    }

    fn trim(&mut self, unit: Unit) {
        let at = self.any_block();
        let number = self.below(self.pages);
        let result = self.function.trim(at.with_page(number), unit);
        let label = format!("{}: {unit:?} {number} of {at:?}", self.label);
        let refused = |what, number: u32| FlashError::NotAllocated { what, number: number.into() };
        let Some(block) = self.blocks.get_mut(&at) else {
            return assert_eq!(result, Err(refused("block", at.block)), "{label}");
        };
        if unit == Unit::Page {
            if !block.is_allocated(number) {
                return assert_eq!(result, Err(refused("page", number)), "{label}");
            }
            block.trimmed.push(number);
        }
        assert_eq!(result, Ok(()), "{label}");
        if unit == Unit::Block || block.trimmed.len() as u32 == self.pages {
            self.blocks.remove(&at);
            self.open.retain(|_, open| *open != at);
        }
    }

    fn set_ops(&mut self) {
        let percent = self.below(40);
        let wanted = (self.geometry.blocks() * percent).div_ceil(100 + percent);
        let mapped = self.blocks.len() as u32;
        match self.function.set_ops(percent) {
            Ok(blocks) => {
                assert_eq!(blocks, wanted, "{}", self.label);
                assert!(mapped + blocks <= self.geometry.blocks(), "{}", self.label);
                self.reserve = blocks;
            }
            Err(error) => {
                let must_free = mapped + wanted - self.geometry.blocks();
                assert_eq!(
                    error,
                    FlashError::OverProvisioning { blocks: wanted, must_free },
                    "{}",
                    self.label
                );
            }
        }
    }

    /// Opens the share again: blocks with data are allocated, as a whole.
    fn reopen(&mut self) {
        let unused = Function::open(share(geometry(), 1)).unwrap();
        let used = std::mem::replace(&mut self.function, unused);
        self.function = Function::open(used.into_share()).unwrap();
        self.open.clear();
        self.reserve = 0;
        self.blocks.retain(|_, block| !block.content.is_empty());
        for block in self.blocks.values_mut() {
            block.handed = self.pages;
            block.trimmed.clear();
        }
    }

    fn check(&self) {
        for channel in 0..self.geometry.channels.len() as u32 {
            assert_eq!(self.function.free(channel), Ok(self.free(channel)), "{}", self.label);
        }
        let mut allocated = self.function.allocated().unwrap();
        allocated.sort_unstable();
        let pointer = |(at, block): (&Address, &Block)| (*at, block.content.len() as u32);
        let expected: Vec<_> = self.blocks.iter().map(pointer).collect();
        assert_eq!(allocated, expected, "{}", self.label);
        assert_eq!(self.function.erasing(), Ok(0), "{}", self.label);
    }

    fn run(&mut self, steps: u32) {
        for step in 0..steps {
            match self.below(100) {
                0..12 => self.allocate(Unit::Block),
                12..30 => self.allocate(Unit::Page),
                30..60 => self.write(),
                60..80 => self.read(),
                80..92 => self.trim(Unit::Page),
                92..97 => self.trim(Unit::Block),
                97 => self.set_ops(),
                98 => {
                    self.function.wear_level(2, 1).unwrap();
                }
                _ if step % 7 == 0 => self.reopen(),
                _ => self.check(),
            }
        }
        self.check();
    }
}

#[test]
fn random_operations_follow_the_model() {
    for seed in seeds(0..24) {
        let odd = DeviceGeometry { channels: 3, pages_per_block: 7, oob_size: 0, ..geometry() };
        let many = DeviceGeometry { pages_per_block: 130, ..geometry() };
        Model::new(geometry(), 4, seed).run(6000);
        Model::new(odd, 5, seed).run(6000);
        Model::new(many, 2, seed).run(2000);
    }
}

#[test]
fn bad_uses_are_refused_and_change_nothing() {
    let share = share(geometry(), 3);
    let function = Function::open(share.clone()).unwrap();
    let at = function.address_mapper(Channel::Number(1), Unit::Block).unwrap().at;
    function.write(at, &page(7)).unwrap();
    let before = (function.allocated().unwrap(), share.counts().unwrap());
    let nowhere = Address { channel: 9, ..at };
    let range = |error: FlashError| matches!(error, FlashError::OutOfRange { .. });
    assert!(range(function.address_mapper(Channel::Number(2), Unit::Block).unwrap_err()));
    assert!(range(function.free(2).unwrap_err()));
    for at in [nowhere, Address { lun: 7, ..at }, Address { block: 99, ..at }] {
        assert!(range(function.write(at, &page(1)).unwrap_err()));
        assert!(range(function.read(at, &mut page(1)).unwrap_err()));
        assert!(range(function.trim(at, Unit::Block).unwrap_err()));
    }
    assert!(range(function.read(at.with_page(3), &mut [0; 2 * PAGE]).unwrap_err()));
    assert!(range(function.write(at.with_page(4), &page(1)).unwrap_err()));
    let unaligned = function.write(at.with_page(1), &[0; PAGE + 1]).unwrap_err();
    assert!(matches!(unaligned, FlashError::Unaligned { .. }));
    let other = Address { block: (at.block + 1) % 8, ..at };
    let free = FlashError::NotAllocated { what: "block", number: other.block.into() };
    assert_eq!(function.trim(other, Unit::Block), Err(free.clone()));
    assert_eq!(function.trim(other, Unit::Page), Err(free.clone()));
    assert_eq!(function.read(other, &mut page(0)), Err(free.clone()));
    assert_eq!(function.write(other, &page(0)), Err(free));
    function.read(at, &mut []).unwrap();
    assert_eq!((function.allocated().unwrap(), share.counts().unwrap()), before);
    function.trim(at, Unit::Block).unwrap();
    let twice = FlashError::NotAllocated { what: "block", number: at.block.into() };
    assert_eq!(function.trim(at, Unit::Block), Err(twice));
}

#[test]
fn the_last_block_is_no_error_and_the_next_is() {
    let function = Function::open(share(geometry(), 2)).unwrap();
    let blocks = function.geometry().blocks();
    assert_eq!(function.set_ops(25), Ok(blocks.div_ceil(5)));
    let room = blocks - blocks.div_ceil(5);
    let mut last = None;
    for _ in 0..room {
        last = Some(function.address_mapper(Channel::Any, Unit::Block).unwrap());
    }
    assert_eq!(last.unwrap().free_left, 0);
    assert!(matches!(
        function.address_mapper(Channel::Any, Unit::Block),
        Err(FlashError::ChannelFull { .. } | FlashError::OnlyReserve { .. })
    ));
    let must_free = room - (blocks - blocks.div_ceil(2));
    let refused = FlashError::OverProvisioning { blocks: blocks.div_ceil(2), must_free };
    assert_eq!(function.set_ops(100), Err(refused));
    assert_eq!(function.set_ops(0), Ok(0));
    function.address_mapper(Channel::Any, Unit::Block).unwrap();
}

#[test]
fn the_reserve_is_that_of_the_allocation_at_first() {
    let memory = MemoryDevice::new(geometry(), Cache::None).unwrap();
    let device = Device::format(memory, Options::default()).unwrap();
    let capacity = Bytes(device.lun_capacity().0 * 3);
    let function = Function::open(device.allocate("a", Allocation::new(capacity, 33)).unwrap());
    let function = function.unwrap();
    let geometry = function.geometry();
    assert_eq!((geometry.luns, geometry.ops_luns), (4, 1));
    let mut count = 0;
    while function.address_mapper(Channel::Any, Unit::Block).is_ok() {
        count += 1;
    }
    assert_eq!(count, 3 * geometry.blocks_per_lun);
}

#[test]
fn zones_limit_blocks_that_are_partly_written() {
    let zoned = DeviceGeometry {
        channels: 16,
        luns_per_channel: 1,
        oob_size: 0,
        max_open_blocks: Some(14),
        ..geometry()
    };
    let function = Function::open(share(zoned, 16)).unwrap();
    let max = function.geometry().max_open_blocks;
    assert_eq!(max, 12);
    // Pages are allocated from 12 channels, and then from these only.
    let mut open: BTreeMap<u32, Address> = BTreeMap::new();
    for number in 0..48 {
        let at = function.address_mapper(Channel::Any, Unit::Page).unwrap().at;
        open.insert(at.channel, at);
        function.write(at, &page(number)).unwrap();
        if number == 20 {
            assert_eq!(open.len(), 12);
            let other = (0..16).find(|channel| !open.contains_key(channel)).unwrap();
            assert_eq!(
                function.address_mapper(Channel::Number(other), Unit::Page),
                Err(FlashError::TooManyOpen { max })
            );
        }
    }
    for (at, _) in function.allocated().unwrap() {
        function.trim(at, Unit::Block).unwrap();
    }
    // Whole blocks are counted by the device.
    let blocks: Vec<_> =
        (0..13).map(|_| function.address_mapper(Channel::Any, Unit::Block).unwrap().at).collect();
    for at in &blocks[..12] {
        function.write(*at, &page(5)).unwrap();
    }
    assert_eq!(function.write(blocks[12], &page(5)), Err(FlashError::TooManyOpen { max }));
    function.write(blocks[0].with_page(1), &[0; 3 * PAGE]).unwrap();
    function.write(blocks[12], &page(5)).unwrap();
}

#[test]
fn pages_trimmed_unwritten_do_not_stay_open() {
    let zoned = DeviceGeometry { channels: 4, oob_size: 0, max_open_blocks: Some(4), ..geometry() };
    let function = Function::open(share(zoned, 8)).unwrap();
    assert_eq!(function.geometry().max_open_blocks, 2);
    // The last page of each block is trimmed, and the others are written.
    for round in 0..20 {
        let channel = Channel::Number(round % 4);
        let pages: Vec<_> =
            (0..4).map(|_| function.address_mapper(channel, Unit::Page).unwrap().at).collect();
        for &at in &pages[..3] {
            function.write(at, &page(round.into())).unwrap();
        }
        function.trim(pages[3], Unit::Page).unwrap();
    }
}

#[test]
fn erased_blocks_are_allocated_by_wear() {
    let function = Function::open(share(geometry(), 1)).unwrap();
    let blocks = function.geometry().blocks();
    for _ in 0..blocks * 5 {
        let at = function.address_mapper(Channel::Any, Unit::Block).unwrap().at;
        function.write(at, &page(1)).unwrap();
        function.trim(at, Unit::Block).unwrap();
    }
    let wear = function.wear_level(0, 0).unwrap();
    assert_eq!((wear.min, wear.max, wear.variance), (5, 5, 0.0));
    // A block that was never written needs no erase.
    let at = function.address_mapper(Channel::Any, Unit::Block).unwrap().at;
    function.trim(at, Unit::Block).unwrap();
    assert_eq!(function.wear_level(0, 0).unwrap().max, 5);
}

#[test]
fn a_block_that_cannot_be_erased_is_lost_and_reported() {
    let memory = MemoryDevice::new(geometry(), Cache::None).unwrap();
    memory.fail_at_random(0.02, 3);
    let device = Device::format(memory, Options::default()).unwrap();
    let capacity = Bytes(device.lun_capacity().0);
    let share = device.allocate("a", Allocation::new(capacity, 0)).unwrap();
    let function = Function::open(share).unwrap();
    let mut reported = 0;
    let end = loop {
        let at = match function.address_mapper(Channel::Any, Unit::Block) {
            Ok(new) => new.at,
            Err(error) => break error,
        };
        let failed = function.write(at, &page(1)).is_err();
        function.trim(at, Unit::Block).unwrap();
        reported += u32::from(function.drain().is_err());
        assert!(!failed || reported > 0 || function.free(0).unwrap() > 0);
    };
    assert!(matches!(end, FlashError::OnlyReserve { .. }), "{end}");
    assert!(reported > 0 && function.allocated().unwrap().is_empty());
}

#[test]
fn raw_and_function_see_the_same_share() {
    let share = share(geometry(), 2);
    let raw = Raw::open(share.clone()).unwrap();
    let at = Address { channel: 1, lun: 0, block: 3, page: 0 };
    raw.write_page(at, &page(9)).unwrap();
    let function = Function::open(raw.into_share()).unwrap();
    assert_eq!(function.allocated().unwrap(), [(at, 1)]);
    function.write(at.with_page(1), &page(10)).unwrap();
    let mut data = vec![0; 2 * PAGE];
    function.read(at, &mut data).unwrap();
    assert!(data == [page(9), page(10)].concat());
}

#[test]
fn threads_share_the_function_level() {
    let function = Function::open(share(geometry(), 4)).unwrap();
    std::thread::scope(|scope| {
        for number in 0..4u64 {
            let function = &function;
            scope.spawn(move || {
                for round in 0..200 {
                    let at = function.address_mapper(Channel::Any, Unit::Block).unwrap().at;
                    function.write(at, &page(number << 32 | round)).unwrap();
                    let mut data = vec![0; PAGE];
                    function.read(at, &mut data).unwrap();
                    assert!(data == page(number << 32 | round));
                    function.trim(at, Unit::Block).unwrap();
                }
            });
        }
    });
    assert_eq!(function.allocated().unwrap(), []);
}

/// LUNs that the share has given back while the level is open take no part in levelling.
#[test]
fn wear_is_levelled_on_a_share_that_has_shrunk() {
    let share = share(geometry(), 4);
    let function = Function::open(share.clone()).unwrap();
    let new = function.address_mapper(Channel::Number(0), Unit::Block).unwrap();
    function.write(new.at, &page(1)).unwrap();
    let luns = share.geometry().unwrap().luns;
    share.shrink(1).unwrap();
    let level = function.wear_level(4, 0).unwrap();
    assert_eq!((level.pairs, share.geometry().unwrap().luns), (Vec::new(), luns - 1));
    let mut read = page(0);
    function.read(new.at, &mut read).unwrap();
    assert_eq!(read, page(1));
}
