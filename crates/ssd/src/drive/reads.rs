//! Reads: from the buffer, from flash, or of nothing at all.

use prism_nand::Cause;

use super::Drive;
use crate::request::Status;

impl Drive {
    pub(super) fn start_read(&mut self, slot: u32) {
        let request = self.slots[slot].request;
        let first = self.unit_of(request.offset);
        let last = self.unit_of(request.offset + request.len - 1);
        let state = &mut self.slots[slot];
        let cost = &mut state.cost;
        let mut planes = 0;
        self.runs.clear();
        for lpn in first..=last {
            if let Some(place) = self.buffer.find(lpn) {
                cost.buffer_hits += 1;
                if self.buffer.entry(place).lost {
                    state.status = Status::Unreadable;
                    self.engine.note_unreadable();
                }
            } else if let Some(at) = self.engine.ftl().lookup(lpn) {
                self.engine.ftl().add_read(at, &mut planes, &mut self.runs);
                if self.engine.has_faults()
                    && let Some(run) = self.runs.last_mut()
                    && self.engine.judge(at, self.now, &mut run.trouble)
                {
                    state.status = Status::Unreadable;
                    self.engine.note_unreadable();
                }
            } else {
                cost.unmapped += 1;
            }
        }
        cost.flash_reads += self.runs.iter().map(|run| u32::from(run.pages)).sum::<u32>();
        state.reads_left = self.runs.len() as u32;
        for &run in &self.runs {
            self.engine.read(run, Cause::Host, slot, request.urgent, self.now);
        }
        if self.runs.is_empty() {
            self.send(slot);
        }
    }

    /// One of the reads of a request has ended.
    pub(super) fn read_arrived(&mut self, slot: u32) {
        let state = &mut self.slots[slot];
        state.reads_left -= 1;
        if state.reads_left == 0 {
            self.send(slot);
        }
    }

    /// The data of a read is there: over the link, then done.
    fn send(&mut self, slot: u32) {
        let len = self.slots[slot].request.len;
        self.link_out = self.now.max(self.link_out) + self.link_time(len);
        self.finishes.push(self.link_out, slot);
    }
}
