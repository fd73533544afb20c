//! The loop in which a host issues requests to a drive and measures their latencies.
//!
//! A [`Host`] decides which request is submitted next and when; [`run`] submits it and lets the
//! drive's events happen in between. A closed loop and an open loop are hosts, and an experiment
//! may have a host with a queue of its own. Jobs with fio options have their own runner,
//! `prism_replay::fio`, because it generates the requests from options and collects distributions
//! for a report; an experiment brings its request sequence and needs exact sums.

use std::collections::VecDeque;

use prism_base::Slab;
use prism_base::{Nanos, SimTime};
use prism_replay::ReplayDevice;
use prism_ssd::{Completion, Drive, Request};

/// What a host does next.
pub(crate) enum Action {
    /// It submits a request now.
    Submit(Request),
    /// It waits for the drive's next event, at most until this time. With [`SimTime::NEVER`] it
    /// waits for the next completion.
    Wait(SimTime),
    /// It has finished.
    End,
}

/// A host that issues requests to a device of type `D`.
pub(crate) trait Host<D> {
    /// Decides what to do at the device's present time.
    fn next(&mut self, device: &D) -> Action;

    /// Learns of the requests that have completed at one event.
    fn completed(&mut self, done: &[Completion]);
}

/// Lets `host` work on `device` until it has finished.
///
/// # Panics
/// If the device refuses a request, or a law of conservation is broken.
pub(crate) fn run<D: ReplayDevice>(device: &mut D, host: &mut impl Host<D>) {
    let mut done = Vec::new();
    loop {
        match host.next(device) {
            Action::Submit(request) => {
                let now = device.drive().now();
                device.submit(request, now).expect("a request within the drive and its queue");
            }
            Action::Wait(until) => {
                wait(device, until, &mut done);
                if !done.is_empty() {
                    host.completed(&done);
                    done.clear();
                }
            }
            Action::End => break,
        }
    }
    device.assert_conserved();
}

fn wait<D: ReplayDevice>(device: &mut D, until: SimTime, done: &mut Vec<Completion>) {
    if until == SimTime::NEVER {
        assert!(device.next_completion(done), "requests in flight complete");
        return;
    }
    match device.drive().next_event() {
        Some(at) if at <= until => device.step(done),
        _ => device.advance(until, done),
    }
}

/// Exact sums over completed requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Requests completed.
    pub(crate) count: u64,
    /// Bytes they moved.
    pub(crate) bytes: u64,
    /// From the start to the last completion.
    pub(crate) span: Nanos,
    /// The longest latency.
    pub(crate) max: Nanos,
    start: SimTime,
    sum: u128,
    squares: u128,
}

impl Tally {
    /// A tally of no request, whose span counts from `start`.
    pub(crate) fn starting(start: SimTime) -> Self {
        let (span, max) = (Nanos::ZERO, Nanos::ZERO);
        Self { count: 0, bytes: 0, span, max, start, sum: 0, squares: 0 }
    }

    /// Adds a completion, with its latency counted from `due`.
    pub(crate) fn add(&mut self, completion: &Completion, due: SimTime) {
        let latency = completion.completed.since(due);
        self.count += 1;
        self.bytes += completion.len;
        self.span = completion.completed.since(self.start);
        self.max = self.max.max(latency);
        self.sum += u128::from(latency.0);
        self.squares += u128::from(latency.0) * u128::from(latency.0);
    }

    /// Adds completions, with their latencies counted from submission.
    pub(crate) fn add_all(&mut self, done: &[Completion]) {
        done.iter().for_each(|completion| self.add(completion, completion.submitted));
    }

    /// Mean latency in nanoseconds; 0 if nothing was completed.
    pub(crate) fn mean(&self) -> f64 {
        self.sum as f64 / self.count.max(1) as f64
    }

    /// Standard deviation of the latency in nanoseconds.
    pub(crate) fn deviation(&self) -> f64 {
        let count = u128::from(self.count.max(1));
        // n * sum of squares - square of the sum, in integers: no cancellation.
        ((self.squares * count - self.sum * self.sum) as f64).sqrt() / count as f64
    }

    /// Bytes completed in a second.
    pub(crate) fn rate(&self) -> f64 {
        self.bytes as f64 / self.span.as_secs_f64()
    }

    /// Requests completed in a second.
    pub(crate) fn per_second(&self) -> f64 {
        self.count as f64 / self.span.as_secs_f64()
    }
}

/// Threads that each issue one request at a time. `next` returns the next request of a thread;
/// `completed` is called with the requests that completed at one event.
pub(crate) struct ClosedLoop<N, C> {
    threads: u32,
    /// Threads without a request in flight, in the order in which they issue the next one.
    idle: VecDeque<u32>,
    /// Requests still to be submitted.
    left: u64,
    /// Whether the loop goes on until every request has completed.
    drains: bool,
    next: N,
    completed: C,
}

impl<N, C> ClosedLoop<N, C> {
    pub(crate) fn new(threads: u32, next: N, completed: C) -> Self {
        let idle = (0..threads).collect();
        Self { threads, idle, left: 0, drains: false, next, completed }
    }

    /// Submits `count` requests and returns with the last of them in flight.
    pub(crate) fn issue<D: ReplayDevice>(&mut self, device: &mut D, count: u64)
    where
        Self: Host<D>,
    {
        (self.left, self.drains) = (count, false);
        run(device, self);
    }

    /// Submits `count` requests and returns when all have completed.
    pub(crate) fn complete<D: ReplayDevice>(&mut self, device: &mut D, count: u64)
    where
        Self: Host<D>,
    {
        (self.left, self.drains) = (count, true);
        run(device, self);
    }
}

impl<D, N, C> Host<D> for ClosedLoop<N, C>
where
    N: FnMut(&D, u32) -> Request,
    C: FnMut(&[Completion]),
{
    fn next(&mut self, device: &D) -> Action {
        if self.left > 0
            && let Some(thread) = self.idle.pop_front()
        {
            self.left -= 1;
            let request = (self.next)(device, thread);
            return Action::Submit(Request { tag: thread.into(), ..request });
        }
        let waits = self.left > 0 || self.drains && self.idle.len() < self.threads as usize;
        if waits { Action::Wait(SimTime::NEVER) } else { Action::End }
    }

    fn completed(&mut self, done: &[Completion]) {
        self.idle.extend(done.iter().map(|completion| completion.tag as u32));
        (self.completed)(done);
    }
}

/// `threads` threads issue `count` requests in all, each thread one at a time; `next` returns the
/// next request of a thread.
pub(crate) fn threads(
    drive: &mut Drive,
    threads: u32,
    count: u64,
    mut next: impl FnMut(u32) -> Request,
) -> Tally {
    let mut tally = Tally::starting(drive.now());
    let next = |_: &Drive, thread| next(thread);
    ClosedLoop::new(threads, next, |done: &[_]| tally.add_all(done)).complete(drive, count);
    tally
}

/// Keeps `depth` requests in flight until `count` have completed; `next` is called with the
/// number of the request, from 0.
pub(crate) fn closed_loop(
    drive: &mut Drive,
    depth: u32,
    count: u64,
    mut next: impl FnMut(u64) -> Request,
) -> Tally {
    let mut numbers = 0..count;
    threads(drive, depth, count, |_| next(numbers.next().expect("count requests at most")))
}

/// As [`closed_loop`], but measures only what completes after half of the requests have.
pub(crate) fn second_half(
    drive: &mut Drive,
    depth: u32,
    count: u64,
    mut next: impl FnMut(u64) -> Request,
) -> Tally {
    let mut numbers = 0..count;
    let next = |_: &Drive, _| next(numbers.next().expect("count requests at most"));
    let mut tally = Tally::starting(drive.now());
    let mut in_first_half = true;
    let completed = |done: &[Completion]| {
        tally.add_all(done);
        if in_first_half && 2 * tally.count >= count {
            in_first_half = false;
            tally = Tally::starting(done[0].completed);
        }
    };
    ClosedLoop::new(depth, next, completed).complete(drive, count);
    tally
}

/// A host to which requests arrive at times of their own, however many are in flight.
///
/// `next` is called with the number of the request and returns the time since the arrival before
/// it and the request. A request that finds the drive's queue full waits in the host.
/// `completed` is called with each completion, the request it belongs to and the time at which
/// that request arrived.
pub(crate) struct OpenLoop<N, C> {
    count: u64,
    /// Requests that `next` has returned.
    generated: u64,
    /// The next request to arrive, and when.
    arriving: Option<Request>,
    due: SimTime,
    /// Requests that wait in the host, with their arrivals, and how many may.
    backlog: VecDeque<(SimTime, Request)>,
    backlog_max: usize,
    in_flight: Slab<Option<(SimTime, Request)>>,
    next: N,
    completed: C,
}

impl<N, C> OpenLoop<N, C> {
    /// Arrivals count from `start`. If more than `backlog_max` requests wait in the host, it
    /// gives up.
    pub(crate) fn new(start: SimTime, count: u64, backlog_max: usize, next: N, done: C) -> Self {
        Self {
            count,
            generated: 0,
            arriving: None,
            due: start,
            backlog: VecDeque::new(),
            backlog_max,
            in_flight: Slab::new(),
            next,
            completed: done,
        }
    }

    /// Whether the host gave up because too many requests waited in it.
    pub(crate) fn gave_up(&self) -> bool {
        self.backlog.len() > self.backlog_max
    }
}

impl<N: FnMut(u64) -> (Nanos, Request), C> OpenLoop<N, C> {
    /// Asks `next` for the next request, if there is one.
    fn generate(&mut self) {
        if self.arriving.is_none() && self.generated < self.count {
            let (gap, request) = (self.next)(self.generated);
            self.generated += 1;
            self.due += gap;
            self.arriving = Some(request);
        }
    }
}

impl<N, C> Host<Drive> for OpenLoop<N, C>
where
    N: FnMut(u64) -> (Nanos, Request),
    C: FnMut(&Completion, &Request, SimTime),
{
    fn next(&mut self, drive: &Drive) -> Action {
        self.generate();
        // The drive's events of the same time come before an arrival.
        let arrives = self.due <= drive.now() && drive.next_event().is_none_or(|at| at > self.due);
        if arrives && let Some(request) = self.arriving.take() {
            self.backlog.push_back((self.due, request));
            self.generate();
        }
        if drive.can_accept(0)
            && let Some((due, request)) = self.backlog.pop_front()
        {
            let tag = self.in_flight.take();
            self.in_flight[tag] = Some((due, request));
            return Action::Submit(Request { tag: tag.into(), ..request });
        }
        match self.arriving {
            _ if self.gave_up() => Action::End,
            Some(_) => Action::Wait(self.due),
            None if drive.in_flight() > 0 => Action::Wait(SimTime::NEVER),
            None => Action::End,
        }
    }

    fn completed(&mut self, done: &[Completion]) {
        for completion in done {
            let tag = completion.tag as u32;
            let (due, request) = self.in_flight[tag].take().expect("a request in flight");
            self.in_flight.give(tag);
            (self.completed)(completion, &request, due);
        }
    }
}

/// Submits `count` requests at times of their own, however many are in flight; `next` is called
/// with the number of the request and returns the time since the one before it and the request.
///
/// # Panics
/// If a request finds the drive's queue full.
pub(crate) fn open_loop(
    drive: &mut Drive,
    count: u64,
    next: impl FnMut(u64) -> (Nanos, Request),
) -> Tally {
    let mut tally = Tally::starting(drive.now());
    let completed = |completion: &Completion, _: &Request, due| tally.add(completion, due);
    let mut host = OpenLoop::new(drive.now(), count, 0, next, completed);
    run(drive, &mut host);
    assert!(!host.gave_up(), "the drive's queue is deep enough");
    tally
}

/// Lets the drive finish what it does in the background for completed requests.
pub(crate) fn finish_background_work(drive: &mut Drive) {
    let mut none = Vec::new();
    while drive.next_completion(&mut none) {}
    assert!(none.is_empty(), "no request is in flight");
    drive.assert_conserved();
}
