//! Reads that wait for flash while other calls change the file system.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;

use prism_base::{Bytes, Rng};
use prism_flash::function::Function;
use prism_flash::{Allocation, Cache, Device, DeviceGeometry, MemoryDevice, Options};
use prism_fs::{Config, FileRead, Fs, FsError, ROOT, S_IFREG};
use prism_segments::{FunctionStore, Store};
use prism_testkit::{all_seeds, seeds};

use crate::memory::{Kind, MemoryStore};
use crate::model::{FILE, TIME, World, formatted};
use crate::random::config;

const BLOCK: usize = 4096;

/// A file system without a cache, and a file of eight blocks that differ.
fn with_file(kind: Kind) -> (Fs<MemoryStore>, u32, Vec<u8>) {
    let store = MemoryStore::new(40, 64, kind);
    let config = Config { cache_bytes: 0, caches_written: false, ..Config::NORMAL };
    let mut fs = Fs::format(store, 7, config, TIME).unwrap();
    let file = fs.make(ROOT, b"file", FILE).unwrap();
    let data: Vec<u8> = (1..=8).flat_map(|block| [block; BLOCK]).collect();
    fs.write(file, 0, &data).unwrap();
    fs.checkpoint().unwrap();
    (fs, file, data)
}

fn begin<'m, S: Store>(
    fs: &mut Fs<S>,
    file: u32,
    at: u64,
    len: usize,
    memory: &'m mut [u8],
) -> FileRead<'m> {
    fs.begin_read(file, at, len, memory).unwrap().expect("a read for which it can wait")
}

#[test]
fn a_read_sees_the_file_as_it_was_when_it_began() {
    for kind in [Kind::Flash, Kind::Drive] {
        let (mut fs, file, data) = with_file(kind);
        let mut memory = vec![0x77; 31 * BLOCK];
        let read = begin(&mut fs, file, BLOCK as u64, 3 * BLOCK - 5, &mut memory);
        fs.write(file, 0, &[9; 8 * BLOCK]).unwrap();
        fs.fsync(&[file]).unwrap();
        assert!(read.wait() == Some(&data[BLOCK..4 * BLOCK - 5]));
        // Blocks in memory, on flash and in a hole; the end of the file cuts off the rest.
        fs.write(file, 3 * BLOCK as u64, &[5; 10]).unwrap();
        fs.write(file, 30 * BLOCK as u64, &[6; 10]).unwrap();
        let whole = fs.read(file, 0, 31 * BLOCK).unwrap();
        assert!(begin(&mut fs, file, 0, 40 * BLOCK, &mut memory).wait() == Some(&whole[..]));
    }
}

#[test]
fn a_read_of_a_segment_that_was_freed_meanwhile_is_made_again() {
    for kind in [Kind::Flash, Kind::Drive] {
        let (mut fs, file, _) = with_file(kind);
        let mut memory = vec![0x77; 4 * BLOCK];
        let read = begin(&mut fs, file, 0, 4 * BLOCK, &mut memory);
        // Until the segment of the old blocks, of which nothing else stays either, has new ones.
        for round in 0..400_u16 {
            fs.make(ROOT, b"other", FILE).unwrap();
            fs.unlink(ROOT, b"other").unwrap();
            fs.write(file, 0, &[round as u8; 8 * BLOCK]).unwrap();
            fs.checkpoint().unwrap();
        }
        assert!(read.wait().is_none());
        assert!(fs.read(file, 0, 4 * BLOCK).unwrap().iter().all(|&byte| byte == 399_u16 as u8));
    }
}

#[test]
fn damage_is_left_to_the_other_read_which_finds_it() {
    let (mut fs, file, data) = with_file(Kind::Flash);
    let mut memory = vec![0x77; 4 * BLOCK];
    let read = begin(&mut fs, file, 0, 4 * BLOCK, &mut memory);
    let image = fs.store().image();
    let pages = image.iter().enumerate().flat_map(|(segment, pages)| {
        pages.iter().enumerate().map(move |(page, bytes)| (segment, page, bytes))
    });
    for (segment, page, bytes) in pages {
        if bytes.as_ref().is_some_and(|bytes| bytes[..] == data[BLOCK..2 * BLOCK]) {
            assert!(fs.store().damage(segment, page, 7));
        }
    }
    assert!(read.wait().is_none());
    assert!(matches!(fs.read(file, 0, 4 * BLOCK), Err(FsError::Damaged { what: "data", .. })));
}

#[test]
fn what_cannot_wait_is_left_to_the_other_read() {
    let (mut fs, file, _) = with_file(Kind::Flash);
    let mut memory = vec![0; 4 * BLOCK + 100];
    let mut is_left = |fs: &mut Fs<MemoryStore>, at: u64, len: usize| {
        fs.begin_read(file, at, len, &mut memory).unwrap().is_none()
    };
    assert!(is_left(&mut fs, 5, 10), "not the beginning of a block");
    assert!(is_left(&mut fs, 0, 4 * BLOCK + 1), "more blocks than the memory has");
    assert!(is_left(&mut fs, 8 * BLOCK as u64, BLOCK), "after the end");
    assert!(is_left(&mut fs, u64::MAX, BLOCK), "after all ends");
    assert!(!is_left(&mut fs, 0, 4 * BLOCK));
    // In five places.
    for block in [0, 2] {
        fs.write(file, block * BLOCK as u64, &[1; BLOCK]).unwrap();
        fs.checkpoint().unwrap();
    }
    fs.write(file, 4 * BLOCK as u64, &[1; BLOCK]).unwrap();
    assert!(!is_left(&mut fs, 2 * BLOCK as u64, 4 * BLOCK), "one of four is in memory");
    fs.checkpoint().unwrap();
    let mut memory = vec![0; 8 * BLOCK];
    assert!(fs.begin_read(file, 0, 8 * BLOCK, &mut memory).unwrap().is_none());
}

/// A mount leaves what was written to the cache of the kernel, but for the end of a file.
#[test]
fn blocks_that_were_written_leave_the_cache_of_a_mount() {
    let mut fs = formatted(40, 64, Config { caches_written: false, ..Config::NORMAL });
    let file = fs.make(ROOT, b"file", FILE).unwrap();
    fs.write(file, 0, &[3; 2 * BLOCK + 100]).unwrap();
    fs.checkpoint().unwrap();
    for (segment, pages) in fs.store().image().iter().enumerate() {
        for page in 0..pages.len() {
            fs.store().damage(segment, page, 50);
        }
    }
    for block in 0..2 {
        let read = fs.read(file, block * BLOCK as u64, BLOCK);
        assert!(matches!(read, Err(FsError::Damaged { what: "data", .. })), "block {block}");
    }
    assert!(fs.read(file, 2 * BLOCK as u64, BLOCK).unwrap() == [3; 100]);
}

#[test]
fn random_reads_end_while_other_calls_go_on() {
    let (mut right, mut again) = (0, 0);
    for seed in seeds(0..12) {
        let mut rng = Rng::stream(seed, "reads");
        let kind = if seed % 2 == 0 { Kind::Flash } else { Kind::Drive };
        let store = MemoryStore::new(24, 32, kind);
        let device = store.clone();
        let mut world = World::new(Fs::format(store, 7, config(seed), TIME).unwrap());
        world.long = true;
        for _ in 0..10 {
            let mut memory = vec![0x77; 60 * 9 * BLOCK];
            let mut open = Vec::new();
            for memory in memory.chunks_mut(9 * BLOCK) {
                world.step(&mut rng);
                let files = world.state.values().filter(|file| file.kind == S_IFREG);
                let files: Vec<_> = files.collect();
                if let Some(file) = files.get(rng.below(files.len().max(1) as u64) as usize) {
                    let (at, len) = (rng.below(12), 1 + rng.below(9 << 12) as usize);
                    let at = at * BLOCK as u64;
                    let expected = file.content.read(at, len);
                    match world.fs.begin_read(file.ino, at, len, memory).unwrap() {
                        Some(read) => open.push((read, expected, device.ops())),
                        None => assert!(world.fs.read(file.ino, at, len).unwrap() == expected),
                    }
                }
                if !open.is_empty() && rng.chance(0.3) {
                    let any = rng.below(open.len() as u64) as usize;
                    let (read, expected, begun) = open.swap_remove(any);
                    match read.wait() {
                        Some(found) => assert!(found == expected, "seed {seed}"),
                        None => again += 1,
                    }
                    // Its segment may have been freed and be written again. What was written before
                    // the read began was complete then.
                    assert!(device.take_met().is_none_or(|met| met >= begun), "seed {seed}");
                    right += 1;
                }
            }
        }
    }
    right -= again;
    assert!(!all_seeds() || (right > 1000 && again > 20), "{right} {again}");
}

/// Each block of the file has the number of the write that wrote it.
#[test]
fn threads_read_while_another_writes_and_cleans() {
    const BLOCKS: usize = 600;
    let geometry = DeviceGeometry {
        channels: 4,
        luns_per_channel: 1,
        blocks_per_lun: 12,
        pages_per_block: 64,
        page_size: 4096,
        oob_size: 64,
        max_open_blocks: None,
    };
    let memory = MemoryDevice::new(geometry, Cache::None).unwrap();
    let device = Device::format(memory, Options::default()).unwrap();
    let capacity = Bytes(device.lun_capacity().0 * u64::from(device.free_luns()));
    let share = device.allocate("fs", Allocation::new(capacity, 0)).unwrap();
    let store = FunctionStore::new(Function::open(share).unwrap(), 7);
    let config = Config { caches_written: false, ..Config::NORMAL };
    let mut fs = Fs::format(store, 7, config, TIME).unwrap();
    let file = fs.make(ROOT, b"file", FILE).unwrap();
    fs.write(file, 0, &vec![0; BLOCKS * BLOCK]).unwrap();
    let shared = Mutex::new((fs, vec![0_u16; BLOCKS]));
    let waited = AtomicU32::new(0);
    thread::scope(|scope| {
        let (shared, waited) = (&shared, &waited);
        for number in 0..3 {
            scope.spawn(move || {
                let mut rng = Rng::stream(number, "reader");
                while waited.load(Relaxed) < 3000 {
                    let at = rng.below(BLOCKS as u64 - 8) as usize;
                    let mut memory = vec![0; 8 * BLOCK];
                    let mut locked = shared.lock().unwrap();
                    let (fs, writes) = &mut *locked;
                    let read = fs.begin_read(file, (at * BLOCK) as u64, 8 * BLOCK, &mut memory);
                    let expected = writes[at..at + 8].to_vec();
                    drop(locked);
                    let Some(read) = read.unwrap() else { continue };
                    let Some(found) = read.wait() else { continue };
                    for (block, write) in found.chunks(BLOCK).zip(expected) {
                        let (numbers, _) = block.as_chunks::<2>();
                        assert!(numbers.iter().all(|&two| u16::from_le_bytes(two) == write));
                    }
                    waited.fetch_add(1, Relaxed);
                }
            });
        }
        let mut rng = Rng::stream(9, "writer");
        for write in (1_u16..).take_while(|_| waited.load(Relaxed) < 3000) {
            let mut locked = shared.lock().unwrap();
            let (fs, writes) = &mut *locked;
            let at = rng.below(BLOCKS as u64) as usize;
            fs.write(file, (at * BLOCK) as u64, &write.to_le_bytes().repeat(BLOCK / 2)).unwrap();
            writes[at] = write;
            if write % 16 == 0 {
                fs.fsync(&[file]).unwrap();
            }
            drop(locked);
            thread::yield_now();
        }
    });
}
