//! The monitor: durable data survives a power failure at any operation, and wear is levelled over
//! LUNs.

use prism_testkit::{all_seeds, seeds};
use std::collections::BTreeMap;

use prism_base::{Bytes, Rng};
use prism_flash::raw::{Address, Raw};
use prism_flash::{
    Allocation, Cache, Device, DeviceGeometry, FlashError, GlobalWear, MediumError, MemoryDevice,
    Options, SharedMemory,
};

const PAGE: usize = 512;

fn geometry(rng: &mut Rng) -> DeviceGeometry {
    DeviceGeometry {
        channels: 1 + rng.below(3) as u32,
        luns_per_channel: 2 + rng.below(2) as u32,
        blocks_per_lun: 20 + rng.below(4) as u32,
        pages_per_block: 3 + rng.below(5) as u32,
        page_size: PAGE as u32,
        oob_size: 16 * rng.below(2) as u32,
        max_open_blocks: None,
    }
}

/// The expected content of a share: by block, its pages, and how many of them are durable.
#[derive(Clone, Debug, Default)]
struct ShareModel {
    luns: u32,
    blocks: BTreeMap<Address, Vec<u8>>,
}

/// The expected content of the device, and what the operation in flight may have changed.
#[derive(Clone, Debug, Default)]
struct Model {
    shares: BTreeMap<String, ShareModel>,
    /// The share that is being allocated, released, grown or shrunk, or the block that is
    /// being written or erased: either state is right.
    doubt: Option<(String, Option<Address>)>,
}

struct Life {
    device: Device,
    raws: BTreeMap<String, Raw>,
}

/// One step; any error is due to the power failure.
fn step(life: &mut Life, model: &mut Model, rng: &mut Rng, cache: Cache) -> Result<(), FlashError> {
    let names: Vec<_> = life.raws.keys().cloned().collect();
    let pick = |rng: &mut Rng| names.get(rng.below(names.len().max(1) as u64) as usize).cloned();
    match (rng.below(40), pick(rng)) {
        (0, _) if names.len() < 4 => allocate(life, model, rng)?,
        (1, Some(name)) => {
            model.doubt = Some((name.clone(), None));
            let raw = life.raws.remove(&name).expect("picked");
            raw.into_share().release()?;
            model.shares.remove(&name);
        }
        (2, Some(name)) => {
            model.doubt = Some((name.clone(), None));
            match life.raws.get_mut(&name).expect("picked").grow(1) {
                Ok(()) => model.shares.get_mut(&name).expect("known").luns += 1,
                Err(FlashError::NoLuns { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        (3, Some(name)) => {
            model.doubt = Some((name.clone(), None));
            match life.raws.get_mut(&name).expect("picked").shrink(1) {
                Ok(()) => model.shares.get_mut(&name).expect("known").luns -= 1,
                Err(FlashError::ShrinkBelowUse { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        (4..12, Some(name)) => {
            let raw = &life.raws[&name];
            let block = random_block(raw, rng);
            model.doubt = Some((name.clone(), Some(block)));
            raw.erase_block(block)?;
            model.shares.get_mut(&name).expect("known").blocks.remove(&block);
        }
        (_, Some(name)) => {
            let raw = &life.raws[&name];
            let block = random_block(raw, rng);
            let page = raw.write_pointer(block)?;
            if page == raw.geometry().pages_per_block {
                return Ok(());
            }
            model.doubt = Some((name.clone(), Some(block)));
            let byte = rng.below(256) as u8;
            raw.write_page(block.with_page(page), &[byte; PAGE])?;
            let share = model.shares.get_mut(&name).expect("known");
            share.blocks.entry(block).or_default().push(byte);
        }
        _ => {}
    }
    if cache == Cache::Volatile
        && let Some(raw) = life.raws.values().next()
    {
        raw.sync()?;
    }
    model.doubt = None;
    Ok(())
}

fn allocate(life: &mut Life, model: &mut Model, rng: &mut Rng) -> Result<(), FlashError> {
    let name = format!("share {}", rng.below(6));
    if model.shares.contains_key(&name) {
        return Ok(());
    }
    model.doubt = Some((name.clone(), None));
    let luns = 1 + rng.below(2);
    let capacity = Bytes(life.device.lun_capacity().0 * luns);
    match life.device.allocate(&name, Allocation::new(capacity, 0)) {
        Ok(share) => {
            life.raws.insert(name.clone(), Raw::open(share)?);
            let luns = luns as u32;
            model.shares.insert(name, ShareModel { luns, ..ShareModel::default() });
        }
        Err(FlashError::NoLuns { .. }) => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

fn random_block(raw: &Raw, rng: &mut Rng) -> Address {
    let channels = &raw.geometry().channels;
    let channel = rng.below(channels.len() as u64) as u32;
    let lun = rng.below(channels[channel as usize].len() as u64) as u32;
    // A few blocks are written much more than the others.
    let blocks = u64::from(raw.geometry().blocks_per_lun);
    let block = if rng.chance(0.8) { rng.below(blocks.min(2)) } else { rng.below(blocks) };
    Address { channel, lun, block: block as u32, page: 0 }
}

/// Checks that the device equals the model; the model then takes the result of the operation in
/// flight. Returns false if the device is worn out.
fn check(life: &mut Life, model: &mut Model, cache: Cache, context: &str) -> bool {
    let doubt = model.doubt.take();
    let found: BTreeMap<_, _> =
        life.device.shares().into_iter().map(|s| (s.name.clone(), s.luns.len() as u32)).collect();
    if let Some((name, None)) = &doubt {
        match found.get(name) {
            Some(&luns) => {
                let known = model.shares.get(name).map_or(luns, |share| share.luns);
                assert!(luns.abs_diff(known) <= 1, "{context}: {name} has {luns} LUNs");
                model.shares.entry(name.clone()).or_default().luns = luns;
            }
            None => drop(model.shares.remove(name)),
        }
    }
    let expected: BTreeMap<_, _> =
        model.shares.iter().map(|(name, share)| (name.clone(), share.luns)).collect();
    assert_eq!(found, expected, "{context}");
    for (name, share) in &mut model.shares {
        let raw = Raw::open(life.device.attach(name).expect("not attached")).expect("raw");
        let blocks: Vec<_> = raw.blocks().collect();
        for block in blocks {
            let in_doubt = doubt == Some((name.clone(), Some(block)));
            if !check_block(&raw, block, in_doubt, share, (cache, context)) {
                return false;
            }
        }
        life.raws.insert(name.clone(), raw);
    }
    true
}

fn check_block(
    raw: &Raw,
    block: Address,
    doubt: bool,
    share: &mut ShareModel,
    (cache, context): (Cache, &str),
) -> bool {
    let expected = share.blocks.get(&block).cloned().unwrap_or_default();
    let mut data = [0; PAGE];
    let found: Vec<_> = (0..raw.geometry().pages_per_block)
        .map(|page| raw.read_page(block.with_page(page), &mut data).map(|()| data))
        .take_while(|read| !matches!(read, Err(FlashError::Unwritten { .. })))
        .collect();
    let same = |read: &Result<[u8; PAGE], FlashError>, byte: u8| *read == Ok([byte; PAGE]);
    let whole = found.len() == expected.len()
        && found.iter().zip(&expected).all(|(read, &byte)| same(read, byte));
    if whole {
        return true;
    }
    assert!(doubt, "{context}: {block:?} holds {} pages, not {expected:?}", found.len());
    // A write or an erase was interrupted: either the former content and a torn page, or no
    // readable page.
    let before = found.len() == expected.len() + 1
        && found.iter().zip(&expected).all(|(read, &byte)| same(read, byte));
    let nothing = found.iter().all(Result::is_err);
    let unsynced = cache == Cache::Volatile;
    assert!(before || nothing || unsynced, "{context}: {block:?} after a cut");
    share.blocks.remove(&block);
    // A worn-out device is not checked again.
    raw.erase_block(block).and_then(|()| raw.sync()).is_ok()
}

fn lives(cache: Cache) {
    let (mut cuts, mut exchanges) = (0, 0);
    for seed in seeds(0..120) {
        let mut rng = Rng::stream(seed, "monitor.cuts");
        let wear = GlobalWear { min_gap: 1, delta: 0.0, budget: 0.5 };
        let options = Options { timing: None, wear: Some(wear) };
        let memory = MemoryDevice::new(geometry(&mut rng), cache).unwrap();
        if seed % 2 == 0 {
            memory.fail_at_random(0.0003, seed);
        }
        let memory = SharedMemory::from(memory);
        let open = |context: &str| match Device::open(memory.clone(), options) {
            Ok(device) => Some(Life { device, raws: BTreeMap::new() }),
            Err(FlashError::Medium(MediumError::PowerLost)) => None,
            Err(error) => panic!("{context}: {error}"),
        };
        drop(Device::format(memory.clone(), options).unwrap());
        let mut model = Model::default();
        'life: for turn in 0..60 {
            let context = format!("seed {seed} turn {turn}");
            // Power may fail while the device is opened, and in the work that follows.
            let far = if cache == Cache::Volatile { 400 } else { 120 };
            memory.cut_power_after(rng.below(far));
            if let Some(mut life) = open(&context) {
                attach_all(&mut life, &model);
                for _ in 0..300 {
                    match step(&mut life, &mut model, &mut rng, cache) {
                        Ok(()) => {}
                        Err(FlashError::Medium(MediumError::PowerLost)) => break,
                        Err(FlashError::WornOut { .. } | FlashError::Tables { .. }) => break 'life,
                        Err(error) => panic!("{context}: {error}"),
                    }
                }
                exchanges += life.device.wear().exchanges;
            }
            cuts += u32::from(memory.lost_power());
            memory.restart(&mut rng);
            let mut life = open(&context).expect("power is on");
            if !check(&mut life, &mut model, cache, &context) {
                break;
            }
        }
    }
    assert!(!all_seeds() || cuts > 2500, "{cuts} cuts");
    assert!(!all_seeds() || exchanges > 20, "{exchanges} exchanges of LUNs");
}

#[test]
fn random_cuts_at_any_operation_lose_nothing() {
    lives(Cache::None);
}

/// Every step is synced here; losing unsynced operations is up to the levels above.
#[test]
fn random_cuts_with_a_cache_lose_nothing() {
    lives(Cache::Volatile);
}

/// Attaches to all shares without checking them.
fn attach_all(life: &mut Life, model: &Model) {
    for name in model.shares.keys() {
        let raw = Raw::open(life.device.attach(name).expect("not attached")).expect("raw");
        life.raws.insert(name.clone(), raw);
    }
}

/// The worst case of a device of N LUNs: all erases go to one share of one LUN. After K rounds, in
/// each of which every LUN has carried it once, the most worn LUN has at most (K + 1) / (K + 1/N)
/// times the mean.
#[test]
fn wear_over_luns_stays_within_its_bound() {
    const LUNS: u32 = 12;
    const GAP: f64 = 40.0;
    let geometry = DeviceGeometry {
        channels: LUNS,
        luns_per_channel: 1,
        blocks_per_lun: 16,
        pages_per_block: 16,
        page_size: 4096,
        oob_size: 0,
        max_open_blocks: None,
    };
    let memory = MemoryDevice::new(geometry, Cache::None).unwrap();
    let wear = GlobalWear { min_gap: GAP as u32, delta: 0.0, budget: 1.0 };
    let options = Options { timing: None, wear: Some(wear) };
    let device = Device::format(memory, options).unwrap();
    let share = device.allocate("hot", Allocation::new(Bytes(1), 0)).unwrap();
    let raw = Raw::open(share).unwrap();
    let blocks: Vec<_> = raw.blocks().collect();
    let mut worst_late: f64 = 0.0;
    let mut round = 0;
    while device.wear().exchanges < 22 * u64::from(LUNS) {
        for &block in &blocks {
            raw.write_page(block, &[round as u8; 4096]).unwrap();
            raw.erase_block(block).unwrap();
        }
        round += 1;
        let report = device.wear();
        let cycles = (report.mean / GAP).floor();
        if cycles >= 10.0 {
            // From K = (N - 1 - delta) / (N delta) = 9.1 on, delta = 0.1 holds.
            worst_late = worst_late.max(report.max / report.mean);
        }
        let bound = (cycles + 1.0) / (cycles + 1.0 / f64::from(LUNS));
        let ratio = report.max / report.mean;
        // Periodic checks and block-by-block moves delay levelling.
        assert!(
            round < 10 || ratio <= bound * 1.05,
            "round {round}: {ratio} over {bound}, {report:?}"
        );
    }
    assert!(worst_late < 1.1 + 0.01, "{worst_late}");
    // Every block still holds its last data, or none: none was mixed up.
    let report = device.wear();
    assert!(report.erases * 10 < report.mean as u64 * u64::from(LUNS) * 16, "{report:?}");
}

/// On a medium without erase counts, the last erases are unknown after a kill: levelling may
/// progress less, and never exceeds its budget.
#[test]
fn the_budget_of_levelling_outlives_a_process() {
    let geometry = DeviceGeometry {
        channels: 4,
        luns_per_channel: 1,
        blocks_per_lun: 16,
        pages_per_block: 4,
        page_size: 1024,
        oob_size: 0,
        max_open_blocks: None,
    };
    let wear = GlobalWear { min_gap: 8, delta: 0.0, budget: 0.1 };
    let options = Options { timing: None, wear: Some(wear) };
    for each in [5, 40, 300] {
        let memory = MemoryDevice::new(geometry, Cache::None).unwrap();
        let mut device = Device::format(memory, options).unwrap();
        drop(device.allocate("hot", Allocation::new(Bytes(1), 0)).unwrap());
        let (mut erases, mut spent) = (0, 0);
        while erases < 6000 {
            device = Device::open(device.into_medium().unwrap(), options).unwrap();
            let raw = Raw::open(device.attach("hot").unwrap()).unwrap();
            for _ in 0..each {
                let block = erases as u32 % raw.geometry().blocks_per_lun;
                raw.erase_block(Address { block, ..Address::default() }).unwrap();
                erases += 1;
            }
            spent += device.own_counts().erases[prism_nand::Cause::Wear];
            let known = device.wear().erases;
            assert_eq!(known, spent, "{each} a life");
            assert!(known as f64 <= 0.1 * f64::from(erases) + 2.0, "{known} of {erases}");
        }
        let report = device.wear();
        assert!(each < 16 || report.exchanges > 10, "{each} a life: {report:?}");
    }
}

/// Without levelling the same ends with one LUN worn and the others new.
#[test]
fn without_levelling_one_lun_wears_alone() {
    let mut rng = Rng::stream(1, "monitor.plain");
    let memory = MemoryDevice::new(geometry(&mut rng), Cache::None).unwrap();
    let device = Device::format(memory, Options::default()).unwrap();
    let share = device.allocate("hot", Allocation::new(Bytes(1), 0)).unwrap();
    let raw = Raw::open(share).unwrap();
    for _ in 0..100 {
        raw.erase_block(Address::default()).unwrap();
    }
    let report = device.wear();
    assert!(report.max > 3.0 * report.mean.max(1.0) && report.exchanges == 0, "{report:?}");
}

/// A used device, even one with torn pages, is empty after it is formatted.
#[test]
fn random_devices_are_empty_after_they_are_formatted() {
    for seed in seeds(0..40) {
        let mut rng = Rng::stream(seed, "monitor.format");
        let memory: SharedMemory =
            MemoryDevice::new(geometry(&mut rng), Cache::Volatile).unwrap().into();
        for round in 0..3 {
            let device = Device::format(memory.clone(), Options::default()).unwrap();
            let all = Bytes(device.lun_capacity().0 * u64::from(device.free_luns()));
            let raw = Raw::open(device.allocate("all", Allocation::new(all, 0)).unwrap()).unwrap();
            let blocks: Vec<_> = raw.blocks().collect();
            for &block in &blocks {
                assert_eq!(raw.write_pointer(block), Ok(0), "seed {seed} round {round}");
                raw.write_page(block, &[1; PAGE]).unwrap();
            }
            // Each erase is an operation or more, so that power goes in one of them.
            memory.cut_power_after(rng.below(blocks.len().min(20) as u64));
            let ended = blocks.iter().find_map(|&block| raw.erase_block(block).err());
            assert!(ended.is_some(), "power went");
            memory.restart(&mut rng);
        }
    }
}

/// A share with the maximum of open blocks leaves two to the monitor: the block of its journal, and
/// the target of a move. Blocks that power or other failures left partly written must not count.
#[test]
fn random_failures_leave_blocks_that_do_not_count_as_open() {
    for seed in seeds(0..300) {
        let mut rng = Rng::stream(seed, "monitor.open");
        let geometry =
            DeviceGeometry { blocks_per_lun: 40, max_open_blocks: Some(4), ..geometry(&mut rng) };
        let memory = MemoryDevice::new(geometry, Cache::None).unwrap();
        memory.fail_at_random(0.002, seed);
        let memory = SharedMemory::from(memory);
        let device = Device::format(memory.clone(), Options::default()).unwrap();
        let wanted = Allocation { open_blocks: Some(2), ..Allocation::new(Bytes(1), 0) };
        drop(device.allocate("raw", wanted).unwrap());
        drop(device);
        'life: for turn in 0..40 {
            let device = Device::open(memory.clone(), Options::default()).unwrap();
            let raw = Raw::open(device.attach("raw").unwrap()).unwrap();
            let blocks: Vec<_> = raw.blocks().take(2).collect();
            for step in 0..20 {
                let block = blocks[step % 2];
                let page = raw.write_pointer(block).unwrap();
                let full = page == geometry.pages_per_block;
                let done = if full {
                    raw.erase_block(block)
                } else {
                    raw.write_page(block.with_page(page), &[1; PAGE])
                };
                match done {
                    Ok(()) => {}
                    Err(FlashError::WornOut { .. } | FlashError::Tables { .. }) => break 'life,
                    Err(error) => panic!("seed {seed} turn {turn} step {step}: {error}"),
                }
            }
        }
    }
}

/// A volatile cache may forget that a block was filled, finished or erased. After a power failure,
/// a share must not have more open blocks than allowed, or writes of others would be refused.
#[test]
fn random_losses_of_a_cache_open_no_more_blocks_than_allowed() {
    for seed in seeds(0..60) {
        let mut rng = Rng::stream(seed, "monitor.forgotten");
        let geometry = DeviceGeometry { max_open_blocks: Some(6), ..geometry(&mut rng) };
        let memory: SharedMemory = MemoryDevice::new(geometry, Cache::Volatile).unwrap().into();
        let device = Device::format(memory.clone(), Options::default()).unwrap();
        for (name, open_blocks) in [("careless", Some(3)), ("other", Some(1))] {
            let wanted = Allocation { open_blocks, ..Allocation::new(Bytes(1), 0) };
            drop(device.allocate(name, wanted).unwrap());
        }
        drop(device);
        for turn in 0..10 {
            let context = format!("seed {seed} turn {turn}");
            let device = Device::open(memory.clone(), Options::default()).unwrap();
            let raw = Raw::open(device.attach("careless").unwrap()).unwrap();
            let other = Raw::open(device.attach("other").unwrap()).unwrap();
            let first = Address::default();
            other.erase_block(first).unwrap_or_else(|e| panic!("{context}: {e}"));
            other.write_page(first, &[1; PAGE]).unwrap_or_else(|e| panic!("{context}: {e}"));
            let all: Vec<_> = raw.blocks().collect();
            for &block in &all {
                raw.erase_block(block).unwrap();
            }
            raw.sync().unwrap();
            // Closes and opens blocks and promises nothing.
            for &block in &all {
                raw.write_page(block, &[2; PAGE]).unwrap_or_else(|e| panic!("{context}: {e}"));
                match rng.below(3) {
                    0 => raw.erase_block(block).unwrap(),
                    1 => raw.finish_block(block).unwrap(),
                    _ => {
                        for page in 1..geometry.pages_per_block {
                            raw.write_page(block.with_page(page), &[2; PAGE]).unwrap();
                        }
                    }
                }
            }
            memory.restart(&mut rng);
        }
    }
}

/// A device with failed blocks can be formatted: they are hidden again.
#[test]
fn random_failed_blocks_stay_hidden_after_a_format() {
    for seed in seeds(0..40) {
        let mut rng = Rng::stream(seed, "monitor.format.bad");
        let geometry = geometry(&mut rng);
        let memory: SharedMemory = MemoryDevice::new(geometry, Cache::None).unwrap().into();
        let all = |device: &Device| {
            let all = Bytes(device.lun_capacity().0 * u64::from(device.free_luns()));
            Raw::open(device.allocate("all", Allocation::new(all, 0)).unwrap()).unwrap()
        };
        let write = |raw: &Raw| {
            for block in raw.blocks() {
                assert_eq!(raw.write_pointer(block), Ok(0), "seed {seed}");
                let done = raw.write_page(block, &[1; PAGE]);
                done.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            }
        };
        let device = Device::format(memory.clone(), Options::default()).unwrap();
        write(&all(&device));
        let block = rng.below(u64::from(geometry.blocks())) as u32;
        memory.wear_out(block);
        let again = Device::format(memory.clone(), Options::default());
        let device = again.unwrap_or_else(|error| panic!("seed {seed}, block {block}: {error}"));
        write(&all(&device));
        drop(device);
        let device = Device::open(memory, Options::default()).unwrap();
        let raw = Raw::open(device.attach("all").unwrap()).unwrap();
        assert!(raw.blocks().all(|block| raw.write_pointer(block) == Ok(1)), "seed {seed}");
    }
}

/// A block with only a torn page is empty after levelling has moved it, and does not count as
/// partly written any more.
#[test]
fn a_moved_block_without_pages_is_not_open() {
    let geometry = DeviceGeometry {
        channels: 1,
        luns_per_channel: 2,
        blocks_per_lun: 40,
        pages_per_block: 4,
        page_size: PAGE as u32,
        oob_size: 0,
        max_open_blocks: Some(6),
    };
    let memory: SharedMemory = MemoryDevice::new(geometry, Cache::None).unwrap().into();
    let wear = GlobalWear { min_gap: 1, delta: 0.0, budget: 10.0 };
    let options = Options { timing: None, wear: Some(wear) };
    let device = Device::format(memory.clone(), options).unwrap();
    let wanted = Allocation { open_blocks: Some(2), ..Allocation::new(Bytes(1), 0) };
    let raw = Raw::open(device.allocate("raw", wanted).unwrap()).unwrap();
    let at = |block| Address { block, ..Address::default() };
    memory.cut_power_after(0);
    raw.write_page(at(1), &[1; PAGE]).unwrap_err();
    drop((raw, device));
    memory.restart(&mut Rng::stream(1, "monitor.torn"));
    let device = Device::open(memory, options).unwrap();
    let raw = Raw::open(device.attach("raw").unwrap()).unwrap();
    assert_eq!(raw.write_pointer(at(1)), Ok(1));
    for _ in 0..400 {
        raw.erase_block(at(0)).unwrap();
    }
    assert!(device.wear().exchanges > 0);
    raw.erase_block(at(1)).unwrap();
    for block in [2, 3] {
        raw.write_page(at(block), &[1; PAGE]).unwrap();
    }
}

/// A free LUN with a block that cannot be erased any more is skipped, and no longer counted as
/// free.
#[test]
fn worn_out_luns_are_not_allocated() {
    let mut rng = Rng::stream(9, "monitor.worn");
    let memory: SharedMemory = MemoryDevice::new(geometry(&mut rng), Cache::None).unwrap().into();
    let device = Device::format(memory.clone(), Options::default()).unwrap();
    let luns = device.free_luns();
    let share = device.allocate("worn", Allocation::new(Bytes(1), 0)).unwrap();
    let raw = Raw::open(share).unwrap();
    for block in raw.blocks() {
        raw.write_page(block, &[1; PAGE]).unwrap();
    }
    let lun = device.shares()[0].luns[0];
    let per_lun = device.geometry().blocks_per_lun;
    for block in lun * per_lun..(lun + 1) * per_lun {
        memory.wear_out(block);
    }
    raw.into_share().release().unwrap();
    assert_eq!(device.free_luns(), luns - 1);
    let all = Bytes(device.lun_capacity().0 * u64::from(luns - 1));
    let share = device.allocate("others", Allocation::new(all, 0)).unwrap();
    assert_eq!(share.geometry().unwrap().luns, luns - 1);
    let more = device.allocate("more", Allocation::new(Bytes(1), 0));
    assert!(matches!(more, Err(FlashError::NoLuns { asked: 1, free: 0 })), "{more:?}");
}
