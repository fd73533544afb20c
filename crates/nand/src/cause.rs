//! The causes of flash operations, and counts by cause.

use std::ops::{Index, IndexMut};

/// Why a flash operation happens. Every operation carries its cause from where it is issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Cause {
    /// A request of the host.
    Host = 0,
    /// Cleaning (garbage collection).
    Gc = 1,
    /// Wear levelling.
    Wear = 2,
    /// The mapping itself: translation pages, tombstones of trimmed ranges.
    Map = 3,
    /// Merges of block-granular mappings.
    Merge = 4,
    /// Refresh of data that ages.
    Scrub = 5,
    /// Parity over dies.
    Parity = 6,
    /// Filling up a program unit that had to be programmed before it was full.
    Pad = 7,
    /// Reading the rest of a unit of which the host wrote a part.
    Rmw = 8,
    /// Moves of data from an SLC write cache to its final place.
    Fold = 9,
    /// Moving valid data out of a block that has failed.
    Retire = 10,
}

impl Cause {
    /// The number of causes.
    pub const COUNT: usize = 11;
    /// Every cause, in the order of its number.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Host,
        Self::Gc,
        Self::Wear,
        Self::Map,
        Self::Merge,
        Self::Scrub,
        Self::Parity,
        Self::Pad,
        Self::Rmw,
        Self::Fold,
        Self::Retire,
    ];

    /// The name used in reports and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Gc => "gc",
            Self::Wear => "wear",
            Self::Map => "map",
            Self::Merge => "merge",
            Self::Scrub => "scrub",
            Self::Parity => "parity",
            Self::Pad => "pad",
            Self::Rmw => "rmw",
            Self::Fold => "fold",
            Self::Retire => "retire",
        }
    }
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
