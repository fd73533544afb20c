//! A power failure or the end of the process at every operation: synced data survives, and the
//! whole device is as at the last sync or at the one that was in flight, never mixed.

use prism_testkit::{all_seeds, seeds};
use std::collections::BTreeSet;

use prism_base::Rng;
use prism_flash::{DeviceGeometry, Medium, MediumError, PageState};
use prism_flashfile::{FlashFile, SimulatedFile};

/// A block: the number that was programmed into each page, in order.
#[derive(Clone, Debug, Default, PartialEq)]
struct Block {
    pages: Vec<u64>,
    finished: bool,
    erases: u32,
}

/// How a session ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Power,
    /// The process dies: its writes stay.
    Kill,
    /// The process dies, another one opens the file, and then power fails.
    KillThenPower,
}

struct World {
    seed: u64,
    rng: Rng,
    file: SimulatedFile,
    geometry: DeviceGeometry,
    device: Option<FlashFile>,
    /// The possible states of the device: as at the last sync, and as at a sync that was in flight.
    durable: Vec<Block>,
    now: Vec<Block>,
    /// Blocks whose erase is not durable.
    erased: BTreeSet<u32>,
    stamp: u64,
    cuts: u64,
    /// Whether a byte of the tables changes after each cut.
    damages: bool,
}

/// A random geometry: records take one or two sectors, and page headers share a sector or not, or
/// span two pages of the file.
fn any_geometry(rng: &mut Rng) -> DeviceGeometry {
    DeviceGeometry {
        channels: 1 + rng.below(3) as u32,
        luns_per_channel: 1 + rng.below(2) as u32,
        blocks_per_lun: [4, 5, 40][rng.below(3) as usize],
        pages_per_block: 2 + rng.below(6) as u32,
        page_size: [512, 600, 1024, 1536][rng.below(4) as usize],
        oob_size: [0, 8, 500, 1100][rng.below(4) as usize],
        max_open_blocks: [None, Some(4), Some(8)][rng.below(3) as usize],
    }
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::stream(seed, "power");
        let geometry = any_geometry(&mut rng);
        let file = SimulatedFile::new();
        // With a small cache, page headers are also written when they are evicted.
        file.keep_headers([1, 2, 3, 4096][rng.below(4) as usize]);
        // With a small log, checkpoints come after two or three syncs, and some syncs are too large
        // for one entry.
        file.limit_journal([16 << 10, 24 << 10, 1 << 20][rng.below(3) as usize]);
        let device = FlashFile::create_simulated(&file, geometry).unwrap();
        let blocks = vec![Block::default(); geometry.blocks() as usize];
        let (durable, now) = (blocks.clone(), blocks);
        let (device, erased) = (Some(device), BTreeSet::new());
        Self {
            seed,
            rng,
            file,
            geometry,
            device,
            durable,
            now,
            erased,
            stamp: 0,
            cuts: 0,
            damages: false,
        }
    }

    /// The content of the page with number `stamp`.
    fn page(&self, stamp: u64) -> (Vec<u8>, Vec<u8>) {
        let mut bytes = Rng::stream(stamp, "page");
        let mut draw = |len: u32| {
            let mut drawn = vec![0; len as usize];
            for part in drawn.chunks_mut(8) {
                part.copy_from_slice(&bytes.next_u64().to_le_bytes()[..part.len()]);
            }
            drawn
        };
        (draw(self.geometry.page_size), draw(self.geometry.oob_size))
    }

    fn program(&mut self, block: u32) -> Result<(), MediumError> {
        self.stamp += 1;
        let (data, oob) = self.page(self.stamp);
        let page = self.now[block as usize].pages.len() as u32;
        match self.device.as_mut().expect("open").program(block, page, &data, &oob) {
            Ok(()) => {
                if self.erased.contains(&block) {
                    // Erased pages are not overwritten before the erase is durable.
                    self.synced();
                }
                let record = &mut self.now[block as usize];
                record.pages.push(self.stamp);
                record.finished = false;
                Ok(())
            }
            Err(MediumError::Full { .. } | MediumError::TooManyOpen { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn synced(&mut self) {
        self.durable = self.now.clone();
        self.erased.clear();
    }

    /// One operation. `Err` if the device could not do it.
    fn step(&mut self) -> Result<(), MediumError> {
        // Few blocks, so that erases and programs meet on them.
        let block = self.rng.below(self.now.len().min(6) as u64) as u32;
        let choice = self.rng.below(12);
        let device = self.device.as_mut().expect("open");
        let record = &mut self.now[block as usize];
        match choice {
            0..7 => self.program(block)?,
            7..9 => {
                device.erase(block)?;
                if !record.pages.is_empty() {
                    self.erased.insert(block);
                }
                *record = Block { erases: record.erases + 1, ..Block::default() };
            }
            9 => {
                device.finish(block)?;
                record.finished = true;
            }
            _ => {
                device.sync()?;
                self.synced();
            }
        }
        Ok(())
    }

    /// Works until power fails, after `operations` operations.
    fn work(&mut self, operations: u64) {
        self.file.cut_power_after(operations);
        for _ in 0..10_000 {
            if self.file.lost_power() {
                return;
            }
            let done = self.step();
            assert!(done.is_ok() || self.file.lost_power(), "seed {}: {done:?}", self.seed);
        }
        panic!("seed {}: it does nothing", self.seed);
    }

    /// Ends this session and checks the file; perhaps power fails again while it is opened.
    fn recover(&mut self, end: End, again: u32) {
        self.cuts += 1;
        if end == End::Power {
            self.file.restart(&mut self.rng);
        } else {
            self.file.kill();
        }
        self.device = None;
        let damaged = self.rng.below(u64::from(again) + 1) as u32;
        for round in 0..again {
            self.damage_before(round == damaged);
            let far = [4, 12][self.rng.below(2) as usize];
            self.file.cut_power_after(self.rng.below(far));
            let opened = FlashFile::open_simulated(&self.file);
            assert!(opened.is_ok() || self.file.lost_power(), "seed {}: {opened:?}", self.seed);
            self.cuts += u64::from(self.file.lost_power());
            self.file.restart(&mut self.rng);
        }
        self.damage_before(damaged == again);
        if end == End::KillThenPower {
            let device = FlashFile::open_simulated(&self.file).expect("nothing is damaged");
            // Opening has made this state durable, so a later open must find the same.
            self.durable = self.found(&device, "after the kill");
            self.now = self.durable.clone();
            drop(device);
            self.file.restart(&mut self.rng);
        }
        let device = FlashFile::open_simulated(&self.file).expect("nothing is damaged");
        let found = self.found(&device, "at last");
        self.device = Some(device);
        self.check_pages(&found);
        self.now = found;
        self.synced();
    }

    /// Before one of the openings, changes a byte of what the file has twice, or makes its sector
    /// unreadable: of the tables at its beginning, or of the journal at its end.
    fn damage_before(&mut self, opening: bool) {
        if !self.damages || !opening {
            return;
        }
        /// The heads, the log, and two entries with the records of all blocks.
        const JOURNAL: u64 = 2 * 4096 + (1 << 20) + 2 * 4096;
        let journal = self.file.bytes().len() as u64 - JOURNAL;
        let at = match self.rng.below(4) {
            0 => self.rng.below(16_384),
            1 => journal + self.rng.below(2 * 4096),
            _ => journal + 2 * 4096 + self.rng.below(24 << 10),
        };
        // One at a time.
        self.file.make_readable();
        match self.rng.chance(0.5) {
            true => self.file.flip(at),
            false => self.file.make_unreadable(at),
        }
    }

    /// The state of the device, which has to be one of the two possible ones.
    fn found(&self, device: &FlashFile, when: &str) -> Vec<Block> {
        let pages = self.geometry.pages_per_block;
        let fits = |(block, b): (u32, &Block)| {
            let count = b.pages.len() as u32;
            let is_open = (1..pages).contains(&count) && !b.finished;
            (Some(b.erases), count, is_open)
                == (device.erase_count(block), device.write_pointer(block), device.is_open(block))
        };
        let both = [&self.durable, &self.now];
        let one = both.into_iter().find(|blocks| (0..).zip(*blocks).all(fits));
        one.cloned().unwrap_or_else(|| {
            let wrong = both.map(|blocks| (0..).zip(blocks).find(|&block| !fits(block)));
            panic!("seed {} {when}: neither is found: {wrong:?}", self.seed)
        })
    }

    fn check_pages(&mut self, found: &[Block]) {
        for (block, state) in (0u32..).zip(found) {
            for (page, &stamp) in (0u32..).zip(&state.pages) {
                let (data, oob) = self.page(stamp);
                let device = self.device.as_mut().expect("open");
                let mut read = (vec![0; data.len()], vec![0; oob.len()]);
                let state = device.read(block, page, 0, &mut read.0, &mut read.1);
                assert_eq!(state, Ok(PageState::Written), "seed {}", self.seed);
                assert!(read == (data, oob), "seed {}: page {page} of block {block}", self.seed);
            }
        }
    }
}

/// A device after random operations.
fn settled(seed: u64) -> World {
    let mut world = World::new(seed);
    for _ in 0..world.rng.below(60) {
        world.step().expect("there is power");
    }
    world
}

fn lives(fixed: std::ops::Range<u64>, each: u32, ends: &[End]) -> u64 {
    seeds(fixed).map(|seed| life(seed, each, ends)).sum()
}

fn life(seed: u64, each: u32, ends: &[End]) -> u64 {
    life_of(settled(seed), each, ends)
}

fn life_of(mut world: World, each: u32, ends: &[End]) -> u64 {
    for _ in 0..each {
        let far = [2, 6, 25][world.rng.below(3) as usize];
        let operations = world.rng.below(far);
        world.work(operations);
        let end = ends[world.rng.below(ends.len() as u64) as usize];
        let again = [0, 0, 1, 2][world.rng.below(4) as usize];
        world.recover(end, again);
    }
    world.cuts
}

/// An entry of which a cut left all but zeros at its end was made whole by the zeros of the next
/// entry, which had the same number and was torn in the same place.
#[test]
fn an_entry_that_was_torn_does_not_come_back() {
    assert!(life(1_168_205_616, 60, &[End::Power]) > 60);
}

#[test]
fn random_cuts_again_and_again() {
    let cuts = lives(1000..1180, 60, &[End::Power]);
    assert!(!all_seeds() || cuts > 12_000, "{cuts}");
}

#[test]
fn random_kills_leave_everything_written() {
    let cuts = lives(2000..2040, 60, &[End::Kill]);
    assert!(!all_seeds() || cuts >= 2400, "{cuts}");
}

#[test]
fn random_kills_and_cuts_mixed() {
    let cuts = lives(3000..3100, 60, &[End::Power, End::Kill, End::KillThenPower]);
    assert!(!all_seeds() || cuts > 6000, "{cuts}");
}

/// One sector of the tables is damaged after each, also between an interrupted opening and the next
/// one: the second copy has what it held.
#[test]
fn random_kills_and_cuts_with_a_damaged_sector() {
    let life = |seed| {
        let world = World { damages: true, ..settled(seed) };
        life_of(world, 60, &[End::Power, End::Kill, End::KillThenPower])
    };
    let cuts: u64 = seeds(5000..5100).map(life).sum();
    assert!(!all_seeds() || cuts > 6000, "{cuts}");
}

/// From the same state, power fails in the first operation of the disk, the second, and so on.
#[test]
fn random_devices_cut_at_every_operation() {
    for seed in seeds(4000..4012) {
        for operations in 0..90 {
            let mut world = settled(seed);
            world.work(operations);
            let end = [End::Power, End::KillThenPower][(operations % 2) as usize];
            world.recover(end, 0);
        }
    }
}
