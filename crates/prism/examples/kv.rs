//! The key-value store: sessions of users, on a zoned device with 14 open zones.
//!
//! The store uses no out-of-band bytes and does not write in place, so a block may be a zone.

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::collections::BTreeMap;
use std::error::Error;

use prism::kv::KvStore;
use prism::{
    Allocation, Bytes, Cache, Device, DeviceGeometry, MemoryDevice, Options, Rng, SharedMemory,
};

const GEOMETRY: DeviceGeometry = DeviceGeometry {
    channels: 1,
    luns_per_channel: 4,
    blocks_per_lun: 32,
    pages_per_block: 16,
    page_size: 4096,
    oob_size: 0,
    max_open_blocks: Some(14),
};

fn key(user: u64) -> String {
    format!("user/{user:04}")
}

/// Runs the example.
///
/// # Errors
/// None, unless the library has a bug.
pub fn main() -> Result<(), Box<dyn Error>> {
    let memory = SharedMemory::from(MemoryDevice::new(GEOMETRY, Cache::Volatile)?);
    let device = Device::format(memory.clone(), Options::default())?;
    let capacity = Bytes(2 * device.lun_capacity().0);
    let store = KvStore::open(device.allocate("sessions", Allocation::new(capacity, 50))?)?;

    // Sessions are set and deleted until the store has been overwritten several times.
    let mut rng = Rng::stream(5, "kv");
    let mut sessions = BTreeMap::new();
    for _ in 0..20_000 {
        let user = rng.below(500);
        if rng.chance(0.2) {
            let had = store.delete(key(user).as_bytes())?;
            assert_eq!(had, sessions.remove(&user).is_some());
        } else {
            let session = vec![rng.below(256) as u8; rng.below(2000) as usize];
            store.set(key(user).as_bytes(), &session)?;
            sessions.insert(user, session);
        }
    }
    let stats = store.stats();
    assert_eq!(stats.records, sessions.len() as u64);

    // In the order of their keys.
    let first = store.scan(key(100).as_bytes()..key(200).as_bytes(), 3)?;
    let expected = sessions.range(100..200).take(3);
    assert!(first.into_iter().eq(expected.map(|(&user, s)| (key(user).into_bytes(), s.clone()))));

    // One flush for many sets. Power fails after it, and none of them is lost.
    store.flush()?;
    store.set(b"in doubt", b"set, and not flushed")?;
    drop((store, device));
    memory.restart(&mut rng);
    let device = Device::open(memory, Options::default())?;
    let store = KvStore::open(device.attach("sessions")?)?;
    for user in 0..500 {
        let found = store.get(key(user).as_bytes())?;
        assert_eq!(found.as_ref(), sessions.get(&user), "{}", key(user));
    }
    assert_eq!(store.get(b"in doubt")?, None);
    println!("{} sessions, write amplification {:.2}", stats.records, stats.write_amplification);
    Ok(())
}
