//! Devices in memory, which the program can still reach while they are in use.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use prism::{Medium, MemoryDevice, PageState, Rng, SharedMemory};

use crate::convert::cache;
use crate::ffi_boundary::{Out, at_most, bytes_mut, call, put, read};
use crate::handle::{close, get, open};
use crate::status::{Failure, Status};
use crate::structs::prism_geometry;

/// Flash in memory, with all rules and failures of flash. Its data stays while devices on it are
/// closed and opened, until it is closed itself. Threads may use it at once.
pub struct prism_memory;

/// Limit of blocks of a device in memory, so that its tables stay below a gigabyte.
const BLOCKS_MAX: u64 = 1 << 22;

pub(crate) struct Memory {
    pub(crate) flash: SharedMemory,
    /// Whether a device is open on it.
    pub(crate) in_use: AtomicBool,
}

held!(Memory, prism_memory, Memory);

impl Memory {
    /// Marks it as used by a device.
    pub(crate) fn claim(&self) -> Result<(), Failure> {
        if self.in_use.swap(true, Ordering::AcqRel) {
            let what = "a device is open on this prism_memory: close it first";
            return Err(Failure::new(Status::PRISM_EINUSE, what));
        }
        Ok(())
    }

    pub(crate) fn give_back(&self) {
        self.in_use.store(false, Ordering::Release);
    }

    fn check(&self, block: u32) -> Result<(), Failure> {
        let blocks = self.flash.geometry().blocks();
        if block < blocks {
            return Ok(());
        }
        let what = format!("block {block} is outside of the device, which has {blocks}");
        Err(Failure::new(Status::PRISM_ERANGE, what))
    }
}

/// Makes an erased device in memory. `cache` is one of `prism_cache`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_memory_create(
    geometry: *const prism_geometry,
    cache_kind: u32,
    memory: *mut *mut prism_memory,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let (out, geometry) = unsafe { (Out::handle(memory)?, read(geometry)?) };
        let (geometry, cache) = (geometry.value()?, cache(cache_kind)?);
        geometry.check().map_err(prism::FlashError::from)?;
        if u64::from(geometry.blocks()) > BLOCKS_MAX {
            let what = format!("a device in memory has {BLOCKS_MAX} blocks at most");
            return Err(Failure::new(Status::PRISM_EGEOMETRY, what));
        }
        let device = MemoryDevice::new(geometry, cache).map_err(prism::FlashError::from)?;
        let (flash, in_use) = (SharedMemory::from(device), AtomicBool::new(false));
        out.put(open(Memory { flash, in_use })?);
        Ok(0)
    })
}

/// Closes the handle; the memory is freed when no device is open on it any more.
#[unsafe(no_mangle)]
pub extern "C" fn prism_memory_close(memory: *mut prism_memory) -> c_int {
    call(|| close::<Memory>(memory).map(|_| 0))
}

/// Power fails during the operation (program, erase, finish or sync) after the next `operations`.
/// Every call on the device fails from then on with `PRISM_EPOWER`.
#[unsafe(no_mangle)]
pub extern "C" fn prism_memory_cut_power_after(
    memory: *mut prism_memory,
    operations: u64,
) -> c_int {
    call(|| {
        let memory = get::<Memory>(memory)?;
        let flash = &memory.flash;
        // The largest number means never.
        let most = u64::MAX - flash.operations();
        flash.cut_power_after(operations.min(most));
        Ok(0)
    })
}

/// Returns 1 if power has failed, else 0.
#[unsafe(no_mangle)]
pub extern "C" fn prism_memory_lost_power(memory: *mut prism_memory) -> c_int {
    call(|| Ok(get::<Memory>(memory)?.flash.lost_power().into()))
}

/// Cuts power, unless it has failed already, and restores it. With a volatile cache each block
/// keeps the first few of its operations since the last sync, as many as `seed` determines, and the
/// next one may be torn. Close the device before, and open it again after this: otherwise
/// `PRISM_EINUSE`.
#[unsafe(no_mangle)]
pub extern "C" fn prism_memory_restart(memory: *mut prism_memory, seed: u64) -> c_int {
    call(|| {
        let memory = get::<Memory>(memory)?;
        memory.claim()?;
        memory.flash.restart(&mut Rng::stream(seed, "power"));
        memory.give_back();
        Ok(0)
    })
}

/// Every program and erase of `block`, a number of the device, fails from now on.
#[unsafe(no_mangle)]
pub extern "C" fn prism_memory_wear_out(memory: *mut prism_memory, block: u32) -> c_int {
    call(|| {
        let memory = get::<Memory>(memory)?;
        memory.check(block)?;
        memory.flash.wear_out(block);
        Ok(0)
    })
}

/// Marks `block` as bad by the manufacturer; call it before the device is formatted.
#[unsafe(no_mangle)]
pub extern "C" fn prism_memory_mark_bad(memory: *mut prism_memory, block: u32) -> c_int {
    call(|| {
        let memory = get::<Memory>(memory)?;
        memory.check(block)?;
        memory.claim()?;
        memory.flash.mark_factory_bad(block);
        memory.give_back();
        Ok(0)
    })
}

/// From now on a block wears out with probability `rate` at each program and erase.
#[unsafe(no_mangle)]
pub extern "C" fn prism_memory_fail_at_random(
    memory: *mut prism_memory,
    rate: f64,
    seed: u64,
) -> c_int {
    call(|| {
        if !(0.0..=1.0).contains(&rate) {
            return Err(Failure::argument(format!("the rate is {rate}, and between 0 and 1")));
        }
        get::<Memory>(memory)?.flash.fail_at_random(rate, seed);
        Ok(0)
    })
}

/// Writes the number of programs, erases, finishes and syncs so far to `operations`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_memory_operations(
    memory: *mut prism_memory,
    operations: *mut u64,
) -> c_int {
    // SAFETY: the contract in the header.
    unsafe { put(operations, "operations", || Ok(get::<Memory>(memory)?.flash.operations())) }
}

/// Reads the first bytes of a page on flash, below the monitor. Returns 1 if the page was written,
/// 0 if it is erased, `PRISM_ETORN` if it cannot be read. The buffer is unchanged unless the page
/// was written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_memory_read(
    memory: *mut prism_memory,
    block: u32,
    page: u32,
    data: *mut c_void,
    length: usize,
) -> c_int {
    call(|| {
        let memory = get::<Memory>(memory)?;
        memory.check(block)?;
        let (pages, bytes) = {
            let geometry = memory.flash.geometry();
            (geometry.pages_per_block, geometry.page_size)
        };
        if page >= pages {
            let what = format!("page {page} is outside of the block, which has {pages}");
            return Err(Failure::new(Status::PRISM_ERANGE, what));
        }
        at_most(length, bytes.into(), "a page")?;
        // SAFETY: the contract in the header.
        let data = unsafe { bytes_mut(data, length) }?;
        let state = memory.flash.read(block, page, 0, data, &mut []);
        match state.map_err(prism::FlashError::from)? {
            PageState::Written => Ok(1),
            PageState::Erased => Ok(0),
            PageState::Torn => {
                let what = format!("page {page} of block {block} is torn");
                Err(Failure::new(Status::PRISM_ETORN, what))
            }
        }
    })
}
