//! Plans: what an FTL wants done to the flash, as data: the units of a program, and the reads
//! that it waits for.

use prism_nand::{DieGroupId, Layout, ProgramUnitId, Pun};
use smallvec::SmallVec;

/// A range of logical units that was trimmed, and the version of the trim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrimRange {
    /// First logical unit.
    pub start: u32,
    /// Units.
    pub count: u32,
    /// Its place in the order of the host's writes and trims.
    pub version: u64,
}

impl TrimRange {
    /// Bytes of an entry in a tombstone: start, count, version.
    pub const ENCODED: usize = 16;

    /// The entries as a tombstone holds them, little endian.
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

    /// The entries of an encoded tombstone.
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
    /// To any die group that [`crate::Ftl::host_may_write`] and [`crate::Ftl::balanced`] allow.
    Any,
    /// To this die group and no other.
    DieGroup(DieGroupId),
    /// Nowhere, until [`crate::Ftl::make_room`] has led to a merge.
    Blocked,
}

/// A unit to be programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitWrite {
    /// The logical unit, or [`UnitWrite::TOMBSTONE`].
    pub lpn: u32,
    /// Where a copy comes from; `None` for what the host sent.
    pub source: Option<Pun>,
    /// Host version; the number of the tombstone for a new one. Copies keep theirs.
    pub version: u64,
}

impl UnitWrite {
    /// Stands for the logical unit of a tombstone.
    pub const TOMBSTONE: u32 = u32::MAX;
    /// Stands for the logical unit of a place that stays empty, because what would belong
    /// there does not exist and the places after it are needed.
    pub const PAD: u32 = u32::MAX - 1;

    /// An empty place.
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
    /// The level of the program unit (its page of a wordline); 0 where program units have one.
    pub level: u8,
    /// Pages (one a plane) that hold the units.
    pub pages: u16,
    /// Units fetched, in whole or, where they are larger than a page, in part.
    pub units: u16,
    /// What it takes beyond a first reading.
    pub recovery: ReadRecovery,
}

/// Readings beyond the first, and whether what cannot be read is rebuilt from the other
/// members of its stripe: one byte, since most reads have none of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadRecovery(u8);

impl ReadRecovery {
    /// Readings beyond the first that can be told.
    pub const RETRIES_MAX: u32 = 127;
    const REBUILT: u8 = 128;

    /// A unit of the run takes `retries`, beside what others take.
    pub fn add_retries(&mut self, retries: u32) {
        let most = (self.0 & !Self::REBUILT).max(retries.min(Self::RETRIES_MAX) as u8);
        self.0 = self.0 & Self::REBUILT | most;
    }

    /// A unit of the run is rebuilt.
    pub fn add_rebuild(&mut self) {
        self.0 |= Self::REBUILT;
    }

    /// Readings beyond the first.
    #[must_use]
    pub fn retries(self) -> u32 {
        u32::from(self.0 & !Self::REBUILT)
    }

    /// Whether other members of the stripe are read after that.
    #[must_use]
    pub fn is_rebuilt(self) -> bool {
        self.0 & Self::REBUILT != 0
    }
}

/// The units of one program, at most a program unit. One unit needs no memory of its own: many
/// drives have program units of one, and then a program is one cache line less.
pub type Units = SmallVec<[UnitWrite; 1]>;

/// The read of the unit at `at` alone.
#[inline]
pub(crate) fn read_of(layout: &Layout, at: Pun) -> ReadRun {
    let (program_unit, level, _) = layout.program_unit_and_pages_of(at);
    let (level, pages) = (level as u8, layout.pages_per_unit() as u16);
    ReadRun { program_unit, level, pages, units: 1, recovery: ReadRecovery::default() }
}

/// The read of all of `program_unit`, which holds one unit.
#[inline]
pub(crate) fn read_of_program_unit(layout: &Layout, program_unit: ProgramUnitId) -> ReadRun {
    let pages = layout.pages_per_unit() as u16;
    ReadRun { program_unit, level: 0, pages, units: 1, recovery: ReadRecovery::default() }
}

/// Adds `at` to `reads`: one command for a level of a program unit as long as units of it follow
/// each other, and one page for each plane that is needed. `planes` has a bit for each page
/// in the last command.
#[inline(always)]
pub(crate) fn add_read(layout: &Layout, at: Pun, planes: &mut u64, reads: &mut Vec<ReadRun>) {
    let (program_unit, level, pages) = layout.program_unit_and_pages_of(at);
    add_pages(program_unit, level, pages, layout.pages_per_unit(), planes, reads);
}

/// The same of a unit of several pages, of which those in `wanted` are read: a bit for each
/// page of the unit, the first the lowest.
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

/// `count` is that of the bits of `pages`: it is known nearly always, and costs more than the
/// rest where the processor is not asked.
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
            reads.push(ReadRun { program_unit, level, pages: count, units: 1, recovery });
            *planes = pages;
        }
    }
}
