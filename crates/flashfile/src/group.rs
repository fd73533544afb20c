//! Syncs of several threads and queues, which become few commits: those that come while one is in
//! progress share the next.
//!
//! A thread that calls `sync` makes the commit itself, or waits for one. The syncs of queues go to
//! a ring, which writes the entry and makes it durable; the next thread that looks for replies, of
//! whatever queue, or that has to wait for the commit, completes it. What would have to wait for
//! something else, as a checkpoint, goes to threads.

use std::io;
use std::mem;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, TryLockError};
use std::thread;

use prism_flash::{MediumError, PageState, Reply, Request};

use crate::commit::{Commit, InFlight};
use crate::device::FlashFile;
use crate::engine::Engine;
use crate::uring::CommitRing;
use crate::workers::Inbox;

const UNPOISONED: &str = "no thread panics while it holds the syncs";

/// Syncs begun and completed, by number.
#[derive(Debug, Default)]
struct Numbers {
    begun: u64,
    done: u64,
    /// Whether the one in progress is the ring's.
    by_ring: bool,
    /// Whether the device is being closed, and the ring begins no commit.
    closing: bool,
    /// Whether a thread has waited for a sync since the last one began.
    crowded: bool,
    /// The error of the last one, for those who waited for it.
    failed: Option<MediumError>,
}

/// The syncs of a device.
#[derive(Default)]
pub(crate) struct Syncs {
    numbers: Mutex<Numbers>,
    /// For those who wait for a sync with an even number, and with an odd one: a sync wakes those
    /// who wait for it, and one of those who wait for the next.
    done: [Condvar; 2],
    /// Syncs of queues that wait for the next commit of the ring.
    waiting: Mutex<Vec<QueuedSync>>,
    /// Made for the first sync of a queue; `None` if the system gives none.
    ring: OnceLock<Option<Ring>>,
}

/// The ring for commits.
struct Ring {
    fd: RawFd,
    /// Whether the kernel has not taken a commit: threads make the syncs from then on.
    given_up: AtomicBool,
    /// Locked before `numbers` and the state of the device.
    state: Mutex<RingState>,
}

struct RingState {
    ring: CommitRing,
    /// The syncs that the commit in progress is for.
    syncs: Vec<QueuedSync>,
}

/// A sync that a queue has submitted.
struct QueuedSync {
    file: Arc<FlashFile>,
    request: Request,
    inbox: Arc<Inbox>,
}

impl QueuedSync {
    fn reply(self, result: Result<(), MediumError>) {
        let Self { file, request: Request { tag, data, oob, .. }, inbox } = self;
        // Not the last owner: the queue waits for the reply.
        drop(file);
        let result = result.map(|()| PageState::Written);
        inbox.put(Reply { tag, result, data, oob });
    }
}

impl std::fmt::Debug for Syncs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Syncs").field("numbers", &self.numbers).finish_non_exhaustive()
    }
}

/// How a commit by the ring begins.
enum Begun {
    /// Everything is durable.
    Clean,
    /// It would have to wait.
    Waits,
    Commit(Commit),
}

impl FlashFile {
    fn numbers(&self) -> MutexGuard<'_, Numbers> {
        self.syncs.numbers.lock().expect(UNPOISONED)
    }

    /// Makes everything durable that is complete now.
    pub(crate) fn sync_group(&self) -> Result<(), MediumError> {
        let mut numbers = self.numbers();
        // One that begins from now on: one in progress may not have everything.
        let wanted = numbers.begun + 1;
        let mut yielded = false;
        loop {
            if numbers.done >= wanted {
                return numbers.failed.clone().map_or(Ok(()), Err);
            }
            if numbers.done < numbers.begun {
                numbers = self.wait_for_sync(wanted, numbers);
            } else if yielded || !numbers.crowded {
                return self.lead(numbers, || self.commit());
            } else {
                // Threads that run next and write something more get it into this commit. A thread
                // that syncs alone would only give way to other programs.
                drop(numbers);
                thread::yield_now();
                (numbers, yielded) = (self.numbers(), true);
            }
        }
    }

    /// Begins a sync that also covers programs in flight of the calling thread, which writes the
    /// entry, waits for it and for them, and calls [`FlashFile::end_in_flight`]. Others wait for
    /// that. `None` if another sync is in progress, or if more has to be waited for.
    pub(crate) fn begin_in_flight(&self, programs: &mut [InFlight]) -> Option<Commit> {
        let mut numbers = self.numbers();
        if numbers.done < numbers.begun || numbers.closing {
            return None;
        }
        let mut core = self.core();
        core.check_writable().ok()?;
        let commit = core.begin_commit_in_flight(programs)?;
        numbers.begun += 1;
        Some(commit)
    }

    /// Makes the entry durable that was begun by [`FlashFile::begin_in_flight`], and ends its sync.
    pub(crate) fn end_in_flight(
        &self,
        commit: Commit,
        written: io::Result<()>,
    ) -> Result<(), MediumError> {
        let result = self.make_durable(commit, written);
        self.end_sync(result.clone());
        result
    }

    /// Calls `commit` while no sync is in progress; others wait for it, or take it for theirs.
    pub(crate) fn alone(
        &self,
        commit: impl FnOnce() -> Result<(), MediumError>,
    ) -> Result<(), MediumError> {
        let mut numbers = self.numbers();
        numbers.closing = true;
        while numbers.done < numbers.begun {
            numbers = self.wait_for_sync(numbers.begun, numbers);
        }
        let result = self.lead(numbers, commit);
        self.numbers().closing = false;
        result
    }

    /// Calls `commit` as the next sync, when none is in progress.
    fn lead(
        &self,
        mut numbers: MutexGuard<'_, Numbers>,
        commit: impl FnOnce() -> Result<(), MediumError>,
    ) -> Result<(), MediumError> {
        (numbers.begun, numbers.crowded) = (numbers.begun + 1, false);
        drop(numbers);
        let result = commit();
        self.end_sync(result.clone());
        result
    }

    fn end_sync(&self, result: Result<(), MediumError>) {
        let mut numbers = self.numbers();
        (numbers.done, numbers.by_ring) = (numbers.begun, false);
        numbers.failed = result.err();
        let done = numbers.done;
        drop(numbers);
        self.syncs.done[((done + 1) % 2) as usize].notify_one();
        self.syncs.done[(done % 2) as usize].notify_all();
    }

    /// Waits until sync `number` may be complete, or may be begun by this thread.
    fn wait_for_sync<'a>(
        &'a self,
        number: u64,
        mut numbers: MutexGuard<'a, Numbers>,
    ) -> MutexGuard<'a, Numbers> {
        numbers.crowded = true;
        if !numbers.by_ring {
            return self.syncs.done[(number % 2) as usize].wait(numbers).expect(UNPOISONED);
        }
        drop(numbers);
        if let Some(ring) = self.commit_ring() {
            let mut state = ring.state.lock().expect(UNPOISONED);
            // Another thread may have completed it meanwhile, and begun the next.
            let wait = {
                let numbers = self.numbers();
                numbers.by_ring && numbers.done < number
            };
            self.advance(&mut state, wait);
        }
        self.drive_syncs();
        self.numbers()
    }

    fn commit_ring(&self) -> Option<&Ring> {
        let make = || match (&*self.engine, CommitRing::new()) {
            (Engine::Uring(_), Ok(ring)) => {
                let (fd, syncs) = (ring.fd(), Vec::new());
                let given_up = AtomicBool::new(false);
                Some(Ring { fd, given_up, state: Mutex::new(RingState { ring, syncs }) })
            }
            _ => None,
        };
        self.syncs.ring.get_or_init(make).as_ref()
    }

    /// Submits a sync of a queue: its reply comes to `inbox`. Returns the descriptor that is
    /// readable when [`FlashFile::drive_syncs`] should be called; `None` if a thread makes the
    /// sync.
    pub(crate) fn queue_sync(
        self: &Arc<Self>,
        request: Request,
        inbox: &Arc<Inbox>,
    ) -> Option<RawFd> {
        let usable = |ring: &&Ring| inbox.fd().is_some() && !ring.given_up.load(Ordering::Relaxed);
        let Some(ring) = self.commit_ring().filter(usable) else {
            self.workers().execute(self, request, inbox);
            return None;
        };
        let (file, inbox) = (Arc::clone(self), Arc::clone(inbox));
        self.waiting().push(QueuedSync { file, request, inbox });
        self.drive_syncs();
        Some(ring.fd)
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<QueuedSync>> {
        self.syncs.waiting.lock().expect(UNPOISONED)
    }

    /// Completes the commit of the ring if it is durable, and begins the next one. Does not wait.
    pub(crate) fn drive_syncs(&self) {
        let Some(Some(ring)) = self.syncs.ring.get() else { return };
        loop {
            let busy = match ring.state.try_lock() {
                Ok(mut state) => {
                    let busy = self.advance(&mut state, false);
                    ring.given_up.store(state.ring.has_given_up(), Ordering::Relaxed);
                    busy
                }
                // The thread that is here looks for syncs once more when it has left.
                Err(TryLockError::WouldBlock) => return,
                Err(TryLockError::Poisoned(_)) => panic!("{UNPOISONED}"),
            };
            if busy || self.waiting().is_empty() {
                return;
            }
        }
    }

    /// Completes the commit of the ring and begins the next one, if syncs wait. Returns whether a
    /// commit is in progress afterwards.
    fn advance(&self, state: &mut RingState, wait: bool) -> bool {
        let Engine::Uring(direct) = &*self.engine else { return false };
        loop {
            if let Some((commit, result)) = state.ring.take(&direct.file, wait) {
                let mut core = self.core();
                let result = match result {
                    Ok(()) => {
                        core.end_commit(commit);
                        Ok(())
                    }
                    Err(error) => Err(core.refuse("making it durable", &error)),
                };
                drop(core);
                self.end_sync(result.clone());
                state.syncs.drain(..).for_each(|sync| sync.reply(result.clone()));
            }
            if !state.ring.is_idle() {
                return true;
            }
            let syncs = mem::take(&mut *self.waiting());
            if syncs.is_empty() {
                return false;
            }
            match self.begin_by_ring(state.ring.has_given_up()) {
                Ok(Begun::Commit(commit)) => {
                    state.syncs = syncs;
                    // The next turn sees whether it has failed already.
                    state.ring.begin(direct, commit);
                }
                Ok(Begun::Clean) => syncs.into_iter().for_each(|sync| sync.reply(Ok(()))),
                Ok(Begun::Waits) => syncs.into_iter().for_each(|sync| {
                    let QueuedSync { file, request, inbox } = sync;
                    self.workers().execute(&file, request, &inbox);
                }),
                Err(error) => {
                    syncs.into_iter().for_each(|sync| sync.reply(Err(error.clone())));
                }
            }
        }
    }

    fn begin_by_ring(&self, given_up: bool) -> Result<Begun, MediumError> {
        let mut numbers = self.numbers();
        if numbers.done < numbers.begun || numbers.closing || given_up {
            return Ok(Begun::Waits);
        }
        let mut core = self.core();
        if core.is_durable() {
            return Ok(Begun::Clean);
        }
        core.check_writable()?;
        if core.commit_waits() {
            return Ok(Begun::Waits);
        }
        let begun = core.begin_commit();
        let commit = begun.map_err(|error| core.refuse("making it durable", &error))?;
        (numbers.begun, numbers.by_ring) = (numbers.begun + 1, true);
        Ok(Begun::Commit(commit))
    }
}
