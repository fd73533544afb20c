//! The key-value store.

use std::ffi::{c_int, c_void};
use std::ops::Bound;

use prism::Share;
use prism::kv::{KvStore, VALUE_MAX};

use crate::ffi_boundary::{Out, OutStruct, at_most, bytes, bytes_mut, call, done, number};
use crate::handle::{close, get, open};
use crate::share::prism_share;
use crate::status::{Failure, Status};
use crate::structs::prism_kv_info;

/// A key-value store. Threads may use it at once.
pub struct prism_kv;

held!(KvStore, prism_kv, Kv);

/// The callback of `prism_kv_scan`, called for each key with its value, which are valid until it
/// returns. It returns 0 to continue the scan. It must not throw an exception; it may use the
/// store.
pub type prism_kv_visit = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        key: *const c_void,
        key_length: usize,
        value: *const c_void,
        value_length: usize,
    ) -> c_int,
>;

/// The longest key of any store.
const KEY_MAX: u64 = 255;

/// # Safety
/// As [`bytes`].
unsafe fn key_of<'a>(key: *const c_void, length: usize) -> Result<&'a [u8], Failure> {
    if length as u64 > KEY_MAX {
        let what = format!("a key of {length} bytes: the most is {KEY_MAX}");
        return Err(Failure::new(Status::PRISM_EINVALID, what));
    }
    // SAFETY: this function has the same contract.
    unsafe { bytes(key, length) }
}

/// Opens the store in a share, or makes one if the share is empty. The share stays attached until
/// the store is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_kv_open(share: *mut prism_share, kv: *mut *mut prism_kv) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let out = unsafe { Out::handle(kv) }?;
        out.put(open(KvStore::open(Share::clone(&*get::<Share>(share)?))?)?);
        Ok(0)
    })
}

/// Closes the store. Writes that were not flushed are lost.
#[unsafe(no_mangle)]
pub extern "C" fn prism_kv_close(kv: *mut prism_kv) -> c_int {
    call(|| close::<KvStore>(kv).map(|_| 0))
}

/// Returns the longest key in bytes: 255, or an eighth of a page if that is less.
#[unsafe(no_mangle)]
pub extern "C" fn prism_kv_key_max(kv: *mut prism_kv) -> c_int {
    call(|| number(get::<KvStore>(kv)?.key_max()))
}

/// Sets the value of a key: 16 MiB at most. It is durable after the next `prism_kv_flush`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_kv_set(
    kv: *mut prism_kv,
    key: *const c_void,
    key_length: usize,
    value: *const c_void,
    value_length: usize,
) -> c_int {
    done(|| {
        let store = get::<KvStore>(kv)?;
        at_most(value_length, VALUE_MAX as u64, "a value")?;
        // SAFETY: the contract in the header.
        let (key, value) = unsafe { (key_of(key, key_length)?, bytes(value, value_length)?) };
        Ok(store.set(key, value)?)
    })
}

/// Deletes a key. Returns 1 if it had a value, else 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_kv_delete(
    kv: *mut prism_kv,
    key: *const c_void,
    key_length: usize,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let key = unsafe { key_of(key, key_length) }?;
        Ok(get::<KvStore>(kv)?.delete(key)?.into())
    })
}

/// Returns 1 if the key has a value, else 0. Writes the value to `value` and its length to
/// `value_length`; if `capacity` is less, writes only the length and returns `PRISM_ETOOSMALL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_kv_get(
    kv: *mut prism_kv,
    key: *const c_void,
    key_length: usize,
    value: *mut c_void,
    capacity: usize,
    value_length: *mut usize,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let out = unsafe { Out::new(value_length, "value_length") }?;
        // SAFETY: the contract in the header.
        let (key, room) = unsafe { (key_of(key, key_length)?, bytes_mut(value, capacity)?) };
        out.put(0);
        let Some(found) = get::<KvStore>(kv)?.get(key)? else { return Ok(0) };
        out.put(found.len());
        let Some(to) = room.get_mut(..found.len()) else {
            let what = format!("the value has {} bytes: give it as many", found.len());
            return Err(Failure::new(Status::PRISM_ETOOSMALL, what));
        };
        to.copy_from_slice(&found);
        Ok(1)
    })
}

/// Calls `visit` for the first `limit` keys in order, from `from` on and before `to`, with their
/// values, which are read in parallel. A bound that is NULL is no bound. Returns the number of keys
/// visited.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_kv_scan(
    kv: *mut prism_kv,
    from: *const c_void,
    from_length: usize,
    to: *const c_void,
    to_length: usize,
    limit: usize,
    visit: prism_kv_visit,
    context: *mut c_void,
) -> c_int {
    call(|| {
        let visit = visit.ok_or_else(|| Failure::argument("visit is NULL"))?;
        // SAFETY: the contract in the header.
        let (first, end) = unsafe { (bytes(from, from_length)?, bytes(to, to_length)?) };
        let first = if from.is_null() { Bound::Unbounded } else { Bound::Included(first) };
        let end = if to.is_null() { Bound::Unbounded } else { Bound::Excluded(end) };
        let found = get::<KvStore>(kv)?.scan((first, end), limit)?;
        let mut visited = 0;
        for (key, value) in &found {
            visited += 1;
            let (key_at, value_at) = (key.as_ptr().cast(), value.as_ptr().cast());
            // SAFETY: it is a function of the caller with these parameters.
            let go_on = unsafe { visit(context, key_at, key.len(), value_at, value.len()) };
            if go_on != 0 {
                break;
            }
        }
        number(visited)
    })
}

/// Makes everything set or deleted so far durable.
#[unsafe(no_mangle)]
pub extern "C" fn prism_kv_flush(kv: *mut prism_kv) -> c_int {
    done(|| Ok(get::<KvStore>(kv)?.flush()?))
}

/// Content and operations of the store. Iterates over all keys.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_kv_get_info(kv: *mut prism_kv, info: *mut prism_kv_info) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let out = unsafe { OutStruct::new(info) }?;
        let stats = get::<KvStore>(kv)?.stats();
        out.put(prism_kv_info {
            size: 0,
            records: stats.records,
            live_bytes: stats.live_bytes,
            charged_bytes: stats.charged_bytes,
            capacity_bytes: stats.capacity_bytes,
            written_bytes: stats.written_bytes,
            programs: stats.counts.programs.total(),
            write_amplification: stats.write_amplification,
        });
        Ok(0)
    })
}
