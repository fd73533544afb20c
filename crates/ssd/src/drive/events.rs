//! The event loop: ends of flash operations, of firmware and of requests, in order of time.

use prism_base::SimTime;
use prism_engine::Done;

use super::map::is_map_read;
use super::{Drive, FILL, IDLE, KIND_BITS, MAP, MERGE};
use prism_engine::block::{Completion, HostOp, Status};

impl Drive {
    /// Processes all events up to and including `until`; completions are added to `out` in the
    /// order in which they happen.
    pub fn advance(&mut self, until: SimTime, out: &mut Vec<Completion>) {
        while let Some(at) = self.next_event() {
            if at > until {
                break;
            }
            self.step(out);
        }
        self.now = self.now.max(until);
    }

    /// Processes the next event; completions are added to `out`. At equal times flash events come
    /// first, then commands, then completions.
    ///
    /// # Panics
    /// If there is none.
    pub fn step(&mut self, out: &mut Vec<Completion>) {
        let happened = self.run(1, SimTime::NEVER, out);
        assert!(happened, "an event to step to");
    }

    /// Processes events until at least one request completes; false if no event is left before
    /// that. It is faster than single calls of [`Drive::step`].
    pub fn next_completion(&mut self, out: &mut Vec<Completion>) -> bool {
        self.next_completion_before(SimTime::NEVER, out)
    }

    /// As [`Drive::next_completion`], but leaves the events at `end` and later.
    pub fn next_completion_before(&mut self, end: SimTime, out: &mut Vec<Completion>) -> bool {
        let before = out.len();
        self.run(u64::MAX, end, out) && out.len() > before
    }

    /// Processes at most `events` events before `end`, up to the first with completions. Returns
    /// false if there was none.
    fn run(&mut self, events: u64, end: SimTime, out: &mut Vec<Completion>) -> bool {
        let before = out.len();
        for happened in 0..events {
            let flash = self.engine.next_at();
            let (reads, writes) = (self.starts.next_at(), self.write_starts.next_at());
            let commands = reads.min(writes);
            let finishes = self.finishes.next_at();
            let at = flash.min(commands).min(finishes).min(self.timers.next_at());
            if at >= end {
                return happened > 0;
            }
            self.now = at;
            if flash == at {
                self.flash_event(out);
            } else if commands == at {
                let starts = if reads == at { &mut self.starts } else { &mut self.write_starts };
                let (_, slot) = starts.pop().expect("an event was there");
                self.start(slot, out);
            } else if finishes == at {
                let (_, slot) = self.finishes.pop().expect("an event was there");
                self.finish(slot, out);
                self.watch_for_idle();
            } else {
                let (_, payload) = self.timers.pop().expect("an event was there");
                self.timer(payload, out);
            }
            if self.has_faults_or_wordlines {
                self.handle_faults_and_wordlines(out);
            }
            if out.len() > before {
                break;
            }
        }
        true
    }

    /// Work after an event on flash with faults, or with wordlines that are committed as a whole.
    #[cold]
    fn handle_faults_and_wordlines(&mut self, out: &mut Vec<Completion>) {
        if self.engine.is_read_only() && self.read_only.is_none() {
            self.become_read_only(out);
        }
        if self.engine.units_held() > 0 {
            self.close_wordlines();
        }
    }

    #[inline]
    fn flash_event(&mut self, out: &mut Vec<Completion>) {
        self.engine.step(&mut self.done);
        // Reads free nothing that other requests wait for, unless they complete a buffered unit.
        let mut moves = self.engine.take_freed();
        let mut next = 0;
        while let Some(&event) = self.done.get(next) {
            moves |= self.flash_done(event, out);
            next += 1;
        }
        self.done.clear();
        if self.map.is_some() {
            moves |= self.follow_moves();
        }
        if self.zones.is_some() {
            moves |= self.zones_fail(out);
        }
        if moves {
            self.pump(out);
        }
        self.watch_for_idle();
    }

    #[cold]
    fn timer(&mut self, payload: u32, out: &mut Vec<Completion>) {
        match payload & ((1 << KIND_BITS) - 1) {
            IDLE => {
                let since = self.now.since(self.last_change);
                if since < self.device.ftl.idle_after {
                    // A request came that needed no flash operation: the idle time starts again.
                    self.watch_for_idle();
                } else if self.in_flight() == 0 {
                    self.engine.clean_in_idle_time(self.now);
                }
            }
            MERGE => {
                self.end_merge(payload >> KIND_BITS);
                self.pump(out);
            }
            _ => unreachable!("timers are IDLE or MERGE"),
        }
    }

    /// If no request is in flight, sets a timer for the begin of idle time.
    #[inline]
    pub(super) fn watch_for_idle(&mut self) {
        if self.in_flight() == 0 {
            self.watch_for_idle_flash();
        }
    }

    #[inline(never)]
    fn watch_for_idle_flash(&mut self) {
        let rests = self.timers.is_empty() && self.engine.is_idle();
        if rests && self.engine.works_when_idle() {
            // Background work may have lasted longer than `idle_after`.
            let at = self.last_change + self.device.ftl.idle_after;
            self.timers.push(at.max(self.now), IDLE);
        }
    }

    /// Returns whether the buffer has changed.
    #[inline]
    fn flash_done(&mut self, event: Done, out: &mut Vec<Completion>) -> bool {
        match event {
            Done::Wrote { tag } => {
                while let Some(slot) = self.buffer.next_waiter(tag) {
                    self.unit_durable(slot, out);
                }
                self.buffer.remove(tag);
                true
            }
            Done::Read { tag } if tag & FILL != 0 => {
                self.buffer.filled(tag & !FILL);
                true
            }
            Done::Read { tag } if is_map_read(tag) => {
                self.map_arrived(tag & !MAP, out);
                false
            }
            Done::Read { tag } => {
                self.read_arrived(tag);
                false
            }
        }
    }

    pub(super) fn finish(&mut self, slot: u32, out: &mut Vec<Completion>) {
        self.account();
        let state = &self.slots[slot];
        let request = &state.request;
        let (op, len, queue, urgent) = (request.op, request.len, request.queue, request.urgent);
        // Built in place: copying a struct right after storing its fields would stall on those
        // stores.
        out.push(Completion {
            tag: request.tag,
            op,
            offset: request.offset,
            len,
            submitted: state.submitted,
            completed: self.now,
            status: state.status,
            cost: state.cost,
        });
        self.counts.completed += 1;
        self.counts.latency_ns += u128::from(self.now.since(state.submitted).0);
        match op {
            _ if state.status != Status::Done => self.counts.failed += 1,
            HostOp::Read => self.counts.bytes_read += len,
            HostOp::Write | HostOp::ZoneAppend => self.counts.bytes_written += len,
            _ => {}
        }
        if let Some(work) = &mut self.zones {
            work.zones.done(op, request.offset);
        }
        if self.payloads.is_some() {
            self.return_bytes(slot);
        }
        self.slots.give(slot);
        self.leave(queue, urgent);
    }

    /// Adds the time since the last change to the integral of the requests in flight.
    #[inline]
    pub(super) fn account(&mut self) {
        let span = self.now.since(self.last_change);
        self.counts.in_flight_ns += u128::from(span.0) * self.slots.in_use() as u128;
        self.last_change = self.now;
    }
}
