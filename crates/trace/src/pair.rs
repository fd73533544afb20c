//! Pairs the events of a request: queued, issued, completed.
//!
//! Events arrive in the order of time. Each issue is a request. The bios that were queued
//! before it show which process caused it and when; the completion shows when it was done.
//! Records are returned in the order of their issue, each as soon as it and all before it are
//! complete or have waited long enough. Every table is bounded, for any trace.

use std::collections::{HashSet, VecDeque};

use rustc_hash::FxBuildHasher;

use crate::event::CommandId;
use crate::event::{
    BAD_EVENT, COUNTED_AT_BLOCK_LAYER, Event, EventKind, NO_DATA, NO_ISSUE, NO_RANGES, SECTOR,
    Target,
};
use crate::flushes::FlushWaiters;
use crate::names::{DataTags, Origin};
use crate::options::CountFrom;
use crate::record::{Flags, Op, OptTime, Record};
use crate::skips::{SkipReason, Skips};
use crate::symbols::Symbol;
use crate::waiting::{Key, Waiting};

/// How long a request waits for its completion, and a bio for its issue. The block layer itself
/// aborts a command after 30 s; an event that takes longer was lost by the tracer.
const WAIT_NS: i64 = 30_000_000_000;

/// The most requests that are held, completed or not: with a lost completion at the front this
/// is half a second of a million requests per second, and about 100 MB with their keys.
const HELD_MAX: usize = 1 << 19;

/// The most bios that wait for their issue: enough for the deepest queues of the block layer,
/// with each request merged from hundreds of pages, and about 40 MB.
const BIOS_MAX: usize = 1 << 19;

/// The most completions that are kept for an issue with the same timestamp.
const EARLY_MAX: usize = 1024;

/// The most NVMe commands without a request that are remembered until they complete: as many as
/// the deepest queue has.
const NO_REQUESTS_MAX: usize = 1 << 16;

/// The most phases that are listed.
const PHASES_MAX: usize = 1 << 16;

/// The result of pairing. Times are since the first record.
#[derive(Debug)]
pub(crate) struct Totals {
    pub records: u64,
    pub queue_events: u64,
    pub issue_events: u64,
    pub commands: u64,
    pub completed: u64,
    pub queued: u64,
    pub unpaired: u64,
    /// Name and start, in order.
    pub phases: Vec<(Symbol, i64)>,
    pub end_ns: i64,
}

/// A queued bio.
#[derive(Clone, Copy, Debug)]
struct Bio {
    queue_ns: i64,
    sectors: u64,
    origin: Origin,
    /// It was remapped from a stacked device, and its own queue event has not arrived yet.
    remapped: bool,
}

/// A request whose record is not returned yet.
#[derive(Debug)]
struct PendingRequest {
    record: Record,
    left_sectors: u64,
    state: State,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    /// Waits for its completion under this number.
    Waits(u32),
    Done,
    /// Its completion was lost, because its number is in use again.
    Lost,
    /// Went back to the queue and will be issued again.
    Requeued,
}

/// Turns events into records.
#[derive(Debug)]
pub(crate) struct Pairing {
    count_from: CountFrom,
    bios: Waiting<Bio>,
    flushes: FlushWaiters,
    inflight: Waiting<u64>,
    held: VecDeque<PendingRequest>,
    /// Sequence number of the first held request.
    first_held: u64,
    early: Vec<(Event, Target)>,
    /// NVMe commands in flight that are not requests.
    no_requests: HashSet<CommandId, FxBuildHasher>,
    phase: Symbol,
    origin_ns: Option<i64>,
    last_ns: i64,
    totals: Totals,
}

impl Pairing {
    pub fn new(count_from: CountFrom) -> Self {
        Self {
            count_from,
            bios: Waiting::new(BIOS_MAX),
            flushes: FlushWaiters::default(),
            // One more than can be held, so that this table never drops an entry itself.
            inflight: Waiting::new(HELD_MAX + 1),
            held: VecDeque::new(),
            first_held: 0,
            early: Vec::new(),
            no_requests: HashSet::default(),
            phase: Symbol::NONE,
            origin_ns: None,
            last_ns: i64::MIN,
            totals: Totals {
                records: 0,
                queue_events: 0,
                issue_events: 0,
                commands: 0,
                completed: 0,
                queued: 0,
                unpaired: 0,
                phases: Vec::new(),
                end_ns: 0,
            },
        }
    }

    /// Takes the next event; events arrive in the order of time.
    pub fn event(&mut self, event: Event, skips: &mut Skips, out: &mut Vec<Record>) {
        if event.time_ns > self.last_ns {
            self.last_ns = event.time_ns;
            self.give_up_early(skips);
        }
        let now = event.time_ns;
        if self.block_sectors().is_some() && event.kind.is_of_block_layer() {
            return;
        }
        match event.kind {
            EventKind::Queue(target, origin) => self.queue(target, origin, now, out),
            EventKind::Start(target, origin) => self.start(target, origin, now),
            EventKind::Issue(target, origin) => {
                self.totals.issue_events += 1;
                if self.count_from != CountFrom::Issue {
                    return;
                }
                match target.op {
                    Some(op) => self.issue(target, op, origin, now, out),
                    None => skips.add(NO_DATA, event.line),
                }
            }
            EventKind::Command(target, origin, id) => {
                self.totals.commands += 1;
                if let Err(reason) = self.command(target, origin, id, now, out) {
                    skips.add(reason, event.line);
                }
            }
            EventKind::CommandDone(id) => {
                if let Err(reason) = self.command_done(id, now) {
                    skips.add(reason, event.line);
                }
                self.leave(now, HELD_MAX, out);
            }
            EventKind::BioComplete(_) if self.count_from == CountFrom::Issue => {}
            EventKind::Complete(target) | EventKind::BioComplete(target) => {
                if !self.complete(target, now) {
                    self.keep_early(event, target, skips);
                }
                self.leave(now, HELD_MAX, out);
            }
            EventKind::Requeue(target) => self.requeue(target),
            EventKind::Remap(target, device, sector) => self.remap(target, (device, sector)),
            EventKind::Split(target, second) => self.split(target, second),
            EventKind::Phase(name) => {
                self.phase = name;
                if self.totals.phases.len() < PHASES_MAX {
                    self.totals.phases.push((name, now));
                }
            }
        }
    }

    pub fn count_from(&self) -> CountFrom {
        self.count_from
    }

    /// Returns all remaining records.
    pub fn finish(&mut self, skips: &mut Skips, out: &mut Vec<Record>) -> Totals {
        self.give_up_early(skips);
        self.leave(i64::MAX, 0, out);
        let origin_ns = self.origin_ns.unwrap_or(self.last_ns);
        let totals = &mut self.totals;
        for (_, start_ns) in &mut totals.phases {
            *start_ns = start_ns.saturating_sub(origin_ns);
        }
        totals.end_ns = self.last_ns.saturating_sub(origin_ns);
        if totals.completed == 0 {
            totals.unpaired = 0;
        }
        Totals { phases: std::mem::take(&mut totals.phases), ..*totals }
    }

    fn queue(&mut self, target: Target, origin: Origin, now: i64, out: &mut Vec<Record>) {
        let Some(op) = target.op else { return };
        self.totals.queue_events += 1;
        if self.count_from == CountFrom::Queue {
            let key = Key::new(target.device, op, target.sector);
            self.hold(target, op, key, (Some(now), origin), now, out);
            return;
        }
        if target.flags.has(Flags::PREFLUSH) || target.flags.has(Flags::FUA) || op == Op::Flush {
            self.flushes.queue(target.device, target.sector, target.flags, now, origin);
        }
        if op == Op::Flush {
            return;
        }
        while let Some((id, bio)) = self.bios.oldest()
            && now.saturating_sub(bio.queue_ns) > WAIT_NS
        {
            self.bios.remove(id);
        }
        let key = Key::new(target.device, op, target.sector);
        match self.bios.first_mut(key) {
            Some(bio) if bio.remapped => bio.remapped = false,
            _ => {
                let bio = Bio { queue_ns: now, sectors: target.sectors, origin, remapped: false };
                self.bios.insert(key, bio);
            }
        }
    }

    /// The queue event of this request may not have been recorded; then this event, which the
    /// same process causes a moment later, replaces it.
    fn start(&mut self, target: Target, origin: Origin, now: i64) {
        let Some(op) = target.op else { return };
        let key = Key::new(target.device, op, target.sector);
        if op != Op::Flush && self.bios.first_mut(key).is_none() {
            let bio = Bio { queue_ns: now, sectors: target.sectors, origin, remapped: false };
            self.bios.insert(key, bio);
        }
    }

    fn issue(&mut self, target: Target, op: Op, origin: Origin, now: i64, out: &mut Vec<Record>) {
        let wanted = if op == Op::Flush {
            self.flushes.issue(target.device)
        } else {
            let bio = self.merged_bios(target.device, op, target.sector, target.sectors);
            if target.flags.has(Flags::FUA) {
                // The device executes FUA itself: no flush will follow.
                self.flushes.end(target.device, target.sector);
            }
            bio.map(|bio| (bio.queue_ns, bio.origin))
        };
        let wanted = wanted.filter(|&(queue_ns, _)| now.saturating_sub(queue_ns) <= WAIT_NS);
        let (queue_ns, origin) = match wanted {
            // The queue event knows the process best, and the issue event the data.
            Some((queue_ns, queued)) if origin.tags == DataTags::NONE => (Some(queue_ns), queued),
            Some((queue_ns, queued)) => (Some(queue_ns), Origin { tags: origin.tags, ..queued }),
            None => (None, origin),
        };
        let key = Key::new(target.device, op, target.sector);
        self.hold(target, op, key, (queue_ns, origin), now, out);
    }

    /// Removes the bios from which a request over these sectors was merged, and returns the one
    /// that was queued first. The part of a bio beyond the request stays queued.
    fn merged_bios(
        &mut self,
        device: Symbol,
        op: Op,
        mut sector: u64,
        mut sectors: u64,
    ) -> Option<Bio> {
        let mut first: Option<Bio> = None;
        while sectors > 0 {
            let Some(bio) = self.bios.take(Key::new(device, op, sector)) else { break };
            if first.is_none_or(|first| bio.queue_ns < first.queue_ns) {
                first = Some(bio);
            }
            let taken = bio.sectors.min(sectors);
            sector += taken;
            sectors -= taken;
            if bio.sectors > taken {
                let rest = Bio { sectors: bio.sectors - taken, ..bio };
                self.bios.insert(Key::new(device, op, sector), rest);
            }
        }
        first
    }

    fn hold(
        &mut self,
        target: Target,
        op: Op,
        key: Key,
        (queue_ns, origin): (Option<i64>, Origin),
        now: i64,
        out: &mut Vec<Record>,
    ) {
        self.leave(now, HELD_MAX - 1, out);
        let is_flush = op == Op::Flush;
        let (sector, sectors) = if is_flush { (0, 0) } else { (target.sector, target.sectors) };
        let mut record = Record::new(op, now, sector * SECTOR, sectors * SECTOR);
        record.queue = queue_ns.map_or(OptTime::UNKNOWN, OptTime::at);
        record.device = target.device;
        record.phase = self.phase;
        record.pid = origin.pid;
        record.comm = origin.comm;
        record.inode = origin.tags.inode;
        record.file = origin.tags.file;
        record.stream = origin.tags.stream;
        record.hint = origin.tags.hint;
        // The preflush is the request itself.
        record.flags =
            if is_flush { Flags(target.flags.0 & !Flags::PREFLUSH.0) } else { target.flags };
        let number = self.first_held + self.held.len() as u64;
        let id = self.inflight.insert(key, number);
        self.held.push_back(PendingRequest {
            record,
            left_sectors: sectors,
            state: State::Waits(id),
        });
        let early = self.early.iter().position(|(_, early)| {
            early.op.is_some_and(|op| Key::new(early.device, op, early.sector) == key)
        });
        if let Some(place) = early {
            let (_, early) = self.early.swap_remove(place);
            self.complete(early, now);
        }
    }

    /// Sectors of a logical block if NVMe commands are counted.
    fn block_sectors(&self) -> Option<u64> {
        match self.count_from {
            CountFrom::Nvme { block } => Some(block.bytes().0 / SECTOR),
            CountFrom::Issue | CountFrom::Queue => None,
        }
    }

    /// Takes an NVMe command.
    fn command(
        &mut self,
        target: Target,
        origin: Origin,
        id: CommandId,
        now: i64,
        out: &mut Vec<Record>,
    ) -> Result<(), SkipReason> {
        let block = self.block_sectors().ok_or(COUNTED_AT_BLOCK_LAYER)?;
        let key = Key::command(id);
        // The number is used again: the completion of the earlier command was lost.
        if let Some(number) = self.inflight.take(key) {
            self.held[(number - self.first_held) as usize].state = State::Lost;
        }
        let request = match target.op {
            None => Err(NO_DATA),
            Some(Op::Discard) => Err(NO_RANGES),
            Some(op) => Ok(op),
        };
        let (op, target) = match (request, target.scaled(block)) {
            (Ok(op), Some(target)) => (op, target),
            (request, _) => {
                if self.no_requests.len() < NO_REQUESTS_MAX {
                    self.no_requests.insert(id);
                }
                return Err(request.err().unwrap_or(BAD_EVENT));
            }
        };
        self.no_requests.remove(&id);
        self.hold(target, op, key, (None, origin), now, out);
        Ok(())
    }

    /// Records that an NVMe command completed.
    fn command_done(&mut self, id: CommandId, now: i64) -> Result<(), SkipReason> {
        self.block_sectors().ok_or(COUNTED_AT_BLOCK_LAYER)?;
        let Some(number) = self.inflight.take(Key::command(id)) else {
            return if self.no_requests.remove(&id) { Ok(()) } else { Err(NO_ISSUE) };
        };
        let held = &mut self.held[(number - self.first_held) as usize];
        held.record.complete = OptTime::at(now);
        held.state = State::Done;
        self.totals.completed += 1;
        Ok(())
    }

    /// Records that sectors completed; returns `false` if no request waits for them.
    fn complete(&mut self, target: Target, now: i64) -> bool {
        let Some(op) = target.op else {
            // A bio with flushes ends with a completion of no sectors, after the requests made
            // from it have completed.
            self.flushes.end(target.device, target.sector);
            return true;
        };
        let (mut sector, mut sectors) = (target.sector, target.sectors);
        let mut found = false;
        loop {
            let Some(number) = self.inflight.take(Key::new(target.device, op, sector)) else {
                return found;
            };
            found = true;
            let place = (number - self.first_held) as usize;
            let held = &mut self.held[place];
            held.record.complete = OptTime::at(now);
            let done = held.left_sectors.min(sectors);
            held.left_sectors -= done;
            sector += done;
            sectors -= done;
            if held.left_sectors > 0 {
                let id = self.inflight.insert(Key::new(target.device, op, sector), number);
                held.state = State::Waits(id);
                return true;
            }
            held.state = State::Done;
            self.totals.completed += 1;
            if sectors == 0 {
                return true;
            }
        }
    }

    /// A completion printed before the issue of the same timestamp.
    fn keep_early(&mut self, event: Event, target: Target, skips: &mut Skips) {
        if self.early.len() < EARLY_MAX {
            self.early.push((event, target));
        } else {
            skips.add(NO_ISSUE, event.line);
        }
    }

    fn give_up_early(&mut self, skips: &mut Skips) {
        for (event, _) in self.early.drain(..) {
            skips.add(NO_ISSUE, event.line);
        }
    }

    fn requeue(&mut self, target: Target) {
        let Some(op) = target.op else { return };
        let key = Key::new(target.device, op, target.sector);
        let Some(number) = self.inflight.take(key) else { return };
        let held = &mut self.held[(number - self.first_held) as usize];
        let done = held.record.len / SECTOR - held.left_sectors;
        held.state = if done > 0 {
            // The completed part stays a request; the rest is issued as another one.
            held.record.len = done * SECTOR;
            State::Done
        } else {
            State::Requeued
        };
        let Some(queue_ns) = held.record.queue.get() else { return };
        let origin = of_record(&held.record);
        if op == Op::Flush {
            self.flushes.queue(target.device, 0, Flags::PREFLUSH, queue_ns, origin);
        } else {
            let bio = Bio { queue_ns, sectors: target.sectors, origin, remapped: false };
            self.bios.insert(key, bio);
        }
    }

    fn remap(&mut self, target: Target, from: (Symbol, u64)) {
        let Some(op) = target.op else { return };
        let to = (target.device, target.sector);
        if target.flags.has(Flags::PREFLUSH) || target.flags.has(Flags::FUA) {
            self.flushes.remap(from, to);
        }
        if op == Op::Flush {
            return;
        }
        if let Some(bio) = self.merged_bios(from.0, op, from.1, target.sectors) {
            let moved = Bio { sectors: target.sectors, remapped: true, ..bio };
            self.bios.insert(Key::new(to.0, op, to.1), moved);
        }
    }

    /// Splits the queued bio, because the second part may be issued first.
    fn split(&mut self, target: Target, second: u64) {
        let Some(op) = target.op else { return };
        let key = |sector| Key::new(target.device, op, sector);
        let Some(first) = self.bios.first_mut(key(target.sector)) else { return };
        let whole = *first;
        let before = second.saturating_sub(target.sector);
        if before > 0 && before < whole.sectors {
            first.sectors = before;
            self.bios.insert(key(second), Bio { sectors: whole.sectors - before, ..whole });
        }
    }

    /// Returns the first pending requests that are done or have waited long enough, and more
    /// until at most `keep` are left.
    fn leave(&mut self, now: i64, keep: usize, out: &mut Vec<Record>) {
        while let Some(first) = self.held.front() {
            let expired = now.saturating_sub(first.record.issue_ns) > WAIT_NS;
            if let State::Waits(id) = first.state {
                if !expired && self.held.len() <= keep {
                    return;
                }
                self.inflight.remove(id);
            }
            let unpaired = matches!(first.state, State::Waits(_) | State::Lost);
            self.totals.unpaired += u64::from(unpaired);
            let Some(PendingRequest { record, state, .. }) = self.held.pop_front() else { return };
            self.first_held += 1;
            if state == State::Requeued {
                continue;
            }
            let origin_ns = *self.origin_ns.get_or_insert(record.issue_ns);
            self.totals.records += 1;
            self.totals.queued += u64::from(record.queue.get().is_some());
            out.push(record.since(origin_ns));
        }
    }
}

/// The process behind `record`, and what is known of its data.
fn of_record(record: &Record) -> Origin {
    let tags = DataTags {
        inode: record.inode,
        file: record.file,
        stream: record.stream,
        hint: record.hint,
    };
    Origin { pid: record.pid, comm: record.comm, tags }
}
