//! Pairs the events of one request: queued, issued, completed.
//!
//! Events come in the order of time. A request is an issue; the bios queued before it
//! tell who wanted it and since when, the completion tells when it was done. Records
//! leave in the order of their issue, each as soon as it and all before it are complete
//! or have waited long enough. Every table is bounded, whatever the trace.

use std::collections::{HashSet, VecDeque};

use rustc_hash::FxBuildHasher;

use crate::event::CommandId;
use crate::event::{BAD_EVENT, BESIDE, Event, NO_DATA, NO_ISSUE, NO_RANGES, SECTOR, Target, What};
use crate::flushes::FlushWaiters;
use crate::names::{About, Who};
use crate::options::CountFrom;
use crate::record::{Flags, Op, OptTime, Record};
use crate::skips::{SkipReason, Skips};
use crate::symbols::Symbol;
use crate::waiting::{Key, Waiting};

/// How long a request waits for its completion, and a bio for its issue. The block layer
/// itself gives a command up after 30 s; what takes longer was lost by the tracer.
const WAIT_NS: i64 = 30_000_000_000;

/// Requests held at most, completed or not: with a lost completion at the front this is
/// half a second of a million requests a second, and about 100 MB with their keys.
const HELD_MAX: usize = 1 << 19;

/// Bios that wait for their issue at most: the deepest queues of the block layer, each
/// request merged from hundreds of pages, and about 40 MB.
const BIOS_MAX: usize = 1 << 19;

/// Completions kept for an issue with the same timestamp at most.
const EARLY_MAX: usize = 1024;

/// NVMe commands that are no requests, remembered until they complete at most: the
/// deepest queue has as many.
const NO_REQUESTS_MAX: usize = 1 << 16;

/// Phases listed at most.
const PHASES_MAX: usize = 1 << 16;

/// What pairing knows at the end. Times are since the first record.
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
    who: Who,
    /// It was moved here from a stacked device, and its own queue event is still to come.
    remapped: bool,
}

/// A request that has not left yet.
#[derive(Debug)]
struct Held {
    record: Record,
    left_sectors: u64,
    state: State,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    /// Waits for its completion under this number.
    Waits(u32),
    Done,
    /// Its completion was lost: its number is in use again.
    Lost,
    /// Went back to the queue; it will be issued again.
    TakenBack,
}

/// Turns events into records.
#[derive(Debug)]
pub(crate) struct Pairing {
    count_from: CountFrom,
    bios: Waiting<Bio>,
    flushes: FlushWaiters,
    inflight: Waiting<u64>,
    held: VecDeque<Held>,
    /// Sequence number of the first held request.
    first_held: u64,
    early: Vec<(Event, Target)>,
    /// NVMe commands in flight that are no requests.
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

    /// Takes the next event; no event after it is earlier.
    pub fn event(&mut self, event: Event, skips: &mut Skips, out: &mut Vec<Record>) {
        if event.time_ns > self.last_ns {
            self.last_ns = event.time_ns;
            self.give_up_early(skips);
        }
        let now = event.time_ns;
        if self.block_sectors().is_some() && event.what.is_of_block_layer() {
            return;
        }
        match event.what {
            What::Queue(target, who) => self.queue(target, who, now, out),
            What::Start(target, who) => self.start(target, who, now),
            What::Issue(target, who) => {
                self.totals.issue_events += 1;
                if self.count_from != CountFrom::Issue {
                    return;
                }
                match target.op {
                    Some(op) => self.issue(target, op, who, now, out),
                    None => skips.add(NO_DATA, event.line),
                }
            }
            What::Command(target, who, id) => {
                self.totals.commands += 1;
                if let Err(reason) = self.command(target, who, id, now, out) {
                    skips.add(reason, event.line);
                }
            }
            What::CommandDone(id) => {
                if let Err(reason) = self.command_done(id, now) {
                    skips.add(reason, event.line);
                }
                self.leave(now, HELD_MAX, out);
            }
            What::BioComplete(_) if self.count_from == CountFrom::Issue => {}
            What::Complete(target) | What::BioComplete(target) => {
                if !self.complete(target, now) {
                    self.keep_early(event, target, skips);
                }
                self.leave(now, HELD_MAX, out);
            }
            What::Requeue(target) => self.requeue(target),
            What::Remap(target, device, sector) => self.remap(target, (device, sector)),
            What::Split(target, second) => self.split(target, second),
            What::Phase(name) => {
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

    /// Lets everything leave.
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

    fn queue(&mut self, target: Target, who: Who, now: i64, out: &mut Vec<Record>) {
        let Some(op) = target.op else { return };
        self.totals.queue_events += 1;
        if self.count_from == CountFrom::Queue {
            let key = Key::new(target.device, op, target.sector);
            self.hold(target, op, key, (Some(now), who), now, out);
            return;
        }
        if target.flags.has(Flags::PREFLUSH) || target.flags.has(Flags::FUA) || op == Op::Flush {
            self.flushes.queue(target.device, target.sector, target.flags, now, who);
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
                let bio = Bio { queue_ns: now, sectors: target.sectors, who, remapped: false };
                self.bios.insert(key, bio);
            }
        }
    }

    /// The queue event of this request may not have been recorded; then this one, which
    /// the same process causes a moment later, is as good.
    fn start(&mut self, target: Target, who: Who, now: i64) {
        let Some(op) = target.op else { return };
        let key = Key::new(target.device, op, target.sector);
        if op != Op::Flush && self.bios.first_mut(key).is_none() {
            let bio = Bio { queue_ns: now, sectors: target.sectors, who, remapped: false };
            self.bios.insert(key, bio);
        }
    }

    fn issue(&mut self, target: Target, op: Op, who: Who, now: i64, out: &mut Vec<Record>) {
        let wanted = if op == Op::Flush {
            self.flushes.issue(target.device)
        } else {
            let bio = self.merged_bios(target.device, op, target.sector, target.sectors);
            if target.flags.has(Flags::FUA) {
                // The device forces the data itself: no flush will follow it.
                self.flushes.end(target.device, target.sector);
            }
            bio.map(|bio| (bio.queue_ns, bio.who))
        };
        let wanted = wanted.filter(|&(queue_ns, _)| now.saturating_sub(queue_ns) <= WAIT_NS);
        let (queue_ns, who) = match wanted {
            // Who wanted it is known best when it was queued, what it is when it is issued.
            Some((queue_ns, queued)) if who.about == About::NOTHING => (Some(queue_ns), queued),
            Some((queue_ns, queued)) => (Some(queue_ns), Who { about: who.about, ..queued }),
            None => (None, who),
        };
        let key = Key::new(target.device, op, target.sector);
        self.hold(target, op, key, (queue_ns, who), now, out);
    }

    /// Takes the bios that a request over these sectors was merged from, and gives the
    /// one that was queued first. What a bio has beyond the request stays queued.
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
        (queue_ns, who): (Option<i64>, Who),
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
        record.pid = who.pid;
        record.comm = who.comm;
        record.inode = who.about.inode;
        record.file = who.about.file;
        record.stream = who.about.stream;
        record.hint = who.about.hint;
        // The flush before is the request itself.
        record.flags =
            if is_flush { Flags(target.flags.0 & !Flags::PREFLUSH.0) } else { target.flags };
        let number = self.first_held + self.held.len() as u64;
        let id = self.inflight.insert(key, number);
        self.held.push_back(Held { record, left_sectors: sectors, state: State::Waits(id) });
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
        who: Who,
        id: CommandId,
        now: i64,
        out: &mut Vec<Record>,
    ) -> Result<(), SkipReason> {
        let block = self.block_sectors().ok_or(BESIDE)?;
        let key = Key::command(id);
        // The number is used again: the completion of the one before was lost.
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
        self.hold(target, op, key, (None, who), now, out);
        Ok(())
    }

    /// Notes that an NVMe command is done.
    fn command_done(&mut self, id: CommandId, now: i64) -> Result<(), SkipReason> {
        self.block_sectors().ok_or(BESIDE)?;
        let Some(number) = self.inflight.take(Key::command(id)) else {
            return if self.no_requests.remove(&id) { Ok(()) } else { Err(NO_ISSUE) };
        };
        let held = &mut self.held[(number - self.first_held) as usize];
        held.record.complete = OptTime::at(now);
        held.state = State::Done;
        self.totals.completed += 1;
        Ok(())
    }

    /// Notes that sectors are done; `false` if no request waits for it.
    fn complete(&mut self, target: Target, now: i64) -> bool {
        let Some(op) = target.op else {
            // A bio that asked for flushes ends with a completion of no sectors, after
            // the requests made from it completed on their own.
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
            // The part that was done stays a request; the rest is issued as another one.
            held.record.len = done * SECTOR;
            State::Done
        } else {
            State::TakenBack
        };
        let Some(queue_ns) = held.record.queue.get() else { return };
        let who = of_record(&held.record);
        if op == Op::Flush {
            self.flushes.queue(target.device, 0, Flags::PREFLUSH, queue_ns, who);
        } else {
            let bio = Bio { queue_ns, sectors: target.sectors, who, remapped: false };
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

    /// Cuts the queued bio, because the second part may be issued first.
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

    /// Lets the first held requests leave that are done or have waited long enough, and
    /// more until at most `keep` are left.
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
            let Some(Held { record, state, .. }) = self.held.pop_front() else { return };
            self.first_held += 1;
            if state == State::TakenBack {
                continue;
            }
            let origin_ns = *self.origin_ns.get_or_insert(record.issue_ns);
            self.totals.records += 1;
            self.totals.queued += u64::from(record.queue.get().is_some());
            out.push(record.since(origin_ns));
        }
    }
}

/// Who wanted `record`, and what it is.
fn of_record(record: &Record) -> Who {
    let about =
        About { inode: record.inode, file: record.file, stream: record.stream, hint: record.hint };
    Who { pid: record.pid, comm: record.comm, about }
}
