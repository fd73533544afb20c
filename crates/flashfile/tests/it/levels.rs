//! The monitor and the levels on a device in a file: shares, their data and erase counts survive a
//! clean close, a kill and a power failure.

use prism_testkit::{all_seeds, seeds};
use std::collections::BTreeMap;
use std::sync::Arc;

use prism_base::{Bytes, Rng};
use prism_flash::policy::{Cleaning, Mapping, Policy, RangeConfig};
use prism_flash::raw::{Address, Command, Raw};
use prism_flash::{
    Allocation, Cache, Device, DeviceGeometry, FlashError, GlobalWear, KvStore, Medium,
    MemoryDevice, Options,
};
use prism_flashfile::{FlashFile, SimulatedFile};

const GEOMETRY: DeviceGeometry = DeviceGeometry {
    channels: 2,
    luns_per_channel: 2,
    blocks_per_lun: 24,
    pages_per_block: 4,
    page_size: 1024,
    oob_size: 64,
    max_open_blocks: None,
};

/// How a session ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Clean,
    Kill,
    Power,
}

const ENDS: [End; 3] = [End::Clean, End::Kill, End::Power];

fn open(file: &SimulatedFile) -> Result<Device, FlashError> {
    let medium = FlashFile::open_simulated(file).map_err(|error| {
        // Files are never damaged: the only error is lost power.
        assert!(file.lost_power(), "{error}");
        FlashError::Medium(prism_flash::MediumError::PowerLost)
    })?;
    Device::open(medium, Options::default())
}

fn end(file: &SimulatedFile, rng: &mut Rng, end: End) {
    match end {
        End::Clean => {}
        End::Kill => file.kill(),
        End::Power => file.restart(rng),
    }
}

/// Two stores on shares of one device, and their possible contents.
struct World {
    seed: u64,
    rng: Rng,
    file: SimulatedFile,
    stores: Option<(Policy, KvStore)>,
    /// By row or key: the durable value, and all values written since.
    rows: BTreeMap<u64, Vec<u8>>,
    pairs: BTreeMap<u64, Vec<u8>>,
}

const ROWS: u64 = 40;
const KEYS: u64 = 15;

impl World {
    fn new(seed: u64) -> Self {
        let file = SimulatedFile::new();
        let medium = FlashFile::create_simulated(&file, GEOMETRY).unwrap();
        let device = Device::format(medium, Options::default()).unwrap();
        let lun = device.lun_capacity().0;
        let rows = device.allocate("rows", Allocation::new(Bytes(2 * lun), 0)).unwrap();
        let pairs = device.allocate("pairs", Allocation::new(Bytes(2 * lun), 0)).unwrap();
        let policy = Policy::open(rows).unwrap();
        let range = RangeConfig::new(Mapping::Page, Cleaning::Greedy);
        policy.configure(0, ROWS * 1024, range).unwrap();
        let stores = Some((policy, KvStore::open(pairs).unwrap()));
        let rng = Rng::stream(seed, "levels");
        Self { seed, rng, file, stores, rows: BTreeMap::new(), pairs: BTreeMap::new() }
    }

    fn step(&mut self) -> Result<(), FlashError> {
        let (policy, store) = self.stores.as_ref().expect("open");
        let value = self.rng.below(255) as u8 + 1;
        match self.rng.below(24) {
            0 => {
                policy.flush()?;
                self.rows.values_mut().for_each(|all| drop(all.drain(..all.len() - 1)));
            }
            1 => {
                store.flush()?;
                self.pairs.values_mut().for_each(|all| drop(all.drain(..all.len() - 1)));
            }
            2..14 => {
                let row = self.rng.below(ROWS);
                self.rows.entry(row).or_insert_with(|| vec![0]).push(value);
                policy.write(row * 1024, &[value; 1024])?;
            }
            _ => {
                let key = self.rng.below(KEYS);
                self.pairs.entry(key).or_insert_with(|| vec![0]).push(value);
                store.set(&key.to_le_bytes(), &[value; 200])?;
            }
        }
        Ok(())
    }

    fn reopen(&mut self) -> Result<(), FlashError> {
        self.stores = None;
        let device = open(&self.file)?;
        let policy = Policy::open(device.attach("rows")?)?;
        self.stores = Some((policy, KvStore::open(device.attach("pairs")?)?));
        Ok(())
    }

    /// Each row and each key has its durable value or one written since, which is durable from now
    /// on.
    fn check(&mut self) {
        let (policy, store) = self.stores.as_ref().expect("open");
        for (&row, allowed) in &mut self.rows {
            let mut page = [0; 1024];
            policy.read(row * 1024, &mut page).unwrap();
            assert!(allowed.contains(&page[0]), "seed {}: row {row}", self.seed);
            assert_eq!(page, [page[0]; 1024], "seed {}: row {row}", self.seed);
            *allowed = vec![page[0]];
        }
        for (&key, allowed) in &mut self.pairs {
            let value = store.get(&key.to_le_bytes()).unwrap();
            let first = value.as_ref().map_or(0, |value| value[0]);
            assert!(allowed.contains(&first), "seed {}: key {key}", self.seed);
            assert!(value.is_none_or(|value| value == [first; 200]), "seed {}", self.seed);
            *allowed = vec![first];
        }
        policy.flush().unwrap();
        store.flush().unwrap();
    }
}

#[test]
fn random_ends_lose_nothing_flushed_above_a_file() {
    let mut ended = 0;
    for seed in seeds(0..60) {
        let mut world = World::new(seed);
        for _ in 0..12 {
            let operations = world.rng.below(120);
            world.file.cut_power_after(operations);
            let steps = world.rng.below(60);
            for _ in 0..steps {
                if let Err(error) = world.step() {
                    assert!(world.file.lost_power(), "seed {seed}: {error}");
                }
                if world.file.lost_power() {
                    break;
                }
            }
            let lost = world.file.lost_power();
            let how = if lost { End::Power } else { ENDS[world.rng.below(3) as usize] };
            if how == End::Clean {
                world.file.cut_power_after(u64::MAX);
                world.stores = None;
            }
            end(&world.file, &mut world.rng, how);
            world.file.cut_power_after(world.rng.below(200));
            if let Err(error) = world.reopen() {
                assert!(world.file.lost_power(), "seed {seed}: {error}");
                world.file.restart(&mut world.rng);
                world.reopen().unwrap();
                ended += 1;
            }
            world.file.cut_power_after(u64::MAX);
            world.check();
            ended += 1;
        }
    }
    assert!(!all_seeds() || ended > 700, "{ended}");
}

/// Shares, their LUNs, erase counts, bad blocks and an incomplete exchange of LUNs.
#[test]
fn the_monitors_state_is_recovered() {
    for how in ENDS {
        let file = SimulatedFile::new();
        let medium = FlashFile::create_simulated(&file, GEOMETRY).unwrap();
        medium.mark_factory_bad(30);
        let device = Device::format(medium, Options::default()).unwrap();
        let lun = device.lun_capacity();
        let hot = Raw::open(device.allocate("hot", Allocation::new(lun, 0)).unwrap()).unwrap();
        let cold = Raw::open(device.allocate("cold", Allocation::new(lun, 0)).unwrap()).unwrap();
        let first = Address::default();
        cold.write_page(first, &[9; 1024]).unwrap();
        for round in 0..5 {
            for block in 0..hot.geometry().blocks_per_lun {
                hot.erase_block(Address { block, ..first }).unwrap();
                hot.write_page(Address { block, ..first }, &[round; 1024]).unwrap();
            }
        }
        hot.sync().unwrap();
        let policy = GlobalWear { min_gap: 1, delta: 0.0, budget: 1.0 };
        assert!(device.level_wear(policy, 3).unwrap(), "the LUNs have only begun to change");
        let before = (device.shares(), device.erase_counts(), device.bad_blocks());
        assert_eq!(before.2, [30]);
        assert!(before.1.iter().sum::<u32>() >= 5 * hot.geometry().blocks_per_lun);
        drop((hot, cold));
        let medium = device.into_medium().unwrap();
        if how == End::Clean {
            medium.into_any().downcast::<FlashFile>().unwrap().close().unwrap();
        } else {
            end(&file, &mut Rng::stream(1, "end"), how);
        }
        let device = open(&file).unwrap();
        assert_eq!(device.free_luns(), 2);
        let names = |shares: &[prism_flash::monitor::ShareInfo]| -> Vec<_> {
            shares.iter().map(|share| (share.name.clone(), share.luns.clone())).collect()
        };
        assert_eq!(names(&device.shares()), names(&before.0));
        if how == End::Power {
            // Erases after the last sync may be undone.
            let counts = device.erase_counts();
            assert!(counts.iter().zip(&before.1).all(|(found, noted)| found <= noted));
            assert!(counts.iter().sum::<u32>() + 4 > before.1.iter().sum());
        } else if how == End::Clean {
            assert_eq!(device.erase_counts(), before.1);
        }
        assert_eq!(device.bad_blocks(), before.2);
        // The exchange continues, and the data of both stays at its address.
        while device.level_wear(policy, 3).unwrap() {}
        for (name, byte) in [("hot", 4), ("cold", 9)] {
            let raw = Raw::open(device.attach(name).unwrap()).unwrap();
            let mut page = [0; 1024];
            raw.read_page(first, &mut page).unwrap();
            assert_eq!(page, [byte; 1024], "{name} after {how:?}");
        }
    }
}

/// Commands of one queue on one block take effect in order of submission.
#[test]
fn a_queued_read_precedes_later_changes_of_its_block() {
    let folder = tempfile::tempdir().unwrap();
    let geometry = DeviceGeometry { page_size: 4096, ..GEOMETRY };
    let medium = FlashFile::create(&folder.path().join("flash"), geometry).unwrap();
    let device = Device::format(medium, Options::default()).unwrap();
    let share = device.allocate("a", Allocation::new(device.lun_capacity(), 0)).unwrap();
    let raw = Raw::open(share).unwrap();
    let at = |block, page| Address { block, page, ..Address::default() };
    for block in 0..4 {
        for page in 0..4 {
            raw.write_page(at(block, page), &[(4 * block + page) as u8; 4096]).unwrap();
        }
    }
    raw.sync().unwrap();
    let mut queue = raw.queue(16);
    let read = |at| Command::read(at, vec![0; 4096]);
    queue.submit(read(at(1, 2)), 0).unwrap();
    queue.submit(read(at(0, 1)), 1).unwrap();
    queue.submit(Command::Erase { at: at(1, 0) }, 2).unwrap();
    queue.submit(read(at(1, 3)), 3).unwrap();
    queue.submit(Command::write(at(1, 0), vec![77; 4096]), 4).unwrap();
    queue.submit(read(at(1, 0)), 5).unwrap();
    let mut done = Vec::new();
    while let Some(completion) = queue.complete() {
        let byte = completion.data.first().copied();
        done.push((completion.tag, completion.result.is_ok(), byte));
    }
    let expected = [
        (0, true, Some(6)),
        (1, true, Some(1)),
        (2, true, None),
        (3, false, Some(0)),
        (4, true, Some(77)),
        (5, true, Some(77)),
    ];
    done.sort_unstable();
    assert_eq!(done, expected);
    // A vector longer than what is read ahead at once.
    let pages: Vec<_> = (0..40).map(|i| at([0, 2, 3][i % 3], (i % 4) as u32)).collect();
    let mut data = vec![0; 40 * 4096];
    raw.read_pages(&pages, &mut data).unwrap();
    for (page, bytes) in pages.iter().zip(data.chunks(4096)) {
        assert_eq!(bytes, [(4 * page.block + page.page) as u8; 4096]);
    }
}

/// Reads come as the disk brings them: each once, and with what its page holds.
#[test]
fn queued_reads_come_in_any_order_and_each_once() {
    let folder = tempfile::tempdir().unwrap();
    let geometry = DeviceGeometry { page_size: 4096, ..GEOMETRY };
    let medium = FlashFile::create(&folder.path().join("flash"), geometry).unwrap();
    let device = Device::format(medium, Options::default()).unwrap();
    let share = device.allocate("a", Allocation::new(device.lun_capacity(), 0)).unwrap();
    let raw = Raw::open(share).unwrap();
    let at = |number: u64| {
        let (block, page) = ((number / 4) as u32, (number % 4) as u32);
        Address { block, page, ..Address::default() }
    };
    for number in 0..16 {
        raw.write_page(at(number), &[number as u8; 4096]).unwrap();
    }
    let mut rng = Rng::stream(1, "queued reads");
    let mut queue = raw.queue(16);
    let (mut asked, mut written, mut come) = (Vec::new(), 16, 0);
    while come < 2000 {
        while asked.len() < 2000 && queue.len() < 16 {
            let tag = asked.len() as u64;
            // Now and then a page that is still on its way to the file.
            if rng.chance(0.01) && written < 28 {
                let data = vec![written as u8; 4096];
                queue.submit(Command::write(at(written), data), tag).unwrap();
                asked.push(Some(written));
                written += 1;
                continue;
            }
            let number = rng.below(written);
            let read = Command::read(at(number), vec![0xEE; 4096]);
            queue.submit(read, tag).unwrap();
            asked.push(Some(number));
        }
        let done = queue.complete().expect("some are in flight");
        let number = asked[done.tag as usize].take().expect("a command ends once");
        assert!(done.result.is_ok() && done.data == [number as u8; 4096], "page {number}");
        come += 1;
    }
    assert!(queue.complete().is_none());
}

/// The disk is full for the page, which the program reports, or for its page header, which the sync
/// reports.
#[test]
fn a_full_disk_loses_nothing_that_was_synced() {
    for left in [0, 1] {
        let file = SimulatedFile::new();
        let device = FlashFile::create_simulated(&file, GEOMETRY).unwrap();
        device.program(0, 0, &[1; 1024], b"kept").unwrap();
        device.sync().unwrap();
        file.fill_up_after(left);
        let programmed = device.program(0, 1, &[2; 1024], &[]);
        assert_eq!(programmed.is_ok(), left == 1, "{programmed:?}");
        let failed = programmed.and_then(|()| device.sync()).unwrap_err();
        assert!(failed.to_string().contains("the disk is full"), "{failed}");
        // It takes nothing more, and shows what it has.
        for refused in [device.program(1, 0, &[2; 1024], &[]), device.erase(0), device.finish(0)] {
            let text = refused.unwrap_err().to_string();
            assert!(text.contains("read-only") && text.contains("make room"), "{text}");
        }
        let mut page = [0; 1024];
        for (number, byte) in (0..device.write_pointer(0)).zip([1, 2]) {
            device.read(0, number, 0, &mut page, &mut []).unwrap();
            assert_eq!(page, [byte; 1024]);
        }
        drop(device);
        file.kill();
        let device = FlashFile::open_simulated(&file).unwrap();
        device.read(0, 0, 0, &mut page, &mut []).unwrap();
        assert_eq!((page, device.write_pointer(0)), ([1; 1024], 1));
        device.program(0, 1, &[3; 1024], &[]).unwrap();
        device.close().unwrap();
    }
}

/// On a file nothing is gained by writing to several LUNs at once, and reads are longer if data
/// that was written together is in one block.
#[test]
fn ranges_of_a_file_fill_one_block_after_the_other() {
    let die_groups = |medium: Arc<dyn Medium>| {
        let device = Device::format(medium, Options::default()).unwrap();
        let all = Bytes(4 * device.lun_capacity().0);
        let policy = Policy::open(device.allocate("a", Allocation::new(all, 0)).unwrap()).unwrap();
        let config = RangeConfig::new(Mapping::Page, Cleaning::Greedy);
        policy.configure(0, 128 << 10, config).unwrap();
        policy.ranges()[0].die_groups
    };
    let file = FlashFile::create_simulated(&SimulatedFile::new(), GEOMETRY).unwrap();
    assert_eq!(die_groups(Arc::new(file)), 1);
    assert!(die_groups(Arc::new(MemoryDevice::new(GEOMETRY, Cache::None).unwrap())) > 1);
}
