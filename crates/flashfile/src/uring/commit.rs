//! A ring that writes one entry of the journal and makes it durable, for the syncs of all queues:
//! no thread waits for the disk meanwhile.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::{mem, thread};

use io_uring::types::{Fd, FsyncFlags};
use io_uring::{IoUring, opcode, squeue};
use rustix::io::Errno;

use super::ring::{self, bytes_done, is_passing};
use crate::buffers::Aligned;
use crate::commit::Commit;
use crate::engine::Direct;

/// The numbers of the two operations.
const WRITE: u64 = 0;
const SYNC: u64 = 1;

/// The ring.
pub(crate) struct CommitRing {
    ring: IoUring,
    entry: Option<Entry>,
    /// The memory of the last entry, to be used again.
    spare: Option<Aligned>,
    /// A commit that could not be begun.
    failed: Option<(Commit, io::Error)>,
    /// Of the last entry: results of earlier ones are ignored.
    number: u64,
    given_up: bool,
}

/// The entry that is being written.
struct Entry {
    commit: Commit,
    memory: Aligned,
    /// The results, in the kernel's words: bytes written or a negative error number.
    write: Option<i32>,
    sync: Option<i32>,
}

impl CommitRing {
    pub(crate) fn new() -> io::Result<Self> {
        // The thread that submits need not come back: another one may look for the result.
        Ok(Self {
            ring: ring::new(4, false)?,
            entry: None,
            spare: None,
            failed: None,
            number: 0,
            given_up: false,
        })
    }

    /// The descriptor that is readable when an entry may be durable.
    pub(crate) fn fd(&self) -> RawFd {
        self.ring.as_raw_fd()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.entry.is_none() && self.failed.is_none()
    }

    /// Has the kernel write the entry of `commit` and then make everything durable. A failure is
    /// the result that [`CommitRing::take`] returns.
    pub(crate) fn begin(&mut self, direct: &Direct, commit: Commit) {
        assert!(self.is_idle(), "one commit at a time");
        let len = commit.bytes.len();
        let spare = self.spare.take().filter(|spare| spare.len() >= len);
        let mut memory = match spare.map_or_else(|| Aligned::new(len), Ok) {
            Ok(memory) => memory,
            Err(error) => return self.failed = Some((commit, error)),
        };
        memory.as_mut()[..len].copy_from_slice(&commit.bytes);
        let address = memory.as_ref().as_ptr();
        let write = opcode::Write::new(Fd(direct.direct.as_raw_fd()), address, len as u32);
        self.number += 1;
        let write = write.offset(commit.at).build().user_data(self.number * 2 + WRITE);
        let sync = opcode::Fsync::new(Fd(direct.file.as_raw_fd())).flags(FsyncFlags::DATASYNC);
        let sync = sync.build().user_data(self.number * 2 + SYNC);
        // A successful write wakes no thread, if the kernel can do that (5.17).
        let (flags, written) = match self.ring.params().is_feature_skip_cqe_on_success() {
            true => (squeue::Flags::IO_LINK | squeue::Flags::SKIP_SUCCESS, Some(len as i32)),
            false => (squeue::Flags::IO_LINK, None),
        };
        let both = [write.flags(flags), sync];
        self.entry = Some(Entry { commit, memory, write: written, sync: None });
        // SAFETY: the memory is that of `entry`, which stays until both operations are complete;
        // `drop` waits for them. The descriptors are open as long as the device.
        #[allow(unsafe_code, reason = "the kernel gets an address")]
        let pushed = unsafe { self.ring.submission().push_multiple(&both) };
        pushed.expect("the ring is empty and has room for two");
        if let Err(error) = self.submit_both() {
            let Some(Entry { commit, memory, .. }) = self.entry.take() else { return };
            // The kernel may have taken the write, which is not linked to a sync then.
            mem::forget(memory);
            (self.failed, self.given_up) = (Some((commit, error)), true);
        }
    }

    /// Submits the two operations with one call, as otherwise they are not linked.
    fn submit_both(&mut self) -> io::Result<()> {
        const TRIES: u32 = 1000;
        for _ in 0..TRIES {
            match self.ring.submit() {
                Ok(_) if self.ring.submission().is_empty() => return Ok(()),
                Ok(_) => {}
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
            if self.ring.submission().len() == 1 {
                break;
            }
            thread::yield_now();
        }
        Err(Errno::AGAIN.into())
    }

    /// Whether the kernel has not taken a commit: the ring must not be used any more.
    pub(crate) fn has_given_up(&self) -> bool {
        self.given_up
    }

    fn enter(&mut self, wanted: usize) -> io::Result<()> {
        loop {
            match self.ring.submit_and_wait(wanted) {
                Ok(_) => return Ok(()),
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The result of the commit if it is complete; waits for it if `wait`. `None` if it is not
    /// complete, or there is none.
    pub(crate) fn take(&mut self, file: &File, wait: bool) -> Option<(Commit, io::Result<()>)> {
        if let Some((commit, error)) = self.failed.take() {
            return Some((commit, Err(error)));
        }
        loop {
            let done = self.results()?;
            if let (Some(write), Some(sync)) = done {
                let result = finish(file, self.entry.as_ref()?, write, sync);
                let Entry { commit, memory, .. } = self.entry.take()?;
                self.spare = Some(memory);
                return Some((commit, result));
            }
            if !wait {
                return None;
            }
            self.enter(1).expect("io_uring waits for what was submitted");
        }
    }

    /// The results so far of both operations; `None` if no entry is being written.
    fn results(&mut self) -> Option<(Option<i32>, Option<i32>)> {
        let entry = self.entry.as_mut()?;
        for done in self.ring.completion() {
            let (number, kind) = (done.user_data() / 2, done.user_data() % 2);
            if number != self.number {
                continue;
            }
            if kind == SYNC {
                entry.sync = Some(done.result());
            } else if entry.write.replace(done.result()).is_some() {
                // It has failed, and the kernel says nothing about the sync then.
                entry.sync.get_or_insert(-Errno::CANCELED.raw_os_error());
            }
        }
        Some((entry.write, entry.sync))
    }
}

/// The result of both operations. Repeats what the kernel has not done, which includes a sync after
/// a write that was short.
fn finish(file: &File, entry: &Entry, write: i32, sync: i32) -> io::Result<()> {
    let (bytes, at) = (&entry.commit.bytes, entry.commit.at);
    let written = bytes_done(write)?.unwrap_or(0);
    // A sync that has failed is not repeated: the kernel would report success.
    let synced = bytes_done(sync)?.is_some();
    if written < bytes.len() {
        file.write_all_at(&bytes[written..], at + written as u64)?;
    } else if synced {
        return Ok(());
    }
    file.sync_data()
}

impl Drop for CommitRing {
    fn drop(&mut self) {
        while matches!(self.results(), Some((None, _) | (_, None))) {
            if self.enter(1).is_err() {
                // The kernel may still use the memory, so it is leaked.
                return mem::forget(self.entry.take());
            }
        }
    }
}
