//! Host program units: the choice of the die group, and the program.

use prism_base::SimTime;
use prism_ftl::{HostPlace, TrimRange, UnitWrite};
use prism_nand::{Cause, DieGroupId, DieId, ProgramUnitId};

use super::{Controller, HostUnit};
use crate::device::FlashDevice;

/// Attempts to make room without a flash operation in between: a program unit may wait for the
/// merge of its own log block, for that of another, and for copies before it. The last attempt
/// finds that there is room.
const ROOM_STEPS: u32 = 4;

impl<D: FlashDevice> Controller<D> {
    /// Whether [`Controller::writable_die_group`] may find a die group for streams that may go to
    /// any.
    #[must_use]
    #[inline]
    pub fn has_ready_die_group(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Host program units that may be queued or in flight on a die group.
    #[inline(always)]
    pub(super) fn program_units_max(&self) -> u32 {
        self.device.program_units_max() * self.layout.dies_per_die_group()
    }

    /// Puts a die group that is not being cleaned first among those that are ready, so that urgent
    /// data does not wait for copies.
    pub fn prefer_without_cleaning(&mut self) {
        let cleaner = |die_group: u32| &self.die_groups[die_group as usize].cleaner;
        let place = self.ready.iter().position(|&die_group| !cleaner(die_group).is_working());
        if let Some(die_group) = place.and_then(|place| self.ready.remove(place)) {
            self.ready.push_front(die_group);
        }
    }

    /// A die group that can be given a program unit of `stream`, which begins with logical unit
    /// `first`, now; die groups alternate. `None` if all are busy, or must clean first. If the FTL
    /// chooses the die group and a merge has to make room first, the merge is begun.
    #[inline]
    pub fn writable_die_group(
        &mut self,
        stream: u32,
        first: u32,
        now: SimTime,
    ) -> Option<DieGroupId> {
        if self.ready.is_empty() && !self.ftl.places_host() {
            return None;
        }
        self.find_die_group(stream, first, now)
    }

    fn find_die_group(&mut self, stream: u32, first: u32, now: SimTime) -> Option<DieGroupId> {
        if self.is_read_only() {
            return None;
        }
        let places_host = self.ftl.places_host();
        if places_host && self.ftl.host_place(stream, first) != HostPlace::Any {
            return self.named_die_group(stream, first, now);
        }
        let most = self.program_units_max();
        for _ in 0..self.ready.len() {
            let die_group = self.ready.pop_front().expect("the list has one for each iteration");
            if places_host && self.die_groups[die_group as usize].host_program_units >= most {
                // Busy with program units that the FTL placed there. Listed again when one is done.
                self.die_groups[die_group as usize].listed = false;
            } else if !self.ftl.host_may_write(DieGroupId(die_group), stream) {
                // Listed again when an erase has made room; at once if other streams may have room,
                // or this one after garbage is created.
                let several = places_host || self.ftl.has_slc();
                self.die_groups[die_group as usize].listed = several;
                if several {
                    self.ready.push_back(die_group);
                }
            } else if !self.ftl.balanced(DieGroupId(die_group), stream)
                || self.next_die_busy(die_group, stream, first)
            {
                self.ready.push_back(die_group);
            } else {
                self.ready.push_front(die_group);
                return Some(DieGroupId(die_group));
            }
        }
        None
    }

    fn named_die_group(&mut self, stream: u32, first: u32, now: SimTime) -> Option<DieGroupId> {
        let die_group = self.place(stream, first, now)?;
        let most = self.device.named_program_units_max() * self.layout.dies_per_die_group();
        let busy = self.die_groups[die_group.0 as usize].host_program_units >= most;
        (!busy && !self.next_die_busy(die_group.0, stream, first)).then_some(die_group)
    }

    /// The die group that the FTL chooses for a program unit of `stream`, which begins with
    /// `first`; `None` if it has to wait for merges, which are begun.
    pub(super) fn place(&mut self, stream: u32, first: u32, now: SimTime) -> Option<DieGroupId> {
        for _ in 0..ROOM_STEPS {
            if self.ftl.host_place(stream, first) != HostPlace::Blocked {
                break;
            }
            if self.is_read_only() {
                return None;
            }
            let Some(merges) = self.ftl.make_room(stream, first) else {
                // A log block with an open wordline is not merged.
                self.close_wordlines(|_| true, now);
                return None;
            };
            // A merge without flash operations makes room at once, or reveals what else the program
            // unit waits for.
            self.clean(merges, now);
        }
        match self.ftl.host_place(stream, first) {
            HostPlace::DieGroup(die_group) if !self.is_read_only() => Some(die_group),
            _ => None,
        }
    }

    /// Whether the next die of a superblock has enough program units.
    fn next_die_busy(&self, die_group: u32, stream: u32, first: u32) -> bool {
        if self.layout.dies_per_die_group() == 1 {
            return false;
        }
        let die = match self.ftl.next_program_unit(DieGroupId(die_group), stream, first) {
            Some(program_unit) => self.layout.die_of(program_unit),
            None => DieId(die_group * self.layout.dies_per_die_group()),
        };
        self.device.load(die).host_program_units >= self.device.program_units_max()
    }

    /// Programs `units` (at most a program unit, all of `stream`) as the next program unit of
    /// `die_group`, which [`Controller::writable_die_group`] has just returned. Calls
    /// [`Ftl::write_begin`] for each; they are reported as [`Done::Wrote`].
    pub fn write(&mut self, die_group: DieGroupId, stream: u32, units: &[HostUnit], now: SimTime) {
        self.write_bytes(die_group, stream, units, Vec::new(), now);
    }

    /// As [`Controller::write`], with the bytes of every unit, empty for a unit without; or with
    /// none at all.
    ///
    /// # Panics
    /// If the die group was not returned, or `payloads` are not as many as the units.
    pub fn write_bytes(
        &mut self,
        die_group: DieGroupId,
        stream: u32,
        units: &[HostUnit],
        payloads: Vec<Box<[u8]>>,
        now: SimTime,
    ) {
        assert!(payloads.is_empty() || payloads.len() == units.len(), "bytes for some units only");
        let first = units.first().expect("a program unit has units").write.lpn;
        let any_die_group = self.ftl.host_place(stream, first) == HostPlace::Any;
        if any_die_group {
            let front = self.ready.pop_front();
            assert!(front == Some(die_group.0), "a program unit for another die group");
        }
        let program_unit = self.ftl.reserve_host(die_group, stream, first);
        if self.ftl.is_overflow(program_unit, stream) {
            self.device.counts_mut().slc_overflow += units.len() as u64;
        }
        while let Some(pad) = self.ftl.take_pad() {
            self.program_empty(die_group, pad, Cause::Pad, now);
        }
        let place = self.take_host_job(die_group, program_unit, stream, units, payloads);
        let die = self.layout.die_of(program_unit);
        let load = self.device.load_mut(die);
        load.host_program_units += 1;
        load.host_ops += 1;
        let most = self.program_units_max();
        let state = &mut self.die_groups[die_group.0 as usize];
        state.host_program_units += 1;
        if any_die_group {
            state.listed = state.host_program_units < most;
            if state.listed {
                self.ready.push_back(die_group.0);
            }
        }
        self.stop_idle_cleaning();
        self.submit_program(place, now);
        self.program_parity(die_group, now);
        self.clean(die_group, now);
    }

    /// The job of a host program unit.
    #[inline(always)]
    fn take_host_job(
        &mut self,
        die_group: DieGroupId,
        program_unit: ProgramUnitId,
        stream: u32,
        units: &[HostUnit],
        payloads: Vec<Box<[u8]>>,
    ) -> u32 {
        let place = self.jobs.take();
        let job = &mut self.jobs[place];
        job.die_group = die_group.0;
        job.program_unit = program_unit.0;
        job.cause = Some(Cause::Host);
        job.copied_back = 0;
        job.units.clear();
        job.tags.clear();
        job.lost.clear();
        job.stream = stream;
        // There are rarely payloads; without them the empty vector is not moved.
        job.payloads.clear();
        if !self.no_payload {
            job.tombstones.clear();
        }
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
            } else if !self.no_payload {
                let ranges = self.ftl.tombstone_ranges(&unit.write);
                job.tombstones.push(TrimRange::encode_all(ranges));
            }
            job.units.push(unit.write);
            job.tags.push(unit.tag);
        }
        place
    }

    /// Programs the next program unit of `stream` on `die_group`, which
    /// [`Controller::writable_die_group`] has just returned, with padding only. The caller limits
    /// the number of such program units in flight.
    ///
    /// # Panics
    /// If the FTL does not choose the die group of a program unit.
    pub fn pad(&mut self, die_group: DieGroupId, stream: u32, now: SimTime) {
        assert!(self.ftl.places_host(), "the FTL chooses the die group of padding");
        let program_unit = self.ftl.reserve_host(die_group, stream, UnitWrite::PAD);
        self.program_empty(die_group, program_unit, Cause::Pad, now);
    }
}
