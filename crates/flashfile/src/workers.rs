//! Threads for operations that wait for the disk: syncs of queues, and every operation where there
//! is no io_uring.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use prism_base::Nanos;
use prism_flash::medium::execute;
use prism_flash::{MediumQueue, Op, Reply, Request};
use rustix::event::{EventfdFlags, eventfd};

use crate::device::FlashFile;

/// Threads of a device: enough that its operations merge in the disk's queue.
const THREADS: usize = 4;

/// An operation, and where its reply goes.
struct Job {
    file: Arc<FlashFile>,
    request: Request,
    inbox: Arc<Inbox>,
}

/// The threads of a device; each takes its own operations.
#[derive(Debug)]
pub(crate) struct Workers {
    senders: Mutex<(usize, Vec<Sender<Job>>)>,
}

impl Workers {
    /// `THREADS` threads, or as many as the system gives.
    pub(crate) fn new() -> Self {
        Self::with(THREADS)
    }

    fn with(threads: usize) -> Self {
        Self { senders: Mutex::new((0, (0..threads).filter_map(|_| worker().ok()).collect())) }
    }

    /// Executes an operation on some thread; programs of one block on the same one, in their order.
    /// Without threads, the caller executes it.
    pub(crate) fn execute(&self, file: &Arc<FlashFile>, request: Request, inbox: &Arc<Inbox>) {
        let mut senders = self.senders.lock().expect("no thread panics while it holds the list");
        let threads = senders.1.len();
        let job = Job { file: Arc::clone(file), request, inbox: Arc::clone(inbox) };
        if threads == 0 {
            drop(senders);
            return job.execute();
        }
        let place = match job.request.op {
            Op::Program { block, .. } => block as usize % threads,
            Op::Read { .. } | Op::Sync => {
                senders.0 = (senders.0 + 1) % threads;
                senders.0
            }
        };
        senders.1[place].send(job).expect("the thread lives as long as the sender");
    }
}

impl Job {
    fn execute(self) {
        let Self { file, request, inbox } = self;
        let reply = execute(&*file, request);
        // The device may be closed by this, before the owner of the queue knows.
        drop(file);
        inbox.put(reply);
    }
}

/// A thread that executes jobs until its sender is dropped.
fn worker() -> io::Result<Sender<Job>> {
    let (sender, jobs): (Sender<Job>, Receiver<Job>) = channel();
    thread::Builder::new().spawn(move || jobs.into_iter().for_each(Job::execute))?;
    Ok(sender)
}

/// Replies for one queue.
#[derive(Debug)]
pub(crate) struct Inbox {
    replies: Mutex<VecDeque<Reply>>,
    arrived: Condvar,
    /// Readable while there are replies; `None` if the system gives no such descriptor.
    event: Option<OwnedFd>,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let event = eventfd(0, flags).ok();
        Self { replies: Mutex::default(), arrived: Condvar::new(), event }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Reply>> {
        self.replies.lock().expect("no thread panics while it holds the replies")
    }

    pub(crate) fn put(&self, reply: Reply) {
        // The descriptor is written under the lock, so that it is not readable without replies.
        let mut replies = self.lock();
        replies.push_back(reply);
        self.arrived.notify_all();
        if let Some(event) = &self.event {
            let _ = rustix::io::write(event, &1u64.to_ne_bytes());
        }
    }

    pub(crate) fn take(&self) -> Option<Reply> {
        let mut replies = self.lock();
        let reply = replies.pop_front()?;
        if replies.is_empty()
            && let Some(event) = &self.event
        {
            let _ = rustix::io::read(event, &mut [0; 8]);
        }
        Some(reply)
    }

    /// Waits for a reply; false if the time is over.
    pub(crate) fn wait(&self, timeout: Option<Nanos>) -> bool {
        let end = timeout.map(|timeout| Instant::now() + Duration::from_nanos(timeout.0));
        let mut replies = self.lock();
        while replies.is_empty() {
            let unpoisoned = "no thread panics while it holds the replies";
            replies = match end.map(|end| end.saturating_duration_since(Instant::now())) {
                None => self.arrived.wait(replies).expect(unpoisoned),
                Some(left) if left.is_zero() => return false,
                Some(left) => self.arrived.wait_timeout(replies, left).expect(unpoisoned).0,
            };
        }
        true
    }

    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.event.as_ref().map(AsFd::as_fd)
    }
}

/// A queue whose operations are all executed by threads.
pub(crate) struct WorkerQueue {
    file: Arc<FlashFile>,
    inbox: Arc<Inbox>,
    in_flight: usize,
}

impl WorkerQueue {
    pub(crate) fn new(file: Arc<FlashFile>) -> Self {
        Self { file, inbox: Arc::new(Inbox::new()), in_flight: 0 }
    }
}

impl MediumQueue for WorkerQueue {
    fn submit(&mut self, request: Request) {
        if matches!(request.op, Op::Program { .. }) {
            // Here and not in the thread, which would end.
            self.file.assert_whole_pages(request.data.len());
        }
        self.in_flight += 1;
        self.file.workers().execute(&self.file, request, &self.inbox);
    }

    fn take(&mut self) -> Option<Reply> {
        let reply = self.inbox.take()?;
        self.in_flight -= 1;
        Some(reply)
    }

    fn wait(&mut self, timeout: Option<Nanos>) -> bool {
        self.in_flight > 0 && self.inbox.wait(timeout)
    }

    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        self.inbox.fd()
    }
}

impl Drop for WorkerQueue {
    fn drop(&mut self) {
        while self.wait(None) {
            self.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use prism_flash::{Buffer, DeviceGeometry, PageState};

    use super::*;
    use crate::SimulatedFile;

    /// A process may have all threads that the system allows it.
    #[test]
    fn without_threads_the_caller_executes_operations() {
        let geometry = DeviceGeometry {
            channels: 1,
            luns_per_channel: 1,
            blocks_per_lun: 4,
            pages_per_block: 4,
            page_size: 512,
            oob_size: 0,
            max_open_blocks: None,
        };
        let file = FlashFile::create_simulated(&SimulatedFile::new(), geometry).unwrap();
        let (file, inbox) = (Arc::new(file), Arc::new(Inbox::new()));
        let all = [
            (Op::Program { block: 1, page: 0 }, data_of(7)),
            (Op::Sync, Buffer::default()),
            (Op::Read { block: 1, page: 0, offset: 0 }, data_of(0)),
        ];
        let workers = Workers::with(0);
        for (tag, (op, data)) in (0..).zip(all) {
            workers.execute(&file, Request { tag, op, data, oob: Vec::new() }, &inbox);
            let reply = inbox.take().expect("it is complete");
            assert_eq!((reply.tag, reply.result), (tag, Ok(PageState::Written)));
            assert!(tag != 2 || reply.data == data_of(7));
        }
        assert!(file.core().is_durable());
    }

    fn data_of(byte: u8) -> Buffer {
        vec![byte; 512].into()
    }
}
