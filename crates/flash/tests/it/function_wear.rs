//! Wear levelling at the function level: it evens out wear, and no power failure changes the data
//! of an address.

use prism_testkit::{all_seeds, seeds};
use std::collections::BTreeMap;

use prism_base::{Bytes, Rng};
use prism_flash::function::{Channel, Function, Unit};
use prism_flash::raw::Address;
use prism_flash::{
    Allocation, Cache, Device, DeviceGeometry, FlashError, MediumError, MemoryDevice, Options,
    SharedMemory,
};

const PAGE: usize = 512;

fn geometry(max_open_blocks: Option<u32>) -> DeviceGeometry {
    DeviceGeometry {
        channels: 2,
        luns_per_channel: 1,
        blocks_per_lun: 20,
        pages_per_block: 4,
        page_size: PAGE as u32,
        oob_size: 0,
        max_open_blocks,
    }
}

fn open(memory: &SharedMemory, fresh: bool) -> Result<Function, FlashError> {
    let (medium, options) = (memory.clone(), Options::default());
    if fresh {
        let device = Device::format(medium, options)?;
        let capacity = Bytes(device.lun_capacity().0 * 2);
        Function::open(device.allocate("a", Allocation::new(capacity, 0))?)
    } else {
        Function::open(Device::open(medium, options)?.attach("a")?)
    }
}

/// The content of each block: a byte per page.
type Model = BTreeMap<Address, Vec<u8>>;

fn check(function: &Function, model: &Model, label: &str) {
    for (&at, content) in model {
        for (page, &byte) in (0..).zip(content) {
            let mut data = [0; PAGE];
            function.read(at.with_page(page), &mut data).unwrap_or_else(|error| {
                panic!("{label}: page {page} of {at:?}: {error}");
            });
            assert_eq!(data, [byte; PAGE], "{label}: page {page} of {at:?}");
        }
    }
}

/// Half of each LUN is written once, and a few blocks again and again.
fn hot_and_cold(function: &Function, rounds: u32, level: bool) -> (u32, u32) {
    let blocks = function.geometry().blocks();
    let mut cold = Model::new();
    for number in 0..blocks / 2 {
        let at = function.address_mapper(Channel::Any, Unit::Block).unwrap().at;
        function.write(at, &[number as u8; 4 * PAGE]).unwrap();
        cold.insert(at, vec![number as u8; 4]);
    }
    for round in 0..rounds {
        let channel = Channel::Number(round % 2);
        let at = function.address_mapper(channel, Unit::Block).unwrap().at;
        function.write(at, &[round as u8; 4 * PAGE]).unwrap();
        function.trim(at, Unit::Block).unwrap();
        if level && round % 50 == 0 {
            function.wear_level(4, 8).unwrap();
        }
    }
    check(function, &cold, "hot and cold");
    let wear = function.wear_level(0, 0).unwrap();
    assert!(wear.mean >= f64::from(wear.min) && wear.mean <= f64::from(wear.max));
    (wear.min, wear.max)
}

#[test]
fn levelling_evens_out_a_hot_and_a_cold_half() {
    let new = || {
        let memory = MemoryDevice::new(geometry(None), Cache::None).unwrap();
        let memory = SharedMemory::from(memory);
        (open(&memory, true).unwrap(), memory)
    };
    let (plain, _) = new();
    let (min, max) = hot_and_cold(&plain, 4000, false);
    assert!(min == 0 && max > 200, "without levelling {min} to {max}");
    let (level, memory) = new();
    let (min, max) = hot_and_cold(&level, 4000, true);
    assert!(max - min < 60, "with levelling {min} to {max}");
    // Each pair costs two erases, so levelling adds little wear.
    let device = level.share().device().clone();
    let own = device.own_counts().erases[prism_nand::Cause::Wear];
    assert!((10..400).contains(&own), "{own} erases for levelling");
    assert!(memory.erase_counts().all(|count| count < 400));
}

#[test]
fn a_gap_that_is_allowed_moves_nothing() {
    let memory = SharedMemory::from(MemoryDevice::new(geometry(None), Cache::None).unwrap());
    let function = open(&memory, true).unwrap();
    let cold = function.address_mapper(Channel::Number(0), Unit::Block).unwrap().at;
    function.write(cold, &[1; 2 * PAGE]).unwrap();
    while function.wear_level(0, 0).unwrap().max < 5 {
        let at = function.address_mapper(Channel::Number(0), Unit::Block).unwrap().at;
        function.write(at, &[2; PAGE]).unwrap();
        function.trim(at, Unit::Block).unwrap();
    }
    let before = memory.operations();
    let report = function.wear_level(8, 5).unwrap();
    assert_eq!((report.pairs.len(), report.min, report.max), (0, 0, 5));
    assert_eq!(memory.operations(), before);
    let report = function.wear_level(8, 4).unwrap();
    assert_eq!(report.pairs.len(), 1);
    assert_eq!(report.pairs[0].1, cold);
    // Cold data on a worn block is not moved again, and the block stays writable.
    assert_eq!(function.wear_level(8, 4).unwrap().pairs, []);
    function.write(cold.with_page(2), &[3; PAGE]).unwrap();
    check(&function, &Model::from([(cold, vec![1, 1, 3])]), "written on");
}

struct Life<'a> {
    function: Function,
    model: &'a mut Model,
    /// The block that is being written or trimmed.
    doubt: &'a mut Option<Address>,
}

/// Hot writes over cold data with much levelling, until power fails.
fn work(life: &mut Life, rng: &mut Rng) -> Result<(), FlashError> {
    let function = &life.function;
    for _ in 0..rng.below(60) {
        *life.doubt = None;
        match rng.below(10) {
            0..6 if life.model.len() < 9 => {
                let at = function.address_mapper(Channel::Any, Unit::Block)?.at;
                *life.doubt = Some(at);
                let byte = rng.below(256) as u8;
                // If few blocks may be partly written, blocks are written as a whole.
                let partly = function.geometry().max_open_blocks == u32::MAX;
                let pages = if partly { 1 + rng.below(4) as usize } else { 4 };
                function.write(at, &vec![byte; pages * PAGE])?;
                function.sync()?;
                life.model.insert(at, vec![byte; pages]);
            }
            6 => {
                function.wear_level(3, 0)?;
            }
            _ if life.model.len() > 5 => {
                let place = 5 + rng.below(life.model.len() as u64 - 5) as usize;
                let &at = life.model.keys().nth(place).expect("so many");
                *life.doubt = Some(at);
                function.trim(at, Unit::Block)?;
                life.model.remove(&at);
                function.drain()?;
                function.sync()?;
            }
            _ => {}
        }
    }
    *life.doubt = None;
    Ok(())
}

fn is_power_lost(error: &FlashError) -> bool {
    let text = error.to_string();
    matches!(error, FlashError::Medium(MediumError::PowerLost)) || text.contains("power")
}

/// Cuts power several times in the life of one device, mostly within an operation. Returns the
/// erases for levelling and the cuts within an operation.
fn lives(seed: u64, cache: Cache, max_open: Option<u32>, turns: u32) -> (u32, u32) {
    let rng = &mut Rng::stream(seed, "function.wear");
    let memory = MemoryDevice::new(geometry(max_open), cache).unwrap();
    let memory = SharedMemory::from(memory);
    let mut fresh = true;
    let (mut model, mut swaps, mut cuts) = (Model::new(), 0, 0);
    for cut in 0..turns {
        let label = format!("seed {seed}, {cache:?}, cut {cut}");
        let function = open(&memory, fresh).unwrap_or_else(|error| panic!("{label}: {error}"));
        fresh = false;
        check(&function, &model, &label);
        let mut doubt = None;
        for (at, _) in function.allocated().unwrap() {
            if !model.contains_key(&at) {
                function.trim(at, Unit::Block).unwrap_or_else(|error| panic!("{label}: {error}"));
            }
        }
        function.drain().unwrap();
        function.sync().unwrap();
        let device = function.share().device().clone();
        memory.cut_power_after(rng.below(60));
        let mut life = Life { function, model: &mut model, doubt: &mut doubt };
        if let Err(error) = work(&mut life, rng) {
            assert!(is_power_lost(&error), "{label}: {error}");
        }
        swaps += device.own_counts().erases[prism_nand::Cause::Wear] as u32;
        drop((life, device));
        if let Some(at) = doubt {
            // A write in flight was not durable; a trim in flight may be complete or not.
            model.remove(&at);
        }
        cuts += u32::from(memory.lost_power());
        memory.restart(rng);
    }
    (swaps, cuts)
}

#[test]
fn random_cuts_leave_the_data_of_every_address() {
    let (mut swaps, mut cuts) = (0, 0);
    for seed in seeds(0..30) {
        for (cache, max_open) in
            [(Cache::None, None), (Cache::Volatile, None), (Cache::None, Some(6))]
        {
            let life = lives(seed, cache, max_open, 60);
            (swaps, cuts) = (swaps + life.0, cuts + life.1);
        }
    }
    assert!(!all_seeds() || swaps > 1000, "{swaps} erases for levelling");
    assert!(!all_seeds() || cuts >= 4_600, "{cuts} cuts");
}

#[test]
fn one_cut_at_every_operation_of_a_swap() {
    for cut in 0.. {
        let memory = MemoryDevice::new(geometry(None), Cache::Volatile).unwrap();
        let memory = SharedMemory::from(memory);
        let function = open(&memory, true).unwrap();
        let mut model = Model::new();
        for (number, pages) in (0..).zip([4, 2, 1, 4]) {
            let at = function.address_mapper(Channel::Number(0), Unit::Block).unwrap().at;
            function.write(at, &vec![number; pages * PAGE]).unwrap();
            model.insert(at, vec![number; pages]);
        }
        for _ in 0..40 {
            let at = function.address_mapper(Channel::Number(0), Unit::Block).unwrap().at;
            function.write(at, &[9; PAGE]).unwrap();
            function.trim(at, Unit::Block).unwrap();
        }
        function.sync().unwrap();
        memory.cut_power_after(cut);
        let done = function.wear_level(4, 1);
        assert!(done.as_ref().is_ok_and(|done| done.pairs.len() > 1) || done.is_err(), "{cut}");
        drop(function);
        memory.restart(&mut Rng::stream(cut, "function.swap"));
        let function = open(&memory, false).unwrap();
        check(&function, &model, &format!("cut {cut}"));
        let wear = function.wear_level(4, 0).unwrap();
        assert!(wear.max >= wear.min, "{cut}");
        check(&function, &model, &format!("after cut {cut}"));
        if done.is_ok() {
            assert!(cut > 20, "{cut} operations for two swaps");
            break;
        }
    }
}
