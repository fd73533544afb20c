//! Random operations on a device in a real file, with each engine, compared with a naive model; the
//! file is closed and opened again in between.

use prism_testkit::{seeds, skipped};
use std::path::Path;

use prism_base::Rng;
use prism_flash::{DeviceGeometry, Medium, MediumError, PageState};
use prism_flashfile::{Access, EngineChoice, FlashFile, Settings};

/// A block of the model: the programmed pages, in order.
#[derive(Clone, Default)]
struct Block {
    pages: Vec<(Vec<u8>, Vec<u8>)>,
    finished: bool,
    erases: u32,
}

struct World {
    rng: Rng,
    geometry: DeviceGeometry,
    blocks: Vec<Block>,
    device: FlashFile,
    settings: Settings,
}

fn geometry(page_size: u32, oob_size: u32, max_open_blocks: Option<u32>) -> DeviceGeometry {
    DeviceGeometry {
        channels: 2,
        luns_per_channel: 1,
        blocks_per_lun: 8,
        pages_per_block: 6,
        page_size,
        oob_size,
        max_open_blocks,
    }
}

impl World {
    fn new(path: &Path, settings: Settings, geometry: DeviceGeometry, seed: u64) -> Self {
        let device = FlashFile::create_with(path, geometry, settings).unwrap();
        let blocks = vec![Block::default(); geometry.blocks() as usize];
        Self { rng: Rng::stream(seed, "model"), geometry, blocks, device, settings }
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.rng.below(256) as u8).collect()
    }

    fn block(&mut self) -> u32 {
        self.rng.below(self.blocks.len() as u64) as u32
    }

    /// The model's result of a program.
    fn refusal(&self, block: u32, page: u32) -> Option<MediumError> {
        let of = |b: &Block| (b.pages.len() as u32, b.finished);
        let (expected, finished) = of(&self.blocks[block as usize]);
        let pages = self.geometry.pages_per_block;
        let is_open = |b: &&Block| !b.finished && (1..pages).contains(&(b.pages.len() as u32));
        let open = self.blocks.iter().filter(is_open).count() as u32;
        if expected == pages || finished {
            return Some(MediumError::Full { block });
        }
        if page != expected {
            return Some(MediumError::OutOfOrder { block, page, expected });
        }
        let max = self.geometry.max_open_blocks.filter(|&max| page == 0 && open >= max)?;
        Some(MediumError::TooManyOpen { max })
    }

    fn program(&mut self) {
        let block = self.block();
        let mut page = self.blocks[block as usize].pages.len() as u32;
        if self.rng.chance(0.05) {
            page = self.rng.below(self.geometry.pages_per_block.into()) as u32;
        }
        let data = self.bytes(self.geometry.page_size as usize);
        let oob_len = self.rng.below(u64::from(self.geometry.oob_size) + 1) as usize;
        let oob = self.bytes(oob_len);
        let done = self.device.program(block, page, &data, &oob);
        assert_eq!(done.as_ref().err(), self.refusal(block, page).as_ref());
        if done.is_ok() {
            let mut spare = vec![0xFF; self.geometry.oob_size as usize];
            spare[..oob.len()].copy_from_slice(&oob);
            self.blocks[block as usize].pages.push((data, spare));
        }
    }

    /// Reads a part of a page, perhaps after a prefetch of the same or another part.
    fn read(&mut self) {
        let block = self.block();
        let page = self.rng.below(self.geometry.pages_per_block.into()) as u32;
        let size = u64::from(self.geometry.page_size);
        let offset = self.rng.below(size) as u32;
        let len = self.rng.below(size - u64::from(offset) + 1) as u32;
        if self.rng.chance(0.5) {
            let hinted = if self.rng.chance(0.2) { len / 2 } else { len };
            self.device.prefetch(block, page, offset, hinted);
        }
        if self.rng.chance(0.3) {
            self.change();
        }
        self.check_page(block, page, offset, len);
    }

    fn check_page(&mut self, block: u32, page: u32, offset: u32, len: u32) {
        let mut data = vec![1; len as usize];
        let mut oob = vec![1; self.geometry.oob_size as usize];
        let state = self.device.read(block, page, offset, &mut data, &mut oob).unwrap();
        match self.blocks[block as usize].pages.get(page as usize) {
            None => {
                assert_eq!(state, PageState::Erased);
                assert!(data.iter().chain(&oob).all(|&b| b == 1), "buffers keep what they held");
            }
            Some((expected, spare)) => {
                assert_eq!(state, PageState::Written);
                assert!(data == expected[offset as usize..][..len as usize]);
                assert!(oob == *spare);
            }
        }
    }

    fn change(&mut self) {
        let block = self.block();
        match self.rng.below(20) {
            0..16 => self.program(),
            16..18 => {
                self.device.erase(block).unwrap();
                let erases = self.blocks[block as usize].erases + 1;
                self.blocks[block as usize] = Block { erases, ..Block::default() };
            }
            18 => {
                self.device.finish(block).unwrap();
                self.blocks[block as usize].finished = true;
            }
            _ => self.device.sync().unwrap(),
        }
    }

    fn check_all(&mut self) {
        for block in 0..self.geometry.blocks() {
            let model = self.blocks[block as usize].clone();
            let pages = self.geometry.pages_per_block;
            let programmed = model.pages.len() as u32;
            assert_eq!(self.device.write_pointer(block), programmed);
            assert_eq!(self.device.erase_count(block), Some(model.erases));
            let open = programmed > 0 && programmed < pages && !model.finished;
            assert_eq!(self.device.is_open(block), open);
            for page in 0..pages {
                self.check_page(block, page, 0, self.geometry.page_size);
            }
        }
        let report = self.device.check(&mut |_, _| {}).unwrap();
        assert!(report.is_whole(), "{report:?}");
    }
}

fn run(engine: EngineChoice, depth: u32, geometry: DeviceGeometry, seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flash");
    let preallocate = depth.is_multiple_of(2);
    let settings = Settings { engine, depth, access: Access::Write, preallocate };
    let mut world = World::new(&path, settings, geometry, seed);
    for _ in 0..4 {
        for _ in 0..150 {
            if world.rng.chance(0.6) { world.change() } else { world.read() }
        }
        world.check_all();
        let World { rng, blocks, device, settings, .. } = world;
        let identity = device.identity();
        device.close().unwrap();
        let device = FlashFile::open_with(&path, settings).unwrap();
        assert_eq!((device.identity(), *device.geometry()), (identity, geometry));
        world = World { rng, geometry, blocks, device, settings };
        world.check_all();
    }
}

#[test]
fn random_work_by_the_portable_engine() {
    let shapes = [(512, 0, None), (4096, 64, Some(4)), (18_432, 3, None), (1536, 600, Some(5))];
    for seed in seeds(0..4) {
        let (page, oob, open) = shapes[seed as usize % shapes.len()];
        run(EngineChoice::Portable, 1, geometry(page, oob, open), seed);
    }
}

#[test]
fn random_work_by_io_uring_where_there_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let usual = Settings { engine: EngineChoice::Uring, ..Settings::USUAL };
    let probe =
        FlashFile::create_with(&folder.path().join("probe"), geometry(4096, 0, None), usual);
    if let Err(error) = probe {
        return skipped(&error.to_string(), "");
    }
    let shapes = [
        (1, 4096, 0, None),
        (2, 16_384, 64, Some(4)),
        (3, 65_536, 3, None),
        (4, 131_072, 0, None),
        (16, 4096, 3000, None),
        (64, 4096, 0, Some(5)),
        (33, 16_384, 600, None),
    ];
    for seed in seeds(0..7) {
        let (depth, page, oob, open) = shapes[seed as usize % shapes.len()];
        run(EngineChoice::Uring, depth, geometry(page, oob, open), seed);
    }
}
