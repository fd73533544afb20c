//! The command queue of the raw level.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use prism::raw::{Command, Queue, Raw};

use crate::buffer::prism_buffer;
use crate::ffi_boundary::{Out, OutStruct, bytes, bytes_mut, call};
use crate::handle::{close, get, open};
use crate::queue::{CommandQueue, Direction, Patience, depth_of};
use crate::raw::{RawObject, check_page, prism_raw};
use crate::status::{Failure, Status};
use crate::structs::{prism_address, prism_completion};

/// A command queue of the raw level, for one thread at a time: a call of another thread on the same
/// queue waits, those on other queues do not.
pub struct prism_raw_queue;

pub(crate) struct QueueObject {
    raw: Arc<Raw>,
    commands: CommandQueue<Queue<Arc<Raw>>>,
}

held!(QueueObject, prism_raw_queue, RawQueue);

/// Checks the page and the lengths of a command.
fn check_at(raw: &Raw, at: prism_address, length: usize, oob_length: usize) -> Result<(), Failure> {
    let pages = raw.geometry().pages_per_block;
    if at.page >= pages {
        let what = format!("page {} is outside of the block, which has {pages}", at.page);
        return Err(Failure::new(Status::PRISM_ERANGE, what));
    }
    check_page(raw, length, oob_length)
}

/// Opens a queue with at most `depth` commands in flight: 1 to 65536. Each thread opens its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_raw_queue_open(
    raw: *mut prism_raw,
    depth: u32,
    queue: *mut *mut prism_raw_queue,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let out = unsafe { Out::handle(queue) }?;
        let depth = depth_of(depth)?;
        let raw = Arc::clone(&get::<RawObject>(raw)?.raw());
        let commands = CommandQueue::new(Queue::new(Arc::clone(&raw), depth), depth);
        out.put(open(QueueObject { raw, commands })?);
        Ok(0)
    })
}

/// Closes a queue. Submitted commands still take effect. Waits for those in flight,
/// whose completions are dropped and whose buffers can be used again.
#[unsafe(no_mangle)]
pub extern "C" fn prism_raw_queue_close(queue: *mut prism_raw_queue) -> c_int {
    call(|| close::<QueueObject>(queue).map(|_| 0))
}

/// Submits the read of a page, or of its first `length` bytes. The completion delivers the data: a
/// copy. `PRISM_EFULL` if the queue is full.
#[unsafe(no_mangle)]
pub extern "C" fn prism_raw_queue_read(
    queue: *mut prism_raw_queue,
    at: prism_address,
    length: usize,
    tag: u64,
) -> c_int {
    call(|| {
        let object = get::<QueueObject>(queue)?;
        check_at(&object.raw, at, length, 0)?;
        let read = |data| Command::read(at.into(), data);
        object.commands.submit_read(tag, length, object.raw.share(), read)
    })
}

/// Submits the read of `length` bytes of a page, from byte `offset` of it on, into the first bytes
/// of `buffer`, without a copy. The library owns the buffer until the completion was taken.
#[unsafe(no_mangle)]
pub extern "C" fn prism_raw_queue_read_buffer(
    queue: *mut prism_raw_queue,
    at: prism_address,
    offset: u32,
    buffer: *mut prism_buffer,
    length: usize,
    tag: u64,
) -> c_int {
    call(|| {
        let object = get::<QueueObject>(queue)?;
        check_at(&object.raw, at, length, 0)?;
        let read = |data| Command::Read { at: at.into(), offset, data };
        object.commands.submit_buffer(tag, Direction::Reads, (buffer, length), read)
    })
}

/// Submits the write of a page. The data is copied: the memory is the caller's again when this
/// returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_raw_queue_write(
    queue: *mut prism_raw_queue,
    at: prism_address,
    data: *const c_void,
    length: usize,
    tag: u64,
) -> c_int {
    call(|| {
        let object = get::<QueueObject>(queue)?;
        check_at(&object.raw, at, length, 0)?;
        // SAFETY: the contract in the header.
        let data = unsafe { bytes(data, length) }?;
        let write = |data| Command::write(at.into(), data);
        object.commands.submit_write(tag, data, object.raw.share(), write)
    })
}

/// Submits the write of a page with the first `length` bytes of `buffer`, without a copy, and of
/// its first `oob_length` out-of-band bytes, which are copied. The library owns the buffer until
/// the completion was taken.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_raw_queue_write_buffer(
    queue: *mut prism_raw_queue,
    at: prism_address,
    buffer: *mut prism_buffer,
    length: usize,
    oob: *const c_void,
    oob_length: usize,
    tag: u64,
) -> c_int {
    call(|| {
        let object = get::<QueueObject>(queue)?;
        check_at(&object.raw, at, length, oob_length)?;
        // SAFETY: the contract in the header.
        let oob = unsafe { bytes(oob, oob_length) }?.to_vec();
        let write = |data| Command::Write { at: at.into(), data, oob };
        object.commands.submit_buffer(tag, Direction::Other, (buffer, length), write)
    })
}

/// Submits the erase of a block.
#[unsafe(no_mangle)]
pub extern "C" fn prism_raw_queue_erase(
    queue: *mut prism_raw_queue,
    at: prism_address,
    tag: u64,
) -> c_int {
    call(|| {
        let object = get::<QueueObject>(queue)?;
        object.commands.submit(tag, Command::Erase { at: at.into() })
    })
}

/// Submits a sync: its completion says that everything is durable that was complete when it was
/// submitted, and the writes that were submitted to this queue before.
#[unsafe(no_mangle)]
pub extern "C" fn prism_raw_queue_sync(queue: *mut prism_raw_queue, tag: u64) -> c_int {
    call(|| {
        let object = get::<QueueObject>(queue)?;
        object.commands.submit(tag, Command::Sync)
    })
}

/// Returns how many commands are in flight: submitted, and their completion not taken.
#[unsafe(no_mangle)]
pub extern "C" fn prism_raw_queue_length(queue: *mut prism_raw_queue) -> c_int {
    call(|| get::<QueueObject>(queue)?.commands.len())
}

/// Waits until there is a completion to take; `PRISM_FOREVER` for no limit. Returns 1 if there is
/// one, else 0: at once if no command is in flight, and if no operation of the device completes for
/// `timeout_ns` nanoseconds. With virtual time, the clock of the share advances instead.
/// Without a limit, a sync goes to the disk together with the writes before it if nothing else is
/// in flight: their completions come when it is complete.
#[unsafe(no_mangle)]
pub extern "C" fn prism_raw_queue_wait(queue: *mut prism_raw_queue, timeout_ns: u64) -> c_int {
    call(|| Ok(get::<QueueObject>(queue)?.commands.wait(timeout_ns)))
}

/// Returns a file descriptor for event loops (epoll, poll): when it is readable, and before a sleep
/// after submissions, call `prism_raw_queue_poll` until that returns 0. The queue owns it: do not
/// read, write or close it. Ask in the thread that uses the queue, and again if another thread
/// takes it over. `PRISM_EINVALID` if commands are complete as soon as they are submitted, or in
/// virtual time.
/// A sleep on it can end early with `EINTR`, without a signal: the kernel interrupts the thread to
/// complete operations. Poll and sleep again.
#[unsafe(no_mangle)]
pub extern "C" fn prism_raw_queue_event_fd(queue: *mut prism_raw_queue) -> c_int {
    call(|| get::<QueueObject>(queue)?.commands.event_fd())
}

/// Waits for the next completion. Returns 1 with the completion, 0 if no command is in flight. The
/// completion has the result of the command, and `prism_last_message` the reason of a failure. If
/// the command has a buffer, it names the buffer, which is the caller's again; `data` may be NULL.
/// Otherwise the data of a read is copied to `data`; if it has more than `capacity` bytes, returns
/// `PRISM_ETOOSMALL` with its length in the completion, which stays to be taken again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_raw_queue_complete(
    queue: *mut prism_raw_queue,
    completion: *mut prism_completion,
    data: *mut c_void,
    capacity: usize,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let (out, room) = unsafe { (OutStruct::new(completion)?, bytes_mut(data, capacity)?) };
        get::<QueueObject>(queue)?.commands.take(Patience::Waits, &out, room)
    })
}

/// As `prism_raw_queue_complete`, without waiting: returns 0 if no command is complete.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_raw_queue_poll(
    queue: *mut prism_raw_queue,
    completion: *mut prism_completion,
    data: *mut c_void,
    capacity: usize,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let (out, room) = unsafe { (OutStruct::new(completion)?, bytes_mut(data, capacity)?) };
        get::<QueueObject>(queue)?.commands.take(Patience::Polls, &out, room)
    })
}
