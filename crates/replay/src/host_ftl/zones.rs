//! The zones of a drive as the device of a controller: a block is a zone, and a program unit one
//! mapping unit.
//!
//! Reads and programs of the controller that follow each other in a zone become one command. A zone
//! is reset when no read of it is in flight.

use std::collections::{BTreeSet, VecDeque};

use prism_base::{Bytes, SimTime, Slab};
use prism_engine::FlashCounts;
use prism_engine::device::{Ended, FlashDevice, Jobs, Load};
use prism_ftl::{FlashScan, ReadRecovery, ReadRun, ScannedUnit};
use prism_nand::{
    BlockId, Cause, DieId, Geometry, Layout, ProgramUnitId, Pun, Status as FlashStatus, UnitTag,
};
use prism_ssd::{Completion, Drive, HostOp, Request, Status, SubmitError, ZoneShape};

/// Copies in flight, which the host buffers in memory.
const COPIES: u32 = 256;

/// What a command to the drive is for.
#[derive(Debug, Default)]
enum Command {
    #[default]
    None,
    /// A part of the request in a slot.
    Part(u32),
    /// A run of reads or programs of jobs.
    Run(usize, Vec<u32>),
    Reset(BlockId, u32),
}

/// Jobs whose units follow each other in a zone, and their command, which is not submitted yet.
#[derive(Debug)]
struct Run {
    request: Request,
    jobs: Vec<u32>,
}

/// Runs of reads for copies, of programs for requests and of programs of copies.
const COPY_READS: usize = 0;
const HOST_PROGRAMS: usize = 1;
const COPIED: usize = 2;

/// A zoned drive as flash.
#[derive(Debug)]
pub(super) struct ZoneFlash {
    pub(super) drive: Drive,
    geometry: Geometry,
    layout: Layout,
    logical_units: u32,
    /// Bytes from the start of one zone to the next.
    zone_size: u64,
    commands: Slab<Command>,
    runs: [Option<Run>; 3],
    /// Commands of runs in flight.
    in_flight: [u32; 3],
    /// Ends of copies. The controller learns of them when no other command for such a run is in
    /// flight, so that what follows for them makes long runs again.
    held: [Vec<Ended>; 3],
    /// The request for which the next programs are made: its flags are those of their command. None
    /// while failed programs are repeated, which the drive may have completed long after.
    pub(super) writing_for: Option<Request>,
    /// Commands for which the drive's queue has no space.
    outbox: VecDeque<Request>,
    /// Completions of commands that the drive refused because their zone has failed.
    refused: VecDeque<Completion>,
    done: Vec<Completion>,
    ended: VecDeque<Ended>,
    /// Completed parts of requests, by slot.
    pub(super) parts: Vec<(u32, Completion)>,
    /// Reads in flight, by zone.
    readers: Vec<u32>,
    /// Zones to be reset when no read of them is in flight.
    resets: Vec<(BlockId, u32)>,
    /// Physical units whose content was lost.
    lost: BTreeSet<u32>,
    counts: FlashCounts,
    load: Load,
}

/// The first `zones` zones as blocks of one die.
pub(super) fn geometry(shape: &ZoneShape, zones: u32) -> Geometry {
    Geometry {
        blocks_per_plane: zones,
        pages_per_block: (shape.capacity / shape.block) as u32,
        page: Bytes(shape.block),
        unit: Bytes(shape.block),
        ..Geometry::SMALLEST
    }
}

impl ZoneFlash {
    pub(super) fn new(drive: Drive, geometry: Geometry, zone_size: u64, units: u32) -> Self {
        Self {
            drive,
            layout: Layout::new(&geometry),
            logical_units: units,
            zone_size,
            commands: Slab::new(),
            runs: [const { None }; 3],
            in_flight: [0; 3],
            held: [const { Vec::new() }; 3],
            writing_for: None,
            outbox: VecDeque::new(),
            refused: VecDeque::new(),
            done: Vec::new(),
            ended: VecDeque::new(),
            parts: Vec::new(),
            readers: vec![0; geometry.blocks_per_plane as usize],
            resets: Vec::new(),
            lost: BTreeSet::new(),
            counts: FlashCounts::default(),
            load: Load::default(),
            geometry,
        }
    }

    fn unit(&self) -> u64 {
        self.geometry.unit.0
    }

    /// The byte offset of `pun` on the drive.
    pub(super) fn offset_of(&self, pun: Pun) -> u64 {
        let zone = self.layout.block_of_unit(pun).0;
        let unit = pun.0 - zone * self.layout.units_per_block();
        u64::from(zone) * self.zone_size + u64::from(unit) * self.unit()
    }

    /// Whether `pun` is the first unit of its zone.
    pub(super) fn begins_zone(&self, pun: Pun) -> bool {
        pun.0.is_multiple_of(self.layout.units_per_block())
    }

    /// Whether no command is in flight or queued.
    pub(super) fn is_at_rest(&self) -> bool {
        self.commands.in_use() == 0 && self.drive.in_flight() == 0
    }

    /// Submits a part of the request in `slot`, which ends in `parts`.
    pub(super) fn submit_part(&mut self, slot: u32, request: Request) {
        self.send(request, Command::Part(slot));
    }

    fn zone_of(&self, request: &Request) -> usize {
        (request.offset / self.zone_size) as usize
    }

    /// Submits a command to the drive, in order.
    fn send(&mut self, request: Request, command: Command) {
        if request.op == HostOp::Read {
            let zone = self.zone_of(&request);
            self.readers[zone] += 1;
        }
        let number = self.commands.take();
        self.commands[number] = command;
        self.outbox.push_back(Request { tag: u64::from(number), ..request });
        self.send_waiting();
    }

    fn send_waiting(&mut self) {
        while self.drive.can_accept(0) {
            let Some(request) = self.outbox.pop_front() else { break };
            let now = self.drive.now();
            match self.drive.submit(request, now) {
                Ok(()) => {}
                Err(SubmitError::ZoneState { .. }) => {
                    self.refused.push_back(Completion::refused(&request, now));
                }
                Err(error) => panic!("the host FTL keeps the rules of zones: {error}"),
            }
        }
    }

    /// Adds the unit at `pun` for `job` to the run `which`; submits what it does not continue.
    fn add(&mut self, which: usize, pun: Pun, job: u32) {
        let (offset, len) = (self.offset_of(pun), self.unit());
        let op = if which == COPY_READS { HostOp::Read } else { HostOp::Write };
        let mut request = Request::new(op, offset, len, 0);
        if which == HOST_PROGRAMS
            && let Some(Request { fua, preflush, urgent, .. }) = self.writing_for
        {
            request = Request { fua, preflush, urgent, ..request };
        }
        let begins_zone = self.begins_zone(pun);
        if let Some(run) = &mut self.runs[which]
            && !begins_zone
        {
            let offset = run.request.offset + run.request.len;
            if request == (Request { offset, len, ..run.request }) {
                run.request.len += len;
                run.jobs.push(job);
                return;
            }
        }
        self.submit_run(which);
        self.runs[which] = Some(Run { request, jobs: vec![job] });
    }

    fn submit_run(&mut self, which: usize) {
        let Some(Run { request, jobs }) = self.runs[which].take() else { return };
        self.in_flight[which] += 1;
        self.send(request, Command::Run(which, jobs));
    }

    /// Submits all runs: the controller has nothing to add to them.
    pub(super) fn submit_runs(&mut self) {
        (0..self.runs.len()).for_each(|which| self.submit_run(which));
    }

    /// A command has completed.
    fn complete(&mut self, done: &Completion, jobs: &mut Jobs) {
        let number = done.tag as u32;
        let command = std::mem::take(&mut self.commands[number]);
        self.commands.give(number);
        if done.op == HostOp::Read {
            self.readers[(done.offset / self.zone_size) as usize] -= 1;
        }
        let passed = done.status == Status::Done;
        let status = if passed { FlashStatus::Passed } else { FlashStatus::Failed };
        match command {
            Command::None => unreachable!("every command is for something"),
            Command::Part(slot) => self.parts.push((slot, *done)),
            Command::Run(which, of) => {
                self.in_flight[which] -= 1;
                if which == COPY_READS {
                    self.end_copy_reads(of, done, jobs);
                } else {
                    let ended = of.into_iter().map(|job| Ended::Program { job, status });
                    self.held[which].extend(ended);
                }
                if which == HOST_PROGRAMS || self.in_flight[which] == 0 {
                    self.ended.extend(self.held[which].drain(..));
                }
            }
            Command::Reset(block, die_group) => {
                if passed {
                    let first = block.0 * self.layout.units_per_block();
                    let units = first..first + self.layout.units_per_block();
                    self.lost.retain(|unit| !units.contains(unit));
                }
                self.ended.push_back(Ended::Erase { block, die_group, status });
            }
        }
    }

    /// The reads of copies have ended. If part of them has failed, the units one by one show which.
    fn end_copy_reads(&mut self, of: Vec<u32>, done: &Completion, jobs: &mut Jobs) {
        let passed = done.status == Status::Done;
        let again = !passed && of.len() > 1;
        for (number, job) in (0..).zip(of) {
            if again {
                let offset = done.offset + number * self.unit();
                let read = Request::new(HostOp::Read, offset, self.unit(), 0);
                self.in_flight[COPY_READS] += 1;
                self.send(read, Command::Run(COPY_READS, vec![job]));
                continue;
            }
            if !passed && jobs[job].lost.is_empty() {
                jobs[job].lost.push(0);
                self.counts.faults.lost_units += 1;
            }
            self.held[COPY_READS].push(Ended::CopyRead { job });
        }
    }

    /// Resets the zones that are not read any more.
    fn reset_zones(&mut self) {
        for (block, die_group) in std::mem::take(&mut self.resets) {
            if self.readers[block.0 as usize] > 0 {
                self.resets.push((block, die_group));
                continue;
            }
            let start = u64::from(block.0) * self.zone_size;
            let reset = Request::new(HostOp::ZoneReset, start, 0, 0);
            self.send(reset, Command::Reset(block, die_group));
        }
    }
}

impl FlashDevice for ZoneFlash {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn uses_payloads(&self) -> bool {
        self.may_fail()
    }

    fn counts(&self) -> &FlashCounts {
        &self.counts
    }

    fn counts_mut(&mut self) -> &mut FlashCounts {
        &mut self.counts
    }

    fn load(&self, _die: DieId) -> &Load {
        &self.load
    }

    fn load_mut(&mut self, _die: DieId) -> &mut Load {
        &mut self.load
    }

    fn read(&mut self, _: &mut Jobs, _: &ReadRun, _: Cause, _: u32, _: bool, _: SimTime) {
        unreachable!("requests read bytes, not units, without the controller")
    }

    fn read_for_copy(&mut self, jobs: &mut Jobs, job: u32, run: &ReadRun, _now: SimTime) {
        self.counts.reads[jobs[job].cause.expect("a job with a cause")] += 1;
        self.add(COPY_READS, self.layout.first_unit(run.program_unit), job);
    }

    fn program(&mut self, jobs: &mut Jobs, job: u32, _now: SimTime) {
        let of = &jobs[job];
        let cause = of.cause.expect("a job with a cause");
        let (geometry, layout, logical) = (&self.geometry, &self.layout, self.logical_units);
        self.counts.count_program(geometry, layout, cause, logical, &of.units);
        let which = if cause == Cause::Host { HOST_PROGRAMS } else { COPIED };
        self.add(which, self.layout.first_unit(ProgramUnitId(of.program_unit)), job);
    }

    fn erase(
        &mut self,
        _jobs: &mut Jobs,
        block: BlockId,
        _cause: Cause,
        die_group: u32,
        _now: SimTime,
    ) -> u32 {
        self.resets.push((block, die_group));
        self.reset_zones();
        1
    }

    fn end_next(&mut self, jobs: &mut Jobs) -> (SimTime, Option<Ended>) {
        if self.ended.is_empty() {
            if let Some(refused) = self.refused.pop_front() {
                self.complete(&refused, jobs);
            } else {
                let mut done = std::mem::take(&mut self.done);
                self.drive.step(&mut done);
                done.drain(..).for_each(|completion| self.complete(&completion, jobs));
                self.done = done;
            }
            self.reset_zones();
            self.send_waiting();
        }
        (self.drive.now(), self.ended.pop_front())
    }

    fn go_on(&mut self, _jobs: &mut Jobs, _now: SimTime) -> Option<Ended> {
        self.ended.pop_front()
    }

    fn end_turn(&mut self) {
        self.submit_runs();
    }

    fn next_at(&self) -> SimTime {
        if self.ended.is_empty() && self.refused.is_empty() {
            self.drive.next_event().unwrap_or(SimTime::NEVER)
        } else {
            self.drive.now()
        }
    }

    /// The queue of the drive is the limit.
    fn program_units_max(&self) -> u32 {
        u32::MAX
    }

    fn copies_max(&self) -> u32 {
        COPIES
    }

    fn may_fail(&self) -> bool {
        self.drive.device().faults.is_some()
    }

    fn sample_read_errors(&mut self, at: Pun, _now: SimTime, _: &mut ReadRecovery) -> bool {
        // Other units are found to be lost when they have been read.
        self.is_marked_lost(at)
    }

    fn is_marked_lost(&self, at: Pun) -> bool {
        self.lost.contains(&at.0)
    }

    fn mark_lost(&mut self, at: Pun) {
        self.lost.insert(at.0);
    }
}

/// What zones hold when the host FTL begins: logical units in order.
pub(super) struct Content {
    pub(super) geometry: Geometry,
    pub(super) logical_units: u32,
    /// Of each zone the units written so far, the logical unit of the first, and whether it has
    /// failed.
    pub(super) zones: Vec<(u32, u32, bool)>,
}

impl FlashScan for Content {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn erases(&self, _block: BlockId) -> u32 {
        0
    }

    fn is_erased(&self, block: BlockId) -> bool {
        self.zones[block.0 as usize].0 == 0
    }

    fn is_unstable(&self, _block: BlockId) -> bool {
        false
    }

    fn is_bad(&self, block: BlockId) -> bool {
        self.zones[block.0 as usize].2
    }

    fn program_unit(&mut self, program_unit: ProgramUnitId, found: &mut Vec<ScannedUnit>) -> u64 {
        let units = self.geometry.units_per_block();
        let (zone, unit) = (program_unit.0 / units, program_unit.0 % units);
        let (written, first, _) = self.zones[zone as usize];
        let lpn = first + unit;
        if unit < written && lpn < self.logical_units {
            let tag = UnitTag::Data(lpn);
            found.push(ScannedUnit { place: 0, tag, version: 1, trims: Vec::new() });
        }
        u64::from(program_unit.0) + 1
    }
}
