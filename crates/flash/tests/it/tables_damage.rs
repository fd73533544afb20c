//! The monitor's tables on a device whose pages are damaged.

use std::sync::Arc;

use prism_base::{Bytes, Rng};
use prism_flash::journal::order_of;
use prism_flash::{Allocation, Device, DeviceGeometry, Medium, Options, PageState};
use prism_testkit::seeds;

use crate::wrapped::{Damage, Wrapped};

const PAGE: usize = 512;

fn geometry(rng: &mut Rng) -> DeviceGeometry {
    DeviceGeometry {
        channels: 1 + rng.below(2) as u32,
        luns_per_channel: 2,
        blocks_per_lun: 20,
        pages_per_block: 2 + rng.below(4) as u32,
        page_size: PAGE as u32,
        oob_size: 0,
        max_open_blocks: None,
    }
}

/// The pages of the journal. Nothing else is written in these tests.
fn journal(medium: &Wrapped) -> Vec<(u32, u32)> {
    let geometry = *medium.geometry();
    let mut page_bytes = vec![0; PAGE];
    let mut pages = Vec::new();
    for block in 0..geometry.blocks() {
        for page in 0..geometry.pages_per_block {
            let state = medium.memory.read(block, page, 0, &mut page_bytes, &mut []).unwrap();
            if state == PageState::Written && order_of(&page_bytes).is_some() {
                pages.push((block, page));
            }
        }
    }
    pages
}

/// The names of the shares, with their LUNs.
fn shares(device: &Device) -> Vec<(String, usize)> {
    let shares = device.shares().into_iter();
    let mut shares: Vec<_> = shares.map(|share| (share.name, share.luns.len())).collect();
    shares.sort_unstable();
    shares
}

/// Changes the tables: a share comes, or goes.
fn change(device: &Device, rng: &mut Rng) {
    let shares = shares(device);
    if shares.is_empty() || (shares.len() < 2 && rng.chance(0.5)) {
        let name = format!("share {}", rng.next_u64());
        drop(device.allocate(&name, Allocation::new(Bytes(1), 0)).unwrap());
    } else {
        let name = &shares[rng.below(shares.len() as u64) as usize].0;
        device.attach(name).unwrap().release().unwrap();
    }
}

fn open(medium: &Arc<Wrapped>, context: &str) -> Device {
    let medium: Arc<dyn Medium> = Arc::<Wrapped>::clone(medium);
    Device::open(medium, Options::default()).unwrap_or_else(|error| panic!("{context}: {error}"))
}

fn random_damage(rng: &mut Rng) -> Damage {
    if rng.chance(0.5) { Damage::Found } else { Damage::Byte(rng.below(PAGE as u64) as usize) }
}

/// A device after some changes of its tables in several sessions, and its shares.
fn used(rng: &mut Rng, context: &str) -> (Arc<Wrapped>, Vec<(String, usize)>) {
    let medium = Wrapped::new(geometry(rng));
    let made: Arc<dyn Medium> = Arc::<Wrapped>::clone(&medium);
    let mut device = Device::format(made, Options::default()).unwrap();
    for _ in 0..1 + rng.below(40) {
        change(&device, rng);
        if rng.chance(0.2) {
            drop(device);
            device = open(&medium, context);
        }
    }
    let known = shares(&device);
    (medium, known)
}

/// Each page of the journal, and each block of it, is damaged alone.
#[test]
fn random_tables_are_read_if_a_page_or_a_block_is_damaged() {
    for seed in seeds(0..40) {
        let mut rng = Rng::stream(seed, "tables.damage");
        let context = format!("seed {seed}");
        let (medium, known) = used(&mut rng, &context);
        let pages = journal(&medium);
        let blocks = pages.chunk_by(|a, b| a.0 == b.0).map(<[_]>::to_vec);
        let singles = pages.iter().map(|&page| vec![page]);
        for damaged in singles.chain(blocks) {
            let damage = damaged.iter().map(|&page| (page, random_damage(&mut rng)));
            *medium.damaged.lock().unwrap() = damage.collect();
            let context = format!("{context}: {:?}", medium.damaged.lock().unwrap());
            assert_eq!(shares(&open(&medium, &context)), known, "{context}");
        }
    }
}

/// One page is damaged before each session, which goes on from it and changes the tables.
#[test]
fn random_sessions_go_on_with_a_damaged_page() {
    for seed in seeds(0..40) {
        let mut rng = Rng::stream(seed, "tables.sessions");
        let (medium, mut known) = used(&mut rng, &format!("seed {seed}"));
        for session in 0..20 {
            let pages = journal(&medium);
            let page = pages[rng.below(pages.len() as u64) as usize];
            *medium.damaged.lock().unwrap() = [(page, random_damage(&mut rng))].into();
            let context = format!("seed {seed} session {session}: {:?}", medium.damaged);
            let device = open(&medium, &context);
            assert_eq!(shares(&device), known, "{context}");
            for _ in 0..rng.below(4) {
                change(&device, &mut rng);
            }
            known = shares(&device);
        }
    }
}

/// A device from before there were copies, and one whose second blocks are older: damage is an
/// error, and never taken for an older state.
#[test]
fn damage_without_copies_is_an_error() {
    let mut rng = Rng::stream(3, "tables.single");
    let (medium, known) = used(&mut rng, "made");
    let pages = journal(&medium);
    // Of each two blocks with the same pages, the second is erased.
    let mut orders: Vec<_> = Vec::new();
    let mut bytes = vec![0; PAGE];
    for &(block, page) in pages.iter().filter(|page| page.1 == 0) {
        medium.memory.read(block, page, 0, &mut bytes, &mut []).unwrap();
        let order = order_of(&bytes);
        if orders.contains(&order) {
            medium.memory.erase(block).unwrap();
        }
        orders.push(order);
    }
    assert_eq!(shares(&open(&medium, "erased")), known);
    let left = journal(&medium);
    assert_eq!(left.len() * 2, pages.len());
    for page in left {
        *medium.damaged.lock().unwrap() = [(page, Damage::Found)].into();
        let damaged: Arc<dyn Medium> = Arc::<Wrapped>::clone(&medium);
        let opened = Device::open(damaged, Options::default());
        assert!(opened.is_err(), "{page:?}");
    }
}
