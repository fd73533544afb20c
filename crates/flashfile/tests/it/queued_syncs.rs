//! Syncs that queues have submitted, next to those of threads: nothing waits for a queue that its
//! thread does not look at, and everything that a sync covers is there when the file is opened
//! again.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use prism_base::Bytes;
use prism_flash::raw::{Address, Command, Queue, Raw};
use prism_flash::{Allocation, Device, DeviceGeometry, Options};
use prism_flashfile::{EngineChoice, FlashFile, Settings};

use crate::media::readable;

const GEOMETRY: DeviceGeometry = DeviceGeometry {
    channels: 1,
    luns_per_channel: 2,
    blocks_per_lun: 64,
    pages_per_block: 32,
    page_size: 4096,
    oob_size: 0,
    max_open_blocks: None,
};
const PAGE: usize = 4096;

/// Calls `test` with a share of a device in a file, by every engine; then opens the file again and
/// checks that page `n` of LUN 0 has the byte `n % 251`, for all pages up to the number returned.
fn on_every_engine(test: impl Fn(&Raw) -> u32) {
    for engine in [EngineChoice::Best, EngineChoice::Portable] {
        let settings = Settings { engine, ..Settings::USUAL };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flash");
        let file = FlashFile::create_with(&path, GEOMETRY, settings).unwrap();
        let device = Device::format(file, Options::default()).unwrap();
        let all = Bytes(2 * device.lun_capacity().0);
        let raw = Raw::open(device.allocate("a", Allocation::new(all, 0)).unwrap()).unwrap();
        let pages = test(&raw);
        drop((raw, device));
        let device = Device::open(FlashFile::open(&path).unwrap(), Options::default()).unwrap();
        let raw = Raw::open(device.attach("a").unwrap()).unwrap();
        let mut page = vec![0; PAGE];
        for number in 0..pages {
            raw.read_page(place(number), &mut page).unwrap();
            assert!(page.iter().all(|&byte| byte == (number % 251) as u8), "page {number}");
        }
    }
}

/// Page `number` of LUN 0.
fn place(number: u32) -> Address {
    Address { channel: 0, lun: 0, block: number / 32, page: number % 32 }
}

fn write(number: u32) -> Command {
    Command::write(place(number), vec![(number % 251) as u8; PAGE])
}

/// More syncs than a log has room for: some of them need a checkpoint.
#[test]
fn a_thousand_syncs_of_a_queue() {
    on_every_engine(|raw| {
        let mut queue = raw.queue(8);
        for number in 0..1000 {
            queue.submit(write(number), u64::from(number)).unwrap();
            queue.submit(Command::Sync, u64::from(number) + 10_000).unwrap();
            while queue.len() > 4 {
                assert_eq!(queue.complete().unwrap().result, Ok(()));
            }
        }
        while let Some(done) = queue.complete() {
            assert_eq!(done.result, Ok(()));
        }
        1000
    });
}

#[test]
fn a_sync_does_not_wait_for_a_queue_that_is_not_polled() {
    on_every_engine(|raw| {
        let mut queue = raw.queue(8);
        for number in 0..200 {
            let byte = (number % 251) as u8;
            raw.write_page(place(number), &vec![byte; PAGE]).unwrap();
            queue.submit(Command::Sync, 7).unwrap();
            // By the same thread, and by others.
            raw.sync().unwrap();
            thread::scope(|scope| {
                scope.spawn(|| raw.sync().unwrap());
                scope.spawn(|| raw.sync().unwrap());
            });
            let done = queue.complete().unwrap();
            assert_eq!((done.tag, done.result), (7, Ok(())));
        }
        200
    });
}

/// The kernel cancels operations of a thread that ends.
#[test]
fn a_sync_outlives_the_thread_that_submitted_it() {
    on_every_engine(|raw| {
        for number in 0..60 {
            let mut queue = thread::scope(|scope| {
                let submitter = scope.spawn(|| {
                    let mut queue = raw.queue(4);
                    queue.submit(write(number), 1).unwrap();
                    assert_eq!(queue.complete().unwrap().result, Ok(()));
                    queue.submit(Command::Sync, 2).unwrap();
                    queue
                });
                submitter.join().unwrap()
            });
            let done = queue.complete().unwrap();
            assert_eq!((done.tag, done.result), (2, Ok(())));
        }
        60
    });
}

/// One submits and another takes, more of them than have rings.
#[test]
fn threads_take_turns_with_a_queue() {
    on_every_engine(|raw| {
        const PAGES: u32 = 1500;
        let shared = Mutex::new((raw.queue(8), 0));
        thread::scope(|scope| {
            for _ in 0..12 {
                scope.spawn(|| {
                    loop {
                        let mut guard = shared.lock().unwrap();
                        let (queue, next) = &mut *guard;
                        if *next == PAGES {
                            return;
                        }
                        queue.submit(write(*next), u64::from(*next)).unwrap();
                        *next += 1;
                        if next.is_multiple_of(3) {
                            queue.submit(Command::Sync, 10_000).unwrap();
                        }
                        while queue.len() > 4 {
                            assert_eq!(queue.complete().unwrap().result, Ok(()));
                        }
                        drop(guard);
                        thread::yield_now();
                    }
                });
            }
        });
        let (mut queue, _) = shared.into_inner().unwrap();
        queue.submit(Command::Sync, 10_000).unwrap();
        while let Some(done) = queue.complete() {
            assert_eq!(done.result, Ok(()));
        }
        PAGES
    });
}

#[test]
fn queues_of_threads_and_synchronous_calls_share_syncs() {
    on_every_engine(|raw| {
        thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || {
                    let mut queue = raw.queue(4);
                    // Blocks of its own.
                    for number in (0..128).map(|n| (n / 32 * 4 + thread) * 32 + n % 32) {
                        if thread == 0 {
                            let byte = (number % 251) as u8;
                            raw.write_page(place(number), &vec![byte; PAGE]).unwrap();
                            raw.sync_to(raw.ticket()).unwrap();
                            continue;
                        }
                        queue.submit(write(number), 1).unwrap();
                        queue.submit(Command::Sync, 2).unwrap();
                        while let Some(done) = queue.complete() {
                            assert_eq!(done.result, Ok(()));
                        }
                    }
                });
            }
        });
        512
    });
}

/// An event loop sleeps on the descriptor of its queue whenever there is nothing to take, while
/// threads sync: it is woken for each of its syncs.
#[test]
fn an_event_loop_is_woken_while_threads_sync() {
    on_every_engine(|raw| {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            for thread in 1..4 {
                let over = &over;
                scope.spawn(move || {
                    for number in 0..10_000 {
                        // Blocks of its own.
                        let block = thread * 14 + number % 14;
                        let at = Address { channel: 0, lun: 1, block, page: 0 };
                        if over.load(Ordering::Relaxed) {
                            break;
                        }
                        raw.erase_block(at).unwrap();
                        raw.write_page(at, &[thread as u8; PAGE]).unwrap();
                        raw.sync().unwrap();
                    }
                });
            }
            let mut queue = raw.queue(4);
            for number in 0..300 {
                queue.submit(write(number), 1).unwrap();
                queue.submit(Command::Sync, 2).unwrap();
                let mut done = 0;
                while done < 2 {
                    let Some(completion) = queue.poll() else {
                        sleep_on(&queue);
                        continue;
                    };
                    assert_eq!(completion.result, Ok(()));
                    done += 1;
                }
            }
            over.store(true, Ordering::Relaxed);
        });
        300
    });
}

/// Sleeps until the queue's descriptor is readable, at most a minute.
fn sleep_on<R: std::ops::Deref<Target = Raw>>(queue: &Queue<R>) {
    let descriptor = queue.event_fd().expect("a file has a descriptor");
    assert!(readable(descriptor, 60_000), "nothing came for a minute");
}
