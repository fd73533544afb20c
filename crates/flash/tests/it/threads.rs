//! Threads that use a device at once: what they read is always what was written, although blocks
//! move, are cleaned and are erased meanwhile.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use prism_base::{Bytes, Rng};
use prism_flash::function::{Channel, Function, Unit};
use prism_flash::policy::{Cleaning, Mapping, Policy, RangeConfig};
use prism_flash::raw::{Address, Command, Raw};
use prism_flash::{
    Allocation, Cache, Device, DeviceGeometry, FlashError, GlobalWear, MemoryDevice, Options, Share,
};

const PAGE: usize = 512;

fn share(cache: Cache, oob_size: u32) -> (Device, Share) {
    let geometry = DeviceGeometry {
        channels: 2,
        luns_per_channel: 2,
        blocks_per_lun: 24,
        pages_per_block: 8,
        page_size: PAGE as u32,
        oob_size,
        max_open_blocks: None,
    };
    let memory = MemoryDevice::new(geometry, cache).unwrap();
    let device = Device::format(memory, Options::default()).unwrap();
    let capacity = Bytes(2 * device.lun_capacity().0);
    let share = device.allocate("a", Allocation::new(capacity, 0)).unwrap();
    (device, share)
}

/// The content of a page: its number and version, over and over.
fn stamped(number: u64, version: u64) -> Vec<u8> {
    let stamp = [number.to_le_bytes(), version.to_le_bytes()].concat();
    stamp.repeat(PAGE / 16)
}

/// The number and version in a page, which is all of one write.
fn stamp_of(page: &[u8]) -> (u64, u64) {
    let word = |at: usize| u64::from_le_bytes(page[at..at + 8].try_into().unwrap());
    let stamp = (word(0), word(8));
    assert!(page == stamped(stamp.0, stamp.1), "a mixture of two writes");
    stamp
}

/// A writer overwrites units at random, so that cleaning moves and erases, and flushes; readers see
/// each unit as it was at some moment of their read, and never go back.
#[test]
fn reads_of_the_policy_level_go_on_during_writes_and_cleaning() {
    const UNITS: u64 = 60;
    for oob_size in [0, 256] {
        let (_device, share) = share(Cache::Volatile, oob_size);
        let policy = Policy::open(share).unwrap();
        let range = RangeConfig::new(Mapping::Page, Cleaning::Greedy);
        policy.configure(0, UNITS * PAGE as u64, range).unwrap();
        for number in 0..UNITS {
            policy.write(number * PAGE as u64, &stamped(number, 0)).unwrap();
        }
        let written: Vec<AtomicU64> = (0..UNITS).map(|_| AtomicU64::new(0)).collect();
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            for seed in 0..2 {
                let (policy, written, over) = (&policy, &written, &over);
                scope.spawn(move || {
                    let mut rng = Rng::stream(seed, "threads.policy");
                    let mut queue = policy.queue(20);
                    while !over.load(Ordering::SeqCst) {
                        let first = rng.below(UNITS);
                        let count = 1 + rng.below((UNITS - first).min(20));
                        let places = &written[first as usize..][..count as usize];
                        let before: Vec<u64> =
                            places.iter().map(|v| v.load(Ordering::SeqCst)).collect();
                        let mut found = vec![0; count as usize * PAGE];
                        if rng.chance(0.3) {
                            policy.read(first * PAGE as u64, &mut found).unwrap();
                        } else if rng.chance(0.5) {
                            for unit in 0..count {
                                let address = (first + unit) * PAGE as u64;
                                queue.submit(address, vec![0; PAGE], unit).unwrap();
                            }
                            while let Some(done) = queue.complete() {
                                assert_eq!(done.result, Ok(()));
                                found[done.tag as usize * PAGE..][..PAGE]
                                    .copy_from_slice(&done.data);
                            }
                        } else {
                            let addresses = (first..).map(|number| number * PAGE as u64);
                            let mut parts: Vec<_> = addresses.zip(found.chunks_mut(PAGE)).collect();
                            policy.read_vectored(&mut parts).unwrap();
                        }
                        for ((number, page), least) in (first..).zip(found.chunks(PAGE)).zip(before)
                        {
                            let (of, version) = stamp_of(page);
                            assert!(of == number && version >= least, "unit {number}");
                        }
                    }
                });
            }
            let mut rng = Rng::stream(9, "threads.writer");
            for version in 1..6000 {
                let number = rng.below(UNITS);
                policy.write(number * PAGE as u64, &stamped(number, version)).unwrap();
                written[number as usize].store(version, Ordering::SeqCst);
                if rng.chance(0.02) {
                    policy.flush().unwrap();
                }
            }
            over.store(true, Ordering::SeqCst);
        });
        policy.assert_consistent();
    }
}

/// LUNs are exchanged while threads read and write their own blocks, by calls and by queues.
#[test]
fn blocks_move_while_threads_use_them() {
    let (device, share) = share(Cache::None, 0);
    let raw = Raw::open(share).unwrap();
    let own = |thread: u32, block: u32| Address { lun: 0, channel: thread, block, page: 0 };
    let wear = GlobalWear { min_gap: 0, delta: 0.0, budget: 1.0 };
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..2)
            .map(|thread| {
                let (raw, device) = (&raw, &device);
                scope.spawn(move || {
                    let mut rng = Rng::stream(thread.into(), "threads.raw");
                    let mut queue = raw.queue(8);
                    let all = |round| round >= 400 && device.wear().exchanges > 0;
                    for round in (0..100_000u64).take_while(|&round| !all(round)) {
                        let block = rng.below(6) as u32;
                        raw.erase_block(own(thread, block)).unwrap();
                        for page in 0..8 {
                            let at = own(thread, block).with_page(page);
                            let data = stamped(page.into(), round);
                            queue.submit(Command::write(at, data), page.into()).unwrap();
                        }
                        while let Some(done) = queue.complete() {
                            assert_eq!(done.result, Ok(()), "round {round}");
                        }
                        let mut found = [0; PAGE];
                        for page in 0..8 {
                            raw.read_page(own(thread, block).with_page(page), &mut found).unwrap();
                            assert_eq!(stamp_of(&found), (page.into(), round));
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                device.level_wear(wear, 2).unwrap();
            }
        });
        for worker in workers {
            worker.join().unwrap();
        }
        over.store(true, Ordering::SeqCst);
    });
    assert!(device.wear().exchanges > 0);
}

/// A cache of slabs: one thread replaces slabs, others read them. A slab in the index is read
/// whole; the address of one that was replaced meanwhile is refused, or has a page of one write.
#[test]
fn slabs_are_read_while_others_are_replaced() {
    const SLABS: u64 = 16;
    let (_device, share) = share(Cache::None, 0);
    let function = Function::open(share).unwrap();
    let write = |version: u64| {
        let new = function.address_mapper(Channel::Any, Unit::Block).unwrap();
        function.write(new.at, &stamped(version, version).repeat(8)).unwrap();
        new.at
    };
    let places: Vec<std::sync::Mutex<(Address, u64)>> =
        (0..SLABS).map(|n| std::sync::Mutex::new((write(n), n))).collect();
    let over = AtomicBool::new(false);
    let read = AtomicU64::new(0);
    thread::scope(|scope| {
        for seed in 0..2 {
            let (function, places, over, read) = (&function, &places, &over, &read);
            scope.spawn(move || {
                let mut rng = Rng::stream(seed, "threads.slabs");
                let mut page = [0; PAGE];
                while !over.load(Ordering::SeqCst) {
                    let place = &places[rng.below(SLABS) as usize];
                    // The lock is held during the read, as an index would hold an entry.
                    let slab = place.lock().unwrap();
                    function.read(slab.0.with_page(rng.below(8) as u32), &mut page).unwrap();
                    assert_eq!(stamp_of(&page).0, slab.1);
                    let old = *slab;
                    drop(slab);
                    match function.read(old.0, &mut page) {
                        Ok(()) => drop(stamp_of(&page)),
                        Err(FlashError::NotAllocated { .. } | FlashError::Unwritten { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                    read.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let mut rng = Rng::stream(7, "threads.slabs.writer");
        for version in SLABS..3000 {
            let at = write(version);
            let place = &places[rng.below(SLABS) as usize];
            let old = std::mem::replace(&mut *place.lock().unwrap(), (at, version));
            function.trim(old.0, Unit::Block).unwrap();
        }
        while read.load(Ordering::SeqCst) < 100 {
            thread::yield_now();
        }
        over.store(true, Ordering::SeqCst);
    });
    function.drain().unwrap();
}
