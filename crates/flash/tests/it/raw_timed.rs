//! Queued commands of the raw level on a device with timing: which go first, and which never change
//! their order.

use std::collections::BTreeMap;

use prism_base::{Bytes, Nanos, Rng};
use prism_flash::function::PASSED_MAX;
use prism_flash::raw::{Address, Command, Completion, Queue, Raw};
use prism_flash::{Allocation, Cache, Device, DeviceGeometry, FlashError, MemoryDevice, Options};
use prism_nand::{PageTimes, Timing};
use prism_testkit::seeds;

const PAGE: usize = 512;
const PAGES: u32 = 8;
const READ: u64 = 1_000 + 50_000 + 512;
const PROGRAM: u64 = 1_000 + 512 + 600_000;
const ERASE: u64 = 1_000 + 3_000_000;

fn raw(luns: u64) -> Raw {
    let geometry = DeviceGeometry {
        channels: 1,
        luns_per_channel: 2,
        blocks_per_lun: 12,
        pages_per_block: PAGES,
        page_size: PAGE as u32,
        oob_size: 0,
        max_open_blocks: None,
    };
    let timing = Timing {
        t_read: PageTimes::uniform(Nanos(50_000)),
        t_program: PageTimes::uniform(Nanos(600_000)),
        t_erase: Nanos(3_000_000),
        t_command: Nanos(1_000),
        bus_bytes_per_second: Some(1_000_000_000),
    };
    let memory = MemoryDevice::new(geometry, Cache::None).unwrap();
    let device = Device::format(memory, Options { timing: Some(timing), wear: None }).unwrap();
    let capacity = Bytes(device.lun_capacity().0 * luns);
    Raw::open(device.allocate("a", Allocation::new(capacity, 0)).unwrap()).unwrap()
}

fn at(block: u32, page: u32) -> Address {
    Address { channel: 0, lun: 0, block, page }
}

fn read(queue: &mut Queue<&Raw>, at: Address, tag: u64) {
    queue.submit(Command::read(at, vec![0; PAGE]), tag).unwrap();
}

fn write(queue: &mut Queue<&Raw>, at: Address, tag: u64) {
    queue.submit(Command::write(at, vec![tag as u8; PAGE]), tag).unwrap();
}

fn erase(queue: &mut Queue<&Raw>, at: Address, tag: u64) {
    queue.submit(Command::Erase { at }, tag).unwrap();
}

/// Checks the tags of all completions, and their ends from now on.
fn check(queue: &mut Queue<&Raw>, expected: &[(u64, u64)]) -> Vec<Completion> {
    let start = queue.raw().share().now().unwrap();
    let done: Vec<_> = std::iter::from_fn(|| queue.complete()).collect();
    let ends: Vec<_> = done.iter().map(|done| (done.tag, done.end.since(start).0)).collect();
    assert_eq!(ends, expected);
    done
}

#[test]
fn reads_go_before_writes_and_writes_before_erases() {
    let raw = raw(1);
    raw.write_page(at(0, 0), &[9; PAGE]).unwrap();
    let mut queue = raw.queue(8);
    erase(&mut queue, at(1, 0), 0);
    write(&mut queue, at(2, 0), 1);
    read(&mut queue, at(0, 0), 2);
    let ends = [(2, READ), (1, READ + PROGRAM), (0, READ + PROGRAM + ERASE)];
    let done = check(&mut queue, &ends);
    assert!(done.iter().all(|done| done.result.is_ok()));
    assert_eq!(done[0].data, [9; PAGE]);
}

#[test]
fn commands_on_a_block_follow_its_erase_which_then_counts_as_a_write() {
    let raw = raw(1);
    raw.write_page(at(0, 0), &[9; PAGE]).unwrap();
    let mut queue = raw.queue(8);
    erase(&mut queue, at(0, 0), 0);
    write(&mut queue, at(0, 0), 1);
    write(&mut queue, at(1, 0), 2);
    read(&mut queue, at(0, 0), 3);
    let ends = [
        (0, ERASE),
        (1, ERASE + PROGRAM),
        (3, ERASE + PROGRAM + READ),
        (2, ERASE + 2 * PROGRAM + READ),
    ];
    let done = check(&mut queue, &ends);
    assert!(done.iter().all(|done| done.result.is_ok()));
    assert_eq!(done[2].data, [1; PAGE]);
}

#[test]
fn a_write_is_passed_up_to_the_limit() {
    let raw = raw(1);
    raw.write_page(at(0, 0), &[9; PAGE]).unwrap();
    let mut queue = raw.queue(1000);
    write(&mut queue, at(1, 0), 1000);
    (0..2 * PASSED_MAX).for_each(|tag| read(&mut queue, at(0, 0), tag));
    let order: Vec<_> = std::iter::from_fn(|| queue.complete()).map(|done| done.tag).collect();
    assert_eq!(order.iter().position(|&tag| tag == 1000), Some(PASSED_MAX as usize));
}

#[test]
fn a_sync_waits_for_the_writes_before_it_and_no_others() {
    let raw = raw(1);
    raw.write_page(at(0, 0), &[9; PAGE]).unwrap();
    let (mut queue, mut other) = (raw.queue(8), raw.queue(8));
    queue.submit(Command::Sync, 0).unwrap();
    write(&mut queue, at(1, 0), 1);
    queue.submit(Command::Sync, 2).unwrap();
    write(&mut other, at(2, 0), 4);
    read(&mut queue, at(0, 0), 3);
    check(&mut queue, &[(0, 0), (3, READ), (1, READ + PROGRAM), (2, READ + PROGRAM)]);
    assert_eq!(other.complete().unwrap().tag, 4);
}

#[test]
fn blocking_calls_take_their_turn() {
    let raw = raw(1);
    raw.write_page(at(0, 0), &[9; PAGE]).unwrap();
    let mut queue = raw.queue(8);
    write(&mut queue, at(1, 0), 1);
    write(&mut queue, at(1, 1), 2);
    let start = raw.share().now().unwrap();
    raw.read_page(at(0, 0), &mut [0; PAGE]).unwrap();
    assert_eq!(raw.share().now().unwrap().since(start), Nanos(READ));
    raw.write_page(at(1, 2), &[3; PAGE]).unwrap();
    assert_eq!(raw.share().now().unwrap().since(start), Nanos(READ + 3 * PROGRAM));
    raw.erase_block(at(1, 0)).unwrap();
    assert_eq!(raw.share().now().unwrap().since(start), Nanos(READ + 3 * PROGRAM + ERASE));
    let done: Vec<_> = std::iter::from_fn(|| queue.complete()).collect();
    let ends: Vec<_> = done.iter().map(|done| done.end.since(start).0).collect();
    assert_eq!(ends, [READ + PROGRAM, READ + 2 * PROGRAM]);
}

/// Random commands of two queues, which share blocks: each takes effect after those that it depends
/// on, whatever the queue, and completions come in the order of time.
fn random(seed: u64) {
    let rng = &mut Rng::stream(seed, "raw.timed");
    let raw = raw(1 + seed % 2);
    let mut queues = [raw.queue(64), raw.queue(64)];
    let mut content: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    let mut expected: BTreeMap<u64, Option<u8>> = BTreeMap::new();
    for tag in 0..2000 {
        let queue = &mut queues[rng.below(2) as usize];
        let block = rng.below(4) as u32;
        let pages = content.entry(block).or_default();
        let (command, want) = match rng.below(10) {
            0..5 if pages.len() < PAGES as usize => {
                pages.push(tag as u8);
                let page = at(block, pages.len() as u32 - 1);
                (Command::write(page, vec![tag as u8; PAGE]), None)
            }
            0..8 if !pages.is_empty() => {
                let page = rng.below(pages.len() as u64) as usize;
                (Command::read(at(block, page as u32), vec![0; PAGE]), Some(pages[page]))
            }
            8 => (Command::Sync, None),
            _ => {
                pages.clear();
                (Command::Erase { at: at(block, 0) }, None)
            }
        };
        queue.submit(command, tag).unwrap();
        expected.insert(tag, want);
        while queue.len() > 40 || rng.chance(0.4) {
            let now = raw.share().now().unwrap();
            let late = queue.len() > 40 || rng.chance(0.5);
            let done = if late { queue.complete() } else { queue.poll() };
            let Some(done) = done else { break };
            assert!(late || done.end <= now, "seed {seed}: {}", done.tag);
            assert_eq!(done.result, Ok(()), "seed {seed}: {}", done.tag);
            if let Some(byte) = expected.remove(&done.tag).expect("each completes once") {
                assert_eq!(done.data, [byte; PAGE], "seed {seed}: {}", done.tag);
            }
        }
    }
    let left = queues.iter_mut().flat_map(|q| std::iter::from_fn(|| q.complete())).count();
    assert_eq!(left, expected.len(), "seed {seed}");
}

#[test]
fn random_commands_keep_dependent_commands_in_order() {
    seeds(0..40).for_each(random);
}

/// The commands of a queue that is dropped take effect, and no time passes.
#[test]
fn a_queue_that_is_dropped_executes_its_commands() {
    let raw = raw(1);
    let start = raw.share().now().unwrap();
    let mut queue = raw.queue(8);
    write(&mut queue, at(0, 0), 7);
    drop(queue);
    assert_eq!(raw.share().now().unwrap(), start);
    let mut page = [0; PAGE];
    raw.read_page(at(0, 0), &mut page).unwrap();
    assert_eq!(page, [7; PAGE]);
    assert_eq!(raw.read_page(at(0, 1), &mut page), Err(FlashError::Unwritten { at: at(0, 1) }));
}
