//! Writes: into the buffer of a range.

use prism_base::SimTime;
use prism_ftl::UnitWrite;
use prism_nand::Cause;

use super::Range;
use crate::buffer::Buffer;
use crate::error::Result;
use crate::monitor::Urgency;

impl Range {
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
    /// returns.
    pub(crate) fn begin_write(
        &mut self,
        offset: u64,
        data: &[u8],
        handle: u32,
        urgency: Urgency,
    ) -> Result<SimTime> {
        self.alive()?;
        self.make_progress()?;
        if !self.share().is_timed() {
            self.write_units(offset, data, handle, urgency)?;
            return Ok(SimTime::ZERO);
        }
        let write = self.open_write(None);
        let written = self.write_units(offset, data, handle, urgency);
        // On an error the program units that are full have to leave nothing that refers to it.
        let programmed = self.program_waiting();
        let end = self.close_write(write);
        written.and(programmed).map(|()| end)
    }

    /// Submits a write on a device with timing; `from` is its queue, which gets the completion, and
    /// its tag there. Program units for which no die group is ready wait in memory, and are
    /// programmed in the order of virtual time.
    pub(crate) fn submit_write(
        &mut self,
        offset: u64,
        data: Buffer,
        handle: u32,
        from: (u64, u64),
    ) {
        let write = self.open_write(Some(from));
        let written = self.alive().and_then(|()| self.make_progress());
        let written =
            written.and_then(|()| self.write_units(offset, &data, handle, Urgency::Normal));
        // Also after an error: program units wait only for operations in flight.
        let dispatched = self.dispatch();
        self.submitted(write, data, written.and(dispatched));
    }

    /// Puts bytes into the buffer. Parts of units are completed by a read, which the data after it
    /// waits for.
    fn write_units(
        &mut self,
        offset: u64,
        data: &[u8],
        handle: u32,
        urgency: Urgency,
    ) -> Result<()> {
        self.urgency = urgency;
        let unit = u64::from(self.unit);
        let (mut at, mut left) = (offset, data);
        while !left.is_empty() {
            let (lpn, within) = ((at / unit) as u32, (at % unit) as usize);
            let len = left.len().min(self.unit as usize - within);
            if len < self.unit as usize {
                let mut whole = vec![0; self.unit as usize];
                let read = self.begin_read(at - within as u64, &mut whole, Cause::Rmw, urgency)?;
                self.write_ends_after(read);
                self.follow(read)?;
                whole[within..within + len].copy_from_slice(&left[..len]);
                self.write_unit(lpn, &whole, handle)?;
            } else {
                self.write_unit(lpn, &left[..len], handle)?;
            }
            at += len as u64;
            left = &left[len..];
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

    pub(super) fn write_unit(&mut self, lpn: u32, bytes: &[u8], handle: u32) -> Result<()> {
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

    /// Programs the buffered units of `stream`, if there are any. Those of a queued write may wait.
    fn program(&mut self, stream: u32) -> Result<()> {
        let Some(at) = self.filling[stream as usize] else { return Ok(()) };
        if self.program_units[at].units.is_empty() {
            return Ok(());
        }
        self.filling[stream as usize] = None;
        self.wait_for_die_group(at, stream);
        if self.is_queued() {
            return Ok(());
        }
        self.program_waiting()?;
        self.make_progress()
    }

    /// Removes a unit from memory; the last one of its program unit takes its place, unless that is
    /// in flight.
    pub(super) fn drop_pending(&mut self, lpn: u32) {
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

    /// Begins to program all buffered units.
    pub(crate) fn begin_program_all(&mut self) -> Result<()> {
        self.alive()?;
        self.urgency = Urgency::Normal;
        (0..self.filling.len() as u32).try_for_each(|stream| self.program(stream))?;
        self.program_waiting()
    }

    /// Programs all buffered units, and waits until they are on flash.
    pub(crate) fn program_all(&mut self) -> Result<()> {
        self.begin_program_all()?;
        while self.in_flight > 0 {
            self.step()?;
        }
        Ok(())
    }
}
