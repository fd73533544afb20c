//! The device in memory keeps the promises of every medium: with operations that are complete at
//! once, and with any order of completion.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use prism_flash::{Cache, DeviceGeometry, Medium, MemoryDevice};
use prism_testkit::seeds;

use crate::conformance::{Candidate, check};

fn wear_out(medium: &Arc<dyn Medium>, block: u32) {
    let memory = Arc::clone(medium).into_any().downcast::<MemoryDevice>();
    memory.expect("made below").wear_out(block);
}

fn check_memory(cache: Cache, order: Option<u64>) {
    let make = |geometry: DeviceGeometry| -> Arc<dyn Medium> {
        let memory = MemoryDevice::new(geometry, cache).unwrap();
        if let Some(seed) = order {
            memory.complete_in_any_order(seed);
        }
        Arc::new(memory)
    };
    let name = &format!("memory, {cache:?}, order of seed {order:?}");
    let readable = &|_: BorrowedFd<'_>, _| unreachable!("a device in memory has no descriptor");
    check(&Candidate { name, make: &make, readable, wear_out: Some(&wear_out) });
}

#[test]
fn memory_conforms() {
    check_memory(Cache::None, None);
    check_memory(Cache::Volatile, None);
}

#[test]
fn random_orders_of_completion_conform() {
    for seed in seeds(0..8) {
        check_memory(if seed % 2 == 0 { Cache::None } else { Cache::Volatile }, Some(seed));
    }
}
