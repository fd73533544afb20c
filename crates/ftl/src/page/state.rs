//! State of blocks, die groups and tombstones for page-level mapping.

use std::collections::VecDeque;
use std::ops::Range;

use borsh::{BorshDeserialize, BorshSerialize};
use prism_base::FastSet;
use prism_nand::BlockId;

use super::PageConfig;
use crate::plan::TrimRange;
use crate::trims::PendingTrims;
use crate::victim::{Candidates, VictimPolicy};

/// The use of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum BlockState {
    /// Erased, in the free list of its die group.
    #[default]
    Free,
    /// A frontier writes to it, or its last program units are in flight.
    Open,
    /// Full and committed: a candidate.
    Sealed,
    /// Chosen for cleaning, until it is erased.
    Victim,
    /// A program of it failed: closed, and to be emptied.
    Failed,
    /// Bad, and empty.
    Retired,
}

/// A block. Its fields are used together, and the blocks in flight on all dies exceed the lines of
/// the L1 cache, so each block is within one cache line.
#[derive(Clone, Copy, Debug, Default, BorshSerialize, BorshDeserialize)]
#[repr(align(16))]
pub(super) struct Block {
    /// Units that the map points to.
    #[borsh(skip)]
    pub(super) valid: u32,
    /// Program units reserved and not yet committed.
    #[borsh(skip)]
    pub(super) program_units_in_flight: u32,
    /// The frontier that wrote it, while it is not free.
    pub(super) frontier: u16,
    #[borsh(skip)]
    pub(super) state: BlockState,
}

/// The kind of a block, as an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Blocks with the cells' native number of bits.
    Main = 0,
    /// SLC blocks.
    Slc = 1,
}

impl Kind {
    /// Both kinds.
    pub(super) const ALL: [Self; 2] = [Self::Main, Self::Slc];
}

/// An open block and its next program unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) struct OpenBlock {
    pub(super) block: BlockId,
    pub(super) next: u32,
}

/// The blocks of one kind on a die group.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Part {
    /// Erased blocks; the one erased first is opened first, or the least worn.
    pub(super) free: VecDeque<u32>,
    /// The sealed blocks, as victim policies see them.
    pub(super) candidates: Candidates,
    /// Erases of all blocks of this kind together.
    pub(super) erases: u64,
}

/// The part of the state that belongs to one die group.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct DieGroupState {
    /// Open blocks by frontier.
    pub(super) open: Vec<Option<OpenBlock>>,
    /// Valid units on the die group.
    pub(super) valid: u64,
    /// By [`Kind`].
    pub(super) parts: [Part; 2],
    /// Blocks that recovery found without valid units. They are erased before any other, whatever
    /// the victim policy, since cleaning may need them to make progress.
    pub(super) dead: Vec<u32>,
    /// Valid units in SLC blocks.
    pub(super) slc_valid: u64,
    /// The most valid units of its SLC region.
    pub(super) slc_units_most: u64,
    /// Host program units for its SLC region in flight.
    pub(super) slc_program_units_in_flight: u32,
}

impl DieGroupState {
    /// A die group of erased blocks, of which the first `slc` are SLC; `units` are the units of a
    /// block of each kind.
    pub(super) fn erased(
        blocks: Range<u32>,
        slc: u32,
        config: &PageConfig,
        units: [u32; 2],
    ) -> Self {
        let candidates = match config.victim {
            VictimPolicy::Lru => Candidates::with_changes,
            _ => Candidates::new,
        };
        let all = blocks.len();
        let part = |free: Range<u32>, places, units| Part {
            free: free.collect(),
            candidates: candidates(places, units),
            erases: 0,
        };
        let first_main = blocks.start + slc;
        Self {
            parts: [
                part(first_main..blocks.end, all, units[0]),
                part(blocks.start..first_main, slc as usize, units[1]),
            ],
            open: vec![None; config.frontier_count() as usize],
            dead: Vec::new(),
            valid: 0,
            slc_valid: 0,
            slc_units_most: 0,
            slc_program_units_in_flight: 0,
        }
    }

    pub(super) fn part(&self, kind: Kind) -> &Part {
        &self.parts[kind as usize]
    }

    pub(super) fn part_mut(&mut self, kind: Kind) -> &mut Part {
        &mut self.parts[kind as usize]
    }

    /// Its blocks that are not SLC.
    pub(super) fn main(&self) -> &Part {
        self.part(Kind::Main)
    }

    /// Its SLC blocks.
    pub(super) fn slc(&self) -> &Part {
        self.part(Kind::Slc)
    }
}

/// Bad blocks of a die group by [`Kind`].
pub(super) type BadOfDieGroup = [u32; 2];

/// Failed blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Retirement {
    /// Bad blocks of each die group, by kind; empty if there are none.
    pub(super) bad: Vec<BadOfDieGroup>,
    pub(super) total: u32,
    /// Blocks that failed and are not yet closed.
    pub(super) closing: FastSet<u32>,
    /// Closed blocks with data to be moved, oldest first.
    pub(super) failed: Vec<u32>,
    /// Good blocks that are used only to replace failed ones, and until then count as bad.
    pub(super) spare: Vec<u32>,
    pub(super) read_only: bool,
}

impl Retirement {
    /// Removes a block from `closing`; returns whether it was there.
    pub(super) fn take_closing(&mut self, block: BlockId) -> bool {
        !self.closing.is_empty() && self.closing.remove(&block.0)
    }
}

/// A record of trimmed ranges on flash, and the number of map entries that point to it.
#[derive(Clone, Debug, BorshSerialize, BorshDeserialize)]
pub(super) struct Tombstone {
    pub(super) ranges: Vec<TrimRange>,
    #[borsh(skip)]
    pub(super) refs: u32,
}

/// A new tombstone in flight.
#[derive(Clone, Debug)]
pub(super) struct FreshTombstone {
    /// Its content.
    pub(super) ranges: Vec<TrimRange>,
    /// The part of `ranges` that nothing newer on flash has superseded.
    pub(super) pending: PendingTrims,
}
