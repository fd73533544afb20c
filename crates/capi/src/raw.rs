//! The raw level: pages and blocks, under the rules of flash.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use prism::Share;
use prism::raw::{Address, Raw, VectorError};

use crate::ffi_boundary::{
    Out, at_most, bytes, bytes_mut, call, done, number, put, slice, slice_mut,
};
use crate::handle::{close, get, open};
use crate::share::prism_share;
use crate::status::{Failure, Status};
use crate::structs::prism_address;

mod queue;

pub(crate) use queue::QueueObject;
pub use queue::*;

/// A share at the raw level. Threads may use it at once; they have to order their operations on one
/// block.
pub struct prism_raw;

/// Calls take a read lock, growing and shrinking a write lock.
pub(crate) struct RawObject(RwLock<Arc<Raw>>);

held!(RawObject, prism_raw, Raw);

impl RawObject {
    fn raw(&self) -> RwLockReadGuard<'_, Arc<Raw>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn resize(&self, change: impl FnOnce(&mut Raw) -> prism::Result<()>) -> Result<c_int, Failure> {
        let mut raw = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let what = "a queue is open on this prism_raw: close it first";
        let raw = Arc::get_mut(&mut raw);
        change(raw.ok_or_else(|| Failure::new(Status::PRISM_EBUSY, what))?)?;
        Ok(0)
    }
}

/// Checks that a length is at most that of a page.
fn check_page(raw: &Raw, length: usize, oob_length: usize) -> Result<(), Failure> {
    at_most(length, raw.geometry().page_size.into(), "a page")?;
    at_most(oob_length, raw.geometry().oob_size.into(), "the out-of-band part of a page")
}

/// Opens the raw level in a share, which stays attached until the level is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_raw_open(
    share: *mut prism_share,
    raw: *mut *mut prism_raw,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let out = unsafe { Out::handle(raw) }?;
        let raw = Raw::open(Share::clone(&*get::<Share>(share)?))?;
        out.put(open(RawObject(RwLock::new(Arc::new(raw))))?);
        Ok(0)
    })
}

/// Closes the handle. Open queues keep the level open.
#[unsafe(no_mangle)]
pub extern "C" fn prism_raw_close(raw: *mut prism_raw) -> c_int {
    call(|| close::<RawObject>(raw).map(|_| 0))
}

/// Returns the number of blocks of the share. Writes their addresses to `blocks`, LUN by LUN and
/// channel by channel, at most `capacity` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_raw_blocks(
    raw: *mut prism_raw,
    blocks: *mut prism_address,
    capacity: usize,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let room = unsafe { slice_mut(blocks, capacity, "the room for blocks") }?;
        let object = get::<RawObject>(raw)?;
        let raw = object.raw();
        room.iter_mut().zip(raw.blocks()).for_each(|(to, at)| *to = at.into());
        number(raw.geometry().blocks())
    })
}

/// Reads a page, or its first bytes (`Page_Read` of the paper).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_raw_read_page(
    raw: *mut prism_raw,
    at: prism_address,
    data: *mut c_void,
    length: usize,
) -> c_int {
    // SAFETY: the contract in the header, and no out-of-band bytes.
    unsafe { prism_raw_read_page_oob(raw, at, data, length, std::ptr::null_mut(), 0) }
}

/// Reads a page, or its first bytes, and its first out-of-band bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_raw_read_page_oob(
    raw: *mut prism_raw,
    at: prism_address,
    data: *mut c_void,
    length: usize,
    oob: *mut c_void,
    oob_length: usize,
) -> c_int {
    done(|| {
        let object = get::<RawObject>(raw)?;
        let raw = object.raw();
        check_page(&raw, length, oob_length)?;
        // SAFETY: the contract in the header.
        let (data, oob) = unsafe { (bytes_mut(data, length)?, bytes_mut(oob, oob_length)?) };
        Ok(raw.read_page_and_oob(at.into(), data, oob)?)
    })
}

/// Reads a part of a page: `length` bytes from byte `offset` of it on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_raw_read_at(
    raw: *mut prism_raw,
    at: prism_address,
    offset: u32,
    data: *mut c_void,
    length: usize,
) -> c_int {
    done(|| {
        let object = get::<RawObject>(raw)?;
        let raw = object.raw();
        check_page(&raw, length, 0)?;
        // SAFETY: the contract in the header.
        let data = unsafe { bytes_mut(data, length) }?;
        Ok(raw.read_at(at.into(), offset, data)?)
    })
}

/// Writes a page: the next of its block (`Page_Write` of the paper).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_raw_write_page(
    raw: *mut prism_raw,
    at: prism_address,
    data: *const c_void,
    length: usize,
) -> c_int {
    // SAFETY: the contract in the header, and no out-of-band bytes.
    unsafe { prism_raw_write_page_oob(raw, at, data, length, std::ptr::null(), 0) }
}

/// Writes a page and its first `oob_length` out-of-band bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_raw_write_page_oob(
    raw: *mut prism_raw,
    at: prism_address,
    data: *const c_void,
    length: usize,
    oob: *const c_void,
    oob_length: usize,
) -> c_int {
    done(|| {
        let object = get::<RawObject>(raw)?;
        let raw = object.raw();
        check_page(&raw, length, oob_length)?;
        // SAFETY: the contract in the header.
        let (data, oob) = unsafe { (bytes(data, length)?, bytes(oob, oob_length)?) };
        Ok(raw.write_page_and_oob(at.into(), data, oob)?)
    })
}

/// Erases a block (`Block_Erase` of the paper). A block that fails is replaced below its
/// address.
#[unsafe(no_mangle)]
pub extern "C" fn prism_raw_erase_block(raw: *mut prism_raw, at: prism_address) -> c_int {
    done(|| Ok(get::<RawObject>(raw)?.raw().erase_block(at.into())?))
}

/// Closes a block: it takes no more pages and no longer counts as partly written.
#[unsafe(no_mangle)]
pub extern "C" fn prism_raw_finish_block(raw: *mut prism_raw, at: prism_address) -> c_int {
    done(|| Ok(get::<RawObject>(raw)?.raw().finish_block(at.into())?))
}

/// Returns the page of the block that is to be written next.
#[unsafe(no_mangle)]
pub extern "C" fn prism_raw_write_pointer(raw: *mut prism_raw, at: prism_address) -> c_int {
    call(|| number(get::<RawObject>(raw)?.raw().write_pointer(at.into())?))
}

/// Writes to `erases` how often the block at this address was erased.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_raw_erase_count(
    raw: *mut prism_raw,
    at: prism_address,
    erases: *mut u32,
) -> c_int {
    // SAFETY: the contract in the header.
    unsafe { put(erases, "erases", || Ok(get::<RawObject>(raw)?.raw().erase_count(at.into())?)) }
}

/// Makes everything written so far durable.
#[unsafe(no_mangle)]
pub extern "C" fn prism_raw_sync(raw: *mut prism_raw) -> c_int {
    done(|| Ok(get::<RawObject>(raw)?.raw().sync()?))
}

/// Writes a ticket for everything that is complete now to `ticket`: `prism_raw_sync_to` makes it
/// durable, with one sync for the tickets of many threads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_raw_ticket(raw: *mut prism_raw, ticket: *mut u64) -> c_int {
    // SAFETY: the contract in the header.
    unsafe { put(ticket, "ticket", || Ok(get::<RawObject>(raw)?.raw().ticket())) }
}

/// Makes everything durable that was complete when the ticket was drawn. Returns at once if a sync
/// since then has done so.
#[unsafe(no_mangle)]
pub extern "C" fn prism_raw_sync_to(raw: *mut prism_raw, ticket: u64) -> c_int {
    done(|| Ok(get::<RawObject>(raw)?.raw().sync_to(ticket)?))
}

/// Adds LUNs to the share.
#[unsafe(no_mangle)]
pub extern "C" fn prism_raw_grow(raw: *mut prism_raw, luns: u32) -> c_int {
    call(|| get::<RawObject>(raw)?.resize(|raw| raw.grow(luns)))
}

/// Gives back the last LUNs of the share, which have to be erased.
#[unsafe(no_mangle)]
pub extern "C" fn prism_raw_shrink(raw: *mut prism_raw, luns: u32) -> c_int {
    call(|| get::<RawObject>(raw)?.resize(|raw| raw.shrink(luns)))
}

/// Runs a vectored call, and reports which command failed.
fn vectored(
    raw: *mut prism_raw,
    at: &[prism_address],
    failed: *mut usize,
    run: impl FnOnce(&Raw, &[Address]) -> Result<(), VectorError>,
) -> Result<c_int, Failure> {
    // SAFETY: the contract of the calls below.
    let failed = unsafe { Out::if_any(failed, "failed") }?;
    let object = get::<RawObject>(raw)?;
    let at: Vec<Address> = at.iter().map(|&at| at.into()).collect();
    match run(&object.raw(), &at) {
        Ok(()) => Ok(0),
        Err(error) => {
            failed.iter().for_each(|failed| failed.put(error.index));
            let message = error.to_string();
            Err(Failure { message, ..Failure::from(error.error) })
        }
    }
}

/// Reads pages into `data`, page after page. All reads start now; returns when the last is
/// complete. `failed`, which may be NULL, is set to the index of the command that failed. Those
/// before it are complete, those after it were not started.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_raw_read_pages(
    raw: *mut prism_raw,
    pages: *const prism_address,
    count: usize,
    data: *mut c_void,
    length: usize,
    failed: *mut usize,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let (at, data) = unsafe { (slice(pages, count, "pages")?, bytes_mut(data, length)?) };
        vectored(raw, at, failed, |raw, at| raw.read_pages(at, data))
    })
}

/// Writes pages from `data`, page after page. All writes start now; returns when the last is
/// complete. `failed` is as in `prism_raw_read_pages`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_raw_write_pages(
    raw: *mut prism_raw,
    pages: *const prism_address,
    count: usize,
    data: *const c_void,
    length: usize,
    failed: *mut usize,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let (at, data) = unsafe { (slice(pages, count, "pages")?, bytes(data, length)?) };
        vectored(raw, at, failed, |raw, at| raw.write_pages(at, data))
    })
}

/// Erases blocks. All erases start now; returns when the last is complete. `failed` is as in
/// `prism_raw_read_pages`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_raw_erase_blocks(
    raw: *mut prism_raw,
    blocks: *const prism_address,
    count: usize,
    failed: *mut usize,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let at = unsafe { slice(blocks, count, "blocks") }?;
        vectored(raw, at, failed, |raw, at| raw.erase_blocks(at))
    })
}
