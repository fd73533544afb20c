//! What the operations in flight of a range have done by now, and cleaning in idle time.

use prism_base::SimTime;
use prism_engine::Done;

use super::Range;
use crate::error::Result;

/// Program units of copies that are processed for each host program unit on a device without
/// timing: enough for a write amplification of 3, and few enough not to delay the caller for long.
const COPIES_PER_HOST_PROGRAM: u64 = 2;

impl Range {
    /// Ends the next operation in flight, follows its time, and begins programs that waited for
    /// it.
    pub(super) fn step(&mut self) -> Result<()> {
        let mut done = std::mem::take(&mut self.done);
        self.now = self.engine.step(&mut done).max(self.now);
        for event in done.drain(..) {
            let Done::Wrote { tag } = event else { unreachable!("reads bypass the controller") };
            self.unit_written(tag);
        }
        self.done = done;
        self.check()?;
        self.dispatch()
    }

    /// A unit of program unit `place` is on flash.
    fn unit_written(&mut self, place: u32) {
        let program_unit = &mut self.program_units[place];
        program_unit.left -= 1;
        if program_unit.left > 0 {
            return;
        }
        for write in &program_unit.units {
            if self.pending.get(&write.lpn).is_some_and(|&(at, _)| at == place) {
                self.pending.remove(&write.lpn);
            }
        }
        program_unit.units.clear();
        program_unit.bytes.clear();
        self.in_flight -= 1;
        self.program_units.give(place);
    }

    /// Ends operations: on a device with timing those that end by the time of the share's clock,
    /// on others at most a few program units of copies.
    pub(super) fn make_progress(&mut self) -> Result<()> {
        if self.share().is_timed() {
            let now = self.share().now()?.max(self.now);
            return self.follow(now);
        }
        let most = self.flash().copied + COPIES_PER_HOST_PROGRAM;
        while !self.engine.is_idle() && self.flash().copied < most {
            self.step()?;
        }
        Ok(())
    }

    /// Ends the operations in flight that end by `time`, which may be ahead of the share's clock.
    pub(in crate::policy) fn follow(&mut self, time: SimTime) -> Result<()> {
        if self.share().is_timed() {
            while self.engine.next_at() <= time {
                self.step()?;
            }
            self.now = self.now.max(time);
        }
        Ok(())
    }

    /// Ends all operations in flight, cleaning included.
    pub(in crate::policy) fn settle(&mut self) -> Result<()> {
        self.program_waiting()?;
        while !self.engine.is_idle() {
            self.step()?;
        }
        Ok(())
    }

    /// Cleans in idle time: ends at most `program_units` program units of copies. Returns whether
    /// there was anything to do.
    pub(crate) fn idle(&mut self, program_units: u32) -> Result<bool> {
        self.alive()?;
        self.make_progress()?;
        let any = self.engine.clean_to_high(self.now);
        let most = self.flash().copied + u64::from(program_units);
        while !self.engine.is_idle() && self.flash().copied < most {
            self.step()?;
        }
        self.check()?;
        Ok(any)
    }
}
