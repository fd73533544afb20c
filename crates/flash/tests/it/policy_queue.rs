//! Reads of the policy level that are in flight while the same thread writes, trims, flushes and
//! cleans; on devices with time, their ends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use prism_base::{Bytes, Nanos, Rng, SimTime};
use prism_flash::policy::{Cleaning, Completion, Mapping, Policy, Queue, RangeConfig};
use prism_flash::{
    Allocation, Cache, Device, DeviceGeometry, FlashError, Medium, MemoryDevice, Options,
};
use prism_nand::{PageTimes, Timing};
use prism_testkit::seeds;

use crate::wrapped::Wrapped;

const PAGE: usize = 512;

fn geometry(oob_size: u32) -> DeviceGeometry {
    DeviceGeometry {
        channels: 2,
        luns_per_channel: 1,
        blocks_per_lun: 24,
        pages_per_block: 8,
        page_size: PAGE as u32,
        oob_size,
        max_open_blocks: None,
    }
}

fn policy(oob_size: u32, order: Option<u64>, timing: Option<Timing>) -> Policy {
    let memory = MemoryDevice::new(geometry(oob_size), Cache::None).unwrap();
    if let Some(seed) = order {
        memory.complete_in_any_order(seed);
    }
    on(Arc::new(memory), timing)
}

fn on(medium: Arc<dyn Medium>, timing: Option<Timing>) -> Policy {
    let device = Device::format(medium, Options { timing, wear: None }).unwrap();
    let capacity = Bytes(2 * device.lun_capacity().0);
    Policy::open(device.allocate("a", Allocation::new(capacity, 0)).unwrap()).unwrap()
}

fn with_range(policy: Policy, mapping: Mapping, units: u64) -> Policy {
    let range = RangeConfig::new(mapping, Cleaning::Greedy);
    policy.configure(0, units * PAGE as u64, range).unwrap();
    policy
}

fn stamped(unit: u64, version: u64) -> Vec<u8> {
    [unit.to_le_bytes(), version.to_le_bytes()].concat().repeat(PAGE / 16)
}

/// The version of a unit that was read; 0 for zeros.
fn version_of(unit: u64, page: &[u8]) -> u64 {
    let version = u64::from_le_bytes(page[8..16].try_into().unwrap());
    let all = if version == 0 { vec![0; PAGE] } else { stamped(unit, version) };
    assert!(page == all, "unit {unit}: not one version of it");
    version
}

fn all<R: std::ops::Deref<Target = Policy>>(queue: &mut Queue<R>) -> Vec<Completion> {
    std::iter::from_fn(|| queue.complete()).collect()
}

#[test]
fn a_queue_goes_to_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<Queue<std::sync::Arc<Policy>>>();
}

/// Each read finds one version of each unit: the one at its submission, or a later one.
fn random(seed: u64, oob_size: u32) {
    const UNITS: u64 = 60;
    let label = format!("seed {seed}, {oob_size} out-of-band bytes");
    let rng = &mut Rng::stream(seed, "policy.queue");
    let policy = with_range(policy(oob_size, Some(seed), None), Mapping::Page, UNITS);
    let mut queue = policy.queue(1 + rng.below(24) as usize);
    // By unit: its versions, from the first operation with that version on.
    let mut versions: Vec<Vec<(u64, u64)>> = vec![vec![(0, 0)]; UNITS as usize];
    let mut reads: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
    let mut flushes = BTreeSet::new();
    let steps = 3000;
    for step in 1..=steps {
        match rng.below(if step < steps { 20 } else { 1 }) {
            0..8 if step < steps => {
                let address = rng.below(UNITS * PAGE as u64);
                let len = 1 + rng.below((UNITS * PAGE as u64 - address).min(20 * PAGE as u64));
                match queue.submit(address, vec![1; len as usize], step) {
                    Ok(()) => drop(reads.insert(step, (address, len as usize))),
                    Err(back) => assert_eq!(back.len() as u64, len),
                }
            }
            8..16 => {
                let unit = rng.below(UNITS);
                policy.write(unit * PAGE as u64, &stamped(unit, step)).unwrap();
                versions[unit as usize].push((step, step));
            }
            16 => {
                let unit = rng.below(UNITS);
                policy.trim(unit * PAGE as u64, PAGE as u64).unwrap();
                versions[unit as usize].push((step, 0));
            }
            17 if rng.chance(0.3) => policy.flush().unwrap(),
            17 if step < steps => match queue.submit_flush(step) {
                Ok(()) => drop(flushes.insert(step)),
                Err(full) => assert!(matches!(full, FlashError::Busy { .. }), "{full}"),
            },
            18 => drop(policy.idle(2).unwrap()),
            _ => {}
        }
        while rng.chance(0.4) || step == steps {
            let done = if step == steps { queue.complete() } else { queue.poll() };
            let Some(Completion { tag, result, data, .. }) = done else { break };
            if flushes.remove(&tag) {
                assert_eq!((result, data.len()), (Ok(()), 0), "{label}: flush {tag}");
                continue;
            }
            let (address, len) = reads.remove(&tag).expect("each read completes once");
            assert_eq!((result, data.len()), (Ok(()), len), "{label}: read {tag}");
            let mut at = address;
            while at < address + len as u64 {
                let (unit, within) = (at / PAGE as u64, at as usize % PAGE);
                let part = (PAGE - within).min((address + len as u64 - at) as usize);
                let found = &data[(at - address) as usize..][..part];
                let of_unit = &versions[unit as usize];
                let first = of_unit.partition_point(|&(from, _)| from <= tag) - 1;
                let fits = |&(_, version): &(u64, u64)| {
                    let all = if version == 0 { vec![0; PAGE] } else { stamped(unit, version) };
                    all[within..within + part] == *found
                };
                assert!(of_unit[first..].iter().any(fits), "{label}: unit {unit} of read {tag}");
                at += part as u64;
            }
        }
    }
    assert!(reads.is_empty() && flushes.is_empty() && queue.is_empty(), "{label}");
    policy.assert_consistent();
}

#[test]
fn random_reads_find_a_version_since_their_submission() {
    for seed in seeds(0..24) {
        random(seed, [0, 64, 256][seed as usize % 3]);
    }
}

#[test]
fn what_follows_on_flash_is_read_together() {
    let medium = Wrapped::new(geometry(64));
    let policy = with_range(on(medium.clone(), None), Mapping::Block, 160);
    for unit in 0..64 {
        policy.write(unit * PAGE as u64, &stamped(unit, 1)).unwrap();
    }
    let reads = || medium.reads.load(Ordering::Relaxed);
    let before = reads();
    let mut queue = policy.queue(64);
    // One read of many blocks: at most one operation for each.
    queue.submit(0, vec![0; 64 * PAGE], 7).unwrap();
    let done = queue.complete().unwrap();
    let pages = done.data.chunks(PAGE);
    assert!((0..).zip(pages).all(|(unit, page)| version_of(unit, page) == 1));
    let together = reads() - before;
    assert!((8..=16).contains(&together), "{together}");
    // Reads of a page, one after the other: joined while the device has enough to do.
    let before = reads();
    for unit in 0..64 {
        queue.submit(unit * PAGE as u64, vec![0; PAGE], unit).unwrap();
    }
    let done = all(&mut queue);
    assert_eq!(done.len(), 64);
    assert!(done.iter().all(|done| version_of(done.tag, &done.data) == 1));
    let single = reads() - before;
    assert!((16..40).contains(&single), "{single}");
}

#[test]
fn refused_and_empty_reads_complete() {
    for timing in [None, Some(timing())] {
        let policy = with_range(policy(64, None, timing), Mapping::Page, 8);
        let end = 8 * PAGE as u64;
        let mut queue = policy.queue(3);
        queue.submit(end - 1, vec![5; 2], 0).unwrap();
        queue.submit(0, Vec::new(), 1).unwrap();
        queue.submit(end - 1, vec![5; 1], 2).unwrap();
        assert_eq!(queue.submit(0, vec![5; 4], 3).unwrap_err(), [5; 4]);
        assert!(queue.wait(Some(Nanos(1))));
        let mut done = all(&mut queue);
        done.sort_by_key(|done| done.tag);
        let refused = FlashError::PastEnd { within: "range", end: end + 1, limit: end };
        assert_eq!(done[0].result, Err(refused));
        assert_eq!((&done[1].result, &done[2].result), (&Ok(()), &Ok(())));
        assert_eq!(done[2].data, [0]);
        assert!(!queue.wait(None) && queue.poll().is_none() && queue.is_empty());
    }
}

fn timing() -> Timing {
    Timing {
        t_read: PageTimes::uniform(Nanos(50_000)),
        t_program: PageTimes::uniform(Nanos(600_000)),
        t_erase: Nanos(3_000_000),
        t_command: Nanos(0),
        bus_bytes_per_second: None,
    }
}

/// In virtual time nothing waits for the programs of a flush: reads find what was written or
/// trimmed last, whatever is in flight, and after the last flush everything is on flash.
#[test]
fn random_commands_in_virtual_time_find_the_last_version() {
    const UNITS: u64 = 60;
    let hybrid = Mapping::Hybrid { group_blocks: 2, group_log_blocks: 2 };
    for seed in seeds(0..30) {
        let rng = &mut Rng::stream(seed, "policy.timed");
        let mapping = [Mapping::Page, Mapping::Block, hybrid][seed as usize % 3];
        let policy = with_range(policy(64, None, Some(timing())), mapping, UNITS);
        let mut queue = policy.queue(4096);
        let mut versions = vec![0; UNITS as usize];
        for step in 1..=2000 {
            let first = rng.below(UNITS);
            let count = 1 + rng.below((UNITS - first).min(12));
            let (at, bytes) = (first * PAGE as u64, count * PAGE as u64);
            let range = first as usize..(first + count) as usize;
            match rng.below(20) {
                0..8 => {
                    let data: Vec<u8> =
                        (first..first + count).flat_map(|unit| stamped(unit, step)).collect();
                    match rng.chance(0.5) {
                        true => queue.submit_write(at, data, step).unwrap(),
                        false => policy.write(at, &data).unwrap(),
                    }
                    versions[range].fill(step);
                }
                8..11 => {
                    queue.submit_trim(at, bytes, step).unwrap();
                    versions[range].fill(0);
                }
                11..13 => queue.submit_flush(step).unwrap(),
                13 => policy.flush().unwrap(),
                14 => policy.share().pass(Nanos(rng.below(3_000_000))).unwrap(),
                15 => drop(policy.idle(2).unwrap()),
                _ => {
                    let mut data = vec![0; bytes as usize];
                    policy.read(at, &mut data).unwrap();
                    let found =
                        (first..).zip(data.chunks(PAGE)).map(|(u, page)| version_of(u, page));
                    let found: Vec<u64> = found.collect();
                    assert_eq!(found, versions[range], "seed {seed}, step {step}, {mapping:?}");
                }
            }
            while queue.poll().is_some() {}
        }
        policy.flush().unwrap();
        assert!(all(&mut queue).iter().all(|done| done.result.is_ok()), "seed {seed}");
        policy.assert_consistent();
        let mut data = vec![0; UNITS as usize * PAGE];
        policy.read(0, &mut data).unwrap();
        let found = (0..).zip(data.chunks(PAGE)).map(|(unit, page)| version_of(unit, page));
        assert!(found.eq(versions), "seed {seed}, {mapping:?}");
    }
}

#[test]
fn reads_of_two_luns_overlap() {
    const UNITS: u64 = 128;
    let policy = with_range(policy(64, None, Some(timing())), Mapping::Page, UNITS);
    for unit in 0..UNITS {
        policy.write(unit * PAGE as u64, &stamped(unit, 1)).unwrap();
    }
    policy.flush().unwrap();
    let start = policy.share().now().unwrap();
    let mut queue = policy.queue(UNITS as usize);
    for unit in 0..UNITS {
        queue.submit(unit * PAGE as u64, vec![0; PAGE], unit).unwrap();
    }
    assert_eq!((policy.share().now(), queue.poll()), (Ok(start), None));
    assert!(!queue.wait(Some(Nanos(1_000))));
    let done = all(&mut queue);
    assert!(done.iter().all(|done| version_of(done.tag, &done.data) == 1));
    assert!(done.windows(2).all(|pair| pair[0].end <= pair[1].end));
    let took = policy.share().now().unwrap().since(start);
    let (least, most) = (UNITS / 2 * 50_000, UNITS * 3 / 4 * 50_000);
    assert!((least..most).contains(&took.0), "{took}");
    assert_eq!(done.last().map(|done| done.end), Some(SimTime(start.0 + took.0)));
}

#[test]
fn a_queued_flush_ends_with_the_last_program() {
    let policy = with_range(policy(64, None, Some(timing())), Mapping::Page, 16);
    policy.write(0, &stamped(0, 1)).unwrap();
    // A write takes the time until its LUN has the data, and no more.
    let start = policy.share().now().unwrap();
    let mut queue = policy.queue(2);
    queue.submit_flush(5).unwrap();
    queue.submit(0, vec![0; PAGE], 6).unwrap();
    assert!(matches!(queue.submit_flush(7), Err(FlashError::Busy { .. })));
    // What is being programmed is read from its buffer.
    let read = queue.poll().expect("it takes no time");
    assert_eq!((read.tag, read.end, version_of(0, &read.data)), (6, start, 1));
    assert_eq!((policy.share().now(), queue.poll()), (Ok(start), None));
    let flushed = queue.complete().expect("in flight");
    assert_eq!((flushed.tag, flushed.end.since(start)), (5, Nanos(600_000)));
    assert_eq!(flushed.result, Ok(()));
    // Then it is read from flash.
    queue.submit(0, vec![0; PAGE], 9).unwrap();
    let read = queue.complete().expect("in flight");
    assert_eq!((read.end.since(flushed.end), version_of(0, &read.data)), (Nanos(50_000), 1));
    // Without anything to write it ends at once.
    let now = policy.share().now().unwrap();
    queue.submit_flush(8).unwrap();
    assert_eq!(queue.poll().map(|done| (done.tag, done.end)), Some((8, now)));
}

#[test]
fn reads_of_a_released_share_end() {
    let policy = with_range(policy(64, Some(3), None), Mapping::Page, 16);
    for unit in 0..16 {
        policy.write(unit * PAGE as u64, &stamped(unit, 1)).unwrap();
    }
    let mut queue = policy.queue(16);
    for unit in 0..16 {
        queue.submit(unit * PAGE as u64, vec![0; PAGE], unit).unwrap();
    }
    policy.share().release().unwrap();
    for done in all(&mut queue) {
        match done.result {
            Ok(()) => assert_eq!(version_of(done.tag, &done.data), 1),
            refused => assert_eq!(refused, Err(FlashError::Released)),
        }
    }
    queue.submit(0, vec![0; PAGE], 0).unwrap();
    assert!(queue.complete().unwrap().result.is_err());
}

/// Blocks of a range with block-level mapping are programmed on their LUNs at the same time,
/// although they are submitted one after the other; and a flush does not hold up what follows it.
#[test]
fn blocks_of_two_luns_are_programmed_together() {
    let policy = with_range(policy(64, None, Some(timing())), Mapping::Block, 160);
    let block = policy.block_bytes();
    let serial = block / PAGE as u64 * 600_000;
    let start = policy.share().now().unwrap();
    let mut queue = policy.queue(32);
    for number in 0..8 {
        queue.submit_write(number * block, vec![1; block as usize], number).unwrap();
        queue.submit_flush(number).unwrap();
    }
    assert_eq!(policy.share().now(), Ok(start));
    let end = all(&mut queue).last().map(|done| done.end.since(start).0).unwrap();
    // A range of this size has two LUNs, with nearly as many of the blocks on each.
    assert!((4 * serial..6 * serial).contains(&end), "{end} ns, {serial} ns for a block");
}

/// A range of 160 units with all of them on flash, and nothing in flight.
fn written(mapping: Mapping) -> Policy {
    let policy = with_range(policy(64, None, Some(timing())), mapping, 160);
    for unit in 0..160 {
        policy.write(unit * PAGE as u64, &stamped(unit, 1)).unwrap();
    }
    policy.flush().unwrap();
    policy.share().pass(Nanos(1_000_000_000)).unwrap();
    policy
}

/// Writes all units from 32 on, as one command for 8 units each.
fn overwrite(queue: &mut Queue<&Policy>) {
    for first in (32..160).step_by(8) {
        let data: Vec<u8> = (first..first + 8).flat_map(|unit| stamped(unit, 2)).collect();
        queue.submit_write(first * PAGE as u64, data, first).unwrap();
    }
}

/// Each LUN has one program, and the others wait in memory: a read does not wait for those.
#[test]
fn a_read_does_not_wait_for_programs_that_have_not_begun() {
    for mapping in [Mapping::Page, Mapping::Block] {
        let policy = written(mapping);
        let mut queue = policy.queue(256);
        overwrite(&mut queue);
        let start = policy.share().now().unwrap();
        for unit in 0..32 {
            queue.submit(unit * PAGE as u64, vec![0; PAGE], unit).unwrap();
        }
        // Data of a program that has not begun is read from memory.
        queue.submit(159 * PAGE as u64, vec![0; PAGE], 1000).unwrap();
        let now = queue.poll().expect("it takes no time");
        assert_eq!((now.tag, now.end, version_of(159, &now.data)), (1000, start, 2));
        let done = all(&mut queue);
        let of = |reads| done.iter().filter(move |done| (done.tag < 32) == reads);
        let last = |reads| of(reads).map(|done| done.end.since(start).0).max().unwrap();
        // Before the last read are all reads and one program; with block mapping the first program
        // of each of 16 blocks, of which one LUN has no more than 10.
        let most = if mapping == Mapping::Page { 1 } else { 10 };
        assert!(last(true) <= most * 600_000 + 32 * 50_000, "{mapping:?}: {} ns", last(true));
        assert!(last(false) >= 62 * 600_000, "{mapping:?}: {} ns", last(false));
        assert!(of(true).all(|done| version_of(done.tag, &done.data) == 1));
        policy.flush().unwrap();
        policy.assert_consistent();
    }
}

/// Under reads without an end, writes go on: a program waits for the reads that were submitted
/// before it began, and for no others.
#[test]
fn reads_do_not_starve_writes() {
    for mapping in [Mapping::Page, Mapping::Block] {
        let policy = written(mapping);
        let mut queue = policy.queue(256);
        let (start, before) = (policy.share().now().unwrap(), policy.share().counts().unwrap());
        let mut rng = Rng::stream(1, "policy.starvation");
        overwrite(&mut queue);
        for _ in 0..16 {
            queue.submit(rng.below(32) * PAGE as u64, vec![0; PAGE], 0).unwrap();
        }
        let (mut writes, mut reads) = (0, 0);
        while writes < 16 {
            let done = queue.complete().expect("reads are in flight");
            match done.tag {
                0 => {
                    reads += 1;
                    queue.submit(rng.below(32) * PAGE as u64, vec![0; PAGE], 0).unwrap();
                }
                _ => writes += 1,
            }
        }
        let took = policy.share().now().unwrap().since(start).0;
        let after = policy.share().counts().unwrap();
        let programs = after.programs.total() - before.programs.total();
        let erases = after.erases.total() - before.erases.total();
        // At most the 16 reads in flight are before each program and erase.
        let most = programs * (600_000 + 16 * 50_000) + erases * (3_000_000 + 16 * 50_000);
        assert!(took < most, "{mapping:?}: {took} of {most} ns");
        assert!(reads > 64, "{mapping:?}: {reads} reads");
    }
}

#[test]
fn writes_that_wait_survive_their_queue() {
    for mapping in [Mapping::Page, Mapping::Block] {
        let policy = written(mapping);
        let mut queue = policy.queue(256);
        overwrite(&mut queue);
        drop(queue);
        // Two queues: each gets the completions of its own writes.
        let (mut one, mut two) = (policy.queue(4), policy.queue(4));
        one.submit_write(0, stamped(0, 2), 1).unwrap();
        two.submit_write(PAGE as u64, stamped(1, 2), 2).unwrap();
        let tags = |queue| all(queue).iter().map(|done| done.tag).collect::<Vec<_>>();
        assert_eq!((tags(&mut two), tags(&mut one)), (vec![2], vec![1]));
        policy.flush().unwrap();
        let mut data = vec![0; 160 * PAGE];
        policy.read(0, &mut data).unwrap();
        for (unit, page) in (0..).zip(data.chunks(PAGE)) {
            assert_eq!(version_of(unit, page), if (2..32).contains(&unit) { 1 } else { 2 });
        }
        policy.assert_consistent();
    }
}

/// What is trimmed while it waits is not programmed, and its write completes.
#[test]
fn writes_that_wait_are_trimmed() {
    for mapping in [Mapping::Page, Mapping::Block] {
        let policy = written(mapping);
        let mut queue = policy.queue(256);
        overwrite(&mut queue);
        queue.submit_trim(0, 160 * PAGE as u64, 0).unwrap();
        let programs = || policy.share().counts().unwrap().programs[prism_nand::Cause::Host];
        let before = programs();
        let done = all(&mut queue);
        assert_eq!(done.len(), 17);
        assert!(done.iter().all(|done| done.result.is_ok()));
        assert_eq!(programs(), before, "{mapping:?}");
        let mut data = vec![1; 160 * PAGE];
        policy.read(0, &mut data).unwrap();
        assert!(data.iter().all(|&byte| byte == 0));
        policy.flush().unwrap();
        policy.assert_consistent();
    }
}

#[test]
fn writes_that_wait_end_with_their_share() {
    let policy = written(Mapping::Page);
    let mut queue = policy.queue(256);
    overwrite(&mut queue);
    policy.share().release().unwrap();
    let done = all(&mut queue);
    assert_eq!(done.len(), 16);
    assert!(done.iter().any(|done| done.result == Err(FlashError::Released)));
}

#[test]
fn writes_that_wait_are_polled_after_their_share_was_released() {
    let policy = written(Mapping::Page);
    let mut queue = policy.queue(256);
    overwrite(&mut queue);
    policy.share().release().unwrap();
    let done: Vec<Completion> = std::iter::from_fn(|| queue.poll()).collect();
    assert_eq!((done.len(), queue.len()), (16, 0));
}

/// The end of one queue is no reason for another to sleep, or to take the clock to the end of time.
#[test]
fn threads_have_queues_of_their_own_on_a_device_with_timing() {
    for mapping in [Mapping::Page, Mapping::Block] {
        let policy = written(mapping);
        let begun = policy.share().now().unwrap();
        let write = |first: u64| {
            let mut queue = policy.queue(3);
            let mut done = 0;
            for round in 0..400 {
                let unit = first + round % 5 * 8;
                let data: Vec<u8> = (unit..unit + 8).flat_map(|at| stamped(at, round)).collect();
                queue.submit_write(unit * PAGE as u64, data, round).unwrap();
                if queue.len() == 3 {
                    assert!(queue.wait(None));
                    done += u64::from(queue.poll().expect("one has ended").result.is_ok());
                }
            }
            done + all(&mut queue).iter().filter(|done| done.result.is_ok()).count() as u64
        };
        let done: Vec<u64> = thread::scope(|scope| {
            let threads = [0, 40, 80, 120].map(|first| scope.spawn(move || write(first)));
            threads.map(|thread| thread.join().unwrap()).into()
        });
        assert_eq!(done, [400; 4], "{mapping:?}");
        // 12,800 pages and what cleaning copies of them, on two LUNs.
        let took = policy.share().now().unwrap().since(begun);
        assert!(took < Nanos(60_000_000_000), "{took:?}");
        policy.flush().unwrap();
        policy.assert_consistent();
    }
}

/// A queued write fills program units before it fails at a part of a unit that cannot be read.
#[test]
fn a_write_that_fails_at_its_end_leaves_nothing_that_waits() {
    for mapping in [Mapping::Page, Mapping::Block] {
        let medium = Wrapped::new(geometry(64));
        let policy = with_range(on(medium.clone(), Some(timing())), mapping, 160);
        for unit in 0..160 {
            policy.write(unit * PAGE as u64, &stamped(unit, 1)).unwrap();
        }
        policy.flush().unwrap();
        policy.share().pass(Nanos(1_000_000_000)).unwrap();
        medium.is_broken.store(true, Ordering::Relaxed);
        let mut queue = policy.queue(4);
        queue.submit_write(0, vec![7; 8 * PAGE + 1], 1).unwrap();
        medium.is_broken.store(false, Ordering::Relaxed);
        let done = all(&mut queue);
        assert_eq!(done.len(), 1, "{mapping:?}");
        assert!(done[0].result.is_err());
        queue.submit_write(0, stamped(0, 3), 2).unwrap();
        assert_eq!(all(&mut queue).first().map(|done| done.result.clone()), Some(Ok(())));
        let mut page = vec![0; PAGE];
        policy.read(0, &mut page).unwrap();
        assert_eq!(version_of(0, &page), 3);
    }
}

/// Queues that are dropped one after the other leave nothing that waits, and so no buffers.
#[test]
fn the_writes_of_a_dropped_queue_do_not_wait() {
    let policy = written(Mapping::Page);
    let programs = || policy.share().counts().unwrap().programs[prism_nand::Cause::Host];
    let before = programs();
    for _ in 0..3 {
        overwrite(&mut policy.queue(256));
    }
    assert_eq!(programs() - before, 3 * 128);
}

/// Reads are counted by pages, as programs are, however many pages the device reads at once.
#[test]
fn a_read_of_several_pages_counts_each() {
    for timing in [None, Some(timing())] {
        let policy = with_range(policy(64, None, timing), Mapping::Page, 16);
        for unit in 0..16 {
            policy.write(unit * PAGE as u64, &stamped(unit, 1)).unwrap();
        }
        policy.flush().unwrap();
        let reads = || policy.share().counts().unwrap().reads[prism_nand::Cause::Host];
        let mut queue = policy.queue(1);
        for (at, bytes, pages) in [(0, 8, 8), (3, 4, 4), (5, 1, 1)] {
            let (at, mut data) = (at * PAGE as u64, vec![0; bytes * PAGE]);
            let before = reads();
            policy.read(at, &mut data).unwrap();
            assert_eq!(reads() - before, pages, "{bytes} pages");
            let before = reads();
            queue.submit(at, data, 0).unwrap();
            assert_eq!(queue.complete().map(|done| done.result), Some(Ok(())));
            assert_eq!(reads() - before, pages, "{bytes} pages, queued");
        }
        // Parts of two pages.
        let before = reads();
        policy.read(PAGE as u64 - 1, &mut [0; 2]).unwrap();
        assert_eq!(reads() - before, 2);
    }
}
