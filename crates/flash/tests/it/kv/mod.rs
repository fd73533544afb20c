//! The key-value store: a model, a full store, and refused calls.

mod power;
mod world;

use prism_base::{Bytes, Nanos, Rng};
use prism_flash::raw::{Address, Raw};
use prism_flash::{
    Allocation, Cache, Device, DeviceGeometry, FlashError, KvStore, MemoryDevice, Options, Share,
};
use prism_nand::{PageTimes, Timing};
use prism_testkit::seeds;
use world::World;

const GEOMETRY: DeviceGeometry = DeviceGeometry {
    channels: 2,
    luns_per_channel: 2,
    blocks_per_lun: 32,
    pages_per_block: 16,
    page_size: 4096,
    oob_size: 0,
    max_open_blocks: Some(14),
};

fn share(geometry: DeviceGeometry, allocation: impl Fn(&Device) -> Allocation) -> Share {
    let memory = MemoryDevice::new(geometry, Cache::None).unwrap();
    let device = Device::format(memory, Options::default()).unwrap();
    device.allocate("pairs", allocation(&device)).unwrap()
}

fn whole(device: &Device) -> Allocation {
    Allocation::new(Bytes(device.lun_capacity().0 * 3), 33)
}

#[test]
fn random_calls_follow_the_model() {
    for seed in seeds(0..150) {
        let cache = if seed % 3 == 0 { Cache::Volatile } else { Cache::None };
        let mut world = World::any(seed, cache);
        for step in 0..1500 {
            world.step().unwrap_or_else(|e| panic!("seed {seed}, step {step}: {e}"));
            match world.rng.below(300) {
                // The process dies: programmed records survive, the others may.
                0 => {
                    world.reopen().unwrap();
                    world.check_recovered();
                }
                1 => {
                    world.store().flush().unwrap();
                    let charged = world.store().stats().charged_bytes;
                    world.reopen().unwrap();
                    // With the same tombstones: the pieces that they are needed for are counted
                    // correctly.
                    let again = world.store().stats().charged_bytes;
                    assert_eq!(again, charged, "seed {seed}, step {step}");
                    assert_eq!(world.dump(), world.expected, "seed {seed}, step {step}");
                    world.durable = world.expected.clone();
                    world.calls.clear();
                }
                2 => assert_eq!(world.dump(), world.expected, "seed {seed}, step {step}"),
                3 => ranges(&mut world),
                _ => {}
            }
        }
        let stats = world.store().stats();
        assert_eq!(stats.records, world.expected.len() as u64, "seed {seed}");
        let live: usize = world.expected.iter().map(|(k, v)| k.len() + v.len()).sum();
        assert_eq!(stats.live_bytes, live as u64, "seed {seed}");
    }
}

/// Scans of some range are those of the model.
fn ranges(world: &mut World) {
    let (a, b) = (world.key(), world.key());
    let (a, b) = if a <= b { (a, b) } else { (b, a) };
    let limit = world.rng.below(20) as usize;
    let found = world.store().scan(a.as_slice()..b.as_slice(), limit).unwrap();
    let wanted = world.expected.range(a.clone()..b.clone()).take(limit);
    assert!(found.iter().map(|(k, v)| (k, v)).eq(wanted), "seed {}", world.seed);
    let found = world.store().scan(a.as_slice()..=b.as_slice(), limit).unwrap();
    let wanted = world.expected.range(a.clone()..=b.clone()).take(limit);
    assert!(found.iter().map(|(k, v)| (k, v)).eq(wanted), "seed {}", world.seed);
    assert_eq!(world.store().scan(b.as_slice()..a.as_slice(), limit), Ok(Vec::new()));
}

/// Sets keys that begin with `name` until the store is full; returns their number.
fn fill(store: &KvStore, name: &str, value: &[u8]) -> u32 {
    for number in 0.. {
        match store.set(format!("{name} {number:08}").as_bytes(), value) {
            Ok(()) => {}
            Err(FlashError::NoSpace { .. }) => return number,
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!("no store takes everything");
}

#[test]
fn a_full_store_loses_nothing_and_works_again() {
    for (value, percent) in [(0, 0), (1, 33), (100, 33), (2100, 33), (2100, 0), (50_000, 33)] {
        let geometry = DeviceGeometry { blocks_per_lun: 24, pages_per_block: 8, ..GEOMETRY };
        let store = KvStore::open(share(geometry, |device| {
            let luns = if percent == 0 { 4 } else { 3 };
            Allocation::new(Bytes(device.lun_capacity().0 * luns), percent)
        }));
        let store = store.unwrap();
        let value = vec![7; value];
        let first = fill(&store, "a", &value);
        let stats = store.stats();
        assert!(stats.charged_bytes <= stats.capacity_bytes, "{stats:?}");
        let rest = stats.capacity_bytes - stats.charged_bytes;
        assert!(rest < value.len() as u64 * 2 + 100, "{stats:?}");
        // At least half of the share holds values, if they are not smaller than their headers.
        let bytes = stats.live_bytes * 2 > stats.capacity_bytes || value.len() < 40;
        assert!(bytes && stats.capacity_bytes > 1_000_000, "{stats:?}");
        // Every key can still be overwritten, many times over: cleaning always ends.
        let mut rng = Rng::stream(value.len() as u64, "full");
        for _ in 0..first * 2 {
            let key = format!("a {:08}", rng.below(first.into()));
            store.set(key.as_bytes(), &value).unwrap();
        }
        let stats = store.stats();
        let pages = stats.counts.programs.total();
        assert!(stats.counts.erases.total() > 0 && pages * 4096 < stats.written_bytes * 60);
        for round in 0..3 {
            let pairs = store.scan(.., usize::MAX).unwrap();
            assert_eq!(pairs.len() as u32, store.stats().records as u32);
            assert!(pairs.iter().all(|(_, v)| *v == value));
            // Full of deletions, and again of values, with other keys each time.
            for (key, _) in &pairs {
                assert_eq!(store.delete(key), Ok(true), "{} bytes", value.len());
            }
            assert_eq!(store.scan(.., 1), Ok(Vec::new()));
            let again = fill(&store, &format!("{round}"), &value);
            assert!(again * 10 >= first * 9, "{} bytes: {again} of {first}", value.len());
        }
    }
}

#[test]
fn one_old_key_does_not_keep_the_tombstones_of_others() {
    let store = KvStore::open(share(GEOMETRY, whole)).unwrap();
    store.set(b"old", b"value").unwrap();
    for number in 0..200_000 {
        let key = format!("key {number}");
        store.set(key.as_bytes(), b"short").unwrap();
        assert_eq!(store.delete(key.as_bytes()), Ok(true));
    }
    assert_eq!(store.get(b"old").unwrap().unwrap(), b"value");
    let stats = store.stats();
    assert_eq!((stats.records, stats.live_bytes), (1, 8));
    assert!(stats.write_amplification < 8.0, "{stats:?}");
}

#[test]
fn long_values_and_values_that_are_too_long() {
    let geometry = DeviceGeometry { pages_per_block: 64, ..GEOMETRY };
    let store = KvStore::open(share(geometry, whole)).unwrap();
    let long: Vec<u8> = (0..1 << 20).map(|n: u32| (n * 7 / 3) as u8).collect();
    for round in 0..20u8 {
        let value = &long[usize::from(round)..];
        store.set(b"long", value).unwrap();
        store.set(&[round + 1], &[round; 3000]).unwrap();
        assert_eq!(store.get(b"long").unwrap().unwrap(), value);
    }
    store.flush().unwrap();
    assert_eq!(store.get(b"long").unwrap().unwrap(), &long[19..]);
    assert_eq!(store.get(&[5]).unwrap().unwrap(), [4; 3000]);
    let key = vec![1; store.key_max()];
    store.set(&key, b"").unwrap();
    assert_eq!(store.get(&key), Ok(Some(Vec::new())));
    for key in [&[][..], &[1; 256]] {
        assert!(matches!(store.set(key, b"x"), Err(FlashError::Invalid { .. })));
        assert!(matches!(store.delete(key), Err(FlashError::Invalid { .. })));
        assert_eq!(store.get(key), Ok(None));
    }
    let huge = vec![0; prism_flash::kv::VALUE_MAX + 1];
    assert!(matches!(store.set(b"huge", &huge), Err(FlashError::Invalid { .. })));
    assert!(matches!(store.set(b"huge", &huge[1..]), Err(FlashError::NoSpace { .. })));
    assert_eq!(store.get(b"huge"), Ok(None));
    store.set(b"long", b"short").unwrap();
}

#[test]
fn shares_of_other_levels_are_left_alone() {
    let raw = Raw::open(share(GEOMETRY, whole)).unwrap();
    raw.write_page(Address::default(), &[1; 4096]).unwrap();
    let share_in_use = raw.into_share();
    assert!(matches!(KvStore::open(share_in_use.clone()), Err(FlashError::Busy { .. })));
    let raw = Raw::open(share_in_use).unwrap();
    raw.erase_block(Address::default()).unwrap();
    let store = KvStore::open(raw.into_share()).unwrap();
    store.set(b"key", b"value").unwrap();
    let share_of_pairs = store.into_share().unwrap();
    assert!(matches!(Raw::open(share_of_pairs.clone()), Err(FlashError::WrongLevel { .. })));
    let store = KvStore::open(share_of_pairs).unwrap();
    assert_eq!(store.get(b"key").unwrap().unwrap(), b"value");

    let few = |open_blocks| {
        share(GEOMETRY, move |device| Allocation {
            open_blocks: Some(open_blocks),
            ..whole(device)
        })
    };
    assert!(matches!(KvStore::open(few(1)), Err(FlashError::NoSpace { .. })));
    assert!(KvStore::open(few(2)).is_ok());
}

#[test]
fn records_are_packed_and_pages_are_spread_over_the_luns() {
    let geometry = DeviceGeometry { channels: 4, max_open_blocks: None, ..GEOMETRY };
    let all = |device: &Device| Allocation::new(Bytes(device.lun_capacity().0 * 8), 0);
    let store = KvStore::open(share(geometry, all)).unwrap();
    // 75 records of 54 bytes on a page of 4072: a page programmed at the 76th.
    for number in 0..4 * 75 + 1u32 {
        store.set(&number.to_le_bytes(), &[3; 21]).unwrap();
    }
    assert_eq!(store.stats().counts.programs.total(), 4);
    store.flush().unwrap();
    store.flush().unwrap();
    assert_eq!(store.stats().counts.programs.total(), 5);
    let raw = store.into_share().unwrap();
    let device = raw.device().clone();
    drop(raw);
    let medium = device.into_medium().unwrap();
    let mut is_written = |block| {
        let mut magic = [0; 4];
        medium.read(block, 0, 8, &mut magic, &mut []).unwrap();
        magic == *b"PKV\x01"
    };
    let luns = (0..8).filter(|lun| (lun * 32..(lun + 1) * 32).any(&mut is_written));
    assert_eq!(luns.count(), 5);
}

/// The time of writes with this many open blocks, and that of a single read.
fn timed(open_blocks: u32) -> (Nanos, Nanos) {
    let timing = Timing {
        t_read: PageTimes::uniform(Nanos(50_000)),
        t_program: PageTimes::uniform(Nanos(600_000)),
        t_erase: Nanos(5_000_000),
        t_command: Nanos(0),
        bus_bytes_per_second: Some(400_000_000),
    };
    let options = Options { timing: Some(timing), ..Options::default() };
    let geometry = DeviceGeometry { luns_per_channel: 4, ..GEOMETRY };
    let memory = MemoryDevice::new(geometry, Cache::None).unwrap();
    let device = Device::format(memory, options).unwrap();
    let capacity = Bytes(device.lun_capacity().0 * 8);
    let wanted = Allocation { open_blocks: Some(open_blocks), ..Allocation::new(capacity, 0) };
    let share = device.allocate("pairs", wanted).unwrap();
    let store = KvStore::open(share.clone()).unwrap();
    let before = share.now().unwrap();
    for number in 0..400u32 {
        store.set(&number.to_le_bytes(), &[1; 4000]).unwrap();
    }
    store.flush().unwrap();
    let written = share.now().unwrap();
    store.get(&7u32.to_le_bytes()).unwrap().unwrap();
    (written.since(before), share.now().unwrap().since(written))
}

#[test]
fn open_blocks_on_several_luns_make_writing_faster() {
    let ((one, read), (four, _)) = (timed(2), timed(8));
    // The last page of a block and the first of the next, on another LUN, overlap.
    assert!(one >= Nanos(400 * 600_000 * 15 / 16), "one block at a time: {one:?}");
    assert!(four.0 * 3 < one.0 && four.0 * 5 > one.0, "{four:?} with four, {one:?} with one");
    // A read takes the array, and the transfer of its piece alone: 4033 bytes.
    assert_eq!(read, Nanos(50_000 + 4033 * 10 / 4 + 1));
}

#[test]
fn threads_use_one_store() {
    let store = KvStore::open(share(GEOMETRY, whole)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let store = &store;
            scope.spawn(move || {
                for number in 0..2000u32 {
                    let key = [thread.to_le_bytes(), (number % 50).to_le_bytes()].concat();
                    store.set(&key, &number.to_le_bytes()).unwrap();
                    assert_eq!(store.get(&key).unwrap().unwrap(), number.to_le_bytes());
                }
            });
        }
    });
    assert_eq!(store.stats().records, 200);
}

#[test]
fn a_device_that_fails_is_not_written_any_more() {
    let memory = MemoryDevice::new(GEOMETRY, Cache::None).unwrap();
    memory.fail_at_random(0.002, 3);
    let device = Device::format(memory, Options::default()).unwrap();
    let store = KvStore::open(device.allocate("pairs", whole(&device)).unwrap()).unwrap();
    let mut rng = Rng::stream(1, "wear");
    let mut model = std::collections::BTreeMap::new();
    let error = loop {
        let key = rng.below(100).to_le_bytes();
        let value = vec![rng.next_u64() as u8; 3000];
        match store.set(&key, &value) {
            Ok(()) => model.insert(key, value),
            Err(error) => break error,
        };
    };
    assert!(matches!(error, FlashError::WornOut { .. }), "{error}");
    assert_eq!(store.set(b"more", b"x"), Err(error.clone()));
    assert_eq!(store.flush(), Err(error));
    assert!(device.own_counts().programs.total() > 10, "blocks were replaced before");
    let wrong =
        model.iter().filter(|(key, value)| store.get(*key).unwrap().as_ref() != Some(value));
    // The call that failed may have taken effect, no other has.
    assert!(wrong.count() <= 1);
}
