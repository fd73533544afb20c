//! What the page map keeps of blocks, die groups and tombstones.

use std::collections::VecDeque;
use std::ops::Range;

use prism_base::FastSet;
use prism_nand::BlockId;

use super::PageConfig;
use crate::plan::TrimRange;
use crate::trims::PendingTrims;
use crate::victim::{Candidates, VictimPolicy};

/// What a block is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum BlockState {
    /// Erased, in the free list of its die group.
    #[default]
    Free,
    /// A frontier writes to it, or its last program units are still being programmed.
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

/// A block. Whoever asks for one of these asks for another next, and the blocks in flight on
/// all dies are more than the first cache holds lines for: so they lie together, and in one
/// line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(16))]
pub(super) struct Block {
    /// Units that the map points to.
    pub(super) valid: u32,
    /// Program units reserved and not yet committed.
    pub(super) program_units_in_flight: u16,
    /// The frontier that wrote it, while it is not free.
    pub(super) frontier: u16,
    pub(super) state: BlockState,
}

/// A kind of blocks, as an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Those with the cells' own number of bits.
    Main = 0,
    /// Those with SLC.
    Slc = 1,
}

impl Kind {
    /// Both kinds.
    pub(super) const ALL: [Self; 2] = [Self::Main, Self::Slc];
}

/// An open block and its next program unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenBlock {
    pub(super) block: BlockId,
    pub(super) next: u32,
}

/// The blocks of one kind on a die group.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Part {
    /// Erased blocks; the one erased longest ago is opened first, or the least worn.
    pub(super) free: VecDeque<u32>,
    /// The sealed blocks: what victim policies see.
    pub(super) candidates: Candidates,
    /// Erases of all its blocks together.
    pub(super) erases: u64,
}

/// The part of the state that belongs to one die group.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct DieGroupState {
    /// By frontier.
    pub(super) open: Vec<Option<OpenBlock>>,
    /// Valid units on the die group.
    pub(super) valid: u64,
    /// By [`Kind`].
    pub(super) parts: [Part; 2],
    /// Blocks that recovery found to hold nothing: erased before any other, whatever the
    /// victim policy, since cleaning may need them to get anywhere.
    pub(super) dead: Vec<u32>,
    /// Those of the valid units that are in SLC blocks.
    pub(super) slc_valid: u64,
    /// The most valid units of its region of such blocks.
    pub(super) slc_units_most: u64,
    /// Program units of the host on their way to a region of such blocks.
    pub(super) slc_program_units_in_flight: u32,
}

impl DieGroupState {
    /// A die group of erased blocks, of which the first `slc` have SLC; `units` are
    /// those of a block of each kind.
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

    /// Its blocks with more than SLC.
    pub(super) fn main(&self) -> &Part {
        self.part(Kind::Main)
    }

    /// Its blocks with one.
    pub(super) fn slc(&self) -> &Part {
        self.part(Kind::Slc)
    }
}

/// Bad blocks of a die group by [`Kind`].
pub(super) type BadOfDieGroup = [u32; 2];

/// What is out of use, and on its way there.
#[derive(Clone, Debug, Default)]
pub(super) struct Retirement {
    /// Bad blocks of each die group, by kind; empty where there is none at all.
    pub(super) bad: Vec<BadOfDieGroup>,
    pub(super) total: u32,
    /// Blocks that failed and have program units in flight.
    pub(super) closing: FastSet<u32>,
    /// Closed blocks with data to be moved, oldest first.
    pub(super) failed: Vec<u32>,
    pub(super) read_only: bool,
}

impl Retirement {
    /// Whether a block has failed and is not closed yet; no longer after this.
    pub(super) fn take_closing(&mut self, block: BlockId) -> bool {
        !self.closing.is_empty() && self.closing.remove(&block.0)
    }
}

/// A record of trimmed ranges on flash, and how many logical units the map sends to it.
#[derive(Clone, Debug)]
pub(super) struct Tombstone {
    pub(super) ranges: Vec<TrimRange>,
    pub(super) refs: u32,
}

/// A new tombstone on its way to flash.
#[derive(Clone, Debug)]
pub(super) struct FreshTombstone {
    /// What it will say.
    pub(super) ranges: Vec<TrimRange>,
    /// The part of it than which nothing newer has come to flash meanwhile.
    pub(super) pending: PendingTrims,
}
