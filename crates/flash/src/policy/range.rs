//! One range: a write buffer of program units, and a controller with an FTL over its blocks.

mod dispatch;
mod progress;
mod write;

use prism_base::{FastMap, SimTime, Slab};
use prism_engine::{Cleaning, CleaningMode, Controller, Done, FlashCounts, HostUnit};
use prism_ftl::PendingTrims;
use prism_ftl::{Ftl, TrimRange, UnitWrite};
use prism_nand::{Cause, Pun};

use crate::error::{FlashError, Result};
use crate::monitor::{Share, Urgency};
use crate::policy::config::RangeRecord;
use crate::policy::division::ftl_config;
use crate::policy::flash::{RangeFlash, Reading};
use crate::policy::program_units::ProgramUnitFormat;
use crate::policy::reads::Piece;
use dispatch::{Waiting, Write};

/// Erased blocks of a die group below which cleaning has priority over the host.
const FREE_BLOCKS_CRITICAL: u32 = 2;

/// Units of one stream in memory: buffered until their program unit is full, then until a die group
/// takes it, then until the program is complete.
#[derive(Debug, Default)]
struct ProgramUnit {
    units: Vec<UnitWrite>,
    bytes: Vec<u8>,
    /// Units whose program is in flight.
    left: usize,
    /// The write that has filled it, and waits until flash has its data.
    write: Option<u32>,
}

/// A range that can be read and written.
#[derive(Debug)]
pub(crate) struct Range {
    pub(crate) record: RangeRecord,
    engine: Controller<RangeFlash>,
    unit: u32,
    units_per_program_unit: usize,
    program_units: Slab<ProgramUnit>,
    /// The program unit that is being filled, by stream.
    filling: Vec<Option<u32>>,
    /// Program units that wait for a die group, in the order in which they were filled.
    waiting: Waiting,
    /// Program units whose programs are in flight.
    in_flight: u32,
    /// Writes on a device with timing whose data flash does not have, and the one in progress.
    writes: Slab<Write>,
    write: Option<u32>,
    /// Units in memory: program unit, and index there.
    pending: FastMap<u32, (u32, u32)>,
    done: Vec<Done>,
    host_units: Vec<HostUnit>,
    /// How far simulated time was followed.
    now: SimTime,
    version: u64,
    /// Trims that are not durable yet. The FTL does not have them: until they are durable, a power
    /// failure has to leave the data of the last flush.
    trims: PendingTrims,
    /// Trims in the journal, as long as older data of their units may be on flash.
    kept: PendingTrims,
    /// Units programmed since the last flush, noted if `kept` has anything.
    programmed: Vec<u32>,
    /// The urgency of the last write.
    urgency: Urgency,
    /// The error after which the range has to be opened again.
    failed: Option<FlashError>,
}

impl Range {
    /// A range over erased blocks, or, with the trims of the journal, one that was used
    /// before.
    pub(crate) fn open(
        share: &Share,
        record: RangeRecord,
        format: ProgramUnitFormat,
        open: u32,
        recover: Option<PendingTrims>,
    ) -> Result<Self> {
        let (die_groups, units) = (record.die_groups, units_of(&record, &format));
        let per_die_group = record.blocks.len() as u32 / die_groups;
        let config = ftl_config(&record.config, &format, units, die_groups, per_die_group, open);
        let blocks = record.blocks.clone();
        let mut flash = RangeFlash::new(share.clone(), format, die_groups, blocks, open, units);
        let seed = u64::from(record.id);
        let (mut version, kept) = (1, recover.clone().unwrap_or_default());
        let ftl = match recover {
            None => Ftl::new(format.geometry(die_groups, per_die_group), config, seed)?,
            Some(trims) => {
                let trims: Vec<_> = trims
                    .iter()
                    .map(|(start, end, version)| TrimRange { start, count: end - start, version })
                    .collect();
                let (ftl, found) = Ftl::recover(&mut flash, config, seed, &trims)?;
                flash.check()?;
                share.reach_if_timed(flash.programmed)?;
                flash.finish_open()?;
                flash.set_sequence(found.newest_sequence + 1);
                let trimmed = trims.iter().map(|trim| trim.version).max().unwrap_or(0);
                version = found.newest_version.max(trimmed) + 1;
                ftl
            }
        };
        let filling = vec![None; ftl.streams() as usize];
        let cleaning = Cleaning {
            mode: CleaningMode::PriorityAware,
            free_blocks_critical: FREE_BLOCKS_CRITICAL,
            free_blocks_idle: 0,
        };
        // Opening a range writes nothing.
        let engine = Controller::at_rest(flash, ftl, cleaning);
        Ok(Self {
            record,
            engine,
            unit: format.unit,
            units_per_program_unit: format.units as usize,
            program_units: Slab::new(),
            filling,
            waiting: Waiting::default(),
            in_flight: 0,
            writes: Slab::new(),
            write: None,
            pending: FastMap::default(),
            done: Vec::new(),
            host_units: Vec::new(),
            now: share.now_if_timed()?,
            version,
            trims: PendingTrims::default(),
            kept,
            programmed: Vec::new(),
            urgency: Urgency::Normal,
            failed: None,
        })
    }

    pub(super) fn flash(&self) -> &RangeFlash {
        self.engine.device()
    }

    /// Its operations by cause.
    pub(crate) fn counts(&self) -> &FlashCounts {
        self.engine.counts()
    }

    fn share(&self) -> &Share {
        self.flash().share()
    }

    fn alive(&self) -> Result<()> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// Notes a failure of the device: the state of the FTL may be wrong from then on.
    fn check(&mut self) -> Result<()> {
        let checked = self.flash().check();
        if let Err(error) = &checked {
            self.failed = Some(error.clone());
            self.fail_waiting(error);
        }
        checked
    }

    /// Whether it has no mapped or buffered unit.
    pub(crate) fn is_empty(&self) -> bool {
        self.engine.ftl().mapped() == 0 && self.pending.is_empty()
    }

    /// Bytes of its mapped units.
    pub(crate) fn mapped_bytes(&self) -> u64 {
        self.engine.ftl().mapped() * u64::from(self.unit)
    }

    /// Its blocks of the share.
    pub(crate) fn blocks(&self) -> &[u32] {
        self.flash().blocks()
    }

    /// Closes its blocks until they are erased.
    pub(crate) fn finish_open(&self) -> Result<()> {
        self.flash().finish_open()
    }

    pub(crate) fn erase_all(&self) -> Result<()> {
        self.flash().erase_all()
    }

    /// Reads bytes from `offset` of the range on; bytes that were never written are zero.
    pub(crate) fn read(
        &mut self,
        offset: u64,
        into: &mut [u8],
        cause: Cause,
        urgency: Urgency,
    ) -> Result<()> {
        let end = self.begin_read(offset, into, cause, urgency)?;
        self.share().reach_if_timed(end)
    }

    /// As [`Range::read`], without waiting for the end, which it returns.
    pub(crate) fn begin_read(
        &mut self,
        offset: u64,
        into: &mut [u8],
        cause: Cause,
        urgency: Urgency,
    ) -> Result<SimTime> {
        self.alive()?;
        let now = self.share().now_if_timed()?;
        // What has been programmed by now is read from flash, not from its buffer.
        self.follow(now)?;
        self.read_from(offset, into, Reading { cause, urgency, now })
    }

    /// Looks up where bytes are, and copies those that are in memory. Adds the others to `pieces`,
    /// as those for buffer number `buffer`.
    pub(super) fn plan_read(
        &self,
        offset: u64,
        (buffer, into): (usize, &mut [u8]),
        pieces: &mut Vec<Piece>,
    ) -> Result<()> {
        self.alive()?;
        let (mut at, mut to) = (offset, 0);
        while to < into.len() {
            let (place, within, len) = self.piece(at, into.len() - to);
            let part = &mut into[to..to + len];
            match place {
                UnitLocation::Buffered(at_unit, place) => {
                    let from = place as usize * self.unit as usize + within as usize;
                    part.copy_from_slice(&self.program_units[at_unit].bytes[from..from + len]);
                }
                UnitLocation::Unmapped => part.fill(0),
                UnitLocation::Flash(pun) => {
                    let (block, from) = self.flash().bytes_of(pun, within);
                    pieces.push(Piece { block, from, len, to: (buffer, to) });
                }
            }
            (at, to) = (at + len as u64, to + len);
        }
        Ok(())
    }

    fn read_from(&self, offset: u64, into: &mut [u8], reading: Reading) -> Result<SimTime> {
        let (mut at, mut left, mut end) = (offset, into, reading.now);
        while !left.is_empty() {
            let (place, within, len) = self.piece(at, left.len());
            let (part, rest) = left.split_at_mut(len);
            match place {
                UnitLocation::Buffered(at_unit, place) => {
                    let from = place as usize * self.unit as usize + within as usize;
                    part.copy_from_slice(&self.program_units[at_unit].bytes[from..from + len]);
                }
                UnitLocation::Unmapped => part.fill(0),
                UnitLocation::Flash(pun) => {
                    end = end.max(self.flash().read_unit(pun, within, part, reading)?);
                }
            }
            at += len as u64;
            left = rest;
        }
        Ok(end)
    }

    /// The location of the first of `left` bytes from `at` on: that of their unit, the offset in
    /// it, and the number of bytes that are contiguous there.
    pub(super) fn piece(&self, at: u64, left: usize) -> (UnitLocation, u32, usize) {
        let unit = u64::from(self.unit);
        let (lpn, within) = ((at / unit) as u32, (at % unit) as u32);
        let place = self.location_of(lpn);
        let units = match place {
            UnitLocation::Flash(pun) => self.run_from(lpn, pun, within as usize + left),
            UnitLocation::Buffered(..) | UnitLocation::Unmapped => 1,
        };
        (place, within, left.min((units * self.unit - within) as usize))
    }

    #[inline]
    fn location_of(&self, lpn: u32) -> UnitLocation {
        if let Some(&(at, place)) = self.pending.get(&lpn) {
            return UnitLocation::Buffered(at, place);
        }
        if !self.trims.is_empty() && self.trims.contains(lpn) {
            return UnitLocation::Unmapped;
        }
        self.engine.ftl().lookup(lpn).map_or(UnitLocation::Unmapped, UnitLocation::Flash)
    }

    /// How many units from `lpn` on, which is at `pun`, are contiguous on one page, within `bytes`
    /// bytes.
    fn run_from(&self, lpn: u32, pun: Pun, bytes: usize) -> u32 {
        let wanted = bytes.div_ceil(self.unit as usize) as u32;
        let format = &self.flash().format;
        let per_page = format.page_size / self.unit;
        let in_program_unit = pun.0 % format.units;
        let most =
            wanted.min(per_page - in_program_unit % per_page).min(format.units - in_program_unit);
        let follows = |n: &u32| match self.location_of(lpn + n) {
            UnitLocation::Flash(next) => next.0 == pun.0 + n,
            UnitLocation::Buffered(..) | UnitLocation::Unmapped => false,
        };
        (1..most).take_while(follows).count() as u32 + 1
    }

    /// Trims units: they read as zeros from now on and, once a flush is complete, also after a
    /// power failure.
    pub(crate) fn trim(&mut self, start: u32, end: u32) -> Result<()> {
        self.alive()?;
        let version = self.version;
        self.version += 1;
        if !self.pending.is_empty() {
            for lpn in start..end {
                self.drop_pending(lpn);
            }
        }
        self.trims.insert(start, end, version);
        Ok(())
    }

    /// The trims that have to become durable.
    pub(crate) fn new_trims(&self) -> impl Iterator<Item = (u32, u32, u64)> {
        self.trims.iter()
    }

    /// All trims that the journal has to contain, including the new ones.
    pub(crate) fn all_trims(&self) -> impl Iterator<Item = (u32, u32, u64)> {
        self.kept.iter().chain(self.trims.iter())
    }

    /// Whether the journal has trims of the range, or will have with the next flush.
    pub(crate) fn has_trims(&self) -> bool {
        self.all_trims().next().is_some()
    }

    #[cfg(test)]
    pub(crate) fn programmed_units(&self) -> usize {
        self.programmed.len()
    }

    /// Forgets which units were programmed, as there are no trims that they could end.
    pub(crate) fn forget_programmed(&mut self) {
        self.programmed.clear();
    }

    /// Updates the trims after a flush: everything programmed and all trims are durable. Returns
    /// the end of the last program.
    pub(crate) fn flushed(&mut self) -> SimTime {
        if !self.trims.is_empty() {
            let trims = std::mem::take(&mut self.trims);
            for (start, end, version) in trims.iter() {
                self.engine.ftl_mut().trim_now(start, end, version);
                self.kept.insert(start, end, version);
            }
            self.engine.look_for_garbage(self.now);
        }
        let (pending, ftl, kept) = (&self.pending, self.engine.ftl(), &mut self.kept);
        self.programmed.retain(|&lpn| {
            // A mapped unit is newer than any trim of it. On a device with timing its program may
            // not have ended yet.
            if ftl.lookup(lpn).is_some() {
                kept.carve(lpn, lpn + 1, u64::MAX);
            }
            pending.contains_key(&lpn)
        });
        // A unit that is written again and again may be in flight at each flush.
        self.programmed.sort_unstable();
        self.programmed.dedup();
        self.flash().programmed
    }

    /// Limits the ranges of trims to `most`, as the journal is small: writes zeros over trimmed
    /// units, which read as zeros anyway.
    pub(crate) fn limit_trims(&mut self, most: usize) -> Result<()> {
        let count = self.all_trims().count();
        if count <= most {
            return Ok(());
        }
        let mut ranges: Vec<_> = self.all_trims().collect();
        ranges.sort_by_key(|&(start, end, _)| (end - start, start));
        let zeros = vec![0; self.unit as usize];
        for (start, end, _) in ranges.into_iter().take(count - most / 2) {
            for lpn in start..end {
                if matches!(self.location_of(lpn), UnitLocation::Unmapped) {
                    self.write_unit(lpn, &zeros, 0)?;
                }
                self.kept.carve(lpn, lpn + 1, self.version);
            }
        }
        Ok(())
    }

    /// Checks the invariants of the FTL.
    ///
    /// # Panics
    /// If one does not hold.
    pub(crate) fn assert_consistent(&self) {
        self.engine.ftl().assert_consistent();
    }
}

/// The location of a unit.
pub(super) enum UnitLocation {
    Buffered(u32, u32),
    Flash(Pun),
    Unmapped,
}

/// Units of a range.
pub(crate) fn units_of(record: &RangeRecord, format: &ProgramUnitFormat) -> u32 {
    ((record.end - record.begin) / u64::from(format.unit)) as u32
}
