//! The device in a file, as the benchmark uses it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use prism_base::{Bytes, Rng};
use prism_flash::function::{self, Function};
use prism_flash::raw::{self, Address, Completion, Raw};
use prism_flash::{Allocation, Buffer, Device, DeviceGeometry, Options};
use prism_flashfile::{EngineChoice, FlashFile, Settings};
use prism_host::clock;

use super::{Args, Level, Pattern};
use crate::failure::Failure;

pub const SHARE: &str = "bench";

/// A share over a whole device, at the raw level.
pub struct Store {
    path: PathBuf,
    raw: Arc<Raw>,
    pub engine: &'static str,
    blocks: Vec<Address>,
    /// The next page of each block.
    next: Vec<u32>,
    /// Blocks that are not full.
    open: Vec<usize>,
    depth: usize,
    pages: u32,
    page: Vec<u8>,
    seed: u64,
    rng: Rng,
}

/// The geometry of a device of `bytes`, in blocks of 4 MiB as `prism device create` makes them.
pub fn geometry(bytes: Bytes, page: u32) -> DeviceGeometry {
    const BLOCK: u32 = 4 << 20;
    DeviceGeometry {
        channels: 4,
        luns_per_channel: 1,
        blocks_per_lun: (bytes.0 / u64::from(BLOCK) / 4) as u32,
        pages_per_block: BLOCK / page,
        page_size: page,
        oob_size: 0,
        max_open_blocks: None,
    }
}

impl Store {
    /// A device whose pages were all written once.
    ///
    /// # Errors
    /// [`Failure`] if the file cannot be made.
    pub fn make(args: &Args, path: &Path, page: u32) -> Result<Self, Failure> {
        let geometry = geometry(args.size, page);
        let file = FlashFile::create(path, geometry)?;
        let device = Device::format(file, Options::default())?;
        let all = Bytes(device.lun_capacity().0 * u64::from(geometry.luns()));
        drop(device.allocate(SHARE, Allocation::new(all, 0))?);
        drop(device);
        let mut store = Self::open(path, 32, args.seed)?;
        store.fill()?;
        Ok(store)
    }

    fn open(path: &Path, depth: u32, seed: u64) -> Result<Self, Failure> {
        let settings = Settings { engine: EngineChoice::Best, depth, ..Settings::USUAL };
        let file = FlashFile::open_with(path, settings)?;
        let engine = file.engine_name();
        let device = Device::open(file, Options::default())?;
        let raw = Raw::open(device.attach(SHARE)?)?;
        let blocks: Vec<Address> = raw.blocks().collect();
        let pointers = blocks.iter().map(|&at| raw.write_pointer(at));
        let next = pointers.collect::<Result<Vec<u32>, _>>()?;
        let (pages, size) = (raw.geometry().pages_per_block, raw.geometry().page_size);
        let open = (0..blocks.len()).filter(|&block| next[block] < pages).collect();
        Ok(Self {
            path: path.to_owned(),
            engine,
            blocks,
            next,
            open,
            depth: depth as usize,
            pages,
            page: vec![0xA5; size as usize],
            rng: Rng::stream(seed, "bench.device"),
            seed,
            raw: Arc::new(raw),
        })
    }

    /// Closes the device and opens it with this depth.
    ///
    /// # Errors
    /// [`Failure`] if the file cannot be used.
    pub fn reopen(self, depth: u32) -> Result<Self, Failure> {
        let (path, seed) = (self.path.clone(), self.seed);
        drop(self);
        Self::open(&path, depth, seed)
    }

    fn page_count(&self) -> u64 {
        self.blocks.len() as u64 * u64::from(self.pages)
    }

    /// Bytes per second over `seconds`; written data is durable at the end.
    ///
    /// # Errors
    /// [`Failure`] if the device fails.
    pub fn run(
        &mut self,
        level: Level,
        pattern: Pattern,
        threads: u32,
        seconds: f64,
    ) -> Result<f64, Failure> {
        if pattern.reads() {
            self.fill()?;
        }
        let begin = clock::seconds();
        let pages = if pattern.reads() {
            self.read_for(level, pattern, threads, begin + seconds)?
        } else {
            self.write_for(pattern, begin + seconds)?
        };
        let bytes = pages * self.page.len() as u64;
        Ok(bytes as f64 / (clock::seconds() - begin))
    }

    /// Pages between two readings of the clock.
    const LOOK: u64 = 64;

    fn write_for(&mut self, pattern: Pattern, until: f64) -> Result<u64, Failure> {
        let raw = Arc::clone(&self.raw);
        let mut queue = raw.queue(self.depth);
        let mut spare: Vec<Buffer> = Vec::new();
        let mut done = 0u64;
        loop {
            if done.is_multiple_of(Self::LOOK) && clock::seconds() >= until {
                break;
            }
            if queue.len() == self.depth {
                let completion = queue.complete().expect("some are in flight");
                completion.result?;
                spare.push(completion.data);
            }
            if self.open.is_empty() {
                while let Some(completion) = queue.complete() {
                    completion.result?;
                }
            }
            let at = self.next_page(pattern)?;
            let data = spare.pop().unwrap_or_else(|| self.buffer());
            queue.submit(raw::Command::write(at, data), done).expect("there is room");
            done += 1;
        }
        while let Some(completion) = queue.complete() {
            completion.result?;
        }
        self.raw.sync()?;
        Ok(done)
    }

    fn buffer(&self) -> Buffer {
        let mut buffer = self.raw.device().buffer(self.page.len());
        buffer.copy_from_slice(&self.page);
        buffer
    }

    /// Writes the rest of the device, so that every page can be read.
    fn fill(&mut self) -> Result<(), Failure> {
        while !self.open.is_empty() {
            let at = self.next_page(Pattern::WriteInOrder)?;
            self.raw.write_page(at, &self.page)?;
        }
        Ok(self.raw.sync()?)
    }

    /// The next page of a block; a full device is erased.
    fn next_page(&mut self, pattern: Pattern) -> Result<Address, Failure> {
        if self.open.is_empty() {
            for at in &self.blocks {
                self.raw.erase_block(*at)?;
            }
            self.next.fill(0);
            self.open = (0..self.blocks.len()).rev().collect();
        }
        let place = match pattern {
            Pattern::WriteAtRandom => self.rng.below(self.open.len() as u64) as usize,
            _ => self.open.len() - 1,
        };
        let block = self.open[place];
        let at = self.blocks[block].with_page(self.next[block]);
        self.next[block] += 1;
        if self.next[block] == self.pages {
            self.open.swap_remove(place);
        }
        Ok(at)
    }

    /// Reads on several threads, each with a queue of its own that is always full.
    fn read_for(
        &mut self,
        level: Level,
        pattern: Pattern,
        threads: u32,
        until: f64,
    ) -> Result<u64, Failure> {
        let function = match level {
            Level::Raw => None,
            Level::Function => Some(Function::open(self.raw.share().clone())?),
        };
        let (this, function) = (&*self, function.as_ref());
        let seeds: Vec<u64> = (0..threads).map(|_| this.seed).collect();
        thread::scope(|scope| {
            let reader = |(number, seed): (u64, u64)| {
                let mut pages = Pages {
                    rng: Rng::stream(seed + number, "bench.device"),
                    random: pattern == Pattern::ReadAtRandom,
                    all: this.page_count(),
                    next: number * (this.page_count() / u64::from(threads)),
                };
                scope.spawn(move || match function {
                    None => this.read_raw(&mut pages, until),
                    Some(function) => this.read_function(function, &mut pages, until),
                })
            };
            let readers: Vec<_> = (0..).zip(seeds).map(reader).collect();
            let read = |reader: thread::ScopedJoinHandle<'_, Result<u64, Failure>>| {
                reader.join().expect("a reader does not panic")
            };
            readers.into_iter().map(read).sum()
        })
    }

    fn address(&self, number: u64) -> Address {
        let block = self.blocks[(number / u64::from(self.pages)) as usize];
        block.with_page((number % u64::from(self.pages)) as u32)
    }

    fn read_raw(&self, pages: &mut Pages, until: f64) -> Result<u64, Failure> {
        let mut queue = self.raw.queue(self.depth);
        self.keep_full(pages, until, |work| match work {
            Work::Submit(at, data, tag) => {
                queue.submit(raw::Command::read(at, data), tag).expect("there is room");
                None
            }
            Work::Complete => queue.complete(),
        })
    }

    fn read_function(
        &self,
        function: &Function,
        pages: &mut Pages,
        until: f64,
    ) -> Result<u64, Failure> {
        let mut queue = function::Queue::new(function, self.depth);
        self.keep_full(pages, until, |work| match work {
            Work::Submit(at, data, tag) => {
                queue.submit_read(at, data, tag).expect("there is room");
                None
            }
            Work::Complete => queue.complete(),
        })
    }

    fn keep_full(
        &self,
        pages: &mut Pages,
        until: f64,
        mut queue: impl FnMut(Work) -> Option<Completion>,
    ) -> Result<u64, Failure> {
        for tag in 0..self.depth as u64 {
            queue(Work::Submit(self.address(pages.next()), self.buffer(), tag));
        }
        let mut done = 0u64;
        loop {
            let completion = queue(Work::Complete).expect("some are in flight");
            completion.result?;
            done += 1;
            if done.is_multiple_of(Self::LOOK) && clock::seconds() >= until {
                while let Some(completion) = queue(Work::Complete) {
                    completion.result?;
                }
                return Ok(done);
            }
            queue(Work::Submit(self.address(pages.next()), completion.data, completion.tag));
        }
    }
}

/// What a reader wants of its queue.
enum Work {
    Submit(Address, Buffer, u64),
    Complete,
}

/// The pages that a reader reads.
struct Pages {
    rng: Rng,
    random: bool,
    all: u64,
    next: u64,
}

impl Pages {
    fn next(&mut self) -> u64 {
        if self.random {
            return self.rng.below(self.all);
        }
        self.next = (self.next + 1) % self.all;
        self.next
    }
}
