//! Vectored writes of each level: the same as the writes of their buffers, one after the other.

use prism_base::{Bytes, Nanos, Rng};
use prism_flash::function::{Channel, Function, Unit};
use prism_flash::policy::{Cleaning, Mapping, Policy, RangeConfig};
use prism_flash::raw::{Address, Raw};
use prism_flash::{
    Allocation, Cache, Device, DeviceGeometry, FlashError, MemoryDevice, Options, Share,
};
use prism_nand::{PageTimes, Timing};
use prism_testkit::seeds;

const PAGE: usize = 512;

fn share(page_size: u32, timing: Option<Timing>) -> Share {
    let geometry = DeviceGeometry {
        channels: 1,
        luns_per_channel: 1,
        blocks_per_lun: 40,
        pages_per_block: 8,
        page_size,
        oob_size: 128,
        max_open_blocks: None,
    };
    let memory = MemoryDevice::new(geometry, Cache::None).unwrap();
    let device = Device::format(memory, Options { timing, wear: None }).unwrap();
    device.allocate("a", Allocation::new(Bytes(1), 0)).unwrap()
}

fn shares() -> [Share; 2] {
    let timing = Timing {
        t_read: PageTimes::uniform(Nanos(50)),
        t_program: PageTimes::uniform(Nanos(600)),
        t_erase: Nanos(3_000),
        t_command: Nanos(1),
        bus_bytes_per_second: None,
    };
    [None, Some(timing)].map(|timing| share(PAGE as u32, timing))
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 100) as u8).collect()
}

#[test]
fn raw_pages_come_from_several_buffers() {
    for share in shares() {
        let raw = Raw::open(share).unwrap();
        let (at, all) = (Address::default(), bytes(7 * PAGE));
        let (first, rest) = all.split_at(2 * PAGE);
        raw.write_vectored(at, &[first, &[], rest]).unwrap();
        let mut page = [0; PAGE];
        for (number, expected) in (0..).zip(all.chunks(PAGE)) {
            raw.read_page(at.with_page(number), &mut page).unwrap();
            assert_eq!(page, expected);
        }
        let odd = raw.write_vectored(at.with_page(7), &[&page, &page[1..]]).unwrap_err();
        assert!(matches!((odd.index, odd.error), (1, FlashError::Unaligned { .. })));
        let beyond = raw.write_vectored(at.with_page(7), &[&page, &page]).unwrap_err();
        let out = FlashError::OutOfRange { what: "page", value: 8, count: 8 };
        assert_eq!((beyond.index, beyond.error), (1, out));
        assert_eq!(raw.write_pointer(at), Ok(7), "nothing was written");
        let again = raw.write_vectored(at, &[&page]).unwrap_err();
        assert_eq!(again.error, FlashError::OutOfOrder { page: 0, expected: 7 });
        raw.write_vectored(at.with_page(7), &[&page]).unwrap();
    }
}

#[test]
fn function_pages_come_from_several_buffers() {
    for share in shares() {
        let function = Function::open(share).unwrap();
        let at = function.address_mapper(Channel::Any, Unit::Block).unwrap().at;
        let all = bytes(6 * PAGE);
        let (first, rest) = all.split_at(PAGE);
        function.write_vectored(at, &[first, &[], rest]).unwrap();
        let mut found = vec![0; all.len()];
        function.read(at, &mut found).unwrap();
        assert!(found == all);
        let next = at.with_page(6);
        for parts in [&[first, &first[1..]][..], &[first, first, first]] {
            assert!(function.write_vectored(next, parts).is_err());
        }
        assert_eq!(function.write_pointer(at), Ok(6), "nothing was written");
        function.trim(at, Unit::Block).unwrap();
        function.drain().unwrap();
        assert!(function.write_vectored(at, &[first]).is_err(), "it is not allocated");
    }
}

/// Slices of any length are as one slice, and whole units cost no read.
#[test]
fn random_slices_are_one_write() {
    const BYTES: u64 = 40 * 4096;
    for seed in seeds(0..20) {
        let rng = &mut Rng::stream(seed, "vectored");
        let policy = Policy::open(share(4096, None)).unwrap();
        policy.configure(0, BYTES, RangeConfig::new(Mapping::Page, Cleaning::Greedy)).unwrap();
        let mut model = vec![0; BYTES as usize];
        for _ in 0..100 {
            let mut all = vec![0; rng.below(30_000) as usize];
            all.fill_with(|| rng.next_u64() as u8);
            let address = rng.below(BYTES - all.len() as u64 + 1);
            let mut parts: Vec<&[u8]> = Vec::new();
            let mut rest = &all[..];
            while !rest.is_empty() {
                let most = [10, 4096, 4097, 20_000][rng.below(4) as usize];
                let (part, left) = rest.split_at(rest.len().min(rng.below(most) as usize));
                parts.push(part);
                rest = left;
            }
            policy.write_vectored(address, &parts).unwrap();
            model[address as usize..][..all.len()].copy_from_slice(&all);
        }
        let mut found = vec![0; BYTES as usize];
        policy.read(0, &mut found).unwrap();
        assert!(found == model, "seed {seed}");
        policy.assert_consistent();
    }
    let policy = Policy::open(share(4096, None)).unwrap();
    policy.configure(0, BYTES, RangeConfig::new(Mapping::Page, Cleaning::Greedy)).unwrap();
    policy.write(0, &[1; 8 * 4096]).unwrap();
    policy.flush().unwrap();
    let reads = |policy: &Policy| policy.share().counts().unwrap().reads.total();
    let before = reads(&policy);
    policy.write_vectored(4096, &[&[2; 100], &[3; 3996], &[4; 4096], &[5; 4095], &[6]]).unwrap();
    assert_eq!(reads(&policy), before, "units of several slices are complete");
}
