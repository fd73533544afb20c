//! Measurements with a goal: isolation of shares, syncs, trims, and threads on a device in memory.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use prism_base::{Bytes, Rng};
use prism_flash::function::{Channel, Function, Unit as Extent};
use prism_flash::raw::{Address, Command, Raw};
use prism_flash::{Allocation, Cache, Device, DeviceGeometry, MemoryDevice, Options};
use prism_flashfile::{FlashFile, Settings};
use prism_host::clock;
use prism_report::{Section, Table};

use super::fio::{self, Job};
use super::policy::{Of, reads};
use super::store::geometry;
use super::{Args, Check, Pattern, alternately, median};
use crate::failure::Failure;

const PAGE: u32 = 4 << 10;

/// A measurement with a goal.
#[derive(Clone, Copy)]
pub struct Measured {
    pub name: &'static str,
    goal: f64,
    unit: &'static str,
    pub needs_fio: bool,
    run: fn(&Args, &Path, &Path) -> Result<Value, Failure>,
}

/// What was measured: the value, and the two rates of which it is the ratio, if it is one.
pub struct Value {
    pub value: f64,
    pub rates: Option<[f64; 2]>,
}

const OF_FIO: &str = "of fio";
const NANOSECONDS: &str = "ns";

/// All of them.
pub const ALL: [Measured; 10] = [
    Measured {
        name: "isolation: reads of a share while another writes and syncs",
        goal: 0.8,
        unit: OF_FIO,
        needs_fio: true,
        run: isolation,
    },
    Measured {
        name: "append and sync, one writer",
        goal: 0.8,
        unit: OF_FIO,
        needs_fio: true,
        run: |args, ours, fios| append(args, ours, fios, 1, one_writer),
    },
    Measured {
        name: "append and sync, 16 writers through one queue",
        goal: 1.0,
        unit: OF_FIO,
        needs_fio: true,
        run: |args, ours, fios| append(args, ours, fios, WRITERS, writers_of_a_queue),
    },
    Measured {
        name: "append and sync, 16 threads",
        goal: 0.65,
        unit: OF_FIO,
        needs_fio: true,
        run: |args, ours, fios| append(args, ours, fios, WRITERS, threads),
    },
    Measured {
        name: "syncs of the disk for each trim",
        goal: 0.0,
        unit: "syncs",
        needs_fio: false,
        run: syncs_of_trims,
    },
    Measured {
        name: "reads of a device in memory, two threads",
        goal: 1.8,
        unit: "of one thread",
        needs_fio: false,
        run: |args, _, _| memory(args),
    },
    Measured {
        name: "policy: reads of 1 MiB in order at depth 8",
        goal: 1.0,
        unit: OF_FIO,
        needs_fio: true,
        run: |args, ours, fios| reads(args, ours, fios, Pattern::ReadInOrder, Of::Throughput),
    },
    Measured {
        name: "policy: reads of 1 MiB at random at depth 8",
        goal: 1.0,
        unit: OF_FIO,
        needs_fio: true,
        run: |args, ours, fios| reads(args, ours, fios, Pattern::ReadAtRandom, Of::Throughput),
    },
    Measured {
        name: "policy: CPU time for each byte of these, in order",
        goal: 0.12,
        unit: NANOSECONDS,
        needs_fio: false,
        run: |args, ours, fios| reads(args, ours, fios, Pattern::ReadInOrder, Of::CpuTime),
    },
    Measured {
        name: "policy: CPU time for each byte of these, at random",
        goal: 0.12,
        unit: NANOSECONDS,
        needs_fio: false,
        run: |args, ours, fios| reads(args, ours, fios, Pattern::ReadAtRandom, Of::CpuTime),
    },
];

const WRITERS: u32 = 16;

impl Measured {
    /// Measures.
    ///
    /// # Errors
    /// [`Failure`] if a device or fio fails.
    pub fn measure(&self, args: &Args, ours: &Path, fios: &Path) -> Result<Check, Failure> {
        let Value { value, rates } = (self.run)(args, ours, fios)?;
        let _ = std::fs::remove_file(ours);
        Ok(Check { name: self.name, value, goal: self.goal, unit: self.unit, rates })
    }
}

/// The section with the results.
pub fn section(checks: &[Check]) -> Section {
    let table = Table::listing(checks)
        .text("measurement", |check| check.name)
        .text("value", |check| format!("{:.2} {}", check.value, check.unit))
        .text("rates", |check| match check.rates {
            Some([one, other]) => format!("{one:.0} / {other:.0}"),
            None => String::new(),
        })
        .text("goal", |check| match check.unit {
            "syncs" | NANOSECONDS => format!("at most {}", check.goal),
            _ => format!("at least {}", check.goal),
        })
        .whole("Medians of the runs");
    let lead = "Pages of 4 KiB. fio does the same to a file of the same size: for isolation, reads \
                at depth 1 next to a job that writes with fdatasync; for appends, writes each \
                followed by fdatasync, of as many jobs; for the policy level, reads with its \
                buffers in huge pages, if the system has reserved some (vm.nr_hugepages=16).";
    Section::new("Goals", lead).with(table)
}

/// A device in a file of which every place was written before, with shares of equal size.
fn device(args: &Args, path: &Path, names: &[&str]) -> Result<Device, Failure> {
    let _ = std::fs::remove_file(path);
    let settings = Settings { preallocate: true, ..Settings::USUAL };
    let shape = geometry(args.size, PAGE);
    let device = FlashFile::format_with(path, shape, &[], Options::default(), settings)?;
    let luns = u64::from(shape.luns()) / names.len() as u64;
    for name in names {
        let wanted = Allocation::new(Bytes(device.lun_capacity().0 * luns), 0);
        drop(device.allocate(name, wanted)?);
    }
    Ok(device)
}

fn raw(device: &Device, name: &str) -> Result<Raw, Failure> {
    Ok(device.attach(name).and_then(Raw::open)?)
}

/// Appends to the blocks of a share, which are erased when all are full.
struct Log {
    blocks: Vec<Address>,
    pages: u32,
    next: u64,
}

impl Log {
    /// Every `step`-th block from `first` on.
    fn new(raw: &Raw, first: usize, step: usize) -> Self {
        let blocks = raw.blocks().skip(first).step_by(step).collect();
        Self { blocks, pages: raw.geometry().pages_per_block, next: 0 }
    }

    fn next(&mut self, raw: &Raw) -> Result<Address, Failure> {
        let number = self.next % (self.blocks.len() as u64 * u64::from(self.pages));
        let (block, page) = (number / u64::from(self.pages), number % u64::from(self.pages));
        let at = self.blocks[block as usize].with_page(page as u32);
        if page == 0 && self.next >= self.blocks.len() as u64 * u64::from(self.pages) {
            raw.erase_block(at)?;
        }
        self.next += 1;
        Ok(at)
    }
}

/// Medians of alternating runs; the ratio of ours to fio's.
pub fn ratio(
    args: &Args,
    ours: impl FnMut() -> Result<f64, Failure>,
    fios: impl FnMut() -> Result<f64, Failure>,
) -> Result<Value, Failure> {
    let rates = alternately(args.runs, ours, fios)?.map(|runs| median(&runs));
    Ok(Value { value: rates[0] / rates[1], rates: Some(rates) })
}

/// Bytes per second of `threads` appenders.
type Appends = fn(&Raw, u32, f64) -> Result<u64, Failure>;

fn append(
    args: &Args,
    path: &Path,
    fios: &Path,
    writers: u32,
    appends: Appends,
) -> Result<Value, Failure> {
    let device = device(args, path, &["log"])?;
    let raw = raw(&device, "log")?;
    let time = Some(args.time);
    let job = Job { threads: writers, syncs: true, time, ..Job::of("write", PAGE) };
    let ours = || {
        for at in raw.blocks() {
            raw.erase_block(at)?;
        }
        raw.sync()?;
        let begin = clock::seconds();
        let pages = appends(&raw, writers, begin + args.time.as_secs_f64())?;
        Ok((pages * u64::from(PAGE)) as f64 / (clock::seconds() - begin))
    };
    ratio(args, ours, || Ok(fio::run(args, fios, &[job])?[0]))
}

fn one_writer(raw: &Raw, _writers: u32, until: f64) -> Result<u64, Failure> {
    let (mut log, data) = (Log::new(raw, 0, 1), vec![0x5A; PAGE as usize]);
    let mut done = 0;
    while clock::seconds() < until {
        let at = log.next(raw)?;
        raw.write_page(at, &data).and_then(|()| raw.sync())?;
        done += 1;
    }
    Ok(done)
}

/// Writers that are not threads: each appends when its last append is durable. A sync is for all
/// writes that were submitted before it, so the writers share one.
fn writers_of_a_queue(raw: &Raw, writers: u32, until: f64) -> Result<u64, Failure> {
    const SYNC: u64 = u64::MAX;
    let mut queue = raw.queue(2 * writers as usize);
    let mut logs: Vec<_> =
        (0..writers as usize).map(|n| Log::new(raw, n, writers as usize)).collect();
    let buffer = || raw.device().buffer(PAGE as usize);
    let mut buffers: Vec<_> = (0..writers).map(|_| buffer()).collect();
    let mut synced = 0;
    while clock::seconds() < until {
        for (writer, data) in (0..).zip(buffers.drain(..)) {
            let at = logs[writer].next(raw)?;
            queue.submit(Command::write(at, data), writer as u64).expect("there is room");
        }
        queue.submit(Command::Sync, SYNC).expect("there is room");
        while let Some(done) = queue.complete() {
            done.result?;
            if done.tag != SYNC {
                buffers.push(done.data);
            }
        }
        synced += u64::from(writers);
    }
    Ok(synced)
}

fn threads(raw: &Raw, writers: u32, until: f64) -> Result<u64, Failure> {
    let writer = |number: usize| -> Result<u64, Failure> {
        let mut log = Log::new(raw, number, writers as usize);
        let (data, mut done) = (vec![0x5A; PAGE as usize], 0);
        while clock::seconds() < until {
            let at = log.next(raw)?;
            raw.write_page(at, &data)?;
            raw.sync_to(raw.ticket())?;
            done += 1;
        }
        Ok(done)
    };
    thread::scope(|scope| {
        let all: Vec<_> =
            (0..writers as usize).map(|number| scope.spawn(move || writer(number))).collect();
        all.into_iter().map(|one| one.join().expect("a writer does not panic")).sum()
    })
}

fn isolation(args: &Args, path: &Path, fios: &Path) -> Result<Value, Failure> {
    let device = device(args, path, &["reader", "writer"])?;
    let (reader, writer) = (raw(&device, "reader")?, raw(&device, "writer")?);
    let data = vec![0x5A; PAGE as usize];
    for at in reader.blocks() {
        for page in 0..reader.geometry().pages_per_block {
            reader.write_page(at.with_page(page), &data)?;
        }
    }
    reader.sync()?;
    let (seconds, time) = (args.time.as_secs_f64(), Some(args.time));
    let mut log = Log::new(&writer, 0, 1);
    let ours = || {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let writes = scope.spawn(|| -> Result<(), Failure> {
                while !over.load(Ordering::Relaxed) {
                    let at = log.next(&writer)?;
                    writer.write_page(at, &data)?;
                    writer.sync()?;
                }
                Ok(())
            });
            let reads = reads_at_random(&reader, args.seed, clock::seconds() + seconds);
            over.store(true, Ordering::Relaxed);
            writes.join().expect("the writer does not panic")?;
            Ok(reads? as f64 * f64::from(PAGE) / seconds)
        })
    };
    let write = Job { syncs: true, time, ..Job::of("write", PAGE) };
    let jobs = [Job { time, ..Job::of("randread", PAGE) }, write];
    ratio(args, ours, || Ok(fio::run(args, fios, &jobs)?[0]))
}

fn reads_at_random(raw: &Raw, seed: u64, until: f64) -> Result<u64, Failure> {
    let blocks: Vec<Address> = raw.blocks().collect();
    let (mut rng, mut page) = (Rng::stream(seed, "bench.isolation"), vec![0; PAGE as usize]);
    let mut done = 0;
    while clock::seconds() < until {
        let block = blocks[rng.below(blocks.len() as u64) as usize];
        let at = block.with_page(rng.below(raw.geometry().pages_per_block.into()) as u32);
        raw.read_page(at, &mut page)?;
        done += 1;
    }
    Ok(done)
}

/// Writes slabs of 1 MiB and trims them, one by one.
fn syncs_of_trims(args: &Args, path: &Path, _fios: &Path) -> Result<Value, Failure> {
    const SLABS: u64 = 64;
    let settings = Settings { preallocate: true, ..Settings::USUAL };
    let _ = std::fs::remove_file(path);
    let shape = DeviceGeometry { pages_per_block: 256, ..geometry(args.size, PAGE) };
    let shape = DeviceGeometry { blocks_per_lun: 256, ..shape };
    let device = FlashFile::format_with(path, shape, &[], Options::default(), settings)?;
    let all = Bytes(device.lun_capacity().0 * 4);
    let share = device.allocate("slabs", Allocation::new(all, 0))?;
    let function = Function::open(share)?;
    let slab = vec![0x5A; 1 << 20];
    let before = syncs(&device);
    for _ in 0..SLABS {
        let new = function.address_mapper(Channel::Any, Extent::Block)?;
        function.write(new.at, &slab)?;
        function.trim(new.at, Extent::Block)?;
    }
    function.drain()?;
    let value = (syncs(&device) - before) as f64 / SLABS as f64;
    Ok(Value { value, rates: None })
}

/// Syncs of the device so far.
fn syncs(device: &Device) -> u64 {
    let medium = device.medium().into_any();
    medium.downcast::<FlashFile>().map_or(0, |file| file.syncs())
}

fn memory(args: &Args) -> Result<Value, Failure> {
    let shape = geometry(Bytes(256 << 20), PAGE);
    let memory = MemoryDevice::new(shape, Cache::None).map_err(Failure::usage)?;
    let device = Device::format(memory, Options::default())?;
    let all = Bytes(device.lun_capacity().0 * 4);
    let share = device.allocate("a", Allocation::new(all, 0))?;
    let function = Function::open(share)?;
    let mut blocks = Vec::new();
    let block = vec![0x5A; shape.block_bytes() as usize];
    while let Ok(new) = function.address_mapper(Channel::Any, Extent::Block) {
        function.write(new.at, &block)?;
        blocks.push(new.at);
    }
    let reads = |threads: u64| -> Result<f64, Failure> {
        let begin = clock::seconds();
        let until = begin + args.time.as_secs_f64();
        let reader = |number: u64| -> Result<u64, Failure> {
            let mut rng = Rng::stream(args.seed + number, "bench.memory");
            let (mut page, mut done) = (vec![0; PAGE as usize], 0);
            while done % 256 != 0 || clock::seconds() < until {
                let at = blocks[rng.below(blocks.len() as u64) as usize];
                let at = at.with_page(rng.below(shape.pages_per_block.into()) as u32);
                function.read(at, &mut page)?;
                done += 1;
            }
            Ok(done)
        };
        let reader = &reader;
        let done: Result<u64, Failure> = thread::scope(|scope| {
            let all: Vec<_> = (0..threads).map(|n| scope.spawn(move || reader(n))).collect();
            all.into_iter().map(|one| one.join().expect("a reader does not panic")).sum()
        });
        Ok(done? as f64 / (clock::seconds() - begin))
    };
    ratio(args, || reads(2), || reads(1))
}
