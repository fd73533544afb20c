//! The object level compared with a map of byte arrays, through any power failure.

use prism_testkit::{all_seeds, seeds};
use std::collections::BTreeMap;

use prism_base::{Bytes, Nanos, Rng};
use prism_flash::object::{Attributes, ObjectId, ObjectStore};
use prism_flash::policy::Lifetime;
use prism_flash::{
    Allocation, Cache, Device, DeviceGeometry, FlashError, MediumError, MemoryDevice, Options,
    SharedMemory,
};
use prism_nand::{PageTimes, Timing};

fn geometry(rng: &mut Rng) -> DeviceGeometry {
    let limited = rng.chance(0.4);
    DeviceGeometry {
        channels: 1 + rng.below(2) as u32,
        luns_per_channel: 2,
        blocks_per_lun: 64,
        pages_per_block: [8, 16][rng.below(2) as usize],
        page_size: [512, 1024][rng.below(2) as usize],
        oob_size: [0, 64][rng.below(2) as usize],
        max_open_blocks: limited.then(|| 14 + rng.below(8) as u32),
    }
}

fn attributes(rng: &mut Rng) -> Attributes {
    Attributes {
        priority: rng.chance(0.3),
        read_only: false,
        cold: rng.chance(0.2),
        lifetime: Lifetime::ALL[rng.below(5) as usize],
    }
}

type State = Option<(Attributes, Vec<u8>)>;

/// The model of the store.
#[derive(Clone, Debug, Default)]
struct Model {
    now: BTreeMap<ObjectId, (Attributes, Vec<u8>)>,
    /// All states of each object since the last completed flush, that one first. A store that runs
    /// short of space flushes by itself, and an interrupted flush may have included some objects
    /// and not others.
    states: BTreeMap<ObjectId, Vec<State>>,
    /// Writes since then: object, offset, bytes.
    since: Vec<(ObjectId, u64, Vec<u8>)>,
}

impl Model {
    fn flushed(&mut self) {
        self.states = self.now.iter().map(|(&id, o)| (id, vec![Some(o.clone())])).collect();
        self.since.clear();
    }

    /// After a call: records the new states.
    fn note(&mut self) {
        for id in self.now.keys() {
            self.states.entry(*id).or_insert_with(|| vec![None]);
        }
        for (id, states) in &mut self.states {
            let now = self.now.get(id).cloned();
            if *states.last().expect("one at least") != now {
                states.push(now);
            }
        }
    }
}

/// One random call; its effect is recorded first, as power may fail during it.
fn step(store: &ObjectStore, model: &mut Model, rng: &mut Rng) -> Result<(), FlashError> {
    let ids: Vec<_> = model.now.keys().copied().collect();
    let pick = |rng: &mut Rng| ids.get(rng.below(ids.len().max(1) as u64) as usize).copied();
    match (rng.below(24), pick(rng)) {
        (0..3, _) if ids.len() < 12 => {
            let attributes = attributes(rng);
            let id = store.create(attributes)?;
            model.now.insert(id, (attributes, Vec::new()));
        }
        (3, Some(id)) => {
            store.delete(id)?;
            model.now.remove(&id);
        }
        (4, Some(id)) => {
            let size = rng.below(9000);
            // If it grows again, the truncated part is zero.
            model.since.push((id, size, vec![0; 20_000]));
            match store.truncate(id, size) {
                Err(FlashError::NoSpace { .. }) => {}
                done => {
                    done?;
                    model.now.get_mut(&id).expect("known").1.resize(size as usize, 0);
                }
            }
        }
        (5, Some(id)) => {
            let attributes = attributes(rng);
            store.set_attributes(id, attributes)?;
            model.now.get_mut(&id).expect("known").0 = attributes;
        }
        (6 | 7, _) => {
            store.flush()?;
            model.flushed();
        }
        (8..12, Some(id)) => {
            let offset = rng.below(9000);
            let mut read = vec![7; rng.below(3000) as usize];
            let len = store.read(id, offset, &mut read)?;
            let bytes = &model.now[&id].1;
            let from = (offset as usize).min(bytes.len());
            let to = (from + read.len()).min(bytes.len());
            assert!(read[..len] == bytes[from..to], "{id:?} from {offset}");
        }
        (12, _) => drop(store.idle(1)?),
        (_, Some(id)) => write(store, model, rng, id)?,
        _ => {}
    }
    Ok(())
}

fn write(
    store: &ObjectStore,
    model: &mut Model,
    rng: &mut Rng,
    id: ObjectId,
) -> Result<(), FlashError> {
    let bytes = &model.now[&id].1;
    let append = rng.chance(0.4);
    let offset = if append { bytes.len() as u64 } else { rng.below(8000) };
    let data = vec![1 + rng.below(255) as u8; rng.below(2500) as usize];
    model.since.push((id, offset, data.clone()));
    let done = match append {
        true => store.append(id, &data).map(drop),
        false => store.write(id, offset, &data),
    };
    match done {
        Err(FlashError::NoSpace { .. }) => return Ok(()),
        done => done?,
    }
    let bytes = &mut model.now.get_mut(&id).expect("known").1;
    let end = offset as usize + data.len();
    if bytes.len() < end && !data.is_empty() {
        bytes.resize(end, 0);
    }
    if !data.is_empty() {
        bytes[offset as usize..end].copy_from_slice(&data);
    }
    Ok(())
}

fn open(memory: &SharedMemory, format: bool) -> Result<ObjectStore, FlashError> {
    let medium = memory.clone();
    let share = if format {
        let device = Device::format(medium, Options::default())?;
        let capacity = Bytes(device.lun_capacity().0 * u64::from(device.free_luns()));
        device.allocate("objects", Allocation::new(capacity, 0))?
    } else {
        Device::open(medium, Options::default())?.attach("objects")?
    };
    ObjectStore::open(share)
}

/// Every object is in one of its states since the last flush, except that bytes written since may
/// be old or new.
fn check(store: &ObjectStore, model: &Model, context: &str) {
    let listed: BTreeMap<_, _> = store.list().into_iter().map(|info| (info.id, info)).collect();
    for id in listed.keys() {
        assert!(model.states.contains_key(id), "{context}: {id:?} came from nowhere");
    }
    for (&id, states) in &model.states {
        let Some(info) = listed.get(&id) else {
            assert!(states.contains(&None), "{context}: {id:?} is gone");
            continue;
        };
        let mut found = vec![0; info.size as usize];
        store.read(id, 0, &mut found).unwrap_or_else(|error| panic!("{context}: {error}"));
        let newer = |at: usize| {
            model.since.iter().any(|(of, offset, data)| {
                let span = *offset as usize..*offset as usize + data.len();
                *of == id && span.contains(&at) && data[at - span.start] == found[at]
            })
        };
        let is = |state: &State| {
            state.as_ref().is_some_and(|(attributes, bytes)| {
                *attributes == info.attributes
                    && bytes.len() == found.len()
                    && (0..bytes.len()).all(|at| bytes[at] == found[at] || newer(at))
            })
        };
        let sizes: Vec<_> = states.iter().flatten().map(|(_, bytes)| bytes.len()).collect();
        assert!(states.iter().any(is), "{context}: {info:?} is none of {sizes:?}");
    }
}

#[test]
fn random_objects_equal_byte_arrays() {
    for seed in seeds(0..20) {
        let mut rng = Rng::stream(seed, "object.model");
        let memory = MemoryDevice::new(geometry(&mut rng), Cache::None).unwrap().into();
        let store = open(&memory, true).unwrap();
        let mut model = Model::default();
        for _ in 0..1500 {
            step(&store, &mut model, &mut rng).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            model.note();
        }
        store.assert_consistent();
        store.flush().unwrap();
        model.flushed();
        check(&store, &model, &format!("seed {seed}"));
    }
}

fn lives(label: &str, cache: Cache, devices: u64, turns: u32) -> u32 {
    let mut cuts = 0;
    for seed in seeds(0..devices) {
        let mut rng = Rng::stream(seed, label);
        let memory: SharedMemory = MemoryDevice::new(geometry(&mut rng), cache).unwrap().into();
        drop(open(&memory, true).unwrap());
        let mut model = Model::default();
        for turn in 0..turns {
            let context = format!("{label}, seed {seed}, turn {turn}");
            let far = if rng.chance(0.2) { 2000 } else { 100 };
            memory.cut_power_after(rng.below(far));
            match open(&memory, false) {
                Ok(store) => {
                    for _ in 0..300 {
                        let done = step(&store, &mut model, &mut rng);
                        model.note();
                        match done {
                            Ok(()) => {}
                            Err(FlashError::Medium(MediumError::PowerLost)) => break,
                            Err(error) => panic!("{context}: {error}"),
                        }
                    }
                }
                Err(FlashError::Medium(MediumError::PowerLost)) => {}
                Err(error) => panic!("{context}: {error}"),
            }
            cuts += u32::from(memory.lost_power());
            memory.restart(&mut rng);
            let store = open(&memory, false).unwrap_or_else(|e| panic!("{context}: {e}"));
            store.assert_consistent();
            check(&store, &model, &context);
            // The present state is durable from here on.
            model.now.clear();
            for info in store.list() {
                let mut bytes = vec![0; info.size as usize];
                store.read(info.id, 0, &mut bytes).unwrap();
                model.now.insert(info.id, (info.attributes, bytes));
            }
            model.flushed();
        }
    }
    cuts
}

#[test]
fn random_cuts_of_objects_tear_operations() {
    let cuts = lives("object.torn", Cache::None, 30, 60);
    assert!(!all_seeds() || cuts > 1_350, "{cuts} cuts");
}

#[test]
fn random_losses_of_a_cache_keep_objects() {
    let cuts = lives("object.cache", Cache::Volatile, 30, 60);
    assert!(!all_seeds() || cuts > 1_350, "{cuts} cuts");
}

fn timed_store(bandwidth: Option<u64>) -> ObjectStore {
    let geometry = DeviceGeometry {
        channels: 2,
        luns_per_channel: 2,
        blocks_per_lun: 40,
        pages_per_block: 16,
        page_size: 4096,
        oob_size: 64,
        max_open_blocks: None,
    };
    let timing = Timing {
        t_read: PageTimes::uniform(Nanos(50_000)),
        t_program: PageTimes::uniform(Nanos(500_000)),
        t_erase: Nanos(3_000_000),
        t_command: Nanos(100),
        bus_bytes_per_second: Some(400_000_000),
    };
    let memory = MemoryDevice::new(geometry, Cache::None).unwrap();
    let options = Options { timing: Some(timing), wear: None };
    let device = Device::format(memory, options).unwrap();
    let capacity = Bytes(device.lun_capacity().0 * 4);
    let wanted = Allocation { bandwidth, ..Allocation::new(capacity, 0) };
    ObjectStore::open(device.allocate("objects", wanted).unwrap()).unwrap()
}

/// Mean time of a write of one page, in nanoseconds, to a normal object and to one with priority,
/// written alternately to a store that has to clean all the time.
fn turns(store: &ObjectStore) -> [f64; 2] {
    let objects = [false, true].map(|priority| {
        let id = store.create(Attributes { priority, ..Attributes::default() }).unwrap();
        let size = store.capacity().1 / 5 * 2 / 4096 * 4096;
        store.write(id, 0, &vec![1; size as usize]).unwrap();
        (id, size / 4096)
    });
    store.flush().unwrap();
    let mut rng = Rng::stream(1, "object.priority");
    let mut spent = [0.0; 2];
    for turn in 0..8000 {
        let (id, pages) = objects[turn % 2];
        let before = store.share().now().unwrap();
        store.write(id, rng.below(pages) * 4096, &[2; 4096]).unwrap();
        spent[turn % 2] += store.share().now().unwrap().since(before).0 as f64 / 4000.0;
        // The application does something else, too.
        store.share().pass(Nanos(600_000)).unwrap();
    }
    let copied = store.share().counts().unwrap().programs[prism_nand::Cause::Gc];
    assert!(copied > 1000, "{copied} pages copied");
    spent
}

#[test]
fn objects_with_priority_wait_less_for_cleaning() {
    let [normal, priority] = turns(&timed_store(None));
    assert!(priority * 1.2 < normal, "{priority} ns with priority, {normal} ns without");
}

#[test]
fn objects_with_priority_ignore_the_bandwidth_limit() {
    let store = timed_store(Some(2_000_000));
    let [normal, priority] = turns(&store);
    assert!(priority * 2.0 < normal, "{priority} ns with priority, {normal} ns without");
}
