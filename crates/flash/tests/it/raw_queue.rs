//! Commands in flight on a device that completes them in any order: each takes effect after those
//! that it depends on, and none is lost, also if blocks fail and power is cut.

use std::collections::BTreeMap;

use prism_base::{Bytes, Rng};
use prism_flash::raw::{Address, Command, Queue, Raw};
use prism_flash::{
    Allocation, Cache, Device, DeviceGeometry, FlashError, MemoryDevice, Options, SharedMemory,
};
use prism_testkit::{all_seeds, seeds};

const PAGE: usize = 512;
const PAGES: u32 = 8;

fn memory(seed: u64, cache: Cache) -> SharedMemory {
    let geometry = DeviceGeometry {
        channels: 1,
        luns_per_channel: 2,
        blocks_per_lun: 24,
        pages_per_block: PAGES,
        page_size: PAGE as u32,
        oob_size: 8,
        max_open_blocks: None,
    };
    let memory = MemoryDevice::new(geometry, cache).unwrap();
    memory.complete_in_any_order(seed);
    memory.into()
}

fn raw(memory: &SharedMemory) -> Raw {
    let device = Device::format(memory.clone(), Options::default()).unwrap();
    let capacity = Bytes(device.lun_capacity().0 * 2);
    Raw::open(device.allocate("a", Allocation::new(capacity, 0)).unwrap()).unwrap()
}

fn at(block: u32, page: u32) -> Address {
    Address { channel: 0, lun: 0, block, page }
}

#[test]
fn reads_complete_in_the_order_of_the_device() {
    let raw = raw(&memory(7, Cache::None));
    for page in 0..PAGES {
        raw.write_page(at(0, page), &[page as u8; PAGE]).unwrap();
    }
    let mut queue = raw.queue(PAGES as usize);
    for page in 0..PAGES {
        queue.submit(Command::read(at(0, page), vec![0xEE; PAGE]), page.into()).unwrap();
    }
    let refused = Command::Sync;
    assert_eq!(queue.submit(refused.clone(), 99), Err(refused), "the queue is full");
    let mut tags = Vec::new();
    while let Some(done) = queue.complete() {
        assert!(done.result.is_ok() && done.data == [done.tag as u8; PAGE], "{done:?}");
        tags.push(done.tag);
    }
    assert!(!tags.is_sorted(), "{tags:?}");
    tags.sort_unstable();
    assert_eq!(tags, (0..u64::from(PAGES)).collect::<Vec<_>>());
}

/// A completion comes to the queue that submitted the command.
#[test]
fn queues_have_completions_of_their_own() {
    let raw = raw(&memory(3, Cache::None));
    raw.write_page(at(0, 0), &[9; PAGE]).unwrap();
    let mut queues = [raw.queue(4), raw.queue(4)];
    for tag in 0..8 {
        queues[tag as usize / 4].submit(Command::read(at(0, 0), vec![0; PAGE]), tag).unwrap();
    }
    for (queue, first) in queues.iter_mut().zip([0, 4]) {
        let mut tags: Vec<_> = std::iter::from_fn(|| queue.complete()).map(|d| d.tag).collect();
        tags.sort_unstable();
        assert_eq!(tags, (first..first + 4).collect::<Vec<_>>());
    }
}

/// A command that became invalid after its submission returns its error.
#[test]
fn reads_of_a_released_share_end() {
    let raw = raw(&memory(1, Cache::None));
    raw.write_page(at(0, 0), &[9; PAGE]).unwrap();
    let mut queue = raw.queue(8);
    raw.share().clone().release().unwrap();
    for tag in 0..4 {
        queue.submit(Command::read(at(0, 0), vec![0; PAGE]), tag).unwrap();
    }
    let results: Vec<_> = std::iter::from_fn(|| queue.complete()).map(|d| d.result).collect();
    assert_eq!(results, vec![Err(FlashError::Released); 4]);
}

/// The content of each block, and how much of it is durable.
#[derive(Clone, Debug, Default, PartialEq)]
struct Content {
    pages: Vec<u8>,
    durable: usize,
}

struct World {
    raw: Raw,
    rng: Rng,
    blocks: BTreeMap<u32, Content>,
    stamp: u8,
}

/// What the completion of a command has to say.
enum Expected {
    Read(u8),
    Write,
    Erase,
    /// What was written to each block when the sync was submitted.
    Sync(BTreeMap<u32, usize>),
}

impl World {
    fn submit(
        &mut self,
        queue: &mut Queue<&Raw>,
        expected: &mut BTreeMap<u64, Expected>,
        tag: u64,
        blocks: std::ops::Range<u32>,
    ) {
        let block = blocks.start + self.rng.below(u64::from(blocks.end - blocks.start)) as u32;
        let content = self.blocks.entry(block).or_default();
        let len = content.pages.len();
        let (command, want) = match self.rng.below(10) {
            0..5 if len < PAGES as usize => {
                self.stamp = self.stamp.wrapping_add(1);
                content.pages.push(self.stamp);
                let oob = vec![self.stamp; 8];
                let data = vec![self.stamp; PAGE].into();
                let write = Command::Write { at: at(block, len as u32), data, oob };
                (write, Expected::Write)
            }
            0..8 if len > 0 => {
                let page = self.rng.below(len as u64) as usize;
                let offset = self.rng.below(PAGE as u64 - 1) as u32;
                let data = vec![0; PAGE - offset as usize].into();
                let read = Command::Read { at: at(block, page as u32), offset, data };
                (read, Expected::Read(content.pages[page]))
            }
            8 => {
                *content = Content::default();
                (Command::Erase { at: at(block, 0) }, Expected::Erase)
            }
            _ => {
                let of = |(&block, content): (&u32, &Content)| (block, content.pages.len());
                let own = self.blocks.range(blocks).map(of).collect();
                (Command::Sync, Expected::Sync(own))
            }
        };
        queue.submit(command, tag).expect("there is room");
        expected.insert(tag, want);
    }

    /// Takes a completion; false if there is none, or power has failed.
    fn complete(
        &mut self,
        queue: &mut Queue<&Raw>,
        expected: &mut BTreeMap<u64, Expected>,
        erased: &mut BTreeMap<u32, u64>,
        label: &str,
    ) -> bool {
        let done = if self.rng.chance(0.5) { queue.poll() } else { queue.complete() };
        let Some(done) = done else { return false };
        let want = expected.remove(&done.tag).unwrap_or_else(|| panic!("{label}: {done:?}"));
        match (done.result, want) {
            (Ok(()), Expected::Read(byte)) => {
                assert!(done.data.iter().all(|&b| b == byte), "{label}: {}", done.tag);
            }
            (Ok(()), Expected::Sync(own)) => {
                for (block, len) in own {
                    // An erase after the sync was submitted has other content.
                    if erased.get(&block).is_none_or(|&tag| tag < done.tag) {
                        let content = self.blocks.get_mut(&block).expect("known");
                        content.durable = content.durable.max(len.min(content.pages.len()));
                    }
                }
            }
            (Ok(()), Expected::Write | Expected::Erase) => {}
            (Err(error), _) => {
                let power =
                    matches!(error, FlashError::Medium(prism_flash::MediumError::PowerLost));
                assert!(power, "{label}: {error}");
                return false;
            }
        }
        true
    }
}

/// Two queues with blocks of their own, failing blocks, and a power cut at a random operation. What
/// a completed sync covers is there afterwards.
fn random_life(seed: u64, cuts: &mut u64) {
    let label = format!("seed {seed}");
    let mut rng = Rng::stream(seed, "raw.queue");
    let cache = [Cache::None, Cache::Volatile][rng.below(2) as usize];
    let memory = memory(seed, cache);
    let raw = raw(&memory);
    if rng.chance(0.5) {
        memory.fail_at_random(0.0005, seed);
    }
    if rng.chance(0.7) {
        memory.cut_power_after(rng.below(300));
    }
    let mut world = World { raw, rng, blocks: BTreeMap::new(), stamp: 0 };
    let mut erased = BTreeMap::new();
    {
        let raw = Raw::open(world.raw.share().clone()).unwrap();
        let mut queues = [raw.queue(12), raw.queue(12)];
        let mut expected = [BTreeMap::new(), BTreeMap::new()];
        let mut tag = 0;
        'life: for _ in 0..400 {
            let which = world.rng.below(2) as usize;
            let own = [0..4, 4..8][which].clone();
            if queues[which].len() < 12 && world.rng.chance(0.6) {
                tag += 1;
                world.submit(&mut queues[which], &mut expected[which], tag, own);
                if let Some((_, Expected::Erase)) = expected[which].last_key_value() {
                    let block = world.blocks.iter().filter(|(_, c)| c.pages.is_empty());
                    erased.extend(block.map(|(&block, _)| (block, tag)));
                }
            } else {
                let ok =
                    world.complete(&mut queues[which], &mut expected[which], &mut erased, &label);
                if !ok && memory.lost_power() {
                    break 'life;
                }
            }
        }
        if !memory.lost_power() {
            for (queue, expected) in queues.iter_mut().zip(&mut expected) {
                while !queue.is_empty() {
                    world.complete(queue, expected, &mut erased, &label);
                    if memory.lost_power() {
                        break;
                    }
                }
            }
        }
    }
    let lost = memory.lost_power();
    *cuts += u64::from(lost);
    let raw = if lost {
        drop(world.raw);
        memory.restart(&mut world.rng);
        let device = Device::open(memory.clone(), Options::default()).unwrap();
        Raw::open(device.attach("a").unwrap()).unwrap()
    } else {
        world.raw
    };
    for (&block, content) in &world.blocks {
        let there = if lost { content.durable } else { content.pages.len() };
        for (page, &byte) in (0..).zip(&content.pages[..there]) {
            // An erase in flight when power failed may be done or not.
            let (mut data, mut oob) = ([0; PAGE], [0; 8]);
            let read = raw.read_page_and_oob(at(block, page), &mut data, &mut oob);
            assert_eq!(read, Ok(()), "{label}: block {block}, page {page}");
            assert!(data == [byte; PAGE] && oob == [byte; 8], "{label}: {block}, {page}");
        }
    }
}

#[test]
fn random_commands_of_two_queues_survive_failing_blocks_and_power_cuts() {
    let mut cuts = 0;
    for seed in seeds(0..300) {
        random_life(seed, &mut cuts);
    }
    assert!(!all_seeds() || cuts > 60, "{cuts} cuts");
}
