//! The file system that the threads of a mount share.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use fuser::{Errno, ReplyData, ReplyEmpty, ReplyLseek};
use prism_flash::Buffer;
use prism_fs::{Fs, FsError, Seek};

use crate::batches::Batches;
use crate::convert::answer;
use crate::full::Full;
use crate::kernel::Kernel;
use crate::open::{AnyStore, now};
use crate::run::WRITE_MAX;

thread_local! {
    /// Memory for what a thread reads.
    static MEMORY: RefCell<Option<Buffer>> = const { RefCell::new(None) };
}

/// Runs what needs no lock. The lock does not end the process if this thread panics, and others
/// would wait for ever.
fn without_lock<T>(wait: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(wait)).unwrap_or_else(|_| std::process::abort())
}

/// What threads share.
pub struct Shared {
    fs: Mutex<Fs<AnyStore>>,
    batches: Mutex<Batches<ReplyEmpty>>,
    /// Files that lost data because the device was full.
    pub full: Full,
    pub kernel: Kernel,
}

impl Shared {
    pub fn new(fs: Fs<AnyStore>) -> Self {
        Self {
            fs: Mutex::new(fs),
            batches: Mutex::default(),
            full: Full::default(),
            kernel: Kernel::default(),
        }
    }

    /// The file system. A thread that panicked may have left it half changed in memory, so no other
    /// uses it: the process ends, and what was durable is.
    pub fn fs(&self) -> MutexGuard<'_, Fs<AnyStore>> {
        self.fs.lock().unwrap_or_else(|_| std::process::abort())
    }

    /// Notes that a file lost data: see [`Full::lost`].
    pub fn lost(&self, file: u32, free: u64, bytes: usize) {
        self.full.lost(&self.kernel, file, free, bytes);
    }

    /// A file was opened or closed: one without blocks is shown with another number of them, see
    /// [`Opens::shown`](crate::opens::Opens::shown).
    pub fn show_anew(&self, file: u32) {
        let is_empty = self.fs().get_attr(file).is_ok_and(|attr| attr.blocks == 0);
        if is_empty {
            self.kernel.drop_attributes(file);
        }
    }

    /// Takes care that the kernel does not rely on attributes of a file that lost data.
    pub fn keep_invalid(&self, file: u32) {
        self.full.keep_invalid(&self.kernel, file);
    }

    /// Ends the use of the file system.
    pub fn end(&self) -> Result<(), FsError> {
        let mut fs = self.fs();
        fs.set_now(now());
        fs.unmount()
    }

    /// Reads from a file, and answers. Other threads use the file system while the device works.
    pub fn read(&self, file: u32, offset: u64, len: usize, reply: ReplyData) {
        MEMORY.with_borrow_mut(|memory| {
            let mut fs = self.fs();
            fs.set_now(now());
            let memory = memory.get_or_insert_with(|| fs.store().buffer(WRITE_MAX as usize));
            // An error is that of the other read, too.
            if let Ok(Some(read)) = fs.begin_read(file, offset, len, memory) {
                drop(fs);
                if let Some(data) = without_lock(|| read.wait()) {
                    return reply.data(data);
                }
                fs = self.fs();
            }
            let read = fs.read(file, offset, len);
            drop(fs);
            match read {
                Ok(data) => reply.data(&data),
                Err(error) => reply.error(Errno::from_i32(error.errno())),
            }
        });
    }

    /// Finds data or a hole, and answers. The kernel does not write first what it has of the file
    /// in its cache (`is_cached`), where there is a hole here; so it is made to. Its writes need
    /// other threads that answer them, which could all wait in calls of this kind: it has its own.
    pub fn seek(
        self: &Arc<Self>,
        file: u32,
        offset: u64,
        what: Seek,
        is_cached: bool,
        reply: ReplyLseek,
    ) {
        let shared = Arc::clone(self);
        let answer = move || match shared.fs().seek(file, offset, what) {
            Ok(offset) => reply.offset(offset as i64),
            Err(error) => reply.error(Errno::from_i32(error.errno())),
        };
        if !is_cached {
            return answer();
        }
        let shared = Arc::clone(self);
        // If the system has no thread left, the reply is dropped, which answers with EIO.
        let _ = thread::Builder::new().spawn(move || {
            shared.kernel.write_back(file);
            answer();
        });
    }

    /// Makes a file durable, or only metadata, and then answers. If another thread makes files
    /// durable, it does this one, too, and this call returns at once.
    pub fn fsync(&self, file: Option<u32>, reply: ReplyEmpty) {
        if !self.batches().join(file, reply) {
            return;
        }
        let mut were_several = false;
        loop {
            let mut fs = self.fs();
            let Some((files, replies)) = self.batches().next_batch() else { return };
            fs.set_now(now());
            let are_several = replies.len() > 1;
            let ended = self.sync(fs, &files, are_several || were_several);
            were_several = are_several;
            let ended = ended.map_err(|error| Errno::from_i32(error.errno()));
            replies.into_iter().for_each(|reply| answer(ended, reply));
        }
    }

    /// Makes files durable. If there are several callers, other threads use the file system while
    /// the device works. For a single one it is faster to keep the lock: then the sync goes to the
    /// device together with the writes in flight.
    fn sync(
        &self,
        mut fs: MutexGuard<'_, Fs<AnyStore>>,
        files: &[u32],
        are_several: bool,
    ) -> Result<(), FsError> {
        if !are_several {
            return fs.fsync(files);
        }
        let fsync = fs.begin_fsync(files)?;
        drop(fs);
        let fsynced = without_lock(|| fsync.wait());
        self.fs().end_fsync(fsynced)
    }

    fn batches(&self) -> MutexGuard<'_, Batches<ReplyEmpty>> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
