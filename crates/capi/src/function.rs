//! The function level: the library allocates and erases blocks and levels wear; the application
//! does the mapping and the cleaning.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use prism::function::{Channel, Function, Unit};
use prism::{FlashError, Share};

use crate::ffi_boundary::{
    Out, OutStruct, at_most, bytes, bytes_mut, call, done, number, put, put_struct, slice_mut,
};
use crate::handle::{close, get, open};
use crate::share::prism_share;
use crate::status::Failure;
use crate::structs::{prism_address, prism_allocated, prism_pair, prism_wear_level};

mod blocks;
mod queue;

pub use blocks::*;
pub(crate) use queue::FunctionQueueObject;
pub use queue::*;

/// A share at the function level. Threads may use it at once, each with a queue of its own; a
/// blocking call advances the share's clock for all of them.
pub struct prism_function;

/// The channel with the least work queued.
pub const PRISM_CHANNEL_ANY: u32 = u32::MAX;

/// The unit of an allocation or a trim.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum prism_unit {
    /// A block.
    PRISM_UNIT_BLOCK = 0,
    /// A page.
    PRISM_UNIT_PAGE = 1,
}

pub(crate) struct FunctionObject(Arc<Function>);

held!(FunctionObject, prism_function, Function);

fn unit_of(unit: u32) -> Result<Unit, Failure> {
    match unit {
        0 => Ok(Unit::Block),
        1 => Ok(Unit::Page),
        other => Err(Failure::argument(format!("the unit is {other}, and 0 (block) or 1 (page)"))),
    }
}

fn channel_of(channel: u32) -> Channel {
    match channel {
        PRISM_CHANNEL_ANY => Channel::Any,
        number => Channel::Number(number),
    }
}

/// Checks that a length is at most that of a block.
fn check_block(function: &Function, length: usize) -> Result<(), Failure> {
    at_most(length, function.geometry().block_bytes(), "a block")
}

/// Opens the function level in a share, which stays attached until the level is closed. Blocks that
/// hold data are allocated: `prism_function_allocated` and `prism_function_owned_blocks` list them.
/// `PRISM_EINUSE` if the level is open in the share already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_function_open(
    share: *mut prism_share,
    function: *mut *mut prism_function,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let out = unsafe { Out::handle(function) }?;
        let function = Function::open(Share::clone(&*get::<Share>(share)?))?;
        out.put(open(FunctionObject(Arc::new(function)))?);
        Ok(0)
    })
}

/// Closes the handle. Open queues keep the level open. A block that waits for its erase keeps its
/// data: call `prism_function_drain` before.
#[unsafe(no_mangle)]
pub extern "C" fn prism_function_close(function: *mut prism_function) -> c_int {
    call(|| close::<FunctionObject>(function).map(|_| 0))
}

/// Allocates an erased block, or the next page of an open one (`Address_Mapper` of the paper).
/// `channel` may be `PRISM_CHANNEL_ANY`, `unit` is one of `prism_unit`. `PRISM_ENOSPACE` if the
/// channel has none left, or only over-provisioning.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_function_address_mapper(
    function: *mut prism_function,
    channel: u32,
    unit: u32,
    allocated: *mut prism_allocated,
) -> c_int {
    // SAFETY: the contract in the header.
    unsafe {
        put_struct(allocated, || {
            Ok(get::<FunctionObject>(function)?
                .0
                .address_mapper(channel_of(channel), unit_of(unit)?)?
                .into())
        })
    }
}

/// Writes whole pages of one block, from `at` on, which has to be its next page (`Flash_Write` of
/// the paper).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_function_write(
    function: *mut prism_function,
    at: prism_address,
    data: *const c_void,
    length: usize,
) -> c_int {
    done(|| {
        let object = get::<FunctionObject>(function)?;
        check_block(&object.0, length)?;
        // SAFETY: the contract in the header.
        let data = unsafe { bytes(data, length) }?;
        Ok(object.0.write(at.into(), data)?)
    })
}

/// Reads whole pages of one block, from `at` on (`Flash_Read` of the paper). The content of `data`
/// is unspecified if that fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_function_read(
    function: *mut prism_function,
    at: prism_address,
    data: *mut c_void,
    length: usize,
) -> c_int {
    done(|| {
        let object = get::<FunctionObject>(function)?;
        check_block(&object.0, length)?;
        // SAFETY: the contract in the header.
        let data = unsafe { bytes_mut(data, length) }?;
        Ok(object.0.read(at.into(), data)?)
    })
}

/// Trims a block or a page (`Flash_Trim` of the paper); the block is erased in the background.
/// `unit` is one of `prism_unit`.
#[unsafe(no_mangle)]
pub extern "C" fn prism_function_trim(
    function: *mut prism_function,
    at: prism_address,
    unit: u32,
) -> c_int {
    done(|| Ok(get::<FunctionObject>(function)?.0.trim(at.into(), unit_of(unit)?)?))
}

/// Waits until all trimmed blocks are erased. Without virtual time, a block with commands in flight
/// is erased when their completions were taken, and not waited for.
#[unsafe(no_mangle)]
pub extern "C" fn prism_function_drain(function: *mut prism_function) -> c_int {
    done(|| Ok(get::<FunctionObject>(function)?.0.drain()?))
}

/// Returns the number of trimmed blocks that are not erased yet.
#[unsafe(no_mangle)]
pub extern "C" fn prism_function_erasing(function: *mut prism_function) -> c_int {
    call(|| number(get::<FunctionObject>(function)?.0.erasing()?))
}

/// Returns the number of erased blocks of a channel, including over-provisioning.
#[unsafe(no_mangle)]
pub extern "C" fn prism_function_free(function: *mut prism_function, channel: u32) -> c_int {
    call(|| number(get::<FunctionObject>(function)?.0.free(channel)?))
}

/// Returns the number of allocated blocks. Writes their addresses to `blocks`, LUN by LUN, each
/// with its next page to write, at most `capacity` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_function_allocated(
    function: *mut prism_function,
    blocks: *mut prism_address,
    capacity: usize,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let room = unsafe { slice_mut(blocks, capacity, "the room for blocks") }?;
        let allocated = get::<FunctionObject>(function)?.0.allocated()?;
        let filled = room.iter_mut().zip(&allocated);
        filled.for_each(|(to, (at, next))| *to = at.with_page(*next).into());
        number(allocated.len())
    })
}

/// Sets the over-provisioning to `percent` of the remaining capacity (`Flash_SetOPS` of the paper),
/// and writes its number of blocks to `blocks`. `PRISM_EOPS` if too many blocks are allocated:
/// `must_free` is then set to the number to trim first. Both may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_function_set_ops(
    function: *mut prism_function,
    percent: u32,
    blocks: *mut u32,
    must_free: *mut u32,
) -> c_int {
    let put = |to: *mut u32, what, value| {
        // SAFETY: the contract in the header.
        let out = unsafe { Out::if_any(to, what) }?;
        out.iter().for_each(|out| out.put(value));
        Ok::<_, Failure>(())
    };
    done(|| {
        put(blocks, "blocks", 0)?;
        put(must_free, "must_free", 0)?;
        let set = get::<FunctionObject>(function)?.0.set_ops(percent);
        if let Err(FlashError::OverProvisioning { blocks: count, must_free: missing }) = set {
            put(blocks, "blocks", count)?;
            put(must_free, "must_free", missing)?;
        }
        put(blocks, "blocks", set?)
    })
}

/// Levels wear (`Wear_Leveler` of the paper): exchanges the data of at most `max_pairs` pairs of
/// blocks whose erase counts differ by more than `min_gap`, the widest gaps first. Addresses do not
/// change. Returns the number of pairs, and writes them to `pairs`, at most `capacity` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_function_wear_level(
    function: *mut prism_function,
    max_pairs: u32,
    min_gap: u32,
    level: *mut prism_wear_level,
    pairs: *mut prism_pair,
    capacity: usize,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let (out, room) =
            unsafe { (OutStruct::new(level)?, slice_mut(pairs, capacity, "the room for pairs")?) };
        let done = get::<FunctionObject>(function)?.0.wear_level(max_pairs, min_gap)?;
        let (max, min, mean, variance) = (done.max, done.min, done.mean, done.variance);
        out.put(prism_wear_level { size: 0, mean, variance, max, min });
        for (to, &(hot, cold)) in room.iter_mut().zip(&done.pairs) {
            *to = prism_pair { hot: hot.into(), cold: cold.into() };
        }
        number(done.pairs.len())
    })
}

/// Makes everything durable that was written and is complete.
#[unsafe(no_mangle)]
pub extern "C" fn prism_function_sync(function: *mut prism_function) -> c_int {
    done(|| Ok(get::<FunctionObject>(function)?.0.sync()?))
}

/// Writes a ticket for everything that is complete now to `ticket`: `prism_function_sync_to` makes
/// it durable, with one sync for the tickets of many threads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_function_ticket(
    function: *mut prism_function,
    ticket: *mut u64,
) -> c_int {
    // SAFETY: the contract in the header.
    unsafe { put(ticket, "ticket", || Ok(get::<FunctionObject>(function)?.0.ticket())) }
}

/// Makes everything durable that was complete when the ticket was drawn. Returns at once if a sync
/// since then has done so.
#[unsafe(no_mangle)]
pub extern "C" fn prism_function_sync_to(function: *mut prism_function, ticket: u64) -> c_int {
    done(|| Ok(get::<FunctionObject>(function)?.0.sync_to(ticket)?))
}
