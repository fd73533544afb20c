//! The calls, made with the numbers of an [`Op`].
//!
//! Each function makes one of the calls on one kind of handle. It returns the result, and whether
//! the handle was valid.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};

use prism_capi::*;

use crate::ffi_boundary::queues::{buffers, function_queue, policy_queue, queue};
use crate::ffi_boundary::world::{
    Kind, Op, World, allocation, geometry, lun_bytes, range_config, zeroed,
};

pub type Step = (c_int, bool);

/// The index of a call among all that [`step`] can make.
pub fn place(op: &Op) -> (u8, u8) {
    let group = match op.call % 16 {
        group @ (2 | 11) => group - 1,
        group => group,
    };
    (group, op.call / 16)
}

const NAMES: [&[u8]; 4] = [b"a\0", b"b\0", b"\0", b"\xff\xfe\0"];

/// A name, mostly a valid one.
fn name(op: &Op, number: u64) -> *const c_char {
    match (op.odd % 64, number % 8) {
        (50, _) => null(),
        (_, at @ 0..4) => NAMES[at as usize].as_ptr().cast(),
        (_, _) => NAMES[0].as_ptr().cast(),
    }
}

pub fn address(op: &Op) -> prism_address {
    let wild = if op.odd % 64 == 51 { u32::MAX } else { 0 };
    let part = |by: u64, most: u64| (op.a / by % most) as u32 | wild;
    prism_address { channel: part(1, 2), lun: part(2, 2), block: part(4, 40), page: part(7, 8) }
}

/// Makes one call. Devices come first, so that the others have something to work on.
pub fn step(world: &mut World, op: &Op) -> Step {
    if !world.has(Kind::Memory) {
        return memory(world, &Op { call: 0, ..*op });
    }
    if !world.has(Kind::Device) && !op.odd.is_multiple_of(4) {
        return device(world, &Op { call: 0, ..*op });
    }
    if !world.has(Kind::Share) && !op.odd.is_multiple_of(4) {
        return device(world, &Op { call: 2, ..*op });
    }
    let rest = Op { call: op.call / 16, ..*op };
    match op.call % 16 {
        0 => memory(world, &rest),
        1 | 2 => device(world, &rest),
        3 => share(world, &rest),
        4 => raw(world, &rest),
        5 => policy_queue(world, &rest),
        6 => queue(world, &rest),
        7 => function(world, &rest),
        8 => blocks(world, &rest),
        9 => function_queue(world, &rest),
        10 | 11 => policy(world, &rest),
        12 => container(world, &rest),
        13 => objects(world, &rest),
        14 => buffers(world, &rest),
        _ => kv(world, &rest),
    }
}

fn memory(world: &mut World, op: &Op) -> Step {
    let (handle, good) = world.pick::<prism_memory>(Kind::Memory, op);
    let (number, block) = (op.a, op.a as u32);
    // SAFETY: structures and buffers are those of `World`, with the sizes passed.
    let result = unsafe {
        match op.call {
            0 => {
                let mut made = geometry();
                if op.odd % 16 == 7 {
                    (made.page_size, made.channels) = (op.b as u32 % 70_000, op.c as u32 % 5);
                }
                let (given, mut new) = (world.give(made, op), null_mut());
                let cache = if op.odd % 16 == 9 { block } else { block % 2 };
                let result = prism_memory_create(given, cache, &mut new);
                if result == 0 {
                    world.opened(Kind::Memory, new);
                }
                return (result, true);
            }
            1 if op.b.is_multiple_of(4) => world.close(Kind::Memory, handle, prism_memory_close),
            2 if op.b.is_multiple_of(4) => prism_memory_cut_power_after(handle, number),
            3 => prism_memory_lost_power(handle),
            4 | 5 => prism_memory_restart(handle, number),
            6 if op.b.is_multiple_of(4) => prism_memory_wear_out(handle, block),
            7 if op.b.is_multiple_of(4) => prism_memory_mark_bad(handle, block),
            8 => prism_memory_fail_at_random(handle, f64::from_bits(op.b), number),
            9 => {
                let mut operations = 0;
                prism_memory_operations(handle, &mut operations)
            }
            _ => {
                let (data, length) = world.buffer(op);
                prism_memory_read(handle, block, op.b as u32, data, length)
            }
        }
    };
    (result, good)
}

fn timing(op: &Op) -> prism_timing {
    prism_timing {
        size: size_of::<prism_timing>(),
        t_read_ns: [50_000; PRISM_PAGE_TYPES_MAX],
        t_program_ns: [op.b; PRISM_PAGE_TYPES_MAX],
        page_types: op.a,
        t_erase_ns: op.c,
        t_command_ns: 0,
        bus_bytes_per_second: op.b,
    }
}

/// Formats or opens a device.
fn make_device(world: &mut World, op: &Op) -> Step {
    let (memory, good) = world.pick::<prism_memory>(Kind::Memory, op);
    let times = timing(op);
    let wear = prism_wear_policy {
        size: size_of::<prism_wear_policy>(),
        min_gap: op.a,
        delta: f64::from_bits(op.c),
        budget: op.b as f64,
    };
    let options = prism_options {
        size: size_of::<prism_options>(),
        timing: if op.a.is_multiple_of(2) { &raw const times } else { null() },
        wear: if op.b.is_multiple_of(2) { &raw const wear } else { null() },
    };
    let options = if op.c.is_multiple_of(2) { world.give(options, op) } else { null_mut() };
    let mut new = null_mut();
    // SAFETY: the structures have the size in their first field.
    let result = unsafe {
        match op.call {
            0 => prism_device_format_memory(memory, options, &mut new),
            _ => prism_device_open_memory(memory, options, &mut new),
        }
    };
    if result == 0 {
        world.opened(Kind::Device, new);
    }
    (result, good)
}

fn device(world: &mut World, op: &Op) -> Step {
    if op.call < 2 {
        return make_device(world, op);
    }
    let (handle, good) = world.pick::<prism_device>(Kind::Device, op);
    let (room, length) = world.buffer(op);
    let mut share = null_mut();
    // SAFETY: structures and buffers are those of `World`, with the sizes passed.
    let result = unsafe {
        match op.call {
            2..=4 => {
                let capacity =
                    if op.odd % 8 == 5 { op.b } else { lun_bytes(handle) * (1 + op.b % 4) };
                let percent = if op.odd % 16 == 9 { op.c as u32 } else { op.c as u32 % 60 };
                let mut wanted = allocation(capacity, percent);
                (wanted.bandwidth, wanted.open_blocks) = (op.a / 4 % 3, op.a as u32 / 8 % 3);
                let wanted = world.give(wanted, op);
                prism_device_allocate(handle, name(op, op.a), wanted, &mut share)
            }
            5 | 6 => prism_device_attach(handle, name(op, op.a), &mut share),
            7 if op.b.is_multiple_of(4) => prism_device_release(handle, name(op, op.a)),
            8 if op.b.is_multiple_of(4) => world.close(Kind::Device, handle, prism_device_close),
            9 => prism_device_geometry(handle, world.give(geometry(), op)),
            10 => prism_device_free_luns(handle),
            11 => prism_device_counts(handle, world.give(zeroed(), op)),
            12 => prism_device_wear(handle, world.give(zeroed(), op)),
            13 => {
                let size = size_of::<prism_wear_policy>();
                let wear = prism_wear_policy { size, min_gap: op.a, delta: 0.1, budget: 1.0 };
                prism_device_level_wear(handle, world.give(wear, op), op.b as u32)
            }
            14 => prism_device_shares(handle),
            _ => {
                let info = world.give(zeroed(), op);
                prism_device_share(handle, op.a as usize, info, room.cast(), length)
            }
        }
    };
    if result >= 0 && !share.is_null() {
        world.opened(Kind::Share, share);
    }
    (result, good)
}

/// Opens a level in a share.
fn open_level<T>(
    world: &mut World,
    op: &Op,
    kind: Kind,
    open: unsafe extern "C" fn(*mut prism_share, *mut *mut T) -> c_int,
) -> Step {
    let (share, good) = world.pick::<prism_share>(Kind::Share, op);
    let mut new = null_mut();
    // SAFETY: the pointer to the handle is valid.
    let result = unsafe { open(share, &mut new) };
    if result == 0 {
        world.opened(kind, new);
    }
    (result, good)
}

fn share(world: &mut World, op: &Op) -> Step {
    let (handle, good) = world.pick::<prism_share>(Kind::Share, op);
    let (mut luns, mut now) = ([0; 8], 0);
    // SAFETY: structures and buffers are those of `World`, with the sizes passed.
    let result = unsafe {
        match op.call {
            0 | 1 => world.close(Kind::Share, handle, prism_share_close),
            2 => prism_share_get_geometry(handle, world.give(zeroed(), op)),
            3 => prism_share_channel(handle, op.a as u32, luns.as_mut_ptr(), luns.len()),
            4 => prism_share_get_counts(handle, world.give(zeroed(), op)),
            5 => prism_share_now(handle, &mut now),
            6 => prism_share_pass(handle, op.a),
            7 => prism_share_limit_bandwidth(handle, op.a),
            8 | 9 => prism_share_grow(handle, op.a as u32, op.b as u32),
            10 | 11 => prism_share_shrink(handle, op.a as u32),
            12 if op.b.is_multiple_of(4) => prism_share_release(handle),
            _ => prism_share_get_geometry(handle, null_mut()),
        }
    };
    (result, good)
}

fn raw(world: &mut World, op: &Op) -> Step {
    if op.call < 3 {
        return open_level(world, op, Kind::Raw, prism_raw_open);
    }
    let (handle, good) = world.pick::<prism_raw>(Kind::Raw, op);
    let (data, length) = world.buffer(op);
    let at = address(op);
    let vector = [at, prism_address { page: at.page.wrapping_add(1), ..at }, at];
    let (mut count, mut place, mut ticket, mut oob) = (0, 0, 0, [0u8; 128]);
    let oob = oob.as_mut_ptr().cast();
    // SAFETY: structures and buffers are those of `World`, with the sizes passed.
    let result = unsafe {
        match op.call {
            3 if op.b.is_multiple_of(4) => world.close(Kind::Raw, handle, prism_raw_close),
            4 if op.b.is_multiple_of(2) => {
                prism_raw_read_at(handle, at, op.c as u32 % 9000, data, length % 5000)
            }
            4 => prism_raw_read_page_oob(handle, at, data, length, oob, op.b as usize % 99),
            5 | 6 => prism_raw_write_page(handle, at, data, length),
            7 => prism_raw_write_page_oob(handle, at, data, length, oob, op.b as usize % 99),
            8 => prism_raw_erase_block(handle, at),
            9 => prism_raw_finish_block(handle, at),
            10 => prism_raw_write_pointer(handle, at),
            11 => prism_raw_erase_count(handle, at, &mut count),
            12 if op.b.is_multiple_of(4) => prism_raw_sync(handle),
            12 if op.b % 4 == 1 => prism_raw_ticket(handle, &mut ticket),
            12 if op.b % 4 == 2 => prism_raw_sync_to(handle, op.a),
            12 => prism_raw_grow(handle, op.a as u32),
            13 if op.b.is_multiple_of(2) => prism_raw_shrink(handle, op.a as u32),
            13 => {
                let room = data.cast::<prism_address>();
                prism_raw_blocks(handle, room, if length > 1 << 20 { length } else { length / 16 })
            }
            14 => {
                let given = vector.len() - op.b as usize % 3;
                prism_raw_write_pages(handle, vector.as_ptr(), given, data, length, &mut place)
            }
            _ if op.b.is_multiple_of(2) => {
                prism_raw_read_pages(handle, vector.as_ptr(), 2, data, length, null_mut())
            }
            _ => prism_raw_erase_blocks(handle, vector.as_ptr(), 1, &mut place),
        }
    };
    (result, good)
}

fn function(world: &mut World, op: &Op) -> Step {
    if op.call < 3 {
        return open_level(world, op, Kind::Function, prism_function_open);
    }
    let (handle, good) = world.pick::<prism_function>(Kind::Function, op);
    let (data, length) = world.buffer(op);
    let (at, unit) = (address(op), if op.odd % 16 == 9 { op.b as u32 } else { op.b as u32 % 2 });
    let (mut blocks, mut missing, mut vector) = (0, 0, [at; 3]);
    // SAFETY: structures and buffers are those of `World`, with the sizes passed.
    let result = unsafe {
        match op.call {
            3 if op.b.is_multiple_of(4) => {
                world.close(Kind::Function, handle, prism_function_close)
            }
            4 | 5 => {
                let channel = if op.c.is_multiple_of(2) { PRISM_CHANNEL_ANY } else { op.a as u32 };
                let new = world.give(zeroed(), op);
                prism_function_address_mapper(handle, channel, unit, new)
            }
            6 | 7 => prism_function_write(handle, at, data, length),
            8 => prism_function_read(handle, at, data, length),
            9 => prism_function_trim(handle, at, unit),
            10 => prism_function_drain(handle),
            11 if op.c.is_multiple_of(2) => prism_function_erasing(handle),
            11 => prism_function_free(handle, op.a as u32),
            12 => prism_function_allocated(handle, vector.as_mut_ptr(), op.b as usize % 4),
            13 => prism_function_set_ops(handle, op.a as u32, &mut blocks, &mut missing),
            14 => {
                let level = world.give(zeroed(), op);
                prism_function_wear_level(handle, op.a as u32, op.b as u32, level, null_mut(), 0)
            }
            _ => prism_function_sync(handle),
        }
    };
    (result, good)
}

/// Blocks of the function level.
fn blocks(world: &mut World, op: &Op) -> Step {
    let (handle, good) = world.pick::<prism_function>(Kind::Function, op);
    let (at, (data, length)) = (address(op), world.buffer(op));
    let (mut count, mut ticket, mut oob, mut owned) = (0, 0, [0u8; 128], [zeroed(); 3]);
    let (oob, oob_length) = (oob.as_mut_ptr().cast(), op.b as usize % 60);
    // SAFETY: structures and buffers are those of `World`, with the sizes passed.
    let result = unsafe {
        match op.call {
            0 | 1 => {
                let channel = if op.c.is_multiple_of(2) { PRISM_CHANNEL_ANY } else { op.a as u32 };
                prism_function_allocate_for(handle, channel, op.b, world.give(zeroed(), op))
            }
            2 | 3 => prism_function_owned_blocks(handle, owned.as_mut_ptr(), op.b as usize % 4),
            4 | 5 => prism_function_read_at(handle, at, op.b as u32, data, length),
            6 => prism_function_oob_size(handle),
            7 | 8 => prism_function_write_oob(handle, at, data, length, oob, oob_length),
            9 | 10 => prism_function_read_oob(handle, at, oob, oob_length),
            11 => prism_function_finish(handle, at),
            12 => prism_function_write_pointer(handle, at),
            13 => prism_function_erase_count(handle, at, &mut count),
            14 => prism_function_ticket(handle, &mut ticket),
            _ => prism_function_sync_to(handle, op.a),
        }
    };
    (result, good)
}

fn policy(world: &mut World, op: &Op) -> Step {
    if op.call < 3 {
        return open_level(world, op, Kind::Policy, prism_policy_open);
    }
    let (handle, good) = world.pick::<prism_policy>(Kind::Policy, op);
    let (data, length) = world.buffer(op);
    let (mut unit, mut bytes) = (0, 0);
    // SAFETY: structures and buffers are those of `World`, with the sizes passed.
    let result = unsafe {
        match op.call {
            3 if op.b.is_multiple_of(4) => world.close(Kind::Policy, handle, prism_policy_close),
            4..=6 => {
                let mut config = range_config();
                (config.mapping, config.cleaning) = (op.a as u32 % 4, op.b as u32 % 5);
                if config.mapping == 2 || op.odd % 16 == 9 {
                    (config.group_blocks, config.group_log_blocks) = (op.b as u32, op.c as u32);
                }
                if op.odd % 16 == 10 {
                    (config.over_provisioning, config.handles) = (op.c as u32, op.b as u32);
                    config.open_blocks = op.a as u32;
                }
                let begin = (op.a % 3) << 18;
                let end = if op.odd % 16 == 11 { op.b } else { begin + ((1 + op.c % 8) << 16) };
                prism_policy_configure(handle, begin, end, world.give(config, op))
            }
            7 if op.c.is_multiple_of(2) => prism_policy_remove(handle, (op.a % 3) << 18),
            7 => prism_policy_range(handle, op.a as usize, world.give(zeroed(), op)),
            8 => prism_policy_read(handle, op.a, data, length),
            9 | 10 => prism_policy_write(handle, op.a.wrapping_mul(1 + op.b % 512), data, length),
            11 => prism_policy_write_with_handle(handle, op.a, data, length, op.b as u32),
            12 => prism_policy_trim(handle, op.a / 4096 * 4096, op.b / 4096 * 4096),
            13 => prism_policy_flush(handle),
            14 if op.c.is_multiple_of(2) => prism_policy_idle(handle, op.a as u32),
            14 => prism_policy_containers(handle),
            _ if op.c.is_multiple_of(3) => prism_policy_unit(handle, &mut unit),
            _ if op.c % 3 == 1 => prism_policy_block_bytes(handle, &mut bytes),
            _ => prism_policy_ranges(handle),
        }
    };
    (result, good)
}

fn container(world: &mut World, op: &Op) -> Step {
    let (policy, policy_good) = world.pick::<prism_policy>(Kind::Policy, op);
    let (handle, good) = world.pick::<prism_container>(Kind::Container, op);
    let (data, length) = world.buffer(op);
    let mut new = null_mut();
    // SAFETY: structures and buffers are those of `World`, with the sizes passed.
    let (result, good) = unsafe {
        match op.call {
            0..=2 => {
                let (range, bytes) = ((op.a % 3) << 18, op.b % 20 * 4096);
                let life = op.c as u32 % 6;
                let name = name(op, op.c);
                (prism_container_create(policy, range, name, bytes, life, &mut new), policy_good)
            }
            3 | 4 => (prism_container_open(policy, name(op, op.c), &mut new), policy_good),
            5 => (prism_container_delete(policy, name(op, op.c)), policy_good),
            6 => {
                let info = world.give(zeroed(), op);
                let index = op.a as usize;
                let result = prism_policy_container(policy, index, info, data.cast(), length);
                (result, policy_good)
            }
            7 => (world.close(Kind::Container, handle, prism_container_close), good),
            8 => (prism_container_get_info(handle, world.give(zeroed(), op)), good),
            9 | 10 => (prism_container_read(handle, op.a, data, length), good),
            11..=13 => (prism_container_write(handle, op.a, data, length), good),
            _ => (prism_container_trim(handle, op.a, op.b), good),
        }
    };
    if result == 0 && !new.is_null() {
        world.opened(Kind::Container, new);
    }
    (result, good)
}

fn objects(world: &mut World, op: &Op) -> Step {
    if op.call < 3 {
        return open_level(world, op, Kind::Objects, prism_objects_open);
    }
    let (handle, good) = world.pick::<prism_objects>(Kind::Objects, op);
    let (data, length) = world.buffer(op);
    let id = 1 + op.a % 4;
    let said = prism_attributes {
        size: size_of::<prism_attributes>(),
        priority: op.a as u32 % 3,
        read_only: u32::from(op.b % 8 == 1),
        cold: op.c as u32 % 2,
        lifetime: op.b as u32 % 6,
    };
    let (mut number, mut other, mut got) = (0, 0, 0);
    // SAFETY: structures and buffers are those of `World`, with the sizes passed.
    let result = unsafe {
        match op.call {
            3 if op.b.is_multiple_of(4) => world.close(Kind::Objects, handle, prism_objects_close),
            4 => prism_objects_create(handle, world.give(said, op), &mut number),
            5 => prism_objects_create(handle, null(), &mut number),
            6 => prism_objects_info(handle, id, &mut number, world.give(said, op)),
            7 => prism_objects_list(handle, &mut number, 1),
            8 => prism_objects_set_attributes(handle, id, world.give(said, op)),
            9 => prism_objects_read(handle, id, op.b, data, length, &mut got),
            10 | 11 => prism_objects_write(handle, id, op.b, data, length),
            12 => prism_objects_append(handle, id, data, length, &mut number),
            13 if op.c.is_multiple_of(2) => prism_objects_truncate(handle, id, op.b),
            13 => prism_objects_delete(handle, id),
            14 => prism_objects_flush(handle),
            _ if op.c.is_multiple_of(2) => prism_objects_idle(handle, op.b as u32),
            _ => prism_objects_capacity(handle, &mut number, &mut other),
        }
    };
    (result, good)
}

unsafe extern "C" fn visit(
    context: *mut c_void,
    _: *const c_void,
    _: usize,
    _: *const c_void,
    _: usize,
) -> c_int {
    // SAFETY: the context is a count.
    let count = unsafe { &mut *context.cast::<c_int>() };
    *count += 1;
    c_int::from(*count > 2)
}

fn kv(world: &mut World, op: &Op) -> Step {
    if op.call < 3 {
        return open_level(world, op, Kind::Kv, prism_kv_open);
    }
    let (handle, good) = world.pick::<prism_kv>(Kind::Kv, op);
    let (data, length) = world.buffer(op);
    let key = world.room.as_ptr().cast();
    let key_length = if op.odd % 16 == 9 { op.b as usize } else { 1 + op.b as usize % 40 };
    let (mut found, mut visited) = (0usize, 0 as c_int);
    // SAFETY: structures and buffers are those of `World`, with the sizes passed.
    let result = unsafe {
        match op.call {
            3 if op.b.is_multiple_of(4) => world.close(Kind::Kv, handle, prism_kv_close),
            4 => prism_kv_key_max(handle),
            5..=8 => prism_kv_set(handle, key, key_length, data, length),
            9 => prism_kv_delete(handle, key, key_length),
            10 | 11 => prism_kv_get(handle, key, key_length, data, length, &mut found),
            12 | 13 => {
                let context = (&raw mut visited).cast();
                let (from, limit) = (key_length.min(1 << 10), op.a as usize);
                let to = null();
                let call = if op.odd % 16 == 10 { None } else { Some(visit as _) };
                prism_kv_scan(handle, key, from, to, 0, limit, call, context)
            }
            14 => prism_kv_flush(handle),
            _ => prism_kv_get_info(handle, world.give(zeroed(), op)),
        }
    };
    (result, good)
}
