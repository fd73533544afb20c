//! Names for the addresses of a device: where a file system keeps its superblocks,
//! journal, tables and data, so that a report can say what a write was for.
//!
//! A layout is read from its text form (`docs/spec/fs-layout.md`) or computed from the
//! superblocks of an image or device. It is the layout of mkfs, plus the current values of the
//! fields that are read: blocks that the file system later takes from its data area for
//! directories, inodes or trees count as data.

mod ext4;
mod ext4_journal;
mod ext4_superblock;
mod f2fs;
mod plan;
mod probe;
mod text;
mod volume;
mod xfs;

pub use plan::Damage;
pub use volume::{ProbeError, ReadAt};

/// The most regions of a layout: more than the largest supported file system has, and few
/// enough to keep in memory.
pub const REGIONS_MAX: usize = 1 << 21;

/// A range of addresses with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// First byte.
    pub start: u64,
    /// The byte behind the last one.
    pub end: u64,
    /// The content, with the name of the file system, such as `ext4 group 3 data`. Neighbours
    /// may have the same label.
    pub label: String,
    /// The group that a table sums up in one row, such as `ext4 data`.
    pub group: String,
}

/// The regions of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FsLayout {
    /// The file system, such as `ext4`.
    pub name: String,
    /// Where the layout comes from, as text.
    pub source: String,
    /// In order of addresses, never empty, not overlapping.
    regions: Vec<Region>,
}

/// Why a layout is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// The text is not in the documented format.
    #[error("line {line}: {what}")]
    Text {
        /// Line of the text, from 1.
        line: u64,
        /// What is wrong and what to do.
        what: String,
    },
    /// Nothing is laid out.
    #[error("the layout has no region; give at least one")]
    NoRegion,
    /// More regions than [`REGIONS_MAX`].
    #[error("the layout has {given} regions, more than {REGIONS_MAX}; leave small ones out")]
    TooMany {
        /// How many there are.
        given: usize,
    },
    /// A region ends where it starts, or before.
    #[error("region {label:?} ends at byte {end}, not behind its start {start}")]
    Empty {
        /// Its index among the regions.
        index: usize,
        /// Its label.
        label: String,
        /// Its first byte.
        start: u64,
        /// The byte behind its last.
        end: u64,
    },
    /// Two regions claim the same bytes.
    #[error("region {label:?} starts at byte {start}, inside of {other:?}, which ends at {end}")]
    Overlap {
        /// The index of the region that starts later.
        index: usize,
        /// Its label.
        label: String,
        /// Its first byte.
        start: u64,
        /// The label of the one that starts before it.
        other: String,
        /// The byte behind that one's last.
        end: u64,
    },
}

impl FsLayout {
    /// A layout of `regions` in any order.
    ///
    /// # Errors
    /// [`LayoutError`] if there is none, one is empty or two overlap.
    pub fn new(
        name: impl Into<String>,
        source: impl Into<String>,
        regions: Vec<Region>,
    ) -> Result<Self, LayoutError> {
        if regions.is_empty() {
            return Err(LayoutError::NoRegion);
        }
        if regions.len() > REGIONS_MAX {
            return Err(LayoutError::TooMany { given: regions.len() });
        }
        let mut order: Vec<usize> = (0..regions.len()).collect();
        order.sort_by_key(|&index| regions[index].start);
        for (turn, &index) in order.iter().enumerate() {
            let Region { start, end, ref label, .. } = regions[index];
            let label = || label.clone();
            if end <= start {
                return Err(LayoutError::Empty { index, label: label(), start, end });
            }
            let Some(before) = turn.checked_sub(1).map(|turn| &regions[order[turn]]) else {
                continue;
            };
            if before.end > start {
                let (other, end) = (before.label.clone(), before.end);
                return Err(LayoutError::Overlap { index, label: label(), start, other, end });
            }
        }
        let mut regions = regions;
        regions.sort_by_key(|region| region.start);
        Ok(Self { name: name.into(), source: source.into(), regions })
    }

    /// The regions, in order of addresses.
    #[must_use]
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }
}
