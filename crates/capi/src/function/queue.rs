//! The command queue of the function level.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use prism::function::{Command, Function, Queue};

use crate::buffer::prism_buffer;
use crate::ffi_boundary::{Out, OutStruct, bytes, bytes_mut, call};
use crate::function::blocks::check_oob;
use crate::function::{FunctionObject, check_block, prism_function, unit_of};
use crate::handle::{close, get, open};
use crate::queue::{CommandQueue, Direction, Patience, depth_of};
use crate::structs::{prism_address, prism_completion};

/// A command queue of the function level, for one thread at a time: a call of another thread on the
/// same queue waits, those on other queues do not.
pub struct prism_function_queue;

pub(crate) struct FunctionQueueObject {
    function: Arc<Function>,
    commands: CommandQueue<Queue<Arc<Function>>>,
}

held!(FunctionQueueObject, prism_function_queue, FunctionQueue);

/// Opens a queue with at most `depth` commands in flight: 1 to 65536. Each thread opens its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_function_queue_open(
    function: *mut prism_function,
    depth: u32,
    queue: *mut *mut prism_function_queue,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let out = unsafe { Out::handle(queue) }?;
        let depth = depth_of(depth)?;
        let function = Arc::clone(&get::<FunctionObject>(function)?.0);
        let commands = CommandQueue::new(Queue::new(Arc::clone(&function), depth), depth);
        out.put(open(FunctionQueueObject { function, commands })?);
        Ok(0)
    })
}

/// Closes a queue. Submitted commands still take effect. Waits for those in flight,
/// whose completions are dropped and whose buffers can be used again.
#[unsafe(no_mangle)]
pub extern "C" fn prism_function_queue_close(queue: *mut prism_function_queue) -> c_int {
    call(|| close::<FunctionQueueObject>(queue).map(|_| 0))
}

/// Submits the read of `length` bytes, whole pages of one block, from `at` on. The completion
/// delivers the data: a copy. `PRISM_EFULL` if the queue is full.
#[unsafe(no_mangle)]
pub extern "C" fn prism_function_queue_read(
    queue: *mut prism_function_queue,
    at: prism_address,
    length: usize,
    tag: u64,
) -> c_int {
    call(|| {
        let object = get::<FunctionQueueObject>(queue)?;
        check_block(&object.function, length)?;
        let read = |data| Command::Read { at: at.into(), data };
        object.commands.submit_read(tag, length, &object.function.share(), read)
    })
}

/// As `prism_function_queue_read`, into the first `length` bytes of `buffer`, without a copy. The
/// library owns the buffer until the completion was taken.
#[unsafe(no_mangle)]
pub extern "C" fn prism_function_queue_read_buffer(
    queue: *mut prism_function_queue,
    at: prism_address,
    buffer: *mut prism_buffer,
    length: usize,
    tag: u64,
) -> c_int {
    call(|| {
        let object = get::<FunctionQueueObject>(queue)?;
        let read = |data| Command::Read { at: at.into(), data };
        object.commands.submit_buffer(tag, Direction::Reads, (buffer, length), read)
    })
}

/// Submits the write of whole pages of one block, from `at` on. The data is copied: the memory is
/// the caller's again when this returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_function_queue_write(
    queue: *mut prism_function_queue,
    at: prism_address,
    data: *const c_void,
    length: usize,
    tag: u64,
) -> c_int {
    call(|| {
        let object = get::<FunctionQueueObject>(queue)?;
        check_block(&object.function, length)?;
        // SAFETY: the contract in the header.
        let data = unsafe { bytes(data, length) }?;
        let write = |data| Command::Write { at: at.into(), data, oob: Vec::new() };
        object.commands.submit_write(tag, data, &object.function.share(), write)
    })
}

/// As `prism_function_queue_write`, from the first `length` bytes of `buffer`, without a copy, and
/// with the first `oob_length` out-of-band bytes of the first page, which are copied: at most
/// `prism_function_oob_size`. The library owns the buffer until the completion was taken.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_function_queue_write_buffer(
    queue: *mut prism_function_queue,
    at: prism_address,
    buffer: *mut prism_buffer,
    length: usize,
    oob: *const c_void,
    oob_length: usize,
    tag: u64,
) -> c_int {
    call(|| {
        let object = get::<FunctionQueueObject>(queue)?;
        check_oob(&object.function, oob_length)?;
        // SAFETY: the contract in the header.
        let oob = unsafe { bytes(oob, oob_length) }?.to_vec();
        let write = |data| Command::Write { at: at.into(), data, oob };
        object.commands.submit_buffer(tag, Direction::Other, (buffer, length), write)
    })
}

/// Submits a trim: it completes at once, and the erase follows after the commands submitted for the
/// block before. `unit` is one of `prism_unit`.
#[unsafe(no_mangle)]
pub extern "C" fn prism_function_queue_trim(
    queue: *mut prism_function_queue,
    at: prism_address,
    unit: u32,
    tag: u64,
) -> c_int {
    call(|| {
        let (object, unit) = (get::<FunctionQueueObject>(queue)?, unit_of(unit)?);
        object.commands.submit(tag, Command::Trim { at: at.into(), unit })
    })
}

/// Submits a sync: its completion says that everything is durable that was complete when it was
/// submitted, and the writes that were submitted to this queue before.
#[unsafe(no_mangle)]
pub extern "C" fn prism_function_queue_sync(queue: *mut prism_function_queue, tag: u64) -> c_int {
    call(|| {
        let object = get::<FunctionQueueObject>(queue)?;
        object.commands.submit(tag, Command::Sync)
    })
}

/// Returns how many commands are in flight: submitted, and their completion not taken.
#[unsafe(no_mangle)]
pub extern "C" fn prism_function_queue_length(queue: *mut prism_function_queue) -> c_int {
    call(|| get::<FunctionQueueObject>(queue)?.commands.len())
}

/// Waits until there is a completion to take; `PRISM_FOREVER` for no limit. Returns 1 if there is
/// one, else 0: at once if no command is in flight, and if no operation of the device completes for
/// `timeout_ns` nanoseconds. With virtual time, the clock of the share advances instead.
/// Without a limit, a sync goes to the disk together with the writes before it if nothing else is
/// in flight: their completions come when it is complete.
#[unsafe(no_mangle)]
pub extern "C" fn prism_function_queue_wait(
    queue: *mut prism_function_queue,
    timeout_ns: u64,
) -> c_int {
    call(|| Ok(get::<FunctionQueueObject>(queue)?.commands.wait(timeout_ns)))
}

/// Returns a file descriptor for event loops (epoll, poll): when it is readable, and before a sleep
/// after submissions, call `prism_function_queue_poll` until that returns 0. The queue owns it: do
/// not read, write or close it. Ask in the thread that uses the queue, and again if another thread
/// takes it over. `PRISM_EINVALID` if commands are complete as soon as they are submitted, or in
/// virtual time.
/// A sleep on it can end early with `EINTR`, without a signal: the kernel interrupts the thread to
/// complete operations. Poll and sleep again.
#[unsafe(no_mangle)]
pub extern "C" fn prism_function_queue_event_fd(queue: *mut prism_function_queue) -> c_int {
    call(|| get::<FunctionQueueObject>(queue)?.commands.event_fd())
}

/// Waits for the next completion, as `prism_raw_queue_complete` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_function_queue_complete(
    queue: *mut prism_function_queue,
    completion: *mut prism_completion,
    data: *mut c_void,
    capacity: usize,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let (out, room) = unsafe { (OutStruct::new(completion)?, bytes_mut(data, capacity)?) };
        get::<FunctionQueueObject>(queue)?.commands.take(Patience::Waits, &out, room)
    })
}

/// As `prism_function_queue_complete`, without waiting: returns 0 if no command is complete.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_function_queue_poll(
    queue: *mut prism_function_queue,
    completion: *mut prism_completion,
    data: *mut c_void,
    capacity: usize,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let (out, room) = unsafe { (OutStruct::new(completion)?, bytes_mut(data, capacity)?) };
        get::<FunctionQueueObject>(queue)?.commands.take(Patience::Polls, &out, room)
    })
}
