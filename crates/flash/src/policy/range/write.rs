//! Writes: into the buffer of a range, and from there to the controller.

use prism_base::SimTime;
use prism_engine::HostUnit;
use prism_ftl::UnitWrite;
use prism_nand::{Cause, DieGroupId};

use super::Range;
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
        (0..self.filling.len() as u32).try_for_each(|stream| self.program(stream))
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
