//! The operations of one thread in flight, on a ring of its own.
//!
//! A read goes to the kernel at once while few operations are in flight, else four together: a
//! disk that waits for the next batch is idle. Writes always go four together, or with the next
//! wait. The data is read into the caller's buffer and written from it if it is aligned, else
//! copied. A sync goes to the ring for commits, and a program that needs one first to a thread.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use prism_base::{Nanos, Slab};
use prism_flash::{Buffer, MediumError, MediumQueue, Op, PageState, Reply, Request};
use rustix::io::Errno;

use super::ring::{self, bytes_done, is_passing};
use crate::buffers::Aligned;
use crate::device::FlashFile;
use crate::engine::{Direct, Engine, is_aligned};
use crate::error::medium_failure;
use crate::state::Begun;
use crate::workers::Inbox;

mod in_flight;

/// Operations in the kernel at once: more make no disk faster, and their latency longer.
const IN_KERNEL_MAX: usize = 128;
/// Operations that are submitted together when many are in flight.
const TOGETHER: usize = 4;
/// Operations in flight below which each is submitted at once.
const FEW: usize = 8;
/// The numbers of the operations that wait for replies of others, and for the ring of commits.
const INBOX: u64 = u64::MAX;
const COMMIT: u64 = u64::MAX - 1;
/// The number of the write of an entry of the journal.
const ENTRY: u64 = u64::MAX - 2;

/// An operation that the kernel has.
struct Flight {
    request: Request,
    epoch: u32,
    /// Where the transfer begins in the file, and its bytes.
    at: u64,
    len: usize,
    /// Of a read: where the transfer begins, relative to its first page.
    first: usize,
    /// Of a program: the headers of its pages.
    headers: Vec<u8>,
    /// The memory of the transfer, if it is not that of the caller.
    copy: Option<Aligned>,
}

impl Flight {
    fn bytes(&mut self) -> &mut [u8] {
        match &mut self.copy {
            Some(copy) => &mut copy.as_mut()[..self.len],
            None => &mut self.request.data[..self.len],
        }
    }
}

/// The ring of a thread.
struct ThreadRing {
    thread: ThreadId,
    ring: IoUring,
    /// Whether the kernel watches the inbox and the ring of commits for it.
    watching: bool,
    watching_commit: bool,
}

/// Rings that are kept for threads which take turns: to make and remove one takes six system calls.
const THREADS: usize = 8;

/// A queue.
pub(crate) struct UringQueue {
    file: Arc<FlashFile>,
    /// The ring of the thread that uses the queue, and those of threads that did before.
    ring: IoUring,
    thread: ThreadId,
    others: Vec<ThreadRing>,
    flights: Slab<Option<Box<Flight>>>,
    /// Operations that the kernel has or gets with the next system call, and of those the latter.
    in_flight: usize,
    pushed: usize,
    limit: usize,
    /// Requests that wait for others to complete, in order.
    later: VecDeque<Request>,
    replies: VecDeque<Reply>,
    inbox: Arc<Inbox>,
    /// Operations that this ring does not execute; of those the programs, with their number there,
    /// the caller's tag and the block; and programs of such blocks, which come after them.
    outside: usize,
    outside_programs: Vec<(u64, u64, u32)>,
    next_outside: u64,
    held: VecDeque<Request>,
    /// Whether the kernel watches the inbox, and the ring of commits, which has this descriptor.
    watching: bool,
    watching_commit: bool,
    commit_fd: Option<RawFd>,
    /// Memory for an entry of the journal, and the result of its write.
    entry: Option<Aligned>,
    entry_written: Option<i32>,
}

impl UringQueue {
    pub(crate) fn new(file: Arc<FlashFile>, depth: usize) -> io::Result<Self> {
        let limit = depth.clamp(1, IN_KERNEL_MAX);
        Ok(Self {
            file,
            ring: ring::new(limit + 3, true)?,
            thread: thread::current().id(),
            others: Vec::new(),
            flights: Slab::new(),
            in_flight: 0,
            pushed: 0,
            limit,
            later: VecDeque::new(),
            replies: VecDeque::new(),
            inbox: Arc::new(Inbox::new()),
            outside: 0,
            outside_programs: Vec::new(),
            next_outside: 0,
            held: VecDeque::new(),
            watching: false,
            watching_commit: false,
            commit_fd: None,
            entry: None,
            entry_written: None,
        })
    }

    fn direct(&self) -> &Direct {
        let Engine::Uring(direct) = &*self.file.engine else {
            unreachable!("a ring needs direct I/O")
        };
        direct
    }

    fn begin(&mut self, request: Request) {
        match request.op {
            Op::Read { block, page, offset } => self.begin_read(request, block, page, offset),
            Op::Program { block, page } => self.begin_program(request, block, page),
            Op::Sync => {
                self.outside += 1;
                let fd = self.file.queue_sync(request, &self.inbox);
                self.commit_fd = self.commit_fd.or(fd);
            }
        }
    }

    fn begin_read(&mut self, request: Request, block: u32, page: u32, offset: u32) {
        let record = self.file.record(block);
        let len = request.data.len();
        let page_at = self.file.layout.page_at(block, page);
        let size = u64::from(self.file.layout.geometry.page_size);
        let pages = (u64::from(offset) + len as u64).div_ceil(size).max(1);
        let in_memory = |page| self.direct().is_behind(page_at + page * size);
        if len == 0 || !self.file.is_written(record, page, offset, len) || (0..pages).any(in_memory)
        {
            let reply = prism_flash::medium::execute(&*self.file, request);
            return self.replies.push_back(reply);
        }
        let (first, end) = self.file.chunks(offset, len);
        let fits = end - first == len && is_aligned(request.data.as_ptr() as usize as u64);
        let copy = if fits { None } else { Aligned::new(end - first).ok() };
        if !fits && copy.is_none() {
            let reply = prism_flash::medium::execute(&*self.file, request);
            return self.replies.push_back(reply);
        }
        // Otherwise it would be read only when the page is there.
        self.file.read_header_ahead(block, page);
        let (epoch, at, len) = (record.erases, page_at + first as u64, end - first);
        let headers = Vec::new();
        let mut flight = Box::new(Flight { request, epoch, at, len, first, headers, copy });
        let pointer = flight.bytes().as_mut_ptr();
        let entry = opcode::Read::new(Fd(self.direct().direct.as_raw_fd()), pointer, len as u32);
        self.push(flight, entry.offset(at).build());
    }

    fn begin_program(&mut self, request: Request, block: u32, page: u32) {
        let size = self.file.layout.geometry.page_size as usize;
        let len = request.data.len();
        self.file.assert_whole_pages(len);
        let begun = self.file.core().begin_program(block, page, (len / size) as u32);
        let epoch = match begun {
            Ok(Begun::Write { epoch }) => epoch,
            Ok(Begun::SyncFirst) => return self.send_outside(request, block),
            Err(error) => return self.reply(request, Err(error)),
        };
        let headers = self.file.headers_of((block, page, epoch), &request.data, &request.oob);
        let mut copy = None;
        if !is_aligned(request.data.as_ptr() as usize as u64) {
            match Aligned::new(len) {
                Ok(mut memory) => {
                    memory.as_mut().copy_from_slice(&request.data);
                    copy = Some(memory);
                }
                Err(error) => {
                    let failure = self.file.core().fail_program(block, &error);
                    return self.reply(request, Err(failure));
                }
            }
        }
        let at = self.file.layout.page_at(block, page);
        let mut flight = Box::new(Flight { request, epoch, at, len, first: 0, headers, copy });
        let pointer = flight.bytes().as_ptr();
        let entry = opcode::Write::new(Fd(self.direct().direct.as_raw_fd()), pointer, len as u32);
        self.push(flight, entry.offset(at).build());
    }

    fn reply(&mut self, request: Request, result: Result<PageState, MediumError>) {
        let Request { tag, data, oob, .. } = request;
        self.replies.push_back(Reply { tag, result, data, oob });
    }

    /// Has a thread execute a program.
    fn send_outside(&mut self, mut request: Request, block: u32) {
        self.outside += 1;
        self.next_outside += 1;
        self.outside_programs.push((self.next_outside, request.tag, block));
        request.tag = self.next_outside;
        self.file.workers().execute(&self.file, request, &self.inbox);
    }

    /// Whether a request has to come after a program that a thread executes.
    fn is_held(&self, request: &Request) -> bool {
        let Op::Program { block, .. } = request.op else { return false };
        self.outside_programs.iter().any(|&(_, _, outside)| outside == block)
    }

    fn push(&mut self, flight: Box<Flight>, entry: squeue::Entry) {
        let reads = matches!(flight.request.op, Op::Read { .. });
        let place = self.flights.take();
        self.flights[place] = Some(flight);
        self.push_entry(&entry.user_data(place.into()));
        self.in_flight += 1;
        if self.pushed >= TOGETHER || reads && self.in_flight <= FEW {
            self.enter(0, None);
        }
    }

    fn push_entry(&mut self, entry: &squeue::Entry) {
        loop {
            // SAFETY: the memory is that of the flight, which stays where it is and is not accessed
            // until the operation is complete: `flights` has it, and `drop` waits. That of an entry
            // of the journal is in `entry` until its write is complete. The descriptor is open as
            // long as `file`.
            #[allow(unsafe_code, reason = "the kernel gets an address")]
            let pushed = unsafe { self.ring.submission().push(entry) };
            if pushed.is_ok() {
                self.pushed += 1;
                return;
            }
            self.enter(0, None);
        }
    }

    /// Submits what was pushed, and waits for `wanted` completions or until the time is over.
    fn enter(&mut self, wanted: usize, timeout: Option<Nanos>) {
        let done = match timeout {
            Some(timeout) if wanted > 0 && !self.ring.params().is_feature_ext_arg() => {
                ring::wait_by_looking(&mut self.ring, timeout)
            }
            Some(timeout) if wanted > 0 => {
                let time = Timespec::new()
                    .sec(timeout.0 / 1_000_000_000)
                    .nsec((timeout.0 % 1_000_000_000) as u32);
                let args = SubmitArgs::new().timespec(&time);
                self.ring.submitter().submit_with_args(wanted, &args)
            }
            _ => self.ring.submit_and_wait(wanted),
        };
        match done {
            Ok(_) => self.pushed = self.ring.submission().len(),
            Err(error) => {
                self.pushed = self.ring.submission().len();
                let over = Errno::from_io_error(&error) == Some(Errno::TIME);
                assert!(over || is_passing(&error), "io_uring refuses valid requests: {error}");
            }
        }
    }

    /// With the ring of this thread: completions are processed by the thread that submitted.
    fn own_thread(&mut self) {
        let thread = thread::current().id();
        if self.thread == thread {
            return;
        }
        while self.in_flight > 0 {
            self.enter(1, None);
            while self.process_one() {}
        }
        let kept = self.others.iter().position(|other| other.thread == thread);
        let next = match kept {
            Some(at) => self.others.remove(at),
            None => {
                let new = || ring::new(self.limit + 3, true);
                let Ok(ring) = new().or_else(|_| {
                    // Too many descriptors, perhaps of threads that have ended.
                    self.others.clear();
                    new()
                }) else {
                    return;
                };
                ThreadRing { thread, ring, watching: false, watching_commit: false }
            }
        };
        self.others.push(ThreadRing {
            thread: mem::replace(&mut self.thread, thread),
            ring: mem::replace(&mut self.ring, next.ring),
            watching: mem::replace(&mut self.watching, next.watching),
            watching_commit: mem::replace(&mut self.watching_commit, next.watching_commit),
        });
        self.pushed = self.ring.submission().len();
        if self.others.len() >= THREADS {
            self.others.remove(0);
        }
    }

    /// Processes a completion of the kernel, if there is one.
    fn process_one(&mut self) -> bool {
        let next = self.ring.completion().next();
        let Some((place, result)) = next.map(|entry| (entry.user_data(), entry.result())) else {
            return false;
        };
        match place {
            INBOX => self.watching = false,
            COMMIT => self.watching_commit = false,
            ENTRY => self.entry_written = Some(result),
            _ => self.process(place as u32, result),
        }
        true
    }

    fn process(&mut self, place: u32, result: i32) {
        self.in_flight -= 1;
        let flight = self.flights[place].take().expect("the kernel had it");
        self.flights.give(place);
        // The next operation goes to the disk before the data of this one is checked.
        self.begin_later();
        self.complete(*flight, result);
    }

    fn complete(&mut self, mut flight: Flight, result: i32) {
        let transferred = self.finish_transfer(&mut flight, result);
        let result = match flight.request.op {
            Op::Read { block, page, offset } => match transferred {
                Ok(()) => self.check_read(&mut flight, block, page, offset),
                Err(error) => Err(medium_failure(&self.file.name, "reading", &error)),
            },
            Op::Program { block, page } => {
                let mut core = self.file.core();
                let ended = match transferred {
                    Ok(()) => {
                        let headers = mem::take(&mut flight.headers);
                        core.end_program(block, page, flight.epoch, headers)
                    }
                    Err(error) => Err(core.fail_program(block, &error)),
                };
                drop(core);
                ended.map(|()| PageState::Written)
            }
            Op::Sync => unreachable!("another ring has the syncs"),
        };
        self.reply(flight.request, result);
    }

    /// Transfers the rest of a short one, which also reveals its error.
    fn finish_transfer(&self, flight: &mut Flight, result: i32) -> io::Result<()> {
        let done = bytes_done(result)?.unwrap_or(0);
        if done == flight.len {
            return Ok(());
        }
        let (at, reads) = (flight.at, matches!(flight.request.op, Op::Read { .. }));
        let file = &self.direct().file;
        if reads {
            file.read_exact_at(&mut flight.bytes()[done..], at + done as u64)
        } else {
            file.write_all_at(&flight.bytes()[done..], at + done as u64)
        }
    }

    fn check_read(
        &self,
        flight: &mut Flight,
        block: u32,
        page: u32,
        offset: u32,
    ) -> Result<PageState, MediumError> {
        let (place, first) = ((block, page, flight.epoch), flight.first);
        let mut oob = mem::take(&mut flight.request.oob);
        let checked = self.file.check_chunks(place, first, flight.bytes(), &mut oob);
        flight.request.oob = oob;
        match checked {
            Ok(None) => {
                if let Some(copy) = &flight.copy {
                    let from = offset as usize - first;
                    let data = &mut flight.request.data;
                    let len = data.len();
                    data.copy_from_slice(&copy.as_ref()[from..from + len]);
                }
                Ok(PageState::Written)
            }
            // It was erased meanwhile.
            Ok(Some(_)) if self.file.record(block).erases != flight.epoch => Ok(PageState::Erased),
            Ok(Some(page)) => Err(MediumError::Damaged { block, page }),
            Err(error) => Err(medium_failure(&self.file.name, "reading", &error)),
        }
    }

    /// Begins requests that waited, as far as there is room.
    fn begin_later(&mut self) {
        while self.in_flight < self.limit {
            let Some(request) = self.later.pop_front() else { return };
            self.begin_or_hold(request);
        }
    }

    fn begin_or_hold(&mut self, request: Request) {
        if self.is_held(&request) {
            self.held.push_back(request);
        } else {
            self.begin(request);
        }
    }

    /// A thread has executed program `number` of those it got: others of its block may follow.
    fn release(&mut self, number: u64) -> u64 {
        let place = self.outside_programs.iter().position(|&(other, ..)| other == number);
        let (_, tag, _) = self.outside_programs.remove(place.expect("it was sent"));
        let held = mem::take(&mut self.held);
        // Before those that were submitted later.
        held.into_iter().rev().for_each(|request| self.later.push_front(request));
        self.begin_later();
        tag
    }

    /// Takes a reply of an operation that this ring did not execute.
    fn take_outside(&mut self) -> Option<Reply> {
        if self.outside == 0 {
            return None;
        }
        self.file.drive_syncs();
        let mut reply = self.inbox.take()?;
        self.outside -= 1;
        if !reply.data.is_empty() {
            reply.tag = self.release(reply.tag);
        }
        Some(reply)
    }

    /// Has the kernel complete an operation when there is a reply or the ring of commits has
    /// something, which also makes this ring's descriptor readable. Returns whether it did not yet.
    fn watch_others(&mut self) -> bool {
        if self.outside == 0 {
            return false;
        }
        let inbox = self.inbox.fd().filter(|_| !self.watching).map(|fd| fd.as_raw_fd());
        let commit = self.commit_fd.filter(|_| !self.watching_commit);
        if let Some(fd) = inbox {
            self.watch(fd, INBOX);
            self.watching = true;
        }
        if let Some(fd) = commit {
            self.watch(fd, COMMIT);
            self.watching_commit = true;
        }
        inbox.is_some() || commit.is_some()
    }

    fn watch(&mut self, fd: RawFd, number: u64) {
        const READABLE: u32 = 1;
        let poll = opcode::PollAdd::new(Fd(fd), READABLE).build().user_data(number);
        self.push_entry(&poll);
    }
}

impl MediumQueue for UringQueue {
    fn submit(&mut self, request: Request) {
        self.own_thread();
        if self.in_flight >= self.limit || !self.later.is_empty() {
            self.later.push_back(request);
        } else {
            self.begin_or_hold(request);
        }
        // An event loop sleeps on the ring's descriptor.
        self.watch_others();
    }

    fn take(&mut self) -> Option<Reply> {
        self.own_thread();
        let mut entered = false;
        loop {
            if let Some(reply) = self.replies.pop_front() {
                return Some(reply);
            }
            if self.process_one() {
                continue;
            }
            if let Some(reply) = self.take_outside() {
                return Some(reply);
            }
            if self.in_flight == 0 && self.outside == 0 {
                return None;
            }
            // The caller may sleep on the descriptor after this, so everything is watched: what was
            // watched may have happened already.
            let watches_more = self.watch_others();
            if entered && !watches_more {
                return None;
            }
            // Submits the last ones, and lets the kernel process completions.
            self.enter(0, None);
            entered = true;
        }
    }

    fn wait(&mut self, timeout: Option<Nanos>) -> bool {
        self.own_thread();
        let end = timeout.map(|timeout| Instant::now() + Duration::from_nanos(timeout.0));
        let left = || {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            left.map(|left| Nanos(left.as_nanos() as u64))
        };
        loop {
            if !self.replies.is_empty() {
                return true;
            }
            while self.replies.is_empty() && self.process_one() {}
            if !self.replies.is_empty() {
                return true;
            }
            if let Some(reply) = self.take_outside() {
                self.replies.push_back(reply);
                return true;
            }
            if self.in_flight == 0 && self.outside == 0 {
                return false;
            }
            self.watch_others();
            if self.in_flight == 0 && !self.watching {
                return self.inbox.wait(left()) && {
                    let reply = self.take_outside();
                    self.replies.extend(reply);
                    !self.replies.is_empty()
                };
            }
            self.enter(1, left());
            if self.ring.completion().is_empty() && left() == Some(Nanos::ZERO) {
                return false;
            }
        }
    }

    fn can_sync_in_flight(&self) -> bool {
        true
    }

    fn sync_in_flight(&mut self, tag: u64) {
        self.own_thread();
        let result = self.commit_in_flight().unwrap_or_else(|| {
            let mut replies = mem::take(&mut self.replies);
            while self.wait(None) {
                replies.append(&mut self.replies);
            }
            self.replies = replies;
            self.file.sync_group()
        });
        let result = result.map(|()| PageState::Written);
        self.replies.push_back(Reply { tag, result, data: Buffer::default(), oob: Vec::new() });
    }

    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.ring.as_fd())
    }
}

impl Drop for UringQueue {
    fn drop(&mut self) {
        while self.wait(None) {
            while self.take().is_some() {}
        }
    }
}
