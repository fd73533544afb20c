//! The event loop: one thread, which waits for sockets and flash by epoll.
//!
//! Each turn takes what flash has completed, executes what clients have sent, and sends what is to
//! be answered; only then it sleeps. Nothing else waits: reads of flash are in flight while other
//! commands are executed.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use prism_base::Nanos;
use prism_cache::items::Items;
use prism_cache::protocol::{Session, Shared};
use rustix::event::epoll;
use rustix::io::Errno;

use crate::listen::{Listener, Stream};
use crate::open::{Backend, ServerError, unix_now};

/// Data of events that are not those of a session.
const LISTENERS: u64 = 1 << 62;
const FLASH: u64 = 1 << 63;
/// Bytes that are read at once.
const READ: usize = 64 << 10;
/// Events that are taken at once.
const EVENTS: usize = 256;

/// A client.
struct Connection {
    stream: Stream,
    session: Session,
    /// Whether the socket is watched for reading and for writing.
    watched: (bool, bool),
    /// The client sends no more.
    ended: bool,
    last_use: u32,
}

/// A server.
pub struct Server {
    cache: Backend,
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
    accepting: bool,
}

fn failed(what: &str) -> impl FnOnce(Errno) -> ServerError + '_ {
    move |error| ServerError::Io { what: what.to_owned(), source: error.into() }
}

impl Server {
    /// A server of `cache` on these sockets.
    ///
    /// # Errors
    /// [`ServerError::Io`].
    pub fn new(
        cache: Backend,
        shared: Shared,
        listeners: Vec<Listener>,
    ) -> Result<Self, ServerError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed("epoll"))?;
        let server = Self {
            cache,
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
            accepting: false,
        };
        Ok(server)
    }

    /// Serves until `stop` says so, which is asked at least twice a second and after each signal,
    /// or a client shuts it down; then closes the cache.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn run(&mut self, stop: &dyn Fn() -> bool) -> Result<(), ServerError> {
        self.accept_more(true)?;
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
        }
        self.close()
    }

    /// Nanoseconds until the loop has to look at its clock.
    fn timeout(&self) -> i64 {
        const TICK: i64 = 500_000_000;
        const SOON: i64 = 1_000_000;
        // On a device whose commands are complete at once nothing wakes the loop.
        let waits = !self.cache.is_idle() && self.cache.event_fd().is_none();
        if waits || !self.waiting.is_empty() { SOON } else { TICK }
    }

    /// Watches the queue of the device, whose descriptor can change.
    fn watch_flash(&mut self, watched: &mut Option<i32>) -> Result<(), ServerError> {
        use std::os::fd::AsRawFd;
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

    fn accept(&mut self, listener: usize) -> Result<(), ServerError> {
        loop {
            let stream = match self.listeners[listener].accept() {
                Ok(stream) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // Too many files: those that close make place.
                Err(error) if is_limit(&error) => return self.accept_more(false),
                // The client is gone already.
                Err(_) => continue,
            };
            self.shared.counters.total_connections += 1;
            if self.open >= self.shared.settings.maxconns {
                self.shared.counters.rejected_connections += 1;
                let mut stream = stream;
                let _ = stream.write(b"ERROR Too many open connections\r\n");
                continue;
            }
            self.add(stream)?;
        }
    }

    fn add(&mut self, stream: Stream) -> Result<(), ServerError> {
        let id = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() as u32 - 1
        });
        let data = epoll::EventData::new_u64(id.into());
        epoll::add(&self.epoll, stream.as_fd(), data, epoll::EventFlags::IN)
            .map_err(failed("epoll"))?;
        let session = Session::new(id);
        let (watched, last_use) = ((true, false), self.shared.now);
        let connection = Connection { stream, session, watched, ended: false, last_use };
        self.connections[id as usize] = Some(connection);
        self.open += 1;
        self.shared.counters.curr_connections = self.open.into();
        Ok(())
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
            Err(_) => connection.ended = true,
        }
    }

    /// Executes and answers, until nothing more can be done without waiting.
    fn turn(&mut self) {
        self.execute();
        loop {
            self.cache.progress(Nanos(self.begun.elapsed().as_nanos() as u64));
            let finished = self.finish_reads();
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
            while let Some(connection) = &mut self.connections[id as usize] {
                connection.session.run(&mut self.cache, &mut self.shared);
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
        // A socket that is closed leaves the set by itself.
        drop(connection);
        self.waiting.retain(|&waiting| waiting != id);
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
        for id in 0..self.connections.len() as u32 {
            self.touched.push(id);
        }
        self.turn();
        self.connections.clear();
        self.listeners.clear();
        let device = "the device".to_owned();
        self.cache.close().map_err(|source| ServerError::Flash { device, source })
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn is_limit(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(code, Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM))
}
