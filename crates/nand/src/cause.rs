//! The causes of flash operations, and counts by cause.

use std::ops::{Index, IndexMut};

prism_base::named_enum! {
    /// Why a flash operation happens, by number. Every operation carries its cause from where it is
    /// issued.
    #[derive(PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum Cause {
        /// A request of the host.
        Host = "host",
        /// Cleaning (garbage collection).
        Gc = "gc",
        /// Wear levelling.
        Wear = "wear",
        /// The mapping itself: translation pages, tombstones of trimmed ranges.
        Map = "map",
        /// Merges of block-granular mappings.
        Merge = "merge",
        /// Refresh of data that ages.
        Scrub = "scrub",
        /// Parity over dies.
        Parity = "parity",
        /// Filling up a program unit that had to be programmed before it was full.
        Pad = "pad",
        /// Reading the rest of a unit of which the host wrote a part.
        Rmw = "rmw",
        /// Moves of data from an SLC write cache to its final place.
        Fold = "fold",
        /// Moving valid data out of a block that has failed.
        Retire = "retire",
    }
}

impl Cause {
    /// The number of causes.
    pub const COUNT: usize = 11;
}

/// One number for each cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([u64; Cause::COUNT]);

impl Counts {
    /// The sum over all causes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    /// The counts added since `earlier`.
    ///
    /// # Panics
    /// If a count went down: counts only grow.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self(std::array::from_fn(|i| {
            self.0[i].checked_sub(earlier.0[i]).expect("a count went down")
        }))
    }

    /// The causes with their numbers, in the order of the causes.
    pub fn iter(&self) -> impl Iterator<Item = (Cause, u64)> + '_ {
        Cause::ALL.into_iter().map(|cause| (cause, self[cause]))
    }
}

impl Index<Cause> for Counts {
    type Output = u64;
    fn index(&self, cause: Cause) -> &u64 {
        &self.0[cause as usize]
    }
}

impl IndexMut<Cause> for Counts {
    fn index_mut(&mut self, cause: Cause) -> &mut u64 {
        &mut self.0[cause as usize]
    }
}
