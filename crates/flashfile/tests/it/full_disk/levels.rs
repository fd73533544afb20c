//! The levels on a full disk: after a flush has failed, no later flush succeeds.

use prism_base::Bytes;
use prism_flash::object::{Attributes, ObjectId, ObjectStore};
use prism_flash::policy::{Cleaning, Mapping, Policy, RangeConfig};
use prism_flash::raw::{Address, Raw};
use prism_flash::{
    Allocation, Device, DeviceGeometry, FlashError, KvStore, MediumError, Options, Share,
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

/// A write, and the flush that makes it durable.
trait Level {
    fn write(&self, number: u8) -> Result<(), FlashError>;
    fn flush(&self) -> Result<(), FlashError>;
}

impl Level for Raw {
    fn write(&self, number: u8) -> Result<(), FlashError> {
        let at = Address { block: u32::from(number / 4), ..Address::default() };
        self.write_page(at.with_page(u32::from(number % 4)), &[number; 1024])
    }

    fn flush(&self) -> Result<(), FlashError> {
        self.sync()
    }
}

impl Level for Policy {
    fn write(&self, number: u8) -> Result<(), FlashError> {
        Policy::write(self, u64::from(number) * 1024, &[number; 1024])
    }

    fn flush(&self) -> Result<(), FlashError> {
        Policy::flush(self)
    }
}

impl Level for KvStore {
    fn write(&self, number: u8) -> Result<(), FlashError> {
        self.set(&[number], &[number; 300])
    }

    fn flush(&self) -> Result<(), FlashError> {
        KvStore::flush(self)
    }
}

impl Level for (ObjectStore, ObjectId) {
    fn write(&self, number: u8) -> Result<(), FlashError> {
        self.0.append(self.1, &[number; 300]).map(drop)
    }

    fn flush(&self) -> Result<(), FlashError> {
        self.0.flush()
    }
}

fn device(file: &SimulatedFile) -> Device {
    let medium = FlashFile::create_simulated(file, GEOMETRY).unwrap();
    Device::format(Box::new(medium), Options::default()).unwrap()
}

/// Lets the disk fill up after every number of writes; returns how often the flush failed.
fn check(open: impl Fn(Share) -> Box<dyn Level>) -> u32 {
    let mut failures = 0;
    for left in 0..60 {
        let file = SimulatedFile::new();
        let device = device(&file);
        let wanted = Allocation::new(Bytes(3 * device.lun_capacity().0), 0);
        let level = open(device.allocate("a", wanted).unwrap());
        (0..5).for_each(|number| level.write(number).unwrap());
        level.flush().unwrap();
        file.fill_up_after(left);
        let written = (5..12).try_for_each(|number| level.write(number));
        let Err(first) = written.and_then(|()| level.flush()) else { continue };
        let FlashError::Medium(MediumError::DiskFull { what }) = &first else { panic!("{first}") };
        assert!(what.starts_with("simulated file: the disk is full"), "{what}");
        failures += 1;
        for _ in 0..3 {
            let again = level.flush();
            let Err(again) = again else {
                panic!("{left} writes: first {first}, then all is well")
            };
            assert!(again.to_string().contains("the disk is full"), "{left} writes: {again}");
        }
    }
    failures
}

#[test]
fn a_flush_that_failed_fails_again() {
    let raw = check(|share| Box::new(Raw::open(share).unwrap()));
    let kv = check(|share| Box::new(KvStore::open(share).unwrap()));
    let policy = check(|share| {
        let policy = Policy::open(share).unwrap();
        let range = RangeConfig::new(Mapping::Page, Cleaning::Greedy);
        policy.configure(0, 20 * 1024, range).unwrap();
        Box::new(policy)
    });
    let objects = check(|share| {
        let objects = ObjectStore::open(share).unwrap();
        let id = objects.create(Attributes::default()).unwrap();
        Box::new((objects, id))
    });
    let all = [raw, kv, policy, objects];
    assert!(all.iter().all(|&failures| failures > 5), "{all:?}");
}

/// A flush of one share makes the whole device durable; if it fails, flushes of other shares have
/// to fail too.
#[test]
fn a_flush_that_failed_for_another_fails_too() {
    let mut failures = 0;
    // Of a length such that no part of it stays buffered.
    for (left, len) in (0..2).flat_map(|left| (1..2100).step_by(19).map(move |len| (left, len))) {
        let file = SimulatedFile::new();
        let device = device(&file);
        let wanted = Allocation::new(device.lun_capacity(), 0);
        let stores =
            ["a", "b"].map(|name| KvStore::open(device.allocate(name, wanted).unwrap()).unwrap());
        stores[1].set(b"key", &vec![7; len]).unwrap();
        file.fill_up_after(left);
        let written = stores[0].set(b"key", &[8; 10]).and_then(|()| stores[0].flush());
        if written.is_err() {
            failures += 1;
            let said = stores[1].flush();
            let Err(said) = said else { panic!("{left} writes, {len} bytes: all is well") };
            assert!(said.to_string().contains("the disk is full"), "{left} writes: {said}");
        }
    }
    assert!(failures > 100, "{failures}");
}
