//! Plans: the flash operations that an FTL requests, as data: the units of a program, and the reads
//! that it waits for.

use borsh::{BorshDeserialize, BorshSerialize};
use prism_nand::{DieGroupId, Layout, ProgramUnitId, Pun};
use smallvec::SmallVec;

/// A range of logical units that was trimmed, and the version of the trim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct TrimRange {
    /// First logical unit.
    pub start: u32,
    /// Units.
    pub count: u32,
    /// The position of the trim in the order of the host's writes and trims.
    pub version: u64,
}

impl TrimRange {
    /// Bytes of an entry in a tombstone: start, count, version.
    pub const ENCODED: usize = 16;

    /// Encodes the entries for a tombstone, little-endian.
    #[must_use]
    pub fn encode_all(ranges: &[Self]) -> Box<[u8]> {
        let mut out = Vec::with_capacity(ranges.len() * Self::ENCODED);
        for range in ranges {
            out.extend_from_slice(&range.start.to_le_bytes());
            out.extend_from_slice(&range.count.to_le_bytes());
            out.extend_from_slice(&range.version.to_le_bytes());
        }
        out.into()
    }

    /// Decodes the entries of a tombstone.
    #[must_use]
    pub fn decode_all(bytes: &[u8]) -> Vec<Self> {
        let word = |b: &[u8]| u32::from_le_bytes(b.try_into().expect("four bytes"));
        bytes
            .chunks_exact(Self::ENCODED)
            .map(|entry| Self {
                start: word(&entry[0..4]),
                count: word(&entry[4..8]),
                version: u64::from_le_bytes(entry[8..16].try_into().expect("eight bytes")),
            })
            .collect()
    }
}

/// Where the next program unit of a stream may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostPlace {
    /// On any die group that [`crate::Ftl::host_may_write`] and [`crate::Ftl::balanced`] allow.
    Any,
    /// On this die group only.
    DieGroup(DieGroupId),
    /// On none, until [`crate::Ftl::make_room`] has led to a merge.
    Blocked,
}

/// A unit to be programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitWrite {
    /// The logical unit, or [`UnitWrite::TOMBSTONE`].
    pub lpn: u32,
    /// The source of a copy; `None` for data from the host.
    pub source: Option<Pun>,
    /// Host version, or the number of a new tombstone. Copies keep theirs.
    pub version: u64,
}

impl UnitWrite {
    /// The logical unit of a tombstone.
    pub const TOMBSTONE: u32 = u32::MAX;
    /// The logical unit of padding: a unit that is left empty, because the logical unit at this
    /// offset does not exist and later offsets are needed.
    pub const PAD: u32 = u32::MAX - 1;

    /// A unit of padding.
    #[must_use]
    pub fn pad() -> Self {
        Self { lpn: Self::PAD, source: None, version: 0 }
    }
}

/// Units of one program unit that one read command fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadRun {
    /// The program unit.
    pub program_unit: ProgramUnitId,
    /// The level of the program unit (its page of the wordline); 0 for program units of one level.
    pub level: u8,
    /// Number of pages (at most one per plane) that hold the units.
    pub pages: u16,
    /// Number of units fetched, in whole or, if they are larger than a page, in part.
    pub units: u16,
    /// Sectors of 512 bytes of these units that are read from the array and not transferred, on a
    /// drive that transfers only the sectors that are needed. Units larger than a page count
    /// without the pages that are not read.
    pub sectors_left_out: u16,
    /// Read retries and rebuild.
    pub recovery: ReadRecovery,
}

impl ReadRun {
    /// The read of one unit, of which `pages` pages are read and transferred.
    #[must_use]
    #[inline(always)]
    pub fn of_unit(
        program_unit: ProgramUnitId,
        level: u8,
        pages: u16,
        recovery: ReadRecovery,
    ) -> Self {
        Self { program_unit, level, pages, units: 1, sectors_left_out: 0, recovery }
    }
}

/// Read retries, and whether an unreadable unit is rebuilt from the other members of its stripe.
/// One byte, since most reads need neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadRecovery(u8);

impl ReadRecovery {
    /// The most retries that can be recorded.
    pub const RETRIES_MAX: u32 = 127;
    const REBUILT: u8 = 128;

    /// Records that a unit of the run takes `retries`. The highest of all units counts.
    pub fn add_retries(&mut self, retries: u32) {
        let most = (self.0 & !Self::REBUILT).max(retries.min(Self::RETRIES_MAX) as u8);
        self.0 = self.0 & Self::REBUILT | most;
    }

    /// Records that a unit of the run is rebuilt.
    pub fn add_rebuild(&mut self) {
        self.0 |= Self::REBUILT;
    }

    /// Read retries after the first attempt.
    #[must_use]
    pub fn retries(self) -> u32 {
        u32::from(self.0 & !Self::REBUILT)
    }

    /// Whether the other members of the stripe are read afterwards.
    #[must_use]
    pub fn is_rebuilt(self) -> bool {
        self.0 & Self::REBUILT != 0
    }
}

/// The units of one program, at most a program unit. One unit is stored inline: many drives have
/// program units of one unit, and this saves their programs a cache line.
pub type Units = SmallVec<[UnitWrite; 1]>;

/// The read of the single unit at `at`.
#[inline]
pub(crate) fn read_of(layout: &Layout, at: Pun) -> ReadRun {
    let (program_unit, level, _) = layout.program_unit_and_pages_of(at);
    let (level, pages) = (level as u8, layout.pages_per_unit() as u16);
    ReadRun::of_unit(program_unit, level, pages, ReadRecovery::default())
}

/// The read of all of `program_unit`, which holds one unit.
#[inline]
pub(crate) fn read_of_program_unit(layout: &Layout, program_unit: ProgramUnitId) -> ReadRun {
    let pages = layout.pages_per_unit() as u16;
    ReadRun::of_unit(program_unit, 0, pages, ReadRecovery::default())
}

/// Adds `at` to `reads`: one command per level of a program unit as long as successive units are on
/// it, and one page per plane needed. `planes` has a bit for each page in the last command.
#[inline(always)]
pub(crate) fn add_read(layout: &Layout, at: Pun, planes: &mut u64, reads: &mut Vec<ReadRun>) {
    let (program_unit, level, pages) = layout.program_unit_and_pages_of(at);
    add_pages(program_unit, level, pages, layout.pages_per_unit(), planes, reads);
}

/// As [`add_read`], for a unit of several pages of which those in `wanted` are read: a bit for each
/// page of the unit, the first in the lowest bit.
pub(crate) fn add_read_part(
    layout: &Layout,
    at: Pun,
    wanted: u64,
    planes: &mut u64,
    reads: &mut Vec<ReadRun>,
) {
    let (program_unit, level, pages) = layout.program_unit_and_pages_of(at);
    let wanted = wanted << pages.trailing_zeros() & pages;
    add_pages(program_unit, level, wanted, wanted.count_ones(), planes, reads);
}

/// `count` is the number of bits in `pages`: callers nearly always know it, and without a
/// population count instruction it costs more than the rest.
#[inline(always)]
fn add_pages(
    program_unit: ProgramUnitId,
    level: u32,
    pages: u64,
    count: u32,
    planes: &mut u64,
    reads: &mut Vec<ReadRun>,
) {
    match reads.last_mut() {
        Some(run) if run.program_unit == program_unit && u32::from(run.level) == level => {
            run.units += 1;
            run.pages += (pages & !*planes).count_ones() as u16;
            *planes |= pages;
        }
        _ => {
            let (level, count) = (level as u8, count as u16);
            let recovery = ReadRecovery::default();
            reads.push(ReadRun::of_unit(program_unit, level, count, recovery));
            *planes = pages;
        }
    }
}
