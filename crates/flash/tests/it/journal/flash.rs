//! Flash in memory whose power can be cut at any operation, with or without a volatile cache, and
//! which enforces the journal's rules for programs.

use prism_base::Rng;
use prism_flash::PageState;
use prism_flash::journal::Pages;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    Erased,
    Torn,
    Written(Vec<u8>),
}

/// What a power failure leaves of the operations since the last sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// All of them, the last one torn or not begun.
    None,
    /// Of each block, the first few of its own, and perhaps the next one torn.
    Volatile,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("the power is gone")]
    Cut,
    #[error("the operation failed")]
    Failed,
}

#[derive(Clone, Debug)]
enum Change {
    Program(usize, Vec<u8>),
    Erase,
}

#[derive(Clone, Debug)]
pub struct Flash {
    pub cells: Vec<Vec<Cell>>,
    durable: Vec<Vec<Cell>>,
    unsynced: Vec<Vec<Change>>,
    page_size: usize,
    pub cache: Cache,
    /// Operations before power fails.
    pub until_cut: u64,
    /// Operations before one fails.
    pub until_failure: u64,
    /// Block and page that cannot be read.
    pub unreadable: Option<(u32, u32)>,
    /// Whether reads count as operations.
    pub counts_reads: bool,
    rng: Rng,
    /// Blocks of which this session programmed the first page, while nothing has failed.
    ours: Vec<bool>,
    pub erases: Vec<u64>,
    pub operations: u64,
}

impl Flash {
    pub fn new(blocks: usize, pages: usize, page_size: usize, seed: u64) -> Self {
        let cells = vec![vec![Cell::Erased; pages]; blocks];
        Self {
            durable: cells.clone(),
            cells,
            unsynced: vec![Vec::new(); blocks],
            page_size,
            cache: Cache::None,
            until_cut: u64::MAX,
            until_failure: u64::MAX,
            unreadable: None,
            counts_reads: false,
            rng: Rng::stream(seed, "flash"),
            ours: vec![false; blocks],
            erases: vec![0; blocks],
            operations: 0,
        }
    }

    /// A process ends and another one starts, without a power failure.
    pub fn next_session(&mut self) {
        self.ours.fill(false);
    }

    /// Cuts power, unless it has failed already, and restores it.
    pub fn power_cycle(&mut self) {
        if self.until_cut > 0 {
            self.lose(None);
        }
        self.until_cut = u64::MAX;
        self.next_session();
    }

    /// The state after a power failure while `last` is in flight.
    fn lose(&mut self, last: Option<(usize, Change)>) {
        let mut kept: Vec<usize> = self.unsynced.iter().map(Vec::len).collect();
        if let Some((block, change)) = last {
            self.unsynced[block].push(change);
        }
        for (kept, block) in kept.iter_mut().zip(0..) {
            let changes = std::mem::take(&mut self.unsynced[block]);
            if self.cache == Cache::Volatile {
                *kept = self.rng.below(changes.len() as u64 + 1) as usize;
            }
            let mut changes = changes.into_iter();
            let pages = &mut self.durable[block];
            changes.by_ref().take(*kept).for_each(|change| apply(pages, change));
            match changes.next() {
                Some(Change::Erase) if self.rng.chance(0.5) => pages.fill(Cell::Torn),
                Some(Change::Program(page, _)) if self.rng.chance(0.5) => pages[page] = Cell::Torn,
                _ => {}
            }
        }
        self.cells.clone_from(&self.durable);
    }

    /// One operation, perhaps the one that fails or is interrupted.
    fn step(&mut self, change: Option<(usize, Change)>) -> Result<(), Fault> {
        if self.until_cut == 0 {
            return Err(Fault::Cut);
        }
        self.operations += 1;
        self.until_cut -= u64::from(self.until_cut != u64::MAX);
        if self.until_cut == 0 {
            self.lose(change);
            return Err(Fault::Cut);
        }
        self.until_failure -= u64::from(self.until_failure != u64::MAX);
        let fails = self.until_failure == 0;
        if fails {
            self.until_failure = u64::MAX;
            self.next_session();
        }
        if let Some((block, change)) = change
            && (!fails || self.rng.chance(0.5))
        {
            apply(&mut self.cells[block], change.clone());
            self.unsynced[block].push(change);
        }
        if fails { Err(Fault::Failed) } else { Ok(()) }
    }

    fn check_law(&self, block: usize, page: usize, bytes: &[u8]) {
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let (index, kind) = (number(24), number(40) as u32);
        if index == 0 && kind != 3 {
            let synced = self.unsynced.iter().all(Vec::is_empty);
            assert!(synced, "a checkpoint begins in block {block} before all is durable");
        }
        let pages = &self.cells[block];
        assert_eq!(pages[page], Cell::Erased, "block {block}, page {page} is not erased");
        if page > 0 {
            assert_ne!(pages[page - 1], Cell::Erased, "block {block}, page {page} out of order");
            assert!(self.ours[block], "block {block} was left partly written by another session");
            return;
        }
        for (other, pages) in self.cells.iter().enumerate() {
            let partly = pages.last() == Some(&Cell::Erased) && pages[0] != Cell::Erased;
            assert!(!(partly && self.ours[other]), "blocks {other}, {block} are both open");
        }
    }
}

fn apply(pages: &mut [Cell], change: Change) {
    match change {
        Change::Program(page, bytes) => pages[page] = Cell::Written(bytes),
        Change::Erase => pages.fill(Cell::Erased),
    }
}

impl Pages for Flash {
    type Error = Fault;

    fn blocks(&self) -> u32 {
        self.cells.len() as u32
    }

    fn pages_per_block(&self) -> u32 {
        self.cells[0].len() as u32
    }

    fn page_size(&self) -> usize {
        self.page_size
    }

    fn read(&mut self, block: u32, page: u32, into: &mut [u8]) -> Result<PageState, Fault> {
        if self.counts_reads || self.until_cut == 0 {
            self.step(None)?;
        }
        if self.unreadable == Some((block, page)) {
            return Err(Fault::Failed);
        }
        Ok(match &self.cells[block as usize][page as usize] {
            Cell::Erased => PageState::Erased,
            Cell::Torn => PageState::Torn,
            Cell::Written(bytes) => {
                into.copy_from_slice(bytes);
                PageState::Written
            }
        })
    }

    fn program(&mut self, block: u32, page: u32, bytes: &[u8]) -> Result<(), Fault> {
        let (block, page) = (block as usize, page as usize);
        if self.until_cut > 0 {
            self.check_law(block, page, bytes);
            self.ours[block] |= page == 0;
        }
        self.step(Some((block, Change::Program(page, bytes.to_vec()))))
    }

    fn erase(&mut self, block: u32) -> Result<(), Fault> {
        self.ours[block as usize] = false;
        self.erases[block as usize] += 1;
        self.step(Some((block as usize, Change::Erase)))
    }

    fn sync(&mut self) -> Result<(), Fault> {
        self.step(None)?;
        self.unsynced.iter_mut().for_each(Vec::clear);
        self.durable.clone_from(&self.cells);
        Ok(())
    }
}
