//! From the buffer of a range to the controller: program units wait until a die group takes them.
//!
//! The controller gives a die few program units of the host at once, as in the simulated drive. On
//! a device with timing it gives one, and the others wait here, in memory: a read waits for the one
//! that its LUN has, and not for all that is written. The next one is given to the controller when
//! an operation ends, after all reads that were submitted until then, so it waits for no later
//! ones. A blocking call and a flush wait until all program units are with the controller, which
//! therefore runs ahead of the share's clock.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use prism_base::SimTime;
use prism_engine::HostUnit;
use prism_ftl::UnitWrite;
use prism_nand::DieGroupId;

use super::Range;
use crate::buffer::Buffer;
use crate::error::{FlashError, Result};
use crate::monitor::{ShareReply, Urgency};

/// Program units that wait, in order within each stream.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// By stream the numbers of program units in the order of all, and their places.
    streams: BTreeMap<u32, VecDeque<(u64, u32)>>,
    pushed: u64,
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    fn push(&mut self, stream: u32, at: u32) {
        self.pushed += 1;
        self.streams.entry(stream).or_default().push_back((self.pushed, at));
    }

    /// The number of the first of a stream, and the stream.
    fn first_of(&self, stream: u32) -> Option<(u64, u32)> {
        Some((self.streams.get(&stream)?.front()?.0, stream))
    }

    /// The first of each stream, in the order of all.
    fn firsts(&self) -> BTreeSet<(u64, u32)> {
        self.streams.keys().filter_map(|&stream| self.first_of(stream)).collect()
    }

    fn place_of_first(&self, stream: u32) -> u32 {
        self.streams[&stream][0].1
    }

    fn remove_first(&mut self, stream: u32) {
        let queue = self.streams.get_mut(&stream).expect("a stream of which some wait");
        queue.pop_front();
        if queue.is_empty() {
            self.streams.remove(&stream);
        }
    }
}

/// A write whose data flash does not have yet.
#[derive(Debug, Default)]
pub(super) struct Write {
    /// The queue that gets the completion, and the tag there; `None` for a blocking call.
    from: Option<(u64, u64)>,
    data: Buffer,
    /// Its program units that wait, and one while it is being submitted.
    left: u32,
    /// When flash has taken what was programmed so far.
    end: SimTime,
    failed: Option<FlashError>,
}

impl Range {
    /// Begins a write, of which program units that it fills are noted.
    pub(super) fn open_write(&mut self, from: Option<(u64, u64)>) -> u32 {
        let end = self.share().now().unwrap_or(self.now);
        let write = self.writes.take();
        self.writes[write] = Write { from, left: 1, end, ..Write::default() };
        self.write = Some(write);
        write
    }

    /// Ends a blocking write, of which nothing waits; returns when flash has its data.
    pub(super) fn close_write(&mut self, write: u32) -> SimTime {
        self.write = None;
        let Write { left, end, .. } = std::mem::take(&mut self.writes[write]);
        assert!(left == 1, "program units of a blocking write wait");
        self.writes.give(write);
        end
    }

    /// Ends the submission of a queued write, which completes when flash has all of its data.
    pub(super) fn submitted(&mut self, write: u32, data: Buffer, result: Result<()>) {
        self.write = None;
        let state = &mut self.writes[write];
        state.data = data;
        state.failed = result.err().or(state.failed.take());
        self.taken(write, SimTime::ZERO);
    }

    /// The write in progress is not complete before `time`.
    pub(super) fn write_ends_after(&mut self, time: SimTime) {
        if let Some(write) = self.write {
            let end = &mut self.writes[write].end;
            *end = time.max(*end);
        }
    }

    /// Whether a queued write is in progress.
    pub(super) fn is_queued(&self) -> bool {
        self.write.is_some_and(|write| self.writes[write].from.is_some())
    }

    /// Flash takes the data of a program unit of `write` at `time`.
    fn taken(&mut self, write: u32, time: SimTime) {
        let state = &mut self.writes[write];
        state.end = state.end.max(time);
        state.left -= 1;
        if state.left > 0 {
            return;
        }
        let Write { from, data, end, failed, .. } = std::mem::take(state);
        self.writes.give(write);
        let (queue, tag) = from.expect("a blocking write is closed by its call");
        let result = failed.map_or(Ok(()), Err);
        self.share().complete(queue, ShareReply::without_work(tag, end, result, data));
    }

    /// The program unit at `at` waits for a die group.
    pub(super) fn wait_for_die_group(&mut self, at: u32, stream: u32) {
        self.program_units[at].write = self.write;
        if let Some(write) = self.write {
            self.writes[write].left += 1;
        }
        self.waiting.push(stream, at);
    }

    /// When an operation ends for which program units of queued writes may wait.
    pub(in crate::policy) fn next_dispatch(&self) -> Option<SimTime> {
        (!self.waiting.is_empty()).then(|| self.engine.next_at())
    }

    /// Gives the controller the program units that wait and for which a die group is ready, now.
    /// Program units of one stream are not reordered, and of streams only if the FTL chooses the
    /// die group of each: otherwise the first waits for what all wait for.
    pub(super) fn dispatch(&mut self) -> Result<()> {
        while !self.waiting.is_empty() {
            self.dispatch_ready()?;
            if self.waiting.is_empty() || !self.engine.is_idle() {
                break;
            }
            // After recovery nothing has begun to clean, or cleaning waits for urgent data.
            self.engine.set_urgent(false, self.now);
            let cleans =
                self.engine.begin_cleaning(self.now) || self.engine.clean_to_high(self.now);
            self.check()?;
            assert!(cleans, "no die group accepts a program unit: too little spare space");
        }
        Ok(())
    }

    fn dispatch_ready(&mut self) -> Result<()> {
        let mut firsts = self.waiting.firsts();
        while let Some((_, stream)) = firsts.pop_first() {
            let at = self.waiting.place_of_first(stream);
            let first = self.program_units[at].units.first().map(|write| write.lpn);
            match first {
                None => {
                    self.waiting.remove_first(stream);
                    self.drop_program_unit(at);
                }
                Some(first) => match self.die_group_for(stream, first)? {
                    Some(die_group) => {
                        self.waiting.remove_first(stream);
                        self.begin_program(at, stream, die_group)?;
                    }
                    None if self.engine.ftl().places_host() => continue,
                    None => break,
                },
            }
            firsts.extend(self.waiting.first_of(stream));
        }
        Ok(())
    }

    /// A die group that takes a program unit of `stream` now, which begins with `first`.
    fn die_group_for(&mut self, stream: u32, first: u32) -> Result<Option<DieGroupId>> {
        let urgent = self.urgency == Urgency::Urgent;
        self.engine.set_urgent(urgent, self.now);
        if urgent {
            self.engine.prefer_without_cleaning();
        }
        // A program unit that opens a block does not wait for the LUN: the FTL chooses the LUN with
        // the most erased blocks, and until this block is one less all others would wait for it.
        let ftl = self.engine.ftl();
        let opens =
            ftl.places_host() && ftl.next_program_unit(DieGroupId(0), stream, first).is_none();
        let takes_blocks = self.engine.device().takes_blocks;
        self.engine.device_mut().takes_blocks |= opens;
        let found = self.engine.writable_die_group(stream, first, self.now);
        self.engine.device_mut().takes_blocks = takes_blocks;
        self.check()?;
        Ok(found)
    }

    fn begin_program(&mut self, at: u32, stream: u32, die_group: DieGroupId) -> Result<()> {
        let program_unit = &mut self.program_units[at];
        let write = program_unit.write.take();
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
        (flash.host, flash.urgency, flash.sent) = (bytes, self.urgency, SimTime::ZERO);
        self.engine.write(die_group, stream, &self.host_units, self.now);
        // They can be read until the program has ended.
        let flash = self.engine.device_mut();
        let sent = flash.sent;
        self.program_units[at].bytes = std::mem::take(&mut flash.host);
        let checked = self.check();
        if let Some(write) = write {
            if let Err(error) = &checked {
                self.writes[write].failed = Some(error.clone());
            }
            self.taken(write, sent);
        }
        checked
    }

    /// All units of a program unit that waited were trimmed.
    fn drop_program_unit(&mut self, at: u32) {
        let write = self.program_units[at].write.take();
        self.program_units.give(at);
        if let Some(write) = write {
            self.taken(write, self.now);
        }
    }

    /// Gives the controller all program units that wait, and ends operations until it has taken
    /// them: it runs ahead of the share's clock.
    pub(in crate::policy) fn program_waiting(&mut self) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.engine.device_mut().takes_blocks = true;
        let programmed = self.program_until_none_waits();
        self.engine.device_mut().takes_blocks = false;
        programmed
    }

    fn program_until_none_waits(&mut self) -> Result<()> {
        loop {
            self.dispatch()?;
            if self.waiting.is_empty() {
                return Ok(());
            }
            self.step()?;
        }
    }

    /// The device has failed: nothing that waits is programmed.
    pub(super) fn fail_waiting(&mut self, error: &FlashError) {
        while let Some((_, stream)) = self.waiting.firsts().pop_first() {
            let at = self.waiting.place_of_first(stream);
            self.waiting.remove_first(stream);
            if let Some(write) = self.program_units[at].write.take() {
                self.writes[write].failed = Some(error.clone());
                self.taken(write, SimTime::ZERO);
            }
        }
    }
}
