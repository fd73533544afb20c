//! A running job: which I/O it issues next, and when.
//!
//! Source: fio's HOWTO; for what it leaves open, the I/Os of fio 3.33 with its null engine.

use prism_base::{Rng, SimTime};
use prism_ssd::HostOp;

use super::address::Addresses;
use super::job::{Job, Order, Rw};
use super::sizes::Sizes;
use super::stats::Dir;
use super::upcoming::{DRAWN_AHEAD, Drawn, Upcoming};

/// One I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Io {
    pub op: HostOp,
    pub offset: u64,
    pub len: u64,
    pub fua: bool,
    /// The placement handle of a write.
    pub handle: u16,
}

/// The next action of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextAction {
    /// Issue this I/O now.
    Issue(Io),
    /// Wait until this time, or until one of its I/Os completes.
    At(SimTime),
    /// Wait until one of its I/Os completes.
    Wait,
    /// None: the job has ended, and all its I/Os have completed.
    Done,
}

/// State of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Not started: waits for other jobs.
    Waiting,
    Running,
    Done,
}

/// The commands of reads, writes and trims.
const OPS: [HostOp; 3] = [HostOp::Read, HostOp::Write, HostOp::Discard];

/// A job with its progress.
#[derive(Debug)]
pub(super) struct Worker<'a> {
    pub job: &'a Job,
    pub state: State,
    /// I/Os in flight.
    pub in_flight: u32,
    /// The wake-up that is queued for it, if any.
    pub wake_at: Option<SimTime>,
    start: SimTime,
    /// End of the ramp.
    pub measured_from: SimTime,
    ramping: bool,
    ended: bool,
    addresses: Addresses,
    mix_rng: Rng,
    rate_rng: Rng,
    handle_rng: Rng,
    /// Bytes, I/Os and passes since the ramp.
    bytes: u64,
    ios: u64,
    passes: u64,
    /// The next I/Os, if they depend on nothing but the random streams of the job and its map is
    /// worth prefetching.
    upcoming: Upcoming,
    draws_ahead: bool,
    /// The first of them that only the depth and the runtime can hold back, and whether there are
    /// any in this job.
    pub certain: u32,
    has_certain: bool,
    /// The largest size of its I/Os.
    len_max: u64,
    /// End of the runtime.
    end: SimTime,
    /// The direction of the I/O to be drawn next, once chosen.
    chosen: Option<usize>,
    /// The range that a trimwrite job has trimmed and writes next.
    trimmed: Option<(u64, u64)>,
    /// When the rate limit allows the next I/O of each direction, and the bytes issued so far.
    due: [SimTime; 3],
    paced: [u64; 3],
    /// I/Os left until the next pause, and the end of the current one.
    before_pause: u64,
    pause_end: SimTime,
    /// Next position in the job's list of placement handles.
    handle_turn: usize,
    writes: u64,
    flush_due: bool,
    flushing: bool,
    flushed_at_end: bool,
}

impl<'a> Worker<'a> {
    pub fn new(job: &'a Job) -> Self {
        let stream = |what| Rng::stream(job.seed, &format!("fio job {} {what}", job.number));
        Self {
            job,
            state: State::Waiting,
            in_flight: 0,
            wake_at: None,
            start: SimTime::ZERO,
            measured_from: SimTime::ZERO,
            ramping: true,
            ended: false,
            addresses: Addresses::new(job),
            mix_rng: stream("mix"),
            rate_rng: stream("rate"),
            handle_rng: stream("handle"),
            bytes: 0,
            ios: 0,
            passes: 0,
            upcoming: Upcoming::default(),
            draws_ahead: draws_ahead(job),
            certain: 0,
            has_certain: has_certain(job),
            len_max: job.sizes.iter().map(Sizes::max).max().unwrap_or(0),
            end: SimTime::NEVER,
            chosen: None,
            trimmed: None,
            due: [SimTime::ZERO; 3],
            paced: [0; 3],
            before_pause: job.think.map_or(u64::MAX, |think| think.blocks),
            pause_end: SimTime::ZERO,
            handle_turn: 0,
            writes: 0,
            flush_due: false,
            flushing: false,
            flushed_at_end: false,
        }
    }

    /// Starts the job at `at`, or after its delay from `run_start` if that is later.
    pub fn begin(&mut self, at: SimTime, run_start: SimTime) {
        self.state = State::Running;
        self.start = at.max(run_start + self.job.delay);
        self.measured_from = self.start + self.job.ramp;
        let runtime = self.job.limit.runtime;
        self.end = runtime.map_or(SimTime::NEVER, |runtime| self.measured_from + runtime);
        self.due = [self.start; 3];
        if self.job.rate.iter().flatten().any(|rate| rate.poisson) {
            for dir in 0..3 {
                self.advance_due(dir, 0);
            }
        }
    }

    /// Whether completions at `at` are measured.
    pub fn measures(&self, at: SimTime) -> bool {
        at >= self.measured_from
    }

    /// Whether it has as many I/Os in flight as it may have.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.in_flight >= self.job.depth
    }

    /// The next action at `now`.
    #[inline(always)]
    pub fn next_action(&mut self, now: SimTime) -> NextAction {
        if now < self.start {
            return NextAction::At(self.start);
        }
        if self.ramping && now >= self.measured_from {
            self.ramping = false;
            (self.bytes, self.ios, self.passes) = (0, 0, 0);
        }
        loop {
            if self.ends(now) {
                return self.finish();
            }
            if self.pause_end > now {
                return NextAction::At(self.pause_end.min(self.end));
            }
            if self.flushing || self.is_full() {
                return NextAction::Wait;
            }
            if self.flush_due {
                self.flush_due = false;
                return self.flush();
            }
            if let (0, Some(think)) = (self.before_pause, self.job.think) {
                if self.in_flight > 0 {
                    return NextAction::Wait;
                }
                self.before_pause = think.blocks;
                self.pause_end = now + think.time;
                continue;
            }
            let dir = match self.direction(now) {
                Ok(dir) => dir,
                Err(at) => return NextAction::At(at.min(self.end)),
            };
            if let Some(io) = self.next_io(dir) {
                return NextAction::Issue(io);
            }
            self.passes += 1;
            if self.job.limit.passes.is_none_or(|passes| self.passes < passes) || self.ramping {
                self.addresses.restart();
            } else {
                self.ended = true;
            }
        }
    }

    #[inline(always)]
    fn ends(&mut self, now: SimTime) -> bool {
        let limit = &self.job.limit;
        let free = limit.time_based || self.ramping || self.trimmed.is_some();
        let enough = self.bytes >= limit.bytes || limit.ios.is_some_and(|ios| self.ios >= ios);
        self.ended |= now >= self.end || (!free && enough);
        self.ended
    }

    #[inline(never)]
    fn finish(&mut self) -> NextAction {
        if self.in_flight > 0 {
            return NextAction::Wait;
        }
        if self.job.flush_at_end && self.writes > 0 && !self.flushed_at_end {
            self.flushed_at_end = true;
            return self.flush();
        }
        self.state = State::Done;
        NextAction::Done
    }

    fn flush(&mut self) -> NextAction {
        self.flushing = true;
        self.in_flight += 1;
        NextAction::Issue(Io { op: HostOp::Flush, offset: 0, len: 0, fua: false, handle: 0 })
    }

    /// Draws the next I/Os if few are left, and calls `prefetch` with their offsets.
    #[inline]
    pub fn draw_ahead(&mut self, prefetch: impl FnMut(u64)) {
        if self.draws_ahead && self.upcoming.len() <= DRAWN_AHEAD {
            self.draw_batch(prefetch);
        }
    }

    #[inline(never)]
    fn draw_batch(&mut self, mut prefetch: impl FnMut(u64)) {
        let pass_ends = |drawn: &Drawn| drawn.len == 0;
        if self.upcoming.back().is_some_and(pass_ends) {
            return;
        }
        let wanted = 2 * DRAWN_AHEAD - self.upcoming.len();
        if !self.draw_uniform(wanted, &mut prefetch) {
            self.draw_any(wanted, &mut prefetch);
        }
        self.certain = self.count_certain();
    }

    /// Draws `wanted` I/Os of one direction and size anywhere. Returns false if the job has others.
    #[inline(always)]
    fn draw_uniform(&mut self, wanted: usize, mut prefetch: impl FnMut(u64)) -> bool {
        let dir = match self.job.rw {
            Rw::Read => Dir::Read,
            Rw::Write => Dir::Write,
            Rw::Trim => Dir::Trim,
            Rw::TrimWrite | Rw::Mixed { .. } => return false,
        };
        let Some((offsets, len)) = self.addresses.uniform(dir as usize) else { return false };
        for offset in offsets.take(wanted) {
            prefetch(offset);
            self.upcoming.push_back(Drawn { offset, len, dir: dir as u32 });
        }
        true
    }

    #[inline(never)]
    fn draw_any(&mut self, wanted: usize, mut prefetch: impl FnMut(u64)) {
        for _ in 0..wanted {
            let dir = self.choose();
            let Some((offset, len)) = self.addresses.next(dir) else {
                self.upcoming.push_back(Drawn { offset: 0, len: 0, dir: dir as u32 });
                break;
            };
            self.chosen = None;
            prefetch(offset);
            self.upcoming.push_back(Drawn { offset, len, dir: dir as u32 });
        }
    }

    /// How many of the drawn I/Os only the depth and the runtime can hold back, without those that
    /// are left when more are drawn; fewer near the end. An end of the pass is the last one.
    fn count_certain(&self) -> u32 {
        let limit = &self.job.limit;
        let ios = self.upcoming.len();
        let ios_then = self.ios + ios as u64;
        let bytes_then = self.bytes + ios as u64 * self.len_max;
        let ends = bytes_then >= limit.bytes || limit.ios.is_some_and(|most| ios_then >= most);
        let may_end = ends && !limit.time_based;
        if !self.has_certain || self.ramping || self.ended || may_end {
            return 0;
        }
        ios.saturating_sub(DRAWN_AHEAD) as u32
    }

    /// The next I/O at `now`, if it is certain that [`Worker::next_action`] would return it. Most
    /// I/Os take this way, because it is short.
    #[inline(always)]
    pub fn next_certain(&mut self, now: SimTime) -> Option<Io> {
        if self.is_full() {
            return None;
        }
        let io = self.replace_certain(now)?;
        self.in_flight += 1;
        Some(io)
    }

    /// As [`Worker::next_certain`], for an I/O in the place of one that has completed and is still
    /// counted as in flight.
    #[inline(always)]
    pub fn replace_certain(&mut self, now: SimTime) -> Option<Io> {
        if self.certain == 0 || now >= self.end {
            return None;
        }
        self.certain -= 1;
        let Drawn { offset, len, dir } = self.upcoming.pop_front()?;
        self.bytes += len;
        self.ios += 1;
        let writes = dir == Dir::Write as u32;
        self.writes += u64::from(writes);
        Some(Io { op: OPS[dir as usize], offset, len, fua: self.job.fua && writes, handle: 0 })
    }

    /// The direction of the I/O to be drawn next.
    #[inline(always)]
    fn choose(&mut self) -> usize {
        *self.chosen.get_or_insert_with(|| {
            let dir = match self.job.rw {
                Rw::Read => Dir::Read,
                Rw::Write => Dir::Write,
                Rw::Trim => Dir::Trim,
                Rw::TrimWrite if self.trimmed.is_some() => Dir::Write,
                Rw::TrimWrite => Dir::Trim,
                Rw::Mixed { read_percent } => {
                    if self.mix_rng.below(100) < u64::from(read_percent) {
                        Dir::Read
                    } else {
                        Dir::Write
                    }
                }
            };
            dir as usize
        })
    }

    /// The direction of the next I/O, or when a rate limit allows one.
    #[inline(always)]
    fn direction(&mut self, now: SimTime) -> Result<usize, SimTime> {
        let dir = match self.upcoming.front() {
            Some(drawn) => drawn.dir as usize,
            None => self.choose(),
        };
        if self.due[dir] <= now {
            return Ok(dir);
        }
        // If this direction is ahead of its rate, the other one goes first.
        let other = match self.job.rw {
            Rw::Mixed { read_percent: 1..=99 } => Dir::Read as usize + Dir::Write as usize - dir,
            _ => return Err(self.due[dir]),
        };
        if self.due[other] < self.due[dir] {
            self.chosen = Some(other);
        }
        let at = self.due[other].min(self.due[dir]);
        if at <= now { Ok(other) } else { Err(at) }
    }

    /// The next I/O in this direction; `None` at the end of a pass.
    #[inline(always)]
    fn next_io(&mut self, dir: usize) -> Option<Io> {
        let writes_trimmed = self.trimmed.take();
        let (offset, len) = match writes_trimmed {
            Some(trimmed) => {
                self.chosen = None;
                trimmed
            }
            None => {
                let place = self.next_place(dir)?;
                // Of a trim and its write, only the trim counts.
                self.bytes += place.1;
                self.ios += 1;
                place
            }
        };
        self.in_flight += 1;
        self.before_pause = self.before_pause.saturating_sub(1);
        self.advance_due(dir, len);
        let op = OPS[dir];
        if op == HostOp::Write {
            self.writes += 1;
            let is_due = |&every: &u64| every > 0 && self.writes.is_multiple_of(every);
            self.flush_due = self.job.flush_every.iter().any(is_due);
        } else if self.job.rw == Rw::TrimWrite {
            self.trimmed = Some((offset, len));
        }
        let writes = op == HostOp::Write;
        let handle = if writes { self.next_handle() } else { 0 };
        Some(Io { op, offset, len, fua: self.job.fua && writes, handle })
    }

    /// First byte and length of the next I/O in this direction, which has been drawn or is drawn
    /// now; `None` at the end of a pass.
    #[inline(always)]
    fn next_place(&mut self, dir: usize) -> Option<(u64, u64)> {
        if let Some(drawn) = self.upcoming.pop_front() {
            self.certain = self.certain.saturating_sub(1);
            return (drawn.len > 0).then_some((drawn.offset, drawn.len));
        }
        let place = self.addresses.next(dir)?;
        self.chosen = None;
        Some(place)
    }

    /// The placement handle of a write; 0 if the job has no handles.
    fn next_handle(&mut self) -> u16 {
        let Some(handles) = &self.job.handles else { return 0 };
        let count = handles.list.len();
        let place = match handles.random {
            true => self.handle_rng.below(count as u64) as usize,
            false => self.handle_turn,
        };
        self.handle_turn = (place + 1) % count;
        handles.list[place]
    }

    /// Advances the due time of a direction after an I/O of `len` bytes.
    fn advance_due(&mut self, dir: usize, len: u64) {
        let Some(rate) = self.job.rate[dir] else { return };
        if rate.poisson {
            let mean = self.job.sizes[dir].min() as f64 * 1e9 / rate.bytes as f64;
            let gap = -libm::log1p(-self.rate_rng.unit()) * mean;
            self.due[dir] = SimTime(self.due[dir].0.saturating_add(gap.round() as u64));
        } else {
            self.paced[dir] += len;
            let span = u128::from(self.paced[dir]) * 1_000_000_000 / u128::from(rate.bytes);
            let span = u64::try_from(span).unwrap_or(u64::MAX);
            self.due[dir] = SimTime(self.start.0.saturating_add(span));
        }
    }

    /// Accounts for an I/O that is moved or shortened to fit a zone.
    pub fn placed(&mut self, wanted: &Io, placed: &Io) {
        self.bytes = self.bytes.saturating_sub(wanted.len - placed.len);
        let dir = if wanted.op == HostOp::Read { Dir::Read } else { Dir::Write };
        if (wanted.offset, wanted.len) != (placed.offset, placed.len) {
            self.addresses.moved(dir as usize, placed.offset + placed.len);
        }
    }

    /// Ends the job, because no zone is suitable for an I/O it was about to issue.
    pub fn cannot_place(&mut self, wanted: &Io) {
        self.in_flight -= 1;
        self.ios -= 1;
        self.bytes = self.bytes.saturating_sub(wanted.len);
        self.ended = true;
    }

    /// Makes the job issue no more I/Os.
    pub fn stop(&mut self) {
        self.ended = true;
        self.certain = 0;
        self.flushed_at_end = true;
    }

    /// Accounts for a completed I/O.
    pub fn completed(&mut self, op: HostOp) {
        self.in_flight -= 1;
        self.flushing &= op != HostOp::Flush;
    }
}

/// Whether only depth and runtime can hold back an I/O of `job` that is drawn: no rate and no pause
/// does, and no flush comes between.
fn has_certain(job: &Job) -> bool {
    let paced = job.think.is_some() || job.rate.iter().any(Option::is_some);
    let flushes = job.flush_every.iter().any(|&every| every > 0);
    !paced && !flushes && job.handles.is_none()
}

/// Whether the I/Os of `job` may be drawn before they are issued, and are random: consecutive ones
/// use the same cache lines of the map. Otherwise completions and rates choose among directions, or
/// zones move the I/Os.
fn draws_ahead(job: &Job) -> bool {
    let depends = match job.rw {
        Rw::Read | Rw::Write | Rw::Trim => false,
        Rw::TrimWrite => true,
        Rw::Mixed { .. } => job.rate.iter().any(Option::is_some),
    };
    job.order != Order::Sequential && job.zbd.is_none() && !depends
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use prism_base::Nanos;

    use super::*;
    use crate::fio::{JobReader, jobs};

    /// The I/Os of a job of which each takes a microsecond, with their times, and the offsets that
    /// it draws in advance.
    fn ios(job: &Job, ahead: bool) -> (Vec<(SimTime, Io)>, Vec<u64>) {
        let mut worker = Worker::new(job);
        worker.draws_ahead &= ahead;
        worker.begin(SimTime::ZERO, SimTime::ZERO);
        let (mut now, mut in_flight) = (SimTime::ZERO, VecDeque::new());
        let (mut issued, mut drawn) = (Vec::new(), Vec::new());
        loop {
            worker.draw_ahead(|offset| drawn.push(offset));
            match worker.next_action(now) {
                NextAction::Issue(io) => {
                    issued.push((now, io));
                    in_flight.push_back(io);
                }
                NextAction::At(at) => now = at,
                NextAction::Wait => {
                    now += Nanos(1000);
                    worker.completed(in_flight.pop_front().expect("it waits for an I/O").op);
                }
                NextAction::Done => return (issued, drawn),
            }
        }
    }

    #[test]
    fn drawing_in_advance_changes_no_io() {
        let check = |options: &str, draws: bool| {
            let mut reader = JobReader::new();
            reader.file("job", &format!("[job]\n{}\n", options.replace(' ', "\n"))).unwrap();
            let job = &jobs(&reader.finish().unwrap(), &[], 64 << 20, 1).unwrap()[0];
            let ((expected, none), (issued, drawn)) = (ios(job, false), ios(job, true));
            assert_eq!(issued, expected, "{options}");
            assert!(none.is_empty() && draws != drawn.is_empty(), "{options}");
            let data: Vec<_> = issued.iter().filter(|(_, io)| io.op != HostOp::Flush).collect();
            // All but the first I/O of each later pass.
            let mut coming = drawn.iter().peekable();
            let announced =
                data.iter().filter(|(_, io)| coming.next_if_eq(&&io.offset).is_some()).count();
            assert!(!draws || announced + 3 >= data.len(), "{options}: {announced} are announced");
        };
        check("rw=randread norandommap iodepth=32 number_ios=500", true);
        check("rw=randwrite size=100k loops=3 iodepth=5 fsync=3", true);
        check("rw=randrw rwmixread=70 size=256k bsrange=4k-16k loops=4 iodepth=8", true);
        check("rw=randrw random_distribution=zipf:1.1 bs=4k,8k io_size=1m thinktime=9us", true);
        check("rw=randread rate_iops=9000 size=300k ramp_time=3ms runtime=9ms time_based", true);
        check("rw=randtrim bssplit=4k/50:64k/50 size=1m", true);
        check("rw=randrw rate_iops=9000,4000 size=300k", false);
        check("rw=randtrimwrite size=300k", false);
        check("rw=write size=300k", false);
    }
}
