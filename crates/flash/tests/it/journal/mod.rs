//! The journal compared with a model of durable records: thousands of power failures, at every
//! operation, with and without a volatile cache, failing operations, processes that end, damage.

mod flash;

use prism_testkit::{all_seeds, cases, seeds};
use std::collections::BTreeSet;

use flash::{Cache, Cell, Fault, Flash};
use prism_base::Rng;
use prism_flash::journal::{Journal, JournalError, Pages, RecordTooLong};
use proptest::prelude::*;

const HEADER: usize = 48;

/// A user of the journal whose table is the last few of its records, and the records known to be
/// durable.
struct User {
    seed: u64,
    flash: Flash,
    rng: Rng,
    /// Records in the table, and their maximum length.
    window: u64,
    length: u64,
    /// The record that the table begins with, and the one that it ends before.
    first: u64,
    next: u64,
    /// The records with which a replay may begin: the first of each snapshot.
    begins: BTreeSet<u64>,
    synced: u64,
    cuts: u64,
}

impl User {
    /// A random ring, and a table that may be as large as a checkpoint.
    fn new(seed: u64, cache: Cache) -> Self {
        let mut rng = Rng::stream(seed, "user");
        let (blocks, pages) = (3 + rng.below(6), 1 + rng.below(6));
        let room = 24 + rng.below(60);
        let length = 8 + rng.below(if pages > 1 { 60 } else { room - 12 + 1 }.min(80));
        let length = length.min(((blocks - 1) / 2) * pages * room - 4);
        let most = ((blocks - 1) / 2) * pages * room / (length + 4);
        let window = if rng.chance(0.5) { most } else { 1 + rng.below(most) };
        let mut flash = Flash::new(blocks as usize, pages as usize, HEADER + room as usize, seed);
        flash.cache = cache;
        let begins = BTreeSet::new();
        let (first, next, synced, cuts) = (0, 0, 0, 0);
        Self { seed, flash, rng, window, length, first, next, begins, synced, cuts }
    }

    /// Record number `number`: its length depends on the number, up to `length`.
    fn record(&self, number: u64) -> Vec<u8> {
        let filler = Rng::stream(number, "length").below(self.length - 8 + 1);
        let bytes = (0..filler).map(|at| (number * 31 + at * 7) as u8);
        number.to_le_bytes().into_iter().chain(bytes).collect()
    }

    /// Opens, and compares the returned records with the durable ones.
    fn open(&mut self) -> Result<Journal, JournalError<Fault>> {
        self.flash.next_session();
        let (journal, records) = Journal::open(&mut self.flash)?;
        let seed = self.seed;
        let number = |record: &Vec<u8>| u64::from_le_bytes(record[..8].try_into().unwrap());
        let first = records.first().map_or(0, number);
        let next = first + records.len() as u64;
        let found = format!("seed {seed}, cut {}: {first}..{next}", self.cuts);
        assert!((self.synced..=self.next).contains(&next), "{found}, {}", self.synced);
        assert!(next == 0 || self.begins.contains(&first), "{found}: never a snapshot");
        for (record, number) in records.iter().zip(first..) {
            assert_eq!(*record, self.record(number), "{found}, record {number}");
        }
        (self.first, self.next, self.synced) = (first, next, next);
        Ok(journal)
    }

    /// Appends one record or a few, and mostly syncs.
    fn work(&mut self, journal: &mut Journal) -> Result<(), JournalError<Fault>> {
        for _ in 0..=self.rng.below(4) * self.rng.below(3) {
            journal.append(&self.record(self.next)).unwrap();
            self.next += 1;
        }
        self.first = self.first.max(self.next.saturating_sub(self.window));
        if self.rng.chance(0.2) {
            return Ok(());
        }
        self.sync(journal)
    }

    fn sync(&mut self, journal: &mut Journal) -> Result<(), JournalError<Fault>> {
        let snapshot: Vec<_> = (self.first..self.next).map(|number| self.record(number)).collect();
        let (first, begins) = (self.first, &mut self.begins);
        journal.sync(&mut self.flash, || {
            begins.insert(first);
            snapshot
        })?;
        self.synced = self.next;
        Ok(())
    }

    /// Opens and works until power fails after `operations`, sometimes in new processes.
    fn live(&mut self, operations: u64) {
        self.cuts += 1;
        self.flash.until_cut = operations + 1;
        let cut = self.live_on(u64::MAX);
        assert_eq!(cut, Err(JournalError::Pages(Fault::Cut)), "seed {}", self.seed);
        self.flash.power_cycle();
    }

    fn live_on(&mut self, steps: u64) -> Result<(), JournalError<Fault>> {
        let mut journal = self.open()?;
        for _ in 0..steps {
            if self.rng.chance(0.03) {
                journal = self.open()?;
            }
            self.work(&mut journal)?;
        }
        self.sync(&mut journal)
    }

    /// Without further failures, everything must work and be durable.
    fn settle(&mut self) {
        self.flash.counts_reads = false;
        for _ in 0..3 {
            self.live_on(40).unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
            assert_eq!(self.synced, self.next);
            self.flash.power_cycle();
        }
        self.open().unwrap();
    }
}

/// Compares the cuts that were counted with those that TESTING.md states.
fn assert_all(cuts: u64, stated: u64) {
    assert!(!all_seeds() || cuts == stated, "{cuts} cuts, not {stated}");
}

fn caches() -> [Cache; 2] {
    [Cache::None, Cache::Volatile]
}

#[test]
fn random_cuts_after_every_operation() {
    let mut cuts = 0;
    for seed in seeds(0..24) {
        for operations in 0..150 {
            for cache in caches() {
                let mut user = User::new(seed, cache);
                user.flash.counts_reads = operations % 4 == 0;
                user.live(operations);
                user.settle();
                cuts += user.cuts;
            }
        }
    }
    assert_all(cuts, 7_200);
}

#[test]
fn random_cuts_in_one_life() {
    let mut cuts = 0;
    for seed in seeds(100..500) {
        for cache in caches() {
            let mut user = User::new(seed, cache);
            for _ in 0..60 {
                let most = [2, 6, 12, 30, 200][user.rng.below(5) as usize];
                let operations = user.rng.below(most);
                user.flash.counts_reads = user.rng.chance(0.25);
                user.live(operations);
            }
            user.settle();
            cuts += user.cuts;
        }
    }
    assert_all(cuts, 48_000);
}

#[test]
fn random_lives_cut_at_every_pair_of_operations() {
    let mut cuts = 0;
    for seed in seeds(500..506) {
        for cache in caches() {
            let mut before = User::new(seed, cache);
            before.live_on(25).unwrap();
            for first in 0..24 {
                for second in 0..24 {
                    let mut user = User::new(seed, cache);
                    user.live_on(25).unwrap();
                    assert_eq!(user.flash.cells, before.flash.cells);
                    user.live(first);
                    user.live(second);
                    user.settle();
                    cuts += user.cuts;
                }
            }
        }
    }
    assert_all(cuts, 13_824);
}

#[test]
fn random_failures_lose_nothing_and_the_journal_goes_on() {
    let mut failed = 0;
    for seed in seeds(1000..1400) {
        let mut user = User::new(seed, Cache::Volatile);
        let mut journal = user.open().unwrap();
        for _ in 0..60 {
            user.flash.until_failure = 1 + user.rng.below(20);
            failed += u64::from(user.work(&mut journal).is_err());
        }
        user.flash.until_failure = u64::MAX;
        user.work(&mut journal).unwrap();
        user.sync(&mut journal).unwrap();
        user.flash.power_cycle();
        user.settle();
    }
    assert!(!all_seeds() || failed > 1000, "{failed} failures");
}

#[test]
fn random_replays_are_durable_though_the_process_ended_before_a_sync() {
    let mut unsynced = 0;
    for seed in seeds(2000..2300) {
        let mut user = User::new(seed, Cache::Volatile);
        user.live_on(10).unwrap();
        let mut journal = user.open().unwrap();
        user.flash.until_failure = 1 + user.rng.below(12);
        while user.work(&mut journal).is_ok() {}
        user.flash.until_failure = u64::MAX;
        let promised = user.synced;
        user.open().unwrap();
        unsynced += u64::from(user.synced > promised);
        user.flash.power_cycle();
        user.open().unwrap();
    }
    assert!(!all_seeds() || unsynced > 20, "{unsynced} replays returned more than was promised");
}

#[test]
fn opening_writes_nothing() {
    let mut user = User::new(3, Cache::Volatile);
    user.live(70);
    let (cells, erases) = (user.flash.cells.clone(), user.flash.erases.clone());
    for _ in 0..5 {
        let mut journal = user.open().unwrap();
        user.sync(&mut journal).unwrap();
    }
    assert_eq!((user.flash.cells, user.flash.erases), (cells, erases));
}

#[test]
fn random_work_wears_all_blocks_alike() {
    for seed in seeds(3000..3020) {
        let mut user = User::new(seed, Cache::None);
        let mut journal = user.open().unwrap();
        for _ in 0..3000 {
            user.work(&mut journal).unwrap();
        }
        let (least, most) = (user.flash.erases.iter().min(), user.flash.erases.iter().max());
        let (least, most) = (*least.unwrap(), *most.unwrap());
        assert!(most - least <= 1 && least > 30, "seed {seed}: {:?}", user.flash.erases);
    }
}

#[test]
fn wear_is_alike_through_cuts() {
    let mut user = User::new(3100, Cache::Volatile);
    for _ in 0..4000 {
        let operations = user.rng.below(40);
        user.live(operations);
    }
    assert_eq!(user.cuts, 4_000);
    let (least, most) = (user.flash.erases.iter().min(), user.flash.erases.iter().max());
    let (least, most) = (*least.unwrap(), *most.unwrap());
    assert!(most * 10 <= least * 13, "{:?}", user.flash.erases);
}

/// A ring of `blocks` blocks of 4 pages with room for 100 bytes, opened.
fn ring(blocks: usize) -> (Flash, Journal) {
    let mut flash = Flash::new(blocks, 4, HEADER + 100, 1);
    let journal = Journal::open(&mut flash).unwrap().0;
    (flash, journal)
}

#[test]
fn a_snapshot_may_fill_a_checkpoint_and_no_more() {
    for (blocks, most) in [(3, 4), (4, 4), (5, 8), (8, 12)] {
        let (mut flash, mut journal) = ring(blocks);
        assert_eq!(journal.record_most(), most * 100 - 4);
        let longest = vec![7; most * 100 - 4];
        let too_long = RecordTooLong { length: most * 100 - 3, most: most * 100 - 4 };
        assert_eq!(journal.append(&[7; 1200][..most * 100 - 3]), Err(too_long));
        let too_much = || vec![longest.clone(), b"more".into()];
        let full = JournalError::Full { needed: most as u64 + 1, most: most as u64 };
        journal.append(b"more").unwrap();
        assert_eq!(journal.sync(&mut flash, too_much), Err(full));
        assert!(flash.cells.iter().flatten().all(|cell| *cell == Cell::Erased));
        // Again and again, from every page of a block on.
        let (mut checkpoints, mut refused) = (0, 0);
        for _ in 0..50 {
            journal.append(&longest).unwrap();
            let longest_alone = || {
                checkpoints += 1;
                vec![longest.clone()]
            };
            journal.sync(&mut flash, longest_alone).unwrap();
            let cells = flash.cells.clone();
            journal.append(b"more").unwrap();
            if journal.sync(&mut flash, too_much).is_err() {
                refused += 1;
                assert_eq!(flash.cells, cells, "{blocks} blocks");
                journal.sync(&mut flash, || vec![b"less".into()]).unwrap();
            }
        }
        assert!(checkpoints > 20, "{blocks} blocks: {checkpoints} checkpoints, {refused} refused");
    }
}

#[test]
fn unsuitable_rings_are_refused() {
    for (blocks, pages, page_size) in [(2, 4, 100), (3, 1, HEADER)] {
        let error = Journal::open(&mut Flash::new(blocks, pages, page_size, 1)).unwrap_err();
        let (blocks, pages_per_block) = (blocks as u32, pages as u32);
        assert_eq!(error, JournalError::Unsuitable { blocks, pages_per_block, page_size });
    }
    assert!(Journal::open(&mut Flash::new(3, 1, HEADER + 1, 1)).is_ok());
}

#[test]
fn foreign_pages_are_not_changed() {
    let (mut flash, mut journal) = ring(3);
    journal.append(b"one").unwrap();
    journal.sync(&mut flash, || vec![b"one".into()]).unwrap();
    flash.cells[2][1] = Cell::Written(vec![0x55; HEADER + 100]);
    let error = Journal::open(&mut flash).unwrap_err();
    assert_eq!(error, JournalError::Foreign { block: 2, page: 1 });
    assert!(error.to_string().contains("erase all blocks"));
}

/// Data of another program are found next to a page that cannot be read, and a journal is not taken
/// for them.
#[test]
fn a_page_that_cannot_be_read_does_not_hide_foreign_ones() {
    let mut flash = Flash::new(3, 4, HEADER + 100, 1);
    flash.cells[0][0] = Cell::Written(vec![0x55; HEADER + 100]);
    flash.cells[0][1] = Cell::Written(vec![0x56; HEADER + 100]);
    flash.unreadable = Some((0, 0));
    let error = Journal::open(&mut flash).unwrap_err();
    assert_eq!(error, JournalError::Foreign { block: 0, page: 1 });
    let (mut flash, mut journal) = ring(3);
    for record in [b"one", b"two"] {
        journal.append(record).unwrap();
        journal.sync(&mut flash, || vec![b"one".into()]).unwrap();
    }
    flash.unreadable = Some((0, 0));
    assert_eq!(Journal::open(&mut flash).unwrap_err(), JournalError::Pages(Fault::Failed));
    // Pages of the journal lie in block 0; two damaged pages do not make it another program's.
    flash.cells[2][1] = Cell::Written(vec![0x55; HEADER + 100]);
    assert_eq!(Journal::open(&mut flash).unwrap_err(), JournalError::Pages(Fault::Failed));
}

/// Changes a byte of a programmed page.
fn flip(flash: &mut Flash, block: usize, page: usize, at: usize) {
    let Cell::Written(bytes) = &mut flash.cells[block][page] else { panic!("not written") };
    bytes[at] ^= 0x10;
}

#[test]
fn damage_ends_the_replay_or_refuses_it() {
    let (mut flash, mut journal) = ring(3);
    for record in [&b"one"[..], b"two", b"three", b"four"] {
        journal.append(record).unwrap();
        // The first is a checkpoint of two pages, as the only one.
        journal.sync(&mut flash, || vec![vec![1; 150]]).unwrap();
    }
    let open = |block, page| {
        let mut flash = flash.clone();
        flip(&mut flash, block, page, 70);
        Journal::open(&mut flash).map(|(_, records)| records)
    };
    let damaged = Err(JournalError::Damaged { epoch: 1 });
    assert_eq!((open(0, 0), open(0, 1)), (damaged, Err(JournalError::Damaged { epoch: 1 })));
    assert_eq!(open(0, 2), Ok(vec![vec![1; 150]]));
    assert_eq!(open(0, 3), Ok(vec![vec![1; 150], b"two".into()]));
    assert_eq!(open(1, 0).unwrap().len(), 3);
}

proptest! {
    #![proptest_config(cases(600))]

    /// With flipped bytes, a replay returns a prefix of the records or an error, and the journal
    /// stays usable.
    #[test]
    fn random_flipped_bytes_are_never_believed(
        seed in 0_u64..1000,
        steps in 0_u64..60,
        flips in prop::collection::vec((any::<u64>(), any::<u64>()), 1..4),
    ) {
        let mut user = User::new(seed, Cache::None);
        user.live_on(steps).unwrap();
        let written: Vec<(usize, usize)> = user.flash.cells.iter().enumerate()
            .flat_map(|(block, pages)| (0..pages.len()).map(move |page| (block, page)))
            .filter(|&(block, page)| matches!(user.flash.cells[block][page], Cell::Written(_)))
            .collect();
        prop_assume!(!written.is_empty());
        let single = flips.len() == 1;
        for (page, at) in flips {
            let (block, page) = written[page as usize % written.len()];
            let at = at as usize % user.flash.page_size();
            flip(&mut user.flash, block, page, at);
        }
        let promised = std::mem::take(&mut user.synced);
        match user.open() {
            Ok(_) => {
                prop_assert!(user.next <= promised);
                user.settle();
            }
            Err(JournalError::Damaged { .. }) => {}
            Err(JournalError::Foreign { .. }) => prop_assert!(!single),
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}
