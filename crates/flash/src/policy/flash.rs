//! Blocks of a share as the device of a controller.
//!
//! Operations are executed when they are submitted. On a device with timing they end at the time
//! that the share's timeline gives them, on others at once: the media of the library buffer
//! programs themselves.

use prism_base::{EventQueue, FastMap, FastSet, SimTime, Slab};
use prism_engine::FlashCounts;
use prism_engine::device::{Ended, FlashDevice, Jobs, Load};
use prism_ftl::{FlashScan, ReadRun, ScannedUnit, UnitWrite};
use prism_nand::{BlockId, Cause, DieId, Geometry, Layout, ProgramUnitId, Pun, Status};

use crate::error::{FlashError, Result};
use crate::medium::PageState;
use crate::monitor::{Access, Programmed, Share, Urgency};
use crate::policy::program_units::{ProgramUnitFormat, Tag, decode_header, encode_header};

/// Program units of the host, and copies, that a LUN has at once on a device with timing: it begins
/// them when it is free, so reads that are submitted meanwhile go before all that wait.
const TIMED_MAX: u32 = 1;
/// The same without timing, where operations end when submitted: as in the simulated drive.
const UNTIMED_MAX: u32 = 2;

/// The cause, urgency and start of a read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) cause: Cause,
    pub(crate) urgency: Urgency,
    pub(crate) now: SimTime,
}

/// The page and header read last, for copies of units from the same page.
#[derive(Debug, Default)]
struct LastRead {
    /// Block of the share and page.
    page: Option<(u32, u32)>,
    data: Vec<u8>,
    /// Program unit whose header this is.
    program_unit: Option<ProgramUnitId>,
    header: Vec<u8>,
    tags: Vec<Tag>,
    end: SimTime,
}

/// The blocks of a range.
#[derive(Debug)]
pub(crate) struct RangeFlash {
    share: Share,
    pub(crate) format: ProgramUnitFormat,
    geometry: Geometry,
    layout: Layout,
    /// Block of the FTL to block of the share.
    blocks: Vec<u32>,
    /// Blocks that may be partly written, and, if that is limited, those that are.
    open_max: u32,
    open: Vec<BlockId>,
    sequence: u64,
    /// When everything programmed so far is on flash (or read, in recovery), and when the
    /// last program had taken its data.
    pub(crate) programmed: SimTime,
    pub(crate) sent: SimTime,
    header: Vec<u8>,
    tags: Vec<Tag>,
    last: LastRead,
    /// What was read for copies, by job.
    copies: FastMap<u32, Copy>,
    /// The bytes of the next host program, which are there again after it, and its urgency.
    pub(crate) host: Vec<u8>,
    pub(crate) urgency: Urgency,
    /// Operations that have been executed, by the time at which they end.
    ends: EventQueue,
    ended: Slab<Option<Ended>>,
    counts: FlashCounts,
    loads: Vec<Load>,
    /// Program units of the host, and copies, that a die has at once.
    in_flight_max: u32,
    /// Whether a die takes a block of program units at once, as their writer waits for all.
    pub(crate) takes_blocks: bool,
    /// Logical units of the range.
    logical_units: u32,
    /// Programs of copies so far.
    pub(crate) copied: u64,
    /// Whether blocks become durable in an order of their own, so that a sync is needed where the
    /// order matters.
    unordered: bool,
    /// A block was erased since the last sync; and the blocks programmed with host data since.
    erased: bool,
    programmed_blocks: FastSet<u32>,
    /// The first error, after which nothing is executed.
    failed: Option<FlashError>,
}

/// The content of a copy.
#[derive(Debug, Default)]
struct Copy {
    data: Vec<u8>,
    tags: Vec<Tag>,
}

impl RangeFlash {
    /// `blocks` in the order of the FTL: die group after die group.
    pub(crate) fn new(
        share: Share,
        format: ProgramUnitFormat,
        die_groups: u32,
        blocks: Vec<u32>,
        open_max: u32,
        logical_units: u32,
    ) -> Self {
        let geometry = format.geometry(die_groups, blocks.len() as u32 / die_groups);
        let in_flight_max = if share.is_timed() { TIMED_MAX } else { UNTIMED_MAX };
        Self {
            layout: Layout::new(&geometry),
            geometry,
            unordered: share.is_unordered(),
            share,
            format,
            blocks,
            open_max,
            open: Vec::new(),
            sequence: 1,
            programmed: SimTime::ZERO,
            sent: SimTime::ZERO,
            header: Vec::new(),
            tags: Vec::new(),
            last: LastRead::default(),
            copies: FastMap::default(),
            host: Vec::new(),
            urgency: Urgency::Normal,
            ends: EventQueue::new(),
            ended: Slab::new(),
            counts: FlashCounts::default(),
            loads: vec![Load::default(); die_groups as usize],
            in_flight_max,
            takes_blocks: false,
            logical_units,
            copied: 0,
            erased: false,
            programmed_blocks: FastSet::default(),
            failed: None,
        }
    }

    pub(crate) fn set_sequence(&mut self, sequence: u64) {
        self.sequence = sequence;
    }

    /// The location of `program_unit`: block of the share, and its index in the block.
    #[inline]
    fn place_of(&self, program_unit: ProgramUnitId) -> (u32, u32) {
        let block = self.layout.block_of(program_unit);
        (self.blocks[block.0 as usize], program_unit.0 - self.layout.first_program_unit(block).0)
    }

    /// Reads bytes of the unit at `at`, from `offset` on, and waits for them.
    ///
    /// # Errors
    /// [`FlashError`] if the device fails; [`FlashError::Torn`] if a mapped unit cannot be read.
    #[inline]
    pub(crate) fn read_unit(
        &self,
        at: Pun,
        offset: u32,
        into: &mut [u8],
        reading: Reading,
    ) -> Result<SimTime> {
        let program_unit = self.layout.program_unit_of(at);
        let (block, program_unit_in_block) = self.place_of(program_unit);
        let place = at.0 - self.layout.first_unit(program_unit).0;
        let (page, from) = self.format.place(program_unit_in_block, place);
        let Reading { cause, urgency, now } = reading;
        let access = Access { block, page, cause, ready: now, urgency };
        match self.share.read(access, from + offset, into, &mut [])? {
            (PageState::Written, end) => Ok(end),
            _ => Err(FlashError::Torn { at: self.share.path().address(block, page) }),
        }
    }

    /// The block of the share with the unit at `at`, and where byte `offset` of the unit is in it.
    pub(crate) fn bytes_of(&self, at: Pun, offset: u32) -> (u32, u64) {
        let program_unit = self.layout.program_unit_of(at);
        let (block, program_unit_in_block) = self.place_of(program_unit);
        let place = at.0 - self.layout.first_unit(program_unit).0;
        let (page, from) = self.format.place(program_unit_in_block, place);
        (block, u64::from(page) * u64::from(self.format.page_size) + u64::from(from + offset))
    }

    /// Reads the page and the header of the unit at `at`, unless they were read last; returns
    /// its version.
    fn fetch(&mut self, at: Pun, cause: Cause, ready: SimTime) -> Result<(u64, usize)> {
        let program_unit = self.layout.program_unit_of(at);
        let (block, program_unit_in_block) = self.place_of(program_unit);
        let place = at.0 - self.layout.first_unit(program_unit).0;
        let (page, from) = self.format.place(program_unit_in_block, place);
        let share = &self.share;
        let torn = || FlashError::Torn { at: share.path().address(block, page) };
        let last = &mut self.last;
        if last.page != Some((block, page)) {
            last.data.resize(self.format.page_size as usize, 0);
            last.header.resize(self.format.header_bytes() as usize, 0);
            let oob = if self.format.in_band { &mut [][..] } else { &mut last.header[..] };
            let access = self.share.access(block, page, cause, ready);
            let (state, end) = self.share.read(access, 0, &mut last.data, oob)?;
            if state != PageState::Written {
                return Err(torn());
            }
            last.page = Some((block, page));
            last.end = last.end.max(end);
        }
        if last.program_unit != Some(program_unit) {
            if self.format.in_band {
                let header = self.format.header_page(program_unit_in_block);
                let access = self.share.access(block, header, cause, ready);
                let (_, end) = self.share.read(access, 0, &mut last.header, &mut [])?;
                last.end = last.end.max(end);
            }
            decode_header(&last.header, &mut last.tags).ok_or_else(torn)?;
            last.program_unit = Some(program_unit);
        }
        let tag = last.tags.get(place as usize).ok_or_else(torn)?;
        Ok((tag.version, from as usize))
    }

    /// Reads those of `units` that are in `from` into `copy`; returns when they are read.
    fn read_units(
        &mut self,
        units: &[UnitWrite],
        from: ProgramUnitId,
        copy: &mut Copy,
        cause: Cause,
        now: SimTime,
    ) -> Result<SimTime> {
        let unit = self.format.unit as usize;
        self.last = LastRead { end: now, ..std::mem::take(&mut self.last) };
        (self.last.page, self.last.program_unit) = (None, None);
        for (place, write) in units.iter().enumerate() {
            let source = write.source.filter(|&at| self.layout.program_unit_of(at) == from);
            let Some(source) = source else { continue };
            let (version, at) = self.fetch(source, cause, now)?;
            copy.data[place * unit..(place + 1) * unit]
                .copy_from_slice(&self.last.data[at..at + unit]);
            copy.tags[place] = Tag { lpn: Some(write.lpn), version };
        }
        Ok(self.last.end)
    }

    /// Programs the pages of a program unit with the units of `self.tags` and the content `data`.
    fn program_pages(
        &mut self,
        program_unit: ProgramUnitId,
        cause: Cause,
        data: &[u8],
        ready: SimTime,
    ) -> Result<SimTime> {
        encode_header(self.sequence, &self.tags, &mut self.header);
        self.sequence += 1;
        let (block, program_unit) = self.place_of(program_unit);
        let format = self.format;
        let first = format.header_page(program_unit);
        let urgency = if cause == Cause::Host { self.urgency } else { Urgency::Normal };
        let at = |page, cause| Access { block, page, cause, ready, urgency };
        if !format.in_band {
            let done = self.share.program(at(first, cause), data, &self.header)?;
            return Ok(self.note(cause, done));
        }
        self.header.resize(format.page_size as usize, 0);
        let pages = data.chunks(format.page_size as usize);
        let header = std::iter::once((&self.header[..], Cause::Map));
        let (mut sent, mut end) = (ready, ready);
        let causes = header.chain(pages.map(|page| (page, cause)));
        for (page, (bytes, of_page)) in (first..).zip(causes) {
            let done = self.share.program(at(page, of_page), bytes, &[])?;
            (sent, end) = (done.sent.max(sent), done.end.max(end));
        }
        if format.rest > 0 && program_unit + 1 == format.program_units_per_block {
            self.share.finish(block)?;
        }
        Ok(self.note(cause, Programmed { sent, end }))
    }

    /// Notes the end of a program, and returns it. The caller waits for the transfer of host data
    /// only.
    fn note(&mut self, cause: Cause, done: Programmed) -> SimTime {
        if cause == Cause::Host {
            self.sent = self.sent.max(done.sent);
        }
        self.programmed = self.programmed.max(done.end);
        done.end
    }

    /// Closes the blocks that a power failure left partly written, as the FTL does.
    pub(crate) fn finish_open(&self) -> Result<()> {
        for &block in &self.blocks {
            self.share.finish_if_open(block)?;
        }
        Ok(())
    }

    /// Erases every block that is not erased.
    pub(crate) fn erase_all(&self) -> Result<()> {
        for &block in &self.blocks {
            self.share.erase_if_used(block)?;
        }
        self.share.sync()
    }

    /// The first error of an operation.
    pub(crate) fn check(&self) -> Result<()> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    pub(crate) fn share(&self) -> &Share {
        &self.share
    }

    pub(crate) fn blocks(&self) -> &[u32] {
        &self.blocks
    }
}

/// What the controller submits.
impl RangeFlash {
    /// Executes an operation, which ends at the time that `execute` returns, as `ended`.
    fn submit(&mut self, ended: Ended, execute: impl FnOnce(&mut Self) -> Result<SimTime>) {
        if self.failed.is_some() {
            return;
        }
        match execute(self) {
            Ok(end) => {
                let place = self.ended.take();
                self.ended[place] = Some(ended);
                self.ends.push(end, place);
            }
            Err(error) => self.failed = Some(error),
        }
    }

    fn sync(&mut self) -> Result<()> {
        if self.unordered {
            self.erased = false;
            self.programmed_blocks.clear();
            self.share.sync_if_volatile()?;
        }
        Ok(())
    }

    fn program_job(&mut self, jobs: &Jobs, number: u32, now: SimTime) -> Result<SimTime> {
        let job = &jobs[number];
        let (program_unit, cause) =
            (ProgramUnitId(job.program_unit), job.cause.expect("a job with a cause"));
        let data = if cause == Cause::Host {
            if self.erased {
                // The program unit may open the block that only this erase allows to be opened. If
                // the erase were lost, no erased block would be left for cleaning.
                self.sync()?;
            }
            if self.unordered {
                self.programmed_blocks.insert(self.layout.block_of(program_unit).0);
            }
            let tag = |write: &UnitWrite| Tag { lpn: Some(write.lpn), version: write.version };
            self.tags.clear();
            self.tags.extend(job.units.iter().map(tag));
            std::mem::take(&mut self.host)
        } else {
            let copy = self.copies.remove(&number).unwrap_or_default();
            self.copied += 1;
            self.tags = copy.tags;
            copy.data
        };
        let (geometry, layout, logical) = (&self.geometry, &self.layout, self.logical_units);
        self.counts.count_program(geometry, layout, cause, logical, &job.units);
        let mut whole = data;
        whole.resize(self.format.program_unit_bytes() as usize, 0);
        let end = self.program_pages(program_unit, cause, &whole, now);
        if cause == Cause::Host {
            self.host = whole;
        }
        end
    }
}

impl FlashDevice for RangeFlash {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn uses_payloads(&self) -> bool {
        // The range passes the bytes of a program in `host`, all in one piece.
        false
    }

    fn counts(&self) -> &FlashCounts {
        &self.counts
    }

    fn counts_mut(&mut self) -> &mut FlashCounts {
        &mut self.counts
    }

    fn load(&self, die: DieId) -> &Load {
        &self.loads[die.0 as usize]
    }

    fn load_mut(&mut self, die: DieId) -> &mut Load {
        &mut self.loads[die.0 as usize]
    }

    fn read(&mut self, _: &mut Jobs, _: &ReadRun, _: Cause, _: u32, _: bool, _: SimTime) {
        unreachable!("the owner of the range reads without the controller")
    }

    fn read_for_copy(&mut self, jobs: &mut Jobs, job: u32, run: &ReadRun, now: SimTime) {
        let (units, cause) = (&jobs[job].units, jobs[job].cause.expect("a job with a cause"));
        let run = *run;
        self.submit(Ended::CopyRead { job }, |flash| {
            if flash.programmed_blocks.contains(&flash.layout.block_of(run.program_unit).0) {
                // The host may have written to the blocks that a merge reads since the merge began.
                flash.sync()?;
            }
            let mut copy = flash.copies.remove(&job).unwrap_or_default();
            copy.data.resize(flash.format.program_unit_bytes() as usize, 0);
            copy.tags.resize(units.len(), Tag { lpn: None, version: 0 });
            let end = flash.read_units(units, run.program_unit, &mut copy, cause, now);
            flash.copies.insert(job, copy);
            flash.counts.reads[cause] += u64::from(run.pages);
            end
        });
    }

    fn program(&mut self, jobs: &mut Jobs, job: u32, now: SimTime) {
        let jobs = &*jobs;
        let ended = Ended::Program { job, status: Status::Passed };
        self.submit(ended, |flash| flash.program_job(jobs, job, now));
    }

    fn erase(
        &mut self,
        _jobs: &mut Jobs,
        block: BlockId,
        cause: Cause,
        die_group: u32,
        now: SimTime,
    ) -> u32 {
        self.submit(Ended::Erase { block, die_group, status: Status::Passed }, |flash| {
            flash.open.retain(|&open| open != block);
            let block = flash.blocks[block.0 as usize];
            flash.erased = true;
            flash.share.erase(flash.share.access(block, 0, cause, now))
        });
        1
    }

    fn end_next(&mut self, _jobs: &mut Jobs) -> (SimTime, Option<Ended>) {
        let (at, place) = self.ends.pop().expect("an operation is in flight");
        let ended = self.ended[place].take();
        self.ended.give(place);
        (at, ended)
    }

    fn next_at(&self) -> SimTime {
        self.ends.next_at()
    }

    fn order(&mut self) {
        if self.failed.is_none() {
            self.failed = self.sync().err();
        }
    }

    fn program_units_max(&self) -> u32 {
        self.in_flight_max
    }

    fn copies_max(&self) -> u32 {
        self.in_flight_max
    }

    /// A block for a blocking call, so that the next block that it writes begins on another LUN at
    /// once. Those of queued writes wait for a LUN one by one.
    fn named_program_units_max(&self) -> u32 {
        let few = self.program_units_max();
        if self.takes_blocks { self.format.program_units_per_block.max(few) } else { few }
    }

    fn limits_open_blocks(&self) -> bool {
        self.open_max < u32::MAX
    }

    fn make_open(&mut self, program_unit: ProgramUnitId, is_writing: &dyn Fn(BlockId) -> bool) {
        let block = self.layout.block_of(program_unit);
        let in_block = program_unit.0 - self.layout.first_program_unit(block).0;
        if in_block + 1 == self.format.program_units_per_block {
            self.open.retain(|&open| open != block);
        } else if in_block == 0 {
            if self.open.len() as u32 >= self.open_max {
                let blocks = &self.blocks;
                let (kept, done): (Vec<_>, Vec<_>) =
                    self.open.iter().copied().partition(|&open| is_writing(open));
                let finish = |left: &BlockId| self.share.finish(blocks[left.0 as usize]);
                if let Err(error) = done.iter().try_for_each(finish) {
                    self.failed.get_or_insert(error);
                }
                self.open = kept;
            }
            self.open.push(block);
        }
    }
}

impl FlashScan for RangeFlash {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn erases(&self, block: BlockId) -> u32 {
        // A device that fails here fails in `program_unit` as well, where it is noted.
        self.share.erases(self.blocks[block.0 as usize]).unwrap_or(0)
    }

    fn is_erased(&self, block: BlockId) -> bool {
        let block = self.blocks[block.0 as usize];
        self.share.state_of(block).is_ok_and(|state| state == PageState::Erased)
    }

    fn is_unstable(&self, block: BlockId) -> bool {
        let block = self.blocks[block.0 as usize];
        let torn = self.share.state_of(block).is_ok_and(|state| state == PageState::Torn);
        // If only the first page is torn, a program was interrupted.
        torn && self.share.write_pointer(block) == Ok(0)
    }

    fn program_unit(&mut self, program_unit: ProgramUnitId, found: &mut Vec<ScannedUnit>) -> u64 {
        let (block, program_unit_in_block) = self.place_of(program_unit);
        let pointer = match self.share.write_pointer(block) {
            Ok(pointer) => pointer,
            Err(error) => {
                self.failed = Some(error);
                return 0;
            }
        };
        let first = self.format.header_page(program_unit_in_block);
        if first >= pointer {
            return 0;
        }
        let header = &mut self.last.header;
        header.resize(self.format.header_bytes() as usize, 0);
        // All reads start at the same time, so that LUNs read in parallel.
        let now = self.share.now_if_timed().unwrap_or(SimTime::ZERO);
        let access = self.share.access(block, first, Cause::Map, now);
        let read = if self.format.in_band {
            self.share.read(access, 0, header, &mut [])
        } else {
            self.share.read(access, 0, &mut [], header)
        };
        match read {
            Ok((PageState::Written, end)) => self.programmed = self.programmed.max(end),
            Ok(_) => return 0,
            Err(error) => {
                self.failed = Some(error);
                return 0;
            }
        }
        let Some(sequence) = decode_header(header, &mut self.tags) else { return 0 };
        for (place, tag) in (0..).zip(&self.tags) {
            let (page, _) = self.format.place(program_unit_in_block, place);
            let written = page < pointer && (!self.format.in_band || self.is_written(block, page));
            if written {
                let (tag, version) = (tag.unit_tag(), tag.version);
                found.push(ScannedUnit { place, tag, version, trims: Vec::new() });
            }
        }
        sequence
    }
}

impl RangeFlash {
    fn is_written(&self, block: u32, page: u32) -> bool {
        let access = self.share.access(block, page, Cause::Map, SimTime::ZERO);
        matches!(self.share.read(access, 0, &mut [], &mut []), Ok((PageState::Written, _)))
    }
}
