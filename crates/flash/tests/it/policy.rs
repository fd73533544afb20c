//! The policy level: every mapping and cleaning policy equals an array, and flushed data survives
//! any power failure.

use prism_base::{Bytes, Rng};
use prism_flash::policy::{Cleaning, Lifetime, Mapping, OverProvisioning, Policy, RangeConfig};
use prism_flash::raw::Address;
use prism_flash::{
    Allocation, Cache, Device, DeviceGeometry, FlashError, GlobalWear, MediumError, MemoryDevice,
    Options, Raw, SharedMemory,
};
use prism_testkit::{all_seeds, seeds};

fn geometry(rng: &mut Rng) -> DeviceGeometry {
    let oob = [0, 64, 256][rng.below(3) as usize];
    let limited = rng.chance(0.4);
    DeviceGeometry {
        channels: 1 + rng.below(3) as u32,
        luns_per_channel: 2 + rng.below(2) as u32,
        blocks_per_lun: 48,
        pages_per_block: [4, 7, 16][rng.below(3) as usize],
        page_size: [512, 1024, 2048][rng.below(3) as usize],
        oob_size: oob,
        max_open_blocks: limited.then(|| 14 + rng.below(8) as u32),
    }
}

fn config(rng: &mut Rng) -> RangeConfig {
    let mapping = match rng.below(4) {
        0 => Mapping::Block,
        1 => Mapping::Hybrid {
            group_blocks: 1 + rng.below(3) as u32,
            group_log_blocks: 1 + rng.below(3) as u32,
        },
        _ => Mapping::Page,
    };
    let handles = if mapping == Mapping::Page { 1 + rng.below(2) as u32 } else { 1 };
    let cleaning = Cleaning::ALL[rng.below(4) as usize];
    RangeConfig { handles, ..RangeConfig::new(mapping, cleaning) }
}

/// Two ranges of different kinds over one share.
struct World {
    policy: Policy,
    ranges: Vec<(u64, u64)>,
}

/// The model: the present state, and that of the last flush with all later states that may be on
/// flash.
struct Model {
    now: Vec<u8>,
    /// For each unit, its possible contents after a power failure.
    may_be: Vec<Vec<u8>>,
    unit: usize,
}

impl Model {
    fn new(bytes: usize, unit: usize) -> Self {
        Self { now: vec![0; bytes], may_be: vec![vec![0]; bytes / unit], unit }
    }

    /// Each unit is filled with one byte, which stands for its content.
    fn set(&mut self, unit: usize, byte: u8) {
        self.now[unit * self.unit..(unit + 1) * self.unit].fill(byte);
        self.may_be[unit].push(byte);
    }

    fn flushed(&mut self) {
        for (unit, may_be) in self.may_be.iter_mut().enumerate() {
            *may_be = vec![self.now[unit * self.unit]];
        }
    }
}

fn world(policy: Policy, rng: &mut Rng) -> World {
    let unit = u64::from(policy.unit());
    let block = policy.block_bytes();
    let blocks = u64::from(policy.share().geometry().unwrap().blocks()) * 3 / 10;
    let middle = blocks / 2 * block / unit * unit;
    let end = blocks * block / unit * unit;
    let mut ranges = Vec::new();
    for (begin, end) in [(0, middle), (middle, end)] {
        let wanted = config(rng);
        match policy.configure(begin, end, wanted) {
            Ok(()) => ranges.push((begin, end)),
            Err(FlashError::NoSpace { what }) => panic!("{wanted:?}: {what}"),
            Err(error) => panic!("{error}"),
        }
    }
    World { policy, ranges }
}

/// One random call, in the model, too.
fn step(world: &World, model: &mut Model, rng: &mut Rng) -> Result<(), FlashError> {
    let unit = model.unit as u64;
    let (begin, end) = world.ranges[rng.below(world.ranges.len() as u64) as usize];
    let units = (end - begin) / unit;
    let hot = rng.chance(0.5);
    let first = if hot { rng.below(units.min(6)) } else { rng.below(units) };
    let most = if rng.chance(0.1) { 40 } else { 3 };
    let count = (1 + rng.below(most)).min(units - first);
    let address = begin + first * unit;
    let span = (address / unit) as usize..(address / unit + count) as usize;
    match rng.below(20) {
        0 => {
            if hot {
                let mut queue = world.policy.queue(1);
                queue.submit_flush(7)?;
                queue.complete().expect("a flush is in flight").result?;
            } else {
                world.policy.flush()?;
            }
            model.flushed();
        }
        1 | 2 => {
            span.for_each(|unit| model.set(unit, 0));
            world.policy.trim(address, count * unit)?;
        }
        3 => drop(world.policy.idle(2)?),
        4..7 => {
            let mut read = vec![1; (count * unit) as usize];
            world.policy.read(address, &mut read)?;
            let at = address as usize;
            assert!(read == model.now[at..at + read.len()], "read of {first} + {count}");
        }
        _ => {
            let byte = 1 + rng.below(255) as u8;
            let data = vec![byte; (count * unit) as usize];
            span.for_each(|unit| model.set(unit, byte));
            world.policy.write_with_handle(address, &data, rng.below(2) as u32)?;
        }
    }
    Ok(())
}

fn new_world(rng: &mut Rng, memory: &SharedMemory) -> World {
    let device = Device::format(memory.clone(), Options::default()).unwrap();
    let capacity = Bytes(device.lun_capacity().0 * u64::from(device.free_luns()));
    let share = device.allocate("policy", Allocation::new(capacity, 0)).unwrap();
    world(Policy::open(share).unwrap(), rng)
}

fn size(world: &World) -> usize {
    world.ranges.last().expect("two ranges").1 as usize
}

#[test]
fn random_writes_to_every_mapping_equal_an_array() {
    for seed in seeds(0..60) {
        let mut rng = Rng::stream(seed, "policy.model");
        let memory = MemoryDevice::new(geometry(&mut rng), Cache::None).unwrap().into();
        let world = new_world(&mut rng, &memory);
        let mut model = Model::new(size(&world), world.policy.unit() as usize);
        for _ in 0..1500 {
            step(&world, &mut model, &mut rng).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        }
        world.policy.assert_consistent();
        for &(begin, end) in &world.ranges {
            let mut all = vec![1; (end - begin) as usize];
            world.policy.read(begin, &mut all).unwrap();
            assert!(all == model.now[begin as usize..end as usize], "seed {seed}");
        }
    }
}

/// Opens the level; `None` if power failed meanwhile.
fn reopen(memory: &SharedMemory, ranges: &[(u64, u64)], context: &str) -> Option<World> {
    let open = || {
        let device = Device::open(memory.clone(), Options::default())?;
        Policy::open(device.attach("policy")?)
    };
    match open() {
        Ok(policy) => Some(World { policy, ranges: ranges.to_vec() }),
        Err(FlashError::Medium(MediumError::PowerLost)) => None,
        Err(error) => panic!("{context}: {error}"),
    }
}

/// After a power failure, each unit has one of its contents since the last flush, and keeps it from
/// then on.
fn settle(world: &World, model: &mut Model, context: &str) {
    world.policy.assert_consistent();
    for &(begin, end) in &world.ranges {
        let mut all = vec![1; (end - begin) as usize];
        world.policy.read(begin, &mut all).unwrap_or_else(|e| panic!("{context}: {e}"));
        for (place, bytes) in all.chunks(model.unit).enumerate() {
            let unit = begin as usize / model.unit + place;
            assert!(bytes.iter().all(|byte| *byte == bytes[0]), "{context}: unit {unit} is torn");
            let may_be = &model.may_be[unit];
            assert!(
                may_be.contains(&bytes[0]),
                "{context}: unit {unit} holds {}, not {may_be:?}",
                bytes[0]
            );
            model.now[unit * model.unit..(unit + 1) * model.unit].copy_from_slice(bytes);
        }
    }
    model.flushed();
}

fn lives(label: &str, cache: Cache, devices: u64, turns: u32) -> u32 {
    let mut cuts = 0;
    for seed in seeds(0..devices) {
        let mut rng = Rng::stream(seed, label);
        let memory: SharedMemory = MemoryDevice::new(geometry(&mut rng), cache).unwrap().into();
        let world = new_world(&mut rng, &memory);
        let mut model = Model::new(size(&world), world.policy.unit() as usize);
        let ranges = world.ranges.clone();
        drop(world);
        for turn in 0..turns {
            let context = format!("{label}, seed {seed}, turn {turn}");
            // Power may fail while it is opened, and in the work that follows.
            let far = if rng.chance(0.2) { 2000 } else { 100 };
            memory.cut_power_after(rng.below(far));
            if let Some(world) = reopen(&memory, &ranges, &context) {
                for _ in 0..300 {
                    match step(&world, &mut model, &mut rng) {
                        Ok(()) => {}
                        Err(FlashError::Medium(MediumError::PowerLost)) => break,
                        Err(error) => panic!("{context}: {error}"),
                    }
                }
            }
            cuts += u32::from(memory.lost_power());
            memory.restart(&mut rng);
            let world = reopen(&memory, &ranges, &context).expect("power is on");
            settle(&world, &mut model, &context);
        }
    }
    cuts
}

#[test]
fn random_cuts_tear_operations_and_keep_flushed_data() {
    let cuts = lives("policy.torn", Cache::None, 60, 60);
    assert!(!all_seeds() || cuts > 2_750, "{cuts} cuts");
}

#[test]
fn random_cuts_lose_a_cache_and_keep_flushed_data() {
    let cuts = lives("policy.cache", Cache::Volatile, 60, 60);
    assert!(!all_seeds() || cuts > 2_750, "{cuts} cuts");
}

/// The end of a process tears no operation and loses no cache: programmed units survive, and only
/// units buffered for an incomplete program unit are lost.
#[test]
fn random_deaths_of_a_process_lose_only_buffered_units() {
    for seed in seeds(0..30) {
        let mut rng = Rng::stream(seed, "policy.death");
        let memory: SharedMemory =
            MemoryDevice::new(geometry(&mut rng), Cache::Volatile).unwrap().into();
        let world = new_world(&mut rng, &memory);
        let unit = world.policy.unit() as usize;
        let mut model = Model::new(size(&world), unit);
        for _ in 0..400 {
            step(&world, &mut model, &mut rng).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        }
        world.policy.flush().unwrap();
        model.flushed();
        // Enough to fill the program unit of a stream, however many units it has already.
        let (begin, _) = world.ranges[0];
        let program_unit = world.policy.block_bytes() as usize;
        for (place, byte) in (0..program_unit / unit).zip(1u8..) {
            model.set(begin as usize / unit + place, byte);
            world.policy.write(begin + (place * unit) as u64, &vec![byte; unit]).unwrap();
        }
        let programmed = world.policy.share().counts().unwrap().programs.total();
        let ranges = world.ranges.clone();
        drop(world);
        let again = reopen(&memory, &ranges, &format!("seed {seed}")).expect("power is on");
        assert!(programmed > 0);
        let mut first = vec![0; program_unit];
        again.policy.read(begin, &mut first).unwrap();
        // A whole block was written in order: every program unit of it was full.
        for (place, byte) in (0..program_unit / unit).zip(1u8..) {
            assert_eq!(
                first[place * unit],
                byte,
                "seed {seed}: unit {place} of {}",
                program_unit / unit
            );
        }
        settle(&again, &mut model, &format!("seed {seed}"));
    }
}

fn plain() -> Policy {
    let geometry = DeviceGeometry {
        channels: 2,
        luns_per_channel: 2,
        blocks_per_lun: 64,
        pages_per_block: 16,
        page_size: 4096,
        oob_size: 64,
        max_open_blocks: None,
    };
    let memory = MemoryDevice::new(geometry, Cache::None).unwrap();
    let device = Device::format(memory, Options::default()).unwrap();
    let capacity = Bytes(device.lun_capacity().0 * 4);
    let share = device.allocate("plain", Allocation::new(capacity, 0)).unwrap();
    Policy::open(share).unwrap()
}

#[test]
fn data_of_another_level_is_not_erased() {
    let policy = plain();
    let device = policy.share().device().clone();
    drop(policy);
    device.release("plain").unwrap();
    let share = device.allocate("raw", Allocation::new(Bytes(1), 0)).unwrap();
    let raw = prism_flash::Raw::open(share).unwrap();
    let at = prism_flash::raw::Address { block: 3, ..Default::default() };
    raw.write_page(at, &[7; 4096]).unwrap();
    let share = raw.into_share();
    assert!(matches!(Policy::open(share.clone()), Err(FlashError::Busy { .. })));
    let objects = prism_flash::object::ObjectStore::open(share.clone());
    assert!(matches!(objects, Err(FlashError::Busy { .. })));
    let raw = prism_flash::Raw::open(share).unwrap();
    let mut read = [0; 4096];
    raw.read_page(at, &mut read).unwrap();
    assert_eq!(read, [7; 4096]);
}

#[test]
fn bad_use_is_refused_and_changes_nothing() {
    let policy = plain();
    let page = RangeConfig::new(Mapping::Page, Cleaning::Greedy);
    let block = RangeConfig::new(Mapping::Block, Cleaning::Fifo);
    policy.configure(0, 1 << 20, page).unwrap();
    let ranges = policy.ranges();
    let refused = |begin, end, config| policy.configure(begin, end, config).unwrap_err();
    assert!(matches!(refused(100, 1 << 20, page), FlashError::Unaligned { value: 100, .. }));
    assert!(matches!(refused(4096, 4096, page), FlashError::Invalid { .. }));
    assert!(matches!(refused(4096, 2 << 20, page), FlashError::Busy { .. }));
    assert!(matches!(refused(1 << 20, 1 << 30, page), FlashError::NoSpace { .. }));
    let handles = RangeConfig { handles: 3, ..block };
    assert!(matches!(refused(1 << 20, 2 << 20, handles), FlashError::Invalid { .. }));
    assert_eq!(policy.ranges(), ranges);

    assert!(matches!(policy.write((1 << 20) - 1, &[1, 2]), Err(FlashError::PastEnd { .. })));
    let none = policy.read(u64::MAX, &mut [0]).unwrap_err().to_string();
    assert_eq!(none, format!("no range has the address {}: configure one", u64::MAX));
    assert!(matches!(policy.trim(1, 4096), Err(FlashError::Unaligned { .. })));
    assert!(matches!(policy.trim(0, 2 << 20), Err(FlashError::PastEnd { .. })));
    policy.write(10, b"abc").unwrap();
    assert!(matches!(policy.share().shrink(1), Err(FlashError::Busy { .. })));
    let other = prism_flash::object::ObjectStore::open(policy.share());
    assert!(matches!(other, Err(FlashError::WrongLevel { .. })));
    assert!(matches!(prism_flash::Raw::open(policy.share()), Err(FlashError::WrongLevel { .. })));
    // A range that holds data is not replaced; one that is trimmed is.
    assert!(matches!(refused(0, 1 << 20, block), FlashError::Busy { .. }));
    assert!(matches!(policy.remove(0), Err(FlashError::Busy { .. })));
    assert!(matches!(policy.remove(4096), Err(FlashError::Invalid { .. })));
    let mut read = [0; 5];
    policy.read(9, &mut read).unwrap();
    assert_eq!(&read, b"\0abc\0");
    policy.trim(0, 1 << 20).unwrap();
    policy.trim(0, 1 << 20).unwrap();
    policy.flush().unwrap();
    policy.configure(0, 1 << 20, block).unwrap();
    assert_eq!(policy.ranges()[0].config.mapping, Mapping::Block);
    policy.read(9, &mut read).unwrap();
    assert_eq!(read, [0; 5]);
    policy.remove(0).unwrap();
    assert_eq!(policy.ranges(), []);
}

#[test]
fn containers_are_named_parts_of_a_range() {
    let policy = plain();
    let config = RangeConfig {
        handles: 5,
        over_provisioning: OverProvisioning::Percent(40),
        ..RangeConfig::new(Mapping::Page, Cleaning::Greedy)
    };
    policy.configure(0, 4 << 20, config).unwrap();
    let journal = policy.create_container(0, "journal", 1 << 20, Lifetime::Short).unwrap();
    let data = policy.create_container(0, "data", 2 << 20, Lifetime::Long).unwrap();
    assert!(matches!(
        policy.create_container(0, "more", 2 << 20, Lifetime::Long),
        Err(FlashError::NoSpace { .. })
    ));
    assert!(matches!(
        policy.create_container(0, "data", 4096, Lifetime::Long),
        Err(FlashError::Invalid { .. })
    ));
    journal.write(0, b"first").unwrap();
    data.write(0, b"other").unwrap();
    let mut read = [0; 5];
    journal.read(0, &mut read).unwrap();
    assert_eq!(&read, b"first");
    let past = journal.write((1 << 20) - 2, b"abc").unwrap_err().to_string();
    assert_eq!(past, "the access ends at byte 1048577; the container ends at 1048576");
    policy.delete_container("journal").unwrap();
    assert!(matches!(journal.read(0, &mut read), Err(FlashError::Released)));
    let again = policy.create_container(0, "log", 1 << 20, Lifetime::Short).unwrap();
    again.read(0, &mut read).unwrap();
    assert_eq!(read, [0; 5], "what the last one left is gone");
    assert_eq!(policy.container("data").unwrap().info().begin, 1 << 20);
}

/// Data of two lifetimes written alternately: with a handle for each, data of one lifetime shares
/// blocks, and cleaning has less to copy.
#[test]
fn containers_keep_lifetimes_apart() {
    let copies = |handles: u32| {
        let policy = plain();
        let config = RangeConfig {
            handles,
            over_provisioning: OverProvisioning::Rest,
            ..RangeConfig::new(Mapping::Page, Cleaning::Greedy)
        };
        policy.configure(0, 10 << 20, config).unwrap();
        let hot = policy.create_container(0, "hot", 2 << 20, Lifetime::Short).unwrap();
        let cold = policy.create_container(0, "cold", 8 << 20, Lifetime::Long).unwrap();
        let mut rng = Rng::stream(1, "containers");
        for turn in 0..30_000u64 {
            hot.write(rng.below(512) * 4096, &[1; 4096]).unwrap();
            if turn % 12 == 0 {
                cold.write(turn / 12 % 2048 * 4096, &[2; 4096]).unwrap();
            }
        }
        let counts = policy.share().counts().unwrap();
        counts.programs[prism_nand::Cause::Gc]
    };
    let (mixed, apart) = (copies(1), copies(4));
    assert!(apart * 3 < mixed * 2, "{apart} pages copied with handles, {mixed} without");
}

#[test]
fn a_range_that_cannot_be_replaced_stays() {
    let policy = plain();
    let config = RangeConfig::new(Mapping::Page, Cleaning::Greedy);
    policy.configure(0, 1 << 20, config).unwrap();
    let before = policy.ranges();
    let over_provisioning = OverProvisioning::Percent(100_000);
    let too_much = RangeConfig { over_provisioning, ..config };
    assert!(matches!(policy.configure(0, 1 << 20, too_much), Err(FlashError::NoSpace { .. })));
    for handles in [u32::MAX, u32::MAX / 2, 10_000] {
        let handles = RangeConfig { handles, ..config };
        assert!(matches!(policy.configure(0, 1 << 20, handles), Err(FlashError::Invalid { .. })));
    }
    assert_eq!(policy.ranges(), before);
    policy.write(0, &[1; 4096]).unwrap();
}

/// Blocks that a removed or replaced range leaves partly written do not count as open blocks of the
/// next one.
#[test]
fn ranges_come_and_go_with_few_open_blocks() {
    let geometry = DeviceGeometry {
        channels: 2,
        luns_per_channel: 2,
        blocks_per_lun: 48,
        pages_per_block: 16,
        page_size: 512,
        oob_size: 0,
        max_open_blocks: Some(8),
    };
    let memory = MemoryDevice::new(geometry, Cache::None).unwrap();
    let device = Device::format(memory, Options::default()).unwrap();
    let capacity = Bytes(device.lun_capacity().0 * 4);
    let policy =
        Policy::open(device.allocate("few", Allocation::new(capacity, 0)).unwrap()).unwrap();
    let mut rng = Rng::stream(1, "policy.open");
    for round in 0..60 {
        let end = policy.block_bytes() * (4 + rng.below(60));
        let config = RangeConfig {
            open_blocks: Some(5),
            handles: 4,
            over_provisioning: OverProvisioning::Percent(10),
            ..RangeConfig::new(Mapping::Page, Cleaning::Greedy)
        };
        let failed = |error: FlashError| panic!("round {round}: {error}");
        policy.configure(0, end, config).unwrap_or_else(failed);
        for unit in 0..1 + rng.below(end / 512 / 2) {
            policy.write_with_handle(unit * 512, &[7; 512], unit as u32 % 4).unwrap_or_else(failed);
        }
        policy.trim(0, end).unwrap_or_else(failed);
        policy.flush().unwrap_or_else(failed);
        policy.remove(0).unwrap_or_else(failed);
    }
}

/// Names and ranges of all applications share the device's tables: an addition is refused before
/// they get too large for the device's journal, and the others continue.
#[test]
fn the_tables_of_the_device_cannot_be_filled() {
    let geometry = DeviceGeometry {
        channels: 2,
        luns_per_channel: 2,
        blocks_per_lun: 48,
        pages_per_block: 4,
        page_size: 512,
        oob_size: 64,
        max_open_blocks: None,
    };
    let memory: SharedMemory = MemoryDevice::new(geometry, Cache::None).unwrap().into();
    let wear = Some(GlobalWear { min_gap: 1, delta: 0.0, budget: 1.0 });
    let options = Options { timing: None, wear };
    let device = Device::format(memory.clone(), options).unwrap();
    let one = Allocation::new(Bytes(1), 0);
    let raw = Raw::open(device.allocate("raw", one).unwrap()).unwrap();
    let two = Allocation::new(Bytes(device.lun_capacity().0 * 2), 0);
    let policy = Policy::open(device.allocate("p", two).unwrap()).unwrap();
    policy.configure(0, 40_960, RangeConfig::new(Mapping::Page, Cleaning::Greedy)).unwrap();
    let mut made = Vec::new();
    let refused = (0..80).find_map(|number| {
        let name = format!("{number:0>120}");
        let done = policy.create_container(0, &name, 512, Lifetime::Short).map(drop);
        made.extend(done.is_ok().then_some(name));
        done.err()
    });
    assert!(matches!(refused, Some(FlashError::Tables { .. })), "{refused:?}");
    assert!(made.len() > 10, "{} containers", made.len());
    let refused = device.allocate(&"x".repeat(255), one).map(drop);
    assert!(matches!(refused, Err(FlashError::Tables { .. })), "{refused:?}");
    // The tables grow as blocks wear and move, and still fit.
    for round in 0..20_000 {
        raw.erase_block(Address::default()).unwrap_or_else(|e| panic!("round {round}: {e}"));
    }
    assert!(device.wear().exchanges > 0);
    drop((policy, raw, device));
    let device = Device::open(memory, options).unwrap();
    let policy = Policy::open(device.attach("p").unwrap()).unwrap();
    let names: Vec<_> = policy.containers().into_iter().map(|container| container.name).collect();
    assert_eq!(names, made);
    // Smaller tables have room again.
    policy.delete_container(&made[0]).unwrap();
    policy.create_container(0, "short", 512, Lifetime::Short).unwrap();
}

/// Two tables in memory of the same blocks would overwrite each other's data.
#[test]
fn a_level_is_open_once() {
    let policy = plain();
    policy.configure(0, 1 << 20, RangeConfig::new(Mapping::Page, Cleaning::Greedy)).unwrap();
    policy.write(0, b"once").unwrap();
    policy.flush().unwrap();
    let share = policy.share();
    let again = Policy::open(share.clone()).map(drop);
    assert!(matches!(again, Err(FlashError::InUse { .. })), "{again:?}");
    drop(policy);
    let mut read = [0; 4];
    Policy::open(share).unwrap().read(0, &mut read).unwrap();
    assert_eq!(&read, b"once");
}
