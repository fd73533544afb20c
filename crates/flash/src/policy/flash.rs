//! Blocks of a share as flash for an FTL and the engine without time.

use prism_base::SimTime;
use prism_engine::Flash;
use prism_ftl::{FlashScan, ScannedUnit};
use prism_ftl::{Ftl, UnitWrite};
use prism_nand::{BlockId, Cause, Geometry, Layout, ProgramUnitId, Pun};

use crate::error::{FlashError, Result};
use crate::medium::PageState;
use crate::monitor::{Access, Programmed, Share, Urgency};
use crate::policy::program_units::{ProgramUnitFormat, Tag, decode_header, encode_header};

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
    program_unit: Vec<u8>,
    header: Vec<u8>,
    tags: Vec<Tag>,
    last: LastRead,
    /// The urgency of the next host program units.
    pub(crate) urgency: Urgency,
    /// An error during recovery, which cannot be returned through the FTL.
    failed: Option<FlashError>,
}

impl RangeFlash {
    /// `blocks` in the order of the FTL: die group after die group.
    pub(crate) fn new(
        share: Share,
        format: ProgramUnitFormat,
        die_groups: u32,
        blocks: Vec<u32>,
        open_max: u32,
    ) -> Self {
        let geometry = format.geometry(die_groups, blocks.len() as u32 / die_groups);
        Self {
            layout: Layout::new(&geometry),
            geometry,
            share,
            format,
            blocks,
            open_max,
            open: Vec::new(),
            sequence: 1,
            programmed: SimTime::ZERO,
            sent: SimTime::ZERO,
            program_unit: Vec::new(),
            header: Vec::new(),
            tags: Vec::new(),
            last: LastRead::default(),
            urgency: Urgency::Normal,
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

    /// Assembles the content of a program unit of copies from flash.
    fn assemble(&mut self, units: &[UnitWrite], cause: Cause, now: SimTime) -> Result<SimTime> {
        let unit = self.format.unit as usize;
        let mut program_unit = std::mem::take(&mut self.program_unit);
        program_unit.clear();
        program_unit.resize(self.format.program_unit_bytes() as usize, 0);
        self.tags.clear();
        self.last = LastRead { end: now, ..std::mem::take(&mut self.last) };
        (self.last.page, self.last.program_unit) = (None, None);
        for (place, write) in units.iter().enumerate() {
            let Some(source) = write.source else {
                self.tags.push(Tag { lpn: None, version: 0 });
                continue;
            };
            let (version, from) = self.fetch(source, cause, now)?;
            program_unit[place * unit..(place + 1) * unit]
                .copy_from_slice(&self.last.data[from..from + unit]);
            self.tags.push(Tag { lpn: Some(write.lpn), version });
        }
        self.program_unit = program_unit;
        Ok(self.last.end)
    }

    /// Programs the pages of a program unit with the units of `self.tags` and the content `data`.
    fn program_pages(
        &mut self,
        program_unit: ProgramUnitId,
        cause: Cause,
        data: &[u8],
        ready: SimTime,
    ) -> Result<()> {
        encode_header(self.sequence, &self.tags, &mut self.header);
        self.sequence += 1;
        let (block, program_unit) = self.place_of(program_unit);
        let format = self.format;
        let first = format.header_page(program_unit);
        let urgency = if cause == Cause::Host { self.urgency } else { Urgency::Normal };
        let at = |page, cause| Access { block, page, cause, ready, urgency };
        if !format.in_band {
            let done = self.share.program(at(first, cause), data, &self.header)?;
            self.note(cause, done);
            return Ok(());
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
        self.note(cause, Programmed { sent, end });
        if format.rest > 0 && program_unit + 1 == format.program_units_per_block {
            self.share.finish(block)?;
        }
        Ok(())
    }

    /// Notes the end of a program. The caller does not wait for the transfer of copies, except for
    /// those that delay its next program unit on the same LUN.
    fn note(&mut self, cause: Cause, done: Programmed) {
        if cause == Cause::Host {
            self.sent = self.sent.max(done.sent);
        }
        self.programmed = self.programmed.max(done.end);
    }

    /// Before a program that opens one block too many: closes the blocks that the FTL left partly
    /// written and will not write any more.
    fn make_open(&mut self, program_unit: ProgramUnitId, ftl: &Ftl) -> Result<()> {
        let block = self.layout.block_of(program_unit);
        let in_block = program_unit.0 - self.layout.first_program_unit(block).0;
        if in_block + 1 == self.format.program_units_per_block {
            self.open.retain(|&open| open != block);
        } else if in_block == 0 {
            if self.open.len() as u32 >= self.open_max {
                let done: Vec<_> =
                    self.open.iter().copied().filter(|&open| !ftl.is_writing(open)).collect();
                for left in done {
                    self.share.finish(self.blocks[left.0 as usize])?;
                    self.open.retain(|&open| open != left);
                }
            }
            self.open.push(block);
        }
        Ok(())
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

    /// The error of a recovery, if there was one.
    pub(crate) fn take_failure(&mut self) -> Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }

    pub(crate) fn share(&self) -> &Share {
        &self.share
    }

    pub(crate) fn blocks(&self) -> &[u32] {
        &self.blocks
    }
}

impl Flash for RangeFlash {
    type Error = FlashError;

    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn keeps_content(&self) -> bool {
        true
    }

    fn program_bulk(&mut self, _first: ProgramUnitId, _program_units: u32) -> Result<()> {
        unreachable!("program units of a share have content")
    }

    fn program(
        &mut self,
        program_unit: ProgramUnitId,
        cause: Cause,
        units: &[UnitWrite],
        bytes: &[u8],
        ftl: &Ftl,
    ) -> Result<()> {
        let now = self.share.now_if_timed()?;
        if self.open_max < u32::MAX {
            self.make_open(program_unit, ftl)?;
        }
        if bytes.is_empty() {
            let read = self.assemble(units, cause, now)?;
            let data = std::mem::take(&mut self.program_unit);
            let done = self.program_pages(program_unit, cause, &data, read);
            self.program_unit = data;
            return done;
        }
        self.tags.clear();
        let tag = |write: &UnitWrite| Tag { lpn: Some(write.lpn), version: write.version };
        self.tags.extend(units.iter().map(tag));
        if bytes.len() == self.format.program_unit_bytes() as usize {
            return self.program_pages(program_unit, cause, bytes, now);
        }
        let mut data = std::mem::take(&mut self.program_unit);
        data.clear();
        data.extend_from_slice(bytes);
        data.resize(self.format.program_unit_bytes() as usize, 0);
        let done = self.program_pages(program_unit, cause, &data, now);
        self.program_unit = data;
        done
    }

    fn erase(&mut self, block: BlockId, cause: Cause) -> Result<u32> {
        // Copies of the block's data have to be complete before.
        let ready = self.programmed.max(self.share.now_if_timed()?);
        self.open.retain(|&open| open != block);
        let block = self.blocks[block.0 as usize];
        self.share.erase(self.share.access(block, 0, cause, ready))?;
        Ok(1)
    }

    fn sync(&mut self) -> Result<()> {
        self.share.sync_if_volatile()
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
