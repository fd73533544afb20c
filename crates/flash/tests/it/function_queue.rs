//! The order of queued commands at the function level. With time reads go before writes and writes
//! before erases; without it the device decides. Dependent commands are never reordered.

use prism_testkit::seeds;
use std::collections::BTreeMap;

use prism_base::{Bytes, Nanos, Rng, SimTime};
use prism_flash::function::{Channel, Command, Function, PASSED_MAX, Queue, Unit};
use prism_flash::raw::{Address, Completion};
use prism_flash::{
    Allocation, Cache, Device, DeviceGeometry, FlashError, MemoryDevice, Options, SharedMemory,
};
use prism_nand::{PageTimes, Timing};

const PAGE: usize = 512;
const QUEUE_MAX: usize = 4096;
const PAGES: u32 = 128;
const READ: u64 = 1_000 + 50_000 + 512;
const PROGRAM: u64 = 1_000 + 512 + 600_000;
const ERASE: u64 = 1_000 + 3_000_000;

fn timing() -> Timing {
    Timing {
        t_read: PageTimes::uniform(Nanos(50_000)),
        t_program: PageTimes::uniform(Nanos(600_000)),
        t_erase: Nanos(3_000_000),
        t_command: Nanos(1_000),
        bus_bytes_per_second: Some(1_000_000_000),
    }
}

/// A share of `luns` LUNs on two channels.
fn function(luns: u64, timing: Option<Timing>) -> Function {
    let geometry = DeviceGeometry {
        channels: 2,
        luns_per_channel: 2,
        blocks_per_lun: 12,
        pages_per_block: PAGES,
        page_size: PAGE as u32,
        oob_size: 0,
        max_open_blocks: None,
    };
    let memory = MemoryDevice::new(geometry, Cache::None).unwrap();
    if timing.is_none() {
        memory.complete_in_any_order(luns);
    }
    let device = Device::format(memory, Options { timing, wear: None }).unwrap();
    let capacity = Bytes(device.lun_capacity().0 * luns);
    Function::open(device.allocate("a", Allocation::new(capacity, 0)).unwrap()).unwrap()
}

fn page(byte: u8) -> Vec<u8> {
    vec![byte; PAGE]
}

fn block(function: &Function, channel: u32) -> Address {
    function.address_mapper(Channel::Number(channel), Unit::Block).unwrap().at
}

fn all(queue: &mut Queue<&Function>) -> Vec<Completion> {
    std::iter::from_fn(|| queue.complete()).collect()
}

fn tags(completions: &[Completion]) -> Vec<u64> {
    completions.iter().map(|done| done.tag).collect()
}

#[test]
fn reads_go_before_queued_writes() {
    let function = function(1, Some(timing()));
    let mut queue = function.queue(QUEUE_MAX);
    let (old, new) = (block(&function, 0), block(&function, 0));
    function.write(old, &page(1)).unwrap();
    let start = function.share().now().unwrap();
    queue.submit_write(new, page(2), 10).unwrap();
    function.share().pass(Nanos(10)).unwrap();
    // The first write is in flight by now.
    queue.submit_write(new.with_page(1), page(3), 11).unwrap();
    queue.submit_read(old, page(0), 12).unwrap();
    assert_eq!(queue.len(), 3);
    let done = all(&mut queue);
    assert_eq!(tags(&done), [10, 12, 11]);
    assert!(done.iter().all(|done| done.result.is_ok()));
    let ends: Vec<_> = done.iter().map(|done| done.end.since(start).0).collect();
    assert_eq!(ends, [PROGRAM, PROGRAM + READ, 2 * PROGRAM + READ]);
    assert_eq!(function.share().now().unwrap(), done[2].end);
}

#[test]
fn a_write_is_passed_up_to_the_limit() {
    let function = function(1, Some(timing()));
    let mut queue = function.queue(QUEUE_MAX);
    let (old, new) = (block(&function, 0), block(&function, 0));
    function.write(old, &page(1)).unwrap();
    queue.submit_write(new, page(2), 1000).unwrap();
    for tag in 0..2 * PASSED_MAX {
        queue.submit_read(old, page(0), tag).unwrap();
    }
    let order = tags(&all(&mut queue));
    assert_eq!(order.iter().position(|&tag| tag == 1000), Some(PASSED_MAX as usize));
}

#[test]
fn earlier_reads_do_not_count_as_passing() {
    let function = function(1, Some(timing()));
    let mut queue = function.queue(QUEUE_MAX);
    let (old, new) = (block(&function, 0), block(&function, 0));
    function.write(old, &page(1)).unwrap();
    for tag in 0..2 * PASSED_MAX {
        queue.submit_read(old, page(0), tag).unwrap();
    }
    queue.submit_write(new, page(2), 1000).unwrap();
    queue.submit_read(old, page(0), 2000).unwrap();
    let order = tags(&all(&mut queue));
    assert_eq!(order[order.len() - 2..], [2000, 1000]);
}

#[test]
fn an_erase_is_passed_up_to_the_limit() {
    let function = function(1, Some(timing()));
    let mut queue = function.queue(QUEUE_MAX);
    let (old, worn) = (block(&function, 0), block(&function, 0));
    function.write(old, &page(1)).unwrap();
    function.write(worn, &page(1)).unwrap();
    queue.submit_trim(worn, Unit::Block, 5000).unwrap();
    for tag in 0..2 * PASSED_MAX {
        queue.submit_read(old, page(0), tag).unwrap();
    }
    let done = all(&mut queue);
    assert_eq!(done[0].tag, 5000);
    let gaps: Vec<_> = done[1..].windows(2).map(|pair| pair[1].end.since(pair[0].end).0).collect();
    let late = gaps.iter().position(|&gap| gap > READ);
    assert_eq!(late, Some(PASSED_MAX as usize - 1), "{gaps:?}");
    assert_eq!(gaps[late.unwrap()], READ + ERASE);
}

#[test]
fn a_read_waits_for_the_write_of_its_page_only() {
    let function = function(1, Some(timing()));
    let mut queue = function.queue(QUEUE_MAX);
    let (a, b) = (block(&function, 0), block(&function, 0));
    function.write(b, &page(9)).unwrap();
    queue.submit_write(a, [page(1), page(2)].concat(), 0).unwrap();
    queue.submit_read(a.with_page(1), page(0), 1).unwrap();
    queue.submit_read(b, page(0), 2).unwrap();
    queue.submit_read(a.with_page(2), page(0), 3).unwrap();
    let done = all(&mut queue);
    assert_eq!(tags(&done), [2, 3, 0, 1]);
    let unwritten = FlashError::Unwritten { at: a.with_page(2) };
    assert_eq!(done[1].result, Err(unwritten));
    assert_eq!((done[0].data[0], done[3].data[0]), (9, 2));
}

#[test]
fn an_erase_waits_for_what_was_queued_for_its_block() {
    let function = function(1, Some(timing()));
    let mut queue = function.queue(QUEUE_MAX);
    let at = block(&function, 0);
    queue.submit_write(at, page(7), 0).unwrap();
    queue.submit_read(at, page(0), 1).unwrap();
    queue.submit_trim(at, Unit::Block, 2).unwrap();
    queue.submit_read(at, page(0), 3).unwrap();
    assert_eq!(function.erasing(), Ok(1));
    let done = all(&mut queue);
    assert_eq!(tags(&done), [2, 3, 0, 1]);
    let gone = FlashError::NotAllocated { what: "block", number: at.block.into() };
    assert_eq!(done[1].result, Err(gone));
    assert_eq!((done[3].result.clone(), done[3].data[0]), (Ok(()), 7));
    function.drain().unwrap();
    assert_eq!(function.erasing(), Ok(0));
    assert_eq!(function.wear_level(0, 0).unwrap().max, 1);
}

#[test]
fn a_long_write_lets_reads_in_between() {
    let function = function(1, Some(timing()));
    let mut queue = function.queue(QUEUE_MAX);
    let (old, new) = (block(&function, 0), block(&function, 0));
    function.write(old, &page(1)).unwrap();
    queue.submit_write(new, vec![5; 100 * PAGE], 0).unwrap();
    function.share().pass(Nanos(3 * PROGRAM / 2)).unwrap();
    let now = function.share().now().unwrap();
    queue.submit_read(old, page(0), 1).unwrap();
    let done = all(&mut queue);
    assert_eq!(tags(&done), [1, 0]);
    assert_eq!(done[0].end.since(now).0, PROGRAM / 2 + READ);
    assert_eq!(done[1].end.since(now).0, 2 * PROGRAM - 3 * PROGRAM / 2 + READ + 98 * PROGRAM);
}

#[test]
fn erases_use_idle_time_and_give_way() {
    let function = function(1, Some(timing()));
    let (a, b) = (block(&function, 0), block(&function, 0));
    function.write(a, &page(1)).unwrap();
    let free = function.free(0).unwrap();
    // Trimmed and written at once: the write does not wait.
    let start = function.share().now().unwrap();
    function.trim(a, Unit::Block).unwrap();
    assert_eq!((function.erasing(), function.free(0)), (Ok(1), Ok(free)));
    function.write(b, &page(2)).unwrap();
    assert_eq!(function.share().now().unwrap().since(start), Nanos(PROGRAM));
    // Then the LUN is idle, and the block is erased in that time.
    function.share().pass(Nanos(ERASE - 1)).unwrap();
    assert_eq!(function.erasing(), Ok(1));
    function.share().pass(Nanos(1)).unwrap();
    assert_eq!((function.erasing(), function.free(0)), (Ok(0), Ok(free + 1)));
    let now = function.share().now().unwrap();
    function.drain().unwrap();
    assert_eq!(function.share().now().unwrap(), now);
}

#[test]
fn an_allocation_waits_for_an_erase_if_it_must() {
    let function = function(1, Some(timing()));
    let mut queue = function.queue(QUEUE_MAX);
    let mut blocks = Vec::new();
    while function.free(0).unwrap() > 0 {
        let new = function.address_mapper(Channel::Any, Unit::Block).unwrap();
        function.write(new.at, &page(3)).unwrap();
        blocks.push(new);
    }
    assert_eq!(blocks.last().unwrap().free_left, 0);
    let full = function.address_mapper(Channel::Any, Unit::Block);
    assert!(matches!(full, Err(FlashError::OnlyReserve { .. })));
    let (first, rest) = (blocks[0].at, blocks[1].at);
    for number in 1..50 {
        queue.submit_write(rest.with_page(number), page(1), number.into()).unwrap();
    }
    let start = function.share().now().unwrap();
    function.trim(first, Unit::Block).unwrap();
    // It goes before the queued writes.
    let new = function.address_mapper(Channel::Any, Unit::Block).unwrap();
    assert_eq!((new.at, new.erasing), (first, 0));
    let took = function.share().now().unwrap().since(start).0;
    assert!((ERASE..ERASE + PROGRAM + 1).contains(&took), "{took}");
    assert_eq!(all(&mut queue).len(), 49);
}

#[test]
fn any_channel_is_the_one_with_the_least_work() {
    let function = function(2, Some(timing()));
    let mut queue = function.queue(QUEUE_MAX);
    let (a, b) = (block(&function, 0), block(&function, 1));
    for (at, count) in [(a, 3), (b, 2)] {
        for number in 0..count {
            queue.submit_write(at.with_page(number), page(0), 0).unwrap();
        }
    }
    function.share().pass(Nanos(1)).unwrap();
    let any = function.address_mapper(Channel::Any, Unit::Block).unwrap();
    assert_eq!(any.at.channel, 1);
    let reads = all(&mut queue);
    assert_eq!(reads.len(), 5);
}

#[test]
fn a_full_queue_returns_the_command() {
    let function = function(1, None);
    let mut queue = function.queue(QUEUE_MAX);
    let at = block(&function, 0);
    for tag in 0..QUEUE_MAX as u64 {
        queue.submit_read(at, Vec::new(), tag).unwrap();
    }
    let refused = queue.submit_write(at, page(8), 0).unwrap_err();
    assert_eq!(refused, Command::Write { at, data: page(8).into(), oob: Vec::new() });
    assert_eq!(queue.complete().unwrap().tag, 0);
    queue.submit_write(at, page(8), 0).unwrap();
    assert_eq!(all(&mut queue).len(), QUEUE_MAX);
}

/// Queued commands by tag: the page, and the allowed results of a read.
struct Expected {
    read: Option<u8>,
    write: Option<Address>,
}

/// A block of a channel; none while the erases of all that are trimmed wait for commands in flight.
fn allocated(function: &Function, channel: u32) -> Option<Address> {
    match function.address_mapper(Channel::Number(channel), Unit::Block) {
        Err(FlashError::ChannelFull { waiting, .. }) => {
            assert!(waiting > 0);
            None
        }
        new => Some(new.unwrap().at),
    }
}

/// Random commands: reads find what was written before them, writes of a block end in order,
/// and time goes on.
fn random(seed: u64, timing: Option<Timing>) {
    let label = format!("seed {seed}, timed: {}", timing.is_some());
    let rng = &mut Rng::stream(seed, "function.queue");
    let function = function(1 + rng.below(4), timing);
    let mut queue = function.queue(QUEUE_MAX);
    let channels = function.geometry().channels.len() as u64;
    let mut content: BTreeMap<Address, Vec<u8>> = BTreeMap::new();
    let mut expected: BTreeMap<u64, Expected> = BTreeMap::new();
    let mut last_write: BTreeMap<Address, (u32, SimTime)> = BTreeMap::new();
    let mut now = SimTime::ZERO;
    for tag in 0..3000 {
        if content.len() < 5 {
            let new = allocated(&function, rng.below(channels) as u32);
            content.extend(new.map(|at| (at, Vec::new())));
        }
        let mut want = None;
        let place = rng.below(content.len().max(1) as u64) as usize;
        // Without a block, completions are taken until one is erased.
        let block = content.iter_mut().nth(place);
        let choice = if block.is_some() { rng.below(20) } else { 19 };
        let mut none = Vec::new();
        let (at, pages) = block.map_or((Address::default(), &mut none), |(&at, p)| (at, p));
        match choice {
            0..8 if (pages.len() as u32) < PAGES => {
                let byte = rng.below(255) as u8;
                let page_at = at.with_page(pages.len() as u32);
                want = Some(Expected { read: None, write: Some(page_at) });
                queue.submit_write(page_at, page(byte), tag).unwrap();
                pages.push(byte);
            }
            0..17 if !pages.is_empty() => {
                let number = rng.below(pages.len() as u64) as usize;
                want = Some(Expected { read: Some(pages[number]), write: None });
                queue.submit_read(at.with_page(number as u32), page(0), tag).unwrap();
            }
            17 => {
                want = Some(Expected { read: None, write: None });
                queue.submit_trim(at, Unit::Block, tag).unwrap();
                content.remove(&at);
                last_write.remove(&at);
            }
            18 => {
                function.share().pass(Nanos(rng.below(2_000_000))).unwrap();
            }
            _ => {}
        }
        expected.extend(want.map(|want| (tag, want)));
        while queue.len() > 40 || rng.chance(0.4) {
            let Some(done) = queue.complete() else { break };
            let want = expected.remove(&done.tag).expect("each command completes once");
            assert_eq!(done.result, Ok(()), "{label}: {} of {:?}", done.tag, want.write);
            assert!(done.end >= now, "{label}: {}", done.tag);
            now = now.max(done.end);
            if let Some(byte) = want.read {
                assert!(done.data == page(byte), "{label}: {}", done.tag);
            }
            if let Some(at) = want.write {
                let last = last_write.insert(at.with_page(0), (at.page, done.end));
                let in_order = |(page, end)| page >= at.page || end <= done.end;
                assert!(last.is_none_or(in_order), "{label}: {at:?}");
            }
        }
    }
    let left = all(&mut queue);
    assert_eq!(left.len(), expected.len(), "{label}");
    assert!(left.iter().all(|done| done.result.is_ok()), "{label}");
    function.drain().unwrap();
    let free: u32 = (0..channels as u32).map(|c| function.free(c).unwrap()).sum();
    assert_eq!(free + content.len() as u32, function.geometry().blocks(), "{label}");
}

#[test]
fn random_commands_keep_dependent_commands_in_order() {
    for seed in seeds(0..20) {
        random(seed, None);
        random(seed, Some(timing()));
    }
}

/// A share on a device with timing whose operations are durable after a sync, and its memory.
fn volatile() -> (Function, SharedMemory) {
    let geometry = DeviceGeometry {
        channels: 1,
        luns_per_channel: 1,
        blocks_per_lun: 12,
        pages_per_block: PAGES,
        page_size: PAGE as u32,
        oob_size: 0,
        max_open_blocks: None,
    };
    let memory = SharedMemory::from(MemoryDevice::new(geometry, Cache::Volatile).unwrap());
    let options = Options { timing: Some(timing()), wear: None };
    let device = Device::format(memory.clone(), options).unwrap();
    let capacity = device.lun_capacity();
    let share = device.allocate("a", Allocation::new(capacity, 0)).unwrap();
    (Function::open(share).unwrap(), memory)
}

/// Pages that were given back before they were written are padded when the page after them is
/// written: a read and a sync that were queued later find it on flash.
#[test]
fn padding_belongs_to_the_queued_write() {
    let (function, _) = volatile();
    let new = block(&function, 0);
    for page in 0..3 {
        function.trim(new.with_page(page), Unit::Page).unwrap();
    }
    let start = function.share().now().unwrap();
    let mut queue = function.queue(QUEUE_MAX);
    queue.submit_write(new.with_page(3), page(7), 1).unwrap();
    queue.submit_read(new.with_page(3), page(0), 2).unwrap();
    queue.submit_sync(3).unwrap();
    let done = all(&mut queue);
    assert!(done.iter().all(|done| done.result.is_ok()), "{done:?}");
    assert_eq!(tags(&done), [1, 3, 2]);
    let ends: Vec<_> = done.iter().map(|done| done.end.since(start).0).collect();
    assert_eq!(ends, [4 * PROGRAM, 4 * PROGRAM, 4 * PROGRAM + READ], "three pages were padded");
    assert_eq!(done[2].data, page(7));
    assert_eq!(function.write_pointer(new).unwrap(), 4);
}

/// The completion of a write that failed does not write to a block that has another owner by then.
#[test]
fn a_completion_that_is_taken_late_writes_nothing() {
    let (function, _) = volatile();
    let old = block(&function, 0);
    let mut queue = function.queue(QUEUE_MAX);
    queue.submit_write(old.with_page(1), page(7), 1).unwrap();
    function.trim(old, Unit::Block).unwrap();
    function.drain().unwrap();
    let new = loop {
        let new = block(&function, 0);
        if new == old {
            break new;
        }
    };
    function.write(new, &page(8)).unwrap();
    let done = queue.complete().unwrap();
    assert!(matches!(done.result, Err(FlashError::OutOfOrder { expected: 0, .. })), "{done:?}");
    assert_eq!(function.write_pointer(new).unwrap(), 1);
}

/// What the clock has passed is complete: a sync makes it durable, and the write pointer counts it.
#[test]
fn random_blocking_syncs_cover_what_has_ended() {
    for seed in seeds(0..32) {
        let (function, memory) = volatile();
        let new = block(&function, 0);
        let mut queue = function.queue(QUEUE_MAX);
        queue.submit_write(new, page(7), 1).unwrap();
        function.share().pass(Nanos(2 * PROGRAM)).unwrap();
        assert_eq!(function.write_pointer(new).unwrap(), 1);
        queue.submit_write(new.with_page(1), page(8), 2).unwrap();
        function.share().pass(Nanos(2 * PROGRAM)).unwrap();
        function.sync().unwrap();
        assert_eq!(tags(&all(&mut queue)), [1, 2]);
        drop(queue);
        drop(function);
        // Of what was not synced any part may be lost.
        memory.restart(&mut Rng::stream(seed, "power"));
        let options = Options { timing: Some(timing()), wear: None };
        let device = Device::open(memory, options).unwrap();
        let function = Function::open(device.attach("a").unwrap()).unwrap();
        assert_eq!(function.write_pointer(new).unwrap(), 2, "seed {seed}");
    }
}

/// Waiting for a time decides nothing that happens after it.
#[test]
fn a_bounded_wait_leaves_later_commands_queued() {
    let function = function(1, Some(timing()));
    let [old, new, trimmed] = [0; 3].map(|channel| block(&function, channel));
    function.write(old, &page(1)).unwrap();
    function.write(trimmed, &page(1)).unwrap();
    let mut queue = function.queue(QUEUE_MAX);
    for page_number in 0..20 {
        let tag = u64::from(page_number);
        queue.submit_write(new.with_page(page_number), page(2), tag).unwrap();
    }
    function.trim(trimmed, Unit::Block).unwrap();
    assert!(!function.wait_for_erase(Some(Nanos(1))).unwrap());
    queue.submit_read(old, page(0), 100).unwrap();
    let order = tags(&all(&mut queue));
    let place = order.iter().position(|&tag| tag == 100).unwrap();
    assert!(place <= 3, "the read waits for what had begun alone: {order:?}");
}
