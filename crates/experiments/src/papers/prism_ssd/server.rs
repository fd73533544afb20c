//! A server of a cache in virtual time, and its clients: each has one request outstanding, and the
//! server executes them one after the other.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use prism_base::{Nanos, SimTime};
use prism_cache::cache::{Cache, Counts};
use prism_cache::items::{Items, Lookup, Meta, NewItem, Refusal};
use prism_cache::workload::{Op, Request};
use prism_segments::{FlashCounts, Store};

use super::machine::BEGIN;

/// Clients.
pub(super) const CLIENTS: usize = 16;

/// The longest value of which the bytes are made.
const LONGEST: usize = 1 << 20;

/// The times of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Times {
    /// CPU time of a request.
    pub(super) cpu: Nanos,
    /// Time in which the backend answers a miss, whose value is then set; without it a miss is the
    /// end of a request.
    pub(super) backend: Option<Nanos>,
}

/// What was served.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Served {
    /// Requests of clients.
    pub requests: u64,
    /// Gets, and those that found their item.
    pub gets: u64,
    /// Gets that found their item.
    pub hits: u64,
    /// Virtual time.
    pub time: Nanos,
    /// Sum of the latencies of requests, in nanoseconds.
    pub latency_ns: u128,
    /// Bytes of keys and values that were set.
    pub set_bytes: u64,
    /// What the cache did.
    pub cache: Counts,
    /// What was done to flash.
    pub flash: FlashCounts,
}

impl Served {
    /// Requests a second.
    #[must_use]
    pub fn throughput(&self) -> f64 {
        self.requests as f64 / self.time.as_secs_f64()
    }

    /// Mean latency in nanoseconds.
    #[must_use]
    pub fn latency(&self) -> f64 {
        self.latency_ns as f64 / self.requests as f64
    }

    /// The share of gets that found their item.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        self.hits as f64 / self.gets as f64
    }
}

/// A client: when its request began, and what it waits to set after a miss.
#[derive(Clone, Copy, Debug, Default)]
struct Client {
    begun: SimTime,
    request: Option<Request>,
    fills: bool,
}

/// A server with its clients.
pub(super) struct Server {
    cache: Cache<Box<dyn Store>>,
    times: Times,
    /// Clients whose next step is due, by time.
    ready: BinaryHeap<Reverse<(SimTime, usize)>>,
    clients: [Client; CLIENTS],
    /// When the server has executed the last request.
    free: SimTime,
    served: Served,
    content: Vec<u8>,
    key: Vec<u8>,
}

impl Server {
    pub(super) fn new(cache: Cache<Box<dyn Store>>, times: Times) -> Self {
        let ready = (0..CLIENTS).map(|client| Reverse((SimTime::ZERO, client))).collect();
        Self {
            cache,
            times,
            ready,
            clients: [Client::default(); CLIENTS],
            free: SimTime::ZERO,
            served: Served::default(),
            content: (0..LONGEST).map(|at| (at * 131 / 8) as u8).collect(),
            key: Vec::new(),
        }
    }

    /// Serves `requests` and returns what that took, from the first request to the last answer.
    pub(super) fn run(&mut self, requests: impl Iterator<Item = Request>) -> Served {
        let begin = self.now();
        let before = (self.cache.counts(), self.cache.store().counts());
        self.served = Served::default();
        let mut requests = requests.fuse();
        while self.await_next() {
            let Reverse((at, client)) = self.ready.pop().expect("one is ready");
            if self.clients[client].request.is_none() {
                // Clients without a request begin again in the next run.
                let Some(request) = requests.next() else { continue };
                self.clients[client] = Client { begun: at, request: Some(request), fills: false };
            }
            self.step(client);
        }
        self.ready = (0..CLIENTS).map(|client| Reverse((self.now(), client))).collect();
        let (cache, flash) = (self.cache.counts(), self.cache.store().counts());
        Served {
            time: self.now().since(begin),
            cache: since(&before.0, &cache),
            flash: flash.since(&before.1),
            ..self.served
        }
    }

    fn is_quiet(&self) -> bool {
        self.clients.iter().all(|client| client.request.is_none())
    }

    /// The time that flash and server have reached.
    fn now(&self) -> SimTime {
        self.cache.store().now().max(self.free)
    }

    /// Lets time pass until the server can execute the step that is due next; false if no client
    /// waits for anything.
    fn await_next(&mut self) -> bool {
        loop {
            self.finish_reads();
            let due = self.ready.peek().map(|Reverse((at, _))| (*at).max(self.free));
            let timeout = match due {
                Some(due) => Some(Nanos(due.0.saturating_sub(self.cache.store().now().0))),
                None if self.is_quiet() => return false,
                None => None,
            };
            if !self.cache.wait(timeout) && due.is_some() {
                self.finish_reads();
                return true;
            }
        }
    }

    fn finish_reads(&mut self) {
        let now = self.now();
        let mut done = [None; CLIENTS];
        let mut any = false;
        while self.cache.finished(self.seconds(), &mut |tag, item| {
            done[tag as usize] = Some(item.is_some());
            any = true;
        }) {}
        if !any {
            return;
        }
        for (client, found) in done.into_iter().enumerate() {
            if let Some(found) = found {
                self.looked_up(client, found, now);
            }
        }
    }

    fn seconds(&self) -> u32 {
        BEGIN + (self.cache.store().now().0 / 1_000_000_000) as u32
    }

    /// Executes the step of a client that is due.
    fn step(&mut self, client: usize) {
        let Client { request, fills, .. } = self.clients[client];
        let request = request.expect("as it is due");
        self.free = self.now() + self.times.cpu;
        key_of(&request, &mut self.key);
        if request.op == Op::Set || fills {
            self.set(&request);
            return self.end(client);
        }
        self.served.gets += 1;
        let now = self.seconds();
        let found = match self.cache.lookup(&self.key, client as u64, now) {
            Lookup::Found(_) => true,
            Lookup::Miss => false,
            Lookup::Reading(_) => return,
        };
        self.looked_up(client, found, self.free);
    }

    fn looked_up(&mut self, client: usize, found: bool, now: SimTime) {
        self.served.hits += u64::from(found);
        match self.times.backend {
            Some(backend) if !found => {
                self.clients[client].fills = true;
                self.ready.push(Reverse((now + backend, client)));
            }
            _ => self.end(client),
        }
    }

    /// The request of a client is answered.
    fn end(&mut self, client: usize) {
        let now = self.now();
        self.served.requests += 1;
        self.served.latency_ns += u128::from(now.since(self.clients[client].begun).0);
        self.clients[client] = Client::default();
        self.ready.push(Reverse((now, client)));
    }

    /// Sets an item; while all buffers wait for flash, so does the server.
    fn set(&mut self, request: &Request) {
        let value = &self.content[..(request.value_len as usize).min(self.cache.longest() / 2)];
        self.served.set_bytes += (self.key.len() + value.len()) as u64;
        loop {
            let (version, now) = (self.cache.next_version(), self.seconds());
            let (value, meta) = ([value, &[][..]], Meta::default());
            let item = NewItem { key: &self.key, value, flags: 0, version, meta };
            match self.cache.insert(item, now) {
                Ok(()) => return,
                Err(Refusal::Busy) => assert!(self.cache.wait(None), "flash is busy"),
                Err(refusal) => panic!("{refusal}: {:?}", self.cache.failure()),
            }
        }
    }
}

/// The key of a request.
fn key_of(request: &Request, key: &mut Vec<u8>) {
    key.clear();
    key.extend_from_slice(&request.key.to_le_bytes());
    key.resize((request.key_len as usize).max(8), b'k');
}

/// What the cache did since `before`, as far as it is used.
fn since(before: &Counts, now: &Counts) -> Counts {
    Counts {
        inserts: now.inserts - before.inserts,
        insert_bytes: now.insert_bytes - before.insert_bytes,
        copied: now.copied - before.copied,
        copied_bytes: now.copied_bytes - before.copied_bytes,
        dropped: now.dropped - before.dropped,
        slabs_cleaned: now.slabs_cleaned - before.slabs_cleaned,
        slabs_dropped: now.slabs_dropped - before.slabs_dropped,
        index_full: now.index_full - before.index_full,
        ..*now
    }
}
