//! The policy level: logical ranges, each with a mapping and a cleaning policy.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use prism::policy::Policy;
use prism::{FlashError, Share};

use crate::ffi_boundary::{
    Out, OutStruct, at_most, bytes, bytes_mut, call, done, number, put, read,
};
use crate::handle::{close, get, open};
use crate::share::prism_share;
use crate::status::Failure;
use crate::structs::{prism_range_config, prism_range_info};

mod queue;

pub use queue::*;
pub(crate) use queue::{OpenPolicy, PolicyQueueObject};

/// A share at the policy level. Threads may use it at once.
pub struct prism_policy;

pub(crate) struct PolicyObject {
    pub(crate) policy: Policy,
    /// The end of the last range, the limit of the length of a request.
    end: AtomicU64,
}

held!(PolicyObject, prism_policy, Policy);

impl PolicyObject {
    fn ranges_changed(&self) {
        let end = self.policy.ranges().last().map_or(0, |range| range.end);
        self.end.store(end, Ordering::Release);
    }

    fn check(&self, length: usize) -> Result<(), Failure> {
        at_most(length, self.end.load(Ordering::Acquire), "all that the ranges span")
    }
}

/// Opens the policy level in a share, with its ranges, if any. The share stays attached until the
/// level is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_policy_open(
    share: *mut prism_share,
    policy: *mut *mut prism_policy,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let out = unsafe { Out::handle(policy) }?;
        let policy = Policy::open(Share::clone(&*get::<Share>(share)?))?;
        let object = PolicyObject { policy, end: AtomicU64::new(0) };
        object.ranges_changed();
        out.put(open(object)?);
        Ok(0)
    })
}

/// Closes the level. Writes that were not flushed are lost. Open containers and queues keep the
/// level open.
#[unsafe(no_mangle)]
pub extern "C" fn prism_policy_close(policy: *mut prism_policy) -> c_int {
    call(|| close::<PolicyObject>(policy).map(|_| 0))
}

/// Writes the bytes of a mapping unit to `bytes`, the smallest that is written without a
/// read-modify-write. Ranges, containers and trims consist of whole units.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_policy_unit(policy: *mut prism_policy, bytes: *mut u32) -> c_int {
    // SAFETY: the contract in the header.
    unsafe { put(bytes, "bytes", || Ok(get::<PolicyObject>(policy)?.policy.unit())) }
}

/// Writes the bytes of data in a block to `bytes`, which a range with block-level mapping replaces
/// without copies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_policy_block_bytes(
    policy: *mut prism_policy,
    bytes: *mut u64,
) -> c_int {
    // SAFETY: the contract in the header.
    unsafe { put(bytes, "bytes", || Ok(get::<PolicyObject>(policy)?.policy.block_bytes())) }
}

/// Makes a range of the addresses from `begin` up to but excluding `end` (`FTL_Ioctl` of the
/// paper), which can be read and written from then on. Replaces an empty range of the same
/// addresses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_policy_configure(
    policy: *mut prism_policy,
    begin: u64,
    end: u64,
    config: *const prism_range_config,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let config = unsafe { read(config) }?.value()?;
        let object = get::<PolicyObject>(policy)?;
        object.policy.configure(begin, end, config)?;
        object.ranges_changed();
        Ok(0)
    })
}

/// Removes the empty range that begins at `begin`.
#[unsafe(no_mangle)]
pub extern "C" fn prism_policy_remove(policy: *mut prism_policy, begin: u64) -> c_int {
    call(|| {
        let object = get::<PolicyObject>(policy)?;
        object.policy.remove(begin)?;
        object.ranges_changed();
        Ok(0)
    })
}

/// Returns the number of ranges.
#[unsafe(no_mangle)]
pub extern "C" fn prism_policy_ranges(policy: *mut prism_policy) -> c_int {
    call(|| number(get::<PolicyObject>(policy)?.policy.ranges().len()))
}

/// Describes range number `index`, by address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_policy_range(
    policy: *mut prism_policy,
    index: usize,
    info: *mut prism_range_info,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let out = unsafe { OutStruct::new(info) }?;
        let ranges = get::<PolicyObject>(policy)?.policy.ranges();
        let (value, count) = (index as u64, ranges.len() as u64);
        let range = ranges.get(index);
        out.put(range.ok_or(FlashError::OutOfRange { what: "range", value, count })?.into());
        Ok(0)
    })
}

/// Reads within one range (`FTL_Read` of the paper); bytes that were never written are zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_policy_read(
    policy: *mut prism_policy,
    address: u64,
    data: *mut c_void,
    length: usize,
) -> c_int {
    done(|| {
        let object = get::<PolicyObject>(policy)?;
        object.check(length)?;
        // SAFETY: the contract in the header.
        let data = unsafe { bytes_mut(data, length) }?;
        Ok(object.policy.read(address, data)?)
    })
}

/// Writes within one range (`FTL_Write` of the paper). The data is durable after the next
/// `prism_policy_flush`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_policy_write(
    policy: *mut prism_policy,
    address: u64,
    data: *const c_void,
    length: usize,
) -> c_int {
    // SAFETY: the contract in the header.
    unsafe { prism_policy_write_with_handle(policy, address, data, length, 0) }
}

/// Writes as data of a placement handle; of the last handle if there are fewer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_policy_write_with_handle(
    policy: *mut prism_policy,
    address: u64,
    data: *const c_void,
    length: usize,
    placement: u32,
) -> c_int {
    done(|| {
        let object = get::<PolicyObject>(policy)?;
        object.check(length)?;
        // SAFETY: the contract in the header.
        let data = unsafe { bytes(data, length) }?;
        Ok(object.policy.write_with_handle(address, data, placement)?)
    })
}

/// Trims these addresses, which have to be whole units: they read as zeros from now on.
#[unsafe(no_mangle)]
pub extern "C" fn prism_policy_trim(policy: *mut prism_policy, address: u64, length: u64) -> c_int {
    done(|| Ok(get::<PolicyObject>(policy)?.policy.trim(address, length)?))
}

/// Makes everything written and trimmed so far durable.
#[unsafe(no_mangle)]
pub extern "C" fn prism_policy_flush(policy: *mut prism_policy) -> c_int {
    done(|| Ok(get::<PolicyObject>(policy)?.policy.flush()?))
}

/// Cleans in idle time, up to `program_units` program units of copies in each range. Returns 1 if
/// there was anything to do, else 0.
#[unsafe(no_mangle)]
pub extern "C" fn prism_policy_idle(policy: *mut prism_policy, program_units: u32) -> c_int {
    call(|| Ok(get::<PolicyObject>(policy)?.policy.idle(program_units)?.into()))
}
