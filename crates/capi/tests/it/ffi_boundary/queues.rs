//! Calls on queues and on the buffers of their commands.

use std::ffi::c_int;
use std::ptr::null_mut;

use prism_capi::prism_status::PRISM_EBUSY;
use prism_capi::*;

use crate::ffi_boundary::levels::{Step, address};
use crate::ffi_boundary::world::{Kind, Op, World, zeroed};

/// Opens a queue with a depth that is mostly small.
fn open_queue<L, Q>(
    world: &mut World,
    op: &Op,
    (level, kind): (Kind, Kind),
    open: unsafe extern "C" fn(*mut L, u32, *mut *mut Q) -> c_int,
) -> Step {
    let (handle, good) = world.pick::<L>(level, op);
    let mut new = null_mut();
    // SAFETY: the pointer to the handle is valid.
    let result = unsafe { open(handle, op.b as u32, &mut new) };
    if result == 0 {
        world.opened(kind, new);
    }
    (result, good)
}

/// The raw level.
pub fn queue(world: &mut World, op: &Op) -> Step {
    if op.call < 2 {
        return open_queue(world, op, (Kind::Raw, Kind::Queue), prism_raw_queue_open);
    }
    let (handle, good) = world.pick::<prism_raw_queue>(Kind::Queue, op);
    let (buffer, buffer_good) = world.pick::<prism_buffer>(Kind::Buffer, op);
    let (at, (data, length)) = (address(op), world.buffer(op));
    let oob = (&raw const op.a).cast();
    // SAFETY: structures and buffers are those of `World`, with the sizes passed.
    let result = unsafe {
        match op.call {
            2 => prism_raw_queue_wait(handle, op.a),
            3 => prism_raw_queue_poll(handle, world.give(zeroed(), op), data, length),
            4 if op.b.is_multiple_of(4) => world.close(Kind::Queue, handle, prism_raw_queue_close),
            5 => prism_raw_queue_read(handle, at, length, op.b),
            6 => {
                let offset = if op.odd.is_multiple_of(4) { op.b as u32 } else { 0 };
                let result = prism_raw_queue_read_buffer(handle, at, offset, buffer, length, op.b);
                return (result, good && buffer_good);
            }
            7 | 8 => prism_raw_queue_write(handle, at, data, length, op.b),
            9 => {
                let bytes = op.c as usize % 9;
                let result =
                    prism_raw_queue_write_buffer(handle, at, buffer, length, oob, bytes, op.b);
                return (result, good && buffer_good);
            }
            10 => prism_raw_queue_erase(handle, at, op.b),
            11 if op.b.is_multiple_of(4) => prism_raw_queue_event_fd(handle),
            11 => prism_raw_queue_length(handle),
            12 => prism_raw_queue_sync(handle, op.b),
            _ => prism_raw_queue_complete(handle, world.give(zeroed(), op), data, length),
        }
    };
    (result, good)
}

/// The function level.
pub fn function_queue(world: &mut World, op: &Op) -> Step {
    if op.call < 2 {
        let kinds = (Kind::Function, Kind::FunctionQueue);
        return open_queue(world, op, kinds, prism_function_queue_open);
    }
    let (handle, good) = world.pick::<prism_function_queue>(Kind::FunctionQueue, op);
    let (buffer, buffer_good) = world.pick::<prism_buffer>(Kind::Buffer, op);
    let (at, (data, length)) = (address(op), world.buffer(op));
    let oob = (&raw const op.a).cast();
    // SAFETY: structures and buffers are those of `World`, with the sizes passed.
    let result = unsafe {
        match op.call {
            2 => prism_function_queue_wait(handle, op.a),
            3 => prism_function_queue_poll(handle, world.give(zeroed(), op), data, length),
            4 if op.b.is_multiple_of(4) => {
                world.close(Kind::FunctionQueue, handle, prism_function_queue_close)
            }
            5 => prism_function_queue_read(handle, at, length, op.b),
            6 => {
                let result = prism_function_queue_read_buffer(handle, at, buffer, length, op.b);
                return (result, good && buffer_good);
            }
            7 | 8 => prism_function_queue_write(handle, at, data, length, op.b),
            9 => {
                let bytes = op.c as usize % 9;
                let result =
                    prism_function_queue_write_buffer(handle, at, buffer, length, oob, bytes, op.b);
                return (result, good && buffer_good);
            }
            10 => prism_function_queue_trim(handle, at, op.b as u32 % 3, op.c),
            11 if op.b.is_multiple_of(4) => prism_function_queue_event_fd(handle),
            11 => prism_function_queue_length(handle),
            12 => prism_function_queue_sync(handle, op.b),
            _ => prism_function_queue_complete(handle, world.give(zeroed(), op), data, length),
        }
    };
    (result, good)
}

/// The policy level.
pub fn policy_queue(world: &mut World, op: &Op) -> Step {
    if op.call < 2 {
        let kinds = (Kind::Policy, Kind::PolicyQueue);
        return open_queue(world, op, kinds, prism_policy_queue_open);
    }
    let (handle, good) = world.pick::<prism_policy_queue>(Kind::PolicyQueue, op);
    let (buffer, buffer_good) = world.pick::<prism_buffer>(Kind::Buffer, op);
    let (data, length) = world.buffer(op);
    // SAFETY: structures and buffers are those of `World`, with the sizes passed.
    let result = unsafe {
        match op.call {
            2 | 3 => prism_policy_queue_wait(handle, op.a),
            4 | 5 => prism_policy_queue_poll(handle, world.give(zeroed(), op), data, length),
            6 if op.b.is_multiple_of(4) => {
                world.close(Kind::PolicyQueue, handle, prism_policy_queue_close)
            }
            7 if op.c.is_multiple_of(2) => prism_policy_queue_flush(handle, op.b),
            7 => prism_policy_queue_trim(handle, op.a, op.c, op.b),
            8 => prism_policy_queue_read(handle, op.a, length, op.b),
            9 => prism_policy_queue_write(handle, op.a, data, length, op.c as u32, op.b),
            10 => {
                let handles = op.c as u32;
                let result =
                    prism_policy_queue_write_buffer(handle, op.a, buffer, length, handles, op.b);
                return (result, good && buffer_good);
            }
            11 | 12 => {
                let result = prism_policy_queue_read_buffer(handle, op.a, buffer, length, op.b);
                return (result, good && buffer_good);
            }
            13 if op.b.is_multiple_of(4) => prism_policy_queue_event_fd(handle),
            13 => prism_policy_queue_length(handle),
            _ => prism_policy_queue_complete(handle, world.give(zeroed(), op), data, length),
        }
    };
    (result, good)
}

/// Buffers: made, written to, and freed unless a command in flight has them.
pub fn buffers(world: &mut World, op: &Op) -> Step {
    if op.call < 8 {
        let (device, good) = world.pick::<prism_device>(Kind::Device, op);
        let length = if op.odd % 16 == 9 { op.c as usize } else { 4096 * (op.c % 5) as usize };
        let mut new = null_mut();
        // SAFETY: the pointer to the handle is valid.
        let result = unsafe { prism_buffer_alloc(device, length, &mut new) };
        if result == 0 {
            world.opened(Kind::Buffer, new);
        }
        return (result, good);
    }
    let (handle, good) = world.pick::<prism_buffer>(Kind::Buffer, op);
    if op.call < 12 || !op.b.is_multiple_of(2) {
        let data = prism_buffer_data(handle).cast::<u8>();
        if data.is_null() {
            return (PRISM_EBUSY as c_int, good);
        }
        // SAFETY: no buffer is empty, and no command has this one.
        unsafe { data.write(op.c as u8) };
        return (0, good);
    }
    (world.close(Kind::Buffer, handle, prism_buffer_free), good)
}
