//! The event loop: one thread, which waits for sockets and flash by epoll.
//!
//! Each turn takes what flash has completed, executes what clients have sent, and sends what is to
//! be answered; only then it sleeps. Nothing else waits: reads of flash are in flight while other
//! commands are executed.
//!
//! If changes have to survive a loss of power, the output of a connection that made one is held
//! back until the change is durable. Meanwhile the connection executes nothing; all that were held
//! back during a sync go on with the next one.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use prism_base::Nanos;
use prism_cache::items::Items;
use prism_cache::protocol::{Report, ReportPart, Shared, exposition};
use prism_flash::Device;
use rustix::event::epoll;
use rustix::io::Errno;

use crate::connection::Connection;
use crate::listen::{Listener, Stream};
use crate::log::{self, Troubles};
use crate::metrics::{self, Metrics};
use crate::open::{Backend, Opened, ServerError, unix_now};
use crate::report;

/// Data of events that are not those of a session.
const LISTENERS: u64 = 1 << 62;
const FLASH: u64 = 1 << 63;
/// Bytes that are read at once.
const READ: usize = 64 << 10;
/// Events that are taken at once.
const EVENTS: usize = 256;
/// Time without accepting after there was no descriptor or no memory for a client: the loop must
/// not spin, and clients wait no longer than they notice.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// A server.
pub struct Server {
    cache: Backend,
    device: Option<Device>,
    /// Erases that a block of the device endures, if that is known.
    endurance: Option<u32>,
    shared: Shared,
    listeners: Vec<Listener>,
    connections: Vec<Option<Connection>>,
    free: Vec<u32>,
    /// Reads in flight of connections that are closed. Their numbers are not free until these end,
    /// because an item must not be passed to another client.
    orphans: HashMap<u32, u32>,
    open: u32,
    epoll: OwnedFd,
    begun: Instant,
    buffer: Vec<u8>,
    /// Sessions to be looked at in this turn.
    touched: Vec<u32>,
    waiting: Vec<u32>,
    /// Sessions that have left their commands to the next turn, for others.
    yielded: Vec<u32>,
    /// Sessions whose output waits for a sync.
    held: Vec<u32>,
    /// Written to when a sync is complete.
    synced: Option<Arc<OwnedFd>>,
    accepting: bool,
    /// When a client could not be accepted, until that is tried again.
    accept_failed: Option<Instant>,
    metrics: Metrics,
    troubles: Troubles,
}

pub(crate) fn failed(what: &str) -> impl FnOnce(Errno) -> ServerError + '_ {
    move |error| ServerError::Io { what: what.to_owned(), source: error.into() }
}

impl Server {
    /// A server of the cache on these sockets.
    ///
    /// # Errors
    /// [`ServerError::Io`].
    pub fn new(
        opened: Opened,
        shared: Shared,
        listeners: Vec<Listener>,
    ) -> Result<Self, ServerError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed("epoll"))?;
        let server = Self {
            cache: opened.cache,
            device: opened.device,
            endurance: None,
            shared,
            listeners,
            connections: Vec::new(),
            free: Vec::new(),
            orphans: HashMap::new(),
            open: 0,
            epoll,
            begun: Instant::now(),
            buffer: vec![0; READ],
            touched: Vec::new(),
            waiting: Vec::new(),
            yielded: Vec::new(),
            held: Vec::new(),
            synced: opened.synced,
            accepting: false,
            accept_failed: None,
            metrics: Metrics::default(),
            troubles: Troubles::default(),
        };
        Ok(server)
    }

    /// The server, with the number of erases that a block of its device endures.
    #[must_use]
    pub fn with_endurance(self, erases: Option<u32>) -> Self {
        Self { endurance: erases, ..self }
    }

    /// The server, which answers Prometheus on these sockets.
    #[must_use]
    pub fn with_metrics(self, listeners: Vec<Listener>) -> Self {
        Self { metrics: Metrics::new(listeners), ..self }
    }

    /// Serves until `stop` says so, which is asked at least twice a second and after each signal,
    /// or a client shuts it down; then closes the cache.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn run(&mut self, stop: &dyn Fn() -> bool) -> Result<(), ServerError> {
        self.accept_more(true)?;
        self.metrics.watch(&self.epoll)?;
        if let Some(synced) = &self.synced {
            // Each write wakes the loop once, and the number is never read.
            let data = epoll::EventData::new_u64(FLASH);
            let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
            epoll::add(&self.epoll, synced, data, flags).map_err(failed("epoll"))?;
        }
        let mut flash = None;
        let mut events = Vec::with_capacity(EVENTS);
        while !stop() && self.shared.shutdown.is_none() {
            self.watch_flash(&mut flash)?;
            events.clear();
            let timeout = rustix::time::Timespec { tv_sec: 0, tv_nsec: self.timeout() };
            let spare = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.epoll, spare, Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(failed("epoll")(error)),
            }
            let now = unix_now();
            self.shared.set_clock(now);
            for event in &events {
                self.event(event.data.u64(), event.flags)?;
            }
            self.turn();
            self.expire(now);
            self.metrics.expire(&self.epoll);
            self.accept_again()?;
            self.troubles.report(&self.cache);
        }
        self.close()
    }

    /// Nanoseconds until the loop has to look at its clock.
    fn timeout(&self) -> i64 {
        const TICK: i64 = 500_000_000;
        const SOON: i64 = 1_000_000;
        // On a device whose commands are complete at once nothing wakes the loop.
        let waits = !self.cache.is_idle() && self.cache.event_fd().is_none();
        match (self.yielded.is_empty(), waits || !self.waiting.is_empty()) {
            (false, _) => 0,
            (true, true) => SOON,
            (true, false) => TICK,
        }
    }

    /// Watches the queue of the device, whose descriptor can change.
    fn watch_flash(&mut self, watched: &mut Option<i32>) -> Result<(), ServerError> {
        let Some(fd) = self.cache.event_fd() else { return Ok(()) };
        if *watched != Some(fd.as_raw_fd()) {
            let data = epoll::EventData::new_u64(FLASH);
            match epoll::add(&self.epoll, fd, data, epoll::EventFlags::IN) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(failed("epoll")(error)),
            }
            *watched = Some(fd.as_raw_fd());
        }
        Ok(())
    }

    fn event(&mut self, data: u64, flags: epoll::EventFlags) -> Result<(), ServerError> {
        if data == FLASH {
            return Ok(());
        }
        if (metrics::CLIENTS..LISTENERS).contains(&data) {
            let mut metrics = std::mem::take(&mut self.metrics);
            metrics.event(&self.epoll, data, &|| {
                let report = self.report(ReportPart::Figures);
                exposition::text(self.cache.len(), &self.shared, &report)
            });
            self.metrics = metrics;
            return Ok(());
        }
        if data >= LISTENERS {
            return self.accept((data - LISTENERS) as usize);
        }
        let id = data as u32;
        let readable = epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        if flags.intersects(readable) {
            self.receive(id);
        }
        self.touched.push(id);
        Ok(())
    }

    /// Watches the listening sockets, or stops, at the limit of connections.
    fn accept_more(&mut self, accept: bool) -> Result<(), ServerError> {
        if self.accepting == accept {
            return Ok(());
        }
        self.accepting = accept;
        if accept {
            self.accept_failed = None;
        }
        for (listener, number) in self.listeners.iter().zip(LISTENERS..) {
            let data = epoll::EventData::new_u64(number);
            let fd = listener.as_fd();
            let changed = match accept {
                true => epoll::add(&self.epoll, fd, data, epoll::EventFlags::IN),
                false => epoll::delete(&self.epoll, fd),
            };
            changed.map_err(failed("epoll"))?;
        }
        Ok(())
    }

    /// Accepts again some time after there was no descriptor or no memory: these can also be short
    /// while no client is connected, whose end would be noticed.
    fn accept_again(&mut self) -> Result<(), ServerError> {
        if self.accept_failed.is_some_and(|at| at.elapsed() >= ACCEPT_PAUSE) {
            self.accept_more(true)?;
        }
        Ok(())
    }

    fn accept(&mut self, listener: usize) -> Result<(), ServerError> {
        loop {
            let stream = match self.listeners[listener].accept() {
                Ok(stream) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // Too many files: those that close make place.
                Err(error) if is_limit(&error) => {
                    self.log(log::ERRORS, format_args!("cannot accept a client: {error}"));
                    self.accept_failed = Some(Instant::now());
                    return self.accept_more(false);
                }
                // The client is gone already.
                Err(_) => continue,
            };
            self.shared.counters.total_connections += 1;
            if self.open >= self.shared.settings.maxconns {
                self.shared.counters.rejected_connections += 1;
                let limit = self.shared.settings.maxconns;
                self.log(log::ERRORS, format_args!("refused a client: {limit} are connected"));
                let mut stream = stream;
                let _ = stream.write(b"ERROR Too many open connections\r\n");
                continue;
            }
            if let Err(error) = self.add(stream) {
                // A limit of the kernel, such as that of watched descriptors of a user.
                self.shared.counters.rejected_connections += 1;
                self.log(log::ERRORS, format_args!("refused a client: {error}"));
            }
        }
    }

    /// Serves a client; an error if it cannot be watched.
    fn add(&mut self, mut stream: Stream) -> Result<(), Errno> {
        let id = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() as u32 - 1
        });
        let data = epoll::EventData::new_u64(id.into());
        let watched = epoll::add(&self.epoll, stream.as_fd(), data, epoll::EventFlags::IN);
        if let Err(error) = watched {
            self.free.push(id);
            let _ = stream.write(b"ERROR Too many open connections\r\n");
            return Err(error);
        }
        if self.shared.settings.verbosity >= log::CLIENTS {
            let (number, (from, _)) = (stream.as_fd().as_raw_fd(), stream.names());
            log::line(format_args!("{number}: connection from {from}"));
        }
        self.connections[id as usize] = Some(Connection::new(id, stream, self.shared.now));
        self.open += 1;
        self.shared.counters.curr_connections = self.open.into();
        Ok(())
    }

    fn log(&self, level: u32, text: std::fmt::Arguments<'_>) {
        if self.shared.settings.verbosity >= level {
            log::line(text);
        }
    }

    fn receive(&mut self, id: u32) {
        let Some(connection) = &mut self.connections[id as usize] else { return };
        connection.last_use = self.shared.now;
        if !connection.session.wants_input() || connection.ended {
            return;
        }
        match connection.stream.read(&mut self.buffer) {
            Ok(0) => connection.ended = true,
            Ok(bytes) => {
                self.shared.counters.bytes_read += bytes as u64;
                connection.session.receive(&self.buffer[..bytes]);
            }
            Err(error) if is_later(&error) => {}
            Err(error) => {
                connection.ended = true;
                let number = connection.stream.as_fd().as_raw_fd();
                self.log(log::ERRORS, format_args!("{number}: cannot read: {error}"));
            }
        }
    }

    /// Executes and answers, until nothing more can be done without waiting.
    fn turn(&mut self) {
        self.touched.append(&mut self.yielded);
        self.execute();
        loop {
            self.cache.progress(Nanos(self.begun.elapsed().as_nanos() as u64));
            let released = self.release();
            let finished = self.finish_reads() || released;
            if !finished && self.waiting.is_empty() {
                break;
            }
            self.touched.append(&mut self.waiting);
            self.execute();
            // Those that were served have submitted commands, which the next turn passes on.
            if !finished && !self.waiting.is_empty() {
                break;
            }
        }
    }

    /// Sends the output of sessions whose changes have become durable. If they never do, their
    /// connections are closed.
    fn release(&mut self) -> bool {
        let durable = self.cache.durable();
        let failed = self.cache.has_failed_commit();
        let mut any = false;
        for id in std::mem::take(&mut self.held) {
            let Some(connection) = &mut self.connections[id as usize] else { continue };
            if connection.held.is_some_and(|changes| changes > durable) {
                if failed {
                    self.remove(id);
                } else {
                    self.held.push(id);
                }
                continue;
            }
            connection.held = None;
            self.send(id);
            self.touched.push(id);
            any = true;
        }
        any
    }

    /// Passes items that were read to their sessions.
    fn finish_reads(&mut self) -> bool {
        let (connections, touched, shared) =
            (&mut self.connections, &mut self.touched, &mut self.shared);
        let (orphans, free) = (&mut self.orphans, &mut self.free);
        let mut any = false;
        while self.cache.finished(shared.now, &mut |tag, item| {
            let id = (tag >> 32) as u32;
            if let Some(Some(connection)) = connections.get_mut(id as usize) {
                connection.session.read_done(tag, item, shared);
                touched.push(id);
            } else if let Some(reads) = orphans.get_mut(&id) {
                *reads -= 1;
                if *reads == 0 {
                    orphans.remove(&id);
                    free.push(id);
                }
            }
        }) {
            any = true;
        }
        any
    }

    fn execute(&mut self) {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        for &id in &touched {
            let changes = self.cache.changes();
            while let Some(connection) = &mut self.connections[id as usize] {
                if connection.held.is_some() {
                    break;
                }
                connection.session.run(&mut self.cache, &mut self.shared);
                if let Some(part) = self.shared.wants_report() {
                    let report = self.report(part);
                    self.shared.give_report(report);
                    continue;
                }
                if self.cache.changes() > changes && self.cache.durable() < self.cache.changes() {
                    connection.held = Some(self.cache.changes());
                    self.held.push(id);
                    self.watch(id, false);
                    break;
                }
                if connection.session.yields() {
                    self.yielded.push(id);
                }
                if connection.session.is_waiting_for_room() {
                    self.waiting.push(id);
                }
                self.send(id);
                // What was sent made place for the answers of further commands.
                let goes_on =
                    |c: &Connection| c.session.waits_for_sending() && c.session.output().is_empty();
                if !self.connections[id as usize].as_ref().is_some_and(goes_on) {
                    break;
                }
            }
        }
        touched.clear();
        self.touched = touched;
    }

    /// What only the server knows, for `stats`.
    fn report(&self, part: ReportPart) -> Report {
        match part {
            ReportPart::Figures => {
                let wear = report::Wear {
                    device: self.device.as_ref(),
                    endurance: self.endurance,
                    time: self.begun.elapsed(),
                };
                let mut report = report::figures(&self.cache, &wear);
                report.add("gets_with_touch", &self.shared.counters.gets_with_touch);
                report
            }
            ReportPart::Connections => {
                let uptime = self.shared.now.saturating_sub(self.shared.started);
                let listeners =
                    self.listeners.iter().map(|socket| report::listener(socket, uptime));
                let clients = self.connections.iter().flatten();
                let clients = clients.map(|client| client.report(self.shared.now));
                Report { connections: listeners.chain(clients).collect(), ..Report::default() }
            }
        }
    }

    fn send(&mut self, id: u32) {
        let Some(connection) = &mut self.connections[id as usize] else { return };
        let mut gone = false;
        while !connection.session.output().is_empty() {
            match connection.stream.write(connection.session.output()) {
                Ok(bytes) => {
                    self.shared.counters.bytes_written += bytes as u64;
                    connection.session.sent(bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_later(&error) => break,
                Err(_) => {
                    gone = true;
                    break;
                }
            }
        }
        let left = !connection.session.output().is_empty();
        let done = connection.session.is_closing() && !left;
        let ended = connection.ended && !connection.session.has_work() && !left;
        if gone || done || ended {
            self.remove(id);
        } else {
            self.watch(id, left);
        }
    }

    /// Watches a socket for what the session waits for.
    fn watch(&mut self, id: u32, output: bool) {
        let Some(connection) = &mut self.connections[id as usize] else { return };
        let wanted = (connection.session.wants_input() && !connection.ended, output);
        if connection.watched == wanted {
            return;
        }
        connection.watched = wanted;
        let mut flags = epoll::EventFlags::empty();
        flags.set(epoll::EventFlags::IN, wanted.0);
        flags.set(epoll::EventFlags::OUT, wanted.1);
        let data = epoll::EventData::new_u64(id.into());
        let fd = connection.stream.as_fd();
        if epoll::modify(&self.epoll, fd, data, flags).is_err() {
            self.remove(id);
        }
    }

    fn remove(&mut self, id: u32) {
        let Some(connection) = self.connections[id as usize].take() else { return };
        let reads = connection.session.reads();
        if self.shared.settings.verbosity >= log::CLIENTS {
            log::line(format_args!("{}: closed", connection.stream.as_fd().as_raw_fd()));
        }
        // A socket that is closed leaves the set by itself.
        drop(connection);
        self.waiting.retain(|&waiting| waiting != id);
        self.held.retain(|&held| held != id);
        self.open -= 1;
        self.shared.counters.curr_connections = self.open.into();
        match reads {
            0 => self.free.push(id),
            reads => drop(self.orphans.insert(id, reads)),
        }
        // Fails only if a listening socket is watched already.
        let _ = self.accept_more(true);
    }

    /// Closes connections that were idle for too long.
    fn expire(&mut self, now: u32) {
        let limit = self.shared.settings.idle_timeout;
        if limit == 0 || self.shared.counters.last_idle_check == u64::from(now) {
            return;
        }
        self.shared.counters.last_idle_check = now.into();
        for id in 0..self.connections.len() as u32 {
            let idle = |c: &Connection| now.saturating_sub(c.last_use) > limit;
            if self.connections[id as usize].as_ref().is_some_and(idle) {
                self.shared.counters.idle_kicks += 1;
                self.remove(id);
            }
        }
    }

    /// Answers what was received, and makes everything durable.
    fn close(&mut self) -> Result<(), ServerError> {
        self.touched.extend(0..self.connections.len() as u32);
        self.turn();
        // Nothing more is received, so that this ends.
        while !self.yielded.is_empty() || !self.held.is_empty() {
            if self.yielded.is_empty() {
                self.cache.wait(None);
            }
            self.turn();
        }
        self.connections.clear();
        self.listeners.clear();
        let device = "the device".to_owned();
        self.cache.close().map_err(|source| ServerError::Flash { device, source })
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Whether there is no file descriptor or no memory for a client.
pub(crate) fn is_limit(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(code, Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM))
}
