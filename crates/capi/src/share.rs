//! Shares: the part of a device that one application owns.

use std::ffi::c_int;

use prism::{Nanos, Share};

use crate::ffi_boundary::{call, done, number, put, put_struct, slice_mut};
use crate::handle::{close, get};
use crate::status::{Failure, Status};
use crate::structs::{prism_counts, prism_share_geometry};

/// A share. A level that is open in it keeps it attached, so close both handles before attaching to
/// it again. Threads may use it at once.
pub struct prism_share;

held!(Share, prism_share, Share);

/// The end of virtual time: 146 years, beyond which no clock advances.
const TIME_MAX: u64 = 1 << 62;

/// Closes the handle. The share is detached once every level in it is closed as well; its data
/// stays.
#[unsafe(no_mangle)]
pub extern "C" fn prism_share_close(share: *mut prism_share) -> c_int {
    call(|| close::<Share>(share).map(|_| 0))
}

/// The geometry of the share (`Get_SSD_Geometry` of the paper).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_share_get_geometry(
    share: *mut prism_share,
    geometry: *mut prism_share_geometry,
) -> c_int {
    // SAFETY: the contract in the header.
    unsafe { put_struct(geometry, || Ok(get::<Share>(share)?.geometry()?.into())) }
}

/// Returns the number of LUNs of the share on one of its channels. Writes their numbers in the
/// share to `luns`, at most `capacity` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_share_channel(
    share: *mut prism_share,
    channel: u32,
    luns: *mut u32,
    capacity: usize,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let room = unsafe { slice_mut(luns, capacity, "the buffer for LUNs") }?;
        let geometry = get::<Share>(share)?.geometry()?;
        let count = geometry.channels.len() as u64;
        let luns = geometry.channels.get(channel as usize);
        let luns = luns.ok_or(prism::FlashError::OutOfRange {
            what: "channel",
            value: channel.into(),
            count,
        })?;
        room.iter_mut().zip(luns).for_each(|(to, lun)| *to = *lun);
        number(luns.len())
    })
}

/// Operations in the share since the device was opened.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_share_get_counts(
    share: *mut prism_share,
    counts: *mut prism_counts,
) -> c_int {
    // SAFETY: the contract in the header.
    unsafe { put_struct(counts, || Ok(get::<Share>(share)?.counts()?.into())) }
}

/// Writes the share's clock to `now_ns`, in nanoseconds of virtual time. It does not advance on a
/// device without timing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_share_now(share: *mut prism_share, now_ns: *mut u64) -> c_int {
    // SAFETY: the contract in the header.
    unsafe { put(now_ns, "now_ns", || Ok(get::<Share>(share)?.now()?.0)) }
}

/// Lets `time_ns` nanoseconds of virtual time pass for this share.
#[unsafe(no_mangle)]
pub extern "C" fn prism_share_pass(share: *mut prism_share, time_ns: u64) -> c_int {
    done(|| {
        let share = get::<Share>(share)?;
        let end = share.now()?.0.checked_add(time_ns);
        if end.is_none_or(|end| end > TIME_MAX) {
            let what = format!("virtual time ends at {TIME_MAX} ns: let less pass");
            return Err(Failure::new(Status::PRISM_ERANGE, what));
        }
        Ok(share.pass(Nanos(time_ns))?)
    })
}

/// Changes the bandwidth limit, in bytes/s; 0 for no limit.
#[unsafe(no_mangle)]
pub extern "C" fn prism_share_limit_bandwidth(
    share: *mut prism_share,
    bytes_per_second: u64,
) -> c_int {
    done(|| {
        let limit = Some(bytes_per_second).filter(|&limit| limit > 0);
        Ok(get::<Share>(share)?.limit_bandwidth(limit)?)
    })
}

/// Adds LUNs, which get the next numbers; `ops_luns` of them are over-provisioning. The raw level
/// can use them after `prism_raw_grow`, the function level after it is opened again.
#[unsafe(no_mangle)]
pub extern "C" fn prism_share_grow(share: *mut prism_share, luns: u32, ops_luns: u32) -> c_int {
    done(|| Ok(get::<Share>(share)?.grow(luns, ops_luns)?))
}

/// Gives back the last LUNs of the share, which have to be erased; over-provisioning first.
#[unsafe(no_mangle)]
pub extern "C" fn prism_share_shrink(share: *mut prism_share, luns: u32) -> c_int {
    done(|| Ok(get::<Share>(share)?.shrink(luns)?))
}

/// Releases the share and erases its data. Calls on its handles return `PRISM_ERELEASED` from now
/// on; the handles still have to be closed.
#[unsafe(no_mangle)]
pub extern "C" fn prism_share_release(share: *mut prism_share) -> c_int {
    done(|| Ok(Share::clone(&*get::<Share>(share)?).release()?))
}
