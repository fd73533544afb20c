//! Operations of a share on its blocks, as the levels use them.

use prism_base::SimTime;
use prism_nand::Cause;

use super::Share;
use crate::buffer::Buffer;
use crate::error::{FlashError, Result};
use crate::medium::{MediumError, PageState};
use crate::monitor::ShareOp;
use crate::monitor::map::DirectPath;
use crate::monitor::state::{Access, Monitor, Pads, Program, Programmed, Unsynced, Urgency};

impl Share {
    /// Reads from a page; returns the state of the page and the end of the read. No lock is held
    /// while the device works.
    #[inline]
    pub(crate) fn read(
        &self,
        at: Access,
        offset: u32,
        data: &mut [u8],
        oob: &mut [u8],
    ) -> Result<(PageState, SimTime)> {
        let bytes = (data.len() + oob.len()) as u64;
        let state = self.0.path.read(at, offset, data, oob)?;
        if !self.0.timed {
            return Ok((state, at.ready));
        }
        Ok((state, self.with(|monitor, place| monitor.time_read(place, at, bytes))?))
    }

    /// As [`Share::read`] of pages of a block for a blocking call, from `offset` of the first on;
    /// on a device with timing page by page, after the queued commands that go first.
    #[inline]
    pub(crate) fn read_now(
        &self,
        (block, page, offset): (u32, u32, u32),
        data: &mut [u8],
        oob: &mut [u8],
    ) -> Result<(PageState, SimTime)> {
        if !self.0.timed {
            let at = self.access(block, page, Cause::Host, SimTime::ZERO);
            return self.read(at, offset, data, oob);
        }
        let (now, size) = (self.now()?, self.0.path.page_size);
        let (mut page, mut offset) = (page + offset / size, offset % size);
        let (mut data, mut oob, mut end) = (data, oob, now);
        loop {
            let (part, rest) = data.split_at_mut(data.len().min((size - offset) as usize));
            let op = ShareOp::Read { block, page, offset };
            let (state, part_end) = self.scheduler().call(self, (op, now), |ready| {
                self.read(self.access(block, page, Cause::Host, ready), offset, part, oob)
            })?;
            end = end.max(part_end);
            if state != PageState::Written || rest.is_empty() {
                return Ok((state, end));
            }
            (page, offset, data, oob) = (page + 1, 0, rest, &mut []);
        }
    }

    /// As [`Share::program`] of pages of a block for a blocking call. On a device with timing pages
    /// are programmed one by one, after the queued commands that go first, and pages that may be
    /// padded are. Returns the end.
    #[inline]
    pub(crate) fn program_now(
        &self,
        (block, page): (u32, u32),
        pads: &Pads,
        data: &[u8],
        oob: &[u8],
    ) -> Result<SimTime> {
        let cause = Cause::Host;
        if !self.0.timed {
            let at = self.access(block, page, cause, SimTime::ZERO);
            return Ok(self.program(at, data, oob)?.end);
        }
        let now = self.now()?;
        let (mut end, mut oob) = (now, oob);
        for (page, data) in (page..).zip(data.chunks(self.0.path.page_size as usize)) {
            let op = ShareOp::Program { block, page };
            let ((), page_end) = self.scheduler().call(self, (op, now), |ready| {
                let at = self.access(block, page, cause, ready);
                Ok(((), self.program_padded(at, pads, data, oob)?.end))
            })?;
            (end, oob) = (end.max(page_end), &[]);
        }
        Ok(end)
    }

    /// As [`Share::program`] of a page on a device with timing; pages of the block before it that
    /// were not written are padded with zeros first, if they may be.
    pub(crate) fn program_padded(
        &self,
        at: Access,
        pads: &Pads,
        data: &[u8],
        oob: &[u8],
    ) -> Result<Programmed> {
        let expected = match self.program(at, data, oob) {
            Err(FlashError::OutOfOrder { expected, .. }) if pads.cover(expected, at.page) => {
                expected
            }
            programmed => return programmed,
        };
        let zeros = vec![0; self.0.path.page_size as usize];
        let mut ready = at.ready;
        for page in expected..at.page {
            let oob = if page == 0 { &pads.first_oob[..] } else { &[] };
            let pad = Access { page, cause: Cause::Pad, ready, ..at };
            ready = self.program(pad, &zeros, oob)?.end;
        }
        self.program(Access { ready, ..at }, data, oob)
    }

    /// As [`Share::erase`] for a blocking call, on a device with timing after the queued commands
    /// that go first.
    pub(crate) fn erase_now(&self, block: u32) -> Result<SimTime> {
        let erase = |ready| self.erase(self.access(block, 0, Cause::Host, ready));
        if !self.0.timed {
            return erase(SimTime::ZERO);
        }
        let op = (ShareOp::Erase { block }, self.now()?);
        Ok(self.scheduler().call(self, op, |ready| Ok(((), erase(ready)?)))?.1)
    }

    /// See [`Device::buffer`].
    pub(crate) fn buffer(&self, len: usize) -> Buffer {
        self.0.path.medium.buffer(len)
    }

    /// The path to the pages of the share without the monitor's lock.
    pub(crate) fn path(&self) -> &DirectPath {
        &self.0.path
    }

    /// Programs a page; on a device without timing pages, and no lock is held while the device
    /// works.
    #[inline]
    pub(crate) fn program(&self, at: Access, data: &[u8], oob: &[u8]) -> Result<Programmed> {
        if self.0.timed {
            return self.with(|monitor, place| monitor.program(place, at, data, oob));
        }
        let page_size = self.0.path.page_size as usize;
        let (mut at, mut data, mut oob) = (at, data, oob);
        loop {
            let program = self.begin_program(at, (data.len() / page_size) as u32)?;
            let result = self.0.path.medium.program(program.block, at.page, data, oob);
            let Some(next) = self.end_program(at, program, result)? else {
                return Ok(Programmed { sent: at.ready, end: at.ready });
            };
            if next > at.page {
                (data, oob) = (&data[(next - at.page) as usize * page_size..], &[]);
                at.page = next;
            }
        }
    }

    /// Begins a program that the caller passes to the medium; see [`Monitor::begin_program`].
    pub(crate) fn begin_program(&self, at: Access, pages: u32) -> Result<Program> {
        self.with(|monitor, place| monitor.begin_program(place, at, pages))
    }

    /// Ends a program; see [`Monitor::end_program`].
    pub(crate) fn end_program(
        &self,
        at: Access,
        program: Program,
        result: Result<(), MediumError>,
    ) -> Result<Option<u32>> {
        let mut monitor = self.0.device.lock();
        if monitor.share(self.0.place, self.0.id).is_err() {
            // The share was released while the program was in progress.
            self.0.path.map.end_program(program.virtual_block);
            return Err(FlashError::Released);
        }
        monitor.end_program(self.0.place, at, program, result)
    }

    /// Erases a block; see [`Monitor::erase`].
    pub(crate) fn erase(&self, at: Access) -> Result<SimTime> {
        self.with(|monitor, place| monitor.erase(place, at))
    }

    /// On a device with timing: issues the commands that could start before now, so that what
    /// follows finds their effects.
    fn settle(&self) -> Result<()> {
        if self.0.timed {
            let now = self.now()?;
            self.scheduler().settle(self, now);
        }
        Ok(())
    }

    /// Closes a block.
    pub(crate) fn finish(&self, block: u32) -> Result<()> {
        self.settle()?;
        self.with(|monitor, place| monitor.finish(place, block))
    }

    /// Closes a block that is partly written.
    pub(crate) fn finish_if_open(&self, block: u32) -> Result<()> {
        self.with(|monitor, place| {
            let on_device = monitor.block_of(place, block)?;
            if monitor.medium()?.is_open(on_device) { monitor.finish(place, block) } else { Ok(()) }
        })
    }

    /// Erases a block unless it is erased.
    pub(crate) fn erase_if_used(&self, block: u32) -> Result<()> {
        if self.write_pointer(block)? > 0 || self.state_of(block)? != PageState::Erased {
            let ready = self.now_if_timed()?;
            self.erase(self.access(block, 0, Cause::Host, ready))?;
        }
        Ok(())
    }

    /// What the first page of a block holds.
    pub(crate) fn state_of(&self, block: u32) -> Result<PageState> {
        self.with(|monitor, place| {
            let block = monitor.block_of(place, block)?;
            Ok(monitor.medium()?.read(block, 0, 0, &mut [], &mut [])?)
        })
    }

    /// Pages of a block programmed since its erase.
    pub(crate) fn write_pointer(&self, block: u32) -> Result<u32> {
        self.settle()?;
        self.with(|monitor, place| {
            let block = monitor.block_of(place, block)?;
            Ok(monitor.medium()?.write_pointer(block))
        })
    }

    /// Whether a program of an erased block would not wait for a sync.
    pub(crate) fn erase_is_durable(&self, block: u32) -> bool {
        let path = &self.0.path;
        path.virtual_block(block).is_ok_and(|v| path.medium.erase_is_durable(path.map.block(v)))
    }

    /// Erases of a block that the monitor knows of.
    pub(crate) fn erases(&self, block: u32) -> Result<u32> {
        self.with(|monitor, place| {
            let block = monitor.block_of(place, block)?;
            Ok(monitor.erases[block as usize])
        })
    }

    /// As [`Share::sync`]; does nothing on a medium without a volatile cache.
    pub(crate) fn sync_if_volatile(&self) -> Result<()> {
        self.with(|monitor, _| monitor.sync_if_volatile())
    }

    /// Whether operations are durable only after a sync.
    pub(crate) fn is_volatile(&self) -> Result<bool> {
        self.with(|monitor, _| Ok(monitor.medium()?.has_volatile_cache()))
    }

    /// Whether blocks become durable in an order of their own, so that a sync is needed where the
    /// order of operations on several blocks matters.
    pub(crate) fn is_unordered(&self) -> bool {
        let medium = &self.0.path.medium;
        medium.has_volatile_cache() && !medium.syncs_as_a_whole()
    }

    /// Makes everything durable that was complete before the call. No lock is held while the
    /// device works; a device makes the syncs of several threads one.
    pub(crate) fn sync(&self) -> Result<()> {
        self.settle()?;
        self.sync_issued()
    }

    /// As [`Share::sync`]; on a device with timing, of the commands that were issued.
    pub(crate) fn sync_issued(&self) -> Result<()> {
        let (number, marks) = self.begin_sync()?;
        let result = self.0.path.medium.sync();
        self.end_sync(number, marks, result)
    }

    /// Begins a sync that the caller passes to the medium.
    pub(crate) fn begin_sync(&self) -> Result<(u64, Unsynced)> {
        self.with(|monitor, _| {
            monitor.medium()?;
            Ok((monitor.map.begin_sync(), monitor.take_unsynced()))
        })
    }

    /// Ends a sync with the result of the medium.
    pub(crate) fn end_sync(
        &self,
        number: u64,
        marks: Unsynced,
        result: Result<(), MediumError>,
    ) -> Result<()> {
        match result {
            Ok(()) => self.0.path.map.end_sync(number),
            Err(_) => self.0.device.lock().put_unsynced(marks),
        }
        Ok(result?)
    }

    /// A ticket for everything that is complete now, for [`Share::sync_to`].
    pub(crate) fn ticket(&self) -> u64 {
        // On a share that was released nothing is queued that could be complete.
        let _ = self.settle();
        self.0.path.map.ticket()
    }

    /// Makes everything durable that was complete when the ticket was drawn; returns at once if a
    /// sync since then has done so.
    pub(crate) fn sync_to(&self, ticket: u64) -> Result<()> {
        if self.0.path.map.is_synced(ticket) { Ok(()) } else { self.sync() }
    }

    /// An access of normal urgency.
    #[inline]
    pub(crate) fn access(&self, block: u32, page: u32, cause: Cause, ready: SimTime) -> Access {
        Access { block, page, cause, ready, urgency: Urgency::Normal }
    }
}

impl Monitor {
    fn finish(&mut self, place: usize, block: u32) -> Result<()> {
        self.check_no_programs(self.virtual_block(place, block)?)?;
        let block = self.block_of(place, block)?;
        let medium = self.medium()?;
        let was_open = medium.is_open(block);
        medium.finish(block)?;
        self.shares[place].as_mut().expect("checked").open -= u32::from(was_open);
        (self.unsynced, self.closed_unsynced) = (true, self.closed_unsynced | was_open);
        Ok(())
    }
}
