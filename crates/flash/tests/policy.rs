//! The policy level: every mapping and cleaning equals a plain array, and what a flush
//! promised survives any loss of power.

use prism_base::{Bytes, Rng};
use prism_flash::policy::{Cleaning, Lifetime, Mapping, OverProvisioning, Policy, RangeConfig};
use prism_flash::{
    Allocation, Cache, Device, DeviceGeometry, FlashError, MediumError, MemoryDevice, Options,
    SharedMemory,
};

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

/// What should be there: the state now, and the state that was flushed last with everything
/// that may have come to flash since.
struct Model {
    now: Vec<u8>,
    /// For each unit, the contents it may have after a loss of power.
    may_be: Vec<Vec<u8>>,
    unit: usize,
}

impl Model {
    fn new(bytes: usize, unit: usize) -> Self {
        Self { now: vec![0; bytes], may_be: vec![vec![0]; bytes / unit], unit }
    }

    /// Units are filled with one byte each, so a byte says all of a unit.
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
            world.policy.flush()?;
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
    let device = Device::format(Box::new(memory.clone()), Options::default()).unwrap();
    let capacity = Bytes(device.lun_capacity().0 * u64::from(device.free_luns()));
    let share = device.allocate("policy", Allocation::new(capacity, 0)).unwrap();
    world(Policy::open(share).unwrap(), rng)
}

fn size(world: &World) -> usize {
    world.ranges.last().expect("two ranges").1 as usize
}

#[test]
fn every_mapping_equals_an_array() {
    for seed in 0..60 {
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

/// Opens what is there; `None` if power went meanwhile.
fn reopen(memory: &SharedMemory, ranges: &[(u64, u64)], context: &str) -> Option<World> {
    let open = || {
        let device = Device::open(Box::new(memory.clone()), Options::default())?;
        Policy::open(device.attach("policy")?)
    };
    match open() {
        Ok(policy) => Some(World { policy, ranges: ranges.to_vec() }),
        Err(FlashError::Medium(MediumError::PowerLost)) => None,
        Err(error) => panic!("{context}: {error}"),
    }
}

/// After power was lost, each unit holds something that it held since the last flush; that is
/// what it holds from then on.
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

fn lives(label: &str, cache: Cache, seeds: u64, turns: u32) -> u32 {
    let mut cuts = 0;
    for seed in 0..seeds {
        let mut rng = Rng::stream(seed, label);
        let memory: SharedMemory = MemoryDevice::new(geometry(&mut rng), cache).unwrap().into();
        let world = new_world(&mut rng, &memory);
        let mut model = Model::new(size(&world), world.policy.unit() as usize);
        let ranges = world.ranges.clone();
        drop(world);
        for turn in 0..turns {
            let context = format!("{label}, seed {seed}, turn {turn}");
            // Power may go while it is opened, and in the work that follows.
            let far = if rng.chance(0.2) { 2000 } else { 100 };
            memory.lock().cut_power_after(rng.below(far));
            if let Some(world) = reopen(&memory, &ranges, &context) {
                for _ in 0..300 {
                    match step(&world, &mut model, &mut rng) {
                        Ok(()) => {}
                        Err(FlashError::Medium(MediumError::PowerLost)) => break,
                        Err(error) => panic!("{context}: {error}"),
                    }
                }
            }
            cuts += u32::from(memory.lock().lost_power());
            memory.lock().restart(&mut rng);
            let world = reopen(&memory, &ranges, &context).expect("power is on");
            settle(&world, &mut model, &context);
        }
    }
    cuts
}

#[test]
fn what_a_flush_promised_survives_torn_operations() {
    let cuts = lives("policy.torn", Cache::None, 60, 60);
    assert!(cuts > 2_500, "{cuts} cuts");
}

#[test]
fn what_a_flush_promised_survives_a_lost_cache() {
    let cuts = lives("policy.cache", Cache::Volatile, 60, 60);
    assert!(cuts > 2_500, "{cuts} cuts");
}
