//! Runs plans in simulated time.
//!
//! A die does one operation at a time, first come first served. A read holds the die
//! for tR, then for its transfer over the channel; a program for its transfer, then for
//! tPROG; an erase for tBERS. Channels are reserved on request, first come first served,
//! so that a program or an erase is one event and a read two. Design and measurements:
//! docs/design/event-core.md.

use std::collections::VecDeque;

use prism_base::{EventQueue, SimTime};
use prism_ftl::{CopyPlan, PageMap, ReadRun, UnitWrite};
use prism_nand::{BlockId, Cause, DieId, Geometry, Nand, Pun, RowId, Timing};

use crate::cleaner::{COPIES_MAX, Cleaner};
use crate::content;
use crate::counts::FlashCounts;
use crate::slab::Slab;

/// Host rows that may wait for or run on a die at once. One runs, one is ready to
/// follow; more would only bind data to a die earlier than needed.
const HOST_ROWS_MAX: u32 = 2;

/// A unit of host data to be programmed, and the tag it comes back with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostUnit {
    /// Logical unit, version, and (never for host data) source.
    pub write: UnitWrite,
    /// Whatever the caller wants to find again.
    pub tag: u32,
}

/// Something the caller asked for has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// A read.
    Read {
        /// The tag it was asked with.
        tag: u32,
    },
    /// A unit is on flash and in the map.
    Wrote {
        /// The tag it was given with.
        tag: u32,
    },
}

#[derive(Clone, Copy, Debug)]
enum DieOp {
    HostRead { tag: u32, run: ReadRun, cause: Cause },
    CopyRead { job: u32, run: ReadRun },
    Program { job: u32 },
    Erase { block: BlockId },
}

#[derive(Clone, Debug, Default)]
struct Die {
    queue: VecDeque<DieOp>,
    current: Option<DieOp>,
    /// The cells are done and the read's transfer is under way.
    transferring: bool,
    host_rows: u32,
    /// In the list of dies that can take a host row.
    listed: bool,
    cleaner: Cleaner,
}

/// A program under way, with the reads it waits for if it is a copy.
#[derive(Clone, Debug, Default)]
struct Job {
    reads_left: u32,
    die: u32,
    row: u32,
    cause: Option<Cause>,
    plan: CopyPlan,
    tags: Vec<u32>,
    /// Bytes of the host's units, one each, or none at all.
    payloads: Vec<Box<[u8]>>,
}

/// Flash, layer and time together.
#[derive(Debug)]
pub struct Engine {
    nand: Nand,
    ftl: PageMap,
    timing: Timing,
    geometry: Geometry,
    events: EventQueue,
    dies: Vec<Die>,
    /// When each channel is free again.
    channels: Vec<SimTime>,
    /// Dies that may take a host row, least recently used first.
    ready: VecDeque<u32>,
    jobs: Slab<Job>,
    counts: FlashCounts,
    operations: u64,
    /// Rows programmed and blocks erased on the device before this engine began.
    before: (u64, u64),
    /// Dies that should clean and have no victim worth it.
    stuck: u32,
}

impl Engine {
    /// An idle engine.
    #[must_use]
    pub fn new(nand: Nand, ftl: PageMap, timing: Timing) -> Self {
        let geometry = nand.geometry().clone();
        let mut engine = Self {
            dies: vec![Die { listed: true, ..Die::default() }; geometry.dies() as usize],
            channels: vec![SimTime::ZERO; geometry.channels as usize],
            ready: (0..geometry.dies()).collect(),
            events: EventQueue::new(),
            jobs: Slab::new(),
            counts: FlashCounts::default(),
            operations: 0,
            before: (nand.rows_programmed_total(), nand.erases_total()),
            stuck: 0,
            nand,
            ftl,
            timing,
            geometry,
        };
        // A drive that starts below the low watermark (after recovery) cleans at once.
        for die in 0..engine.geometry.dies() {
            engine.clean(DieId(die), SimTime::ZERO);
        }
        engine
    }

    /// The flash.
    #[must_use]
    pub fn nand(&self) -> &Nand {
        &self.nand
    }

    /// The layer.
    #[must_use]
    pub fn ftl(&self) -> &PageMap {
        &self.ftl
    }

    /// The layer, for trims and lookups that change its state.
    pub fn ftl_mut(&mut self) -> &mut PageMap {
        &mut self.ftl
    }

    /// Operations by cause since the engine was made.
    #[must_use]
    pub fn counts(&self) -> &FlashCounts {
        &self.counts
    }

    /// Flash operations begun so far: where a harness may cut the power.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// Power is gone: what had begun and not ended is torn, what was queued is lost.
    #[must_use]
    pub fn power_cut(self) -> Nand {
        self.nand
    }

    /// Asks for `run`; [`Done::Read`] comes with `tag`.
    pub fn read(&mut self, run: ReadRun, cause: Cause, tag: u32, now: SimTime) {
        let die = self.geometry.die_of(self.geometry.block_of(run.row));
        self.enqueue(die, DieOp::HostRead { tag, run, cause }, now);
    }

    /// A die that can take a row of host data now, in turn; `None` if all are busy
    /// enough, or must clean first.
    pub fn writable_die(&mut self) -> Option<DieId> {
        for _ in 0..self.ready.len() {
            let die = self.ready.pop_front().expect("as many as counted");
            if !self.ftl.host_may_write(DieId(die)) {
                // Comes back when an erase has made room.
                self.dies[die as usize].listed = false;
            } else if !self.ftl.balanced(DieId(die)) {
                self.ready.push_back(die);
            } else {
                self.ready.push_front(die);
                return Some(DieId(die));
            }
        }
        None
    }

    /// Programs `units` (at most a row) as the next host row of `die`, which
    /// [`Engine::writable_die`] has just returned. Each is announced to the layer here
    /// and comes back as [`Done::Wrote`].
    pub fn write(&mut self, die: DieId, units: &[HostUnit], now: SimTime) {
        self.write_bytes(die, units, Vec::new(), now);
    }

    /// As [`Engine::write`], with the bytes of every unit, as they are now.
    pub fn write_bytes(
        &mut self,
        die: DieId,
        units: &[HostUnit],
        payloads: Vec<Box<[u8]>>,
        now: SimTime,
    ) {
        assert!(payloads.is_empty() || payloads.len() == units.len(), "bytes for some units only");
        let front = self.ready.pop_front();
        assert!(front == Some(die.0), "a row for a die that was not offered");
        let row = self.ftl.reserve_host(die);
        let place = self.jobs.take();
        let job = &mut self.jobs[place];
        job.die = die.0;
        job.row = row.0;
        job.cause = Some(Cause::Host);
        job.plan.units.clear();
        job.tags.clear();
        job.payloads = payloads;
        for unit in units {
            if unit.write.lpn != UnitWrite::TOMBSTONE {
                self.ftl.write_begin(unit.write.lpn);
            }
            job.plan.units.push(unit.write);
            job.tags.push(unit.tag);
        }
        let state = &mut self.dies[die.0 as usize];
        state.host_rows += 1;
        state.listed = state.host_rows < HOST_ROWS_MAX;
        if state.listed {
            self.ready.push_back(die.0);
        }
        self.enqueue(die, DieOp::Program { job: place }, now);
        self.clean(die, now);
    }

    /// When the next operation phase ends.
    #[must_use]
    pub fn next_event(&self) -> Option<SimTime> {
        self.events.peek()
    }

    /// Whether no operation runs or waits.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.events.is_empty()
    }

    /// Lets the earliest operation phase end; adds what the caller waits for to `done`.
    /// Returns the time of the event.
    ///
    /// # Panics
    /// If there is none.
    pub fn step(&mut self, done: &mut Vec<Done>) -> SimTime {
        let (now, index) = self.events.pop().expect("an event to step to");
        let die = DieId(index);
        let state = &mut self.dies[index as usize];
        let op = state.current.expect("an event of a die that does something");
        match op {
            DieOp::HostRead { run, .. } | DieOp::CopyRead { run, .. } if !state.transferring => {
                state.transferring = true;
                let amount = prism_base::Bytes(u64::from(run.units) * self.geometry.unit.0);
                let end = self.occupy_channel(die, amount, now);
                self.events.push(end, index);
                return now;
            }
            _ => {}
        }
        let state = &mut self.dies[index as usize];
        state.current = None;
        state.transferring = false;
        match op {
            DieOp::HostRead { tag, .. } => done.push(Done::Read { tag }),
            DieOp::CopyRead { job, .. } => self.copy_read_done(job),
            DieOp::Program { job } => self.program_done(job, done, now),
            DieOp::Erase { block } => self.erase_done(die, block, now),
        }
        self.start_next(die, now);
        now
    }

    fn enqueue(&mut self, die: DieId, op: DieOp, now: SimTime) {
        self.dies[die.0 as usize].queue.push_back(op);
        self.start_next(die, now);
    }

    fn start_next(&mut self, die: DieId, now: SimTime) {
        let state = &mut self.dies[die.0 as usize];
        if state.current.is_some() {
            return;
        }
        let Some(op) = state.queue.pop_front() else { return };
        state.current = Some(op);
        self.operations += 1;
        let end = match op {
            DieOp::HostRead { run, cause, .. } => self.begin_read(run, cause, now),
            DieOp::CopyRead { run, .. } => self.begin_read(run, Cause::Gc, now),
            DieOp::Program { job } => self.begin_program(die, job, now),
            DieOp::Erase { block } => {
                self.nand.erase_begin(block).expect("a victim is on the device");
                now + self.timing.t_erase
            }
        };
        self.events.push(end, die.0);
    }

    fn begin_read(&mut self, run: ReadRun, cause: Cause, now: SimTime) -> SimTime {
        let first = self.geometry.first_unit(run.row);
        self.nand.check_read(first).expect("the map points to readable rows only");
        self.counts.reads[cause] += u64::from(run.pages);
        now + self.timing.t_read
    }

    fn begin_program(&mut self, die: DieId, place: u32, now: SimTime) -> SimTime {
        let job = &self.jobs[place];
        let cause = job.cause.expect("a job with a cause");
        let row = RowId(job.row);
        content::program_begin(&mut self.nand, &self.ftl, row, &job.plan.units, &job.payloads)
            .expect("a reserved row is the next of its block");
        self.counts.count_program(&self.geometry, cause, &job.plan.units);
        let row_bytes = u64::from(self.geometry.units_per_row()) * self.geometry.unit.0;
        self.occupy_channel(die, prism_base::Bytes(row_bytes), now) + self.timing.t_program
    }

    /// Reserves the channel of `die` as soon as it is free; returns when the transfer
    /// ends.
    fn occupy_channel(&mut self, die: DieId, amount: prism_base::Bytes, now: SimTime) -> SimTime {
        let channel = &mut self.channels[self.geometry.channel_of(die) as usize];
        *channel = now.max(*channel) + self.timing.transfer(amount);
        *channel
    }

    fn copy_read_done(&mut self, place: u32) {
        let job = &mut self.jobs[place];
        job.reads_left -= 1;
        if job.reads_left > 0 {
            return;
        }
        let die = DieId(job.die);
        let row = self.ftl.reserve_copy(die);
        self.jobs[place].row = row.0;
        // The die is about to start its next operation; this one queues behind.
        self.dies[die.0 as usize].queue.push_back(DieOp::Program { job: place });
    }

    fn program_done(&mut self, place: u32, done: &mut Vec<Done>, now: SimTime) {
        let job = &self.jobs[place];
        let row = RowId(job.row);
        let die = DieId(job.die);
        self.nand.program_end(row);
        let first = self.geometry.first_unit(row).0;
        for (i, write) in job.plan.units.iter().enumerate() {
            self.ftl.commit(write, Pun(first + i as u32));
        }
        self.ftl.row_done(row);
        let is_copy = job.cause == Some(Cause::Gc);
        if !is_copy {
            done.extend(job.tags.iter().map(|&tag| Done::Wrote { tag }));
        }
        self.jobs.give(place);
        let state = &mut self.dies[die.0 as usize];
        if is_copy {
            state.cleaner.copies -= 1;
        } else {
            state.host_rows -= 1;
            self.list(die);
        }
        self.clean(die, now);
        self.look_for_garbage(now);
    }

    /// Garbage has come into being somewhere: dies that had to clean and found nothing
    /// to gain look again.
    pub fn look_for_garbage(&mut self, now: SimTime) {
        if self.stuck == 0 {
            return;
        }
        for die in 0..self.dies.len() as u32 {
            if self.dies[die as usize].cleaner.stuck {
                self.clean(DieId(die), now);
            }
        }
    }

    fn erase_done(&mut self, die: DieId, block: BlockId, now: SimTime) {
        self.nand.erase_end(block);
        self.counts.erases[Cause::Gc] += u64::from(self.geometry.planes_ganged);
        self.ftl.erased(block);
        let cleaner = &mut self.dies[die.0 as usize].cleaner;
        cleaner.victim = None;
        cleaner.erasing = false;
        self.list(die);
        self.clean(die, now);
    }

    /// Offers `die` to host rows again, if it has room for one.
    fn list(&mut self, die: DieId) {
        let state = &mut self.dies[die.0 as usize];
        if !state.listed && state.host_rows < HOST_ROWS_MAX {
            state.listed = true;
            self.ready.push_back(die.0);
        }
    }

    /// Goes on with the cleaning of `die`, or begins it if it is time.
    fn clean(&mut self, die: DieId, now: SimTime) {
        loop {
            let cleaner = &mut self.dies[die.0 as usize].cleaner;
            if cleaner.erasing || cleaner.copies == COPIES_MAX {
                return;
            }
            cleaner.active |= self.ftl.below_low(die);
            let Some(victim) = cleaner.victim else {
                cleaner.active &= !self.ftl.reached_high(die);
                if cleaner.active {
                    cleaner.victim = self.ftl.pick_victim(die);
                    cleaner.cursor = 0;
                }
                let stuck = cleaner.active && cleaner.victim.is_none();
                self.stuck += u32::from(stuck);
                self.stuck -= u32::from(std::mem::replace(&mut cleaner.stuck, stuck));
                if cleaner.victim.is_none() {
                    return;
                }
                continue;
            };
            let place = self.jobs.take();
            let job = &mut self.jobs[place];
            self.ftl.gather(victim, &mut cleaner.cursor, &mut job.plan);
            if job.plan.units.is_empty() {
                self.jobs.give(place);
                if cleaner.copies == 0 {
                    cleaner.erasing = true;
                    self.enqueue(die, DieOp::Erase { block: victim }, now);
                }
                return;
            }
            cleaner.copies += 1;
            job.reads_left = job.plan.reads.len() as u32;
            job.payloads.clear();
            job.die = die.0;
            job.cause = Some(Cause::Gc);
            for i in 0..self.jobs[place].plan.reads.len() {
                let run = self.jobs[place].plan.reads[i];
                self.enqueue(die, DieOp::CopyRead { job: place, run }, now);
            }
        }
    }

    /// The laws that hold at any instant (law 2).
    ///
    /// # Panics
    /// If one is broken.
    pub fn assert_conserved(&self) {
        self.ftl.assert_conserved();
        let pages = self.counts.programs.total();
        let units = self.counts.units.total();
        assert_eq!(
            units,
            pages * u64::from(self.geometry.units_per_page()),
            "units programmed must be pages programmed, over all causes"
        );
        let planes = u64::from(self.geometry.planes_ganged);
        let rows = self.nand.rows_programmed_total() - self.before.0;
        assert_eq!(pages, rows * planes, "pages by cause must be what the device programmed");
        let erased = (self.nand.erases_total() - self.before.1) * planes;
        assert_eq!(self.counts.erases.total(), erased, "erases by cause must be the device's");
    }
}
