//! Reads: from the buffer, from flash, or of unmapped units.

use prism_engine::SECTOR;
use prism_nand::Cause;

use super::Drive;
use prism_engine::block::{Request, Status};

impl Drive {
    pub(super) fn start_read(&mut self, slot: u32) {
        if self.payloads.is_some() {
            self.read_bytes(slot);
        }
        let request = &self.slots[slot].request;
        let first = self.unit_of(request.offset);
        let last = self.unit_of(request.offset + request.len - 1);
        if first == last && self.engine.nand().layout().pages_per_unit() == 1 {
            return self.start_unit(slot, first);
        }
        let mut planes = 0;
        self.runs.clear();
        for lpn in first..=last {
            self.add_unit(slot, lpn, &mut planes);
        }
        let state = &mut self.slots[slot];
        let urgent = state.request.urgent;
        state.reads_left = self.runs.len() as u32;
        for run in &self.runs {
            state.cost.flash_reads += u32::from(run.pages);
            self.engine.read(run, Cause::Host, slot, urgent, self.now);
        }
        if self.runs.is_empty() {
            self.send(slot);
        }
    }

    /// Reads the only unit of a request, where a unit is at most a page: the case of most random
    /// reads.
    #[inline]
    fn start_unit(&mut self, slot: u32, lpn: u32) {
        if let Some(place) = self.buffer.find(lpn) {
            self.read_buffered(slot, place);
            return self.send(slot);
        }
        let Some(at) = self.engine.ftl().lookup(lpn) else {
            self.slots[slot].cost.unmapped += 1;
            return self.send(slot);
        };
        let mut run = self.engine.ftl().read_of(at);
        if self.engine.has_faults()
            && self.engine.sample_read_errors(at, self.now, &mut run.recovery)
        {
            self.slots[slot].status = Status::Unreadable;
            self.engine.note_unreadable();
        }
        if self.transfers_sectors {
            run.sectors_left_out = self.sectors_left_out(slot, lpn);
        }
        let state = &mut self.slots[slot];
        state.reads_left = 1;
        state.cost.flash_reads += u32::from(run.pages);
        let urgent = state.request.urgent;
        self.engine.read(&run, Cause::Host, slot, urgent, self.now);
    }

    /// Adds the flash reads for unit `lpn`.
    #[inline]
    fn add_unit(&mut self, slot: u32, lpn: u32, planes: &mut u64) {
        if let Some(place) = self.buffer.find(lpn) {
            return self.read_buffered(slot, place);
        }
        let ftl = self.engine.ftl();
        let Some(at) = ftl.lookup(lpn) else {
            self.slots[slot].cost.unmapped += 1;
            return;
        };
        if self.engine.nand().layout().pages_per_unit() > 1 {
            let (request, page) = (&self.slots[slot].request, self.device.flash.page.0);
            let wanted = pages_wanted(request, u64::from(lpn) * self.unit, self.unit, page);
            ftl.add_read_part(at, wanted, planes, &mut self.runs);
        } else {
            ftl.add_read(at, planes, &mut self.runs);
        }
        if self.transfers_sectors {
            let left_out = self.sectors_left_out(slot, lpn);
            self.runs.last_mut().expect("it was added").sectors_left_out += left_out;
        }
        if self.engine.has_faults()
            && let Some(run) = self.runs.last_mut()
            && self.engine.sample_read_errors(at, self.now, &mut run.recovery)
        {
            self.slots[slot].status = Status::Unreadable;
            self.engine.note_unreadable();
        }
    }

    /// Sectors of unit `lpn`, or of its pages that are read, which the request does not need.
    fn sectors_left_out(&self, slot: u32, lpn: u32) -> u16 {
        let request = &self.slots[slot].request;
        let part = self.unit.min(self.device.flash.page.0);
        let begin = u64::from(lpn) * self.unit;
        let wanted =
            request.offset.max(begin)..(request.offset + request.len).min(begin + self.unit);
        let within = |size: u64| {
            let first = (wanted.start - begin) / size * size;
            (wanted.end - begin).div_ceil(size) * size - first
        };
        ((within(part) - within(SECTOR.0)) / SECTOR.0) as u16
    }

    fn read_buffered(&mut self, slot: u32, place: u32) {
        let state = &mut self.slots[slot];
        state.cost.buffer_hits += 1;
        if self.buffer.entry(place).lost {
            state.status = Status::Unreadable;
            self.engine.note_unreadable();
        }
    }

    /// A flash read of a request has ended.
    #[inline]
    pub(super) fn read_arrived(&mut self, slot: u32) {
        let state = &mut self.slots[slot];
        state.reads_left -= 1;
        if state.reads_left == 0 {
            self.send(slot);
        }
    }

    /// Sends the data of a read over the link, after which it completes.
    #[inline]
    fn send(&mut self, slot: u32) {
        let len = self.slots[slot].request.len;
        let end = self.link.send(self.now, len);
        self.finishes.push(end, slot);
    }
}

/// Bitmap of the pages that `request` needs of a unit of several pages that begins at byte `begin`;
/// bit 0 is the first page.
fn pages_wanted(request: &Request, begin: u64, unit: u64, page: u64) -> u64 {
    let first = request.offset.saturating_sub(begin) / page;
    let end = (request.offset + request.len - begin).min(unit).div_ceil(page);
    // A unit has 1 to 64 pages, and the difference is at least 1, so that no shift is by 64.
    (u64::MAX >> (64 - (end - first))) << first
}

#[cfg(test)]
mod tests {
    use super::*;
    use prism_engine::block::HostOp;

    #[test]
    fn only_requested_pages_are_read() {
        let wanted = |offset, len| {
            let request = Request::new(HostOp::Read, offset, len, 0);
            // The second unit of four pages of 4 KiB.
            pages_wanted(&request, 16384, 16384, 4096)
        };
        assert_eq!(wanted(16384, 16384), 0b1111);
        assert_eq!(wanted(16384 + 4096, 4096), 0b0010);
        assert_eq!(wanted(16384 + 4095, 2), 0b0011);
        assert_eq!(wanted(0, 16384 + 1), 0b0001);
        assert_eq!(wanted(16384 + 12288, 1 << 20), 0b1000);
        let whole = Request::new(HostOp::Read, 0, 64 * 512, 0);
        assert_eq!(pages_wanted(&whole, 0, 64 * 512, 512), u64::MAX);
    }
}
