//! The raw level: the rules of flash, and the isolation of shares.

use prism_base::{Bytes, Nanos, Rng, SimTime};
use prism_flash::raw::{Address, Command, Raw};
use prism_flash::{
    Allocation, Cache, Device, DeviceGeometry, FlashError, Medium, MemoryDevice, Options, Share,
};
use prism_nand::{PageTimes, Timing};

fn geometry() -> DeviceGeometry {
    DeviceGeometry {
        channels: 4,
        luns_per_channel: 2,
        blocks_per_lun: 16,
        pages_per_block: 8,
        page_size: 4096,
        oob_size: 64,
        max_open_blocks: None,
    }
}

fn device() -> Device {
    let memory = MemoryDevice::new(geometry(), Cache::None).unwrap();
    Device::format(memory, Options::default()).unwrap()
}

fn luns(device: &Device, name: &str, luns: u64) -> Share {
    let capacity = Bytes(device.lun_capacity().0 * luns);
    device.allocate(name, Allocation::new(capacity, 0)).unwrap()
}

#[test]
fn the_share_of_the_paper_is_30_luns() {
    // 12 channels of 16 LUNs that give 1 GiB each; 24 GB and 25 % (section IV.A).
    let geometry = DeviceGeometry {
        channels: 12,
        luns_per_channel: 16,
        blocks_per_lun: 131,
        pages_per_block: 512,
        page_size: 16384,
        oob_size: 1024,
        max_open_blocks: None,
    };
    let memory = MemoryDevice::new(geometry, Cache::None).unwrap();
    let device = Device::format(memory, Options::default()).unwrap();
    assert_eq!(device.lun_capacity(), Bytes(1 << 30));
    let share = device.allocate("paper", Allocation::new(Bytes(24 << 30), 25)).unwrap();
    let geometry = share.geometry().unwrap();
    assert_eq!((geometry.luns, geometry.ops_luns), (30, 6));
    let mut per_channel: Vec<_> = geometry.channels.iter().map(Vec::len).collect();
    per_channel.sort_unstable();
    assert_eq!(per_channel, [2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3]);
    assert_eq!(geometry.capacity(), 24 << 30);
    assert_eq!(device.free_luns(), 192 - 30);
}

#[test]
fn pages_are_written_in_order_read_back_and_erased() {
    let raw = Raw::open(luns(&device(), "a", 3)).unwrap();
    let at = Address { channel: 1, lun: 0, block: 5, page: 0 };
    let mut read = vec![0; 4096];
    let unwritten = FlashError::Unwritten { at };
    assert_eq!(raw.read_page(at, &mut read), Err(unwritten.clone()));
    for page in 0..8 {
        let mut oob = [page as u8; 64];
        raw.write_page_and_oob(at.with_page(page), &[page as u8 + 1; 4096], &oob).unwrap();
        raw.read_page_and_oob(at.with_page(page), &mut read, &mut oob).unwrap();
        assert_eq!((read[4095], oob[63]), (page as u8 + 1, page as u8));
    }
    let full = FlashError::NotErased { at };
    assert_eq!(raw.write_page(at, &[0; 4096]), Err(full));
    raw.erase_block(at).unwrap();
    assert_eq!(raw.read_page(at, &mut read), Err(unwritten));
    assert_eq!(
        raw.write_page(at.with_page(2), &[0; 4096]),
        Err(FlashError::OutOfOrder { page: 2, expected: 0 })
    );
    assert!(matches!(raw.write_page(at, &[0; 512]), Err(FlashError::Unaligned { .. })));
    assert_eq!((raw.write_pointer(at).unwrap(), raw.erase_count(at).unwrap()), (0, 1));
}

#[test]
fn names_that_cannot_be_shown_are_refused() {
    let device = device();
    let long = "x".repeat(256);
    for name in ["", "a\nb", "a\0", &long] {
        let refused = device.allocate(name, Allocation::new(Bytes(1), 0));
        assert!(matches!(refused, Err(FlashError::Invalid { .. })), "{name:?}");
    }
    assert!(device.shares().is_empty());
    assert!(device.allocate(&long[1..], Allocation::new(Bytes(1), 0)).is_ok());
}

#[test]
fn addresses_outside_of_the_share_are_refused() {
    let device = device();
    let (a, b) = (luns(&device, "a", 3), luns(&device, "b", 5));
    let (a, b) = (Raw::open(a).unwrap(), Raw::open(b).unwrap());
    let usable = a.geometry().blocks_per_lun;
    for raw in [&a, &b] {
        for block in raw.blocks() {
            let tag = raw.geometry().luns as u8;
            raw.write_page(block, &[tag; 4096]).unwrap();
        }
    }
    // All addresses: a share reaches its own LUNs and no others.
    for (raw, luns) in [(&a, 3), (&b, 5)] {
        let mut reached = 0;
        for (channel, lun, block) in
            (0..6).flat_map(|c| (0..4).flat_map(move |l| (0..20).map(move |b| (c, l, b))))
        {
            let mut data = [0; 4096];
            match raw.read_page(Address { channel, lun, block, page: 0 }, &mut data) {
                Ok(()) => {
                    assert_eq!(data, [luns as u8; 4096]);
                    reached += 1;
                }
                Err(FlashError::OutOfRange { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(reached, luns * usable);
    }
}

#[test]
fn an_access_outside_of_a_page_names_the_limit() {
    let raw = Raw::open(luns(&device(), "a", 1)).unwrap();
    let at = Address::default();
    let oob = raw.geometry().oob_size as usize;
    raw.write_page(at, &[1; 4096]).unwrap();
    raw.check(at, 4000, 96, oob).unwrap();
    let past = "the access ends at byte 4200; the page ends at 4096";
    for refused in [raw.read_at(at, 4000, &mut [0; 200]), raw.check(at, 4000, 200, 0)] {
        assert_eq!(refused.unwrap_err().to_string(), past);
    }
    let more = vec![0; oob + 1];
    let many = format!("{} out-of-band bytes are too many: a page has {oob}", oob + 1);
    let next = at.with_page(1);
    for refused in [raw.check(at, 0, 0, oob + 1), raw.write_page_and_oob(next, &[1; 4096], &more)] {
        assert_eq!(refused.unwrap_err().to_string(), many);
    }
    let pages = raw.geometry().pages_per_block;
    let none = format!("page {pages} is out of range: there are {pages}, counted from 0");
    for refused in
        [raw.read_page(at.with_page(pages), &mut [0]), raw.check(at.with_page(pages), 0, 1, 0)]
    {
        assert_eq!(refused.unwrap_err().to_string(), none);
    }
    let most = raw.check(at, u32::MAX, usize::MAX, 0).unwrap_err();
    assert!(matches!(most, FlashError::PastEnd { end: u64::MAX, .. }), "{most:?}");
}

#[test]
fn commands_are_queued_and_vectored() {
    let raw = Raw::open(luns(&device(), "a", 8)).unwrap();
    let at = Address::default();
    let mut queue = raw.queue(2);
    queue.submit(Command::write(at, vec![7; 4096]), 10).unwrap();
    queue.submit(Command::read(at, vec![0; 4096]), 11).unwrap();
    let refused = queue.submit(Command::Erase { at }, 12).unwrap_err();
    assert_eq!(refused, Command::Erase { at });
    assert_eq!(queue.complete().unwrap().tag, 10);
    let read = queue.complete().unwrap();
    assert_eq!((read.tag, read.result, &read.data[..]), (11, Ok(()), &[7; 4096][..]));
    assert!(queue.complete().is_none());

    let pages: Vec<_> = (0..4).map(|channel| Address { channel, block: 1, ..at }).collect();
    let data: Vec<u8> = (0..4u8).flat_map(|byte| [byte; 4096]).collect();
    raw.write_pages(&pages, &data).unwrap();
    let mut back = vec![0; data.len()];
    raw.read_pages(&pages, &mut back).unwrap();
    assert!(back == data);
    let error = raw.erase_blocks(&[pages[0], Address { block: 99, ..at }]).unwrap_err();
    assert_eq!(error.index, 1);
    assert_eq!(raw.write_pointer(pages[0]), Ok(0));
}

#[test]
fn shares_grow_and_shrink_and_are_erased() {
    let device = device();
    let mut raw = Raw::open(luns(&device, "a", 2)).unwrap();
    raw.grow(3).unwrap();
    assert_eq!(raw.geometry().luns, 5);
    assert_eq!(raw.grow(4), Err(FlashError::NoLuns { asked: 4, free: 3 }));
    for block in raw.blocks() {
        raw.write_page(block, &[0xA5; 4096]).unwrap();
    }
    assert_eq!(raw.shrink(1), Err(FlashError::ShrinkBelowUse { luns: 1, free: 0 }));
    let last = (0..).zip(&raw.geometry().channels).find_map(|(channel, luns)| {
        let lun = luns.iter().position(|&lun| lun == 4)? as u32;
        Some(Address { channel, lun, block: 0, page: 0 })
    });
    for block in 0..raw.geometry().blocks_per_lun {
        raw.erase_block(Address { block, ..last.unwrap() }).unwrap();
    }
    raw.shrink(1).unwrap();
    assert_eq!((raw.geometry().luns, device.free_luns()), (4, 4));
    assert!(matches!(device.attach("a"), Err(FlashError::InUse { .. })));
    raw.into_share().release().unwrap();
    assert!(matches!(device.attach("a"), Err(FlashError::NoShare { .. })));
    let all = Raw::open(luns(&device, "b", 8)).unwrap();
    let mut data = [0; 4096];
    for block in all.blocks() {
        assert!(matches!(all.read_page(block, &mut data), Err(FlashError::Unwritten { .. })));
    }
}

#[test]
fn open_blocks_are_limited() {
    let geometry = DeviceGeometry { max_open_blocks: Some(6), oob_size: 0, ..geometry() };
    let memory = MemoryDevice::new(geometry, Cache::None).unwrap();
    let device = Device::format(memory, Options::default()).unwrap();
    let raw = Raw::open(luns(&device, "a", 8)).unwrap();
    assert_eq!(raw.geometry().max_open_blocks, 4);
    let at = |block| Address { block, ..Address::default() };
    for block in 0..4 {
        raw.write_page(at(block), &[1; 4096]).unwrap();
    }
    assert_eq!(raw.write_page(at(4), &[1; 4096]), Err(FlashError::TooManyOpen { max: 4 }));
    raw.finish_block(at(0)).unwrap();
    raw.write_page(at(4), &[1; 4096]).unwrap();
    assert!(matches!(
        raw.write_page(at(0).with_page(1), &[1; 4096]),
        Err(FlashError::NotErased { .. })
    ));
    raw.erase_block(at(1)).unwrap();
    raw.write_page(at(5), &[1; 4096]).unwrap();
}

#[test]
fn blocks_that_fail_are_replaced_and_hidden() {
    let memory = MemoryDevice::new(geometry(), Cache::None).unwrap();
    memory.mark_factory_bad(3);
    memory.fail_at_random(0.0005, 5);
    let device = Device::format(memory, Options::default()).unwrap();
    let raw = Raw::open(luns(&device, "a", 8)).unwrap();
    let blocks: Vec<_> = raw.blocks().collect();
    let mut failed = None;
    'rounds: for round in 0..40u8 {
        for &block in &blocks {
            for page in 0..8 {
                match raw.write_page(block.with_page(page), &[round ^ page as u8; 4096]) {
                    Ok(()) => {}
                    Err(error) => {
                        failed = Some(error);
                        break 'rounds;
                    }
                }
            }
            let mut data = [0; 4096];
            for page in 0..8 {
                raw.read_page(block.with_page(page), &mut data).unwrap();
                assert_eq!(data, [round ^ page as u8; 4096], "round {round} {block:?}");
            }
        }
        for &block in &blocks {
            if let Err(error) = raw.erase_block(block) {
                failed = Some(error);
                break 'rounds;
            }
        }
    }
    // Finally the spare blocks of some LUN are used up, and the call reports it.
    assert!(matches!(failed, Some(FlashError::WornOut { .. })), "{failed:?}");
    assert!(device.own_counts().programs.total() > 10);
}

#[test]
fn threads_share_a_device() {
    let device = device();
    let shares: Vec<_> = (0..4).map(|n| luns(&device, &format!("share {n}"), 2)).collect();
    std::thread::scope(|scope| {
        for (number, share) in shares.into_iter().enumerate() {
            scope.spawn(move || {
                let raw = Raw::open(share).unwrap();
                for round in 0..20 {
                    for block in raw.blocks() {
                        let byte = (number * 50 + round) as u8;
                        raw.write_page(block, &[byte; 4096]).unwrap();
                        let mut data = [0; 4096];
                        raw.read_page(block, &mut data).unwrap();
                        assert_eq!(data, [byte; 4096]);
                        raw.erase_block(block).unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(device.shares().len(), 4);
}

fn timed() -> Device {
    let timing = Timing {
        t_read: PageTimes::uniform(Nanos(50_000)),
        t_program: PageTimes::uniform(Nanos(500_000)),
        t_erase: Nanos(3_000_000),
        t_command: Nanos(100),
        bus_bytes_per_second: Some(400_000_000),
    };
    let memory = MemoryDevice::new(geometry(), Cache::None).unwrap();
    let options = Options { timing: Some(timing), wear: None };
    Device::format(memory, options).unwrap()
}

/// 4096 bytes at 400 MB/s.
const TRANSFER: u64 = 10_240;

#[test]
fn single_operations_take_array_and_bus_time() {
    let raw = Raw::open(luns(&timed(), "a", 4)).unwrap();
    let at = Address::default();
    raw.write_page(at, &[1; 4096]).unwrap();
    assert_eq!(raw.share().now(), Ok(SimTime(100 + TRANSFER + 500_000)));
    let before = raw.share().now().unwrap();
    raw.read_page(at, &mut [0; 4096]).unwrap();
    assert_eq!(raw.share().now().unwrap().since(before), Nanos(100 + 50_000 + TRANSFER));
    let before = raw.share().now().unwrap();
    raw.erase_block(at).unwrap();
    assert_eq!(raw.share().now().unwrap().since(before), Nanos(100 + 3_000_000));
}

#[test]
fn luns_work_in_parallel_and_a_queue_completes_in_time_order() {
    let raw = Raw::open(luns(&timed(), "a", 4)).unwrap();
    let pages: Vec<_> = (0..4).map(|c| Address { channel: c, ..Address::default() }).collect();
    raw.write_pages(&pages, &vec![7; 4 * 4096]).unwrap();
    assert_eq!(raw.share().now(), Ok(SimTime(100 + TRANSFER + 500_000)), "four channels");
    let before = raw.share().now().unwrap();
    let mut queue = raw.queue(8);
    queue.submit(Command::Erase { at: pages[0] }, 1).unwrap();
    queue.submit(Command::read(pages[1], vec![0; 4096]), 2).unwrap();
    queue.submit(Command::read(pages[0], vec![0; 4096]), 3).unwrap();
    let order: Vec<_> = std::iter::from_fn(|| queue.complete()).collect();
    // The read of the block waits for its erase, and then fails without a further delay.
    assert_eq!(order.iter().map(|done| done.tag).collect::<Vec<_>>(), [2, 1, 3]);
    let ends = order.iter().map(|done| done.end.since(before).0).collect::<Vec<_>>();
    assert_eq!(ends, [100 + 50_000 + TRANSFER, 100 + 3_000_000, 100 + 3_000_000]);
    assert!(matches!(order[2].result, Err(FlashError::Unwritten { .. })));
    assert_eq!(raw.share().now().unwrap().since(before), Nanos(100 + 3_000_000));
}

#[test]
fn bandwidth_limits_do_not_delay_other_shares() {
    let device = timed();
    let (slow, fast) = (luns(&device, "slow", 4), luns(&device, "fast", 4));
    slow.limit_bandwidth(Some(1_000_000)).unwrap();
    let (slow, fast) = (Raw::open(slow).unwrap(), Raw::open(fast).unwrap());
    for raw in [&slow, &fast] {
        for block in 0..10 {
            raw.write_page(Address { block, ..Address::default() }, &[1; 4096]).unwrap();
        }
    }
    let (slow, fast) = (slow.share().now().unwrap().0, fast.share().now().unwrap().0);
    // 40,960 bytes at 1 MB/s are 41 ms, of which the first and a burst come at once.
    assert!((35_000_000..43_000_000).contains(&slow), "{slow}");
    // They share a bus, and sometimes wait for it.
    let alone = 10 * (100 + TRANSFER + 500_000);
    assert!((alone..alone + alone / 100).contains(&fast), "{fast}");
    let untimed = self::device();
    assert_eq!(luns(&untimed, "a", 1).limit_bandwidth(Some(1)), Err(FlashError::NoClock));
}

#[test]
fn a_bandwidth_limit_of_zero_is_refused() {
    let device = timed();
    let none = Allocation { bandwidth: Some(0), ..Allocation::new(Bytes(1), 0) };
    assert!(matches!(device.allocate("a", none), Err(FlashError::Invalid { .. })));
    let share = luns(&device, "a", 1);
    assert!(matches!(share.limit_bandwidth(Some(0)), Err(FlashError::Invalid { .. })));
    let raw = Raw::open(share).unwrap();
    raw.write_page(Address::default(), &[1; 4096]).unwrap();
}

/// An interrupted program leaves a torn page, but closing a block programs none.
#[test]
fn an_interrupted_finish_leaves_no_torn_page() {
    let memory = MemoryDevice::new(geometry(), Cache::Volatile).unwrap();
    let mut rng = Rng::stream(1, "raw.finish");
    for block in 0..40 {
        memory.finish(block).unwrap();
        memory.restart(&mut rng);
        assert_eq!(memory.write_pointer(block), 0, "block {block}");
    }
}

#[test]
fn the_bytes_of_a_vector_have_to_match_its_pages() {
    let raw = Raw::open(luns(&device(), "a", 1)).unwrap();
    let pages = [Address::default(), Address { block: 1, ..Address::default() }];
    for bytes in [0, 4096, 3 * 4096, 2 * 4096 + 1] {
        let (mut into, from) = (vec![0; bytes], vec![1; bytes]);
        for refused in [raw.write_pages(&pages, &from), raw.read_pages(&pages, &mut into)] {
            let error = refused.unwrap_err();
            assert!(matches!(error.error, FlashError::Invalid { .. }), "{bytes}: {error}");
        }
    }
    assert_eq!(raw.write_pointer(pages[0]), Ok(0), "nothing was begun");
    raw.write_pages(&pages, &[1; 2 * 4096]).unwrap();
}
