//! The submission and completion queues.

use std::io;
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::{Duration, Instant};

use io_uring::{IoUring, squeue};
use prism_base::Nanos;
use rustix::io::Errno;

use super::{Use, Writer};

/// A ring for `depth` operations. If only one thread uses it (`alone`), completions
/// do not interrupt that thread but are processed with its next system call, if the kernel supports
/// that (5.19). With several threads, a waiting one would depend on that call of another.
pub(super) fn new(depth: usize, alone: bool) -> io::Result<IoUring> {
    let entries = depth.next_power_of_two() as u32;
    let undisturbed = alone.then(|| IoUring::builder().setup_coop_taskrun().build(entries));
    match undisturbed {
        Some(Ok(ring)) => Ok(ring),
        _ => IoUring::new(entries),
    }
}

/// Submits, and waits until a ring has completions or the time is over, on kernels before 5.11,
/// whose call has no time limit.
pub(super) fn wait_by_looking(ring: &mut IoUring, timeout: Nanos) -> io::Result<usize> {
    const PAUSE: Duration = Duration::from_micros(50);
    let end = Instant::now() + Duration::from_nanos(timeout.0);
    let submitted = ring.submit();
    while ring.completion().is_empty() && Instant::now() < end {
        thread::sleep(PAUSE);
    }
    submitted
}

impl Writer {
    /// Notes that this thread uses the ring, and replaces the ring if it is the second one.
    fn note_thread(&mut self) -> io::Result<()> {
        if self.alone.is_none_or(|alone| alone == thread::current().id()) {
            return Ok(());
        }
        while self.in_flight > 0 {
            self.reap(1)?;
        }
        self.ring = new(self.depth + 1, false)?;
        self.alone = None;
        Ok(())
    }

    /// Queues an operation on buffer `index` for the next submission.
    pub(super) fn queue(
        &mut self,
        index: usize,
        what: Use,
        entry: squeue::Entry,
    ) -> io::Result<()> {
        if let Err(error) = self.note_thread() {
            self.put_buffer(index);
            return Err(error);
        }
        let entry = entry.user_data(index as u64);
        loop {
            // SAFETY: the buffer is part of a mapping and is neither accessed nor moved or unmapped
            // before the operation is complete: `uses` tracks it, and `drop` waits. It is long
            // enough, and the file descriptor is open as long as the ring.
            #[allow(unsafe_code, reason = "the kernel gets an address")]
            let pushed = unsafe { self.ring.submission().push(&entry) };
            if pushed.is_ok() {
                break;
            }
            if let Err(error) = self.submit() {
                self.put_buffer(index);
                return Err(error);
            }
        }
        self.uses[index] = what;
        self.in_flight += 1;
        Ok(())
    }

    /// Submits the queued operations.
    pub(super) fn submit(&mut self) -> io::Result<()> {
        loop {
            match self.ring.submit() {
                Ok(_) => return Ok(()),
                Err(error) if is_passing(&error) => self.take_completions(),
                Err(error) => return Err(error),
            }
        }
    }

    /// Processes completions. If there is none, submits the queued operations and waits for
    /// `wanted` of those in flight, or all if there are fewer.
    pub(super) fn reap(&mut self, wanted: usize) -> io::Result<()> {
        let wanted = wanted.min(self.in_flight);
        if wanted > 0 && self.ring.completion().is_empty() {
            match self.ring.submit_and_wait(wanted) {
                Ok(_) => {}
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        self.take_completions();
        Ok(())
    }

    pub(super) fn take_completions(&mut self) {
        while let Some(done) = {
            let next = self.ring.completion().next();
            next.map(|entry| (entry.user_data() as usize, entry.result()))
        } {
            self.in_flight -= 1;
            self.completed(done.0, done.1);
        }
    }

    fn completed(&mut self, index: usize, result: i32) {
        match self.uses[index] {
            Use::Writing { page_at } => {
                let result = self.finish_write(index, page_at, result);
                self.written(page_at, result);
                self.put_buffer(index);
            }
            Use::WritingEntry { at, len } => self.finish_entry(at, len, result),
            Use::Free => unreachable!("no operation was submitted on such a buffer"),
        }
    }

    /// Processes the result of a write; writes the rest of a short one, which also reveals its
    /// error.
    fn finish_write(&self, index: usize, page_at: u64, result: i32) -> Result<(), Errno> {
        let Some(done) = bytes_done(result)? else {
            return errno_of(self.file.write_all_at(self.buffers.of(index), page_at));
        };
        if done == self.page_size {
            return Ok(());
        }
        errno_of(self.file.write_all_at(&self.buffers.of(index)[done..], page_at + done as u64))
    }
}

/// Whether an error of a submission is temporary.
pub(super) fn is_passing(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::INTR | Errno::AGAIN | Errno::BUSY))
}

/// Bytes transferred; `None` if the kernel has not begun the operation, which has to be repeated.
/// It cancels operations of a thread that ends, also with `EFAULT`: our memory is always valid.
pub(super) fn bytes_done(result: i32) -> Result<Option<usize>, Errno> {
    if result >= 0 {
        return Ok(Some(result as usize));
    }
    match Errno::from_raw_os_error(result.saturating_neg()) {
        Errno::INTR | Errno::AGAIN | Errno::CANCELED | Errno::FAULT => Ok(None),
        error => Err(error),
    }
}

pub(super) fn errno_of(result: io::Result<()>) -> Result<(), Errno> {
    // A file that ends too early has no errno of its own.
    result.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}
