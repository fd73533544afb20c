//! The queue of the policy level.

use std::ffi::{c_int, c_void};
use std::ops::Deref;
use std::sync::Arc;

use prism::policy::{Policy, Queue};

use crate::buffer::prism_buffer;
use crate::ffi_boundary::{Out, OutStruct, bytes, bytes_mut, call};
use crate::handle::{close, get, open};
use crate::policy::{PolicyObject, prism_policy};
use crate::queue::{CommandQueue, Direction, Patience, PolicyCommand, depth_of};
use crate::structs::prism_completion;

/// A queue of the policy level, for one thread at a time: a call of another
/// thread on the same queue waits, those on other queues do not.
pub struct prism_policy_queue;

/// A level that a queue keeps open.
#[derive(Clone)]
pub(crate) struct OpenPolicy(Arc<PolicyObject>);

impl Deref for OpenPolicy {
    type Target = Policy;

    fn deref(&self) -> &Policy {
        &self.0.policy
    }
}

pub(crate) struct PolicyQueueObject {
    policy: OpenPolicy,
    commands: CommandQueue<Queue<OpenPolicy>>,
}

held!(PolicyQueueObject, prism_policy_queue, PolicyQueue);

/// Opens a queue with at most `depth` commands in flight: 1 to 65536. Each thread opens its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_policy_queue_open(
    policy: *mut prism_policy,
    depth: u32,
    queue: *mut *mut prism_policy_queue,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let out = unsafe { Out::handle(queue) }?;
        let depth = depth_of(depth)?;
        let policy = OpenPolicy(get::<PolicyObject>(policy)?);
        let commands = CommandQueue::new(Queue::new(policy.clone(), depth), depth);
        out.put(open(PolicyQueueObject { policy, commands })?);
        Ok(0)
    })
}

/// Closes a queue. Waits for the commands in flight, whose completions are dropped and whose
/// buffers can be used again.
#[unsafe(no_mangle)]
pub extern "C" fn prism_policy_queue_close(queue: *mut prism_policy_queue) -> c_int {
    call(|| close::<PolicyQueueObject>(queue).map(|_| 0))
}

/// Submits a read as that of `prism_policy_read`. The completion delivers the data: a copy.
/// `PRISM_EFULL` if the queue is full.
#[unsafe(no_mangle)]
pub extern "C" fn prism_policy_queue_read(
    queue: *mut prism_policy_queue,
    address: u64,
    length: usize,
    tag: u64,
) -> c_int {
    call(|| {
        let object = get::<PolicyQueueObject>(queue)?;
        object.policy.0.check(length)?;
        let read = |data| PolicyCommand::Read(address, data);
        object.commands.submit_read(tag, length, &object.policy.share(), read)
    })
}

/// As `prism_policy_queue_read`, into the first `length` bytes of `buffer`. The library owns the
/// buffer until the completion was taken. There is no copy if the data is in one piece on flash.
#[unsafe(no_mangle)]
pub extern "C" fn prism_policy_queue_read_buffer(
    queue: *mut prism_policy_queue,
    address: u64,
    buffer: *mut prism_buffer,
    length: usize,
    tag: u64,
) -> c_int {
    call(|| {
        let object = get::<PolicyQueueObject>(queue)?;
        let read = |data| PolicyCommand::Read(address, data);
        object.commands.submit_buffer(tag, Direction::Reads, (buffer, length), read)
    })
}

/// Submits a write as that of `prism_policy_write_with_handle`, of a copy of the data: the memory
/// is the caller's again when this returns. Reads that are submitted after it find its data. In
/// virtual time it completes when flash has taken the program units that it fills, or at once if
/// all of its data is buffered; otherwise the work is done during the call. `PRISM_EFULL` if the
/// queue is full.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_policy_queue_write(
    queue: *mut prism_policy_queue,
    address: u64,
    data: *const c_void,
    length: usize,
    placement: u32,
    tag: u64,
) -> c_int {
    call(|| {
        let object = get::<PolicyQueueObject>(queue)?;
        object.policy.0.check(length)?;
        // SAFETY: the contract in the header.
        let data = unsafe { bytes(data, length) }?;
        let write = |data| PolicyCommand::Write(address, data, placement);
        object.commands.submit_write(tag, data, &object.policy.share(), write)
    })
}

/// As `prism_policy_queue_write`, with the first `length` bytes of `buffer`. The library owns the
/// buffer until the completion was taken.
#[unsafe(no_mangle)]
pub extern "C" fn prism_policy_queue_write_buffer(
    queue: *mut prism_policy_queue,
    address: u64,
    buffer: *mut prism_buffer,
    length: usize,
    placement: u32,
    tag: u64,
) -> c_int {
    call(|| {
        let object = get::<PolicyQueueObject>(queue)?;
        let write = |data| PolicyCommand::Write(address, data, placement);
        object.commands.submit_buffer(tag, Direction::Other, (buffer, length), write)
    })
}

/// Submits a trim as that of `prism_policy_trim`, which takes effect at once. `PRISM_EFULL` if the
/// queue is full.
#[unsafe(no_mangle)]
pub extern "C" fn prism_policy_queue_trim(
    queue: *mut prism_policy_queue,
    address: u64,
    length: u64,
    tag: u64,
) -> c_int {
    call(|| {
        let object = get::<PolicyQueueObject>(queue)?;
        object.commands.submit(tag, PolicyCommand::Trim(address, length))
    })
}

/// Submits a flush: its completion says that everything written and trimmed before is durable. It
/// programs what is buffered; the sync runs while the caller goes on, unless there are trims, which
/// are made durable during the call. `PRISM_EFULL` if the queue is full.
#[unsafe(no_mangle)]
pub extern "C" fn prism_policy_queue_flush(queue: *mut prism_policy_queue, tag: u64) -> c_int {
    call(|| {
        let object = get::<PolicyQueueObject>(queue)?;
        object.commands.submit(tag, PolicyCommand::Flush)
    })
}

/// Returns how many commands are in flight: submitted, and their completion not taken.
#[unsafe(no_mangle)]
pub extern "C" fn prism_policy_queue_length(queue: *mut prism_policy_queue) -> c_int {
    call(|| get::<PolicyQueueObject>(queue)?.commands.len())
}

/// Waits until there is a completion to take; `PRISM_FOREVER` for no limit. Returns 1 if there is
/// one, else 0: at once if no command is in flight, and if no operation of the device completes for
/// `timeout_ns` nanoseconds. With virtual time, the clock of the share advances instead.
#[unsafe(no_mangle)]
pub extern "C" fn prism_policy_queue_wait(
    queue: *mut prism_policy_queue,
    timeout_ns: u64,
) -> c_int {
    call(|| Ok(get::<PolicyQueueObject>(queue)?.commands.wait(timeout_ns)))
}

/// Returns a file descriptor for event loops (epoll, poll): when it is readable, and before a sleep
/// after submissions, call `prism_policy_queue_poll` until that returns 0. The queue owns it: do
/// not read, write or close it. Ask in the thread that uses the queue, and again if another thread
/// takes it over. `PRISM_EINVALID` if reads are complete as soon as they are submitted, or in
/// virtual time.
/// A sleep on it can end early with `EINTR`, without a signal: the kernel interrupts the thread to
/// complete operations. Poll and sleep again.
#[unsafe(no_mangle)]
pub extern "C" fn prism_policy_queue_event_fd(queue: *mut prism_policy_queue) -> c_int {
    call(|| get::<PolicyQueueObject>(queue)?.commands.event_fd())
}

/// Waits for the next completion, as `prism_raw_queue_complete` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_policy_queue_complete(
    queue: *mut prism_policy_queue,
    completion: *mut prism_completion,
    data: *mut c_void,
    capacity: usize,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let (out, room) = unsafe { (OutStruct::new(completion)?, bytes_mut(data, capacity)?) };
        get::<PolicyQueueObject>(queue)?.commands.take(Patience::Waits, &out, room)
    })
}

/// As `prism_policy_queue_complete`, without waiting: returns 0 if no command is complete.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_policy_queue_poll(
    queue: *mut prism_policy_queue,
    completion: *mut prism_completion,
    data: *mut c_void,
    capacity: usize,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let (out, room) = unsafe { (OutStruct::new(completion)?, bytes_mut(data, capacity)?) };
        get::<PolicyQueueObject>(queue)?.commands.take(Patience::Polls, &out, room)
    })
}
