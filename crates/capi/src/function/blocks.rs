//! Blocks of the function level: their owners, out-of-band bytes and state.

use std::ffi::{c_int, c_void};

use prism::function::Function;

use crate::ffi_boundary::{
    at_most, bytes, bytes_mut, call, done, number, put, put_struct, slice_mut,
};
use crate::function::{FunctionObject, channel_of, check_block, prism_function};
use crate::handle::get;
use crate::status::Failure;
use crate::structs::{prism_address, prism_allocated, prism_owned_block};

/// Checks the number of out-of-band bytes of a call.
pub(super) fn check_oob(function: &Function, length: usize) -> Result<(), Failure> {
    at_most(length, function.oob_size() as u64, "the application's out-of-band part of a page")
}

/// Allocates an erased block as `prism_function_address_mapper` does, with a word of the
/// application that `prism_function_owned_blocks` returns after the share was opened again. The
/// word is stored in the last 8 out-of-band bytes of the block's first page; 0 is no owner.
/// `PRISM_EINVALID` on a device with fewer than 8 out-of-band bytes, or with virtual time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_function_allocate_for(
    function: *mut prism_function,
    channel: u32,
    owner: u64,
    allocated: *mut prism_allocated,
) -> c_int {
    // SAFETY: the contract in the header.
    unsafe {
        put_struct(allocated, || {
            Ok(get::<FunctionObject>(function)?.0.allocate_for(channel_of(channel), owner)?.into())
        })
    }
}

/// Returns the number of allocated blocks. Writes them to `blocks`, LUN by LUN, each with its next
/// page to write and the word of its owner: 0 if it has none, or if nothing was written to the
/// block. At most `capacity` of them. The first call after the share was opened reads the
/// out-of-band bytes of a page of each block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_function_owned_blocks(
    function: *mut prism_function,
    blocks: *mut prism_owned_block,
    capacity: usize,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let room = unsafe { slice_mut(blocks, capacity, "the room for blocks") }?;
        let owned = get::<FunctionObject>(function)?.0.owned_blocks()?;
        room.iter_mut().zip(&owned).for_each(|(to, &block)| *to = block.into());
        number(owned.len())
    })
}

/// Reads a part of a block: `length` bytes from byte `offset` of page `at` on. With virtual time
/// the read takes its time at once, before queued commands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_function_read_at(
    function: *mut prism_function,
    at: prism_address,
    offset: u32,
    data: *mut c_void,
    length: usize,
) -> c_int {
    done(|| {
        let object = get::<FunctionObject>(function)?;
        check_block(&object.0, length)?;
        // SAFETY: the contract in the header.
        let data = unsafe { bytes_mut(data, length) }?;
        Ok(object.0.read_at(at.into(), offset, data)?)
    })
}

/// Returns the number of out-of-band bytes of a page that the application can use: those of the
/// device without the 8 bytes of the block's owner.
#[unsafe(no_mangle)]
pub extern "C" fn prism_function_oob_size(function: *mut prism_function) -> c_int {
    call(|| number(get::<FunctionObject>(function)?.0.oob_size()))
}

/// Writes whole pages as `prism_function_write` does, and the first `oob_length` out-of-band bytes
/// of the first page: at most `prism_function_oob_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_function_write_oob(
    function: *mut prism_function,
    at: prism_address,
    data: *const c_void,
    length: usize,
    oob: *const c_void,
    oob_length: usize,
) -> c_int {
    done(|| {
        let object = get::<FunctionObject>(function)?;
        check_block(&object.0, length)?;
        check_oob(&object.0, oob_length)?;
        // SAFETY: the contract in the header.
        let (data, oob) = unsafe { (bytes(data, length)?, bytes(oob, oob_length)?) };
        Ok(object.0.write_with_oob(at.into(), data, oob)?)
    })
}

/// Reads the first `oob_length` out-of-band bytes of a page: at most `prism_function_oob_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_function_read_oob(
    function: *mut prism_function,
    at: prism_address,
    oob: *mut c_void,
    oob_length: usize,
) -> c_int {
    done(|| {
        let object = get::<FunctionObject>(function)?;
        check_oob(&object.0, oob_length)?;
        // SAFETY: the contract in the header.
        let oob = unsafe { bytes_mut(oob, oob_length) }?;
        Ok(object.0.read_oob(at.into(), oob)?)
    })
}

/// Closes a block: it takes no more pages and no longer counts as partly written.
#[unsafe(no_mangle)]
pub extern "C" fn prism_function_finish(function: *mut prism_function, at: prism_address) -> c_int {
    done(|| Ok(get::<FunctionObject>(function)?.0.finish(at.into())?))
}

/// Returns the page of the block that is to be written next.
#[unsafe(no_mangle)]
pub extern "C" fn prism_function_write_pointer(
    function: *mut prism_function,
    at: prism_address,
) -> c_int {
    call(|| number(get::<FunctionObject>(function)?.0.write_pointer(at.into())?))
}

/// Writes to `erases` how often the block at this address was erased.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_function_erase_count(
    function: *mut prism_function,
    at: prism_address,
    erases: *mut u32,
) -> c_int {
    // SAFETY: the contract in the header.
    unsafe {
        put(erases, "erases", || Ok(get::<FunctionObject>(function)?.0.erase_count(at.into())?))
    }
}
