//! The part of the level's state that reads and writes use without its lock: what is allocated, and
//! the commands in progress on each block.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// What calls see of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// Its first pages are allocated, so many.
    Allocated(u32),
    /// Some of its pages were trimmed: the level's lock is needed to say which.
    PartlyTrimmed,
    /// Trimmed as a whole; not erased yet.
    Trimmed,
    /// Erased, or lost.
    Free,
}

/// The upper half of an entry; the lower half is the number of pages allocated.
const ALLOCATED: u64 = 1 << 32;
const PARTLY: u64 = 2 << 32;
const TRIMMED: u64 = 3 << 32;

/// The blocks of a share, numbered LUN by LUN. Entries change under the level's lock only.
#[derive(Debug)]
pub(super) struct BlockTable {
    entries: Box<[AtomicU64]>,
    /// Commands in progress by block, which delay its erase.
    commands: Box<[AtomicU32]>,
    /// Whether a program was attempted since the erase, even one that failed.
    begun: Box<[AtomicBool]>,
    /// The words of owners that are not on flash yet, by block.
    owners: Box<[AtomicU64]>,
}

impl BlockTable {
    pub(super) fn new(blocks: u32) -> Self {
        Self {
            entries: (0..blocks).map(|_| AtomicU64::new(0)).collect(),
            commands: (0..blocks).map(|_| AtomicU32::new(0)).collect(),
            begun: (0..blocks).map(|_| AtomicBool::new(true)).collect(),
            owners: (0..blocks).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    pub(super) fn set(&self, block: u32, seen: Seen) {
        let entry = match seen {
            Seen::Allocated(pages) => ALLOCATED | u64::from(pages),
            Seen::PartlyTrimmed => PARTLY,
            Seen::Trimmed => TRIMMED,
            Seen::Free => 0,
        };
        self.entries[block as usize].store(entry, Ordering::SeqCst);
    }

    #[inline]
    pub(super) fn get(&self, block: u32) -> Seen {
        let entry = self.entries[block as usize].load(Ordering::SeqCst);
        match entry & !(ALLOCATED - 1) {
            ALLOCATED => Seen::Allocated(entry as u32),
            PARTLY => Seen::PartlyTrimmed,
            TRIMMED => Seen::Trimmed,
            _ => Seen::Free,
        }
    }

    /// A command on the block begins. Its erase waits until [`BlockTable::end`].
    #[inline]
    pub(super) fn begin(&self, block: u32) {
        self.commands[block as usize].fetch_add(1, Ordering::SeqCst);
    }

    /// A command has ended. Returns whether the block's erase has waited for it.
    #[inline]
    pub(super) fn end(&self, block: u32) -> bool {
        let last = self.commands[block as usize].fetch_sub(1, Ordering::SeqCst) == 1;
        last && self.get(block) == Seen::Trimmed
    }

    /// Whether no command on the block is in progress.
    pub(super) fn is_idle(&self, block: u32) -> bool {
        self.commands[block as usize].load(Ordering::SeqCst) == 0
    }

    /// Notes that a program of the block is attempted.
    #[inline]
    pub(super) fn note_begun(&self, block: u32) {
        if !self.is_begun(block) {
            self.begun[block as usize].store(true, Ordering::SeqCst);
        }
    }

    pub(super) fn is_begun(&self, block: u32) -> bool {
        self.begun[block as usize].load(Ordering::SeqCst)
    }

    pub(super) fn note_erased(&self, block: u32) {
        self.begun[block as usize].store(false, Ordering::SeqCst);
        self.set_owner(block, 0);
    }

    pub(super) fn owner(&self, block: u32) -> u64 {
        self.owners[block as usize].load(Ordering::SeqCst)
    }

    pub(super) fn set_owner(&self, block: u32, owner: u64) {
        self.owners[block as usize].store(owner, Ordering::SeqCst);
    }

    /// Notes the word that was found on flash, unless the block was allocated for another
    /// meanwhile.
    pub(super) fn note_owner(&self, block: u32, found: u64) {
        let owner = &self.owners[block as usize];
        let _ = owner.compare_exchange(0, found, Ordering::SeqCst, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that lists blocks reads the first page of one that others give back and allocate
    /// again meanwhile.
    #[test]
    fn a_word_found_on_flash_does_not_replace_that_of_an_allocation() {
        let table = BlockTable::new(2);
        table.note_owner(1, 7);
        assert_eq!(table.owner(1), 7, "it is known from now on");
        table.note_erased(1);
        table.set_owner(1, 8);
        for found in [0, 7] {
            table.note_owner(1, found);
            assert_eq!(table.owner(1), 8);
        }
    }
}
