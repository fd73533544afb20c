//! One range: a write buffer of program units, and a controller with an FTL over its blocks.

use prism_base::{FastMap, SimTime, Slab};
use prism_engine::{Cleaning, CleaningMode, Controller, Done, HostUnit};
use prism_ftl::PendingTrims;
use prism_ftl::{Ftl, TrimRange, UnitWrite};
use prism_nand::{Cause, DieGroupId, Pun};

use crate::error::{FlashError, Result};
use crate::monitor::{Share, Urgency};
use crate::policy::config::RangeRecord;
use crate::policy::division::ftl_config;
use crate::policy::flash::{RangeFlash, Reading};
use crate::policy::program_units::ProgramUnitFormat;
use crate::policy::reads::Piece;

/// Program units of copies that are processed for each host program unit on a device without
/// timing: enough for a write amplification of 3, and few enough not to delay the caller for long.
const COPIES_PER_HOST_PROGRAM: u64 = 2;
/// Erased blocks of a die group below which cleaning has priority over the host.
const FREE_BLOCKS_CRITICAL: u32 = 2;

/// Units of one stream in memory: buffered until their program unit is full, then until the program
/// is complete.
#[derive(Debug, Default)]
struct ProgramUnit {
    units: Vec<UnitWrite>,
    bytes: Vec<u8>,
    /// Units whose program is in flight.
    left: usize,
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
    /// Program units whose programs are in flight.
    in_flight: u32,
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
            in_flight: 0,
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

    fn share(&self) -> &Share {
        self.flash().share()
    }

    fn alive(&self) -> Result<()> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// Notes a failure of the device: the state of the FTL may be wrong from then on.
    fn check(&mut self) -> Result<()> {
        let checked = self.flash().check();
        self.failed = checked.clone().err();
        checked
    }

    /// Ends the next operation in flight, and follows its time.
    fn step(&mut self) -> Result<()> {
        let mut done = std::mem::take(&mut self.done);
        self.now = self.engine.step(&mut done).max(self.now);
        for event in done.drain(..) {
            let Done::Wrote { tag } = event else { unreachable!("reads bypass the controller") };
            self.unit_written(tag);
        }
        self.done = done;
        self.check()
    }

    /// A unit of program unit `place` is on flash.
    fn unit_written(&mut self, place: u32) {
        let program_unit = &mut self.program_units[place];
        program_unit.left -= 1;
        if program_unit.left > 0 {
            return;
        }
        for write in &program_unit.units {
            if self.pending.get(&write.lpn).is_some_and(|&(at, _)| at == place) {
                self.pending.remove(&write.lpn);
            }
        }
        program_unit.units.clear();
        program_unit.bytes.clear();
        self.in_flight -= 1;
        self.program_units.give(place);
    }

    /// Ends operations: on a device with timing those that end by the time of the share's clock,
    /// on others at most a few program units of copies.
    fn make_progress(&mut self) -> Result<()> {
        if self.share().is_timed() {
            let now = self.share().now()?.max(self.now);
            return self.follow(now);
        }
        let most = self.flash().copied + COPIES_PER_HOST_PROGRAM;
        while !self.engine.is_idle() && self.flash().copied < most {
            self.step()?;
        }
        Ok(())
    }

    /// Ends all operations in flight, cleaning included.
    pub(super) fn settle(&mut self) -> Result<()> {
        while !self.engine.is_idle() {
            self.step()?;
        }
        Ok(())
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
        &self,
        offset: u64,
        into: &mut [u8],
        cause: Cause,
        urgency: Urgency,
    ) -> Result<SimTime> {
        self.alive()?;
        let now = self.share().now_if_timed()?;
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

    /// Writes bytes from `offset` of the range on, as data of `handle`, and waits until flash has
    /// taken the data of the programs that this begins.
    pub(crate) fn write(
        &mut self,
        offset: u64,
        data: &[u8],
        handle: u32,
        urgency: Urgency,
    ) -> Result<()> {
        let sent = self.begin_write(offset, data, handle, urgency)?;
        self.share().reach_if_timed(sent)
    }

    /// As [`Range::write`], without waiting for the time at which the data is taken, which it
    /// returns. Parts of units are completed by a read, which the data after it waits for.
    pub(crate) fn begin_write(
        &mut self,
        offset: u64,
        data: &[u8],
        handle: u32,
        urgency: Urgency,
    ) -> Result<SimTime> {
        self.alive()?;
        self.make_progress()?;
        self.urgency = urgency;
        let mut end = self.share().now_if_timed()?;
        self.engine.device_mut().sent = end;
        let unit = u64::from(self.unit);
        let (mut at, mut left) = (offset, data);
        while !left.is_empty() {
            let (lpn, within) = ((at / unit) as u32, (at % unit) as usize);
            let len = left.len().min(self.unit as usize - within);
            if len < self.unit as usize {
                let mut whole = vec![0; self.unit as usize];
                let read = self.begin_read(at - within as u64, &mut whole, Cause::Rmw, urgency)?;
                end = end.max(read);
                self.follow(read)?;
                whole[within..within + len].copy_from_slice(&left[..len]);
                self.write_unit(lpn, &whole, handle)?;
            } else {
                self.write_unit(lpn, &left[..len], handle)?;
            }
            at += len as u64;
            left = &left[len..];
        }
        Ok(end.max(self.flash().sent))
    }

    /// Ends the operations in flight that end by `time`, which may be ahead of the share's clock.
    fn follow(&mut self, time: SimTime) -> Result<()> {
        if self.share().is_timed() {
            while self.engine.next_at() <= time {
                self.step()?;
            }
            self.now = self.now.max(time);
        }
        Ok(())
    }

    /// Writes slices one after the other, as data of `handle`. A unit of parts of several slices is
    /// assembled first.
    pub(crate) fn write_vectored(
        &mut self,
        offset: u64,
        parts: &[&[u8]],
        handle: u32,
        urgency: Urgency,
    ) -> Result<()> {
        let unit = self.unit as usize;
        let (mut at, mut together) = (offset, Vec::new());
        for &part in parts {
            let mut rest = part;
            while !rest.is_empty() {
                let within = (at % unit as u64) as usize + together.len();
                // Whole units are written from where they are.
                let whole = if within == 0 { rest.len() / unit * unit } else { 0 };
                let len = if whole > 0 { whole } else { rest.len().min(unit - within) };
                let (taken, left) = rest.split_at(len);
                rest = left;
                if whole > 0 {
                    self.write(at, taken, handle, urgency)?;
                    at += len as u64;
                    continue;
                }
                together.extend_from_slice(taken);
                if within + len == unit {
                    self.write(at, &together, handle, urgency)?;
                    at += together.len() as u64;
                    together.clear();
                }
            }
        }
        if together.is_empty() { Ok(()) } else { self.write(at, &together, handle, urgency) }
    }

    fn write_unit(&mut self, lpn: u32, bytes: &[u8], handle: u32) -> Result<()> {
        let version = self.version;
        self.version += 1;
        if !self.trims.is_empty() {
            self.trims.carve(lpn, lpn + 1, version);
        }
        if let Some(&(at, place)) = self.pending.get(&lpn)
            && self.program_units[at].left == 0
        {
            let program_unit = &mut self.program_units[at];
            program_unit.units[place as usize].version = version;
            let from = place as usize * bytes.len();
            program_unit.bytes[from..from + bytes.len()].copy_from_slice(bytes);
            return Ok(());
        }
        let stream = self.engine.ftl().stream_of(lpn, handle) as usize;
        let at = *self.filling[stream].get_or_insert_with(|| self.program_units.take());
        let program_unit = &mut self.program_units[at];
        program_unit.units.push(UnitWrite { lpn, source: None, version });
        program_unit.bytes.extend_from_slice(bytes);
        let count = program_unit.units.len();
        self.pending.insert(lpn, (at, count as u32 - 1));
        if count == self.units_per_program_unit { self.program(stream as u32) } else { Ok(()) }
    }

    /// Programs the buffered units of `stream`, if there are any.
    fn program(&mut self, stream: u32) -> Result<()> {
        let Some(at) = self.filling[stream as usize] else { return Ok(()) };
        let first = match self.program_units[at].units.first() {
            Some(first) => first.lpn,
            None => return Ok(()),
        };
        let die_group = self.die_group_for(stream, first)?;
        self.filling[stream as usize] = None;
        let program_unit = &mut self.program_units[at];
        program_unit.left = program_unit.units.len();
        self.in_flight += 1;
        if !self.kept.is_empty() {
            self.programmed.extend(program_unit.units.iter().map(|write| write.lpn));
        }
        self.host_units.clear();
        let host_unit = |&write: &UnitWrite| HostUnit { write, tag: at, lost: false };
        self.host_units.extend(program_unit.units.iter().map(host_unit));
        let bytes = std::mem::take(&mut program_unit.bytes);
        let flash = self.engine.device_mut();
        (flash.host, flash.urgency) = (bytes, self.urgency);
        self.engine.write(die_group, stream, &self.host_units, self.now);
        // They can be read until the program has ended.
        self.program_units[at].bytes = std::mem::take(&mut self.engine.device_mut().host);
        self.check()?;
        self.make_progress()
    }

    /// A die group for the next program unit of `stream`, which begins with `first`. Waits for
    /// operations in flight if each has to be cleaned first.
    fn die_group_for(&mut self, stream: u32, first: u32) -> Result<DieGroupId> {
        let urgent = self.urgency == Urgency::Urgent;
        self.engine.set_urgent(urgent, self.now);
        loop {
            if urgent {
                self.engine.prefer_without_cleaning();
            }
            let found = self.engine.writable_die_group(stream, first, self.now);
            self.check()?;
            if let Some(die_group) = found {
                return Ok(die_group);
            }
            if self.engine.is_idle() {
                // After recovery nothing has begun to clean, or cleaning waits for urgent data.
                self.engine.set_urgent(false, self.now);
                let cleans =
                    self.engine.begin_cleaning(self.now) || self.engine.clean_to_high(self.now);
                self.check()?;
                assert!(cleans, "no die group accepts a program unit: too little spare space");
                continue;
            }
            self.step()?;
        }
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

    /// Removes a unit from memory; the last one of its program unit takes its place, unless that is
    /// in flight.
    fn drop_pending(&mut self, lpn: u32) {
        let Some((at, place)) = self.pending.remove(&lpn) else { return };
        let program_unit = &mut self.program_units[at];
        if program_unit.left > 0 {
            return;
        }
        program_unit.units.swap_remove(place as usize);
        let (unit, place) = (self.unit as usize, place as usize);
        let last = program_unit.bytes.len() - unit;
        program_unit.bytes.copy_within(last.., place * unit);
        program_unit.bytes.truncate(last);
        if let Some(moved) = program_unit.units.get(place) {
            self.pending.insert(moved.lpn, (at, place as u32));
        }
    }

    /// Programs all buffered units, and waits until they are on flash.
    pub(crate) fn program_all(&mut self) -> Result<()> {
        self.alive()?;
        self.urgency = Urgency::Normal;
        for stream in 0..self.filling.len() as u32 {
            self.program(stream)?;
        }
        while self.in_flight > 0 {
            self.step()?;
        }
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
        for lpn in self.programmed.drain(..) {
            // A mapped unit is newer than any trim of it.
            if self.engine.ftl().lookup(lpn).is_some() {
                self.kept.carve(lpn, lpn + 1, u64::MAX);
            }
        }
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

    /// Cleans in idle time: ends at most `program_units` program units of copies. Returns whether
    /// there was anything to do.
    pub(crate) fn idle(&mut self, program_units: u32) -> Result<bool> {
        self.alive()?;
        self.make_progress()?;
        let any = self.engine.clean_to_high(self.now);
        let most = self.flash().copied + u64::from(program_units);
        while !self.engine.is_idle() && self.flash().copied < most {
            self.step()?;
        }
        self.check()?;
        Ok(any)
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
