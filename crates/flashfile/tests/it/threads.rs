//! Threads that use a device in a file at once, each with a queue of its own, by every engine:
//! reads find what was written, and all of it is there when the file is opened again.

use std::collections::BTreeMap;
use std::thread;

use prism_base::{Bytes, Nanos, Rng};
use prism_flash::raw::{Address, Command, Raw};
use prism_flash::{Allocation, Buffer, Device, DeviceGeometry, Options};
use prism_flashfile::{EngineChoice, FlashFile, Settings};
use prism_testkit::seeds;

use crate::media::readable;

const GEOMETRY: DeviceGeometry = DeviceGeometry {
    channels: 2,
    luns_per_channel: 2,
    blocks_per_lun: 24,
    pages_per_block: 8,
    page_size: 4096,
    oob_size: 16,
    max_open_blocks: None,
};
const PAGE: usize = 4096;
const THREADS: u32 = 3;

/// The pages of each block of a thread.
type Content = BTreeMap<u32, Vec<u8>>;

/// Commands of one thread on its own blocks, until `steps` are complete.
fn work(raw: &Raw, number: u32, seed: u64, steps: u64) -> Content {
    let mut rng = Rng::stream(seed * 10 + u64::from(number), "threads");
    let mut queue = raw.queue(1 + rng.below(40) as usize);
    let mut content: Content = (0..5).map(|block| (block, Vec::new())).collect();
    let mut reads: BTreeMap<u64, u8> = BTreeMap::new();
    let at = |block: u32, page: usize| Address {
        channel: number % 2,
        lun: 0,
        block: 6 * (number / 2) + block,
        page: page as u32,
    };
    let mut buffers: Vec<Buffer> = Vec::new();
    let mut tag = 0;
    while tag < steps || !queue.is_empty() {
        if tag < steps && rng.chance(0.6) {
            let block = rng.below(5) as u32;
            let pages = content.get_mut(&block).expect("one of five");
            let mut buffer = buffers.pop().unwrap_or_else(|| match rng.chance(0.5) {
                true => raw.device().buffer(PAGE),
                false => vec![0; PAGE].into(),
            });
            buffer.set_len(PAGE);
            let command = match rng.below(20) {
                0..8 if pages.len() < 8 => {
                    let byte = rng.below(256) as u8;
                    buffer.fill(byte);
                    let at = at(block, pages.len());
                    Command::Write { at, data: buffer, oob: vec![byte; 16] }
                }
                0..17 if !pages.is_empty() => {
                    let page = rng.below(pages.len() as u64) as usize;
                    let offset = 512 * rng.below(8) as u32;
                    buffer.set_len(PAGE - offset as usize);
                    Command::Read { at: at(block, page), offset, data: buffer }
                }
                17 => Command::Erase { at: at(block, 0) },
                _ => Command::Sync,
            };
            if queue.len() == 40 || queue.submit(command.clone(), tag).is_err() {
                continue;
            }
            match command {
                Command::Write { data, .. } => pages.push(data[0]),
                Command::Read { at, .. } => drop(reads.insert(tag, pages[at.page as usize])),
                Command::Erase { .. } => pages.clear(),
                Command::Sync => {}
            }
            tag += 1;
            continue;
        }
        let done = match rng.below(3) {
            0 => queue.poll(),
            1 => queue.wait(Some(Nanos(1_000))).then(|| queue.poll()).flatten(),
            _ => queue.complete(),
        };
        let Some(done) = done else { continue };
        assert_eq!(done.result, Ok(()), "seed {seed}, thread {number}, {}", done.tag);
        if let Some(byte) = reads.remove(&done.tag) {
            assert!(done.data.iter().all(|&found| found == byte), "seed {seed}: {}", done.tag);
        }
        if done.data.capacity() == PAGE {
            buffers.push(done.data);
        }
    }
    content
}

#[test]
fn random_commands_of_threads_are_complete_and_durable() {
    let engines = [(EngineChoice::Best, 64), (EngineChoice::Portable, 64), (EngineChoice::Best, 2)];
    for seed in seeds(0..6) {
        let (engine, depth) = engines[seed as usize % 3];
        let settings = Settings { engine, depth, ..Settings::USUAL };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flash");
        let file = FlashFile::create_with(&path, GEOMETRY, settings).unwrap();
        let device = Device::format(file, Options::default()).unwrap();
        let all = Bytes(2 * device.lun_capacity().0);
        let raw = Raw::open(device.allocate("a", Allocation::new(all, 0)).unwrap()).unwrap();
        let contents: Vec<Content> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|number| {
                    let raw = &raw;
                    scope.spawn(move || work(raw, number, seed, 1500))
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        raw.sync_to(raw.ticket()).unwrap();
        drop((raw, device));
        let file = FlashFile::open_with(&path, settings).unwrap();
        let report = file.check(&mut |_, _| {}).unwrap();
        assert!(report.is_whole(), "seed {seed}: {report:?}");
        let device = Device::open(file, Options::default()).unwrap();
        let raw = Raw::open(device.attach("a").unwrap()).unwrap();
        for (number, content) in (0..).zip(contents) {
            for (block, pages) in content {
                for (page, byte) in (0..).zip(pages) {
                    let block = 6 * (number / 2) + block;
                    let at = Address { channel: number % 2, lun: 0, block, page };
                    let (mut data, mut oob) = ([0; PAGE], [0; 16]);
                    raw.read_page_and_oob(at, &mut data, &mut oob).unwrap();
                    assert!(data == [byte; PAGE] && oob == [byte; 16], "seed {seed}: {at}");
                }
            }
        }
    }
}

/// Every call of many threads returns with its own page in the journal: a copy of the file, made
/// without closing it, has them all.
#[test]
fn syncs_of_threads_cover_their_own_pages() {
    const CALLS: u64 = 40;
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("flash"), folder.path().join("copy"));
    let device = FlashFile::format(&path, GEOMETRY, &[], Options::default()).unwrap();
    let all = Bytes(2 * device.lun_capacity().0);
    let raw = Raw::open(device.allocate("a", Allocation::new(all, 0)).unwrap()).unwrap();
    let at = |thread: u64, call: u64| Address {
        channel: (thread % 2) as u32,
        lun: 0,
        block: (5 * (thread / 2) + call / 8) as u32,
        page: (call % 8) as u32,
    };
    thread::scope(|scope| {
        for number in 0..6u64 {
            let raw = &raw;
            scope.spawn(move || {
                for call in 0..CALLS {
                    raw.write_page(at(number, call), &[number as u8; PAGE]).unwrap();
                    raw.sync_to(raw.ticket()).unwrap();
                }
            });
        }
    });
    std::fs::copy(&path, &copy).unwrap();
    let device = Device::open(FlashFile::open(&copy).unwrap(), Options::default()).unwrap();
    let raw = Raw::open(device.attach("a").unwrap()).unwrap();
    for (number, call) in (0..6).flat_map(|n| (0..CALLS).map(move |call| (n, call))) {
        let mut page = [0xEE; PAGE];
        raw.read_page(at(number, call), &mut page).unwrap();
        assert_eq!(page, [number as u8; PAGE], "thread {number}, call {call}");
    }
}

/// A queue may go to another thread while its commands, a sync among them, are in flight.
#[test]
fn a_queue_goes_from_thread_to_thread() {
    for engine in [EngineChoice::Best, EngineChoice::Portable] {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings { engine, ..Settings::USUAL };
        let path = folder.path().join("flash");
        let file = FlashFile::create_with(&path, GEOMETRY, settings).unwrap();
        let device = Device::format(file, Options::default()).unwrap();
        let share = device.allocate("a", Allocation::new(device.lun_capacity(), 0)).unwrap();
        let raw = Raw::open(share).unwrap();
        let mut queue = raw.queue(32);
        for round in 0..16u64 {
            let at =
                Address { block: (round / 8) as u32, page: (round % 8) as u32, lun: 0, channel: 0 };
            queue.submit(Command::write(at, vec![round as u8; PAGE]), 2 * round).unwrap();
            queue.submit(Command::Sync, 2 * round + 1).unwrap();
            queue = thread::scope(|scope| {
                let other = move || {
                    let mut done = Vec::new();
                    while let Some(completion) = queue.complete() {
                        assert_eq!(completion.result, Ok(()));
                        done.push(completion.tag);
                    }
                    assert_eq!(done, [2 * round, 2 * round + 1]);
                    queue.submit(Command::read(at, vec![0; PAGE]), 99).unwrap();
                    queue
                };
                scope.spawn(other).join().unwrap()
            });
            let read = queue.complete().unwrap();
            assert!(read.result.is_ok() && read.data == [round as u8; PAGE], "round {round}");
        }
    }
}

/// The descriptor of a queue becomes readable for each of several syncs in flight.
#[test]
fn an_event_loop_gets_every_sync() {
    for engine in [EngineChoice::Best, EngineChoice::Portable] {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings { engine, ..Settings::USUAL };
        let file =
            FlashFile::create_with(&folder.path().join("flash"), GEOMETRY, settings).unwrap();
        let device = Device::format(file, Options::default()).unwrap();
        let share = device.allocate("a", Allocation::new(device.lun_capacity(), 0)).unwrap();
        let raw = Raw::open(share).unwrap();
        let mut queue = raw.queue(32);
        for round in 0..8u64 {
            let at = Address { page: round as u32, ..Address::default() };
            queue.submit(Command::write(at, vec![1; PAGE]), 0).unwrap();
            (1..6).for_each(|tag| queue.submit(Command::Sync, tag).unwrap());
            let mut done = 0;
            loop {
                done += std::iter::from_fn(|| queue.poll()).count();
                if done == 6 {
                    break;
                }
                let fd = queue.event_fd().expect("a file has a descriptor");
                let ready = readable(fd, 60_000);
                assert!(ready, "round {round}: {done} of 6 came, then none for a minute");
            }
        }
    }
}
