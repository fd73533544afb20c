//! The monitor's tables on a device whose pages are damaged.

use std::collections::BTreeSet;
use std::sync::Arc;

use prism_base::{Bytes, Rng};
use prism_flash::journal::order_of;
use prism_flash::{
    Allocation, Cache, Device, DeviceGeometry, FlashError, Medium, Options, PageState,
};
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
    journal_orders(medium).into_iter().map(|(block, page, _)| (block, page)).collect()
}

/// Its pages: block, page, and the place in the order in which they were written.
fn journal_orders(medium: &Wrapped) -> Vec<(u32, u32, (u64, u64))> {
    let geometry = *medium.geometry();
    let mut page_bytes = vec![0; PAGE];
    let mut pages = Vec::new();
    for block in 0..geometry.blocks() {
        for page in 0..geometry.pages_per_block {
            let state = medium.memory.read(block, page, 0, &mut page_bytes, &mut []).unwrap();
            if state == PageState::Written
                && let Some(order) = order_of(&page_bytes)
            {
                pages.push((block, page, order));
            }
        }
    }
    pages
}

/// The names of shares, with the number of their LUNs.
type Shares = Vec<(String, usize)>;

fn shares(device: &Device) -> Shares {
    let shares = device.shares().into_iter();
    let mut shares: Vec<_> = shares.map(|share| (share.name, share.luns.len())).collect();
    shares.sort_unstable();
    shares
}

/// Changes the tables: a share comes, or goes. Returns the shares after it.
fn try_change(device: &Device, rng: &mut Rng) -> (Shares, Result<(), FlashError>) {
    let mut after = shares(device);
    if after.is_empty() || (after.len() < 2 && rng.chance(0.5)) {
        let name = format!("share {}", rng.next_u64());
        let done = device.allocate(&name, Allocation::new(Bytes(1), 0)).map(drop);
        after.push((name, 1));
        after.sort_unstable();
        (after, done)
    } else {
        let (name, _) = after.remove(rng.below(after.len() as u64) as usize);
        (after, device.attach(&name).and_then(|share| share.release()))
    }
}

fn change(device: &Device, rng: &mut Rng) {
    let (after, done) = try_change(device, rng);
    done.unwrap();
    assert_eq!(shares(device), after);
}

fn open(medium: &Arc<Wrapped>, context: &str) -> Device {
    let medium: Arc<dyn Medium> = Arc::<Wrapped>::clone(medium);
    Device::open(medium, Options::default()).unwrap_or_else(|error| panic!("{context}: {error}"))
}

fn random_damage(rng: &mut Rng) -> Damage {
    if rng.chance(0.5) { Damage::Found } else { Damage::Byte(rng.below(PAGE as u64) as usize) }
}

/// A device after some changes of its tables in several sessions, and its shares.
fn used(rng: &mut Rng, context: &str) -> (Arc<Wrapped>, Shares) {
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

/// What happens to a device in a random life, besides loss of power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// Nothing else, on a device that counts its erases.
    Counting,
    /// Nothing else, on a device that does not.
    NotCounting,
    /// A block cannot be programmed or erased any more.
    Failure,
    /// The same on a device that limits how many blocks may be partly written.
    FailureWithLimit,
    /// A session of the version before there were copies: second blocks stay as they are.
    Former,
}

/// A device in a random life.
struct Life {
    medium: Arc<Wrapped>,
    event: Event,
    /// Second blocks of pairs, as far as their pages were seen on both.
    seconds: BTreeSet<u32>,
}

impl Life {
    fn new(rng: &mut Rng) -> Self {
        let events = [
            Event::Counting,
            Event::NotCounting,
            Event::Failure,
            Event::FailureWithLimit,
            Event::Former,
        ];
        let event = events[rng.below(5) as usize];
        let max_open_blocks = Some(8).filter(|_| event == Event::FailureWithLimit);
        let geometry = DeviceGeometry { max_open_blocks, ..geometry(rng) };
        let cache = if rng.chance(0.5) { Cache::Volatile } else { Cache::None };
        let mut medium = Wrapped::with_cache(geometry, cache);
        medium.counts_erases = matches!(event, Event::Counting | Event::Former);
        Self { medium: Arc::new(medium), event, seconds: BTreeSet::new() }
    }

    /// A session that power ends as a rule; returns the states of which one has to be found.
    fn session(&mut self, device: Device, rng: &mut Rng) -> Vec<Shares> {
        if rng.chance(0.6) {
            self.medium.memory.cut_power_after(rng.below(60));
        }
        let mut failing = self.medium.failing.lock().unwrap();
        match self.event {
            Event::Failure | Event::FailureWithLimit if failing.is_empty() && rng.chance(0.2) => {
                let pages = journal(&self.medium);
                failing.insert(pages[rng.below(pages.len() as u64) as usize].0);
            }
            Event::Former if rng.chance(0.3) => failing.clone_from(&self.seconds),
            _ => {}
        }
        drop(failing);
        let mut states = vec![shares(&device)];
        for _ in 0..rng.below(12) {
            match try_change(&device, rng) {
                (after, Ok(())) => states = vec![after],
                (after, Err(error)) => {
                    assert!(self.medium.memory.lost_power(), "{error}");
                    states.push(after);
                    break;
                }
            }
        }
        drop(device);
        self.medium.memory.restart(rng);
        if self.event == Event::Former {
            self.medium.failing.lock().unwrap().clear();
        }
        states
    }

    /// Damages each page of the journal alone; what was found before is found, or an error.
    fn check(&mut self, known: &Shares, rng: &mut Rng, context: &str) {
        let pages = journal_orders(&self.medium);
        for &(block, page, order) in &pages {
            let copy =
                pages.iter().find(|other| other.0 != block && (other.1, other.2) == (page, order));
            // A wrong byte that the device does not find ends the records, if there is no
            // copy.
            let must_open = self.event == Event::Counting && copy.is_some();
            let damage = if must_open { random_damage(rng) } else { Damage::Found };
            *self.medium.damaged.lock().unwrap() = [((block, page), damage)].into();
            let context = format!("{context}, damaged {block}, {page}: {pages:?}");
            let medium: Arc<dyn Medium> = Arc::<Wrapped>::clone(&self.medium);
            match Device::open(medium, Options::default()) {
                Ok(device) => assert_eq!(shares(&device), *known, "{context}"),
                Err(error) => assert!(!must_open, "{context}: {error}"),
            }
            // The ring takes blocks from all LUNs in turn, first blocks before second ones.
            let per_lun = self.medium.geometry().blocks_per_lun;
            let place = |block: &u32| (block % per_lun, block / per_lun);
            self.seconds
                .extend(copy.and_then(|copy| [block, copy.0].into_iter().max_by_key(place)));
        }
        self.medium.damaged.lock().unwrap().clear();
    }
}

/// What was once found is found again or an error, whatever page is damaged.
#[test]
fn random_damage_after_cuts_and_failures_never_brings_back_older_tables() {
    for seed in seeds(0..60) {
        let mut rng = Rng::stream(seed, "tables.lives");
        let mut life = Life::new(&mut rng);
        let made: Arc<dyn Medium> = Arc::<Wrapped>::clone(&life.medium);
        let mut device = Device::format(made, Options::default()).unwrap();
        for session in 0..20 {
            let context = format!("seed {seed} session {session} {:?}", life.event);
            let states = life.session(device, &mut rng);
            device = open(&life.medium, &context);
            let known = shares(&device);
            assert!(states.contains(&known), "{context}: {known:?} is none of {states:?}");
            drop(device);
            life.check(&known, &mut rng, &context);
            device = open(&life.medium, &context);
        }
    }
}

/// A device from before there were copies: damage is an error, and never taken for an older state.
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
