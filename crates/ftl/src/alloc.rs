//! Which row is written next: erased blocks, frontiers, and what is kept in reserve.

use std::collections::VecDeque;
use std::ops::Range;

use prism_nand::{BlockId, DieId, RowId};

use crate::candidates::Candidates;
use crate::config::Frontiers;
use crate::pagemap::{BlockState, PageMap};

/// An open block and its next row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenBlock {
    pub(crate) block: BlockId,
    pub(crate) next: u32,
}

/// The part of the state that belongs to one die.
#[derive(Clone, Debug)]
pub(crate) struct DieState {
    /// Erased blocks; the one erased longest ago is opened first.
    pub(crate) free: VecDeque<u32>,
    /// Where the host writes (and copies too, if the frontier is shared).
    pub(crate) host: Option<OpenBlock>,
    /// Where copies go, if apart.
    pub(crate) copies: Option<OpenBlock>,
    /// Blocks that recovery found to hold nothing: erased before any other, whatever the
    /// victim policy, since cleaning may need them to get anywhere.
    pub(crate) dead: Vec<u32>,
    /// The sealed blocks: what victim policies see.
    pub(crate) candidates: Candidates,
    /// Valid units on the die.
    pub(crate) valid: u64,
}

impl DieState {
    pub(crate) fn erased(blocks: Range<u32>, units_per_block: u32) -> Self {
        Self {
            candidates: Candidates::new(blocks.len(), units_per_block),
            free: blocks.collect(),
            host: None,
            copies: None,
            dead: Vec::new(),
            valid: 0,
        }
    }
}

impl PageMap {
    /// Erased blocks of `die`.
    #[must_use]
    pub fn free_blocks(&self, die: DieId) -> u32 {
        self.dies[die.0 as usize].free.len() as u32
    }

    /// Whether cleaning of `die` should start.
    #[must_use]
    pub fn below_low(&self, die: DieId) -> bool {
        self.free_blocks(die) < self.config.free_blocks_low
    }

    /// Whether cleaning of `die` may stop.
    #[must_use]
    pub fn reached_high(&self, die: DieId) -> bool {
        self.free_blocks(die) >= self.config.free_blocks_high
    }

    /// Whether the host may take a row of `die` without eating into what cleaning needs
    /// to finish.
    #[must_use]
    pub fn host_may_write(&self, die: DieId) -> bool {
        let state = &self.dies[die.0 as usize];
        let free = state.free.len() as u32;
        match self.config.frontiers {
            Frontiers::Separate => state.host.is_some() || free > self.config.reserve_blocks,
            Frontiers::Shared => {
                let rows = self.geometry.rows_per_block();
                let open = state.host.map_or(0, |open| rows - open.next);
                open + free * rows > self.config.reserve_blocks * rows
            }
        }
    }

    /// Whether `die` holds no more than its share of the data. Placing by load alone can
    /// send all cold data to one die until that die cannot be cleaned any more; a die
    /// above the average by half a block waits until the others have caught up.
    #[must_use]
    pub fn balanced(&self, die: DieId) -> bool {
        let dies = self.dies.len() as u64;
        let slack = u64::from(self.geometry.units_per_block()) / 2;
        self.dies[die.0 as usize].valid * dies <= self.valid_total + slack * dies
    }

    /// Takes the next row of `die` for host data.
    ///
    /// # Panics
    /// If [`PageMap::host_may_write`] does not hold.
    pub fn reserve_host(&mut self, die: DieId) -> RowId {
        assert!(self.host_may_write(die), "host write into the reserve of {die:?}");
        let mut open = self.dies[die.0 as usize].host.take();
        let row = self.take_row(die, &mut open);
        self.dies[die.0 as usize].host = open;
        row
    }

    /// Takes the next row of `die` for copies.
    ///
    /// # Panics
    /// If no row is left: the reserve is there to prevent that.
    pub fn reserve_copy(&mut self, die: DieId) -> RowId {
        let index = die.0 as usize;
        let shared = self.config.frontiers == Frontiers::Shared;
        let frontier = |state: &mut DieState| match shared {
            true => state.host.take(),
            false => state.copies.take(),
        };
        let mut open = frontier(&mut self.dies[index]);
        let row = self.take_row(die, &mut open);
        match shared {
            true => self.dies[index].host = open,
            false => self.dies[index].copies = open,
        }
        row
    }

    fn take_row(&mut self, die: DieId, open: &mut Option<OpenBlock>) -> RowId {
        let mut frontier = open.take().unwrap_or_else(|| {
            let block = self.dies[die.0 as usize].free.pop_front();
            let block = block.expect("no erased block left on the die: the reserve was too small");
            self.state[block as usize] = BlockState::Open;
            OpenBlock { block: BlockId(block), next: 0 }
        });
        let row = RowId(self.geometry.first_row(frontier.block).0 + frontier.next);
        frontier.next += 1;
        self.rows_in_flight[frontier.block.0 as usize] += 1;
        *open = (frontier.next < self.geometry.rows_per_block()).then_some(frontier);
        row
    }

    pub(crate) fn is_frontier(&self, block: BlockId) -> bool {
        let state = &self.dies[self.geometry.die_of(block).0 as usize];
        [state.host, state.copies].iter().flatten().any(|open| open.block == block)
    }
}
