//! Rows of the host: which lane takes the next, and what its program is.

use prism_base::SimTime;
use prism_ftl::{HostPlace, UnitWrite};
use prism_nand::{Cause, DieId, LaneId};

use super::die::Op;
use super::{Engine, HOST_ROWS_MAX, HostUnit};

/// What a row may wait for without an operation of the flash in between: the merge of its
/// own log block, that of another, and copies in front of it. Once more to see that it is done.
const ROOM_STEPS: u32 = 4;

impl Engine {
    /// Whether [`Engine::writable_lane`] may find one where the FTL names no lane.
    #[must_use]
    #[inline]
    pub fn has_ready_lane(&self) -> bool {
        !self.ready.is_empty()
    }

    /// A lane that can take a row of `stream`, which begins with logical unit `first`, now, in
    /// turn; `None` if all are busy enough, or must clean first. Where the FTL names the
    /// lane, one that has to merge first is set to it.
    #[inline]
    pub fn writable_lane(&mut self, stream: u32, first: u32, now: SimTime) -> Option<LaneId> {
        if self.ready.is_empty() && !self.ftl.places_host() {
            return None;
        }
        self.find_lane(stream, first, now)
    }

    fn find_lane(&mut self, stream: u32, first: u32, now: SimTime) -> Option<LaneId> {
        if self.is_read_only() {
            return None;
        }
        let places_host = self.ftl.places_host();
        if places_host && self.ftl.host_place(stream, first) != HostPlace::Any {
            return self.named_lane(stream, first, now);
        }
        let most = HOST_ROWS_MAX * self.layout.dies_per_lane();
        for _ in 0..self.ready.len() {
            let lane = self.ready.pop_front().expect("as many as counted");
            if places_host && self.lanes[lane as usize].host_rows >= most {
                // Busy with rows that were placed there. Comes back when one of them is done.
                self.lanes[lane as usize].listed = false;
            } else if !self.ftl.host_may_write(LaneId(lane), stream) {
                // Comes back when an erase has made room; at once where another stream may
                // have some, or this one when garbage comes into being.
                let several = places_host || self.ftl.has_slc();
                self.lanes[lane as usize].listed = several;
                if several {
                    self.ready.push_back(lane);
                }
            } else if !self.ftl.balanced(LaneId(lane), stream)
                || self.next_die_busy(lane, stream, first)
            {
                self.ready.push_back(lane);
            } else {
                self.ready.push_front(lane);
                return Some(LaneId(lane));
            }
        }
        None
    }

    fn named_lane(&mut self, stream: u32, first: u32, now: SimTime) -> Option<LaneId> {
        let lane = self.place(stream, first, now)?;
        let most = HOST_ROWS_MAX * self.layout.dies_per_lane();
        let busy = self.lanes[lane.0 as usize].host_rows >= most;
        (!busy && !self.next_die_busy(lane.0, stream, first)).then_some(lane)
    }

    /// The lane that the FTL names for a row of `stream`, which begins with `first`; `None`
    /// if it has to wait for merges, which are begun.
    pub(super) fn place(&mut self, stream: u32, first: u32, now: SimTime) -> Option<LaneId> {
        for _ in 0..ROOM_STEPS {
            if self.ftl.host_place(stream, first) != HostPlace::Blocked {
                break;
            }
            if self.is_read_only() {
                return None;
            }
            let Some(merges) = self.ftl.make_room(stream, first) else {
                // A log block whose word line is open is not merged.
                self.close_word_lines(|_| true, now);
                return None;
            };
            // A merge without flash operations makes room at once, or shows what else the row
            // waits for.
            self.clean(merges, now);
        }
        match self.ftl.host_place(stream, first) {
            HostPlace::Lane(lane) if !self.is_read_only() => Some(lane),
            _ => None,
        }
    }

    /// Whether the die of a superblock that would be next has rows enough.
    fn next_die_busy(&self, lane: u32, stream: u32, first: u32) -> bool {
        if self.layout.dies_per_lane() == 1 {
            return false;
        }
        let die = match self.ftl.next_row(LaneId(lane), stream, first) {
            Some(row) => self.layout.die_of(row),
            None => DieId(lane * self.layout.dies_per_lane()),
        };
        self.dies[die.0 as usize].host_rows >= HOST_ROWS_MAX
    }

    /// Programs `units` (at most a row, all of `stream`) as the next row of `lane`, which
    /// [`Engine::writable_lane`] has just returned. Each is announced to the FTL here
    /// and comes back as [`Done::Wrote`].
    pub fn write(&mut self, lane: LaneId, stream: u32, units: &[HostUnit], now: SimTime) {
        self.write_bytes(lane, stream, units, Vec::new(), now);
    }

    /// As [`Engine::write`], with the bytes of every unit, as they are now.
    ///
    /// # Panics
    /// If the lane was not offered, or only some units have bytes.
    pub fn write_bytes(
        &mut self,
        lane: LaneId,
        stream: u32,
        units: &[HostUnit],
        payloads: Vec<Box<[u8]>>,
        now: SimTime,
    ) {
        assert!(payloads.is_empty() || payloads.len() == units.len(), "bytes for some units only");
        let first = units.first().expect("a row holds something").write.lpn;
        let in_turn = self.ftl.host_place(stream, first) == HostPlace::Any;
        if in_turn {
            let front = self.ready.pop_front();
            assert!(front == Some(lane.0), "a row for a lane that was not offered");
        }
        let row = self.ftl.reserve_host(lane, stream, first);
        if self.ftl.is_overflow(row, stream) {
            self.counts.slc_overflow += units.len() as u64;
        }
        while let Some(pad) = self.ftl.take_pad() {
            self.program_empty(lane, pad, Cause::Pad, now);
        }
        let place = self.jobs.take();
        let job = &mut self.jobs[place];
        job.lane = lane.0;
        job.row = row.0;
        job.cause = Some(Cause::Host);
        job.copied_back = 0;
        job.units.clear();
        job.tags.clear();
        job.lost.clear();
        job.stream = stream;
        // Mostly there are none, and then nothing is moved through the stack.
        job.payloads.clear();
        if !payloads.is_empty() {
            job.payloads = payloads;
        }
        for (number, unit) in (0..).zip(units) {
            if unit.lost {
                debug_assert!(!self.no_payload, "a unit lost by flash that does not fail");
                job.lost.push(number);
            }
            self.ftl.prefetch(unit.write.lpn);
            if unit.write.lpn != UnitWrite::TOMBSTONE {
                self.ftl.write_begin(unit.write.lpn);
            }
            job.units.push(unit.write);
            job.tags.push(unit.tag);
        }
        let die = self.layout.die_of(row);
        let state = &mut self.dies[die.0 as usize];
        state.host_rows += 1;
        state.host_ops += 1;
        let dies = self.layout.dies_per_lane();
        let state = &mut self.lanes[lane.0 as usize];
        state.host_rows += 1;
        if in_turn {
            state.listed = state.host_rows < HOST_ROWS_MAX * dies;
            if state.listed {
                self.ready.push_back(lane.0);
            }
        }
        self.stop_idle_cleaning();
        self.enqueue(die, Op::Program { job: place }, false, now);
        self.program_parity(lane, now);
        self.clean(lane, now);
    }

    /// Programs the next row of `stream` on `lane`, which [`Engine::writable_lane`] has just
    /// returned, with nothing but padding. The caller bounds how many such rows there are at
    /// once.
    ///
    /// # Panics
    /// If the FTL does not name the lane of a row.
    pub fn pad(&mut self, lane: LaneId, stream: u32, now: SimTime) {
        assert!(self.ftl.places_host(), "padding goes to a place that the FTL names");
        let row = self.ftl.reserve_host(lane, stream, UnitWrite::PAD);
        self.program_empty(lane, row, Cause::Pad, now);
    }
}
